/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * draw.c - see draw.h.
 *
 * Von Neumann's method needs comparisons only. Uniform numbers are drawn as
 * long as each is below its predecessor. The first one is the fraction of the
 * result if an odd number of them was drawn before the order broke; otherwise
 * the integer part grows by one and the draw is repeated:
 *
 *   .71 > .52 > .13 < .80    3 descend: odd, the fraction is .71
 *   .40 > .22 < .95          2: even, one more
 *
 * A run of n descends with probability 1/n!, so the first is accepted with
 * density 1 - u + u^2/2! - ... = exp(-u), and each rejection has probability
 * 1/e.
 */
#include "draw.h"

#include "rng.h"

enum { FRACTION_BITS = 20 };

static uint64_t
draw_uniform(struct rng *r)
{
	return rng_next(r) >> (64 - FRACTION_BITS);
}

/* True: *first is accepted. */
static int
table_descends(struct rng *r, uint64_t *first)
{
	uint64_t last, next;
	int n = 1;

	*first = draw_uniform(r);
	for (last = *first; (next = draw_uniform(r)) < last; last = next)
		n++;
	return n % 2;
}

uint64_t
draw_exponential(struct rng *r, uint64_t mean)
{
	uint64_t whole = 0, fraction;

	while (!table_descends(r, &fraction))
		if (++whole == DRAW_TIMES_MAX)
			return DRAW_TIMES_MAX * mean;
	return whole * mean + (mean * fraction >> FRACTION_BITS);
}

uint64_t
draw_length(struct rng *r, uint64_t low, uint64_t mean)
{
	uint64_t n = draw_exponential(r, mean);

	return n < low ? low : n;
}
