/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_text.c - the numbers that text.h writes. Names: test_metrics.c.
 */
#include "text.h"

#include "plain.h"
#include "test.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *
real(double x)
{
	static struct line l;

	l.length = 0;
	add_real(&l, x);
	l.text[l.length] = '\0';
	return l.text;
}

static const char *
decimal(uint64_t value, uint32_t decimals)
{
	static struct line l;

	l.length = 0;
	add_decimal(&l, value, decimals);
	l.text[l.length] = '\0';
	return l.text;
}

START_TEST(numbers)
{
	ck_assert_str_eq(decimal(0, 0), "0");
	ck_assert_str_eq(decimal(0, 9), "0");
	ck_assert_str_eq(decimal(1, 9), "0.000000001");
	ck_assert_str_eq(decimal(10, 2), "0.1");
	ck_assert_str_eq(decimal(1000, 3), "1");
	ck_assert_str_eq(decimal(1234567, 3), "1234.567");
	ck_assert_str_eq(decimal(UINT64_MAX, 0), "18446744073709551615");
	ck_assert_str_eq(decimal(UINT64_MAX, 9), "18446744073.709551615");
	ck_assert_str_eq(real(0), "0");
	ck_assert_str_eq(real(4e-7), "0");
	ck_assert_str_eq(real(6e-7), "0.000001");
	ck_assert_str_eq(real(0.1), "0.1");
	ck_assert_str_eq(real(1.5), "1.5");
	ck_assert_str_eq(real(-2.25), "-2.25");
	ck_assert_str_eq(real(17000), "17000");
	ck_assert_str_eq(real(0.9999996), "1");
	ck_assert_str_eq(real(123456.789), "123456.789");
	ck_assert_str_eq(real(999999999.125), "999999999.125");
	ck_assert_str_eq(real(1000000000.7), "1000000001");
	ck_assert_str_eq(real(999999999999999), "999999999999999");
	ck_assert_str_eq(real(1e15), "100000000000000e1");
	ck_assert_str_eq(real(1.5e20), "150000000000000e6");
	ck_assert_str_eq(real((double)NAN), "NaN");
	ck_assert_str_eq(real((double)INFINITY), "+Inf");
	ck_assert_str_eq(real(-(double)INFINITY), "-Inf");
	ck_assert_str_eq(real(1.5e308), "150000000000000e294");
	ck_assert_str_eq(real(5e-324), "0");
}
END_TEST

/* Parsed again it is the number, to the promised precision. */
START_TEST(near)
{
	uint64_t seed = test_seed(), rounds = test_amount(200000), chance;
	double x, back;

	for (chance = seed; rounds-- > 0;) {
		x = ldexp((double)(plain_random(&chance) >> 11),
		    (int)(plain_random(&chance) % 300) - 150);
		back = strtod(real(x), NULL);
		if (!(fabs(back - x) <= (x < 1e9 ? 6.5e-7 : 5.01e-10 * x)))
			ck_abort_msg("%s is %.17g (KVR_SEED=%" PRIu64 ")",
			    real(x), x, seed);
	}
}
END_TEST

/* A line never overflows, whatever goes into it. */
START_TEST(no_line_too_long)
{
	static struct line l;
	uint32_t i;

	l.length = 0;
	for (i = 0; i < TEXT_LINE_MAX; i++)
		add_text(&l, "abc");
	ck_assert_uint_eq(l.length, TEXT_LINE_MAX);
}
END_TEST

Suite *suite_text(void);

Suite *
suite_text(void)
{
	Suite *s = suite_create("text");
	TCase *t = tcase_create("text");

	tcase_add_test(t, numbers);
	tcase_add_test(t, near);
	tcase_add_test(t, no_line_too_long);
	suite_add_tcase(s, t);
	return s;
}
