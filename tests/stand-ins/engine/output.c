/* SPDX-License-Identifier: BSD-2-Clause */
/* output.c - see output.h. */
#include "output.h"

#include "rng.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>
#include <json-c/printbuf.h>

enum {
	QUERY_MIN = 3, QUERY_MAX = 40, /* tokens of an argument */
	LIMIT_MAX = 100,
	SAID_MAX = 16 /* tokens of text, and of reasoning, before calls */
};

/* ----------------------------------------------------------------- JSON --- */

static bool print(struct printbuf *p, struct json_object *o);

static bool
append(struct printbuf *p, const char *text)
{
	return text != NULL &&
	    printbuf_memappend(p, text, (int)strlen(text)) >= 0;
}

static bool
print_plain(struct printbuf *p, struct json_object *o)
{
	return append(p, json_object_to_json_string_ext(o,
	    JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
}

static bool
print_key(struct printbuf *p, const char *key)
{
	struct json_object *o = json_object_new_string(key);
	bool done = o != NULL && print_plain(p, o) && append(p, ": ");

	json_object_put(o);
	return done;
}

static bool
print_object(struct printbuf *p, struct json_object *o)
{
	struct json_object_iterator at = json_object_iter_begin(o);
	struct json_object_iterator end = json_object_iter_end(o);
	bool first = true, done = append(p, "{");

	for (; done && !json_object_iter_equal(&at, &end);
	    json_object_iter_next(&at)) {
		done = (first || append(p, ", ")) &&
		    print_key(p, json_object_iter_peek_name(&at)) &&
		    print(p, json_object_iter_peek_value(&at));
		first = false;
	}
	return done && append(p, "}");
}

static bool
print_list(struct printbuf *p, struct json_object *o)
{
	size_t n = json_object_array_length(o), i;
	bool done = append(p, "[");

	for (i = 0; i < n && done; i++)
		done = (i == 0 || append(p, ", ")) &&
		    print(p, json_object_array_get_idx(o, i));
	return done && append(p, "]");
}

/* The depth of a body is the limit. */
static bool
print(struct printbuf *p, struct json_object *o)
{
	if (json_object_is_type(o, json_type_object))
		return print_object(p, o);
	if (json_object_is_type(o, json_type_array))
		return print_list(p, o);
	return print_plain(p, o);
}

char *
output_json(struct json_object *o)
{
	struct printbuf *p = printbuf_new();
	char *text = NULL;

	if (p != NULL && print(p, o))
		text = strdup(p->buf);
	if (p != NULL)
		printbuf_free(p);
	return text;
}

/* ---------------------------------------------------------------- calls --- */

/* Drops `value` if it is not added. */
static bool
member(struct json_object *o, const char *name, struct json_object *value)
{
	if (value != NULL && json_object_object_add(o, name, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static struct json_object *
query(struct rng *rng)
{
	size_t n = rng_between(rng, QUERY_MIN, QUERY_MAX);
	struct json_object *o = NULL;
	struct words w;

	if (words_begin(&w, n)) {
		words_draw(&w, rng_next(rng), n, NULL);
		o = json_object_new_string(w.text);
	}
	words_free(&w);
	return o;
}

/* Strings with escapes, numbers, and objects within each other. */
static char *
arguments(struct rng *rng)
{
	struct json_object *o = json_object_new_object();
	char *text = NULL;

	if (o != NULL && member(o, "query", query(rng)) &&
	    member(o, "limit", json_object_new_int(
	    (int)rng_between(rng, 1, LIMIT_MAX))) &&
	    member(o, "options", json_tokener_parse("{\"paths\":"
	    "[\"src/a.c\",\"C:\\\\b\"],\"ratio\":0.5,\"exact\":true,"
	    "\"until\":null,\"tags\":[],\"more\":{}}")))
		text = output_json(o);
	json_object_put(o);
	return text;
}

/* ---------------------------------------------------------------- parts --- */

/* Makes the tokens added since `first` a part. */
static struct output_part *
part(struct output *o, enum output_kind kind, size_t first)
{
	struct output_part *p = &o->parts[o->n_parts++];

	*p = (struct output_part){ .kind = kind, .first = first,
	    .last = o->words.n };
	return p;
}

static void
draw(struct output *o, enum output_kind kind, struct rng *rng, size_t n,
    struct token_list *tokens)
{
	size_t first = o->words.n;

	words_draw(&o->words, rng_next(rng), n, tokens);
	part(o, kind, first);
}

static bool
call(struct output *o, const struct output_facts *f, struct rng *rng,
    struct token_list *tokens)
{
	const char *name = f->tools[rng_between(rng, 0, f->n_tools - 1)];
	char *text = arguments(rng);
	struct output_part *p;
	size_t first;

	if (text == NULL)
		return false;
	words_put(&o->words, OUTPUT_CALL, tokens);
	words_put(&o->words, name, tokens);
	words_put(&o->words, "\n", tokens);
	first = o->words.n;
	words_put(&o->words, text, tokens);
	p = part(o, OUTPUT_TOOL, first);
	p->name = name;
	p->id = rng_next(rng);
	words_put(&o->words, OUTPUT_CALL_END, tokens);
	free(text);
	return true;
}

/* One or two calls, in one of two answers after text. */
static bool
calls(struct output *o, const struct output_facts *f, struct rng *rng,
    struct token_list *tokens)
{
	size_t n = rng_between(rng, 1, OUTPUT_CALLS_MAX);
	size_t said = f->tokens / 4 < SAID_MAX ? f->tokens / 4 + 1 : SAID_MAX;

	if (f->reasoning)
		draw(o, OUTPUT_REASONING, rng, said, tokens);
	if (rng_between(rng, 0, 1) == 1)
		draw(o, OUTPUT_TEXT, rng, said, tokens);
	while (n-- > 0)
		if (!call(o, f, rng, tokens))
			return false;
	return true;
}

/* Makes as many tokens as are wanted. */
static void
text(struct output *o, const struct output_facts *f, struct rng *rng,
    struct token_list *tokens)
{
	size_t thought = f->reasoning ? f->tokens / 4 : 0;
	size_t first;

	if (thought > 0)
		draw(o, OUTPUT_REASONING, rng, thought, tokens);
	first = o->words.n;
	words_draw(&o->words, f->seed, f->tokens - thought, tokens);
	part(o, OUTPUT_TEXT, first);
}

bool
output_make(struct output *o, const struct output_facts *f,
    struct token_list *tokens)
{
	size_t before = tokens->n;
	struct rng rng = { f->seed };

	o->n_parts = 0;
	if (!words_begin(&o->words, f->most > f->tokens ? f->most : f->tokens))
		return false;
	if (f->one_in > 0 && f->n_tools > 0 &&
	    rng_between(&rng, 1, f->one_in) == 1) {
		if (!calls(o, f, &rng, tokens))
			return false;
		if (o->words.n < o->words.room)
			return !tokens->failed;
		o->words.n = o->n_parts = 0;
		tokens->n = before;
	}
	text(o, f, &rng, tokens);
	return !tokens->failed;
}

void
output_free(struct output *o)
{
	words_free(&o->words);
	o->n_parts = 0;
}

bool
output_is_call(const struct output *o)
{
	return o->n_parts > 0 &&
	    o->parts[o->n_parts - 1].kind == OUTPUT_TOOL;
}

size_t
output_reasoning(const struct output *o)
{
	return o->n_parts > 0 && o->parts[0].kind == OUTPUT_REASONING ?
	    o->parts[0].last : 0;
}
