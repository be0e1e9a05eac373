/* SPDX-License-Identifier: BSD-2-Clause */
/* test_lacking.c - ranks that an engine lacks are drained. */
#include "test.h"

#include "lacking.h"
#include "servers.h"

enum { UP = KVR_STATE_UP, DRAINED = KVR_STATE_DRAINING };

static struct servers a, b;

static void
ck_states(uint32_t first, uint32_t second, uint32_t third)
{
	ck_assert_uint_eq(servers_state(&a, 0, 0), first);
	ck_assert_uint_eq(servers_state(&a, 0, 1), second);
	ck_assert_uint_eq(servers_state(&a, 0, 2), third);
}

static void
serves(struct servers *s, uint32_t rank)
{
	ck_assert(!lacking_answered(&s->fleet, 0, rank, 200));
}

/* And rank 0 accepts the same request. */
static void
refuses(struct servers *s, uint32_t rank)
{
	ck_assert(lacking_answered(&s->fleet, 0, rank, 400));
	serves(s, 0);
	lacking_proved(&s->fleet, 0, rank, NULL);
}

START_TEST(ranks_that_are_not_published_are_drained)
{
	uint64_t epoch;

	servers_begin(&a, 1, 3);
	lacking_found(&a.fleet, 0, 0, NULL);
	lacking_found(&a.fleet, 0, 1, NULL);
	lacking_found(&a.fleet, 0, 3, NULL);
	ck_states(UP, UP, UP);
	ck_servers_log(&a, "");
	epoch = a.common->shared.epoch;
	lacking_found(&a.fleet, 0, 2, NULL);
	ck_states(UP, UP, DRAINED);
	ck_assert_uint_ne(a.common->shared.epoch, epoch);
	ck_servers_log(&a, "w s0 has 2 data-parallel ranks, and ranks=3 is "
	    "configured: ranks from 2 on are drained\n");
	lacking_found(&a.fleet, 0, 2, NULL);
	ck_servers_log(&a, "");
	lacking_found(&a.fleet, 0, 4, NULL);
	ck_states(UP, UP, UP);
	ck_servers_log(&a, "n s0 has 4 data-parallel ranks now: 1 of them are "
	    "up again\n");
	servers_end(&a);
}
END_TEST

START_TEST(a_rank_that_an_operator_drained_stays_so)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	servers_begin(&a, 1, 3);
	ck_assert_int_eq(kvr_worker_get(a.fleet.kvr, a.ids[0][1], &facts),
	    KVR_OK);
	facts.state = KVR_STATE_DRAINING;
	ck_assert_int_eq(kvr_worker_set(a.fleet.kvr, a.ids[0][1], &facts),
	    KVR_OK);
	lacking_found(&a.fleet, 0, 2, NULL);
	lacking_found(&a.fleet, 0, 3, NULL);
	ck_states(UP, DRAINED, UP);
	/* An order makes it the operator's. */
	lacking_found(&a.fleet, 0, 2, NULL);
	lacking_forget(&a.fleet, a.known[0].key, 2);
	lacking_found(&a.fleet, 0, 3, NULL);
	ck_states(UP, DRAINED, DRAINED);
	servers_end(&a);
}
END_TEST

START_TEST(a_rank_whose_request_the_first_accepts_is_drained)
{
	servers_begin(&a, 1, 3);
	refuses(&a, 2);
	ck_states(UP, UP, DRAINED);
	refuses(&a, 1);
	ck_states(UP, DRAINED, DRAINED);
	ck_servers_log(&a, "w s0 refuses requests to its data-parallel rank 2, "
	    "and ranks=3 is configured: ranks from 2 on are drained; give "
	    "ranks=2 if it has no more, or order \"up\" if it has\n"
	    "w s0 refuses requests to its data-parallel rank 1, "
	    "and ranks=3 is configured: ranks from 1 on are drained; give "
	    "ranks=1 if it has no more, or order \"up\" if it has\n");
	servers_end(&a);
}
END_TEST

/* Also if another process has seen that. */
START_TEST(a_rank_is_not_lacking_below_one_that_serves)
{
	servers_begin(&a, 1, 3);
	servers_join(&b, &a);
	serves(&b, 2);
	refuses(&a, 1);
	ck_states(UP, UP, UP);
	ck_servers_log(&a, "");
	kvr_free(b.fleet.kvr);
	servers_end(&a);
}
END_TEST

START_TEST(a_rank_that_has_served_refuses_for_other_reasons)
{
	servers_begin(&a, 1, 3);
	serves(&a, 1);
	ck_assert(!lacking_answered(&a.fleet, 0, 1, 400));
	ck_assert(!lacking_answered(&a.fleet, 0, 2, 500));
	ck_assert(lacking_answered(&a.fleet, 0, 2, 422));
	/* There is always a first one. */
	ck_assert(!lacking_answered(&a.fleet, 0, 0, 400));
	servers_end(&a);
}
END_TEST

START_TEST(a_full_table_notes_no_more)
{
	size_t i;

	servers_begin(&a, 1, 3);
	for (i = 0; i < SHARED_RANKS; i++)
		a.common->shared.ranks[i].tag = 1;
	ck_assert(!lacking_answered(&a.fleet, 0, 1, 400));
	lacking_forget(&a.fleet, a.known[0].key, 1);
	lacking_found(&a.fleet, 0, 2, NULL);
	ck_states(UP, UP, DRAINED);
	servers_end(&a);
}
END_TEST

Suite *suite_lacking(void);

Suite *
suite_lacking(void)
{
	Suite *suite = suite_create("lacking");
	TCase *t = tcase_create("lacking");

	tcase_add_test(t, ranks_that_are_not_published_are_drained);
	tcase_add_test(t, a_rank_that_an_operator_drained_stays_so);
	tcase_add_test(t, a_rank_whose_request_the_first_accepts_is_drained);
	tcase_add_test(t, a_rank_is_not_lacking_below_one_that_serves);
	tcase_add_test(t, a_rank_that_has_served_refuses_for_other_reasons);
	tcase_add_test(t, a_full_table_notes_no_more);
	suite_add_tcase(suite, t);
	return suite;
}
