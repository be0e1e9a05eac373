/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_stream.c - facts about an engine that its stream of events has taught.
 *
 * The stream belongs to the name of a worker, so it outlives resets, and is in
 * the region, so a router that starts again goes on at `next`. event.c applies
 * batches to it.
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
 *             the most that it ever held is its capacity (trust.c). A few
 *             removals may have other causes: it takes 16, and a 64th of that
 *             number. The larger of two tiers counts, since a block in the
 *             host's memory often is in the GPU's too.
 *   outlived  A cache that evicts in order of use has lost all blocks released
 *             before it stored as much as it can hold, from any router.
 *   surplus   A stream that holds more than its cache can has missed removals.
 *             The measure is the given capacity; twice of it, if no removal
 *             came before it was exceeded: it is wrong, or all are missing.
 */
#include "event_stream.h"

#include "alias.h"
#include "sat.h"

enum {
	CAUSES = KVR_DEGRADED_REPORTS + 1,
	EVICTED_MIN = 16,   /* blocks, before a capacity is believed, */
	EVICTED_SHARE = 64, /* and one in so many of the most held */
	SURPLUS_MIN = 16,   /* blocks beyond a capacity, and one in so many, */
	SURPLUS_SHARE = 8   /* that are missing removals */
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

/* Blocks beyond which removals are missing; 0: not known. */
static uint64_t
surplus_from(const struct kvr *k, uint32_t slot, const struct stream *s)
{
	uint64_t told = slot_at(k, slot)->capacity / s->block_tokens;
	uint64_t least = told + told / SURPLUS_SHARE + SURPLUS_MIN;

	if (told == 0 || s->most[KVR_TIER_HOST] > 0)
		return 0; /* blocks move, and removals name either tier */
	if (s->full > 0 && s->full <= least)
		return least;
	return 2 * sat_most(sat_least(told, BATCH_MAX), s->full);
}

bool
stream_surplus(const struct kvr *k, uint32_t slot, const struct stream *s)
{
	uint64_t from;

	if (s->state != KVR_EVENTS_COMPLETE || s->uncounted != 0 ||
	    s->block_tokens == 0)
		return false;
	from = surplus_from(k, slot, s);
	return from > 0 && s->held[KVR_TIER_GPU] > from;
}

/* ------------------------------------------------------------ scopes --- */

static uint64_t *
scope_word(const struct kvr *k, uint64_t root, uint64_t *bit)
{
	*bit = UINT64_C(1) << root % 64;
	return &k->region->scopes[root / 64 % (SCOPES / 64)];
}

static uint32_t
scopes_noted(const struct kvr *k)
{
	uint32_t i, n = 0;

	for (i = 0; i < SCOPES / 64; i++)
		n += (uint32_t)__builtin_popcountll(k->region->scopes[i]);
	return n;
}

void
scope_note(struct kvr *k, uint64_t root)
{
	uint64_t bit, *word = scope_word(k, root, &bit);

	if (k->layout.aliases == 0 || (*word & bit) != 0)
		return;
	if (scopes_noted(k) > SCOPES / 2) /* too many to tell apart */
		write_once_zeros(k->region->scopes, sizeof(k->region->scopes));
	or_once(*word, bit);
}

bool
scope_seen(const struct kvr *k, uint64_t root)
{
	uint64_t bit;
	const uint64_t *word = scope_word(k, root, &bit);

	return (*word & bit) != 0;
}

/* ------------------------------------------------------ begins and ends --- */

/* The cache is known to be empty. */
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
	s->full = 0;
	s->block_tokens = 0;
	s->pieces = s->begun = s->cut = 0;
}

void
event_begin(struct kvr *k, uint32_t name)
{
	alias_end(k, stream_at(k, name));
	write_once_zeros(stream_at(k, name), sizeof(struct stream));
}

void
event_until(struct kvr *k, uint32_t name, int64_t until)
{
	int64_t due = k->region->events_due;

	put_once(stream_at(k, name)->until, until);
	if (until > 0 && (due == 0 || until < due))
		put_once(k->region->events_due, until);
}

/* The engine has dropped all, at an unknown time. */
void
event_reset(struct kvr *k, uint32_t name)
{
	struct stream s = *stream_at(k, name);

	if (s.state == KVR_EVENTS_OFF)
		return;
	stream_forget(k, &s);
	s.state = KVR_EVENTS_DEGRADED;
	s.cause = KVR_DEGRADED_OTHER;
	s.uncounted = 1;
	write_once_words(stream_at(k, name), &s, sizeof(s));
}

/* The blocks stay on record, and age like those of other workers. */
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

/* A surplus proves the counted capacity wrong, too. */
void
event_doubt(struct kvr *k, uint32_t slot, uint32_t cause)
{
	struct stream *s = stream_at(k, slot_at(k, slot)->name);

	if (s->state == KVR_EVENTS_COMPLETE)
		put_once(s->cause, cause);
	event_degrade(k, slot);
	if (cause != KVR_DEGRADED_SURPLUS)
		return;
	write_once_zeros(s->held, sizeof(s->held));
	write_once_zeros(s->most, sizeof(s->most));
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
	    s->heard > CLOCK_MAX || s->cause >= CAUSES || s->full > SAT_MAX ||
	    s->until < 0 || s->until > CLOCK_MAX)
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

/* Will the end of its lease be noticed? */
static bool
is_due_in_time(const struct kvr *k, const struct stream *s)
{
	int64_t due = k->region->events_due;

	return s->until == 0 || (due > 0 && due <= s->until);
}

bool
event_sound(const struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.names; i++)
		if (!stream_possible(&k->streams[i]) ||
		    !is_due_in_time(k, &k->streams[i]))
			return false;
	return true;
}

void
event_recover(struct kvr *k)
{
	uint32_t i;

	put_once(k->region->events_due, 0);
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
		event_until(k, i + 1, s->until);
	}
	alias_empty(k);
}
