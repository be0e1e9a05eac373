/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_talk.c - see chats_talk.h.
 *
 * The first system prompts are the most used ones (see chats_text.h).
 */
#include "chats_talk.h"

#include "chats_text.h"
#include "rng.h"

#include <json-c/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TURN_SEED = 1, /* independent streams of random numbers */
	LEAVE_SEED = 2
};

/* The varying part of a body: chats_drive.c writes a number over it. */
static const char place_for_number[] = " 0000000000";

struct talk_systems {
	char **text;
	uint32_t n;
};

struct talk {
	const struct chats_options *o;
	const struct talk_systems *systems;
	struct rng words;
	struct rng leaves;
	struct json_object *messages; /* of this chat; NULL: a new one begins */
	struct json_object *body;     /* owns the result of talk_body */
	uint32_t system;
	uint32_t turn;
};

struct talk_systems *
talk_systems_new(const struct chats_options *o)
{
	struct talk_systems *s = calloc(1, sizeof(*s));
	struct rng r;
	uint32_t i;

	if (s == NULL)
		return NULL;
	s->text = calloc(o->systems, sizeof(*s->text));
	if (s->text == NULL) {
		free(s);
		return NULL;
	}
	s->n = o->systems;
	for (i = 0; i < s->n; i++) {
		r = text_stream(o->seed, UINT64_C(1) << 32 | i, 0);
		s->text[i] = text_make(&r, o->system_bytes, "");
		if (s->text[i] == NULL) {
			talk_systems_free(s);
			return NULL;
		}
	}
	return s;
}

void
talk_systems_free(struct talk_systems *s)
{
	uint32_t i;

	if (s == NULL)
		return;
	for (i = 0; i < s->n; i++)
		free(s->text[i]);
	free(s->text);
	free(s);
}

struct talk *
talk_new(const struct chats_options *o, const struct talk_systems *s,
    uint32_t user)
{
	struct talk *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->o = o;
	t->systems = s;
	t->words = text_stream(o->seed, user, TURN_SEED);
	t->leaves = text_stream(o->seed, user, LEAVE_SEED);
	return t;
}

void
talk_free(struct talk *t)
{
	if (t == NULL)
		return;
	json_object_put(t->messages);
	json_object_put(t->body);
	free(t);
}

void
talk_abandon(struct talk *t)
{
	json_object_put(t->messages);
	t->messages = NULL;
}

int64_t
talk_pause_ns(struct talk *t)
{
	int64_t mean = t->o->think_ns;

	return mean / 2 + (int64_t)rng_between(&t->words, 0, (uint64_t)mean);
}

bool
talk_leaves(struct talk *t)
{
	return t->o->abort != CHATS_STAY &&
	    rng_between(&t->leaves, 0, 99) < t->o->abort_percent;
}

/* ----------------------------------------------------------- the body --- */

/* Takes `value`, also when it fails, also when it is NULL: no memory. */
static bool
put(struct json_object *object, const char *key, struct json_object *value)
{
	if (value != NULL && json_object_object_add(object, key, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static bool
say(struct json_object *messages, const char *role, const char *text,
    size_t length)
{
	struct json_object *m = json_object_new_object();

	if (m == NULL)
		return false;
	if (put(m, "role", json_object_new_string(role)) &&
	    put(m, "content", json_object_new_string_len(text, (int)length)) &&
	    json_object_array_add(messages, m) == 0)
		return true;
	json_object_put(m);
	return false;
}

static bool
system_is_a_message(const struct chats_options *o)
{
	return o->endpoint == CHATS_CHAT || o->endpoint == CHATS_COMPLETIONS;
}

static bool
begin_chat(struct talk *t)
{
	const char *text;

	t->system = text_pick(&t->words, t->systems->n);
	t->turn = 0;
	t->messages = json_object_new_array();
	if (t->messages == NULL)
		return false;
	text = t->systems->text[t->system];
	return !system_is_a_message(t->o) ||
	    say(t->messages, "system", text, strlen(text));
}

/* The conversation as one text, as programs without chats send it. */
static struct json_object *
as_text(struct json_object *messages)
{
	struct json_object *text = NULL;
	char *all = NULL;
	size_t length = 0, i;
	FILE *out = open_memstream(&all, &length);

	if (out == NULL)
		return NULL;
	for (i = 0; i < json_object_array_length(messages); i++) {
		struct json_object *m = json_object_array_get_idx(messages, i);

		fprintf(out, "%s: %s\n",
		    json_object_get_string(json_object_object_get(m, "role")),
		    json_object_get_string(json_object_object_get(m,
		    "content")));
	}
	fputs("assistant: ", out);
	if (fclose(out) == 0)
		text = json_object_new_string_len(all, (int)length);
	free(all);
	return text;
}

static bool
put_prompt(struct talk *t, struct json_object *body)
{
	struct json_object *system = NULL;

	if (t->o->endpoint == CHATS_COMPLETIONS)
		return put(body, "prompt", as_text(t->messages));
	if (!system_is_a_message(t->o)) {
		system = json_object_new_string(t->systems->text[t->system]);
		if (!put(body, t->o->endpoint == CHATS_MESSAGES ? "system" :
		    "instructions", system))
			return false;
	}
	return put(body, t->o->endpoint == CHATS_RESPONSES ? "input" :
	    "messages", json_object_get(t->messages));
}

static bool
put_stream(const struct chats_options *o, struct json_object *body)
{
	struct json_object *options;

	if (!put(body, "stream", json_object_new_boolean(o->stream)))
		return false;
	if (!o->stream || !o->usage || !system_is_a_message(o))
		return true;
	options = json_object_new_object();
	return put(body, "stream_options", options) &&
	    put(options, "include_usage", json_object_new_boolean(true));
}

/* Anthropic's endpoint requires a number of tokens. */
static bool
put_limit(const struct chats_options *o, struct json_object *body)
{
	uint32_t tokens = o->answer_tokens;

	if (tokens == 0 && o->endpoint == CHATS_MESSAGES)
		tokens = 64;
	return tokens == 0 || put(body, o->endpoint == CHATS_RESPONSES ?
	    "max_output_tokens" : "max_tokens",
	    json_object_new_int64(tokens));
}

static bool
make_body(struct talk *t, bool with_number)
{
	char *text = text_make(&t->words, t->o->turn_bytes, with_number ?
	    place_for_number : "");
	bool said;

	if (text == NULL)
		return false;
	said = say(t->messages, "user", text, strlen(text));
	free(text);
	json_object_put(t->body);
	t->body = json_object_new_object();
	return said && t->body != NULL &&
	    put(t->body, "model", json_object_new_string(t->o->model)) &&
	    put_prompt(t, t->body) && put_limit(t->o, t->body) &&
	    put_stream(t->o, t->body);
}

const char *
talk_body(struct talk *t, size_t *length)
{
	if (t->messages == NULL && !begin_chat(t))
		return NULL;
	if (!make_body(t, t->o->make_body != 0))
		return NULL;
	t->turn++;
	return json_object_to_json_string_length(t->body,
	    JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, length);
}

bool
talk_answered(struct talk *t, const char *text, size_t length)
{
	if (t->messages == NULL || t->turn >= t->o->turns) {
		talk_abandon(t);
		return true;
	}
	return say(t->messages, "assistant", text, length);
}

bool
talk_invent_answer(struct talk *t)
{
	char *text = text_make(&t->words, t->o->turn_bytes, "");
	bool said = text != NULL &&
	    talk_answered(t, text, (size_t)t->o->turn_bytes);

	free(text);
	return said;
}
