/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy_run.c - see policy_run.h.
 *
 * The calls depend on the policy and on the model:
 *
 *   engines modelled   lease open and commit; first token and finish when the
 *                      engine model has them, so that load builds up
 *   no engines         route, observe
 *   half               match, the policy's own choice, observe; no lease
 *
 * The longest overlap of any worker is reported for every policy. Looking it
 * up before a decision would warm the cache for the code being timed, so it is
 * looked up afterwards. By then only the chosen worker has changed, and its
 * overlap is known from the decision.
 */
#include "policy_run.h"

#include "plain_engine.h"
#include "fleet.h"
#include "half.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const pass_policy_names[PASS_POLICIES] = {
	[PASS_BALANCED] = "balanced",
	[PASS_DYNAMO] = "dynamo",
	[PASS_HALF] = "half",
	[PASS_ROUND_ROBIN] = "round-robin"
};

struct pass {
	struct pass_options options;
	struct pass_totals totals;
	struct kvr *k;
	struct fleet *fleet;
	struct half *half;       /* PASS_HALF only */
	struct engines *engines; /* NULL: not modelled */
	struct pass_worker *workers;
	struct kvr_overlap *overlaps; /* [workers] */
	struct half_overlap *numbered; /* [workers] */
	size_t n_overlaps;
	uint32_t block_size;
	uint32_t turn; /* of round robin */
	int64_t since; /* the region's clock when the trace began */
};

/* The result of one decision. */
struct taken {
	uint32_t worker;
	uint32_t overlap_blocks;
	uint32_t longest_blocks;
	uint64_t lease; /* 0: none */
};

int64_t
pass_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ------------------------------------------------------- making a pass --- */

static int
pass_set_policy(struct pass *r)
{
	struct kvr_policy policy;

	kvr_policy_init(&policy, sizeof(policy));
	if (r->options.policy == PASS_DYNAMO)
		policy.cost = KVR_COST_DYNAMO;
	return kvr_policy_set(r->k, &policy);
}

static int
pass_make_tables(struct pass *r)
{
	uint32_t n = r->options.workers;

	r->workers = calloc(n, sizeof(*r->workers));
	r->overlaps = calloc(n, sizeof(*r->overlaps));
	r->numbered = calloc(n, sizeof(*r->numbered));
	if (r->workers == NULL || r->overlaps == NULL || r->numbered == NULL)
		return KVR_ENOMEM;
	if (r->options.policy == PASS_HALF &&
	    (r->half = half_new(n)) == NULL)
		return KVR_ENOMEM;
	if (r->options.prefill_rate != 0 && (r->engines = engines_new(n,
	    r->options.prefill_rate, r->options.decode_rate)) == NULL)
		return KVR_ENOMEM;
	return KVR_OK;
}

/*
 * Continues a region: the clock goes on, and leases left open by the previous
 * pass are reaped.
 */
static int
take_over(struct pass *r)
{
	struct kvr_stats s;
	uint64_t at = 0;
	int e;

	s.size = sizeof(s);
	e = kvr_stats_get(r->k, &s);
	if (e != KVR_OK || s.clock < 0)
		return e;
	r->since = s.clock;
	do {
		e = kvr_owner_reap(r->k, 0, r->since, &at, NULL);
	} while (e == KVR_OK && at != 0);
	return e;
}

static int
pass_make_region(struct pass *r, const char *file,
    const struct kvr_options *region)
{
	int e;

	if (file == NULL)
		return kvr_new(region, &r->k);
	e = kvr_open(file, strlen(file), KVR_OPEN_CREATE | KVR_OPEN_ATTACH,
	    region, &r->k);
	return e == KVR_OK ? take_over(r) : e;
}

int
pass_new(const struct pass_options *options, const struct kvr_options *region,
    struct pass **out)
{
	return pass_new_in(NULL, options, region, out);
}

int
pass_new_in(const char *file, const struct pass_options *options,
    const struct kvr_options *region, struct pass **out)
{
	struct pass *r = calloc(1, sizeof(*r));
	int e;

	if (r == NULL)
		return KVR_ENOMEM;
	r->options = *options;
	r->totals.checksum = HALF_CHECKSUM;
	r->block_size = region->block_size;
	e = pass_make_tables(r);
	if (e == KVR_OK)
		e = pass_make_region(r, file, region);
	if (e == KVR_OK)
		e = fleet_new(r->k, options->workers, &r->fleet);
	if (e == KVR_OK)
		e = pass_set_policy(r);
	if (e != KVR_OK) {
		pass_free(r);
		return e;
	}
	*out = r;
	return KVR_OK;
}

void
pass_free(struct pass *r)
{
	if (r == NULL)
		return;
	kvr_free(r->k);
	fleet_free(r->fleet);
	half_free(r->half);
	engines_free(r->engines);
	free(r->workers);
	free(r->overlaps);
	free(r->numbered);
	free(r);
}

/* ------------------------------------------------------------- deciding --- */

static int
pass_match(struct pass *r, struct kvr_prompt *p, int64_t now)
{
	return kvr_match(r->k, p, now, r->overlaps, sizeof(*r->overlaps),
	    r->options.workers, &r->n_overlaps);
}

/* The longest overlap before the decision; see the head of this file. */
static int
find_longest(struct pass *r, struct kvr_prompt *p, int64_t now,
    struct taken *t)
{
	uint64_t taken = fleet_id(r->fleet, t->worker);
	size_t i;
	int e = pass_match(r, p, now);

	if (e != KVR_OK)
		return e;
	t->longest_blocks = t->overlap_blocks;
	for (i = 0; i < r->n_overlaps; i++)
		if (r->overlaps[i].worker != taken &&
		    r->overlaps[i].blocks > t->longest_blocks)
			t->longest_blocks = r->overlaps[i].blocks;
	return KVR_OK;
}

static struct half_choice
choose_half(struct pass *r, uint64_t tokens)
{
	size_t i;

	for (i = 0; i < r->n_overlaps; i++) {
		r->numbered[i].worker = fleet_number(r->fleet,
		    r->overlaps[i].worker);
		r->numbered[i].blocks = r->overlaps[i].blocks;
	}
	return half_choose(r->half, r->numbered, r->n_overlaps, tokens,
	    r->block_size);
}

static int
decide_half(struct pass *r, struct kvr_prompt *p, uint64_t tokens, int64_t now,
    struct taken *t)
{
	struct half_choice c;
	int e = pass_match(r, p, now);

	if (e != KVR_OK)
		return e;
	c = choose_half(r, tokens);
	t->worker = c.worker;
	t->overlap_blocks = c.blocks;
	t->longest_blocks = c.longest;
	return kvr_observe(r->k, p, fleet_id(r->fleet, c.worker), now, 0,
	    NULL);
}

/* Round robin without engines: the overlap needs a match of its own. */
static int
decide_in_turn(struct pass *r, struct kvr_prompt *p, int64_t now,
    struct taken *t)
{
	uint64_t id = fleet_id(r->fleet, t->worker);
	size_t i;
	int e = pass_match(r, p, now);

	if (e != KVR_OK)
		return e;
	for (i = 0; i < r->n_overlaps; i++)
		if (r->overlaps[i].worker == id)
			t->overlap_blocks = r->overlaps[i].blocks;
	return kvr_observe(r->k, p, id, now, 0, NULL);
}

static int
decide_plain(struct pass *r, struct kvr_prompt *p, int64_t now,
    struct taken *t)
{
	struct kvr_decision d;
	int e;

	if (r->options.policy == PASS_ROUND_ROBIN)
		return decide_in_turn(r, p, now, t);
	d.size = sizeof(d);
	e = kvr_route(r->k, p, NULL, now, &d);
	if (e != KVR_OK)
		return e;
	t->worker = fleet_number(r->fleet, d.worker);
	t->overlap_blocks = d.overlap_blocks;
	return kvr_observe(r->k, p, d.worker, now, 0, NULL);
}

static int
decide_leased(struct pass *r, struct kvr_prompt *p, int64_t now,
    struct taken *t)
{
	struct kvr_decision d;
	int e;

	d.size = sizeof(d);
	if (r->options.policy == PASS_ROUND_ROBIN)
		e = kvr_lease_open_on(
		    r->k, p, NULL, fleet_id(r->fleet, t->worker), now, &d);
	else
		e = kvr_lease_open(r->k, p, NULL, now, &d);
	if (e != KVR_OK)
		return e;
	t->worker = fleet_number(r->fleet, d.worker);
	t->overlap_blocks = d.overlap_blocks;
	t->lease = d.lease;
	return d.lease == 0 ? KVR_OK : kvr_lease_commit(r->k, d.lease, now, 0);
}

/* Decides, and adds up the time of that alone. */
static int
decide_worker(struct pass *r, struct kvr_prompt *p, uint64_t tokens,
    int64_t now, struct taken *t)
{
	int64_t start;
	int e;

	if (r->options.policy == PASS_ROUND_ROBIN)
		t->worker = r->turn++ % r->options.workers;
	start = pass_clock();
	e = kvr_expire(r->k, now, UINT32_MAX, NULL);
	if (e == KVR_OK && r->options.policy == PASS_HALF)
		e = decide_half(r, p, tokens, now, t);
	else if (e == KVR_OK && r->engines == NULL)
		e = decide_plain(r, p, now, t);
	else if (e == KVR_OK)
		e = decide_leased(r, p, now, t);
	r->totals.decision_ns += pass_clock() - start;
	if (e == KVR_OK && r->options.policy != PASS_HALF)
		e = find_longest(r, p, now, t);
	return e;
}

/* ------------------------------------------------------------ following --- */

/* Passes the engine events up to now to the region. */
static int
catch_up(struct pass *r, int64_t now)
{
	struct engines_event event;
	int e;

	while (r->engines != NULL && engines_due(r->engines, now, &event)) {
		if (event.kind == ENGINES_FIRST_TOKEN)
			e = kvr_lease_first_token(
			    r->k, event.lease, event.at, 0);
		else
			e = kvr_lease_finish(
			    r->k, event.lease, NULL, event.at, 0);
		if (e == KVR_ELEASE)
			r->totals.overdue += event.kind == ENGINES_FINISH;
		else if (e != KVR_OK)
			return e;
	}
	return KVR_OK;
}

static int
start_engine(struct pass *r, const struct trace_request *q, int64_t now,
    const struct taken *t, uint64_t computed)
{
	int64_t wait;

	if (r->engines == NULL)
		return KVR_OK;
	wait = engines_start(r->engines, t->worker, now, computed);
	r->totals.first_token_ns += (double)wait;
	if (t->lease != 0 && engines_follow(r->engines, t->lease, now + wait,
	    q->output_length) != 0)
		return KVR_ENOMEM;
	return KVR_OK;
}

static uint64_t
account_choice(struct pass *r, const struct trace_request *q,
    const struct taken *t)
{
	uint64_t hit = (uint64_t)t->overlap_blocks * r->block_size;

	r->totals.tokens += q->tokens;
	r->totals.blocks += q->tokens / r->block_size;
	r->totals.hit_tokens += hit;
	r->totals.longest_tokens += (uint64_t)t->longest_blocks *
	    r->block_size;
	r->totals.checksum = half_checksum(r->totals.checksum, t->worker);
	r->workers[t->worker].requests++;
	r->workers[t->worker].computed_tokens += q->tokens - hit;
	return q->tokens - hit;
}

/* Only half and round robin can place a prompt without tokens. */
static int
pass_empty(struct pass *r, const struct trace_request *q, struct taken *t)
{
	r->n_overlaps = 0;
	if (r->options.policy == PASS_HALF)
		t->worker = choose_half(r, 0).worker;
	else if (r->options.policy == PASS_ROUND_ROBIN)
		t->worker = r->turn++ % r->options.workers;
	else
		r->totals.unrouted++;
	if (t->worker != UINT32_MAX)
		account_choice(r, q, t);
	return KVR_OK;
}

int
pass_request(struct pass *r, struct kvr_prompt *p,
    const struct trace_request *q, int64_t now, struct pass_choice *out)
{
	struct taken t = { UINT32_MAX, 0, 0, 0 };
	int e;

	now += r->since;
	e = catch_up(r, now);
	if (e == KVR_OK && q->tokens == 0)
		e = pass_empty(r, q, &t);
	else if (e == KVR_OK)
		e = decide_worker(r, p, q->tokens, now, &t);
	if (e == KVR_OK && q->tokens > 0)
		e = start_engine(r, q, now, &t, account_choice(r, q, &t));
	if (e != KVR_OK)
		return e;
	r->totals.requests++;
	out->worker = t.worker;
	out->overlap_blocks = t.overlap_blocks;
	out->prompt_blocks = (uint32_t)(q->tokens / r->block_size);
	return KVR_OK;
}

/* ------------------------------------------------------------ accessors --- */

const struct pass_options *
pass_options(const struct pass *r)
{
	return &r->options;
}

const struct pass_totals *
pass_totals(const struct pass *r)
{
	return &r->totals;
}

const struct pass_worker *
pass_workers(const struct pass *r)
{
	return r->workers;
}

const struct kvr *
pass_region(const struct pass *r)
{
	return r->k;
}
