/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * feed.h - the sockets of an engine: its events, and its replay.
 *
 * All that comes is given to a sink as a step of record.h. Nothing is decided
 * here but when a replay is asked for, as soon as the engine is there and not
 * too many others run, and when it has taken too long.
 */
#ifndef KVROUTE_FEED_H
#define KVROUTE_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zmq.h>

#include "record.h"

enum { FEED_ITEMS = 3, FEED_WAIT = 50 /* ms */ };

/* How many replays run, and may run at a time, of several feeds. */
struct feed_replays {
	unsigned n, most;
};

struct feed_options {
	const char *endpoint;
	const char *replay;   /* endpoint; NULL: none */
	const char *topic;    /* prefix */
	bool dynamo;          /* four frames instead of three */
	void *context;        /* of libzmq, for many feeds; NULL: its own */
	struct feed_replays *replays; /* the same; NULL: as many as ask */
};

struct feed_sink {
	void *context;
	/* false: feed_read is to fail; errno has the reason. */
	bool (*step)(void *context, const struct record_step *step);
	/* Is a replay to be asked for, and from where? */
	bool (*wants)(void *context, uint64_t *from);
};

struct feed;

/*
 * A context of libzmq for so many streams. A stream takes some descriptors:
 * the process may have as many as the system lets it. NULL: no memory.
 */
void *feed_context(size_t streams);
/* Copies its arguments. NULL: errno is that of libzmq, for zmq_strerror. */
struct feed *feed_open(const struct feed_options *options,
    const struct feed_sink *sink);
void feed_close(struct feed *f);
/* Lists the sockets to poll; at least each FEED_WAIT feed_read has work. */
size_t feed_items(const struct feed *f, zmq_pollitem_t items[FEED_ITEMS]);
/* Reads all that has come. false: the sink, or a socket, failed; see errno. */
bool feed_read(struct feed *f);
/* Waits a moment, and then does that. */
bool feed_work(struct feed *f);
bool feed_connected(const struct feed *f);
/* Why it is not, in words; NULL: nothing is known yet, or it is. */
#define FEED_SILENT "nothing answers"
const char *feed_why(const struct feed *f);
/* Messages that no format has. */
uint64_t feed_strange(const struct feed *f);

#endif
