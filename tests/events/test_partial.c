/* SPDX-License-Identifier: BSD-2-Clause */
/* test_partial.c - hashes that are kept, as many as there is room for. */
#include "test.h"

#include "alloc.h"
#include "partial.h"

static struct partial p;

static void
teardown(void)
{
	alloc_reset();
	partial_free(&p);
}

START_TEST(kept_until_taken)
{
	ck_assert(!partial_has(&p, 7));
	partial_take(&p, 7);
	ck_assert(partial_add(&p, 7));
	ck_assert(partial_add(&p, 7));
	ck_assert(partial_has(&p, 7));
	ck_assert(!partial_has(&p, 8));
	partial_take(&p, 7);
	ck_assert(!partial_has(&p, 7));
	ck_assert(partial_add(&p, 0));
	ck_assert(!partial_has(&p, 0));
}
END_TEST

/* The latest stay. */
START_TEST(far_too_many)
{
	uint64_t i, kept = 0;

	for (i = 1; i <= 100000; i++)
		ck_assert(partial_add(&p, i));
	for (i = 1; i <= 100000; i++)
		kept += partial_has(&p, i);
	ck_assert_uint_eq(kept, 16384);
	for (i = 100000 - 1000; i <= 100000; i++)
		ck_assert(partial_has(&p, i));
}
END_TEST

START_TEST(no_memory)
{
	alloc_fail_at(1);
	ck_assert(!partial_add(&p, 7));
	ck_assert(!partial_has(&p, 7));
	alloc_reset();
	ck_assert(partial_add(&p, 7));
}
END_TEST

Suite *suite_partial(void);

Suite *
suite_partial(void)
{
	Suite *s = suite_create("partial");
	TCase *t = tcase_create("partial");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, kept_until_taken);
	tcase_add_test(t, far_too_many);
	tcase_add_test(t, no_memory);
	suite_add_tcase(s, t);
	return s;
}
