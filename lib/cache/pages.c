/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pages.c - engines with smaller blocks than the index's.
 *
 * An engine may name smaller blocks than the index has: SGLang's page is often
 * one token. Its prompts part anywhere, and so within a block of the index:
 * whatever was stored may be gone on from, or be removed, at the end of any
 * page. So each page has an alias, and that of the last page of a block is that
 * of the block:
 *
 *	pages      a b c d | e f g h       blocks of 4 tokens, pages of 1
 *	                       `-- x y     stored later, behind f
 *	index      [  s0   |  s1   ]
 *	              `----|  s1'  ]
 *
 *	aliases    root <- a <- b <- c <- d <- e <- f <- g <- h
 *	                   1    2    3   s0    1    2  ^ 3   s1
 *	                                                `- x <- y
 *	                                                   3   s1'
 *
 * The hash of a block is of all its tokens, so it can be made when its last
 * page has come, and needs those of the pages before. These have no place in
 * the index, nor a sequence hash, so their aliases have tokens there: two, and
 * the number of tokens up to their end. What a larger page has before these is
 * in aliases of its own, which have derived names and no copies, and go with
 * the page. The last page of a block needs none:
 *
 *	pages of 4     root <- ab <- abcd <- ef <- efgh <- ... <- s0
 *	                       2     4       6     8
 *
 * A block is held while its last page is. Engines remove the last pages of a
 * prefix first, so all pages of a block are there until its last one is not;
 * where one goes before those behind it, that is a hole as any other: hold.c.
 * So a page that is removed from the middle of a block, and from nothing else
 * of a path that the engine keeps, ends nothing until what is behind it goes.
 *
 * The contents of a block that has begun are hashed again under the lock, since
 * where an event's first block begins is not known before.
 */
#include "pages.h"

#include "hash.h"
#include "mix.h"

/* Of aliases for what a page has before its last two tokens. */
#define INNER_NAME UINT64_C(0x2d87c6f1a95b40e3)

enum { WORD_TOKENS = 2 }; /* of an alias */

uint32_t
pages_size(const struct kvr *k, uint32_t block_tokens)
{
	uint32_t block = k->rule.block_size;

	return block_tokens > 0 && block_tokens < block &&
	    block % block_tokens == 0 ? block_tokens : 0;
}

uint64_t
pages_most(const struct kvr *k, const struct kvr_event *e)
{
	uint32_t size = pages_size(k, e->block_tokens);

	if (e->kind != KVR_EVENT_STORED || size == 0 || e->tokens == 0 ||
	    e->tier >= TIERS || (e->flags & KVR_EVENT_LOCALS) != 0)
		return 0;
	return e->tokens / size == e->hashes && e->tokens % size == 0
	    ? e->tokens / k->rule.block_size + 1 : 0;
}

/* Tokens that an alias has, behind so many of a block; the last may be less. */
static uint32_t
step(uint32_t size, uint32_t at)
{
	uint32_t left = size - at % size;

	return left < WORD_TOKENS ? left : WORD_TOKENS;
}

/* ------------------------------------------------------------- storing --- */

/* The tokens of an alias, which ends a number of them that was checked. */
static void
tokens_put(uint32_t *block, uint32_t at, uint32_t end, uint64_t tokens)
{
	for (; at < end; at++, tokens >>= 32)
		block[at] = (uint32_t)tokens;
}

bool
pages_begin(const struct kvr *k, struct pages *g, uint32_t parent,
    uint32_t *block, uint64_t *steps)
{
	uint32_t end = alias_begun(alias_at(k, parent)), at;

	g->begun = end;
	if (end >= k->rule.block_size || end % g->size != 0)
		return false;
	for (; end > 0; end = at, (*steps)++) {
		const struct alias *a = alias_at(k, parent);

		parent = read_once(a->parent);
		at = alias_begun(alias_at(k, parent));
		if (at >= end || at + step(g->size, at) != end)
			return false;
		tokens_put(block, at, end, a->sequence);
	}
	g->above = parent;
	return parent != 0 && parent <= k->layout.aliases;
}

void
pages_hash(const struct kvr *k, struct pages *g, const struct event_batch *b,
    const struct kvr_event *e, uint32_t *block, uint64_t *local)
{
	uint32_t size = k->rule.block_size, rest = size - g->begun, first = 0;
	struct kvr_scope scope = { 0 };
	struct hash_chain chain;

	g->tokens = b->tokens + e->tokens_at;
	g->blocks = (uint32_t)((g->begun + e->tokens) / size);
	if (g->blocks == 0)
		return;
	/* event_hash has found it good */
	(void)hash_scope_get(&k->rule, &e->scope, &scope);
	(void)hash_start(&k->rule, &scope, &chain);
	if (g->begun > 0) {
		memcpy(block + g->begun, g->tokens, rest * sizeof(*block));
		hash_token_blocks(&k->rule, &chain, block, 1, local);
		first = 1;
	}
	hash_token_blocks(&k->rule, &chain, g->tokens + first * rest,
	    g->blocks - first, local + first);
}

uint64_t
pages_end(const struct kvr *k, const struct pages *g, uint64_t i)
{
	return ((i + 1) * k->rule.block_size - g->begun) / g->size - 1;
}

/* The alias of this name, which there may be already. */
static uint32_t
find_or_add(struct kvr *k, const struct alias *like)
{
	uint32_t i = alias_find(k, like->life, like->name);
	const struct alias *a = alias_at(k, i);

	add_once(k->region->counts.steps, 1);
	if (i == 0)
		return alias_add(k, like);
	return a->sequence == like->sequence && a->parent == like->parent &&
	    alias_begun(a) == alias_begun(like) ? i : 0;
}

uint32_t
pages_add(struct kvr *k, const struct pages *g, struct alias *like, uint64_t i,
    uint64_t name)
{
	const uint32_t *tokens = g->tokens + i * g->size;
	uint64_t ends = g->begun + (i + 1) * g->size;
	uint32_t end = (uint32_t)(ends % k->rule.block_size);
	uint32_t at = end - g->size, n;

	like->name = name;
	if (end == 0) {
		like->node = g->node;
		like->sequence = g->sequence[ends / k->rule.block_size - 1];
		return like->parent = find_or_add(k, like);
	}
	for (; at < end; at += n) {
		n = step(g->size, at);
		like->node = ALIAS_WITHIN + at + n;
		like->sequence = tokens[0];
		if (n == WORD_TOKENS)
			like->sequence |= (uint64_t)tokens[1] << 32;
		tokens += n;
		like->name = at + n == end ? name
		    : mix((name ^ INNER_NAME) + at);
		like->parent = find_or_add(k, like);
		if (like->parent == 0)
			break;
	}
	return like->parent;
}

/* -------------------------------------------------------------- damage --- */

bool
pages_sound(const struct kvr *k, const struct alias *a)
{
	uint32_t begun = alias_begun(a), size;
	uint32_t at = alias_begun(alias_at(k, a->parent));

	if (begun == 0 && at == 0)
		return true;
	size = pages_size(k, stream_at(k, a->worker)->block_tokens);
	if (size == 0)
		return false;
	if (begun == 0)
		return at + size == k->rule.block_size;
	return begun < k->rule.block_size && begun == at + step(size, at);
}
