/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rivals.h - the simple methods that an operator would otherwise use, each as
 * one function.
 *
 * A rule has the knowledge of a router of its kind: the router's own bookings,
 * and the arguments. Workers in `away` are not eligible; a rule returns
 * RIVAL_NONE if all are.
 *
 *   sticky         the key of the request
 *   chbl           the key; running requests
 *   cache-aware    a tree of its own decisions; running requests
 *   lmetric, ramjet, two-tier
 *                  overlap by the index; prefill booked, running requests
 *   least-backlog  prefill booked
 */
#ifndef KVROUTE_RIVALS_H
#define KVROUTE_RIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct approx_tree;
struct booked;
struct rng;

#define RIVAL_NONE UINT32_MAX

enum {
	RIVAL_KEY_TOKENS = 1024, /* of the prompt, if no session is named */
	RIVAL_RING_POINTS = 256  /* of a worker */
};

struct rival_fleet {
	const struct booked *booked; /* [workers] */
	const bool *away;            /* [workers]; NULL: none */
	uint32_t workers;
};

/*
 * The key of a request: its session, or if that is 0 its first tokens, given
 * as one id for each 512.
 */
uint64_t rival_key(uint64_t session, const uint64_t *ids, uint64_t tokens);

uint32_t rival_sticky(const struct rival_fleet *f, uint64_t key);

struct rival_ring;
/* NULL: out of memory. */
struct rival_ring *rival_ring_new(uint32_t workers);
void rival_ring_free(struct rival_ring *ring);
/* Running requests below which a worker may get the next one. */
uint64_t rival_bound(const struct rival_fleet *f);
uint32_t rival_chbl(const struct rival_fleet *f,
    const struct rival_ring *ring, uint64_t key);

/*
 * holders[workers] have the longest match, `matched` of the prompt's tokens;
 * they are eligible.
 */
struct rival_match {
	uint64_t tokens; /* of the prompt */
	uint64_t matched;
	const bool *holders;
};
uint32_t rival_cache_aware(const struct rival_fleet *f,
    const struct rival_match *m, struct rng *lots);

/* seen[workers]: tokens of a prompt of `tokens` that are taken for cached. */
uint32_t rival_lmetric(const struct rival_fleet *f, const uint64_t *seen,
    uint64_t tokens, struct rng *lots);
uint32_t rival_ramjet(const struct rival_fleet *f, const uint64_t *seen,
    struct rng *lots);
uint32_t rival_two_tier(const struct rival_fleet *f, const uint64_t *seen,
    uint64_t tokens, struct rng *lots);

uint32_t rival_least_backlog(const struct rival_fleet *f, struct rng *lots);
/* Fewest running requests, then least to prefill, then by lot. */
uint32_t rival_least_loaded(const struct rival_fleet *f, struct rng *lots);

#endif
