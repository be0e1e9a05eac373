/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plain_engine.c - see plain_engine.h.
 *
 * Events are in a binary heap, ordered by time, then by insertion, so the
 * result does not depend on the heap's layout.
 */
#include "plain_engine.h"

#include <stdlib.h>

#define SECOND INT64_C(1000000000)
/* A request takes at most a year, so sums of times do not overflow. */
#define LONGEST (SECOND * 86400 * 365)

struct waiting {
	struct engines_event event;
	uint64_t order;
};

struct engines {
	uint64_t prefill_rate;
	uint64_t decode_rate;
	uint64_t order;
	struct waiting *heap;
	size_t n;
	size_t capacity;
	int64_t free_at[]; /* by worker: when its prefill queue is empty */
};

struct engines *
engines_new(uint32_t n, uint64_t prefill_rate, uint64_t decode_rate)
{
	struct engines *e = calloc(1, sizeof(*e) + n * sizeof(e->free_at[0]));

	if (e == NULL)
		return NULL;
	e->prefill_rate = prefill_rate;
	e->decode_rate = decode_rate;
	return e;
}

void
engines_free(struct engines *e)
{
	if (e == NULL)
		return;
	free(e->heap);
	free(e);
}

static int64_t
work_duration(uint64_t tokens, uint64_t rate)
{
	uint64_t whole = tokens / rate;

	if (whole >= (uint64_t)(LONGEST / SECOND))
		return LONGEST;
	return (int64_t)whole * SECOND + (int64_t)((double)(tokens % rate) *
	    (double)SECOND / (double)rate);
}

int64_t
engines_start(struct engines *e, uint32_t worker, int64_t now,
    uint64_t prefill_tokens)
{
	int64_t begin = now > e->free_at[worker] ? now : e->free_at[worker];

	if (prefill_tokens == 0)
		prefill_tokens = 1;
	if (begin < INT64_MAX - LONGEST)
		begin += work_duration(prefill_tokens, e->prefill_rate);
	e->free_at[worker] = begin;
	return begin - now;
}

static bool
engines_before(const struct waiting *a, const struct waiting *b)
{
	if (a->event.at != b->event.at)
		return a->event.at < b->event.at;
	return a->order < b->order;
}

static int
engines_push(struct engines *e, struct engines_event event)
{
	struct waiting w = { event, e->order };
	size_t i = e->n, up;

	if (e->n == e->capacity) {
		size_t want = e->capacity == 0 ? 64 : e->capacity * 2;
		struct waiting *p = realloc(e->heap, want * sizeof(*p));

		if (p == NULL)
			return -1;
		e->heap = p;
		e->capacity = want;
	}
	for (; i > 0; i = up) {
		up = (i - 1) / 2;
		if (!engines_before(&w, &e->heap[up]))
			break;
		e->heap[i] = e->heap[up];
	}
	e->heap[i] = w;
	e->n++;
	e->order++;
	return 0;
}

int
engines_follow(struct engines *e, uint64_t lease, int64_t first,
    uint64_t output_tokens)
{
	struct engines_event event = { first, lease, ENGINES_FIRST_TOKEN };

	if (engines_push(e, event) != 0)
		return -1;
	event.kind = ENGINES_FINISH;
	if (event.at < INT64_MAX - LONGEST)
		event.at += work_duration(output_tokens, e->decode_rate);
	return engines_push(e, event);
}

bool
engines_due(struct engines *e, int64_t now, struct engines_event *out)
{
	struct waiting last;
	size_t i = 0, child;

	if (e->n == 0 || e->heap[0].event.at > now)
		return false;
	*out = e->heap[0].event;
	last = e->heap[--e->n];
	for (;; i = child) {
		child = 2 * i + 1;
		if (child >= e->n)
			break;
		if (child + 1 < e->n &&
		    engines_before(&e->heap[child + 1], &e->heap[child]))
			child++;
		if (engines_before(&last, &e->heap[child]))
			break;
		e->heap[i] = e->heap[child];
	}
	e->heap[i] = last;
	return true;
}
