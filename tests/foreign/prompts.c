/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prompts.c - prompts that share prefixes. Prompts of one family are equal up
 * to a cut, then continue by variant. Families, cuts and variants are few, so
 * that paths are split, extended and met again.
 */
#include "foreign.h"

#include <inttypes.h>
#include <stdio.h>

void
prompt_scopes(struct world *w)
{
	static const enum kvr_scope_part part[SCOPES] = {
		KVR_SCOPE_ADAPTER, KVR_SCOPE_ADAPTER, KVR_SCOPE_SALT,
		KVR_SCOPE_MODEL
	};
	uint32_t i;

	for (i = 0; i < SCOPES; i++)
		must("scope", kvr_scope_init(&w->scope[i],
		    sizeof(w->scope[i])));
	for (i = 1; i < SCOPES; i++) {
		if (w->s->hash == KVR_HASH_DYNAMO &&
		    part[i] == KVR_SCOPE_MODEL)
			continue;
		must("scope", kvr_scope_set(w->k, &w->scope[i], part[i],
		    "tuned", i + 2));
	}
}

/* A word at place `i` of the current prompt. */
static uint32_t
word_at(const struct world *w, uint32_t i)
{
	struct rng r = { (uint64_t)w->at.family << 40 | i };

	if (i >= w->at.cut)
		r.state |= (uint64_t)(w->at.variant + 1) << 32;
	return (uint32_t)(rng_next(&r) >> 32);
}

static void
fill(struct world *w)
{
	uint32_t i;

	for (i = 0; i < w->at.length; i++) {
		w->tokens[i] = word_at(w, i);
		w->bytes[i] = (unsigned char)(w->tokens[i] >> 24);
	}
}

static int
give_units(struct world *w, uint32_t from, uint32_t n)
{
	return w->s->unit == KVR_UNIT_BYTES
	    ? kvr_prompt_bytes(w->p, w->bytes + from, n)
	    : kvr_prompt_tokens(w->p, w->tokens + from, n);
}

/* Gives it in pieces, the scope late where possible, and some images. */
static int
give_pieces(struct world *w, const struct kvr_scope *scope)
{
	const uint64_t media[2] = { w->at.variant, UINT64_MAX };
	bool late = w->s->hash == KVR_HASH_KEYED;
	uint32_t i, n, whole = w->at.length / w->s->block_size;
	int error = kvr_prompt_begin(w->p, late ? NULL : scope);

	if (error == KVR_OK && w->at.variant == 3 && whole > 2)
		error = kvr_prompt_media(w->p, whole / 2, media, 2);
	for (i = 0; error == KVR_OK && i < w->at.length; i += n) {
		n = 1 + w->at.family * 7;
		n = n < w->at.length - i ? n : w->at.length - i;
		error = give_units(w, i, n);
	}
	return error != KVR_OK ? error
	    : kvr_prompt_end(w->p, late ? scope : NULL);
}

/* Blocks given by their hashes. */
static int
give_locals(struct world *w, const struct kvr_scope *scope)
{
	uint64_t local[40];
	uint32_t i, n = w->at.length % 40;
	int error = kvr_prompt_begin(w->p, scope);

	for (i = 0; i < n; i++)
		local[i] = (uint64_t)word_at(w, i) << 32 | i;
	if (error == KVR_OK)
		error = kvr_prompt_locals(w->p, local, n);
	return error != KVR_OK ? error : kvr_prompt_end(w->p, NULL);
}

static int
give(struct world *w)
{
	const struct kvr_scope *scope = &w->scope[w->at.scope];

	if (w->at.variant == 3 || w->at.variant == 4)
		return give_pieces(w, scope);
	if (w->at.variant == 5)
		return give_locals(w, scope);
	return w->s->unit == KVR_UNIT_BYTES
	    ? kvr_prompt_set_bytes(w->p, scope, w->bytes, w->at.length)
	    : kvr_prompt_set_tokens(w->p, scope, w->tokens, w->at.length);
}

static void
show(struct world *w)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };
	uint64_t local = 0, sequence = 0;
	int error = give(w);

	must("kvr_prompt_info_get", kvr_prompt_info_get(w->p, &info));
	if (info.blocks > 0)
		must("kvr_prompt_hash", kvr_prompt_hash(w->p, info.blocks - 1,
		    &local, &sequence));
	printf("prompt %s %" PRIu64 " %" PRIu64 " %u %u %016" PRIx64
	    " %016" PRIx64 "\n", kvr_errname(error), info.units, info.tokens,
	    info.blocks, info.tail, local, sequence);
}

void
prompt_draw(struct world *w)
{
	uint64_t allowed[5];
	uint32_t i, b = w->s->block_size, most = PROMPT_UNITS / b;

	most = pick(w, 8) == 0 ? most : most / 8;
	w->at.family = pick(w, FAMILIES);
	w->at.cut = pick(w, 4) * 5 * b;
	w->at.variant = pick(w, 6);
	w->at.length = pick(w, 3) == 0 ? pick(w, most * b) : pick(w, most) * b;
	w->at.scope = pick(w, 3) > 0 ? 0 : pick(w, SCOPES);
	fill(w);
	show(w);
	if (pick(w, 16) != 0)
		return;
	for (i = 0; i < 5; i++)
		allowed[i] = pick_worker(w);
	printf("allow %s\n", kvr_errname(kvr_prompt_allow(w->p, allowed, 5)));
}

void
prompt_of_lease(struct world *w, uint32_t lease)
{
	w->at = w->lease[lease];
	w->at.length += pick(w, 4) * w->s->block_size + pick(w, 3);
	if (w->at.length > PROMPT_UNITS)
		w->at.length = PROMPT_UNITS;
	w->lease[lease] = w->at;
	fill(w);
	show(w);
}
