/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pool_edit.c - the changes to a request, byte for byte. */
#include "test.h"

#include <string.h>

#include "pool_bed.h"

#define CHAT "/v1/chat/completions"
#define NOW (100 * BED_SECOND)
#define M "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]"
#define USAGE "\"stream_options\":{\"include_usage\":true}"
#define IDENTITY "accept-encoding: identity\n"

static const struct {
	const char *path, *salt, *body, *sent;
} edits[] = {
	/* usage is asked for */
	{ CHAT, "", "{" M "}", "{" M "}" },
	{ CHAT, "", "{" M ",\"stream\":false}", "{" M ",\"stream\":false}" },
	{ CHAT, "", "{" M ",\"stream\":true}",
	    "{" M ",\"stream\":true," USAGE "}" },
	{ CHAT, "", "{\"stream\":true," M " }\n",
	    "{\"stream\":true," M " ," USAGE "}\n" },
	{ CHAT, "", "{\"stream\":true,\"stream_options\":null," M "}",
	    "{\"stream\":true,\"stream_options\":{\"include_usage\":true},"
	    M "}" },
	{ CHAT, "", "{\"stream\":true,\"stream_options\":{}," M "}",
	    "{\"stream\":true,\"stream_options\":{\"include_usage\":true},"
	    M "}" },
	{ CHAT, "", "{\"stream\":true,\"stream_options\":{\"a\":1}," M "}",
	    "{\"stream\":true,\"stream_options\":{\"include_usage\":true,"
	    "\"a\":1}," M "}" },
	{ CHAT, "", "{\"stream\":true,\"stream_options\":{\"include_usage\":"
	    "false}," M "}",
	    "{\"stream\":true,\"stream_options\":{\"include_usage\":true},"
	    M "}" },
	{ CHAT, "", "{\"stream\":true," USAGE "," M "}",
	    "{\"stream\":true," USAGE "," M "}" },
	{ "/v1/completions", "", "{\"prompt\":\"x\",\"stream\":true}",
	    "{\"prompt\":\"x\",\"stream\":true," USAGE "}" },
	{ "/v1/messages", "", "{" M ",\"stream\":true}",
	    "{" M ",\"stream\":true}" },
	{ "/v1/responses", "", "{\"input\":\"x\",\"stream\":true}",
	    "{\"input\":\"x\",\"stream\":true}" },
	/* and not of a body that is cut */
	{ CHAT, "", "{" M ",\"stream\":true", "{" M ",\"stream\":true" },
	/* a salt is set */
	{ CHAT, "s", "{" M "}", "{" M ",\"cache_salt\":\"s\"}" },
	{ CHAT, "\"", "{" M "}", "{" M ",\"cache_salt\":\"\\\"\"}" },
	{ CHAT, "s", "{\"cache_salt\":\"mine\"," M "}",
	    "{" M ",\"cache_salt\":\"s\"}" },
	{ CHAT, "s", "{" M ",\"cache_salt\":\"mine\"}",
	    "{" M ",\"cache_salt\":\"s\"}" },
	{ CHAT, "s", "{\"cache_salt\":1," M ",\"cache_salt\":2}",
	    "{" M ",\"cache_salt\":\"s\"}" },
	{ "/v1/embeddings", "s", "{\"input\":\"x\"}",
	    "{\"input\":\"x\",\"cache_salt\":\"s\"}" },
	/* both */
	{ CHAT, "s", "{" M ",\"stream\":true}",
	    "{" M ",\"stream\":true," USAGE ",\"cache_salt\":\"s\"}" },
	{ CHAT, "s", "{\"cache_salt\":1,\"stream\":true,\"stream_options\":{},"
	    M ",\"cache_salt\":2}",
	    "{\"stream\":true,\"stream_options\":{\"include_usage\":true},"
	    M ",\"cache_salt\":\"s\"}" }
};
enum { EDITS = sizeof(edits) / sizeof(edits[0]) };

static struct kvh_call *
begin(struct kvh *h, const char *path, const char *salt, const char *body)
{
	struct kvh_call *c = NULL;
	size_t i;

	ck_assert_int_eq(kvh_begin(h, "POST", 4, path, strlen(path), NOW, &c),
	    0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SALT, salt, strlen(salt)), 0);
	for (i = 0; i < strlen(body); i++)
		ck_assert_int_eq(kvh_body(c, body + i, 1), 0);
	return c;
}

START_TEST(each_edit)
{
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = begin(h, edits[_i].path, edits[_i].salt,
	    edits[_i].body);
	char headers[256];

	ck_assert_int_eq(kvh_body_end(c, 1), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_str_eq(bed_edited(c, edits[_i].body, headers,
	    sizeof(headers)), edits[_i].sent);
	ck_assert_str_eq(headers, strcmp(edits[_i].path, "/v1/embeddings") ==
	    0 ? "" : IDENTITY);
	/* They are the same for another try. */
	ck_assert_int_eq(kvh_failed(c, KVH_NOT_SENT, 0, NOW), 0);
	ck_assert_int_eq(bed_server(h, "b", ""), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_str_eq(bed_edited(c, edits[_i].body, headers,
	    sizeof(headers)), edits[_i].sent);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* An engine would read it with another salt, so it is refused. */
static const char *const unsalted[] = { "hello", "[]", "{\"a\":NaN}",
    "{\"a\":1" };

START_TEST(each_unsalted)
{
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = begin(h, CHAT, "s", unsalted[_i]);

	ck_assert_int_eq(kvh_body_end(c, 1), KVH_EVALUE);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), KVH_EORDER);
	kvh_call_free(c);
	/* A body that is no JSON, by its type and its path, is passed. */
	c = NULL;
	ck_assert_int_eq(kvh_begin(h, "POST", 4, "/upload", 7, NOW, &c), 0);
	ck_assert_int_eq(kvh_header(c, "Content-Type", 12, "text/plain", 10),
	    0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SALT, "s", 1), 0);
	ck_assert_int_eq(kvh_body(c, "hello", 5), 0);
	ck_assert_int_eq(kvh_body_end(c, 1), 0);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

START_TEST(salt_is_a_text)
{
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = NULL;
	char text[257];

	memset(text, 's', sizeof(text));
	ck_assert_int_eq(kvh_begin(h, "POST", 4, CHAT, strlen(CHAT), NOW, &c),
	    0);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SALT, "\xff", 1), KVH_EVALUE);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SALT, text, 257), KVH_EVALUE);
	ck_assert_int_eq(kvh_tell(c, KVH_TOLD_SALT, text, 256), 0);
	/* The rest of the body is not known. */
	ck_assert_int_eq(kvh_body(c, "{" M "}", strlen("{" M "}")), 0);
	ck_assert_int_eq(kvh_body_end(c, 0), KVH_EVALUE);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* A rank is named to the engine, and nobody else names one. */
START_TEST(ranks)
{
	struct kvh *h = bed_pool("", 0);
	const char *name, *body = bed_chat("w ", 2000, "");
	struct kvh_call *c;
	char headers[256];
	int32_t rank = -1;
	size_t n;

	ck_assert_int_eq(bed_server(h, "a", "ranks=4"), 0);
	c = bed_request(h, CHAT, NULL, body, NOW);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(kvh_target(c, 0, &name, &n, &rank), 0);
	ck_assert_int_ge(rank, 0);
	ck_assert_int_lt(rank, 4);
	(void)bed_edited(c, body, headers, sizeof(headers));
	ck_assert_ptr_nonnull(strstr(headers, "x-data-parallel-rank: "));
	ck_assert_int_eq(headers[strlen(headers) - 2], '0' + rank);
	kvh_call_free(c);
	c = bed_request(h, "/v1/embeddings", NULL, "{}", NOW);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(kvh_target(c, 0, &name, &n, &rank), 0);
	ck_assert_int_eq(rank, -1);
	(void)bed_edited(c, "{}", headers, sizeof(headers));
	ck_assert_str_eq(headers, "x-data-parallel-rank:\n");
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

static void
asked_pass(struct kvh *h, uint32_t status, int64_t now, bool asks)
{
	static const char body[] = "{" M ",\"stream\":true}";
	struct kvh_call *c = bed_request(h, CHAT, NULL, body, now);
	char headers[256];

	ck_assert_int_eq(kvh_pick(c, now, NULL), 0);
	ck_assert_int_eq(strstr(bed_edited(c, body, headers, sizeof(headers)),
	    "include_usage") != NULL, asks);
	ck_assert_ptr_nonnull(bed_answer(c, status, "application/json", "{}", 0,
	    now));
	kvh_call_free(c);
}

/* Engines that refuse the field are asked once an hour. */
START_TEST(asks_end)
{
	struct kvh *h = bed_pool("", 1);
	int i;

	for (i = 0; i < 3; i++)
		asked_pass(h, i == 1 ? 422 : 400, NOW, true);
	asked_pass(h, 200, NOW + 1, false);
	asked_pass(h, 400, NOW + 3600 * BED_SECOND, true);
	asked_pass(h, 200, NOW + 3601 * BED_SECOND, false);
	asked_pass(h, 200, NOW + 7201 * BED_SECOND, true);
	asked_pass(h, 400, NOW + 7202 * BED_SECOND, true);
	asked_pass(h, 400, NOW + 7203 * BED_SECOND, true);
	kvh_free(h);
}
END_TEST

/* Without feedback nothing is read, and nothing is changed. */
START_TEST(no_feedback)
{
	static const char body[] = "{" M ",\"stream\":true}";
	struct kvh *h = bed_pool("feedback=off", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, body, NOW);
	char headers[256];

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_str_eq(bed_edited(c, body, headers, sizeof(headers)), body);
	ck_assert_str_eq(headers, "");
	ck_assert_str_eq(bed_answer(c, 200, "text/event-stream", bed_stream, 9,
	    NOW), bed_stream);
	ck_assert_int_eq(bed_fact(c, KVH_REPORT_KIND), 0);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* A coding hides the body. */
START_TEST(gzip)
{
	static const char body[] = "{" M ",\"stream\":true}";
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, body, NOW);
	char headers[256];
	uint32_t rewrites = 9;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	(void)bed_edited(c, body, headers, sizeof(headers));
	ck_assert_int_eq(kvh_response(c, 200, "text/event-stream", 17, "gzip",
	    4, "", 0, NOW, &rewrites), 0);
	ck_assert_uint_eq(rewrites, 0);
	ck_assert_int_eq(kvh_response_data(c, "\x1f\x8b", 2, NOW, NULL, 0,
	    NULL), 0);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW, NULL, 0, NULL), 0);
	ck_assert_int_eq(bed_fact(c, KVH_REPORT_KIND), 0);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* An output that is to be written needs room. */
START_TEST(room)
{
	static const char body[] = "{" M ",\"stream\":true}";
	static char out[KVH_WRITE_MORE + 64];
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, body, NOW);
	char headers[256];
	uint32_t rewrites = 0;
	size_t n;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	(void)bed_edited(c, body, headers, sizeof(headers));
	ck_assert_int_eq(kvh_response(c, 200, "text/event-stream", 17, "", 0,
	    "", 0, NOW, &rewrites), 0);
	ck_assert_uint_eq(rewrites, 1);
	ck_assert_int_eq(kvh_response_data(c, "data: {", 7, NOW, NULL, 0,
	    NULL), -1);
	ck_assert_int_eq(kvh_response_data(c, "data: {", 7, NOW, out, 6, &n),
	    -1);
	ck_assert_int_eq(kvh_response_data(c, "data: {", 7, NOW, out,
	    sizeof(out), &n), 0);
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(kvh_end(c, KVH_ENGINE_BROKE, NOW, out, 6, &n), -1);
	ck_assert_int_eq(kvh_end(c, KVH_ENGINE_BROKE, NOW, out, sizeof(out),
	    &n), 0);
	ck_assert_uint_eq(n, 7);
	ck_assert_mem_eq(out, "data: {", 7);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

Suite *suite_pool_edit(void);

Suite *
suite_pool_edit(void)
{
	Suite *s = suite_create("pool_edit");
	TCase *t = tcase_create("pool_edit");

	tcase_add_loop_test(t, each_edit, 0, EDITS);
	tcase_add_loop_test(t, each_unsalted, 0,
	    sizeof(unsalted) / sizeof(unsalted[0]));
	tcase_add_test(t, salt_is_a_text);
	tcase_add_test(t, ranks);
	tcase_add_test(t, asks_end);
	tcase_add_test(t, no_feedback);
	tcase_add_test(t, gzip);
	tcase_add_test(t, room);
	suite_add_tcase(s, t);
	return s;
}
