/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growth_long.c - the curves of one growing prompt, and of one prefix held by
 * more and more workers.
 */
#include "growth_bed.h"

#include <string.h>

/* --------------------------------------------------------------- prompt --- */

/*
 * What is done to unrelated prompts of one length. part diverges from it after
 * three quarters, miss at the first block, split ends at its middle, grow is
 * one block longer, reuse is new in the memory of what has expired.
 */
enum prompt_kind {
	P_HASH, P_NEW, P_MATCH, P_PART, P_MISS, P_AGAIN, P_GROW, P_SPLIT,
	P_EXPIRE, P_REUSE, P_KINDS
};
static const char prompt_columns[] = "tokens\tblocks\thash\tnew\tmatch\tpart\t"
    "miss\tagain\tgrow\tsplit\texpire\treuse\tbytes";

enum { PROMPTS = 4 };

static void
prompt_steps(struct bed *b, struct series *s, uint32_t blocks, size_t i)
{
	/* Another place of the row, far behind the last prompt's beginning. */
	const size_t other = i + PROMPTS, most = blocks - blocks / 4;

	series_put(&s[P_HASH], i, bed_hash(b, i, blocks));
	series_put(&s[P_NEW], i, bed_observe(b, 0));
	series_put(&s[P_MATCH], i, bed_match(b, blocks));
	series_put(&s[P_AGAIN], i, bed_observe(b, 0));
	(void)bed_hash_two(b, i, (uint32_t)most, other, blocks / 4);
	series_put(&s[P_PART], i, bed_match(b, (uint32_t)most));
	(void)bed_hash(b, other, blocks);
	series_put(&s[P_MISS], i, bed_match(b, 0));
	(void)bed_hash(b, i, blocks + 1);
	series_put(&s[P_GROW], i, bed_observe(b, 0));
}

static void
prompt_trial(struct bed *b, struct series *s, uint32_t blocks, double *bytes)
{
	bool left = true;
	size_t i;

	for (i = 0; i < PROMPTS; i++)
		prompt_steps(b, s, blocks, i);
	*bytes = bed_bytes(b);
	for (i = 0; i < PROMPTS; i++) {
		(void)bed_hash(b, i, blocks / 2);
		series_put(&s[P_SPLIT], i, bed_observe(b, 0));
	}
	bed_age(b);
	for (i = 0; left && i < s[P_EXPIRE].n; i++)
		series_put(&s[P_EXPIRE], i, bed_expire(b, &left));
	for (i = 0; i < PROMPTS; i++) {
		(void)bed_hash(b, i, blocks);
		series_put(&s[P_REUSE], i, bed_observe(b, 0));
	}
	bed_clear(b);
}

static void
prompt_point(struct growth *g, uint32_t blocks)
{
	const struct bed_size size = { 1, (uint64_t)(blocks + 1) * PROMPTS * 2,
		PROMPTS * 4, (size_t)(blocks + 1) * GROWTH_BLOCK + PROMPTS * 2,
		blocks + 1 };
	double values[P_KINDS + 3] = { blocks * GROWTH_BLOCK, blocks };
	struct series s[P_KINDS];
	struct bed b;
	uint32_t i;

	bed_open(&b, g, &size);
	for (i = 0; i < P_KINDS; i++)
		series_new(&s[i], i == P_EXPIRE ? PROMPTS * 4 : PROMPTS);
	for (i = 0; i < g->trials; i++) {
		prompt_trial(&b, s, blocks, &values[P_KINDS + 2]);
		growth_step(g);
	}
	for (i = 0; i < P_KINDS; i++) {
		values[i + 2] = series_middle(&s[i]);
		series_free(&s[i]);
	}
	growth_line(g, prompt_columns, values);
	bed_close(&b);
}

void
growth_prompt(struct growth *g)
{
	uint32_t tokens = 1024;
	size_t i;

	growth_table(g, "prompt", prompt_columns);
	for (i = 0; i < GROWTH_PROMPT_STEPS; i++, tokens *= 2)
		prompt_point(g, tokens / GROWTH_BLOCK);
}

/* --------------------------------------------------------------- shared --- */

/*
 * A prefix held by the first n of 4,096 workers. join: the last of them became
 * a holder; extend: one of them continues with blocks of its own; split: one
 * of them diverges in the middle.
 */
enum shared_kind {
	S_HASH, S_JOIN, S_MATCH, S_CHOOSE, S_AGAIN, S_EXTEND, S_SPLIT,
	S_MATCH_SPLIT, S_EXPIRE, S_KINDS
};
static const char shared_columns[] = "holders\thash\tjoin\tmatch\tchoose\t"
    "again\textend\tsplit\tmatch_split\texpire\texpire_p99\tbytes";

enum { PREFIXES = 16, PREFIX_BLOCKS = 128, OWN_BLOCKS = 16, EXPIRED = 10000 };

/* Every worker sends every prefix before the next worker does. */
static void
shared_fill(struct bed *b, struct series *s, uint32_t holders)
{
	uint32_t worker;
	int64_t ns;
	size_t i;

	for (worker = 0; worker < holders; worker++) {
		for (i = 0; i < PREFIXES; i++) {
			(void)bed_hash(b, i, PREFIX_BLOCKS);
			ns = bed_observe(b, worker);
			if (worker == holders - 1)
				series_put(&s[S_JOIN], i, ns);
		}
	}
}

static void
shared_steps(struct bed *b, struct series *s, uint32_t holders, size_t i)
{
	const size_t other = PREFIXES + i;
	const uint32_t worker = holders / 2;

	series_put(&s[S_HASH], i, bed_hash(b, i, PREFIX_BLOCKS));
	series_put(&s[S_MATCH], i, bed_match(b, PREFIX_BLOCKS));
	series_put(&s[S_CHOOSE], i, bed_choose(b));
	series_put(&s[S_AGAIN], i, bed_observe(b, worker));
	(void)bed_hash_two(b, i, PREFIX_BLOCKS, other, OWN_BLOCKS);
	series_put(&s[S_EXTEND], i, bed_observe(b, worker));
	(void)bed_hash_two(b, i, PREFIX_BLOCKS / 2, other, OWN_BLOCKS);
	series_put(&s[S_SPLIT], i, bed_observe(b, worker));
	(void)bed_hash(b, i, PREFIX_BLOCKS);
	series_put(&s[S_MATCH_SPLIT], i, bed_match(b, PREFIX_BLOCKS));
}

static void
shared_trial(struct bed *b, struct series *s, uint32_t holders, double *bytes)
{
	bool left = true;
	size_t i;

	shared_fill(b, s, holders);
	*bytes = bed_bytes(b);
	for (i = 0; i < PREFIXES; i++)
		shared_steps(b, s, holders, i);
	bed_age(b);
	for (i = 0; left && i < EXPIRED; i++)
		series_put(&s[S_EXPIRE], i, bed_expire(b, &left));
	bed_clear(b);
}

static void
shared_point(struct growth *g, uint32_t holders)
{
	const struct bed_size size = { KVR_WORKERS_MAX,
		PREFIXES * 2 * PREFIX_BLOCKS, (uint64_t)PREFIXES * 2 * holders,
		PREFIX_BLOCKS * GROWTH_BLOCK + PREFIXES * 2,
		PREFIX_BLOCKS + OWN_BLOCKS };
	double values[S_KINDS + 3] = { holders };
	struct series s[S_KINDS];
	struct bed b;
	uint32_t i;

	bed_open(&b, g, &size);
	for (i = 0; i < S_KINDS; i++)
		series_new(&s[i], i == S_EXPIRE ? EXPIRED : PREFIXES);
	for (i = 0; i < g->trials; i++) {
		shared_trial(&b, s, holders, &values[S_KINDS + 2]);
		growth_step(g);
	}
	values[S_KINDS + 1] = series_rank(&s[S_EXPIRE], 0.99);
	for (i = 0; i < S_KINDS; i++) {
		values[i + 1] = series_middle(&s[i]);
		series_free(&s[i]);
	}
	growth_line(g, shared_columns, values);
	bed_close(&b);
}

void
growth_shared(struct growth *g)
{
	uint32_t holders = 1;
	size_t i;

	growth_table(g, "shared", shared_columns);
	for (i = 0; i < GROWTH_SHARED_STEPS; i++, holders *= 4)
		shared_point(g, holders);
}
