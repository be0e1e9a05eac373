/* SPDX-License-Identifier: BSD-2-Clause */
/* batch.c - see batch.h. */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

/* Room above this is given back before the next message. */
#define KEEP_BYTES ((size_t)4 << 20)

static void
array_free(struct batch_array *a)
{
	free(a->items);
	*a = (struct batch_array){ 0 };
}

/* Room for n more; NULL: no memory. */
static void *
array_add(struct batch_array *a, size_t n, size_t each)
{
	size_t room = a->room;
	void *items;

	if (n > SIZE_MAX / 4 / each - a->n)
		return NULL;
	if (a->n + n > room) {
		room = room == 0 ? 64 : room;
		while (room < a->n + n)
			room += room / 2;
		items = realloc(a->items, room * each);
		if (items == NULL)
			return NULL;
		a->items = items;
		a->room = room;
	}
	items = (char *)a->items + a->n * each;
	a->n += n;
	return items;
}

static void
array_clear(struct batch_array *a, size_t each)
{
	a->n = 0;
	if (a->room * each > KEEP_BYTES)
		array_free(a);
}

void
batch_clear(struct batch *b)
{
	array_clear(&b->events, sizeof(struct event));
	array_clear(&b->hashes, sizeof(uint64_t));
	array_clear(&b->tokens, sizeof(uint32_t));
	array_clear(&b->locals, sizeof(uint64_t));
	array_clear(&b->text, 1);
	b->time = b->publisher = b->sequence = 0;
	batch_begin(b);
}

void
batch_free(struct batch *b)
{
	array_free(&b->events);
	array_free(&b->hashes);
	array_free(&b->tokens);
	array_free(&b->locals);
	array_free(&b->text);
}

void
batch_begin(struct batch *b)
{
	b->now = (struct event){ .size = sizeof(struct event) };
	b->now.hashes.at = b->hashes.n;
	b->now.tokens.at = b->tokens.n;
	b->now.locals.at = b->locals.n;
	b->now.adapter.at = b->now.salt.at = b->now.session.at = b->text.n;
	b->text_began = b->text.n;
}

bool
batch_hash(struct batch *b, uint64_t hash)
{
	uint64_t *to = array_add(&b->hashes, 1, sizeof(*to));

	if (to == NULL)
		return false;
	*to = hash;
	b->now.hashes.n++;
	return true;
}

uint32_t *
batch_tokens(struct batch *b, size_t n)
{
	uint32_t *to = array_add(&b->tokens, n, sizeof(*to));

	if (to != NULL)
		b->now.tokens.n += n;
	return to;
}

bool
batch_token(struct batch *b, uint32_t token)
{
	uint32_t *to = batch_tokens(b, 1);

	if (to != NULL)
		*to = token;
	return to != NULL;
}

bool
batch_local(struct batch *b, uint64_t local)
{
	uint64_t *to = array_add(&b->locals, 1, sizeof(*to));

	if (to == NULL)
		return false;
	*to = local;
	b->now.locals.n++;
	return true;
}

bool
batch_text(struct batch *b, const char *text, size_t n,
    struct event_span *span)
{
	char *to;

	if (n == 0) {
		*span = (struct event_span){ b->text.n, 0 };
		return true;
	}
	to = array_add(&b->text, n, 1);
	if (to == NULL)
		return false;
	memcpy(to, text, n);
	span->at = b->text.n - n;
	span->n = n;
	return true;
}

void
batch_cut_tokens(struct batch *b, uint64_t n)
{
	if (n < b->now.tokens.n)
		b->now.tokens.n = n;
	b->tokens.n = b->now.tokens.at + b->now.tokens.n;
}

void
batch_cut_locals(struct batch *b, uint64_t n)
{
	if (n < b->now.locals.n)
		b->now.locals.n = n;
	b->locals.n = b->now.locals.at + b->now.locals.n;
}

bool
batch_end(struct batch *b)
{
	struct event *to = array_add(&b->events, 1, sizeof(*to));

	if (to == NULL)
		return false;
	*to = b->now;
	batch_begin(b);
	return true;
}

void
batch_drop(struct batch *b)
{
	b->text.n = b->text_began;
	b->hashes.n = b->now.hashes.at;
	b->tokens.n = b->now.tokens.at;
	b->locals.n = b->now.locals.at;
	batch_begin(b);
}

void
batch_show(const struct batch *b, struct event_batch *out)
{
	*out = (struct event_batch){
		.time = b->time,
		.publisher = b->publisher,
		.sequence = b->sequence,
		.n = b->events.n,
		.events = b->events.items,
		.hashes = b->hashes.items,
		.tokens = b->tokens.items,
		.locals = b->locals.items,
		.text = b->text.items
	};
}
