/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apply_loads.c - the loads that peers report for each worker.
 *
 * A load counts whole with --loads, and if its peer is late: no leases of it
 * are open here. The loads of other peers count in part:
 *
 * Leases that a peer lists, and that were not seen to open - its RESERVE was
 * lost, or was before this start, or came late - are not open here, but run.
 * They count by the peer's loads: the load of a worker counts by the share of
 * its requests that are not open here, as long as the unseen leases go on.
 *
 *	the peer    b: 4 requests, 9000 tokens
 *	open here   b: 1
 *	not seen    3, and 1 has ended since the load came
 *	counts      the lease, and 9000 * 3/4 * 2/3 = 4500 tokens
 */
#include "apply_in.h"

#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
/* Loads that are later than this are worse than none. */
#define LOAD_EXCESS_MAX (500 * MS)
#define LOAD_LIFE (3000 * MS)

/* The share of a peer's load on a worker that is not open here as leases. */
static double
part(const struct apply *a, const struct peer *p, const struct said *said)
{
	double requests = (double)said->load.requests;

	if (p->state == APPLY_LATE)
		return p->excess <= LOAD_EXCESS_MAX ? 1 : 0;
	if (p->state != APPLY_FRESH)
		return 0;
	if (a->o.loads)
		return 1;
	if (p->unseen == 0 || p->unseen_then == 0 || requests == 0)
		return 0;
	requests = (double)said->unseen / requests;
	return p->unseen >= p->unseen_then ? requests :
	    requests * (double)p->unseen / (double)p->unseen_then;
}

static uint64_t
of(uint64_t value, double part_of_it)
{
	return (uint64_t)((double)value * part_of_it + 0.5);
}

static void
sum(struct apply *a, const struct peer *p, int64_t now)
{
	const struct roster_worker *w = a->o.roster->workers;
	const struct said *said = p->loads;
	double counts;
	size_t i;

	if (said == NULL)
		return;
	for (i = 0; i < a->o.roster->places; i++, w++, said++) {
		if (w->id == 0 || said->made != w->made ||
		    now - said->at >= LOAD_LIFE)
			continue;
		counts = part(a, p, said);
		a->sums[i].requests += of(said->load.requests, counts);
		a->sums[i].prefill_tokens += of(said->load.prefill_tokens,
		    counts);
		a->sums[i].active_blocks += of(said->load.active_blocks,
		    counts);
	}
}

/* Loads follow the list of open leases: how many are open here now? */
static void
compare(struct apply *a, struct peer *p)
{
	const struct roster_worker *w;
	struct lease *l, *next;
	size_t i;

	p->unseen_then = p->unseen;
	for (i = 0; i < a->o.roster->places; i++)
		p->loads[i].open = 0;
	HASH_ITER(hh, p->leases, l, next)
		if (l->id != 0 && (w = roster_id(a->o.roster, l->worker)) !=
		    NULL)
			p->loads[roster_place(a->o.roster, w)].open++;
}

void
apply_load(struct apply *a, const struct moment *m,
    const struct frame_record *r)
{
	struct peer *p = m->peer;
	const struct roster_worker *w = apply_worker(a, p, r->worker);
	struct said *said;

	if (m->past || m->number < p->load)
		return;
	if (p->excess > LOAD_EXCESS_MAX) {
		a->counts.late++;
		return;
	}
	if (w == NULL) {
		a->counts.unknown_worker++;
		return;
	}
	if (p->loads == NULL)
		p->loads = calloc(a->o.roster->places, sizeof(*p->loads));
	if (p->loads == NULL) {
		a->counts.no_room++;
		return;
	}
	if (p->load != m->number)
		compare(a, p);
	p->load = m->number;
	said = &p->loads[roster_place(a->o.roster, w)];
	said->at = m->now;
	said->made = w->made;
	said->load.requests = r->requests;
	said->load.prefill_tokens = r->prefill_tokens;
	said->load.active_blocks = r->active_blocks;
	said->unseen = r->requests > said->open ? r->requests - said->open : 0;
	a->loads_changed = true;
	a->counts.records++;
}

/*
 * Loads that are no longer heard of end too, so all are summed anew. `all` of
 * them are set now and then: the router ends them itself when it takes this
 * daemon for dead, which may only have been stopped.
 */
void
apply_loads_set(struct apply *a, bool all, int64_t now)
{
	struct roster_worker *w = a->o.roster->workers;
	struct kvr_load *load = a->sums;
	size_t i;

	memset(a->sums, 0, a->o.roster->places * sizeof(*a->sums));
	for (i = 0; i < APPLY_PEERS_MAX; i++)
		if (a->peers[i] != NULL)
			sum(a, a->peers[i], now);
	for (i = 0; i < a->o.roster->places; i++, w++, load++) {
		if (w->id == 0 || (!all && load->requests == w->load.requests &&
		    load->prefill_tokens == w->load.prefill_tokens &&
		    load->active_blocks == w->load.active_blocks))
			continue;
		load->size = sizeof(*load);
		if (kvr_worker_set_load(a->k, w->id, ROSTER_SOURCE, load) ==
		    KVR_OK)
			w->load = *load;
		else
			a->counts.refused++;
	}
	a->load_at = now;
	a->loads_changed = false;
}
