/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_retain.c - choice and time of evictions.
 *
 * A full region as a whole is test_memory.c's. Here one entry is evicted at a
 * time.
 */
#include "retain.h"

#include "inner.h"

static void
ck_left(uint64_t voided, uint64_t expired, uint64_t evicted)
{
	struct kvr_stats s = stats();

	ck_assert_uint_eq(s.orphaned, voided);
	ck_assert_uint_eq(s.expired, expired);
	ck_assert_uint_eq(s.evicted_region, evicted);
}

static int64_t
next_expiry(void)
{
	int64_t due;

	ck_assert_int_eq(kvr_next_expiry(k, &due), KVR_OK);
	return due;
}

/* Room for one cell more than is free: one entry must be evicted. */
static void
evict_one(int64_t now)
{
	uint64_t entries = k->region->counts.entries;

	retain_make_room(k, now, k->region->free_cells + 1);
	ck_assert_uint_eq(k->region->counts.entries, entries - 1);
}

/* --------------------------------------------------- order of eviction --- */

START_TEST(void_then_due_then_oldest)
{
	observe(0, "aa", 10);
	observe(1, "bb", 20);
	observe(2, "cc", 30);
	observe(0, "dd", 40);
	observe(3, "ee", 50);
	ck_assert_int_eq(kvr_worker_remove(k, id[3]), KVR_OK);
	ck_tree("aa:0 bb:1 cc:2 dd:0 ee:-");
	ck_assert_uint_eq(expire(20 + TTL, 1), 1);
	ck_tree("aa:0 bb:1 cc:2 dd:0");
	ck_left(1, 0, 0);
	ck_assert_uint_eq(expire(20 + TTL, 1), 1);
	ck_tree("bb:1 cc:2 dd:0");
	ck_left(1, 1, 0);
	ck_assert_uint_eq(expire(20 + TTL, 1), 0);
	ck_tree("cc:2 dd:0");
	ck_left(1, 2, 0);
	ck_assert_uint_eq(expire(20 + TTL, 100), 0);
	ck_left(1, 2, 0);
	evict_one(20 + TTL);
	ck_tree("dd:0");
	ck_left(1, 2, 1);
	/* an entry that is due anyway was not evicted for lack of room */
	evict_one(40 + TTL);
	ck_tree("");
	ck_left(1, 3, 1);
}
END_TEST

/* However long it lasts, and also if it never ends: the oldest goes first. */
START_TEST(endless_then_oldest)
{
	static const int64_t ttls[] = { KVR_TTL_ENDLESS, INT64_MAX,
	    INT64_MAX / 2, INT64_MAX / 2 + 1, INT64_MAX / 2 + 2 };
	struct kvr_options o = small_options();

	region_end();
	o.ttl_ns = ttls[_i];
	region_of(&o);
	observe(2, "aa", 10);
	observe(0, "bb", 20);
	observe(1, "cc", 30);
	observe(0, "dd", 40);
	evict_one(50);
	ck_tree("bb:0 cc:1 dd:0");
	evict_one(50);
	ck_tree("cc:1 dd:0");
	evict_one(50);
	ck_tree("dd:0");
}
END_TEST

START_TEST(refreshed_is_younger)
{
	observe(0, "aa", 1);
	observe(1, "bb", 2);
	observe(2, "cc", 3);
	observe(0, "aa", 4);
	observe(1, "bbx", 5);
	evict_one(5);
	ck_tree("aa:0 bbx:1");
	(void)reserve(0, "dd", 6); /* pins do not change an age */
	evict_one(6);
	ck_tree("bbx:1 dd:0!");
	evict_one(6);
	ck_tree("dd:0!");
}
END_TEST

/* At one instant, one at a time: no entry is left without its parent. */
START_TEST(children_before_parents)
{
	observe(0, "abcdef", 1);
	observe(0, "abcdgh", 1);
	observe(0, "abij", 1);
	ck_tree("ab:0(cd:0(ef:0 gh:0) ij:0)");
	ck_assert_uint_eq(expire(1 + TTL, 1), 1);
	ck_tree("ab:0(cd:0(gh:0) ij:0)");
	ck_assert_uint_eq(expire(1 + TTL, 1), 1);
	ck_tree("ab:0(cd:0 ij:0)");
	ck_assert_uint_eq(expire(1 + TTL, 1), 1);
	ck_tree("ab:0(ij:0)");
	ck_assert_uint_eq(expire(1 + TTL, 1), 1);
	ck_tree("ab:0");
	ck_assert_uint_eq(expire(1 + TTL, 1), 0);
	ck_tree("");
	ck_left(0, 5, 0);
}
END_TEST

START_TEST(due_to_the_nanosecond)
{
	ck_assert_int_eq(next_expiry(), INT64_MAX);
	observe(0, "ab", 100);
	observe(1, "ab", 101);
	ck_assert_int_eq(next_expiry(), 100 + TTL);
	ck_assert_uint_eq(expire(100 + TTL - 1, 9), 0);
	ck_tree("ab:01");
	ck_assert_uint_eq(overlap(0, 100 + TTL - 1), 2);
	ck_assert_uint_eq(overlap(0, 100 + TTL), 0);
	ck_assert_uint_eq(expire(100 + TTL, 9), 0);
	ck_tree("ab:1");
	ck_assert_int_eq(next_expiry(), 101 + TTL);
	ck_assert_uint_eq(expire(101 + TTL, 9), 0);
	ck_assert_int_eq(next_expiry(), INT64_MAX);
}
END_TEST

/* kvr_expire has work to do, so it is not "never". */
START_TEST(orphans_are_due_at_once)
{
	observe(0, "ab", 100);
	observe(0, "xy", 100);
	ck_assert_int_eq(kvr_worker_remove(k, id[0]), KVR_OK);
	ck_assert_int_eq(next_expiry(), 100);
	ck_assert_uint_eq(expire(200, 1), 1);
	ck_assert_int_eq(next_expiry(), 200);
	ck_assert_uint_eq(expire(300, 1), 0);
	ck_assert_int_eq(next_expiry(), INT64_MAX);
}
END_TEST

/* ------------------------------------------------------------- budgets --- */

static void
observe_many(uint32_t n, int64_t now)
{
	char text[2] = { 'A', '\0' };

	for (; n > 0; n--, text[0]++)
		observe(n % WORKERS, text, now);
}

START_TEST(budget_is_kept)
{
	uint32_t left;

	observe_many(30, 1);
	ck_assert_uint_eq(expire(1 + TTL, 0), 1);
	ck_assert_uint_eq(stats().entries, 30);
	for (left = 30; left > 7; left -= 7) {
		ck_assert_uint_eq(expire(1 + TTL, 7), 1);
		ck_assert_uint_eq(stats().entries, left - 7);
	}
	ck_assert_uint_eq(expire(1 + TTL, left), 0);
	ck_assert_uint_eq(stats().entries, 0);
}
END_TEST

/* Other calls reclaim too, a little each. */
START_TEST(housekeeping)
{
	observe_many(30, 1);
	observe(0, "z", 1 + TTL);
	ck_assert_uint_eq(stats().entries, 30 + 1 - 8);
	observe(0, "z", 1 + TTL);
	ck_assert_uint_eq(stats().entries, 30 + 1 - 16);
	(void)overlap(0, 1 + TTL); /* reading changes nothing */
	ck_assert_uint_eq(stats().entries, 30 + 1 - 16);
	ck_left(0, 16, 0);
}
END_TEST

/* ---------------------------------------------------------------- pins --- */

/* Due while it was pinned: it goes with the pin. */
START_TEST(turn_came_while_pinned)
{
	uint64_t lease = reserve(0, "abcd", 1);

	commit(lease, 1);
	ck_assert_int_eq(next_expiry(), 1 + TTL);
	ck_assert_uint_eq(expire(1 + TTL, 100), 0);
	ck_tree("abcd:0!");
	ck_assert_int_eq(next_expiry(), INT64_MAX);
	ck_assert_uint_eq(overlap(0, 1 + 2 * TTL), 4);
	give_up(lease, 1 + 2 * TTL);
	ck_tree("");
}
END_TEST

/* ... unless it is stamped before: then it is as young as any. */
START_TEST(stamped_after_its_turn)
{
	uint64_t lease = reserve(0, "abcd", 1);

	commit(lease, 1);
	ck_assert_uint_eq(expire(1 + TTL, 100), 0);
	observe(0, "ab", 2 + TTL);
	ck_tree("ab:0!(cd:0!)");
	ck_assert_int_eq(next_expiry(), 2 + 2 * TTL);
	give_up(lease, 3 + TTL);
	ck_tree("ab:0");
	lease = reserve(0, "abxy", 4 + TTL);
	ck_assert_uint_eq(expire(2 + 2 * TTL, 100), 0);
	ck_tree("ab:0!(xy:0!)");
	finish(lease, 3 + 2 * TTL);
	ck_tree("abxy:0");
	ck_assert_int_eq(next_expiry(), 3 + 3 * TTL);
}
END_TEST

START_TEST(pins_stay_when_room_is_short)
{
	uint64_t lease;

	observe(0, "abcd", 1);
	lease = reserve(1, "abxy", 2);
	observe(2, "mn", 3);
	ck_tree("ab:01!(cd:0 xy:1!) mn:2");
	retain_make_room(k, 3, UINT32_MAX);
	ck_tree("ab:1!(xy:1!)");
	ck_left(0, 0, 2);
	finish(lease, 4);
	ck_tree("abxy:1");
	retain_make_room(k, 4, UINT32_MAX);
	ck_tree("");
	ck_assert_uint_eq(stats().cells_free, stats().cells - 1);
}
END_TEST

/* A retired worker's pins stay too; each entry goes with its last pin. */
START_TEST(void_and_pinned)
{
	uint64_t lease = reserve(0, "abcd", 1);

	commit(lease, 1);
	observe(0, "mn", 2);
	ck_assert_int_eq(kvr_worker_remove(k, id[0]), KVR_OK);
	ck_assert_uint_eq(stats().entries, 0); /* not counted any more */
	ck_assert_uint_eq(expire(2, 100), 0);
	ck_tree("abcd:-!");
	ck_left(1, 0, 0);
	finish(lease, 3);
	ck_tree("");
}
END_TEST

enum { STEPS = 4000, OPEN = 12 };

/* The same at every step of a region that is always full. */
START_TEST(always_full)
{
	uint64_t steps = test_amount(STEPS), lease[OPEN] = { 0 };
	struct kvr_options o = small_options();
	uint32_t i;

	by_chance();
	o.region_bytes = 24 << 10;
	o.ttl_ns = KVR_TTL_ENDLESS;
	region_of(&o);
	for (; steps > 0; steps--) {
		int64_t now = (int64_t)(STEPS - steps);

		i = pick(OPEN);
		say_by_chance();
		if (pick(2) == 0) {
			(void)observed(pick(WORKERS), now);
		} else if (lease[i] == 0) {
			lease[i] = reserved(pick(WORKERS), now);
		} else {
			if (pick(2) == 0)
				commit(lease[i], now);
			if (pick(2) == 0)
				finish(lease[i], now);
			else
				give_up(lease[i], now);
			lease[i] = 0;
		}
		must(kvr_check(k) == KVR_OK);
		must(cell_0_is_blank());
	}
	ck_assert_uint_gt(stats().evicted_region, 0);
	ck_assert_uint_gt(stats().truncated, 0);
	region_end();
}
END_TEST

/* A full region evicts the oldest stamp, whatever its TTL. */
START_TEST(nobody_starves)
{
	struct kvr_options o = small_options();
	struct kvr_worker facts;
	uint64_t one, other;
	uint32_t i;

	o.ttl_ns = INT64_C(120) * 1000000000;
	region_of(&o);
	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.capacity_tokens = 1 << 30;
	ck_assert_int_eq(kvr_worker_set(k, id[1], &facts), KVR_OK);
	for (i = 0; i < 5000; i++) {
		say_long(100, 0, i);
		(void)observed(i % 2, 1 + i);
	}
	ck_assert_uint_gt(stats().evicted_region, 1000);
	ck_assert_uint_eq(stats().expired, 0);
	one = worker_stats(0).entries;
	other = worker_stats(1).entries;
	ck_assert(one <= other + 1 && other <= one + 1 && one > 10);
	/* and back: equal TTLs, then not */
	facts.retain = KVR_RETAIN_TTL;
	ck_assert_int_eq(kvr_worker_set(k, id[1], &facts), KVR_OK);
	for (; i < 6000; i++) {
		say_long(100, 0, i);
		(void)observed(i % 2, 1 + i);
	}
	facts.retain = KVR_RETAIN_AUTO;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	for (; i < 7000; i++) {
		say_long(100, 0, i);
		(void)observed(i % 2, 1 + i);
	}
	one = worker_stats(0).entries;
	other = worker_stats(1).entries;
	ck_assert(one <= other + 1 && other <= one + 1 && one > 10);
	region_end();
}
END_TEST

/*
 * More pinned entries than keep their places: the first of them leaves, not one
 * whose child stays. Whatever the number, the region is sound.
 */
START_TEST(more_pinned_than_are_passed_over)
{
	enum { WAITING = 64 };
	struct kvr_options o = small_options();
	uint32_t token[3], n, i;
	struct kvr_worker facts;
	uint64_t lease[WAITING + 3];

	kvr_prompt_free(p);
	kvr_free(k);
	o.ttl_ns = 1000000;
	region_of(&o);
	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.retain = KVR_RETAIN_CAPACITY;
	for (n = WAITING - 3; n < WAITING + 3; n++) {
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		facts.capacity_tokens = 1 << 20;
		ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
		observe(1, "abc", 1);
		for (i = 0; i < n; i++) {
			token[0] = 1000 + i;
			ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, token,
			    1), KVR_OK);
			ck_assert_uint_eq(observed(0, 2), 1);
		}
		observe(0, "abd", 3);
		for (i = 0; i < n; i++) {
			token[0] = 1000 + i;
			ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, token,
			    1), KVR_OK);
			lease[i] = reserved(0, 4);
		}
		lease[n] = reserve(0, "abd", 4);
		facts.capacity_tokens = n + 2;
		ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
		give_up(lease[n], 5);
		region_sound();
		ck_assert_int_eq(kvr_worker_reset(k, id[1], &id[1]), KVR_OK);
		ck_assert_uint_eq(expire(5, 1000), 0);
		region_sound();
		for (i = 0; i < n; i++)
			give_up(lease[i], 6);
		region_sound();
	}
}
END_TEST

Suite *suite_retain(void);

Suite *
suite_retain(void)
{
	Suite *s = suite_create("retain");
	TCase *fair = tcase_create("fair");
	TCase *t = small_case(s, "leave");

	suite_add_tcase(s, fair);
	tcase_add_test(fair, nobody_starves);
	tcase_add_test(t, void_then_due_then_oldest);
	tcase_add_loop_test(t, endless_then_oldest, 0, 5);
	tcase_add_test(t, refreshed_is_younger);
	tcase_add_test(t, children_before_parents);
	tcase_add_test(t, due_to_the_nanosecond);
	tcase_add_test(t, orphans_are_due_at_once);
	tcase_add_test(t, budget_is_kept);
	tcase_add_test(t, housekeeping);
	tcase_add_test(t, turn_came_while_pinned);
	tcase_add_test(t, stamped_after_its_turn);
	tcase_add_test(t, pins_stay_when_room_is_short);
	tcase_add_test(t, more_pinned_than_are_passed_over);
	tcase_add_test(t, void_and_pinned);
	t = tcase_create("full");
	tcase_add_test(t, always_full);
	suite_add_tcase(s, t);
	return s;
}
