/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_places.c - how many requests run on a worker at a time, told and learnt,
 * and how long one more waits for a place.
 *
 * An engine is imitated that has some places: requests wait in order, and each
 * has its first token as soon as it has a place.
 */
#include "places.h"

#include "inner.h"

#include <math.h>

#define SECOND INT64_C(1000000000)
enum { QUEUE = 256 };

/* Of worker 0: the leases in order, of which so many have their first token. */
static uint64_t queue[QUEUE];
static uint32_t waiting, running, kinds;
static int64_t now;

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.ttl_ns = 0;
	region_of(&o);
	waiting = running = kinds = 0;
	now = 0;
}

static uint32_t
places(void)
{
	return worker_stats(0).sequences;
}

static void
set_sequences(uint32_t sequences)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.sequences = sequences;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
}

static double
delay(void)
{
	return places_wait(k, 0);
}

static bool
near(double a, double b)
{
	return fabs(a - b) <= 1e-9 + 1e-9 * fabs(b);
}

static void
ask(void)
{
	uint64_t lease;

	ck_assert_uint_lt(running + waiting, QUEUE);
	say_long(40, 0, kinds++);
	lease = reserved(0, now);
	commit(lease, now);
	queue[running + waiting++] = lease;
}

/* The first tokens that an engine of so many places now has. */
static void
start(uint32_t limit)
{
	for (; running < limit && waiting > 0; waiting--)
		ck_assert_int_eq(kvr_lease_first_token(k, queue[running++],
		    now, 0), KVR_OK);
}

/* The oldest one that runs ends. */
static void
end(void)
{
	ck_assert_uint_gt(running, 0);
	finish(queue[0], now);
	memmove(queue, queue + 1, (--running + waiting) * sizeof(queue[0]));
}

/* So many end, one after the other, while others wait. */
static void
work(uint32_t limit, uint32_t requests)
{
	for (; requests > 0; requests--) {
		while (waiting < 3)
			ask();
		start(limit);
		now += SECOND / 4;
		if (running >= limit)
			end();
		while (running > limit)
			end();
	}
}

START_TEST(told)
{
	ck_assert_uint_eq(places(), 0);
	set_sequences(3);
	ck_assert_uint_eq(places(), 3);
	ck_assert_uint_eq(worker_stats(1).sequences, 0);
	set_sequences(0);
	ck_assert_uint_eq(places(), 0);
}
END_TEST

START_TEST(learnt_where_others_wait)
{
	uint32_t i;

	for (i = 0; i < 20; i++)
		ask();
	start(4);
	/* the fourth says four, and twelve more have to agree */
	for (i = 0; i < 12; i++) {
		ck_assert_uint_eq(places(), 0);
		end();
		start(4);
	}
	ck_assert_uint_eq(places(), 4);
	/* what was told is true; without it, what was learnt */
	set_sequences(9);
	ck_assert_uint_eq(places(), 9);
	set_sequences(0);
	ck_assert_uint_eq(places(), 4);
}
END_TEST

/* One after the other, however often: that it was alone shows no limit. */
START_TEST(not_learnt_where_none_waits)
{
	uint32_t i;

	for (i = 0; i < 100; i++) {
		ask();
		start(4);
		if (running == 3)
			end();
	}
	ck_assert_uint_eq(places(), 0);
}
END_TEST

/* An engine that is limited by its memory runs now more, now fewer. */
START_TEST(not_learnt_where_it_varies)
{
	uint32_t i;

	by_chance();
	for (i = 0; i < test_amount(1000); i++) {
		work(4 + pick(6), 1);
		ck_assert_uint_eq(places(), 0);
	}
}
END_TEST

/* One place that is not yet taken again says nothing. */
START_TEST(one_less_is_no_vote)
{
	uint32_t i;

	work(5, 30);
	ck_assert_uint_eq(places(), 5);
	for (i = 0; i < 100; i++)
		work(4, 1);
	ck_assert_uint_eq(places(), 5);
}
END_TEST

START_TEST(more_places_are_noticed)
{
	work(4, 100);
	ck_assert_uint_eq(places(), 4);
	work(8, 40);
	ck_assert_uint_eq(places(), 8);
}
END_TEST

START_TEST(fewer_places_are_noticed)
{
	work(8, 100);
	ck_assert_uint_eq(places(), 8);
	work(3, 40);
	ck_assert_uint_ne(places(), 8);
	work(3, 40);
	ck_assert_uint_eq(places(), 3);
}
END_TEST

/* Until one of those that run ends: that often one of the places is free. */
START_TEST(wait_for_a_place)
{
	uint32_t i;

	set_sequences(4);
	ask();
	start(4);
	now += 8 * SECOND;
	end();
	ck_assert(near(delay(), 0));
	for (i = 0; i < 3; i++)
		ask();
	ck_assert(near(delay(), 0));
	ask();
	/* 8 s each, four at a time */
	ck_assert(near(delay(), 2));
	ask();
	ask();
	ck_assert(near(delay(), 6));
	set_sequences(3);
	ck_assert(near(delay(), 4 * 8 / 3.0));
	set_sequences(0);
	ck_assert(near(delay(), 0));
}
END_TEST

/* From the first token on; the latest counts a twentieth. */
START_TEST(service)
{
	uint64_t from = 0;
	struct slot *s = slot_at(k, 0);

	ask();
	now += 5 * SECOND;
	start(1);
	now += 2 * SECOND;
	end();
	ck_assert(near(s->service, 2));
	ask();
	start(1);
	now += 6 * SECOND;
	end();
	ck_assert(near(s->service, 2.2));
	/* one that is ended by others: when it really ended is not known */
	ask();
	start(1);
	now += 3600 * SECOND;
	ck_assert_int_eq(kvr_owner_reap(k, 0, now, &from, NULL), KVR_OK);
	running = 0;
	ck_assert(near(s->service, 2.2));
	/* an end without a first token, or given up, tells nothing */
	ask();
	now += 50 * SECOND;
	finish(queue[0], now);
	waiting = 0;
	ask();
	start(1);
	now += 50 * SECOND;
	give_up(queue[0], now);
	running = 0;
	ck_assert(near(s->service, 2.2));
	/* nor one of another worker */
	say("ab");
	queue[0] = reserved(1, now);
	commit(queue[0], now);
	ck_assert_int_eq(kvr_lease_first_token(k, queue[0], now, 0), KVR_OK);
	finish(queue[0], now + SECOND);
	ck_assert(near(s->service, 2.2));
	ck_assert(near(slot_at(k, 1)->service, 1));
}
END_TEST

/* A first token that is told again is not the first. */
START_TEST(the_first_first_token)
{
	ask();
	now += SECOND;
	start(1);
	now += SECOND;
	ck_assert_int_eq(kvr_lease_first_token(k, queue[0], now, 0), KVR_OK);
	now += SECOND;
	end();
	ck_assert(near(slot_at(k, 0)->service, 2));
}
END_TEST

START_TEST(forgotten)
{
	work(4, 100);
	set_sequences(6);
	ck_assert(slot_at(k, 0)->service > 0);
	ck_assert_int_eq(kvr_worker_forget(k, id[0]), KVR_OK);
	ck_assert_uint_eq(places(), 6);
	ck_assert(near(slot_at(k, 0)->service, 0));
	ck_assert(near(delay(), 0));
	set_sequences(0);
	ck_assert_uint_eq(places(), 0);
}
END_TEST

/* Requests from outside take places too. */
START_TEST(outside)
{
	struct kvr_load load = { .size = sizeof(load), .requests = 3 };

	set_sequences(2);
	ask();
	start(1);
	now += SECOND;
	end();
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	ck_assert(near(delay(), 2 * 1 / 2.0));
}
END_TEST

START_TEST(recovered)
{
	struct slot *s;
	uint32_t i;

	work(4, 100);
	for (i = 0; i < 3; i++) {
		s = slot_at(k, 0);
		if (i == 0)
			s->service = NAN;
		else if (i == 1)
			s->service = -1;
		else
			s->votes = UINT32_MAX;
		ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		region_sound();
		ck_assert_uint_eq(places(), 0);
		ck_assert(near(delay(), 0));
	}
	/* the leases are gone */
	waiting = running = 0;
	work(4, 100);
	ck_assert_uint_eq(places(), 4);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_assert_uint_eq(places(), 4);
}
END_TEST

Suite *suite_places(void);

Suite *
suite_places(void)
{
	Suite *s = suite_create("places");
	TCase *t = tcase_create("places");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, told);
	tcase_add_test(t, learnt_where_others_wait);
	tcase_add_test(t, not_learnt_where_none_waits);
	tcase_add_test(t, not_learnt_where_it_varies);
	tcase_add_test(t, one_less_is_no_vote);
	tcase_add_test(t, more_places_are_noticed);
	tcase_add_test(t, fewer_places_are_noticed);
	tcase_add_test(t, wait_for_a_place);
	tcase_add_test(t, service);
	tcase_add_test(t, the_first_first_token);
	tcase_add_test(t, forgotten);
	tcase_add_test(t, outside);
	tcase_add_test(t, recovered);
	return s;
}
