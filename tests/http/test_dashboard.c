/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dashboard.c - names of facts. examples/grafana.json: each name that
 * begins with kvroute_, in a query of a panel or of a variable, must be that of
 * a sample which nginx writes, with all that may be known of a fleet; those of
 * kvroute-sync are compared by tests/sync/check_sync.sh. The page
 * kvroute-nginx-operation(7) has each member of the JSON and each metric.
 */
#include "test.h"

#include <json-c/json.h>
#include <stdio.h>

#include "fleet.h"

#define FILE_NAME "examples/grafana.json"
#define PAGE_NAME "man/kvroute-nginx-operation.7"
#define LETTERS "abcdefghijklmnopqrstuvwxyz_"

static struct json_object *dashboard;
static size_t names, sources;

static void
dashboard_setup(void)
{
	static const struct status_load load = { .name = "up",
	    .name_length = 2, .usage = 0.5 };

	static const struct status_health health = { "up", 2, "good" };

	fleet_setup();
	fleet_status.proxy = "nginx";
	fleet[0].healths = &health;
	fleet[0].n_healths = 1;
	fleet[0].queue = 1;
	fleet[0].loads = &load;
	fleet[0].n_loads = 1;
	fleet_journal();
	fleet_tenant_opens(fleet_share(2, 2), 'a', "short");
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	status_metrics(&fleet_status, &sink.writer);
	ck_assert(!sink.writer.failed);
	dashboard = json_object_from_file(FILE_NAME);
	ck_assert_msg(dashboard != NULL, FILE_NAME ": %s",
	    json_util_get_last_err());
}

static void
dashboard_teardown(void)
{
	json_object_put(dashboard);
	fleet_teardown();
}

static struct json_object *
member(struct json_object *of, const char *key)
{
	struct json_object *o = NULL;

	ck_assert_msg(json_object_object_get_ex(of, key, &o), "no %s", key);
	return o;
}

/* A sample of this name, at the beginning of a line. */
static bool
is_written(const char *name, size_t n)
{
	const char *at = sink.text;

	for (; *at != '\0'; at += strcspn(at, "\n") + 1)
		if (strncmp(at, name, n) == 0 && at[n] == '{')
			return true;
	return false;
}

static void
ck_query(const char *query)
{
	static const char prefix[] = "kvroute_", sync[] = "kvroute_sync_";
	const char *at = query;
	size_t n;

	while ((at = strstr(at, prefix)) != NULL) {
		n = strspn(at, LETTERS);
		ck_assert_msg(strncmp(at, sync, strlen(sync)) == 0 ||
		    is_written(at, n), "%.*s is no metric: %s", (int)n, at,
		    query);
		names++;
		at += n;
	}
}

static bool
is_query(const char *key)
{
	return strcmp(key, "expr") == 0 || strcmp(key, "query") == 0 ||
	    strcmp(key, "definition") == 0;
}

/* A variable, so that it works with a data source of any name. */
static void
ck_source(struct json_object *of)
{
	ck_assert_str_eq(json_object_get_string(member(of, "uid")),
	    "${datasource}");
	sources++;
}

static void
look(struct json_object *o)
{
	size_t i;

	if (json_object_is_type(o, json_type_array)) {
		for (i = 0; i < json_object_array_length(o); i++)
			look(json_object_array_get_idx(o, i));
	} else if (json_object_is_type(o, json_type_object)) {
		json_object_object_foreach(o, key, value) {
			if (is_query(key))
				ck_query(json_object_get_string(value));
			if (strcmp(key, "datasource") == 0)
				ck_source(value);
			look(value);
		}
	}
}

START_TEST(each_metric_is_written)
{
	names = sources = 0;
	look(dashboard);
	ck_assert_uint_gt(names, 40);
	ck_assert_uint_gt(sources, 40);
	ck_assert(!is_written("kvroute_leas", 12));
	ck_assert(!is_written("kvroute_leases_", 15));
}
END_TEST

START_TEST(its_panels_and_its_source)
{
	struct json_object *panels = member(dashboard, "panels"), *panel;
	struct json_object *list = member(member(dashboard, "templating"),
	    "list");
	size_t i, j, n = json_object_array_length(panels);

	ck_assert_str_eq(json_object_get_string(member(
	    json_object_array_get_idx(list, 0), "type")), "datasource");
	ck_assert_str_eq(json_object_get_string(member(
	    json_object_array_get_idx(list, 0), "query")), "prometheus");
	for (i = 0; i < n; i++) {
		panel = json_object_array_get_idx(panels, i);
		for (j = 0; j < i; j++)
			ck_assert_int_ne(json_object_get_int(member(panel,
			    "id")), json_object_get_int(member(
			    json_object_array_get_idx(panels, j), "id")));
	}
}
END_TEST

/* ------------------------------------------------------------- the page --- */

enum { PAGE_BYTES = 1 << 18 };
static char page[PAGE_BYTES];

static void
page_read(void)
{
	FILE *f = fopen(PAGE_NAME, "r");

	ck_assert_msg(f != NULL, PAGE_NAME);
	page[fread(page, 1, PAGE_BYTES - 1, f)] = '\0';
	ck_assert_int_eq(fclose(f), 0);
}

/* As a word. */
static bool
page_has(const char *name, size_t n)
{
	const char *at = page;

	for (; *at != '\0'; at += at[0] != '\0') {
		at += strcspn(at, LETTERS);
		if (strspn(at, LETTERS) == n && strncmp(at, name, n) == 0)
			return true;
		at += strspn(at, LETTERS);
	}
	return false;
}

/* The page has a rule for the counters, and their members. */
static bool
is_counter(const char *name, size_t n)
{
	char text[128];
	size_t i;

	for (i = 0; i < counters_shown; i++) {
		const struct counter *c = &counter_list[i];

		snprintf(text, sizeof(text), "%s%s%s_total", c->group == NULL ?
		    "" : c->group, c->group == NULL ? "" : "_", c->name);
		if (strlen(text) == n && strncmp(text, name, n) == 0)
			return true;
	}
	return false;
}

START_TEST(each_metric_is_in_the_page)
{
	static const char head[] = "# TYPE kvroute_nginx_";
	const char *at = sink.text;
	size_t n, found = 0;

	page_read();
	for (; (at = strstr(at, head)) != NULL; at += n) {
		at += strlen(head);
		n = strspn(at, LETTERS);
		if (is_counter(at, n))
			continue;
		ck_assert_msg(page_has(at, n) || page_has(
		    at - strlen("kvroute_nginx_"),
		    n + strlen("kvroute_nginx_")), "%.*s", (int)n, at);
		found++;
	}
	ck_assert_uint_gt(found, 19);
	ck_assert(!page_has("polled_runnin", 13));
}
END_TEST

/* Returns how many members there are. */
static size_t
members_look(struct json_object *o)
{
	size_t i, n = 0;

	if (json_object_is_type(o, json_type_array))
		for (i = 0; i < json_object_array_length(o); i++)
			n += members_look(json_object_array_get_idx(o, i));
	if (!json_object_is_type(o, json_type_object))
		return n;
	json_object_object_foreach(o, key, value) {
		ck_assert_msg(strspn(key, LETTERS) < strlen(key) ||
		    page_has(key, strlen(key)), "%s", key);
		n++;
		/* The page of the reasons has these. */
		if (strcmp(key, "reasons") != 0)
			n += members_look(value);
	}
	return n;
}

START_TEST(each_member_is_in_the_page)
{
	struct json_object *o;

	page_read();
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	status_json(&fleet_status, &sink.writer);
	o = json_tokener_parse(sink.text);
	ck_assert_ptr_nonnull(o);
	ck_assert_uint_gt(members_look(o), 150);
	json_object_put(o);
}
END_TEST

Suite *suite_dashboard(void);

Suite *
suite_dashboard(void)
{
	Suite *s = suite_create("dashboard");
	TCase *c = tcase_create("dashboard");

	tcase_add_checked_fixture(c, dashboard_setup, dashboard_teardown);
	tcase_add_test(c, each_metric_is_written);
	tcase_add_test(c, its_panels_and_its_source);
	tcase_add_test(c, each_metric_is_in_the_page);
	tcase_add_test(c, each_member_is_in_the_page);
	suite_add_tcase(s, c);
	return s;
}
