/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apply_records.c - the effect of each record of a peer on the region.
 *
 *	            fresh       late, or replayed    stale
 *	RESERVE     a lease     a prefix             -
 *	OBSERVE     a prefix    a prefix             -
 *	COMMIT ...  its lease   -                    -
 *	BIND        yes         yes                  -
 *	OPEN        yes         unseen leases        -
 *	LOAD        see apply_loads.c                -
 *	HELLO, WORKER, SITE, RESET, CLEAR, CHAIN, TENANT,  always
 *	CHALLENGE, PROOF
 */
#include "apply_in.h"

#include <kvroute_replica.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
/* Leases as young as this may be missing from a list. */
#define LIST_MARGIN (500 * MS)
#define AFFINITY_TTL_MAX (INT64_C(30) * 86400 * 1000 * MS)

static int64_t
when(const struct moment *m, const struct frame_record *r)
{
	const int64_t t = m->at - (int64_t)r->age * 1000;

	return t < 0 ? 0 : t;
}

/* --------------------------------------------------------------- leases --- */

static struct lease *
lease_find(const struct peer *p, uint64_t number)
{
	struct lease *l;

	HASH_FIND(hh, p->leases, &number, sizeof(number), l);
	return l;
}

static void
lease_drop(struct apply *a, struct peer *p, struct lease *l)
{
	if (l->id == 0) {
		p->unseen--;
		a->counts.unseen--;
		a->loads_changed = true;
	} else {
		a->counts.leases--;
	}
	HASH_DEL(p->leases, l);
	free(l);
}

/* The place of a lease that is not open here yet, or NULL. */
static struct lease *
lease_make(struct apply *a, struct peer *p, uint64_t number, uint64_t most)
{
	struct lease *l = a->counts.leases + a->counts.unseen < most ?
	    calloc(1, sizeof(*l)) : NULL;

	if (l == NULL)
		return NULL;
	l->number = number;
	HASH_ADD(hh, p->leases, number, sizeof(l->number), l);
	if (l->hh.tbl == NULL) {
		free(l);
		return NULL;
	}
	p->unseen++;
	a->counts.unseen++;
	return l;
}

static void
lease_seen(struct apply *a, struct peer *p, struct lease *l, uint64_t id)
{
	l->id = id;
	p->unseen--;
	a->counts.unseen--;
	a->counts.leases++;
	a->loads_changed |= p->unseen_then != 0;
}

static void
end_drop(struct apply *a, struct peer *p, struct end *e)
{
	HASH_DEL(p->ends, e);
	free(e);
	a->ends--;
}

static void
end_keep(struct apply *a, const struct moment *m, const struct frame_record *r)
{
	struct peer *p = m->peer;
	struct end *e;

	HASH_FIND(hh, p->ends, &r->lease, sizeof(r->lease), e);
	if (e != NULL)
		return;
	e = a->ends < APPLY_ENDS_MAX ? calloc(1, sizeof(*e)) : NULL;
	if (e == NULL) {
		a->counts.no_room++;
		return;
	}
	e->number = r->lease;
	e->kind = r->kind;
	e->came = m->now;
	HASH_ADD(hh, p->ends, number, sizeof(e->number), e);
	if (e->hh.tbl == NULL) {
		free(e);
		a->counts.no_room++;
		return;
	}
	a->ends++;
}

void
apply_ends(struct apply *a, struct peer *p, int64_t until)
{
	while (p->ends != NULL && p->ends->came < until) {
		end_drop(a, p, p->ends);
		a->counts.unknown_lease++;
	}
}

bool
apply_reap(struct apply *a, struct peer *p, int64_t now)
{
	const uint64_t owner = ROSTER_PEERS << 32 | (uint32_t)p->origin;
	uint64_t cursor = 0;
	struct lease *l, *next;

	p->due |= p->leases != NULL;
	while (p->due) {
		if (kvr_owner_reap(a->k, owner, now, &cursor, NULL) != KVR_OK)
			return false;
		p->due = cursor != 0;
	}
	HASH_ITER(hh, p->leases, l, next)
		lease_drop(a, p, l);
	apply_ends(a, p, INT64_MAX);
	return true;
}

static struct stretch
stretch_of(const struct frame_record *r)
{
	return (struct stretch){ .parent = r->parent,
	    .first = (uint32_t)r->first_block, .n = r->length,
	    .hashes = r->numbers };
}

/* As kvr_prompt_set_sequences does, of the tenant that the root is of. */
static int
set_whole(struct apply *a, const struct stretch *s, uint64_t units)
{
	const int error = kvr_prompt_set_sequences(a->prompt, s->parent, 0,
	    s->hashes, s->n, units);

	if (error == KVR_OK && a->o.chains != NULL)
		roots_say(chains_roots(a->o.chains), s->parent, a->prompt);
	return error;
}

/* The end of a chain, with all that came before; KVR_EAGAIN: it did not. */
static int
set_joined(struct apply *a, const struct frame_record *r)
{
	struct stretch s;
	uint64_t *end;

	if (a->o.chains == NULL || !chains_get(a->o.chains, r->parent,
	    r->length, &s, &end) || s.n != r->first_block)
		return KVR_EAGAIN;
	if (r->length > 0)
		memcpy(end, r->numbers, r->length * sizeof(*end));
	s.n += r->length;
	return set_whole(a, &s, r->units);
}

static int
set_prompt(struct apply *a, const struct frame_record *r)
{
	const struct stretch s = stretch_of(r);

	if (a->o.chains != NULL)
		(void)chains_add(a->o.chains, &s);
	if (r->first_block > 0 && r->kind != FRAME_EXTEND)
		return set_joined(a, r);
	if (r->first_block == 0)
		return set_whole(a, &s, r->units);
	return kvr_prompt_set_sequences(a->prompt, r->parent,
	    (uint32_t)r->first_block, r->numbers, r->length, r->units);
}

/* Notes a prompt that was opened, or has ended meanwhile, as a prefix. */
static void
observe(struct apply *a, const struct moment *m, const struct frame_record *r)
{
	const struct roster_worker *w = apply_agreed(a, m, r);
	uint32_t flags = r->kind == FRAME_OBSERVE && !m->past
	    ? r->flags & KVR_ENDED : KVR_ENDED;
	int error;

	if (w == NULL || (r->flags & KVR_IGNORE_REUSE) != 0)
		return;
	error = set_prompt(a, r);
	if (error == KVR_OK)
		error = kvr_observe(a->k, a->prompt, w->id, when(m, r), flags,
		    NULL);
	if (apply_done(a, error) && m->past)
		a->counts.replayed++;
}

static int64_t
affinity_ttl(const struct frame_record *r)
{
	const int64_t ttl = (int64_t)r->affinity_ttl * MS;

	return ttl > AFFINITY_TTL_MAX ? AFFINITY_TTL_MAX : ttl;
}

/* `l` becomes one that is open here. */
static bool
open_on(struct apply *a, const struct moment *m, const struct frame_record *r,
    uint64_t worker_id, struct lease *l)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request request;
	int error = set_prompt(a, r);

	(void)kvr_request_init(&request, sizeof(request));
	request.owner = ROSTER_PEERS << 32 | (uint32_t)m->peer->origin;
	request.stage = (uint32_t)r->stage;
	request.flags = (uint32_t)r->flags & (KVR_IGNORE_PREFILL |
	    KVR_IGNORE_REUSE | KVR_NO_FIRST_TOKEN);
	request.overlap_blocks = (uint32_t)r->overlap_blocks;
	request.affinity = r->affinity;
	request.affinity_ttl = affinity_ttl(r);
	if (error == KVR_OK)
		error = kvr_lease_open_on(a->k, a->prompt, &request, worker_id,
		    when(m, r), &d);
	if (!apply_done(a, error))
		return false;
	if (d.lease == 0) {
		a->counts.no_room++;
		return false;
	}
	l->opened = m->sent - (int64_t)r->age * 1000;
	l->worker = worker_id;
	lease_seen(a, m->peer, l, d.lease);
	return true;
}

static void
take_reserve(struct apply *a, const struct moment *m,
    const struct frame_record *r)
{
	struct peer *p = m->peer;
	const struct roster_worker *w;
	struct lease *l;
	struct end *e;

	HASH_FIND(hh, p->ends, &r->lease, sizeof(r->lease), e);
	if (e != NULL) {
		if (e->kind == FRAME_FINISH)
			observe(a, m, r);
		end_drop(a, p, e);
		return;
	}
	l = lease_find(p, r->lease);
	if ((l != NULL && l->id != 0) || (w = apply_agreed(a, m, r)) == NULL)
		return;
	if (l == NULL)
		l = lease_make(a, p, r->lease, APPLY_LEASES_MAX);
	if (l == NULL)
		a->counts.no_room++;
	else if (!open_on(a, m, r, w->id, l))
		lease_drop(a, p, l);
}

static int
finish(struct apply *a, const struct lease *l, const struct frame_record *r,
    int64_t at)
{
	struct kvr_report report = { .size = sizeof(report) };

	report.kind = (uint32_t)r->report;
	report.flags = (uint32_t)r->report_flags;
	report.endpoint = (uint32_t)r->endpoint;
	report.prompt_tokens = r->prompt_tokens;
	report.cached_tokens = r->cached_tokens;
	report.completion_tokens = r->completion_tokens;
	return kvr_lease_finish(a->k, l->id, &report, at, 0);
}

/*
 * Is a lease gone after a call that ends it? Otherwise the region was busy: the
 * lease is kept, and the next list, which does not have it, ends it.
 */
static bool
gone(int error)
{
	return error == KVR_OK || error == KVR_ELEASE;
}

/* A record about an open lease. */
static int
change(struct apply *a, struct lease *l, const struct frame_record *r,
    int64_t at)
{
	int error;

	switch (r->kind) {
	case FRAME_COMMIT:
		error = kvr_lease_commit(a->k, l->id, at, 0);
		l->committed |= error == KVR_OK;
		return error;
	case FRAME_FIRST:
		return kvr_lease_first_token(a->k, l->id, at, 0);
	case FRAME_OUTPUT:
		return kvr_lease_output(a->k, l->id, (uint32_t)r->blocks, at,
		    0);
	case FRAME_EXTEND:
		error = set_prompt(a, r);
		return error != KVR_OK ? error : kvr_lease_extend(a->k, l->id,
		    a->prompt, at, 0);
	case FRAME_ABORT:
		return kvr_lease_abort(a->k, l->id, at, 0);
	default:
		error = finish(a, l, r, at);
		/* The report is not valid; the lease has ended all the same. */
		return error == KVR_EINVAL ?
		    kvr_lease_finish(a->k, l->id, NULL, at, 0) : error;
	}
}

static void
take_change(struct apply *a, const struct moment *m,
    const struct frame_record *r)
{
	const bool ends = r->kind == FRAME_FINISH || r->kind == FRAME_ABORT;
	struct lease *l = lease_find(m->peer, r->lease);
	int error;

	if (l == NULL && ends) {
		end_keep(a, m, r);
		return;
	}
	if (l == NULL || l->id == 0) {
		a->counts.unknown_lease++;
		if (ends)
			lease_drop(a, m->peer, l);
		return;
	}
	/* If its commit was lost, a later record shows that there was one. */
	if (!l->committed && !ends && r->kind != FRAME_COMMIT)
		l->committed = kvr_lease_commit(a->k, l->id, when(m, r), 0) ==
		    KVR_OK;
	error = change(a, l, r, when(m, r));
	(void)apply_done(a, error);
	if (gone(error) && (ends || error == KVR_ELEASE))
		lease_drop(a, m->peer, l);
}

static bool
listed(const struct frame_record *r, uint64_t number)
{
	size_t low = 0, high = r->length, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (r->numbers[middle] == number)
			return true;
		if (r->numbers[middle] < number)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* One that a list does not have. */
static void
not_listed(struct apply *a, const struct moment *m, struct lease *l)
{
	int error = KVR_OK;

	if (l->id != 0) {
		error = l->committed ?
		    kvr_lease_finish(a->k, l->id, NULL, m->now, 0) :
		    kvr_lease_abort(a->k, l->id, m->now, 0);
		if (error == KVR_OK)
			a->counts.repaired++;
	}
	if (gone(error))
		lease_drop(a, m->peer, l);
}

/* Listed leases that are not known. Room for those that come is left. */
static void
note_unseen(struct apply *a, struct peer *p, const struct frame_record *r)
{
	struct end *e;
	size_t i;

	for (i = 0; i < r->length; i++) {
		if (lease_find(p, r->numbers[i]) != NULL)
			continue;
		HASH_FIND(hh, p->ends, &r->numbers[i], sizeof(r->numbers[i]),
		    e);
		if (e == NULL && lease_make(a, p, r->numbers[i],
		    APPLY_LEASES_MAX / 2) == NULL) {
			a->counts.no_room++;
			return;
		}
	}
}

/*
 * Ends leases that ended unseen, and notes those that began unseen. Lists that
 * later frames have overtaken have leases that ended since.
 */
static void
take_open(struct apply *a, const struct moment *m,
    const struct frame_record *r)
{
	const int64_t until = m->sent - (int64_t)r->age * 1000 - LIST_MARGIN;
	const bool newest = m->number == m->peer->number;
	struct lease *l, *next;

	HASH_ITER(hh, m->peer->leases, l, next)
		if ((l->id == 0 ? newest : l->opened < until) &&
		    l->number >= r->least && l->number <= r->most &&
		    !listed(r, l->number))
			not_listed(a, m, l);
	if (newest)
		note_unseen(a, m->peer, r);
	a->counts.records++;
}

/* The peer is late: all its leases count by its loads. */
static void
take_late(struct apply *a, const struct moment *m,
    const struct frame_record *r)
{
	struct lease *l = r->kind == FRAME_FINISH || r->kind == FRAME_ABORT ?
	    lease_find(m->peer, r->lease) : NULL;

	if (l != NULL)
		lease_drop(a, m->peer, l);
	a->counts.late++;
}

/* ------------------------------------------------------------- dispatch --- */

static void
take_hello(const struct moment *m, const struct frame_record *r)
{
	struct peer *p = m->peer;

	if (m->number < p->hello)
		return;
	p->hello = m->number;
	p->policy = r->policy;
	p->host_len = r->length < APPLY_HOST_MAX ? r->length : APPLY_HOST_MAX;
	memcpy(p->host, r->text, p->host_len);
}

static void
take_bind(struct apply *a, const struct moment *m,
    const struct frame_record *r)
{
	const struct roster_worker *w = apply_agreed(a, m, r);
	int error;

	if (w == NULL)
		return;
	error = kvr_affinity_bind(a->k, r->affinity, w->id, affinity_ttl(r),
	    when(m, r), 0);
	/* Without a table sessions are not for this region. */
	if (error != KVR_ESTATE)
		(void)apply_done(a, error);
}

void
apply_set_state(struct apply *a, struct peer *p, enum apply_state state,
    int64_t now)
{
	if (p->state == state)
		return;
	if (p->state == APPLY_FRESH)
		(void)apply_reap(a, p, now);
	p->state = state;
	a->loads_changed = true;
}

/*
 * A daemon that begins anew has another origin, and so have the leases of its
 * router. The leases of the earlier one end now, not when it has been silent
 * for long, or they would count twice. Both have one clock, so the later frame
 * is the later daemon's, in whatever order they come.
 */
static void
take_site(struct apply *a, const struct moment *m, uint64_t site)
{
	struct peer *p = m->peer, *other;
	size_t i;

	p->site = site;
	if (m->sent > p->site_sent)
		p->site_sent = m->sent;
	for (i = 0; i < APPLY_PEERS_MAX && site != 0 && !m->past; i++) {
		other = a->peers[i];
		if (other == NULL || other == p || other->site != site ||
		    other->ended)
			continue;
		if (other->site_sent > p->site_sent)
			other = p;
		other->ended = true;
		apply_set_state(a, other, APPLY_SILENT, m->now);
	}
}

/* Applies the records that hold at any delay. */
static bool
always(struct apply *a, const struct moment *m, const struct frame_record *r)
{
	switch (r->kind) {
	case FRAME_HELLO:
		take_hello(m, r);
		break;
	case FRAME_WORKER:
		apply_known(a, m, r);
		break;
	case FRAME_RESET:
		(void)apply_agreed(a, m, r);
		break;
	case FRAME_SITE:
		take_site(a, m, r->site);
		break;
	case FRAME_CHALLENGE:
		apply_challenge(a, m, r->challenge);
		break;
	case FRAME_PROOF:
		break;
	case FRAME_CLEAR:
		(void)apply_reap(a, m->peer, m->now);
		break;
	case FRAME_LOAD:
		apply_load(a, m, r);
		return true;
	case FRAME_TENANT:
		if (a->o.chains != NULL)
			roots_told(chains_roots(a->o.chains), r->parent,
			    r->tenant, r->share);
		break;
	case FRAME_CHAIN:
		if (a->o.chains != NULL) {
			const struct stretch s = stretch_of(r);

			(void)chains_add(a->o.chains, &s);
		}
		break;
	default:
		return false;
	}
	a->counts.records++;
	return true;
}

/* A peer that is not proved yet learns the challenge by the next hello. */
void
apply_challenge(struct apply *a, const struct moment *m, uint64_t challenge)
{
	if (a->o.proof != NULL && !m->past &&
	    proof_heard(a->o.proof, m->peer->origin, challenge))
		a->met = true;
}

void
apply_record(struct apply *a, const struct moment *m,
    const struct frame_record *r)
{
	const bool prefixes = m->past || m->peer->state == APPLY_LATE;

	if (always(a, m, r) || a->o.loads)
		return;
	if (r->kind == FRAME_RESERVE && !m->past)
		a->o.roster->opens++;
	if (m->stale)
		a->counts.stale++;
	else if (r->kind == FRAME_OBSERVE)
		observe(a, m, r);
	else if (r->kind == FRAME_BIND)
		take_bind(a, m, r);
	else if (r->kind == FRAME_RESERVE && prefixes)
		observe(a, m, r);
	else if (r->kind == FRAME_OPEN && !m->past)
		take_open(a, m, r);
	else if (prefixes && !m->past)
		take_late(a, m, r);
	else if (prefixes)
		return;
	else if (r->kind == FRAME_RESERVE)
		take_reserve(a, m, r);
	else if (r->kind <= FRAME_FINISH)
		take_change(a, m, r);
}
