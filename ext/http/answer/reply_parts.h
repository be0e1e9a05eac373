/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply_parts.h - shared by the files of the reply.
 *
 *   reply_message.c  begin, pieces, end; events
 *   reply_read.c     an event, or the whole response -> parts
 *   reply_write.c    parts -> the message, as JSON
 *   reply_json.c     where values are in a JSON text
 *   reply_parts.c    the memory of parts, within `most`
 *
 * All texts of parts stay as they were between the quotes of a JSON string.
 */
#ifndef KVROUTE_REPLY_PARTS_H
#define KVROUTE_REPLY_PARTS_H

#include "reply_message.h"

#include "events.h"
#include "text_hold.h"
#include "reply_json.h"

/* A call of a tool, or a block of content (messages). */
enum reply_part_kind {
	PART_CALL = 0, /* chat: name, arguments */
	PART_TEXT,     /* text */
	PART_THINKING, /* text */
	PART_INPUT,    /* name; text: JSON in a string; raw, if that is empty */
	PART_RAW       /* raw: a JSON value */
};
struct reply_part {
	enum reply_part_kind kind;
	size_t index; /* the events of a stream name the part by it */
	struct hold name, text, raw;
};

struct reply {
	enum endpoint endpoint;
	enum answer_kind kind;
	size_t most, kept;      /* bytes */
	enum reply_outcome why; /* REPLY_WHOLE, or why nothing is kept */
	bool some;              /* a part of a message has come */
	bool done;              /* the message has ended */
	bool over;              /* the stream has ended */

	/* The current event, or all of a JSON response. */
	struct events events;
	bool has_data;
	const char *line;       /* its only line, in this piece */
	size_t n_line;
	struct hold event;

	/* The message. */
	struct hold text, refusal;
	struct hold thought[2]; /* reasoning_content, reasoning */
	struct reply_part *parts;
	size_t n_parts, parts_room;
	struct reply_part function_call;
	bool has_function_call;
	struct hold message;    /* as JSON */
};

/* Frees all that was kept; the first reason stays. */
void reply_drop(struct reply *r, enum reply_outcome why);
/* Appends to h, one of r's own, within `most`; else drops the reply. */
void reply_keep(struct reply *r, struct hold *h, const void *bytes, size_t n);

/* Reads one event of a stream, or the whole response. */
void reply_read(struct reply *r, const char *text, size_t n);
/* Makes the message from the parts. */
void reply_write(struct reply *r);

#endif
