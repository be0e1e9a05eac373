/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_alias_place.c - blocks are found whatever became of their nodes.
 */
#include "alias_place.h"

#include "cell.h"
#include "inner.h"

enum { ALIASES = 100 };

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.event_blocks = ALIASES;
	region_of(&o);
	write_once(stream_at(k, 1)->life, alias_life(k));
}

/* Streams end, so that the region has no aliases without one. */
static void
teardown(void)
{
	alias_end(k, stream_at(k, 1));
	region_end();
}

/* Observed as before the stream began. */
static void
seen(uint32_t worker, const char *text, int64_t now)
{
	uint32_t life = stream_at(k, 1)->life;

	write_once(stream_at(k, 1)->life, 0);
	observe(worker, text, now);
	write_once(stream_at(k, 1)->life, life);
}

/* Aliases of a prompt of worker 0, all with the same hint. */
static uint32_t
name_all(const char *text, uint32_t hint, uint32_t *alias)
{
	struct alias a = { .worker = 1, .life = stream_at(k, 1)->life };
	uint32_t i, n = (uint32_t)strlen(text);

	say(text);
	a.name = a.sequence = p->root;
	a.parent = alias_find(k, a.life, a.name);
	if (a.parent == 0)
		a.parent = alias_add(k, &a);
	a.node = hint;
	for (i = 0; i < n; i++) {
		a.name = a.sequence = *prompt_sequence(p, i);
		alias[i] = alias_find(k, a.life, a.name);
		if (alias[i] == 0)
			alias[i] = alias_add(k, &a);
		ck_assert_uint_gt(alias[i], 0);
		a.parent = alias[i];
	}
	return n;
}

/* Each is found where the prompt's walk finds it. */
static void
ck_found(const char *text, uint32_t hint)
{
	uint32_t alias[LETTERS], n = name_all(text, hint, alias), i, depth;
	struct place place;

	for (i = 0; i < n; i++) {
		ck_assert(alias_place(k, alias[i], 0, &place));
		depth = index_position(k, place.node) -
		    node_at(k, place.node)->length + place.at;
		ck_assert_uint_eq(depth, i);
		ck_assert_uint_eq(run_get(k, node_at(k, place.node), place.at),
		    (uint32_t)alias_at(k, alias[i])->sequence);
	}
}

static bool
sound(void)
{
	uint64_t *places = calloc(ALIASES + 1, sizeof(*places));
	bool good;

	ck_assert_ptr_nonnull(places);
	good = alias_places_sound(k, places);
	free(places);
	return good;
}

START_TEST(in_a_whole_node)
{
	seen(0, "abcdefgh", 1);
	ck_found("abcdefgh", child_of(0, 'a'));
	ck_assert(sound());
}
END_TEST

/* The lower part keeps the number, the upper part is found by its first. */
START_TEST(after_a_split)
{
	uint32_t hint;

	seen(0, "abcdefgh", 1);
	hint = child_of(0, 'a');
	seen(1, "abcxy", 2);
	seen(1, "abuv", 3);
	ck_found("abcdefgh", hint);
	ck_assert(sound());
}
END_TEST

/* Neither node is that of the hint. */
START_TEST(by_a_hint_that_is_wrong)
{
	seen(0, "abcdefgh", 1);
	seen(1, "abcxy", 2);
	ck_found("abcdefgh", child_of(child_of(0, 'a'), 'x'));
	ck_found("abcdefgh", 0);
	ck_assert(sound());
}
END_TEST

/* The alias's cell is reused: its content is no length. */
START_TEST(by_a_hint_that_is_no_node)
{
	uint32_t alias[LETTERS], cell;
	struct place place;

	seen(0, "abcdefgh", 1);
	cell = cell_take(k);
	write_once(node_at(k, cell)->length, UINT32_MAX);
	if (_i > 0) /* or a cell that resembles one: hashes are any words */
		write_once(node_at(k, cell)->kind, CELL_NODE);
	(void)name_all("abcdefgh", cell, alias);
	k->region->counts.steps = 0;
	ck_assert(alias_place(k, alias[7], 0, &place));
	ck_assert_uint_lt(k->region->counts.steps, 100);
	write_once(node_at(k, cell)->kind, CELL_FREE);
	cell_give(k, cell);
}
END_TEST

START_TEST(what_is_not_on_record_is_not_found)
{
	uint32_t alias[LETTERS];
	struct place place;

	seen(0, "abcd", 1);
	(void)name_all("abcdef", child_of(0, 'a'), alias);
	ck_assert(alias_place(k, alias[3], 0, &place));
	ck_assert(!alias_place(k, alias[4], 0, &place));
	ck_assert(!alias_place(k, alias[5], 0, &place));
	ck_assert(!sound());
}
END_TEST

/*
 * Branches that left a full region: the blocks before them are walked once, not
 * for each branch, whether these are held or gone as well.
 */
START_TEST(many_branches_are_one_walk)
{
	enum { STEM = 60, BRANCHES = 8 };
	char text[STEM + 3];
	uint32_t alias[LETTERS], i, hint;
	struct place place;

	for (i = 0; i < STEM; i++)
		text[i] = (char)('!' + i);
	text[STEM] = '\0';
	seen(_i == 0 ? 0 : 1, _i == 0 ? text : "vwxyz", 1);
	hint = child_of(0, _i == 0 ? '!' : 'v');
	text[STEM + 1] = 'z';
	text[STEM + 2] = '\0';
	for (i = 0; i < BRANCHES; i++) {
		text[STEM] = (char)('a' + i);
		(void)name_all(text, hint, alias);
		k->region->counts.steps = 0;
		ck_assert(!alias_place(k, alias[STEM + 1], 0, &place));
		ck_assert(!alias_place(k, alias[STEM], 0, &place));
		if (i > 0)
			ck_assert_uint_lt(k->region->counts.steps, STEM / 4);
	}
}
END_TEST

/* Another worker has it: that is not enough. */
START_TEST(what_its_worker_has_not_is_seen)
{
	seen(1, "abcd", 1);
	ck_found("abcd", child_of(0, 'a'));
	ck_assert(!sound());
	seen(0, "abcd", 2);
	ck_assert(sound());
	seen(2, "abxy", 3);
	ck_assert(sound());
}
END_TEST

/* Numbers that lead out of the table lead nowhere. */
START_TEST(numbers_out_of_bounds)
{
	uint32_t alias[LETTERS], fresh = k->region->alias_fresh;

	seen(0, "abcd", 1);
	(void)name_all("abcd", child_of(0, 'a'), alias);
	fresh = k->region->alias_fresh;
	k->region->alias_fresh = ALIASES + 2;
	ck_assert(!sound());
	k->region->alias_fresh = fresh;
	alias_at(k, alias[3])->parent = ALIASES + 9;
	ck_assert(sound()); /* alias_sound finds this one */
	alias_at(k, alias[3])->parent = alias[2];
	alias_at(k, alias[3])->node = CELL;
	alias_at(k, alias[2])->sequence++;
	ck_assert(!sound());
	alias_at(k, alias[2])->sequence--;
	ck_assert(sound());
}
END_TEST

Suite *suite_alias_place(void);

Suite *
suite_alias_place(void)
{
	Suite *s = suite_create("alias_place");
	TCase *t = tcase_create("alias_place");

	tcase_add_checked_fixture(t, setup, teardown);
	suite_add_tcase(s, t);
	tcase_add_test(t, in_a_whole_node);
	tcase_add_test(t, after_a_split);
	tcase_add_test(t, by_a_hint_that_is_wrong);
	tcase_add_loop_test(t, by_a_hint_that_is_no_node, 0, 2);
	tcase_add_test(t, what_is_not_on_record_is_not_found);
	tcase_add_loop_test(t, many_branches_are_one_walk, 0, 2);
	tcase_add_test(t, what_its_worker_has_not_is_seen);
	tcase_add_test(t, numbers_out_of_bounds);
	return s;
}
