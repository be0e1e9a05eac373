/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_simulate_events.c - events of engines about their caches: all arrive,
 * in order, also lost ones; and routers hold the same blocks as the engines.
 */
#include "simulated.h"

#include "alloc.h"
#include "simulate_in.h"

#define MS INT64_C(1000000)

enum { COUNTED, NAMED, HEARD };

/* Balanced, by events or by their numbers. */
static struct simulate_options
listens(int index)
{
	struct simulate_options o;

	simulate_defaults(&o);
	o.policy = SIMULATE_BALANCED;
	o.index = index == COUNTED ? SIMULATE_COUNTS : SIMULATE_EVENTS;
	o.workers = 4;
	o.capacity_tokens = 40000;
	return o;
}

static struct kvr_worker_stats
stats_of(const struct simulation *s, uint32_t router, uint32_t worker)
{
	struct kvr_worker_stats w = { .size = sizeof(w) };
	const struct kvr *k = s->routers[router].k;
	char name[32];
	uint64_t id;
	int n = snprintf(name, sizeof(name), "worker-%u", worker);

	ck_assert_int_eq(kvr_worker_find(k, name, (size_t)n, 0, &id), KVR_OK);
	ck_assert_int_eq(kvr_worker_stats_get(k, id, &w), KVR_OK);
	return w;
}

/* By their streams, routers know how much each engine holds. */
static void
same_held(const struct simulation *s)
{
	struct engine_state state;
	uint32_t r, w;

	for (w = 0; w < s->options.workers; w++) {
		engine_state(s->engines[w], &state);
		for (r = 0; r < s->options.replicas; r++) {
			struct kvr_worker_stats t = stats_of(s, r, w);

			ck_assert_uint_eq(t.events_state,
			    KVR_EVENTS_COMPLETE);
			ck_assert_uint_eq(t.events_held, state.pinned +
			    state.idle);
			ck_assert_uint_eq(t.events_refused, 0);
		}
	}
}

static struct simulate_heard
heard(const struct simulation *s)
{
	struct simulate_heard h;

	simulate_heard(s, &h);
	return h;
}

/* Waits until all messages under way have arrived. */
static void
wait_for_all(struct setup *u)
{
	ck_assert_int_eq(simulate_until(u->s, u->s->now + 200 * MS,
	    &u->s->now), KVR_OK);
}

/*
 * A lone engine's last batches may be lost without a gap; one more shows it.
 * The request bypasses the routers, since these may believe that one engine is
 * slow.
 */
static void
ask_each(struct setup *u, uint64_t id)
{
	uint64_t ids[8];
	size_t i, n;

	u->s->options.bypass = 1;

	for (n = 0; n < 40; n++) {
		for (i = 0; i < 8; i++)
			ids[i] = id++;
		give_simple(u, 4000, 4, ids, u->s->now);
		ck_assert_int_eq(simulate_drain(u->s), KVR_OK);
	}
}

/* ---------------------------------------------------------------- tests --- */

START_TEST(all_arrives)
{
	struct simulate_options o = listens(_i % HEARD);
	struct setup u;

	o.replicas = 2;
	o.event_delay_ns = _i < HEARD ? 0 : 70 * MS;
	begin(&u, &o, 512);
	simulate_sample(&u, 400, 4);
	wait_for_all(&u);
	same_held(u.s);
	ck_assert_uint_gt(heard(u.s).batches, 100);
	ck_assert_uint_eq(heard(u.s).lost + heard(u.s).gaps, 0);
	end(&u);
}
END_TEST

/* The capacity of a small cache is learnt from events alone. */
START_TEST(capacity_is_counted)
{
	struct simulate_options o = listens(COUNTED);
	uint64_t capacity;
	struct setup u;
	uint32_t w;

	begin(&u, &o, 512);
	simulate_sample(&u, 800, 4);
	for (w = 0; w < o.workers; w++) {
		capacity = stats_of(u.s, 0, w).events_capacity;
		ck_assert_uint_gt(capacity, o.capacity_tokens / 2);
		ck_assert_uint_le(capacity, o.capacity_tokens);
	}
	end(&u);
}
END_TEST

/* An answer without ids is announced block by block after its prompt. */
START_TEST(answers_are_told)
{
	static const uint64_t ids[] = { 1, 2 };
	struct simulate_options o = listens(NAMED);
	struct kvr_worker_stats t;
	struct setup u;

	o.workers = 1;
	begin(&u, &o, 512);
	give_simple(&u, 1000, 1100, ids, 0);
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	t = stats_of(u.s, 0, 0);
	ck_assert_uint_eq(t.events_stored, 4);
	ck_assert_uint_eq(t.events_batches, 2);
	same_held(u.s);
	end(&u);
}
END_TEST

START_TEST(lost_is_replayed)
{
	struct simulate_options o = listens(_i % HEARD);
	struct setup u;

	o.replicas = 3;
	o.event_loss = 0.2;
	o.event_delay_ns = _i < HEARD ? 0 : 70 * MS;
	begin(&u, &o, 512);
	simulate_sample(&u, 400, 4);
	ck_assert_uint_gt(heard(u.s).lost, 50);
	ck_assert_uint_gt(heard(u.s).gaps, 20);
	u.s->options.event_loss = 0;
	ask_each(&u, 1000000);
	wait_for_all(&u);
	same_held(u.s);
	end(&u);
}
END_TEST

START_TEST(lost_is_lost)
{
	struct simulate_options o = listens(_i);
	uint64_t lost = 0;
	struct setup u;
	uint32_t w;

	o.event_loss = 0.2;
	o.event_replay = false;
	begin(&u, &o, 512);
	simulate_sample(&u, 400, 4);
	for (w = 0; w < o.workers; w++) {
		struct kvr_worker_stats t = stats_of(u.s, 0, w);

		lost += t.events_lost;
		ck_assert_uint_eq(t.events_state, KVR_EVENTS_DEGRADED);
	}
	ck_assert_uint_eq(lost, heard(u.s).gaps);
	ck_assert_uint_gt(lost, 20);
	end(&u);
}
END_TEST

/* Idle engines clear their caches; others remove idle blocks. */
START_TEST(resets_are_told)
{
	static const uint64_t ids[] = { 1, 2, 3, 4 };
	struct simulate_options o = listens(_i);
	struct setup u;

	o.workers = 1;
	o.reset_ns = 10000 * MS;
	begin(&u, &o, 512);
	give_simple(&u, 2000, 1, ids, 0);
	ck_assert_int_eq(simulate_until(u.s, 9000 * MS, &u.s->now), KVR_OK);
	ck_assert_uint_eq(stats_of(u.s, 0, 0).events_held, 3);
	give_simple(&u, 900, 4000, ids + 2, 9900 * MS);
	ck_assert_int_eq(simulate_until(u.s, 10100 * MS, &u.s->now), KVR_OK);
	ck_assert_uint_eq(stats_of(u.s, 0, 0).events_held, 1);
	ck_assert_uint_eq(stats_of(u.s, 0, 0).events_cleared, 0);
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	ck_assert_int_eq(simulate_until(u.s, u.s->now + o.reset_ns, &u.s->now),
	    KVR_OK);
	ck_assert_uint_ge(stats_of(u.s, 0, 0).events_cleared, 1);
	ck_assert_uint_eq(stats_of(u.s, 0, 0).events_held, 0);
	give_simple(&u, 2000, 1, ids, u.s->now);
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	same_held(u.s);
	end(&u);
}
END_TEST

/* The request is not routed, and the engines report its blocks. */
START_TEST(bypass)
{
	struct simulate_options o = listens(_i % HEARD);
	const struct simulate_totals *t;
	struct kvr_stats k;
	struct setup u;

	o.index = _i < HEARD ? o.index : SIMULATE_FEEDBACK;
	o.bypass = 0.25;
	o.check = true;
	begin(&u, &o, 512);
	simulate_sample(&u, 1600, 4); /* so many, for a share of them */
	t = simulate_totals(u.s);
	ck_assert_uint_eq(t->finished + t->refused + t->empty, t->requests);
	ck_assert_uint_gt(t->bypassed, t->requests / 5);
	ck_assert_uint_lt(t->bypassed, t->requests * 3 / 10);
	ck_assert_int_eq(simulate_index_stats(u.s, &k), KVR_OK);
	ck_assert_uint_eq(k.calibration.reports + k.calibration.unreported,
	    t->finished - t->bypassed);
	if (_i < HEARD)
		same_held(u.s);
	end(&u);
}
END_TEST

/* Fleets of all kinds, with workers that die and come back. */
START_TEST(checked)
{
	struct simulate_options o = listens(_i % HEARD);
	struct simulate_change c = { .at = 2000 * MS, .factor = 1,
	    .worker = 1, .kind = SIMULATE_KILL };
	struct setup u;

	fleets[_i / HEARD % FLEETS](&o);
	o.event_loss = _i / HEARD / FLEETS == 1 ? 0.3 : 0;
	o.check = true;
	o.reset_ns = 0;
	ck_assert(simulate_add_change(&o, &c));
	c = (struct simulate_change){ .at = 3000 * MS, .factor = 1,
	    .worker = 1, .kind = SIMULATE_JOIN };
	ck_assert(simulate_add_change(&o, &c));
	begin(&u, &o, 512);
	simulate_sample(&u, test_amount(60), 4);
	ck_assert_uint_gt(simulate_totals(u.s)->finished, 0);
	ck_assert_uint_gt(heard(u.s).batches, 0);
	end(&u);
}
END_TEST

START_TEST(news_memory)
{
	struct simulate_options o = listens(NAMED);
	struct kvr_options region;

	region_of(&region, 4, 512);
	(void)made_without_memory(&o, &region, 200);
}
END_TEST

Suite *suite_simulate_events(void);

Suite *
suite_simulate_events(void)
{
	Suite *s = suite_create("simulate_events");
	TCase *c = tcase_create("simulate_events");

	tcase_add_loop_test(c, all_arrives, 0, 2 * HEARD);
	tcase_add_test(c, capacity_is_counted);
	tcase_add_test(c, answers_are_told);
	tcase_add_loop_test(c, lost_is_replayed, 0, 2 * HEARD);
	tcase_add_loop_test(c, lost_is_lost, 0, HEARD);
	tcase_add_loop_test(c, resets_are_told, 0, HEARD);
	tcase_add_loop_test(c, bypass, 0, HEARD + 1);
	tcase_add_loop_test(c, checked, 0, HEARD * FLEETS * 2);
	tcase_add_test(c, news_memory);
	suite_add_tcase(s, c);
	return s;
}
