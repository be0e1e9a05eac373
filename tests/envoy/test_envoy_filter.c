/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_envoy_filter.c - requests through the module for Envoy, by its hooks:
 * choices, edits, refusals, the server that answered, and ends at any point.
 */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "fake_envoy.h"
#include "pool_bed.h"

#define CHAT "/v1/chat/completions?x=1"
#define ASKS ",\"stream_options\":{\"include_usage\":true}"
#define SERVERS "server 10.0.0.1:80;\nserver 10.0.0.2:80;\n"

static const char first[] = "{\"model\":\"m\",\"messages\":"
    "[{\"role\":\"user\",\"content\":\"hello there\"}],\"stream\":true";
static const char body[] = "{\"model\":\"m\",\"messages\":"
    "[{\"role\":\"user\",\"content\":\"hello there\"}],\"stream\":true}";
static const char edited[] = "{\"model\":\"m\",\"messages\":"
    "[{\"role\":\"user\",\"content\":\"hello there\"}],\"stream\":true"
    ASKS "}";

static struct fake_envoy e;
static const void *config, *status;

static const void *
new_config(const char *name, const char *text)
{
	return envoy_dynamic_module_on_http_filter_config_new(&e,
	    (struct envoy_text){ name, strlen(name) },
	    (struct envoy_text){ text, strlen(text) });
}

static void
begin(const char *text)
{
	fake_log[0] = '\0';
	config = new_config("kvroute", text);
	status = new_config("kvroute_status", text);
	ck_assert_ptr_nonnull(config);
	ck_assert_ptr_nonnull(status);
	fake_begin(&e, config);
	ck_assert_ptr_nonnull(e.filter);
}

/* A number of the status: the first one after this key. */
static long
count(const char *key)
{
	struct fake_envoy s;
	char quoted[64];
	const char *at;
	long n;

	fake_begin(&s, status);
	ck_assert(!fake_ask_head(&s, "/", true));
	ck_assert_uint_eq(s.status, 200);
	(void)snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(s.answer_body.at, quoted);
	n = at == NULL ? -1 : strtol(at + strlen(quoted), NULL, 10);
	fake_end(&s, "kvroute_status");
	return n;
}

/* Nothing of any request is left. */
static void
end(void)
{
	fake_end(&e, "via_upstream");
	ck_assert_int_eq(count("leases"), 0);
	ck_assert_int_eq(count("requests"), 0);
	envoy_dynamic_module_on_http_filter_config_destroy(config);
	envoy_dynamic_module_on_http_filter_config_destroy(status);
}

/* The next request. */
static void
again(const char *details)
{
	fake_end(&e, details);
	fake_begin(&e, config);
}

/* ------------------------------------------------------------- request --- */

START_TEST(the_choice_is_metadata)
{
	begin(SERVERS);
	ck_assert(fake_ask(&e, CHAT, body, 0));
	ck_assert_uint_eq(e.targets.n, strlen("10.0.0.1:80,10.0.0.2:80"));
	ck_assert_ptr_nonnull(strstr(e.targets.at, "10.0.0.1:80"));
	ck_assert_ptr_nonnull(strstr(e.targets.at, ",10.0.0."));
	ck_assert_str_eq(fake_get(&e.request, "accept-encoding"), "identity");
	fake_answer(&e, "200", "application/json", bed_json, 7);
	ck_assert_str_eq(e.got.at, bed_json);
	ck_assert_int_eq(count("chat"), 1);
	ck_assert_int_eq(count("value"), 1);
	ck_assert_int_eq(count("success"), 1);
	end();
}
END_TEST

/* A filter before names those that may be chosen, and unknown ones. */
START_TEST(a_hint_of_a_subset)
{
	static const char *const list[] = { "10.9.9.9:80", "10.0.0.2:80",
		NULL };
	static const char *const text[] = { "10.9.9.9:80 , 10.0.0.2:80",
		NULL };
	int i;

	begin(SERVERS);
	for (i = 0; i < 6; i++) {
		e.subset = i % 2 == 0 ? list : text;
		e.listed = i % 2 == 0;
		ck_assert(fake_ask(&e, CHAT, body, 0));
		ck_assert_str_eq(e.targets.at, "10.0.0.2:80");
		again("via_upstream");
	}
	end();
}
END_TEST

START_TEST(a_subset_without_a_server)
{
	static const char *const unknown[] = { "10.9.9.9:80", NULL };
	static const char *const empty[] = { "", NULL };
	static const char *const none[] = { NULL };
	static const char *const *const subsets[] = { unknown, unknown, empty,
		empty, none };
	size_t i;

	begin(SERVERS);
	for (i = 0; i < sizeof(subsets) / sizeof(subsets[0]); i++) {
		e.subset = subsets[i];
		e.listed = i % 2 == 0;
		ck_assert(!fake_ask(&e, CHAT, body, 0));
		ck_assert_uint_eq(e.status, 503);
		again("kvroute_no_server");
	}
	end();
}
END_TEST

/* A body in pieces, which Envoy gives in slices. */
START_TEST(the_end_of_a_body_is_edited)
{
	char length[24];
	size_t piece, slice;

	begin(SERVERS);
	(void)snprintf(length, sizeof(length), "%zu", strlen(edited));
	for (piece = 0; piece < sizeof(body); piece += 3)
		for (slice = 0; slice < 4; slice++) {
			e.slice = slice;
			ck_assert(fake_ask(&e, CHAT, body, piece));
			ck_assert_str_eq(e.sent.at, edited);
			ck_assert_str_eq(fake_get(&e.request,
			    "content-length"), length);
			again("downstream_remote_disconnect");
		}
	end();
}
END_TEST

/* In HTTP/2 an empty piece or trailers may be the end. */
START_TEST(ends_without_bytes)
{
	begin(SERVERS);
	(void)fake_ask_head(&e, CHAT, false);
	ck_assert(!fake_piece(&e, body, strlen(body), false));
	ck_assert(fake_piece(&e, "", 0, true));
	ck_assert_str_eq(e.sent.at, edited);
	ck_assert_ptr_null(fake_get(&e.request, "content-length"));
	again("via_upstream");
	(void)fake_ask_head(&e, CHAT, false);
	ck_assert(!fake_piece(&e, body, 20, false));
	ck_assert(!fake_piece(&e, body + 20, strlen(body) - 20, false));
	ck_assert(fake_trailers(&e));
	ck_assert_str_eq(e.sent.at, edited);
	again("via_upstream");
	(void)fake_ask_head(&e, CHAT, false);
	ck_assert(fake_trailers(&e));
	ck_assert_uint_eq(e.sent.n, 0);
	end();
}
END_TEST

/* stream_options is at the head, and the message behind it. */
START_TEST(edits_within_what_is_held)
{
	static const char early[] = "{\"stream\":true,\"stream_options\":"
	    "{\"include_usage\":false},\"model\":\"m\",\"messages\":"
	    "[{\"role\":\"user\",\"content\":\"hello there\"}]}";
	size_t piece;

	begin(SERVERS);
	for (piece = 1; piece < sizeof(early); piece += 5) {
		ck_assert(fake_ask(&e, CHAT, early, piece));
		ck_assert_ptr_nonnull(strstr(e.sent.at,
		    "\"include_usage\":true},\"model\":\"m\",\"messages\":"
		    "[{\"role\":\"user\",\"content\":\"hello there\"}]}"));
		ck_assert_int_eq(strtol(fake_get(&e.request,
		    "content-length"), NULL, 10), (long)e.sent.n);
		again("via_upstream");
	}
	end();
}
END_TEST

/* Another filter has held the body: the piece is the buffered body. */
START_TEST(held_by_another_filter)
{
	begin(SERVERS);
	e.held_before = true;
	ck_assert(fake_ask(&e, CHAT, body, 0));
	ck_assert_str_eq(e.sent.at, edited);
	end();
}
END_TEST

/* A body beyond the buffer is chosen for by its first part, and unedited. */
START_TEST(bodies_beyond_the_buffer)
{
	begin(SERVERS);
	e.limit = 60;
	(void)fake_ask_head(&e, CHAT, false);
	ck_assert(!fake_piece(&e, body, 40, false));
	ck_assert_uint_eq(e.targets.n, 0);
	ck_assert(fake_piece(&e, body + 40, 30, false));
	ck_assert_uint_gt(e.targets.n, 0);
	ck_assert(fake_piece(&e, body + 70, strlen(body) - 70, true));
	ck_assert_str_eq(e.sent.at, body);
	fake_answer(&e, "200", "text/event-stream", bed_stream, 0);
	ck_assert_str_eq(e.got.at, bed_stream);
	again("via_upstream");
	e.limit = 0;
	ck_assert(fake_ask(&e, CHAT, body, 10));
	ck_assert_str_eq(e.sent.at, edited);
	end();
}
END_TEST

START_TEST(requests_without_a_prompt)
{
	begin(SERVERS);
	ck_assert(fake_ask_head(&e, "/v1/models", true));
	ck_assert_uint_gt(e.targets.n, 0);
	fake_head(&e, "304", "text/plain", true);
	again("via_upstream");
	ck_assert(fake_ask_head(&e, "/v1/audio/transcriptions", false));
	ck_assert_uint_gt(e.targets.n, 0);
	ck_assert(fake_piece(&e, "abc", 3, false));
	ck_assert(fake_piece(&e, "def", 3, true));
	ck_assert_str_eq(e.sent.at, "abcdef");
	fake_answer(&e, "200", "text/plain", "words", 0);
	ck_assert_str_eq(e.got.at, "words");
	end();
}
END_TEST

START_TEST(many_headers)
{
	char name[90][8];
	size_t i;

	begin("kvroute affinity_key=x-s89 fallbacks=0\n" SERVERS);
	for (i = 0; i < 90; i++) {
		const char *const pair[] = { name[i], "v", NULL };

		(void)snprintf(name[i], sizeof(name[i]), "x-s%zu", i);
		fake_set(&e.request, pair);
	}
	ck_assert(fake_ask(&e, CHAT, body, 0));
	fake_answer(&e, "200", "application/json", bed_json, 0);
	ck_assert_int_eq(count("affinity_bindings"), 1);
	end();
}
END_TEST

START_TEST(prefill_elsewhere)
{
	static const char *const own[] = { "x-prefiller-host-port",
		"10.9.9.9:1", NULL };

	begin("server 10.0.0.1:80 role=decode;\n"
	    "server 10.0.0.2:80 role=prefill;\n");
	fake_set(&e.request, own);
	ck_assert(fake_ask(&e, CHAT, bed_chat("a ", 4000, "]"), 0));
	ck_assert_str_eq(e.targets.at, "10.0.0.1:80");
	ck_assert_str_eq(fake_get(&e.request, "x-prefiller-host-port"),
	    "10.0.0.2:80");
	/* A short one is prefilled where it goes. */
	again("via_upstream");
	fake_set(&e.request, own);
	ck_assert(fake_ask(&e, CHAT, body, 0));
	ck_assert_str_eq(e.targets.at, "10.0.0.1:80");
	ck_assert_ptr_null(fake_get(&e.request, "x-prefiller-host-port"));
	end();
}
END_TEST

/* --------------------------------------------------------------- refusal - */

START_TEST(no_server_is_503)
{
	begin("server 10.0.0.1:80 state=down;\n");
	ck_assert(!fake_ask(&e, CHAT, body, 20));
	ck_assert_uint_eq(e.status, 503);
	ck_assert_str_eq(fake_get(&e.answer, "retry-after"), "1");
	ck_assert_str_eq(fake_get(&e.answer, "content-type"),
	    "application/json");
	ck_assert_ptr_nonnull(strstr(e.answer_body.at, "\"code\":503"));
	again("kvroute_no_server");
	ck_assert(!fake_ask_head(&e, "/v1/models", true));
	ck_assert_uint_eq(e.status, 503);
	end();
}
END_TEST

START_TEST(all_full_is_429)
{
	struct fake_envoy other;

	begin("server 10.0.0.1:80 max_conns=1;\n");
	ck_assert(fake_ask(&e, CHAT, body, 0));
	fake_begin(&other, config);
	ck_assert(!fake_ask(&other, CHAT, body, 0));
	ck_assert_uint_eq(other.status, 429);
	ck_assert_ptr_nonnull(fake_get(&other.answer, "retry-after"));
	fake_end(&other, "kvroute_full");
	end();
}
END_TEST

/* ------------------------------------------------------------ response --- */

START_TEST(usage_is_taken_out_of_streams)
{
	static const char *const length[] = { "content-length", "1", NULL };
	char want[512];
	size_t piece, slice;

	(void)snprintf(want, sizeof(want), "%.*sdata: [DONE]\n\n",
	    (int)(strstr(bed_stream, "data: {\"choices\":[],") - bed_stream),
	    bed_stream);
	begin(SERVERS);
	for (piece = 0; piece < strlen(bed_stream); piece += 7)
		for (slice = 0; slice < 3; slice++) {
			ck_assert(fake_ask(&e, CHAT, body, 0));
			e.slice = slice;
			fake_set(&e.response, length);
			fake_answer(&e, "200", "text/event-stream", bed_stream,
			    piece);
			ck_assert_str_eq(e.got.at, want);
			ck_assert_ptr_null(fake_get(&e.response,
			    "content-length"));
			again("via_upstream");
		}
	ck_assert_int_gt(count("stripped"), 0);
	end();
}
END_TEST

/* A stream that trailers end, within a line. */
START_TEST(trailers_give_bytes_back)
{
	begin(SERVERS);
	ck_assert(fake_ask(&e, CHAT, body, 0));
	fake_head(&e, "200", "text/event-stream", false);
	fake_data(&e, "data: {\"cho", 11, false);
	(void)envoy_dynamic_module_on_http_filter_response_trailers(&e,
	    e.filter);
	ck_assert_uint_eq(e.got.n + e.body[ENVOY_RESPONSE_BUFFERED].n, 11);
	again("via_upstream");
	ck_assert(fake_ask(&e, CHAT, body, 0));
	fake_head(&e, "200", "application/json", false);
	(void)envoy_dynamic_module_on_http_filter_response_trailers(&e,
	    e.filter);
	ck_assert_int_eq(count("clients_left"), 0);
	end();
}
END_TEST

/* Where the second target has answered, the first one has failed. */
START_TEST(retries_blame_the_first)
{
	char list[64], *second;

	begin("kvroute max_fails=1 fail_timeout=60s\n" SERVERS);
	ck_assert(fake_ask(&e, CHAT, body, 0));
	(void)snprintf(list, sizeof(list), "%s", e.targets.at);
	second = strchr(list, ',');
	*second++ = '\0';
	e.server = second;
	fake_answer(&e, "200", "application/json", bed_json, 0);
	again("via_upstream");
	ck_assert(fake_ask(&e, CHAT, "{\"messages\":[]}", 0));
	ck_assert_int_eq(strncmp(e.targets.at, second, strlen(second)), 0);
	end();
}
END_TEST

START_TEST(heads_before_the_head)
{
	begin(SERVERS);
	ck_assert(fake_ask(&e, CHAT, body, 0));
	fake_head(&e, "103", "text/plain", false);
	fake_answer(&e, "200", "application/json", bed_json, 0);
	ck_assert_int_eq(count("success"), 1);
	again("via_upstream");
	ck_assert(fake_ask_head(&e, "/v1/realtime", false));
	fake_head(&e, "101", "text/plain", false);
	fake_data(&e, "frame", 5, false);
	ck_assert_str_eq(e.got.at, "frame");
	end();
}
END_TEST

/* ---------------------------------------------------------------- ends --- */

#define RESET "upstream_reset_before_response_started"

START_TEST(envoy_answers_itself)
{
	static const struct {
		const char *details;
		bool refused, fails;
	} rows[] = {
		{ RESET "{remote_connection_failure|111}", true, true },
		{ RESET "{connection_termination}", false, true },
		{ "response_timeout", false, true },
		{ "stream_idle_timeout", false, true },
		{ "upstream_per_try_timeout", false, true },
		{ "upstream_max_stream_duration_reached", false, false },
		{ RESET "{overflow}", false, false },
		{ "no_healthy_upstream", false, false },
		{ "rbac_access_denied", false, false }
	};
	size_t i;
	char server[32];

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin("kvroute max_fails=1 fallbacks=0\n" SERVERS);
		/* It has something cached, which a refusal empties. */
		ck_assert(fake_ask(&e, CHAT, bed_chat("a ", 4000, "]"), 0));
		(void)snprintf(server, sizeof(server), "%s", e.targets.at);
		e.server = server;
		fake_answer(&e, "200", "application/json", bed_json, 0);
		again("via_upstream");
		ck_assert(fake_ask(&e, CHAT, bed_chat("a ", 4000, "]"), 0));
		ck_assert_str_eq(e.targets.at, server);
		e.server = server;
		fake_local(&e, 503, rows[i].details);
		ck_assert_int_eq(count("refused"), rows[i].refused);
		ck_assert_int_eq(count("clients_left"), 0);
		again(rows[i].details);
		ck_assert(fake_ask(&e, CHAT, bed_chat("a ", 4000, "]"), 0));
		ck_assert_int_eq(strcmp(e.targets.at, server) != 0,
		    rows[i].fails);
		end();
	}
}
END_TEST

/* Passes a request up to a step; true: it has come so far. */
static void
pass_until(int step)
{
	if (step > 0)
		(void)fake_ask_head(&e, CHAT, false);
	if (step > 1)
		(void)fake_piece(&e, body, 30, false);
	if (step > 2)
		(void)fake_piece(&e, body + 30, strlen(body) - 30, true);
	if (step > 3)
		fake_head(&e, "200", "text/event-stream", false);
	if (step > 4)
		fake_data(&e, bed_stream, 30, false);
	if (step > 5)
		fake_data(&e, bed_stream + 30, strlen(bed_stream) - 30, true);
}

START_TEST(ends_at_any_point)
{
	static const char *const details[] = { NULL,
		"downstream_remote_disconnect",
		"stream_idle_timeout", "response_timeout",
		"upstream_reset_after_response_started{connection_termination}"
	};
	static const int left[] = { 3, 3, 2, 0, 0 };
	static const int broken[] = { 0, 0, 0, 2, 2 };
	int step, i;

	for (i = 0; i < 5; i++) {
		begin(SERVERS);
		for (step = 0; step < 7; step++) {
			pass_until(step);
			again(details[i]);
			ck_assert_int_eq(count("leases"), 0);
			ck_assert_int_eq(count("requests"), 0);
		}
		ck_assert_int_eq(count("clients_left"), left[i]);
		ck_assert_int_eq(count("broken"), broken[i]);
		end();
	}
}
END_TEST

/* Each allocation of a request fails in turn, once and for good. */
START_TEST(without_memory)
{
	unsigned long n;
	bool failed = true;
	int good;

	begin(SERVERS);
	for (n = 1; failed; n++)
		for (good = 0; good < 2; good++) {
			fake_end(&e, "via_upstream");
			if (good)
				alloc_fail_from(n);
			else
				alloc_fail_at(n);
			fake_begin(&e, config);
			e.slice = 1;
			pass_until(6);
			failed = alloc_count() >= n;
			alloc_reset();
			if (e.status == 0)
				ck_assert_ptr_nonnull(strstr(e.sent.at, first));
		}
	ck_assert_uint_gt(n, 5);
	again("via_upstream");
	ck_assert(fake_ask(&e, CHAT, body, 0));
	ck_assert_str_eq(e.sent.at, edited);
	end();
}
END_TEST

/* ------------------------------------------------------------- threads --- */

enum { THREADS = 8 };

static void *
run_requests(void *number)
{
	const unsigned seed = *(const unsigned *)number;
	const unsigned requests = (unsigned)test_amount(400);
	struct fake_envoy t;
	unsigned i;

	for (i = 0; i < requests; i++) {
		fake_begin(&t, config);
		if (fake_ask(&t, CHAT, body, i % 50) && i % 7 != seed % 7)
			fake_answer(&t, i % 11 == 0 ? "503" : "200",
			    i % 2 == 0 ? "text/event-stream" :
			    "application/json", i % 2 == 0 ? bed_stream :
			    bed_json, i % 13);
		fake_end(&t, i % 3 == 0 ? NULL : "upstream_reset");
	}
	return NULL;
}

START_TEST(threads_share_a_pool)
{
	pthread_t thread[THREADS];
	unsigned number[THREADS], i;

	begin("kvroute gray=4\n" SERVERS);
	for (i = 0; i < THREADS; i++) {
		number[i] = i;
		ck_assert_int_eq(pthread_create(&thread[i], NULL, run_requests,
		    &number[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
	end();
}
END_TEST

Suite *suite_envoy_filter(void);

Suite *
suite_envoy_filter(void)
{
	Suite *s = suite_create("envoy_filter");
	TCase *c = tcase_create("envoy_filter");

	tcase_set_timeout(c, 60);
	tcase_add_test(c, the_choice_is_metadata);
	tcase_add_test(c, a_hint_of_a_subset);
	tcase_add_test(c, a_subset_without_a_server);
	tcase_add_test(c, the_end_of_a_body_is_edited);
	tcase_add_test(c, ends_without_bytes);
	tcase_add_test(c, edits_within_what_is_held);
	tcase_add_test(c, held_by_another_filter);
	tcase_add_test(c, bodies_beyond_the_buffer);
	tcase_add_test(c, requests_without_a_prompt);
	tcase_add_test(c, many_headers);
	tcase_add_test(c, prefill_elsewhere);
	tcase_add_test(c, no_server_is_503);
	tcase_add_test(c, all_full_is_429);
	tcase_add_test(c, usage_is_taken_out_of_streams);
	tcase_add_test(c, trailers_give_bytes_back);
	tcase_add_test(c, retries_blame_the_first);
	tcase_add_test(c, heads_before_the_head);
	tcase_add_test(c, envoy_answers_itself);
	tcase_add_test(c, ends_at_any_point);
	tcase_add_test(c, without_memory);
	tcase_add_test(c, threads_share_a_pool);
	suite_add_tcase(s, c);
	return s;
}
