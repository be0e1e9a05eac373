/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_engine_load.c - modelled engines under load: few slots, preemption,
 * batches that decoding shares, attention, slow spells and death; against
 * schedules computed by hand.
 */
#include "test.h"

#include "engine.h"

static const uint64_t a[] = { 1, 2, 3, 4 }, b[] = { 5, 6, 7, 8 };
static const uint64_t ab[] = { 1, 2, 7, 8 };

/* Nothing but the given differs from the engine of the header. */
static struct engine *
with(struct engine_idea idea)
{
	if (idea.blocks == 0)
		idea.blocks = ENGINE_ENDLESS;
	idea.block_tokens = ENGINE_BLOCK;
	idea.speed = 1;
	return engine_new(&idea);
}

/* Runs one step, begun at 0, and returns its time. */
static int64_t
one_step(struct engine *e)
{
	int64_t took = engine_begin(e, 0);

	ck_assert_int_eq(engine_end(e), ENGINE_OK);
	ck_assert(engine_check(e));
	return took;
}

static struct engine_state
state_of(const struct engine *e)
{
	struct engine_state s;

	engine_state(e, &s);
	return s;
}

/* --------------------------------------------------------------- slots --- */

/* The third waits for a slot, though there is memory. */
START_TEST(slots)
{
	struct engine *e = with((struct engine_idea){ .sequences = 2 });

	submit(e, 0, 100, 1, a);
	submit(e, 1, 100, 2, b);
	submit(e, 2, 100, 1, ab);
	ck_assert_uint_eq(state_of(e).running, 2);
	ck_assert_uint_eq(state_of(e).waiting, 1);
	ck_assert_int_eq(one_step(e), step(2, 2, 200));
	ck_assert_uint_eq(state_of(e).waiting, 0);
	ck_assert_int_eq(one_step(e), step(2, 2, 100));
	ck_assert(engine_begin(e, 0) == INT64_MAX);
	engine_free(e);
}
END_TEST

/* --------------------------------------------------------------- steps --- */

/* With 300 tokens in a batch, two that decode leave 298 to prefill. */
START_TEST(batches)
{
	struct engine *e = with((struct engine_idea){ .batch = 300 });

	submit(e, 0, 100, 9, a);
	submit(e, 1, 100, 9, b);
	ck_assert_int_eq(one_step(e), step(2, 2, 200));
	submit(e, 2, 1000, 9, ab);
	ck_assert_int_eq(one_step(e), step(3, 4, 298));
	engine_free(e);
}
END_TEST

/* More that decode than a step has tokens: prefill waits. */
START_TEST(batches_full)
{
	struct engine *e = with((struct engine_idea){ .batch = 2 });

	submit(e, 0, 1, 9, a);
	submit(e, 1, 1, 3, b);
	ck_assert_int_eq(one_step(e), step(2, 2, 2));
	submit(e, 2, 1, 1, a);
	ck_assert_int_eq(one_step(e), step(2, 3, 0));
	ck_assert_int_eq(one_step(e), step(2, 3, 0));
	ck_assert_int_eq(one_step(e), step(2, 2, 1));
	engine_free(e);
}
END_TEST

/* Each request reads its own context, shared or not; those that wait none. */
START_TEST(own_reads)
{
	struct engine *e = with((struct engine_idea){ .own_reads = true });

	submit(e, 0, 1100, 9, a);
	submit(e, 1, 1200, 9, ab); /* hits 1024 */
	submit(e, 2, 2048, 9, b);
	/* 1100 + 176 computed; the third gets 772 */
	ck_assert_int_eq(one_step(e), 15000000 + 3 * 100000 + 2048 * 50000 +
	    (1100 + 1200 + 772) * 5000 / 512);
	ck_assert_int_eq(one_step(e), 15000000 + 3 * 100000 + 1276 * 50000 +
	    (1101 + 1201 + 2048) * 5000 / 512);
	ck_assert_int_eq(one_step(e), 15000000 + 3 * 100000 +
	    (1102 + 1202 + 2049) * 5000 / 512);
	engine_free(e);
}
END_TEST

/* A token at context 1000 costs twice: 2048 at 1024 on average, 952 at 2524. */
START_TEST(attention)
{
	static const uint64_t ids[] = { 1, 2, 3, 4, 5, 6 };
	struct engine *e = with((struct engine_idea){ .attention = 1000 });

	submit(e, 0, 3000, 2, ids);
	ck_assert_int_eq(one_step(e), step(1, 6, 2048) +
	    2048 * INT64_C(50000) * 1024 / 1000);
	ck_assert_int_eq(one_step(e), step(1, 6, 952) +
	    952 * INT64_C(50000) * 2524 / 1000);
	ck_assert_int_eq(one_step(e), step(1, 6, 0));
	/* hits are context, too */
	submit(e, 1, 3000, 1, ids);
	ck_assert_int_eq(one_step(e), step(1, 6, 440) +
	    440 * INT64_C(50000) * 2780 / 1000);
	engine_free(e);
}
END_TEST

/* An engine is slow from the next step on. */
START_TEST(slow)
{
	struct engine *e = plain(ENGINE_ENDLESS);

	submit(e, 0, 100, 4, a);
	ck_assert_int_eq(one_step(e), step(1, 1, 100));
	ck_assert_int_eq(engine_begin(e, 0), step(1, 1, 0));
	engine_slow(e, 20);
	ck_assert_int_eq(engine_end(e), ENGINE_OK);
	ck_assert_int_eq(one_step(e), 20 * step(1, 1, 0));
	engine_slow(e, 1);
	ck_assert_int_eq(one_step(e), step(1, 1, 0));
	engine_free(e);
}
END_TEST

/* ---------------------------------------------------------- preemption --- */

static void
silent_steps(struct engine *e, int n)
{
	while (n-- > 0) {
		(void)one_step(e);
		expect_silence(e);
	}
}

/*
 * Three blocks. Each of two has one block of prompt and a part, 2 in all; so
 * the second is admitted only when the first has gone, as without preemption.
 */
START_TEST(no_room_for_prompts)
{
	struct engine *e = with((struct engine_idea){ .blocks = 3,
	    .preempt = true });

	submit(e, 0, 600, 2, a);
	submit(e, 1, 600, 2, b);
	ck_assert_uint_eq(state_of(e).waiting, 1);
	run(e, 0);
	ck_assert_uint_eq(cached(e, 600, b), 512);
	engine_free(e);
}
END_TEST

/*
 * Three blocks; both prompts have 510 tokens and want 5 more. After 2 tokens
 * both want a second block: there is one, for the first. The second gives up
 * its block, and waits. It comes back when the first has ended, computes 512
 * tokens again and continues with its third.
 */
START_TEST(preempts_the_last)
{
	struct engine *e = with((struct engine_idea){ .blocks = 3,
	    .preempt = true });

	submit(e, 0, 510, 5, a);
	submit(e, 1, 510, 5, b);
	expect(e, ENGINE_ADMITTED, 0, 0);
	expect(e, ENGINE_ADMITTED, 1, 0);
	ck_assert_int_eq(one_step(e), step(2, 2, 1020));
	expect(e, ENGINE_FIRST_TOKEN, 0, 1);
	expect(e, ENGINE_FIRST_TOKEN, 1, 1);
	ck_assert_int_eq(one_step(e), step(2, 2, 0));
	expect(e, ENGINE_PREEMPTED, 1, 2);
	ck_assert_uint_eq(state_of(e).own, 2);
	ck_assert_uint_eq(state_of(e).waiting, 1);
	ck_assert_int_eq(one_step(e), step(1, 2, 0));
	expect(e, ENGINE_GENERATED, 0, 3);
	silent_steps(e, 1);
	(void)one_step(e);
	expect(e, ENGINE_FINISHED, 0, 5);
	expect(e, ENGINE_RESUMED, 1, 0);
	/* 2 blocks for 513 tokens */
	ck_assert_int_eq(one_step(e), step(1, 2, 512));
	expect(e, ENGINE_GENERATED, 1, 3);
	silent_steps(e, 1);
	(void)one_step(e);
	expect(e, ENGINE_FINISHED, 1, 5);
	expect_silence(e);
	engine_free(e);
}
END_TEST

/* The same without preemption: the second waits for all of the first. */
START_TEST(reserves_all)
{
	struct engine *e = plain(3);

	submit(e, 0, 510, 5, a);
	submit(e, 1, 510, 5, b);
	ck_assert_uint_eq(state_of(e).waiting, 1);
	ck_assert_uint_eq(state_of(e).own, 2);
	engine_free(e);
}
END_TEST

/*
 * A prompt is preempted in prefill: its computed blocks stay cached, the rest
 * is not there. Six blocks: one of the first, and 5 of the second. The first
 * one's second block comes after the second has computed 2048 - 510 = 1538
 * tokens.
 */
START_TEST(preempted_in_prefill)
{
	static const uint64_t c[] = { 11, 12, 13, 14, 15 };
	struct engine *e = with((struct engine_idea){ .blocks = 6,
	    .preempt = true });

	submit(e, 0, 511, 3, a);
	submit(e, 1, 2500, 1, c);
	ck_assert_int_eq(one_step(e), step(2, 6, 2048));
	expect(e, ENGINE_ADMITTED, 0, 0);
	expect(e, ENGINE_ADMITTED, 1, 0);
	expect(e, ENGINE_FIRST_TOKEN, 0, 1);
	expect(e, ENGINE_PREEMPTED, 1, 0);
	/* 1537 tokens are 3 whole blocks; the fourth was begun */
	ck_assert_uint_eq(cached(e, 2500, c), 3 * 512);
	ck_assert_uint_eq(state_of(e).idle, 3);
	ck_assert_uint_eq(state_of(e).own, 2);
	(void)one_step(e);
	expect(e, ENGINE_GENERATED, 0, 2);
	(void)one_step(e);
	expect(e, ENGINE_FINISHED, 0, 3);
	expect(e, ENGINE_RESUMED, 1, 3 * 512);
	ck_assert_int_eq(one_step(e), step(1, 5, 2500 - 1536));
	expect(e, ENGINE_FIRST_TOKEN, 1, 1);
	expect(e, ENGINE_FINISHED, 1, 1);
	engine_free(e);
}
END_TEST

/* No later request is admitted before a preempted one. */
START_TEST(head_of_the_queue)
{
	struct engine *e = with((struct engine_idea){ .blocks = 3,
	    .preempt = true });

	submit(e, 0, 510, 5, a);
	submit(e, 1, 510, 5, b);
	(void)one_step(e);
	submit(e, 2, 600, 1, ab);
	(void)one_step(e);
	ck_assert_uint_eq(state_of(e).waiting, 2);
	submit(e, 3, 10, 1, a); /* there is a block for it */
	ck_assert_uint_eq(state_of(e).waiting, 3);
	(void)one_step(e);
	ck_assert_uint_eq(state_of(e).waiting, 3);
	run(e, 0);
	ck_assert_uint_eq(state_of(e).waiting, 0);
	engine_free(e);
}
END_TEST

/* Every request of a random load ends, in every order of eviction. */
START_TEST(all_end)
{
	struct engine_event event;
	struct rng rng = { 7 };
	uint64_t ids[8], i, n = test_amount(400), ended = 0, preempted = 0;
	struct engine *e = with((struct engine_idea){ .blocks = 24,
	    .sequences = 6, .batch = 700, .preempt = true,
	    .own_reads = true, .attention = 4000,
	    .eviction = (enum engine_eviction)_i });
	bool work = true;

	for (i = 0; i < n || work; i++) {
		struct engine_request r = any_request(&rng, i, ids);

		if (i < n)
			ck_assert_int_eq(engine_submit(e, &r), ENGINE_OK);
		work = engine_begin(e, 0) != INT64_MAX;
		if (work)
			ck_assert_int_eq(engine_end(e), ENGINE_OK);
		ck_assert(engine_check(e));
		while (engine_next(e, &event)) {
			ended += event.kind == ENGINE_FINISHED;
			preempted += event.kind == ENGINE_PREEMPTED;
		}
	}
	ck_assert_uint_eq(ended, n);
	ck_assert_uint_gt(preempted, 0);
	ck_assert_uint_eq(state_of(e).own + state_of(e).pinned, 0);
	engine_free(e);
}
END_TEST

/* --------------------------------------------------------------- death --- */

/* A death comes in the middle of a step; afterwards it is like new. */
START_TEST(killed)
{
	struct engine *e = with((struct engine_idea){ .sequences = 2 });
	int i;

	for (i = 0; i < 2; i++) {
		submit(e, 0, 2048, 3, a);
		submit(e, 1, 600, 3, ab);
		submit(e, 2, 600, 3, b);
		expect(e, ENGINE_ADMITTED, 0, 0);
		ck_assert_int_eq(engine_begin(e, 0), step(1, 6, 2048));
		engine_kill(e);
		expect_silence(e);
		ck_assert(engine_check(e));
		ck_assert_uint_eq(state_of(e).waiting + state_of(e).running +
		    state_of(e).own + state_of(e).pinned + state_of(e).idle,
		    0);
		ck_assert(engine_begin(e, 0) == INT64_MAX);
	}
	engine_free(e);
}
END_TEST

/* ---------------------------------------------------------------- drops --- */

/* The second hit 1024 tokens that the first had not computed: it does. */
START_TEST(drop_passes_on)
{
	static const uint64_t long_one[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static const uint64_t also[] = { 1, 2, 3, 4, 5, 6, 9, 9 };
	struct engine *e = with((struct engine_idea){ .preempt = true });

	submit(e, 0, 4096, 1, long_one);
	submit(e, 1, 4096, 1, also);  /* hits 6 blocks */
	submit(e, 2, 4096, 1, long_one); /* 7 */
	ck_assert_int_eq(one_step(e), step(1, 8 + 2 + 3, 2048));
	engine_drop(e, 0);
	ck_assert(engine_check(e));
	/* 4 of 8 blocks are there: 4 for the second, 1 more for the third */
	ck_assert_int_eq(one_step(e), step(1, 8 + 2 + 2, 2048));
	ck_assert_int_eq(one_step(e), step(1, 8 + 1, 1024));
	ck_assert(engine_begin(e, 0) == INT64_MAX);
	engine_free(e);
}
END_TEST

/* Waiting or running; others take the room at once. */
START_TEST(drop_makes_room)
{
	struct engine *e = with((struct engine_idea){ .sequences = 1 });

	submit(e, 0, 512, 9, a);
	submit(e, 1, 512, 9, b);
	submit(e, 2, 512, 9, ab);
	engine_drop(e, 1);
	ck_assert_uint_eq(state_of(e).waiting, 1);
	ck_assert_uint_eq(state_of(e).running, 1);
	ck_assert_int_lt(engine_begin(e, 0), INT64_MAX);
	engine_drop(e, 0);
	ck_assert(engine_check(e));
	ck_assert_uint_eq(state_of(e).waiting, 0);
	ck_assert_uint_eq(state_of(e).running, 1);
	ck_assert_int_eq(engine_end(e), ENGINE_OK);
	ck_assert_int_eq(one_step(e), step(1, 2, 512));
	engine_drop(e, 2);
	engine_drop(e, 2); /* unknown */
	ck_assert_uint_eq(state_of(e).running, 0);
	ck_assert(engine_check(e));
	engine_free(e);
}
END_TEST

/* Prefill runs at 1000 tokens a second, and every token is reported. */
START_TEST(rate_and_tokens)
{
	struct engine *e = with((struct engine_idea){ .prefill = 1000,
	    .each_token = true });
	struct engine_event event;
	int told = 0;

	submit(e, 0, 100, 7, a);
	ck_assert_int_eq(one_step(e), step(1, 1, 0) + 100 * 1000000);
	while (engine_begin(e, 0) != INT64_MAX)
		ck_assert_int_eq(engine_end(e), ENGINE_OK);
	while (engine_next(e, &event))
		told += event.kind == ENGINE_GENERATED;
	ck_assert_int_eq(told, 5);
	engine_free(e);
}
END_TEST

/* Names that are given, and a request that hits nothing. */
START_TEST(given_names)
{
	static const uint64_t names[] = { 77, 78, 79 };
	struct engine *e = with((struct engine_idea){ .blocks = 0 });
	struct engine_request r = { .tokens = 1536, .output = 1,
	    .names = names };

	ck_assert_int_eq(engine_submit(e, &r), ENGINE_OK);
	ck_assert_int_eq(one_step(e), step(1, 4, 1536));
	ck_assert_uint_eq(engine_cached(e, &r), 1024);
	r.number = 1;
	r.compute_all = true;
	ck_assert_uint_eq(engine_cached(e, &r), 0);
	ck_assert_int_eq(engine_submit(e, &r), ENGINE_OK);
	ck_assert_int_eq(one_step(e), step(1, 4, 1536));
	engine_free(e);
}
END_TEST

Suite *suite_engine_load(void);

Suite *
suite_engine_load(void)
{
	Suite *s = suite_create("engine_load");
	TCase *c = tcase_create("engine_load");

	tcase_add_test(c, slots);
	tcase_add_test(c, batches);
	tcase_add_test(c, batches_full);
	tcase_add_test(c, own_reads);
	tcase_add_test(c, attention);
	tcase_add_test(c, slow);
	tcase_add_test(c, no_room_for_prompts);
	tcase_add_test(c, preempts_the_last);
	tcase_add_test(c, reserves_all);
	tcase_add_test(c, preempted_in_prefill);
	tcase_add_test(c, head_of_the_queue);
	tcase_add_loop_test(c, all_end, 0, 3);
	tcase_add_test(c, killed);
	tcase_add_test(c, drop_passes_on);
	tcase_add_test(c, drop_makes_room);
	tcase_add_test(c, rate_and_tokens);
	tcase_add_test(c, given_names);
	suite_add_tcase(s, c);
	return s;
}
