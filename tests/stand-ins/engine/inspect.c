/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inspect.c - the contents of a cache, for tests that compare predictions with
 * it; and the requests that empty it.
 *
 *   POST /cached  a body as for /v1/completions; nothing is run
 *        {"ranks":[{"held":TOKENS,"events":NUMBER},...]}
 *        of the first prompt, in leading blocks; and of the next batch
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

void
inspect_cached(struct link *l, struct evbuffer *body)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(l->request);
	struct ask_rules rules = l->server->facts->rules;
	size_t n = evbuffer_get_length(in);
	const char *text = n == 0 ? "" :
	    (const char *)evbuffer_pullup(in, -1);
	struct ask a = { 0 };

	if (text == NULL)
		a.status = 500;
	else
		ask_read(&a, ASK_COMPLETIONS, &rules, text, n);
	if (a.status == 0) {
		put_ranks(l->server, &a, body);
		server_answer(l, 200, body);
	} else {
		server_error(l, ASK_COMPLETIONS, a.status, a.error);
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
	for (i = 0; i < s->facts->ranks; i++)
		if (!serving_clear(s->ranks[i]) || (s->events != NULL &&
		    !events_clear(s->events, i)))
			link_shut(l);
	if (l->request != NULL)
		server_answer(l, 200, body);
}
