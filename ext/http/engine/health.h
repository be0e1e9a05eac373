/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * health.h - finds the workers of a fleet that are gray or warming up.
 *
 * A GRAY worker answers, but much slower than the others, or with failures now
 * and then. It is judged by the times and failures of requests, beside those of
 * the others:
 *
 *   slow       it takes `factor` times as long for the same work as more than
 *              half of the others do, and a second later it still does: one
 *              stall of the network, or of the router, makes no worker gray
 *   failing    a fifth of its latest requests have failed, three times the
 *              share of more than half of the others; blame.h decides which
 *              failures are its own
 *
 * If all are slow, no worker is gray, and at most half of them are at a time. A
 * gray worker gets nothing but PROBES, one at a time; after some good ones in a
 * row it is good again:
 *
 *            judged               probe  probe  probe
 *   good ------------> gray  ...    bad   good   good ...  good
 *                       |  1 s       |  2 s  |  1 s |         |
 *                       +------------+-------+------+---------+--> good
 *                         each bad one doubles the pause        3 in a row; up
 *                         before the next, up to 8 s            to 24 where it
 *                                                               was gray before
 *
 * Work is counted in units that take a healthy worker about the same time each.
 * The caller chooses the unit: times per unit are only compared.
 *
 * A worker is COLD from the moment that it joins or fails until it answers
 * again, and then WARMS UP for a time.
 *
 * A struct health is in memory that processes share, without a lock. A process
 * that is interrupted by another loses a piece of evidence at worst. All times
 * are of one clock, in nanoseconds, and above 0.
 */
#ifndef KVROUTE_HEALTH_H
#define KVROUTE_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum health_verdict { HEALTH_GOOD, HEALTH_SLOW, HEALTH_FAILING };

/* All 0 at first. */
struct health {
	uint64_t key;        /* the worker's; 0: the place is free */
	uint64_t ns, units;  /* sums over the latest work */
	uint64_t at;         /* when the latest work ended */
	uint64_t suspect;    /* when it first seemed slow, or 0; the sums */
	                     /* have only later work */
	uint64_t share;      /* failed ones among the latest requests, of */
	                     /* 2^16; failures that count */
	uint64_t share_at;   /* when `share` was written; it fades */
	uint64_t verdict;    /* enum health_verdict */
	uint64_t since;      /* when the verdict was given */
	uint64_t healed;     /* when the last gray verdict ended, or 0 */
	uint64_t probe_at;   /* when the next probe may go */
	uint64_t bad, good;  /* probes in a row */
	uint64_t good_at;    /* when the latest good probe ended */
	uint64_t needed;     /* good probes in a row that heal it */
	uint64_t cold;       /* 1: it has not answered yet */
	uint64_t warm_at;    /* when it first answered, or 0 */
	uint64_t answered_at; /* when the latest request succeeded */
	uint64_t fails_since; /* when the first one after that failed, or 0 */
	uint64_t unproven;   /* as `share`, of all failures */
};

/*
 * Finds the place of a worker by a key of its name that is not 0, or takes a
 * free one and sets *fresh. NULL: all are taken.
 */
struct health *health_place(struct health *all, size_t n, uint64_t key,
    bool *fresh);
/* Frees the places of all workers but these. */
void health_keep(struct health *all, size_t n, const uint64_t *keys,
    size_t n_keys);
/* Frees the place of this worker, if it has one. */
void health_drop(struct health *all, size_t n, uint64_t key);

/* Adds work: a request that began at `began` had `units` done in ns. */
void health_worked(struct health *h, int64_t began, int64_t ns, double units,
    int64_t now);

enum health_change {
	HEALTH_SAME,
	HEALTH_BECAME_SLOW,
	HEALTH_BECAME_FAILING,
	HEALTH_HEALED
};

/*
 * A request has ended: judges `of`, one of the n workers, each there once. The
 * factor is above 1.
 */
enum health_change health_ended(struct health *const *all, size_t n,
    struct health *of, double factor, int64_t began, bool failed, int64_t now);
/* Judges the worker in the middle of a request, after work was added. */
enum health_change health_goes_on(struct health *const *all, size_t n,
    struct health *of, double factor, int64_t now);

/* A request has failed, perhaps not by the worker's fault: see blame.h. */
void health_unanswered(struct health *h, int64_t now);
/*
 * Has the worker answered nothing for a second, while more than half of the
 * others answer and have failed at most a third as often?
 */
bool health_only_fails(struct health *const *all, size_t n,
    const struct health *of, int64_t now);

/* Does the place still belong to this worker? */
bool health_is_of(const struct health *h, uint64_t key);
enum health_verdict health_verdict(const struct health *h);
/* Makes it good without a probe: another worker has its name by now. */
void health_forget(struct health *h);

/* Has a probe been due for `late` nanoseconds? */
bool health_is_due(const struct health *h, int64_t late, int64_t now);
/* Takes the probe that is due; false: another process has taken it. */
bool health_probe(struct health *h, int64_t now);

/* The worker joins, or has failed: it is cold. */
void health_cool(struct health *h);
/* The worker has answered; false: it was not cold. */
bool health_answered(struct health *h, int64_t now);
/* Returns the share of its load, 0 to 1, that a worker may take by now. */
double health_warmth(const struct health *h, int64_t whole, int64_t now);

#endif
