/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * screen.h - the terminal of kvroute-top, by curses.
 *
 *   +--------------------------------------+
 *   | title                                |
 *   | lines of listing.h                     |
 *   | ... rows, from the first that is     |
 *   | shown                                |
 *   | hint, or error                       |
 *   +--------------------------------------+
 *
 * All that is drawn is text of listing.h, which has no control characters.
 */
#ifndef KVROUTE_TOP_SCREEN_H
#define KVROUTE_TOP_SCREEN_H

#include "listing.h"

enum screen_key {
	SCREEN_NONE,
	SCREEN_QUIT,
	SCREEN_PAUSE,
	SCREEN_NEXT,       /* upstream */
	SCREEN_SORT_LEFT,
	SCREEN_SORT_RIGHT,
	SCREEN_REVERSE,
	SCREEN_AGAIN,      /* read now */
	SCREEN_HINT,
	SCREEN_MOVED
};

struct screen {
	size_t first;  /* row that is shown first */
	size_t rows;   /* that there are */
	void *terminal;
};

/* False: there is no terminal that can be used. */
bool screen_open(struct screen *s);
void screen_close(struct screen *s);
size_t screen_width(void);
/* Takes keys that scroll itself: SCREEN_MOVED, draw again. */
enum screen_key screen_key(struct screen *s);
/* `below`: the last line; `trouble`: it is about something wrong. */
void screen_draw(struct screen *s, const char *title,
    const struct listing_line *line, size_t lines, const char *below,
    bool trouble);

#endif
