/* SPDX-License-Identifier: BSD-2-Clause */
/* roster.c - see roster.h. */
#include "roster.h"

#include <kvroute_events.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define PUT_OFF (5 * SECOND)

enum { RESET_TRIES = 1000 }; /* each reclaims a part of others' entries */

bool
roster_init(struct roster *f, struct kvr *quiet)
{
	struct kvr_options o = { .size = sizeof(o) };

	memset(f, 0, sizeof(*f));
	f->k = quiet;
	if (kvr_options_get(quiet, &o) != KVR_OK)
		return false;
	f->places = o.max_workers;
	f->index_mask = 3;
	/* Each read adds at most as many names as there are places. */
	while (f->index_mask < 3 * f->places)
		f->index_mask = f->index_mask * 2 + 1;
	f->workers = calloc(f->places, sizeof(*f->workers));
	f->index = calloc(f->index_mask + 1, sizeof(*f->index));
	f->names = calloc(f->index_mask + 1, sizeof(*f->names));
	if (f->workers != NULL && f->index != NULL && f->names != NULL)
		return true;
	roster_free(f);
	return false;
}

void
roster_free(struct roster *f)
{
	free(f->workers);
	free(f->index);
	free(f->names);
	f->workers = NULL;
	f->index = f->names = NULL;
}

static size_t
index_at(const struct roster *f, uint64_t id)
{
	return (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 40) &
	    f->index_mask;
}

static size_t
name_at(const struct roster *f, const char *name, size_t name_len,
    uint32_t rank)
{
	uint64_t h = rank;
	size_t i;

	for (i = 0; i < name_len; i++)
		h = (h ^ (unsigned char)name[i]) *
		    UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(h >> 40) & f->index_mask;
}

static void
names_add(struct roster *f, const struct roster_worker *w)
{
	size_t at = name_at(f, w->name, w->name_len, w->rank);

	while (f->names[at] != 0)
		at = (at + 1) & f->index_mask;
	f->names[at] = (uint32_t)roster_place(f, w) + 1;
}

/* Ids and names change rarely, so all is indexed anew. */
static void
index_make(struct roster *f)
{
	size_t i, at;

	memset(f->index, 0, (f->index_mask + 1) * sizeof(*f->index));
	memset(f->names, 0, (f->index_mask + 1) * sizeof(*f->names));
	for (i = 0; i < f->places; i++) {
		if (f->workers[i].id == 0)
			continue;
		at = index_at(f, f->workers[i].id);
		while (f->index[at] != 0)
			at = (at + 1) & f->index_mask;
		f->index[at] = (uint32_t)i + 1;
		names_add(f, &f->workers[i]);
	}
}

struct roster_worker *
roster_id(const struct roster *f, uint64_t id)
{
	size_t at = index_at(f, id);

	for (; id != 0 && f->index[at] != 0; at = (at + 1) & f->index_mask)
		if (f->workers[f->index[at] - 1].id == id)
			return &f->workers[f->index[at] - 1];
	return NULL;
}

struct roster_worker *
roster_find(const struct roster *f, const char *name, size_t name_len,
    uint32_t rank)
{
	size_t at = name_at(f, name, name_len, rank);
	struct roster_worker *w;

	for (; f->names[at] != 0; at = (at + 1) & f->index_mask) {
		w = &f->workers[f->names[at] - 1];
		if (w->id != 0 && w->rank == rank && w->name_len == name_len &&
		    memcmp(w->name, name, name_len) == 0)
			return w;
	}
	return NULL;
}

size_t
roster_place(const struct roster *f, const struct roster_worker *w)
{
	return (size_t)(w - f->workers);
}

/*
 * Places go round, so that one that has become free is not soon another's: a
 * peer may have missed the frame about it.
 */
static struct roster_worker *
place_take(struct roster *f)
{
	struct roster_worker *w;
	size_t i;

	for (i = 0; i < f->places; i++) {
		w = &f->workers[f->next];
		f->next = (f->next + 1) % f->places;
		if (w->id == 0) {
			memset(w, 0, sizeof(*w));
			w->made = ++f->made;
			f->count++;
			return w;
		}
	}
	return NULL;
}

static void
epoch_add(struct roster_worker *w, uint32_t more)
{
	w->epoch = more > UINT32_MAX - w->epoch ? UINT32_MAX : w->epoch + more;
}

/* Notes one worker of the region. True if that is news. */
static bool
note(struct roster *f, uint64_t id)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	char name[KVR_NAME_MAX];
	struct roster_worker *w;
	size_t name_len;
	bool news = true;

	if (kvr_worker_get(f->k, id, &facts) != KVR_OK ||
	    kvr_worker_name(f->k, id, name, sizeof(name), &name_len) !=
	    KVR_OK) {
		/* Perhaps the region is busy, and it is still there. */
		if ((w = roster_id(f, id)) != NULL)
			w->there = true;
		return false;
	}
	w = roster_find(f, name, name_len, facts.rank);
	if (w != NULL && w->id == id) {
		news = false;
	} else if (w != NULL) {
		epoch_add(w, 1);
		w->id = id;
		w->reset_at = f->now;
		w->due = 0;
		memset(&w->load, 0, sizeof(w->load));
	} else if ((w = place_take(f)) != NULL) {
		w->id = id;
		w->rank = facts.rank;
		w->name_len = name_len;
		memcpy(w->name, name, name_len);
		names_add(f, w);
	} else {
		return false;
	}
	w->state = facts.state;
	w->there = true;
	return news;
}

/* Frees the places of workers that are no longer there. */
static bool
forget(struct roster *f)
{
	struct roster_worker *w = f->workers;
	bool news = false;
	size_t i;

	for (i = 0; i < f->places; i++, w++) {
		if (w->id == 0 || w->there)
			continue;
		w->id = 0;
		f->count--;
		news = true;
	}
	return news;
}

bool
roster_read(struct roster *f)
{
	int error = KVR_OK;
	bool news = false;
	uint64_t id = 0;
	size_t i;

	for (i = 0; i < f->places; i++)
		f->workers[i].there = false;
	/* Workers that come and go meanwhile do not make it endless. */
	for (i = 0; i <= f->places; i++) {
		error = kvr_worker_next(f->k, &id);
		if (error != KVR_OK || id == 0)
			break;
		news |= note(f, id);
	}
	if (error == KVR_OK && id == 0)
		news |= forget(f);
	if (news)
		index_make(f);
	return news;
}

/* The load went with the reset, unless events cleared it in place. */
static void
renew(struct roster *f, struct roster_worker *w, uint64_t id)
{
	if (id != w->id)
		memset(&w->load, 0, sizeof(w->load));
	w->id = id;
	w->due = 0;
	index_make(f);
}

bool
roster_reset(struct roster *f, uint64_t id, uint64_t new_id)
{
	struct roster_worker *w = roster_id(f, id);

	if (w == NULL)
		return false;
	epoch_add(w, 1);
	w->reset_at = f->now;
	renew(f, w, new_id);
	return true;
}

void
roster_cleared(struct roster *f)
{
	size_t i;

	for (i = 0; i < f->places; i++)
		memset(&f->workers[i].load, 0, sizeof(f->workers[i].load));
}

/* The events of its engine come here, too, and nothing of them is missing. */
static bool
is_told_by_events(const struct roster *f, const struct roster_worker *w)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };

	return kvr_worker_stats_get(f->k, w->id, &stats) == KVR_OK &&
	    stats.events_state == KVR_EVENTS_COMPLETE;
}

/* false: the worker is to be reset now. */
static bool
put_off(struct roster *f, struct roster_worker *w)
{
	if (!is_told_by_events(f, w))
		return false;
	/* Others did the same as this router just now, for the same reason. */
	if (w->due != 0 || (w->reset_at != 0 && f->now - w->reset_at < PUT_OFF))
		return true;
	w->due = f->now + PUT_OFF;
	if (f->due == 0)
		f->due = w->due;
	return true;
}

/* false: it cannot be done. */
static bool
reset_worker(struct roster *f, struct roster_worker *w)
{
	int error = KVR_EBUSY, tries;
	uint64_t id = w->id;

	for (tries = 0; error == KVR_EBUSY && tries < RESET_TRIES; tries++)
		error = kvr_worker_reset(f->k, w->id, &id);
	if (error != KVR_OK)
		return false;
	renew(f, w, id);
	return true;
}

/* Has no event come since the reset was put off? */
static bool
is_silent(const struct roster *f, const struct roster_worker *w)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };

	return kvr_worker_stats_get(f->k, w->id, &stats) == KVR_OK &&
	    stats.events_at <= w->due - PUT_OFF;
}

void
roster_work(struct roster *f, int64_t now)
{
	struct roster_worker *w = f->workers;
	size_t i;

	f->now = now;
	if (f->due == 0 || now < f->due)
		return;
	f->due = 0;
	for (i = 0; i < f->places; i++, w++) {
		if (w->id != 0 && w->due != 0 && now >= w->due) {
			if (is_silent(f, w))
				(void)reset_worker(f, w);
			w->due = 0;
		} else if (w->id != 0 && w->due != 0 && (f->due == 0 ||
		    w->due < f->due)) {
			f->due = w->due;
		}
	}
}

bool
roster_agree(struct roster *f, struct roster_worker *w, uint32_t epoch,
    bool reset)
{
	if (epoch > w->epoch && (!w->agreed || !reset || put_off(f, w)))
		w->epoch = epoch;
	w->agreed = true;
	if (epoch <= w->epoch)
		return epoch == w->epoch;
	if (!reset_worker(f, w))
		return false;
	w->epoch = epoch;
	return true;
}

double
roster_rate(struct roster *f, int64_t now)
{
	const int64_t passed = now - f->counted_at;

	if (passed >= SECOND) {
		f->rate = (f->rate + (double)(f->opens - f->counted) *
		    (double)SECOND / (double)passed) / 2;
		f->counted = f->opens;
		f->counted_at = now;
	}
	return f->count > 0 ? f->rate / (double)f->count : 0;
}
