/* SPDX-License-Identifier: BSD-2-Clause */
/* events.c - see events.h. */
#include "events.h"

#include "event_socket.h"
#include "server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zmq.h>

enum { ENDPOINT_MAX = 256, SGLANG_HASHES = 64 };

struct list {
	void *items;
	size_t n, room;
};

struct rank {
	struct event_socket *socket; /* NULL: closed */
	uint64_t life;               /* mixed into its hashes */
	uint64_t *beside;            /* stored in the second group, */
	size_t n_beside;             /* and removed in the next batch */
	bool cleared;                /* which the next batch begins with */
};

struct events {
	struct events_facts facts;
	struct events_place place;
	struct rank ranks[RANKS_MAX];
	struct packer packer;
	/* A batch being made: items refer to hashes and tokens by place. */
	struct list items, hashes, tokens, spans;
	uint64_t lives;
	bool failed;
};

/* The places where an item's hashes and tokens begin. */
struct span {
	size_t hashes, tokens;
};

void *
events_begin(void)
{
	return zmq_ctx_new();
}

void
events_end(void *sockets)
{
	if (sockets != NULL)
		zmq_ctx_term(sockets);
}

static uint64_t
mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

struct events *
events_new(const struct events_facts *facts, const struct events_place *place)
{
	struct events *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->facts = *facts;
	e->place = *place;
	return e;
}

void
events_free(struct events *e)
{
	if (e == NULL)
		return;
	events_close(e);
	packer_free(&e->packer);
	free(e->items.items);
	free(e->hashes.items);
	free(e->tokens.items);
	free(e->spans.items);
	free(e);
}

/* ------------------------------------------------------------ endpoints --- */

/* Returns the begin of a tcp endpoint's port; 0: it has none. */
static size_t
port_at(const char *endpoint)
{
	const char *colon = strrchr(endpoint, ':');

	if (strncmp(endpoint, "tcp://", 6) != 0 || colon == NULL ||
	    colon < endpoint + 6)
		return 0;
	return (size_t)(colon - endpoint) + 1;
}

/* One port further for each rank before it, or with its number. */
static void
endpoint_of(const struct events *e, const char *first, uint32_t rank,
    char *out)
{
	uint32_t n = e->place.number * e->place.ranks + rank;
	size_t at = port_at(first);

	if (at > 0)
		snprintf(out, ENDPOINT_MAX, "%.*s%lu", (int)at, first,
		    strtoul(first + at, NULL, 10) + n);
	else
		snprintf(out, ENDPOINT_MAX, "%s-%" PRIu32, first, n);
}

bool
events_port(const struct events *e, bool replay, char *host, size_t room,
    uint32_t *port)
{
	const char *first = replay ? e->facts.replay : e->facts.endpoint;
	size_t at = first == NULL ? 0 : port_at(first);
	char text[ENDPOINT_MAX];

	if (at == 0)
		return false;
	endpoint_of(e, first, 0, text);
	snprintf(host, room, "%.*s", (int)(at - 7), text + 6);
	*port = (uint32_t)strtoul(text + at, NULL, 10);
	return true;
}

/* -------------------------------------------------------------- batches --- */

static void
list_add(struct events *e, struct list *l, const void *items, size_t n,
    size_t size)
{
	size_t want = l->room * 2 > l->n + n ? l->room * 2 : l->n + n + 64;
	void *p;

	if (e->failed || n == 0)
		return;
	if (l->n + n > l->room) {
		p = realloc(l->items, want * size);
		e->failed = p == NULL;
		if (e->failed)
			return;
		l->items = p;
		l->room = want;
	}
	memcpy((char *)l->items + l->n * size, items, n * size);
	l->n += n;
}

static struct event_item *
last_item(const struct events *e)
{
	return e->items.n == 0 ? NULL :
	    (struct event_item *)e->items.items + e->items.n - 1;
}

static void
add_item(struct events *e, const struct event_item *item)
{
	struct span span = { e->hashes.n, e->tokens.n };

	list_add(e, &e->spans, &span, 1, sizeof(span));
	list_add(e, &e->items, item, 1, sizeof(*item));
}

static void
add_hash(struct events *e, uint64_t hash)
{
	list_add(e, &e->hashes, &hash, 1, sizeof(hash));
	if (!e->failed)
		last_item(e)->n++;
}

static uint64_t
hash_of(const struct rank *r, uint64_t name)
{
	return mix(name ^ r->life);
}

/* Does the block go on where the last item ends? */
static bool
goes_on(const struct events *e, const struct rank *r,
    const struct block *block)
{
	const struct event_item *last = last_item(e);
	const uint64_t *hashes = e->hashes.items;

	if (last == NULL || last->kind != ITEM_STORED || block->first ||
	    hashes[e->hashes.n - 1] != hash_of(r, block->before))
		return false;
	return e->facts.form != FORM_SGLANG_ARRAYS || last->n < SGLANG_HASHES;
}

static void
add_stored(struct events *e, const struct rank *r, const struct block *block)
{
	struct event_item item = {
		.kind = ITEM_STORED, .has_parent = !block->first,
		.parent = hash_of(r, block->before),
		.block = e->place.block_tokens, .salt = block->salt,
		.adapter = block->adapter
	};

	if (!goes_on(e, r, block))
		add_item(e, &item);
	add_hash(e, hash_of(r, block->name));
	list_add(e, &e->tokens, block->tokens, e->place.block_tokens,
	    sizeof(block->tokens[0]));
	if (!e->failed)
		last_item(e)->n_tokens += e->place.block_tokens;
}

/* vLLM has an event for each; SGLang has one for neighbours. */
static void
add_removed(struct events *e, const struct rank *r, uint64_t name)
{
	struct event_item item = { .kind = ITEM_REMOVED };
	const struct event_item *last = last_item(e);

	if (!event_form_sglang(e->facts.form) || last == NULL ||
	    last->kind != ITEM_REMOVED || (last->n == SGLANG_HASHES &&
	    e->facts.form == FORM_SGLANG_ARRAYS))
		add_item(e, &item);
	add_hash(e, hash_of(r, name));
}

/* The places of the lists, now that they do not move any more. */
static void
settle(struct events *e)
{
	struct event_item *items = e->items.items;
	const struct span *spans = e->spans.items;
	size_t i;

	for (i = 0; i < e->items.n; i++) {
		if (items[i].n > 0)
			items[i].hashes = (uint64_t *)e->hashes.items +
			    spans[i].hashes;
		if (items[i].n_tokens > 0)
			items[i].tokens = (uint32_t *)e->tokens.items +
			    spans[i].tokens;
	}
}

/*
 * A group of layers with a window has only the last blocks of the same
 * prompts, though its event names all tokens; a batch later it has forgotten
 * them. A reader that takes these for blocks of the full group is soon wrong.
 */
static void
add_beside(struct events *e, struct rank *r)
{
	size_t tail = (e->facts.window + e->place.block_tokens - 2) /
	    e->place.block_tokens, n = e->items.n, i;
	struct event_item *items;
	const uint64_t *hashes;

	for (i = 0; i < r->n_beside; i++) {
		add_item(e, &(struct event_item){ .kind = ITEM_REMOVED,
		    .window = e->facts.window });
		add_hash(e, r->beside[i]);
	}
	r->n_beside = 0;
	for (i = 0; i < n && !e->failed; i++) {
		struct event_item item;
		size_t from = ((struct span *)e->spans.items)[i].hashes, k;

		items = e->items.items;
		item = items[i];
		if (item.kind != ITEM_STORED)
			continue;
		k = item.n < tail ? item.n : tail;
		from += item.n - k;
		item.n = 0;
		item.window = e->facts.window;
		add_item(e, &item);
		((struct span *)e->spans.items)[e->items.n - 1].tokens =
		    ((struct span *)e->spans.items)[i].tokens;
		for (; k > 0 && !e->failed; k--, from++) {
			hashes = e->hashes.items;
			add_hash(e, hashes[from]);
		}
	}
}

/* Notes the blocks of the second group, to be removed in the next batch. */
static void
remember_beside(struct events *e, struct rank *r)
{
	const struct event_item *items = e->items.items;
	struct list l = { NULL, 0, 0 };
	size_t i;

	free(r->beside);
	for (i = 0; i < e->items.n; i++)
		if (items[i].window > 0 && items[i].kind == ITEM_STORED)
			list_add(e, &l, items[i].hashes, items[i].n,
			    sizeof(uint64_t));
	r->beside = l.items;
	r->n_beside = e->failed ? 0 : l.n;
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* False: no memory. */
static bool
publish(struct events *e, uint32_t rank, bool lost)
{
	struct rank *r = &e->ranks[rank];
	uint64_t number = event_socket_next(r->socket);

	if (e->items.n == 0)
		return !e->failed;
	if (e->facts.window > 0)
		add_beside(e, r);
	if (e->failed)
		return false;
	settle(e);
	if (e->facts.window > 0)
		remember_beside(e, r);
	event_pack(&e->packer, e->facts.form, seconds(), rank, e->items.items,
	    e->items.n);
	e->items.n = e->hashes.n = e->tokens.n = e->spans.n = 0;
	lost = lost || (e->facts.lose > 0 && number % e->facts.lose ==
	    e->facts.lose - 1);
	return !e->failed && event_socket_send(r->socket, e->packer.bytes,
	    e->packer.n, lost);
}

static void
add_cleared(struct events *e, struct rank *r)
{
	struct event_item item = { .kind = ITEM_CLEARED };

	r->cleared = false;
	add_item(e, &item);
}

bool
events_take(struct events *e, uint32_t rank, struct serving *s, bool lost)
{
	struct rank *r = &e->ranks[rank];
	struct serving_change change;

	while (serving_change(s, &change)) {
		if (r->socket == NULL)
			continue;
		if (r->cleared)
			add_cleared(e, r);
		if (change.stored)
			add_stored(e, r, change.block);
		else
			add_removed(e, r, change.name);
	}
	return r->socket == NULL || publish(e, rank, lost);
}

bool
events_clear(struct events *e, uint32_t rank)
{
	struct rank *r = &e->ranks[rank];

	r->n_beside = 0;
	r->cleared = true;
	if (e->facts.form != FORM_SGLANG || r->socket == NULL)
		return true;
	add_cleared(e, r);
	return publish(e, rank, false);
}

/* -------------------------------------------------------------- sockets --- */

static bool
open_rank(struct events *e, uint32_t rank, char *why, size_t room)
{
	char endpoint[ENDPOINT_MAX], replay[ENDPOINT_MAX];
	struct event_socket_facts facts = {
		.endpoint = endpoint, .topic = e->facts.topic,
		.topic_again = e->facts.form == FORM_VLLM ||
		    e->facts.form == FORM_SGLANG,
		.keep = e->facts.keep
	};
	struct rank *r = &e->ranks[rank];

	if (r->socket != NULL)
		return true;
	endpoint_of(e, e->facts.endpoint, rank, endpoint);
	if (e->facts.replay != NULL) {
		endpoint_of(e, e->facts.replay, rank, replay);
		facts.replay = replay;
	}
	r->socket = event_socket_open(e->place.base, e->place.sockets,
	    &facts);
	if (r->socket == NULL) {
		snprintf(why, room, "%s: %s", endpoint, zmq_strerror(errno));
		return false;
	}
	r->life = mix(e->place.seed * UINT64_C(0x9e3779b97f4a7c15) +
	    ++e->lives);
	r->n_beside = 0;
	r->cleared = false;
	if (!event_form_sglang(e->facts.form))
		return true;
	add_cleared(e, r);
	return publish(e, rank, false);
}

bool
events_open(struct events *e, char *why, size_t room)
{
	uint32_t i;

	for (i = 0; i < e->place.ranks; i++)
		if (!open_rank(e, i, why, room))
			return false;
	return true;
}

void
events_close(struct events *e)
{
	uint32_t i;

	for (i = 0; i < e->place.ranks; i++) {
		event_socket_close(e->ranks[i].socket);
		e->ranks[i].socket = NULL;
		free(e->ranks[i].beside);
		e->ranks[i].beside = NULL;
		e->ranks[i].n_beside = 0;
	}
}

uint64_t
events_next(const struct events *e, uint32_t rank)
{
	return e->ranks[rank].socket == NULL ? 0 :
	    event_socket_next(e->ranks[rank].socket);
}
