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

static const struct output_part *
part_of(const struct reply *r, size_t i)
{
	return &r->choices[0].output.parts[i];
}

/* Any value will do: no engine checks it here. */
static uint64_t
signature(const struct reply *r)
{
	return r->choices[0].output.words.n;
}

/* A block as it begins; its last member is left open. */
static void
begin_block(struct reply *r, const struct output_part *p)
{
	switch (p->kind) {
	case OUTPUT_REASONING:
		reply_put(r, "{\"type\":\"thinking\",\"thinking\":");
		break;
	case OUTPUT_TOOL:
		reply_put(r, "{\"type\":\"tool_use\",\"id\":\"toolu_%016"
		    PRIx64 "\",\"name\":", p->id);
		reply_quote(r, p->name, strlen(p->name));
		reply_put(r, ",\"input\":");
		break;
	case OUTPUT_TEXT:
	default:
		reply_put(r, "{\"type\":\"text\",\"text\":");
	}
}

static void
put_block(struct reply *r, const struct output_part *p)
{
	begin_block(r, p);
	if (p->kind == OUTPUT_TOOL)
		reply_put_tokens(r, 0, p->first, p->last);
	else
		reply_quote_tokens(r, 0, p->first, p->last);
	if (p->kind == OUTPUT_REASONING)
		reply_put(r, ",\"signature\":\"%016" PRIx64 "\"",
		    signature(r));
	reply_put(r, "}");
}

static const char *
reason(const struct reply *r)
{
	return reply_reason(r, 0, "max_tokens", "end_turn", "tool_use");
}

static void
put_message(struct reply *r, bool complete, bool known)
{
	size_t i;

	reply_put(r, "{\"id\":\"msg_%" PRIx64 "\",\"type\":\"message\","
	    "\"role\":\"assistant\",\"model\":", r->number);
	reply_quote(r, r->ask->model, strlen(r->ask->model));
	reply_put(r, ",\"content\":[");
	for (i = 0; complete && i < r->choices[0].output.n_parts; i++) {
		reply_put(r, "%s", i == 0 ? "" : ",");
		put_block(r, part_of(r, i));
	}
	if (complete)
		reply_put(r, "],\"stop_reason\":\"%s\"", reason(r));
	else
		reply_put(r, "],\"stop_reason\":null");
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
}

void
messages_begin(struct reply *r, size_t i)
{
	const struct output_part *p = part_of(r, i);

	reply_put(r, "event: content_block_start\n"
	    "data: {\"type\":\"content_block_start\",\"index\":%zu,"
	    "\"content_block\":", i);
	begin_block(r, p);
	reply_put(r, "%s}}\n\n", p->kind == OUTPUT_TOOL ? "{}" :
	    p->kind == OUTPUT_TEXT ? "\"\"" : "\"\",\"signature\":\"\"");
}

static void
begin_delta(struct reply *r, size_t i)
{
	reply_put(r, "event: content_block_delta\n"
	    "data: {\"type\":\"content_block_delta\",\"index\":%zu,"
	    "\"delta\":", i);
}

void
messages_text(struct reply *r, size_t i, size_t first, size_t last)
{
	static const char *const deltas[] = {
		[OUTPUT_REASONING] = "thinking_delta\",\"thinking",
		[OUTPUT_TEXT] = "text_delta\",\"text",
		[OUTPUT_TOOL] = "input_json_delta\",\"partial_json"
	};

	begin_delta(r, i);
	reply_put(r, "{\"type\":\"%s\":", deltas[part_of(r, i)->kind]);
	reply_quote_tokens(r, 0, first, last);
	reply_put(r, "}}\n\n");
}

void
messages_end(struct reply *r, size_t i)
{
	if (part_of(r, i)->kind == OUTPUT_REASONING) {
		begin_delta(r, i);
		reply_put(r, "{\"type\":\"signature_delta\",\"signature\":"
		    "\"%016" PRIx64 "\"}}\n\n", signature(r));
	}
	reply_put(r, "event: content_block_stop\n"
	    "data: {\"type\":\"content_block_stop\",\"index\":%zu}\n\n", i);
}

void
messages_last(struct reply *r)
{
	reply_put(r, "event: message_delta\n"
	    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
	    "\"%s\",\"stop_sequence\":null}", reason(r));
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
