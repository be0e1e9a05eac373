/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_capacity.c - the shadow of an engine's cache, one step at a time.
 *
 * A block is one token, so a capacity of 6 tokens has room for "abcdef". The
 * drawing shows whole runs; the rest of a trimmed run shows in the overlap.
 * The comparison with a model, in any order, is test_model.c's.
 */
#include "inner.h"

static void
set_facts(uint32_t worker, uint32_t retain, uint64_t capacity,
    uint32_t eviction)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.retain = retain;
	f.capacity_tokens = capacity;
	f.eviction = eviction;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

static void
roomy(uint32_t worker, uint64_t capacity)
{
	set_facts(worker, KVR_RETAIN_AUTO, capacity, KVR_EVICT_RELEASED);
}

static void
leafy(uint32_t worker, uint64_t capacity)
{
	set_facts(worker, KVR_RETAIN_AUTO, capacity, KVR_EVICT_LEAF);
}

static void
ck_has(uint32_t worker, const char *text, uint32_t blocks)
{
	region_sound();
	say(text);
	ck_assert_uint_eq(overlap(worker, k->region->clock), blocks);
}

static uint64_t
anonymous(uint32_t worker)
{
	return slot_at(k, worker)->anonymous;
}

/* Finishes the lease with this many output tokens. */
static void
answered(uint64_t lease, uint64_t tokens, int64_t now)
{
	struct kvr_report r = { .size = sizeof(r) };

	r.completion_tokens = tokens;
	ck_assert_int_eq(kvr_lease_finish(k, lease, &r, now, 0), KVR_OK);
}

/* ----------------------------------------------- whole entries evicted --- */

START_TEST(oldest_leaves_from_its_end)
{
	roomy(0, 6);
	observe(0, "abcd", 1);
	observe(0, "xy", 2);
	ck_has(0, "abcd", 4);
	observe(0, "m", 3);
	ck_has(0, "abcd", 3);
	ck_has(0, "abcdef", 3);
	ck_has(0, "ab", 2);
	ck_has(0, "abx", 2);
	observe(0, "n", 4);
	ck_has(0, "abcd", 2);
	observe(0, "opq", 5);
	ck_has(0, "abcd", 0);
	ck_has(0, "xy", 1);
	ck_assert_uint_eq(worker_stats(0).held_blocks, 6);
	ck_assert_uint_eq(stats().evicted_capacity, 1);
}
END_TEST

/* A prompt used again is evicted last. */
START_TEST(used_again_is_young)
{
	roomy(0, 6);
	observe(0, "abcd", 1);
	observe(0, "xy", 2);
	observe(0, "ab", 3);
	observe(0, "mn", 4);
	ck_has(0, "abcd", 2);
	ck_has(0, "xy", 2);
	observe(0, "o", 5);
	ck_has(0, "xy", 1);
	ck_has(0, "ab", 2);
}
END_TEST

/* A single prompt may exceed the capacity. */
START_TEST(more_than_fits)
{
	roomy(0, 3);
	observe(0, "abcdef", 1);
	ck_has(0, "abcdef", 3);
	ck_assert_uint_eq(worker_stats(0).held_blocks, 3);
}
END_TEST

START_TEST(pinned_stays)
{
	uint64_t lease;

	roomy(0, 6);
	observe(0, "xy", 1);
	lease = reserve(0, "abcdefgh", 2);
	ck_has(0, "abcdefgh", 8);
	ck_has(0, "xy", 0);
	finish(lease, 3);
	ck_has(0, "abcdefgh", 6);
}
END_TEST

/* Others that hold the same run lose nothing. */
START_TEST(others_keep_theirs)
{
	roomy(0, 4);
	observe(1, "abcdef", 1);
	observe(0, "abcdef", 2);
	ck_has(0, "abcdef", 4);
	ck_has(1, "abcdef", 6);
	ck_assert_uint_eq(worker_stats(1).held_blocks, 6);
}
END_TEST

/* The TTL does not matter here; the idle limit does. */
START_TEST(lives_longer_than_the_ttl)
{
	const int64_t limit = INT64_C(86400) * 1000000000;

	roomy(0, 10);
	observe(0, "ab", 1);
	observe(1, "ab", 1);
	say("ab");
	ck_assert_uint_eq(overlap(0, 1 + 5 * TTL), 2);
	ck_assert_uint_eq(overlap(1, 1 + 5 * TTL), 0);
	ck_assert_uint_eq(overlap(0, limit), 2);
	ck_assert_uint_eq(overlap(0, 1 + limit), 0);
}
END_TEST

START_TEST(room_shrinks_and_grows)
{
	roomy(0, 10);
	observe(0, "abcdef", 1);
	observe(0, "xyz", 2);
	roomy(0, 4);
	ck_has(0, "abcdef", 1);
	ck_has(0, "xyz", 3);
	roomy(0, 8);
	ck_has(0, "abcdef", 1);
	observe(0, "abcdef", 3);
	ck_has(0, "abcdef", 6);
	ck_has(0, "xyz", 2);
}
END_TEST

/* ------------------------------------------------------------ trimmed --- */

/*
 * Blocks that were evicted and requested again have never been computed if the
 * second request comes to nothing.
 */
START_TEST(trimmed_and_given_up)
{
	uint64_t lease;

	roomy(0, 6);
	observe(0, "abcd", 1);
	observe(0, "xyz", 2);
	ck_has(0, "abcd", 3);
	roomy(0, 100);
	lease = reserve(0, "abcd", 3);
	ck_has(0, "abcd", 4);
	give_up(lease, 4);
	ck_has(0, "abcd", 3);
	lease = reserve(0, "abcdef", 5);
	ck_has(0, "abcdef", 6);
	give_up(lease, 6);
	ck_has(0, "abcdef", 3);
	ck_assert_uint_eq(worker_stats(0).held_blocks, 6);
}
END_TEST

/*
 * A prompt that is requested and never dispatched keeps its place among the
 * idle: it was released first, so it leaves first.
 */
START_TEST(given_up_before_it_was_sent)
{
	uint64_t one, two;

	roomy(0, 10);
	observe(0, "abcd", 1);
	observe(0, "wxyz", 2);
	give_up(reserve(0, "abcd", 3), 3);
	observe(0, "mnop", 4);
	ck_has(0, "abcd", 2);
	ck_has(0, "wxyz", 4);
	/* also if others have passed it over meanwhile */
	one = reserve(0, "ab", 5);
	two = reserve(0, "abw", 5);
	observe(0, "qr", 6);
	ck_has(0, "wxyz", 1);
	give_up(one, 7);
	give_up(two, 7);
	observe(0, "kl", 8);
	ck_has(0, "abcd", 1);
	ck_has(0, "wxyz", 1);
	/* one that was dispatched has been used */
	one = reserve(0, "w", 9);
	commit(one, 9);
	give_up(one, 9);
	observe(0, "tu", 10);
	ck_has(0, "abcd", 0);
	ck_has(0, "w", 1);
}
END_TEST

/*
 * More requests than a call passes over are open and not sent; all pin the
 * prompt that was released first.
 */
START_TEST(many_opened_before_they_are_sent)
{
	enum { MANY = 200 };
	uint64_t lease[MANY];
	char text[2] = { 0, 0 };
	uint32_t i;

	roomy(0, MANY + 4);
	for (i = 0; i < MANY; i++) {
		text[0] = (char)(i + 1);
		observe(0, text, 1);
	}
	observe(0, (char[]){ (char)250, (char)251, (char)252, (char)253, 0 },
	    2);
	for (i = 0; i < MANY; i++) {
		text[0] = (char)(i + 1);
		lease[i] = reserve(0, text, 3);
	}
	observe(0, (char[]){ (char)240, (char)241, (char)242, (char)243, 0 },
	    4);
	region_sound();
	ck_assert_uint_eq(worker_stats(0).held_blocks, MANY + 4);
	ck_assert_uint_le(stats().max_reclaimed, MANY + 8);
	for (i = 0; i < MANY; i++) {
		if (i % 2 != 0)
			commit(lease[i], 5);
		give_up(lease[i], 5);
	}
	/* those that had to leave their places are gone if not used */
	region_sound();
	ck_assert_uint_ge(worker_stats(0).held_blocks, MANY / 2 + 4);
	ck_assert_uint_lt(worker_stats(0).held_blocks, MANY + 4);
}
END_TEST

START_TEST(trimmed_and_finished)
{
	uint64_t lease;

	roomy(0, 6);
	observe(0, "abcd", 1);
	observe(0, "xyz", 2);
	roomy(0, 100);
	lease = reserve(0, "abcd", 3);
	commit(lease, 3);
	give_up(lease, 4);
	ck_has(0, "abcd", 4);
}
END_TEST

/* Two hold it again: the first gives up, the second finishes; and back. */
START_TEST(trimmed_and_shared)
{
	uint64_t one, two;
	uint32_t order;

	for (order = 0; order < 2; order++) {
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		roomy(0, 6);
		observe(0, "abcd", 1);
		observe(0, "xyz", 2);
		roomy(0, 100);
		one = reserve(0, "abcd", 3);
		two = reserve(0, "abcdef", 4);
		ck_has(0, "abcdef", 6);
		if (order == 0)
			commit(two, 5);
		give_up(one, 5);
		ck_has(0, "abcdef", 6);
		give_up(two, 6);
		ck_has(0, "abcdef", order == 0 ? 6 : 3);
	}
}
END_TEST

/* Split where it was trimmed, above, below, by the worker that lost its end. */
START_TEST(trimmed_and_split)
{
	static const char *const with[] = { "abcdefxx", "abcxx", "abxx",
	    "abcdxx", "xx", "abc", "abcdef", "a" };
	uint32_t i, other;

	for (i = 0; i < 16; i++) {
		other = i % 2;
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		roomy(0, 6);
		observe(0, "abcdef", 1);
		observe(0, "xyz", 2);
		ck_has(0, "abcdef", 3);
		roomy(0, 100);
		observe(other, with[i / 2], 3);
		say("abcdef");
		if (other == 1)
			ck_has(0, "abcdef", 3);
		ck_has(other, with[i / 2], (uint32_t)strlen(with[i / 2]));
	}
}
END_TEST

/* A leaf that lost its end grows: the prompt extending it has all of it. */
START_TEST(trimmed_and_extended)
{
	roomy(0, 6);
	observe(0, "abcd", 1);
	observe(0, "xyz", 2);
	ck_has(0, "abcd", 3);
	roomy(0, 100);
	observe(0, "abcdefg", 3);
	ck_has(0, "abcdefg", 7);
	ck_assert_uint_eq(worker_stats(0).held_blocks, 10);
	ck_tree("abcdefg:0 xyz:0");
}
END_TEST

/* ------------------------------------------------------------- outputs --- */

/* Outputs take room, and are evicted before the prompt they extend. */
START_TEST(answers_take_room)
{
	uint32_t leaf;

	for (leaf = 0; leaf < 2; leaf++) {
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		set_facts(0, KVR_RETAIN_AUTO, 6, leaf);
		answered(reserve(0, "abcd", 1), 2, 2);
		ck_assert_uint_eq(anonymous(0), 2);
		observe(0, "x", 3);
		ck_has(0, "abcd", 4);
		ck_assert_uint_eq(anonymous(0), leaf == 1 ? 0 : 1);
		observe(0, "y", 4);
		ck_has(0, "abcd", 4);
		ck_assert_uint_eq(anonymous(0), 0);
		observe(0, "z", 5);
		ck_has(0, "abcd", leaf == 1 ? 0 : 3);
	}
}
END_TEST

/* An engine's reports of its outputs evict nothing of another's. */
START_TEST(absurd_answers)
{
	static const uint64_t tokens[] = { 1000, 1000000, UINT32_MAX - 1,
	    UINT32_MAX, UINT64_MAX, UINT64_MAX / 2 };
	uint64_t lease;
	uint32_t i;

	for (i = 0; i < 6; i++) {
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		roomy(0, 20);
		roomy(1, 20);
		observe(1, "abcdef", 1);
		observe(1, "ghij", 1);
		answered(reserve(0, "mnop", 2), tokens[i], 2);
		ck_has(0, "mnop", 4);
		lease = reserve(1, "x", 3);
		ck_has(1, "abcdef", 6);
		ck_has(1, "ghij", 4);
		give_up(lease, 4);
	}
}
END_TEST

/* The largest capacity, and an output just as large. */
START_TEST(absurd_capacity)
{
	roomy(0, UINT64_MAX);
	answered(reserve(0, "mnop", 1), UINT64_MAX - 4, 2);
	ck_has(0, "mnop", 4);
	answered(reserve(0, "m", 3), UINT64_MAX - 1, 4);
	ck_has(0, "mnop", 4);
	ck_assert_uint_eq(anonymous(1), 0);
}
END_TEST

START_TEST(absurd_output)
{
	uint64_t lease;

	roomy(0, 20);
	observe(1, "abcdef", 1);
	lease = reserve(0, "mnop", 2);
	ck_assert_int_eq(kvr_lease_output(k, lease, UINT32_MAX, 3, 0),
	    KVR_OK);
	ck_assert_int_eq(kvr_lease_output(k, lease, UINT32_MAX, 3, 0),
	    KVR_OK);
	region_sound();
	finish(lease, 4);
	ck_has(1, "abcdef", 6);
	ck_has(0, "mnop", 4);
}
END_TEST

/* -------------------------------------------------------------- leaves --- */

/* The last use decides, not the last release: a request runs for long. */
START_TEST(leaves_by_last_use)
{
	uint64_t lease;
	uint32_t leaf;

	for (leaf = 0; leaf < 2; leaf++) {
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		set_facts(0, KVR_RETAIN_AUTO, 5, leaf);
		lease = reserve(0, "ab", leaf * 10 + 1);
		commit(lease, leaf * 10 + 1);
		observe(0, "xy", leaf * 10 + 2);
		/* failed after dispatch: not used since */
		give_up(lease, leaf * 10 + 3);
		observe(0, "mn", leaf * 10 + 4);
		ck_has(0, "ab", leaf == 1 ? 0 : 2);
		ck_has(0, "xy", leaf == 1 ? 2 : 1);
	}
}
END_TEST

START_TEST(leaf_passes_over_the_pinned)
{
	uint64_t lease;

	leafy(0, 6);
	lease = reserve(0, "ab", 1);
	commit(lease, 1);
	observe(0, "cd", 2);
	observe(0, "efg", 3);
	ck_has(0, "ab", 2);
	ck_has(0, "cd", 0);
	finish(lease, 4);
	observe(0, "hijk", 5);
	ck_has(0, "efg", 0);
	ck_has(0, "ab", 2);
}
END_TEST

Suite *suite_capacity(void);

Suite *
suite_capacity(void)
{
	Suite *s = suite_create("capacity");
	TCase *t = small_case(s, "whole");

	tcase_add_test(t, oldest_leaves_from_its_end);
	tcase_add_test(t, used_again_is_young);
	tcase_add_test(t, more_than_fits);
	tcase_add_test(t, pinned_stays);
	tcase_add_test(t, others_keep_theirs);
	tcase_add_test(t, lives_longer_than_the_ttl);
	tcase_add_test(t, room_shrinks_and_grows);
	t = small_case(s, "trimmed");
	tcase_add_test(t, trimmed_and_given_up);
	tcase_add_test(t, given_up_before_it_was_sent);
	tcase_add_test(t, many_opened_before_they_are_sent);
	tcase_add_test(t, trimmed_and_finished);
	tcase_add_test(t, trimmed_and_shared);
	tcase_add_test(t, trimmed_and_split);
	tcase_add_test(t, trimmed_and_extended);
	t = small_case(s, "answers");
	tcase_add_test(t, answers_take_room);
	tcase_add_test(t, absurd_answers);
	tcase_add_test(t, absurd_capacity);
	tcase_add_test(t, absurd_output);
	t = small_case(s, "leaves");
	tcase_add_test(t, leaves_by_last_use);
	tcase_add_test(t, leaf_passes_over_the_pinned);
	return s;
}
