/* SPDX-License-Identifier: BSD-2-Clause */
/* json_writer.c - see json_writer.h. */
#include "json_writer.h"

#include <string.h>

enum { ALIGN = 16, MILLION = 1000000 };

/* -------------------------------------------------------------- yajl --- */

static void *
arena_alloc(void *ctx, size_t size)
{
	struct json *j = ctx;
	unsigned char *at = j->arena + j->used;

	size = (size + ALIGN - 1) / ALIGN * ALIGN;
	if (size > JSON_ARENA - j->used)
		return NULL;
	j->used += size;
	return at;
}

/* Never called: nothing is ever put into yajl_gen's own buffer. */
static void *
arena_realloc(void *ctx, void *memory, size_t size)
{
	(void)memory;
	return arena_alloc(ctx, size);
}

static void
arena_free(void *ctx, void *memory)
{
	(void)ctx;
	(void)memory;
}

static void
print_text(void *ctx, const char *text, size_t n)
{
	writer_put(ctx, text, n);
}

void
json_begin(struct json *j, struct writer *to)
{
	yajl_alloc_funcs funcs = { arena_alloc, arena_realloc, arena_free, j };

	j->to = to;
	j->used = 0;
	j->gen = yajl_gen_alloc(&funcs);
	if (j->gen == NULL) {
		to->failed = true;
		return;
	}
	yajl_gen_config(j->gen, yajl_gen_print_callback, print_text,
	    (void *)to);
	yajl_gen_config(j->gen, yajl_gen_validate_utf8, 1);
}

/* Only a complete text is followed by another value without an error. */
void
json_end(struct json *j)
{
	if (!j->to->failed &&
	    yajl_gen_null(j->gen) != yajl_gen_generation_complete)
		j->to->failed = true;
	writer_put(j->to, "\n", 1);
}

/* ------------------------------------------------------------- values --- */

static void
status_check(struct json *j, yajl_gen_status status)
{
	if (status != yajl_gen_status_ok)
		j->to->failed = true;
}

static bool
member_begun(struct json *j, const char *key)
{
	if (!j->to->failed && key != NULL)
		status_check(j, yajl_gen_string(j->gen,
		    (const unsigned char *)key, strlen(key)));
	return !j->to->failed;
}

void
json_map(struct json *j, const char *key)
{
	if (member_begun(j, key))
		status_check(j, yajl_gen_map_open(j->gen));
}

void
json_map_end(struct json *j)
{
	if (member_begun(j, NULL))
		status_check(j, yajl_gen_map_close(j->gen));
}

void
json_list(struct json *j, const char *key)
{
	if (member_begun(j, key))
		status_check(j, yajl_gen_array_open(j->gen));
}

void
json_list_end(struct json *j)
{
	if (member_begun(j, NULL))
		status_check(j, yajl_gen_array_close(j->gen));
}

void
json_null(struct json *j, const char *key)
{
	if (member_begun(j, key))
		status_check(j, yajl_gen_null(j->gen));
}

void
json_bool(struct json *j, const char *key, bool value)
{
	if (member_begun(j, key))
		status_check(j, yajl_gen_bool(j->gen, value));
}

static void
number_put(struct json *j, const char *key, const char *text, const char *end)
{
	if (member_begun(j, key))
		status_check(j, yajl_gen_number(j->gen, text,
		    (size_t)(end - text)));
}

void
json_whole(struct json *j, const char *key, uint64_t value)
{
	char digits[WRITER_DIGITS];

	number_put(j, key, digits, digits_write(digits, value));
}

/* Not printf: a locale may replace its point. */
void
json_real(struct json *j, const char *key, double value)
{
	char text[1 + 2 * WRITER_DIGITS], *end = text;
	uint64_t whole, part;

	if (!(value > -1e18 && value < 1e18)) {
		json_null(j, key);
		return;
	}
	if (value < 0) {
		*end++ = '-';
		value = -value;
	}
	whole = (uint64_t)value;
	part = (uint64_t)((value - (double)whole) * MILLION + 0.5);
	if (part == MILLION) {
		whole++;
		part = 0;
	}
	end = digits_write(end, whole);
	/* The 1 ahead keeps the zeros; the point takes its place. */
	(void)digits_write(end, MILLION + part);
	*end = '.';
	number_put(j, key, text, end + 7);
}

void
json_text(struct json *j, const char *key, const char *text)
{
	json_bytes(j, key, text, strlen(text));
}

static void
bytes_as_ascii(struct json *j, const unsigned char *bytes, size_t n)
{
	unsigned char *copy = writer_alloc(j->to, n);
	size_t i;

	if (copy == NULL)
		return;
	for (i = 0; i < n; i++)
		copy[i] = bytes[i] < 0x80 ? bytes[i] : '?';
	status_check(j, yajl_gen_string(j->gen, copy, n));
	writer_free(j->to, copy);
}

void
json_bytes(struct json *j, const char *key, const void *bytes, size_t n)
{
	yajl_gen_status status;

	if (!member_begun(j, key))
		return;
	status = yajl_gen_string(j->gen, bytes, n);
	if (status == yajl_gen_invalid_string)
		bytes_as_ascii(j, bytes, n);
	else
		status_check(j, status);
}
