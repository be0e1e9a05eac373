/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_model.c - see engine_model.h.
 *
 * A block with a name (the hash of its whole prefix) stands in the table; one
 * that nobody uses stands on the idle list as well. An idle block of an answer
 * has no name and stands on the list alone. Blocks in use that have no name
 * yet - partial ends of prompts, room for answers - are only counted.
 *
 *   pinned   table, pins > 0
 *   idle     table or nameless; list, pins = 0
 *   own      a number
 *
 * pinned + own + idle <= blocks, always; after each request ended pinned and
 * own are what those that run hold.
 */
#include "engine_model.h"

#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->lost = true)
#include <uthash.h>
#include <utlist.h>

struct block {
	uint64_t name;
	uint64_t pins;
	bool nameless;
	bool lost; /* no memory to enter it in the table */
	struct block *prev, *next;
	UT_hash_handle hh;
};

struct sequence {
	struct engine_request request;
	size_t n_blocks;        /* whole ones of the prompt */
	uint64_t own;           /* blocks beyond those */
	uint64_t prefill_left;  /* tokens */
	uint64_t chunk;         /* of them, computed in this step */
	uint64_t generated;
	struct sequence *prev, *next;
	struct block **blocks;  /* [n_blocks], once admitted */
	uint64_t names[];       /* [n_blocks] */
};

struct engine {
	uint64_t blocks;
	struct engine_state state;
	struct block *table;
	struct block *idle;       /* the longest released first */
	struct sequence *waiting; /* in the order of arrival */
	struct sequence *running; /* in the order of admission */
	struct engine_event *events;
	size_t n_events;
	size_t next_event;
	size_t event_capacity;
	bool stepping;
	bool failed; /* out of memory */
};

struct engine *
engine_new(uint64_t blocks)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (e != NULL)
		e->blocks = blocks;
	return e;
}

static void
sequence_free(struct sequence *q)
{
	free(q->blocks);
	free(q);
}

static void
free_all(struct sequence **list)
{
	struct sequence *q, *next;

	DL_FOREACH_SAFE(*list, q, next) {
		DL_DELETE(*list, q);
		sequence_free(q);
	}
}

void
engine_free(struct engine *e)
{
	struct block *b, *next;

	if (e == NULL)
		return;
	DL_FOREACH_SAFE(e->idle, b, next) {
		DL_DELETE(e->idle, b);
		if (b->nameless)
			free(b);
	}
	HASH_ITER(hh, e->table, b, next) {
		HASH_DEL(e->table, b);
		free(b);
	}
	free_all(&e->waiting);
	free_all(&e->running);
	free(e->events);
	free(e);
}

/* --------------------------------------------------------------- events --- */

static void
tell(struct engine *e, enum engine_kind kind, const struct sequence *q,
    uint64_t tokens)
{
	struct engine_event event = { kind, q->request.number, tokens };
	size_t want = e->event_capacity == 0 ? 64 : e->event_capacity * 2;
	struct engine_event *p;

	if (e->next_event == e->n_events)
		e->next_event = e->n_events = 0;
	if (e->n_events == e->event_capacity) {
		p = realloc(e->events, want * sizeof(*p));
		if (p == NULL) {
			e->failed = true;
			return;
		}
		e->events = p;
		e->event_capacity = want;
	}
	e->events[e->n_events++] = event;
}

bool
engine_next(struct engine *e, struct engine_event *out)
{
	if (e->next_event == e->n_events)
		return false;
	*out = e->events[e->next_event++];
	return true;
}

/* --------------------------------------------------------------- blocks --- */

/* The name of a block is that of the one before it, and its own id. */
static uint64_t
name_after(uint64_t before, uint64_t id)
{
	uint64_t z = (before ^ id) + UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return (z ^ z >> 31) + before * 3;
}

static struct block *
find(const struct engine *e, uint64_t name)
{
	struct block *b;

	HASH_FIND(hh, e->table, &name, sizeof(name), b);
	return b;
}

/* NULL: no memory. */
static struct block *
block_new(struct engine *e, bool nameless, uint64_t name)
{
	struct block *b = calloc(1, sizeof(*b));

	if (b == NULL) {
		e->failed = true;
		return NULL;
	}
	b->nameless = nameless;
	b->name = name;
	if (nameless)
		return b;
	HASH_ADD(hh, e->table, name, sizeof(b->name), b);
	if (b->lost) {
		free(b);
		e->failed = true;
		return NULL;
	}
	return b;
}

static void
evict(struct engine *e, struct block *b)
{
	DL_DELETE(e->idle, b);
	e->state.idle--;
	if (!b->nameless)
		HASH_DEL(e->table, b);
	free(b);
}

static void
fit(struct engine *e)
{
	while (e->idle != NULL && e->state.pinned + e->state.own +
	    e->state.idle > e->blocks)
		evict(e, e->idle);
}

static struct block *
pin(struct engine *e, uint64_t name)
{
	struct block *b = find(e, name);

	if (b == NULL) {
		b = block_new(e, false, name);
	} else if (b->pins == 0) {
		DL_DELETE(e->idle, b);
		e->state.idle--;
	}
	if (b != NULL && b->pins++ == 0)
		e->state.pinned++;
	return b;
}

static void
release(struct engine *e, struct block *b)
{
	DL_APPEND(e->idle, b);
	e->state.idle++;
}

static void
unpin(struct engine *e, struct block *b)
{
	if (--b->pins > 0)
		return;
	e->state.pinned--;
	release(e, b);
}

/* ------------------------------------------------------------ admission --- */

static uint64_t
blocks_of(uint64_t tokens)
{
	return tokens / ENGINE_BLOCK + (tokens % ENGINE_BLOCK > 0);
}

/* Leading blocks of its prompt that are there, of those that may hit. */
static uint64_t
leading(const struct engine *e, const struct engine_request *r)
{
	uint64_t most = (r->tokens - 1) / ENGINE_BLOCK, name = 0, n;

	for (n = 0; n < most; n++) {
		name = name_after(name, r->ids[n]);
		if (find(e, name) == NULL)
			break;
	}
	return n;
}

uint64_t
engine_cached(const struct engine *e, const struct engine_request *r)
{
	return leading(e, r) * ENGINE_BLOCK;
}

/* The same for one that waits, whose names are known. */
static uint64_t
hits(const struct engine *e, const struct sequence *q)
{
	uint64_t most = (q->request.tokens - 1) / ENGINE_BLOCK, n;

	for (n = 0; n < most && find(e, q->names[n]) != NULL; n++)
		;
	return n;
}

/* Its blocks that are in use already cost no room, all others do. */
static bool
has_room(const struct engine *e, const struct sequence *q)
{
	uint64_t need = q->own + e->state.own + e->state.pinned;
	const struct block *b;
	size_t i;

	for (i = 0; i < q->n_blocks; i++) {
		b = find(e, q->names[i]);
		need += b == NULL || b->pins == 0;
	}
	return need <= e->blocks;
}

static void
admit(struct engine *e, struct sequence *q)
{
	uint64_t hit = hits(e, q) * ENGINE_BLOCK;
	size_t i;

	for (i = 0; i < q->n_blocks && !e->failed; i++)
		q->blocks[i] = pin(e, q->names[i]);
	e->state.own += q->own;
	fit(e);
	q->prefill_left = q->request.tokens - hit;
	DL_DELETE(e->waiting, q);
	DL_APPEND(e->running, q);
	e->state.waiting--;
	e->state.running++;
	tell(e, ENGINE_ADMITTED, q, hit);
}

/* In the order of arrival: who has no room holds up all behind it. */
static void
admit_all(struct engine *e)
{
	while (!e->failed && e->waiting != NULL &&
	    e->state.running < ENGINE_SEQUENCES && has_room(e, e->waiting))
		admit(e, e->waiting);
}

static struct sequence *
sequence_new(const struct engine_request *r)
{
	size_t n = (size_t)(r->tokens / ENGINE_BLOCK), i;
	struct sequence *q = calloc(1, sizeof(*q) + n * sizeof(q->names[0]));

	if (q == NULL)
		return NULL;
	q->blocks = calloc(n + 1, sizeof(struct block *));
	if (q->blocks == NULL) {
		free(q);
		return NULL;
	}
	q->request = *r;
	q->request.ids = NULL;
	q->request.output += r->output == 0;
	q->n_blocks = n;
	q->own = blocks_of(r->tokens + q->request.output) - n;
	for (i = 0; i < n; i++)
		q->names[i] = name_after(i == 0 ? 0 : q->names[i - 1],
		    r->ids[i]);
	return q;
}

enum engine_result
engine_submit(struct engine *e, const struct engine_request *r)
{
	struct sequence *q;

	if (r->output > ENGINE_OUTPUT_MAX ||
	    blocks_of(r->tokens + r->output + (r->output == 0)) > e->blocks)
		return ENGINE_TOO_LARGE;
	q = sequence_new(r);
	if (q == NULL)
		return ENGINE_NO_MEMORY;
	DL_APPEND(e->waiting, q);
	e->state.waiting++;
	admit_all(e);
	return e->failed ? ENGINE_NO_MEMORY : ENGINE_OK;
}

/* ---------------------------------------------------------------- steps --- */

int64_t
engine_begin(struct engine *e, int64_t now)
{
	uint64_t left = ENGINE_CHUNK, sequences = 0;
	struct sequence *q;

	if (e->running == NULL || e->stepping)
		return INT64_MAX;
	DL_FOREACH(e->running, q) {
		q->chunk = q->prefill_left < left ? q->prefill_left : left;
		left -= q->chunk;
		sequences += q->chunk > 0 || q->prefill_left == 0;
	}
	e->stepping = true;
	return now + ENGINE_STEP_NS +
	    (int64_t)sequences * ENGINE_SEQUENCE_NS +
	    (int64_t)(e->state.pinned + e->state.own) * ENGINE_BLOCK_NS +
	    (int64_t)(ENGINE_CHUNK - left) * ENGINE_TOKEN_NS;
}

/* Tail first: what hangs on nothing any more leaves before what it hung on. */
static void
finish(struct engine *e, struct sequence *q)
{
	uint64_t total = q->request.tokens + q->request.output;
	uint64_t answers = total / ENGINE_BLOCK - q->n_blocks;
	struct block *b;
	size_t i;

	e->state.own -= q->own;
	for (; answers > 0 && !e->failed; answers--) {
		b = block_new(e, true, 0);
		if (b != NULL)
			release(e, b);
	}
	for (i = q->n_blocks; i-- > 0;)
		unpin(e, q->blocks[i]);
	tell(e, ENGINE_FINISHED, q, q->generated);
	DL_DELETE(e->running, q);
	e->state.running--;
	sequence_free(q);
}

/* One sequence's part of the step that ends. */
static void
progress(struct engine *e, struct sequence *q)
{
	uint64_t tokens = q->request.tokens;

	if (q->prefill_left > 0) {
		q->prefill_left -= q->chunk;
		if (q->chunk == 0 || q->prefill_left > 0)
			return;
	}
	q->chunk = 0;
	q->generated++;
	if (q->generated == 1)
		tell(e, ENGINE_FIRST_TOKEN, q, 1);
	if (q->generated >= q->request.output)
		finish(e, q);
	else if (blocks_of(tokens + q->generated) >
	    blocks_of(tokens + q->generated - 1))
		tell(e, ENGINE_GENERATED, q, q->generated);
}

enum engine_result
engine_end(struct engine *e)
{
	struct sequence *q, *next;

	e->stepping = false;
	DL_FOREACH_SAFE(e->running, q, next)
		progress(e, q);
	admit_all(e);
	return e->failed ? ENGINE_NO_MEMORY : ENGINE_OK;
}

/* -------------------------------------------------------- looking at it --- */

void
engine_state(const struct engine *e, struct engine_state *out)
{
	*out = e->state;
}

static bool
same(const struct engine_state *a, const struct engine_state *b)
{
	return a->waiting == b->waiting && a->running == b->running &&
	    a->pinned == b->pinned && a->own == b->own && a->idle == b->idle;
}

bool
engine_check(const struct engine *e)
{
	struct engine_state s = { 0, 0, 0, 0, 0 };
	uint64_t pins = 0, held = 0;
	const struct sequence *q;
	const struct block *b;

	DL_FOREACH(e->waiting, q)
		s.waiting++;
	DL_FOREACH(e->running, q) {
		s.running++;
		s.own += q->own;
		held += q->n_blocks;
	}
	for (b = e->table; b != NULL; b = b->hh.next) {
		s.pinned += b->pins > 0;
		pins += b->pins;
	}
	DL_FOREACH(e->idle, b) {
		s.idle++;
		if (b->pins > 0 || (!b->nameless && find(e, b->name) != b))
			return false;
	}
	return same(&s, &e->state) && pins == held &&
	    s.running <= ENGINE_SEQUENCES &&
	    s.pinned + s.own + s.idle <= e->blocks;
}
