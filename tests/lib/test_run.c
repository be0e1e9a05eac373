/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_run.c - runs of hashes against a plain array.
 *
 * hashes[i] belongs at place i of every run, so a run is right if it holds a
 * contiguous part of the array. It must hold exactly as many cells as
 * run_cells returns.
 */
#include "inner.h"

enum { LONGEST = 70000, PIECES = 64 };

static uint64_t hashes[LONGEST];
static uint32_t all; /* cells free when there is no run */

static void
setup(void)
{
	struct kvr_options o = small_options();
	uint64_t random = 1;
	size_t i;

	o.region_bytes = 2 << 20;
	o.max_workers = 1;
	region_of(&o);
	all = k->region->free_cells;
	for (i = 0; i < LONGEST; i++)
		hashes[i] = plain_random(&random);
}

/* Every cell has been given back. */
static void
teardown(void)
{
	must(k->region->free_cells == all);
	region_end();
}

/* ------------------------------------------------------------- helpers --- */

/* The run is hashes[from ...], and has as many cells as it must. */
static void
ck_run(const struct node *n, uint32_t from, uint32_t length)
{
	uint32_t i;

	must(n->length == length);
	must(n->level < RUN_LEVELS);
	must(run_level(n->begin + length) <= n->level);
	for (i = 0; i < length; i++)
		must(run_get(k, n, i) == (uint32_t)hashes[from + i]);
}

static uint32_t
cells_of(const struct node *n)
{
	return cell_tree_size(n->begin, n->begin + n->length, n->level);
}

/* Appends from the array; the cells it takes are those predicted. */
static void
append(struct node *n, uint32_t from, uint32_t count)
{
	uint32_t before = k->region->free_cells;
	uint32_t cells = run_cells_to_append(n, count);

	run_append(k, n, hashes + from, count);
	must(before - k->region->free_cells == cells);
}

/* Splits; the predicted cells are those of the shorter side's copy. */
static void
split(struct node *lower, uint32_t at, struct node *upper)
{
	uint32_t before = cells_of(lower);
	uint32_t cells = run_cells_to_split(lower, at);
	uint32_t free_cells = k->region->free_cells, length = lower->length;
	uint32_t run = lower->run;

	memset(upper, 0, sizeof(*upper));
	run_split(k, lower, at, upper);
	must(upper->length == at && lower->length == length - at);
	must(cells_of(at <= length - at ? upper : lower) == cells);
	must((at <= length - at ? lower : upper)->run == run);
	must(free_cells + before ==
	    k->region->free_cells + cells_of(upper) + cells_of(lower));
}

/* Gives a run back, by way of a cell of its own. */
static void
drop(const struct node *n)
{
	uint32_t i = cell_take(k);

	*node_at(k, i) = *n;
	cell_give_tree(k, i);
}

/* Lengths around which the tree of pieces changes. */
static const uint32_t lengths[] = { 1, 2, 15, 16, 17, 31, 32, 33, 255, 256,
	257, 271, 272, 273, 511, 512, 513, 4095, 4096, 4097, 4111, 4352, 4353,
	65535, 65536, 65537, 65800, LONGEST };
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

/* ---------------------------------------------------------- arithmetic --- */

START_TEST(levels)
{
	uint32_t level, end;

	ck_assert_uint_eq(run_level(1), 0);
	for (level = 0, end = PIECE; level < 6; level++, end *= PIECE) {
		ck_assert_uint_eq(run_level(end - 1), level);
		ck_assert_uint_eq(run_level(end), level);
		ck_assert_uint_eq(run_level(end + 1), level + 1);
	}
	ck_assert_uint_eq(run_level(end), RUN_LEVELS - 1);
}
END_TEST

START_TEST(cells_by_hand)
{
	ck_assert_uint_eq(cell_tree_size(0, 1, 0), 1);
	ck_assert_uint_eq(cell_tree_size(0, 16, 0), 1);
	ck_assert_uint_eq(cell_tree_size(0, 17, 1), 2 + 1);
	ck_assert_uint_eq(cell_tree_size(16, 17, 1), 1 + 1);
	ck_assert_uint_eq(cell_tree_size(15, 17, 1), 2 + 1);
	ck_assert_uint_eq(cell_tree_size(0, 256, 1), 16 + 1);
	ck_assert_uint_eq(cell_tree_size(0, 257, 2), 17 + 2 + 1);
	ck_assert_uint_eq(cell_tree_size(255, 257, 2), 2 + 2 + 1);
	ck_assert_uint_eq(cell_tree_size(256, 257, 2), 1 + 1 + 1);
	ck_assert_uint_eq(cell_tree_size(0, 65536, 3), 4096 + 256 + 16 + 1);
	ck_assert_uint_eq(cell_tree_size(0, 65537, 4), 4097 + 257 + 17 + 2 + 1);
}
END_TEST

/* ----------------------------------------------------------- appending --- */

START_TEST(append_whole)
{
	uint32_t length = lengths[_i];
	struct node n = { .length = 0 };

	append(&n, 0, length);
	ck_run(&n, 0, length);
	must(n.begin == 0 && n.level == run_level(length));
	must(all - k->region->free_cells == cells_of(&n));
	drop(&n);
}
END_TEST

START_TEST(append_in_two_parts)
{
	uint32_t a, b;

	for (a = 1; a < 70; a++)
		for (b = 1; b < 70; b++) {
			struct node n = { .length = 0 };

			append(&n, 0, a);
			append(&n, a, b);
			ck_run(&n, 0, a + b);
			drop(&n);
		}
}
END_TEST

/* Over each boundary with as little, and as much, as possible. */
START_TEST(append_over_borders)
{
	static const uint32_t counts[] = { 1, 2, 15, 16, 17, 240, 256, 260,
		4000, 4100 };
	uint32_t length = lengths[_i];
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct node n = { .length = 0 };

		if (length + counts[i] > LONGEST)
			continue;
		append(&n, 0, length);
		append(&n, length, counts[i]);
		ck_run(&n, 0, length + counts[i]);
		drop(&n);
	}
}
END_TEST

START_TEST(append_in_random_parts)
{
	uint64_t rounds = test_amount(20);

	by_chance();
	while (rounds-- > 0) {
		struct node n = { .length = 0 };
		uint32_t most = 1 + pick(2000);

		while (n.length + most <= LONGEST / 4)
			append(&n, n.length, 1 + pick(most));
		ck_run(&n, 0, n.length);
		drop(&n);
	}
}
END_TEST

/* ------------------------------------------------------------- cutting --- */

static void
split_at(uint32_t length, uint32_t at)
{
	struct node lower = { .length = 0 }, upper;

	append(&lower, 0, length);
	split(&lower, at, &upper);
	ck_run(&upper, 0, at);
	ck_run(&lower, at, length - at);
	drop(&upper);
	drop(&lower);
}

START_TEST(split_at_every_place)
{
	static const uint32_t whole[] = { 2, 3, 16, 17, 31, 32, 33, 48, 100,
		255, 256, 257, 300, 530 };
	uint32_t at;
	size_t i;

	for (i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		for (at = 1; at < whole[i]; at++)
			split_at(whole[i], at);
}
END_TEST

START_TEST(split_at_borders)
{
	uint32_t length = lengths[_i];
	size_t i;

	for (i = 0; i < LENGTHS && lengths[i] < length; i++) {
		split_at(length, lengths[i]);
		split_at(length, length - lengths[i]);
	}
}
END_TEST

/* A run cut at both ends can be appended to as if it were whole. */
static void
cut_and_append(uint32_t length, uint32_t begin, uint32_t end, uint32_t more)
{
	struct node lower = { .length = 0 }, middle, upper;

	append(&lower, 0, length);
	split(&lower, end, &middle);
	split(&middle, begin, &upper);
	ck_run(&upper, 0, begin);
	ck_run(&middle, begin, end - begin);
	ck_run(&lower, end, length - end);
	append(&middle, end, more);
	ck_run(&middle, begin, end - begin + more);
	append(&upper, begin, more);
	ck_run(&upper, 0, begin + more);
	drop(&upper);
	drop(&middle);
	drop(&lower);
}

START_TEST(cut_both_sides)
{
	uint32_t begin, end, i;

	by_chance();
	for (begin = 1; begin < 40; begin++)
		for (end = begin + 1; end < 50; end++)
			cut_and_append(50, begin, end, 20);
	for (i = 0; i < 300; i++) {
		uint32_t length = 3 + pick(3000);

		end = 2 + pick(length - 2);
		begin = 1 + pick(end - 1);
		cut_and_append(length, begin, end, 1 + i % 300);
	}
}
END_TEST

/* One run becomes many, cut at random, and then single blocks. */
START_TEST(cut_to_pieces)
{
	struct node part[PIECES] = { { .length = 0 } }, single;
	uint32_t from[PIECES] = { 0 }, parts = 1, i, at;

	by_chance();
	append(&part[0], 0, 5000);
	while (parts < PIECES) {
		i = pick(parts);
		if (part[i].length < 2)
			continue;
		at = 1 + pick(part[i].length - 1);
		split(&part[i], at, &part[parts]);
		from[parts++] = from[i];
		from[i] += at;
	}
	for (i = 0; i < PIECES; i++) {
		for (; part[i].length > 1; from[i]++) {
			ck_run(&part[i], from[i], part[i].length);
			split(&part[i], 1, &single);
			ck_run(&single, from[i], 1);
			drop(&single);
		}
		drop(&part[i]);
	}
}
END_TEST

/* ------------------------------------------------------------- joining --- */

/* Appends a part of one run to another, as predicted. */
static void
join(struct node *n, const struct node *from, uint32_t first, uint32_t count)
{
	uint32_t before = k->region->free_cells;
	uint32_t cells = run_cells_to_append(n, count);

	run_append_run(k, n, from, first, count);
	must(before - k->region->free_cells == cells);
}

/* [0, head) [head, at) [at, length): the last two are joined again. */
static void
cut_and_join(uint32_t head, uint32_t at, uint32_t length)
{
	struct node upper = { .length = 0 }, middle, lower = { .length = 0 };

	append(&lower, 0, length);
	split(&lower, at, &middle);
	split(&middle, head, &upper);
	join(&middle, &lower, 0, lower.length);
	ck_run(&middle, head, length - head);
	ck_run(&lower, at, length - at);
	join(&upper, &middle, 0, middle.length);
	ck_run(&upper, 0, length);
	drop(&upper);
	drop(&middle);
	drop(&lower);
}

START_TEST(join_what_was_cut)
{
	uint32_t head, at, length, i;

	by_chance();
	for (at = 2; at < 50; at++)
		for (head = 1; head < at; head++)
			cut_and_join(head, at, 51);
	for (i = 0; i < 300; i++) {
		length = 3 + pick(5000);
		at = 2 + pick(length - 2);
		head = 1 + pick(at - 1);
		cut_and_join(head, at, length);
	}
}
END_TEST

/* Any part of a run makes a run of its own. */
START_TEST(join_parts)
{
	struct node whole = { .length = 0 }, head;
	uint32_t i;

	by_chance();
	append(&whole, 0, 5000);
	split(&whole, 1 + pick(2400), &head);
	for (i = 0; i < 300; i++) {
		uint32_t first = pick(whole.length);
		uint32_t count = 1 + pick(whole.length - first);
		struct node part = { .length = 0 };

		join(&part, &whole, first, count);
		ck_run(&part, head.length + first, count);
		drop(&part);
	}
	drop(&head);
	drop(&whole);
}
END_TEST

/* ----------------------------------------------------------- comparing --- */

static uint64_t prompt[LONGEST];

/* A prompt equal to the run up to `parting` and different from there on. */
static void
prompt_of(uint32_t from, uint32_t length, uint32_t parting)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		prompt[i] = i < parting ? hashes[from + i]
		    : ~hashes[from + i];
}

START_TEST(common_at_every_parting)
{
	struct node lower = { .length = 0 }, upper;
	uint32_t begin, parting, limit, length;

	for (begin = 1; begin < 40; begin += 13) {
		append(&lower, 0, 300);
		split(&lower, begin, &upper);
		length = lower.length;
		for (parting = 1; parting <= length; parting++) {
			prompt_of(begin, length, parting);
			for (limit = 0; limit <= length; limit++)
				must(run_common(k, &lower, prompt, limit) ==
				    (limit < parting ? limit : parting));
		}
		drop(&upper);
		drop(&lower);
		lower.length = 0;
	}
}
END_TEST

START_TEST(common_of_long_runs)
{
	struct node n = { .length = 0 };
	uint32_t parting, length = lengths[_i];

	append(&n, 0, length);
	for (parting = 1; parting <= length; parting += 1 + length / 97) {
		prompt_of(0, length, parting);
		must(run_common(k, &n, prompt, length) == parting);
	}
	prompt_of(0, length, length);
	must(run_common(k, &n, prompt, length) == length);
	drop(&n);
}
END_TEST

/* Only the low halves are kept: the high ones cannot matter. */
START_TEST(common_of_low_halves)
{
	struct node n = { .length = 0 };
	uint32_t i;

	append(&n, 0, 100);
	prompt_of(0, 100, 100);
	for (i = 0; i < 100; i++)
		prompt[i] ^= UINT64_C(0xdeadbeef) << 32;
	must(run_common(k, &n, prompt, 100) == 100);
	drop(&n);
}
END_TEST

/* --------------------------------------------------------------- suite --- */

Suite *suite_run(void);

Suite *
suite_run(void)
{
	Suite *s = suite_create("run");
	TCase *t = tcase_create("run");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, levels);
	tcase_add_test(t, cells_by_hand);
	tcase_add_loop_test(t, append_whole, 0, LENGTHS);
	tcase_add_test(t, append_in_two_parts);
	tcase_add_loop_test(t, append_over_borders, 0, LENGTHS);
	tcase_add_test(t, append_in_random_parts);
	tcase_add_test(t, split_at_every_place);
	tcase_add_loop_test(t, split_at_borders, 0, LENGTHS);
	tcase_add_test(t, cut_both_sides);
	tcase_add_test(t, cut_to_pieces);
	tcase_add_test(t, join_what_was_cut);
	tcase_add_test(t, join_parts);
	tcase_add_test(t, common_at_every_parting);
	tcase_add_loop_test(t, common_of_long_runs, 0, LENGTHS);
	tcase_add_test(t, common_of_low_halves);
	suite_add_tcase(s, t);
	return s;
}
