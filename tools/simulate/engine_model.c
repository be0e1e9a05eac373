/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_model.c - see engine_model.h.
 *
 * Complete blocks of prompts have a name and belong to the cache, which pins
 * them while in use; then they are idle. Blocks in use without a name (partial
 * ends of prompts, room for output) are only counted, as the engine's own.
 *
 * Invariants: pinned + own + idle <= blocks; pinned and own are the blocks of
 * running requests. With preemption own grows with the output, otherwise it has
 * all of it from the beginning.
 */
#include "engine_model.h"

#include <stdlib.h>

#include <utlist.h>

struct sequence {
	struct engine_request request;
	size_t n_blocks;        /* complete ones of the prompt */
	size_t n_names;         /* those and known ones of the output */
	size_t hit;             /* of them, when it was admitted */
	uint64_t own;           /* blocks beyond those */
	uint64_t prefill_left;  /* tokens */
	uint64_t chunk;         /* of them, computed in this step */
	uint64_t generated;
	bool preempted;         /* at least once */
	struct sequence *prev, *next;
	struct window_pins pins;      /* these two: once admitted */
	struct engine_block **blocks; /* [n_blocks] */
	uint64_t names[];       /* [n_names] */
};

/* Names of outputs' blocks have it, those of prompts do not. */
#define OUTPUT_NAME UINT64_C(0x616E73776572)

struct engine {
	struct engine_idea idea;
	struct engine_cache *cache;
	struct engine_window *window; /* NULL: no layers have one */
	uint64_t own;             /* blocks */
	uint64_t n_waiting;
	uint64_t n_running;
	struct sequence *waiting; /* in order of arrival */
	struct sequence *running; /* in order of admission */
	struct engine_event *events;
	size_t n_events;
	size_t next_event;
	size_t event_capacity;
	double token_ns;          /* to compute one */
	double slow;
	int64_t computing; /* ns of the step */
	bool stepping;
	bool pressed; /* preempted in the step that ended */
	bool failed;  /* out of memory */
};

struct engine *
engine_new(const struct engine_idea *idea)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->idea = *idea;
	e->slow = 1;
	if (idea->sequences == 0)
		e->idea.sequences = ENGINE_SEQUENCES;
	e->token_ns = idea->prefill > 0 ? 1e9 / idea->prefill :
	    ENGINE_TOKEN_NS;
	e->cache = cache_new(idea->eviction, idea->seed);
	if (e->cache != NULL && idea->window.mode != ENGINE_WINDOW_FULL)
		e->window = window_new(&idea->window, idea->block_tokens,
		    e->cache);
	if (e->cache == NULL || (e->window == NULL &&
	    idea->window.mode != ENGINE_WINDOW_FULL)) {
		cache_free(e->cache);
		free(e);
		return NULL;
	}
	if (idea->watched)
		cache_watch(e->cache);
	return e;
}

static void
sequence_free(struct sequence *q)
{
	free(q->pins.pins);
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
	if (e == NULL)
		return;
	window_free(e->window);
	cache_free(e->cache);
	free_all(&e->waiting);
	free_all(&e->running);
	free(e->events);
	free(e);
}

/* --------------------------------------------------------------- events --- */

static void
model_tell(struct engine *e, enum engine_kind kind, const struct sequence *q,
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

static uint64_t
mix_bits(uint64_t z)
{
	z += UINT64_C(0x9E3779B97F4A7C15);
	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* The name of block `i`: a hash of the previous name and the ids it covers. */
static uint64_t
name_after(const struct engine *e, uint64_t before, const uint64_t *ids,
    uint64_t i)
{
	uint64_t at = i * e->idea.block_tokens, name = before, n;
	uint64_t last = (at + e->idea.block_tokens - 1) / ENGINE_BLOCK;

	for (n = at / ENGINE_BLOCK; n <= last; n++)
		name = mix_bits(name + mix_bits(ids[n]));
	return name;
}

static uint64_t
model_blocks_of(const struct engine *e, uint64_t tokens)
{
	return tokens / e->idea.block_tokens +
	    (tokens % e->idea.block_tokens > 0);
}

static uint64_t
model_in_use(const struct engine *e)
{
	struct engine_cache_counts counts;

	cache_counts(e->cache, &counts);
	return counts.pinned + e->own;
}

static void
model_fit(struct engine *e)
{
	struct engine_cache_counts counts;

	for (;;) {
		cache_counts(e->cache, &counts);
		if (counts.idle == 0 || counts.pinned + e->own +
		    counts.idle <= e->idea.blocks)
			return;
		cache_evict(e->cache);
	}
}

void
engine_reset(struct engine *e)
{
	cache_reset(e->cache);
	window_reset(e->window);
}

void
engine_slow(struct engine *e, double factor)
{
	e->slow = factor;
}

/* ------------------------------------------------------------ admission --- */

/* Blocks beyond those of the prompt: for all output, or for the next token. */
static uint64_t
model_own(const struct engine *e, const struct sequence *q)
{
	uint64_t output = e->idea.preempt ? q->generated + 1 :
	    q->request.output;

	return model_blocks_of(e, q->request.tokens + output) - q->n_blocks;
}

/* At least one token is always computed. */
static size_t
may_hit(const struct engine *e, const struct engine_request *r)
{
	return r->compute_all ? 0 :
	    (size_t)((r->tokens - 1) / e->idea.block_tokens);
}

uint64_t
engine_cached(const struct engine *e, const struct engine_request *r)
{
	struct window_walk walk = { 0, 0, 0 };
	uint64_t most = may_hit(e, r), name = 0, n;

	for (n = 0; n < most; n++) {
		name = r->names != NULL ? r->names[n] :
		    name_after(e, name, r->ids, n);
		if (!cache_has(e->cache, name))
			break;
		window_step(e->window, &walk, name);
	}
	return walk.best * e->idea.block_tokens;
}

/* All of its blocks need room, except those already in use. */
static bool
model_has_room(const struct engine *e, const struct sequence *q)
{
	uint64_t need = model_in_use(e) + q->own +
	    window_need(e->window, q->n_blocks);

	if (need > e->idea.blocks)
		return false;
	need += q->n_blocks -
	    cache_pinned_leading(e->cache, q->names, q->n_blocks);
	return need <= e->idea.blocks;
}

/* Where the request resumes, and the other cached blocks of its prompt. */
static struct window_path
model_resume(const struct engine *e, const struct sequence *q)
{
	struct window_path path = { .names = q->names, .n = q->n_blocks,
	    .most = (q->request.tokens - 1) / e->idea.block_tokens,
	    .cached = cache_leading(e->cache, q->names,
		may_hit(e, &q->request)) };
	struct window_walk walk = { 0, 0, 0 };

	while (walk.n < path.cached)
		window_step(e->window, &walk, q->names[walk.n]);
	path.hit = walk.best;
	return path;
}

/* Blocks of an output without ids have names that nothing else has. */
static uint64_t
model_name(const struct sequence *q, size_t i)
{
	return i < q->n_names ? q->names[i] :
	    mix_bits(mix_bits(q->request.number ^ OUTPUT_NAME) + mix_bits(i));
}

/* The blocks that are made now are this one of the sequence. */
static void
made_of(struct engine *e, const struct sequence *q, size_t i)
{
	struct cache_origin origin = { q->request.number, i,
	    i == 0 ? 0 : model_name(q, i - 1) };

	cache_made_of(e->cache, &origin);
}

static size_t
count_changes(const struct engine *e)
{
	const struct cache_change *changes;
	size_t n;

	cache_changes(e->cache, &changes, &n);
	return n;
}

/* Engines make room before they take it. */
static void
model_admit(struct engine *e, struct sequence *q)
{
	struct window_path path = model_resume(e, q);
	uint64_t hit = path.hit * e->idea.block_tokens;
	size_t before = count_changes(e), i;

	q->hit = path.hit;
	for (i = 0; i < q->n_blocks && !e->failed; i++) {
		made_of(e, q, i);
		q->blocks[i] = cache_pin(e->cache, q->names[i]);
		e->failed = q->blocks[i] == NULL;
	}
	cache_made_of(e->cache, NULL);
	e->failed = e->failed || !window_admit(e->window, &path, &q->pins);
	e->own += q->own;
	model_fit(e);
	if (e->window == NULL)
		cache_removals_first(e->cache, before);
	q->prefill_left = q->request.tokens + q->generated - hit;
	DL_DELETE(e->waiting, q);
	DL_APPEND(e->running, q);
	e->n_waiting--;
	e->n_running++;
	model_tell(e, q->preempted ? ENGINE_RESUMED : ENGINE_ADMITTED, q, hit);
}

/* In order of arrival: a request without room blocks those behind it. */
static void
admit_all(struct engine *e)
{
	while (!e->failed && !e->pressed && e->waiting != NULL &&
	    e->n_running < e->idea.sequences && model_has_room(e, e->waiting))
		model_admit(e, e->waiting);
}

static struct sequence *
sequence_new(const struct engine *e, const struct engine_request *r)
{
	size_t n = (size_t)(r->tokens / e->idea.block_tokens), i;
	size_t names = (size_t)((r->tokens + r->known) / e->idea.block_tokens);
	struct sequence *q = calloc(1, sizeof(*q) + names *
	    sizeof(q->names[0]));

	if (q == NULL)
		return NULL;
	q->blocks = calloc(n + 1, sizeof(struct engine_block *));
	if (q->blocks == NULL) {
		free(q);
		return NULL;
	}
	q->request = *r;
	q->request.ids = q->request.names = NULL;
	q->request.output += r->output == 0;
	q->n_blocks = n;
	q->n_names = names;
	q->own = model_own(e, q);
	for (i = 0; i < names; i++)
		q->names[i] = r->names != NULL ? r->names[i] :
		    name_after(e, i == 0 ? 0 : q->names[i - 1], r->ids, i);
	return q;
}

enum engine_result
engine_submit(struct engine *e, const struct engine_request *r)
{
	struct sequence *q;

	if (r->output > ENGINE_OUTPUT_MAX ||
	    model_blocks_of(e, r->tokens + r->output + (r->output == 0)) +
	    window_need(e->window, r->tokens / e->idea.block_tokens) >
	    e->idea.blocks)
		return ENGINE_TOO_LARGE;
	q = sequence_new(e, r);
	if (q == NULL)
		return ENGINE_NO_MEMORY;
	DL_APPEND(e->waiting, q);
	e->n_waiting++;
	if (e->idea.eviction == ENGINE_EVICT_LEAF)
		cache_use(e->cache, q->names,
		    cache_leading(e->cache, q->names, q->n_blocks));
	admit_all(e);
	return e->failed ? ENGINE_NO_MEMORY : ENGINE_OK;
}

/* ---------------------------------------------------------------- steps --- */

/* Parts of a step are clamped to a year, ... */
static int64_t
limit_ns(double ns)
{
	return ns < 3e16 ? (int64_t)ns : INT64_C(30000000000000000);
}

/* ... a step to one hour. */
static int64_t
at_speed(const struct engine *e, int64_t ns)
{
	static const double longest = 3.6e12;
	double took = (double)ns / e->idea.speed * e->slow;

	return took < 1 ? 1 : took < longest ? (int64_t)took :
	    (int64_t)longest;
}

/* Prompt tokens that this step may compute. */
static uint64_t
model_budget(const struct engine *e)
{
	uint64_t left = e->idea.batch;
	const struct sequence *q;

	if (left == 0)
		return ENGINE_CHUNK;
	DL_FOREACH(e->running, q)
		left -= q->prefill_left == 0 && left > 0;
	return left;
}

/* Tokens of the sequence that have been computed. */
static uint64_t
model_context(const struct sequence *q)
{
	return q->request.tokens + q->generated - q->prefill_left;
}

/* The time that the attention of its chunk adds to the step. */
static double
model_attention(const struct engine *e, const struct sequence *q)
{
	double mean = (double)model_context(q) + (double)q->chunk / 2;

	if (e->idea.attention == 0 || q->chunk == 0)
		return 0;
	return e->token_ns * (double)q->chunk * mean /
	    (double)e->idea.attention;
}

int64_t
engine_begin(struct engine *e, int64_t now)
{
	uint64_t computed = 0, sequences = 0, reads = 0, left, memory;
	double attention = 0;
	struct sequence *q;

	if (e->running == NULL || e->stepping)
		return INT64_MAX;
	left = model_budget(e);
	DL_FOREACH(e->running, q) {
		q->chunk = q->prefill_left < left ? q->prefill_left : left;
		left -= q->chunk;
		computed += q->chunk;
		attention += model_attention(e, q);
		if (q->chunk == 0 && q->prefill_left > 0)
			continue;
		sequences++;
		reads += model_context(q) + q->chunk;
	}
	e->stepping = true;
	e->computing = computed == 0 ? 0 : at_speed(e,
	    (int64_t)computed * ENGINE_TOKEN_NS + (int64_t)attention);
	memory = e->idea.own_reads ? reads :
	    model_in_use(e) * e->idea.block_tokens;
	return now + at_speed(e, ENGINE_STEP_NS +
	    (int64_t)sequences * ENGINE_SEQUENCE_NS +
	    (int64_t)(memory * ENGINE_BLOCK_NS / ENGINE_BLOCK) +
	    limit_ns((double)computed * e->token_ns) + limit_ns(attention));
}

int64_t
engine_computing(const struct engine *e)
{
	return e->computing;
}

/*
 * Releases the tail first, so that children are evicted before parents. Blocks
 * that were not computed are not cached.
 */
static void
model_release(struct engine *e, struct sequence *q)
{
	uint64_t computed = model_context(q) / e->idea.block_tokens;
	size_t i;

	e->own -= q->own;
	window_release(e->window, &q->pins, computed);
	for (i = q->n_blocks; i-- > 0;)
		if (i < computed)
			cache_unpin(e->cache, q->blocks[i]);
		else
			cache_discard(e->cache, q->blocks[i]);
}

/* Caches block i of an output. */
static void
keep_output(struct engine *e, const struct sequence *q, uint64_t i)
{
	struct engine_block *b;

	if (!window_output(e->window, i < q->n_names ? &q->names[i] : NULL)) {
		e->failed = true;
		return;
	}
	made_of(e, q, i);
	if (i >= q->n_names) {
		e->failed = !cache_add_nameless(e->cache,
		    e->idea.watched_all ? model_name(q, i) : 0);
	} else {
		b = cache_pin(e->cache, q->names[i]);
		if (b != NULL)
			cache_unpin(e->cache, b);
		e->failed = b == NULL;
	}
	cache_made_of(e->cache, NULL);
}

/*
 * The order of release is from the end. Changes name blocks in the order in
 * which they were made, except for those without ids.
 */
static void
store_output(struct engine *e, const struct sequence *q)
{
	size_t i;

	for (i = q->n_blocks; i < q->n_names && !e->failed; i++)
		keep_output(e, q, i);
}

static void
model_finish(struct engine *e, struct sequence *q)
{
	uint64_t total = q->request.tokens + q->request.output;
	uint64_t answers = total / e->idea.block_tokens - q->n_blocks;

	if (e->idea.watched)
		store_output(e, q);
	for (; answers > 0 && !e->failed; answers--)
		keep_output(e, q, q->n_blocks + answers - 1);
	model_release(e, q);
	model_fit(e);
	model_tell(e, ENGINE_FINISHED, q, q->generated);
	DL_DELETE(e->running, q);
	e->n_running--;
	sequence_free(q);
}

/* One sequence's progress in the step that ends. */
static void
make_progress(struct engine *e, struct sequence *q)
{
	if (q->prefill_left > 0) {
		q->prefill_left -= q->chunk;
		if (q->chunk == 0 || q->prefill_left > 0)
			return;
	}
	q->chunk = 0;
	q->generated++;
	if (q->generated == 1)
		model_tell(e, ENGINE_FIRST_TOKEN, q, 1);
	if (q->generated >= q->request.output)
		model_finish(e, q);
	else if (e->idea.each_token ? q->generated > 1 :
	    (q->request.tokens + q->generated - 1) % ENGINE_BLOCK == 0)
		model_tell(e, ENGINE_GENERATED, q, q->generated);
}

/* The sequence admitted last, and so the last of its prefix to be computed. */
static void
preempt_last(struct engine *e, struct sequence *q)
{
	model_release(e, q);
	q->own = model_own(e, q);
	q->prefill_left = q->chunk = 0;
	q->preempted = true;
	DL_DELETE(e->running, q);
	DL_PREPEND(e->waiting, q);
	e->n_running--;
	e->n_waiting++;
	e->pressed = true;
	model_tell(e, ENGINE_PREEMPTED, q, q->generated);
}

/* Takes the blocks that the next tokens need, in order of admission. */
static void
grow_all(struct engine *e)
{
	struct sequence *q, *last;
	uint64_t more;

	for (q = e->running; q != NULL; q = q->next) {
		more = model_own(e, q) - q->own;
		last = q;
		while (more > 0 && model_in_use(e) + more > e->idea.blocks) {
			last = e->running->prev;
			preempt_last(e, last);
			if (last == q)
				return;
		}
		q->own += more;
		e->own += more;
		model_fit(e);
	}
}

enum engine_result
engine_end(struct engine *e)
{
	struct sequence *q, *next;

	e->stepping = e->pressed = false;
	DL_FOREACH_SAFE(e->running, q, next)
		make_progress(e, q);
	if (e->idea.preempt)
		grow_all(e);
	admit_all(e);
	return e->failed ? ENGINE_NO_MEMORY : ENGINE_OK;
}

/* -------------------------------------------------------------- leaving --- */

static struct sequence *
find_number(struct sequence *list, uint64_t number)
{
	struct sequence *q;

	DL_FOREACH(list, q)
		if (q->request.number == number)
			break;
	return q;
}

/*
 * Sequences admitted after q counted blocks as hits that q was to compute. The
 * first that shares one computes it instead.
 */
static void
pass_on(const struct engine *e, const struct sequence *q)
{
	uint64_t done = model_context(q) / e->idea.block_tokens, n;
	struct sequence *r;

	for (r = q->next; r != NULL && done < q->n_blocks; r = r->next) {
		for (n = 0; n < r->hit && n < q->n_blocks &&
		    r->names[n] == q->names[n]; n++)
			;
		if (n <= done)
			continue;
		r->prefill_left += (n - done) * e->idea.block_tokens;
		done = n;
	}
}

void
engine_drop(struct engine *e, uint64_t number)
{
	struct sequence *q = find_number(e->waiting, number);

	if (q != NULL) {
		DL_DELETE(e->waiting, q);
		e->n_waiting--;
	} else {
		q = find_number(e->running, number);
		if (q == NULL)
			return;
		pass_on(e, q);
		model_release(e, q);
		DL_DELETE(e->running, q);
		e->n_running--;
	}
	sequence_free(q);
	if (e->running == NULL)
		e->pressed = false;
	admit_all(e);
}

void
engine_kill(struct engine *e)
{
	struct sequence *q;

	DL_FOREACH(e->running, q)
		model_release(e, q);
	free_all(&e->waiting);
	free_all(&e->running);
	engine_reset(e);
	e->n_waiting = e->n_running = 0;
	e->next_event = e->n_events = 0;
	e->stepping = e->pressed = false;
}

/* --------------------------------------------------------------- state --- */

bool
engine_changes(const struct engine *e, const struct cache_change **changes,
    size_t *n)
{
	return cache_changes(e->cache, changes, n);
}

void
engine_noted(struct engine *e)
{
	cache_noted(e->cache);
}

void
engine_state(const struct engine *e, struct engine_state *out)
{
	struct engine_cache_counts counts;

	cache_counts(e->cache, &counts);
	out->waiting = e->n_waiting;
	out->running = e->n_running;
	out->pinned = counts.pinned;
	out->own = e->own;
	out->idle = counts.idle;
}

/* Are its blocks those of its prompt, and all cached? */
static bool
holds_its_own(const struct engine *e, const struct sequence *q)
{
	size_t i;

	for (i = 0; i < q->n_blocks; i++)
		if (cache_block_name(q->blocks[i]) != q->names[i])
			return false;
	return cache_pinned_leading(e->cache, q->names, q->n_blocks) ==
	    q->n_blocks;
}

bool
engine_check(const struct engine *e)
{
	uint64_t waiting = 0, running = 0, own = 0, held = 0;
	struct engine_cache_counts counts;
	const struct sequence *q;
	bool right = true;

	DL_FOREACH(e->waiting, q)
		waiting++;
	DL_FOREACH(e->running, q) {
		running++;
		own += q->own;
		held += q->n_blocks + window_held(e->window, &q->pins);
		right = right && holds_its_own(e, q);
	}
	cache_counts(e->cache, &counts);
	return right && cache_check(e->cache) && window_check(e->window) &&
	    waiting == e->n_waiting &&
	    running == e->n_running && own == e->own &&
	    held == counts.pins && running <= e->idea.sequences &&
	    counts.pinned + own + counts.idle <= e->idea.blocks;
}
