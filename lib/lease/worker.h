/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker.h - workers: slots, facts, loads.
 */
#ifndef KVR_WORKER_H
#define KVR_WORKER_H

#include "load.h"

int worker_add(struct kvr *k, const char *name, size_t length,
    const struct kvr_worker *facts, uint32_t *slot);
void worker_get(const struct kvr *k, uint32_t slot, struct kvr_worker *facts);
void worker_set(struct kvr *k, uint32_t slot, const struct kvr_worker *facts);
void worker_get_load(const struct kvr *k, uint32_t slot, uint32_t source,
    struct kvr_load *out);
void worker_set_load(struct kvr *k, uint32_t slot, uint32_t source,
    const struct kvr_load *load);
size_t worker_name(const struct kvr *k, uint32_t slot,
    char name[KVR_NAME_MAX]);
/* Is it small enough for the sums over all sources and leases? */
bool worker_load_ok(const struct kvr_load *load);
bool worker_overloaded(const struct kvr *k, uint32_t slot);
void worker_remove(struct kvr *k, uint32_t slot);
void worker_recover(struct kvr *k);
void worker_settle(struct kvr *k);
void worker_mend(struct kvr *k);
int worker_reset(struct kvr *k, uint32_t slot, uint32_t *fresh);

#endif
