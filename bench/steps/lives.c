/* SPDX-License-Identifier: BSD-2-Clause */
/* lives.c - see lives.h. */
#include "lives.h"

#include "args.h"
#include "policy_run.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_NS INT64_C(100000000)
#define PREFILL_NS INT64_C(50000)
#define DECODE_NS INT64_C(25000000)
#define MAX_NS INT64_C(600000000000)
enum { HALVED = 4 }; /* one report in this many */

struct event {
	int64_t at; /* since the replay began */
	size_t request;
	bool end;   /* else the first token */
};

struct lives {
	const struct load *load;
	struct event *events; /* [2 * load->n] in order of time */
	size_t next;          /* of them, in this replay */
	uint64_t *lease;      /* [load->n] */
	uint64_t *cached;     /* [load->n] tokens, as will be reported */
	struct world *world;
	const struct lives_times *times;
};

static void
lives_must(int e, const char *what)
{
	if (e != KVR_OK)
		errx(ARGS_FAILED, "%s: %s", what, kvr_strerror(e));
}

/* ------------------------------------------------------------- schedule --- */

static int
lives_compare(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->request != y->request)
		return x->request < y->request ? -1 : 1;
	return x->end - y->end;
}

/* a * b, at most `most`. */
static int64_t
times_most(uint64_t a, int64_t b, int64_t most)
{
	return a > (uint64_t)(most / b) ? most : (int64_t)a * b;
}

static void
schedule(struct lives *s)
{
	size_t i;

	for (i = 0; i < s->load->n; i++) {
		const struct trace_request *r = &s->load->requests[i];
		struct event *e = &s->events[2 * i];

		e[0].request = e[1].request = i;
		e[0].at = load_arrival(r) + FIRST_NS + times_most(r->tokens,
		    PREFILL_NS, MAX_NS / 2);
		e[1].at = e[0].at + times_most(r->output_length, DECODE_NS,
		    MAX_NS / 2);
		e[1].end = true;
	}
	qsort(s->events, 2 * s->load->n, sizeof(*s->events), lives_compare);
}

struct lives *
lives_new(const struct load *l)
{
	struct lives *s = calloc(1, sizeof(*s));

	if (s == NULL)
		err(ARGS_FAILED, NULL);
	s->load = l;
	s->events = calloc(2 * l->n, sizeof(*s->events));
	s->lease = calloc(l->n, sizeof(*s->lease));
	s->cached = calloc(l->n, sizeof(*s->cached));
	if (s->events == NULL || s->lease == NULL || s->cached == NULL)
		err(ARGS_FAILED, NULL);
	schedule(s);
	return s;
}

void
lives_free(struct lives *s)
{
	free(s->events);
	free(s->lease);
	free(s->cached);
	free(s);
}

int64_t
lives_span(const struct lives *s)
{
	return s->events[2 * s->load->n - 1].at;
}

/* --------------------------------------------------------------- replay --- */

/* Adds the time of a step that began at `start` and has just ended. */
static void
took(const struct lives *s, int64_t *of, size_t request, int64_t start)
{
	int64_t ns = pass_clock() - start;

	if (s->times == NULL)
		return;
	ns -= s->times->clock_ns;
	of[request] += ns < 0 ? 0 : ns;
}

static int64_t *
life_of(const struct lives *s)
{
	return s->times == NULL ? NULL : s->times->life;
}

static int64_t *
decide_of(const struct lives *s)
{
	return s->times == NULL ? NULL : s->times->decide;
}

static void
happen(struct lives *s, const struct event *e)
{
	const struct trace_request *r = &s->load->requests[e->request];
	int64_t now = s->world->base + e->at, start;
	struct kvr_report report;

	memset(&report, 0, sizeof(report));
	report.size = sizeof(report);
	report.kind = KVR_REPORT_VALUE;
	report.prompt_tokens = r->tokens;
	report.cached_tokens = s->cached[e->request];
	report.completion_tokens = r->output_length;
	start = pass_clock();
	if (e->end)
		lives_must(kvr_lease_finish(
			 s->world->k, s->lease[e->request], &report, now, 0),
		    "kvr_lease_finish");
	else
		lives_must(kvr_lease_first_token(
			 s->world->k, s->lease[e->request], now, 0),
		    "kvr_lease_first_token");
	took(s, life_of(s), e->request, start);
}

/* Processes the events that are due by now. */
static void
happen_until(struct lives *s, int64_t at)
{
	while (s->next < 2 * s->load->n && s->events[s->next].at <= at)
		happen(s, &s->events[s->next++]);
}

static void
reserve(struct lives *s, size_t i, uint64_t worker, int64_t now)
{
	const struct trace_request *r = &s->load->requests[i];
	struct kvr *k = s->world->k;
	struct kvr_decision d;
	int64_t start;
	uint64_t cached;

	memset(&d, 0, sizeof(d));
	d.size = sizeof(d);
	start = pass_clock();
	lives_must(kvr_lease_open_on(k, s->world->prompt, NULL, worker, now,
	    &d), "kvr_lease_open_on");
	lives_must(kvr_lease_commit(k, d.lease, now, 0), "kvr_lease_commit");
	took(s, life_of(s), i, start);
	cached = (uint64_t)d.overlap_blocks * s->world->options.block_size;
	if (cached >= r->tokens)
		cached = r->tokens - 1;
	s->cached[i] = i % HALVED == HALVED - 1 ? cached / 2 : cached;
	s->lease[i] = d.lease;
}

static void
arrive(struct lives *s, size_t i)
{
	const struct trace_request *r = &s->load->requests[i];
	struct world *w = s->world;
	int64_t now = w->base + load_arrival(r), start;
	struct kvr_decision d;

	d.size = sizeof(d);
	world_make(w, r);
	happen_until(s, load_arrival(r));
	world_expire(w, now);
	world_hash(w, r);
	start = pass_clock();
	lives_must(kvr_route(w->k, w->prompt, NULL, now, &d), "kvr_route");
	took(s, decide_of(s), i, start);
	world_match(w, now);
	reserve(s, i, world_choose(w, r), now);
}

void
lives_replay(struct lives *s, struct world *w,
    const struct lives_times *times)
{
	size_t i, n = s->load->n;

	s->world = w;
	s->times = times;
	s->next = 0;
	if (times != NULL) {
		memset(times->decide, 0, n * sizeof(*times->decide));
		memset(times->life, 0, n * sizeof(*times->life));
	}
	for (i = 0; i < n; i++)
		arrive(s, i);
	happen_until(s, INT64_MAX);
}
