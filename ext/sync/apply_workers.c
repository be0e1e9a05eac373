/* SPDX-License-Identifier: BSD-2-Clause */
/* apply_workers.c - news from peers about workers: names, epochs, orders. */
#include "apply_in.h"

#include <string.h>

#define MS INT64_C(1000000)
/*
 * Until all peers have been heard: one that has just begun, too, counts epochs
 * from its start, and others that are larger are no news of a reset then.
 */
#define SETTLE (3000 * MS)

bool
apply_done(struct apply *a, int error)
{
	if (error == KVR_OK)
		a->counts.records++;
	else if (error == KVR_EWORKER)
		a->counts.unknown_worker++;
	else if (error == KVR_ELEASE)
		a->counts.unknown_lease++;
	else if (error == KVR_ENOMEM)
		a->counts.no_room++;
	else if (error == KVR_EAGAIN)
		a->counts.unjoined++;
	else
		a->counts.refused++;
	return error == KVR_OK;
}

struct roster_worker *
apply_worker(const struct apply *a, const struct peer *p, uint64_t index)
{
	const struct known *known;
	struct roster_worker *w;

	if (index >= KVR_WORKERS_MAX || p->known[index].place == 0)
		return NULL;
	known = &p->known[index];
	w = &a->o.roster->workers[known->place - 1];
	return w->id != 0 && w->made == known->made ? w : NULL;
}

/*
 * The content that the region had when the daemon began, and the requests that
 * run now, are later than a reset of the past. Only prefixes that were replayed
 * before it may go.
 */
static bool
may_reset(const struct apply *a, const struct moment *m,
    const struct roster_worker *w, uint64_t kind)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };

	if (!m->past)
		return kind == FRAME_RESET || m->now - a->met_at >= SETTLE;
	return a->empty && kvr_worker_stats_get(a->k, w->id,
	    &stats) == KVR_OK && stats.requests == 0;
}

/* A peer is at this epoch. false: it is behind. */
static bool
agree(struct apply *a, const struct moment *m, struct roster_worker *w,
    const struct frame_record *r)
{
	return roster_agree(a->o.roster, w, (uint32_t)r->epoch,
	    r->epoch > w->epoch && may_reset(a, m, w, r->kind));
}

struct roster_worker *
apply_agreed(struct apply *a, const struct moment *m,
    const struct frame_record *r)
{
	struct roster_worker *w = apply_worker(a, m->peer, r->worker);

	if (w == NULL)
		a->counts.unknown_worker++;
	else if (!agree(a, m, w, r)) {
		a->counts.old_epoch++;
		return NULL;
	}
	return w;
}

static bool
orderly(uint64_t state)
{
	return state == KVR_STATE_UP || state == KVR_STATE_DRAINING;
}

/* A peer's worker has another state than before: an order was given there. */
static void
order(struct apply *a, struct roster_worker *w, uint32_t state)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	/* One of this router that peers do not know yet is newer. */
	if (kvr_worker_get(a->k, w->id, &facts) != KVR_OK ||
	    !orderly(facts.state) || facts.state == state ||
	    facts.state != w->state)
		return;
	facts.state = state;
	if (apply_done(a, kvr_worker_set(a->k, w->id, &facts)))
		w->state = state;
}

void
apply_known(struct apply *a, const struct moment *m,
    const struct frame_record *r)
{
	struct known *known;
	struct roster_worker *w;

	if (m->number < m->peer->hello || r->worker >= KVR_WORKERS_MAX)
		return;
	known = &m->peer->known[r->worker];
	w = roster_find(a->o.roster, r->text, r->length, (uint32_t)r->rank);
	if (w == NULL) {
		memset(known, 0, sizeof(*known));
		a->counts.unknown_worker++;
		return;
	}
	if (a->o.orders && !m->past && known->place != 0 &&
	    known->made == w->made && known->state != r->state &&
	    orderly(known->state) && orderly(r->state))
		order(a, w, (uint32_t)r->state);
	known->place = (uint32_t)roster_place(a->o.roster, w) + 1;
	known->made = w->made;
	known->state = (uint32_t)r->state;
	(void)agree(a, m, w, r);
}
