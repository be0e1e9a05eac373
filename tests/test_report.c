/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_report.c - what reports are believed, and what they teach.
 *
 * A block is one token. Ages below 1024 are all one, so prompts here are
 * thousands of blocks long: "say_long(n, common, kind)".
 */
#include "inner.h"

enum { AT_ONCE = 0 }; /* the bin of what was released just now */

static void
big_setup(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 8 << 20;
	region_of(&o);
}

static void
set_mode(uint32_t worker, uint32_t retain)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.retain = retain;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

static void
set_purge(void)
{
	struct kvr_policy y;

	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
	y.purge = 1;
	ck_assert_int_eq(kvr_set_policy(k, &y), KVR_OK);
}

static void
reported(uint64_t lease, uint64_t cached, int64_t now)
{
	struct kvr_report r = { .size = sizeof(r),
	    .kind = KVR_REPORT_VALUE };

	r.cached_tokens = cached;
	ck_assert_int_eq(kvr_finish(k, lease, &r, now, 0), KVR_OK);
	region_sound();
}

/* A whole request on the prompt at hand. */
static void
ask(uint32_t worker, uint64_t cached, int64_t now)
{
	uint64_t lease = reserved(worker, now);

	commit(lease, now);
	reported(lease, cached, now);
}

static const struct survival *
seen_of(uint32_t worker)
{
	return &k->survival[slot_at(k, worker)->name - 1];
}

static double
hits(uint32_t worker, uint32_t from, uint32_t to)
{
	double sum = 0;

	for (; from < to; from++)
		sum += (double)seen_of(worker)->hit[from];
	return sum;
}

/* -------------------------------------------------------- at which age --- */

/* Committing joins the path's nodes into one: their ages must not be lost. */
START_TEST(ages_outlive_a_merge)
{
	set_mode(0, KVR_RETAIN_FEEDBACK);
	say_long(20000, 0, 9);
	ask(0, 0, 1);
	say_long(1000, 1000, 0);
	ask(0, 0, 2);
	ck_assert(hits(0, 0, AGES) == 0);
	say_long(2000, 2000, 0);
	ask(0, 1000, 3);
	ck_assert(hits(0, AT_ONCE, AT_ONCE + 1) > 1.9);
	ck_assert(hits(0, AT_ONCE + 1, AGES) == 0);
	say_long(3000, 3000, 0);
	ask(0, 2000, 4);
	ck_assert(hits(0, AT_ONCE + 1, AGES) == 0);
}
END_TEST

/* ------------------------------------------------------- who foretells --- */

/* A caller's own number; no more of a prompt is cached than it has. */
START_TEST(overlap_as_given)
{
	static const uint32_t given[] = { 0, 3, 8, 9, KVR_AUTO - 1 };
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	uint64_t foretold = 0;
	uint32_t i;

	set_mode(0, KVR_RETAIN_FEEDBACK);
	kvr_request_init(&r, sizeof(r));
	say("abcdefgh");
	for (i = 0; i < 5; i++) {
		r.overlap_blocks = given[i];
		ck_assert_int_eq(kvr_reserve_on(k, p, &r, id[0], 1, &d),
		    KVR_OK);
		ck_assert_uint_eq(d.overlap_tokens, given[i] < 8 ? given[i]
		    : 8);
		foretold += d.overlap_tokens;
		ck_assert_uint_eq(worker_stats(0).predicted_tokens, foretold);
		ck_assert_uint_eq(worker_stats(0).prefill_tokens,
		    8 - d.overlap_tokens);
		give_up(d.lease, 1);
	}
	r.overlap_blocks = (uint32_t)KVR_AUTO + 1;
	ck_assert_int_eq(kvr_reserve_on(k, p, &r, id[0], 1, &d), KVR_EINVAL);
}
END_TEST

/* --------------------------------------------------------------- purge --- */

/* Nothing new since the release: the path itself is as old as what missed. */
START_TEST(own_path_is_never_purged)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	uint32_t mode, i;

	set_purge();
	for (mode = KVR_RETAIN_TTL; mode <= KVR_RETAIN_FEEDBACK;
	    mode += 2) {
		set_mode(mode, mode);
		say("abcdefgh");
		ask(mode, 0, 1);
		ask(mode, 7, 2);
		kvr_request_init(&r, sizeof(r));
		r.overlap_blocks = 8;
		for (i = 0; i < 2; i++) {
			ck_assert_int_eq(kvr_reserve_on(k, p, &r, id[mode], 3,
			    &d), KVR_OK);
			commit(d.lease, 3);
			reported(d.lease, 0, 3);
		}
		ck_assert_uint_eq(worker_stats(mode).purges, 1);
		ck_assert_uint_eq(overlap(mode, 3), 8);
		say("ij");
		ask(mode, 0, 4);
		ck_assert_uint_eq(overlap(mode, 4), 2);
	}
}
END_TEST

Suite *suite_report(void);

Suite *
suite_report(void)
{
	Suite *s = suite_create("report");
	TCase *t = tcase_create("ages");

	tcase_add_checked_fixture(t, big_setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, ages_outlive_a_merge);
	t = small_case(s, "foretold");
	tcase_add_test(t, overlap_as_given);
	t = small_case(s, "purge");
	tcase_add_test(t, own_path_is_never_purged);
	return s;
}
