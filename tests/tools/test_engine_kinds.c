/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_engine_kinds.c - modelled engines with other block sizes, speeds and
 * orders of eviction, and consistency under random load.
 */
#include "test.h"

#include "engine.h"

enum { SIZES = 7 };
static const uint32_t sizes[SIZES] = { 512, 1, 16, 32, 300, 1000, 2176 };

static struct engine *
sized(uint64_t tokens, uint32_t block, enum engine_eviction eviction,
    double speed)
{
	struct engine_idea idea = { .blocks = tokens == ENGINE_ENDLESS ?
	    tokens : tokens / block, .block_tokens = block,
	    .eviction = eviction, .speed = speed, .seed = 3 };

	return engine_new(&idea);
}

/* Blocks of 300 cover A, A and B, B, B and C. */
START_TEST(blocks_across_ids)
{
	static const uint64_t abc[] = { 1, 2, 3 }, abd[] = { 1, 2, 4 };
	static const uint64_t acb[] = { 1, 3, 2 };
	struct engine *e = sized(ENGINE_ENDLESS, 300, ENGINE_EVICT_RELEASED,
	    1);

	submit(e, 0, 1536, 1, abc);
	expect(e, ENGINE_ADMITTED, 0, 0);
	ck_assert_uint_eq(cached(e, 1536, abc), 1500);
	ck_assert_uint_eq(cached(e, 1500, abc), 1200);
	ck_assert_uint_eq(cached(e, 1501, abc), 1500);
	ck_assert_uint_eq(cached(e, 1536, abd), 900);
	ck_assert_uint_eq(cached(e, 1536, acb), 300);
	ck_assert_uint_eq(cached(e, 300, abc), 0);
	run(e, 0);
	engine_free(e);
}
END_TEST

/* The cost of memory is per token, and no other cost depends on blocks. */
START_TEST(same_steps_in_any_block)
{
	uint64_t ids[5] = { 1, 2, 3, 4, 5 };
	size_t i;

	for (i = 0; i < SIZES; i++) {
		struct engine *e = sized(ENGINE_ENDLESS, sizes[i],
		    ENGINE_EVICT_RELEASED, 1);
		/* 2101 tokens, rounded up to whole blocks */
		int64_t memory = (2101 + sizes[i] - 1) / sizes[i] * sizes[i];

		submit(e, 0, 2100, 1, ids);
		ck_assert_int_eq(engine_begin(e, 0), 15000000 + 100000 +
		    memory * 5000 / 512 + 2048 * 50000);
		engine_free(e);
	}
}
END_TEST

START_TEST(speeds)
{
	static const double speed[] = { 1, 2, 4, 0.5 };
	uint64_t ids[5] = { 1, 2, 3, 4, 5 };
	size_t i;

	for (i = 0; i < 4; i++) {
		struct engine *e = sized(ENGINE_ENDLESS, 512,
		    ENGINE_EVICT_RELEASED, speed[i]);

		submit(e, 0, 2100, 1, ids);
		ck_assert_int_eq(engine_begin(e, 7), 7 +
		    (int64_t)((double)step(1, 5, 2048) / speed[i]));
		ck_assert_int_eq(engine_end(e), ENGINE_OK);
		engine_free(e);
	}
}
END_TEST

/* Output events are per 512 tokens with any block size. */
START_TEST(answers_grow_the_same)
{
	static const uint64_t ids[] = { 1 };
	size_t i;

	for (i = 0; i < SIZES; i++) {
		struct engine *e = sized(ENGINE_ENDLESS, sizes[i],
		    ENGINE_EVICT_RELEASED, 1);
		struct engine_event event = { ENGINE_ADMITTED, 0, 0 };
		uint64_t told = 0;

		submit(e, 0, 500, 600, ids);
		while (event.kind != ENGINE_FINISHED) {
			if (!engine_next(e, &event)) {
				engine_begin(e, 0);
				ck_assert_int_eq(engine_end(e), ENGINE_OK);
			} else if (event.kind == ENGINE_GENERATED) {
				ck_assert_uint_eq(event.tokens,
				    told == 0 ? 13 : 525);
				told++;
			}
		}
		ck_assert_uint_eq(told, 2);
		engine_free(e);
	}
}
END_TEST

/* A reset evicts idle blocks; running requests continue. */
START_TEST(reset)
{
	static const uint64_t a[] = { 1, 2, 3 }, b[] = { 1, 5 };
	struct engine *e = plain(20);
	struct engine_state s;

	submit(e, 0, 1536, 1500, a);
	run(e, 0);
	submit(e, 1, 700, 2, b); /* pins the first block of A */
	expect(e, ENGINE_ADMITTED, 1, 512);
	engine_begin(e, 0);
	engine_reset(e);
	ck_assert(engine_check(e));
	engine_state(e, &s);
	ck_assert_uint_eq(s.idle, 0);
	ck_assert_uint_eq(s.pinned, 1);
	ck_assert_uint_eq(s.own, 1);
	ck_assert_uint_eq(cached(e, 1536, a), 512);
	ck_assert_int_eq(engine_end(e), ENGINE_OK);
	expect(e, ENGINE_FIRST_TOKEN, 1, 1);
	run(e, 0);
	engine_state(e, &s);
	ck_assert_uint_eq(s.idle, 1);
	engine_reset(e);
	ck_assert_uint_eq(cached(e, 1536, a), 0);
	engine_state(e, &s);
	ck_assert_uint_eq(s.idle + s.pinned + s.own, 0);
	engine_free(e);
}
END_TEST

/* Runs until the request is admitted; returns its hits. */
static uint64_t
hits_of(struct engine *e, uint64_t request)
{
	struct engine_event event;

	for (;;) {
		while (engine_next(e, &event))
			if (event.kind == ENGINE_ADMITTED &&
			    event.request == request)
				return event.tokens;
		ck_assert(engine_begin(e, 0) != INT64_MAX);
		ck_assert_int_eq(engine_end(e), ENGINE_OK);
	}
}

/*
 * A's prompt arrives again and waits behind a request that needs the room of
 * two blocks. If waiting is a use, B is less recently used, otherwise A is.
 */
static uint64_t
hits_of_who_waits(enum engine_eviction eviction)
{
	static const uint64_t a[] = { 1, 2 }, b[] = { 3, 4 };
	static const uint64_t c[] = { 5, 6, 7, 8, 9, 10, 11 };
	struct engine *e = sized(9 * 512, 512, eviction, 1);
	uint64_t i, hit;

	submit(e, 0, 1024, 1, a);
	run(e, 0);
	submit(e, 1, 1024, 1, b);
	run(e, 0);
	for (i = 2; i < 7; i++) /* one block each, which is not cached */
		submit(e, i, 1, 100, c);
	submit(e, 7, 3583, 1, c); /* 7 */
	submit(e, 8, 1024, 1, a);
	hit = hits_of(e, 8);
	engine_free(e);
	return hit;
}

START_TEST(waiting)
{
	ck_assert_uint_eq(hits_of_who_waits(ENGINE_EVICT_RELEASED), 0);
	ck_assert_uint_eq(hits_of_who_waits(ENGINE_EVICT_LEAF), 512);
}
END_TEST

/* Random eviction of a head: the tail takes room but cannot be hit. */
START_TEST(heads_leave_too)
{
	static const uint64_t a[] = { 1, 2, 3, 4, 5 }, b[] = { 9 };
	uint64_t lost[6] = { 0, 0, 0, 0, 0, 0 }, seed;

	for (seed = 0; seed < 500; seed++) {
		struct engine_idea idea = { .blocks = 5,
		    .block_tokens = 512, .eviction = ENGINE_EVICT_RANDOM,
		    .speed = 1, .seed = seed };
		struct engine *e = engine_new(&idea);
		struct engine_state s;

		submit(e, 0, 2100, 1, a); /* 4 stay cached */
		run(e, 0);
		submit(e, 1, 1000, 1, b); /* 2: one is evicted */
		engine_state(e, &s);
		ck_assert_uint_eq(s.idle, 3);
		lost[cached(e, 2560, a) / 512]++;
		engine_free(e);
	}
	ck_assert_uint_eq(lost[4] + lost[5], 0);
	for (seed = 0; seed < 4; seed++) {
		ck_assert_uint_gt(lost[seed], 90);
		ck_assert_uint_lt(lost[seed], 160);
	}
}
END_TEST

/* -------------------------------------------------------------- random --- */

/* A hash of all events; each request is served, in order. */
static uint64_t
serve(struct engine *e, uint64_t seed, uint64_t n)
{
	uint64_t ids[8], admitted = 0, finished = 0, hash = 0, i;
	struct rng rng = { seed };
	struct engine_event event;
	int64_t now = 0, next;

	for (i = 0; finished < n;) {
		struct engine_request r = any_request(&rng, i, ids);

		if (i < n && rng_between(&rng, 0, 99) == 0) {
			ck_assert_int_eq(engine_submit(e, &r), ENGINE_OK);
			i++;
		}
		if (rng_between(&rng, 0, 9999) == 0)
			engine_reset(e);
		next = engine_begin(e, now);
		now = next == INT64_MAX ? now : next;
		if ((next != INT64_MAX && engine_end(e) != ENGINE_OK) ||
		    !engine_check(e))
			ck_abort_msg("KVR_SEED=%llu",
			    (unsigned long long)seed);
		while (engine_next(e, &event)) {
			if (event.kind == ENGINE_ADMITTED)
				ck_assert_uint_eq(event.request, admitted++);
			finished += event.kind == ENGINE_FINISHED;
			hash = hash * 31 + (uint64_t)event.kind;
			hash = hash * 31 + event.tokens;
		}
	}
	ck_assert_uint_eq(admitted, n);
	ck_assert(engine_begin(e, 0) == INT64_MAX);
	return hash * 31 + (uint64_t)now;
}

START_TEST(nothing_is_lost)
{
	uint64_t seed = test_seed();
	size_t i;

	for (i = 0; i < SIZES; i++) {
		struct engine *e = sized(40 * 512, sizes[i],
		    (enum engine_eviction)_i, 1);

		serve(e, seed, sizes[i] == 512 ? test_amount(2000) :
		    test_amount(sizes[i] == 1 ? 10 : 200));
		engine_free(e);
	}
}
END_TEST

START_TEST(same_seed_same_result)
{
	uint64_t seed = test_seed(), first = 0, hash, n_;

	for (n_ = 0; n_ < 3; n_++) {
		struct engine_idea idea = { .blocks = 40 * 32,
		    .block_tokens = 16, .eviction = (enum engine_eviction)_i,
		    .speed = 1, .seed = n_ / 2 };
		struct engine *e = engine_new(&idea);

		hash = serve(e, seed, 100);
		engine_free(e);
		if (n_ == 0)
			first = hash;
		/* the third has another seed: matters only for RANDOM */
		ck_assert_msg((hash == first) == (n_ < 2 ||
		    _i != ENGINE_EVICT_RANDOM), "KVR_SEED=%llu",
		    (unsigned long long)seed);
	}
}
END_TEST

/* Without eviction, hits are the longest prefix of any earlier prompt. */
START_TEST(longest_common_prefix)
{
	enum { PROMPTS = 60, IDS = 24 };
	static uint64_t ids[PROMPTS][IDS];
	uint64_t tokens[PROMPTS], seed = test_seed(), i, j, k, best, same;
	struct rng rng = { seed };
	size_t size;

	for (size = 0; size < SIZES; size++) {
		uint32_t block = sizes[size];
		struct engine *e = sized(ENGINE_ENDLESS, block,
		    ENGINE_EVICT_LEAF, 1);

		for (i = 0; i < PROMPTS; i++) {
			struct engine_request r = { .number = i,
			    .output = 1, .ids = ids[i] };

			tokens[i] = rng_between(&rng, 1, IDS * 512);
			r.tokens = tokens[i];
			for (j = 0; j < IDS; j++)
				ids[i][j] = rng_between(&rng, 0, 19) == 0;
			for (best = 0, j = 0; j < i; j++) {
				for (k = 0; k < IDS &&
				    ids[i][k] == ids[j][k]; k++)
					;
				same = k * 512 < tokens[j] ? k * 512 :
				    tokens[j];
				same = same < tokens[i] - 1 ? same :
				    tokens[i] - 1;
				best = same > best ? same : best;
			}
			ck_assert_msg(engine_cached(e, &r) ==
			    best / block * block, "KVR_SEED=%llu",
			    (unsigned long long)seed);
			ck_assert_int_eq(engine_submit(e, &r), ENGINE_OK);
			run_quickly(e);
		}
		engine_free(e);
	}
}
END_TEST

Suite *suite_engine_kinds(void);

Suite *
suite_engine_kinds(void)
{
	Suite *s = suite_create("engine_kinds");
	TCase *c = tcase_create("engine_kinds");

	tcase_add_test(c, blocks_across_ids);
	tcase_add_test(c, same_steps_in_any_block);
	tcase_add_test(c, speeds);
	tcase_add_test(c, answers_grow_the_same);
	tcase_add_test(c, reset);
	tcase_add_test(c, waiting);
	tcase_add_test(c, heads_leave_too);
	tcase_add_loop_test(c, nothing_is_lost, 0, 3);
	tcase_add_loop_test(c, same_seed_same_result, 0, 3);
	tcase_add_test(c, longest_common_prefix);
	suite_add_tcase(s, c);
	return s;
}
