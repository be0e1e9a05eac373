/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cost_balanced.c - the cost in seconds, and the worker chosen by it.
 *
 * The cost is implemented here a second time, straight from its definition:
 * waiting, new and running work, each in seconds of the worker; the prefixes
 * that are common, and the bound. Inputs come from the public calls where they
 * are visible there; arrivals, running prompts and first tokens are counted
 * here. The choice is compared with the costs that kvr_candidates returns,
 * whatever short cuts lead to it.
 */
#include "expect.h"
#include "id.h"
#include "mix.h"
#include "rate.h"
#include "route.h"

#include "inner.h"

#include <math.h>

enum { FLEET = 12, BLOCK_OF = 16, LEASES = 48, BRANCH = 40,
	LONGER = 16 };

/* Arrivals, as all opened leases add up to. */
static double arrived;
static int64_t arrived_at;

/* What runs, and how many of those that finished had a first token. */
static struct held {
	uint64_t lease, worker, tokens;
	bool prefilling, committed, spoken;
} leases[LEASES];
static double spoken;
static uint64_t outside[FLEET]; /* blocks */

static struct kvr_request r;
static struct kvr_policy y;
static int64_t now;

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
	arrived = spoken = 0;
	arrived_at = now = 0;
	memset(leases, 0, sizeof(leases));
	memset(outside, 0, sizeof(outside));
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
	y.cost = KVR_COST_BALANCED;
}

static void
use_policy(void)
{
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
}

/* Configured rates count, and nothing that was measured. */
static void
by_facts(void)
{
	y.balanced_prior = 1e12;
	use_policy();
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

/* What the workers prefill that accept such requests, if not this one. */
static double
takers_rate(void)
{
	struct kvr_worker f = { .size = sizeof(f) };
	struct kvr_worker_stats s = { .size = sizeof(s) };
	double rate = 0;
	uint64_t w = 0;

	for (;;) {
		must(kvr_worker_next(k, &w) == KVR_OK);
		if (w == 0)
			return rate;
		must(kvr_worker_get(k, w, &f) == KVR_OK);
		must(kvr_worker_stats(k, w, &s) == KVR_OK);
		if (f.state == KVR_STATE_UP &&
		    (f.role == KVR_ROLE_BOTH || f.role == r.stage))
			rate += s.prefill_rate;
	}
}

static bool
may_take(const struct kvr_candidate *c)
{
	return c->verdict == KVR_ELIGIBLE || c->verdict == KVR_ABOVE_BOUND;
}

/* The fourth power of the share of places that are taken; 0: not known. */
static double
places_taken(const struct kvr_candidate *c, size_t n)
{
	double running = 0, places = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		struct kvr_worker_stats s = { .size = sizeof(s) };

		if (!may_take(&c[i]))
			continue;
		must(kvr_worker_stats(k, c[i].worker, &s) == KVR_OK);
		if (s.sequences == 0)
			return 0;
		running += (double)c[i].requests;
		places += s.sequences;
	}
	return places > 0 ? pow(running / places, 4) : 0;
}

static double
lambda_of(const struct kvr_candidate *c, size_t n)
{
	double tokens = arrived * exp(-seconds_since(arrived_at) / 60);
	double rate = takers_rate();
	double rho = rate > 0 ? tokens / 60 / rate : 0;

	rho = fmin(0.99, fmax(rho, places_taken(c, n)));
	return fmin(16.5, 1 / (1 - rho));
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

/*
 * The `n`th deepest overlap of the workers that may take it, in blocks, rounded
 * down to a 256th of the prompt.
 */
static double
depth_of(const struct kvr_candidate *c, size_t count, double n)
{
	double deepest = 0;
	size_t i, j, as_deep;

	for (i = 0; i < count; i++) {
		for (as_deep = j = 0; j < count; j++)
			as_deep += may_take(&c[j]) &&
			    c[j].overlap_blocks >= c[i].overlap_blocks;
		if (may_take(&c[i]) && (double)as_deep >= n)
			deepest = fmax(deepest, c[i].overlap_blocks);
	}
	return ceil(floor(deepest * 256 / p->blocks) * p->blocks / 256);
}

/* Blocks that count as held because many workers hold them. */
static double
lent(const struct kvr_candidate *c, size_t n, double held)
{
	double eligible = 0, sum = 0;
	uint32_t step;
	size_t i;

	for (i = 0; i < n; i++)
		eligible += may_take(&c[i]);
	if (!(y.balanced_common * eligible > 0))
		return 0;
	for (step = 5; step <= 8; step++)
		sum += fmax(0, depth_of(c, n,
		    1 + y.balanced_common * eligible * step / 8) - held);
	return sum / 4;
}

/* Tokens of what runs there, and how many wait for their first token. */
static double
running_tokens(uint64_t worker, double *waiting)
{
	double tokens = 0;
	uint32_t i;

	*waiting = 0;
	for (i = 0; i < LEASES; i++) {
		if (leases[i].lease == 0 || leases[i].worker != worker)
			continue;
		tokens += (double)leases[i].tokens;
		*waiting += leases[i].prefilling;
	}
	for (i = 0; i < FLEET; i++)
		if (id[i] == worker)
			tokens += (double)outside[i] * BLOCK_OF;
	return tokens;
}

/* Until what runs has released enough for so many new tokens. */
static double
memory_of(uint32_t slot, double fresh)
{
	const struct slot *s = slot_at(k, slot);
	double used = (double)s->blocks * BLOCK_OF;
	double over = used + (double)s->ahead * BLOCK_OF + s->completion +
	    fresh - 0.95 * (double)s->capacity;

	return s->capacity > 0 && used > 0 && over > 0
	    ? over * s->service / used : 0;
}

/* Until the prefill can begin: prefill before it, no place, or no memory. */
static double
delay_of(const struct kvr_candidate *c, const struct kvr_worker_stats *s,
    double waiting, double fresh)
{
	uint32_t slot = id_slot(c->worker);
	double queue = c->backlog, place = 0;

	if (spoken > 0.9 && waiting > 0)
		queue += seconds_since(k->loads.free_at[slot]);
	if (s->sequences > 0 && c->requests >= s->sequences)
		place = (double)(c->requests - s->sequences + 1) *
		    slot_at(k, slot)->service / s->sequences;
	place = fmax(place, memory_of(slot, fresh));
	return fmax(queue, y.balanced_place * place);
}

static double
cost_of(const struct kvr_candidate *all, size_t n,
    const struct kvr_candidate *c)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	bool decodes = r.stage == KVR_STAGE_DECODE;
	double cost, held, fresh, tokens, waiting, steps;

	must(kvr_worker_stats(k, c->worker, &s) == KVR_OK);
	tokens = running_tokens(c->worker, &waiting) + (double)p->units;
	steps = (double)c->requests - (spoken > 0.9 ? waiting : 0);
	cost = y.balanced_read * tokens / s.prefill_rate +
	    y.balanced_request * steps;
	if (!decodes && (r.flags & KVR_IGNORE_PREFILL) == 0) {
		held = cached_on(c->worker) / BLOCK_OF;
		cost += delay_of(c, &s, waiting,
		    fmax(0, (double)p->units - held * BLOCK_OF));
		held += lent(all, n, held);
		fresh = fmax(0, (double)p->units - held * BLOCK_OF) /
		    s.prefill_rate;
		cost += y.balanced_prefill * lambda_of(all, n) * fresh +
		    y.balanced_interfere * steps * fresh;
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
	uint64_t questions, ties, doubtful, none, bounded, lent, spoken, full;
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

static uint32_t
places_of(uint64_t worker)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };

	must(kvr_worker_stats(k, worker, &s) == KVR_OK);
	return s.sequences;
}

static double
share_of(uint64_t worker, double mean)
{
	struct kvr_worker f = { .size = sizeof(f) };
	uint32_t places = places_of(worker);

	must(kvr_worker_get(k, worker, &f) == KVR_OK);
	return (places > 0 ? places : mean) * f.weight;
}

/* Which workers are above the bound: their verdicts say so. */
static void
ck_bound(const struct kvr_candidate *c, size_t n)
{
	double all = 1, shares = 0, places = 0, known = 0, mean, most;
	bool above[FLEET] = { false };
	uint32_t below = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!may_take(&c[i]))
			continue;
		all += (double)c[i].requests;
		places += places_of(c[i].worker);
		known += places_of(c[i].worker) > 0;
	}
	mean = known > 0 ? places / known : 1;
	for (i = 0; i < n; i++)
		if (may_take(&c[i]))
			shares += share_of(c[i].worker, mean);
	for (i = 0; i < n; i++) {
		if (!may_take(&c[i]))
			continue;
		most = y.balanced_bound * all *
		    share_of(c[i].worker, mean) / shares +
		    y.balanced_bound_slack;
		above[i] = y.balanced_bound > 0 &&
		    (double)c[i].requests + 1 > most * (1 + 1e-9);
		below += !above[i];
	}
	for (i = 0; i < n; i++) {
		must((c[i].verdict == KVR_ABOVE_BOUND) ==
		    (above[i] && below > 0));
		counted.bounded += c[i].verdict == KVR_ABOVE_BOUND;
	}
}

static void
ck_choice(const struct kvr_candidate *c, size_t n, uint32_t w)
{
	const struct kvr_candidate *best = NULL;
	struct kvr_decision d = { .size = sizeof(d) };
	double near = INFINITY;
	uint32_t shared = 0;
	size_t i;
	int rc = kvr_route(k, p, &r, now, &d);

	if (w == 0) {
		must(rc != KVR_OK);
		counted.none++;
		return;
	}
	must(rc == KVR_OK && d.eligible == w);
	for (i = 0; i < n; i++)
		if (c[i].verdict == KVR_ELIGIBLE)
			near = fmin(near,
			    c[i].cost * (1 + y.balanced_tie) + 0.001);
	for (i = 0; i < n; i++) {
		if (c[i].verdict != KVR_ELIGIBLE || c[i].cost > near)
			continue;
		shared++;
		if (best == NULL || goes_before(&c[i], best))
			best = &c[i];
	}
	must(d.worker == best->worker && d.cost == best->cost);
	must(d.reason == (shared > 1 ? KVR_REASON_TIE : KVR_REASON_COST));
	must(d.overlap_tokens == best->overlap_tokens);
	counted.ties += shared > 1;
}

/* All about the current prompt and request. */
static void
ck_question(void)
{
	struct kvr_candidate c[FLEET];
	size_t n = candidates(c), i;
	uint32_t w = 0;
	double want;

	for (i = 0; i < n; i++)
		w += may_take(&c[i]);
	for (i = 0; i < n; i++) {
		ck_new_blocks(&c[i]);
		/* if none can be chosen, one is still asked */
		want = cost_of(c, n, &c[i]);
		if (!(fabs(c[i].cost - want) <= 1e-9 * want))
			ck_abort_msg("cost %.15g, must be %.15g (KVR_SEED=%"
			    PRIu64 ")", c[i].cost, want, seed);
		counted.doubtful += c[i].overlap_blocks > 0 &&
		    c[i].overlap_tokens + 1 < c[i].overlap_blocks * BLOCK_OF;
		counted.lent += lent(c, n, c[i].overlap_blocks) > 0;
		counted.full += places_of(c[i].worker) > 0 &&
		    c[i].requests >= places_of(c[i].worker);
	}
	ck_bound(c, n);
	ck_choice(c, n, w);
	counted.questions++;
	counted.spoken += spoken > 0.9;
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
	y.balanced_read = 0.1;
	by_facts();
	set_facts(0, 1000, KVR_RETAIN_TTL);
	set_facts(1, 4000, KVR_RETAIN_TTL);
	say_long(1600, 0, 1);
	/* 1600 to prefill, 1000 a second; a tenth of 1600 to read */
	ck_assert(near(cost_on(0), 2 * 1.6 + 0.16));
	ck_assert(near(cost_on(1), 2 * 0.4 + 0.04));
	r.flags = KVR_IGNORE_PREFILL;
	ck_assert(near(cost_on(0), 0.16));
	r.flags = 0;
	/* an incomplete block is prefilled too */
	say_long(1615, 0, 1);
	ck_assert(near(cost_on(0), 2 * 1.615 + 0.1615));
	(void)observed(0, 0);
	ck_assert(near(cost_on(0), 2 * 0.015 + 0.1615));
}
END_TEST

START_TEST(busy)
{
	struct kvr_load load = { .size = sizeof(load), .prefill_tokens = 500,
	    .active_blocks = 10, .requests = 1 };
	double rest;

	y.balanced_read = 0.1;
	by_facts();
	set_facts(0, 1000, KVR_RETAIN_TTL);
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	say_long(1600, 0, 1);
	/* queued, interfering, read with its 160 tokens, one more request */
	rest = 0.5 + 0.025 * 1.6 + 0.1 * 1.76 + 0.01;
	ck_assert(near(cost_on(0), rest + 2 * 1.6));
	/* a third of the fleet's rate arrives: lambda = 3/2 */
	k->region->arrivals = 60 * takers_rate() / 3;
	k->region->arrivals_at = 0;
	ck_assert(near(cost_on(0), rest + 2 * 1.5 * 1.6));
	/* overrun */
	k->region->arrivals *= 1000;
	ck_assert(near(cost_on(0), rest + 16.5 * 2 * 1.6));
	now = INT64_C(3600) * 1000000000;
	ck_assert(near(cost_on(0), rest + 2 * 1.6));
	k->region->arrivals = 0;
}
END_TEST

static void
set_sequences(uint32_t worker, uint32_t sequences)
{
	struct kvr_worker f = { .size = sizeof(f) };

	ck_assert_int_eq(kvr_worker_get(k, id[worker], &f), KVR_OK);
	f.sequences = sequences;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

/* Places that are taken make a fleet as busy as prefill does. */
START_TEST(busy_by_places)
{
	uint32_t i;

	y.balanced_read = y.balanced_interfere = y.balanced_request = 0;
	by_facts();
	set_facts(0, 1000, KVR_RETAIN_TTL);
	for (i = 0; i < FLEET; i++)
		set_sequences(i, 4);
	say_long(160, 0, 1);
	ck_assert(near(cost_on(0), 2 * 0.16));
	/* three quarters of 48: lambda = 1 / (1 - 3/4^4) */
	for (i = 0; i < 36; i++) {
		say_long(160, 0, 1 + i);
		commit(reserved(1 + i % (FLEET - 1), 0), 0);
	}
	k->region->arrivals = 0;
	say_long(160, 0, 100);
	ck_assert(near(cost_on(0), 256.0 / 175 * 2 * 0.16));
	/* one worker does not tell: only arrivals count */
	set_sequences(5, 0);
	ck_assert(near(cost_on(0), 2 * 0.16));
}
END_TEST

/* Of 12 workers 1 + 6 * 5/8, rounded up, share the first quarter of it. */
START_TEST(a_common_prefix_is_lent)
{
	static const double part[] = { 0, 0, 0, 0, 0.25, 0.5, 1, 1 };
	uint32_t i;

	y.balanced_read = 0;
	by_facts();
	set_facts(FLEET - 1, 1000, KVR_RETAIN_TTL);
	for (i = 0; i < 8; i++) {
		say_long(1600, 1600, 1);
		(void)observed(i, 0);
		say_long(3200, 1600, 2);
		k->region->arrivals = 0;
		ck_question();
		ck_assert(near(cost_on(FLEET - 1),
		    2 * (3.2 - 1.6 * part[i])));
	}
}
END_TEST

/* An overlap given twice, or of a worker that is gone, counts once or not. */
START_TEST(common_by_workers_and_not_by_overlaps)
{
	struct kvr_overlap given[FLEET];
	struct kvr_decision d = { .size = sizeof(d) }, once = d;
	uint32_t i;

	by_facts();
	for (i = 0; i < FLEET; i++)
		set_facts(i, 1000 + 10 * i, KVR_RETAIN_TTL);
	say_long(1600, 1600, 1);
	memset(given, 0, sizeof(given));
	for (i = 0; i < FLEET; i++) {
		given[i].worker = id[0];
		given[i].blocks = 100;
	}
	r.n_excluded = 1;
	r.excluded[0] = id[0];
	ck_assert_int_eq(kvr_choose(k, p, &r, given, sizeof(given[0]), 1, now,
	    &once), KVR_OK);
	ck_assert_int_eq(kvr_choose(k, p, &r, given, sizeof(given[0]), FLEET,
	    now, &d), KVR_OK);
	ck_assert(d.worker == once.worker && d.cost == once.cost);
	/* the largest slot that an id can name: no such worker */
	for (i = 1; i < FLEET; i++)
		given[i].worker = id[0] | (uint64_t)ID_SLOT << 2;
	ck_assert_int_eq(kvr_choose(k, p, &r, given, sizeof(given[0]), FLEET,
	    now, &d), KVR_OK);
	ck_assert(d.worker == once.worker && d.cost == once.cost);
	r.excluded[0] = id[1];
	ck_assert_int_eq(kvr_choose(k, p, &r, given, sizeof(given[0]), 1, now,
	    &once), KVR_OK);
	for (i = 0; i < FLEET; i++)
		given[i].worker = id[0];
	ck_assert_int_eq(kvr_choose(k, p, &r, given, sizeof(given[0]), FLEET,
	    now, &d), KVR_OK);
	ck_assert(d.worker == once.worker && d.cost == once.cost);
	k->region->arrivals = 0;
}
END_TEST

/* A worker that has probably evicted it costs what it will cost. */
START_TEST(doubt_decides)
{
	y.balanced_read = 0;
	by_facts();
	set_facts(0, 1000, KVR_RETAIN_FEEDBACK);
	set_facts(1, 1000, KVR_RETAIN_TTL);
	say_long(1600, 1600, 1);
	finish(reserved(0, 0), 0);
	say_long(1600, 800, 1);
	finish(reserved(1, 0), 0);
	say_long(1600, 1600, 1);
	arrived = k->region->arrivals = 0;
	ck_question();
	ck_assert(cost_on(0) < cost_on(1));
	note_age(0, 0, false, 1e6);
	note_age(0, 1600, false, 1e6);
	ck_question();
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
	f.sequences = pick(3) != 0 ? 1 + pick(9) : 0;
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
	outside[worker] = load.active_blocks;
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
any_reserve(struct held *held, bool talks)
{
	struct kvr_decision d = { .size = sizeof(d) };

	if (kvr_lease_open(k, p, &r, now, &d) != KVR_OK)
		return;
	count_arrival(&d);
	memset(held, 0, sizeof(*held));
	held->lease = d.lease;
	held->worker = d.worker;
	held->tokens = d.prompt_tokens;
	held->prefilling = (r.flags & KVR_IGNORE_PREFILL) == 0 &&
	    r.stage != KVR_STAGE_DECODE;
	held->committed = held->lease != 0 && (talks || pick(4) != 0);
	if (held->committed)
		commit(held->lease, now);
}

static void
any_first_token(struct held *held)
{
	must(kvr_lease_first_token(k, held->lease, now, 0) ==
	    (held->committed ? KVR_OK : KVR_ESTATE));
	if (!held->committed)
		return;
	held->prefilling = false;
	held->spoken = true;
}

/* Reports that teach and reports that lie. */
static void
any_end(struct held *held)
{
	struct kvr_report report = { .size = sizeof(report) };

	report.kind = pick(3);
	report.cached_tokens = pick(2) == 0 ? pick(700) : pick(5) * BLOCK_OF;
	report.completion_tokens = pick(300);
	if (pick(4) == 0) {
		must(kvr_lease_abort(k, held->lease, now, 0) == KVR_OK);
	} else {
		must(kvr_lease_finish(k, held->lease, &report, now, 0) ==
		    KVR_OK);
		spoken += ((held->spoken ? 1 : 0) - spoken) * 0.05;
	}
	held->lease = 0;
}

/* `quiet`: some end without a first token. */
static void
any_call(bool quiet)
{
	struct held *held = &leases[pick(LEASES)];
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
		if (held->lease == 0)
			any_reserve(held, !quiet);
		else if (pick(3) == 0 || (!quiet && !held->spoken))
			any_first_token(held);
		else
			any_end(held);
	}
}

/* The weights, each of which is none or little or much. */
static void
any_policy(uint32_t round)
{
	static const double weight[] = { 0.04, 0, 1, 7.5 };

	(void)kvr_policy_init(&y, sizeof(y));
	y.cost = KVR_COST_BALANCED;
	y.balanced_prior = round * 5;
	y.balanced_read = weight[round % 4];
	y.balanced_prefill = round == 0 ? 1.5 : weight[pick(4)];
	y.balanced_request = round == 0 ? 0.01 : weight[pick(4)];
	y.balanced_interfere = round == 0 ? 0.025 : weight[pick(4)];
	y.balanced_tie = round == 0 ? 0.01 : pick(3) * 0.125;
	y.balanced_common = round == 0 ? 0.5 : pick(5) * 0.125;
	y.balanced_bound = round == 0 ? 1.5 : pick(4) * 0.5;
	y.balanced_bound_slack = round == 0 ? 3 : pick(3);
	use_policy();
}

START_TEST(as_the_formula_says)
{
	uint64_t n = test_amount(2000), i;
	uint32_t round;

	by_chance();
	memset(&counted, 0, sizeof(counted));
	for (round = 0; round < 8; round++) {
		region_end();
		setup();
		any_policy(round);
		for (i = 0; i < FLEET; i++)
			any_facts((uint32_t)i);
		for (i = 0; i < n; i++) {
			any_call(round % 2 == 0);
			any_prompt();
			any_request();
			ck_question();
		}
	}
	if (n > 1000) {
		ck_assert_uint_gt(counted.ties, 10);
		ck_assert_uint_gt(counted.doubtful, 1000);
		ck_assert_uint_gt(counted.none, 0);
		ck_assert_uint_gt(counted.bounded, 1000);
		ck_assert_uint_gt(counted.lent, 1000);
		ck_assert_uint_gt(counted.spoken, 1000);
		ck_assert_uint_gt(counted.full, 1000);
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
	y.balanced_read = y.balanced_request = y.balanced_interfere = 0;
	use_policy();
	for (i = 0; i < n; i++) {
		for (worker = 0; worker < FLEET; worker++) {
			load.active_blocks = pick(3);
			load.requests = 1 + pick(2);
			outside[worker] = load.active_blocks;
			must(kvr_worker_set_load(k, id[worker], 0, &load) ==
			    KVR_OK);
		}
		any_prompt();
		ck_question();
	}
	ck_assert_uint_eq(counted.ties, n);
}
END_TEST

/* Costs within the tie go to the least loaded; those beyond it do not. */
START_TEST(near_is_a_share_and_a_millisecond)
{
	struct kvr_load load = { .size = sizeof(load), .requests = 1 };
	struct kvr_decision d = { .size = sizeof(d) };
	static const double rates[] = { 1000, 997, 985, 980 };
	uint32_t i;

	for (i = 4; i < FLEET; i++)
		ck_assert_int_eq(kvr_worker_remove(k, id[i]), KVR_OK);
	y.balanced_read = y.balanced_request = y.balanced_interfere = 0;
	y.balanced_tie = 0.01;
	by_facts();
	for (i = 0; i < 4; i++)
		set_facts(i, rates[i], KVR_RETAIN_TTL);
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	/* 2 s on worker 0: near is below 2.021 s */
	say_long(1000, 0, 1);
	ck_assert(near(cost_on(0), 2) && cost_on(1) < 2.021 &&
	    cost_on(2) > 2.021);
	ck_assert_int_eq(kvr_route(k, p, &r, now, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[1]);
	ck_assert_uint_eq(d.reason, KVR_REASON_TIE);
	ck_assert(d.cost == cost_on(1));
	/* it is loaded more */
	load.requests = 2;
	ck_assert_int_eq(kvr_worker_set_load(k, id[1], 0, &load), KVR_OK);
	ck_assert_int_eq(kvr_route(k, p, &r, now, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[0]);
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
	f.sequences = pick(2) == 0 ? 0 : pick(2) == 0 ? 1 : UINT32_MAX;
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

static void
odd_policy(void)
{
	y.balanced_prefill = any_number(0, 1e15);
	y.balanced_read = any_number(0, 1e15);
	y.balanced_request = any_number(0, 1e15);
	y.balanced_interfere = any_number(0, 1e15);
	y.balanced_tie = any_number(0, 1);
	y.balanced_common = any_number(0, 1e15);
	y.balanced_bound = any_number(0, 1e15);
	y.balanced_bound_slack = any_number(0, 1e15);
	y.balanced_prior = any_number(0, 1e15);
	y.balanced_dead_band = any_number(0, 1);
	y.temperature = pick(3) == 0 ? any_number(0, 1e308) : 0;
	use_policy();
}

START_TEST(always_a_number)
{
	uint64_t n = test_amount(4000), i;
	struct held *held;
	uint32_t j;

	by_chance();
	for (i = 0; i < n; i++) {
		held = &leases[i % LEASES];
		odd_policy();
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
			any_reserve(held, false);
		if (held->lease != 0 && pick(2) == 0)
			any_first_token(held);
		ck_finite();
	}
}
END_TEST

/* Eight bytes that a choice reads of a worker or of the policy. */
static void *
any_place(void)
{
	struct kvr_policy *at = &k->region->policy;
	const struct loads *l = &k->loads;
	uint32_t slot = pick(FLEET);

	switch (pick(16)) {
	case 0: return &at->balanced_prefill;
	case 1: return &at->balanced_read;
	case 2: return &at->balanced_request;
	case 3: return &at->balanced_interfere;
	case 4: return &at->balanced_tie;
	case 5: return &at->balanced_common;
	case 6: return &at->balanced_bound;
	case 7: return &at->balanced_bound_slack;
	case 8: return &l->pace[slot];
	case 9: return &l->hold[slot];
	case 10: return &l->reading[slot];
	case 11: return &l->waiting[slot];
	case 12: return &l->free_at[slot];
	case 13: return &l->places[slot / 2 * 2];
	case 14: return &l->prefilling[slot / 2 * 2];
	default: return &l->requests[slot / 2 * 2];
	}
}

static void
ck_any_number(bool drawn_too)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_candidate c[FLEET];
	size_t n = candidates(c), i;

	for (i = 0; i < n; i++)
		must(c[i].cost >= 0 && c[i].cost <= 1e300);
	r.temperature = drawn_too ? 0.5 : -1;
	must(kvr_route(k, p, &r, now, &d) == KVR_OK);
	must(d.cost >= 0 && d.cost <= 1e300);
	for (i = 0; i < n && c[i].worker != d.worker; i++)
		continue;
	must(i < n && c[i].cost == d.cost && c[i].verdict == KVR_ELIGIBLE);
}

/* Any bits in what a choice reads. */
START_TEST(any_bits)
{
	uint64_t n = test_amount(6000), i, bits, was = 0;
	void *place = NULL;
	double x;

	by_chance();
	use_policy();
	for (i = 0; i < n; i++) {
		bits = plain_random(&chance);
		if (pick(2) == 0)
			bits |= UINT64_C(0x7ff) << 52;
		memcpy(&x, &bits, sizeof(x));
		switch (pick(8)) {
		case 0: k->region->arrivals = x; break;
		case 1: k->region->fleet_tokens = x; break;
		case 2: k->region->fleet_seconds = x; break;
		case 3: k->region->arrivals_at = (int64_t)bits; break;
		case 4: k->region->spoken = x; break;
		default:
			place = any_place();
			memcpy(&was, place, sizeof(was));
			memcpy(place, &bits, sizeof(bits));
		}
		any_prompt();
		ck_any_number(pick(2) == 0);
		if (place != NULL)
			memcpy(place, &was, sizeof(was));
		place = NULL;
	}
	k->region->arrivals = NAN;
	ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
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
	y.temperature = 0.5;
	by_facts();
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
	tcase_add_test(t, busy_by_places);
	tcase_add_test(t, a_common_prefix_is_lent);
	tcase_add_test(t, common_by_workers_and_not_by_overlaps);
	tcase_add_test(t, doubt_decides);
	tcase_add_test(t, as_the_formula_says);
	tcase_add_test(t, ties);
	tcase_add_test(t, near_is_a_share_and_a_millisecond);
	tcase_add_test(t, always_a_number);
	tcase_add_test(t, any_bits);
	tcase_add_test(t, drawn_by_cost);
	return s;
}
