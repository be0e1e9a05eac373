/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_tenants.c - the part of check.c for tenants: tenant.c.
 */
#include "tenant.h"

#include "cell.h"
#include "check_in.h"
#include "entry.h"

/* The tenant of each node, and the cells of each tenant. */
static bool
check_node_tenants(struct sums *s)
{
	const struct kvr *k = s->k;
	uint32_t i, tenant;

	for (i = 1; i < k->layout.cells; i++) {
		const struct node *n = node_at(k, i);

		if (seen_as(s, i) == SEEN_ENTRY)
			s->tenant_cells[tenant_of_entry(k, i)]++;
		if (seen_as(s, i) != SEEN_NODE)
			continue;
		tenant = read_once(belonging_at(k, i)->tenant);
		if (tenant > k->layout.tenants || (n->parent != 0 &&
		    tenant != tenant_of(k, n->parent)))
			return false;
		s->tenant_cells[tenant] += 1 + cell_tree_size(n->begin,
		    n->begin + n->length, n->level) + pairs_cells(n->holders);
	}
	return true;
}

/*
 * Links both ways; stamps ascend; an entry comes before the one above it.
 * Entries that were met are marked, as if free. *listed: how many there are.
 */
static bool
check_tenant_list(struct sums *s, uint32_t tenant, uint64_t *listed)
{
	const struct kvr *k = s->k;
	struct list l = tenant_at(k, tenant)->by_stamp;
	int64_t stamp = STAMP_NONE;
	uint32_t i, prev = 0;

	for (i = l.head; i != 0; i = belonging_at(k, i)->place.next) {
		const struct entry *h = entry_at(k, i);
		uint32_t above;

		if (seen_as(s, i) != SEEN_ENTRY ||
		    belonging_at(k, i)->place.prev != prev ||
		    (h->flags & ENTRY_LISTED) == 0 || h->stamp < stamp ||
		    tenant_of_entry(k, i) != tenant)
			return false;
		above = check_entry_above(k, h);
		if (above != 0 && seen_as(s, above) == SEEN_FREE)
			return false;
		s->seen[i] = SEEN_FREE;
		stamp = h->stamp;
		prev = i;
		(*listed)++;
	}
	return l.tail == prev;
}

/* Takes the marks away. */
static void
clear_marks(struct sums *s)
{
	const struct kvr *k = s->k;
	uint32_t i, t;

	for (t = 0; t <= k->layout.tenants; t++)
		for (i = tenant_oldest(k, t); i < k->layout.cells && i != 0 &&
		    s->seen[i] == SEEN_FREE;
		    i = belonging_at(k, i)->place.next)
			s->seen[i] = SEEN_ENTRY;
}

static uint64_t
listed_in_all(const struct sums *s)
{
	uint64_t listed = 0;
	uint32_t i;

	for (i = 1; i < s->k->layout.cells; i++)
		listed += seen_as(s, i) == SEEN_ENTRY &&
		    (entry_at(s->k, i)->flags & ENTRY_LISTED) != 0;
	return listed;
}

bool
check_tenants(struct sums *s)
{
	const struct kvr *k = s->k;
	uint64_t listed = 0, all = listed_in_all(s);
	uint32_t t;
	bool good;

	if (!tenant_on(k))
		return true;
	if (!check_node_tenants(s))
		return false;
	for (t = 0, good = true; good && t <= k->layout.tenants; t++)
		good = check_tenant_list(s, t, &listed);
	clear_marks(s);
	return good && listed == all;
}

static bool
row_sound(const struct kvr *k, uint32_t tenant, uint32_t cells)
{
	const struct tenant *t = tenant_at(k, tenant);
	bool used = tenant == 0 || t->digest != 0;

	return t->cells == cells && (tenant != 0 || t->digest == 0) &&
	    (!used || t->share - 1 < KVR_SHARE_MAX);
}

bool
check_tenant_figures(const struct sums *s)
{
	const struct kvr *k = s->k;
	uint32_t t;

	if (!tenant_on(k))
		return true;
	for (t = 0; t <= k->layout.tenants; t++)
		if (!row_sound(k, t, s->tenant_cells[t]))
			return false;
	return tenant_beyond_empty(k) && tenant_tournament_sound(k);
}
