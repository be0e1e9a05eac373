/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_fit.c - paths that do not fit into a full region.
 *
 * Cells are counted out: `hoard_all_but` leaves as many free as a test wants.
 */
#include "fit.h"

#include "retain.h"

#include "inner.h"

/* Returns the cells that slot 0 needs for so many blocks of the prompt. */
static uint32_t
cells_for(uint32_t want)
{
	struct path path;
	uint32_t cells;

	index_walk(k, p, want, &plainly, &path);
	cells = index_cells(k, &path, want, index_missing(k, &path, 0));
	return cells == 0 ? 0 : cells + fit_spare(k);
}

/* Records as much of the prompt as fits, with its entries. */
static uint32_t
insert(uint32_t slot, int64_t now)
{
	struct insert how = { .want = p->blocks, .in_place = true };
	uint32_t recorded, node;

	node = fit_insert(k, p, slot, &how, now, &recorded);
	index_stamp(k, node, slot, now);
	must((node == 0) == (recorded == 0));
	must(cell_0_is_blank());
	return recorded;
}

/* As much is recorded as fits, not a block less. */
START_TEST(records_what_fits)
{
	uint32_t left, recorded, truncated = 0;
	uint32_t chain;

	say_long(300, 300, 0);
	for (left = 0; left < 60 + fit_spare(k); left++) {
		chain = hoard_all_but(left);
		for (recorded = 0; recorded < 300 &&
		    cells_for(recorded + 1) <= left;)
			recorded++;
		ck_assert_uint_eq(insert(0, 1), recorded);
		truncated += recorded < 300;
		give_back(chain);
		ck_assert_uint_eq(overlap(0, 1), recorded);
		ck_assert_uint_eq(stats().truncated, truncated);
		region_sound();
		retain_make_room(k, 1, UINT32_MAX);
	}
	ck_assert_uint_eq(recorded, 300);
}
END_TEST

/* The existing path is pinned; where no split fits, the record ends. */
START_TEST(records_up_to_a_split)
{
	uint32_t left, recorded, last = 0, chain, met = 0;

	for (left = 0; left < 60 + fit_spare(k); left++) {
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		(void)reserve(1, "abcdef", 1);
		(void)reserve(1, "abxxxx", 1);
		ck_tree("ab:1!(cdef:1! xxxx:1!)");
		chain = hoard_all_but(left);
		say("abcdyz");
		recorded = insert(0, 2);
		ck_assert_uint_eq(overlap(0, 2), recorded);
		give_back(chain);
		region_sound();
		ck_assert_uint_ge(recorded, last);
		met |= 1U << recorded;
		last = recorded;
	}
	/* nothing, [ab], [ab][cd], all: [y] alone costs as much as [yz] */
	ck_assert_uint_eq(met, 1U << 0 | 1U << 2 | 1U << 4 | 1U << 6);
}
END_TEST

/* The evicted entry may be the prefix of the new prompt itself. */
START_TEST(own_prefix_leaves)
{
	uint32_t left, chain, recorded, last = 0;

	for (left = 0; left < 20 + fit_spare(k); left++) {
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		say_long(320, 320, 0);
		ck_assert_uint_eq(observed(1, 1), 320);
		say_long(160, 160, 0);
		ck_assert_uint_eq(observed(0, 2), 160);
		chain = hoard_all_but(left);
		say_long(400, 200, 7);
		recorded = insert(0, 3);
		ck_assert_uint_eq(overlap(0, 3), recorded);
		ck_assert_uint_ge(recorded,
		    left == fit_spare(k) ? 200 : last);
		last = recorded;
		give_back(chain);
		region_sound();
	}
	ck_assert_uint_eq(last, 400);
}
END_TEST

Suite *suite_fit(void);

Suite *
suite_fit(void)
{
	Suite *s = suite_create("fit");
	TCase *t = small_case(s, "room");

	tcase_add_test(t, records_what_fits);
	tcase_add_test(t, records_up_to_a_split);
	tcase_add_test(t, own_prefix_leaves);
	return s;
}
