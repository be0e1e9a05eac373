/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events.h - splits a text/event-stream into events.
 *
 *   : a comment                  nothing
 *   event: message_delta         nothing
 *   data: {"type":               EVENTS_DATA
 *   data: "message_delta"}       EVENTS_DATA
 *                                EVENTS_END
 *
 * Lines end with CR, LF or CRLF; a byte order mark may come first. A line may
 * be cut anywhere: each piece of a value is a part of its own, and between two
 * pieces only the position within the line is kept. The last CR of an event
 * ends it at once. An LF that follows belongs to that event and is reported
 * apart.
 */
#ifndef KVROUTE_EVENTS_H
#define KVROUTE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

/* All 0: nothing has been read. */
struct events {
	unsigned char place;   /* in a line */
	unsigned char matched; /* bytes of the field's name so far */
	unsigned char mark;    /* bytes of the byte order mark so far */
	bool after_cr;
	bool in_event;         /* a line has come since the last empty one */
};

/* A piece, read up to `at`. */
struct events_piece {
	const char *at, *end;
	const char *lf;        /* the first LF not before at; NULL: look */
};

enum events_what {
	EVENTS_MORE, /* the piece has been read */
	EVENTS_DATA, /* n bytes of a value, perhaps none */
	EVENTS_END,  /* the event's empty line, whether there was data or not */
	EVENTS_LF    /* the LF after a CR that ended the event before */
};
struct events_part {
	const char *bytes;
	size_t n;
	bool first, last; /* part of this line's value */
};

/* Finds the next part and moves piece->at behind it. */
enum events_what events_next(struct events *e, struct events_piece *piece,
    struct events_part *part);

#endif
