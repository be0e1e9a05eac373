/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_pool.c - options and calls of libkvroute-http, as text.
 *
 * The first byte says which allocation fails (0: none). The first line is the
 * options of the pool, and each further one a call, by its first letter:
 *
 *   s NAME FACTS     kvh_server_put       r NAME   kvh_server_reset
 *   b PATH           kvh_begin, POST      g PATH   kvh_begin, GET
 *   h NAME:VALUE     kvh_header           t NTEXT  kvh_tell of fact N
 *   d BYTES          kvh_body             i BYTES  kvh_tokens, a byte each
 *   e N              kvh_body_end         a NAME   kvh_allow
 *   p                kvh_pick, edits      f N      kvh_failed
 *   F INN            kvh_target_failed    w        KVH_EXPLAIN
 *   q                kvh_wait             u        kvh_turn
 *   R TYPE           kvh_response 200     E NAME   the same, 500, or served
 *   D BYTES          kvh_response_data    x N      kvh_end
 *   T                kvh_tick             c        the next of four requests
 *
 * Whatever the calls, at the end there is no lease, and the index is sound.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "kvroute.h"
#include "kvroute_http.h"
#include "pool_options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CALLS = 4, BODY_MAX = 1 << 16 };

struct bed {
	struct kvr *k;
	struct kvh *h;
	struct kvh_call *call[CALLS];
	unsigned at;
	int64_t now;
};

struct line {
	const char *text;
	size_t n;
};

static char out[BODY_MAX + KVH_WRITE_MORE];

static void
demand(bool condition)
{
	if (!condition)
		abort();
}

static unsigned
digit_of(const struct line *l)
{
	return l->n > 0 ? (unsigned char)l->text[0] % 10 : 0;
}

static void
edits_look(struct kvh_call *c)
{
	const char *text;
	uint64_t cut;
	int64_t offset, before = KVH_HEADER;
	uint32_t i;
	size_t n;

	for (i = 0; kvh_edit(c, i, &offset, &cut, &text, &n) == 0; i++) {
		demand(offset >= before);
		before = offset == KVH_HEADER ? offset :
		    offset + (int64_t)cut;
	}
}

static void
call_begin(struct bed *b, const struct line *l, bool post)
{
	kvh_call_free(b->call[b->at]);
	b->call[b->at] = NULL;
	(void)kvh_begin(b->h, post ? "POST" : "GET", post ? 4 : 3, l->text,
	    l->n, b->now, &b->call[b->at]);
}

static void
tokens_give(struct kvh_call *c, const struct line *l)
{
	uint32_t ids[64];
	size_t i;

	for (i = 0; i < l->n && i < 64; i++)
		ids[i] = (unsigned char)l->text[i] * 977u;
	(void)kvh_tokens(c, ids, i);
}

static void
header_give(struct kvh_call *c, const struct line *l)
{
	const char *colon = memchr(l->text, ':', l->n);
	size_t n = colon == NULL ? l->n : (size_t)(colon - l->text);

	(void)kvh_header(c, l->text, n, l->text + n + (colon != NULL),
	    l->n - n - (colon != NULL));
}

static void
server_give(struct bed *b, const struct line *l)
{
	const char *blank = memchr(l->text, ' ', l->n);
	size_t n = blank == NULL ? l->n : (size_t)(blank - l->text);
	size_t bad = 0;

	if (kvh_server_put(b->h, l->text, n, l->text + n, l->n - n, &bad) ==
	    KVH_ENAME)
		demand(bad < l->n - n);
}

static void
data_give(struct kvh_call *c, const struct line *l, int64_t now)
{
	size_t n = l->n < BODY_MAX ? l->n : BODY_MAX, written = 0;

	if (kvh_response_data(c, l->text, n, now, out, sizeof(out),
	    &written) == 0)
		demand(written <= n + KVH_WRITE_MORE);
}

static void
target_give(struct kvh_call *c, const struct line *l, int64_t now)
{
	const struct line failure = { l->text + (l->n > 0), l->n - (l->n > 0) };

	(void)kvh_target_failed(c, digit_of(l), digit_of(&failure), 503, now);
}

/* It is one of those that wait, and picks. */
static void
turn_take(struct bed *b)
{
	struct kvh_call *c = NULL;
	unsigned i;

	if (kvh_turn(b->h, b->now, &c) != KVR_OK)
		return;
	for (i = 0; i < CALLS && b->call[i] != c; i++)
		continue;
	demand(i < CALLS);
	(void)kvh_pick(c, b->now, NULL);
}

static void
request_do(struct bed *b, char what, const struct line *l)
{
	struct kvh_call *c = b->call[b->at];
	const char *text;
	uint32_t number;
	size_t n;

	switch (what) {
	case 'h':
		header_give(c, l);
		break;
	case 't':
		(void)kvh_tell(c, digit_of(l), l->text + (l->n > 0),
		    l->n - (l->n > 0));
		break;
	case 'd':
		(void)kvh_body(c, l->text, l->n);
		break;
	case 'i':
		tokens_give(c, l);
		break;
	case 'e':
		(void)kvh_body_end(c, digit_of(l) == 0);
		break;
	case 'a':
		(void)kvh_allow(c, l->text, l->n);
		break;
	case 'p':
		if (kvh_pick(c, b->now, l->n > 0 ? NULL : &number) == 0)
			edits_look(c);
		break;
	case 'f':
		(void)kvh_failed(c, digit_of(l), 503, b->now);
		break;
	case 'F':
		target_give(c, l, b->now);
		break;
	case 'w':
		if (kvh_word(c, KVH_EXPLAIN, &text, &n) == 0)
			demand(n > 2 && text[0] == '{');
		break;
	case 'q':
		(void)kvh_wait(c, b->now);
		break;
	case 'R':
		(void)kvh_response(c, 200, l->text, l->n, "", 0, "", 0, b->now,
		    &number);
		break;
	case 'E':
		(void)kvh_response(c, l->n > 0 ? 200 : 500, "", 0, "", 0,
		    l->text, l->n, b->now, &number);
		break;
	case 'D':
		data_give(c, l, b->now);
		break;
	case 'x':
		(void)kvh_end(c, digit_of(l), b->now, out, sizeof(out), &n);
		break;
	}
}

static void
line_do(struct bed *b, const struct line *whole)
{
	char what = whole->n > 0 ? whole->text[0] : 'T';
	struct line l = { whole->text + (whole->n > 0),
	    whole->n - (whole->n > 0) };

	b->now += 50000000;
	if (what == 's')
		server_give(b, &l);
	else if (what == 'r')
		(void)kvh_server_reset(b->h, l.text, l.n, b->now);
	else if (what == 'b' || what == 'g')
		call_begin(b, &l, what == 'b');
	else if (what == 'T')
		(void)kvh_tick(b->h, b->now, NULL);
	else if (what == 'u')
		turn_take(b);
	else if (what == 'c')
		b->at = (b->at + 1) % CALLS;
	else if (b->call[b->at] != NULL)
		request_do(b, what, &l);
}

static struct line
line_next(const char **at, const char *end)
{
	const char *newline = memchr(*at, '\n', (size_t)(end - *at));
	struct line l = { *at, (size_t)((newline == NULL ? end : newline) -
	    *at) };

	*at = newline == NULL ? end : newline + 1;
	return l;
}

static bool
bed_make(struct bed *b, const struct line *options)
{
	struct kvr_options o;
	struct pool_options all;
	size_t bad = 0;

	(void)pool_options_read(&all, true, options->text, options->n, &bad);
	demand(bad <= options->n);
	(void)kvr_options_init(&o, sizeof(o));
	o.unit = KVR_UNIT_BYTES;
	o.region_bytes = 1 << 19;
	o.max_workers = 8;
	o.affinity_entries = 64;
	o.tenants = 4;
	if (kvr_new(&o, &b->k) != KVR_OK)
		return false;
	if (kvh_new(b->k, options->text, options->n, &bad, &b->h) == KVR_OK)
		return true;
	return kvh_new(b->k, "gray=2", 6, NULL, &b->h) == KVR_OK;
}

static void
bed_free(struct bed *b)
{
	struct kvr_stats stats = { .size = sizeof(stats) };
	size_t i;

	for (i = 0; i < CALLS; i++)
		kvh_call_free(b->call[i]);
	if (b->h != NULL) {
		(void)kvh_tick(b->h, b->now, NULL);
		demand(kvr_stats_get(b->k, &stats) == KVR_OK &&
		    stats.leases == 0);
		demand(kvr_check(b->k) == KVR_OK);
	}
	kvh_free(b->h);
	kvr_free(b->k);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	struct bed b = { .now = INT64_C(100000000000) };
	struct line options;
	unsigned fails;

	if (size < 2)
		return 0;
	fails = data[0] - (data[0] >= '0' ? '0' : 0u);
	at++;
	options = line_next(&at, end);
	alloc_reset();
	if (bed_make(&b, &options)) {
		alloc_fail_at(fails);
		while (at < end) {
			struct line l = line_next(&at, end);

			line_do(&b, &l);
		}
		alloc_reset();
	}
	bed_free(&b);
	return 0;
}
