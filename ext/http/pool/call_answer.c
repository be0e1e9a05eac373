/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_answer.c - the response while it passes.
 *
 *   head, < 400     the request was accepted; commit, if a stream follows
 *   first event     first token: heads come before prefill
 *   usage           kept until the end, and cut if only the proxy asked for it
 *   message         kept until the end: call_end.h
 */
#include "pool_in.h"

#include <string.h>

#include "call_body.h"
#include "call_book.h"
#include "call_choose.h"
#include "call_end.h"
#include "call_prefill.h"
#include "call_session.h"
#include "pool_count.h"
#include "pool_gray.h"
#include "pool_server.h"
#include "pool_text.h"
#include "usage_ask.h"

_Static_assert((int)ANSWER_HELD_MAX <= (int)KVH_WRITE_MORE,
    "room of the caller");

#define SECOND INT64_C(1000000000)

/* ----------------------------------------------------------------- head --- */

/*
 * Servers ahead of the target that answered were tried in vain. A server that
 * is no target was the proxy's own choice, which is no target's failure. The
 * server is referred to; NULL: it is unknown.
 */
static struct pool_server *
served_look(struct kvh_call *c, const char *served, size_t n)
{
	struct pool_server *s;
	uint32_t i, at = 0;

	pool_lock(c->h);
	while (at < c->n_targets && !text_same(c->target[at].server->name,
	    c->target[at].server->length, served, n))
		at++;
	s = at < c->n_targets ? c->target[at].server : server_find(c->h,
	    served, n);
	if (s != NULL)
		s->refs++;
	for (i = 1; i < at && at < c->n_targets; i++)
		if (c->target[i].failure == 0)
			server_failed(c->h, c->target[i].server, c->now);
	pool_unlock(c->h);
	return s;
}

static int
served_find(struct kvh_call *c, const char *served, size_t n)
{
	struct pool_server *s = served_look(c, served, n);
	bool target = false;
	uint32_t i;

	for (i = 0; i < c->n_targets; i++)
		target |= s == c->target[i].server;
	if (s == NULL || s != c->target[0].server)
		target_change(c, s, target, c->target[0].failure != 0 ?
		    c->target[0].failure : target ? KVH_BROKE : KVH_NOT_SENT);
	if (s == NULL)
		return KVH_ENAME;
	pool_lock(c->h);
	s->refs--;
	pool_unlock(c->h);
	return KVR_OK;
}

/* Begins to read the body of a response, if it can be read. */
static void
answer_watch(struct kvh_call *c, const char *type, size_t type_len,
    bool coded)
{
	if (!c->h->options.feedback || c->status < 200 || c->status >= 300 ||
	    (c->endpoint == ENDPOINT_OTHER && c->keeps.binds == 0) ||
	    coded || c->n_targets == 0 || !passing_begin(&c->passing,
	    &c->h->spares, passing_type_is(type, type_len,
	    "application/json"), c->asked))
		return;
	if (c->lease != 0 && c->prompt != NULL && c->facts.extends)
		passing_extends(&c->passing, &c->h->spares, c->endpoint,
		    c->prompt);
}

/* The engine has accepted the request. */
static void
head_take(struct kvh_call *c, const char *type, size_t type_len, bool coded)
{
	c->taken = true;
	c->passing.stream = passing_type_is(type, type_len,
	    "text/event-stream");
	call_book_late(c);
	/* Other responses are committed by their end. */
	if (c->lease != 0 && c->passing.stream)
		(void)kvr_lease_commit(c->h->k, c->lease, c->now, KVR_NOWAIT);
	if (c->passing.stream)
		prefill_accepted(c);
	if (c->status >= 200 && c->status < 300) {
		session_accepted(c);
		gray_accepted(c);
	}
	answer_watch(c, type, type_len, coded);
	prompt_leave(c);
}

int
kvh_response(struct kvh_call *c, uint32_t status, const char *type,
    size_t type_len, const char *coding, size_t coding_len,
    const char *served, size_t served_len, int64_t now, uint32_t *rewrites)
{
	int error = KVR_OK;

	if (c == NULL || rewrites == NULL || (type == NULL && type_len > 0) ||
	    (coding == NULL && coding_len > 0) ||
	    (served == NULL && served_len > 0))
		return KVR_EINVAL;
	*rewrites = 0;
	if (c->stage != CALL_SENT)
		return KVH_EORDER;
	/* The head of the response follows; 101 is one. */
	if (status >= 100 && status < 200 && status != 101)
		return KVR_OK;
	c->now = pool_now(now);
	if (served_len > 0)
		error = served_find(c, served, served_len);
	else
		target_follow(c);
	c->stage = CALL_ANSWERED;
	c->status = status;
	c->head_at = c->now;
	c->evidence.answered = true;
	if (c->asked)
		usage_answered(&c->h->fleet, status, c->now / SECOND, NULL);
	if (status > 0 && status < 400)
		head_take(c, type, type_len, coding_len > 0 &&
		    !text_is(coding, coding_len, "identity"));
	*rewrites = c->passing.strip;
	return error;
}

/* ----------------------------------------------------------------- body --- */

int
kvh_response_data(struct kvh_call *c, const void *bytes, size_t n,
    int64_t now, char *out, size_t room, size_t *written)
{
	size_t left = n, held;

	if (c == NULL || (bytes == NULL && n > 0) ||
	    (out != NULL && written == NULL))
		return KVR_EINVAL;
	if (c->stage != CALL_ANSWERED)
		return KVH_EORDER;
	held = c->passing.strip ? answer_held(c->passing.answer) : 0;
	if ((out == NULL && c->passing.strip) ||
	    (out != NULL && room < n + held))
		return KVR_EINVAL;
	c->now = pool_now(now);
	if (c->passing.strip && n > 0)
		left = passing_strip(&c->passing, c->h->fleet.shared, bytes, n,
		    out);
	else if (n > 0)
		passing_data(&c->passing, bytes, n);
	if (!c->passing.strip && out != NULL && n > 0)
		memcpy(out, bytes, n);
	if (written != NULL)
		*written = left;
	if (c->passing.answer == NULL)
		return KVR_OK;
	session_answered(c);
	if (passing_token(&c->passing, c->h->k, c->lease, c->now)) {
		pool_time(c->h, HISTOGRAM_FIRST, c->now - c->began);
		prefill_started(c);
	}
	gray_progress(c);
	return KVR_OK;
}

/* ------------------------------------------------------------------ end --- */

int
kvh_end(struct kvh_call *c, uint32_t how, int64_t now, char *out, size_t room,
    size_t *written)
{
	size_t held, n = 0;

	if (c == NULL || how > KVH_NOT_SEEN || (out != NULL && written == NULL))
		return KVR_EINVAL;
	if (c->stage == CALL_ENDED)
		return KVH_EORDER;
	held = c->passing.strip ? answer_held(c->passing.answer) : 0;
	if ((out == NULL && held > 0 && how == KVH_WHOLE) ||
	    (out != NULL && room < held))
		return KVR_EINVAL;
	c->now = pool_now(now);
	if (out != NULL && held > 0)
		n = passing_flush(&c->passing, c->h->fleet.shared, out);
	if (written != NULL)
		*written = n;
	call_over(c, how);
	return KVR_OK;
}
