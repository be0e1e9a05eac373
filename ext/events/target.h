/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target.h - a worker of a region, which gets the events of its engine.
 *
 *   event_batch -> struct kvr_event, scopes, arrays -> kvr_events_apply
 *
 * The region keeps how far the stream has come; this has a copy of that.
 */
#ifndef KVROUTE_TARGET_H
#define KVROUTE_TARGET_H

#include <kvroute.h>
#include <kvroute_events.h>

#include "conf.h"
#include "event.h"
#include "pages.h"

/* Counts of applied events: blocks, except where another unit is named. */
struct target_counts {
	uint64_t stored, removed, moved;
	uint64_t orphans;    /* stored behind one that is not known */
	uint64_t unseen;     /* at the beginning of prompts, of scopes that */
	                     /* no prompt has had, */
	uint64_t unseen_row; /* and these since the last one that one had */
	uint64_t cleared, restarts; /* events */
	uint64_t applied, duplicates, past, lost; /* batches */
	uint64_t ignored;    /* events of tiers that the library has not */
	uint64_t refused;    /* events that the library made no use of */
	uint64_t errors;     /* batches that it did not take */
};

/* Which incarnation of the engine the next batch is of. */
enum target_life {
	TARGET_SAME = 0,
	TARGET_NEW,          /* another one, known from its beginning on */
	TARGET_NEW_LOST      /* another one, with a loss */
};

struct target {
	const struct conf_stream *conf;
	struct kvr *k;
	uint64_t id;         /* 0: the region has no such worker */
	uint64_t next;       /* number that the region expects */
	uint32_t state;      /* enum kvr_events_state */
	uint32_t cause;      /* enum kvr_events_cause */
	int64_t alive;       /* the last time when it was followed; -1: never */
	int64_t told;        /* and when the region learnt it; -1: never */
	int64_t asked;       /* when it was last looked at; -1: never */
	uint64_t sliding;    /* window that the engine slides; 0: not given */
	uint32_t window;     /* that the worker was given for it; 0: none */
	enum target_life life;
	const char *why;     /* it was degraded here; NULL: it was not */
	int error;           /* the latest of the library */
	struct kvr_scope scope;
	struct pages pages;
	struct pages before; /* their former state, if it may be a duplicate */
	bool forgot;         /* as logged */
	struct target_counts counts;
	struct {
		uint64_t cleared, moved, ignored;
	} seen;              /* in the batch; they count if that is applied */
	/* being translated; the room stays */
	struct kvr_event *events;
	size_t n, events_room;
	struct pages_arrays arrays;
	bool whole;          /* pages are made into blocks */
};

enum target_outcome {
	TARGET_APPLIED,    /* or it was applied before */
	TARGET_BEHIND,     /* `next` comes first */
	TARGET_RESTARTED,  /* the same: its digest is another one */
	TARGET_ABSENT,     /* there is no such worker any more */
	TARGET_FAILED      /* nothing was applied, and nothing will be */
};

void target_init(struct target *t, struct kvr *k,
    const struct conf_stream *conf);
void target_free(struct target *t);
/* The model in conf is another one now. */
void target_scope(struct target *t);
/* Looks for the worker, and how far its stream has come. */
bool target_find(struct target *t);

/*
 * At least once a second. `follows`: all events of the engine come here now.
 * Others may have changed the worker's state.
 */
void target_alive(struct target *t, bool follows, int64_t now);
/* Could another engine have published as many batches since that time? */
bool target_may_restart(const struct target *t, int64_t since, int64_t now);
/* Has the region routed any prompt? */
bool target_has_prompts(const struct target *t);

struct target_batch {
	const struct event_batch *events; /* NULL: none */
	size_t from, to;     /* of them, these */
	uint64_t seq, digest;
	bool past;           /* KVR_BATCH_PAST */
};

enum target_outcome target_apply(struct target *t,
    const struct target_batch *batch);
/*
 * The batches before `next` cannot be had, or cannot be used: `why` is a word
 * for that. In a new life, that is known until its first batch is applied.
 */
void target_lost(struct target *t, uint64_t next, const char *why);

#endif
