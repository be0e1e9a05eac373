/* SPDX-License-Identifier: BSD-2-Clause */
/* test_grpc_frame.c - messages of gRPC, in pieces of every length. */
#include "test.h"

#include <string.h>

#include "alloc.h"
#include "grpc_frame.h"

enum { MOST = 1000 };

static const char stream[] =
    "\0\0\0\0\3abc" "\0\0\0\0\0" "\0\0\0\0\1d" "\0\0\0\0\12" "0123456789";
static const char *const messages[] = { "abc", "", "d", "0123456789" };

/* Returns how many messages were read; `last` is the result behind them. */
static size_t
read_stream(const char *bytes, size_t n, size_t step, enum grpc_next *last)
{
	struct grpc_reader r = { .most = MOST };
	const unsigned char *at;
	struct proto_in message;
	size_t read = 0, i, length;

	*last = GRPC_MORE;
	for (i = 0; i < n && *last == GRPC_MORE; i += length) {
		length = n - i < step ? n - i : step;
		at = (const unsigned char *)bytes + i;
		size_t left = length;

		while ((*last = grpc_next(&r, &at, &left, &message)) ==
		    GRPC_MESSAGE) {
			if (read < 4)
				ck_assert(proto_is(&message, messages[read]));
			read++;
		}
	}
	grpc_free(&r);
	return read;
}

START_TEST(cut_at_each_byte)
{
	enum grpc_next last;
	size_t step;

	for (step = 1; step <= sizeof(stream); step++) {
		ck_assert_uint_eq(read_stream(stream, sizeof(stream) - 1, step,
		    &last), 4);
		ck_assert_int_eq(last, GRPC_MORE);
	}
}
END_TEST

START_TEST(compressed_messages_are_refused)
{
	enum grpc_next last;
	size_t step;

	for (step = 1; step <= 12; step++) {
		ck_assert_uint_eq(read_stream("\0\0\0\0\3abc\1\0\0\0\0", 13,
		    step, &last), 1);
		ck_assert_int_eq(last, GRPC_COMPRESSED);
	}
}
END_TEST

START_TEST(large_messages_are_refused_by_their_head)
{
	enum grpc_next last;
	size_t step;

	for (step = 1; step <= 5; step++) {
		ck_assert_uint_eq(read_stream("\0\0\0\3\xe9", 5, step, &last),
		    0);
		ck_assert_int_eq(last, GRPC_TOO_LARGE);
		ck_assert_uint_eq(read_stream("\0\0\0\3\xe8", 5, step, &last),
		    0);
		ck_assert_int_eq(last, GRPC_MORE);
		ck_assert_uint_eq(read_stream("\0\xff\xff\xff\xff", 5, step,
		    &last), 0);
		ck_assert_int_eq(last, GRPC_TOO_LARGE);
	}
}
END_TEST

START_TEST(frames_that_are_written)
{
	struct hold hold = { 0 };
	struct proto_out out = { &hold, false };
	size_t at, i;

	for (i = 0; i < 4; i++) {
		at = grpc_open(&out);
		proto_put_raw(&out, messages[i], strlen(messages[i]));
		grpc_close(&out, at);
	}
	ck_assert(!out.failed);
	ck_assert_uint_eq(hold.length, sizeof(stream) - 1);
	ck_assert_mem_eq(hold.data, stream, hold.length);
	hold_free(&hold);
}
END_TEST

START_TEST(without_memory)
{
	enum grpc_next last;

	alloc_fail_from(1);
	ck_assert_uint_eq(read_stream(stream, sizeof(stream) - 1, 3, &last),
	    0);
	ck_assert_int_eq(last, GRPC_NO_MEMORY);
	alloc_reset();
}
END_TEST

Suite *suite_grpc_frame(void);

Suite *
suite_grpc_frame(void)
{
	Suite *s = suite_create("grpc_frame");
	TCase *c = tcase_create("grpc_frame");

	tcase_add_test(c, cut_at_each_byte);
	tcase_add_test(c, compressed_messages_are_refused);
	tcase_add_test(c, large_messages_are_refused_by_their_head);
	tcase_add_test(c, frames_that_are_written);
	tcase_add_test(c, without_memory);
	suite_add_tcase(s, c);
	return s;
}
