/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plane.h - Dynamo's event plane: one socket of ZeroMQ, or one subscription of
 * NATS, for many workers, each with a publisher that numbers its batches.
 *
 *   ZeroMQ   feed --> numbers of its frames -----.
 *                                                +--> stream --> hub
 *   NATS     bus ---> numbers of the envelope ---'
 *
 * Neither repeats lost batches; the numbers show a loss.
 */
#ifndef KVROUTE_PLANE_H
#define KVROUTE_PLANE_H

#include "feed.h"
#include "hub.h"

enum { PLANE_PUBLISHERS_MAX = 4096 };

struct plane;

/* NULL: errno has the reason, for zmq_strerror. `context` is libzmq's. */
struct plane *plane_open(const struct conf_stream *conf, void *context);
void plane_close(struct plane *p);
struct hub *plane_hub(struct plane *p);
size_t plane_items(const struct plane *p, zmq_pollitem_t items[FEED_ITEMS]);
bool plane_connected(const struct plane *p);
/* Never waits. */
void plane_work(struct plane *p, int64_t now);
void plane_row(const struct plane *p, const struct hub_target *t,
    struct tell_row *row);

#endif
