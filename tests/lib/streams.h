/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * streams.h - batches of events for worker 0, written as letters and numbers:
 * "s20 r4 c" is 20 blocks stored, 4 removed, all cleared. Capital letters
 * stand for the host's memory. An engine's block is one token, unless `block`
 * is set.
 */
#ifndef KVR_STREAMS_H
#define KVR_STREAMS_H

#include "inner.h"

enum { EVENTS_MAX = 16 };

static uint32_t block = 1, batch_flags;
static struct kvr_event_result got;
static const uint64_t engine_hashes[4096];

static inline struct kvr_event
event_of(char what, uint64_t n)
{
	struct kvr_event e;

	ck_assert_int_eq(kvr_event_init(&e, sizeof(e)), KVR_OK);
	e.kind = what == 's' || what == 'S' ? KVR_EVENT_STORED
	    : what == 'r' || what == 'R' ? KVR_EVENT_REMOVED
	    : what == 'c' ? KVR_EVENT_CLEARED
	    : what == 'n' ? KVR_EVENT_RESTARTED : 99;
	e.tier = what == 'S' || what == 'R' ? KVR_TIER_HOST : KVR_TIER_GPU;
	e.block_tokens = e.kind == KVR_EVENT_STORED ? block : 0;
	e.hashes = n;
	return e;
}

/* Applies these events as batch `seq`, with a digest. */
static inline int
batch_error(uint64_t seq, uint64_t digest, const char *text, int64_t now)
{
	struct kvr_event_batch b = { .size = sizeof(b), .seq = seq,
		.digest = digest, .flags = batch_flags };
	struct kvr_event e[EVENTS_MAX];
	size_t n = 0;
	char *end;

	memset(&got, 0, sizeof(got));
	got.size = sizeof(got);
	for (; *text != '\0' && n < EVENTS_MAX; text = end) {
		while (*text == ' ')
			text++;
		e[n] = event_of(*text, strtoul(text + 1, &end, 10));
		n++;
	}
	return kvr_events_apply(k, id[0], &b, e, sizeof(e[0]), n,
	    engine_hashes, sizeof(engine_hashes) / sizeof(engine_hashes[0]),
	    NULL, 0, now, 0, &got);
}

/* The same; returns the outcome. A reset gives the worker another id. */
static inline uint32_t
batch(uint64_t seq, uint64_t digest, const char *text, int64_t now)
{
	ck_assert_int_eq(batch_error(seq, digest, text, now), KVR_OK);
	region_sound();
	id[0] = got.worker;
	ck_assert_uint_eq(worker_stats(0).events_next, got.next);
	ck_assert_uint_eq(worker_stats(0).events_state, got.state);
	return got.outcome;
}

#endif
