/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_events.c - events of engines about their caches, and their way to
 * routers.
 *
 * Whatever changes in a cache at one time is one batch of the engine's stream,
 * and reaches every router after the delay, unless it is lost there:
 *
 *   sent       0    1    2    3    4
 *   router A   0    1    2    3    4
 *   router B   0    -    2 .......... 1 2 3 4
 *                        ^ gap: asks  ^ hears all that it missed
 *
 * A router that hears of a gap asks for the missing batches, and gets them
 * after the delay, with all that has come meanwhile; or, if engines replay
 * nothing, it reports the batch as lost. The last batches of a stream are
 * missed without a gap until another one comes.
 *
 * A batch has the content of the engine's message: names of blocks, and tokens.
 * It keeps the ids that tokens are made from. Tokens of an output without ids
 * are made up: unlike any others.
 */
#include "simulate_in.h"

#include <kvroute_events.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* An event. The names and ids stand in the batch. */
struct said {
	enum kvr_event_kind kind;
	uint64_t before;   /* of stored blocks: that before the first */
	uint64_t request;
	uint64_t index;    /* the first in the request */
	uint64_t known;    /* tokens of the request that ids cover */
	size_t names_at, n;
	size_t ids_at, n_ids;
	bool falling;      /* the blocks stand in falling order */
};

struct batch {
	struct batch *prev, *next;
	int64_t at;        /* arrives */
	uint64_t seq;
	uint64_t lost;     /* a set of routers */
	bool arrived;
	struct said *said; /* [n] */
	uint64_t *names;   /* [n_names] */
	uint64_t *ids;     /* [n_ids] */
	size_t n, n_names, n_ids;
};

struct listener {
	uint64_t next;    /* batch to apply */
	int64_t replay;   /* when missing batches come; or TIMES_NEVER */
};

struct publisher {
	struct batch *batches;  /* that some router lacks, earliest first */
	uint64_t seq;           /* of the next one */
	struct listener *heard; /* [replicas] */
};

struct events {
	struct publisher *from; /* [workers] */
	struct times next;      /* [workers] */
	struct rng losses;
	struct simulate_heard counts;
	const struct batch *made; /* the batch of the rest */
	struct kvr_event *list;   /* [list_room] */
	uint32_t *tokens;         /* [token_room] */
	size_t list_room, n_tokens, token_room;
};

/* -------------------------------------------------------------- making --- */

bool
news_wanted(const struct simulate_options *o)
{
	return o->policy >= SIMULATE_DYNAMO && (o->index == SIMULATE_COUNTS ||
	    o->index == SIMULATE_EVENTS);
}

int
news_make(struct simulation *s)
{
	uint32_t n = s->options.workers, w, i;
	struct events *v;

	if (!news_wanted(&s->options))
		return KVR_OK;
	s->events = v = calloc(1, sizeof(*v));
	if (v == NULL)
		return KVR_ENOMEM;
	s->keeps = true;
	v->losses.state = s->options.seed ^ UINT64_C(0x6576656E74);
	v->from = calloc(n, sizeof(*v->from));
	if (v->from == NULL || times_make(&v->next, n) != 0)
		return KVR_ENOMEM;
	for (w = 0; w < n; w++) {
		v->from[w].heard = calloc(s->options.replicas,
		    sizeof(*v->from[w].heard));
		if (v->from[w].heard == NULL)
			return KVR_ENOMEM;
		for (i = 0; i < s->options.replicas; i++)
			v->from[w].heard[i].replay = TIMES_NEVER;
	}
	return KVR_OK;
}

static void
batch_free(struct batch *b)
{
	if (b == NULL)
		return;
	free(b->said);
	free(b->names);
	free(b->ids);
	free(b);
}

static void
batches_free(struct publisher *p)
{
	struct batch *b, *next;

	DL_FOREACH_SAFE(p->batches, b, next) {
		DL_DELETE(p->batches, b);
		batch_free(b);
	}
}

void
news_free(struct simulation *s)
{
	struct events *v = s->events;
	uint32_t w;

	if (v == NULL)
		return;
	for (w = 0; v->from != NULL && w < s->options.workers; w++) {
		batches_free(&v->from[w]);
		free(v->from[w].heard);
	}
	free(v->from);
	times_free(&v->next);
	free(v->list);
	free(v->tokens);
	free(v);
}

/* -------------------------------------------------------------- sending --- */

/* The tokens of the blocks: [*from, *to). */
static void
find_tokens(const struct simulation *s, const struct said *x, uint64_t *from,
    uint64_t *to)
{
	*from = x->index * s->options.engine_block;
	*to = *from + x->n * s->options.engine_block;
}

/* Does the change belong to the event, as its next block? */
static bool
goes_on(const struct said *x, const struct cache_change *c)
{
	uint64_t last = x->falling ? x->index : x->index + x->n - 1;

	if (!c->stored)
		return x->kind == KVR_EVENT_REMOVED;
	if (x->kind != KVR_EVENT_STORED || x->request != c->origin.request)
		return false;
	if (c->origin.index == last + 1)
		return !x->falling || x->n == 1;
	return c->origin.index + 1 == x->index && (x->falling || x->n == 1);
}

static void
add_change(struct batch *b, const struct simulation *s,
    const struct cache_change *c)
{
	struct said *x = b->n == 0 ? NULL : &b->said[b->n - 1];
	uint64_t n = b->n_names++;

	b->names[n] = c->name;
	if (x == NULL || !goes_on(x, c)) {
		x = &b->said[b->n++];
		*x = (struct said){ .kind = KVR_EVENT_REMOVED, .names_at = n,
		    .n = 1 };
		if (!c->stored)
			return;
		x->kind = KVR_EVENT_STORED;
		x->before = c->origin.before;
		x->request = c->origin.request;
		x->index = c->origin.index;
		x->known = s->rides[x->request].tokens +
		    s->rides[x->request].known;
		return;
	}
	x->n++;
	if (!c->stored)
		return;
	x->falling = c->origin.index < x->index + x->n - 2;
	if (x->falling) {
		x->index = c->origin.index;
		x->before = c->origin.before;
	}
}

/* Blocks that stand in falling order are turned round. */
static void
turn_round(struct batch *b, struct said *x)
{
	uint64_t *names = &b->names[x->names_at], swap;
	size_t i;

	for (i = 0; x->falling && i < x->n / 2; i++) {
		swap = names[i];
		names[i] = names[x->n - 1 - i];
		names[x->n - 1 - i] = swap;
	}
}

/* The ids of an event's tokens; out NULL: only their number. */
static size_t
ids_of(const struct simulation *s, const struct said *x, uint64_t *out)
{
	const struct ride *r = &s->rides[x->request];
	uint64_t from, to, at;
	size_t n = 0;

	if (x->kind != KVR_EVENT_STORED || r->ids == NULL)
		return 0;
	find_tokens(s, x, &from, &to);
	to = to < x->known ? to : x->known;
	for (at = from / ENGINE_BLOCK; at * ENGINE_BLOCK < to; at++, n++)
		if (out != NULL)
			out[n] = r->ids[at];
	return n;
}

static int
add_ids(struct batch *b, const struct simulation *s)
{
	size_t i, n = 0;

	for (i = 0; i < b->n; i++)
		n += ids_of(s, &b->said[i], NULL);
	b->ids = calloc(n + 1, sizeof(*b->ids));
	if (b->ids == NULL)
		return KVR_ENOMEM;
	for (i = 0; i < b->n; i++) {
		struct said *x = &b->said[i];

		turn_round(b, x);
		x->ids_at = b->n_ids;
		x->n_ids = ids_of(s, x, &b->ids[b->n_ids]);
		b->n_ids += x->n_ids;
	}
	return KVR_OK;
}

/* An empty batch with room for n changes. NULL: out of memory. */
static struct batch *
batch_new(size_t n)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->said = calloc(n + 1, sizeof(*b->said));
	b->names = calloc(n + 1, sizeof(*b->names));
	if (b->said == NULL || b->names == NULL) {
		batch_free(b);
		return NULL;
	}
	return b;
}

static int
batch_send(struct simulation *s, uint32_t worker, struct batch *b)
{
	struct publisher *p = &s->events->from[worker];
	uint32_t i;

	b->seq = p->seq++;
	b->at = s->now + s->options.event_delay_ns;
	for (i = 0; i < s->options.replicas; i++)
		if ((double)(rng_next(&s->events->losses) >> 11) * 0x1p-53 <
		    s->options.event_loss)
			b->lost |= UINT64_C(1) << i;
	DL_APPEND(p->batches, b);
	if (times_get(&s->events->next, worker) > b->at)
		times_set(&s->events->next, worker, b->at);
	return s->options.event_delay_ns == 0 ? news_do(s) : KVR_OK;
}

int
news_publish(struct simulation *s, uint32_t worker)
{
	const struct cache_change *changes;
	struct batch *b;
	size_t n, i;
	int e;

	if (s->events == NULL)
		return KVR_OK;
	if (!engine_changes(s->engines[worker], &changes, &n))
		return KVR_ENOMEM;
	if (n == 0)
		return KVR_OK;
	b = batch_new(n);
	if (b == NULL)
		return KVR_ENOMEM;
	for (i = 0; i < n; i++)
		if (!changes[i].beside)
			add_change(b, s, &changes[i]);
	engine_noted(s->engines[worker]);
	e = b->n == 0 ? KVR_OK : add_ids(b, s);
	if (e != KVR_OK || b->n == 0) {
		batch_free(b);
		return e;
	}
	return batch_send(s, worker, b);
}

/* An engine clears its cache when nothing runs; else blocks are removed. */
int
news_reset(struct simulation *s, uint32_t worker)
{
	struct engine_state state;
	struct batch *b;

	if (s->events == NULL)
		return KVR_OK;
	engine_state(s->engines[worker], &state);
	if (state.running > 0 || state.waiting > 0)
		return news_publish(s, worker);
	engine_noted(s->engines[worker]);
	b = batch_new(1);
	if (b == NULL)
		return KVR_ENOMEM;
	b->said[b->n++] = (struct said){ .kind = KVR_EVENT_CLEARED };
	return batch_send(s, worker, b);
}

void
news_leave(struct simulation *s, uint32_t worker)
{
	struct publisher *p;
	uint32_t i;

	if (s->events == NULL)
		return;
	p = &s->events->from[worker];
	engine_noted(s->engines[worker]);
	batches_free(p);
	p->seq = 0;
	for (i = 0; i < s->options.replicas; i++)
		p->heard[i] = (struct listener){ 0, TIMES_NEVER };
	times_set(&s->events->next, worker, TIMES_NEVER);
}

/* -------------------------------------------------------------- hearing --- */

/* Room for n more in an array of `room`; NULL: out of memory. */
static void *
grow_array(void *array, size_t *room, size_t n, size_t size)
{
	size_t want = *room == 0 ? 256 : *room;
	void *p;

	if (n <= *room)
		return array;
	while (want < n)
		want *= 2;
	p = realloc(array, want * size);
	if (p != NULL)
		*room = want;
	return p;
}

/* Token `at` of the request. */
static uint32_t
token_said(const struct batch *b, const struct said *x, uint64_t from,
    uint64_t at)
{
	struct rng rng = { x->request };

	if (at < x->known && x->n_ids > 0)
		return token_of(b->ids[x->ids_at + at / ENGINE_BLOCK -
		    from / ENGINE_BLOCK], at % ENGINE_BLOCK);
	return token_of((rng_next(&rng) >> 10) + at / ENGINE_BLOCK,
	    at % ENGINE_BLOCK);
}

/* Appends the tokens of an event. */
static int
make_tokens(struct simulation *s, const struct batch *b,
    const struct said *x)
{
	struct events *v = s->events;
	uint64_t from, to, at;
	uint32_t *p;

	find_tokens(s, x, &from, &to);
	p = grow_array(v->tokens, &v->token_room, v->n_tokens + (to - from),
	    sizeof(*p));
	if (p == NULL)
		return KVR_ENOMEM;
	v->tokens = p;
	for (at = from; at < to; at++)
		v->tokens[v->n_tokens++] = token_said(b, x, from, at);
	return KVR_OK;
}

static int
make_event(struct simulation *s, const struct batch *b, size_t i)
{
	const struct said *x = &b->said[i];
	struct kvr_event *to = &s->events->list[i];
	int e = kvr_event_init(to, sizeof(*to));

	to->kind = x->kind;
	to->hashes_at = x->names_at;
	to->hashes = x->n;
	if (e != KVR_OK || x->kind != KVR_EVENT_STORED)
		return e;
	to->block_tokens = s->options.engine_block;
	to->flags = x->index > 0 ? KVR_EVENT_PARENT : 0;
	to->parent = x->before;
	if (s->options.index != SIMULATE_EVENTS)
		return KVR_OK;
	to->tokens_at = s->events->n_tokens;
	e = make_tokens(s, b, x);
	to->tokens = s->events->n_tokens - to->tokens_at;
	return e;
}

/* Makes the arrays of the call, unless the last one had the same batch. */
static int
make_arrays(struct simulation *s, const struct batch *b)
{
	struct events *v = s->events;
	void *list = grow_array(v->list, &v->list_room, b->n, sizeof(*v->list));
	int e = KVR_OK;
	size_t i;

	if (list == NULL)
		return KVR_ENOMEM;
	v->list = list;
	if (v->made == b)
		return KVR_OK;
	v->n_tokens = 0;
	for (i = 0; e == KVR_OK && i < b->n; i++)
		e = make_event(s, b, i);
	v->made = e == KVR_OK ? b : NULL;
	return e;
}

static int
apply_batch(struct simulation *s, uint32_t number, uint32_t worker,
    const struct batch *b)
{
	const struct router *router = &s->routers[number];
	struct kvr_event_result result = { .size = sizeof(result) };
	struct kvr_event_batch head = { .size = sizeof(head), .seq = b->seq,
	    .digest = b->seq + 1 };
	const struct events *v = s->events;
	uint64_t id = fleet_id(router->fleet, worker);
	int e = make_arrays(s, b);

	if (e != KVR_OK)
		return e;
	do { /* busy: entries of a worker that was reset are reclaimed */
		e = kvr_events_apply(router->k, id, &head, v->list,
		    sizeof(*v->list), b->n, b->names, b->n_names, v->tokens,
		    v->n_tokens, s->now, 0, &result);
	} while (e == KVR_EBUSY);
	if (e != KVR_OK)
		return e;
	s->changed = true;
	s->events->counts.batches++;
	s->events->from[worker].heard[number].next = result.next;
	if (result.outcome != KVR_EVENTS_APPLIED)
		return KVR_ECORRUPT;
	return result.worker == id ? KVR_OK : fleet_renew(router->fleet,
	    worker, result.worker);
}

/* A batch arrives that a router does not lose. */
static int
hear_batch(struct simulation *s, uint32_t router, uint32_t worker,
    const struct batch *b)
{
	struct listener *l = &s->events->from[worker].heard[router];
	uint64_t id = fleet_id(s->routers[router].fleet, worker);
	int e = KVR_OK;

	if (l->replay != TIMES_NEVER)
		return KVR_OK;
	if (b->seq > l->next) {
		s->events->counts.gaps++;
		if (s->options.event_replay) {
			l->replay = s->now + s->options.event_delay_ns;
			return KVR_OK;
		}
		e = kvr_events_lost(s->routers[router].k, id, b->seq);
	}
	return e == KVR_OK ? apply_batch(s, router, worker, b) : e;
}

static int
receive_batch(struct simulation *s, uint32_t worker, struct batch *b)
{
	uint32_t i;
	int e = KVR_OK;

	b->arrived = true;
	for (i = 0; e == KVR_OK && i < s->options.replicas; i++)
		if ((b->lost >> i & 1) == 0)
			e = hear_batch(s, i, worker, b);
		else
			s->events->counts.lost++;
	return e;
}

/* All that has arrived, whether the router lost it or not. */
static int
replay_batches(struct simulation *s, uint32_t router, uint32_t worker)
{
	struct publisher *p = &s->events->from[worker];
	struct batch *b;
	int e = KVR_OK;

	p->heard[router].replay = TIMES_NEVER;
	DL_FOREACH(p->batches, b)
		if (e == KVR_OK && b->arrived &&
		    b->seq == p->heard[router].next)
			e = apply_batch(s, router, worker, b);
	return e;
}

/*
 * Frees batches that no router needs; sets when the worker is looked at again.
 */
static void
settle_batches(struct simulation *s, uint32_t worker)
{
	struct publisher *p = &s->events->from[worker];
	int64_t next = TIMES_NEVER;
	struct batch *b, *after;
	uint64_t least = p->seq;
	uint32_t i;

	for (i = 0; i < s->options.replicas; i++) {
		if (p->heard[i].next < least)
			least = p->heard[i].next;
		if (p->heard[i].replay < next)
			next = p->heard[i].replay;
	}
	DL_FOREACH_SAFE(p->batches, b, after) {
		if (!b->arrived) {
			next = b->at < next ? b->at : next;
			break;
		}
		if (b->seq >= least)
			continue;
		if (s->events->made == b)
			s->events->made = NULL;
		DL_DELETE(p->batches, b);
		batch_free(b);
	}
	times_set(&s->events->next, worker, next);
}

static int
news_of(struct simulation *s, uint32_t worker)
{
	struct publisher *p = &s->events->from[worker];
	struct batch *b;
	uint32_t i;
	int e = KVR_OK;

	DL_FOREACH(p->batches, b)
		if (e == KVR_OK && !b->arrived && b->at <= s->now)
			e = receive_batch(s, worker, b);
	for (i = 0; e == KVR_OK && i < s->options.replicas; i++)
		if (p->heard[i].replay <= s->now)
			e = replay_batches(s, i, worker);
	settle_batches(s, worker);
	return e;
}

int64_t
news_next(const struct simulation *s)
{
	return s->events == NULL ? TIMES_NEVER : times_least(&s->events->next);
}

int
news_do(struct simulation *s)
{
	int e = KVR_OK;

	while (e == KVR_OK && news_next(s) <= s->now)
		e = news_of(s, times_first(&s->events->next));
	return e;
}

void
simulate_heard(const struct simulation *s, struct simulate_heard *out)
{
	memset(out, 0, sizeof(*out));
	if (s->events != NULL)
		*out = s->events->counts;
}
