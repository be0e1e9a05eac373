/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call.c - a request to one of the endpoints, from its body to its response.
 *
 * Each choice of each prompt is a sequence. The output is generated before it
 * begins. Usage is the sum.
 */
#include "server.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include <bsd/stdlib.h>
#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
	ANSWER_MIN = 16, /* tokens, by default */
	ANSWER_MAX = 64,
	CALLS_MAX = 4096, /* with calls, by default */
	LARGE_BODY = 1 << 20 /* bytes; memory is returned after such a body */
};

struct choice {
	struct call *call;
	struct sequence *sequence; /* NULL: finished */
	bool begun;
};

struct call {
	struct link *link;
	uint32_t rank;
	struct ask ask;
	struct reply reply;
	struct choice *choices; /* [reply.n_choices] */
	size_t left;            /* unfinished choices */
	bool headers_sent;
	bool first_sent;
	struct evbuffer *out;
};

/* Returns the serving of the request's rank. */
static struct serving *
serving_of(const struct call *c)
{
	return c->link->server->ranks[c->rank];
}

static void
call_free(struct call *c)
{
	struct serving *serving = serving_of(c);
	size_t i;

	for (i = 0; i < c->reply.n_choices; i++) {
		if (c->choices != NULL)
			serving_drop(serving, c->choices[i].sequence);
		if (c->reply.choices != NULL)
			output_free(&c->reply.choices[i].output);
	}
	free(c->choices);
	free(c->reply.choices);
	ask_free(&c->ask);
	if (c->out != NULL)
		evbuffer_free(c->out);
	c->link->call = NULL;
	free(c);
}

void
call_drop(struct call *c)
{
	/* Others may have room now. */
	event_active(c->link->server->due, EV_TIMEOUT, 0);
	call_free(c);
}

/* -------------------------------------------------------------- sending --- */

static void
send_headers(struct call *c)
{
	struct evhttp_request *request = c->link->request;
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);

	if (c->headers_sent)
		return;
	c->headers_sent = true;
	evhttp_add_header(headers, "Content-Type",
	    "text/event-stream; charset=utf-8");
	evhttp_send_reply_start(request, 200, NULL);
}

/* Sends all finished parts. */
static void
flush(struct call *c)
{
	if (evbuffer_get_length(c->out) > 0)
		evhttp_send_reply_chunk(c->link->request, c->out);
}

/* The response is incomplete: drop it. */
static bool
failed(struct call *c)
{
	if (!c->reply.failed)
		return false;
	link_shut(c->link);
	return true;
}

static void
call_end(struct call *c)
{
	struct link *l = c->link;
	struct evhttp_request *request = l->request;

	if (c->ask.stream)
		reply_last(&c->reply);
	else
		reply_whole(&c->reply);
	if (c->ask.kind == ASK_RESPONSES)
		stored_keep(l->server, &c->reply);
	if (failed(c))
		return;
	if (c->ask.stream) {
		flush(c);
		l->request = NULL;
		evhttp_send_reply_end(request);
	} else {
		server_answer(l, 200, c->out);
	}
	call_free(c);
}

/* ------------------------------------------------------------- progress --- */

static void
stream_progress(struct call *c, size_t i, const struct sequence_state *state)
{
	send_headers(c);
	if (!c->first_sent)
		reply_first(&c->reply);
	c->first_sent = true;
	reply_text(&c->reply, i, state->generated);
	if (state->finished)
		reply_stop(&c->reply, i);
}

void
call_progress(struct sequence *q, const struct sequence_state *state)
{
	struct choice *choice = state->owner;
	struct call *c = choice->call;
	size_t i = (size_t)(choice - c->choices);

	if (!choice->begun)
		c->reply.cached += state->cached;
	choice->begun = true;
	if (c->ask.stream)
		stream_progress(c, i, state);
	if (failed(c))
		return;
	if (state->finished) {
		c->reply.generated += state->generated;
		choice->sequence = NULL;
		serving_drop(serving_of(c), q);
		c->left--;
	}
	if (c->left == 0)
		call_end(c);
	else
		flush(c);
}

/* ------------------------------------------------------------ beginning --- */

static uint64_t
answer_tokens(const struct call *c, uint64_t seed)
{
	if (c->ask.kind == ASK_EMBEDDINGS)
		return 1;
	if (c->ask.max_tokens > 0)
		return c->ask.max_tokens;
	return ANSWER_MIN + seed % (ANSWER_MAX - ANSWER_MIN + 1);
}

static bool
make_output(struct call *c, size_t i, uint64_t seed, struct token_list *prompt)
{
	const struct server_facts *f = c->link->server->facts;
	struct output_facts facts = {
		.seed = seed, .tokens = (size_t)answer_tokens(c, seed),
		.one_in = f->tools, .tools = c->ask.tools,
		.n_tools = c->ask.n_tools
	};

	if (c->ask.kind != ASK_EMBEDDINGS && c->ask.kind != ASK_COMPLETIONS)
		facts.reasoning = f->reasoning;
	if (facts.one_in > 0 && facts.n_tools > 0)
		facts.most = c->ask.max_tokens > 0 ? c->ask.max_tokens :
		    CALLS_MAX;
	return output_make(&c->reply.choices[i].output, &facts, prompt);
}

/* Models after the first are its adapters. */
static const char *
adapter_of(const struct ask_rules *rules, const char *model)
{
	if (rules->any_model || strcmp(model, rules->models[0]) == 0)
		return NULL;
	return model;
}

/* Response tokens follow the prompt's as long as they are needed. */
static void
begin_choice(struct call *c, size_t i)
{
	struct server *s = c->link->server;
	struct token_list *prompt = &c->ask.prompts[i / c->ask.choices];
	size_t n_prompt = prompt->n;
	uint64_t seed = XXH3_64bits_withSeed(prompt->ids,
	    n_prompt * sizeof(prompt->ids[0]), i % c->ask.choices);
	struct sequence_facts facts = {
		.n_prompt = n_prompt, .salt = c->ask.salt,
		.salt_text = c->ask.salt_text,
		.adapter = adapter_of(&s->facts->rules, c->ask.model),
		.compute_all = c->ask.compute_all, .owner = &c->choices[i]
	};

	if (!make_output(c, i, seed, prompt)) {
		c->ask.status = 500;
		return;
	}
	facts.n_answer = c->reply.choices[i].output.words.n;
	facts.tokens = prompt->ids;
	prompt->n = n_prompt;
	if (!serving_fits(serving_of(c), n_prompt, facts.n_answer)) {
		c->ask.status = 400;
		snprintf(c->ask.error, sizeof(c->ask.error), "The prompt has "
		    "%zu tokens, the response %zu: more than the cache holds",
		    n_prompt, facts.n_answer);
		return;
	}
	c->choices[i].sequence = serving_submit(serving_of(c), &facts,
	    server_now(s));
	c->reply.prompt += n_prompt;
	if (c->choices[i].sequence == NULL)
		c->ask.status = 500;
}

static void
begin_choices(struct call *c)
{
	size_t n = c->ask.n_prompts * c->ask.choices, i;

	c->out = evbuffer_new();
	c->reply.out = c->out;
	c->choices = calloc(n, sizeof(c->choices[0]));
	c->reply.choices = calloc(n, sizeof(c->reply.choices[0]));
	if (c->out == NULL || c->choices == NULL || c->reply.choices == NULL) {
		c->ask.status = 500;
		return;
	}
	c->reply.n_choices = c->left = n;
	for (i = 0; i < n && c->ask.status == 0; i++) {
		c->choices[i].call = c;
		begin_choice(c, i);
	}
}

/* Avoids copies. */
static void
read_body(struct call *c, int kind)
{
	struct evbuffer *in =
	    evhttp_request_get_input_buffer(c->link->request);
	struct ask_rules rules = c->link->server->facts->rules;
	size_t n = evbuffer_get_length(in);
	const char *body = n == 0 ? "" :
	    (const char *)evbuffer_pullup(in, -1);

	rules.kept = c->link->server->kept;
	if (body == NULL)
		c->ask.status = 500;
	else
		ask_read(&c->ask, kind, &rules, body, n);
	evbuffer_drain(in, n);
	if (n >= LARGE_BODY)
		malloc_trim(0);
}

/* The one with the fewest requests. */
static uint32_t
least_rank(const struct server *s)
{
	struct serving_counts n;
	uint64_t least = UINT64_MAX;
	uint32_t best = 0, i;

	for (i = 0; i < s->facts->ranks; i++) {
		serving_counts(s->ranks[i], &n);
		if (n.running + n.waiting >= least)
			continue;
		least = n.running + n.waiting;
		best = i;
	}
	return best;
}

/* The value of the header, which may be given once; NULL: it is not. */
static const char *
header_of(struct call *c, const char *name)
{
	const struct evkeyval *h;
	const char *text = NULL;

	TAILQ_FOREACH(h, evhttp_request_get_input_headers(c->link->request),
	    next) {
		if (strcasecmp(h->key, name) != 0)
			continue;
		if (text != NULL)
			c->ask.status = 400;
		text = h->value;
	}
	return text;
}

/* The rank that the request names, else the engine's choice. */
static void
choose_rank(struct call *c)
{
	const struct server *s = c->link->server;
	const char *text = header_of(c, "X-Data-Parallel-Rank"), *wrong = NULL;

	if (text == NULL) {
		c->rank = least_rank(s);
		return;
	}
	c->rank = (uint32_t)strtonum(text, 0, s->facts->ranks - 1, &wrong);
	if (wrong == NULL && c->ask.status == 0)
		return;
	c->rank = 0;
	c->ask.status = 400;
	snprintf(c->ask.error, sizeof(c->ask.error), "X-Data-Parallel-Rank "
	    "must be one rank of %" PRIu32 ", from 0", s->facts->ranks);
}

void
call_begin(struct link *l, int kind)
{
	struct call *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		server_error(l, kind, 500, "no memory");
		return;
	}
	c->link = l;
	l->call = c;
	read_body(c, kind);
	c->reply.ask = &c->ask;
	c->reply.usage = l->server->facts->usage;
	c->reply.number = l->server->requests;
	c->reply.created = time(NULL);
	if (kind == ASK_RESPONSES)
		kept_id(l->server->kept, KEPT_RESPONSE, c->reply.id);
	if (c->ask.status == 0)
		choose_rank(c);
	if (c->ask.status == 0)
		begin_choices(c);
	if (c->ask.status != 0) {
		server_error(l, kind, c->ask.status, c->ask.error);
		call_free(c);
		return;
	}
	if (c->ask.stream && l->server->facts->headers_early) {
		send_headers(c);
		reply_early(&c->reply);
		flush(c);
	}
	server_run(l->server);
}
