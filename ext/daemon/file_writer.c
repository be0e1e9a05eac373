/* SPDX-License-Identifier: BSD-2-Clause */
/* file_writer.c - see file_writer.h. */
#include "file_writer.h"

#include <stdlib.h>

static bool
file_put(void *context, const void *bytes, size_t n)
{
	return fwrite(bytes, 1, n, context) == n;
}

static void *
memory_get(void *context, size_t size)
{
	(void)context;
	return malloc(size);
}

static void
memory_free(void *context, void *memory)
{
	(void)context;
	free(memory);
}

struct writer
file_writer(FILE *out)
{
	static const struct writer_calls calls = { file_put, memory_get,
	    memory_free };

	return (struct writer){ .calls = &calls, .context = out };
}
