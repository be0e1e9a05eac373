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

static const struct output_part *
part_of(const struct reply *r, size_t i)
{
	return &r->choices[0].output.parts[i];
}

static void
put_type(struct reply *r, const struct output_part *p)
{
	reply_put(r, p->kind == OUTPUT_REASONING ?
	    "{\"type\":\"reasoning_text\",\"text\":" :
	    "{\"type\":\"output_text\",\"annotations\":[],\"text\":");
}

/* Content of a message or of reasoning. */
static void
put_part(struct reply *r, const struct output_part *p, bool complete)
{
	put_type(r, p);
	reply_quote_tokens(r, 0, p->first, complete ? p->last : p->first);
	reply_put(r, "}");
}

static void
put_call(struct reply *r, const struct output_part *p, bool complete)
{
	reply_put(r, "{\"type\":\"function_call\",\"id\":\"fc_%016" PRIx64
	    "\",\"call_id\":\"call_%016" PRIx64 "\",\"status\":\"%s\","
	    "\"name\":", p->id, p->id,
	    complete ? "completed" : "in_progress");
	reply_quote(r, p->name, strlen(p->name));
	reply_put(r, ",\"arguments\":");
	reply_quote_tokens(r, 0, p->first, complete ? p->last : p->first);
	reply_put(r, "}");
}

static void
put_item(struct reply *r, size_t i, bool complete)
{
	const struct output_part *p = part_of(r, i);
	const char *status = complete ? "completed" : "in_progress";
	const char *digits = strchr(r->id, '_') + 1;

	if (p->kind == OUTPUT_TOOL) {
		put_call(r, p, complete);
		return;
	}
	if (p->kind == OUTPUT_REASONING)
		reply_put(r, "{\"type\":\"reasoning\",\"id\":\"rs_%s\","
		    "\"status\":\"%s\",\"summary\":[],\"content\":[",
		    digits, status);
	else
		reply_put(r, "{\"type\":\"message\",\"id\":\"msg_%s\","
		    "\"role\":\"assistant\",\"status\":\"%s\","
		    "\"content\":[", digits, status);
	if (complete)
		put_part(r, p, true);
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
	    "{\"reasoning_tokens\":%zu},\"total_tokens\":%" PRIu64 "}",
	    r->generated, output_reasoning(&r->choices[0].output),
	    r->prompt + r->generated);
}

/* Writes the response it went on from; ids are the engine's own. */
static void
put_state(struct reply *r)
{
	const struct ask *a = r->ask;

	if (a->previous == NULL)
		reply_put(r, ",\"previous_response_id\":null");
	else
		reply_put(r, ",\"previous_response_id\":\"%s\"",
		    a->previous);
	if (a->conversation != NULL)
		reply_put(r, ",\"conversation\":{\"id\":\"%s\"}",
		    a->conversation);
}

static void
put_response(struct reply *r, bool complete)
{
	const char *status = complete ?
	    reply_reason(r, 0, "incomplete", "completed", "completed") :
	    "in_progress";
	size_t i;

	reply_put(r, "{\"id\":\"%s\",\"object\":\"response\","
	    "\"created_at\":%" PRId64 ",\"status\":\"%s\",\"model\":",
	    r->id, r->created, status);
	reply_quote(r, r->ask->model, strlen(r->ask->model));
	put_state(r);
	reply_put(r, ",\"output\":[");
	for (i = 0; complete && i < r->choices[0].output.n_parts; i++) {
		reply_put(r, "%s", i == 0 ? "" : ",");
		put_item(r, i, true);
	}
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
}

/* An event about a part of an item; its last member and end are missing. */
static void
begin_part_event(struct reply *r, const char *type, size_t i)
{
	begin_event(r, type);
	reply_put(r, ",\"output_index\":%zu", i);
	if (part_of(r, i)->kind != OUTPUT_TOOL)
		reply_put(r, ",\"content_index\":0");
}

static void
item_event(struct reply *r, const char *type, size_t i, bool complete)
{
	begin_event(r, type);
	reply_put(r, ",\"output_index\":%zu,\"item\":", i);
	put_item(r, i, complete);
	end_event(r);
}

static void
part_event(struct reply *r, const char *type, size_t i, bool complete)
{
	if (part_of(r, i)->kind == OUTPUT_TOOL)
		return;
	begin_part_event(r, type, i);
	reply_put(r, ",\"part\":");
	put_part(r, part_of(r, i), complete);
	end_event(r);
}

void
responses_begin(struct reply *r, size_t i)
{
	item_event(r, "response.output_item.added", i, false);
	part_event(r, "response.content_part.added", i, false);
}

void
responses_text(struct reply *r, size_t i, size_t first, size_t last)
{
	static const char *const types[] = {
		[OUTPUT_REASONING] = "response.reasoning_text.delta",
		[OUTPUT_TEXT] = "response.output_text.delta",
		[OUTPUT_TOOL] = "response.function_call_arguments.delta"
	};

	begin_part_event(r, types[part_of(r, i)->kind], i);
	reply_put(r, ",\"delta\":");
	reply_quote_tokens(r, 0, first, last);
	end_event(r);
}

void
responses_end(struct reply *r, size_t i)
{
	static const char *const types[] = {
		[OUTPUT_REASONING] = "response.reasoning_text.done",
		[OUTPUT_TEXT] = "response.output_text.done",
		[OUTPUT_TOOL] = "response.function_call_arguments.done"
	};
	const struct output_part *p = part_of(r, i);

	begin_part_event(r, types[p->kind], i);
	reply_put(r, p->kind == OUTPUT_TOOL ? ",\"arguments\":" :
	    ",\"text\":");
	reply_quote_tokens(r, 0, p->first, p->last);
	end_event(r);
	part_event(r, "response.content_part.done", i, true);
	item_event(r, "response.output_item.done", i, true);
}

void
responses_last(struct reply *r)
{
	put_event_of_response(r, reply_reason(r, 0, "response.incomplete",
	    "response.completed", "response.completed"), true);
}

void
responses_whole(struct reply *r)
{
	put_response(r, true);
}
