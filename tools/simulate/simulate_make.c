/* SPDX-License-Identifier: BSD-2-Clause */
/* simulate_make.c - creation and destruction: see simulate.h. */
#include "simulate_in.h"

#include <stdlib.h>

struct engine *
simulate_engine(const struct simulation *s, uint32_t worker)
{
	const struct simulate_options *o = &s->options;
	uint64_t tokens = simulate_capacity(o, worker);
	struct engine_idea idea = {
	    .blocks = tokens == 0 ? ENGINE_ENDLESS : tokens / o->engine_block,
	    .block_tokens = o->engine_block, .eviction = o->eviction,
	    .speed = simulate_speed(o, worker),
	    .seed = o->seed * UINT64_C(0x9E3779B97F4A7C15) + worker,
	    .sequences = simulate_sequences(o, worker), .batch = o->batch,
	    .attention = o->attention, .own_reads = o->own_reads,
	    .preempt = o->preempt, .window = o->window,
	    .watched = news_wanted(o), .watched_all = true };

	return engine_new(&idea);
}

static int
make_engine(struct simulation *s, uint32_t worker)
{
	struct engine *twin;

	/* Resets are staggered over the interval. */
	if (s->options.reset_ns > 0)
		times_set(&s->next_reset, worker, (int64_t)((double)
		    s->options.reset_ns * (worker + 1) / s->options.workers));
	s->engines[worker] = simulate_engine(s, worker);
	if (s->engines[worker] == NULL)
		return KVR_ENOMEM;
	if (s->past == NULL)
		return KVR_OK;
	twin = simulate_engine(s, worker);
	s->past[worker] = twin == NULL ? NULL : past_new(twin);
	if (s->past[worker] == NULL)
		engine_free(twin);
	return s->past[worker] == NULL ? KVR_ENOMEM : KVR_OK;
}

static int
simulate_make_tables(struct simulation *s)
{
	uint32_t n = s->options.workers;

	s->engines = calloc(n, sizeof(struct engine *));
	s->ready = calloc(n, sizeof(*s->ready));
	s->is_ready = calloc(n, sizeof(*s->is_ready));
	s->flights = calloc(n, sizeof(*s->flights));
	s->absent = calloc(n, sizeof(*s->absent));
	s->seen = calloc(n, sizeof(*s->seen));
	s->used = calloc(n, sizeof(*s->used));
	s->candidates = calloc(n, sizeof(*s->candidates));
	if (s->engines == NULL || s->ready == NULL || s->is_ready == NULL ||
	    s->flights == NULL || s->absent == NULL ||
	    s->seen == NULL || s->used == NULL ||
	    s->candidates == NULL ||
	    times_make(&s->next, n) != 0 || times_make(&s->next_reset, n) != 0)
		return KVR_ENOMEM;
	if (s->options.index != SIMULATE_ORACLE ||
	    s->options.event_delay_ns <= 0)
		return KVR_OK;
	s->past = calloc(n, sizeof(struct past *));
	return s->past == NULL ? KVR_ENOMEM : KVR_OK;
}

int
simulate_new(const struct simulate_options *options,
    const struct kvr_options *region, struct simulation **out)
{
	struct simulation *s = calloc(1, sizeof(*s));
	uint32_t i;
	int e;

	if (s == NULL)
		return KVR_ENOMEM;
	s->options = *options;
	if (options->engine_block == 0)
		s->options.engine_block = ENGINE_BLOCK;
	if (options->replicas == 0)
		s->options.replicas = 1;
	s->block_size = region->block_size;
	s->lots.state = options->seed;
	s->byways.state = options->seed ^ UINT64_C(0x627977617973);
	s->sample_ns = options->sample_ns;
	s->reports.state = ~options->seed;
	e = simulate_make_tables(s);
	for (i = 0; e == KVR_OK && i < options->workers; i++)
		e = make_engine(s, i);
	if (e == KVR_OK)
		e = routers_make(s, region);
	if (e == KVR_OK)
		e = exchange_make(s);
	if (e == KVR_OK)
		e = rivals_make(s);
	if (e == KVR_OK)
		e = changes_make(s, region);
	if (e == KVR_OK)
		e = news_make(s);
	if (e != KVR_OK) {
		simulate_free(s);
		return e;
	}
	*out = s;
	return KVR_OK;
}

void
simulate_free(struct simulation *s)
{
	uint32_t i;

	if (s == NULL)
		return;
	changes_free(s);
	exchange_free(s);
	news_free(s);
	rivals_free(s);
	routers_free(s);
	for (i = 0; s->engines != NULL && i < s->options.workers; i++)
		engine_free(s->engines[i]);
	for (i = 0; s->past != NULL && i < s->options.workers; i++)
		past_free(s->past[i]);
	free(s->engines);
	free(s->past);
	times_free(&s->next);
	times_free(&s->next_reset);
	free(s->ready);
	free(s->is_ready);
	free(s->flights);
	free(s->absent);
	free(s->seen);
	free(s->used);
	free(s->candidates);
	free(s->rides);
	free(s->held);
	free(s->done);
	free(s->first_tokens);
	free(s->shown);
	free(s->samples);
	free(s->loads);
	free(s);
}
