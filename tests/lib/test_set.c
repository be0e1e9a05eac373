/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_set.c - walks over sets of slots, one by one and by runs.
 */
#include "set.h"

#include "inner.h"

enum { WORDS = 5, SETS = 2000 };

/* Words that are empty, full, with long runs, or drawn. */
static uint64_t
draw_word(uint64_t *random)
{
	uint64_t kind = plain_random(random) % 5, bits = plain_random(random);
	uint32_t low = (uint32_t)(bits % 64), n = (uint32_t)(bits >> 8) % 64;

	if (kind == 0)
		return 0;
	if (kind == 1)
		return UINT64_MAX;
	if (kind == 2)
		return UINT64_MAX << low >> n;
	return kind == 3 ? bits : UINT64_C(0x5555555555555555);
}

/* A run has the slots that follow, is not empty, and stays in its word. */
START_TEST(runs_are_the_slots)
{
	uint64_t set[WORDS], random = 1;
	uint32_t i, n, slot;

	for (n = 0; n < SETS; n++) {
		struct set_walk one, by_runs;
		struct set_run run;

		for (i = 0; i < WORDS; i++)
			set[i] = draw_word(&random);
		one = by_runs = set_walk(set, WORDS);
		while (set_next_run(&by_runs, &run)) {
			ck_assert_uint_lt(run.from, run.to);
			ck_assert_uint_eq(run.from / 64, (run.to - 1) / 64);
			for (i = run.from; i < run.to; i++) {
				ck_assert(set_next(&one, &slot));
				ck_assert_uint_eq(slot, i);
			}
		}
		ck_assert(!set_next(&one, &slot));
	}
}
END_TEST

Suite *suite_set(void);

Suite *
suite_set(void)
{
	Suite *s = suite_create("set");
	TCase *c = tcase_create("set");

	suite_add_tcase(s, c);
	tcase_add_test(c, runs_are_the_slots);
	return s;
}
