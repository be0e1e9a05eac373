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
 * in inner aliases, six tokens in each: no engine names them, so they are found
 * from the page alone, and go with it. The last page of a block needs none:
 *
 *	pages of 4     root <- [ab] <- cd <- [ef] <- gh <- ... <- s0
 *	                        2      4      6      8
 *
 * A block is held while its last page is. Engines remove the last pages of a
 * prefix first, so all pages of a block are there until its last one is not;
 * where one goes before those behind it, that is a hole as any other: hold.c.
 * It ends nothing until what is behind it goes, though the engine can use none
 * of that:
 *
 *	a b c - e f g h     s0 and s1 count until h, g, f and e are removed
 *
 * To end it at once, all blocks behind the hole would have to be found, and
 * found again when the page is back: by links from each alias to its children
 * and to the next of these, for a block that has begun has no hash, and so no
 * place in the index from which a search could start. That is 8 bytes for each
 * alias, a fifth, against what engines that evict the end of a prefix first do
 * not do.
 *
 * The contents of a block that has begun are hashed again under the lock, since
 * where an event's first block begins is not known before.
 */
#include "pages.h"

#include "hash.h"

enum { WORD_TOKENS = 2, INNER_TOKENS = 6 }; /* of an alias, at most */

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

/* Tokens of a page that are in an alias of its own: the last ones. */
static uint32_t
last_of(uint32_t size)
{
	return size < WORD_TOKENS ? size : WORD_TOKENS;
}

uint64_t
pages_aliases(uint32_t size)
{
	return 1 + (size - last_of(size) + INNER_TOKENS - 1) / INNER_TOKENS;
}

/* Tokens that an alias has, behind so many of a block. */
static uint32_t
step_of_page(uint32_t size, uint32_t at)
{
	uint32_t left = size - at % size, inner = left - last_of(size);

	if (left <= last_of(size))
		return left;
	return inner < INNER_TOKENS ? inner : INNER_TOKENS;
}

/* Is it one that can end there? Its place behind another is not looked at. */
static bool
of_its_kind(const struct alias *a, uint32_t size, uint32_t end)
{
	return alias_inner(a) == (end % size != 0);
}

/* ------------------------------------------------------------- storing --- */

static void
word_put(uint64_t *word, const uint32_t *tokens, uint32_t n)
{
	*word = tokens[0];
	if (n > 1)
		*word |= (uint64_t)tokens[1] << 32;
}

static void
word_get(uint64_t word, uint32_t *tokens)
{
	tokens[0] = (uint32_t)word;
	tokens[1] = (uint32_t)(word >> 32);
}

/* Of an inner one, which has as many as there is room for, or fewer. */
static void
inner_put(struct alias *a, const uint32_t *tokens, uint32_t n)
{
	uint32_t all[INNER_TOKENS] = { 0 };

	memcpy(all, tokens, n * sizeof(*all));
	word_put(&a->sequence, &all[0], WORD_TOKENS);
	word_put(&a->name, &all[2], WORD_TOKENS);
	a->next = all[4];
	a->children = all[5];
}

/* The tokens of an alias, of which there is a number that was checked. */
static void
tokens_get(const struct alias *a, uint32_t *tokens, uint32_t n)
{
	uint32_t all[INNER_TOKENS] = { 0 };

	word_get(a->sequence, &all[0]);
	if (alias_inner(a)) {
		word_get(a->name, &all[2]);
		all[4] = a->next;
		all[5] = a->children;
	}
	memcpy(tokens, all, n * sizeof(*all));
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
		if (at >= end || at + step_of_page(g->size, at) != end ||
		    !of_its_kind(a, g->size, end))
			return false;
		tokens_get(a, block + at, end - at);
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

/*
 * Is what has this name the page that ends so? Its tokens before the last two
 * are the same if its name is: they are not compared.
 */
static bool
same_page(struct kvr *k, const struct pages *g, const struct alias *like,
    uint32_t alias)
{
	const struct alias *a = alias_at(k, alias);
	uint64_t left = pages_aliases(g->size);

	if (a->sequence != like->sequence ||
	    alias_begun(a) != alias_begun(like))
		return false;
	if (alias_begun(a) == 0)
		return a->parent == like->parent;
	for (; left > 0; left--)
		a = alias_at(k, alias = read_once(a->parent));
	add_once(k->region->counts.steps, pages_aliases(g->size));
	return alias == like->parent;
}

/* What a page has before its last tokens. false: there are no more aliases. */
static bool
add_inner(struct kvr *k, const struct pages *g, struct alias *like,
    uint32_t at, const uint32_t *tokens)
{
	uint32_t left = g->size - last_of(g->size), n;

	for (; left > 0 && like->parent != 0; left -= n, tokens += n) {
		n = step_of_page(g->size, at);
		at += n;
		like->node = ALIAS_INNER + at;
		inner_put(like, tokens, n);
		like->parent = alias_add(k, like);
		add_once(k->region->counts.steps, 1);
	}
	return like->parent != 0;
}

uint32_t
pages_add(struct kvr *k, const struct pages *g, struct alias *like, uint64_t i,
    uint64_t name)
{
	const uint32_t *tokens = g->tokens + i * g->size;
	uint32_t last = last_of(g->size), have;
	uint64_t ends = g->begun + (i + 1) * g->size, sequence;
	uint32_t end = (uint32_t)(ends % k->rule.block_size);
	uint32_t node = end > 0 ? ALIAS_WITHIN + end : g->node;

	if (end > 0)
		word_put(&sequence, &tokens[g->size - last], last);
	else
		sequence = g->sequence[ends / k->rule.block_size - 1];
	like->node = node;
	like->sequence = sequence;
	add_once(k->region->counts.steps, 1);
	have = alias_find(k, like->life, name);
	if (have != 0)
		return like->parent = same_page(k, g, like, have) ? have : 0;
	if (end > 0 && !add_inner(k, g, like, end - g->size, tokens))
		return 0;
	like->name = name;
	like->node = node;
	like->sequence = sequence;
	return like->parent = alias_add(k, like);
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
	return begun < k->rule.block_size &&
	    begun == at + step_of_page(size, at) && of_its_kind(a, size, begun);
}
