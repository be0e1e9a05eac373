/* SPDX-License-Identifier: BSD-2-Clause */
/* test_refusal.c - errors of requests that no server has answered. */
#include "test.h"

#include <string.h>

#include "refusal.h"
#include "sink.h"

static struct sink sink;

static void
ck_written(const struct refusal *r, const char *text)
{
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	refusal_write(r, &sink.writer);
	ck_assert(!sink.writer.failed);
	ck_assert_uint_le(sink.length, REFUSAL_BYTES);
	ck_assert_str_eq(sink.text, text);
}

START_TEST(those_that_may_wait_come_back)
{
	struct refusal r = refusal_of(REASON_QUEUE_FULL, false);

	ck_assert_uint_eq(r.status, 503);
	ck_assert(r.again);
	ck_written(&r, "{\"error\":{\"message\":\"all servers are full, and no "
	    "more requests may wait\",\"type\":\"kvroute\",\"code\":\""
	    "queue_full\"}}\n");
	r = refusal_of(REASON_QUEUE_TIMEOUT, true);
	ck_assert_uint_eq(r.status, 503);
	ck_assert(r.again);
	ck_assert_str_eq(r.code, "queue_timeout");
}
END_TEST

START_TEST(others_keep_their_status)
{
	struct refusal r = refusal_of(REASON_STATE_BUSY, false);

	ck_assert_uint_eq(r.status, 0);
	ck_assert(!r.again);
	ck_assert_str_eq(r.code, "state_busy");
	ck_assert_str_eq(refusal_of(REASON_COST, true).why,
	    "no server has answered in time");
	ck_assert_str_eq(refusal_of(REASON_COST, false).why,
	    "no server could answer");
	r = refusal_invalid("a \"field\" is missing");
	ck_written(&r, "{\"error\":{\"message\":\"a \\\"field\\\" is missing\","
	    "\"type\":\"kvroute\",\"code\":\"invalid_request\"}}\n");
}
END_TEST

START_TEST(a_writer_may_fail)
{
	struct refusal r = refusal_invalid("no");

	sink_begin(&sink, 4, SIZE_MAX);
	refusal_write(&r, &sink.writer);
	ck_assert(sink.writer.failed);
}
END_TEST

Suite *suite_refusal(void);

Suite *
suite_refusal(void)
{
	Suite *suite = suite_create("refusal");
	TCase *t = tcase_create("refusal");

	tcase_add_test(t, those_that_may_wait_come_back);
	tcase_add_test(t, others_keep_their_status);
	tcase_add_test(t, a_writer_may_fail);
	suite_add_tcase(suite, t);
	return suite;
}
