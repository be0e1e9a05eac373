/* SPDX-License-Identifier: BSD-2-Clause */
/* sessions_drive.c - see sessions_drive.h. */
#include "sessions_drive.h"

#include "sessions.h"
#include "simulate.h"
#include "tokens.h"
#include "trace.h"

#include <stddef.h>

struct drive {
	struct sessions *from;
	struct simulation *to;
	struct kvr_prompt *prompt;
	struct tokens *tokens;
	uint64_t ended; /* responses */
};

static int
tell_ended(struct drive *d, int64_t now)
{
	uint64_t ticket;

	for (; simulate_next_done(d->to, &ticket); d->ended++)
		if (sessions_ended(d->from, ticket, now) != 0)
			return KVR_ENOMEM;
	return KVR_OK;
}

static int
send_next(struct drive *d, int64_t now)
{
	struct trace_request q;
	int e;

	if (sessions_take(d->from, &q) != 0 ||
	    tokens_make(d->tokens, &q) != 0)
		return KVR_ENOMEM;
	e = kvr_prompt_set_tokens(d->prompt, NULL, d->tokens->tokens,
	    q.tokens);
	return e == KVR_OK ? simulate_request(d->to, d->prompt, &q, now) : e;
}

int
sessions_drive(struct sessions *from, struct simulation *to,
    struct kvr_prompt *prompt, struct tokens *tokens, sessions_tick *tick,
    void *context)
{
	struct drive d = { from, to, prompt, tokens, 0 };
	uint64_t sent = 0, ended;
	int64_t next, now;
	int e = KVR_OK;

	while (e == KVR_OK && !sessions_done(from)) {
		ended = d.ended;
		next = sessions_next(from);
		e = simulate_until(to, next, &now);
		if (e == KVR_OK)
			e = tell_ended(&d, now);
		/* Engines are idle, and no request would ever come. */
		if (e == KVR_OK && next == SESSIONS_NEVER && d.ended == ended)
			e = KVR_ECORRUPT;
		/* The end may have led to a request before `next`. */
		if (e != KVR_OK || next == SESSIONS_NEVER || now < next ||
		    sessions_next(from) != next)
			continue;
		e = send_next(&d, now);
		if (e == KVR_OK)
			e = tell_ended(&d, now);
		if (tick != NULL)
			tick(context, ++sent);
	}
	return e == KVR_OK ? simulate_drain(to) : e;
}
