/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe.h - asks an engine for the capacity of its KV cache.
 *
 *   proxy: probe_begin -> request -> response -> probe_body, probe_end
 *               ^                                           |
 *               +------ PROBE_NEXT: another path -----------+-- PROBE_DONE
 *
 * A probe has the paths, in order, and reads the bodies. The proxy has the
 * connections and the time; response.h can read the responses. A path without a
 * capacity, whatever the response, leads to the next one; after the last one
 * PROBE_DONE may leave the capacity unknown.
 */
#ifndef KVROUTE_PROBE_H
#define KVROUTE_PROBE_H

#include "capacity.h"

/* The paths at which engines publish facts; the last one has no capacity. */
enum { PROBE_PATHS = 4, PROBE_CAPACITY_PATHS = 3 };
extern const struct probe_path {
	const char *path;
	enum capacity_form form;
} probe_paths[PROBE_PATHS];

enum { PROBE_BYTES_MAX = 32 << 20 }; /* of one response; no more is read */

enum probe_state { PROBE_MORE, PROBE_NEXT, PROBE_DONE };

struct probe; /* about 2 kB with its reader */

struct probe *probe_new(uint32_t rank); /* NULL: no memory */
void probe_free(struct probe *p);

/* Begins a response and returns the path to request, a static string. */
const char *probe_begin(struct probe *p);
/* Reads a piece of the body. */
enum probe_state probe_body(struct probe *p, unsigned status,
    const void *bytes, size_t n);
/*
 * Ends the response. Status 0: it was broken, or there was no response. Never
 * returns PROBE_MORE.
 */
enum probe_state probe_end(struct probe *p, unsigned status, bool whole);

/* Returns the facts found so far; valid until the probe is freed. */
const struct capacity *probe_found(const struct probe *p);
/*
 * After PROBE_DONE without a capacity: has each path denied it, by status 404,
 * or by 200 and a whole text? Otherwise it is just not known.
 */
bool probe_denied(const struct probe *p);
/* Returns the status of the current response, or of the last one; or 0. */
unsigned probe_status(const struct probe *p);
/* Returns the path that gave the capacity, or the current one. */
const char *probe_place(const struct probe *p);

#endif
