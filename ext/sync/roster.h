/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * roster.h - the workers of a region in kvroute-sync.
 *
 * On the wire a worker is the index of its place here. All replicas agree on
 * its epoch: how often it was reset. Each counts a reset that it sees, and the
 * larger number wins, so that a reset that several routers saw counts once.
 *
 *	here     peer has    effect
 *	3        3           nothing
 *	3        2           its record is about blocks that are lost
 *	3        4           the worker is reset here too
 *	not yet  4           4 is taken over: no reset; so it is until all
	                     peers have had time to send theirs
 *
 * A worker with complete events is not reset for a peer at once: its engine
 * reports the loss here, too, and a reset would drop the blocks that events
 * have stored. The epoch is taken over. It is reset if no event comes within
 * seconds: then nothing may follow its engine any more.
 *
 * Until a peer has sent an epoch, the one here counts from this daemon's start.
 * The larger of two such numbers is taken, not their sum: both sides may have
 * counted the same reset, and the second to hear would take the sum of the
 * first for a new one.
 */
#ifndef KVROUTE_ROSTER_H
#define KVROUTE_ROSTER_H

#include <kvroute.h>

#include <stdbool.h>

/* Upper half of the owner of each lease that was applied for a peer. */
#define ROSTER_PEERS UINT64_C(0xffffffff)
/* The source of peers' loads; others are for loads that engines publish. */
enum { ROSTER_SOURCE = KVR_LOAD_SOURCES - 1 };

struct roster_worker {
	uint64_t id;       /* 0: the place is free */
	struct kvr_load load; /* of the peers, as set */
	uint32_t rank, epoch, state;
	uint32_t made;     /* differs for each worker that had this place */
	int64_t reset_at;  /* by this router; 0: not yet */
	int64_t due;       /* a reset that was put off; 0: none */
	bool agreed;       /* a peer has sent its epoch */
	bool there;        /* while the region's workers are read */
	size_t name_len;
	char name[KVR_NAME_MAX];
};

struct roster {
	struct kvr *k;     /* quiet */
	struct roster_worker *workers;
	size_t places, next;
	uint32_t *index;   /* place + 1 by id; 0: none */
	uint32_t *names;   /* the same by name and rank */
	size_t index_mask;
	size_t count;
	uint32_t made;
	int64_t now;       /* of roster_work */
	int64_t due;       /* the earliest reset that was put off; 0: none */
	/* requests, of this router and all others */
	uint64_t opens, counted;
	int64_t counted_at;
	double rate;       /* a second */
};

/* Empty until roster_read. false: no memory, or the region does not answer. */
bool roster_init(struct roster *f, struct kvr *quiet);
void roster_free(struct roster *f);
/* Reads the region's workers. True if one is new, gone, or was reset. */
bool roster_read(struct roster *f);
/* NULL: not here, or not yet. */
struct roster_worker *roster_id(const struct roster *f, uint64_t id);
struct roster_worker *roster_find(const struct roster *f, const char *name,
    size_t name_len, uint32_t rank);
size_t roster_place(const struct roster *f, const struct roster_worker *w);
/* This router has reset a worker. false: that was known. */
bool roster_reset(struct roster *f, uint64_t id, uint64_t new_id);
/* The router has cleared the region, and with it all loads. */
void roster_cleared(struct roster *f);
/* Resets workers for which that was put off. */
void roster_work(struct roster *f, int64_t now);
/*
 * A peer is at this epoch; if `reset`, the worker is reset to get there. false:
 * the peer is behind.
 */
bool roster_agree(struct roster *f, struct roster_worker *w, uint32_t epoch,
    bool reset);
/* Requests a second for each worker, as of `now`. */
double roster_rate(struct roster *f, int64_t now);

#endif
