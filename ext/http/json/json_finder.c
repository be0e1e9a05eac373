/* SPDX-License-Identifier: BSD-2-Clause */
/* json_finder.c - see json_finder.h. */
#include "json_finder.h"

#include <string.h>

/* ---------------------------------------------------------------- rows --- */

static bool
key_is(const struct finder_row *row, const unsigned char *key, size_t n)
{
	if (row->key == NULL || key == NULL)
		return row->key == NULL && key == NULL;
	return strlen(row->key) == n && memcmp(row->key, key, n) == 0;
}

/* Finds the row of the next value, which has this key or is an element. */
static void
place_next(struct finder *f, const unsigned char *key, size_t n)
{
	const unsigned char in = f->places[f->reader.depth];
	const struct finder_table *t = f->table;
	size_t i;

	f->next = FOUND_NOWHERE;
	for (i = 0; in != FOUND_NOWHERE && i < t->n_rows; i++)
		if (t->rows[i].in == in && key_is(&t->rows[i], key, n)) {
			f->next = t->rows[i].is;
			f->which = t->rows[i].which;
			break;
		}
}

static bool
value_take(struct finder *f, struct found *v)
{
	const size_t depth = f->reader.depth;

	if (depth > 0 && !f->reader.is_map[depth])
		place_next(f, NULL, 0);
	v->place = f->next;
	v->which = f->which;
	return v->place == FOUND_NOWHERE || f->table->take(f->context, v);
}

/* --------------------------------------------------------------- calls --- */

static bool
on_key(void *context, const unsigned char *name, size_t n)
{
	struct finder *f = context;

	if (f->reader.cut)
		f->next = FOUND_NOWHERE;
	else
		place_next(f, name, n);
	return true;
}

static bool
on_value(void *context, enum json_kind kind, const void *text, size_t n)
{
	struct finder *f = context;
	struct found v = { .kind = (enum found_kind)kind, .text = text,
	    .n = n };
	const bool level = kind == JSON_MAP || kind == JSON_LIST;

	v.cut = kind == JSON_STRING && f->reader.cut;
	if ((level && f->reader.depth == FINDER_DEPTH) || !value_take(f, &v))
		return false;
	if (level)
		f->places[f->reader.depth + 1] = (unsigned char)v.place;
	return true;
}

static bool
on_end(void *context, uint64_t at)
{
	struct finder *f = context;
	struct found v = { .kind = FOUND_END };

	(void)at;
	v.place = f->places[f->reader.depth + 1];
	return v.place == FOUND_NOWHERE || f->table->take(f->context, &v);
}

static const struct json_calls calls = {
	.key = on_key, .value = on_value, .end = on_end
};

void
finder_begin(struct finder *f, const struct finder_table *table, void *context)
{
	f->table = table;
	f->context = context;
	f->next = FOUND_TOP;
	f->which = 0;
	json_reader_begin_raw(&f->reader, &calls, f, f->kept, FINDER_KEPT);
}

void
finder_data(struct finder *f, const void *piece, size_t n)
{
	json_reader_data(&f->reader, piece, n);
}
