/* SPDX-License-Identifier: BSD-2-Clause */
/* test_known.c - servers are found by name and by worker. */
#include "test.h"

#include "servers.h"

static struct servers s;

START_TEST(servers_are_found_by_name)
{
	servers_begin(&s, 3, 2);
	ck_assert_uint_eq(known_find(&s.fleet, "s1", 2, 3), 1);
	ck_assert_uint_eq(known_find(&s.fleet, "s1", 2, 1), 1);
	ck_assert_uint_eq(known_find(&s.fleet, "s2", 2, 2), 2);
	ck_assert_uint_eq(known_find(&s.fleet, "s", 1, 3), 3);
	ck_assert_uint_eq(known_ranks_named(&s.fleet, "s2", 2), 2);
	ck_assert_uint_eq(known_ranks_named(&s.fleet, "s3", 2), 0);
	servers_end(&s);
}
END_TEST

START_TEST(servers_are_found_by_worker)
{
	uint32_t rank;

	servers_begin(&s, 3, 2);
	ck_assert_uint_eq(known_of_worker(&s.fleet, s.ids[2][1], &rank), 2);
	ck_assert_uint_eq(rank, 1);
	ck_assert_uint_eq(known_of_worker(&s.fleet, s.ids[2][1] + 99, &rank),
	    3);
	servers_end(&s);
}
END_TEST

START_TEST(a_server_without_ranks_is_one_worker)
{
	struct server_facts facts = { .ranks = 0 };

	ck_assert_uint_eq(known_ranks(NULL), 1);
	ck_assert_uint_eq(known_ranks(&facts), 1);
	facts.ranks = 8;
	ck_assert_uint_eq(known_ranks(&facts), 8);
}
END_TEST

START_TEST(all_ids_become_due)
{
	servers_begin(&s, 1, 3);
	s.known[0].due = 0;
	s.flags[0][1] = KNOWN_OPEN;
	known_ids_due(&s.known[0]);
	ck_assert_uint_eq(s.known[0].due, 3);
	ck_assert_uint_eq(s.flags[0][1], KNOWN_DUE | KNOWN_OPEN);
	servers_end(&s);
}
END_TEST

START_TEST(lines_of_the_log_have_a_level_and_an_end)
{
	char text[2048];

	servers_begin(&s, 1, 1);
	fleet_log(&s.fleet, NULL, FLEET_NOTICE, "%d of %s", 3, "four");
	fleet_log(&s.fleet, NULL, FLEET_ERROR, "all");
	ck_servers_log(&s, "n 3 of four\ne all\n");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	fleet_log(&s.fleet, NULL, FLEET_WARN, "%s", text);
	ck_assert_uint_eq(strlen(s.log), 1003);
	s.fleet.log = NULL;
	fleet_log(&s.fleet, NULL, FLEET_WARN, "nothing");
	ck_assert_uint_eq(strlen(s.log), 1003);
	servers_end(&s);
}
END_TEST

Suite *suite_known(void);

Suite *
suite_known(void)
{
	Suite *suite = suite_create("known");
	TCase *t = tcase_create("known");

	tcase_add_test(t, servers_are_found_by_name);
	tcase_add_test(t, servers_are_found_by_worker);
	tcase_add_test(t, a_server_without_ranks_is_one_worker);
	tcase_add_test(t, all_ids_become_due);
	tcase_add_test(t, lines_of_the_log_have_a_level_and_an_end);
	suite_add_tcase(suite, t);
	return suite;
}
