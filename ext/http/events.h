/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events.h - where the events of a text/event-stream begin and end.
 *
 *   : a comment                  nothing
 *   event: message_delta         nothing
 *   data: {"type":               EVENTS_DATA
 *   data: "message_delta"}       EVENTS_DATA
 *                                EVENTS_END
 *
 * Lines end with CR, LF or CRLF; a byte order mark may come first. A line may
 * come in any pieces: each piece of a value is a part of its own, and between
 * two pieces nothing is kept but in which part of a line the first one ended.
 * So an event's last CR is its end, whatever follows; the LF that may is told
 * apart, because it belongs to that event nevertheless.
 */
#ifndef KVROUTE_EVENTS_H
#define KVROUTE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

/* All 0: nothing has come yet. */
struct events {
	unsigned char place;   /* in a line */
	unsigned char matched; /* of the field's name */
	unsigned char mark;    /* of the byte order mark */
	bool after_cr;
	bool in_event;         /* a line has come since the last empty one */
};

/* A piece, and how far it has been read. */
struct events_piece {
	const char *at, *end;
	const char *lf;        /* the first LF not before at; NULL: look */
};

enum events_what {
	EVENTS_MORE, /* the piece has been read */
	EVENTS_DATA, /* n bytes of a value, perhaps none */
	EVENTS_END,  /* the event's empty line, whether there was data or not */
	EVENTS_LF    /* of the CR that ended the event before */
};
struct events_part {
	const char *bytes;
	size_t n;
	bool first, last; /* of this line's value */
};

/* What comes next; piece->at is then behind it. */
enum events_what events_next(struct events *e, struct events_piece *piece,
    struct events_part *part);

#endif
