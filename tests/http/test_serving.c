/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_serving.c - kvroute-engine's requests in simulated time: hits,
 * evictions, waiting, preemption, and steps as in engine_model.h.
 */
#include "test.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine_model.h"
#include "serving.h"
#include "alloc.h"
#include "rng.h"

#define SECOND INT64_C(1000000000)

static uint64_t seed; /* of the running test */

#define must(that) do { \
	if (!(that)) \
		ck_abort_msg("%s (KVR_SEED=%" PRIu64 ")", #that, seed); \
} while (0)

enum { TOKENS_MAX = 1 << 14 };

static uint32_t tokens[TOKENS_MAX];

/* Tokens `from` to `until` of a text; each text has its own. */
static void
write_text(size_t from, size_t until, uint32_t text)
{
	size_t i;

	ck_assert_uint_le(until, TOKENS_MAX);
	for (i = from; i < until; i++)
		tokens[i] = text * 100003 + (uint32_t)i;
}

static struct serving_facts
facts_of(uint32_t block, uint64_t blocks)
{
	struct serving_facts f = {
		.blocks = blocks, .block_tokens = block, .sequences = 256,
		.eviction = ENGINE_EVICT_RELEASED, .seed = 1,
		.prefill_rate = 1000, .decode_ns = SECOND / 100
	};

	return f;
}

static struct serving *
make(const struct serving_facts *f)
{
	struct serving *s = serving_new(f);

	ck_assert_ptr_nonnull(s);
	return s;
}

static struct sequence *
submit(struct serving *s, size_t n_prompt, size_t n_answer, int64_t now)
{
	struct sequence_facts f = {
		.tokens = tokens, .n_prompt = n_prompt, .n_answer = n_answer
	};
	struct sequence *q;

	ck_assert(serving_fits(s, n_prompt, n_answer));
	q = serving_submit(s, &f, now);
	ck_assert_ptr_nonnull(q);
	return q;
}

/* Runs all events and drops finished sequences; returns the time. */
static int64_t
run_all(struct serving *s, struct sequence_state *last)
{
	struct sequence_state state;
	struct sequence *q;
	int64_t now = 0, due;

	ck_assert(serving_run(s, 0));
	while ((due = serving_due(s)) != INT64_MAX) {
		ck_assert_int_ge(due, now);
		now = due;
		ck_assert(serving_run(s, now));
		ck_assert(serving_check(s));
		while ((q = serving_news(s, &state)) != NULL) {
			*last = state;
			if (state.finished)
				serving_drop(s, q);
		}
	}
	return now;
}

/* The hits of the first n written tokens. */
static uint64_t
cached(struct serving *s, size_t n)
{
	struct sequence_state last = { .cached = UINT64_MAX };

	submit(s, n, 1, 0);
	run_all(s, &last);
	ck_assert(last.finished && last.generated == 1);
	return last.cached;
}

/* -------------------------------------------------------------- caching --- */

static const uint32_t block_sizes[] = { 1, 16, 32, 2176 };

START_TEST(whole_blocks)
{
	uint32_t block = block_sizes[_i];
	size_t n = (size_t)block * 3 + block / 2;
	struct serving_facts f = facts_of(block, 100);
	struct serving *s = make(&f);

	write_text(0, TOKENS_MAX, 1);
	ck_assert_uint_eq(cached(s, n), 0);
	ck_assert_uint_eq(cached(s, n), (n - 1) / block * block);
	ck_assert_uint_eq(cached(s, n + block), 3 * block);
	write_text(block + block / 2, TOKENS_MAX, 2);
	ck_assert_uint_eq(cached(s, n), block);
	serving_free(s);
}
END_TEST

/* The last token is always computed. */
START_TEST(at_most_prompt_less_one)
{
	struct serving_facts f = facts_of(16, 100);
	struct serving *s = make(&f);

	write_text(0, 64, 1);
	ck_assert_uint_eq(cached(s, 64), 0);
	ck_assert_uint_eq(cached(s, 64), 48);
	ck_assert_uint_eq(cached(s, 65), 64);
	ck_assert_uint_eq(cached(s, 1), 0);
	ck_assert_uint_eq(cached(s, 16), 0);
	ck_assert_uint_eq(cached(s, 17), 16);
	serving_free(s);
}
END_TEST

/* All but the last token of a response is computed and can be hit. */
START_TEST(answers_too)
{
	struct serving_facts f = facts_of(16, 100);
	struct serving *s = make(&f);
	struct sequence_state last;

	write_text(0, 200, 1);
	submit(s, 40, 24, 0);
	run_all(s, &last);
	ck_assert_uint_eq(last.generated, 24);
	ck_assert_uint_eq(cached(s, 200), 48);
	write_text(0, 200, 2);
	submit(s, 40, 25, 0);
	run_all(s, &last);
	ck_assert_uint_eq(cached(s, 200), 64);
	serving_free(s);
}
END_TEST

START_TEST(apart_by_salt)
{
	struct serving_facts f = facts_of(16, 100);
	struct serving *s = make(&f);
	struct sequence_facts q = {
		.tokens = tokens, .n_prompt = 100, .n_answer = 1, .salt = 5
	};
	struct sequence_state last;

	write_text(0, 100, 1);
	ck_assert_uint_eq(cached(s, 100), 0);
	ck_assert_ptr_nonnull(serving_submit(s, &q, 0));
	run_all(s, &last);
	ck_assert_uint_eq(last.cached, 0);
	ck_assert_ptr_nonnull(serving_submit(s, &q, 0));
	run_all(s, &last);
	ck_assert_uint_eq(last.cached, 96);
	serving_free(s);
}
END_TEST

/* Some requests never read the cache; others may hit their blocks. */
START_TEST(computes_all)
{
	struct serving_facts f = facts_of(16, 100);
	struct serving *s = make(&f);
	struct sequence_facts q = {
		.tokens = tokens, .n_prompt = 100, .n_answer = 1,
		.compute_all = true
	};
	struct serving_counts counts;
	struct sequence_state last;
	int i;

	write_text(0, 100, 1);
	for (i = 0; i < 2; i++) {
		ck_assert_ptr_nonnull(serving_submit(s, &q, 0));
		run_all(s, &last);
		ck_assert_uint_eq(last.cached, 0);
	}
	ck_assert_uint_eq(cached(s, 100), 96);
	serving_counts(s, &counts);
	ck_assert_uint_eq(counts.queried, 100);
	ck_assert_uint_eq(counts.hit, 96);
	ck_assert_uint_eq(counts.prompt_tokens, 300);
	serving_free(s);
}
END_TEST

/* There is room for three texts: the unused one is evicted. */
START_TEST(forgets)
{
	struct serving_facts f = facts_of(16, 32);
	struct serving *s = make(&f);
	struct serving_counts counts;
	uint32_t text;

	for (text = 0; text < 3; text++) {
		write_text(0, 160, text);
		ck_assert_uint_eq(cached(s, 160), 0);
	}
	write_text(0, 160, 0);
	ck_assert_uint_eq(cached(s, 160), 144);
	write_text(0, 160, 3);
	ck_assert_uint_eq(cached(s, 160), 0);
	write_text(0, 160, 0);
	ck_assert_uint_eq(cached(s, 160), 144);
	write_text(0, 160, 1);
	ck_assert_uint_lt(cached(s, 160), 144);
	serving_counts(s, &counts);
	ck_assert_uint_eq(counts.held, 0);
	ck_assert_uint_le(counts.idle, 32);
	serving_free(s);
}
END_TEST

/* ---------------------------------------------------------------- times --- */

/*
 * A step of facts_of, 1.5 times as fast as engine_model.h has it: n sequences,
 * memory in use for m tokens, t prompt tokens at 1000 a second.
 */
static int64_t
step_ns(int64_t n, int64_t m, int64_t t)
{
	return (15000000 + n * 100000 + m * 5000 / 512) * 2 / 3 +
	    t * (SECOND / 1000);
}

/* Fractions of a nanosecond are lost in each step. */
static void
near(int64_t a, int64_t b)
{
	ck_assert_int_le(a, b + 1000);
	ck_assert_int_ge(a, b - 1000);
}

/* 3008 tokens are two steps; each token after the first is one more. */
START_TEST(prefill_and_decode)
{
	struct serving_facts f = facts_of(16, 1000);
	struct serving *s = make(&f);
	struct sequence_state last;

	write_text(0, 9000, 1);
	submit(s, 3008, 11, 0);
	near(run_all(s, &last), step_ns(1, 3024, 2048) +
	    step_ns(1, 3024, 3008 - 2048) + 10 * step_ns(1, 3024, 0));
	submit(s, 3010, 1, 0);
	serving_run(s, 20 * SECOND);
	submit(s, 3010, 1, 20 * SECOND);
	run_all(s, &last);
	ck_assert_uint_eq(last.cached, 3008);
	serving_free(s);
}
END_TEST

/* First come, first served, in one step if there is room. */
START_TEST(prefill_in_turns)
{
	struct serving_facts f = facts_of(16, 1000);
	struct serving *s = make(&f);
	struct sequence_state state;
	struct sequence *a, *b;
	int64_t at;

	write_text(0, 4000, 1);
	a = submit(s, 2032, 9, 0);
	write_text(0, 4000, 2);
	b = submit(s, 32, 9, 0);
	serving_run(s, 0);
	at = serving_due(s);
	near(at, step_ns(2, 2048 + 48, 2048));
	serving_run(s, at - 1);
	ck_assert_ptr_null(serving_news(s, &state));
	serving_run(s, at);
	ck_assert_ptr_eq(serving_news(s, &state), a);
	ck_assert_uint_eq(state.generated, 1);
	ck_assert_ptr_null(serving_news(s, &state));
	near(serving_due(s), at + step_ns(2, 2048 + 48, 16));
	serving_run(s, serving_due(s));
	ck_assert_ptr_eq(serving_news(s, &state), a);
	ck_assert_uint_eq(state.generated, 2);
	ck_assert_ptr_eq(serving_news(s, &state), b);
	ck_assert_uint_eq(state.generated, 1);
	serving_free(s);
}
END_TEST

/* A prompt delays those that decode; so do others that do. */
START_TEST(requests_delay_each_other)
{
	struct serving_facts f = facts_of(16, 1000);
	struct serving *s = make(&f);
	struct sequence_state state;
	struct sequence *a;
	int64_t at;

	write_text(0, 4000, 1);
	a = submit(s, 20, 900, 0);
	serving_run(s, 0);
	at = serving_due(s);
	serving_run(s, at);
	near(serving_due(s) - at, step_ns(1, 928, 0));
	write_text(0, 4000, 2);
	submit(s, 1000, 900, at + 1);
	at = serving_due(s);
	serving_run(s, at);
	near(serving_due(s) - at, step_ns(2, 928 + 1904, 1000));
	while (serving_news(s, &state) != NULL)
		;
	at = serving_due(s);
	serving_run(s, at - 1);
	ck_assert_ptr_null(serving_news(s, &state));
	serving_run(s, at);
	ck_assert_ptr_eq(serving_news(s, &state), a);
	ck_assert_uint_eq(state.generated, 3);
	near(serving_due(s) - at, step_ns(2, 928 + 1904, 0));
	serving_free(s);
}
END_TEST

/* Options of the model reach it. */
START_TEST(options)
{
	struct serving_facts f = facts_of(16, 1000);
	struct serving *s;
	int64_t plain = step_ns(1, 1024, 1000);

	if (_i == 0)
		f.attention = 1000; /* 500 on average: half as long again */
	else if (_i == 1)
		f.own_reads = true; /* only computed tokens count */
	else if (_i == 2)
		f.preempt = true; /* no room for output yet */
	else
		f.batch = 300;
	s = make(&f);
	write_text(0, 1000, 1);
	submit(s, 1000, 24, 0);
	serving_run(s, 0);
	near(serving_due(s), _i == 0 ? plain + 500 * (SECOND / 1000) :
	    _i == 1 ? step_ns(1, 1000, 1000) :
	    _i == 2 ? step_ns(1, 1008, 1000) : step_ns(1, 1024, 300));
	serving_free(s);
}
END_TEST

/* A request hits the blocks of a running one, and is computed after it. */
START_TEST(waiting_hits)
{
	struct serving_facts f = facts_of(16, 1000);
	struct serving *s = make(&f);
	struct sequence_state last;
	int64_t end;

	write_text(0, 4000, 1);
	submit(s, 3000, 1, 0);
	submit(s, 4000, 1, 0);
	end = run_all(s, &last);
	ck_assert_uint_eq(last.cached, 2992);
	/* all but 2992 of 7000 */
	ck_assert_int_ge(end, 4008 * (SECOND / 1000));
	ck_assert_int_le(end, 4008 * (SECOND / 1000) + SECOND / 20);
	serving_free(s);
}
END_TEST

/* Blocks that an aborted request has computed stay. */
START_TEST(dropped_in_prefill)
{
	struct serving_facts f = facts_of(16, 1000);
	struct serving *s = make(&f);
	struct sequence *q;

	write_text(0, 8000, 1);
	q = submit(s, 8000, 1, 0);
	serving_run(s, 0);
	serving_run(s, 5 * SECOND);
	serving_drop(s, q);
	ck_assert(serving_check(s));
	ck_assert(serving_run(s, 9 * SECOND));
	ck_assert_int_eq(serving_due(s), INT64_MAX);
	ck_assert_uint_eq(cached(s, 8000), 2 * ENGINE_CHUNK);
	serving_free(s);
}
END_TEST

/* Another request computes the dropped tokens: the next step is full. */
START_TEST(dropped_before_another)
{
	struct serving_facts f = facts_of(16, 1000);
	struct serving *s = make(&f);
	struct sequence_state state;
	struct sequence *q;
	int64_t end;

	write_text(0, 8000, 1);
	q = submit(s, 6000, 1, 0);
	submit(s, 6400, 1, 0); /* counts on 6000 */
	serving_run(s, 0);
	serving_run(s, 3 * SECOND);
	serving_drop(s, q);
	end = run_all(s, &state);
	ck_assert_uint_eq(state.cached, 6000);
	/* the step that runs is lost: 2048 + 2048 + (6400 - 2048) */
	ck_assert_int_ge(end, 8448 * (SECOND / 1000));
	ck_assert_int_le(end, 8448 * (SECOND / 1000) + SECOND / 10);
	serving_free(s);
}
END_TEST

/* News of a sequence may be rare; the first and the last are not. */
START_TEST(long_ticks)
{
	struct serving_facts f = facts_of(16, 1000);
	struct sequence_state state = { .finished = false };
	struct sequence *q;
	struct serving *s;
	int told = 0;

	f.tick_ns = SECOND / 20 - 1;
	s = make(&f);
	write_text(0, 100, 1);
	q = submit(s, 100, 22, 0);
	serving_run(s, 0);
	while (!state.finished) {
		serving_run(s, serving_due(s));
		while (serving_news(s, &state) == q)
			told++;
	}
	ck_assert_uint_eq(state.generated, 22);
	ck_assert_int_eq(told, 1 + 5);
	serving_free(s);
}
END_TEST

/* --------------------------------------------------------------- memory --- */

/* A sequence that can never fit is known in advance. */
START_TEST(fits)
{
	struct serving_facts f = facts_of(16, 10);
	struct serving *s = make(&f);

	ck_assert(serving_fits(s, 159, 1));
	ck_assert(!serving_fits(s, 160, 1));
	ck_assert(!serving_fits(s, SIZE_MAX, 2));
	serving_free(s);
}
END_TEST

/* Responses fill the cache: one is preempted, and both finish. */
START_TEST(preemption)
{
	struct serving_facts f = facts_of(16, 10);
	struct serving_counts counts;
	struct sequence_state last;
	struct serving *s;

	f.preempt = true;
	s = make(&f);
	write_text(0, 160, 1);
	submit(s, 60, 60, 0);
	write_text(0, 160, 2);
	submit(s, 60, 60, 0);
	run_all(s, &last);
	ck_assert(last.finished);
	serving_counts(s, &counts);
	ck_assert_uint_eq(counts.finished, 2);
	ck_assert_uint_eq(counts.generated, 120);
	ck_assert_uint_eq(counts.prompt_tokens, 120);
	ck_assert_uint_gt(counts.preempted, 0);
	ck_assert_uint_eq(counts.queried, 120);
	ck_assert_uint_eq(counts.hit, 0);
	ck_assert_uint_eq(counts.held, 0);
	ck_assert_uint_eq(last.cached, 0);
	serving_free(s);
}
END_TEST

/* A sequence without room waits, and so do all behind it. */
START_TEST(room)
{
	struct serving_facts f = facts_of(16, 10);
	struct serving *s = make(&f);
	struct serving_counts counts;
	struct sequence *a;

	write_text(0, 160, 1);
	a = submit(s, 100, 60, 0);
	write_text(0, 160, 2);
	submit(s, 60, 1, 0);
	write_text(0, 160, 3);
	submit(s, 16, 1, 0);
	serving_run(s, 0);
	serving_run(s, SECOND / 5);
	serving_counts(s, &counts);
	ck_assert_uint_eq(counts.running, 1);
	ck_assert_uint_eq(counts.waiting, 2);
	serving_drop(s, a);
	serving_run(s, SECOND / 5);
	serving_run(s, SECOND);
	serving_counts(s, &counts);
	ck_assert_uint_eq(counts.waiting, 0);
	ck_assert_uint_eq(counts.finished, 2);
	serving_free(s);
}
END_TEST

START_TEST(sequences_at_once)
{
	struct serving_facts f = facts_of(16, 1000);
	struct serving_counts counts;
	struct serving *s;
	uint32_t i;

	f.sequences = 3;
	s = make(&f);
	for (i = 0; i < 5; i++) {
		write_text(0, 20, i);
		submit(s, 20, 1000, 0);
	}
	serving_run(s, 0);
	serving_run(s, SECOND);
	serving_counts(s, &counts);
	ck_assert_uint_eq(counts.running, 3);
	ck_assert_uint_eq(counts.waiting, 2);
	serving_free(s);
}
END_TEST

/* --------------------------------------------------------------- chance --- */

enum { SLOTS = 12, KNOWN_MAX = 400, BLOCK = 16 };

/* The contents of the cache by its changes. */
struct told {
	uint64_t name, before, copies;
	bool first, salted;
	uint32_t tokens[BLOCK];
};

struct life {
	struct told known[KNOWN_MAX];
	size_t n_known;
	bool set;        /* blocks may be stored again */
	struct serving *s;
	struct sequence *slots[SLOTS];
	struct rng rng;
	int64_t now;
	uint64_t told;
};

static void
take_news(struct life *l)
{
	struct sequence_state state;
	struct sequence *q;
	size_t i;

	while ((q = serving_news(l->s, &state)) != NULL) {
		i = (size_t)((struct sequence **)state.owner - l->slots);
		must(i < SLOTS && l->slots[i] == q);
		must(state.generated > 0);
		l->told++;
		if (!state.finished)
			continue;
		serving_drop(l->s, q);
		l->slots[i] = NULL;
	}
}

static struct told *
told_of(struct life *l, uint64_t name)
{
	size_t i;

	for (i = 0; i < l->n_known; i++)
		if (l->known[i].name == name)
			return &l->known[i];
	return NULL;
}

static void
hear_stored(struct life *l, const struct block *block)
{
	struct told *t = told_of(l, block->name);

	must(block->first || l->set || told_of(l, block->before) != NULL);
	if (t == NULL) {
		must(l->n_known < KNOWN_MAX);
		t = &l->known[l->n_known++];
		*t = (struct told){ .name = block->name,
		    .before = block->before, .first = block->first,
		    .salted = block->salt != NULL };
		memcpy(t->tokens, block->tokens, sizeof(t->tokens));
	}
	must(t->before == block->before && t->first == block->first);
	must(memcmp(t->tokens, block->tokens, sizeof(t->tokens)) == 0);
	t->copies = l->set ? 1 : t->copies + 1;
}

static void
hear(struct life *l)
{
	struct serving_change change;
	struct told *t;

	while (serving_change(l->s, &change)) {
		if (change.stored) {
			hear_stored(l, change.block);
			continue;
		}
		t = told_of(l, change.name);
		must(t != NULL);
		if (--t->copies == 0)
			*t = l->known[--l->n_known];
	}
}

/* Returns the tokens of the prompt in leading blocks, by the changes. */
static uint64_t
heard(const struct life *l, const struct sequence_facts *f)
{
	uint64_t before = 0;
	size_t n, i;

	for (n = 0; (n + 1) * BLOCK <= f->n_prompt; n++) {
		for (i = 0; i < l->n_known; i++)
			if (l->known[i].first == (n == 0) && (n == 0 ?
			    l->known[i].salted == (f->salt != 0) :
			    l->known[i].before == before) &&
			    memcmp(l->known[i].tokens, f->tokens + n * BLOCK,
			    sizeof(l->known[i].tokens)) == 0)
				break;
		if (i == l->n_known)
			break;
		before = l->known[i].name;
	}
	return n * BLOCK;
}

static struct sequence_facts
draw(struct life *l)
{
	struct sequence_facts f = { .tokens = tokens };
	size_t shared = rng_between(&l->rng, 0, 200);

	f.n_prompt = rng_between(&l->rng, 1, 300);
	f.n_answer = rng_between(&l->rng, 1, 200);
	f.compute_all = rng_between(&l->rng, 0, 19) == 0;
	f.salt = rng_between(&l->rng, 0, 1);
	f.salt_text = f.salt == 0 ? NULL : "salt";
	write_text(0, shared, 0);
	write_text(shared, 500, (uint32_t)rng_between(&l->rng, 0, 30));
	if (rng_between(&l->rng, 0, 3) == 0)
		f.n_prompt = shared / BLOCK * BLOCK + BLOCK;
	return f;
}

/* All changes together equal the contents of the cache. */
static void
compare(struct life *l)
{
	struct sequence_facts f = draw(l);

	must(serving_held(l->s, &f) == heard(l, &f));
}

static void
begin(struct life *l, size_t i)
{
	struct sequence_facts f = draw(l);

	f.owner = &l->slots[i];
	if (!serving_fits(l->s, f.n_prompt, f.n_answer))
		return;
	l->slots[i] = serving_submit(l->s, &f, l->now);
	must(l->slots[i] != NULL);
}

static void
step(struct life *l)
{
	size_t i = rng_between(&l->rng, 0, SLOTS - 1);
	int64_t due;

	switch (rng_between(&l->rng, 0, 9)) {
	case 0:
		serving_drop(l->s, l->slots[i]);
		l->slots[i] = NULL;
		break;
	case 1:
	case 2:
		if (l->slots[i] == NULL)
			begin(l, i);
		break;
	case 3:
		l->now += (int64_t)rng_between(&l->rng, 0, SECOND / 4);
		serving_run(l->s, l->now);
		break;
	default:
		due = serving_due(l->s);
		l->now = due == INT64_MAX || due < l->now ? l->now : due;
		serving_run(l->s, l->now);
	}
	if (rng_between(&l->rng, 0, 1) == 0)
		hear(l);
	take_news(l);
	must(serving_check(l->s));
	hear(l);
	compare(l);
}

START_TEST(anything)
{
	static const enum engine_eviction evictions[] = {
		ENGINE_EVICT_RELEASED, ENGINE_EVICT_LEAF, ENGINE_EVICT_RANDOM
	}; /* with and without preemption */
	struct serving_facts f = facts_of(16, 40);
	static struct life l;
	struct serving_change change;
	struct serving_counts counts;
	uint64_t n, steps = test_amount(20000);
	size_t i;

	seed = test_seed();
	l.rng.state = seed;
	f.eviction = evictions[_i % 3];
	f.preempt = f.own_reads = _i >= 3;
	f.watched = true;
	f.has_copies = _i == 0 || _i == 3;
	f.tells_hits = l.set = _i == 4 || evictions[_i % 3] ==
	    ENGINE_EVICT_RANDOM;
	l.s = make(&f);
	for (n = 0; n < steps; n++)
		step(&l);
	serving_counts(l.s, &counts);
	must(steps < 10000 || counts.hit > 0);
	must(steps < 10000 || (counts.preempted > 0) == f.preempt);
	must(l.told <= counts.generated);
	for (i = 0; i < SLOTS; i++)
		serving_drop(l.s, l.slots[i]);
	serving_counts(l.s, &counts);
	must(counts.held == 0 && counts.running == 0 && counts.waiting == 0);
	must(serving_check(l.s));
	hear(&l);
	compare(&l);
	must(serving_clear(l.s) && !serving_change(l.s, &change));
	l.n_known = 0;
	compare(&l);
	serving_free(l.s);
}
END_TEST

/* Each allocation fails once: submit or run returns it, and nothing leaks. */
START_TEST(no_memory)
{
	struct serving_facts f = facts_of(16, 40);
	struct sequence_facts facts = {
		.tokens = tokens, .n_prompt = 100, .n_answer = 30,
		.salt_text = "a", .adapter = "b"
	};
	struct sequence_state last = { .finished = false };
	struct serving_change change;
	struct serving *s;
	struct sequence *q;
	unsigned long n;

	f.watched = true;
	write_text(0, 200, 1);
	for (n = 1; !last.finished && n < 1000; n++) {
		alloc_fail_at(n);
		s = serving_new(&f);
		q = s == NULL ? NULL : serving_submit(s, &facts, 0);
		while (q != NULL && serving_run(s, serving_due(s)) &&
		    serving_due(s) != INT64_MAX)
			;
		alloc_reset();
		while (s != NULL && serving_change(s, &change))
			;
		while (q != NULL && serving_news(s, &last) != NULL)
			;
		serving_drop(s, q);
		serving_free(s);
	}
	ck_assert(last.finished);
	ck_assert_uint_eq(last.generated, 30);
	ck_assert_uint_gt(n, 8);
}
END_TEST

Suite *suite_serving(void);

Suite *
suite_serving(void)
{
	Suite *s = suite_create("serving");
	TCase *c = tcase_create("serving");

	tcase_add_loop_test(c, whole_blocks, 0, 4);
	tcase_add_test(c, at_most_prompt_less_one);
	tcase_add_test(c, answers_too);
	tcase_add_test(c, apart_by_salt);
	tcase_add_test(c, computes_all);
	tcase_add_test(c, forgets);
	tcase_add_test(c, prefill_and_decode);
	tcase_add_test(c, prefill_in_turns);
	tcase_add_test(c, requests_delay_each_other);
	tcase_add_loop_test(c, options, 0, 4);
	tcase_add_test(c, waiting_hits);
	tcase_add_test(c, dropped_in_prefill);
	tcase_add_test(c, dropped_before_another);
	tcase_add_test(c, long_ticks);
	tcase_add_test(c, fits);
	tcase_add_test(c, preemption);
	tcase_add_test(c, room);
	tcase_add_test(c, sequences_at_once);
	tcase_add_loop_test(c, anything, 0, 6);
	tcase_add_test(c, no_memory);
	suite_add_tcase(s, c);
	return s;
}
