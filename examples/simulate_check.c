/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_check.c - is anything lost?
 *
 * A request is known in four places: its ride, the engine that has it, what
 * the router booked, and the library's lease. Each is counted apart, and all
 * must say the same. Costs as much as there were requests, so it is for tests.
 */
#include "simulate_in.h"

/* What must be on a worker, by the requests alone. */
struct expected {
	uint64_t waiting;
	uint64_t running;
	uint64_t prefill_tokens;
	uint64_t output_blocks;
};

static struct expected
expect(const struct simulation *s, uint32_t worker)
{
	struct expected x = { 0, 0, 0, 0 };
	size_t i;

	for (i = 0; i < s->n_rides; i++) {
		const struct ride *r = &s->rides[i];

		if (r->worker != worker || r->finished)
			continue;
		x.waiting += !r->admitted;
		x.running += r->admitted;
		x.output_blocks += r->output_blocks;
		if (r->first < 0)
			x.prefill_tokens += r->tokens - r->predicted;
	}
	return x;
}

/* Where index blocks are the engine's, both know the same ones in use. */
static int
check_load(const struct simulation *s, uint32_t worker,
    const struct expected *x, const struct engine_state *state)
{
	struct kvr_worker_stats w = { .size = sizeof(w) };
	int e;

	if (s->k == NULL)
		return KVR_OK;
	e = kvr_worker_stats(s->k, fleet_id(s->fleet, worker), &w);
	if (e != KVR_OK)
		return e;
	if (w.requests != x->waiting + x->running ||
	    w.prefill_tokens != x->prefill_tokens ||
	    w.output_blocks != x->output_blocks ||
	    (s->block_size == ENGINE_BLOCK && x->waiting == 0 &&
	    w.active_blocks != state->pinned))
		return KVR_ECORRUPT;
	return KVR_OK;
}

int
simulate_check(const struct simulation *s)
{
	struct engine_state state;
	struct expected x;
	uint64_t open = 0;
	uint32_t w;
	int e = KVR_OK;

	for (w = 0; e == KVR_OK && w < s->options.workers; w++) {
		x = expect(s, w);
		engine_state(s->engines[w], &state);
		if (!engine_check(s->engines[w]) ||
		    state.waiting != x.waiting || state.running != x.running ||
		    s->booked[w].requests != x.waiting + x.running ||
		    s->booked[w].prefill_tokens != x.prefill_tokens)
			return KVR_ECORRUPT;
		open += x.waiting + x.running;
		e = check_load(s, w, &x, &state);
	}
	if (e == KVR_OK && (open + s->totals.finished != s->n_rides ||
	    s->n_rides + s->totals.refused + s->totals.empty !=
	    s->totals.requests))
		return KVR_ECORRUPT;
	return e == KVR_OK && s->k != NULL ? kvr_check(s->k) : e;
}
