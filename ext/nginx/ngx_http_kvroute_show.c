/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_show.c - responses to GET: the state of the upstreams as
 * JSON or for Prometheus, written by ext/http, and the page, embedded here when
 * the module is built.
 */
#include "ngx_http_kvroute_show.h"

#include "counters.h"
#include "endpoint.h"
#include "judge.h"
#include "loads.h"
#include "ngx_http_kvroute_aside.h"
#include "ngx_http_kvroute_body.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_follow.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_reply.h"
#include "ngx_http_kvroute_time.h"
#include "page.h"
#include "reason.h"
#include "shared.h"
#include "status.h"
#include "status_explain.h"
#include "text_writer.h"

static const unsigned char page[] = {
#include "kvroute_page.h"
};

/* ---------------------------------------------------------- the facts --- */

static void
upstream_describe(struct status_upstream *to, struct counters *counters,
    const kvroute_srv_conf_t *up)
{
	static const char *const shadows[] = {
		[KVROUTE_CHOOSE] = NULL,
		[KVROUTE_LEAST_CONN] = "least_conn",
		[KVROUTE_ROUND_ROBIN] = "round_robin"
	};

	to->name = (const char *)up->upstream->host.data;
	to->name_length = up->upstream->host.len;
	to->kvr = up->fleet.kvr;
	to->options = up->options;
	to->cost = up->policy.cost;
	to->shadow = shadows[up->shadow];
	to->asked = up->asked;
	to->n_asked = up->n_asked;
	if (up->fleet.shared == NULL)
		return;
	shared_copy(up->fleet.shared, counters);
	to->counters = counters;
	to->queue = up->fleet.queue;
	if (up->fleet.queue > 0)
		to->waiting = places_length(&up->waits.line.places,
		    kvr_clock_now());
}

/*
 * The peers as they are now, whichever process is asked, and the workers that
 * are without one.
 */
static void
peers_look(kvroute_srv_conf_t *up, ngx_log_t *log)
{
	kvroute_peers_follow(up, log);
	if (up->fleet.kvr != NULL)
		kvroute_peers_leave(up, log);
}

/* false: no memory. */
static bool
left_list(ngx_pool_t *pool, const kvroute_srv_conf_t *up,
    struct status_upstream *to)
{
	uint64_t *ids = ngx_palloc(pool,
	    (up->follow.members.n_left + 1) * sizeof(*ids));

	if (ids == NULL)
		return false;
	while (to->n_left < up->follow.members.n_left) {
		ids[to->n_left] = up->follow.members.left[to->n_left].id;
		to->n_left++;
	}
	to->left = ids;
	return true;
}

/* false: no memory. */
static bool
status_make(ngx_http_request_t *r, const kvroute_upstreams_t *all,
    struct status *s)
{
	ngx_pool_t *pool = r->pool;
	struct status_upstream *upstream = ngx_pcalloc(pool,
	    (all->n + 1) * sizeof(*upstream));
	struct counters *counters = ngx_palloc(pool,
	    (all->n + 1) * sizeof(*counters));
	struct status_health *healths;
	struct status_load *loads;
	ngx_uint_t i;

	if (upstream == NULL || counters == NULL)
		return false;
	for (i = 0; i < all->n; i++) {
		peers_look(all->at[i], r->connection->log);
		upstream_describe(&upstream[i], &counters[i], all->at[i]);
		loads = ngx_palloc(pool, (all->at[i]->fleet.n_workers + 1) *
		    sizeof(*loads));
		healths = ngx_palloc(pool, (all->at[i]->fleet.n_known + 1) *
		    sizeof(*healths));
		if (loads == NULL || healths == NULL ||
		    !left_list(pool, all->at[i], &upstream[i]))
			return false;
		upstream[i].healths = healths;
		upstream[i].n_healths = judge_list(&all->at[i]->fleet,
		    healths, kvr_clock_now());
		upstream[i].loads = loads;
		upstream[i].n_loads = loads_list(&all->at[i]->fleet, loads,
		    kvr_clock_now());
	}
	s->proxy = "nginx";
	s->time = (uint64_t)ngx_time();
	s->upstream = upstream;
	s->upstreams = all->n;
	return true;
}

/* ------------------------------------------------------- the response --- */

/* Is it long, and of peers that stay where they are? */
static bool
goes_aside(const kvroute_upstreams_t *all)
{
	ngx_uint_t i, n = 0;

	for (i = 0; i < all->n; i++) {
		n += all->at[i]->fleet.n_workers;
		if (all->at[i]->follow.members.resolves)
			return false;
	}
	return n >= KVROUTE_ASIDE_WORKERS;
}

static ngx_int_t
status_send(ngx_http_request_t *r, kvroute_write_pt *write, const char *type)
{
	kvroute_upstreams_t all = kvroute_upstreams(r);
	int64_t began = kvr_clock_now();
	struct status s;
	kvroute_reply_t o;
	ngx_int_t rc = NGX_DECLINED;
	ngx_uint_t i;

	if (all.n == 0 && kvroute_argument(r, "upstream").len > 0)
		return kvroute_no_upstream(r);
	for (i = 0; i < all.n && !goes_aside(&all); i++) {
		if (status_blocked(all.at[i]->fleet.kvr))
			return kvroute_blocked_answer(r);
	}
	if (!status_make(r, &all, &s))
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	if (goes_aside(&all))
		rc = kvroute_aside_send(r, &s, write, type);
	if (rc != NGX_DECLINED)
		return rc;
	kvroute_reply_begin(&o, r);
	write(&s, &o.writer);
	if (all.n > 0)
		(void)kvroute_spent(all.at[0], began);
	return kvroute_reply_send(&o, NGX_HTTP_OK, type);
}

ngx_int_t
kvroute_state_show(ngx_http_request_t *r)
{
	return status_send(r, status_json, "application/json");
}

ngx_int_t
kvroute_metrics_show(ngx_http_request_t *r)
{
	return status_send(r, status_metrics,
	    "text/plain; version=0.0.4; charset=utf-8");
}

ngx_int_t
kvroute_page_show(ngx_http_request_t *r)
{
	kvroute_reply_t o;

	kvroute_reply_begin(&o, r);
	kvroute_reply_header(&o, "Content-Security-Policy",
	    PAGE_SECURITY_POLICY);
	kvroute_reply_share(&o, page, sizeof(page));
	return kvroute_reply_send(&o, NGX_HTTP_OK, PAGE_TYPE);
}

/* -------------------------------------------------------------- explain --- */

/*
 * Reads the body that status_explain describes.
 *
 * It is read as any other body, by kvroute_body_read, for the path in
 * ?uri=, but with a copy of the upstream that counts nothing. kvroute_model and
 * kvroute_scope are those of the status location.
 */

/* ------------------------------------------------------------ the body --- */

typedef struct {
	kvroute_srv_conf_t up; /* a copy */
	kvroute_ctx_t ctx;
	ngx_str_t model;                /* as the scope has it */
	struct kvr_prompt_info info;
} question_t;

/* Needs a request with a ctx, as if it went to the upstream. */
static void
body_look(question_t *q)
{
	kvroute_loc_conf_t *loc = kvroute_loc(q->ctx.request);

	kvroute_body_read(&q->ctx);
	q->model = q->ctx.texts.model;
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
question_make(ngx_http_request_t *r, kvroute_srv_conf_t *up)
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
	kvroute_reader_t *reader = q->ctx.reader;
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
	kvroute_srv_conf_t *up;
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
kvroute_explain_handler(ngx_http_request_t *r)
{
	ngx_int_t rc = ngx_http_read_client_request_body(r, body_came);

	return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}
