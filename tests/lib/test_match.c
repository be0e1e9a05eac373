/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_match.c - the part of a prompt that each worker is believed to hold.
 *
 * Trees are those of inner.h, and small. Any tree: test_model.c; while writers
 * write: test_depth.c.
 */
#include "match.h"

#include "inner.h"

#include <stdio.h>

/* Matches the current prompt: "worker:blocks!active ..." by slot. */
static const char *
found(int64_t now)
{
	struct kvr_overlap row[WORKERS_MAX];
	static char text[64 * WORKERS_MAX];
	size_t n, i, w, at = 0;

	ck_assert_int_eq(kvr_match(k, p, now, row, sizeof(row[0]), WORKERS_MAX,
	    &n), KVR_OK);
	text[0] = '\0';
	for (w = 0; w < WORKERS_MAX; w++)
		for (i = 0; i < n; i++) {
			if (row[i].worker != id[w])
				continue;
			ck_assert_uint_eq(row[i].tokens, row[i].blocks);
			at += (size_t)snprintf(text + at, sizeof(text) - at,
			    "%s%zu:%u", at > 0 ? " " : "", w, row[i].blocks);
			if (row[i].active_blocks > 0)
				at += (size_t)snprintf(text + at,
				    sizeof(text) - at, "!%u",
				    row[i].active_blocks);
		}
	return text;
}

#define ck_match(prompt, now, want) do { \
	say(prompt); \
	ck_assert_str_eq(found(now), want); \
} while (0)

/* --------------------------------------------------------------- depth --- */

/* The drawing of match.c, and prompts that leave it anywhere. */
START_TEST(drawing)
{
	observe(1, "abcdefgh", 1);
	observe(2, "abcdefg", 2);
	observe(3, "abcd", 3);
	ck_tree("abcd:123(efg:12(h:1))");
	ck_match("abcdefgh", 3, "1:8 2:7 3:4");
	ck_match("abcdefghij", 3, "1:8 2:7 3:4");
	ck_match("abcdefgX", 3, "1:7 2:7 3:4");
	ck_match("abcdefX", 3, "1:6 2:6 3:4");
	ck_match("abcdX", 3, "1:4 2:4 3:4");
	ck_match("abcX", 3, "1:3 2:3 3:3");
	ck_match("a", 3, "1:1 2:1 3:1");
	ck_match("X", 3, "");
	ck_match("", 3, "");
}
END_TEST

START_TEST(deepest_first)
{
	struct kvr_overlap row[WORKERS];
	size_t n, i;

	observe(0, "abcd", 1);
	observe(1, "abcdefgh", 1);
	observe(2, "ab", 1);
	observe(3, "abcdef", 1);
	say("abcdefgh");
	ck_assert_int_eq(kvr_match(k, p, 1, row, sizeof(row[0]), WORKERS, &n),
	    KVR_OK);
	ck_assert_uint_eq(n, 4);
	for (i = 0; i < n; i++)
		ck_assert_uint_eq(row[i].blocks, 8 - 2 * i);
}
END_TEST

/* The deepest pinned part is in use by running requests. */
START_TEST(active)
{
	uint64_t lease;

	observe(0, "abcdef", 1);
	lease = reserve(0, "abcd", 2);
	(void)reserve(1, "abxy", 3);
	ck_tree("ab:0!1!(cd:0!(ef:0) xy:1!)");
	ck_match("abcdef", 3, "0:6!4 1:2!2");
	ck_match("abcdeX", 3, "0:5!4 1:2!2");
	ck_match("abcX", 3, "0:3!3 1:2!2");
	ck_match("abxyz", 3, "0:2!2 1:4!4");
	give_up(lease, 4);
	ck_match("abcdef", 4, "0:6 1:2!2");
}
END_TEST

START_TEST(only_the_live)
{
	observe(0, "abcd", 10);
	observe(1, "ab", 500);
	ck_match("abcd", 10 + TTL - 1, "0:4 1:2");
	ck_match("abcd", 10 + TTL, "1:2");
	(void)reserve(0, "abc", 10 + TTL - 1); /* pinned: live all the same */
	ck_match("abcd", 10 + TTL, "0:3!3 1:2");
	ck_match("abcd", 500 + TTL, "0:3!3");
}
END_TEST

/* Workers with a TTL of their own, and others beside them. */
START_TEST(each_by_its_ttl)
{
	struct kvr_worker f;

	observe(0, "abcd", 10);
	observe(1, "abcd", 10);
	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.capacity_tokens = 100;
	ck_assert_int_eq(kvr_worker_set(k, id[1], &f), KVR_OK);
	ck_assert_uint_eq(k->region->own_ttl, 1);
	ck_match("abcd", 10 + TTL - 1, "0:4 1:4");
	ck_match("abcd", 10 + TTL, "1:4");
	ck_assert_int_gt(slot_at(k, 1)->ttl, TTL);
	ck_match("abcd", 10 + slot_at(k, 1)->ttl - 1, "1:4");
	ck_match("abcd", 10 + slot_at(k, 1)->ttl, "");
}
END_TEST

/* A run that has lost its end is as long as the rest. */
START_TEST(trimmed)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.capacity_tokens = 6;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	observe(0, "abcd", 1);
	observe(1, "abcd", 1);
	observe(0, "wxyz", 2);
	ck_tree("abcd:01 wxyz:0");
	ck_match("abcd", 2, "0:2 1:4");
	ck_match("abcdef", 2, "0:2 1:4");
	ck_match("abcX", 2, "0:2 1:3");
	ck_match("abX", 2, "0:2 1:2");
	ck_match("aX", 2, "0:1 1:1");
	ck_match("wxyz", 2, "0:4");
	(void)reserve(0, "abcd", 3); /* pinned: to be computed again */
	ck_match("abcd", 3, "0:4!4 1:4");
}
END_TEST

START_TEST(no_worker_that_has_gone)
{
	uint64_t old = id[0];

	observe(0, "abcd", 1);
	observe(1, "abcd", 1);
	observe(2, "ab", 1);
	ck_assert_int_eq(kvr_worker_remove(k, id[1]), KVR_OK);
	ck_match("abcd", 1, "0:4 2:2");
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_assert_uint_ne(id[0], old);
	ck_match("abcd", 1, "2:2");
	ck_assert_uint_eq(matched(k), 1);
	observe(0, "abc", 2);
	ck_match("abcd", 2, "0:3 2:2");
}
END_TEST

/* Tokens are blocks of the region's size. */
START_TEST(blocks_of_many_tokens)
{
	struct kvr_options o = small_options();
	struct kvr_overlap row[WORKERS];
	size_t n;

	o.block_size = 16;
	region_of(&o);
	say_long(16 * 5 + 3, 16 * 3 + 1, 1);
	ck_assert_uint_eq(observed(0, 1), 5);
	ck_assert_int_eq(kvr_match(k, p, 1, row, sizeof(row[0]), WORKERS, &n),
	    KVR_OK);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(row[0].blocks, 5);
	ck_assert_uint_eq(row[0].tokens, 80);
	say_long(16 * 5, 16 * 3 + 1, 2);
	ck_assert_int_eq(kvr_match(k, p, 1, row, sizeof(row[0]), WORKERS, &n),
	    KVR_OK);
	ck_assert_uint_eq(row[0].blocks, 3);
	ck_assert_uint_eq(row[0].tokens, 48);
	region_end();
}
END_TEST

/* ------------------------------------------------------------- the set --- */

enum { ROOM = 40 };

static struct kvr_overlap rows[ROOM];
static uint32_t places[2 * WORKERS_MAX], next_base;

static struct found_set
match_into(uint32_t room, int64_t now)
{
	struct found_set set = { .room = room, .rows = rows, .found = rows,
		.places = places, .next_base = &next_base };

	match_overlaps(k, p, now, &set);
	return set;
}

static void
begin_places(void)
{
	memset(places, 0, sizeof(places));
	memset(rows, 0x5a, sizeof(rows));
	next_base = 1;
}

START_TEST(found_by_slot)
{
	struct found_set set;
	uint32_t i;

	begin_places();
	observe(1, "abcd", 1);
	observe(3, "ab", 1);
	set = match_into(ROOM, 1); /* of "ab" */
	ck_assert_uint_eq(set.count, 2);
	say("abcd");
	set = match_into(ROOM, 1);
	ck_assert_uint_eq(set.count, 2);
	for (i = 0; i < set.count; i++) {
		ck_assert_uint_eq(rows[i].worker, id[found_slot(&rows[i])]);
		ck_assert_ptr_eq(found_of(&set, found_slot(&rows[i])),
		    &rows[i]);
	}
	ck_assert_uint_eq(found_of(&set, 1)->blocks, 4);
	ck_assert_uint_eq(found_of(&set, 3)->blocks, 2);
	ck_assert(!found_has(&set, 0) && !found_has(&set, 2));
	ck_assert_uint_eq(found_of(&set, 0)->worker, 0);
	ck_assert_uint_eq(found_of(&set, 0)->blocks, 0);
	say("zz"); /* results of an earlier match do not come again */
	set = match_into(ROOM, 1);
	for (i = 0; i < k->layout.slots; i++)
		ck_assert(!found_has(&set, i));
}
END_TEST

/* No more is written than there is room for. */
START_TEST(room_is_kept_to)
{
	static const struct kvr_overlap untouched;
	struct kvr_overlap before;
	struct found_set set;
	uint32_t i, room;

	for (i = 0; i < WORKERS; i++)
		observe(i, "abcd", 1);
	for (room = 0; room <= WORKERS; room++) {
		begin_places();
		before = rows[room];
		set = match_into(room, 1);
		ck_assert_uint_eq(set.count, room);
		ck_assert_mem_eq(&rows[room], &before, sizeof(before));
		for (i = 0; i < room; i++)
			ck_assert_uint_eq(rows[i].blocks, 4);
	}
	ck_assert_mem_ne(&rows[0], &untouched, sizeof(untouched));
}
END_TEST

/*
 * A node on the path, and each group of six pairs, is a step; worker 7 has one
 * entry for both nodes.
 */
START_TEST(steps_are_counted)
{
	struct kvr_options o = small_options();
	struct found_set set;
	uint32_t i;

	o.max_workers = 30;
	region_of(&o);
	for (i = 0; i < 30; i++)
		observe(i, "ab", 1);
	observe(7, "abcd", 2);
	say("abcd");
	begin_places();
	set = match_into(ROOM, 2);
	ck_assert_uint_eq(set.count, 30);
	ck_assert_uint_eq(set.path.nodes, 2);
	ck_assert_uint_eq(set.steps, set.path.steps + 2 + 29 / PAIRS);
	for (i = 0; i < 30; i++)
		ck_assert_uint_eq(found_of(&set, i)->blocks, i == 7 ? 4 : 2);
	region_end();
}
END_TEST

/* A torn read may give these values: a match ends, and stays inside. */
START_TEST(damaged)
{
	struct node *n, whole;
	struct found_set set;
	uint32_t i;

	observe(0, "abcd", 1);
	observe(0, "abxy", 1);
	n = node_at(k, child_of(child_of(0, 'a'), 'c'));
	whole = *n;
	say("abcd");
	begin_places();
	n->word = WORD_SLOT;
	set = match_into(ROOM, 1);
	ck_assert_uint_eq(set.count, 1);
	ck_assert_uint_eq(found_of(&set, 0)->blocks, 2);
	for (i = k->layout.slots; i < 2 * WORKERS_MAX; i++) {
		places[i] = UINT32_MAX; /* would be taken for a row */
		n->word = (uint16_t)(i | WORD_PINNED);
		set = match_into(ROOM, 1);
		ck_assert_uint_eq(set.count, 1);
		ck_assert_uint_eq(found_of(&set, 0)->blocks, 2);
	}
	*n = whole;
	n->parent = child_of(child_of(0, 'a'), 'c');
	set = match_into(ROOM, 1);
	ck_assert_uint_eq(set.count, 1);
	*n = whole;
	n->parent = UINT32_MAX;
	set = match_into(ROOM, 1);
	ck_assert_uint_eq(set.count, 1);
	*n = whole;
	n->holders = UINT16_MAX;
	n->entries = UINT32_MAX;
	set = match_into(ROOM, 1);
	ck_assert_uint_le(set.count, k->layout.slots);
	*n = whole;
}
END_TEST

/* Matches, with one length changed when the walk is over. */
static void
match_changed(uint32_t node, uint32_t length)
{
	struct found_set set = { .room = ROOM, .rows = rows, .found = rows,
		.places = places, .next_base = &next_base };
	struct node *n = node_at(k, node);
	uint32_t whole = n->length, i;

	found_none(k, &set);
	index_walk(k, p, p->blocks, &plainly, &set.path);
	ck_assert_uint_eq(set.path.nodes, 3);
	n->length = length;
	match_climb(k, p, 1, &set);
	n->length = whole;
	for (i = 0; i < set.count; i++)
		ck_assert_msg(rows[i].blocks <= p->blocks &&
		    rows[i].active_blocks <= p->blocks &&
		    rows[i].tokens <= p->blocks,
		    "length %u of node %u: %u blocks, %u active, %u tokens",
		    length, node, rows[i].blocks, rows[i].active_blocks,
		    rows[i].tokens);
}

/*
 * On the way up more is subtracted than the walk has found: the rest must not
 * wrap.
 */
START_TEST(length_changed_since_the_walk)
{
	static const uint32_t lengths[] = { 0, 1, 3, 6, 7, 1 << 20,
		UINT32_MAX - 1, UINT32_MAX };
	uint32_t i, node, top, middle;

	observe(2, "abcdef", 1);
	observe(1, "abcd", 1);
	observe(0, "ab", 1);
	(void)reserve(3, "abcdef", 1);
	top = child_of(0, 'a');
	middle = child_of(top, 'c');
	say("abcdef");
	begin_places();
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (node = middle;; node = node_at(k, node)->parent) {
			match_changed(node, lengths[i]);
			match_changed(child_of(middle, 'e'), lengths[i]);
			if (node == top)
				break;
		}
}
END_TEST

static void
held_by_all(void)
{
	uint32_t i;

	say_long(200, 200, 1);
	for (i = 0; i < WORKERS; i++)
		ck_assert_int_eq(kvr_observe(k, p, id[i], 1, 0, NULL), KVR_OK);
}

/*
 * A match for a choice notes the nodes of the path from its end up, and sees no
 * others: what only its beginning has is found by a match alone.
 */
START_TEST(the_end_of_a_long_path)
{
	enum { BLOCKS = PATH_NODES + 50 };
	static struct path_node nodes[PATH_NODES];
	struct kvr_options o = small_options();
	struct found_set set;
	uint32_t i;

	o.region_bytes = 8 << 20;
	o.max_prompt_blocks = BLOCKS;
	region_of(&o);
	begin_places();
	say_long(BLOCKS, BLOCKS, 0);
	ck_assert_int_eq(kvr_observe(k, p, id[0], 1, 0, NULL), KVR_OK);
	for (i = 1; i < BLOCKS; i++) {
		say_long(i + 1, i, i);
		ck_assert_int_eq(kvr_observe(k, p, id[1], 1, 0, NULL), KVR_OK);
	}
	say_long(1, 1, 0);
	ck_assert_int_eq(kvr_observe(k, p, id[2], 1, 0, NULL), KVR_OK);
	say_long(BLOCKS, BLOCKS, 0);
	set = match_into(ROOM, 1);
	ck_assert_uint_eq(set.path.nodes, BLOCKS);
	ck_assert_uint_eq(found_of(&set, 0)->blocks, BLOCKS);
	ck_assert_uint_eq(found_of(&set, 1)->blocks, BLOCKS - 1);
	ck_assert_uint_eq(found_of(&set, 2)->blocks, 1);
	set.nodes = nodes;
	match_overlaps(k, p, 1, &set);
	ck_assert_uint_eq(set.n_nodes, PATH_NODES);
	ck_assert_uint_eq(nodes[0].node, set.path.node);
	for (i = 0; i < PATH_NODES; i++)
		ck_assert_uint_eq(nodes[i].depth, BLOCKS - i);
	ck_assert_uint_eq(found_of(&set, 0)->blocks, BLOCKS);
	ck_assert_uint_eq(found_of(&set, 1)->blocks, BLOCKS - 1);
	ck_assert(!found_has(&set, 2));
	region_end();
}
END_TEST

/* The scratch memory of a prompt is laid out anew for each region size. */
START_TEST(one_prompt_in_two_regions)
{
	struct kvr_options o = small_options();
	uint64_t other;
	struct kvr *large;
	char name[] = "00";
	uint32_t i;

	o.max_workers = 60;
	ck_assert_int_eq(kvr_new(&o, &large), KVR_OK);
	held_by_all();
	ck_assert_uint_eq(matched(k), WORKERS);
	for (i = 0; i < 60; i++) {
		name[0] = (char)('0' + i / 10);
		name[1] = (char)('0' + i % 10);
		ck_assert_int_eq(kvr_worker_add(large, name, 2, NULL, &other),
		    KVR_OK);
		ck_assert_int_eq(kvr_observe(large, p, other, 1, 0, NULL),
		    KVR_OK);
	}
	/* element sizes that force it to work in the scratch memory */
	for (i = 0; i < 3; i++) {
		struct kvr_overlap few[1];
		size_t n;

		ck_assert_int_eq(kvr_match(large, p, 1, few, sizeof(few[0]), 1,
		    &n), KVR_OK);
		ck_assert_uint_eq(n, 60);
		ck_assert_uint_eq(matched(k), WORKERS);
	}
	kvr_free(large);
}
END_TEST

START_TEST(places_begin_again)
{
	uint32_t i;

	held_by_all();
	ck_assert_uint_eq(matched(k), WORKERS);
	p->found_base = UINT32_MAX - 5;
	for (i = 0; i < 4; i++)
		ck_assert_uint_eq(matched(k), WORKERS);
	ck_assert_uint_lt(p->found_base, 1000);
}
END_TEST

Suite *suite_match(void);

Suite *
suite_match(void)
{
	Suite *s = suite_create("match");
	TCase *t = small_case(s, "small");

	tcase_add_test(t, drawing);
	tcase_add_test(t, deepest_first);
	tcase_add_test(t, active);
	tcase_add_test(t, only_the_live);
	tcase_add_test(t, each_by_its_ttl);
	tcase_add_test(t, trimmed);
	tcase_add_test(t, no_worker_that_has_gone);
	tcase_add_test(t, found_by_slot);
	tcase_add_test(t, room_is_kept_to);
	tcase_add_test(t, damaged);
	tcase_add_test(t, length_changed_since_the_walk);
	tcase_add_test(t, one_prompt_in_two_regions);
	tcase_add_test(t, places_begin_again);
	t = tcase_create("own region");
	tcase_add_test(t, blocks_of_many_tokens);
	tcase_add_test(t, steps_are_counted);
	tcase_add_test(t, the_end_of_a_long_path);
	suite_add_tcase(s, t);
	return s;
}
