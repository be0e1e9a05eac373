/* SPDX-License-Identifier: BSD-2-Clause */
/* judge.c - see judge.h. */
#include "judge.h"

#include "health.h"
#include "status.h"

#define LATE_NS INT64_C(1000000000) /* then a probe need not be cheap */

bool
judge_on(const struct fleet *f)
{
	return f->gray > 0 || f->slow_start_ms > 0;
}

/* --------------------------------------------------------------- places --- */

void
judge_prepare(struct fleet *f, const uint64_t *keys, size_t n)
{
	const uint32_t most = f->options->max_workers;
	bool fresh, first = true;
	struct health *h;
	size_t i;

	if (f->health == NULL || !judge_on(f))
		return;
	for (i = 0; i < most && first; i++)
		first = f->health[i].key == 0;
	health_keep(f->health, most, keys, n);
	for (i = 0; i < n; i++) {
		h = health_place(f->health, most, keys[i], &fresh);
		if (h != NULL && fresh && !first)
			health_cool(h);
	}
}

static void
judged_add(struct fleet *f, struct health *h)
{
	size_t i;

	for (i = 0; i < f->n_judged; i++)
		if (f->judged[i] == h)
			return;
	f->judged[f->n_judged++] = h;
}

void
judge_follow(struct fleet *f)
{
	struct known *known, *end = f->known + f->n_first;
	bool fresh;

	f->n_judged = 0;
	if (f->health == NULL || !judge_on(f))
		return;
	for (known = f->known; known < end; known++) {
		known->health = health_place(f->health,
		    f->options->max_workers, known->key, &fresh);
		if (known->health != NULL && fresh)
			health_cool(known->health);
		if (known->health != NULL)
			judged_add(f, known->health);
	}
}

void
judge_follow_late(struct fleet *f)
{
	struct known *known, *end = f->known + f->n_first;

	for (known = f->known; known < end; known++) {
		if (known->health == NULL ||
		    !health_is_of(known->health, known->key)) {
			judge_follow(f);
			return;
		}
	}
}

void
judge_leave(struct fleet *f, uint64_t key)
{
	if (f->health != NULL)
		health_drop(f->health, f->options->max_workers, key);
}

/* --------------------------------------------------------------- choice --- */

static bool
is_gray(const struct fleet *f, const struct known *known)
{
	return f->gray > 0 && known->health != NULL &&
	    health_verdict(known->health) != HEALTH_GOOD;
}

static double
warmth_of(const struct fleet *f, const struct known *known, int64_t now)
{
	if (f->slow_start_ms == 0 || known->health == NULL)
		return 1;
	return health_warmth(known->health, (int64_t)f->slow_start_ms *
	    1000000, now);
}

/* Connections for each unit of weight of warm servers; 0: all are cold. */
static double
load_of_warm(const struct fleet *f, int64_t now)
{
	const struct known *known = f->known, *end = known + f->n_first;
	double conns = 0, weight = 0;

	for (; known < end; known++) {
		if (!known->usable || is_gray(f, known) ||
		    warmth_of(f, known, now) < 1)
			continue;
		conns += (double)known->conns;
		weight += (double)known->weight;
	}
	/* and the one that is about to be sent */
	return weight > 0 ? (conns + 1) / weight : 0;
}

/* While it warms up it takes a share of the connections of the others. */
static bool
has_enough(const struct known *known, double warmth, double load)
{
	double most = warmth * load * (double)known->weight;

	return warmth < 1 && load > 0 &&
	    (double)known->conns + 1 > (most > 1 ? most : 1);
}

void
judge_mark(struct fleet *f)
{
	struct known *known, *end = f->known + f->n_first;
	bool full = false;

	if (f->gray <= 0 || f->n_judged == 0)
		return;
	for (known = f->known; known < end; known++) {
		known->gray = is_gray(f, known);
		known->spared = false;
		full |= known->full && !known->gray && !known->closed;
	}
	for (known = f->known; known < end && f->queue > 0 && full; known++)
		if (known->gray && known->usable &&
		    health_verdict(known->health) == HEALTH_FAILING) {
			known->usable = false;
			known->full = known->spared = true;
		}
}

bool
judge_look(struct fleet *f, int64_t now)
{
	struct known *known, *end = f->known + f->n_first;
	bool any = false;
	double load;

	if (f->n_judged == 0)
		return false;
	judge_mark(f);
	load = load_of_warm(f, now);
	for (known = f->known; known < end; known++) {
		known->held = known->gray || has_enough(known,
		    warmth_of(f, known, now), load);
		any |= known->held;
	}
	return any;
}

bool
judge_session(struct fleet *f, uint64_t session, int64_t now)
{
	uint64_t worker = 0;
	uint32_t rank;
	size_t i;

	if (session == 0 || f->kvr == NULL ||
	    kvr_affinity_find(f->kvr, session, now, &worker) != KVR_OK)
		return false;
	i = known_of_worker(f, worker, &rank);
	return i < f->n_known && f->known[i].held;
}

size_t
judge_probe(struct fleet *f, bool cheap, int64_t now)
{
	struct known *known;
	size_t i;

	for (i = 0; i < f->n_first && f->gray > 0; i++) {
		known = &f->known[i];
		if ((known->usable || known->spared) && !known->closed &&
		    is_gray(f, known) &&
		    health_is_due(known->health, cheap ? 0 : LATE_NS, now) &&
		    health_probe(known->health, now))
			return i;
	}
	return f->n_known;
}

/* ----------------------------------------------------------------- show --- */

void
judge_forget(struct fleet *f, const void *name, size_t len)
{
	struct known *known, *end = f->known + f->n_first;

	for (known = f->known; known < end; known++)
		if (known->health != NULL && known_is_called(known, name, len))
			health_forget(known->health);
}

static const char *
verdict_name(const struct fleet *f, const struct known *known, int64_t now)
{
	if (f->gray > 0 && health_verdict(known->health) == HEALTH_SLOW)
		return "slow";
	if (f->gray > 0 && health_verdict(known->health) == HEALTH_FAILING)
		return "failing";
	return warmth_of(f, known, now) < 1 ? "warming" : "good";
}

size_t
judge_list(const struct fleet *f, struct status_health *out, int64_t now)
{
	const struct known *known;
	size_t i;

	for (i = 0; i < f->n_judged; i++) {
		for (known = f->known; known->health != f->judged[i]; known++)
			continue;
		out[i] = (struct status_health){ .name = known->name,
		    .name_length = known->name_len,
		    .what = verdict_name(f, known, now) };
	}
	return f->n_judged;
}
