/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_rival.c - the rules of rivals.h in a simulation.
 *
 * Each router has a tree of its own for cache-aware, of the decisions that it
 * made or heard of. The ring of chbl is the same for all.
 */
#include "simulate_in.h"

#include "approx_tree.h"
#include "rivals.h"

#include <stdlib.h>

/*
 * Entries per worker: SGLang's max_tree_size of 2^26 characters, at four
 * characters a token.
 */
enum { TREE_LIMIT = (1 << 26) / (4 * ENGINE_BLOCK) };

struct rivals {
	struct rival_ring *ring;    /* chbl */
	struct approx_tree **trees; /* cache-aware: [replicas] */
	bool *holders;              /* cache-aware: [workers] */
	uint64_t *seen;             /* rules by an index: tokens, [workers] */
	bool *away;                 /* [workers] absent or draining */
};

bool
rivals_plain(const struct simulation *s)
{
	switch (s->options.policy) {
	case SIMULATE_STICKY:
	case SIMULATE_CHBL:
	case SIMULATE_CACHE_AWARE:
	case SIMULATE_LEAST_BACKLOG:
		return true;
	default:
		return false;
	}
}

bool
rivals_by_index(const struct simulation *s)
{
	return s->options.policy > SIMULATE_BALANCED;
}

static int
trees_make(struct simulation *s)
{
	struct rivals *r = s->rivals;
	uint32_t i;

	r->holders = calloc(s->options.workers, sizeof(*r->holders));
	r->trees = calloc(s->options.replicas, sizeof(struct approx_tree *));
	if (r->holders == NULL || r->trees == NULL)
		return KVR_ENOMEM;
	for (i = 0; i < s->options.replicas; i++) {
		r->trees[i] = approx_tree_new(s->options.workers, TREE_LIMIT);
		if (r->trees[i] == NULL)
			return KVR_ENOMEM;
	}
	return KVR_OK;
}

int
rivals_make(struct simulation *s)
{
	if (!rivals_plain(s) && !rivals_by_index(s))
		return KVR_OK;
	s->rivals = calloc(1, sizeof(*s->rivals));
	if (s->rivals == NULL)
		return KVR_ENOMEM;
	s->rivals->away = calloc(s->options.workers, sizeof(bool));
	if (s->rivals->away == NULL)
		return KVR_ENOMEM;
	if (s->options.policy == SIMULATE_CACHE_AWARE)
		return trees_make(s);
	if (rivals_by_index(s)) {
		s->rivals->seen = calloc(s->options.workers,
		    sizeof(*s->rivals->seen));
		return s->rivals->seen == NULL ? KVR_ENOMEM : KVR_OK;
	}
	if (s->options.policy != SIMULATE_CHBL)
		return KVR_OK;
	s->rivals->ring = rival_ring_new(s->options.workers);
	return s->rivals->ring == NULL ? KVR_ENOMEM : KVR_OK;
}

void
rivals_free(struct simulation *s)
{
	struct rivals *r = s->rivals;
	uint32_t i;

	if (r == NULL)
		return;
	for (i = 0; r->trees != NULL && i < s->options.replicas; i++)
		approx_tree_free(r->trees[i]);
	rival_ring_free(r->ring);
	free(r->trees);
	free(r->holders);
	free(r->seen);
	free(r->away);
	free(r);
}

void
rivals_leave(struct simulation *s, uint32_t worker)
{
	uint32_t i;

	if (s->rivals == NULL || s->rivals->trees == NULL)
		return;
	for (i = 0; i < s->options.replicas; i++)
		approx_tree_forget(s->rivals->trees[i], worker);
}

static struct rival_fleet
fleet_of(const struct simulation *s, const struct router *router)
{
	struct rival_fleet f = { router->booked, s->rivals->away,
	    s->options.workers };
	uint32_t w;

	for (w = 0; w < f.workers; w++)
		s->rivals->away[w] = !worker_up(s, w);
	return f;
}

static int
place_cache_aware(struct simulation *s, const struct rival_fleet *f,
    const struct engine_request *q, struct ride *r)
{
	struct rivals *rivals = s->rivals;
	size_t n = (size_t)((q->tokens + ENGINE_BLOCK - 1) / ENGINE_BLOCK);
	uint64_t matched = ENGINE_BLOCK * (uint64_t)approx_tree_match(
	    rivals->trees[r->router], q->ids, n, f->away, rivals->holders);
	struct rival_match m = { q->tokens, matched < q->tokens ? matched :
	    q->tokens, rivals->holders };

	r->worker = rival_cache_aware(f, &m, &s->lots);
	if (r->worker == RIVAL_NONE)
		return KVR_ENOWORKER;
	r->predicted = rivals->holders[r->worker] ? m.matched : 0;
	return KVR_OK;
}

int
rivals_hear(struct simulation *s, uint32_t router, uint32_t worker,
    const uint64_t *ids, size_t n)
{
	if (s->rivals == NULL || s->rivals->trees == NULL)
		return KVR_OK;
	return approx_tree_insert(s->rivals->trees[router], ids, n,
	    worker) == 0 ? KVR_OK : KVR_ENOMEM;
}

int
rivals_place(struct simulation *s, const struct engine_request *q,
    struct ride *r)
{
	struct rival_fleet f = fleet_of(s, &s->routers[r->router]);
	uint64_t key = rival_key(r->session, q->ids, q->tokens);

	if (s->options.policy == SIMULATE_CACHE_AWARE)
		return place_cache_aware(s, &f, q, r);
	if (s->options.policy == SIMULATE_STICKY)
		r->worker = rival_sticky(&f, key);
	else if (s->options.policy == SIMULATE_CHBL)
		r->worker = rival_chbl(&f, s->rivals->ring, key);
	else
		r->worker = rival_least_backlog(&f, &s->lots);
	return r->worker == RIVAL_NONE ? KVR_ENOWORKER : KVR_OK;
}

uint64_t *
rivals_seen(const struct simulation *s)
{
	return s->rivals->seen;
}

int
rivals_place_seen(struct simulation *s, uint64_t tokens, struct ride *r)
{
	struct rival_fleet f = fleet_of(s, &s->routers[r->router]);
	const uint64_t *seen = s->rivals->seen;

	if (s->options.policy == SIMULATE_LMETRIC)
		r->worker = rival_lmetric(&f, seen, tokens, &s->lots);
	else if (s->options.policy == SIMULATE_RAMJET)
		r->worker = rival_ramjet(&f, seen, &s->lots);
	else
		r->worker = rival_two_tier(&f, seen, tokens, &s->lots);
	return r->worker == RIVAL_NONE ? KVR_ENOWORKER : KVR_OK;
}
