/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_explain.c - reads the body that status_explain describes.
 *
 * It is read as any other body, by ngx_http_kvroute_body_read, for the path in
 * ?uri=, but with a copy of the upstream that counts nothing. kvroute_model and
 * kvroute_scope are those of the status location.
 */
#include "ngx_http_kvroute_explain.h"

#include "endpoint.h"
#include "ngx_http_kvroute_args.h"
#include "ngx_http_kvroute_body.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_reply.h"
#include "reason.h"
#include "status_explain.h"

/* ------------------------------------------------------------ the body --- */

typedef struct {
	ngx_http_kvroute_srv_conf_t up; /* a copy */
	ngx_http_kvroute_ctx_t ctx;
	ngx_str_t model;                /* as the scope has it */
	struct kvr_prompt_info info;
} question_t;

/* Needs a request with a ctx, as if it went to the upstream. */
static void
body_look(question_t *q)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_kvroute_loc(q->ctx.request);

	ngx_http_kvroute_body_read(&q->ctx);
	q->model = q->ctx.model;
	if (q->ctx.opinion != REASON_COST)
		return;
	q->info.size = sizeof(q->info);
	if ((loc->model != NULL && ngx_http_complex_value(q->ctx.request,
	    loc->model, &q->model) != NGX_OK) ||
	    kvr_prompt_info_get(q->ctx.reader->prompt, &q->info) != KVR_OK)
		q->ctx.opinion = REASON_FAILED;
}

/* The ctx is removed again: this response is not an engine's. */
static question_t *
question_make(ngx_http_request_t *r, ngx_http_kvroute_srv_conf_t *up)
{
	question_t *q = ngx_pcalloc(r->pool, sizeof(*q));
	ngx_str_t uri = kvroute_argument(r, "uri");

	if (q == NULL)
		return NULL;
	q->up = *up;
	q->up.fleet.shared = NULL;
	q->ctx.request = r;
	q->ctx.up = &q->up;
	if (uri.len == 0) {
		ngx_str_set(&uri, "/v1/chat/completions");
	}
	q->ctx.endpoint = endpoint_of((const char *)uri.data, uri.len);
	ngx_http_set_ctx(r, &q->ctx, ngx_http_upstream_kvroute_module);
	body_look(q);
	ngx_http_set_ctx(r, NULL, ngx_http_upstream_kvroute_module);
	return q;
}

/* -------------------------------------------------------- the response --- */

static struct explain
explain_of(question_t *q)
{
	ngx_http_kvroute_reader_t *reader = q->ctx.reader;
	const ngx_str_t *host = &q->up.upstream->host;
	struct explain e = {
		.upstream = (const char *)host->data,
		.upstream_length = host->len,
		.endpoint = q->ctx.endpoint,
		.facts = &q->ctx.facts,
		.model = (const char *)q->model.data,
		.model_length = q->model.len,
		.outcome = q->ctx.opinion,
		.kvr = q->up.fleet.kvr,
		.prompt = reader == NULL ? NULL : reader->prompt,
		.info = q->info,
		.now = kvr_clock_now()
	};

	if (reader != NULL)
		e.scope = reader->scope;
	return e;
}

static ngx_int_t
explain_send(ngx_http_request_t *r)
{
	ngx_http_kvroute_srv_conf_t *up;
	kvroute_reply_t o;
	struct explain e;
	question_t *q;
	ngx_int_t answer;

	up = kvroute_upstream(r, &answer);
	if (up == NULL)
		return answer;
	q = question_make(r, up);
	if (q == NULL)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	kvroute_reply_begin(&o, r);
	e = explain_of(q);
	status_explain(&e, &o.writer);
	return kvroute_reply_send_json(&o, NGX_HTTP_OK);
}

static void
body_came(ngx_http_request_t *r)
{
	ngx_http_finalize_request(r, explain_send(r));
}

ngx_int_t
ngx_http_kvroute_explain_handler(ngx_http_request_t *r)
{
	ngx_int_t rc = ngx_http_read_client_request_body(r, body_came);

	return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}
