/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_capacity_read.c - published facts about KV caches, as engines write
 * them, cut anywhere, and damaged. test_samples.c has the forms of lines,
 * test_json_finder.c broken JSON.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "capacity.h"

#define CONFIG "vllm:cache_config_info"

/* The text in pieces of `piece` bytes, each an allocation of its own. */
static struct capacity
read_cut(enum capacity_form form, uint32_t rank, const char *text,
    size_t length, size_t piece)
{
	struct capacity_reader *r = capacity_new();
	struct capacity c;
	size_t at, n;
	char *copy;

	ck_assert_ptr_nonnull(r);
	capacity_begin(r, form, rank);
	for (at = 0; at < length; at += n) {
		n = length - at < piece ? length - at : piece;
		copy = malloc(n);
		ck_assert_ptr_nonnull(copy);
		memcpy(copy, text + at, n);
		capacity_data(r, copy, n);
		free(copy);
	}
	capacity_end(r, &c);
	capacity_free(r);
	return c;
}

/* Whole, and in pieces of some sizes: all alike. */
static struct capacity
read_rank(enum capacity_form form, uint32_t rank, const char *text)
{
	static const size_t pieces[] = { 1, 2, 7, 64 };
	size_t n = strlen(text), i;
	struct capacity want = read_cut(form, rank, text, n, n + 1), got;

	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		got = read_cut(form, rank, text, n, pieces[i]);
		ck_assert_int_eq(got.kind, want.kind);
		ck_assert_uint_eq(got.tokens, want.tokens);
		ck_assert_uint_eq(got.block_tokens, want.block_tokens);
		ck_assert_uint_eq(got.sequences, want.sequences);
		ck_assert_str_eq(got.model, want.model);
	}
	return want;
}

static struct capacity
metrics(const char *text)
{
	return read_rank(CAPACITY_METRICS, 0, text);
}

static struct capacity
json(const char *text)
{
	return read_rank(CAPACITY_JSON, 0, text);
}

/* ---------------------------------------------------------------- vLLM --- */

START_TEST(vllm_as_it_writes)
{
	struct capacity c = metrics(
	    "# HELP vllm:num_requests_running Number of requests.\n"
	    "# TYPE vllm:num_requests_running gauge\n"
	    "vllm:num_requests_running{engine=\"0\",model_name=\"org/m-8B\"}"
	    " 3.0\n"
	    "# TYPE " CONFIG " gauge\n"
	    CONFIG "{block_size=\"16\",cache_dtype=\"auto\",engine=\"0\","
	    "gpu_memory_utilization=\"0.9\",mamba_block_size=\"None\","
	    "num_gpu_blocks=\"27000\",num_gpu_blocks_override=\"None\"} 1.0\n");

	ck_assert_int_eq(c.kind, CAPACITY_VLLM);
	ck_assert_uint_eq(c.tokens, 27000 * 16);
	ck_assert_uint_eq(c.block_tokens, 16);
	ck_assert_uint_eq(c.sequences, 0);
	ck_assert_str_eq(c.model, "org/m-8B");
}
END_TEST

static uint32_t
window_of(const char *more)
{
	char text[300];

	snprintf(text, sizeof(text), CONFIG "{block_size=\"16\","
	    "num_gpu_blocks=\"27000\",%s} 1.0\n", more);
	ck_assert_uint_eq(metrics(text).tokens, 27000 * 16);
	return metrics(text).window;
}

/* "None" means no window, or windows of some layers only. */
START_TEST(window_of_all_layers)
{
	ck_assert_uint_eq(window_of("sliding_window=\"4096\""), 4096);
	ck_assert_uint_eq(window_of("sliding_window=\"None\""), 0);
	ck_assert_uint_eq(window_of("sliding_window=\"-1\""), 0);
	ck_assert_uint_eq(window_of("sliding_window=\"1073741824\""),
	    1 << 30);
	ck_assert_uint_eq(window_of("sliding_window=\"1073741825\""), 0);
	ck_assert_uint_eq(metrics(CONFIG "{block_size=\"16\","
	    "num_gpu_blocks=\"None\",sliding_window=\"9\"} 1\n").window, 0);
}
END_TEST

START_TEST(ranks_are_kept_apart)
{
	static const char text[] =
	    CONFIG "{engine=\"1\",block_size=\"16\",num_gpu_blocks=\"200\"} 1\n"
	    CONFIG "{engine=\"0\",block_size=\"16\",num_gpu_blocks=\"100\"} 1\n"
	    CONFIG "{engine=\"x\",block_size=\"16\",num_gpu_blocks=\"7\"} 1\n"
	    CONFIG "{engine=\"0\",block_size=\"16\",num_gpu_blocks=\"5\"} 1\n";

	ck_assert_uint_eq(metrics(text).tokens, 1600);
	ck_assert_uint_eq(read_rank(CAPACITY_METRICS, 1, text).tokens, 3200);
	ck_assert_uint_eq(read_rank(CAPACITY_METRICS, 2, text).tokens, 0);
}
END_TEST

/* As vLLM 0.32 writes it with two ranks: the blocks are those of both. */
START_TEST(blocks_of_all_ranks)
{
	static const char text[] =
	    CONFIG "{block_size=\"32\",engine=\"0\","
	    "kv_cache_size_tokens=\"5120\",num_gpu_blocks=\"320\"} 1.0\n"
	    CONFIG "{block_size=\"32\",engine=\"1\","
	    "kv_cache_size_tokens=\"5120\",num_gpu_blocks=\"320\"} 1.0\n";
	struct capacity c;
	uint32_t rank;

	for (rank = 0; rank < 2; rank++) {
		c = read_rank(CAPACITY_METRICS, rank, text);
		ck_assert_uint_eq(c.tokens, 5120);
		ck_assert_uint_eq(c.block_tokens, 32);
	}
}
END_TEST

/* Those before it lack the size in tokens; a rank has its share. */
START_TEST(blocks_of_ranks_are_a_sum)
{
	static const char text[] =
	    CONFIG "{block_size=\"32\",engine=\"1\",num_gpu_blocks=\"640\","
	    "num_cpu_blocks=\"64\"} 1.0\n"
	    CONFIG "{block_size=\"32\",engine=\"0\",num_gpu_blocks=\"640\","
	    "num_cpu_blocks=\"64\"} 1.0\n"
	    "vllm:other{engine=\"0\"} 1\n";
	struct capacity_reader *r = capacity_new();
	struct capacity c;
	uint32_t rank;
	size_t i;

	for (rank = 0; rank < 2; rank++) {
		c = read_rank(CAPACITY_METRICS, rank, text);
		ck_assert_uint_eq(c.tokens, 10240);
		ck_assert_uint_eq(c.offload_tokens, 0);
		ck_assert_uint_eq(c.block_tokens, 32);
		ck_assert_uint_eq(c.ranks, 2);
		ck_assert_uint_eq(capacity_whole(&c), 10240);
	}
	/* Not before the last line. */
	capacity_begin(r, CAPACITY_METRICS, 0);
	for (i = 0; i < sizeof(text) - 1 && !capacity_so_far(r, &c); i++)
		capacity_data(r, text + i, 1);
	ck_assert_uint_eq(c.tokens, 10240);
	ck_assert_uint_gt(i, sizeof(text) - 30);
	capacity_free(r);
}
END_TEST

START_TEST(ranks_that_are_not_all_there)
{
	ck_assert_uint_eq(metrics(CONFIG "{engine=\"0\"} 1\n" CONFIG
	    "{engine=\"2\"} 1\n").ranks, 0);
	ck_assert_uint_eq(metrics(CONFIG "{engine=\"0\"} 1\n" CONFIG
	    "{engine=\"4096\"} 1\n").ranks, 1);
	ck_assert_uint_eq(metrics(CONFIG "{engine=\"0\"} 1\n" CONFIG
	    "{engine=\"0\"} 1\n").ranks, 1);
	ck_assert_uint_eq(metrics("vllm:x{engine=\"0\"} 1\n").ranks, 0);
	ck_assert_uint_eq(json("{\"dp_size\":4,\"max_total_num_tokens\":9}")
	    .ranks, 4);
	ck_assert_uint_eq(json("{\"dp_size\":99999,\"max_total_num_tokens\""
	    ":9}").ranks, 0);
}
END_TEST

static uint32_t
unit_of(const char *unit, const char *more)
{
	char text[300];

	snprintf(text, sizeof(text), CONFIG "{block_size=\"16\","
	    "kv_cache_size_tokens=\"90000\",num_gpu_blocks=\"1000\","
	    "prefix_match_unit=\"%s\"%s} 1.0\n", unit, more);
	return metrics(text).block_tokens;
}

/* Hits of hybrid models are rounded to it. */
START_TEST(unit_of_hits)
{
	ck_assert_uint_eq(unit_of("528", ",mamba_block_size=\"528\""), 528);
	ck_assert_uint_eq(unit_of("2176", ""), 2176);
	ck_assert_uint_eq(unit_of("None", ""), 0);
	ck_assert_uint_eq(unit_of("0", ""), 0);
	ck_assert_uint_eq(metrics(CONFIG "{block_size=\"16\","
	    "prefix_match_unit=\"32\",num_gpu_blocks=\"10\"} 1\n")
	    .block_tokens, 32);
}
END_TEST

/* ------------------------------------------------------------- offload --- */

START_TEST(offload_of_vllm)
{
	struct capacity c = metrics(CONFIG "{block_size=\"16\","
	    "kv_offloading_size=\"8.0\",num_gpu_blocks=\"1000\"} 1\n");

	ck_assert_uint_eq(c.tokens, 16000);
	ck_assert_uint_eq(c.offload_tokens, 0);
	ck_assert_uint_eq(c.offload_bytes, UINT64_C(8) << 30);
	/* It has this at least, which is better than no number. */
	ck_assert_uint_eq(capacity_whole(&c), 16000);
	/* Swap space does not count. */
	c = metrics(CONFIG "{block_size=\"16\",kv_offloading_size=\"0.5\","
	    "num_cpu_blocks=\"3000\",num_gpu_blocks=\"1000\"} 1\n");
	ck_assert_uint_eq(c.offload_bytes, UINT64_C(1) << 29);
	ck_assert_uint_eq(capacity_whole(&c), 16000);
	c = metrics(CONFIG "{block_size=\"16\",kv_offloading_size=\"None\","
	    "num_cpu_blocks=\"None\",num_gpu_blocks=\"1000\"} 1\n");
	ck_assert_uint_eq(c.offload_bytes + c.offload_tokens, 0);
	ck_assert_uint_eq(capacity_whole(&c), 16000);
}
END_TEST

static struct capacity
tiers_of(const char *more)
{
	char text[400];

	snprintf(text, sizeof(text), "{%s,\"internal_states\":[{"
	    "\"memory_usage\":{\"kvcache\":20.0,\"token_capacity\":100000}}"
	    "]}", more);
	return json(text);
}

START_TEST(offload_of_sglang)
{
	struct capacity c = tiers_of("\"enable_hierarchical_cache\":true,"
	    "\"hicache_ratio\":2.0,\"hicache_size\":0");

	ck_assert_uint_eq(c.tokens, 100000);
	ck_assert_uint_eq(c.offload_tokens, 200000);
	ck_assert_uint_eq(capacity_whole(&c), 300000);
	c = tiers_of("\"enable_hierarchical_cache\":true,"
	    "\"hicache_ratio\":2.0,\"hicache_size\":30");
	ck_assert_uint_eq(c.offload_tokens, 150000);
	ck_assert_uint_eq(c.offload_bytes, UINT64_C(30000000000));
	c = tiers_of("\"enable_hierarchical_cache\":false,"
	    "\"hicache_ratio\":2.0,\"hicache_size\":30");
	ck_assert_uint_eq(c.offload_tokens + c.offload_bytes, 0);
	c = json("{\"enable_hierarchical_cache\":true,\"hicache_size\":30,"
	    "\"max_total_num_tokens\":5000}");
	ck_assert_uint_eq(c.tokens, 5000);
	ck_assert_uint_eq(capacity_whole(&c), 5000);
	c = tiers_of("\"enable_hierarchical_cache\":true,"
	    "\"hicache_ratio\":-2.0");
	ck_assert_uint_eq(c.offload_tokens, 0);
}
END_TEST

START_TEST(size_in_tokens_is_preferred)
{
	struct capacity c = metrics(CONFIG "{block_size=\"4\",engine=\"0\","
	    "kv_cache_size_tokens=\"286458\",num_gpu_blocks=\"9000\"} 1.0\n");

	ck_assert_uint_eq(c.tokens, 286458);
	/* With several kinds of block, hits are not rounded to this. */
	ck_assert_uint_eq(c.block_tokens, 0);
	c = metrics(CONFIG "{block_size=\"16\",kv_cache_size_tokens=\"1584\","
	    "num_gpu_blocks=\"100\"} 1.0\n");
	ck_assert_uint_eq(c.tokens, 1584);
	ck_assert_uint_eq(c.block_tokens, 16);
	c = metrics(CONFIG "{kv_cache_size_tokens=\"64000\"} 1\n");
	ck_assert_uint_eq(c.tokens, 64000);
	ck_assert_uint_eq(c.block_tokens, 0);
	c = metrics(CONFIG "{block_size=\"16\",kv_cache_size_tokens=\"None\","
	    "num_gpu_blocks=\"100\"} 1.0\n");
	ck_assert_uint_eq(c.tokens, 1600);
}
END_TEST

/* The block of such a model is larger than the one that is published. */
START_TEST(product_of_a_hybrid_model_is_not_believed)
{
	struct capacity c = metrics(CONFIG "{block_size=\"16\","
	    "mamba_block_size=\"528\",num_gpu_blocks=\"1000\"} 1.0\n");

	ck_assert_int_eq(c.kind, CAPACITY_VLLM);
	ck_assert_uint_eq(c.tokens, 0);
	ck_assert_uint_eq(c.block_tokens, 0);
	c = metrics(CONFIG "{block_size=\"16\",kv_cache_size_tokens=\"90000\","
	    "mamba_block_size=\"528\",num_gpu_blocks=\"1000\"} 1.0\n");
	ck_assert_uint_eq(c.tokens, 90000);
	ck_assert_uint_eq(c.block_tokens, 0);
}
END_TEST

static void
no_capacity(enum capacity_form form, const char *text)
{
	struct capacity c = read_rank(form, 0, text);

	ck_assert_msg(c.tokens == 0, "%s", text);
	ck_assert_msg(c.block_tokens == 0, "%s", text);
}

START_TEST(metrics_without_a_capacity)
{
	static const char *const texts[] = {
		"", CONFIG "{} 1\n",
		CONFIG "{block_size=\"16\",num_gpu_blocks=\"None\"} 1.0\n",
		CONFIG "{block_size=\"16\",num_gpu_blocks=\"-5\"} 1.0\n",
		CONFIG "{block_size=\"16\",num_gpu_blocks=\"NaN\"} 1.0\n",
		CONFIG "{block_size=\"16\",num_gpu_blocks=\"1e9\"} 1.0\n",
		CONFIG "{block_size=\"16\",num_gpu_blocks=\"0\"} 1.0\n",
		CONFIG "{block_size=\"16\",num_gpu_blocks=\"\"} 1.0\n",
		CONFIG "{block_size=\"0\",num_gpu_blocks=\"9\"} 1.0\n",
		CONFIG "{block_size=\"16\",num_gpu_blocks="
		    "\"99999999999999999999999\"} 1.0\n",
		CONFIG "{block_size=\"1048577\",num_gpu_blocks=\"9\"} 1.0\n",
		/* 2^40 and 2^20 are the bounds of both: so is their product */
		CONFIG "{block_size=\"1048576\",num_gpu_blocks="
		    "\"1099511627776\"} 1.0\n",
		/* a line that is cut, or no longer valid */
		CONFIG "{block_size=\"16\",num_gpu_blocks=\"9\"} 1.0",
		CONFIG "{block_size=\"16\",num_gpu_blocks=\"9\"} 0.0\n",
		CONFIG "{block_size=\"16\",num_gpu_blocks=\"9\"} NaN\n",
		/* other metrics */
		CONFIG "s{block_size=\"16\",num_gpu_blocks=\"9\"} 1.0\n",
		" " CONFIG "{block_size=\"16\",num_gpu_blocks=\"9\"} 1.0\n",
		("sglang:cache_config_info{block_size=\"16\","
		    "num_gpu_blocks=\"9\"} 1.0\n")
	};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		no_capacity(CAPACITY_METRICS, texts[i]);
}
END_TEST

/* -------------------------------------------------------------- SGLang --- */

START_TEST(sglang_as_it_writes)
{
	struct capacity c = json("{\"model_path\":\"org/m-8B\","
	    "\"tokenizer_path\":\"t\",\"page_size\":1,"
	    "\"max_running_requests\":null,\"max_total_tokens\":null,"
	    "\"served_model_name\":\"m-8B\",\"status\":\"ready\","
	    "\"max_total_num_tokens\":432000,\"max_req_input_len\":131066,"
	    "\"internal_states\":[{\"page_size\":1,\"last_gen_throughput\":"
	    "129.3,\"memory_usage\":{\"weight\":0.98,\"kvcache\":0.23,"
	    "\"token_capacity\":432000,\"graph\":0},"
	    "\"effective_max_running_requests_per_dp\":128}],"
	    "\"version\":\"0.5.9\"}");

	ck_assert_int_eq(c.kind, CAPACITY_SGLANG);
	ck_assert_uint_eq(c.tokens, 432000);
	ck_assert_uint_eq(c.block_tokens, 1);
	ck_assert_uint_eq(c.sequences, 128);
	ck_assert_str_eq(c.model, "m-8B");
}
END_TEST

START_TEST(sglang_in_its_variants)
{
	struct capacity c = json("{\"max_total_num_tokens\":5000,"
	    "\"page_size\":64,\"max_running_requests\":48}");

	ck_assert_uint_eq(c.tokens, 5000);
	ck_assert_uint_eq(c.block_tokens, 64);
	ck_assert_uint_eq(c.sequences, 48);
	c = json("{\"internal_states\":[{\"max_total_num_tokens\":77,"
	    "\"page_size\":16,\"max_running_requests\":3}],\"page_size\":1}");
	ck_assert_uint_eq(c.tokens, 77);
	ck_assert_uint_eq(c.block_tokens, 16);
	ck_assert_uint_eq(c.sequences, 3);
	/* one state instead of a list */
	c = json("{\"internal_states\":{\"memory_usage\":"
	    "{\"token_capacity\":20480}}}");
	ck_assert_uint_eq(c.tokens, 20480);
	/* The path has not the name of the model's path, if both are given. */
	c = json("{\"served_model_name\":\"s\",\"model_path\":\"p\","
	    "\"max_total_num_tokens\":1}");
	ck_assert_str_eq(c.model, "s");
}
END_TEST

static uint64_t
windows_of(const char *memory)
{
	char text[300];

	snprintf(text, sizeof(text), "{\"swa_full_tokens_ratio\":0.8,"
	    "\"token_capacity_swa\":7,\"internal_states\":[{"
	    "\"token_capacity_swa\":8,\"memory_usage\":{%s}}]}", memory);
	return json(text).window_tokens;
}

START_TEST(memory_for_windows)
{
	ck_assert_uint_eq(windows_of("\"token_capacity\":9919,"
	    "\"token_capacity_swa\":991"), 991);
	ck_assert_uint_eq(windows_of("\"token_capacity\":9919,"
	    "\"token_capacity_swa\":null"), 0);
	ck_assert_uint_eq(windows_of("\"token_capacity\":9919"), 0);
	ck_assert_uint_eq(windows_of("\"token_capacity_swa\":991"), 0);
}
END_TEST

START_TEST(states_of_ranks)
{
	static const char text[] = "{\"max_total_num_tokens\":9,"
	    "\"internal_states\":[{\"max_total_num_tokens\":100},null,"
	    "{\"inner\":{\"max_total_num_tokens\":5},"
	    "\"max_total_num_tokens\":300}]}";

	ck_assert_uint_eq(json(text).tokens, 100);
	ck_assert_uint_eq(read_rank(CAPACITY_JSON, 1, text).tokens, 0);
	ck_assert_uint_eq(read_rank(CAPACITY_JSON, 2, text).tokens, 300);
	ck_assert_uint_eq(read_rank(CAPACITY_JSON, 3, text).tokens, 0);
}
END_TEST

START_TEST(json_without_a_capacity)
{
	static const char *const texts[] = {
		"", "{", "{}", "[]", "null", "17", "\"max_total_num_tokens\"",
		"{\"max_total_num_tokens\":null}",
		"{\"max_total_num_tokens\":-1}",
		"{\"max_total_num_tokens\":1e9}",
		"{\"max_total_num_tokens\":5.5}",
		"{\"max_total_num_tokens\":\"5000\"}",
		"{\"max_total_num_tokens\":[5000]}",
		"{\"max_total_num_tokens\":1099511627777}",
		"{\"max_total_num_tokens\":99999999999999999999999999}",
		"{\"max_total_num_tokens\":NaN}",
		"{\"x\":{\"max_total_num_tokens\":5000}}",
		"{\"x\":[{\"max_total_num_tokens\":5000}]}",
		"[{\"max_total_num_tokens\":5000}]",
		"{\"max_total_num_tokens\\u0000\":5000}",
		"{\"max_total_num_tokens\":5000",       /* cut */
		"{\"max_total_num_tokens\":5000}}"      /* broken */
	};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		no_capacity(CAPACITY_JSON, texts[i]);
}
END_TEST

/* vLLM's own /server_info has nothing to read, and is not SGLang's. */
START_TEST(json_of_another_engine)
{
	struct capacity c = json("{\"vllm_config\":\"model='m', ...\"}");

	ck_assert_int_eq(c.kind, CAPACITY_OTHER);
	c = json("{\"default_generation_settings\":{\"n_ctx\":4096},"
	    "\"total_slots\":4,\"model_path\":\"m.gguf\"}");
	ck_assert_int_eq(c.kind, CAPACITY_LLAMA);
	ck_assert_uint_eq(c.tokens, 0);
	ck_assert_uint_eq(c.sequences, 4);
	ck_assert_str_eq(c.model, "m.gguf");
}
END_TEST

/* Long strings take no memory. */
START_TEST(json_that_is_long)
{
	const size_t most = 3000000;
	char *text = malloc(most);
	struct capacity c;
	size_t n;

	ck_assert_ptr_nonnull(text);
	n = (size_t)snprintf(text, most, "{\"chat_template\":\"\\n");
	memset(text + n, 'x', 2000000);
	n += 2000000;
	n += (size_t)snprintf(text + n, most - n,
	    "\\\"\",\"max_total_num_tokens\":640}");
	c = read_cut(CAPACITY_JSON, 0, text, n, 1000);
	ck_assert_uint_eq(c.tokens, 640);
	free(text);
}
END_TEST

START_TEST(names_of_models_are_bounded_and_clean)
{
	char text[600];
	struct capacity c;

	memset(text, 'm', sizeof(text));
	memcpy(text, "vllm:a{model_name=\"", 19);
	memcpy(text + 590, "\"} 1\n", 6);
	c = metrics(text);
	ck_assert_uint_eq(strlen(c.model), CAPACITY_MODEL_MAX - 1);
	memcpy(text, "{\"total_slots\":1,\"model_alias\":\"", 32);
	memcpy(text + 590, "\"}", 3);
	c = json(text);
	ck_assert_uint_eq(strlen(c.model), CAPACITY_MODEL_MAX - 1);
	c = metrics("vllm:a{model_name=\"a\033[31mb\"} 1\n");
	ck_assert_str_eq(c.model, "a?[31mb");
}
END_TEST

/* Without memory nothing is known, and nothing is lost. */
START_TEST(no_memory)
{
	static const char text[] = "{\"max_total_num_tokens\":5000}";
	struct capacity_reader *r;
	struct capacity c;
	unsigned long i;

	alloc_fail_at(1);
	ck_assert_ptr_null(capacity_new());
	alloc_reset();
	r = capacity_new();
	for (i = 1; i < 20; i++) {
		capacity_begin(r, CAPACITY_JSON, 0);
		alloc_fail_from(i);
		capacity_data(r, text, sizeof(text) - 1);
		capacity_end(r, &c);
		alloc_reset();
		ck_assert(c.tokens == 0 || c.tokens == 5000);
	}
	ck_assert_uint_eq(c.tokens, 5000);
	capacity_free(r);
	capacity_free(NULL);
}
END_TEST

START_TEST(facts_of_several_texts)
{
	struct capacity sum = { .kind = CAPACITY_VLLM, .model = "m" };
	const struct capacity later = { .kind = CAPACITY_SGLANG, .tokens = 5,
	    .block_tokens = 1, .sequences = 3, .window = 6, .window_tokens = 7,
	    .model = "n" };

	capacity_add(&sum, &later);
	ck_assert_int_eq(sum.kind, CAPACITY_VLLM);
	ck_assert_uint_eq(sum.tokens, 5);
	ck_assert_uint_eq(sum.block_tokens, 1);
	ck_assert_uint_eq(sum.sequences, 3);
	ck_assert_uint_eq(sum.window, 6);
	ck_assert_uint_eq(sum.window_tokens, 7);
	ck_assert_str_eq(sum.model, "m");
	ck_assert_str_eq(capacity_kind_name(CAPACITY_VLLM), "vLLM");
	ck_assert_str_eq(capacity_kind_name(CAPACITY_OTHER), "?");
}
END_TEST

Suite *suite_capacity_read(void);

Suite *
suite_capacity_read(void)
{
	Suite *s = suite_create("capacity_read");
	TCase *t = tcase_create("metrics");

	tcase_add_test(t, vllm_as_it_writes);
	tcase_add_test(t, window_of_all_layers);
	tcase_add_test(t, ranks_are_kept_apart);
	tcase_add_test(t, blocks_of_all_ranks);
	tcase_add_test(t, blocks_of_ranks_are_a_sum);
	tcase_add_test(t, ranks_that_are_not_all_there);
	tcase_add_test(t, unit_of_hits);
	tcase_add_test(t, offload_of_vllm);
	tcase_add_test(t, offload_of_sglang);
	tcase_add_test(t, size_in_tokens_is_preferred);
	tcase_add_test(t, product_of_a_hybrid_model_is_not_believed);
	tcase_add_test(t, metrics_without_a_capacity);
	suite_add_tcase(s, t);
	t = tcase_create("json");
	tcase_add_test(t, sglang_as_it_writes);
	tcase_add_test(t, sglang_in_its_variants);
	tcase_add_test(t, memory_for_windows);
	tcase_add_test(t, states_of_ranks);
	tcase_add_test(t, json_without_a_capacity);
	tcase_add_test(t, json_of_another_engine);
	tcase_add_test(t, json_that_is_long);
	tcase_add_test(t, names_of_models_are_bounded_and_clean);
	tcase_add_test(t, no_memory);
	tcase_add_test(t, facts_of_several_texts);
	suite_add_tcase(s, t);
	return s;
}
