/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serving.c - see serving.h.
 *
 * The number by which the engine knows a sequence is its address.
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
	int64_t told;         /* when its owner was told last */
	bool admitted;        /* at least once */
	bool compute_all;
	bool is_news;
	struct sequence *prev, *next;
	struct sequence *news_prev, *news_next;
};

struct serving {
	struct serving_facts facts;
	struct engine *engine;
	struct serving_counts counts; /* of what has happened */
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
		.preempt = facts->preempt, .each_token = true
	};
	struct serving *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->facts = *facts;
	s->counts.blocks = facts->blocks;
	s->engine = engine_new(&idea);
	if (s->engine == NULL) {
		free(s);
		return NULL;
	}
	return s;
}

void
serving_free(struct serving *s)
{
	struct sequence *q, *next;

	if (s == NULL)
		return;
	DL_FOREACH_SAFE(s->sequences, q, next)
		free(q);
	engine_free(s->engine);
	free(s);
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
		} else if (event.kind == ENGINE_PREEMPTED) {
			s->counts.preempted++;
		} else if (event.kind == ENGINE_FINISHED) {
			generated(s, q, event.tokens);
			q->state.finished = true;
			s->counts.finished++;
			tell(s, q);
		} else if (event.kind != ENGINE_RESUMED) {
			generated(s, q, event.tokens);
		}
	}
}

static void
begin(struct serving *s)
{
	s->step_end = engine_begin(s->engine, s->now);
	s->stepping = s->step_end != INT64_MAX;
}

/* Steps follow each other without a pause; none begins on an idle engine. */
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

static bool
send(struct serving *s, struct sequence *q, const struct sequence_facts *facts)
{
	struct engine_request r = {
		.number = (uint64_t)(uintptr_t)q, .tokens = facts->n_prompt,
		.output = facts->n_answer, .known = facts->n_answer - 1,
		.compute_all = facts->compute_all
	};
	uint64_t *names = name_all(s, facts, (size_t)(r.tokens + r.known) /
	    s->facts.block_tokens);

	r.names = names;
	if (names != NULL)
		s->failed = engine_submit(s->engine, &r) != ENGINE_OK;
	free(names);
	return names != NULL && !s->failed;
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
		free(q);
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
	free(q);
	listen(s);
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
