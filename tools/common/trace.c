/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c - see trace.h.
 *
 * One pool holds the hash ids of the current tick, followed by those of the
 * lookahead, which is the first request of the next tick:
 *
 *   held   [ t=0 | t=0 | t=0 | t=3000 ]      n_held 4, the last one is ahead
 *   pool   [ ids . ids . ids . ids    ]
 *
 * When the tick is consumed, the lookahead moves to the front, and lines are
 * read up to a later timestamp or the end. Both arrays keep their memory,
 * which grows to the largest tick of the trace and no further.
 *
 * Lines are parsed by json-c because it preserves 64-bit integers; hash ids
 * use the full range.
 */
#include "trace.h"

#include <json-c/json.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Up to here every integer is exact as a double. */
#define WHOLE_DOUBLE_MAX 9007199254740992.0

struct held {
	int64_t timestamp;
	uint64_t input_length;
	uint64_t output_length;
	uint64_t session;
	size_t first_id; /* in the pool */
	size_t n_ids;
	size_t n_seen;   /* after them */
};

struct trace {
	FILE *file;
	char *name;
	struct json_tokener *json;
	char *line;
	size_t line_length;
	size_t line_capacity;
	uint64_t line_number;
	uint64_t bytes;
	struct held *held;
	size_t n_held;
	size_t held_capacity;
	size_t n_tick; /* of held: in the current tick */
	size_t n_out;  /* of them: returned */
	uint64_t *pool;
	size_t n_pool;
	size_t pool_capacity;
	uint64_t number;
	int64_t first; /* timestamp */
	bool at_end;
	bool failed;
	char error[512];
};

static int __attribute__((format(printf, 2, 3)))
fail(struct trace *t, const char *format, ...)
{
	va_list arguments;
	int n;

	t->failed = true;
	n = snprintf(t->error, sizeof(t->error), "%.200s:%" PRIu64 ": ",
	    t->name, t->line_number);
	if (n < 0)
		return -1;
	va_start(arguments, format);
	vsnprintf(t->error + n, sizeof(t->error) - (size_t)n, format,
	    arguments);
	va_end(arguments);
	return -1;
}

struct trace *
trace_new(FILE *file, const char *name)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->file = file;
	t->name = strdup(name);
	t->json = json_tokener_new();
	if (t->name == NULL || t->json == NULL) {
		trace_free(t);
		return NULL;
	}
	json_tokener_set_flags(t->json, JSON_TOKENER_STRICT);
	return t;
}

void
trace_free(struct trace *t)
{
	if (t == NULL)
		return;
	if (t->json != NULL)
		json_tokener_free(t->json);
	free(t->name);
	free(t->line);
	free(t->held);
	free(t->pool);
	free(t);
}

const char *
trace_error(const struct trace *t)
{
	return t->error;
}

uint64_t
trace_bytes(const struct trace *t)
{
	return t->bytes;
}

/* Makes room for one more by doubling, up to `most`. */
static bool
trace_grow(void **array, size_t *capacity, size_t n, size_t most,
    size_t element)
{
	size_t want = *capacity == 0 ? 256 : *capacity * 2;
	void *p;

	if (n < *capacity)
		return true;
	if (want > most)
		want = most;
	p = realloc(*array, want * element);
	if (p == NULL)
		return false;
	*array = p;
	*capacity = want;
	return true;
}

/* -------------------------------------------------------------- lines --- */

/* 1: t->line is the next nonblank line; 0: end; -1: failed. */
static int
trace_read_line(struct trace *t)
{
	void *line = t->line;
	bool blank = true;
	int c;

	t->line_length = 0;
	t->line_number++;
	while ((c = getc_unlocked(t->file)) != EOF) {
		t->bytes++;
		if (c == '\n' && !blank)
			return 1;
		if (c == '\n') {
			t->line_length = 0;
			t->line_number++;
			continue;
		}
		if (t->line_length == TRACE_LINE_MAX)
			return fail(t, "the line is longer than %d bytes",
			    TRACE_LINE_MAX);
		if (!trace_grow(&line, &t->line_capacity, t->line_length,
		    TRACE_LINE_MAX, 1))
			return fail(t, "out of memory");
		t->line = line;
		t->line[t->line_length++] = (char)c;
		blank = blank && (c == ' ' || c == '\t' || c == '\r');
	}
	if (ferror(t->file))
		return fail(t, "cannot read: %s", strerror(errno));
	return blank ? 0 : 1;
}

/* The line as a JSON object, or NULL: failed. */
static struct json_object *
parse_line(struct trace *t)
{
	struct json_object *line;
	size_t end;

	json_tokener_reset(t->json);
	line = json_tokener_parse_ex(t->json, t->line, (int)t->line_length);
	if (line == NULL) {
		enum json_tokener_error e = json_tokener_get_error(t->json);

		/* Also null and bare numbers, which could continue. */
		fail(t, "not JSON: %s", e == json_tokener_success ||
		    e == json_tokener_continue ? "no complete object" :
		    json_tokener_error_desc(e));
		return NULL;
	}
	end = json_tokener_get_parse_end(t->json);
	while (end < t->line_length && strchr(" \t\r", t->line[end]) != NULL &&
	    t->line[end] != '\0')
		end++;
	if (end == t->line_length &&
	    json_object_is_type(line, json_type_object))
		return line;
	fail(t, end == t->line_length ? "not a JSON object" :
	    "more than one JSON value in a line");
	json_object_put(line);
	return NULL;
}

/* ------------------------------------------------------------- fields --- */

/*
 * Integers, also when written as 27482.0. UINT64_MAX is rejected because
 * json-c returns it for everything larger.
 */
static bool
trace_number(const struct json_object *value, uint64_t *out)
{
	double d;

	if (json_object_is_type(value, json_type_int)) {
		if (json_object_get_int64(value) < 0)
			return false;
		*out = json_object_get_uint64(value);
		return *out != UINT64_MAX;
	}
	if (!json_object_is_type(value, json_type_double))
		return false;
	d = json_object_get_double(value);
	if (!(d >= 0 && d <= WHOLE_DOUBLE_MAX) || d > (double)(uint64_t)d)
		return false;
	*out = (uint64_t)d;
	return true;
}

static int
read_number(struct trace *t, const struct json_object *line, const char *field,
    uint64_t *out)
{
	struct json_object *value;

	if (!json_object_object_get_ex(line, field, &value))
		return fail(t, "%s is missing", field);
	if (!trace_number(value, out) || *out > INT64_MAX)
		return fail(t, "%s is not an integer from 0 to 2^63 - 1",
		    field);
	return 0;
}

static int
read_timestamp(struct trace *t, const struct json_object *line, int64_t *out)
{
	uint64_t value = 0;

	if (read_number(t, line, "timestamp", &value) != 0)
		return -1;
	*out = (int64_t)value;
	if (t->number == 0 && t->n_held == 0)
		t->first = *out;
	else if (*out < t->held[t->n_held - 1].timestamp)
		return fail(t, "timestamp %" PRId64 " precedes the last one: "
		    "sort the trace by timestamp", *out);
	if (*out - t->first > TRACE_SPAN_MAX_MS)
		return fail(t, "timestamp is three years after the first");
	return 0;
}

/* Appends them to the pool, after the *n that are there. */
static int
read_ids(struct trace *t, const struct json_object *line, const char *name,
    size_t *n)
{
	size_t first = t->n_pool + *n, count, i;
	struct json_object *ids;
	void *pool = t->pool;

	if (!json_object_object_get_ex(line, name, &ids))
		return fail(t, "%s is missing", name);
	if (!json_object_is_type(ids, json_type_array))
		return fail(t, "%s is not an array", name);
	count = json_object_array_length(ids);
	if (count > TRACE_IDS_MAX)
		return fail(t, "more than %d %s", TRACE_IDS_MAX, name);
	if (count > TRACE_TICK_IDS_MAX - first)
		return fail(t, "more than %d %s at one timestamp",
		    TRACE_TICK_IDS_MAX, name);
	for (i = 0; i < count; i++) {
		if (!trace_grow(&pool, &t->pool_capacity, first + i,
		    TRACE_TICK_IDS_MAX, sizeof(*t->pool)))
			return fail(t, "out of memory");
		t->pool = pool;
		if (!trace_number(json_object_array_get_idx(ids, i),
		    &t->pool[first + i]))
			return fail(t, "%s[%zu] is not an integer from "
			    "0 to 2^64 - 2", name, i);
	}
	*n += count;
	return 0;
}

static int
read_fields(struct trace *t, const struct json_object *line, struct held *out)
{
	size_t all;

	if (read_timestamp(t, line, &out->timestamp) != 0 ||
	    read_number(t, line, "input_length", &out->input_length) != 0 ||
	    read_number(t, line, "output_length", &out->output_length) != 0)
		return -1;
	if (!json_object_object_get_ex(line, "session", NULL))
		out->session = 0;
	else if (read_number(t, line, "session", &out->session) != 0)
		return -1;
	out->first_id = t->n_pool;
	out->n_ids = 0;
	if (read_ids(t, line, "hash_ids", &out->n_ids) != 0)
		return -1;
	all = out->n_ids;
	if (json_object_object_get_ex(line, "seen_ids", NULL) &&
	    read_ids(t, line, "seen_ids", &all) != 0)
		return -1;
	out->n_seen = all - out->n_ids;
	return 0;
}

/* -------------------------------------------------------------- ticks --- */

/* Appends one request to those held. 1: read; 0: end; -1: failed. */
static int
read_request(struct trace *t)
{
	void *held = t->held;
	struct json_object *line;
	struct held r;
	int result = trace_read_line(t);

	if (result != 1)
		return result;
	if (t->n_held == TRACE_TICK_REQUESTS_MAX)
		return fail(t, "more than %d requests at one timestamp",
		    TRACE_TICK_REQUESTS_MAX - 1);
	if (!trace_grow(&held, &t->held_capacity, t->n_held,
	    TRACE_TICK_REQUESTS_MAX, sizeof(*t->held)))
		return fail(t, "out of memory");
	t->held = held;
	line = parse_line(t);
	if (line == NULL)
		return -1;
	result = read_fields(t, line, &r);
	json_object_put(line);
	if (result != 0)
		return -1;
	t->held[t->n_held++] = r;
	t->n_pool += r.n_ids + r.n_seen;
	return 1;
}

/* Moves the lookahead to the front. */
static void
keep_ahead(struct trace *t)
{
	if (t->n_tick == t->n_held) {
		t->n_held = 0;
		t->n_pool = 0;
		return;
	}
	t->held[0] = t->held[t->n_tick];
	t->n_held = 1;
	t->n_pool = t->held[0].n_ids + t->held[0].n_seen;
	if (t->n_pool > 0)
		memmove(t->pool, t->pool + t->held[0].first_id,
		    t->n_pool * sizeof(*t->pool));
	t->held[0].first_id = 0;
}

/* Reads the next tick. 1: read; 0: end; -1: failed. */
static int
read_tick(struct trace *t)
{
	int result = 1;

	keep_ahead(t);
	t->n_tick = 0;
	t->n_out = 0;
	while (!t->at_end && (t->n_held < 2 ||
	    t->held[t->n_held - 1].timestamp == t->held[0].timestamp)) {
		result = read_request(t);
		if (result == -1)
			return -1;
		t->at_end = result == 0;
	}
	t->n_tick = t->n_held;
	if (t->n_held > 1 &&
	    t->held[t->n_held - 1].timestamp != t->held[0].timestamp)
		t->n_tick--;
	return t->n_tick > 0;
}

static int64_t
spread_time(const struct trace *t)
{
	int64_t tick = t->held[0].timestamp - t->first;
	int64_t length = TRACE_LAST_TICK_MS;

	if (t->n_tick < t->n_held)
		length = t->held[t->n_tick].timestamp - t->held[0].timestamp;
	return tick + length * (int64_t)t->n_out / (int64_t)t->n_tick;
}

int
trace_next(struct trace *t, struct trace_request *out)
{
	const struct held *h;
	int result;

	if (t->failed)
		return -1;
	if (t->n_out == t->n_tick) {
		result = read_tick(t);
		if (result != 1)
			return result;
	}
	h = &t->held[t->n_out];
	out->number = t->number++;
	out->timestamp_ms = h->timestamp;
	out->arrival_ms = spread_time(t);
	out->input_length = h->input_length;
	out->output_length = h->output_length;
	out->known_output = 0;
	out->tokens = h->n_ids * TRACE_BLOCK;
	if (h->input_length < out->tokens)
		out->tokens = (size_t)h->input_length;
	out->n_ids = h->n_ids;
	out->ids = h->n_ids == 0 ? NULL : t->pool + h->first_id;
	out->session = h->session;
	out->n_seen = h->n_seen;
	out->seen = h->n_seen == 0 ? NULL : t->pool + h->first_id + h->n_ids;
	t->n_out++;
	return 1;
}

struct trace_request
trace_seen(const struct trace_request *r)
{
	struct trace_request seen = *r;

	if (r->n_seen == 0)
		return seen;
	seen.ids = r->seen;
	seen.n_ids = r->n_seen;
	seen.tokens = r->n_seen * TRACE_BLOCK;
	return seen;
}
