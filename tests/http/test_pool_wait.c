/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pool_wait.c - requests that wait for a server. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kvroute.h"
#include "pool_bed.h"

#define CHAT "/v1/chat/completions"
#define NOW (100 * BED_SECOND)
#define MS (BED_SECOND / 1000)

static struct kvh *pool;
static unsigned sent;

/* Two servers of one request each, and a line. */
static void
begin(const char *options)
{
	pool = bed_pool(options, 0);
	ck_assert_ptr_nonnull(pool);
	ck_assert_int_eq(bed_server(pool, "a", "max_conns=1"), 0);
	ck_assert_int_eq(bed_server(pool, "b", "max_conns=1"), 0);
}

static struct kvh_call *
request(struct kvh *h, int64_t now)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "text %u ", sent++);
	return bed_request(h, CHAT, NULL, bed_chat(text, 600, ""), now);
}

/* One that has a server. */
static struct kvh_call *
runs(int64_t now)
{
	struct kvh_call *c = request(pool, now);

	ck_assert_int_eq(kvh_pick(c, now, NULL), 0);
	return c;
}

/* One that waits. */
static struct kvh_call *
waits(int64_t now)
{
	struct kvh_call *c = request(pool, now);

	ck_assert_int_eq(kvh_pick(c, now, NULL), KVH_EFULL);
	ck_assert_int_eq(kvh_wait(c, now), 0);
	return c;
}

/* n requests, one each `step`: the first two run, the others wait. */
static void
line_up(struct kvh_call **c, int n, int64_t step)
{
	int i;

	for (i = 0; i < n; i++)
		c[i] = (i < 2 ? runs : waits)(NOW + i * step);
}

static struct kvh_call *
turn(struct kvh *h, int64_t now)
{
	struct kvh_call *c = NULL;
	int error = kvh_turn(h, now, &c);

	ck_assert_int_eq(error, c == NULL ? KVH_EEND : 0);
	return c;
}

static void
ends(struct kvh_call *c, int64_t now)
{
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", bed_json,
	    0, now));
	kvh_call_free(c);
}

/* As many are woken as there is room for, in the order in which they came. */
START_TEST(in_order)
{
	struct kvh_call *c[6];
	int i;

	begin("queue=3");
	line_up(c, 5, MS);
	c[5] = request(pool, NOW + 5 * MS);
	ck_assert_int_eq(kvh_pick(c[5], NOW + 5 * MS, NULL), KVH_EFULL);
	ck_assert_int_eq(kvh_wait(c[5], NOW + 5 * MS), KVH_EFULL);
	ck_assert_str_eq(bed_word(c[5], KVH_REASON_WORD), "queue_full");
	ck_assert_int_eq(bed_count_at(pool, "waiting", NOW + 5 * MS), 3);
	ck_assert_int_eq(bed_count(pool, "most"), 3);
	ck_assert_ptr_null(turn(pool, NOW + 6 * MS));
	ends(c[0], NOW + 7 * MS);
	/* There is room, but not for one that has just come. */
	ck_assert_int_eq(kvh_pick(c[5], NOW + 8 * MS, NULL), KVH_EFULL);
	ck_assert_ptr_eq(turn(pool, NOW + 8 * MS), c[2]);
	ck_assert_ptr_null(turn(pool, NOW + 8 * MS));
	ck_assert_int_eq(kvh_pick(c[5], NOW + 9 * MS, NULL), KVH_EFULL);
	ck_assert_int_eq(kvh_pick(c[2], NOW + 9 * MS, NULL), 0);
	ends(c[1], NOW + 10 * MS);
	ends(c[2], NOW + 10 * MS);
	ck_assert_ptr_eq(turn(pool, NOW + 11 * MS), c[3]);
	ck_assert_ptr_eq(turn(pool, NOW + 11 * MS), c[4]);
	ck_assert_ptr_null(turn(pool, NOW + 11 * MS));
	for (i = 3; i < 5; i++) {
		ck_assert_int_eq(kvh_pick(c[i], NOW + 12 * MS, NULL), 0);
		ends(c[i], NOW + 13 * MS);
	}
	kvh_call_free(c[5]);
	ck_assert_int_eq(bed_count(pool, "queued"), 3);
	ck_assert_int_eq(bed_count(pool, "queue_full"), 1);
	ck_assert_int_eq(bed_count(pool, "no_worker"), 1);
	kvh_free(pool);
}
END_TEST

/* While a thread has one that was woken no other thread is given it. */
START_TEST(picked_by_one_thread)
{
	struct kvh_call *c[4];
	char name[8];

	begin("queue=8");
	line_up(c, 4, MS);
	(void)snprintf(name, sizeof(name), "%s", bed_target(c[0]));
	ends(c[0], NOW + 5 * MS);
	ck_assert_ptr_eq(turn(pool, NOW + 5 * MS), c[2]);
	ck_assert_int_eq(bed_server(pool, name, "state=down"), 0);
	ck_assert_int_eq(kvh_pick(c[2], NOW + 5 * MS, NULL), KVH_EFULL);
	ck_assert_int_eq(bed_server(pool, name, "max_conns=1"), 0);
	/* Nor one that came later, nor any when its time is over. */
	ck_assert_ptr_null(turn(pool, NOW + 6 * MS));
	ck_assert_ptr_eq(turn(pool, NOW + 3600 * BED_SECOND), c[3]);
	ck_assert_ptr_null(turn(pool, NOW + 3600 * BED_SECOND));
	kvh_call_free(c[3]);
	ck_assert_int_eq(kvh_wait(c[2], NOW + 7 * MS), 0);
	ck_assert_ptr_eq(turn(pool, NOW + 8 * MS), c[2]);
	ck_assert_int_eq(kvh_pick(c[2], NOW + 8 * MS, NULL), 0);
	ends(c[1], NOW + 9 * MS);
	ends(c[2], NOW + 9 * MS);
	kvh_free(pool);
}
END_TEST

/* One that is woken in vain waits on, and goes when there is room. */
START_TEST(woken_in_vain)
{
	struct kvh_call *c[4], *next;
	char name[8];
	int i;

	begin("queue=8");
	/* They have come in the same millisecond. */
	line_up(c, 4, 0);
	(void)snprintf(name, sizeof(name), "%s", bed_target(c[0]));
	ends(c[0], NOW + MS);
	ck_assert_ptr_eq(turn(pool, NOW + MS), c[2]);
	ck_assert_int_eq(bed_server(pool, name, "state=down"), 0);
	ck_assert_int_eq(kvh_pick(c[2], NOW + 2 * MS, NULL), KVH_EFULL);
	ck_assert_int_eq(kvh_wait(c[2], NOW + 2 * MS), 0);
	ck_assert_ptr_null(turn(pool, NOW + 3 * MS));
	ck_assert_int_eq(bed_server(pool, name, "max_conns=1"), 0);
	for (i = 0; i < 2; i++) {
		next = turn(pool, NOW + (4 + i) * MS);
		ck_assert_ptr_nonnull(next);
		ck_assert_int_eq(kvh_pick(next, NOW + (4 + i) * MS, NULL), 0);
		ends(next, NOW + (4 + i) * MS);
	}
	ends(c[1], NOW + 6 * MS);
	ck_assert_int_eq(bed_count(pool, "queued"), 2);
	kvh_free(pool);
}
END_TEST

START_TEST(no_longer_than_that)
{
	struct kvh_call *c[3];
	int64_t next = 0;

	begin("queue=8 queue_timeout=2s");
	c[0] = runs(NOW);
	c[1] = runs(NOW);
	c[2] = waits(NOW);
	ck_assert_ptr_null(turn(pool, NOW + BED_SECOND));
	ck_assert_int_eq(kvh_tick(pool, NOW + BED_SECOND, &next), 0);
	ck_assert_int_le(next - NOW - BED_SECOND, 20 * MS);
	ck_assert_ptr_eq(turn(pool, NOW + 2 * BED_SECOND), c[2]);
	ck_assert_int_eq(kvh_pick(c[2], NOW + 2 * BED_SECOND, NULL),
	    KVH_EFULL);
	ck_assert_str_eq(bed_word(c[2], KVH_REASON_WORD), "queue_timeout");
	ck_assert_int_eq(kvh_wait(c[2], NOW + 2 * BED_SECOND), KVH_EFULL);
	ck_assert_ptr_null(turn(pool, NOW + 3 * BED_SECOND));
	ck_assert_int_eq(bed_count(pool, "queue_timeout"), 1);
	kvh_call_free(c[2]);
	ck_assert_int_eq(bed_count(pool, "queue_timeout"), 1);
	ends(c[0], NOW + 3 * BED_SECOND);
	ends(c[1], NOW + 3 * BED_SECOND);
	kvh_free(pool);
}
END_TEST

/* A client leaves while its request waits, or was woken. */
START_TEST(given_up)
{
	struct kvh_call *c[5];

	begin("queue=8");
	line_up(c, 5, MS);
	kvh_call_free(c[2]);
	ends(c[0], NOW + 6 * MS);
	ck_assert_ptr_eq(turn(pool, NOW + 6 * MS), c[3]);
	kvh_call_free(c[3]);
	ck_assert_ptr_eq(turn(pool, NOW + 7 * MS), c[4]);
	ck_assert_int_eq(kvh_pick(c[4], NOW + 7 * MS, NULL), 0);
	ends(c[4], NOW + 8 * MS);
	ends(c[1], NOW + 8 * MS);
	kvh_free(pool);
}
END_TEST

/* One that may go to a single server waits for that, and in nobody's way. */
START_TEST(for_one_server)
{
	struct kvh_call *c[4];
	char name[8];

	begin("queue=8");
	c[0] = runs(NOW);
	(void)snprintf(name, sizeof(name), "%s", bed_target(c[0]));
	c[1] = runs(NOW);
	c[2] = request(pool, NOW + MS);
	ck_assert_int_eq(kvh_allow(c[2], name, 1), 0);
	ck_assert_int_eq(kvh_pick(c[2], NOW + MS, NULL), KVH_EFULL);
	ck_assert_int_eq(kvh_wait(c[2], NOW + MS), 0);
	ck_assert_int_eq(kvh_allow(c[2], "a", 1), KVH_EORDER);
	c[3] = waits(NOW + 2 * MS);
	ends(c[1], NOW + 3 * MS);
	ck_assert_ptr_eq(turn(pool, NOW + 3 * MS), c[3]);
	ck_assert_int_eq(kvh_pick(c[3], NOW + 3 * MS, NULL), 0);
	ck_assert_ptr_null(turn(pool, NOW + 4 * MS));
	ends(c[0], NOW + 5 * MS);
	ck_assert_ptr_eq(turn(pool, NOW + 5 * MS), c[2]);
	ck_assert_int_eq(kvh_pick(c[2], NOW + 5 * MS, NULL), 0);
	ck_assert_str_eq(bed_target(c[2]), name);
	ends(c[2], NOW + 6 * MS);
	ends(c[3], NOW + 6 * MS);
	kvh_free(pool);
}
END_TEST

/* A server that prefills alone is no room for those that wait. */
START_TEST(beside_a_prefiller)
{
	struct kvh_call *c[2];

	pool = bed_pool("queue=8", 0);
	ck_assert_int_eq(bed_server(pool, "a", "role=decode max_conns=1"), 0);
	ck_assert_int_eq(bed_server(pool, "p", "role=prefill"), 0);
	c[0] = runs(NOW);
	c[1] = waits(NOW + MS);
	ck_assert_ptr_null(turn(pool, NOW + 2 * MS));
	ends(c[0], NOW + 3 * MS);
	ck_assert_ptr_eq(turn(pool, NOW + 3 * MS), c[1]);
	ck_assert_int_eq(kvh_pick(c[1], NOW + 3 * MS, NULL), 0);
	ends(c[1], NOW + 4 * MS);
	kvh_free(pool);
}
END_TEST

/* The line has one length for all doors on a region, and one order. */
START_TEST(of_two_doors)
{
	static const char options[] = "size=8m queue=2";
	char path[BED_PATH];
	struct kvh *h[2] = { NULL };
	struct kvh_call *c[4];
	int i;

	bed_file(path);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(kvh_open(path, strlen(path), options,
		    strlen(options), NULL, &h[i]), 0);
		ck_assert_int_eq(bed_server(h[i], "a", "max_conns=1"), 0);
	}
	pool = h[0];
	c[0] = runs(NOW);
	for (i = 1; i < 4; i++) {
		c[i] = request(h[i % 2], NOW + i * MS);
		ck_assert_int_eq(kvh_pick(c[i], NOW + i * MS, NULL),
		    KVH_EFULL);
		ck_assert_int_eq(kvh_wait(c[i], NOW + i * MS), i < 3 ? 0 :
		    KVH_EFULL);
	}
	ends(c[0], NOW + 5 * MS);
	/* c[1] of the other door is older. */
	ck_assert_ptr_eq(turn(h[0], NOW + 5 * MS), c[2]);
	ck_assert_int_eq(kvh_pick(c[2], NOW + 5 * MS, NULL), KVH_EFULL);
	ck_assert_int_eq(kvh_wait(c[2], NOW + 5 * MS), 0);
	ck_assert_ptr_eq(turn(h[1], NOW + 6 * MS), c[1]);
	ck_assert_int_eq(kvh_pick(c[1], NOW + 6 * MS, NULL), 0);
	ends(c[1], NOW + 7 * MS);
	ck_assert_ptr_eq(turn(h[0], NOW + 7 * MS), c[2]);
	ck_assert_int_eq(kvh_pick(c[2], NOW + 7 * MS, NULL), 0);
	ends(c[2], NOW + 8 * MS);
	kvh_call_free(c[3]);
	kvh_free(h[0]);
	kvh_free(h[1]);
	bed_file_end(path);
}
END_TEST

Suite *suite_pool_wait(void);

Suite *
suite_pool_wait(void)
{
	Suite *s = suite_create("pool_wait");
	TCase *t = tcase_create("pool_wait");

	tcase_add_test(t, in_order);
	tcase_add_test(t, picked_by_one_thread);
	tcase_add_test(t, woken_in_vain);
	tcase_add_test(t, no_longer_than_that);
	tcase_add_test(t, given_up);
	tcase_add_test(t, for_one_server);
	tcase_add_test(t, beside_a_prefiller);
	tcase_add_test(t, of_two_doors);
	suite_add_tcase(s, t);
	return s;
}
