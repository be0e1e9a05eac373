/* SPDX-License-Identifier: BSD-2-Clause */
/* rivals.c - see rivals.h. */
#include "rivals.h"

#include "engine_model.h"
#include "rng.h"
#include "simulate_in.h"

#include <stdlib.h>

static bool
is_eligible(const struct rival_fleet *f, uint32_t worker)
{
	return f->away == NULL || !f->away[worker];
}

/* ---------------------------------------------------------------- least --- */

/* The least offer: by `a`, then by `b`, then by lot. */
struct least {
	uint64_t a;
	uint64_t b;
	uint32_t worker;
	uint32_t ties;
};

static void
offer_worker(struct least *l, uint64_t a, uint64_t b, uint32_t worker,
    struct rng *lots)
{
	if (l->ties > 0 && (a > l->a || (a == l->a && b > l->b)))
		return;
	if (a != l->a || b != l->b)
		l->ties = 0;
	l->a = a;
	l->b = b;
	if (l->ties++ == 0 || rng_between(lots, 0, l->ties - 1) == 0)
		l->worker = worker;
}

static const struct least nothing = { 0, 0, RIVAL_NONE, 0 };

/* Among all, or among those in `only`. */
static uint32_t
least_of(const struct rival_fleet *f, const bool *only, struct rng *lots)
{
	struct least l = nothing;
	uint32_t w;

	for (w = 0; w < f->workers; w++)
		if (is_eligible(f, w) && (only == NULL || only[w]))
			offer_worker(&l, f->booked[w].requests,
			    f->booked[w].prefill_tokens, w, lots);
	return l.worker;
}

uint32_t
rival_least_loaded(const struct rival_fleet *f, struct rng *lots)
{
	return least_of(f, NULL, lots);
}

/*
 * Least tokens still to prefill: join the shortest queue, by work. Prompts
 * count in full, because nothing is known of caches. Ties, such as an idle
 * prefill on every worker, go to the fewest running requests.
 */
uint32_t
rival_least_backlog(const struct rival_fleet *f, struct rng *lots)
{
	struct least l = nothing;
	uint32_t w;

	for (w = 0; w < f->workers; w++)
		if (is_eligible(f, w))
			offer_worker(&l, f->booked[w].prefill_tokens,
			    f->booked[w].requests, w, lots);
	return l.worker;
}

/*
 * LMetric (arXiv 2603.15202): least product of the tokens that the worker
 * would have to compute, those booked included, and of its running requests
 * with this one. An engine computes at least one token.
 */
uint32_t
rival_lmetric(const struct rival_fleet *f, const uint64_t *seen,
    uint64_t tokens, struct rng *lots)
{
	struct least l = nothing;
	uint64_t new_tokens;
	uint32_t w;

	for (w = 0; w < f->workers; w++) {
		if (!is_eligible(f, w))
			continue;
		new_tokens = seen[w] < tokens ? tokens - seen[w] : 1;
		offer_worker(&l, (f->booked[w].prefill_tokens + new_tokens) *
		    (f->booked[w].requests + 1), 0, w, lots);
	}
	return l.worker;
}

/*
 * Ramjet: the most of
 *
 *	min(32, overlap) - 4 * (running requests + prefill booked / 8192)
 *
 * with the overlap in blocks of 512 tokens beyond the common part.
 */
uint32_t
rival_ramjet(const struct rival_fleet *f, const uint64_t *seen,
    struct rng *lots)
{
	enum { UNIT = 512, OVERLAP_MAX = 32, SHIFT = 4 * 8192 };
	uint64_t all = UINT64_MAX, overlap, load;
	struct least l = nothing;
	uint32_t w;

	for (w = 0; w < f->workers; w++)
		if (is_eligible(f, w) && seen[w] < all)
			all = seen[w];
	for (w = 0; w < f->workers; w++) {
		if (!is_eligible(f, w))
			continue;
		overlap = (seen[w] - all) / UNIT;
		overlap = overlap < OVERLAP_MAX ? overlap : OVERLAP_MAX;
		/* times 8192: whole numbers */
		load = SHIFT * f->booked[w].requests +
		    4 * f->booked[w].prefill_tokens;
		offer_worker(&l, load + 8192 * (OVERLAP_MAX - overlap), 0, w,
		    lots);
	}
	return l.worker;
}

/* ---------------------------------------------------------- cache-aware --- */

/* max - min > 32 and max > hundredths / 100 * min, of running requests */
static bool
is_imbalanced(const struct rival_fleet *f, uint64_t hundredths)
{
	uint64_t least = UINT64_MAX, most = 0, n;
	uint32_t w;

	for (w = 0; w < f->workers; w++) {
		if (!is_eligible(f, w))
			continue;
		n = f->booked[w].requests;
		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	return least <= most && most - least > 32 &&
	    100 * most > hundredths * least;
}

/*
 * SGLang's router (sgl-router, policy cache_aware; cache_threshold 0.5,
 * balance_abs_threshold 32, balance_rel_threshold 1.5): least loaded while the
 * fleet is imbalanced; else the worker with the longest match if that is at
 * least half of the prompt, the least loaded of several; else the least
 * loaded. SGLang's early versions chose the smallest tree instead, which it
 * gave up as a fault.
 */
uint32_t
rival_cache_aware(const struct rival_fleet *f, const struct rival_match *m,
    struct rng *lots)
{
	if (!is_imbalanced(f, 150) && m->matched > 0 &&
	    2 * m->matched >= m->tokens)
		return least_of(f, m->holders, lots);
	return least_of(f, NULL, lots);
}

/*
 * The same by the overlap that an index expects, with the ratio of earlier
 * versions, 1.1: the least loaded worker with the longest overlap, if that is
 * more than half of the prompt and the fleet is balanced.
 */
uint32_t
rival_two_tier(const struct rival_fleet *f, const uint64_t *seen,
    uint64_t tokens, struct rng *lots)
{
	struct least l = nothing;
	uint64_t longest = 0;
	uint32_t w;

	for (w = 0; w < f->workers; w++)
		if (is_eligible(f, w) && seen[w] > longest)
			longest = seen[w];
	if (is_imbalanced(f, 110) || 2 * longest <= tokens)
		return least_of(f, NULL, lots);
	for (w = 0; w < f->workers; w++)
		if (is_eligible(f, w) && seen[w] == longest)
			offer_worker(&l, f->booked[w].requests,
			    f->booked[w].prefill_tokens, w, lots);
	return l.worker;
}

/* ----------------------------------------------------------------- keys --- */

static uint64_t
mix_key(uint64_t a, uint64_t b)
{
	struct rng r = { b };

	r.state = a ^ rng_next(&r);
	return rng_next(&r);
}

/* Equal ids are equal tokens, so ids and a length are enough. */
uint64_t
rival_key(uint64_t session, const uint64_t *ids, uint64_t tokens)
{
	uint64_t n = tokens < RIVAL_KEY_TOKENS ? tokens : RIVAL_KEY_TOKENS;
	uint64_t key = mix_key(0, n), at;

	if (session != 0)
		return mix_key(1, session);
	for (at = 0; at < n; at += ENGINE_BLOCK)
		key = mix_key(key, ids[at / ENGINE_BLOCK]);
	return key;
}

/*
 * Rendezvous hashing (Thaler and Ravishankar 1998): the worker with the
 * highest hash of key and worker. If one goes, only its keys move.
 */
uint32_t
rival_sticky(const struct rival_fleet *f, uint64_t key)
{
	uint32_t best = RIVAL_NONE, w;
	uint64_t highest = 0, hash;

	for (w = 0; w < f->workers; w++) {
		if (!is_eligible(f, w))
			continue;
		hash = mix_key(key, w);
		if (best == RIVAL_NONE || hash > highest) {
			highest = hash;
			best = w;
		}
	}
	return best;
}

/* ----------------------------------------------------------------- chbl --- */

struct point {
	uint64_t at;
	uint32_t worker;
};

struct rival_ring {
	size_t n;
	struct point points[]; /* ascending */
};

static int
points_ascend(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return (x->worker > y->worker) - (x->worker < y->worker);
}

struct rival_ring *
rival_ring_new(uint32_t workers)
{
	size_t n = (size_t)workers * RIVAL_RING_POINTS, i;
	struct rival_ring *ring = calloc(1, sizeof(*ring) +
	    n * sizeof(ring->points[0]));

	if (ring == NULL)
		return NULL;
	ring->n = n;
	for (i = 0; i < n; i++) {
		ring->points[i].worker = (uint32_t)(i / RIVAL_RING_POINTS);
		ring->points[i].at = mix_key(2, i);
	}
	qsort(ring->points, n, sizeof(ring->points[0]), points_ascend);
	return ring;
}

void
rival_ring_free(struct rival_ring *ring)
{
	free(ring);
}

/* ceil(1.25 * (all running + 1) / workers) */
uint64_t
rival_bound(const struct rival_fleet *f)
{
	uint64_t running = 0, n = 0;
	uint32_t w;

	for (w = 0; w < f->workers; w++) {
		if (!is_eligible(f, w))
			continue;
		running += f->booked[w].requests;
		n++;
	}
	return n == 0 ? 0 : (5 * (running + 1) + 4 * n - 1) / (4 * n);
}

/* The first point not below the key; n: none. */
static size_t
ring_search(const struct rival_ring *ring, uint64_t key)
{
	size_t low = 0, high = ring->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (ring->points[middle].at < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam
 * 2018), as in KubeAI's PrefixHash with its defaults: 256 points a worker, a
 * load factor of 1.25, the first worker clockwise that is below the bound.
 * There is always one: if none were, there would be more requests running than
 * there are.
 */
uint32_t
rival_chbl(const struct rival_fleet *f, const struct rival_ring *ring,
    uint64_t key)
{
	uint64_t bound = rival_bound(f);
	size_t first = ring_search(ring, key), i;
	uint32_t w;

	for (i = 0; i < ring->n; i++) {
		w = ring->points[(first + i) % ring->n].worker;
		if (is_eligible(f, w) && f->booked[w].requests < bound)
			return w;
	}
	return RIVAL_NONE;
}
