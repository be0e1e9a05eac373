/* SPDX-License-Identifier: BSD-2-Clause */
/* reply_put.c - text, tokens and reasons, for all formats of responses. */
#include "reply_in.h"

#include <stdarg.h>
#include <string.h>

#include <json-c/json.h>

void
reply_put(struct reply *r, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	if (evbuffer_add_vprintf(r->out, format, list) < 0)
		r->failed = true;
	va_end(list);
}

static bool
quote(struct evbuffer *out, const char *text, size_t n)
{
	struct json_object *o = json_object_new_string_len(text, (int)n);
	const char *quoted = o == NULL ? NULL :
	    json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE);
	bool done = quoted != NULL &&
	    evbuffer_add(out, quoted, strlen(quoted)) == 0;

	json_object_put(o);
	return done;
}

bool
reply_quote_to(struct evbuffer *out, const char *text)
{
	return quote(out, text, strlen(text));
}

void
reply_quote(struct reply *r, const char *text, size_t n)
{
	if (!quote(r->out, text, n))
		r->failed = true;
}

void
reply_quote_tokens(struct reply *r, size_t choice, size_t first, size_t last)
{
	size_t n;
	const char *text = words_text(&r->choices[choice].output.words, first,
	    last, &n);

	reply_quote(r, text, n);
}

void
reply_put_tokens(struct reply *r, size_t choice, size_t first, size_t last)
{
	size_t n;
	const char *text = words_text(&r->choices[choice].output.words, first,
	    last, &n);

	if (evbuffer_add(r->out, text, n) != 0)
		r->failed = true;
}

const struct output_part *
reply_part(const struct reply *r, size_t choice, enum output_kind kind)
{
	const struct output *o = &r->choices[choice].output;
	size_t i;

	for (i = 0; i < o->n_parts; i++)
		if (o->parts[i].kind == kind)
			return &o->parts[i];
	return NULL;
}

const char *
reply_reason(const struct reply *r, size_t choice, const char *length,
    const char *stop, const char *call)
{
	if (output_is_call(&r->choices[choice].output))
		return call;
	return r->ask->max_tokens > 0 ? length : stop;
}

bool
reply_cached_known(const struct reply *r)
{
	return r->usage == USAGE_VALUE ||
	    (r->usage == USAGE_NULL_FOR_0 && r->cached > 0);
}
