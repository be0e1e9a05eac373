/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source.h - where kvroute-top reads the status.
 *
 *   http://host/kvroute   the location of kvroute_status, see kvroute-nginx(7)
 *   /var/lib/kvroute/a    a region file, opened for each reading, which it
 *                         leaves as it is
 *
 * Both give the same JSON. A region has no counters of a proxy.
 */
#ifndef KVROUTE_TOP_SOURCE_H
#define KVROUTE_TOP_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

enum source_state {
	SOURCE_IDLE,    /* nothing is asked */
	SOURCE_ASKED,   /* an answer is to come */
	SOURCE_HERE,    /* it is in text and n, until the next one is asked */
	SOURCE_FAILED   /* see why */
};

struct source {
	enum source_state state;
	char *text;
	size_t n;
	char why[512];
	/* inside */
	const char *where;
	char *url;       /* NULL: it is a file */
	size_t room;
	void *curl, *curls, *headers;
};

/*
 * `where` must outlive it. Headers, `headers` of them, are sent to a URL.
 * False: no memory.
 */
bool source_open(struct source *s, const char *where,
    const char *const *header, size_t headers, long timeout_ms);
void source_close(struct source *s);
/* Asks, unless an answer is still to come. */
void source_ask(struct source *s);
/*
 * Waits up to `ms` for the answer, or until `fd` can be read if it is not below
 * 0. `state` is the result.
 */
void source_wait(struct source *s, int fd, int ms);

#endif
