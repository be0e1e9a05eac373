/* SPDX-License-Identifier: BSD-2-Clause */
/* test_known_list.c - servers come and go, and the rest of them stays. */
#include "test.h"

#include <stdlib.h>

#include "known_list.h"

static struct fleet fleet;
static struct server_facts facts = { .ranks = 2 };

/* A list of servers with these names of one letter. */
static struct known_list
list_of(const char *names)
{
	struct known_list l = { .n = strlen(names), .n_first = strlen(names) };
	size_t i;

	l.known = calloc(l.n + 1, sizeof(*l.known));
	ck_assert_ptr_nonnull(l.known);
	for (i = 0; i < l.n; i++) {
		l.known[i].name[0] = names[i];
		l.known[i].name_len = 1;
		l.known[i].weight = 1;
		l.known[i].facts = names[i] == 'b' ? &facts : NULL;
	}
	ck_assert(known_list_fill(&l));
	return l;
}

static void
list_set(const char *names)
{
	struct known_list l = list_of(names);

	known_list_keep(&l, &fleet);
	known_list_take(&l, &fleet);
}

START_TEST(kept)
{
	uint64_t *ids;

	list_set("ab");
	ck_assert_uint_eq(fleet.n_workers, 3);
	ck_assert_uint_eq(fleet.known[1].ranks, 2);
	ck_assert(fleet.known[1].named);
	ck_assert_uint_eq(fleet.known[1].due, 2);
	ids = fleet.known[1].ids;
	fleet.known[1].joined = true;
	fleet.known[1].due = 0;
	fleet.known[1].prefills_after = 7;
	list_set("cb");
	ck_assert_uint_eq(fleet.n_known, 2);
	ck_assert_ptr_eq(fleet.known[1].ids, ids);
	ck_assert(fleet.known[1].joined);
	ck_assert_int_eq(fleet.known[1].prefills_after, 7);
	ck_assert_int_eq(fleet.known[0].prefills_after, 0);
	ck_assert_uint_eq(fleet.known[1].due, 0);
	ck_assert_uint_eq(fleet.known[0].due, 1);
	ck_assert(!fleet.known[0].named);
	known_list_leave(&fleet);
	ck_assert_uint_eq(fleet.n_known, 0);
	ck_assert_uint_eq(fleet.n_workers, 0);
	known_list_leave(&fleet);
}
END_TEST

/* Another weight is to be told to the region. */
START_TEST(weight)
{
	struct known_list l;

	list_set("a");
	fleet.known[0].joined = true;
	l = list_of("a");
	l.known[0].weight = 2;
	known_list_keep(&l, &fleet);
	known_list_take(&l, &fleet);
	ck_assert(!fleet.known[0].joined);
	known_list_leave(&fleet);
}
END_TEST

Suite *suite_known_list(void);

Suite *
suite_known_list(void)
{
	Suite *suite = suite_create("known_list");
	TCase *t = tcase_create("known_list");

	tcase_add_test(t, kept);
	tcase_add_test(t, weight);
	suite_add_tcase(suite, t);
	return suite;
}
