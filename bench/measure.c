/* SPDX-License-Identifier: BSD-2-Clause */
/* measure.c - see measure.h. */
#include "measure.h"

#include "args.h"
#include "floor.h"
#include "pass.h"
#include "world.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

enum { CLOCK_READINGS = 10001 };
/* INDEX: expire, match, observe; TOTAL: that and hash. */
enum step {
	EXPIRE, HASH, MATCH, OBSERVE, FLOOR, ROUTE, ROUTE_BUSY, INDEX, TOTAL,
	STEPS
};

struct state {
	const struct load *load;
	struct world world;
	int64_t clock_ns;         /* that reading the clock takes */
	uint32_t *least[STEPS];   /* [load->n] nanoseconds, of all trials */
	uint64_t result;          /* keeps the floor from being left out */
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
between(const struct state *s, int64_t start, int64_t end)
{
	int64_t d = end - start - s->clock_ns;

	return d < 0 ? 0 : d;
}

static void
keep_least(struct state *s, enum step step, size_t i, int64_t ns)
{
	if (ns < (int64_t)s->least[step][i])
		s->least[step][i] = (uint32_t)ns;
}

/* One request, timed step by step. */
static void
time_request(struct state *s, size_t i)
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
		if (k != ROUTE && k != ROUTE_BUSY)
			keep_least(s, k, i, step[k]);
}

static void
time_trial(struct state *s)
{
	size_t i;

	for (i = 0; i < s->load->n; i++)
		time_request(s, i);
}

/* The floor is no floor if it hashes something else than the library. */
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

/* The same replay, with the cost function timed and nothing else. */
static void
time_route(struct state *s, enum step step)
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

static void
count_losses(const struct state *s, struct measure *out)
{
	struct kvr_stats stats;

	stats.size = sizeof(stats);
	if (kvr_stats(s->world.k, &stats) != KVR_OK)
		errx(ARGS_FAILED, "kvr_stats");
	out->evicted = stats.evicted;
	out->truncated = stats.truncated;
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
mean(const struct state *s, enum step step)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < s->load->n; i++)
		sum += s->least[step][i];
	return sum / (double)s->load->n;
}

static void
conclude(struct state *s, struct measure *out)
{
	out->expire_ns = mean(s, EXPIRE);
	out->hash_ns = mean(s, HASH);
	out->match_ns = mean(s, MATCH);
	out->observe_ns = mean(s, OBSERVE);
	out->floor_ns = mean(s, FLOOR);
	out->route_ns = mean(s, ROUTE);
	out->route_busy_ns = mean(s, ROUTE_BUSY);
	measure_ranks(s->least[TOTAL], s->load->n, out->total);
	measure_ranks(s->least[INDEX], s->load->n, out->index);
}

static void
make_least(struct state *s)
{
	size_t bytes = s->load->n * sizeof(*s->least[0]);
	enum step k;

	for (k = 0; k < STEPS; k++) {
		s->least[k] = malloc(bytes);
		if (s->least[k] == NULL)
			err(ARGS_FAILED, NULL);
		memset(s->least[k], 0xff, bytes);
	}
}

void
measure_load(const struct load *l, const struct kvr_options *options,
    uint32_t workers, uint32_t trials, struct measure *out)
{
	struct state s;
	enum step k;
	uint32_t i;

	memset(&s, 0, sizeof(s));
	s.load = l;
	floor_prepare();
	s.clock_ns = measure_clock_ns();
	make_least(&s);
	if (world_open(&s.world, options, workers) != KVR_OK)
		errx(ARGS_FAILED, "the region is too small for %u workers",
		    workers);
	for (i = 0; i < trials; i++) {
		time_route(&s, ROUTE);
		if (i == 0)
			count_losses(&s, out);
		world_restart(&s.world, l->span_ns);
		world_load(&s.world);
		time_route(&s, ROUTE_BUSY);
		world_restart(&s.world, l->span_ns);
		time_trial(&s);
		world_restart(&s.world, l->span_ns);
	}
	conclude(&s, out);
	world_close(&s.world);
	for (k = 0; k < STEPS; k++)
		free(s.least[k]);
}
