/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_hash.c - hashes stored blocks of events, before the lock is taken.
 *
 * A local hash depends on a block's contents alone, so all of a batch are
 * made at once, one event after another. The chain needs the hash of the block
 * before, which the index has: that is hold.c, an event at a time.
 *
 *	event 0: 3 blocks, event 1: no contents, event 2: 2 blocks
 *
 *	local      | l0 l1 l2 | l0 l1 |
 *	sequence   | of the block before | s0 s1 s2 |    as many as the most
 */
#include "event_hash.h"

#include "hash.h"
#include "sat.h"

#include <stdlib.h>

uint64_t
event_blocks_given(const struct kvr *k, const struct kvr_event *e)
{
	uint32_t each = event_each(k, e->block_tokens);

	if (e->kind != KVR_EVENT_STORED || each == 0 || e->tokens == 0 ||
	    e->tier >= TIERS)
		return 0;
	if ((e->flags & KVR_EVENT_LOCALS) != 0)
		return k->rule.kind == KVR_HASH_DYNAMO && each == 1 &&
		    e->tokens == e->hashes ? e->hashes : 0;
	return e->tokens / e->block_tokens == e->hashes &&
	    e->tokens % e->block_tokens == 0 ? e->hashes * each : 0;
}

static int
hash_one(const struct kvr *k, const struct event_batch *b,
    const struct kvr_event *e, uint64_t blocks, uint64_t *local)
{
	struct hash_chain chain;
	struct kvr_scope scope;
	int error = hash_scope_get(&k->rule, &e->scope, &scope);

	if (error != KVR_OK || blocks == 0)
		return error;
	if ((e->flags & KVR_EVENT_LOCALS) != 0) {
		memcpy(local, b->hashes + e->tokens_at,
		    (size_t)blocks * sizeof(*local));
		return KVR_OK;
	}
	(void)hash_start(&k->rule, &scope, &chain);
	hash_token_blocks(&k->rule, &chain, b->tokens + e->tokens_at,
	    (size_t)blocks, local);
	return KVR_OK;
}

uint64_t
event_aliases(const struct kvr *k, const struct kvr_event *e)
{
	return event_blocks_given(k, e) +
	    ((e->flags & KVR_EVENT_PARENT) == 0); /* a root */
}

/* How much room the events take. */
static int
measure_room(const struct kvr *k, struct event_batch *b)
{
	struct kvr_event e;
	uint64_t blocks;
	size_t i;
	int error;

	b->n_local = b->n_sequence = b->n_aliases = 0;
	for (i = 0; i < b->n; i++) {
		if ((error = event_get(b, i, &e)) != KVR_OK)
			return error;
		blocks = event_blocks_given(k, &e);
		b->n_local += blocks;
		b->n_aliases += event_aliases(k, &e);
		b->n_sequence = sat_most(b->n_sequence, blocks);
		if (b->n_local > RECORD_MAX)
			return KVR_EINVAL;
	}
	return KVR_OK;
}

static int
make_room(struct event_batch *b)
{
	b->local = calloc((size_t)(b->n_local + b->n_sequence + 1),
	    sizeof(*b->local));
	if (b->local == NULL)
		return KVR_ENOMEM;
	b->sequence = b->local + b->n_local;
	return KVR_OK;
}

int
event_hash(const struct kvr *k, struct event_batch *b)
{
	uint64_t blocks, at = 0;
	struct kvr_event e;
	size_t i;
	int error = measure_room(k, b);

	if (error == KVR_OK)
		error = make_room(b);
	if (error != KVR_OK)
		return error;
	for (i = 0; i < b->n && error == KVR_OK; i++, at += blocks) {
		error = event_get(b, i, &e);
		/* else the caller changes it meanwhile: GCOVR_EXCL_BR_START */
		blocks = error == KVR_OK ? event_blocks_given(k, &e) : 0;
		if (blocks > b->n_sequence || blocks > b->n_local - at)
			error = KVR_EINVAL;
		/* GCOVR_EXCL_BR_STOP */
		if (error == KVR_OK)
			error = hash_one(k, b, &e, blocks, b->local + at);
	}
	if (error != KVR_OK)
		event_hash_free(b);
	return error;
}

void
event_hash_free(struct event_batch *b)
{
	free(b->local);
	b->local = NULL;
}
