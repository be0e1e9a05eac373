/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_longest.c - the measure of a choice: the longest overlap of an eligible
 * worker, and the tokens that are expected there.
 */
#include "longest.h"

#include "match.h"
#include "scene.h"
#include "test.h"

static struct found_end ends[4];

static uint32_t
longest(uint32_t slot)
{
	ck_assert_int_eq(scene_begin(), KVR_OK);
	return longest_slot(&scene.t, slot);
}

START_TEST(of_those_found)
{
	scene_of(5);
	ck_assert_uint_eq(longest(3), 3);
	scene_overlap(1, 2, 0);
	scene_overlap(0, 3, 0);
	scene_overlap(4, 1, 0);
	ck_assert_uint_eq(longest(3), 0);
	ck_assert_uint_eq(longest(4), 0);
	ck_assert_uint_eq(longest(0), 0);
	/* of equals none is better than the one there is */
	scene_overlap(2, 3, 0);
	ck_assert_uint_eq(longest(2), 2);
	ck_assert_uint_eq(longest(1), 0);
}
END_TEST

START_TEST(of_the_eligible)
{
	scene_of(5);
	scene_overlap(0, 4, 0);
	scene_overlap(1, 3, 0);
	scene_overlap(2, 2, 0);
	scene.slots[0].state = KVR_STATE_DRAINING;
	ck_assert_uint_eq(longest(4), 1);
	scene.r.n_excluded = 1;
	scene.r.excluded[0] = scene_id(1);
	ck_assert_uint_eq(longest(4), 2);
	scene.r.pinned = scene_id(3);
	ck_assert_uint_eq(longest(3), 3);
}
END_TEST

/* A caller of kvr_choose may give such rows. */
START_TEST(rows_of_nobody)
{
	scene_of(3);
	scene_overlap(0, 4, 0);
	scene_overlap(1, 3, 0);
	scene_overlap(0, 2, 0);
	ck_assert_uint_eq(longest(2), 1); /* the later row of 0 counts */
	scene.found[1].worker = id_of_worker(1, 3);
	ck_assert_uint_eq(longest(2), 0);
	/* of a slot that was never in use: the sets do not have it */
	scene.found[2].worker = id_of_worker(1, 70);
	scene.places[70] = scene.set.base + 2;
	ck_assert_int_eq(scene_begin(), KVR_OK);
	memset(scene.t.take + scene.t.words, 0xff, sizeof(uint64_t));
	ck_assert_uint_eq(longest_slot(&scene.t, 2), 2);
}
END_TEST

/* The walk goes on as long as the later depths allow. */
START_TEST(depths_of_a_match)
{
	static const struct found_end three[] = { { .row = 0, .depth = 8 },
		{ .row = 1, .depth = 7 }, { .row = 3, .depth = 4 } };
	uint32_t i;

	memcpy(ends, three, sizeof(three));
	scene_of(6);
	scene_length(8, 0);
	scene.set.ends = ends;
	scene.set.n_ends = 3;
	scene_overlap(1, 8, 0);
	scene_overlap(2, 5, 0); /* trimmed */
	scene_overlap(5, 6, 0); /* trimmed less */
	scene_overlap(3, 4, 0);
	scene_overlap(4, 4, 0);
	ck_assert_uint_eq(longest(0), 1);
	ck_assert_uint_eq(longest(1), 1);
	scene.slots[1].state = KVR_STATE_DOWN;
	ck_assert_uint_eq(longest(0), 5);
	ck_assert_uint_eq(longest(2), 5);
	scene.slots[5].state = KVR_STATE_DOWN;
	ck_assert_uint_eq(longest(0), 2);
	scene.slots[2].state = KVR_STATE_DOWN;
	ck_assert_uint_eq(longest(0), 3);
	/* nothing below such an end is looked at: it cannot be there */
	scene.found[4].blocks = 9;
	ck_assert_uint_eq(longest(3), 3);
	for (i = 1; i < 6; i++)
		scene.slots[i].state = KVR_STATE_DOWN;
	ck_assert_uint_eq(longest(0), 0);
}
END_TEST

/* Returns the longest when the overlaps of workers 1 .. `last` are unsure. */
static uint32_t
longest_of_unsure(uint32_t slot, uint32_t last)
{
	ck_assert_int_eq(scene_begin(), KVR_OK);
	for (; last > 0; last--) {
		scene.gate[last] |= GATE_UNSURE;
		scene.slots[last].mode = KVR_RETAIN_EVENTS;
		scene.slots[last].block_tokens = 16;
		scene.t.unsure = true;
	}
	return longest_slot(&scene.t, slot);
}

/* An engine computes the last block of a whole prompt again. */
START_TEST(what_can_be_used)
{
	scene_of(4);
	scene.set.path.nodes = 1; /* these were matched */
	scene_overlap(1, 4, 0);
	scene_overlap(2, 4, 0);
	scene_overlap(3, 3, 0);
	ck_assert_uint_eq(longest_of_unsure(0, 1), 2);
	ck_assert_uint_eq(longest_of_unsure(1, 1), 2);
	ck_assert_uint_eq(longest_of_unsure(1, 2), 1);
	ck_assert_uint_eq(longest_of_unsure(2, 2), 2);
	/* not more than the shorter one, which can be used as a whole */
	ck_assert_uint_eq(longest_of_unsure(3, 2), 3);
	/* with one token more all can be used of the whole */
	scene_length(4, 1);
	ck_assert_uint_eq(longest_of_unsure(3, 2), 1);
}
END_TEST

/* A worker has a long overlap and a high load: this is the cost of passing. */
START_TEST(what_the_load_cost)
{
	scene_of(3);
	scene_overlap(1, 4, 0);
	scene_overlap(2, 1, 0);
	scene_load(0, 640, 40, 9);
	scene_load(1, 640, 40, 9);
	ck_assert_uint_eq(scene_chosen(), 2);
	ck_assert_uint_eq(scene.c.tokens, 16);
	ck_assert_uint_eq(scene.c.best_tokens, 64);
	ck_assert_uint_eq(scene.c.best, scene_id(1));
	scene_load(1, 0, 0, 0);
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert_uint_eq(scene.c.best_tokens, 64);
	ck_assert_uint_eq(scene.c.best, scene_id(1));
}
END_TEST

/* Longer, but by less than a token. */
START_TEST(no_better_by_tokens)
{
	scene_of(2);
	scene.p.rule.unit = KVR_UNIT_BYTES;
	scene.p.rule.block_size = 1;
	scene_length(40, 0);
	scene_overlap(1, 5, 0);
	scene_overlap(0, 4, 0);
	scene_load(1, 640, 640, 9);
	ck_assert_uint_eq(scene_chosen(), 0);
	ck_assert_uint_eq(longest(0), 1);
	ck_assert_uint_eq(scene.c.tokens, 1);
	ck_assert_uint_eq(scene.c.best_tokens, 1);
	ck_assert_uint_eq(scene.c.best, scene_id(0));
}
END_TEST

Suite *
suite_longest(void)
{
	Suite *s = suite_create("longest");
	TCase *t = tcase_create("longest");

	tcase_add_test(t, of_those_found);
	tcase_add_test(t, of_the_eligible);
	tcase_add_test(t, rows_of_nobody);
	tcase_add_test(t, depths_of_a_match);
	tcase_add_test(t, what_can_be_used);
	tcase_add_test(t, what_the_load_cost);
	tcase_add_test(t, no_better_by_tokens);
	suite_add_tcase(s, t);
	return s;
}
