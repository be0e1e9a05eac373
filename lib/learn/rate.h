/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate.h - prefill rates and backlogs.
 */
#ifndef KVR_RATE_H
#define KVR_RATE_H

#include "pair.h"
#include "region.h"

/* Initial rate of the fleet: a mid-range GPU with a mid-size model. */
#define RATE_FIRST_SECONDS 2.0
#define RATE_FIRST_TOKENS (17000.0 * RATE_FIRST_SECONDS)

void rate_recover(struct kvr *k);
bool rate_sane(const struct kvr *k);
double rate_fleet(const struct kvr *k);
void rate_forget(struct kvr *k, uint32_t slot);
void rate_publish(struct kvr *k, uint32_t slot);
/* A change of one pace, or time, changes others: publishes one, in turn. */
void rate_publish_next(struct kvr *k);
void rate_book_silent(struct kvr *k, uint32_t slot, uint64_t tokens,
    int64_t now);
void rate_book_observed(struct kvr *k, uint32_t slot, uint64_t tokens,
    int64_t now);
void rate_idle(struct kvr *k, uint32_t slot);
void rate_unbook_silent(struct kvr *k, uint32_t slot, int64_t now);
void rate_learn(struct kvr *k, uint32_t slot, uint64_t tokens,
    int64_t opened, int64_t now);

static inline __attribute__((always_inline)) double
seconds_until(int64_t until, int64_t now)
{
	/* unsigned: damaged times must not overflow */
	uint64_t left = until > now ? (uint64_t)until - (uint64_t)now : 0;

	return (double)left * 1e-9;
}

/*
 * Seconds of prefill that are booked on a worker. Choices need no lock for it,
 * and it is inline as they read it often.
 */
static inline __attribute__((always_inline)) double
rate_backlog_of(const struct loads *l, uint32_t slot, int64_t now)
{
	return read_once_double(&l->booked[slot]) *
	    read_once_double(&l->pace[slot]) +
	    seconds_until(read_once(l->silent_until[slot]), now) +
	    seconds_until(read_once(l->observed_until[slot]), now);
}

/* Those of two workers. Mostly all times are past, and not computed with. */
static inline __attribute__((always_inline)) pair
rate_backlog_of_two(const struct loads *l, uint32_t slot, int64_t now)
{
	int64_t silent[] = { read_once(l->silent_until[slot]),
		read_once(l->silent_until[slot + 1]) };
	int64_t observed[] = { read_once(l->observed_until[slot]),
		read_once(l->observed_until[slot + 1]) };
	pair wait = pair_read(&l->booked[slot]) * pair_read(&l->pace[slot]);

	if (silent[0] <= now && silent[1] <= now && observed[0] <= now &&
	    observed[1] <= now)
		return wait;
	wait += (pair){ seconds_until(silent[0], now),
		seconds_until(silent[1], now) };
	return wait + (pair){ seconds_until(observed[0], now),
		seconds_until(observed[1], now) };
}

static inline double
rate_backlog(const struct kvr *k, uint32_t slot, int64_t now)
{
	return rate_backlog_of(&k->loads, slot, now);
}

#endif
