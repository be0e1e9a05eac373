/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream.h - puts numbered batches in order: gaps, duplicates, restarts.
 *
 * An engine numbers its batches and publishes each once; some are lost. It may
 * have a replay: asked for a number, it sends again the batches that it still
 * keeps from there on, at most its last few thousand.
 *
 *   live      5 6 . 8 9            a gap: 8 and 9 wait
 *   replay        7 8 9 end        from 7, by stream_wants
 *   comes out 5 6 7 8 9
 *
 * A batch that is nowhere any more comes out as LOST in its place. A number
 * that goes back with other contents is a restart, and so is another batch, or
 * none, in the place of the last one after a reconnect: the replay begins with
 * it then.
 *
 *        live in order         gap, reconnect, start
 *   LIVE ------------- LIVE -------------------------> ASK
 *     ^                                                 | stream_asked
 *     '------------------- ASKED <----------------------'
 *          stream_replay_end
 *
 * There is no I/O and no clock here. The caller connects, asks, gives up after
 * a time of its own, and after each call takes the batches that stream_next
 * has.
 */
#ifndef KVROUTE_STREAM_H
#define KVROUTE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_BYTES_MAX ((size_t)64 << 20)

/* For batches of several streams that wait. */
struct stream_room {
	size_t bytes, most;
};

struct stream_options {
	bool replay;      /* the engine has one */
	uint64_t first;   /* the number of its first batch */
	size_t bytes_max; /* of batches that wait; 0: STREAM_BYTES_MAX */
	struct stream_room *room; /* that it shares; NULL: none */
};

enum stream_what {
	STREAM_BATCH = 1, /* seq, bytes, n */
	STREAM_LOST,      /* seq to last */
	STREAM_RESTARTED  /* earlier batches are void */
};

struct stream_out {
	enum stream_what what;
	uint64_t seq, last;
	const void *bytes; /* until the next call for this stream */
	size_t n;
};

struct stream_counts {
	uint64_t batches, duplicates, gaps, lost, restarts, replays;
	uint64_t refused;  /* no memory, no room to wait, or no number */
};

struct stream_state {
	bool known;        /* last and digest are */
	bool complete;     /* nothing was lost since the first batch that
	                      came out, or one that cleared the cache */
	bool waiting;      /* for a replay */
	uint64_t last;     /* that came out or will */
	uint64_t digest;   /* of its bytes */
	size_t held;       /* bytes that wait */
	struct stream_counts counts;
};

struct stream;

/* NULL: no memory. With a replay it begins by asking for all. */
struct stream *stream_new(const struct stream_options *options);
void stream_free(struct stream *s);
/*
 * Goes on with batch `next`, for a caller that recognizes the batch that it had
 * last: if there is a replay it begins with batch next - 1, which comes out
 * again. Without one, later batches are taken for the same engine's unless
 * their numbers go back.
 */
void stream_rejoin(struct stream *s, uint64_t next, bool complete);
/* From the subscription. */
void stream_live(struct stream *s, uint64_t seq, const void *bytes, size_t n);
/* The subscription was interrupted and is there again. */
void stream_reconnected(struct stream *s);
/* A batch that was taken out has emptied the cache. */
void stream_cleared(struct stream *s);

/* Is a replay to be asked for? Any that runs is to be given up then. */
bool stream_wants(const struct stream *s, uint64_t *from);
void stream_asked(struct stream *s);
void stream_replayed(struct stream *s, uint64_t seq, const void *bytes,
    size_t n);
/* false: it was given up. */
void stream_replay_end(struct stream *s, bool whole);

bool stream_next(struct stream *s, struct stream_out *out);
struct stream_state stream_state(const struct stream *s);
uint64_t stream_digest(const void *bytes, size_t n);

#endif
