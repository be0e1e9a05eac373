/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_headroom.c - how long a request waits until the memory of its worker has
 * room, where the capacity is known.
 *
 * A block is one token. A worker is told 1000 tokens, of which 950 count; a
 * request of 100 that has run for 4 s from its first token to its end says how
 * long requests run.
 */
#include "headroom.h"

#include "inner.h"

#include <math.h>

#define SECOND INT64_C(1000000000)
enum { CAPACITY = 1000 };

static uint32_t kinds;

static void
tell(uint32_t worker, uint64_t capacity)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.capacity_tokens = capacity;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

/* A request of its own prompt that is past its first token. */
static uint64_t
run(uint32_t tokens, int64_t now)
{
	uint64_t lease;

	say_long(tokens, 0, kinds++);
	lease = reserved(0, now);
	commit(lease, now);
	ck_assert_int_eq(kvr_lease_first_token(k, lease, now, 0), KVR_OK);
	return lease;
}

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.ttl_ns = 0;
	region_of(&o);
	kinds = 0;
	tell(0, CAPACITY);
	finish(run(100, 0), 4 * SECOND);
}

static void
ck_wait(double tokens, double seconds)
{
	double wait = headroom_wait(k, 0, tokens);

	if (fabs(wait - seconds) > 1e-9)
		ck_abort_msg("%f tokens wait %f s, must be %f", tokens, wait,
		    seconds);
}

START_TEST(idle_blocks_give_way)
{
	ck_wait(100, 0);
	ck_wait(1e6, 0);
}
END_TEST

/* 600 of 950 are in use; all 600 are released within 4 s. */
START_TEST(what_runs_has_to_end)
{
	run(400, 5 * SECOND);
	run(200, 5 * SECOND);
	ck_wait(350, 0);
	ck_wait(500, 150 * 4.0 / 600);
}
END_TEST

START_TEST(shared_blocks_count_once)
{
	uint64_t one, other;

	say_long(600, 0, 77);
	one = reserved(0, 5 * SECOND);
	other = reserved(0, 5 * SECOND);
	ck_wait(350, 0);
	ck_wait(380, 30 * 4.0 / 600);
	finish(one, 6 * SECOND);
	ck_wait(380, 30 * 4.0 / 600);
	finish(other, 6 * SECOND);
	ck_wait(380, 0);
}
END_TEST

START_TEST(ends_make_room)
{
	uint64_t first = run(500, 5 * SECOND);

	run(400, 5 * SECOND);
	ck_wait(200, 150 * 4.0 / 900);
	finish(first, 9 * SECOND);
	ck_wait(200, 0);
}
END_TEST

START_TEST(answers_need_room)
{
	uint64_t lease = run(700, 5 * SECOND);

	ck_wait(200, 0);
	ck_assert_int_eq(kvr_lease_output(k, lease, 100, 6 * SECOND, 0),
	    KVR_OK);
	ck_wait(200, 50 * 4.0 / 800);
}
END_TEST

START_TEST(unknown_without_a_capacity)
{
	tell(0, 0);
	run(900, 5 * SECOND);
	ck_wait(1e6, 0);
	tell(0, CAPACITY);
	ck_assert_double_gt(headroom_wait(k, 0, 100), 0);
}
END_TEST

/* All workers are alike but for what runs there, and all have requests. */
START_TEST(a_full_worker_is_not_chosen)
{
	struct kvr_request r = { .size = sizeof(r) };
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_policy y = { .size = sizeof(y) };
	uint32_t i, worker;

	ck_assert_int_eq(kvr_policy_get(k, &y), KVR_OK);
	y.cost = KVR_COST_BALANCED;
	y.balanced_read = 0;
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
	run(900, 5 * SECOND);
	for (worker = 1; worker < WORKERS; worker++)
		for (i = 0; i < 2; i++) {
			say_long(300, 0, kinds++);
			reserved(worker, 5 * SECOND);
		}
	say_long(200, 0, kinds++);
	ck_assert_int_eq(kvr_route(k, p, &r, 5 * SECOND, &d), KVR_OK);
	ck_assert_uint_ne(d.worker, id[0]);
	tell(0, 0);
	ck_assert_int_eq(kvr_route(k, p, &r, 5 * SECOND, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[0]);
}
END_TEST

Suite *suite_headroom(void);

Suite *
suite_headroom(void)
{
	Suite *s = suite_create("headroom");
	TCase *t = tcase_create("headroom");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, idle_blocks_give_way);
	tcase_add_test(t, what_runs_has_to_end);
	tcase_add_test(t, shared_blocks_count_once);
	tcase_add_test(t, ends_make_room);
	tcase_add_test(t, answers_need_room);
	tcase_add_test(t, unknown_without_a_capacity);
	tcase_add_test(t, a_full_worker_is_not_chosen);
	return s;
}
