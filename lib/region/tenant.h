/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tenant.h - which tenant a node is of, and which one loses its oldest next.
 */
#ifndef KVR_TENANT_H
#define KVR_TENANT_H

#include "region.h"

/* Stands for any tenant, where one is asked for. */
#define TENANT_ANY UINT32_MAX

static inline bool
tenant_on(const struct kvr *k)
{
	return k->layout.tenants != 0;
}

static inline struct tenant *
tenant_at(const struct kvr *k, uint32_t tenant)
{
	return &k->tenants[tenant <= k->layout.tenants ? tenant : 0];
}

static inline union belonging *
belonging_at(const struct kvr *k, uint32_t cell)
{
	return &k->belonging[cell < k->layout.cells ? cell : 0];
}

/* The tenant of a node. */
static inline uint32_t
tenant_of(const struct kvr *k, uint32_t node)
{
	uint32_t tenant = tenant_on(k)
	    ? read_once(belonging_at(k, node)->tenant) : 0;

	return node != 0 && tenant <= k->layout.tenants ? tenant : 0;
}

/* An entry has its node's. Output without hashes belongs to the rest. */
static inline uint32_t
tenant_of_entry(const struct kvr *k, uint32_t entry)
{
	return tenant_on(k) ? tenant_of(k, entry_at(k, entry)->node) : 0;
}

void tenant_take_node(struct kvr *k, uint32_t node, uint32_t tenant);
void tenant_charge_cells(struct kvr *k, uint32_t tenant, uint32_t cells);
void tenant_list_insert(struct kvr *k, uint32_t entry, uint32_t older);
void tenant_list_append(struct kvr *k, uint32_t entry);
void tenant_list_remove(struct kvr *k, uint32_t entry);

/* The row of a digest, made if need be; 0: it has none. */
uint32_t tenant_find(struct kvr *k, uint64_t digest);
void tenant_set_share(struct kvr *k, uint32_t tenant, uint64_t digest,
    uint32_t share);
/* Cells for its share, in units of no matter; never 0. */
uint64_t tenant_fill(const struct tenant *t);
/* Among tenants with something to lose, the one with most for its share. */
uint32_t tenant_fullest(const struct kvr *k);
/* The next that it loses; 0: nothing. */
uint32_t tenant_oldest(const struct kvr *k, uint32_t tenant);
bool tenant_heads(const struct kvr *k, uint32_t entry);
void tenant_empty(struct kvr *k);
bool tenant_tournament_sound(const struct kvr *k);
/* Has no row got anything but those that tenants may have? */
bool tenant_beyond_empty(const struct kvr *k);
void tenant_mend(struct kvr *k, const uint32_t *cells);

/* ------------------------------------- nothing where none share it --- */

/* A node that was just made at a root: of the prompt's tenant. */
static inline void
tenant_take_root(struct kvr *k, uint32_t node, uint64_t digest)
{
	if (tenant_on(k))
		tenant_take_node(k, node, tenant_find(k, digest));
}

/* One that was made beside or below another. */
static inline void
tenant_take(struct kvr *k, uint32_t node, uint32_t other)
{
	if (tenant_on(k))
		tenant_take_node(k, node, tenant_of(k, other));
}

/* Charges the cells of a change; `free` were free before it. */
static inline void
tenant_charge(struct kvr *k, uint32_t tenant, uint32_t free)
{
	if (tenant_on(k) && free != k->region->free_cells)
		tenant_charge_cells(k, tenant, free - k->region->free_cells);
}

/* As the youngest of its tenant. */
static inline void
tenant_append(struct kvr *k, uint32_t entry)
{
	if (tenant_on(k))
		tenant_list_append(k, entry);
}

/* Next to another of its tenant, just younger. */
static inline void
tenant_insert(struct kvr *k, uint32_t entry, uint32_t older)
{
	if (tenant_on(k))
		tenant_list_insert(k, entry, older);
}

static inline void
tenant_remove(struct kvr *k, uint32_t entry)
{
	if (tenant_on(k))
		tenant_list_remove(k, entry);
}

#endif
