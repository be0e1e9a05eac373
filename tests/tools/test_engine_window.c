/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_engine_window.c - modelled engines with windows in some layers. A block
 * has 512 tokens. A window of 513 has a tail of one block, and one of 1024 a
 * tail of two.
 */
#include "test.h"

#include "engine.h"

enum { B = ENGINE_BLOCK };

static struct engine *
with_window(uint64_t blocks, const struct engine_window_idea *window)
{
	struct engine_idea idea = { .blocks = blocks, .block_tokens = B,
	    .speed = 1, .window = *window };
	struct engine *e = engine_new(&idea);

	ck_assert_ptr_nonnull(e);
	return e;
}

/* The prompt has `blocks` whole blocks and a token more. */
static void
serve(struct engine *e, uint64_t blocks, const uint64_t *ids)
{
	submit(e, 0, blocks * B + 1, 1, ids);
	run(e, 0);
}

static uint64_t
reusable(const struct engine *e, uint64_t blocks, const uint64_t *ids)
{
	return cached(e, blocks * B + 1, ids) / B;
}

static const uint64_t abcdefg[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
static const uint64_t abcxyz[] = { 1, 2, 3, 24, 25, 26, 27, 28 };
static const uint64_t abcuvw[] = { 1, 2, 3, 44, 45, 46, 47, 48 };

/* Only an end of a prompt, and a branch in a cached one, has a tail. */
START_TEST(boundary)
{
	static const struct engine_window_idea w = {
	    .mode = ENGINE_WINDOW_BOUNDARY, .groups = 5, .tokens = 1024 };
	struct engine *e = with_window(1000, &w);

	serve(e, 4, abcdefg);
	serve(e, 7, abcdefg);
	ck_assert_uint_eq(reusable(e, 7, abcdefg), 7);
	ck_assert_uint_eq(reusable(e, 6, abcdefg), 4);
	ck_assert_uint_eq(reusable(e, 3, abcdefg), 0);
	ck_assert_uint_eq(reusable(e, 6, abcxyz), 0);
	submit(e, 1, 6 * B + 1, 1, abcxyz);
	expect(e, ENGINE_ADMITTED, 1, 0);
	run(e, 0);
	ck_assert_uint_eq(reusable(e, 6, abcuvw), 3);
	submit(e, 2, 6 * B + 1, 1, abcuvw);
	expect(e, ENGINE_ADMITTED, 2, 3 * B);
	run(e, 0);
	engine_free(e);
}
END_TEST

/* A path within a window is its own tail. */
START_TEST(short_path)
{
	static const struct engine_window_idea w = {
	    .mode = ENGINE_WINDOW_BOUNDARY, .groups = 1, .tokens = 2048 };
	struct engine *e = with_window(1000, &w);

	serve(e, 4, abcdefg);
	ck_assert_uint_eq(reusable(e, 6, abcxyz), 3);
	engine_free(e);
}
END_TEST

START_TEST(interval_and_alignment)
{
	static const struct engine_window_idea every = {
	    .mode = ENGINE_WINDOW_BOUNDARY, .groups = 2, .tokens = 1024,
	    .interval = 3 * B };
	static const struct engine_window_idea aligned = {
	    .mode = ENGINE_WINDOW_BOUNDARY, .groups = 2, .tokens = 1024,
	    .align = 3 * B };
	struct engine *e = with_window(1000, &every);

	serve(e, 7, abcdefg);
	ck_assert_uint_eq(reusable(e, 7, abcdefg), 7);
	ck_assert_uint_eq(reusable(e, 5, abcdefg), 3);
	ck_assert_uint_eq(reusable(e, 6, abcxyz), 3);
	ck_assert_uint_eq(reusable(e, 2, abcdefg), 0);
	engine_free(e);
	e = with_window(1000, &aligned);
	serve(e, 7, abcdefg);
	ck_assert_uint_eq(reusable(e, 7, abcdefg), 6);
	ck_assert_uint_eq(reusable(e, 5, abcdefg), 0);
	engine_free(e);
}
END_TEST

/* Anywhere, but a prompt takes as much room as it has groups. */
START_TEST(dense)
{
	static const struct engine_window_idea w = {
	    .mode = ENGINE_WINDOW_DENSE, .groups = 5, .tokens = 1024 };
	uint64_t other[8];
	struct engine *e = with_window(66, &w);
	struct engine_state state;
	uint64_t i;

	serve(e, 7, abcdefg);
	engine_state(e, &state);
	ck_assert_uint_eq(state.idle, 7 * 6);
	ck_assert_uint_eq(reusable(e, 6, abcdefg), 6);
	ck_assert_uint_eq(reusable(e, 6, abcxyz), 3);
	for (i = 0; i < 8; i++)
		other[i] = 100 + i;
	serve(e, 7, other);
	ck_assert_uint_eq(reusable(e, 7, other), 7);
	ck_assert_uint_eq(reusable(e, 6, abcxyz), 0);
	engine_free(e);
	/* without windows there is room for both */
	e = plain(66);
	serve(e, 7, abcdefg);
	serve(e, 7, other);
	ck_assert_uint_eq(reusable(e, 7, abcdefg), 7);
	engine_free(e);
}
END_TEST

/* The memory of tails is filled, and the blocks are still there. */
START_TEST(dual)
{
	static const struct engine_window_idea w = {
	    .mode = ENGINE_WINDOW_DUAL, .groups = 5, .tokens = 1024,
	    .capacity = 4 * B };
	uint64_t other[8], i, n;
	struct engine *e = with_window(1000, &w);
	struct engine_state state;

	serve(e, 7, abcdefg);
	for (n = 1; n <= 2; n++) {
		ck_assert_uint_eq(reusable(e, 7, abcdefg), 7);
		for (i = 0; i < 8; i++)
			other[i] = 100 * n + i;
		serve(e, 7, other);
	}
	ck_assert_uint_eq(reusable(e, 7, abcdefg), 0);
	ck_assert_uint_eq(reusable(e, 7, other), 7);
	engine_state(e, &state);
	ck_assert_uint_eq(state.idle, 3 * 7);
	engine_reset(e);
	ck_assert_uint_eq(reusable(e, 7, other), 0);
	engine_free(e);
}
END_TEST

/* A request that needs more than the memory is refused, tails included. */
START_TEST(too_large)
{
	static const struct engine_window_idea w = {
	    .mode = ENGINE_WINDOW_BOUNDARY, .groups = 5, .tokens = 1024 };
	struct engine_request r = { .tokens = 4 * B + 1, .output = 1,
	    .ids = abcdefg };
	struct engine *e = with_window(34, &w);

	ck_assert_int_eq(engine_submit(e, &r), ENGINE_TOO_LARGE);
	engine_free(e);
	e = with_window(35, &w);
	ck_assert_int_eq(engine_submit(e, &r), ENGINE_OK);
	run(e, 0);
	engine_free(e);
}
END_TEST

/* Blocks that were never computed are not cached, tails included. */
START_TEST(dropped)
{
	static const struct engine_window_idea w = {
	    .mode = ENGINE_WINDOW_BOUNDARY, .groups = 5, .tokens = 1024 };
	struct engine *e = with_window(1000, &w);
	struct engine_state state;

	submit(e, 3, 7 * B + 1, 1, abcdefg);
	engine_drop(e, 3);
	ck_assert(engine_check(e));
	engine_state(e, &state);
	ck_assert_uint_eq(state.idle + state.pinned, 0);
	engine_free(e);
}
END_TEST

/* Random requests: consistent after each step, and nothing is left. */
START_TEST(consistent)
{
	struct engine_window_idea w = { .mode = ENGINE_WINDOW_BOUNDARY +
	    (uint32_t)_i % 3, .groups = 1 + (uint32_t)_i % 4,
	    .tokens = 1 + 300 * (uint32_t)_i, .capacity = 3000,
	    .interval = _i % 2 == 0 ? 0 : 1000 };
	struct engine_idea idea = { .blocks = 400, .block_tokens = 100,
	    .speed = 1, .window = w, .preempt = _i > 5, .seed = 1 };
	struct engine *e = engine_new(&idea);
	struct rng rng = { .state = (uint64_t)_i };
	struct engine_state state;
	uint64_t ids[8], n;

	for (n = 0; n < 300; n++) {
		struct engine_request r = any_request(&rng, n, ids);

		ck_assert_int_eq(engine_submit(e, &r) == ENGINE_NO_MEMORY, 0);
		ck_assert(engine_check(e));
		if (n % 7 == 0)
			engine_drop(e, rng_between(&rng, 0, n));
		if (n % 3 == 0)
			continue;
		engine_begin(e, 0);
		ck_assert_int_eq(engine_end(e), ENGINE_OK);
		ck_assert(engine_check(e));
	}
	run(e, 0);
	engine_state(e, &state);
	ck_assert_uint_eq(state.pinned + state.own, 0);
	engine_reset(e);
	engine_state(e, &state);
	ck_assert_uint_eq(state.idle, 0);
	engine_free(e);
}
END_TEST

/* A hit equals the result of engine_cached. */
START_TEST(promised)
{
	struct engine_window_idea w = { .mode = ENGINE_WINDOW_BOUNDARY +
	    (uint32_t)_i % 3, .groups = 2, .tokens = 300, .capacity = 2000 };
	struct engine_idea idea = { .blocks = 300, .block_tokens = 100,
	    .speed = 1, .window = w };
	struct engine *e = engine_new(&idea);
	struct rng rng = { .state = 7 };
	uint64_t ids[8], n, hits = 0;

	for (n = 0; n < 300; n++) {
		struct engine_request r = any_request(&rng, n, ids);
		uint64_t will = engine_cached(e, &r);

		if (engine_submit(e, &r) != ENGINE_OK)
			continue;
		expect(e, ENGINE_ADMITTED, n, will);
		hits += will;
		run_quickly(e);
	}
	ck_assert_uint_gt(hits, 0);
	engine_free(e);
}
END_TEST

Suite *
suite_engine_window(void)
{
	Suite *s = suite_create("engine_window");
	TCase *t = tcase_create("window");

	suite_add_tcase(s, t);
	tcase_add_test(t, boundary);
	tcase_add_test(t, short_path);
	tcase_add_test(t, interval_and_alignment);
	tcase_add_test(t, dense);
	tcase_add_test(t, dual);
	tcase_add_test(t, too_large);
	tcase_add_test(t, dropped);
	tcase_add_loop_test(t, consistent, 0, 12);
	tcase_add_loop_test(t, promised, 0, 3);
	return s;
}
