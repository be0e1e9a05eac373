/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-probe - prints the capacities that engines publish.
 */
#include "args_table.h"
#include "engine_ask.h"

#include <err.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 10000, LINE_MAX_BYTES = ENGINE_URL_MAX + 160 };
enum format { FORMAT_TEXT, FORMAT_JSON };

static const char usage_text[] =
"usage: kvroute-probe [--format text|json] [--rank N] [--timeout SECONDS]\n"
"           [--header LINE ...] URL ...\n"
"       kvroute-probe --help | --version\n";

struct options {
	enum format format;
	struct engine_rules rules;
};

/* ------------------------------------------------------------- options --- */

static void
add_header(void *options, const struct args_row *row, const char *line)
{
	struct options *o = options;
	struct curl_slist *more = curl_slist_append(o->rules.headers, line);

	(void)row;
	if (more == NULL)
		errx(ARGS_FAILED, "no memory");
	o->rules.headers = more;
}

static void
take_timeout(void *options, const struct args_row *row, const char *text)
{
	int64_t ns = args_ttl(row->name, text);

	if (ns < 1000000 || ns > INT64_C(3600) * 1000000000)
		errx(ARGS_USAGE, "--timeout %s: not from 0.001 to 3600", text);
	((struct options *)options)->rules.timeout_ms = (long)(ns / 1000000);
}

static const char *const formats[] = { "text", "json" };

static const struct args_row option_rows[] = {
	{ "format", "WHICH", "text or json (text)", ARGS_WORD,
	    .at = offsetof(struct options, format), .max = 2,
	    .words = formats },
	{ "rank", "N", "of a data-parallel engine (0)", ARGS_UINT32,
	    .at = offsetof(struct options, rules.rank), .max = 65535 },
	{ "timeout", "SECONDS", "for each request (10)", ARGS_CALL,
	    .take = take_timeout },
	{ "header", "LINE", "to be sent, such as an authorization", ARGS_CALL,
	    .take = add_header }
};

static const struct args_table table = {
	"kvroute-probe", usage_text,
	"\nAsks inference engines for the capacity of their KV caches.\n\n",
	21, option_rows, sizeof(option_rows) / sizeof(option_rows[0])
};

/* -------------------------------------------------------------- output --- */

/* The line for nginx; empty: the capacity is not known. */
static void
server_line(const struct engine_facts *f, char *out)
{
	const struct capacity *c = &f->capacity;
	int n;

	out[0] = '\0';
	if (capacity_whole(c) == 0)
		return;
	n = snprintf(out, LINE_MAX_BYTES, "kvroute_server %s capacity=%"
	    PRIu64, f->address, capacity_whole(c));
	if (c->ranks > 1)
		n += snprintf(out + n, LINE_MAX_BYTES - (size_t)n,
		    " ranks=%" PRIu32, c->ranks);
	if (c->block_tokens != 0)
		n += snprintf(out + n, LINE_MAX_BYTES - (size_t)n,
		    " block_tokens=%" PRIu32, c->block_tokens);
	snprintf(out + n, LINE_MAX_BYTES - (size_t)n, "%s;",
	    c->kind == CAPACITY_SGLANG ? " eviction=leaf" : "");
}

static void
print_number(const char *name, uint64_t n, const char *unit)
{
	if (n == 0)
		printf("  %-10s unknown\n", name);
	else
		printf("  %-10s %" PRIu64 "%s\n", name, n, unit);
}

static void
print_text(const struct engine_facts *f)
{
	const struct capacity *c = &f->capacity;
	char line[LINE_MAX_BYTES];

	if (f->error[0] != '\0') {
		fflush(stdout);
		warnx("%s: %s", f->url, f->error);
	}
	if (c->kind == CAPACITY_OTHER)
		return;
	server_line(f, line);
	printf("%s\n  %-10s %s\n  %-10s %s\n", f->url, "engine",
	    capacity_kind_name(c->kind), "model",
	    c->model[0] == '\0' ? "unknown" : c->model);
	print_number("capacity", c->tokens, " tokens");
	if (c->offload_tokens != 0)
		print_number("offload", c->offload_tokens, " tokens");
	else if (c->offload_bytes != 0)
		print_number("offload", c->offload_bytes,
		    " bytes, of unknown tokens");
	if (c->ranks > 1)
		print_number("ranks", c->ranks, "");
	print_number("block", c->block_tokens, " tokens");
	print_number("sequences", c->sequences, "");
	if (c->window != 0)
		print_number("window", c->window, " tokens");
	if (c->window_tokens != 0)
		print_number("windows", c->window_tokens, " tokens of memory");
	if (line[0] != '\0')
		printf("  %s\n", line);
}

/* NULL stands for null, in JSON and for json-c. */
static struct json_object *
text_or_null(const char *text)
{
	return text[0] == '\0' ? NULL : json_object_new_string(text);
}

static struct json_object *
number_or_null(uint64_t n)
{
	return n == 0 ? NULL : json_object_new_int64((int64_t)n);
}

static void
add_json(struct json_object *list, const struct engine_facts *f)
{
	const struct capacity *c = &f->capacity;
	struct json_object *o = json_object_new_object();
	char line[LINE_MAX_BYTES];

	if (o == NULL)
		errx(ARGS_FAILED, "no memory");
	server_line(f, line);
	json_object_object_add(o, "url", json_object_new_string(f->url));
	json_object_object_add(o, "engine", c->kind == CAPACITY_OTHER ? NULL :
	    json_object_new_string(capacity_kind_name(c->kind)));
	json_object_object_add(o, "model", text_or_null(c->model));
	json_object_object_add(o, "capacity", number_or_null(c->tokens));
	json_object_object_add(o, "offload_tokens",
	    number_or_null(c->offload_tokens));
	json_object_object_add(o, "offload_bytes",
	    number_or_null(c->offload_bytes));
	json_object_object_add(o, "ranks", number_or_null(c->ranks));
	json_object_object_add(o, "block_tokens",
	    number_or_null(c->block_tokens));
	json_object_object_add(o, "sequences", number_or_null(c->sequences));
	json_object_object_add(o, "window", number_or_null(c->window));
	json_object_object_add(o, "window_capacity",
	    number_or_null(c->window_tokens));
	json_object_object_add(o, "kvroute_server", text_or_null(line));
	json_object_object_add(o, "error", text_or_null(f->error));
	json_object_array_add(list, o);
}

/* ---------------------------------------------------------------- all --- */

/* Are all capacities known? */
static bool
probe_all(CURL *curl, const struct options *o, char **urls)
{
	struct json_object *list = json_object_new_array();
	struct engine_facts facts;
	bool known = true;

	if (list == NULL)
		errx(ARGS_FAILED, "no memory");
	for (; *urls != NULL; urls++) {
		if (!engine_ask(curl, &o->rules, *urls, &facts))
			errx(ARGS_FAILED, "no memory");
		known = known && capacity_whole(&facts.capacity) != 0;
		if (o->format == FORMAT_JSON)
			add_json(list, &facts);
		else
			print_text(&facts);
	}
	if (o->format == FORMAT_JSON)
		puts(json_object_to_json_string_ext(list,
		    JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
		    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(list);
	return known;
}

int
main(int argc, char **argv)
{
	struct options o = { .rules.timeout_ms = TIMEOUT_MS };
	CURL *curl;
	bool known;
	int next = args_parse(&table, &o, argc, argv);

	if (next == argc)
		args_usage(&table);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
	    (curl = curl_easy_init()) == NULL)
		errx(ARGS_FAILED, "no memory");
	known = probe_all(curl, &o, argv + next);
	curl_easy_cleanup(curl);
	curl_slist_free_all(o.rules.headers);
	curl_global_cleanup();
	if (fflush(stdout) != 0)
		err(ARGS_FAILED, "standard output");
	return known ? 0 : ARGS_FAILED;
}
