/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_peers.h - what the reports say about other machines: kvr_peer(3).
 */
#ifndef KVROUTE_STATUS_PEERS_H
#define KVROUTE_STATUS_PEERS_H

#include "json_writer.h"
#include "status.h"

/* The member "exchange": an object, or null without news. */
void peers_json(struct json *j, const struct kvr *k);
/* Samples named kvroute_PROXY_exchange_... and kvroute_PROXY_peer_... */
void peers_metrics(const struct status *s, struct writer *to);

#endif
