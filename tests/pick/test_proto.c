/* SPDX-License-Identifier: BSD-2-Clause */
/* test_proto.c - fields of protobuf messages, whole, cut and malformed. */
#include "test.h"

#include <string.h>

#include "alloc.h"
#include "proto.h"

static struct proto_in
in_of(const void *bytes, size_t n)
{
	struct proto_in in;

	proto_read(&in, bytes, n);
	return in;
}

START_TEST(values_of_each_type)
{
	static const unsigned char bytes[] = { 0x08, 0x96, 0x01, 0x12, 0x02,
		'o', 'k', 0x19, 1, 2, 3, 4, 5, 6, 7, 8, 0x25, 1, 2, 3, 4, 0x28,
		0x01 };
	struct proto_in in = in_of(bytes, sizeof(bytes));
	struct proto_field f;

	ck_assert(proto_next(&in, &f));
	ck_assert_uint_eq(f.number, 1);
	ck_assert_uint_eq(f.value, 150);
	ck_assert_ptr_null(f.in.at);
	ck_assert(proto_next(&in, &f));
	ck_assert_uint_eq(f.number, 2);
	ck_assert(proto_is(&f.in, "ok"));
	ck_assert(!proto_is(&f.in, "o"));
	ck_assert(proto_next(&in, &f));
	ck_assert_uint_eq(f.number, 3);
	ck_assert(proto_next(&in, &f));
	ck_assert_uint_eq(f.number, 4);
	ck_assert(proto_next(&in, &f));
	ck_assert_uint_eq(f.number, 5);
	ck_assert_uint_eq(f.value, 1);
	ck_assert(!proto_next(&in, &f));
	ck_assert(!in.bad);
}
END_TEST

static void
ck_bad(const void *bytes, size_t n)
{
	struct proto_in in = in_of(bytes, n);
	struct proto_field f;

	while (proto_next(&in, &f))
		;
	ck_assert(in.bad);
	ck_assert(!proto_next(&in, &f));
}

START_TEST(malformed_fields)
{
	ck_bad("\x08", 1);                /* no value */
	ck_bad("\x08\x80", 2);            /* it has no end */
	ck_bad("\x12\x05" "abcd", 6);     /* longer than the message */
	ck_bad("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
	ck_bad("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11);
	ck_bad("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);
	ck_bad("\x00\x01", 2);            /* field 0 */
	ck_bad("\x0b", 1);                /* a group */
	ck_bad("\x0f", 1);                /* no type */
	ck_bad("\x09" "1234567", 8);
	ck_bad("\x0d" "123", 4);
	ck_bad("\x88\x80\x80\x80\x80\x01\x01", 7); /* a field beyond 2^29 */
}
END_TEST

START_TEST(largest_number)
{
	struct proto_in in = in_of(
	    "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
	struct proto_field f;

	ck_assert(proto_next(&in, &f));
	ck_assert_uint_eq(f.value, UINT64_MAX);
}
END_TEST

START_TEST(empty_message)
{
	struct proto_in in = in_of(NULL, 0);
	struct proto_field f;

	ck_assert(!proto_next(&in, &f));
	ck_assert(!in.bad);
	ck_assert_uint_eq(proto_length(&in), 0);
}
END_TEST

/* Lengths of messages have one byte, or more. */
START_TEST(written_messages_are_read)
{
	static const size_t lengths[] = { 0, 1, 120, 127, 128, 129, 16383,
		16384, 70000 };
	static char text[70000];
	struct hold hold = { 0 };
	struct proto_out out = { &hold, false };
	struct proto_field f;
	struct proto_in in;
	size_t i, outer, inner;

	memset(text, 'x', sizeof(text));
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		hold.length = 0;
		proto_put_number(&out, 1, i);
		outer = proto_open(&out, 100);
		inner = proto_open(&out, 2);
		proto_put_bytes(&out, 3, text, lengths[i]);
		proto_close(&out, inner);
		proto_close(&out, outer);
		ck_assert(!out.failed);
		in = in_of(hold.data, hold.length);
		ck_assert(proto_next(&in, &f) && f.value == i);
		ck_assert(proto_next(&in, &f) && f.number == 100);
		ck_assert(in.at == in.end);
		in = f.in;
		ck_assert(proto_next(&in, &f) && f.number == 2);
		in = f.in;
		ck_assert(proto_next(&in, &f) && f.number == 3);
		ck_assert_uint_eq(proto_length(&f.in), lengths[i]);
	}
	hold_free(&hold);
}
END_TEST

START_TEST(heads_have_the_length_that_is_promised)
{
	static const size_t lengths[] = { 0, 127, 128, 16384, 1 << 21 };
	struct hold hold = { 0 };
	struct proto_out out = { &hold, false };
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		hold.length = 0;
		proto_put_head(&out, 17, lengths[i]);
		ck_assert_uint_eq(hold.length,
		    proto_head_length(17, lengths[i]));
	}
	hold_free(&hold);
}
END_TEST

START_TEST(without_memory)
{
	struct hold hold = { 0 };
	struct proto_out out = { &hold, false };
	unsigned long fail;
	size_t at;

	for (fail = 1; fail < 3; fail++) {
		hold_free(&hold);
		out.failed = false;
		alloc_fail_at(fail);
		at = proto_open(&out, 1);
		proto_put_bytes(&out, 2, "abc", 3);
		while (hold.length < 600 && !out.failed)
			proto_put_number(&out, 3, 7);
		proto_close(&out, at);
		alloc_reset();
		ck_assert(out.failed);
	}
	hold_free(&hold);
}
END_TEST

Suite *suite_proto(void);

Suite *
suite_proto(void)
{
	Suite *s = suite_create("proto");
	TCase *c = tcase_create("proto");

	tcase_add_test(c, values_of_each_type);
	tcase_add_test(c, malformed_fields);
	tcase_add_test(c, largest_number);
	tcase_add_test(c, empty_message);
	tcase_add_test(c, written_messages_are_read);
	tcase_add_test(c, heads_have_the_length_that_is_promised);
	tcase_add_test(c, without_memory);
	suite_add_tcase(s, c);
	return s;
}
