/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.c - learns from the events of an engine's cache.
 *
 * Each worker has a stream of batches, numbered from 0. A batch is applied only
 * if all before it were:
 *
 *   next = 7    batch 7   applied, next = 8
 *               batch 9   a gap: nothing is applied; the caller gets 7 and 8,
 *                         or reports their loss
 *               batch 5   a duplicate
 *               batch 6   a duplicate if its digest is that of the batch 6 that
 *                         was applied; else the engine has restarted, and its
 *                         batches 0 to 5 are missing
 *               batch 0   a duplicate, or the engine has restarted: the same
 *
 *   off --batch 0--> complete --lost--> degraded --cleared, restarted--.
 *                       ^                                              |
 *                       `----------------------------------------------'
 *
 * The stream is in the region: event_stream.c keeps it, and counts by it.
 *
 * UNCOUNTED is a stream if its sums are not the content of the cache: something
 * was lost, blocks that are present are announced again, or blocks have several
 * sizes. A capacity found before then stays, and nothing else counts until all
 * is dropped.
 *
 * The sums are made without the lock, which is held for a constant time. Where
 * blocks are known by name, a long batch is taken in pieces: event_piece.c.
 */
#include "event.h"

#include "alias.h"
#include "event_piece.h"
#include "load.h"
#include "name.h"
#include "retain.h"
#include "sat.h"
#include "survival.h"
#include "trust.h"

enum {
	FULL_EVICTED = 16, /* blocks removed: the cache has been full */
	SILENT_MAX = 64    /* streams that are given up by one call */
};

/* ---------------------------------------------------------- the stream --- */

static bool
stream_empty(const struct stream *s)
{
	static const uint64_t none[TIERS];

	return s->uncounted == 0 && memcmp(s->held, none, sizeof(none)) == 0;
}

/*
 * The capacity stays known only if blocks have the size that they had. An empty
 * cache may have others, which are counted anew.
 */
static bool
same_blocks(struct stream *s, const struct event_sum *sum)
{
	if (s->block_tokens == 0)
		s->block_tokens = sum->block_tokens;
	if (sum->uneven)
		return false;
	if (sum->block_tokens == 0 || sum->block_tokens == s->block_tokens)
		return true;
	if (s->block_tokens != 0 && (!stream_empty(s) || s->aliases > 0))
		return false;
	if (s->block_tokens != 0) {
		memset(s->most, 0, sizeof(s->most));
		memset(s->evicted, 0, sizeof(s->evicted));
		s->full = 0;
	}
	s->block_tokens = sum->block_tokens;
	return true;
}

static void
stream_count(struct stream *s, const struct event_batch *b,
    const struct event_sum *sum)
{
	uint32_t i;

	if (sum->cleared != 0)
		stream_emptied(s);
	if (!same_blocks(s, sum) || (b->head.flags & KVR_BATCH_FULL) != 0 ||
	    s->state != KVR_EVENTS_COMPLETE)
		s->uncounted = 1;
	s->batches++;
	s->stored += sum->all_stored;
	s->removed += sum->all_removed;
	s->refused += sum->refused;
	s->cleared += sum->cleared;
	for (i = 0; i < TIERS && s->uncounted == 0; i++) {
		s->most[i] = sat_most(s->most[i],
		    sat_add(s->held[i], sum->peak[i]));
		s->held[i] = sat_sub(sat_add(s->held[i], sum->stored[i]),
		    sum->removed[i]);
		s->evicted[i] = sat_add(s->evicted[i], sum->removed[i]);
	}
	if (s->full == 0 && s->evicted[KVR_TIER_GPU] >= FULL_EVICTED)
		s->full = s->most[KVR_TIER_GPU];
}

/* All is known from here on, and by its names if they are wanted. */
static void
stream_complete(struct kvr *k, uint32_t slot, struct stream *s)
{
	s->state = KVR_EVENTS_COMPLETE;
	s->cause = KVR_DEGRADED_OTHER;
	alias_end(k, s);
	s->life = event_wanted(k, slot) ? alias_life(k) : 0;
	s->copies = COPIES_NONE;
	s->lacks = 0;
}

/* Returns whether the batch follows the last one; if so it is counted. */
static bool
stream_take(struct kvr *k, uint32_t slot, struct stream *s,
    const struct event_batch *b, const struct event_sum *sum,
    uint32_t outcome)
{
	uint64_t seq = b->head.seq;

	if (outcome == KVR_EVENTS_RESTARTED) {
		stream_forget(k, s);
		s->restarts++;
		s->next = s->first = s->last = 0;
		s->state = KVR_EVENTS_DEGRADED;
		s->cause = KVR_DEGRADED_OTHER;
		if (seq != 0 && sum->restarted == 0)
			return false;
	}
	if (seq == 0 || sum->cleared != 0)
		stream_complete(k, slot, s);
	s->first = seq == 0 ? b->head.digest : s->first;
	s->last = b->head.digest;
	s->next = seq + 1;
	s->pieces = s->begun = s->cut = 0;
	stream_count(s, b, sum);
	return true;
}

static void
stream_put(struct kvr *k, uint32_t slot, const struct stream *s)
{
	write_once_words(stream_at(k, slot_at(k, slot)->name), s, sizeof(*s));
}

/* ---------------------------------------------------- learning from it --- */

/* Are its sums the content of the cache, and is it known how much came? */
static bool
is_counted(const struct stream *s)
{
	return s->state == KVR_EVENTS_COMPLETE && s->uncounted == 0 &&
	    s->block_tokens > 0;
}

/*
 * Blocks released before all of the cache was filled anew are gone: whenever a
 * quarter has been, the time is noted.
 */
static void
note_outlived(struct kvr *k, uint32_t slot, uint64_t blocks)
{
	const struct stream *s = stream_at(k, slot_at(k, slot)->name);
	struct slot *p = slot_at(k, slot);
	uint64_t room = event_capacity(k, slot);
	uint32_t i;

	if (p->mode != KVR_RETAIN_CAPACITY || room == 0 ||
	    trust_room(k, slot) != room)
		return;
	put_once(p->stored, sat_add(p->stored, blocks * s->block_tokens));
	if (p->stored < room / FILL_QUARTERS)
		return;
	put_once(p->stored, 0);
	put_once(p->outlived, p->filled[FILL_QUARTERS - 1]);
	for (i = FILL_QUARTERS - 1; i > 0; i--)
		put_once(p->filled[i], p->filled[i - 1]);
	put_once(p->filled[0], p->clock);
}

/* The stream has changed, and so may have how the worker is retained. */
static void
settle_worker(struct kvr *k, uint32_t slot, bool known)
{
	if ((event_capacity(k, slot) > 0) != known)
		trust_told(k, slot);
	retain_decide(k, slot);
	retain_evict_lost(k, slot);
	load_recount(k, slot);
}

bool
event_take(struct kvr *k, uint32_t slot, const struct stream *before,
    const struct event_batch *b, const struct event_sum *sum,
    uint32_t outcome, int64_t now)
{
	const struct stream *is = stream_at(k, slot_at(k, slot)->name);
	bool known = event_capacity(k, slot) > 0, taken = false;
	struct stream s = *before;

	if (outcome == KVR_EVENTS_GAP)
		return false;
	s.life = is->life; /* which a reset has ended */
	s.aliases = is->aliases;
	if (outcome != KVR_EVENTS_DUPLICATE)
		taken = stream_take(k, slot, &s, b, sum, outcome);
	s.heard = now;
	stream_put(k, slot, &s);
	if (outcome == KVR_EVENTS_DUPLICATE)
		return false;
	if (taken && (b->head.flags & KVR_BATCH_PAST) == 0 && is_counted(&s))
		note_outlived(k, slot, sum->volume);
	if (taken && (b->head.seq == 0 || sum->cleared != 0))
		trust_anew(k, slot);
	if (taken && event_tracks(k, slot) && stream_surplus(k, slot, &s))
		event_doubt(k, slot, KVR_DEGRADED_SURPLUS);
	if (taken)
		event_first(k, slot, b, outcome == KVR_EVENTS_RESTARTED ? 0
		    : before->last, now);
	settle_worker(k, slot, known);
	return taken;
}

void
event_lost(struct kvr *k, uint32_t slot, uint64_t next)
{
	struct stream s = *stream_at(k, slot_at(k, slot)->name);

	if (s.state == KVR_EVENTS_OFF)
		s.heard = -1;
	s.state = KVR_EVENTS_DEGRADED;
	s.cause = KVR_DEGRADED_OTHER;
	alias_end(k, &s);
	s.uncounted = 1;
	s.lost++;
	if (s.next < next) {
		s.next = next;
		s.last = s.pieces = s.begun = s.cut = 0;
	}
	stream_put(k, slot, &s);
	retain_decide(k, slot);
	load_recount(k, slot);
}

void
event_off(struct kvr *k, uint32_t slot)
{
	bool known = event_capacity(k, slot) > 0;

	event_begin(k, slot_at(k, slot)->name);
	settle_worker(k, slot, known);
}

/* The time of its caller is over. */
static void
end_silent(struct kvr *k, uint32_t name)
{
	uint32_t slot = name_at(k, name)->slot;

	put_once(stream_at(k, name)->until, 0);
	if (slot >= slots_used(k) || !slot_in_use(k, slot) ||
	    slot_at(k, slot)->name != name)
		return;
	event_doubt(k, slot, KVR_DEGRADED_SILENT);
	retain_decide(k, slot);
	load_recount(k, slot);
}

void
event_expire(struct kvr *k, int64_t now)
{
	int64_t due = k->region->events_due, next = 0;
	uint32_t name, left = SILENT_MAX;

	if (due == 0 || due > now)
		return;
	for (name = 1; name <= k->layout.names && left > 0; name++) {
		int64_t until = stream_at(k, name)->until;

		if (until > 0 && until <= now) {
			end_silent(k, name);
			left--;
		} else if (until > 0 && (next == 0 || until < next)) {
			next = until;
		}
	}
	if (left > 0) /* else the next call goes on */
		put_once(k->region->events_due, next);
}

/* The index has been emptied: names of blocks mean nothing any more. */
void
event_emptied(struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < slots_used(k); i++)
		if (slot_in_use(k, i) && event_tracks(k, i))
			retain_degrade(k, i);
}
