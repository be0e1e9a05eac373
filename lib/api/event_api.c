/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_api.c - public calls on events of engines. event.c applies them.
 */
#include "alias.h"
#include "event.h"
#include "event_hash.h"
#include "event_piece.h"
#include "handle.h"
#include "hold.h"
#include "load.h"
#include "retain.h"
#include "txn.h"

/* Without the lock: will the worker's blocks be known by their names? */
static bool
names_wanted(const struct kvr *k, uint64_t worker)
{
	uint32_t slot;

	return worker_slot(k, worker, &slot) && event_wanted(k, slot);
}

/* The caller's batch, checked, and its sums. */
static int
batch_get(const struct kvr *k, uint64_t worker,
    const struct kvr_event_batch *from, struct event_batch *b,
    struct event_sum *sum)
{
	int error;

	if (b->n > UINT32_MAX || b->n_hashes > UINT32_MAX ||
	    b->n_tokens > UINT32_MAX)
		return KVR_EINVAL;
	if (b->n > 0 && (b->events == NULL || b->element < sizeof(size_t)))
		return KVR_EINVAL;
	error = struct_get(&b->head, sizeof(b->head), from);
	if (error != KVR_OK)
		return error;
	if (b->head.seq == UINT64_MAX || b->head.reserved != 0 ||
	    (b->head.flags &
	    ~(uint32_t)(KVR_BATCH_PAST | KVR_BATCH_FULL)) != 0)
		return KVR_EINVAL;
	error = event_sum(b, sum);
	if (error != KVR_OK || !names_wanted(k, worker))
		return error;
	error = event_cut(k, b);
	if (error == KVR_OK)
		error = event_hash(k, b);
	if (error != KVR_OK)
		event_cut_free(b);
	return error;
}

/*
 * Is there room for the names of its first piece, if it may add any? If its
 * worker's last ones end with it, they end before, as they may have to be
 * reclaimed for it.
 */
static bool
has_room(struct kvr *k, uint32_t slot, const struct event_batch *b,
    const struct event_sum *sum, uint32_t outcome)
{
	uint64_t aliases = event_piece(b, 0).n_aliases;
	bool tracks = event_tracks(k, slot);

	if (event_empties(k, slot, b, sum, outcome)) {
		if (tracks && !alias_at_hand(k, aliases))
			retain_degrade(k, slot);
	} else if (outcome != KVR_EVENTS_APPLIED || !tracks) {
		return true;
	}
	return alias_reclaim(k, aliases);
}

static void
batch_free(struct event_batch *b)
{
	event_hash_free(b);
	event_cut_free(b);
}

/*
 * Applies all of it, or the first piece. Sets *taken: it counts. If a part of
 * an unknown batch of this number was applied, names may be counted twice, or
 * be missing.
 */
static int
take_batch(struct kvr *k, uint32_t *slot, const struct event_batch *b,
    const struct event_sum *sum, int64_t now, uint32_t *outcome, bool *taken)
{
	const struct stream *s = stream_at(k, slot_at(k, *slot)->name);
	struct stream before;
	int error;

	*outcome = event_outcome(s, b, sum);
	if (*outcome == KVR_EVENTS_APPLIED && s->pieces > 0)
		retain_degrade(k, *slot);
	before = *s;
	if (!has_room(k, *slot, b, sum, *outcome))
		return KVR_EBUSY;
	if (event_resets(b, *outcome)) {
		error = handle_reset(k, *slot, slot);
		if (error != KVR_OK)
			return error;
	} else if (event_empties(k, *slot, b, sum, *outcome)) {
		if (!hold_nothing(k, *slot))
			return KVR_EBUSY;
		if (event_clears(b, sum, *outcome))
			handle_reset_note(k, *slot);
	}
	*taken = event_take(k, *slot, &before, b, sum, *outcome, now);
	return KVR_OK;
}

/* The next piece of a batch that was begun. */
static int
go_on(struct kvr *k, uint32_t slot, const struct event_batch *b, int64_t now)
{
	uint64_t at = stream_at(k, slot_at(k, slot)->name)->pieces;

	if (event_tracks(k, slot) &&
	    !alias_reclaim(k, event_piece(b, at).n_aliases))
		return KVR_EBUSY;
	event_go_on(k, slot, b, now);
	return KVR_OK;
}

/*
 * Applies it, or a piece of it, within a transaction. again: not the first of
 * the call. Sets *more: there are more pieces.
 */
static int
apply_batch(struct kvr *k, uint64_t worker, const struct event_batch *b,
    const struct event_sum *sum, int64_t now, bool again, bool *more,
    struct kvr_event_result *r)
{
	uint32_t slot, outcome = KVR_EVENTS_APPLIED;
	const struct stream *s;
	bool taken = true;
	uint64_t orphans, unseen;
	int error = KVR_OK;

	if (!worker_slot(k, worker, &slot))
		return KVR_EWORKER;
	s = stream_at(k, slot_at(k, slot)->name);
	orphans = s->orphans;
	unseen = s->unseen;
	if (event_begun(s, b, again))
		error = go_on(k, slot, b, now);
	else
		error = take_batch(k, &slot, b, sum, now, &outcome, &taken);
	if (error != KVR_OK)
		return error;
	if (!again)
		r->outcome = outcome;
	if (taken) {
		r->stored = sum->all_stored;
		r->removed = sum->all_removed;
		r->refused = sum->refused;
		r->orphans += s->orphans - orphans;
		r->unseen += s->unseen - unseen;
	}
	r->worker = worker_id(k, slot);
	r->next = s->next;
	r->state = s->state;
	*more = s->pieces > 0 && s->next == b->head.seq;
	return KVR_OK;
}

/*
 * In as many transactions as it has pieces: others have the lock between. Once
 * the first is applied, which may have reset the worker, one that must wait for
 * aliases is tried again, until all aliases have been looked at.
 */
static int
apply_all(struct kvr *k, uint64_t worker, const struct event_batch *b,
    const struct event_sum *sum, int64_t now, uint32_t flags,
    struct kvr_event_result *r)
{
	uint64_t i = 0, waits = alias_rounds(k);
	bool more = true;
	struct txn c;
	int error = KVR_OK;

	while (error == KVR_OK && more) {
		error = txn_write_begin(k, &c, now, flags);
		if (error != KVR_OK)
			break;
		error = apply_batch(k, worker, b, sum, c.now, i > 0, &more, r);
		error = txn_write_end(k, &c, error);
		if (error == KVR_EBUSY && i > 0 && waits > 0) {
			waits--;
			error = KVR_OK;
			continue;
		}
		more = more && ++i < b->n_pieces;
		worker = r->worker;
		now = c.now; /* one that goes back is counted once */
	}
	return error;
}

int
kvr_events_apply(struct kvr *k, uint64_t worker,
    const struct kvr_event_batch *batch, const struct kvr_event *events,
    size_t element, size_t n, const uint64_t *hashes, size_t n_hashes,
    const uint32_t *tokens, size_t n_tokens, int64_t now, uint32_t flags,
    struct kvr_event_result *out)
{
	struct event_batch b = { .events = events, .element = element, .n = n,
		.hashes = hashes, .n_hashes = n_hashes,
		.tokens = tokens, .n_tokens = n_tokens };
	struct kvr_event_result r;
	struct event_sum sum;
	int error;

	if (k == NULL || batch == NULL || (hashes == NULL && n_hashes > 0) ||
	    (tokens == NULL && n_tokens > 0) ||
	    (out != NULL && !struct_has_size(out->size)))
		return KVR_EINVAL;
	error = batch_get(k, worker, batch, &b, &sum);
	if (error != KVR_OK)
		return error;
	memset(&r, 0, sizeof(r));
	error = apply_all(k, worker, &b, &sum, now, flags, &r);
	batch_free(&b);
	if (r.worker != 0 && out != NULL) /* some piece was applied */
		struct_put(out, out->size, &r, sizeof(r));
	return error;
}

int
kvr_events_lost(struct kvr *k, uint64_t worker, uint64_t next)
{
	struct txn c;
	uint32_t slot;
	int error;

	if (k == NULL || next == UINT64_MAX)
		return KVR_EINVAL;
	error = txn_write_begin(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, worker, &slot))
		event_lost(k, slot, next);
	else
		error = KVR_EWORKER;
	return txn_write_end(k, NULL, error);
}

int
kvr_events_until(struct kvr *k, uint64_t worker, int64_t until)
{
	struct txn c;
	uint32_t slot;
	int error;

	if (k == NULL || until < 0 || until > CLOCK_MAX)
		return KVR_EINVAL;
	error = txn_write_begin(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	if (!worker_slot(k, worker, &slot))
		error = KVR_EWORKER;
	else if (stream_at(k, slot_at(k, slot)->name)->state != KVR_EVENTS_OFF)
		event_until(k, slot_at(k, slot)->name, until);
	return txn_write_end(k, NULL, error);
}

int
kvr_events_off(struct kvr *k, uint64_t worker)
{
	struct txn c;
	uint32_t slot;
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	error = txn_write_begin(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, worker, &slot))
		event_off(k, slot);
	else
		error = KVR_EWORKER;
	return txn_write_end(k, NULL, error);
}
