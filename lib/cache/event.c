/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.c - learns from what an engine itself says of its cache.
 *
 * Each worker has a stream of batches, numbered from 0. A batch is applied only
 * if all before it were:
 *
 *   next = 7    batch 7   applied, next = 8
 *               batch 9   a gap: nothing is applied; the caller gets 7 and 8,
 *                         or says that they are lost
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
 * The stream belongs to the name, so it outlives resets, and is in the region,
 * so a router that starts again goes on at `next`.
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
 *
 * UNCOUNTED is a stream if its sums do not say what the cache holds: something
 * was lost, blocks that are present are announced again, or blocks have several
 * sizes. Then a capacity found before stays, and nothing else counts until all
 * is dropped.
 *
 * The sums are made without the lock, which is held for a constant time. Where
 * blocks are known by name, a long batch is taken in pieces: event_piece.c.
 */
#include "event.h"

#include "alias.h"
#include "event_piece.h"
#include "hold.h"
#include "retain.h"
#include "survival.h"
#include "trust.h"
#include "worker.h"

enum {
	EVICTED_MIN = 16,   /* blocks, before a capacity is believed, */
	EVICTED_SHARE = 64  /* and one in so many of the most held */
};
/* Of one batch, in blocks; and of any sum. */
#define BATCH_MAX (UINT64_C(1) << 40)
#define SUM_MAX (UINT64_C(1) << 62)

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t
plus(uint64_t sum, uint64_t more)
{
	return least(least(sum, SUM_MAX) + least(more, SUM_MAX), SUM_MAX);
}

static uint64_t
minus(uint64_t sum, uint64_t less)
{
	return sum > less ? sum - less : 0;
}

/* ---------------------------------------------------------- the sums --- */

static bool
within(uint64_t at, uint64_t n, uint64_t all)
{
	return at <= all && n <= all - at;
}

/* All before it is void. */
static void
sum_drop(struct event_sum *sum)
{
	memset(sum->stored, 0, sizeof(sum->stored));
	memset(sum->removed, 0, sizeof(sum->removed));
	memset(sum->peak, 0, sizeof(sum->peak));
	sum->block_tokens = 0;
	sum->uneven = false;
}

static void
sum_stored(struct event_sum *sum, const struct kvr_event *e)
{
	if (e->block_tokens > BLOCK_BYTES_MAX || (e->block_tokens != 0 &&
	    sum->block_tokens != 0 && e->block_tokens != sum->block_tokens)) {
		sum->uneven = true;
		sum->refused++;
		return;
	}
	if (e->block_tokens != 0)
		sum->block_tokens = e->block_tokens;
	sum->stored[e->tier] = plus(sum->stored[e->tier], e->hashes);
	sum->peak[e->tier] = most(sum->peak[e->tier],
	    minus(sum->stored[e->tier], sum->removed[e->tier]));
	sum->all_stored = plus(sum->all_stored, e->hashes);
	if (e->tier == KVR_TIER_GPU)
		sum->volume = plus(sum->volume, e->hashes);
}

static void
sum_event(struct event_sum *sum, const struct kvr_event *e)
{
	switch (e->tier < TIERS ? e->kind : 0) {
	case KVR_EVENT_STORED:
		sum_stored(sum, e);
		break;
	case KVR_EVENT_REMOVED:
		sum->removed[e->tier] = plus(sum->removed[e->tier], e->hashes);
		sum->all_removed = plus(sum->all_removed, e->hashes);
		break;
	case KVR_EVENT_CLEARED:
		sum->cleared++;
		sum_drop(sum);
		break;
	case KVR_EVENT_RESTARTED:
		memset(sum, 0, sizeof(*sum));
		sum->restarted = 1;
		break;
	default:
		sum->refused++;
	}
}

int
event_get(const struct event_batch *b, size_t i, struct kvr_event *e)
{
	const char *from = (const char *)b->events + i * b->element;
	size_t size;
	int error;

	memcpy(&size, from, sizeof(size));
	if (size > b->element)
		return KVR_EINVAL;
	(void)kvr_event_init(e, sizeof(*e));
	error = struct_get(e, sizeof(*e), from);
	if (error != KVR_OK)
		return error;
	return within(e->hashes_at, e->hashes, b->n_hashes) &&
	    within(e->tokens_at, e->tokens,
	    (e->flags & KVR_EVENT_LOCALS) != 0 ? b->n_hashes : b->n_tokens)
	    ? KVR_OK : KVR_EINVAL;
}

int
event_sum(const struct event_batch *b, struct event_sum *sum)
{
	struct kvr_event e;
	size_t i;
	int error;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < b->n; i++) {
		error = event_get(b, i, &e);
		if (error != KVR_OK)
			return error;
		sum_event(sum, &e);
	}
	sum->volume = least(sum->volume, BATCH_MAX);
	return KVR_OK;
}

size_t
event_first_valid(const struct event_batch *b)
{
	struct kvr_event e;
	size_t i;

	for (i = b->n; i > 0; i--)
		if (event_get(b, i - 1, &e) == KVR_OK &&
		    (e.kind == KVR_EVENT_CLEARED ||
		    e.kind == KVR_EVENT_RESTARTED))
			break;
	return i;
}

/* ---------------------------------------------------------- the stream --- */

/* Was another batch of this number applied? If one has no digest: `unknown`. */
static uint32_t
compare(uint64_t applied, uint64_t digest, uint32_t unknown)
{
	if (applied == 0 || digest == 0)
		return unknown;
	return applied == digest ? KVR_EVENTS_DUPLICATE : KVR_EVENTS_RESTARTED;
}

uint32_t
event_outcome(const struct stream *s, const struct event_batch *b,
    const struct event_sum *sum)
{
	uint64_t seq = b->head.seq;

	if (sum->restarted != 0)
		return KVR_EVENTS_RESTARTED;
	if (s->pieces > 0 && seq == s->next && compare(s->begun,
	    b->head.digest, seq == 0 ? KVR_EVENTS_RESTARTED
	    : KVR_EVENTS_DUPLICATE) == KVR_EVENTS_RESTARTED)
		return KVR_EVENTS_RESTARTED; /* it is not what was begun */
	if (seq >= s->next)
		return seq == s->next ? KVR_EVENTS_APPLIED : KVR_EVENTS_GAP;
	if (seq == 0)
		return compare(s->first, b->head.digest,
		    KVR_EVENTS_RESTARTED);
	if (seq == s->next - 1)
		return compare(s->last, b->head.digest, KVR_EVENTS_DUPLICATE);
	return KVR_EVENTS_DUPLICATE;
}

/* Is nothing known to be in the cache when this batch begins? */
static bool
anew(const struct event_sum *sum, uint32_t outcome)
{
	return outcome == KVR_EVENTS_RESTARTED ||
	    (outcome == KVR_EVENTS_APPLIED && sum->cleared != 0);
}

bool
event_resets(const struct event_batch *b, const struct event_sum *sum,
    uint32_t outcome)
{
	return anew(sum, outcome) && (b->head.flags & KVR_BATCH_PAST) == 0;
}

bool
event_empties(const struct kvr *k, uint32_t slot, const struct event_batch *b,
    const struct event_sum *sum, uint32_t outcome)
{
	return hold_wanted(k, slot) && (anew(sum, outcome) ||
	    (outcome == KVR_EVENTS_APPLIED && b->head.seq == 0));
}

/* What the cache holds is known again: nothing. */
static void
stream_emptied(struct stream *s)
{
	memset(s->held, 0, sizeof(s->held));
	s->uncounted = 0;
}

/* Another engine, maybe with another cache. */
static void
stream_forget(struct kvr *k, struct stream *s)
{
	stream_emptied(s);
	alias_end(k, s);
	memset(s->most, 0, sizeof(s->most));
	memset(s->evicted, 0, sizeof(s->evicted));
	s->block_tokens = 0;
	s->pieces = s->begun = 0;
}

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
		s->most[i] = most(s->most[i],
		    plus(s->held[i], sum->peak[i]));
		s->held[i] = minus(plus(s->held[i], sum->stored[i]),
		    sum->removed[i]);
		s->evicted[i] = plus(s->evicted[i], sum->removed[i]);
	}
}

/* All is known from here on, and by its names if they are wanted. */
static void
stream_complete(struct kvr *k, uint32_t slot, struct stream *s)
{
	s->state = KVR_EVENTS_COMPLETE;
	alias_end(k, s);
	s->life = hold_wanted(k, slot) ? alias_life(k) : 0;
	s->copies = COPIES_NONE;
}

/* Returns whether the batch follows what is known; then it is counted. */
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
		if (seq != 0 && sum->restarted == 0)
			return false;
	}
	if (seq == 0 || sum->cleared != 0)
		stream_complete(k, slot, s);
	s->first = seq == 0 ? b->head.digest : s->first;
	s->last = b->head.digest;
	s->next = seq + 1;
	s->pieces = s->begun = 0;
	stream_count(s, b, sum);
	return true;
}

uint32_t
event_each(const struct kvr *k, uint32_t tokens)
{
	return tokens % k->rule.block_size == 0 ? tokens / k->rule.block_size
	    : 0;
}

bool
event_same_copies(struct kvr *k, uint32_t slot, const struct event_batch *b)
{
	struct stream *t = stream_at(k, slot_at(k, slot)->name);
	uint8_t copies = (b->head.flags & KVR_BATCH_FULL) != 0
	    ? COPIES_LISTED : COPIES_COUNTED;

	if (b->n == 0 || t->copies == copies)
		return true;
	if (t->copies != COPIES_NONE)
		return false;
	put_once(t->copies, copies);
	return true;
}

static void
stream_put(struct kvr *k, uint32_t slot, const struct stream *s)
{
	write_once_words(stream_at(k, slot_at(k, slot)->name), s, sizeof(*s));
}

/* ----------------------------------------------------- what it teaches --- */

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
	blocks = most(read_once(s->most[KVR_TIER_GPU]),
	    read_once(s->most[KVR_TIER_HOST]));
	return least(blocks, BATCH_MAX) * read_once(s->block_tokens);
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

/* Do its sums say what the cache holds, and how much was stored? */
static bool
counted(const struct stream *s)
{
	return s->state == KVR_EVENTS_COMPLETE && s->uncounted == 0 &&
	    s->block_tokens > 0;
}

/*
 * What was released before all of the cache was filled anew is gone: whenever a
 * quarter has been, the time is noted.
 */
static void
outlive(struct kvr *k, uint32_t slot, uint64_t blocks)
{
	const struct stream *s = stream_at(k, slot_at(k, slot)->name);
	struct slot *p = slot_at(k, slot);
	uint64_t room = event_capacity(k, slot);
	uint32_t i;

	if (p->mode != KVR_RETAIN_CAPACITY || room == 0 ||
	    trust_room(k, slot) != room)
		return;
	put_once(p->stored, plus(p->stored, blocks * s->block_tokens));
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
settle(struct kvr *k, uint32_t slot, bool known)
{
	if ((event_capacity(k, slot) > 0) != known)
		trust_told(k, slot);
	retain_decide(k, slot);
	retain_evict_lost(k, slot);
	worker_recount(k, slot);
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
	if (taken && (b->head.flags & KVR_BATCH_PAST) == 0 && counted(&s))
		outlive(k, slot, sum->volume);
	if (taken)
		event_first(k, slot, b, outcome == KVR_EVENTS_RESTARTED ? 0
		    : before->last, now);
	settle(k, slot, known);
	return taken;
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
event_lost(struct kvr *k, uint32_t slot, uint64_t next)
{
	struct stream s = *stream_at(k, slot_at(k, slot)->name);

	if (s.state == KVR_EVENTS_OFF)
		s.heard = -1;
	s.state = KVR_EVENTS_DEGRADED;
	alias_end(k, &s);
	s.uncounted = 1;
	s.lost++;
	if (s.next < next) {
		s.next = next;
		s.last = s.pieces = s.begun = 0;
	}
	stream_put(k, slot, &s);
	retain_decide(k, slot);
	worker_recount(k, slot);
}

void
event_off(struct kvr *k, uint32_t slot)
{
	bool known = event_capacity(k, slot) > 0;

	event_begin(k, slot_at(k, slot)->name);
	settle(k, slot, known);
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

/* -------------------------------------------------------------- damage --- */

static bool
possible(const struct stream *s)
{
	uint32_t i;

	if (s->state > KVR_EVENTS_DEGRADED || s->uncounted > 1 ||
	    s->copies > COPIES_LISTED || s->pad != 0 ||
	    s->block_tokens > BLOCK_BYTES_MAX || s->heard < -1 ||
	    s->heard > CLOCK_MAX)
		return false;
	for (i = 0; i < TIERS; i++)
		if (s->held[i] > s->most[i] || s->most[i] > SUM_MAX ||
		    s->evicted[i] > SUM_MAX)
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
		if (!possible(&k->streams[i]))
			return false;
	return true;
}

void
event_recover(struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.names; i++) {
		struct stream *s = &k->streams[i];

		if (!possible(s))
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

/* The index has been emptied: what was known by its names is not any more. */
void
event_emptied(struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < slots_used(k); i++)
		if (slot_in_use(k, i) && hold_tracks(k, i)) {
			event_degrade(k, i);
			retain_decide(k, i);
			worker_recount(k, i);
		}
}
