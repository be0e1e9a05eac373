/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * half.c - see half.h.
 *
 * Workers form a ring in the order of their last assignment. Number n is the
 * sentinel; sentinel.next is the least recently assigned. `turn` compares two
 * workers without a traversal.
 */
#include "half.h"

#include <stdlib.h>

struct place {
	uint64_t turn; /* of the last assignment */
	uint32_t previous;
	uint32_t next;
};

struct half {
	uint64_t turn;
	uint32_t n;
	struct place *places; /* [n + 1] */
};

struct half *
half_new(uint32_t n)
{
	struct half *h;
	uint32_t i;

	if (n == 0 || n == UINT32_MAX)
		return NULL;
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return NULL;
	h->places = calloc((size_t)n + 1, sizeof(*h->places));
	if (h->places == NULL) {
		free(h);
		return NULL;
	}
	h->n = n;
	h->turn = n;
	for (i = 0; i <= n; i++) {
		h->places[i].turn = i;
		h->places[i].previous = i == 0 ? n : i - 1;
		h->places[i].next = i == n ? 0 : i + 1;
	}
	return h;
}

void
half_free(struct half *h)
{
	if (h == NULL)
		return;
	free(h->places);
	free(h);
}

/* Worker w becomes the most recently assigned. */
static void
assign_worker(struct half *h, uint32_t w)
{
	struct place *p = h->places;

	p[w].turn = ++h->turn;
	p[p[w].previous].next = p[w].next;
	p[p[w].next].previous = p[w].previous;
	p[w].previous = p[h->n].previous;
	p[w].next = h->n;
	p[p[h->n].previous].next = w;
	p[h->n].previous = w;
}

struct half_choice
half_choose(struct half *h, const struct half_overlap *overlaps, size_t n,
    uint64_t tokens, uint32_t block_size)
{
	struct half_choice c = { h->places[h->n].next, 0, 0 };
	const struct half_overlap *best = NULL;
	size_t i;

	for (i = 0; i < n; i++) {
		const struct half_overlap *o = &overlaps[i];

		if (best == NULL || o->blocks > best->blocks ||
		    (o->blocks == best->blocks && h->places[o->worker].turn <
		    h->places[best->worker].turn))
			best = o;
	}
	if (best != NULL && best->blocks > 0) {
		c.longest = best->blocks;
		if ((uint64_t)best->blocks * block_size * 2 >= tokens)
			c.worker = best->worker;
	}
	for (i = 0; i < n; i++)
		if (overlaps[i].worker == c.worker)
			c.blocks = overlaps[i].blocks;
	assign_worker(h, c.worker);
	return c;
}

uint64_t
half_checksum(uint64_t checksum, uint64_t worker)
{
	return (checksum ^ worker) * UINT64_C(0x100000001b3);
}
