/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_variables.c - variables for logs. None of them reaches a
 * client unless the configuration sends it.
 */
#include "ngx_http_kvroute_variables.h"

#include "body.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_early.h"
#include "ngx_http_kvroute_try.h"
#include "reason.h"

/* Figures of a decision; tokens on the chosen server, and on the best. */
enum { OVERLAP, BLOCKS, TOKENS, BEST };

static void
text_is(ngx_http_variable_value_t *v, const u_char *text, size_t n)
{
	v->valid = 1;
	v->no_cacheable = 1;
	v->not_found = n == 0;
	v->len = (unsigned)n;
	v->data = (u_char *)text;
}

static bool
is_control(u_char c)
{
	return c < ' ' || c == 0x7f;
}

/*
 * A text of the body: its control characters become "?", for a configuration
 * may write it to a header or a log, where they begin another line.
 */
static ngx_int_t
client_text_is(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    const ngx_str_t *text)
{
	u_char *copy;
	size_t i;

	text_is(v, text->data, text->len);
	for (i = 0; i < text->len && !is_control(text->data[i]); i++)
		continue;
	if (i == text->len)
		return NGX_OK;
	copy = ngx_pnalloc(r->pool, text->len);
	if (copy == NULL)
		return NGX_ERROR;
	for (i = 0; i < text->len; i++)
		copy[i] = is_control(text->data[i]) ? '?' : text->data[i];
	text_is(v, copy, text->len);
	return NGX_OK;
}

static ngx_int_t
number_is(ngx_http_request_t *r, ngx_http_variable_value_t *v, uint64_t n)
{
	u_char *text = ngx_pnalloc(r->pool, NGX_INT64_LEN);

	if (text == NULL)
		return NGX_ERROR;
	text_is(v, text, (size_t)(ngx_sprintf(text, "%uL", n) - text));
	return NGX_OK;
}

static ngx_int_t
worker_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);

	ngx_str_t name = ngx_null_string;

	if (ctx != NULL)
		name = ngx_http_kvroute_worker_name(ctx);
	text_is(v, name.data, name.len);
	return NGX_OK;
}

static ngx_int_t
rank_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);

	if (ctx == NULL || ctx->rank < 0) {
		text_is(v, NULL, 0);
		return NGX_OK;
	}
	return number_is(r, v, (uint64_t)ctx->rank);
}

static ngx_int_t
prefill_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);

	if (ctx == NULL)
		text_is(v, NULL, 0);
	else
		text_is(v, ctx->prefill.name.data, ctx->prefill.name.len);
	return NGX_OK;
}

static ngx_int_t
model_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);
	ngx_str_t model = ctx != NULL && ctx->model.len > 0 ? ctx->model :
	    ngx_http_kvroute_early_model(r);

	return client_text_is(r, v, &model);
}

static ngx_str_t
id_of(ngx_http_request_t *r, uintptr_t which)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);

	return ctx != NULL && ctx->body_ids[which].len > 0 ?
	    ctx->body_ids[which] : ngx_http_kvroute_early_id(r, which);
}

/* A text of the body. */
static ngx_int_t
id_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t which)
{
	ngx_str_t id = id_of(r, which);

	return client_text_is(r, v, &id);
}

/* Whichever of three members clients have for it. */
static ngx_int_t
user_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
	static const enum body_id order[] = { BODY_USER, BODY_SAFETY,
	    BODY_METADATA_USER };
	size_t i = 0;

	while (i < 2 && id_of(r, order[i]).len == 0)
		i++;
	return id_get(r, v, order[i]);
}

static ngx_int_t
affinity_get(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
	static const char *const names[] = { [KVR_AFFINITY_NONE] = "none",
	    [KVR_AFFINITY_HIT] = "hit", [KVR_AFFINITY_NEW] = "new",
	    [KVR_AFFINITY_MOVED] = "moved", [KVR_AFFINITY_GONE] = "gone" };
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);

	if (ctx == NULL)
		text_is(v, NULL, 0);
	else
		text_is(v, (const u_char *)names[ctx->affinity],
		    strlen(names[ctx->affinity]));
	return NGX_OK;
}

static ngx_int_t
reason_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);
	const char *name;

	if (ctx == NULL) {
		text_is(v, NULL, 0);
		return NGX_OK;
	}
	name = reason_name(ctx->reason);
	text_is(v, (const u_char *)name, strlen(name));
	return NGX_OK;
}

/* Numbers of the choice, if there was one. */
static ngx_int_t
decision_get(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t number)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);

	if (ctx == NULL || ctx->worker == 0) {
		text_is(v, NULL, 0);
		return NGX_OK;
	}
	return number_is(r, v,
	    number == OVERLAP ? ctx->decision.overlap_blocks :
	    number == BLOCKS ? ctx->decision.prompt_blocks :
	    number == TOKENS ? ctx->decision.overlap_tokens :
	    ctx->decision.best_tokens);
}

/* In seconds, as nginx's own times are. */
static ngx_int_t
seconds_are(ngx_http_request_t *r, ngx_http_variable_value_t *v, uint64_t us)
{
	u_char *text = ngx_pnalloc(r->pool, NGX_INT64_LEN + 7), *end;

	if (text == NULL)
		return NGX_ERROR;
	end = us % 1000 == 0 ? ngx_sprintf(text, "%uL.%03uL", us / 1000000,
	    us % 1000000 / 1000) : ngx_sprintf(text, "%uL.%06uL",
	    us / 1000000, us % 1000000);
	text_is(v, text, (size_t)(end - text));
	return NGX_OK;
}

static ngx_int_t
ttft_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);

	if (ctx == NULL || ctx->passing.first == 0) {
		text_is(v, NULL, 0);
		return NGX_OK;
	}
	return seconds_are(r, v, (uint64_t)ctx->first_ms * 1000);
}

/* The time of requests that had to wait. */
static ngx_int_t
queue_time_get(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);

	if (ctx == NULL || ctx->wait.ns == 0) {
		text_is(v, NULL, 0);
		return NGX_OK;
	}
	return seconds_are(r, v, ctx->wait.ns / 1000000 * 1000);
}

static ngx_int_t
token_time_get(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);

	if (ctx == NULL || ctx->passing.token_ns == 0) {
		text_is(v, NULL, 0);
		return NGX_OK;
	}
	return seconds_are(r, v, ctx->passing.token_ns / 1000);
}

static ngx_int_t
cached_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);

	if (ctx == NULL || ctx->passing.report.kind != KVR_REPORT_VALUE) {
		text_is(v, NULL, 0);
		return NGX_OK;
	}
	return number_is(r, v, ctx->passing.report.cached_tokens);
}

static ngx_int_t
ns_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);

	if (ctx == NULL) {
		text_is(v, NULL, 0);
		return NGX_OK;
	}
	return number_is(r, v, ctx->ns);
}

static ngx_http_variable_t variables[] = {
	{ ngx_string("kvroute_worker"), NULL, worker_get, 0,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_rank"), NULL, rank_get, 0,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_prefill"), NULL, prefill_get, 0,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_overlap"), NULL, decision_get, OVERLAP,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_blocks"), NULL, decision_get, BLOCKS,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_overlap_tokens"), NULL, decision_get, TOKENS,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_best_tokens"), NULL, decision_get, BEST,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_ttft"), NULL, ttft_get, 0,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_queue_time"), NULL, queue_time_get, 0,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_token_time"), NULL, token_time_get, 0,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_cached"), NULL, cached_get, 0,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_reason"), NULL, reason_get, 0,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_model"), NULL, model_get, 0,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_affinity"), NULL, affinity_get, 0,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_cache_key"), NULL, id_get, BODY_CACHE_KEY,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_session"), NULL, id_get, BODY_SESSION,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_user"), NULL, user_get, 0,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_previous_response"), NULL, id_get, BODY_PREVIOUS,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_conversation"), NULL, id_get, BODY_CONVERSATION,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	{ ngx_string("kvroute_ns"), NULL, ns_get, 0,
	    NGX_HTTP_VAR_NOCACHEABLE, 0 },
	ngx_http_null_variable
};

ngx_int_t
ngx_http_kvroute_variables_add(ngx_conf_t *cf)
{
	ngx_http_variable_t *of, *v;

	for (of = variables; of->name.len > 0; of++) {
		v = ngx_http_add_variable(cf, &of->name, of->flags);
		if (v == NULL)
			return NGX_ERROR;
		v->get_handler = of->get_handler;
		v->data = of->data;
	}
	return NGX_OK;
}
