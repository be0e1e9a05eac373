/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inner.h - one small region, its workers, and prompts made of letters.
 *
 * For suites of the inner files of the library. A block is one token and a
 * token is one letter, so "abcd" is a prompt of four blocks, and a tree can
 * be written down:
 *
 *	abcd:01(efg:0 hi:1)     [abcd] held by the workers 0 and 1
 *	                           |-- [efg] held by 0
 *	                           `-- [hi]  held by 1
 *
 * A pinned entry is followed by "!", one of a retired worker is "-". Siblings
 * and trees are sorted by letter, holders by slot.
 */
#ifndef KVR_INNER_H
#define KVR_INNER_H

#include "cell.h"
#include "cover.h"
#include "entry.h"
#include "index.h"
#include "order.h"
#include "region.h"
#include "run.h"
#include "seat.h"
#include "stack.h"
#include "survival.h"
#include "table.h"

#include "plain.h"
#include "test.h"

#include <inttypes.h>
#include <stdlib.h>

enum { TTL = 1000, WORKERS = 4, WORKERS_MAX = 64, LETTERS = 1024 };

static struct kvr *k;
static struct kvr_prompt *p;
static uint64_t id[WORKERS_MAX]; /* of the workers; slots as numbered */

/* The letter for a block's hash, keyed by the low half of the hash. */
static struct {
	uint32_t hash;
	char letter;
} letters[LETTERS];
static uint32_t letters_known;

/* Is for inner loops: Check records every assertion of its own. */
#define must(that) do { \
	if (!(that)) \
		ck_abort_msg("%s (KVR_SEED=%" PRIu64 ")", #that, seed); \
} while (0)

/* -------------------------------------------------------------- random --- */

static uint64_t seed, chance; /* of this test, if it began with by_chance */

static inline void
by_chance(void)
{
	seed = chance = test_seed();
}

static inline uint32_t
pick(uint32_t n)
{
	return (uint32_t)(plain_random(&chance) % n);
}

/* ---------------------------------------------------------- the region --- */

static inline struct kvr_options
small_options(void)
{
	struct kvr_options o;

	ck_assert_int_eq(kvr_options_init(&o, sizeof(o)), KVR_OK);
	o.region_bytes = 256 << 10;
	o.ttl_ns = TTL;
	o.block_size = 1;
	o.max_workers = WORKERS;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 's', sizeof(o.secret));
	return o;
}

/* Plain insertion: from the root, nothing grows in place. */
static const struct insert plainly;

static inline uint64_t
worker_of(char name)
{
	uint64_t worker;

	ck_assert_int_eq(kvr_worker_add(k, &name, 1, NULL, &worker), KVR_OK);
	return worker;
}

/* The prompt, and this many workers, for a region that exists. */
static inline void
people(uint32_t workers)
{
	uint32_t i;

	letters_known = 0;
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	for (i = 0; i < workers && i < WORKERS_MAX; i++)
		id[i] = worker_of((char)('0' + i));
}

/* The cost that decides, and else the defaults. */
static inline void
use_cost(uint32_t cost)
{
	struct kvr_policy y;

	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
	y.cost = cost;
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
}

/* A region with as many workers as it has room for. */
static inline void
region_of(const struct kvr_options *o)
{
	ck_assert_int_eq(kvr_new(o, &k), KVR_OK);
	people(o->max_workers);
}

static inline void
region_sound(void)
{
	ck_assert_int_eq(kvr_check(k), KVR_OK);
}

static inline void
region_end(void)
{
	region_sound();
	kvr_prompt_free(p);
	kvr_free(k);
}

static inline void
small_setup(void)
{
	struct kvr_options o = small_options();

	region_of(&o);
}

/* Notes in a report that tokens of this age were there, or not. */
static inline void
note_age(uint32_t slot, uint64_t age, bool was_hit, double tokens)
{
	survival_note(k, slot, survival_bin(age), tokens, was_hit);
	survival_update(k, slot);
}

static inline double
of_age(uint32_t slot, uint64_t age)
{
	return survival_of(k, slot, survival_bin(age));
}

/* Others use the worker: so many blocks become idle, a few at a time. */
static inline void
idle_since(uint32_t slot, uint64_t blocks)
{
	uint64_t some;

	for (; blocks > 0; blocks -= some) {
		some = blocks < 64 ? blocks : 64;
		(void)stack_push(k, slot, some);
	}
}

/* Drops idle blocks that no entry has, which kvr_check would find. */
static inline void
forget_idle(void)
{
	uint32_t i;

	for (i = 0; i < k->layout.slots; i++)
		if (slot_in_use(k, i))
			order_stack_mend(k, i);
}

/* A case in which each test gets a small region and ends with it sound. */
static inline TCase *
small_case(Suite *s, const char *name)
{
	TCase *t = tcase_create(name);

	tcase_add_checked_fixture(t, small_setup, region_end);
	suite_add_tcase(s, t);
	return t;
}

static inline struct kvr_stats
stats(void)
{
	struct kvr_stats s = { .size = sizeof(s) };

	ck_assert_int_eq(kvr_stats_get(k, &s), KVR_OK);
	return s;
}

static inline struct kvr_worker_stats
worker_stats(uint32_t worker)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };

	ck_assert_int_eq(kvr_worker_stats_get(k, id[worker], &s), KVR_OK);
	return s;
}

/* The load of a worker, in a region that is sound. */
static inline void
ck_load(uint32_t worker, uint64_t prefill, uint64_t active, uint64_t output,
    uint64_t requests)
{
	struct kvr_worker_stats s = worker_stats(worker);

	region_sound();
	ck_assert_uint_eq(s.prefill_tokens, prefill);
	ck_assert_uint_eq(s.active_blocks, active);
	ck_assert_uint_eq(s.output_blocks, output);
	ck_assert_uint_eq(s.requests, requests);
}

static inline int
add_rank(const char *name, uint32_t rank, uint64_t *worker)
{
	struct kvr_worker facts;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.rank = rank;
	return kvr_worker_add(k, name, strlen(name), &facts, worker);
}

static inline uint64_t
find_rank(const char *name, uint32_t rank)
{
	uint64_t worker = 0;
	int error = kvr_worker_find(k, name, strlen(name), rank, &worker);

	ck_assert_int_eq(error, worker != 0 ? KVR_OK : KVR_EWORKER);
	return worker;
}

static inline void
remove_worker(uint64_t worker)
{
	ck_assert_int_eq(kvr_worker_remove(k, worker), KVR_OK);
}

/* --------------------------------------------------------- the prompts --- */

static inline char
letter_of(uint32_t hash)
{
	uint32_t i;

	for (i = 0; i < letters_known; i++)
		if (letters[i].hash == hash)
			return letters[i].letter;
	return '?';
}

static inline void
say_letter(uint32_t hash, char letter)
{
	if (letter_of(hash) != '?' || letters_known == LETTERS)
		return;
	letters[letters_known].hash = hash;
	letters[letters_known++].letter = letter;
}

static inline struct kvr_prompt *
say(const char *text)
{
	uint32_t token[LETTERS];
	size_t i, n = strlen(text);

	ck_assert_uint_le(n, LETTERS);
	for (i = 0; i < n; i++)
		token[i] = (unsigned char)text[i];
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, token, n), KVR_OK);
	for (i = 0; i < n / p->rule.block_size; i++)
		say_letter((uint32_t)p->sequence[i],
		    text[i * p->rule.block_size]);
	return p;
}

/* Makes a prompt of n blocks; all kinds share the first `common`. */
static inline struct kvr_prompt *
say_long(uint32_t n, uint32_t common, uint32_t kind)
{
	uint32_t *token = malloc((n + 1) * sizeof(*token)), i;

	ck_assert_ptr_nonnull(token);
	for (i = 0; i < n; i++)
		token[i] = i < common ? i : UINT32_C(0x80000000) + kind;
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, token, n), KVR_OK);
	free(token);
	return p;
}

/* Prompts of few letters: long common prefixes, forks anywhere. */
static inline void
say_by_chance(void)
{
	char text[61];
	uint32_t i, n = 1 + pick(60), odd = 2 + pick(40);

	if (pick(10) == 0) {
		n = 1 + pick(2000);
		say_long(n, pick(n + 1), pick(3));
		return;
	}
	for (i = 0; i < n; i++)
		text[i] = pick(odd) == 0 ? 'b' : 'a';
	text[n] = '\0';
	say(text);
}

/* Blocks of the current prompt that the worker is believed to hold. */
static inline uint32_t
overlap(uint32_t worker, int64_t now)
{
	struct kvr_overlap found[WORKERS_MAX];
	size_t i, n;

	ck_assert_int_eq(kvr_match(k, p, now, found, sizeof(found[0]),
	    WORKERS_MAX, &n), KVR_OK);
	for (i = 0; i < n; i++)
		if (found[i].worker == id[worker])
			return found[i].blocks;
	return 0;
}

/* Counts the workers that have any of the current prompt. */
static inline size_t
matched(struct kvr *from)
{
	static struct kvr_overlap found[WORKERS_MAX];
	size_t n;

	ck_assert_int_eq(kvr_match(from, p, 1, found, sizeof(found[0]),
	    WORKERS_MAX, &n), KVR_OK);
	return n;
}

/* Blocks recorded of the current prompt. */
static inline uint32_t
observed(uint32_t worker, int64_t now)
{
	uint32_t recorded;

	ck_assert_int_eq(kvr_observe(k, p, id[worker], now, 0, &recorded),
	    KVR_OK);
	return recorded;
}

static inline void
observe(uint32_t worker, const char *text, int64_t now)
{
	say(text);
	ck_assert_uint_eq(observed(worker, now), strlen(text));
}

/* A lease on the current prompt. */
static inline uint64_t
reserved(uint32_t worker, int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };

	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[worker], now, &d),
	    KVR_OK);
	return d.lease;
}

static inline uint64_t
reserve(uint32_t worker, const char *text, int64_t now)
{
	say(text);
	return reserved(worker, now);
}

static inline void
commit(uint64_t lease, int64_t now)
{
	ck_assert_int_eq(kvr_lease_commit(k, lease, now, 0), KVR_OK);
}

static inline void
finish(uint64_t lease, int64_t now)
{
	ck_assert_int_eq(kvr_lease_finish(k, lease, NULL, now, 0), KVR_OK);
}

static inline void
give_up(uint64_t lease, int64_t now)
{
	ck_assert_int_eq(kvr_lease_abort(k, lease, now, 0), KVR_OK);
}

/* Reclaims up to `budget` entries; returns whether more is due. */
static inline uint32_t
expire(int64_t now, uint32_t budget)
{
	uint32_t left;

	ck_assert_int_eq(kvr_expire(k, now, budget, &left), KVR_OK);
	return left;
}

/* ---------------------------------------------------------------- room --- */

/* Takes cells until only this many are free; returns them as a chain. */
static inline uint32_t
hoard_all_but(uint32_t left)
{
	uint32_t chain = 0, cell;

	while (k->region->free_cells > left) {
		cell = cell_take(k);
		cell_at(k, cell)->piece[0] = chain;
		chain = cell;
	}
	return chain;
}

static inline void
give_back(uint32_t chain)
{
	uint32_t next;

	for (; chain != 0; chain = next) {
		next = cell_at(k, chain)->piece[0];
		cell_give(k, chain);
	}
}

/*
 * Cell 0 is the result of cell_take when all are taken: a write to it means
 * that room was not made.
 */
static inline bool
cell_0_is_blank(void)
{
	static const union cell blank;

	return memcmp(cell_at(k, 0), &blank, CELL) == 0;
}

/* ------------------------------------------------------------- drawing --- */

struct drawing {
	char text[2048];
	size_t length;
};

static inline void
draw_letter(struct drawing *d, char c)
{
	ck_assert_uint_lt(d->length + 1, sizeof(d->text));
	d->text[d->length++] = c;
	d->text[d->length] = '\0';
}

static inline void
draw_holders(struct drawing *d, uint32_t node)
{
	uint32_t slot, hold;

	draw_letter(d, ':');
	for (slot = 0; slot < k->layout.slots; slot++) {
		hold = cover_find(k, node, slot);
		if (hold == 0)
			continue;
		draw_letter(d, slot_in_use(k, slot) ? (char)('0' + slot)
		    : '-');
		if (entry_at(k, hold)->pins > 0)
			draw_letter(d, '!');
	}
}

/* The child with this first letter; 0: none. parent 0: the roots. */
static inline uint32_t
child_of(uint32_t parent, char letter)
{
	uint32_t b, i;

	for (b = 0; b < k->region->node_buckets_used; b++)
		for (i = k->node_buckets[b]; i != 0; i = node_at(k, i)->next)
			if (node_at(k, i)->parent == parent &&
			    letter_of(node_at(k, i)->first) == letter)
				return i;
	return 0;
}

/* A run without known letters is drawn as one "?". */
static inline void
draw_run(struct drawing *d, const struct node *n)
{
	uint32_t i, length = letter_of(n->first) == '?' ? 1 : n->length;

	for (i = 0; i < length; i++)
		draw_letter(d, letter_of(run_get(k, n, i)));
}

static inline void
draw_below(struct drawing *d, uint32_t parent)
{
	uint32_t node, drawn = 0;
	char c;

	for (c = '?'; c <= 'z'; c++) {
		node = child_of(parent, c);
		if (node == 0)
			continue;
		if (drawn++ > 0)
			draw_letter(d, ' ');
		draw_run(d, node_at(k, node));
		draw_holders(d, node);
		if (node_at(k, node)->children == 0)
			continue;
		draw_letter(d, '(');
		draw_below(d, node);
		draw_letter(d, ')');
	}
}

/* All trees; the text is valid until the next call. */
static inline const char *
drawn(void)
{
	static struct drawing d;

	d.length = 0;
	d.text[0] = '\0';
	draw_below(&d, 0);
	return d.text;
}

/* The region is sound, and its tree is the one written down. */
#define ck_tree(want) do { \
	region_sound(); \
	ck_assert_str_eq(drawn(), (want)); \
} while (0)

#endif
