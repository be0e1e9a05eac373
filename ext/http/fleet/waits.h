/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * waits.h - requests that wait for a server, and their order.
 *
 * Nothing is booked for a request that waits, and the server is chosen when it
 * no longer does. Requests that can go anywhere, "plain" ones, are one line;
 * the others, which need the server that keeps their state or have failed at
 * some, do not stand in their way, nor in that of each other:
 *
 *   process 1   plain   a c f          others   B G      "oldest a, wants B's
 *                                                         and G's"
 *   process 2   plain   d e            others            "oldest d"
 *
 * Each process wakes its own. None overtakes: a request that goes anywhere goes
 * only if no plain one is older, in any process, and a server that is wanted is
 * full for all that came later; places.h has the other processes. Whether a
 * request is plain is known only when it is its turn: an id may be bound by
 * then, or its server gone; it changes lines in that case.
 *
 * In one look few are tried, for each try is a choice. Others whose servers are
 * full are no tries, or some would starve behind them.
 */
#ifndef KVROUTE_WAITS_H
#define KVROUTE_WAITS_H

#include "places.h"

struct wait_line {
	struct wait *first, *last;
};

/* The wait of one request; all 0 at first. */
struct wait {
	struct wait *before, *after; /* in the line; */
	struct wait_line *line; /* NULL: it does not wait */
	uint32_t since;         /* it came: milliseconds, for the order; or 0 */
	bool kept;              /* it needs the server that keeps its state; */
	uint64_t wants;         /* key of the only server that will do, or 0, */
	size_t wants_at;        /* and its place in the list */
	bool retried;           /* it has failed at some server */
	bool woken;             /* it is tried now: nobody else is to wake it */
};

struct waits {
	struct places places;
	struct wait_line plain, others;
	size_t n;
	/* Has the request tried server i? */
	bool (*has_tried)(const struct wait *wait, size_t i);
};

/* Set by the configuration, before the processes begin. */
void waits_prepare(struct waits *w);

/* A choice for this request begins: servers that older ones want are full. */
void waits_yield(struct waits *w, struct wait *wait, int64_t now);
/* May it go anywhere now? */
bool waits_lets(const struct waits *w, const struct wait *wait, int64_t now);
/* Are there servers in use that are full? */
bool waits_full(const struct fleet *f);
/* Will there be a server for it? The servers were looked at for it. */
bool waits_hope(const struct fleet *f, struct wait *wait);

/* Is there room for one more? waits_add() or waits_write() must follow. */
bool waits_room(struct waits *w, int64_t now);
/* It waits; again moves it to the line that it now belongs to. */
void waits_add(struct waits *w, struct wait *wait, int64_t now);
/* It waits no longer. */
void waits_remove(struct waits *w, struct wait *wait, int64_t now);
/* Shows other processes the change. */
void waits_write(struct waits *w, int64_t now);

/* One look; all 0 at first. */
struct turns {
	const struct wait *stuck; /* a plain one that waits on, or NULL */
	struct wait *other;     /* where looking at the others goes on */
	bool begun, plain, over;
	unsigned tries, woken;
};
/*
 * The oldest request that is worth a try; NULL: none is, or there were enough.
 * The servers were looked at as for one that has tried none.
 */
struct wait *waits_turn(struct waits *w, struct turns *t);
/* After a try: it waits on, or was woken. */
void waits_tried(struct turns *t, const struct wait *wait, bool woken);
/* Some may be left, and not all tries were in vain. */
bool waits_more(const struct turns *t);

#endif
