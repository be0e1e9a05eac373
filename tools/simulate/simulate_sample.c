/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_sample.c - requests and periodic samples of the state, for charts.
 *
 * The state does not change between events, so a sample is taken when time is
 * about to pass it. The length of a trace is unknown in advance: when the
 * maximum number of samples is reached, every other one is dropped and the
 * interval doubles.
 */
#include "simulate_in.h"

#include <stdlib.h>
#include <string.h>

/* Keeps every other sample. */
static void
thin_out(struct simulation *s)
{
	size_t each = (size_t)2 * s->options.workers, i;

	for (i = 1; i < s->n_samples / 2; i++) {
		s->samples[i] = s->samples[2 * i];
		memcpy(&s->loads[i * each], &s->loads[2 * i * each],
		    each * sizeof(*s->loads));
	}
	s->n_samples /= 2;
	s->sample_ns *= 2;
}

/* Makes room for one more in both tables. */
static int
samples_grow(struct simulation *s)
{
	size_t want = s->sample_capacity == 0 ? 256 : s->sample_capacity * 2;
	struct simulate_sample *p;
	uint32_t *loads;

	if (s->n_samples < s->sample_capacity)
		return KVR_OK;
	p = realloc(s->samples, want * sizeof(*p));
	if (p == NULL)
		return KVR_ENOMEM;
	s->samples = p;
	loads = realloc(s->loads, want * 2 * s->options.workers *
	    sizeof(*loads));
	if (loads == NULL)
		return KVR_ENOMEM;
	s->loads = loads;
	s->sample_capacity = want;
	return KVR_OK;
}

static int
take_sample(struct simulation *s, int64_t at)
{
	struct simulate_sample *out;
	struct engine_state state;
	struct kvr_stats t;
	uint32_t w, n = s->options.workers, *loads;
	int e = samples_grow(s);

	if (e != KVR_OK)
		return e;
	out = &s->samples[s->n_samples];
	*out = (struct simulate_sample){ .at = at };
	loads = &s->loads[s->n_samples * 2 * n];
	for (w = 0; w < n; w++) {
		engine_state(s->engines[w], &state);
		loads[w] = (uint32_t)state.running;
		loads[n + w] = (uint32_t)state.waiting;
	}
	s->n_samples++;
	e = simulate_index_stats(s, &t);
	out->index_entries = t.entries;
	out->index_blocks = t.held_blocks;
	out->index_bytes = t.cells == 0 ? 0 : (t.cells - t.cells_free) *
	    (t.region_bytes / t.cells);
	return e;
}

int
sample_until(struct simulation *s, int64_t to)
{
	int e = KVR_OK;

	if (s->options.sample_ns <= 0)
		return KVR_OK;
	while (e == KVR_OK && s->next_sample < to) {
		if (s->n_samples == SIMULATE_SAMPLES_MAX)
			thin_out(s);
		e = take_sample(s, s->next_sample);
		s->next_sample = (int64_t)s->n_samples * s->sample_ns;
	}
	return e;
}

/* Pointers are set here because s->loads moves when it grows. */
const struct simulate_sample *
simulate_samples(const struct simulation *s, size_t *n)
{
	size_t i, each = (size_t)2 * s->options.workers;

	for (i = 0; i < s->n_samples; i++) {
		s->samples[i].running = &s->loads[i * each];
		s->samples[i].waiting = &s->loads[i * each + each / 2];
	}
	*n = s->n_samples;
	return s->samples;
}

const struct simulate_ride *
simulate_rides(struct simulation *s, size_t *n)
{
	size_t i;

	free(s->shown);
	s->shown = calloc(s->n_rides + 1, sizeof(*s->shown));
	if (s->shown == NULL)
		return NULL;
	for (i = 0; i < s->n_rides; i++) {
		const struct ride *r = &s->rides[i];

		s->shown[i] = (struct simulate_ride){ r->arrival, r->first,
		    r->tokens, r->predicted, r->hit, r->worker,
		    r->finished ? r->end : -1, r->output };
	}
	*n = s->n_rides;
	return s->shown;
}
