/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pair.c - two doubles at a time give what each of them gives.
 */
#include "pair.h"

#include "inner.h"

#include <math.h>

static const double values[] = { -INFINITY, -1, 0, 0x1p-1074, 0.1, 1, 7, 1e300,
	1e301, INFINITY, NAN };
enum { VALUES = sizeof(values) / sizeof(values[0]) };

static void
ck_same(double a, double b)
{
	ck_assert(a == b || (a != a && b != b));
}

START_TEST(each_of_two)
{
	const pair most = { 1e300, 1e300 };
	uint32_t i, j;

	for (i = 0; i < VALUES; i++)
		for (j = 0; j < VALUES; j++) {
			double a = values[i], b = values[j];
			pair x = { a, b }, y = { b, a };

			ck_same(pair_greater(x, y)[0], a > b ? a : b);
			ck_same(pair_greater(x, y)[1], b > a ? b : a);
			ck_same(pair_less(x, y)[0], a < b ? a : b);
			ck_same(pair_less(x, y)[1], b < a ? b : a);
			ck_assert_uint_eq(pair_above(x, y),
			    (a > b ? 1U : 0) | (b > a ? 2U : 0));
			ck_same(pair_read(&values[i - (i > 0)])[i > 0], a);
			ck_same(pair_within(x, most)[0],
			    a >= 0 && a <= 1e300 ? a : 1e300);
			ck_same(pair_within(x, most)[1],
			    b >= 0 && b <= 1e300 ? b : 1e300);
		}
}
END_TEST

Suite *suite_pair(void);

Suite *
suite_pair(void)
{
	Suite *s = suite_create("pair");
	TCase *c = tcase_create("pair");

	suite_add_tcase(s, c);
	tcase_add_test(c, each_of_two);
	return s;
}
