/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sessions.c - see sessions.h.
 *
 * A run is a conversation under way. It has at most one request, which is
 * pending until its time comes, and then in flight; or it waits for sub-agents:
 *
 *   runs     [ main | main | agent of 1 | agent of 1 | free ]
 *   pending  heap of runs by the time of their request
 *
 * Times of a run are relative to the end of its last response. A request after
 * sub-agents begins when it is due by its own pause, but not before all of them
 * have ended: recorded pauses contain the time for which sub-agents ran.
 */
#include "sessions.h"

#include "rng.h"
#include "session_trace.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

#define NO_RUN SIZE_MAX

/* A session, from its begin to its end. */
struct play {
	const struct session *session;
	uint64_t salt; /* of its ids */
	int64_t begin;
	int64_t end;   /* -1: not yet */
	int64_t wait_ns;
};

struct run {
	size_t play;
	size_t talk;
	size_t entry;    /* the next one, within the talk */
	size_t parent;   /* run, or NO_RUN */
	size_t agents;   /* that have not ended */
	size_t next_free;
	int64_t ended;   /* last response, or begin */
	int64_t resumed; /* when the last sub-agent ended */
	int64_t at;      /* of its request */
	uint64_t order;  /* among those of one time */
};

struct sessions {
	struct sessions_options options;
	struct session *const *list;
	size_t n_list;
	size_t *round; /* [n_list] in order of their begin */
	struct rng rng;
	struct play *plays; /* [count] */
	size_t n_plays; /* begun */
	size_t n_ended;
	struct run *runs;
	size_t n_runs;
	size_t run_capacity;
	size_t free;
	size_t *pending; /* [run_capacity] */
	size_t n_pending;
	uint64_t order;
	uint64_t requests;
	uint64_t *ids;
	size_t id_capacity;
};

void
sessions_defaults(struct sessions_options *o)
{
	*o = (struct sessions_options){ .seed = 1, .active = 8,
	    .ramp_ns = INT64_C(60000000000), .think_ns = SESSIONS_NEVER };
}

static uint64_t
sessions_mix(uint64_t z)
{
	struct rng r = { z };

	return rng_next(&r);
}

/* -------------------------------------------------------------- pending --- */

static bool
is_earlier(const struct sessions *s, size_t a, size_t b)
{
	const struct run *x = &s->runs[a], *y = &s->runs[b];

	return x->at != y->at ? x->at < y->at : x->order < y->order;
}

static void
pending_push(struct sessions *s, size_t run)
{
	size_t i, up;

	s->runs[run].order = s->order++;
	for (i = s->n_pending++; i > 0; i = up) {
		up = (i - 1) / 2;
		if (!is_earlier(s, run, s->pending[up]))
			break;
		s->pending[i] = s->pending[up];
	}
	s->pending[i] = run;
}

static size_t
pending_pop(struct sessions *s)
{
	size_t first = s->pending[0], last = s->pending[--s->n_pending];
	size_t i = 0, child;

	for (;; i = child) {
		child = 2 * i + 1;
		if (child >= s->n_pending)
			break;
		if (child + 1 < s->n_pending &&
		    is_earlier(s, s->pending[child + 1], s->pending[child]))
			child++;
		if (!is_earlier(s, s->pending[child], last))
			break;
		s->pending[i] = s->pending[child];
	}
	s->pending[i] = last;
	return first;
}

/* ----------------------------------------------------------------- runs --- */

/* NO_RUN: out of memory. */
static size_t
run_new(struct sessions *s)
{
	size_t i = s->free, want = s->run_capacity * 2 + 16, *pending;
	struct run *runs;

	if (i != NO_RUN) {
		s->free = s->runs[i].next_free;
		return i;
	}
	if (s->n_runs == s->run_capacity) {
		runs = realloc(s->runs, want * sizeof(*runs));
		if (runs == NULL)
			return NO_RUN;
		s->runs = runs;
		pending = realloc(s->pending, want * sizeof(*pending));
		if (pending == NULL)
			return NO_RUN;
		s->pending = pending;
		s->run_capacity = want;
	}
	return s->n_runs++;
}

static void
run_free(struct sessions *s, size_t run)
{
	s->runs[run].next_free = s->free;
	s->free = run;
}

static const struct session_talk *
talk_of(const struct sessions *s, const struct run *r)
{
	return &s->plays[r->play].session->talks[r->talk];
}

/* NULL: there is no further entry. */
static const struct session_entry *
entry_of(const struct sessions *s, const struct run *r)
{
	const struct session_talk *t = talk_of(s, r);

	return r->entry == t->n ? NULL :
	    &s->plays[r->play].session->entries[t->first + r->entry];
}

static int64_t
pause_of(const struct sessions *s, const struct session_entry *e)
{
	return e->after_ns < s->options.think_ns ? e->after_ns :
	    s->options.think_ns;
}

/* A pause that is no longer than allowed, from `since` on. */
static int64_t
due_at(const struct sessions *s, const struct session_entry *e, int64_t since)
{
	return since + pause_of(s, e);
}

static int go_on(struct sessions *s, size_t run);

static int
begin_run(struct sessions *s, size_t play, size_t talk, size_t parent,
    int64_t at)
{
	size_t run = run_new(s);

	if (run == NO_RUN)
		return -1;
	s->runs[run] = (struct run){ .play = play, .talk = talk,
	    .parent = parent, .ended = at, .resumed = at };
	return go_on(s, run);
}

/* -1: out of memory. */
static int
begin_play(struct sessions *s, int64_t at)
{
	size_t place = s->n_plays % s->n_list, i, k, kept;
	struct play *p;

	/* A new order in each round. */
	for (i = s->n_list; place == 0 && i-- > 1;) {
		k = (size_t)rng_between(&s->rng, 0, i);
		kept = s->round[i];
		s->round[i] = s->round[k];
		s->round[k] = kept;
	}
	p = &s->plays[s->n_plays++];
	*p = (struct play){ .session = s->list[s->round[place]],
	    .salt = rng_next(&s->rng), .begin = at, .end = -1 };
	return begin_run(s, s->n_plays - 1, 0, NO_RUN, at);
}

static int
end_play(struct sessions *s, size_t play, int64_t at)
{
	s->plays[play].end = at;
	s->n_ended++;
	return s->n_plays < s->options.count ? begin_play(s, at) : 0;
}

/* The conversation has ended, at the time of its last response or later. */
static int
end_run(struct sessions *s, size_t run)
{
	struct run r = s->runs[run];
	int64_t at = r.ended > r.resumed ? r.ended : r.resumed;
	struct run *parent;

	run_free(s, run);
	if (r.parent == NO_RUN)
		return end_play(s, r.play, at);
	parent = &s->runs[r.parent];
	if (parent->resumed < at)
		parent->resumed = at;
	return --parent->agents == 0 ? go_on(s, r.parent) : 0;
}

/*
 * Begins the sub-agents that stand beside each other, each at its own time.
 * The parent is counted as one of them until all have begun, because some may
 * end at once.
 */
static int
begin_agents(struct sessions *s, size_t run)
{
	const struct session_entry *e;
	struct run *r = &s->runs[run];
	int64_t since = r->ended > r->resumed ? r->ended : r->resumed, at;

	r->agents = 1;
	while ((e = entry_of(s, r)) != NULL && e->talk != 0) {
		at = due_at(s, e, r->ended);
		r->entry++;
		r->agents++;
		if (begin_run(s, r->play, e->talk, run, at > since ? at :
		    since) != 0)
			return -1;
		r = &s->runs[run]; /* may have moved */
	}
	return --r->agents == 0 ? go_on(s, run) : 0;
}

static int
go_on(struct sessions *s, size_t run)
{
	struct run *r = &s->runs[run];
	const struct session_entry *e = entry_of(s, r);

	if (e == NULL)
		return end_run(s, run);
	if (e->talk != 0)
		return begin_agents(s, run);
	r->at = due_at(s, e, r->ended);
	if (r->at < r->resumed)
		r->at = r->resumed;
	pending_push(s, run);
	return 0;
}

/* ------------------------------------------------------------- requests --- */

int64_t
sessions_next(const struct sessions *s)
{
	return s->n_pending == 0 ? SESSIONS_NEVER :
	    s->runs[s->pending[0]].at;
}

/* Writes the ids of this play of the session. */
static int
fill_ids(struct sessions *s, const struct run *r,
    const struct session_entry *e)
{
	const struct play *p = &s->plays[r->play];
	const struct session_talk *t = talk_of(s, r);
	const uint64_t *from = &p->session->ids[e->first_id];
	uint64_t common = sessions_mix(t->tool_tokens << 32 |
	    t->system_tokens);
	size_t i;

	if (e->n_ids > s->id_capacity) {
		uint64_t *ids = realloc(s->ids, e->n_ids * sizeof(*ids));

		if (ids == NULL)
			return -1;
		s->ids = ids;
		s->id_capacity = e->n_ids;
	}
	for (i = 0; i < e->n_ids; i++)
		s->ids[i] = i < e->n_common ? sessions_mix(common + i) :
		    sessions_mix(p->salt ^ from[i]);
	return 0;
}

int
sessions_take(struct sessions *s, struct trace_request *out)
{
	size_t run = s->pending[0];
	struct run *r = &s->runs[run];
	const struct session_entry *e = entry_of(s, r);

	if (fill_ids(s, r, e) != 0)
		return -1;
	pending_pop(s);
	memset(out, 0, sizeof(*out));
	out->number = run;
	out->arrival_ms = out->timestamp_ms = r->at / 1000000;
	out->input_length = e->input;
	out->output_length = e->output;
	out->known_output = e->known;
	out->tokens = (size_t)e->input;
	out->n_ids = (size_t)((e->input + TRACE_BLOCK - 1) / TRACE_BLOCK);
	out->ids = s->ids;
	out->session = sessions_mix(s->plays[r->play].salt + r->talk) >> 1 | 1;
	r->entry++;
	s->requests++;
	return 0;
}

struct sessions_place
sessions_where(const struct sessions *s, uint64_t ticket)
{
	const struct run *r = &s->runs[ticket];

	return (struct sessions_place){ .play = r->play, .talk = r->talk,
	    .head = talk_of(s, r) };
}

int
sessions_ended(struct sessions *s, uint64_t ticket, int64_t now)
{
	struct run *r = &s->runs[ticket];

	s->plays[r->play].wait_ns += now - r->at;
	r->ended = r->resumed = now;
	return go_on(s, (size_t)ticket);
}

bool
sessions_done(const struct sessions *s)
{
	return s->n_ended == s->options.count;
}

/* --------------------------------------------------------------- making --- */

static int
sessions_begin(struct sessions *s)
{
	uint64_t first = s->options.active, i;

	if (first > s->options.count)
		first = s->options.count;
	for (i = 0; i < first; i++)
		if (begin_play(s, (int64_t)rng_between(&s->rng, 0,
		    (uint64_t)s->options.ramp_ns)) != 0)
			return -1;
	return 0;
}

struct sessions *
sessions_new(struct session *const *list, size_t n,
    const struct sessions_options *o)
{
	struct sessions *s = calloc(1, sizeof(*s));
	size_t i;

	if (s == NULL)
		return NULL;
	s->options = *o;
	if (o->count == 0)
		s->options.count = n;
	s->list = list;
	s->n_list = n;
	s->rng.state = o->seed;
	s->free = NO_RUN;
	s->round = calloc(n, sizeof(*s->round));
	s->plays = calloc((size_t)s->options.count, sizeof(*s->plays));
	for (i = 0; s->round != NULL && i < n; i++)
		s->round[i] = i;
	if (s->round == NULL || s->plays == NULL || sessions_begin(s) != 0) {
		sessions_free(s);
		return NULL;
	}
	return s;
}

void
sessions_free(struct sessions *s)
{
	if (s == NULL)
		return;
	free(s->round);
	free(s->plays);
	free(s->runs);
	free(s->pending);
	free(s->ids);
	free(s);
}

/* -------------------------------------------------------------- figures --- */

static int
sessions_ascending(const void *a, const void *b)
{
	int64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

int
sessions_measure(const struct sessions *s, struct sessions_figures *out)
{
	int64_t *waits = calloc(s->n_ended + 1, sizeof(*waits));
	double wait = 0, length = 0;
	size_t n = 0, i;

	*out = (struct sessions_figures){ .sessions = s->n_ended,
	    .active = s->options.active, .requests = s->requests };
	if (waits == NULL)
		return -1;
	for (i = 0; i < s->n_plays; i++) {
		if (s->plays[i].end < 0)
			continue;
		waits[n++] = s->plays[i].wait_ns;
		wait += (double)s->plays[i].wait_ns;
		length += (double)(s->plays[i].end - s->plays[i].begin);
	}
	if (n > 0) {
		qsort(waits, n, sizeof(*waits), sessions_ascending);
		out->wait_mean = wait / (double)n / 1e9;
		out->wait_p90 = (double)waits[(n * 90 + 99) / 100 - 1] / 1e9;
		out->length_mean = length / (double)n / 1e9;
	}
	free(waits);
	return 0;
}
