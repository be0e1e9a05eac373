/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prompt.c - the object that hashes a prompt given in arbitrary pieces.
 *
 *   given so far     | block 0 | block 1 | block 2 | ...tail |
 *   local            |   l0    |   l1    |   l2    |
 *   chained          |   s0    |   s1    |  (at end, if the scope may still
 *                                            come; else at once)
 *
 * Whole blocks are hashed directly from the caller's memory. Only a block that
 * a call leaves incomplete passes through the tail, where the first bytes of
 * the next call complete it. With EAGLE a block's hash covers one token more
 * than its length, the first token of the next block:
 *
 *   tokens           t0 t1 t2 t3 t4 t5 t6 t7 t8      block_size 4
 *   window 0         [------------]
 *   window 1                     [------------]
 *   tail                                     [       it always holds t[4 * i]
 *
 * so the tail keeps that token, and blocks = (tokens - 1) / block_size.
 *
 * When to chain. If the scope is given at begin, or everything in one call, the
 * chain is computed together with the local hashes. If begin has no scope, end
 * may still give one, and a chain computed earlier would be discarded. With
 * KVR_HASH_DYNAMO the scope is part of every local hash and must come first,
 * so the chain is computed at once.
 *
 * Invariants:
 *   - units - blocks * block_size is the content of the tail, in units (only
 *     with EAGLE and blocks given as hashes, the token that should be in the
 *     tail is counted but not known);
 *   - local[0..blocks) and sequence[0..chain.blocks) are valid under `scope`;
 *     closed means that the two counts are equal. A resumed prompt has them
 *     only from block `base` on: see saved.c;
 *   - memory is allocated before anything changes: a call that fails leaves
 *     the content of the prompt unchanged and may be repeated. end allocates
 *     no memory;
 *   - media[next_media..n_media) are of blocks not yet complete.
 */
#include "prompt.h"

#include "id.h"

#include <stdlib.h>

enum {
	FIRST_BLOCKS = 64,  /* smallest allocation */
	SWAP_TOKENS = 256   /* per pass, on big-endian machines */
};

/* The index counts blocks in 32 bits; one value is reserved. */
#define BLOCKS_MAX (UINT32_MAX - 1)

/* ----------------------------------------------------------- new, free --- */

int
prompt_new(const struct hash_rule *rule, struct kvr_prompt **out)
{
	struct kvr_prompt *p;

	if (rule == NULL || out == NULL || rule->block_size == 0)
		return KVR_EINVAL;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return KVR_ENOMEM;
	p->rule = *rule;
	p->stride = hash_stride(rule);
	p->window = hash_window(rule);
	p->tail = malloc(p->window);
	if (p->tail == NULL) {
		free(p);
		return KVR_ENOMEM;
	}
	*out = p;
	return KVR_OK;
}

void
kvr_prompt_free(struct kvr_prompt *p)
{
	if (p == NULL)
		return;
	free(p->sequence);
	free(p->local);
	free(p->allowed);
	free(p->scratch);
	free(p->tail);
	free(p->media);
	free(p);
}

/* -------------------------------------------------------------- memory --- */

/* The new capacity when `need` elements are needed; 0: too many. */
static size_t
room_for(size_t capacity, size_t need, size_t element)
{
	size_t room = capacity + capacity / 2;

	if (room < need)
		room = need;
	if (room < FIRST_BLOCKS)
		room = FIRST_BLOCKS;
	return room > SIZE_MAX / 2 / element ? 0 : room;
}

/* Makes room for the hashes of n more blocks; those below `base` have none. */
static int
reserve_blocks(struct kvr_prompt *p, uint32_t base, uint32_t already,
    uint64_t n)
{
	uint64_t *local, *sequence;
	size_t room;

	if (n > BLOCKS_MAX - already)
		return KVR_EINVAL;
	already -= base;
	if (already + n <= p->capacity)
		return KVR_OK;
	room = room_for(p->capacity, already + (size_t)n, sizeof(*local));
	local = realloc(p->local, room * sizeof(*local));
	if (local == NULL)
		return KVR_ENOMEM;
	p->local = local;
	sequence = realloc(p->sequence, room * sizeof(*sequence));
	if (sequence == NULL)
		return KVR_ENOMEM;
	p->sequence = sequence;
	p->capacity = room;
	return KVR_OK;
}

static int
reserve_media(struct kvr_prompt *p, size_t n)
{
	struct hash_media *media;
	size_t room;

	if (n > SIZE_MAX - p->n_media)
		return KVR_EINVAL;
	if (p->n_media + n <= p->media_capacity)
		return KVR_OK;
	room = room_for(p->media_capacity, p->n_media + n, sizeof(*media));
	if (room == 0)
		return KVR_EINVAL;
	media = realloc(p->media, room * sizeof(*media));
	if (media == NULL)
		return KVR_ENOMEM;
	p->media = media;
	p->media_capacity = room;
	return KVR_OK;
}

int
prompt_room(struct kvr_prompt *p, uint32_t n, size_t m)
{
	int e = reserve_blocks(p, 0, 0, n);

	return e == KVR_OK ? reserve_media(p, m) : e;
}

void *
prompt_scratch(struct kvr_prompt *p, size_t bytes)
{
	size_t room;
	void *scratch;

	if (bytes <= p->scratch_bytes && p->scratch != NULL)
		return p->scratch;
	room = room_for(p->scratch_bytes, bytes, 1);
	if (room == 0)
		return NULL;
	scratch = realloc(p->scratch, room);
	if (scratch == NULL)
		return NULL;
	memset((char *)scratch + p->scratch_bytes, 0, room - p->scratch_bytes);
	p->scratch = scratch;
	p->scratch_bytes = room;
	return scratch;
}

/* ------------------------------------------------------- begin and end --- */

/* Sets the scope and restarts the chain at the first block. */
static void
enter_scope(struct kvr_prompt *p, const struct kvr_scope *scope)
{
	p->scope = *scope;
	p->root = hash_start(&p->rule, scope, &p->chain);
}

static void
begin_prompt(struct kvr_prompt *p, const struct kvr_scope *scope, bool deferred)
{
	enter_scope(p, scope);
	p->deferred = deferred;
	p->begun = 1;
	p->closed = 0;
	p->by_locals = 0;
	p->resumed = p->first = p->base = 0;
	p->blocks = p->share = 0;
	p->units = 0;
	p->tail_bytes = 0;
	p->n_allowed = 0;
	p->n_media = p->next_media = 0;
	p->media_sorted = 1;
}

int
kvr_prompt_begin(struct kvr_prompt *p, const struct kvr_scope *scope)
{
	struct kvr_scope whole;
	int e;

	if (p == NULL)
		return KVR_EINVAL;
	if ((e = hash_scope_get(&p->rule, scope, &whole)) != KVR_OK)
		return e;
	begin_prompt(p, &whole,
	    scope == NULL && p->rule.kind == KVR_HASH_KEYED);
	return KVR_OK;
}

/* Where the hashes of the next block to be complete, or chained, belong. */
static uint64_t *
local_at(const struct kvr_prompt *p, uint32_t block)
{
	return p->local + (block - p->base);
}

static uint64_t *
sequence_at(const struct kvr_prompt *p, uint32_t block)
{
	return p->sequence + (block - p->base);
}

/* Chains the blocks that are not chained yet. */
static void
end_chain(struct kvr_prompt *p)
{
	const uint32_t from = p->chain.blocks;

	if (from < p->blocks)
		hash_chain_on(&p->rule, &p->chain, local_at(p, from),
		    p->blocks - from, sequence_at(p, from));
	p->tail_digest = hash_tail(&p->rule, p->tail, p->tail_bytes);
	p->deferred = 0;
	p->closed = 1;
}

int
kvr_prompt_end(struct kvr_prompt *p, const struct kvr_scope *scope)
{
	struct kvr_scope whole;
	int e;

	if (p == NULL)
		return KVR_EINVAL;
	if (!p->begun)
		return KVR_ESTATE;
	if (scope != NULL) {
		if (p->rule.kind == KVR_HASH_DYNAMO)
			return KVR_EINVAL;
		if ((e = hash_scope_get(&p->rule, scope, &whole)) != KVR_OK)
			return e;
		if (memcmp(whole.digest, p->scope.digest,
		    sizeof(whole.digest)) != 0) {
			if (p->resumed)
				return KVR_ESTATE;
			enter_scope(p, &whole);
		}
	}
	end_chain(p);
	return KVR_OK;
}

/* --------------------------------------------------------------- media --- */

int
kvr_prompt_media(struct kvr_prompt *p, size_t block, const uint64_t *hashes,
    size_t n)
{
	size_t i;
	int e;

	if (p == NULL || (hashes == NULL && n > 0) || block >= BLOCKS_MAX)
		return KVR_EINVAL;
	if (!p->begun || block < p->blocks)
		return KVR_ESTATE;
	if (p->next_media == p->n_media)
		p->next_media = p->n_media = 0;
	if ((e = reserve_media(p, n)) != KVR_OK)
		return e;
	for (i = 0; i < n; i++) {
		p->media[p->n_media].block = (uint32_t)block;
		p->media[p->n_media].hash = hashes[i];
		p->n_media++;
	}
	if (n > 0)
		p->media_sorted = 0;
	return KVR_OK;
}

/* Whether any of the next n blocks has media. They may be unsorted. */
static bool
has_media(const struct kvr_prompt *p, size_t n)
{
	size_t i;

	for (i = p->next_media; i < p->n_media; i++)
		if (p->media[i].block - p->blocks < n)
			return true;
	return false;
}

/* How many of the next n blocks precede the first one with media. */
static size_t
without_media(const struct kvr_prompt *p, size_t n)
{
	size_t gap;

	if (p->next_media == p->n_media)
		return n;
	gap = p->media[p->next_media].block - p->blocks;
	return gap < n ? gap : n;
}

/* -------------------------------------------------------------- blocks --- */

static bool
chains_at_once(const struct kvr_prompt *p)
{
	return !p->deferred && p->chain.blocks == p->blocks;
}

/* Hashes n whole blocks without media. */
static void
plain_blocks(struct kvr_prompt *p, const unsigned char *from, size_t n)
{
	uint64_t *local = local_at(p, p->blocks);

	if (chains_at_once(p))
		hash_blocks_chained(&p->rule, &p->chain, from, n, local,
		    sequence_at(p, p->blocks));
	else
		hash_blocks(&p->rule, &p->chain, from, n, local);
	p->blocks += (uint32_t)n;
}

/* Hashes one whole block with the next media. */
static void
media_block(struct kvr_prompt *p, const unsigned char *from)
{
	const struct hash_media *first = p->media + p->next_media;
	uint64_t *local = local_at(p, p->blocks);
	size_t n = 0;

	while (p->next_media + n < p->n_media && first[n].block == p->blocks)
		n++;
	*local = hash_block_media(&p->rule, &p->chain, from, first, n);
	if (chains_at_once(p))
		hash_chain_on(&p->rule, &p->chain, local, 1,
		    sequence_at(p, p->blocks));
	p->next_media += n;
	p->blocks++;
}

static void
whole_blocks(struct kvr_prompt *p, const unsigned char *from, size_t n)
{
	size_t plain;

	while ((plain = without_media(p, n)) < n) {
		if (plain > 0)
			plain_blocks(p, from, plain);
		media_block(p, from + plain * p->stride);
		from += (plain + 1) * p->stride;
		n -= plain + 1;
	}
	if (n > 0)
		plain_blocks(p, from, n);
}

/* Consumes the caller's data; room is reserved, bytes is not 0. */
static void
absorb_bytes(struct kvr_prompt *p, const unsigned char *from, size_t bytes)
{
	size_t n = p->window - p->tail_bytes;

	if (p->tail_bytes > 0) {
		if (n > bytes)
			n = bytes;
		memcpy(p->tail + p->tail_bytes, from, n);
		p->tail_bytes += n;
		if (p->tail_bytes < p->window)
			return;
		whole_blocks(p, p->tail, 1);
		/* with EAGLE the end of this copy begins the next window */
		n -= p->window - p->stride;
		from += n;
		bytes -= n;
	}
	if (bytes >= p->window) {
		n = (bytes - p->window) / p->stride + 1;
		whole_blocks(p, from, n);
		from += n * p->stride;
		bytes -= n * p->stride;
	}
	memcpy(p->tail, from, bytes);
	p->tail_bytes = bytes;
}

/* Tokens are hashed as little-endian words. */
static void
absorb_tokens(struct kvr_prompt *p, const uint32_t *tokens, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	uint32_t swapped[SWAP_TOKENS];
	size_t i, some;

	for (; n > 0; n -= some, tokens += some) {
		some = n < SWAP_TOKENS ? n : SWAP_TOKENS;
		for (i = 0; i < some; i++)
			swapped[i] = __builtin_bswap32(tokens[i]);
		absorb_bytes(p, (const unsigned char *)swapped,
		    some * sizeof(*swapped));
	}
#else
	absorb_bytes(p, (const unsigned char *)tokens, n * sizeof(*tokens));
#endif
}

static void
absorb_units(struct kvr_prompt *p, const void *units, size_t n)
{
	if (!p->media_sorted) {
		hash_media_sort(p->media + p->next_media,
		    p->n_media - p->next_media);
		p->media_sorted = 1;
	}
	if (p->rule.unit == KVR_UNIT_TOKENS)
		absorb_tokens(p, units, n);
	else
		absorb_bytes(p, units, n);
	p->units += n;
	p->closed = 0;
}

/* --------------------------------------------------------------- input --- */

/*
 * Makes room for the blocks that n more units complete, when `tail` units of
 * the block after `blocks` are already there, and no hashes below `base`.
 */
static int
reserve_units(struct kvr_prompt *p, uint32_t base, uint32_t blocks,
    uint64_t tail, size_t n)
{
	const uint32_t size = p->rule.block_size;

	if (n > SIZE_MAX / 2 / sizeof(uint32_t))
		return KVR_EINVAL;
	if (n == 0)
		return KVR_OK;
	return reserve_blocks(p, base, blocks,
	    (tail + n - (p->rule.eagle ? 1 : 0)) / size);
}

static int
give_units(struct kvr_prompt *p, uint32_t unit, const void *units, size_t n)
{
	int e;

	if (p == NULL || p->rule.unit != unit || (units == NULL && n > 0))
		return KVR_EINVAL;
	if (!p->begun || (p->rule.eagle && p->by_locals))
		return KVR_ESTATE;
	e = reserve_units(p, p->base, p->blocks,
	    p->units - (uint64_t)p->blocks * p->rule.block_size, n);
	if (e == KVR_OK && n > 0)
		absorb_units(p, units, n);
	return e;
}

int
kvr_prompt_tokens(struct kvr_prompt *p, const uint32_t *tokens, size_t n)
{
	return give_units(p, KVR_UNIT_TOKENS, tokens, n);
}

int
kvr_prompt_bytes(struct kvr_prompt *p, const void *bytes, size_t n)
{
	return give_units(p, KVR_UNIT_BYTES, bytes, n);
}

/* All that may fail comes before begin, which discards the old content. */
static int
set_units(struct kvr_prompt *p, const struct kvr_scope *scope, uint32_t unit,
    const void *units, size_t n)
{
	struct kvr_scope whole;
	int e;

	if (p == NULL || p->rule.unit != unit || (units == NULL && n > 0))
		return KVR_EINVAL;
	if ((e = hash_scope_get(&p->rule, scope, &whole)) != KVR_OK ||
	    (e = reserve_units(p, 0, 0, 0, n)) != KVR_OK)
		return e;
	begin_prompt(p, &whole, false);
	if (n > 0)
		absorb_units(p, units, n);
	end_chain(p);
	return KVR_OK;
}

int
kvr_prompt_set_tokens(struct kvr_prompt *p, const struct kvr_scope *scope,
    const uint32_t *tokens, size_t n)
{
	return set_units(p, scope, KVR_UNIT_TOKENS, tokens, n);
}

int
kvr_prompt_set_bytes(struct kvr_prompt *p, const struct kvr_scope *scope,
    const void *bytes, size_t n)
{
	return set_units(p, scope, KVR_UNIT_BYTES, bytes, n);
}

/*
 * Allowed only at a block boundary, and not over blocks with media, since a
 * local hash includes its media. EAGLE windows overlap, so there is no boundary
 * at which to switch between tokens and hashes: with EAGLE a prompt has only
 * local hashes or none, and one token beyond their blocks is counted.
 */
int
kvr_prompt_locals(struct kvr_prompt *p, const uint64_t *hashes, size_t n)
{
	int e;

	if (p == NULL || (hashes == NULL && n > 0))
		return KVR_EINVAL;
	if (!p->begun || p->tail_bytes > 0 || has_media(p, n))
		return KVR_ESTATE;
	if ((e = reserve_blocks(p, p->base, p->blocks, n)) != KVR_OK ||
	    n == 0)
		return e;
	memcpy(local_at(p, p->blocks), hashes, n * sizeof(*hashes));
	p->blocks += (uint32_t)n;
	p->units = (uint64_t)p->blocks * p->rule.block_size +
	    (p->rule.eagle ? 1 : 0);
	p->by_locals = 1;
	p->closed = 0;
	return KVR_OK;
}

int
kvr_prompt_allow(struct kvr_prompt *p, const uint64_t *workers, size_t n)
{
	uint64_t *allowed;
	size_t room, i;

	if (p == NULL || (workers == NULL && n > 0))
		return KVR_EINVAL;
	if (!p->begun && !p->closed)
		return KVR_ESTATE;
	room = p->allowed_capacity;
	if (n > room)
		room = room_for(room, n, sizeof(*allowed));
	if (n > room)
		return KVR_EINVAL;
	for (i = 0; i < n; i++)
		if (id_is_lease(workers[i]))
			return KVR_EWORKER;
	if (room > p->allowed_capacity) {
		allowed = realloc(p->allowed, room * sizeof(*allowed));
		if (allowed == NULL)
			return KVR_ENOMEM;
		p->allowed = allowed;
		p->allowed_capacity = room;
	}
	if (n > 0)
		memcpy(p->allowed, workers, n * sizeof(*workers));
	p->n_allowed = n;
	return KVR_OK;
}

/* ------------------------------------------------------------- queries --- */

uint64_t
prompt_tokens(const struct kvr_prompt *p)
{
	return p->rule.unit == KVR_UNIT_TOKENS ? p->units : (p->units + 3) / 4;
}

uint64_t
prompt_blocks_tokens(const struct kvr_prompt *p, uint32_t blocks)
{
	uint32_t units = p->rule.unit == KVR_UNIT_BYTES ? 4 : 1;

	return ((uint64_t)blocks * p->rule.block_size + units / 2) / units;
}

int
kvr_prompt_info_get(const struct kvr_prompt *p, struct kvr_prompt_info *out)
{
	struct kvr_prompt_info info;

	if (p == NULL || out == NULL || !struct_has_size(out->size))
		return KVR_EINVAL;
	info.size = sizeof(info);
	info.units = p->units;
	info.tokens = prompt_tokens(p);
	info.blocks = p->blocks;
	info.tail = (uint32_t)(p->units -
	    (uint64_t)p->blocks * p->rule.block_size);
	struct_put(out, out->size, &info, sizeof(info));
	return KVR_OK;
}

int
kvr_prompt_hash(const struct kvr_prompt *p, size_t i, uint64_t *local,
    uint64_t *sequence)
{
	if (p == NULL || local == NULL || sequence == NULL)
		return KVR_EINVAL;
	if (!p->closed || !p->begun)
		return KVR_ESTATE;
	if (i >= p->blocks)
		return KVR_EINVAL;
	if (i < p->first)
		return KVR_ESTATE;
	*local = *local_at(p, (uint32_t)i);
	*sequence = *sequence_at(p, (uint32_t)i);
	return KVR_OK;
}
