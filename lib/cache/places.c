/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * places.c - how many requests run on a worker at a time.
 *
 * An engine runs a limited number of sequences: 4 to 8 with llama.cpp,
 * max_num_seqs with vLLM. One more request waits until one of them ends,
 * however fast prefill is:
 *
 *	wait = (running - places + 1) * service / places
 *
 * with the mean time of service from the first token of a request to its end:
 * so often one of the places becomes free.
 *
 * The number of places is told (sequences of struct kvr_worker), or learnt.
 * While requests wait, a limited engine runs exactly as many as it has places,
 * each time it starts one: `most`. An engine that is busy otherwise runs now
 * more, now fewer. So each first token that comes while others wait votes for
 * `most` or against it, and after some votes it is taken for the limit.
 *
 *	running == most      for it
 *	running < most - 1   twice against it
 *	running > most       many times against it: it was too low
 *
 * Without votes left `most` begins anew at what runs now.
 */
#include "places.h"

enum { VOTES = 12, VOTES_MAX = 64, VOTES_ABOVE = 16 };
#define SERVICE_MAX 1e6 /* seconds */
#define SERVICE_SHARE 0.05 /* of the latest request in the mean */

static bool
sane(const struct slot *s)
{
	return s->service >= 0 && s->service <= SERVICE_MAX &&
	    s->votes <= VOTES_MAX;
}

/* Requests that run at a time: told, or learnt; 0: not known. */
static uint32_t
places_of(const struct slot *s)
{
	return s->sequences != 0 ? s->sequences
	    : s->votes >= VOTES ? s->most : 0;
}

static double
hold_of(const struct slot *s)
{
	uint32_t places = places_of(s);

	return places != 0 ? s->service / places : 0;
}

/* Whether all learnt values are possible, and what choices read is the same. */
bool
places_sane(const struct kvr *k)
{
	const struct loads *l = &k->loads;
	uint32_t i = 0;

	while (i < k->layout.slots && sane(&k->slots[i]) &&
	    l->places[i] == places_of(&k->slots[i]) &&
	    l->hold[i] == hold_of(&k->slots[i]))
		i++;
	return i == k->layout.slots;
}

/* Resets the learnt values that damage made impossible. */
void
places_recover(struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.slots; i++)
		if (sane(&k->slots[i]))
			places_publish(k, i);
		else
			places_forget(k, i);
}

void
places_forget(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);

	put_once(s->most, 0);
	put_once(s->votes, 0);
	put_once(s->service, 0);
	places_publish(k, slot);
}

/* Copies to the loads what choices read of a slot. */
void
places_publish(struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);

	if (slot >= k->layout.slots)
		return;
	write_once(k->loads.places[slot], places_of(s));
	write_once_double(&k->loads.hold[slot], hold_of(s));
}

static void
vote(struct slot *s, uint32_t running)
{
	uint32_t against = 0;

	if (running == s->most)
		add_once(s->votes, s->votes < VOTES_MAX);
	else if (running > s->most)
		against = VOTES_ABOVE;
	else if (running + 1 < s->most)
		against = 2;
	if (against > 0)
		put_once(s->votes, s->votes > against ? s->votes - against : 0);
	if (s->votes == 0)
		put_once(s->most, running);
}

/* The first token of a request has come, which still counts as waiting. */
void
places_first_token(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);

	if (s->prefilling < 2 || s->requests < s->prefilling)
		return;
	vote(s, s->requests - s->prefilling + 1);
	places_publish(k, slot);
}

/* A request has ended, so many seconds after its first token. */
void
places_ended(struct kvr *k, uint32_t slot, double seconds)
{
	struct slot *s = slot_at(k, slot);

	if (!(seconds >= 0 && seconds <= SERVICE_MAX)) /* damaged */
		return;
	add_once(s->service,
	    (seconds - s->service) * (s->service > 0 ? SERVICE_SHARE : 1));
	places_publish(k, slot);
}

/* Whether more requests are there than run at a time. */
bool
places_taken(const struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);
	uint32_t places = places_of(s);

	return places != 0 && s->requests > places;
}
