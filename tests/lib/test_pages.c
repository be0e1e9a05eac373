/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pages.c - engines with smaller blocks than the index's.
 *
 * A page has `each` letters, and a block of the index four or more of them.
 */
#include "pages.h"

#include "engine.h"
#include "hash.h"
#include "hold.h"

#include <stdio.h>

static void
pages_with(uint32_t block_size, uint32_t page)
{
	holds_with(8192, 1 << 20, block_size);
	each = page;
}

static void
setup(void)
{
	k = NULL;
	pages_with(4, 1);
}

static uint32_t
names(void)
{
	return (uint32_t)worker_stats(0).events_blocks;
}

static uint32_t
alias_of(const char *text)
{
	return alias_find(k, stream_at(k, 1)->life, name_of(text,
	    strlen(text)));
}

/* ------------------------------------------------------------- by hand --- */

START_TEST(a_block_is_held_when_all_pages_are)
{
	stored("abc", 0);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_EVENTS);
	ck_assert_uint_eq(has(0, "abcdefgh"), 0);
	ck_assert_uint_eq(names(), 4); /* and the root */
	stored("abcd", 3);
	ck_assert_uint_eq(has(0, "abcdefgh"), 1);
	stored("abcdefghi", 4);
	ck_assert_uint_eq(has(0, "abcdefgh"), 2);
	ck_assert_uint_eq(has(0, "abcdefghijkl"), 2);
	stored("abcdefghijklmnop", 9);
	ck_assert_uint_eq(has(0, "abcdefghijklmnop"), 4);
	removed("abcdefghijklmnop", 15);
	ck_assert_uint_eq(has(0, "abcdefghijklmnop"), 3);
	removed("abcdefghijklmno", 9);
	ck_assert_uint_eq(has(0, "abcdefghijklmnop"), 2);
	removed("abcdefghi", 0);
	ck_assert_uint_eq(has(0, "abcd"), 0);
	ck_assert_uint_eq(names(), 0);
	ck_assert_uint_eq(worker_stats(0).entries, 0);
}
END_TEST

/* Prompts part within a block, where nothing of the index ends. */
START_TEST(branches_within_a_block)
{
	stored("abcdefgh", 0);
	stored("abcdefxy", 6);
	stored("abxxmmmm", 2);
	stored("zabc", 0);
	ck_assert_uint_eq(has(0, "abcdefgh"), 2);
	ck_assert_uint_eq(has(0, "abcdefxy"), 2);
	ck_assert_uint_eq(has(0, "abcdefgy"), 1);
	ck_assert_uint_eq(has(0, "abxxmmmm"), 2);
	ck_assert_uint_eq(has(0, "zabc"), 1);
	removed("abcdefgh", 6);
	ck_assert_uint_eq(has(0, "abcdefgh"), 1);
	ck_assert_uint_eq(has(0, "abcdefxy"), 2);
	removed("abxxmmmm", 7);
	ck_assert_uint_eq(has(0, "abxxmmmm"), 1);
	removed("abxxmmm", 2);
	ck_assert_uint_eq(has(0, "abxxmmmm"), 0);
	ck_assert_uint_eq(has(0, "abcdefxy"), 2);
}
END_TEST

/* Each token is in the hash, wherever the events were cut. */
START_TEST(wherever_events_are_cut)
{
	static const uint32_t sizes[][2] = { { 4, 1 }, { 4, 2 }, { 6, 3 },
		{ 8, 2 }, { 15, 5 }, { 16, 8 }, { 16, 1 }, { 12, 6 } };
	char text[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX";
	size_t n, cut;

	pages_with(sizes[_i][0], sizes[_i][1]);
	n = (sizeof(text) - 1) / each;
	text[n * each] = '\0';
	for (cut = 1; cut < n; cut++) {
		event(KVR_EVENT_STORED, KVR_TIER_GPU, text, 0, cut);
		region_sound();
		ck_assert_uint_eq(has(0, text), cut * each / sizes[_i][0]);
		event(KVR_EVENT_STORED, KVR_TIER_GPU, text, cut, n);
		region_sound();
		ck_assert_uint_eq(has(0, text), n * each / sizes[_i][0]);
		removed(text, 0);
		ck_assert_uint_eq(names(), 0);
	}
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
}
END_TEST

/* What a page has before its last two tokens takes aliases, and frees them. */
START_TEST(names_of_larger_pages)
{
	pages_with(16, 4);
	stored("abcd", 0);
	ck_assert_uint_eq(names(), 3);
	stored("abcdefghijkl", 1);
	ck_assert_uint_eq(names(), 7);
	stored("abcdefghijklmnop", 3); /* the last needs none */
	ck_assert_uint_eq(names(), 8);
	ck_assert_uint_eq(has(0, "abcdefghijklmnop"), 1);
	removed("abcdefghijklmnop", 2);
	ck_assert_uint_eq(names(), 5);
	pages_with(6, 3); /* one token, and two */
	stored("abc", 0);
	ck_assert_uint_eq(names(), 3);
	pages_with(4, 2);
	stored("abcd", 0);
	ck_assert_uint_eq(names(), 3);
}
END_TEST

/* An inner one has six tokens. */
START_TEST(aliases_of_a_page)
{
	static const uint32_t known[][2] = { { 1, 1 }, { 2, 1 }, { 3, 2 },
		{ 4, 2 }, { 8, 2 }, { 9, 3 }, { 14, 3 }, { 15, 4 },
		{ 16, 4 }, { 32, 6 } };
	char text[65];
	uint32_t i, page;

	memset(text, 'x', sizeof(text));
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		page = known[i][0];
		ck_assert_uint_eq(pages_aliases(page), known[i][1]);
		pages_with(2 * page, page);
		text[page] = '\0';
		stored(text, 0);
		ck_assert_uint_eq(names(), 1 + known[i][1]);
		text[page] = 'x';
		text[2 * page] = '\0';
		stored(text, 1);
		ck_assert_uint_eq(names(), 2 + known[i][1]);
		ck_assert_uint_eq(has(0, text), 1);
		stored(text, 0); /* copies */
		removed(text, 0);
		removed(text, 0);
		ck_assert_uint_eq(names(), 0);
		text[2 * page] = 'x';
	}
}
END_TEST

/* Each token of a page is in the hash of its block. */
START_TEST(each_token_of_a_page)
{
	char text[] = "abcdefghijklmnopqrstuvwxyzABCDEF", other[33];
	uint32_t i;

	for (i = 0; i < 32; i++) {
		pages_with(32, 16);
		stored(text, 0);
		memcpy(other, text, sizeof(other));
		other[i]++;
		ck_assert_uint_eq(has(0, other), 0);
		ck_assert_uint_eq(has(0, text), 1);
	}
	for (i = 0; i < 16; i++) { /* the first page alone is known before */
		pages_with(32, 16);
		memcpy(other, text, sizeof(other));
		other[i]++;
		other[16] = '\0';
		stored(other, 0);
		other[16] = text[16];
		stored(other, 1);
		ck_assert_uint_eq(has(0, text), 0);
		ck_assert_uint_eq(has(0, other), 1);
	}
}
END_TEST

START_TEST(copies_of_pages)
{
	stored("abcdef", 0);
	event(KVR_EVENT_STORED, KVR_TIER_HOST, "abcdef", 2, 6);
	removed("abcdef", 2);
	ck_assert_uint_eq(has(0, "abcd"), 1);
	event(KVR_EVENT_REMOVED, KVR_TIER_HOST, "abcdef", 3, 6);
	ck_assert_uint_eq(has(0, "abcd"), 0);
	ck_assert_uint_eq(names(), 4);
	/* by their names alone */
	event(KVR_EVENT_STORED, KVR_TIER_HOST, "abc", 0, 3);
	removed("abc", 0);
	ck_assert_uint_eq(names(), 4);
}
END_TEST

/* A page that goes before those behind it is a hole until these are gone. */
START_TEST(holes_of_pages)
{
	stored("abcdefgh", 0);
	event(KVR_EVENT_REMOVED, KVR_TIER_GPU, "abcdefgh", 5, 6);
	region_sound();
	ck_assert_uint_eq(has(0, "abcdefgh"), 2);
	stored("abcdefxy", 6);
	ck_assert_uint_eq(got.orphans, 2);
	removed("abcdefgh", 6);
	ck_assert_uint_eq(has(0, "abcdefgh"), 1);
	ck_assert_uint_eq(names(), 6);
	stored("abcdefxy", 5);
	ck_assert_uint_eq(has(0, "abcdefxy"), 2);
}
END_TEST

START_TEST(pages_behind_what_is_not_known)
{
	stored("abcd", 0);
	stored("xyzuvwab", 3);
	ck_assert_uint_eq(got.orphans, 5);
	ck_assert_uint_eq(has(0, "xyzuvwab"), 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	removed("xyzuvwab", 3);
	ck_assert_uint_eq(has(0, "abcd"), 1);
}
END_TEST

/* Another size of pages, and blocks that are no pages. */
START_TEST(other_sizes)
{
	stored("abcd", 0);
	each = 2;
	stored("xyzu", 0);
	ck_assert_uint_eq(got.orphans, 2);
	ck_assert_uint_eq(has(0, "xyzu"), 0);
	each = 4;
	stored("xyzu", 0);
	ck_assert_uint_eq(got.orphans, 1);
	ck_assert_uint_eq(has(0, "xyzu"), 0);
	ck_assert_uint_eq(has(0, "abcd"), 1);
	pages_with(4, 3);
	stored("abcabc", 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
}
END_TEST

/* A pages' event that says other numbers than it has is of no contents. */
START_TEST(contents_that_do_not_fit)
{
	struct kvr_event e;

	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 2;
	e.hashes = 3;
	e.tokens = 6;
	ck_assert_uint_eq(pages_most(k, &e), 2);
	e.tokens = 7;
	ck_assert_uint_eq(pages_most(k, &e), 0);
	e.tokens = 8;
	ck_assert_uint_eq(pages_most(k, &e), 0);
	e.tokens = 0;
	ck_assert_uint_eq(pages_most(k, &e), 0);
	e.tokens = 6;
	e.tier = TIERS;
	ck_assert_uint_eq(pages_most(k, &e), 0);
	e.tier = 0;
	e.flags = KVR_EVENT_LOCALS;
	ck_assert_uint_eq(pages_most(k, &e), 0);
	e.flags = 0;
	e.kind = KVR_EVENT_REMOVED;
	ck_assert_uint_eq(pages_most(k, &e), 0);
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 4;
	ck_assert_uint_eq(pages_most(k, &e), 0);
	ck_assert_uint_eq(pages_size(k, 0), 0);
	ck_assert_uint_eq(pages_size(k, 1), 1);
	ck_assert_uint_eq(pages_size(k, 2), 2);
	ck_assert_uint_eq(pages_size(k, 3), 0);
	ck_assert_uint_eq(pages_size(k, 4), 0);
	ck_assert_uint_eq(pages_size(k, 8), 0);
}
END_TEST

/* Hashes of pages are not those of blocks. */
START_TEST(local_hashes_of_pages_degrade)
{
	static const uint64_t both[4] = { 1, 2, 3, 4 };
	struct kvr_event e;

	stored("a", 0);
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.flags = KVR_EVENT_LOCALS;
	e.block_tokens = 1;
	e.hashes = e.tokens = 2;
	e.tokens_at = 2;
	ck_assert_int_eq(apply_to(0, &e, 1, both, 4, NULL, 0, 1), KVR_OK);
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
}
END_TEST

/*
 * A scope: by the first page under a secret, by each event where it is in the
 * seed of each block.
 */
START_TEST(scopes_of_pages)
{
	static const uint32_t tokens[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static const uint64_t hashes[] = { 11, 12, 13, 14, 15, 16, 17, 18 };
	struct kvr_options o = small_options();
	struct kvr_worker facts;
	struct kvr_scope scope;
	struct kvr_event e;

	region_end();
	o.event_blocks = 100;
	o.hash = _i == 0 ? KVR_HASH_KEYED : KVR_HASH_DYNAMO;
	o.region_bytes = 512 << 10;
	o.block_size = 4;
	region_of(&o);
	seq = 0;
	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	(void)kvr_scope_init(&scope, sizeof(scope));
	ck_assert_int_eq(hash_scope_set(&k->rule, &scope, KVR_SCOPE_SALT, "x",
	    1), KVR_OK);
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 1;
	e.hashes = e.tokens = 3;
	e.scope = scope;
	ck_assert_int_eq(apply_to(0, &e, 1, hashes, 8, tokens, 8, 1), KVR_OK);
	e.flags = KVR_EVENT_PARENT;
	e.parent = 13;
	e.hashes_at = e.tokens_at = 3;
	e.hashes = e.tokens = 5;
	if (_i == 0)
		(void)kvr_scope_init(&e.scope, sizeof(e.scope));
	ck_assert_int_eq(apply_to(0, &e, 1, hashes, 8, tokens, 8, 1), KVR_OK);
	region_sound();
	ck_assert_int_eq(kvr_prompt_set_tokens(p, &scope, tokens, 8), KVR_OK);
	ck_assert_uint_eq(overlap(0, 1), 2);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, 8), KVR_OK);
	ck_assert_uint_eq(overlap(0, 1), 0);
}
END_TEST

/* Images stand in the same tokens: the first name of a block is its name. */
START_TEST(two_names_of_a_block)
{
	static const uint32_t tokens[] = { 'a', 'b', 'c', 'd' };
	static const uint64_t other[] = { 101, 102, 103, 104 };
	struct kvr_event e;

	stored("abcd", 0);
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 1;
	e.hashes = e.tokens = 2;
	ck_assert_int_eq(apply_to(0, &e, 1, other, 4, tokens, 4, 1), KVR_OK);
	e.flags = KVR_EVENT_PARENT;
	e.parent = 102;
	e.hashes_at = e.tokens_at = 2;
	ck_assert_int_eq(apply_to(0, &e, 1, other, 4, tokens, 4, 1), KVR_OK);
	ck_assert_uint_eq(got.orphans, 2);
	region_sound();
	removed("abcd", 3);
	ck_assert_uint_eq(has(0, "abcd"), 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	/* a name that was another page's */
	e.flags = 0;
	e.hashes_at = 1;
	e.tokens_at = 0;
	ck_assert_int_eq(apply_to(0, &e, 1, other, 4, tokens, 4, 1), KVR_OK);
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
	region_sound();
}
END_TEST

/* The first block has one name, and the second one is held by another. */
START_TEST(another_name_further_on)
{
	static const uint32_t tokens[] = { 'a', 'b', 'c', 'd', 'e', 'f', 'g',
		'h' };
	uint64_t hashes[8];
	struct kvr_event e;
	uint32_t i;

	stored("abcdefgh", 0);
	for (i = 0; i < 8; i++)
		hashes[i] = i < 4 ? name_of("abcd", i + 1) : 100 + i;
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 1;
	e.hashes = e.tokens = 8;
	ck_assert_int_eq(apply_to(0, &e, 1, hashes, 8, tokens, 8, 1), KVR_OK);
	ck_assert_uint_eq(got.orphans, 4);
	region_sound();
	removed("abcdefgh", 4);
	ck_assert_uint_eq(has(0, "abcdefgh"), 1);
}
END_TEST

/* A name that was given before, of the same tokens in another place. */
START_TEST(one_name_of_two_pages)
{
	static const uint32_t tokens[] = { 'a', 'a', 'b', 'a' };
	static const uint64_t hashes[] = { 11, 12, 13, 11 };
	struct kvr_event e;

	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 1;
	e.hashes = e.tokens = 3;
	ck_assert_int_eq(apply_to(0, &e, 1, hashes, 4, tokens, 4, 1), KVR_OK);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	e.flags = KVR_EVENT_PARENT;
	e.tokens_at = 2;
	e.hashes = e.tokens = 2;
	if (_i == 0) { /* behind another page that is as far */
		e.parent = 11;
		e.hashes = e.tokens = 1;
		ck_assert_int_eq(apply_to(0, &e, 1, (const uint64_t[]){ 22 },
		    1, tokens, 4, 1), KVR_OK);
		e.parent = 22;
		e.hashes = e.tokens = 2;
		ck_assert_int_eq(apply_to(0, &e, 1, (const uint64_t[]){ 13,
		    14 }, 2, tokens, 4, 1), KVR_OK);
	} else { /* of the same parent, but not of as many tokens */
		alias_at(k, alias_find(k, stream_at(k, 1)->life, 13))->node--;
		e.parent = 12;
		ck_assert_int_eq(apply_to(0, &e, 1, (const uint64_t[]){ 13,
		    14 }, 2, tokens, 4, 1), KVR_OK);
	}
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
	region_sound();
}
END_TEST

/* Inner ones have no name, and nothing goes on within a page. */
START_TEST(within_a_page)
{
	static const uint32_t tokens[] = { 'x', 'y', 'z', 'u' };
	uint32_t inner, page;
	uint64_t name, hashes[4];
	struct kvr_event e;

	pages_with(8, 4);
	stored("abcd", 0);
	page = alias_of("abcd");
	inner = alias_at(k, page)->parent;
	ck_assert_uint_eq(alias_begun(alias_at(k, page)), 4);
	ck_assert_uint_eq(alias_begun(alias_at(k, inner)), 2);
	ck_assert(alias_inner(alias_at(k, inner)));
	ck_assert(!alias_inner(alias_at(k, page)));
	name = alias_at(k, inner)->name; /* tokens */
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.hashes = 1;
	ck_assert_int_eq(apply_to(0, &e, 1, &name, 1, NULL, 0, 1), KVR_OK);
	region_sound();
	e.block_tokens = 4;
	e.tokens = 4;
	e.flags = KVR_EVENT_PARENT;
	e.parent = name;
	hashes[0] = 77;
	ck_assert_int_eq(apply_to(0, &e, 1, hashes, 1, tokens, 4, 1), KVR_OK);
	ck_assert_uint_eq(got.orphans, 1);
	region_sound();
	stored("mnop", 0);
	removed("mnop", 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(has(0, "abcdefgh"), 0);
}
END_TEST

START_TEST(a_table_that_is_full)
{
	uint32_t i;

	for (i = 1; i <= 9; i++) {
		holds_with(i, 512 << 10, 8);
		each = 4;
		stored("abcdefghijkl", 0);
		ck_assert_uint_eq(got.state, i < 6 ? KVR_EVENTS_DEGRADED
		    : KVR_EVENTS_COMPLETE);
	}
}
END_TEST

/*
 * More pages than a call has steps: taken in pieces; without these the worker
 * is degraded, nothing else. So it is when one page ends too many holes.
 */
START_TEST(too_many_pages_degrade)
{
	enum { MANY = 1000000 };
	struct kvr_stats stats = { .size = sizeof(stats) };
	uint64_t *hashes = malloc(MANY * sizeof(*hashes));
	uint32_t *tokens = malloc(MANY * sizeof(*tokens)), i;
	struct kvr_event e;

	ck_assert(hashes != NULL && tokens != NULL);
	holds_with(MANY + 10, 64 << 20, 4096);
	for (i = 0; i < MANY; i++) {
		hashes[i] = 1000 + i;
		tokens[i] = i;
	}
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 1;
	e.hashes = e.tokens = MANY / 4;
	ck_assert_int_eq(apply_to(0, &e, 1, hashes, MANY, tokens, MANY, 1),
	    KVR_OK);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	holds_with(MANY + 10, (128 << 10) + (MANY + 10) * 44, 4096);
	for (i = 0; i < 2; i++) {
		e.hashes = e.tokens = i == 0 ? 3000 : MANY;
		apply_uncut(0, &e, 1, hashes, MANY, tokens, MANY);
		region_sound();
		ck_assert_uint_eq(got.state, i == 0 ? KVR_EVENTS_COMPLETE
		    : KVR_EVENTS_DEGRADED);
	}
	cleared();
	e.hashes = e.tokens = MANY;
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(apply_to(0, &e, 1, hashes, MANY, tokens,
		    MANY, 1), KVR_OK);
		region_sound();
		ck_assert_uint_eq(got.state, i < 2 ? KVR_EVENTS_COMPLETE
		    : KVR_EVENTS_DEGRADED);
		e.kind = KVR_EVENT_REMOVED;
		e.hashes_at = i == 0 ? 0 : MANY - 1;
		e.hashes = i == 0 ? MANY - 1 : 1;
	}
	ck_assert_uint_le(k->region->counts.max_steps, steps_most(k));
	ck_assert_int_eq(kvr_stats(k, &stats), KVR_OK);
	ck_assert_uint_eq(stats.recoveries, 0);
	free(hashes);
	free(tokens);
}
END_TEST

/* What is stored and what goes in one batch. */
START_TEST(within_a_batch)
{
	static const uint32_t tokens[] = { 'a', 'b', 'c', 'd', 'e', 'f', 'g',
		'h' };
	struct kvr_event e[3];
	uint64_t hashes[8];
	uint32_t i;

	for (i = 0; i < 8; i++)
		hashes[i] = name_of("abcdefgh", i + 1);
	for (i = 0; i < 3; i++) {
		(void)kvr_event_init(&e[i], sizeof(e[i]));
		e[i].kind = KVR_EVENT_STORED;
		e[i].block_tokens = 1;
	}
	e[0].hashes = e[0].tokens = 3;
	e[1].hashes = e[1].tokens = 5;
	e[1].hashes_at = e[1].tokens_at = 3;
	e[1].flags = KVR_EVENT_PARENT;
	e[1].parent = hashes[2];
	e[2].kind = KVR_EVENT_REMOVED;
	e[2].hashes = 3;
	e[2].hashes_at = 5;
	ck_assert_int_eq(apply_to(0, e, 3, hashes, 8, tokens, 8, 1), KVR_OK);
	region_sound();
	ck_assert_uint_eq(has(0, "abcdefgh"), 1);
	ck_assert_uint_eq(names(), 6);
}
END_TEST

/* -------------------------------------------------------------- damage --- */

/* Links and numbers of tokens that cannot be are found, and end all loops. */
START_TEST(damage_is_found)
{
	struct alias *a, *b, was, above;
	uint32_t block[16], whole;
	struct pages g = { .size = 4 };
	uint64_t steps = 0;
	uint32_t i;

	pages_with(16, 4);
	stored("abcdefghijklmnopqrst", 0);
	whole = alias_of("abcdefghijklmnop");
	a = alias_at(k, alias_of("abcdefgh"));
	b = alias_at(k, a->parent);
	was = *a;
	above = *b;
	ck_assert(pages_sound(k, a) && pages_sound(k, alias_at(k, whole)));
	ck_assert_uint_gt(alias_whole(k, alias_of("abcdefgh"), &steps), 0);
	ck_assert_uint_eq(steps, 4);
	ck_assert(pages_begin(k, &g, alias_of("abcdefgh"), block, &steps));
	ck_assert_uint_eq(g.begun, 8);
	for (i = 0; i < 8; i++)
		ck_assert_uint_eq(block[i], 'a' + i);
	for (i = 0; i < 9; i++) {
		uint32_t broken = alias_of("abcdefgh");

		switch (i) {
		case 0: /* in a ring */
			b->parent = broken;
			break;
		case 1:
			b->parent = k->layout.aliases + 7;
			break;
		case 2:
			a->node = ALIAS_WITHIN + 7;
			break;
		case 3:
			a->node = ALIAS_WITHIN + 16;
			break;
		case 4:
			b->node = ALIAS_WITHIN + 4;
			break;
		case 5:
			b->node = ALIAS_WITHIN + 8;
			break;
		case 6: /* of the other kind */
			a->node = ALIAS_INNER + 8;
			break;
		case 7:
			b->node = ALIAS_WITHIN + 6;
			break;
		default:
			b->node = 0;
		}
		ck_assert(!pages_begin(k, &g, broken, block, &steps));
		ck_assert(i > 1 || alias_whole(k, broken, &steps) == 0);
		ck_assert(!pages_sound(k, i < 2 || i == 7 ? b : a));
		ck_assert_int_ne(kvr_check(k), KVR_OK);
		*a = was;
		*b = above;
	}
	/* a block that lacks a page; and one of no pages */
	a = alias_at(k, whole);
	was = *a;
	a->parent = alias_of("abcdefgh");
	ck_assert(!pages_sound(k, a));
	*a = was;
	stream_at(k, 1)->block_tokens = 5;
	ck_assert(!pages_sound(k, a));
	stream_at(k, 1)->block_tokens = 4;
	a = alias_at(k, alias_at(k, whole)->parent);
	was = *a;
	a->node = ALIAS_WITHIN + 20;
	ck_assert(!pages_sound(k, alias_at(k, whole)));
	*a = was;
	/* a root within a block */
	a = alias_at(k, alias_whole(k, alias_of("abcd"), &steps));
	ck_assert_uint_eq(a->parent, 0);
	a->node = ALIAS_WITHIN + 2;
	ck_assert_int_ne(kvr_check(k), KVR_OK);
	a->node = 0;
	region_sound();
}
END_TEST

/* Inner ones with another child than their own, and in a ring. */
START_TEST(inner_ones_that_are_not_one_pages)
{
	struct kvr_stats stats = { .size = sizeof(stats) };
	struct alias *a, *inner, was;

	pages_with(16, 4);
	stored("abcdefgh", 0);
	stored("abcdefgi", 1);
	a = alias_at(k, alias_of("abcdefgi"));
	was = *a;
	a->parent = alias_at(k, alias_of("abcdefgh"))->parent;
	ck_assert(pages_sound(k, a));
	ck_assert_int_ne(kvr_check(k), KVR_OK);
	*a = was;
	inner = alias_at(k, a->parent);
	was = *inner;
	inner->parent = k->layout.aliases + 7;
	ck_assert_int_ne(kvr_check(k), KVR_OK);
	*inner = was;
	region_sound();
	inner->parent = a->parent;
	removed("abcdefgi", 1);
	ck_assert_int_eq(kvr_stats(k, &stats), KVR_OK);
	ck_assert_uint_eq(stats.recoveries, 1);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_DEGRADED);
}
END_TEST

/* A way up that ends too early, or outside. */
START_TEST(ways_that_lead_to_no_root)
{
	struct pages g = { .size = 4 };
	struct alias *a, was;
	uint32_t block[16], i;
	uint64_t steps = 0;

	pages_with(16, 4);
	stored("abcd", 0);
	a = alias_at(k, alias_at(k, alias_of("abcd"))->parent);
	was = *a;
	for (i = 0; i < 2; i++) {
		a->parent = i * (k->layout.aliases + 7);
		ck_assert(!pages_begin(k, &g, alias_of("abcd"), block,
		    &steps));
	}
	*a = was;
}
END_TEST

/* ----------------------------------------------------------- by chance --- */

/* Whole blocks of what runs there, or of what the engine has. */
static void
ck_equal(const char *text, uint32_t block)
{
	uint32_t want = engine_has(text) * each / block;
	uint32_t running = running_has(text) / block;

	must(has(0, text) == (running > want ? running : want));
}

static const uint32_t combinations[][2] = { { 4, 1 }, { 6, 3 }, { 16, 1 },
	{ 16, 2 }, { 16, 4 }, { 16, 8 }, { 64, 1 }, { 64, 2 }, { 64, 4 },
	{ 64, 16 } };

START_TEST(equal_to_the_engine)
{
	uint32_t block = combinations[_i][0];
	uint64_t steps = test_amount(block > 16 ? 1500 : 3000);
	char text[TEXT];

	by_chance();
	holds_with(17000, 2 << 20, block);
	each = combinations[_i][1];
	engine_with(6 * block, block / 2 + 1);
	cleared();
	while (steps-- > 0) {
		engine_steps(3 * block);
		random_text(text);
		ck_equal(text, block);
		if (steps % 4 == 0)
			region_sound();
	}
}
END_TEST

Suite *suite_pages(void);

Suite *
suite_pages(void)
{
	Suite *s = suite_create("pages");
	TCase *t = tcase_create("pages");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, a_block_is_held_when_all_pages_are);
	tcase_add_test(t, branches_within_a_block);
	tcase_add_loop_test(t, wherever_events_are_cut, 0, 8);
	tcase_add_test(t, names_of_larger_pages);
	tcase_add_test(t, aliases_of_a_page);
	tcase_add_test(t, each_token_of_a_page);
	tcase_add_test(t, copies_of_pages);
	tcase_add_test(t, holes_of_pages);
	tcase_add_test(t, pages_behind_what_is_not_known);
	tcase_add_test(t, other_sizes);
	tcase_add_test(t, contents_that_do_not_fit);
	tcase_add_test(t, local_hashes_of_pages_degrade);
	tcase_add_loop_test(t, scopes_of_pages, 0, 2);
	tcase_add_test(t, two_names_of_a_block);
	tcase_add_test(t, another_name_further_on);
	tcase_add_loop_test(t, one_name_of_two_pages, 0, 2);
	tcase_add_test(t, within_a_page);
	tcase_add_test(t, a_table_that_is_full);
	tcase_add_test(t, too_many_pages_degrade);
	tcase_add_test(t, within_a_batch);
	tcase_add_test(t, damage_is_found);
	tcase_add_test(t, inner_ones_that_are_not_one_pages);
	tcase_add_test(t, ways_that_lead_to_no_root);
	tcase_add_loop_test(t, equal_to_the_engine, 0,
	    sizeof(combinations) / sizeof(combinations[0]));
	return s;
}
