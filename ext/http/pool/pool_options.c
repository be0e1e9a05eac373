/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_options.c - see pool_options.h. */
#include "pool_options.h"

#include <stdio.h>
#include <string.h>

#include "pool_ignore.h"
#include "secret_text.h"

enum { PATH_BYTES_MAX = 4096 };

static const char *const modes[TEXT_WORDS] = {
	[KVR_AFFINITY_HARD] = "hard", [KVR_AFFINITY_HASH] = "hash"
};
const char *const pool_shadows[TEXT_WORDS] = {
	"off", [POOL_LEAST_CONN] = "least_conn",
	[POOL_ROUND_ROBIN] = "round_robin"
};
static const char *const reasonings[TEXT_WORDS] = { "strip", "keep" };

static text_special region_read, secret_read, keys_read, scope_read, name_read,
    path_read, lines_read;

enum { BLOCK_MIN = 16 };
#define REGION_MIN (UINT64_C(64) << 10)

#define ROW(called, type, field, ...) { .name = called, \
	FIELD(type, struct pool_options, field), __VA_ARGS__ }
#define REGION(called, ...) { .name = called, .kind = TEXT_LIBRARY, \
	.special = region_read, __VA_ARGS__ }

const struct text_row pool_rows[] = {
	REGION("size", PRESET("64m")),
	REGION("block", PRESET("256")),
	REGION("workers", PRESET("256")),
	REGION("ttl", PRESET("120s")),
	REGION("affinity", PRESET("16384")),
	REGION("tenants", .preset = NULL),
	REGION("journal", .preset = NULL),
	{ .name = "secret", .kind = TEXT_SPECIAL, .special = secret_read },
	{ .name = "name", .kind = TEXT_SPECIAL, PRESET("pool"),
	    .special = name_read },
	ROW("feedback", TEXT_FLAG, feedback, PRESET("on")),
	ROW("include_usage", TEXT_FLAG, include_usage, PRESET("on")),
	ROW("reasoning", TEXT_WORD, reasoning, PRESET("strip"),
	    .words = reasonings),
	{ .name = "ignore_line", .kind = TEXT_SPECIAL, .special = lines_read },
	ROW("max_body", TEXT_SIZE, max_body, LEAST("1k"), PRESET("8m")),
	{ .name = "affinity_key", .kind = TEXT_SPECIAL, .special = keys_read },
	ROW("affinity_mode", TEXT_WORD, affinity_mode, PRESET("hard"),
	    .words = modes),
	ROW("affinity_ttl", TEXT_TIME, affinity_ttl, RANGE("1ms", "30d"),
	    PRESET("600s")),
	ROW("responses_ttl", TEXT_TIME, responses_ttl, RANGE("1ms", "30d"),
	    PRESET("1h"), OFF),
	{ .name = "scope", .kind = TEXT_SPECIAL, .special = scope_read },
	ROW("gray", TEXT_RATE, gray, RANGE("2", "100"), PRESET("off"), OFF),
	ROW("slow_start", TEXT_TIME, slow_start, RANGE("1s", "1h"),
	    PRESET("off"), OFF),
	ROW("max_fails", TEXT_COUNT, max_fails, RANGE("1", "1000"), PRESET("1"),
	    OFF),
	ROW("fail_timeout", TEXT_TIME, fail_timeout, RANGE("1ms", "1h"),
	    PRESET("10s")),
	ROW("fallbacks", TEXT_COUNT, fallbacks, RANGE("0", "7"), PRESET("2")),
	ROW("split", TEXT_COUNT, split, PRESET("128")),
	ROW("shadow", TEXT_WORD, shadow, PRESET("off"), .words = pool_shadows),
	ROW("queue", TEXT_COUNT, queue, RANGE("1", "65536"), PRESET("off"),
	    OFF),
	ROW("queue_timeout", TEXT_TIME, queue_timeout, RANGE("10ms", "1h"),
	    PRESET("60s")),
	ROW("poll", TEXT_TIME, poll, RANGE("100ms", "1m"), PRESET("off"), OFF),
	{ .name = "poll_path", .kind = TEXT_SPECIAL, PRESET("/metrics"),
	    .special = path_read },
	ROW("trace", TEXT_FLAG, trace, PRESET("off")),
	ROW("trace_sample", TEXT_PERCENT, trace_sample,
	    RANGE("0.0001%", "100%"), PRESET("100%"))
};
_Static_assert(KVH_TARGETS_MAX == 8, "the limit of fallbacks");
_Static_assert(sizeof(pool_rows) / sizeof(pool_rows[0]) <= 32,
    "text_read has a bit for each");
const size_t pool_rows_all = sizeof(pool_rows) / sizeof(pool_rows[0]);
const size_t pool_rows_region = 8;

static const char *
region_read(void *fields, const char *pair, size_t n)
{
	struct kvr_options *o = &((struct pool_options *)fields)->region;

	return kvr_options_parse(o, pair, n, NULL, NULL) == KVR_OK &&
	    o->region_bytes >= REGION_MIN && (o->block_size == KVR_AUTO ||
	    o->block_size >= BLOCK_MIN) ? NULL : "";
}

/* --------------------------------------------------------------- secret --- */

/* As of "kvroute" secret=: 32 bytes, or their digits. */
static const char *
secret_read(void *fields, const char *text, size_t n)
{
	struct kvr_options *o = &((struct pool_options *)fields)->region;
	char path[PATH_BYTES_MAX], bytes[SECRET_TEXT_ROOM];
	FILE *file;
	size_t got;

	if (n == 0 || n >= sizeof(path))
		return "";
	memcpy(path, text, n);
	path[n] = '\0';
	file = fopen(path, "rbe");
	if (file == NULL)
		return "";
	got = fread(bytes, 1, sizeof(bytes), file);
	(void)fclose(file);
	return secret_text_read(o, bytes, got);
}

/* ---------------------------------------------------------------- texts --- */

static const char *
text_keep(struct pool_text *to, const char *text, size_t n)
{
	if (n == 0 || n >= sizeof(to->bytes))
		return "";
	memcpy(to->bytes, text, n);
	to->length = n;
	return NULL;
}

static const char *
name_read(void *fields, const char *text, size_t n)
{
	return text_keep(&((struct pool_options *)fields)->name, text, n);
}

static const char *
path_read(void *fields, const char *text, size_t n)
{
	struct pool_options *o = fields;

	if (!text_is_path(text, n))
		return "";
	memcpy(o->poll_path, text, n);
	o->poll_path[n] = '\0';
	return NULL;
}

static const char *
lines_read(void *fields, const char *text, size_t n)
{
	char *ignore = ((struct pool_options *)fields)->ignore;

	if (n == 0 || n > POOL_REGEX_MAX || memchr(text, '\0', n) != NULL)
		return "";
	memcpy(ignore, text, n);
	ignore[n] = '\0';
	return ignore_check(ignore) ? NULL : "";
}

static const char *
scope_read(void *fields, const char *text, size_t n)
{
	return text_keep(&((struct pool_options *)fields)->scope, text, n);
}

/* Names of headers, and "auto", with commas between them. */
static const char *
keys_read(void *fields, const char *text, size_t n)
{
	struct pool_options *o = fields;
	const char *comma;
	size_t length;

	for (; n > 0; text += length, n -= length) {
		comma = memchr(text, ',', n);
		length = comma == NULL ? n : (size_t)(comma - text);
		if (text_is(text, length, "auto"))
			o->auto_keys = true;
		else if (o->n_keys == POOL_KEYS ||
		    text_keep(&o->key[o->n_keys++], text, length) != NULL)
			return "";
		length += comma != NULL;
		if (length == n && comma != NULL)
			return "";
	}
	return o->auto_keys || o->n_keys > 0 ? NULL : "";
}

int
pool_options_read(struct pool_options *o, bool region, const char *text,
    size_t length, size_t *bad)
{
	const size_t skip = region ? 0 : pool_rows_region;

	memset(o, 0, sizeof(*o));
	(void)kvr_options_init(&o->region, sizeof(o->region));
	o->region.unit = KVR_UNIT_BYTES;
	text_presets(pool_rows, pool_rows_all, o);
	return text_read(pool_rows + skip, pool_rows_all - skip, o, text,
	    length, bad);
}
