/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * damage.h - one good region that has a bit of everything, for suites that
 * damage one thing in it at a time and look whether kvr_check finds that.
 */
#ifndef TESTS_DAMAGE_H
#define TESTS_DAMAGE_H

#include "check.h"
#include "lease.h"

#include "inner.h"

enum { FLEET = 8, BYTES = 64 << 10 };

static void *memory, *good;
static uint64_t one, two;       /* leases */
static uint32_t stem, fork, leaf, wide; /* nodes: see setup */

static inline void
fill(void)
{
	struct kvr_load load = { .size = sizeof(load), .prefill_tokens = 5,
	    .active_blocks = 6, .requests = 7 };
	uint32_t i;

	observe(0, "abcdef", 1);
	observe(1, "abcdxy", 2);
	observe(2, "abcd", 3);
	for (i = 1; i < FLEET; i++)
		observe(i, "ab", 4);
	one = reserve(0, "abcdefgh", 5);
	commit(one, 5);
	observe(0, "abcd", 5); /* an entry for each node */
	observe(0, "ab", 5);
	two = reserve(1, "abcdxyz", 6);
	ck_assert_int_eq(kvr_lease_output(k, two, 3, 6, 0), KVR_OK);
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	say_long(300, 300, 0);
	must(observed(2, 7) == 300);
	observe(2, "mn", 8);
	observe(2, "op", 9);
	/* a long run that is free again, as a whole */
	say_long(600, 0, 1);
	must(observed(6, 10) == 600);
	ck_assert_int_eq(kvr_worker_reset(k, id[6], &id[6]), KVR_OK);
	ck_assert_uint_eq(expire(10, 100), 0);
	/* and a retired worker with entries */
	observe(7, "qr", 11);
	ck_assert_int_eq(kvr_worker_remove(k, id[7]), KVR_OK);
}

/*
 *	stem [ab]   held by many, in two groups
 *	fork [cd]   held by three, in one group
 *	leaf [efgh] held by worker 0 alone, pinned by lease one
 *	wide        a run of 300 blocks
 */
static inline void
setup(void)
{
	struct kvr_options o = small_options();

	o.max_workers = FLEET;
	memory = aligned_alloc(CELL, BYTES);
	good = malloc(BYTES);
	ck_assert(memory != NULL && good != NULL);
	memset(memory, 0, BYTES);
	ck_assert_int_eq(kvr_new_at(&o, memory, BYTES, &k), KVR_OK);
	people(FLEET);
	fill();
	ck_tree("?:2 ab:0!1!2345-(cd:0!1!2(efgh:0! xy:1!(z:1!))) mn:2 op:2 "
	    "qr:-");
	stem = child_of(0, 'a');
	fork = child_of(stem, 'c');
	leaf = child_of(fork, 'e');
	wide = child_of(0, '?');
	memcpy(good, memory, BYTES);
}

static inline void
teardown(void)
{
	region_end();
	free(memory);
	free(good);
}

static inline struct node *
N(uint32_t node)
{
	return node_at(k, node);
}

/* The entry of a worker's slot on a node. */
static inline struct entry *
H(uint32_t node, uint32_t slot)
{
	return entry_at(k, entry_find(k, node, slot));
}

static inline struct lease *
L(uint64_t lease)
{
	return lease_at(k, lease_find(k, lease));
}

static inline struct group *
G(uint32_t node)
{
	return &cell_at(k, node_at(k, node)->entries)->group;
}

/* An entry's stamp, and the copy of it. */
static inline void
stamp_both(uint32_t node, uint32_t slot, int64_t stamp)
{
	struct entry *h = H(node, slot);

	h->stamp = stamp;
	if (h->group == 0)
		N(node)->stamp = stamp;
	else
		cell_at(k, h->group)->group.stamp[entry_lane(h)] = stamp;
}

/*
 * Worker 4 goes by capacity. The end of "stuvwxyz" was evicted; since then an
 * output of unknown tokens was left, and a request is running.
 */
static uint64_t three;

static inline void
cache_setup(void)
{
	struct kvr_report r = { .size = sizeof(r), .completion_tokens = 5 };
	struct kvr_worker f;
	uint64_t lease;

	setup();
	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.capacity_tokens = 25;
	ck_assert_int_eq(kvr_worker_set(k, id[4], &f), KVR_OK);
	observe(4, "stuvwxyz", 20);
	lease = reserve(4, "mnop", 21);
	ck_assert_int_eq(kvr_lease_finish(k, lease, &r, 21, 0), KVR_OK);
	three = reserve(4, "qr", 22);
	commit(three, 22);
	f.capacity_tokens = 23;
	ck_assert_int_eq(kvr_worker_set(k, id[4], &f), KVR_OK);
	region_sound();
	memcpy(good, memory, BYTES);
}

/* The first idle entry of worker 4 that is, or is not, anonymous. */
static inline struct entry *
idle_hold(bool anonymous)
{
	uint32_t i = slot_at(k, 4)->by_release.head;

	while (i != 0 && (entry_at(k, i)->node == 0) != anonymous)
		i = entry_at(k, i)->release_next;
	ck_assert_uint_ne(i, 0);
	return entry_at(k, i);
}

/* Makes a change, checks that it is found, and repairs it. */
#define FOUND(change) do { \
	int error_; \
	change; \
	error_ = kvr_check(k); \
	memcpy(memory, good, BYTES); \
	ck_assert_msg(error_ == KVR_ECORRUPT, "not found: %s", #change); \
} while (0)

/* The same of a figure: it is found to be no more, and all that is repaired. */
#define MENDED(change) do { \
	char *tree_ = strdup(drawn()); \
	change; \
	ck_assert_msg(kvr_check(k) == KVR_EINEXACT, "not found, or found to " \
	    "be worse: %s", #change); \
	ck_assert_int_eq(check_mend(k), KVR_OK); \
	ck_assert_msg(kvr_check(k) == KVR_OK, "not mended: %s", #change); \
	ck_assert_str_eq(drawn(), tree_); \
	memcpy(memory, good, BYTES); \
	free(tree_); \
} while (0)

#endif
