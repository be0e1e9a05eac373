/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_published_load.c - loads as engines write them, cut anywhere, and
 * damaged; and the part of them that a router's bookings explain.
 * test_samples.c has the forms of lines, test_json_finder.c broken JSON.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "engine_load.h"
#include "surplus.h"

enum { RANKS = 3 };
static struct engine_load got[RANKS];

static bool
read_cut(uint32_t ranks, const char *text, size_t piece)
{
	struct load_reader *r = load_reader_new(ranks);
	size_t length = strlen(text), at, n;
	bool found;
	char *copy;

	ck_assert_ptr_nonnull(r);
	for (at = 0; at < length; at += n) {
		n = length - at < piece ? length - at : piece;
		copy = malloc(n);
		ck_assert_ptr_nonnull(copy);
		memcpy(copy, text + at, n);
		load_reader_data(r, copy, n);
		free(copy);
	}
	found = load_reader_end(r, got);
	load_reader_free(r);
	return found;
}

/* Whole, and in pieces of some sizes: all alike. */
static bool
read_ranks(uint32_t ranks, const char *text)
{
	static const size_t pieces[] = { 1, 2, 7, 64 };
	struct engine_load want[RANKS];
	bool found = read_cut(ranks, text, strlen(text) + 1);
	size_t i;
	uint32_t k;

	memcpy(want, got, sizeof(want));
	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		ck_assert(read_cut(ranks, text, pieces[i]) == found);
		for (k = 0; k < ranks; k++) {
			ck_assert_uint_eq(got[k].running, want[k].running);
			ck_assert_uint_eq(got[k].waiting, want[k].waiting);
			ck_assert_double_eq(got[k].usage, want[k].usage);
		}
	}
	return found;
}

static void
ck_load(uint32_t rank, uint32_t running, uint32_t waiting, double usage)
{
	ck_assert_uint_eq(got[rank].running, running);
	ck_assert_uint_eq(got[rank].waiting, waiting);
	ck_assert_double_eq_tol(got[rank].usage, usage, 1e-9);
}

#define VLLM(name, engine, value) \
	"vllm:" name "{engine=\"" engine "\",model_name=\"m\"} " value "\n"

START_TEST(vllm)
{
	ck_assert(read_ranks(1,
	    "# HELP vllm:num_requests_running Number of requests in model "
	    "execution batches.\n# TYPE vllm:num_requests_running gauge\n"
	    VLLM("num_requests_running", "0", "12.0")
	    VLLM("num_requests_waiting", "0", "3.0")
	    "vllm:num_requests_waiting_by_reason{engine=\"0\","
	    "reason=\"capacity\"} 3.0\n"
	    VLLM("kv_cache_usage_perc", "0", "0.4375")
	    VLLM("num_requests_running_total", "0", "99")));
	ck_load(0, 12, 3, 0.4375);
	ck_assert(read_ranks(1, VLLM("num_requests_running", "0", "1")
	    VLLM("gpu_cache_usage_perc", "0", "2.5e-01")));
	ck_load(0, 1, 0, 0.25);
}
END_TEST

static const char ranks[] =
    VLLM("num_requests_running", "0", "4.0")
    VLLM("num_requests_running", "2", "6.0")
    VLLM("num_requests_running", "1", "5.0")
    VLLM("num_requests_waiting", "1", "7.0")
    VLLM("kv_cache_usage_perc", "0", "0.5")
    VLLM("kv_cache_usage_perc", "1", "1.5")
    VLLM("num_requests_running", "3", "100.0");

START_TEST(ranks_by_label)
{
	ck_assert(read_ranks(3, ranks));
	ck_load(0, 4, 0, 0.5);
	ck_load(1, 5, 7, 1);
	ck_load(2, 6, 0, -1);
	ck_assert(read_ranks(1, ranks));
	ck_load(0, 115, 7, 1);
	/* No label: each has its share. */
	ck_assert(read_ranks(3, "llamacpp:requests_processing 7\n"));
	ck_load(0, 2, 0, -1);
	ck_load(2, 2, 0, -1);
}
END_TEST

/* Processes of one rank publish the same number each. */
START_TEST(sglang)
{
	ck_assert(read_ranks(1,
	    "sglang:num_running_reqs{engine_type=\"unified\","
	    "model_name=\"m\",pp_rank=\"0\",tp_rank=\"0\"} 8.0\n"
	    "sglang:num_running_reqs{engine_type=\"unified\","
	    "model_name=\"m\",pp_rank=\"0\",tp_rank=\"1\"} 8.0\n"
	    "sglang:num_queue_reqs{model_name=\"m\",tp_rank=\"0\"} 2.0\n"
	    "sglang:token_usage{model_name=\"m\",tp_rank=\"0\"} 0.28\n"));
	ck_load(0, 8, 2, 0.28);
	ck_assert(read_ranks(2,
	    "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 1\n"
	    "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"2\"} 4\n"
	    "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"3\"} 4\n"));
	ck_load(0, 1, 0, -1);
	ck_load(1, 4, 0, -1);
	ck_assert(read_ranks(1, "sglang:num_running_reqs{name=\"m\"} 3\n"));
	ck_load(0, 3, 0, -1);
	/* All ranks of one worker: of each the largest. */
	ck_assert(read_ranks(1,
	    "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 1\n"
	    "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"2\"} 4\n"
	    "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"3\"} 4\n"
	    "sglang:num_running_reqs{dp_rank=\"99\",tp_rank=\"4\"} 2\n"
	    "sglang:token_usage{dp_rank=\"0\",tp_rank=\"0\"} 0.1\n"
	    "sglang:token_usage{dp_rank=\"1\",tp_rank=\"2\"} 0.5\n"));
	ck_load(0, 7, 0, 0.3);
}
END_TEST

START_TEST(others)
{
	ck_assert(read_ranks(1,
	    "trtllm_num_requests_running{model_name=\"m\"} 3.0\n"
	    "trtllm_num_requests_waiting{model_name=\"m\"} 5.0\n"
	    "trtllm_kv_cache_utilization{model_name=\"m\"} 0.6\n"));
	ck_load(0, 3, 5, 0.6);
	ck_assert(read_ranks(1,
	    "# HELP llamacpp:requests_processing Number of requests "
	    "processing.\n# TYPE llamacpp:requests_processing gauge\n"
	    "llamacpp:requests_processing 2\r\n"
	    "llamacpp:requests_deferred 1 1700000000000\n"
	    "llamacpp:kv_cache_usage_ratio 0.125\n"));
	ck_load(0, 2, 1, 0.125);
}
END_TEST

/* Several ranks have a share each; the last of the list counts. */
START_TEST(iterations)
{
	static const char list[] = "\r\n [{\"cpuMemUsage\":0,\"iter\":1,"
	    "\"numActiveRequests\":90,\"numQueuedRequests\":80,"
	    "\"kvCacheStats\":{\"usedNumBlocks\":9,\"maxNumBlocks\":9}},"
	    "{\"iter\":2,\"iterLatencyMS\":1.5e1,\"numActiveRequests\":6,"
	    "\"maxNumActiveRequests\":64,\"numQueuedRequests\":3,"
	    "\"kvCacheStats\":{\"cacheHitRate\":0.85,\"freeNumBlocks\":400,"
	    "\"maxNumBlocks\":1000,\"usedNumBlocks\":600},"
	    "\"inflightBatchingStats\":{\"numActiveRequests\":77,"
	    "\"usedNumBlocks\":1},\"other\":[{\"numActiveRequests\":5}],"
	    "\"timestamp\":\"11-25-2026 20:42:33.1\"},"
	    "{\"iter\":3},{\"numActiveRequests\":null}]\n";

	ck_assert(read_ranks(1, list));
	ck_load(0, 6, 3, 0.6);
	ck_assert(read_ranks(3, list));
	ck_load(0, 2, 1, 0.6);
	ck_load(2, 2, 1, 0.6);
	ck_assert(read_ranks(1, "[{\"numActiveRequests\":7,\"kvCacheStats\":"
	    "{\"usedNumBlocks\":600,\"maxNumBlocks\":0}}]"));
	ck_load(0, 7, 0, -1);
	ck_assert(read_ranks(1, "[{\"numActiveRequests\":1e400,"
	    "\"numQueuedRequests\":-3,\"kvCacheStats\":null}]"));
	ck_load(0, LOAD_REQUESTS_MOST, 0, -1);
}
END_TEST

/* Returns true if the earlier value is the latest. */
static bool
is_same(const char *text)
{
	struct load_reader *r = load_reader_new(1);
	bool same;

	ck_assert_ptr_nonnull(r);
	load_reader_data(r, text, strlen(text));
	ck_assert(!load_reader_end(r, got));
	same = load_reader_same(r);
	load_reader_free(r);
	return same;
}

START_TEST(no_iterations)
{
	static const char *const bad[] = { "[",
	    "[{\"numActiveRequests\":3}", "[] []", "[[]]", "[1]", "[{}]", "",
	    "[{\"numQueuedRequests\":3}]", "[[{\"numActiveRequests\":3}]]",
	    "[{\"a\":{\"numActiveRequests\":3}}]", "{\"numActiveRequests\":3}",
	    "[{\"numActiveRequests\":\"3\"}]" };
	size_t i;

	ck_assert(is_same("[]"));
	ck_assert(is_same(" [ ]\n"));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(!read_ranks(1, bad[i]), "%s", bad[i]);
		ck_assert_msg(!is_same(bad[i]), "%s", bad[i]);
	}
}
END_TEST

/* Only the reader itself is allocated. */
START_TEST(iterations_without_memory)
{
	const char *text = "[{\"numActiveRequests\":3}]";
	struct load_reader *r = load_reader_new(1);

	ck_assert_ptr_nonnull(r);
	alloc_reset();
	alloc_fail_from(1);
	load_reader_data(r, text, strlen(text));
	ck_assert(load_reader_end(r, got));
	ck_assert(!load_reader_same(r));
	ck_assert_uint_eq(alloc_count(), 0);
	alloc_reset();
	load_reader_free(r);
	ck_load(0, 3, 0, -1);
}
END_TEST

START_TEST(damaged)
{
	static const char *const bad[] = { "", "\n",
	    "vllm:num_requests_running 3", "vllm:num_requests_run 3\n", "{}",
	    "<html>404</html>\n", "vllm:num_requests_waiting 3\n" };
	static const char *const nothing[] = { "NaN", "-3", "+Inf", "3x", "x" };
	char text[64];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert(!read_ranks(1, bad[i]));
	for (i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
		(void)snprintf(text, sizeof(text),
		    "vllm:num_requests_running %s\n", nothing[i]);
		ck_assert(read_ranks(1, text));
		ck_load(0, 0, 0, -1);
	}
	ck_assert(read_ranks(1, "vllm:num_requests_running 1e999\n"
	    "vllm:num_requests_running 99999999999999999999999\n"
	    "vllm:num_requests_waiting{engine=\"x\",\ta = \"\\\"}\" , } 5 \n"));
	ck_load(0, LOAD_REQUESTS_MOST, 5, -1);
	ck_assert_ptr_null(load_reader_new(0));
	ck_assert_ptr_null(load_reader_new(LOAD_RANKS_MOST + 1));
	alloc_fail_from(1);
	ck_assert_ptr_null(load_reader_new(1));
	alloc_reset();
	load_reader_free(NULL);
}
END_TEST

/* A long line is passed over, and the next one is read. */
START_TEST(a_long_line)
{
	const char *end = "\"} 4\nvllm:num_requests_running 2\n";
	char *text = malloc(3 * LOAD_LINE_MAX);
	size_t n;

	ck_assert_ptr_nonnull(text);
	for (n = LOAD_LINE_MAX - 60; n < LOAD_LINE_MAX + 60; n++) {
		strcpy(text, "vllm:num_requests_running{a=\"");
		memset(text + strlen(text), 'x', n);
		strcpy(text + 29 + n, end);
		ck_assert(read_ranks(1, text));
		ck_load(0, 29 + n + 4 < LOAD_LINE_MAX ? 6 : 2, 0, -1);
	}
	free(text);
}
END_TEST

/* ------------------------------------------------------------- surplus --- */

static uint64_t
poll(struct surplus *s, uint64_t before, uint64_t after, uint32_t running,
    uint32_t waiting)
{
	const struct engine_load said = { running, waiting, -1 };

	surplus_asked(s, before);
	return surplus_answered(s, after, &said);
}

START_TEST(surplus_of_two_answers)
{
	struct surplus s = { 0, 0 };

	ck_assert_uint_eq(poll(&s, 0, 0, 5, 3), 0);
	ck_assert_uint_eq(poll(&s, 0, 0, 4, 2), 6);
	ck_assert_uint_eq(poll(&s, 0, 0, 9, 9), 6);
	ck_assert_uint_eq(poll(&s, 10, 10, 9, 9), 8);
	ck_assert_uint_eq(poll(&s, 10, 10, 9, 1), 0);
	ck_assert_uint_eq(poll(&s, 10, 10, 9, 9), 0);
	ck_assert_uint_eq(poll(&s, 10, 10, 9, 9), 8);
}
END_TEST

/* Own requests, however many begin and end at once, are no surplus. */
START_TEST(bursts_are_no_surplus)
{
	struct surplus s = { 0, 0 };
	int i;

	for (i = 0; i < 20; i++) {
		ck_assert_uint_eq(poll(&s, 0, 0, 0, 0), 0);
		/* They end after the engine wrote, before it is read. */
		ck_assert_uint_eq(poll(&s, 30, 0, 20, 10), 0);
		/* The engine's numbers are one poll late. */
		ck_assert_uint_eq(poll(&s, 30, 30, 0, 0), 0);
		ck_assert_uint_eq(poll(&s, 0, 0, 20, 10), 0);
		/* Now they are two late. */
		ck_assert_uint_eq(poll(&s, 0, 0, 20, 10), 0);
	}
}
END_TEST

START_TEST(surplus_as_a_load)
{
	const struct engine_load said = { 6, 2, 0.5 }, none = { 0, 0, -1 };
	struct kvr_worker_stats s = { .lease_opens = 10,
	    .prompt_tokens = 10000, .predicted_tokens = 4000 };
	struct kvr_load load;

	surplus_load(4, &said, &s, 64, 64000, &load);
	ck_assert_uint_eq(load.size, sizeof(load));
	ck_assert_uint_eq(load.requests, 4);
	ck_assert_uint_eq(load.prefill_tokens, 600);
	ck_assert_uint_eq(load.active_blocks, 62);
	ck_assert_uint_eq(load.used_blocks, 500);
	surplus_load(0, &none, &s, 64, 64000, &load);
	ck_assert_uint_eq(load.requests + load.prefill_tokens +
	    load.active_blocks + load.used_blocks, 0);
	s.lease_opens = 0;
	surplus_load(4, &said, &s, 0, 64000, &load);
	ck_assert_uint_eq(load.requests, 4);
	ck_assert_uint_eq(load.prefill_tokens + load.active_blocks +
	    load.used_blocks, 0);
	s.lease_opens = 1;
	s.prompt_tokens = s.predicted_tokens = UINT64_MAX;
	surplus_load(1000000, &said, &s, 1e-9, UINT64_MAX, &load);
	ck_assert_uint_le(load.active_blocks, (UINT64_C(1) << 60) - 1);
	ck_assert_uint_le(load.used_blocks, (UINT64_C(1) << 60) - 1);
}
END_TEST

Suite *suite_published_load(void);

Suite *
suite_published_load(void)
{
	Suite *s = suite_create("published_load");
	TCase *t = tcase_create("text");

	tcase_add_test(t, vllm);
	tcase_add_test(t, ranks_by_label);
	tcase_add_test(t, sglang);
	tcase_add_test(t, others);
	tcase_add_test(t, iterations);
	tcase_add_test(t, no_iterations);
	tcase_add_test(t, iterations_without_memory);
	tcase_add_test(t, damaged);
	tcase_add_test(t, a_long_line);
	suite_add_tcase(s, t);
	t = tcase_create("surplus");
	tcase_add_test(t, surplus_of_two_answers);
	tcase_add_test(t, bursts_are_no_surplus);
	tcase_add_test(t, surplus_as_a_load);
	suite_add_tcase(s, t);
	return s;
}
