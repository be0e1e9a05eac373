/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tenant.c - tenants share a region that is full.
 *
 * THE IDEA. A full region evicts the entry stamped longest ago: one client with
 * long prompts drives out all others. So each cell of a node or an entry is
 * charged to a tenant, and the tenant that has most for its share loses its
 * oldest entry. Nothing is reserved: until the region is full each tenant takes
 * as much as it needs, and room that some do not need is used by others. If all
 * need more than there is, they end at equal fills; a tenant that needs less
 * than that loses nothing.
 *
 *	            share   cells   fill = cells / share
 *	tenant 1    100     2,000   20
 *	tenant 2    100     9,000   90  <- its oldest goes next
 *	tenant 3    200     9,600   48
 *
 * A NODE'S TENANT. Prompts of two scopes share no node, and the tenant is part
 * of the scope. So a whole tree is one tenant's: the first node takes it from
 * its prompt, each further one from its parent. So it is right to evict by
 * tenants: the list of a tenant is in order of stamps, as those of
 * workers are, so a child precedes its parent in it (index.c), and no entry is
 * left without the one above. Hence also the limits: prompts of one scope have
 * one tenant, and prompts without a tenant belong to the rest, number 0.
 *
 * The list of a tenant has the same entries as the lists by stamp of all slots,
 * dead ones too, and is doubly linked. The links need 8 bytes a cell, which an
 * entry has not left: they are beside the cells, and only in regions that are
 * shared.
 *
 * The fullest wins a tournament, as in order.c; a fill of 0 is that of a tenant
 * with nothing in its list. One that has no cells keeps its row until another
 * wants it. One that finds no row is of the rest.
 *
 * THE INVARIANTS
 *   1. A node's tenant is its parent's.
 *   2. A tenant's cells are those of its nodes, their runs and groups, and of
 *      its entries.
 *   3. An entry is in the list of its node's tenant while it is listed. Along
 *      it, stamps ascend, and children precede parents.
 *
 * COST. A change of cells or of a head of a list replays log2(tenants) matches;
 * a prompt whose first block is new looks at LOOKS_MAX rows.
 */
#include "tenant.h"

#include "mix.h"

enum {
	LOOKS_MAX = 64,      /* rows that one digest may be in */
	FILL_BITS = 16       /* of a fill below the point */
};

/* ---------------------------------------------------- the tournament --- */

static uint32_t
side_at(const struct kvr *k, uint32_t i)
{
	uint32_t leaves = k->layout.tenant_leaves;

	return (i >= leaves ? i - leaves : k->tenant_winner[i]) & (leaves - 1);
}

/* The first of equal ones. */
static uint32_t
winner_of(const struct kvr *k, uint32_t match)
{
	uint32_t a = side_at(k, 2 * match), b = side_at(k, 2 * match + 1);

	return k->tenants[a].fill >= k->tenants[b].fill ? a : b;
}

uint64_t
tenant_fill(const struct tenant *t)
{
	uint32_t share = read_once(t->share);

	return 1 + ((uint64_t)t->cells << FILL_BITS) / (share > 0 ? share : 1);
}

static uint64_t
fill_now(const struct tenant *t)
{
	return t->by_stamp.head != 0 ? tenant_fill(t) : 0;
}

/* After its cells, its share or the head of its list have changed. */
static void
settle_tenant(struct kvr *k, uint32_t tenant)
{
	struct tenant *t = tenant_at(k, tenant);
	uint64_t fill = fill_now(t);
	uint32_t i;

	if (t->fill == fill)
		return;
	write_once(t->fill, fill);
	for (i = (k->layout.tenant_leaves + (uint32_t)(t - k->tenants)) / 2;
	    i > 0; i /= 2)
		write_once(k->tenant_winner[i], (uint16_t)winner_of(k, i));
}

uint32_t
tenant_fullest(const struct kvr *k)
{
	return side_at(k, 1);
}

/* Bytes of the rows that only fill the tournament, and never have anything. */
static size_t
rows_beyond(const struct kvr *k)
{
	return (k->layout.tenant_leaves - 1 - k->layout.tenants) *
	    sizeof(*k->tenants);
}

bool
tenant_beyond_empty(const struct kvr *k)
{
	const unsigned char *at = (const void *)(k->tenants + 1 +
	    k->layout.tenants);
	size_t i, bytes = rows_beyond(k);

	for (i = 0; i < bytes; i++)
		if (at[i] != 0)
			return false;
	return true;
}

/* Every match was won by the fuller of its two sides. */
bool
tenant_tournament_sound(const struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.tenant_leaves; i++)
		if (k->tenants[i].fill != fill_now(&k->tenants[i]))
			return false;
	for (i = 1; i < k->layout.tenant_leaves; i++)
		if (k->tenants[k->tenant_winner[i] &
		    (k->layout.tenant_leaves - 1)].fill !=
		    k->tenants[winner_of(k, i)].fill)
			return false;
	return true;
}

/* --------------------------------------------------------------- rows --- */

/* A row for another tenant. */
static void
row_begin(struct kvr *k, uint32_t tenant, uint64_t digest)
{
	struct tenant *t = tenant_at(k, tenant);

	write_once_zeros(&t->by_stamp, sizeof(t->by_stamp));
	write_once(t->digest, digest);
	write_once(t->share, KVR_SHARE_DEFAULT);
	write_once(t->evicted, UINT64_C(0));
	settle_tenant(k, tenant);
}

/* Rather a row that was never used than one with the figures of a tenant. */
uint32_t
tenant_find(struct kvr *k, uint64_t digest)
{
	uint64_t rows = k->layout.tenants;
	uint64_t at = (mix(digest ^ k->table_key[1]) >> 32) * rows >> 32;
	uint32_t free = 0, tenant, i;

	if (digest == 0)
		return 0;
	for (i = 0; i < rows && i < LOOKS_MAX; i++) {
		const struct tenant *t;

		tenant = 1 + (uint32_t)((at + i) % rows);
		t = tenant_at(k, tenant);
		if (t->digest == digest)
			return tenant;
		if (t->cells == 0 && (free == 0 || (t->digest == 0 &&
		    tenant_at(k, free)->digest != 0)))
			free = tenant;
	}
	if (free != 0)
		row_begin(k, free, digest);
	return free;
}

/* A tenant without a row of its own does not change that of the rest. */
void
tenant_set_share(struct kvr *k, uint32_t tenant, uint64_t digest,
    uint32_t share)
{
	struct tenant *t = tenant_at(k, tenant);

	if (!tenant_on(k) || t->digest != digest || t->share == share)
		return;
	write_once(t->share, share);
	settle_tenant(k, tenant);
}

void
tenant_take_node(struct kvr *k, uint32_t node, uint32_t tenant)
{
	if (node != 0)
		write_once(belonging_at(k, node)->tenant, tenant);
}

/* Cells that were given back are added as a number without a sign. */
void
tenant_charge_cells(struct kvr *k, uint32_t tenant, uint32_t cells)
{
	add_once(tenant_at(k, tenant)->cells, cells);
	settle_tenant(k, tenant);
}

/* --------------------------------------------------------------- lists --- */

static struct list *
list_of(const struct kvr *k, uint32_t entry)
{
	return &tenant_at(k, tenant_of_entry(k, entry))->by_stamp;
}

/* The link to the entry behind this one; older 0: to the first. */
static uint32_t *
link_to_younger(const struct kvr *k, struct list *l, uint32_t older)
{
	return older != 0 ? &belonging_at(k, older)->place.next : &l->head;
}

static uint32_t *
link_to_older(const struct kvr *k, struct list *l, uint32_t younger)
{
	return younger != 0 ? &belonging_at(k, younger)->place.prev : &l->tail;
}

/* older 0: at the head. */
void
tenant_list_insert(struct kvr *k, uint32_t entry, uint32_t older)
{
	union belonging *mine = belonging_at(k, entry);
	struct list *l = list_of(k, entry);
	uint32_t younger = *link_to_younger(k, l, older);

	write_once(mine->place.prev, older);
	write_once(mine->place.next, younger);
	write_once(*link_to_younger(k, l, older), entry);
	write_once(*link_to_older(k, l, younger), entry);
	settle_tenant(k, tenant_of_entry(k, entry));
}

void
tenant_list_append(struct kvr *k, uint32_t entry)
{
	tenant_list_insert(k, entry, list_of(k, entry)->tail);
}

void
tenant_list_remove(struct kvr *k, uint32_t entry)
{
	struct list *l = list_of(k, entry);
	uint32_t older = belonging_at(k, entry)->place.prev;
	uint32_t younger = belonging_at(k, entry)->place.next;

	write_once(*link_to_younger(k, l, older), younger);
	write_once(*link_to_older(k, l, younger), older);
	settle_tenant(k, tenant_of_entry(k, entry));
}

uint32_t
tenant_oldest(const struct kvr *k, uint32_t tenant)
{
	return tenant_at(k, tenant)->by_stamp.head;
}

/* Whether it is the oldest of its tenant, as order_heads is of a worker. */
bool
tenant_heads(const struct kvr *k, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);

	return tenant_on(k) && h->kind == CELL_ENTRY &&
	    (h->flags & ENTRY_LISTED) != 0 &&
	    belonging_at(k, entry)->place.prev == 0 &&
	    list_of(k, entry)->head == entry;
}

/* ---------------------------------------------------------- as a whole --- */

/* No tenant has anything; the first leaf wins every match. */
void
tenant_empty(struct kvr *k)
{
	uint32_t i, leaves = k->layout.tenant_leaves;

	if (!tenant_on(k))
		return;
	write_once_zeros(k->tenants, leaves * sizeof(*k->tenants));
	write_once_zeros(k->belonging, sizeof(*k->belonging));
	write_once(k->tenants[0].share, KVR_SHARE_DEFAULT);
	write_once(k->tenant_winner[0], 0);
	for (i = leaves; --i > 0;)
		write_once(k->tenant_winner[i], 2 * i >= leaves
		    ? (uint16_t)(2 * i - leaves) : k->tenant_winner[2 * i]);
}

/* Replays all matches. */
static void
settle_all(struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.tenant_leaves; i++)
		write_once(k->tenants[i].fill, fill_now(&k->tenants[i]));
	for (i = k->layout.tenant_leaves; --i > 0;)
		write_once(k->tenant_winner[i], (uint16_t)winner_of(k, i));
}

static void
row_mend(struct kvr *k, uint32_t tenant, uint32_t cells)
{
	struct tenant *t = tenant_at(k, tenant);

	write_once(t->cells, cells);
	if (tenant == 0)
		write_once(t->digest, UINT64_C(0));
	if (t->share - 1 >= KVR_SHARE_MAX)
		write_once(t->share, KVR_SHARE_DEFAULT);
}

/* All lists are right, and no more is known to be. cells: of each tenant. */
void
tenant_mend(struct kvr *k, const uint32_t *cells)
{
	uint32_t i;

	if (!tenant_on(k))
		return;
	for (i = 0; i <= k->layout.tenants; i++)
		row_mend(k, i, cells[i]);
	write_once_zeros(k->tenants + i, rows_beyond(k));
	settle_all(k);
}
