/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_entry.c - the entries of a few nodes against a plain table.
 *
 * The nodes are bare: they have a length and entries, no run and no place in
 * the tree. The pairs, which a match would read, the table of entries, where a
 * writer looks, and the counters must all agree.
 */
#include "order.h"

#include "inner.h"

enum { NODES = 3, HOLDERS = 40 };

/* One worker's entry on one node, as it should be. */
struct have {
	uint32_t entry;  /* 0: none */
	uint32_t pins;
	int64_t stamp;
	bool listed;
};
static struct have have[NODES][HOLDERS];
static uint32_t nodes[NODES];
static uint32_t all_cells;
static int64_t now;

static void
setup(void)
{
	struct kvr_options o = small_options();
	uint32_t i;

	o.max_workers = HOLDERS;
	region_of(&o);
	memset(have, 0, sizeof(have));
	for (i = 0; i < NODES; i++) {
		nodes[i] = cell_take(k);
		memset(node_at(k, nodes[i]), 0, CELL);
		node_at(k, nodes[i])->length = 10 + i;
	}
	all_cells = k->region->free_cells;
	now = 0;
}

/* Bare nodes are no index: the region is not checked. */
static void
teardown(void)
{
	kvr_prompt_free(p);
	kvr_free(k);
}

/* ----------------------------------------------------------- comparing --- */

static uint32_t
holders_of(uint32_t n)
{
	uint32_t slot, holders = 0;

	for (slot = 0; slot < HOLDERS; slot++)
		holders += have[n][slot].entry != 0;
	return holders;
}

struct pair {
	uint32_t word;
	int64_t stamp;
};

/* The i-th pair of a node, found by going through all its groups. */
static struct pair
pair_at(const struct node *node, uint32_t i)
{
	struct groups at = groups_of(node, node->holders);
	struct pair pair = { node->word, node->stamp };
	const struct group *g;
	uint32_t pairs;

	if (node->holders == 1)
		return pair;
	for (; (pairs = groups_next(k, &at, &g)) > 0 && i >= pairs;)
		i -= pairs;
	must(pairs > i);
	pair.word = g->word[i];
	pair.stamp = g->stamp[i];
	return pair;
}

/* The pairs of a node are those of its holders, each once. */
static void
ck_pairs(uint32_t n)
{
	const struct node *node = node_at(k, nodes[n]);
	bool met[HOLDERS] = { false };
	uint32_t slot, count;
	struct pair at;

	for (count = 0; count < node->holders; count++) {
		at = pair_at(node, count);
		slot = at.word & WORD_SLOT;
		must(slot < HOLDERS && !met[slot]);
		must(have[n][slot].entry != 0);
		must(at.stamp == have[n][slot].stamp);
		must(((at.word & WORD_PINNED) != 0) ==
		    (have[n][slot].pins > 0));
		met[slot] = true;
		must(pairs_slot(k, node, count) == slot);
	}
	must(count == holders_of(n));
	must(count == node_at(k, nodes[n])->holders);
	/* few bits of slots that have left: lookups of others stay short */
	must(count < 2 || (uint32_t)__builtin_popcountll(node->slots) <=
	    2 * count);
}

/* Each entry is found, and points to its pair. */
static void
ck_found(uint32_t n)
{
	const struct node *node = node_at(k, nodes[n]);
	uint32_t slot, hold;

	for (slot = 0; slot < k->layout.slots; slot++) {
		const struct entry *h;

		hold = entry_find(k, nodes[n], slot);
		must(hold == (slot < HOLDERS ? have[n][slot].entry : 0));
		if (hold == 0)
			continue;
		h = entry_at(k, hold);
		must(h->pins == have[n][slot].pins);
		must(h->stamp == have[n][slot].stamp);
		must(((h->flags & ENTRY_LISTED) != 0) == have[n][slot].listed);
		must((h->group == 0) == (node->holders == 1));
		must(h->group == 0 || (cell_at(k, h->group)->group.word[
		    entry_lane(h)] & WORD_SLOT) == slot);
		must(node->holders != 1 || node->entries == hold);
	}
}

/*
 * A cell for each entry, for each group of six where there are two entries,
 * and for each sixteen links to groups where there are two groups.
 */
static void
ck_cells(void)
{
	uint32_t n, used = 0, holders, cells;

	for (n = 0; n < NODES; n++) {
		holders = holders_of(n);
		used += holders;
		if (holders < 2)
			continue;
		cells = (holders + PAIRS - 1) / PAIRS;
		for (used += cells; cells > 1; used += cells)
			cells = (cells + PIECE - 1) / PIECE;
	}
	must(k->region->free_cells == all_cells - used);
}

static void
ck_counts(void)
{
	uint64_t all = 0, all_held = 0;
	uint32_t slot, n;

	for (slot = 0; slot < HOLDERS; slot++) {
		const struct slot *s = slot_at(k, slot);
		uint64_t entries = 0, held = 0, active = 0;

		for (n = 0; n < NODES; n++) {
			const struct have *h = &have[n][slot];
			uint32_t length = node_at(k, nodes[n])->length;

			entries += h->entry != 0;
			held += h->entry != 0 ? length : 0;
			active += h->pins > 0 ? length : 0;
		}
		must(s->entries == entries && s->held == held);
		must(s->active == active && s->blocks == active);
		all += entries;
		all_held += held;
	}
	must(k->region->counts.entries == all);
	must(k->region->counts.held == all_held);
}

static void
ck_all(void)
{
	uint32_t n;

	for (n = 0; n < NODES; n++) {
		ck_pairs(n);
		ck_found(n);
	}
	ck_cells();
	ck_counts();
}

/* -------------------------------------------------------- both at once --- */

static void
add(uint32_t n, uint32_t slot)
{
	struct have *h = &have[n][slot];

	h->entry = entry_add(k, nodes[n], slot);
	h->pins = 0;
	h->stamp = STAMP_NONE;
	h->listed = false;
}

static void
stamp(uint32_t n, uint32_t slot)
{
	entry_stamp(k, have[n][slot].entry, 0, true, now);
	have[n][slot].stamp = now;
	have[n][slot].listed = true;
}

static void
take(uint32_t n, uint32_t slot)
{
	/* pinned entries are never removed */
	while (have[n][slot].pins > 0) {
		(void)entry_unpin(k, have[n][slot].entry, 0);
		have[n][slot].pins--;
	}
	entry_remove(k, have[n][slot].entry);
	memset(&have[n][slot], 0, sizeof(have[n][slot]));
}

static void
pin(uint32_t n, uint32_t slot)
{
	entry_pin(k, have[n][slot].entry, STAMP_NONE);
	have[n][slot].pins++;
}

/* It returns whether the entry, being on no list, must go. */
static void
unpin(uint32_t n, uint32_t slot)
{
	struct have *h = &have[n][slot];
	bool last = h->pins == 1, gone = entry_unpin(k, h->entry, 0);

	must(gone == (last && !h->listed));
	if (h->pins > 0)
		h->pins--;
	if (gone)
		take(n, slot);
}

/* Parts a node after its blocks were counted in both parts. */
static void
copy(uint32_t n, uint32_t to, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);
	uint32_t blocks = node_at(k, nodes[to])->length;

	have[to][slot] = have[n][slot];
	have[to][slot].entry = entry_copy(k, nodes[to], have[n][slot].entry);
	must(cover_same(k, have[to][slot].entry, have[n][slot].entry));
	entry_at(k, have[to][slot].entry)->blocks = blocks;
	entry_count_blocks(k, slot, blocks);
	if (have[n][slot].pins > 0) {
		s->active += blocks;
		s->blocks += blocks;
	}
}

/* --------------------------------------------------------------- tests --- */

/* Up to this many holders, coming and going in any order. */
START_TEST(random_holders)
{
	static const uint32_t most[] = { 1, 2, 3, 6, 7, 12, 13, 40 };
	uint64_t steps = test_amount(3000);
	uint32_t n, slot;

	by_chance();
	for (; steps > 0; steps--) {
		n = pick(NODES);
		slot = pick(most[_i]);
		now += pick(2);
		if (have[n][slot].entry == 0)
			add(n, slot);
		else if (pick(3) == 0)
			take(n, slot);
		else if (pick(3) == 0)
			stamp(n, slot);
		else if (pick(2) == 0)
			pin(n, slot);
		else if (have[n][slot].pins > 0)
			unpin(n, slot);
		else if (have[(n + 1) % NODES][slot].entry == 0)
			copy(n, (n + 1) % NODES, slot);
		ck_all();
	}
}
END_TEST

/* All come, all go: from the first, from the last, from the middle. */
START_TEST(everybody_comes_and_goes)
{
	uint32_t order, i, slot;

	for (order = 0; order < 3; order++) {
		for (slot = 0; slot < HOLDERS; slot++) {
			add(0, slot);
			stamp(0, slot);
			ck_all();
		}
		for (i = 0; i < HOLDERS; i++) {
			slot = order == 0 ? i : order == 1 ? HOLDERS - 1 - i
			    : (i * 27 + 20) % HOLDERS;
			take(0, slot);
			ck_all();
		}
	}
	ck_assert_uint_eq(k->region->free_cells, all_cells);
}
END_TEST

/* One pair is kept in the node, two in a group, and back. */
START_TEST(spread_and_gather)
{
	const struct node *n = node_at(k, nodes[0]);
	uint32_t slot;

	for (slot = 5; slot < 7; slot++) {
		now++;
		add(0, 5);
		stamp(0, 5);
		ck_assert_uint_eq(n->entries, have[0][5].entry);
		ck_assert_uint_eq(n->word, 5);
		ck_assert_int_eq(n->stamp, now);
		pin(0, 5);
		ck_assert_uint_eq(n->word, 5 | WORD_PINNED);
		add(0, 6);
		ck_all();
		ck_assert_uint_ne(n->entries, have[0][5].entry);
		ck_assert_uint_ne(n->entries, have[0][6].entry);
		take(0, slot);
		ck_all();
		ck_assert_uint_eq(n->word & WORD_SLOT, slot == 5 ? 6 : 5);
		take(0, slot == 5 ? 6 : 5);
		ck_assert_uint_eq(n->entries, 0);
	}
}
END_TEST

START_TEST(sameness)
{
	const uint32_t slot = 3;

	/* 1 is the child, which is stamped and released first */
	add(0, slot);
	add(1, slot);
	ck_assert(cover_same(k, have[0][slot].entry, have[1][slot].entry));
	stamp(1, slot);
	ck_assert(!cover_same(k, have[0][slot].entry, have[1][slot].entry));
	stamp(0, slot);
	ck_assert(cover_same(k, have[0][slot].entry, have[1][slot].entry));
	/* something else was released between the two */
	add(2, slot);
	stamp(2, slot);
	pin(0, slot);
	stamp(0, slot);
	unpin(0, slot);
	ck_assert(!cover_same(k, have[0][slot].entry, have[1][slot].entry));
	take(2, slot);
	ck_assert(cover_same(k, have[0][slot].entry, have[1][slot].entry));
	pin(0, slot);
	ck_assert(!cover_same(k, have[0][slot].entry, have[1][slot].entry));
	pin(1, slot);
	ck_assert(cover_same(k, have[0][slot].entry, have[1][slot].entry));
	order_remove(k, have[0][slot].entry);
	have[0][slot].listed = false;
	ck_assert(!cover_same(k, have[0][slot].entry, have[1][slot].entry));
	ck_all();
}
END_TEST

/*
 * Entries are in order of release. A pin alone changes nothing: the request
 * may never be dispatched.
 */
START_TEST(released_in_order)
{
	const struct list *idle = &slot_at(k, 0)->by_release;
	uint32_t n;

	for (n = 0; n < NODES; n++) {
		add(n, 0);
		stamp(n, 0);
	}
	ck_assert_uint_eq(idle->head, have[0][0].entry);
	pin(0, 0);
	ck_assert_uint_eq(idle->head, have[0][0].entry);
	unpin(0, 0);
	ck_assert_uint_eq(idle->head, have[0][0].entry);
	pin(0, 0);
	pin(0, 0);
	stamp(0, 0);
	ck_assert_uint_eq(idle->head, have[1][0].entry);
	pin(1, 0);
	stamp(1, 0);
	ck_assert_uint_eq(idle->head, have[2][0].entry);
	unpin(0, 0);
	ck_assert_uint_eq(idle->tail, have[2][0].entry);
	unpin(1, 0);
	ck_assert_uint_eq(idle->tail, have[1][0].entry);
	unpin(0, 0);
	ck_assert_uint_eq(idle->tail, have[0][0].entry);
	stamp(2, 0);
	ck_assert_uint_eq(idle->head, have[1][0].entry);
	ck_assert_uint_eq(idle->tail, have[2][0].entry);
	ck_all();
}
END_TEST

/* An unconfirmed entry goes with its last pin; unpinning is harmless. */
START_TEST(unconfirmed)
{
	add(0, 9);
	ck_assert(!entry_unpin(k, have[0][9].entry, 0));
	pin(0, 9);
	pin(0, 9);
	unpin(0, 9);
	ck_all();
	ck_assert_uint_ne(have[0][9].entry, 0);
	unpin(0, 9);
	ck_all();
	ck_assert_uint_eq(have[0][9].entry, 0);
}
END_TEST

Suite *suite_entry(void);

Suite *
suite_entry(void)
{
	Suite *s = suite_create("entry");
	TCase *t = tcase_create("entry");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, random_holders, 0, 8);
	tcase_add_test(t, everybody_comes_and_goes);
	tcase_add_test(t, spread_and_gather);
	tcase_add_test(t, sameness);
	tcase_add_test(t, released_in_order);
	tcase_add_test(t, unconfirmed);
	suite_add_tcase(s, t);
	return s;
}
