/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_affinity.c - the table of sessions: places, lives, tokens, damage.
 */
#include "affinity.h"

#include "id.h"
#include "worker.h"

#include "inner.h"

#define SECOND INT64_C(1000000000)
enum { PLACES = 16, TTL_MS = 10000 };

static void
table_of(uint32_t places, int64_t ttl)
{
	struct kvr_options o = small_options();

	o.affinity_entries = places;
	o.ttl_ns = ttl;
	region_of(&o);
	k->region->clock = 1000 * SECOND;
}

static void
setup(void)
{
	table_of(PLACES, 120 * SECOND);
}

static void
end(void)
{
	forget_idle();
	region_end();
}

static void
bind(uint64_t digest, uint32_t slot, uint64_t tokens, int64_t now)
{
	const struct affinity_use use = { digest, tokens, slot, TTL_MS };

	affinity_bind(k, &use, now);
}

static void
refresh(uint64_t digest, uint32_t slot, uint64_t tokens, int64_t now)
{
	const struct affinity_use use = { digest, tokens, slot, TTL_MS };

	affinity_refresh(k, &use, now);
}

static struct binding
look(uint64_t digest, int64_t now)
{
	struct binding b = { 0 };

	if (!affinity_look(k, digest, now, &b))
		memset(&b, 0, sizeof(b));
	return b;
}

static struct binding *
place(uint64_t digest)
{
	uint32_t i;

	for (i = 0; i < k->layout.bindings; i++)
		if (k->bindings[i].digest == digest)
			return &k->bindings[i];
	ck_abort_msg("no place of %" PRIu64, digest);
}

START_TEST(a_ttl_is_rounded_up)
{
	ck_assert_uint_eq(affinity_ttl_ms(0), 600000);
	ck_assert_uint_eq(affinity_ttl_ms(1), 1);
	ck_assert_uint_eq(affinity_ttl_ms(1000000), 1);
	ck_assert_uint_eq(affinity_ttl_ms(1000001), 2);
	ck_assert_uint_eq(affinity_ttl_ms(AFFINITY_TTL_MAX), 2592000000);
	ck_assert(affinity_ttl_ok(AFFINITY_TTL_MAX));
	ck_assert(!affinity_ttl_ok(AFFINITY_TTL_MAX + 1));
	ck_assert(!affinity_ttl_ok(-1));
}
END_TEST

START_TEST(binds_and_finds)
{
	struct binding b;

	ck_assert_uint_eq(look(7, SECOND).digest, 0);
	bind(7, 2, 500, SECOND);
	b = look(7, 2 * SECOND);
	ck_assert_uint_eq(b.worker, id[2]);
	ck_assert_uint_eq(b.tokens, 500);
	ck_assert_int_eq(b.stamp, SECOND);
	ck_assert(affinity_found(&b) == 1);
	ck_assert_uint_eq(look(8, SECOND).digest, 0);
	ck_assert_uint_eq(stats().affinity_bindings, 1);
	ck_assert_uint_eq(stats().affinity_entries, PLACES);
}
END_TEST

/* Each use counts anew; at the very end it is over. */
START_TEST(lives_since_its_last_use)
{
	bind(7, 2, 500, SECOND);
	ck_assert_uint_eq(look(7, 11 * SECOND - 1).digest, 7);
	ck_assert_uint_eq(look(7, 11 * SECOND).digest, 0);
	refresh(7, 2, 500, 5 * SECOND);
	ck_assert_uint_eq(look(7, 15 * SECOND - 1).digest, 7);
	ck_assert_uint_eq(look(7, 15 * SECOND).digest, 0);
	/* before it was made there is none */
	ck_assert_uint_eq(look(7, 4 * SECOND).digest, 0);
}
END_TEST

/* The longest prompt counts, not the latest. */
START_TEST(short_prompts_do_not_shorten)
{
	bind(7, 2, 500, SECOND);
	bind(7, 2, 20, 2 * SECOND);
	ck_assert_uint_eq(look(7, 2 * SECOND).tokens, 500);
	bind(7, 2, 600, 3 * SECOND);
	ck_assert_uint_eq(look(7, 3 * SECOND).tokens, 600);
	refresh(7, 2, 20, 4 * SECOND);
	ck_assert_uint_eq(look(7, 4 * SECOND).tokens, 600);
	ck_assert_uint_eq(stats().affinity_moved, 0);
}
END_TEST

/* A worker that has lost the long prompt keeps the short one. */
START_TEST(long_prompts_fade)
{
	struct kvr_worker facts;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.capacity_tokens = 1000;
	facts.retain = KVR_RETAIN_CAPACITY;
	worker_set(k, 2, &facts);
	bind(7, 2, 500, SECOND);
	idle_since(2, 1 << 20);
	bind(7, 2, 20, 2 * SECOND);
	ck_assert_uint_eq(look(7, 2 * SECOND).tokens, 20);
}
END_TEST

START_TEST(moves_with_the_later)
{
	bind(7, 2, 500, SECOND);
	bind(7, 3, 20, 2 * SECOND);
	ck_assert_uint_eq(look(7, 2 * SECOND).worker, id[3]);
	ck_assert_uint_eq(look(7, 2 * SECOND).tokens, 20);
	ck_assert_uint_eq(stats().affinity_moved, 1);
	/* the earlier lease goes on, and takes nothing back */
	refresh(7, 2, 500, 3 * SECOND);
	ck_assert_uint_eq(look(7, 3 * SECOND).worker, id[3]);
	ck_assert_int_eq(look(7, 3 * SECOND).stamp, 2 * SECOND);
}
END_TEST

START_TEST(a_refresh_brings_back)
{
	refresh(7, 2, 500, SECOND);
	ck_assert_uint_eq(look(7, SECOND).worker, id[2]);
	refresh(7, 3, 500, 100 * SECOND);
	ck_assert_uint_eq(look(7, 100 * SECOND).worker, id[3]);
	ck_assert_uint_eq(stats().affinity_moved, 0);
}
END_TEST

START_TEST(void_with_its_worker)
{
	uint64_t fresh;
	uint32_t slot;

	bind(7, 2, 500, SECOND);
	bind(8, 3, 500, SECOND);
	ck_assert_int_eq(kvr_worker_forget(k, id[2]), KVR_OK);
	ck_assert(worker_slot(k, look(7, SECOND).worker, &slot));
	ck_assert_int_eq(kvr_worker_reset(k, id[2], &fresh), KVR_OK);
	ck_assert_uint_eq(look(7, SECOND).worker, id[2]);
	ck_assert(!worker_slot(k, look(7, SECOND).worker, &slot));
	remove_worker(id[3]);
	ck_assert(!worker_slot(k, look(8, SECOND).worker, &slot));
	/* a void one does not hold another off, and is not moved */
	refresh(7, 0, 20, 2 * SECOND);
	ck_assert_uint_eq(look(7, 2 * SECOND).worker, id[0]);
	ck_assert_uint_eq(look(7, 2 * SECOND).tokens, 20);
	ck_assert_uint_eq(stats().affinity_moved, 0);
}
END_TEST

/* Free places first, then what is not live, then the oldest. */
START_TEST(the_oldest_leaves)
{
	uint32_t i;

	region_end();
	table_of(1, 120 * SECOND);
	ck_assert_uint_eq(stats().affinity_entries, 8);
	for (i = 1; i <= 8; i++)
		bind(i, i % 2, i, (int64_t)(20 - i) * SECOND);
	ck_assert_uint_eq(stats().affinity_bindings, 8);
	ck_assert_uint_eq(stats().affinity_evicted, 0);
	bind(9, 0, 9, 20 * SECOND);
	ck_assert_uint_eq(look(8, 20 * SECOND).digest, 0);
	ck_assert_uint_eq(look(7, 20 * SECOND).digest, 7);
	ck_assert_uint_eq(stats().affinity_bindings, 8);
	ck_assert_uint_eq(stats().affinity_evicted, 1);
	/* 7 and 5 are older than 4, but 4 has lost its worker */
	remove_worker(id[0]);
	bind(10, 1, 10, 20 * SECOND);
	for (i = 1; i < 8; i += 2)
		ck_assert_uint_eq(look(i, 20 * SECOND).digest, i);
	ck_assert_uint_eq(stats().affinity_evicted, 1);
	/* and nothing here is live any more */
	bind(11, 1, 11, 100 * SECOND);
	ck_assert_uint_eq(stats().affinity_evicted, 1);
}
END_TEST

/* What was bound by hand, without tokens, leaves after all sessions. */
START_TEST(sessions_leave_before_state)
{
	uint32_t i;

	region_end();
	table_of(1, 120 * SECOND);
	for (i = 1; i <= 8; i++)
		bind(i, 1, i == 3 || i == 5 ? i : 0, (int64_t)i * SECOND);
	for (i = 9; i <= 11; i++)
		bind(i, 1, i, 9 * SECOND);
	for (i = 1; i <= 8; i++)
		ck_assert_uint_eq(look(i, 9 * SECOND).digest,
		    i == 3 || i == 5 ? 0 : i);
	/* the session of before goes, and then the oldest of what is left */
	ck_assert_uint_eq(stats().affinity_evicted, 3);
	for (i = 12; i <= 14; i++)
		bind(i, 1, 0, 9 * SECOND);
	ck_assert_uint_eq(look(1, 9 * SECOND).digest, 0);
	ck_assert_uint_eq(look(2, 9 * SECOND).digest, 2);
	ck_assert_uint_eq(look(14, 9 * SECOND).digest, 14);
}
END_TEST

START_TEST(reports_are_averaged)
{
	struct binding b;

	bind(7, 2, 500, SECOND);
	affinity_note(k, 7, 2, 0, SECOND);
	b = look(7, SECOND);
	ck_assert(affinity_found(&b) == 0.5);
	affinity_note(k, 7, 2, 3, SECOND);
	b = look(7, SECOND);
	ck_assert(affinity_found(&b) == 0.75);
	bind(7, 2, 500, SECOND);
	b = look(7, SECOND);
	ck_assert(affinity_found(&b) == 0.75);
	/* that of another worker says nothing */
	affinity_note(k, 7, 1, 0, SECOND);
	b = look(7, SECOND);
	ck_assert(affinity_found(&b) == 0.75);
	/* and another worker has not failed yet */
	bind(7, 1, 500, SECOND);
	b = look(7, SECOND);
	ck_assert(affinity_found(&b) == 1);
}
END_TEST

static double
survival(uint32_t slot, int64_t now)
{
	struct binding b = look(7, now);

	ck_assert_uint_eq(b.digest, 7);
	return affinity_survival(k, slot, &b, now);
}

START_TEST(survival_by_ttl)
{
	region_end();
	table_of(PLACES, 5 * SECOND);
	bind(7, 2, 500, SECOND);
	ck_assert(survival(2, 6 * SECOND - 1) == 1);
	ck_assert(survival(2, 6 * SECOND) == 0);
}
END_TEST

/*
 * Of 100,000 tokens 40,000 are the session's: with 50,000 others it is there,
 * with 75,000 it is not.
 */
START_TEST(survival_by_capacity)
{
	struct kvr_worker facts;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.capacity_tokens = 102400;
	facts.retain = KVR_RETAIN_CAPACITY;
	worker_set(k, 2, &facts);
	bind(7, 2, 40960, SECOND);
	idle_since(2, 40960 + 51200);
	ck_assert(survival(2, SECOND) == 1);
	idle_since(2, 25600);
	ck_assert(survival(2, SECOND) == 0);
}
END_TEST

START_TEST(survival_by_feedback)
{
	struct kvr_worker facts;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.retain = KVR_RETAIN_FEEDBACK;
	worker_set(k, 2, &facts);
	note_age(2, 5000, true, 100000); /* 4871 to 5792 */
	note_age(2, 2000000, false, 100000);
	bind(7, 2, 500, SECOND);
	idle_since(2, 5500);
	ck_assert(survival(2, SECOND) > 0.9);
	idle_since(2, 2048000 - 5500); /* 1763487 to 2097151 */
	ck_assert(survival(2, SECOND) < 0.1);
}
END_TEST

/* The time is kept in 32 bits of 16 blocks: it may go round. */
START_TEST(times_go_round)
{
	struct kvr_worker facts;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.capacity_tokens = 102400;
	facts.retain = KVR_RETAIN_CAPACITY;
	worker_set(k, 2, &facts);
	slot_at(k, 2)->clock = (UINT64_C(1) << 36) - 2048;
	bind(7, 2, 40960, SECOND);
	idle_since(2, 20480);
	ck_assert(survival(2, SECOND) == 1);
	idle_since(2, 102400);
	ck_assert(survival(2, SECOND) == 0);
}
END_TEST

START_TEST(nothing_without_a_table)
{
	region_end();
	table_of(0, 120 * SECOND);
	bind(7, 2, 500, SECOND);
	refresh(7, 2, 500, SECOND);
	affinity_note(k, 7, 2, 0, SECOND);
	ck_assert_uint_eq(look(7, SECOND).digest, 0);
	affinity_empty(k);
	affinity_recover(k);
	ck_assert(affinity_sound(k));
}
END_TEST

/* What no call can have left, field by field. */
static void
damaged(void)
{
	ck_assert(!affinity_sound(k));
	ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
	affinity_recover(k);
	ck_assert(affinity_sound(k));
	ck_assert_uint_eq(stats().affinity_bindings, 1);
	ck_assert_uint_eq(look(8, SECOND).digest, 8);
	ck_assert_uint_eq(look(7, SECOND).digest, 0);
	bind(7, 2, 500, SECOND);
	ck_assert(affinity_sound(k));
}

START_TEST(damage_is_dropped)
{
	struct binding *b;

	bind(8, 3, 500, SECOND);
	bind(7, 2, 500, SECOND);
	ck_assert(affinity_sound(k));
	b = place(7);
	b->stamp = -1;
	damaged();
	b = place(7);
	b->stamp = k->region->clock + 1;
	damaged();
	b = place(7);
	b->worker = id_of_lease(3);
	damaged();
	b = place(7);
	b->worker = id_of_worker(1, k->layout.slots);
	damaged();
	b = place(7);
	b->found = FOUND_ALL + 1;
	damaged();
	b = place(7);
	b->ttl_ms = 0;
	damaged();
	b = place(7);
	b->ttl_ms = UINT32_MAX;
	damaged();
	/* in a bucket that is not its own */
	b = place(7);
	k->bindings[b >= &k->bindings[8] ? 7 : 15] = *b;
	b->digest = 0;
	damaged();
	k->region->counts.bindings++;
	ck_assert(!affinity_sound(k));
	affinity_recover(k);
	ck_assert(affinity_sound(k));
	ck_assert_uint_eq(stats().affinity_bindings, 2);
}
END_TEST

/* A share that cannot be is none; nothing is read outside. */
START_TEST(damage_is_clipped)
{
	struct binding b;

	bind(7, 2, 500, SECOND);
	place(7)->found = UINT32_MAX;
	b = look(7, SECOND);
	ck_assert(affinity_found(&b) == 0);
	place(7)->found = FOUND_ALL;
	place(7)->clock = 77;
	ck_assert(survival(2, SECOND) == 1);
	/* of a time that has not come, or of none: as if it had ended */
	place(7)->stamp = 2 * SECOND;
	ck_assert_uint_eq(look(7, SECOND).digest, 0);
	affinity_note(k, 7, 2, 0, SECOND);
	place(7)->stamp = -1;
	ck_assert_uint_eq(look(7, SECOND).digest, 0);
	affinity_note(k, 7, 2, 0, SECOND);
	ck_assert_uint_eq(place(7)->found, FOUND_ALL);
	place(7)->stamp = SECOND;
}
END_TEST

START_TEST(emptied)
{
	bind(7, 2, 500, SECOND);
	affinity_empty(k);
	ck_assert_uint_eq(look(7, SECOND).digest, 0);
	ck_assert_uint_eq(stats().affinity_bindings, 0);
	ck_assert(affinity_sound(k));
}
END_TEST

Suite *suite_affinity(void);

Suite *
suite_affinity(void)
{
	Suite *s = suite_create("affinity");
	TCase *t = tcase_create("table");

	tcase_add_checked_fixture(t, setup, end);
	tcase_add_test(t, a_ttl_is_rounded_up);
	tcase_add_test(t, binds_and_finds);
	tcase_add_test(t, lives_since_its_last_use);
	tcase_add_test(t, short_prompts_do_not_shorten);
	tcase_add_test(t, long_prompts_fade);
	tcase_add_test(t, moves_with_the_later);
	tcase_add_test(t, a_refresh_brings_back);
	tcase_add_test(t, void_with_its_worker);
	tcase_add_test(t, the_oldest_leaves);
	tcase_add_test(t, sessions_leave_before_state);
	tcase_add_test(t, reports_are_averaged);
	tcase_add_test(t, survival_by_ttl);
	tcase_add_test(t, survival_by_capacity);
	tcase_add_test(t, survival_by_feedback);
	tcase_add_test(t, times_go_round);
	tcase_add_test(t, nothing_without_a_table);
	tcase_add_test(t, damage_is_dropped);
	tcase_add_test(t, damage_is_clipped);
	tcase_add_test(t, emptied);
	suite_add_tcase(s, t);
	return s;
}
