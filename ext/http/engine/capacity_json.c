/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capacity_json.c - SGLang's server info and llama.cpp's properties, see
 * capacity.h.
 *
 *   ROOT --+-- max_total_num_tokens, page_size, ...          numbers
 *          +-- internal_states --> STATES --> STATE, of the wanted rank
 *                                  (a list)     +-- the same numbers
 *                                               +-- memory_usage --> MEMORY
 *                                                     token_capacity, and
 *                                                     token_capacity_swa
 *
 * What a rank says about itself precedes what its server says.
 */
#include "capacity_in.h"

#include <string.h>

/* Those of numbers say which, those of names how much they count. */
static const struct finder_row rows[] = {
	{ INFO_ROOT, "max_total_num_tokens", INFO_NUMBER, INFO_TOKENS },
	{ INFO_ROOT, "page_size", INFO_NUMBER, INFO_PAGE },
	{ INFO_ROOT, "max_running_requests", INFO_NUMBER, INFO_RUNNING },
	{ INFO_ROOT, "internal_states", INFO_STATES, 0 },
	{ INFO_STATES, NULL, INFO_STATE, 0 },
	{ INFO_STATE, "max_total_num_tokens", INFO_NUMBER,
	    INFO_STATE_TOKENS },
	{ INFO_STATE, "memory_usage", INFO_MEMORY, 0 },
	{ INFO_MEMORY, "token_capacity", INFO_NUMBER, INFO_STATE_ROOM },
	{ INFO_MEMORY, "token_capacity_swa", INFO_NUMBER,
	    INFO_STATE_WINDOWS },
	{ INFO_STATE, "page_size", INFO_NUMBER, INFO_STATE_PAGE },
	{ INFO_STATE, "max_running_requests", INFO_NUMBER,
	    INFO_STATE_RUNNING },
	{ INFO_STATE, "effective_max_running_requests_per_dp", INFO_NUMBER,
	    INFO_STATE_SEQUENCES },
	{ INFO_ROOT, "total_slots", INFO_NUMBER, INFO_SLOTS },
	{ INFO_ROOT, "served_model_name", INFO_MODEL, 3 },
	{ INFO_ROOT, "model_alias", INFO_MODEL, 2 },
	{ INFO_ROOT, "model_path", INFO_MODEL, 1 }
};

/* -------------------------------------------------------------- values --- */

static void
model_take(struct info *o, const struct found *v)
{
	size_t n;

	if (v->kind != FOUND_STRING || (v->n == 0 && !v->cut) ||
	    v->which <= o->model_rank)
		return;
	capacity_model_set(o->model, v->text, v->n);
	n = strlen(o->model);
	if (v->cut && n < CAPACITY_MODEL_MAX - 1)
		memcpy(o->model + n, "?", 2);
	o->model_rank = v->which;
}

/* An element of the list. Older servers have one state, not a list of them. */
static void
state_take(struct info *o, struct found *v)
{
	const bool wanted = v->kind == FOUND_MAP && o->states == o->rank;

	v->place = wanted ? INFO_STATE : FOUND_NOWHERE;
	o->has_state |= wanted;
	o->states++;
}

static bool
value_take(void *context, struct found *v)
{
	struct info *o = context;

	if (v->kind == FOUND_END)
		return true;
	switch ((enum info_place)v->place) {
	case INFO_ROOT:
		return v->kind == FOUND_MAP;
	case INFO_STATES:
		if (v->kind == FOUND_MAP)
			state_take(o, v);
		break;
	case INFO_STATE:
		state_take(o, v);
		break;
	case INFO_NUMBER:
		if (v->kind == FOUND_NUMBER)
			o->numbers[v->which] = capacity_number(v->text, v->n,
			    CAPACITY_TOKENS_MAX);
		break;
	case INFO_MODEL:
		model_take(o, v);
		break;
	case INFO_MEMORY:
		break;
	}
	return true;
}

void
info_begin(struct info *o, uint32_t rank)
{
	static const struct finder_table table = { rows, sizeof(rows) /
	    sizeof(rows[0]), value_take };

	memset(o, 0, sizeof(*o));
	o->rank = rank;
	finder_begin(&o->finder, &table, o);
}

void
info_data(struct info *o, const char *bytes, size_t n)
{
	finder_data(&o->finder, bytes, n);
}

/* -------------------------------------------------------------- result --- */

/* The first that is known, and is not above `most`. */
static uint64_t
first_of(const struct info *o, const enum info_number *numbers, size_t n,
    uint64_t most)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (o->numbers[numbers[i]] != 0)
			return o->numbers[numbers[i]] <= most ?
			    o->numbers[numbers[i]] : 0;
	return 0;
}

void
info_end(struct info *o, struct capacity *out)
{
	static const enum info_number tokens[] = { INFO_STATE_TOKENS,
	    INFO_STATE_ROOM, INFO_TOKENS }, page[] = { INFO_STATE_PAGE,
	    INFO_PAGE }, sequences[] = { INFO_STATE_SEQUENCES,
	    INFO_STATE_RUNNING, INFO_RUNNING, INFO_SLOTS };

	/* Or there is no such rank. */
	if (!finder_end(&o->finder) || (o->rank > 0 && !o->has_state))
		return;
	out->tokens = first_of(o, tokens, 3, CAPACITY_TOKENS_MAX);
	out->block_tokens = (uint32_t)first_of(o, page, 2,
	    CAPACITY_BLOCK_MAX);
	out->sequences = (uint32_t)first_of(o, sequences, 4,
	    CAPACITY_SEQUENCES_MAX);
	if (out->tokens != 0) {
		out->kind = CAPACITY_SGLANG;
		out->window_tokens = o->numbers[INFO_STATE_WINDOWS];
	} else if (o->numbers[INFO_SLOTS] != 0) {
		out->kind = CAPACITY_LLAMA;
	}
	if (out->kind != CAPACITY_OTHER)
		memcpy(out->model, o->model, sizeof(o->model));
}
