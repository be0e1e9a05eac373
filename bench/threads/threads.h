/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads.h - what several threads on one region reach, compared with one.
 *
 * The measure is not the number of threads but the floor: as many threads that
 * only hash, in the same run, show what the machine and its neighbours give at
 * that time. It is the loop of floor.h and not the library's own hashing, so
 * that no cost of the library is hidden in it.
 *
 * One pair is a shift of one thread and a shift of N, of each work; all of
 * them follow each other within seconds, in the other direction in every
 * second pair, so that disturbances affect all alike:
 *
 *   floor 1 N | match 1 N | all 1 N || all N 1 | match N 1 | floor N 1 || ...
 *
 * Each quotient is formed within its pair; medians of the quotients count.
 */
#ifndef KVROUTE_THREADS_H
#define KVROUTE_THREADS_H

#include "crew.h"

#include <stdbool.h>

enum { THREADS_PAIRS = 9 };

/* Median, minimum and maximum of the pairs. */
struct threads_figure {
	double median, least, most;
};

enum threads_column { THREADS_ONE, THREADS_TWO, THREADS_ALL, THREADS_COLUMNS };

struct threads {
	uint32_t threads, processors, pairs;
	struct threads_figure rate[CREW_WORKS][THREADS_COLUMNS]; /* a second */
	struct threads_figure scale[CREW_WORKS];    /* N threads over one */
	struct threads_figure of_floor[CREW_WORKS]; /* scale, over floor's */
	struct threads_figure of_two[CREW_WORKS];   /* N threads over two */
	double expected; /* of the floor's scale; below it nothing is proved */
	bool valid;
	struct kvr_stats stats;
};

void threads_measure(const struct load *l, const struct world_options *options,
    uint32_t threads, uint32_t pairs, struct threads *out);
void threads_print_kv(const struct threads *t);
void threads_print_text(const struct threads *t);

#endif
