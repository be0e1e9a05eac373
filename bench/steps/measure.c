/* SPDX-License-Identifier: BSD-2-Clause */
/* measure.c - see measure.h. */
#include "measure.h"

#include "args.h"
#include "floor.h"
#include "lives.h"
#include "policy_run.h"

#include <err.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CLOCK_READINGS = 10001 };
/* INDEX: expire, match, observe; TOTAL: that and hash. */
enum step {
	EXPIRE, HASH, MATCH, OBSERVE, FLOOR, ROUTE, ROUTE_BUSY, DECIDE, LEASE,
	INDEX, TOTAL, STEPS
};

struct measuring {
	const struct load *load;
	struct world world;
	struct lives *lives;
	struct lives_times times; /* of the last replay by leases */
	bool company;             /* workers hold what was there before */
	struct kvr_stats lost;    /* in the last replay step by step */
	int64_t clock_ns;         /* of reading the clock */
	uint32_t *least[STEPS];   /* [load->n] nanoseconds, of all trials */
	uint64_t result;          /* keeps the floor from being dropped */
};

static int
compare_u32(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int64_t
measure_clock_ns(void)
{
	static uint32_t d[CLOCK_READINGS];
	int64_t last = pass_clock(), now;
	size_t i;

	for (i = 0; i < CLOCK_READINGS; i++) {
		now = pass_clock();
		d[i] = (uint32_t)(now - last);
		last = now;
	}
	qsort(d, CLOCK_READINGS, sizeof(d[0]), compare_u32);
	return d[CLOCK_READINGS / 2];
}

static int64_t
between(const struct measuring *s, int64_t start, int64_t end)
{
	int64_t d = end - start - s->clock_ns;

	return d < 0 ? 0 : d;
}

static void
keep_least(struct measuring *s, enum step step, size_t i, int64_t ns)
{
	if (ns < (int64_t)s->least[step][i])
		s->least[step][i] = (uint32_t)ns;
}

/* One request, timed step by step. */
static void
time_request(struct measuring *s, size_t i)
{
	const struct trace_request *r = &s->load->requests[i];
	struct world *w = &s->world;
	int64_t now = w->base + load_arrival(r), t[7], step[STEPS] = { 0 };
	uint64_t worker;
	enum step k;

	world_make(w, r);
	t[0] = pass_clock();
	world_expire(w, now);
	t[1] = pass_clock();
	world_hash(w, r);
	t[2] = pass_clock();
	world_match(w, now);
	t[3] = pass_clock();
	worker = world_choose(w, r);
	t[4] = pass_clock();
	world_observe(w, worker, now);
	t[5] = pass_clock();
	s->result ^= floor_hash(w->tokens.tokens, r->tokens,
	    w->options.block_size);
	t[6] = pass_clock();
	step[EXPIRE] = between(s, t[0], t[1]);
	step[HASH] = between(s, t[1], t[2]);
	step[MATCH] = between(s, t[2], t[3]);
	step[OBSERVE] = between(s, t[4], t[5]);
	step[FLOOR] = between(s, t[5], t[6]);
	step[INDEX] = step[EXPIRE] + step[MATCH] + step[OBSERVE];
	step[TOTAL] = step[INDEX] + step[HASH];
	for (k = 0; k < STEPS; k++)
		if (k < ROUTE || k > LEASE)
			keep_least(s, k, i, step[k]);
}

static void
read_stats(const struct measuring *s, struct kvr_stats *out)
{
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	if (kvr_stats_get(s->world.k, out) != KVR_OK)
		errx(ARGS_FAILED, "kvr_stats_get");
}

static void
time_steps(struct measuring *s)
{
	struct kvr_stats before;
	size_t i;

	read_stats(s, &before);
	for (i = 0; i < s->load->n; i++)
		time_request(s, i);
	read_stats(s, &s->lost);
	s->lost.evicted_region -= before.evicted_region;
	s->lost.truncated -= before.truncated;
	s->lost.expired -= before.expired;
	s->lost.evicted_capacity -= before.evicted_capacity;
}

/* It is no floor if it hashes something other than the library. */
static void
check_floor(const struct world *w, const struct trace_request *r)
{
	size_t blocks = r->tokens / w->options.block_size;
	uint64_t local = 0, last = 0;

	if (w->options.hash != KVR_HASH_DYNAMO || blocks == 0)
		return;
	if (kvr_prompt_hash(w->prompt, blocks - 1, &local, &last) != KVR_OK ||
	    floor_hash(w->tokens.tokens, r->tokens, w->options.block_size) !=
	    last)
		errx(ARGS_FAILED, "the floor and the library disagree");
}

/* The same replay, with only the cost function timed. */
static void
time_route(struct measuring *s, enum step step)
{
	struct world *w = &s->world;
	struct kvr_decision d;
	int64_t start;
	size_t i;
	int e;

	d.size = sizeof(d);
	for (i = 0; i < s->load->n; i++) {
		const struct trace_request *r = &s->load->requests[i];
		int64_t now = w->base + load_arrival(r);

		world_make(w, r);
		world_expire(w, now);
		world_hash(w, r);
		check_floor(w, r);
		world_match(w, now);
		start = pass_clock();
		e = kvr_choose(w->k, w->prompt, NULL, w->overlaps,
		    sizeof(*w->overlaps), w->n_overlaps, now, &d);
		keep_least(s, step, i, between(s, start, pass_clock()));
		if (e != KVR_OK)
			errx(ARGS_FAILED, "kvr_choose: %s", kvr_strerror(e));
		world_observe(w, world_choose(w, r), now);
	}
}

/* Each request from open to end, by its lease. */
static void
time_lives(struct measuring *s)
{
	size_t i;

	lives_replay(s->lives, &s->world, &s->times);
	for (i = 0; i < s->load->n; i++) {
		keep_least(s, DECIDE, i, s->times.decide[i]);
		keep_least(s, LEASE, i, s->times.life[i]);
	}
}

void
measure_ranks(uint32_t *values, size_t n, double *out)
{
	static const size_t permille[MEASURE_RANKS] = { 500, 990, 999 };
	size_t i;

	qsort(values, n, sizeof(*values), compare_u32);
	for (i = 0; i < MEASURE_RANKS; i++)
		out[i] = values[(n * permille[i] + 999) / 1000 - 1];
}

static double
mean(const struct measuring *s, enum step step)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < s->load->n; i++)
		sum += s->least[step][i];
	return sum / (double)s->load->n;
}

static void *
measure_room(size_t n, size_t element)
{
	void *p = calloc(n, element);

	if (p == NULL)
		err(ARGS_FAILED, NULL);
	return p;
}

struct measuring *
measure_new(const struct load *l, const struct world_options *options)
{
	struct measuring *s = measure_room(1, sizeof(*s));
	enum step k;

	floor_prepare();
	s->load = l;
	s->clock_ns = measure_clock_ns();
	for (k = 0; k < STEPS; k++) {
		s->least[k] = measure_room(l->n, sizeof(*s->least[k]));
		memset(s->least[k], 0xff, l->n * sizeof(*s->least[k]));
	}
	s->lives = lives_new(l);
	s->times.clock_ns = s->clock_ns;
	s->times.decide = measure_room(l->n, sizeof(*s->times.decide));
	s->times.life = measure_room(l->n, sizeof(*s->times.life));
	s->company = options->retain != KVR_RETAIN_TTL;
	if (world_open(&s->world, options) != KVR_OK)
		errx(ARGS_FAILED, "the region is too small for %u workers",
		    options->workers);
	return s;
}

/* Another replay: in the region of the last, or in an empty one. */
static void
next(struct measuring *s)
{
	int64_t span = lives_span(s->lives);

	if (s->company)
		world_go_on(&s->world, span);
	else
		world_restart(&s->world, span);
}

void
measure_trial(struct measuring *s)
{
	if (s->company) {
		lives_replay(s->lives, &s->world, NULL);
		next(s);
	}
	time_route(s, ROUTE);
	next(s);
	world_load(&s->world, true);
	time_route(s, ROUTE_BUSY);
	world_load(&s->world, false);
	next(s);
	time_steps(s);
	next(s);
	time_lives(s);
	world_restart(&s->world, lives_span(s->lives));
}

void
measure_end(struct measuring *s, struct measure *out)
{
	enum step k;

	out->expire_ns = mean(s, EXPIRE);
	out->hash_ns = mean(s, HASH);
	out->match_ns = mean(s, MATCH);
	out->observe_ns = mean(s, OBSERVE);
	out->floor_ns = mean(s, FLOOR);
	out->route_ns = mean(s, ROUTE);
	out->route_busy_ns = mean(s, ROUTE_BUSY);
	out->decide_ns = mean(s, DECIDE);
	out->lease_ns = mean(s, LEASE);
	out->index_ns = out->expire_ns + out->match_ns + out->observe_ns;
	measure_ranks(s->least[TOTAL], s->load->n, out->total);
	measure_ranks(s->least[INDEX], s->load->n, out->index);
	out->evicted_region = s->lost.evicted_region;
	out->truncated = s->lost.truncated;
	out->expired = s->lost.expired;
	out->evicted_capacity = s->lost.evicted_capacity;
	world_close(&s->world);
	lives_free(s->lives);
	free(s->times.decide);
	free(s->times.life);
	for (k = 0; k < STEPS; k++)
		free(s->least[k]);
	free(s);
}
