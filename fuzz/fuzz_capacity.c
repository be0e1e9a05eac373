/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_capacity.c - any bytes as what an engine says of its KV cache.
 *
 * Three bytes say how it is read: the form, or a whole response of HTTP; the
 * rank; which allocation fails, and how it is cut. The rest is the text.
 * Whatever the input,
 *
 * - cuts do not change what is found;
 * - numbers are within their bounds, and names are clean;
 * - without memory the same or nothing is found.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "must.h"
#include "probe_ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { JSON = 1, RESPONSE = 2, TEXT_MAX = 40000 };

struct text {
	unsigned flags;
	uint32_t rank;
	const uint8_t *bytes;
	size_t n;
};

static void
look(const struct capacity *c)
{
	size_t i, n = strnlen(c->model, sizeof(c->model));

	MUST(c->tokens <= CAPACITY_TOKENS_MAX);
	MUST(c->block_tokens <= CAPACITY_BLOCK_MAX);
	MUST(c->sequences <= CAPACITY_SEQUENCES_MAX);
	MUST(c->window <= CAPACITY_WINDOW_MAX);
	MUST(c->window_tokens <= CAPACITY_TOKENS_MAX);
	MUST(c->tokens != 0 || (c->window == 0 && c->window_tokens == 0));
	MUST(c->kind != CAPACITY_OTHER || c->tokens == 0);
	MUST(c->block_tokens == 0 || c->kind != CAPACITY_VLLM ||
	    c->tokens != 0);
	MUST(n < sizeof(c->model));
	for (i = 0; i < n; i++)
		MUST((unsigned char)c->model[i] >= ' ');
}

/* A response is read up to the piece with its capacity: names may follow. */
static bool
same(const struct capacity *a, const struct capacity *b, bool names)
{
	return a->kind == b->kind && a->tokens == b->tokens &&
	    a->block_tokens == b->block_tokens &&
	    a->sequences == b->sequences && a->window == b->window &&
	    a->window_tokens == b->window_tokens &&
	    (!names || strcmp(a->model, b->model) == 0);
}

/* Each piece is an allocation of its own. */
static uint8_t *
piece_of(const struct text *t, size_t at, size_t cut, size_t *n)
{
	uint8_t *copy;

	*n = cut == 0 || t->n - at < cut ? t->n - at : cut;
	copy = malloc(*n + 1);
	MUST(copy != NULL);
	memcpy(copy, t->bytes + at, *n);
	return copy;
}

/* false: no memory. */
static bool
read_text(const struct text *t, size_t cut, struct capacity *out)
{
	struct capacity_reader *r = capacity_new();
	size_t at, n;
	uint8_t *copy;

	if (r == NULL)
		return false;
	capacity_begin(r, t->flags & JSON ? CAPACITY_JSON : CAPACITY_METRICS,
	    t->rank);
	for (at = 0; at < t->n; at += n) {
		copy = piece_of(t, at, cut, &n);
		capacity_data(r, copy, n);
		free(copy);
	}
	capacity_end(r, out);
	capacity_free(r);
	return true;
}

/* The same response to each path. */
static bool
read_responses(const struct text *t, size_t cut, struct capacity *out)
{
	struct probe *p = probe_new(t->rank);
	enum probe_state state = PROBE_NEXT;
	size_t at, n, paths = 0;
	struct asked a;
	uint8_t *copy;

	if (p == NULL)
		return false;
	while (state == PROBE_NEXT) {
		MUST(++paths <= PROBE_CAPACITY_PATHS);
		(void)probe_begin(p);
		memset(&a, 0, sizeof(a));
		a.probe = p;
		state = PROBE_MORE;
		for (at = 0; at < t->n && state == PROBE_MORE; at += n) {
			copy = piece_of(t, at, cut, &n);
			state = asked_data(&a, copy, n);
			free(copy);
		}
		if (state == PROBE_MORE)
			state = asked_close(&a);
		MUST(state != PROBE_MORE);
	}
	*out = *probe_found(p);
	probe_free(p);
	return true;
}

static bool
read_any(const struct text *t, size_t cut, struct capacity *out)
{
	memset(out, 0, sizeof(*out));
	return t->flags & RESPONSE ? read_responses(t, cut, out) :
	    read_text(t, cut, out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct capacity want, got;
	struct text t;
	bool names;

	if (size < 3 || size > TEXT_MAX)
		return 0;
	t.flags = data[0];
	t.rank = data[1] & 3;
	t.bytes = data + 3;
	t.n = size - 3;
	names = (t.flags & RESPONSE) == 0;
	alloc_reset();
	MUST(read_any(&t, 0, &want));
	look(&want);
	MUST(read_any(&t, 1, &got) && same(&got, &want, names));
	MUST(read_any(&t, data[2], &got) && same(&got, &want, names));
	alloc_fail_from(data[2]);
	if (read_any(&t, data[2], &got))
		look(&got);
	MUST(got.tokens == want.tokens || got.tokens == 0);
	alloc_reset();
	return 0;
}
