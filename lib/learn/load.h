/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load.h - the figures of a worker that choices read.
 */
#ifndef KVR_LOAD_H
#define KVR_LOAD_H

#include "id.h"
#include "region.h"

/* Copies the figures of a slot that choices read to the loads. */
void load_publish(struct kvr *k, uint32_t slot);
/* Call it after every change of a slot's facts or load. */
void load_recount(struct kvr *k, uint32_t slot);

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
