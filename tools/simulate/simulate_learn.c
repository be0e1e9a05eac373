/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_learn.c - which modes of windows routers have learnt, and when.
 */
#include "simulate_in.h"

#include <string.h>

int
learnt_note(const struct simulation *s, struct router *router, uint32_t worker)
{
	struct booked *b = &router->booked[worker];
	struct kvr_worker_stats w = { .size = sizeof(w) };
	int e;

	if (s->absent[worker])
		return KVR_OK;
	e = kvr_worker_stats(router->k, fleet_id(router->fleet, worker), &w);
	if (e != KVR_OK)
		return e;
	if (w.window_mode != b->window_mode) {
		b->learnt_after = w.calibration.reports;
		b->learnt_changes++;
	}
	b->window_mode = w.window_mode;
	return KVR_OK;
}

void
simulate_learnt(const struct simulation *s, struct simulate_learnt *out)
{
	uint32_t i, w;

	memset(out, 0, sizeof(*out));
	if (!s->options.learn)
		return;
	for (i = 0; i < s->options.replicas; i++)
		for (w = 0; w < s->options.workers; w++) {
			const struct booked *b = &s->routers[i].booked[w];

			out->modes[b->window_mode % 4]++;
			out->changes += b->learnt_changes;
			out->after += b->learnt_after;
			out->engines += b->learnt_changes > 0;
		}
}
