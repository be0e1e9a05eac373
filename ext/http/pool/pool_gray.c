/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_gray.c - see pool_gray.h. */
#include "pool_gray.h"

#include "judge.h"

void
gray_sent(struct kvh_call *c)
{
	const struct pool_server *s = c->target[0].server;
	struct evidence *e = &c->evidence;

	/* A call without a prompt would show nothing. */
	e->prompts = c->endpoint != ENDPOINT_OTHER;
	e->name = s->name;
	e->name_len = s->length;
	c->head_at = 0;
	if (!judge_on(&c->h->fleet))
		return;
	pool_lock(c->h);
	evidence_sent(&c->h->fleet, e, s->at, c->worker, c->now);
	pool_unlock(c->h);
	if (e->due && c->h->options.gray > 0 && c->digest == 0)
		c->digest = evidence_digest(c->prompt);
}

void
gray_accepted(struct kvh_call *c)
{
	if (c->evidence.n_tries == 0)
		return;
	pool_lock(c->h);
	evidence_accepted(&c->h->fleet, &c->evidence, c->now, NULL);
	pool_unlock(c->h);
}

void
gray_progress(struct kvh_call *c)
{
	uint64_t events;

	if (c->h->options.gray <= 0 || !answer_started(c->passing.answer))
		return;
	events = answer_events(c->passing.answer);
	if (!evidence_is_due(&c->evidence, events, c->now))
		return;
	pool_lock(c->h);
	evidence_progress(&c->h->fleet, &c->evidence, events, c->worker,
	    c->now, NULL);
	pool_unlock(c->h);
}

static uint64_t
client_of(const struct kvh_call *c)
{
	uint64_t of[2];

	of[0] = shared_key(c->client.bytes, c->client.length);
	of[1] = shared_key(c->scope.bytes, c->scope.length);
	return shared_key(of, sizeof(of));
}

void
gray_end(struct kvh_call *c, bool taken, bool client_left)
{
	struct evidence *e = &c->evidence;
	const struct evidence_end how = {
		.worker = c->moved ? 0 : c->worker, .taken = taken,
		.left = client_left, .stream = c->passing.stream,
		.head_ns = c->head_at > 0 ? c->head_at - e->sent_at : -1,
		.prompt_tokens = c->decision.prompt_tokens,
		.overlap_tokens = c->decision.overlap_tokens,
		.report = &c->passing.report };

	if (!e->due)
		return;
	if (e->failed) {
		e->failed_prompt = c->digest != 0 ? c->digest : c->given | 1;
		e->failed_client = client_of(c);
	}
	pool_lock(c->h);
	evidence_end(&c->h->fleet, e, &how, c->now, NULL);
	pool_unlock(c->h);
}
