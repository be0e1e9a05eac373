/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_status_metrics.c - text for Prometheus: the rules of the format, the
 * samples of several upstreams together, labels, counters.
 */
#include "test.h"

#include <inttypes.h>
#include <stdio.h>

#include "fleet.h"

static void
report(void)
{
	status_metrics(&fleet_status, &sink.writer);
}

static void
take(void)
{
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	report();
	ck_assert(!sink.writer.failed);
	ck_assert_uint_eq(sink.held, 0);
}

/* Counts the lines that begin with this. */
static size_t
lines_with(const char *text)
{
	const char *at = sink.text;
	size_t n = 0;

	for (; *at != '\0'; at += strcspn(at, "\n") + 1)
		n += strncmp(at, text, strlen(text)) == 0;
	return n;
}

static void
ck_line(const char *line)
{
	ck_assert_msg(lines_with(line) == 1, "no line: %s", line);
}

#define A "{upstream=\"a\\\"b\\\\\""

/* --------------------------------------------------------- the format --- */

enum { NAME = 128, SAMPLE = 512 };

/* NAME{upstream="...; of a histogram NAME_bucket{..., and so on. */
static void
ck_sample(const char *at, const char *name, bool histogram)
{
	static const char *const ends[] = { "_bucket", "_sum", "_count" };
	char head[2 * NAME];
	size_t i, found = 0;

	for (i = 0; i < 3; i++) {
		snprintf(head, sizeof(head), "%s%s{upstream=\"", name,
		    histogram ? ends[i] : "");
		found += strncmp(at, head, strlen(head)) == 0;
	}
	ck_assert_msg(found > 0, "%s before: %.80s", name, at);
}

/* HELP and TYPE once, before all samples; each with an upstream, then more. */
static void
ck_metric(const char **at)
{
	char head[2 * NAME], name[NAME], kind[16];
	int read = 0;

	ck_assert_int_eq(sscanf(*at, "# HELP %127[a-z_] %*[^\n]\n%n", name,
	    &read), 1);
	ck_assert_int_gt(read, 0);
	*at += read;
	snprintf(head, sizeof(head), "# HELP %s ", name);
	ck_line(head);
	snprintf(head, sizeof(head), "# TYPE %s %%15[a-z]\n%%n", name);
	ck_assert_int_eq(sscanf(*at, head, kind, &read), 1);
	*at += read;
	ck_assert_int_eq(strcmp(kind, "counter") == 0,
	    strcmp(name + strlen(name) - 6, "_total") == 0);
	while (**at != '\0' && **at != '#') {
		ck_sample(*at, name, strcmp(kind, "histogram") == 0);
		*at += strcspn(*at, "\n") + 1;
	}
}

START_TEST(samples_of_a_metric_are_together)
{
	const char *at = sink.text;
	size_t metrics = 0;

	take();
	for (; *at != '\0'; metrics++)
		ck_metric(&at);
	ck_assert_uint_gt(metrics, counters_shown + 2 + HISTOGRAMS + 50);
}
END_TEST

START_TEST(no_sample_twice)
{
	const char *at = sink.text;
	char sample[SAMPLE];
	size_t n;

	take();
	for (; *at != '\0'; at += strcspn(at, "\n") + 1) {
		n = strcspn(at, " ") + 1;
		ck_assert_uint_lt(n, SAMPLE);
		memcpy(sample, at, n);
		sample[n] = '\0';
		if (*at != '#')
			ck_line(sample);
	}
}
END_TEST

/* ----------------------------------------------------------- contents --- */

START_TEST(samples_of_each_index)
{
	take();
	ck_line("kvroute_held_blocks" A "} 4\n");
	ck_line("kvroute_held_blocks{upstream=\"c\"} 0\n");
	ck_assert_uint_eq(lines_with("kvroute_held_blocks{"), 2);
	ck_line("kvroute_worker_held_blocks" A ",worker=\"up\",rank=\"0\"} 4");
	ck_assert_uint_eq(lines_with("kvroute_worker_held_blocks{"), 3);
}
END_TEST

START_TEST(samples_of_the_proxy)
{
	char line[SAMPLE];
	uint32_t i;

	take();
	for (i = 0; i < counters_shown; i++) {
		const struct counter *c = &counter_list[i];

		snprintf(line, sizeof(line), "kvroute_proxy_%s%s%s_total" A
		    "} %" PRIu64 "\n", c->group == NULL ? "" : c->group,
		    c->group == NULL ? "" : "_", c->name,
		    counter_value(&counted, i));
		ck_line(line);
	}
	for (i = 0; i < REASONS; i++) {
		snprintf(line, sizeof(line), "kvroute_proxy_requests_total" A
		    ",reason=\"%s\"} %u\n", reason_name(i), 200 + i);
		ck_assert_uint_eq(lines_with(line), reason_occurs(i));
	}
	ck_line("kvroute_proxy_endpoints_total" A ",endpoint=\"chat\"} 301");
	ck_line("kvroute_proxy_unknown_paths_total" A ",path=\"/v1/x\"} 400");
	ck_line("kvroute_proxy_unknown_paths_total" A ",path=\"*\"} 402");
	ck_assert_uint_eq(lines_with("kvroute_proxy_unknown_paths_total{"), 2);
}
END_TEST

/* Nothing is counted where there are no counters; 0 is shown, as a sum. */
START_TEST(upstream_without_counters)
{
	take();
	ck_line("kvroute_proxy_retries_total{upstream=\"none\"} 0\n");
	ck_assert_uint_eq(lines_with(
	    "kvroute_proxy_requests_total{upstream=\"none\""), 0);
	ck_assert_uint_eq(lines_with("kvroute_leases{upstream=\"none\""), 0);
}
END_TEST

START_TEST(how_workers_are)
{
	static const struct status_health healths[] = { { "up", 2, "slow" },
	    { "b\"", 2, "failing" }, { "c", 1, "warming" },
	    { "d", 1, "good" } };

	take();
	ck_assert_uint_eq(lines_with("kvroute_proxy_gray{"), 0);
	fleet[0].healths = healths;
	fleet[0].n_healths = 4;
	take();
	ck_line("kvroute_proxy_gray" A ",worker=\"up\"} 1\n");
	ck_line("kvroute_proxy_gray" A ",worker=\"b\\\"\"} 1\n");
	ck_line("kvroute_proxy_gray" A ",worker=\"c\"} 0\n");
	ck_line("kvroute_proxy_warming" A ",worker=\"c\"} 1\n");
	ck_line("kvroute_proxy_warming" A ",worker=\"d\"} 0\n");
}
END_TEST

START_TEST(tenants)
{
	struct kvr *k;

	take();
	ck_assert_uint_eq(lines_with("# HELP kvroute_proxy_tenant_"), 0);
	k = fleet_share(1, 4);
	take();
	ck_assert_uint_eq(lines_with("# HELP kvroute_proxy_tenant_"), 0);
	fleet_tenant_opens(k, 0, "short");
	fleet_tenant_opens(k, 'F', "short");
	take();
	ck_assert_uint_eq(lines_with("# HELP kvroute_proxy_tenant_"), 3);
	ck_line("kvroute_proxy_tenant_share{upstream=\"none\","
	    "tenant=\"rest\"} 100\n");
	ck_line("kvroute_proxy_tenant_bytes{upstream=\"none\","
	    "tenant=\"rest\"} 192\n");
	ck_assert_uint_eq(lines_with("kvroute_proxy_tenant_share{"), 2);
	ck_assert_uint_eq(lines_with("kvroute_proxy_tenant_bytes{"), 2);
	ck_assert_uint_eq(lines_with("kvroute_proxy_tenant_evicted_total{"),
	    2);
	ck_assert_ptr_nonnull(strstr(sink.text, "\"} 70\n"));
}
END_TEST

START_TEST(requests_that_wait)
{
	take();
	ck_assert_uint_eq(lines_with("kvroute_proxy_waiting"), 0);
	fleet[0].queue = 64;
	fleet[0].waiting = 3;
	take();
	ck_line("kvroute_proxy_waiting" A "} 3\n");
	ck_assert_uint_eq(lines_with("kvroute_proxy_waiting{"), 1);
	ck_assert_uint_eq(lines_with("# TYPE kvroute_proxy_waiting gauge"), 1);
	fleet[1].queue = 1;
	take();
	ck_line("kvroute_proxy_waiting{upstream=\"none\"} 0\n");
	ck_assert_uint_eq(lines_with("# TYPE kvroute_proxy_waiting gauge"), 1);
}
END_TEST

START_TEST(no_upstream)
{
	fleet_status.upstreams = 0;
	take();
	ck_assert_uint_eq(lines_with("kvroute_"), 0);
	ck_assert_uint_eq(lines_with("# HELP"), counters_shown + 3 +
	    HISTOGRAMS);
}
END_TEST

START_TEST(no_room_and_no_memory)
{
	fails_everywhere(report);
}
END_TEST

/* The holder of the lock is before its change, or in the middle of it. */
START_TEST(a_held_lock)
{
	fails_while_held(report, _i == 1);
}
END_TEST

START_TEST(loads_that_engines_say)
{
	const struct status_load loads[] = { { .name = "u\"p",
	    .name_length = 3, .running = 3, .waiting = 4, .usage = 0.0625,
	    .surplus = 2, .age = 1.5 }, { .name = "up", .name_length = 2,
	    .rank = 1, .usage = -1 } };

	take();
	ck_assert_ptr_null(strstr(sink.text, "_polled_"));
	fleet[0].loads = loads;
	fleet[0].n_loads = 2;
	take();
	ck_line("# TYPE kvroute_proxy_polled_running gauge\n");
	ck_line("kvroute_proxy_polled_running" A ",worker=\"u\\\"p\","
	    "rank=\"0\"} 3.000\n");
	ck_line("kvroute_proxy_polled_waiting" A ",worker=\"u\\\"p\","
	    "rank=\"0\"} 4.000\n");
	ck_line("kvroute_proxy_polled_usage" A ",worker=\"u\\\"p\","
	    "rank=\"0\"} 0.063\n");
	ck_line("kvroute_proxy_polled_surplus" A ",worker=\"u\\\"p\","
	    "rank=\"0\"} 2.000\n");
	ck_line("kvroute_proxy_polled_age_seconds" A ",worker=\"u\\\"p\","
	    "rank=\"0\"} 1.500\n");
	ck_line("kvroute_proxy_polled_surplus" A ",worker=\"up\","
	    "rank=\"1\"} 0.000\n");
	ck_assert_ptr_null(strstr(sink.text, "_polled_usage" A
	    ",worker=\"up\""));
}
END_TEST

Suite *suite_status_metrics(void);

Suite *
suite_status_metrics(void)
{
	Suite *s = suite_create("status_metrics");
	TCase *c = tcase_create("status_metrics");

	tcase_add_checked_fixture(c, fleet_setup, fleet_teardown);
	tcase_add_test(c, samples_of_a_metric_are_together);
	tcase_add_test(c, no_sample_twice);
	tcase_add_test(c, samples_of_each_index);
	tcase_add_test(c, samples_of_the_proxy);
	tcase_add_test(c, upstream_without_counters);
	tcase_add_test(c, no_upstream);
	tcase_add_test(c, tenants);
	tcase_add_test(c, no_room_and_no_memory);
	tcase_add_loop_test(c, a_held_lock, 0, 2);
	tcase_add_test(c, loads_that_engines_say);
	tcase_add_test(c, how_workers_are);
	tcase_add_test(c, requests_that_wait);
	suite_add_tcase(s, c);
	return s;
}
