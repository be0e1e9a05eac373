/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growth_cycle.c - the curves that are one crowd of prompts each.
 *
 * All of these fill an empty region with prompts, one after the other, then
 * match, choose for and observe again some of them in random order, restart a
 * few workers, then let all become due and reclaim them:
 *
 *   hash, new | ... | hash, new    hash, match, choose, again | ...   reset,
 *   `- the last are timed -'       `----- some, all timed -----'      expire
 *
 * The curves differ in the shape of the crowd (struct crowd): unrelated
 * prompts, prompts that fork at one block, or stairs, each a block longer than
 * another.
 */
#include "growth_bed.h"

#include "args.h"
#include "rng.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

enum {
	TIMED = 10000,       /* calls of one kind, at most */
	STRANGER_BLOCKS = 128,
	FAN_SHARED = 64,     /* blocks before the fork */
	FAN_OWN = 16,
	FAN_WORKERS = 64,
	STAIRS_TIMED = 500,  /* each costs as much as there are stairs */
	STAIRS_TRIALS = 2,
	BLOCKS_WORKERS = 64,
	RESETS = 16          /* of a quarter of the workers at most */
};

/* Kinds of calls. */
enum kind { HASH, NEW, MATCH, CHOOSE, AGAIN, RESET, EXPIRE, KINDS };

struct crowd {
	uint32_t prompts;
	uint32_t workers;
	uint32_t timed;      /* of the prompts, when they are repeated */
	uint32_t trials;
	uint32_t *order;     /* in which they are first sent */
	/* Hashes prompt i; returns its blocks. */
	uint32_t (*hash)(struct bed *b, uint32_t i, int64_t *ns);
	struct bed_size size;
};

static const char columns[] = "size\thash\tmatch\tmatch_p99\tchoose\tnew\t"
    "new_p99\tnew_max\tagain\tagain_p99\treset\texpire\texpire_p99\tnodes\t"
    "splits\tmerges\tbytes";

/* The worker that holds prompt i. */
static uint32_t
holder(const struct crowd *c, uint32_t i)
{
	return i % c->workers;
}

/* Every prompt once, or as many as are wanted, in random order. */
static uint32_t
shuffled(const struct crowd *c, uint32_t i)
{
	return (uint32_t)((uint64_t)i * 2654435761 % c->prompts);
}

static void
cycle_fill(const struct crowd *c, struct bed *b, struct series *s)
{
	uint32_t i, untimed = c->prompts > TIMED ? c->prompts - TIMED : 0;
	int64_t ns;

	for (i = 0; i < c->prompts; i++) {
		uint32_t prompt = c->order[i];

		(void)c->hash(b, prompt, &ns);
		ns = bed_observe(b, holder(c, prompt));
		if (i >= untimed)
			series_put(&s[NEW], i - untimed, ns);
	}
}

static void
come_again(const struct crowd *c, struct bed *b, struct series *s)
{
	uint32_t i, blocks, prompt;
	int64_t ns;

	for (i = 0; i < c->timed; i++) {
		prompt = shuffled(c, i);
		blocks = c->hash(b, prompt, &ns);
		series_put(&s[HASH], i, ns);
		series_put(&s[MATCH], i, bed_match(b, blocks));
		series_put(&s[CHOOSE], i, bed_choose(b));
		series_put(&s[AGAIN], i, bed_observe(b, holder(c, prompt)));
	}
}

static void
leave(struct bed *b, struct series *s)
{
	uint32_t resets = b->workers / 4 < RESETS ? b->workers / 4 : RESETS, i;
	bool left = true;

	for (i = 0; i < resets; i++)
		series_put(&s[RESET], i, bed_reset(b, i));
	bed_age(b);
	for (i = 0; left && i < TIMED; i++)
		series_put(&s[EXPIRE], i, bed_expire(b, &left));
	bed_clear(b);
}

static void
cycle_print(const struct growth *g, double size, const struct kvr_stats *before,
    const struct kvr_stats *full, double bytes, struct series *s)
{
	const double values[] = { size,
		series_middle(&s[HASH]),
		series_middle(&s[MATCH]), series_rank(&s[MATCH], 0.99),
		series_middle(&s[CHOOSE]),
		series_middle(&s[NEW]), series_rank(&s[NEW], 0.99),
		series_rank(&s[NEW], 1),
		series_middle(&s[AGAIN]), series_rank(&s[AGAIN], 0.99),
		series_middle(&s[RESET]),
		series_middle(&s[EXPIRE]), series_rank(&s[EXPIRE], 0.99),
		(double)full->nodes,
		(double)(full->splits - before->splits),
		(double)(full->merges - before->merges), bytes };

	growth_line(g, columns, values);
}

/* One point: all trials of one crowd. */
static void
cycle_measure(struct growth *g, const struct crowd *c, double size)
{
	struct kvr_stats before, full;
	struct series s[KINDS];
	double bytes = 0;
	struct bed b;
	uint32_t i;
	enum kind k;

	bed_open(&b, g, &c->size);
	for (k = 0; k < KINDS; k++)
		series_new(&s[k], TIMED);
	for (i = 0; i < c->trials; i++) {
		before = bed_stats(&b);
		cycle_fill(c, &b, s);
		full = bed_stats(&b);
		bytes = bed_bytes(&b);
		come_again(c, &b, s);
		leave(&b, s);
		growth_step(g);
	}
	g->steps += g->trials - c->trials;
	cycle_print(g, size, &before, &full, bytes, s);
	for (k = 0; k < KINDS; k++)
		series_free(&s[k]);
	bed_close(&b);
}

static void
crowd_begin(struct crowd *c, const struct growth *g, uint32_t prompts,
    uint32_t workers)
{
	uint32_t i;

	memset(c, 0, sizeof(*c));
	c->prompts = prompts;
	c->workers = workers;
	c->timed = prompts < TIMED ? prompts : TIMED;
	c->trials = g->trials;
	c->size.workers = workers;
	c->order = reallocarray(NULL, prompts, sizeof(*c->order));
	if (c->order == NULL)
		err(ARGS_FAILED, NULL);
	for (i = 0; i < prompts; i++)
		c->order[i] = i;
}

/* ------------------------------------------------------------ strangers --- */

static uint32_t
stranger_hash(struct bed *b, uint32_t i, int64_t *ns)
{
	*ns = bed_hash(b, i, STRANGER_BLOCKS);
	return STRANGER_BLOCKS;
}

static void
measure_strangers(struct growth *g, uint32_t prompts, uint32_t workers,
    double size)
{
	struct crowd c;

	crowd_begin(&c, g, prompts, workers);
	c.hash = stranger_hash;
	c.size.blocks = (uint64_t)prompts * STRANGER_BLOCKS;
	c.size.holds = prompts;
	c.size.tokens = prompts + STRANGER_BLOCKS * GROWTH_BLOCK;
	c.size.most_blocks = STRANGER_BLOCKS;
	cycle_measure(g, &c, size);
	free(c.order);
}

void
growth_blocks(struct growth *g)
{
	static const uint32_t sizes[GROWTH_BLOCKS_STEPS] = { 10000, 30000,
		100000, 300000, 1000000, 3000000, 10000000 };
	size_t i;

	growth_table(g, "blocks", columns);
	for (i = 0; i < GROWTH_BLOCKS_STEPS; i++)
		measure_strangers(g, (sizes[i] + STRANGER_BLOCKS - 1) /
		    STRANGER_BLOCKS, BLOCKS_WORKERS, sizes[i]);
}

void
growth_workers(struct growth *g)
{
	enum { PROMPTS = 8192 };
	uint32_t workers = 1;
	size_t i;

	growth_table(g, "workers", columns);
	for (i = 0; i < GROWTH_WORKERS_STEPS; i++, workers *= 4)
		measure_strangers(g, PROMPTS, workers, workers);
}

/* ------------------------------------------------------------------ fan --- */

/* A prefix at the row's beginning, and a tail from behind it. */
static uint32_t
fan_hash(struct bed *b, uint32_t i, int64_t *ns)
{
	*ns = bed_hash_two(b, 0, FAN_SHARED, (size_t)i + 1, FAN_OWN);
	return FAN_SHARED + FAN_OWN;
}

void
growth_fan(struct growth *g)
{
	static const uint32_t sizes[GROWTH_FAN_STEPS] = { 1000, 3000, 10000,
		30000, 100000 };
	struct crowd c;
	size_t i;

	growth_table(g, "fan", columns);
	for (i = 0; i < GROWTH_FAN_STEPS; i++) {
		crowd_begin(&c, g, sizes[i], FAN_WORKERS);
		c.hash = fan_hash;
		c.size.blocks = (uint64_t)sizes[i] * FAN_OWN * 2;
		c.size.holds = sizes[i] + FAN_WORKERS;
		c.size.tokens = sizes[i] + 1 +
		    (FAN_SHARED + FAN_OWN) * GROWTH_BLOCK;
		c.size.most_blocks = FAN_SHARED + FAN_OWN;
		cycle_measure(g, &c, sizes[i]);
		free(c.order);
	}
}

/* --------------------------------------------------------------- stairs --- */

static uint32_t
stairs_hash(struct bed *b, uint32_t i, int64_t *ns)
{
	*ns = bed_hash(b, 0, i + 1);
	return i + 1;
}

enum climb { RISING, FALLING, RANDOM };

static void
climb(struct crowd *c, enum climb how)
{
	struct rng r = { 7 };
	uint32_t i;

	if (how == FALLING)
		for (i = 0; i < c->prompts; i++)
			c->order[i] = c->prompts - 1 - i;
	for (i = c->prompts - 1; how == RANDOM && i > 0; i--) {
		uint32_t j = (uint32_t)rng_between(&r, 0, i);
		uint32_t other = c->order[j];

		c->order[j] = c->order[i];
		c->order[i] = other;
	}
}

static void
stairs(struct growth *g, const char *curve, enum climb how, uint32_t workers)
{
	static const uint32_t sizes[] = { 1000, 2000, 4000, 8000 };
	struct crowd c;
	size_t i;

	growth_table(g, curve, columns);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		crowd_begin(&c, g, sizes[i], workers);
		climb(&c, how);
		c.hash = stairs_hash;
		c.timed = STAIRS_TIMED;
		if (c.trials > STAIRS_TRIALS)
			c.trials = STAIRS_TRIALS;
		c.size.blocks = (uint64_t)sizes[i] * GROWTH_BLOCK;
		c.size.holds = (uint64_t)sizes[i] * (workers + 1);
		c.size.tokens = (size_t)sizes[i] * GROWTH_BLOCK;
		c.size.most_blocks = sizes[i];
		cycle_measure(g, &c, sizes[i]);
		free(c.order);
	}
}

void
growth_stairs(struct growth *g)
{
	stairs(g, "stairs_rising_1", RISING, 1);
	stairs(g, "stairs_falling_1", FALLING, 1);
	stairs(g, "stairs_random_1", RANDOM, 1);
	stairs(g, "stairs_rising_64", RISING, 64);
	stairs(g, "stairs_falling_64", FALLING, 64);
	stairs(g, "stairs_random_64", RANDOM, 64);
}
