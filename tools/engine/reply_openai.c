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

void
openai_text(struct reply *r, size_t choice, size_t until)
{
	put_head(r, "data: ");
	reply_put(r, is_chat(r) ? "{\"index\":%zu,\"delta\":{\"content\":" :
	    "{\"index\":%zu,\"text\":", choice);
	reply_quote_tokens(r, choice, r->choices[choice].sent, until);
	r->choices[choice].sent = until;
	reply_put(r, "%s,\"logprobs\":null,\"finish_reason\":null}",
	    is_chat(r) ? "}" : "");
	end_chunk(r);
}

void
openai_stop(struct reply *r, size_t choice)
{
	put_head(r, "data: ");
	reply_put(r, "{\"index\":%zu,%s,\"logprobs\":null,"
	    "\"finish_reason\":\"%s\",\"stop_reason\":null}", choice,
	    is_chat(r) ? "\"delta\":{\"content\":\"\"}" : "\"text\":\"\"",
	    reply_reason(r, "length", "stop"));
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

void
openai_whole(struct reply *r)
{
	size_t i;

	put_head(r, "");
	for (i = 0; i < r->n_choices; i++) {
		reply_put(r, "%s{\"index\":%zu,%s", i == 0 ? "" : ",", i,
		    is_chat(r) ? "\"message\":{\"role\":\"assistant\","
		    "\"content\":" : "\"text\":");
		reply_quote_tokens(r, i, 0, r->choices[i].words.n);
		reply_put(r, "%s,\"logprobs\":null,\"finish_reason\":\"%s\","
		    "\"stop_reason\":null}",
		    is_chat(r) ? ",\"tool_calls\":[]}" : "",
		    reply_reason(r, "length", "stop"));
	}
	reply_put(r, "]");
	if (r->usage != USAGE_NONE)
		put_usage(r, r->generated, true);
	reply_put(r, "}");
}
