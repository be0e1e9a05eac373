/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample.c - see sample.h.
 *
 * Conversations begin at random times and are independent of each other. There
 * are three kinds:
 *
 *   chat       a short question, an answer, a pause to read and think, ...
 *   tool loop  a program's turns: a long system prompt with tools, tool
 *              results as questions, short answers, short pauses
 *   document   a long text, then a few questions about it
 *
 * The prompt of a turn is the whole conversation so far:
 *
 *   | system prompt | q1 | a1 | q2 | a2 | q3 |        turn 3
 *   '--shared by many--'                              in blocks of 512 tokens
 *
 * A hash id stands for a whole block. A prompt repeats the ids of all complete
 * blocks of its predecessor and takes new ids from there on, because the last,
 * partial block changes when tokens are added to it. The ids of a system
 * prompt's complete blocks never change.
 *
 * Conversations are kept in a heap ordered by the time of their next turn, and
 * within one millisecond by the order of insertion.
 */
#include "sample.h"

#include "rng.h"
#include "trace.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum kind { CHAT, TOOL_LOOP, DOCUMENT, KINDS };

/* Inclusive ranges of tokens or milliseconds. */
struct range {
	uint64_t low;
	uint64_t high;
};
static const struct {
	struct range turns;
	struct range question;
	struct range answer;
	struct range pause;
	struct range opening; /* the document, before the first question */
} kinds[KINDS] = {
	[CHAT] = { { 1, 12 }, { 15, 600 }, { 40, 700 }, { 4000, 60000 },
	    { 0, 0 } },
	[TOOL_LOOP] = { { 4, 30 }, { 40, 2400 }, { 20, 160 }, { 200, 5000 },
	    { 100, 800 } },
	[DOCUMENT] = { { 1, 5 }, { 15, 200 }, { 100, 900 }, { 5000, 50000 },
	    { 6000, 40000 } }
};
static const struct range chat_system = { 100, 2000 };
static const struct range tool_system = { 2000, 9000 };

enum { TOKENS_MAX = TRACE_IDS_MAX * TRACE_BLOCK / 2 };

struct conversation {
	uint64_t at;      /* next turn, in ms */
	uint64_t order;
	enum kind kind;
	uint64_t turns;   /* remaining */
	uint64_t tokens;  /* so far */
	uint64_t *ids;
	size_t n_ids;     /* of complete blocks */
	size_t capacity;
};

struct system_prompt {
	uint64_t tokens;
	uint64_t first_id; /* of its complete blocks; the others follow */
};

struct sample {
	struct sample_options options;
	struct rng rng;
	FILE *out;
	struct system_prompt *systems[KINDS];
	struct conversation **heap;
	size_t n;
	size_t capacity;
	uint64_t next_id;
	uint64_t order;
	uint64_t next_start; /* of a conversation, in ms */
	uint64_t gap;        /* mean ms between starts, at least 1 */
	uint64_t written;
};

void
sample_defaults(struct sample_options *o)
{
	o->seed = 1;
	o->requests = 3000;
	o->duration_s = 600;
	o->tool_loops = 25;
	o->documents = 10;
	o->systems = 20;
}

static uint64_t
draw_between(struct sample *s, struct range r)
{
	return rng_between(&s->rng, r.low, r.high);
}

/* The smaller of two draws: small values are more likely, as in practice. */
static uint64_t
draw_low(struct sample *s, struct range r)
{
	uint64_t a = draw_between(s, r), b = draw_between(s, r);

	return a < b ? a : b;
}

/* ------------------------------------------------------- conversations --- */

static void
end_conversation(struct conversation *c)
{
	if (c == NULL)
		return;
	free(c->ids);
	free(c);
}

/* Appends n tokens, and ids for the blocks they complete. */
static int
sample_append(struct sample *s, struct conversation *c, uint64_t n)
{
	size_t whole;

	if (n > TOKENS_MAX - c->tokens)
		n = TOKENS_MAX - c->tokens;
	c->tokens += n;
	whole = (size_t)(c->tokens / TRACE_BLOCK);
	if (whole > c->capacity) {
		uint64_t *p = realloc(c->ids, 2 * whole * sizeof(*p));

		if (p == NULL)
			return -1;
		c->ids = p;
		c->capacity = 2 * whole;
	}
	while (c->n_ids < whole)
		c->ids[c->n_ids++] = s->next_id++;
	return 0;
}

/* Appends the system prompt under its shared ids. */
static int
open_with(struct sample *s, struct conversation *c,
    const struct system_prompt *prompt)
{
	uint64_t next_id = s->next_id;
	int result;

	s->next_id = prompt->first_id;
	result = sample_append(s, c, prompt->tokens);
	s->next_id = next_id;
	return result;
}

static enum kind
draw_kind(struct sample *s)
{
	uint64_t n = rng_between(&s->rng, 0, 99);

	if (n < s->options.tool_loops)
		return TOOL_LOOP;
	return n < s->options.tool_loops + s->options.documents ?
	    DOCUMENT : CHAT;
}

static struct conversation *
begin_conversation(struct sample *s)
{
	struct conversation *c = calloc(1, sizeof(*c));
	const struct range any = { 0, s->options.systems - 1 };

	if (c == NULL)
		return NULL;
	c->kind = draw_kind(s);
	c->at = s->next_start;
	c->turns = draw_low(s, kinds[c->kind].turns);
	/* The first system prompts are the most popular. */
	if (open_with(s, c, &s->systems[c->kind][draw_low(s, any)]) != 0 ||
	    sample_append(s, c, draw_low(s, kinds[c->kind].opening)) != 0) {
		end_conversation(c);
		return NULL;
	}
	return c;
}

static bool
sample_before(const struct conversation *a, const struct conversation *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static int
sample_push(struct sample *s, struct conversation *c)
{
	size_t i, up;

	if (s->n == s->capacity) {
		size_t want = s->capacity == 0 ? 64 : s->capacity * 2;
		struct conversation **p = realloc(s->heap, want * sizeof(*p));

		if (p == NULL)
			return -1;
		s->heap = p;
		s->capacity = want;
	}
	c->order = s->order++;
	for (i = s->n++; i > 0; i = up) {
		up = (i - 1) / 2;
		if (!sample_before(c, s->heap[up]))
			break;
		s->heap[i] = s->heap[up];
	}
	s->heap[i] = c;
	return 0;
}

static struct conversation *
sample_pop(struct sample *s)
{
	struct conversation *first = s->heap[0], *last = s->heap[--s->n];
	size_t i = 0, child;

	for (;; i = child) {
		child = 2 * i + 1;
		if (child >= s->n)
			break;
		if (child + 1 < s->n &&
		    sample_before(s->heap[child + 1], s->heap[child]))
			child++;
		if (sample_before(last, s->heap[child]))
			break;
		s->heap[i] = s->heap[child];
	}
	s->heap[i] = last;
	return first;
}

/* ------------------------------------------------------------- writing --- */

static void
write_request(struct sample *s, const struct conversation *c, uint64_t answer)
{
	size_t i;

	fprintf(s->out, "{\"timestamp\": %" PRIu64 ", \"input_length\": %"
	    PRIu64 ", \"output_length\": %" PRIu64 ", \"hash_ids\": [",
	    c->at, c->tokens, answer);
	for (i = 0; i < c->n_ids; i++)
		fprintf(s->out, "%s%" PRIu64, i == 0 ? "" : ", ", c->ids[i]);
	if (c->tokens % TRACE_BLOCK != 0)
		fprintf(s->out, "%s%" PRIu64, i == 0 ? "" : ", ", s->next_id++);
	fprintf(s->out, "]}\n");
	s->written++;
}

/* One question and its answer. Requeues or ends the conversation. */
static int
sample_take_turn(struct sample *s, struct conversation *c)
{
	uint64_t answer = draw_low(s, kinds[c->kind].answer);
	uint64_t pause = draw_low(s, kinds[c->kind].pause);

	if (sample_append(s, c, draw_low(s, kinds[c->kind].question)) != 0) {
		end_conversation(c);
		return -1;
	}
	write_request(s, c, answer);
	if (--c->turns == 0) {
		end_conversation(c);
		return 0;
	}
	/* The next turn follows the answer, generated at 50 tokens/s. */
	c->at += answer * 20 + pause;
	if (sample_append(s, c, answer) != 0 || sample_push(s, c) != 0) {
		end_conversation(c);
		return -1;
	}
	return 0;
}

/* ----------------------------------------------------------- the trace --- */

static int
make_systems(struct sample *s)
{
	uint32_t i;
	int kind;

	for (kind = 0; kind < KINDS; kind++) {
		const struct range length = kind == TOOL_LOOP ? tool_system :
		    chat_system;
		struct system_prompt *p = calloc(s->options.systems,
		    sizeof(*p));

		if (p == NULL)
			return -1;
		s->systems[kind] = p;
		for (i = 0; i < s->options.systems; i++) {
			p[i].tokens = draw_between(s, length);
			p[i].first_id = s->next_id;
			s->next_id += p[i].tokens / TRACE_BLOCK;
		}
	}
	return 0;
}

/*
 * The mean interval between conversations that yields `requests` turns within
 * the duration. The mean of draw_low is a third of the way up its range.
 */
static uint64_t
find_gap(const struct sample_options *o)
{
	uint64_t chats = 100 - o->tool_loops - o->documents;
	uint64_t turns = 0; /* of 100 conversations */
	uint64_t gap;

	turns += chats * (2 * kinds[CHAT].turns.low + kinds[CHAT].turns.high);
	turns += o->tool_loops * (2 * kinds[TOOL_LOOP].turns.low +
	    kinds[TOOL_LOOP].turns.high);
	turns += o->documents * (2 * kinds[DOCUMENT].turns.low +
	    kinds[DOCUMENT].turns.high);
	turns /= 3;
	gap = o->duration_s * 10 * turns / o->requests;
	return gap == 0 ? 1 : gap;
}

static int
write_all(struct sample *s)
{
	while (s->written < s->options.requests) {
		if (s->n == 0 || s->next_start <= s->heap[0]->at) {
			struct conversation *c = begin_conversation(s);

			if (c == NULL)
				return -1;
			s->next_start += rng_between(&s->rng, 0, 2 * s->gap);
			if (sample_push(s, c) != 0) {
				end_conversation(c);
				return -1;
			}
		} else if (sample_take_turn(s, sample_pop(s)) != 0) {
			return -1;
		}
		if (ferror(s->out))
			return -1;
	}
	return fflush(s->out) == 0 ? 0 : -1;
}

int
sample_write(FILE *out, const struct sample_options *o)
{
	struct sample s;
	int kind, result;

	memset(&s, 0, sizeof(s));
	s.options = *o;
	s.rng.state = o->seed;
	s.out = out;
	s.gap = find_gap(o);
	result = make_systems(&s) == 0 ? write_all(&s) : -1;
	while (s.n > 0)
		end_conversation(s.heap[--s.n]);
	for (kind = 0; kind < KINDS; kind++)
		free(s.systems[kind]);
	free(s.heap);
	return result;
}
