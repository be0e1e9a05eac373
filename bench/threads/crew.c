/* SPDX-License-Identifier: BSD-2-Clause */
/* crew.c - see crew.h. */
#include "crew.h"

#include "args.h"
#include "floor.h"
#include "policy_run.h"
#include "bench_index.h"

#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINE = 64,            /* bytes of a cache line */
	REQUESTS_MAX = 1 << 16, /* of the load, replayed over and over */
	PROMPTS = 256,        /* that a thread matches; they fit in its cache */
	BATCH_REQUESTS = 16,  /* of FLOOR and ALL, taken at once */
	BATCH_MATCHES = 256
};

/* One thread's state; no other thread reads it while it is written. */
struct member {
	_Alignas(LINE) struct crew *crew;
	pthread_t thread;
	uint32_t number;
	size_t first;         /* prompt that a shift of matches begins with */
	uint32_t *tokens;     /* [room for the longest request] */
	struct kvr_prompt *prompt;
	struct kvr_prompt *prompts[PROMPTS];
	struct kvr_overlap *overlaps;
	uint64_t hash;        /* keeps the floor from being optimized away */
	uint64_t done;        /* of the last shift */
	uint64_t found;       /* in its matches */
	int64_t began, ended;
};

struct crew {
	_Alignas(LINE) _Atomic uint64_t next;
	_Alignas(LINE) uint64_t end;
	enum crew_work work;
	pthread_barrier_t start;
	const struct load *load;
	size_t n;             /* requests that are replayed */
	struct world world;
	uint64_t *taken;      /* [n] worker that each request goes to */
	uint64_t position;    /* requests replayed so far */
	uint64_t found[PROMPTS];
	uint32_t threads;
	struct member *members[CREW_MAX];
};

static void
crew_must(int e, const char *what)
{
	if (e != KVR_OK)
		errx(ARGS_FAILED, "%s: %s", what, kvr_strerror(e));
}

static void *
aligned(size_t bytes)
{
	void *p = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);

	if (p == NULL)
		err(ARGS_FAILED, NULL);
	memset(p, 0, bytes);
	return p;
}

/* ------------------------------------------------------------- requests --- */

static const struct trace_request *
request_at(const struct crew *c, uint64_t position)
{
	return &c->load->requests[position % c->n];
}

/* The load begins anew one nanosecond after its last request. */
static int64_t
time_at(const struct crew *c, uint64_t position)
{
	uint64_t round = position / c->n;
	uint64_t span = (uint64_t)c->load->span_ns + 1;

	if (round > INT64_MAX / 4 / span)
		errx(ARGS_FAILED, "the trace is too long for that many "
		    "replays");
	return (int64_t)(round * span) + load_arrival(request_at(c, position));
}

/* A buffer for any request, filled with the tokens of hash id 0. */
static uint32_t *
tokens_new(const struct load *l)
{
	size_t i, n = (l->most_tokens + TRACE_BLOCK - 1) / TRACE_BLOCK *
	    TRACE_BLOCK;
	uint32_t *tokens = aligned(n * sizeof(*tokens));

	for (i = 0; i < n; i++)
		tokens[i] = token_of(0, i % TRACE_BLOCK);
	return tokens;
}

static void
tokens_set(uint32_t *tokens, const struct trace_request *r)
{
	size_t i, n = (r->tokens + TRACE_BLOCK - 1) / TRACE_BLOCK;

	for (i = 0; i < n; i++) {
		tokens[i * TRACE_BLOCK] = (uint32_t)r->ids[i];
		tokens[i * TRACE_BLOCK + 1] = (uint32_t)(r->ids[i] >> 32);
	}
}

/* --------------------------------------------------------------- region --- */

/* One request in one thread, with its choice. */
static void
fill_request(struct crew *c)
{
	const struct trace_request *r = request_at(c, c->position);
	struct world *w = &c->world;
	int64_t now = time_at(c, c->position);
	uint64_t *taken = &c->taken[c->position % c->n];

	tokens_set(w->tokens.tokens, r);
	world_expire(w, now);
	world_hash(w, r);
	world_match(w, now);
	*taken = world_choose(w, r);
	world_observe(w, *taken, now);
	c->position++;
}

/*
 * Two replays, the second of which finds the index as all later ones will; its
 * choices are kept. Then half a replay more: each shift begins in the middle of
 * the trace.
 */
static void
crew_fill(struct crew *c, const struct world_options *options)
{
	uint64_t middle = 2 * (uint64_t)c->n + c->n / 2;

	if (world_open(&c->world, options) != KVR_OK)
		errx(ARGS_FAILED, "the region is too small for %u workers",
		    options->workers);
	c->world.tokens.tokens = tokens_new(c->load);
	c->taken = calloc(c->n, sizeof(*c->taken));
	if (c->taken == NULL)
		err(ARGS_FAILED, NULL);
	while (c->position < 2 * (uint64_t)c->n)
		fill_request(c);
	while (c->position < middle)
		fill_request(c);
}

/* -------------------------------------------------------------- members --- */

/*
 * Each thread allocates its own memory, so that no two threads share a cache
 * line: malloc gives concurrent threads separate arenas.
 */
static void *
member_prepare(void *of)
{
	struct member *m = of;
	const struct crew *c = m->crew;
	const struct kvr *k = c->world.k;
	size_t i;

	(void)pthread_barrier_wait(&m->crew->start);
	m->first = (size_t)m->number * PROMPTS / c->threads;
	m->tokens = tokens_new(c->load);
	m->overlaps = calloc(c->world.workers, sizeof(*m->overlaps));
	if (m->overlaps == NULL)
		err(ARGS_FAILED, NULL);
	crew_must(kvr_prompt_new(k, &m->prompt), "kvr_prompt_new");
	for (i = 0; i < PROMPTS; i++) {
		const struct trace_request *r = request_at(c, c->position + i);

		tokens_set(m->tokens, r);
		crew_must(kvr_prompt_new(k, &m->prompts[i]), "kvr_prompt_new");
		crew_must(kvr_prompt_set_tokens(m->prompts[i], NULL, m->tokens,
		    r->tokens), "kvr_prompt_set_tokens");
	}
	return NULL;
}

static void
member_free(struct member *m)
{
	size_t i;

	for (i = 0; i < PROMPTS; i++)
		kvr_prompt_free(m->prompts[i]);
	kvr_prompt_free(m->prompt);
	free(m->overlaps);
	free(m->tokens);
	free(m);
}

/* Starts all threads at once. */
static void
crew_run(struct crew *c, uint32_t threads, void *(*what)(void *))
{
	uint32_t i;
	int e = pthread_barrier_init(&c->start, NULL, threads);

	for (i = 0; i < threads && e == 0; i++)
		e = pthread_create(&c->members[i]->thread, NULL, what,
		    c->members[i]);
	if (e != 0)
		errx(ARGS_FAILED, "%u threads: %s", threads, strerror(e));
	for (i = 0; i < threads; i++)
		(void)pthread_join(c->members[i]->thread, NULL);
	(void)pthread_barrier_destroy(&c->start);
}

struct crew *
crew_new(const struct load *l, const struct world_options *options,
    uint32_t threads)
{
	struct crew *c = aligned(sizeof(*c));
	uint32_t i;

	floor_prepare();
	c->load = l;
	c->n = l->n < REQUESTS_MAX ? l->n : REQUESTS_MAX;
	c->threads = threads;
	crew_fill(c, options);
	for (i = 0; i < threads; i++) {
		c->members[i] = aligned(sizeof(*c->members[i]));
		c->members[i]->crew = c;
		c->members[i]->number = i;
	}
	crew_run(c, threads, member_prepare);
	return c;
}

void
crew_free(struct crew *c)
{
	uint32_t i;

	for (i = 0; i < c->threads; i++)
		member_free(c->members[i]);
	world_close(&c->world);
	free(c->taken);
	free(c);
}

/* ----------------------------------------------------------------- work --- */

static void
work_floor(struct member *m, uint64_t at, uint64_t end)
{
	const struct crew *c = m->crew;
	uint64_t hash = m->hash;

	for (; at < end; at++) {
		const struct trace_request *r = request_at(c, at);

		tokens_set(m->tokens, r);
		hash ^= floor_hash(m->tokens, r->tokens,
		    c->world.options.block_size);
	}
	m->hash = hash;
}

/* How many workers have how much of the m's i-th prompt, as one number. */
static uint64_t
crew_match(struct member *m, size_t i, int64_t now)
{
	const struct world *w = &m->crew->world;
	size_t count = 0;

	crew_must(kvr_match(w->k, m->prompts[i], now, m->overlaps,
	    sizeof(*m->overlaps), w->workers, &count), "kvr_match");
	return count == 0 ? 0 : count + m->overlaps[0].blocks;
}

static void
work_match(struct member *m, uint64_t at, uint64_t end)
{
	int64_t now = time_at(m->crew, m->crew->position);
	size_t i = (m->first + m->done) % PROMPTS;

	for (; at < end; at++) {
		m->found += crew_match(m, i, now);
		i = (i + 1) % PROMPTS;
	}
}

static void
work_all(struct member *m, uint64_t at, uint64_t end)
{
	const struct crew *c = m->crew;
	struct kvr *k = c->world.k;
	size_t count = 0;

	for (; at < end; at++) {
		const struct trace_request *r = request_at(c, at);
		int64_t now = time_at(c, at);

		tokens_set(m->tokens, r);
		crew_must(kvr_expire(k, now, UINT32_MAX, NULL), "kvr_expire");
		crew_must(kvr_prompt_set_tokens(m->prompt, NULL, m->tokens,
		    r->tokens), "kvr_prompt_set_tokens");
		crew_must(kvr_match(k, m->prompt, now, m->overlaps,
		    sizeof(*m->overlaps), c->world.workers, &count),
		    "kvr_match");
		crew_must(kvr_observe(k, m->prompt, c->taken[at % c->n], now, 0,
		    NULL), "kvr_observe");
	}
}

static void *
member_work(void *of)
{
	static void (*const works[CREW_WORKS])(struct member *, uint64_t,
	    uint64_t) = { work_floor, work_match, work_all };
	struct member *m = of;
	struct crew *c = m->crew;
	uint64_t at, end, batch = c->work == CREW_MATCH ? BATCH_MATCHES :
	    BATCH_REQUESTS;

	(void)pthread_barrier_wait(&c->start);
	m->began = pass_clock();
	while ((at = atomic_fetch_add_explicit(&c->next, batch,
	    memory_order_relaxed)) < c->end) {
		end = at + batch < c->end ? at + batch : c->end;
		works[c->work](m, at, end);
		m->done += end - at;
	}
	m->ended = pass_clock();
	return NULL;
}

/* --------------------------------------------------------------- shifts --- */

/* What one thread finds, before the others match too. */
static void
find_alone(struct crew *c)
{
	int64_t now = time_at(c, c->position);
	size_t i;

	for (i = 0; i < PROMPTS; i++)
		c->found[i] = crew_match(c->members[0], i, now);
}

static void
compare_found(const struct crew *c, const struct member *m)
{
	uint64_t all = 0, expected;
	size_t i;

	for (i = 0; i < PROMPTS; i++)
		all += c->found[i];
	expected = m->done / PROMPTS * all;
	for (i = 0; i < m->done % PROMPTS; i++)
		expected += c->found[(m->first + i) % PROMPTS];
	if (m->found != expected)
		errx(ARGS_FAILED, "threads that match side by side do not "
		    "find what one finds alone");
}

static double
seconds(const struct crew *c, uint32_t threads)
{
	int64_t began = INT64_MAX, ended = INT64_MIN;
	uint32_t i;

	for (i = 0; i < threads; i++) {
		const struct member *m = c->members[i];

		began = m->began < began ? m->began : began;
		ended = m->ended > ended ? m->ended : ended;
	}
	return ended > began ? (double)(ended - began) / 1e9 : 1e-9;
}

double
crew_shift(struct crew *c, enum crew_work work, uint32_t threads,
    uint64_t units)
{
	uint32_t i;

	if (work == CREW_ALL)
		units = (units + c->n - 1) / c->n * c->n;
	if (work == CREW_MATCH)
		find_alone(c);
	c->work = work;
	atomic_store(&c->next, c->position);
	c->end = c->position + units;
	for (i = 0; i < threads; i++)
		c->members[i]->done = c->members[i]->found = 0;
	crew_run(c, threads, member_work);
	for (i = 0; i < threads && work == CREW_MATCH; i++)
		compare_found(c, c->members[i]);
	if (work == CREW_ALL)
		c->position = c->end;
	return (double)units / seconds(c, threads);
}

void
crew_stats(const struct crew *c, struct kvr_stats *out)
{
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	crew_must(kvr_stats_get(c->world.k, out), "kvr_stats_get");
	if (kvr_check(c->world.k) != KVR_OK)
		errx(ARGS_FAILED, "the index is not whole any more");
}
