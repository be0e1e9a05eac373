/* SPDX-License-Identifier: BSD-2-Clause */
/* stream.c - see stream.h. */
#include "stream.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Digests that separate a duplicate from a restart. */
enum { RECENT = 64 };

/* Comes out before a batch: first the restart, then the loss. */
struct mark {
	bool restarted, lost;
	uint64_t from, to;
};

struct item {
	struct item *next;
	struct mark before;
	uint64_t seq, digest;
	size_t n;
	unsigned char bytes[];
};

struct queue {
	struct item *first, *last;
};

enum phase { LIVE, ASK, ASKED };

struct stream {
	struct stream_options options;
	struct stream_state state;
	enum phase phase;
	bool verify;          /* the replay begins with `last`, or shows that
	                         the engine has restarted */
	bool untold;          /* the caller compares `last`, not verify */
	bool bare;            /* there is no digest of `last` */
	bool unsure;          /* reconnected, and there is no replay to ask */
	bool progress;        /* this replay has had something new */
	struct queue ready, held;
	struct mark mark;     /* behind the last one that is ready */
	struct item *given;   /* to the caller */
	struct {
		bool set;
		uint64_t seq, digest;
	} recent[RECENT];     /* by number */
};

uint64_t
stream_digest(const void *bytes, size_t n)
{
	return XXH3_64bits(bytes, n);
}

/* ------------------------------------------------------------ queues --- */

static void
push(struct queue *q, struct item *item)
{
	item->next = NULL;
	if (q->first == NULL)
		q->first = item;
	else
		q->last->next = item;
	q->last = item;
}

static struct item *
pop(struct queue *q)
{
	struct item *item = q->first;

	if (item != NULL)
		q->first = item->next;
	return item;
}

static void
empty(struct queue *q)
{
	struct item *item;

	while ((item = pop(q)) != NULL)
		free(item);
}

static size_t
cost(size_t n)
{
	return sizeof(struct item) + n;
}

static struct item *
item_new(uint64_t seq, const void *bytes, size_t n)
{
	struct item *item = malloc(cost(n));

	if (item == NULL)
		return NULL;
	item->seq = seq;
	item->digest = stream_digest(bytes, n);
	item->n = n;
	if (n > 0)
		memcpy(item->bytes, bytes, n);
	return item;
}

/* ------------------------------------------------------------ output --- */

static void
remember(struct stream *s, uint64_t seq, uint64_t digest)
{
	s->state.known = true;
	s->state.last = seq;
	s->state.digest = digest;
	s->bare = false;
	s->recent[seq % RECENT].set = true;
	s->recent[seq % RECENT].seq = seq;
	s->recent[seq % RECENT].digest = digest;
}

/* Was that batch, with these bytes, one of the last? */
static bool
repeated(const struct stream *s, uint64_t seq, uint64_t digest)
{
	return s->recent[seq % RECENT].set &&
	    s->recent[seq % RECENT].seq == seq &&
	    s->recent[seq % RECENT].digest == digest;
}

static uint64_t
next_seq(const struct stream *s)
{
	return s->state.known ? s->state.last + 1 : s->options.first;
}

static void
emit(struct stream *s, struct item *item)
{
	item->before = s->mark;
	s->mark = (struct mark){ 0 };
	remember(s, item->seq, item->digest);
	s->state.counts.batches++;
	push(&s->ready, item);
}

/* Everything from the next batch to the one before `seq`. */
static void
lose(struct stream *s, uint64_t seq)
{
	const uint64_t next = next_seq(s);

	if (seq <= next)
		return;
	if (!s->mark.lost)
		s->mark.from = next;
	s->mark.lost = true;
	s->mark.to = seq - 1;
	s->state.counts.lost += seq - next;
}

static void
restart(struct stream *s)
{
	s->mark = (struct mark){ .restarted = true };
	s->state.known = false;
	s->state.counts.restarts++;
	memset(s->recent, 0, sizeof(s->recent));
	s->verify = s->untold = s->unsure = s->bare = false;
}

/* Next is a replay, which begins with `last` if that is to be compared. */
static void
ask(struct stream *s, bool verify)
{
	s->phase = ASK;
	s->verify = verify;
	s->untold = verify && s->bare;
}

/* -------------------------------------------------------------- live --- */

static bool
fits(size_t n, size_t held, size_t most)
{
	return n <= most && held <= most - n;
}

static void
hold(struct stream *s, struct item *item)
{
	struct stream_room *room = s->options.room;
	const size_t n = cost(item->n);

	if (!fits(n, s->state.held, s->options.bytes_max) ||
	    (room != NULL && !fits(n, room->bytes, room->most))) {
		s->state.counts.refused++;
		free(item);
		return;
	}
	s->state.held += n;
	if (room != NULL)
		room->bytes += n;
	push(&s->held, item);
}

/* So many bytes wait no longer. */
static void
release(struct stream *s, size_t n)
{
	s->state.held -= n;
	if (s->options.room != NULL)
		s->options.room->bytes -= n;
}

static void
forget_held(struct stream *s)
{
	empty(&s->held);
	release(s, s->state.held);
}

/*
 * A batch beyond a gap, to which no replay can help: after a reconnect it may
 * be another engine's.
 */
static void
jump(struct stream *s, struct item *item)
{
	if (s->unsure)
		restart(s);
	lose(s, item->seq);
	emit(s, item);
}

/* In order, or where to begin; s waits for no replay. */
static void
take(struct stream *s, struct item *item)
{
	if (item->seq == next_seq(s)) {
		s->unsure = false;
		emit(s, item);
		return;
	}
	s->state.counts.gaps++;
	if (s->options.replay && !s->unsure) {
		ask(s, s->bare);
		hold(s, item);
	} else {
		jump(s, item);
	}
}

/* Does a live batch show that the engine has restarted? */
static bool
goes_back(const struct stream *s, uint64_t seq)
{
	if (s->phase != LIVE && s->held.first != NULL)
		return seq <= s->held.last->seq;
	return s->state.known && !s->verify && seq <= s->state.last;
}

static bool
duplicate(const struct stream *s, const struct item *item)
{
	if (s->phase != LIVE && s->held.first != NULL &&
	    s->held.last->seq == item->seq)
		return s->held.last->digest == item->digest;
	return repeated(s, item->seq, item->digest);
}

void
stream_live(struct stream *s, uint64_t seq, const void *bytes, size_t n)
{
	struct item *item = NULL;

	if (seq != UINT64_MAX && seq >= s->options.first)
		item = item_new(seq, bytes, n);
	if (item == NULL) {
		s->state.counts.refused++;
		return;
	}
	if (goes_back(s, seq)) {
		if (duplicate(s, item)) {
			s->state.counts.duplicates++;
			free(item);
			return;
		}
		forget_held(s);
		restart(s);
		s->phase = LIVE;
	}
	if (s->phase == LIVE)
		take(s, item);
	else
		hold(s, item);
}

/*
 * Batches that were held before are in the replay again, or were another
 * engine's.
 */
void
stream_reconnected(struct stream *s)
{
	forget_held(s);
	if (s->options.replay)
		ask(s, s->state.known);
	else
		s->unsure = s->state.known;
}

void
stream_rejoin(struct stream *s, uint64_t next, bool complete)
{
	s->state.complete = complete;
	if (next <= s->options.first)
		return;
	s->state.known = s->bare = true;
	s->state.last = next - 1;
	if (s->options.replay)
		ask(s, true);
}

void
stream_cleared(struct stream *s)
{
	s->state.complete = true;
}

/* ------------------------------------------------------------ replay --- */

bool
stream_wants(const struct stream *s, uint64_t *from)
{
	*from = s->verify ? s->state.last : next_seq(s);
	return s->phase == ASK;
}

void
stream_asked(struct stream *s)
{
	s->phase = ASKED;
	s->progress = false;
	s->state.counts.replays++;
}

/* The first batch of a replay that began with `last`: is it the same? */
static void
compare(struct stream *s, uint64_t seq, uint64_t digest)
{
	if (seq == s->state.last && digest == s->state.digest) {
		s->verify = false;
		return;
	}
	/* Live batches that wait are of the engine that there is now. */
	restart(s);
	s->phase = ASK;
}

/*
 * The same if only the caller can decide: it gets that batch again. One that
 * lies behind is no evidence: the engine may keep the earlier ones no longer.
 */
static void
show_again(struct stream *s, uint64_t seq)
{
	s->verify = s->untold = false;
	if (seq != s->state.last)
		return;
	s->state.known = seq > s->options.first;
	s->state.last = s->state.known ? seq - 1 : 0;
}

void
stream_replayed(struct stream *s, uint64_t seq, const void *bytes, size_t n)
{
	struct item *item;

	if (s->phase != ASKED || seq == UINT64_MAX)
		return;
	if (s->verify && s->untold && seq >= s->state.last)
		show_again(s, seq);
	if (s->verify) {
		if (seq >= s->state.last)
			compare(s, seq, stream_digest(bytes, n));
		return;
	}
	if (seq < next_seq(s))
		return;
	item = item_new(seq, bytes, n);
	if (item == NULL) {
		s->state.counts.refused++;
		return;
	}
	lose(s, seq);
	emit(s, item);
	s->progress = true;
}

/* A replay that did not reach them is asked for again if it brought any. */
static void
drain(struct stream *s)
{
	struct item *item;

	while (s->held.first != NULL) {
		if (s->held.first->seq > next_seq(s) && s->progress) {
			s->phase = ASK;
			return;
		}
		item = pop(&s->held);
		release(s, cost(item->n));
		if (item->seq < next_seq(s))
			free(item);
		else if (item->seq == next_seq(s))
			emit(s, item);
		else
			jump(s, item);
	}
}

void
stream_replay_end(struct stream *s, bool whole)
{
	if (s->phase != ASKED)
		return;
	s->phase = LIVE;
	if (s->verify && whole) {
		restart(s);
		s->phase = ASK;
		return;
	}
	s->unsure = s->verify && !s->untold;
	s->verify = s->untold = false;
	drain(s);
}

/* -------------------------------------------------------------- next --- */

static bool
next_mark(struct stream *s, struct mark *mark, struct stream_out *out)
{
	if (!mark->restarted && !mark->lost)
		return false;
	s->state.complete = false;
	if (mark->restarted) {
		*out = (struct stream_out){ .what = STREAM_RESTARTED };
		mark->restarted = false;
	} else {
		*out = (struct stream_out){ .what = STREAM_LOST,
		    .seq = mark->from, .last = mark->to };
		mark->lost = false;
	}
	return true;
}

bool
stream_next(struct stream *s, struct stream_out *out)
{
	free(s->given);
	s->given = NULL;
	if (next_mark(s, s->ready.first != NULL ? &s->ready.first->before :
	    &s->mark, out))
		return true;
	s->given = pop(&s->ready);
	if (s->given == NULL)
		return false;
	if (s->given->seq == s->options.first)
		s->state.complete = true;
	*out = (struct stream_out){ .what = STREAM_BATCH,
	    .seq = s->given->seq, .bytes = s->given->bytes,
	    .n = s->given->n };
	return true;
}

struct stream_state
stream_state(const struct stream *s)
{
	struct stream_state state = s->state;

	state.waiting = s->phase != LIVE;
	return state;
}

struct stream *
stream_new(const struct stream_options *options)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->options = *options;
	if (s->options.bytes_max == 0)
		s->options.bytes_max = STREAM_BYTES_MAX;
	s->phase = options->replay ? ASK : LIVE;
	return s;
}

void
stream_free(struct stream *s)
{
	if (s == NULL)
		return;
	empty(&s->ready);
	forget_held(s);
	free(s->given);
	free(s);
}
