/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_writer.h - where a report is written to: the proxy's response.
 *
 *   report --> writer_put --> calls->write --> buffers of the response
 *
 * The proxy hands in three calls and a context for them: `write` takes bytes,
 * which it copies; `alloc` and `free` are for scratch memory, all of which is
 * freed before the report is done.
 *
 * Errors: when a call fails, or the text cannot be completed for another
 * reason, `failed` is set and nothing further is written. Nothing needs to be
 * checked on the way; the proxy looks at `failed` when the report is done and
 * sends an error instead.
 */
#ifndef KVROUTE_TEXT_WRITER_H
#define KVROUTE_TEXT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct writer_calls {
	/* false: there is no room */
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

enum { WRITER_DIGITS = 20, WRITER_HEX = 16 }; /* of the largest number */

void writer_put(struct writer *w, const void *bytes, size_t n);
void writer_text(struct writer *w, const char *text);
void writer_number(struct writer *w, uint64_t n);
/* NULL: no memory, and the writer has failed. */
void *writer_alloc(struct writer *w, size_t size);
void writer_free(struct writer *w, void *memory);

/* Writes the decimal digits of n, no NUL; returns the end. */
char *digits_write(char to[WRITER_DIGITS], uint64_t n);
/* All hexadecimal digits of n, no NUL. */
void hex_write(char to[WRITER_HEX], uint64_t n);

#endif
