/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_request.c - regressions in public calls on requests: overlaps in any
 * order, ties of short prompts and of similar names. The suites model and
 * border cover ordinary use.
 */
#include "inner.h"

#include <stdio.h>

static struct kvr_decision
chosen(const struct kvr_overlap *overlaps, size_t n)
{
	struct kvr_decision d = { .size = sizeof(d) };

	ck_assert_int_eq(kvr_choose(k, p, NULL, overlaps, sizeof(*overlaps), n,
	    1, &d), KVR_OK);
	return d;
}

/* Whatever the order, each overlap is its own worker's. */
START_TEST(overlaps_in_any_order)
{
	struct kvr_overlap two[2] = { { .blocks = 2 }, { .blocks = 15 } };
	uint32_t a, b, i;

	for (a = 0; a < WORKERS; a++)
		for (b = 0; b < WORKERS; b++)
			for (i = 0; a != b && i < 2; i++) {
				say("abcdefghijklmnop");
				two[i] = (struct kvr_overlap){
				    .worker = id[a], .blocks = 2 };
				two[1 - i] = (struct kvr_overlap){
				    .worker = id[b], .blocks = 15 };
				ck_assert_uint_eq(chosen(two, 2).worker, id[b]);
				ck_assert_uint_eq(
				    chosen(two, 2).overlap_blocks, 15);
			}
}
END_TEST

/* An overlap of a worker that has left, or never was, is ignored. */
START_TEST(overlaps_of_no_worker)
{
	struct kvr_overlap two[2] = { { .blocks = 15 }, { .blocks = 2 } };
	struct {
		struct kvr_overlap overlap;
		uint64_t later;
	} longer[2] = { { .later = 0 } };
	struct kvr_decision d = { .size = sizeof(d) };

	say("abcdefghijklmnop");
	two[0].worker = id[3];
	two[1].worker = id[1];
	ck_assert_uint_eq(chosen(two, 2).worker, id[3]);
	ck_assert_int_eq(kvr_worker_remove(k, id[3]), KVR_OK);
	ck_assert_uint_eq(chosen(two, 2).worker, id[1]);
	two[0].worker = 0;
	ck_assert_uint_eq(chosen(two, 2).worker, id[1]);
	/* the same for a caller with a longer struct */
	longer[0].overlap = two[0];
	longer[1].overlap = two[1];
	ck_assert_int_eq(kvr_choose(k, p, NULL, &longer[0].overlap,
	    sizeof(longer[0]), 2, 1, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[1]);
	ck_assert_uint_eq(chosen(two, 2).overlap_blocks, 2);
}
END_TEST

/* Prompts that differ only in their last, incomplete block. */
START_TEST(ties_see_the_tail)
{
	struct kvr_options o = small_options();
	uint32_t tokens[31] = { 1 }, i, n, taken[WORKERS] = { 0 };

	o.block_size = 16;
	region_of(&o);
	for (i = 0; i < 400; i++) {
		tokens[30] = i;
		ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, 31),
		    KVR_OK);
		for (n = 0; n < WORKERS; n++)
			taken[n] += chosen(NULL, 0).worker == id[n];
	}
	for (n = 0; n < WORKERS; n++)
		ck_assert_uint_gt(taken[n], 50); /* 100 are fair: 5 sigma */
	region_end();
}
END_TEST

/* More overlaps are given than there can be workers. */
START_TEST(overlaps_without_number)
{
	struct kvr_overlap many[64];
	uint32_t i;

	ck_assert_uint_lt(k->layout.slots, 64);
	for (i = 0; i < 64; i++)
		many[i] = (struct kvr_overlap){ .worker = id[i % WORKERS],
		    .blocks = i < 60 ? 1 : i - 58 };
	say_long(16, 16, 1);
	ck_assert_uint_eq(chosen(many, 64).worker, id[3]);
	ck_assert_uint_eq(chosen(many, 64).overlap_blocks, 5);
	ck_assert_uint_eq(chosen(NULL, 0).overlap_blocks, 0);
	ck_assert_uint_eq(matched(k), 0);
}
END_TEST

/* ------------------------------------------------- the order of workers --- */

enum { FLEET = 20 };

static struct kvr *
fleet_of(bool upwards, uint64_t *ids)
{
	struct kvr_options o = small_options();
	struct kvr_worker facts;
	struct kvr *fleet;
	char name[8];
	uint32_t n, i;

	o.max_workers = 2 * FLEET;
	ck_assert_int_eq(kvr_new(&o, &fleet), KVR_OK);
	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	for (n = 0; n < 2 * FLEET; n++) {
		i = upwards ? n : 2 * FLEET - 1 - n;
		facts.rank = i % 2;
		ck_assert_int_eq(kvr_worker_add(fleet, name,
		    (size_t)snprintf(name, sizeof(name), "w%u", i / 2), &facts,
		    &ids[i]), KVR_OK);
	}
	return fleet;
}

/* Idle workers all tie; the choice depends only on their names. */
START_TEST(order_of_adding)
{
	uint64_t up[2 * FLEET], down[2 * FLEET];
	struct kvr *a = fleet_of(true, up), *b = fleet_of(false, down);
	struct kvr_decision x = { .size = sizeof(x) };
	struct kvr_decision y = { .size = sizeof(y) };
	uint32_t i, n, taken[2 * FLEET] = { 0 };

	for (i = 0; i < 4000; i++) {
		say_long(16, 0, i);
		ck_assert_int_eq(kvr_route(a, p, NULL, 1, &x), KVR_OK);
		ck_assert_int_eq(kvr_route(b, p, NULL, 1, &y), KVR_OK);
		for (n = 0; n < 2 * FLEET && up[n] != x.worker;)
			n++;
		ck_assert_uint_lt(n, 2 * FLEET);
		ck_assert_uint_eq(y.worker, down[n]);
		taken[n]++;
	}
	for (n = 0; n < 2 * FLEET; n++)
		ck_assert_uint_gt(taken[n], 40); /* 100 are fair: 6 sigma */
	kvr_free(a);
	kvr_free(b);
}
END_TEST

Suite *suite_request(void);

Suite *
suite_request(void)
{
	Suite *s = suite_create("request");
	TCase *t = small_case(s, "small");

	tcase_add_test(t, overlaps_in_any_order);
	tcase_add_test(t, overlaps_of_no_worker);
	tcase_add_test(t, overlaps_without_number);
	tcase_add_test(t, order_of_adding);
	t = tcase_create("own region");
	tcase_add_test(t, ties_see_the_tail);
	suite_add_tcase(s, t);
	return s;
}
