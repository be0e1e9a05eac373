/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pool_prefill.c - servers that prefill for others. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "busy.h"
#include "kvroute.h"
#include "pool_bed.h"

#define CHAT "/v1/chat/completions"
#define NOW (100 * BED_SECOND)
#define STREAM "],\"stream\":true,\"stream_options\":{\"include_usage\":true}"

static struct kvr *region;

/* "d" and "e" decode, "p" and "q" prefill. */
static struct kvh *
fleet_make(const char *options)
{
	struct kvr_options o;
	struct kvh *h = NULL;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = 4 << 20;
	o.unit = KVR_UNIT_BYTES;
	o.affinity_entries = 64;
	ck_assert_int_eq(kvr_new(&o, &region), 0);
	ck_assert_int_eq(kvh_new(region, options, strlen(options), NULL, &h),
	    0);
	ck_assert_int_eq(bed_server(h, "d", "role=decode"), 0);
	ck_assert_int_eq(bed_server(h, "e", "role=decode"), 0);
	ck_assert_int_eq(bed_server(h, "p", "role=prefill"), 0);
	ck_assert_int_eq(bed_server(h, "q", "role=prefill"), 0);
	return h;
}

static void
fleet_free(struct kvh *h)
{
	ck_assert_int_eq(kvr_check(region), 0);
	kvh_free(h);
	kvr_free(region);
}

static struct kvr_worker_stats
stats_of(const char *name)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	uint64_t id;

	ck_assert_int_eq(kvr_worker_find(region, name, 1, 0, &id), 0);
	ck_assert_int_eq(kvr_worker_stats_get(region, id, &s), 0);
	return s;
}

/* The server that prefills; '-': none. */
static char
prefill_of(struct kvh_call *c)
{
	const char *name;
	size_t n;
	int error = kvh_prefill(c, &name, &n);

	ck_assert(error == KVH_EEND || (error == 0 && n == 1));
	return error == 0 ? *name : '-';
}

static struct kvh_call *
send_chat(struct kvh *h, const char *text, size_t bytes, const char *more,
    int64_t now)
{
	struct kvh_call *c = bed_request(h, CHAT, NULL,
	    bed_chat(text, bytes, more), now);

	ck_assert_int_eq(kvh_pick(c, now, NULL), 0);
	return c;
}

static void
answer_chat(struct kvh_call *c, bool stream, int64_t now)
{
	ck_assert_ptr_nonnull(bed_answer(c, 200, stream ?
	    "text/event-stream" : "application/json", stream ? bed_stream :
	    bed_json, 0, now));
	kvh_call_free(c);
}

static const char *
headers_of(struct kvh_call *c)
{
	static char headers[512];

	headers[0] = '\0';
	(void)bed_edited(c, bed_chat("x", 1, ""), headers, sizeof(headers));
	return headers;
}

/* -------------------------------------------------------------- choices --- */

START_TEST(split_and_stay)
{
	struct kvh *h = fleet_make("");
	struct kvh_call *c = send_chat(h, "long text ", 4000, "", NOW);
	char line[64], target = *bed_target(c), other = prefill_of(c);

	ck_assert(target == 'd' || target == 'e');
	ck_assert(other == 'p' || other == 'q');
	(void)snprintf(line, sizeof(line), "x-prefiller-host-port: %c",
	    other);
	ck_assert_ptr_nonnull(strstr(headers_of(c), line));
	answer_chat(c, false, NOW + 1);
	/* The target has it by now, and needs no other. */
	c = send_chat(h, "long text ", 4000, "", NOW + 2);
	ck_assert_int_eq(*bed_target(c), target);
	ck_assert_int_eq(prefill_of(c), '-');
	ck_assert_ptr_nonnull(strstr(headers_of(c),
	    "x-prefiller-host-port:\n"));
	kvh_call_free(c);
	/* A longer one goes where its beginning was prefilled. */
	c = send_chat(h, "long text ", 12000, "", NOW + 4);
	ck_assert_int_eq(*bed_target(c), target);
	ck_assert_int_eq(prefill_of(c), other);
	answer_chat(c, false, NOW + 5);
	ck_assert_int_eq(bed_count(h, "split"), 2);
	fleet_free(h);
}
END_TEST

START_TEST(short_stays)
{
	struct kvh *h = fleet_make("split=200");
	struct kvh_call *c = send_chat(h, "short ", 500, "", NOW);

	ck_assert_int_eq(prefill_of(c), '-');
	answer_chat(c, false, NOW + 1);
	c = send_chat(h, "rather longer ", 4000, "", NOW + 2);
	ck_assert_int_ne(prefill_of(c), '-');
	answer_chat(c, false, NOW + 3);
	fleet_free(h);
}
END_TEST

/* Load and record of both, while it runs and afterwards. */
START_TEST(books_both)
{
	struct kvh *h = fleet_make("");
	struct kvh_call *c = send_chat(h, "long text ", 4000, STREAM, NOW);
	char target[2] = { *bed_target(c) }, other[2] = { prefill_of(c) };
	uint32_t rewrites;

	ck_assert_uint_eq(stats_of(target).requests, 1);
	ck_assert_uint_eq(stats_of(target).prefill_tokens, 0);
	ck_assert_uint_eq(stats_of(other).requests, 1);
	ck_assert_uint_gt(stats_of(other).prefill_tokens, 500);
	ck_assert_int_eq(kvh_response(c, 200, "text/event-stream", 17, NULL, 0,
	    NULL, 0, NOW + 1, &rewrites), 0);
	ck_assert_int_eq(kvh_response_data(c, bed_stream, strlen(bed_stream),
	    NOW + 2, NULL, 0, NULL), 0);
	/* The first token has come. */
	ck_assert_uint_eq(stats_of(other).requests, 0);
	ck_assert_uint_gt(stats_of(other).entries, 0);
	ck_assert_uint_eq(stats_of(target).requests, 1);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW + 3, NULL, 0, NULL), 0);
	ck_assert_uint_eq(stats_of(target).requests, 0);
	ck_assert_uint_gt(stats_of(target).entries, 0);
	/* The engine reports a cache that it did not have. */
	ck_assert_uint_eq(stats_of(target).calibration.reports, 0);
	ck_assert_int_eq(bed_count(h, "value"), 0);
	ck_assert_int_eq(bed_count(h, "absent"), 0);
	ck_assert_int_eq(prefill_of(c), *other);
	kvh_call_free(c);
	fleet_free(h);
}
END_TEST

/* Requests of a session share no text, and have one target. */
START_TEST(session_stays)
{
	struct kvh *h = fleet_make("affinity_key=x-session");
	struct kvh_call *c, *other;
	char text[32], target = 0;
	unsigned i;

	for (i = 0; i < 8; i++) {
		(void)snprintf(text, sizeof(text), "text %u ", i);
		c = bed_request(h, CHAT, "x-session: s\n",
		    bed_chat(text, 2000, ""), NOW + i);
		ck_assert_int_eq(kvh_pick(c, NOW + i, NULL), 0);
		target = i == 0 ? *bed_target(c) : target;
		ck_assert_int_eq(*bed_target(c), target);
		ck_assert_int_ne(prefill_of(c), '-');
		/* Others go elsewhere while it runs. */
		other = send_chat(h, text, 1000, "", NOW + i);
		answer_chat(c, false, NOW + i);
		answer_chat(other, false, NOW + i);
	}
	fleet_free(h);
}
END_TEST

/* A server without a role does all of it, and may prefill for others. */
START_TEST(both_roles)
{
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = send_chat(h, "long text ", 4000, "", NOW);

	ck_assert_int_eq(prefill_of(c), '-');
	ck_assert_ptr_null(strstr(headers_of(c), "prefiller"));
	kvh_call_free(c);
	ck_assert_int_eq(bed_server(h, "d", "role=decode"), 0);
	ck_assert_int_eq(bed_server(h, "a", "state=drain"), 0);
	c = send_chat(h, "long text ", 4000, "", NOW + 1);
	ck_assert_str_eq(bed_target(c), "d");
	ck_assert_int_eq(prefill_of(c), '-');
	kvh_call_free(c);
	ck_assert_int_eq(bed_server(h, "a", "weight=0.001"), 0);
	c = send_chat(h, "long text ", 4000, "", NOW + BED_SECOND);
	ck_assert_str_eq(bed_target(c), "d");
	ck_assert_int_eq(prefill_of(c), 'a');
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* ------------------------------------------------------------- absences --- */

START_TEST(none_prefills)
{
	struct kvh *h = fleet_make("");
	struct kvh_call *c;

	ck_assert_int_eq(bed_server(h, "p", "role=prefill state=down"), 0);
	ck_assert_int_eq(bed_server(h, "q", "role=prefill state=gone"), 0);
	c = send_chat(h, "long text ", 4000, "", NOW);
	ck_assert(*bed_target(c) == 'd' || *bed_target(c) == 'e');
	ck_assert_int_eq(prefill_of(c), '-');
	ck_assert_ptr_nonnull(strstr(headers_of(c),
	    "x-prefiller-host-port:\n"));
	ck_assert_uint_gt(stats_of(bed_target(c)).prefill_tokens, 500);
	kvh_call_free(c);
	fleet_free(h);
}
END_TEST

/* Servers that only prefill are no targets, whatever is asked. */
START_TEST(none_decodes)
{
	struct kvh *h = fleet_make("");
	struct kvh_call *c;
	uint32_t targets;

	c = bed_request(h, CHAT, NULL, bed_chat("long text ", 4000, ""), NOW);
	ck_assert_int_eq(kvh_allow(c, "p", 1), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), KVH_ENOSERVER);
	kvh_call_free(c);
	c = bed_request(h, CHAT, NULL, bed_chat("long text ", 4000, ""), NOW);
	ck_assert_int_eq(kvh_allow(c, "q", 1), 0);
	ck_assert_int_eq(kvh_allow(c, "e", 1), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, &targets), 0);
	ck_assert_int_eq(targets, 1);
	ck_assert_str_eq(bed_target(c), "e");
	ck_assert_int_eq(prefill_of(c), 'q');
	kvh_call_free(c);
	c = bed_request(h, "/v1/other", NULL, "x", NOW);
	ck_assert_int_eq(kvh_pick(c, NOW, &targets), 0);
	ck_assert_int_eq(targets, 2);
	ck_assert_int_eq(prefill_of(c), '-');
	kvh_call_free(c);
	fleet_free(h);
}
END_TEST

START_TEST(full_prefills_no_more)
{
	struct kvh *h = fleet_make("");
	struct kvh_call *c, *d;

	ck_assert_int_eq(bed_server(h, "p", "role=prefill max_conns=1"), 0);
	ck_assert_int_eq(bed_server(h, "q", "role=prefill state=down"), 0);
	c = send_chat(h, "long text ", 4000, "", NOW);
	ck_assert_int_eq(prefill_of(c), 'p');
	d = send_chat(h, "another text ", 4000, "", NOW);
	ck_assert_int_eq(prefill_of(d), '-');
	kvh_call_free(d);
	kvh_call_free(c);
	d = send_chat(h, "another text ", 4000, "", NOW);
	ck_assert_int_eq(prefill_of(d), 'p');
	kvh_call_free(d);
	fleet_free(h);
}
END_TEST

START_TEST(locked)
{
	struct kvh *h = fleet_make("");
	struct kvh_call *c;

	busy_begin(1000000);
	c = send_chat(h, "long text ", 4000, "", NOW);
	busy_end();
	ck_assert_int_eq(prefill_of(c), '-');
	answer_chat(c, false, NOW + 1);
	fleet_free(h);
}
END_TEST

/* ------------------------------------------------------------- failures --- */

/* An answer of 502 may be of either: each is left alone for a while. */
START_TEST(failure_of_either)
{
	struct kvh *h = fleet_make("");
	struct kvh_call *c = send_chat(h, "long text ", 4000, "", NOW);
	char target = *bed_target(c), other[2] = { prefill_of(c) };

	ck_assert_int_eq(kvh_failed(c, KVH_STATUS, 502, NOW + 1), 0);
	ck_assert_uint_eq(stats_of(other).requests, 0);
	ck_assert_int_eq(kvh_pick(c, NOW + 1, NULL), 0);
	ck_assert_int_ne(*bed_target(c), target);
	ck_assert_int_ne(prefill_of(c), '-');
	ck_assert_int_ne(prefill_of(c), *other);
	answer_chat(c, false, NOW + 2);
	c = send_chat(h, "another text ", 4000, "", NOW + 3);
	ck_assert_int_ne(prefill_of(c), *other);
	answer_chat(c, false, NOW + 4);
	fleet_free(h);
}
END_TEST

/* The target refused the connection: the other one is well. */
START_TEST(failure_of_the_target)
{
	struct kvh *h = fleet_make("");
	struct kvh_call *c = send_chat(h, "long text ", 4000, "", NOW);
	char target = *bed_target(c);

	ck_assert_int_eq(bed_server(h, "q", "role=prefill state=down"), 0);
	ck_assert_int_eq(bed_server(h, "p", "role=prefill"), 0);
	ck_assert_int_eq(kvh_failed(c, KVH_REFUSED, 0, NOW + 1), 0);
	ck_assert_int_eq(kvh_pick(c, NOW + 1, NULL), 0);
	ck_assert_int_ne(*bed_target(c), target);
	ck_assert_int_eq(prefill_of(c), 'p');
	answer_chat(c, false, NOW + 2);
	fleet_free(h);
}
END_TEST

/* The proxy has gone on to the next target, with the same header. */
START_TEST(served_by_the_next)
{
	struct kvh *h = fleet_make("");
	struct kvh_call *c;
	const char *name;
	uint32_t targets, rewrites;
	char other[2] = "";
	size_t n;

	c = bed_request(h, CHAT, NULL, bed_chat("long text ", 4000, ""), NOW);
	ck_assert_int_eq(kvh_pick(c, NOW, &targets), 0);
	ck_assert_int_eq(targets, 2);
	other[0] = prefill_of(c);
	ck_assert_int_eq(kvh_target(c, 1, &name, &n, NULL), 0);
	ck_assert_int_eq(kvh_response(c, 200, "application/json", 16, NULL, 0,
	    name, n, NOW + 1, &rewrites), 0);
	ck_assert_uint_eq(stats_of(other).requests, 0);
	ck_assert_uint_gt(stats_of(other).entries, 0);
	/* It does not prefill, and its report proves nothing. */
	ck_assert_uint_eq(stats_of(bed_target(c)).requests, 1);
	ck_assert_uint_eq(stats_of(bed_target(c)).prefill_tokens, 0);
	ck_assert_int_eq(prefill_of(c), *other);
	ck_assert_int_eq(kvh_response_data(c, bed_json, strlen(bed_json),
	    NOW + 2, NULL, 0, NULL), 0);
	ck_assert_int_eq(kvh_end(c, KVH_WHOLE, NOW + 2, NULL, 0, NULL), 0);
	ck_assert_int_eq(bed_fact(c, KVH_REPORT_KIND), KVR_REPORT_VALUE);
	ck_assert_int_eq(bed_count(h, "value"), 0);
	kvh_call_free(c);
	fleet_free(h);
}
END_TEST

/* No load is left, however a request ends; a server that goes is freed. */
START_TEST(each_end)
{
	struct kvh *h = fleet_make("");
	struct kvh_call *c = send_chat(h, "long text ", 4000, "", NOW);
	char other[2] = { prefill_of(c) };

	ck_assert_int_eq(bed_server(h, other, "state=gone"), 0);
	ck_assert_int_eq(kvh_tick(h, NOW + 1, NULL), 0);
	ck_assert_int_eq(kvh_end(c, (uint32_t)_i, NOW + 2, NULL, 0, NULL), 0);
	ck_assert_int_eq(kvh_tick(h, NOW + 3, NULL), 0);
	ck_assert_int_eq(prefill_of(c), *other);
	kvh_call_free(c);
	ck_assert_int_eq(bed_server(h, other, "role=prefill"), 0);
	ck_assert_uint_eq(stats_of("d").requests + stats_of("e").requests +
	    stats_of("p").requests + stats_of("q").requests, 0);
	fleet_free(h);
}
END_TEST

START_TEST(arguments)
{
	struct kvh *h = fleet_make("");
	struct kvh_call *c = send_chat(h, "long text ", 4000, "", NOW);
	const char *name;
	size_t n;

	ck_assert_int_eq(kvh_prefill(NULL, &name, &n), KVR_EINVAL);
	ck_assert_int_eq(kvh_prefill(c, NULL, &n), KVR_EINVAL);
	ck_assert_int_eq(kvh_prefill(c, &name, NULL), KVR_EINVAL);
	ck_assert_int_eq(bed_server(h, "x", "role=encode"), KVH_EVALUE);
	kvh_call_free(c);
	fleet_free(h);
}
END_TEST

Suite *suite_pool_prefill(void);

Suite *
suite_pool_prefill(void)
{
	Suite *s = suite_create("pool_prefill");
	TCase *t = tcase_create("prefill");

	tcase_add_test(t, split_and_stay);
	tcase_add_test(t, short_stays);
	tcase_add_test(t, books_both);
	tcase_add_test(t, session_stays);
	tcase_add_test(t, both_roles);
	tcase_add_test(t, none_prefills);
	tcase_add_test(t, none_decodes);
	tcase_add_test(t, full_prefills_no_more);
	tcase_add_test(t, locked);
	tcase_add_test(t, failure_of_either);
	tcase_add_test(t, failure_of_the_target);
	tcase_add_test(t, served_by_the_next);
	tcase_add_loop_test(t, each_end, 0, KVH_NOT_SEEN + 1);
	tcase_add_test(t, arguments);
	suite_add_tcase(s, t);
	return s;
}
