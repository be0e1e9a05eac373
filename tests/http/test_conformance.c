/* SPDX-License-Identifier: BSD-2-Clause */
/* test_conformance.c - conformance.jsonl by the library itself. */
#include "test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "kvroute_http.h"

#define FILE_NAME "tests/http/conformance.jsonl"

enum { ROWS_MIN = 40, BYTES_MAX = 1 << 17, CALLS_MAX = 8, NAME_BYTES = 32 };

struct run {
	struct kvh *pool;
	struct kvh_call *call;
	const char *name; /* of the line */
	char picked[CALLS_MAX][NAME_BYTES];
	unsigned n;
};

/* ----------------------------------------------------------------- json --- */

static const char *
text_of(json_object *o, const char *member, const char *otherwise)
{
	json_object *value;

	return json_object_object_get_ex(o, member, &value) ?
	    json_object_get_string(value) : otherwise;
}

static int64_t
number_of(json_object *o, const char *member, int64_t otherwise)
{
	json_object *value;

	return json_object_object_get_ex(o, member, &value) ?
	    json_object_get_int64(value) : otherwise;
}

static json_object *
list_item(json_object *o, const char *member, size_t i)
{
	json_object *list;

	return json_object_object_get_ex(o, member, &list) &&
	    i < json_object_array_length(list) ?
	    json_object_array_get_idx(list, i) : NULL;
}

/* The value of a name that begins with KVH_ in the header. */
static int
value_of(const char *word)
{
	static const struct {
		const char *word;
		int value;
	} words[] = {
		{ "session", KVH_TOLD_SESSION }, { "tenant", KVH_TOLD_TENANT },
		{ "salt", KVH_TOLD_SALT }, { "bypass", KVH_TOLD_BYPASS },
		{ "refused", KVH_REFUSED }, { "broke", KVH_BROKE },
		{ "status", KVH_STATUS }, { "whole", KVH_WHOLE },
		{ "engine_broke", KVH_ENGINE_BROKE },
		{ "client_left", KVH_CLIENT_LEFT },
		{ "ENOSERVER", KVH_ENOSERVER }
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].word, word) == 0)
			return words[i].value;
	ck_abort_msg("%s is no word", word);
}

/* ---------------------------------------------------------------- facts --- */

static int64_t
fact_of(const struct run *r, uint32_t which)
{
	int64_t value;

	ck_assert_int_eq(kvh_fact(r->call, which, &value), 0);
	return value;
}

static void
word_is(const struct run *r, uint32_t which, const char *want)
{
	const char *text;
	size_t n;

	ck_assert_int_eq(kvh_word(r->call, which, &text, &n), 0);
	ck_assert_msg(n == strlen(want) && memcmp(text, want, n) == 0,
	    "%s: '%.*s' instead of '%s'", r->name, (int)n, text, want);
}

static void
number_is(const struct run *r, const char *what, int64_t got, int64_t want)
{
	ck_assert_msg(got == want, "%s: %s %lld instead of %lld", r->name, what,
	    (long long)got, (long long)want);
}

static void
bytes_are(const struct run *r, const char *what, const char *got, size_t n,
    const char *want)
{
	ck_assert_msg(n == strlen(want) && memcmp(got, want, n) == 0,
	    "%s: %s '%.*s' instead of '%s'", r->name, what, (int)n, got, want);
}

/* -------------------------------------------------------------- request --- */

static void
call_begin(struct run *r, json_object *want)
{
	const char *method = text_of(want, "method", "POST");
	const char *path = text_of(want, "path", ""), *name, *value;
	const char *body = text_of(want, "body", "");
	json_object *tell, *pair;
	size_t i;

	ck_assert_int_eq(kvh_begin(r->pool, method, strlen(method), path,
	    strlen(path), KVH_NOW, &r->call), 0);
	if (json_object_object_get_ex(want, "tell", &tell)) {
		json_object_object_foreach(tell, key, fact) {
			value = json_object_get_string(fact);
			ck_assert_int_eq(kvh_tell(r->call,
			    (uint32_t)value_of(key), value, strlen(value)), 0);
		}
	}
	for (i = 0; (pair = list_item(want, "headers", i)) != NULL; i++) {
		name = json_object_get_string(json_object_array_get_idx(pair,
		    0));
		value = json_object_get_string(json_object_array_get_idx(pair,
		    1));
		ck_assert_int_eq(kvh_header(r->call, name, strlen(name), value,
		    strlen(value)), 0);
	}
	ck_assert_int_eq(kvh_body(r->call, body, strlen(body)), 0);
	ck_assert_int_eq(kvh_body_end(r->call, number_of(want, "cut", 0) == 0),
	    0);
}

/* False: there is no server, as the line expects. */
static bool
call_pick(struct run *r, json_object *want, uint32_t *targets)
{
	const char *error = text_of(want, "error", NULL), *name;
	json_object *failure;
	size_t i, n;
	int e = kvh_pick(r->call, KVH_NOW, targets);

	for (i = 0; (failure = list_item(want, "fails", i)) != NULL; i++) {
		number_is(r, "pick", e, 0);
		ck_assert_int_eq(kvh_failed(r->call, (uint32_t)value_of(
		    json_object_get_string(failure)), 0, KVH_NOW), 0);
		e = kvh_pick(r->call, KVH_NOW, targets);
	}
	number_is(r, "pick", e, error == NULL ? 0 : value_of(error));
	if (e != 0)
		return false;
	*targets += (uint32_t)i;
	number_is(r, "tries", fact_of(r, KVH_TRIES), (int64_t)i + 1);
	ck_assert_uint_lt(r->n, CALLS_MAX);
	ck_assert_int_eq(kvh_target(r->call, 0, &name, &n, NULL), 0);
	ck_assert_uint_lt(n, NAME_BYTES);
	memcpy(r->picked[r->n], name, n);
	r->picked[r->n++][n] = '\0';
	return true;
}

static void
choice_look(const struct run *r, json_object *want, uint32_t targets)
{
	const char *name = r->picked[r->n - 1], *target;
	json_object *expect;
	int64_t n;

	ck_assert(json_object_object_get_ex(want, "expect", &expect));
	word_is(r, KVH_ENDPOINT_WORD, text_of(expect, "endpoint", ""));
	word_is(r, KVH_REASON_WORD, text_of(expect, "reason", ""));
	word_is(r, KVH_MODEL, text_of(expect, "model", ""));
	number_is(r, "stream", fact_of(r, KVH_STREAM), number_of(expect,
	    "stream", -1));
	number_is(r, "targets", targets, number_of(expect, "targets", -1));
	n = fact_of(r, KVH_OVERLAP_TOKENS) > 0;
	number_is(r, "overlap", n, number_of(expect, "overlap", n));
	target = text_of(expect, "target", name);
	ck_assert_msg(strcmp(name, target) == 0, "%s: %s instead of %s",
	    r->name, name, target);
	n = number_of(expect, "same", r->n - 1);
	ck_assert_msg(strcmp(name, r->picked[n]) == 0, "%s: %s instead of %s",
	    r->name, name, r->picked[n]);
}

/* ---------------------------------------------------------------- edits --- */

static void
header_look(const struct run *r, json_object *set, const char *text, size_t n)
{
	const char *colon = memchr(text, ':', n), *want;
	char name[64];

	ck_assert_ptr_nonnull(colon);
	ck_assert_uint_lt((size_t)(colon - text), sizeof(name));
	(void)snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
	want = text_of(set, name, "no such header");
	if (strcmp(want, "?") != 0)
		bytes_are(r, name, colon + 2, (size_t)(text + n - colon) - 2,
		    want);
}

static void
edits_look(const struct run *r, json_object *want)
{
	const char *body = text_of(want, "body", ""), *text;
	const char *salt = text_of(want, "salt", NULL);
	char *sent = malloc(BYTES_MAX);
	json_object *set, *read;
	size_t n, length = 0, from = 0, headers = 0;
	uint64_t cut;
	int64_t at;
	uint32_t i;

	ck_assert_ptr_nonnull(sent);
	ck_assert(json_object_object_get_ex(want, "set", &set));
	for (i = 0; kvh_edit(r->call, i, &at, &cut, &text, &n) == 0; i++) {
		if (at == KVH_HEADER) {
			header_look(r, set, text, n);
			headers++;
			continue;
		}
		memcpy(sent + length, body + from, (size_t)at - from);
		length += (size_t)at - from;
		memcpy(sent + length, text, n);
		length += n;
		from = (size_t)at + cut;
	}
	n = strlen(body) - from;
	memcpy(sent + length, body + from, n + 1);
	if (salt != NULL) {
		read = json_tokener_parse(sent);
		ck_assert_str_eq(text_of(read, "cache_salt", ""), salt);
		json_object_put(read);
	} else {
		bytes_are(r, "sent", sent, length + n, text_of(want, "sent",
		    body));
	}
	number_is(r, "headers", (int64_t)headers,
	    json_object_object_length(set));
	free(sent);
}

/* ------------------------------------------------------------- response --- */

/* A piece of the response, which may be in hex. SIZE_MAX: the end. */
static size_t
piece_read(json_object *response, size_t i, char *piece)
{
	json_object *text = list_item(response, "pieces", i);
	const char *hex;
	unsigned byte;
	size_t n;

	if (text != NULL) {
		n = (size_t)json_object_get_string_len(text);
		ck_assert_uint_lt(n, BYTES_MAX);
		memcpy(piece, json_object_get_string(text), n);
		return n;
	}
	text = list_item(response, "hex", i);
	hex = text == NULL ? "" : json_object_get_string(text);
	for (n = 0; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		piece[n] = (char)byte;
	return text == NULL ? SIZE_MAX : n;
}

static void
report_look(const struct run *r, json_object *want)
{
	json_object *report;
	int64_t n = fact_of(r, KVH_STARTED);

	number_is(r, "started", n, number_of(want, "started", n));
	(void)json_object_object_get_ex(want, "report", &report);
	if (report == NULL) {
		number_is(r, "report", fact_of(r, KVH_REPORT_KIND), 0);
		return;
	}
	number_is(r, "prompt", fact_of(r, KVH_REPORT_PROMPT),
	    json_object_get_int64(list_item(want, "report", 0)));
	number_is(r, "cached", fact_of(r, KVH_REPORT_CACHED),
	    json_object_get_int64(list_item(want, "report", 1)));
	number_is(r, "completion", fact_of(r, KVH_REPORT_COMPLETION),
	    json_object_get_int64(list_item(want, "report", 2)));
}

static void
response_pass(const struct run *r, json_object *want)
{
	const size_t room = BYTES_MAX + KVH_WRITE_MORE;
	char *piece = malloc(BYTES_MAX), *out = malloc(2 * room);
	const char *type, *coding;
	json_object *response;
	size_t i, n, written, length = 0;
	uint32_t rewrites;

	ck_assert(piece != NULL && out != NULL);
	ck_assert(json_object_object_get_ex(want, "response", &response));
	type = text_of(response, "type", "");
	coding = text_of(response, "coding", "");
	ck_assert_int_eq(kvh_response(r->call, (uint32_t)number_of(response,
	    "status", 0), type, strlen(type), coding, strlen(coding), "", 0,
	    KVH_NOW, &rewrites), 0);
	number_is(r, "rewrites", rewrites, number_of(want, "rewrites", 0));
	for (i = 0; (n = piece_read(response, i, piece)) != SIZE_MAX; i++) {
		written = 0;
		ck_assert_int_eq(kvh_response_data(r->call, piece, n, KVH_NOW,
		    rewrites ? out + length : NULL, rewrites ? room : 0,
		    rewrites ? &written : NULL), 0);
		length += written;
		ck_assert_uint_lt(length, room);
	}
	written = 0;
	ck_assert_int_eq(kvh_end(r->call, (uint32_t)value_of(text_of(want,
	    "end", "whole")), KVH_NOW, rewrites ? out + length : NULL,
	    rewrites ? room : 0, rewrites ? &written : NULL), 0);
	if (rewrites)
		bytes_are(r, "passed", out, length + written, text_of(want,
		    "passed", ""));
	report_look(r, want);
	free(piece);
	free(out);
}

/* ---------------------------------------------------------------- lines --- */

static void
servers_put(struct run *r, json_object *row)
{
	json_object *servers;
	const char *facts;

	if (!json_object_object_get_ex(row, "servers", &servers)) {
		ck_assert_int_eq(kvh_server_put(r->pool, "a:1", 3, "", 0,
		    NULL), 0);
		ck_assert_int_eq(kvh_server_put(r->pool, "b:1", 3, "", 0,
		    NULL), 0);
		return;
	}
	json_object_object_foreach(servers, name, value) {
		facts = json_object_get_string(value);
		ck_assert_int_eq(kvh_server_put(r->pool, name, strlen(name),
		    facts, strlen(facts), NULL), 0);
	}
}

static void
row_run(json_object *row)
{
	const char *options = text_of(row, "options", "");
	struct run r = { .name = text_of(row, "name", "") };
	json_object *want;
	uint32_t targets;
	size_t i;

	ck_assert_int_eq(kvh_open("", 0, options, strlen(options), NULL,
	    &r.pool), 0);
	servers_put(&r, row);
	for (i = 0; (want = list_item(row, "calls", i)) != NULL; i++) {
		call_begin(&r, want);
		if (call_pick(&r, want, &targets)) {
			choice_look(&r, want, targets);
			edits_look(&r, want);
			response_pass(&r, want);
		}
		kvh_call_free(r.call);
	}
	kvh_free(r.pool);
}

START_TEST(each_line)
{
	FILE *file = fopen(FILE_NAME, "re");
	char *line = NULL;
	json_object *row;
	size_t size = 0;
	unsigned rows = 0;

	ck_assert_ptr_nonnull(file);
	while (getline(&line, &size, file) > 0) {
		row = json_tokener_parse(line);
		ck_assert_ptr_nonnull(row);
		row_run(row);
		json_object_put(row);
		rows++;
	}
	ck_assert_uint_ge(rows, ROWS_MIN);
	free(line);
	(void)fclose(file);
}
END_TEST

Suite *suite_conformance(void);

Suite *
suite_conformance(void)
{
	Suite *s = suite_create("conformance");
	TCase *t = tcase_create("conformance");

	tcase_add_test(t, each_line);
	suite_add_tcase(s, t);
	return s;
}
