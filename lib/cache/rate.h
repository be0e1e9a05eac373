/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate.h - prefill rates and backlogs.
 */
#ifndef KVR_RATE_H
#define KVR_RATE_H

#include "region.h"

/* Initial rate of the fleet: a mid-range GPU with a mid-size model. */
#define RATE_FIRST_SECONDS 2.0
#define RATE_FIRST_TOKENS (17000.0 * RATE_FIRST_SECONDS)

void rate_recover(struct kvr *k);
bool rate_sane(const struct kvr *k);
double rate_fleet(const struct kvr *k);
void rate_forget(struct kvr *k, uint32_t slot);
void rate_publish(struct kvr *k, uint32_t slot);
void rate_ended(struct kvr *k, bool spoken);
double rate_arrivals(const struct kvr *k, int64_t now);
void rate_book(struct kvr *k, uint32_t slot, uint64_t tokens, int64_t now,
    bool speaks);
void rate_unbook(struct kvr *k, uint32_t slot, int64_t now, bool speaks);
void rate_learn(struct kvr *k, uint32_t slot, uint64_t tokens,
    int64_t opened, int64_t now);

/* What choices read: it needs no lock, and is inline as they read it often. */

#define SPOKEN_MIN 0.9 /* of requests, with a first token */

/* Whether nearly all requests have a first token, as far as is known here. */
static inline bool
rate_spoken(const struct kvr *k)
{
	return read_once_double(&k->region->spoken) > SPOKEN_MIN;
}

/* Seconds of prefill that wait on a worker: booked by leases, and external. */
static inline double
rate_backlog(const struct kvr *k, uint32_t slot, int64_t now)
{
	int64_t free_at = read_once(k->loads.free_at[slot]);
	double pace = read_once_double(&k->loads.pace[slot]);
	double outside = read_once_double(&k->loads.waiting[slot]) * pace;

	/* unsigned: damaged times must not overflow */
	return free_at > now ? (double)((uint64_t)free_at - (uint64_t)now) *
	    1e-9 + outside : outside;
}

/* Seconds for which requests have waited beyond what their prefill explains. */
static inline double
rate_late(const struct kvr *k, uint32_t slot, int64_t now)
{
	int64_t free_at = read_once(k->loads.free_at[slot]);

	if (free_at >= now || !rate_spoken(k) ||
	    read_once(k->loads.prefilling[slot]) == 0)
		return 0;
	return (double)((uint64_t)now - (uint64_t)free_at) * 1e-9;
}

/* Seconds until the prefill of a new request can begin. */
static inline double
rate_wait(const struct kvr *k, uint32_t slot, int64_t now)
{
	return rate_backlog(k, slot, now) + rate_late(k, slot, now);
}

#endif
