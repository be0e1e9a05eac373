/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_stream.c - facts about an engine that its stream of events has taught.
 *
 * The stream belongs to the name of a worker, so it outlives resets, and is in
 * the region, so a router that starts again goes on at `next`. What a batch
 * does to it: event.c.
 *
 * COUNTS. Only numbers of blocks are used. They need no tokens, so they serve
 * every engine, also where prompts are bytes:
 *
 *   held    _______________________ most: the cache was full
 *          /      \/\/\/\/\/\/
 *         /      ^ removals set in
 *        /
 *
 *   capacity  An engine removes blocks when it needs their room. From then on
 *             the most that it ever held is what it can hold (trust.c). A few
 *             removals may have other causes: it takes 16, and a 64th of that
 *             number. Of two tiers the larger counts, since a block in the
 *             host's memory often is in the GPU's too.
 *   outlived  A cache that evicts in order of use has lost what was released
 *             before it stored as much as it can hold, from any router.
 */
#include "event_stream.h"

#include "alias.h"
#include "sat.h"

enum {
	EVICTED_MIN = 16,   /* blocks, before a capacity is believed, */
	EVICTED_SHARE = 64  /* and one in so many of the most held */
};

/* ------------------------------------------------------ blocks by name --- */

bool
event_wanted(const struct kvr *k, uint32_t slot)
{
	return k->layout.aliases > 0 &&
	    read_once(slot_at(k, slot)->retain) == KVR_RETAIN_EVENTS;
}

bool
event_tracks(const struct kvr *k, uint32_t slot)
{
	return k->layout.aliases > 0 && read_once(stream_at(k,
	    read_once(slot_at(k, slot)->name))->life) != 0;
}

/* -------------------------------------------------------------- counts --- */

static bool
set_in(const struct stream *s, uint32_t tier)
{
	uint64_t evicted = read_once(s->evicted[tier]);

	return evicted >= EVICTED_MIN &&
	    evicted >= read_once(s->most[tier]) / EVICTED_SHARE;
}

uint64_t
event_capacity(const struct kvr *k, uint32_t slot)
{
	const struct stream *s =
	    stream_at(k, read_once(slot_at(k, slot)->name));
	uint64_t blocks;

	if (!set_in(s, KVR_TIER_GPU))
		return 0;
	blocks = sat_most(read_once(s->most[KVR_TIER_GPU]),
	    read_once(s->most[KVR_TIER_HOST]));
	return sat_least(blocks, BATCH_MAX) * read_once(s->block_tokens);
}

uint32_t
event_block(const struct kvr *k, uint32_t slot)
{
	return read_once(stream_at(k,
	    read_once(slot_at(k, slot)->name))->block_tokens);
}

uint64_t
event_held(const struct kvr *k, uint32_t slot)
{
	const struct stream *s =
	    stream_at(k, read_once(slot_at(k, slot)->name));

	return read_once(s->uncounted) == 0 ? read_once(s->held[KVR_TIER_GPU])
	    : 0;
}

/* ------------------------------------------------------ begins and ends --- */

/* What the cache holds is known again: nothing. */
void
stream_emptied(struct stream *s)
{
	memset(s->held, 0, sizeof(s->held));
	s->uncounted = 0;
}

/* Another engine, maybe with another cache. */
void
stream_forget(struct kvr *k, struct stream *s)
{
	stream_emptied(s);
	alias_end(k, s);
	memset(s->most, 0, sizeof(s->most));
	memset(s->evicted, 0, sizeof(s->evicted));
	s->block_tokens = 0;
	s->pieces = s->begun = 0;
}

void
event_begin(struct kvr *k, uint32_t name)
{
	alias_end(k, stream_at(k, name));
	write_once_zeros(stream_at(k, name), sizeof(struct stream));
}

/* A caller knows that the engine has dropped all, and when is not known. */
void
event_reset(struct kvr *k, uint32_t name)
{
	struct stream s = *stream_at(k, name);

	if (s.state == KVR_EVENTS_OFF)
		return;
	stream_forget(k, &s);
	s.state = KVR_EVENTS_DEGRADED;
	s.uncounted = 1;
	write_once_words(stream_at(k, name), &s, sizeof(s));
}

/* Its blocks stay on record, and age like those of other workers. */
void
event_degrade(struct kvr *k, uint32_t slot)
{
	struct stream *s = stream_at(k, slot_at(k, slot)->name);

	alias_end(k, s);
	if (s->state != KVR_EVENTS_COMPLETE)
		return;
	put_once(s->state, (uint8_t)KVR_EVENTS_DEGRADED);
	put_once(s->uncounted, (uint8_t)1);
}

void
event_crowded(struct kvr *k, uint32_t slot)
{
	struct stream *s = stream_at(k, slot_at(k, slot)->name);

	add_once(s->crowded, 1);
	put_once(s->lacks, (uint8_t)1);
}

/* -------------------------------------------------------------- damage --- */

static bool
stream_possible(const struct stream *s)
{
	uint32_t i;

	if (s->state > KVR_EVENTS_DEGRADED || s->uncounted > 1 ||
	    s->copies > COPIES_LISTED || s->lacks > 1 ||
	    s->block_tokens > BLOCK_BYTES_MAX || s->heard < -1 ||
	    s->heard > CLOCK_MAX)
		return false;
	for (i = 0; i < TIERS; i++)
		if (s->held[i] > s->most[i] || s->most[i] > SAT_MAX ||
		    s->evicted[i] > SAT_MAX)
			return false;
	if (s->life > 0 && s->state != KVR_EVENTS_COMPLETE)
		return false;
	if (s->state == KVR_EVENTS_OFF)
		return struct_known(s, sizeof(*s), 0);
	return s->state == KVR_EVENTS_DEGRADED || (s->next | s->pieces) > 0;
}

bool
event_sound(const struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.names; i++)
		if (!stream_possible(&k->streams[i]))
			return false;
	return true;
}

void
event_recover(struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.names; i++) {
		struct stream *s = &k->streams[i];

		if (!stream_possible(s))
			event_begin(k, i + 1);
		if (s->state == KVR_EVENTS_COMPLETE) {
			put_once(s->state, (uint8_t)KVR_EVENTS_DEGRADED);
			put_once(s->uncounted, (uint8_t)1);
		}
		write_once(s->life, 0);
		write_once(s->aliases, 0);
	}
	alias_empty(k);
}
