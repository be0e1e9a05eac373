/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_parts.c - what becomes of the parts of a region.
 */
#include "parts.h"

#include "affinity.h"
#include "journal.h"
#include "txn.h"

#include "inner.h"

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.affinity_entries = 8;
	o.journal_bytes = KVR_JOURNAL_MIN;
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

/* One part of each kind is damaged; nothing else is lost. */
START_TEST(mended)
{
	k->region->fleet_tokens = -1;
	ck_assert(!parts_sound(k));
	parts_mend(k);
	ck_assert(parts_sound(k));
	k->region->inserted = -1;
	ck_assert(!parts_sound(k));
	parts_mend(k);
	ck_assert(parts_sound(k));
	k->region->counts.bindings = 5;
	ck_assert(!parts_sound(k));
	parts_mend(k);
	ck_assert(parts_sound(k));
	k->region->journal_head = 1;
	ck_assert(!parts_sound(k));
	parts_mend(k);
	ck_assert(parts_sound(k));
	ck_assert(is_bound());
	ck_assert_uint_gt(stats().entries, 0);
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
	tcase_add_test(t, mended);
	suite_add_tcase(s, t);
	return s;
}
