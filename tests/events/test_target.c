/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_target.c - events of an engine, given to a worker of a region.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode.h"
#include "target.h"
#include "tell.h"
#include "vectors.h"

enum { EVENTS = 8, TOKENS = 16 };

static struct kvr *k;
static struct conf_stream conf;
static struct target target;
static struct event events[EVENTS];
static size_t n_events;
static const uint64_t hashes[TOKENS] = { 1, 2, 3, 4 };
static const uint32_t tokens[TOKENS] = { 1, 2, 3, 4, 5, 6, 7, 8 };

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

/* Adds an event of n blocks, without tokens. */
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

	ck_assert_int_eq(kvr_worker_stats_get(k, target.id, &s), KVR_OK);
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

/* A move that does not name the tier it leaves counts in both. */
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

/* ----------------------------------------------------- sliding windows --- */

/* A batch of an engine with that window; then the facts. */
static struct kvr_worker
slides(uint64_t window)
{
	const struct event_batch all = { .sliding = window };
	const struct target_batch batch = { .events = &all,
	    .seq = target.next };
	struct kvr_worker w = { .size = sizeof(w) };

	ck_assert_int_eq(target_apply(&target, &batch), TARGET_APPLIED);
	ck_assert_int_eq(kvr_worker_get(k, target.id, &w), KVR_OK);
	return w;
}

static void
tell(uint32_t retain, uint32_t mode, uint32_t window)
{
	struct kvr_worker w;

	ck_assert_int_eq(kvr_worker_init(&w, sizeof(w)), KVR_OK);
	w.retain = retain;
	w.window_mode = mode;
	w.window_tokens = window;
	ck_assert_int_eq(kvr_worker_set(k, target.id, &w), KVR_OK);
}

static void
ck_window(struct kvr_worker w, uint32_t mode, uint32_t window)
{
	ck_assert_uint_eq(w.window_mode, mode);
	ck_assert_uint_eq(w.window_tokens, window);
}

/* Again after others have set the facts anew, and a larger one of its own. */
START_TEST(a_window_is_set)
{
	conf.sliding = KVR_WINDOW_BOUNDARY;
	ck_window(slides(0), KVR_WINDOW_FULL, 0);
	ck_window(slides(512), KVR_WINDOW_BOUNDARY, 512);
	tell(KVR_RETAIN_AUTO, KVR_WINDOW_FULL, 0);
	ck_window(slides(512), KVR_WINDOW_BOUNDARY, 512);
	ck_window(slides(1024), KVR_WINDOW_BOUNDARY, 1024);
	ck_window(slides(0), KVR_WINDOW_BOUNDARY, 1024);
	ck_assert_uint_eq(target.sliding, 1024);
}
END_TEST

START_TEST(a_window_that_is_told_stays)
{
	conf.sliding = KVR_WINDOW_BOUNDARY;
	tell(KVR_RETAIN_AUTO, KVR_WINDOW_DENSE, 128);
	ck_window(slides(512), KVR_WINDOW_DENSE, 128);
	tell(KVR_RETAIN_AUTO, KVR_WINDOW_BOUNDARY, 128);
	ck_window(slides(512), KVR_WINDOW_BOUNDARY, 128);
	tell(KVR_RETAIN_AUTO, KVR_WINDOW_FULL, 128);
	ck_window(slides(512), KVR_WINDOW_FULL, 128);
}
END_TEST

START_TEST(a_window_that_is_none)
{
	conf.sliding = KVR_WINDOW_BOUNDARY;
	ck_window(slides((UINT64_C(1) << 32) + 7), KVR_WINDOW_FULL, 0);
	ck_window(slides(UINT32_MAX), KVR_WINDOW_BOUNDARY, UINT32_MAX);
}
END_TEST

START_TEST(a_window_that_is_not_wanted)
{
	ck_window(slides(512), KVR_WINDOW_FULL, 0);
	conf.sliding = KVR_WINDOW_DUAL;
	ck_window(slides(512), KVR_WINDOW_DUAL, 512);
	tell(KVR_RETAIN_AUTO, KVR_WINDOW_FULL, 0);
	conf.sliding = KVR_WINDOW_FULL;
	ck_window(slides(512), KVR_WINDOW_FULL, 0);
}
END_TEST

/* -------------------------------------- blocks smaller than the index's --- */

/* The same worker, by name, in a region with blocks of 8 tokens. */
static void
by_blocks(void)
{
	struct kvr_options o;
	struct kvr_worker facts;
	uint64_t id;

	target_free(&target);
	kvr_free(k);
	ck_assert_int_eq(kvr_options_init(&o, sizeof(o)), KVR_OK);
	o.block_size = 8;
	o.event_blocks = 100;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.retain = KVR_RETAIN_EVENTS;
	ck_assert_int_eq(kvr_worker_add(k, "a", 1, &facts, &id), KVR_OK);
	target_init(&target, k, &conf);
	ck_assert(target_find(&target));
}

/* Events [from, to) of a message of SGLang, as the next batch. */
static void
give_vector(const char *name, size_t from, size_t to)
{
	const struct decode_options options = { .format = DECODE_ENGINE };
	struct decoder *d = decoder_new(&options);
	struct event_batch all;
	const struct target_batch batch = { .events = &all, .from = from,
	    .to = to, .seq = target.next };
	unsigned char *bytes;
	size_t n;

	ck_assert_ptr_nonnull(d);
	bytes = vector_bytes(vector_hex(name), &n);
	ck_assert_int_eq(decoder_read(d, bytes, n, &all), DECODE_GOOD);
	ck_assert_uint_ge(all.n, to);
	ck_assert_int_eq(target_apply(&target, &batch), TARGET_APPLIED);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	ck_assert_uint_eq(stats().events_state, KVR_EVENTS_COMPLETE);
	decoder_free(d);
	free(bytes);
}

/* Blocks of the index that the worker has of the tokens 1 to 8. */
static uint32_t
has_of_eight(void)
{
	static const uint32_t eight[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct kvr_overlap found;
	struct kvr_prompt *p;
	size_t n;

	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, eight, 8), KVR_OK);
	ck_assert_int_eq(kvr_match(k, p, 1, &found, sizeof(found), 1, &n),
	    KVR_OK);
	kvr_prompt_free(p);
	return n > 0 ? found.blocks : 0;
}

/* Two blocks of 4 are one; it goes with the second. */
START_TEST(sglang_in_larger_blocks)
{
	by_blocks();
	give_vector("v6", 0, 1);
	ck_assert_uint_eq(has_of_eight(), 1);
	ck_assert_uint_eq(stats().events_held, 1);
	give_vector("v6", 1, 2);
	ck_assert_uint_eq(has_of_eight(), 0);
	ck_assert_uint_eq(stats().events_held, 0);
	ck_assert_uint_eq(stats().events_orphans, 0);
	/* the rest of it, and the same tokens again */
	give_vector("v6", 0, 2);
	give_vector("v6", 0, 1);
	ck_assert_uint_eq(has_of_eight(), 1);
}
END_TEST

/* Half a block under a salt: once from arrays, once in the host's memory. */
START_TEST(sglang_with_a_salt_in_larger_blocks)
{
	by_blocks();
	give_vector("v8", 0, 1);
	ck_assert_uint_eq(target.pages.fresh, 1);
	give_vector("v7", 0, 1);
	ck_assert_uint_eq(target.pages.fresh, 1);
	ck_assert_uint_eq(stats().events_blocks, 0);
	ck_assert_uint_eq(stats().events_orphans, 0);
	ck_assert_uint_eq(has_of_eight(), 0);
	give_vector("v6", 0, 1); /* without it all is another */
	ck_assert_uint_eq(has_of_eight(), 1);
	ck_assert_uint_eq(stats().events_blocks, 2); /* and its root */
}
END_TEST

/* ----------------------------------------------------- use of a stream --- */

/* Adds blocks of eight tokens; the first `clear` are readable. */
static void
add_image(uint64_t clear, uint64_t blocks)
{
	struct event *e = add(EVENT_STORED, EVENT_DEVICE, blocks);

	e->block_size = 8;
	e->tokens.n = clear * 8;
	if (clear < blocks)
		e->flags |= EVENT_OPAQUE;
	if (clear == 0) /* others than those that are readable */
		e->hashes.at = 1;
}

START_TEST(an_image_spoils_its_block)
{
	by_blocks();
	add_image(1, 2);
	give(0);
	ck_assert_uint_eq(has_of_eight(), 1);
	ck_assert_uint_eq(stats().events_orphans, 1);
	ck_assert_uint_eq(stats().events_stored, 2);
	ck_assert_uint_eq(stats().events_state, KVR_EVENTS_COMPLETE);
	/* the image's block is removed, and then the one before it */
	events[0] = (struct event){ .size = sizeof(events[0]), .kind =
	    EVENT_REMOVED, .tier = EVENT_DEVICE, .hashes = { 1, 1 } };
	n_events = 1;
	give(0);
	ck_assert_uint_eq(has_of_eight(), 1);
	add(EVENT_REMOVED, EVENT_DEVICE, 1);
	give(0);
	ck_assert_uint_eq(has_of_eight(), 0);
	ck_assert_uint_eq(stats().events_held, 0);
}
END_TEST

/* A block stands behind one with an image. */
START_TEST(an_image_is_known_to_nothing_behind_it)
{
	by_blocks();
	add_image(0, 1);
	add_image(1, 1);
	events[1].flags |= EVENT_HAS_PARENT;
	events[1].parent = hashes[1];
	events[1].hashes.at = 2;
	give(0);
	ck_assert_uint_eq(has_of_eight(), 0);
	ck_assert_uint_eq(stats().events_orphans, 2);
}
END_TEST

static struct tell_use use;
static struct decode_counts decoded;

static void
check_state(const char *name, const char *reason)
{
	struct tell_state s;

	tell_use(&use, &target, &decoded);
	s = tell_state(&target, &use);
	ck_assert_str_eq(s.name, name);
	if (reason == NULL)
		ck_assert_ptr_null(s.reason);
	else
		ck_assert_str_eq(s.reason, reason);
}

static void
begin_use(void)
{
	memset(&use, 0, sizeof(use));
	memset(&decoded, 0, sizeof(decoded));
	by_blocks();
	check_state("off", NULL);
}

/* Windows of EAGLE give such events, and so do blocks without tokens. */
START_TEST(orphans_alone_are_of_no_use)
{
	int i;

	begin_use();
	for (i = 0; i < 16; i++) {
		add_image(0, 4);
		give(0);
		check_state("unusable", "orphans");
	}
	/* Nothing was lost. */
	ck_assert_uint_eq(stats().events_state, KVR_EVENTS_COMPLETE);
	add_image(1, 1);
	give(0);
	check_state("complete", NULL);
	ck_assert_uint_eq(stats().events_state, KVR_EVENTS_COMPLETE);
}
END_TEST

START_TEST(a_few_orphans_first)
{
	begin_use();
	add_image(0, 4);
	give(0);
	check_state("unusable", "orphans");
	add_image(1, 1);
	give(0);
	check_state("complete", NULL);
	add_image(0, 4);
	give(0);
	check_state("complete", NULL);
}
END_TEST

START_TEST(orphans_alone_from_then_on)
{
	int i;

	begin_use();
	add_image(1, 1);
	give(0);
	check_state("complete", NULL);
	for (i = 0; i < 249; i++) {
		add_image(0, 4);
		give(0);
	}
	check_state("complete", NULL);
	add_image(0, 4);
	give(0);
	check_state("unusable", "orphans");
}
END_TEST

/* Useless blocks before a clear do not count behind it. */
START_TEST(a_stream_that_is_mended)
{
	int i;

	begin_use();
	add_image(1, 1);
	give(0);
	check_state("complete", NULL);
	for (i = 0; i < 251; i++) {
		add_image(0, 4);
		give(0);
	}
	target_lost(&target, target.next + 1, "lost");
	check_state("unusable", "orphans");
	add(EVENT_CLEARED, EVENT_DEVICE, 0);
	give(0);
	ck_assert_uint_eq(stats().events_state, KVR_EVENTS_COMPLETE);
	check_state("unusable", "orphans");
	add_image(1, 1);
	give(0);
	check_state("complete", NULL);
	ck_assert_uint_eq(stats().events_state, KVR_EVENTS_COMPLETE);
}
END_TEST

static const struct {
	enum drop_reason reason;
	const char *name;
} dropped[] = {
	{ DROP_UNKNOWN, "unknown" }, { DROP_TIER, "tier" },
	{ DROP_GROUP, "group" }, { DROP_BLOCK_SIZE, "block_size" },
	{ DROP_PARTIAL, NULL }
};

/* Dropped events are in no batch, but the batch is applied. */
START_TEST(events_that_are_dropped_are_of_no_use)
{
	const char *name = dropped[_i].name;

	begin_use();
	give(0);
	check_state("complete", NULL);
	decoded.dropped[dropped[_i].reason] = 1;
	check_state(name == NULL ? "complete" : "unusable", name);
	add_image(1, 1);
	give(0);
	check_state("complete", NULL);
}
END_TEST

/* A number of an engine is any number. */
START_TEST(times_that_are_none)
{
	static const uint64_t none[] = { 0, 1, UINT64_MAX, INT64_MAX,
	    UINT64_C(1) << 63, UINT64_C(4102444800000) /* in 2100 */,
	    1700000000 /* seconds */ };
	const uint64_t now = (uint64_t)time(NULL) * 1000;
	int64_t lag;
	size_t i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		ck_assert(!tell_lag(none[i], &lag));
		ck_assert_int_eq(lag, 0);
	}
	ck_assert(tell_lag(now - 5000, &lag));
	ck_assert(lag >= 4000 && lag < 60000);
	ck_assert(tell_lag(now + 60000, &lag));
	ck_assert(lag > -61000 && lag < 0);
}
END_TEST

START_TEST(a_reason_for_a_degraded_worker)
{
	begin_use();
	add_image(1, 1);
	give(0);
	target_lost(&target, target.next + 1, "lost");
	check_state("degraded", "lost");
	add(EVENT_CLEARED, EVENT_DEVICE, 0);
	give(0);
	check_state("complete", NULL);
	ck_assert_int_eq(kvr_events_lost(k, target.id, 0), KVR_OK);
	add_image(1, 1);
	give(0);
	check_state("degraded", "region");
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
	tcase_add_test(t, a_window_is_set);
	tcase_add_test(t, a_window_that_is_told_stays);
	tcase_add_test(t, a_window_that_is_none);
	tcase_add_test(t, a_window_that_is_not_wanted);
	tcase_add_test(t, sglang_in_larger_blocks);
	tcase_add_test(t, sglang_with_a_salt_in_larger_blocks);
	tcase_add_test(t, an_image_spoils_its_block);
	tcase_add_test(t, an_image_is_known_to_nothing_behind_it);
	tcase_add_test(t, orphans_alone_are_of_no_use);
	tcase_add_test(t, a_few_orphans_first);
	tcase_add_test(t, orphans_alone_from_then_on);
	tcase_add_test(t, a_stream_that_is_mended);
	tcase_add_loop_test(t, events_that_are_dropped_are_of_no_use, 0,
	    sizeof(dropped) / sizeof(dropped[0]));
	tcase_add_test(t, times_that_are_none);
	tcase_add_test(t, a_reason_for_a_degraded_worker);
	suite_add_tcase(s, t);
	return s;
}
