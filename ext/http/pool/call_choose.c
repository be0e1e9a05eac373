/* SPDX-License-Identifier: BSD-2-Clause */
/* call_choose.c - see call_choose.h. */
#include "call_choose.h"

#include <stdlib.h>
#include <string.h>

#include "call_book.h"
#include "call_look.h"
#include "call_prefill.h"
#include "call_session.h"
#include "call_shadow.h"
#include "call_trace.h"
#include "judge.h"
#include "least.h"
#include "members.h"
#include "pool_count.h"
#include "pool_gray.h"
#include "pool_roll.h"
#include "pool_wait.h"
#include "roles.h"

enum {
	LOOKS = 4,
	CHEAP_BYTES = 16384 /* of the body of a probe */
};

/* ---------------------------------------------------------------- leave --- */

void
targets_leave(struct kvh_call *c)
{
	uint32_t i;

	if (c->n_targets == 0)
		return;
	pool_lock(c->h);
	c->target[0].server->inflight--;
	for (i = 1; i < c->n_targets; i++)
		c->target[i].server->refs--;
	pool_unlock(c->h);
	c->n_targets = 0;
}

/* --------------------------------------------------------------- choice --- */

static int
worker_ask(struct kvh_call *c, bool *splits)
{
	struct kvr_request r;
	size_t n;
	int error = workers_allow(c, &n, splits);

	if (error == KVR_OK)
		error = kvr_prompt_allow(c->prompt, c->some, n);
	if (error != KVR_OK)
		return error;
	request_make(c, &r);
	c->decision.size = sizeof(c->decision);
	return *splits ? kvr_route(c->h->k, c->prompt, &r, c->now,
	    &c->decision) : kvr_lease_open(c->h->k, c->prompt, &r, c->now,
	    &c->decision);
}

/* Takes the server of the worker that was chosen, unless it is full by now. */
static bool
worker_take(struct kvh_call *c)
{
	struct kvh *h = c->h;
	uint32_t rank;
	size_t at;
	bool taken;

	pool_lock(h);
	at = known_of_worker(&h->fleet, c->decision.worker, &rank);
	taken = at < h->n && server_takes(h->server[at]);
	if (taken)
		look_take(c, h->server[at], (int32_t)rank);
	pool_unlock(h);
	return taken;
}

static void
choice_accept(struct kvh_call *c)
{
	c->worker = c->decision.worker;
	c->reason = (enum reason)c->decision.reason;
	if (c->decision.affinity != KVR_AFFINITY_NONE)
		c->affinity = c->decision.affinity;
	trace_keep(c);
}

/* The target is taken, and not booked: another may prefill for it. */
static void
split_book(struct kvh_call *c)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	bool splits;
	size_t n;

	request_make(c, &r);
	if (prefill_choose(c, &r))
		r.flags |= KVR_IGNORE_PREFILL;
	c->missed = kvr_lease_open_on(c->h->k, c->prompt, &r, c->worker, c->now,
	    &d) != KVR_OK;
	c->lease = c->decision.lease = d.lease;
	/* For further targets. */
	if (workers_allow(c, &n, &splits) == KVR_OK)
		(void)kvr_prompt_allow(c->prompt, c->some, n);
}

/* By cost; false: by load. */
static bool
choose_best(struct kvh_call *c)
{
	int tries, error;
	bool splits;

	for (tries = 0; tries < LOOKS; tries++) {
		error = worker_ask(c, &splits);
		c->missed = error != KVR_OK;
		if (error != KVR_OK)
			break;
		c->lease = c->decision.lease;
		if (worker_take(c)) {
			choice_accept(c);
			if (splits)
				split_book(c);
			return true;
		}
		lease_drop(c);
		c->missed = true;
		error = KVR_ENOWORKER;
	}
	c->reason = reason_of_error(error);
	memset(&c->decision, 0, sizeof(c->decision));
	if (error == KVR_ENOWORKER) {
		pool_lock(c->h);
		servers_due(c->h);
		pool_unlock(c->h);
	}
	return false;
}

static bool
any_is_full(const struct fleet *f)
{
	size_t i;

	for (i = 0; i < f->n_known; i++)
		if (f->known[i].full)
			return true;
	return false;
}

static int
choose_none(struct kvh_call *c, int error)
{
	c->reason = REASON_NO_WORKER;
	c->affinity = KVR_AFFINITY_NONE;
	return error;
}

/* KVR_OK, KVH_EFULL or KVH_ENOSERVER. */
static int
choose_plain(struct kvh_call *c)
{
	struct kvh *h = c->h;
	int error = KVR_OK;
	size_t at;

	look_count(c);
	pool_lock(h);
	look_mark_best(c);
	at = h->options.shadow != 0 ? shadow_next(c) : least_loaded(&h->fleet);
	if (at < h->n)
		look_take(c, h->server[at], LOOK_NO_RANK);
	else
		error = any_is_full(&h->fleet) ? KVH_EFULL : KVH_ENOSERVER;
	pool_unlock(h);
	return error == KVR_OK ? error : choose_none(c, error);
}

/* A gray server that this request is to try. */
static bool
probe_take(struct kvh_call *c)
{
	struct fleet *f = &c->h->fleet;
	struct known *known;
	uint32_t rank;
	size_t at;

	look_mark_best(c);
	at = judge_probe(f, c->given <= CHEAP_BYTES, c->now);
	if (at == f->n_known)
		return false;
	known = &f->known[at];
	rank = (uint32_t)(f->turn++ % known->ranks);
	c->worker = known->ids[rank];
	look_take(c, c->h->server[at], (int32_t)rank);
	return true;
}

static bool
choose_probe(struct kvh_call *c)
{
	bool taken;

	/* Without a prompt it would show nothing. */
	if (c->h->options.gray <= 0 || c->endpoint == ENDPOINT_OTHER ||
	    c->tries > 0)
		return false;
	pool_lock(c->h);
	taken = probe_take(c);
	pool_unlock(c->h);
	if (!taken)
		return false;
	c->reason = REASON_PROBE;
	target_book(c);
	return true;
}

static int
choose_kept(struct kvh_call *c)
{
	if (c->kept) {
		target_book(c);
		return KVR_OK;
	}
	c->reason = REASON_STATE_BUSY;
	c->affinity = KVR_AFFINITY_NONE;
	return KVH_EKEPT;
}

/* Neither a session nor state is a reason: the method has none. */
static int
choose_shadowed(struct kvh_call *c)
{
	struct kvr_decision wanted;
	bool wants;
	int error;

	if (!wait_lets(c))
		return choose_none(c, KVH_EFULL);
	wants = shadow_wants(c, &wanted);
	error = choose_plain(c);
	if (error != KVR_OK)
		return error;
	target_book(c);
	if (wants && !c->missed)
		shadow_count(c, &wanted);
	return KVR_OK;
}

static int
choose_one(struct kvh_call *c)
{
	bool found;
	int error;

	if (c->h->options.shadow != 0)
		return choose_shadowed(c);
	found = session_find(c);
	if (found && c->reason != REASON_STATE_LOST)
		return choose_kept(c);
	if (!wait_lets(c))
		return choose_none(c, KVH_EFULL);
	if (!found && choose_probe(c))
		return KVR_OK;
	if (!found && c->opinion == REASON_COST && choose_best(c))
		return KVR_OK;
	error = choose_plain(c);
	/* A prompt that the library refused is booked when it is accepted. */
	if (error == KVR_OK && !c->missed)
		target_book(c);
	return error;
}

/* -------------------------------------------------------------- further --- */

/* All workers of the region; NULL: no memory, or it is locked. */
static struct kvr_candidate *
candidates_list(struct kvh_call *c, size_t *n)
{
	struct kvr_candidate *all = NULL, *more;
	struct kvr_request r;
	size_t room;

	request_make(c, &r);
	*n = c->some_room;
	do {
		room = *n + 8;
		more = realloc(all, room * sizeof(*all));
		if (more != NULL)
			all = more;
		if (more == NULL || kvr_candidates(c->h->k, c->prompt, &r,
		    c->now, all, sizeof(*all), room, n) != KVR_OK) {
			free(all);
			return NULL;
		}
	} while (*n > room);
	return all;
}

static bool
is_eligible(const struct kvr_candidate *one)
{
	return one->verdict == KVR_ELIGIBLE || one->verdict == KVR_ABOVE_BOUND;
}

/* The usable server of the lowest cost; n_known: none. */
static size_t
further_best(const struct fleet *f, const struct kvr_candidate *all, size_t n,
    uint32_t *rank)
{
	const struct kvr_candidate *best = NULL;
	size_t i, at, found = f->n_known;
	uint32_t of;

	for (i = 0; i < n; i++) {
		if (!is_eligible(&all[i]) ||
		    (best != NULL && all[i].cost >= best->cost))
			continue;
		at = known_of_worker(f, all[i].worker, &of);
		if (at == f->n_known || !f->known[at].usable)
			continue;
		best = &all[i];
		found = at;
		*rank = of;
	}
	return found;
}

static void
further_add(struct kvh_call *c, size_t at, int32_t rank)
{
	struct pool_server *s = c->h->server[at];

	c->h->fleet.known[at].usable = false;
	c->target[c->n_targets++] = (struct call_target){ .server = s,
	    .rank = s->named ? rank : LOOK_NO_RANK, .ranks = s->ranks,
	    .named = s->named };
	s->refs++;
}

/* With the pool's lock: those of the lowest cost, then of the least load. */
static void
further_take(struct kvh_call *c, const struct kvr_candidate *all, size_t n,
    uint32_t most, bool by_load)
{
	struct fleet *f = &c->h->fleet;
	uint32_t rank = 0;
	size_t at;

	/* A drained server is left out, also if there is no other. */
	for (at = 0; at < f->n_known; at++)
		f->known[at].usable &= !f->known[at].closed;
	while (c->n_targets < most &&
	    (at = further_best(f, all, n, &rank)) < f->n_known)
		further_add(c, at, (int32_t)rank);
	while (by_load && c->n_targets < most &&
	    (at = least_loaded(f)) < f->n_known)
		further_add(c, at, LOOK_NO_RANK);
}

/* Servers to be tried if the first one fails. */
static void
further_find(struct kvh_call *c)
{
	const uint32_t most = c->h->options.fallbacks + 1;
	struct kvr_candidate *all = NULL;
	size_t n = 0;
	int round;

	if (c->opinion == REASON_COST && most > 1 && c->h->options.shadow == 0)
		all = candidates_list(c, &n);
	if (all == NULL)
		n = 0;
	/* By cost alone; by load; and those that have failed lately. */
	for (round = 0; round < 3 && c->n_targets < most; round++) {
		if (round == 1)
			look_count(c);
		pool_lock(c->h);
		look_mark(c, round == 2);
		further_take(c, all, n, most, round > 0);
		pool_unlock(c->h);
	}
	free(all);
}

/* ------------------------------------------------------------------ all --- */

static void
choice_reset(struct kvh_call *c)
{
	targets_leave(c);
	prefill_forget(c);
	c->reason = c->opinion;
	c->affinity = KVR_AFFINITY_NONE;
	c->worker = 0;
	c->lease = 0;
	c->missed = c->late = c->kept = c->moved = false;
	c->edited = false;
	memset(&c->decision, 0, sizeof(c->decision));
}

static void
choice_sent(struct kvh_call *c)
{
	if (c->tries++ > 0)
		pool_count(c->h, COUNT_RETRIES, 1);
	c->stage = CALL_SENT;
	c->status = 0;
	gray_sent(c);
}

int
call_choose(struct kvh_call *c, bool further)
{
	int error;

	choice_reset(c);
	look_begin(c);
	wait_picks(c);
	error = choose_one(c);
	wait_picked(c, error);
	session_count(c);
	if (error == KVR_OK)
		choice_sent(c);
	/* The server of a state has no substitute. */
	if (error == KVR_OK && further && !c->kept)
		further_find(c);
	return error;
}

void
call_moved(struct kvh_call *c, struct pool_server *s, bool target)
{
	const size_t prefill_length = target ? c->prefill_length : 0;

	choice_reset(c);
	/* It was sent with the same header. */
	c->prefill_length = prefill_length;
	pool_lock(c->h);
	look_take(c, s, LOOK_NO_RANK);
	pool_unlock(c->h);
	target_book(c);
	choice_sent(c);
	c->moved = true;
}
