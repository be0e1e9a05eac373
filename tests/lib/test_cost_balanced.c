/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cost_balanced.c - the cost in seconds, and the worker chosen by it.
 *
 * The cost is implemented here a second time, straight from its definition:
 * queued, new and decoding work, each in seconds of the worker. Its inputs come
 * from the public calls where they are visible there; arrivals are counted
 * here. The choice is compared with the least of the costs that kvr_candidates
 * returns, whatever short cuts lead to it.
 */
#include "expect.h"
#include "inner.h"
#include "mix.h"
#include "rate.h"
#include "route.h"

#include <math.h>

enum { FLEET = 12, BLOCK_OF = 16, LEASES = 48, BRANCH = 40 };

/* Arrivals, as all opened leases add up to. */
static double arrived;
static int64_t arrived_at;

static struct kvr_request r;
static uint64_t leases[LEASES];
static int64_t now;

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 2 << 20;
	o.block_size = BLOCK_OF;
	o.max_workers = FLEET;
	o.ttl_ns = INT64_C(120) * 1000000000;
	region_of(&o);
	arrived = 0;
	arrived_at = now = 0;
	memset(leases, 0, sizeof(leases));
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
}

static void
set_policy(double decode, double prior, double temperature)
{
	struct kvr_policy y;

	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
	y.cost = KVR_COST_BALANCED;
	y.balanced_decode = decode;
	y.balanced_prior = prior;
	y.temperature = temperature;
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
}

/* ----------------------------------------------- the formula, again --- */

static double
seconds_since(int64_t then)
{
	return now > then ? (double)(now - then) / 1e9 : 0;
}

static void
count_arrival(const struct kvr_decision *d)
{
	bool prefills = (r.flags & KVR_IGNORE_PREFILL) == 0 &&
	    r.stage != KVR_STAGE_DECODE;

	if (!prefills || d->lease == 0)
		return;
	arrived = arrived * exp(-seconds_since(arrived_at) / 60) +
	    (double)(d->prompt_tokens - d->overlap_tokens);
	arrived_at = now;
}

/* Workers that accept such requests, if not this one. */
static uint32_t
takers(void)
{
	struct kvr_worker f = { .size = sizeof(f) };
	uint32_t n = 0;
	uint64_t w = 0;

	for (;;) {
		must(kvr_worker_next(k, &w) == KVR_OK);
		if (w == 0)
			return n > 0 ? n : 1;
		must(kvr_worker_get(k, w, &f) == KVR_OK);
		n += f.state == KVR_STATE_UP &&
		    (f.role == KVR_ROLE_BOTH || f.role == r.stage);
	}
}

static double
lambda_of(void)
{
	uint32_t w = takers();
	double tokens = arrived * exp(-seconds_since(arrived_at) / 60);
	double rho = fmin(0.99, tokens / 60 / (w * rate_fleet(k)));

	return fmin(33, 2 / (1 - rho));
}

/* Tokens that can be expected to be cached: test_expect.c's subject. */
static double
cached_on(uint64_t worker)
{
	static uint32_t places[2 * FLEET], base = 1;
	static struct kvr_overlap rows[2 * FLEET];
	struct found_set set = { .room = 2 * FLEET, .rows = rows,
	    .found = rows, .places = places, .next_base = &base };
	uint32_t slot = id_slot(worker);
	struct question t;

	match_overlaps(k, p, now, &set);
	must(route_begin(&t, k, p, &r, &set, now) == KVR_OK);
	return expect_blocks(&t, slot, found_of(&set, slot)) * t.block;
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
cost_of(const struct kvr_candidate *c, double decode)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	bool decodes = r.stage == KVR_STAGE_DECODE;
	double rate, fresh, dec, cost;

	must(kvr_worker_stats(k, c->worker, &s) == KVR_OK);
	rate = s.prefill_rate;
	dec = (double)c->decode_blocks + c->new_decode_blocks;
	cost = decode * dec * BLOCK_OF / rate;
	if (!decodes && (r.flags & KVR_IGNORE_PREFILL) == 0) {
		fresh = (double)p->units - cached_on(c->worker);
		cost += c->backlog + lambda_of() * fresh / rate;
	}
	return cost * preferred(c->worker);
}

/* Blocks of the prompt that no running request uses there. */
static void
ck_new_blocks(const struct kvr_candidate *c)
{
	struct kvr_overlap found[FLEET];
	uint32_t active = 0;
	size_t i, n;

	must(kvr_match(k, p, now, found, sizeof(found[0]), FLEET, &n) ==
	    KVR_OK);
	for (i = 0; i < n; i++)
		if (found[i].worker == c->worker)
			active = found[i].active_blocks;
	if ((r.flags & KVR_IGNORE_REUSE) != 0 || (r.stage == KVR_STAGE_DECODE
	    && r.overlap_credit < 0))
		active = 0;
	must(c->new_decode_blocks == p->blocks - active);
}

/* -------------------------------------------------- the worker chosen --- */

static uint64_t
lot_of(uint64_t worker)
{
	uint64_t end = p->blocks > 0 ? p->sequence[p->blocks - 1] : p->root;

	return mix(mix(end ^ mix(p->units ^ p->tail_digest)) ^
	    k->loads.identity[id_slot(worker)]);
}

/* Is a before b among those with the least cost? */
static bool
goes_before(const struct kvr_candidate *a, const struct kvr_candidate *b)
{
	if (a->requests != b->requests)
		return a->requests < b->requests;
	if (a->prefill_tokens != b->prefill_tokens)
		return a->prefill_tokens < b->prefill_tokens;
	if (a->decode_blocks != b->decode_blocks)
		return a->decode_blocks < b->decode_blocks;
	return lot_of(a->worker) < lot_of(b->worker);
}

struct counted {
	uint64_t questions, ties, doubtful, nobody;
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

static void
ck_choice(const struct kvr_candidate *c, size_t n, uint32_t w)
{
	const struct kvr_candidate *best = NULL;
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t shared = 0;
	size_t i;
	int rc = kvr_route(k, p, &r, now, &d);

	if (w == 0) {
		must(rc != KVR_OK);
		counted.nobody++;
		return;
	}
	must(rc == KVR_OK && d.eligible == w);
	for (i = 0; i < n; i++) {
		if (c[i].verdict != KVR_ELIGIBLE)
			continue;
		if (best == NULL || c[i].cost < best->cost ||
		    (c[i].cost == best->cost && goes_before(&c[i], best)))
			best = &c[i];
	}
	for (i = 0; i < n; i++)
		shared += c[i].verdict == KVR_ELIGIBLE &&
		    c[i].cost == best->cost;
	must(d.worker == best->worker && d.cost == best->cost);
	must(d.reason == (shared > 1 ? KVR_REASON_TIE : KVR_REASON_COST));
	must(d.overlap_tokens == best->overlap_tokens);
	counted.ties += shared > 1;
}

/* All about the current prompt and request. */
static void
ck_question(double decode)
{
	struct kvr_candidate c[FLEET];
	size_t n = candidates(c), i;
	uint32_t w = 0;
	double want;

	for (i = 0; i < n; i++)
		w += c[i].verdict == KVR_ELIGIBLE;
	for (i = 0; i < n; i++) {
		ck_new_blocks(&c[i]);
		/* if none can be chosen, one is still asked */
		want = cost_of(&c[i], decode);
		if (!(fabs(c[i].cost - want) <= 1e-9 * want))
			ck_abort_msg("cost %.15g, must be %.15g (KVR_SEED=%"
			    PRIu64 ")", c[i].cost, want, seed);
		counted.doubtful += c[i].overlap_blocks > 0 &&
		    c[i].overlap_tokens + 1 < c[i].overlap_blocks * BLOCK_OF;
	}
	ck_choice(c, n, w);
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

static bool
near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

START_TEST(idle)
{
	set_policy(0.1, 1e12, 0);
	set_facts(0, 1000, KVR_RETAIN_TTL);
	set_facts(1, 4000, KVR_RETAIN_TTL);
	say_long(1600, 0, 1);
	/* 2 * 1600 to prefill, a tenth of 1600 to decode, 1000 a second */
	ck_assert(near(cost_on(0), 3.2 + 0.16));
	ck_assert(near(cost_on(1), 0.84));
	r.flags = KVR_IGNORE_PREFILL;
	ck_assert(near(cost_on(0), 0.16));
	r.flags = 0;
	/* an incomplete block is prefilled too */
	say_long(1615, 0, 1);
	ck_assert(near(cost_on(0), 3.23 + 0.16));
	(void)observed(0, 0);
	ck_assert(near(cost_on(0), 0.03 + 0.16));
}
END_TEST

START_TEST(busy)
{
	struct kvr_load load = { .size = sizeof(load), .prefill_tokens = 500,
	    .active_blocks = 10, .requests = 1 };

	set_policy(0.1, 1e12, 0);
	set_facts(0, 1000, KVR_RETAIN_TTL);
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	say_long(1600, 0, 1);
	ck_assert(near(cost_on(0), 0.5 + 3.2 + 0.1 * 1.76));
	/* a third of the fleet's rate arrives: lambda = 3 */
	k->region->arrivals = 60 * FLEET * rate_fleet(k) / 3;
	k->region->arrivals_at = 0;
	ck_assert(near(cost_on(0), 0.5 + 4.8 + 0.1 * 1.76));
	/* overrun */
	k->region->arrivals *= 1000;
	ck_assert(near(cost_on(0), 0.5 + 33 * 1.6 + 0.1 * 1.76));
	now = INT64_C(3600) * 1000000000;
	ck_assert(near(cost_on(0), 0.5 + 3.2 + 0.1 * 1.76));
	k->region->arrivals = 0;
}
END_TEST

/* A worker that has probably evicted it costs what it will cost. */
START_TEST(doubt_decides)
{
	set_policy(0, 1e12, 0);
	set_facts(0, 1000, KVR_RETAIN_FEEDBACK);
	set_facts(1, 1000, KVR_RETAIN_TTL);
	say_long(1600, 1600, 1);
	finish(reserved(0, 0), 0);
	say_long(1600, 800, 1);
	finish(reserved(1, 0), 0);
	say_long(1600, 1600, 1);
	k->region->arrivals = 0;
	ck_question(0);
	ck_assert(cost_on(0) < cost_on(1));
	note_age(0, 0, false, 1e6);
	note_age(0, 1600, false, 1e6);
	ck_question(0);
	ck_assert(cost_on(0) > cost_on(1));
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
	struct kvr_load load = { .size = sizeof(load) };

	if (pick(2) == 0) {
		load.prefill_tokens = pick(3000);
		load.active_blocks = pick(300);
		load.requests = pick(5);
	}
	must(kvr_worker_set_load(k, id[worker], 0, &load) == KVR_OK);
}

/* Few stems, many ends. */
static void
any_prompt(void)
{
	static uint32_t token[BRANCH * BLOCK_OF * 4];
	uint32_t n = 1 + pick(BRANCH * BLOCK_OF * (pick(4) == 0 ? 4 : 1));
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
	    (pick(4) == 0 ? KVR_IGNORE_REUSE : 0u);
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
any_reserve(uint64_t *lease)
{
	struct kvr_decision d = { .size = sizeof(d) };

	if (kvr_lease_open(k, p, &r, now, &d) != KVR_OK)
		return;
	count_arrival(&d);
	*lease = d.lease;
	if (*lease != 0 && pick(4) != 0)
		commit(*lease, now);
}

/* Reports that teach and reports that lie. */
static void
any_end(uint64_t *lease)
{
	struct kvr_report report = { .size = sizeof(report) };
	int rc;

	report.kind = pick(3);
	report.cached_tokens = pick(2) == 0 ? pick(700) : pick(5) * BLOCK_OF;
	report.completion_tokens = pick(300);
	rc = pick(4) == 0 ? kvr_lease_abort(k, *lease, now, 0)
	    : kvr_lease_finish(k, *lease, &report, now, 0);
	must(rc == KVR_OK || rc == KVR_ELEASE); /* over age */
	*lease = 0;
}

static void
any_call(void)
{
	uint64_t *lease = &leases[pick(LEASES)];
	uint32_t worker = pick(FLEET);

	now += pick(3) == 0 ? 0 : (int64_t)pick(400) * 1000000;
	any_prompt();
	any_request();
	switch (pick(12)) {
	case 0:
		any_facts(worker);
		break;
	case 1:
		any_load(worker);
		break;
	case 2:
		must(kvr_observe(k, p, id[worker], now, 0, NULL) == KVR_OK);
		break;
	case 3:
		note_age(worker, (uint64_t)pick(1000) << pick(8),
		    pick(2) == 0, pick(10000));
		break;
	default:
		if (*lease == 0)
			any_reserve(lease);
		else if (pick(3) == 0)
			(void)kvr_lease_first_token(k, *lease, now, 0);
		else
			any_end(lease);
	}
}

START_TEST(as_the_formula_says)
{
	static const double decodes[] = { 0.1, 0, 1, 7.5 };
	uint64_t n = test_amount(6000), i;
	uint32_t policy;

	by_chance();
	memset(&counted, 0, sizeof(counted));
	for (policy = 0; policy < 4; policy++) {
		region_end();
		setup();
		set_policy(decodes[policy], policy * 5, 0);
		for (i = 0; i < FLEET; i++)
			any_facts((uint32_t)i);
		for (i = 0; i < n; i++) {
			any_call();
			any_prompt();
			any_request();
			ck_question(decodes[policy]);
		}
	}
	if (n > 1000) {
		ck_assert_uint_gt(counted.ties, 10);
		ck_assert_uint_gt(counted.doubtful, 1000);
		ck_assert_uint_gt(counted.nobody, 0);
	}
}
END_TEST

/* Workers are equal in everything but what breaks a tie. */
START_TEST(ties)
{
	uint64_t n = test_amount(400), i;
	struct kvr_load load = { .size = sizeof(load) };
	uint32_t worker;

	by_chance();
	memset(&counted, 0, sizeof(counted));
	set_policy(0, 10, 0);
	for (i = 0; i < n; i++) {
		for (worker = 0; worker < FLEET; worker++) {
			load.active_blocks = pick(3);
			load.requests = 1 + pick(2);
			must(kvr_worker_set_load(k, id[worker], 0, &load) ==
			    KVR_OK);
		}
		any_prompt();
		ck_question(0);
	}
	ck_assert_uint_eq(counted.ties, n);
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

static void
ck_finite(void)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_candidate c[FLEET];
	size_t n = candidates(c), i;

	for (i = 0; i < n; i++) {
		must(c[i].cost >= 0 && c[i].cost <= 1e300);
		must(c[i].backlog >= 0 && isfinite(c[i].backlog));
	}
	must(kvr_route(k, p, &r, now, &d) == KVR_OK);
	must(d.cost >= 0 && d.cost <= 1e300);
	for (i = 0; i < n && c[i].worker != d.worker; i++)
		continue;
	must(i < n && c[i].cost == d.cost);
}

START_TEST(always_a_number)
{
	uint64_t n = test_amount(4000), i;
	uint32_t j;

	by_chance();
	for (i = 0; i < n; i++) {
		set_policy(any_number(0, 1e15), any_number(0, 1e15),
		    pick(3) == 0 ? any_number(0, 1e308) : 0);
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
		if (leases[i % LEASES] != 0)
			any_end(&leases[i % LEASES]);
		else
			any_reserve(&leases[i % LEASES]);
		if (leases[i % LEASES] != 0 && pick(2) == 0)
			(void)kvr_lease_first_token(
			    k, leases[i % LEASES], now, 0);
		ck_finite();
	}
}
END_TEST

/* Any bits in the rows that a choice reads. */
START_TEST(any_bits)
{
	uint64_t n = test_amount(3000), i, bits;
	double x;

	by_chance();
	set_policy(0.1, 10, 0);
	for (i = 0; i < n; i++) {
		bits = plain_random(&chance);
		if (pick(2) == 0)
			bits |= UINT64_C(0x7ff) << 52;
		memcpy(&x, &bits, sizeof(x));
		switch (pick(4)) {
		case 0: k->region->arrivals = x; break;
		case 1: k->region->fleet_tokens = x; break;
		case 2: k->region->fleet_seconds = x; break;
		default: k->region->arrivals_at = (int64_t)bits; break;
		}
		any_prompt();
		ck_finite();
	}
	k->region->arrivals = NAN;
	ck_assert_int_eq(kvr_check(k), KVR_ECORRUPT);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
}
END_TEST

/* ------------------------------------------------------------- drawing --- */

/* By temperature: drawn as likely as the costs say; the chosen one's cost. */
START_TEST(drawn_by_cost)
{
	uint32_t count[3] = { 0 }, i, n = 3000;
	struct kvr_decision d = { .size = sizeof(d) };
	double cost[3], sum = 0, share;

	region_end();
	setup();
	for (i = 3; i < FLEET; i++)
		ck_assert_int_eq(kvr_worker_remove(k, id[i]), KVR_OK);
	for (i = 0; i < 3; i++)
		set_facts(i, 1000 << i, KVR_RETAIN_TTL);
	set_policy(0.1, 1e12, 0.5);
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
	tcase_add_test(t, idle);
	tcase_add_test(t, busy);
	tcase_add_test(t, doubt_decides);
	tcase_add_test(t, as_the_formula_says);
	tcase_add_test(t, ties);
	tcase_add_test(t, always_a_number);
	tcase_add_test(t, any_bits);
	tcase_add_test(t, drawn_by_cost);
	return s;
}
