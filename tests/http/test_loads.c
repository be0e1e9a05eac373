/* SPDX-License-Identifier: BSD-2-Clause */
/* test_loads.c - one process polls, and the loads of engines end in time. */
#include "test.h"

#include <signal.h>
#include <sys/wait.h>

#include "loads.h"
#include "servers.h"
#include "status.h"

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)

static struct servers a, b;
static int64_t now;

static void
polls_make(struct servers *s)
{
	size_t i;

	s->fleet.poll_ms = 1000;
	s->fleet.poll_path = "/metrics";
	for (i = 0; i < s->fleet.n_known; i++) {
		s->known[i].poll = loads_new(&s->fleet, &s->known[i], now);
		ck_assert_ptr_nonnull(s->known[i].poll);
	}
}

static void
polls_end(struct servers *s)
{
	size_t i;

	for (i = 0; i < s->fleet.n_known; i++)
		loads_free(s->known[i].poll);
	loads_free(NULL);
}

static void
begin(size_t n, uint32_t ranks)
{
	now = 1000 * SECOND;
	servers_begin(&a, n, ranks);
	polls_make(&a);
}

static void
end(void)
{
	polls_end(&a);
	servers_end(&a);
}

/* The next errand of the leader, at or after `now`. */
static struct errand *
next(void)
{
	struct errand *e = NULL;
	size_t i = 0;
	int tries = 100;

	while (e == NULL && tries-- > 0) {
		ck_assert_int_eq(loads_look(&a.fleet, now), LOADS_LEAD);
		i = 0;
		e = loads_next(&a.fleet, &i, true, now);
		if (e == NULL)
			now += (int64_t)loads_tick_ms(&a.fleet) * MS;
	}
	ck_assert_ptr_nonnull(e);
	return e;
}

static void
answer(struct errand *e, unsigned status, const char *text)
{
	ck_assert_int_eq(errand_data(e, status, text, strlen(text), now, NULL),
	    ERRAND_MORE);
	ck_assert_int_eq(errand_end(e, status, true, now, NULL), ERRAND_OVER);
	ck_assert(!e->open);
}

static uint64_t
load_of(size_t i, uint32_t rank)
{
	struct kvr_load load = { .size = sizeof(load) };

	ck_assert_int_eq(kvr_worker_get_load(a.fleet.kvr, a.ids[i][rank], 0,
	    &load), KVR_OK);
	return load.requests;
}

static const char busy[] = "vllm:num_requests_running 6\n"
    "vllm:num_requests_waiting 2\nvllm:kv_cache_usage_perc 0.25\n";

/* Two answers in a row are a surplus. */
static void
becomes_busy(void)
{
	answer(next(), 200, busy);
	now += SECOND;
	answer(next(), 200, busy);
	ck_assert_uint_eq(load_of(0, 0), 8);
}

START_TEST(load_from_elsewhere_is_booked_and_shown)
{
	struct status_load list[1];

	begin(1, 1);
	becomes_busy();
	ck_servers_log(&a, "i load of s0 is known\n");
	ck_assert_uint_eq(loads_list(&a.fleet, list, now + SECOND), 1);
	ck_assert_uint_eq(list[0].running, 6);
	ck_assert_uint_eq(list[0].waiting, 2);
	ck_assert_uint_eq(list[0].surplus, 8);
	ck_assert_double_eq_tol(list[0].usage, .25, .001);
	ck_assert_double_eq_tol(list[0].age, 1, .001);
	end();
}
END_TEST

START_TEST(a_load_ends_when_its_engine_is_silent)
{
	struct errand *e;
	int i;

	begin(1, 1);
	becomes_busy();
	for (i = 0; i < 3; i++) {
		now += SECOND;
		e = next();
		ck_assert_uint_eq(e->deadline_ms, 2000);
		errand_failed(e, "it does not answer", now, NULL);
	}
	now += SECOND;
	ck_assert_int_eq(loads_look(&a.fleet, now), LOADS_LEAD);
	ck_assert_uint_eq(load_of(0, 0), 0);
	ck_servers_log(&a, "i load of s0 is known\nn load of s0 is not known: "
	    "it does not answer\n");
	end();
}
END_TEST

START_TEST(answers_that_are_none_are_failures)
{
	static char much[1 << 16];
	struct errand *e;
	int i;

	begin(3, 1);
	answer(next(), 200, "nothing 1\n");
	answer(next(), 404, busy);
	e = next();
	memset(much, '#', sizeof(much));
	for (i = 0; i < 16; i++)
		ck_assert_int_eq(errand_data(e, 200, much, sizeof(much), now,
		    NULL), ERRAND_MORE);
	ck_assert_int_eq(errand_data(e, 200, much, 1, now, NULL),
	    ERRAND_OVER);
	ck_servers_log(&a, "n load of s0 is not known: it publishes none\n"
	    "n load of s1 is not known: it publishes none\n"
	    "n load of s2 is not known: it says too much\n");
	now += SECOND;
	(void)errand_end(next(), 200, false, now, NULL);
	ck_servers_log(&a, "");
	end();
}
END_TEST

START_TEST(one_process_leads_until_it_is_silent)
{
	begin(2, 1);
	servers_join(&b, &a);
	polls_make(&b);
	ck_assert_int_eq(loads_look(&a.fleet, now), LOADS_LEAD);
	/* The pid of b may be that of no process: it is not asked for now. */
	ck_assert_int_eq(loads_look(&b.fleet, now), LOADS_FOLLOW);
	now += 3 * SECOND;
	ck_assert_int_eq(loads_look(&b.fleet, now), LOADS_FOLLOW);
	now++;
	ck_assert_int_eq(loads_look(&b.fleet, now), LOADS_LEAD);
	a.common->shared.poller = (uint64_t)getpid() + 1;
	loads_leave(&b.fleet);
	ck_assert_int_eq(loads_look(&a.fleet, now), LOADS_LEAD);
	loads_leave(&b.fleet);
	ck_assert_int_eq(loads_look(&a.fleet, now), LOADS_LEAD);
	polls_end(&b);
	kvr_free(b.fleet.kvr);
	end();
}
END_TEST

START_TEST(a_leader_that_dies_is_followed_at_once)
{
	pid_t child;
	int status;

	begin(2, 1);
	child = fork();
	if (child == 0) {
		a.fleet.self = (uint64_t)getpid();
		test_exit(loads_look(&a.fleet, now) == LOADS_LEAD ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(a.common->shared.poller, (uint64_t)child);
	ck_assert_int_eq(loads_look(&a.fleet, now), LOADS_LEAD);
	ck_assert_uint_eq(a.common->shared.poller, a.fleet.self);
	end();
}
END_TEST

START_TEST(who_leads_no_longer_writes_nothing)
{
	struct errand *e;

	begin(1, 1);
	becomes_busy();
	now += SECOND;
	e = next();
	a.common->shared.poller = 1;
	answer(e, 200, "vllm:num_requests_running 0\n");
	ck_assert_uint_eq(load_of(0, 0), 8);
	end();
}
END_TEST

START_TEST(polls_that_are_off_end_loads_and_rest)
{
	struct status_load list[1];
	size_t i = 0;

	begin(1, 1);
	becomes_busy();
	a.fleet.poll_ms = 0;
	now += SECOND;
	ck_assert_int_eq(loads_look(&a.fleet, now), LOADS_REST);
	ck_assert_uint_eq(load_of(0, 0), 0);
	ck_assert_ptr_null(loads_next(&a.fleet, &i, true, now));
	ck_assert_uint_eq(loads_list(&a.fleet, list, now), 0);
	ck_assert_uint_eq(loads_tick_ms(&a.fleet), 1000);
	end();
}
END_TEST

START_TEST(ranks_share_an_answer)
{
	begin(1, 2);
	answer(next(), 200, busy);
	now += SECOND;
	answer(next(), 200, busy);
	ck_assert_uint_eq(load_of(0, 0), 4);
	ck_assert_uint_eq(load_of(0, 1), 4);
	end();
}
END_TEST

START_TEST(an_empty_list_changes_nothing)
{
	begin(1, 1);
	becomes_busy();
	now += SECOND;
	answer(next(), 200, "[]");
	ck_assert_uint_eq(load_of(0, 0), 8);
	end();
}
END_TEST

START_TEST(without_room_none_is_begun)
{
	size_t i = 0;

	begin(1, 1);
	ck_assert_int_eq(loads_look(&a.fleet, now), LOADS_LEAD);
	ck_assert_ptr_null(loads_next(&a.fleet, &i, false, now));
	ck_assert_uint_eq(i, 0);
	ck_assert_ptr_nonnull(loads_next(&a.fleet, &i, true, now));
	errand_leave(loads_errand(a.known[0].poll));
	end();
}
END_TEST

Suite *suite_loads(void);

Suite *
suite_loads(void)
{
	Suite *suite = suite_create("loads");
	TCase *t = tcase_create("loads");

	tcase_add_test(t, load_from_elsewhere_is_booked_and_shown);
	tcase_add_test(t, a_load_ends_when_its_engine_is_silent);
	tcase_add_test(t, answers_that_are_none_are_failures);
	tcase_add_test(t, one_process_leads_until_it_is_silent);
	tcase_add_test(t, a_leader_that_dies_is_followed_at_once);
	tcase_add_test(t, who_leads_no_longer_writes_nothing);
	tcase_add_test(t, polls_that_are_off_end_loads_and_rest);
	tcase_add_test(t, ranks_share_an_answer);
	tcase_add_test(t, an_empty_list_changes_nothing);
	tcase_add_test(t, without_room_none_is_begun);
	suite_add_tcase(suite, t);
	return suite;
}
