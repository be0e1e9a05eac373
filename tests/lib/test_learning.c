/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_learning.c - reports about a cache of known capacity.
 *
 * The engine keeps blocks in exact order of their last use; their size is that
 * of the index's blocks, or another. Chats begin with the same tokens and
 * grow. The last block of a prompt was used first, so it goes first.
 */
#include "numbers.h"
#include "trust.h"

#include "reports.h"

enum {
	BLOCK = 32, CHATS = 128, COMMON = 512, LONGEST = 4096, GROWTH = 150,
	CAPACITY = 100000, MORE = 5000,
	LARGE = 4, /* times longer are chats with blocks of hybrid models */
	KEYS = (CHATS + 1) * LONGEST * LARGE
};

/* The blocks are in a list; the last one used is at `newest`. */
static struct {
	uint32_t block, room, held, newest, oldest;
	uint32_t minimum; /* fewer tokens are not found */
	uint32_t times, longest; /* chats are so many times longer; tokens */
	uint32_t newer[KEYS], older[KEYS]; /* by key; 0: none */
	bool has[KEYS];
	uint32_t length[CHATS];
} engine;
static uint64_t asked, predicted, found; /* tokens, since counted */

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 16 << 20;
	o.block_size = BLOCK;
	o.ttl_ns = INT64_C(1000000000000);
	region_of(&o);
	by_chance();
}

static void
engine_of(uint32_t block, uint64_t capacity)
{
	memset(&engine, 0, sizeof(engine));
	engine.block = block;
	engine.times = block > COMMON ? LARGE : 1;
	engine.longest = engine.times * LONGEST;
	engine.room = (uint32_t)(capacity * engine.times / block);
}

/* Returns the key of a block that ends with this token, in a chat or in all. */
static uint32_t
key_of(uint32_t chat, uint32_t end)
{
	return (end <= COMMON ? 0 : chat + 1) * engine.longest + end - 1;
}

static void
engine_drop(uint32_t key)
{
	uint32_t newer = engine.newer[key], older = engine.older[key];

	*(newer != 0 ? &engine.older[newer] : &engine.newest) = older;
	*(older != 0 ? &engine.newer[older] : &engine.oldest) = newer;
	engine.has[key] = false;
	engine.held--;
}

static void
engine_use(uint32_t key)
{
	if (engine.has[key])
		engine_drop(key);
	engine.newer[key] = 0;
	engine.older[key] = engine.newest;
	*(engine.newest != 0 ? &engine.newer[engine.newest]
	    : &engine.oldest) = key;
	engine.newest = key;
	engine.has[key] = true;
	engine.held++;
}

/* Tokens found by a prompt; its last token is computed in any case. */
static uint64_t
engine_serve(uint32_t chat, uint32_t tokens)
{
	uint32_t hit = 0, end;

	while (hit + engine.block < tokens &&
	    engine.has[key_of(chat, hit + engine.block)])
		hit += engine.block;
	for (end = tokens - tokens % engine.block; end > 0;
	    end -= engine.block)
		engine_use(key_of(chat, end));
	while (engine.held > engine.room)
		engine_drop(engine.oldest);
	return hit < engine.minimum ? 0 : hit;
}

static void
say_chat(uint32_t chat, uint32_t tokens)
{
	static uint32_t token[LONGEST * LARGE];
	uint32_t i;

	for (i = 0; i < tokens; i++)
		token[i] = i < COMMON ? i : (chat + 1) * engine.longest + i;
	must(kvr_prompt_set_tokens(p, NULL, token, tokens) == KVR_OK);
}

static void
served(uint32_t chat, uint32_t tokens)
{
	struct kvr_decision d = { .size = sizeof(d) };
	int64_t now = k->region->clock + 1;
	struct kvr_report r = said(KVR_REPORT_VALUE, 0);

	say_chat(chat, tokens);
	must(kvr_lease_open_on(k, p, NULL, id[0], now, &d) == KVR_OK);
	must(kvr_lease_commit(k, d.lease, now, 0) == KVR_OK);
	r.cached_tokens = engine_serve(chat, tokens);
	must(kvr_lease_finish(k, d.lease, &r, now, 0) == KVR_OK);
	asked += tokens;
	predicted += d.overlap_tokens;
	found += r.cached_tokens;
}

/* A chat goes on, or begins anew: those of low numbers more often. */
static void
turn(void)
{
	uint32_t chat = pick(1 + pick(CHATS));

	engine.length[chat] += 1 + pick(2 * GROWTH * engine.times);
	if (engine.length[chat] <= COMMON ||
	    engine.length[chat] >= engine.longest)
		engine.length[chat] = COMMON + 1 + pick(GROWTH);
	served(chat, engine.length[chat]);
}

static void
turns(uint32_t n)
{
	asked = predicted = found = 0;
	for (; n > 0; n--)
		turn();
	region_sound();
}

static void
told(uint64_t capacity, uint32_t block_tokens)
{
	struct kvr_worker f = { .size = sizeof(f) };

	ck_assert_int_eq(kvr_worker_get(k, id[0], &f), KVR_OK);
	f.capacity_tokens = capacity;
	f.block_tokens = block_tokens;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
}

/* ------------------------------------------------------------- learnt --- */

/*
 * The block size equals the index's, is larger, smaller, or unrelated. The last
 * one is that of hybrid models.
 */
static const uint32_t blocks_of[] = { BLOCK, 4 * BLOCK, BLOCK / 4, 48, 2176 };
enum { KINDS = sizeof(blocks_of) / sizeof(blocks_of[0]) };

static void
ck_near(double is, double must_be, double share, const char *what)
{
	if (!(fabs(is - must_be) <= share * must_be))
		ck_abort_msg("%s: %g, must be %g, engine's block is %u "
		    "(KVR_SEED=%" PRIu64 ")", what, is, must_be, engine.block,
		    seed);
}

/*
 * It predicts what is found, and the capacity: ages are known to a fifth, and
 * rather too much is assumed than too little. _i: a kind for each block size,
 * first configured, then hidden.
 */
START_TEST(as_much_as_is_found)
{
	double capacity = CAPACITY + _i * MORE;
	uint32_t more;

	told(0, _i < KINDS ? blocks_of[_i] : 0);
	engine_of(blocks_of[_i % KINDS], (uint64_t)capacity);
	turns(8000);
	turns(2000);
	ck_assert(found > asked / 4 && found < asked - asked / 8);
	ck_near((double)predicted, (double)found, 0.05, "predicted tokens");
	for (more = 0; more < 20 && worker_stats(0).retain !=
	    KVR_RETAIN_CAPACITY; more++) /* it may be in doubt */
		turns(200);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
	ck_assert(trust_learnt(k, id_slot(id[0])));
	ck_near((double)trust_room(k, id_slot(id[0])),
	    1.05 * capacity * engine.times, 0.15, "room");
}
END_TEST

/*
 * Prompts are shorter than its block, again and again: nothing is found, and
 * this proves nothing.
 */
START_TEST(short_requests)
{
	uint32_t i;

	told(0, _i < KINDS ? blocks_of[_i] : 0);
	engine_of(blocks_of[_i % KINDS], CAPACITY);
	for (i = 0; i < 400; i++) {
		served(i % 3, 20 + i % 100);
		must(!numbers_nothing(k, id_slot(id[0])));
	}
	turns(200);
	for (i = 0; i < 400; i++) {
		served(i % 3, 20 + i % 100);
		must(!numbers_nothing(k, id_slot(id[0])));
		if (i % 10 == 0)
			turn();
	}
}
END_TEST

/*
 * An engine finds nothing below a minimum. Many prompts that share less prove
 * nothing about a chat that is longer, also if a capacity is told.
 */
START_TEST(below_a_minimum)
{
	uint32_t block = blocks_of[_i % KINDS], i;

	told(_i / KINDS % 2 == 0 ? 0 : CAPACITY,
	    _i / KINDS < 2 ? block : 0);
	engine_of(block, CAPACITY);
	engine.minimum = 1024;
	served(0, engine.longest - 200);
	served(0, engine.longest - 180);
	for (i = 0; i < 40; i++) {
		served(1 + i, COMMON + 200);
		must(!numbers_nothing(k, id_slot(id[0])));
	}
	asked = predicted = found = 0;
	served(0, engine.longest - 160);
	ck_assert_msg(predicted * 4 > found * 3, "%u predicted, %u found",
	    (uint32_t)predicted, (uint32_t)found);
}
END_TEST

/* ----------------------------------------------------- set capacities --- */

/*
 * The cache was filled before there was a record, or by another router: that
 * more is found than is on record does not refute the capacity. Each of the
 * loop's numbers draws other turns.
 */
START_TEST(warm_before_the_record)
{
	uint32_t i, chat;

	for (i = 0; i < (uint32_t)_i; i++)
		(void)pick(2);
	told(CAPACITY, BLOCK);
	engine_of(BLOCK, CAPACITY);
	for (chat = CHATS; chat-- > 0; ) {
		engine.length[chat] = COMMON + 1000;
		(void)engine_serve(chat, engine.length[chat]);
	}
	for (i = 0; i < 1000; i++) {
		turn();
		ck_assert_uint_eq(worker_stats(0).retain,
		    KVR_RETAIN_CAPACITY);
	}
	region_sound();
}
END_TEST

/* It is given up if the cache is larger; then the right one is learnt. */
START_TEST(larger_than_told)
{
	uint32_t i;

	told(CAPACITY / 4, BLOCK);
	engine_of(BLOCK, CAPACITY);
	turns(1000);
	ck_assert_uint_ne(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
	turns(8000);
	for (i = 0; i < 20 && worker_stats(0).retain !=
	    KVR_RETAIN_CAPACITY; i++) /* it may be in doubt */
		turns(200);
	ck_near((double)trust_room(k, id_slot(id[0])), 1.05 * CAPACITY, 0.15,
	    "room");
}
END_TEST

/* Whole leaves go, so the record of few chats never takes most of it. */
START_TEST(larger_than_told_and_evicts_leaves)
{
	static const uint32_t chats[] = { 2, 3, 6, 12 };
	static const uint64_t rooms[] = { 1500, 2500, 3000, 3500, 5000 };
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint32_t n = chats[_i % 4], turn_of, chat;

	ck_assert_int_eq(kvr_worker_get(k, id[0], &facts), KVR_OK);
	facts.capacity_tokens = rooms[_i / 4];
	facts.eviction = KVR_EVICT_LEAF;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	engine_of(BLOCK, CAPACITY);
	for (turn_of = 0; turn_of < 60; turn_of++) {
		asked = predicted = found = 0;
		for (chat = 0; chat < n; chat++)
			served(chat, COMMON + 1000 + turn_of * 4);
	}
	ck_assert_msg((double)predicted > 0.8 * (double)found,
	    "%u chats, %u told: %u predicted, %u found", n,
	    (uint32_t)rooms[_i / 4], (uint32_t)predicted, (uint32_t)found);
}
END_TEST

Suite *suite_learning(void);

Suite *
suite_learning(void)
{
	Suite *s = suite_create("learning");
	TCase *t = tcase_create("learning");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_loop_test(t, as_much_as_is_found, 0, 2 * KINDS);
	tcase_add_loop_test(t, short_requests, 0, 2 * KINDS);
	tcase_add_loop_test(t, below_a_minimum, 0, 4 * KINDS);
	tcase_add_loop_test(t, warm_before_the_record, 0, 8);
	tcase_add_test(t, larger_than_told);
	tcase_add_loop_test(t, larger_than_told_and_evicts_leaves, 0, 20);
	return s;
}
