/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lease.c - bookings and pins of leases, and other events meanwhile.
 *
 * The prompt of most tests is "abcd": four blocks, four tokens. Pinned blocks
 * are marked "!" in the drawing.
 */
#include "lease.h"

#include "inner.h"

static int
extend(uint64_t lease, const char *text, int64_t now)
{
	return kvr_lease_extend(k, lease, say(text), now, 0);
}

static void
extended(uint64_t lease, const char *text, int64_t now)
{
	ck_assert_int_eq(extend(lease, text, now), KVR_OK);
}

/* A request with options other than the defaults. */
static uint64_t
reserve_as(uint32_t flags, uint64_t owner, const char *text, int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;

	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.flags = flags;
	r.owner = owner;
	ck_assert_int_eq(kvr_lease_open_on(k, say(text), &r, id[0], now, &d),
	    KVR_OK);
	return d.lease;
}

/* ------------------------------------------------------------- booking --- */

START_TEST(shared_blocks_count_once)
{
	uint64_t one, two, three;

	one = reserve(0, "abcd", 1);
	two = reserve(0, "abxy", 2);
	ck_tree("ab:0!(cd:0! xy:0!)");
	/* two of the second's four tokens are predicted as cached */
	ck_load(0, 4 + 2, 6, 0, 2);
	three = reserve(0, "abcd", 3);
	ck_load(0, 4 + 2 + 0, 6, 0, 3);
	ck_assert_uint_eq(worker_stats(0).predicted_tokens, 2 + 4);
	ck_assert_uint_eq(worker_stats(0).prompt_tokens, 12);
	give_up(one, 4);
	ck_load(0, 2, 6, 0, 2);
	give_up(three, 5);
	ck_load(0, 2, 4, 0, 1);
	ck_tree("ab:0!(xy:0!)");
	give_up(two, 6);
	ck_load(0, 0, 0, 0, 0);
	ck_tree("");
}
END_TEST

START_TEST(request_flags)
{
	uint64_t lease = reserve_as(KVR_IGNORE_PREFILL, 0, "abcd", 1);

	ck_load(0, 0, 4, 0, 1);
	give_up(lease, 1);
	lease = reserve_as(KVR_IGNORE_REUSE, 0, "abcd", 2);
	ck_tree("");
	ck_load(0, 4, 0, 4, 1);
	commit(lease, 3);
	ck_assert_int_eq(extend(lease, "abcdefg", 4), KVR_OK);
	ck_tree("");
	ck_load(0, 4, 0, 7, 1);
	ck_assert_int_eq(extend(lease, "abcdef", 4), KVR_EMISMATCH);
	finish(lease, 5);
	ck_tree("");
	ck_load(0, 0, 0, 0, 0);
}
END_TEST

/* A prompt longer than the limit is booked as a whole and recorded in part. */
START_TEST(longer_than_recorded)
{
	struct kvr_options o = small_options();
	uint64_t lease;

	o.max_prompt_blocks = 6;
	region_of(&o);
	lease = reserve(0, "abcdefghi", 1);
	ck_tree("abcdef:0!");
	ck_load(0, 9, 6, 3, 1);
	ck_assert_uint_eq(stats().truncated, 1);
	commit(lease, 2);
	extended(lease, "abcdefghijkl", 3);
	ck_tree("abcdef:0!");
	ck_load(0, 9, 6, 6, 1);
	/* shorter than the booked prompt, or different in its recorded part */
	ck_assert_int_eq(extend(lease, "abcdefghijk", 4), KVR_EMISMATCH);
	ck_assert_int_eq(extend(lease, "abcdeFghijklm", 4), KVR_EMISMATCH);
	finish(lease, 4);
	ck_load(0, 0, 0, 0, 0);
	region_end();
}
END_TEST

/* A run has at most seven levels of pieces, with any options. */
START_TEST(no_longer_than_a_run)
{
	struct kvr_options o = small_options();
	struct kvr_prompt endless = { .blocks = UINT32_MAX - 1 };

	o.max_prompt_blocks = KVR_AUTO - 1;
	region_of(&o);
	ck_assert_uint_lt(run_level(lease_blocks(k, &endless)), RUN_LEVELS);
	region_end();
}
END_TEST

/* ----------------------------------------------------------- extending --- */

static const uint32_t answer[64];

/* Reserves in a region of its own, with blocks of four tokens. */
static uint64_t
reserve_in_fours(size_t tokens)
{
	struct kvr_options o = small_options();

	o.block_size = 4;
	region_of(&o);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, answer, tokens),
	    KVR_OK);
	return reserved(0, 1);
}

/* Extends to this many tokens in blocks of four; `blocks` are whole. */
static void
extend_to(uint64_t lease, size_t tokens, uint32_t blocks, int64_t now)
{
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, answer, tokens),
	    KVR_OK);
	ck_assert_uint_eq(p->blocks, blocks);
	ck_assert_int_eq(kvr_lease_extend(k, lease, p, now, 0), KVR_OK);
	ck_load(0, 6, blocks, 0, 1);
	ck_assert_uint_eq(stats().nodes, blocks > 0);
	ck_assert_uint_eq(overlap(0, now), blocks);
}

/* Token by token: a block joins the path when it is complete. */
START_TEST(partial_blocks)
{
	uint64_t lease = reserve_in_fours(6);
	uint32_t tokens;

	commit(lease, 1);
	for (tokens = 6; tokens < 64; tokens += tokens < 30 ? 1 : 5)
		extend_to(lease, tokens, tokens / 4, tokens);
	finish(lease, 70);
	ck_load(0, 0, 0, 0, 0);
	region_end();
}
END_TEST

/* Less than a block: nothing to record, but a request with a prefill. */
START_TEST(no_whole_block)
{
	uint64_t lease = reserve_in_fours(3);

	ck_load(0, 3, 0, 0, 1);
	commit(lease, 2);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, answer, 9), KVR_OK);
	ck_assert_int_eq(kvr_lease_extend(k, lease, p, 3, 0), KVR_OK);
	ck_load(0, 3, 2, 0, 1);
	finish(lease, 4);
	ck_load(0, 0, 0, 0, 0);
	ck_assert_uint_eq(overlap(0, 4), 2);
	region_end();
}
END_TEST

START_TEST(extend_where_others_are)
{
	uint64_t lease = reserve(0, "abcd", 1);

	commit(lease, 1);
	observe(1, "abcdefgh", 2);
	ck_tree("abcd:0!1(efgh:1)");
	extended(lease, "abcdef", 3); /* into another's run */
	ck_tree("abcdef:0!1(gh:1)");
	extended(lease, "abcdefxy", 4); /* and out of it */
	ck_tree("abcdef:0!1(gh:1 xy:0!)");
	extended(lease, "abcdefxyz", 5); /* alone: in place */
	ck_tree("abcdef:0!1(gh:1 xyz:0!)");
	ck_load(0, 4, 9, 0, 1);
	extended(lease, "abcdefxyz", 6); /* nothing new */
	ck_load(0, 4, 9, 0, 1);
	ck_assert_int_eq(extend(lease, "abcdef", 7), KVR_EMISMATCH);
	ck_assert_int_eq(extend(lease, "abcdefgh", 7), KVR_EMISMATCH);
	ck_assert_int_eq(extend(lease, "mnopqrstuvw", 7), KVR_EMISMATCH);
	ck_tree("abcdef:0!1(gh:1 xyz:0!)");
	finish(lease, 8);
	ck_load(0, 0, 0, 0, 0);
}
END_TEST

/* A damaged number of blocks: their sum wraps, and no prompt is so long. */
START_TEST(extend_more_than_there_is)
{
	uint64_t lease = reserve(0, "abcd", 1);
	struct lease *l = lease_at(k, lease_find(k, lease));
	struct lease whole = *l;

	commit(lease, 1);
	whole.flags = l->flags;
	l->blocks = UINT32_MAX;
	l->private = 1;
	ck_assert_int_eq(extend(lease, "abcdef", 2), KVR_EMISMATCH);
	l->private = 5;
	ck_assert_int_eq(extend(lease, "abcdef", 2), KVR_EMISMATCH);
	*l = whole;
	extended(lease, "abcdef", 3);
}
END_TEST

/* A lease that was opened at an impossible time has no age. */
START_TEST(opened_at_no_time)
{
	static const int64_t odd[] = { INT64_MIN, -1, INT64_MAX };
	uint64_t lease = reserve(0, "abcd", 1);
	struct lease *l = lease_at(k, lease_find(k, lease));

	commit(lease, 1);
	l->opened = odd[_i];
	/* the public call would reap it after this */
	lease_first_token(k, lease_find(k, lease), 5000000);
	finish(lease, 6000000);
	ck_assert(worker_stats(0).prefill_rate > 0);
}
END_TEST

/* Two leases end at one node: it is not extended under the other one. */
START_TEST(extend_beside_a_twin)
{
	uint64_t one = reserve(0, "abcd", 1), two = reserve(0, "abcd", 1);

	commit(one, 2);
	commit(two, 2);
	extended(one, "abcdef", 3);
	ck_tree("abcd:0!(ef:0!)");
	extended(two, "abcdxy", 4);
	ck_tree("abcd:0!(ef:0! xy:0!)");
	ck_load(0, 4, 8, 0, 2);
	finish(one, 5);
	ck_tree("abcd:0!(ef:0 xy:0!)");
	finish(two, 6);
	ck_tree("abcd:0(ef:0 xy:0)");
	ck_load(0, 0, 0, 0, 0);
}
END_TEST

/* -------------------------------------------------------------- stamps --- */

/* Opening a lease is not evidence: it stamps nothing. */
START_TEST(reserve_stamps_nothing)
{
	uint64_t lease;

	observe(0, "abcd", 10);
	lease = reserve(0, "abcd", 500);
	give_up(lease, 600);
	ck_assert_uint_eq(overlap(0, 10 + TTL - 1), 4);
	ck_assert_uint_eq(overlap(0, 10 + TTL), 0);
	lease = reserve(0, "abcd", 700);
	commit(lease, 800);
	give_up(lease, 900); /* too late to undo that */
	ck_assert_uint_eq(overlap(0, 800 + TTL - 1), 4);
	ck_assert_uint_eq(overlap(0, 800 + TTL), 0);
	lease = reserve(0, "abcd", 900);
	finish(lease, 1000);
	ck_assert_uint_eq(overlap(0, 1000 + TTL - 1), 4);
	ck_assert_uint_eq(overlap(0, 1000 + TTL), 0);
}
END_TEST

/*
 * A whole tree is due, and too large to be reclaimed in a few calls. Pinning
 * one branch revives nothing else, and once it is unpinned, the stem stays as
 * long as there are branches.
 */
static void
overdue_tree(void)
{
	char text[4] = "abA";

	for (; text[2] <= 'Z'; text[2]++)
		observe(0, text, 1);
	observe(0, "abcd", 1);
	ck_assert_uint_eq(stats().nodes, 28);
}

START_TEST(pinned_among_the_due)
{
	uint64_t lease;

	overdue_tree();
	lease = reserve(0, "abcd", 1 + TTL);
	region_sound();
	ck_assert_uint_eq(overlap(0, 1 + TTL), 4); /* while it is pinned */
	say("abZ");
	ck_assert_uint_eq(overlap(0, 1 + TTL), 2);
	give_up(lease, 1 + TTL);
	region_sound();
	ck_assert_uint_gt(stats().nodes, 1);
	say("abcd");
	ck_assert_uint_eq(overlap(0, 1 + TTL), 0);
	(void)reserve(1, "mnop", 1 + TTL); /* cells are reused */
	region_sound();
	ck_assert_uint_eq(expire(1 + TTL, 100), 0);
	ck_tree("mnop:1!");
}
END_TEST

START_TEST(confirmed_among_the_due)
{
	uint64_t lease;

	overdue_tree();
	lease = reserve(0, "abcd", 1 + TTL);
	commit(lease, 1 + TTL);
	region_sound();
	(void)expire(1 + TTL, 100);
	ck_tree("ab:0!(cd:0!)");
	commit(lease, 2 + TTL);
	ck_tree("abcd:0!");
}
END_TEST

/* ----------------------------------------------------- leases over age --- */

static void
limited_setup(void)
{
	struct kvr_options o = small_options();

	o.ttl_ns = KVR_TTL_ENDLESS;
	o.lease_limit_ns = 500;
	region_of(&o);
}

/* By default none is: requests may live for days. */
START_TEST(a_live_request_of_days_is_load)
{
	const int64_t day = INT64_C(86400) * 1000000000;
	struct kvr_options o = small_options(), usual;
	uint64_t lease;

	ck_assert_int_eq(kvr_options_init(&usual, sizeof(usual)), KVR_OK);
	o.lease_limit_ns = usual.lease_limit_ns;
	region_end();
	region_of(&o);
	lease = reserve(0, "abcd", 1);
	commit(lease, 2);
	(void)reserve(0, "xy", 6 * day);
	ck_assert_uint_eq(worker_stats(0).requests, 2);
	ck_assert_int_eq(kvr_lease_finish(k, lease, NULL, 6 * day, 0), KVR_OK);
	ck_assert_uint_eq(worker_stats(0).requests, 1);
}
END_TEST

/* Two in each call, the oldest first, as soon as they are over age. */
START_TEST(reaped_by_age)
{
	uint64_t lease[6];
	char text[3] = "a?";
	uint32_t i;

	for (i = 0; i < 6; i++) {
		text[1] = (char)('A' + i);
		lease[i] = reserve(0, text, 100 + i);
		if (i % 2 == 0)
			commit(lease[i], 100 + i);
	}
	ck_tree("a:0!(A:0! B:0! C:0! D:0! E:0! F:0!)");
	(void)expire(599, 0);
	ck_assert_uint_eq(stats().lease_reaps, 0);
	(void)expire(600, 0);
	ck_assert_uint_eq(stats().lease_reaps, 1);
	ck_tree("a:0!(A:0 B:0! C:0! D:0! E:0! F:0!)");
	(void)expire(605, 0);
	ck_assert_uint_eq(stats().lease_reaps, 3);
	ck_tree("a:0!(A:0 C:0 D:0! E:0! F:0!)"); /* never confirmed: gone */
	ck_load(0, 1 + 1 + 1, 1 + 3, 0, 3);
	/* over age, and still its owner's until the next write */
	finish(lease[5], 605);
	ck_assert_uint_eq(stats().lease_reaps, 5);
	ck_assert_uint_eq(stats().lease_finishes, 1);
	ck_tree("a:0(A:0 C:0 E:0 F:0)");
	for (i = 0; i < 6; i++)
		ck_assert_int_eq(
		    kvr_lease_commit(k, lease[i], 605, 0), KVR_ELEASE);
	ck_load(0, 0, 0, 0, 0);
}
END_TEST

START_TEST(owners_are_told)
{
	uint64_t owners[4] = { 0 }, first = reserve_as(0, 7, "ab", 1), at = 0;
	size_t n = 99;

	(void)reserve_as(0, 8, "cd", 2);
	(void)reserve_as(0, 7, "ef", 3);
	(void)reserve_as(0, 0, "gh", 4);
	ck_assert_int_eq(kvr_owner_list(k, &at, owners, 4, &n), KVR_OK);
	ck_assert_uint_eq(at, 0);
	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(owners[0], 7);
	ck_assert_uint_eq(owners[1], 8);
	ck_assert_uint_eq(owners[2], 0);
	ck_assert_int_eq(kvr_lease_abort(k, first, 5, 0), KVR_OK);
	ck_assert_int_eq(kvr_owner_list(k, &at, owners, 1, &n), KVR_OK);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(owners[0], 8);
	ck_assert_uint_ne(at, 0);
	ck_assert_int_eq(kvr_owner_list(k, &at, owners, 1, &n), KVR_OK);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(owners[0], 7);
	ck_assert_int_eq(kvr_owner_list(k, &at, owners, 1, &n), KVR_OK);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(owners[0], 0);
	ck_assert_uint_eq(at, 0);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_assert_int_eq(kvr_owner_list(k, &at, owners, 4, &n), KVR_OK);
	ck_assert_uint_eq(at, 0);
	ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(reaped_by_owner)
{
	uint64_t mine = reserve_as(0, 1, "ab", 1), other, at = 0;
	uint32_t ended = 99;

	commit(mine, 1);
	(void)reserve_as(0, 1, "cd", 2);
	other = reserve_as(0, 2, "ef", 3);
	(void)reserve_as(0, 1, "gh", 4);
	ck_assert_int_eq(kvr_owner_reap(k, 3, 5, &at, &ended), KVR_OK);
	ck_assert_uint_eq(ended, 0);
	ck_tree("ab:0! cd:0! ef:0! gh:0!");
	ck_assert_int_eq(kvr_owner_reap(k, 1, 6, &at, &ended), KVR_OK);
	ck_assert_uint_eq(ended, 3);
	ck_tree("ab:0 ef:0!");
	ck_load(0, 2, 2, 0, 1);
	ck_assert_uint_eq(stats().lease_reaps, 3);
	ck_assert_uint_eq(stats().lease_aborts + stats().lease_finishes, 0);
	ck_assert_int_eq(kvr_owner_reap(k, 2, 7, &at, NULL), KVR_OK);
	ck_assert_int_eq(kvr_lease_abort(k, other, 8, 0), KVR_ELEASE);
	ck_tree("ab:0");
}
END_TEST

/* -------------------------------------------------- concurrent changes --- */

/* Others fork from the path, or end on it, at each of its blocks. */
START_TEST(survives_splits)
{
	static const char whole[] = "abcdefgh";
	char text[9];
	uint64_t lease[2];
	size_t at;
	uint32_t i;

	for (at = 1; at < 16; at++) {
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		for (i = 0; i < 2; i++)
			lease[i] = reserve(i, whole, 1);
		commit(lease[0], 1);
		memcpy(text, whole, sizeof(text));
		text[at / 2] = at % 2 == 0 ? 'Z' : '\0';
		if (at > 1)
			observe(2, text, 2);
		ck_load(0, 8, 8, 0, 1);
		ck_load(1, 8, 8, 0, 1);
		extended(lease[0], "abcdefghij", 3);
		ck_load(0, 8, 10, 0, 1);
		finish(lease[0], 4);
		give_up(lease[1], 4);
		ck_load(0, 0, 0, 0, 0);
		ck_load(1, 0, 0, 0, 0);
		say("abcdefghij");
		ck_assert_uint_eq(overlap(0, 4), 10);
		ck_assert_uint_eq(overlap(1, 4), 0);
	}
}
END_TEST

/* The fork is reclaimed again, and the path is merged. */
START_TEST(survives_merges)
{
	uint64_t one, two;

	one = reserve(0, "abcdef", 1);
	observe(1, "abxy", 2);
	two = reserve(0, "abcd", 3);
	ck_tree("ab:0!1(cd:0!(ef:0!) xy:1)");
	ck_assert_int_eq(kvr_worker_remove(k, id[1]), KVR_OK);
	(void)expire(3, 100);
	commit(one, 4);
	ck_tree("abcd:0!(ef:0!)"); /* lease two ends between them */
	ck_load(0, 6, 6, 0, 2);
	commit(two, 5);
	extended(one, "abcdefgh", 6);
	ck_tree("abcd:0!(efgh:0!)");
	give_up(two, 7);
	extended(one, "abcdefghi", 8);
	ck_tree("abcdefghi:0!");
	ck_load(0, 6, 9, 0, 1);
	finish(one, 9);
	ck_tree("abcdefghi:0");
	ck_load(0, 0, 0, 0, 0);
}
END_TEST

/* The worker is removed: the lease keeps its id, and records no more. */
START_TEST(survives_its_worker)
{
	uint64_t lease = reserve(0, "abcd", 1);

	commit(lease, 1);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_tree("abcd:-!");
	ck_load(0, 0, 0, 0, 0);
	ck_assert_int_eq(kvr_lease_commit(k, lease, 2, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_first_token(k, lease, 3, 0), KVR_OK);
	extended(lease, "abcdef", 4);
	ck_assert_int_eq(kvr_lease_output(k, lease, 2, 4, 0), KVR_OK);
	ck_tree("abcd:-!");
	ck_assert_uint_eq(overlap(0, 4), 0);
	observe(0, "abcdef", 5);
	finish(lease, 6);
	(void)expire(6, 100);
	ck_tree("abcd:4(ef:4)"); /* its new slot */
	observe(0, "abcdef", 7);
	ck_tree("abcdef:4");
}
END_TEST

Suite *suite_lease(void);

Suite *
suite_lease(void)
{
	Suite *s = suite_create("lease");
	TCase *t = small_case(s, "life");

	tcase_add_test(t, shared_blocks_count_once);
	tcase_add_test(t, request_flags);
	tcase_add_test(t, extend_where_others_are);
	tcase_add_test(t, extend_more_than_there_is);
	tcase_add_loop_test(t, opened_at_no_time, 0, 3);
	tcase_add_test(t, extend_beside_a_twin);
	tcase_add_test(t, reserve_stamps_nothing);
	tcase_add_test(t, pinned_among_the_due);
	tcase_add_test(t, confirmed_among_the_due);
	tcase_add_test(t, survives_splits);
	tcase_add_test(t, survives_merges);
	tcase_add_test(t, survives_its_worker);
	t = tcase_create("own region");
	tcase_add_test(t, longer_than_recorded);
	tcase_add_test(t, no_longer_than_a_run);
	tcase_add_test(t, partial_blocks);
	tcase_add_test(t, no_whole_block);
	suite_add_tcase(s, t);
	t = tcase_create("reaping");
	tcase_add_checked_fixture(t, limited_setup, region_end);
	tcase_add_test(t, reaped_by_age);
	tcase_add_test(t, a_live_request_of_days_is_load);
	tcase_add_test(t, reaped_by_owner);
	tcase_add_test(t, owners_are_told);
	suite_add_tcase(s, t);
	return s;
}
