/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_exp.c - the exp and tanh that sampling and preferences need.
 */
#include "exp.h"

#include "scene.h"
#include "test.h"

#include <math.h>

START_TEST(exp_is_close)
{
	uint64_t i, n = test_amount(400000);
	double x, error;

	scene_seed(1);
	for (i = 0; i < n; i++) {
		x = (double)(scene_random() >> 11) * 0x1p-53;
		x = i % 3 == 0 ? x * 2 - 1 : i % 3 == 1 ? x * -40
		    : x * 1400 - 700;
		error = exp_of(x) / exp(x) - 1;
		if (!(fabs(error) < 0x1p-51))
			ck_abort_msg("x %a: %a", x, error);
	}
}
END_TEST

START_TEST(tanh_is_close)
{
	uint64_t i, n = test_amount(400000);
	double x, error;

	scene_seed(2);
	for (i = 0; i < n; i++) {
		x = (double)(scene_random() >> 11) * 0x1p-52 - 1;
		x = i % 3 == 0 ? x : i % 3 == 1 ? x * 1e-6 : x * 30;
		error = exp_tanh(x) - tanh(x);
		if (fabs(error) >= 0x1p-51 || exp_tanh(-x) != -exp_tanh(x))
			ck_abort_msg("x %a: %a", x, error);
	}
}
END_TEST

START_TEST(exp_at_the_ends)
{
	ck_assert(exp_of(0) == 1 && exp_of(-0.0) == 1);
	ck_assert(exp_of(-701) == 0 && exp_of(-INFINITY) == 0);
	ck_assert(exp_of(NAN) == 0);
	ck_assert(exp_of(-699) > 0 && exp_of(701) == exp_of(700));
	ck_assert(exp_of(INFINITY) == exp_of(700) && isfinite(exp_of(700)));
	ck_assert(exp_tanh(0) == 0);
	ck_assert(exp_tanh(INFINITY) == 1 && exp_tanh(-INFINITY) == -1);
	ck_assert(exp_tanh(1e300) == 1 && exp_tanh(-1e300) == -1);
}
END_TEST

/* The same bits on every machine. */
START_TEST(exp_is_the_same_everywhere)
{
	static const struct {
		double x, exp, tanh;
	} known[] = {
		{ -0x1p-1, 0x1.368b2fc6f960ap-1, -0x1.d9353d7568af3p-2 },
		{ -0x1p+0, 0x1.78b56362cef38p-2, -0x1.85efab514f394p-1 },
		{ 0x1p+0, 0x1.5bf0a8b14576ap+1, 0x1.85efab514f394p-1 },
		{ -0x1.4p+3, 0x1.7cd79b5647c9ap-15, -0x1.ffffffdc96f35p-1 },
		{ -0x1.23456789abcdep-3, 0x1.bc1f95b7e248ep-1,
		  -0x1.2152b0b66e9fep-3 },
		{ -0x1.edd2f1a9fbe77p+6, 0x1.da9fb9e4ee72p-179, -1 }
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		ck_assert_msg(exp_of(known[i].x) == known[i].exp, "exp %a: %a",
		    known[i].x, exp_of(known[i].x));
		ck_assert_msg(exp_tanh(known[i].x) == known[i].tanh,
		    "tanh %a: %a", known[i].x, exp_tanh(known[i].x));
	}
}
END_TEST

Suite *suite_exp(void);

Suite *
suite_exp(void)
{
	Suite *s = suite_create("exp");
	TCase *t;

	t = tcase_create("exp");
	tcase_add_test(t, exp_is_close);
	tcase_add_test(t, tanh_is_close);
	tcase_add_test(t, exp_at_the_ends);
	tcase_add_test(t, exp_is_the_same_everywhere);
	suite_add_tcase(s, t);
	return s;
}
