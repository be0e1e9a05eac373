/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pool_nomem.c - allocations of a pool fail.
 *
 * A whole life is run with its first allocation failing, then its second, and
 * so on, once and for good. Calls may fail, but a request that is begun can be
 * ended, nothing of it stays, and with memory the next one is as always.
 */
#include "test.h"

#include <string.h>

#include "alloc.h"
#include "kvroute.h"
#include "pool_bed.h"

#define NOW (100 * BED_SECOND)

static const char options[] = "size=2m gray=4 slow_start=1s trace=on "
    "affinity_key=auto ignore_line=^x";

/* A request of a stream that is rewritten, with a salt and a failure. */
static int
life_pass(struct kvh *h, int64_t now)
{
	static char out[2 * KVH_WRITE_MORE];
	const char *body = bed_chat("w ", 3000, "],\"stream\":true");
	struct kvh_call *c = NULL;
	const char *text;
	uint32_t rewrites = 0, targets, i;
	uint64_t cut;
	int64_t offset;
	size_t n;
	int error, first = 0;

	error = kvh_begin(h, "POST", 4, "/v1/chat/completions", 20, now, &c);
	if (error != 0)
		return error;
#define keep(call) (error = (call), first = first == 0 ? error : first)
	keep(kvh_header(c, "x-session-id", 12, "s", 1));
	keep(kvh_tell(c, KVH_TOLD_SALT, "s", 1));
	keep(kvh_body(c, body, strlen(body)));
	keep(kvh_body_end(c, 1));
	keep(kvh_word(c, KVH_EXPLAIN, &text, &n));
	keep(kvh_allow(c, "a", 1));
	keep(kvh_allow(c, "b", 1));
	keep(kvh_pick(c, now, &targets));
	keep(kvh_failed(c, KVH_BROKE, 0, now));
	keep(kvh_pick(c, now, &targets));
	for (i = 0; kvh_edit(c, i, &offset, &cut, &text, &n) == 0; i++)
		continue;
	keep(kvh_response(c, 200, "text/event-stream", 17, "", 0, "", 0, now,
	    &rewrites));
	if (error == 0)
		keep(kvh_response_data(c, bed_stream, strlen(bed_stream), now,
		    out, sizeof(out), &n));
	keep(kvh_end(c, KVH_WHOLE, now, out, sizeof(out), &n));
#undef keep
	kvh_call_free(c);
	return first;
}

static void
pool_fill(struct kvh *h, int *error)
{
	*error = bed_server(h, "a", "");
	if (*error == 0)
		*error = bed_server(h, "b", "ranks=2");
}

/* One attempt; false: it needed fewer allocations. */
static bool
attempt(unsigned long n, bool for_good)
{
	struct kvh *h = NULL;
	int error, later = 0;
	bool failed;

	if (for_good)
		alloc_fail_from(n);
	else
		alloc_fail_at(n);
	error = kvh_open("", 0, options, strlen(options), NULL, &h);
	if (error == 0)
		pool_fill(h, &error);
	if (error == 0)
		later = life_pass(h, NOW);
	failed = alloc_count() >= n;
	alloc_reset();
	if (h == NULL) {
		ck_assert_int_ne(error, 0);
		return failed;
	}
	if (!failed)
		ck_assert_int_eq(later, 0);
	pool_fill(h, &error);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(kvh_tick(h, NOW, NULL), 0);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	ck_assert_int_eq(life_pass(h, NOW + 60 * BED_SECOND), 0);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	kvh_free(h);
	return failed;
}

START_TEST(each_allocation)
{
	unsigned long n = 1;

	while (attempt(n, _i == 1))
		n++;
	ck_assert_uint_gt(n, 30);
}
END_TEST

/* A status needs memory. */
START_TEST(status)
{
	struct kvh *h = bed_pool("gray=4", 3);
	static char text[1 << 16];
	unsigned long n;
	size_t length;
	int error = 1;

	for (n = 1; error != 0; n++) {
		alloc_fail_at(n);
		error = kvh_status(h, KVH_JSON, NOW, text, sizeof(text),
		    &length);
		alloc_reset();
		ck_assert_uint_lt(n, 30);
	}
	kvh_free(h);
}
END_TEST

Suite *suite_pool_nomem(void);

Suite *
suite_pool_nomem(void)
{
	Suite *s = suite_create("pool_nomem");
	TCase *t = tcase_create("pool_nomem");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, each_allocation, 0, 2);
	tcase_add_test(t, status);
	suite_add_tcase(s, t);
	return s;
}
