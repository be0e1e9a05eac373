/* SPDX-License-Identifier: BSD-2-Clause */
/* text_writer.c - see text_writer.h. */
#include "text_writer.h"

#include <string.h>

void
writer_put(struct writer *w, const void *bytes, size_t n)
{
	if (n > 0 && !w->failed && !w->calls->write(w->context, bytes, n))
		w->failed = true;
}

void
writer_text(struct writer *w, const char *text)
{
	writer_put(w, text, strlen(text));
}

char *
digits_write(char to[WRITER_DIGITS], uint64_t n)
{
	char digits[WRITER_DIGITS];
	size_t i = WRITER_DIGITS;

	do
		digits[--i] = (char)('0' + n % 10);
	while ((n /= 10) > 0);
	memcpy(to, &digits[i], WRITER_DIGITS - i);
	return to + WRITER_DIGITS - i;
}

void
hex_write(char to[WRITER_HEX], uint64_t n)
{
	size_t i;

	for (i = WRITER_HEX; i-- > 0; n >>= 4)
		to[i] = "0123456789abcdef"[n & 15];
}

void
writer_number(struct writer *w, uint64_t n)
{
	char digits[WRITER_DIGITS];

	writer_put(w, digits, (size_t)(digits_write(digits, n) - digits));
}

void *
writer_alloc(struct writer *w, size_t size)
{
	void *memory = w->failed ? NULL : w->calls->alloc(w->context, size);

	if (memory == NULL)
		w->failed = true;
	return memory;
}

void
writer_free(struct writer *w, void *memory)
{
	if (memory != NULL)
		w->calls->free(w->context, memory);
}

/* Returns the length of the character that begins here; 0: not UTF-8. */
static size_t
utf8_length(const unsigned char *p, size_t n)
{
	const unsigned char c = *p;
	const size_t length = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 :
	    c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
	size_t i;

	if (length > n)
		return 0;
	for (i = 1; i < length; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* These are overlong, a surrogate, or above U+10FFFF. */
	return (c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) ||
	    (c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f) ? 0 :
	    length;
}

bool
text_is_utf8(const void *text, size_t n)
{
	const unsigned char *p = text;
	size_t at, length;

	for (at = 0; at < n; at += length) {
		length = utf8_length(p + at, n - at);
		if (length == 0)
			return false;
	}
	return true;
}
