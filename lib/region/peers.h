/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peers.h - the report on routers of other machines.
 */
#ifndef KVR_PEERS_H
#define KVR_PEERS_H

#include "region.h"

/* Could kvr_peer_set have taken it? Its digest is not looked at. */
bool peers_valid(const struct peer_table *t);
/* Writes a valid one; the digest is made. The region has a journal. */
void peers_put(struct kvr *k, struct peer_table *t);
/* A valid one, maybe without a report: `at` is -1. */
void peers_get(const struct kvr *k, struct peer_table *t);
/* No report. */
void peers_empty(struct kvr *k);
bool peers_sound(const struct kvr *k);
void peers_recover(struct kvr *k);

#endif
