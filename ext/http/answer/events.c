/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events.c - see events.h.
 *
 *           'd' 'a' 't' 'a'       ':'        ' '
 *   START ------- NAME -------> -------> SPACE ----> VALUE
 *     |             |                                  |
 *     |             +-- anything else --> REST         |
 *     +<----------------- end of line ---+-------------+
 */
#include "events.h"

#include <string.h>

enum place { START, NAME, SPACE, VALUE, REST };

static const char field[] = "data";
static const unsigned char byte_order_mark[] = { 0xef, 0xbb, 0xbf };
enum { FIELD = sizeof(field) - 1, MARK = sizeof(byte_order_mark) };

/* Finds the end of the current line, or of the piece. */
static const char *
line_end(struct events_piece *piece)
{
	const char *at = piece->at, *cr;

	if (piece->lf == NULL || piece->lf < at) {
		piece->lf = memchr(at, '\n', (size_t)(piece->end - at));
		if (piece->lf == NULL)
			piece->lf = piece->end;
	}
	cr = memchr(at, '\r', (size_t)(piece->lf - at));
	return cr != NULL ? cr : piece->lf;
}

/* True: the byte belongs to the byte order mark and is skipped. */
static bool
is_mark(struct events *e, const char *at)
{
	if (e->mark >= MARK)
		return false;
	if ((unsigned char)*at == byte_order_mark[e->mark]) {
		e->mark++;
		return true;
	}
	/* After half a mark the line has begun with something else. */
	if (e->mark > 0)
		e->place = REST;
	e->mark = MARK;
	return false;
}

/* Reads the field's name, up to its value. */
static const char *
read_name(struct events *e, const char *at, const char *stop)
{
	for (; at < stop && e->place < VALUE; at++) {
		if (is_mark(e, at))
			continue;
		if (e->place == START) {
			e->place = NAME;
			e->matched = 0;
		}
		if (e->place == SPACE) {
			e->place = VALUE;
			return *at == ' ' ? at + 1 : at;
		}
		if (e->matched < FIELD && *at == field[e->matched])
			e->matched++;
		else
			e->place = e->matched == FIELD && *at == ':' ? SPACE :
			    REST;
	}
	return at;
}

/* Reads a line, or the part at hand; false: it holds no value. */
static bool
read_line(struct events *e, struct events_piece *piece,
    struct events_part *part)
{
	const char *stop = line_end(piece), *at = piece->at;
	const bool ends = stop < piece->end;
	bool goes_on = e->place == VALUE;

	at = read_name(e, at, stop);
	part->bytes = at;
	part->n = (size_t)(stop - at);
	part->first = !goes_on;
	part->last = ends;
	if (ends) {
		/* Half a mark is something else, too. */
		if (e->mark > 0 && e->mark < MARK)
			e->place = REST;
		e->mark = MARK;
		e->after_cr = *stop == '\r';
		if (e->place == SPACE ||
		    (e->place == NAME && e->matched == FIELD))
			e->place = VALUE;
	}
	piece->at = ends ? stop + 1 : stop;
	return e->place == VALUE;
}

static bool
is_lf_of_cr(struct events *e, struct events_piece *piece)
{
	const bool is = e->after_cr && *piece->at == '\n';

	e->after_cr = false;
	piece->at += is;
	return is;
}

enum events_what
events_next(struct events *e, struct events_piece *piece,
    struct events_part *part)
{
	while (piece->at < piece->end) {
		bool has_value, empty;

		if (is_lf_of_cr(e, piece)) {
			if (!e->in_event)
				return EVENTS_LF;
			continue;
		}
		has_value = read_line(e, piece, part);
		empty = e->place == START;
		/* A mark alone is not a line. */
		if (empty && !part->last)
			continue;
		e->in_event = !empty;
		if (part->last)
			e->place = START;
		if (empty)
			return EVENTS_END;
		if (has_value)
			return EVENTS_DATA;
	}
	return EVENTS_MORE;
}
