/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_roll.c - see pool_roll.h. */
#include "pool_roll.h"

#include <stdlib.h>
#include <string.h>

#include "roles.h"

#define IDS_NS INT64_C(100000000)

/* Servers in use and their ids, to be used without the pool's lock. */
struct roll_one {
	struct pool_server *server;
	uint32_t ranks, puts;
	bool open;           /* one of its ranks is */
	bool missed;         /* its state is not known: it stays */
	uint64_t requests;
	uint64_t *ids;       /* [ranks] */
};

struct roll {
	struct roll_one *one;
	uint64_t *ids;
	size_t n;
};

/* With the pool's lock. False: no memory. */
static bool
roll_begin(struct kvh *h, struct roll *roll)
{
	uint64_t *ids;
	size_t i;

	roll->n = 0;
	roll->one = malloc((h->fleet.n_first + 1) * sizeof(*roll->one));
	roll->ids = ids = malloc((h->fleet.n_workers + 1) * sizeof(*ids));
	for (i = 0; i < h->fleet.n_first && roll->one != NULL &&
	    ids != NULL; i++) {
		struct pool_server *s = h->server[i];

		if (s->down)
			continue;
		s->refs++;
		memcpy(ids, s->ids, s->ranks * sizeof(*ids));
		roll->one[roll->n++] = (struct roll_one){ .server = s,
		    .ranks = s->ranks, .puts = s->puts, .ids = ids };
		ids += s->ranks;
	}
	return roll->one != NULL && ids != NULL;
}

/* With the pool's lock. */
static void
roll_end(struct roll *roll)
{
	size_t i;

	for (i = 0; i < roll->n; i++)
		roll->one[i].server->refs--;
	free(roll->one);
	free(roll->ids);
}

/* ----------------------------------------------------------------- look --- */

/* 0: another process has removed it. If the region is locked the id stays. */
static void
rank_look(struct kvh *h, struct roll_one *one, uint32_t rank)
{
	const struct pool_server *s = one->server;
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint64_t id = 0;
	int error = kvr_worker_find(h->k, s->name, s->length, rank, &id);

	if (error == KVR_OK)
		error = kvr_worker_get(h->k, id, &facts);
	if (error == KVR_EBUSY) {
		one->missed = true;
		return;
	}
	one->ids[rank] = error == KVR_OK ? id : 0;
	one->open |= error == KVR_OK && facts.state == KVR_STATE_UP;
}

/* With the pool's lock. */
static void
one_install(struct kvh *h, struct roll_one *one)
{
	struct pool_server *s = one->server;
	struct kvr_worker facts = roles_worker(&s->told);
	uint32_t i;

	if (one->puts != s->puts)
		return;
	for (i = 0; i < s->ranks; i++) {
		s->ids[i] = one->ids[i];
		if (s->ids[i] != 0)
			continue;
		facts.rank = i;
		(void)kvr_worker_put(h->k, s->name, s->length, &facts,
		    &s->ids[i]);
		one->open |= facts.state == KVR_STATE_UP;
	}
	if (!one->missed)
		s->closed = !one->open;
}

/* False: nothing is due, or another thread is at it. */
static bool
look_begins(struct kvh *h, int64_t now, struct roll *roll)
{
	const uint64_t epoch = h->fleet.shared->epoch;

	if (h->looks || (h->ids_at != 0 && h->fleet.epoch == epoch &&
	    now - h->ids_at < IDS_NS && now >= h->ids_at))
		return false;
	h->looks = true;
	h->ids_at = now;
	h->fleet.epoch = epoch;
	if (!roll_begin(h, roll))
		h->ids_at = 0;
	return true;
}

void
servers_look(struct kvh *h, int64_t now)
{
	struct roll roll;
	bool begins;
	uint32_t rank;
	size_t i;

	pool_lock(h);
	begins = look_begins(h, now, &roll);
	pool_unlock(h);
	if (!begins)
		return;
	for (i = 0; i < roll.n; i++)
		for (rank = 0; rank < roll.one[i].ranks; rank++)
			rank_look(h, &roll.one[i], rank);
	pool_lock(h);
	for (i = 0; i < roll.n; i++)
		one_install(h, &roll.one[i]);
	roll_end(&roll);
	h->looks = false;
	pool_unlock(h);
}

void
servers_due(struct kvh *h)
{
	h->ids_at = 0;
}

/* ---------------------------------------------------------------- count --- */

/* Requests that are booked at a server by all processes. */
static uint64_t
requests_of(struct kvh *h, const struct roll_one *one)
{
	struct kvr_worker_stats stats;
	uint64_t requests = 0;
	uint32_t rank;

	for (rank = 0; rank < one->ranks; rank++) {
		stats.size = sizeof(stats);
		if (kvr_worker_stats_get(h->k, one->ids[rank], &stats) ==
		    KVR_OK)
			requests += stats.requests;
	}
	return requests;
}

void
servers_count(struct kvh *h)
{
	struct roll roll;
	size_t i;

	pool_lock(h);
	(void)roll_begin(h, &roll);
	pool_unlock(h);
	for (i = 0; i < roll.n; i++)
		roll.one[i].requests = requests_of(h, &roll.one[i]);
	pool_lock(h);
	for (i = 0; i < roll.n; i++)
		roll.one[i].server->requests = roll.one[i].requests;
	roll_end(&roll);
	pool_unlock(h);
}
