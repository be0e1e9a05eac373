/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_json_writer.c - JSON into a writer, and the writer: numbers, text that
 * is escaped or is not UTF-8, incomplete values, no room, no memory.
 */
#include "test.h"

#include <math.h>
#include <string.h>

#include "json_writer.h"
#include "sink.h"

static struct sink sink;
static struct json json;

static void
begin(void)
{
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	json_begin(&json, &sink.writer);
}

/* Compares the value in [value] and newline. */
static void
ck_value(const char *want)
{
	json_list_end(&json);
	json_end(&json);
	ck_assert(!sink.writer.failed);
	ck_assert_uint_eq(sink.held, 0);
	ck_assert_uint_gt(sink.length, 3);
	ck_assert_str_eq(&sink.text[sink.length - 2], "]\n");
	sink.text[sink.length - 2] = '\0';
	ck_assert_str_eq(sink.text + 1, want);
}

static void
ck_whole(uint64_t value, const char *want)
{
	begin();
	json_list(&json, NULL);
	json_whole(&json, NULL, value);
	ck_value(want);
}

START_TEST(whole_numbers)
{
	ck_whole(0, "0");
	ck_whole(9, "9");
	ck_whole(10, "10");
	ck_whole(UINT64_MAX, "18446744073709551615");
	sink_begin(&sink, SINK_BYTES, 0);
	writer_number(&sink.writer, 0);
	writer_number(&sink.writer, 100);
	writer_number(&sink.writer, UINT64_MAX);
	ck_assert_str_eq(sink.text, "010018446744073709551615");
}
END_TEST

static void
ck_real(double value, const char *want)
{
	begin();
	json_list(&json, NULL);
	json_real(&json, NULL, value);
	ck_value(want);
}

START_TEST(real_numbers)
{
	ck_real(0, "0.000000");
	ck_real(-0.0, "0.000000");
	ck_real(1, "1.000000");
	ck_real(-1.5, "-1.500000");
	ck_real(0.000001, "0.000001");
	ck_real(0.0000004, "0.000000");
	ck_real(0.9999996, "1.000000");
	ck_real(1234.5678, "1234.567800");
	ck_real(9e17, "900000000000000000.000000");
	ck_real(-9e17, "-900000000000000000.000000");
	ck_real(1e18, "null");
	ck_real(-1e18, "null");
	ck_real((double)INFINITY, "null");
	ck_real((double)NAN, "null");
}
END_TEST

static void
ck_bytes(const char *bytes, size_t n, const char *want)
{
	begin();
	json_list(&json, NULL);
	json_bytes(&json, NULL, bytes, n);
	ck_value(want);
}

START_TEST(text)
{
	ck_bytes("", 0, "\"\"");
	ck_bytes("a/b", 3, "\"a/b\"");
	ck_bytes("\"\\\n\t\001", 5, "\"\\\"\\\\\\n\\t\\u0001\"");
	ck_bytes("a\0b", 3, "\"a\\u0000b\"");
	ck_bytes("\b\f\r\037\177", 5, "\"\\b\\f\\r\\u001F\177\"");
	ck_bytes("\xc3\xa4\xe2\x82\xac", 5, "\"\xc3\xa4\xe2\x82\xac\"");
}
END_TEST

START_TEST(text_that_is_not_utf8)
{
	ck_bytes("\xff", 1, "\"?\"");
	ck_bytes("a\xc3", 2, "\"a?\"");
	ck_bytes("\"\x80\n\xc3\xa4", 5, "\"\\\"?\\n??\"");
}
END_TEST

static void
write_all(struct sink *s)
{
	json_begin(&json, &s->writer);
	json_map(&json, NULL);
	json_text(&json, "text", "a");
	json_bytes(&json, "bytes", "\xff", 1);
	json_null(&json, "null");
	json_bool(&json, "true", true);
	json_list(&json, "list");
	json_bool(&json, NULL, false);
	json_real(&json, NULL, 0.5);
	json_list_end(&json);
	json_map(&json, "map");
	json_whole(&json, "n", 12);
	json_map_end(&json);
	json_map_end(&json);
	json_end(&json);
}

START_TEST(all_kinds)
{
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	write_all(&sink);
	ck_assert(!sink.writer.failed);
	ck_assert_str_eq(sink.text, "{\"text\":\"a\",\"bytes\":\"?\","
	    "\"null\":null,\"true\":true,\"list\":[false,0.500000],"
	    "\"map\":{\"n\":12}}\n");
}
END_TEST

/* The room shrinks by each byte: the text is cut, and then left alone. */
START_TEST(no_room)
{
	static struct sink whole;
	size_t room, writes;

	sink_begin(&whole, SINK_BYTES, SIZE_MAX);
	write_all(&whole);
	for (room = 0; room < whole.length; room++) {
		sink_begin(&sink, room, SIZE_MAX);
		write_all(&sink);
		ck_assert(sink.writer.failed);
		ck_assert_uint_eq(sink.held, 0);
		ck_assert_int_eq(memcmp(sink.text, whole.text, sink.length),
		    0);
		writes = sink.writes;
		writer_text(&sink.writer, "more");
		ck_assert_uint_eq(sink.writes, writes);
	}
}
END_TEST

/* JSON needs none. */
START_TEST(no_memory)
{
	sink_begin(&sink, SINK_BYTES, 0);
	write_all(&sink);
	ck_assert(!sink.writer.failed);
	ck_assert_ptr_null(writer_alloc(&sink.writer, 1));
	writer_free(&sink.writer, NULL);
	ck_assert_uint_eq(sink.held, 0);
}
END_TEST

START_TEST(missing_key_or_end)
{
	begin();
	json_map(&json, NULL);
	json_whole(&json, NULL, 1);
	ck_assert(sink.writer.failed);
	begin();
	json_map(&json, NULL);
	json_end(&json);
	ck_assert(sink.writer.failed);
	begin();
	json_end(&json);
	ck_assert(sink.writer.failed);
}
END_TEST

/* A key in an array, a wrong end and a second text are errors. */
START_TEST(what_has_no_place)
{
	size_t i;

	begin();
	json_list(&json, NULL);
	json_null(&json, "key");
	ck_assert(sink.writer.failed);
	begin();
	json_list(&json, NULL);
	json_map_end(&json);
	ck_assert(sink.writer.failed);
	begin();
	json_list_end(&json);
	ck_assert(sink.writer.failed);
	begin();
	json_null(&json, NULL);
	json_null(&json, NULL);
	ck_assert(sink.writer.failed);
	begin();
	for (i = 0; i <= JSON_NESTED; i++) {
		ck_assert(!sink.writer.failed);
		json_list(&json, NULL);
	}
	ck_assert(sink.writer.failed);
}
END_TEST

Suite *suite_json_writer(void);

Suite *
suite_json_writer(void)
{
	Suite *s = suite_create("json_writer");
	TCase *c = tcase_create("json_writer");

	tcase_add_test(c, whole_numbers);
	tcase_add_test(c, real_numbers);
	tcase_add_test(c, text);
	tcase_add_test(c, text_that_is_not_utf8);
	tcase_add_test(c, all_kinds);
	tcase_add_test(c, no_room);
	tcase_add_test(c, no_memory);
	tcase_add_test(c, missing_key_or_end);
	tcase_add_test(c, what_has_no_place);
	suite_add_tcase(s, c);
	return s;
}
