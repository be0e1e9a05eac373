/* SPDX-License-Identifier: BSD-2-Clause */
/* test_capacities.c - engines are asked for their capacity, by errands. */
#include "test.h"

#include "capacities.h"
#include "servers.h"

#define SECOND INT64_C(1000000000)

static const char published[] =
    "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"1000\"} 1.0\n"
    "vllm:num_requests_running 0\n";

static struct servers a;
static int64_t now;

static void
begin(size_t n, uint32_t ranks)
{
	size_t i;

	servers_begin(&a, n, ranks);
	now = 1000 * SECOND;
	for (i = 0; i < n; i++) {
		a.facts[i].ask = true;
		a.known[i].ask = capacities_new(&a.fleet, &a.known[i], now);
		ck_assert_ptr_nonnull(a.known[i].ask);
	}
}

static void
end(void)
{
	size_t i;

	for (i = 0; i < a.fleet.n_known; i++)
		capacities_free(a.known[i].ask);
	capacities_free(NULL);
	ck_assert_uint_eq(a.fleet.asking, 0);
	servers_end(&a);
}

/* The only errand that is due, or NULL. */
static struct errand *
due(void)
{
	size_t i = 0;
	struct errand *e = capacities_next(&a.fleet, &i, true, now);

	ck_assert_ptr_null(capacities_next(&a.fleet, &i, true, now));
	return e;
}

static enum errand_state
answers(struct errand *e, unsigned status, const char *text)
{
	enum errand_state state = errand_data(e, status, text, strlen(text),
	    now, NULL);

	return state == ERRAND_MORE ? errand_end(e, status, true, now, NULL) :
	    state;
}

static struct kvr_worker
facts_of(size_t i, uint32_t rank)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	ck_assert_int_eq(kvr_worker_get(a.fleet.kvr, a.ids[i][rank], &facts),
	    KVR_OK);
	return facts;
}

static void
is_found(struct errand *e)
{
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(e->path, "/metrics");
	ck_assert_int_eq(answers(e, 200, published), ERRAND_OVER);
	ck_assert(!e->open);
}

START_TEST(a_capacity_is_read_for_all_ranks)
{
	begin(1, 2);
	is_found(due());
	ck_assert_uint_eq(facts_of(0, 0).capacity_tokens, 16000);
	ck_assert_uint_eq(facts_of(0, 1).capacity_tokens, 16000);
	ck_assert_uint_eq(facts_of(0, 1).block_tokens, 16);
	ck_assert_uint_eq(facts_of(0, 0).eviction, KVR_EVICT_RELEASED);
	ck_servers_log(&a, "n capacity of s0 is 16000 tokens, in blocks of 16 "
	    "(0: not known), by /metrics of vLLM\n");
	/* It is asked for again now and then, and nothing new is no line. */
	ck_assert_ptr_null(due());
	now += 301 * SECOND;
	is_found(due());
	ck_servers_log(&a, "");
	end();
}
END_TEST

START_TEST(each_path_is_asked_for)
{
	struct errand *e;

	begin(1, 1);
	e = due();
	ck_assert_int_eq(answers(e, 404, "no"), ERRAND_AGAIN);
	ck_assert_str_eq(e->path, "/server_info");
	ck_assert_int_eq(answers(e, 404, "no"), ERRAND_AGAIN);
	ck_assert_str_eq(e->path, "/get_server_info");
	ck_assert_int_eq(answers(e, 404, "no"), ERRAND_OVER);
	ck_servers_log(&a, "w capacity of s0 is not known: it publishes none, "
	    "status 404\n");
	ck_assert_uint_eq(facts_of(0, 0).retain, KVR_RETAIN_AUTO);
	end();
}
END_TEST

START_TEST(failures_are_followed_by_pauses_that_grow)
{
	int64_t pause[] = { 1, 2, 4, 8, 16, 16 };
	struct errand *e;
	size_t i;

	begin(1, 1);
	for (i = 0; i < sizeof(pause) / sizeof(pause[0]); i++) {
		e = due();
		ck_assert_ptr_nonnull(e);
		errand_failed(e, "it does not answer", now, NULL);
		now += pause[i] * SECOND - 1;
		ck_assert_ptr_null(due());
		now++;
	}
	ck_servers_log(&a, "w capacity of s0 is not known: it does not "
	    "answer\n");
	is_found(due());
	now += 301 * SECOND;
	errand_failed(due(), "it does not answer", now, NULL);
	ck_servers_log(&a, "n capacity of s0 is 16000 tokens, in blocks of 16 "
	    "(0: not known), by /metrics of vLLM\n"
	    "w capacity of s0 is as before: it does not answer\n");
	ck_assert_uint_eq(facts_of(0, 0).capacity_tokens, 16000);
	end();
}
END_TEST

START_TEST(a_failed_request_or_a_reset_makes_it_due)
{
	uint64_t id;

	begin(1, 1);
	is_found(due());
	capacities_trouble(&a.fleet, a.known[0].key);
	now += SECOND;
	ck_assert_ptr_null(due());
	now += SECOND;
	is_found(due());
	ck_assert_ptr_null(due());
	ck_assert_int_eq(kvr_worker_remove(a.fleet.kvr, a.ids[0][0]), KVR_OK);
	ck_assert_int_eq(kvr_worker_add(a.fleet.kvr, "s0", 2,
	    &a.facts[0].worker, &id), KVR_OK);
	a.ids[0][0] = id;
	/* The known capacity is written at once. */
	is_found(due());
	ck_assert_uint_eq(facts_of(0, 0).capacity_tokens, 16000);
	end();
}
END_TEST

START_TEST(few_are_asked_at_once)
{
	size_t i = 0, n = 0;

	begin(SERVERS_MOST, 1);
	ck_assert_ptr_null(capacities_next(&a.fleet, &i, false, now));
	i = 0;
	while (capacities_next(&a.fleet, &i, true, now) != NULL)
		n++;
	ck_assert_uint_eq(n, SERVERS_MOST);
	ck_assert_uint_eq(a.fleet.asking, SERVERS_MOST);
	errand_leave(capacities_errand(a.known[3].ask));
	errand_leave(capacities_errand(a.known[3].ask));
	ck_assert_uint_eq(a.fleet.asking, SERVERS_MOST - 1);
	ck_assert_int_eq(errand_data(capacities_errand(a.known[3].ask), 200,
	    "x", 1, now, NULL), ERRAND_OVER);
	end();
}
END_TEST

Suite *suite_capacities(void);

Suite *
suite_capacities(void)
{
	Suite *suite = suite_create("capacities");
	TCase *t = tcase_create("capacities");

	tcase_add_test(t, a_capacity_is_read_for_all_ranks);
	tcase_add_test(t, each_path_is_asked_for);
	tcase_add_test(t, failures_are_followed_by_pauses_that_grow);
	tcase_add_test(t, a_failed_request_or_a_reset_makes_it_due);
	tcase_add_test(t, few_are_asked_at_once);
	suite_add_tcase(suite, t);
	return suite;
}
