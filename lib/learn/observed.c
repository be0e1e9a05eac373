/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * observed.c - the load of requests whose end is not reported.
 *
 * kvr_observe reports that a prompt was sent to a worker, and no call follows.
 * Were it no load, a worker that has the beginning of all prompts would always
 * seem free, and get all of them. So an observed request counts as one that
 * runs, and its prompt as read, in sums that fade (fade.h) with a mean of
 * observed_seconds of the policy, 10 s. rate.c assumes when the prefill of its
 * new tokens ends. These are three numbers for each worker, whatever was
 * observed.
 *
 * The reference has no such load, and KVR_COST_DYNAMO does not read it.
 */
#include "observed.h"

#include "fade.h"
#include "rate.h"

bool
observed_sane(const struct kvr *k)
{
	const struct loads *l = &k->loads;
	bool good = true;
	uint32_t i;

	for (i = 0; i < k->layout.slots && good; i++)
		good = fade_sane(l->observed_requests[i]) &&
		    fade_sane(l->observed_reading[i]);
	return good;
}

void
observed_forget(struct kvr *k, uint32_t slot)
{
	if (slot >= k->layout.slots)
		return;
	write_once_double(&k->loads.observed_requests[slot], 0);
	write_once_double(&k->loads.observed_reading[slot], 0);
}

void
observed_empty(struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.slots; i++)
		observed_forget(k, i);
}

void
observed_recover(struct kvr *k)
{
	if (!observed_sane(k))
		observed_empty(k);
}

static double
ages_at(const struct kvr *k, int64_t now)
{
	return fade_ages(read_once(k->region->observed_since), now,
	    read_once_double(&k->region->policy.observed_seconds));
}

double
observed_left(const struct kvr *k, int64_t now)
{
	return exp_of(-ages_at(k, now));
}

static void
scale_sums(struct kvr *k, double factor)
{
	struct loads *l = &k->loads;
	uint32_t i;

	for (i = 0; i < k->layout.slots; i++) {
		write_once_double(&l->observed_requests[i],
		    l->observed_requests[i] * factor);
		write_once_double(&l->observed_reading[i],
		    l->observed_reading[i] * factor);
	}
}

/* The factor of an amount that is added now. */
static double
weight_at(struct kvr *k, int64_t now)
{
	double ages = ages_at(k, now);

	if (ages <= FADE_AGES)
		return exp_of(ages);
	scale_sums(k, exp_of(-ages));
	write_once(k->region->observed_since, now);
	return 1;
}

void
observed_add(struct kvr *k, uint32_t slot, uint64_t fresh, uint64_t prompt,
    int64_t now)
{
	double weight = weight_at(k, now);
	struct loads *l = &k->loads;

	if (slot >= k->layout.slots)
		return;
	rate_book_observed(k, slot, fresh, now);
	write_once_double(&l->observed_requests[slot],
	    l->observed_requests[slot] + weight);
	write_once_double(&l->observed_reading[slot],
	    l->observed_reading[slot] + (double)prompt * weight);
}
