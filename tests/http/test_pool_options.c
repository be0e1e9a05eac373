/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pool_options.c - options and facts as text. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kvroute.h"
#include "pool_bed.h"
#include "pool_options.h"
#include "pool_server.h"

enum { NONE = 9999 };

/* The offset of the pair that is refused. */
static const struct {
	const char *text;
	int error;
	size_t bad;
} texts[] = {
	{ "", 0, NONE }, { " \t\r\n ", 0, NONE },
	{ "size=8m", 0, NONE }, { "size=8M block=512\nworkers=9", 0, NONE },
	{ "size=8388608", 0, NONE }, { "size=1g", KVR_ENOMEM, NONE },
	{ "size=", KVH_EVALUE, 0 }, { "size=8x", KVH_EVALUE, 0 },
	{ "size=1k", KVH_EVALUE, 0 }, { "size", KVH_ENAME, 0 },
	{ "size=8m sizes=1", KVH_ENAME, 8 }, { "Size=8m", KVH_ENAME, 0 },
	{ "=8m", KVH_ENAME, 0 }, { "ttl=1s  ttl=0s", KVH_EVALUE, 8 },
	{ "scope=x-tenant scope=x-org", KVH_EVALUE, 15 },
	{ "ttl=13M", KVH_EVALUE, 0 }, { "affinity_ttl=2M", KVH_EVALUE, 0 },
	{ "affinity_ttl=endless", KVH_EVALUE, 0 },
	{ "affinity_ttl=1h30m", 0, NONE },
	{ "size=8m\vblock=16", KVH_EVALUE, 0 }, { "block=15", KVH_EVALUE, 0 },
	{ "unit=tokens", KVH_ENAME, 0 },
	{ "ttl=366d", KVH_EVALUE, 0 }, { "ttl=90", 0, NONE },
	{ "ttl=1ms", 0, NONE }, { "ttl=1.5s", KVH_EVALUE, 0 },
	{ "gray=1", KVH_EVALUE, 0 }, { "gray=8", 0, NONE },
	{ "gray=off", 0, NONE }, { "gray=on", KVH_EVALUE, 0 },
	{ "feedback=on", 0, NONE }, { "feedback=OFF", 0, NONE },
	{ "feedback=1", KVH_EVALUE, 0 }, { "feedback=off=on", KVH_EVALUE, 0 },
	{ "reasoning=keep", 0, NONE }, { "reasoning=kept", KVH_EVALUE, 0 },
	{ "affinity_mode=hash", 0, NONE },
	{ "affinity_key=auto", 0, NONE }, { "affinity_key=a,auto,b", 0, NONE },
	{ "affinity_key=", KVH_EVALUE, 0 },
	{ "affinity_key=a,", KVH_EVALUE, 0 },
	{ "affinity_key=,a", KVH_EVALUE, 0 },
	{ "affinity_key=1,2,3,4,5,6,7,8", 0, NONE },
	{ "affinity_key=1,2,3,4,5,6,7,8,9", KVH_EVALUE, 0 },
	{ "journal=65536", 0, NONE }, { "journal=65537", KVH_EVALUE, 0 },
	{ "workers=4097", KVH_EVALUE, 0 }, { "workers=0", KVH_EVALUE, 0 },
	{ "workers=99999999999999999999", KVH_EVALUE, 0 },
	{ "trace_sample=0.5%", 0, NONE }, { "trace_sample=1", KVH_EVALUE, 0 },
	{ "trace_sample=101%", KVH_EVALUE, 0 },
	{ "trace_sample=1.%", KVH_EVALUE, 0 },
	{ "fallbacks=7", 0, NONE }, { "fallbacks=8", KVH_EVALUE, 0 },
	{ "secret=/nowhere", KVH_EVALUE, 0 }, { "name=p1", 0, NONE },
	{ "ignore_line=^a|^b.c:", 0, NONE },
	{ "ignore_line=", KVH_EVALUE, 0 }, { "ignore_line=a(", KVH_EVALUE, 0 },
	{ "ignore_line=a{2}", KVH_EVALUE, 0 },
	{ "ignore_line=(a)\\1", KVH_EVALUE, 0 },
	{ "shadow=least_conn", 0, NONE }, { "shadow=off", 0, NONE },
	{ "shadow=hash", KVH_EVALUE, 0 },
	{ "name=", KVH_EVALUE, 0 }, { "scope=x-tenant", 0, NONE }
};
enum { TEXTS = sizeof(texts) / sizeof(texts[0]) };

/* A gigabyte may be had or not. */
START_TEST(each_text)
{
	struct kvh *h = NULL;
	size_t bad = NONE;
	int error = kvh_open("", 0, texts[_i].text, strlen(texts[_i].text),
	    &bad, &h);

	if (texts[_i].error != KVR_ENOMEM)
		ck_assert_int_eq(error, texts[_i].error);
	ck_assert_uint_eq(bad, texts[_i].bad);
	kvh_free(h);
}
END_TEST

static const struct {
	const char *text;
	int error;
	size_t bad;
} facts[] = {
	{ "", 0, NONE }, { "state=up", 0, NONE }, { "state=drain", 0, NONE },
	{ "state=gone", 0, NONE }, { "state=full", KVH_EVALUE, 0 },
	{ "max_conns=8 weight=0.5", 0, NONE },
	{ "weight=0", KVH_EVALUE, 0 }, { "weight=.5", KVH_EVALUE, 0 },
	{ "capacity=400000 prefill_rate=9000", 0, NONE },
	{ "capacity=0", KVH_EVALUE, 0 }, { "role=any", KVH_EVALUE, 0 },
	{ "role=both", 0, NONE }, { "role=prefill ranks=2", 0, NONE },
	{ "rank=1", KVH_ENAME, 0 },
	{ "weight=1 weight=2", KVH_EVALUE, 9 }, { "weight=0.0005", 0, NONE },
	{ "ranks=8", 0, NONE }, { "ranks=0", KVH_EVALUE, 0 },
	{ "window=4096 window_mode=dual window_layers=5.5", 0, NONE },
	{ "window=4096", KVH_EVALUE, 11 },
	{ "window_mode=dual", KVH_EVALUE, 16 },
	{ "window=9 window_mode=dense window_capacity=9", KVH_EVALUE, 44 },
	{ "eviction=leaf\tblock_tokens=32", 0, NONE }
};
enum { FACTS_ALL = sizeof(facts) / sizeof(facts[0]) };

START_TEST(each_fact)
{
	struct kvh *h = bed_pool("", 0);
	size_t bad = NONE;

	ck_assert_int_eq(kvh_server_put(h, "a", 1, facts[_i].text,
	    strlen(facts[_i].text), &bad), facts[_i].error);
	ck_assert_uint_eq(bad, facts[_i].bad);
	kvh_free(h);
}
END_TEST

/* Options of a region are not for a region that is there. */
START_TEST(on_a_region)
{
	struct kvr_options o;
	struct kvr *k = NULL;
	struct kvh *h = NULL;
	size_t bad = NONE;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = 4 << 20;
	ck_assert_int_eq(kvr_new(&o, &k), 0);
	ck_assert_int_eq(kvh_new(k, "", 0, &bad, &h), KVR_EINVAL);
	kvr_free(k);
	o.unit = KVR_UNIT_BYTES;
	ck_assert_int_eq(kvr_new(&o, &k), 0);
	ck_assert_int_eq(kvh_new(k, "gray=8 size=8m", 14, &bad, &h),
	    KVH_ENAME);
	ck_assert_uint_eq(bad, 7);
	ck_assert_int_eq(kvh_new(k, "gray=8", 6, NULL, &h), 0);
	ck_assert_int_eq(bed_server(h, "a", ""), 0);
	kvh_free(h);
	kvr_free(k);
}
END_TEST

static int
secret_open(const char *bytes, size_t n)
{
	char path[] = "/tmp/kvroute-secret-XXXXXX", options[64];
	int fd = mkstemp(path), error;
	struct kvh *h = NULL;

	ck_assert_int_ne(fd, -1);
	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	(void)close(fd);
	(void)snprintf(options, sizeof(options), "secret=%s", path);
	error = kvh_open("", 0, options, strlen(options), NULL, &h);
	(void)unlink(path);
	kvh_free(h);
	return error;
}

START_TEST(secrets)
{
	static const char zeros[32];
	char control[64];
	static const char hex[] = "00112233445566778899aabbccddeeff"
	    "00112233445566778899AABBCCDDEEFF\r\n";

	ck_assert_int_eq(secret_open(hex, 64), 0);
	ck_assert_int_eq(secret_open(hex, 66), 0);
	ck_assert_int_eq(secret_open(hex, 32), 0);
	ck_assert_int_eq(secret_open(hex, 63), KVH_EVALUE);
	ck_assert_int_eq(secret_open(hex + 1, 65), KVH_EVALUE);
	ck_assert_int_eq(secret_open(zeros, 32), KVH_EVALUE);
	/* A control byte is no digit. */
	memcpy(control, hex, 64);
	control[5] = '\x10';
	ck_assert_int_eq(secret_open(control, 64), KVH_EVALUE);
	ck_assert_int_eq(secret_open("", 0), KVH_EVALUE);
}
END_TEST

START_TEST(strings_of_errors)
{
	int i;

	for (i = KVH_ENOSERVER; i >= KVH_EEND; i--)
		ck_assert_str_ne(kvh_strerror(i), kvr_strerror(i));
	ck_assert_str_eq(kvh_strerror(KVR_ENOMEM), kvr_strerror(KVR_ENOMEM));
	ck_assert_ptr_nonnull(kvh_strerror(-999));
}
END_TEST

/* Everything that is NULL is refused. */
START_TEST(nulls)
{
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = NULL;
	size_t n;

	ck_assert_int_eq(kvh_open(NULL, 1, "", 0, NULL, &h), KVR_EINVAL);
	ck_assert_int_eq(kvh_open("", 0, NULL, 1, NULL, &h), KVR_EINVAL);
	ck_assert_int_eq(kvh_open("", 0, "", 0, NULL, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvh_new(NULL, "", 0, NULL, &h), KVR_EINVAL);
	ck_assert_int_eq(kvh_server_put(h, "", 0, "", 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvh_server_put(NULL, "a", 1, "", 0, NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(kvh_server_reset(h, "z", 1, 1), KVH_ENAME);
	ck_assert_int_eq(kvh_server_reset(h, "a", 1, 1), 0);
	ck_assert_int_eq(kvh_tick(NULL, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvh_status(h, 2, 0, NULL, 0, &n), KVR_EINVAL);
	ck_assert_int_eq(kvh_begin(h, NULL, 1, "/", 1, 0, &c), KVR_EINVAL);
	ck_assert_int_eq(kvh_pick(NULL, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvh_end(NULL, 0, 0, NULL, 0, NULL), KVR_EINVAL);
	kvh_call_free(NULL);
	kvh_free(NULL);
	kvh_free(h);
}
END_TEST

/* The page has each option and each fact in a row of its own. */
START_TEST(page_has_all)
{
	static char page[1 << 17];
	FILE *file = fopen("man/kvroute-http.7", "r");
	char row[64];
	size_t i, n;

	if (file == NULL)
		test_skip("the page is not in this folder");
	n = fread(page, 1, sizeof(page) - 1, file);
	(void)fclose(file);
	page[n] = '\0';
	for (i = 0; i < pool_rows_all + server_rows_all; i++) {
		(void)snprintf(row, sizeof(row), "\n.It Cm %s Ns = Ns",
		    i < pool_rows_all ? pool_rows[i].name :
		    server_rows[i - pool_rows_all].name);
		if (strstr(page, row) == NULL)
			ck_abort_msg("%s", row + 1);
	}
}
END_TEST

Suite *suite_pool_options(void);

Suite *
suite_pool_options(void)
{
	Suite *s = suite_create("pool_options");
	TCase *t = tcase_create("pool_options");

	tcase_add_loop_test(t, each_text, 0, TEXTS);
	tcase_add_loop_test(t, each_fact, 0, FACTS_ALL);
	tcase_add_test(t, on_a_region);
	tcase_add_test(t, secrets);
	tcase_add_test(t, strings_of_errors);
	tcase_add_test(t, nulls);
	tcase_add_test(t, page_has_all);
	suite_add_tcase(s, t);
	return s;
}
