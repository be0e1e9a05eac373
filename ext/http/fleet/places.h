/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * places.h - processes see each other's requests that wait; see waits.h.
 *
 *   place      pid, beat | waiting | oldest      | server[], since[]
 *              whose     | bound   | plain ones  | the others
 *
 * A process has a place while some of its requests wait, and writes only there.
 * All is read without a lock, so that numbers which are read together need not
 * belong together: at worst a request waits until the next look, some 10 ms.
 *
 * A place counts only while its process looks at it. For the order that is
 * yield_ms, so that one which is stopped delays no other for long; for the
 * bound it is STALE times that, after which it is taken for dead, and may be
 * taken over. A place has room for a few wanted servers: those first wanted.
 * Processes of before a new configuration count, but have servers of their own.
 */
#ifndef KVROUTE_PLACES_H
#define KVROUTE_PLACES_H

#include "known.h"
#include "shared.h"

enum { PLACES_YIELD_MS = 100 };

/* One for each process; `fleet` is set. */
struct places {
	struct fleet *fleet;
	uint32_t life;          /* of the configuration */
	uint32_t yield_ms;
	struct queue_place *place; /* NULL: no request waits */
};

/* Servers that are wanted, with the time of the oldest that does. */
struct wanted {
	size_t n;
	uint32_t since[SHARED_WANTED];
	uint16_t server[SHARED_WANTED];
};

/* Processes that have the same servers in the same order have one `life`. */
void places_follow(struct places *p);
/* A time in milliseconds, for the order; never 0. */
uint32_t places_stamp(int64_t now);
bool places_before(uint32_t a, uint32_t b);
/* Adds server i, if it is not there. */
void wanted_add(struct wanted *wanted, size_t i, uint32_t since);

/* Requests that wait, of all processes. */
size_t places_length(const struct places *p, int64_t now);
/* Takes a place for this process; false: all are taken. */
bool places_have(struct places *p, int64_t now);
/* oldest: since when a plain one waits, or 0. If there is a place for it. */
void places_write(struct places *p, uint64_t waiting, uint32_t oldest,
    const struct wanted *wanted, int64_t now);
void places_leave(struct places *p);
/* Does a plain request wait elsewhere for longer? */
bool places_older(const struct places *p, uint32_t since, int64_t now);
/* Servers that one wants that waits for longer are full. */
void places_yield(struct places *p, uint32_t since, int64_t now);

#endif
