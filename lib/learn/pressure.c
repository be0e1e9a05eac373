/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pressure.c - how much has come into each worker's cache lately.
 *
 * A full cache drops as many tokens as it takes in. So for each worker the
 * tokens are summed that were new to it, and for the fleet these and the tokens
 * of all prompts. The sums fade (fade.h) with a mean of 600 s: 120 to 3,000 s
 * are as good.
 *
 *	inserted   tokens that were new to a worker; and their sum
 *	asked      tokens of all prompts
 *	hits       1 - inserted / asked: how much of this traffic is cached
 *
 * Only ratios of the sums are used: of a worker's to the mean, and of both to
 * each other.
 */
#include "pressure.h"

#include "fade.h"

#define MEAN_AGE 600.0 /* seconds */

bool
pressure_sane(const struct kvr *k)
{
	const struct region *r = k->region;
	bool good = fade_sane(r->inserted) && fade_sane(r->asked);
	uint32_t i;

	for (i = 0; i < k->layout.slots && good; i++)
		good = fade_sane(k->loads.inserted[i]);
	return good;
}

static void
scale_loads(struct kvr *k, double factor)
{
	struct region *r = k->region;
	uint32_t i;

	for (i = 0; i < k->layout.slots; i++)
		write_once_double(&k->loads.inserted[i],
		    k->loads.inserted[i] * factor);
	write_once_double(&r->inserted, r->inserted * factor);
	write_once_double(&r->asked, r->asked * factor);
}

/* Also with damage that no factor mends. */
void
pressure_empty(struct kvr *k)
{
	write_once_zeros(k->loads.inserted,
	    k->layout.slots * sizeof(k->loads.inserted[0]));
	write_once_double(&k->region->inserted, 0);
	write_once_double(&k->region->asked, 0);
}

void
pressure_recover(struct kvr *k)
{
	if (!pressure_sane(k))
		pressure_empty(k);
}

/* The factor of an amount that is added now. */
static double
weight_at(struct kvr *k, int64_t now)
{
	double ages = fade_ages(k->region->inserted_since, now, MEAN_AGE);

	if (ages <= FADE_AGES)
		return exp_of(ages);
	scale_loads(k, exp_of(-ages));
	put_once(k->region->inserted_since, now);
	return 1;
}

void
pressure_add(struct kvr *k, uint32_t slot, uint64_t fresh, uint64_t prompt,
    int64_t now)
{
	struct region *r = k->region;
	double weight = weight_at(k, now);

	if (slot >= k->layout.slots)
		return;
	write_once_double(&k->loads.inserted[slot],
	    k->loads.inserted[slot] + (double)fresh * weight);
	write_once_double(&r->inserted,
	    r->inserted + (double)fresh * weight);
	write_once_double(&r->asked, r->asked + (double)prompt * weight);
}

void
pressure_forget(struct kvr *k, uint32_t slot)
{
	if (slot < k->layout.slots)
		write_once_double(&k->loads.inserted[slot], 0);
}

double
pressure_hits(const struct kvr *k)
{
	double inserted = read_once_double(&k->region->inserted);
	double asked = read_once_double(&k->region->asked);

	return inserted >= 0 && inserted < asked ? 1 - inserted / asked : 0;
}
