/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_expect.c - how much of an overlap an engine can be expected to find.
 *
 * The usable part depends on a few numbers. The surviving part is compared
 * with the sum that defines it, block by block from the root, on random trees,
 * ages and likelihoods: S may well rise along a path, and the sum must not.
 */
#include "expect.h"
#include "route.h"
#include "worker.h"

#include "inner.h"

#include <math.h>

enum { BLOCK_OF = 16 };

/* One question about the current prompt. */
static struct question t;
static double costs[2 * WORKERS];
static struct found_set set;
static struct kvr_overlap rows[2 * WORKERS];
static uint32_t places[2 * WORKERS], base;
static struct found_end ends[2 * WORKERS];
static struct path_node nodes[PATH_NODES];
static int64_t stamps[2 * WORKERS];

static void
region_with(uint32_t unit, uint32_t block)
{
	struct kvr_options o = small_options();

	o.region_bytes = 1 << 20;
	o.unit = unit;
	o.block_size = block;
	o.ttl_ns = 1000000;
	region_of(&o);
}

static void
setup(void)
{
	region_with(KVR_UNIT_TOKENS, BLOCK_OF);
}

static void
set_facts(uint32_t worker, uint32_t retain, uint64_t capacity,
    uint32_t block_tokens)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.retain = retain;
	f.capacity_tokens = capacity;
	f.block_tokens = block_tokens;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

static void
ask_at(int64_t now)
{
	struct kvr_request r;

	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	if (base == 0) {
		memset(places, 0, sizeof(places));
		base = 1;
	}
	set.room = 2 * WORKERS;
	set.rows = rows;
	set.found = rows;
	set.places = places;
	set.next_base = &base;
	set.costs = costs;
	set.ends = ends;
	set.nodes = nodes;
	set.stamps = stamps;
	match_overlaps(k, p, now, &set);
	ck_assert_int_eq(route_begin(&t, k, p, &r, &set, now), KVR_OK);
}

static const struct kvr_overlap *
found(uint32_t worker)
{
	return found_of(&set, id_slot(id[worker]));
}

static uint64_t
tokens_expected(uint32_t slot)
{
	uint64_t expected;

	(void)route_cost(&t, slot, &expected);
	return expected;
}

static double
most(uint32_t worker)
{
	uint32_t slot = id_slot(id[worker]);

	ask_at(k->region->clock);
	return (expect_sure(&t, slot) ? found(worker)->blocks
	    : expect_usable(&t, slot, found(worker))) * t.block;
}

static double
expected(uint32_t worker)
{
	ask_at(k->region->clock);
	return expect_blocks(&t, id_slot(id[worker]), found(worker)) *
	    t.block;
}

/* ------------------------------------------------------------- usable --- */

/* By TTL, all that is recorded counts as cached. */
START_TEST(by_the_ttl)
{
	set_facts(0, KVR_RETAIN_TTL, 0, 2176);
	say_long(100 * BLOCK_OF, 0, 1);
	(void)observed(0, 1);
	ck_assert(expected(0) == 100 * BLOCK_OF && most(0) == 100 * BLOCK_OF);
	ck_assert(expected(1) == 0 && most(1) == 0);
	ck_assert(!expect_doubtful(&t, 0, found(0)));
	ck_assert(expect_blocks(&t, 0, found(0)) == 100);
}
END_TEST

/* At least one token is computed, and only whole engine blocks are found. */
START_TEST(whole_engine_blocks)
{
	static const struct {
		uint32_t told, recorded, length, usable;
	} known[] = {
		{ 0, 160, 160, 144 }, /* blocks of the index's size */
		{ 0, 160, 161, 160 },
		{ 0, 160, 400, 160 },
		{ 16, 160, 160, 144 },
		{ 1, 160, 160, 159 }, /* partial blocks too */
		{ 1, 160, 161, 160 },
		{ 32, 160, 160, 128 },
		{ 32, 160, 161, 160 },
		{ 32, 176, 400, 160 },
		{ 100, 320, 320, 300 },
		{ 100, 320, 301, 200 }, /* only 288 tokens are whole blocks */
		{ 2176, 2160, 2160, 0 },
		{ 2176, 2176, 2176, 0 },
		{ 2176, 2176, 2177, 2176 },
		{ 2176, 6000, 6500, 4352 },
		{ 100000, 6000, 6500, 0 },
		{ 0, 16, 16, 0 }
	};
	uint32_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		set_facts(0, KVR_RETAIN_AUTO, 1000000, known[i].told);
		say_long(known[i].recorded, 0, 1);
		(void)observed(0, 1);
		say_long(known[i].length, 0, 1);
		ck_assert_msg(expected(0) == known[i].usable, "row %u: %g", i,
		    expected(0));
		ck_assert(most(0) == expected(0));
		ck_assert(!expect_doubtful(&t, 0, found(0)));
		ck_assert(expect_blocks(&t, 0, found(0)) ==
		    (double)known[i].usable / BLOCK_OF);
		ck_assert_uint_eq(tokens_expected(0), known[i].usable);
	}
}
END_TEST

/* A configured block size precedes a learned one, and that the index's. */
START_TEST(told_and_learnt)
{
	set_facts(0, KVR_RETAIN_AUTO, 1000000, 0);
	say_long(500, 0, 1);
	(void)observed(0, 1);
	ck_assert(expected(0) == 496);
	slot_at(k, 0)->learnt_block = 64;
	ck_assert(expected(0) == 448);
	set_facts(0, KVR_RETAIN_AUTO, 1000000, 100);
	ck_assert(expected(0) == 400);
	set_facts(0, KVR_RETAIN_AUTO, 1000000, 0);
	ck_assert(expected(0) == 448);
}
END_TEST

/* Applies a batch about one block; the first one has its tokens. */
static void
say_block(uint64_t seq, uint32_t kind, uint32_t tokens)
{
	static const uint64_t hash = 77;
	struct kvr_event_batch b = { .size = sizeof(b), .seq = seq,
		.digest = seq + 1, .flags = KVR_BATCH_PAST };
	struct kvr_event_result got = { .size = sizeof(got) };
	struct kvr_event e;

	(void)kvr_event_init(&e, sizeof(e));
	e.kind = kind;
	e.hashes = kind == KVR_EVENT_STORED;
	e.block_tokens = tokens;
	ck_assert_int_eq(kvr_events_apply(k, id[0], &b, &e, sizeof(e), 1,
	    &hash, 1, NULL, 0, 1, 0, &got), KVR_OK);
	id[0] = got.worker;
}

/*
 * The size in events comes between, unless reports show that parts of its
 * blocks are reused.
 */
START_TEST(said_by_events)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };

	set_facts(0, KVR_RETAIN_AUTO, 1000000, 0);
	say_long(500, 0, 1);
	(void)observed(0, 1);
	say_block(0, KVR_EVENT_STORED, 64);
	ck_assert(expected(0) == 448);
	slot_at(k, 0)->learnt_block = 192; /* by chance */
	ck_assert(expected(0) == 448);
	slot_at(k, 0)->learnt_block = 1;
	ck_assert(expected(0) == 496);
	slot_at(k, 0)->learnt_block = 192;
	set_facts(0, KVR_RETAIN_AUTO, 1000000, 100);
	ck_assert(expected(0) == 400);
	set_facts(0, KVR_RETAIN_AUTO, 1000000, 0);
	/* lost batches change no engine's blocks; another may have others */
	ck_assert_int_eq(kvr_events_lost(k, id[0], 9), KVR_OK);
	ck_assert(expected(0) == 448);
	say_block(9, KVR_EVENT_RESTARTED, 0);
	ck_assert_int_eq(kvr_worker_stats_get(k, id[0], &stats), KVR_OK);
	ck_assert_uint_eq(stats.events_restarts, 1);
	ck_assert(expected(0) == 384);
	say_block(10, KVR_EVENT_STORED, 1); /* pages of a token */
	ck_assert(expected(0) == 496);
	ck_assert_int_eq(kvr_events_off(k, id[0]), KVR_OK);
	ck_assert(expected(0) == 384);
}
END_TEST

/* Bytes: tokens are an estimate, so nothing is rounded to blocks. */
START_TEST(bytes)
{
	char text[1024];

	region_end();
	region_with(KVR_UNIT_BYTES, 64);
	set_facts(0, KVR_RETAIN_AUTO, 1000000, 48);
	memset(text, 'x', sizeof(text));
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, text, 640), KVR_OK);
	(void)observed(0, 1);
	ck_assert(expected(0) == 159);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, text, 645), KVR_OK);
	ck_assert(expected(0) == 160);
}
END_TEST

/* ---------------------------------------------------------- surviving --- */

START_TEST(nothing_is_known)
{
	set_facts(0, KVR_RETAIN_FEEDBACK, 0, 0);
	say_long(1600, 0, 1);
	(void)observed(0, 1);
	ck_assert(most(0) == 1584);
	ck_assert(fabs(expected(0) - 1584 * 5 / 6.0) < 1e-9);
	ck_assert(expect_doubtful(&t, 0, found(0)));
	ck_assert_uint_eq(tokens_expected(0), 1320);
	/* the record stays as it is */
	ck_assert_uint_eq(found(0)->blocks, 100);
}
END_TEST

/* Blocks in use by requests are there; those below them are not certain. */
START_TEST(in_use)
{
	uint64_t lease;

	set_facts(0, KVR_RETAIN_FEEDBACK, 0, 0);
	say_long(1600, 800, 1);
	finish(reserved(0, 1), 1);
	/* half of 1600; of the other half, 800 in use and half of 800 */
	note_age(0, 800, false, 1e6);
	note_age(0, 1200, false, 1e6);
	ck_assert(expected(0) < 10);
	say_long(800, 800, 0);
	lease = reserved(0, 2);
	ck_assert(expected(0) == 784);
	say_long(1600, 800, 1);
	ck_assert(expected(0) >= 800 && expected(0) < 810);
	(void)reserved(0, 2);
	ck_assert(expected(0) == 1584);
	give_up(lease, 3);
	ck_assert(expected(0) == 1584);
}
END_TEST

/*
 * Blocks of one age are found 3, 7 and 3 times in 10; the youngest ones always,
 * always, and half of the time.
 */
START_TEST(rather_lost_than_not)
{
	static const uint32_t found_in_10[] = { 3, 7, 3 }, youngest[] = { 10,
		10, 5 };
	double s[3];
	uint32_t i, n;

	for (i = 0; i < 3; i++) {
		set_facts(i, KVR_RETAIN_FEEDBACK, 0, 0);
		say_long(1600, 0, 1);
		(void)observed(i, 1);
		say_long(16000, 0, 2);
		(void)observed(i, 2);
		for (n = 0; n < 2000; n++) {
			note_age(i, 0, n % 10 < youngest[i], 1e3);
			note_age(i, 16000, n % 10 < found_in_10[i], 1e3);
		}
	}
	say_long(1600, 0, 1);
	for (i = 0; i < 3; i++)
		s[i] = expected(i) / 1584;
	ck_assert(s[0] > .02 && s[0] < .03);
	ck_assert(s[1] > .65 && s[1] < .8);
	ck_assert(s[2] > .3 && s[2] < .45);
}
END_TEST

/* Each worker has its own likelihoods and its own pins. */
START_TEST(each_its_own)
{
	uint32_t i;

	say_long(1600, 0, 1);
	for (i = 0; i < 3; i++) {
		set_facts(i, KVR_RETAIN_FEEDBACK, 0, 0);
		finish(reserved(i, 1), 1);
	}
	note_age(0, 0, true, 1e9);
	note_age(1, 0, false, 1e9);
	(void)reserved(2, 1);
	ck_assert(expected(0) > 1580 && expected(0) < 1584);
	ck_assert(expected(1) < 10);
	ck_assert(expected(2) == 1584);
}
END_TEST

/* Overlaps given by the caller are not doubted. */
START_TEST(given_is_not_doubted)
{
	struct kvr_overlap o = { .blocks = 10, .tokens = 160 };
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t i;

	set_facts(0, KVR_RETAIN_FEEDBACK, 0, 0);
	set_facts(1, KVR_RETAIN_AUTO, 1000000, 2176);
	set_facts(2, KVR_RETAIN_TTL, 0, 0);
	set_facts(3, KVR_RETAIN_TTL, 0, 0);
	for (i = 0; i < 3; i++) {
		o.worker = id[i];
		say_long(160, 0, 1);
		ck_assert_int_eq(kvr_choose(k, p, NULL, &o, sizeof(o), 1, 1,
		    &d), KVR_OK);
		ck_assert_uint_eq(d.worker, o.worker);
		ck_assert_uint_eq(d.overlap_tokens, 160);
		ck_assert_uint_eq(d.overlap_blocks, 10);
	}
}
END_TEST

/* -------------------------------------------------------------- random --- */

/* The node of the path with block i, from 0. */
static uint32_t
node_of(uint32_t i)
{
	uint32_t node = set.path.node, here = set.path.inside;
	uint32_t depth = set.path.depth;

	for (; depth - here > i; here = node_at(k, node)->length) {
		depth -= here;
		node = node_at(k, node)->parent;
	}
	return node;
}

/* Returns the likelihood of block i (from 0) of the prompt, by its own age. */
static double
likely(uint32_t worker, uint32_t i)
{
	uint32_t slot = id_slot(id[worker]);
	const struct entry *h = entry_at(k, cover_find(k, node_of(i), slot));
	double s;

	must(h->kind == CELL_ENTRY);
	if (h->pins > 0)
		return 1;
	s = survival_of(k, slot, survival_bin(stack_depth(k, slot,
	    h->released)));
	return s < survival_of(k, slot, 0) / 2 ? s / 16 : s;
}

/* The defining sum, over all that is usable. */
static double
sum_of(uint32_t worker)
{
	uint32_t i, blocks = found(worker)->blocks;
	uint64_t usable = trust_usable(k, id_slot(id[worker]), p->units,
	    (uint64_t)blocks * BLOCK_OF);
	double sum = 0, least = 1, s, share;

	for (i = 0; i < blocks; i++) {
		s = likely(worker, i);
		least = s < least ? s : least;
		share = (double)usable / BLOCK_OF - i;
		sum += least * (share < 0 ? 0 : share < 1 ? share : 1);
	}
	return sum * BLOCK_OF;
}

/* A few stems that fork anywhere, so that paths have many nodes. */
static void
say_branch(void)
{
	static uint32_t token[200 * BLOCK_OF];
	uint32_t blocks = 1 + pick(120), i, kind = 0;

	for (i = 0; i < blocks * BLOCK_OF; i++) {
		if (i % BLOCK_OF == 0 && pick(12) == 0)
			kind = kind * 3 + 1 + pick(2);
		token[i] = kind;
	}
	must(kvr_prompt_set_tokens(p, NULL, token, i - pick(BLOCK_OF)) ==
	    KVR_OK);
}

static uint64_t open_leases[8];

static void
one_call(int64_t now)
{
	uint32_t worker = pick(WORKERS), i = pick(8);

	say_branch();
	if (pick(2) == 0) {
		must(kvr_observe(k, p, id[worker], now, 0, NULL) == KVR_OK);
	} else if (open_leases[i] == 0) {
		open_leases[i] = reserved(worker, now);
	} else {
		if (pick(2) == 0)
			finish(open_leases[i], now);
		else
			give_up(open_leases[i], now);
		open_leases[i] = 0;
	}
	/* arbitrary ages, and arbitrary reports */
	(void)stack_push(k, worker, (uint64_t)pick(1000) << pick(14));
	if (pick(3) == 0)
		note_age(worker, (uint64_t)pick(2000) << pick(15),
		    pick(2) == 0, (double)pick(100000));
}

static void
ck_sums(uint64_t *rising)
{
	uint32_t worker, i;
	double sum, real;

	for (worker = 0; worker < WORKERS; worker++) {
		real = expected(worker);
		sum = sum_of(worker);
		if (!(fabs(real - sum) <= 1e-9 * (1 + sum)))
			ck_abort_msg("%u blocks: %.12g, must be %.12g "
			    "(KVR_SEED=%" PRIu64 ")", found(worker)->blocks,
			    real, sum, seed);
		must(real <= most(worker));
		for (i = 1; i < found(worker)->blocks; i++)
			*rising += likely(worker, i) > likely(worker, i - 1);
	}
}

START_TEST(as_the_sum_says)
{
	static const uint32_t blocks[] = { 0, 1, 16, 48, 100 };
	uint64_t i, n = test_amount(3000), rising = 0;

	by_chance();
	memset(open_leases, 0, sizeof(open_leases));
	for (i = 0; i < WORKERS; i++)
		set_facts((uint32_t)i, KVR_RETAIN_FEEDBACK, 0, 0);
	for (i = 0; i < n; i++) {
		if (i % 100 == 0)
			set_facts((uint32_t)(i / 100) % WORKERS,
			    KVR_RETAIN_FEEDBACK, 0, blocks[pick(5)]);
		one_call((int64_t)i);
		say_branch();
		ck_sums(&rising);
	}
	if (n > 1000)
		ck_assert_uint_gt(rising, 100);
	forget_idle();
}
END_TEST

/* More ages in one path than there are bins: one for each block. */
START_TEST(a_path_of_all_ages)
{
	uint32_t i, kind;

	for (kind = 0; kind < 3; kind++) {
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		set_facts(0, KVR_RETAIN_FEEDBACK, 0, 0);
		survival_forget(k, 0);
		for (i = 0; i < AGES; i++)
			note_age(0, (uint64_t)(1100 *
			    exp2(i / 4.0)), kind == 0 || (kind == 1 &&
			    i % 3 != 0), 512.0 * (1 + i * 7 % 50));
		for (i = 90; i > 0; i--) {
			say_long(i * BLOCK_OF, 200 * BLOCK_OF, 0);
			(void)observed(0, 1);
			if (i < 80)
				(void)stack_push(k, 0, UINT64_C(64) <<
				    (i / 4));
		}
		/* split where another prompt ended */
		for (i = 1; i < 90; i++) {
			say_long(i * BLOCK_OF + BLOCK_OF, i * BLOCK_OF, 9);
			(void)observed(1, 2);
		}
		say_long(91 * BLOCK_OF, 200 * BLOCK_OF, 0);
		ck_assert(fabs(expected(0) - sum_of(0)) < 1e-6);
		ck_assert_uint_eq(found(0)->blocks, 90);
		ck_assert_uint_gt(t.set->path.nodes, 80);
		forget_idle();
	}
}
END_TEST

/* -------------------------------------------------------------- damage --- */

enum { DEEP = 100 };

/* Makes a path of many nodes; each worker has all. */
static void
deep_path(void)
{
	uint32_t i;

	for (i = 0; i < WORKERS; i++)
		set_facts(i, KVR_RETAIN_FEEDBACK, 0, 0);
	for (i = DEEP; i > 0; i--) {
		say_long(i * BLOCK_OF, 200 * BLOCK_OF, 0);
		(void)observed(0, 1);
	}
	say_long((DEEP + 1) * BLOCK_OF, 200 * BLOCK_OF, 0);
	for (i = 0; i < WORKERS; i++)
		(void)observed(i, 2);
	for (i = 1; i < DEEP; i++) {
		say_long((i + 1) * BLOCK_OF, i * BLOCK_OF, 9);
		(void)observed(0, 2);
	}
	say_long((DEEP + 1) * BLOCK_OF, 200 * BLOCK_OF, 0);
	ask_at(2);
	ck_assert_uint_eq(set.path.nodes, DEEP);
}

/* Each lookup of an entry follows links until it may follow no more. */
static void
bend_chains(void)
{
	uint32_t node = set.path.node, h = node_at(k, node)->entries, b;

	if (node_at(k, node)->holders > 1)
		h = cover_find(k, node, 0);
	entry_at(k, h)->next = h;
	entry_at(k, h)->node = UINT32_MAX;
	for (b = 0; b < k->layout.entry_buckets; b++)
		k->entry_buckets[b] = h;
	for (; node != 0; node = node_at(k, node)->parent)
		if (node_at(k, node)->holders == 0)
			node_at(k, node)->holders = 1;
}

/* One question follows a limited number of links, for all workers together. */
START_TEST(links_are_limited)
{
	struct kvr_candidate all[WORKERS];
	uint64_t steps;
	double sound[WORKERS];
	uint32_t i;
	void *whole;
	size_t n;

	deep_path();
	steps = set.steps;
	for (i = 0; i < WORKERS; i++) {
		sound[i] = expect_blocks(&t, i, found(i));
		ck_assert(sound[i] > 50);
	}
	ck_assert_uint_ge(set.steps, steps + WORKERS);
	/* 3 each, but chains are longer under some secrets */
	ck_assert_uint_lt(set.steps, steps + (set.most - steps) / 16);
	whole = malloc(k->layout.end);
	ck_assert_ptr_nonnull(whole);
	memcpy(whole, k->region, k->layout.end);
	bend_chains();
	for (i = 0; i < WORKERS; i++)
		sound[i] = expect_blocks(&t, i, found(i));
	ck_assert(sound[WORKERS - 1] == 0);
	ck_assert_uint_ge(set.steps, set.most);
	ck_assert_uint_le(set.steps, set.most + 16 * LINE_MAX + 1);
	/* another question begins anew */
	ck_assert_int_eq(kvr_candidates(k, p, NULL, 2, all, sizeof(all[0]),
	    WORKERS, &n), KVR_OK);
	ck_assert_uint_eq(n, WORKERS);
	for (i = 0; i < WORKERS; i++)
		ck_assert(all[i].cost >= 0 && all[i].cost <= 1e300);
	ck_assert_uint_eq(all[WORKERS - 1].overlap_tokens, 0);
	ck_assert_int_eq(all[WORKERS - 1].age_ns, 0); /* no link tells it */
	memcpy(k->region, whole, k->layout.end);
	free(whole);
}
END_TEST

/* Fewer steps never raise the expectation of windows. */
START_TEST(steps_are_limited)
{
	static const uint32_t modes[] = { KVR_WINDOW_BOUNDARY,
		KVR_WINDOW_DENSE };
	struct kvr_worker f;
	uint64_t most, left;
	double whole, some;
	uint32_t i;

	deep_path();
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
		f.window_mode = modes[i];
		f.window_tokens = BLOCK_OF;
		ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
		ask_at(2);
		most = set.most;
		whole = expect_usable(&t, 0, found(0));
		for (left = 0; left < 1000; left += 7) {
			ask_at(2);
			set.most = set.steps + left;
			some = expect_usable(&t, 0, found(0));
			ck_assert(some >= 0 && some <= whole);
			set.most = most;
		}
	}
}
END_TEST

Suite *suite_expect(void);

Suite *
suite_expect(void)
{
	Suite *s = suite_create("expect");
	TCase *c = tcase_create("expect");

	tcase_add_checked_fixture(c, setup, region_end);
	suite_add_tcase(s, c);
	tcase_add_test(c, by_the_ttl);
	tcase_add_test(c, whole_engine_blocks);
	tcase_add_test(c, told_and_learnt);
	tcase_add_test(c, said_by_events);
	tcase_add_test(c, bytes);
	tcase_add_test(c, nothing_is_known);
	tcase_add_test(c, in_use);
	tcase_add_test(c, rather_lost_than_not);
	tcase_add_test(c, each_its_own);
	tcase_add_test(c, given_is_not_doubted);
	tcase_add_test(c, as_the_sum_says);
	tcase_add_test(c, a_path_of_all_ages);
	tcase_add_test(c, links_are_limited);
	tcase_add_test(c, steps_are_limited);
	return s;
}
