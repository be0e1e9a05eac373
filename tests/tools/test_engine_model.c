/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_engine_model.c - the modelled engine against schedules and caches
 * computed by hand. See test_engine_kinds.c for other kinds of engines.
 */
#include "test.h"

#include "alloc.h"
#include "engine.h"

/* ----------------------------------------------------------- schedules --- */

/* 700 tokens are one named block and one without a name. */
START_TEST(one_request)
{
	static const uint64_t ids[] = { 1, 2 };
	struct engine *e = plain(ENGINE_ENDLESS);
	int64_t now = 1000, next;

	ck_assert(engine_begin(e, now) == INT64_MAX);
	submit(e, 7, 700, 3, ids);
	expect(e, ENGINE_ADMITTED, 7, 0);
	next = engine_begin(e, now);
	ck_assert_int_eq(next - now, step(1, 2, 700));
	ck_assert_int_eq(next - now, 50110000);
	ck_assert_int_eq(engine_end(e), ENGINE_OK);
	expect(e, ENGINE_FIRST_TOKEN, 7, 1);
	expect_silence(e);
	now = next;
	next = engine_begin(e, now);
	ck_assert_int_eq(next - now, step(1, 2, 0));
	ck_assert_int_eq(engine_end(e), ENGINE_OK);
	expect_silence(e);
	engine_begin(e, next);
	ck_assert_int_eq(engine_end(e), ENGINE_OK);
	expect(e, ENGINE_FINISHED, 7, 3);
	expect_silence(e);
	ck_assert(engine_begin(e, next) == INT64_MAX);
	engine_free(e);
}
END_TEST

/* A long prompt takes several chunks; output 0 counts as one token. */
START_TEST(chunks)
{
	uint64_t ids[10];
	struct engine *e = plain(ENGINE_ENDLESS);
	int64_t now;
	uint64_t i;

	for (i = 0; i < 10; i++)
		ids[i] = i;
	submit(e, 0, 5000, 0, ids);
	now = run(e, 0);
	/* 9 blocks, and one for 392 tokens and the output */
	ck_assert_int_eq(now, 2 * step(1, 10, 2048) + step(1, 10, 904));
	engine_free(e);
}
END_TEST

/* The second request gets the rest of the first one's chunk. */
START_TEST(two_share_a_step)
{
	static const uint64_t a[] = { 1, 2, 3 }, b[] = { 4, 5 };
	struct engine *e = plain(ENGINE_ENDLESS);
	int64_t first, second;

	submit(e, 0, 1500, 2, a); /* 2 blocks and 1 */
	submit(e, 1, 1000, 2, b); /* 1 and 1 */
	expect(e, ENGINE_ADMITTED, 0, 0);
	expect(e, ENGINE_ADMITTED, 1, 0);
	first = engine_begin(e, 0);
	ck_assert_int_eq(first, step(2, 5, 2048));
	engine_end(e);
	expect(e, ENGINE_FIRST_TOKEN, 0, 1);
	expect_silence(e);
	second = engine_begin(e, first);
	ck_assert_int_eq(second - first, step(2, 5, 452));
	engine_end(e);
	expect(e, ENGINE_FINISHED, 0, 2);
	expect(e, ENGINE_FIRST_TOKEN, 1, 1);
	ck_assert_int_eq(run(e, second) - second, step(1, 2, 0));
	engine_free(e);
}
END_TEST

/* Requests that wait for prefill or arrive during a step are not in it. */
START_TEST(not_in_the_step)
{
	static const uint64_t a[] = { 1, 2, 3, 4 }, b[] = { 5 };
	struct engine *e = plain(ENGINE_ENDLESS);
	int64_t first, second;

	submit(e, 0, 2048, 1, a); /* 4 and 1 */
	submit(e, 1, 100, 1, b);  /* 1 */
	first = engine_begin(e, 0);
	ck_assert_int_eq(first, step(1, 6, 2048));
	ck_assert(engine_begin(e, 5) == INT64_MAX);
	submit(e, 2, 50, 1, b);
	engine_end(e);
	second = engine_begin(e, first);
	ck_assert_int_eq(second - first, step(2, 2, 150));
	engine_free(e);
}
END_TEST

/* 500 tokens and 13 more begin a second block, 1025 in all a third. */
START_TEST(answers_grow)
{
	static const uint64_t ids[] = { 1 };
	struct engine *e = plain(ENGINE_ENDLESS);
	struct engine_event event;
	int64_t now = 0;
	uint64_t grown[4], n = 0;

	submit(e, 0, 500, 600, ids);
	for (event.kind = ENGINE_ADMITTED; event.kind != ENGINE_FINISHED;) {
		if (!engine_next(e, &event)) {
			now = engine_begin(e, now);
			ck_assert_int_eq(engine_end(e), ENGINE_OK);
		} else if (event.kind == ENGINE_GENERATED) {
			ck_assert_uint_lt(n, 4);
			grown[n++] = event.tokens;
		}
	}
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(grown[0], 13);
	ck_assert_uint_eq(grown[1], 525);
	engine_free(e);
}
END_TEST

/* -------------------------------------------------------------- caches --- */

/* One token is always computed; equal ids after a different prefix miss. */
START_TEST(what_hits)
{
	static const uint64_t ids[] = { 1, 2, 3 }, other[] = { 9, 2, 3 };
	struct engine *e = plain(ENGINE_ENDLESS);

	submit(e, 0, 1536, 1, ids);
	run(e, 0);
	ck_assert_uint_eq(cached(e, 512, ids), 0);
	ck_assert_uint_eq(cached(e, 513, ids), 512);
	ck_assert_uint_eq(cached(e, 1024, ids), 512);
	ck_assert_uint_eq(cached(e, 1536, ids), 1024);
	ck_assert_uint_eq(cached(e, 1536, other), 0);
	submit(e, 1, 1024, 1, ids);
	expect(e, ENGINE_ADMITTED, 1, 512);
	ck_assert_int_eq(engine_begin(e, 0), step(1, 3, 512));
	engine_free(e);
}
END_TEST

/* An admitted prompt is cached for later ones and computed once. */
START_TEST(hits_what_runs)
{
	static const uint64_t ids[] = { 1, 2, 3 };
	struct engine *e = plain(ENGINE_ENDLESS);
	struct engine_state s;

	submit(e, 0, 1100, 1, ids);
	submit(e, 1, 1200, 1, ids);
	expect(e, ENGINE_ADMITTED, 0, 0);
	expect(e, ENGINE_ADMITTED, 1, 1024);
	engine_state(e, &s);
	ck_assert_uint_eq(s.pinned, 2);
	ck_assert_uint_eq(s.own, 2);
	ck_assert_int_eq(engine_begin(e, 0), step(2, 4, 1276));
	engine_free(e);
}
END_TEST

/* Six blocks: a2 is evicted first, then a1 and a0, b0 only after all of A. */
START_TEST(tail_before_head)
{
	static const uint64_t a[] = { 1, 2, 3, 4 }, b[] = { 9, 9 };
	static const uint64_t c[] = { 7, 8, 9 }, d[] = { 5, 6, 7 };
	struct engine *e = plain(6);
	struct engine_state s;

	submit(e, 0, 1536, 1, a);
	run(e, 0);
	submit(e, 1, 600, 1, b);
	run(e, 0);
	engine_state(e, &s);
	ck_assert_uint_eq(s.idle, 4);
	ck_assert_uint_eq(cached(e, 1600, a), 1536);
	submit(e, 2, 1100, 1, c); /* 2 and 1: one too many */
	ck_assert_uint_eq(cached(e, 1600, a), 1024);
	run(e, 0);                /* a1 a0 b0 c1 c0 */
	submit(e, 3, 1100, 1, d); /* two too many */
	ck_assert_uint_eq(cached(e, 1600, a), 0);
	ck_assert_uint_eq(cached(e, 600, b), 512);
	ck_assert_uint_eq(cached(e, 1100, c), 1024);
	engine_free(e);
}
END_TEST

/* Hits are pinned before room is made for the rest of the request. */
START_TEST(hits_stay)
{
	static const uint64_t a[] = { 1, 2 }, b[] = { 1, 3, 4 };
	struct engine *e = plain(4);

	submit(e, 0, 1024, 1, a);
	run(e, 0); /* a1 a0 */
	submit(e, 1, 1536, 1, b);
	run(e, 0);
	ck_assert_uint_eq(cached(e, 1100, b), 1024);
	ck_assert_uint_eq(cached(e, 1100, a), 512);
	engine_free(e);
}
END_TEST

/* Outputs stay and take room, though they are never hit. */
START_TEST(answers_stay)
{
	static const uint64_t a[] = { 1 }, b[] = { 2 };
	struct engine *e = plain(4);
	struct engine_state s;

	submit(e, 0, 512, 1100, a); /* 1, 2 complete ones and a part */
	run(e, 0);
	engine_state(e, &s);
	ck_assert_uint_eq(s.idle, 3);
	ck_assert_uint_eq(s.own + s.pinned, 0);
	submit(e, 1, 512, 600, b); /* 3: evicts two of the output */
	ck_assert_uint_eq(cached(e, 513, a), 512);
	run(e, 0);
	engine_free(e);
}
END_TEST

static void
expect_change(const struct cache_change *change, uint64_t name, bool stored)
{
	ck_assert_uint_eq(change->name, name);
	ck_assert(change->stored == stored);
}

/*
 * Blocks of a prompt come at its admission, those of its output at its end,
 * and leave from the end.
 */
START_TEST(changes)
{
	static const uint64_t names[] = { 11, 12, 13, 14 }, other[] = { 21 };
	struct engine_idea idea = { .blocks = 5, .block_tokens = ENGINE_BLOCK,
	    .speed = 1, .watched = true };
	struct engine_request r = { .number = 1, .tokens = 1024,
	    .output = 1025, .known = 1024, .names = names };
	struct engine *e = engine_new(&idea);
	const struct cache_change *noted;
	size_t n, i;

	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(engine_submit(e, &r), ENGINE_OK);
	ck_assert(engine_changes(e, &noted, &n) && n == 2);
	run(e, 0);
	ck_assert(engine_changes(e, &noted, &n) && n == 4);
	for (i = 0; i < n; i++)
		expect_change(&noted[i], names[i], true);
	engine_noted(e);
	r = (struct engine_request){ .number = 2, .tokens = 512, .output = 1,
	    .names = other };
	ck_assert_int_eq(engine_submit(e, &r), ENGINE_OK);
	ck_assert(engine_changes(e, &noted, &n) && n == 2);
	expect_change(&noted[0], 14, false);
	expect_change(&noted[1], 21, true);
	engine_free(e);
}
END_TEST

/* ----------------------------------------------------------- admission --- */

/* A request that fits waits behind one that does not. */
START_TEST(waits_for_memory)
{
	static const uint64_t a[] = { 1, 2 }, b[] = { 3, 4 }, c[] = { 5 };
	struct engine *e = plain(4);
	struct engine_state s;

	submit(e, 0, 1000, 100, a); /* 1 and 2 */
	submit(e, 1, 600, 1, b);    /* 1 and 1 */
	submit(e, 2, 100, 1, c);    /* 1, and there is room for it */
	expect(e, ENGINE_ADMITTED, 0, 0);
	expect_silence(e);
	engine_state(e, &s);
	ck_assert_uint_eq(s.waiting, 2);
	do {
		engine_begin(e, 0);
		ck_assert_int_eq(engine_end(e), ENGINE_OK);
		ck_assert(engine_check(e));
		engine_state(e, &s);
	} while (s.waiting > 0);
	expect(e, ENGINE_FIRST_TOKEN, 0, 1);
	expect(e, ENGINE_GENERATED, 0, 25); /* token 1025 */
	expect(e, ENGINE_FINISHED, 0, 100);
	expect(e, ENGINE_ADMITTED, 1, 0);
	expect(e, ENGINE_ADMITTED, 2, 0);
	expect_silence(e);
	engine_free(e);
}
END_TEST

START_TEST(so_many_at_once)
{
	static const uint64_t ids[] = { 1 };
	struct engine *e = plain(ENGINE_ENDLESS);
	struct engine_state s;
	uint64_t i;

	for (i = 0; i < ENGINE_SEQUENCES + 3; i++)
		submit(e, i, 1, 1, ids);
	engine_state(e, &s);
	ck_assert_uint_eq(s.running, 256);
	ck_assert_uint_eq(s.waiting, 3);
	run(e, 0);
	engine_free(e);
}
END_TEST

START_TEST(too_large)
{
	static const uint64_t ids[] = { 1, 2, 3, 4 };
	struct engine *e = plain(3);
	struct engine_request r = { .tokens = 1536, .output = 1,
	    .ids = ids };

	ck_assert_int_eq(engine_submit(e, &r), ENGINE_TOO_LARGE);
	r.tokens = 1535;
	ck_assert_int_eq(engine_submit(e, &r), ENGINE_OK);
	r.tokens = 1;
	r.output = UINT64_MAX;
	ck_assert_int_eq(engine_submit(e, &r), ENGINE_TOO_LARGE);
	ck_assert(engine_check(e));
	engine_free(e);
}
END_TEST

/* -------------------------------------------------------------- memory --- */

/* Each allocation fails once: an error, and no leak. */
START_TEST(memory)
{
	unsigned long n, count = 0;
	bool whole = false;

	for (n = 1; !whole && n < 1000; n++) {
		uint64_t ids[8], i;
		struct rng rng = { 5 };
		enum engine_result result = ENGINE_OK;
		struct engine *e;

		alloc_fail_at(n);
		e = plain(40);
		for (i = 0; e != NULL && result == ENGINE_OK && i < 20; i++) {
			struct engine_request r = any_request(&rng, i, ids);

			result = engine_submit(e, &r);
			if (result == ENGINE_OK &&
			    engine_begin(e, 0) != INT64_MAX)
				result = engine_end(e);
		}
		count = alloc_count();
		alloc_reset();
		whole = e != NULL && result == ENGINE_OK;
		ck_assert(whole || e == NULL || result == ENGINE_NO_MEMORY);
		ck_assert(whole ? count < n : count >= n);
		engine_free(e);
	}
	ck_assert(whole && n > 20);
}
END_TEST

Suite *suite_engine_model(void);

Suite *
suite_engine_model(void)
{
	Suite *s = suite_create("engine_model");
	TCase *c = tcase_create("engine_model");

	tcase_add_test(c, one_request);
	tcase_add_test(c, chunks);
	tcase_add_test(c, two_share_a_step);
	tcase_add_test(c, not_in_the_step);
	tcase_add_test(c, answers_grow);
	tcase_add_test(c, what_hits);
	tcase_add_test(c, hits_what_runs);
	tcase_add_test(c, tail_before_head);
	tcase_add_test(c, hits_stay);
	tcase_add_test(c, answers_stay);
	tcase_add_test(c, changes);
	tcase_add_test(c, waits_for_memory);
	tcase_add_test(c, so_many_at_once);
	tcase_add_test(c, too_large);
	tcase_add_test(c, memory);
	suite_add_tcase(s, c);
	return s;
}
