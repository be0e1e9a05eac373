/* SPDX-License-Identifier: BSD-2-Clause */
/* pick_status.h - the state of the pool and of both doors, as text. */
#ifndef KVROUTE_PICK_STATUS_H
#define KVROUTE_PICK_STATUS_H

#include "h2_server.h"
#include "json_door.h"
#include "pick_pool.h"
#include "picker.h"
#include "text_hold.h"

struct pick_status {
	const char *name, *space;    /* of the pool in Kubernetes */
	const struct pick_pool *pool;
	const struct picker *picker;
	const struct h2_server *grpc;
	const struct json_door *door;
};

/* false: no memory. */
bool status_text(const struct pick_status *s, uint32_t form, struct hold *to);

#endif
