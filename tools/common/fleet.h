/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet.h - workers 0 to n - 1 of a region, by number.
 *
 * A worker's id is the library's (slot and generation); whoever keeps tables
 * by worker wants small numbers. This is the way back and forth.
 */
#ifndef KVROUTE_FLEET_H
#define KVROUTE_FLEET_H

#include <kvroute.h>

#include <stdint.h>

struct fleet;

/* Adds n workers named worker-0, worker-1, ... Gives an enum kvr_error. */
int fleet_new(struct kvr *k, uint32_t n, struct fleet **out);
void fleet_free(struct fleet *f);
uint64_t fleet_id(const struct fleet *f, uint32_t number);
/* UINT32_MAX: no worker of this fleet. */
uint32_t fleet_number(const struct fleet *f, uint64_t id);

#endif
