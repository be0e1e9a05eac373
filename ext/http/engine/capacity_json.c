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
 * What a rank says about itself precedes what its server says. The text is
 * thinned first: a string passes up to an escape, or up to KEPT bytes, and a
 * question mark stands for its rest. So no token that YAJL has to keep is long,
 * and cutting never makes a name.
 */
#include "capacity_in.h"

#include <string.h>

enum {
	KEPT = CAPACITY_MODEL_MAX,
	DEPTH_MAX = 100 /* of nesting; YAJL takes a byte a level */
};

struct name {
	const char *text;
	enum info_place in, is;
	unsigned which; /* enum info_number, or the rank of a model's name */
};
static const struct name names[] = {
	{ "max_total_num_tokens", INFO_ROOT, INFO_NUMBER, INFO_TOKENS },
	{ "page_size", INFO_ROOT, INFO_NUMBER, INFO_PAGE },
	{ "max_running_requests", INFO_ROOT, INFO_NUMBER, INFO_RUNNING },
	{ "internal_states", INFO_ROOT, INFO_STATES, 0 },
	{ "max_total_num_tokens", INFO_STATE, INFO_NUMBER,
	    INFO_STATE_TOKENS },
	{ "memory_usage", INFO_STATE, INFO_MEMORY, 0 },
	{ "token_capacity", INFO_MEMORY, INFO_NUMBER, INFO_STATE_ROOM },
	{ "token_capacity_swa", INFO_MEMORY, INFO_NUMBER,
	    INFO_STATE_WINDOWS },
	{ "page_size", INFO_STATE, INFO_NUMBER, INFO_STATE_PAGE },
	{ "max_running_requests", INFO_STATE, INFO_NUMBER,
	    INFO_STATE_RUNNING },
	{ "effective_max_running_requests_per_dp", INFO_STATE, INFO_NUMBER,
	    INFO_STATE_SEQUENCES },
	{ "total_slots", INFO_ROOT, INFO_NUMBER, INFO_SLOTS },
	{ "served_model_name", INFO_ROOT, INFO_MODEL, 3 },
	{ "model_alias", INFO_ROOT, INFO_MODEL, 2 },
	{ "model_path", INFO_ROOT, INFO_MODEL, 1 }
};

/* ----------------------------------------------------------- callbacks --- */

static enum info_place
place_here(const struct info *o)
{
	return o->depth > 0 && o->depth <= INFO_PLACES ?
	    o->places[o->depth - 1] : INFO_NOWHERE;
}

static int
on_key(void *context, const unsigned char *bytes, size_t n)
{
	struct info *o = context;
	const enum info_place in = place_here(o);
	size_t i;

	o->next = INFO_NOWHERE;
	if (in == INFO_NOWHERE)
		return 1;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].in != in || n != strlen(names[i].text) ||
		    memcmp(bytes, names[i].text, n) != 0)
			continue;
		o->next = names[i].is;
		if (o->next == INFO_NUMBER)
			o->number = (enum info_number)names[i].which;
		else
			o->model_next = names[i].which;
	}
	return 1;
}

/* A value that is not read. Only an object has facts. */
static int
on_other(struct info *o)
{
	if (o->depth > 0 && place_here(o) == INFO_STATES)
		o->states++;
	return o->depth > 0;
}

static int
on_null(void *context)
{
	return on_other(context);
}

static int
on_boolean(void *context, int value)
{
	(void)value;
	return on_other(context);
}

static int
on_number(void *context, const char *digits, size_t n)
{
	struct info *o = context;

	if (o->next == INFO_NUMBER)
		o->numbers[o->number] = capacity_number(digits, n,
		    CAPACITY_TOKENS_MAX);
	return on_other(o);
}

static int
on_string(void *context, const unsigned char *bytes, size_t n)
{
	struct info *o = context;

	if (o->next == INFO_MODEL && n > 0 && o->model_next > o->model_rank) {
		capacity_model_set(o->model, (const char *)bytes, n);
		o->model_rank = o->model_next;
	}
	return on_other(o);
}

static int
place_enter(struct info *o, enum info_place place)
{
	if (o->depth == DEPTH_MAX)
		return 0;
	if (o->depth < INFO_PLACES)
		o->places[o->depth] = place;
	o->depth++;
	o->next = INFO_NOWHERE;
	return 1;
}

/* Older servers have one state, not a list of them. */
static int
on_map(void *context)
{
	struct info *o = context;
	enum info_place place = o->next;

	if (o->depth == 0)
		return place_enter(o, INFO_ROOT);
	if (place_here(o) == INFO_STATES || place == INFO_STATES) {
		place = o->states == o->rank ? INFO_STATE : INFO_NOWHERE;
		o->has_state |= place == INFO_STATE;
		o->states++;
	} else if (place != INFO_MEMORY) {
		place = INFO_NOWHERE;
	}
	return place_enter(o, place);
}

static int
on_list(void *context)
{
	struct info *o = context;

	if (o->depth == 0)
		return 0;
	if (place_here(o) == INFO_STATES)
		o->states++;
	return place_enter(o, o->next == INFO_STATES ? INFO_STATES :
	    INFO_NOWHERE);
}

static int
on_end(void *context)
{
	struct info *o = context;

	o->depth--;
	o->next = INFO_NOWHERE;
	return 1;
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null, .yajl_boolean = on_boolean,
	.yajl_number = on_number, .yajl_string = on_string,
	.yajl_start_map = on_map, .yajl_map_key = on_key,
	.yajl_end_map = on_end, .yajl_start_array = on_list,
	.yajl_end_array = on_end
};

/* ------------------------------------------------------------- feeding --- */

void
info_begin(struct info *o, uint32_t rank)
{
	memset(o, 0, offsetof(struct info, pool));
	pool_begin(&o->pool);
	o->rank = rank;
}

/* Returns from YAJL, or by a jump of the pool; `whole`: it was the end. */
static void
piece_parse(struct info *o, bool whole)
{
	yajl_status status;

	if (o->dead)
		return;
	if (setjmp(o->pool.full) != 0) {
		o->dead = true;
		return;
	}
	if (o->yajl == NULL) {
		o->yajl = yajl_alloc(&callbacks, &o->pool.calls, o);
		/* Strings may be cut within a character. */
		yajl_config(o->yajl, yajl_dont_validate_strings, 1);
	}
	status = yajl_parse(o->yajl, o->piece, o->n_piece);
	if (status == yajl_status_ok && whole)
		status = yajl_complete_parse(o->yajl);
	if (status != yajl_status_ok)
		o->dead = true;
	o->n_piece = 0;
}

static void
piece_put(struct info *o, char c)
{
	o->piece[o->n_piece++] = (unsigned char)c;
	if (o->n_piece == sizeof(o->piece))
		piece_parse(o, false);
}

static bool
ends_token(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',' ||
	    c == ':' || c == '[' || c == ']' || c == '{' || c == '}';
}

static void
thin_outside(struct info *o, char c)
{
	piece_put(o, c);
	if (c == '"') {
		o->thin = INFO_KEEPING;
		o->kept = 0;
	} else if (ends_token(c)) {
		o->kept = 0;
	} else if (++o->kept > KEPT) {
		o->dead = true;
	}
}

static void
thin_keeping(struct info *o, char c)
{
	if (c == '"') {
		piece_put(o, c);
		o->thin = INFO_OUTSIDE;
		o->kept = 0;
	} else if (c == '\\' || o->kept++ == KEPT) {
		piece_put(o, '?');
		o->thin = c == '\\' ? INFO_ESCAPED : INFO_SKIPPING;
	} else {
		piece_put(o, c);
	}
}

static void
thin_skipping(struct info *o, char c)
{
	if (o->thin == INFO_ESCAPED) {
		o->thin = INFO_SKIPPING;
	} else if (c == '\\') {
		o->thin = INFO_ESCAPED;
	} else if (c == '"') {
		piece_put(o, c);
		o->thin = INFO_OUTSIDE;
		o->kept = 0;
	}
}

void
info_data(struct info *o, const char *bytes, size_t n)
{
	size_t i;

	for (i = 0; i < n && !o->dead; i++) {
		if (o->thin == INFO_OUTSIDE)
			thin_outside(o, bytes[i]);
		else if (o->thin == INFO_KEEPING)
			thin_keeping(o, bytes[i]);
		else
			thin_skipping(o, bytes[i]);
	}
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

	piece_parse(o, true);
	/* There is no such rank. */
	if (o->dead || (o->rank > 0 && !o->has_state))
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
