/* SPDX-License-Identifier: BSD-2-Clause */
/* blocks.c - see blocks.h. */
#include "blocks.h"

#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->lost = true)
#include <uthash.h>

struct known {
	struct block block; /* first: the address of both is the same */
	uint64_t holds;
	bool lost;          /* not in the table: no memory */
	char *salt, *adapter;
	UT_hash_handle hh;
	uint32_t tokens[];
};

struct blocks {
	struct known *table;
	uint32_t tokens;
};

struct blocks *
blocks_new(uint32_t tokens)
{
	struct blocks *b = calloc(1, sizeof(*b));

	if (b != NULL)
		b->tokens = tokens;
	return b;
}

static void
known_free(struct known *k)
{
	free(k->salt);
	free(k->adapter);
	free(k);
}

void
blocks_free(struct blocks *b)
{
	struct known *k, *next;

	if (b == NULL)
		return;
	HASH_ITER(hh, b->table, k, next) {
		HASH_DEL(b->table, k);
		known_free(k);
	}
	free(b);
}

static struct known *
find(const struct blocks *b, uint64_t name)
{
	struct known *k;

	HASH_FIND(hh, b->table, &name, sizeof(name), k);
	return k;
}

/* False: no memory. */
static bool
copy_text(const char *text, char **out)
{
	*out = text == NULL ? NULL : strdup(text);
	return text == NULL || *out != NULL;
}

static struct known *
known_new(struct blocks *b, const struct block *facts)
{
	size_t bytes = b->tokens * sizeof(facts->tokens[0]);
	struct known *k = calloc(1, sizeof(*k) + bytes);

	if (k == NULL)
		return NULL;
	k->block = *facts;
	k->block.cached = false;
	memcpy(k->tokens, facts->tokens, bytes);
	k->block.tokens = k->tokens;
	k->lost = !copy_text(facts->salt, &k->salt) ||
	    !copy_text(facts->adapter, &k->adapter);
	k->block.salt = k->salt;
	k->block.adapter = k->adapter;
	if (!k->lost)
		HASH_ADD(hh, b->table, block.name, sizeof(k->block.name), k);
	if (k->lost) {
		known_free(k);
		return NULL;
	}
	return k;
}

struct block *
blocks_add(struct blocks *b, const struct block *facts)
{
	struct known *k = find(b, facts->name);

	if (k == NULL)
		k = known_new(b, facts);
	if (k == NULL)
		return NULL;
	k->holds++;
	return &k->block;
}

struct block *
blocks_find(const struct blocks *b, uint64_t name)
{
	struct known *k = find(b, name);

	return k == NULL ? NULL : &k->block;
}

void
blocks_hold(struct block *block)
{
	((struct known *)(void *)block)->holds++;
}

void
blocks_release(struct blocks *b, struct block *block)
{
	struct known *k = (struct known *)(void *)block;

	if (--k->holds > 0)
		return;
	HASH_DEL(b->table, k);
	known_free(k);
}

size_t
blocks_count(const struct blocks *b)
{
	return HASH_COUNT(b->table);
}
