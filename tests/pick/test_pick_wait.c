/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pick_wait.c - calls of the endpoint picker that wait for a server: their
 * order, and all ways in which a wait can end.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ext_reply.h"
#include "fake_stream.h"
#include "picker.h"

enum { CALLS = 4, ROUNDS_MAX = 20000 };

static const char body[] = "{\"model\":\"m\",\"messages\":"
    "[{\"role\":\"user\",\"content\":\"hello there\"}]}";
static const char *const post[] = { ":method", "POST", ":path",
	"/v1/chat/completions", "content-type", "application/json", NULL };

static struct pick_pool pool;
static struct picker picker;
static struct h2_service service;
static struct h2_stream streams[CALLS];
static void *calls[CALLS];
static unsigned woken;

static void
wake(void *context)
{
	(void)context;
	woken++;
}

/* One server, which takes one request. */
static void
begin(const char *more)
{
	char options[128];

	memset(&pool, 0, sizeof(pool));
	memset(streams, 0, sizeof(streams));
	memset(calls, 0, sizeof(calls));
	woken = 0;
	(void)snprintf(options, sizeof(options),
	    "size=4m include_usage=off %s", more);
	ck_assert_int_eq(kvh_open("", 0, options, strlen(options), NULL,
	    &pool.kvh), 0);
	ck_assert_int_eq(kvh_server_put(pool.kvh, "10.0.0.1:80", 11,
	    "max_conns=1", 11, NULL), 0);
	pool.wake = wake;
	picker.pool = &pool;
	picker.body_most = 1000;
	picker.held_most = 16000;
	service = picker_service(&picker);
}

static void
leave(int i)
{
	service.closed(calls[i]);
	hold_free(&streams[i].out);
	calls[i] = NULL;
}

static void
end(void)
{
	int i;

	for (i = 0; i < CALLS; i++)
		if (calls[i] != NULL)
			leave(i);
	ck_assert_uint_eq(pool.waiting, 0);
	ck_assert_uint_eq(picker.held, 0);
	picker_free(&picker);
	kvh_free(pool.kvh);
}

static void
send_message(int i, struct hold *message)
{
	struct proto_in in;

	proto_read(&in, message->data, message->length);
	service.message(calls[i], in);
	hold_free(message);
}

static void
send_body(int i, const char *text, bool last)
{
	struct hold message = { 0 };

	fake_body(&message, EXT_REQUEST_BODY, text, strlen(text), last);
	send_message(i, &message);
}

/* Call i, until its whole body has come. */
static void
ask(int i, unsigned mode)
{
	struct hold message = { 0 };

	calls[i] = service.open(&streams[i], service.context);
	ck_assert_ptr_nonnull(calls[i]);
	fake_modes(&message, mode, mode);
	fake_headers(&message, EXT_REQUEST_HEADERS, false, post);
	send_message(i, &message);
	streams[i].out.length = 0;
	send_body(i, body, true);
}

static bool
has(int i, const unsigned *path)
{
	struct proto_in in;

	return fake_message(&streams[i], 0, &in) &&
	    fake_field(in, path).at != NULL;
}

/* 'a' a server was chosen, 'r' refused, 'w' nothing was answered yet. */
static const char *
states(void)
{
	static const unsigned headers[] = { 1, 1, 2, 0 };
	static const unsigned whole_body[] = { 3, 1, 2, 0 };
	static const unsigned refused[] = { 7, 3, 0 };
	static char text[CALLS + 1];
	int i;

	for (i = 0; i < CALLS; i++)
		text[i] = calls[i] == NULL ? '-' : has(i, refused) ? 'r' :
		    has(i, headers) || has(i, whole_body) ? 'a' : 'w';
	return text;
}

START_TEST(calls_wait_in_order)
{
	static const unsigned modes[] = { EXT_FULL_DUPLEX, EXT_BUFFERED };
	size_t m;
	int i;

	for (m = 0; m < 2; m++) {
		begin("queue=8");
		for (i = 0; i < CALLS; i++)
			ask(i, modes[m]);
		ck_assert_str_eq(states(), "awww");
		ck_assert_uint_eq(pool.waiting, 3);
		ck_assert_uint_gt(woken, 0);
		pick_turns(&pool);
		ck_assert_str_eq(states(), "awww");
		for (i = 0; i < CALLS - 1; i++) {
			woken = 0;
			leave(i);
			ck_assert_uint_gt(woken, 0);
			pick_turns(&pool);
			ck_assert_uint_eq(pool.waiting, (unsigned)(2 - i));
			ck_assert_int_eq(states()[i + 1], 'a');
		}
		end();
		ck_assert_uint_eq(pool.routed, 4);
	}
}
END_TEST

START_TEST(the_line_is_full)
{
	begin("queue=1");
	ask(0, EXT_FULL_DUPLEX);
	ask(1, EXT_FULL_DUPLEX);
	ask(2, EXT_FULL_DUPLEX);
	ck_assert_str_eq(states(), "awr-");
	ck_assert_uint_eq(pool.full, 1);
	end();
}
END_TEST

START_TEST(a_client_leaves_the_line)
{
	begin("queue=8");
	ask(0, EXT_FULL_DUPLEX);
	ask(1, EXT_FULL_DUPLEX);
	ask(2, EXT_FULL_DUPLEX);
	leave(1);
	ck_assert_uint_eq(pool.ended[KVH_GIVEN_UP], 1);
	leave(0);
	pick_turns(&pool);
	ck_assert_str_eq(states(), "--a-");
	end();
}
END_TEST

/* The server goes meanwhile: it is not full any more, but not there. */
START_TEST(no_server_is_left)
{
	begin("queue=8 queue_timeout=10ms");
	ask(0, EXT_FULL_DUPLEX);
	ask(1, EXT_FULL_DUPLEX);
	ck_assert_int_eq(kvh_server_put(pool.kvh, "10.0.0.1:80", 11,
	    "state=down", 10, NULL), 0);
	while (pool.waiting > 0)
		pick_turns(&pool);
	ck_assert_str_eq(states(), "ar--");
	end();
}
END_TEST

START_TEST(no_longer_than_its_time)
{
	int round;

	begin("queue=8 queue_timeout=10ms");
	ask(0, EXT_FULL_DUPLEX);
	ask(1, EXT_FULL_DUPLEX);
	for (round = 0; round < ROUNDS_MAX && pool.waiting > 0; round++) {
		pick_turns(&pool);
		(void)usleep(1000);
	}
	ck_assert_str_eq(states(), "ar--");
	ck_assert_uint_eq(pool.full, 1);
	ck_assert_uint_eq(pool.ended[KVH_GIVEN_UP], 1);
	end();
}
END_TEST

/* A gateway that shows requests only may end its half before the answer. */
START_TEST(the_half_of_the_client_has_ended)
{
	begin("queue=8");
	ask(0, EXT_FULL_DUPLEX);
	ask(1, EXT_FULL_DUPLEX);
	service.finished(calls[1]);
	ck_assert(!streams[1].finished);
	leave(0);
	pick_turns(&pool);
	ck_assert_str_eq(states(), "-a--");
	ck_assert(streams[1].finished);
	ck_assert_int_eq(streams[1].status, GRPC_OK);
	end();
}
END_TEST

/* Nothing may come before the answer. */
START_TEST(a_message_while_it_waits)
{
	begin("queue=8");
	ask(0, EXT_FULL_DUPLEX);
	ask(1, EXT_FULL_DUPLEX);
	send_body(1, body, true);
	ck_assert(streams[1].finished);
	ck_assert_int_eq(streams[1].status, GRPC_INVALID_ARGUMENT);
	ck_assert_uint_eq(pool.waiting, 0);
	ck_assert_uint_eq(picker.malformed, 1);
	leave(0);
	pick_turns(&pool);
	ck_assert_str_eq(states(), "-w--");
	end();
	ck_assert_uint_eq(pool.ended[KVH_GIVEN_UP], 1);
}
END_TEST

/* The rest of a body that is too long to be held cannot be kept either. */
START_TEST(a_cut_body_does_not_wait)
{
	struct hold message = { 0 };

	begin("queue=8");
	picker.body_most = 4;
	ask(0, EXT_FULL_DUPLEX);
	calls[1] = service.open(&streams[1], service.context);
	fake_modes(&message, EXT_FULL_DUPLEX, EXT_FULL_DUPLEX);
	fake_headers(&message, EXT_REQUEST_HEADERS, false, post);
	send_message(1, &message);
	send_body(1, "{\"model\":", false);
	ck_assert_str_eq(states(), "ar--");
	ck_assert_uint_eq(picker.cut, 1);
	end();
}
END_TEST

Suite *suite_pick_wait(void);

Suite *
suite_pick_wait(void)
{
	Suite *s = suite_create("pick_wait");
	TCase *c = tcase_create("calls");

	tcase_add_test(c, calls_wait_in_order);
	tcase_add_test(c, the_line_is_full);
	tcase_add_test(c, a_client_leaves_the_line);
	tcase_add_test(c, no_server_is_left);
	tcase_add_test(c, no_longer_than_its_time);
	tcase_add_test(c, the_half_of_the_client_has_ended);
	tcase_add_test(c, a_message_while_it_waits);
	tcase_add_test(c, a_cut_body_does_not_wait);
	suite_add_tcase(s, c);
	return s;
}
