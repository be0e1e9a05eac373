/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pool_server.c - the workers of servers that come and go. */
#include "test.h"

#include <string.h>

#include "busy.h"
#include "kvroute.h"
#include "kvroute_replica.h"
#include "pool_bed.h"
#include "pool_owner.h"

#define CHAT "/v1/chat/completions"
#define NOW (100 * BED_SECOND)
enum { LOCKED = 1000000 };

/* A pool on a region of the test's. */
static struct kvr *region;

static struct kvh *
pool_on_region(uint32_t workers)
{
	struct kvr_options o;
	struct kvh *h = NULL;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = 4 << 20;
	o.unit = KVR_UNIT_BYTES;
	o.max_workers = workers;
	o.affinity_entries = 64;
	ck_assert_int_eq(kvr_new(&o, &region), 0);
	ck_assert_int_eq(kvh_new(region, "", 0, NULL, &h), 0);
	return h;
}

static void
pool_and_region_free(struct kvh *h)
{
	kvh_free(h);
	kvr_free(region);
}

static bool
worker_there(const char *name, uint32_t rank)
{
	uint64_t id;

	return kvr_worker_find(region, name, 1, rank, &id) == 0;
}

/* The time to the next tick. */
static int64_t
tick_pass(struct kvh *h, int64_t now)
{
	int64_t next = 0;

	ck_assert_int_eq(kvh_tick(h, now, &next), 0);
	return next - now;
}

/* A region that is locked keeps no worker of a server that is gone. */
START_TEST(gone_locked)
{
	struct kvh *h = pool_on_region(16);
	uint32_t rank;

	ck_assert_int_eq(bed_server(h, "a", "ranks=3"), 0);
	busy_begin(LOCKED);
	ck_assert_int_eq(bed_server(h, "a", "state=gone"), KVR_EBUSY);
	ck_assert_int_lt(tick_pass(h, NOW), BED_SECOND / 10);
	busy_end();
	for (rank = 0; rank < 3; rank++)
		ck_assert(worker_there("a", rank));
	ck_assert_int_eq(tick_pass(h, NOW + 1), BED_SECOND);
	for (rank = 0; rank < 3; rank++)
		ck_assert(!worker_there("a", rank));
	pool_and_region_free(h);
}
END_TEST

static void
lock_now(void)
{
	busy_begin(LOCKED);
}

START_TEST(fewer_ranks_locked)
{
	struct kvh *h = pool_on_region(16);

	ck_assert_int_eq(bed_server(h, "a", "ranks=3"), 0);
	/* It is looked up and put; then the lock is taken. */
	busy_call(2, lock_now);
	ck_assert_int_eq(bed_server(h, "a", "ranks=1"), 0);
	ck_assert_int_lt(tick_pass(h, NOW), BED_SECOND / 10);
	busy_end();
	ck_assert(worker_there("a", 2));
	ck_assert_int_eq(tick_pass(h, NOW + 1), BED_SECOND);
	ck_assert(worker_there("a", 0));
	ck_assert(!worker_there("a", 1));
	ck_assert(!worker_there("a", 2));
	pool_and_region_free(h);
}
END_TEST

/* An earlier run of the proxy had it; this pool never did. */
START_TEST(gone_of_an_earlier_run)
{
	struct kvh *h = pool_on_region(16);
	struct kvr_worker facts;
	uint64_t id;

	kvr_worker_init(&facts, sizeof(facts));
	for (facts.rank = 0; facts.rank < 4; facts.rank += 3) {
		ck_assert_int_eq(kvr_worker_put(region, "z", 1, &facts, &id),
		    0);
		ck_assert_int_eq(kvr_worker_put(region, "zz", 2, &facts, &id),
		    0);
	}
	busy_begin(LOCKED);
	ck_assert_int_eq(bed_server(h, "z", "state=gone"), KVR_EBUSY);
	busy_end();
	ck_assert_int_eq(bed_server(h, "z", "state=gone"), 0);
	ck_assert(!worker_there("z", 0));
	ck_assert(!worker_there("z", 3));
	ck_assert_int_eq(kvr_worker_find(region, "zz", 2, 3, &id), 0);
	pool_and_region_free(h);
}
END_TEST

/* All ranks or none: the region has no room for the others. */
START_TEST(put_in_part)
{
	struct kvh *h = pool_on_region(4);
	uint32_t rank;

	ck_assert_int_eq(bed_server(h, "a", "ranks=2"), 0);
	ck_assert_int_ne(bed_server(h, "a", "ranks=6"), 0);
	ck_assert_int_ne(bed_server(h, "b", "ranks=6"), 0);
	for (rank = 0; rank < 4; rank++) {
		ck_assert_int_eq(worker_there("a", rank), rank < 2);
		ck_assert(!worker_there("b", rank));
	}
	pool_and_region_free(h);
}
END_TEST

/* ---------------------------------------------------- during a choice --- */

static struct kvh *chosen_from;

static void
gone_meanwhile(void)
{
	ck_assert_int_eq(bed_server(chosen_from, "b", "state=gone"), 0);
	ck_assert(!worker_there("b", 0));
	ck_assert_int_eq(bed_server(chosen_from, "b", ""), 0);
	ck_assert_int_eq(bed_server(chosen_from, "b", "state=gone"), 0);
	ck_assert_int_eq(kvh_tick(chosen_from, NOW, NULL), 0);
}

/* A pool that always chooses lets go of a server all the same. */
START_TEST(gone_while_choosing)
{
	struct kvh *h = pool_on_region(16);
	struct kvh_call *c;

	chosen_from = h;
	ck_assert_int_eq(bed_server(h, "a", ""), 0);
	ck_assert_int_eq(bed_server(h, "b", ""), 0);
	/* Ids are known, so the choice is the first that takes the lock. */
	(void)tick_pass(h, NOW);
	c = bed_request(h, CHAT, NULL, bed_chat("w ", 900, ""), NOW);
	busy_call(1, gone_meanwhile);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_str_eq(bed_target(c), "a");
	kvh_call_free(c);
	ck_assert_int_eq(tick_pass(h, NOW + 1), BED_SECOND);
	pool_and_region_free(h);
}
END_TEST

static void
down_meanwhile(void)
{
	ck_assert_int_eq(bed_server(chosen_from, "a", "state=down"), 0);
}

/* A server that went down is not full. */
START_TEST(down_while_choosing)
{
	struct kvh *h = pool_on_region(16);
	struct kvh_call *c;

	chosen_from = h;
	ck_assert_int_eq(bed_server(h, "a", ""), 0);
	/* Ids are known, so the choice is the first that takes the lock. */
	(void)tick_pass(h, NOW);
	c = bed_request(h, CHAT, NULL, bed_chat("w ", 900, ""), NOW);
	busy_call(1, down_meanwhile);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), KVH_ENOSERVER);
	kvh_call_free(c);
	pool_and_region_free(h);
}
END_TEST

/* -------------------------------------------------------------- owners --- */

static void
lease_of(uint64_t owner)
{
	struct kvr_prompt *p = NULL;
	struct kvr_request r;
	struct kvr_decision d = { .size = sizeof(d) };

	ck_assert_int_eq(kvr_prompt_new(region, &p), 0);
	ck_assert_int_eq(kvr_prompt_begin(p, NULL), 0);
	ck_assert_int_eq(kvr_prompt_bytes(p, "text", 4), 0);
	ck_assert_int_eq(kvr_prompt_end(p, NULL), 0);
	kvr_request_init(&r, sizeof(r));
	r.owner = owner;
	ck_assert_int_eq(kvr_lease_open(region, p, &r, NOW, &d), 0);
	kvr_prompt_free(p);
}

/* An earlier process had this pid, and a pool of another number. */
START_TEST(owner_of_an_earlier_run)
{
	struct kvh *h = pool_on_region(16);
	const uint64_t number = UINT64_C(900) << 22;
	int i;

	ck_assert_int_eq(bed_server(h, "a", ""), 0);
	lease_of(owner_self(h));
	lease_of((owner_self(h) & ~(UINT64_C(1023) << 22)) | number);
	ck_assert_int_eq(bed_count(h, "leases"), 2);
	for (i = 0; i < 4; i++)
		(void)tick_pass(h, NOW + i);
	ck_assert_int_eq(bed_count(h, "leases"), 1);
	pool_and_region_free(h);
}
END_TEST

/* Loads of other machines end when kvroute-sync falls silent. */
START_TEST(silent_replicas)
{
	struct kvr_load load = { .size = sizeof(load), .requests = 5 };
	struct kvr_options o;
	struct kvh *h = NULL;
	uint64_t id;
	int i;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = 4 << 20;
	o.unit = KVR_UNIT_BYTES;
	o.max_workers = 16;
	o.journal_bytes = KVR_JOURNAL_MIN;
	ck_assert_int_eq(kvr_new(&o, &region), 0);
	ck_assert_int_eq(kvh_new(region, "", 0, NULL, &h), 0);
	ck_assert_int_eq(bed_server(h, "a", ""), 0);
	ck_assert_int_eq(kvr_worker_find(region, "a", 1, 0, &id), 0);
	ck_assert_int_eq(kvr_journal_beat(region, NOW), 0);
	ck_assert_int_eq(kvr_worker_set_load(region, id, KVR_LOAD_SOURCES - 1,
	    &load), 0);
	lease_of(UINT64_C(0xffffffff) << 32 | 7);
	(void)tick_pass(h, NOW + BED_SECOND);
	ck_assert_int_eq(bed_count(h, "leases"), 1);
	for (i = 4; i < 8; i++)
		(void)tick_pass(h, NOW + i * BED_SECOND);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	ck_assert_int_eq(kvr_worker_get_load(region, id, KVR_LOAD_SOURCES - 1,
	    &load), 0);
	ck_assert_uint_eq(load.requests, 0);
	pool_and_region_free(h);
}
END_TEST

/* --------------------------------------------------------- late writes --- */

static struct write_due later;

static void
bind_again(void)
{
	(void)writes_do(&chosen_from->writes, &later, NOW);
}

/* A binding that is made while an earlier one is written comes after it. */
START_TEST(bindings_keep_their_order)
{
	struct kvh *h = pool_on_region(16);
	struct write_due bind = { .kind = WRITE_BIND, .digest = 7,
	    .ttl = 100 * BED_SECOND };
	uint64_t found = 0;

	chosen_from = h;
	ck_assert_int_eq(bed_server(h, "a", ""), 0);
	ck_assert_int_eq(bed_server(h, "b", ""), 0);
	ck_assert_int_eq(kvr_worker_find(region, "a", 1, 0, &bind.id), 0);
	later = bind;
	ck_assert_int_eq(kvr_worker_find(region, "b", 1, 0, &later.id), 0);
	busy_begin(LOCKED);
	ck_assert_int_eq(writes_do(&h->writes, &bind, NOW), KVR_EBUSY);
	busy_end();
	busy_call(1, bind_again);
	ck_assert(writes_run(&h->writes, NOW));
	ck_assert_int_eq(kvr_affinity_find(region, 7, NOW, &found), 0);
	ck_assert_uint_eq(found, later.id);
	pool_and_region_free(h);
}
END_TEST

/* However long the region is locked, each lease ends. */
START_TEST(ends_are_not_lost)
{
	struct kvh *h = pool_on_region(16);
	struct write_due end = { .kind = WRITE_ABORT, .id = 1 };
	unsigned i;

	busy_begin(2 * LOCKED);
	for (i = 0; i < 20000; i++)
		ck_assert_int_eq(writes_do(&h->writes, &end, NOW), KVR_EBUSY);
	busy_end();
	ck_assert_int_eq(bed_count(h, "lost_leases"), 0);
	ck_assert_int_eq(bed_count(h, "delayed_writes"), 20000);
	pool_and_region_free(h);
}
END_TEST

Suite *suite_pool_server(void);

Suite *
suite_pool_server(void)
{
	Suite *s = suite_create("pool_server");
	TCase *t = tcase_create("pool_server");

	tcase_add_test(t, gone_locked);
	tcase_add_test(t, fewer_ranks_locked);
	tcase_add_test(t, gone_of_an_earlier_run);
	tcase_add_test(t, put_in_part);
	tcase_add_test(t, gone_while_choosing);
	tcase_add_test(t, down_while_choosing);
	tcase_add_test(t, owner_of_an_earlier_run);
	tcase_add_test(t, silent_replicas);
	tcase_add_test(t, bindings_keep_their_order);
	tcase_add_test(t, ends_are_not_lost);
	suite_add_tcase(s, t);
	return s;
}
