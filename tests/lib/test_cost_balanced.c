/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cost_balanced.c - the cost in seconds, and the worker chosen by it.
 *
 * Each term by hand, then the cost is implemented a second time, straight from
 * its definition, and compared over random fleets. The cached, inserted and
 * observed tokens are taken from the library: test_expect.c, test_pressure.c
 * and test_observed.c are about these. The choice is compared with the costs
 * that kvr_candidates returns, whatever short cuts lead to it.
 */
#include "expect.h"
#include "id.h"
#include "mix.h"
#include "observed.h"
#include "pressure.h"
#include "route.h"

#include "inner.h"

#include <math.h>

enum { FLEET = 12, BLOCK_OF = 16, LEASES = 48, BRANCH = 40, LONGER = 16,
	DEPTH = 256 };

/* The running requests. */
static struct held {
	uint64_t lease, worker, tokens;
} leases[LEASES];
static uint64_t outside[FLEET]; /* blocks */

static struct kvr_request r;
static struct kvr_policy y;
static int64_t now;

static void
use_policy(void)
{
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
}

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 2 << 20;
	o.block_size = BLOCK_OF;
	o.max_workers = FLEET;
	o.ttl_ns = INT64_C(120) * 1000000000;
	o.lease_limit_ns = INT64_C(1) << 52;
	region_of(&o);
	now = 0;
	memset(leases, 0, sizeof(leases));
	memset(outside, 0, sizeof(outside));
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
	ck_assert_uint_eq(y.cost, KVR_COST_BALANCED);
}

/* ----------------------------------------------- the formula, again --- */

/* The sums over the fleet, for one question. */
static struct fleet_of {
	double workers, requests, reading, inserted, mean, hits, wait;
	/* workers that use more than i 256ths of it, and their load */
	uint32_t users[DEPTH];
	double busy[DEPTH];
} fleet;

static double
observed_by(double sum)
{
	return sum * observed_left(k, now);
}

static double
requests_of(const struct kvr_candidate *c)
{
	return (double)c->requests +
	    observed_by(observed_requests(k, id_slot(c->worker)));
}

static double
reading_of(const struct kvr_candidate *c)
{
	double tokens = observed_by(observed_reading(k, id_slot(c->worker)));
	uint32_t i;

	for (i = 0; i < LEASES; i++)
		if (leases[i].lease != 0 && leases[i].worker == c->worker)
			tokens += (double)leases[i].tokens;
	for (i = 0; i < FLEET; i++)
		if (id[i] == c->worker)
			tokens += (double)outside[i] * BLOCK_OF;
	return tokens;
}

static bool
may_take(const struct kvr_candidate *c)
{
	return c->verdict == KVR_ELIGIBLE || c->verdict == KVR_ABOVE_BOUND;
}

/* Returns the blocks in use, by leases or by recent observation. */
static uint32_t
used_of(const struct kvr_candidate *c, const struct kvr_overlap *o)
{
	bool observes = observed_requests(k, id_slot(c->worker)) *
	    observed_left(k, now) > 0.1;

	return observes && c->age_ns >= 0 &&
	    (double)c->age_ns * 1e-9 <= y.observed_seconds ? o->blocks
	    : o->active_blocks;
}

static void
look_at_users(const struct kvr_candidate *c, size_t n)
{
	struct kvr_overlap found[FLEET];
	size_t i, j, count;
	uint32_t depth;

	must(kvr_match(k, p, now, found, sizeof(found[0]), FLEET, &count) ==
	    KVR_OK);
	for (i = 0; i < n; i++)
		for (j = 0; j < count; j++) {
			if (!may_take(&c[i]) || c[i].worker != found[j].worker)
				continue;
			for (depth = 0; depth < (uint64_t)DEPTH *
			    used_of(&c[i], &found[j]) / p->blocks; depth++) {
				fleet.users[depth]++;
				fleet.busy[depth] += requests_of(&c[i]);
			}
		}
}

static void
look_at_fleet(const struct kvr_candidate *c, size_t n)
{
	size_t i;

	memset(&fleet, 0, sizeof(fleet));
	fleet.wait = INFINITY;
	for (i = 0; i < n; i++) {
		if (!may_take(&c[i]))
			continue;
		fleet.wait = fmin(fleet.wait, c[i].backlog);
		fleet.workers++;
		fleet.requests += requests_of(&c[i]);
		fleet.reading += reading_of(&c[i]);
		fleet.inserted += pressure_inserted(k, id_slot(c[i].worker));
	}
	fleet.mean = (fleet.reading + (double)p->units) / (fleet.requests + 1);
	fleet.hits = pressure_hits(k);
	if (p->blocks > 0)
		look_at_users(c, n);
}

/* Tokens that can be expected to be cached: test_expect.c's subject. */
static double
cached_on(uint64_t worker)
{
	static uint32_t places[2 * FLEET], base = 1;
	static struct kvr_overlap rows[2 * FLEET];
	static double costs[2 * FLEET];
	static struct found_end ends[2 * FLEET];
	static struct path_node nodes[PATH_NODES];
	static int64_t stamps[2 * FLEET];
	struct found_set set = { .room = 2 * FLEET, .rows = rows,
	    .found = rows, .places = places, .next_base = &base,
	    .costs = costs, .ends = ends, .nodes = nodes, .stamps = stamps };
	uint32_t slot = id_slot(worker);
	struct question t;

	match_overlaps(k, p, now, &set);
	must(route_begin(&t, k, p, &r, &set, now) == KVR_OK);
	return expect_blocks(&t, slot, found_of(&set, slot)) * t.block;
}

/* Blocks behind the cached ones that count as held, as others use them. */
static double
lent(double blocks)
{
	double at = blocks * DEPTH / p->blocks, sum = 0, part;
	uint32_t i;

	for (i = 0; i < DEPTH && p->blocks > 0; i++) {
		part = fmax(0, fmin(1, i + 1 - at));
		if (fleet.users[i] > 1)
			sum += part * fleet.busy[i] / fleet.requests *
			    (1 - pow(fleet.users[i], -2));
	}
	return sum * p->blocks / DEPTH;
}

static double
load_on(const struct kvr_candidate *c)
{
	return fmax(requests_of(c), reading_of(c) / fleet.mean);
}

static double
pressure_on(const struct kvr_candidate *c)
{
	return fleet.inserted > 0 ? 2 * fmax(fleet.hits * fleet.hits,
	    fmin(fleet.hits, 0.06)) *
	    pressure_inserted(k, id_slot(c->worker)) /
	    (fleet.inserted / fleet.workers) : 0;
}

static double
preferred(uint64_t worker)
{
	struct kvr_worker f = { .size = sizeof(f) };
	double sum = 0;
	uint32_t i;

	must(kvr_worker_get(k, worker, &f) == KVR_OK);
	for (i = 0; i < r.n_preferences; i++)
		if ((r.preferences[i].taints & f.taints) != 0)
			sum += r.preferences[i].weight;
	return exp(-tanh(sum));
}

static double
cost_of(const struct kvr_candidate *c)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	double load, held, fresh, cost = 0;

	must(kvr_worker_stats_get(k, c->worker, &s) == KVR_OK);
	load = r.stage == KVR_STAGE_PREFILL ? 0 : load_on(c) / 4;
	held = cached_on(c->worker) / BLOCK_OF;
	fresh = fmax(1, (double)p->units - (held + lent(held)) * BLOCK_OF);
	if (r.stage != KVR_STAGE_DECODE &&
	    (r.flags & KVR_IGNORE_PREFILL) == 0)
		cost = c->backlog + fresh / s.prefill_rate *
		    (1 + pressure_on(c) + load);
	cost += load * fleet.mean / 5 / s.prefill_rate;
	return cost * preferred(c->worker);
}

/* -------------------------------------------------- the worker chosen --- */

static uint64_t
lot_of(uint64_t worker)
{
	uint64_t end = p->blocks > 0 ? p->sequence[p->blocks - 1] : p->root;

	return mix(mix(end ^ mix(p->units ^ p->tail_digest)) ^
	    k->loads.identity[id_slot(worker)]);
}

static bool
near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

/* Is a before b among those with costs near the least? */
static bool
goes_before(const struct kvr_candidate *a, const struct kvr_candidate *b)
{
	if (!near(load_on(a), load_on(b)))
		return load_on(a) < load_on(b);
	if (a->requests != b->requests)
		return a->requests < b->requests;
	if (a->prefill_tokens != b->prefill_tokens)
		return a->prefill_tokens < b->prefill_tokens;
	if (a->decode_blocks != b->decode_blocks)
		return a->decode_blocks < b->decode_blocks;
	return lot_of(a->worker) < lot_of(b->worker);
}

static struct counted {
	uint64_t questions, ties, near, doubtful, none, bounded, lent, pressed;
} counted;

static size_t
candidates(struct kvr_candidate *c)
{
	size_t n;

	must(kvr_candidates(k, p, &r, now, c, sizeof(*c), FLEET, &n) ==
	    KVR_OK);
	must(n <= FLEET);
	return n;
}

static double
weight_of(uint64_t worker)
{
	struct kvr_worker f = { .size = sizeof(f) };

	must(kvr_worker_get(k, worker, &f) == KVR_OK);
	return f.weight;
}

/* The verdicts name the workers above the bound. */
static void
ck_bound(const struct kvr_candidate *c, size_t n)
{
	double weights = 0, most;
	bool above[FLEET] = { false };
	uint32_t below = 0;
	size_t i;

	for (i = 0; i < n; i++)
		weights += may_take(&c[i]) ? weight_of(c[i].worker) : 0;
	for (i = 0; i < n; i++) {
		if (!may_take(&c[i]))
			continue;
		most = y.balanced_bound * (fleet.requests + 1) *
		    weight_of(c[i].worker) / weights + 3;
		above[i] = y.balanced_bound > 0 &&
		    requests_of(&c[i]) + 1 > most * (1 + 1e-9);
		below += !above[i];
	}
	for (i = 0; i < n; i++) {
		must((c[i].verdict == KVR_ABOVE_BOUND) ==
		    (above[i] && below > 0));
		counted.bounded += c[i].verdict == KVR_ABOVE_BOUND;
	}
}

static void
ck_choice(const struct kvr_candidate *c, size_t n)
{
	const struct kvr_candidate *best = NULL;
	struct kvr_decision d = { .size = sizeof(d) };
	double least = INFINITY;
	uint32_t shared = 0, as_near = 0;
	size_t i;
	int rc = kvr_route(k, p, &r, now, &d);

	if (fleet.workers == 0) {
		must(rc != KVR_OK);
		counted.none++;
		return;
	}
	must(rc == KVR_OK && d.eligible == fleet.workers);
	for (i = 0; i < n; i++)
		if (c[i].verdict == KVR_ELIGIBLE)
			least = fmin(least, c[i].cost);
	/* a wait that all share makes no difference */
	least += 0.01 * fmax(0, least - fleet.wait);
	for (i = 0; i < n; i++) {
		if (c[i].verdict != KVR_ELIGIBLE || c[i].cost > least)
			continue;
		as_near++;
		if (best != NULL && near(load_on(&c[i]), load_on(best)))
			shared++;
		else if (best == NULL || load_on(&c[i]) < load_on(best))
			shared = 1;
		if (best == NULL || goes_before(&c[i], best))
			best = &c[i];
	}
	must(d.worker == best->worker && d.cost == best->cost);
	must(d.reason == (shared > 1 ? KVR_REASON_TIE : KVR_REASON_COST));
	must(d.overlap_tokens == best->overlap_tokens);
	counted.ties += shared > 1;
	counted.near += as_near > shared;
}

/* All about the current prompt and request. */
static void
ck_question(void)
{
	struct kvr_candidate c[FLEET];
	size_t n = candidates(c), i;
	double want;

	look_at_fleet(c, n);
	for (i = 0; i < n && fleet.workers > 0; i++) {
		want = cost_of(&c[i]);
		if (!near(c[i].cost, want))
			ck_abort_msg("cost %.15g, must be %.15g (KVR_SEED=%"
			    PRIu64 ")", c[i].cost, want, seed);
		counted.doubtful += c[i].overlap_blocks > 0 &&
		    c[i].overlap_tokens + 1 < c[i].overlap_blocks * BLOCK_OF;
		counted.lent += lent(c[i].overlap_blocks) > 0;
		counted.pressed += pressure_on(&c[i]) > 0.01;
	}
	ck_bound(c, n);
	ck_choice(c, n);
	counted.questions++;
}

/* ------------------------------------------------------------- by hand --- */

static void
set_facts(uint32_t worker, double rate, uint32_t retain)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.prefill_rate = rate;
	f.retain = retain;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

static void
set_load(uint32_t worker, uint64_t prefill, uint64_t blocks, uint64_t requests)
{
	struct kvr_load load = { .size = sizeof(load),
	    .prefill_tokens = prefill, .active_blocks = blocks,
	    .requests = requests };

	ck_assert_int_eq(kvr_worker_set_load(k, id[worker], 0, &load), KVR_OK);
}

/* Makes that many workers, which prefill 1000 tokens a second. */
static void
fleet_of(uint32_t workers)
{
	uint32_t i;

	for (i = 0; i < FLEET; i++)
		if (i < workers)
			set_facts(i, 1000, KVR_RETAIN_TTL);
		else
			ck_assert_int_eq(kvr_worker_remove(k, id[i]), KVR_OK);
}

static double
cost_on(uint32_t worker)
{
	struct kvr_candidate c[FLEET];
	size_t n = candidates(c), i;

	for (i = 0; i < n; i++)
		if (c[i].worker == id[worker])
			return c[i].cost;
	ck_abort_msg("no such worker");
}

#define ck_cost(worker, want) do { \
	double is_ = cost_on(worker), want_ = (want); \
	if (!near(is_, want_)) \
		ck_abort_msg("%s: %.12g, not %.12g", #want, is_, want_); \
} while (0)

START_TEST(new_tokens)
{
	fleet_of(2);
	set_facts(1, 4000, KVR_RETAIN_TTL);
	say_long(1600, 0, 1);
	ck_cost(0, 1.6);
	ck_cost(1, 0.4);
	r.flags = KVR_IGNORE_PREFILL;
	ck_cost(0, 0);
	r.flags = 0;
	/* an incomplete block is prefilled too; of all that is held, one is */
	finish(reserved(0, 0), 0);
	ck_cost(0, 0.001);
	say_long(1615, 0, 1);
	ck_cost(0, 0.015);
	ck_cost(1, 1.615 / 4);
}
END_TEST

START_TEST(booked_tokens)
{
	fleet_of(2);
	set_load(0, 500, 0, 0);
	say_long(1600, 0, 1);
	ck_cost(0, 0.5 + 1.6);
	ck_cost(1, 1.6);
	r.stage = KVR_STAGE_DECODE;
	ck_cost(0, 0);
}
END_TEST

/* Requests, or their prompts if these are longer than the mean. */
START_TEST(what_runs)
{
	fleet_of(2);
	say_long(1600, 0, 1);
	/* the mean of four prompts; three have an unknown length */
	set_load(0, 0, 0, 3);
	ck_cost(0, 1.6 + 3 / 4.0 * (1.6 + 0.4 / 5));
	ck_cost(1, 1.6);
	/* 6400 tokens: 1.6 times the mean of two */
	set_load(0, 0, 400, 1);
	ck_cost(0, 1.6 + 1.6 / 4 * (1.6 + 4.0 / 5));
	r.stage = KVR_STAGE_PREFILL;
	ck_cost(0, 1.6);
	r.stage = KVR_STAGE_DECODE;
	ck_cost(0, 1.6 / 4 * 4.0 / 5);
	r.stage = KVR_STAGE_ALL;
	r.flags = KVR_IGNORE_PREFILL;
	ck_cost(0, 1.6 / 4 * 4.0 / 5);
	/* a lease is a request, and its prompt */
	r.flags = 0;
	set_load(0, 0, 0, 0);
	say_long(4800, 0, 2);
	(void)reserved(1, 0);
	say_long(1600, 0, 1);
	ck_cost(1, 4.8 + 1.6 + 4.8 / 3.2 / 4 * (1.6 + 3.2 / 5));
}
END_TEST

/* Half of the prompt is new, and all of that is on worker 0. */
START_TEST(what_comes_in_drives_out)
{
	fleet_of(4);
	say_long(1600, 0, 2);
	finish(reserved(0, 0), 0);
	say_long(1600, 0, 1);
	ck_cost(0, 1.6);
	say_long(1600, 0, 2);
	finish(reserved(0, 0), 0);
	say_long(1600, 0, 1);
	ck_cost(0, 1.6 * (1 + 2 * 0.25 * 4));
	ck_cost(1, 1.6);
	r.stage = KVR_STAGE_PREFILL;
	ck_cost(0, 1.6 * (1 + 2 * 0.25 * 4));
	r.stage = KVR_STAGE_ALL;
	/* of 4000 tokens 2400 are new, a third of them on worker 1 */
	say_long(800, 0, 3);
	finish(reserved(1, 0), 0);
	say_long(1600, 0, 1);
	ck_cost(0, 1.6 * (1 + 2 * 0.16 * 4 * 2 / 3));
	ck_cost(1, 1.6 * (1 + 2 * 0.16 * 4 / 3));
	ck_cost(2, 1.6);
	/* only two of the permitted workers have taken any */
	r.n_excluded = 2;
	r.excluded[0] = id[2];
	r.excluded[1] = id[3];
	ck_cost(0, 1.6 * (1 + 2 * 0.16 * 2 * 2 / 3));
}
END_TEST

/* A part that n requests use counts as held by 1 - 1 / n^2 of that load. */
START_TEST(a_common_prefix_is_lent)
{
	double n, share;
	uint32_t i;

	fleet_of(FLEET);
	r.stage = KVR_STAGE_PREFILL; /* no load, so that this is all */
	say_long(800, 1600, 1);
	finish(reserved(10, 0), 0);
	for (i = 0; i < 8; i++) {
		n = i + 1;
		/* this frees the cache, as only used blocks are on record */
		say_long(3200, 3200, 2);
		finish(reserved(9, 0), 0);
		say_long(1600, 1600, 1);
		(void)reserved(i, 0);
		say_long(3200, 1600, 3);
		k->region->asked = 0; /* nothing of this traffic is cached */
		set_load(FLEET - 1, 0, 0, 0);
		share = 1 - 1 / (n * n);
		ck_cost(FLEET - 1, 3.2 - 1.6 * share);
		ck_cost(10, 3.2 - 0.8 - 0.8 * share);
		ck_assert(near(cost_on(0) - 1.6, 1.6));
		/* twelve more run elsewhere */
		set_load(FLEET - 1, 0, 0, 12);
		ck_cost(FLEET - 1, 3.2 - 1.6 * n / (n + 12) * share);
	}
	/* of two that may be chosen one uses it; of two, both */
	r.n_excluded = FLEET - 2;
	for (i = 0; i < FLEET - 2; i++)
		r.excluded[i] = id[i < 7 ? i : i + 1];
	ck_cost(FLEET - 1, 3.2);
	r.excluded[0] = id[FLEET - 1];
	ck_cost(FLEET - 1, 3.2 - 1.2);
}
END_TEST

/* An overlap given twice, or of a worker that is gone, counts once or not. */
START_TEST(common_by_workers_and_not_by_overlaps)
{
	struct kvr_overlap given[FLEET];
	struct kvr_decision d = { .size = sizeof(d) }, once = d;
	uint32_t i;

	fleet_of(FLEET);
	for (i = 0; i < FLEET; i++)
		set_facts(i, 1000 + 20 * i, KVR_RETAIN_TTL);
	say_long(1600, 1600, 1);
	memset(given, 0, sizeof(given));
	for (i = 0; i < FLEET; i++) {
		given[i].worker = id[0];
		given[i].blocks = given[i].active_blocks = 100;
	}
	r.n_excluded = 1;
	for (i = 0; i < 2; i++) {
		r.excluded[0] = id[i];
		ck_assert_int_eq(kvr_choose(k, p, &r, given, sizeof(given[0]),
		    1, now, &once), KVR_OK);
		ck_assert(near(once.cost, i == 0 ? 1.6 / 1.22 : 0.001));
		ck_assert_int_eq(kvr_choose(k, p, &r, given, sizeof(given[0]),
		    FLEET, now, &d), KVR_OK);
		ck_assert(d.worker == once.worker && d.cost == once.cost);
	}
	/* the largest slot that an id can name: no such worker */
	for (i = 1; i < FLEET; i++)
		given[i].worker = id[0] | (uint64_t)ID_SLOT << 2;
	ck_assert_int_eq(kvr_choose(k, p, &r, given, sizeof(given[0]), FLEET,
	    now, &d), KVR_OK);
	ck_assert(d.worker == once.worker && d.cost == once.cost);
	/* two use more than there is */
	r.n_excluded = 0;
	given[1] = given[0];
	given[1].worker = id[1];
	given[0].active_blocks = given[1].active_blocks = UINT32_MAX;
	ck_assert_int_eq(kvr_choose(k, p, &r, given, sizeof(given[0]), 2, now,
	    &d), KVR_OK);
	ck_assert(d.worker == id[1] && near(d.cost, 0.001 / 1.02));
}
END_TEST

/* A prefix that is probably evicted no longer lowers the cost. */
START_TEST(doubt_decides)
{
	fleet_of(2);
	set_facts(0, 1000, KVR_RETAIN_FEEDBACK);
	say_long(1600, 1600, 1);
	finish(reserved(0, 0), 0);
	say_long(1600, 800, 1);
	finish(reserved(1, 0), 0);
	say_long(1600, 1600, 1);
	ck_question();
	ck_assert(cost_on(0) < cost_on(1));
	note_age(0, 0, false, 1e6);
	note_age(0, 1600, false, 1e6);
	ck_question();
	ck_assert(cost_on(0) > cost_on(1));
}
END_TEST

START_TEST(preferences)
{
	struct kvr_worker f = { .size = sizeof(f) };

	fleet_of(2);
	ck_assert_int_eq(kvr_worker_get(k, id[0], &f), KVR_OK);
	f.taints = 6;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	say_long(1000, 0, 1);
	r.n_preferences = 3;
	r.preferences[0] = (struct kvr_preference){ 2, 0.5 };
	r.preferences[1] = (struct kvr_preference){ 4, -1.5 };
	r.preferences[2] = (struct kvr_preference){ 1, 9 };
	ck_cost(0, exp(tanh(1)));
	ck_cost(1, 1);
}
END_TEST

/* A request that is only observed counts less and less. */
START_TEST(what_was_observed)
{
	double left = exp(-0.5);

	fleet_of(2);
	say_long(1600, 0, 2);
	ck_assert_uint_eq(observed(0, 0), 100);
	say_long(800, 0, 1);
	/* half of the prompt, and a request of twice the mean */
	ck_cost(0, 1.6 + 0.8 + 1600 / 1200.0 / 4 * (0.8 + 1.2 / 5));
	ck_cost(1, 0.8);
	now = INT64_C(5000000000);
	ck_cost(0, 0.8 + left / ((1600 * left + 800) / (1 + left)) * 1600 / 4 *
	    (0.8 + (1600 * left + 800) / (1 + left) / 1000 / 5));
	r.stage = KVR_STAGE_PREFILL;
	ck_cost(0, 0.8);
}
END_TEST

/* Costs within a hundredth are equal: then the least loaded, then a lot. */
START_TEST(near_is_a_hundredth)
{
	struct kvr_decision d = { .size = sizeof(d) };
	static const double rates[] = { 1000, 991, 989, 900 };
	uint32_t count[4] = { 0 }, i, kind;

	fleet_of(4);
	for (i = 0; i < 4; i++)
		set_facts(i, rates[i], KVR_RETAIN_TTL);
	r.stage = KVR_STAGE_PREFILL; /* loads cost nothing */
	for (kind = 0; kind < 200; kind++) {
		say_long(1000, 0, kind);
		ck_assert_int_eq(kvr_route(k, p, &r, now, &d), KVR_OK);
		ck_assert_uint_eq(d.reason, KVR_REASON_TIE);
		for (i = 0; d.worker != id[i]; i++)
			ck_assert_uint_lt(i, 3);
		count[i]++;
	}
	ck_assert(count[0] > 60 && count[1] > 60);
	ck_assert_uint_eq(count[0] + count[1], 200);
	set_load(0, 0, 0, 1);
	ck_assert_int_eq(kvr_route(k, p, &r, now, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[1]);
	ck_assert_uint_eq(d.reason, KVR_REASON_COST);
	ck_assert(near(d.cost, 1000 / 991.0));
	/* as many requests, of longer prompts */
	set_load(1, 0, 1000, 1);
	ck_assert_int_eq(kvr_route(k, p, &r, now, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[0]);
	/* the share is of the difference: all have to wait for 10 s */
	for (i = 0; i < 4; i++)
		set_load(i, (uint64_t)(10 * rates[i]), 0, i == 0);
	ck_assert_int_eq(kvr_route(k, p, &r, now, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[1]);
	ck_assert(near(d.cost, 10 + 1000 / 991.0));
	set_load(1, 9950, 0, 0);
	ck_assert_int_eq(kvr_route(k, p, &r, now, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[0]);
}
END_TEST

/* A load of 784 times 1 / 784 is less than 1. */
START_TEST(a_bit_lost_decides_no_tie)
{
	struct kvr_decision d = { .size = sizeof(d) };

	fleet_of(2);
	r.stage = KVR_STAGE_PREFILL;
	set_load(0, 0, 784 / BLOCK_OF, 0);
	set_load(1, 0, 0, 1);
	say_long(784, 0, 1);
	ck_assert_int_eq(kvr_route(k, p, &r, now, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[0]);
	ck_assert_uint_eq(d.reason, KVR_REASON_TIE);
}
END_TEST

/* -------------------------------------------------------------- random --- */

static void
any_facts(uint32_t worker)
{
	struct kvr_worker f;

	must(kvr_worker_init(&f, sizeof(f)) == KVR_OK);
	f.prefill_rate = pick(2) == 0 ? 0 : 500 + pick(40000);
	f.weight = pick(3) == 0 ? 0.5 * (1 + pick(6)) : 1;
	f.retain = pick(3) == 0 ? KVR_RETAIN_TTL : KVR_RETAIN_AUTO;
	f.capacity_tokens = pick(4) == 0 ? 1000 + pick(20000) : 0;
	if (pick(3) != 0 && f.capacity_tokens == 0)
		f.retain = KVR_RETAIN_FEEDBACK;
	f.eviction = pick(2);
	f.block_tokens = pick(3) == 0 ? 1 + pick(100) : 0;
	f.taints = pick(8);
	f.role = pick(8) == 0 ? 1 + pick(2) : KVR_ROLE_BOTH;
	f.state = pick(12) == 0 ? KVR_STATE_DRAINING : KVR_STATE_UP;
	must(kvr_worker_set(k, id[worker], &f) == KVR_OK);
}

static void
any_load(uint32_t worker)
{
	outside[worker] = pick(2) * pick(300);
	set_load(worker, pick(2) * pick(3000), outside[worker],
	    pick(2) * pick(5));
}

/* Few stems, many ends. */
static void
any_prompt(void)
{
	static uint32_t token[BRANCH * BLOCK_OF * LONGER];
	uint32_t n = 1 + pick(BRANCH * BLOCK_OF * (pick(4) == 0 ? LONGER : 1));
	uint32_t i, kind = pick(2);

	for (i = 0; i < n; i++) {
		if (i % BLOCK_OF == 0 && pick(10) == 0)
			kind = kind * 2 + 1 + pick(2);
		token[i] = kind;
	}
	must(kvr_prompt_set_tokens(p, NULL, token, n) == KVR_OK);
}

static void
any_request(void)
{
	uint32_t i;

	must(kvr_request_init(&r, sizeof(r)) == KVR_OK);
	if (pick(3) != 0)
		return;
	r.flags = (pick(4) == 0 ? KVR_IGNORE_PREFILL : 0u) |
	    (pick(4) == 0 ? KVR_IGNORE_REUSE : 0u) |
	    (pick(4) == 0 ? KVR_NO_FIRST_TOKEN : 0u);
	r.stage = pick(4) == 0 ? pick(3) : KVR_STAGE_ALL;
	r.overlap_credit = (double)pick(4) - 1;
	r.n_preferences = pick(3);
	for (i = 0; i < r.n_preferences; i++) {
		r.preferences[i].taints = 1 + pick(7);
		r.preferences[i].weight = pick(9) * 0.5 - 2;
	}
	r.n_excluded = pick(3);
	for (i = 0; i < r.n_excluded; i++)
		r.excluded[i] = id[pick(FLEET)];
	if (pick(20) == 0)
		r.required_taints = 1 + pick(7);
}

static void
any_reserve(struct held *held)
{
	struct kvr_decision d = { .size = sizeof(d) };

	if (kvr_lease_open(k, p, &r, now, &d) != KVR_OK)
		return;
	*held = (struct held){ d.lease, d.worker, d.prompt_tokens };
	if (held->lease != 0 && pick(4) != 0)
		commit(held->lease, now);
}

/* Reports that teach and reports that lie. */
static void
any_end(struct held *held)
{
	struct kvr_report report = { .size = sizeof(report) };

	report.kind = pick(3);
	report.cached_tokens = pick(2) == 0 ? pick(700) : pick(5) * BLOCK_OF;
	report.completion_tokens = pick(300);
	if (pick(4) == 0)
		give_up(held->lease, now);
	else
		must(kvr_lease_finish(k, held->lease, &report, now, 0) ==
		    KVR_OK);
	held->lease = 0;
}

/* 1: nothing is observed, so that more loads are equal. */
static uint32_t first_call;

static void
any_call(void)
{
	struct held *held = &leases[pick(LEASES)];
	uint32_t worker = pick(FLEET);

	now += pick(3) == 0 ? 0 : (int64_t)pick(400) * 1000000;
	any_prompt();
	any_request();
	switch (first_call + pick(12 - first_call)) {
	case 0:
		(void)observed(worker, now);
		break;
	case 1:
		any_facts(worker);
		break;
	case 2:
		any_load(worker);
		break;
	case 3:
		note_age(worker, (uint64_t)pick(1000) << pick(8),
		    pick(2) == 0, pick(10000));
		break;
	default:
		if (held->lease == 0)
			any_reserve(held);
		else if (pick(3) == 0)
			must(kvr_lease_first_token(k, held->lease, now, 0) ==
			    KVR_OK);
		else
			any_end(held);
	}
}

START_TEST(as_the_formula_says)
{
	uint64_t n = test_amount(3000), i;
	uint32_t round;

	by_chance();
	memset(&counted, 0, sizeof(counted));
	for (round = 0; round < 4; round++) {
		region_end();
		setup();
		y.balanced_bound = round == 0 ? 2
		    : 0.5 * ((round + pick(2)) % 4);
		y.observed_seconds = round == 0 ? 10 : 1 + pick(100);
		first_call = round == 3;
		use_policy();
		for (i = 0; i < FLEET; i++)
			any_facts((uint32_t)i);
		for (i = 0; i < n; i++) {
			any_call();
			any_prompt();
			any_request();
			ck_question();
		}
	}
	if (n > 1000) {
		ck_assert_uint_gt(counted.ties, 10);
		ck_assert_uint_gt(counted.near, 100);
		ck_assert_uint_gt(counted.doubtful, 1000);
		ck_assert_uint_gt(counted.none, 0);
		ck_assert_uint_gt(counted.bounded, 1000);
		ck_assert_uint_gt(counted.lent, 1000);
		ck_assert_uint_gt(counted.pressed, 1000);
	}
}
END_TEST

/* Workers are equal in everything but the tie breakers. */
START_TEST(ties)
{
	uint64_t n = test_amount(400), i;
	uint32_t worker;

	by_chance();
	memset(&counted, 0, sizeof(counted));
	for (i = 0; i < n; i++) {
		for (worker = 0; worker < FLEET; worker++) {
			outside[worker] = pick(3);
			set_load(worker, 0, outside[worker], 1 + pick(2));
		}
		any_prompt();
		r.stage = KVR_STAGE_PREFILL;
		ck_question();
	}
	ck_assert_uint_gt(counted.ties, n / 2);
	ck_assert_uint_gt(counted.near, n / 2);
}
END_TEST

/* ------------------------------------------------------ always a number --- */

static double
any_number(double least, double most)
{
	static const double odd[] = { 0, 1e-300, 5e-324, 1e-9, 1, 1e15, 1e300,
	    1.7e308 };
	double x = odd[pick(sizeof(odd) / sizeof(odd[0]))];

	return x < least ? least : x > most ? most : x;
}

static void
odd_worker(uint32_t worker)
{
	static const uint64_t tokens[] = { 0, 1, UINT64_C(1) << 53,
	    INT64_MAX / 2 / KVR_LOAD_SOURCES };
	struct kvr_load load = { .size = sizeof(load) };
	struct kvr_worker f;

	must(kvr_worker_init(&f, sizeof(f)) == KVR_OK);
	f.prefill_rate = any_number(0, 1e15);
	f.weight = any_number(1e-6, 1e6);
	f.retain = pick(2) * KVR_RETAIN_FEEDBACK;
	f.taints = pick(4);
	must(kvr_worker_set(k, id[worker], &f) == KVR_OK);
	load.prefill_tokens = tokens[pick(4)];
	load.active_blocks = tokens[pick(4)];
	load.requests = pick(2) * (INT32_MAX / KVR_LOAD_SOURCES);
	must(kvr_worker_set_load(
		 k, id[worker], pick(KVR_LOAD_SOURCES), &load) == KVR_OK);
}

/* Each cost is one, and the worker chosen is eligible. */
static void
ck_finite(void)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_candidate c[FLEET];
	size_t n = candidates(c), i;

	for (i = 0; i < n; i++) {
		must(c[i].cost >= 0 && c[i].cost <= 1e300);
	}
	must(kvr_route(k, p, &r, now, &d) == KVR_OK);
	must(d.cost >= 0 && d.cost <= 1e300);
	for (i = 0; i < n && c[i].worker != d.worker; i++)
		continue;
	must(i < n && c[i].cost == d.cost && c[i].verdict == KVR_ELIGIBLE);
}

START_TEST(always_a_number)
{
	uint64_t n = test_amount(4000), i;
	struct held *held;
	uint32_t j;

	by_chance();
	for (i = 0; i < n; i++) {
		held = &leases[i % LEASES];
		y.balanced_bound = any_number(0, 1e15);
		y.observed_seconds = any_number(1e-3, 1e6);
		y.temperature = pick(3) == 0 ? any_number(0, 1e308) : 0;
		use_policy();
		odd_worker(pick(FLEET));
		now += pick(2) == 0 ? (int64_t)pick(1000) * 1000000000 : 1;
		any_prompt();
		must(kvr_request_init(&r, sizeof(r)) == KVR_OK);
		r.seed = i;
		r.n_preferences = pick(3);
		for (j = 0; j < r.n_preferences; j++) {
			r.preferences[j].taints = 3;
			r.preferences[j].weight = (pick(2) == 0 ? 1 : -1) *
			    any_number(0, 1.7e308);
		}
		ck_finite();
		if (held->lease != 0)
			any_end(held);
		else
			any_reserve(held);
		if (pick(4) == 0)
			(void)observed(pick(FLEET), now);
		ck_finite();
	}
}
END_TEST

/* Eight bytes that a choice reads of a worker, of the fleet or the policy. */
static void *
any_place(void)
{
	const struct loads *l = &k->loads;
	struct region *g = k->region;
	uint32_t slot = pick(FLEET);

	switch (pick(14)) {
	case 0: return &g->policy.balanced_bound;
	case 1: return &g->policy.observed_seconds;
	case 2: return &g->inserted;
	case 3: return &g->asked;
	case 4: return &g->inserted_since;
	case 5: return &g->observed_since;
	case 6: return &l->pace[slot];
	case 7: return &l->reading[slot];
	case 8: return &l->booked[slot];
	case 9: return &l->silent_until[slot];
	case 10: return &l->inserted[slot];
	case 11: return &l->observed_requests[slot];
	case 12: return &l->observed_reading[slot];
	default: return &l->requests[slot / 2 * 2];
	}
}

/* NaN, negative, huge, or any bits. */
static uint64_t
any_bits(void)
{
	static const double odd[] = { (double)NAN, -1, -1e300,
	    (double)INFINITY, -(double)INFINITY, 1e300, -1600, 5e-324 };
	uint64_t bits = plain_random(&chance);

	if (pick(3) == 0)
		memcpy(&bits, &odd[pick(8)], sizeof(bits));
	return bits;
}

START_TEST(damaged)
{
	enum { AT_ONCE = 3 };
	uint64_t n = test_amount(6000), i, bits, was[AT_ONCE];
	void *place[AT_ONCE];
	uint32_t j;

	by_chance();
	for (i = 0; i < FLEET; i++) {
		any_prompt();
		(void)observed((uint32_t)i, 0);
		any_reserve(&leases[i]);
	}
	/* the first and the last cannot be chosen */
	r.n_excluded = 2;
	r.excluded[0] = id[0];
	r.excluded[1] = id[FLEET - 1];
	for (i = 0; i < n; i++) {
		for (j = 0; j < AT_ONCE; j++) {
			place[j] = any_place();
			memcpy(&was[j], place[j], sizeof(was[j]));
			bits = any_bits();
			memcpy(place[j], &bits, sizeof(bits));
		}
		any_prompt();
		r.temperature = pick(2) == 0 ? 0.5 : -1;
		ck_finite();
		for (j = AT_ONCE; j-- > 0;)
			memcpy(place[j], &was[j], sizeof(was[j]));
	}
}
END_TEST

/* ------------------------------------------------------------- drawing --- */

/* By temperature a worker is drawn as often as its cost demands. */
START_TEST(drawn_by_cost)
{
	uint32_t count[3] = { 0 }, i, n = 3000;
	struct kvr_decision d = { .size = sizeof(d) };
	double cost[3], sum = 0, share;

	fleet_of(3);
	for (i = 0; i < 3; i++)
		set_facts(i, 1000 << i, KVR_RETAIN_TTL);
	y.temperature = 0.5;
	use_policy();
	say_long(1600, 0, 1);
	for (i = 0; i < 3; i++)
		cost[i] = cost_on(i);
	for (r.seed = 0; r.seed < n; r.seed++) {
		ck_assert_int_eq(kvr_route(k, p, &r, now, &d), KVR_OK);
		for (i = 0; d.worker != id[i]; i++)
			ck_assert_uint_lt(i, 3);
		ck_assert(d.cost == cost[i]);
		ck_assert_uint_eq(d.reason, KVR_REASON_SAMPLED);
		count[i]++;
	}
	for (i = 0; i < 3; i++)
		sum += exp(-(cost[i] - cost[2]) / (cost[0] - cost[2]) / 0.5);
	for (i = 0; i < 3; i++) {
		share = exp(-(cost[i] - cost[2]) / (cost[0] - cost[2]) / 0.5) /
		    sum;
		/* five standard deviations */
		ck_assert(fabs(count[i] - n * share) <
		    5 * sqrt(n * share * (1 - share)));
	}
}
END_TEST

Suite *suite_cost_balanced(void);

Suite *
suite_cost_balanced(void)
{
	Suite *s = suite_create("cost_balanced");
	TCase *t = tcase_create("cost_balanced");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, new_tokens);
	tcase_add_test(t, booked_tokens);
	tcase_add_test(t, what_runs);
	tcase_add_test(t, what_comes_in_drives_out);
	tcase_add_test(t, a_common_prefix_is_lent);
	tcase_add_test(t, common_by_workers_and_not_by_overlaps);
	tcase_add_test(t, doubt_decides);
	tcase_add_test(t, preferences);
	tcase_add_test(t, what_was_observed);
	tcase_add_test(t, near_is_a_hundredth);
	tcase_add_test(t, a_bit_lost_decides_no_tie);
	tcase_add_test(t, as_the_formula_says);
	tcase_add_test(t, ties);
	tcase_add_test(t, always_a_number);
	tcase_add_test(t, damaged);
	tcase_add_test(t, drawn_by_cost);
	return s;
}
