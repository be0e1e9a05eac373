/* SPDX-License-Identifier: BSD-2-Clause */
/* test_judge.c - gray and cold servers are held back, by evidence. */
#include "test.h"

#include "evidence.h"
#include "judge.h"
#include "servers.h"
#include "status.h"

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)

static struct servers a;
static int64_t now;

static void
begin(size_t n)
{
	servers_begin(&a, n, 1);
	a.fleet.gray = 4;
	now = 1000 * SECOND;
	judge_follow(&a.fleet);
	ck_assert_uint_eq(a.fleet.n_judged, n);
}

/* One try of a request that fails, with digests of its prompt and client. */
static void
try_fails(struct evidence *e, size_t i, uint64_t prompt, uint64_t client)
{
	struct kvr_report report = { .size = sizeof(report) };
	struct evidence_end how = { .head_ns = -1, .report = &report };

	evidence_sent(&a.fleet, e, i, a.ids[i][0], now);
	e->prompts = true;
	now += 10 * MS;
	e->failed = e->answered = true;
	e->failed_prompt = prompt;
	e->failed_client = client;
	evidence_end(&a.fleet, e, &how, now, NULL);
}

static void
try_answers(struct evidence *e, size_t i, int64_t ns)
{
	struct kvr_report report = { .size = sizeof(report),
	    .kind = KVR_REPORT_VALUE, .prompt_tokens = 6400,
	    .completion_tokens = 1 };
	struct evidence_end how = { .worker = a.ids[i][0], .taken = true,
	    .head_ns = ns, .report = &report };

	evidence_sent(&a.fleet, e, i, a.ids[i][0], now);
	e->prompts = true;
	e->name = a.known[i].name;
	e->name_len = a.known[i].name_len;
	e->answered = true;
	evidence_accepted(&a.fleet, e, now, NULL);
	now += ns;
	evidence_end(&a.fleet, e, &how, now, NULL);
}

static void
all_answer(size_t slow, int64_t ns)
{
	struct evidence e;
	size_t i;

	for (i = 0; i < a.fleet.n_known; i++) {
		memset(&e, 0, sizeof(e));
		try_answers(&e, i, i == slow ? ns : 10 * MS);
	}
}

static void
becomes_gray(size_t slow)
{
	int tries = 100;

	a.log[0] = '\0';
	do {
		all_answer(slow, 1000 * MS);
		(void)judge_look(&a.fleet, now);
	} while (!a.known[slow].gray && --tries > 0);
	ck_assert_int_gt(tries, 0);
}

START_TEST(a_slow_server_is_held_back)
{
	struct status_health list[3];

	begin(3);
	ck_assert(!judge_look(&a.fleet, now));
	becomes_gray(1);
	ck_assert(judge_look(&a.fleet, now));
	ck_assert(a.known[1].held);
	ck_assert(!a.known[0].held);
	ck_servers_log(&a, "w worker \"s1\" is much slower than the others: it "
	    "is gray\n");
	ck_assert_uint_eq(a.common->shared.counts[COUNT_GRAY], 1);
	ck_assert_uint_eq(judge_list(&a.fleet, list, now), 3);
	ck_assert_str_eq(list[0].what, "good");
	ck_assert_str_eq(list[1].what, "slow");
	judge_forget(&a.fleet, "s1", 2);
	ck_assert(!judge_look(&a.fleet, now));
	servers_end(&a);
}
END_TEST

START_TEST(probes_heal_a_server)
{
	struct evidence e;
	int tries = 100;
	size_t i;

	begin(3);
	becomes_gray(1);
	a.log[0] = '\0';
	do {
		now += SECOND;
		all_answer(3, 0);
		i = judge_probe(&a.fleet, true, now);
		if (i == 3)
			continue;
		ck_assert_uint_eq(i, 1);
		ck_assert_uint_eq(judge_probe(&a.fleet, true, now), 3);
		memset(&e, 0, sizeof(e));
		try_answers(&e, 1, 10 * MS);
	} while (judge_look(&a.fleet, now) && --tries > 0);
	ck_assert_int_gt(tries, 0);
	ck_servers_log(&a, "n worker \"s1\" is as good as the others again\n");
	ck_assert_uint_eq(a.common->shared.counts[COUNT_HEALED], 1);
	servers_end(&a);
}
END_TEST

/* A prompt that another server answers is not to blame. */
START_TEST(failures_count_once_a_retry_is_answered)
{
	struct evidence e;
	int tries = 50;

	begin(3);
	do {
		all_answer(3, 0);
		memset(&e, 0, sizeof(e));
		try_fails(&e, 2, 7, 9);
		ck_assert_uint_eq(e.n_tries, 1);
		try_answers(&e, 0, 10 * MS);
		ck_assert_uint_eq(e.n_tries, 0);
		(void)judge_look(&a.fleet, now);
	} while (!a.known[2].gray && --tries > 0);
	ck_assert_int_gt(tries, 0);
	ck_servers_log(&a, "w worker \"s2\" fails more often than the others: "
	    "it is gray\n");
	servers_end(&a);
}
END_TEST

START_TEST(a_prompt_that_fails_everywhere_is_to_blame)
{
	struct evidence e;
	int i;

	begin(3);
	for (i = 0; i < 50; i++) {
		all_answer(3, 0);
		memset(&e, 0, sizeof(e));
		try_fails(&e, 0, 7, 9);
		try_fails(&e, 1, 7, 9);
		try_fails(&e, 2, 7, 9);
		ck_assert(!judge_look(&a.fleet, now));
	}
	servers_end(&a);
}
END_TEST

START_TEST(failing_servers_are_spared_while_others_are_full)
{
	struct evidence e;
	int i;

	begin(3);
	for (i = 0; i < 50; i++) {
		all_answer(3, 0);
		memset(&e, 0, sizeof(e));
		try_fails(&e, 2, 7, 9);
		try_answers(&e, 0, 10 * MS);
	}
	a.fleet.queue = 8;
	judge_mark(&a.fleet);
	ck_assert(a.known[2].gray && a.known[2].usable);
	a.known[0].full = true;
	a.known[0].usable = false;
	judge_mark(&a.fleet);
	ck_assert(a.known[2].spared && a.known[2].full && !a.known[2].usable);
	servers_end(&a);
}
END_TEST

START_TEST(a_server_that_joins_warms_up)
{
	struct status_health list[3];
	struct evidence e = { .n_tries = 0 };
	uint64_t keys[3];
	size_t i;

	servers_begin(&a, 3, 1);
	a.fleet.slow_start_ms = 10000;
	now = 1000 * SECOND;
	for (i = 0; i < 3; i++)
		keys[i] = a.known[i].key;
	/* At the first start all are new, and none has to warm up. */
	judge_prepare(&a.fleet, keys, 2);
	judge_follow(&a.fleet);
	judge_list(&a.fleet, list, now);
	ck_assert_str_eq(list[0].what, "good");
	ck_assert_str_eq(list[2].what, "warming");
	for (i = 0; i < 3; i++)
		a.known[i].conns = 10;
	ck_assert(judge_look(&a.fleet, now));
	ck_assert(a.known[2].held && !a.known[1].held);
	try_answers(&e, 2, 10 * MS);
	ck_servers_log(&a, "n worker \"s2\" warms up\n");
	ck_assert(!judge_look(&a.fleet, now + 11 * SECOND));
	/* One that leaves is new again. */
	judge_leave(&a.fleet, keys[1]);
	a.known[1].health = NULL;
	judge_follow_late(&a.fleet);
	ck_assert(judge_look(&a.fleet, now + 11 * SECOND));
	ck_assert(a.known[1].held);
	servers_end(&a);
}
END_TEST

START_TEST(a_slow_stream_is_seen_before_it_ends)
{
	struct evidence e, other;
	uint64_t events;
	int step;

	begin(3);
	for (step = 0; step < 20; step++)
		all_answer(3, 0);
	memset(&e, 0, sizeof(e));
	evidence_sent(&a.fleet, &e, 1, a.ids[1][0], now);
	e.prompts = true;
	e.name = "s1";
	e.name_len = 2;
	evidence_progress(&a.fleet, &e, 1, a.ids[1][0], now, NULL);
	for (events = 2; events < 40 && !a.known[1].gray; events++) {
		now += 2001 * MS;
		memset(&other, 0, sizeof(other));
		try_answers(&other, 0, 10 * MS);
		try_answers(&other, 2, 10 * MS);
		evidence_progress(&a.fleet, &e, events, a.ids[1][0], now,
		    NULL);
		(void)judge_look(&a.fleet, now);
	}
	ck_assert(a.known[1].gray);
	servers_end(&a);
}
END_TEST

START_TEST(a_place_of_another_server_gets_no_evidence)
{
	struct evidence e = { .n_tries = 0 };

	begin(2);
	evidence_sent(&a.fleet, &e, 2, 0, now);
	ck_assert(!e.due);
	a.known[1].health->key++;
	evidence_sent(&a.fleet, &e, 1, a.ids[1][0], now);
	ck_assert(!e.due);
	ck_assert(evidence_is_refusal(429) && evidence_is_refusal(503));
	ck_assert(!evidence_is_refusal(501) && !evidence_is_refusal(404));
	servers_end(&a);
}
END_TEST

START_TEST(sessions_of_servers_that_are_held_back)
{
	begin(2);
	ck_assert(!judge_session(&a.fleet, 0, now));
	ck_assert(!judge_session(&a.fleet, 77, now));
	servers_end(&a);
}
END_TEST

Suite *suite_judge(void);

Suite *
suite_judge(void)
{
	Suite *suite = suite_create("judge");
	TCase *t = tcase_create("judge");

	tcase_add_test(t, a_slow_server_is_held_back);
	tcase_add_test(t, probes_heal_a_server);
	tcase_add_test(t, failures_count_once_a_retry_is_answered);
	tcase_add_test(t, a_prompt_that_fails_everywhere_is_to_blame);
	tcase_add_test(t, failing_servers_are_spared_while_others_are_full);
	tcase_add_test(t, a_server_that_joins_warms_up);
	tcase_add_test(t, a_slow_stream_is_seen_before_it_ends);
	tcase_add_test(t, a_place_of_another_server_gets_no_evidence);
	tcase_add_test(t, sessions_of_servers_that_are_held_back);
	suite_add_tcase(suite, t);
	return suite;
}
