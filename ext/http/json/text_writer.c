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
