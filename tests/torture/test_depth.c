/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_depth.c - the depths a reader may get while writers write.
 *
 * Under concurrent writes the depth of each worker lies between its smallest
 * and its largest true depth during the call. The writers provide the truth:
 * each change of a worker is recorded as the state that it leads to, before
 * the call is made (begun) and again when it has returned (done).
 *
 *   states of a worker      s3    s4    s5    s6
 *   reader begins: done = 3  |                 |
 *                            |  match          |  reader ends: begun = 6
 *                            '---- window -----'
 *
 * One of these states was true whenever the reader read. Time moves likewise:
 * the reader passes 0, so it gets the region's time, which lies between the
 * last done at the reader's begin and the last begun at the reader's end.
 *
 * Writers take turns, so the order of their changes is known. Besides them a
 * noise thread, which takes no turns, splits and merges the same prefixes for
 * a worker of its own.
 */
#include "kvroute.h"
#include "plain.h"
#include "soak.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { WRITERS = 2, READERS = 2, WORKERS = 4, LINES = 4, LENGTHS = 6 };
enum { LONGEST = 70, TTL = 3000, CHANGES = 15000, MAX_STATES = CHANGES + 2 };

/*
 * Lines of prompts, and where each diverges from the first. A worker's state:
 * when each line and length was last recorded, and how many leases pin it.
 */
static const uint32_t length_of[LENGTHS] = { 3, 16, 17, 33, 48, LONGEST };
static const uint32_t parting[LINES] = { LONGEST, 5, 16, 40 };

struct state {
	uint64_t id;    /* 0: new, and not known yet */
	int64_t stamp[LINES][LENGTHS]; /* -1: never */
	uint8_t pins[LINES][LENGTHS];
};

struct history {
	struct state *states;
	_Atomic uint32_t begun, done; /* number of the last */
};

static struct kvr *k;
static struct history history[WORKERS];
static _Atomic int64_t clock_begun, clock_done;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static atomic_int writing;
static pthread_barrier_t all_here;

/* --------------------------------------------------------------- truth --- */

static uint32_t
common(uint32_t line, uint32_t other)
{
	if (line == other)
		return LONGEST;
	return parting[line] < parting[other] ? parting[line]
	    : parting[other];
}

static uint32_t
least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* True depth of the first n blocks of a line, or the active part of it. */
static uint32_t
depth(const struct state *s, uint32_t line, uint32_t n, int64_t time,
    bool active)
{
	uint32_t most = 0, l, i, blocks;

	for (l = 0; l < LINES; l++)
		for (i = 0; i < LENGTHS; i++) {
			bool live = s->stamp[l][i] >= 0 &&
			    s->stamp[l][i] > time - TTL;

			if (s->pins[l][i] == 0 && (active || !live))
				continue;
			blocks = least(common(line, l), length_of[i]);
			blocks = least(blocks, n);
			most = blocks > most ? blocks : most;
		}
	return most;
}

/* ------------------------------------------------------------- writers --- */

struct party {
	pthread_t thread;
	uint32_t number;
	uint64_t chance;
	struct kvr_prompt *p;
	const char *wrong;
	uint64_t checked, raced; /* readers: depths; windows with a change */
	char said[200];
};

/* A writer's lease on each of its workers. */
struct open_lease {
	uint64_t number;  /* 0: none */
	uint32_t line, length;
	bool committed;
};

static uint32_t
pick(struct party *t, uint32_t n)
{
	return (uint32_t)(plain_random(&t->chance) % n);
}

static bool
say(struct party *t, uint32_t line, uint32_t n)
{
	uint32_t tokens[LONGEST], i;

	for (i = 0; i < n; i++)
		tokens[i] = i < parting[line] ? i : 1000 + line;
	if (kvr_prompt_set_tokens(t->p, NULL, tokens, n) == KVR_OK)
		return true;
	t->wrong = "no prompt";
	return false;
}

/* A change of one worker, during this writer's turn. */
struct change {
	struct party *t;
	struct history *h;
	struct state *s;  /* result */
	struct open_lease *l;
	int64_t now;
	uint32_t line, length;
};

static void
begin_change(struct change *c)
{
	uint32_t last = atomic_load(&c->h->done);

	c->s = &c->h->states[last + 1];
	*c->s = c->h->states[last];
	c->now = atomic_load(&clock_done) + pick(c->t, 60);
	if (pick(c->t, 40) == 0)
		c->now += pick(c->t, TTL);
	c->line = pick(c->t, LINES);
	c->length = pick(c->t, LENGTHS);
}

/* From here on a reader may see it. */
static void
announce(struct change *c)
{
	atomic_store(&clock_begun, c->now);
	atomic_store(&c->h->begun, atomic_load(&c->h->done) + 1);
}

static void
end_change(struct change *c, int rc, const char *what)
{
	if (rc != KVR_OK)
		c->t->wrong = what;
	atomic_store(&c->h->done, atomic_load(&c->h->begun));
	atomic_store(&clock_done, c->now);
}

static void
observe(struct change *c)
{
	uint32_t recorded = 0, n = length_of[c->length];
	int rc;

	if (!say(c->t, c->line, n))
		return;
	c->s->stamp[c->line][c->length] = c->now;
	announce(c);
	rc = kvr_observe(k, c->t->p, c->s->id, c->now, 0, &recorded);
	end_change(c, recorded == n ? rc : KVR_EFULL, "kvr_observe");
}

static void
reserve(struct change *c)
{
	struct kvr_decision d = { .size = sizeof(d) };
	int rc;

	if (!say(c->t, c->line, length_of[c->length]))
		return;
	c->s->pins[c->line][c->length]++;
	announce(c);
	rc = kvr_lease_open_on(k, c->t->p, NULL, c->s->id, c->now, &d);
	end_change(c, rc, "kvr_lease_open_on");
	*c->l = (struct open_lease){ d.lease, c->line, c->length, false };
}

static void
commit(struct change *c)
{
	c->s->stamp[c->l->line][c->l->length] = c->now;
	c->l->committed = true;
	announce(c);
	end_change(c, kvr_lease_commit(k, c->l->number, c->now, 0),
	    "kvr_lease_commit");
}

/* The prompt of the lease grows to the next length of its line. */
static void
extend(struct change *c)
{
	struct open_lease *l = c->l;

	if (l->length + 1 == LENGTHS ||
	    !say(c->t, l->line, length_of[l->length + 1]))
		return;
	c->s->pins[l->line][l->length]--;
	l->length++;
	c->s->pins[l->line][l->length]++;
	c->s->stamp[l->line][l->length] = c->now;
	announce(c);
	end_change(c, kvr_lease_extend(k, l->number, c->t->p, c->now, 0),
	    "kvr_lease_extend");
}

/* Finishing a committed lease stamps its path once more. */
static void
end_lease(struct change *c)
{
	struct open_lease l = *c->l;
	bool finish = l.committed && pick(c->t, 2) == 0;

	c->s->pins[l.line][l.length]--;
	if (finish)
		c->s->stamp[l.line][l.length] = c->now;
	announce(c);
	end_change(c, finish ? kvr_lease_finish(k, l.number, NULL, c->now, 0)
	    : kvr_lease_abort(k, l.number, c->now, 0), "the end of a lease");
	c->l->number = 0;
}

static void
forget(struct state *s, uint64_t id)
{
	memset(s, 0, sizeof(*s));
	memset(s->stamp, -1, sizeof(s->stamp));
	s->id = id;
}

/*
 * The new id is not known before the call; then the same state gets it. The
 * call takes no time, so it moves none.
 */
static void
reset(struct change *c)
{
	uint64_t old = c->s->id, id = 0;
	int rc;

	c->now = atomic_load(&clock_done);
	forget(c->s, 0);
	announce(c);
	rc = kvr_worker_reset(k, old, &id);
	end_change(c, rc, "kvr_worker_reset");
	c->s = &c->h->states[atomic_load(&c->h->done) + 1];
	forget(c->s, id);
	announce(c);
	if (c->l->number != 0)
		rc = kvr_lease_abort(k, c->l->number, c->now, 0);
	end_change(c, rc, "kvr_lease_abort of a void lease");
	c->l->number = 0;
}

static void
expire(struct change *c)
{
	announce(c);
	end_change(c, kvr_expire(k, c->now, pick(c->t, 30), NULL),
	    "kvr_expire");
}

static void
one_change(struct party *t, struct open_lease *leases)
{
	uint32_t mine = pick(t, WORKERS / WRITERS);
	struct change c = { .t = t, .l = &leases[mine] };
	uint32_t what = pick(t, 100);

	c.h = &history[t->number + WRITERS * mine];
	begin_change(&c);
	if (what < 45)
		observe(&c);
	else if (what < 50)
		expire(&c);
	else if (what < 52)
		reset(&c);
	else if (c.l->number == 0)
		reserve(&c);
	else if (!c.l->committed && what < 75)
		commit(&c);
	else if (c.l->committed && what < 75)
		extend(&c);
	else
		end_lease(&c);
}

static bool
room_for_more(const struct party *t)
{
	uint32_t i;

	for (i = t->number; i < WORKERS; i += WRITERS)
		if (atomic_load(&history[i].done) + 3 > MAX_STATES)
			return false;
	return true;
}

static void *
writer(void *argument)
{
	struct open_lease leases[WORKERS / WRITERS];
	struct party *t = argument;
	uint64_t i, changes = test_amount(CHANGES);

	memset(leases, 0, sizeof(leases));
	(void)pthread_barrier_wait(&all_here);
	for (i = 0; i < changes && t->wrong == NULL && room_for_more(t); i++) {
		(void)pthread_mutex_lock(&turn);
		one_change(t, leases);
		(void)pthread_mutex_unlock(&turn);
	}
	atomic_fetch_sub(&writing, 1);
	return NULL;
}

/* Splits and merges the shared prompts; passes time 0, moves no clock. */
static void *
noise(void *argument)
{
	struct party *t = argument;
	uint64_t id;

	if (kvr_worker_find(k, "noise", 5, 0, &id) != KVR_OK)
		t->wrong = "no noise";
	(void)pthread_barrier_wait(&all_here);
	while (atomic_load(&writing) > 0 && t->wrong == NULL) {
		if (!say(t, pick(t, LINES), 1 + pick(t, LONGEST)))
			break;
		if (kvr_observe(k, t->p, id, 0, 0, NULL) != KVR_OK)
			t->wrong = "noise";
	}
	return NULL;
}

/* ------------------------------------------------------------- readers --- */

struct window {
	uint32_t first, last;  /* states */
	uint32_t line, n;      /* of the prompt */
	int64_t since, until;  /* time */
};

/* The depths that may be reported for an incarnation of a worker. */
struct range {
	uint32_t low, high;
	bool known;  /* there was such an incarnation */
};

static struct range
range_of(const struct history *h, const struct window *w, uint64_t id,
    bool active)
{
	struct range r = { LONGEST, 0, false };
	uint32_t i, low, high;

	for (i = w->first; i <= w->last; i++) {
		const struct state *s = &h->states[i];

		low = high = 0;
		if (s->id == id) {
			low = depth(s, w->line, w->n, w->until, active);
			high = depth(s, w->line, w->n, w->since, active);
			r.known = true;
		}
		r.low = least(r.low, low);
		r.high = high > r.high ? high : r.high;
	}
	return r;
}

static bool
ck_range(struct party *t, struct range r, uint32_t got, const char *what)
{
	t->checked++;
	if (got >= r.low && got <= r.high)
		return true;
	snprintf(t->said, sizeof(t->said), "%s: %u, must lie in %u to %u",
	    what, got, r.low, r.high);
	t->wrong = t->said;
	return false;
}

static void
ck_worker(struct party *t, const struct history *h, const struct window *w,
    const struct kvr_overlap *v, size_t n)
{
	uint64_t first = h->states[w->first].id;
	uint32_t blocks = 0, active = 0;
	struct range r;
	size_t i;

	for (i = 0; i < n; i++) {
		if (v[i].worker == first) {
			blocks = v[i].blocks;
			active = v[i].active_blocks;
			continue;
		}
		r = range_of(h, w, v[i].worker, false);
		if (r.known)
			(void)ck_range(t, r, v[i].blocks, "a new incarnation");
	}
	if (first == 0)
		return;
	(void)ck_range(t, range_of(h, w, first, false), blocks, "depth");
	(void)ck_range(t, range_of(h, w, first, true), active,
	    "active depth");
}

/* Every reported id must be known. */
static void
ck_known(struct party *t, const struct window *w, uint64_t noisy, uint64_t id)
{
	uint32_t i, s;

	if (id == noisy)
		return;
	for (i = 0; i < WORKERS; i++)
		for (s = w[i].first; s <= w[i].last; s++)
			if (history[i].states[s].id == id)
				return;
	t->wrong = "an overlap of an unknown worker";
}

static void
window_begin(struct party *t, struct window *w)
{
	uint32_t i, line = pick(t, LINES);
	uint32_t n = pick(t, 2) == 0 ? LONGEST : 1 + pick(t, LONGEST);

	for (i = 0; i < WORKERS; i++) {
		w[i].line = line;
		w[i].n = n;
		w[i].since = atomic_load(&clock_done);
		w[i].first = atomic_load(&history[i].done);
	}
}

static void
window_end(struct party *t, struct window *w)
{
	uint32_t i;

	for (i = 0; i < WORKERS; i++) {
		w[i].last = atomic_load(&history[i].begun);
		w[i].until = atomic_load(&clock_begun);
		t->raced += w[i].last > w[i].first;
	}
}

static void
look_once(struct party *t, uint64_t noisy)
{
	struct kvr_overlap v[WORKERS + 1];
	struct window w[WORKERS];
	uint32_t i;
	size_t n;

	window_begin(t, w);
	if (!say(t, w[0].line, w[0].n))
		return;
	if (kvr_match(k, t->p, 0, v, sizeof(v[0]), WORKERS + 1, &n) !=
	    KVR_OK || n > WORKERS + 1) {
		t->wrong = "kvr_match";
		return;
	}
	window_end(t, w);
	for (i = 0; i < WORKERS; i++)
		ck_worker(t, &history[i], &w[i], v, n);
	for (i = 0; i < n; i++)
		ck_known(t, w, noisy, v[i].worker);
}

/* Checks a route's report on the worker that it chooses. */
static void
route_once(struct party *t)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct window w[WORKERS];
	struct range r;
	uint32_t i;

	window_begin(t, w);
	if (!say(t, w[0].line, w[0].n))
		return;
	if (kvr_route(k, t->p, NULL, 0, &d) != KVR_OK) {
		t->wrong = "kvr_route";
		return;
	}
	window_end(t, w);
	for (i = 0; i < WORKERS; i++) {
		r = range_of(&history[i], &w[i], d.worker, false);
		if (r.known)
			(void)ck_range(t, r, d.overlap_blocks, "route");
	}
}

static void *
reader(void *argument)
{
	struct party *t = argument;
	uint64_t noisy;

	if (kvr_worker_find(k, "noise", 5, 0, &noisy) != KVR_OK)
		t->wrong = "no noise";
	(void)pthread_barrier_wait(&all_here);
	do {
		look_once(t, noisy);
		if (t->wrong == NULL)
			route_once(t);
	} while (atomic_load(&writing) > 0 && t->wrong == NULL);
	return NULL;
}

/* --------------------------------------------------------------- tests --- */

static void
open_region(void)
{
	struct kvr_options o;
	uint64_t id;
	uint32_t i;
	char name;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = 4 << 20;
	o.block_size = 1;
	o.ttl_ns = TTL;
	o.max_workers = WORKERS + 1;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	ck_assert_int_eq(kvr_worker_add(k, "noise", 5, NULL, &id), KVR_OK);
	atomic_store(&clock_begun, 10);
	atomic_store(&clock_done, 10);
	ck_assert_int_eq(kvr_expire(k, 10, 0, NULL), KVR_OK);
	for (i = 0; i < WORKERS; i++) {
		name = (char)('0' + i);
		ck_assert_int_eq(kvr_worker_add(k, &name, 1, NULL, &id),
		    KVR_OK);
		history[i].states = malloc(MAX_STATES *
		    sizeof(*history[i].states));
		ck_assert_ptr_nonnull(history[i].states);
		forget(&history[i].states[0], id);
		atomic_store(&history[i].begun, 0);
		atomic_store(&history[i].done, 0);
	}
}

static void
start(struct party *t, uint32_t number, uint64_t seed, void *(*run)(void *))
{
	memset(t, 0, sizeof(*t));
	t->number = number;
	t->chance = seed + number;
	ck_assert_int_eq(kvr_prompt_new(k, &t->p), KVR_OK);
	ck_assert_int_eq(pthread_create(&t->thread, NULL, run, t), 0);
}

static void
one_region(uint64_t seed, uint64_t *checked, uint64_t *raced)
{
	struct party t[WRITERS + 1 + READERS];
	struct kvr_stats s = { .size = sizeof(s) };
	uint32_t i;

	open_region();
	atomic_store(&writing, WRITERS);
	ck_assert_int_eq(pthread_barrier_init(&all_here, NULL,
	    WRITERS + 1 + READERS), 0);
	for (i = 0; i < WRITERS + 1 + READERS; i++)
		start(&t[i], i, seed, i < WRITERS ? writer
		    : i == WRITERS ? noise : reader);
	for (i = 0; i < WRITERS + 1 + READERS; i++)
		ck_assert_int_eq(pthread_join(t[i].thread, NULL), 0);
	for (i = 0; i < WRITERS + 1 + READERS; i++) {
		ck_assert_msg(t[i].wrong == NULL, "party %u: %s (KVR_SEED=%"
		    PRIu64 ")", i, t[i].wrong, seed);
		*checked += t[i].checked;
		*raced += t[i].raced;
		kvr_prompt_free(t[i].p);
	}
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	ck_assert_int_eq(kvr_stats_get(k, &s), KVR_OK);
	ck_assert_uint_eq(s.evicted_region + s.truncated, 0);
	ck_assert_uint_gt(s.expired, 0);
	ck_assert_uint_gt(s.splits, 0);
	ck_assert_int_eq(pthread_barrier_destroy(&all_here), 0);
	for (i = 0; i < WORKERS; i++)
		free(history[i].states);
	kvr_free(k);
}

START_TEST(between_least_and_most)
{
	uint64_t n = soak_amount(12, 2000), i, checked = 0, raced = 0;
	uint64_t seed = test_seed();

	for (i = 0; i < n; i++) {
		one_region(seed + 100 * i, &checked, &raced);
		soak_progress("between_least_and_most", i, n);
	}
	ck_assert_uint_gt(checked, n);
	if (test_amount(100) == 100)
		ck_assert_uint_gt(raced, 100);
	soak_row("depth: %" PRIu64 " depths within what was true during the"
	    " call, %" PRIu64 " of them while it changed", checked, raced);
}
END_TEST

Suite *suite_depth(void);

Suite *
suite_depth(void)
{
	Suite *s = suite_create("depth");
	TCase *t = tcase_create("depth");

	tcase_add_test(t, between_least_and_most);
	suite_add_tcase(s, t);
	return s;
}
