/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_explain.c - what would become of a body: what is found in
 * it, who would be chosen, and everything that the choice is made of.
 *
 * The body goes the way of any other, through ngx_http_kvroute_body_read, for
 * the path in ?uri=; but with a copy of the upstream that counts nothing, and
 * kvr_route and kvr_candidates book nothing. kvroute_model and kvroute_scope
 * are those of the status location.
 */
#include "ngx_http_kvroute_status.h"

static const char *const verdicts[] = { "eligible", "not_allowed",
	"wrong_role", "not_up", "lacks_taint", "overloaded" };

/* ------------------------------------------------------------ the body --- */

typedef struct {
	ngx_http_kvroute_srv_conf_t up; /* a copy */
	ngx_http_kvroute_ctx_t ctx;
	ngx_str_t model;                /* as the scope has it */
	struct kvr_scope scope;
	struct kvr_prompt_info info;
} question_t;

/* What needs the request to look as if it went to the upstream. */
static void
body_look(question_t *q)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(
	    q->ctx.request, ngx_http_upstream_kvroute_module);

	ngx_http_kvroute_body_read(&q->ctx);
	q->model = q->ctx.model;
	if (q->ctx.opinion != NGX_HTTP_KVROUTE_COST)
		return;
	q->info.size = sizeof(q->info);
	if ((loc->model != NULL && ngx_http_complex_value(q->ctx.request,
	    loc->model, &q->model) != NGX_OK) ||
	    ngx_http_kvroute_scope_make(&q->ctx, &q->scope) != NGX_OK ||
	    kvr_prompt_info(q->up.prompt, &q->info) != KVR_OK)
		q->ctx.opinion = NGX_HTTP_KVROUTE_FAILED;
}

/* Filters must not take the answer of this location for an engine's. */
static question_t *
question_make(ngx_http_request_t *r, ngx_http_kvroute_srv_conf_t *up)
{
	question_t *q = ngx_pcalloc(r->pool, sizeof(*q));
	ngx_str_t uri = kvroute_argument(r, "uri");

	if (q == NULL)
		return NULL;
	q->up = *up;
	q->up.shared = NULL;
	q->ctx.request = r;
	q->ctx.up = &q->up;
	if (uri.len == 0) {
		ngx_str_set(&uri, "/v1/chat/completions");
	}
	q->ctx.endpoint = endpoint_of((const char *)uri.data, uri.len);
	/* Prompt and parser are the upstream's own: whose was in them? */
	up->parsed = NULL;
	ngx_http_set_ctx(r, &q->ctx, ngx_http_upstream_kvroute_module);
	body_look(q);
	ngx_http_set_ctx(r, NULL, ngx_http_upstream_kvroute_module);
	return q;
}

/* ---------------------------------------------------------- the answer --- */

static void
put_name(kvroute_reply_t *o, const struct kvr *k, uint64_t id)
{
	char name[KVR_NAME_MAX];
	size_t length;
	int error;

	KVROUTE_PATIENTLY(error, kvr_worker_name(k, id, name, sizeof(name),
	    &length));
	if (error == KVR_OK)
		kvroute_json_text(o, "worker", name, length);
	else
		kvroute_json_null(o, "worker");
}

static void
put_scope(kvroute_reply_t *o, const struct kvr_scope *scope)
{
	u_char digits[4 * 16], *end = digits;
	size_t i;

	for (i = 0; i < 4; i++)
		end = ngx_sprintf(end, "%016xL", scope->digest[i]);
	kvroute_json_text(o, "scope", digits, (size_t)(end - digits));
}

static void
put_facts(kvroute_reply_t *o, const question_t *q)
{
	const struct body_facts *facts = &q->ctx.facts;
	bool prompt = q->ctx.opinion == NGX_HTTP_KVROUTE_COST;

	kvroute_json_text(o, "upstream", q->up.upstream->host.data,
	    q->up.upstream->host.len);
	kvroute_json_name(o, "endpoint", endpoint_name(q->ctx.endpoint));
	kvroute_json_name(o, "outcome", prompt ? "prompt" : (const char *)
	    ngx_http_kvroute_reason_names[q->ctx.opinion].data);
	kvroute_json_text(o, "model", q->model.data, q->model.len);
	kvroute_json_bool(o, "stream", facts->stream);
	kvroute_json_bool(o, "cut", facts->cut);
	kvroute_json_whole(o, "messages", facts->messages);
}

static void
put_prompt(kvroute_reply_t *o, const question_t *q)
{
	put_scope(o, &q->scope);
	kvroute_json_whole(o, "bytes", q->info.units);
	kvroute_json_whole(o, "blocks", q->info.blocks);
	kvroute_json_whole(o, "tokens", q->info.tokens);
}

static void
put_nothing(kvroute_reply_t *o)
{
	static const char *const keys[] = { "scope", "bytes", "blocks",
	    "tokens", "decision", "candidates" };
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		kvroute_json_null(o, keys[i]);
}

static void
put_decision(kvroute_reply_t *o, const question_t *q)
{
	struct kvr_decision d = { .size = sizeof(d) };
	int error;

	KVROUTE_PATIENTLY(error, kvr_route(q->up.kvr, q->up.prompt, NULL,
	    kvr_clock_now(), &d));
	if (error != KVR_OK) {
		kvroute_json_null(o, "decision");
		kvroute_json_name(o, "error", kvr_strerror(error));
		return;
	}
	kvroute_json_object(o, "decision");
	put_name(o, q->up.kvr, d.worker);
	kvroute_json_name(o, "reason", d.reason < NGX_HTTP_KVROUTE_REASONS ?
	    (const char *)ngx_http_kvroute_reason_names[d.reason].data : "?");
	kvroute_json_real(o, "cost", d.cost);
	kvroute_json_whole(o, "overlap_blocks", d.overlap_blocks);
	kvroute_json_whole(o, "overlap_tokens", d.overlap_tokens);
	kvroute_json_object_end(o);
}

static void
put_candidate(kvroute_reply_t *o, const struct kvr *k,
    const struct kvr_candidate *c)
{
	kvroute_json_object(o, NULL);
	put_name(o, k, c->worker);
	kvroute_json_name(o, "verdict", c->verdict < sizeof(verdicts) /
	    sizeof(verdicts[0]) ? verdicts[c->verdict] : "?");
	kvroute_json_whole(o, "overlap_blocks", c->overlap_blocks);
	kvroute_json_whole(o, "overlap_tokens", c->overlap_tokens);
	if (c->age_ns < 0)
		kvroute_json_null(o, "age");
	else
		kvroute_json_real(o, "age", (double)c->age_ns / 1e9);
	kvroute_json_whole(o, "requests", c->requests);
	kvroute_json_whole(o, "prefill_tokens", c->prefill_tokens);
	kvroute_json_real(o, "backlog", c->backlog);
	kvroute_json_real(o, "cost", c->cost);
	kvroute_json_object_end(o);
}

/* Workers that come meanwhile are left out. */
static void
put_candidates(kvroute_reply_t *o, const question_t *q)
{
	struct kvr_candidate *all = NULL;
	size_t i, room = 0, n = 0;
	int64_t now = kvr_clock_now();
	int error;

	KVROUTE_PATIENTLY(error, kvr_candidates(q->up.kvr, q->up.prompt, NULL,
	    now, NULL, sizeof(*all), 0, &room));
	if (error == KVR_OK) {
		all = ngx_pcalloc(o->request->pool, (room + 1) * sizeof(*all));
		if (all == NULL)
			error = KVR_ENOMEM;
		else
			KVROUTE_PATIENTLY(error, kvr_candidates(q->up.kvr,
			    q->up.prompt, NULL, now, all, sizeof(*all), room,
			    &n));
	}
	if (error != KVR_OK) {
		kvroute_json_null(o, "candidates");
		return;
	}
	kvroute_json_array(o, "candidates");
	for (i = 0; i < ngx_min(n, room); i++)
		put_candidate(o, q->up.kvr, &all[i]);
	kvroute_json_array_end(o);
}

static ngx_int_t
explain(ngx_http_request_t *r)
{
	ngx_http_kvroute_srv_conf_t *up;
	kvroute_reply_t o;
	question_t *q;
	ngx_int_t answer;

	up = kvroute_upstream(r, &answer);
	if (up == NULL)
		return answer;
	q = question_make(r, up);
	if (q == NULL)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	kvroute_json_begin(&o, r);
	kvroute_json_object(&o, NULL);
	put_facts(&o, q);
	if (q->ctx.opinion == NGX_HTTP_KVROUTE_COST) {
		put_prompt(&o, q);
		put_decision(&o, q);
		put_candidates(&o, q);
	} else {
		put_nothing(&o);
	}
	kvroute_json_object_end(&o);
	return kvroute_json_send(&o, NGX_HTTP_OK);
}

static void
body_came(ngx_http_request_t *r)
{
	ngx_http_finalize_request(r, explain(r));
}

ngx_int_t
ngx_http_kvroute_explain_handler(ngx_http_request_t *r)
{
	ngx_int_t rc = ngx_http_read_client_request_body(r, body_came);

	return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}
