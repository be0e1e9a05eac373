/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps.c - one function for each kind of operation on prompts and leases: the
 * model's expectation, the library's result, and the state of both afterwards.
 *
 * A call that fails must have changed nothing: the model takes no part in it,
 * outputs are examined, and all that follows is compared as if it had not been
 * made.
 */
#include "world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int
step_same(struct world *w, const char *call, int got, int want)
{
	if (got == want)
		return 0;
	return world_fail(w, "%s: %s, must be %s", call, kvr_errname(got),
	    kvr_errname(want));
}

/* Returns a worker, or a stale id, and the result that a call must have. */
uint64_t
step_worker(const struct world *w, const struct op *o, int *want)
{
	const struct world_name *name = &w->names[o->worker];
	uint64_t id = o->arg % 32 == 31 && name->old != 0 ? name->old
	    : name->id;

	*want = model_worker_known(w->m, id) ? KVR_OK : KVR_EWORKER;
	return id;
}

/* A prompt without tokens is refused wherever a worker is to be chosen. */
static int
for_prompt(const struct world *w, int otherwise)
{
	return w->n_tokens == 0 ? KVR_EEMPTY : otherwise;
}

static uint32_t
room_of(const struct world *w)
{
	return w->options.max_prompt_blocks;
}

static uint32_t
recordable(const struct world *w)
{
	return w->path.blocks < room_of(w) ? w->path.blocks : room_of(w);
}

/* A writing call succeeded. */
int
step_wrote(struct world *w, uint64_t *counter)
{
	model_advance(w->m, w->call);
	if (counter != NULL)
		++*counter;
	if (world_reap(w) != 0)
		return -1;
	return world_glance(w);
}

/* ---------------------------------------------------- match and choose --- */

int
step_match(struct world *w, const struct op *o)
{
	return world_prompt(w, o, o->scope, 0) == 0 ? world_match(w, o) : -1;
}

static int
unwritten(struct world *w, const struct kvr_decision *d)
{
	struct kvr_decision blank;

	memset(&blank, 0x5a, sizeof(blank));
	blank.size = sizeof(blank);
	if (memcmp(d, &blank, sizeof(blank)) != 0)
		return world_fail(w, "a failed call wrote its output");
	return 0;
}

int
step_route(struct world *w, const struct op *o)
{
	const struct kvr_request *r = world_request(w, o);
	struct kvr_decision got, want;
	int rc, wanted;

	if (world_prompt(w, o, o->scope, 0) != 0)
		return -1;
	if (w->n_tokens == 0)
		return 0;
	wanted = world_choose(w, o, r, &want);
	if (wanted == -1 && w->failure->text[0] != '\0')
		return -1;
	memset(&got, 0x5a, sizeof(got));
	got.size = sizeof(got);
	WORLD_CALL(rc, o->fail, kvr_route(w->k, w->p, r, w->call, &got));
	if (step_same(w, "kvr_route", rc, wanted) != 0)
		return -1;
	if (rc != KVR_OK)
		return unwritten(w, &got);
	if (got.lease != 0 || got.recorded_blocks != 0)
		return world_fail(w, "kvr_route recorded something");
	return world_same_decision(w, &got, &want);
}

static int
compare_candidate(struct world *w, const struct kvr_candidate *c,
    const struct kvr_decision *d, int chosen)
{
	const struct kvr_overlap *v = world_found(w, c->worker);
	uint64_t tokens = world_usable(w, v);
	struct model_load load;
	int64_t age = model_age(w->m, c->worker, &w->path, w->time);

	model_load(w->m, c->worker, &load);
	if (!model_worker_known(w->m, c->worker))
		return world_fail(w, "candidate: no such worker");
	if (!model_vague(w->m, c->worker) && (c->overlap_blocks != v->blocks ||
	    c->overlap_tokens != tokens))
		return world_fail(w, "candidate: overlap %u blocks, %" PRIu64
		    " tokens, must %u, %" PRIu64, c->overlap_blocks,
		    c->overlap_tokens, v->blocks, tokens);
	if (c->requests != load.requests ||
	    c->prefill_tokens != load.prefill_tokens || (!w->blurred &&
	    c->decode_blocks != load.active_blocks + load.output_blocks))
		return world_fail(w, "candidate: load %" PRIu64 " %" PRIu64
		    " %" PRIu64 ", must %" PRIu64 " %" PRIu64 " %" PRIu64,
		    c->requests, c->prefill_tokens, c->decode_blocks,
		    load.requests, load.prefill_tokens,
		    load.active_blocks + load.output_blocks);
	if (!w->c->full && !model_vague(w->m, c->worker) && c->age_ns != age)
		return world_fail(w, "candidate: age %" PRId64 ", must %"
		    PRId64, c->age_ns, age);
	if (chosen == KVR_OK && c->worker == d->worker &&
	    c->verdict != KVR_ELIGIBLE)
		return world_fail(w, "the chosen one is not eligible");
	/* the balanced cost takes the least loaded of the near ones */
	if (chosen == KVR_OK && c->verdict == KVR_ELIGIBLE &&
	    !model_any_vague(w->m) &&
	    (d->reason == KVR_REASON_COST || d->reason == KVR_REASON_TIE) &&
	    c->cost * (w->c->policy == 0 ? 1.01 : 1) < d->cost)
		return world_fail(w, "a candidate costs %g, the chosen %g",
		    c->cost, d->cost);
	return 0;
}

int
step_candidates(struct world *w, const struct op *o)
{
	const struct kvr_request *r = world_request(w, o);
	struct kvr_candidate got[OPS_NAMES];
	struct kvr_decision d;
	size_t n = 0, i, eligible = 0, known = 0;
	int rc, chosen;

	if (world_prompt(w, o, o->scope, 0) != 0)
		return -1;
	if (w->n_tokens == 0)
		return 0;
	chosen = world_choose(w, o, r, &d);
	if (chosen == -1 && w->failure->text[0] != '\0')
		return -1;
	WORLD_CALL(rc, o->fail, kvr_candidates(w->k, w->p, r, w->call, got,
	    sizeof(got[0]), OPS_NAMES, &n));
	/* An invalid request fails in every call alike. */
	if (rc != KVR_OK)
		return step_same(w, "kvr_candidates", rc, chosen);
	for (i = 0; i < w->c->workers; i++)
		known += model_worker_known(w->m, w->names[i].id);
	for (i = 0; i < n; i++) {
		if (compare_candidate(w, &got[i], &d, chosen) != 0)
			return -1;
		eligible += got[i].verdict == KVR_ELIGIBLE ||
		    got[i].verdict == KVR_ABOVE_BOUND;
	}
	if (n != known || (chosen == KVR_OK && d.eligible != eligible))
		return world_fail(w, "%zu candidates, %zu eligible", n,
		    eligible);
	return 0;
}

/* ------------------------------------------------- observe and reserve --- */

int
step_observe(struct world *w, const struct op *o)
{
	uint32_t recorded = UINT32_MAX, can;
	bool tracked;
	uint64_t id;
	int rc, want;

	if (world_prompt(w, o, o->scope, 0) != 0)
		return -1;
	id = step_worker(w, o, &want);
	/* overlaps that are given to kvr_choose lack the blocks in use */
	WORLD_CALL(rc, o->fail, kvr_observe(w->k, w->p, id, w->call,
	    (o->arg % 2 == 0 ? KVR_NOWAIT : 0) | (w->c->policy == 0 ||
	    o->arg % 3 == 0 ? KVR_ENDED : 0), &recorded));
	if (step_same(w, "kvr_observe", rc, want) != 0)
		return -1;
	if (rc != KVR_OK)
		return recorded == UINT32_MAX ? world_glance(w)
		    : world_fail(w, "a failed observe wrote its output");
	tracked = model_tracked(w->m, id);
	can = tracked ? 0 : recordable(w);
	if (w->c->full ? recorded > can : recorded != can && w->c->ttl != 0)
		return world_fail(w, "recorded %u blocks, must %u", recorded,
		    can);
	w->counts.truncated += !tracked && w->path.blocks > room_of(w);
	model_observe(w->m, id, &w->path, recordable(w), w->time);
	return step_wrote(w, &w->counts.observes);
}

static bool
ignores_reuse(const struct kvr_request *r)
{
	return r != NULL && ((r->flags & KVR_IGNORE_REUSE) != 0 ||
	    (r->stage == KVR_STAGE_DECODE && r->overlap_credit < 0));
}

static bool
ignores_prefill(const struct kvr_request *r)
{
	return r != NULL && ((r->flags & KVR_IGNORE_PREFILL) != 0 ||
	    r->stage == KVR_STAGE_DECODE);
}

static int
remember(struct world *w, const struct op *o, uint64_t lease)
{
	struct world_slot *s = &w->slots[o->slot];
	uint32_t *t = realloc(s->tokens, (w->n_tokens + 1) * sizeof(*t));

	if (t == NULL)
		return world_fail(w, "no memory for the test itself");
	memcpy(t, w->tokens, w->n_tokens * sizeof(*t));
	s->tokens = t;
	s->n = w->n_tokens;
	s->scope = w->scope;
	s->lease = lease;
	return 0;
}

/* The library opened a lease; books the same in the model. */
static int
book(struct world *w, const struct op *o, const struct kvr_request *r,
    const struct kvr_decision *d)
{
	const struct kvr_overlap *v = world_found(w, d->worker);
	uint32_t want = ignores_reuse(r) ? 0 : recordable(w);
	struct model_booking b = { 0 };
	uint64_t tokens;

	if (d->lease == 0)
		return w->c->full ? step_wrote(w, &w->counts.lease_opens)
		    : world_fail(w, "no lease was given");
	if (model_lease_open(w->m, d->lease))
		return world_fail(w, "a lease's number was given twice");
	if (w->c->full ? d->recorded_blocks > want
	    : d->recorded_blocks != want)
		return world_fail(w, "reserved %u blocks, must %u",
		    d->recorded_blocks, want);
	b.lease = d->lease;
	b.owner = r != NULL ? r->owner : 0;
	b.recorded = d->recorded_blocks;
	b.private = w->path.blocks - b.recorded;
	b.unrecorded = ignores_reuse(r);
	tokens = model_vague(w->m, d->worker) ? d->overlap_tokens
	    : world_usable(w, v);
	if (!ignores_prefill(r) && world_prompt_tokens(w) > tokens)
		b.prefill = world_prompt_tokens(w) - tokens;
	w->counts.truncated += !ignores_reuse(r) &&
	    w->path.blocks > room_of(w);
	model_reserve(w->m, d->worker, &w->path, &b, w->time);
	if (remember(w, o, d->lease) != 0)
		return -1;
	return step_wrote(w, &w->counts.lease_opens);
}

int
step_reserve(struct world *w, const struct op *o)
{
	const struct kvr_request *r = world_request(w, o);
	struct kvr_decision got, want;
	int rc, wanted;

	if (model_lease_open(w->m, w->slots[o->slot].lease))
		return 0;
	if (world_prompt(w, o, o->scope, 0) != 0)
		return -1;
	if (w->n_tokens == 0)
		return 0;
	wanted = world_choose(w, o, r, &want);
	if (wanted == -1 && w->failure->text[0] != '\0')
		return -1;
	memset(&got, 0x5a, sizeof(got));
	got.size = sizeof(got);
	WORLD_CALL(rc, o->fail, kvr_lease_open(w->k, w->p, r, w->call, &got));
	if (step_same(w, "kvr_lease_open", rc, wanted) != 0)
		return -1;
	if (rc != KVR_OK)
		return unwritten(w, &got) != 0 ? -1 : world_glance(w);
	if (world_same_decision(w, &got, &want) != 0)
		return -1;
	return book(w, o, r, &got);
}

int
step_reserve_on(struct world *w, const struct op *o)
{
	const struct kvr_request *r = world_request(w, o);
	struct kvr_decision got;
	uint64_t id;
	int rc, want;

	if (model_lease_open(w->m, w->slots[o->slot].lease))
		return 0;
	if (world_prompt(w, o, o->scope, 0) != 0)
		return -1;
	id = step_worker(w, o, &want);
	want = want == KVR_OK ? for_prompt(w, want) : want;
	if (w->n_tokens > 0 && world_match(w, o) != 0)
		return -1;
	memset(&got, 0x5a, sizeof(got));
	got.size = sizeof(got);
	WORLD_CALL(rc, o->fail, kvr_lease_open_on(w->k, w->p, r, id, w->call,
	    &got));
	if (step_same(w, "kvr_lease_open_on", rc, want) != 0)
		return -1;
	if (rc != KVR_OK)
		return unwritten(w, &got) != 0 ? -1 : world_glance(w);
	if (got.worker != id || got.prompt_blocks != w->path.blocks ||
	    got.overlap_blocks != world_found(w, id)->blocks)
		return world_fail(w, "reserve_on: %u of %u blocks overlap",
		    got.overlap_blocks, got.prompt_blocks);
	return book(w, o, r, &got);
}

/* -------------------------------------------------------------- leases --- */

/* A call without a lease is not counted. */
static int
outcome(struct world *w, int rc, uint64_t lease, uint64_t *counter)
{
	return rc == KVR_OK ? step_wrote(w, lease != 0 ? counter : NULL)
	    : world_glance(w);
}

int
step_commit(struct world *w, const struct op *o)
{
	uint64_t lease = w->slots[o->slot].lease;
	int rc, want = model_commit(w->m, lease, w->time);

	WORLD_CALL(rc, o->fail, kvr_lease_commit(w->k, lease, w->call, 0));
	if (step_same(w, "kvr_lease_commit", rc, want) != 0)
		return -1;
	return outcome(w, rc, lease, &w->counts.lease_commits);
}

int
step_first_token(struct world *w, const struct op *o)
{
	uint64_t lease = w->slots[o->slot].lease;
	bool fresh = model_lease_fresh(w->m, lease);
	int rc, want = model_first_token(w->m, lease, w->time);

	WORLD_CALL(rc, o->fail, kvr_lease_first_token(w->k, lease, w->call,
	    KVR_NOWAIT));
	if (step_same(w, "kvr_lease_first_token", rc, want) != 0)
		return -1;
	return outcome(w, rc, lease, fresh ? &w->counts.lease_commits : NULL);
}

/* Returns the place to cut and resume a prompt: mostly the lease's end. */
static size_t
cut_of(const struct world *w, const struct op *o, size_t lease_end)
{
	if (o->arg % 64 < 32 && lease_end <= w->n_tokens)
		return lease_end;
	return w->n_tokens * (o->arg % 32) / 31;
}

/*
 * Mostly the lease's prompt and more tokens; now and then another prompt or
 * another scope, which must be refused. Half of them are saved and resumed.
 */
int
step_extend(struct world *w, const struct op *o)
{
	struct world_slot *s = &w->slots[o->slot];
	bool other = !w->c->full && o->arg % 8 == 7, grows;
	bool fresh = model_lease_fresh(w->m, s->lease);
	uint32_t scope = s->scope;
	size_t n = other ? 0 : s->n;
	int rc, want;

	if (!w->c->full && o->arg % 16 == 6)
		scope = (scope + 1) % OPS_SCOPES;
	if (world_room(w, n) != 0)
		return -1;
	if (n > 0)
		memcpy(w->tokens, s->tokens, n * sizeof(*s->tokens));
	if (world_prompt(w, o, scope, n) != 0)
		return -1;
	if (w->n_tokens == 0)
		return 0;
	if (o->arg >= 128 && world_resume(w, o, cut_of(w, o, s->n)) != 0)
		return -1;
	grows = model_lease_grows(w->m, s->lease, &w->path, recordable(w));
	want = model_extend(w->m, s->lease, &w->path, room_of(w), w->time);
	WORLD_CALL(
	    rc, o->fail, kvr_lease_extend(w->k, s->lease, w->p, w->call, 0));
	if (step_same(w, "kvr_lease_extend", rc, want) != 0)
		return -1;
	if (rc != KVR_OK || s->lease == 0)
		return outcome(w, rc, 0, NULL);
	w->counts.lease_commits += fresh;
	w->blurred |= w->c->full;
	w->counts.truncated += grows && w->path.blocks > room_of(w);
	if (remember(w, o, s->lease) != 0)
		return -1;
	return step_wrote(w, NULL);
}

int
step_output(struct world *w, const struct op *o)
{
	uint64_t lease = w->slots[o->slot].lease;
	uint32_t blocks = o->arg % 8;
	int rc, want = model_output(w->m, lease, blocks);

	WORLD_CALL(rc, o->fail, kvr_lease_output(w->k, lease, blocks,
	    w->call, 0));
	if (step_same(w, "kvr_lease_output", rc, want) != 0)
		return -1;
	return outcome(w, rc, lease, NULL);
}

int
step_finish(struct world *w, const struct op *o)
{
	struct kvr_report report = { .size = sizeof(report) };
	uint64_t lease = w->slots[o->slot].lease;
	int rc, want = model_finish(w->m, lease, w->time);

	/* by TTL no report changes anything, true or not; else one may */
	report.kind = o->arg % 3;
	report.flags = o->arg / 3 % 4;
	report.endpoint = o->arg / 64;
	report.prompt_tokens = o->arg % 8 == 7 ? 0 : o->arg;
	report.cached_tokens = o->arg % 16 == 15 ? UINT64_MAX - o->arg
	    : o->arg / 2;
	report.completion_tokens = o->arg % 32 == 31 ? UINT64_MAX
	    : o->arg / 16;
	WORLD_CALL(rc, o->fail, kvr_lease_finish(w->k, lease,
	    o->arg % 4 == 0 || w->c->events > 0 ? NULL : &report, w->call,
	    0));
	if (step_same(w, "kvr_lease_finish", rc, want) != 0)
		return -1;
	return outcome(w, rc, lease, &w->counts.lease_finishes);
}

int
step_abort(struct world *w, const struct op *o)
{
	uint64_t lease = w->slots[o->slot].lease;
	int rc, want = model_abort(w->m, lease);

	WORLD_CALL(rc, o->fail, kvr_lease_abort(w->k, lease, w->call, 0));
	if (step_same(w, "kvr_lease_abort", rc, want) != 0)
		return -1;
	return outcome(w, rc, lease, &w->counts.lease_aborts);
}

int
step_reap(struct world *w, const struct op *o)
{
	uint64_t owner = 1 + o->arg % 3, at = 0;
	uint32_t ended = UINT32_MAX, want;
	int rc;

	want = model_reap_owner(w->m, owner, w->time);
	rc = kvr_owner_reap(w->k, owner, w->call, &at, &ended);
	if (rc != KVR_OK || ended != want || at != 0)
		return world_fail(w, "kvr_owner_reap: %s, %u ended, must %u",
		    kvr_errname(rc), ended, want);
	w->counts.lease_reaps += ended;
	return step_wrote(w, NULL);
}
