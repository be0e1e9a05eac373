/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_past.c - the state of an engine some time ago.
 *
 * Cache events of real engines arrive late. Past states are not stored but
 * replayed: a twin of the engine is given the same requests and resets later.
 * Engines are deterministic, so the twin at a given time has the state that
 * the engine had then.
 *
 *   engine   ----a-----b--R-------c--->|  now
 *   twin     ----a-----b--R-->|        .
 *                             to       inputs after `to` wait
 *
 * At one time, a step ends first, then inputs take effect in order, then a
 * step begins, as in simulate.c.
 */
#include "simulate_in.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum input_kind { INPUT_REQUEST, INPUT_RESET, INPUT_SLOW, INPUT_KILL };

struct input {
	int64_t at;
	enum input_kind kind;
	double factor; /* of SLOW */
	struct engine_request request;
	struct input *prev, *next;
	uint64_t ids[];
};

struct past {
	struct engine *twin;
	struct input *inputs; /* earliest first */
	int64_t now;
	int64_t end; /* of the twin's step */
};

struct past *
past_new(struct engine *twin)
{
	struct past *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->twin = twin;
	p->end = INT64_MAX;
	return p;
}

void
past_free(struct past *p)
{
	struct input *i, *next;

	if (p == NULL)
		return;
	DL_FOREACH_SAFE(p->inputs, i, next) {
		DL_DELETE(p->inputs, i);
		free(i);
	}
	engine_free(p->twin);
	free(p);
}

/* q is NULL except for a request. */
static int
past_add(struct past *p, enum input_kind kind, double factor,
    const struct engine_request *q, int64_t now)
{
	size_t n = q == NULL ? 0 : (size_t)((q->tokens + q->known +
	    ENGINE_BLOCK - 1) / ENGINE_BLOCK);
	struct input *i = calloc(1, sizeof(*i) + n * sizeof(i->ids[0]));

	if (i == NULL)
		return KVR_ENOMEM;
	i->at = now;
	i->kind = kind;
	i->factor = factor;
	if (q != NULL) {
		i->request = *q;
		i->request.ids = i->ids;
		memcpy(i->ids, q->ids, n * sizeof(i->ids[0]));
	}
	DL_APPEND(p->inputs, i);
	return KVR_OK;
}

int
past_submit(struct past *p, const struct engine_request *q, int64_t now)
{
	return past_add(p, INPUT_REQUEST, 0, q, now);
}

int
past_reset(struct past *p, int64_t now)
{
	return past_add(p, INPUT_RESET, 0, NULL, now);
}

int
past_slow(struct past *p, double factor, int64_t now)
{
	return past_add(p, INPUT_SLOW, factor, NULL, now);
}

int
past_kill(struct past *p, int64_t now)
{
	return past_add(p, INPUT_KILL, 0, NULL, now);
}

/* The engine accepted this input, so the twin does. */
static bool
take_input(struct past *p)
{
	struct input *i = p->inputs;
	bool ok = true;

	DL_DELETE(p->inputs, i);
	if (i->kind == INPUT_RESET)
		engine_reset(p->twin);
	else if (i->kind == INPUT_SLOW)
		engine_slow(p->twin, i->factor);
	else if (i->kind == INPUT_KILL)
		engine_kill(p->twin);
	else
		ok = engine_submit(p->twin, &i->request) == ENGINE_OK;
	if (i->kind == INPUT_KILL)
		p->end = INT64_MAX;
	free(i);
	return ok;
}

/* Everything at p->now except the beginning of a step. */
static bool
live_now(struct past *p)
{
	struct engine_event event;

	if (p->end == p->now) {
		p->end = INT64_MAX;
		if (engine_end(p->twin) != ENGINE_OK)
			return false;
	}
	while (p->inputs != NULL && p->inputs->at == p->now)
		if (!take_input(p))
			return false;
	while (engine_next(p->twin, &event))
		;
	return true;
}

const struct engine *
past_at(struct past *p, int64_t to)
{
	int64_t next;

	for (;;) {
		if (p->end == INT64_MAX)
			p->end = engine_begin(p->twin, p->now);
		next = p->inputs == NULL || p->end < p->inputs->at ? p->end :
		    p->inputs->at;
		if (next > to)
			return p->twin;
		p->now = next;
		if (!live_now(p))
			return NULL;
	}
}
