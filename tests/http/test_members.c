/* SPDX-License-Identifier: BSD-2-Clause */
/* test_members.c - servers join and leave the region, and ids are looked up. */
#include "test.h"

#include <stdlib.h>

#include "members.h"
#include "servers.h"

#define SECOND INT64_C(1000000000)

static struct servers a, b;
static struct members m;
static int64_t now;

static void
begin(size_t n, uint32_t ranks)
{
	servers_begin(&a, n, ranks);
	m = (struct members){ .resolves = true, .left_ms = 60000 };
	now = kvr_clock_now();
	members_follow(&m);
	members_look(&a.fleet, now);
}

static void
end(void)
{
	free(m.left);
	servers_end(&a);
}

static bool
is_there(const char *name)
{
	uint64_t id;

	return kvr_worker_find(a.fleet.kvr, name, strlen(name), 0, &id) ==
	    KVR_OK;
}

static void
ck_allowed(size_t n, bool missing)
{
	bool some;

	ck_assert_uint_eq(members_allow(&a.fleet, &some), n);
	ck_assert_int_eq(some, missing);
}

START_TEST(new_servers_join)
{
	begin(2, 2);
	servers_name(&a, 2, 2);
	a.ids[2][0] = a.ids[2][1] = 0;
	a.facts[2].worker.capacity_tokens = 4096;
	a.known[2].weight = 3;
	a.fleet.n_known = a.fleet.n_first = 3;
	members_look(&a.fleet, now);
	ck_assert_uint_eq(a.known[2].due, 2);
	ck_allowed(4, true);
	members_join(&a.fleet, &m, now, NULL);
	ck_assert(a.known[2].joined && !m.joining);
	members_look(&a.fleet, now);
	ck_assert_uint_eq(a.known[2].due, 0);
	ck_allowed(6, false);
	ck_assert(a.facts[2].used);
	ck_servers_log(&a, "");
	end();
}
END_TEST

START_TEST(few_join_at_a_time)
{
	size_t i, n = 0;

	begin(1, 1);
	for (i = 1; i < SERVERS_MOST; i++) {
		servers_name(&a, i, 1);
		a.ids[i][0] = 0;
	}
	servers_name(&a, 0, 1);
	a.fleet.n_known = a.fleet.n_first = SERVERS_MOST;
	members_join(&a.fleet, &m, now, NULL);
	for (i = 0; i < SERVERS_MOST; i++)
		n += a.known[i].joined;
	ck_assert_uint_eq(n, 8);
	end();
}
END_TEST

START_TEST(a_server_that_left_is_removed_in_time)
{
	begin(3, 1);
	a.fleet.n_known = a.fleet.n_first = 2;
	members_leave(&a.fleet, &m, now, NULL);
	ck_assert_uint_eq(m.n_left, 1);
	ck_assert_uint_eq(m.left[0].id, a.ids[2][0]);
	now += 59 * SECOND;
	members_leave(&a.fleet, &m, now, NULL);
	ck_assert(is_there("s2"));
	ck_assert(m.leaving);
	now += SECOND;
	members_leave(&a.fleet, &m, now, NULL);
	ck_assert(!is_there("s2"));
	ck_assert(is_there("s1"));
	ck_assert(!m.leaving);
	ck_servers_log(&a, "n worker s2 has left: removed\n");
	end();
}
END_TEST

START_TEST(one_that_is_back_begins_anew)
{
	begin(3, 1);
	a.fleet.n_known = 2;
	members_leave(&a.fleet, &m, now, NULL);
	a.fleet.n_known = 3;
	now += 50 * SECOND;
	members_follow(&m);
	members_leave(&a.fleet, &m, now, NULL);
	ck_assert_uint_eq(m.n_left, 0);
	a.fleet.n_known = 2;
	members_follow(&m);
	members_leave(&a.fleet, &m, now, NULL);
	now += 50 * SECOND;
	members_leave(&a.fleet, &m, now, NULL);
	ck_assert(is_there("s2"));
	end();
}
END_TEST

START_TEST(requests_keep_a_server_that_left)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request request;
	struct kvr_prompt *prompt;

	begin(2, 1);
	ck_assert_int_eq(kvr_prompt_new(a.fleet.kvr, &prompt), KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_bytes(prompt, NULL, "x", 1), KVR_OK);
	ck_assert_int_eq(kvr_request_init(&request, sizeof(request)), KVR_OK);
	ck_assert_int_eq(kvr_lease_open_on(a.fleet.kvr, prompt, &request,
	    a.ids[1][0], now, &d), KVR_OK);
	a.fleet.n_known = 1;
	m.resolves = false;
	members_leave(&a.fleet, &m, now, NULL);
	ck_assert(is_there("s1"));
	ck_assert_int_eq(kvr_lease_abort(a.fleet.kvr, d.lease, now, 0),
	    KVR_OK);
	members_leave(&a.fleet, &m, now, NULL);
	ck_assert(!is_there("s1"));
	kvr_prompt_free(prompt);
	end();
}
END_TEST

START_TEST(a_full_table_makes_room)
{
	struct kvr_worker facts;
	char name[16];
	uint64_t id;
	size_t i;

	begin(1, 1);
	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	for (i = 1; i < SERVERS_WORKERS; i++) {
		(void)snprintf(name, sizeof(name), "old%zu", i);
		ck_assert_int_eq(kvr_worker_add(a.fleet.kvr, name,
		    strlen(name), &facts, &id), KVR_OK);
	}
	servers_name(&a, 1, 1);
	a.fleet.n_known = 2;
	members_join(&a.fleet, &m, now, NULL);
	ck_assert(is_there("s1"));
	ck_assert(!is_there("old1"));
	end();
}
END_TEST

START_TEST(a_server_that_cannot_join_is_logged_once)
{
	char line[128];

	begin(1, 1);
	servers_name(&a, 1, 1);
	a.facts[1].worker.window_mode = 99;
	a.fleet.n_known = 2;
	members_join(&a.fleet, &m, now, NULL);
	ck_assert(!a.known[1].joined && a.known[1].refused);
	(void)snprintf(line, sizeof(line), "e worker \"s1\": %s\n",
	    kvr_strerror(KVR_EINVAL));
	ck_servers_log(&a, line);
	members_follow(&m);
	members_join(&a.fleet, &m, now, NULL);
	ck_servers_log(&a, "");
	end();
}
END_TEST

START_TEST(a_start_makes_them_equal)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint64_t epoch;

	begin(3, 1);
	m.resolves = false;
	a.fleet.n_known = a.fleet.n_first = 2;
	/* A state set by order, and a capacity that was read, stay. */
	ck_assert_int_eq(kvr_worker_get(a.fleet.kvr, a.ids[0][0], &facts),
	    KVR_OK);
	facts.state = KVR_STATE_DRAINING;
	facts.capacity_tokens = 5000;
	ck_assert_int_eq(kvr_worker_set(a.fleet.kvr, a.ids[0][0], &facts),
	    KVR_OK);
	a.facts[0].ask = true;
	a.known[1].weight = 7;
	epoch = a.common->shared.epoch;
	members_sync(&a.fleet, &m, a.fleet.kvr, NULL);
	ck_assert_uint_ne(a.common->shared.epoch, epoch);
	ck_assert_int_eq(kvr_worker_get(a.fleet.kvr, a.ids[0][0], &facts),
	    KVR_OK);
	ck_assert_uint_eq(facts.state, KVR_STATE_DRAINING);
	ck_assert_uint_eq(facts.capacity_tokens, 5000);
	ck_assert_int_eq(kvr_worker_get(a.fleet.kvr, a.ids[1][0], &facts),
	    KVR_OK);
	ck_assert_double_eq(facts.weight, 7);
	ck_assert(!is_there("s2"));
	ck_servers_log(&a, "n worker s2, rank 0, removed\n");
	members_look(&a.fleet, now);
	ck_assert(a.known[0].closed && !a.known[1].closed);
	end();
}
END_TEST

START_TEST(ids_are_looked_up_when_another_process_says_so)
{
	uint64_t id, old;

	begin(2, 1);
	servers_join(&b, &a);
	old = a.ids[1][0];
	ck_assert_int_eq(kvr_worker_reset(b.fleet.kvr, old, &id), KVR_OK);
	members_look(&a.fleet, now);
	ck_assert_uint_eq(a.ids[1][0], old);
	b.fleet.shared->epoch++;
	members_look(&a.fleet, now);
	ck_assert_uint_eq(a.ids[1][0], id);
	/* Requests of before may run there. */
	ck_assert_uint_eq(a.common->shared.stale[0].key, a.known[1].key);
	kvr_free(b.fleet.kvr);
	end();
}
END_TEST

START_TEST(servers_are_allowed_in_turn)
{
	bool missing;

	begin(3, 1);
	a.fleet.n_first = 2;
	ck_allowed(2, false);
	a.known[0].held = true;
	ck_allowed(1, false);
	ck_assert_uint_eq(a.fleet.allowed[0], a.ids[1][0]);
	a.known[1].usable = false;
	ck_allowed(1, false);
	ck_assert_uint_eq(a.fleet.allowed[0], a.ids[0][0]);
	a.known[0].usable = false;
	ck_allowed(1, false);
	ck_assert_uint_eq(a.fleet.allowed[0], a.ids[2][0]);
	a.known[2].usable = false;
	ck_allowed(0, false);
	ck_assert_uint_eq(members_allow_one(&a.fleet, 1, &missing), 1);
	a.ids[1][0] = 0;
	ck_assert_uint_eq(members_allow_one(&a.fleet, 1, &missing), 0);
	ck_assert(missing);
	a.known[1].usable = a.known[2].usable = true;
	ck_allowed(0, true);
	end();
}
END_TEST

Suite *suite_members(void);

Suite *
suite_members(void)
{
	Suite *suite = suite_create("members");
	TCase *t = tcase_create("members");

	tcase_add_test(t, new_servers_join);
	tcase_add_test(t, few_join_at_a_time);
	tcase_add_test(t, a_server_that_left_is_removed_in_time);
	tcase_add_test(t, one_that_is_back_begins_anew);
	tcase_add_test(t, requests_keep_a_server_that_left);
	tcase_add_test(t, a_full_table_makes_room);
	tcase_add_test(t, a_server_that_cannot_join_is_logged_once);
	tcase_add_test(t, a_start_makes_them_equal);
	tcase_add_test(t, ids_are_looked_up_when_another_process_says_so);
	tcase_add_test(t, servers_are_allowed_in_turn);
	suite_add_tcase(suite, t);
	return suite;
}
