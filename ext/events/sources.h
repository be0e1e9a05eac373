/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sources.h - the sources that each have events of several workers, and the
 * regions' workers that these belong to.
 */
#ifndef KVROUTE_SOURCES_H
#define KVROUTE_SOURCES_H

#include "plane.h"
#include "pull.h"

struct source {
	struct conf_stream like; /* the first worker's */
	struct plane *plane;
	struct pull *pull;       /* one of the two */
};

struct sources {
	void *context;           /* of libzmq */
	struct http *http;
	struct source *all;
	size_t n, room;
};

/* Is this stream one of such a source, and not one of its own? */
bool sources_has(const struct conf_stream *stream);
/*
 * A region's workers are those of the plan, and no others; of a plan with none,
 * none. Sources without workers end.
 */
void sources_plan(struct sources *s, const char *region, struct kvr *k,
    const struct conf *plan);
void sources_free(struct sources *s);
void sources_work(struct sources *s, int64_t now);
size_t sources_items(const struct sources *s, zmq_pollitem_t *items);
/* Writes the rows of a region; there is room for all. */
size_t sources_rows(const struct sources *s, const char *region,
    struct tell_row *rows);

#endif
