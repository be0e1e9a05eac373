/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_settle.c - in which order costs are settled, and where that ends.
 *
 * The cost here is a number of each worker's, less the blocks that it can be
 * expected to have: of 100, some.
 */
#include "route.h"
#include "settle.h"
#include "survival.h"
#include "set.h"

#include "inner.h"

#include <stdio.h>

enum { FLEET = 300, BLOCKS = 100 };

static uint64_t worker[FLEET];
static double above[2 * FLEET];   /* what each costs beside its blocks */
static uint32_t asked[4 * FLEET]; /* the slots whose costs were settled */
static uint32_t n_asked;
static double kept; /* of the blocks of each */
static struct question t;
static struct found_set set;

static double
cost_here(const struct question *q, uint32_t slot, const struct kvr_overlap *o,
    double held)
{
	(void)q;
	must(o->blocks == BLOCKS);
	asked[n_asked++] = slot;
	return 1000 + above[slot] - held;
}

/* All hold the prompt; of each, reports say that some has been lost. */
static void
setup(void)
{
	struct kvr_options o = small_options();
	struct kvr_worker f;
	char name[16];
	uint32_t i;

	o.region_bytes = 8 << 20;
	o.max_workers = FLEET;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	people(0);
	(void)kvr_worker_init(&f, sizeof(f));
	f.retain = KVR_RETAIN_FEEDBACK;
	say_long(BLOCKS, 0, 1);
	for (i = 0; i < FLEET; i++) {
		snprintf(name, sizeof(name), "%u", (unsigned)i);
		ck_assert_int_eq(kvr_worker_add(k, name, strlen(name), &f,
		    &worker[i]), KVR_OK);
		ck_assert_int_eq(kvr_observe(k, p, worker[i], 1, 0, NULL),
		    KVR_OK);
		survival_note(k, id_slot(worker[i]), 0, 1e6, true);
		survival_note(k, id_slot(worker[i]), 0, 3e5, false);
		survival_update(k, id_slot(worker[i]));
		above[id_slot(worker[i])] = i * 7 % FLEET;
	}
	kept = BLOCKS * survival_of(k, id_slot(worker[0]), 0);
	ck_assert(kept > 30 && kept < 70);
	say_long(BLOCKS + 1, 0, 1);
}

static bool
is_settled(uint32_t slot)
{
	double cost = 1000 + above[slot] - set.costs[slot];

	return cost > kept - 0.001 && cost < kept + 0.001;
}

static double
settled(bool all, uint64_t steps)
{
	static struct kvr_overlap rows[2 * FLEET];
	static uint32_t places[2 * FLEET], base;
	static struct found_end ends[2 * FLEET];
	static struct path_node nodes[PATH_NODES];
	static int64_t stamps[2 * FLEET];
	static double costs[2 * FLEET];
	struct settle s = { cost_here, 0, all };
	struct kvr_request r;
	uint32_t i;

	if (base == 0)
		base = 1;
	set = (struct found_set){ .room = 2 * FLEET, .rows = rows,
		.found = rows, .places = places, .next_base = &base,
		.ends = ends, .nodes = nodes, .stamps = stamps,
		.costs = costs };
	(void)kvr_request_init(&r, sizeof(r));
	match_overlaps(k, p, 1, &set);
	ck_assert_uint_eq(set.count, FLEET);
	ck_assert_int_eq(route_begin(&t, k, p, &r, &set, 1), KVR_OK);
	for (i = 0; i < 2 * FLEET; i++)
		costs[i] = 1000 + above[i] - BLOCKS;
	n_asked = 0;
	set.most = set.steps + steps;
	return settle_costs(&t, t.take, &s);
}

/* Those that could be the lowest, and no others, from the lowest on. */
START_TEST(the_lowest_first)
{
	double lowest = settled(false, 100000);
	uint32_t i;

	ck_assert(is_settled(asked[0]) && lowest == set.costs[asked[0]]);
	ck_assert_uint_eq(n_asked, 1 + (uint32_t)(BLOCKS - kept));
	for (i = 0; i < n_asked; i++)
		ck_assert(above[asked[i]] == i);
}
END_TEST

START_TEST(all_of_them)
{
	uint32_t i;

	(void)settled(true, 100000);
	ck_assert_uint_eq(n_asked, FLEET);
	for (i = 0; i < FLEET; i++)
		ck_assert(above[asked[i]] == i && is_settled(asked[i]));
}
END_TEST

/* Where the steps end, the others that matter have lost all. */
START_TEST(steps_that_end)
{
	uint32_t i, settled_ones;
	uint64_t steps;

	for (steps = 0; steps < 400; steps += 30) {
		(void)settled(true, steps);
		ck_assert_uint_eq(n_asked, FLEET);
		for (i = 0; i < FLEET && is_settled(asked[i]); i++)
			ck_assert(above[asked[i]] == i);
		settled_ones = i;
		ck_assert_uint_le(settled_ones, steps / 2);
		ck_assert(steps < 30 || settled_ones > steps / 8);
		for (; i < FLEET; i++)
			ck_assert(set.costs[asked[i]] ==
			    1000 + above[asked[i]]);
		ck_assert_uint_le(set.steps, set.most + 16);
	}
	/* a cost that no other can reach is as it was */
	(void)settled(false, 30);
	for (i = 0; i < FLEET; i++)
		ck_assert(set.costs[id_slot(worker[i])] >= 900 +
		    above[id_slot(worker[i])]);
	ck_assert_uint_lt(n_asked, FLEET);
}
END_TEST

/* Equal costs are settled in the order of their lots: of no slot. */
START_TEST(ties_by_lot)
{
	static uint32_t before[FLEET];
	uint32_t i;

	memset(above, 0, sizeof(above));
	(void)settled(true, 100000);
	memcpy(before, asked, sizeof(before));
	(void)settled(true, 60);
	for (i = 0; i < 8; i++)
		ck_assert_uint_eq(asked[i], before[i]);
	say_long(BLOCKS + 2, 0, 1);
	(void)settled(true, 100000);
	ck_assert_mem_ne(before, asked, sizeof(before));
	for (i = 1; i < FLEET && before[i] > before[i - 1]; i++)
		;
	ck_assert_uint_lt(i, 50);
}
END_TEST

Suite *suite_settle(void);

Suite *
suite_settle(void)
{
	Suite *s = suite_create("settle");
	TCase *c = tcase_create("settle");

	tcase_add_checked_fixture(c, setup, region_end);
	suite_add_tcase(s, c);
	tcase_add_test(c, the_lowest_first);
	tcase_add_test(c, all_of_them);
	tcase_add_test(c, steps_that_end);
	tcase_add_test(c, ties_by_lot);
	return s;
}
