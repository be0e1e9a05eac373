/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_simulate_fleets.c - fleets and routers with options that differ from
 * the defaults: the effects of each, and their limits.
 */
#include "simulated.h"

#include <stdlib.h>

#include "rng.h"
#include "simulate_in.h"
#include "simulate_times.h"

/* ------------------------------------------------------ other engines --- */

/* Equal engines, specified in different ways. */
START_TEST(lists_of_one_kind)
{
	struct simulate_options o = options_of(_i, 4, 100000);
	struct simulate_totals a, b;
	int64_t x, y;

	a = totals_of(&o, &x);
	o.n_capacities = 2;
	o.capacities[0] = o.capacities[1] = 100000;
	o.n_speeds = 3;
	o.speeds[0] = o.speeds[1] = o.speeds[2] = 1;
	b = totals_of(&o, &y);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	ck_assert_int_eq(x, y);
}
END_TEST

START_TEST(faster_engines)
{
	struct simulate_options o = options_of(_i, 4, 0);
	int64_t x, y;

	(void)totals_of(&o, &x);
	o.n_speeds = 1;
	o.speeds[0] = 4;
	(void)totals_of(&o, &y);
	ck_assert_int_lt(y, x);
}
END_TEST

/* Engines are reset in turn, and nothing older is hit. */
START_TEST(resets)
{
	struct simulate_options o = options_of(_i, 4, 0);
	struct simulate_totals a, b;
	int64_t x;

	a = totals_of(&o, &x);
	o.reset_ns = INT64_C(10000000000);
	b = totals_of(&o, &x);
	ck_assert_uint_eq(a.resets, 0);
	ck_assert_uint_gt(b.resets, 4 * 4);
	ck_assert_uint_lt(b.hit_tokens, a.hit_tokens);
}
END_TEST

/* Hits are in engine blocks, whatever the index block size. */
START_TEST(other_blocks)
{
	static const uint32_t blocks[] = { 16, 32, 2176 };
	struct simulate_options o = options_of(_i % KINDS, 2, 200000);
	const struct simulate_ride *rides;
	size_t n, i;
	struct setup u;

	o.engine_block = blocks[_i / KINDS];
	begin(&u, &o, 512);
	simulate_sample(&u, 200, 1);
	rides = simulate_rides(u.s, &n);
	ck_assert_uint_eq(n, 200);
	for (i = 0; i < n; i++) {
		ck_assert_uint_eq(rides[i].hit % o.engine_block, 0);
		ck_assert_uint_lt(rides[i].hit, rides[i].tokens);
	}
	ck_assert_uint_gt(simulate_totals(u.s)->hit_tokens, 0);
	end(&u);
}
END_TEST

START_TEST(random_eviction)
{
	struct simulate_options o = options_of(_i, 4, 60000);
	struct simulate_totals a, b;
	int64_t x;

	a = totals_of(&o, &x);
	o.eviction = ENGINE_EVICT_RANDOM;
	b = totals_of(&o, &x);
	ck_assert_uint_ne(a.hit_tokens, b.hit_tokens);
}
END_TEST

/* The library receives the engines' reports. */
START_TEST(reports)
{
	static const struct {
		const char *text;
		uint64_t least;
		uint64_t most;
	} said[] = {
		{ "exact", 350, 400 }, /* prompts below a block have none */
		{ "reported=0", 0, 0 },
		{ "reported=0.25", 50, 150 }
	};
	struct simulate_options o = options_of(_i, 4, 100000);
	struct kvr_stats t;
	struct setup u;
	size_t i;

	for (i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		ck_assert_ptr_null(engine_report_parse(said[i].text,
		    &o.reports));
		begin(&u, &o, 512);
		simulate_sample(&u, 400, 1);
		ck_assert_int_eq(simulate_index_stats(u.s, &t), KVR_OK);
		ck_assert_uint_ge(t.calibration.reports, said[i].least);
		ck_assert_uint_le(t.calibration.reports, said[i].most);
		ck_assert_uint_eq(
		    t.calibration.reports + t.calibration.unreported, 400);
		end(&u);
	}
}
END_TEST

/* Each router has the cost, and its weights, in blocks of its own. */
START_TEST(costs_told)
{
	static const uint32_t blocks[] = { 16, 512, 2048 };
	static const double requests[] = { 64, 2, 0.5 };
	struct simulate_options o = options_of(_i == 3 ? 5 : 3, 2, 0);
	struct kvr_policy p = { .size = sizeof(p) };
	struct setup u;
	uint32_t r;

	o.replicas = 2;
	o.weights.overlap_credit = 2;
	o.weights.prefill_scale = 4;
	o.weights.request_weight = 64;
	begin(&u, &o, blocks[_i % 3]);
	for (r = 0; r < o.replicas; r++) {
		ck_assert_int_eq(kvr_policy_get(u.s->routers[r].k, &p),
		    KVR_OK);
		ck_assert_uint_eq(p.cost, _i == 3 ? KVR_COST_BALANCED
		    : KVR_COST_DYNAMO);
		ck_assert_double_eq(p.overlap_credit, 2);
		ck_assert_double_eq(p.prefill_scale, 4);
		ck_assert_double_eq(p.request_weight, requests[_i % 3]);
	}
	end(&u);
}
END_TEST

/* With a credit of 0 only load counts: hits elsewhere are not looked for. */
START_TEST(weights_matter)
{
	struct simulate_options o = options_of(3, 4, 100000);
	struct simulate_totals a, b;
	int64_t x;

	a = totals_of(&o, &x);
	o.weights.overlap_credit = 0;
	b = totals_of(&o, &x);
	ck_assert_uint_lt(b.hit_tokens, a.hit_tokens);
}
END_TEST

/* Half of the engines; the others report, except for short prompts. */
START_TEST(silent)
{
	struct simulate_options o = options_of(_i, 4, 100000);
	const struct simulate_ride *rides;
	struct kvr_stats t;
	uint64_t heard = 0;
	struct setup u;
	size_t n, i;

	o.silent = 2;
	begin(&u, &o, 512);
	simulate_sample(&u, 400, 1);
	rides = simulate_rides(u.s, &n);
	for (i = 0; i < n; i++)
		heard += rides[i].worker % 2 == 0;
	ck_assert_int_eq(simulate_index_stats(u.s, &t), KVR_OK);
	ck_assert_uint_le(t.calibration.reports, heard);
	ck_assert_uint_ge(t.calibration.reports * 8, heard * 7);
	ck_assert_uint_gt(heard, 0);
	ck_assert_uint_lt(heard, n);
	end(&u);
}
END_TEST

/* ------------------------------------------------------------- the past --- */

/*
 * Requests are three seconds apart, so that no two are in the fleet together:
 * a waiting one may lose its hits. They are drawn in this order by any
 * compiler.
 */
static struct simulate_totals
apart(const struct simulate_options *o)
{
	uint64_t ids[40], i, k;
	struct simulate_totals t;
	struct rng r = { 5 };
	struct setup u;

	begin(&u, o, 512);
	for (i = 0; i < 300; i++) {
		uint64_t chat = rng_between(&r, 1, 6);
		uint64_t tokens = rng_between(&r, 1, 40 * 512);
		uint64_t output = rng_between(&r, 1, 60);

		for (k = 0; k < 40; k++)
			ids[k] = chat * 1000 + k;
		give_simple(&u, tokens, output, ids, (int64_t)i * 3000000019);
	}
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	t = *simulate_totals(u.s);
	end(&u);
	return t;
}

/* The twin equals the engine a nanosecond ago. */
START_TEST(just_past)
{
	struct simulate_options o = options_of(_i % 3 + ORACLES, 3, 30000);
	struct simulate_totals a, b;

	o.eviction = (enum engine_eviction)(_i / 3);
	o.reset_ns = INT64_C(7700000000);
	a = apart(&o);
	o.event_delay_ns = 1;
	b = apart(&o);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	ck_assert_uint_gt(a.hit_tokens, 0);
	ck_assert_uint_eq(a.over_tokens + a.under_tokens, 0);
}
END_TEST

/* The later the events, the worse the predictions. */
START_TEST(long_past)
{
	struct simulate_options o = options_of(_i, 3, 30000);
	struct simulate_totals t;

	o.event_delay_ns = INT64_C(20000000000);
	t = apart(&o);
	ck_assert_uint_gt(t.over_tokens, 0);
	ck_assert_uint_gt(t.under_tokens, 0);
	o.event_delay_ns = INT64_C(1000000000000);
	t = apart(&o);
	ck_assert_uint_eq(t.predicted_tokens, 0);
	ck_assert_uint_gt(t.hit_tokens, 0);
}
END_TEST

/* ------------------------------------------------------------- replicas --- */

/*
 * Routers that exchange everything decide like one router: each books the
 * predictions of the others.
 */
START_TEST(exchange_makes_one)
{
	struct simulate_options o = options_of(_i, 4, 100000);
	struct simulate_totals a, b;
	int64_t x, y;

	a = totals_of(&o, &x);
	o.replicas = 3;
	o.exchange = SIMULATE_ALL;
	b = totals_of(&o, &y);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	ck_assert_int_eq(x, y);
}
END_TEST

/* Without exchange each router sees a third of the requests and hits less. */
START_TEST(no_exchange)
{
	struct simulate_options o = options_of(_i, 4, 0);
	struct simulate_totals a, b;
	int64_t x;

	a = totals_of(&o, &x);
	o.replicas = 3;
	b = totals_of(&o, &x);
	ck_assert_uint_eq(a.finished, b.finished);
	ck_assert_uint_lt(b.hit_tokens, a.hit_tokens);
}
END_TEST

/* ---------------------------------------------------------------- times --- */

/* Against a linear search. */
START_TEST(times_like_a_list)
{
	uint32_t n = (uint32_t)_i + 1, i, w, first;
	int64_t *list = calloc(n, sizeof(*list));
	struct rng r = { 9 };
	struct times t;

	ck_assert_int_eq(times_make(&t, n), 0);
	for (i = 0; i < n; i++)
		list[i] = TIMES_NEVER;
	for (i = 0; i < 300; i++) {
		w = (uint32_t)rng_between(&r, 0, n - 1);
		list[w] = rng_between(&r, 0, 3) == 0 ? TIMES_NEVER :
		    (int64_t)rng_between(&r, 0, 20);
		times_set(&t, w, list[w]);
		ck_assert_int_eq(times_get(&t, w), list[w]);
		for (first = w = 0; w < n; w++)
			first = list[w] < list[first] ? w : first;
		ck_assert_int_eq(times_least(&t), list[first]);
		if (list[first] != TIMES_NEVER)
			ck_assert_uint_eq(times_first(&t), first);
	}
	times_free(&t);
	free(list);
}
END_TEST

Suite *suite_simulate_fleets(void);

Suite *
suite_simulate_fleets(void)
{
	Suite *s = suite_create("simulate_fleets");
	TCase *c = tcase_create("simulate_fleets");

	tcase_add_loop_test(c, lists_of_one_kind, 0, KINDS);
	tcase_add_loop_test(c, faster_engines, 0, KINDS);
	tcase_add_loop_test(c, resets, 0, KINDS);
	tcase_add_loop_test(c, other_blocks, 0, 3 * KINDS);
	tcase_add_loop_test(c, random_eviction, 0, KINDS);
	tcase_add_loop_test(c, reports, 3, KINDS);
	tcase_add_loop_test(c, costs_told, 0, 4);
	tcase_add_test(c, weights_matter);
	tcase_add_loop_test(c, silent, 3, KINDS);
	tcase_add_loop_test(c, just_past, 0, 3 * 3);
	tcase_add_loop_test(c, long_past, ORACLES, KINDS);
	tcase_add_loop_test(c, exchange_makes_one, 0, KINDS);
	tcase_add_loop_test(c, no_exchange, 3, ORACLES);
	tcase_add_loop_test(c, times_like_a_list, 0, 20);
	suite_add_tcase(s, c);
	return s;
}
