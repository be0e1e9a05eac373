/* SPDX-License-Identifier: BSD-2-Clause */
/* orders.c - see orders.h. */
#include "orders.h"

#include <string.h>

#include "judge.h"
#include "lacking.h"
#include "shared.h"
#include "stale.h"

enum { TRIES = 400 };

struct order_run {
	struct fleet *fleet;
	enum order what;
	const char *name;
	size_t n;
	unsigned busy;          /* calls that found the region locked */
};

enum order
order_named(const char *text, size_t n)
{
	static const char *const names[] = { [ORDER_DRAIN] = "drain",
	    [ORDER_UP] = "up", [ORDER_FORGET] = "forget",
	    [ORDER_RESET] = "reset" };
	int i;

	for (i = ORDER_DRAIN; i <= ORDER_RESET; i++)
		if (strlen(names[i]) == n && memcmp(names[i], text, n) == 0)
			return (enum order)i;
	return ORDER_NONE;
}

/* Is the call to be repeated? */
static bool
order_again(struct order_run *o, int error)
{
	return error == KVR_EBUSY && ++o->busy < TRIES;
}

/* --------------------------------------------------------------- worker --- */

static int
facts_get(struct order_run *o, uint64_t id, struct kvr_worker *facts)
{
	int error;

	facts->size = sizeof(*facts);
	do
		error = kvr_worker_get(o->fleet->kvr, id, facts);
	while (order_again(o, error));
	return error;
}

static int
state_set(struct order_run *o, uint64_t id, uint32_t state)
{
	struct kvr_worker facts;
	int error = facts_get(o, id, &facts);

	if (error != KVR_OK)
		return error;
	facts.state = state;
	do
		error = kvr_worker_set(o->fleet->kvr, id, &facts);
	while (order_again(o, error));
	return error;
}

static int
worker_find(struct order_run *o, uint32_t rank, uint64_t *id)
{
	int error;

	do
		error = kvr_worker_find(o->fleet->kvr, o->name, o->n, rank,
		    id);
	while (order_again(o, error));
	return error;
}

/* *id becomes the new one. */
static int
worker_reset(struct order_run *o, uint64_t *id)
{
	const uint64_t old = *id;
	int error;

	do
		error = kvr_worker_reset(o->fleet->kvr, old, id);
	while (order_again(o, error));
	return error;
}

static int
worker_forget(struct order_run *o, uint64_t id)
{
	int error;

	do
		error = kvr_worker_forget(o->fleet->kvr, id);
	while (order_again(o, error));
	return error;
}

static int
obey_one(struct order_run *o, uint32_t rank, struct kvr_worker *facts)
{
	uint64_t id;
	int error = worker_find(o, rank, &id);

	if (error != KVR_OK)
		return error;
	if (o->what == ORDER_DRAIN || o->what == ORDER_UP)
		lacking_forget(o->fleet, shared_key(o->name, o->n), rank);
	if (o->what == ORDER_DRAIN)
		error = state_set(o, id, KVR_STATE_DRAINING);
	else if (o->what == ORDER_UP)
		error = state_set(o, id, KVR_STATE_UP);
	else if (o->what == ORDER_FORGET)
		error = worker_forget(o, id);
	else
		error = worker_reset(o, &id);
	o->fleet->shared->epoch++;
	return error == KVR_OK ? facts_get(o, id, facts) : error;
}

/* --------------------------------------------------------------- server --- */

/* NAME@RANK: cuts the name. False: it is another name. */
static bool
rank_split(struct order_run *o, uint32_t *rank)
{
	size_t at = o->n, i;

	while (at > 0 && o->name[at - 1] != '@')
		at--;
	if (at <= 1 || at == o->n)
		return false;
	*rank = 0;
	for (i = at; i < o->n; i++) {
		if (o->name[i] < '0' || o->name[i] > '9')
			return false;
		*rank = *rank * 10 + (uint32_t)(o->name[i] - '0');
		if (*rank >= KNOWN_RANKS_MAX)
			return false;
	}
	o->n = at - 1;
	return true;
}

/* Requests that run there stay load when the worker is reset. */
static void
reset_begin(struct order_run *o, int64_t now)
{
	const size_t i = known_find(o->fleet, o->name, o->n,
	    o->fleet->n_known);

	if (i < o->fleet->n_known && o->what == ORDER_RESET)
		stale_begin(o->fleet, i, now);
}

int
order_obey(struct fleet *f, enum order what, const char *name, size_t n,
    int64_t now, struct kvr_worker *facts)
{
	struct order_run o = { f, what, name, n, 0 };
	uint32_t rank, ranks;
	uint64_t id;
	int error = worker_find(&o, 0, &id);

	if (error == KVR_EWORKER && rank_split(&o, &rank)) {
		reset_begin(&o, now);
		return obey_one(&o, rank, facts);
	}
	reset_begin(&o, now);
	ranks = known_ranks_named(f, name, n);
	ranks += ranks == 0;
	for (rank = 0; rank < ranks && error == KVR_OK; rank++)
		error = obey_one(&o, rank, facts);
	if (what == ORDER_UP || what == ORDER_RESET)
		judge_forget(f, name, n);
	return error;
}
