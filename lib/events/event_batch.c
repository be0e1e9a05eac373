/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_batch.c - reads a caller's batch: its events, their sums, and its
 * outcome by its number.
 */
#include "event_batch.h"

#include "sat.h"

/* ---------------------------------------------------------- the events --- */

int
kvr_event_init(struct kvr_event *event, size_t size)
{
	struct kvr_event d;

	memset(&d, 0, sizeof(d));
	(void)kvr_scope_init(&d.scope, sizeof(d.scope));
	return struct_init(event, size, &d, sizeof(d));
}

static bool
is_within(uint64_t at, uint64_t n, uint64_t all)
{
	return at <= all && n <= all - at;
}

int
event_get(const struct event_batch *b, size_t i, struct kvr_event *e)
{
	const char *from = (const char *)b->events + i * b->element;
	size_t size;
	int error;

	memcpy(&size, from, sizeof(size));
	if (size > b->element)
		return KVR_EINVAL;
	(void)kvr_event_init(e, sizeof(*e));
	error = struct_get(e, sizeof(*e), from);
	if (error != KVR_OK)
		return error;
	return is_within(e->hashes_at, e->hashes, b->n_hashes) &&
	    is_within(e->tokens_at, e->tokens,
	    (e->flags & KVR_EVENT_LOCALS) != 0 ? b->n_hashes : b->n_tokens)
	    ? KVR_OK : KVR_EINVAL;
}

size_t
event_first_valid(const struct event_batch *b)
{
	struct kvr_event e;
	size_t i;

	for (i = b->n; i > 0; i--)
		if (event_get(b, i - 1, &e) == KVR_OK &&
		    (e.kind == KVR_EVENT_CLEARED ||
		    e.kind == KVR_EVENT_RESTARTED))
			break;
	return i;
}

bool
event_goes_on(const struct event_batch *b, size_t i)
{
	struct kvr_event e, next;

	return i + 1 < b->n + b->after && event_get(b, i, &e) == KVR_OK &&
	    event_get(b, i + 1, &next) == KVR_OK && e.hashes > 0 &&
	    next.kind == KVR_EVENT_STORED &&
	    (next.flags & KVR_EVENT_PARENT) != 0 &&
	    next.parent == b->hashes[e.hashes_at + e.hashes - 1];
}

/* ------------------------------------------------------------ the sums --- */

/* All before it is void. */
static void
sum_drop(struct event_sum *sum)
{
	memset(sum->stored, 0, sizeof(sum->stored));
	memset(sum->removed, 0, sizeof(sum->removed));
	memset(sum->peak, 0, sizeof(sum->peak));
	sum->block_tokens = 0;
	sum->uneven = false;
}

static void
sum_stored(struct event_sum *sum, const struct kvr_event *e)
{
	if (e->block_tokens > BLOCK_BYTES_MAX || (e->block_tokens != 0 &&
	    sum->block_tokens != 0 && e->block_tokens != sum->block_tokens)) {
		sum->uneven = true;
		sum->refused++;
		return;
	}
	if (e->block_tokens != 0)
		sum->block_tokens = e->block_tokens;
	sum->stored[e->tier] = sat_add(sum->stored[e->tier], e->hashes);
	sum->peak[e->tier] = sat_most(sum->peak[e->tier],
	    sat_sub(sum->stored[e->tier], sum->removed[e->tier]));
	sum->all_stored = sat_add(sum->all_stored, e->hashes);
	if (e->tier == KVR_TIER_GPU)
		sum->volume = sat_add(sum->volume, e->hashes);
}

static void
sum_event(struct event_sum *sum, const struct kvr_event *e)
{
	switch (e->tier < TIERS ? e->kind : 0) {
	case KVR_EVENT_STORED:
		sum_stored(sum, e);
		break;
	case KVR_EVENT_REMOVED:
		sum->removed[e->tier] = sat_add(sum->removed[e->tier],
		    e->hashes);
		sum->all_removed = sat_add(sum->all_removed, e->hashes);
		break;
	case KVR_EVENT_CLEARED:
		sum->cleared++;
		sum_drop(sum);
		break;
	case KVR_EVENT_RESTARTED:
		memset(sum, 0, sizeof(*sum));
		sum->restarted = 1;
		break;
	default:
		sum->refused++;
	}
}

int
event_sum(const struct event_batch *b, struct event_sum *sum)
{
	struct kvr_event e;
	size_t i;
	int error;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < b->n; i++) {
		error = event_get(b, i, &e);
		if (error != KVR_OK)
			return error;
		sum_event(sum, &e);
	}
	sum->volume = sat_least(sum->volume, BATCH_MAX);
	return KVR_OK;
}

/* --------------------------------------------------------- the outcome --- */

/* Was another batch of this number applied? If one has no digest: `unknown`. */
static uint32_t
compare_digests(uint64_t applied, uint64_t digest, uint32_t unknown)
{
	if (applied == 0 || digest == 0)
		return unknown;
	return applied == digest ? KVR_EVENTS_DUPLICATE : KVR_EVENTS_RESTARTED;
}

uint32_t
event_outcome(const struct stream *s, const struct event_batch *b,
    const struct event_sum *sum)
{
	uint64_t seq = b->head.seq;

	if (sum->restarted != 0)
		return KVR_EVENTS_RESTARTED;
	if (s->pieces > 0 && seq == s->next && compare_digests(s->begun,
	    b->head.digest, seq == 0 ? KVR_EVENTS_RESTARTED
	    : KVR_EVENTS_DUPLICATE) == KVR_EVENTS_RESTARTED)
		return KVR_EVENTS_RESTARTED; /* another one was begun */
	if (seq >= s->next)
		return seq == s->next ? KVR_EVENTS_APPLIED : KVR_EVENTS_GAP;
	if (seq == 0)
		return compare_digests(s->first, b->head.digest,
		    KVR_EVENTS_RESTARTED);
	if (seq == s->next - 1)
		return compare_digests(s->last, b->head.digest,
		    KVR_EVENTS_DUPLICATE);
	return KVR_EVENTS_DUPLICATE;
}

/* The same engine has dropped all just now. */
bool
event_clears(const struct event_batch *b, const struct event_sum *sum,
    uint32_t outcome)
{
	return outcome == KVR_EVENTS_APPLIED && sum->cleared != 0 &&
	    (b->head.flags & KVR_BATCH_PAST) == 0;
}

/* It is another engine, maybe with another cache. */
bool
event_resets(const struct event_batch *b, uint32_t outcome)
{
	return outcome == KVR_EVENTS_RESTARTED &&
	    (b->head.flags & KVR_BATCH_PAST) == 0;
}

bool
event_empties(const struct kvr *k, uint32_t slot, const struct event_batch *b,
    const struct event_sum *sum, uint32_t outcome)
{
	bool begins = outcome == KVR_EVENTS_RESTARTED ||
	    (outcome == KVR_EVENTS_APPLIED &&
	    (b->head.seq == 0 || sum->cleared != 0));

	return (begins && event_wanted(k, slot)) ||
	    event_clears(b, sum, outcome);
}

uint32_t
event_each(const struct kvr *k, uint32_t tokens)
{
	return tokens % k->rule.block_size == 0 ? tokens / k->rule.block_size
	    : 0;
}

bool
event_same_copies(struct kvr *k, uint32_t slot, const struct event_batch *b)
{
	struct stream *t = stream_at(k, slot_at(k, slot)->name);
	uint8_t copies = (b->head.flags & KVR_BATCH_FULL) != 0
	    ? COPIES_LISTED : COPIES_COUNTED;

	if (b->n == 0 || t->copies == copies)
		return true;
	if (t->copies != COPIES_NONE)
		return false;
	put_once(t->copies, copies);
	return true;
}
