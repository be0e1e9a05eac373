/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_piece.h - a long batch of events, a piece at a time.
 */
#ifndef KVR_EVENT_PIECE_H
#define KVR_EVENT_PIECE_H

#include "event_batch.h"

/* Blocks of a piece; or one of the engine that is more. */
enum { PIECE_BLOCKS = 256 };

/*
 * Without the lock, and before its blocks are hashed: replaces the events of a
 * long batch by its pieces'. KVR_ENOMEM; KVR_EINVAL: as event_sum.
 */
int event_cut(const struct kvr *k, struct event_batch *b);
void event_cut_free(struct event_batch *b);
/* The i-th of its pieces; a short batch is one. */
struct event_batch event_piece(const struct event_batch *b, uint64_t i);

/*
 * Under the lock. Has the stream taken a part of this batch? same: the caller
 * has begun it, so it need not have a digest; but another caller may have begun
 * another batch since.
 */
bool event_begun(const struct stream *s, const struct event_batch *b,
    bool same);
/*
 * Applies the first piece. The batch does not count as taken while there are
 * more. last: the digest of the one before.
 */
void event_first(struct kvr *k, uint32_t slot, const struct event_batch *b,
    uint64_t last, int64_t now);
/* Applies the next one of a batch that was begun. */
void event_go_on(struct kvr *k, uint32_t slot, const struct event_batch *b,
    int64_t now);

#endif
