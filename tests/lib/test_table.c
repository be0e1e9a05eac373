/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_table.c - the tables of nodes, entries and leases: keys are spread
 * evenly, a growing table loses none, and lookups do not depend on how far it
 * has grown.
 */
#include "inner.h"

/* --------------------------------------------------------------- spread --- */

enum { KEYS = 4000, DRAWS = 100 };

enum shape { BY_FIRST, BY_LOW, BY_HIGH, BY_BOTH, BY_SLOT, BY_NODE, BY_LEASE,
	SHAPES };

static void
use_buckets(uint32_t used)
{
	k->region->node_buckets_used = k->region->entry_buckets_used = used;
}

/* The bucket of the i-th key of a kind that is far from random. */
static uint32_t
bucket_of(enum shape shape, uint32_t i)
{
	switch (shape) {
	case BY_FIRST: return bucket_of_node(k, 7, i);
	case BY_LOW:   return bucket_of_node(k, i, 7);
	case BY_HIGH:  return bucket_of_node(k, (uint64_t)i << 32, 7);
	case BY_BOTH:  return bucket_of_node(k, (uint64_t)i << 20, i);
	case BY_SLOT:  return bucket_of_entry(k, 1000 + i / 100, i % 100);
	case BY_NODE:  return bucket_of_entry(k, i * 16, 3);
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
 * A single key can be unlucky for one shape. The promise is that over the draw
 * of the key, two keys collide no more often than by chance. The seed is
 * fixed: this passes always or never.
 */
START_TEST(buckets_are_even)
{
	uint32_t buckets, draw;
	const struct kvr good = *k;
	uint64_t random = 7;
	double sum;
	size_t i;

	for (buckets = 64; buckets <= 256; buckets *= 2) {
		ck_assert_uint_le(buckets, k->layout.node_buckets);
		use_buckets(buckets);
		for (sum = 0, draw = 0; draw < DRAWS; draw++) {
			for (i = 0; i < 12; i++)
				k->table_key[i] = plain_random(&random);
			sum += chi_square((enum shape)_i, buckets);
		}
		*k = good;
		ck_assert_double_lt(sum / DRAWS, 1.5);
	}
	use_buckets(64);
}
END_TEST

/* Secrets may be shared; table keys are each region's own. */
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

/* -------------------------------------------------------------- growing --- */

/* One bucket more takes keys only from the one that it was part of. */
START_TEST(a_bucket_more_moves_only_to_it)
{
	uint32_t room = k->layout.entry_buckets, used, i, was, is, moved;
	uint32_t largest;

	for (used = 1; used < room; used++) {
		for (largest = 1; 2 * largest <= used; largest *= 2)
			;
		for (i = 0, moved = 0; i < 200; i++) {
			use_buckets(used);
			was = bucket_of(BY_SLOT, i);
			use_buckets(used + 1);
			is = bucket_of(BY_SLOT, i);
			must(was < used && is <= used);
			must(is == was || (is == used &&
			    was == used - largest));
			moved += is != was;
		}
		must(moved < 200);
	}
	use_buckets(64);
}
END_TEST

/* A place is in the same bucket, however many are used. */
START_TEST(a_place_is_in_one_bucket)
{
	uint32_t room = k->layout.entry_buckets, used, i;

	for (used = 1; used <= room; used++) {
		use_buckets(used);
		for (i = 0; i < 100; i++)
			must(bucket_of_entry(k, i, i % 7) ==
			    bucket_of_place(k, place_of_entry(k, i, i % 7)));
	}
	for (i = 0; i < 100; i++)
		must(bucket_of_entry(k, i, i % 7) ==
		    place_of_entry(k, i, i % 7));
	use_buckets(64);
}
END_TEST

static void
say_number(uint32_t n)
{
	say_long(2 + n % 5, 0, n);
}

static void
ck_found(uint32_t n)
{
	struct kvr_overlap o[WORKERS];
	uint32_t i;
	size_t found;

	for (i = 0; i < n; i++) {
		say_number(i);
		must(kvr_match(k, p, 1, o, sizeof(o[0]), WORKERS, &found) ==
		    KVR_OK);
		must(found == 1 && o[0].worker == id[i % WORKERS] &&
		    o[0].blocks == p->blocks);
	}
}

/* Emptied, it is small again. */
START_TEST(grows_with_its_members_and_loses_none)
{
	struct region *r = k->region;
	uint32_t n, first = r->node_buckets_used;
	uint64_t lease[200];

	ck_assert_uint_eq(r->entry_buckets_used, first);
	for (n = 0; n < 200; n++) {
		say_number(n);
		lease[n] = reserved(n % WORKERS, 1);
		must(r->node_buckets_used <= k->layout.node_buckets);
		must(r->entry_buckets_used <= k->layout.entry_buckets);
		must(r->node_buckets_used <= first + 2 * (n + 1));
		must(kvr_check(k) == KVR_OK);
	}
	ck_assert_uint_ge(r->node_buckets_used, 2 * 199);
	ck_assert_uint_eq(r->entry_buckets_used, k->layout.entry_buckets);
	ck_found(n);
	while (n-- > 0)
		commit(lease[n], 1);
	ck_found(200);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_assert_uint_eq(r->node_buckets_used, first);
	ck_assert_uint_eq(r->entry_buckets_used, first);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
}
END_TEST

/* A growing table moves members that a walk has met: it meets none again. */
START_TEST(a_walk_meets_each_once_while_it_grows)
{
	uint32_t met[40] = { 0 }, i, n = 40, before;
	uint64_t sequence[40], cursor = 0;
	struct kvr_entry e;
	size_t count;

	for (i = 0; i < n; i++) {
		say_number(i);
		sequence[i] = p->sequence[p->blocks - 1];
		must(observed(i % WORKERS, 1) == p->blocks);
	}
	before = k->region->entry_buckets_used;
	do {
		must(kvr_entries(k, &cursor, 1, &e, sizeof(e), 1, &count) ==
		    KVR_OK);
		for (i = 0; i < 40; i++)
			met[i] += count == 1 && e.sequence == sequence[i];
		for (i = 0; i < 5 && n < 300; i++) {
			say_number(n++);
			must(observed(n % WORKERS, 1) == p->blocks);
		}
	} while (cursor != 0);
	ck_assert_uint_gt(k->region->entry_buckets_used, 4 * before);
	for (i = 0; i < 40; i++)
		ck_assert_uint_eq(met[i], 1);
}
END_TEST

/* --------------------------------------------------------------- damage --- */

/* Any number that damage leaves there is found, and leads to a bucket. */
START_TEST(a_damaged_number_leads_to_a_bucket)
{
	static const uint32_t odd[] = { 0, UINT32_MAX, 1U << 31, 0 };
	uint32_t first = k->region->node_buckets_used, i, j, used;

	for (i = 0; i < 4; i++) {
		used = i == 3 ? k->layout.node_buckets + 1 : odd[i];
		use_buckets(used);
		ck_assert_int_eq(kvr_check(k), KVR_ECORRUPT);
		for (j = 0; j < 1000; j++) {
			must(bucket_of(BY_NODE, j) < k->layout.entry_buckets);
			must(bucket_of(BY_FIRST, j) < k->layout.node_buckets);
		}
		node_table_grow(k);
		entry_table_grow(k);
		ck_assert_uint_eq(k->region->node_buckets_used, used);
	}
	use_buckets(first);
}
END_TEST

/* A ring has no end; growing ends. */
START_TEST(a_ring_ends)
{
	uint64_t before;
	uint32_t node, b;

	observe(0, "ab", 1);
	node = child_of(0, 'a');
	k->region->node_buckets_used = 1;
	k->node_buckets[0] = node;
	node_at(k, node)->next = node;
	k->region->counts.nodes = 100;
	before = k->region->counts.steps;
	node_table_grow(k);
	ck_assert_uint_le(k->region->counts.steps - before, 2 * CHAIN_MAX);
	ck_assert_uint_eq(k->region->node_buckets_used, 3);
	for (b = 0; b < 3; b++)
		ck_assert(k->node_buckets[b] == 0 ||
		    k->node_buckets[b] == node);
	region_empty(k);
}
END_TEST

/* A member outside its bucket cannot be taken out: the index is made anew. */
START_TEST(a_lost_member_is_damage)
{
	uint32_t ab, cd, first, *head = &k->node_buckets[0];

	observe(0, "ab", 1);
	observe(0, "cd", 1);
	ab = child_of(0, 'a');
	cd = child_of(0, 'c');
	first = *head;
	*head = ab;
	node_at(k, ab)->next = cd;
	node_at(k, cd)->next = 0;
	bucket_remove(k, head, cd);
	ck_assert_uint_eq(node_at(k, ab)->next, 0);
	ck_assert(!region_broken(k));
	bucket_remove(k, head, cd);
	ck_assert(region_broken(k));
	ck_assert_uint_eq(*head, ab);
	*head = first;
	k->region->counts.steps = 0;
	region_empty(k);
}
END_TEST

Suite *suite_table(void);

Suite *
suite_table(void)
{
	Suite *s = suite_create("table");
	TCase *t = small_case(s, "spread");

	tcase_add_loop_test(t, buckets_are_even, 0, SHAPES);
	tcase_add_test(t, regions_place_keys_differently);
	t = small_case(s, "growing");
	tcase_add_test(t, a_bucket_more_moves_only_to_it);
	tcase_add_test(t, a_place_is_in_one_bucket);
	tcase_add_test(t, grows_with_its_members_and_loses_none);
	tcase_add_test(t, a_walk_meets_each_once_while_it_grows);
	t = small_case(s, "damage");
	tcase_add_test(t, a_damaged_number_leads_to_a_bucket);
	tcase_add_test(t, a_ring_ends);
	tcase_add_test(t, a_lost_member_is_damage);
	return s;
}
