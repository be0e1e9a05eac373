/* SPDX-License-Identifier: BSD-2-Clause */
/* test_fleet_facts.c - the facts of a fleet outlive its servers. */
#include "test.h"

#include "alloc.h"
#include "fleet_facts.h"

static struct shared shared;
static struct known known[2];
static struct server_facts told = { .ask = true };
static struct member_left gone = { .id = 7 };
static struct members members = { .left = &gone, .n_left = 1 };
static struct places places;
static struct fleet fleet;

static void
begin(void)
{
	memset(&shared, 0, sizeof(shared));
	memset(known, 0, sizeof(known));
	shared.counts[COUNT_RETRIES] = 3;
	memcpy(known[0].name, "told", 4);
	memcpy(known[1].name, "read", 4);
	known[0].name_len = known[1].name_len = 4;
	known[1].facts = &told;
	fleet = (struct fleet){ .shared = &shared, .known = known,
	    .n_known = 2, .n_first = 2, .n_workers = 2 };
	places.fleet = &fleet;
}

START_TEST(copied)
{
	struct status_upstream up = { .name = "engines" };
	struct fleet_facts facts;

	begin();
	ck_assert(fleet_facts_take(&facts, &up, &fleet, &fleet, &places,
	    &members, 1));
	memset(known, 'x', sizeof(known));
	shared.counts[COUNT_RETRIES] = 4;
	gone.id = 8;
	ck_assert_str_eq(up.name, "engines");
	ck_assert_uint_eq(up.n_asked, 1);
	ck_assert_uint_eq(up.asked[0].length, 4);
	ck_assert_int_eq(memcmp(up.asked[0].bytes, "read", 4), 0);
	ck_assert_uint_eq(up.n_left, 1);
	ck_assert_uint_eq(up.left[0], 7);
	ck_assert_uint_eq(up.counters->count[COUNT_RETRIES], 3);
	ck_assert_uint_eq(up.n_loads + up.n_healths + up.queue, 0);
	gone.id = 7;
	fleet_facts_free(&facts);
}
END_TEST

START_TEST(without_memory)
{
	struct status_upstream up = { .name = NULL };
	struct fleet_facts facts;
	unsigned long fail;

	begin();
	for (fail = 1; fail <= 5; fail++) {
		alloc_fail_at(fail);
		ck_assert(!fleet_facts_take(&facts, &up, &fleet, &fleet,
		    &places, NULL, 1));
		alloc_reset();
		ck_assert_ptr_null(facts.names);
	}
}
END_TEST

Suite *suite_fleet_facts(void);

Suite *
suite_fleet_facts(void)
{
	Suite *suite = suite_create("fleet_facts");
	TCase *t = tcase_create("fleet_facts");

	tcase_add_test(t, copied);
	tcase_add_test(t, without_memory);
	suite_add_tcase(suite, t);
	return suite;
}
