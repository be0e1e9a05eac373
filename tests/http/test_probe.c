/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_probe.c - asking an engine: paths in order, responses of HTTP/1.1 in
 * every framing, cut anywhere, broken.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "probe_ask.h"

#define LINE "vllm:cache_config_info{block_size=\"16\"," \
	"num_gpu_blocks=\"100\"} 1.0\n"
#define INFO "{\"max_total_num_tokens\":5000,\"page_size\":1}"
#define NOT_FOUND "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nNot Found"

enum { REQUEST_MAX = 512 };

static void
request(struct probe *p, const char *path)
{
	char text[REQUEST_MAX], want[64];
	size_t n = response_request(probe_begin(p), "10.0.0.1:8000", 13, text,
	    sizeof(text));

	ck_assert_uint_gt(n, 0);
	snprintf(want, sizeof(want), "GET %s HTTP/1.1\r\n", path);
	ck_assert(strncmp(text, want, strlen(want)) == 0);
	ck_assert_ptr_nonnull(strstr(text, "\r\nHost: 10.0.0.1:8000\r\n"));
	ck_assert_ptr_nonnull(strstr(text, "\r\nConnection: close\r\n"));
	ck_assert_str_eq(text + n - 4, "\r\n\r\n");
	ck_assert_str_eq(probe_place(p), path);
}

/* Gives the text in pieces of `piece` bytes, then ends the connection. */
static enum probe_state
answer(struct probe *p, const char *text, size_t piece)
{
	enum probe_state state = PROBE_MORE;
	struct asked a = { .probe = p };
	size_t length = strlen(text), at, n;
	char *copy;

	for (at = 0; at < length && state == PROBE_MORE; at += n) {
		n = length - at < piece ? length - at : piece;
		copy = malloc(n);
		ck_assert_ptr_nonnull(copy);
		memcpy(copy, text + at, n);
		state = asked_data(&a, copy, n);
		free(copy);
	}
	return state == PROBE_MORE ? asked_close(&a) : state;
}

static uint64_t
tokens_of(const char *text, size_t piece)
{
	struct probe *p = probe_new(0);
	uint64_t tokens;

	ck_assert_ptr_nonnull(p);
	request(p, "/metrics");
	if (answer(p, text, piece) == PROBE_DONE)
		ck_assert_uint_gt(probe_found(p)->tokens, 0);
	tokens = probe_found(p)->tokens;
	probe_free(p);
	return tokens;
}

START_TEST(capacity_in_every_framing)
{
	static const char *const texts[] = {
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" LINE,
		"HTTP/1.0 200 OK\n\n" LINE,
		"HTTP/1.1 200\r\n\r\n" LINE,
		"HTTP/1.1 200 OK\r\ncontent-length:  65 \r\n\r\n" LINE "###",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "3\r\n# \n\r\n41;x=y\r\n" LINE "\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\ntransfer-encoding:CHUNKED\r\n\r\n"
		    "00041\r\n" LINE "\r\n0\r\nTrailer: t\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n" LINE
	};
	size_t i, piece;

	ck_assert_uint_eq(strlen(LINE), 65);
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		for (piece = 1; piece < 400; piece += piece)
			ck_assert_msg(tokens_of(texts[i], piece) == 1600,
			    "text %zu, pieces of %zu", i, piece);
}
END_TEST

START_TEST(responses_without_a_capacity)
{
	static const char *const texts[] = {
		"", "\r\n\r\n", "HTTP/1.1", "HTTP/2 200\r\n\r\n" LINE,
		"SSH-2.0-OpenSSH\r\n" LINE, LINE,
		"HTTP/1.1 abc\r\n\r\n" LINE, "HTTP/1.1 20\r\n\r\n" LINE,
		"HTTP/1.1 2000 OK\r\n\r\n" LINE,
		"HTTP/1.1 500 Error\r\n\r\n" LINE,
		"HTTP/1.1 401 Unauthorized\r\n\r\n" LINE,
		"HTTP/1.1 204 No Content\r\n\r\n" LINE,
		"HTTP/1.1 200 OK\r\nContent-Length: -70\r\n\r\n" LINE,
		"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n" LINE,
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n"
		    "\r\n" LINE,
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" LINE,
		"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" LINE,
		/* Perhaps a line of another rank would follow. */
		"HTTP/1.1 200 OK\r\nContent-Length: 66\r\n\r\n" LINE,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n" LINE,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" LINE,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "0\r\n\r\n" LINE,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "fffffffffffffff\r\n" LINE,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "3\r\n# \nX\r\n41\r\n" LINE
	};
	size_t i, piece;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		for (piece = 1; piece < 400; piece += piece)
			ck_assert_msg(tokens_of(texts[i], piece) == 0,
			    "text %zu, pieces of %zu", i, piece);
}
END_TEST

START_TEST(head_is_bounded)
{
	const size_t n = RESPONSE_HEAD_MAX + 100;
	char *text = malloc(n);
	struct response r = { 0 };
	struct response_part part;
	const char *at = text;

	ck_assert_ptr_nonnull(text);
	memset(text, 'x', n);
	memcpy(text, "HTTP/1.1 200 OK\r\n", 17);
	ck_assert_int_eq(response_next(&r, &at, text + n, &part),
	    RESPONSE_BAD);
	ck_assert_uint_eq((size_t)(at - text), RESPONSE_HEAD_MAX + 1);
	ck_assert(!response_close(&r));
	free(text);
}
END_TEST

START_TEST(paths_in_order)
{
	struct probe *p = probe_new(0);

	request(p, "/metrics");
	ck_assert_int_eq(answer(p, NOT_FOUND, 5), PROBE_NEXT);
	ck_assert_uint_eq(probe_status(p), 404);
	request(p, "/server_info");
	ck_assert_uint_eq(probe_status(p), 0);
	ck_assert_int_eq(answer(p, NOT_FOUND, 500), PROBE_NEXT);
	request(p, "/get_server_info");
	ck_assert_int_eq(answer(p, "HTTP/1.1 200 OK\r\n\r\n" INFO, 9),
	    PROBE_DONE);
	ck_assert_uint_eq(probe_found(p)->tokens, 5000);
	ck_assert_uint_eq(probe_found(p)->block_tokens, 1);
	ck_assert_int_eq(probe_found(p)->kind, CAPACITY_SGLANG);
	ck_assert_str_eq(probe_place(p), "/get_server_info");
	probe_free(p);
}
END_TEST

/* Only 404 and whole texts prove that there is no capacity. */
START_TEST(engines_without_a_capacity)
{
	static const char none[] = "HTTP/1.1 200 OK\r\n\r\n{}";
	static const char *const unsure[] = { "", ("HTTP/1.1 200 OK\r\n"
	    "Content-Length: 9\r\n\r\n{}"), "HTTP/1.1 503 Busy\r\n\r\n",
	    "no HTTP\r\n" };
	struct probe *p;
	size_t i;

	for (i = 0; i <= sizeof(unsure) / sizeof(unsure[0]); i++) {
		const bool sure = i == sizeof(unsure) / sizeof(unsure[0]);

		p = probe_new(0);
		request(p, "/metrics");
		ck_assert_int_eq(answer(p, NOT_FOUND, 99), PROBE_NEXT);
		request(p, "/server_info");
		ck_assert_int_eq(answer(p, sure ? none : unsure[i], 99),
		    PROBE_NEXT);
		request(p, "/get_server_info");
		ck_assert_int_eq(answer(p, none, 99), PROBE_DONE);
		ck_assert_msg(probe_denied(p) == sure, "%zu", i);
		probe_free(p);
	}
	p = probe_new(0);
	request(p, "/metrics");
	ck_assert_int_eq(answer(p, "HTTP/1.1 200 OK\r\n\r\n" LINE, 99),
	    PROBE_DONE);
	ck_assert(!probe_denied(p));
	probe_free(p);
}
END_TEST

/*
 * Metrics stop behind the lines of all ranks; JSON is read to its end.
 */
START_TEST(no_more_is_read_than_needed)
{
	struct probe *p = probe_new(0);
	struct asked a = { .probe = p };

	request(p, "/metrics");
	ck_assert_int_eq(asked_data(&a, "HTTP/1.1 200 OK\r\n\r\n" LINE, 84),
	    PROBE_MORE);
	ck_assert_int_eq(asked_data(&a, "# HELP a\na 1", 12), PROBE_DONE);
	probe_free(p);
	p = probe_new(0);
	request(p, "/metrics");
	ck_assert_int_eq(answer(p, NOT_FOUND, 9), PROBE_NEXT);
	request(p, "/server_info");
	/* cut: its length is larger */
	ck_assert_int_eq(answer(p, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n"
	    "\r\n" INFO, 9), PROBE_NEXT);
	ck_assert_uint_eq(probe_found(p)->tokens, 0);
	request(p, "/get_server_info");
	ck_assert_int_eq(answer(p, "", 1), PROBE_DONE);
	ck_assert_uint_eq(probe_found(p)->tokens, 0);
	ck_assert_uint_eq(probe_status(p), 0);
	probe_free(p);
}
END_TEST

START_TEST(responses_without_end_are_left)
{
	static char zeros[65536];
	struct probe *p = probe_new(0);
	struct asked a = { .probe = p };
	enum probe_state state;
	size_t pieces = 0;

	request(p, "/metrics");
	state = asked_data(&a, "HTTP/1.1 200 OK\r\n\r\n", 19);
	for (; state == PROBE_MORE; pieces++)
		state = asked_data(&a, zeros, sizeof(zeros));
	ck_assert_int_eq(state, PROBE_NEXT);
	ck_assert_uint_eq(pieces, PROBE_BYTES_MAX / sizeof(zeros) + 1);
	probe_free(p);
}
END_TEST

START_TEST(hosts_that_are_none)
{
	char text[REQUEST_MAX], longest[REQUEST_MAX];
	size_t i;

	memset(longest, 'h', sizeof(longest));
	for (i = 0; i < PROBE_PATHS; i++) {
		const char *path = probe_paths[i].path;

		ck_assert_uint_eq(response_request(path, longest,
		    sizeof(longest), text, sizeof(text)), 0);
		ck_assert_uint_eq(response_request(path, "a\r\nb", 4, text,
		    sizeof(text)), 0);
		ck_assert_uint_eq(response_request(path, "a b", 3, text,
		    sizeof(text)), 0);
		ck_assert_uint_gt(response_request(path, "[::1]:80", 8, text,
		    sizeof(text)), 0);
	}
}
END_TEST

START_TEST(no_memory)
{
	unsigned long i;

	for (i = 1; i <= 2; i++) {
		alloc_fail_at(i);
		ck_assert_ptr_null(probe_new(0));
	}
	alloc_reset();
	probe_free(NULL);
}
END_TEST

Suite *suite_probe(void);

Suite *
suite_probe(void)
{
	Suite *s = suite_create("probe");
	TCase *t = tcase_create("probe");

	tcase_add_test(t, capacity_in_every_framing);
	tcase_add_test(t, responses_without_a_capacity);
	tcase_add_test(t, head_is_bounded);
	tcase_add_test(t, paths_in_order);
	tcase_add_test(t, engines_without_a_capacity);
	tcase_add_test(t, no_more_is_read_than_needed);
	tcase_add_test(t, responses_without_end_are_left);
	tcase_add_test(t, hosts_that_are_none);
	tcase_add_test(t, no_memory);
	suite_add_tcase(s, t);
	return s;
}
