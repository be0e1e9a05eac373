/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_picker.c - calls of the endpoint picker without a network: choices,
 * refusals, edits, ends, and the order of replies. The checker of pickers,
 * tests/picker-check, asks the same of the daemon.
 */
#define _GNU_SOURCE /* memmem */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "ext_reply.h"
#include "picker.h"
#include "fake_stream.h"

static const char body[] = "{\"model\":\"m\",\"stream\":true,\"messages\":"
    "[{\"role\":\"user\",\"content\":\"hello there\"}]}";
static const char *const post[] = { ":method", "POST", ":path",
	"/v1/chat/completions?x=1", ":authority", "llm", "content-type",
	"application/json", NULL };
static const char *const answered[] = { ":status", "200", "content-type",
	"text/event-stream", "content-length", "9", NULL };

static struct pick_pool pool;
static struct picker picker;
static struct h2_service service;
static struct h2_stream stream;
static struct hold message;
static void *call;

static void
begin(const char *options, const char *facts)
{
	static const char *const servers[] = { "10.0.0.1:80", "10.0.0.2:80" };
	size_t i;

	memset(&pool, 0, sizeof(pool));
	memset(&stream, 0, sizeof(stream));
	ck_assert_int_eq(kvh_open("", 0, options, strlen(options), NULL,
	    &pool.kvh), 0);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(kvh_server_put(pool.kvh, servers[i],
		    strlen(servers[i]), facts, strlen(facts), NULL), 0);
	picker.pool = &pool;
	picker.body_most = 1000;
	picker.held_most = 16000;
	service = picker_service(&picker);
	call = service.open(&stream, service.context);
	ck_assert_ptr_nonnull(call);
}

static void
end(void)
{
	service.closed(call);
	hold_free(&stream.out);
	picker_free(&picker);
	kvh_free(pool.kvh);
}

static void
send_message(void)
{
	struct proto_in in;

	proto_read(&in, message.data, message.length);
	stream.out.length = 0;
	service.message(call, in);
	message.length = 0;
}

static void
send_headers(unsigned request, unsigned response, bool last)
{
	fake_modes(&message, request, response);
	fake_headers(&message, EXT_REQUEST_HEADERS, last, post);
	send_message();
}

static void
send_body(const char *text, bool last)
{
	fake_body(&message, EXT_REQUEST_BODY, text, strlen(text), last);
	send_message();
}

/* The text at a path of message i. */
static bool
is_at(unsigned i, const unsigned *path, const char *want)
{
	struct proto_in in, found;

	if (!fake_message(&stream, i, &in))
		return false;
	found = fake_field(in, path);
	return want == NULL ? found.at != NULL :
	    found.at != NULL && proto_is(&found, want);
}

static const unsigned target[] = { 1, 1, 2, 1, 1, 3, 0 };
static const unsigned metadata[] = { 8, 1, 2, 5, 1, 2, 3, 0 };
static const unsigned piece[] = { 3, 1, 3, 3, 1, 0 };
static const unsigned refused[] = { 7, 3, 0 };
static const unsigned back[] = { 4, 1, 3, 3, 1, 0 };

START_TEST(full_duplex)
{
	begin("size=4m include_usage=off", "");
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, false);
	ck_assert_uint_eq(stream.out.length, 0);
	send_body("{\"model\":", false);
	ck_assert_uint_eq(stream.out.length, 0);
	send_body("1}", true);
	ck_assert(is_at(0, target, NULL));
	ck_assert(is_at(0, metadata, NULL));
	ck_assert(is_at(1, piece, "{\"model\":1}"));
	ck_assert(!is_at(2, piece, NULL));
	ck_assert_uint_eq(pool.routed, 1);
	end();
	ck_assert_uint_eq(pool.ended[KVH_CLIENT_LEFT], 1);
}
END_TEST

START_TEST(buffered_with_an_edit)
{
	static const unsigned chosen[] = { 3, 1, 2, 1, 1, 3, 0 };
	static const unsigned edited[] = { 3, 1, 3, 1, 0 };
	static const unsigned removed[] = { 3, 1, 2, 2, 0 };
	struct proto_in in, text;

	begin("size=4m include_usage=on", "");
	send_headers(EXT_BUFFERED, EXT_BUFFERED, false);
	ck_assert(fake_message(&stream, 0, &in));
	ck_assert(!is_at(0, target, NULL));
	send_body(body, true);
	ck_assert(is_at(0, chosen, NULL));
	ck_assert(is_at(0, removed, "content-length"));
	ck_assert(is_at(0, edited, NULL));
	ck_assert(fake_message(&stream, 0, &in));
	text = fake_field(in, edited);
	ck_assert_uint_gt(proto_length(&text), strlen(body));
	ck_assert_ptr_nonnull(memmem(text.at, proto_length(&text),
	    "include_usage", 13));
	end();
}
END_TEST

START_TEST(trailers_end_a_body)
{
	static const unsigned trailers[] = { 5, 0 };

	begin("size=4m", "");
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, false);
	send_body("{}", false);
	fake_headers(&message, EXT_REQUEST_TRAILERS, false, post + 8);
	send_message();
	ck_assert(is_at(0, target, NULL));
	ck_assert(is_at(1, piece, "{}"));
	ck_assert(is_at(2, trailers, ""));
	end();
}
END_TEST

START_TEST(long_bodies_pass)
{
	static char text[700];

	begin("size=4m", "");
	memset(text, ' ', sizeof(text) - 1);
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, false);
	send_body(text, false);
	ck_assert_uint_eq(stream.out.length, 0);
	send_body(text, false);
	ck_assert(is_at(0, target, NULL));
	ck_assert(is_at(1, piece, NULL));
	ck_assert_uint_eq(picker.cut, 1);
	send_body("tail", true);
	ck_assert(is_at(0, piece, "tail"));
	end();
	picker.cut = 0;
}
END_TEST

/* All calls together hold too much. */
START_TEST(many_bodies_pass)
{
	struct h2_stream second = { .written = 0 };
	void *first;

	begin("size=4m", "");
	picker.held_most = 7;
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, false);
	send_body("{   ", false);
	ck_assert_uint_eq(stream.out.length, 0);
	first = call;
	call = service.open(&second, service.context);
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, false);
	send_body("{   ", false);
	ck_assert_uint_gt(second.out.length, 0);
	ck_assert_uint_eq(picker.cut, 1);
	ck_assert_uint_eq(picker.held, 4);
	service.closed(first);
	ck_assert_uint_eq(picker.held, 0);
	hold_free(&second.out);
	end();
	picker.cut = 0;
}
END_TEST

START_TEST(bodies_that_are_not_shown)
{
	begin("size=4m", "");
	send_headers(EXT_NONE, EXT_NONE, false);
	ck_assert(is_at(0, target, NULL));
	service.finished(call);
	ck_assert(stream.finished);
	ck_assert_int_eq(stream.status, GRPC_OK);
	end();
	ck_assert_uint_eq(pool.ended[KVH_NOT_SEEN], 1);
}
END_TEST

START_TEST(subset_without_a_server)
{
	static const char *const names[] = { "10.9.9.9:80" };

	begin("size=4m", "");
	fake_metadata(&message, EXT_SUBSET_SPACE, EXT_SUBSET, names, 1,
	    true);
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, false);
	send_body("{}", true);
	ck_assert(is_at(0, refused, NULL));
	ck_assert_uint_eq(pool.none, 1);
	send_body("{}", true);
	end();
	ck_assert_uint_eq(pool.ended[KVH_GIVEN_UP], 1);
}
END_TEST

/* As a text with commas, and as a list, with names that are not known. */
START_TEST(subset_of_one)
{
	static const char *const texts[] = { " 10.9.9.9:80 ,, 10.0.0.2:80," };
	static const char *const list[] = { "", "10.9.9.9:80", "10.0.0.2:80" };
	int lists;

	for (lists = 0; lists < 2; lists++) {
		begin("size=4m include_usage=off", "");
		fake_metadata(&message, EXT_SUBSET_SPACE, EXT_SUBSET,
		    lists ? list : texts, lists ? 3 : 1, lists);
		send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, true);
		ck_assert(is_at(0, target, "10.0.0.2:80"));
		ck_assert(is_at(0, metadata, "10.0.0.2:80"));
		end();
	}
}
END_TEST

static void
put_role(const char *server, const char *role)
{
	ck_assert_int_eq(kvh_server_put(pool.kvh, server, strlen(server), role,
	    strlen(role), NULL), 0);
}

static bool
is_sent(const char *text)
{
	return memmem(stream.out.data, stream.out.length, text,
	    strlen(text)) != NULL;
}

START_TEST(prefill_elsewhere)
{
	/* the first header that is removed */
	static const unsigned removed[] = { 1, 1, 2, 2, 0 };
	char text[900];
	size_t i;

	begin("size=4m include_usage=off", "");
	put_role("10.0.0.1:80", "role=decode");
	put_role("10.0.0.2:80", "role=prefill");
	i = (size_t)snprintf(text, sizeof(text), "{\"messages\":"
	    "[{\"role\":\"user\",\"content\":\"");
	for (; i < sizeof(text) - 5; i++)
		text[i] = (char)('a' + i * i % 23);
	memcpy(text + i, "\"}]}", 5);
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, false);
	send_body(text, true);
	ck_assert(is_at(0, metadata, "10.0.0.1:80"));
	ck_assert(is_sent("x-prefiller-host-port"));
	ck_assert(is_sent("10.0.0.2:80"));
	ck_assert(!is_at(0, removed, NULL));
	service.closed(call);
	/* A short one is prefilled where it goes. */
	call = service.open(&stream, service.context);
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, false);
	send_body(body, true);
	ck_assert(is_at(0, metadata, "10.0.0.1:80"));
	ck_assert(!is_sent("10.0.0.2:80"));
	ck_assert(is_at(0, removed, "x-prefiller-host-port"));
	end();
}
END_TEST

START_TEST(all_places_taken)
{
	struct h2_stream second = { .written = 0 };
	static const unsigned code[] = { 7, 1, 0 };
	struct proto_in in;
	struct proto_field f;
	void *first;

	begin("size=4m", "max_conns=1");
	ck_assert_int_eq(kvh_server_put(pool.kvh, "10.0.0.2:80", 11,
	    "state=gone", 10, NULL), 0);
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, true);
	first = call;
	call = service.open(&second, service.context);
	fake_modes(&message, EXT_FULL_DUPLEX, EXT_FULL_DUPLEX);
	fake_headers(&message, EXT_REQUEST_HEADERS, true, post);
	send_message();
	ck_assert(fake_message(&second, 0, &in));
	in = fake_field(in, code);
	ck_assert(proto_next(&in, &f));
	ck_assert_uint_eq(f.value, 429);
	ck_assert_uint_eq(pool.full, 1);
	service.closed(first);
	hold_free(&second.out);
	end();
}
END_TEST

static void
send_response(const char *text, bool last)
{
	fake_body(&message, EXT_RESPONSE_BODY, text, strlen(text), last);
	send_message();
}

START_TEST(whole_response)
{
	begin("size=4m include_usage=off", "");
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, false);
	send_body(body, true);
	fake_headers(&message, EXT_RESPONSE_HEADERS, false, answered);
	send_message();
	send_response("data: {}\n\n", false);
	ck_assert(is_at(0, back, "data: {}\n\n"));
	send_response("data: [DONE]\n\n", true);
	ck_assert(is_at(0, back, "data: [DONE]\n\n"));
	ck_assert_uint_eq(pool.ended[KVH_WHOLE], 1);
	service.finished(call);
	end();
	ck_assert_uint_eq(pool.ended[KVH_WHOLE], 1);
	ck_assert_uint_eq(pool.ended[KVH_CLIENT_LEFT], 0);
}
END_TEST

/* The client did not ask for the event with usage, so it does not get it. */
START_TEST(usage_is_cut_out)
{
	static const char event[] = "data: {\"choices\":[],\"usage\":{"
	    "\"prompt_tokens\":7,\"completion_tokens\":1}}\n\n";
	static const unsigned removed[] = { 2, 1, 2, 2, 0 };

	begin("size=4m include_usage=on", "");
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, false);
	send_body(body, true);
	fake_headers(&message, EXT_RESPONSE_HEADERS, false, answered);
	send_message();
	ck_assert(is_at(0, removed, "content-length"));
	send_response("data: {\"choices\":[{\"index\":0,\"delta\":"
	    "{\"content\":\"a\"}}]}\n\n", false);
	send_response(event, false);
	ck_assert(!is_at(0, back, NULL));
	send_response("data: [DONE]\n\n", true);
	ck_assert(is_at(0, back, "data: [DONE]\n\n"));
	end();
}
END_TEST

START_TEST(response_that_ends_early)
{
	begin("size=4m include_usage=off", "");
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, true);
	fake_headers(&message, EXT_RESPONSE_HEADERS, false, answered);
	send_message();
	service.finished(call);
	end();
	ck_assert_uint_eq(pool.ended[KVH_CLIENT_LEFT], 1);
}
END_TEST

/* Heads of responses are shown, their bodies are not. */
START_TEST(responses_without_bodies)
{
	static const char *const failed[] = { ":status", "500", NULL };
	static const unsigned edited[] = { 3, 1, 3, 1, 0 };

	begin("size=4m include_usage=on", "");
	send_headers(EXT_BUFFERED, EXT_NONE, false);
	send_body(body, true);
	ck_assert(!is_at(0, edited, NULL));
	fake_headers(&message, EXT_RESPONSE_HEADERS, false, answered);
	send_message();
	fake_headers(&message, EXT_RESPONSE_TRAILERS, false, answered + 6);
	send_message();
	end();
	ck_assert_uint_eq(pool.ended[KVH_NOT_SEEN], 1);
	begin("size=4m include_usage=on", "");
	send_headers(EXT_BUFFERED, EXT_NONE, false);
	send_body(body, true);
	fake_headers(&message, EXT_RESPONSE_HEADERS, false, failed);
	send_message();
	end();
	ck_assert_uint_eq(pool.ended[KVH_WHOLE], 1);
}
END_TEST

START_TEST(client_that_leaves_before_a_response)
{
	begin("size=4m", "");
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, true);
	service.finished(call);
	end();
	ck_assert_uint_eq(pool.ended[KVH_CLIENT_LEFT], 1);
}
END_TEST

START_TEST(order_of_messages)
{
	begin("size=4m", "");
	send_body("{}", true);
	ck_assert(stream.finished);
	ck_assert_int_eq(stream.status, GRPC_INVALID_ARGUMENT);
	end();
	begin("size=4m", "");
	fake_headers(&message, EXT_RESPONSE_HEADERS, false, answered);
	send_message();
	ck_assert(!stream.finished);
	send_response("x", true);
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, true);
	send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, true);
	ck_assert(stream.finished);
	end();
}
END_TEST

START_TEST(without_memory)
{
	unsigned long fail;

	for (fail = 1; fail < 60; fail++) {
		begin("size=4m include_usage=on", "");
		alloc_fail_at(fail);
		send_headers(EXT_FULL_DUPLEX, EXT_FULL_DUPLEX, false);
		send_body(body, true);
		if (!stream.finished) {
			fake_headers(&message, EXT_RESPONSE_HEADERS, false,
			    answered);
			send_message();
			send_response("data: {}\n\n", true);
		}
		alloc_reset();
		end();
	}
}
END_TEST

Suite *suite_picker(void);

Suite *
suite_picker(void)
{
	Suite *s = suite_create("picker");
	TCase *c = tcase_create("picker");

	tcase_add_test(c, full_duplex);
	tcase_add_test(c, buffered_with_an_edit);
	tcase_add_test(c, trailers_end_a_body);
	tcase_add_test(c, long_bodies_pass);
	tcase_add_test(c, many_bodies_pass);
	tcase_add_test(c, bodies_that_are_not_shown);
	tcase_add_test(c, subset_without_a_server);
	tcase_add_test(c, subset_of_one);
	tcase_add_test(c, prefill_elsewhere);
	tcase_add_test(c, all_places_taken);
	tcase_add_test(c, whole_response);
	tcase_add_test(c, usage_is_cut_out);
	tcase_add_test(c, response_that_ends_early);
	tcase_add_test(c, responses_without_bodies);
	tcase_add_test(c, client_that_leaves_before_a_response);
	tcase_add_test(c, order_of_messages);
	tcase_add_test(c, without_memory);
	suite_add_tcase(s, c);
	return s;
}
