/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fade.h - sums of amounts that count less as they grow older.
 *
 *	sum = sum of amount * e^-(age / mean)
 *
 * would have to shrink all the time. Instead an amount is added times
 *
 *	e^((now - since) / mean)
 *
 * so that sums which are compared with each other need no exponential, and all
 * others the same one: e^-((now - since) / mean). When that factor becomes
 * large, all sums are multiplied by it, and `since` is now. (Forward decay:
 * Cormode, Shkapenyuk, Srivastava, Xu, ICDE 2009.)
 */
#ifndef KVR_FADE_H
#define KVR_FADE_H

#include "exp.h"

#include <stdbool.h>
#include <stdint.h>

#define FADE_AGES 100.0  /* mean ages after which sums are scaled */
#define FADE_NEVER 1000.0 /* mean ages of a time that cannot be: e^-1000 is 0 */
#define FADE_MAX 1e200   /* larger sums are damage */

/* Sums are in shared memory and may be anything, also NaN. */
static inline bool
fade_sane(double sum)
{
	return sum >= 0 && sum <= FADE_MAX;
}

/* Mean ages since; FADE_NEVER if the time cannot be. */
static inline double
fade_ages(int64_t since, int64_t now, double mean)
{
	double ages = since >= 0 && since <= now
	    ? (double)(now - since) * 1e-9 / mean : FADE_NEVER;

	return ages >= 0 ? ages : FADE_NEVER;
}

#endif
