/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * apply_in.h - the state that apply.c, which follows peers and time, shares
 * with apply_records.c, apply_workers.c and apply_loads.c, which change the
 * region. Only these include it.
 */
#ifndef KVROUTE_APPLY_IN_H
#define KVROUTE_APPLY_IN_H

#include "apply.h"

/* uthash exits by default when there is no memory. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* An open lease of a peer. */
struct lease {
	uint64_t number;  /* the peer's */
	uint64_t id;      /* here; 0: listed, but not seen to open */
	uint64_t worker;
	int64_t opened;   /* by the peer's clock */
	bool committed;
	UT_hash_handle hh;
};

/* The end of a lease that has not begun here; in order of arrival. */
struct end {
	uint64_t number;
	uint64_t kind;
	int64_t came;
	UT_hash_handle hh;
};

/* The latest load of a worker by a peer. */
struct said {
	struct kvr_load load;
	int64_t at;
	uint32_t made;    /* of the worker's place here, as in struct known */
	uint64_t open;    /* leases of this peer here at that time */
	uint64_t unseen;  /* of load.requests, those that were not open */
};

/* A worker of a peer. */
struct known {
	uint32_t place;   /* here, + 1; 0: not known */
	uint32_t made;
	uint32_t state;
};

struct peer {
	uint64_t origin;
	enum apply_state state;
	uint64_t number, seen;    /* bit n: frame number - n has come */
	uint64_t hello, load;     /* numbers of the frames that had them */
	int64_t heard;
	int64_t least, least_at;  /* of arrival - sent, and as of when */
	bool timed;               /* that is known */
	bool proved;              /* it has answered the challenge */
	int64_t excess;
	int64_t late_since;       /* if late: no frame since came in time */
	bool late;
	uint64_t site;            /* 0: not known */
	int64_t site_sent;        /* the latest frame that named it */
	bool ended;               /* another origin of its site has begun */
	bool due;                 /* its leases could not be ended yet */
	uint64_t lost, policy;
	uint64_t frames, dropped;
	size_t host_len;
	char host[APPLY_HOST_MAX];
	struct lease *leases;
	struct end *ends;
	uint64_t unseen;          /* of the leases */
	uint64_t unseen_then;     /* when the loads came */
	struct said *loads;       /* by place here; NULL: none yet */
	struct known known[KVR_WORKERS_MAX];
};

struct apply {
	struct apply_options o;
	struct apply_counts counts;
	struct kvr *k;
	struct kvr_prompt *prompt;
	int64_t ttl, stale;
	int64_t worked;
	int64_t met_at;           /* the first peer of all; 0: none */
	int64_t load_at, loads_at; /* when some, when all were set */
	struct kvr_load *sums;    /* by place */
	uint64_t ends;
	bool met, loads_changed;
	bool empty;               /* the region had no prefixes at first */
	struct peer *peers[APPLY_PEERS_MAX];
	struct frame_reader reader;
};

/* A frame that is being applied. */
struct moment {
	struct peer *peer;
	uint64_t number;
	int64_t sent;  /* by the peer's clock */
	int64_t now;
	int64_t at;    /* when it came: now, or long ago in a replay */
	bool past;
	bool stale;    /* too late for anything */
};

void apply_record(struct apply *a, const struct moment *m,
    const struct frame_record *r);
/* The peer has sent its challenge. */
void apply_challenge(struct apply *a, const struct moment *m,
    uint64_t challenge);
/*
 * Ends all leases of a peer. false: the region is busy, and p->due is set;
 * until they have ended the peer opens no others.
 */
bool apply_reap(struct apply *a, struct peer *p, int64_t now);
/* The same for a peer that was fresh and is not any more. */
void apply_set_state(struct apply *a, struct peer *p, enum apply_state state,
    int64_t now);
/* Forgets ends that came before `until`. */
void apply_ends(struct apply *a, struct peer *p, int64_t until);
/* A peer's worker, as the region has it; NULL: it is not known. */
struct roster_worker *apply_worker(const struct apply *a,
    const struct peer *p, uint64_t index);
/* The same, for a record about the content of the worker. */
struct roster_worker *apply_agreed(struct apply *a, const struct moment *m,
    const struct frame_record *r);
/* Counts the library's result for a record. True: it has been applied. */
bool apply_done(struct apply *a, int error);
/* A peer names a worker. */
void apply_known(struct apply *a, const struct moment *m,
    const struct frame_record *r);
void apply_load(struct apply *a, const struct moment *m,
    const struct frame_record *r);
/* Sets the loads of all peers in the region: those that changed, or `all`. */
void apply_loads_set(struct apply *a, bool all, int64_t now);

#endif
