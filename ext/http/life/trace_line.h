/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace_line.h - lines for kvroute-replay(1): traffic without its text.
 *
 *   {"timestamp": 1763760000123, "input_length": 812, "output_length": 64,
 *    "hash_ids": [1093, 5521], "prompt_tokens": 790, "cached_tokens": 512,
 *    "worker": "10.0.0.1:8000", "ms": 1520}
 *
 * A hash id stands for 512 tokens, estimated at 4 bytes each, and for all that
 * precede them. It is taken from the sequence hash, which is keyed by the
 * region's secret. input_length is estimated in the same way.
 *
 * SAMPLE. One request in a hundred, drawn at random, would show a hundredth of
 * the reuse. So whole families of prompts are drawn: those that agree up to the
 * first model response in them, as the turns of a chat do.
 */
#ifndef KVROUTE_TRACE_LINE_H
#define KVROUTE_TRACE_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "kvroute.h"

enum { TRACE_ALL = 1000000 }; /* parts of the sample */

/* All 0 at first. */
struct trace_line {
	uint64_t *ids;          /* of the prompt; NULL: no line */
	size_t n_ids;
	int64_t arrived_ms;     /* wall clock */
};

/*
 * A worker was chosen: keeps the ids of the prompt, if it is in the sample.
 * `opening` are the units up to the first model response.
 */
void trace_line_keep(struct trace_line *t, const struct kvr_prompt *p,
    const struct kvr_decision *d, uint64_t opening, uint32_t block_size,
    uint32_t sample);
/*
 * The line, which the caller frees, once the request has ended; NULL: there is
 * none, or no memory. rank: -1: none. The ids are gone.
 */
char *trace_line_write(struct trace_line *t, const struct kvr_decision *d,
    const struct kvr_report *report, const char *name, size_t name_len,
    int64_t rank, size_t *n);
void trace_line_leave(struct trace_line *t);

#endif
