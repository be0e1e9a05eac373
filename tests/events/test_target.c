/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_target.c - events of an engine, given to a worker of a region.
 */
#include "test.h"

#include <string.h>

#include "target.h"

enum { EVENTS = 8, TOKENS = 16 };

static struct kvr *k;
static struct conf_stream conf;
static struct target target;
static struct event events[EVENTS];
static size_t n_events;
static const uint64_t hashes[TOKENS] = { 1, 2, 3, 4 };
static const uint32_t tokens[TOKENS] = { 5, 6, 7, 8 };

static void
setup(void)
{
	uint64_t id;

	ck_assert_int_eq(kvr_new(NULL, &k), KVR_OK);
	ck_assert_int_eq(kvr_worker_add(k, "a", 1, NULL, &id), KVR_OK);
	memset(&conf, 0, sizeof(conf));
	strcpy(conf.worker, "a");
	target_init(&target, k, &conf);
	ck_assert(target_find(&target));
	n_events = 0;
}

static void
teardown(void)
{
	target_free(&target);
	kvr_free(k);
}

/* Of n blocks, without tokens. */
static struct event *
add(enum event_kind kind, enum event_tier tier, uint64_t n)
{
	struct event *e = &events[n_events++];

	*e = (struct event){ .size = sizeof(*e), .kind = kind, .tier = tier,
	    .block_size = 4, .hashes = { 0, n } };
	return e;
}

/* Gives the events from this one on to the region, as the next batch. */
static void
give(size_t from)
{
	const struct event_batch all = { .n = n_events, .events = events,
	    .hashes = hashes, .tokens = tokens };
	const struct target_batch batch = { .events = &all, .from = from,
	    .to = n_events, .seq = target.next };

	ck_assert_int_eq(target_apply(&target, &batch), TARGET_APPLIED);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	n_events = 0;
}

static struct kvr_worker_stats
stats(void)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };

	ck_assert_int_eq(kvr_worker_stats(k, target.id, &s), KVR_OK);
	return s;
}

/* Another rank's tokens stand before their place. */
START_TEST(a_place_without_tokens)
{
	add(EVENT_STORED, EVENT_DEVICE, 1)->tokens.n = 4;
	add(EVENT_MOVED, EVENT_DEVICE, 2)->tokens.at = 4;
	add(EVENT_STORED, EVENT_DEVICE, 3)->tokens.at = 4;
	give(1);
	ck_assert_uint_eq(stats().events_stored, 5);
}
END_TEST

/* Blocks that were in the host's memory leave it, too. */
START_TEST(a_move_between_tiers_changes_no_count)
{
	struct event *e;
	int round;

	conf.engine = CONF_TRTLLM;
	strcpy(conf.server, "http://h:1");
	for (round = 0; round < 100; round++) {
		add(EVENT_STORED, EVENT_DEVICE, 3);
		add(EVENT_STORED, EVENT_HOST, 1);
		e = add(EVENT_MOVED, EVENT_HOST, 2);
		e->from_tier = EVENT_DEVICE;
		e = add(EVENT_MOVED, EVENT_DISK, 1);
		e->from_tier = EVENT_HOST;
		add(EVENT_REMOVED, EVENT_TIER_NONE, 4);
		give(0);
	}
	ck_assert_uint_eq(stats().events_held, 0);
	ck_assert_uint_eq(stats().events_capacity, 16);
	ck_assert_uint_eq(stats().events_stored, 400);
	ck_assert_uint_eq(target.counts.moved, 300);
	ck_assert_uint_eq(target.counts.ignored, 0);
}
END_TEST

/* Without the tier that it leaves, it is in both. */
START_TEST(a_copy_in_the_host_counts_there)
{
	add(EVENT_STORED, EVENT_DEVICE, 4);
	add(EVENT_MOVED, EVENT_HOST, 4);
	add(EVENT_REMOVED, EVENT_DEVICE, 4);
	give(0);
	ck_assert_uint_eq(stats().events_stored, 8);
	ck_assert_uint_eq(stats().events_removed, 4);
}
END_TEST

Suite *suite_target(void);

Suite *
suite_target(void)
{
	Suite *s = suite_create("target");
	TCase *t = tcase_create("target");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_place_without_tokens);
	tcase_add_test(t, a_move_between_tiers_changes_no_count);
	tcase_add_test(t, a_copy_in_the_host_counts_there);
	suite_add_tcase(s, t);
	return s;
}
