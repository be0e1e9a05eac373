/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * snapshot.h - the entries of workers, from a replica that runs to one that
 * begins.
 *
 *	fetch (begins)                    give (runs)
 *	ASK peer, oldest stamp,
 *	PROOF, with a secret    ------>   walks the entries of its region
 *	                        <------   WORKER, WORKER ...
 *	                        <------   CHAIN, SNAPSHOT, SNAPSHOT ...
 *	                        <------   SNAPSHOT_END
 *	observes the oldest first
 *
 * A CHAIN has hashes that were not sent before; a SNAPSHOT names the last block
 * that a worker holds and its age. So each block is sent once, however many
 * workers hold it.
 *
 * Neither side has a clock or a bus: `now` and the taker of frames are
 * arguments. The answer's frames have numbers of their own, from 1. Both sides
 * work in slices, so that neither the region's lock nor the caller's loop waits
 * for them.
 */
#ifndef KVROUTE_SNAPSHOT_H
#define KVROUTE_SNAPSHOT_H

#include "chains.h"
#include "frame.h"
#include "proof.h"
#include "roster.h"

enum {
	SNAPSHOT_ENTRIES_MAX = 1 << 18,
	SNAPSHOT_REPLY_MAX = 128,
	GIVE_ASKED_MAX = 64,
	GIVE_WAITING_MAX = 8
};

/* ---------------------------------------------------------------- give --- */

struct give;

/* The bytes are valid until it returns. false: not taken. */
typedef bool give_send(void *context, const char *reply,
    const unsigned char *bytes, size_t n);

struct give_options {
	struct roster *roster;
	struct chains *chains;
	struct frame_rules rules;
	const struct proof *proof; /* that a question is new; NULL: none */
	uint64_t origin;
	give_send *send;
	void *context;
};

struct give_counts {
	uint64_t asked;    /* questions that were for us */
	uint64_t refused;  /* too many at once, or no proof that it is new */
	uint64_t given;    /* whole answers */
	uint64_t broken;   /* answers that lost a frame */
	uint64_t frames, bytes, entries, blocks;
	uint64_t unknown;  /* entries whose hashes are not known */
	uint64_t no_room;  /* entries beyond the bound */
};

/* NULL: no memory. */
struct give *give_new(const struct give_options *options);
void give_free(struct give *g);
/* A frame that has a question; `reply` is where answers go. */
void give_asked(struct give *g, const char *reply, const void *bytes,
    size_t n);
/*
 * Sends at most one frame. `ready`: this replica itself has its answer; until
 * then its answers are empty. Returns when to call again.
 */
int64_t give_work(struct give *g, bool ready, int64_t now);
struct give_counts give_counts(const struct give *g);

/* --------------------------------------------------------------- fetch --- */

struct fetch;

/* false: not taken. */
typedef bool fetch_ask(void *context, const unsigned char *bytes, size_t n);

struct fetch_options {
	struct roster *roster;
	struct chains *chains;
	struct frame_rules rules;
	const struct proof *proof; /* has the challenges of peers; or NULL */
	uint64_t origin;
	int64_t oldest;    /* entries above that age are not wanted */
	fetch_ask *ask;
	void *context;
};

enum fetch_state {
	FETCH_LOOKING,     /* for a peer */
	FETCH_ASKED,
	FETCH_APPLYING,
	FETCH_DONE,
	FETCH_ALONE,       /* there is no peer */
	FETCH_FAILED       /* those that were asked did not answer */
};

struct fetch_counts {
	uint64_t peer;     /* that was asked last */
	uint64_t asked;
	uint64_t frames, entries, blocks;
	uint64_t lost;     /* frames of answers that did not come */
	uint64_t refused;  /* entries that could not be applied */
	uint64_t applied;
	int64_t took;      /* from the first call to the end */
};

/* NULL: no memory. */
struct fetch *fetch_new(const struct fetch_options *options);
void fetch_free(struct fetch *f);
/* A peer is there. Where proofs are needed: its challenge is known. */
void fetch_heard(struct fetch *f, uint64_t origin);
/* A frame of an answer. */
void fetch_frame(struct fetch *f, int64_t now, const void *bytes, size_t n);
/* A slice. Returns when to call again; INT64_MAX: never. */
int64_t fetch_work(struct fetch *f, int64_t now);
enum fetch_state fetch_state(const struct fetch *f);
/* It has come to an end, whichever. */
bool fetch_over(const struct fetch *f);
struct fetch_counts fetch_counts(const struct fetch *f);
const char *fetch_state_name(enum fetch_state state);

#endif
