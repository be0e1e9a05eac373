/* SPDX-License-Identifier: BSD-2-Clause */
/* test_metric_writer.c - names, labels and numbers for Prometheus. */
#include "test.h"

#include "metric_writer.h"
#include "sink.h"

static struct sink sink;
static struct metrics m;

static void
setup(void)
{
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	m = (struct metrics){ .to = &sink.writer, .prefix = "test" };
}

static void
ck_text(const char *text)
{
	ck_assert(!sink.writer.failed);
	ck_assert_str_eq(sink.text, text);
	setup();
}

START_TEST(heads)
{
	metric_head(&m, &(struct metric){ "group", "name", "_total" }, "Help.");
	ck_text("# HELP kvroute_test_group_name_total Help.\n"
	    "# TYPE kvroute_test_group_name_total counter\n");
	metric_head(&m, &(struct metric){ .name = "lost_total" }, NULL);
	ck_text("# TYPE kvroute_test_lost_total counter\n");
	metric_head(&m, &(struct metric){ .name = "total" }, NULL);
	ck_text("# TYPE kvroute_test_total gauge\n");
	metric_head_histogram(&m, &(struct metric){ NULL, "a", "_seconds" },
	    NULL);
	ck_text("# TYPE kvroute_test_a_seconds histogram\n");
}
END_TEST

START_TEST(labels)
{
	const struct metric name = { .name = "a" };

	metric_begin(&m, &name);
	metric_whole(&m, UINT64_MAX);
	ck_text("kvroute_test_a 18446744073709551615\n");
	metric_begin(&m, &name);
	metric_label(&m, "b", "x\"\\\xff\0\ny", 7);
	metric_label_text(&m, "d", "");
	metric_label_whole(&m, "e", 7);
	metric_label_seconds(&m, "f", 1500000000);
	metric_whole(&m, 0);
	ck_text("kvroute_test_a{b=\"x\\\"\\\\???y\",d=\"\",e=\"7\","
	    "f=\"1.5\"} 0\n");
}
END_TEST

/* Two names are two labels; a reader refuses all samples if one is no UTF-8. */
START_TEST(labels_in_utf8)
{
	static const char *const bad[] = { "\xff", "\xc3", "\xc3(", "\xc0\xaf",
	    "\xe0\x80\xaf", "\xed\xa0\x80", "\xf0\x80\x80\x80",
	    "\xf4\x90\x80\x80", "\xe2\x82" };
	static const char *const good[] = { "\xc3\xa4", "\xe2\x82\xac",
	    "\xf0\x9f\x98\x80", "" };
	size_t i;

	metric_label_text(&m, "a", "M\xc3\xbcller");
	metric_label_text(&m, "b", "M\xfcller\x7f");
	metric_whole(&m, 0);
	ck_text("{a=\"M\xc3\xbcller\",b=\"M?ller?\"} 0\n");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert(!text_is_utf8(bad[i], strlen(bad[i])));
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert(text_is_utf8(good[i], strlen(good[i])));
}
END_TEST

START_TEST(reals)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = { { 0, " 0.000\n" }, { 0.0625, " 0.063\n" },
	    { 12.9996, " 13.000\n" }, { -1.5, " -1.500\n" },
	    { 1e6, " 1000000.000\n" } };
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		metric_real(&m, rows[i].value);
		ck_text(rows[i].text);
	}
}
END_TEST

START_TEST(seconds)
{
	metric_seconds(&m, 1234567890, 3);
	ck_text(" 1.234\n");
	metric_seconds(&m, 5000, 6);
	ck_text(" 0.000005\n");
	metric_seconds(&m, 2000000000, 3);
	ck_text(" 2.000\n");
	metric_seconds(&m, 2000000000, 0);
	ck_text(" 2\n");
	metric_seconds(&m, 12345678901, 0);
	ck_text(" 12.345678901\n");
	metric_seconds(&m, 1000, 0);
	ck_text(" 0.000001\n");
}
END_TEST

Suite *suite_metric_writer(void);

Suite *
suite_metric_writer(void)
{
	Suite *s = suite_create("metric_writer");
	TCase *c = tcase_create("metric_writer");

	tcase_add_checked_fixture(c, setup, NULL);
	tcase_add_test(c, heads);
	tcase_add_test(c, labels);
	tcase_add_test(c, labels_in_utf8);
	tcase_add_test(c, reals);
	tcase_add_test(c, seconds);
	suite_add_tcase(s, c);
	return s;
}
