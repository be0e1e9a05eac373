/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_body.c - turns the request body into a prompt.
 *
 * The body is complete when the upstream is chosen: in memory up to
 * client_body_buffer_size, else in a temporary file. reader.c reads it.
 */
#include "ngx_http_kvroute_body.h"

#include "body.h"
#include "counters.h"
#include "endpoint.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_read.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_salt.h"
#include "prompt_scope.h"
#include "reason.h"
#include "shared.h"

/* ---------------------------------------------------------------- scope --- */

/* The configured value, else that text; false: no memory. */
static bool
text_find(ngx_http_request_t *r, ngx_http_complex_value_t *configured,
    ngx_str_t text, struct scope_text *to)
{
	if (configured != NULL &&
	    ngx_http_complex_value(r, configured, &text) != NGX_OK)
		return false;
	*to = (struct scope_text){ text.data, text.len };
	return true;
}

static bool
scope_end(kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;
	kvroute_loc_conf_t *loc = kvroute_loc(r);
	kvroute_reader_t *reader = ctx->reader;
	ngx_str_t none = ngx_null_string;
	ngx_str_t salt = kvroute_salt_value(r);
	struct scope_texts of = { .salt = { salt.data, salt.len } };

	return text_find(r, loc->model, ctx->texts.model, &of.model) &&
	    text_find(r, loc->scope, none, &of.tenant) &&
	    prompt_scope_end(reader->prompt, &reader->scope,
	    ctx->up->fleet.kvr, reader->body, &of);
}

/* --------------------------------------------------------------- prompt --- */

/* The prompt gets its end once the scope is known. */
static enum reason
prompt_end(kvroute_ctx_t *ctx)
{
	kvroute_reader_t *reader = ctx->reader;
	enum reason opinion = reason_of_body(reader->outcome);

	ctx->facts = reader->facts;
	ctx->facts.model = NULL;
	ngx_memzero(ctx->facts.id, sizeof(ctx->facts.id));
	if (!kvroute_texts_keep(ctx->request->pool, &ctx->texts,
	    &reader->facts))
		return REASON_FAILED;
	if (opinion != REASON_COST)
		return opinion;
	if (!scope_end(ctx))
		return REASON_FAILED;
	if (ctx->up->fleet.shared != NULL && ctx->up->fronts != NULL &&
	    !ctx->facts.media)
		fronts_look(ctx->up->fronts, &ctx->up->fleet, reader->prompt,
		    &reader->scope, ngx_cycle->log);
	return REASON_COST;
}

static enum reason
prompt_parse(kvroute_ctx_t *ctx)
{
	enum reason opinion;

	ctx->reader = kvroute_reader_get(ctx);
	if (ctx->reader == NULL)
		return REASON_FAILED;
	opinion = prompt_end(ctx);
	if (opinion == REASON_COST)
		kvroute_reader_body_leave(ctx->reader);
	else
		kvroute_prompt_leave(ctx);
	return opinion;
}

bool
kvroute_prompt_make(kvroute_ctx_t *ctx)
{
	return ctx->reader != NULL || prompt_parse(ctx) == REASON_COST;
}

void
kvroute_prompt_leave(kvroute_ctx_t *ctx)
{
	if (ctx->reader != NULL)
		kvroute_reader_leave(ctx->reader);
	ctx->reader = NULL;
}

static enum reason
opinion_form(kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;

	if (ctx->up->fleet.kvr == NULL)
		return REASON_FAILED;
	if (kvroute_bypassed(r))
		return REASON_BYPASS;
	if (ctx->endpoint == ENDPOINT_OTHER)
		return REASON_ENDPOINT;
	if (r->request_body_no_buffering)
		return REASON_UNBUFFERED;
	if (r->request_body == NULL || r->request_body->bufs == NULL)
		return REASON_NO_BODY;
	return prompt_parse(ctx);
}

void
kvroute_body_read(kvroute_ctx_t *ctx)
{
	struct shared *shared = ctx->up->fleet.shared;

	if (ctx->endpoint == ENDPOINT_OTHER)
		ctx->endpoint = kvroute_endpoint(ctx->request);
	ctx->opinion = opinion_form(ctx);
	ctx->book.reason = ctx->opinion;
	if (ctx->reader == NULL)
		kvroute_reader_early_leave(ctx->request);
	if (shared == NULL)
		return;
	shared->endpoints[ctx->endpoint]++;
	if (ctx->opinion == REASON_ENDPOINT)
		kvroute_path_count(ctx->up, ctx->request);
	if (ctx->facts.cut)
		shared_count(ctx->up->fleet.shared, COUNT_TRUNCATED, 1);
}
