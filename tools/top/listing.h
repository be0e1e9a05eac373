/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listing.h - two readings as the lines of text that kvroute-top shows.
 *
 *   struct reading before ---+
 *   struct reading now    ---+---> lines: totals, then a row for each worker
 *   seconds between them  ---+     rates are of the time between
 *
 * Without a reading before, rates are not known and shares are those since the
 * region, or nginx, began. A worker that was reset in between counts as new.
 *
 * Lines are no longer than the width; columns at the right end are left out if
 * there is no room for them.
 */
#ifndef KVROUTE_TOP_LISTING_H
#define KVROUTE_TOP_LISTING_H

#include "reading.h"

enum { LISTING_WIDTH_MIN = 40, LISTING_WIDTH_MAX = 250 };

enum listing_kind {
	LISTING_PLAIN,
	LISTING_HEAD,    /* names of columns */
	LISTING_ROW,
	LISTING_ABSENT,  /* of a worker that gets no requests, or fewer */
	LISTING_TROUBLE  /* that needs attention */
};

struct listing_line {
	char text[LISTING_WIDTH_MAX + 1];
	enum listing_kind kind;
};

struct listing_view {
	size_t upstream;       /* which; beyond the last: that */
	size_t sort;           /* column, from 0: the worker's name */
	bool reverse;
	size_t width;          /* columns of the terminal, within the bounds */
};

size_t listing_columns(void);
const char *listing_column(size_t i);
const char *listing_meaning(size_t i);

/*
 * Makes the lines, which the caller frees. NULL: no memory. before NULL: this
 * is the first.
 */
struct listing_line *listing_make(const struct reading *before,
    const struct reading *now, double seconds, const struct listing_view *view,
    size_t *lines);

/* 999, 1.2k, 12k, 1.2M, ... in at most 5 characters. */
void listing_number(char to[8], double value);

#endif
