/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.c - chained hash tables: of nodes, and of entries and leases.
 *
 * A region has room for buckets in proportion to its cells. The live cells are
 * often a small part, and if they were scattered over all buckets, each lookup
 * would wait for memory. So a table uses only as many buckets as it has
 * needed so far, and grows by one at a time: linear hashing (Litwin, "Linear
 * hashing: a new tool for file and table addressing", 1980; Larson, "Dynamic
 * hash tables", 1988). The bucket is the low bits of a hash, one bit less where
 * the table does not reach yet. A new bucket takes its share of the only one
 * that it had been part of:
 *
 *	5 used   000 001 010 011 100         x01, x10 and x11 are whole
 *	6 used   000 001 010 011 100 101     001 gave those that end in 101
 *
 * It shrinks only when the region is emptied. Reading without the lock is as
 * safe as elsewhere: a reader discards all that it saw in a growing table.
 */
#include "table.h"

enum { USED_MIN = 64, GROW_MAX = 2 }; /* buckets; added for one more member */

/* One of the two tables. */
struct table {
	uint32_t *buckets, *used_at;
	uint32_t room;
};

static struct table
node_table(const struct kvr *k)
{
	return (struct table){ k->node_buckets, &k->region->node_buckets_used,
		k->layout.node_buckets };
}

static struct table
entry_table(const struct kvr *k)
{
	return (struct table){ k->entry_buckets, &k->region->entry_buckets_used,
		k->layout.entry_buckets };
}

/* How many buckets are used, read once; in a damaged region all. */
static uint32_t
table_used(const struct table *t)
{
	uint32_t used = read_once(*t->used_at);

	return used - 1 < t->room ? used : t->room;
}

uint32_t
node_table_used(const struct kvr *k)
{
	const struct table t = node_table(k);

	return table_used(&t);
}

uint32_t
entry_table_used(const struct kvr *k)
{
	const struct table t = entry_table(k);

	return table_used(&t);
}

/* ------------------------------------------------------------ addresses --- */

/*
 * Multilinear hashing with a key that never leaves the region (Lemire and
 * Kaser, "Strongly universal string hashing is fast", 2014): two different keys
 * share a bucket with the probability of a uniform draw, even if a client chose
 * them.
 */
static uint32_t
hash_of(const uint64_t *key, uint64_t a, uint32_t b)
{
	uint64_t h = key[0] + key[1] * (uint32_t)a + key[2] * (a >> 32) +
	    key[3] * b;
	uint32_t x = (uint32_t)(h >> 32);

	/* evenly spaced keys would cluster; bijective, so as uniform */
	x = (x ^ x >> 16) * UINT32_C(0x9e3779b1);
	return x ^ x >> 16;
}

/* All bits of the largest bucket's number, of so many. */
static uint32_t
bits_of(uint32_t used)
{
	return UINT32_MAX >> __builtin_clz((used - 1) | 1);
}

static uint32_t
bucket_at(uint32_t hash, uint32_t used)
{
	uint32_t bits = bits_of(used);

	return (hash & bits) < used ? hash & bits : hash & bits >> 1;
}

static uint32_t
hash_of_node(const struct kvr *k, uint64_t prev, uint32_t first)
{
	return hash_of(k->table_key, prev, first);
}

static uint32_t
hash_of_entry(const struct kvr *k, uint32_t node, uint32_t slot)
{
	return hash_of(k->table_key + 4, node, slot);
}

static uint32_t
hash_of_lease(const struct kvr *k, uint64_t number)
{
	return hash_of(k->table_key + 8, number, 0);
}

uint32_t
bucket_of_node(const struct kvr *k, uint64_t prev, uint32_t first)
{
	return bucket_at(hash_of_node(k, prev, first), node_table_used(k));
}

uint32_t
bucket_of_entry(const struct kvr *k, uint32_t node, uint32_t slot)
{
	return bucket_at(hash_of_entry(k, node, slot), entry_table_used(k));
}

uint32_t
bucket_of_lease(const struct kvr *k, uint64_t number)
{
	return bucket_at(hash_of_lease(k, number), entry_table_used(k));
}

uint32_t
place_of_entry(const struct kvr *k, uint32_t node, uint32_t slot)
{
	return bucket_at(hash_of_entry(k, node, slot), k->layout.entry_buckets);
}

/* The bits that are used now are a part of those of the place. */
uint32_t
bucket_of_place(const struct kvr *k, uint32_t place)
{
	return bucket_at(place, entry_table_used(k));
}

/* The link to the next in the bucket comes first in each of them. */
_Static_assert(offsetof(struct node, next) == offsetof(struct entry, next) &&
    offsetof(struct node, next) == offsetof(struct lease, next) &&
    offsetof(struct node, kind) == offsetof(struct entry, kind) &&
    offsetof(struct node, kind) == offsetof(struct lease, kind),
    "members of a chain begin alike");

/* A member that is not in its bucket, or too far down, has been damaged. */
void
bucket_remove(struct kvr *k, uint32_t *head, uint32_t member)
{
	uint32_t limit = CHAIN_MAX, *link = head;

	for (; *link != 0 && limit > 0; limit--) {
		add_once(k->region->counts.steps, 1);
		if (*link == member) {
			write_once(*link, node_at(k, member)->next);
			return;
		}
		link = &node_at(k, *link)->next;
	}
	region_break(k);
}

/* -------------------------------------------------------------- growing --- */

/* The hash of a node, an entry or a lease. */
static uint32_t
hash_of_cell(const struct kvr *k, uint32_t i)
{
	const union cell *c = cell_at(k, i);

	if (c->node.kind == CELL_NODE)
		return hash_of_node(k, c->node.prev, c->node.first);
	if (c->node.kind == CELL_LEASE)
		return hash_of_lease(k, c->lease.number);
	return hash_of_entry(k, c->entry.node, c->entry.slot);
}

/* Adds the bucket `last`, and moves its members there; order stays. */
static void
table_split(struct kvr *k, const struct table *t, uint32_t last)
{
	uint32_t limit = CHAIN_MAX, i;
	uint32_t *stay = &t->buckets[last & bits_of(last + 1) >> 1];
	uint32_t *move = &t->buckets[last];

	for (i = *stay; i != 0 && limit > 0; limit--) {
		uint32_t *next = &node_at(k, i)->next;

		add_once(k->region->counts.steps, 1);
		if (bucket_at(hash_of_cell(k, i), last + 1) == last) {
			write_once(*move, i);
			move = next;
		} else {
			write_once(*stay, i);
			stay = next;
		}
		i = *next;
	}
	write_once(*stay, i);
	write_once(*move, 0);
	write_once(*t->used_at, last + 1);
}

/* Half of the buckets, at least, are empty. */
static void
table_grow(struct kvr *k, const struct table *t, uint64_t members)
{
	uint32_t left, used;

	for (left = GROW_MAX; left > 0; left--) {
		used = table_used(t);
		if (used >= t->room || used >= 2 * members)
			return;
		table_split(k, t, used);
	}
}

void
node_table_grow(struct kvr *k)
{
	const struct table t = node_table(k);

	table_grow(k, &t, k->region->counts.nodes);
}

void
entry_table_grow(struct kvr *k)
{
	const struct table t = entry_table(k);

	table_grow(k, &t, k->region->counts.entries +
	    k->region->counts.leases);
}

/* ----------------------------------------------------------- as a whole --- */

static void
table_empty(const struct table *t)
{
	uint32_t used = t->room < USED_MIN ? t->room : USED_MIN, i;

	for (i = 0; i < used; i++)
		write_once(t->buckets[i], 0);
	write_once(*t->used_at, used);
}

void
tables_empty(struct kvr *k)
{
	const struct table nodes = node_table(k), entries = entry_table(k);

	table_empty(&nodes);
	table_empty(&entries);
}

bool
tables_sound(const struct kvr *k)
{
	return k->region->node_buckets_used - 1 < k->layout.node_buckets &&
	    k->region->entry_buckets_used - 1 < k->layout.entry_buckets;
}
