/* SPDX-License-Identifier: BSD-2-Clause */
/* text_hold.h - a buffer that grows. All 0 is an empty one. */
#ifndef KVROUTE_TEXT_HOLD_H
#define KVROUTE_TEXT_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "text_writer.h"

struct hold {
	unsigned char *data;
	size_t length;
	size_t capacity;
};

enum { HOLD_KEEP = 1 << 20 }; /* the capacity that hold_trim allows */

/* Makes room for n more bytes; false: no memory, and nothing has changed. */
bool hold_grow(struct hold *h, size_t n);
/* Frees a buffer of more than HOLD_KEEP bytes, which is empty then. */
void hold_trim(struct hold *h);
/* Frees a buffer of any size, which is empty then. */
void hold_free(struct hold *h);

/* A writer that appends to it; its scratch memory is of malloc, too. */
struct writer hold_out(struct hold *h);

static inline bool
hold_reserve(struct hold *h, size_t n)
{
	return n <= h->capacity - h->length || hold_grow(h, n);
}

static inline bool
hold_append(struct hold *h, const void *bytes, size_t n)
{
	if (!hold_reserve(h, n))
		return false;
	if (n > 0)
		memcpy(h->data + h->length, bytes, n);
	h->length += n;
	return true;
}

#endif
