/* SPDX-License-Identifier: BSD-2-Clause */
/* waits.c - see waits.h. */
#include "waits.h"

enum {
	TRIES_MOST = 64,        /* in one look */
	LOOK_MOST = 1024        /* others */
};

void
waits_prepare(struct waits *w)
{
	w->places.life = (uint32_t)++w->places.fleet->shared->lives;
}

/* ---------------------------------------------------------------- lines --- */

static void
line_leave(struct wait *wait)
{
	struct wait_line *line = wait->line;

	if (wait->before != NULL)
		wait->before->after = wait->after;
	else
		line->first = wait->after;
	if (wait->after != NULL)
		wait->after->before = wait->before;
	else
		line->last = wait->before;
	wait->line = NULL;
}

/* By when they came. */
static void
line_join(struct wait_line *line, struct wait *wait)
{
	struct wait *before = line->last;

	while (before != NULL && places_before(wait->since, before->since))
		before = before->before;
	wait->before = before;
	wait->after = before != NULL ? before->after : line->first;
	if (wait->after != NULL)
		wait->after->before = wait;
	else
		line->last = wait;
	if (before != NULL)
		before->after = wait;
	else
		line->first = wait;
	wait->line = line;
}

/* It needs one, or, having failed at some, any other. */
static void
wants_add(const struct waits *w, const struct wait *wait,
    struct wanted *wanted)
{
	const struct fleet *f = w->places.fleet;
	size_t i;

	for (i = 0; i < f->n_known; i++) {
		if (wait->wants != 0 ? f->known[i].key == wait->wants :
		    wait->retried && !f->known[i].closed &&
		    !w->has_tried(wait, i))
			wanted_add(wanted, i, wait->since);
	}
}

void
waits_write(struct waits *w, int64_t now)
{
	struct wanted wanted = { .n = 0 };
	const struct wait *wait = w->others.first;
	unsigned looks = 0;

	if (w->n == 0) {
		places_leave(&w->places);
		return;
	}
	for (; wait != NULL && looks++ < LOOK_MOST &&
	    wanted.n < SHARED_WANTED; wait = wait->after)
		wants_add(w, wait, &wanted);
	places_write(&w->places, w->n, w->plain.first == NULL ? 0 :
	    w->plain.first->since, &wanted, now);
}

bool
waits_room(struct waits *w, int64_t now)
{
	if (!places_have(&w->places, now))
		return false;
	/* Seen by all before it is known whether there is any. */
	w->places.place->waiting++;
	if (places_length(&w->places, now) <= w->places.fleet->queue)
		return true;
	waits_write(w, now);
	return false;
}

void
waits_add(struct waits *w, struct wait *wait, int64_t now)
{
	struct wait_line *line = wait->retried || wait->kept ? &w->others :
	    &w->plain;
	bool waits = wait->line != NULL;

	if (wait->line == line)
		return;
	if (waits)
		line_leave(wait);
	line_join(line, wait);
	if (waits)
		return;
	w->n++;
	waits_write(w, now);
}

void
waits_remove(struct waits *w, struct wait *wait, int64_t now)
{
	if (wait->line == NULL)
		return;
	line_leave(wait);
	w->n--;
	waits_write(w, now);
}

/* --------------------------------------------------------------- choice --- */

void
waits_yield(struct waits *w, struct wait *wait, int64_t now)
{
	if (w->places.fleet->queue == 0)
		return;
	if (wait->since == 0)
		wait->since = places_stamp(now);
	places_yield(&w->places, wait->since, now);
}

bool
waits_lets(const struct waits *w, const struct wait *wait, int64_t now)
{
	uint32_t since = wait->since, oldest;

	if (w->places.fleet->queue == 0)
		return true;
	oldest = w->plain.first == NULL ? since + 1 : w->plain.first->since;
	/* Among those that came at the same time, the one that waits. */
	if (wait->line != NULL ? places_before(oldest, since) :
	    !places_before(since, oldest))
		return false;
	return !places_older(&w->places, since, now);
}

bool
waits_full(const struct fleet *f)
{
	size_t i;

	for (i = 0; f->queue > 0 && i < f->n_known; i++)
		if (f->known[i].full && !f->known[i].closed)
			return true;
	return false;
}

/* A server that has failed is no hope. */
bool
waits_hope(const struct fleet *f, struct wait *wait)
{
	const struct known *known = f->known, *end = known + f->n_known;
	bool hope = false;

	if (!wait->kept)
		wait->wants = 0;
	else if (wait->wants == 0) /* it is not known where its state is */
		return true;
	for (; known < end; known++) {
		if (!wait->kept || known->key == wait->wants)
			hope |= known->usable || known->full;
	}
	return hope;
}

/* ---------------------------------------------------------------- turns --- */

static bool
is_first_usable(const struct fleet *f)
{
	size_t i;

	for (i = 0; i < f->n_first && !f->known[i].usable; i++)
		continue;
	return i < f->n_first;
}

/* True if its server has room, or it need not wait any longer. */
static bool
kept_has_room(const struct fleet *f, const struct wait *wait)
{
	size_t i = wait->wants_at;

	if (i >= f->n_known || f->known[i].key != wait->wants)
		return true; /* the list has changed */
	return !f->known[i].full || f->known[i].spared || f->known[i].down ||
	    (i >= f->n_first && is_first_usable(f));
}

/* Is it worth a try? */
static bool
has_room(const struct waits *w, const struct wait *wait)
{
	const struct fleet *f = w->places.fleet;
	size_t i;

	if (wait->wants != 0)
		return kept_has_room(f, wait);
	if (wait->kept)
		return true;
	for (i = 0; i < f->n_known; i++)
		if (f->known[i].usable && !w->has_tried(wait, i))
			return true;
	/* None is left: it need not wait. */
	for (i = 0; i < f->n_known; i++)
		if (f->known[i].full && !w->has_tried(wait, i))
			return false;
	return true;
}

/* One that waits on, as it must, keeps the younger plain ones from trying. */
static struct wait *
next_plain(const struct waits *w, const struct wait *stuck)
{
	struct wait *wait = w->plain.first;

	return wait == NULL || wait == stuck || wait->woken ||
	    !has_room(w, wait) ? NULL : wait;
}

struct wait *
waits_turn(struct waits *w, struct turns *t)
{
	struct wait *plain, *other;

	if (t->tries++ == TRIES_MOST)
		return NULL;
	if (!t->begun)
		t->other = w->others.first;
	t->begun = true;
	plain = next_plain(w, t->stuck);
	for (other = t->other; other != NULL && (other->woken ||
	    !has_room(w, other)); other = other->after)
		continue;
	t->other = other;
	t->over = plain == NULL && other == NULL;
	t->plain = other == NULL || (plain != NULL &&
	    !places_before(other->since, plain->since));
	if (t->plain)
		return plain;
	t->other = other->after;
	return other;
}

void
waits_tried(struct turns *t, const struct wait *wait, bool woken)
{
	if (woken)
		t->woken++;
	else if (t->plain)
		t->stuck = wait;
}

bool
waits_more(const struct turns *t)
{
	return !t->over && t->woken > 0;
}
