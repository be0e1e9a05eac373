/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_flood.c - a client that has the secret chooses its blocks by hash.
 *
 * Replicas share the secret, so a client may have it, and use it to find
 * prompts whose hashes are alike. The key of the table never leaves a region.
 * Such a client can send these floods; no flood may pile up one bucket:
 *
 *   low     first blocks whose sequence hashes end in the same 16 bits
 *   pair    second blocks: previous hash xor own hash ends in 16 zeros
 *   guess   blocks that meet in one bucket under a key that was guessed
 *
 * HOW MUCH IS TOO MUCH. Among n nodes in b buckets, n (n - 1) / 2b pairs are
 * expected to share one, however the nodes were chosen, if any two meet with
 * probability 1/b. Eight times as many have a probability of at most 1/8
 * (Markov), and there is no better bound: under an unlucky key whole floods
 * meet. So each flood meets 51 keys, and most of the keys must be lucky. 26
 * unlucky ones have a probability below 2^51 / 8^26 < 10^-8. A chain of length
 * c makes c (c - 1) / 2 pairs: for these numbers the longest under a lucky key
 * is at most 40, with two blocks 57, and on the mean way to a node 2 others
 * are met: the table has grown to twice as many buckets as there are nodes.
 */
#include "prompt.h"
#include "region.h"

#include "plain.h"
#include "test.h"

enum { FLOOD = 400, KEYS = 51, LUCKY = KEYS / 2 + 1, TIMES = 8 };
enum { REGION = 2 << 20 };

static struct kvr *k;
static struct kvr_prompt *p;
static uint64_t worker[2];
static uint64_t low; /* bits that are alike: 16, under a checker 8 */
static uint64_t guessed[4]; /* for the table of nodes */

/* Prompts of a flood: of one block, or of two. */
struct flood {
	uint32_t tokens[FLOOD][2];
	size_t blocks;
};

/* -------------------------------------------------------------- region --- */

static void
setup(void)
{
	struct kvr_options o;
	uint64_t chance = 1;
	size_t i;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = REGION;
	o.block_size = 1;
	o.max_workers = 2;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 'x', sizeof(o.secret));
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	ck_assert_int_eq(kvr_worker_add(k, "a", 1, NULL, &worker[0]), KVR_OK);
	ck_assert_int_eq(kvr_worker_add(k, "b", 1, NULL, &worker[1]), KVR_OK);
	low = test_amount(100) < 100 ? 0xff : 0xffff;
	for (i = 0; i < sizeof(guessed) / sizeof(guessed[0]); i++)
		guessed[i] = plain_random(&chance);
}

static void
teardown(void)
{
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	kvr_prompt_free(p);
	kvr_free(k);
}

/* ---------------------------------------------------------- the client --- */

/* The chain before a client's next block. */
struct stand {
	struct hash_chain chain;
	uint64_t prev;
};

static struct stand
at_root(void)
{
	struct kvr_scope scope;
	struct stand s;

	memset(&s, 0, sizeof(s));
	ck_assert_int_eq(kvr_scope_init(&scope, sizeof(scope)), KVR_OK);
	s.prev = hash_start(&p->rule, &scope, &s.chain);
	return s;
}

static uint64_t
step(struct stand *s, uint32_t token)
{
	unsigned char bytes[4];
	uint64_t local;

	plain_put(bytes, token, sizeof(bytes));
	hash_blocks(&p->rule, &s->chain, bytes, 1, &local);
	hash_chain_on(&p->rule, &s->chain, &local, 1, &s->prev);
	return s->prev;
}

/* The bucket under the guessed key: the library's function, again. */
static uint32_t
guess_bucket(uint64_t prev, uint64_t hash)
{
	uint64_t h = guessed[0] + guessed[1] * (uint32_t)prev +
	    guessed[2] * (prev >> 32) + guessed[3] * (uint32_t)hash;
	uint32_t x = (uint32_t)(h >> 32);

	x = (x ^ x >> 16) * UINT32_C(0x9e3779b1);
	return (x ^ x >> 16) &
	    (UINT32_MAX >> __builtin_clz(k->layout.node_buckets - 1));
}

static bool
low_alike(uint64_t prev, uint64_t hash)
{
	(void)prev;
	return (hash & low) == 0;
}

static bool
pair_alike(uint64_t prev, uint64_t hash)
{
	return ((prev ^ hash) & low) == 0;
}

static bool
guess_alike(uint64_t prev, uint64_t hash)
{
	return guess_bucket(prev, hash) == 0;
}

static bool
anything(uint64_t prev, uint64_t hash)
{
	(void)prev;
	(void)hash;
	return true;
}

typedef bool alike(uint64_t prev, uint64_t hash);

/*
 * The table has only the low half of a hash: with the same 16 bits chosen
 * again and again, it would take some of 400 first blocks for one.
 */
static bool
low_half_new(const uint64_t *hashes, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if ((uint32_t)hashes[i] == (uint32_t)hashes[n])
			return false;
	return true;
}

/* Tries one token after the other until the block behind `from` suits. */
static uint32_t
try_tokens(const struct stand *from, uint32_t token, alike *suits,
    uint64_t *hashes, uint32_t n)
{
	for (;; token++) {
		struct stand s = *from;

		hashes[n] = step(&s, token);
		if (suits(from->prev, hashes[n]) && low_half_new(hashes, n))
			return token;
	}
}

static void
choose(struct flood *f, size_t blocks, alike *suits)
{
	struct stand from = at_root();
	uint64_t hashes[FLOOD];
	uint32_t token = 0, i;

	f->blocks = blocks;
	for (i = 0; i < FLOOD; i++) {
		if (blocks == 2) {
			from = at_root();
			f->tokens[i][0] = i;
			(void)step(&from, i);
			token = 0;
		}
		token = try_tokens(&from, token, suits, hashes, i);
		f->tokens[i][blocks - 1] = token++;
	}
}

/* ----------------------------------------------------------- the flood --- */

static void
observe(const uint32_t *tokens, size_t n, uint64_t to)
{
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, n), KVR_OK);
	ck_assert_int_eq(kvr_observe(k, p, to, 1, 0, NULL), KVR_OK);
}

/* One node for each block: the first blocks have one more holder. */
static void
flood(const struct flood *f)
{
	uint32_t i;

	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	for (i = 0; i < FLOOD; i++) {
		if (f->blocks == 2)
			observe(f->tokens[i], 1, worker[1]);
		observe(f->tokens[i], f->blocks, worker[0]);
	}
}

struct chains {
	uint64_t nodes, pairs; /* pairs: of nodes in one bucket */
	uint32_t longest;
};

static struct chains
measure(void)
{
	struct chains c = { 0, 0, 0 };
	uint32_t b, i, length;

	for (b = 0; b < k->region->node_buckets_used; b++) {
		length = 0;
		for (i = k->node_buckets[b]; i != 0; i = node_at(k, i)->next)
			c.pairs += length++;
		c.nodes += length;
		c.longest = length > c.longest ? length : c.longest;
	}
	return c;
}

static bool
lucky(const struct chains *c)
{
	uint64_t all = c->nodes * (c->nodes - 1) / 2;

	return c->pairs <= TIMES * all / k->region->node_buckets_used;
}

static const struct {
	const char *name;
	size_t blocks;
	alike *suits;
} floods[] = {
	{ "random", 1, anything }, { "random, second blocks", 2, anything },
	{ "low", 1, low_alike }, { "pair", 2, pair_alike },
	{ "guess", 1, guess_alike }, { "guess, second blocks", 2, guess_alike }
};
enum { FLOODS = sizeof(floods) / sizeof(floods[0]), GUESS = 4 };

/* Each of its prompts is found where it is, with the hashes intended. */
static void
ck_found(const struct flood *f, alike *suits)
{
	struct kvr_overlap v[2];
	size_t n, at = f->blocks - 1;
	uint32_t i;

	for (i = 0; i < FLOOD; i++) {
		ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, f->tokens[i],
		    f->blocks), KVR_OK);
		ck_assert(suits(at > 0 ? p->sequence[0] : p->root,
		    p->sequence[at]));
		ck_assert_int_eq(kvr_match(k, p, 1, v, sizeof(v[0]), 2, &n),
		    KVR_OK);
		ck_assert_uint_eq(n, f->blocks);
		ck_assert_uint_eq(v[0].worker == worker[0] ? v[0].blocks
		    : v[1].blocks, f->blocks);
	}
}

START_TEST(no_flood_piles_up)
{
	static struct flood f;
	uint32_t i, n = 0;
	struct chains c;

	choose(&f, floods[_i].blocks, floods[_i].suits);
	for (i = 0; i < KEYS; i++) {
		teardown();
		setup(); /* with another key */
		flood(&f);
		c = measure();
		ck_assert_uint_eq(c.nodes, FLOOD * f.blocks);
		n += lucky(&c);
	}
	ck_found(&f, floods[_i].suits);
	ck_assert_msg(n >= LUCKY, "%s: only %u of %u keys spread it",
	    floods[_i].name, n, KEYS);
}
END_TEST

/* The measure works: with the real key all meet in one bucket. */
START_TEST(known_key_piles_up)
{
	static struct flood f;
	struct chains c;

	memcpy(k->table_key, guessed, sizeof(guessed));
	choose(&f, floods[_i].blocks, floods[_i].suits);
	flood(&f);
	c = measure();
	ck_assert(!lucky(&c));
	ck_assert_uint_ge(c.longest, FLOOD);
	ck_found(&f, floods[_i].suits);
}
END_TEST

Suite *suite_flood(void);

Suite *
suite_flood(void)
{
	Suite *s = suite_create("flood");
	TCase *t = tcase_create("flood");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, no_flood_piles_up, 0, FLOODS);
	tcase_add_loop_test(t, known_key_piles_up, GUESS, FLOODS);
	suite_add_tcase(s, t);
	return s;
}
