/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_options.c - options of a simulation, and their consequences: facts
 * of a worker, and the order of its changes.
 */
#include "simulate_in.h"

#include <string.h>

void
simulate_defaults(struct simulate_options *o)
{
	*o = (struct simulate_options){ .policy = SIMULATE_DYNAMO,
	    .index = SIMULATE_TTL, .workers = 8, .capacity_tokens = 1000000,
	    .engine_block = ENGINE_BLOCK, .eviction = ENGINE_EVICT_RELEASED,
	    .replicas = 1, .repair = true, .degrade = true,
	    .event_replay = true, .seed = 1 };
	kvr_policy_init(&o->weights, sizeof(o->weights));
}

uint64_t
simulate_capacity(const struct simulate_options *o, uint32_t worker)
{
	return o->n_capacities == 0 ? o->capacity_tokens :
	    o->capacities[worker % o->n_capacities];
}

uint32_t
simulate_sequences(const struct simulate_options *o, uint32_t worker)
{
	return o->n_sequences == 0 ? ENGINE_SEQUENCES :
	    o->sequences[worker % o->n_sequences];
}

double
simulate_speed(const struct simulate_options *o, uint32_t worker)
{
	return o->n_speeds == 0 ? 1 : o->speeds[worker % o->n_speeds];
}

bool
exchange_has_sums(const struct simulation *s)
{
	return s->options.replicas > 1 &&
	    (s->options.exchange == SIMULATE_LOADS ||
	    s->options.exchange == SIMULATE_PREFIXES_LOADS);
}

bool
exchange_has_leases(const struct simulation *s)
{
	return s->options.replicas > 1 &&
	    (s->options.exchange == SIMULATE_ALL ||
	    s->options.exchange == SIMULATE_BOOKINGS);
}

/* ------------------------------------------------------------- schedule --- */

/* At one time a spell's end comes first; the others stay in their order. */
bool
simulate_add_change(struct simulate_options *o,
    const struct simulate_change *change)
{
	struct simulate_change *c = o->changes;
	uint32_t i = o->n_changes;

	if (i == SIMULATE_CHANGES_MAX)
		return false;
	for (; i > 0 && (c[i - 1].at > change->at ||
	    (c[i - 1].at == change->at && change->kind == SIMULATE_SLOW_END &&
	    c[i - 1].kind != SIMULATE_SLOW_END)); i--)
		c[i] = c[i - 1];
	c[i] = *change;
	o->n_changes++;
	return true;
}

bool
simulate_is_slowness(const struct simulate_change *c)
{
	return c->kind == SIMULATE_SLOW || c->kind == SIMULATE_SLOW_END;
}

bool
simulate_joins_first(const struct simulate_options *o, uint32_t worker)
{
	uint32_t i;

	for (i = 0; i < o->n_changes; i++)
		if (o->changes[i].worker == worker &&
		    !simulate_is_slowness(&o->changes[i]))
			return o->changes[i].kind == SIMULATE_JOIN;
	return false;
}

struct schedule {
	bool up[KVR_WORKERS_MAX];
	bool absent[KVR_WORKERS_MAX];
	bool slow[KVR_WORKERS_MAX];
	uint32_t n_up;
};

/* NULL, or why this change cannot follow those before it. */
static const char *
follow_change(struct schedule *t, const struct simulate_change *c)
{
	bool slow = c->kind == SIMULATE_SLOW, up = c->kind == SIMULATE_JOIN;
	uint32_t w = c->worker;

	if (simulate_is_slowness(c)) {
		if (slow && t->slow[w])
			return "the worker is slow already";
		t->slow[w] = slow;
		return NULL;
	}
	if (up && t->up[w])
		return "the worker is up already";
	if (!up && t->absent[w])
		return "the worker is not there then";
	if (!up && !t->up[w] && c->kind == SIMULATE_DRAIN)
		return "the worker drains already";
	t->n_up += (uint32_t)(up - t->up[w]);
	t->up[w] = up;
	t->absent[w] = c->kind == SIMULATE_KILL;
	return t->n_up == 0 ? "no worker is left" : NULL;
}

static const char *
in_range(const struct simulate_options *o, const struct simulate_change *c)
{
	if (c->worker >= o->workers)
		return "there is no such worker; they are numbered from 0";
	if (c->at < 0 || (c->kind == SIMULATE_SLOW && !(c->factor > 0)))
		return "out of range";
	return NULL;
}

static const char *
replay_changes(struct schedule *t, const struct simulate_options *o,
    uint32_t *which)
{
	const char *problem = NULL;
	uint32_t i, w;

	for (i = 0; problem == NULL && i < o->n_changes; i++) {
		problem = in_range(o, &o->changes[i]);
		*which = i;
	}
	if (problem != NULL)
		return problem;
	for (w = 0; w < o->workers; w++) {
		t->absent[w] = simulate_joins_first(o, w);
		t->up[w] = !t->absent[w];
		t->n_up += t->up[w];
	}
	*which = 0;
	if (t->n_up == 0)
		return "no worker is there from the beginning";
	for (i = 0; problem == NULL && i < o->n_changes; i++) {
		problem = follow_change(t, &o->changes[i]);
		*which = i;
	}
	return problem;
}

const char *
simulate_changes_problem(const struct simulate_options *o, uint32_t *which)
{
	struct schedule t;

	if (o->n_changes == 0)
		return NULL;
	memset(&t, 0, sizeof(t));
	return replay_changes(&t, o, which);
}
