/* SPDX-License-Identifier: BSD-2-Clause */
/* test_blame.c - failures count against workers, and not against prompts. */
#include "test.h"

#include <string.h>

#include "blame.h"

#define SECOND INT64_C(1000000000)

enum { MOST = 4 };

static struct health workers[MOST], *fleet[MOST];
static struct blame blame;
static int64_t now;

static void
begin(void)
{
	size_t i;

	memset(workers, 0, sizeof(workers));
	memset(&blame, 0, sizeof(blame));
	now = 100 * SECOND;
	for (i = 0; i < MOST; i++) {
		fleet[i] = &workers[i];
		workers[i].key = i + 1;
		workers[i].share_at = (uint64_t)now;
	}
}

static bool
fails(size_t worker, uint64_t prompt, uint64_t client)
{
	now += SECOND / 100;
	return blame_failed(&blame, fleet, MOST, fleet[worker], prompt, client,
	    now);
}

static void
is_answered(size_t worker)
{
	now += SECOND / 100;
	(void)health_ended(fleet, MOST, fleet[worker], 8, now, false, now);
}

START_TEST(one_prompt_proves_nothing)
{
	int i;

	begin();
	for (i = 0; i < 100; i++) {
		ck_assert(!fails(1, 7, 9));
		ck_assert(!fails(1, 7, (uint64_t)i + 1));
		is_answered((size_t)i % MOST);
	}
}
END_TEST

START_TEST(one_client_proves_nothing_while_others_are_answered)
{
	uint64_t i;

	begin();
	for (i = 1; i < 400; i++) {
		ck_assert(!fails(1, i, 9));
		is_answered(i % MOST);
	}
}
END_TEST

START_TEST(several_clients_with_several_prompts_count)
{
	begin();
	ck_assert(!fails(1, 7, 9));
	ck_assert(fails(1, 8, 10));
	ck_assert(!fails(2, 20, 9));
	ck_assert(!fails(2, 20, 10));
	now += 20 * SECOND;
	ck_assert(!fails(1, 11, 12));
}
END_TEST

/* It is the prompt that fails, wherever it goes. */
START_TEST(a_prompt_that_fails_everywhere_counts_nowhere)
{
	uint64_t prompt;
	size_t i;

	begin();
	for (prompt = 1; prompt < 5; prompt++)
		for (i = 0; i < 2; i++)
			(void)fails(i, prompt, prompt);
	ck_assert(!fails(1, 4, 30));
	ck_assert(!fails(0, 3, 31));
}
END_TEST

/* It answers nothing, and the others do. */
START_TEST(a_worker_that_only_fails_counts)
{
	size_t i;

	begin();
	for (i = 1; i < 6; i++)
		ck_assert(!fails(1, i, 9));
	now += SECOND;
	ck_assert(!fails(1, 6, 9));
	is_answered(0);
	is_answered(2);
	ck_assert(fails(1, 7, 9));
	is_answered(1);
	ck_assert(!fails(1, 8, 9));
	now += SECOND;
	ck_assert(!fails(1, 9, 9));
}
END_TEST

/* As above, but the client has failed at another one, too. */
START_TEST(a_client_that_fails_at_two_workers_proves_nothing)
{
	size_t i;

	begin();
	ck_assert(!fails(3, 40, 9));
	for (i = 1; i < 6; i++)
		ck_assert(!fails(1, i, 9));
	now += SECOND;
	is_answered(0);
	is_answered(2);
	ck_assert(!fails(1, 7, 9));
	ck_assert(fails(1, 8, 10));
}
END_TEST

/* All fail for one client, and answer others now and then. */
START_TEST(a_client_that_fails_everywhere_counts_nowhere)
{
	uint64_t i;

	begin();
	for (i = 1; i < 200; i++) {
		ck_assert(!fails(i % MOST, i, 9));
		ck_assert(!fails(i * 7 % MOST, i + 1000, 9));
		now += SECOND / 2;
		is_answered(i * 3 % MOST);
	}
}
END_TEST

/* What is no evidence delays the next probe. */
START_TEST(probes_that_prove_nothing_are_repeated)
{
	begin();
	workers[1].verdict = HEALTH_FAILING;
	workers[1].probe_at = (uint64_t)now;
	ck_assert(!fails(1, 7, 9));
	ck_assert(!health_is_due(fleet[1], 0, now));
	ck_assert(health_is_due(fleet[1], 0, now + SECOND));
	ck_assert_uint_eq(workers[1].bad, 0);
}
END_TEST

/* The oldest are forgotten. */
START_TEST(more_failures_than_places)
{
	uint64_t i;

	begin();
	ck_assert(!fails(0, 1, 1));
	for (i = 0; i < BLAME_FAILURES; i++)
		ck_assert(!fails(1, 2, 2));
	ck_assert(!fails(0, 3, 3));
	ck_assert(fails(0, 4, 4));
}
END_TEST

Suite *suite_blame(void);

Suite *
suite_blame(void)
{
	Suite *s = suite_create("blame");
	TCase *c = tcase_create("blame");

	tcase_add_test(c, one_prompt_proves_nothing);
	tcase_add_test(c, one_client_proves_nothing_while_others_are_answered);
	tcase_add_test(c, several_clients_with_several_prompts_count);
	tcase_add_test(c, a_prompt_that_fails_everywhere_counts_nowhere);
	tcase_add_test(c, a_worker_that_only_fails_counts);
	tcase_add_test(c, a_client_that_fails_at_two_workers_proves_nothing);
	tcase_add_test(c, a_client_that_fails_everywhere_counts_nowhere);
	tcase_add_test(c, probes_that_prove_nothing_are_repeated);
	tcase_add_test(c, more_failures_than_places);
	suite_add_tcase(s, c);
	return s;
}
