/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps_rest.c - operations on time, workers and the whole, as in steps.c;
 * and the loop that runs a sequence.
 */
#include "world.h"

#include <inttypes.h>
#include <string.h>

static int
do_expire(struct world *w, const struct op *o)
{
	uint32_t left = 2, budget = o->arg % 2 == 0 ? UINT32_MAX
	    : o->arg / 2 % 8;
	uint64_t reaped = w->counts.lease_reaps;
	int rc;

	WORLD_CALL(rc, o->fail, kvr_expire(w->k, w->call, budget, &left));
	if (rc != KVR_OK || left > 1)
		return world_fail(w, "kvr_expire: %s, left %u",
		    kvr_errname(rc), left);
	if (left == 1 && budget == UINT32_MAX)
		return world_fail(w, "kvr_expire left something");
	if (step_wrote(w, NULL) != 0)
		return -1;
	/* A lease that this very call ended may have left something due. */
	return left == 0 && w->counts.lease_reaps == reaped
	    ? world_check_expired(w) : 0;
}

/* Is the same for the model. */
static uint32_t
retain_of(const struct world *w, uint32_t name)
{
	return step_has_events(w, name) ? KVR_RETAIN_EVENTS : KVR_RETAIN_TTL;
}

static int
do_add(struct world *w, const struct op *o)
{
	struct world_name *name = &w->names[o->worker];
	bool there = model_worker_known(w->m, name->id);
	struct kvr_worker facts;
	uint64_t id = 0;
	int rc;

	kvr_worker_init(&facts, sizeof(facts));
	facts.rank = o->worker % 2;
	w->plain[o->worker] &= there;
	facts.retain = retain_of(w, o->worker);
	WORLD_CALL(rc, o->fail, kvr_worker_add(w->k, name->text,
	    strlen(name->text), &facts, &id));
	if (step_same(w, "kvr_worker_add", rc, there ? KVR_EEXIST
	    : KVR_OK) != 0)
		return -1;
	if (there)
		return id == 0 ? world_glance(w)
		    : world_fail(w, "a failed kvr_worker_add wrote an id");
	if (id == 0 || id == name->id || id == name->old)
		return world_fail(w, "a worker's id was used again");
	name->old = name->id;
	name->id = id;
	model_worker_add(w->m, id);
	model_events_worker(w->m, id, o->worker,
	    step_has_events(w, o->worker));
	return world_glance(w);
}

static int
do_remove(struct world *w, const struct op *o)
{
	int rc, want;
	uint64_t id = step_worker(w, o, &want);

	WORLD_CALL(rc, o->fail, kvr_worker_remove(w->k, id));
	if (step_same(w, "kvr_worker_remove", rc, want) != 0)
		return -1;
	if (rc == KVR_OK)
		model_events_begin(w->m, o->worker);
	model_worker_void(w->m, id);
	return world_glance(w);
}

static int
do_reset(struct world *w, const struct op *o)
{
	struct world_name *name = &w->names[o->worker];
	uint64_t id, fresh = 0;
	int rc, want;

	id = step_worker(w, o, &want);
	WORLD_CALL(rc, o->fail, kvr_worker_reset(w->k, id, &fresh));
	if (step_same(w, "kvr_worker_reset", rc, want) != 0)
		return -1;
	if (rc != KVR_OK)
		return fresh == 0 ? world_glance(w)
		    : world_fail(w, "a failed kvr_worker_reset wrote an id");
	if (fresh == 0 || fresh == id || fresh == name->old)
		return world_fail(w, "a worker's id was used again");
	model_worker_void(w->m, id);
	model_worker_add(w->m, fresh);
	model_events_reset(w->m, o->worker);
	model_events_worker(w->m, fresh, o->worker,
	    step_has_events(w, o->worker));
	name->old = id;
	name->id = fresh;
	return world_glance(w);
}

static int
do_set(struct world *w, const struct op *o)
{
	static const uint32_t role[4] = {
		KVR_ROLE_BOTH, KVR_ROLE_BOTH, KVR_ROLE_PREFILL,
		KVR_ROLE_DECODE
	};
	struct kvr_worker facts;
	int rc, want;
	uint64_t id = step_worker(w, o, &want);

	kvr_worker_init(&facts, sizeof(facts));
	facts.rank = o->worker % 2;
	if (want == KVR_OK)
		w->plain[o->worker] = o->arg / 32 % 4 == 3;
	facts.retain = retain_of(w, o->worker);
	facts.state = o->arg % 8 < 3 ? o->arg % 8 : KVR_STATE_UP;
	facts.role = role[o->arg / 8 % 4];
	facts.max_batched_tokens = o->arg;
	if (w->c->events == 0) /* else it would go by it */
		facts.capacity_tokens = o->arg * 4U;
	WORLD_CALL(rc, o->fail, kvr_worker_set(w->k, id, &facts));
	if (step_same(w, "kvr_worker_set", rc, want) != 0)
		return -1;
	if (rc == KVR_OK)
		model_events_retain(w->m, o->worker,
		    step_has_events(w, o->worker));
	/* the model learns nothing, so nothing that it has is forgotten */
	if (o->arg % 4 == 3 && step_same(w, "kvr_worker_forget",
	    kvr_worker_forget(w->k, id), want) != 0)
		return -1;
	return world_glance(w);
}

static int
do_load(struct world *w, const struct op *o)
{
	struct kvr_load load = { .size = sizeof(load) };
	uint32_t source = o->slot % KVR_LOAD_SOURCES;
	int rc, want;
	uint64_t id = step_worker(w, o, &want);

	load.prefill_tokens = o->arg % 16 * 3;
	load.active_blocks = o->arg / 4 % 8;
	load.requests = o->arg / 32;
	load.used_blocks = o->arg / 8;
	WORLD_CALL(rc, o->fail, kvr_worker_set_load(w->k, id, source,
	    &load));
	if (step_same(w, "kvr_worker_set_load", rc, want) != 0)
		return -1;
	model_set_load(w->m, id, source, &load);
	return world_glance(w);
}

static int
do_clear(struct world *w, const struct op *o)
{
	int rc;

	(void)o;
	rc = kvr_clear(w->k);
	if (rc != KVR_OK)
		return world_fail(w, "kvr_clear: %s", kvr_errname(rc));
	model_clear(w->m);
	w->blurred = false;
	return world_glance(w);
}

/* A `now` out of range changes nothing, whatever the call. */
static int
do_bad_clock(struct world *w, const struct op *o)
{
	const int64_t leap = INT64_C(100000000000000000);
	int64_t clock = model_clock(w->m);
	int64_t now = o->arg % 2 == 0 || clock < 0 ? -2 - o->arg
	    : clock + leap + 1;
	uint64_t at = 0;
	struct kvr_decision d;
	size_t n;
	int rc;

	if (world_prompt(w, o, o->scope, 0) != 0)
		return -1;
	if (w->n_tokens == 0 || !model_worker_known(w->m,
	    w->names[o->worker].id))
		return 0;
	d.size = sizeof(d);
	switch (o->arg / 2 % 6) {
	case 0: rc = kvr_observe(w->k, w->p, w->names[o->worker].id, now, 0,
	    NULL); break;
	case 1: rc = kvr_match(w->k, w->p, now, NULL, sizeof(struct
	    kvr_overlap), 0, &n); break;
	case 2: rc = kvr_lease_open_on(w->k, w->p, NULL,
	    w->names[o->worker].id, now, &d); break;
	case 3: rc = kvr_expire(w->k, now, 5, NULL); break;
	case 4: rc = kvr_route(w->k, w->p, NULL, now, &d); break;
	default: rc = kvr_owner_reap(w->k, 1, now, &at, NULL); break;
	}
	if (step_same(w, "a call out of time", rc, KVR_ECLOCK) != 0)
		return -1;
	return world_glance(w);
}

/* Everything that must be equal when all that is due is reclaimed. */
static int
do_check(struct world *w, const struct op *o)
{
	struct op expire = *o;

	expire.arg = 0;
	expire.fail = 0;
	if (do_expire(w, &expire) != 0)
		return -1;
	return world_check(w);
}

/* ------------------------------------------------------------------ run --- */

static int (*const step[OP_KINDS])(struct world *, const struct op *) = {
	[OP_OBSERVE] = step_observe, [OP_MATCH] = step_match,
	[OP_ROUTE] = step_route, [OP_CANDIDATES] = step_candidates,
	[OP_RESERVE] = step_reserve, [OP_RESERVE_ON] = step_reserve_on,
	[OP_COMMIT] = step_commit, [OP_FIRST_TOKEN] = step_first_token,
	[OP_EXTEND] = step_extend, [OP_OUTPUT] = step_output,
	[OP_FINISH] = step_finish, [OP_ABORT] = step_abort,
	[OP_REAP] = step_reap, [OP_EXPIRE] = do_expire,
	[OP_ADD] = do_add, [OP_REMOVE] = do_remove,
	[OP_RESET] = do_reset, [OP_SET] = do_set,
	[OP_LOAD] = do_load, [OP_CLEAR] = do_clear,
	[OP_BAD_CLOCK] = do_bad_clock, [OP_CHECK] = do_check,
	[OP_EVENTS] = step_events, [OP_EVENTS_ANEW] = step_events_anew,
	[OP_EVENTS_LOST] = step_events_lost,
};

static int
run_all(struct world *w, const struct op *ops, size_t n, size_t every)
{
	size_t i;

	for (i = 0; i < n; i++) {
		w->failure->at = i;
		world_move_time(w, &ops[i]);
		ops_totals.ops++;
		model_events_used(w->m, w->time);
		if (step[ops[i].kind % OP_KINDS](w, &ops[i]) != 0)
			return -1;
		if (w->c->events > 0 && step_glance_events(w, &ops[i]) != 0)
			return -1;
		if ((i + 1) % every == 0 && world_check(w) != 0)
			return -1;
	}
	w->failure->at = n;
	world_move_time(w, &(struct op){ 0 });
	if (world_check(w) != 0)
		return -1;
	if (do_check(w, &(struct op){ 0 }) != 0)
		return -1;
	return world_check_empty(w);
}

int
ops_run(const struct ops_config *c, const struct op *ops, size_t n,
    size_t every, struct ops_failure *failure)
{
	struct world w;
	int rc;

	memset(failure, 0, sizeof(*failure));
	rc = world_make(&w, c, failure);
	if (rc == 0)
		rc = run_all(&w, ops, n, every);
	world_end(&w);
	return rc;
}
