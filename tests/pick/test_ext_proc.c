/* SPDX-License-Identifier: BSD-2-Clause */
/* test_ext_proc.c - messages of ext_proc: read, and written. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "ext_proc.h"
#include "ext_reply.h"
#include "grpc_frame.h"
#include "fake_stream.h"

static struct hold message;

static struct ext_request
request_of(void)
{
	struct ext_request request;
	struct proto_in in;

	proto_read(&in, message.data, message.length);
	ck_assert(ext_request_read(in, &request));
	return request;
}

START_TEST(headers_with_their_modes)
{
	static const char *const pairs[] = { ":method", "POST", "a", "", "b",
		"1", NULL };
	struct ext_request request;
	struct ext_headers headers;
	struct ext_header h;

	message.length = 0;
	fake_modes(&message, EXT_FULL_DUPLEX, EXT_BUFFERED);
	fake_headers(&message, EXT_REQUEST_HEADERS, true, pairs);
	request = request_of();
	ck_assert_int_eq(request.kind, EXT_REQUEST_HEADERS);
	ck_assert(request.modes);
	ck_assert_uint_eq(request.request_mode, EXT_FULL_DUPLEX);
	ck_assert_uint_eq(request.response_mode, EXT_BUFFERED);
	ck_assert(ext_headers_read(request.part, &headers));
	ck_assert(headers.end);
	ck_assert(ext_headers_next(&headers, &h));
	ck_assert(proto_is(&h.name, ":method") && proto_is(&h.value, "POST"));
	ck_assert(ext_headers_next(&headers, &h));
	ck_assert(proto_is(&h.name, "a") && proto_is(&h.value, ""));
	ck_assert(ext_headers_next(&headers, &h));
	ck_assert(proto_is(&h.value, "1"));
	ck_assert(!ext_headers_next(&headers, &h));
}
END_TEST

/* Old data planes fill `value`, new ones `raw_value`. */
START_TEST(either_value_of_a_header)
{
	static const unsigned char bytes[] = { 0x0a, 0x10, 0x0a, 0x06, 0x0a,
		0x01, 'a', 0x12, 0x01, '1', 0x0a, 0x06, 0x0a, 0x01, 'b', 0x1a,
		0x01, '2' };
	struct ext_headers headers;
	struct ext_header h;
	struct proto_in part;

	proto_read(&part, bytes, sizeof(bytes));
	ck_assert(ext_headers_read(part, &headers));
	ck_assert(ext_headers_next(&headers, &h) && proto_is(&h.value, "1"));
	ck_assert(ext_headers_next(&headers, &h) && proto_is(&h.value, "2"));
	ck_assert(!headers.end);
}
END_TEST

START_TEST(bodies)
{
	struct ext_request request;
	struct ext_body body;

	message.length = 0;
	fake_body(&message, EXT_RESPONSE_BODY, "abc", 3, true);
	request = request_of();
	ck_assert_int_eq(request.kind, EXT_RESPONSE_BODY);
	ck_assert(!request.modes);
	ck_assert(ext_body_read(request.part, &body));
	ck_assert(body.end && proto_is(&body.bytes, "abc"));
	message.length = 0;
	fake_body(&message, EXT_REQUEST_BODY, "", 0, false);
	ck_assert(ext_body_read(request_of().part, &body));
	ck_assert(!body.end && proto_length(&body.bytes) == 0);
}
END_TEST

static char found_texts[256];

static void
note_text(void *context, const char *text, size_t n)
{
	const size_t at = strlen(found_texts);

	(void)context;
	snprintf(found_texts + at, sizeof(found_texts) - at, "<%.*s>", (int)n,
	    text);
}

static void
ck_texts(const char *const *texts, size_t n, bool list, const char *want)
{
	struct proto_in value;

	message.length = 0;
	found_texts[0] = '\0';
	fake_metadata(&message, "other", EXT_SUBSET, texts, 1, false);
	message.length = 0;
	fake_metadata(&message, EXT_SUBSET_SPACE, EXT_SUBSET, texts, n,
	    list);
	ck_assert(ext_metadata(request_of().metadata, EXT_SUBSET_SPACE,
	    EXT_SUBSET, &value));
	ext_value_texts(value, note_text, NULL);
	ck_assert_str_eq(found_texts, want);
}

START_TEST(subsets)
{
	static const char *const text[] = { "a:1,b:2" };
	static const char *const list[] = { "a:1", "b:2", "" };
	struct proto_in value;

	ck_texts(text, 1, false, "<a:1,b:2>");
	ck_texts(list, 3, true, "<a:1><b:2><>");
	ck_texts(list, 0, true, "");
	ck_assert(!ext_metadata(request_of().metadata, EXT_SPACE, EXT_SUBSET,
	    &value));
	ck_assert(!ext_metadata(request_of().metadata, EXT_SUBSET_SPACE,
	    EXT_SERVED, &value));
	memset(&value, 0, sizeof(value));
	ck_assert(!ext_metadata(value, EXT_SPACE, EXT_SUBSET, &value));
}
END_TEST

/* ------------------------------------------------------------- replies --- */

static const unsigned set_headers[] = { 1, 1, 2, 1, 1, 0 };

START_TEST(choice_in_header_and_metadata)
{
	static const unsigned name[] = { 1, 1, 2, 1, 1, 1, 0 };
	static const unsigned value[] = { 1, 1, 2, 1, 1, 3, 0 };
	static const unsigned space[] = { 8, 1, 1, 0 };
	static const unsigned key[] = { 8, 1, 2, 5, 1, 1, 0 };
	static const unsigned list[] = { 8, 1, 2, 5, 1, 2, 3, 0 };
	struct h2_stream s = { .written = 0 };
	struct ext_reply r;
	struct proto_in in, found;

	ext_reply_open(&r, &s.out, EXT_REQUEST_HEADERS);
	ext_reply_set(&r, EXT_DESTINATION, strlen(EXT_DESTINATION), "a:1,b:2",
	    7);
	ext_reply_targets(&r, "a:1,b:2", 7);
	ck_assert(ext_reply_close(&r));
	ck_assert(fake_message(&s, 0, &in));
	found = fake_field(in, name);
	ck_assert(proto_is(&found, EXT_DESTINATION));
	found = fake_field(in, value);
	ck_assert(proto_is(&found, "a:1,b:2"));
	found = fake_field(in, space);
	ck_assert(proto_is(&found, "envoy.lb"));
	found = fake_field(in, key);
	ck_assert(proto_is(&found, EXT_DESTINATION));
	found = fake_field(in, list);
	ck_assert(proto_is(&found, "a:1,b:2"));
	hold_free(&s.out);
}
END_TEST

START_TEST(body_in_place_of_another)
{
	static const unsigned removed[] = { 3, 1, 2, 2, 0 };
	static const unsigned body[] = { 3, 1, 3, 1, 0 };
	struct h2_stream s = { .written = 0 };
	struct ext_reply r;
	struct proto_in in, found;

	ext_reply_open(&r, &s.out, EXT_REQUEST_BODY);
	ext_reply_remove(&r, "content-length", 14);
	ext_reply_body(&r, "new", 3);
	ck_assert(ext_reply_close(&r));
	ck_assert(fake_message(&s, 0, &in));
	found = fake_field(in, removed);
	ck_assert(proto_is(&found, "content-length"));
	found = fake_field(in, body);
	ck_assert(proto_is(&found, "new"));
	ck_assert_ptr_null(fake_field(in, set_headers).at);
	hold_free(&s.out);
}
END_TEST

/* All bytes of a body come in `want` pieces, and the end in the last. */
static void
ck_pieces(size_t n, bool end, unsigned want)
{
	static const unsigned streamed[] = { 4, 1, 3, 3, 0 };
	static char text[3 * EXT_PIECE_MAX];
	struct h2_stream s = { .written = 0 };
	struct proto_in in;
	struct ext_body piece;
	size_t total = 0;
	unsigned i;

	ck_assert(ext_reply_pieces(&s.out, EXT_RESPONSE_BODY, text, n, end));
	for (i = 0; fake_message(&s, i, &in); i++) {
		/* A StreamedBodyResponse has the fields of an HttpBody. */
		ck_assert(ext_body_read(fake_field(in, streamed), &piece));
		total += proto_length(&piece.bytes);
		ck_assert(proto_length(&piece.bytes) <= EXT_PIECE_MAX);
		ck_assert(piece.end == (end && i + 1 == want));
	}
	ck_assert_uint_eq(i, want);
	ck_assert_uint_eq(total, n);
	hold_free(&s.out);
}

START_TEST(pieces_of_a_body)
{
	ck_pieces(0, false, 0);
	ck_pieces(0, true, 1);
	ck_pieces(1, false, 1);
	ck_pieces(127, true, 1);
	ck_pieces(128, true, 1);
	ck_pieces(EXT_PIECE_MAX, true, 1);
	ck_pieces(EXT_PIECE_MAX + 1, true, 2);
	ck_pieces(3 * EXT_PIECE_MAX, false, 3);
}
END_TEST

START_TEST(refusals)
{
	static const unsigned body[] = { 7, 3, 0 };
	static const unsigned last_name[] = { 7, 2, 1, 1, 1, 0 };
	static const unsigned last_value[] = { 7, 2, 1, 1, 3, 0 };
	struct ext_refusal refusal = { 429, 12, "{}", "full" };
	struct h2_stream s = { .written = 0 };
	struct proto_in in, found;

	ck_assert(ext_reply_refuse(&s.out, &refusal));
	ck_assert(fake_message(&s, 0, &in));
	found = fake_field(in, body);
	ck_assert(proto_is(&found, "{}"));
	found = fake_field(in, last_name);
	ck_assert(proto_is(&found, "retry-after"));
	found = fake_field(in, last_value);
	ck_assert(proto_is(&found, "12"));
	refusal.retry_seconds = 0;
	s.out.length = 0;
	ck_assert(ext_reply_refuse(&s.out, &refusal));
	ck_assert(fake_message(&s, 0, &in));
	found = fake_field(in, last_name);
	ck_assert(proto_is(&found, "content-type"));
	hold_free(&s.out);
}
END_TEST

START_TEST(plain_replies)
{
	struct h2_stream s = { .written = 0 };
	struct proto_in in;
	struct proto_field f;
	int kind;

	for (kind = EXT_REQUEST_HEADERS; kind <= EXT_RESPONSE_TRAILERS;
	    kind++) {
		s.out.length = 0;
		ck_assert(ext_reply_plain(&s.out, (enum ext_kind)kind));
		ck_assert(fake_message(&s, 0, &in));
		ck_assert(proto_next(&in, &f));
		ck_assert_uint_eq(f.number,
		    ext_reply_field((enum ext_kind)kind));
		ck_assert_uint_eq(proto_length(&f.in), 0);
		ck_assert(!proto_next(&in, &f));
	}
	hold_free(&s.out);
}
END_TEST

Suite *suite_ext_proc(void);

Suite *
suite_ext_proc(void)
{
	Suite *s = suite_create("ext_proc");
	TCase *c = tcase_create("ext_proc");

	tcase_add_test(c, headers_with_their_modes);
	tcase_add_test(c, either_value_of_a_header);
	tcase_add_test(c, bodies);
	tcase_add_test(c, subsets);
	tcase_add_test(c, choice_in_header_and_metadata);
	tcase_add_test(c, body_in_place_of_another);
	tcase_add_test(c, pieces_of_a_body);
	tcase_add_test(c, refusals);
	tcase_add_test(c, plain_replies);
	suite_add_tcase(s, c);
	return s;
}
