/* SPDX-License-Identifier: BSD-2-Clause */
/* secret_text.c - see secret_text.h. */
#include "secret_text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int
digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* 64 digits, and perhaps the end of their line. */
static bool
hex_read(const char *text, size_t n, unsigned char *secret)
{
	size_t i;

	while (n > 2 * (size_t)SECRET_BYTES &&
	    (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	if (n != 2 * (size_t)SECRET_BYTES)
		return false;
	for (i = 0; i < SECRET_BYTES; i++) {
		if (digit_of(text[2 * i]) < 0 || digit_of(text[2 * i + 1]) < 0)
			return false;
		secret[i] = (unsigned char)(digit_of(text[2 * i]) << 4 |
		    digit_of(text[2 * i + 1]));
	}
	return true;
}

const char *
secret_text_read(struct kvr_options *o, const char *text, size_t n)
{
	static const unsigned char zeros[SECRET_BYTES];

	if (n == SECRET_BYTES)
		memcpy(o->secret, text, SECRET_BYTES);
	else if (!hex_read(text, n, o->secret))
		return "the file holds neither 32 bytes nor 64 hexadecimal "
		    "digits";
	if (memcmp(o->secret, zeros, SECRET_BYTES) == 0)
		return "the secret is zero";
	o->secret_bytes = SECRET_BYTES;
	return NULL;
}

static const char *
open_file_read(struct kvr_options *o, int fd, struct secret_file *is)
{
	char text[SECRET_TEXT_ROOM];
	struct stat s;
	ssize_t n;

	if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
		return "it is no file";
	is->open = (s.st_mode & (S_IROTH | S_IWOTH)) != 0;
	n = read(fd, text, sizeof(text));
	return secret_text_read(o, text, n < 0 ? 0 : (size_t)n);
}

const char *
secret_file_read(struct kvr_options *o, const char *path,
    struct secret_file *is)
{
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	const char *why;

	*is = (struct secret_file){ .error = fd < 0 ? errno : 0 };
	if (fd < 0)
		return "the file cannot be opened";
	why = open_file_read(o, fd, is);
	(void)close(fd);
	return why;
}
