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

/* What happened, since a stream was first followed. */
struct tell_counts {
	uint64_t reconnects;
	uint64_t absences;   /* the region had no such worker any more */
	uint64_t malformed;  /* batches that are none */
	uint64_t unread;     /* batches with an event that could not be read */
	uint64_t strange;    /* messages of other frames, or answers */
	uint64_t rejoins;    /* the region expected another batch */
};

/* A worker of a region. */
struct tell_row {
	const char *region;
	const struct conf_stream *conf;
	const struct target *target;
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
/* A worker's state, for the log. */
const char *tell_state(uint32_t state);
void tell_json(FILE *out, const struct tell_daemon *d);
void tell_prometheus(FILE *out, const struct tell_daemon *d);

#endif
