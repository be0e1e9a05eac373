/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_region.c - layout, seal, emptying.
 *
 * Damage to every single bit of the sealed header is test_border.c's; here
 * the seal is valid and its contents are not.
 */
#include "inner.h"

#include <pthread.h>

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
		{ l->due_at, l->leaves * UINT64_C(8), 8 },
		{ l->due_winner_at, l->leaves * UINT64_C(2), 2 },
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

/*
 * Less than three cells and their buckets are left unused. A region has more
 * seats now and then, and a cell less for that.
 */
START_TEST(layout_at_every_size)
{
	uint32_t workers = fleets[_i], cells = 0;
	uint64_t least = least_bytes(workers), bytes;
	struct layout l;

	for (bytes = least; bytes < least + 5000; bytes++) {
		must(layout_of(workers, bytes, &l) == KVR_OK);
		ck_layout(&l, workers, bytes);
		must(bytes - l.end < 3 * (CELL + 1));
		must(l.cells + 1 >= cells);
		cells = l.cells;
	}
	for (; bytes < UINT64_C(1) << 36; bytes += bytes / 7 + 13) {
		must(layout_of(workers, bytes, &l) == KVR_OK);
		ck_layout(&l, workers, bytes);
		must(bytes - l.end < 3 * (CELL + 1));
	}
}
END_TEST

/* The same with tenants: each cell belongs to one. */
START_TEST(layout_with_tenants)
{
	struct kvr_options o = { .size = sizeof(o), .max_workers = 8,
		.tenants = (uint32_t)_i };
	const uint64_t each = CELL + 1 + sizeof(union belonging);
	struct layout l;
	uint64_t bytes;

	for (bytes = 100000; bytes < 110000; bytes++) {
		must(region_layout(&o, bytes, &l) == KVR_OK);
		must(l.belonging_at == l.cells_at + l.cells * UINT64_C(64));
		must(l.belonging_at % CELL == 0);
		must(l.end == l.belonging_at + l.cells *
		    sizeof(union belonging));
		must(l.end <= bytes && bytes - l.end < 2 * CELL + each);
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

/* Links have 32 bits, which limits the cells; the rest is unused. */
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

/* A change that is sealed: only the contents can reveal it. */
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
	SEALED(r->seal.kind = REGION_FILE + 1, KVR_EFORMAT);
	SEALED(r->seal.event_blocks = KVR_EVENT_BLOCKS_MAX + 1, KVR_EFORMAT);
	SEALED(r->checksum++, KVR_OK); /* sealed again: nothing is wrong */
	r->checksum++;
	ck_assert_int_eq(attach(r, MEMORY), KVR_EFORMAT);
	free(r);
}
END_TEST

/* The checksum of the hash rule is right, too. */
#define RULED(change, error) \
	SEALED((change, hash_rule_seal(&r->seal.rule)), error)

START_TEST(sealed_rules)
{
	struct region *r = formatted();

	SEALED(r->seal.rule.id++, KVR_EFORMAT);
	RULED(r->seal.rule.unit = KVR_UNIT_BYTES + 1, KVR_EFORMAT);
	RULED(r->seal.rule.kind = KVR_HASH_DYNAMO + 1, KVR_EFORMAT);
	RULED(r->seal.rule.eagle = 2, KVR_EFORMAT);
	RULED(r->seal.rule.block_size = 0, KVR_EFORMAT);
	RULED(r->seal.rule.block_size = UINT32_MAX, KVR_EFORMAT);
	/* as many tokens as there may be bytes */
	RULED((r->seal.rule.unit = KVR_UNIT_TOKENS,
	    r->seal.rule.block_size = BLOCK_BYTES_MAX), KVR_EFORMAT);
	RULED(r->seal.rule.eagle = 1, KVR_OK);
	free(r);
}
END_TEST

/* Truncated anywhere it is refused; more memory than needed is accepted. */
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

static _Atomic bool attached_enough;

/* A writer that changes the layout, between looks at it. */
static void *
change_layout(void *layout)
{
	struct layout *l = layout;
	const uint32_t cells = l->cells;

	while (!atomic_load(&attached_enough)) {
		write_once(l->cells, UINT32_MAX);
		write_once(l->cells, cells);
	}
	return NULL;
}

/* The values used are those of a seal that was found to be sound. */
START_TEST(seal_changes_while_attaching)
{
	const size_t bytes = 64 << 10;
	struct kvr_options o = small_options();
	void *memory = aligned_alloc(CELL, bytes);
	uint32_t refused = 0, good = 0, tries = 200000;
	struct region *r = memory;
	struct kvr view;
	pthread_t writer;
	uint32_t cells;

	ck_assert_ptr_nonnull(memory);
	ck_assert_int_eq(kvr_new_at(&o, memory, bytes, &k), KVR_OK);
	cells = k->layout.cells;
	ck_assert_int_eq(pthread_create(&writer, NULL, change_layout,
	    &r->seal.layout), 0);
	for (; tries > 0 && (good < 500 || refused < 500); tries--) {
		memset(&view, 0, sizeof(view));
		if (region_attach(memory, bytes, &view) != KVR_OK) {
			refused++;
			continue;
		}
		if (view.layout.cells != cells)
			ck_abort_msg("a layout that was not checked");
		good++;
	}
	atomic_store(&attached_enough, true);
	ck_assert_int_eq(pthread_join(writer, NULL), 0);
	kvr_free(k);
	free(memory);
}
END_TEST

START_TEST(empty_keeps_what_is_durable)
{
	struct kvr_load load = { .size = sizeof(load), .prefill_tokens = 5,
	    .active_blocks = 6, .requests = 7, .used_blocks = 8 };
	uint64_t lease, cells = stats().cells_free;
	struct kvr_worker_stats w;

	observe(0, "abcd", 10);
	observe(1, "abxy", 20);
	lease = reserve(2, "abc", 30);
	ck_assert_int_eq(kvr_worker_set_load(k, id[2], 0, &load), KVR_OK);
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
	ck_assert_uint_eq(w.lease_opens, 1);
	ck_assert_int_eq(kvr_lease_commit(k, lease, 30, 0), KVR_ELEASE);
	ck_assert_uint_gt(reserve(2, "abc", 30), lease);
	ck_tree("abc:2!");
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
	tcase_add_loop_test(t, layout_with_tenants, 1, 4);
	tcase_add_loop_test(t, layout_too_small, 0, FLEETS);
	tcase_add_test(t, layout_beyond_links);
	tcase_add_test(t, sealed_nonsense);
	tcase_add_test(t, sealed_rules);
	tcase_add_test(t, truncated);
	tcase_add_test(t, moved);
	tcase_add_test(t, seal_changes_while_attaching);
	suite_add_tcase(s, t);
	t = small_case(s, "small");
	tcase_add_test(t, empty_keeps_what_is_durable);
	return s;
}
