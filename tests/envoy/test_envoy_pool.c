/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_envoy_pool.c - configurations of the module for Envoy: sentences of
 * errors, filters that share a pool, a file that changes, and the status.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "envoy_pool.h"
#include "fake_envoy.h"
#include "kvroute_http.h"

static char error[CONF_ERROR_MAX];

static struct envoy_pool *
take(const char *text)
{
	error[0] = '\0';
	return envoy_pool_take(text, strlen(text), error);
}

static const void *
new_config(const char *name, const char *text)
{
	fake_log[0] = '\0';
	return envoy_dynamic_module_on_http_filter_config_new(NULL,
	    (struct envoy_text){ name, strlen(name) },
	    (struct envoy_text){ text, strlen(text) });
}

START_TEST(version_of_the_abi)
{
	ck_assert_str_eq(envoy_dynamic_module_on_program_init(),
	    ENVOY_ABI_VERSION);
}
END_TEST

START_TEST(errors_are_sentences)
{
	static const char *const rows[][2] = {
		{ "", "filter_config is to be a StringValue: a configuration, "
		    "or the path of one" },
		{ "/nowhere/kvroute.conf",
		    "/nowhere/kvroute.conf: No such file or directory" },
		{ "kvroute size=8m\n",
		    "filter_config:1: there are no servers" },
		{ "server engines.svc:80\n", "filter_config:1: server "
		    "engines.svc:80: a server is an address, as Envoy's hosts "
		    "are" },
		{ "\nserver 10.0.0.1:80 capacity=much\n",
		    "filter_config:2: server 10.0.0.1:80: " },
		{ "serve 10.0.0.1:80\n",
		    "filter_config:1: there is no such directive" },
		{ "kvroute sise=8m\nserver 10.0.0.1:80\n",
		    "filter_config:1: sise=8m: " },
		{ "server 10.0.0.1:80\nkvroute size=8m queue=10\n",
		    "filter_config:2: queue, queue_timeout, poll and "
		    "poll_path have no effect here" },
		{ "server 10.0.0.1:80\nkvroute_poll_path /metrics;\n",
		    "filter_config:2: queue, queue_timeout, poll and "
		    "poll_path have no effect here" },
		{ "\nserver 10.0.0.1:80 weight=2 capacity=auto\n",
		    "filter_config:2: server 10.0.0.1:80: capacity=auto has "
		    "no effect here: engines are not asked" }
	};
	char want[256];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_ptr_null(take(rows[i][0]));
		ck_assert_str_eq(strstr(error, rows[i][1]), error);
		ck_assert_ptr_null(new_config("kvroute", rows[i][0]));
		(void)snprintf(want, sizeof(want), "%d kvroute: %s",
		    ENVOY_ERROR, rows[i][1]);
		ck_assert_str_eq(strstr(fake_log, want), fake_log);
	}
	ck_assert_ptr_null(new_config("kv", "server 10.0.0.1:80"));
	ck_assert_ptr_nonnull(strstr(fake_log, "kvroute or kvroute_status, "
	    "and not kv"));
}
END_TEST

START_TEST(the_same_text_is_one_pool)
{
	struct envoy_pool *a = take("server 10.0.0.1:80");
	struct envoy_pool *b = take("server 10.0.0.2:80");

	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_nonnull(b);
	ck_assert_ptr_ne(a, b);
	ck_assert_ptr_eq(take("server 10.0.0.1:80"), a);
	envoy_pool_leave(a);
	ck_assert_ptr_eq(take("server 10.0.0.1:80"), a);
	envoy_pool_leave(a);
	envoy_pool_leave(b);
	envoy_pool_leave(a);
}
END_TEST

/* ---------------------------------------------------------------- file --- */

static char path[] = "/tmp/kvroute-envoy-XXXXXX";

static void
write_file(const char *text)
{
	FILE *out;

	if (strstr(path, "XXXXXX") != NULL)
		ck_assert_int_ge(close(mkstemp(path)), 0);
	out = fopen(path, "w");
	ck_assert_ptr_nonnull(out);
	ck_assert_int_ge(fputs(text, out), 0);
	fclose(out);
}

static bool
has_text(struct envoy_pool *p, const char *text)
{
	static char json[1 << 18];
	size_t n = 0;

	ck_assert_int_eq(kvh_status(envoy_pool_kvh(p), KVH_JSON, KVH_NOW,
	    json, sizeof(json) - 1, &n), 0);
	json[n] = '\0';
	return strstr(json, text) != NULL;
}

static void
wait_text(struct envoy_pool *p, const char *text, bool there)
{
	int i;

	for (i = 0; i < 1000 && has_text(p, text) != there; i++)
		(void)usleep(10000);
	ck_assert(has_text(p, text) == there);
}

static void
wait_log(const char *text)
{
	int i;

	for (i = 0; i < 1000 && !fake_logged(text); i++)
		(void)usleep(10000);
	ck_assert(fake_logged(text));
}

START_TEST(a_file_is_watched)
{
	struct envoy_pool *p;

	write_file("kvroute size=8m;\nserver 10.0.0.1:80;\n");
	p = take(path);
	ck_assert_msg(p != NULL, "%s", error);
	ck_assert(has_text(p, "10.0.0.1:80"));
	write_file("kvroute size=8m;\nserver 10.0.0.2:80;\n");
	wait_text(p, "10.0.0.2:80", true);
	wait_text(p, "10.0.0.1:80", false);
	/* A file with an error changes nothing. */
	fake_log[0] = '\0';
	write_file("server 10.0.0.3:80;\nserver 10.0.0.4:80 weight=x;\n");
	wait_log(":2: server 10.0.0.4:80: ");
	write_file("# none\n");
	wait_log(":1: there are no servers");
	ck_assert(has_text(p, "10.0.0.2:80"));
	ck_assert(!has_text(p, "10.0.0.3:80"));
	envoy_pool_leave(p);
	(void)unlink(path);
}
END_TEST

/* How often this text is in the log. */
static int
count_log(const char *text)
{
	const char *at = fake_log;
	int n = 0;

	for (; (at = strstr(at, text)) != NULL; at++)
		n++;
	return n;
}

/* The options of the start are in force, and an error is logged once. */
START_TEST(a_file_for_other_options)
{
	struct envoy_pool *p;

	write_file("kvroute size=8m workers=1;\nserver 10.0.0.1:80;\n");
	p = take(path);
	ck_assert_msg(p != NULL, "%s", error);
	fake_log[0] = '\0';
	write_file("kvroute size=8m workers=8;\nserver 10.0.0.1:80;\n"
	    "server 10.0.0.2:80;\n");
	wait_log(":3: server 10.0.0.2:80: ");
	(void)sleep(3);
	ck_assert_int_eq(count_log("server"), 1);
	ck_assert(has_text(p, "10.0.0.1:80"));
	envoy_pool_leave(p);
	(void)unlink(path);
}
END_TEST

/* Servers of another process leave no room in the region. */
START_TEST(a_region_that_is_full)
{
	static const char options[] = "size=8m workers=3";
	char region[64], text[256];
	struct envoy_pool *p;
	struct kvh *other;

	(void)snprintf(region, sizeof(region), "%s.region", path);
	(void)snprintf(text, sizeof(text), "region %s;\nkvroute %s;\n"
	    "server 10.0.0.1:80;\n", region, options);
	write_file(text);
	p = take(path);
	ck_assert_msg(p != NULL, "%s", error);
	ck_assert_int_eq(kvh_open(region, strlen(region), options,
	    strlen(options), NULL, &other), 0);
	ck_assert_int_eq(kvh_server_put(other, "10.0.9.9:80", 11, "", 0,
	    NULL), 0);
	fake_log[0] = '\0';
	write_file("server 10.0.0.1:80;\nserver 10.0.0.2:80;\n"
	    "server 10.0.0.3:80;\n");
	wait_log(":3: server 10.0.0.3:80: ");
	(void)sleep(3);
	ck_assert_int_eq(count_log("server"), 1);
	ck_assert(has_text(p, "10.0.0.2:80"));
	/* That one leaves again, and makes room for others. */
	write_file("server 10.0.0.1:80;\nserver 10.0.0.4:80;\n");
	wait_text(p, "10.0.0.4:80", true);
	wait_text(p, "10.0.0.2:80", false);
	ck_assert(!has_text(p, "10.0.0.3:80"));
	kvh_free(other);
	envoy_pool_leave(p);
	(void)unlink(path);
	(void)unlink(region);
}
END_TEST

START_TEST(status_and_metrics)
{
	const void *config = new_config("kvroute_status",
	    "server 10.0.0.1:80");
	struct fake_envoy e;

	ck_assert_ptr_nonnull(config);
	fake_begin(&e, config);
	ck_assert(!fake_ask_head(&e, "/", true));
	ck_assert_uint_eq(e.status, 200);
	ck_assert_str_eq(fake_get(&e.answer, "content-type"),
	    "application/json");
	ck_assert_int_eq(e.answer_body.at[0], '{');
	fake_end(&e, "kvroute_status");
	fake_begin(&e, config);
	ck_assert(!fake_ask_head(&e, "/pool/metrics", false));
	ck_assert_int_eq(strncmp(fake_get(&e.answer, "content-type"),
	    "text/plain", 10), 0);
	ck_assert_ptr_nonnull(strstr(e.answer_body.at, "\nkvroute_cells{"));
	fake_end(&e, "kvroute_status");
	envoy_dynamic_module_on_http_filter_config_destroy(config);
}
END_TEST

START_TEST(without_memory)
{
	const char *text = "kvroute size=2m\nserver 10.0.0.1:80\n";
	const void *config = NULL;
	unsigned long n;

	for (n = 1; config == NULL && n < 1000; n++) {
		alloc_fail_at(n);
		config = new_config("kvroute", text);
		if (config == NULL)
			ck_assert_str_ne(fake_log, "");
	}
	alloc_reset();
	ck_assert_ptr_nonnull(config);
	ck_assert_uint_gt(n, 5);
	envoy_dynamic_module_on_http_filter_config_destroy(config);
}
END_TEST

Suite *suite_envoy_pool(void);

Suite *
suite_envoy_pool(void)
{
	Suite *s = suite_create("envoy_pool");
	TCase *c = tcase_create("envoy_pool");

	tcase_set_timeout(c, 60);
	tcase_add_test(c, version_of_the_abi);
	tcase_add_test(c, errors_are_sentences);
	tcase_add_test(c, the_same_text_is_one_pool);
	tcase_add_test(c, a_file_is_watched);
	tcase_add_test(c, a_file_for_other_options);
	tcase_add_test(c, a_region_that_is_full);
	tcase_add_test(c, status_and_metrics);
	tcase_add_test(c, without_memory);
	suite_add_tcase(s, c);
	return s;
}
