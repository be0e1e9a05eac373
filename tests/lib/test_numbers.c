/* SPDX-License-Identifier: BSD-2-Clause */
/* test_numbers.c - the meaning of a missing number, and zeros in a row. */
#include "numbers.h"

#include "inner.h"

#include <math.h>

enum { KIND = 5, IN_A_ROW = 16 };

static void
answer(bool number, bool in_use, uint32_t age)
{
	struct numbers_answer a = { .kind = KIND, .number = number,
		.in_use = in_use, .age = age };

	numbers_note(k, 0, &a);
}

static void
answers(bool number, uint32_t n)
{
	for (; n > 0; n--)
		answer(number, true, 0);
}

static void
ck_share(double share)
{
	double is = numbers_share(k, 0, KIND), usual = numbers_usual(k, 0,
	    KIND);

	if (!(fabs(is - share) < 1e-12))
		ck_abort_msg("share %g, must be %g", is, share);
	ck_assert(fabs(usual - (share > 0.5 ? 2 * share - 1 : 0)) < 1e-12);
}

START_TEST(nothing_asked_yet)
{
	ck_share(1);
	answers(true, 1);
	ck_share(1);
}
END_TEST

START_TEST(share_by_hand)
{
	answers(true, 3);
	answers(false, 1);
	ck_share(4 / 5.0);
	answers(false, 3);
	ck_share(4 / 8.0);
	/* other kinds and other workers have answers of their own */
	ck_assert(numbers_share(k, 0, KIND + 1) == 1);
	ck_assert(numbers_share(k, 1, KIND) == 1);
}
END_TEST

/* Fifteen are kept, whatever came before. */
START_TEST(old_answers_go)
{
	uint32_t i;

	answers(false, 1000);
	ck_share(1 / 16.0);
	for (i = 1; i <= 15; i++) {
		answers(true, 1);
		ck_share((1 + i) / 16.0);
	}
	answers(true, 1000);
	ck_share(1);
	answers(false, 15);
	ck_share(1 / 16.0);
}
END_TEST

/* One in twenty with a number is never usual, in any order. */
START_TEST(five_percent_is_not_usual)
{
	uint32_t i;

	for (i = 0; i < 200; i++) {
		answers(i % 20 == 0, 1);
		if (i >= 3)
			ck_assert(numbers_usual(k, 0, KIND) == 0);
	}
}
END_TEST

/* Old blocks may be gone: missing numbers there prove nothing about numbers. */
START_TEST(only_the_young_are_certain)
{
	uint32_t i;

	for (i = 0; i < 400; i++)
		answer(i % 4 == 0, false, i % 4 == 0 ? 10 : 30);
	ck_share(1);
	/* the young ones have no numbers now */
	for (i = 0; i < 400; i++)
		answer(i % 4 != 0, false, i % 4 == 0 ? 10 : 30);
	ck_assert(numbers_usual(k, 0, KIND) == 0);
}
END_TEST

/* It follows when all that is asked for becomes older, or younger. */
START_TEST(young_is_relative)
{
	uint32_t i;

	for (i = 0; i < 100; i++)
		answer(true, false, 2);
	for (i = 0; i < 200; i++)
		answer(false, false, 50);
	ck_share(1 / 16.0);
	for (i = 0; i < 100; i++)
		answer(true, false, 2);
	ck_share(1);
}
END_TEST

START_TEST(sixteen_zeros)
{
	uint32_t i;

	for (i = 0; i < IN_A_ROW; i++) {
		ck_assert(!numbers_nothing(k, 0));
		numbers_zero(k, 0);
	}
	ck_assert(numbers_nothing(k, 0));
	ck_assert(!numbers_nothing(k, 1));
	for (i = 0; i < 100000; i++)
		numbers_zero(k, 0);
	ck_assert(numbers_nothing(k, 0));
	numbers_above_zero(k, 0, 64);
	ck_assert(!numbers_nothing(k, 0));
}
END_TEST

/* Shared memory may hold anything. */
START_TEST(anything_may_stand_there)
{
	struct survival *s = &k->survival[slot_at(k, 0)->name - 1];
	uint32_t bits;

	for (bits = 0; bits <= UINT16_MAX; bits++) {
		s->numbers[KIND] = (uint16_t)bits;
		s->young = (uint8_t)bits;
		must(numbers_share(k, 0, KIND) > 0 &&
		    numbers_share(k, 0, KIND) <= 1);
		answer(bits % 2 == 0, false, bits % AGES);
		must(numbers_share(k, 0, KIND) > 0 &&
		    numbers_share(k, 0, KIND) <= 1);
		must(s->young >= 1 && s->young <= AGES + 1);
	}
	s->zeros = UINT16_MAX;
	ck_assert(numbers_nothing(k, 0));
	numbers_zero(k, 0);
	ck_assert(numbers_nothing(k, 0));
	survival_forget(k, 0);
}
END_TEST

Suite *suite_numbers(void);

Suite *
suite_numbers(void)
{
	Suite *s = suite_create("numbers");
	TCase *t = small_case(s, "missing");

	tcase_add_test(t, nothing_asked_yet);
	tcase_add_test(t, share_by_hand);
	tcase_add_test(t, old_answers_go);
	tcase_add_test(t, five_percent_is_not_usual);
	tcase_add_test(t, only_the_young_are_certain);
	tcase_add_test(t, young_is_relative);
	tcase_add_test(t, anything_may_stand_there);
	t = small_case(s, "zeros");
	tcase_add_test(t, sixteen_zeros);
	return s;
}
