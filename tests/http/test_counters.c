/* SPDX-License-Identifier: BSD-2-Clause */
/* test_counters.c - names of counters and reasons, and the values shown. */
#include "test.h"

#include <string.h>

#include "counters.h"

static bool
is_word(const char *text)
{
	return text[0] != '\0' &&
	    text[strspn(text, "abcdefghijklmnopqrstuvwxyz_")] == '\0';
}

START_TEST(each_reason_has_its_name)
{
	uint32_t i, j;

	for (i = 0; i < REASONS; i++) {
		ck_assert(is_word(reason_name(i)));
		for (j = 0; j < i; j++)
			ck_assert_str_ne(reason_name(i), reason_name(j));
		ck_assert_int_eq(reason_occurs(i), i != REASON_PINNED);
	}
	ck_assert_str_eq(reason_name(REASONS), "?");
	ck_assert_str_eq(reason_name(UINT32_MAX), "?");
	ck_assert(!reason_occurs(REASONS));
}
END_TEST

static bool
same_group(const struct counter *a, const struct counter *b)
{
	return a->group == b->group;
}

/* A group would otherwise be two JSON objects of one name. */
START_TEST(groups_are_together)
{
	size_t i, j;

	for (i = 1; i < counters_shown; i++) {
		const struct counter *c = &counter_list[i];

		if (same_group(c, c - 1))
			continue;
		ck_assert_ptr_nonnull(c->group);
		for (j = 0; j < i; j++)
			ck_assert(counter_list[j].group == NULL ||
			    strcmp(counter_list[j].group, c->group) != 0);
	}
}
END_TEST

START_TEST(names_are_words_and_apart)
{
	size_t i, j;

	for (i = 0; i < counters_shown; i++) {
		const struct counter *c = &counter_list[i];

		ck_assert(is_word(c->name));
		ck_assert_ptr_null(strchr(c->help, '\n'));
		ck_assert_ptr_null(strchr(c->help, '\\'));
		for (j = 0; j < i; j++)
			ck_assert(!same_group(c, &counter_list[j]) ||
			    strcmp(c->name, counter_list[j].name) != 0);
	}
}
END_TEST

/* A count is shown as itself, not only as a difference. */
START_TEST(each_count_is_shown_once)
{
	size_t i, shown[COUNTS] = { 0 };

	for (i = 0; i < counters_shown; i++)
		shown[counter_list[i].of]++;
	for (i = 0; i < COUNTS; i++)
		ck_assert_uint_eq(shown[i], 1);
}
END_TEST

START_TEST(values)
{
	struct counters all;
	size_t i;

	memset(&all, 0, sizeof(all));
	for (i = 0; i < COUNTS; i++)
		all.count[i] = 1000 + i;
	for (i = 0; i < counters_shown; i++) {
		const struct counter *c = &counter_list[i];

		ck_assert_uint_eq(counter_value(NULL, i), 0);
		if (c->less == COUNTS)
			ck_assert_uint_eq(counter_value(&all, i),
			    1000 + c->of);
	}
}
END_TEST

START_TEST(a_difference_is_never_below_zero)
{
	struct counters all;
	size_t i, found = 0;

	for (i = 0; i < counters_shown; i++) {
		const struct counter *c = &counter_list[i];

		if (c->less == COUNTS)
			continue;
		memset(&all, 0, sizeof(all));
		all.count[c->of] = 7;
		all.count[c->less] = 3;
		ck_assert_uint_eq(counter_value(&all, i), 4);
		all.count[c->less] = 8;
		ck_assert_uint_eq(counter_value(&all, i), 0);
		found++;
	}
	ck_assert_uint_eq(found, 2);
}
END_TEST

Suite *suite_counters(void);

Suite *
suite_counters(void)
{
	Suite *s = suite_create("counters");
	TCase *c = tcase_create("counters");

	tcase_add_test(c, each_reason_has_its_name);
	tcase_add_test(c, groups_are_together);
	tcase_add_test(c, names_are_words_and_apart);
	tcase_add_test(c, each_count_is_shown_once);
	tcase_add_test(c, values);
	tcase_add_test(c, a_difference_is_never_below_zero);
	suite_add_tcase(s, c);
	return s;
}
