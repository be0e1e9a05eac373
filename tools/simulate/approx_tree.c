/* SPDX-License-Identifier: BSD-2-Clause */
/* approx_tree.c - see approx_tree.h. */
#include "approx_tree.h"

#include "rng.h"

#include <stdlib.h>
#include <string.h>

/* Names are hashes already; their low bits suffice. */
static unsigned
tree_low_bits(const void *name)
{
	uint64_t bits;

	memcpy(&bits, name, sizeof(bits));
	return (unsigned)(bits & UINT32_MAX);
}

#define HASH_FUNCTION(key, length, hash) ((hash) = tree_low_bits(key))
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->lost = true)
#include <uthash.h>
#include <utlist.h>

struct entry {
	struct node *node;
	struct entry *prev, *next;   /* of the worker */
	struct entry *before, *after; /* of the node */
	uint32_t worker;
};
/* Has at least one entry. */
struct node {
	uint64_t name; /* of the id and all before it */
	struct entry *entries;
	bool lost; /* not in the table: out of memory */
	UT_hash_handle hh;
};

struct approx_tree {
	struct node *table;
	struct entry **lists; /* [workers]; the head is evicted first */
	uint64_t *counts;     /* [workers] */
	struct entry **path;  /* of the prompt at hand */
	size_t capacity;      /* of the path */
	uint64_t limit;
	uint32_t workers;
};

struct approx_tree *
approx_tree_new(uint32_t workers, uint64_t limit)
{
	struct approx_tree *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->workers = workers;
	t->limit = limit;
	t->lists = calloc(workers, sizeof(struct entry *));
	t->counts = calloc(workers, sizeof(*t->counts));
	if (t->lists != NULL && t->counts != NULL)
		return t;
	approx_tree_free(t);
	return NULL;
}

static void
node_free(struct approx_tree *t, struct node *n)
{
	if (!n->lost)
		HASH_DEL(t->table, n);
	free(n);
}

static void
evict_tenant(struct approx_tree *t, uint32_t worker)
{
	struct entry *e = t->lists[worker];

	DL_DELETE(t->lists[worker], e);
	t->counts[worker]--;
	DL_DELETE2(e->node->entries, e, before, after);
	if (e->node->entries == NULL)
		node_free(t, e->node);
	free(e);
}

void
approx_tree_forget(struct approx_tree *t, uint32_t worker)
{
	while (t->lists[worker] != NULL)
		evict_tenant(t, worker);
}

void
approx_tree_free(struct approx_tree *t)
{
	uint32_t w;

	if (t == NULL)
		return;
	for (w = 0; t->lists != NULL && w < t->workers; w++)
		approx_tree_forget(t, w);
	free(t->lists);
	free(t->counts);
	free(t->path);
	free(t);
}

static uint64_t
tree_name(uint64_t before, uint64_t id)
{
	struct rng r = { id };

	r.state = before ^ rng_next(&r);
	return rng_next(&r);
}

static struct node *
node_find(const struct approx_tree *t, uint64_t name)
{
	struct node *n;

	HASH_FIND(hh, t->table, &name, sizeof(name), n);
	return n;
}

/* NULL: out of memory. */
static struct node *
node_of(struct approx_tree *t, uint64_t name)
{
	struct node *n = node_find(t, name);

	if (n != NULL)
		return n;
	n = calloc(1, sizeof(*n));
	if (n == NULL)
		return NULL;
	n->name = name;
	HASH_ADD(hh, t->table, name, sizeof(n->name), n);
	if (!n->lost)
		return n;
	free(n);
	return NULL;
}

static struct entry *
entry_find(const struct node *n, uint32_t worker)
{
	struct entry *e;

	DL_FOREACH2(n->entries, e, after)
		if (e->worker == worker)
			return e;
	return NULL;
}

/* NULL: out of memory. */
static struct entry *
entry_of(struct approx_tree *t, uint64_t name, uint32_t worker)
{
	struct node *n = node_of(t, name);
	struct entry *e = n == NULL ? NULL : entry_find(n, worker);

	if (n == NULL || e != NULL)
		return e;
	e = calloc(1, sizeof(*e));
	if (e == NULL) {
		if (n->entries == NULL)
			node_free(t, n);
		return NULL;
	}
	e->node = n;
	e->worker = worker;
	DL_APPEND2(n->entries, e, before, after);
	DL_APPEND(t->lists[worker], e);
	t->counts[worker]++;
	return e;
}

static int
path_grow(struct approx_tree *t, size_t n)
{
	struct entry **path;

	if (n <= t->capacity)
		return 0;
	path = realloc(t->path, n * sizeof(struct entry *));
	if (path == NULL)
		return -1;
	t->path = path;
	t->capacity = n;
	return 0;
}

int
approx_tree_insert(struct approx_tree *t, const uint64_t *ids, size_t n,
    uint32_t worker)
{
	uint64_t name = 0;
	size_t i;

	if (path_grow(t, n) != 0)
		return -1;
	for (i = 0; i < n; i++) {
		name = tree_name(name, ids[i]);
		t->path[i] = entry_of(t, name, worker);
		if (t->path[i] == NULL)
			return -1;
	}
	while (i-- > 0) {
		DL_DELETE(t->lists[worker], t->path[i]);
		DL_APPEND(t->lists[worker], t->path[i]);
	}
	while (t->counts[worker] > t->limit)
		evict_tenant(t, worker);
	return 0;
}

static bool
node_counts(const struct node *n, const bool *away)
{
	const struct entry *e;

	DL_FOREACH2(n->entries, e, after)
		if (away == NULL || !away[e->worker])
			return true;
	return false;
}

size_t
approx_tree_match(const struct approx_tree *t, const uint64_t *ids, size_t n,
    const bool *away, bool *holders)
{
	const struct node *node, *deepest = NULL;
	const struct entry *e;
	uint64_t name = 0;
	size_t depth;

	memset(holders, 0, t->workers * sizeof(*holders));
	for (depth = 0; depth < n; depth++) {
		name = tree_name(name, ids[depth]);
		node = node_find(t, name);
		if (node == NULL || !node_counts(node, away))
			break;
		deepest = node;
	}
	if (deepest != NULL)
		DL_FOREACH2(deepest->entries, e, after)
			holders[e->worker] = away == NULL || !away[e->worker];
	return depth;
}

uint64_t
approx_tree_entries(const struct approx_tree *t, uint32_t worker)
{
	return t->counts[worker];
}
