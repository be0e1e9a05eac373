/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * late.h - a daemon that begins when others have run for long, and its part
 * when others begin.
 *
 *	region      bus      missed news comes from
 *	empty       any      a peer; without a peer, from the log
 *	has some    Redis    the log
 *	has some    NATS     a peer, if it was stamped since
 *
 * News that was missed for longer than a quarter of the TTL is not asked for in
 * a region that has some: it would be taken for new.
 *
 * A peer sends each block once, the log each chain with each request; a log of
 * 128 MB is seconds of a busy fleet. But it needs no peer, has sessions too,
 * and a restart misses little.
 *
 * While a peer is asked, frames of others are kept back, as their requests
 * would move the region's clock ahead of the entries to observe. The router is
 * not waited for, nor does it wait.
 */
#ifndef KVROUTE_LATE_H
#define KVROUTE_LATE_H

#include "bus.h"
#include "snapshot.h"

struct kept;
struct site;

struct late {
	struct chains *chains; /* all NULL: sums of loads only */
	struct give *give;
	struct fetch *fetch;   /* NULL: no peer is asked */
	int64_t opened;
	int64_t age;           /* of the oldest that was missed */
	bool replaying;        /* the log */
	bool ready;
	bool direct;           /* frames are no longer kept back */
	uint64_t replayed;     /* frames */
	uint64_t left_out;     /* no room to keep them back */
	/* kept back */
	struct kept *first, **last;
	size_t bytes;
	struct frame_reader reader;
};

/* Where s->roster has been read. false: no memory. */
bool late_open(struct site *s, int64_t now);
/* With the bus and the rest there: asks, or reads the log. */
bool late_begin(struct site *s, int64_t now);
void late_close(struct site *s);
/* Takes a message of the bus. */
void late_take(struct site *s, const struct bus_message *message);
/* Returns when to call again. */
int64_t late_work(struct site *s, int64_t now);

#endif
