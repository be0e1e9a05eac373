/* SPDX-License-Identifier: BSD-2-Clause */
/* test_event_batch.c - the sums of a batch of events. */
#include "event_batch.h"

#include "streams.h"

START_TEST(what_was_before_a_clear_may_have_another_size)
{
	struct kvr_event_batch b = { .size = sizeof(b), .digest = 1 };
	struct kvr_event e[3] = { event_of('s', 5), event_of('c', 0),
		event_of('s', 7) };

	got.size = sizeof(got);
	e[0].block_tokens = 16;
	ck_assert_int_eq(kvr_events_apply(k, id[0], &b, e, sizeof(e[0]), 3,
	    engine_hashes, 7, NULL, 0, 1, 0, &got), KVR_OK);
	id[0] = got.worker;
	ck_assert_uint_eq(worker_stats(0).events_held, 7);
}
END_TEST

START_TEST(unknown_kinds_are_refused_one_by_one)
{
	(void)batch(0, 1, "s3 x9 s4", 1);
	ck_assert_uint_eq(got.refused, 1);
	ck_assert_uint_eq(got.stored, 7);
	ck_assert_uint_eq(worker_stats(0).events_refused, 1);
	ck_assert_uint_eq(worker_stats(0).events_held, 7);
}
END_TEST

Suite *suite_event_batch(void);

Suite *
suite_event_batch(void)
{
	Suite *s = suite_create("event_batch");
	TCase *t = small_case(s, "event_batch");

	tcase_add_test(t, what_was_before_a_clear_may_have_another_size);
	tcase_add_test(t, unknown_kinds_are_refused_one_by_one);
	return s;
}
