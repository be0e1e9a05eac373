/* SPDX-License-Identifier: BSD-2-Clause */
/* reply_openai.c - chat completions and completions; see reply.h. */
#include "reply_in.h"

#include <inttypes.h>
#include <string.h>

static bool
is_chat(const struct reply *r)
{
	return r->ask->kind == ASK_CHAT;
}

static void
put_head(struct reply *r, const char *event)
{
	reply_put(r, "%s{\"id\":\"%s-%" PRIx64 "\",\"object\":\"%s%s\","
	    "\"created\":%" PRId64 ",\"model\":", event,
	    is_chat(r) ? "chatcmpl" : "cmpl", r->number,
	    is_chat(r) ? "chat.completion" : "text_completion",
	    is_chat(r) && event[0] != '\0' ? ".chunk" : "", r->created);
	reply_quote(r, r->ask->model, strlen(r->ask->model));
	reply_put(r, ",\"choices\":[");
}

/* Details: a number, null, or in a chunk of continuous usage missing. */
static void
put_usage(struct reply *r, uint64_t generated, bool details)
{
	reply_put(r, ",\"usage\":{\"prompt_tokens\":%" PRIu64
	    ",\"total_tokens\":%" PRIu64 ",\"completion_tokens\":%" PRIu64,
	    r->prompt, r->prompt + generated, generated);
	if (details && reply_cached_known(r))
		reply_put(r, ",\"prompt_tokens_details\":{\"cached_tokens\":%"
		    PRIu64 "}", r->cached);
	else if (details)
		reply_put(r, ",\"prompt_tokens_details\":null");
	reply_put(r, "}");
}

static void
end_chunk(struct reply *r)
{
	uint64_t sent = 0;
	size_t i;

	reply_put(r, "]");
	for (i = 0; i < r->n_choices; i++)
		sent += r->choices[i].sent;
	if (r->ask->continuous_usage && r->usage != USAGE_NONE)
		put_usage(r, sent, false);
	reply_put(r, "}\n\n");
}

void
openai_first(struct reply *r)
{
	size_t i;

	for (i = 0; i < r->n_choices && is_chat(r); i++) {
		put_head(r, "data: ");
		reply_put(r, "{\"index\":%zu,\"delta\":{\"role\":\"assistant\","
		    "\"content\":\"\"},\"logprobs\":null,"
		    "\"finish_reason\":null}", i);
		end_chunk(r);
	}
}

static const struct output_part *
part_of(const struct reply *r, size_t choice, size_t i)
{
	return &r->choices[choice].output.parts[i];
}

/* Returns the index among all calls of a choice. */
static size_t
call_index(const struct reply *r, size_t choice, size_t i)
{
	size_t n = 0;

	while (i-- > 0)
		n += part_of(r, choice, i)->kind == OUTPUT_TOOL;
	return n;
}

static void
begin_delta(struct reply *r, size_t choice)
{
	put_head(r, "data: ");
	reply_put(r, "{\"index\":%zu,", choice);
}

static void
end_delta(struct reply *r)
{
	reply_put(r, ",\"logprobs\":null,\"finish_reason\":null}");
	end_chunk(r);
}

/* A call begins with its name. */
void
openai_begin(struct reply *r, size_t choice, size_t i)
{
	const struct output_part *p = part_of(r, choice, i);

	if (p->kind != OUTPUT_TOOL)
		return;
	begin_delta(r, choice);
	reply_put(r, "\"delta\":{\"tool_calls\":[{\"id\":\"call_%016" PRIx64
	    "\",\"type\":\"function\",\"index\":%zu,\"function\":{\"name\":",
	    p->id, call_index(r, choice, i));
	reply_quote(r, p->name, strlen(p->name));
	reply_put(r, ",\"arguments\":\"\"}}]}");
	end_delta(r);
}

void
openai_text(struct reply *r, size_t choice, size_t i, size_t first,
    size_t last)
{
	const struct output_part *p = part_of(r, choice, i);
	const char *end = is_chat(r) ? "}" : "";

	begin_delta(r, choice);
	if (p->kind == OUTPUT_TOOL) {
		reply_put(r, "\"delta\":{\"tool_calls\":[{\"index\":%zu,"
		    "\"function\":{\"arguments\":",
		    call_index(r, choice, i));
		end = "}}]}";
	} else if (p->kind == OUTPUT_REASONING) {
		reply_put(r, "\"delta\":{\"reasoning_content\":");
	} else {
		reply_put(r, is_chat(r) ? "\"delta\":{\"content\":" :
		    "\"text\":");
	}
	reply_quote_tokens(r, choice, first, last);
	reply_put(r, "%s", end);
	end_delta(r);
}

void
openai_stop(struct reply *r, size_t choice)
{
	put_head(r, "data: ");
	reply_put(r, "{\"index\":%zu,%s,\"logprobs\":null,"
	    "\"finish_reason\":\"%s\",\"stop_reason\":null}", choice,
	    is_chat(r) ? "\"delta\":{\"content\":\"\"}" : "\"text\":\"\"",
	    reply_reason(r, choice, "length", "stop", "tool_calls"));
	end_chunk(r);
}

void
openai_last(struct reply *r)
{
	if (r->ask->include_usage && r->usage != USAGE_NONE) {
		put_head(r, "data: ");
		reply_put(r, "]");
		put_usage(r, r->generated, true);
		reply_put(r, "}\n\n");
	}
	reply_put(r, "data: [DONE]\n\n");
}

/* The text of such a part, or null. */
static void
put_text(struct reply *r, size_t choice, enum output_kind kind)
{
	const struct output_part *p = reply_part(r, choice, kind);

	if (p == NULL)
		reply_put(r, "null");
	else
		reply_quote_tokens(r, choice, p->first, p->last);
}

static void
put_calls(struct reply *r, size_t choice)
{
	const struct output *o = &r->choices[choice].output;
	const struct output_part *p;
	const char *comma = "";
	size_t i;

	reply_put(r, ",\"tool_calls\":[");
	for (i = 0; i < o->n_parts; i++) {
		p = &o->parts[i];
		if (p->kind != OUTPUT_TOOL)
			continue;
		reply_put(r, "%s{\"id\":\"call_%016" PRIx64 "\",\"type\":"
		    "\"function\",\"function\":{\"name\":", comma, p->id);
		reply_quote(r, p->name, strlen(p->name));
		reply_put(r, ",\"arguments\":");
		reply_quote_tokens(r, choice, p->first, p->last);
		reply_put(r, "}}");
		comma = ",";
	}
	reply_put(r, "]");
}

static void
put_message(struct reply *r, size_t choice)
{
	reply_put(r, "\"message\":{\"role\":\"assistant\",\"content\":");
	put_text(r, choice, OUTPUT_TEXT);
	put_calls(r, choice);
	if (reply_part(r, choice, OUTPUT_REASONING) != NULL) {
		reply_put(r, ",\"reasoning_content\":");
		put_text(r, choice, OUTPUT_REASONING);
	}
	reply_put(r, "}");
}

void
openai_whole(struct reply *r)
{
	size_t i;

	put_head(r, "");
	for (i = 0; i < r->n_choices; i++) {
		reply_put(r, "%s{\"index\":%zu,", i == 0 ? "" : ",", i);
		if (is_chat(r)) {
			put_message(r, i);
		} else {
			reply_put(r, "\"text\":");
			put_text(r, i, OUTPUT_TEXT);
		}
		reply_put(r, ",\"logprobs\":null,\"finish_reason\":\"%s\","
		    "\"stop_reason\":null}",
		    reply_reason(r, i, "length", "stop", "tool_calls"));
	}
	reply_put(r, "]");
	if (r->usage != USAGE_NONE)
		put_usage(r, r->generated, true);
	reply_put(r, "}");
}
