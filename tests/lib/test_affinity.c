/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_affinity.c - the table of sessions: places, lives, damage.
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
bind_as(uint64_t digest, uint32_t slot, bool by_hand, int64_t now)
{
	const struct affinity_use use = { digest, slot, TTL_MS, by_hand };

	affinity_bind(k, &use, now);
}

static void
bind(uint64_t digest, uint32_t slot, int64_t now)
{
	bind_as(digest, slot, false, now);
}

static void
refresh(uint64_t digest, uint32_t slot, int64_t now)
{
	const struct affinity_use use = { digest, slot, TTL_MS, false };

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
	bind(7, 2, SECOND);
	b = look(7, 2 * SECOND);
	ck_assert_uint_eq(b.worker, id[2]);
	ck_assert_int_eq(b.stamp, SECOND);
	ck_assert_uint_eq(look(8, SECOND).digest, 0);
	ck_assert_uint_eq(stats().affinity_bindings, 1);
	ck_assert_uint_eq(stats().affinity_entries, PLACES);
}
END_TEST

/* Each use counts anew; at the very end it is over. */
START_TEST(lives_since_its_last_use)
{
	bind(7, 2, SECOND);
	ck_assert_uint_eq(look(7, 11 * SECOND - 1).digest, 7);
	ck_assert_uint_eq(look(7, 11 * SECOND).digest, 0);
	refresh(7, 2, 5 * SECOND);
	ck_assert_uint_eq(look(7, 15 * SECOND - 1).digest, 7);
	ck_assert_uint_eq(look(7, 15 * SECOND).digest, 0);
	/* nothing is found before it was made */
	ck_assert_uint_eq(look(7, 4 * SECOND).digest, 0);
}
END_TEST

START_TEST(moves_with_the_later)
{
	bind(7, 2, SECOND);
	bind(7, 3, 2 * SECOND);
	ck_assert_uint_eq(look(7, 2 * SECOND).worker, id[3]);
	ck_assert_uint_eq(stats().affinity_moved, 1);
	/* the earlier lease goes on, and takes nothing back */
	refresh(7, 2, 3 * SECOND);
	ck_assert_uint_eq(look(7, 3 * SECOND).worker, id[3]);
	ck_assert_int_eq(look(7, 3 * SECOND).stamp, 2 * SECOND);
}
END_TEST

START_TEST(a_refresh_brings_back)
{
	refresh(7, 2, SECOND);
	ck_assert_uint_eq(look(7, SECOND).worker, id[2]);
	refresh(7, 3, 100 * SECOND);
	ck_assert_uint_eq(look(7, 100 * SECOND).worker, id[3]);
	ck_assert_uint_eq(stats().affinity_moved, 0);
}
END_TEST

START_TEST(void_with_its_worker)
{
	uint64_t fresh;
	uint32_t slot;

	bind(7, 2, SECOND);
	bind(8, 3, SECOND);
	ck_assert_int_eq(kvr_worker_forget(k, id[2]), KVR_OK);
	ck_assert(worker_slot(k, look(7, SECOND).worker, &slot));
	ck_assert_int_eq(kvr_worker_reset(k, id[2], &fresh), KVR_OK);
	ck_assert_uint_eq(look(7, SECOND).worker, id[2]);
	ck_assert(!worker_slot(k, look(7, SECOND).worker, &slot));
	remove_worker(id[3]);
	ck_assert(!worker_slot(k, look(8, SECOND).worker, &slot));
	/* a void one does not hold another off, and is not moved */
	refresh(7, 0, 2 * SECOND);
	ck_assert_uint_eq(look(7, 2 * SECOND).worker, id[0]);
	ck_assert_uint_eq(stats().affinity_moved, 0);
}
END_TEST

/* Free places are taken first, then dead ones, then the oldest. */
START_TEST(the_oldest_leaves)
{
	uint32_t i;

	region_end();
	table_of(1, 120 * SECOND);
	ck_assert_uint_eq(stats().affinity_entries, 8);
	for (i = 1; i <= 8; i++)
		bind(i, i % 2, (int64_t)(20 - i) * SECOND);
	ck_assert_uint_eq(stats().affinity_bindings, 8);
	ck_assert_uint_eq(stats().affinity_evicted, 0);
	bind(9, 0, 20 * SECOND);
	ck_assert_uint_eq(look(8, 20 * SECOND).digest, 0);
	ck_assert_uint_eq(look(7, 20 * SECOND).digest, 7);
	ck_assert_uint_eq(stats().affinity_bindings, 8);
	ck_assert_uint_eq(stats().affinity_evicted, 1);
	/* 7 and 5 are older than 4, but 4 has lost its worker */
	remove_worker(id[0]);
	bind(10, 1, 20 * SECOND);
	for (i = 1; i < 8; i += 2)
		ck_assert_uint_eq(look(i, 20 * SECOND).digest, i);
	ck_assert_uint_eq(stats().affinity_evicted, 1);
	/* and nothing here is live any more */
	bind(11, 1, 100 * SECOND);
	ck_assert_uint_eq(stats().affinity_evicted, 1);
}
END_TEST

/* What was bound by hand leaves after all sessions. */
START_TEST(sessions_leave_before_state)
{
	uint32_t i;

	region_end();
	table_of(1, 120 * SECOND);
	for (i = 1; i <= 8; i++)
		bind_as(i, 1, i != 3 && i != 5, (int64_t)i * SECOND);
	for (i = 9; i <= 11; i++)
		bind(i, 1, 9 * SECOND);
	for (i = 1; i <= 8; i++)
		ck_assert_uint_eq(look(i, 9 * SECOND).digest,
		    i == 3 || i == 5 ? 0 : i);
	/* the earlier session goes, and then the oldest of the others */
	ck_assert_uint_eq(stats().affinity_evicted, 3);
	for (i = 12; i <= 14; i++)
		bind_as(i, 1, true, 9 * SECOND);
	ck_assert_uint_eq(look(1, 9 * SECOND).digest, 0);
	ck_assert_uint_eq(look(2, 9 * SECOND).digest, 2);
	ck_assert_uint_eq(look(14, 9 * SECOND).digest, 14);
}
END_TEST

START_TEST(nothing_without_a_table)
{
	region_end();
	table_of(0, 120 * SECOND);
	bind(7, 2, SECOND);
	refresh(7, 2, SECOND);
	ck_assert_uint_eq(look(7, SECOND).digest, 0);
	affinity_empty(k);
	affinity_recover(k);
	ck_assert(affinity_sound(k));
}
END_TEST

/* No call can leave any of these values. */
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
	bind(7, 2, SECOND);
	ck_assert(affinity_sound(k));
}

START_TEST(damage_is_dropped)
{
	struct binding *b;

	bind(8, 3, SECOND);
	bind(7, 2, SECOND);
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
	b->by_hand = 2;
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

/* The time has not come, or is none: it is as if the binding had ended. */
START_TEST(impossible_times_bind_nothing)
{
	bind(7, 2, SECOND);
	place(7)->stamp = 2 * SECOND;
	ck_assert_uint_eq(look(7, SECOND).digest, 0);
	place(7)->stamp = -1;
	ck_assert_uint_eq(look(7, SECOND).digest, 0);
	place(7)->stamp = SECOND;
}
END_TEST

START_TEST(emptied)
{
	bind(7, 2, SECOND);
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
	tcase_add_test(t, moves_with_the_later);
	tcase_add_test(t, a_refresh_brings_back);
	tcase_add_test(t, void_with_its_worker);
	tcase_add_test(t, the_oldest_leaves);
	tcase_add_test(t, sessions_leave_before_state);
	tcase_add_test(t, nothing_without_a_table);
	tcase_add_test(t, damage_is_dropped);
	tcase_add_test(t, impossible_times_bind_nothing);
	tcase_add_test(t, emptied);
	suite_add_tcase(s, t);
	return s;
}
