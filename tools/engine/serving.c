/* SPDX-License-Identifier: BSD-2-Clause */
/* serving.c - see serving.h. */
#include "serving.h"

#include <stdlib.h>

#include <utlist.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum stage { WAITING, PREFILL, DECODE, FINISHED };

struct sequence {
	struct sequence_state state;
	enum stage stage;
	bool compute_all;
	bool admitted;        /* at least once */
	bool is_news;
	bool nameless;        /* no memory: no more names for its blocks */
	uint64_t n_prompt;
	uint64_t n_answer;
	uint64_t computed;    /* tokens */
	uint64_t held;        /* blocks, named ones included */
	size_t named;
	struct sequence *prev, *next; /* waiting, admitted or finished */
	struct sequence *news_prev, *news_next;
	struct engine_block **blocks;           /* [named] */
	uint64_t names[]; /* of all full blocks of prompt and response */
};

struct serving {
	struct serving_facts facts;
	struct engine_cache *cache;
	struct serving_counts counts;
	uint64_t own;                /* blocks held that have no name */
	uint64_t decoding;           /* sequences */
	struct sequence *waiting;    /* in the order of arrival */
	struct sequence *admitted;   /* in the order of admission */
	struct sequence *finished;   /* not dropped yet */
	struct sequence *news;
	struct sequence *prefill;    /* the one in prefill */
	uint64_t piece;              /* tokens of it, in progress */
	int64_t piece_end;
	uint64_t tick_tokens;        /* of each decoding sequence */
	int64_t tick_ns;
	int64_t tick;                /* time of the next one */
	int64_t now;
};

struct serving *
serving_new(const struct serving_facts *facts)
{
	struct serving *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->facts = *facts;
	s->counts.blocks = facts->blocks;
	s->tick_tokens = (uint64_t)((facts->tick_ns + facts->decode_ns - 1) /
	    facts->decode_ns);
	s->tick_tokens += s->tick_tokens == 0;
	s->tick_ns = (int64_t)s->tick_tokens * facts->decode_ns;
	s->cache = cache_new(facts->eviction, facts->seed);
	if (s->cache == NULL) {
		free(s);
		return NULL;
	}
	return s;
}

void
serving_free(struct serving *s)
{
	if (s == NULL)
		return;
	while (s->admitted != NULL)
		serving_drop(s, s->admitted);
	while (s->waiting != NULL)
		serving_drop(s, s->waiting);
	while (s->finished != NULL)
		serving_drop(s, s->finished);
	cache_free(s->cache);
	free(s);
}

/* --------------------------------------------------------------- blocks --- */

static uint64_t
blocks_of(const struct serving *s, uint64_t tokens)
{
	return tokens / s->facts.block_tokens +
	    (tokens % s->facts.block_tokens > 0);
}

static uint64_t
in_use(const struct serving *s)
{
	struct engine_cache_counts counts;

	cache_counts(s->cache, &counts);
	return counts.pinned + s->own;
}

/* Evicts idle blocks for more held ones. */
static void
fit(struct serving *s)
{
	struct engine_cache_counts counts;

	for (;;) {
		cache_counts(s->cache, &counts);
		if (counts.idle == 0 ||
		    counts.pinned + counts.idle + s->own <= s->facts.blocks)
			return;
		cache_evict(s->cache);
	}
}

static bool
pin(struct serving *s, struct sequence *q)
{
	struct engine_block *b = cache_pin(s->cache, q->names[q->named]);

	q->nameless = b == NULL;
	if (b != NULL)
		q->blocks[q->named++] = b;
	return b != NULL;
}

/* Names the full computed blocks. */
static void
name_computed(struct serving *s, struct sequence *q)
{
	uint64_t full = q->computed / s->facts.block_tokens;

	while (q->named < full && !q->nameless && pin(s, q))
		s->own--;
	fit(s);
}

/* Tail first: a block leaves before its predecessor. */
static void
release(struct serving *s, struct sequence *q)
{
	s->own -= q->held - q->named;
	while (q->named > 0)
		cache_unpin(s->cache, q->blocks[--q->named]);
	q->held = 0;
	q->computed = 0;
	fit(s);
}

/* --------------------------------------------------- coming and leaving --- */

static void
tell(struct serving *s, struct sequence *q)
{
	if (q->is_news)
		return;
	q->is_news = true;
	DL_APPEND2(s->news, q, news_prev, news_next);
}

/* Removes it from its list. */
static void
leave(struct serving *s, struct sequence *q)
{
	if (q->stage == FINISHED) {
		DL_DELETE(s->finished, q);
		return;
	}
	if (q->stage == WAITING) {
		DL_DELETE(s->waiting, q);
		s->counts.waiting--;
		return;
	}
	if (s->prefill == q)
		s->prefill = NULL;
	s->decoding -= q->stage == DECODE;
	DL_DELETE(s->admitted, q);
	s->counts.running--;
	release(s, q);
}

void
serving_drop(struct serving *s, struct sequence *q)
{
	if (q == NULL)
		return;
	leave(s, q);
	if (q->is_news)
		DL_DELETE2(s->news, q, news_prev, news_next);
	free(q->blocks);
	free(q);
}

bool
serving_fits(const struct serving *s, size_t n_prompt, size_t n_answer)
{
	return n_answer <= SIZE_MAX - n_prompt &&
	    blocks_of(s, n_prompt + n_answer) <= s->facts.blocks;
}

static struct sequence *
sequence_new(size_t full_blocks)
{
	struct sequence *q = calloc(1, sizeof(*q) +
	    full_blocks * sizeof(q->names[0]));

	if (q == NULL)
		return NULL;
	q->blocks = calloc(full_blocks + 1, sizeof(struct engine_block *));
	if (q->blocks == NULL) {
		free(q);
		return NULL;
	}
	return q;
}

static void
name_all(const struct serving *s, struct sequence *q,
    const struct sequence_facts *facts, size_t full_blocks)
{
	size_t block = s->facts.block_tokens, i;
	uint64_t name = facts->salt;

	for (i = 0; i < full_blocks; i++) {
		name = XXH3_64bits_withSeed(facts->tokens + i * block,
		    block * sizeof(*facts->tokens), name);
		q->names[i] = name;
	}
}

struct sequence *
serving_submit(struct serving *s, const struct sequence_facts *facts,
    int64_t now)
{
	size_t full = (facts->n_prompt + facts->n_answer) /
	    s->facts.block_tokens;
	struct sequence *q = sequence_new(full);

	serving_run(s, now);
	if (q == NULL)
		return NULL;
	q->state.owner = facts->owner;
	q->compute_all = facts->compute_all;
	q->n_prompt = facts->n_prompt;
	q->n_answer = facts->n_answer;
	name_all(s, q, facts, full);
	DL_APPEND(s->waiting, q);
	s->counts.waiting++;
	cache_use(s->cache, q->names, cache_leading(s->cache, q->names, full));
	return q;
}

/* ------------------------------------------------------------ admission --- */

/* Tokens to compute before it can decode. */
static uint64_t
to_prefill(const struct sequence *q)
{
	return q->n_prompt + q->state.generated;
}

static size_t
hits(const struct serving *s, const struct sequence *q)
{
	if (q->compute_all)
		return 0;
	return cache_leading(s->cache, q->names,
	    (size_t)((to_prefill(q) - 1) / s->facts.block_tokens));
}

/* Blocks held by others already need no room. */
static bool
has_room(const struct serving *s, const struct sequence *q, size_t hit)
{
	uint64_t shared = cache_pinned_leading(s->cache, q->names, hit);

	return s->counts.running < s->facts.sequences &&
	    in_use(s) + blocks_of(s, to_prefill(q)) - shared <=
	    s->facts.blocks;
}

static void
begin_piece(struct serving *s)
{
	uint64_t left = to_prefill(s->prefill) - s->prefill->computed;

	s->piece = left < PREFILL_PIECE ? left : PREFILL_PIECE;
	s->piece_end = s->now + (int64_t)((double)s->piece * 1e9 /
	    s->facts.prefill_rate);
}

static void
count_hits(struct serving *s, struct sequence *q)
{
	if (q->admitted)
		return;
	q->admitted = true;
	q->state.cached = q->computed;
	if (q->compute_all)
		return;
	s->counts.queried += q->n_prompt;
	s->counts.hit += q->computed;
}

static void
admit(struct serving *s, struct sequence *q, size_t hit)
{
	DL_DELETE(s->waiting, q);
	s->counts.waiting--;
	DL_APPEND(s->admitted, q);
	s->counts.running++;
	q->stage = PREFILL;
	while (q->named < hit && pin(s, q))
		;
	q->computed = q->named * s->facts.block_tokens;
	q->held = blocks_of(s, to_prefill(q));
	s->own += q->held - q->named;
	fit(s);
	count_hits(s, q);
	s->prefill = q;
	begin_piece(s);
}

/* FIFO: a sequence without room blocks all behind it. */
static void
admit_next(struct serving *s)
{
	size_t hit;

	if (s->prefill != NULL || s->waiting == NULL)
		return;
	hit = hits(s, s->waiting);
	if (has_room(s, s->waiting, hit))
		admit(s, s->waiting, hit);
}

/* -------------------------------------------------------------- working --- */

static void
finish(struct serving *s, struct sequence *q)
{
	leave(s, q);
	q->stage = FINISHED;
	DL_APPEND(s->finished, q);
	q->state.finished = true;
	s->counts.finished++;
}

static void
generate(struct serving *s, struct sequence *q)
{
	q->state.generated++;
	s->counts.generated++;
	tell(s, q);
	if (q->state.generated >= q->n_answer)
		finish(s, q);
}

static void
end_piece(struct serving *s)
{
	struct sequence *q = s->prefill;

	s->now = s->piece_end;
	q->computed += s->piece;
	name_computed(s, q);
	if (q->computed < to_prefill(q)) {
		begin_piece(s);
		return;
	}
	s->prefill = NULL;
	if (q->state.generated == 0)
		s->counts.prompt_tokens += q->n_prompt;
	q->stage = DECODE;
	if (s->decoding++ == 0)
		s->tick = s->now + s->tick_ns;
	generate(s, q);
}

static void
preempt(struct serving *s, struct sequence *q)
{
	leave(s, q);
	q->stage = WAITING;
	DL_PREPEND(s->waiting, q);
	s->counts.waiting++;
	s->counts.preempted++;
}

/* One more block for q; false: q itself was preempted. */
static bool
hold_more(struct serving *s, struct sequence *q)
{
	struct sequence *last;

	while (in_use(s) >= s->facts.blocks) {
		last = s->admitted->prev;
		preempt(s, last);
		if (last == q)
			return false;
	}
	q->held++;
	s->own++;
	fit(s);
	return true;
}

/*
 * Computes the last token and makes the next, a few times. Returns the next
 * sequence, read only after room was made: the preempted ones are behind q, or
 * q itself.
 */
static struct sequence *
decode(struct serving *s, struct sequence *q)
{
	struct sequence *next;
	uint64_t i;

	for (i = 0; i < s->tick_tokens; i++) {
		if (q->computed == q->held * s->facts.block_tokens &&
		    !hold_more(s, q))
			return NULL;
		next = q->next;
		q->computed++;
		if (q->computed % s->facts.block_tokens == 0)
			name_computed(s, q);
		generate(s, q);
		if (q->stage == FINISHED)
			return next;
	}
	return q->next;
}

static void
decode_all(struct serving *s)
{
	struct sequence *q = s->admitted;

	s->now = s->tick;
	s->tick += s->tick_ns;
	while (q != NULL)
		q = q->stage == DECODE ? decode(s, q) : q->next;
}

int64_t
serving_due(const struct serving *s)
{
	int64_t due = s->prefill == NULL ? INT64_MAX : s->piece_end;

	return s->decoding > 0 && s->tick < due ? s->tick : due;
}

void
serving_run(struct serving *s, int64_t now)
{
	int64_t due;

	if (s->now < now && s->prefill == NULL && s->decoding == 0)
		s->now = now;
	for (;;) {
		admit_next(s);
		due = serving_due(s);
		if (due > now)
			break;
		if (s->prefill != NULL && due == s->piece_end)
			end_piece(s);
		else
			decode_all(s);
	}
	if (s->now < now)
		s->now = now;
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
	struct engine_cache_counts counts;

	cache_counts(s->cache, &counts);
	*out = s->counts;
	out->held = counts.pinned + s->own;
	out->idle = counts.idle;
}

static bool
sequence_right(const struct serving *s, const struct sequence *q)
{
	size_t i;

	for (i = 0; i < q->named; i++)
		if (cache_block_name(q->blocks[i]) != q->names[i])
			return false;
	return q->named <= q->held && (q->stage == PREFILL ?
	    q == s->prefill : q->stage == DECODE) &&
	    q->computed <= q->held * s->facts.block_tokens;
}

bool
serving_check(const struct serving *s)
{
	uint64_t running = 0, waiting = 0, own = 0, pins = 0, decoding = 0;
	struct engine_cache_counts counts;
	const struct sequence *q;
	bool right = cache_check(s->cache);

	DL_FOREACH(s->admitted, q) {
		right = right && sequence_right(s, q);
		running++;
		decoding += q->stage == DECODE;
		own += q->held - q->named;
		pins += q->named;
	}
	DL_FOREACH(s->waiting, q) {
		right = right && q->stage == WAITING && q->held == 0;
		waiting++;
	}
	cache_counts(s->cache, &counts);
	return right && running == s->counts.running && own == s->own &&
	    waiting == s->counts.waiting && decoding == s->decoding &&
	    pins == counts.pins &&
	    counts.pinned + own + counts.idle <= s->facts.blocks;
}
