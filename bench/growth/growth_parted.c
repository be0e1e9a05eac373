/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growth_parted.c - the curve of one prefix that 1,024 workers hold and from
 * which more and more short prompts part, each at another block.
 */
#include "growth_bed.h"

/*
 * first: match and choice of the prefix as one run; part: a short prompt parts
 * from it; route, again and entries when all have; later: when those were due
 * and each worker has used the prefix again.
 */
enum parted_kind {
	R_FIRST, R_FIRST_AGAIN, R_PART, R_ROUTE, R_AGAIN, R_LATER,
	R_LATER_AGAIN, R_KINDS
};
static const char parted_columns[] = "parted\tfirst\tfirst_again\tpart\troute\t"
    "again\tlater\tlater_again\tentries\tentries_later\tnodes_later";

enum { HOLDERS = 1024, BLOCKS = 250, TIMES = 16 };

static void
parted_refresh(struct bed *b)
{
	uint32_t worker;

	(void)bed_hash(b, 0, BLOCKS);
	for (worker = 0; worker < HOLDERS; worker++)
		(void)bed_observe(b, worker);
}

/* A match and a choice, and the use of the prefix by one that holds it. */
static void
parted_times(struct bed *b, struct series *route, struct series *again)
{
	uint32_t i;

	(void)bed_hash(b, 0, BLOCKS);
	for (i = 0; i < TIMES; i++) {
		series_put(route, i, bed_match(b, BLOCKS) +
		    bed_choose(b));
		series_put(again, i, bed_observe(b, i * (HOLDERS / TIMES)));
	}
}

static void
parted_later(struct bed *b)
{
	bool left = true;

	b->now += b->ttl_ns / 2;
	parted_refresh(b);
	b->now += b->ttl_ns / 2;
	while (left)
		(void)bed_expire(b, &left);
	parted_refresh(b);
}

static void
parted_trial(struct bed *b, struct series *s, uint32_t parted, double *counts)
{
	uint32_t i;

	parted_refresh(b);
	parted_times(b, &s[R_FIRST], &s[R_FIRST_AGAIN]);
	for (i = 0; i < parted; i++) {
		(void)bed_hash_two(b, 0, 1 + i * (BLOCKS - 1) / parted,
		    BLOCKS * GROWTH_BLOCK + i, 1);
		series_put(&s[R_PART], i, bed_observe(b, i % HOLDERS));
	}
	counts[0] = (double)bed_stats(b).entries;
	parted_times(b, &s[R_ROUTE], &s[R_AGAIN]);
	parted_later(b);
	parted_times(b, &s[R_LATER], &s[R_LATER_AGAIN]);
	counts[1] = (double)bed_stats(b).entries;
	counts[2] = (double)bed_stats(b).nodes;
	bed_clear(b);
}

static void
parted_point(struct growth *g, uint32_t parted)
{
	const struct bed_size size = { HOLDERS, 4 * BLOCKS,
		(uint64_t)8 * HOLDERS, 2 * BLOCKS * GROWTH_BLOCK + BLOCKS,
		BLOCKS + 1 };
	double values[R_KINDS + 4] = { parted };
	struct series s[R_KINDS];
	struct bed b;
	uint32_t i;

	bed_open(&b, g, &size);
	for (i = 0; i < R_KINDS; i++)
		series_new(&s[i], i == R_PART ? parted : TIMES);
	for (i = 0; i < g->trials; i++) {
		parted_trial(&b, s, parted, &values[R_KINDS + 1]);
		growth_step(g);
	}
	for (i = 0; i < R_KINDS; i++) {
		values[i + 1] = series_middle(&s[i]);
		series_free(&s[i]);
	}
	growth_line(g, parted_columns, values);
	if (parted == BLOCKS - 1) {
		growth_ratio(g, "route_after_before", values[1 + R_ROUTE] /
		    values[1 + R_FIRST]);
		growth_ratio(g, "entries_after_before", values[R_KINDS + 1] /
		    HOLDERS);
		growth_ratio(g, "route_later_before", values[1 + R_LATER] /
		    values[1 + R_FIRST]);
	}
	bed_close(&b);
}

void
growth_parted(struct growth *g)
{
	static const uint32_t sizes[GROWTH_PARTED_STEPS] = { 1, 4, 16, 64,
		BLOCKS - 1 };
	size_t i;

	growth_table(g, "parted", parted_columns);
	for (i = 0; i < GROWTH_PARTED_STEPS; i++)
		parted_point(g, sizes[i]);
}
