/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pool_state.c - state that one engine keeps, and readings of a body. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "busy.h"
#include "kvroute.h"
#include "pool_bed.h"

#define CHAT "/v1/chat/completions"
#define NOW (100 * BED_SECOND)

/* ---------------------------------------------------------------- state --- */

/* Passes a request that is accepted; returns the server and the reason. */
static char
state_pass(struct kvh *h, const char *method, const char *path,
    const char *body, const char *answer, int64_t now, char *reason)
{
	struct kvh_call *c = NULL;
	char to;

	ck_assert_int_eq(kvh_begin(h, method, strlen(method), path,
	    strlen(path), now, &c), 0);
	ck_assert_int_eq(kvh_body(c, body, strlen(body)), 0);
	ck_assert_int_eq(kvh_body_end(c, 1), 0);
	ck_assert_int_eq(kvh_pick(c, now, NULL), 0);
	to = bed_target(c)[0];
	if (reason != NULL)
		(void)strcpy(reason, bed_word(c, KVH_REASON_WORD));
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", answer, 0,
	    now));
	kvh_call_free(c);
	return to;
}

static char
response_pass(struct kvh *h, const char *body, const char *answer, int64_t now,
    char *reason)
{
	return state_pass(h, "POST", "/v1/responses", body, answer, now,
	    reason);
}

/* Each answer is bound, and a deletion ends that. */
START_TEST(deleted)
{
	static const char next[] = "{\"input\":\"x\",\"previous_response_id\":"
	    "\"r1\"}";
	struct kvh *h = bed_pool("", 4);
	char reason[32];
	char to = response_pass(h, "{\"input\":\"a\"}", "{\"id\":\"r1\"}", NOW,
	    NULL);

	ck_assert_int_eq(response_pass(h, next, "{\"id\":\"r2\"}", NOW + 1,
	    reason), to);
	ck_assert_str_eq(reason, "affinity");
	ck_assert_int_eq(state_pass(h, "GET", "/v1/responses/r2", "", "{}",
	    NOW + 2, reason), to);
	ck_assert_str_eq(reason, "affinity");
	ck_assert_int_eq(state_pass(h, "DELETE", "/v1/responses/r1", "", "{}",
	    NOW + 3, reason), to);
	ck_assert_str_eq(reason, "affinity");
	(void)response_pass(h, next, "{}", NOW + BED_SECOND, reason);
	ck_assert_str_ne(reason, "affinity");
	/* Again: it binds nothing. */
	(void)state_pass(h, "DELETE", "/v1/responses/r9", "", "{}", NOW + 4,
	    reason);
	(void)state_pass(h, "GET", "/v1/responses/r9", "", "{}", NOW + 5,
	    reason);
	ck_assert_str_eq(reason, "endpoint");
	kvh_free(h);
}
END_TEST

START_TEST(conversations)
{
	struct kvh *h = bed_pool("", 4);
	char reason[32];
	char to = state_pass(h, "POST", "/v1/conversations", "{}",
	    "{\"id\":\"conv_1\"}", NOW, NULL);

	ck_assert_int_eq(response_pass(h, "{\"input\":\"x\",\"conversation\":"
	    "{\"id\":\"conv_1\"}}", "{\"id\":\"r1\",\"conversation\":{\"id\":"
	    "\"conv_1\"}}", NOW + 1, reason), to);
	ck_assert_str_eq(reason, "affinity");
	ck_assert_int_eq(state_pass(h, "GET", "/v1/conversations/conv_1/items",
	    "", "{}", NOW + 2, reason), to);
	ck_assert_str_eq(reason, "affinity");
	kvh_free(h);
}
END_TEST

/* An answer that is not stored is bound to nothing. */
START_TEST(unstored)
{
	struct kvh *h = bed_pool("", 4);
	char reason[32];

	(void)response_pass(h, "{\"input\":\"a\",\"store\":false}",
	    "{\"id\":\"r1\"}", NOW, NULL);
	(void)state_pass(h, "GET", "/v1/responses/r1", "", "{}", NOW + 1,
	    reason);
	ck_assert_str_eq(reason, "endpoint");
	kvh_free(h);
}
END_TEST

/* An engine that was restarted keeps nothing. */
START_TEST(restarted)
{
	struct kvh *h = bed_pool("", 2);
	char reason[32], name[2] = "";

	name[0] = response_pass(h, "{\"input\":\"a\"}", "{\"id\":\"r1\"}", NOW,
	    NULL);
	ck_assert_int_eq(kvh_server_reset(h, name, 1, NOW + 1), 0);
	(void)state_pass(h, "GET", "/v1/responses/r1", "", "{}", NOW + 2,
	    reason);
	ck_assert_str_eq(reason, "state_lost");
	kvh_free(h);
}
END_TEST

/* Where it is cannot be known now. */
START_TEST(locked)
{
	struct kvh *h = bed_pool("", 2);
	struct kvh_call *c;

	(void)response_pass(h, "{\"input\":\"a\"}", "{\"id\":\"r1\"}", NOW,
	    NULL);
	c = bed_request(h, "/v1/responses/r1", NULL, NULL, NOW + 1);
	busy_begin(1000000);
	ck_assert_int_ne(kvh_pick(c, NOW + 1, NULL), KVH_ENOSERVER);
	busy_end();
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* --------------------------------------------------------------- bodies --- */

/* The rest of a long body does not count, but an image does not either. */
START_TEST(long_body)
{
	struct kvh *h = bed_pool("max_body=2k", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 9000,
	    ""), NOW);

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_lt(bed_fact(c, KVH_PROMPT_TOKENS), 600);
	ck_assert_int_gt(bed_fact(c, KVH_PROMPT_TOKENS), 300);
	kvh_call_free(c);
	ck_assert_int_eq(bed_count(h, "bodies_truncated"), 1);
	kvh_free(h);
}
END_TEST

START_TEST(part_of_a_body)
{
	struct kvh *h = bed_pool("", 1);
	const char *body = bed_chat("w ", 3000, "");
	struct kvh_call *c = NULL;

	ck_assert_int_eq(kvh_begin(h, "POST", 4, CHAT, strlen(CHAT), NOW, &c),
	    0);
	ck_assert_int_eq(kvh_body(c, body, 2000), 0);
	ck_assert_int_eq(kvh_body_end(c, 0), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_gt(bed_fact(c, KVH_PROMPT_TOKENS), 400);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

START_TEST(deep_body)
{
	struct kvh *h = bed_pool("", 1);
	char body[600];
	struct kvh_call *c;

	memset(body, '[', 599);
	body[599] = '\0';
	memcpy(body, "{\"messages\":", 12);
	c = bed_request(h, CHAT, NULL, body, NOW);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_str_eq(bed_word(c, KVH_REASON_WORD), "too_deep");
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* ---------------------------------------------------------------- facts --- */

START_TEST(told)
{
	struct kvh *h = bed_pool("tenants=4", 2);
	struct kvh_call *c = NULL;
	const char *body = bed_chat("w ", 900, "");
	char text[300];
	int64_t value;
	uint32_t i;
	size_t n;

	memset(text, 'x', sizeof(text));
	ck_assert_int_eq(kvh_begin(h, "POST", 4, "/", 1, NOW, &c), 0);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(kvh_tell(c, i, text, 257), KVH_EVALUE);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_CLIENT, text, 257), KVH_EVALUE);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_CLIENT, "10.0.0.1", 8), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SESSION, "s1", 2), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_TENANT, "t1", 2), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SHARE, "50", 2), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_ENDPOINT, "responses", 9), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_ENDPOINT, "chat", 4), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SALT, "s", 1), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SALT, "", 0), 0);
	ck_assert_int_eq(kvh_tell(NULL, 0, "", 0), KVR_EINVAL);
	ck_assert_int_eq(kvh_header(NULL, "", 0, "", 0), KVR_EINVAL);
	ck_assert_int_eq(kvh_body(c, NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvh_tokens(c, NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvh_allow(c, NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvh_body_end(NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvh_body(c, body, strlen(body)), 0);
	ck_assert_int_eq(kvh_body_end(c, 1), 0);
	ck_assert_int_eq(kvh_target(c, 0, NULL, NULL, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(bed_count(h, "new"), 1);
	ck_assert_int_eq(kvh_failed(c, 9, 0, NOW), KVR_EINVAL);
	ck_assert_int_eq(kvh_edit(c, 0, NULL, NULL, NULL, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvh_response(c, 200, NULL, 1, "", 0, "", 0, NOW, &i),
	    KVR_EINVAL);
	ck_assert_int_eq(kvh_response_data(c, NULL, 1, NOW, NULL, 0, NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(kvh_fact(c, 99, &value), KVH_ENAME);
	ck_assert_int_eq(kvh_fact(c, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvh_word(c, 99, (const char **)&body, &n), KVH_ENAME);
	ck_assert_int_eq(kvh_word(c, 0, NULL, &n), KVR_EINVAL);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* A fact that is taken back leaves the header's and the path's. */
START_TEST(taken_back)
{
	struct kvh *h = bed_pool("scope=x-tenant", 1);
	const char *body = bed_chat("w ", 900, "");
	struct kvh_call *c = bed_request(h, CHAT, "x-tenant: t1\n", body, NOW);

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", bed_json,
	    0, NOW));
	kvh_call_free(c);
	ck_assert_int_eq(kvh_begin(h, "POST", 4, CHAT, strlen(CHAT), NOW, &c),
	    0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_TENANT, "t2", 2), 0);
	ck_assert_int_eq(kvh_header(c, "x-tenant", 8, "t1", 2), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_TENANT, "", 0), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_ENDPOINT, "messages", 8), 0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_ENDPOINT, "", 0), 0);
	ck_assert_str_eq(bed_word(c, KVH_ENDPOINT_WORD), "chat");
	ck_assert_int_eq(kvh_body(c, body, strlen(body)), 0);
	ck_assert_int_eq(kvh_body_end(c, 1), 0);
	ck_assert_int_eq(kvh_pick(c, NOW + 1, NULL), 0);
	ck_assert_int_gt(bed_fact(c, KVH_OVERLAP_TOKENS), 0);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* -------------------------------------------------------------- passing --- */

/* A stream takes its time, and its server is judged by that. */
START_TEST(long_stream)
{
	static const char event[] = "data: {\"choices\":[{\"index\":0,"
	    "\"delta\":{\"content\":\"a\"}}]}\n\n";
	static char out[2 * KVH_WRITE_MORE];
	struct kvh *h = bed_pool("gray=4", 2);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 900,
	    "],\"stream\":true"), NOW);
	uint32_t rewrites;
	size_t n;
	int i;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(kvh_response(c, 200, "text/event-stream", 17, "", 0,
	    "", 0, NOW, &rewrites), 0);
	for (i = 1; i < 100; i++)
		ck_assert_int_eq(kvh_response_data(c, event, strlen(event),
		    NOW + i * BED_SECOND / 20, out, sizeof(out), &n), 0);
	ck_assert_int_eq(bed_fact(c, KVH_STARTED), 1);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW + 10 * BED_SECOND, out,
	    sizeof(out), &n), 0);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* Targets between the first one and the one that answered failed too. */
START_TEST(served_by_the_third)
{
	struct kvh *h = bed_pool("fallbacks=3", 4);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 900,
	    ""), NOW);
	char order[4], name[2] = "";
	const char *text;
	uint32_t targets, rewrites, i;
	size_t n;

	ck_assert_int_eq(kvh_pick(c, NOW, &targets), 0);
	ck_assert_uint_eq(targets, 4);
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(kvh_target(c, i, &text, &n, NULL), 0);
		order[i] = text[0];
	}
	name[0] = order[2];
	ck_assert_int_eq(kvh_response(c, 200, "application/json", 16, "", 0,
	    name, 1, NOW, &rewrites), 0);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW, NULL, 0, NULL), 0);
	kvh_call_free(c);
	for (i = 0; i < 8; i++) {
		c = bed_request(h, "/v1/embeddings", NULL, "{}", NOW + 1);
		ck_assert_int_eq(kvh_pick(c, NOW + 1, NULL), 0);
		ck_assert_int_ne(bed_target(c)[0], order[0]);
		ck_assert_int_ne(bed_target(c)[0], order[1]);
		kvh_call_free(c);
	}
	kvh_free(h);
}
END_TEST

/* A stream that ends within its usage: the rest of it is cut, too. */
START_TEST(usage_without_its_end)
{
	static const char body[] = "{\"messages\":[{\"role\":\"user\","
	    "\"content\":\"x\"}],\"stream\":true}";
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, body, NOW);
	char headers[256];

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	(void)bed_edited(c, body, headers, sizeof(headers));
	ck_assert_str_eq(bed_answer(c, 200, "text/event-stream",
	    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9}}\n", 0,
	    NOW), "");
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* A commit that found the region locked is made with the first token. */
START_TEST(late_commit)
{
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 900,
	    "],\"stream\":true"), NOW);
	static char out[2 * KVH_WRITE_MORE];
	uint32_t rewrites;
	size_t n;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	busy_begin(1000000);
	ck_assert_int_eq(kvh_response(c, 200, "text/event-stream", 17, "", 0,
	    "", 0, NOW, &rewrites), 0);
	ck_assert_int_eq(kvh_response_data(c, bed_stream, 60, NOW, out,
	    sizeof(out), &n), 0);
	ck_assert_int_eq(kvh_response_data(c, bed_stream + 60,
	    strlen(bed_stream) - 60, NOW, out, sizeof(out), &n), 0);
	ck_assert_int_eq(bed_fact(c, KVH_STARTED), 0);
	busy_end();
	ck_assert_int_eq(kvh_response_data(c, "\n", 1, NOW, out, sizeof(out),
	    &n), 0);
	ck_assert_int_eq(bed_fact(c, KVH_STARTED), 1);
	/* Without memory for it a late write is lost, and counted. */
	busy_begin(1000000);
	alloc_fail_from(1);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW, out, sizeof(out), &n), 0);
	alloc_reset();
	busy_end();
	ck_assert_int_eq(bed_count(h, "lost_leases"), 1);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* Writes that wait when a pool is freed are done, or given up. */
START_TEST(freed_late)
{
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("w ", 900,
	    ""), NOW);

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	busy_begin(1000000);
	kvh_call_free(c);
	kvh_free(h);
	busy_end();
}
END_TEST

/* Tokens of a chat that are known at its server, when only a line differs. */
static int64_t
known_behind_a_line(const char *options)
{
	struct kvh *h = bed_pool(options, 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL,
	    bed_chat("Current time: 1\\nlines ", 4000, ""), NOW);
	int64_t tokens;
	char body[6000];

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", bed_json,
	    0, NOW));
	kvh_call_free(c);
	(void)snprintf(body, sizeof(body), "%s", bed_chat("Current time: 1"
	    "\\nlines ", 4000, ""));
	*strchr(body, '1') = '2';
	c = bed_request(h, CHAT, NULL, body, NOW);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	tokens = bed_fact(c, KVH_OVERLAP_TOKENS);
	kvh_call_free(c);
	kvh_free(h);
	return tokens;
}

START_TEST(lines_that_are_ignored_part_no_prompts)
{
	ck_assert_int_eq(known_behind_a_line(""), 0);
	ck_assert_int_eq(known_behind_a_line("ignore_line=^x|^y"), 0);
	ck_assert_int_gt(known_behind_a_line("ignore_line="
	    "^x|^Current.time:"), 500);
}
END_TEST

Suite *suite_pool_state(void);

Suite *
suite_pool_state(void)
{
	Suite *s = suite_create("pool_state");
	TCase *t = tcase_create("pool_state");

	tcase_add_test(t, deleted);
	tcase_add_test(t, conversations);
	tcase_add_test(t, unstored);
	tcase_add_test(t, restarted);
	tcase_add_test(t, locked);
	tcase_add_test(t, long_body);
	tcase_add_test(t, part_of_a_body);
	tcase_add_test(t, deep_body);
	tcase_add_test(t, told);
	tcase_add_test(t, taken_back);
	tcase_add_test(t, long_stream);
	tcase_add_test(t, served_by_the_third);
	tcase_add_test(t, usage_without_its_end);
	tcase_add_test(t, late_commit);
	tcase_add_test(t, freed_late);
	tcase_add_test(t, lines_that_are_ignored_part_no_prompts);
	suite_add_tcase(s, t);
	return s;
}
