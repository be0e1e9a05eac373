/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker.h - workers: slots, facts, loads.
 */
#ifndef KVR_WORKER_H
#define KVR_WORKER_H

#include "id.h"
#include "region.h"

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
void worker_recount(struct kvr *k, uint32_t slot);
uint64_t worker_block(const struct kvr *k, uint32_t slot);
uint64_t worker_usable(const struct kvr *k, uint32_t slot, uint64_t prompt,
    uint64_t tokens);
bool worker_overloaded(const struct kvr *k, uint32_t slot);
void worker_remove(struct kvr *k, uint32_t slot);
void worker_recover(struct kvr *k);
void worker_mend(struct kvr *k);
int worker_reset(struct kvr *k, uint32_t slot, uint32_t *fresh);

/* The id of the worker in a slot, if it has one; 0: no such slot. */
static inline uint64_t
worker_id(const struct kvr *k, uint32_t slot)
{
	return slot < k->layout.slots
	    ? id_of_worker(read_once(k->generations[slot]), slot) : 0;
}

/* False if the id is not, or is no longer, that of a worker. */
static inline bool
worker_slot(const struct kvr *k, uint64_t id, uint32_t *slot)
{
	*slot = id_slot(id);
	/* the id of a slot without a worker is 0 too */
	return id != 0 && *slot < k->layout.slots &&
	    read_once(k->loads.id[*slot]) == id;
}

#endif
