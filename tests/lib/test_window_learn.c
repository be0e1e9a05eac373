/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_window_learn.c - which mode of windows is learnt from reports. A block
 * is one token; the engine is a rule of what it finds.
 */
#include "window_learn.h"

#include "survival.h"
#include "window.h"
#include "worker.h"

#include "inner.h"

#include <math.h>
#include <stdio.h>

static struct kvr_worker
facts_of(uint32_t mode)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.window_mode = mode;
	f.window_tokens = 2;
	return f;
}

static void
learns(uint64_t capacity, uint32_t layers, uint64_t own)
{
	struct kvr_worker f = facts_of(KVR_WINDOW_LEARN);

	f.capacity_tokens = capacity;
	f.window_layers = layers;
	f.window_capacity = own;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
}

/* A request for a text of which the engine says it has found so much. */
static void
found(const char *text, uint64_t cached, int64_t at)
{
	struct kvr_report r = { .size = sizeof(r), .kind = KVR_REPORT_VALUE,
	    .cached_tokens = cached, .prompt_tokens = strlen(text) };
	uint64_t lease = reserve(0, text, at);

	commit(lease, at);
	ck_assert_int_eq(kvr_lease_finish(k, lease, &r, at, 0), KVR_OK);
	region_sound();
}

static uint32_t
mode_now(void)
{
	return worker_stats(0).window_mode;
}

/*
 * A text that shares eight tokens with one that was sent, which ended behind
 * twelve: all, nothing or, of the earlier text of four, these. Found: those of
 * the mode.
 */
static void
turn(uint32_t i, uint64_t cached)
{
	char first[] = "aaaa", longer[] = "aaaabbbbcccc", leaves[] =
	    "aaaabbbbX";

	first[0] = longer[0] = leaves[0] = (char)('A' + i % 26);
	first[1] = longer[1] = leaves[1] = (char)('A' + i / 26);
	found(first, 0, 10 * i + 1);
	found(longer, 4, 10 * i + 2);
	found(leaves, cached, 10 * i + 3);
}

/* Reports of what only ends explain: eight of them are enough. */
START_TEST(boundary)
{
	uint32_t i;

	learns(0, 500, 0);
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_FULL);
	for (i = 0; mode_now() == KVR_WINDOW_FULL && i < 20; i++)
		turn(i, 4);
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_BOUNDARY);
	ck_assert_uint_ge(i, 3);
	ck_assert_uint_le(i, 8);
	ck_assert_double_gt(worker_stats(0).window_ends_gain, 0.9);
}
END_TEST

/* Once the mode is in force, it is what is predicted. */
START_TEST(predicts)
{
	struct kvr_candidate c[WORKERS_MAX];
	uint32_t i;
	size_t n;

	learns(0, 500, 0);
	for (i = 0; i < 10; i++)
		turn(i, 4);
	found("zzzz", 0, 900);
	found("zzzzyyyyxxxx", 4, 901);
	say("zzzzyyyyW");
	ck_assert_int_eq(kvr_candidates(k, p, NULL, 902, c, sizeof(c[0]),
	    WORKERS_MAX, &n), KVR_OK);
	ck_assert_uint_eq(c[0].worker, id[0]);
	ck_assert_uint_eq(c[0].overlap_blocks, 8);
	ck_assert_uint_ge(c[0].overlap_tokens, 3); /* by age */
	ck_assert_uint_le(c[0].overlap_tokens, 4);
}
END_TEST

/* An engine that finds all is never taken for another one. */
START_TEST(full)
{
	uint32_t i;

	learns(1000, 500, 0);
	for (i = 0; i < 40; i++) {
		turn(i, 8);
		ck_assert_uint_eq(mode_now(), KVR_WINDOW_FULL);
	}
	ck_assert_double_lt(worker_stats(0).window_ends_gain, -0.9);
	ck_assert_double_gt(worker_stats(0).window_ends_reports, 10);
}
END_TEST

/* What was learnt is learnt again when the engine has become another one. */
START_TEST(another_engine)
{
	uint32_t i;

	learns(0, 500, 0);
	for (i = 0; i < 40; i++)
		turn(i, 4);
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_BOUNDARY);
	for (; i < 100; i++)
		turn(i, 8);
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_FULL);
}
END_TEST

/* With a memory for windows the ends are those of DUAL. */
START_TEST(dual)
{
	uint32_t i;

	learns(0, 500, 1000000);
	for (i = 0; i < 20; i++)
		turn(i, 4);
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_DUAL);
}
END_TEST

/* Nothing is compared where modes agree, and without a number. */
START_TEST(no_evidence)
{
	uint32_t i;

	learns(0, 500, 0);
	for (i = 0; i < 20; i++)
		found("abcdefgh", i == 0 ? 0 : 7, i);
	ck_assert(worker_stats(0).window_ends_reports == 0);
	ck_assert(worker_stats(0).window_ends_gain == 0);
	ck_assert(worker_stats(0).window_dense_reports == 0);
	finish(reserve(0, "abcdX", 30), 31);
	ck_assert(worker_stats(0).window_ends_reports == 0);
}
END_TEST

/* An old path of which nothing is found: only DENSE says so, if it is wide. */
static void
dense_turns(uint32_t turns, uint64_t old, uint64_t young)
{
	char text[] = "..............";
	uint32_t i;

	for (i = 0; i < turns; i++) {
		memset(text, 'A' + (int)i % 50, 12);
		text[0] = (char)('0' + i / 50);
		text[12] = '.';
		text[13] = '\0';
		found(text, 0, 4 * i);
		if (i == 0)
			continue;
		text[13] = 'x';
		found(text, young, 4 * i + 1);
		text[13] = '\0';
		if (i < 8)
			continue;
		memset(text, 'A' + (int)(i - 8) % 50, 12);
		text[0] = (char)('0' + (i - 8) / 50);
		text[12] = '.';
		text[13] = 'y';
		found(text, old, 4 * i + 2);
		text[13] = '\0';
	}
}

START_TEST(dense)
{
	learns(600, 500, 0); /* of which a dense cache has 100 */
	dense_turns(120, 0, 13);
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_DENSE);
	ck_assert_double_gt(worker_stats(0).window_dense_gain, 0.8);
}
END_TEST

/*
 * The same that is found is none; nor is it one without the share of layers, or
 * with a memory for them.
 */
START_TEST(not_dense)
{
	learns(600, 500, 0);
	dense_turns(120, 13, 13);
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_FULL);
	learns(600, 0, 0);
	dense_turns(120, 0, 13);
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_FULL);
	learns(600, 500, 1000000);
	dense_turns(120, 0, 13);
	ck_assert_uint_ne(mode_now(), KVR_WINDOW_DENSE);
	ck_assert(worker_stats(0).window_dense_reports == 0);
}
END_TEST

/* An engine that has lost what is young, too, is none; nor is it anything. */
START_TEST(lost)
{
	uint32_t i;

	learns(600, 500, 0);
	found("shown", 0, 0);
	found("shownX", 5, 1);
	dense_turns(120, 0, 0);
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_FULL);
	learns(0, 500, 0);
	for (i = 0; i < 20; i++)
		turn(i, 0);
	ck_assert(worker_stats(0).window_ends_reports == 0);
}
END_TEST

/* A dense cache that turns out to hold more is none. */
START_TEST(no_longer_dense)
{
	learns(600, 500, 0);
	dense_turns(120, 0, 13);
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_DENSE);
	dense_turns(120, 13, 13);
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_FULL);
}
END_TEST

/*
 * An engine that restarts, time and again, finds nothing of what any mode
 * predicts, and so says nothing about them.
 */
START_TEST(restarts)
{
	uint32_t i;

	learns(100000, 500, 0);
	for (i = 0; i < 100; i++) {
		turn(i, i % 10 < 8 ? 8 : 0);
		ck_assert_uint_eq(mode_now(), KVR_WINDOW_FULL);
	}
}
END_TEST

/* --------------------------------------------------------------- facts --- */

/* The same facts again forget nothing; others, kvr_worker_forget, a reset do */
START_TEST(forgotten)
{
	uint32_t i;

	for (i = 0; i < 3; i++) {
		uint32_t from = 30 * i, j;

		learns(0, 500, 0);
		for (j = from; j < from + 20; j++)
			turn(j, 4);
		learns(0, 500, 0);
		ck_assert_uint_eq(mode_now(), KVR_WINDOW_BOUNDARY);
		if (i == 0)
			learns(0, 400, 0);
		else if (i == 1)
			ck_assert_int_eq(kvr_worker_forget(k, id[0]), KVR_OK);
		else
			ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]),
			    KVR_OK);
		ck_assert_uint_eq(mode_now(), KVR_WINDOW_FULL);
		ck_assert(worker_stats(0).window_ends_reports == 0);
	}
}
END_TEST

/* What is told is in force at once, and reports change nothing. */
START_TEST(told)
{
	struct kvr_worker f = facts_of(KVR_WINDOW_BOUNDARY);
	uint32_t i;

	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	for (i = 0; i < 20; i++)
		turn(i, 8);
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_BOUNDARY);
	ck_assert(worker_stats(0).window_ends_reports == 0);
}
END_TEST

/* Overlaps by another router's record are not those of the modes. */
START_TEST(given_overlap)
{
	struct kvr_request r;
	struct kvr_report report = { .size = sizeof(report),
	    .kind = KVR_REPORT_VALUE, .cached_tokens = 4 };
	struct kvr_decision d = { .size = sizeof(d) };

	learns(0, 500, 0);
	found("aaaa", 0, 1);
	found("aaaabbbbcccc", 4, 2);
	say("aaaabbbbX");
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.overlap_blocks = 8;
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[0], 3, &d), KVR_OK);
	ck_assert_int_eq(kvr_lease_commit(k, d.lease, 3, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_finish(k, d.lease, &report, 4, 0), KVR_OK);
	ck_assert(worker_stats(0).window_ends_reports == 0);
}
END_TEST

/* -------------------------------------------------------------- damage --- */

static void
damage_one(float *place, float value)
{
	*place = value;
	ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
	ck_assert_double_ge(worker_stats(0).window_ends_gain, -1);
	ck_assert_double_le(worker_stats(0).window_ends_gain, 1);
	ck_assert_double_ge(worker_stats(0).window_ends_reports, 0);
	worker_mend(k);
	load_recount(k, id_slot(id[0]));
	region_sound();
	ck_assert(worker_stats(0).window_ends_reports == 0);
}

START_TEST(damaged)
{
	struct survival *s = survival_at(k, id_slot(id[0]));
	struct window *w = &slot_at(k, id_slot(id[0]))->window;

	learns(0, 500, 0);
	damage_one(&s->idea[IDEA_ENDS].gain, -33);
	damage_one(&s->idea[IDEA_ENDS].gain, 33);
	damage_one(&s->idea[IDEA_DENSE].gain, NAN);
	damage_one(&s->idea[IDEA_DENSE].compared, -1);
	damage_one(&s->idea[IDEA_ENDS].compared, INFINITY);
	s->idea[IDEA_ENDS].gain = 3;
	ck_assert(worker_stats(0).window_ends_gain == 0);
	s->idea[IDEA_ENDS].compared = 1;
	ck_assert(worker_stats(0).window_ends_gain == 1);
	s->idea[IDEA_ENDS].gain = -3;
	ck_assert(worker_stats(0).window_ends_gain == -1);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	w->in_force = KVR_WINDOW_DUAL; /* without a memory for windows */
	load_recount(k, id_slot(id[0]));
	ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
	w->in_force = KVR_WINDOW_LEARN;
	ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
	worker_mend(k);
	load_recount(k, id_slot(id[0]));
	region_sound();
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_FULL);
}
END_TEST

/* --------------------------------------------------------------- bytes --- */

static void
bytes_setup(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 1 << 20;
	o.unit = KVR_UNIT_BYTES;
	o.block_size = 16;
	o.ttl_ns = KVR_TTL_ENDLESS;
	region_of(&o);
}

/* 640 bytes of a session, and others behind 320 or 480. */
static void
send_bytes(uint32_t session, uint32_t bytes, char rest, uint64_t prompt,
    uint64_t cached, int64_t at)
{
	struct kvr_report r = { .size = sizeof(r), .kind = KVR_REPORT_VALUE,
	    .cached_tokens = cached, .prompt_tokens = prompt };
	struct kvr_decision d = { .size = sizeof(d) };
	char text[1024];
	uint32_t i;

	for (i = 0; i < bytes; i++)
		text[i] = (char)(i / 16 + 1);
	text[0] = (char)session;
	memset(text + bytes, rest, 64);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, text, bytes + 64),
	    KVR_OK);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], at, &d), KVR_OK);
	ck_assert_int_eq(kvr_lease_commit(k, d.lease, at, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_finish(k, d.lease, &r, at, 0), KVR_OK);
}

/*
 * Engines count tokens: here three bytes each, where the index believes in
 * four. Compared is what share of the prompt was found.
 */
START_TEST(bytes)
{
	uint32_t i;

	learns(0, 500, 0);
	for (i = 1; i < 30; i++) {
		send_bytes(i, 256, 'x', 320 / 3, 0, 3 * i);
		send_bytes(i, 640, 'y', 704 / 3, 0, 3 * i + 1);
		/* the second one has parted there, so only this one tells */
		send_bytes(i, 512, 'z', 576 / 3, 256 / 3, 3 * i + 2);
	}
	ck_assert_uint_eq(mode_now(), KVR_WINDOW_BOUNDARY);
	ck_assert_double_gt(worker_stats(0).window_ends_gain, 0.9);
}
END_TEST

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 1 << 20;
	o.ttl_ns = KVR_TTL_ENDLESS;
	region_of(&o);
}

Suite *suite_window_learn(void);

Suite *
suite_window_learn(void)
{
	Suite *s = suite_create("window_learn");
	TCase *t = tcase_create("tokens");

	tcase_add_checked_fixture(t, setup, region_end);
	tcase_add_test(t, boundary);
	tcase_add_test(t, predicts);
	tcase_add_test(t, full);
	tcase_add_test(t, another_engine);
	tcase_add_test(t, dual);
	tcase_add_test(t, no_evidence);
	tcase_add_test(t, dense);
	tcase_add_test(t, not_dense);
	tcase_add_test(t, lost);
	tcase_add_test(t, no_longer_dense);
	tcase_add_test(t, restarts);
	tcase_add_test(t, forgotten);
	tcase_add_test(t, told);
	tcase_add_test(t, given_overlap);
	tcase_add_test(t, damaged);
	suite_add_tcase(s, t);
	t = tcase_create("bytes");
	tcase_add_checked_fixture(t, bytes_setup, region_end);
	tcase_add_test(t, bytes);
	suite_add_tcase(s, t);
	return s;
}
