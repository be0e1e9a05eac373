/* SPDX-License-Identifier: BSD-2-Clause */
/* hub.c - see hub.h. */
#include "hub.h"

#include "say.h"

#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

static void
target_end(struct hub_target *t)
{
	target_free(&t->target);
	free(t);
}

void
hub_free(struct hub *h)
{
	while (h->n > 0)
		hub_remove(h, h->n - 1);
	free(h->targets);
	free(h->events);
	h->targets = NULL;
	h->events = NULL;
	h->room = h->events_room = 0;
}

bool
hub_add(struct hub *h, const char *region, struct kvr *k,
    const struct conf_stream *conf)
{
	const size_t room = h->room == 0 ? 8 : h->room * 2;
	struct hub_target *t = calloc(1, sizeof(*t)), **more;

	if (t != NULL && h->n == h->room) {
		more = realloc(h->targets, room * sizeof(struct hub_target *));
		if (more == NULL) {
			free(t);
			return false;
		}
		h->targets = more;
		h->room = room;
	}
	if (t == NULL)
		return false;
	t->region = region;
	t->conf = *conf;
	t->since = h->batches;
	t->looked = t->heard = -1;
	target_init(&t->target, k, &t->conf);
	h->targets[h->n++] = t;
	return true;
}

void
hub_remove(struct hub *h, size_t i)
{
	target_end(h->targets[i]);
	h->targets[i] = h->targets[--h->n];
}

void
hub_change(struct hub *h, size_t i, const struct conf_stream *conf)
{
	conf_change(&h->targets[i]->conf, conf);
	target_scope(&h->targets[i]->target);
}

/* ------------------------------------------------------------ a worker --- */

static void
absent(struct hub_target *t)
{
	if (t->target.id != 0)
		t->counts.absences++;
	t->target.id = 0;
	t->missed = true;
}

/* A batch is lost: the number that it had is passed over. */
static void
lost(struct hub_target *t)
{
	if (t->target.id == 0) {
		t->missed = true;
		return;
	}
	target_lost(&t->target, t->target.next + 1, "lost");
	if (t->target.error == KVR_EWORKER)
		absent(t);
}

/* From number 0 on a stream is complete. */
static uint64_t
number_of(const struct target *t)
{
	return t->life == TARGET_SAME ? t->next : t->life == TARGET_NEW ? 0 : 1;
}

static void
apply(struct hub_target *t, const struct event_batch *b, size_t from,
    size_t to)
{
	struct target_batch batch = { .events = b, .from = from, .to = to };
	enum target_outcome outcome;

	if (t->target.id == 0) {
		t->missed = true;
		return;
	}
	batch.seq = number_of(&t->target);
	outcome = target_apply(&t->target, &batch);
	if (outcome == TARGET_BEHIND) {
		/* Others have changed how far it is. */
		t->counts.rejoins++;
		batch.seq = number_of(&t->target);
		outcome = target_apply(&t->target, &batch);
	}
	if (outcome == TARGET_ABSENT)
		absent(t);
	else if (outcome != TARGET_APPLIED)
		lost(t);
}

static bool
is_bound(const struct hub_target *t, const struct hub_publisher *p)
{
	return t->bound && t->publisher == p->id;
}

/*
 * Takes the worker's first event from this publisher, which may itself report a
 * loss.
 */
static void
bind(struct hub_target *t, const struct hub_publisher *p,
    const struct event *first)
{
	if (is_bound(t, p))
		return;
	t->bound = true;
	t->publisher = p->id;
	if (first->kind == EVENT_LOST)
		return;
	if (p->lost || p->at < t->since)
		lost(t);
	else if (t->target.next > 0)
		t->target.life = TARGET_NEW;
}

/* Gives the events between those about the stream itself. */
static void
give(struct hub_target *t, const struct event_batch *b)
{
	size_t i, from = 0;

	for (i = 0; i < b->n; i++) {
		if (b->events[i].kind == EVENT_RESTARTED) {
			say(t->region, &t->conf, "the engine has restarted");
			t->target.life = TARGET_NEW;
			from = i + 1;
		} else if (b->events[i].kind == EVENT_LOST) {
			if (from < i)
				apply(t, b, from, i);
			lost(t);
			from = i + 1;
		}
	}
	if (from < b->n || t->target.life != TARGET_SAME)
		apply(t, b, from, b->n);
}

static void
note(struct hub_target *t, const struct event_batch *b)
{
	t->heard = kvr_clock_now();
	t->lag_known = tell_lag(b->time, &t->lag);
}

/* ---------------------------------------------------------------- all --- */

static bool
is_of(const struct hub *h, const struct hub_target *t, const struct event *e)
{
	return e->rank == t->conf.rank && (!h->ids ||
	    ((e->flags & EVENT_HAS_WORKER) && e->worker == t->conf.id));
}

static void
begin(struct hub *h, struct hub_publisher *p)
{
	if (!p->begun)
		p->at = h->batches;
	p->begun = true;
	h->batches++;
}

void
hub_batch(struct hub *h, struct hub_publisher *publisher,
    const struct event_batch *batch)
{
	struct event_batch own = *batch;
	struct event *more;
	size_t i, j;

	if (batch->n == 0)
		return;
	begin(h, publisher);
	if (batch->n > h->events_room) {
		more = realloc(h->events, batch->n * sizeof(*more));
		if (more == NULL) {
			hub_lost(h, publisher);
			return;
		}
		h->events = more;
		h->events_room = batch->n;
	}
	for (i = 0; i < h->n; i++) {
		for (j = 0, own.n = 0; j < batch->n; j++)
			if (is_of(h, h->targets[i], &batch->events[j]))
				h->events[own.n++] = batch->events[j];
		if (own.n == 0)
			continue;
		own.events = h->events;
		note(h->targets[i], batch);
		bind(h->targets[i], publisher, &own.events[0]);
		give(h->targets[i], &own);
	}
}

void
hub_lost(struct hub *h, struct hub_publisher *publisher)
{
	size_t i;

	publisher->lost = true;
	for (i = 0; i < h->n; i++)
		if (is_bound(h->targets[i], publisher))
			lost(h->targets[i]);
}

void
hub_restarted(struct hub *h, struct hub_publisher *publisher)
{
	struct hub_target *t;
	size_t i;

	publisher->lost = false;
	for (i = 0; i < h->n; i++) {
		t = h->targets[i];
		if (!is_bound(t, publisher))
			continue;
		say(t->region, &t->conf, "the engine has restarted");
		t->target.life = TARGET_NEW;
	}
}

static void
find(struct hub_target *t, int64_t now)
{
	if (t->looked >= 0 && now - t->looked < SECOND)
		return;
	t->looked = now;
	if (!target_find(&t->target)) {
		if (!t->logged.absent)
			say(t->region, &t->conf,
			    "the region has no such worker yet");
		t->logged.absent = true;
		return;
	}
	t->logged.absent = false;
	if (t->missed)
		lost(t);
	t->missed = false;
}

void
hub_look(struct hub *h, bool follows, int64_t now)
{
	struct hub_target *t;
	size_t i;

	for (i = 0; i < h->n; i++) {
		t = h->targets[i];
		if (t->target.id == 0)
			find(t, now);
		target_alive(&t->target, follows, now);
		say_pages(t->region, &t->conf, &t->target);
		tell_use(&t->use, &t->target, NULL);
		say_state(t->region, &t->conf, &t->logged.state,
		    tell_state(&t->target, &t->use));
	}
}
