/* SPDX-License-Identifier: BSD-2-Clause */
/* session_gen.c - see session_gen.h. */
#include "session_gen.h"

#include "draw.h"
#include "rng.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	BLOCK = 64,
	TASK = 10000,          /* mean tokens: the task, or a summary */
	RESULT = 1500,         /* of a tool */
	OUTPUT = 300,
	AGENT_REQUESTS = 10,   /* mean of a sub-agent */
	GROUP_EVERY = 20       /* requests, mean between groups of sub-agents */
};

struct talker {
	struct rng rng;
	FILE *out;
	const struct session_gen *o;
	uint64_t next_id;
	uint64_t agent_id; /* the first of sub-agents' tools */
};

/* A conversation's prompt. */
struct context {
	uint64_t tokens;
	uint64_t head;   /* tokens of tools and system prompt */
	uint64_t *ids;   /* of complete blocks */
	uint64_t n;
	uint64_t capacity;
};

void
session_gen_defaults(struct session_gen *o)
{
	*o = (struct session_gen){ .seed = 1, .prompt = 15000, .requests = 50,
	    .agents = 5 };
}

/* `first`: the id of the first block that is completed; 0: new ones. */
static int
extend_history(struct talker *t, struct context *c, uint64_t tokens,
    uint64_t first)
{
	uint64_t whole = (c->tokens + tokens) / BLOCK, *p;

	if (whole > c->capacity) {
		p = realloc(c->ids, 2 * whole * sizeof(*p));
		if (p == NULL)
			return -1;
		c->ids = p;
		c->capacity = 2 * whole;
	}
	c->tokens += tokens;
	while (c->n < whole)
		c->ids[c->n++] = first != 0 ? first++ : t->next_id++;
	return 0;
}

static void
print_seconds(FILE *out, const char *name, uint64_t ms)
{
	fprintf(out, "\"%s\": %" PRIu64 ".%03" PRIu64 ", ", name, ms / 1000,
	    ms % 1000);
}

/* *ms is its time, and then that of its end. */
static void
write_one(struct talker *t, const struct context *c, uint64_t output,
    uint64_t think, uint64_t *ms)
{
	uint64_t took = c->tokens / 50 + output * 20, i;

	fputs("{", t->out);
	print_seconds(t->out, "t", *ms);
	print_seconds(t->out, "think_time", think);
	print_seconds(t->out, "api_time", took);
	fprintf(t->out, "\"type\": \"s\", \"in\": %" PRIu64 ", \"out\": %"
	    PRIu64 ", \"hash_ids\": [", c->tokens, output);
	for (i = 0; i < c->n; i++)
		fprintf(t->out, "%s%" PRIu64, i == 0 ? "" : ", ", c->ids[i]);
	fputs("]}", t->out);
	*ms += took;
}

static int write_talk(struct talker *t, uint64_t requests, uint64_t head,
    uint64_t first, int nested, uint64_t *took);

/* *last is the end of the last one, on the parent's clock. */
static int
write_group(struct talker *t, uint64_t ms, uint64_t *last)
{
	uint64_t n = rng_between(&t->rng, 1, t->o->agents), took, at;
	uint64_t head = t->o->prompt / 2;

	for (*last = ms; n > 0; n--) {
		at = ms + draw_exponential(&t->rng, 1000);
		fputs(",\n{\"type\": \"subagent\", ", t->out);
		print_seconds(t->out, "t", at);
		fprintf(t->out, "\"tool_tokens\": %" PRIu64
		    ", \"system_tokens\": 0, ", head);
		if (write_talk(t, draw_length(&t->rng, 1, AGENT_REQUESTS),
		    head, t->agent_id, 1, &took) != 0)
			return -1;
		fputs("}", t->out);
		*last = at + took > *last ? at + took : *last;
	}
	return 0;
}

/* The tool's result, or a new beginning when the prompt is too long. */
static int
continue_with(struct talker *t, struct context *c, uint64_t output)
{
	uint64_t limit = t->o->limit == 0 ? SESSION_GEN_LIMIT : t->o->limit;

	if (c->tokens + output > limit) {
		c->tokens = c->head;
		c->n = c->head / BLOCK;
		return extend_history(t, c, draw_length(&t->rng, 1, TASK), 0);
	}
	return extend_history(t, c, output + draw_length(&t->rng, 1, RESULT),
	    0);
}

static int
write_requests(struct talker *t, struct context *c, uint64_t requests,
    int nested, uint64_t *ms)
{
	uint64_t think = 0, ended = 0, output, last;

	for (;; fputs(",\n", t->out)) {
		output = draw_length(&t->rng, 1, OUTPUT);
		write_one(t, c, output, think, ms);
		if (--requests == 0)
			return ferror(t->out) ? -1 : 0;
		if (continue_with(t, c, output) != 0)
			return -1;
		ended = last = *ms;
		if (!nested && t->o->agents > 0 &&
		    rng_between(&t->rng, 1, GROUP_EVERY) == 1 &&
		    write_group(t, *ms, &last) != 0)
			return -1;
		*ms = ended + draw_exponential(&t->rng,
		    SESSION_GEN_THINK_MS);
		*ms = *ms > last ? *ms : last;
		think = *ms - ended;
	}
}

/* The requests of a conversation; *took is its length. */
static int
write_talk(struct talker *t, uint64_t requests, uint64_t head, uint64_t first,
    int nested, uint64_t *took)
{
	struct context c = { .head = head };
	int result = extend_history(t, &c, head, first);

	*took = 0;
	if (result == 0)
		result = extend_history(t, &c, draw_length(&t->rng, 1, TASK),
		    0);
	fputs("\"requests\": [\n", t->out);
	if (result == 0)
		result = write_requests(t, &c, requests, nested, took);
	fputs("]", t->out);
	free(c.ids);
	return result;
}

int
session_gen_write(FILE *out, const struct session_gen *o, uint64_t number)
{
	struct rng seeds = { o->seed };
	struct talker t = { .out = out, .o = o, .agent_id = 1,
	    .next_id = 1 + o->prompt / BLOCK };
	uint64_t took;

	t.rng.state = rng_next(&seeds) + number;
	t.rng.state = rng_next(&t.rng);
	fprintf(out, "{\"id\": \"session_%04" PRIu64 "\", \"block_size\": %d, "
	    "\"hash_id_scope\": \"local\", \"tool_tokens\": %" PRIu64
	    ", \"system_tokens\": 0, ", number, BLOCK, o->prompt);
	if (write_talk(&t, draw_length(&t.rng, 2, o->requests), o->prompt, 0,
	    0, &took) != 0)
		return -1;
	fputs("}\n", out);
	return fflush(out) == 0 && !ferror(out) ? 0 : -1;
}
