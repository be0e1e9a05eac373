/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serving.c - see serving.h.
 *
 * The engine identifies a sequence by its address.
 */
#include "serving.h"

#include "engine_model.h"

#include <stdlib.h>

#include <utlist.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct sequence {
	struct sequence_state state;
	uint64_t n_prompt;
	int64_t told;         /* time of the last report to its owner */
	bool admitted;        /* at least once */
	bool compute_all;
	bool is_news;
	struct block **blocks; /* [n_blocks], if they are watched */
	size_t n_blocks;
	size_t copy;           /* the block that it has twice, or n_blocks */
	struct sequence *prev, *next;
	struct sequence *news_prev, *news_next;
};

struct queued {
	struct serving_change change;
	struct block *block; /* held, if stored */
};

struct serving {
	struct serving_facts facts;
	struct blocks *blocks;        /* NULL: they are not watched */
	struct queued *queue;
	size_t n_queue, next_queued, queue_room;
	struct block *shown;          /* of the last change taken out */
	struct engine *engine;
	struct serving_counts counts; /* since the start */
	struct sequence *sequences;   /* not dropped yet */
	struct sequence *news;
	bool stepping;
	bool failed;                  /* no memory */
	int64_t step_end;
	int64_t now;
};

struct serving *
serving_new(const struct serving_facts *facts)
{
	double speed = (double)ENGINE_STEP_NS / (double)facts->decode_ns;
	struct engine_idea idea = {
		.blocks = facts->blocks, .block_tokens = facts->block_tokens,
		.eviction = facts->eviction, .speed = speed,
		.prefill = facts->prefill_rate / speed, .seed = facts->seed,
		.sequences = facts->sequences, .batch = facts->batch,
		.attention = facts->attention, .own_reads = facts->own_reads,
		.preempt = facts->preempt, .each_token = true,
		.watched = facts->watched
	};
	struct serving *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->facts = *facts;
	s->counts.blocks = facts->blocks;
	s->engine = engine_new(&idea);
	s->blocks = facts->watched ? blocks_new(facts->block_tokens) : NULL;
	if (s->engine == NULL || (facts->watched && s->blocks == NULL)) {
		engine_free(s->engine);
		blocks_free(s->blocks);
		free(s);
		return NULL;
	}
	return s;
}

static void
sequence_free(struct serving *s, struct sequence *q)
{
	size_t i;

	for (i = 0; i < q->n_blocks; i++)
		blocks_release(s->blocks, q->blocks[i]);
	free(q->blocks);
	free(q);
}

void
serving_free(struct serving *s)
{
	struct sequence *q, *next;

	if (s == NULL)
		return;
	DL_FOREACH_SAFE(s->sequences, q, next)
		sequence_free(s, q);
	engine_free(s->engine);
	blocks_free(s->blocks);
	free(s->queue);
	free(s);
}

/* -------------------------------------------------------------- changes --- */

/* `block` is NULL if one was removed. */
static void
queue(struct serving *s, uint64_t name, struct block *block)
{
	size_t want = s->queue_room == 0 ? 64 : s->queue_room * 2;
	struct queued *p;

	if (s->next_queued == s->n_queue)
		s->next_queued = s->n_queue = 0;
	if (s->n_queue == s->queue_room) {
		p = realloc(s->queue, want * sizeof(*p));
		if (p == NULL) {
			s->failed = true;
			return;
		}
		s->queue = p;
		s->queue_room = want;
	}
	if (block != NULL)
		blocks_hold(block);
	s->queue[s->n_queue++] = (struct queued){
	    { block != NULL, name, block }, block };
}

bool
serving_change(struct serving *s, struct serving_change *out)
{
	if (s->shown != NULL)
		blocks_release(s->blocks, s->shown);
	s->shown = NULL;
	if (s->next_queued == s->n_queue)
		return false;
	s->shown = s->queue[s->next_queued].block;
	*out = s->queue[s->next_queued++].change;
	return true;
}

/* Blocks without contents, such as ends of outputs, are not reported. */
static void
take_change(struct serving *s, const struct cache_change *change, bool tell)
{
	struct block *block = blocks_find(s->blocks, change->name);

	if (block == NULL || block->cached == change->stored)
		return;
	block->cached = change->stored;
	if (tell)
		queue(s, change->name, change->stored ? block : NULL);
	if (change->stored)
		blocks_hold(block);
	else
		blocks_release(s->blocks, block);
}

/* Takes the noted changes of the cache; the next call may forget contents. */
static void
take_changes(struct serving *s, bool tell)
{
	const struct cache_change *changes;
	size_t n, i;

	if (s->blocks == NULL || s->failed)
		return;
	s->failed = !engine_changes(s->engine, &changes, &n);
	for (i = 0; i < n && !s->failed; i++)
		take_change(s, &changes[i], tell);
	engine_noted(s->engine);
}

/* Reports the blocks that an admitted sequence found in the cache. */
static void
tell_hits(struct serving *s, struct sequence *q, uint64_t hit)
{
	size_t n = (size_t)(hit / s->facts.block_tokens), i;

	for (i = 0; i < n && i < q->n_blocks && s->facts.tells_hits; i++)
		queue(s, q->blocks[i]->name, q->blocks[i]);
	if (!s->facts.has_copies || q->compute_all || n >= q->n_blocks ||
	    (n + 1) * s->facts.block_tokens > q->n_prompt ||
	    !q->blocks[n]->cached)
		return;
	q->copy = n;
	queue(s, q->blocks[n]->name, q->blocks[n]);
}

static void
drop_copy(struct serving *s, struct sequence *q)
{
	if (q->copy < q->n_blocks)
		queue(s, q->blocks[q->copy]->name, NULL);
	q->copy = q->n_blocks;
}

/* ------------------------------------------------------------- progress --- */

static void
tell(struct serving *s, struct sequence *q)
{
	q->told = s->now;
	if (q->is_news)
		return;
	q->is_news = true;
	DL_APPEND2(s->news, q, news_prev, news_next);
}

static void
count_hits(struct serving *s, struct sequence *q, uint64_t hit)
{
	q->admitted = true;
	q->state.cached = hit;
	if (q->compute_all)
		return;
	s->counts.queried += q->n_prompt;
	s->counts.hit += hit;
}

static void
generated(struct serving *s, struct sequence *q, uint64_t tokens)
{
	bool first = q->state.generated == 0;

	if (first)
		s->counts.prompt_tokens += q->n_prompt;
	s->counts.generated += tokens - q->state.generated;
	q->state.generated = tokens;
	if (first || s->now - q->told >= s->facts.tick_ns)
		tell(s, q);
}

static void
listen(struct serving *s)
{
	struct engine_event event;
	struct sequence *q;

	while (!s->failed && engine_next(s->engine, &event)) {
		q = (struct sequence *)(uintptr_t)event.request;
		if (event.kind == ENGINE_ADMITTED) {
			count_hits(s, q, event.tokens);
			tell_hits(s, q, event.tokens);
		} else if (event.kind == ENGINE_PREEMPTED) {
			s->counts.preempted++;
			drop_copy(s, q);
		} else if (event.kind == ENGINE_FINISHED) {
			generated(s, q, event.tokens);
			drop_copy(s, q);
			q->state.finished = true;
			s->counts.finished++;
			tell(s, q);
		} else if (event.kind != ENGINE_RESUMED) {
			generated(s, q, event.tokens);
		}
	}
	take_changes(s, true);
}

static void
begin(struct serving *s)
{
	s->step_end = engine_begin(s->engine, s->now);
	s->stepping = s->step_end != INT64_MAX;
}

/* Steps follow each other without a pause; an idle engine begins no step. */
static void
advance(struct serving *s, int64_t now)
{
	while (s->stepping && !s->failed && s->step_end <= now) {
		s->now = s->step_end;
		s->failed = engine_end(s->engine) != ENGINE_OK;
		listen(s);
		begin(s);
	}
	if (s->now < now)
		s->now = now;
}

int64_t
serving_due(const struct serving *s)
{
	struct engine_state state;

	if (s->stepping)
		return s->step_end;
	engine_state(s->engine, &state);
	return state.running > 0 ? s->now : INT64_MAX;
}

bool
serving_run(struct serving *s, int64_t now)
{
	advance(s, now);
	if (!s->stepping && !s->failed)
		begin(s);
	return !s->failed;
}

/* --------------------------------------------------- coming and leaving --- */

static uint64_t
blocks_of(const struct serving *s, uint64_t tokens)
{
	return tokens / s->facts.block_tokens +
	    (tokens % s->facts.block_tokens > 0);
}

bool
serving_fits(const struct serving *s, size_t n_prompt, size_t n_answer)
{
	return n_answer <= ENGINE_OUTPUT_MAX &&
	    n_answer <= SIZE_MAX - n_prompt &&
	    blocks_of(s, n_prompt + n_answer) <= s->facts.blocks;
}

/* The names of the first n blocks, to be freed. NULL: no memory. */
static uint64_t *
name_all(const struct serving *s, const struct sequence_facts *facts,
    size_t n)
{
	size_t block = s->facts.block_tokens, i;
	uint64_t *names = calloc(n + 1, sizeof(*names));
	uint64_t name = facts->salt;

	for (i = 0; names != NULL && i < n; i++) {
		name = XXH3_64bits_withSeed(facts->tokens + i * block,
		    block * sizeof(*facts->tokens), name);
		names[i] = name;
	}
	return names;
}

/* Holds the blocks with these names. False: no memory. */
static bool
hold(struct serving *s, struct sequence *q,
    const struct sequence_facts *facts, const uint64_t *names, size_t n)
{
	struct block block = { .first = true, .salt = facts->salt_text,
	    .adapter = facts->adapter };
	size_t i;

	if (s->blocks == NULL)
		return true;
	q->blocks = calloc(n + 1, sizeof(struct block *));
	for (i = 0; q->blocks != NULL && i < n; i++) {
		block.name = names[i];
		block.tokens = facts->tokens + i * s->facts.block_tokens;
		q->blocks[i] = blocks_add(s->blocks, &block);
		if (q->blocks[i] == NULL)
			return false;
		q->copy = ++q->n_blocks;
		block.before = names[i];
		block.first = false;
		block.salt = NULL;
	}
	return q->blocks != NULL;
}

static bool
send(struct serving *s, struct sequence *q, const struct sequence_facts *facts)
{
	struct engine_request r = {
		.number = (uint64_t)(uintptr_t)q, .tokens = facts->n_prompt,
		.output = facts->n_answer, .known = facts->n_answer - 1,
		.compute_all = facts->compute_all
	};
	size_t n = (size_t)(r.tokens + r.known) / s->facts.block_tokens;
	uint64_t *names = name_all(s, facts, n);
	bool held = names != NULL && hold(s, q, facts, names, n);

	r.names = names;
	if (held)
		s->failed = engine_submit(s->engine, &r) != ENGINE_OK;
	free(names);
	return held && !s->failed;
}

struct sequence *
serving_submit(struct serving *s, const struct sequence_facts *facts,
    int64_t now)
{
	struct sequence *q = calloc(1, sizeof(*q));

	advance(s, now);
	if (q == NULL || s->failed) {
		free(q);
		return NULL;
	}
	q->state.owner = facts->owner;
	q->compute_all = facts->compute_all;
	q->n_prompt = facts->n_prompt;
	if (!send(s, q, facts)) {
		sequence_free(s, q);
		return NULL;
	}
	DL_APPEND(s->sequences, q);
	listen(s);
	return q;
}

void
serving_drop(struct serving *s, struct sequence *q)
{
	if (q == NULL)
		return;
	if (!q->state.finished && !s->failed)
		engine_drop(s->engine, (uint64_t)(uintptr_t)q);
	if (q->is_news)
		DL_DELETE2(s->news, q, news_prev, news_next);
	DL_DELETE(s->sequences, q);
	drop_copy(s, q);
	listen(s);
	sequence_free(s, q);
}

bool
serving_clear(struct serving *s)
{
	struct engine_state state;

	engine_state(s->engine, &state);
	if (state.running + state.waiting > 0)
		return false;
	engine_reset(s->engine);
	take_changes(s, false);
	return true;
}

/* -------------------------------------------------------- looking at it --- */

struct sequence *
serving_news(struct serving *s, struct sequence_state *out)
{
	struct sequence *q = s->news;

	if (q == NULL)
		return NULL;
	DL_DELETE2(s->news, q, news_prev, news_next);
	q->is_news = false;
	*out = q->state;
	return q;
}

void
serving_counts(const struct serving *s, struct serving_counts *out)
{
	struct engine_state state;

	engine_state(s->engine, &state);
	*out = s->counts;
	out->running = state.running;
	out->waiting = state.waiting;
	out->held = state.pinned + state.own;
	out->idle = state.idle;
}

uint64_t
serving_held(const struct serving *s, const struct sequence_facts *facts)
{
	/* one token more: this prompt's last one counts, too */
	struct engine_request r = { .tokens = facts->n_prompt + 1 };
	uint64_t *names = name_all(s, facts, facts->n_prompt /
	    s->facts.block_tokens);
	uint64_t held;

	if (names == NULL)
		return UINT64_MAX;
	r.names = names;
	held = engine_cached(s->engine, &r);
	free(names);
	return held;
}

bool
serving_check(const struct serving *s)
{
	struct engine_state state;
	const struct sequence *q;
	uint64_t open = 0;

	engine_state(s->engine, &state);
	DL_FOREACH(s->sequences, q)
		open += !q->state.finished;
	return engine_check(s->engine) &&
	    open == state.running + state.waiting;
}
