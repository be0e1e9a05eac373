/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_trace.c - the common parts of the tools: the trace reader, tokens from
 * hash ids, the policy half, the sample generator, the simple engine model,
 * and all of them on a published trace.
 */
#include "alloc.h"
#include "half.h"
#include "plain_engine.h"
#include "policy_run.h"
#include "rng.h"
#include "sample.h"
#include "test.h"
#include "tokens.h"
#include "trace.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- reader --- */

static FILE *
text_file(const char *text)
{
	FILE *f = tmpfile();

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ne(fputs(text, f), EOF);
	rewind(f);
	return f;
}

#define LINE(t, in, ids) "{\"timestamp\": " t ", \"input_length\": " in \
	", \"output_length\": 7, \"hash_ids\": [" ids "]}\n"

START_TEST(reader_fields)
{
	FILE *f = text_file(LINE("5", "1000", "3, 4")
	    "\n  \t\n"
	    "{\"hash_ids\":[9223372036854775808,18446744073709551614],"
	    "\"more\":{\"x\":[1,null]},\"output_length\":0,\"session\":9,"
	    "\"input_length\":9000,\"timestamp\":6.0}");
	struct trace *t = trace_new(f, "text");
	struct trace_request r;

	ck_assert_int_eq(trace_next(t, &r), 1);
	ck_assert_uint_eq(r.number, 0);
	ck_assert_int_eq(r.timestamp_ms, 5);
	ck_assert_int_eq(r.arrival_ms, 0);
	ck_assert_uint_eq(r.input_length, 1000);
	ck_assert_uint_eq(r.output_length, 7);
	ck_assert_uint_eq(r.tokens, 1000);
	ck_assert_uint_eq(r.n_ids, 2);
	ck_assert_uint_eq(r.ids[0], 3);
	ck_assert_uint_eq(r.ids[1], 4);
	ck_assert_uint_eq(r.session, 0);
	ck_assert_int_eq(trace_next(t, &r), 1);
	ck_assert_uint_eq(r.session, 9);
	ck_assert_uint_eq(r.number, 1);
	ck_assert_int_eq(r.arrival_ms, 1);
	ck_assert_uint_eq(r.input_length, 9000);
	ck_assert_uint_eq(r.tokens, 1024);
	ck_assert_uint_eq(r.ids[0], UINT64_C(1) << 63);
	ck_assert_uint_eq(r.ids[1], UINT64_MAX - 1);
	ck_assert_int_eq(trace_next(t, &r), 0);
	ck_assert_int_eq(trace_next(t, &r), 0);
	ck_assert_uint_eq(trace_bytes(t), (uint64_t)ftell(f));
	trace_free(t);
	fclose(f);
}
END_TEST

/* The second request of a tick is kept while the first one is read. */
START_TEST(reader_seen)
{
	FILE *f = text_file("{\"timestamp\":1,\"input_length\":1500,"
	    "\"output_length\":0,\"hash_ids\":[1,2,3],\"seen_ids\":[1,9]}\n"
	    LINE("1", "600", "4, 5")
	    "{\"timestamp\":2,\"input_length\":600,\"output_length\":0,"
	    "\"hash_ids\":[6,7],\"seen_ids\":[8]}");
	static const uint64_t tokens[] = { 1500, 600, 600 };
	static const uint64_t seen[] = { 1024, 600, 512 };
	static const uint64_t last[] = { 9, 5, 8 };
	struct trace *t = trace_new(f, "text");
	struct trace_request r, s;
	int i;

	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(trace_next(t, &r), 1);
		ck_assert_uint_eq(r.tokens, tokens[i]);
		s = trace_seen(&r);
		ck_assert_uint_eq(s.tokens, seen[i]);
		ck_assert_uint_eq(s.ids[s.n_ids - 1], last[i]);
	}
	ck_assert_uint_eq(r.ids[1], 7);
	ck_assert_int_eq(trace_next(t, &r), 0);
	trace_free(t);
	fclose(f);
}
END_TEST

START_TEST(reader_without_tokens)
{
	FILE *f = text_file(LINE("0", "0", "1") LINE("0", "5", ""));
	struct trace *t = trace_new(f, "text");
	struct trace_request r;

	ck_assert_int_eq(trace_next(t, &r), 1);
	ck_assert_uint_eq(r.tokens, 0);
	ck_assert_int_eq(trace_next(t, &r), 1);
	ck_assert_uint_eq(r.tokens, 0);
	ck_assert_uint_eq(r.n_ids, 0);
	ck_assert_int_eq(trace_next(t, &r), 0);
	trace_free(t);
	fclose(f);
}
END_TEST

/* Requests at 100, 107 and 5000 are spread; the last tick has 3000 ms. */
START_TEST(reader_spreads)
{
	static const int64_t expected[] = { 0, 1, 3, 5, 7, 1638, 3269, 4900,
	    6400 };
	FILE *f = text_file(LINE("100", "1", "1") LINE("100", "1", "2")
	    LINE("100", "1", "3") LINE("100", "1", "4") LINE("107", "1", "5")
	    LINE("107", "1", "6") LINE("107", "1", "7") LINE("5000", "1", "8")
	    LINE("5000", "1", "9"));
	struct trace *t = trace_new(f, "text");
	struct trace_request r;
	size_t i;

	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		ck_assert_int_eq(trace_next(t, &r), 1);
		ck_assert_int_eq(r.arrival_ms, expected[i]);
		ck_assert_uint_eq(r.ids[0], i + 1);
	}
	ck_assert_int_eq(trace_next(t, &r), 0);
	trace_free(t);
	fclose(f);
}
END_TEST

static const struct {
	const char *text;
	const char *error;
} bad[] = {
	{ "x\n", "t:1: not JSON" },
	{ "null\n", "t:1: not JSON: no complete object" },
	{ "\n\n[1]\n", "t:3: not a JSON object" },
	{ "{\"timestamp\": 1", "t:1: not JSON: no complete object" },
	{ "{} {}\n", "t:1: not JSON" },
	{ "{}\n", "t:1: timestamp is missing" },
	{ LINE("-1", "1", "1"), "t:1: timestamp is not an integer" },
	{ LINE("1.5", "1", "1"), "t:1: timestamp is not an integer" },
	{ LINE("\"1\"", "1", "1"), "t:1: timestamp is not an integer" },
	{ LINE("9223372036854775808", "1", "1"), "t:1: timestamp is not" },
	{ LINE("1e300", "1", "1"), "t:1: timestamp is not" },
	{ LINE("1", "true", "1"), "t:1: input_length is not" },
	{ "{\"timestamp\": 1, \"input_length\": 1}",
	    "t:1: output_length is missing" },
	{ "{\"timestamp\": 1, \"input_length\": 1, \"output_length\": 1}",
	    "t:1: hash_ids is missing" },
	{ "{\"timestamp\": 1, \"input_length\": 1, \"output_length\": 1, "
	    "\"hash_ids\": 4}", "t:1: hash_ids is not an array" },
	{ "{\"session\": -1, \"timestamp\": 1, \"input_length\": 1, "
	    "\"output_length\": 1, \"hash_ids\": []}",
	    "t:1: session is not an integer" },
	{ "{\"timestamp\": 1, \"input_length\": 1, \"output_length\": 1, "
	    "\"hash_ids\": [], \"seen_ids\": 1}",
	    "t:1: seen_ids is not an array" },
	{ "{\"timestamp\": 1, \"input_length\": 1, \"output_length\": 1, "
	    "\"hash_ids\": [5], \"seen_ids\": [4, -1]}",
	    "t:1: seen_ids[1] is not" },
	{ LINE("1", "1", "1, -2"), "t:1: hash_ids[1] is not" },
	{ LINE("1", "1", "null"), "t:1: hash_ids[0] is not" },
	{ LINE("1", "1", "18446744073709551616"), "t:1: hash_ids[0] is not" },
	{ LINE("5", "1", "1") LINE("5", "1", "1") "\n" LINE("4", "1", "1"),
	    "t:4: timestamp 4 precedes the last one: sort the trace" },
	{ LINE("7", "1", "1") LINE("100000000008", "1", "1"),
	    "t:2: timestamp is three years after" }
};

START_TEST(reader_refuses)
{
	FILE *f = text_file(bad[_i].text);
	struct trace *t = trace_new(f, "t");
	struct trace_request r;

	ck_assert_int_eq(trace_next(t, &r), -1);
	ck_assert_msg(strncmp(trace_error(t), bad[_i].error,
	    strlen(bad[_i].error)) == 0, "%s", trace_error(t));
	ck_assert_int_eq(trace_next(t, &r), -1);
	trace_free(t);
	fclose(f);
}
END_TEST

/* Generated files at and beyond each limit. */
static int
read_generated(size_t requests, size_t ids, size_t spaces, char *error)
{
	FILE *f = tmpfile();
	struct trace *t;
	struct trace_request r;
	size_t i, k, n = 0;
	int result;

	for (i = 0; i < requests; i++) {
		fprintf(f, "{\"timestamp\": 1, \"input_length\": 1, "
		    "\"output_length\": 1, %*s\"hash_ids\": [1", (int)spaces,
		    "");
		for (k = 1; k < ids; k++)
			fputs(",1", f);
		fputs("]}\n", f);
	}
	rewind(f);
	t = trace_new(f, "t");
	while ((result = trace_next(t, &r)) == 1)
		n++;
	snprintf(error, 128, "%s", trace_error(t));
	trace_free(t);
	fclose(f);
	ck_assert(result != 0 || n == requests);
	return result;
}

START_TEST(reader_limits)
{
	char error[128];

	ck_assert_int_eq(read_generated(1, TRACE_IDS_MAX, 0, error), 0);
	ck_assert_int_eq(read_generated(1, TRACE_IDS_MAX + 1, 0, error), -1);
	ck_assert_str_eq(error, "t:1: more than 16384 hash_ids");
	ck_assert_int_eq(read_generated(1, 1, TRACE_LINE_MAX - 75, error), 0);
	ck_assert_int_eq(read_generated(1, 1, TRACE_LINE_MAX, error), -1);
	ck_assert_str_eq(error, "t:1: the line is longer than 1048576 bytes");
	ck_assert_int_eq(read_generated(TRACE_TICK_REQUESTS_MAX - 1, 1, 0,
	    error), 0);
	ck_assert_int_eq(read_generated(TRACE_TICK_REQUESTS_MAX + 1, 1, 0,
	    error), -1);
	ck_assert_str_eq(error,
	    "t:65537: more than 65535 requests at one timestamp");
	ck_assert_int_eq(read_generated(257, TRACE_IDS_MAX, 0, error), -1);
	ck_assert_str_eq(error,
	    "t:257: more than 4194304 hash_ids at one timestamp");
}
END_TEST

/* Each allocation fails once: an error after correct requests. */
START_TEST(reader_memory)
{
	unsigned long n, count;
	bool complete = false;

	for (n = 1; !complete && n < 100; n++) {
		FILE *f = text_file(LINE("1", "600", "1, 2")
		    LINE("1", "600", "1, 3") LINE("2", "600", "1, 4"));
		struct trace *t;
		struct trace_request r;
		int result = -1;

		alloc_fail_at(n);
		t = trace_new(f, "t");
		while (t != NULL && (result = trace_next(t, &r)) == 1)
			ck_assert_uint_eq(r.ids[1], r.number + 2);
		count = alloc_count();
		alloc_reset();
		complete = result == 0;
		ck_assert(complete ? count < n : count >= n);
		ck_assert(complete || t == NULL || strstr(trace_error(t),
		    "out of memory") != NULL);
		trace_free(t);
		fclose(f);
	}
	ck_assert(complete && n > 5);
}
END_TEST

/* --------------------------------------------------------------- tokens --- */

START_TEST(tokens_formula)
{
	uint64_t ids[2] = { 46, UINT64_MAX };
	struct trace_request r = { .tokens = 700, .n_ids = 2, .ids = ids };
	struct tokens b = { NULL, 0 };
	size_t i;

	/* Computed separately with unlimited integers. */
	ck_assert_uint_eq(token_of(0, 0), 41772);
	ck_assert_uint_eq(token_of(0, 1), 107911);
	ck_assert_uint_eq(token_of(46, 511), 62105);
	ck_assert_uint_eq(token_of(1, 0), token_of(0, 512));
	/* id * 512 wraps: ids modulo 2^55 are equal. */
	ck_assert_uint_eq(token_of(7 + (UINT64_C(1) << 55), 9), token_of(7, 9));
	ck_assert_uint_eq(token_of(UINT64_MAX, 511), token_of(0, UINT64_MAX));
	ck_assert_int_eq(tokens_make(&b, &r), 0);
	for (i = 0; i < 700; i++) {
		ck_assert_uint_eq(b.tokens[i], token_of(ids[i / 512], i % 512));
		ck_assert_uint_lt(b.tokens[i], 1u << 17);
	}
	tokens_free(&b);
	alloc_fail_at(1);
	ck_assert_int_eq(tokens_make(&b, &r), -1);
	alloc_reset();
	ck_assert_ptr_null(b.tokens);
}
END_TEST

/* ----------------------------------------------------------------- half --- */

static uint32_t
choose(struct half *h, const struct half_overlap *o, size_t n, uint64_t tokens,
    uint32_t longest, uint32_t taken)
{
	struct half_choice c = half_choose(h, o, n, tokens, 16);

	ck_assert_uint_eq(c.longest, longest);
	ck_assert_uint_eq(c.blocks, taken);
	return c.worker;
}

START_TEST(half_by_hand)
{
	struct half *h = half_new(4);
	struct half_overlap none = { 0, 0 };
	struct half_overlap at2[] = { { 2, 5 } };
	struct half_overlap two[] = { { 3, 5 }, { 1, 5 }, { 0, 4 } };
	struct half_overlap little[] = { { 1, 1 }, { 3, 2 } };

	/* Order of assignment, least recent first: 0 1 2 3. */
	ck_assert_uint_eq(choose(h, &none, 0, 160, 0, 0), 0); /* 1 2 3 0 */
	ck_assert_uint_eq(choose(h, &none, 0, 160, 0, 0), 1); /* 2 3 0 1 */
	/* Exactly half of 160 tokens is enough, ... */
	ck_assert_uint_eq(choose(h, at2, 1, 160, 5, 5), 2);   /* 3 0 1 2 */
	/* ... one token less is not, and 3 has no overlap. */
	ck_assert_uint_eq(choose(h, at2, 1, 161, 5, 0), 3);   /* 0 1 2 3 */
	/* A tie goes to the least recent of the longest, which is 1. */
	ck_assert_uint_eq(choose(h, two, 3, 100, 5, 5), 1);   /* 0 2 3 1 */
	ck_assert_uint_eq(choose(h, two, 3, 100, 5, 5), 3);   /* 0 2 1 3 */
	/* it is too short: the least recent of all, with its own overlap */
	ck_assert_uint_eq(choose(h, two, 3, 1000, 5, 4), 0);  /* 2 1 3 0 */
	ck_assert_uint_eq(choose(h, little, 2, 1000, 2, 0), 2);
	ck_assert_uint_eq(choose(h, little, 2, 1000, 2, 1), 1);
	ck_assert_uint_eq(choose(h, little, 2, 64, 2, 2), 3);
	half_free(h);
	ck_assert_ptr_null(half_new(0));
	alloc_fail_at(2);
	ck_assert_ptr_null(half_new(4));
	alloc_reset();
}
END_TEST

START_TEST(half_checksum_known)
{
	/* The offset basis, and the FNV-1a of one byte 'a'. */
	ck_assert(half_checksum(HALF_CHECKSUM, 0) ==
	    UINT64_C(0xaf63bd4c8601b7df));
	ck_assert(half_checksum(HALF_CHECKSUM, 'a') ==
	    UINT64_C(0xaf63dc4c8601ec8c));
}
END_TEST

/* --------------------------------------------------------------- sample --- */

static uint64_t
sample_digest(const struct sample_options *o, uint64_t *bytes)
{
	FILE *f = tmpfile();
	uint64_t digest = HALF_CHECKSUM;
	int c;

	ck_assert_int_eq(sample_write(f, o), 0);
	rewind(f);
	for (*bytes = 0; (c = getc(f)) != EOF; ++*bytes)
		digest = half_checksum(digest, (uint64_t)c);
	fclose(f);
	return digest;
}

/* The same bytes on every platform. */
START_TEST(sample_same_everywhere)
{
	struct sample_options o;
	uint64_t bytes, other, digest;

	sample_defaults(&o);
	digest = sample_digest(&o, &bytes);
	ck_assert_msg(digest == UINT64_C(0x23846a29e44264a5),
	    "digest %016" PRIx64 ", %" PRIu64 " bytes", digest, bytes);
	o.seed = 2;
	ck_assert(sample_digest(&o, &other) != UINT64_C(0x23846a29e44264a5) &&
	    other > 0);
}
END_TEST

struct shape {
	uint64_t requests;
	uint64_t shared; /* leading ids that an earlier request also had */
	uint64_t ids;
	int64_t last_ms;
};

/* Ids are consecutive, so a known id must be at its first position. */
static struct shape
read_sample(const struct sample_options *o)
{
	enum { MOST = 1 << 20 };
	uint32_t *places = calloc(MOST, sizeof(*places));
	FILE *f = tmpfile();
	struct shape s = { 0, 0, 0, 0 };
	struct trace_request r;
	struct trace *t;
	size_t i;

	ck_assert_int_eq(sample_write(f, o), 0);
	rewind(f);
	t = trace_new(f, "sample");
	while (trace_next(t, &r) == 1) {
		ck_assert_uint_gt(r.tokens, 0);
		ck_assert_uint_eq(r.tokens, r.input_length);
		ck_assert_uint_eq(r.n_ids, (r.input_length + 511) / 512);
		for (i = 0; i < r.n_ids; i++) {
			ck_assert_uint_lt(r.ids[i], MOST);
			ck_assert(places[r.ids[i]] == 0 ||
			    places[r.ids[i]] == i + 1);
			s.shared += places[r.ids[i]] != 0;
			places[r.ids[i]] = (uint32_t)i + 1;
		}
		s.ids += r.n_ids;
		s.requests++;
		s.last_ms = r.timestamp_ms;
	}
	ck_assert_str_eq(trace_error(t), "");
	trace_free(t);
	fclose(f);
	free(places);
	return s;
}

START_TEST(sample_is_a_trace)
{
	struct sample_options o;
	struct shape s;

	sample_defaults(&o);
	s = read_sample(&o);
	ck_assert_uint_eq(s.requests, 3000);
	ck_assert(s.last_ms > 400000 && s.last_ms < 900000);
	ck_assert(s.shared > s.ids / 2);
	o.tool_loops = 0;
	o.documents = 100;
	o.requests = 500;
	o.duration_s = 60;
	s = read_sample(&o);
	ck_assert_uint_eq(s.requests, 500);
	o.requests = 1;
	o.systems = 1;
	ck_assert_uint_eq(read_sample(&o).requests, 1);
}
END_TEST

START_TEST(sample_memory)
{
	struct sample_options o;
	unsigned long n;
	int result = -1;

	sample_defaults(&o);
	o.requests = 20;
	for (n = 1; result != 0 && n < 10000; n++) {
		FILE *f = tmpfile();

		alloc_fail_at(n);
		result = sample_write(f, &o);
		ck_assert(result == 0 ? alloc_count() < n : result == -1);
		alloc_reset();
		fclose(f);
	}
	ck_assert(result == 0 && n > 5);
}
END_TEST

/* -------------------------------------------------------------- engines --- */

START_TEST(engines_by_hand)
{
	struct engines *e = engines_new(2, 1000, 10);
	struct engines_event v;

	/* 500 tokens take 0.5 s; the second request waits for the first. */
	ck_assert_int_eq(engines_start(e, 0, 0, 500), 500000000);
	ck_assert_int_eq(engines_start(e, 0, 100000000, 500), 900000000);
	ck_assert_int_eq(engines_start(e, 1, 100000000, 0), 1000000);
	ck_assert_int_eq(engines_follow(e, 11, 500000000, 20), 0);
	ck_assert_int_eq(engines_follow(e, 12, 500000000, 1), 0);
	ck_assert(!engines_due(e, 499999999, &v));
	ck_assert(engines_due(e, 500000000, &v));
	ck_assert(v.lease == 11 && v.kind == ENGINES_FIRST_TOKEN);
	ck_assert(engines_due(e, 500000000, &v));
	ck_assert(v.lease == 12 && v.kind == ENGINES_FIRST_TOKEN);
	ck_assert(!engines_due(e, 500000000, &v));
	ck_assert(engines_due(e, INT64_MAX, &v));
	ck_assert(v.lease == 12 && v.kind == ENGINES_FINISH &&
	    v.at == 600000000);
	ck_assert(engines_due(e, INT64_MAX, &v));
	ck_assert(v.lease == 11 && v.at == 2500000000);
	ck_assert(!engines_due(e, INT64_MAX, &v));
	engines_free(e);
}
END_TEST

/* Events are ordered by time, whatever their order of insertion. */
START_TEST(engines_order)
{
	enum { MANY = 1000 };
	struct engines *e = engines_new(1, 1, 1);
	struct engines_event v;
	struct rng r = { 3 };
	int64_t last = 0;
	int i;

	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(engines_follow(e, 1, (int64_t)rng_between(&r,
		    0, 100), rng_between(&r, 0, UINT64_MAX - 1)), 0);
	for (i = 0; i < 2 * MANY; i++) {
		ck_assert(engines_due(e, INT64_MAX, &v));
		ck_assert_int_ge(v.at, last);
		last = v.at;
	}
	ck_assert(!engines_due(e, INT64_MAX, &v));
	engines_free(e);
}
END_TEST

/* ----------------------------------------------- facts about the trace --- */

static int
compare_sizes(const void *a, const void *b)
{
	const size_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

START_TEST(conversation_facts)
{
	const char *name = test_shared("traces/conversation_trace.jsonl");
	FILE *f = fopen(name, "r");
	struct trace *t = trace_new(f, name);
	struct trace_request r;
	size_t *lengths = calloc(20000, sizeof(*lengths));
	size_t n = 0, sum = 0;

	while (trace_next(t, &r) == 1) {
		ck_assert_uint_eq(r.ids[0], 0);
		lengths[n++] = r.tokens;
		sum += r.tokens;
		ck_assert_uint_lt(n, 20000);
	}
	ck_assert_str_eq(trace_error(t), "");
	qsort(lengths, n, sizeof(*lengths), compare_sizes);
	ck_assert_uint_eq(n, 12031);
	ck_assert_uint_eq(sum, 144793823);
	ck_assert_uint_eq(sum / n, 12035);
	ck_assert_uint_eq(lengths[n / 2], 6909);
	ck_assert_uint_eq(lengths[n - 1], 126195);
	ck_assert_uint_eq(lengths[n * 99 / 100], 85401);
	free(lengths);
	trace_free(t);
	fclose(f);
}
END_TEST

/* Results of the reference's own index. */
static const struct {
	uint32_t workers;
	uint32_t block;
	int64_t ttl_ns;
	uint64_t checksum;
	const char *longest;
	const char *hit;
} figures[] = {
	{ 64, 16, 120000000000, UINT64_C(0x5ff9eef23bed9866), "0.1955",
	    "0.1863" },
	{ 64, 64, 120000000000, UINT64_C(0x5ff9eef23bed9866), "0.1955",
	    "0.1863" },
	{ 64, 64, KVR_TTL_ENDLESS, UINT64_C(0xd91d2552d35fbe86), "0.3736",
	    "0.3534" },
	{ 512, 64, 120000000000, UINT64_C(0x5755847b7b67e741), "0.1955",
	    "0.1551" },
	{ 8, 64, 120000000000, UINT64_C(0x8cd932abfbf2fb4f), "0.1955",
	    "0.1875" },
	{ 1, 64, 120000000000, UINT64_C(0x59003252bc808fc7), "0.1955",
	    "0.1955" }
};

static struct pass_totals
replay_half(const char *name, const struct kvr_options *region)
{
	struct pass_options o = { PASS_HALF, region->max_workers, 0, 0 };
	FILE *f = fopen(name, "r");
	struct trace *t = trace_new(f, name);
	struct tokens tokens = { NULL, 0 };
	struct kvr_prompt *p = NULL;
	struct pass *pass = NULL;
	struct pass_choice c;
	struct pass_totals totals;
	struct trace_request r;

	ck_assert_int_eq(pass_new(&o, region, &pass), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(pass_region(pass), &p), KVR_OK);
	while (trace_next(t, &r) == 1) {
		ck_assert_int_eq(tokens_make(&tokens, &r), 0);
		ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens.tokens,
		    r.tokens), KVR_OK);
		ck_assert_int_eq(pass_request(pass, p, &r, r.arrival_ms *
		    1000000, &c), KVR_OK);
	}
	ck_assert_int_eq(kvr_check(pass_region(pass)), KVR_OK);
	totals = *pass_totals(pass);
	pass_free(pass);
	kvr_prompt_free(p);
	tokens_free(&tokens);
	trace_free(t);
	fclose(f);
	return totals;
}

START_TEST(conversation_decisions)
{
	const char *name = test_shared("traces/conversation_trace.jsonl");
	struct kvr_options region;
	struct pass_totals totals;
	char text[32];

	ck_assert_int_eq(kvr_options_init(&region, sizeof(region)), KVR_OK);
	region.block_size = figures[_i].block;
	region.ttl_ns = figures[_i].ttl_ns;
	region.max_workers = figures[_i].workers;
	totals = replay_half(name, &region);
	ck_assert_uint_eq(totals.requests, 12031);
	snprintf(text, sizeof(text), "%016" PRIx64, totals.checksum);
	ck_assert_msg(totals.checksum == figures[_i].checksum, "%s", text);
	snprintf(text, sizeof(text), "%.4f", (double)totals.longest_tokens /
	    (double)totals.tokens);
	ck_assert_str_eq(text, figures[_i].longest);
	snprintf(text, sizeof(text), "%.4f", (double)totals.hit_tokens /
	    (double)totals.tokens);
	ck_assert_str_eq(text, figures[_i].hit);
}
END_TEST

Suite *suite_trace(void);

Suite *
suite_trace(void)
{
	Suite *s = suite_create("trace");
	TCase *c = tcase_create("trace");

	tcase_add_test(c, reader_fields);
	tcase_add_test(c, reader_seen);
	tcase_add_test(c, reader_without_tokens);
	tcase_add_test(c, reader_spreads);
	tcase_add_loop_test(c, reader_refuses, 0,
	    (int)(sizeof(bad) / sizeof(bad[0])));
	tcase_add_test(c, reader_limits);
	tcase_add_test(c, reader_memory);
	tcase_add_test(c, tokens_formula);
	tcase_add_test(c, half_by_hand);
	tcase_add_test(c, half_checksum_known);
	tcase_add_test(c, sample_same_everywhere);
	tcase_add_test(c, sample_is_a_trace);
	tcase_add_test(c, sample_memory);
	tcase_add_test(c, engines_by_hand);
	tcase_add_test(c, engines_order);
	tcase_add_test(c, conversation_facts);
	tcase_add_loop_test(c, conversation_decisions, 0,
	    (int)test_amount(sizeof(figures) / sizeof(figures[0])));
	suite_add_tcase(s, c);
	return s;
}
