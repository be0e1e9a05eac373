/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rivals.c - the rules of rivals.h on small fleets made by hand, the tree
 * of cache-aware, and both in simulations.
 */
#include "rivals.h"

#include <string.h>

#include "alloc.h"
#include "approx_tree.h"
#include "rng.h"
#include "simulate_in.h"
#include "simulated.h"

enum { SOME = 8 }; /* workers */

static struct booked booked[SOME];
static bool away[SOME];
static struct rng lots;

/* `n` idle workers. */
static struct rival_fleet
fleet_idle(uint32_t n)
{
	struct rival_fleet f = { booked, away, n };

	memset(booked, 0, sizeof(booked));
	memset(away, 0, sizeof(away));
	lots.state = 1;
	return f;
}

/* The choices of each of n workers. */
struct chosen {
	uint32_t times[SOME];
};

/* ----------------------------------------------------------------- keys --- */

START_TEST(keys)
{
	static const uint64_t a[] = { 1, 2, 3 }, b[] = { 1, 2, 4 },
	    c[] = { 1, 5, 3 };

	ck_assert_uint_eq(rival_key(0, a, 1536), rival_key(0, b, 1536));
	ck_assert_uint_eq(rival_key(0, a, 1024), rival_key(0, a, 1025));
	ck_assert_uint_ne(rival_key(0, a, 1023), rival_key(0, a, 1024));
	ck_assert_uint_ne(rival_key(0, a, 1024), rival_key(0, c, 1024));
	ck_assert_uint_eq(rival_key(0, a, 512), rival_key(0, c, 512));
	ck_assert_uint_eq(rival_key(7, a, 1536), rival_key(7, c, 99));
	ck_assert_uint_ne(rival_key(7, a, 1536), rival_key(8, a, 1536));
	ck_assert_uint_ne(rival_key(7, a, 1536), rival_key(0, a, 1536));
}
END_TEST

/* --------------------------------------------------------------- sticky --- */

/* Every worker has its share, and the same key goes to the same worker. */
START_TEST(sticky_shares)
{
	struct rival_fleet f = fleet_idle(SOME);
	struct chosen c = { { 0 } };
	uint64_t i;
	uint32_t w;

	for (i = 1; i <= 8000; i++) {
		w = rival_sticky(&f, rival_key(i, NULL, 0));
		ck_assert_uint_eq(w, rival_sticky(&f, rival_key(i, NULL, 0)));
		c.times[w]++;
		booked[w].requests += 1000; /* load does not matter */
	}
	for (w = 0; w < SOME; w++) {
		ck_assert_uint_gt(c.times[w], 870); /* 4 standard deviations */
		ck_assert_uint_lt(c.times[w], 1130);
	}
}
END_TEST

/* A worker goes: its keys move, and no others. */
START_TEST(rendezvous_moves_one_in_n)
{
	struct rival_fleet f = fleet_idle(SOME);
	uint32_t before, after, moved = 0;
	uint64_t i;

	for (i = 1; i <= 8000; i++) {
		uint64_t key = rival_key(i, NULL, 0);

		away[3] = false;
		before = rival_sticky(&f, key);
		away[3] = true;
		after = rival_sticky(&f, key);
		ck_assert_uint_ne(after, 3);
		if (before != 3)
			ck_assert_uint_eq(before, after);
		moved += before != after;
	}
	ck_assert_uint_gt(moved, 870);
	ck_assert_uint_lt(moved, 1130);
}
END_TEST

/* ----------------------------------------------------------------- chbl --- */

/* ceil(1.25 * (running + 1) / eligible) */
START_TEST(bounds)
{
	struct rival_fleet f = fleet_idle(4);

	ck_assert_uint_eq(rival_bound(&f), 1);  /* .3125 */
	booked[0].requests = 7;
	ck_assert_uint_eq(rival_bound(&f), 3);  /* 2.5 */
	booked[1].requests = 8;
	ck_assert_uint_eq(rival_bound(&f), 5);  /* 5 exactly */
	booked[2].requests = 1;
	ck_assert_uint_eq(rival_bound(&f), 6);  /* 5.3125 */
	away[0] = true;
	ck_assert_uint_eq(rival_bound(&f), 5);  /* 4.17 */
	away[1] = away[2] = away[3] = true;
	ck_assert_uint_eq(rival_bound(&f), 0);
}
END_TEST

/* One key, or few, cannot exceed the bound; requests end in between. */
START_TEST(load_is_bounded)
{
	struct rival_fleet f = fleet_idle((uint32_t)_i);
	struct rival_ring *ring = rival_ring_new((uint32_t)_i);
	uint64_t bound, n;
	uint32_t w;

	for (n = 0; n < 2000; n++) {
		bound = rival_bound(&f);
		w = rival_chbl(&f, ring, rival_key(rng_between(&lots, 1, 3),
		    NULL, 0));
		ck_assert_uint_lt(w, (uint32_t)_i);
		booked[w].requests++;
		ck_assert_uint_le(booked[w].requests, bound);
		w = (uint32_t)rng_between(&lots, 0, (uint64_t)_i - 1);
		if (n % 4 != 0 && booked[w].requests > 0)
			booked[w].requests--;
	}
	rival_ring_free(ring);
}
END_TEST

/*
 * A key stays where it is while there is room, goes elsewhere while there is
 * no room, and comes back. If another worker goes, it does not move.
 */
START_TEST(chbl_is_consistent)
{
	struct rival_fleet f = fleet_idle(SOME);
	struct rival_ring *ring = rival_ring_new(SOME);
	struct chosen c = { { 0 } };
	uint32_t home, w;
	uint64_t i, key;

	for (i = 1; i <= 8000; i++) {
		key = rival_key(i, NULL, 0);
		home = rival_chbl(&f, ring, key);
		c.times[home]++;
		booked[home].requests = 1; /* bound: ceil(.3125) */
		w = rival_chbl(&f, ring, key);
		ck_assert_uint_ne(w, home);
		booked[home].requests = 0;
		ck_assert_uint_eq(rival_chbl(&f, ring, key), home);
		away[w] = true;
		ck_assert_uint_eq(rival_chbl(&f, ring, key), home);
		away[w] = false;
	}
	for (w = 0; w < SOME; w++) { /* the ring's shares are uneven */
		ck_assert_uint_gt(c.times[w], 700);
		ck_assert_uint_lt(c.times[w], 1300);
	}
	memset(away, 1, sizeof(away));
	ck_assert_uint_eq(rival_chbl(&f, ring, 1), RIVAL_NONE);
	rival_ring_free(ring);
}
END_TEST

/* ---------------------------------------------------------- cache-aware --- */

/* Exactly half of the prompt is enough; less is not. */
START_TEST(half_of_the_prompt)
{
	static const bool holders[SOME] = { false, true };
	struct rival_fleet f = fleet_idle(2);
	struct rival_match m = { 1000, 500, holders };

	booked[1].requests = 5; /* the least loaded is 0 */
	ck_assert_uint_eq(rival_cache_aware(&f, &m, &lots), 1);
	m.matched = 499;
	ck_assert_uint_eq(rival_cache_aware(&f, &m, &lots), 0);
	m.tokens = m.matched = 0;
	ck_assert_uint_eq(rival_cache_aware(&f, &m, &lots), 0);
}
END_TEST

/* More than 32 apart, and more than 1.5 times: both. */
START_TEST(imbalance)
{
	static const struct {
		uint64_t most, least;
		uint32_t worker; /* 1: by its match, 0: least loaded */
	} cases[] = {
		{ 32, 0, 1 }, { 33, 0, 0 }, { 98, 66, 1 }, { 99, 66, 1 },
		{ 100, 66, 0 }, { 100, 67, 1 }, { 400, 300, 1 }
	};
	static const bool holders[SOME] = { false, true };
	struct rival_fleet f = fleet_idle(3);
	struct rival_match m = { 1000, 1000, holders };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		booked[0].requests = cases[i].least;
		booked[1].requests = booked[2].requests = cases[i].most;
		ck_assert_uint_eq(rival_cache_aware(&f, &m, &lots),
		    cases[i].worker);
	}
}
END_TEST

/* The least loaded of several holders is chosen; absent ones do not count. */
START_TEST(several_holders)
{
	static const bool holders[SOME] = { false, true, true, true };
	struct rival_fleet f = fleet_idle(5);
	struct rival_match m = { 1000, 800, holders };

	booked[1].requests = 3;
	booked[2].requests = 2;
	booked[3].requests = 4;
	booked[4].requests = 90; /* away, so the fleet is balanced */
	away[4] = true;
	ck_assert_uint_eq(rival_cache_aware(&f, &m, &lots), 2);
}
END_TEST

/* --------------------------------------------------- rules by an index --- */

/* (backlog + new) * (running + 1), by hand */
START_TEST(products)
{
	struct rival_fleet f = fleet_idle(3);
	uint64_t seen[SOME] = { 0 };

	booked[0].requests = 4;    /* 2000 * 5 = 10000 */
	seen[1] = 1000;            /* 1000 * 11 = 11000 */
	booked[1].requests = 10;
	booked[2].requests = 1;    /* (4000 + 2000) * 2 = 12000 */
	booked[2].prefill_tokens = 4000;
	ck_assert_uint_eq(rival_lmetric(&f, seen, 2000, &lots), 0);
	seen[1] = 1100;            /* 900 * 11 = 9900 */
	ck_assert_uint_eq(rival_lmetric(&f, seen, 2000, &lots), 1);
	booked[2].prefill_tokens = 2900; /* 4900 * 2 = 9800 */
	ck_assert_uint_eq(rival_lmetric(&f, seen, 2000, &lots), 2);
	away[2] = true;
	ck_assert_uint_eq(rival_lmetric(&f, seen, 2000, &lots), 1);
	away[2] = false;
	seen[1] = 2000;            /* at least one token: 1 * 11 */
	booked[0].requests = 9;
	seen[0] = 1998;            /* 2 * 10 */
	ck_assert_uint_eq(rival_lmetric(&f, seen, 2000, &lots), 1);
}
END_TEST

/* min(32, blocks of 512 beyond all's) - 4 * (running + backlog / 8192) */
START_TEST(shifted_overlaps)
{
	struct rival_fleet f = fleet_idle(3);
	uint64_t seen[SOME] = { 1024, 1024 + 8 * 512 + 511, 1024 };

	booked[0].requests = 1;              /* 0 - 4 */
	booked[1].requests = 1;              /* 8 - 4, a part is nothing */
	ck_assert_uint_eq(rival_ramjet(&f, seen, &lots), 1);
	booked[1].requests = 3;              /* 8 - 12; the third: 0 */
	ck_assert_uint_eq(rival_ramjet(&f, seen, &lots), 2);
	booked[1].requests = 0;
	booked[1].prefill_tokens = 16383;    /* 8 - 4 * 1.9999 */
	ck_assert_uint_eq(rival_ramjet(&f, seen, &lots), 1);
	booked[1].prefill_tokens = 16385;    /* 8 - 4 * 2.0001 */
	ck_assert_uint_eq(rival_ramjet(&f, seen, &lots), 2);
	booked[2].requests = 1;
	booked[2].prefill_tokens = 1;        /* 0 - 4.0005 */
	booked[1].prefill_tokens = 16384 + 8192; /* 8 - 12 */
	ck_assert_uint_eq(rival_ramjet(&f, seen, &lots), 0);
}
END_TEST

/* Overlap counts up to 32 blocks, without the blocks that all have. */
START_TEST(shifted_ends)
{
	struct rival_fleet f = fleet_idle(3);
	uint64_t seen[SOME] = { 33 * 512, 40 * 512, 0 };

	booked[1].prefill_tokens = 1;        /* 32 - 0.0005; the first: 32 */
	ck_assert_uint_eq(rival_ramjet(&f, seen, &lots), 0);
	booked[1].prefill_tokens = 0;
	booked[0].prefill_tokens = 1;
	ck_assert_uint_eq(rival_ramjet(&f, seen, &lots), 1);
	booked[1].requests = 1;              /* 32 - 4 */
	ck_assert_uint_eq(rival_ramjet(&f, seen, &lots), 0);
	away[2] = true;                      /* 7 - 4; the first: 0 - 0.0005 */
	ck_assert_uint_eq(rival_ramjet(&f, seen, &lots), 1);
	booked[1].requests = 2;              /* 7 - 8 */
	ck_assert_uint_eq(rival_ramjet(&f, seen, &lots), 0);
}
END_TEST

/* The longest overlap if that is more than half; half is not. */
START_TEST(more_than_half)
{
	struct rival_fleet f = fleet_idle(4);
	uint64_t seen[SOME] = { 0, 501, 501, 500 };

	booked[1].requests = 3;
	booked[2].requests = 2;
	booked[3].requests = 1; /* the least loaded is 0 */
	ck_assert_uint_eq(rival_two_tier(&f, seen, 1000, &lots), 2);
	booked[2].requests = 3; /* ties: least to prefill */
	booked[2].prefill_tokens = 1;
	ck_assert_uint_eq(rival_two_tier(&f, seen, 1000, &lots), 1);
	ck_assert_uint_eq(rival_two_tier(&f, seen, 1001, &lots), 1);
	ck_assert_uint_eq(rival_two_tier(&f, seen, 1002, &lots), 0);
	seen[3] = 502;
	ck_assert_uint_eq(rival_two_tier(&f, seen, 1000, &lots), 3);
	away[3] = true;
	ck_assert_uint_eq(rival_two_tier(&f, seen, 1000, &lots), 1);
	memset(seen, 0, sizeof(seen));
	ck_assert_uint_eq(rival_two_tier(&f, seen, 0, &lots), 0);
}
END_TEST

/* More than 32 apart, and more than 1.1 times: both. */
START_TEST(imbalance_of_two_tiers)
{
	static const struct {
		uint64_t most, least;
		uint32_t worker; /* 1: by its overlap, 0: least loaded */
	} cases[] = {
		{ 32, 0, 1 }, { 33, 0, 0 }, { 98, 66, 1 }, { 99, 66, 0 },
		{ 363, 330, 1 }, { 364, 330, 0 }, { 440, 400, 1 }
	};
	struct rival_fleet f = fleet_idle(3);
	uint64_t seen[SOME] = { 0, 1000 };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		booked[0].requests = cases[i].least;
		booked[1].requests = booked[2].requests = cases[i].most;
		ck_assert_uint_eq(rival_two_tier(&f, seen, 1000, &lots),
		    cases[i].worker);
	}
}
END_TEST

/* -------------------------------------------------------- loads alone --- */

START_TEST(backlog)
{
	struct rival_fleet f = fleet_idle(3);

	booked[0].prefill_tokens = 10;
	booked[1].prefill_tokens = 9;
	booked[1].requests = 50;
	booked[2].prefill_tokens = 11;
	ck_assert_uint_eq(rival_least_backlog(&f, &lots), 1);
	ck_assert_uint_eq(rival_least_loaded(&f, &lots), 0);
	booked[2].prefill_tokens = 9; /* ties: fewest running */
	ck_assert_uint_eq(rival_least_backlog(&f, &lots), 2);
	away[2] = true;
	ck_assert_uint_eq(rival_least_backlog(&f, &lots), 1);
}
END_TEST

/* Equal workers have equal chances. */
START_TEST(ties_by_lot)
{
	struct rival_fleet f = fleet_idle(4);
	uint64_t seen[SOME] = { 0 };
	struct chosen c[5];
	uint32_t i, w;

	memset(c, 0, sizeof(c));
	away[0] = true;
	booked[1].requests = booked[1].prefill_tokens = 1;
	for (i = 0; i < 1000; i++) {
		c[0].times[rival_least_backlog(&f, &lots)]++;
		c[1].times[rival_least_loaded(&f, &lots)]++;
		c[2].times[rival_lmetric(&f, seen, 100, &lots)]++;
		c[3].times[rival_ramjet(&f, seen, &lots)]++;
		c[4].times[rival_two_tier(&f, seen, 100, &lots)]++;
	}
	for (i = 0; i < 5; i++) {
		ck_assert_uint_eq(c[i].times[0] + c[i].times[1], 0);
		for (w = 2; w < 4; w++)
			ck_assert_uint_gt(c[i].times[w], 400);
	}
}
END_TEST

START_TEST(all_away)
{
	static const bool holders[SOME];
	struct rival_fleet f = fleet_idle(2);
	struct rival_match m = { 10, 10, holders };
	static const uint64_t seen[SOME];

	memset(away, 1, sizeof(away));
	ck_assert_uint_eq(rival_sticky(&f, 1), RIVAL_NONE);
	ck_assert_uint_eq(rival_cache_aware(&f, &m, &lots), RIVAL_NONE);
	ck_assert_uint_eq(rival_lmetric(&f, seen, 1, &lots), RIVAL_NONE);
	ck_assert_uint_eq(rival_ramjet(&f, seen, &lots), RIVAL_NONE);
	ck_assert_uint_eq(rival_two_tier(&f, seen, 1, &lots), RIVAL_NONE);
	ck_assert_uint_eq(rival_least_backlog(&f, &lots), RIVAL_NONE);
	ck_assert_uint_eq(rival_least_loaded(&f, &lots), RIVAL_NONE);
}
END_TEST

/* ----------------------------------------------------------------- tree --- */

/* The drawing of approx_tree.h. */
START_TEST(tree_as_drawn)
{
	static const uint64_t ab[] = { 1, 2 }, abc[] = { 1, 2, 3 },
	    ad[] = { 1, 4 }, abcx[] = { 1, 2, 3, 9 }, abx[] = { 1, 2, 9 },
	    ba[] = { 2, 1 };
	struct approx_tree *t = approx_tree_new(3, 100);
	bool h[3], out[3] = { false, true, false };

	ck_assert_int_eq(approx_tree_insert(t, ab, 2, 0), 0);
	ck_assert_int_eq(approx_tree_insert(t, abc, 3, 1), 0);
	ck_assert_int_eq(approx_tree_insert(t, ad, 2, 2), 0);
	ck_assert_uint_eq(approx_tree_match(t, abcx, 4, NULL, h), 3);
	ck_assert(!h[0] && h[1] && !h[2]);
	ck_assert_uint_eq(approx_tree_match(t, abx, 3, NULL, h), 2);
	ck_assert(h[0] && h[1] && !h[2]);
	ck_assert_uint_eq(approx_tree_match(t, abcx, 4, out, h), 2);
	ck_assert(h[0] && !h[1] && !h[2]);
	ck_assert_uint_eq(approx_tree_match(t, ad, 1, NULL, h), 1);
	ck_assert(h[0] && h[1] && h[2]);
	ck_assert_uint_eq(approx_tree_match(t, ba, 2, NULL, h), 0);
	ck_assert(!h[0] && !h[1] && !h[2]);
	ck_assert_uint_eq(approx_tree_entries(t, 1), 3);
	approx_tree_free(t);
}
END_TEST

/* The least recently used leaf goes first, and only of that worker. */
START_TEST(tree_evicts_leaves)
{
	static const uint64_t ab[] = { 1, 2 }, ac[] = { 1, 3 },
	    ad[] = { 1, 4 }, abe[] = { 1, 2, 5 };
	struct approx_tree *t = approx_tree_new(2, 3);
	bool h[2];

	ck_assert_int_eq(approx_tree_insert(t, ac, 2, 1), 0);
	ck_assert_int_eq(approx_tree_insert(t, ab, 2, 0), 0);
	ck_assert_int_eq(approx_tree_insert(t, ac, 2, 0), 0);
	ck_assert_int_eq(approx_tree_insert(t, ab, 2, 0), 0); /* c is older */
	ck_assert_int_eq(approx_tree_insert(t, ad, 2, 0), 0);
	ck_assert_uint_eq(approx_tree_entries(t, 0), 3);
	ck_assert_uint_eq(approx_tree_match(t, ac, 2, NULL, h), 2);
	ck_assert(!h[0] && h[1]);
	ck_assert_uint_eq(approx_tree_match(t, ab, 2, NULL, h), 2);
	ck_assert(h[0] && !h[1]);
	ck_assert_int_eq(approx_tree_insert(t, abe, 3, 0), 0); /* d goes */
	ck_assert_uint_eq(approx_tree_match(t, ad, 2, NULL, h), 1);
	ck_assert_uint_eq(approx_tree_match(t, abe, 3, NULL, h), 3);
	approx_tree_free(t);
}
END_TEST

/* A prompt longer than the limit keeps its head. */
START_TEST(tree_long_prompt)
{
	static const uint64_t ids[] = { 1, 2, 3, 4, 5 };
	struct approx_tree *t = approx_tree_new(1, 2);
	bool h[1];

	ck_assert_int_eq(approx_tree_insert(t, ids, 5, 0), 0);
	ck_assert_uint_eq(approx_tree_entries(t, 0), 2);
	ck_assert_uint_eq(approx_tree_match(t, ids, 5, NULL, h), 2);
	approx_tree_free(t);
}
END_TEST

/* A worker that is gone leaves no match, and others keep theirs. */
START_TEST(tree_forgets)
{
	static const uint64_t ab[] = { 1, 2 }, ac[] = { 1, 3 };
	struct approx_tree *t = approx_tree_new(2, 100);
	bool h[2];

	ck_assert_int_eq(approx_tree_insert(t, ab, 2, 0), 0);
	ck_assert_int_eq(approx_tree_insert(t, ac, 2, 1), 0);
	approx_tree_forget(t, 0);
	ck_assert_uint_eq(approx_tree_entries(t, 0), 0);
	ck_assert_uint_eq(approx_tree_match(t, ab, 2, NULL, h), 1);
	ck_assert(!h[0] && h[1]);
	ck_assert_uint_eq(approx_tree_match(t, ac, 2, NULL, h), 2);
	approx_tree_free(t);
}
END_TEST

/* Each allocation fails once; nothing leaks. */
START_TEST(tree_memory)
{
	static const uint64_t ids[] = { 1, 2, 3 };
	struct approx_tree *t;
	unsigned long n;
	int e = -1;

	for (n = 1; e != 0 && n < 100; n++) {
		alloc_fail_at(n);
		t = approx_tree_new(2, 100);
		e = t == NULL ? -1 : approx_tree_insert(t, ids, 3, 1);
		alloc_reset();
		approx_tree_free(t);
	}
	ck_assert_int_eq(e, 0);
	ck_assert_uint_gt(n, 10);
}
END_TEST

/* ----------------------------------------------------------- simulations -- */

static const struct kind rivals[] = {
	{ SIMULATE_STICKY, SIMULATE_TTL },
	{ SIMULATE_CHBL, SIMULATE_TTL },
	{ SIMULATE_CACHE_AWARE, SIMULATE_TTL },
	{ SIMULATE_LEAST_BACKLOG, SIMULATE_TTL },
	{ SIMULATE_LMETRIC, SIMULATE_TTL },
	{ SIMULATE_LMETRIC, SIMULATE_CAPACITY },
	{ SIMULATE_LMETRIC, SIMULATE_FEEDBACK },
	{ SIMULATE_LMETRIC, SIMULATE_ORACLE },
	{ SIMULATE_RAMJET, SIMULATE_TTL },
	{ SIMULATE_RAMJET, SIMULATE_CAPACITY },
	{ SIMULATE_RAMJET, SIMULATE_FEEDBACK },
	{ SIMULATE_RAMJET, SIMULATE_ORACLE },
	{ SIMULATE_TWO_TIER, SIMULATE_TTL },
	{ SIMULATE_TWO_TIER, SIMULATE_CAPACITY },
	{ SIMULATE_TWO_TIER, SIMULATE_FEEDBACK },
	{ SIMULATE_TWO_TIER, SIMULATE_ORACLE }
};
enum { RIVALS = sizeof(rivals) / sizeof(rivals[0]), PLAIN = 4 };

static struct simulate_options
rival_options(int i, uint32_t workers, uint64_t capacity)
{
	struct simulate_options o = options_of(0, workers, capacity);

	o.policy = rivals[i].policy;
	o.index = rivals[i].index;
	return o;
}

/* Recounts everything after every step; one seed, one result. */
START_TEST(rivals_conserved)
{
	struct simulate_options o = rival_options(_i % RIVALS, 3, 60000);
	const struct simulate_totals *t;
	struct simulate_totals a, b;
	struct setup u;
	int64_t x, y;

	fleets[_i / RIVALS](&o);
	if (_i < 2 * RIVALS) {
		a = totals_of(&o, &x);
		b = totals_of(&o, &y);
		ck_assert_mem_eq(&a, &b, sizeof(a));
		ck_assert_int_eq(x, y);
	}
	o.check = true;
	begin(&u, &o, 512);
	simulate_sample(&u, test_amount(30), 4);
	t = simulate_totals(u.s);
	ck_assert_uint_eq(t->finished + t->refused + t->empty, t->requests);
	ck_assert_uint_gt(t->finished, 0);
	ck_assert_uint_eq(t->predicted_tokens - t->over_tokens,
	    t->hit_tokens - t->under_tokens);
	end(&u);
}
END_TEST

START_TEST(rivals_memory)
{
	struct simulate_options o = rival_options(_i, 3, 60000);
	struct kvr_options region;

	o.replicas = 2;
	region_of(&region, 3, 512);
	(void)made_without_memory(&o, &region, 100);
}
END_TEST

/* A named session has one worker; without a name its first tokens decide. */
START_TEST(sessions_stick)
{
	static const uint64_t a[] = { 1, 2 }, b[] = { 3, 4 };
	struct simulate_options o = rival_options(0, 8, 0);
	const struct simulate_ride *rides;
	struct trace_request q = { .tokens = 1024, .output_length = 1,
	    .n_ids = 2 };
	uint32_t differ = 0;
	struct setup u;
	size_t n, i;

	begin(&u, &o, 512);
	for (i = 0; i < 40; i++) {
		q.ids = i % 2 == 0 ? a : b;
		q.session = i / 2 + 1;
		give(&u, &q, (int64_t)i * 1000000000);
	}
	rides = simulate_rides(u.s, &n);
	ck_assert_uint_eq(n, 40);
	for (i = 0; i < 40; i += 2) {
		ck_assert_uint_eq(rides[i].worker, rides[i + 1].worker);
		differ += rides[i].worker != rides[0].worker;
	}
	ck_assert_uint_gt(differ, 5);
	end(&u);
}
END_TEST

/*
 * Engines find all computed blocks, routers predict those that they see. After
 * a death they see all.
 */
START_TEST(some_is_unseen)
{
	static const enum simulate_policy policies[] = { SIMULATE_CACHE_AWARE,
		SIMULATE_LEAST_BACKLOG, SIMULATE_BALANCED, SIMULATE_RAMJET };
	static const uint64_t a[] = { 1, 2, 3 }, b[] = { 1, 2, 4 };
	struct simulate_options o = rival_options(0, 1, 0);
	struct simulate_change changes[] = {
		{ INT64_C(10010000000), 1, 0, SIMULATE_KILL },
		{ 0, 1, 1, SIMULATE_DRAIN },
		{ INT64_C(10005000000), 1, 1, SIMULATE_JOIN }
	};
	struct trace_request q = { .tokens = 1536, .output_length = 9,
	    .n_ids = 3, .ids = a, .seen = a, .n_seen = 2 };
	const struct simulate_ride *rides;
	struct setup u;
	size_t n, i;

	o.policy = policies[_i];
	o.workers = 2;
	o.check = true;
	for (i = 0; i < 3; i++)
		ck_assert(simulate_add_change(&o, &changes[i]));
	begin(&u, &o, 512);
	give(&u, &q, 0);
	q.ids = b;
	q.n_seen = 1;
	give(&u, &q, INT64_C(5000000000));
	give(&u, &q, INT64_C(10000000000)); /* its worker dies */
	rides = simulate_rides(u.s, &n);
	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(rides[1].tokens, 1536);
	ck_assert_uint_eq(rides[1].hit, 1024);
	ck_assert_uint_eq(rides[1].predicted,
	    o.policy == SIMULATE_LEAST_BACKLOG ? 0 : 512);
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	ck_assert_uint_eq(simulate_totals(u.s)->retried, 1);
	ck_assert_uint_eq(simulate_totals(u.s)->finished, 3);
	ck_assert_int_eq(simulate_check(u.s), KVR_OK);
	end(&u);
}
END_TEST

/*
 * Cache-aware finds its earlier prompts, and predicts them; a second router
 * has no record of them, unless they exchange.
 */
START_TEST(cache_aware_remembers)
{
	static const uint64_t ids[] = { 1, 2 };
	static const uint64_t predicted[] = { 1024, 0, 1024 };
	struct simulate_options o = rival_options(2, 8, 0);
	const struct simulate_ride *rides;
	struct setup u;
	size_t n;

	o.replicas = _i == 0 ? 1 : 2;
	o.exchange = _i == 2 ? SIMULATE_ALL : SIMULATE_NOTHING;
	begin(&u, &o, 512);
	give_simple(&u, 1024, 1, ids, 0);
	give_simple(&u, 1024, 1, ids, 10000000000);
	rides = simulate_rides(u.s, &n);
	ck_assert_uint_eq(rides[0].predicted, 0);
	ck_assert_uint_eq(rides[1].predicted, predicted[_i]);
	if (predicted[_i] > 0)
		ck_assert_uint_eq(rides[0].worker, rides[1].worker);
	end(&u);
}
END_TEST

/*
 * 24 requests arrive together on 8 workers with one key: sticky sends all to
 * one, chbl at most ceil(1.25 * 24 / 8) = 4 to each.
 */
START_TEST(one_key_at_once)
{
	static const uint64_t ids[] = { 1, 2 };
	struct simulate_options o = rival_options(_i, 8, 0);
	const struct simulate_ride *rides;
	struct chosen c = { { 0 } };
	uint32_t most = 0;
	struct setup u;
	size_t n, i;

	begin(&u, &o, 512);
	for (i = 0; i < 24; i++)
		give_simple(&u, 1024, 100, ids, 0);
	rides = simulate_rides(u.s, &n);
	for (i = 0; i < n; i++)
		c.times[rides[i].worker]++;
	for (i = 0; i < 8; i++)
		most = c.times[i] > most ? c.times[i] : most;
	ck_assert_uint_eq(most, _i == 0 ? 24 : 4);
	end(&u);
}
END_TEST

/*
 * The index's expectation brings a request back, and is predicted. Past the
 * TTL of 120 s only TTL has forgotten it.
 */
START_TEST(by_index)
{
	static const uint64_t ids[] = { 1, 2, 3 }, others[] = { 4, 5, 6 };
	struct simulate_options o = rival_options(PLAIN + _i, 8, 1000000);
	const struct simulate_ride *rides;
	struct setup u;
	size_t n;

	begin(&u, &o, 512);
	give_simple(&u, 1536, 1, ids, 0);
	give_simple(&u, 1536, 1, others, 5000000000);
	give_simple(&u, 1536, 1, ids, 10000000000);
	give_simple(&u, 1536, 1, ids, 200000000000);
	rides = simulate_rides(u.s, &n);
	ck_assert_uint_eq(n, 4);
	ck_assert_uint_eq(rides[0].predicted, 0);
	ck_assert_uint_eq(rides[1].predicted, 0);
	ck_assert_uint_eq(rides[2].worker, rides[0].worker);
	ck_assert_uint_ge(rides[2].predicted, 1024);
	if (o.index == SIMULATE_TTL) {
		ck_assert_uint_eq(rides[3].predicted, 0);
	} else {
		/* more than half, though some may have been lost */
		ck_assert_uint_eq(rides[3].worker, rides[0].worker);
		ck_assert_uint_gt(rides[3].predicted, 768);
	}
	end(&u);
}
END_TEST

/*
 * 40 requests with one prompt arrive together; one worker has it. LMetric
 * sends them all there: one token times 40 is less than 1536 times 1. Ramjet's
 * three blocks are less than a request, so all get as many. Two-tier's first
 * rule sends 33 there, and its second rule one to each other worker.
 */
START_TEST(one_prompt_at_once)
{
	static const struct {
		enum simulate_policy policy;
		uint32_t there, elsewhere;
	} cases[] = {
		{ SIMULATE_LMETRIC, 40, 0 },
		{ SIMULATE_RAMJET, 5, 5 },
		{ SIMULATE_TWO_TIER, 33, 1 }
	};
	static const uint64_t ids[] = { 1, 2, 3 };
	struct simulate_options o = rival_options(PLAIN, 8, 0);
	const struct simulate_ride *rides;
	struct chosen c = { { 0 } };
	struct setup u;
	size_t n, i;

	o.policy = cases[_i].policy;
	begin(&u, &o, 512);
	give_simple(&u, 1536, 1, ids, 0);
	for (i = 0; i < 40; i++)
		give_simple(&u, 1536, 100, ids, 10000000000);
	rides = simulate_rides(u.s, &n);
	for (i = 1; i < n; i++)
		c.times[rides[i].worker]++;
	for (i = 0; i < 8; i++)
		ck_assert_uint_eq(c.times[i], i == rides[0].worker
		    ? cases[_i].there : cases[_i].elsewhere);
	end(&u);
}
END_TEST

static void
change(struct simulate_options *o, enum simulate_change_kind kind,
    uint32_t worker, int64_t seconds)
{
	struct simulate_change c = { seconds * 1000000000, 1, worker, kind };

	ck_assert(simulate_add_change(o, &c));
}

/* Nothing goes to a worker that is not up, and something to each that is. */
START_TEST(rivals_only_to_those_up)
{
	struct simulate_options o = rival_options(_i, 3, 0);
	const struct simulate_ride *rides;
	uint64_t ids[1], seen = 0;
	struct setup u;
	int64_t at, i;
	size_t n;

	o.check = true;
	change(&o, SIMULATE_JOIN, 2, 1);
	change(&o, SIMULATE_DRAIN, 0, 2);
	change(&o, SIMULATE_KILL, 1, 3);
	change(&o, SIMULATE_JOIN, 0, 4);
	begin(&u, &o, 512);
	for (i = 0; i < 200; i++) {
		ids[0] = (uint64_t)i;
		give_simple(&u, 500, 20, ids, i * 25000000);
	}
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	rides = simulate_rides(u.s, &n);
	ck_assert_uint_eq(n, 200);
	for (i = 0; i < 200; i++) {
		at = rides[i].arrival / 1000000000;
		seen |= UINT64_C(1) << (at * 4 + rides[i].worker);
	}
	ck_assert_uint_eq(seen, 0x54673);
	end(&u);
}
END_TEST

/*
 * The worker with the prompt leaves for a second. The entries go if it dies,
 * and stay if it drains.
 */
START_TEST(cache_aware_forgets_the_dead)
{
	static const uint64_t ids[] = { 1, 2 };
	struct simulate_options o = rival_options(2, 2, 0);
	const struct simulate_ride *rides;
	struct setup u;
	uint32_t worker;
	size_t n;

	begin(&u, &o, 512);
	give_simple(&u, 1024, 1, ids, 0);
	worker = simulate_rides(u.s, &n)->worker;
	end(&u);
	change(&o, _i == 0 ? SIMULATE_KILL : SIMULATE_DRAIN, worker, 5);
	change(&o, SIMULATE_JOIN, worker, 6);
	begin(&u, &o, 512);
	give_simple(&u, 1024, 1, ids, 0);
	give_simple(&u, 1024, 1, ids, 10000000000);
	rides = simulate_rides(u.s, &n);
	ck_assert_uint_eq(rides[0].worker, worker);
	ck_assert_uint_eq(rides[1].predicted, _i == 0 ? 0 : 1024);
	end(&u);
}
END_TEST

static void
add_rules(TCase *c)
{
	tcase_add_test(c, keys);
	tcase_add_test(c, sticky_shares);
	tcase_add_test(c, rendezvous_moves_one_in_n);
	tcase_add_test(c, bounds);
	tcase_add_loop_test(c, load_is_bounded, 1, SOME + 1);
	tcase_add_test(c, chbl_is_consistent);
	tcase_add_test(c, half_of_the_prompt);
	tcase_add_test(c, imbalance);
	tcase_add_test(c, several_holders);
	tcase_add_test(c, products);
	tcase_add_test(c, shifted_overlaps);
	tcase_add_test(c, shifted_ends);
	tcase_add_test(c, more_than_half);
	tcase_add_test(c, imbalance_of_two_tiers);
	tcase_add_test(c, backlog);
	tcase_add_test(c, ties_by_lot);
	tcase_add_test(c, all_away);
}

Suite *suite_rivals(void);

Suite *
suite_rivals(void)
{
	Suite *s = suite_create("rivals");
	TCase *c = tcase_create("rivals");

	add_rules(c);
	tcase_add_test(c, tree_as_drawn);
	tcase_add_test(c, tree_evicts_leaves);
	tcase_add_test(c, tree_long_prompt);
	tcase_add_test(c, tree_forgets);
	tcase_add_test(c, tree_memory);
	tcase_add_loop_test(c, rivals_conserved, 0, FLEETS * RIVALS);
	tcase_add_loop_test(c, rivals_memory, 0, RIVALS);
	tcase_add_test(c, sessions_stick);
	tcase_add_loop_test(c, some_is_unseen, 0, 4);
	tcase_add_loop_test(c, cache_aware_remembers, 0, 3);
	tcase_add_loop_test(c, one_key_at_once, 0, 2);
	tcase_add_loop_test(c, by_index, 0, RIVALS - PLAIN);
	tcase_add_loop_test(c, one_prompt_at_once, 0, 3);
	tcase_add_loop_test(c, rivals_only_to_those_up, 0, RIVALS);
	tcase_add_loop_test(c, cache_aware_forgets_the_dead, 0, 2);
	suite_add_tcase(s, c);
	return s;
}
