/* SPDX-License-Identifier: BSD-2-Clause */
/* reply.c - see reply.h: by the endpoint. */
#include "reply_in.h"

#include <inttypes.h>
#include <string.h>

void
reply_early(struct reply *r)
{
	if (r->ask->kind == ASK_RESPONSES)
		responses_early(r);
	else if (r->ask->kind == ASK_MESSAGES)
		messages_early(r);
	r->early = true;
}

void
reply_first(struct reply *r)
{
	if (r->ask->kind == ASK_RESPONSES)
		responses_first(r);
	else if (r->ask->kind == ASK_MESSAGES)
		messages_first(r);
	else
		openai_first(r);
}

static void
part_begin(struct reply *r, size_t choice, size_t i)
{
	if (r->ask->kind == ASK_RESPONSES)
		responses_begin(r, i);
	else if (r->ask->kind == ASK_MESSAGES)
		messages_begin(r, i);
	else
		openai_begin(r, choice, i);
}

static void
part_text(struct reply *r, size_t choice, size_t i, size_t first, size_t last)
{
	if (r->ask->kind == ASK_RESPONSES)
		responses_text(r, i, first, last);
	else if (r->ask->kind == ASK_MESSAGES)
		messages_text(r, i, first, last);
	else
		openai_text(r, choice, i, first, last);
}

static void
part_end(struct reply *r, size_t i)
{
	if (r->ask->kind == ASK_RESPONSES)
		responses_end(r, i);
	else if (r->ask->kind == ASK_MESSAGES)
		messages_end(r, i);
}

/* Tokens between parts, around calls, are not sent. */
void
reply_text(struct reply *r, size_t choice, size_t until)
{
	struct choice_text *c = &r->choices[choice];
	const struct output_part *p;
	size_t i, first, last;

	for (i = 0; i < c->output.n_parts; i++) {
		p = &c->output.parts[i];
		if (c->sent >= p->last || until <= p->first)
			continue;
		first = c->sent > p->first ? c->sent : p->first;
		last = until < p->last ? until : p->last;
		if (first == p->first)
			part_begin(r, choice, i);
		c->sent = last;
		part_text(r, choice, i, first, last);
		if (last == p->last)
			part_end(r, i);
	}
	if (c->sent < until)
		c->sent = until;
}

void
reply_stop(struct reply *r, size_t choice)
{
	if (r->ask->kind == ASK_CHAT || r->ask->kind == ASK_COMPLETIONS)
		openai_stop(r, choice);
}

void
reply_last(struct reply *r)
{
	if (r->ask->kind == ASK_RESPONSES)
		responses_last(r);
	else if (r->ask->kind == ASK_MESSAGES)
		messages_last(r);
	else
		openai_last(r);
}

/* Numbers that the prompt decides. */
static void
embeddings_whole(struct reply *r)
{
	size_t i, n;

	reply_put(r, "{\"id\":\"embd-%" PRIx64 "\",\"object\":\"list\","
	    "\"created\":%" PRId64 ",\"model\":", r->number, r->created);
	reply_quote(r, r->ask->model, strlen(r->ask->model));
	reply_put(r, ",\"data\":[");
	for (i = 0; i < r->n_choices; i++) {
		n = r->ask->prompts[i].n;
		reply_put(r, "%s{\"index\":%zu,\"object\":\"embedding\","
		    "\"embedding\":[0.%06zu,-0.%06" PRIu32 "]}",
		    i == 0 ? "" : ",", i, n % 1000000,
		    r->ask->prompts[i].ids[n - 1] % 1000000);
	}
	reply_put(r, "],\"usage\":{\"prompt_tokens\":%" PRIu64
	    ",\"total_tokens\":%" PRIu64 "}}", r->prompt, r->prompt);
}

void
reply_whole(struct reply *r)
{
	if (r->ask->kind == ASK_RESPONSES)
		responses_whole(r);
	else if (r->ask->kind == ASK_MESSAGES)
		messages_whole(r);
	else if (r->ask->kind == ASK_EMBEDDINGS)
		embeddings_whole(r);
	else
		openai_whole(r);
}

void
reply_error(struct evbuffer *out, int kind, int status, const char *text)
{
	bool client = status < 500, missing = status == 404;

	if (kind == ASK_MESSAGES)
		evbuffer_add_printf(out, "{\"type\":\"error\",\"error\":"
		    "{\"type\":\"%s\",\"message\":", missing ?
		    "not_found_error" : client ? "invalid_request_error" :
		    "api_error");
	else
		evbuffer_add_printf(out, "{\"error\":{\"type\":\"%s\","
		    "\"param\":null,\"code\":%d,\"message\":", missing ?
		    "NotFoundError" : client ? "BadRequestError" :
		    "InternalServerError", status);
	if (!reply_quote_to(out, text))
		evbuffer_add_printf(out, "\"\"");
	evbuffer_add_printf(out, "}}");
}
