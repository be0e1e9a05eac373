/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * roots.c - see roots.h.
 *
 * Three tables, each in the order of the last use; a full one forgets its first
 * item.
 *
 *	roots   root -> tenant
 *	own     tenant -> share, of requests of this router
 *	told    tenant -> share, of requests of others
 */
#include "roots.h"

#include <kvroute_replica.h>
#include <stdlib.h>

/* uthash exits by default when there is no memory. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct item {
	uint64_t key, value;
	UT_hash_handle hh;
};

struct roots {
	struct item *roots, *own, *told;
};

struct roots *
roots_new(void)
{
	return calloc(1, sizeof(struct roots));
}

static void
table_free(struct item *table)
{
	struct item *i, *next;

	HASH_ITER(hh, table, i, next) {
		HASH_DEL(table, i);
		free(i);
	}
}

void
roots_free(struct roots *t)
{
	if (t == NULL)
		return;
	table_free(t->roots);
	table_free(t->own);
	table_free(t->told);
	free(t);
}

/* As the last one. Without memory it is forgotten. */
static void
append(struct item **table, struct item *i)
{
	HASH_ADD(hh, *table, key, sizeof(i->key), i);
	if (i->hh.tbl == NULL)
		free(i);
}

/* 0: the table lacks the key. */
static uint64_t
get(struct item **table, uint64_t key)
{
	struct item *i;
	uint64_t value;

	HASH_FIND(hh, *table, &key, sizeof(key), i);
	if (i == NULL)
		return 0;
	value = i->value;
	HASH_DEL(*table, i);
	append(table, i);
	return value;
}

static void
set(struct item **table, uint64_t key, uint64_t value)
{
	struct item *i;

	HASH_FIND(hh, *table, &key, sizeof(key), i);
	if (i == NULL && HASH_COUNT(*table) >= ROOTS_KNOWN)
		i = *table;
	if (i != NULL)
		HASH_DEL(*table, i);
	else
		i = malloc(sizeof(*i));
	if (i == NULL)
		return;
	i->key = key;
	i->value = value;
	append(table, i);
}

static void
note(struct roots *t, struct item **shares, uint64_t root, uint64_t tenant,
    uint64_t share)
{
	if (tenant == 0)
		return;
	set(&t->roots, root, tenant);
	if (share > 0 && share <= KVR_SHARE_MAX)
		set(shares, tenant, share);
}

void
roots_own(struct roots *t, uint64_t root, uint64_t tenant, uint32_t share)
{
	note(t, &t->own, root, tenant, share);
}

void
roots_told(struct roots *t, uint64_t root, uint64_t tenant, uint64_t share)
{
	note(t, &t->told, root, tenant, share);
}

bool
roots_get(struct roots *t, uint64_t root, uint64_t *tenant, uint32_t *share)
{
	*tenant = get(&t->roots, root);
	if (*tenant == 0)
		return false;
	*share = (uint32_t)get(&t->own, *tenant);
	if (*share == 0)
		*share = (uint32_t)get(&t->told, *tenant);
	return true;
}

void
roots_say(struct roots *t, uint64_t root, struct kvr_prompt *p)
{
	uint64_t tenant;
	uint32_t share;

	if (roots_get(t, root, &tenant, &share))
		(void)kvr_prompt_set_tenant(p, tenant, share);
}
