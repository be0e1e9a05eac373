/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h - a streaming reader of Mooncake-format traces, in bounded memory.
 *
 * A trace has one JSON object per line:
 *
 *   {"timestamp": 27482, "input_length": 6955, "output_length": 52,
 *    "hash_ids": [46, 47, 48, 2353]}
 *
 * timestamp is in milliseconds and never decreases; lengths are in tokens. A
 * member "session", a positive integer, may name the chat or agent.
 * Each hash id stands for 512 tokens of the prompt, the last id for possibly
 * fewer. Equal ids at the same position stand for equal tokens, so equal
 * leading ids are a shared prefix.
 *
 * Timestamps of published traces are coarse: ten requests may share a tick of
 * three seconds. The reader spreads the n requests of a tick t evenly up to
 * the next tick t': request k arrives at t + (t' - t) * k / n. It therefore
 * holds one tick at a time. The size of a tick and of a line is limited as
 * follows.
 */
#ifndef KVROUTE_TRACE_H
#define KVROUTE_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	TRACE_BLOCK = 512,        /* tokens per hash id */
	TRACE_LINE_MAX = 1 << 20, /* bytes of one line */
	TRACE_IDS_MAX = 1 << 14,  /* hash ids of one request */
	/* Held at once: one tick and the first request of the next. */
	TRACE_TICK_REQUESTS_MAX = 1 << 16,
	TRACE_TICK_IDS_MAX = 1 << 22,
	TRACE_LAST_TICK_MS = 3000 /* assumed length of the last tick */
};
#define TRACE_SPAN_MAX_MS INT64_C(100000000000) /* three years */

struct trace_request {
	uint64_t number;       /* from 0 */
	int64_t timestamp_ms;  /* as written */
	int64_t arrival_ms;    /* spread; since the first timestamp */
	uint64_t input_length; /* as written */
	uint64_t output_length;
	uint64_t known_output; /* of it: tokens that further ids stand for; 0 */
	size_t tokens;         /* min(input_length, 512 * n_ids) */
	size_t n_ids;
	const uint64_t *ids;   /* valid until the next call */
	uint64_t session;      /* of the chat or agent; 0: not named */
	const uint64_t *seen;  /* the part that routers see, in whole */
	size_t n_seen;         /* blocks; 0: all */
};

struct trace;

/*
 * Reads from `file`, which the caller closes; `name` appears in errors.
 * NULL: out of memory.
 */
struct trace *trace_new(FILE *file, const char *name);
void trace_free(struct trace *t);
/* 1: *out is the next request; 0: end of trace; -1: see trace_error. */
int trace_next(struct trace *t, struct trace_request *out);
/* The request with the prompt that routers see. */
struct trace_request trace_seen(const struct trace_request *r);
/* "name:line: message" */
const char *trace_error(const struct trace *t);
/* Bytes read so far. */
uint64_t trace_bytes(const struct trace *t);

#endif
