/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_agents.c - see chats_agents.h.
 *
 * sessions.h defines how long the prompt of a request is and whether it
 * contains the output before it. The new part is the difference of two
 * lengths:
 *
 *   request  | head | task |                        input 1
 *   next     | head | task | answer | results |     input 2
 *                          |<output>|<- new ->|     2 - 1 - output
 *
 * The answer is the engine's, whatever its length. A conversation has a place
 * in `talks` by its ticket, which is its own until it ends.
 */
#include "chats_agents.h"

#include "chats_answer.h"
#include "chats_history.h"
#include "chats_text.h"
#include "session_gen.h"
#include "session_trace.h"
#include "sessions.h"
#include "trace.h"

#include <json-c/json.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TOKEN_BYTES = 4,
	TOOL_BYTES = 1200,   /* of a tool in a request, about */
	RAMP_PAUSES = 6,     /* the first sessions begin within so many */
	JSON_FLAGS = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE
};
enum { HEAD_SEED = 16, FAMILY_SEED, NAME_SEED, WORDS_SEED };

/* The head of a family: 0 for its agents, 1 for their sub-agents. */
struct head {
	char *system; /* JSON: a message, or a text */
	char *tools;  /* JSON: a list */
};

struct conversation {
	uint64_t session;  /* of the request; 0: none yet */
	struct rng words;
	struct history history;
	struct answer_buffer body;
	uint64_t length;   /* of the prompt and its output, in tokens */
	bool grows;        /* the next prompt contains both */
};

struct agents {
	const struct chats_options *o;
	struct session **list;
	struct sessions *sessions;
	struct head (*heads)[2]; /* [o->systems] */
	struct conversation *talks;
	size_t n_talks;
	uint64_t requests;
};

static size_t
bytes_of(const struct agents *a, uint64_t tokens)
{
	uint64_t n = tokens / a->o->shrink;

	return (size_t)((n == 0 ? 1 : n) * TOKEN_BYTES);
}

/* ---------------------------------------------------------------- heads --- */

/* Takes `value`, also when it fails, also when it is NULL: no memory. */
static bool
put(struct json_object *object, const char *key, struct json_object *value)
{
	if (value != NULL && json_object_object_add(object, key, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static struct json_object *
make_parameters(void)
{
	return json_tokener_parse("{\"type\":\"object\",\"properties\":{"
	    "\"path\":{\"type\":\"string\"},\"lines\":{\"type\":\"integer\"}},"
	    "\"required\":[\"path\"]}");
}

/* Tool `number`, of about `bytes`; NULL: no memory. */
static struct json_object *
make_tool(enum chats_endpoint endpoint, struct rng *r, size_t number,
    size_t bytes)
{
	bool messages = endpoint == CHATS_MESSAGES;
	struct json_object *tool = json_object_new_object(), *outer;
	char name[32], *text = text_make(r, bytes, "");
	bool made;

	snprintf(name, sizeof(name), "tool_%zu", number);
	made = tool != NULL && text != NULL &&
	    put(tool, "name", json_object_new_string(name)) &&
	    put(tool, "description", json_object_new_string(text)) &&
	    put(tool, messages ? "input_schema" : "parameters",
	    make_parameters());
	free(text);
	if (made && messages)
		return tool;
	outer = made ? json_object_new_object() : NULL;
	if (outer != NULL &&
	    put(outer, "type", json_object_new_string("function"))) {
		if (put(outer, "function", tool))
			return outer;
		tool = NULL; /* taken */
	}
	json_object_put(outer);
	json_object_put(tool);
	return NULL;
}

/* The text of an object, which is freed; NULL: no memory. */
static char *
take_text(struct json_object *o)
{
	const char *text = o == NULL ? NULL :
	    json_object_to_json_string_ext(o, JSON_FLAGS);
	char *copy = text == NULL ? NULL : strdup(text);

	json_object_put(o);
	return copy;
}

static char *
make_tools(const struct agents *a, struct rng *r, size_t bytes)
{
	struct json_object *list = json_object_new_array(), *tool;
	size_t n = bytes / TOOL_BYTES + 1, i;

	for (i = 0; list != NULL && i < n; i++) {
		tool = make_tool(a->o->endpoint, r, i, bytes / n);
		if (tool == NULL || json_object_array_add(list, tool) != 0) {
			json_object_put(tool);
			json_object_put(list);
			return NULL;
		}
	}
	return take_text(list);
}

static char *
make_system(const struct agents *a, struct rng *r, size_t bytes)
{
	char *text = text_make(r, bytes, "");
	struct json_object *o = text == NULL ? NULL :
	    json_object_new_string(text), *m;

	free(text);
	if (a->o->endpoint == CHATS_MESSAGES)
		return take_text(o);
	m = json_object_new_object();
	if (m != NULL && put(m, "role", json_object_new_string("system"))) {
		if (put(m, "content", o))
			return take_text(m);
		o = NULL; /* taken */
	}
	json_object_put(o);
	json_object_put(m);
	return NULL;
}

/* A quarter is the system prompt. Each is made when it is first used. */
static const struct head *
head_of(struct agents *a, const struct sessions_place *at)
{
	struct rng r = text_stream(a->o->seed, at->play, FAMILY_SEED);
	uint32_t family = text_pick(&r, a->o->systems);
	size_t kind = at->talk != 0;
	struct head *h = &a->heads[family][kind];
	size_t bytes = bytes_of(a, at->head->tool_tokens +
	    at->head->system_tokens);

	if (h->system != NULL && h->tools != NULL)
		return h;
	r = text_stream(a->o->seed, 2 * (uint64_t)family + kind, HEAD_SEED);
	if (h->system == NULL)
		h->system = make_system(a, &r, bytes / 4);
	if (h->tools == NULL)
		h->tools = make_tools(a, &r, bytes - bytes / 4);
	return h->system == NULL || h->tools == NULL ? NULL : h;
}

/* ------------------------------------------------------------- requests --- */

static struct conversation *
conversation_of(struct agents *a, const struct trace_request *q)
{
	size_t n = (size_t)q->number + 1;
	struct conversation *c, *grown;

	if (n > a->n_talks) {
		grown = realloc(a->talks, 2 * n * sizeof(*grown));
		if (grown == NULL)
			return NULL;
		memset(&grown[a->n_talks], 0, (2 * n - a->n_talks) *
		    sizeof(*grown));
		a->talks = grown;
		a->n_talks = 2 * n;
	}
	c = &a->talks[q->number];
	if (c->session != q->session) {
		c->session = q->session;
		c->words = text_stream(a->o->seed, q->session, WORDS_SEED);
		c->grows = false;
	}
	return c;
}

/* A task, or a summary, after the head. */
static bool
begin_history(struct agents *a, struct conversation *c, const struct head *h,
    uint64_t head_tokens, uint64_t input)
{
	size_t bytes = bytes_of(a, input > head_tokens ? input - head_tokens :
	    1);
	char *text = text_make(&c->words, bytes, "");
	bool begun;

	history_clear(&c->history);
	begun = text != NULL && (a->o->endpoint == CHATS_MESSAGES ||
	    history_add(&c->history, h->system, strlen(h->system))) &&
	    history_say(&c->history, "user", text, bytes);
	free(text);
	return begun;
}

static bool
extend_history(struct agents *a, struct conversation *c, uint64_t input)
{
	size_t bytes = bytes_of(a, input > c->length ? input - c->length : 1);
	char *text = text_make(&c->words, bytes, "");
	bool added = text != NULL && history_results(&c->history,
	    a->o->endpoint, text, bytes);

	free(text);
	return added;
}

static bool
put_string(struct answer_buffer *b, const char *text)
{
	return history_put(b, text, strlen(text));
}

static bool
put_model(struct agents *a, struct answer_buffer *b)
{
	char *model = take_text(json_object_new_string(a->o->model));
	bool done = model != NULL && put_string(b, "{\"model\":") &&
	    put_string(b, model);

	free(model);
	return done;
}

/* The end, with a zero byte. */
static bool
put_settings(struct agents *a, struct answer_buffer *b, uint64_t output)
{
	char text[128];
	bool usage = a->o->stream && a->o->usage &&
	    a->o->endpoint == CHATS_CHAT;

	snprintf(text, sizeof(text), ",\"max_tokens\":%zu,\"stream\":%s%s}",
	    bytes_of(a, output) / TOKEN_BYTES, a->o->stream ? "true" : "false",
	    usage ? ",\"stream_options\":{\"include_usage\":true}" : "");
	return history_put(b, text, strlen(text) + 1);
}

static bool
make_body(struct agents *a, struct conversation *c, const struct head *h,
    uint64_t output)
{
	struct answer_buffer *b = &c->body;

	b->length = 0;
	if (!put_model(a, b))
		return false;
	if (a->o->endpoint == CHATS_MESSAGES &&
	    !(put_string(b, ",\"system\":") && put_string(b, h->system)))
		return false;
	return put_string(b, ",\"messages\":[") &&
	    history_put(b, c->history.json.data, c->history.json.length) &&
	    put_string(b, "],\"tools\":") && put_string(b, h->tools) &&
	    put_settings(a, b, output);
}

bool
agents_take(struct agents *a, struct agents_request *out)
{
	struct sessions_place at;
	struct trace_request q;
	struct conversation *c;
	const struct head *h;
	struct rng name;

	if (sessions_take(a->sessions, &q) != 0)
		return false;
	at = sessions_where(a->sessions, q.number);
	c = conversation_of(a, &q);
	h = head_of(a, &at);
	if (c == NULL || h == NULL)
		return false;
	if (c->grows && q.input_length >= c->length ?
	    !extend_history(a, c, q.input_length) :
	    !begin_history(a, c, h, at.head->tool_tokens +
	    at.head->system_tokens, q.input_length))
		return false;
	if (!make_body(a, c, h, q.output_length))
		return false;
	c->length = q.input_length + q.output_length;
	c->grows = q.known_output == q.output_length;
	name = text_stream(a->o->seed, at.play, NAME_SEED);
	out->ticket = q.number;
	out->body = c->body.data;
	out->length = c->body.length - 1;
	snprintf(out->session, sizeof(out->session), "ses_%016" PRIx64,
	    rng_next(&name));
	return true;
}

bool
agents_ended(struct agents *a, uint64_t ticket,
    const struct chats_answer *answer, int64_t now)
{
	struct conversation *c = &a->talks[ticket];

	return (answer == NULL || history_answer(&c->history, answer)) &&
	    sessions_ended(a->sessions, ticket, now) == 0;
}

int64_t
agents_next(const struct agents *a)
{
	return sessions_next(a->sessions);
}

bool
agents_done(const struct agents *a)
{
	return sessions_done(a->sessions);
}

uint64_t
agents_requests(const struct agents *a)
{
	return a->requests;
}

/* A main agent waits for its sub-agents, which have none of their own. */
uint64_t
agents_most(const struct chats_options *o)
{
	return (uint64_t)o->chats * (o->agents > 1 ? o->agents : 1);
}

/* --------------------------------------------------------------- making --- */

/* Gives pauses the mean in the options. */
static void
scale_pauses(struct session *s, int64_t think_ns)
{
	double factor = (double)think_ns / (SESSION_GEN_THINK_MS * 1e6);
	size_t i;

	for (i = 0; i < s->n_entries; i++)
		s->entries[i].after_ns = (int64_t)
		    ((double)s->entries[i].after_ns * factor);
}

/* Session `number`; NULL: no memory. */
static struct session *
generate(const struct chats_options *o, uint64_t number)
{
	struct session_gen gen = { .seed = o->seed, .prompt = o->prompt,
	    .requests = o->turns, .agents = o->agents, .limit = o->limit };
	char error[SESSION_ERROR_BYTES], *text = NULL;
	struct session *s = NULL;
	size_t length = 0;
	FILE *f = open_memstream(&text, &length);
	bool written;

	if (f == NULL)
		return NULL;
	written = session_gen_write(f, &gen, number) == 0;
	f = fclose(f) == 0 && written ? fmemopen(text, length, "r") : NULL;
	if (f != NULL) {
		s = session_read(f, "session", error);
		fclose(f);
	}
	free(text);
	if (s != NULL)
		scale_pauses(s, o->think_ns);
	return s;
}

static bool
make_sessions(struct agents *a)
{
	struct sessions_options loop;
	uint64_t i;

	for (i = 0; i < a->o->sessions; i++) {
		a->list[i] = generate(a->o, i + 1);
		if (a->list[i] == NULL)
			return false;
		a->requests += a->list[i]->requests;
	}
	sessions_defaults(&loop);
	loop.seed = a->o->seed;
	loop.active = a->o->chats;
	loop.ramp_ns = RAMP_PAUSES * a->o->think_ns;
	a->sessions = sessions_new(a->list, (size_t)a->o->sessions, &loop);
	return a->sessions != NULL;
}

struct agents *
agents_new(const struct chats_options *o)
{
	struct agents *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->o = o;
	a->list = calloc((size_t)o->sessions, sizeof(*a->list));
	a->heads = calloc(o->systems, sizeof(*a->heads));
	if (a->list != NULL && a->heads != NULL && make_sessions(a))
		return a;
	agents_free(a);
	return NULL;
}

static void
heads_free(struct agents *a)
{
	uint32_t i, k;

	for (i = 0; a->heads != NULL && i < a->o->systems; i++)
		for (k = 0; k < 2; k++) {
			free(a->heads[i][k].system);
			free(a->heads[i][k].tools);
		}
	free(a->heads);
}

void
agents_free(struct agents *a)
{
	uint64_t i;

	if (a == NULL)
		return;
	for (i = 0; i < a->n_talks; i++) {
		history_free(&a->talks[i].history);
		free(a->talks[i].body.data);
	}
	free(a->talks);
	heads_free(a);
	sessions_free(a->sessions);
	for (i = 0; a->list != NULL && i < a->o->sessions; i++)
		session_free(a->list[i]);
	free(a->list);
	free(a);
}
