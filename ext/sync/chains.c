/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chains.c - see chains.h.
 *
 * Hashes stand in an array in the order in which they were added. A segment has
 * the hashes that one call added; its first hash follows the one at `prev`, all
 * others the one beside them.
 *
 *	chains     a b c d     a b x     a b c d e
 *	hashes     a b c d x e
 *	segments   [a prev -  ] [x prev b] [e prev d]
 *	index      hash -> place in hashes
 *
 * A hash is 8 bytes, its place in the index 4 at a load of 3/4 at most, so 13.3
 * bytes for a block, and 24 for a segment.
 *
 * There are two such arrays. When the new one is full, the old one is emptied
 * and becomes the new one. Each is closed: with a block it has all that precede
 * it. So a search by halves finds how much of a prefix is known, and a chain
 * that is added again moves along with all that precedes it; the rest is
 * forgotten.
 */
#include "chains.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1, SEGMENT_BLOCKS = 8 }; /* at least, on average */

struct segment {
	uint64_t root;      /* if it begins a chain */
	uint32_t at;        /* its first hash */
	uint32_t first;     /* position of that in its chain */
	int64_t prev;       /* place of the hash before it, or NONE */
};

struct age {
	uint64_t *hashes;
	uint32_t *index;     /* place + 1; 0: free */
	unsigned char *marks;
	struct segment *segments;
	size_t n, n_segments;
};

struct chains {
	size_t blocks, segments, mask;
	struct age new, old;
	struct roots *roots;
	uint32_t places[CHAINS_LENGTH_MAX];
	uint64_t hashes[CHAINS_LENGTH_MAX];
};

static void
age_free(struct age *a)
{
	free(a->hashes);
	free(a->index);
	free(a->marks);
	free(a->segments);
}

static bool
age_make(const struct chains *c, struct age *a)
{
	a->hashes = calloc(c->blocks, sizeof(*a->hashes));
	a->index = calloc(c->mask + 1, sizeof(*a->index));
	a->marks = calloc(c->blocks / 8 + 1, 1);
	a->segments = calloc(c->segments, sizeof(*a->segments));
	return a->hashes != NULL && a->index != NULL && a->marks != NULL &&
	    a->segments != NULL;
}

struct chains *
chains_new(size_t blocks)
{
	struct chains *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->blocks = blocks;
	c->segments = blocks / SEGMENT_BLOCKS + 2;
	c->mask = 3;
	while ((c->mask + 1) / 4 * 3 < blocks)
		c->mask = c->mask * 2 + 1;
	c->roots = roots_new();
	if (c->roots != NULL && age_make(c, &c->new) && age_make(c, &c->old))
		return c;
	chains_free(c);
	return NULL;
}

void
chains_free(struct chains *c)
{
	if (c == NULL)
		return;
	age_free(&c->new);
	age_free(&c->old);
	roots_free(c->roots);
	free(c);
}

struct roots *
chains_roots(const struct chains *c)
{
	return c->roots;
}

size_t
chains_blocks(const struct chains *c)
{
	return c->new.n + c->old.n;
}

/* -------------------------------------------------------------- lookup --- */

/* Where the hash is in the index, or where it would be. */
static uint32_t *
slot_of(const struct chains *c, const struct age *a, uint64_t hash)
{
	size_t at = (size_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 24);

	for (at &= c->mask; a->index[at] != 0; at = (at + 1) & c->mask)
		if (a->hashes[a->index[at] - 1] == hash)
			break;
	return &a->index[at];
}

static int64_t
find(const struct chains *c, const struct age *a, uint64_t hash)
{
	return (int64_t)*slot_of(c, a, hash) - 1;
}

/* The segment that a place is in. */
static const struct segment *
segment_of(const struct age *a, uint32_t place)
{
	size_t low = 0, high = a->n_segments, middle;

	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (a->segments[middle].at <= place)
			low = middle;
		else
			high = middle;
	}
	return &a->segments[low];
}

static uint32_t
position(const struct age *a, uint32_t place)
{
	const struct segment *s = segment_of(a, place);

	return s->first + (place - s->at);
}

/*
 * The places of a chain, up to this one, to c->places; returns its root.
 * Positions count down to 0 by construction, so this ends.
 */
static uint64_t
walk(struct chains *c, const struct age *a, uint32_t place)
{
	const struct segment *s = segment_of(a, place);
	uint32_t end = s->first + (place - s->at), i;

	for (;;) {
		for (i = s->first; i <= end; i++)
			c->places[i] = s->at + (i - s->first);
		if (s->prev == NONE)
			return s->root;
		end = s->first - 1;
		s = segment_of(a, (uint32_t)s->prev);
	}
}

/* Which of both has it; NULL: none. */
static struct age *
has(struct chains *c, uint64_t hash, uint32_t *place)
{
	struct age *a = &c->new;
	int64_t at = find(c, a, hash);

	if (at == NONE)
		at = find(c, a = &c->old, hash);
	*place = (uint32_t)at;
	return at == NONE ? NULL : a;
}

/* -------------------------------------------------------------- adding --- */

static void
turn_over(struct chains *c)
{
	const struct age empty = c->old;

	memset(empty.index, 0, (c->mask + 1) * sizeof(*empty.index));
	memset(empty.marks, 0, c->blocks / 8 + 1);
	c->old = c->new;
	c->new = empty;
	c->new.n = c->new.n_segments = 0;
}

static void
append(struct chains *c, const struct stretch *s, size_t from, int64_t prev)
{
	struct age *a = &c->new;
	uint32_t *slot;
	size_t i;

	a->segments[a->n_segments++] = (struct segment){ .root = s->parent,
	    .at = (uint32_t)a->n, .first = s->first + (uint32_t)from,
	    .prev = prev };
	for (i = from; i < s->n; i++) {
		slot = slot_of(c, a, s->hashes[i]);
		a->hashes[a->n++] = s->hashes[i];
		if (*slot == 0)
			*slot = (uint32_t)a->n;
	}
}

/* How many of its hashes the new array has; all before one that it has. */
static size_t
known(const struct chains *c, const struct stretch *s)
{
	size_t low = 0, high = s->n, middle;

	if (s->n > 0 && find(c, &c->new, s->hashes[s->n - 1]) != NONE)
		return s->n;
	while (low < high) {
		middle = low + (high - low) / 2;
		if (find(c, &c->new, s->hashes[middle]) != NONE)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool
fits(const struct chains *c, const struct stretch *s)
{
	return s->n <= CHAINS_LENGTH_MAX &&
	    s->first <= CHAINS_LENGTH_MAX - s->n &&
	    s->first + s->n <= c->blocks;
}

/* Adds a stretch that begins where a known one, in the new array, ends. */
static bool
add_on(struct chains *c, const struct stretch *s)
{
	const size_t from = known(c, s);
	int64_t prev = NONE;

	if (s->first + from > 0) {
		prev = find(c, &c->new, from == 0 ? s->parent :
		    s->hashes[from - 1]);
		if (prev == NONE || position(&c->new, (uint32_t)prev) + 1 !=
		    s->first + from)
			return false;
	}
	if (from < s->n)
		append(c, s, from, prev);
	return true;
}

static bool
room(const struct chains *c, size_t blocks)
{
	return blocks <= c->blocks - c->new.n &&
	    c->new.n_segments < c->segments;
}

/* Brings the part before a stretch from the old array into the new one. */
static bool
bring(struct chains *c, const struct stretch *s)
{
	struct stretch before;
	uint64_t *end;

	if (s->first == 0 || find(c, &c->new, s->parent) != NONE)
		return true;
	return chains_get(c, s->parent, 0, &before, &end) &&
	    before.n == s->first && add_on(c, &before);
}

bool
chains_add(struct chains *c, const struct stretch *s)
{
	if (s->n == 0 || !fits(c, s))
		return false;
	/* With all that may have to be brought, in two segments. */
	if (!room(c, s->first + s->n) || c->new.n_segments + 2 > c->segments)
		turn_over(c);
	return bring(c, s) && add_on(c, s);
}

/* ------------------------------------------------------------- reading --- */

bool
chains_get(struct chains *c, uint64_t hash, size_t more, struct stretch *out,
    uint64_t **end)
{
	struct age *a;
	uint32_t place;
	size_t i;

	if ((a = has(c, hash, &place)) == NULL)
		return false;
	out->n = position(a, place) + 1;
	if (more > CHAINS_LENGTH_MAX - out->n)
		return false;
	out->parent = walk(c, a, place);
	out->first = 0;
	for (i = 0; i < out->n; i++)
		c->hashes[i] = a->hashes[c->places[i]];
	out->hashes = c->hashes;
	*end = c->hashes + out->n;
	return true;
}

void
chains_unmark(struct chains *c)
{
	memset(c->new.marks, 0, c->blocks / 8 + 1);
	memset(c->old.marks, 0, c->blocks / 8 + 1);
}

static bool
marked(const struct age *a, uint32_t place)
{
	return (a->marks[place / 8] >> place % 8 & 1) != 0;
}

bool
chains_mark(struct chains *c, uint64_t hash, uint32_t blocks, size_t most,
    struct stretch *out, uint64_t *last)
{
	struct age *a;
	uint32_t place, i;

	if ((a = has(c, hash, &place)) == NULL || blocks == 0 ||
	    position(a, place) < blocks - 1)
		return false;
	out->parent = walk(c, a, place);
	out->n = 0;
	out->hashes = c->hashes;
	*last = a->hashes[c->places[blocks - 1]];
	/* Marks are closed as the arrays are. */
	for (i = blocks; i > 0 && !marked(a, c->places[i - 1]); i--)
		continue;
	out->first = i;
	if (i > 0)
		out->parent = a->hashes[c->places[i - 1]];
	for (; i < blocks && out->n < most; i++) {
		place = c->places[i];
		c->hashes[out->n++] = a->hashes[place];
		a->marks[place / 8] |= (unsigned char)(1u << place % 8);
	}
	return true;
}
