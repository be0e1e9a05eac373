/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet.h - numbers workers 0 to n - 1.
 *
 * Maps the library's worker ids (slot and generation) to small integers, for
 * tables indexed by worker, and back.
 */
#ifndef KVROUTE_FLEET_H
#define KVROUTE_FLEET_H

#include <kvroute.h>

#include <stdint.h>

struct fleet;

/* Adds n workers named worker-0, worker-1, ... Returns an enum kvr_error. */
int fleet_new(struct kvr *k, uint32_t n, struct fleet **out);
/* A worker leaves, and may join again with another id. */
int fleet_leave(struct fleet *f, struct kvr *k, uint32_t number);
int fleet_join(struct fleet *f, struct kvr *k, uint32_t number);
/* The library has given it another id. */
int fleet_renew(struct fleet *f, uint32_t number, uint64_t id);
void fleet_free(struct fleet *f);
/* 0: it has left. */
uint64_t fleet_id(const struct fleet *f, uint32_t number);
/* UINT32_MAX: not a worker of this fleet. */
uint32_t fleet_number(const struct fleet *f, uint64_t id);

#endif
