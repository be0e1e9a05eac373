/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apply.c - see apply.h: peers, and how late they are.
 *
 * Clocks of machines are not compared. arrival - sent differs from the delay by
 * a constant, so how much it is above the least one is how much later than the
 * fastest frame a frame came: its excess.
 *
 *	sent (peer)     0    100    200    300
 *	arrival (here)  7040 7141   7490   7342
 *	difference      7040 7041   7290   7042
 *	excess          0    1      250    2
 *
 * But two clocks drift apart: by 500 ppm each, if they are being put right. So
 * the least one rises by a thousandth of the time that passes, and by no more:
 * were it that of the last minute, a delay that stays would be none after that.
 * A peer that was late with all of its frames cannot be distinguished from one
 * in time.
 *
 * One late frame, or a burst after the bus has paused, is no sign that later
 * frames will be late. A peer is late when for LATE_FOR no frame came in time,
 * and in time again with the first that does.
 */
#include "apply_in.h"

#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
/*
 * A frame is in time if it is less late than one engine takes to get so many
 * requests. If later ones counted, all routers would run to the engine that was
 * idle. Buses and schedulers alone make frames some 20 ms late; the cost of
 * that for an engine of 20 requests a second has not been measured.
 */
#define EXCESS_REQUESTS 0.08
#define EXCESS_MIN (20 * MS)
#define EXCESS_MAX (200 * MS)
#define LATE_FOR (200 * MS)
#define STALE_MAX (30 * SECOND)
#define SILENCE (3 * SECOND)
/* A router that saw no beat for that long, and one second, has ended leases. */
#define STOPPED (1500 * MS)
#define FORGET (60 * SECOND) /* after that a silent peer is unknown */
#define END_LIFE SECOND
#define DRIFT 1000 /* one in so many */
#define LOADS_EACH (50 * MS)
#define SENT_MAX (INT64_MAX / 4)

enum { WINDOW = 64, OWNERS = 64, CALLS_MAX = 1 << 20 };

/* ---------------------------------------------------- begin and end --- */

/* Leases and loads of peers of an earlier daemon. */
static bool
clean_owner(struct apply *a, uint64_t owner, int64_t now)
{
	uint64_t cursor = 0;

	do
		if (kvr_owner_reap(a->k, owner, now, &cursor, NULL) != KVR_OK)
			return false;
	while (cursor != 0);
	return true;
}

/* false: the region is busy. */
static bool
clean(struct apply *a, int64_t now)
{
	const struct kvr_load none = { .size = sizeof(none) };
	uint64_t cursor = 0, owners[OWNERS], id;
	size_t i, n, calls = 0;

	do {
		if (kvr_owner_list(a->k, &cursor, owners, OWNERS, &n) !=
		    KVR_OK)
			return false;
		for (i = 0; i < n; i++)
			if (owners[i] >> 32 == ROSTER_PEERS &&
			    !clean_owner(a, owners[i], now))
				return false;
	} while (cursor != 0 && ++calls < CALLS_MAX);
	for (i = 0; i < a->o.roster->places; i++) {
		id = a->o.roster->workers[i].id;
		if (id != 0 && kvr_worker_set_load(a->k, id, ROSTER_SOURCE,
		    &none) == KVR_EBUSY)
			return false;
	}
	return true;
}

struct apply *
apply_new(const struct apply_options *options)
{
	struct kvr_options o = { .size = sizeof(o) };
	struct kvr_stats stats = { .size = sizeof(stats) };
	struct apply *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->o = *options;
	a->k = options->roster->k;
	a->sums = calloc(options->roster->places, sizeof(*a->sums));
	if (a->sums == NULL || kvr_options_get(a->k, &o) != KVR_OK ||
	    kvr_prompt_new(a->k, &a->prompt) != KVR_OK) {
		apply_free(a);
		return NULL;
	}
	a->empty = kvr_stats_get(a->k, &stats) == KVR_OK && stats.entries == 0;
	a->ttl = o.ttl_ns < 0 ? INT64_MAX : o.ttl_ns;
	a->stale = a->ttl / 4 < STALE_MAX ? a->ttl / 4 : STALE_MAX;
	(void)roster_read(a->o.roster);
	if (clean(a, options->now))
		return a;
	apply_free(a);
	return NULL;
}

static void
peer_free(struct apply *a, struct peer *p)
{
	const uint64_t n = HASH_COUNT(p->leases);
	struct lease *l, *next;

	HASH_ITER(hh, p->leases, l, next) {
		HASH_DEL(p->leases, l);
		free(l);
	}
	a->counts.leases -= n - p->unseen;
	a->counts.unseen -= p->unseen;
	apply_ends(a, p, INT64_MAX);
	if (a->o.proof != NULL) {
		proof_forget(a->o.proof, p->origin);
		/* Recordings of it can be sent from now on. */
		if (p->proved)
			(void)proof_draw(a->o.proof);
	}
	free(p->loads);
	free(p);
	a->counts.peers--;
}

void
apply_free(struct apply *a)
{
	size_t i;

	if (a == NULL)
		return;
	for (i = 0; i < APPLY_PEERS_MAX; i++)
		if (a->peers[i] != NULL)
			peer_free(a, a->peers[i]);
	kvr_prompt_free(a->prompt);
	free(a->sums);
	free(a);
}

/* --------------------------------------------------------------- peers --- */

static struct peer *
peer_find(const struct apply *a, uint64_t origin)
{
	size_t i;

	for (i = 0; i < APPLY_PEERS_MAX; i++)
		if (a->peers[i] != NULL && a->peers[i]->origin == origin)
			return a->peers[i];
	return NULL;
}

/* A free place, or that of the peer that was silent longest. */
static struct peer **
peer_place(struct apply *a)
{
	struct peer **place = NULL;
	size_t i;

	for (i = 0; i < APPLY_PEERS_MAX; i++) {
		if (a->peers[i] == NULL)
			return &a->peers[i];
		if (a->peers[i]->state == APPLY_SILENT && !a->peers[i]->due &&
		    (place == NULL || a->peers[i]->heard < (*place)->heard))
			place = &a->peers[i];
	}
	if (place != NULL) {
		peer_free(a, *place);
		*place = NULL;
	}
	return place;
}

static struct peer *
peer_make(struct apply *a, uint64_t origin)
{
	struct peer **place = peer_place(a), *p;

	if (place == NULL || (p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	p->origin = origin;
	if (a->o.proof != NULL)
		p->state = APPLY_SILENT; /* until it is proved */
	a->counts.peers++;
	*place = p;
	return p;
}

/*
 * Each number counts once. Frames that overtook others are taken too, but not
 * those that are WINDOW frames late.
 */
static bool
first_time(struct apply *a, struct peer *p, uint64_t number)
{
	const uint64_t ahead = number - p->number;

	if (number > p->number) {
		if (p->number != 0) {
			p->lost += ahead - 1;
			a->counts.lost += ahead - 1;
		}
		p->seen = ahead < WINDOW ? p->seen << ahead | 1 : 1;
		p->number = number;
		return true;
	}
	if (p->number - number >= WINDOW ||
	    (p->seen >> (p->number - number) & 1) != 0) {
		a->counts.repeated++;
		return false;
	}
	p->seen |= UINT64_C(1) << (p->number - number);
	a->counts.reordered++;
	/* It was counted as lost, if it is not from before we listened. */
	if (p->lost > 0) {
		p->lost--;
		a->counts.lost--;
	}
	return true;
}

/* ---------------------------------------------------------------- time --- */

static int64_t
excess(struct peer *p, int64_t now, int64_t sent)
{
	const int64_t difference = now - sent;

	if (now > p->least_at) {
		p->least += (now - p->least_at) / DRIFT;
		p->least_at = now;
	}
	if (!p->timed || difference < p->least)
		p->least = difference;
	p->timed = true;
	return difference - p->least;
}

static int64_t
excess_max(struct apply *a, int64_t now)
{
	const double rate = roster_rate(a->o.roster, now);
	const double most = EXCESS_REQUESTS / (rate + 1e-9) * (double)SECOND;

	return most > (double)EXCESS_MAX ? EXCESS_MAX :
	    most < (double)EXCESS_MIN ? EXCESS_MIN : (int64_t)most;
}

/* By a frame that has come now. */
static enum apply_state
state_of(struct apply *a, struct peer *p, int64_t now)
{
	if (p->excess <= excess_max(a, now)) {
		p->late = false;
		return p->due ? APPLY_LATE : APPLY_FRESH;
	}
	if (!p->late)
		p->late_since = now;
	p->late = true;
	if (p->state == APPLY_FRESH && now - p->late_since < LATE_FOR)
		return APPLY_FRESH;
	return p->excess > a->stale ? APPLY_STALE : APPLY_LATE;
}

/* -------------------------------------------------------------- frames --- */

/* Records that were not applied, of all peers. */
static uint64_t
dropped(const struct apply *a)
{
	const struct apply_counts *c = &a->counts;

	return c->unknown_worker + c->unknown_lease + c->old_epoch + c->late +
	    c->stale + c->unjoined + c->no_room + c->refused;
}

/* Frames before it may be recordings: none of them is taken later. */
static void
count_proved(struct peer *p)
{
	p->proved = true;
	p->seen = UINT64_MAX;
}

/*
 * Does the frame count? If it is not proved, only its challenge and its proof
 * are read. The log has frames of peers that have ended.
 */
static bool
is_proved(struct apply *a, const struct moment *m)
{
	const unsigned char *records = a->reader.at;
	struct peer *p = m->peer;
	struct frame_record r;

	if (a->o.proof == NULL || p->proved || m->past)
		return true;
	while (frame_next(&a->reader, &r))
		if (r.kind == FRAME_CHALLENGE)
			apply_challenge(a, m, r.challenge);
		else if (r.kind == FRAME_PROOF && r.peer == a->o.origin &&
		    r.challenge == a->o.proof->own)
			count_proved(p);
	a->reader.at = records;
	a->counts.unproved += !p->proved;
	return p->proved;
}

static void
apply_records(struct apply *a, const struct moment *m)
{
	const uint64_t before = dropped(a);
	struct frame_record r;

	while (!m->peer->ended && frame_next(&a->reader, &r))
		apply_record(a, m, &r);
	m->peer->dropped += dropped(a) - before;
}

static bool
meet(struct apply *a, struct moment *m)
{
	struct peer *p = peer_find(a, a->reader.origin);

	if (p == NULL) {
		p = peer_make(a, a->reader.origin);
		a->met |= p != NULL && !m->past;
	}
	if (p == NULL) {
		a->counts.no_room++;
		return false;
	}
	if (a->met_at == 0 && !m->past)
		a->met_at = m->now;
	m->peer = p;
	m->number = a->reader.number;
	m->sent = a->reader.sent;
	if (p->ended) {
		a->counts.stale++;
		return false;
	}
	return first_time(a, p, m->number);
}

void
apply_frame(struct apply *a, int64_t now, int64_t age, const void *bytes,
    size_t n)
{
	struct moment m = { .now = now, .at = now };
	enum frame_verdict verdict = frame_open(&a->reader, &a->o.rules, bytes,
	    n);

	/* Sums of such times cannot overflow. */
	if (verdict == FRAME_GOOD && (a->reader.sent < 0 ||
	    a->reader.sent > SENT_MAX))
		verdict = FRAME_MALFORMED;
	a->counts.frames[verdict]++;
	if (verdict != FRAME_GOOD)
		return;
	if (a->reader.origin == a->o.origin) {
		a->counts.own++;
		return;
	}
	if (age > 0 && now - age < a->o.now) {
		m.past = true;
		m.at = now - age;
	}
	if (!meet(a, &m))
		return;
	m.peer->frames++;
	if (m.past && age > a->ttl) {
		a->counts.stale++;
		return;
	}
	if (m.at > m.peer->heard)
		m.peer->heard = m.at;
	if (!is_proved(a, &m))
		return;
	if (!m.past) {
		m.peer->excess = excess(m.peer, now, m.sent);
		m.stale = m.peer->excess > a->stale;
		apply_set_state(a, m.peer, state_of(a, m.peer, now), now);
	}
	apply_records(a, &m);
}

/* --------------------------------------------------------------- timers --- */

static void
peer_work(struct apply *a, struct peer **place, int64_t now)
{
	struct peer *p = *place;
	const int64_t heard = p->heard > a->o.now ? p->heard : a->o.now;

	if (p->due)
		(void)apply_reap(a, p, now);
	apply_ends(a, p, now - END_LIFE);
	if (now - heard < SILENCE)
		return;
	if (p->state != APPLY_SILENT) {
		apply_set_state(a, p, APPLY_SILENT, now);
		a->counts.silences++;
	}
	if (now - heard >= FORGET && !p->due) {
		peer_free(a, p);
		*place = NULL;
	}
}

/*
 * This daemon was stopped. Leases that it takes for open may have ended: they
 * count by the lists and loads that follow.
 */
static void
stopped(struct apply *a, int64_t now)
{
	size_t i;

	for (i = 0; i < APPLY_PEERS_MAX; i++)
		if (a->peers[i] != NULL)
			(void)apply_reap(a, a->peers[i], now);
	a->counts.stops++;
}

void
apply_work(struct apply *a, int64_t now)
{
	size_t i;

	roster_work(a->o.roster, now);
	if (a->worked != 0 && now - a->worked >= STOPPED)
		stopped(a, now);
	a->worked = now;
	for (i = 0; i < APPLY_PEERS_MAX; i++)
		if (a->peers[i] != NULL)
			peer_work(a, &a->peers[i], now);
	if (now - a->loads_at >= SECOND) {
		a->loads_at = now;
		apply_loads_set(a, true, now);
	} else if (a->loads_changed && now - a->load_at >= LOADS_EACH) {
		apply_loads_set(a, false, now);
	}
}

void
apply_end(struct apply *a, int64_t now)
{
	size_t i;

	for (i = 0; i < APPLY_PEERS_MAX; i++)
		if (a->peers[i] != NULL)
			apply_set_state(a, a->peers[i], APPLY_SILENT, now);
	apply_loads_set(a, true, now);
}

/* ------------------------------------------------------------- the rest --- */

bool
apply_met(struct apply *a)
{
	const bool met = a->met;

	a->met = false;
	return met;
}

struct apply_counts
apply_counts(const struct apply *a)
{
	return a->counts;
}

/* All that it runs by its latest loads, or nothing once it is silent. */
static void
peer_load(const struct apply *a, const struct peer *p, struct apply_peer *out)
{
	size_t i;

	if (p->loads == NULL || p->state == APPLY_SILENT)
		return;
	for (i = 0; i < a->o.roster->places; i++) {
		out->requests += p->loads[i].load.requests;
		out->prefill_tokens += p->loads[i].load.prefill_tokens;
	}
}

size_t
apply_peers(const struct apply *a, struct apply_peer *out, size_t capacity)
{
	const struct peer *p;
	size_t i, n = 0;

	for (i = 0; i < APPLY_PEERS_MAX && n < capacity; i++) {
		p = a->peers[i];
		if (p == NULL || (a->o.proof != NULL && !p->proved))
			continue;
		memset(&out[n], 0, sizeof(out[n]));
		out[n].origin = p->origin;
		out[n].state = p->state;
		out[n].excess = p->excess;
		out[n].heard = p->heard;
		out[n].leases = HASH_COUNT(p->leases) - p->unseen;
		out[n].unseen = p->unseen;
		out[n].lost = p->lost;
		out[n].frames = p->frames;
		out[n].dropped = p->dropped;
		peer_load(a, p, &out[n]);
		out[n].policy = p->policy;
		out[n].host_len = p->host_len;
		memcpy(out[n++].host, p->host, p->host_len);
	}
	return n;
}

const char *
apply_state_name(enum apply_state state)
{
	static const char *const names[] = { "fresh", "late", "stale",
	    "silent" };

	return names[state];
}
