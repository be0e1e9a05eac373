/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hub.h - workers with events from one source: those of Dynamo's plane, or the
 * ranks of an engine that is polled.
 *
 * A source's events are for the worker of an id and a rank. It cannot be asked
 * to repeat them, so that its numbers are of no use to a region: the batches of
 * each worker are numbered here, from the number that the region expects.
 *
 *   publisher is new      the worker's first batch is one after a restart, if
 *                         its stream in the region had begun before
 *   it was there before   the worker has missed something
 *   something was lost    the region marks each of its workers
 *
 * After a restart the batches begin with number 0 again, and the worker is
 * complete; or with 1, if something was lost before the first one.
 */
#ifndef KVROUTE_HUB_H
#define KVROUTE_HUB_H

#include "tell.h"

/* All 0: nothing has come from it. */
struct hub_publisher {
	uint64_t id;
	bool begun;          /* it has had a batch, */
	uint64_t at;         /* before which the hub had so many */
	bool lost;           /* something, since it began or restarted */
};

struct hub_target {
	const char *region;
	struct conf_stream conf;
	struct target target;
	bool bound;          /* it has had batches of the publisher, */
	bool missed;         /* but not all that it should have had */
	uint64_t publisher;
	uint64_t since;      /* as many batches of the hub */
	struct tell_counts counts;
	struct tell_use use;
	int64_t looked, heard, lag;
	bool lag_known;
	struct {
		bool absent;
		struct tell_state state;
	} logged;
};

struct hub {
	bool ids;            /* workers have them; else ranks do */
	uint64_t batches;
	struct hub_target **targets;
	size_t n, room;
	struct event *events; /* of one worker */
	size_t events_room;
};

void hub_free(struct hub *h);
/* false: no memory. */
bool hub_add(struct hub *h, const char *region, struct kvr *k,
    const struct conf_stream *conf);
void hub_remove(struct hub *h, size_t i);
/* The same worker's, with another model or mode. */
void hub_change(struct hub *h, size_t i, const struct conf_stream *conf);
/* Looks for workers that regions do not have, and logs changes. */
void hub_look(struct hub *h, bool follows, int64_t now);
/* Among the events of a worker may be reports of a loss, or of its restart. */
void hub_batch(struct hub *h, struct hub_publisher *publisher,
    const struct event_batch *batch);
void hub_lost(struct hub *h, struct hub_publisher *publisher);
void hub_restarted(struct hub *h, struct hub_publisher *publisher);

#endif
