/* SPDX-License-Identifier: BSD-2-Clause */
/* growth_bed.c - see growth_bed.h. */
#include "growth_bed.h"

#include "args.h"
#include "measure.h"
#include "policy_run.h"
#include "rng.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TICK_NS = 1000,
	/* Bytes of a region, generously: twice what is used does no harm. */
	BYTES_A_BLOCK = 8,
	BYTES_A_HOLD = 256,
	BYTES_A_WORKER = 2048,
	BYTES_MORE = 1 << 20
};

void
bed_must(int e, const char *what)
{
	if (e != KVR_OK)
		errx(ARGS_FAILED, "%s: %s", what, kvr_strerror(e));
}

/* --------------------------------------------------------------- series --- */

static int
compare_u32(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void
series_new(struct series *s, size_t n)
{
	s->n = n;
	s->least = reallocarray(NULL, n, sizeof(*s->least));
	if (s->least == NULL)
		err(ARGS_FAILED, NULL);
	memset(s->least, 0xff, n * sizeof(*s->least));
}

void
series_free(struct series *s)
{
	free(s->least);
	s->least = NULL;
}

void
series_put(struct series *s, size_t i, int64_t ns)
{
	if (i >= s->n)
		errx(ARGS_FAILED, "more calls than were foreseen");
	if (ns < (int64_t)s->least[i])
		s->least[i] = (uint32_t)ns;
}

/* Sorts; returns how many calls were made. */
static size_t
series_sort(const struct series *s)
{
	size_t n = s->n;

	qsort(s->least, s->n, sizeof(*s->least), compare_u32);
	while (n > 0 && s->least[n - 1] == UINT32_MAX)
		n--;
	return n;
}

double
series_rank(const struct series *s, double share)
{
	size_t n = series_sort(s), i;

	if (n == 0)
		return -1;
	i = (size_t)(share * (double)n);
	return s->least[i < n ? i : n - 1];
}

double
series_middle(const struct series *s)
{
	size_t n = series_sort(s), i;
	double sum = 0;

	if (n == 0)
		return -1;
	for (i = n / 4; i < n - n / 4; i++)
		sum += s->least[i];
	return sum / (double)(n - n / 4 - n / 4);
}

/* ---------------------------------------------------------------- clock --- */

int64_t
bed_clock(void)
{
	return pass_clock();
}

int64_t
bed_since(const struct bed *b, int64_t start)
{
	int64_t d = pass_clock() - start - b->clock_ns;

	return d < 0 ? 0 : d;
}

int64_t
bed_tick(struct bed *b)
{
	return b->now += TICK_NS;
}

/* ------------------------------------------------------- open and close --- */

static void
make_tokens(struct bed *b, size_t n)
{
	struct rng r = { 1 };
	size_t i;

	b->n_tokens = n;
	b->tokens = reallocarray(NULL, n, sizeof(*b->tokens));
	if (b->tokens == NULL)
		err(ARGS_FAILED, NULL);
	for (i = 0; i < n; i++)
		b->tokens[i] = (uint32_t)(rng_next(&r) >> 47);
}

static void
add_workers(struct bed *b)
{
	uint32_t i;
	char name[32];
	int length;

	b->ids = reallocarray(NULL, b->workers, sizeof(*b->ids));
	if (b->ids == NULL)
		err(ARGS_FAILED, NULL);
	for (i = 0; i < b->workers; i++) {
		length = snprintf(name, sizeof(name), "worker-%" PRIu32, i);
		bed_must(kvr_worker_add(b->k, name, (size_t)length, NULL,
		    &b->ids[i]), "kvr_worker_add");
	}
}

void
bed_open(struct bed *b, struct growth *g, const struct bed_size *size)
{
	struct kvr_options o;

	memset(b, 0, sizeof(*b));
	kvr_options_init(&o, sizeof(o));
	o.block_size = GROWTH_BLOCK;
	o.max_workers = size->workers;
	o.max_prompt_blocks = size->most_blocks;
	o.region_bytes = BYTES_MORE + size->blocks * BYTES_A_BLOCK +
	    size->holds * BYTES_A_HOLD +
	    (uint64_t)size->workers * BYTES_A_WORKER;
	bed_must(kvr_new(&o, &b->k), "kvr_new");
	bed_must(kvr_prompt_new(b->k, &b->prompt), "kvr_prompt_new");
	b->growth = g;
	b->workers = size->workers;
	b->ttl_ns = o.ttl_ns;
	b->overlaps = calloc(size->workers, sizeof(*b->overlaps));
	if (b->overlaps == NULL)
		err(ARGS_FAILED, NULL);
	add_workers(b);
	make_tokens(b, size->tokens);
	b->clock_ns = measure_clock_ns();
}

struct kvr_stats
bed_stats(const struct bed *b)
{
	struct kvr_stats s;

	s.size = sizeof(s);
	bed_must(kvr_stats_get(b->k, &s), "kvr_stats_get");
	return s;
}

double
bed_bytes(const struct bed *b)
{
	struct kvr_stats s = bed_stats(b);

	if (s.held_blocks == 0)
		return -1;
	return (double)(s.cells - s.cells_free) * 64 / (double)s.held_blocks;
}

void
bed_close(struct bed *b)
{
	struct kvr_stats s = bed_stats(b);

	if (s.evicted_region > 0 || s.truncated > 0)
		errx(ARGS_FAILED,
		    "the region was too small: %" PRIu64 " evicted, %" PRIu64
		    " truncated",
		    s.evicted_region, s.truncated);
	if (b->wrong > b->matches / 10000)
		errx(ARGS_FAILED, "%" PRIu64 " of %" PRIu64 " overlaps were "
		    "not as they should be", b->wrong, b->matches);
	kvr_prompt_free(b->prompt);
	kvr_free(b->k);
	free(b->ids);
	free(b->overlaps);
	free(b->tokens);
}

void
bed_clear(struct bed *b)
{
	bed_must(kvr_clear(b->k), "kvr_clear");
}

/* ---------------------------------------------------------------- steps --- */

static const uint32_t *
tokens_at(const struct bed *b, size_t from, uint32_t blocks)
{
	if (from + (size_t)blocks * GROWTH_BLOCK > b->n_tokens)
		errx(ARGS_FAILED, "the row of tokens is too short");
	return b->tokens + from;
}

int64_t
bed_hash(struct bed *b, size_t from, uint32_t blocks)
{
	const uint32_t *tokens = tokens_at(b, from, blocks);
	int64_t start = bed_clock();
	int e = kvr_prompt_set_tokens(b->prompt, NULL, tokens,
	    (size_t)blocks * GROWTH_BLOCK);
	int64_t ns = bed_since(b, start);

	bed_must(e, "kvr_prompt_set_tokens");
	b->growth->prompts++;
	return ns;
}

int64_t
bed_hash_two(struct bed *b, size_t from, uint32_t blocks, size_t then,
    uint32_t more)
{
	const uint32_t *head = tokens_at(b, from, blocks);
	const uint32_t *tail = tokens_at(b, then, more);
	int64_t start = bed_clock(), ns;

	bed_must(kvr_prompt_begin(b->prompt, NULL), "kvr_prompt_begin");
	bed_must(kvr_prompt_tokens(b->prompt, head,
	    (size_t)blocks * GROWTH_BLOCK), "kvr_prompt_tokens");
	bed_must(kvr_prompt_tokens(b->prompt, tail,
	    (size_t)more * GROWTH_BLOCK), "kvr_prompt_tokens");
	bed_must(kvr_prompt_end(b->prompt, NULL), "kvr_prompt_end");
	ns = bed_since(b, start);
	b->growth->prompts++;
	return ns;
}

int64_t
bed_match(struct bed *b, uint32_t want)
{
	int64_t start = bed_clock(), ns;
	int e = kvr_match(b->k, b->prompt, b->now, b->overlaps,
	    sizeof(*b->overlaps), b->workers, &b->n_overlaps);
	uint32_t longest = 0;
	size_t i;

	ns = bed_since(b, start);
	bed_must(e, "kvr_match");
	for (i = 0; i < b->n_overlaps; i++)
		if (b->overlaps[i].blocks > longest)
			longest = b->overlaps[i].blocks;
	b->matches++;
	b->wrong += longest != want;
	return ns;
}

int64_t
bed_choose(struct bed *b)
{
	struct kvr_decision d;
	int64_t start, ns;
	int e;

	d.size = sizeof(d);
	start = bed_clock();
	e = kvr_choose(b->k, b->prompt, NULL, b->overlaps,
	    sizeof(*b->overlaps), b->n_overlaps, b->now, &d);
	ns = bed_since(b, start);
	bed_must(e, "kvr_choose");
	return ns;
}

int64_t
bed_observe(struct bed *b, uint32_t worker)
{
	int64_t now = bed_tick(b), start = bed_clock(), ns;
	int e = kvr_observe(b->k, b->prompt, b->ids[worker], now, 0, NULL);

	ns = bed_since(b, start);
	bed_must(e, "kvr_observe");
	return ns;
}

int64_t
bed_reset(struct bed *b, uint32_t worker)
{
	int64_t start = bed_clock(), ns;
	int e;

	do { /* busy: earlier ones have left much */
		e = kvr_worker_reset(b->k, b->ids[worker], &b->ids[worker]);
	} while (e == KVR_EBUSY);
	ns = bed_since(b, start);
	bed_must(e, "kvr_worker_reset");
	return ns;
}

int64_t
bed_expire(struct bed *b, bool *left)
{
	uint32_t more = 0;
	int64_t start = bed_clock(), ns;
	int e = kvr_expire(b->k, b->now, 1, &more);

	ns = bed_since(b, start);
	bed_must(e, "kvr_expire");
	*left = more != 0;
	return ns;
}

void
bed_age(struct bed *b)
{
	b->now += b->ttl_ns + 1;
}
