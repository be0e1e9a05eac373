/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cover.c - which nodes an entry is for; and that a prefix that many hold
 * may be cut up without its entries being multiplied.
 *
 * A worker's entries are drawn as "end:blocks", in the order of their stamps.
 * Work is counted in entries and steps, never timed.
 */
#include "cover.h"
#include "match.h"

#include "inner.h"

#include <stdio.h>

/* Compares the entries of a worker: the end of each, and its coverage. */
static void
ck_entries(uint32_t worker, const char *want)
{
	const struct entry *h;
	char text[256] = "";
	size_t length = 0;
	uint32_t i;

	for (i = slot_at(k, worker)->by_stamp.head; i != 0;
	     i = entry_at(k, i)->stamp_next) {
		h = entry_at(k, i);
		length += (size_t)snprintf(text + length, sizeof(text) - length,
		    "%s%u:%u", length > 0 ? " " : "",
		    (unsigned)index_position(k, h->node), (unsigned)h->blocks);
		ck_assert_uint_lt(length, sizeof(text));
	}
	ck_assert_str_eq(text, want);
}

/* ---------------------------------------------------- of a few nodes --- */

/* The drawing of cover.c, from oldest to youngest. */
START_TEST(stairs)
{
	observe(1, "abcdefg", 2);
	ck_entries(1, "7:7");
	observe(1, "abcdef", 5);
	ck_entries(1, "7:1 6:6");
	observe(1, "abc", 9);
	ck_entries(1, "7:1 6:3 3:3");
	observe(0, "abcd", 9); /* a split of its own makes no entries of 1's */
	observe(0, "ab", 10);
	ck_tree("ab:01(c:01(d:01(ef:1(g:1))))");
	ck_entries(1, "7:1 6:3 3:3");
	observe(1, "abcdef", 11); /* equal entries are joined */
	ck_entries(1, "7:1 6:6");
	observe(1, "abcdefg", 12);
	ck_entries(1, "7:7");
	ck_tree("ab:01(cd:01(efg:1))");
	ck_assert_uint_eq(expire(9 + TTL, 100), 0);
	observe(1, "abcdefg", 9 + TTL);
	ck_assert_uint_eq(expire(10 + TTL, 100), 0);
	observe(1, "abcdefg", 10 + TTL);
	ck_tree("abcdefg:1");
}
END_TEST

/* A worker with the end of a path is found down the line from anywhere. */
START_TEST(found_down_the_line)
{
	uint32_t i;

	observe(0, "abcdefgh", 1);
	observe(1, "abcdef", 1);
	observe(2, "abcdxy", 1);
	observe(3, "abQ", 1);
	ck_entries(0, "8:8");
	for (i = 1; i <= 8; i++) {
		say("abcdefgh");
		p->blocks = i;
		ck_assert_uint_eq(overlap(0, 1), i);
		ck_assert_uint_eq(overlap(1, 1), i < 6 ? i : 6);
		ck_assert_uint_eq(overlap(2, 1), i < 4 ? i : 4);
		ck_assert_uint_eq(overlap(3, 1), i < 2 ? i : 2);
	}
	say("abcdxyz");
	ck_assert_uint_eq(overlap(0, 1), 4);
	ck_assert_uint_eq(overlap(2, 1), 6);
	/* then the rest of 0's entry is due */
	observe(1, "ab", 5);
	(void)expire(1 + TTL, 100);
	ck_tree("ab:1");
}
END_TEST

/* Pins part an entry and are not joined while they differ. */
START_TEST(parted_by_pins)
{
	uint64_t lease;

	observe(0, "abcdef", 1);
	lease = reserve(0, "abcd", 1);
	ck_entries(0, "6:2 4:4");
	ck_assert_uint_eq(slot_at(k, 0)->active, 4);
	observe(0, "abcdef", 2);
	ck_entries(0, "6:2 4:4");
	finish(lease, 2);
	ck_assert_uint_eq(slot_at(k, 0)->active, 0);
	observe(0, "abcdef", 3);
	ck_entries(0, "6:6");
	/* an unconfirmed one covers the line, too, and leaves nothing */
	observe(0, "abxy", 3);
	lease = reserve(1, "abcdef", 4);
	ck_assert_uint_eq(slot_at(k, 1)->active, 6);
	ck_assert_uint_eq(slot_at(k, 1)->entries, 1);
	give_up(lease, 5);
	ck_assert_uint_eq(slot_at(k, 1)->entries, 0);
	ck_assert_uint_eq(slot_at(k, 1)->held, 0);
}
END_TEST

/*
 * Entries of another worker are joined by a merge only if nothing was stamped
 * between them: it may be below the first, and has to go before it.
 */
START_TEST(not_joined_past_a_child)
{
	uint64_t lease = reserve(0, "abcdef", 1);

	commit(lease, 1);
	observe(0, "abQ", 1);
	observe(0, "abcd", 1);
	ck_entries(0, "6:2 3:1 4:4");
	observe(1, "abcdef", 1);
	region_sound();
	ck_entries(0, "6:2 3:1 4:4");
	observe(0, "abcdef", 1);
	ck_entries(0, "3:1 6:6");
	ck_tree("ab:0!1(Q:0 cdef:0!1)");
	finish(lease, 1);
}
END_TEST

static void
capacity(uint32_t worker, uint64_t tokens, uint32_t eviction)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.retain = KVR_RETAIN_CAPACITY;
	f.capacity_tokens = tokens;
	f.eviction = eviction;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

/* A full cache loses the end of an entry, which rises from node to node. */
START_TEST(trimmed_entry_rises)
{
	uint32_t room;

	observe(0, "abcdefgh", 1);
	observe(1, "abcd", 1);
	observe(1, "ab", 2);
	ck_entries(0, "8:8");
	for (room = 7; room > 0; room--) {
		capacity(0, room, KVR_EVICT_RELEASED);
		region_sound();
		say("abcdefgh");
		ck_assert_uint_eq(overlap(0, 2), room);
		ck_assert_uint_eq(slot_at(k, 0)->held, room);
		if (room == 4) {
			ck_entries(0, "4:4");
			ck_tree("ab:01(cd:01)");
		}
	}
	ck_entries(0, "2:2");
	observe(0, "a", 2);
	region_sound();
}
END_TEST

/* The same, where a node was split after its end had been trimmed. */
START_TEST(split_of_a_trimmed_node)
{
	observe(0, "abcdefgh", 1);
	capacity(0, 5, KVR_EVICT_RELEASED);
	observe(1, "abcxy", 2);
	observe(1, "abcdefQ", 2); /* splits the part that 0 has lost */
	ck_tree("abc:01(def:01(Q:1 gh:0) xy:1)");
	say("abcdefgh");
	ck_assert_uint_eq(overlap(0, 2), 5);
	say("abcd");
	ck_assert_uint_eq(overlap(0, 2), 4);
	capacity(0, 4, KVR_EVICT_RELEASED);
	ck_entries(0, "6:6");
	ck_tree("abc:01(def:01(Q:1) xy:1)");
	say("abcdefgh");
	ck_assert_uint_eq(overlap(0, 2), 4);
	/* using a part of it leaves nothing of the rest */
	capacity(0, 3, KVR_EVICT_RELEASED);
	observe(2, "abcdZ", 3);
	say("abcdZ");
	ck_assert_uint_eq(overlap(0, 3), 3);
	capacity(0, 8, KVR_EVICT_RELEASED);
	ck_assert_uint_eq(observed(0, 4), 5);
	region_sound();
	ck_assert_uint_eq(slot_at(k, 0)->held, 5);
}
END_TEST

/* A cache that evicts leaves evicts one node after the other. */
START_TEST(leaf_after_leaf)
{
	observe(0, "abcdefgh", 1);
	observe(1, "abcd", 1);
	observe(1, "ab", 2);
	capacity(0, 7, KVR_EVICT_LEAF);
	ck_entries(0, "4:4");
	capacity(0, 3, KVR_EVICT_LEAF);
	ck_entries(0, "2:2");
	capacity(0, 1, KVR_EVICT_LEAF);
	ck_entries(0, "");
}
END_TEST

/* A new child of many takes the place of an heir of few. */
START_TEST(popular_child)
{
	struct kvr_options o = small_options();
	uint32_t i;

	o.max_workers = 8;
	region_of(&o);
	observe(0, "abX", 1);
	observe(1, "abcd", 1);
	ck_entries(0, "3:3");
	for (i = 2; i < 8; i++)
		observe(i, "abcd", 1);
	ck_assert_uint_eq(node_at(k, child_of(0, 'a'))->heir,
	    child_of(child_of(0, 'a'), 'c'));
	ck_entries(0, "3:1 2:2");
	ck_entries(7, "4:4");
	for (i = 1; i < 8; i++)
		observe(i, "abcd", 1);
	ck_entries(1, "4:4");
	observe(0, "abX", 2);
	ck_entries(0, "3:1 2:2");
	region_end();
}
END_TEST

enum { CELLS_MAX = 1 << 17 };

/* Takes free cells until so many are left; 0: gives them back. */
static void
cells_left(uint32_t left)
{
	static uint32_t taken[CELLS_MAX], n;

	while (left > 0 && k->region->free_cells > left && n < CELLS_MAX)
		taken[n++] = cell_take(k);
	while (left == 0 && n > 0)
		cell_give(k, taken[--n]);
}

/* A popular child waits if entries further up may need the cells. */
START_TEST(heirs_wait_for_entries)
{
	struct kvr_options o = small_options();
	uint32_t i, line = 0, a, b;

	o.max_workers = 22;
	region_of(&o);
	observe(0, "aU", 1);
	observe(1, "abV", 1);
	for (i = 2; i < 5; i++)
		observe(i, "abcd", 1);
	a = child_of(0, 'a');
	b = child_of(a, 'b');
	ck_assert_uint_ne(node_at(k, a)->heir, b);
	/* one more is enough, of a worker that has nothing above */
	(void)entry_add(k, b, 5);
	ck_assert(!cover_adopt(k, a, b, &line, k->region->free_cells));
	ck_assert(cover_adopt(k, a, b, &line, 0));
	ck_assert_uint_eq(node_at(k, a)->heir, b);
	kvr_prompt_free(p);
	kvr_free(k);
}
END_TEST

/* More workers than inner.h has. */
enum { CROWD = 256 };
static uint64_t crowd[CROWD];

static void
crowd_comes(void)
{
	char name[3] = "x.y";
	uint32_t i;

	memcpy(crowd, id, sizeof(id));
	for (i = WORKERS_MAX; i < CROWD; i++) {
		name[1] = (char)i;
		ck_assert_int_eq(kvr_worker_add(k, name, 3, NULL, &crowd[i]),
		    KVR_OK);
	}
}

static void
crowd_observes(uint32_t worker, int64_t now)
{
	must(kvr_observe(k, p, crowd[worker], now, 0, NULL) == KVR_OK);
}

/* A prompt that parts after `blocks` of the prefix, with some of its own. */
static void
fork_from(uint32_t blocks, uint32_t more, uint32_t worker, int64_t now)
{
	say_long(blocks + more, blocks, blocks);
	crowd_observes(worker, now);
}

enum { UPPER = 200, LOWER = 24, ALL = UPPER + LOWER + 1, FEW = 1300 };

/* While cells are few no heir is replaced. */
static void
popular_lower_part(void)
{
	uint32_t i, j, user = 40;

	for (i = 1; i <= LOWER; i++)
		for (j = 0; j < 8; j++) {
			cells_left(0);
			cells_left(FEW);
			fork_from(UPPER + i, 1, user++, 1);
		}
	for (i = 2; i < 38; i++) {
		cells_left(0);
		cells_left(FEW);
		say_long(ALL, ALL, 0);
		crowd_observes(i, 2);
	}
	crowd_observes(0, 3);
}

/*
 * Worker 0 has the upper part of a path by entries of other lines, which must
 * be parted when it uses the path: their cells are not given to popular heirs
 * further down.
 */
START_TEST(heirs_wait_for_parted_entries)
{
	struct kvr_options o = small_options();
	uint32_t left, i;

	o.region_bytes = 5600000;
	o.ttl_ns = 1000000;
	o.max_workers = CROWD;
	for (left = 280; left < 400; left += 20) {
		region_of(&o);
		crowd_comes();
		for (i = 1; i <= UPPER; i++) {
			fork_from(i, 2, 1, 1);
			fork_from(i, 1, 0, 1);
		}
		popular_lower_part();
		for (i = UPPER; i > 0; i--)
			fork_from(i, 1, 0, 4);
		cells_left(0);
		region_sound();
		cells_left(left);
		say_long(ALL, ALL, 0);
		crowd_observes(0, 5);
		cells_left(0);
		region_end();
	}
}
END_TEST

/* With any number of cells a path is recorded whole, or as far as they go. */
START_TEST(few_cells)
{
	static const char *forks[] = { "aU", "abV", "abcZ", "abcdY", "abcdeX" };
	struct kvr_options o = small_options();
	uint32_t left, i, j, whole = 0;

	o.max_workers = 22;
	o.region_bytes = 103768;
	for (left = 1; left < 120; left++) {
		region_of(&o);
		for (j = 0; j < 5; j++)
			for (i = 0; i < 3; i++)
				commit(reserve(i, forks[j], 1), 1);
		for (i = 10; i < 18; i++)
			commit(reserve(i, "abcdefg", 1), 1);
		cells_left(left);
		say("abcdefg");
		whole += observed(21, 1) == 7;
		cells_left(0);
		region_end();
	}
	ck_assert_uint_gt(whole, 0);
	ck_assert_uint_lt(whole, 119);
}
END_TEST

/* More children than are counted: it is never merged, and sound. */
START_TEST(children_without_number)
{
	struct node *n;

	observe(0, "abX", 1);
	observe(0, "abY", 1);
	n = node_at(k, child_of(0, 'a'));
	n->children = CHILDREN_MANY - 1;
	observe(0, "abZ", 1);
	ck_assert_uint_eq(n->children, CHILDREN_MANY);
	observe(0, "abQ", 1);
	ck_assert_uint_eq(n->children, CHILDREN_MANY);
	region_sound();
	observe(0, "abQ", 5);
	(void)expire(1 + TTL, 100);
	ck_assert_uint_eq(n->children, CHILDREN_MANY);
	observe(0, "abQ", 1 + TTL);
	ck_tree("ab:0(Q:0)");
	(void)expire(1 + 2 * TTL, 100);
	ck_tree("");
}
END_TEST

/* --------------------------------------------------- of a hot prefix --- */

static uint32_t fleet, depth;
static uint64_t *worker;

/*
 * A lookup's steps are the cells that share its bucket. With all buckets in
 * use there are next to no steps, before a history and after it, so only the
 * work on the tree is counted.
 */
static void
use_all_buckets(void)
{
	struct counts *c = &k->region->counts;

	c->nodes = c->entries = UINT32_MAX;
	while (k->region->node_buckets_used < k->layout.node_buckets)
		node_table_grow(k);
	while (k->region->entry_buckets_used < k->layout.entry_buckets)
		entry_table_grow(k);
	c->nodes = c->entries = 0;
}

static void
big_fleet(uint32_t workers, uint32_t blocks)
{
	struct kvr_options o = small_options();
	char name[16];
	uint32_t i;

	fleet = workers;
	depth = blocks;
	o.region_bytes = 64 << 20;
	o.max_workers = workers;
	o.max_prompt_blocks = 1 << 16;
	worker = calloc(workers, sizeof(*worker));
	ck_assert_ptr_nonnull(worker);
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	people(0);
	for (i = 0; i < workers; i++) {
		snprintf(name, sizeof(name), "%u", (unsigned)i);
		ck_assert_int_eq(kvr_worker_add(k, name, strlen(name), NULL,
		    &worker[i]), KVR_OK);
	}
	use_all_buckets();
}

static void
fleet_end(void)
{
	free(worker);
	region_end();
}

/* Each worker uses the prefix. */
static void
refresh(int64_t now)
{
	uint32_t i;

	say_long(depth, depth, 0);
	for (i = 0; i < fleet; i++)
		ck_assert_int_eq(kvr_observe(k, p, worker[i], now, 0, NULL),
		    KVR_OK);
}

/* A short prompt parts at each of its blocks. */
static void
fragment(int64_t now)
{
	uint32_t i;

	for (i = 1; i < depth; i++) {
		say_long(i + 1, i, 1);
		ck_assert_int_eq(kvr_observe(k, p, worker[i % fleet], now, 0,
		    NULL), KVR_OK);
	}
}

/* Steps of a match of the first `blocks` of the prefix. */
static uint32_t
match_steps(uint32_t blocks, int64_t now)
{
	static struct kvr_overlap rows[KVR_WORKERS_MAX];
	static uint32_t places[KVR_WORKERS_MAX * SLOTS_PER_WORKER];
	uint32_t next_base = 1;
	struct found_set set = { .room = fleet, .rows = rows, .found = rows,
		.places = places, .next_base = &next_base };

	memset(places, 0, sizeof(places));
	say_long(blocks, blocks, 0);
	match_overlaps(k, p, now, &set);
	ck_assert_uint_eq(set.count, fleet);
	return (uint32_t)set.steps;
}

/* Steps of a request for it: lease, and end. */
static uint64_t
request_steps(int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint64_t steps;

	say_long(depth, depth, 0);
	k->region->counts.max_steps = 0;
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, worker[0], now, &d),
	    KVR_OK);
	ck_assert_int_eq(kvr_lease_abort(k, d.lease, now, 0), KVR_OK);
	steps = stats().max_steps;
	ck_assert_uint_lt(stats().entries, 2 * (uint64_t)fleet + depth);
	return steps;
}

/*
 * 249 short prompts part from a prompt that all hold, at each of its blocks.
 * Neither the entries nor the work of a match are multiplied by this; and when
 * the short ones are due, one refresh by each worker leaves the prompt as
 * before.
 */
START_TEST(fragmented_hot_prefix)
{
	uint64_t before;
	uint32_t match, i;

	big_fleet((uint32_t)test_amount(1024), 250);
	refresh(1);
	match = match_steps(depth, 1);
	before = request_steps(1);
	fragment(_i == 0 ? 1 : 2);
	region_sound();
	ck_assert_uint_eq(stats().splits, depth - 1);
	ck_assert_uint_lt(stats().entries, fleet + 2 * (uint64_t)depth);
	/* the nodes of the path, and the holders once */
	for (i = 1; i <= depth; i += 83)
		ck_assert_uint_le(match_steps(i, 2), match + 3 * depth);
	ck_assert_uint_le(request_steps(2), before + 8 * depth);
	refresh(3);
	ck_assert_uint_lt(stats().entries, fleet + 2 * (uint64_t)depth);
	(void)expire(2 + TTL, UINT32_MAX);
	refresh(2 + TTL);
	ck_assert_uint_eq(stats().entries, fleet);
	ck_assert_uint_eq(stats().nodes, 1);
	ck_assert_uint_eq(match_steps(depth, 2 + TTL), match);
	ck_assert_uint_eq(request_steps(2 + TTL), before);
	fleet_end();
}
END_TEST

/* The short prompts come first: then their ends are the heirs. */
START_TEST(short_prompts_first)
{
	big_fleet((uint32_t)test_amount(1024), 250);
	fragment(1);
	refresh(2);
	region_sound();
	refresh(3);
	region_sound();
	ck_assert_uint_lt(stats().entries, fleet + 3 * (uint64_t)depth);
	ck_assert_uint_le(match_steps(depth, 3),
	    fleet / PAIRS + 3 * depth + 64);
	fleet_end();
}
END_TEST

/* Workers part from it at random: a few entries each, not one for each node. */
START_TEST(random_depths)
{
	uint32_t i, at;

	by_chance();
	big_fleet((uint32_t)test_amount(256), 250);
	refresh(1);
	for (i = 0; i < 100 * fleet; i++) {
		at = 1 + pick(depth - 1);
		say_long(at, at, 0);
		ck_assert_int_eq(kvr_observe(k, p, worker[pick(fleet)],
		    2 + i, 0, NULL), KVR_OK);
	}
	region_sound();
	/* the stairs of one are as many as records in a random order */
	ck_assert_uint_lt(stats().entries, 10 * (uint64_t)fleet);
	refresh(200 * fleet);
	refresh(200 * fleet + 1);
	ck_assert_uint_eq(stats().entries, fleet);
	ck_assert_uint_eq(stats().nodes, 1);
	fleet_end();
}
END_TEST

/* The cost of cutting up a run does not depend on its holders. */
START_TEST(split_whatever_the_holders)
{
	uint64_t steps[2], cells[2];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		big_fleet(i == 0 ? 2 : (uint32_t)test_amount(4096), 100);
		refresh(1);
		k->region->counts.max_steps = 0;
		k->region->counts.max_cells = 0;
		say_long(60, 50, 1);
		ck_assert_int_eq(kvr_observe(k, p, worker[0], 1, 0, NULL),
		    KVR_OK);
		ck_assert_uint_eq(stats().splits, 1);
		steps[i] = stats().max_steps;
		cells[i] = stats().max_cells;
		fleet_end();
	}
	ck_assert_uint_le(cells[1], cells[0] + 2);
	ck_assert_uint_le(steps[1], steps[0] + 8);
}
END_TEST

/*
 * A line is not longer than a match may follow. While many workers cover all of
 * it, the next prompts end above, which leaves fewer; then the line is cut.
 */
START_TEST(line_that_is_full)
{
	big_fleet(100, LINE_MAX + 100);
	refresh(1);
	fragment(2);
	region_sound();
	ck_assert_uint_gt(stats().truncated, 0);
	ck_assert_uint_lt(stats().truncated, fleet);
	ck_assert_uint_eq(stats().splits + stats().truncated, depth - 1);
	(void)match_steps(1, 2); /* all are found */
	(void)expire(2 + TTL, UINT32_MAX);
	refresh(2 + TTL);
	refresh(2 + TTL);
	ck_assert_uint_lt(stats().nodes, 4);
	fleet_end();
}
END_TEST

/* Lines that are joined again where they were cut are too long. */
static uint32_t
lines_too_long(void)
{
	static const struct insert as_it_is;
	struct path path;
	uint32_t node, above, found = 0;

	say_long(depth, depth, 0);
	index_walk(k, p, depth, &as_it_is, &path);
	for (node = path.node; node != 0; node = above) {
		above = node_at(k, node)->parent;
		if (above == 0 || node_at(k, above)->heir != 0)
			continue;
		node_at(k, above)->heir = node;
		found += kvr_check(k) == KVR_ECORRUPT;
		node_at(k, above)->heir = 0;
	}
	return found;
}

/* If few do, the line is cut, and nothing is lost. */
START_TEST(line_that_is_cut)
{
	uint32_t i, n;

	big_fleet(2, 3 * LINE_MAX);
	refresh(1);
	if (_i == 0)
		fragment(2);
	for (i = depth - 1; _i != 0 && i > 0; i--) {
		say_long(i, i, 0);
		ck_assert_int_eq(kvr_observe(k, p, worker[i % 2], 2, 0, NULL),
		    KVR_OK);
	}
	region_sound();
	ck_assert_uint_gt(lines_too_long(), 0);
	ck_assert_uint_eq(stats().truncated, 0);
	ck_assert_uint_eq(stats().splits, depth - 1);
	for (n = 1; n <= depth; n += 611)
		ck_assert_uint_le(match_steps(n, 2), 5 * n + 2 * LINE_MAX);
	(void)expire(2 + TTL, UINT32_MAX);
	for (i = 0; i < 4; i++)
		refresh(2 + TTL + i);
	ck_assert_uint_lt(stats().nodes, 8);
	fleet_end();
}
END_TEST

/* --------------------------------------------------------------- suite --- */

Suite *suite_cover(void);

Suite *
suite_cover(void)
{
	Suite *s = suite_create("cover");
	TCase *t = small_case(s, "few"), *hot = tcase_create("hot prefix");

	tcase_add_test(t, stairs);
	tcase_add_test(t, found_down_the_line);
	tcase_add_test(t, parted_by_pins);
	tcase_add_test(t, not_joined_past_a_child);
	tcase_add_test(t, trimmed_entry_rises);
	tcase_add_test(t, split_of_a_trimmed_node);
	tcase_add_test(t, leaf_after_leaf);
	tcase_add_test(t, children_without_number);
	tcase_add_test(hot, popular_child);
	tcase_add_test(hot, heirs_wait_for_entries);
	tcase_add_test(hot, heirs_wait_for_parted_entries);
	tcase_add_test(hot, few_cells);
	tcase_add_loop_test(hot, fragmented_hot_prefix, 0, 2);
	tcase_add_test(hot, short_prompts_first);
	tcase_add_test(hot, random_depths);
	tcase_add_test(hot, split_whatever_the_holders);
	tcase_add_test(hot, line_that_is_full);
	tcase_add_loop_test(hot, line_that_is_cut, 0, 2);
	suite_add_tcase(s, hot);
	return s;
}
