/* SPDX-License-Identifier: BSD-2-Clause */
/* test_replicas.c - requests of the dead are ended, and loads of replicas. */
#include "test.h"

#include <signal.h>
#include <sys/wait.h>

#include "replicas.h"
#include "servers.h"

static struct servers a;
static struct replicas seen;
static struct kvr_prompt *prompt;

static void
begin(void)
{
	memset(&seen, 0, sizeof(seen));
	servers_begin(&a, 2, 1);
	ck_assert_int_eq(kvr_prompt_new(a.fleet.kvr, &prompt), KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_bytes(prompt, NULL,
	    "0123456789abcdef0123456789abcdef", 32), KVR_OK);
}

static void
end(void)
{
	kvr_prompt_free(prompt);
	servers_end(&a);
}

static void
lease(uint64_t owner)
{
	struct kvr_request request;
	struct kvr_decision d = { .size = sizeof(d) };

	ck_assert_int_eq(kvr_request_init(&request, sizeof(request)), KVR_OK);
	request.owner = owner;
	ck_assert_int_eq(kvr_lease_open(a.fleet.kvr, prompt, &request,
	    kvr_clock_now(), &d), KVR_OK);
}

static uint64_t
requests(void)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < a.fleet.n_known; i++) {
		s.size = sizeof(s);
		ck_assert_int_eq(kvr_worker_stats_get(a.fleet.kvr, a.ids[i][0],
		    &s), KVR_OK);
		n += s.requests;
	}
	return n;
}

START_TEST(requests_of_a_process_that_died_end)
{
	char line[128];
	pid_t child;
	int status;

	begin();
	replicas_begin(&a.fleet, &seen, kvr_clock_now());
	child = fork();
	if (child == 0) {
		(void)pause();
		test_exit(0);
	}
	lease(seen.self);
	lease((seen.self & ~UINT64_C(0xffffffff)) | (uint32_t)child);
	lease((seen.self & ~UINT64_C(0xffffffff)) | (uint32_t)child);
	ck_assert(replicas_watch(&a.fleet, &seen, kvr_clock_now(), NULL));
	ck_assert_uint_eq(requests(), 3);
	ck_servers_log(&a, "");
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(replicas_watch(&a.fleet, &seen, kvr_clock_now(), NULL));
	ck_assert_uint_eq(requests(), 1);
	(void)snprintf(line, sizeof(line), "n ended 2 requests of process %d "
	    "that died\n", (int)child);
	ck_servers_log(&a, line);
	end();
}
END_TEST

START_TEST(processes_of_another_room_are_left_alone)
{
	begin();
	replicas_begin(&a.fleet, &seen, kvr_clock_now());
	lease((seen.self ^ UINT64_C(1) << 40) | 0x7fffffff);
	lease(0);
	ck_assert(replicas_watch(&a.fleet, &seen, kvr_clock_now(), NULL));
	ck_assert_uint_eq(requests(), 2);
	end();
}
END_TEST

START_TEST(requests_of_a_process_with_this_pid_end_at_its_begin)
{
	begin();
	replicas_begin(&a.fleet, &seen, kvr_clock_now());
	lease(seen.self);
	replicas_begin(&a.fleet, &seen, kvr_clock_now());
	ck_assert_uint_eq(requests(), 0);
	end();
}
END_TEST

START_TEST(what_was_brought_stays_while_nothing_is_silent)
{
	begin();
	replicas_begin(&a.fleet, &seen, kvr_clock_now());
	lease(UINT64_C(0xffffffff) << 32 | 7);
	ck_assert(replicas_watch(&a.fleet, &seen, kvr_clock_now(), NULL));
	ck_assert_uint_eq(requests(), 1);
	end();
}
END_TEST

START_TEST(silence_ends_all_that_was_brought)
{
	struct kvr_load load = { .size = sizeof(load), .requests = 5 };
	struct replicas other = { .self = 0 };
	int64_t now = kvr_clock_now();
	struct servers b;

	begin();
	servers_join(&b, &a);
	replicas_begin(&a.fleet, &seen, now);
	ck_assert_int_eq(kvr_journal_beat(a.fleet.kvr, now), KVR_OK);
	ck_assert_int_eq(kvr_worker_set_load(a.fleet.kvr, a.ids[1][0],
	    KVR_LOAD_SOURCES - 1, &load), KVR_OK);
	lease(UINT64_C(0xffffffff) << 32 | 7);
	lease(seen.self);
	ck_assert(replicas_watch(&a.fleet, &seen, now + 3000000000, NULL));
	ck_assert_uint_eq(requests(), 7);
	ck_assert(replicas_watch(&a.fleet, &seen, now + 3000000001, NULL));
	ck_assert_uint_eq(requests(), 1);
	ck_servers_log(&a, "n kvroute-sync is silent: requests and loads of "
	    "other machines end\n");
	/* Another process does the same, and does not log it. */
	ck_assert(replicas_watch(&b.fleet, &other, now + 4000000000, NULL));
	ck_servers_log(&b, "");
	/* It beats again, and is silent again. */
	ck_assert_int_eq(kvr_journal_beat(a.fleet.kvr, now + 5000000000),
	    KVR_OK);
	ck_assert_int_eq(kvr_worker_set_load(a.fleet.kvr, a.ids[0][0],
	    KVR_LOAD_SOURCES - 1, &load), KVR_OK);
	ck_assert(replicas_watch(&a.fleet, &seen, now + 5000000000, NULL));
	ck_assert_uint_eq(requests(), 6);
	ck_assert(replicas_watch(&b.fleet, &other, now + 9000000000, NULL));
	ck_assert_uint_eq(requests(), 1);
	kvr_free(b.fleet.kvr);
	end();
}
END_TEST

Suite *suite_replicas(void);

Suite *
suite_replicas(void)
{
	Suite *suite = suite_create("replicas");
	TCase *t = tcase_create("replicas");

	tcase_add_test(t, requests_of_a_process_that_died_end);
	tcase_add_test(t, processes_of_another_room_are_left_alone);
	tcase_add_test(t, requests_of_a_process_with_this_pid_end_at_its_begin);
	tcase_add_test(t, what_was_brought_stays_while_nothing_is_silent);
	tcase_add_test(t, silence_ends_all_that_was_brought);
	suite_add_tcase(suite, t);
	return suite;
}
