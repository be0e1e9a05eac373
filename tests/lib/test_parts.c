/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_parts.c - each part of a region is emptied, recovered, and mended.
 */
#include "parts.h"

#include "affinity.h"
#include "check.h"
#include "journal.h"
#include "txn.h"

#include "inner.h"

enum { USER_BYTES = 40 };

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.affinity_entries = 8;
	o.journal_bytes = KVR_JOURNAL_MIN;
	o.user_bytes = USER_BYTES;
	region_of(&o);
	ck_assert_int_eq(kvr_affinity_bind(k, 7, id[1], 0, 100, 0), KVR_OK);
	say("abcd");
	(void)observed(1, 100);
	ck_assert(parts_sound(k));
}

static bool
is_bound(void)
{
	uint64_t worker;

	return kvr_affinity_find(k, 7, 100, &worker) == KVR_OK;
}

START_TEST(emptied)
{
	struct txn c;

	ck_assert_int_eq(txn_write_begin(k, &c, 0, 0), KVR_OK);
	parts_empty(k, 50);
	ck_assert_int_eq(txn_write_end(k, NULL, KVR_OK), KVR_OK);
	ck_assert_int_eq(k->region->clock, 50);
	ck_assert_uint_eq(stats().entries, 0);
	ck_assert_uint_eq(stats().affinity_bindings, 0);
	ck_assert(!is_bound() && parts_sound(k));
	ck_assert_int_eq(kvr_check(k), KVR_OK);
}
END_TEST

/* Sessions are kept, and workers. */
START_TEST(recovered)
{
	struct txn c;

	ck_assert_int_eq(txn_write_begin(k, &c, 0, 0), KVR_OK);
	k->region->workers = 99;
	parts_recover(k);
	ck_assert_int_eq(txn_write_end(k, NULL, KVR_OK), KVR_OK);
	ck_assert_uint_eq(stats().entries, 0);
	ck_assert_uint_eq(stats().workers, WORKERS);
	ck_assert(is_bound() && parts_sound(k));
	ck_assert_int_eq(kvr_check(k), KVR_OK);
}
END_TEST

/* ------------------------------------------------------ damage of each --- */

static void
damage_limits(void)
{
	k->region->limits.idle = -1;
}

static void
damage_policy(void)
{
	k->region->policy.balanced_bound = -1;
}

static void
damage_index(void)
{
	k->region->free_cells++;
}

static void
damage_speeds(void)
{
	k->region->fleet_tokens = -1;
}

static void
damage_names(void)
{
	k->region->name_free = WORKERS + 1;
}

static void
damage_streams(void)
{
	stream_at(k, 1)->state = UINT8_MAX;
}

static void
damage_capacities(void)
{
	survival_at(k, 0)->judged = -1;
}

static void
damage_slots(void)
{
	k->region->slot_free = 1;
}

static void
damage_inserted(void)
{
	k->region->inserted = -1;
}

static void
damage_observed(void)
{
	k->loads.observed_reading[0] = -1;
}

static void
damage_sessions(void)
{
	k->region->counts.bindings = 5;
}

/* A caller has written beyond its area. */
static void
damage_user(void)
{
	k->user->bytes[USER_BYTES + 1] = 1;
}

static void
damage_journal(void)
{
	k->region->journal_head = 1;
}

/* In the order of the table. */
static void (*const damage[PARTS])(void) = {
	damage_limits, damage_policy, damage_index, damage_speeds,
	damage_names, damage_streams, damage_capacities, damage_slots,
	damage_inserted, damage_observed, damage_sessions, damage_user,
	damage_journal
};

/* Each is found by its own row and by kvr_check; nothing else is lost. */
START_TEST(mended)
{
	const struct part *part = &parts[_i];
	int i;

	damage[_i]();
	if (part->sound == NULL) {
		ck_assert_int_eq(kvr_check(k), KVR_ECORRUPT);
		parts_recover(k);
		return;
	}
	for (i = 0; i < PARTS; i++)
		ck_assert(parts[i].sound == NULL ||
		    parts[i].sound(k) == (i != _i));
	ck_assert(!parts_sound(k));
	ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
	parts_mend(k);
	ck_assert(parts_sound(k));
	ck_assert_int_eq(check_mend(k), KVR_OK); /* a limit changes workers */
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	ck_assert(is_bound());
	ck_assert_uint_gt(stats().entries, 0);
}
END_TEST

/* The same after the death of a writer; the journal gets a record of it. */
START_TEST(recovered_from_any)
{
	struct kvr_record r;
	uint64_t position;
	struct txn c;

	ck_assert_int_eq(txn_write_begin(k, &c, 0, 0), KVR_OK);
	damage[_i]();
	parts_recover(k);
	ck_assert_int_eq(txn_write_end(k, NULL, KVR_OK), KVR_OK);
	ck_assert(parts_sound(k));
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	position = journal_head(k) - CELL;
	ck_assert_int_eq(journal_read(k, &position, 100, &r, NULL, 0), KVR_OK);
	ck_assert_uint_eq(r.kind, KVR_RECORD_CLEAR);
}
END_TEST

Suite *suite_parts(void);

Suite *
suite_parts(void)
{
	Suite *s = suite_create("parts");
	TCase *t = tcase_create("parts");

	tcase_add_checked_fixture(t, setup, region_end);
	tcase_add_test(t, emptied);
	tcase_add_test(t, recovered);
	tcase_add_loop_test(t, mended, 0, PARTS);
	tcase_add_loop_test(t, recovered_from_any, 0, PARTS);
	suite_add_tcase(s, t);
	return s;
}
