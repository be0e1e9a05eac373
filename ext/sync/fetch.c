/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fetch.c - a replica that begins asks another one: see snapshot.h.
 *
 * A region's clock does not run backwards: earlier stamps count as stamps of
 * that time. So all of an answer is taken before the oldest entry is observed,
 * and the caller meanwhile keeps back frames that would move that clock.
 */
#include "snapshot.h"

#include <kvroute_replica.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define LOOK_MAX (2500 * MS)   /* peers send HELLO each second */
#define ANSWER_MAX (1500 * MS) /* between two frames */
#define QUEUE_MAX (10 * SECOND) /* until the first one, with signs of life */
#define TURN (10 * MS)

enum {
	PEERS_MAX = 4,
	SLICE_BLOCKS = 1 << 16, /* observed in a turn */
	SLICE_ENTRIES = 512
};

struct known {
	uint32_t place;         /* here, + 1; 0: not known */
	uint32_t made;
};

struct held {
	uint64_t sequence;      /* of the last block */
	int64_t stamp;
	uint32_t place, made, epoch;
};

struct fetch {
	struct fetch_options o;
	struct fetch_counts counts;
	enum fetch_state state;
	struct kvr_prompt *prompt;
	uint64_t block_size;
	int64_t began, heard;   /* below 0: not yet */
	int64_t asked;
	uint64_t peers[PEERS_MAX];
	size_t n_peers, n_asked;
	uint64_t number;        /* of the answer's last frame */
	uint64_t pieces;
	bool whole;
	bool earlier;           /* the entries are of one asked before */
	uint64_t source;        /* the peer that it is of */
	struct held *held;
	size_t n, capacity, at;
	struct known known[KVR_WORKERS_MAX];
	struct frame_writer frame;
	struct frame_reader reader;
};

struct fetch *
fetch_new(const struct fetch_options *options)
{
	struct kvr_options o = { .size = sizeof(o) };
	struct fetch *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->o = *options;
	f->began = -1;
	frame_writer_init(&f->frame, &f->o.rules, f->o.origin);
	if (kvr_options_get(f->o.roster->k, &o) == KVR_OK &&
	    kvr_prompt_new(f->o.roster->k, &f->prompt) == KVR_OK) {
		f->block_size = o.block_size;
		return f;
	}
	fetch_free(f);
	return NULL;
}

void
fetch_free(struct fetch *f)
{
	if (f == NULL)
		return;
	kvr_prompt_free(f->prompt);
	free(f->held);
	free(f);
}

/* --------------------------------------------------------------- asking --- */

void
fetch_heard(struct fetch *f, uint64_t origin)
{
	size_t i;

	if (origin == f->o.origin || f->n_peers == PEERS_MAX)
		return;
	for (i = 0; i < f->n_peers; i++)
		if (f->peers[i] == origin)
			return;
	f->peers[f->n_peers++] = origin;
}

static void
ask(struct fetch *f, int64_t now)
{
	struct frame_record r = { .kind = FRAME_ASK,
	    .peer = f->peers[f->n_asked],
	    .stamp_age = (uint64_t)f->o.oldest },
	    proof = { .kind = FRAME_PROOF, .peer = r.peer };
	const unsigned char *bytes;
	size_t n;

	if (frame_put(&f->frame, &r) != FRAME_OK)
		return;
	if (f->o.proof != NULL && proof_of(f->o.proof, r.peer,
	    &proof.challenge))
		(void)frame_put(&f->frame, &proof);
	bytes = frame_finish(&f->frame, now, &n);
	f->n_asked++;
	f->counts.peer = r.peer;
	f->counts.asked++;
	f->number = f->pieces = f->counts.lost = 0;
	f->whole = false;
	f->earlier = true;
	f->heard = f->asked = now;
	memset(f->known, 0, sizeof(f->known));
	if (f->o.ask(f->o.context, bytes, n))
		f->state = FETCH_ASKED;
}

static int
by_stamp(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	return x->stamp < y->stamp ? -1 : x->stamp > y->stamp;
}

static void
apply(struct fetch *f)
{
	if (f->n > 0)
		f->counts.peer = f->source;
	if (f->n > 0)
		qsort(f->held, f->n, sizeof(f->held[0]), by_stamp);
	f->at = 0;
	f->state = FETCH_APPLYING;
}

/*
 * Asks the next one; without one, the entries that have come are all. But one
 * that has just begun, too, may be heard before those that have run for long.
 */
static void
go_on(struct fetch *f, int64_t now)
{
	if (f->n_asked < f->n_peers ||
	    (f->n == 0 && now - f->began < LOOK_MAX))
		f->state = FETCH_LOOKING;
	else
		apply(f);
}

/* ------------------------------------------------------------ an answer --- */

static void
take_worker(struct fetch *f, const struct frame_record *r)
{
	struct roster *roster = f->o.roster;
	struct roster_worker *w;

	if (r->worker >= KVR_WORKERS_MAX)
		return;
	w = roster_find(roster, r->text, r->length, (uint32_t)r->rank);
	if (w == NULL)
		return;
	(void)roster_agree(roster, w, (uint32_t)r->epoch, false);
	f->known[r->worker].place = (uint32_t)roster_place(roster, w) + 1;
	f->known[r->worker].made = w->made;
}

static void
take_chain(struct fetch *f, const struct frame_record *r)
{
	const struct stretch s = { .parent = r->parent,
	    .first = (uint32_t)r->first_block, .n = r->length,
	    .hashes = r->numbers };

	if (chains_add(f->o.chains, &s))
		f->counts.blocks += s.n;
}

static bool
grow(struct fetch *f)
{
	const size_t capacity = f->capacity == 0 ? 1024 : f->capacity * 2;
	struct held *held;

	if (f->n < f->capacity)
		return true;
	if (capacity > SNAPSHOT_ENTRIES_MAX)
		return false;
	held = realloc(f->held, capacity * sizeof(*held));
	if (held == NULL)
		return false;
	f->held = held;
	f->capacity = capacity;
	return true;
}

static void
take_held(struct fetch *f, int64_t now, const struct frame_record *r)
{
	const struct known *known;

	f->pieces++;
	if (f->earlier)
		f->n = 0;
	f->earlier = false;
	f->source = f->counts.peer;
	if (r->worker >= KVR_WORKERS_MAX || !grow(f) ||
	    r->stamp_age > (uint64_t)f->o.oldest ||
	    f->known[r->worker].place == 0) {
		f->counts.refused++;
		return;
	}
	known = &f->known[r->worker];
	f->held[f->n++] = (struct held){ .sequence = r->sequence,
	    .stamp = r->stamp_age > (uint64_t)now ? 0 :
	    now - (int64_t)r->stamp_age, .place = known->place - 1,
	    .made = known->made, .epoch = (uint32_t)r->epoch };
	f->counts.entries++;
}

/* A peer that has nothing may itself have just begun. */
static void
take_end(struct fetch *f, int64_t now, const struct frame_record *r)
{
	f->whole = r->pieces == f->pieces && f->counts.lost == 0 &&
	    !(f->earlier && f->n > 0);
	if (r->pieces == 0)
		go_on(f, now);
	else
		apply(f);
}

static bool
expected(struct fetch *f, int64_t now, const void *bytes, size_t n)
{
	if (f->state != FETCH_ASKED || frame_open(&f->reader, &f->o.rules,
	    bytes, n) != FRAME_GOOD || f->reader.origin != f->counts.peer)
		return false;
	/* A sign of life: others are answered first. */
	if (f->reader.number == 0 && now - f->asked < QUEUE_MAX)
		f->heard = now;
	if (f->reader.number <= f->number)
		return false;
	f->counts.lost += f->reader.number - f->number - 1;
	f->number = f->reader.number;
	f->counts.frames++;
	return true;
}

void
fetch_frame(struct fetch *f, int64_t now, const void *bytes, size_t n)
{
	struct frame_record r;

	if (!expected(f, now, bytes, n))
		return;
	f->heard = now;
	while (f->state == FETCH_ASKED && frame_next(&f->reader, &r)) {
		if (r.kind == FRAME_WORKER)
			take_worker(f, &r);
		else if (r.kind == FRAME_TENANT)
			roots_told(chains_roots(f->o.chains), r.parent,
			    r.tenant, r.share);
		else if (r.peer != f->o.origin)
			continue;
		else if (r.kind == FRAME_CHAIN)
			take_chain(f, &r);
		else if (r.kind == FRAME_SNAPSHOT)
			take_held(f, now, &r);
		else if (r.kind == FRAME_SNAPSHOT_END)
			take_end(f, now, &r);
	}
}

/* ------------------------------------------------------------- applying --- */

/* Adds how many blocks that was. false: the region is busy. */
static bool
observe(struct fetch *f, const struct held *h, size_t *blocks)
{
	const struct roster_worker *w = &f->o.roster->workers[h->place];
	struct stretch s;
	uint64_t *end;
	int error;

	if (w->id == 0 || w->made != h->made || w->epoch != h->epoch ||
	    !chains_get(f->o.chains, h->sequence, 0, &s, &end)) {
		f->counts.refused++;
		return true;
	}
	error = kvr_prompt_set_sequences(f->prompt, s.parent, 0, s.hashes, s.n,
	    s.n * f->block_size);
	roots_say(chains_roots(f->o.chains), s.parent, f->prompt);
	if (error == KVR_OK)
		error = kvr_observe(f->o.roster->k, f->prompt, w->id, h->stamp,
		    KVR_ENDED, NULL);
	if (error == KVR_EBUSY)
		return false;
	f->counts.applied += error == KVR_OK;
	f->counts.refused += error != KVR_OK;
	*blocks += s.n;
	return true;
}

static void
over(struct fetch *f, int64_t now)
{
	f->state = f->counts.asked == 0 ? FETCH_ALONE : f->whole ? FETCH_DONE :
	    FETCH_FAILED;
	f->counts.took = now - f->began;
	free(f->held);
	f->held = NULL;
	f->n = f->capacity = 0;
}

/* Returns when to call again. */
static int64_t
slice(struct fetch *f, int64_t now)
{
	size_t blocks = 0, entries = 0;

	for (; f->at < f->n && blocks < SLICE_BLOCKS &&
	    entries++ < SLICE_ENTRIES; f->at++)
		if (!observe(f, &f->held[f->at], &blocks))
			return now + TURN;
	if (f->at == f->n)
		over(f, now);
	return now;
}

int64_t
fetch_work(struct fetch *f, int64_t now)
{
	if (fetch_over(f))
		return INT64_MAX;
	if (f->began < 0)
		f->began = now;
	if (f->state == FETCH_LOOKING && f->n_asked < f->n_peers)
		ask(f, now);
	else if (f->state == FETCH_LOOKING && now - f->began >= LOOK_MAX)
		over(f, now);
	else if (f->state == FETCH_ASKED && now - f->heard >= ANSWER_MAX)
		go_on(f, now);
	else if (f->state == FETCH_APPLYING)
		return slice(f, now);
	return f->state == FETCH_APPLYING ? now : now + TURN;
}

enum fetch_state
fetch_state(const struct fetch *f)
{
	return f->state;
}

bool
fetch_over(const struct fetch *f)
{
	return f->state >= FETCH_DONE;
}

struct fetch_counts
fetch_counts(const struct fetch *f)
{
	return f->counts;
}

const char *
fetch_state_name(enum fetch_state state)
{
	static const char *const names[] = { "looking", "asked", "applying",
	    "done", "alone", "failed" };

	return names[state];
}
