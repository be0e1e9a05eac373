/* SPDX-License-Identifier: BSD-2-Clause */
/* hold_writer.c - see hold_writer.h. */
#include "hold_writer.h"

#include <stdlib.h>

static bool
write_hold(void *context, const void *bytes, size_t n)
{
	return hold_append(context, bytes, n);
}

static void *
get_memory(void *context, size_t size)
{
	(void)context;
	return malloc(size);
}

static void
free_memory(void *context, void *memory)
{
	(void)context;
	free(memory);
}

struct writer
hold_writer(struct hold *to)
{
	static const struct writer_calls calls = { write_hold, get_memory,
	    free_memory };

	return (struct writer){ .calls = &calls, .context = to };
}
