/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute_events.h - events of engines about their caches.
 *
 * All of it is experimental, and may change in any release. The rules at the
 * head of kvroute.h apply.
 */
#ifndef KVROUTE_EVENTS_H
#define KVROUTE_EVENTS_H

#include "kvroute.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * An engine publishes the events of its cache: blocks stored, removed, all
 * cleared. A caller receives and decodes them, and gives them to the region
 * in batches with the numbers of their stream. See kvr_events(3).
 */
enum { KVR_EVENT_BLOCKS_MAX = 1 << 28 }; /* of kvr_options.event_blocks */

enum kvr_event_kind {
	KVR_EVENT_STORED = 1,
	KVR_EVENT_REMOVED = 2,  /* one copy of each of its blocks */
	KVR_EVENT_CLEARED = 3,  /* all blocks, of all tiers */
	KVR_EVENT_RESTARTED = 4 /* this batch is of another incarnation; the */
	                        /* events before it in the batch are void */
};
enum kvr_event_flags {
	KVR_EVENT_PARENT = 1, /* there is a parent */
	KVR_EVENT_LOCALS = 2  /* `tokens` counts local hashes */
};
enum kvr_event_tier { KVR_TIER_GPU = 0, KVR_TIER_HOST = 1 };

/*
 * One event. The arrays of the call have its hashes, and its tokens or local
 * hashes. Where only numbers of blocks are used, tokens may be 0.
 */
struct kvr_event {
	size_t size;
	uint32_t kind;         /* enum kvr_event_kind, or a later one */
	uint32_t flags;        /* enum kvr_event_flags */
	uint32_t tier;         /* enum kvr_event_tier, or another */
	uint32_t block_tokens; /* of the engine's blocks; 0: unknown */
	uint64_t parent;       /* engine's hash of the block before them */
	uint64_t hashes_at;    /* place of the first in `hashes`, and how */
	uint64_t hashes;       /* many: one a block */
	uint64_t tokens_at;    /* the same in `tokens`; or, if flags has */
	uint64_t tokens;       /* LOCALS, in `hashes` */
	struct kvr_scope scope; /* adapter and salt */
};
/* Writes every default: an event without blocks, of the empty scope. */
int kvr_event_init(struct kvr_event *event, size_t size);

enum kvr_batch_flags {
	KVR_BATCH_PAST = 1, /* older than the worker's entries in the index: */
	                    /* counts, and drops nothing */
	KVR_BATCH_FULL = 2  /* blocks that are present are stored again */
};
/* A batch of a stream. */
struct kvr_event_batch {
	size_t size;
	uint64_t seq;      /* of the stream, from 0; below UINT64_MAX */
	uint64_t digest;   /* of its bytes: batches of one number differ */
	                   /* in it; 0: unknown */
	uint32_t flags;    /* enum kvr_batch_flags */
	uint32_t reserved;
};

enum kvr_events_state {
	KVR_EVENTS_OFF = 0,      /* no stream */
	KVR_EVENTS_COMPLETE = 1, /* known since a start or a clear; see */
	                         /* kvr_worker_stats.events_evicted */
	KVR_EVENTS_DEGRADED = 2  /* something was lost since then */
};
/* Why a stream that was complete is degraded. */
enum kvr_events_cause {
	KVR_DEGRADED_OTHER = 0,   /* see kvr_events(3) */
	KVR_DEGRADED_SILENT = 1,  /* its caller no longer says that it lives */
	KVR_DEGRADED_SURPLUS = 2, /* it holds more than its cache can */
	KVR_DEGRADED_REPORTS = 3  /* engine found much less than it holds */
};
enum kvr_events_outcome {
	KVR_EVENTS_APPLIED = 0,
	KVR_EVENTS_DUPLICATE = 1, /* it was applied before */
	KVR_EVENTS_GAP = 2,       /* nothing was applied: `next` comes first */
	KVR_EVENTS_RESTARTED = 3  /* the worker has been reset; applied only */
	                          /* if `next` is beyond it */
};
struct kvr_event_result {
	size_t size;
	uint64_t worker;  /* its id: another one after a reset */
	uint64_t next;    /* sequence number of the next batch */
	uint64_t stored;  /* blocks, by the events applied */
	uint64_t removed; /* the same */
	uint64_t refused; /* events that no use was made of */
	uint32_t outcome; /* enum kvr_events_outcome */
	uint32_t state;   /* enum kvr_events_state */
	uint64_t orphans; /* blocks stored after one that is not held, or */
	                  /* without room */
	uint64_t unseen;  /* blocks stored at the beginning of prompts, of */
	                  /* scopes that no prompt has had */
};
/*
 * Applies a batch of n events. hashes and tokens: arrays that the events refer
 * to. out may be NULL. The first batch of a worker begins its stream. The lock
 * is held for a constant time; for a worker of KVR_RETAIN_EVENTS for one that
 * grows with the blocks of a piece of the batch. After an error out->worker is
 * set if a part of it was applied.
 */
int kvr_events_apply(struct kvr *k, uint64_t worker,
    const struct kvr_event_batch *batch, const struct kvr_event *events,
    size_t element, size_t n, const uint64_t *hashes, size_t n_hashes,
    const uint32_t *tokens, size_t n_tokens, int64_t now, uint32_t flags,
    struct kvr_event_result *out);
/* All before batch `next` is lost: degraded, the stream goes on with it. */
int kvr_events_lost(struct kvr *k, uint64_t worker, uint64_t next);
/*
 * The caller follows the stream until that time, or until the time of the next
 * such call; then the worker is degraded. 0: without end.
 */
int kvr_events_until(struct kvr *k, uint64_t worker, int64_t until);
/* Ends the stream and forgets the capacity learnt from it. */
int kvr_events_off(struct kvr *k, uint64_t worker);

#ifdef __cplusplus
}
#endif

#endif
