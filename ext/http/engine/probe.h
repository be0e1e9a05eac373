/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe.h - asks an engine for the capacity of its KV cache.
 *
 *   proxy: connect -> probe_request -> send -> receive -> probe_data
 *                          ^                                  |
 *                          +---- PROBE_NEXT: another path ----+-- PROBE_DONE
 *
 * What is common to proxies: the paths, in order, and what is made of the
 * responses. Connections and time are the proxy's. Each path takes a connection
 * of its own. A path without a capacity, whatever the response, leads to the
 * next one; PROBE_DONE after the last one may mean that it is not known.
 */
#ifndef KVROUTE_PROBE_H
#define KVROUTE_PROBE_H

#include "capacity.h"

/* Where engines publish facts; the last one has no capacity. */
enum { PROBE_PATHS = 4, PROBE_CAPACITY_PATHS = 3 };
extern const struct probe_path {
	const char *path;
	enum capacity_form form;
} probe_paths[PROBE_PATHS];

enum {
	PROBE_REQUEST_MAX = 512,
	PROBE_BYTES_MAX = 32 << 20 /* read of one response */
};

enum probe_state { PROBE_MORE, PROBE_NEXT, PROBE_DONE };

struct probe; /* about 4 kB */

struct probe *probe_new(uint32_t rank); /* NULL: no memory */
void probe_free(struct probe *p);

/*
 * Writes the request for the current path to this host, of n bytes, and
 * returns its length; 0: the host is too long or not printable. What was
 * received of this path is forgotten.
 */
size_t probe_request(struct probe *p, const char *host, size_t n,
    char out[PROBE_REQUEST_MAX]);
enum probe_state probe_data(struct probe *p, const void *bytes, size_t n);
/* The connection has ended; never PROBE_MORE. */
enum probe_state probe_close(struct probe *p);

/* What is known. */
const struct capacity *probe_found(const struct probe *p);
/*
 * After PROBE_DONE without a capacity: has each path said that there is none,
 * by status 404, or by 200 and a whole text? Otherwise it is just not known.
 */
bool probe_denied(const struct probe *p);
/* Of the response at hand, or the last one; 0: there is none. */
unsigned probe_status(const struct probe *p);
/* The path that gave the capacity, or the current one. */
const char *probe_place(const struct probe *p);

#endif
