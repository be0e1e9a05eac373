/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * grpc_health.h - grpc.health.v1.Health of a picker: `liveness` always serves;
 * `readiness`, the name of ExternalProcessor, and "" serve while `ready`.
 */
#ifndef KVROUTE_GRPC_HEALTH_H
#define KVROUTE_GRPC_HEALTH_H

#include "h2_server.h"

struct health_watch;

struct grpc_health {
	bool ready, ended;
	struct health_watch *watches;
};

struct h2_service grpc_health_check(struct grpc_health *h);
struct h2_service grpc_health_watch(struct grpc_health *h);
/* Sends it to those that watch, if it changes. */
void grpc_health_set(struct grpc_health *h, bool ready);
/* Not ready any more: calls that watch end, and later ones at once. */
void grpc_health_end(struct grpc_health *h);

#endif
