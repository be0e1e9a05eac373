/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_engine_cache.c - a modelled engine's cache against two simple models: a
 * list in order of release, and a tree that is searched for its leaves.
 *
 * Both models share one table of all possible blocks. The parent of block n is
 * parent[n] < n, or none; a use of n is a use of all its ancestors.
 */
#include "test.h"

#include <inttypes.h>
#include <string.h>

#include "alloc.h"
#include "engine_cache.h"
#include "rng.h"

static uint64_t seed; /* of the current test */

/* An assertion that prints the seed. */
#define must(that) do { \
	if (!(that)) \
		ck_abort_msg("%s (KVR_SEED=%" PRIu64 ")", #that, seed); \
} while (0)

enum { NODES = 60, RUNNING = 6, PATH_MAX_BLOCKS = NODES };
enum { NOTHING = -1 };

static uint64_t
name_of(int node)
{
	struct rng rng = { (uint64_t)node };

	return rng_next(&rng);
}

/* ----------------------------------------------------------- the model --- */

struct plain_block {
	bool there;
	uint64_t pins;
	uint64_t used;     /* time of last use */
	uint64_t released; /* time of last release, unique */
};

struct plain {
	enum engine_eviction eviction;
	int parent[NODES];
	struct plain_block blocks[NODES];
	uint64_t answers[1000]; /* when nameless idle blocks were added */
	size_t n_answers;
	uint64_t clock;
	int running[RUNNING];   /* the last block of each path, or NOTHING */
};

static void
plain_make(struct plain *p, enum engine_eviction eviction, struct rng *rng)
{
	static const struct plain none;
	int i;

	*p = none;
	p->eviction = eviction;
	for (i = 0; i < NODES; i++)
		p->parent[i] = rng_between(rng, 0, 9) == 0 || i == 0 ?
		    NOTHING : (int)rng_between(rng, i < 6 ? 0 :
		    (uint64_t)i - 6, (uint64_t)i - 1);
	for (i = 0; i < RUNNING; i++)
		p->running[i] = NOTHING;
}

/* The path from the root to a block; returns its length. */
static size_t
path_to(const struct plain *p, int node, int *path)
{
	size_t n = 0, i;
	int at;

	for (at = node; at != NOTHING; at = p->parent[at])
		path[n++] = at;
	for (i = 0; i < n / 2; i++) {
		at = path[i];
		path[i] = path[n - 1 - i];
		path[n - 1 - i] = at;
	}
	return n;
}

static bool
idle(const struct plain *p, int node)
{
	return p->blocks[node].there && p->blocks[node].pins == 0;
}

static bool
has_child(const struct plain *p, int node)
{
	int i;

	for (i = 0; i < NODES; i++)
		if (p->blocks[i].there && p->parent[i] == node)
			return true;
	return false;
}

/* The block to be evicted next; NODES: the oldest nameless one. */
static int
plain_next(const struct plain *p)
{
	uint64_t least = p->n_answers > 0 ? p->answers[0] : UINT64_MAX;
	int best = NODES, i;

	for (i = 0; i < NODES; i++) {
		const struct plain_block *b = &p->blocks[i];
		uint64_t age = p->eviction == ENGINE_EVICT_LEAF ? b->used :
		    b->released;

		if (!idle(p, i) || age >= least ||
		    (p->eviction == ENGINE_EVICT_LEAF && has_child(p, i)))
			continue;
		least = age;
		best = i;
	}
	return best;
}

static void
plain_evict(struct plain *p)
{
	int next = plain_next(p);
	size_t i;

	if (next < NODES) {
		p->blocks[next].there = false;
		return;
	}
	for (i = 1; i < p->n_answers; i++)
		p->answers[i - 1] = p->answers[i];
	p->n_answers--;
}

static uint64_t
plain_idle(const struct plain *p)
{
	uint64_t n = p->n_answers;
	int i;

	for (i = 0; i < NODES; i++)
		n += idle(p, i);
	return n;
}

/* --------------------------------------------------- model and cache --- */

struct pair {
	struct plain plain;
	struct engine_cache *cache;
	struct engine_block *held[RUNNING][PATH_MAX_BLOCKS];
	bool noted[NODES]; /* there, by the changes that the cache noted */
	struct rng rng;
};

static size_t
names_of(const struct pair *t, int node, int *path, uint64_t *names)
{
	size_t n = path_to(&t->plain, node, path), i;

	for (i = 0; i < n; i++)
		names[i] = name_of(path[i]);
	return n;
}

static void
begin(struct pair *t, int slot, int node)
{
	struct plain *p = &t->plain;
	int path[NODES];
	size_t n = path_to(p, node, path), i;

	p->clock++;
	p->running[slot] = node;
	for (i = 0; i < n; i++) {
		t->held[slot][i] = cache_pin(t->cache, name_of(path[i]));
		must(t->held[slot][i] != NULL);
		p->blocks[path[i]].there = true;
		p->blocks[path[i]].pins++;
		p->blocks[path[i]].used = p->clock;
	}
}

static void
end(struct pair *t, int slot)
{
	struct plain *p = &t->plain;
	int path[NODES];
	size_t n = path_to(p, p->running[slot], path);
	uint64_t now = ++p->clock;

	p->running[slot] = NOTHING;
	while (n-- > 0) {
		struct plain_block *b = &p->blocks[path[n]];

		cache_unpin(t->cache, t->held[slot][n]);
		b->pins--;
		b->used = now;
		b->released = ++p->clock;
	}
}

/* A request arrives and uses cached blocks. */
static void
use(struct pair *t, int node)
{
	struct plain *p = &t->plain;
	int path[NODES];
	uint64_t names[NODES];
	size_t n = names_of(t, node, path, names), leading = 0, i;

	while (leading < n && p->blocks[path[leading]].there)
		leading++;
	must(cache_leading(t->cache, names, n) == leading);
	cache_use(t->cache, names, leading);
	p->clock++;
	for (i = 0; i < leading; i++)
		p->blocks[path[i]].used = p->clock;
}

static void
answer(struct pair *t)
{
	struct plain *p = &t->plain;

	if (p->n_answers == sizeof(p->answers) / sizeof(p->answers[0]))
		return;
	must(cache_add_nameless(t->cache, 0));
	p->answers[p->n_answers++] = ++p->clock;
}

static void
reset(struct pair *t)
{
	int i;

	cache_reset(t->cache);
	for (i = 0; i < NODES; i++)
		t->plain.blocks[i].there = t->plain.blocks[i].pins > 0;
	t->plain.n_answers = 0;
}

/* Random eviction must have evicted exactly one idle block: finds it. */
static void
learn_which(struct pair *t)
{
	struct plain *p = &t->plain;
	int gone = 0, i;

	for (i = 0; i < NODES; i++) {
		if (!p->blocks[i].there || cache_has(t->cache, name_of(i)))
			continue;
		must(p->blocks[i].pins == 0);
		p->blocks[i].there = false;
		gone++;
	}
	must(gone <= 1);
	if (gone == 0) {
		must(p->n_answers > 0);
		p->n_answers--;
	}
}

static void
evict(struct pair *t)
{
	cache_evict(t->cache);
	if (t->plain.eviction == ENGINE_EVICT_RANDOM)
		learn_which(t);
	else
		plain_evict(&t->plain);
}

static void
step(struct pair *t)
{
	struct plain *p = &t->plain;
	int node = (int)rng_between(&t->rng, 0, NODES - 1);
	int slot = (int)rng_between(&t->rng, 0, RUNNING - 1);
	uint64_t what = rng_between(&t->rng, 0, 199);

	if (what == 0)
		reset(t);
	else if (what < 40)
		use(t, node);
	else if (what < 50)
		answer(t);
	else if (what < 100 && p->running[slot] == NOTHING)
		begin(t, slot, node);
	else if (what < 150 && p->running[slot] != NOTHING)
		end(t, slot);
	else if (what >= 150 && plain_idle(p) > 0)
		evict(t);
}

static int
node_of(uint64_t name)
{
	int i = 0;

	while (i < NODES && name_of(i) != name)
		i++;
	must(i < NODES);
	return i;
}

/* Each change inverts the noted state of its block. */
static void
take_changes(struct pair *t)
{
	const struct cache_change *changes;
	size_t n, i;
	int node;

	must(cache_changes(t->cache, &changes, &n));
	for (i = 0; i < n; i++) {
		node = node_of(changes[i].name);
		must(t->noted[node] != changes[i].stored);
		t->noted[node] = changes[i].stored;
	}
	cache_noted(t->cache);
	must(cache_changes(t->cache, &changes, &n) && n == 0);
}

static void
compare(struct pair *t)
{
	const struct plain *p = &t->plain;
	struct engine_cache_counts counts;
	uint64_t pinned = 0, pins = 0, names[NODES];
	int path[NODES], i;
	size_t n, leading;

	take_changes(t);
	for (i = 0; i < NODES; i++) {
		must(t->noted[i] == p->blocks[i].there);
		must(cache_has(t->cache, name_of(i)) ==
		    p->blocks[i].there);
		pinned += p->blocks[i].pins > 0;
		pins += p->blocks[i].pins;
	}
	cache_counts(t->cache, &counts);
	must(counts.idle == plain_idle(p));
	must(counts.pinned == pinned);
	must(counts.pins == pins);
	must(cache_check(t->cache));
	n = names_of(t, (int)rng_between(&t->rng, 0, NODES - 1), path, names);
	for (leading = 0; leading < n &&
	    p->blocks[path[leading]].pins > 0; leading++)
		;
	must(cache_pinned_leading(t->cache, names, n) == leading);
}

static void
against_plain(enum engine_eviction eviction)
{
	struct pair t = { .rng = { 0 } };
	uint64_t round, i;

	seed = t.rng.state = test_seed();
	for (round = test_amount(400); round > 0; round--) {
		plain_make(&t.plain, eviction, &t.rng);
		t.cache = cache_new(eviction, rng_next(&t.rng));
		must(t.cache != NULL);
		memset(t.noted, 0, sizeof(t.noted));
		cache_watch(t.cache);
		for (i = 0; i < 500; i++) {
			step(&t);
			compare(&t);
		}
		cache_free(t.cache);
	}
}

START_TEST(released)
{
	against_plain(ENGINE_EVICT_RELEASED);
}
END_TEST

START_TEST(leaf)
{
	against_plain(ENGINE_EVICT_LEAF);
}
END_TEST

START_TEST(drawn_from_the_idle)
{
	against_plain(ENGINE_EVICT_RANDOM);
}
END_TEST

/* ------------------------------------------------------ worked by hand --- */

/* Paths 10 <- 11 and 20 <- 21, released in this order. */
static struct engine_cache *
two_paths(enum engine_eviction eviction, uint64_t start)
{
	static const uint64_t names[] = { 10, 11, 20, 21 };
	struct engine_cache *c = cache_new(eviction, start);
	struct engine_block *b[4];
	int i;

	ck_assert_ptr_nonnull(c);
	for (i = 0; i < 4; i++)
		b[i] = cache_pin(c, names[i]);
	cache_unpin(c, b[1]);
	cache_unpin(c, b[0]);
	cache_unpin(c, b[3]);
	cache_unpin(c, b[2]);
	return c;
}

/* A waiting request counts as a use, for leaf eviction only. */
START_TEST(waiting_is_a_use)
{
	static const uint64_t path[] = { 10, 11 };
	struct engine_cache *c = two_paths(ENGINE_EVICT_RELEASED, 0);

	cache_use(c, path, 2);
	cache_evict(c);
	ck_assert(!cache_has(c, 11) && cache_has(c, 10) && cache_has(c, 21));
	cache_free(c);
	c = two_paths(ENGINE_EVICT_LEAF, 0);
	cache_use(c, path, 2);
	cache_evict(c);
	ck_assert(cache_has(c, 11) && !cache_has(c, 21) && cache_has(c, 20));
	cache_evict(c);
	cache_evict(c);
	ck_assert(!cache_has(c, 20) && !cache_has(c, 11) && cache_has(c, 10));
	cache_free(c);
}
END_TEST

/* -------------------------------------------------------------- random --- */

/* Returns the evicted one of four blocks, by its position in two_paths. */
static int
drawn(struct engine_cache *c)
{
	static const uint64_t names[] = { 10, 11, 20, 21 };
	int i, gone = -1;

	cache_evict(c);
	for (i = 0; i < 4; i++) {
		if (cache_has(c, names[i]))
			continue;
		ck_assert_int_eq(gone, -1);
		gone = i;
	}
	ck_assert_int_ge(gone, 0);
	ck_assert(cache_check(c));
	return gone;
}

/* Equal probability: each about 1000 of 4000 times, with fixed seeds. */
START_TEST(all_as_likely)
{
	int counts[4] = { 0, 0, 0, 0 }, i;
	uint64_t n;

	for (n = 0; n < 4000; n++) {
		struct engine_cache *c = two_paths(ENGINE_EVICT_RANDOM, n);

		counts[drawn(c)]++;
		cache_free(c);
	}
	for (i = 0; i < 4; i++) {
		ck_assert_int_gt(counts[i], 880);
		ck_assert_int_lt(counts[i], 1120);
	}
}
END_TEST

/* A hash of the order in which 32 blocks are evicted. */
static uint64_t
order_of_leaving(uint64_t start)
{
	struct engine_cache *c = cache_new(ENGINE_EVICT_RANDOM, start);
	struct engine_block *b[32];
	uint64_t hash = 0, i, n;
	bool there[32];

	ck_assert_ptr_nonnull(c);
	for (i = 0; i < 32; i++)
		b[i] = cache_pin(c, i);
	for (i = 0; i < 32; i++) {
		cache_unpin(c, b[i]);
		there[i] = true;
	}
	for (n = 0; n < 32; n++) {
		cache_evict(c);
		for (i = 0; i < 32; i++) {
			if (there[i] && !cache_has(c, i))
				hash = hash * 33 + i;
			there[i] = cache_has(c, i);
		}
	}
	cache_free(c);
	return hash;
}

START_TEST(seeds)
{
	ck_assert_uint_eq(order_of_leaving(1), order_of_leaving(1));
	ck_assert_uint_ne(order_of_leaving(1), order_of_leaving(2));
}
END_TEST

/* -------------------------------------------------------------- limits --- */

/* A cache without a watcher notes nothing. */
START_TEST(unwatched)
{
	struct engine_cache *c = two_paths(ENGINE_EVICT_LEAF, 0);
	const struct cache_change *changes;
	size_t n;

	ck_assert(cache_changes(c, &changes, &n));
	ck_assert_uint_eq(n, 0);
	cache_watch(c);
	cache_evict(c);
	ck_assert(cache_changes(c, &changes, &n));
	ck_assert_uint_eq(n, 1);
	ck_assert(changes[0].name == 11 && !changes[0].stored);
	cache_free(c);
}
END_TEST

/* Each allocation fails once: an error, and no leak. */
START_TEST(memory)
{
	const struct cache_change *changes;
	unsigned long n, count = 0;
	bool whole = false;
	size_t noted;

	for (n = 1; !whole && n < 2000; n++) {
		struct engine_block *b[200];
		struct engine_cache *c;
		uint64_t i = 0;

		alloc_fail_at(n);
		c = cache_new(ENGINE_EVICT_RANDOM, n);
		if (c != NULL)
			cache_watch(c);
		for (whole = c != NULL; whole && i < 200; i += whole) {
			b[i] = cache_pin(c, i);
			whole = b[i] != NULL && cache_changes(c, &changes,
			    &noted) && cache_add_nameless(c, 0);
		}
		count = alloc_count();
		alloc_reset();
		ck_assert(whole ? count < n : count >= n);
		ck_assert(c == NULL || cache_check(c));
		while (whole && i-- > 0)
			cache_unpin(c, b[i]);
		cache_free(c);
	}
	ck_assert(whole && n > 400);
}
END_TEST

Suite *suite_engine_cache(void);

Suite *
suite_engine_cache(void)
{
	Suite *s = suite_create("engine_cache");
	TCase *c = tcase_create("engine_cache");

	tcase_add_test(c, released);
	tcase_add_test(c, leaf);
	tcase_add_test(c, drawn_from_the_idle);
	tcase_add_test(c, waiting_is_a_use);
	tcase_add_test(c, all_as_likely);
	tcase_add_test(c, seeds);
	tcase_add_test(c, unwatched);
	tcase_add_test(c, memory);
	suite_add_tcase(s, c);
	return s;
}
