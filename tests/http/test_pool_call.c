/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pool_call.c - the life of a request in a pool. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "kvroute.h"
#include "pool_bed.h"

#define CHAT "/v1/chat/completions"
#define NOW (100 * BED_SECOND)

/* ----------------------------------------------------------- endpoints --- */

/* Each with its answer, as JSON and as a stream. */
static const struct {
	const char *path, *word, *body, *json, *stream;
} endpoints[] = {
	{ CHAT, "chat", "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]"
	    ",\"stream\":%s}",
	    "{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":"
	    "\"A\"}}],\"usage\":{\"prompt_tokens\":90,\"completion_tokens\":5,"
	    "\"prompt_tokens_details\":{\"cached_tokens\":40}}}",
	    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"A\"}}]}"
	    "\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":90,"
	    "\"completion_tokens\":5,\"prompt_tokens_details\":"
	    "{\"cached_tokens\":40}}}\n\ndata: [DONE]\n\n" },
	{ "/v1/completions", "completions", "{\"prompt\":\"%s\",\"stream\":%s}",
	    "{\"choices\":[{\"index\":0,\"text\":\"A\"}],\"usage\":"
	    "{\"prompt_tokens\":90,\"completion_tokens\":5,"
	    "\"prompt_tokens_details\":{\"cached_tokens\":40}}}",
	    "data: {\"choices\":[{\"index\":0,\"text\":\"A\"}]}\n\n"
	    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":90,"
	    "\"completion_tokens\":5,\"prompt_tokens_details\":"
	    "{\"cached_tokens\":40}}}\n\ndata: [DONE]\n\n" },
	{ "/v1/responses", "responses", "{\"input\":\"%s\",\"stream\":%s}",
	    "{\"id\":\"resp_1\",\"output\":[],\"usage\":{\"input_tokens\":90,"
	    "\"output_tokens\":5,\"input_tokens_details\":"
	    "{\"cached_tokens\":40}}}",
	    "data: {\"type\":\"response.created\",\"response\":{\"id\":"
	    "\"resp_1\"}}\n\ndata: {\"type\":\"response.output_text.delta\","
	    "\"delta\":\"A\"}\n\ndata: {\"type\":\"response.completed\","
	    "\"response\":{\"id\":\"resp_1\",\"usage\":{\"input_tokens\":90,"
	    "\"output_tokens\":5,\"input_tokens_details\":"
	    "{\"cached_tokens\":40}}}}\n\n" },
	{ "/v1/messages", "messages", "{\"messages\":[{\"role\":\"user\","
	    "\"content\":\"%s\"}],\"stream\":%s}",
	    "{\"content\":[{\"type\":\"text\",\"text\":\"A\"}],\"usage\":"
	    "{\"input_tokens\":50,\"cache_read_input_tokens\":40,"
	    "\"output_tokens\":5}}",
	    "data: {\"type\":\"message_start\",\"message\":{\"usage\":"
	    "{\"input_tokens\":50,\"cache_read_input_tokens\":40}}}\n\n"
	    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
	    "{\"type\":\"text_delta\",\"text\":\"A\"}}\n\n"
	    "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":5}}"
	    "\n\ndata: {\"type\":\"message_stop\"}\n\n" }
};
enum { ENDPOINTS_ALL = sizeof(endpoints) / sizeof(endpoints[0]) };

static const char *
body_of(unsigned which, bool streams)
{
	static char body[4096];
	char text[1201];

	memset(text, 'k', 1200);
	text[1200] = '\0';
	(void)snprintf(body, sizeof(body), endpoints[which].body, text,
	    streams ? "true" : "false");
	return body;
}

/* Whatever the pieces, the report is the same, and usage asked for is cut. */
static void
endpoint_passes(unsigned which, bool streams, size_t piece)
{
	struct kvh *h = bed_pool("", 2);
	struct kvh_call *c = bed_request(h, endpoints[which].path, NULL,
	    body_of(which, streams), NOW);
	char headers[256];
	const char *answer = streams ? endpoints[which].stream :
	    endpoints[which].json, *got;
	bool asks = streams && which < 2;

	ck_assert_str_eq(bed_word(c, KVH_ENDPOINT_WORD),
	    endpoints[which].word);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(bed_fact(c, KVH_STREAM), streams);
	ck_assert_int_ne(bed_fact(c, KVH_LEASE), 0);
	ck_assert_int_gt(bed_fact(c, KVH_PROMPT_TOKENS), 200);
	(void)bed_edited(c, body_of(which, streams), headers, sizeof(headers));
	ck_assert_str_eq(headers, "accept-encoding: identity\n");
	got = bed_answer(c, 200, streams ? "text/event-stream" :
	    "application/json; charset=utf-8", answer, piece,
	    NOW + BED_SECOND);
	ck_assert_ptr_nonnull(got);
	if (asks)
		ck_assert_ptr_null(strstr(got, "usage"));
	else
		ck_assert_str_eq(got, answer);
	ck_assert_int_eq(bed_fact(c, KVH_STARTED), streams);
	ck_assert_int_eq(bed_fact(c, KVH_REPORT_KIND), KVR_REPORT_VALUE);
	ck_assert_int_eq(bed_fact(c, KVH_REPORT_PROMPT), 90);
	ck_assert_int_eq(bed_fact(c, KVH_REPORT_CACHED), 40);
	ck_assert_int_eq(bed_fact(c, KVH_REPORT_COMPLETION), 5);
	ck_assert_int_eq(bed_fact(c, KVH_LEASE), 0);
	kvh_call_free(c);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	ck_assert_int_eq(bed_count(h, "value"), 1);
	kvh_free(h);
}

START_TEST(each_endpoint)
{
	static const size_t pieces[] = { 0, 1, 7 };
	size_t i;

	for (i = 0; i < 3; i++) {
		endpoint_passes((unsigned)_i, false, pieces[i]);
		endpoint_passes((unsigned)_i, true, pieces[i]);
	}
}
END_TEST

/* The second turn of a chat goes where the first went, with its answer. */
START_TEST(next_turn)
{
	struct kvh *h = bed_pool("", 4);
	struct kvh_call *c = bed_request(h, CHAT, NULL,
	    bed_chat("word ", 2000, ""), NOW);
	char first[8];
	int64_t tokens;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	(void)snprintf(first, sizeof(first), "%s", bed_target(c));
	tokens = bed_fact(c, KVH_PROMPT_TOKENS);
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json",
	    bed_json, 0, NOW + BED_SECOND));
	kvh_call_free(c);
	c = bed_request(h, CHAT, NULL, bed_chat("word ", 2000,
	    ",{\"role\":\"assistant\",\"content\":\"Yes.\"},{\"role\":\"user\","
	    "\"content\":\"And?\"}]"), NOW + 2 * BED_SECOND);
	ck_assert_int_eq(kvh_pick(c, NOW + 2 * BED_SECOND, NULL), 0);
	ck_assert_str_eq(bed_target(c), first);
	ck_assert_int_gt(bed_fact(c, KVH_OVERLAP_TOKENS), tokens / 2);
	kvh_call_free(c);
	ck_assert_int_eq(bed_count(h, "answers_kept"), 1);
	kvh_free(h);
}
END_TEST

/* Tokens are the prompt that a body with these tokens has. */
START_TEST(tokens_are_a_prompt)
{
	struct kvh *h = bed_pool("", 4);
	struct kvh_call *c = NULL;
	char body[8192];
	uint32_t tokens[600];
	int n = snprintf(body, sizeof(body), "{\"prompt\":[");
	char first[8];
	unsigned i;

	for (i = 0; i < 600; i++) {
		tokens[i] = i * 7919;
		n += snprintf(body + n, sizeof(body) - (size_t)n, "%s%u",
		    i == 0 ? "" : ",", tokens[i]);
	}
	(void)snprintf(body + n, sizeof(body) - (size_t)n, "]}");
	ck_assert_int_eq(kvh_begin(h, "POST", 4, "/generate", 9, NOW, &c), 0);
	ck_assert_int_eq(kvh_tokens(c, NULL, 0), 0);
	ck_assert_int_eq(kvh_tokens(c, tokens, 100), 0);
	ck_assert_int_eq(kvh_body(c, "{", 1), KVH_EORDER);
	ck_assert_int_eq(kvh_tokens(c, tokens + 100, 500), 0);
	ck_assert_int_eq(kvh_body_end(c, 1), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	(void)snprintf(first, sizeof(first), "%s", bed_target(c));
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", bed_json,
	    0, NOW + 1));
	kvh_call_free(c);
	c = bed_request(h, "/v1/completions", NULL, body, NOW + 2);
	ck_assert_int_eq(kvh_pick(c, NOW + 2, NULL), 0);
	ck_assert_str_eq(bed_target(c), first);
	ck_assert_int_gt(bed_fact(c, KVH_OVERLAP_TOKENS), 400);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* ------------------------------------------------------------- reasons --- */

static const struct {
	const char *path, *body, *reason;
} reasons[] = {
	{ "/v1/embeddings", "{\"input\":\"x\"}", "endpoint" },
	{ "/", NULL, "endpoint" },
	{ CHAT, NULL, "no_body" },
	{ CHAT, "", "no_body" },
	{ CHAT, "hello", "not_json" },
	{ CHAT, "{\"model\":\"m\"}", "no_prompt" },
	{ CHAT, "[1]", "no_prompt" },
	{ CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", "" }
};

/* A request that cannot be read is routed by load, and is load. */
START_TEST(each_reason)
{
	struct kvh *h = bed_pool("", 2);
	struct kvh_call *c = bed_request(h, reasons[_i].path, NULL,
	    reasons[_i].body, NOW);
	bool posts = reasons[_i].body != NULL;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	if (reasons[_i].reason[0] != '\0')
		ck_assert_str_eq(bed_word(c, KVH_REASON_WORD),
		    reasons[_i].reason);
	ck_assert_int_eq(bed_fact(c, KVH_LEASE) != 0, posts);
	ck_assert_int_eq(bed_count(h, "leases"), posts);
	ck_assert_int_eq(kvh_end(c, KVH_GIVEN_UP, NOW, NULL, 0, NULL), 0);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* By turns among equals, and to those with fewer requests. */
START_TEST(load_is_spread)
{
	struct kvh *h = bed_pool("", 3);
	struct kvh_call *c[6];
	unsigned seen[3] = { 0 };
	size_t i;

	for (i = 0; i < 6; i++) {
		c[i] = bed_request(h, "/v1/embeddings", NULL, "{}", NOW);
		ck_assert_int_eq(kvh_pick(c[i], NOW, NULL), 0);
		seen[bed_target(c[i])[0] - 'a']++;
	}
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(seen[i], 2);
	for (i = 0; i < 6; i++)
		kvh_call_free(c[i]);
	kvh_free(h);
}
END_TEST

/* ------------------------------------------------------------- failures --- */

static const struct {
	uint32_t failure, status;
	bool resets, out;      /* the cache is lost; it is out of use */
} failures[] = {
	{ KVH_REFUSED, 0, true, true },
	{ KVH_BROKE, 0, false, true },
	{ KVH_STATUS, 503, false, true },
	{ KVH_STATUS, 404, false, false },
	{ KVH_NOT_SENT, 0, false, false }
};

static void
chat_pass(struct kvh *h, const char *text, int64_t now, char *to)
{
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat(text, 2000,
	    ""), now);

	ck_assert_int_eq(kvh_pick(c, now, NULL), 0);
	to[0] = bed_target(c)[0];
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", bed_json,
	    0, now));
	kvh_call_free(c);
}

/* Another server is tried, and the first one is as the failure makes it. */
START_TEST(each_failure)
{
	struct kvh *h = bed_pool("", 2);
	struct kvh_call *c;
	char first, second, third;

	chat_pass(h, "word ", NOW, &first);
	c = bed_request(h, CHAT, NULL, bed_chat("word ", 2000, ""), NOW + 1);
	ck_assert_int_eq(kvh_pick(c, NOW + 1, NULL), 0);
	ck_assert_int_eq(bed_target(c)[0], first);
	ck_assert_int_eq(kvh_failed(c, failures[_i].failure,
	    failures[_i].status, NOW + 2), 0);
	ck_assert_str_eq(bed_target(c), "");
	ck_assert_int_eq(kvh_pick(c, NOW + 3, NULL), 0);
	second = bed_target(c)[0];
	/* The server had no part in it, so it is chosen again. */
	ck_assert_int_eq(second == first, failures[_i].failure ==
	    KVH_NOT_SENT);
	ck_assert_int_eq(bed_fact(c, KVH_TRIES), 2);
	ck_assert_int_eq(kvh_failed(c, KVH_STATUS, 404, NOW + 4), 0);
	ck_assert_int_eq(kvh_pick(c, NOW + 5, NULL), second == first ? 0 :
	    KVH_ENOSERVER);
	kvh_call_free(c);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	ck_assert_int_eq(bed_count(h, "refused"), failures[_i].resets);
	chat_pass(h, "word ", NOW + BED_SECOND, &third);
	ck_assert_int_eq(third == first, !failures[_i].out);
	/* It is in use again, and its cache is known unless it was lost. */
	if (!failures[_i].resets)
		chat_pass(h, "other ", NOW + 20 * BED_SECOND, &third);
	kvh_free(h);
}
END_TEST

/* The proxy itself went on to a further target. */
START_TEST(served_by_another)
{
	struct kvh *h = bed_pool("fallbacks=2", 3);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 2000,
	    ""), NOW);
	const char *name;
	char second[2] = "", first;
	uint32_t targets, rewrites;
	int64_t worker;
	size_t n;

	ck_assert_int_eq(kvh_pick(c, NOW, &targets), 0);
	ck_assert_uint_eq(targets, 3);
	first = bed_target(c)[0];
	worker = bed_fact(c, KVH_WORKER);
	ck_assert_int_eq(kvh_target(c, 1, &name, &n, NULL), 0);
	second[0] = name[0];
	ck_assert_int_eq(kvh_target(c, 3, &name, &n, NULL), KVH_EEND);
	ck_assert_int_eq(kvh_response(c, 200, "application/json", 16, "", 0,
	    second, 1, NOW + 1, &rewrites), 0);
	ck_assert_int_ne(bed_fact(c, KVH_WORKER), worker);
	ck_assert_str_eq(bed_target(c), second);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW + 2, NULL, 0, NULL), 0);
	kvh_call_free(c);
	c = bed_request(h, CHAT, NULL, bed_chat("w ", 2000, ""), NOW + 3);
	ck_assert_int_eq(kvh_pick(c, NOW + 3, NULL), 0);
	ck_assert_str_eq(bed_target(c), second);
	ck_assert_int_ne(bed_target(c)[0], first);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/*
 * Reports of targets ahead of the one that answered: is each out of use then,
 * and was its cache lost?
 */
static const struct {
	uint32_t failure, status;
	int out, resets;
} misses[] = {
	{ KVH_REFUSED, 0, 1, 1 }, { KVH_BROKE, 0, 1, 0 },
	{ KVH_STATUS, 503, 1, 0 }, { KVH_STATUS, 404, 0, 0 },
	{ KVH_NOT_SENT, 0, 0, 0 }
};
enum { MISSES = sizeof(misses) / sizeof(misses[0]) };

/* All but the last target of three. */
static void
targets_miss(struct kvh *h, struct kvh_call *c, unsigned how, char *last)
{
	uint32_t targets, i;
	const char *name;
	size_t n;

	ck_assert_int_eq(kvh_pick(c, NOW, &targets), 0);
	ck_assert_uint_eq(targets, 3);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(kvh_target_failed(c, i, misses[how].failure,
		    misses[how].status, NOW), 0);
		/* It counts once. */
		ck_assert_int_eq(kvh_target_failed(c, i, misses[how].failure,
		    misses[how].status, NOW), 0);
	}
	ck_assert_int_eq(kvh_target(c, 2, &name, &n, NULL), 0);
	*last = name[0];
	ck_assert_int_eq(bed_count(h, "leases"), 1);
}

static void
all_have(struct kvh *h)
{
	struct kvh_call *c;
	char name[2] = "a";

	for (; name[0] <= 'c'; name[0]++) {
		c = bed_request(h, CHAT, NULL, bed_chat("w ", 2000, ""), NOW);
		ck_assert_int_eq(kvh_allow(c, name, 1), 0);
		ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
		ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json",
		    bed_json, 0, NOW));
		kvh_call_free(c);
	}
}

/* How many servers take 20 requests without a prompt, by load alone. */
static unsigned
servers_in_use(struct kvh *h)
{
	bool seen[3] = { false };
	struct kvh_call *c;
	int i;

	for (i = 0; i < 20; i++) {
		c = bed_request(h, "/v1/embeddings", NULL, "{}", NOW + 1);
		ck_assert_int_eq(kvh_pick(c, NOW + 1, NULL), 0);
		seen[bed_target(c)[0] - 'a'] = true;
		kvh_call_free(c);
	}
	return (unsigned)seen[0] + seen[1] + seen[2];
}

START_TEST(targets_ahead_failed_as_reported)
{
	struct kvh *h = bed_pool("fallbacks=2", 3);
	struct kvh_call *c;
	uint32_t rewrites;
	char last[2] = "";

	all_have(h);
	c = bed_request(h, CHAT, NULL, bed_chat("w ", 2000, ""), NOW);
	targets_miss(h, c, (unsigned)_i, last);
	ck_assert_int_eq(kvh_response(c, 200, "application/json", 16, "", 0,
	    last, 1, NOW, &rewrites), 0);
	ck_assert_str_eq(bed_target(c), last);
	ck_assert_int_eq(kvh_target_failed(c, 0, KVH_BROKE, 0, NOW),
	    KVH_EORDER);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW, NULL, 0, NULL), 0);
	kvh_call_free(c);
	ck_assert_uint_eq(servers_in_use(h), misses[_i].out ? 1 : 3);
	ck_assert_int_eq(bed_count(h, "refused"), 2 * misses[_i].resets);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	kvh_free(h);
}
END_TEST

/* All have failed, and the proxy gives up. */
START_TEST(all_targets_failed_as_reported)
{
	struct kvh *h = bed_pool("fallbacks=2", 3);
	struct kvh_call *c;
	char last[2] = "";

	all_have(h);
	c = bed_request(h, CHAT, NULL, bed_chat("w ", 2000, ""), NOW);
	targets_miss(h, c, (unsigned)_i, last);
	ck_assert_int_eq(kvh_target_failed(c, 3, KVH_BROKE, 0, NOW), KVH_EEND);
	ck_assert_int_eq(kvh_target_failed(c, 0, 0, 0, NOW), KVR_EINVAL);
	ck_assert_int_eq(kvh_end(c, KVH_GIVEN_UP, NOW, NULL, 0, NULL), 0);
	kvh_call_free(c);
	ck_assert_uint_eq(servers_in_use(h), misses[_i].out ? 1 : 3);
	ck_assert_int_eq(bed_count(h, "refused"), 2 * misses[_i].resets);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	kvh_free(h);
}
END_TEST

/* The proxy does not name the server that answers, or shows no answer. */
START_TEST(next_target_has_the_request)
{
	struct kvh *h = bed_pool("fallbacks=2", 3);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 2000,
	    ""), NOW);
	uint32_t targets, rewrites;
	char next[2] = "";
	const char *name;
	size_t n;

	ck_assert_int_eq(kvh_pick(c, NOW, &targets), 0);
	ck_assert_uint_eq(targets, 3);
	ck_assert_int_eq(kvh_target_failed(c, 0, KVH_STATUS, 503, NOW), 0);
	ck_assert_int_eq(kvh_target(c, 1, &name, &n, NULL), 0);
	next[0] = name[0];
	if (_i == 0) {
		ck_assert_int_eq(kvh_response(c, 200, "application/json", 16,
		    "", 0, "", 0, NOW, &rewrites), 0);
		ck_assert_str_eq(bed_target(c), next);
	}
	ck_assert_int_eq(kvh_end(c, _i == 0 ? KVH_WHOLE : KVH_NOT_SEEN, NOW,
	    NULL, 0, NULL), 0);
	kvh_call_free(c);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	c = bed_request(h, CHAT, NULL, bed_chat("w ", 2000, ""), NOW + 1);
	ck_assert_int_eq(kvh_allow(c, next, 1), 0);
	ck_assert_int_eq(kvh_pick(c, NOW + 1, NULL), 0);
	ck_assert_int_gt(bed_fact(c, KVH_OVERLAP_TOKENS), 0);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

START_TEST(served_by_a_stranger)
{
	struct kvh *h = bed_pool("", 2);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 900,
	    ""), NOW);
	uint32_t rewrites;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(kvh_response(c, 200, "application/json", 16, "", 0,
	    "z", 1, NOW, &rewrites), KVH_ENAME);
	ck_assert_int_eq(kvh_response_data(c, "{}", 2, NOW, NULL, 0, NULL), 0);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW, NULL, 0, NULL), 0);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* The proxy has chosen a server itself: no target has failed. */
START_TEST(served_by_no_target)
{
	struct kvh *h = bed_pool("fallbacks=1", 3);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 900,
	    ""), NOW);
	char name[2] = "a";
	const char *text;
	uint32_t targets, rewrites, i;
	bool is_target[3] = { false };
	unsigned seen[3] = { 0 };
	size_t n;

	ck_assert_int_eq(kvh_pick(c, NOW, &targets), 0);
	ck_assert_uint_eq(targets, 2);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(kvh_target(c, i, &text, &n, NULL), 0);
		is_target[text[0] - 'a'] = true;
	}
	while (is_target[name[0] - 'a'])
		name[0]++;
	ck_assert_int_eq(kvh_response(c, 200, "application/json", 16, "", 0,
	    name, 1, NOW, &rewrites), 0);
	ck_assert_str_eq(bed_target(c), name);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW, NULL, 0, NULL), 0);
	kvh_call_free(c);
	for (i = 0; i < 9; i++) {
		c = bed_request(h, "/v1/embeddings", NULL, "{}", NOW + 1);
		ck_assert_int_eq(kvh_pick(c, NOW + 1, NULL), 0);
		seen[bed_target(c)[0] - 'a']++;
		kvh_call_free(c);
	}
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(seen[i], 3);
	kvh_free(h);
}
END_TEST

/* Early hints come before the head of the response. */
START_TEST(hints_come_first)
{
	static const uint32_t early[] = { 100, 102, 103, 199 };
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 900,
	    ""), NOW);
	uint32_t rewrites;
	size_t i;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(kvh_response(c, early[i], "", 0, "", 0, "", 0,
		    NOW, &rewrites), 0);
	ck_assert_int_eq(kvh_response_data(c, "", 0, NOW, NULL, 0, NULL),
	    KVH_EORDER);
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", bed_json,
	    0, NOW));
	ck_assert_int_eq(bed_fact(c, KVH_REPORT_PROMPT), 100);
	kvh_call_free(c);
	c = bed_request(h, "/v1/realtime", NULL, NULL, NOW);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(kvh_response(c, 101, "", 0, "", 0, "", 0, NOW,
	    &rewrites), 0);
	ck_assert_int_eq(kvh_response_data(c, "", 0, NOW, NULL, 0, NULL), 0);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

static const struct {
	const char *coding;
	int64_t prompt;        /* of the report */
} codings[] = { { "", 100 }, { "identity", 100 }, { "gzip", 0 } };

START_TEST(each_coding)
{
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 900,
	    ""), NOW);
	uint32_t rewrites;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(kvh_response(c, 200, "application/json", 16,
	    codings[_i].coding, strlen(codings[_i].coding), "", 0, NOW,
	    &rewrites), 0);
	ck_assert_int_eq(kvh_response_data(c, bed_json, strlen(bed_json), NOW,
	    NULL, 0, NULL), 0);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW, NULL, 0, NULL), 0);
	ck_assert_int_eq(bed_fact(c, KVH_REPORT_PROMPT), codings[_i].prompt);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* ------------------------------------------------------------------ end --- */

/* Bytes that are held belong to the client: an end needs room for them. */
START_TEST(end_keeps_what_is_held)
{
	static const char body[] = "{\"messages\":[{\"role\":\"user\","
	    "\"content\":\"x\"}],\"stream\":true}";
	static const char piece[] = "data: {\"choices\":[],\"usage\":";
	static char out[2 * KVH_WRITE_MORE];
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, body, NOW);
	uint32_t rewrites;
	size_t n;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	(void)bed_edited(c, body, out, sizeof(out));
	ck_assert_int_eq(kvh_response(c, 200, "text/event-stream", 17, "", 0,
	    "", 0, NOW, &rewrites), 0);
	ck_assert_uint_eq(rewrites, 1);
	ck_assert_int_eq(kvh_response_data(c, piece, strlen(piece), NOW, out,
	    sizeof(out), &n), 0);
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW, NULL, 0, NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(bed_count(h, "leases"), 1);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW, out, sizeof(out), &n), 0);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

static const struct {
	uint32_t how;
	bool answered;
	int64_t recorded; /* does the next request find it? */
} ends[] = {
	{ KVH_WHOLE, true, 1 }, { KVH_CLIENT_LEFT, true, 1 },
	{ KVH_ENGINE_BROKE, true, 1 }, { KVH_GIVEN_UP, true, 0 },
	{ KVH_WHOLE, false, 1 }, { KVH_CLIENT_LEFT, false, 0 },
	{ KVH_GIVEN_UP, false, 0 }, { KVH_NOT_SEEN, false, 1 },
	{ KVH_ENGINE_BROKE, false, 0 }
};

START_TEST(each_end)
{
	struct kvh *h = bed_pool("max_fails=off", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 2000,
	    ""), NOW);
	uint32_t rewrites;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	if (ends[_i].answered)
		ck_assert_int_eq(kvh_response(c, 200, "application/json", 16,
		    "", 0, "", 0, NOW, &rewrites), 0);
	ck_assert_int_eq(kvh_end(c, ends[_i].how, NOW, NULL, 0, NULL), 0);
	ck_assert_int_eq(kvh_end(c, ends[_i].how, NOW, NULL, 0, NULL),
	    KVH_EORDER);
	ck_assert_int_eq(bed_fact(c, KVH_REPORT_KIND), KVR_REPORT_NONE);
	kvh_call_free(c);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	c = bed_request(h, CHAT, NULL, bed_chat("w ", 2000, ""), NOW + 1);
	ck_assert_int_eq(kvh_pick(c, NOW + 1, NULL), 0);
	ck_assert_int_eq(bed_fact(c, KVH_OVERLAP_TOKENS) > 0,
	    ends[_i].recorded);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* ---------------------------------------------------------------- order --- */

enum { STAGES = 5 };

/* A request in one of its states: reads, ready, sent, answered, ended. */
static struct kvh_call *
call_in(struct kvh *h, int stage)
{
	struct kvh_call *c = NULL;
	uint32_t rewrites;

	ck_assert_int_eq(kvh_begin(h, "POST", 4, CHAT, strlen(CHAT), NOW, &c),
	    0);
	if (stage > 0)
		ck_assert_int_eq(kvh_body_end(c, 1), 0);
	if (stage > 1)
		ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	if (stage > 2)
		ck_assert_int_eq(kvh_response(c, 200, "", 0, "", 0, "", 0, NOW,
		    &rewrites), 0);
	if (stage > 3)
		ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW, NULL, 0, NULL), 0);
	return c;
}

static int
call_make(struct kvh_call *c, int which)
{
	const char *text;
	uint32_t rewrites, id = 1;
	uint64_t cut;
	int64_t offset;
	size_t n;

	switch (which) {
	case 0:
		return kvh_header(c, "a", 1, "b", 1);
	case 1:
		return kvh_tell(c, KVH_TOLD_TENANT, "t", 1);
	case 2:
		return kvh_body(c, "{", 1);
	case 3:
		return kvh_tokens(c, &id, 1);
	case 4:
		return kvh_body_end(c, 1);
	case 5:
		return kvh_allow(c, "a", 1);
	case 6:
		return kvh_pick(c, NOW, NULL);
	case 7:
		return kvh_failed(c, KVH_BROKE, 0, NOW);
	case 8:
		return kvh_edit(c, 0, &offset, &cut, &text, &n);
	case 9:
		return kvh_response(c, 200, "", 0, "", 0, "", 0, NOW,
		    &rewrites);
	case 11:
		return kvh_target_failed(c, 0, KVH_BROKE, 0, NOW);
	case 10:
		return kvh_response_data(c, "x", 1, NOW, NULL, 0, NULL);
	default:
		return kvh_end(c, KVH_GIVEN_UP, NOW, NULL, 0, NULL);
	}
}

/* By state: y if the call fits, n if it is KVH_EORDER. */
static const char *const order[] = { "ynnnn", "ynnnn", "ynnnn", "ynnnn",
    "ynnnn", "yynnn", "nynnn", "nnynn", "nnynn", "nnynn", "nnnyn", "nnynn",
    "yyyyn" };
enum { CALLS = sizeof(order) / sizeof(order[0]) };

START_TEST(each_order)
{
	struct kvh *h = bed_pool("max_fails=off", 2);
	struct kvh_call *c;
	int stage, error;

	for (stage = 0; stage < STAGES; stage++) {
		c = call_in(h, stage);
		error = call_make(c, _i);
		ck_assert_int_eq(error, order[_i][stage] == 'y' ? 0 :
		    KVH_EORDER);
		kvh_call_free(c);
	}
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	kvh_free(h);
}
END_TEST

START_TEST(told_before_the_body)
{
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = NULL;

	ck_assert_int_eq(kvh_begin(h, "POST", 4, "/", 1, NOW, &c), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_ENDPOINT, "chat", 4), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_ENDPOINT, "chats", 5),
	    KVH_EVALUE);
	ck_assert_int_eq(kvh_tell(c, 99, "", 0), KVH_ENAME);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SHARE, "0", 1), KVH_EVALUE);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SHARE, "10001", 5), KVH_EVALUE);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SHARE, "10000", 5), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SHARE, "x", 1), KVH_EVALUE);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_MODEL, "big", 3), 0);
	ck_assert_int_eq(kvh_body(c, "{\"prompt\":", 10), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_MODEL, "x", 1), KVH_EORDER);
	ck_assert_int_eq(kvh_body_end(c, 1), 0);
	ck_assert_str_eq(bed_word(c, KVH_MODEL), "big");
	ck_assert_str_eq(bed_word(c, KVH_ENDPOINT_WORD), "chat");
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* --------------------------------------------------------------- scopes --- */

static int64_t
overlap_of(struct kvh *h, uint32_t which, const char *told, int64_t now)
{
	const char *body = bed_chat("w ", 2000, "");
	struct kvh_call *c = NULL;
	int64_t overlap;

	ck_assert_int_eq(kvh_begin(h, "POST", 4, CHAT, strlen(CHAT), now, &c),
	    0);
	ck_assert_int_eq(kvh_tell(c, which, told, strlen(told)), 0);
	ck_assert_int_eq(kvh_body(c, body, strlen(body)), 0);
	ck_assert_int_eq(kvh_body_end(c, 1), 0);
	ck_assert_int_eq(kvh_pick(c, now, NULL), 0);
	overlap = bed_fact(c, KVH_OVERLAP_TOKENS);
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", bed_json,
	    0, now));
	kvh_call_free(c);
	return overlap;
}

/* Tenants, models and salts share nothing. */
START_TEST(each_scope)
{
	static const uint32_t parts[] = { KVH_TOLD_TENANT, KVH_TOLD_MODEL,
	    KVH_TOLD_SALT };
	struct kvh *h = bed_pool("", 1);

	ck_assert_int_eq(overlap_of(h, parts[_i], "one", NOW), 0);
	ck_assert_int_gt(overlap_of(h, parts[_i], "one", NOW + 1), 0);
	ck_assert_int_eq(overlap_of(h, parts[_i], "two", NOW + 2), 0);
	kvh_free(h);
}
END_TEST

START_TEST(bypassed)
{
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = NULL;

	ck_assert_int_eq(kvh_begin(h, "POST", 4, CHAT, strlen(CHAT), NOW, &c),
	    0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_BYPASS, "1", 1), 0);
	ck_assert_int_eq(kvh_body(c, "{}", 2), 0);
	ck_assert_int_eq(kvh_body_end(c, 1), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_str_eq(bed_word(c, KVH_REASON_WORD), "bypass");
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* A tenant too long to be known shares nothing. */
START_TEST(scope_header)
{
	struct kvh *h = bed_pool("scope=x-tenant", 1);
	struct kvh_call *c = NULL;
	char value[300];

	memset(value, 't', sizeof(value));
	ck_assert_int_eq(kvh_begin(h, "POST", 4, CHAT, strlen(CHAT), NOW, &c),
	    0);
	ck_assert_int_eq(kvh_header(c, "X-Tenant", 8, value, 300), 0);
	ck_assert_int_eq(kvh_body(c, "{}", 2), 0);
	ck_assert_int_eq(kvh_body_end(c, 1), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_str_eq(bed_word(c, KVH_REASON_WORD), "bypass");
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* ------------------------------------------------------------- sessions --- */

static char
session_goes(struct kvh *h, const char *headers, const char *text, int64_t now)
{
	struct kvh_call *c = bed_request(h, CHAT, headers, bed_chat(text, 900,
	    ""), now);
	char to;

	ck_assert_int_eq(kvh_pick(c, now, NULL), 0);
	to = bed_target(c)[0];
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", bed_json,
	    0, now));
	kvh_call_free(c);
	return to;
}

/* The text is another one each time. */
START_TEST(sessions_stay)
{
	static const char *const headers[] = { "x-session-id: s1\n",
	    "X-Session-Affinity: s1\n", "thread-id: s1\n", "session-id: s1\n",
	    "x-claude-code-session-id: s1\nx-claude-code-agent-id: a1\n",
	    "x-own: s1\n" };
	struct kvh *h = bed_pool("affinity_key=x-own,auto", 4);
	char to = session_goes(h, headers[_i], "first ", NOW), text[16];
	int i;

	for (i = 0; i < 8; i++) {
		(void)snprintf(text, sizeof(text), "turn%d ", i);
		ck_assert_int_eq(session_goes(h, headers[_i], text,
		    NOW + i), to);
	}
	ck_assert_int_eq(bed_count(h, "hit"), 8);
	kvh_free(h);
}
END_TEST

/* By a hash of the key, which needs no table. */
START_TEST(sessions_by_hash)
{
	struct kvh *h = bed_pool("affinity=0 affinity_mode=hash "
	    "affinity_key=x-own", 4);
	char text[16], key[32];
	int i, same = 0;

	for (i = 0; i < 16; i++) {
		(void)snprintf(key, sizeof(key), "x-own: s%d\n", i);
		(void)snprintf(text, sizeof(text), "turn%d ", i);
		same += session_goes(h, key, text, NOW + i) ==
		    session_goes(h, key, "other ", NOW + 16 + i);
	}
	ck_assert_int_eq(same, 16);
	kvh_free(h);
}
END_TEST

/* An answer that the engine keeps, and requests that continue it. */
START_TEST(state_stays)
{
	static const char answer[] = "{\"id\":\"resp_9\",\"output\":[]}";
	struct kvh *h = bed_pool("", 4);
	struct kvh_call *c = bed_request(h, "/v1/responses", NULL,
	    "{\"input\":\"hello\"}", NOW);
	char to[2] = "";
	int i;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	to[0] = bed_target(c)[0];
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", answer, 0,
	    NOW));
	kvh_call_free(c);
	for (i = 0; i < 6; i++) {
		c = bed_request(h, "/v1/responses", NULL, "{\"input\":\"x\","
		    "\"previous_response_id\":\"resp_9\"}", NOW + i);
		ck_assert_int_eq(kvh_pick(c, NOW + i, NULL), 0);
		ck_assert_str_eq(bed_target(c), to);
		ck_assert_str_eq(bed_word(c, KVH_REASON_WORD), "affinity");
		kvh_call_free(c);
	}
	c = bed_request(h, "/v1/responses/resp_9", NULL, NULL, NOW + 9);
	ck_assert_int_eq(kvh_pick(c, NOW + 9, NULL), 0);
	ck_assert_str_eq(bed_target(c), to);
	/* Another engine would answer that it does not know the id. */
	ck_assert_int_eq(kvh_failed(c, KVH_BROKE, 0, NOW + 9), 0);
	ck_assert_int_eq(kvh_pick(c, NOW + 9, NULL), KVH_EKEPT);
	ck_assert_str_eq(bed_word(c, KVH_REASON_WORD), "state_busy");
	kvh_call_free(c);
	ck_assert_int_eq(bed_server(h, to, "state=down"), 0);
	c = bed_request(h, "/v1/responses/resp_9", NULL, NULL, NOW + 10);
	ck_assert_int_eq(kvh_pick(c, NOW + 10, NULL), 0);
	ck_assert_str_ne(bed_target(c), to);
	ck_assert_str_eq(bed_word(c, KVH_REASON_WORD), "state_lost");
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* ---------------------------------------------------------------- trace --- */

/* Prompts that differ by their scope, by an image, and at their front. */
START_TEST(fronts)
{
	static const char *const bodies[] = { "{\"cache_salt\":\"%02d\","
	    "\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}]}",
	    "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
	    "\"image_url\",\"image_url\":{\"url\":\"http://a/%02d\"}},"
	    "{\"type\":\"text\",\"text\":\"%s\"}]}]}",
	    "{\"messages\":[{\"role\":\"system\",\"content\":\"%02d\"},"
	    "{\"role\":\"user\",\"content\":\"%s\"}]}" };
	static char text[8000], body[9000];
	struct kvh *h = bed_pool("", 2);
	struct kvh_call *c;
	size_t i;

	for (i = 0; i + 1 < sizeof(text); i++)
		text[i] = (char)('a' + i * i / 7 % 26);
	for (i = 0; i < 20; i++) {
		(void)snprintf(body, sizeof(body), bodies[_i], (int)i, text);
		c = bed_request(h, CHAT, NULL, body, NOW);
		ck_assert_ptr_nonnull(c);
		kvh_call_free(c);
	}
	ck_assert_int_eq(bed_count(h, "prompts_parted"), _i < 2 ? 0 : 19);
	kvh_free(h);
}
END_TEST

START_TEST(trace)
{
	struct kvh *h = bed_pool("trace=on", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 5000,
	    ""), NOW);
	const char *line;
	size_t n;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(kvh_word(c, KVH_TRACE, &line, &n), KVH_EEND);
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", bed_json,
	    0, NOW));
	ck_assert_int_eq(kvh_word(c, KVH_TRACE, &line, &n), 0);
	line = bed_word(c, KVH_TRACE);
	ck_assert_int_eq(strncmp(line, "{\"timestamp\": ", 14), 0);
	ck_assert_ptr_nonnull(strstr(line, "\"prompt_tokens\": 100, "
	    "\"cached_tokens\": 60, \"worker\": \"a\", \"ms\": "));
	ck_assert_ptr_nonnull(strstr(line, "\"output_length\": 7, "
	    "\"hash_ids\": ["));
	ck_assert_int_eq(line[strlen(line) - 1], '\n');
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

Suite *suite_pool_call(void);

Suite *
suite_pool_call(void)
{
	Suite *s = suite_create("pool_call");
	TCase *t = tcase_create("pool_call");

	tcase_add_loop_test(t, each_endpoint, 0, ENDPOINTS_ALL);
	tcase_add_test(t, next_turn);
	tcase_add_test(t, tokens_are_a_prompt);
	tcase_add_loop_test(t, each_reason, 0,
	    sizeof(reasons) / sizeof(reasons[0]));
	tcase_add_test(t, load_is_spread);
	tcase_add_loop_test(t, each_failure, 0,
	    sizeof(failures) / sizeof(failures[0]));
	tcase_add_test(t, served_by_another);
	tcase_add_loop_test(t, targets_ahead_failed_as_reported, 0, MISSES);
	tcase_add_loop_test(t, all_targets_failed_as_reported, 0, MISSES);
	tcase_add_loop_test(t, next_target_has_the_request, 0, 2);
	tcase_add_test(t, served_by_a_stranger);
	tcase_add_test(t, served_by_no_target);
	tcase_add_test(t, hints_come_first);
	tcase_add_loop_test(t, each_coding, 0,
	    sizeof(codings) / sizeof(codings[0]));
	tcase_add_test(t, end_keeps_what_is_held);
	tcase_add_loop_test(t, each_end, 0, sizeof(ends) / sizeof(ends[0]));
	tcase_add_loop_test(t, each_order, 0, CALLS);
	tcase_add_test(t, told_before_the_body);
	tcase_add_loop_test(t, each_scope, 0, 3);
	tcase_add_test(t, bypassed);
	tcase_add_test(t, scope_header);
	tcase_add_loop_test(t, sessions_stay, 0, 6);
	tcase_add_test(t, sessions_by_hash);
	tcase_add_test(t, state_stays);
	tcase_add_loop_test(t, fronts, 0, 3);
	tcase_add_test(t, trace);
	suite_add_tcase(s, t);
	return s;
}
