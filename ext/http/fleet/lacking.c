/* SPDX-License-Identifier: BSD-2-Clause */
/* lacking.c - see lacking.h. */
#include "lacking.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "shared.h"

enum { PLACES = 16 };           /* of the table that are tried */

/* The record of a rank; NULL: it has no record, or there is no place for it. */
static struct rank_place *
rank_place(struct fleet *f, uint64_t key, uint32_t rank, bool make)
{
	uint64_t tag = ((key + rank) * UINT64_C(0x9e3779b97f4a7c15)) | 1, none;
	struct rank_place *place;
	size_t i;

	for (i = 0; i < PLACES; i++) {
		place = &f->shared->ranks[((tag >> 20) + i) % SHARED_RANKS];
		none = 0;
		if (place->tag == 0 && (!make ||
		    atomic_compare_exchange_strong(&place->tag, &none, tag)))
			return make ? place : NULL;
		if (place->tag == tag)
			return place;
	}
	return NULL;
}

static bool
has_served(struct fleet *f, uint64_t key, uint32_t rank)
{
	const struct rank_place *place = rank_place(f, key, rank, false);

	return place != NULL && place->served > 0;
}

/* False: it is in another state, or the lock is held: another time. */
static bool
state_set(struct fleet *f, const struct known *known, uint32_t rank,
    uint32_t from, uint32_t to)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint64_t id;

	if (kvr_worker_find(f->kvr, known->name, known->name_len, rank, &id) !=
	    KVR_OK || kvr_worker_get(f->kvr, id, &facts) != KVR_OK ||
	    facts.state != from)
		return false;
	facts.state = to;
	return kvr_worker_set(f->kvr, id, &facts) == KVR_OK;
}

/* Drains it; true: that was done. */
static bool
rank_drain(struct fleet *f, const struct known *known, uint32_t rank)
{
	struct rank_place *place = rank_place(f, known->key, rank, true);
	bool done = state_set(f, known, rank, KVR_STATE_UP,
	    KVR_STATE_DRAINING);

	if (done && place != NULL)
		place->lacking = 1;
	return done;
}

/* Has it up again, if it was drained here; true: that was done. */
static bool
rank_restore(struct fleet *f, const struct known *known, uint32_t rank)
{
	struct rank_place *place = rank_place(f, known->key, rank, false);

	if (place == NULL || place->lacking == 0 ||
	    !state_set(f, known, rank, KVR_STATE_DRAINING, KVR_STATE_UP))
		return false;
	place->lacking = 0;
	return true;
}

/* Ranks from `n` on are lacking; returns how many were drained. */
static uint32_t
ranks_drain(struct fleet *f, const struct known *known, uint32_t n)
{
	uint32_t rank, done = 0;

	for (rank = n; rank < known->ranks; rank++)
		done += rank_drain(f, known, rank);
	if (done > 0)
		f->shared->epoch++;
	return done;
}

void
lacking_found(struct fleet *f, size_t i, uint32_t n, void *log)
{
	const struct known *known = &f->known[i];
	uint32_t rank, restored = 0;

	/* An engine that publishes a single rank may leave out the others. */
	if (n < 2 || known->ranks < 2)
		return;
	if (ranks_drain(f, known, n) > 0)
		fleet_log(f, log, FLEET_WARN, "%.*s has %" PRIu32 " data-"
		    "parallel ranks, and ranks=%" PRIu32 " is configured: "
		    "ranks from %" PRIu32 " on are drained",
		    (int)known->name_len, known->name, n, known->ranks, n);
	for (rank = 0; rank < n && rank < known->ranks; rank++)
		restored += rank_restore(f, known, rank);
	if (restored == 0)
		return;
	f->shared->epoch++;
	fleet_log(f, log, FLEET_NOTICE, "%.*s has %" PRIu32 " data-parallel "
	    "ranks now: %" PRIu32 " of them are up again",
	    (int)known->name_len, known->name, n, restored);
}

/* ------------------------------------------------------------ refusals --- */

/* Has a rank from this one on accepted a request? */
static bool
any_served(struct fleet *f, const struct known *known, uint32_t from)
{
	for (; from < known->ranks; from++)
		if (has_served(f, known->key, from))
			return true;
	return false;
}

bool
lacking_answered(struct fleet *f, size_t i, uint32_t rank, unsigned status)
{
	struct rank_place *place = rank_place(f, f->known[i].key, rank, true);

	if (place == NULL)
		return false;
	if (status >= 200 && status < 300 && place->served == 0)
		place->served = 1;
	return rank > 0 && (status == 400 || status == 422) &&
	    place->served == 0;
}

void
lacking_proved(struct fleet *f, size_t i, uint32_t rank, void *log)
{
	const struct known *known = &f->known[i];

	if (any_served(f, known, rank) || ranks_drain(f, known, rank) == 0)
		return;
	fleet_log(f, log, FLEET_WARN, "%.*s refuses requests to its data-"
	    "parallel rank %" PRIu32 ", and ranks=%" PRIu32 " is configured: "
	    "ranks from %" PRIu32 " on are drained; give ranks=%" PRIu32 " if "
	    "it has no more, or order \"up\" if it has", (int)known->name_len,
	    known->name, rank, known->ranks, rank, rank);
}

void
lacking_forget(struct fleet *f, uint64_t key, uint32_t rank)
{
	struct rank_place *place = rank_place(f, key, rank, false);

	if (place != NULL)
		place->lacking = 0;
}
