/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hub.c - workers of one source: which of them have heard all of it.
 */
#include "test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hub.h"

enum { EVENTS = 8 };

static struct kvr *k;
static struct hub hub;
static struct hub_publisher first, second;
static struct event events[EVENTS];
static size_t n_events;
static const uint64_t hashes[EVENTS] = { 1, 2, 3, 4 };
static int64_t now;

static void
worker(uint32_t rank)
{
	struct kvr_worker facts;
	uint64_t id;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.rank = rank;
	ck_assert_int_eq(kvr_worker_add(k, "a", 1, &facts, &id), KVR_OK);
}

static struct conf_stream
entry(uint32_t rank)
{
	struct conf_stream conf;

	memset(&conf, 0, sizeof(conf));
	strcpy(conf.worker, "a");
	conf.rank = rank;
	return conf;
}

/* A worker of the source, looked for in the region at once. */
static void
joins(uint32_t rank)
{
	const struct conf_stream conf = entry(rank);

	ck_assert(hub_add(&hub, "region", k, &conf));
	hub_look(&hub, true, now);
}

/* The log is no part of the tests. */
static void
setup(void)
{
	ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
	ck_assert_int_eq(kvr_new(NULL, &k), KVR_OK);
	worker(0);
	hub = (struct hub){ 0 };
	first = (struct hub_publisher){ .id = 1 };
	second = (struct hub_publisher){ .id = 2 };
	n_events = 0;
	now = 0;
}

static void
teardown(void)
{
	hub_free(&hub);
	kvr_free(k);
}

static void
add(enum event_kind kind, uint32_t rank)
{
	events[n_events++] = (struct event){ .size = sizeof(struct event),
	    .kind = kind, .tier = EVENT_DEVICE, .block_size = 4,
	    .rank = rank, .hashes = { 0, kind == EVENT_STORED ? 2 : 0 } };
}

/* A batch of the events that were added. */
static void
tells(struct hub_publisher *publisher)
{
	const struct event_batch batch = { .n = n_events, .events = events,
	    .hashes = hashes };

	hub_batch(&hub, publisher, &batch);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	n_events = 0;
}

/* One that stores two blocks of rank 0. */
static void
stores(struct hub_publisher *publisher)
{
	add(EVENT_STORED, 0);
	tells(publisher);
}

static void
ck_state(uint32_t rank, const char *want)
{
	static const char *const names[] = { "off", "complete", "degraded" };
	struct kvr_worker_stats s = { .size = sizeof(s) };
	char text[128];
	uint64_t id;

	ck_assert_int_eq(kvr_worker_find(k, "a", 1, rank, &id), KVR_OK);
	ck_assert_int_eq(kvr_worker_stats_get(k, id, &s), KVR_OK);
	snprintf(text, sizeof(text), "%s next %" PRIu64 " stored %" PRIu64
	    " held %" PRIu64 " restarts %" PRIu64, names[s.events_state],
	    s.events_next, s.events_stored, s.events_held, s.events_restarts);
	ck_assert_str_eq(text, want);
}

START_TEST(from_its_beginning_on)
{
	joins(0);
	stores(&first);
	stores(&first);
	ck_state(0, "complete next 2 stored 4 held 4 restarts 0");
}
END_TEST

START_TEST(another_publisher_is_another_life)
{
	joins(0);
	stores(&first);
	stores(&second);
	ck_state(0, "complete next 1 stored 4 held 2 restarts 1");
}
END_TEST

START_TEST(a_publisher_joined_late)
{
	joins(0);
	hub_lost(&hub, &first);
	stores(&first);
	ck_state(0, "degraded next 2 stored 2 held 0 restarts 0");
}
END_TEST

/* Another program goes on in a region that has the worker. */
START_TEST(the_first_event_says_that_some_were_lost)
{
	joins(0);
	stores(&first);
	hub_remove(&hub, 0);
	joins(0);
	add(EVENT_LOST, 0);
	add(EVENT_STORED, 0);
	tells(&second);
	ck_state(0, "degraded next 3 stored 4 held 0 restarts 0");
}
END_TEST

/* It has missed the publisher's earlier batches. */
START_TEST(a_worker_that_joins_later)
{
	joins(0);
	stores(&first);
	worker(1);
	joins(1);
	add(EVENT_STORED, 1);
	tells(&first);
	ck_state(1, "degraded next 2 stored 2 held 0 restarts 0");
	add(EVENT_STORED, 1);
	tells(&second);
	ck_state(1, "complete next 1 stored 4 held 2 restarts 1");
}
END_TEST

/* A change of the configuration can make it another entry. */
START_TEST(a_worker_that_joins_again)
{
	joins(0);
	stores(&first);
	hub_remove(&hub, 0);
	joins(0);
	stores(&first);
	ck_state(0, "degraded next 3 stored 4 held 0 restarts 0");
}
END_TEST

START_TEST(another_mode_interrupts_nothing)
{
	struct conf_stream conf = entry(0);

	joins(0);
	stores(&first);
	strcpy(conf.model, "m");
	hub_change(&hub, 0, &conf);
	stores(&first);
	ck_state(0, "complete next 2 stored 4 held 4 restarts 0");
	conf.full = 1;
	hub_change(&hub, 0, &conf);
	stores(&first);
	ck_state(0, "complete next 3 stored 6 held 0 restarts 0");
}
END_TEST

START_TEST(a_restart)
{
	joins(0);
	stores(&first);
	hub_restarted(&hub, &first);
	stores(&first);
	ck_state(0, "complete next 1 stored 4 held 2 restarts 1");
	add(EVENT_STORED, 0);
	add(EVENT_RESTARTED, 0);
	add(EVENT_STORED, 0);
	tells(&first);
	ck_state(0, "complete next 1 stored 6 held 2 restarts 2");
}
END_TEST

/* The gap lies between the restart and the first batch after it. */
START_TEST(a_restart_and_then_a_loss)
{
	joins(0);
	stores(&first);
	hub_restarted(&hub, &first);
	hub_lost(&hub, &first);
	ck_state(0, "degraded next 2 stored 2 held 0 restarts 0");
	stores(&first);
	ck_state(0, "degraded next 2 stored 4 held 0 restarts 1");
	add(EVENT_RESTARTED, 0);
	add(EVENT_LOST, 0);
	add(EVENT_STORED, 0);
	tells(&first);
	ck_state(0, "degraded next 2 stored 6 held 0 restarts 2");
	hub_restarted(&hub, &first);
	stores(&first);
	ck_state(0, "complete next 1 stored 8 held 2 restarts 3");
}
END_TEST

/* Loss before a first batch is kept until a worker is bound. */
START_TEST(a_loss_before_the_first_batch)
{
	joins(0);
	stores(&first);
	hub_lost(&hub, &second);
	stores(&second);
	ck_state(0, "degraded next 3 stored 4 held 0 restarts 0");
}
END_TEST

START_TEST(a_worker_that_the_region_has_later)
{
	joins(0);
	joins(1);
	add(EVENT_STORED, 1);
	tells(&first);
	worker(1);
	now += INT64_C(2000000000);
	hub_look(&hub, true, now);
	add(EVENT_STORED, 1);
	tells(&first);
	ck_state(1, "degraded next 2 stored 2 held 0 restarts 0");
	ck_state(0, "off next 0 stored 0 held 0 restarts 0");
}
END_TEST

Suite *suite_hub(void);

Suite *
suite_hub(void)
{
	Suite *s = suite_create("hub");
	TCase *t = tcase_create("hub");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, from_its_beginning_on);
	tcase_add_test(t, another_publisher_is_another_life);
	tcase_add_test(t, a_publisher_joined_late);
	tcase_add_test(t, the_first_event_says_that_some_were_lost);
	tcase_add_test(t, a_worker_that_joins_later);
	tcase_add_test(t, a_worker_that_joins_again);
	tcase_add_test(t, another_mode_interrupts_nothing);
	tcase_add_test(t, a_restart);
	tcase_add_test(t, a_restart_and_then_a_loss);
	tcase_add_test(t, a_loss_before_the_first_batch);
	tcase_add_test(t, a_worker_that_the_region_has_later);
	suite_add_tcase(s, t);
	return s;
}
