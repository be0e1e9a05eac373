/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply_messages.c - /v1/messages; see reply.h.
 *
 * Input tokens exclude cached ones here. The message starts before prefill and
 * cannot report them; the delta at the end does.
 */
#include "reply_in.h"

#include <inttypes.h>
#include <string.h>

static void
put_usage(struct reply *r, uint64_t generated, bool known)
{
	known = known && reply_cached_known(r);
	reply_put(r, ",\"usage\":{\"input_tokens\":%" PRIu64
	    ",\"cache_read_input_tokens\":",
	    r->prompt - (known ? r->cached : 0));
	if (known)
		reply_put(r, "%" PRIu64, r->cached);
	else
		reply_put(r, "null");
	reply_put(r, ",\"output_tokens\":%" PRIu64 "}", generated);
}

static void
put_message(struct reply *r, bool complete, bool known)
{
	reply_put(r, "{\"id\":\"msg_%" PRIx64 "\",\"type\":\"message\","
	    "\"role\":\"assistant\",\"model\":", r->number);
	reply_quote(r, r->ask->model, strlen(r->ask->model));
	reply_put(r, ",\"content\":[");
	if (complete) {
		reply_put(r, "{\"type\":\"text\",\"text\":");
		reply_quote_tokens(r, 0, 0, r->choices[0].words.n);
		reply_put(r, "}],\"stop_reason\":\"%s\"",
		    reply_reason(r, "max_tokens", "end_turn"));
	} else {
		reply_put(r, "],\"stop_reason\":null");
	}
	reply_put(r, ",\"stop_sequence\":null");
	if (r->usage != USAGE_NONE)
		put_usage(r, complete ? r->generated : 0, known);
	reply_put(r, "}");
}

static void
start(struct reply *r, bool known)
{
	reply_put(r, "event: message_start\n"
	    "data: {\"type\":\"message_start\",\"message\":");
	put_message(r, false, known);
	reply_put(r, "}\n\n");
}

void
messages_early(struct reply *r)
{
	start(r, false);
	reply_put(r, "event: ping\ndata: {\"type\":\"ping\"}\n\n");
}

void
messages_first(struct reply *r)
{
	if (!r->early)
		start(r, true);
	reply_put(r, "event: content_block_start\n"
	    "data: {\"type\":\"content_block_start\",\"index\":0,"
	    "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n");
}

void
messages_text(struct reply *r, size_t until)
{
	reply_put(r, "event: content_block_delta\n"
	    "data: {\"type\":\"content_block_delta\",\"index\":0,"
	    "\"delta\":{\"type\":\"text_delta\",\"text\":");
	reply_quote_tokens(r, 0, r->choices[0].sent, until);
	reply_put(r, "}}\n\n");
}

void
messages_last(struct reply *r)
{
	reply_put(r, "event: content_block_stop\n"
	    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
	    "event: message_delta\n"
	    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
	    "\"%s\",\"stop_sequence\":null}",
	    reply_reason(r, "max_tokens", "end_turn"));
	if (r->usage != USAGE_NONE)
		put_usage(r, r->generated, true);
	reply_put(r, "}\n\nevent: message_stop\n"
	    "data: {\"type\":\"message_stop\"}\n\n");
}

void
messages_whole(struct reply *r)
{
	put_message(r, true, true);
}
