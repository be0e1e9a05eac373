/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_extend.c - an engine's answer becomes part of the prompt
 * that its cache is known to hold.
 *
 * The next request of a chat carries the answer to this one. The engine has
 * both in its cache, so the lease is extended by the answer before it ends:
 *
 *   headers    | the prompt's end is saved, its hashes are given up
 *   pieces     | the message in them is kept as it passes, see reply.h
 *   end        | end of the prompt + message, hashed --> kvr_lease_extend
 *
 * What is kept for a request meanwhile is its message and some hundred bytes.
 * Nothing is delayed. An answer that is not known whole extends nothing: then
 * the next turn finds the prompt without it, as if this file were not there.
 */
#include "ngx_http_kvroute_extend.h"

#include "answer.h"
#include "body.h"
#include "counters.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_shared.h"
#include "reply_message.h"

void
ngx_http_kvroute_extend_leave(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;

	if (ctx->reply != NULL &&
	    up->spare.n_replies < NGX_HTTP_KVROUTE_SPARES) {
		reply_forget(ctx->reply);
		up->spare.replies[up->spare.n_replies++] = ctx->reply;
	} else {
		reply_free(ctx->reply);
	}
	ctx->reply = NULL;
}

void
ngx_http_kvroute_extend_free(ngx_http_kvroute_srv_conf_t *up)
{
	while (up->spare.n_replies > 0)
		reply_free(up->spare.replies[--up->spare.n_replies]);
}

/* Does the next prompt of this chat begin with this one and its answer? */
static bool
may_extend(ngx_http_kvroute_ctx_t *ctx)
{
	return ctx->lease != 0 && ctx->reader != NULL &&
	    ctx->facts.extends;
}

static bool
prompt_save(ngx_http_kvroute_ctx_t *ctx)
{
	struct kvr_prompt *prompt = ctx->reader->prompt;

	ctx->n_saved = kvr_prompt_saved_bytes(prompt);
	ctx->saved = ngx_pnalloc(ctx->request->pool, ctx->n_saved);
	return ctx->saved != NULL &&
	    kvr_prompt_save(prompt, ctx->saved, ctx->n_saved) == KVR_OK;
}

void
ngx_http_kvroute_extend_begin(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;

	if (!may_extend(ctx) || !prompt_save(ctx))
		return;
	ctx->reply = up->spare.n_replies > 0 ?
	    up->spare.replies[--up->spare.n_replies] : reply_new();
	if (ctx->reply != NULL)
		reply_begin(ctx->reply, ctx->endpoint,
		    ctx->stream ? ANSWER_STREAM : ANSWER_JSON, REPLY_MOST);
}

static bool
answer_append(ngx_http_kvroute_ctx_t *ctx, struct kvr_prompt *prompt)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(
	    ctx->request, ngx_http_upstream_kvroute_module);
	struct body *body = ngx_http_kvroute_body_take(ctx->up);
	bool done;

	if (body == NULL)
		return false;
	body_reasoning(body, loc->reasoning == NGX_HTTP_KVROUTE_KEEP);
	done = reply_append(ctx->reply, body, prompt, NULL) == REPLY_WHOLE;
	ngx_http_kvroute_body_put(ctx->up, body);
	return done;
}

static struct kvr_prompt *
extended_make(ngx_http_kvroute_ctx_t *ctx)
{
	struct kvr_prompt *prompt;

	if (reply_end(ctx->reply) != REPLY_WHOLE)
		return NULL;
	prompt = ngx_http_kvroute_prompt_take(ctx->up);
	if (prompt == NULL)
		return NULL;
	if (kvr_prompt_resume(prompt, ctx->saved, ctx->n_saved) == KVR_OK &&
	    answer_append(ctx, prompt) &&
	    kvr_prompt_end(prompt, NULL) == KVR_OK)
		return prompt;
	ngx_http_kvroute_prompt_put(ctx->up, prompt);
	return NULL;
}

struct kvr_prompt *
ngx_http_kvroute_extend_end(ngx_http_kvroute_ctx_t *ctx, bool whole)
{
	struct kvr_prompt *prompt;

	if (ctx->reply == NULL)
		return NULL;
	prompt = whole ? extended_make(ctx) : NULL;
	ngx_http_kvroute_count(ctx->up, prompt != NULL ? COUNT_ANSWERS :
	    COUNT_ANSWERS_LEFT, 1);
	ngx_http_kvroute_extend_leave(ctx);
	return prompt;
}

/* Only a lease without a stream, or a late one, is not committed yet. */
int
ngx_http_kvroute_extend(ngx_http_kvroute_srv_conf_t *up, uint64_t lease,
    struct kvr_prompt *prompt, int64_t now)
{
	int error = kvr_lease_extend(up->kvr, lease, prompt, now, KVR_NOWAIT);

	if (error != KVR_ESTATE)
		return error;
	error = kvr_lease_commit(up->kvr, lease, now, KVR_NOWAIT);
	return error != KVR_OK ? error :
	    kvr_lease_extend(up->kvr, lease, prompt, now, KVR_NOWAIT);
}
