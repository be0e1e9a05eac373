/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_order.c - orders the prompt whatever the order of keys, and leaves no
 * mark of an empty value.
 *
 * Each key of an ordered object (a message, a part, media, a call, its
 * function) has a rank, see body_keys.c. A value is written at once if all
 * lower ranks have come. Any other is held back in `side`, until its object
 * ends:
 *
 *   {"role": "user", "content": [{"type": "text", "text": "Why?"}], "name": ..
 *      15               0                              0               14
 *    side             prompt                         prompt          side
 *
 *   prompt  \FF m \FF ( \FF p \FF t Why? \FF ) | \FF n ann \FF r user
 *   side    \FF r user \FF n ann               +---^ by rank, at the end
 *
 * Long values mostly have rank 0 or come after it, so few bytes are copied.
 *
 * Objects within a value that is aside write all of their values there, one
 * after the other, and sort them in place. A byte may be copied once for each
 * object around it. ORDERED_MAX bounds that; a digest stands for deeper
 * objects. `parts` is a stack of the values with text: those of an object are
 * on top when it ends.
 *
 * A level has marks that precede its first text and one that ends it.
 * body_open is called ahead of text, and writes the first marks of all levels
 * that have no text yet: these are always the innermost. A level that stays
 * without text has no marks.
 *
 * If a body is cut, the values aside are not part of the prompt: the rest is a
 * prefix of the prompt of the whole body.
 */
#include "body_in.h"

#include "body_keys.h"

enum { SHORT_TEXT = 256 };

void
body_order_reset(struct body *b)
{
	b->opened = 0;
	b->aside = false;
	b->side.length = b->parts.length = 0;
}

static size_t
n_parts(const struct body *b)
{
	return b->parts.length / sizeof(struct part);
}

static struct part *
part_at(const struct body *b, size_t i)
{
	return (struct part *)(void *)b->parts.data + i;
}

/* Returns the end of the text aside, with that in the stage. */
static size_t
aside_end(const struct body *b)
{
	return b->side.length + (b->aside ? b->staged - b->aside_at : 0);
}

/* -------------------------------------------------------------- opening --- */

static void
open_level(struct body *b, struct level *l)
{
	size_t i;

	for (i = 0; i < l->n_open; i++) {
		body_mark(b, l->open[i]);
		b->some |= b->sink == SINK_SYSTEM;
	}
	l->first = aside_end(b);
}

void
body_open(struct body *b)
{
	while (b->opened < b->depth)
		open_level(b, &b->level[++b->opened]);
}

/* --------------------------------------------------------------- values --- */

/* Can the value be written at once, where its object is written? */
static bool
in_place(const struct level *l)
{
	const uint32_t lower = (UINT32_C(1) << l->rank) - 1;
	const uint32_t same = UINT32_C(1) << l->rank;

	return (l->seen & lower) == lower &&
	    (l->waiting & (lower | same)) == 0;
}

void
body_order_begin(struct body *b, struct level *l)
{
	l->seen = l->waiting = 0;
	l->sum = (XXH128_hash_t){ 0, 0 };
	l->any = false;
	l->first = 0;
	l->turns_aside = false;
	l->parts = n_parts(b);
}

void
body_order_value(struct body *b)
{
	struct level *l = &b->level[b->depth];

	l->turns_aside = !b->aside && !in_place(l);
	l->seen |= UINT32_C(1) << l->rank;
	if (l->turns_aside) {
		b->aside = true;
		b->aside_at = b->staged;
		b->outer_opened = b->opened;
		b->opened = b->depth;
	}
	l->start = aside_end(b);
}

static bool
extends_last(const struct body *b, const struct level *l)
{
	const size_t n = n_parts(b);

	return n > l->parts && part_at(b, n - 1)->rank == l->rank;
}

/* Makes a value with text a part, or one more piece of the last part. */
static void
keep_part(struct body *b, struct level *l)
{
	struct part p = { l->start, l->rank };

	if (aside_end(b) <= l->start || aside_end(b) <= l->first)
		return;
	if (p.start < l->first)
		p.start = l->first;
	l->waiting |= UINT32_C(1) << l->rank;
	if (!extends_last(b, l) && !hold_append(&b->parts, &p, sizeof(p)))
		body_stop(b, BODY_NO_MEMORY);
}

/* Moves the text aside from the stage to `side`. */
static void
settle_aside(struct body *b)
{
	if (!hold_append(&b->side, b->stage + b->aside_at,
	    b->staged - b->aside_at))
		body_stop(b, BODY_NO_MEMORY);
	b->staged = b->aside_at;
}

/*
 * A short way for names and roles, since each message has one: it has the
 * effect of a value that turns aside, and of body_text.
 */
void
body_order_text(struct body *b, enum mark mark, const void *text, size_t n)
{
	const unsigned char bytes[2] = { 0xff, (unsigned char)mark };
	struct level *l = &b->level[b->depth];
	const struct part p = { b->side.length, l->rank };

	if (b->aside || in_place(l) || n > SHORT_TEXT) {
		body_order_value(b);
		body_open(b);
		body_text(b, mark, text, n);
		body_order_value_done(b);
		return;
	}
	l->seen |= UINT32_C(1) << l->rank;
	l->waiting |= UINT32_C(1) << l->rank;
	if ((!extends_last(b, l) && !hold_append(&b->parts, &p, sizeof(p))) ||
	    !hold_append(&b->side, bytes, sizeof(bytes)) ||
	    !hold_append(&b->side, text, n))
		body_stop(b, BODY_NO_MEMORY);
}

void
body_order_value_done(struct body *b)
{
	struct level *l = &b->level[b->depth];

	if (b->aside)
		keep_part(b, l);
	if (!l->turns_aside)
		return;
	l->turns_aside = false;
	settle_aside(b);
	b->aside = false;
	b->opened = b->outer_opened;
}

/* -------------------------------------------------------------- objects --- */

static bool
in_order(const struct body *b, size_t from, size_t n)
{
	size_t i;

	for (i = from + 1; i < n; i++)
		if (part_at(b, i)->rank < part_at(b, i - 1)->rank)
			return false;
	return true;
}

/* Calls `each` with the parts by their ranks; the last one ends at `end`. */
static void
by_rank(struct body *b, const struct level *l, size_t end,
    void (*each)(struct body *, size_t, size_t))
{
	const size_t n = n_parts(b);
	uint32_t left;
	unsigned rank;
	size_t i;

	for (left = l->waiting; left != 0; left &= left - 1) {
		rank = (unsigned)__builtin_ctz(left);
		for (i = l->parts; i < n && !b->stopped; i++)
			if (part_at(b, i)->rank == rank)
				each(b, part_at(b, i)->start, (i + 1 < n ?
				    part_at(b, i + 1)->start : end) -
				    part_at(b, i)->start);
	}
}

static void
write_part(struct body *b, size_t at, size_t n)
{
	body_put(b, b->side.data + at, n);
}

/* Copies a part to the end of `side`, which has room. */
static void
copy_part(struct body *b, size_t at, size_t n)
{
	memcpy(b->side.data + b->side.length, b->side.data + at, n);
	b->side.length += n;
}

static void
sort_aside(struct body *b, const struct level *l)
{
	const size_t from = part_at(b, l->parts)->start;
	size_t end, n;

	settle_aside(b);
	end = b->side.length;
	n = end - from;
	if (!hold_reserve(&b->side, n)) {
		body_stop(b, BODY_NO_MEMORY);
		return;
	}
	by_rank(b, l, end, copy_part);
	memcpy(b->side.data + from, b->side.data + end, n);
	b->side.length = end;
}

void
body_order_done(struct body *b)
{
	const struct level *l = &b->level[b->depth];
	const size_t n = n_parts(b);

	if (n == l->parts || b->stopped)
		return;
	if (!b->aside) {
		const size_t from = part_at(b, l->parts)->start;

		body_open(b);
		if (n == l->parts + 1) /* a role, mostly */
			write_part(b, from, b->side.length - from);
		else
			by_rank(b, l, b->side.length, write_part);
		b->side.length = from;
	} else if (!in_order(b, l->parts, n)) {
		sort_aside(b, l);
	}
	b->parts.length = l->parts * sizeof(struct part);
}
