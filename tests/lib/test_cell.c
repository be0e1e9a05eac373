/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cell.c - allocation of cells.
 *
 * Cells are compared with a plain set: a cell is taken or free, never twice,
 * never lost, and the count of free cells is right after every step. Where
 * free cells are kept meanwhile is internal to cell.c and not examined.
 */
#include "inner.h"

/* --------------------------------------------------------------- cells --- */

enum { CELLS_MAX = 40000 };

static uint8_t taken[CELLS_MAX];
static uint32_t all_cells, in_use;

static void
cells_setup(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 2 << 20;
	o.max_workers = 1;
	region_of(&o);
	all_cells = k->layout.cells - 1;
	ck_assert_uint_lt(all_cells, CELLS_MAX);
	memset(taken, 0, sizeof(taken));
	in_use = 0;
}

static void
cells_empty(void)
{
	region_empty(k);
	memset(taken, 0, sizeof(taken));
	in_use = 0;
}

static void
ck_count(void)
{
	must(k->region->free_cells == all_cells - in_use);
}

/* The cells hold only junk: the region is not checked. */
static void
cells_teardown(void)
{
	kvr_prompt_free(p);
	kvr_free(k);
}

static uint32_t
take(void)
{
	uint64_t counted = k->region->counts.cells;
	uint32_t i = cell_take(k);

	must(i > 0);
	must(i <= all_cells);
	must(taken[i] == 0);
	taken[i] = 1;
	in_use++;
	ck_count();
	must(k->region->counts.cells == counted + 1);
	/* the contents of a cell must not matter */
	memset(cell_at(k, i), 0xa5, CELL);
	return i;
}

/* Every free cell, each once, and then none. */
static void
drain(void)
{
	uint32_t i;
	uint64_t counted;

	while (in_use < all_cells)
		(void)take();
	counted = k->region->counts.cells;
	must(cell_take(k) == 0);
	must(cell_take(k) == 0);
	must(k->region->counts.cells == counted);
	ck_count();
	for (i = 1; i <= all_cells; i++)
		must(taken[i] == 1);
}

static void
give(uint32_t i)
{
	taken[i] = 0;
	in_use--;
	cell_give(k, i);
	ck_count();
}

START_TEST(every_cell_once)
{
	uint32_t i;

	ck_count();
	drain();
	for (i = all_cells; i > 0; i--)
		give(i);
	ck_assert_uint_eq(k->region->free_cells, all_cells);
	drain();
	for (i = 1; i <= all_cells; i++)
		give(1 + (uint32_t)((uint64_t)i * 10007 % all_cells));
	drain();
}
END_TEST

static void
mark(uint32_t i, uint8_t state)
{
	must(taken[i] != state);
	taken[i] = state;
	in_use += state != 0 ? 1 : UINT32_MAX;
}

/* The cells of pieces under one piece that serve bottoms [first, last]. */
static void
mark_pieces(uint32_t piece, uint32_t level, uint32_t at, uint32_t first,
    uint32_t last, uint8_t state)
{
	uint32_t i, low = at << (4 * level);

	if (low > last || low + (UINT32_C(1) << (4 * level)) - 1 < first)
		return;
	mark(piece, state);
	for (i = 0; level > 0 && i < PIECE; i++)
		mark_pieces(cell_at(k, piece)->piece[i], level - 1,
		    at * PIECE + i, first, last, state);
}

static void
mark_node(uint32_t i, uint8_t state)
{
	const struct node *n = node_at(k, i);

	mark(i, state);
	mark_pieces(n->run, n->level, 0, n->begin / PIECE,
	    (n->begin + n->length - 1) / PIECE, state);
}

static void
give_tree(uint32_t i)
{
	mark_node(i, 0);
	cell_give_tree(k, i);
	ck_count();
}

/*
 * Makes a node with the run [begin, end) of a tree; the cells are marked
 * taken. The head is cut in pieces that are never the longer side, so it keeps
 * the tree.
 */
static uint32_t
node_of(uint32_t begin, uint32_t end)
{
	static const uint64_t hashes[1 << 17];
	uint32_t i = cell_take(k), upper, at;
	struct node *n = node_at(k, i);

	memset(n, 0, sizeof(*n));
	n->kind = CELL_NODE;
	run_append(k, n, hashes, end);
	while (n->begin < begin) {
		at = begin - n->begin;
		if (at > n->length - at)
			at = n->length / 2;
		upper = cell_take(k);
		memset(node_at(k, upper), 0, CELL);
		run_split(k, n, at, node_at(k, upper));
		cell_give_tree(k, upper);
	}
	must(n->begin == begin && n->length == end - begin);
	mark_node(i, 1);
	ck_count();
	return i;
}

/* Lengths just below, at and just above each boundary of a piece. */
static const uint32_t ends[] = { 1, 15, 16, 17, 33, 255, 256, 257, 272, 273,
	600, 4095, 4096, 4097, 4352, 9000, 65535, 65536, 65537, 65793, 70000 };
enum { ENDS = sizeof(ends) / sizeof(ends[0]) };

/* A tree of each level, cut at its head, is broken up to the last cell. */
START_TEST(trees_of_every_level)
{
	static const uint32_t begins[] = { 0, 1, 15, 16, 17, 31, 100, 255, 256,
		257, 300, 511, 1500, 4095, 4096, 4097, 20000, 65535,
		65536, 69999 };
	uint32_t end = ends[_i];
	size_t b;

	for (b = 0; b < sizeof(begins) / sizeof(begins[0]); b++) {
		if (begins[b] >= end)
			continue;
		cells_empty();
		give_tree(node_of(begins[b], end));
		drain();
	}
}
END_TEST

/* Trees, single cells and takes in any order, until all is one pool again. */
START_TEST(cells_in_random_order)
{
	static uint32_t node[64], single[256];
	uint32_t nodes = 0, singles = 0, end, begin, at;
	uint64_t steps = test_amount(30000);

	by_chance();
	while (steps-- > 0) {
		switch (pick(5)) {
		case 0:
			end = 1 + pick(pick(20) == 0 ? 5000 : 300);
			begin = pick(end);
			if (nodes < 64 && k->region->free_cells >
			    2 * cell_tree_size(0, end, run_level(end)) + 10)
				node[nodes++] = node_of(begin, end);
			break;
		case 1:
			if (nodes == 0)
				break;
			at = pick(nodes);
			give_tree(node[at]);
			node[at] = node[--nodes];
			break;
		case 2: case 3:
			if (singles < 256 && k->region->free_cells > 0)
				single[singles++] = take();
			break;
		default:
			if (singles > 0)
				give(single[--singles]);
		}
	}
	while (nodes > 0)
		give_tree(node[--nodes]);
	drain();
}
END_TEST

/* A region can be emptied in any state; then all of it is free. */
START_TEST(emptied_at_any_point)
{
	uint32_t round, i, n;

	by_chance();
	for (round = (uint32_t)test_amount(60); round > 0; round--) {
		for (n = pick(20); n > 0; n--) {
			i = node_of(0, 1 + pick(600));
			if (pick(2) != 0)
				give_tree(i);
		}
		for (n = pick(300); n > 0; n--)
			(void)take();
		cells_empty();
		ck_count();
		if (pick(8) != 0)
			continue;
		drain();
		cells_empty();
	}
	drain();
}
END_TEST

/* A run of any length is freed through one cell; no piece is written. */
START_TEST(trees_are_given_untouched)
{
	size_t bytes = (size_t)k->layout.cells * CELL;
	unsigned char *before = malloc(bytes);
	uint32_t end = ends[_i] < 30000 ? ends[_i] : 30000, i, cell;

	ck_assert_ptr_nonnull(before);
	drain(); /* writes into each cell */
	for (i = 1; i <= all_cells; i++)
		give(i);
	i = node_of(end / 3, end);
	memcpy(before, k->cells, bytes);
	give_tree(i);
	for (cell = 0; cell < k->layout.cells; cell++)
		must(cell == i || memcmp(before + (size_t)cell * CELL,
		    cell_at(k, cell), CELL) == 0);
	free(before);
	drain();
}
END_TEST

/* Taking few cells repeatedly returns the same ones, or nearly. */
START_TEST(small_work_stays_small)
{
	uint32_t single[100], round, i, highest = 0;

	for (round = 0; round < 200; round++) {
		give_tree(node_of(0, 1 + round));
		for (i = 0; i < 100; i++) {
			single[i] = take();
			if (single[i] > highest)
				highest = single[i];
		}
		for (i = 0; i < 100; i++)
			give(single[i * 37 % 100]);
	}
	ck_assert_uint_lt(highest, 400);
}
END_TEST

/* Free cells are kept in the region: another handle can take them. */
START_TEST(handles_share_the_cells)
{
	const size_t bytes = 1 << 20;
	void *memory = aligned_alloc(CELL, bytes);
	struct kvr_options o = small_options();
	struct kvr *mine = k, *two[2];
	uint32_t i, n;

	ck_assert_ptr_nonnull(memory);
	ck_assert_int_eq(kvr_new_at(&o, memory, bytes, &two[0]), KVR_OK);
	ck_assert_int_eq(kvr_attach_at(&o, memory, bytes, &two[1]), KVR_OK);
	all_cells = two[0]->layout.cells - 1;
	for (n = 0; in_use < all_cells; n++) {
		k = two[n % 2];
		i = take();
		if (n % 7 == 0) {
			k = two[n / 7 % 2];
			give(i);
		}
		if (n % 50 == 0)
			give_tree(node_of(0, n % 41 + 1));
		if (all_cells - in_use < 30)
			break;
	}
	drain();
	k = mine;
	kvr_free(two[0]);
	kvr_free(two[1]);
	free(memory);
}
END_TEST

/* --------------------------------------------------------------- suite --- */

Suite *suite_cell(void);

Suite *
suite_cell(void)
{
	Suite *s = suite_create("cell");
	TCase *t = tcase_create("cells");

	tcase_add_checked_fixture(t, cells_setup, cells_teardown);
	tcase_add_test(t, every_cell_once);
	tcase_add_loop_test(t, trees_of_every_level, 0, ENDS);
	tcase_add_test(t, cells_in_random_order);
	tcase_add_test(t, emptied_at_any_point);
	tcase_add_loop_test(t, trees_are_given_untouched, 0, ENDS);
	tcase_add_test(t, small_work_stays_small);
	tcase_add_test(t, handles_share_the_cells);
	suite_add_tcase(s, t);
	return s;
}
