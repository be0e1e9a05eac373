/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * health.h - which workers of a fleet are gray, and which are still warming up.
 *
 * A GRAY worker answers, but much slower than the others, or with failures now
 * and then. It is judged by what requests have seen, beside the others:
 *
 *   slow       it takes `factor` times as long for the same work as more than
 *              half of the others do, and a second later it still does: after
 *              one stall of the network, or of the router, none is gray
 *   failing    a fifth of its latest requests have failed, three times the
 *              share of more than half of the others
 *
 * So if all are slow, none is gray, and at most half of them are at a time. A
 * gray worker is left alone but for PROBES, one at a time; after some good ones
 * in a row it is as the others are:
 *
 *            judged               probe  probe  probe
 *   good ------------> gray  ...    bad   good   good ...  good
 *                       |  1 s       |  2 s  |  1 s |         |
 *                       +------------+-------+------+---------+--> good
 *                         each bad one doubles the pause        3 in a row; up
 *                         before the next, up to 8 s            to 24 where it
 *                                                               was gray before
 *
 * Work is counted in units, of about as much time each on a healthy worker.
 * What they are is the caller's: times a unit are only compared.
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
	uint64_t key;        /* of its worker; 0: the place is free */
	uint64_t ns, units;  /* of the latest work, */
	uint64_t at;         /* which ended then */
	uint64_t suspect;    /* when it seemed slow; all work is later; 0: no */
	uint64_t share;      /* of the latest requests that failed, */
	uint64_t share_at;   /* as it was then */
	uint64_t verdict;    /* enum health_verdict */
	uint64_t since;      /* the verdict; */
	uint64_t healed;     /* when the one before ended, or 0 */
	uint64_t probe_at;   /* when the next probe may go; */
	uint64_t bad, good;  /* ones in a row; */
	uint64_t good_at;    /* when the latest good one ended; */
	uint64_t needed;     /* good ones in all */
	uint64_t cold;       /* it has not answered yet */
	uint64_t warm_at;    /* when it has, or 0 */
};

/*
 * The place of a worker, by a key of its name that is not 0: found, or a free
 * one taken; NULL: all are taken. *fresh: it was not there before.
 */
struct health *health_place(struct health *all, size_t n, uint64_t key,
    bool *fresh);
/* Frees the places of workers that are not among these. */
void health_keep(struct health *all, size_t n, const uint64_t *keys,
    size_t n_keys);
/* Frees the place of this one, if it has one. */
void health_drop(struct health *all, size_t n, uint64_t key);

/* Work that a request which began then has seen done, so many units of it. */
void health_worked(struct health *h, int64_t began, int64_t ns, double units,
    int64_t now);

enum health_change {
	HEALTH_SAME,
	HEALTH_BECAME_SLOW,
	HEALTH_BECAME_FAILING,
	HEALTH_HEALED
};

/*
 * A request has ended. `of` is one of the n workers, each there once; factor is
 * above 1.
 */
enum health_change health_ended(struct health *const *all, size_t n,
    struct health *of, double factor, int64_t began, bool failed, int64_t now);
/* The same of one that goes on, and has seen work. */
enum health_change health_goes_on(struct health *const *all, size_t n,
    struct health *of, double factor, int64_t now);

/* Its place may be another worker's by now. */
bool health_is_of(const struct health *h, uint64_t key);
enum health_verdict health_verdict(const struct health *h);
/* Good again, without a probe: it is another worker by now. */
void health_forget(struct health *h);

/* Is a probe due, or has it been for so long? */
bool health_is_due(const struct health *h, int64_t late, int64_t now);
/* Takes the probe that is due; false: another process has. */
bool health_probe(struct health *h, int64_t now);

/* It joins, or has failed. */
void health_cool(struct health *h);
/* It has answered; false: it had before. */
bool health_answered(struct health *h, int64_t now);
/* The share of its load that it may take, up to 1, while it warms up. */
double health_warmth(const struct health *h, int64_t whole, int64_t now);

#endif
