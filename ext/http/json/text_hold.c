/* SPDX-License-Identifier: BSD-2-Clause */
/* text_hold.c - see text_hold.h. */
#include "text_hold.h"

#include <stdint.h>
#include <stdlib.h>

enum { FIRST = 512 };

bool
hold_grow(struct hold *h, size_t n)
{
	size_t room = h->capacity < FIRST ? FIRST : h->capacity;
	unsigned char *data;

	if (n > SIZE_MAX / 4 || h->length > SIZE_MAX / 4)
		return false;
	while (room < h->length + n)
		room *= 2;
	data = realloc(h->data, room);
	if (data == NULL)
		return false;
	h->data = data;
	h->capacity = room;
	return true;
}

void
hold_trim(struct hold *h)
{
	if (h->capacity > HOLD_KEEP)
		hold_free(h);
}

void
hold_free(struct hold *h)
{
	free(h->data);
	h->data = NULL;
	h->length = h->capacity = 0;
}

static bool
out_write(void *context, const void *bytes, size_t n)
{
	return hold_append(context, bytes, n);
}

static void *
out_alloc(void *context, size_t size)
{
	(void)context;
	return malloc(size);
}

static void
out_free(void *context, void *memory)
{
	(void)context;
	free(memory);
}

struct writer
hold_out(struct hold *h)
{
	static const struct writer_calls calls = { out_write, out_alloc,
	    out_free };

	return (struct writer){ .calls = &calls, .context = h };
}
