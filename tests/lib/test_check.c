/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_check.c - kvr_check finds damage.
 *
 * The region, and how it is damaged and repaired, are damage.h's. The classes
 * are those at the top of lib/check/check.c; lists are test_check_order.c's,
 * workers test_check_fleet.c's, counts test_check_figures.c's. Last, junk is
 * written anywhere: the check may or may not find something, but it ends, and
 * accesses nothing outside.
 */
#include "damage.h"

START_TEST(good_is_good)
{
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	ck_assert_mem_eq(memory, good, BYTES);
}
END_TEST

/* --------------------------------------------------------------- cells --- */

START_TEST(damaged_free)
{
	struct region *r = k->region;

	ck_assert_uint_gt(r->magazine_count, 1);
	FOUND(r->free_cells++);
	FOUND(r->free_cells--);
	FOUND(r->fresh++);
	FOUND(r->fresh--);
	FOUND(r->fresh = 0);
	FOUND(r->fresh = UINT32_MAX);
	FOUND(r->magazine[0] = r->magazine[1]);
	FOUND(r->magazine[0] = 0);
	FOUND(r->magazine[0] = k->layout.cells);
	FOUND(r->magazine[0] = leaf);
	FOUND(r->magazine_count--);
	FOUND((r->magazine_count--, r->free_cells--)); /* a lost cell */
	FOUND(r->magazine_count = MAGAZINE + 1);
	FOUND(r->magazine_count = UINT32_MAX);
	FOUND(r->free_top = 0);
	FOUND(r->free_top = leaf);
	FOUND(r->free_top = k->layout.cells);
}
END_TEST

/* A tree of free pieces on the stack. */
static struct tree *
free_tree(void)
{
	uint32_t i = k->region->free_top;

	while (i != 0 && cell_at(k, i)->tree.kind != CELL_TREE)
		i = cell_at(k, i)->tree.next;
	ck_assert_uint_ne(i, 0);
	return &cell_at(k, i)->tree;
}

START_TEST(damaged_free_tree)
{
	struct tree *t = free_tree();

	ck_assert_uint_gt(t->level, 0);
	FOUND(t->run = N(wide)->run);
	FOUND(t->run = 0);
	FOUND(t->run = UINT32_MAX);
	FOUND(t->first++);
	FOUND(t->last--);
	FOUND(t->last = 0);
	FOUND(t->last = UINT32_MAX);
	FOUND(t->level--);
	FOUND(t->level = RUN_LEVELS);
	FOUND(t->level = 255);
	FOUND(t->kind = CELL_FREE);
	FOUND(t->next = k->region->free_top);
	FOUND(cell_at(k, t->run)->piece[0] = 0);
	FOUND(cell_at(k, t->run)->piece[0] = UINT32_MAX);
}
END_TEST

/*
 * Cell 0 reads as "none". The content was followed once, from an anonymous
 * entry to a parent that is far outside.
 */
START_TEST(damaged_cell_0)
{
	union cell *none = cell_at(k, 0);
	uint32_t i;

	FOUND((none->node.parent = none->node.entries = 0xfffffff0,
	    none->node.holders = 1,
	    none->node.level = ENTRY_LISTED | ENTRY_IDLE));
	for (i = 0; i < CELL; i++) {
		FOUND(none->bytes[i] = 1);
		FOUND(none->bytes[i] = 0xff);
	}
}
END_TEST

/* --------------------------------------------------------------- nodes --- */

START_TEST(damaged_node)
{
	FOUND(N(fork)->first ^= 1);
	FOUND(N(fork)->end ^= 1);
	FOUND(N(fork)->end ^= UINT64_C(1) << 63);
	FOUND(N(fork)->prev ^= UINT64_C(1) << 63);
	FOUND(N(fork)->parent = 0);
	FOUND(N(fork)->parent = fork);
	FOUND(N(fork)->parent = wide);
	FOUND(N(fork)->parent = k->layout.cells);
	FOUND(N(fork)->parent = UINT32_MAX);
	FOUND(N(fork)->children--);
	FOUND(N(leaf)->children++);
	FOUND(N(fork)->kind = CELL_FREE);
	FOUND(N(fork)->holders--);
	FOUND(N(fork)->holders++);
	FOUND(N(fork)->holders = 0);
	FOUND(N(fork)->holders = UINT16_MAX);
	FOUND(N(fork)->entries = N(stem)->entries);
	FOUND(N(fork)->entries = 0);
	FOUND(N(fork)->entries = UINT32_MAX);
	FOUND(N(leaf)->entries = 0);
	FOUND(N(stem)->next = stem);
	FOUND(N(stem)->next = UINT32_MAX);
}
END_TEST

START_TEST(damaged_run)
{
	ck_assert_uint_eq(N(wide)->level, 2);
	FOUND(N(leaf)->length++);
	FOUND(N(leaf)->length--);
	FOUND(N(leaf)->length = 0);
	FOUND(N(leaf)->length = UINT32_MAX);
	FOUND(N(leaf)->begin++);
	FOUND(N(leaf)->begin = UINT32_MAX);
	FOUND(N(leaf)->level++);
	FOUND(N(wide)->level--);
	FOUND(N(wide)->level = 255);
	FOUND(N(leaf)->run = N(fork)->run);
	FOUND(N(leaf)->run = 0);
	FOUND(N(leaf)->run = UINT32_MAX);
	FOUND(cell_at(k, N(leaf)->run)->piece[N(leaf)->begin] ^= 1);
	FOUND(cell_at(k, N(wide)->run)->piece[1] = 0);
	FOUND(cell_at(k, N(wide)->run)->piece[1] = N(wide)->run);
	FOUND(cell_at(k, N(wide)->run)->piece[1] = UINT32_MAX);
}
END_TEST

/* A node that cannot be found by its key. */
START_TEST(damaged_node_table)
{
	uint32_t b = bucket_of_node(k, N(leaf)->prev, N(leaf)->first);
	uint32_t other = (b + 1) % k->region->node_buckets_used;

	FOUND(k->node_buckets[b] = 0);
	FOUND(k->node_buckets[b] = UINT32_MAX);
	FOUND(k->node_buckets[b] = k->region->free_top);
	FOUND((k->node_buckets[other] = leaf, k->node_buckets[b] =
	    N(leaf)->next));
	FOUND(k->region->node_buckets_used = 0);
	FOUND(k->region->node_buckets_used = k->layout.node_buckets + 1);
	FOUND(k->region->node_buckets_used = b);
	FOUND(k->region->entry_buckets_used = UINT32_MAX);
}
END_TEST

/*
 * Two nodes are each other's parent: all that is asked of either is so, and
 * only the way up has no end.
 */
START_TEST(damaged_circle)
{
	uint32_t *at = &k->node_buckets[bucket_of_node(k, N(fork)->prev,
	    N(fork)->first)];
	uint32_t b = bucket_of_node(k, N(leaf)->end, N(fork)->first);

	while (*at != fork)
		at = &N(*at)->next;
	FOUND((*at = N(fork)->next, N(fork)->next = k->node_buckets[b],
	    k->node_buckets[b] = fork, N(fork)->prev = N(leaf)->end,
	    N(fork)->parent = leaf, N(leaf)->children++, N(stem)->children--,
	    N(stem)->heir = 0));
}
END_TEST

/* ------------------------------------------------------------- entries --- */

static void
lane_of(uint32_t node, uint32_t slot, uint32_t lane)
{
	struct entry *h = H(node, slot);

	h->flags = (uint8_t)((h->flags & ((1U << ENTRY_LANE) - 1)) |
	    lane << ENTRY_LANE);
}

START_TEST(damaged_hold)
{
	FOUND(H(leaf, 0)->flags ^= 1 << ENTRY_LANE);
	FOUND(H(fork, 0)->slot = 5);
	FOUND(H(fork, 0)->slot = UINT16_MAX);
	FOUND(H(fork, 0)->node = leaf);
	FOUND(H(fork, 0)->node = 0);
	FOUND(H(fork, 0)->node = UINT32_MAX);
	FOUND(H(fork, 0)->kind = CELL_LEASE);
	FOUND(H(fork, 0)->kind = CELL_FREE);
	FOUND(H(fork, 0)->group = 0);
	FOUND(H(fork, 0)->group = UINT32_MAX);
	FOUND(lane_of(fork, 0, entry_lane(H(fork, 1))));
	FOUND(lane_of(fork, 0, PAIRS));
	FOUND(H(leaf, 0)->group = N(fork)->entries);
	/* in its lane the same */
	FOUND(H(fork, 1)->group = links_at(k, N(stem)->entries, 1, 0));
	FOUND(H(fork, 0)->pins++);
	FOUND(H(fork, 0)->pins = 0);
	FOUND(H(fork, 2)->pins++);
	FOUND(H(fork, 0)->stamp++);
	FOUND(H(fork, 0)->next = entry_find(k, fork, 0));
	FOUND(k->entry_buckets[bucket_of_entry(k, leaf, 0)] = 0);
	FOUND(k->entry_buckets[bucket_of_entry(k, leaf, 0)] = UINT32_MAX);
}
END_TEST

/* Takes an entry or a lease from its list, and gives it to another one. */
static void
rechain(uint32_t i, uint32_t from, uint32_t to)
{
	uint32_t *at = &k->entry_buckets[from];

	while (*at != i)
		at = &entry_at(k, *at)->next;
	*at = entry_at(k, i)->next;
	entry_at(k, i)->next = k->entry_buckets[to];
	k->entry_buckets[to] = i;
}

/* An entry that is in the bucket of its key, and the key is wrong. */
static void
rekey_entry(uint32_t node, uint32_t slot)
{
	uint32_t i = entry_find(k, leaf, 0);

	rechain(i, bucket_of_entry(k, leaf, 0), bucket_of_entry(k, node, slot));
	entry_at(k, i)->node = node;
	entry_at(k, i)->slot = (uint16_t)slot;
}

static void
rekey_lease(uint64_t number)
{
	uint32_t i = lease_find(k, one);

	rechain(i, bucket_of_lease(k, L(one)->number),
	    bucket_of_lease(k, number));
	lease_at(k, i)->number = number;
}

START_TEST(damaged_keys)
{
	FOUND(rekey_entry(leaf, FLEET));
	FOUND(rekey_entry(leaf, UINT16_MAX));
	FOUND(rekey_entry(k->layout.cells, 0));
	FOUND(rekey_entry(UINT32_MAX, 0));
	FOUND(rekey_entry(k->region->free_top, 0));
	FOUND(rekey_entry(fork, 0)); /* which has one */
	FOUND(rekey_lease(0));
	FOUND(rekey_lease(k->region->lease_number + 1));
	FOUND(rekey_lease(L(two)->number));
}
END_TEST

/* An entry covers a line of heirs, up to its worker's next one: cover.c. */
START_TEST(damaged_cover)
{
	uint32_t upper, lower;

	FOUND(N(stem)->heir = leaf);
	FOUND(N(stem)->heir = wide);
	FOUND(N(stem)->heir = stem);
	FOUND(N(fork)->heir = stem);
	FOUND(N(leaf)->heir = leaf);
	FOUND(N(fork)->heir = k->layout.cells);
	FOUND(N(fork)->heir = UINT32_MAX);
	FOUND(H(fork, 2)->blocks += N(stem)->length);
	observe(3, "uvwx", 12);
	observe(5, "uvQ", 12);
	ck_assert_int_eq(kvr_worker_reset(k, id[5], &id[5]), KVR_OK);
	ck_assert_uint_eq(expire(12, 100), 0);
	upper = child_of(0, 'u');
	lower = child_of(upper, 'w');
	ck_assert_uint_eq(N(upper)->holders, 0);
	ck_assert_uint_eq(H(lower, 3)->blocks, 4);
	memcpy(good, memory, BYTES);
	FOUND(N(upper)->heir = 0);
	FOUND(N(upper)->heir = leaf);
	FOUND(H(lower, 3)->blocks--);
	FOUND(H(lower, 3)->blocks++);
	FOUND(H(lower, 3)->blocks = N(lower)->length);
	FOUND(H(lower, 3)->blocks = 0);
	FOUND(H(lower, 3)->blocks = UINT32_MAX);
	FOUND(H(lower, 3)->trimmed = 4);
}
END_TEST

/* The node must have enough holders for links to its groups. */
#define link_of(node, i) cell_at(k, N(node)->entries)->piece[i]

/* A match reads a copy: it must be equal. */
START_TEST(damaged_pair)
{
	uint32_t lane = entry_lane(H(fork, 2));

	FOUND(G(fork)->stamp[lane]++);
	FOUND(G(fork)->word[lane] ^= 1);
	FOUND(G(fork)->word[lane] ^= WORD_PINNED);
	FOUND(N(leaf)->stamp++);
	FOUND(N(leaf)->word ^= 1);
	FOUND(N(leaf)->word ^= WORD_PINNED);
	FOUND(link_of(stem, 1) = 0);
	FOUND(link_of(stem, 1) = link_of(stem, 0));
	FOUND(link_of(stem, 0) = N(fork)->entries);
	FOUND(link_of(stem, 0) = UINT32_MAX);
	FOUND(N(stem)->entries = link_of(stem, 0));
}
END_TEST

/* THE invariant: no entry is younger than its parent. */
START_TEST(damaged_ages)
{
	FOUND(stamp_both(fork, 1, H(stem, 1)->stamp + 1));
	FOUND(stamp_both(leaf, 0, H(fork, 0)->stamp + 1));
	FOUND(stamp_both(stem, 2, H(fork, 2)->stamp - 1));
}
END_TEST

/* A pinned entry is not idle; an entry on no list is pinned. */
START_TEST(damaged_flags)
{
	ck_assert_uint_eq(H(leaf, 0)->flags, ENTRY_LISTED);
	FOUND(H(leaf, 0)->flags |= ENTRY_IDLE);
	FOUND(H(leaf, 0)->flags = 0);
	MENDED(H(fork, 2)->flags |= ENTRY_UNCONFIRMED);
	FOUND(H(child_of(child_of(fork, 'x'), 'z'), 1)->flags |=
	    ENTRY_LISTED);
}
END_TEST

/* -------------------------------------------------------------- leases --- */

START_TEST(damaged_lease)
{
	struct region *r = k->region;

	FOUND(L(one)->node = fork);
	FOUND(L(one)->node = 0);
	FOUND(L(one)->node = wide);
	FOUND(L(one)->node = r->free_top);
	FOUND(L(one)->blocks++);
	FOUND(L(one)->blocks--);
	MENDED(L(one)->private++);
	MENDED(L(two)->output--);
	MENDED(claim_at(k, L(one)->claim)->prefill++);
	MENDED(claim_at(k, L(one)->claim)->ahead++);
	FOUND(L(one)->claim = L(two)->claim);
	FOUND(L(one)->claim = 0);
	FOUND(L(one)->number += 1000);
	FOUND(L(one)->number = L(two)->number);
	FOUND(L(one)->slot = 1);
	FOUND(L(one)->slot = UINT16_MAX);
	FOUND(L(one)->kind = CELL_ENTRY);
	FOUND(L(one)->node = UINT32_MAX);
	FOUND(L(one)->flags |= LEASE_DETACHED);
	FOUND(L(one)->opened = L(two)->opened + 1);
	FOUND(L(one)->age_next = 0);
	FOUND(L(one)->age_next = r->lease_first);
	FOUND(L(one)->age_next = UINT32_MAX);
	FOUND(L(two)->age_prev = 0);
	FOUND(r->lease_first = r->lease_last);
	FOUND(r->lease_first = 0);
	FOUND(r->lease_last = 0);
}
END_TEST

/* The lease of a worker that was reset has nothing. */
START_TEST(damaged_detached)
{
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	lease_detach(k, L(one));
	ck_assert_uint_ne(L(one)->flags & LEASE_DETACHED, 0);
	region_sound();
	memcpy(good, memory, BYTES);
	FOUND(L(one)->node = stem);
	FOUND(L(one)->blocks = 1);
	FOUND(L(one)->private = 1);
	FOUND(L(one)->output = 1);
	FOUND(claim_at(k, L(one)->claim)->ahead = 1);
	FOUND(L(one)->flags |= LEASE_PREFILLING);
}
END_TEST

/* --------------------------------------------------------------- slots --- */

START_TEST(damaged_clock)
{
	FOUND(k->region->clock = -2);
	FOUND(k->region->clock = CLOCK_MAX + 1);
	FOUND(k->region->lease_number = UINT64_MAX);
}
END_TEST

START_TEST(damaged_slot)
{
	FOUND(k->generations[0]++);
	FOUND(k->generations[7]++);
	FOUND(slot_at(k, 0)->retired = 1);
	FOUND(slot_at(k, 7)->retired = 0); /* removed, its entries remain */
	FOUND(slot_at(k, 15)->retired = 1);
}
END_TEST

/* ------------------------------------------------------------- caches --- */

START_TEST(damaged_trim)
{
	struct entry *h = idle_hold(false);
	uint32_t length = N(h->node)->length;

	ck_assert_uint_gt(h->trimmed, 0);
	ck_assert_uint_lt(h->trimmed, length);
	MENDED(h->trimmed++);
	FOUND(h->trimmed--);
	FOUND(h->trimmed = 0);
	FOUND(h->trimmed = length);
	FOUND(h->trimmed = length + 1);
	FOUND(h->trimmed = UINT32_MAX);
	FOUND(h->flags |= ENTRY_MARKED);
	FOUND(N(h->node)->word &= (uint16_t)~WORD_TRIMMED);
	FOUND(N(leaf)->word |= WORD_TRIMMED);
	/* below a lost end its worker holds nothing */
	MENDED((H(fork, 2)->trimmed = 1,
	    G(fork)->word[entry_lane(H(fork, 2))] |=
	    WORD_TRIMMED));
}
END_TEST

/* The expected rest of a request, and its prediction. */
START_TEST(damaged_claim)
{
	struct claim *c = claim_at(k, L(three)->claim);
	struct slot *s = slot_at(k, 4);

	ck_assert_uint_gt(s->ahead, 0);
	MENDED(c->ahead++);
	MENDED(c->ahead = 0);
	MENDED(s->ahead--);
	MENDED(s->ahead = 0);
	MENDED(c->prefill++);
	MENDED(c->prefill = 0);
	MENDED(c->tail = 2);
	FOUND(L(three)->claim = k->layout.cells);
	FOUND(L(three)->claim = k->region->free_top);
	FOUND(L(three)->claim = entry_find(k, leaf, 0));
	MENDED(L(three)->flags ^= LEASE_PREFILLING);
	MENDED(s->silent++);
	MENDED((s->silent++, k->loads.booked[s - k->slots]--));
	MENDED((s->reading++, k->loads.reading[s - k->slots]++));
	MENDED(s->reading = 0);
}
END_TEST

/* ---------------------------------------------------------------- junk --- */

/* Behind the header any bytes may stand. */
START_TEST(junk_anywhere)
{
	uint64_t rounds = test_amount(20000), found = 0;
	uint32_t *words = memory, word, i;
	const uint32_t from = offsetof(struct region, workers) / 4;
	int error;

	by_chance();
	for (; rounds > 0; rounds--) {
		for (i = 1 + pick(3); i > 0; i--) {
			word = from + pick(BYTES / 4 - from);
			words[word] = pick(4) == 0 ? UINT32_MAX
			    : pick(3) == 0 ? words[word] ^ 1U << pick(32)
			    : pick(k->layout.cells);
		}
		error = kvr_check(k);
		must(error == KVR_OK || error == KVR_ECORRUPT ||
		    error == KVR_EINEXACT);
		found += error == KVR_ECORRUPT;
		memcpy(memory, good, BYTES);
	}
	ck_assert_uint_gt(found, 0);
}
END_TEST

Suite *suite_check(void);

Suite *
suite_check(void)
{
	Suite *s = suite_create("check");
	TCase *t = tcase_create("damage");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, good_is_good);
	tcase_add_test(t, damaged_free);
	tcase_add_test(t, damaged_free_tree);
	tcase_add_test(t, damaged_cell_0);
	tcase_add_test(t, damaged_node);
	tcase_add_test(t, damaged_run);
	tcase_add_test(t, damaged_node_table);
	tcase_add_test(t, damaged_circle);
	tcase_add_test(t, damaged_hold);
	tcase_add_test(t, damaged_keys);
	tcase_add_test(t, damaged_cover);
	tcase_add_test(t, damaged_pair);
	tcase_add_test(t, damaged_ages);
	tcase_add_test(t, damaged_flags);
	tcase_add_test(t, damaged_lease);
	tcase_add_test(t, damaged_detached);
	tcase_add_test(t, damaged_clock);
	tcase_add_test(t, damaged_slot);
	tcase_add_test(t, junk_anywhere);
	suite_add_tcase(s, t);
	t = tcase_create("caches");
	tcase_add_checked_fixture(t, cache_setup, teardown);
	tcase_add_test(t, good_is_good);
	tcase_add_test(t, damaged_cell_0);
	tcase_add_test(t, damaged_trim);
	tcase_add_test(t, damaged_claim);
	tcase_add_test(t, junk_anywhere);
	suite_add_tcase(s, t);
	return s;
}
