/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * give.c - answers to daemons that ask for a snapshot: see snapshot.h.
 *
 * One is answered at a time: first the entries of the region are noted, some in
 * each turn, then frames are sent, one a turn. News goes meanwhile to the one
 * that asked as it goes to all. Daemons that wait for their turn get a message
 * that it will come.
 */
#include "snapshot.h"

#include <kvroute_replica.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
#define TURN MS
#define SIGN_EACH (500 * MS) /* several in the ANSWER_MAX of fetch.c */

enum {
	WALK = 128,           /* entries in a call of the library */
	WALKS = 4,            /* calls in a turn */
	STRETCH = 1024,       /* hashes in a record */
	STEPS_MAX = 1 << 18   /* blocks that are looked at in a turn */
};

struct asker {
	uint64_t origin, oldest;
	char reply[SNAPSHOT_REPLY_MAX];
};

/* A prefix that a worker holds, up to a block. */
struct held {
	uint64_t worker;
	uint64_t sequence;    /* of the run's last block */
	int64_t stamp;
	uint32_t blocks;      /* of the chain, from its root */
};

enum phase { IDLE, WALKING, SENDING };

struct give {
	struct give_options o;
	struct give_counts counts;
	struct asker waiting[GIVE_WAITING_MAX];
	size_t n_waiting;     /* the first one is being answered */
	uint64_t asked[GIVE_ASKED_MAX]; /* the latest that did: a ring */
	size_t n_asked;
	enum phase phase;
	uint64_t cursor, pieces;
	int64_t next, sign_at;
	size_t workers;       /* places that were sent */
	struct held *held;
	size_t n, capacity, at;
	struct stretch rest;  /* did not fit; of `kept` */
	uint64_t kept[STRETCH];
	struct frame_writer frame;
	struct frame_reader reader;
};

struct give *
give_new(const struct give_options *options)
{
	struct give *g = calloc(1, sizeof(*g));

	if (g != NULL)
		g->o = *options;
	return g;
}

void
give_free(struct give *g)
{
	if (g == NULL)
		return;
	free(g->held);
	free(g);
}

/* ----------------------------------------------------------- questions --- */

/*
 * With a secret: is the question no recording? Else a small frame with another
 * name for answers would cost a walk each time. An origin asks each peer once.
 */
static bool
is_new(struct give *g)
{
	struct frame_record r;
	size_t i;

	if (g->o.proof == NULL)
		return true;
	if (!frame_next(&g->reader, &r) || r.kind != FRAME_PROOF ||
	    r.peer != g->o.origin || r.challenge != g->o.proof->own)
		return false;
	for (i = 0; i < GIVE_ASKED_MAX; i++)
		if (g->asked[i] == g->reader.origin)
			return false;
	g->asked[g->n_asked++ % GIVE_ASKED_MAX] = g->reader.origin;
	return true;
}

void
give_asked(struct give *g, const char *reply, const void *bytes, size_t n)
{
	struct frame_record r;
	struct asker *a;
	uint64_t oldest;

	if (frame_open(&g->reader, &g->o.rules, bytes, n) != FRAME_GOOD ||
	    g->reader.origin == g->o.origin || !frame_next(&g->reader, &r) ||
	    r.kind != FRAME_ASK || r.peer != g->o.origin)
		return;
	oldest = r.stamp_age;
	g->counts.asked++;
	if (g->n_waiting == GIVE_WAITING_MAX ||
	    strlen(reply) >= sizeof(a->reply) || !is_new(g)) {
		g->counts.refused++;
		return;
	}
	a = &g->waiting[g->n_waiting++];
	a->origin = g->reader.origin;
	a->oldest = oldest;
	g->sign_at = 0;
	strcpy(a->reply, reply);
}

static void
end(struct give *g)
{
	g->phase = IDLE;
	g->n_waiting--;
	memmove(g->waiting, g->waiting + 1,
	    g->n_waiting * sizeof(g->waiting[0]));
}

static void
begin(struct give *g, bool ready)
{
	g->phase = ready ? WALKING : SENDING;
	g->cursor = g->pieces = 0;
	g->n = g->at = g->workers = g->rest.n = 0;
	if (!ready)
		g->workers = g->o.roster->places;
	frame_writer_init(&g->frame, &g->o.rules, g->o.origin);
	chains_unmark(g->o.chains);
}

/* ------------------------------------------------------------- walking --- */

static bool
grow(struct give *g)
{
	const size_t capacity = g->capacity == 0 ? WALK : g->capacity * 2;
	struct held *held;

	if (g->n < g->capacity)
		return true;
	if (capacity > SNAPSHOT_ENTRIES_MAX)
		return false;
	held = realloc(g->held, capacity * sizeof(*held));
	if (held == NULL)
		return false;
	g->held = held;
	g->capacity = capacity;
	return true;
}

/* One of a lease that is not committed is no one's yet. */
static void
keep(struct give *g, const struct kvr_entry *e, int64_t now)
{
	if (e->age_ns < 0 || e->blocks == 0 ||
	    e->blocks > CHAINS_LENGTH_MAX ||
	    e->first_block > CHAINS_LENGTH_MAX - e->blocks ||
	    (uint64_t)e->age_ns > g->waiting[0].oldest)
		return;
	if (!grow(g)) {
		g->counts.no_room++;
		return;
	}
	g->held[g->n++] = (struct held){ .worker = e->worker,
	    .sequence = e->sequence, .stamp = now - e->age_ns,
	    .blocks = e->first_block + e->blocks };
}

static void
walk(struct give *g, int64_t now)
{
	struct kvr_entry found[WALK];
	size_t i, count;
	int calls;

	for (calls = 0; calls < WALKS; calls++) {
		if (kvr_entries(g->o.roster->k, &g->cursor, now, found,
		    sizeof(found[0]), WALK, &count) != KVR_OK)
			return; /* busy: in the next turn */
		for (i = 0; i < count; i++)
			keep(g, &found[i], now);
		if (g->cursor == 0) {
			g->phase = SENDING;
			return;
		}
	}
}

/* ------------------------------------------------------------- sending --- */

static bool
put_workers(struct give *g)
{
	const struct roster *f = g->o.roster;
	struct frame_record r = { .kind = FRAME_WORKER };

	for (; g->workers < f->places; g->workers++) {
		const struct roster_worker *w = &f->workers[g->workers];

		if (w->id == 0)
			continue;
		r.worker = g->workers;
		r.epoch = w->epoch;
		r.rank = w->rank;
		r.state = w->state;
		r.length = w->name_len;
		r.text = w->name;
		if (frame_put(&g->frame, &r) != FRAME_OK)
			return false;
	}
	return true;
}

/* Whose a chain is, before it begins. */
static bool
put_tenant(struct give *g, const struct stretch *s)
{
	struct frame_record r = { .kind = FRAME_TENANT, .parent = s->parent };
	uint32_t share;

	if (s->first > 0 || !roots_get(chains_roots(g->o.chains),
	    s->parent, &r.tenant, &share))
		return true;
	r.share = share;
	return frame_put(&g->frame, &r) == FRAME_OK;
}

/* Hashes that do not fit are kept: the store uses their place anew. */
static bool
put_stretch(struct give *g, const struct stretch *s)
{
	struct frame_record r = { .kind = FRAME_CHAIN,
	    .peer = g->waiting[0].origin, .parent = s->parent,
	    .first_block = s->first, .numbers = s->hashes, .length = s->n };

	if (put_tenant(g, s) && frame_put(&g->frame, &r) == FRAME_OK) {
		g->counts.blocks += s->n;
		g->rest.n = 0;
		return true;
	}
	if (g->rest.n == 0) {
		g->rest = *s;
		memcpy(g->kept, s->hashes, s->n * sizeof(*s->hashes));
		g->rest.hashes = g->kept;
	}
	return false;
}

/* The hashes of an entry that were not sent yet, then the entry. */
static bool
put_held(struct give *g, const struct held *h, int64_t now)
{
	const struct roster_worker *w = roster_id(g->o.roster, h->worker);
	struct frame_record r = { .kind = FRAME_SNAPSHOT,
	    .peer = g->waiting[0].origin, .blocks = h->blocks };
	struct stretch s;

	if (w == NULL) /* removed or reset */
		return true;
	do {
		if (!chains_mark(g->o.chains, h->sequence, h->blocks, STRETCH,
		    &s, &r.sequence)) {
			g->counts.unknown++;
			return true;
		}
		if (s.n > 0 && !put_stretch(g, &s))
			return false;
	} while (s.n == STRETCH);
	r.worker = roster_place(g->o.roster, w);
	r.epoch = w->epoch;
	r.stamp_age = now > h->stamp ? (uint64_t)(now - h->stamp) : 0;
	if (frame_put(&g->frame, &r) != FRAME_OK)
		return false;
	g->pieces++;
	return true;
}

/* true: the answer's last record is in the frame. */
static bool
fill(struct give *g, int64_t now)
{
	struct frame_record r = { .kind = FRAME_SNAPSHOT_END,
	    .peer = g->waiting[0].origin };
	size_t steps = 0;

	if (!put_workers(g))
		return false;
	if (g->rest.n > 0 && !put_stretch(g, &g->rest))
		return false;
	for (; g->at < g->n; g->at++) {
		steps += g->held[g->at].blocks;
		if (steps > STEPS_MAX && !frame_empty(&g->frame))
			return false;
		if (!put_held(g, &g->held[g->at], now))
			return false;
	}
	r.pieces = g->pieces;
	return frame_put(&g->frame, &r) == FRAME_OK;
}

static void
send_one(struct give *g, int64_t now)
{
	const bool last = fill(g, now);
	const unsigned char *bytes;
	size_t n;

	bytes = frame_finish(&g->frame, now, &n);
	if (!g->o.send(g->o.context, g->waiting[0].reply, bytes, n)) {
		g->counts.broken++;
		end(g);
		return;
	}
	g->counts.frames++;
	g->counts.bytes += n;
	if (!last)
		return;
	g->counts.entries += g->pieces;
	g->counts.given++;
	end(g);
}

/* Signs of life, to all but the one that is being answered. */
static void
put_signs(struct give *g, int64_t now)
{
	const uint64_t number = g->frame.number;
	const unsigned char *bytes;
	size_t i, n;

	if (now < g->sign_at || !frame_empty(&g->frame))
		return;
	g->sign_at = now + SIGN_EACH;
	for (i = 1; i < g->n_waiting; i++) {
		g->frame.number = 0;
		bytes = frame_finish(&g->frame, now, &n);
		(void)g->o.send(g->o.context, g->waiting[i].reply, bytes, n);
	}
	g->frame.number = number;
}

int64_t
give_work(struct give *g, bool ready, int64_t now)
{
	if (g->phase == IDLE && g->n_waiting == 0)
		return INT64_MAX;
	if (now < g->next)
		return g->next;
	g->next = now + TURN;
	if (g->phase == IDLE)
		begin(g, ready);
	else if (g->phase == WALKING)
		walk(g, now);
	else
		send_one(g, now);
	put_signs(g, now);
	return g->next;
}

struct give_counts
give_counts(const struct give *g)
{
	return g->counts;
}
