/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * storage.c - the content of an open file, room for a region, the boot's id.
 *
 * BLANK. A file that is no region may be made one only if nothing can be lost:
 * it is empty, begins with the mark of a creator that died (region_unmade), or
 * is zero from its first to its last byte, as one that died earlier left it.
 * Zeros at the beginning prove little: an ISO image has 32 KiB of them.
 *
 * ALLOCATION. Some file systems give up at each signal and undo the part that
 * was done (tmpfs). A timer could so keep a large file from ever being
 * allocated. Each time half as much is asked for at once, down to a page, so
 * there is soon a piece that is done between two signals. All is asked for
 * first, since only then a disk that is too small is found without filling it.
 */
#define _POSIX_C_SOURCE 200809L
#include "storage.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { CHUNK = 16384, PIECE_MIN = 4096 };

/* As pread, but all of it or up to the end of the file; -1: failed. */
static ssize_t
read_at(int fd, void *to, size_t bytes, uint64_t at)
{
	size_t done = 0;
	ssize_t n;

	while (done < bytes) {
		n = pread(fd, (char *)to + done, bytes - done,
		    (off_t)(at + done));
		if (n == 0)
			break;
		if (n > 0)
			done += (size_t)n;
		else if (errno != EINTR)
			return -1;
	}
	return (ssize_t)done;
}

/* bytes > 0 */
static bool
all_zeros(const unsigned char *at, size_t bytes)
{
	return at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0;
}

int
storage_blank(int fd, bool *blank)
{
	unsigned char chunk[CHUNK];
	uint64_t at = 0;
	ssize_t n;

	*blank = true;
	for (;; at += (uint64_t)n) {
		n = read_at(fd, chunk, sizeof(chunk), at);
		if (n == -1)
			return KVR_ESYSTEM;
		if (n == 0 || (at == 0 && region_unmade(chunk, (size_t)n)))
			return KVR_OK;
		*blank = all_zeros(chunk, (size_t)n);
		if (!*blank)
			return KVR_OK;
	}
}

int
storage_cut(int fd, uint64_t bytes)
{
	int result;

	do {
		result = ftruncate(fd, (off_t)bytes);
	} while (result == -1 && errno == EINTR);
	return result == 0 ? KVR_OK : KVR_ESYSTEM;
}

int
storage_allocate(int fd, uint64_t bytes)
{
	uint64_t at = 0, piece = bytes;
	int error;

	while (at < bytes) {
		if (piece > bytes - at)
			piece = bytes - at;
		error = posix_fallocate(fd, (off_t)at, (off_t)piece);
		if (error == 0) {
			at += piece;
		} else if (error != EINTR) {
			errno = error;
			return KVR_ESYSTEM;
		} else if (piece / 2 >= PIECE_MIN) {
			piece = piece / 2 / PIECE_MIN * PIECE_MIN;
		}
	}
	return KVR_OK;
}

/* ------------------------------------------------------------- boot id --- */

/* The value of a hexadecimal digit; 16: it is no digit. */
static unsigned
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* 16 bytes as hexadecimal digits, between which dashes may stand. */
static bool
boot_id_parse(const char *text, size_t length, unsigned char *id)
{
	unsigned digits = 0;

	for (; length > 0 && digits < 2 * KVR_BOOT_ID_BYTES; text++, length--) {
		unsigned value = hex_digit(*text);

		if (*text == '-')
			continue;
		if (value > 15)
			return false;
		value |= (unsigned)id[digits / 2] << 4;
		id[digits / 2] = (unsigned char)value;
		digits++;
	}
	return digits == 2 * KVR_BOOT_ID_BYTES;
}

void
storage_boot_id(unsigned char id[KVR_BOOT_ID_BYTES])
{
	char text[64];
	ssize_t n = -1;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	memset(id, 0, KVR_BOOT_ID_BYTES);
	if (fd != -1) {
		n = read_at(fd, text, sizeof(text), 0);
		(void)close(fd);
	}
	if (n == -1 || !boot_id_parse(text, (size_t)n, id))
		memset(id, 0, KVR_BOOT_ID_BYTES);
}
