/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_sums.c - messages between routers at intervals: their own loads
 * by worker, and which of their leases are open.
 *
 * Sums are absolute, so a lost one is made good by the next. A router adds up
 * the sums of the others and gives the library the result as one source of
 * load; its own load is the library's count, less that.
 *
 * The roll ends leases after a lost end: those that its sender opened before
 * it and does not name.
 */
#include "simulate_in.h"

#include <stdlib.h>
#include <string.h>

enum { SUMS_WORDS = sizeof(struct sums) / sizeof(uint64_t) };

/* ----------------------------------------------------------------- sums --- */

int
sums_make(struct simulation *s)
{
	size_t workers = s->options.workers;
	uint32_t i;

	for (i = 0; i < s->options.replicas; i++) {
		struct router *router = &s->routers[i];

		router->told = calloc(s->options.replicas * workers,
		    sizeof(*router->told));
		router->others = calloc(workers, sizeof(*router->others));
		if (router->told == NULL || router->others == NULL)
			return KVR_ENOMEM;
	}
	return KVR_OK;
}

void
sums_free(struct simulation *s)
{
	uint32_t i;

	for (i = 0; s->routers != NULL && i < s->options.replicas; i++) {
		free(s->routers[i].told);
		free(s->routers[i].others);
	}
}

/* A router's own load of a worker. */
static int
own_sums(const struct simulation *s, const struct router *router,
    uint32_t worker, struct sums *out)
{
	const struct sums *others = &router->others[worker];
	const struct booked *b = &router->booked[worker];
	struct kvr_worker_stats w = { .size = sizeof(w) };
	int e = KVR_OK;

	*out = (struct sums){ b->requests, b->prefill_tokens, 0 };
	if (s->absent[worker])
		return KVR_OK;
	if (router->k != NULL) {
		e = kvr_worker_stats_get(router->k, fleet_id(router->fleet,
		    worker), &w);
		*out = (struct sums){ w.requests, w.prefill_tokens,
		    w.active_blocks + w.output_blocks };
	}
	out->requests -= others->requests;
	out->prefill_tokens -= others->prefill_tokens;
	out->blocks -= router->k == NULL ? 0 : others->blocks;
	return e;
}

int
sums_list(const struct simulation *s, uint32_t origin, uint64_t **list,
    size_t *n)
{
	struct sums own;
	uint32_t w;
	int e = KVR_OK;

	*n = s->options.workers * (size_t)SUMS_WORDS;
	*list = calloc(*n, sizeof(**list));
	if (*list == NULL)
		return KVR_ENOMEM;
	for (w = 0; e == KVR_OK && w < s->options.workers; w++) {
		e = own_sums(s, &s->routers[origin], w, &own);
		memcpy(&(*list)[w * SUMS_WORDS], &own, sizeof(own));
	}
	return e;
}

/* Replaces one router's load of a worker; false: it is the same. */
static bool
replace_sums(struct simulation *s, struct router *router, uint32_t origin,
    uint32_t worker, const struct sums *now)
{
	struct sums *was = &router->told[(size_t)origin * s->options.workers +
	    worker];
	struct sums *all = &router->others[worker];
	struct booked *b = &router->booked[worker];

	if (memcmp(was, now, sizeof(*was)) == 0)
		return false;
	all->requests += now->requests - was->requests;
	all->prefill_tokens += now->prefill_tokens - was->prefill_tokens;
	all->blocks += now->blocks - was->blocks;
	b->requests += now->requests - was->requests;
	b->prefill_tokens += now->prefill_tokens - was->prefill_tokens;
	*was = *now;
	return true;
}

int
sums_hear(struct simulation *s, uint32_t number, const struct notice *n)
{
	struct router *router = &s->routers[number];
	bool late = router_late(s, number, n->sent);
	struct sums now = { 0, 0, 0 }, *all;
	uint32_t w;
	int e = KVR_OK;

	s->exchanged.late += late;
	for (w = 0; e == KVR_OK && w < s->options.workers; w++) {
		if (s->absent[w])
			continue;
		if (!late)
			memcpy(&now, &n->list[w * SUMS_WORDS], sizeof(now));
		all = &router->others[w];
		if (replace_sums(s, router, n->origin, w, &now) &&
		    router->k != NULL)
			e = kvr_worker_set_load(router->k,
			    fleet_id(router->fleet, w), 0, &(struct kvr_load){
			    .size = sizeof(struct kvr_load),
			    .prefill_tokens = all->prefill_tokens,
			    .active_blocks = all->blocks,
			    .requests = all->requests });
	}
	return e;
}

void
sums_leave(struct simulation *s, uint32_t worker)
{
	static const struct sums none;
	uint32_t i, origin;

	for (i = 0; exchange_has_sums(s) && i < s->options.replicas; i++)
		for (origin = 0; origin < s->options.replicas; origin++)
			(void)replace_sums(s, &s->routers[i], origin, worker,
			    &none);
}

/* ----------------------------------------------------------------- roll --- */

/* No router holds the ride, and no message can open it any more. */
static bool
is_over(const struct simulation *s, size_t ride)
{
	const struct ride *r = &s->rides[ride];
	uint32_t i;

	if ((!r->finished && !r->lost) ||
	    r->end + s->options.exchange_delay_ns >= s->now)
		return false;
	for (i = 0; i < s->options.replicas; i++)
		if (held_by(s, i, ride)->open)
			return false;
	return true;
}

int
roll_list(struct simulation *s, uint32_t origin, uint64_t **list, size_t *n)
{
	size_t i;

	while (s->oldest < s->n_rides && is_over(s, s->oldest))
		s->oldest++;
	*list = calloc(s->n_rides - s->oldest + 1, sizeof(**list));
	if (*list == NULL)
		return KVR_ENOMEM;
	for (i = s->oldest, *n = 0; i < s->n_rides; i++)
		if (held_by(s, origin, i)->open &&
		    s->rides[i].router == origin)
			(*list)[(*n)++] = i;
	return KVR_OK;
}

int
roll_hear(struct simulation *s, uint32_t number, const struct notice *n)
{
	size_t i, k = 0;
	int e = KVR_OK;

	for (i = s->oldest; e == KVR_OK && i < s->n_rides; i++) {
		const struct held *h = held_by(s, number, i);

		while (k < n->n_list && n->list[k] < i)
			k++;
		if (!h->open || h->origin != n->origin || h->since > n->sent ||
		    (k < n->n_list && n->list[k] == i))
			continue;
		s->exchanged.repaired++;
		e = router_let_go(s, number, i);
	}
	return e;
}
