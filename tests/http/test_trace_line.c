/* SPDX-License-Identifier: BSD-2-Clause */
/* test_trace_line.c - lines for kvroute-replay(1). */
#include "life_bed.h"

#include <stdio.h>
#include <stdlib.h>

#include <json-c/json.h>

#include "alloc.h"
#include "trace_line.h"

static struct life b;
static struct trace_line t;
static struct kvr_decision d;
static struct kvr_report report;
static struct kvr_prompt *p;

static void
setup(void)
{
	life_begin(&b);
	memset(&t, 0, sizeof(t));
	memset(&report, 0, sizeof(report));
	p = life_prompt(&b, 'x');
	(void)life_lease(&b, p, &d);
}

static void
teardown(void)
{
	alloc_reset();
	trace_line_leave(&t);
	spare_prompt_back(&b.spares, p);
	life_end(&b);
}

/* With blocks so large that each has an id. */
static void
keep(uint64_t opening, uint32_t sample)
{
	trace_line_keep(&t, p, &d, opening, 2048, sample);
}

static json_object *
written(const char *name, int64_t rank)
{
	size_t n = 0;
	char *text = trace_line_write(&t, &d, &report, name, strlen(name),
	    rank, &n);
	json_object *line;

	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(n, strlen(text));
	ck_assert_int_eq(text[n - 1], '\n');
	line = json_tokener_parse(text);
	ck_assert_ptr_nonnull(line);
	free(text);
	return line;
}

static json_object *
member(json_object *line, const char *name)
{
	json_object *value = NULL;

	(void)json_object_object_get_ex(line, name, &value);
	return value;
}

START_TEST(a_line_has_the_prompt_and_the_report)
{
	json_object *line;
	size_t n;

	report.kind = KVR_REPORT_VALUE;
	report.prompt_tokens = 790;
	report.cached_tokens = 512;
	report.completion_tokens = 64;
	keep(0, TRACE_ALL);
	line = written("10.0.0.1:8000", 3);
	ck_assert_int_eq(json_object_get_int64(member(line, "input_length")),
	    (int64_t)d.prompt_tokens);
	ck_assert_int_eq(json_object_get_int64(member(line, "output_length")),
	    64);
	ck_assert_int_eq(json_object_get_int64(member(line, "prompt_tokens")),
	    790);
	ck_assert_int_eq(json_object_get_int64(member(line, "cached_tokens")),
	    512);
	ck_assert_str_eq(json_object_get_string(member(line, "worker")),
	    "10.0.0.1:8000@3");
	ck_assert_int_ge(json_object_get_int64(member(line, "ms")), 0);
	ck_assert_uint_eq(json_object_array_length(member(line, "hash_ids")),
	    LIFE_BLOCKS);
	json_object_put(line);
	/* There is one line. */
	ck_assert_ptr_null(trace_line_write(&t, &d, &report, "a", 1, -1, &n));
}
END_TEST

START_TEST(ids_are_of_all_that_precedes_them)
{
	json_object *line, *ids;
	uint64_t local, sequence;
	size_t i;

	/* 2 kB of small blocks have an id, and the rest of the prompt has. */
	trace_line_keep(&t, p, &d, 0, 64, TRACE_ALL);
	line = written("a", -1);
	ids = member(line, "hash_ids");
	ck_assert_uint_eq(json_object_array_length(ids), 2);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(kvr_prompt_hash(p, i == 0 ? 31 :
		    LIFE_BLOCKS - 1, &local, &sequence), KVR_OK);
		ck_assert_int_eq(json_object_get_int64(
		    json_object_array_get_idx(ids, i)),
		    (int64_t)(sequence >> 11));
	}
	json_object_put(line);
}
END_TEST

START_TEST(members_that_are_not_known_are_left_out)
{
	json_object *line;

	keep(0, TRACE_ALL);
	line = written("a", -1);
	ck_assert_ptr_null(member(line, "prompt_tokens"));
	ck_assert_ptr_null(member(line, "cached_tokens"));
	json_object_put(line);
	keep(0, TRACE_ALL);
	report.kind = KVR_REPORT_VALUE - 1;
	ck_assert_uint_ne(report.kind, KVR_REPORT_NONE);
	line = written("a", -1);
	ck_assert_ptr_nonnull(member(line, "prompt_tokens"));
	ck_assert_ptr_null(member(line, "cached_tokens"));
	json_object_put(line);
}
END_TEST

START_TEST(names_of_any_bytes_are_valid)
{
	json_object *line;

	keep(0, TRACE_ALL);
	line = written("a\"\\\n\x80:1", -1);
	ck_assert_str_eq(json_object_get_string(member(line, "worker")),
	    "a????:1");
	json_object_put(line);
}
END_TEST

/* A share of the families, and each whole. */
START_TEST(families_are_drawn)
{
	const uint64_t opening = 2048 * 4;
	unsigned i, drawn = 0;
	bool is_drawn;

	for (i = 0; i < 26; i++) {
		struct kvr_prompt *one = life_prompt(&b, (char)('a' + i));

		trace_line_keep(&t, one, &d, opening, 2048, TRACE_ALL / 2);
		is_drawn = t.ids != NULL;
		drawn += is_drawn;
		trace_line_leave(&t);
		trace_line_keep(&t, one, &d, opening, 2048, TRACE_ALL / 2);
		ck_assert_int_eq(t.ids != NULL, is_drawn);
		trace_line_leave(&t);
		spare_prompt_back(&b.spares, one);
	}
	ck_assert_uint_gt(drawn, 2);
	ck_assert_uint_lt(drawn, 24);
	keep(0, 0);
	ck_assert_ptr_null(t.ids);
}
END_TEST

START_TEST(nothing_of_a_prompt_without_a_block)
{
	size_t n;

	d.prompt_blocks = 0;
	keep(0, TRACE_ALL);
	ck_assert_ptr_null(trace_line_write(&t, &d, &report, "a", 1, -1, &n));
}
END_TEST

START_TEST(without_memory_there_is_no_line)
{
	json_object *line;
	size_t n;

	alloc_fail_from(1);
	keep(0, TRACE_ALL);
	ck_assert_ptr_null(t.ids);
	alloc_reset();
	keep(0, TRACE_ALL);
	alloc_fail_from(1);
	ck_assert_ptr_null(trace_line_write(&t, &d, &report, "a", 1, -1, &n));
	alloc_reset();
	line = written("a", -1);
	json_object_put(line);
}
END_TEST

/* A retry has another decision, and the ids of the first try. */
START_TEST(the_first_try_counts)
{
	uint64_t *ids;

	keep(0, TRACE_ALL);
	ids = t.ids;
	keep(0, TRACE_ALL);
	ck_assert_ptr_eq(t.ids, ids);
}
END_TEST

Suite *suite_trace_line(void);

Suite *
suite_trace_line(void)
{
	Suite *s = suite_create("trace_line");
	TCase *c = tcase_create("trace_line");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_line_has_the_prompt_and_the_report);
	tcase_add_test(c, ids_are_of_all_that_precedes_them);
	tcase_add_test(c, members_that_are_not_known_are_left_out);
	tcase_add_test(c, names_of_any_bytes_are_valid);
	tcase_add_test(c, families_are_drawn);
	tcase_add_test(c, nothing_of_a_prompt_without_a_block);
	tcase_add_test(c, without_memory_there_is_no_line);
	tcase_add_test(c, the_first_try_counts);
	suite_add_tcase(s, c);
	return s;
}
