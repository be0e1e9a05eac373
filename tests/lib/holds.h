/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * holds.h - workers with blocks that an engine reports, as text.
 *
 * An engine's block has `each` letters. Its name is a number that the test
 * gives to each prefix.
 */
#ifndef KVR_HOLDS_H
#define KVR_HOLDS_H

#include "worker.h"

#include "event.h"
#include "event_hash.h"
#include "inner.h"
#include "txn.h"

enum { TEXT = 512 };

static uint64_t seq;
static uint32_t each = 1, flags_of_batch;
static struct kvr_event_result got;
static uint64_t steps_before; /* that apply_uncut has taken already */

static inline void
holds_with(uint64_t blocks, uint64_t bytes, uint32_t block_size)
{
	struct kvr_options o = small_options();
	struct kvr_worker facts;

	if (k != NULL)
		region_end();
	o.event_blocks = blocks;
	o.region_bytes = bytes;
	o.block_size = block_size;
	region_of(&o);
	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	ck_assert_int_eq(kvr_worker_set(k, id[1], &facts), KVR_OK);
	seq = 0;
	each = block_size;
	flags_of_batch = 0;
}

/* The engine's name of a prefix. */
static inline uint64_t
name_of(const char *text, size_t n)
{
	uint64_t h = 14695981039346656037u;

	while (n-- > 0)
		h = (h ^ (unsigned char)*text++) * 1099511628211u;
	return h;
}

static inline int
apply_to(uint32_t w, const struct kvr_event *e, size_t n,
    const uint64_t *hashes, size_t n_hashes, const uint32_t *tokens,
    size_t n_tokens, int64_t now)
{
	struct kvr_event_batch b = { .size = sizeof(b), .seq = seq,
		.digest = seq + 1, .flags = flags_of_batch };
	int error;

	got = (struct kvr_event_result){ .size = sizeof(got) };
	error = kvr_events_apply(k, id[w], &b, e, sizeof(*e), n, hashes,
	    n_hashes, tokens, n_tokens, now, 0, &got);
	if (error == KVR_OK) {
		id[w] = got.worker;
		seq = got.next;
	}
	return error;
}

/* The same batch in one transaction, however long, as if it were a piece. */
static inline void
apply_uncut(uint32_t w, const struct kvr_event *e, size_t n,
    const uint64_t *hashes, size_t n_hashes, const uint32_t *tokens,
    size_t n_tokens)
{
	struct event_batch b = { .events = e, .element = sizeof(*e), .n = n,
		.hashes = hashes, .n_hashes = n_hashes, .tokens = tokens,
		.n_tokens = n_tokens };
	struct event_sum sum;
	struct stream before;
	uint32_t slot;
	struct txn c;

	b.head.seq = seq;
	b.head.digest = seq + 1;
	ck_assert_int_eq(event_sum(&b, &sum), KVR_OK);
	ck_assert_int_eq(event_hash(k, &b), KVR_OK);
	ck_assert_int_eq(txn_write_begin(k, &c, 1, 0), KVR_OK);
	add_once(k->region->counts.steps, steps_before);
	ck_assert(worker_slot(k, id[w], &slot));
	before = *stream_at(k, slot_at(k, slot)->name);
	ck_assert(event_take(k, slot, &before, &b, &sum,
	    event_outcome(&before, &b, &sum), 1));
	seq = stream_at(k, slot_at(k, slot)->name)->next;
	got.state = stream_at(k, slot_at(k, slot)->name)->state;
	ck_assert_int_eq(txn_write_end(k, &c, KVR_OK), KVR_OK);
	event_hash_free(&b);
}

/* One event about the blocks [from, to) of a text, of `each` letters. */
static inline void
event(uint32_t kind, uint32_t tier, const char *text, size_t from, size_t to)
{
	struct kvr_event e;
	uint64_t hashes[TEXT];
	uint32_t tokens[TEXT];
	size_t i, n = 0;

	(void)kvr_event_init(&e, sizeof(e));
	e.kind = kind;
	e.tier = tier;
	for (i = from; i < to; i++)
		hashes[i - from] = name_of(text, (i + 1) * each);
	for (i = from * each; i < to * each; i++)
		tokens[n++] = (unsigned char)text[i];
	e.hashes = to - from;
	if (kind == KVR_EVENT_STORED) {
		e.block_tokens = each;
		e.tokens = n;
		e.flags = from > 0 ? KVR_EVENT_PARENT : 0;
		e.parent = from > 0 ? name_of(text, from * each) : 0;
	}
	ck_assert_int_eq(apply_to(0, &e, 1, hashes, to - from, tokens, n, 1),
	    KVR_OK);
}

static inline void
stored(const char *text, size_t from)
{
	event(KVR_EVENT_STORED, KVR_TIER_GPU, text, from,
	    strlen(text) / each);
	region_sound();
}

static inline void
removed(const char *text, size_t from)
{
	event(KVR_EVENT_REMOVED, KVR_TIER_GPU, text, from,
	    strlen(text) / each);
	region_sound();
}

static inline void
cleared(void)
{
	struct kvr_event e;

	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_CLEARED;
	ck_assert_int_eq(apply_to(0, &e, 1, NULL, 0, NULL, 0, 1), KVR_OK);
	region_sound();
}

/* Blocks of the text that worker w is believed to have. */
static inline uint32_t
has(uint32_t w, const char *text)
{
	struct kvr_overlap found[WORKERS];
	size_t n, i;

	say(text);
	ck_assert_int_eq(kvr_match(k, p, 1, found, sizeof(found[0]), WORKERS,
	    &n), KVR_OK);
	for (i = 0; i < n; i++)
		if (found[i].worker == id[w])
			return found[i].blocks;
	return 0;
}

#endif
