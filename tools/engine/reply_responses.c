/* SPDX-License-Identifier: BSD-2-Clause */
/* reply_responses.c - /v1/responses; see reply.h. */
#include "reply_in.h"

#include <inttypes.h>
#include <string.h>

static void
begin_event(struct reply *r, const char *type)
{
	reply_put(r, "event: %s\ndata: {\"type\":\"%s\"", type, type);
}

static void
end_event(struct reply *r)
{
	reply_put(r, "}\n\n");
}

static void
put_part(struct reply *r, size_t tokens)
{
	reply_put(r, "{\"type\":\"output_text\",\"annotations\":[],"
	    "\"text\":");
	reply_quote_tokens(r, 0, 0, tokens);
	reply_put(r, "}");
}

static void
put_item(struct reply *r, bool complete)
{
	reply_put(r, "{\"type\":\"message\",\"id\":\"msg_%" PRIx64
	    "\",\"role\":\"assistant\",\"status\":\"%s\",\"content\":[",
	    r->number, complete ? "completed" : "in_progress");
	if (complete)
		put_part(r, r->choices[0].words.n);
	reply_put(r, "]}");
}

static void
put_usage(struct reply *r)
{
	reply_put(r, "{\"input_tokens\":%" PRIu64 ",\"input_tokens_details\":",
	    r->prompt);
	if (reply_cached_known(r))
		reply_put(r, "{\"cached_tokens\":%" PRIu64 "}", r->cached);
	else
		reply_put(r, "null");
	reply_put(r, ",\"output_tokens\":%" PRIu64 ",\"output_tokens_details\":"
	    "{\"reasoning_tokens\":0},\"total_tokens\":%" PRIu64 "}",
	    r->generated, r->prompt + r->generated);
}

static void
put_response(struct reply *r, bool complete)
{
	const char *status = complete ?
	    reply_reason(r, "incomplete", "completed") : "in_progress";

	reply_put(r, "{\"id\":\"resp_%" PRIx64 "\",\"object\":\"response\","
	    "\"created_at\":%" PRId64 ",\"status\":\"%s\",\"model\":",
	    r->number, r->created, status);
	reply_quote(r, r->ask->model, strlen(r->ask->model));
	reply_put(r, ",\"output\":[");
	if (complete)
		put_item(r, true);
	reply_put(r, "]");
	if (r->usage != USAGE_NONE) {
		reply_put(r, ",\"usage\":");
		if (complete)
			put_usage(r);
		else
			reply_put(r, "null");
	}
	reply_put(r, "}");
}

static void
put_event_of_response(struct reply *r, const char *type, bool complete)
{
	begin_event(r, type);
	reply_put(r, ",\"response\":");
	put_response(r, complete);
	end_event(r);
}

/* Engines send these at once, before prefill. */
void
responses_early(struct reply *r)
{
	put_event_of_response(r, "response.created", false);
	put_event_of_response(r, "response.in_progress", false);
}

void
responses_first(struct reply *r)
{
	if (!r->early)
		responses_early(r);
	begin_event(r, "response.output_item.added");
	reply_put(r, ",\"output_index\":0,\"item\":");
	put_item(r, false);
	end_event(r);
	begin_event(r, "response.content_part.added");
	reply_put(r, ",\"output_index\":0,\"content_index\":0,\"part\":");
	put_part(r, 0);
	end_event(r);
}

void
responses_text(struct reply *r, size_t until)
{
	begin_event(r, "response.output_text.delta");
	reply_put(r, ",\"output_index\":0,\"content_index\":0,\"delta\":");
	reply_quote_tokens(r, 0, r->choices[0].sent, until);
	end_event(r);
}

void
responses_last(struct reply *r)
{
	begin_event(r, "response.output_text.done");
	reply_put(r, ",\"output_index\":0,\"content_index\":0,\"text\":");
	reply_quote_tokens(r, 0, 0, r->choices[0].words.n);
	end_event(r);
	begin_event(r, "response.content_part.done");
	reply_put(r, ",\"output_index\":0,\"content_index\":0,\"part\":");
	put_part(r, r->choices[0].words.n);
	end_event(r);
	begin_event(r, "response.output_item.done");
	reply_put(r, ",\"output_index\":0,\"item\":");
	put_item(r, true);
	end_event(r);
	put_event_of_response(r, reply_reason(r, "response.incomplete",
	    "response.completed"), true);
}

void
responses_whole(struct reply *r)
{
	put_response(r, true);
}
