/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_status_json.c - the state as JSON, read back by another parser.
 */
#include "test.h"

#include <json-c/json.h>

#include "body.h"
#include "fleet.h"

static struct json_object *state;

static void
report(void)
{
	status_json(&fleet_status, &sink.writer);
}

static void
take(void)
{
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	report();
	ck_assert(!sink.writer.failed);
	ck_assert_uint_eq(sink.held, 0);
	state = json_tokener_parse(sink.text);
	ck_assert_ptr_nonnull(state);
}

static struct json_object *
member(struct json_object *of, const char *key)
{
	struct json_object *value = NULL;

	ck_assert_msg(json_object_object_get_ex(of, key, &value), "no %s",
	    key);
	return value;
}

static struct json_object *
item(struct json_object *of, const char *key, size_t i)
{
	struct json_object *array = member(of, key);

	ck_assert_uint_lt(i, json_object_array_length(array));
	return json_object_array_get_idx(array, i);
}

static void
ck_text(struct json_object *of, const char *key, const char *want)
{
	ck_assert_str_eq(json_object_get_string(member(of, key)), want);
}

static void
ck_number(struct json_object *of, const char *key, uint64_t want)
{
	ck_assert_int_eq(json_object_get_int64(member(of, key)),
	    (int64_t)want);
}

START_TEST(upstreams)
{
	struct json_object *up;

	take();
	ck_text(state, "version", kvr_version_string());
	ck_text(state, "reader", body_reader());
	ck_number(state, "time", 1234);
	ck_assert_uint_eq(json_object_array_length(member(state,
	    "upstreams")), FLEET);
	up = item(state, "upstreams", 0);
	ck_text(up, "name", "a\"b\\");
	ck_assert(json_object_get_boolean(member(up, "attached")));
	ck_text(up, "policy", "balanced");
	ck_text(up, "shadow", "least_conn");
	ck_number(up, "block", 1);
	ck_number(member(up, "region"), "blocks", 4);
	up = item(state, "upstreams", 1);
	ck_text(up, "name", "none");
	ck_assert(!json_object_get_boolean(member(up, "attached")));
	ck_assert_ptr_null(member(up, "shadow"));
	ck_number(member(up, "region"), "bytes", 0);
	ck_assert_uint_eq(json_object_array_length(member(up, "workers")), 0);
	json_object_put(state);
}
END_TEST

/* The status lists the largest of many tenants. */
START_TEST(some_tenants)
{
	struct kvr *k = fleet_share(1, 40);
	struct json_object *tenants, *row;
	char tenant, text[128];

	take();
	ck_assert_ptr_null(member(member(item(state, "upstreams", 0),
	    "region"), "tenants"));
	ck_number(member(member(item(state, "upstreams", 1), "region"),
	    "tenants"), "known", 0);
	json_object_put(state);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (tenant = 'a'; tenant < 'z'; tenant++)
		fleet_tenant_opens(k, tenant, "short");
	fleet_tenant_opens(k, 'z', text);
	text[64] = '\0';
	fleet_tenant_opens(k, 0, text);
	take();
	tenants = member(member(item(state, "upstreams", 1), "region"),
	    "tenants");
	ck_number(tenants, "known", 27);
	ck_assert_uint_eq(json_object_array_length(member(tenants, "rows")),
	    16);
	row = item(tenants, "rows", 0);
	ck_number(row, "share", 'z');
	ck_number(row, "evicted", 0);
	ck_assert_uint_eq(strlen(json_object_get_string(member(row,
	    "tenant"))), 16);
	ck_assert_int_gt(json_object_get_int64(member(row, "bytes")),
	    json_object_get_int64(member(item(tenants, "rows", 1), "bytes")));
	ck_assert_ptr_null(member(item(tenants, "rows", 1), "tenant"));
	ck_number(item(tenants, "rows", 2), "bytes", 3 * 64);
	json_object_put(state);
}
END_TEST

START_TEST(a_journal)
{
	struct json_object *journal;

	fleet_journal();
	take();
	ck_assert_ptr_null(member(member(item(state, "upstreams", 0),
	    "region"), "journal"));
	journal = member(member(item(state, "upstreams", 1), "region"),
	    "journal");
	ck_number(journal, "bytes", KVR_JOURNAL_MIN);
	ck_number(journal, "written", 0);
	ck_number(journal, "overruns", 0);
	ck_assert_ptr_null(member(journal, "beat_age"));
	json_object_put(state);
	ck_assert_int_eq(kvr_journal_beat(fleet[1].kvr,
	    kvr_clock_now() + 3600 * INT64_C(1000000000)), KVR_OK);
	take();
	journal = member(member(item(state, "upstreams", 1), "region"),
	    "journal");
	ck_number(journal, "beat_age", 0);
	json_object_put(state);
}
END_TEST

START_TEST(workers)
{
	struct json_object *up, *worker;

	take();
	up = item(state, "upstreams", 0);
	ck_assert_uint_eq(json_object_array_length(member(up, "workers")), 3);
	worker = item(up, "workers", 1);
	ck_text(worker, "name", "up");
	ck_text(worker, "state", "up");
	ck_number(worker, "held_blocks", 4);
	ck_text(item(up, "workers", 0), "state", "draining");
	ck_text(item(up, "workers", 2), "name", "?");
	json_object_put(state);
}
END_TEST

/* A rank is shown where a name has several; they follow each other. */
START_TEST(workers_with_ranks)
{
	struct json_object *up, *no;

	fleet_rank(fleet[0].kvr, "up", 1);
	fleet_rank(fleet[2].kvr, "x", 2);
	take();
	up = item(state, "upstreams", 0);
	ck_text(item(up, "workers", 0), "name", "draining");
	ck_assert(!json_object_object_get_ex(item(up, "workers", 0), "rank",
	    &no));
	ck_text(item(up, "workers", 1), "name", "up");
	ck_number(item(up, "workers", 1), "rank", 0);
	ck_text(item(up, "workers", 2), "name", "up");
	ck_number(item(up, "workers", 2), "rank", 1);
	ck_assert(!json_object_object_get_ex(item(up, "workers", 3), "rank",
	    &no));
	ck_number(item(item(state, "upstreams", 2), "workers", 0), "rank", 2);
	json_object_put(state);
}
END_TEST

static void
ck_worker(struct json_object *up, size_t i, const char *name)
{
	ck_text(item(up, "workers", i), "name", name);
}

/* A reset gives a worker another slot, and not another place. */
START_TEST(order_of_workers_after_a_reset)
{
	struct kvr *k = fleet_status.upstream[0].kvr;
	struct json_object *up;
	uint64_t id;
	int i;

	ck_assert_int_eq(kvr_worker_add(k, "a", 1, NULL, &id), KVR_OK);
	ck_assert_int_eq(kvr_worker_find(k, "up", 2, 0, &id), KVR_OK);
	for (i = 0; i < 3; i++) {
		take();
		up = item(state, "upstreams", 0);
		ck_assert_uint_eq(json_object_array_length(member(up,
		    "workers")), 4);
		ck_worker(up, 0, "a");
		ck_worker(up, 1, "draining");
		ck_worker(up, 2, "up");
		json_object_put(state);
		ck_assert_int_eq(kvr_worker_reset(k, id, &id), KVR_OK);
	}
}
END_TEST

/* The status has the published loads, and null for silent engines. */
START_TEST(loads_that_engines_say)
{
	struct status_load load = { .name = "up", .name_length = 2,
	    .running = 3, .waiting = 4, .usage = 0.5, .surplus = 2,
	    .age = 1.5 };
	struct json_object *up, *polled;

	ck_assert_int_eq(kvr_worker_find(fleet[0].kvr, "up", 2, 0,
	    &load.worker), KVR_OK);
	fleet[0].loads = &load;
	fleet[0].n_loads = 1;
	take();
	up = item(state, "upstreams", 0);
	ck_assert_ptr_null(member(item(up, "workers", 0), "polled"));
	polled = member(item(up, "workers", 1), "polled");
	ck_number(polled, "running", 3);
	ck_number(polled, "waiting", 4);
	ck_number(polled, "surplus", 2);
	ck_assert_double_eq(json_object_get_double(member(polled, "usage")),
	    0.5);
	ck_assert_double_eq(json_object_get_double(member(polled, "age")),
	    1.5);
	json_object_put(state);
	load.usage = -1;
	take();
	up = item(state, "upstreams", 0);
	ck_assert_ptr_null(member(member(item(up, "workers", 1), "polled"),
	    "usage"));
	json_object_put(state);
}
END_TEST

/* A word, or null where nothing is known. */
START_TEST(how_workers_are)
{
	static const struct status_health healths[] = {
	    { "u", 1, "failing" }, { "up", 2, "slow" } };
	struct json_object *up;

	fleet[0].healths = healths;
	fleet[0].n_healths = 2;
	take();
	up = item(state, "upstreams", 0);
	ck_assert_ptr_null(member(item(up, "workers", 0), "health"));
	ck_assert_str_eq(json_object_get_string(member(item(up, "workers", 1),
	    "health")), "slow");
	json_object_put(state);
}
END_TEST

/* An operator's order is shown again once its server is back. */
START_TEST(workers_whose_servers_left)
{
	struct json_object *up;
	uint64_t left[] = { 999, 0 };

	ck_assert_int_eq(kvr_worker_find(fleet[0].kvr, "draining", 8, 0,
	    &left[1]), KVR_OK);
	fleet[0].left = left;
	fleet[0].n_left = 2;
	take();
	up = item(state, "upstreams", 0);
	ck_text(item(up, "workers", 0), "state", "left");
	ck_text(item(up, "workers", 1), "state", "up");
	json_object_put(state);
	fleet[0].n_left = 1;
	take();
	up = item(state, "upstreams", 0);
	ck_text(item(up, "workers", 0), "state", "draining");
	json_object_put(state);
}
END_TEST

START_TEST(requests_that_wait)
{
	struct json_object *up;

	fleet[0].queue = 64;
	fleet[0].waiting = 3;
	take();
	up = item(state, "upstreams", 0);
	ck_number(member(up, "queue"), "waiting", 3);
	ck_number(member(up, "queue"), "most", 64);
	ck_assert_ptr_null(member(item(state, "upstreams", 1), "queue"));
	json_object_put(state);
}
END_TEST

/* Capacities are configured, read off an engine, or not known. */
START_TEST(sources_of_capacities)
{
	static const struct status_name asked[] = { { "upper", 5 },
	    { "\xff", 1 }, { "up", 2 } };
	struct kvr_worker facts = { .size = sizeof(facts) };
	struct json_object *up;
	uint64_t id = 0;

	fleet[0].asked = asked;
	fleet[0].n_asked = 3;
	while (kvr_worker_next(fleet[0].kvr, &id) == KVR_OK && id != 0) {
		ck_assert_int_eq(kvr_worker_get(fleet[0].kvr, id, &facts),
		    KVR_OK);
		facts.capacity_tokens = 5000;
		facts.block_tokens = 32;
		facts.window_mode = KVR_WINDOW_DUAL;
		facts.window_tokens = 1024;
		facts.window_capacity = 5000;
		ck_assert_int_eq(kvr_worker_set(fleet[0].kvr, id, &facts),
		    KVR_OK);
	}
	take();
	up = item(state, "upstreams", 0);
	ck_number(item(up, "workers", 0), "capacity", 5000);
	ck_number(item(up, "workers", 0), "block_tokens", 32);
	ck_number(item(up, "workers", 0), "window", 1024);
	ck_number(item(up, "workers", 0), "window_capacity", 5000);
	ck_text(item(up, "workers", 0), "window_mode", "dual");
	ck_text(item(up, "workers", 0), "capacity_source", "told");
	ck_text(item(up, "workers", 1), "capacity_source", "read");
	ck_text(item(up, "workers", 2), "capacity_source", "read");
	json_object_put(state);
	facts.capacity_tokens = 0;
	id = 0;
	ck_assert_int_eq(kvr_worker_next(fleet[0].kvr, &id), KVR_OK);
	ck_assert_int_eq(kvr_worker_set(fleet[0].kvr, id, &facts), KVR_OK);
	take();
	up = item(state, "upstreams", 0);
	ck_assert_ptr_null(member(item(up, "workers", 1), "capacity_source"));
	json_object_put(state);
}
END_TEST

/* Every counter, reason and endpoint, once; without counters, as 0. */
static void
ck_counted(struct json_object *up, const struct counters *counts)
{
	struct json_object *group;
	uint32_t i;

	for (i = 0; i < counters_shown; i++) {
		const struct counter *c = &counter_list[i];

		group = c->group == NULL ? up : member(up, c->group);
		ck_number(group, c->name, counter_value(counts, i));
	}
	group = member(up, "reasons");
	ck_assert_int_eq(json_object_object_length(group), REASONS - 1);
	for (i = 0; i < REASONS; i++)
		if (reason_occurs(i))
			ck_number(group, reason_name(i),
			    counts == NULL ? 0 : counts->reason[i]);
	group = member(up, "endpoints");
	ck_assert_int_eq(json_object_object_length(group), ENDPOINTS);
	for (i = 0; i < ENDPOINTS; i++)
		ck_number(group, endpoint_name((enum endpoint)i),
		    counts == NULL ? 0 : counts->endpoint[i]);
	group = member(up, "unknown_paths");
	ck_assert_int_eq(json_object_object_length(group),
	    counts == NULL ? 0 : 2);
	if (counts != NULL) {
		ck_number(group, "/v1/x", 400);
		ck_number(group, "*", 402);
	}
}

START_TEST(counters_are_shown)
{
	take();
	ck_counted(item(state, "upstreams", 0), &counted);
	ck_counted(item(state, "upstreams", 1), NULL);
	json_object_put(state);
}
END_TEST

START_TEST(endless_ttl)
{
	fleet[1].options.ttl_ns = KVR_TTL_ENDLESS;
	take();
	ck_number(item(state, "upstreams", 0), "ttl", 120);
	ck_text(item(state, "upstreams", 1), "ttl", "-1.000000");
	json_object_put(state);
}
END_TEST

START_TEST(no_upstream)
{
	fleet_status.upstreams = 0;
	take();
	ck_assert_uint_eq(json_object_array_length(member(state,
	    "upstreams")), 0);
	json_object_put(state);
}
END_TEST

START_TEST(numbers_without_a_name)
{
	fleet[0].cost = 77;
	take();
	ck_text(item(state, "upstreams", 0), "policy", "?");
	ck_assert_str_eq(status_state_name(KVR_STATE_DOWN), "down");
	ck_assert_str_eq(status_state_name(3), "?");
	json_object_put(state);
}
END_TEST

START_TEST(no_room_and_no_memory)
{
	fails_everywhere(report);
}
END_TEST

/* The holder of the lock is before its change, or in the middle of it. */
START_TEST(a_held_lock)
{
	fails_while_held(report, _i == 1);
}
END_TEST

START_TEST(a_busy_lock)
{
	repeats_what_is_busy(report);
}
END_TEST

/* Each call succeeds within the tries, all of them together do not. */
START_TEST(tries_are_of_the_whole_report)
{
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	busy_begin(STATUS_TRIES / 2 - 1);
	report();
	ck_assert_uint_lt(busy_end(), STATUS_TRIES + 3);
	ck_assert(sink.writer.failed);
}
END_TEST

START_TEST(the_lock_is_free)
{
	ck_assert(!status_blocked(NULL));
	ck_assert(!status_blocked(fleet[0].kvr));
	busy_begin(STATUS_TRIES - 1);
	ck_assert(!status_blocked(fleet[0].kvr));
	ck_assert_uint_eq(busy_end(), STATUS_TRIES);
}
END_TEST

/* The question is a read: it changes nothing and counts as no write. */
START_TEST(the_lock_is_held)
{
	struct region *r = fleet[0].kvr->region;
	uint64_t seq = atomic_load(&r->seq);

	fleet_hold(fleet[0].kvr, false);
	busy_begin(0);
	ck_assert(status_blocked(fleet[0].kvr));
	ck_assert_uint_eq(busy_end(), STATUS_TRIES);
	ck_assert(!status_blocked(fleet[2].kvr));
	fleet_let_go(fleet[0].kvr);
	ck_assert(!status_blocked(fleet[0].kvr));
	ck_assert_uint_eq(atomic_load(&r->seq), seq);
	ck_assert_uint_eq(atomic_load(&r->busy_writes), 0);
}
END_TEST

Suite *suite_status_json(void);

Suite *
suite_status_json(void)
{
	Suite *s = suite_create("status_json");
	TCase *c = tcase_create("status_json");

	tcase_add_checked_fixture(c, fleet_setup, fleet_teardown);
	tcase_add_test(c, upstreams);
	tcase_add_test(c, a_journal);
	tcase_add_test(c, some_tenants);
	tcase_add_test(c, workers);
	tcase_add_test(c, workers_with_ranks);
	tcase_add_test(c, order_of_workers_after_a_reset);
	tcase_add_test(c, loads_that_engines_say);
	tcase_add_test(c, how_workers_are);
	tcase_add_test(c, workers_whose_servers_left);
	tcase_add_test(c, sources_of_capacities);
	tcase_add_test(c, requests_that_wait);
	tcase_add_test(c, counters_are_shown);
	tcase_add_test(c, endless_ttl);
	tcase_add_test(c, no_upstream);
	tcase_add_test(c, numbers_without_a_name);
	tcase_add_test(c, no_room_and_no_memory);
	tcase_add_loop_test(c, a_held_lock, 0, 2);
	tcase_add_test(c, a_busy_lock);
	tcase_add_test(c, tries_are_of_the_whole_report);
	tcase_add_test(c, the_lock_is_free);
	tcase_add_test(c, the_lock_is_held);
	suite_add_tcase(s, c);
	return s;
}
