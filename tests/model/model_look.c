/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_look.c - reads the model: counts, and a walk over the library's entries
 * that is compared with the records.
 */
#include "model_in.h"

/* ------------------------------------------------------------ counts --- */

void
model_sweep(struct model *m, int64_t time)
{
	struct record *r, *next;

	HASH_ITER(hh, m->records, r, next)
		if (!model_live(m, r, time))
			model_drop(m, r);
}

uint64_t
model_held(const struct model *m, uint64_t worker, int64_t time)
{
	const struct record *r;
	uint64_t n = 0;

	for (r = m->records; r != NULL; r = r->hh.next)
		if ((worker == 0 || r->key.worker == worker) &&
		    model_live(m, r, time))
			n++;
	return n;
}

struct seen {
	uint64_t prefix;
	UT_hash_handle hh;
};

uint64_t
model_blocks(struct model *m, int64_t time)
{
	struct seen *set = NULL, *s, *next;
	const struct record *r;
	uint64_t n;

	for (r = m->records; r != NULL; r = r->hh.next) {
		if (!model_live(m, r, time))
			continue;
		HASH_FIND(hh, set, &r->key.prefix, sizeof(s->prefix), s);
		if (s != NULL)
			continue;
		s = model_take(sizeof(*s));
		s->prefix = r->key.prefix;
		HASH_ADD(hh, set, prefix, sizeof(s->prefix), s);
	}
	n = HASH_COUNT(set);
	HASH_ITER(hh, set, s, next) {
		HASH_DEL(set, s);
		free(s);
	}
	return n;
}

int64_t
model_next_due(const struct model *m)
{
	const struct record *r;
	int64_t due = INT64_MAX;

	if (m->ttl < 0)
		return due;
	for (r = m->records; r != NULL; r = r->hh.next)
		if (r->pins == 0 && r->confirmed &&
		    r->stamp < due - m->ttl && !model_tracked(m, r->key.worker))
			due = r->stamp + m->ttl;
	return due;
}

bool
model_any_pin(const struct model *m)
{
	const struct record *r;

	for (r = m->records; r != NULL; r = r->hh.next)
		if (r->pins > 0)
			return true;
	return false;
}

/* --------------------------------------------------- the library's walk --- */

void
model_entries_begin(struct model *m, int64_t time)
{
	struct record *r;

	HASH_CLEAR(by_name, m->names);
	for (r = m->records; r != NULL; r = r->hh.next) {
		r->met = false;
		if (model_live(m, r, time))
			HASH_ADD(by_name, m->names, name, sizeof(r->name), r);
	}
}

static const char *
same_record(const struct model *m, struct record *r,
    const struct kvr_entry *e, uint32_t depth, int64_t time)
{
	if (r == NULL || !model_live(m, r, time))
		return "an entry holds a block that is not live";
	if (r->depth != depth)
		return "an entry's position differs";
	if (r->met)
		return "two entries hold the same block";
	if (r->pins != e->pins)
		return "an entry's pins differ";
	if (e->age_ns != (r->confirmed ? time - r->stamp : -1) &&
	    (r->pins == 0 || !m->events))
		return "an entry's age differs";
	r->met = true;
	return NULL;
}

const char *
model_entry(struct model *m, const struct kvr_entry *e, int64_t time)
{
	struct record_key name = { e->worker, e->sequence };
	const char *why;
	struct record *r;
	uint32_t i;

	if (e->blocks == 0)
		return "an entry without blocks";
	if (model_vague(m, e->worker))
		return NULL;
	if (m->events) /* the last blocks of the run may be lost */
		r = model_find(m, e->worker, model_events_above(m,
		    e->sequence, e->first_block + e->blocks - 1));
	else
		HASH_FIND(by_name, m->names, &name, sizeof(name), r);
	for (i = e->blocks; i > 0; i--) {
		why = same_record(m, r, e, e->first_block + i - 1, time);
		if (why != NULL)
			return why;
		r = r->parent != 0 ? model_find(m, e->worker, r->parent) : NULL;
	}
	if (e->first_block > 0 && (r == NULL || r->name.prefix != e->parent))
		return "an entry's parent differs";
	return NULL;
}

const char *
model_entries_end(struct model *m, int64_t time)
{
	const struct record *r;
	const char *why = NULL;

	for (r = m->records; r != NULL; r = r->hh.next)
		if (model_live(m, r, time) && !r->met &&
		    !model_vague(m, r->key.worker))
			why = "a live block is in no entry";
	HASH_CLEAR(by_name, m->names);
	return why;
}
