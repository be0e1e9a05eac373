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
#include "ngx_http_kvroute_shared.h"
#include "reason.h"

static enum reason
opinion_of(enum body_outcome outcome)
{
	switch (outcome) {
	case BODY_PROMPT:
		return REASON_COST;
	case BODY_EMPTY:
		return REASON_NO_BODY;
	case BODY_NOT_JSON:
		return REASON_NOT_JSON;
	case BODY_TOO_DEEP:
		return REASON_TOO_DEEP;
	case BODY_NO_PROMPT:
		return REASON_NO_PROMPT;
	default:
		return REASON_FAILED;
	}
}

/* ---------------------------------------------------------------- scope --- */

/* The configured value, else the one in the body. */
static ngx_int_t
scope_part(ngx_http_request_t *r, struct kvr *k, struct kvr_scope *scope,
    enum kvr_scope_part part, ngx_http_complex_value_t *configured,
    ngx_str_t text)
{
	if (configured != NULL &&
	    ngx_http_complex_value(r, configured, &text) != NGX_OK)
		return NGX_ERROR;
	return kvr_scope_set(k, scope, part, text.data, text.len) == KVR_OK ?
	    NGX_OK : NGX_ERROR;
}

static ngx_int_t
scope_make(ngx_http_kvroute_ctx_t *ctx, struct kvr_scope *scope)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(
	    ctx->request, ngx_http_upstream_kvroute_module);
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	ngx_str_t none = ngx_null_string;
	ngx_str_t salt = ngx_http_kvroute_salt_value(ctx->request);

	if (kvr_scope_init(scope, sizeof(*scope)) != KVR_OK ||
	    body_scope(ctx->reader->body, up->kvr, scope) != KVR_OK)
		return NGX_ERROR;
	if (scope_part(ctx->request, up->kvr, scope, KVR_SCOPE_MODEL,
	    loc->model, ctx->model) != NGX_OK)
		return NGX_ERROR;
	/* It may stand behind what was read of the body. */
	if (salt.len > 0 && scope_part(ctx->request, up->kvr, scope,
	    KVR_SCOPE_SALT, NULL, salt) != NGX_OK)
		return NGX_ERROR;
	return scope_part(ctx->request, up->kvr, scope, KVR_SCOPE_TENANT,
	    loc->scope, none);
}

/* --------------------------------------------------------------- prompt --- */

static u_char *
text_keep(ngx_str_t *to, u_char *room, const char *text, size_t n)
{
	to->data = room;
	to->len = n;
	return ngx_cpymem(room, text, n);
}

/* The parser is given back before the request ends. */
static bool
texts_keep(ngx_http_kvroute_ctx_t *ctx)
{
	struct body_facts *facts = &ctx->facts;
	size_t i, n = facts->model_length + 1;
	u_char *room;

	for (i = 0; i < BODY_IDS; i++)
		n += facts->id_length[i];
	room = ngx_pnalloc(ctx->request->pool, n);
	if (room != NULL)
		room = text_keep(&ctx->model, room, facts->model,
		    facts->model_length);
	for (i = 0; i < BODY_IDS && room != NULL; i++)
		room = text_keep(&ctx->body_ids[i], room, facts->id[i],
		    facts->id_length[i]);
	facts->model = NULL;
	ngx_memzero(facts->id, sizeof(facts->id));
	return room != NULL;
}

/* The prompt gets its end once the scope is known. */
static enum reason
prompt_end(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_reader_t *reader = ctx->reader;
	enum reason opinion = opinion_of(reader->outcome);

	ctx->facts = reader->facts;
	if (!texts_keep(ctx))
		return REASON_FAILED;
	if (opinion != REASON_COST)
		return opinion;
	if (scope_make(ctx, &reader->scope) != NGX_OK ||
	    kvr_prompt_end(reader->prompt, &reader->scope) != KVR_OK)
		return REASON_FAILED;
	return REASON_COST;
}

static enum reason
prompt_parse(ngx_http_kvroute_ctx_t *ctx)
{
	enum reason opinion;

	ctx->reader = ngx_http_kvroute_reader_get(ctx);
	if (ctx->reader == NULL)
		return REASON_FAILED;
	opinion = prompt_end(ctx);
	if (opinion == REASON_COST)
		ngx_http_kvroute_reader_body_leave(ctx->reader);
	else
		ngx_http_kvroute_prompt_leave(ctx);
	return opinion;
}

bool
ngx_http_kvroute_prompt_make(ngx_http_kvroute_ctx_t *ctx)
{
	return ctx->reader != NULL || prompt_parse(ctx) == REASON_COST;
}

void
ngx_http_kvroute_prompt_leave(ngx_http_kvroute_ctx_t *ctx)
{
	if (ctx->reader != NULL)
		ngx_http_kvroute_reader_leave(ctx->reader);
	ctx->reader = NULL;
}

static enum reason
opinion_form(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;

	if (ctx->up->kvr == NULL)
		return REASON_FAILED;
	if (ngx_http_kvroute_bypassed(r))
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
ngx_http_kvroute_body_read(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_shared_t *shared = ctx->up->shared;
	ngx_str_t *uri = &ctx->request->uri;

	if (ctx->endpoint == ENDPOINT_OTHER)
		ctx->endpoint = endpoint_of((const char *)uri->data, uri->len);
	ctx->opinion = opinion_form(ctx);
	ctx->reason = ctx->opinion;
	if (ctx->reader == NULL)
		ngx_http_kvroute_reader_early_leave(ctx->request);
	if (shared == NULL)
		return;
	(void)ngx_atomic_fetch_add(&shared->endpoints[ctx->endpoint], 1);
	if (ctx->facts.cut)
		ngx_http_kvroute_count(ctx->up, COUNT_TRUNCATED, 1);
}
