/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_index.c - the radix tree, drawn after every step.
 *
 * The drawings are inner.h's; each is taken of a region that kvr_check finds
 * sound. Prompts with colliding hashes are made by hand: a false match may
 * cost hits, never more.
 */
#include "retain.h"

#include "inner.h"

#include <stdio.h>

/* Splits, merges and extensions since the test began. */
static void
ck_changes(uint64_t splits, uint64_t merges, uint64_t extensions)
{
	struct kvr_stats s = stats();

	ck_assert_uint_eq(s.splits, splits);
	ck_assert_uint_eq(s.merges, merges);
	ck_assert_uint_eq(s.extensions, extensions);
}

static void
ck_sizes(uint64_t nodes, uint64_t blocks, uint64_t entries, uint64_t held)
{
	struct kvr_stats s = stats();

	ck_assert_uint_eq(s.nodes, nodes);
	ck_assert_uint_eq(s.blocks, blocks);
	ck_assert_uint_eq(s.entries, entries);
	ck_assert_uint_eq(s.held_blocks, held);
}

/* ---------------------------------------------- the drawing of index.c --- */

START_TEST(drawing_step_by_step)
{
	observe(0, "abcdefg", 100);
	ck_tree("abcdefg:0");
	ck_sizes(1, 7, 1, 7);
	observe(1, "abcdxy", 200);
	ck_tree("abcd:01(efg:0 xy:1)");
	ck_sizes(3, 9, 3, 13); /* 0's entry on [efg] covers [abcd] */
	ck_changes(1, 0, 0);
	observe(0, "abcdefghi", 300);
	ck_tree("abcd:01(efghi:0 xy:1)");
	ck_sizes(3, 11, 3, 15);
	ck_changes(1, 0, 1);
	/* at 200 + TTL worker 1's entries are due, worker 0's are not */
	ck_assert_uint_eq(expire(200 + TTL, 100), 0);
	ck_tree("abcd:0(efghi:0)");
	ck_sizes(2, 9, 1, 9);
	observe(0, "abcdefghi", 200 + TTL);
	ck_tree("abcdefghi:0");
	ck_sizes(1, 9, 1, 9);
	ck_changes(1, 1, 1);
	ck_assert_uint_eq(expire(200 + 2 * TTL, 100), 0);
	ck_tree("");
	ck_sizes(0, 0, 0, 0);
}
END_TEST

/* ---------------------------------------------------------------- ends --- */

START_TEST(ends_inside_a_run)
{
	observe(0, "abcdef", 1);
	observe(0, "abc", 2); /* stamps differ from here on */
	ck_tree("abc:0(def:0)");
	observe(1, "ab", 3);
	ck_tree("ab:01(c:0(def:0))");
	observe(1, "abcde", 4); /* [ab] and [c] are alike now */
	ck_tree("abc:01(de:01(f:0))");
	ck_changes(3, 1, 0);
	ck_sizes(3, 6, 3, 11);
	observe(0, "abcdef", 5); /* and so are [abc] and [de] */
	ck_tree("abcde:01(f:0)");
	ck_assert_int_eq(kvr_worker_remove(k, id[1]), KVR_OK);
	(void)expire(5, 100);
	observe(0, "abcdef", 6);
	ck_tree("abcdef:0");
	ck_changes(3, 3, 0);
}
END_TEST

START_TEST(parts_at_every_block)
{
	static const char text[] = "abcdefghijklmnopqrstuvwxyz";
	char other[27], want[80];
	size_t at;

	for (at = 0; at < 26; at++) {
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		observe(0, text, 1);
		memcpy(other, text, sizeof(other));
		other[at] = 'Z';
		observe(1, other, 2);
		snprintf(want, sizeof(want), at == 0 ? "%.*s%s:1 %s:0"
		    : "%.*s:01(%s:1 %s:0)", (int)at, text, other + at,
		    text + at);
		ck_tree(want);
		ck_sizes(at == 0 ? 2 : 3, 52 - at, at == 0 ? 2 : 3, 52);
	}
}
END_TEST

START_TEST(ends_at_every_block)
{
	static const char text[] = "abcdefghijklmnopqrstuvwxyz";
	char want[80];
	int at;

	for (at = 1; at < 26; at++) {
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		observe(0, text, 1);
		snprintf(want, sizeof(want), "%.*s", at, text);
		observe(1, want, 2);
		snprintf(want, sizeof(want), "%.*s:01(%s:0)", at, text,
		    text + at);
		ck_tree(want);
	}
}
END_TEST

/* ----------------------------------------------------------- extension --- */

/* Only a leaf with one holder and no other lease's pin grows in place. */
START_TEST(extended_or_not)
{
	uint64_t lease;

	observe(0, "ab", 1);
	observe(0, "abc", 2);
	ck_tree("abc:0");
	ck_changes(0, 0, 1);
	observe(1, "abcd", 3); /* another worker's leaf */
	ck_tree("abc:01(d:1)");
	observe(1, "abcde", 4);
	ck_tree("abc:01(de:1)");
	ck_changes(0, 0, 2);
	observe(0, "abcx", 5); /* it has a child */
	ck_tree("abc:01(de:1 x:0)");
	observe(0, "abcde", 6);
	observe(0, "abcdef", 7); /* two holders */
	ck_tree("abc:01(de:01(f:0) x:0)");
	ck_changes(0, 0, 2);
	lease = reserve(0, "mn", 8);
	ck_tree("abc:01(de:01(f:0) x:0) mn:0!");
	observe(0, "mno", 9); /* another lease ends there */
	ck_tree("abc:01(de:01(f:0) x:0) mn:0!(o:0)");
	finish(lease, 10);
	observe(0, "mno", 11);
	ck_tree("abc:01(de:01(f:0) x:0) mno:0");
	ck_changes(0, 1, 2);
}
END_TEST

/* An uncommitted prompt never extends a confirmed one. */
START_TEST(reserved_is_apart)
{
	uint64_t lease;

	observe(0, "ab", 1);
	lease = reserve(0, "abcd", 2);
	ck_tree("ab:0!(cd:0!)");
	give_up(lease, 3);
	ck_tree("ab:0");
	lease = reserve(0, "abcd", 4);
	commit(lease, 5);
	ck_tree("abcd:0!");
	finish(lease, 6);
	ck_tree("abcd:0");
	ck_changes(0, 1, 0);
}
END_TEST

/* A chat of many turns does not become a chain of as many nodes. */
START_TEST(long_chat)
{
	uint32_t turn, blocks = 0;
	uint64_t lease;

	for (turn = 0; turn < 500; turn++) {
		blocks += 1 + turn % 3;
		say_long(blocks, blocks, 0);
		if (turn % 2 == 0) {
			must(observed(0, turn) == blocks);
			continue;
		}
		lease = reserved(0, turn);
		commit(lease, turn);
		finish(lease, turn);
	}
	region_sound();
	ck_sizes(1, blocks, 1, blocks);
	ck_assert_uint_eq(overlap(0, turn), blocks);
}
END_TEST

/* ------------------------------------------------------------- merging --- */

/* A fork with one branch left; stem and branch are worker 0's. */
static void
withered_fork(void)
{
	observe(0, "abcd", 1);
	observe(3, "abxy", 1);
	ck_assert_int_eq(kvr_worker_reset(k, id[3], &id[3]), KVR_OK);
	(void)expire(1, 100);
	ck_tree("ab:0(cd:0)");
}

START_TEST(merged_or_not)
{
	uint64_t lease;

	withered_fork();
	observe(1, "ab", 2);
	observe(0, "abcd", 3); /* holders differ */
	ck_tree("ab:01(cd:0)");
	observe(0, "ab", 4);
	observe(1, "abcd", 5); /* another's stamps differ */
	ck_tree("ab:01(cd:01)");
	lease = reserve(0, "ab", 6);
	observe(1, "abcd", 7);
	observe(0, "abcd", 7); /* pins differ */
	ck_tree("ab:0!1(cd:01)");
	finish(lease, 7); /* alike now, but merging starts at a parent */
	ck_tree("ab:01(cd:01)");
	observe(1, "abcd", 7);
	ck_tree("abcd:01");
	ck_changes(1, 1, 0);
}
END_TEST

/* Leases that pin both alike do not prevent a merge. */
START_TEST(merged_under_leases)
{
	uint64_t one, two;

	withered_fork();
	one = reserve(0, "abcd", 2);
	two = reserve(0, "abcdef", 3);
	ck_tree("ab:0!(cd:0!(ef:0!))");
	commit(two, 4);
	/* lease one ends at [cd], so its pins are more than those of [ef] */
	ck_tree("abcd:0!(ef:0!)");
	finish(one, 5);
	ck_tree("abcd:0!(ef:0!)");
	finish(two, 6);
	ck_tree("abcdef:0");
	ck_changes(1, 2, 0);
}
END_TEST

/* Worker 0 has all of it, in two parts that differ only in a stamp. */
static void
two_parts(uint32_t upper, uint32_t lower)
{
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	say_long(upper + lower, upper + lower, 0);
	must(observed(0, 1) == upper + lower);
	say_long(upper, upper, 0);
	must(observed(1, 1) == upper);
	ck_assert_int_eq(kvr_worker_reset(k, id[1], &id[1]), KVR_OK);
	(void)expire(1, 100);
	say_long(upper + lower, upper + lower, 0);
	must(stats().nodes == 2);
}

static void
ck_merged(uint32_t upper, uint32_t lower, uint64_t nodes)
{
	two_parts(upper, lower);
	must(observed(0, 2) == upper + lower);
	ck_assert_uint_eq(stats().nodes, nodes);
	ck_assert_uint_eq(overlap(0, 2), upper + lower);
	region_sound();
}

/* The copying of a merge is bounded; the upper part stays in place. */
START_TEST(merge_copies_little)
{
	ck_merged(1, 1024, 1);
	ck_merged(1, 1025, 2);
	ck_merged(1500, 1024, 1);
	ck_merged(1500, 1025, 2);
}
END_TEST

/* The upper part's piece is full: two blocks more take another. */
START_TEST(merge_needs_cells)
{
	uint32_t left, chain;
	struct path path;

	for (left = 0; left < 3; left++) {
		two_parts(16, 2);
		index_walk(k, p, 18, &plainly, &path);
		chain = hoard_all_but(left);
		index_stamp(k, path.node, 0, 2);
		ck_assert_uint_eq(k->region->counts.nodes, left < 1 ? 2 : 1);
		give_back(chain);
		region_sound();
		ck_assert_uint_eq(overlap(0, 2), 18);
	}
}
END_TEST

/* ------------------------------------------------------------- walking --- */

static struct path
walk(const char *text, uint32_t want)
{
	struct path path;

	say(text);
	index_walk(k, p, want, &plainly, &path);
	return path;
}

START_TEST(walks)
{
	struct path path;

	observe(0, "abcdef", 1);
	observe(1, "abxyz", 2);
	ck_tree("ab:01(cdef:0 xyz:1)");
	path = walk("zzz", 3);
	ck_assert(path.node == 0 && path.depth == 0 && path.nodes == 0);
	path = walk("abcdef", 6);
	ck_assert_uint_eq(path.node, child_of(child_of(0, 'a'), 'c'));
	ck_assert(path.inside == 4 && path.depth == 6 && path.nodes == 2);
	ck_assert_uint_eq(index_position(k, path.node), 6);
	path = walk("abxyQQ", 6);
	ck_assert_uint_eq(path.node, child_of(child_of(0, 'a'), 'x'));
	ck_assert(path.inside == 2 && path.depth == 4 && path.nodes == 2);
	ck_assert_uint_eq(index_position(k, path.node), 5);
	path = walk("abQ", 3);
	ck_assert_uint_eq(path.node, child_of(0, 'a'));
	ck_assert(path.inside == 2 && path.depth == 2 && path.nodes == 1);
	path = walk("abcdef", 3); /* no further than asked */
	ck_assert(path.inside == 1 && path.depth == 3 && path.nodes == 2);
	path = walk("abcdef", 1);
	ck_assert(path.inside == 1 && path.depth == 1 && path.nodes == 1);
	path = walk("abcdef", 0);
	ck_assert(path.node == 0 && path.depth == 0 && path.nodes == 0);
}
END_TEST

/* A damaged lease: fewer blocks than the node has in which it ends. */
START_TEST(lease_ends_above_its_node)
{
	struct insert how = { .want = 6, .in_place = true };
	struct path path;

	observe(0, "abcd", 1);
	how.below = child_of(0, 'a');
	say("abcdef");
	how.depth = 4;
	index_walk(k, p, 6, &how, &path);
	ck_assert(path.node == how.below && path.inside == 4);
	for (how.depth = 0; how.depth < 4; how.depth++) {
		index_walk(k, p, 6, &how, &path);
		ck_assert(path.node == 0 && path.depth == 0);
		ck_assert(path.inside == 0 && path.nodes == 0);
	}
}
END_TEST

/*
 * Damage: all nodes in one chain, and no heirs. A walk that had to search it
 * for each node ends early.
 */
START_TEST(walks_no_chain_for_ever)
{
	enum { DEEP = 600 };
	struct path path;
	uint32_t i, b, first = 0, node;
	void *whole;

	for (i = DEEP; i > 0; i--) {
		say_long(i, i, 0);
		(void)observed(i % WORKERS, 1);
	}
	say_long(DEEP, DEEP, 0);
	index_walk(k, p, DEEP, &plainly, &path);
	ck_assert(path.depth == DEEP && path.nodes > DEEP / 2);
	ck_assert_uint_lt(path.steps, 4 * DEEP);
	whole = malloc(k->layout.end);
	ck_assert_ptr_nonnull(whole);
	memcpy(whole, k->region, k->layout.end);
	/* those near the root are last */
	for (i = 0, node = path.node; node != 0; i = node,
	    node = node_at(k, node)->parent) {
		node_at(k, node)->heir = 0;
		node_at(k, node)->next = 0;
		if (i == 0)
			first = node;
		else
			node_at(k, i)->next = node;
	}
	for (b = 0; b < k->layout.node_buckets; b++)
		k->node_buckets[b] = first;
	index_walk(k, p, DEEP, &plainly, &path);
	ck_assert_uint_le(path.steps, steps_most(k) / 16 + CHAIN_MAX);
	ck_assert(path.depth > 0 && path.depth < DEEP);
	memcpy(k->region, whole, k->layout.end);
	free(whole);
}
END_TEST

/* ---------------------------------------------------------------- room --- */

/* Cells used by an insertion and the entries on its path, and the estimate. */
static void
insert_measured(uint32_t slot, int64_t now)
{
	struct insert how = { .want = p->blocks, .in_place = pick(2) == 0 };
	uint32_t before = k->region->free_cells, most, node;
	bool lasting = pick(4) > 0;
	struct path path;

	index_walk(k, p, p->blocks, &how, &path);
	most = index_cells(k, &path, p->blocks,
	    index_missing(k, &path, slot));
	node = index_insert(k, p, &path, p->blocks, slot, &how);
	if (lasting)
		index_stamp(k, node, slot, now);
	else
		index_pin(k, node, slot, 0, now);
	must(before <= k->region->free_cells + most);
	if (!lasting)
		index_unpin(k, node, slot);
}

START_TEST(estimate_suffices)
{
	uint64_t steps = test_amount(6000);
	struct kvr_options o = small_options();

	by_chance();
	o.max_workers = 30;
	region_of(&o);
	for (; steps > 0; steps--) {
		say_by_chance();
		retain_make_room(k, 0, 1500);
		insert_measured(pick(30), (int64_t)(6000 - steps));
		if (steps % 50 == 0)
			must(kvr_check(k) == KVR_OK);
		must(cell_0_is_blank());
	}
	region_end();
}
END_TEST

/* ------------------------------------------------- hashes that collide --- */

/* A prompt with exactly these hashes. */
static void
by_hand(const uint64_t *sequence, uint32_t n)
{
	say_long(n, n, 0);
	memcpy(p->sequence, sequence, n * sizeof(*sequence));
}

/* Equal low halves of the first hash: one hides the other, no more. */
START_TEST(first_hashes_collide)
{
	static const uint64_t one[] = { UINT64_C(0x100000007) };
	static const uint64_t two[] = { UINT64_C(0x200000007),
		UINT64_C(0x300000008) };
	uint32_t i;

	for (i = 0; i < 10; i++) {
		by_hand(one, 1);
		must(observed(0, i) == 1);
		must(overlap(0, i) == 1);
		by_hand(two, 2);
		must(overlap(0, i) == 0);
		must(observed(1, i) == 2);
		must(overlap(1, i) == 2);
		region_sound();
	}
	ck_assert_uint_eq(expire(TTL + 10, 1000), 0);
	ck_tree("");
}
END_TEST

/* Equal low halves inside a run: the overlap is too long, nothing breaks. */
START_TEST(inner_hashes_collide)
{
	static const uint64_t one[] = { UINT64_C(0x100000001),
		UINT64_C(0x100000002), UINT64_C(0x100000003) };
	static const uint64_t two[] = { UINT64_C(0x200000001),
		UINT64_C(0x200000002), UINT64_C(0x200000004) };

	by_hand(one, 3);
	must(observed(0, 1) == 3);
	by_hand(two, 3);
	ck_assert_uint_eq(overlap(0, 1), 2);
	must(observed(1, 2) == 3);
	ck_assert_uint_eq(overlap(1, 2), 3);
	region_sound();
	by_hand(one, 3); /* its second block now ends in another's hash */
	ck_assert_uint_eq(overlap(0, 2), 1);
	must(observed(0, 3) == 3);
	ck_assert_uint_eq(overlap(0, 3), 1); /* the heir hides the new child */
	region_sound();
	ck_assert_uint_eq(expire(TTL + 3, 1000), 0);
	ck_tree("");
}
END_TEST

/* --------------------------------------------------------------- suite --- */

Suite *suite_index(void);

Suite *
suite_index(void)
{
	Suite *s = suite_create("index");
	TCase *t = small_case(s, "tree");

	tcase_add_test(t, drawing_step_by_step);
	tcase_add_test(t, ends_inside_a_run);
	tcase_add_test(t, parts_at_every_block);
	tcase_add_test(t, ends_at_every_block);
	tcase_add_test(t, extended_or_not);
	tcase_add_test(t, reserved_is_apart);
	tcase_add_test(t, long_chat);
	tcase_add_test(t, merged_or_not);
	tcase_add_test(t, merged_under_leases);
	tcase_add_test(t, merge_copies_little);
	tcase_add_test(t, merge_needs_cells);
	tcase_add_test(t, walks);
	tcase_add_test(t, lease_ends_above_its_node);
	tcase_add_test(t, walks_no_chain_for_ever);
	tcase_add_test(t, first_hashes_collide);
	tcase_add_test(t, inner_hashes_collide);
	t = tcase_create("room");
	tcase_add_test(t, estimate_suffices);
	suite_add_tcase(s, t);
	return s;
}
