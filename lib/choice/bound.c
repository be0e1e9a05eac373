/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bound.c - a limit on the requests of one worker, by those of the others.
 *
 * With any costs, no worker runs more requests than its share, times a
 * factor, plus a few:
 *
 *	share = weight / sum of the weights of the eligible workers
 *	limit = balanced_bound * share * (running + 1) + 3
 *
 * Running are requests of all eligible workers, waiting ones and external load
 * included; the one that is routed is the last. With a factor of 1 or more some
 * worker is below its limit always, since not all can have more than their
 * shares. It is a net: with the default factor, 2, costs seldom reach it.
 *
 * The idea is that of consistent hashing with bounded loads (Mirrokni, Thorup,
 * Zadimoghaddam, SODA 2018), with a cost in place of the hash.
 */
#include "bound.h"

#include "best.h"
#include "pair.h"
#include "pressure.h"
#include "rate.h"
#include "set.h"

#define SLACK 3.0 /* requests that any worker may run */

/* What a pass over the eligible workers reads and makes. */
struct summing {
	struct loads l;
	double *waits;
	pair observed; /* the part left of what was observed */
	int64_t now;
	pair sums;     /* of requests, and of tokens that they read */
	pair most, wait; /* of pairs of workers */
	struct fleet f;
};

/*
 * One worker more; returns its requests. Sums are made in the order of slots,
 * so that they are the same to the bit.
 */
INLINE double
sum_one(struct summing *s, uint32_t slot, bool observed)
{
	const struct loads *l = &s->l;
	pair load = { read_once(l->requests[slot]),
		read_once_double(&l->reading[slot]) };
	double wait = rate_backlog_of(l, slot, s->now);

	if (observed)
		load += s->observed *
		    (pair){ read_once_double(&l->observed_requests[slot]),
			read_once_double(&l->observed_reading[slot]) };
	s->sums += load;
	s->f.inserted += read_once_double(&l->inserted[slot]);
	s->f.most = load[0] > s->f.most ? load[0] : s->f.most;
	s->f.wait = wait < s->f.wait ? wait : s->f.wait;
	s->waits[slot] = wait;
	return load[0];
}

/* The same for two; returns which of them run more than SLACK allows. */
INLINE uint32_t
sum_two(struct summing *s, uint32_t slot, bool observed)
{
	const struct loads *l = &s->l;
	pair requests = { read_once(l->requests[slot]),
		read_once(l->requests[slot + 1]) };
	pair reading = pair_read(&l->reading[slot]), one = { 1, 1 };
	pair inserted = pair_read(&l->inserted[slot]);
	pair wait = rate_backlog_of_two(l, slot, s->now);

	if (observed) {
		requests += s->observed *
		    pair_read(&l->observed_requests[slot]);
		reading += s->observed *
		    pair_read(&l->observed_reading[slot]);
	}
	s->sums += (pair){ requests[0], reading[0] };
	s->sums += (pair){ requests[1], reading[1] };
	s->f.inserted += inserted[0];
	s->f.inserted += inserted[1];
	s->most = pair_greater(requests, s->most);
	s->wait = pair_less(wait, s->wait);
	pair_write(&s->waits[slot], wait);
	return pair_above(one + requests, (pair){ SLACK, SLACK });
}

INLINE void
sum_all(struct question *q, struct summing *sum, bool observed)
{
	struct set_walk w = set_walk(q->take, q->words);
	struct summing s = *sum; /* in registers */
	struct set_run run;
	uint64_t above;

	memset(q->below, 0, q->words * sizeof(q->below[0]));
	while (set_next_run(&w, &run)) {
		uint64_t *word = &q->below[run.from / 64];

		for (above = 0; run.from + 1 < run.to; run.from += 2)
			above |= (uint64_t)sum_two(&s, run.from, observed) <<
			    run.from % 64;
		if (run.from < run.to)
			above |= (uint64_t)(1 + sum_one(&s, run.from,
			    observed) > SLACK) << run.from % 64;
		*word |= above;
	}
	*sum = s;
}

/*
 * Sums over the eligible workers. Leaves the backlog of each in set->costs, and
 * in q->below those that run more requests than any worker may.
 */
struct fleet
bound_fleet(struct question *q)
{
	struct summing s = { .l = q->k->loads, .waits = q->set->costs,
		.observed = { q->observed, q->observed }, .now = q->now,
		.wait = { 2 * COST_MAX, 2 * COST_MAX },
		.f = { .wait = 2 * COST_MAX } };
	uint32_t i;

	if (q->observed > 0)
		sum_all(q, &s, true);
	else
		sum_all(q, &s, false);
	for (i = 0; i < 2; i++) {
		s.f.most = s.most[i] > s.f.most ? s.most[i] : s.f.most;
		s.f.wait = s.wait[i] < s.f.wait ? s.wait[i] : s.f.wait;
	}
	s.f.requests = s.sums[0];
	s.f.reading = s.sums[1];
	return s.f;
}

static double
weight_of(const struct question *q, uint32_t slot)
{
	return q->weighted ? read_once_double(&q->k->slots[slot].weight) : 1;
}

static double
weights_sum(const struct question *q)
{
	struct set_walk w = set_walk(q->take, q->words);
	double sum = 0;
	uint32_t slot;

	if (!q->weighted)
		return q->eligible;
	while (set_next(&w, &slot))
		sum += weight_of(q, slot);
	return sum;
}

/* Removes those that are below their limits; false: all others are above. */
static bool
keep_above(struct question *q, double share)
{
	struct set_walk w = set_walk(q->below, q->words);
	double limit = (share + SLACK) * ROUNDED;
	uint32_t slot, above = 0;

	while (set_next(&w, &slot)) {
		if (q->weighted)
			limit = (share * weight_of(q, slot) + SLACK) * ROUNDED;
		if (1 + requests_on(q, slot) <= limit)
			set_remove(q->below, slot);
		else
			above++;
	}
	return above < q->eligible;
}

/*
 * Makes q->below those of the eligible that may be chosen; never none. Only
 * workers that run more than SLACK can be above a limit.
 */
void
bound_find(struct question *q, const struct fleet *f)
{
	double share; /* of a worker of weight 1 */
	bool some = false;
	uint32_t i;

	if (q->policy.balanced_bound > 0 && 1 + f->most > SLACK) {
		share = q->policy.balanced_bound * (f->requests + 1) /
		    weights_sum(q);
		if (q->weighted || 1 + f->most > share + SLACK)
			some = keep_above(q, share);
	}
	/* none: a factor below 1, or another thread's changes */
	for (i = 0; i < q->words; i++)
		q->below[i] = some ? q->take[i] & ~q->below[i] : q->take[i];
}
