/* SPDX-License-Identifier: BSD-2-Clause */
/* test_least.c - the server with the fewest connections by weight. */
#include "test.h"

#include "least.h"
#include "servers.h"

static struct servers s;

START_TEST(connections_count_by_weight)
{
	servers_begin(&s, 3, 1);
	s.known[0].conns = 4;
	s.known[1].conns = 9;
	s.known[1].weight = 3;
	s.known[2].conns = 5;
	ck_assert_uint_eq(least_loaded(&s.fleet), 1);
	s.known[1].usable = false;
	ck_assert_uint_eq(least_loaded(&s.fleet), 0);
	servers_end(&s);
}
END_TEST

START_TEST(equals_have_turns)
{
	unsigned seen = 0;
	int i;

	servers_begin(&s, 3, 1);
	for (i = 0; i < 3; i++)
		seen |= 1u << least_loaded(&s.fleet);
	ck_assert_uint_eq(seen, 7);
	servers_end(&s);
}
END_TEST

START_TEST(others_come_when_the_first_are_gone)
{
	servers_begin(&s, 3, 1);
	s.fleet.n_first = 2;
	s.known[0].conns = 50;
	s.known[1].held = true;
	ck_assert_uint_eq(least_loaded(&s.fleet), 0);
	s.known[0].usable = false;
	ck_assert_uint_eq(least_loaded(&s.fleet), 1);
	s.known[1].closed = true;
	ck_assert_uint_eq(least_loaded(&s.fleet), 2);
	s.known[2].closed = true;
	ck_assert_uint_eq(least_loaded(&s.fleet), 1);
	/* Where requests can wait, they do not go to a drained one. */
	s.fleet.queue = 1;
	s.known[0].full = true;
	ck_assert_uint_eq(least_loaded(&s.fleet), 3);
	servers_end(&s);
}
END_TEST

Suite *suite_least(void);

Suite *
suite_least(void)
{
	Suite *suite = suite_create("least");
	TCase *t = tcase_create("least");

	tcase_add_test(t, connections_count_by_weight);
	tcase_add_test(t, equals_have_turns);
	tcase_add_test(t, others_come_when_the_first_are_gone);
	suite_add_tcase(suite, t);
	return suite;
}
