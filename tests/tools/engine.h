/* SPDX-License-Identifier: BSD-2-Clause */
/* engine.h - runs a modelled engine for suites. */
#ifndef KVR_ENGINE_H
#define KVR_ENGINE_H

#include "test.h"

#include "engine_model.h"
#include "rng.h"

/* Returns the time of a step, by the header's formula. */
static inline int64_t
step(int64_t sequences, int64_t blocks, int64_t tokens)
{
	return 15000000 + 100000 * sequences + 5000 * blocks + 50000 * tokens;
}

/* The engine of the header, with so much memory. */
static inline struct engine *
plain(uint64_t blocks)
{
	struct engine_idea idea = { .blocks = blocks,
	    .block_tokens = ENGINE_BLOCK, .speed = 1 };

	return engine_new(&idea);
}

static inline void
submit(struct engine *e, uint64_t number, uint64_t tokens, uint64_t output,
    const uint64_t *ids)
{
	struct engine_request r = { .number = number,
	    .tokens = tokens, .output = output, .ids = ids };

	ck_assert_int_eq(engine_submit(e, &r), ENGINE_OK);
	ck_assert(engine_check(e));
}

static inline uint64_t
cached(const struct engine *e, uint64_t tokens, const uint64_t *ids)
{
	struct engine_request r = { .tokens = tokens, .output = 1,
	    .ids = ids };

	return engine_cached(e, &r);
}

static inline void
expect(struct engine *e, enum engine_kind kind, uint64_t request,
    uint64_t tokens)
{
	struct engine_event event;

	ck_assert(engine_next(e, &event));
	ck_assert_int_eq(event.kind, kind);
	ck_assert_uint_eq(event.request, request);
	ck_assert_uint_eq(event.tokens, tokens);
}

static inline void
expect_silence(struct engine *e)
{
	struct engine_event event;

	ck_assert(!engine_next(e, &event));
}

/* Steps until none is left; when that is. Events are dropped. */
static inline int64_t
run(struct engine *e, int64_t now)
{
	struct engine_event event;
	int64_t next;

	while ((next = engine_begin(e, now)) != INT64_MAX) {
		ck_assert_int_gt(next, now);
		now = next;
		ck_assert_int_eq(engine_end(e), ENGINE_OK);
		ck_assert(engine_check(e));
		while (engine_next(e, &event))
			;
	}
	return now;
}

/* The same without looking. */
static inline void
run_quickly(struct engine *e)
{
	struct engine_event event;

	while (engine_begin(e, 0) != INT64_MAX) {
		ck_assert_int_eq(engine_end(e), ENGINE_OK);
		while (engine_next(e, &event))
			;
	}
}

/* A prompt of a small world: few ids, so that much is shared. */
static inline struct engine_request
any_request(struct rng *rng, uint64_t number, uint64_t *ids)
{
	struct engine_request r = { .number = number, .ids = ids };
	uint64_t i;

	r.tokens = rng_between(rng, 1, 8 * 512);
	r.output = rng_between(rng, 0, 900);
	for (i = 0; i < 8; i++)
		ids[i] = rng_between(rng, 0, 1);
	return r;
}

#endif
