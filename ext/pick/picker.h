/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * picker.h - the endpoint picker: one call of ext_proc is one request, and the
 * response to it. kvroute-pick(8) describes the protocol.
 */
#ifndef KVROUTE_PICKER_H
#define KVROUTE_PICKER_H

#include "h2_server.h"
#include "pick_pool.h"

struct picker {
	struct pick_pool *pool;
	size_t body_most;        /* bytes of a body that are held, */
	size_t held_most;        /* and of all of them */
	size_t held;
	struct hold scratch;     /* a body that is edited, or rewritten */
	uint64_t malformed, cut; /* messages; bodies beyond these */
};

/* The service of ExternalProcessor.Process. */
struct h2_service picker_service(struct picker *p);
void picker_free(struct picker *p);

#endif
