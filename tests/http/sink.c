/* SPDX-License-Identifier: BSD-2-Clause */
/* sink.c - see sink.h. */
#include "sink.h"

#include <stdlib.h>
#include <string.h>

static bool
sink_write(void *context, const void *bytes, size_t n)
{
	struct sink *s = context;

	s->writes++;
	if (n > s->room - s->length)
		return false;
	memcpy(&s->text[s->length], bytes, n);
	s->length += n;
	s->text[s->length] = '\0';
	return true;
}

static void *
sink_alloc(void *context, size_t size)
{
	struct sink *s = context;

	if (s->allocations == 0)
		return NULL;
	s->allocations--;
	s->held++;
	return malloc(size);
}

static void
sink_free(void *context, void *memory)
{
	struct sink *s = context;

	s->held--;
	free(memory);
}

void
sink_begin(struct sink *s, size_t room, size_t allocations)
{
	static const struct writer_calls calls = { sink_write, sink_alloc,
	    sink_free };

	memset(s, 0, sizeof(*s));
	s->writer.calls = &calls;
	s->writer.context = s;
	s->room = room < SINK_BYTES ? room : SINK_BYTES;
	s->allocations = allocations;
}
