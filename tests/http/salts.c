/* SPDX-License-Identifier: BSD-2-Clause */
/* salts.c - see salts.h. */
#include "salts.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <yajl/yajl_parse.h>

static void
demand(bool condition)
{
	if (!condition)
		abort();
}

/* ---------------------------------------------------------------- proxy --- */

/* Each piece is a copy of its own, so that a sanitizer sees its ends. */
bool
salts_read(struct salt *s, const void *body, size_t n, size_t step)
{
	const unsigned char *from = body;
	unsigned char *copy;
	size_t at, length;

	salt_begin(s);
	for (at = 0; at < n; at += length) {
		length = step == 0 || step > n - at ? n - at : step;
		copy = malloc(length);
		demand(copy != NULL);
		memcpy(copy, from + at, length);
		salt_data(s, copy, length);
		free(copy);
	}
	return salt_end(s);
}

static unsigned char *
blanked(const struct salt *s, const void *body, size_t n, size_t room)
{
	unsigned char *to = malloc(n + room);
	size_t i;

	demand(to != NULL && s->end < n);
	memcpy(to, body, n);
	for (i = 0; i < s->spans; i++) {
		demand(s->span[i].at < s->span[i].end &&
		    s->span[i].end <= s->end);
		demand(i == 0 || s->span[i - 1].end <= s->span[i].at);
		memset(to + s->span[i].at, ' ',
		    (size_t)(s->span[i].end - s->span[i].at));
	}
	return to;
}

unsigned char *
salts_blank(const struct salt *s, const void *body, size_t n)
{
	return blanked(s, body, n, 0);
}

unsigned char *
salts_apply(const struct salt *s, const void *body, size_t n,
    const void *value, size_t n_value, size_t *length)
{
	size_t room = SALT_ROOM(n_value), end = (size_t)s->end, put;
	unsigned char *to = blanked(s, body, n, room);

	put = salt_member(s, value, n_value, to + end, room);
	if (put == 0) {
		free(to);
		return NULL;
	}
	memcpy(to + end + put, (const unsigned char *)body + end, n - end);
	*length = n + put;
	return to;
}

/* ----------------------------------------------------------------- YAJL --- */

struct look {
	struct salts_seen *seen;
	XXH3_state_t *digest;
	size_t depth;
	bool salty; /* the member at the top */
	bool map;   /* the outermost value is one */
};

static int
event(struct look *l, char what, const void *bytes, size_t n)
{
	if (l->salty)
		return 1;
	XXH3_64bits_update(l->digest, &what, 1);
	XXH3_64bits_update(l->digest, &n, sizeof(n));
	XXH3_64bits_update(l->digest, bytes, n);
	return 1;
}

static int
on_null(void *l)
{
	return event(l, 'n', "", 0);
}

static int
on_boolean(void *l, int value)
{
	return event(l, value ? 't' : 'f', "", 0);
}

static int
on_number(void *l, const char *digits, size_t n)
{
	return event(l, '#', digits, n);
}

static int
on_string(void *ctx, const unsigned char *text, size_t n)
{
	struct look *l = ctx;

	if (l->salty && l->depth == 1 && n < sizeof(l->seen->value)) {
		memcpy(l->seen->value, text, n);
		l->seen->n_value = n;
	}
	return event(l, '"', text, n);
}

static int
on_key(void *ctx, const unsigned char *text, size_t n)
{
	struct look *l = ctx;

	if (l->depth == 1) {
		l->salty = n == 10 && memcmp(text, "cache_salt", n) == 0;
		l->seen->salts += l->salty;
	}
	return event(l, 'k', text, n);
}

static int
begins(struct look *l, char what)
{
	if (l->depth++ == 0)
		l->map = what == '{';
	if (l->depth > l->seen->depth)
		l->seen->depth = l->depth;
	return event(l, what, "", 0);
}

static int
ends(struct look *l, char what)
{
	if (--l->depth == 0)
		l->salty = false;
	return event(l, what, "", 0);
}

static int
on_map(void *l)
{
	return begins(l, '{');
}

static int
on_map_end(void *l)
{
	return ends(l, '}');
}

static int
on_list(void *l)
{
	return begins(l, '[');
}

static int
on_list_end(void *l)
{
	return ends(l, ']');
}

struct salts_seen
salts_look(const void *body, size_t n)
{
	static const yajl_callbacks calls = { on_null, on_boolean, NULL, NULL,
	    on_number, on_string, on_map, on_key, on_map_end, on_list,
	    on_list_end };
	static const unsigned char mark[] = { 0xef, 0xbb, 0xbf };
	const unsigned char *text = body;
	struct salts_seen seen = { 0 };
	struct look l = { .seen = &seen, .digest = XXH3_createState() };
	yajl_handle y = yajl_alloc(&calls, NULL, &l);

	demand(l.digest != NULL && y != NULL);
	XXH3_64bits_reset(l.digest);
	if (n >= sizeof(mark) && memcmp(text, mark, sizeof(mark)) == 0) {
		text += sizeof(mark);
		n -= sizeof(mark);
	}
	seen.valid = yajl_parse(y, text, n) == yajl_status_ok &&
	    yajl_complete_parse(y) == yajl_status_ok && l.map;
	seen.rest = XXH3_64bits_digest(l.digest);
	yajl_free(y);
	XXH3_freeState(l.digest);
	return seen;
}
