/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_wait.c - see pool_wait.h. */
#include "pool_wait.h"

#include "call_look.h"
#include "pool_count.h"
#include "pool_roll.h"

static struct kvh_call *
call_of(const struct wait *wait)
{
	return (struct kvh_call *)((char *)(uintptr_t)wait -
	    offsetof(struct kvh_call, wait));
}

static bool
has_tried(const struct wait *wait, size_t i)
{
	return look_has_tried(call_of(wait), i);
}

void
line_begin(struct kvh *h)
{
	h->waits.places.fleet = &h->fleet;
	h->waits.places.yield_ms = PLACES_YIELD_MS;
	h->waits.has_tried = has_tried;
	places_follow(&h->waits.places);
}

void
line_end(struct kvh *h)
{
	places_leave(&h->waits.places);
}

bool
line_tick(struct kvh *h, int64_t now)
{
	bool waits;

	if (h->options.queue == 0)
		return true;
	pool_lock(h);
	waits = h->waits.n > 0;
	if (waits)
		waits_write(&h->waits, now);
	pool_unlock(h);
	return !waits;
}

/* --------------------------------------------------------------- a pick --- */

/* With the pool's lock. */
static void
woken_set(struct kvh_call *c, bool woken)
{
	c->h->woken += (size_t)woken - c->wait.woken;
	c->wait.woken = woken;
}

void
wait_picks(struct kvh_call *c)
{
	struct kvh *h = c->h;

	if (c->wait_began == 0)
		return;
	pool_lock(h);
	woken_set(c, true);
	/* Until it has a server none is to overtake it. */
	waits_add(&h->waits, &c->wait, c->now);
	pool_unlock(h);
}

bool
wait_lets(struct kvh_call *c)
{
	struct kvh *h = c->h;
	bool lets;

	if (h->options.queue == 0)
		return true;
	pool_lock(h);
	/* There may be room just for those that are to pick now. */
	lets = c->wait_began != 0 || h->woken == 0 ||
	    look_room(h, c->now) > h->woken;
	if (lets) {
		look_mark_best(c);
		lets = waits_lets(&h->waits, &c->wait, c->now);
	}
	pool_unlock(h);
	return lets;
}

static bool
is_late(const struct kvh_call *c, int64_t now)
{
	return c->wait_began != 0 &&
	    now - c->wait_began >= c->h->options.queue_timeout;
}

static void
refusal_count(struct kvh_call *c)
{
	if (c->uncounted)
		c->h->fleet.shared->reasons[c->reason]++;
	c->uncounted = false;
}

void
wait_picked(struct kvh_call *c, int error)
{
	c->uncounted = true;
	if (error != KVR_OK && is_late(c, c->now))
		c->reason = REASON_QUEUE_TIMEOUT;
	else if (c->h->options.queue > 0 &&
	    (error == KVH_EFULL || error == KVH_EKEPT))
		return; /* it may wait */
	wait_over(c);
}

void
wait_over(struct kvh_call *c)
{
	struct kvh *h = c->h;

	refusal_count(c);
	if (c->wait_began == 0)
		return;
	pool_time(h, HISTOGRAM_QUEUE, c->now - c->wait_began);
	pool_lock(h);
	c->wait_began = 0;
	waits_remove(&h->waits, &c->wait, c->now);
	woken_set(c, false);
	pool_unlock(h);
}

/* ---------------------------------------------------------------- waits --- */

/*
 * With the pool's lock. Once that is given back, another thread may have the
 * request, so all of it is written before.
 */
static bool
wait_begin(struct kvh_call *c)
{
	struct kvh *h = c->h;

	look_mark(c, false);
	c->wait.kept = c->reason == REASON_STATE_BUSY;
	c->wait.retried = c->n_tried > 0 || c->allows;
	if (!waits_hope(&h->fleet, &c->wait) || (c->wait_began == 0 &&
	    !waits_room(&h->waits, c->now)))
		return false;
	c->uncounted = false;
	if (c->wait_began == 0) {
		c->wait_began = c->now;
		pool_count(h, COUNT_QUEUED, 1);
	}
	woken_set(c, false);
	waits_add(&h->waits, &c->wait, c->now);
	return true;
}

int
kvh_wait(struct kvh_call *c, int64_t now)
{
	struct kvh *h;
	bool waits;

	if (c == NULL)
		return KVR_EINVAL;
	if (c->stage != CALL_READY)
		return KVH_EORDER;
	c->now = pool_now(now);
	if (!c->uncounted)
		return KVH_EFULL;
	h = c->h;
	pool_lock(h);
	waits = wait_begin(c);
	pool_unlock(h);
	if (waits)
		return KVR_OK;
	c->reason = REASON_QUEUE_FULL;
	wait_over(c);
	return KVH_EFULL;
}

/* The first of a line, if it has waited for long enough. */
static struct wait *
late_one(const struct wait_line *line, int64_t now)
{
	struct wait *wait = line->first;

	while (wait != NULL && wait->woken)
		wait = wait->after;
	return wait != NULL && is_late(call_of(wait), now) ? wait : NULL;
}

/* With the pool's lock: the request that is to pick, or NULL. */
static struct wait *
wait_next(struct kvh *h, int64_t now)
{
	struct turns turns = { .begun = false };
	struct wait *wait = late_one(&h->waits.plain, now);
	size_t room;

	if (wait == NULL)
		wait = late_one(&h->waits.others, now);
	if (wait != NULL)
		return wait;
	room = look_room(h, now);
	return room > h->woken ? waits_turn(&h->waits, &turns) : NULL;
}

int
kvh_turn(struct kvh *h, int64_t now, struct kvh_call **call)
{
	struct wait *wait;

	if (h == NULL || call == NULL)
		return KVR_EINVAL;
	now = pool_now(now);
	if (line_tick(h, now))
		return KVH_EEND;
	servers_count(h);
	pool_lock(h);
	wait = wait_next(h, now);
	if (wait != NULL) {
		*call = call_of(wait);
		waits_remove(&h->waits, wait, now);
		woken_set(*call, true);
	}
	pool_unlock(h);
	return wait != NULL ? KVR_OK : KVH_EEND;
}
