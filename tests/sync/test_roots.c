/* SPDX-License-Identifier: BSD-2-Clause */
/* test_roots.c - the tenants of roots, and the share that counts. */
#include <check.h>

#include "alloc.h"
#include "roots.h"

static struct roots *t;

static void
setup(void)
{
	t = roots_new();
	ck_assert_ptr_nonnull(t);
}

static void
teardown(void)
{
	roots_free(t);
	roots_free(NULL);
}

/* tenant 0: none is known. */
static void
ck_root(uint64_t root, uint64_t tenant, uint32_t share)
{
	uint64_t found = 99;
	uint32_t of = 99;

	ck_assert_int_eq(roots_get(t, root, &found, &of), tenant != 0);
	if (tenant == 0)
		return;
	ck_assert_uint_eq(found, tenant);
	ck_assert_uint_eq(of, share);
}

/* The own one, whichever comes first; it is one for all roots of a tenant. */
START_TEST(whose_share_counts)
{
	roots_told(t, 1, 7, 0);
	ck_root(1, 7, 0);
	roots_told(t, 1, 7, 200);
	roots_told(t, 2, 8, 50);
	ck_root(1, 7, 200);
	roots_told(t, 1, 7, 250);
	roots_told(t, 1, 7, 0);
	ck_root(1, 7, 250);
	roots_own(t, 3, 7, 300);
	ck_root(1, 7, 300);
	roots_told(t, 1, 7, 200);
	roots_own(t, 1, 7, 0);
	ck_root(1, 7, 300);
	ck_root(2, 8, 50);
	ck_root(3, 7, 300);
	ck_root(4, 0, 0);
}
END_TEST

START_TEST(what_is_none)
{
	roots_told(t, 1, 0, 200);
	ck_root(1, 0, 0);
	roots_told(t, 1, 7, KVR_SHARE_MAX + 1);
	ck_root(1, 7, 0);
	roots_told(t, 1, 7, UINT64_MAX);
	ck_root(1, 7, 0);
	roots_told(t, 1, 7, KVR_SHARE_MAX);
	ck_root(1, 7, KVR_SHARE_MAX);
	roots_told(t, 1, 9, 0);
	ck_root(1, 9, 0);
}
END_TEST

/* The root longest unused, in records and questions, is forgotten first. */
START_TEST(memory_is_bounded)
{
	uint64_t i;

	for (i = 1; i <= ROOTS_KNOWN; i++)
		roots_told(t, i, i, 5);
	ck_root(1, 1, 5);
	roots_told(t, 2, 2, 5);
	roots_told(t, i, i, 5);
	roots_told(t, i + 1, i + 1, 5);
	ck_root(1, 1, 5);
	ck_root(2, 2, 5);
	ck_root(3, 0, 0);
	ck_root(4, 0, 0);
	ck_root(5, 5, 5);
	ck_root(i + 1, i + 1, 5);
}
END_TEST

/* Less is known, and nothing breaks. */
START_TEST(without_memory)
{
	unsigned long fail;
	uint64_t i;

	for (fail = 1; fail < 40; fail++) {
		alloc_fail_at(fail);
		for (i = 1; i <= 20; i++)
			roots_told(t, i * fail, i, 5);
		alloc_reset();
		roots_told(t, 1, 7, 5);
		ck_root(1, 7, 5);
		teardown();
		setup();
	}
	alloc_fail_at(1);
	ck_assert_ptr_null(roots_new());
	alloc_reset();
}
END_TEST

Suite *suite_roots(void);

Suite *
suite_roots(void)
{
	Suite *s = suite_create("roots");
	TCase *c = tcase_create("roots");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, whose_share_counts);
	tcase_add_test(c, what_is_none);
	tcase_add_test(c, memory_is_bounded);
	tcase_add_test(c, without_memory);
	suite_add_tcase(s, c);
	return s;
}
