/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sink.h - a writer into memory, of a proxy that has only so much of it.
 *
 * The text ends with a NUL. Scratch memory is counted: `held` is 0 again when
 * a report is done, whether it failed or not.
 */
#ifndef KVR_SINK_H
#define KVR_SINK_H

#include <stddef.h>

#include "text_writer.h"

enum { SINK_BYTES = 1 << 20 };

struct sink {
	struct writer writer;
	size_t room;        /* bytes that it takes */
	size_t allocations; /* that succeed */
	size_t held;        /* allocated and not freed */
	size_t writes;      /* asked for */
	size_t length;
	char text[SINK_BYTES + 1];
};

/* Empty again; `room` bytes, then writes fail. */
void sink_begin(struct sink *s, size_t room, size_t allocations);

#endif
