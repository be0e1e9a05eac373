/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apply.h - frames of peers, applied to a region.
 *
 * It has neither a clock nor a bus: `now`, of the clock of the region's router,
 * and frames are given. Memory is bounded in any case, and drops are counted.
 */
#ifndef KVROUTE_APPLY_H
#define KVROUTE_APPLY_H

#include "chains.h"
#include "frame.h"
#include "proof.h"
#include "roster.h"

enum {
	APPLY_PEERS_MAX = 256,
	APPLY_LEASES_MAX = 262144,
	APPLY_ENDS_MAX = 65536, /* of leases that have not begun here */
	APPLY_HOST_MAX = 64
};

struct apply;

struct apply_options {
	struct roster *roster;
	struct chains *chains; /* gets the applied chains, or NULL */
	struct frame_rules rules;
	struct proof *proof; /* that peers are there; NULL: none is asked for */
	uint64_t origin;   /* one's own: echoes are not applied */
	bool loads;        /* sums of loads only */
	bool orders;       /* draining and up */
	int64_t now;       /* frames sent before it are replayed */
};

struct apply_counts {
	uint64_t frames[FRAME_VERDICTS];
	uint64_t own, repeated, reordered, lost; /* frames */
	uint64_t unproved;       /* frames of peers that may be recordings */
	uint64_t records;        /* applied */
	uint64_t replayed;       /* of the past, as prefixes */
	uint64_t repaired;       /* leases ended since they were not listed */
	uint64_t silences;       /* peers that fell silent */
	uint64_t stops;          /* times that this daemon did not run */
	uint64_t unknown_worker, unknown_lease, old_epoch, late, stale,
	    unjoined, no_room, refused; /* records that were dropped */
	uint64_t peers, leases;  /* now */
	uint64_t unseen;         /* open ones whose opening did not come */
};

enum apply_state { APPLY_FRESH, APPLY_LATE, APPLY_STALE, APPLY_SILENT };

struct apply_peer {
	uint64_t origin;
	enum apply_state state;
	int64_t excess;          /* delay of its last frame, see apply.c */
	int64_t heard;
	uint64_t leases, unseen, lost;
	uint64_t frames, dropped; /* that came; records not applied */
	uint64_t requests, prefill_tokens; /* that it runs, by its loads */
	uint64_t policy;
	size_t host_len;
	char host[APPLY_HOST_MAX];
};

/*
 * Ends the leases and loads that an earlier daemon left in the region. NULL: no
 * memory, or the region is busy.
 */
struct apply *apply_new(const struct apply_options *options);
void apply_free(struct apply *a);
/* `age`: how long the frame was in a log. */
void apply_frame(struct apply *a, int64_t now, int64_t age, const void *bytes,
    size_t n);
/* Does the work that is due; call it several times a second. */
void apply_work(struct apply *a, int64_t now);
/* Ends all leases and loads of peers. */
void apply_end(struct apply *a, int64_t now);
/* A peer is new since the last call: it does not know the workers here. */
bool apply_met(struct apply *a);
struct apply_counts apply_counts(const struct apply *a);
/* Writes at most `capacity`; returns how many. */
size_t apply_peers(const struct apply *a, struct apply_peer *out,
    size_t capacity);
const char *apply_state_name(enum apply_state state);

#endif
