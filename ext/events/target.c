/* SPDX-License-Identifier: BSD-2-Clause */
/* target.c - see target.h. */
#include "target.h"

#include <stdlib.h>
#include <string.h>

/* Others' entries are reclaimed a part at a time. */
enum { TRIES = 10000, TIER_NONE = 2 };
/* No engine publishes more: most have one a step, and steps take some ms. */
enum { BATCHES_A_SECOND = 1000 };
#define SECOND INT64_C(1000000000)

static int64_t
lease_of(const struct target *t)
{
	return SECOND * (t->conf->lease != 0 ? t->conf->lease : CONF_LEASE);
}

void
target_init(struct target *t, struct kvr *k, const struct conf_stream *conf)
{
	struct kvr_options o = { .size = sizeof(o) };

	memset(t, 0, sizeof(*t));
	t->alive = t->told = t->asked = -1;
	t->k = k;
	t->conf = conf;
	if (kvr_options_get(k, &o) == KVR_OK && o.event_blocks > 0 &&
	    o.unit == KVR_UNIT_TOKENS)
		t->pages.block = o.block_size;
	t->pages.most = (size_t)conf->pages_mb << 20;
	target_scope(t);
}

void
target_scope(struct target *t)
{
	const char *model = t->conf->model;

	(void)kvr_scope_init(&t->scope, sizeof(t->scope));
	if (model[0] != '\0')
		(void)kvr_scope_set(t->k, &t->scope, KVR_SCOPE_MODEL, model,
		    strlen(model));
}

void
target_free(struct target *t)
{
	free(t->events);
	t->events = NULL;
	pages_arrays_free(&t->arrays);
	pages_free(&t->pages);
}

bool
target_find(struct target *t)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };

	t->error = kvr_worker_find(t->k, t->conf->worker,
	    strlen(t->conf->worker), t->conf->rank, &t->id);
	if (t->error == KVR_OK)
		t->error = kvr_worker_stats_get(t->k, t->id, &stats);
	if (t->error != KVR_OK) {
		t->id = 0;
		t->state = KVR_EVENTS_OFF;
		return false;
	}
	t->next = stats.events_next;
	t->state = stats.events_state;
	t->cause = stats.events_cause;
	if (t->alive < 0) /* an earlier process followed it */
		t->alive = stats.events_until > lease_of(t) ?
		    stats.events_until - lease_of(t) : stats.events_at;
	return true;
}

/* --------------------------------------------------------------- leases --- */

static void
look_at_state(struct target *t)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };

	if (kvr_worker_stats_get(t->k, t->id, &stats) != KVR_OK)
		return;
	t->state = stats.events_state;
	t->cause = stats.events_cause;
}

void
target_alive(struct target *t, bool follows, int64_t now)
{
	if (t->id == 0 || (t->asked >= 0 && now - t->asked < SECOND / 4))
		return;
	t->asked = now;
	look_at_state(t);
	if (!follows || t->state == KVR_EVENTS_OFF)
		return;
	t->alive = now;
	if (t->told >= 0 && now - t->told < lease_of(t) / 4)
		return;
	if (kvr_events_until(t->k, t->id, now + lease_of(t)) == KVR_OK)
		t->told = now;
}

bool
target_may_restart(const struct target *t, int64_t since, int64_t now)
{
	const uint64_t seconds = now > since ?
	    (uint64_t)((now - since) / SECOND) + 1 : 1;

	return since < 0 || t->next <= seconds * BATCHES_A_SECOND;
}

bool
target_has_prompts(const struct target *t)
{
	struct kvr_stats stats = { .size = sizeof(stats) };

	return kvr_stats_get(t->k, &stats) == KVR_OK &&
	    stats.lease_opens + stats.observes > 0;
}

/* --------------------------------------------------------- translation --- */

/* NULL: no memory. */
static struct kvr_event *
add(struct target *t, uint32_t kind, uint32_t tier)
{
	void *events = t->events;
	struct kvr_event *e;
	const bool good = pages_room(&events, &t->events_room, t->n, 1,
	    sizeof(*e));

	t->events = events;
	if (!good)
		return NULL;
	e = &t->events[t->n++];
	memset(e, 0, sizeof(*e));
	(void)kvr_event_init(e, sizeof(*e));
	e->kind = kind;
	e->tier = tier;
	e->scope = t->scope;
	return e;
}

static uint32_t
tier_of(uint32_t tier)
{
	switch (tier) {
	case EVENT_TIER_NONE:
	case EVENT_DEVICE:
		return KVR_TIER_GPU;
	case EVENT_HOST:
		return KVR_TIER_HOST;
	default:
		return TIER_NONE;
	}
}

/* The salt and the adapter, as routers set them for a request. */
static void
set_scope(struct target *t, struct kvr_event *to, const struct event_batch *b,
    const struct event *e)
{
	if (e->adapter.n > 0)
		(void)kvr_scope_set(t->k, &to->scope, KVR_SCOPE_ADAPTER,
		    b->text + e->adapter.at, e->adapter.n);
	if (e->salt.n > 0)
		(void)kvr_scope_set(t->k, &to->scope, KVR_SCOPE_SALT,
		    b->text + e->salt.at, e->salt.n);
}

/* Local hashes stand among the others. */
static bool
set_contents(struct target *t, struct kvr_event *to,
    const struct event_batch *b, const struct event *e)
{
	if (e->locals.n > 0) {
		to->flags |= KVR_EVENT_LOCALS;
		to->tokens_at = t->arrays.n_hashes;
		to->tokens = e->locals.n;
		return pages_hashes_add(&t->arrays, b->locals + e->locals.at,
		    e->locals.n);
	}
	to->tokens_at = t->arrays.n_tokens;
	to->tokens = e->tokens.n;
	return e->tokens.n == 0 || pages_tokens_add(&t->arrays,
	    b->tokens + e->tokens.at, e->tokens.n);
}

static bool
add_blocks(struct target *t, uint32_t kind, uint32_t tier,
    const struct event_batch *b, const struct event *e)
{
	struct kvr_event *to = add(t, kind, tier);

	if (to == NULL)
		return false;
	to->hashes_at = t->arrays.n_hashes;
	to->hashes = e->hashes.n;
	if (!pages_hashes_add(&t->arrays, b->hashes + e->hashes.at,
	    e->hashes.n))
		return false;
	if (kind != KVR_EVENT_STORED)
		return true;
	to->block_tokens = e->block_size;
	if (e->flags & EVENT_HAS_PARENT) {
		to->flags |= KVR_EVENT_PARENT;
		to->parent = e->parent;
	}
	set_scope(t, to, b, e);
	return set_contents(t, to, b, e);
}

/* Adds the whole blocks that the pages of an event make. */
static bool
add_pages(struct target *t, uint32_t kind, uint32_t tier,
    const struct event_batch *b, const struct event *e)
{
	struct pages_event pages = { .names = b->hashes + e->hashes.at,
	    .n = e->hashes.n, .parent = e->parent,
	    .has_parent = (e->flags & EVENT_HAS_PARENT) != 0,
	    .full = t->conf->full != 0, .tier = tier };
	const bool has_tokens = e->tokens.n > 0;
	const size_t hashes = t->arrays.n_hashes, tokens = t->arrays.n_tokens;
	struct kvr_event *to = add(t, kind, tier);

	if (to == NULL)
		return false;
	if (has_tokens)
		pages.tokens = b->tokens + e->tokens.at;
	set_scope(t, to, b, e);
	pages.scope = to->scope;
	if (!(kind == KVR_EVENT_STORED ? pages_store(&t->pages, e->block_size,
	    &pages, &t->arrays) : pages_remove(&t->pages, &pages,
	    &t->arrays)))
		return false;
	if (pages.blocks == 0) {
		t->n--;
		return true;
	}
	to->hashes_at = hashes;
	to->hashes = pages.blocks;
	if (kind != KVR_EVENT_STORED || !has_tokens)
		return true;
	to->block_tokens = t->pages.block;
	to->tokens_at = tokens;
	to->tokens = pages.blocks * t->pages.block;
	to->flags = pages.has_parent ? KVR_EVENT_PARENT : 0;
	to->parent = pages.parent;
	to->scope = pages.scope;
	return true;
}

/* Does the event name pages? A removal has no size. */
static bool
is_paged(const struct target *t, uint32_t kind, const struct event *e)
{
	if (!t->whole || e->locals.n > 0)
		return false;
	if (kind != KVR_EVENT_STORED)
		return true;
	return pages_are(&t->pages, e->block_size) && (e->tokens.n == 0 ||
	    e->tokens.n == e->hashes.n * e->block_size);
}

static bool
add_event(struct target *t, uint32_t kind, uint32_t tier,
    const struct event_batch *b, const struct event *e)
{
	return is_paged(t, kind, e) ? add_pages(t, kind, tier, b, e)
	    : add_blocks(t, kind, tier, b, e);
}

/* Counts the first blocks with known contents. */
static uint64_t
blocks_clear(const struct event *e)
{
	return e->locals.n > 0 ? e->locals.n : e->block_size == 0 ? 0 :
	    e->tokens.n / e->block_size;
}

/*
 * The library takes the contents of all blocks of an event, or of none. Blocks
 * before an image are an event of their own, so that only the blocks from the
 * image on are unknown.
 */
static bool
blocks(struct target *t, uint32_t kind, uint32_t tier,
    const struct event_batch *b, const struct event *e)
{
	const uint64_t clear = blocks_clear(e);
	struct event first = *e, rest = *e;

	if (tier == TIER_NONE) {
		t->seen.ignored++;
		return true;
	}
	if (kind != KVR_EVENT_STORED || !(e->flags & EVENT_OPAQUE) ||
	    clear == 0 || clear >= e->hashes.n)
		return add_event(t, kind, tier, b, e);
	first.hashes.n = clear;
	rest.hashes.at += clear;
	rest.hashes.n -= clear;
	rest.tokens.n = rest.locals.n = 0;
	rest.flags |= EVENT_HAS_PARENT;
	rest.parent = b->hashes[e->hashes.at + clear - 1];
	return add_event(t, kind, tier, b, &first) &&
	    add_event(t, kind, tier, b, &rest);
}

/*
 * Polled events name no tier when a block is removed at last: wherever it is,
 * it counts once, as if there were one tier.
 */
static uint32_t
stored_in(const struct target *t, const struct event *e)
{
	return t->conf->engine == CONF_TRTLLM && t->conf->server[0] != '\0' ?
	    KVR_TIER_GPU : tier_of(e->tier);
}

/* Only polled events name the tier that a block has left. */
static bool
moved(struct target *t, const struct event_batch *b, const struct event *e)
{
	t->seen.moved += e->hashes.n;
	return e->from_tier != EVENT_TIER_NONE ||
	    blocks(t, KVR_EVENT_STORED, tier_of(e->tier), b, e);
}

/* A batch that comes again forgets nothing. */
static void
forget_pages(struct target *t)
{
	if (t->whole)
		pages_clear(&t->pages);
}

static bool
translate(struct target *t, const struct event_batch *b, const struct event *e)
{
	switch (e->kind) {
	case EVENT_STORED:
		return blocks(t, KVR_EVENT_STORED, stored_in(t, e), b, e);
	case EVENT_REMOVED:
		return blocks(t, KVR_EVENT_REMOVED, tier_of(e->tier), b, e);
	case EVENT_CLEARED:
		t->seen.cleared++;
		forget_pages(t);
		return add(t, KVR_EVENT_CLEARED, KVR_TIER_GPU) != NULL;
	case EVENT_MOVED:
		return moved(t, b, e);
	case EVENT_RESTARTED:
		forget_pages(t);
		return add(t, KVR_EVENT_RESTARTED, KVR_TIER_GPU) != NULL;
	default:
		return true;
	}
}

/* A first batch may be a duplicate, or another engine's. */
static void
set_aside(struct target *t)
{
	t->before = t->pages;
	t->pages = (struct pages){ .block = t->before.block,
		.most = t->before.most, .forgotten = t->before.forgotten };
}

/* Nothing has changed, or the former content is void. */
static void
bring_back(struct target *t, bool same)
{
	if (same) {
		pages_free(&t->pages);
		t->pages = t->before;
	} else {
		pages_free(&t->before);
	}
	t->before = (struct pages){ 0 };
}

/*
 * Pages are kept only if the batch will be applied: it is the next one, or a
 * first one, which may be another engine's.
 */
static bool
translate_all(struct target *t, const struct target_batch *batch)
{
	const struct event_batch *b = batch->events;
	bool good = true;
	size_t i;

	t->n = t->arrays.n_hashes = t->arrays.n_tokens = 0;
	memset(&t->seen, 0, sizeof(t->seen));
	t->whole = t->pages.block > 0 && (t->life != TARGET_SAME ||
	    batch->seq == t->next || batch->seq == 0);
	if (t->life == TARGET_SAME && batch->seq == 0)
		set_aside(t);
	else if (t->life != TARGET_SAME)
		pages_clear(&t->pages);
	if (t->life != TARGET_SAME)
		good = add(t, KVR_EVENT_RESTARTED, KVR_TIER_GPU) != NULL;
	for (i = batch->from; b != NULL && i < batch->to && good; i++)
		good = translate(t, b, &b->events[i]);
	return good;
}

/* --------------------------------------------------------- application --- */

static int
apply(struct target *t, const struct target_batch *batch,
    struct kvr_event_result *out)
{
	const struct kvr_event_batch head = { .size = sizeof(head),
	    .seq = batch->seq, .digest = batch->digest,
	    .flags = (batch->past ? (uint32_t)KVR_BATCH_PAST : 0) |
	        (t->conf->full != 0 ? (uint32_t)KVR_BATCH_FULL : 0) };
	const struct pages_arrays *a = &t->arrays;
	int error = KVR_EBUSY, i;

	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	for (i = 0; i < TRIES && error == KVR_EBUSY; i++) {
		error = kvr_events_apply(t->k, t->id, &head, t->events,
		    sizeof(*t->events), t->n, a->hashes, a->n_hashes,
		    a->tokens, a->n_tokens, kvr_clock_now(), 0, out);
		if (error == KVR_EWORKER && target_find(t))
			error = KVR_EBUSY;
	}
	return error;
}

/* Is there a block at the beginning of a prompt, which has a scope? */
static bool
has_begun(const struct target *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->events[i].kind == KVR_EVENT_STORED &&
		    (t->events[i].flags & KVR_EVENT_PARENT) == 0 &&
		    t->events[i].hashes > 0)
			return true;
	return false;
}

static void
count_unseen(struct target *t, bool begun, uint64_t unseen)
{
	t->counts.unseen += unseen;
	t->counts.unseen_row += unseen;
	if (begun && unseen == 0)
		t->counts.unseen_row = 0;
}

static enum target_outcome
took(struct target *t, const struct target_batch *batch,
    const struct kvr_event_result *r)
{
	t->id = r->worker;
	t->next = r->next;
	if (t->state == KVR_EVENTS_OFF && r->state != KVR_EVENTS_OFF)
		t->asked = t->told = -1; /* it has a lease at once */
	t->state = r->state;
	if (t->state == KVR_EVENTS_COMPLETE)
		t->why = NULL;
	t->counts.stored += r->stored;
	t->counts.removed += r->removed;
	t->counts.refused += r->refused;
	t->counts.orphans += r->orphans;
	if (r->outcome == KVR_EVENTS_GAP)
		return TARGET_BEHIND;
	if (r->outcome == KVR_EVENTS_RESTARTED)
		t->counts.restarts++;
	t->life = TARGET_SAME;
	if (r->outcome == KVR_EVENTS_RESTARTED && r->next <= batch->seq)
		return TARGET_RESTARTED;
	if (r->outcome == KVR_EVENTS_DUPLICATE) {
		t->counts.duplicates++;
		return TARGET_APPLIED;
	}
	t->counts.applied++;
	t->counts.past += batch->past;
	t->counts.cleared += t->seen.cleared;
	t->counts.moved += t->seen.moved;
	t->counts.ignored += t->seen.ignored;
	count_unseen(t, has_begun(t), r->unseen);
	return TARGET_APPLIED;
}

/* May the worker get another window? A window that others have set stays. */
static bool
is_free(const struct target *t, const struct kvr_worker *w)
{
	if (w->window_mode == KVR_WINDOW_FULL)
		return w->window_tokens == 0;
	return w->window_mode == t->conf->sliding && t->window != 0 &&
	    w->window_tokens == t->window;
}

/*
 * Before each batch, as a router that is configured anew sets the facts anew.
 * If the lock is held for long, the next batch tries again.
 */
static void
set_window(struct target *t, uint64_t sliding)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	if (sliding == 0)
		return;
	t->sliding = sliding;
	if (t->conf->sliding == KVR_WINDOW_FULL || sliding > UINT32_MAX ||
	    t->id == 0 ||
	    kvr_worker_get(t->k, t->id, &facts) != KVR_OK ||
	    !is_free(t, &facts) || facts.window_tokens == sliding)
		return;
	facts.window_mode = t->conf->sliding;
	facts.window_tokens = (uint32_t)sliding;
	if (kvr_worker_set(t->k, t->id, &facts) == KVR_OK)
		t->window = (uint32_t)sliding;
}

enum target_outcome
target_apply(struct target *t, const struct target_batch *batch)
{
	const bool first = t->life == TARGET_SAME && batch->seq == 0;
	struct kvr_event_result result;
	enum target_outcome outcome;
	bool duplicate;

	if (batch->events != NULL)
		set_window(t, batch->events->sliding);
	t->error = translate_all(t, batch) ? apply(t, batch, &result)
	    : KVR_ENOMEM;
	duplicate = t->error == KVR_OK &&
	    result.outcome == KVR_EVENTS_DUPLICATE;
	if (first)
		bring_back(t, duplicate);
	if (t->error == KVR_OK) {
		outcome = took(t, batch, &result);
		if (t->whole && (outcome != TARGET_APPLIED ||
		    (duplicate && !first)))
			pages_clear(&t->pages);
		return outcome;
	}
	pages_clear(&t->pages);
	if (t->error == KVR_EWORKER || t->id == 0)
		return TARGET_ABSENT;
	t->counts.errors++;
	return TARGET_FAILED;
}

void
target_lost(struct target *t, uint64_t next, const char *why)
{
	t->why = why;
	pages_clear(&t->pages);
	if (t->life == TARGET_NEW)
		t->life = TARGET_NEW_LOST;
	if (next > t->next)
		t->counts.lost += next - t->next;
	t->error = kvr_events_lost(t->k, t->id, next);
	if (t->error == KVR_EWORKER && target_find(t))
		t->error = kvr_events_lost(t->k, t->id, next);
	if (t->error == KVR_OK)
		(void)target_find(t);
}
