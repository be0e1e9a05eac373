/* SPDX-License-Identifier: BSD-2-Clause */
/* flood.c - see flood.h. */
#include "flood.h"

#include "args.h"
#include "policy_run.h"
#include "bench_index.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOW_BITS (((uint64_t)1 << FLOOD_BITS) - 1)
#define WANTED (UINT64_C(0xbeef) & LOW_BITS)

enum { NOW = 1 };

/* The prompts of one kind, and their region. */
struct side {
	struct world world;
	struct kvr_prompt *prompts[FLOOD_PROMPTS];
	uint32_t least[FLOOD_PROMPTS]; /* nanoseconds, of all trials */
};

static void
flood_must(int e, const char *what)
{
	if (e != KVR_OK)
		errx(ARGS_FAILED, "%s: %s", what, kvr_strerror(e));
}

/* -------------------------------------------------------------- prompts --- */

/* Hash of the first block, if this number is its first token. */
static uint64_t
first_hash(struct world *w, uint32_t number)
{
	uint64_t local = 0, sequence = 0;

	w->tokens.tokens[0] = number;
	flood_must(kvr_prompt_set_tokens(w->prompt, NULL, w->tokens.tokens,
	    w->options.block_size), "kvr_prompt_set_tokens");
	flood_must(kvr_prompt_hash(w->prompt, 0, &local, &sequence),
	    "kvr_prompt_hash");
	return sequence;
}

/* The least number from this one on with a wanted, new hash. */
static uint32_t
search(struct world *w, unsigned char *seen, uint32_t number)
{
	for (; number < UINT32_MAX; number++) {
		uint64_t hash = first_hash(w, number);
		uint32_t next = (uint32_t)hash >> FLOOD_BITS;

		if ((hash & LOW_BITS) != WANTED || seen[next] != 0)
			continue;
		seen[next] = 1;
		return number;
	}
	errx(ARGS_FAILED, "no flood was found");
}

/* The prompt of w->tokens is hashed, kept and sent to a worker. */
static struct kvr_prompt *
prompt_sent(struct world *w, uint32_t i)
{
	size_t tokens = (size_t)FLOOD_BLOCKS * w->options.block_size;
	uint64_t worker = fleet_id(w->fleet, i % w->workers);
	uint32_t recorded = 0;
	struct kvr_prompt *p;

	flood_must(kvr_prompt_new(w->k, &p), "kvr_prompt_new");
	flood_must(kvr_prompt_set_tokens(p, NULL, w->tokens.tokens, tokens),
	    "kvr_prompt_set_tokens");
	flood_must(kvr_observe(w->k, p, worker, NOW, 0, &recorded),
	    "kvr_observe");
	if (recorded != FLOOD_BLOCKS)
		errx(ARGS_FAILED, "the region is too small for a flood");
	return p;
}

static void
side_open(struct side *s, const struct world_options *options, bool flood)
{
	static unsigned char seen[1 << (32 - FLOOD_BITS)];
	size_t i, n = (size_t)FLOOD_BLOCKS * options->region.block_size;
	uint32_t number = 0;

	if (world_open(&s->world, options) != KVR_OK)
		errx(ARGS_FAILED, "the region is too small for %u workers",
		    options->workers);
	s->world.tokens.tokens = calloc(n, sizeof(uint32_t));
	if (s->world.tokens.tokens == NULL)
		err(ARGS_FAILED, NULL);
	for (i = 0; i < n; i++)
		s->world.tokens.tokens[i] = token_of(0, i);
	for (i = 0; i < FLOOD_PROMPTS; i++, number++) {
		if (flood)
			number = search(&s->world, seen, number);
		s->world.tokens.tokens[0] = number;
		s->prompts[i] = prompt_sent(&s->world, (uint32_t)i);
	}
	memset(s->least, 0xff, sizeof(s->least));
}

static void
side_close(struct side *s)
{
	size_t i;

	for (i = 0; i < FLOOD_PROMPTS; i++)
		kvr_prompt_free(s->prompts[i]);
	world_close(&s->world);
}

/* -------------------------------------------------------------- measure --- */

static void
flood_match(struct side *s, size_t i, int64_t clock_ns)
{
	struct world *w = &s->world;
	int64_t start, ns;
	size_t count = 0;
	int e;

	start = pass_clock();
	e = kvr_match(w->k, s->prompts[i], NOW, w->overlaps,
	    sizeof(*w->overlaps), w->workers, &count);
	ns = pass_clock() - start - clock_ns;
	flood_must(e, "kvr_match");
	if (count != 1 || w->overlaps[0].blocks != FLOOD_BLOCKS)
		errx(ARGS_FAILED, "a prompt was not found");
	ns = ns < 0 ? 0 : ns;
	if (ns < (int64_t)s->least[i])
		s->least[i] = (uint32_t)ns;
}

/* One of the flood, one of the others, in alternating order. */
static void
time_trial(struct side *sides[2], uint32_t trial, int64_t clock_ns)
{
	size_t i;

	for (i = 0; i < FLOOD_PROMPTS; i++) {
		flood_match(sides[(trial + i) % 2], i, clock_ns);
		flood_match(sides[(trial + i + 1) % 2], i, clock_ns);
	}
}

void
flood_measure(const struct world_options *options, uint32_t trials,
    struct flood *out)
{
	static struct side flood, random;
	struct side *sides[2] = { &flood, &random };
	struct world_options o = *options;
	int64_t clock_ns = measure_clock_ns();
	uint32_t i;

	o.region.secret_bytes = KVR_SECRET_MIN;
	for (i = 0; i < sizeof(o.region.secret); i++)
		o.region.secret[i] = (unsigned char)token_of(1, i);
	side_open(&flood, &o, true);
	side_open(&random, &o, false);
	for (i = 0; i < trials; i++)
		time_trial(sides, i, clock_ns);
	measure_ranks(flood.least, FLOOD_PROMPTS, out->flood);
	measure_ranks(random.least, FLOOD_PROMPTS, out->random);
	out->p99_ratio = out->flood[MEASURE_P99] / out->random[MEASURE_P99];
	side_close(&flood);
	side_close(&random);
}

/* ---------------------------------------------------------------- print --- */

void
flood_print_kv(const struct flood *f)
{
	printf("flood_p50_ns=%.1f\nflood_p99_ns=%.1f\n",
	    f->flood[MEASURE_P50], f->flood[MEASURE_P99]);
	printf("random_p50_ns=%.1f\nrandom_p99_ns=%.1f\n",
	    f->random[MEASURE_P50], f->random[MEASURE_P99]);
	printf("flood_p99_ratio=%.3f\n", f->p99_ratio);
}

void
flood_print_text(const struct flood *f)
{
	printf("match of %d prompts with first hashes equal in %d low bits, "
	    "and of others\n\n%-24s %9s %9s ns\n", FLOOD_PROMPTS, FLOOD_BITS,
	    "percentiles", "50", "99");
	printf("  %-22s %9.0f %9.0f\n", "flood", f->flood[MEASURE_P50],
	    f->flood[MEASURE_P99]);
	printf("  %-22s %9.0f %9.0f\n", "random", f->random[MEASURE_P50],
	    f->random[MEASURE_P99]);
	printf("\nthe flood's 99th is %.2f times the others'\n", f->p99_ratio);
}
