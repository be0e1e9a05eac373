/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_batch.h - a batch of events as its caller gives it.
 */
#ifndef KVR_EVENT_BATCH_H
#define KVR_EVENT_BATCH_H

#include "event_stream.h"

/* Events that are applied under the lock at a time: event_piece.c. */
struct event_piece {
	uint64_t at, n;
	uint64_t local;   /* hashes of pieces before */
	uint64_t aliases; /* that it may add */
};

/* A caller's batch. */
struct event_batch {
	struct kvr_event_batch head;
	const void *events;
	size_t element, n;
	const uint64_t *hashes;
	const uint32_t *tokens;
	size_t n_hashes, n_tokens;
	/* local hashes of all blocks, sequence hashes of one event */
	uint64_t *local, *sequence;
	uint64_t n_local, n_sequence;
	uint64_t n_aliases; /* that it may add */
	/* of a long one: its events in pieces, which `events` then are; */
	/* and the arrays of each */
	struct kvr_event *cut;
	struct event_piece *pieces;
	uint64_t n_pieces; /* 0: it is one */
	uint64_t contents; /* digest of its events, if it is not */
	size_t after;      /* events of later ones */
	bool goes_on;      /* behind the last block of the piece before */
};

/* The sums of a batch: computed without the lock. */
struct event_sum {
	/* since the last event that dropped all, if there is one */
	uint64_t stored[TIERS], removed[TIERS]; /* blocks */
	uint64_t peak[TIERS];  /* the most stored and not removed at a time */
	uint32_t block_tokens; /* 0: unknown */
	bool uneven;           /* some are of other sizes */
	/* of all events */
	uint64_t all_stored, all_removed, volume; /* blocks; volume: of GPU */
	uint64_t cleared, refused, restarted;
};
/* The i-th event over the defaults. The same errors as event_sum. */
int event_get(const struct event_batch *b, size_t i, struct kvr_event *e);
/* KVR_EINVAL: an event refers beyond the arrays. */
int event_sum(const struct event_batch *b, struct event_sum *sum);

/* Events before this one are void. */
size_t event_first_valid(const struct event_batch *b);

/* Under the lock: the outcome of a batch. enum kvr_events_outcome. */
uint32_t event_outcome(const struct stream *s, const struct event_batch *b,
    const struct event_sum *sum);
/* Must the worker be reset before the batch is taken? */
bool event_resets(const struct event_batch *b, uint32_t outcome);
/* Has the engine dropped all, of which others may have a record? */
bool event_clears(const struct event_batch *b, const struct event_sum *sum,
    uint32_t outcome);
/*
 * If the worker is not reset: must all entries be dropped first? Entries that
 * requests in flight have pinned stay.
 */
bool event_empties(const struct kvr *k, uint32_t slot,
    const struct event_batch *b, const struct event_sum *sum,
    uint32_t outcome);
/* Whether the next event, maybe of the next piece, stores blocks behind it. */
bool event_goes_on(const struct event_batch *b, size_t i);

/* Blocks of the index in one of the engine's; 0: no whole number. */
uint32_t event_each(const struct kvr *k, uint32_t tokens);
/* Do copies mean the same in this batch as in this life so far? */
bool event_same_copies(struct kvr *k, uint32_t slot,
    const struct event_batch *b);

#endif
