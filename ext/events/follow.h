/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * follow.h - one engine's stream, followed into one region.
 *
 *   feed.h -> stream.h -> decode.h -> target.h -> the region
 *   sockets   order       events      a worker
 *
 * The region has the last word: it keeps how far it has come, and the digest
 * of the last batch, beyond this process. If it expects another batch than
 * comes, the stream begins anew there, with a replay.
 */
#ifndef KVROUTE_FOLLOW_H
#define KVROUTE_FOLLOW_H

#include "decode.h"
#include "feed.h"
#include "stream.h"
#include "tell.h"

/* The state that all of a daemon share. */
struct follow_all {
	void *context;       /* of libzmq */
	struct feed_replays replays;
	struct stream_room room;
};

struct follow {
	const char *region;
	struct conf_stream conf;
	struct target target;
	struct follow_all *all;
	struct feed *feed;   /* NULL: the region has no such worker */
	struct stream *stream;
	struct decoder *decoder;
	struct stream_counts ended; /* of streams before this one */
	struct decode_counts decoded; /* of decoders before this one */
	struct tell_counts counts;
	struct tell_use use;
	bool ranked;         /* since it connected, batches are of */
	uint64_t rank;       /* the engine's rank, */
	bool own_rank;       /* and it was the worker's once */
	bool past;           /* the first replay of a region that had nothing */
	bool replaying;      /* batches that come out now were replayed */
	bool unsure;         /* it may be another engine by now */
	bool stuck;          /* the last rejoin was of no use */
	bool gone;           /* the feed is to be closed */
	uint64_t rejoined;   /* at this number */
	int64_t looked;      /* for the worker; -1: never */
	int64_t opened, heard; /* -1: no batch yet */
	int64_t lag;         /* of the last live batch: ms by two clocks */
	bool lag_known;
	/* as logged last */
	struct {
		bool connected, absent, wrong, ranks, hint;
		const char *why;  /* it is not connected */
		struct tell_state state;
		uint64_t lost;
		int64_t lost_at;
	} logged;
};

/* NULL: no memory. The shared state outlives it. */
struct follow *follow_open(const char *region, struct kvr *k,
    const struct conf_stream *conf, struct follow_all *all);
void follow_close(struct follow *f);
/* The same stream's, with another model or mode. */
void follow_change(struct follow *f, const struct conf_stream *conf);
size_t follow_items(const struct follow *f, zmq_pollitem_t items[FEED_ITEMS]);
/* Never waits. */
void follow_work(struct follow *f, int64_t now);
void follow_row(const struct follow *f, struct tell_row *row);

#endif
