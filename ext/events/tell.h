/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tell.h - the state of the daemon as text: JSON, and Prometheus' format.
 */
#ifndef KVROUTE_TELL_H
#define KVROUTE_TELL_H

#include <stdio.h>

#include "decode.h"
#include "stream.h"
#include "target.h"

/* Counts events since a stream was first followed. */
struct tell_counts {
	uint64_t reconnects;
	uint64_t absences;   /* the region had no such worker any more */
	uint64_t malformed;  /* that are no batches */
	uint64_t unread;     /* batches with an event that could not be read */
	uint64_t strange;    /* messages of other frames, or answers */
	uint64_t ranks;      /* messages of a rank that is not the stream's */
	uint64_t rejoins;    /* the region expected another batch */
};

/* Is a stream of use? */
enum { TELL_ORPHANS = DROP_REASONS, TELL_REFUSED, TELL_REASONS };
struct tell_use {
	const char *reason;  /* nothing of it is, and why; NULL: some is */
	uint64_t used;       /* blocks, when some was last; and then */
	uint64_t unused[TELL_REASONS]; /* blocks of no use */
	uint64_t enough;     /* so many of no use show that all are */
	bool prompts;        /* the region has had some */
};

struct tell_state {
	const char *name;    /* complete, degraded, unusable, off */
	const char *reason;  /* or NULL */
};

/* A worker of a region. */
struct tell_row {
	const char *region;
	const struct conf_stream *conf;
	const struct target *target;
	const struct tell_use *use;
	const char *phase;   /* absent, connecting, replaying, live */
	bool connected;
	struct tell_counts counts;
	struct stream_counts stream;
	struct decode_counts decoded;
	int64_t heard;       /* -1: no batch yet */
	int64_t lag;         /* ms, by two wall clocks */
	bool lag_known;
};

struct tell_region {
	const char *path;
	const char *why;     /* it is not attached; "" if it is */
	uint64_t attached;   /* times */
	const struct tell_row *rows;
	size_t n;
};

struct tell_daemon {
	const struct tell_region *regions;
	size_t n;
	uint64_t reloads, reloads_failed;
};

/* Sums of counters. */
void tell_add(struct stream_counts *sum, const struct stream_counts *more,
    struct decode_counts *decoded, const struct decode_counts *more_decoded);
/* Events that could not be read: they may have been ones that count. */
uint64_t tell_unread(const struct decode_counts *c);
/*
 * Looks whether any event of the stream is of use. Nothing changes for the
 * worker: a stream that is followed well may begin with images, behind which no
 * block counts. decoded NULL: it is shared with others.
 */
void tell_use(struct tell_use *u, const struct target *t,
    const struct decode_counts *decoded);
struct tell_state tell_state(const struct target *t,
    const struct tell_use *u);
/*
 * How late a batch of that time has come, in ms, by two wall clocks. false: it
 * is no time, or more than a month away, as no clock is that wrong.
 */
bool tell_lag(uint64_t time, int64_t *lag);
/* The meaning of a reason, for people. */
const char *tell_reason(const char *reason);
void tell_json(FILE *out, const struct tell_daemon *d);
void tell_prometheus(FILE *out, const struct tell_daemon *d);

#endif
