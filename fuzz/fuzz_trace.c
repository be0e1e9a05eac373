/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_trace.c - any bytes through the trace reader.
 *
 * The first byte says which allocation fails (0: none), the rest is the file.
 * Whatever the input: no crash, an error or a final end, and requests that keep
 * their promises: arrivals never go back and stay within the limits, ids can be
 * read, tokens are what ids and length allow.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t seen; /* so that ids are really read */

static void
demand(bool condition)
{
	if (!condition)
		abort();
}

static void
look(const struct trace_request *r, uint64_t n, int64_t last)
{
	size_t i;

	demand(r->number == n);
	demand(r->arrival_ms >= last && r->timestamp_ms >= 0);
	demand(r->arrival_ms <= TRACE_SPAN_MAX_MS + TRACE_LAST_TICK_MS);
	demand(r->n_ids <= TRACE_IDS_MAX);
	demand((r->n_ids == 0) == (r->ids == NULL));
	demand(r->tokens <= r->n_ids * TRACE_BLOCK);
	demand(r->tokens == r->input_length ||
	    (r->tokens < r->input_length &&
	    r->tokens == r->n_ids * TRACE_BLOCK));
	for (i = 0; i < r->n_ids; i++)
		seen += r->ids[i];
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace_request r;
	struct trace *t;
	FILE *f;
	uint8_t *copy;
	uint64_t n = 0;
	int64_t last = 0;
	int result;

	if (size < 2)
		return 0;
	/* Reading from memory requires writable memory. */
	copy = malloc(size - 1);
	demand(copy != NULL);
	memcpy(copy, data + 1, size - 1);
	f = fmemopen(copy, size - 1, "r");
	demand(f != NULL);
	alloc_fail_at(data[0]);
	t = trace_new(f, "fuzz");
	while (t != NULL && (result = trace_next(t, &r)) != 0) {
		if (result == -1) {
			demand(strncmp(trace_error(t), "fuzz:", 5) == 0);
			demand(trace_next(t, &r) == -1);
			break;
		}
		look(&r, n++, last);
		last = r.arrival_ms;
	}
	alloc_reset();
	demand(t == NULL || trace_bytes(t) <= size - 1);
	trace_free(t);
	fclose(f);
	free(copy);
	return 0;
}
