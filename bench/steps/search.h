/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * search.h - looks for histories in which calls take long.
 *
 * Plans of histories are drawn; one in two is the worst so far of some call,
 * with a few numbers drawn anew. A plan that is worse than all before it is
 * repeated, and the least of each call counts, for a call is slow each time and
 * noise is not. A plan is written as name=number,name=number; what is not
 * named is that of plan_usual.
 */
#ifndef KVROUTE_SEARCH_H
#define KVROUTE_SEARCH_H

#include "history.h"

#include <stdio.h>

/* Where a plan gives no number of its own. */
extern const struct plan plan_usual;
/* Ends the program if the text is no plan. */
void plan_read(const char *text, struct plan *p);
void plan_write(const struct plan *p, FILE *f);
/* Prints the worst of each call, and the history that made it. */
void search_run(uint32_t seconds, uint32_t seed);

#endif
