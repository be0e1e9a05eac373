/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_region.c - layout, seal, emptying, cells, buckets.
 *
 * Damage to every single bit of the sealed header is test_border.c's; here
 * the seal is good and what it says is not. Cells are held against a plain
 * set: a cell is taken or free, never twice, never lost.
 */
#include "inner.h"

#include <math.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* -------------------------------------------------------------- layout --- */

static const uint32_t fleets[] = { 1, 2, 3, 5, 7, 8, 9, 255, 256,
	KVR_WORKERS_MAX };
enum { FLEETS = sizeof(fleets) / sizeof(fleets[0]) };

static int
layout_of(uint32_t workers, uint64_t bytes, struct layout *l)
{
	struct kvr_options o = { .size = sizeof(o), .max_workers = workers };

	return region_layout(&o, bytes, l);
}

struct part {
	uint64_t at, bytes, align;
};

static void
ck_layout(const struct layout *l, uint32_t workers, uint64_t bytes)
{
	const struct part parts[] = {
		{ 0, sizeof(struct region), 64 },
		{ l->slots_at, l->slots * (uint64_t)sizeof(struct slot), 64 },
		{ l->generations_at, l->slots * UINT64_C(4), 4 },
		{ l->names_at, l->names * (uint64_t)sizeof(struct name), 64 },
		{ l->name_buckets_at, l->name_buckets * UINT64_C(4), 4 },
		{ l->oldest_at, l->leaves * UINT64_C(8), 8 },
		{ l->winner_at, l->leaves * UINT64_C(2), 2 },
		{ l->node_buckets_at, l->node_buckets * UINT64_C(4), 4 },
		{ l->entry_buckets_at, l->entry_buckets * UINT64_C(4), 4 },
		{ l->cells_at, l->cells * UINT64_C(64), 64 },
		{ l->end, 0, 64 }
	};
	size_t i, n = sizeof(parts) / sizeof(parts[0]);

	for (i = 0; i < n; i++)
		must(parts[i].at % parts[i].align == 0);
	for (i = 1; i < n; i++)
		must(parts[i].at >= parts[i - 1].at + parts[i - 1].bytes);
	must(l->end <= bytes);
	must(l->slots == 2 * workers);
	must(l->names == workers);
	must(l->leaves >= l->slots);
	must((l->leaves & (l->leaves - 1)) == 0);
	must(l->node_buckets >= l->cells / 8);
	must(l->entry_buckets >= l->cells / 8);
}

static uint64_t
least_bytes(uint32_t workers)
{
	uint64_t low = 0, high = UINT64_C(1) << 32, middle;
	struct layout l;

	while (high - low > 1) {
		middle = low + (high - low) / 2;
		*(layout_of(workers, middle, &l) == KVR_OK ? &high : &low) =
		    middle;
	}
	return high;
}

/* No byte to spare for as much as three cells and their buckets. */
START_TEST(layout_at_every_size)
{
	uint32_t workers = fleets[_i], cells = 0;
	uint64_t least = least_bytes(workers), bytes;
	struct layout l;

	for (bytes = least; bytes < least + 5000; bytes++) {
		must(layout_of(workers, bytes, &l) == KVR_OK);
		ck_layout(&l, workers, bytes);
		must(bytes - l.end < 3 * (CELL + 1));
		must(l.cells >= cells);
		cells = l.cells;
	}
	for (; bytes < UINT64_C(1) << 36; bytes += bytes / 7 + 13) {
		must(layout_of(workers, bytes, &l) == KVR_OK);
		ck_layout(&l, workers, bytes);
		must(bytes - l.end < 3 * (CELL + 1));
	}
}
END_TEST

START_TEST(layout_too_small)
{
	uint32_t workers = fleets[_i];
	uint64_t least = least_bytes(workers), bytes;
	struct layout l, untouched;

	memset(&l, 0x5a, sizeof(l));
	untouched = l;
	for (bytes = 0; bytes < least; bytes += 1 + bytes / 50)
		ck_assert_int_eq(layout_of(workers, bytes, &l),
		    KVR_ETOOSMALL);
	ck_assert_int_eq(layout_of(workers, least - 1, &l), KVR_ETOOSMALL);
	ck_assert_mem_eq(&l, &untouched, sizeof(l));
	ck_assert_int_eq(layout_of(workers, least, &l), KVR_OK);
	ck_assert_uint_ge(l.cells, 64);
}
END_TEST

/* Links have 32 bits, so there is a most of cells; the rest is left alone. */
START_TEST(layout_beyond_links)
{
	static const uint64_t sizes[] = { UINT64_C(1) << 38, UINT64_C(1) << 50,
		UINT64_MAX - 63, UINT64_MAX };
	struct layout l;
	size_t i;

	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(layout_of(256, sizes[i], &l), KVR_OK);
		ck_layout(&l, 256, sizes[i]);
		ck_assert_uint_eq(l.cells, INT32_MAX);
	}
}
END_TEST

/* ---------------------------------------------------------------- seal --- */

enum { MEMORY = 64 << 10 };

/* A region in memory that a test may damage. */
static void *
formatted(void)
{
	struct kvr_options o = small_options();
	void *memory = aligned_alloc(CELL, MEMORY);
	struct kvr *made;

	ck_assert_ptr_nonnull(memory);
	ck_assert_int_eq(kvr_new_at(&o, memory, MEMORY, &made), KVR_OK);
	kvr_free(made);
	return memory;
}

static int
attach(void *memory, size_t bytes)
{
	struct kvr *made;
	int error = kvr_attach_at(NULL, memory, bytes, &made);

	if (error == KVR_OK)
		kvr_free(made);
	return error;
}

static void
reseal(struct region *r)
{
	r->checksum = XXH3_64bits(&r->seal, sizeof(r->seal));
}

/* A change that somebody sealed: only what it says can give it away. */
#define SEALED(change, error) do { \
	const struct seal good_ = r->seal; \
	change; \
	reseal(r); \
	ck_assert_msg(attach(r, MEMORY) == (error), #change); \
	r->seal = good_; \
	reseal(r); \
} while (0)

START_TEST(sealed_nonsense)
{
	struct region *r = formatted();

	SEALED(r->seal.magic++, KVR_EFORMAT);
	SEALED(r->seal.version++, KVR_EVERSION);
	SEALED(r->seal.version = 0, KVR_EVERSION);
	SEALED(r->seal.byte_order = 0x04030201, KVR_EFORMAT);
	SEALED(r->seal.max_workers = 0, KVR_EFORMAT);
	SEALED(r->seal.max_workers = KVR_WORKERS_MAX + 1, KVR_EFORMAT);
	SEALED(r->seal.max_workers++, KVR_EFORMAT);
	SEALED(r->seal.bytes = MEMORY + 1, KVR_EFORMAT);
	SEALED(r->seal.bytes = 100, KVR_EFORMAT);
	SEALED(r->seal.layout.slots_at += 64, KVR_EFORMAT);
	SEALED(r->seal.layout.cells++, KVR_EFORMAT);
	SEALED(r->seal.layout.cells_at = UINT64_MAX - 63, KVR_EFORMAT);
	SEALED(r->seal.layout.leaves *= 2, KVR_EFORMAT);
	SEALED(r->seal.layout.node_buckets = 0, KVR_EFORMAT);
	SEALED(r->checksum++, KVR_OK); /* sealed again: nothing is wrong */
	r->checksum++;
	ck_assert_int_eq(attach(r, MEMORY), KVR_EFORMAT);
	free(r);
}
END_TEST

/* Cut short anywhere it is no region; more memory than it needs is fine. */
START_TEST(truncated)
{
	struct region *r = formatted();
	size_t bytes;

	for (bytes = 0; bytes < MEMORY; bytes += 1 + bytes / 20)
		ck_assert_int_eq(attach(r, bytes), KVR_EFORMAT);
	ck_assert_int_eq(attach(r, MEMORY - 1), KVR_EFORMAT);
	ck_assert_int_eq(attach(r, MEMORY), KVR_OK);
	ck_assert_int_eq(attach(r, MEMORY + 1), KVR_OK);
	ck_assert_int_eq(attach(r, SIZE_MAX), KVR_OK);
	free(r);
}
END_TEST

/* No pointer is in a region: it may be moved to another address. */
START_TEST(moved)
{
	struct kvr_options o = small_options();
	void *memory = formatted(), *elsewhere = aligned_alloc(CELL, MEMORY);

	ck_assert_ptr_nonnull(elsewhere);
	ck_assert_int_eq(kvr_attach_at(&o, memory, MEMORY, &k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	id[0] = worker_of('a');
	observe(0, "abcd", 1);
	observe(0, "abxy", 2);
	kvr_free(k);
	memcpy(elsewhere, memory, MEMORY);
	memset(memory, 0xff, MEMORY);
	ck_assert_int_eq(kvr_attach_at(&o, elsewhere, MEMORY, &k), KVR_OK);
	ck_tree("ab:0(cd:0 xy:0)");
	observe(0, "abcdef", 3);
	ck_tree("ab:0(cdef:0 xy:0)");
	region_end();
	free(memory);
	free(elsewhere);
}
END_TEST

/* --------------------------------------------------------------- empty --- */

START_TEST(empty_keeps_what_is_durable)
{
	struct kvr_load load = { .size = sizeof(load), .prefill_tokens = 5,
	    .active_blocks = 6, .requests = 7, .used_blocks = 8 };
	uint64_t lease, cells = stats().cells_free;
	struct kvr_worker_stats w;

	observe(0, "abcd", 10);
	observe(1, "abxy", 20);
	lease = reserve(2, "abc", 30);
	ck_assert_int_eq(kvr_worker_set_load(k, id[2], &load), KVR_OK);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_tree("");
	ck_assert_uint_eq(stats().cells_free, cells);
	ck_assert_uint_eq(stats().workers, WORKERS);
	ck_assert_uint_eq(stats().leases, 0);
	ck_assert_uint_eq(stats().observes, 2);
	ck_assert_int_eq(stats().clock, 30);
	w = worker_stats(2);
	ck_assert_uint_eq(w.requests + w.prefill_tokens + w.active_blocks +
	    w.output_blocks + w.entries + w.held_blocks, 0);
	ck_assert_uint_eq(w.reserves, 1);
	ck_assert_int_eq(kvr_commit(k, lease, 30, 0), KVR_ELEASE);
	ck_assert_uint_gt(reserve(2, "abc", 30), lease);
	ck_tree("abc:2!");
}
END_TEST

/* --------------------------------------------------------------- cells --- */

enum { CELLS_MOST = 40000 };

static uint8_t taken[CELLS_MOST];
static uint32_t all_cells;

static void
cells_setup(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 2 << 20;
	o.max_workers = 1;
	region_of(&o);
	all_cells = k->layout.cells - 1;
	ck_assert_uint_lt(all_cells, CELLS_MOST);
	memset(taken, 0, sizeof(taken));
}

/* Nothing stands in the cells but junk: no check of the region. */
static void
cells_teardown(void)
{
	kvr_prompt_free(p);
	kvr_free(k);
}

static uint32_t
take(void)
{
	uint32_t i = cell_take(k);

	must(i > 0);
	must(i <= all_cells);
	must(taken[i] == 0);
	taken[i] = 1;
	/* what somebody keeps in a cell must not matter */
	memset(cell_at(k, i), 0xa5, CELL);
	return i;
}

/* Everything that is free, each cell once, and then nothing. */
static void
drain(void)
{
	uint32_t i, n = k->region->free_cells;

	while (n-- > 0)
		(void)take();
	must(k->region->free_cells == 0);
	must(cell_take(k) == 0);
	must(k->region->free_cells == 0);
	for (i = 1; i <= all_cells; i++)
		must(taken[i] == 1);
}

static void
give(uint32_t i)
{
	taken[i] = 0;
	cell_give(k, i);
}

START_TEST(every_cell_once)
{
	uint32_t i;

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

/* The cells of pieces under one piece that serve bottoms [first, last]. */
static void
mark_pieces(uint32_t piece, uint32_t level, uint32_t at, uint32_t first,
    uint32_t last, uint8_t state)
{
	uint32_t i, low = at << (4 * level);

	if (low > last || low + (UINT32_C(1) << (4 * level)) - 1 < first)
		return;
	must(taken[piece] != state);
	taken[piece] = state;
	for (i = 0; level > 0 && i < PIECE; i++)
		mark_pieces(cell_at(k, piece)->piece[i], level - 1,
		    at * PIECE + i, first, last, state);
}

static void
mark_node(uint32_t i, uint8_t state)
{
	const struct node *n = node_at(k, i);

	taken[i] = state;
	mark_pieces(n->run, n->level, 0, n->begin / PIECE,
	    (n->begin + n->length - 1) / PIECE, state);
}

static void
give_tree(uint32_t i)
{
	mark_node(i, 0);
	cell_give_tree(k, i);
}

/*
 * A node whose run is [begin, end) of a tree; its cells are marked taken. Its
 * head goes in pieces that are never the longer side, so it keeps the tree.
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
		mark_node(upper, 1);
		give_tree(upper);
	}
	must(n->begin == begin && n->length == end - begin);
	mark_node(i, 1);
	return i;
}

/* Sizes of runs that end just before, at and behind each border of a piece. */
static const uint32_t ends[] = { 1, 15, 16, 17, 33, 255, 256, 257, 272, 273,
	600, 4095, 4096, 4097, 4352, 9000, 65535, 65536, 65537, 65793, 70000 };
enum { ENDS = sizeof(ends) / sizeof(ends[0]) };

/* A tree of each level, cut at its head, is broken up to the last cell. */
START_TEST(trees_of_every_level)
{
	static const uint32_t begins[] = { 0, 1, 15, 16, 17, 31, 100, 255, 256,
		257, 300, 511, 1500, 4095, 4096, 4097, 20000, 65535,
		65536, 69999 };
	uint32_t end = ends[_i], i, free_cells;
	size_t b;

	for (b = 0; b < sizeof(begins) / sizeof(begins[0]); b++) {
		if (begins[b] >= end)
			continue;
		region_empty(k);
		memset(taken, 0, sizeof(taken));
		i = node_of(begins[b], end);
		free_cells = k->region->free_cells;
		give_tree(i);
		ck_assert_uint_gt(k->region->free_cells, free_cells);
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
			    2 * run_cells(0, end, run_level(end)) + 10)
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

/* ------------------------------------------------------------- buckets --- */

enum { KEYS = 4000, DRAWS = 100 };

enum shape { BY_FIRST, BY_LOW, BY_HIGH, BY_BOTH, BY_SLOT, BY_NODE, BY_LEASE,
	SHAPES };

/* The bucket of the i-th key of a kind that is anything but random. */
static uint32_t
bucket_of(enum shape shape, uint32_t i)
{
	switch (shape) {
	case BY_FIRST: return bucket_of_node(k, 7, i);
	case BY_LOW:   return bucket_of_node(k, i, 7);
	case BY_HIGH:  return bucket_of_node(k, (uint64_t)i << 32, 7);
	case BY_BOTH:  return bucket_of_node(k, (uint64_t)i << 20, i);
	case BY_SLOT:  return bucket_of_hold(k, 1000 + i / 100, i % 100);
	case BY_NODE:  return bucket_of_hold(k, i * 16, 3);
	default:       return bucket_of_lease(k, i);
	}
}

/* Chi square over its degrees of freedom: 1 for a fair draw. */
static double
chi_square(enum shape shape, uint32_t buckets)
{
	uint32_t count[KEYS] = { 0 }, i, b;
	double even = (double)KEYS / buckets, sum = 0;

	for (i = 0; i < KEYS; i++) {
		b = bucket_of(shape, i);
		must(b < buckets);
		count[b]++;
	}
	for (i = 0; i < buckets; i++)
		sum += (count[i] - even) * (count[i] - even) / even;
	return sum / (buckets - 1);
}

/*
 * A single key can be unlucky for one shape; the promise is that over the
 * draw of the key two keys meet as seldom as by chance. Drawn from a fixed
 * seed: this passes always or never.
 */
START_TEST(buckets_are_even)
{
	uint32_t buckets = k->layout.node_buckets, draw;
	const struct kvr good = *k;
	uint64_t random = 7;
	double sum = 0;
	size_t i;

	ck_assert_uint_eq(buckets, k->layout.entry_buckets);
	ck_assert_uint_le(buckets, KEYS);
	for (draw = 0; draw < DRAWS; draw++) {
		for (i = 0; i < 12; i++)
			k->table_key[i] = plain_random(&random);
		sum += chi_square((enum shape)_i, buckets);
	}
	*k = good;
	ck_assert_double_lt(sum / DRAWS, 1.5);
}
END_TEST

/* Secrets may be shared, table keys are each region's own. */
START_TEST(regions_place_keys_differently)
{
	struct kvr_options o = small_options();
	uint32_t same = 0, i;
	struct kvr *other;

	ck_assert_int_eq(kvr_new(&o, &other), KVR_OK);
	ck_assert_uint_eq(k->rule.id, other->rule.id);
	for (i = 0; i < 3; i++)
		ck_assert_mem_ne(k->table_key + 4 * i, other->table_key + 4 * i,
		    4 * sizeof(uint64_t));
	for (i = 0; i < KEYS; i++)
		same += bucket_of_node(k, plain_root(&k->rule,
		    &(struct kvr_scope){ 0 }), i * 77777) ==
		    bucket_of_node(other, plain_root(&k->rule,
		    &(struct kvr_scope){ 0 }), i * 77777);
	ck_assert_uint_lt(same, KEYS / 4);
	kvr_free(other);
}
END_TEST

/* --------------------------------------------------------------- suite --- */

Suite *suite_region(void);

Suite *
suite_region(void)
{
	Suite *s = suite_create("region");
	TCase *t = tcase_create("memory");

	tcase_add_loop_test(t, layout_at_every_size, 0, FLEETS);
	tcase_add_loop_test(t, layout_too_small, 0, FLEETS);
	tcase_add_test(t, layout_beyond_links);
	tcase_add_test(t, sealed_nonsense);
	tcase_add_test(t, truncated);
	tcase_add_test(t, moved);
	suite_add_tcase(s, t);
	t = small_case(s, "small");
	tcase_add_test(t, empty_keeps_what_is_durable);
	tcase_add_loop_test(t, buckets_are_even, 0, SHAPES);
	tcase_add_test(t, regions_place_keys_differently);
	t = tcase_create("cells");
	tcase_add_checked_fixture(t, cells_setup, cells_teardown);
	tcase_add_test(t, every_cell_once);
	tcase_add_loop_test(t, trees_of_every_level, 0, ENDS);
	tcase_add_test(t, cells_in_random_order);
	suite_add_tcase(s, t);
	return s;
}
