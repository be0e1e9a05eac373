/* SPDX-License-Identifier: BSD-2-Clause */
/* stale.c - see stale.h. */
#include "stale.h"

#include <stdatomic.h>

#include "shared.h"

/* A source of kvr_worker_set_load, beside those of loads.c and kvroute-sync. */
enum { SOURCE = 1, SOURCES = 3 };
#define YOUNG_NS INT64_C(5000000000) /* the reset may be late */
#define LEFT_NS INT64_C(3600000000000)

static bool
is_known(const struct fleet *f, uint64_t key)
{
	size_t i = 0;

	while (i < f->n_known && f->known[i].key != key)
		i++;
	return i < f->n_known;
}

/*
 * A free one, or one of a server that has left long ago: the load of one that
 * is here would stay. NULL: all are taken, and nothing is counted.
 */
static struct stale_place *
place_take(const struct fleet *f, uint64_t key, int64_t now)
{
	struct stale_place *place = f->shared->stale,
	    *end = place + SHARED_STALE;
	uint64_t old;

	for (; place < end; place++) {
		old = place->key;
		if (old != 0 && (shared_age(place->since, now) < LEFT_NS ||
		    is_known(f, old)))
			continue;
		if (atomic_compare_exchange_strong(&place->key, &old, key))
			return place;
	}
	return NULL;
}

static struct stale_place *
place_of(const struct fleet *f, uint64_t key)
{
	struct stale_place *place = f->shared->stale,
	    *end = place + SHARED_STALE;

	while (place < end && place->key != key)
		place++;
	return place < end ? place : NULL;
}

/* With 0 blocks, which are not known, a place that it has is left as it is. */
static void
place_set(const struct fleet *f, uint64_t key, uint64_t blocks, int64_t now)
{
	struct stale_place *place = place_of(f, key);

	if (place != NULL && blocks == 0)
		return;
	if (place == NULL)
		place = place_take(f, key, now);
	if (place == NULL)
		return;
	place->blocks = blocks;
	place->since = (uint64_t)now;
}

static uint64_t
less_at_most(uint64_t from, uint64_t n)
{
	return from > n ? from - n : 0;
}

/* Requests of leases, and the blocks that they are, on one worker. */
static bool
leases_of(struct fleet *f, uint64_t id, struct kvr_worker_stats *s)
{
	struct kvr_load load;
	uint32_t source;

	s->size = sizeof(*s);
	if (kvr_worker_stats_get(f->kvr, id, s) != KVR_OK)
		return false;
	for (source = 0; source <= SOURCES; source++) {
		load.size = sizeof(load);
		if (kvr_worker_get_load(f->kvr, id, source, &load) != KVR_OK)
			return false;
		s->requests = less_at_most(s->requests, load.requests);
		s->active_blocks = less_at_most(s->active_blocks,
		    load.active_blocks);
	}
	return true;
}

void
stale_begin(struct fleet *f, size_t i, int64_t now)
{
	struct known *known = &f->known[i];
	uint64_t requests = 0, blocks = 0;
	struct kvr_worker_stats s;
	uint32_t rank;

	for (rank = 0; rank < known->ranks; rank++) {
		if (known->ids[rank] == 0 ||
		    !leases_of(f, known->ids[rank], &s))
			continue;
		requests += s.requests;
		blocks += s.active_blocks + s.output_blocks;
	}
	if (requests > 0)
		place_set(f, known->key, blocks / requests, now);
}

void
stale_note(struct fleet *f, size_t i, int64_t now)
{
	place_set(f, f->known[i].key, 0, now);
}

size_t
stale_next(const struct fleet *f, size_t *place, size_t i)
{
	uint64_t key;

	for (; *place < SHARED_STALE && f->kvr != NULL; ++*place, i = 0) {
		key = f->shared->stale[*place].key;
		for (; key != 0 && i < f->n_known; i++)
			if (f->known[i].key == key)
				return i;
	}
	return f->n_known;
}

/* False: the lock is held, or an id is not known; later. */
static bool
load_set(struct fleet *f, struct known *known, uint64_t requests,
    uint64_t blocks)
{
	struct kvr_load load = { .size = sizeof(load) };
	uint32_t rank;
	uint64_t id;

	for (rank = 0; rank < known->ranks; rank++) {
		if (kvr_worker_find(f->kvr, known->name, known->name_len, rank,
		    &id) != KVR_OK)
			return false;
		load.requests = requests / known->ranks +
		    (rank < requests % known->ranks);
		load.active_blocks = load.requests * blocks;
		if (kvr_worker_set_load(f->kvr, id, SOURCE, &load) != KVR_OK)
			return false;
	}
	return true;
}

/* Requests of leases on all ranks; false: not known. */
static bool
leases_count(struct fleet *f, const struct known *known, uint64_t *requests)
{
	struct kvr_worker_stats s;
	uint32_t rank;
	uint64_t id;

	*requests = 0;
	for (rank = 0; rank < known->ranks; rank++) {
		if (kvr_worker_find(f->kvr, known->name, known->name_len, rank,
		    &id) != KVR_OK || !leases_of(f, id, &s))
			return false;
		*requests += s.requests;
	}
	return true;
}

void
stale_book(struct fleet *f, size_t i, uint64_t conns, int64_t now)
{
	struct known *known = &f->known[i];
	struct stale_place *place = place_of(f, known->key);
	uint64_t requests;

	if (place == NULL || !leases_count(f, known, &requests))
		return;
	conns = less_at_most(conns, requests);
	if (!load_set(f, known, conns, place->blocks) || conns > 0 ||
	    place->since == 0 ||
	    shared_age(place->since, now) <= YOUNG_NS)
		return;
	place->since = 0;
	place->key = 0;
}
