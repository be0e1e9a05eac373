/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * survival.c - how likely an idle block is still cached, by its age.
 *
 * A cache of unknown size evicts by use, not by time. So the age of an idle
 * block is the size that the cache needs to hold it still: all blocks in use,
 * and all idle blocks released after it (stack.c), in tokens. Reported hits and
 * misses of blocks that were believed to be cached are counted by the age that
 * they had when the request came, four bins per doubling:
 *
 *   bin     0      1    2    3    4    5        63
 *   age   < 1024                 2048          48 million tokens
 *   hit   |||||  |||| |||| ||||  |||  |
 *   miss                          |   ||||     |
 *   S      1 ..................  0.8  0.2 ..   0
 *
 *	S(bin) = (hit + 4 S(bin - 1) + 5/6) / (hit + miss + 4 + 1)
 *
 * A cache that has lost young blocks has lost older ones, so a bin with little
 * evidence is like its younger neighbour. The last part is a prior: a bin in
 * which nothing is expected would never be tried again. S(-1) = 5/6.
 *
 * Evidence is counted in pieces of 512 tokens. Each new piece makes the older
 * ones of its bin fade a little, so a cache that has shrunk is noticed. See
 * kvr_report(3) for the reports that are evidence.
 */
#include "survival.h"

#include "exp.h"

enum {
	AGE_MIN_BITS = 10,
	LOST_MIN = 8,   /* pieces missed, before a capacity is shown */
	EDGE_BINS = 8,  /* on either side of an edge: a factor of four */
	EDGE_MIN = 128, /* pieces there */
	EDGE_PURE = 16  /* one of so many may be different */
};
#define PIECE_TOKENS 512.0
#define FADE 0.999
#define YOUNGER 4.0          /* weight of the younger bin's S, in pieces */
#define PRIOR 1.0            /* weight of UNKNOWN, in pieces */
#define UNKNOWN (5.0 / 6)    /* S without evidence */
#define LN_FADE (-0.0010005003335835335) /* ln FADE */
#define COUNT_MAX 1001.0F    /* 1 / (1 - FADE) pieces, and a bit */

/* floor(4 log2(age / 1024)), from 0 to the last bin. */
uint32_t
survival_bin(uint64_t age)
{
	uint32_t bits, bin;
	uint64_t x;

	if (age >> AGE_MIN_BITS == 0)
		return 0;
	bits = 63 - (uint32_t)__builtin_clzll(age);
	x = bits > 16 ? age >> (bits - 16) : age << (16 - bits);
	/* 2^(16 + i/4), rounded up */
	bin = 4 * (bits - AGE_MIN_BITS) + (x >= 77936) + (x >= 92682) +
	    (x >= 110218);
	return bin < AGES - 1 ? bin + 1 : AGES - 1;
}

/* As a double: some machines add floats at a higher precision. */
static double
read_once_float(const float *place)
{
	float value;

	__atomic_load(place, &value, __ATOMIC_RELAXED);
	return value >= 0 && value <= COUNT_MAX ? value : 0;
}

/* S less UNKNOWN. */
static double
read_likely(const float *place)
{
	float value;

	__atomic_load(place, &value, __ATOMIC_RELAXED);
	return value >= -UNKNOWN && value <= 1 - UNKNOWN ? value : 0;
}

static void
write_once_float(float *place, double value)
{
	float x = (float)value;

	__atomic_store(place, &x, __ATOMIC_RELAXED);
}

double
survival_of(const struct kvr *k, uint32_t slot, uint32_t bin)
{
	const struct survival *s = survival_at(k, slot);

	return UNKNOWN + read_likely(&s->likely[bin < AGES ? bin : AGES - 1]);
}

/*
 * Counts `tokens`, and `share` of them in `seen`. n pieces at once are n times
 * one: x -> x FADE^n + share (1 - FADE^n) / (1 - FADE).
 */
static void
count_share(float *seen, double share, double tokens)
{
	double keep = exp_of(tokens / PIECE_TOKENS * LN_FADE);

	write_once_float(seen,
	    read_once_float(seen) * keep + share * (1 - keep) / (1 - FADE));
}

void
survival_note(struct kvr *k, uint32_t slot, uint32_t bin, double tokens,
    bool hit)
{
	struct survival *s = survival_at(k, slot);

	bin = bin < AGES ? bin : AGES - 1;
	count_share(&s->hit[bin], hit, tokens);
	count_share(&s->miss[bin], !hit, tokens);
}

/*
 * Computes S of each bin from its counts and its younger neighbour. All
 * divisions are made before the loop that chains the bins, so that none waits
 * for another.
 */
void
survival_update(struct kvr *k, uint32_t slot)
{
	struct survival *s = survival_at(k, slot);
	double share[AGES], likely = UNKNOWN, hit;
	uint32_t bin;

	for (bin = 0; bin < AGES; bin++)
		share[bin] = 1 / (read_once_float(&s->hit[bin]) +
		    read_once_float(&s->miss[bin]) + (YOUNGER + PRIOR));
	for (bin = 0; bin < AGES; bin++) {
		hit = read_once_float(&s->hit[bin]);
		likely = (hit + PRIOR * UNKNOWN) * share[bin] +
		    likely * (YOUNGER * share[bin]);
		write_once_float(&s->likely[bin], likely - UNKNOWN);
	}
}

/* For a new incarnation, which is unknown. */
void
survival_forget(struct kvr *k, uint32_t slot)
{
	write_once_zeros(survival_at(k, slot), sizeof(struct survival));
}

void
survival_unlearn(struct kvr *k, uint32_t slot)
{
	write_once_zeros(
	    survival_at(k, slot), offsetof(struct survival, missed));
}

/* Where a bin begins, in tokens. */
static uint64_t
bin_age(uint32_t bin)
{
	static const uint32_t quarter[] = { 65536, 77936, 92682, 110218 };
	uint32_t i = bin - 1;

	return (uint64_t)quarter[i % 4] << (AGE_MIN_BITS + i / 4) >> 16;
}

/* Evidence in bins [from, to). */
static double
sum_of(const float *seen, uint32_t from, uint32_t to)
{
	double sum = 0;

	for (; from < to; from++)
		sum += read_once_float(&seen[from]);
	return sum;
}

/*
 * The first bin that is mostly lost: the one that parts hits from misses with
 * the least on the wrong side. The oldest of equals, and AGES if nothing is
 * lost.
 */
static uint32_t
first_lost(const struct survival *s)
{
	double wrong = 0, least = 0;
	uint32_t bin, first = 0;

	for (bin = 0; bin < AGES; bin++) {
		wrong += read_once_float(&s->miss[bin]) -
		    read_once_float(&s->hit[bin]);
		if (wrong <= least) {
			least = wrong;
			first = bin + 1;
		}
	}
	return first;
}

/*
 * The age from which blocks are lost more often than not; 0 if not yet seen.
 * It estimates the room that the cache has beside the blocks in use.
 */
uint64_t
survival_capacity(const struct kvr *k, uint32_t slot)
{
	const struct survival *s = survival_at(k, slot);
	uint32_t bin = first_lost(s);

	if (sum_of(s->miss, bin, AGES) < LOST_MIN)
		return 0;
	return bin_age(bin > 0 ? bin : 1);
}

/* Whether bins [from, to) have much of one sort, and little of the other. */
static bool
is_pure(const float *most, const float *rest, uint32_t from, uint32_t to)
{
	double much = sum_of(most, from, to);

	return much >= EDGE_MIN && sum_of(rest, from, to) * EDGE_PURE <= much;
}

/*
 * The same, rather too old than too young, if there is no doubt: see trust.c.
 * One bin on either side of where hits become misses may have both.
 */
uint64_t
survival_edge(const struct kvr *k, uint32_t slot)
{
	const struct survival *s = survival_at(k, slot);
	uint32_t bin = first_lost(s), low, high;

	if (bin < 2 || bin + 2 >= AGES)
		return 0;
	low = bin - 1 > EDGE_BINS ? bin - 1 - EDGE_BINS : 0;
	high = bin + 1 + EDGE_BINS < AGES ? bin + 1 + EDGE_BINS : AGES;
	if (!is_pure(s->hit, s->miss, low, bin - 1) ||
	    !is_pure(s->miss, s->hit, bin + 1, high))
		return 0;
	return (bin_age(bin) + bin_age(bin + 1)) / 2;
}
