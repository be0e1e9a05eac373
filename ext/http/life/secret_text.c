/* SPDX-License-Identifier: BSD-2-Clause */
/* secret_text.c - see secret_text.h. */
#include "secret_text.h"

#include <stdbool.h>
#include <string.h>

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
