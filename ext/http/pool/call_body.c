/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_body.c - see call_body.h.
 *
 *   kvh_body     --> body_data --> prompt          up to max_body=
 *                `-> salt_data --> where it goes   all of it
 *   kvh_tokens   --> {"prompt":[1,2,3]} --> body_data: the prompt that a body
 *                    with these tokens would have
 */
#include "call_body.h"

#include <string.h>

#include "call_session.h"
#include "pool_count.h"
#include "pool_ignore.h"
#include "prompt_scope.h"
#include "text_writer.h"

void
prompt_leave(struct kvh_call *c)
{
	spare_prompt_back(&c->h->spares, c->prompt);
	c->prompt = NULL;
}

void
body_leave(struct kvh_call *c)
{
	spare_body_back(&c->h->spares, c->body);
	c->body = NULL;
}

/* Without memory the request has no prompt. */
static void
body_start(struct kvh_call *c, enum endpoint endpoint)
{
	struct kvh *h = c->h;

	if (c->body_begun)
		return;
	c->body_begun = true;
	if (endpoint == ENDPOINT_OTHER || c->bypass)
		return;
	c->body = spare_body(&h->spares);
	c->prompt = spare_prompt(&h->spares, h->k);
	if (c->body == NULL || c->prompt == NULL) {
		body_leave(c);
		prompt_leave(c);
		return;
	}
	body_reasoning(c->body, h->options.reasoning == 1);
	if (h->ignores)
		body_ignore(c->body, ignore_line, &h->ignored);
	body_begin(c->body, c->prompt, endpoint);
}

/* Images and the like take no part of max_body. */
static void
body_feed(struct kvh_call *c, const void *bytes, size_t n)
{
	uint64_t most, left;

	if (c->body == NULL || c->cut || n == 0)
		return;
	most = c->h->options.max_body + body_beside(c->body);
	left = most > c->given ? most - c->given : 0;
	body_data(c->body, bytes, n < left ? n : (size_t)left);
	c->cut = n > left;
	if (c->cut)
		body_cut(c->body);
}

int
kvh_body(struct kvh_call *c, const void *bytes, size_t n)
{
	if (c == NULL || (bytes == NULL && n > 0))
		return KVR_EINVAL;
	if (c->stage != CALL_READS || c->tokens)
		return KVH_EORDER;
	body_start(c, c->endpoint);
	if (c->scan != NULL && n > 0)
		salt_data(c->scan, bytes, n);
	body_feed(c, bytes, n);
	c->given += n;
	return KVR_OK;
}

/* --------------------------------------------------------------- tokens --- */

int
kvh_tokens(struct kvh_call *c, const uint32_t *tokens, size_t n)
{
	char text[WRITER_DIGITS + 1], *end;
	bool first;
	size_t i;

	if (c == NULL || (tokens == NULL && n > 0))
		return KVR_EINVAL;
	if (c->stage != CALL_READS || (c->body_begun && !c->tokens))
		return KVH_EORDER;
	first = c->given == 0;
	if (!c->body_begun) {
		body_start(c, ENDPOINT_COMPLETIONS);
		if (c->endpoint == ENDPOINT_OTHER)
			c->endpoint = ENDPOINT_COMPLETIONS;
		body_feed(c, "{\"prompt\":[", 11);
	}
	for (i = 0; i < n; i++) {
		text[0] = ',';
		end = digits_write(text + 1, tokens[i]);
		body_feed(c, text + first, (size_t)(end - text) - first);
		first = false;
		c->given += 4;
	}
	c->tokens = true;
	return KVR_OK;
}

/* ------------------------------------------------------------------ end --- */

static bool
prompt_end(struct kvh_call *c)
{
	const struct scope_texts of = {
		.model = { c->model.bytes, c->model.length },
		.salt = { c->salt.bytes, c->salt.length },
		.tenant = { c->scope.bytes, c->scope.length } };

	return prompt_scope_end(c->prompt, &c->prompt_scope, c->h->k, c->body,
	    &of);
}

/* Counts a prompt that differs from an earlier one at its front alone. */
static void
front_look(struct kvh_call *c)
{
	pool_lock(c->h);
	fronts_look(&c->h->fronts, &c->h->fleet, c->prompt, &c->prompt_scope,
	    NULL);
	pool_unlock(c->h);
}

static void
facts_take(struct kvh_call *c, uint32_t whole)
{
	if (c->tokens)
		body_feed(c, "]}", 2);
	if (!whole)
		body_cut(c->body);
	c->opinion = reason_of_body(body_end(c->body, &c->facts));
	pool_count(c->h, COUNT_READ, 1);
	if (!c->told_model) {
		c->model.length = c->facts.model_length <
		    sizeof(c->model.bytes) ? c->facts.model_length :
		    sizeof(c->model.bytes);
		memcpy(c->model.bytes, c->facts.model, c->model.length);
	}
	if (c->tokens)
		c->facts.extends = false;
	if (c->facts.cut)
		pool_count(c->h, COUNT_TRUNCATED, 1);
	if (c->opinion != REASON_COST)
		return;
	if (!prompt_end(c))
		c->opinion = REASON_FAILED;
	else if (!c->facts.media)
		front_look(c);
}

static void
opinion_form(struct kvh_call *c, uint32_t whole)
{
	static const struct body_facts none;
	const bool read = c->body != NULL;

	if (c->bypass)
		c->opinion = REASON_BYPASS;
	else if (c->endpoint == ENDPOINT_OTHER)
		c->opinion = REASON_ENDPOINT;
	else if (!c->body_begun)
		c->opinion = REASON_NO_BODY;
	else if (!read)
		c->opinion = REASON_FAILED;
	else
		facts_take(c, whole);
	session_digest(c, read ? &c->facts : &none);
	c->reason = c->opinion;
	body_leave(c);
	c->facts.model = NULL;
	memset(c->facts.id, 0, sizeof(c->facts.id));
	if (c->opinion != REASON_COST)
		prompt_leave(c);
}

/* False: the engine would read the body with another salt, or none. */
static bool
salt_fits(struct kvh_call *c, uint32_t whole)
{
	if (c->scan == NULL || c->tokens || c->given == 0 ||
	    (c->endpoint == ENDPOINT_OTHER && c->not_json)) {
		c->unsalted = true;
		return true;
	}
	return whole && salt_end(c->scan);
}

int
kvh_body_end(struct kvh_call *c, uint32_t whole)
{
	if (c == NULL)
		return KVR_EINVAL;
	if (c->stage != CALL_READS)
		return KVH_EORDER;
	if (c->scope_told.length > 0)
		c->scope = c->scope_told;
	else if (c->unscoped)
		c->bypass = true;
	if (!salt_fits(c, whole))
		return KVH_EVALUE;
	c->unedited = !whole || c->tokens;
	opinion_form(c, whole);
	c->h->fleet.shared->endpoints[c->endpoint]++;
	c->stage = CALL_READY;
	return KVR_OK;
}
