/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps_events.c - operations on events of engines.
 *
 * An operation has a prompt; its batch has events about the prompt's blocks:
 *
 *   prompt   A B C D     the engine has A B
 *
 *   prefill  stored C D behind B           drop   removed D; or B, with C
 *   again    stored A B C D: copies               and D still there
 *   orphan   stored D behind C             anew   (void) cleared, stored A-D
 *
 * Two tiers, or another name, size or number of a batch, stand for errors of
 * engines and of programs that pass their batches on.
 */
#include "world.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = 3 };

/* The events of an operation, for the model and for the library. */
struct saying {
	struct model_event event[EVENTS];
	struct model_batch b;
	struct kvr_event given[EVENTS];
	size_t n_names;
};

bool
step_has_events(const struct world *w, uint32_t name)
{
	return w->c->events > 0 && name % 4 != 3 && !w->plain[name];
}

/* --------------------------------------------------------------- batch --- */

static uint32_t
engine_blocks(const struct saying *s)
{
	return s->b.path->blocks / s->b.each;
}

/* Counts the blocks that the engine has from the prompt's start on. */
static uint32_t
engine_has(const struct world *w, const struct op *o, const struct saying *s)
{
	uint32_t i;

	for (i = 0; i < engine_blocks(s); i++)
		if (!model_events_has(w->m, o->worker,
		    s->b.path->prefix[(i + 1) * s->b.each - 1]))
			break;
	return i;
}

static struct model_event *
say(const struct world *w, struct saying *s, uint32_t kind, uint32_t from,
    uint32_t to)
{
	struct model_event *e = &s->event[s->b.n++];

	memset(e, 0, sizeof(*e));
	e->kind = kind;
	e->from = from < to ? from : to;
	e->to = to;
	if (kind == KVR_EVENT_STORED) {
		e->contents = true;
		e->block_tokens = s->b.each * w->c->block_size;
	}
	return e;
}

/* The batch that comes next; now and then one that was, or comes later. */
static void
begin(struct world *w, const struct op *o, struct saying *s)
{
	struct model_stream_stats now;

	memset(s, 0, sizeof(*s));
	model_events_stats(w->m, o->worker, &now);
	s->b.path = &w->path;
	s->b.scope = w->scope;
	s->b.each = w->c->events;
	s->b.room = w->options.max_prompt_blocks;
	s->b.event = s->event;
	s->b.seq = now.next;
	s->b.digest = ++w->batches;
	s->b.full = w->c->tiers;
	switch (o->variant) {
	case 255: s->b.seq += 2; break;
	case 254: s->b.seq = 0; break;
	case 253: s->b.seq -= now.next > 0; break;
	case 252: s->b.seq = now.next / 2; break;
	case 251: s->b.digest = 0; break;
	case 250: s->b.full = !s->b.full; break;
	case 249: s->b.past = true; break;
	case 248: s->b.each++; break;
	default: break;
	}
}

/* Makes events wrong, or at least unusual. */
static void
vary(const struct world *w, const struct op *o, struct saying *s)
{
	uint32_t i;

	for (i = 0; i < s->b.n; i++) {
		struct model_event *e = &s->event[i];

		e->tier = o->variant / 2 % 2;
		if (o->variant == 247 && e->block_tokens > 0)
			e->block_tokens++;
		if (o->variant == 246)
			e->block_tokens = 0;
		if (o->variant >= 228 && o->variant < 236)
			e->other_name = true;
	}
	(void)w;
}

/* ----------------------------------------------------------- the call --- */

/* The arrays of names, local hashes and tokens to which events refer. */
static int
spell(struct world *w, struct saying *s)
{
	size_t room = EVENTS * 2 * ((size_t)w->path.blocks + 1);
	uint32_t i, j, each = s->b.each;
	uint64_t sequence;

	if (room > w->spelt_room) {
		free(w->spelt);
		w->spelt = malloc(room * sizeof(*w->spelt));
		w->spelt_room = w->spelt != NULL ? room : 0;
	}
	if (w->spelt == NULL)
		return world_fail(w, "no memory for the test itself");
	for (i = 0; i < s->b.n; i++) {
		const struct model_event *e = &s->event[i];
		struct kvr_event *g = &s->given[i];

		(void)kvr_event_init(g, sizeof(*g));
		g->kind = e->kind;
		g->tier = e->tier;
		g->block_tokens = e->block_tokens;
		g->hashes = e->to - e->from;
		g->hashes_at = s->n_names;
		if (w->scope > 0)
			g->scope = w->scopes[w->scope];
		for (j = e->from; j < e->to; j++)
			w->spelt[s->n_names++] = model_event_name(
			    w->path.prefix[(j + 1) * each - 1], e->other_name);
		if (e->from > 0) {
			g->flags = KVR_EVENT_PARENT;
			g->parent = model_event_name(
			    w->path.prefix[e->from * each - 1], false);
		}
		if (!e->contents)
			continue;
		g->tokens_at = (uint64_t)e->from * each * w->c->block_size;
		g->tokens = (uint64_t)g->hashes * each * w->c->block_size;
		if (w->c->hash != KVR_HASH_DYNAMO || each > 1 ||
		    w->batches % 2 == 0)
			continue;
		g->flags |= KVR_EVENT_LOCALS;
		g->tokens_at = s->n_names;
		g->tokens = g->hashes;
		for (j = e->from; j < e->to; j++)
			if (kvr_prompt_hash(w->p, j, &w->spelt[s->n_names++],
			    &sequence) != KVR_OK)
				return world_fail(w, "kvr_prompt_hash");
	}
	return 0;
}

/* Busy: more was on record than one call drops. */
static int
call(struct world *w, const struct op *o, const struct saying *s,
    struct kvr_event_result *r)
{
	struct kvr_event_batch b = { .size = sizeof(b), .seq = s->b.seq,
		.digest = s->b.digest };
	uint32_t tries = 0;
	int rc;

	if (s->b.full)
		b.flags |= KVR_BATCH_FULL;
	if (s->b.past)
		b.flags |= KVR_BATCH_PAST;
	memset(r, 0, sizeof(*r));
	r->size = sizeof(*r);
	do {
		WORLD_CALL(rc, o->fail, kvr_events_apply(w->k,
		    w->names[o->worker].id, &b, s->given, sizeof(s->given[0]),
		    s->b.n, w->spelt, s->n_names, w->tokens, w->n_tokens,
		    w->call, 0, r));
	} while (rc == KVR_EBUSY && tries++ < 100);
	return rc;
}

static int
same_result(struct world *w, const struct op *o,
    const struct model_result *want, const struct kvr_event_result *got)
{
	struct model_stream_stats s;

	model_events_stats(w->m, o->worker, &s);
	if (got->outcome != want->outcome)
		return world_fail(w, "a batch: outcome %u, must %u",
		    got->outcome, want->outcome);
	if (got->next != s.next)
		return world_fail(w, "a batch: next %" PRIu64 ", must %"
		    PRIu64, got->next, s.next);
	if (got->state != s.state)
		return world_fail(w, "a batch: state %u, must %u", got->state,
		    s.state);
	if (!w->c->full && got->orphans != want->orphans)
		return world_fail(w, "a batch: %" PRIu64 " orphans, must %"
		    PRIu64, got->orphans, want->orphans);
	ops_totals.batches += want->applied;
	ops_totals.tracked += s.tracked;
	ops_totals.degraded += s.state == KVR_EVENTS_DEGRADED;
	return 0;
}

static int
give(struct world *w, const struct op *o, struct saying *s)
{
	struct world_name *name = &w->names[o->worker];
	struct kvr_event_result got;
	struct model_result want;
	int rc;

	vary(w, o, s);
	if (spell(w, s) != 0)
		return -1;
	rc = call(w, o, s, &got);
	if (step_same(w, "kvr_events_apply", rc, model_worker_known(w->m,
	    name->id) ? KVR_OK : KVR_EWORKER) != 0)
		return -1;
	if (rc != KVR_OK)
		return world_glance(w);
	model_events_judge(w->m, o->worker, &s->b, &want);
	if ((got.worker != name->id) != want.resets)
		return world_fail(w, "a batch: the worker was %sreset",
		    want.resets ? "not " : "");
	if (want.resets) {
		model_worker_void(w->m, name->id);
		model_worker_add(w->m, got.worker);
		model_events_worker(w->m, got.worker, o->worker,
		    step_has_events(w, o->worker));
		name->old = name->id;
		name->id = got.worker;
	}
	model_events_take(w->m, o->worker, name->id, &s->b, w->time, &want);
	if (same_result(w, o, &want, &got) != 0)
		return -1;
	return step_wrote(w, NULL);
}

/* --------------------------------------------------------- operations --- */

int
step_events(struct world *w, const struct op *o)
{
	struct saying s;
	uint32_t n, has, at;

	if (world_prompt(w, o, o->scope, 0) != 0)
		return -1;
	begin(w, o, &s);
	n = engine_blocks(&s);
	has = engine_has(w, o, &s);
	at = n > 0 ? o->arg / 16 % n : 0;
	switch (o->arg % 16) {
	case 0: (void)say(w, &s, KVR_EVENT_STORED, 0, n); break;
	case 1: (void)say(w, &s, KVR_EVENT_STORED, at, n); break;
	case 2: say(w, &s, KVR_EVENT_STORED, at, n)->contents = false; break;
	case 3: (void)say(w, &s, KVR_EVENT_REMOVED, 0, n); break;
	case 4: (void)say(w, &s, KVR_EVENT_REMOVED, at, at + (n > 0)); break;
	case 5: case 6: case 7:
		(void)say(w, &s, KVR_EVENT_REMOVED, has - (has > at ? at + 1
		    : has), has);
		break;
	case 8: case 9: (void)say(w, &s, KVR_EVENT_REMOVED, at, n); break;
	case 10: /* evicted, and prefilled again */
		(void)say(w, &s, KVR_EVENT_REMOVED, at, n);
		(void)say(w, &s, KVR_EVENT_STORED, at, n);
		break;
	case 11: /* in pieces */
		(void)say(w, &s, KVR_EVENT_STORED, 0, at);
		(void)say(w, &s, KVR_EVENT_STORED, at, n);
		break;
	default: (void)say(w, &s, KVR_EVENT_STORED, has, n); break;
	}
	return give(w, o, &s);
}

int
step_events_anew(struct world *w, const struct op *o)
{
	struct saying s;
	uint32_t n;

	if (world_prompt(w, o, o->scope, 0) != 0)
		return -1;
	begin(w, o, &s);
	n = engine_blocks(&s);
	if (o->arg % 2 == 0) /* which is void */
		(void)say(w, &s, KVR_EVENT_STORED, 0, n / 2);
	(void)say(w, &s, o->arg / 2 % 4 == 0 ? KVR_EVENT_RESTARTED
	    : KVR_EVENT_CLEARED, 0, 0);
	if (o->arg / 8 % 2 == 0)
		(void)say(w, &s, KVR_EVENT_STORED, 0, n);
	return give(w, o, &s);
}

int
step_events_lost(struct world *w, const struct op *o)
{
	struct model_stream_stats now;
	int rc, want;
	uint64_t id = step_worker(w, o, &want), next;

	model_events_stats(w->m, o->worker, &now);
	next = now.next + o->arg % 3;
	if (o->arg % 8 == 7)
		WORLD_CALL(rc, o->fail, kvr_events_off(w->k, id));
	else
		WORLD_CALL(rc, o->fail, kvr_events_lost(w->k, id, next));
	if (step_same(w, "kvr_events_lost or off", rc, want) != 0)
		return -1;
	if (rc == KVR_OK && o->arg % 8 == 7)
		model_events_off(w->m, o->worker);
	else if (rc == KVR_OK)
		model_events_lost(w->m, o->worker, next);
	return world_glance(w);
}

/* ---------------------------------------------------------- comparing --- */

static int
same_stream(struct world *w, uint32_t i)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	struct model_stream_stats want;
	int rc;

	if (!model_worker_known(w->m, w->names[i].id))
		return 0;
	rc = kvr_worker_stats_get(w->k, w->names[i].id, &s);
	model_events_stats(w->m, i, &want);
	if (rc != KVR_OK || s.events_state != want.state ||
	    s.events_next != want.next)
		return world_fail(w, "w%u: %s, state %u next %" PRIu64 ", must"
		    " %u and %" PRIu64, i, kvr_errname(rc), s.events_state,
		    s.events_next, want.state, want.next);
	if (w->c->full)
		return 0;
	if (s.events_blocks != want.blocks || s.events_orphans !=
	    want.orphans || s.events_capacity != want.capacity)
		return world_fail(w, "w%u: %" PRIu64 " aliases, %" PRIu64
		    " orphans, capacity %" PRIu64 ", must %" PRIu64 " %" PRIu64
		    " %" PRIu64, i, s.events_blocks, s.events_orphans,
		    s.events_capacity, want.blocks, want.orphans,
		    want.capacity);
	if (want.tracked != (s.retain == KVR_RETAIN_EVENTS))
		return world_fail(w, "w%u: retained by %u", i, s.retain);
	return 0;
}

int
step_glance_events(struct world *w, const struct op *o)
{
	struct op match = { .kind = OP_MATCH, .worker = o->worker, .arg = 1 };
	uint32_t i;

	for (i = 0; i < w->c->workers; i++)
		if (same_stream(w, i) != 0)
			return -1;
	world_look_at_clock(w, w->now);
	if (w->n_tokens == 0 || (o->kind != OP_EVENTS &&
	    o->kind != OP_EVENTS_ANEW))
		return 0;
	return world_match(w, &match);
}
