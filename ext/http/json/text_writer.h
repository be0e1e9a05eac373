/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_writer.h - writes a report into the proxy's response.
 *
 *   report --> writer_put --> calls->write --> buffers of the response
 *
 * The proxy hands in three calls and a context for them: `write` copies bytes;
 * `alloc` and `free` are for scratch memory, which is freed before the report
 * is done.
 *
 * When a call fails, or the text cannot be completed for another reason,
 * `failed` is set and nothing further is written. The proxy looks at `failed`
 * once, when the report is done, and sends an error instead.
 */
#ifndef KVROUTE_TEXT_WRITER_H
#define KVROUTE_TEXT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct writer_calls {
	/* Returns false if there is no room. */
	bool (*write)(void *context, const void *bytes, size_t n);
	void *(*alloc)(void *context, size_t size);
	void (*free)(void *context, void *memory);
};

struct writer {
	const struct writer_calls *calls;
	void *context;
	bool failed;
	unsigned busy; /* calls of this report that found a lock held */
};

enum { WRITER_DIGITS = 20, WRITER_HEX = 16 }; /* digits of UINT64_MAX */

void writer_put(struct writer *w, const void *bytes, size_t n);
void writer_text(struct writer *w, const char *text);
void writer_number(struct writer *w, uint64_t n);
/* NULL: no memory, and the writer has failed. */
void *writer_alloc(struct writer *w, size_t size);
void writer_free(struct writer *w, void *memory);

/* Writes the decimal digits of n without a NUL; returns their end. */
char *digits_write(char to[WRITER_DIGITS], uint64_t n);
/* Writes all 16 hexadecimal digits of n without a NUL. */
void hex_write(char to[WRITER_HEX], uint64_t n);

bool text_is_utf8(const void *text, size_t n);

#endif
