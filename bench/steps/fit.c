/* SPDX-License-Identifier: BSD-2-Clause */
/* fit.c - see fit.h. */
#include "fit.h"

#include "args.h"
#include "lives.h"
#include "bench_index.h"

#include <err.h>
#include <stdbool.h>
#include <stdlib.h>

#define MIN_BYTES UINT64_C(4096)
#define MAX_BYTES (UINT64_C(1) << 40)

/* True unless this region has lost anything so far; updates the peak. */
static bool
look(const struct world *w, uint64_t *live_max)
{
	struct kvr_stats s;

	s.size = sizeof(s);
	if (kvr_stats_get(w->k, &s) != KVR_OK)
		errx(ARGS_FAILED, "kvr_stats_get");
	if (s.held_blocks > *live_max)
		*live_max = s.held_blocks;
	return s.evicted_region == 0 && s.truncated == 0;
}

/* Workers that do not go by TTL hold what was there before. */
static void
fit_fill(struct lives *lives, struct world *w, const struct world_options *o)
{
	if (o->retain == KVR_RETAIN_TTL)
		return;
	lives_replay(lives, w, NULL);
	world_go_on(w, lives_span(lives));
}

/* Does the load fit? Stops at the first request that shows it does not. */
static bool
fits(const struct load *l, struct lives *lives, struct world_options *options,
    uint64_t bytes, uint64_t *live_max)
{
	struct world w;
	bool good = true;
	size_t i;

	options->region.region_bytes = bytes;
	if (world_open(&w, options) != KVR_OK)
		return false;
	*live_max = 0;
	fit_fill(lives, &w, options);
	for (i = 0; i < l->n && good; i++) {
		const struct trace_request *r = &l->requests[i];
		int64_t now = w.base + load_arrival(r);

		world_make(&w, r);
		world_expire(&w, now);
		world_hash(&w, r);
		world_match(&w, now);
		world_observe(&w, world_choose(&w, r), now);
		good = look(&w, live_max);
	}
	world_close(&w);
	return good;
}

void
fit_find(const struct load *l, const struct world_options *options,
    struct fit *out)
{
	struct world_options o = *options;
	struct lives *lives = lives_new(l);
	uint64_t low = MIN_BYTES, high = o.region.region_bytes, middle;
	uint64_t live = 0;

	/* Not "an eighth of the region": only room may be lacking. */
	o.region.max_prompt_blocks = (uint32_t)(l->most_tokens /
	    o.region.block_size);
	if (o.region.max_prompt_blocks == 0)
		o.region.max_prompt_blocks = 1;
	while (!fits(l, lives, &o, high, &out->live_max)) {
		low = high;
		high *= 2;
		if (high > MAX_BYTES)
			errx(ARGS_FAILED, "no region is large enough");
	}
	while (high - low > high / 50) {
		middle = low + (high - low) / 2;
		if (fits(l, lives, &o, middle, &live))
			high = middle;
		else
			low = middle;
	}
	out->bytes = high;
	lives_free(lives);
}
