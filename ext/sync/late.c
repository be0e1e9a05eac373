/* SPDX-License-Identifier: BSD-2-Clause */
/* late.c - see late.h. */
#include "late.h"

#include <inttypes.h>
#include <kvroute_replica.h>
#include <stdlib.h>
#include <string.h>

#include "site.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
/* Without a bus, or with a slow one, a router is not kept waiting. */
#define READY_MAX (5 * SECOND)
#define AGE_NOW SECOND /* of a frame of the log: all others were read */

enum {
	KEPT_MAX = 64 << 20,   /* a second of the busiest pool */
	WAITING_MAX = 1 << 20, /* then answers wait, not news */
	LOOKS_MAX = 1 << 16    /* calls, to find an entry */
};

/* A frame that came while a peer was asked. */
struct kept {
	struct kept *next;
	int64_t came, age;
	size_t n;
	unsigned char bytes[];
};

/* ------------------------------------------------------- begin and end --- */

static bool
answer(void *context, const char *reply, const unsigned char *bytes, size_t n)
{
	return bus_answer(((struct site *)context)->bus, reply, bytes, n);
}

static bool
ask(void *context, const unsigned char *bytes, size_t n)
{
	return bus_ask(((struct site *)context)->bus, bytes, n);
}

bool
late_open(struct site *s, int64_t now)
{
	struct give_options o = { .roster = &s->roster, .rules = s->rules,
	    .origin = s->origin, .send = answer, .context = s,
	    .proof = s->o->secret_bytes > 0 ? &s->proof : NULL };

	s->late.opened = now;
	s->late.last = &s->late.first;
	if (s->o->loads)
		return true;
	s->late.chains = o.chains = chains_new(CHAINS_BLOCKS);
	if (o.chains != NULL)
		s->late.give = give_new(&o);
	return s->late.give != NULL;
}

static void
kept_free(struct late *l)
{
	struct kept *k;

	while ((k = l->first) != NULL) {
		l->first = k->next;
		free(k);
	}
	l->last = &l->first;
	l->bytes = 0;
}

void
late_close(struct site *s)
{
	kept_free(&s->late);
	fetch_free(s->late.fetch);
	give_free(s->late.give);
	chains_free(s->late.chains);
	memset(&s->late, 0, sizeof(s->late));
}

static bool
region_empty(const struct kvr *k, int64_t now)
{
	struct kvr_entry e;
	uint64_t cursor = 0;
	size_t n = 0, calls = 0;

	do
		if (kvr_entries(k, &cursor, now, &e, sizeof(e), 1, &n) !=
		    KVR_OK)
			return false;
	while (n == 0 && cursor != 0 && ++calls < LOOKS_MAX);
	return n == 0;
}

/*
 * How long ago the oldest that may be missing was stamped: since another daemon
 * beat for this region. Time in a region does not run backwards, so in one
 * that is in use all of it is stamped as of now, and may not be much younger
 * then than it is.
 */
static int64_t
missed(const struct site *s, bool empty, int64_t now)
{
	struct kvr_options o = { .size = sizeof(o) };
	struct kvr_stats stats = { .size = sizeof(stats) };
	int64_t most, age;

	if (kvr_options_get(s->k, &o) != KVR_OK ||
	    kvr_stats_get(s->k, &stats) != KVR_OK)
		return 0;
	most = o.ttl_ns < 0 ? o.idle_limit_ns : o.ttl_ns;
	if (empty)
		return most;
	age = now - stats.journal_beat + SECOND;
	return stats.journal_beat <= 0 || age < 0 || age > most / 4 ? 0 : age;
}

static bool
replay(struct site *s, int64_t age)
{
	if (age <= 0 || !bus_since(s->bus, age))
		return false;
	site_log(s, "reads the last %" PRId64 " s of the log", age / SECOND);
	s->late.replaying = true;
	return true;
}

bool
late_begin(struct site *s, int64_t now)
{
	const bool empty = region_empty(s->k, now);
	struct fetch_options o = { .roster = &s->roster,
	    .chains = s->late.chains, .rules = s->rules, .origin = s->origin,
	    .proof = s->o->secret_bytes > 0 ? &s->proof : NULL,
	    .ask = ask, .context = s };

	if (s->o->loads)
		return true;
	s->late.age = s->o->replay >= 0 ? s->o->replay : missed(s, empty, now);
	if (s->o->replay >= 0 || !empty) {
		if (replay(s, s->late.age) || s->o->replay >= 0)
			return true;
	}
	if (s->late.age == 0) {
		site_log(s, "%s has prefixes: it learns from now on", s->path);
		return true;
	}
	o.oldest = s->late.age;
	s->late.fetch = fetch_new(&o);
	return s->late.fetch != NULL;
}

/* -------------------------------------------------------------- frames --- */

/* With a secret, a peer only answers questions with its challenge. */
static bool
can_be_asked(const struct site *s, uint64_t origin)
{
	uint64_t challenge;

	return s->o->secret_bytes == 0 || proof_of(&s->proof, origin,
	    &challenge);
}

static bool
fetching(const struct late *l)
{
	return l->fetch != NULL && !fetch_over(l->fetch);
}

static void
release(struct site *s)
{
	const struct kept *k;

	for (k = s->late.first; k != NULL; k = k->next)
		apply_frame(s->apply, k->came, k->age, k->bytes, k->n);
	kept_free(&s->late);
}

/*
 * Until its challenge is answered, a peer takes nothing from here. Frames of
 * the log are older.
 */
static void
take_challenge(struct site *s, const struct bus_message *m, int64_t now)
{
	struct frame_reader *reader = &s->late.reader;
	struct frame_record r;

	if (s->o->secret_bytes == 0 || now - m->age < s->late.opened)
		return;
	while (frame_next(reader, &r))
		if (r.kind == FRAME_CHALLENGE && reader->origin != s->origin &&
		    proof_heard(&s->proof, reader->origin, r.challenge))
			publish_hello(s->publish);
}

/*
 * Keeps a frame as long as there is room. Later ones are left out: applied
 * before the answer, they would make all of it count as new, and their leases
 * and loads are sent again each second.
 */
static void
keep(struct site *s, const struct bus_message *m, int64_t now)
{
	struct late *l = &s->late;
	const size_t bytes = sizeof(struct kept) + m->n;
	struct kept *k = bytes > KEPT_MAX - l->bytes ? NULL : malloc(bytes);

	if (frame_open(&l->reader, &s->rules, m->bytes, m->n) == FRAME_GOOD) {
		take_challenge(s, m, now);
		if (can_be_asked(s, l->reader.origin))
			fetch_heard(l->fetch, l->reader.origin);
	}
	if (k == NULL) {
		l->left_out++;
		return;
	}
	*k = (struct kept){ .came = now, .age = m->age, .n = m->n };
	memcpy(k->bytes, m->bytes, m->n);
	*l->last = k;
	l->last = &k->next;
	l->bytes += bytes;
}

void
late_take(struct site *s, const struct bus_message *m)
{
	struct late *l = &s->late;
	const int64_t now = kvr_clock_now();

	if (m->reply != NULL) {
		if (l->give != NULL)
			give_asked(l->give, m->reply, m->bytes, m->n);
	} else if (m->answer) {
		if (l->fetch != NULL)
			fetch_frame(l->fetch, now, m->bytes, m->n);
	} else if (fetching(l) && !l->direct) {
		keep(s, m, now);
	} else {
		l->replayed += l->replaying;
		if (m->age < AGE_NOW)
			l->replaying = false;
		apply_frame(s->apply, now, m->age, m->bytes, m->n);
	}
}

/* ---------------------------------------------------------------- work --- */

/* The peer has sent all, or no peer answers. */
static void
fetched(struct site *s)
{
	const struct fetch_counts c = fetch_counts(s->late.fetch);
	const enum fetch_state state = fetch_state(s->late.fetch);

	bus_ask_end(s->bus);
	/* Perhaps all others have just begun. The log has the kept frames, too:
	 * applied before it, all that precedes would come too late. */
	if (c.blocks == 0 && replay(s, s->late.age)) {
		kept_free(&s->late);
		return;
	}
	release(s);
	if (s->late.left_out > 0)
		site_log(s, "%" PRIu64 " frames that came meanwhile were left "
		    "out", s->late.left_out);
	if (state == FETCH_DONE)
		site_log(s, "ready: %" PRIu64 " blocks from %016" PRIx64
		    " in %" PRId64 " ms", c.blocks, c.peer, c.took / MS);
	else if (state == FETCH_FAILED)
		site_log(s, "ready: %" PRIu64 " blocks of a part of what "
		    "%016" PRIx64 " has in %" PRId64 " ms", c.blocks, c.peer,
		    c.took / MS);
	else
		site_log(s, "ready: no other replica answers");
}

static void
look_ready(struct site *s, int64_t now)
{
	struct late *l = &s->late;
	const bool waits = fetching(l) || l->replaying;

	if (l->ready || (waits && now - l->opened < READY_MAX))
		return;
	l->ready = true;
	if (waits)
		site_log(s, "ready, though what was missed has not come yet");
	else if (l->replayed > 0)
		site_log(s, "ready: %" PRIu64 " frames of the log in %" PRId64
		    " ms", l->replayed, (now - l->opened) / MS);
	/* Not before there is an answer: the log that is read then has all. */
	if (fetching(l) && l->left_out > 0 &&
	    fetch_counts(l->fetch).blocks > 0) {
		l->direct = true;
		release(s);
	}
}

int64_t
late_work(struct site *s, int64_t now)
{
	struct late *l = &s->late;
	int64_t next = INT64_MAX, due;

	if (fetching(l) && (bus_connected(s->bus) ||
	    fetch_state(l->fetch) != FETCH_LOOKING)) {
		next = fetch_work(l->fetch, now);
		if (fetch_over(l->fetch))
			fetched(s);
	}
	if (l->give != NULL) {
		due = bus_waiting(s->bus) > WAITING_MAX ? now + MS :
		    give_work(l->give, l->ready && !fetching(l), now);
		next = due < next ? due : next;
	}
	look_ready(s, now);
	return next;
}
