/* SPDX-License-Identifier: BSD-2-Clause */
/* test_roles.c - servers that prefill for others. */
#include "test.h"

#include "roles.h"
#include "servers.h"

#define NOW INT64_C(1000000000)

static struct servers s;

/* s0 decodes, s1 prefills, s2 does both, with two ranks each. */
static void
begin(void)
{
	servers_begin(&s, 3, 2);
	s.facts[0].worker.role = KVR_ROLE_DECODE;
	s.facts[1].worker.role = KVR_ROLE_PREFILL;
	s.known[2].facts = NULL;
	s.fleet.split = 100;
}

START_TEST(usable_by_role)
{
	begin();
	s.known[1].full = false;
	roles_mark(&s.fleet, NOW);
	ck_assert(s.known[0].usable && !s.known[0].prefills);
	ck_assert(!s.known[1].usable && s.known[1].prefills);
	ck_assert(s.known[2].usable && s.known[2].prefills);
	ck_assert(roles_split(&s.fleet));
	ck_assert_uint_eq(roles_allow(&s.fleet, "s0", 2), 4);
	ck_assert_uint_eq(roles_allow(&s.fleet, "s2", 2), 2);
	ck_assert_uint_eq(s.fleet.allowed[0], s.ids[1][0]);
	s.ids[1][0] = 0;
	ck_assert_uint_eq(roles_allow(&s.fleet, "s2", 2), 1);
	servers_end(&s);
}
END_TEST

START_TEST(no_split)
{
	begin();
	s.known[0].usable = false;
	roles_mark(&s.fleet, NOW);
	ck_assert(!roles_split(&s.fleet));
	s.known[0].usable = true;
	s.known[1].closed = true;
	s.known[2].down = true;
	roles_mark(&s.fleet, NOW);
	ck_assert(!roles_split(&s.fleet));
	s.known[1].closed = false;
	s.known[1].full = true;
	roles_mark(&s.fleet, NOW);
	ck_assert(!roles_split(&s.fleet) && !s.known[1].full);
	roles_mark(&s.fleet, NOW);
	ck_assert(roles_split(&s.fleet));
	servers_end(&s);
}
END_TEST

START_TEST(what_the_target_lacks)
{
	struct kvr_decision d = { .prompt_tokens = 500, .overlap_tokens = 399 };

	begin();
	ck_assert(roles_leaves(&s.fleet, 0, &d));
	ck_assert(!roles_leaves(&s.fleet, 2, &d));
	ck_assert(!roles_leaves(&s.fleet, 3, &d));
	d.overlap_tokens = 400;
	ck_assert(!roles_leaves(&s.fleet, 0, &d));
	d.overlap_tokens = 600;
	ck_assert(!roles_leaves(&s.fleet, 0, &d));
	servers_end(&s);
}
END_TEST

START_TEST(failed_for_a_while)
{
	begin();
	s.known[2].down = true;
	roles_failed(&s.fleet, "s1", 2, NOW);
	roles_failed(&s.fleet, "s9", 2, NOW);
	roles_mark(&s.fleet, NOW + 9 * NOW);
	ck_assert(!roles_split(&s.fleet));
	roles_mark(&s.fleet, NOW + 10 * NOW);
	ck_assert(roles_split(&s.fleet));
	servers_end(&s);
}
END_TEST

Suite *suite_roles(void);

Suite *
suite_roles(void)
{
	Suite *suite = suite_create("roles");
	TCase *t = tcase_create("roles");

	tcase_add_test(t, usable_by_role);
	tcase_add_test(t, no_split);
	tcase_add_test(t, what_the_target_lacks);
	tcase_add_test(t, failed_for_a_while);
	suite_add_tcase(suite, t);
	return suite;
}
