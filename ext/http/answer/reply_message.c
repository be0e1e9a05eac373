/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply_message.c - see reply_message.h.
 *
 * An event that lies whole in a piece is read there. One that is cut is
 * gathered first, as is a response that is not a stream. reply_read therefore
 * gets whole texts only, and the cuts cannot matter.
 */
#include "reply_parts.h"

#include <stdlib.h>
#include <string.h>

struct reply *
reply_new(void)
{
	struct reply *r = calloc(1, sizeof(*r));

	if (r != NULL)
		r->why = REPLY_NONE;
	return r;
}

void
reply_free(struct reply *r)
{
	if (r == NULL)
		return;
	reply_forget(r);
	free(r);
}

void
reply_begin(struct reply *r, enum endpoint endpoint, enum answer_kind kind,
    size_t most)
{
	reply_forget(r);
	r->endpoint = endpoint;
	r->kind = kind;
	r->most = most;
	r->why = endpoint == ENDPOINT_OTHER ? REPLY_NONE : REPLY_WHOLE;
}

/* --------------------------------------------------------------- events --- */

static void
event_gather(struct reply *r, const void *bytes, size_t n)
{
	reply_keep(r, &r->event, bytes, n);
}

static void
gather_line(struct reply *r)
{
	const char *line = r->line;

	r->line = NULL;
	if (line != NULL)
		event_gather(r, line, r->n_line);
}

static void
on_data(struct reply *r, const struct events_part *part)
{
	if (!r->has_data && part->first && part->last) {
		r->line = part->bytes;
		r->n_line = part->n;
	} else {
		gather_line(r);
		if (r->has_data && part->first)
			event_gather(r, "\n", 1);
		event_gather(r, part->bytes, part->n);
	}
	r->has_data = true;
}

/* The event, or the response, is complete. */
static void
read_it(struct reply *r)
{
	struct hold event = r->event;

	if (r->line != NULL) {
		reply_read(r, r->line, r->n_line);
	} else if (r->has_data) {
		/* reply_read may free all that `r` holds. */
		memset(&r->event, 0, sizeof(r->event));
		r->kept -= event.length;
		reply_read(r, (char *)event.data, event.length);
		hold_free(&event);
	}
	r->line = NULL;
	r->has_data = false;
}

static void
read_events(struct reply *r, const char *bytes, size_t n)
{
	struct events_piece piece = { bytes, bytes + n, NULL };
	struct events_part part;
	enum events_what what;

	while (r->why == REPLY_WHOLE &&
	    (what = events_next(&r->events, &piece, &part)) != EVENTS_MORE) {
		if (what == EVENTS_DATA)
			on_data(r, &part);
		else if (what == EVENTS_END)
			read_it(r);
	}
	gather_line(r);
}

void
reply_data(struct reply *r, const void *bytes, size_t n)
{
	if (n == 0 || r->why != REPLY_WHOLE)
		return;
	if (r->kind == ANSWER_STREAM) {
		read_events(r, bytes, n);
		return;
	}
	event_gather(r, bytes, n);
	r->has_data = true;
}

/* ------------------------------------------------------------------ end --- */

enum reply_outcome
reply_end(struct reply *r)
{
	if (r->why == REPLY_WHOLE)
		read_it(r);
	if (r->why == REPLY_WHOLE && !r->done)
		reply_drop(r, REPLY_CUT);
	if (r->why == REPLY_WHOLE && !r->some)
		reply_drop(r, REPLY_NONE);
	if (r->why == REPLY_WHOLE)
		reply_write(r);
	return r->why;
}

enum reply_outcome
reply_append(struct reply *r, struct body *b, struct kvr_prompt *p,
    uint64_t *bytes)
{
	uint64_t n = 0;

	if (bytes != NULL)
		*bytes = 0;
	if (r->why != REPLY_WHOLE)
		return r->why;
	body_message_begin(b, p, r->endpoint);
	body_data(b, r->message.data, r->message.length);
	switch (body_message_end(b, &n)) {
	case BODY_PROMPT:
		break;
	case BODY_NO_MEMORY:
		return REPLY_NO_MEMORY;
	case BODY_NO_PROMPT:
		return REPLY_NONE;
	default:
		return REPLY_CUT;
	}
	if (bytes != NULL)
		*bytes = n;
	return REPLY_WHOLE;
}
