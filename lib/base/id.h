/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * id.h - public ids, which encode their kind.
 *
 *	worker   generation (32) | slot (14) | 01
 *	lease    number (62)                 | 10
 *
 * The kind is in the low bits, so ids stay small. Worker ids are below 2^48,
 * the first 2^51 lease ids below 2^53: JSON numbers represent both exactly. 0
 * is of no kind.
 */
#ifndef KVR_ID_H
#define KVR_ID_H

#include <stdbool.h>
#include <stdint.h>

enum { ID_KIND = 3, ID_WORKER = 1, ID_LEASE = 2, ID_SLOT = 0x3fff };

/* The largest number of a lease. */
#define ID_LEASE_MAX (UINT64_MAX >> 2)

static inline uint64_t
id_of_worker(uint32_t generation, uint32_t slot)
{
	return (uint64_t)generation << 16 | (uint64_t)slot << 2 | ID_WORKER;
}

static inline bool
id_is_worker(uint64_t id)
{
	return (id & ID_KIND) == ID_WORKER;
}

static inline bool
id_is_lease(uint64_t id)
{
	return (id & ID_KIND) == ID_LEASE;
}

/* The slot in a worker's id. */
static inline uint32_t
id_slot(uint64_t id)
{
	return (uint32_t)id >> 2 & ID_SLOT;
}

static inline uint64_t
id_of_lease(uint64_t number)
{
	return number << 2 | ID_LEASE;
}

/* False if the id is not a lease's. */
static inline bool
id_lease_number(uint64_t id, uint64_t *number)
{
	*number = id >> 2;
	return id_is_lease(id);
}

#endif
