/* SPDX-License-Identifier: BSD-2-Clause */
/* places.c - see places.h. */
#include "places.h"

#include <stdatomic.h>

#define MS INT64_C(1000000)

enum { STALE = 30 };            /* times yield_ms */

uint32_t
places_stamp(int64_t now)
{
	uint32_t ms = (uint32_t)(now / MS);

	return ms == 0 ? 1 : ms;
}

/* By less than half of the clock's range. */
bool
places_before(uint32_t a, uint32_t b)
{
	return a != b && b - a < UINT32_MAX / 2;
}

/* Another process may read its clock a little later than this one. */
static bool
is_within(uint64_t beat, int64_t now, uint32_t ms)
{
	const int64_t age = shared_age(beat, now), most = ms * MS;

	return age < most && age > -most;
}

static bool
is_counted(const struct places *p, const struct queue_place *place,
    int64_t now)
{
	return place->pid != 0 && is_within(place->beat, now, STALE *
	    p->yield_ms);
}

size_t
places_length(const struct places *p, int64_t now)
{
	const struct queue_place *place = p->fleet->shared->queues;
	size_t n = 0, i;

	for (i = 0; i < SHARED_QUEUES; i++)
		if (is_counted(p, &place[i], now))
			n += place[i].waiting;
	return n;
}

/* No time may be taken for that of another server. */
static void
wanted_write(struct queue_place *place, const struct wanted *wanted)
{
	size_t i;

	for (i = 0; i < SHARED_WANTED; i++) {
		if (i < wanted->n && place->server[i] == wanted->server[i] &&
		    place->since[i] == wanted->since[i])
			continue;
		place->server[i] = 0;
		if (i >= wanted->n)
			continue;
		place->since[i] = wanted->since[i];
		place->server[i] = wanted->server[i];
	}
}

static void
place_clear(struct queue_place *place)
{
	const struct wanted none = { .n = 0 };

	place->waiting = 0;
	place->oldest = 0;
	wanted_write(place, &none);
}

static bool
place_claim(struct places *p, struct queue_place *place, int64_t now)
{
	uint64_t pid = place->pid;

	if (is_counted(p, place, now) && pid != p->fleet->self)
		return false;
	/* A beat first: it must not be taken for that of the process before. */
	place->beat = (uint64_t)now;
	if (!atomic_compare_exchange_strong(&place->pid, &pid, p->fleet->self))
		return false;
	place_clear(place);
	place->life = p->life;
	p->place = place;
	return true;
}

bool
places_have(struct places *p, int64_t now)
{
	size_t i;

	/* It was taken for dead. */
	if (p->place != NULL && p->place->pid != p->fleet->self)
		p->place = NULL;
	for (i = 0; i < SHARED_QUEUES && p->place == NULL; i++)
		if (place_claim(p, &p->fleet->shared->queues[i], now))
			break;
	if (p->place != NULL)
		p->place->beat = (uint64_t)now;
	return p->place != NULL;
}

void
places_leave(struct places *p)
{
	uint64_t self = p->fleet->self;

	if (p->place == NULL)
		return;
	place_clear(p->place);
	(void)atomic_compare_exchange_strong(&p->place->pid, &self, 0);
	p->place = NULL;
}

void
wanted_add(struct wanted *wanted, size_t i, uint32_t since)
{
	uint16_t server = (uint16_t)(i + 1);
	size_t n;

	for (n = 0; n < wanted->n && wanted->server[n] != server; n++)
		continue;
	if (n < wanted->n || n == SHARED_WANTED || i >= UINT16_MAX)
		return;
	wanted->server[n] = server;
	wanted->since[n] = since;
	wanted->n = n + 1;
}

void
places_write(struct places *p, uint64_t waiting, uint32_t oldest,
    const struct wanted *wanted, int64_t now)
{
	if (!places_have(p, now))
		return;
	p->place->waiting = waiting;
	p->place->oldest = oldest;
	wanted_write(p->place, wanted);
}

void
places_follow(struct places *p)
{
	const struct fleet *f = p->fleet;
	uint64_t key = f->n_known;
	size_t i;

	for (i = 0; i < f->n_known; i++) {
		key ^= f->known[i].key;
		key = shared_key(&key, sizeof(key));
	}
	p->life = (uint32_t)(key >> 16);
	if (p->place != NULL)
		p->place->life = p->life;
}

/* ---------------------------------------------------------------- turns --- */

static bool
is_heard(const struct places *p, const struct queue_place *place, int64_t now)
{
	return place->pid != 0 && place->life == p->life &&
	    is_within(place->beat, now, p->yield_ms);
}

bool
places_older(const struct places *p, uint32_t since, int64_t now)
{
	const struct queue_place *place = p->fleet->shared->queues;
	uint32_t oldest;
	size_t i;

	for (i = 0; i < SHARED_QUEUES; i++) {
		oldest = place[i].oldest;
		if (oldest != 0 && places_before(oldest, since) &&
		    &place[i] != p->place && is_heard(p, &place[i], now))
			return true;
	}
	return false;
}

/* It is server i; if the list has just changed, perhaps another. */
static void
server_leave(struct fleet *f, size_t i)
{
	if (i < f->n_known && f->known[i].usable) {
		f->known[i].usable = false;
		f->known[i].full = true;
	}
}

void
places_yield(struct places *p, uint32_t since, int64_t now)
{
	const struct queue_place *place = p->fleet->shared->queues, *end;
	uint16_t server;
	size_t i;

	for (end = place + SHARED_QUEUES; place < end; place++) {
		if (!is_heard(p, place, now))
			continue;
		for (i = 0; i < SHARED_WANTED; i++) {
			server = place->server[i];
			if (server != 0 && places_before(place->since[i],
			    since))
				server_leave(p->fleet, server - 1u);
		}
	}
}
