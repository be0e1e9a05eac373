/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_trace.c - see session_trace.h.
 *
 * The entries of a conversation are contiguous, so a sub-agent's are appended
 * after all entries of its parent have their place. Ids of a request depend on
 * the next one, so they are completed from the last request to the first.
 */
#include "session_trace.h"

#include <json-c/json.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct session *s;
	const char *name;
	char *error;
	uint64_t block; /* tokens per hash id */
	size_t talk_capacity;
	size_t entry_capacity;
	size_t id_capacity;
};

static int __attribute__((format(printf, 2, 3)))
wrong(const struct reader *r, const char *format, ...)
{
	va_list arguments;
	int n = snprintf(r->error, SESSION_ERROR_BYTES, "%.200s: ", r->name);

	if (n < 0)
		return -1;
	va_start(arguments, format);
	vsnprintf(r->error + n, SESSION_ERROR_BYTES - (size_t)n, format,
	    arguments);
	va_end(arguments);
	return -1;
}

/* Makes room for `more` elements after the first n. */
static int
reserve_room(const struct reader *r, void **array, size_t *capacity, size_t n,
    size_t more, size_t element)
{
	size_t want = *capacity;
	void *p;

	if (n + more <= want)
		return 0;
	while (want < n + more)
		want = want == 0 ? 64 : want * 2;
	p = realloc(*array, want * element);
	if (p == NULL)
		return wrong(r, "out of memory");
	*array = p;
	*capacity = want;
	return 0;
}

static uint64_t
session_mix(uint64_t z)
{
	z += UINT64_C(0x9E3779B97F4A7C15);
	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/* --------------------------------------------------------------- fields --- */

/* An integer from 0 to `most`; `otherwise` if it is missing. */
static int
read_count(const struct reader *r, const struct json_object *o,
    const char *field, uint64_t most, uint64_t *out)
{
	struct json_object *value;
	int64_t n;

	if (!json_object_object_get_ex(o, field, &value))
		return wrong(r, "%s is missing", field);
	if (!json_object_is_type(value, json_type_int))
		return wrong(r, "%s is not an integer", field);
	n = json_object_get_int64(value);
	if (n < 0 || (uint64_t)n > most)
		return wrong(r, "%s is not from 0 to %llu", field,
		    (unsigned long long)most);
	*out = (uint64_t)n;
	return 0;
}

static bool
has_field(const struct json_object *o, const char *field)
{
	struct json_object *value;

	return json_object_object_get_ex(o, field, &value) && value != NULL;
}

/* Seconds as nanoseconds; 0 if the field is missing. */
static int
read_seconds(const struct reader *r, const struct json_object *o,
    const char *field, int64_t *out)
{
	struct json_object *value;
	double d;

	*out = 0;
	if (!json_object_object_get_ex(o, field, &value) || value == NULL)
		return 0;
	if (!json_object_is_type(value, json_type_int) &&
	    !json_object_is_type(value, json_type_double))
		return wrong(r, "%s is not a number", field);
	d = json_object_get_double(value);
	if (!(d >= 0 && d <= SESSION_SECONDS_MAX))
		return wrong(r, "%s is not from 0 to %.0f seconds", field,
		    SESSION_SECONDS_MAX);
	*out = (int64_t)(d * 1e9 + 0.5);
	return 0;
}

/* ------------------------------------------------------------------ ids --- */

/* Combines the hash ids of each SESSION_BLOCK tokens; the last may be part. */
static int
read_ids(struct reader *r, const struct json_object *o,
    struct session_entry *e)
{
	size_t each = (size_t)(SESSION_BLOCK / r->block), i, k, n;
	size_t room = (size_t)((e->input + e->output) / SESSION_BLOCK) + 1;
	struct json_object *ids, *id;
	void *array = r->s->ids;
	uint64_t mixed;

	if (!json_object_object_get_ex(o, "hash_ids", &ids))
		return wrong(r, "hash_ids is missing");
	if (!json_object_is_type(ids, json_type_array))
		return wrong(r, "hash_ids is not an array");
	n = json_object_array_length(ids);
	if (n != e->input / r->block)
		return wrong(r, "%zu hash_ids for %llu tokens in blocks of "
		    "%llu", n, (unsigned long long)e->input,
		    (unsigned long long)r->block);
	if (r->s->n_ids + room > SESSION_IDS_MAX)
		return wrong(r, "more than %d blocks of %d tokens",
		    SESSION_IDS_MAX, SESSION_BLOCK);
	if (reserve_room(r, &array, &r->id_capacity, r->s->n_ids, room,
	    sizeof(uint64_t)) != 0)
		return -1;
	r->s->ids = array;
	e->first_id = r->s->n_ids;
	e->n_ids = (size_t)((e->input + SESSION_BLOCK - 1) / SESSION_BLOCK);
	r->s->n_ids += room;
	for (i = 0; i < e->n_ids; i++) {
		mixed = (i + 1) * SESSION_BLOCK > e->input ? e->input : 0;
		for (k = i * each; k < (i + 1) * each && k < n; k++) {
			id = json_object_array_get_idx(ids, k);
			if (!json_object_is_type(id, json_type_int) ||
			    json_object_get_int64(id) < 0)
				return wrong(r, "hash_ids[%zu] is not an "
				    "integer from 0 to 2^63 - 1", k);
			mixed = session_mix(mixed + session_mix((uint64_t)
			    json_object_get_int64(id)));
		}
		r->s->ids[e->first_id + i] = session_mix(mixed);
	}
	return 0;
}

/* Does `next` begin with all complete blocks of `o`? */
static bool
repeats_blocks(const struct json_object *o, const struct json_object *next)
{
	struct json_object *a, *b;
	size_t n, i;

	json_object_object_get_ex(o, "hash_ids", &a);
	json_object_object_get_ex(next, "hash_ids", &b);
	n = json_object_array_length(a);
	if (json_object_array_length(b) < n)
		return false;
	for (i = 0; i < n; i++)
		if (json_object_get_int64(json_object_array_get_idx(a, i)) !=
		    json_object_get_int64(json_object_array_get_idx(b, i)))
			return false;
	return true;
}

/* Takes the ids of the end of the prompt and of the output from `next`. */
static void
learn_output(struct session *s, struct session_entry *e,
    const struct session_entry *next)
{
	size_t whole = (size_t)(e->input / SESSION_BLOCK);

	e->known = e->output;
	e->n_ids = (size_t)((e->input + e->output + SESSION_BLOCK - 1) /
	    SESSION_BLOCK);
	if (e->n_ids > whole)
		memcpy(&s->ids[e->first_id + whole],
		    &s->ids[next->first_id + whole],
		    (e->n_ids - whole) * sizeof(*s->ids));
}

static void
learn_outputs(struct session *s, const struct session_talk *t,
    const struct json_object *requests)
{
	struct session_entry *e, *next = NULL;
	struct json_object *o, *after = NULL;
	size_t i;

	for (i = t->n; i-- > 0;) {
		e = &s->entries[t->first + i];
		if (e->talk != 0)
			continue;
		o = json_object_array_get_idx(requests, i);
		if (next != NULL && next->input >= e->input + e->output &&
		    repeats_blocks(o, after))
			learn_output(s, e, next);
		next = e;
		after = o;
	}
}

/*
 * The first request that is long enough for tools and system prompt has them;
 * others have them as far as they have the same blocks.
 */
static void
find_common(struct session *s, const struct session_talk *t)
{
	uint64_t tokens = t->tool_tokens + t->system_tokens;
	const struct session_entry *model = NULL;
	struct session_entry *e;
	size_t i;

	for (i = t->first; i < t->first + t->n && model == NULL; i++)
		if (s->entries[i].talk == 0 && s->entries[i].input >= tokens)
			model = &s->entries[i];
	for (i = t->first; model != NULL && i < t->first + t->n; i++) {
		e = &s->entries[i];
		while (e->n_common < tokens / SESSION_BLOCK &&
		    e->n_common < e->n_ids &&
		    s->ids[e->first_id + e->n_common] ==
		    s->ids[model->first_id + e->n_common])
			e->n_common++;
	}
}

/* ---------------------------------------------------------------- talks --- */

/* When the entry begins, if there is no think_time. */
static int
read_after(const struct reader *r, const struct json_object *o,
    int64_t ended_ns, int64_t *began_ns, int64_t *out)
{
	if (read_seconds(r, o, "t", began_ns) != 0)
		return -1;
	*out = *began_ns > ended_ns ? *began_ns - ended_ns : 0;
	if (!has_field(o, "think_time"))
		return 0;
	return read_seconds(r, o, "think_time", out);
}

static int
read_request(struct reader *r, const struct json_object *o,
    struct session_entry *e)
{
	if (read_count(r, o, "in", SESSION_TOKENS_MAX, &e->input) != 0 ||
	    read_count(r, o, "out", SESSION_TOKENS_MAX, &e->output) != 0)
		return -1;
	if (e->input == 0)
		return wrong(r, "in is 0");
	r->s->requests++;
	return read_ids(r, o, e);
}

static int read_talk(struct reader *r, const struct json_object *o,
    int nested, size_t *out);

static bool
is_agent(const struct json_object *o)
{
	struct json_object *type;

	return json_object_object_get_ex(o, "type", &type) &&
	    json_object_is_type(type, json_type_string) &&
	    strcmp(json_object_get_string(type), "subagent") == 0;
}

/* Entry i of a conversation. *ended_ns is of the response before it. */
static int
read_entry(struct reader *r, const struct json_object *o, size_t i,
    int nested, int64_t *ended_ns)
{
	struct session_entry e = { 0, 0, 0, 0, 0, 0, 0, 0 };
	int64_t began, took;

	if (!json_object_is_type(o, json_type_object))
		return wrong(r, "an element of requests is not an object");
	if (read_after(r, o, *ended_ns, &began, &e.after_ns) != 0)
		return -1;
	if (is_agent(o)) {
		if (read_talk(r, o, nested + 1, &e.talk) != 0)
			return -1;
	} else {
		if (read_request(r, o, &e) != 0 ||
		    read_seconds(r, o, "api_time", &took) != 0)
			return -1;
		*ended_ns = began + took;
	}
	r->s->entries[i] = e;
	return 0;
}

static int
read_talk_head(struct reader *r, const struct json_object *o, size_t n,
    struct session_talk *t)
{
	struct session *s = r->s;
	void *talks = s->talks, *entries = s->entries;

	*t = (struct session_talk){ s->n_entries, n, 0, 0 };
	if (has_field(o, "tool_tokens") && read_count(r, o, "tool_tokens",
	    SESSION_TOKENS_MAX, &t->tool_tokens) != 0)
		return -1;
	if (has_field(o, "system_tokens") && read_count(r, o, "system_tokens",
	    SESSION_TOKENS_MAX, &t->system_tokens) != 0)
		return -1;
	if (s->n_entries + n > SESSION_ENTRIES_MAX)
		return wrong(r, "more than %d requests", SESSION_ENTRIES_MAX);
	if (reserve_room(r, &talks, &r->talk_capacity, s->n_talks, 1,
	    sizeof(*s->talks)) != 0)
		return -1;
	s->talks = talks;
	if (reserve_room(r, &entries, &r->entry_capacity, s->n_entries, n,
	    sizeof(*s->entries)) != 0)
		return -1;
	s->entries = entries;
	s->n_entries += n;
	s->talks[s->n_talks++] = *t;
	return 0;
}

/* *out is the number of the conversation. */
static int
read_talk(struct reader *r, const struct json_object *o, int nested,
    size_t *out)
{
	struct json_object *requests;
	struct session_talk t;
	int64_t ended_ns = 0;
	size_t i;

	if (nested > SESSION_NESTED_MAX)
		return wrong(r, "sub-agents are nested too deeply");
	if (!json_object_object_get_ex(o, "requests", &requests))
		return wrong(r, "requests is missing");
	if (!json_object_is_type(requests, json_type_array))
		return wrong(r, "requests is not an array");
	*out = r->s->n_talks;
	if (read_talk_head(r, o, json_object_array_length(requests), &t) != 0)
		return -1;
	for (i = 0; i < t.n; i++)
		if (read_entry(r, json_object_array_get_idx(requests, i),
		    t.first + i, nested, &ended_ns) != 0)
			return -1;
	learn_outputs(r->s, &t, requests);
	find_common(r->s, &t);
	return 0;
}

/* ----------------------------------------------------------------- file --- */

static int
read_root(struct reader *r, const struct json_object *root)
{
	size_t talk;

	if (!json_object_is_type(root, json_type_object))
		return wrong(r, "not a JSON object");
	r->block = 64;
	if (has_field(root, "block_size") && read_count(r, root, "block_size",
	    SESSION_BLOCK, &r->block) != 0)
		return -1;
	if (r->block == 0 || SESSION_BLOCK % r->block != 0)
		return wrong(r, "block_size does not divide %d", SESSION_BLOCK);
	if (read_talk(r, root, 0, &talk) != 0)
		return -1;
	return r->s->requests > 0 ? 0 : wrong(r, "no requests");
}

static int
read_text(const struct reader *r, FILE *file, char **out, size_t *length)
{
	size_t capacity = 0, n;
	void *text = NULL;

	for (*length = 0;; *length += n) {
		if (*length >= SESSION_BYTES_MAX)
			return wrong(r, "longer than %d bytes",
			    SESSION_BYTES_MAX);
		if (reserve_room(r, &text, &capacity, *length, 1 << 16, 1) != 0)
			return -1;
		*out = text;
		n = fread(*out + *length, 1, 1 << 16, file);
		if (n == 0)
			return ferror(file) ? wrong(r, "cannot read: %s",
			    strerror(errno)) : 0;
	}
}

static int
parse_text(struct reader *r, const char *text, size_t length)
{
	struct json_tokener *json = json_tokener_new_ex(2 *
	    SESSION_NESTED_MAX + 8);
	struct json_object *root;
	enum json_tokener_error e;
	size_t end;
	int result;

	if (json == NULL)
		return wrong(r, "out of memory");
	json_tokener_set_flags(json, JSON_TOKENER_STRICT);
	root = json_tokener_parse_ex(json, text, (int)length);
	e = json_tokener_get_error(json);
	end = json_tokener_get_parse_end(json);
	json_tokener_free(json);
	while (end < length && text[end] != '\0' &&
	    strchr(" \t\r\n", text[end]) != NULL)
		end++;
	if (root == NULL)
		return wrong(r, "not JSON: %s", e == json_tokener_success ||
		    e == json_tokener_continue ? "no complete object" :
		    json_tokener_error_desc(e));
	result = end == length ? read_root(r, root) :
	    wrong(r, "more than one JSON value");
	json_object_put(root);
	return result;
}

struct session *
session_read(FILE *file, const char *name, char error[SESSION_ERROR_BYTES])
{
	struct reader r = { .name = name, .error = error };
	char *text = NULL;
	size_t length;
	int result;

	error[0] = '\0';
	r.s = calloc(1, sizeof(*r.s));
	if (r.s == NULL) {
		wrong(&r, "out of memory");
		return NULL;
	}
	result = read_text(&r, file, &text, &length);
	if (result == 0)
		result = parse_text(&r, text, length);
	free(text);
	if (result == 0)
		return r.s;
	session_free(r.s);
	return NULL;
}

void
session_free(struct session *s)
{
	if (s == NULL)
		return;
	free(s->talks);
	free(s->entries);
	free(s->ids);
	free(s);
}
