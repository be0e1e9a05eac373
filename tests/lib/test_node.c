/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_node.c - nodes: found in their table, numbers kept, dropped with the
 * last that needs them. test_index.c has the tree after calls.
 */
#include "node.h"
#include "order.h"

#include "inner.h"

/* The node that begins with block i of the prompt. */
static uint32_t
found_at(uint32_t i)
{
	uint64_t steps = 0;

	return node_child(k, i > 0 ? p->sequence[i - 1] : p->root,
	    (uint32_t)p->sequence[i], &steps);
}

START_TEST(found_by_the_block_before_and_the_first)
{
	observe(0, "abcd", 1);
	observe(1, "abxy", 2);
	say("abcd");
	ck_assert_uint_eq(found_at(0), child_of(0, 'a'));
	ck_assert_uint_eq(found_at(1), 0);
	ck_assert_uint_eq(found_at(2), child_of(child_of(0, 'a'), 'c'));
	say("abxy");
	ck_assert_uint_eq(found_at(2), child_of(child_of(0, 'a'), 'x'));
	say("cd");
	ck_assert_uint_eq(found_at(0), 0);
}
END_TEST

/* A split gives the upper part a new number, a merge frees it again. */
START_TEST(the_lower_keeps_its_number)
{
	uint32_t lower, upper;

	observe(0, "abcdefg", 100);
	lower = child_of(0, 'a');
	observe(1, "abcdxy", 200);
	upper = child_of(0, 'a');
	ck_assert_uint_ne(upper, lower);
	ck_assert_uint_eq(child_of(upper, 'e'), lower);
	ck_assert_uint_eq(node_at(k, lower)->parent, upper);
	ck_assert_uint_eq(node_at(k, upper)->heir, lower);
	ck_assert_uint_eq(node_at(k, upper)->children, 2);
	observe(0, "abcdefg", 300);
	ck_assert_uint_eq(expire(200 + TTL, 100), 0);
	observe(0, "abcdefg", 200 + TTL);
	ck_tree("abcdefg:0");
	ck_assert_uint_eq(child_of(0, 'a'), lower);
	ck_assert_uint_eq(node_at(k, lower)->length, 7);
	ck_assert_uint_ne(node_at(k, upper)->kind, CELL_NODE);
}
END_TEST

/* A leaf may grow if it has one holder and no pins of others. */
START_TEST(extendable)
{
	uint64_t lease;
	uint32_t leaf;

	observe(0, "abcd", 1);
	leaf = child_of(0, 'a');
	ck_assert(node_extendable(k, leaf, 0, 0));
	ck_assert(!node_extendable(k, 0, 0, 0));
	ck_assert(!node_extendable(k, leaf, 1, 0));
	lease = reserve(0, "abcd", 2);
	ck_assert(!node_extendable(k, leaf, 0, 0));
	ck_assert(node_extendable(k, leaf, 0, 1));
	give_up(lease, 2);
	observe(1, "abcd", 3);
	ck_assert(!node_extendable(k, leaf, 0, 0));
	observe(0, "abxy", 4);
	ck_assert(!node_extendable(k, child_of(0, 'a'), 0, 0));
}
END_TEST

/* Removes an entry as every caller does. */
static void
leave(uint32_t node, uint32_t slot)
{
	node_leave(k, entry_find(k, node, slot));
	order_settle(k, slot);
}

/* The last entry takes all nodes of its path with it, and no others. */
START_TEST(left_by_the_last)
{
	uint32_t leaf, blocks;

	observe(0, "abcdef", 1);
	observe(1, "abxy", 2);
	leaf = child_of(child_of(0, 'a'), 'x');
	leave(leaf, 1);
	ck_tree("ab:01(cdef:0)");
	leave(child_of(0, 'a'), 1);
	ck_tree("ab:0(cdef:0)");
	blocks = (uint32_t)stats().blocks;
	leaf = child_of(child_of(0, 'a'), 'c');
	leave(leaf, 0);
	ck_tree("");
	ck_assert_uint_eq(stats().nodes, 0);
	ck_assert_uint_eq(blocks, 6);
}
END_TEST

/* Damage: a bucket is a ring. The search ends, and finds nothing. */
START_TEST(ring_of_nodes)
{
	uint32_t node;
	uint64_t steps = 0;
	struct node *n;

	observe(0, "abcd", 1);
	node = child_of(0, 'a');
	n = node_at(k, node);
	n->next = node;
	n->first++;
	k->node_buckets[bucket_of_node(k, n->prev, n->first)] = node;
	ck_assert_uint_eq(node_child(k, n->prev + 1, n->first, &steps), 0);
	n->first--;
	ck_assert_uint_eq(found_at(0), node);
	n->next = 0;
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
}
END_TEST

Suite *suite_node(void);

Suite *
suite_node(void)
{
	Suite *s = suite_create("node");
	TCase *t = small_case(s, "nodes");

	tcase_add_test(t, found_by_the_block_before_and_the_first);
	tcase_add_test(t, the_lower_keeps_its_number);
	tcase_add_test(t, extendable);
	tcase_add_test(t, left_by_the_last);
	tcase_add_test(t, ring_of_nodes);
	return s;
}
