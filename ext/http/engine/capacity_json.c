/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capacity_json.c - reads SGLang's server info and llama.cpp's properties, see
 * capacity.h.
 *
 *   ROOT --+-- max_total_num_tokens, page_size, ...          numbers
 *          +-- internal_states --> STATES --> STATE, of the wanted rank
 *                                  (a list)     +-- the same numbers
 *                                               +-- memory_usage --> MEMORY
 *                                                     token_capacity, and
 *                                                     token_capacity_swa
 *
 * The facts of a rank precede those of its server.
 */
#include "capacity_in.h"

#include <string.h>

/* `which` of a number is an enum info_number, of a name its precedence. */
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
	{ INFO_MEMORY, "kvcache", INFO_DECIMAL, INFO_GB },
	{ INFO_ROOT, "enable_hierarchical_cache", INFO_FLAG, 0 },
	{ INFO_ROOT, "hicache_ratio", INFO_DECIMAL, INFO_RATIO },
	{ INFO_ROOT, "hicache_size", INFO_DECIMAL, INFO_HOST_GB },
	{ INFO_ROOT, "dp_size", INFO_NUMBER, INFO_RANKS },
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

/* Takes one state. Older servers publish one state instead of a list. */
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
	case INFO_DECIMAL:
		if (v->kind == FOUND_NUMBER)
			o->decimals[v->which] = capacity_decimal(v->text, v->n);
		break;
	case INFO_FLAG:
		o->tiered = v->kind == FOUND_BOOLEAN && v->n == 1;
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

/* Returns the first number that is known, or 0 if that is above `most`. */
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

/* The host's memory has its own size, or a ratio to the engine's. */
static void
offload_take(const struct info *o, struct capacity *out)
{
	const double *d = o->decimals;
	double tokens = 0;

	if (!o->tiered || out->tokens == 0)
		return;
	out->offload_bytes = (uint64_t)(d[INFO_HOST_GB] * 1e9);
	if (d[INFO_HOST_GB] > 0 && d[INFO_GB] > 0)
		tokens = (double)out->tokens * d[INFO_HOST_GB] / d[INFO_GB];
	else if (d[INFO_HOST_GB] == 0)
		tokens = (double)out->tokens * d[INFO_RATIO];
	if (tokens < (double)CAPACITY_TOKENS_MAX)
		out->offload_tokens = (uint64_t)tokens;
}

void
info_end(struct info *o, struct capacity *out)
{
	static const enum info_number tokens[] = { INFO_STATE_TOKENS,
	    INFO_STATE_ROOM, INFO_TOKENS }, page[] = { INFO_STATE_PAGE,
	    INFO_PAGE }, sequences[] = { INFO_STATE_SEQUENCES,
	    INFO_STATE_RUNNING, INFO_RUNNING, INFO_SLOTS };

	/* The text is broken, or lacks the wanted rank. */
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
		out->ranks = (uint32_t)(o->numbers[INFO_RANKS] <
		    CAPACITY_RANKS_MAX ? o->numbers[INFO_RANKS] : 0);
		offload_take(o, out);
	} else if (o->numbers[INFO_SLOTS] != 0) {
		out->kind = CAPACITY_LLAMA;
	}
	if (out->kind != CAPACITY_OTHER)
		memcpy(out->model, o->model, sizeof(o->model));
}
