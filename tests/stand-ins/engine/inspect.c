/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inspect.c - the contents of a cache, for tests that compare predictions with
 * it; the tokens of a prompt, as of vLLM; and the requests that empty it.
 *
 *   POST /cached  a body as for /v1/completions; nothing is run
 *        {"ranks":[{"held":TOKENS,"events":NUMBER},...]}
 *        of the first prompt, in leading blocks; and of the next batch
 *   POST /tokenize  a body as for a chat or a completion
 *   POST /v1/chat/completions/render
 */
#include "server.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include <event2/buffer.h>

static void
put_ranks(const struct server *s, const struct ask *a, struct evbuffer *body)
{
	struct sequence_facts facts = {
		.tokens = a->prompts[0].ids, .n_prompt = a->prompts[0].n,
		.salt = a->salt
	};
	uint32_t i;

	evbuffer_add_printf(body, "{\"ranks\":[");
	for (i = 0; i < s->facts->ranks; i++)
		evbuffer_add_printf(body, "%s{\"held\":%" PRIu64
		    ",\"events\":%" PRIu64 "}", i > 0 ? "," : "",
		    serving_held(s->ranks[i], &facts), s->events == NULL ? 0 :
		    events_next(s->events, i));
	evbuffer_add_printf(body, "]}");
}

static void
put_tokens(const struct ask *a, struct evbuffer *body)
{
	size_t i;

	for (i = 0; i < a->prompts[0].n; i++)
		evbuffer_add_printf(body, "%s%" PRIu32, i > 0 ? "," : "",
		    a->prompts[0].ids[i]);
}

/* Reads the body as a call of this kind; if it can, the caller answers. */
static bool
read_ask(struct link *l, struct ask *a, int kind)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(l->request);
	struct ask_rules rules = l->server->facts->rules;
	size_t n = evbuffer_get_length(in);
	const char *text = n == 0 ? "" :
	    (const char *)evbuffer_pullup(in, -1);

	if (text == NULL)
		a->status = 500;
	else
		ask_read(a, kind, &rules, text, n);
	if (a->status != 0)
		server_error(l, kind, a->status, a->error);
	return a->status == 0;
}

void
inspect_cached(struct link *l, struct evbuffer *body)
{
	struct ask a = { 0 };

	if (read_ask(l, &a, ASK_COMPLETIONS)) {
		put_ranks(l->server, &a, body);
		server_answer(l, 200, body);
	}
	ask_free(&a);
}

void
inspect_tokenize(struct link *l, struct evbuffer *body)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(l->request);
	bool chat = evbuffer_search(in, "\"messages\"", 10, NULL).pos >= 0;
	struct ask a = { 0 };

	if (read_ask(l, &a, chat ? ASK_CHAT : ASK_COMPLETIONS)) {
		evbuffer_add_printf(body, "{\"count\":%zu,\"max_model_len\":"
		    "1000000,\"tokens\":[", a.prompts[0].n);
		put_tokens(&a, body);
		evbuffer_add_printf(body, "],\"token_strs\":null}");
		server_answer(l, 200, body);
	}
	ask_free(&a);
}

void
inspect_render(struct link *l, struct evbuffer *body)
{
	struct ask a = { 0 };

	if (read_ask(l, &a, ASK_CHAT)) {
		evbuffer_add_printf(body, "{\"request_id\":\"render\","
		    "\"model\":");
		(void)reply_quote_to(body, l->server->facts->rules.models[0]);
		evbuffer_add_printf(body, ",\"token_ids\":[");
		put_tokens(&a, body);
		evbuffer_add_printf(body, "],\"sampling_params\":{}}");
		server_answer(l, 200, body);
	}
	ask_free(&a);
}

void
inspect_clear(struct link *l, struct evbuffer *body)
{
	struct server *s = l->server;
	struct serving_counts n;
	bool idle = true;
	uint32_t i;

	for (i = 0; i < s->facts->ranks; i++) {
		serving_counts(s->ranks[i], &n);
		idle = idle && n.running + n.waiting == 0;
	}
	if (!idle) {
		server_error(l, ASK_CHAT, 400, "requests are running");
		return;
	}
	server_run(s);
	for (i = 0; i < s->facts->ranks; i++) {
		if (!serving_clear(s->ranks[i]) || (s->events != NULL &&
		    !events_clear(s->events, i)))
			link_shut(l);
	}
	if (l->request != NULL)
		server_answer(l, 200, body);
}
