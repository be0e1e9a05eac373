/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_door.h - HTTP/1.1 and JSON for programs that choose servers themselves:
 *
 *	POST   /v1/select                the client's request: its server?
 *	POST   /v1/calls/ID/failed       the first target: another one?
 *	POST   /v1/calls/ID/response     a part of the response
 *	POST   /v1/calls/ID/end
 *	GET    /v1/status  /metrics  /healthz
 *	PUT    /v1/servers/NAME          its facts
 *	DELETE /v1/servers/NAME
 *
 * kvroute-pick(8) describes headers and bodies. A call that is not heard of for
 * `limit` seconds is ended, and counted.
 */
#ifndef KVROUTE_JSON_DOOR_H
#define KVROUTE_JSON_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pick_pool.h"
#include "text_hold.h"

struct event_base;
struct evhttp;
struct json_door;
struct pick_fleet;

struct door_options {
	struct pick_pool *pool;
	struct pick_fleet *fleet;
	uint32_t limit;          /* seconds that a call may be silent, */
	uint32_t idle;           /* and a connection */
	size_t body_most;
	bool (*status)(void *context, uint32_t form, struct hold *to);
	bool (*ready)(void *context);
	void *context;
};

struct door_counts {
	uint64_t selects, unknown, faded; /* unknown: calls with that ID */
	uint32_t open;
};

/* NULL: no memory. */
struct json_door *door_new(struct event_base *base,
    const struct door_options *options);
void door_free(struct json_door *d);
/* "unix:PATH", or an address and a port; false: errno is why. */
bool door_listen(struct json_door *d, const char *where);
/* Metrics, status and health alone, on a port. */
bool door_listen_metrics(struct json_door *d, uint16_t port);
/* From now on it selects no server: 503. */
void door_drain(struct json_door *d);
/* Ends calls that are over their limit, and listens again; once a second. */
void door_fade(struct json_door *d);
const struct door_counts *door_counts(const struct json_door *d);

#endif
