/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply.h - responses as bytes: JSON or an event stream in the format of each
 * endpoint, with usage as configured.
 *
 *   stream   reply_early   sent before prefill, in some formats
 *            reply_first   with the first token
 *            reply_text    one or more tokens of a choice, in its parts
 *            reply_stop    the end of a choice
 *            reply_last    the end of all: usage, if requested
 *   JSON     reply_whole
 */
#ifndef KVROUTE_REPLY_H
#define KVROUTE_REPLY_H

#include "ask.h"
#include "output.h"

#include <event2/buffer.h>
#include <event2/event.h>

/* The form of cached tokens in usage. */
enum reply_usage {
	USAGE_VALUE,      /* always */
	USAGE_NULL_FOR_0, /* null for 0 tokens */
	USAGE_NULL,       /* null always */
	USAGE_NONE        /* no usage */
};

struct choice_text {
	struct output output;
	size_t sent;          /* tokens */
};

struct reply {
	const struct ask *ask;
	enum reply_usage usage;
	bool early;           /* reply_early was sent */
	uint64_t number;      /* of the request: a part of its id */
	char id[KEPT_ID_SIZE]; /* in /v1/responses */
	int64_t created;      /* seconds */
	uint64_t prompt;      /* tokens */
	uint64_t cached;
	uint64_t generated;
	struct choice_text *choices; /* [n_choices] */
	size_t n_choices;
	struct evbuffer *out; /* the output */
	bool failed;          /* no memory: incomplete */
};

void reply_early(struct reply *r);
void reply_first(struct reply *r);
/* Unsent tokens of a choice, up to `until`. */
void reply_text(struct reply *r, size_t choice, size_t until);
void reply_stop(struct reply *r, size_t choice);
void reply_last(struct reply *r);
void reply_whole(struct reply *r);
/* An error in the format of that endpoint. */
void reply_error(struct evbuffer *out, int kind, int status,
    const char *text);
/* A string as JSON, with its quotes. False: no memory. */
bool reply_quote_to(struct evbuffer *out, const char *text);

#endif
