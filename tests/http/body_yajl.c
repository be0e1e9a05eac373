/* SPDX-License-Identifier: BSD-2-Clause */
/* body_yajl.c - see body_yajl.h. */
#include "body_yajl.h"

#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "body_in.h"

struct reading {
	struct body *b;
	yajl_handle json;
	uint64_t fed;
};

static int
on_null(void *context)
{
	const struct reading *r = context;

	return body_calls.value(r->b, JSON_NULL, NULL, 0);
}

static int
on_boolean(void *context, int is_true)
{
	const struct reading *r = context;

	return body_calls.value(r->b, JSON_BOOLEAN, NULL, is_true != 0);
}

static int
on_number(void *context, const char *digits, size_t n)
{
	const struct reading *r = context;

	return body_calls.value(r->b, JSON_NUMBER, digits, n);
}

static int
on_string(void *context, const unsigned char *text, size_t n)
{
	const struct reading *r = context;

	return body_calls.value(r->b, JSON_STRING, text, n);
}

static int
on_key(void *context, const unsigned char *name, size_t n)
{
	const struct reading *r = context;

	return body_calls.key(r->b, name, n);
}

static int
on_map(void *context)
{
	const struct reading *r = context;

	return body_calls.value(r->b, JSON_MAP, NULL, 0);
}

static int
on_list(void *context)
{
	const struct reading *r = context;

	return body_calls.value(r->b, JSON_LIST, NULL, 0);
}

static int
on_end(void *context)
{
	const struct reading *r = context;

	return body_calls.end(r->b, r->fed +
	    yajl_get_bytes_consumed(r->json) - 1);
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_map,
	.yajl_map_key = on_key,
	.yajl_end_map = on_end,
	.yajl_start_array = on_list,
	.yajl_end_array = on_end
};

static void
feed(struct reading *r, const void *bytes, size_t n)
{
	if (r->b->stopped)
		return;
	if (yajl_parse(r->json, bytes, n) != yajl_status_ok)
		body_stop(r->b, BODY_NOT_JSON);
	r->fed += n;
}

/* Ends a cut string as body.c does. */
static void
feed_end(struct reading *r, const unsigned char *text, size_t n)
{
	struct body *b = r->b;
	unsigned char end[8];

	b->n_last = n < LAST_BYTES ? n : LAST_BYTES;
	memcpy(b->last, text + n - b->n_last, b->n_last);
	b->closing = true;
	feed(r, end, body_missing(b, end));
}

enum body_outcome
body_yajl(struct body *b, struct kvr_prompt *p, enum endpoint endpoint,
    const void *text, size_t n, bool more, struct body_facts *facts)
{
	struct reading r = { b, NULL, 0 };

	body_begin(b, p, endpoint);
	r.json = yajl_alloc(&callbacks, NULL, &r);
	if (r.json == NULL)
		abort();
	b->given = n;
	if (n >= 3 && memcmp(text, "\357\273\277", 3) == 0)
		r.fed = 3; /* a byte order mark */
	if (n > r.fed)
		feed(&r, (const unsigned char *)text + r.fed, n - r.fed);
	if (!b->stopped && !b->whole && n > 0) {
		if (b->depth > 0)
			feed_end(&r, text, n);
		else
			feed(&r, " ", 1);
	}
	if (more)
		body_cut(b);
	yajl_free(r.json);
	return body_end(b, facts);
}
