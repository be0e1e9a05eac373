/* SPDX-License-Identifier: BSD-2-Clause */
/* test_histogram.c - bounds, buckets, quantiles; as JSON and for Prometheus. */
#include "test.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>

#include "fleet.h"

START_TEST(bounds_ascend)
{
	size_t kind, i;

	for (kind = 0; kind < HISTOGRAMS; kind++) {
		const struct histogram_form *f = &histogram_forms[kind];

		ck_assert_uint_gt(f->bounds, 10);
		ck_assert_uint_lt(f->bounds, HISTOGRAM_BUCKETS);
		ck_assert_uint_gt(f->bound[0], 0);
		for (i = 1; i < f->bounds; i++)
			ck_assert_uint_gt(f->bound[i], f->bound[i - 1]);
		ck_assert_ptr_null(strchr(f->help, '\n'));
		ck_assert_uint_eq(strspn(f->name,
		    "abcdefghijklmnopqrstuvwxyz_"), strlen(f->name));
	}
}
END_TEST

/* A bucket holds times up to its bound, and the last one the rest. */
START_TEST(each_time_has_a_bucket)
{
	size_t kind, i;

	for (kind = 0; kind < HISTOGRAMS; kind++) {
		const struct histogram_form *f = &histogram_forms[kind];
		enum histogram_kind k = (enum histogram_kind)kind;

		ck_assert_uint_eq(histogram_bucket(k, 0), 0);
		for (i = 0; i < f->bounds; i++) {
			ck_assert_uint_eq(histogram_bucket(k, f->bound[i]), i);
			ck_assert_uint_eq(histogram_bucket(k,
			    f->bound[i] + 1), i + 1);
		}
		ck_assert_uint_eq(histogram_bucket(k, UINT64_MAX), f->bounds);
	}
}
END_TEST

static struct histogram h;

static double
quantile(double share)
{
	return histogram_quantile(HISTOGRAM_FIRST, &h, share);
}

START_TEST(quantiles_by_hand)
{
	memset(&h, 0, sizeof(h));
	ck_assert(quantile(0.5) == 0);
	h.count[0] = 10; /* up to 1 ms */
	ck_assert_double_eq_tol(quantile(0.5), 0.0005, 1e-12);
	ck_assert_double_eq_tol(quantile(1), 0.001, 1e-12);
	h.count[2] = 20; /* 2 to 5 ms */
	h.count[3] = 10; /* 5 to 10 ms */
	ck_assert_uint_eq(histogram_count(&h), 40);
	ck_assert_double_eq_tol(quantile(0.25), 0.001, 1e-12);
	ck_assert_double_eq_tol(quantile(0.5), 0.0035, 1e-12);
	ck_assert_double_eq_tol(quantile(0.75), 0.005, 1e-12);
	ck_assert_double_eq_tol(quantile(0.9), 0.008, 1e-12);
	/* above all bounds: the last of them */
	h.count[16] = 1000;
	ck_assert_double_eq_tol(quantile(0.9), 100, 1e-9);
	memset(&h, 0, sizeof(h));
	h.count[16] = 1;
	ck_assert_double_eq_tol(quantile(0.5), 100, 1e-9);
}
END_TEST

/* ------------------------------------------------------------- reports --- */

static void
metrics(void)
{
	status_metrics(&fleet_status, &sink.writer);
}

static void
json(void)
{
	status_json(&fleet_status, &sink.writer);
}

static void
has(const char *text)
{
	ck_assert_msg(strstr(sink.text, text) != NULL, "no %s in\n%s", text,
	    sink.text);
}

#define TTFT "\nkvroute_proxy_time_to_first_token_seconds"
#define UP "upstream=\"a\\\"b\\\\\""

/* Buckets add up, +Inf is the count, and the sum is in seconds. */
START_TEST(for_prometheus)
{
	struct histogram *t = &counted.histogram[HISTOGRAM_FIRST];

	memset(t, 0, sizeof(*t));
	t->count[0] = 1;
	t->count[8] = 2;
	t->count[15] = 3;
	t->count[16] = 4;
	t->sum = UINT64_C(1002003000004);
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	metrics();
	ck_assert(!sink.writer.failed);
	has("# TYPE kvroute_proxy_time_to_first_token_seconds histogram\n");
	has(TTFT "_bucket{" UP ",le=\"0.001\"} 1\n");
	has(TTFT "_bucket{" UP ",le=\"0.2\"} 1\n");
	has(TTFT "_bucket{" UP ",le=\"0.5\"} 3\n");
	has(TTFT "_bucket{" UP ",le=\"50\"} 3\n");
	has(TTFT "_bucket{" UP ",le=\"100\"} 6\n");
	has(TTFT "_bucket{" UP ",le=\"+Inf\"} 10\n");
	has(TTFT "_sum{" UP "} 1002.003000004\n");
	has(TTFT "_count{" UP "} 10\n");
	has("\nkvroute_proxy_module_seconds_bucket{" UP ",le=\"0.000002\"} ");
	/* upstreams without counters have none */
	ck_assert_ptr_null(strstr(sink.text, "_bucket{upstream=\"none\""));
}
END_TEST

static double
number(struct json_object *of, const char *name, const char *member)
{
	struct json_object *at;

	ck_assert(json_object_object_get_ex(of, "upstreams", &at));
	at = json_object_array_get_idx(at, 0);
	ck_assert(json_object_object_get_ex(at, "times", &at));
	ck_assert(json_object_object_get_ex(at, name, &at));
	ck_assert(json_object_object_get_ex(at, member, &at));
	return json_object_get_double(at);
}

START_TEST(as_json)
{
	struct histogram *t = &counted.histogram[HISTOGRAM_TOKEN];
	struct json_object *o;

	memset(t, 0, sizeof(*t));
	t->count[6] = 100; /* 10 to 15 ms */
	t->sum = 1250000000;
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	json();
	o = json_tokener_parse(sink.text);
	ck_assert_ptr_nonnull(o);
	ck_assert(number(o, "time_per_output_token", "count") == 100);
	ck_assert(number(o, "time_per_output_token", "sum") == 1.25);
	ck_assert_double_eq_tol(number(o, "time_per_output_token", "p50"),
	    0.0125, 1e-6);
	ck_assert_double_eq_tol(number(o, "time_per_output_token", "p90"),
	    0.0145, 1e-6);
	ck_assert_double_eq_tol(number(o, "time_per_output_token", "p99"),
	    0.01495, 1e-6);
	(void)number(o, "turn", "p99");
	json_object_put(o);
}
END_TEST

Suite *suite_histogram(void);

Suite *
suite_histogram(void)
{
	Suite *s = suite_create("histogram");
	TCase *c = tcase_create("times");

	tcase_add_test(c, bounds_ascend);
	tcase_add_test(c, each_time_has_a_bucket);
	tcase_add_test(c, quantiles_by_hand);
	suite_add_tcase(s, c);
	c = tcase_create("reports");
	tcase_add_checked_fixture(c, fleet_setup, fleet_teardown);
	tcase_add_test(c, for_prometheus);
	tcase_add_test(c, as_json);
	suite_add_tcase(s, c);
	return s;
}
