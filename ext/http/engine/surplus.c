/* SPDX-License-Identifier: BSD-2-Clause */
/* surplus.c - see surplus.h. */
#include "surplus.h"

#include <string.h>

/* The library refuses counts from 2^60 on. */
#define MOST 0x1p56

void
surplus_asked(struct surplus *s, uint64_t booked)
{
	if (s->booked < booked)
		s->booked = booked;
}

uint64_t
surplus_answered(struct surplus *s, uint64_t booked,
    const struct engine_load *said)
{
	uint64_t there = (uint64_t)said->running + said->waiting, more, least;

	surplus_asked(s, booked);
	more = there > s->booked ? there - s->booked : 0;
	least = more < s->more ? more : s->more;
	s->more = more;
	s->booked = booked;
	return least;
}

static uint64_t
bounded_count(double value)
{
	return value > 0 && value < MOST ? (uint64_t)value :
	    value > 0 ? (uint64_t)MOST : 0;
}

void
surplus_load(uint64_t requests, const struct engine_load *said,
    const struct kvr_worker_stats *so_far, double block_tokens,
    uint64_t capacity, struct kvr_load *out)
{
	const double there = (double)said->running + (double)said->waiting;
	const double n = (double)so_far->lease_opens;
	double prompt = 0, fresh = 0, waiting = 0;

	if (n > 0) {
		prompt = (double)so_far->prompt_tokens / n;
		fresh = prompt - (double)so_far->predicted_tokens / n;
	}
	if (there > 0)
		waiting = (double)requests * (double)said->waiting / there;
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->requests = requests;
	out->prefill_tokens = bounded_count(waiting * fresh);
	if (!(block_tokens > 0))
		return;
	out->active_blocks = bounded_count((double)requests * prompt /
	    block_tokens);
	out->used_blocks = bounded_count(said->usage * (double)capacity /
	    block_tokens);
}
