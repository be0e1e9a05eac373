/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_corrupt.c - regions with seeded random damage, then every public call.
 *
 * The same as fuzz/fuzz_region.c, for machines without a fuzzer. See
 * tests/torture/corrupt.h.
 */
#include "corrupt.h"
#include "test.h"

#include <inttypes.h>

static void
runs_of(enum corrupt_mode mode, uint64_t runs, struct corrupt_totals *totals)
{
	uint64_t seed = test_seed();
	struct ops_source s;
	char why[200];

	memset(totals, 0, sizeof(*totals));
	for (runs = test_amount(runs); runs > 0; runs--, seed++) {
		ops_from_seed(&s, seed);
		if (!corrupt_run(&s, mode, totals, why, sizeof(why)))
			ck_abort_msg("%s (KVR_SEED=%" PRIu64 ")", why, seed);
	}
}

/* Without damage nothing is found; else the other tests would mean nothing. */
START_TEST(no_damage)
{
	struct corrupt_totals t;

	runs_of(CORRUPT_NONE, 200, &t);
	ck_assert_uint_eq(t.refused, 0);
	ck_assert_uint_eq(t.unseen, t.runs);
	ck_assert_uint_eq(t.emptied, 0);
}
END_TEST

START_TEST(bytes_anywhere)
{
	struct corrupt_totals t;

	runs_of(CORRUPT_RAW, 3000, &t);
	ck_assert_uint_lt(t.refused, t.runs);
	ck_assert_uint_gt(t.calls, 0);
}
END_TEST

START_TEST(seal_under_a_right_checksum)
{
	struct corrupt_totals t;

	runs_of(CORRUPT_SEAL, 3000, &t);
	ck_assert_uint_gt(t.refused, t.runs / 4);
}
END_TEST

START_TEST(fields)
{
	struct corrupt_totals t;

	runs_of(CORRUPT_FIELD, 3000, &t);
	ck_assert_uint_eq(t.refused, 0);
	ck_assert_uint_gt(t.emptied, 0);
}
END_TEST

START_TEST(whole_kinds)
{
	struct corrupt_totals t;

	runs_of(CORRUPT_BULK, 1000, &t);
	ck_assert_uint_eq(t.refused, 0);
	ck_assert_uint_gt(t.emptied, 0);
}
END_TEST

START_TEST(rings)
{
	struct corrupt_totals t;

	runs_of(CORRUPT_RING, 500, &t);
	ck_assert_uint_eq(t.refused, 0);
	ck_assert_uint_gt(t.emptied, 0);
}
END_TEST

Suite *suite_corrupt(void);

Suite *
suite_corrupt(void)
{
	Suite *s = suite_create("corrupt");
	TCase *t = tcase_create("damage");

	tcase_add_test(t, no_damage);
	tcase_add_test(t, bytes_anywhere);
	tcase_add_test(t, seal_under_a_right_checksum);
	tcase_add_test(t, fields);
	tcase_add_test(t, whole_kinds);
	tcase_add_test(t, rings);
	suite_add_tcase(s, t);
	return s;
}
