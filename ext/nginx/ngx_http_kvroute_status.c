/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_status.c - a location with kvroute_status: dispatches
 * requests and carries out orders.
 *
 *   GET   /kvroute            page or Prometheus, by Accept and ?format=
 *         /kvroute/json, /kvroute/metrics
 *   POST  /kvroute?worker=...&action=...     from this machine only
 *         /kvroute/explain                   how a request would be routed
 *
 * Read access is controlled by allow and deny. An order is accepted only from a
 * loopback address or a local socket, and never with an Origin: a page in a
 * browser on this machine must not be able to give orders.
 */
#include "ngx_http_kvroute_module.h"

#include "endpoint.h"
#include "fleet_facts.h"
#include "json_writer.h"
#include "ngx_http_kvroute_body.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_follow.h"
#include "ngx_http_kvroute_param.h"
#include "ngx_http_kvroute_peers.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_reply.h"
#include "ngx_http_kvroute_time.h"
#include "orders.h"
#include "page.h"
#include "reason.h"
#include "status.h"
#include "status_explain.h"
#include "text_writer.h"

static const unsigned char page[] = {
#include "kvroute_page.h"
};

/* ------------------------------------------------------- the upstreams --- */

/* The requested upstreams; n == 0: no upstream has that name. */
typedef struct {
	kvroute_srv_conf_t **at;
	ngx_uint_t n;
} upstreams_t;

static upstreams_t
upstreams_named(ngx_http_request_t *r)
{
	kvroute_main_conf_t *main = ngx_http_get_module_main_conf(r,
	    ngx_http_upstream_kvroute_module);
	ngx_str_t name = kvroute_argument(r, "upstream"), *host;
	upstreams_t all;
	ngx_uint_t i;

	all.at = main->upstreams.elts;
	all.n = main->upstreams.nelts;
	for (i = 0; name.len > 0 && i < all.n; i++) {
		host = &all.at[i]->upstream->host;
		if (kvroute_same(host, &name)) {
			all.at += i;
			all.n = 1;
			return all;
		}
	}
	if (name.len > 0)
		all.n = 0;
	return all;
}

static ngx_int_t
no_upstream(ngx_http_request_t *r)
{
	return kvroute_reply_error(r, NGX_HTTP_NOT_FOUND,
	    "there is no such upstream");
}

/* The requested one; NULL: *answer is the response. */
static kvroute_srv_conf_t *
upstream_named(ngx_http_request_t *r, ngx_int_t *answer)
{
	upstreams_t all = upstreams_named(r);

	if (all.n == 0)
		*answer = no_upstream(r);
	else if (all.n > 1)
		*answer = kvroute_reply_error(r, NGX_HTTP_BAD_REQUEST,
		    "there are several upstreams: name one by upstream=");
	else if (all.at[0]->fleet.kvr == NULL)
		*answer = kvroute_reply_error(r,
		    NGX_HTTP_SERVICE_UNAVAILABLE,
		    "this upstream has no index: see the error log");
	else if (status_blocked(all.at[0]->fleet.kvr))
		*answer = kvroute_blocked_answer(r);
	else
		return all.at[0];
	return NULL;
}

/* ---------------------------------------------------------- the facts --- */

static void
facts_free(void *facts)
{
	fleet_facts_free(facts);
}

/*
 * The peers as they are now, whichever process is asked, and the workers that
 * are without one. False: no memory.
 */
static bool
upstream_describe(ngx_http_request_t *r, kvroute_srv_conf_t *up,
    struct status_upstream *to)
{
	ngx_pool_cleanup_t *cln = ngx_pool_cleanup_add(r->pool,
	    sizeof(struct fleet_facts));

	kvroute_peers_follow(up, r->connection->log);
	if (up->fleet.kvr != NULL)
		kvroute_peers_leave(up, r->connection->log);
	to->name = (const char *)up->upstream->host.data;
	to->name_length = up->upstream->host.len;
	to->options = up->options;
	to->cost = up->policy.cost;
	to->shadow = kvroute_shadows[up->shadow];
	if (cln == NULL || !fleet_facts_take(cln->data, to, &up->fleet,
	    &up->fleet, &up->waits.line.places, &up->follow.members,
	    kvr_clock_now()))
		return false;
	cln->handler = facts_free;
	return true;
}

/* false: no memory. */
static bool
status_make(ngx_http_request_t *r, const upstreams_t *all,
    struct status *s)
{
	struct status_upstream *upstream = ngx_pcalloc(r->pool,
	    (all->n + 1) * sizeof(*upstream));
	ngx_uint_t i;

	for (i = 0; upstream != NULL && i < all->n; i++)
		if (!upstream_describe(r, all->at[i], &upstream[i]))
			return false;
	s->proxy = "nginx";
	s->time = (uint64_t)ngx_time();
	s->upstream = upstream;
	s->upstreams = all->n;
	return upstream != NULL;
}

/* ------------------------------------------------------- the response --- */

/* Is it long? */
static bool
goes_aside(const upstreams_t *all)
{
	ngx_uint_t i, n = 0;

	for (i = 0; i < all->n; i++)
		n += all->at[i]->fleet.n_workers;
	return n >= KVROUTE_ASIDE_WORKERS;
}

static ngx_int_t
status_send(ngx_http_request_t *r, kvroute_write_pt *write, const char *type)
{
	upstreams_t all = upstreams_named(r);
	int64_t began = kvr_clock_now();
	struct status s;
	kvroute_reply_t o;
	ngx_int_t rc = NGX_DECLINED;
	ngx_uint_t i;

	if (all.n == 0 && kvroute_argument(r, "upstream").len > 0)
		return no_upstream(r);
	for (i = 0; i < all.n && !goes_aside(&all); i++) {
		if (status_blocked(all.at[i]->fleet.kvr))
			return kvroute_blocked_answer(r);
	}
	if (!status_make(r, &all, &s))
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
#if (NGX_THREADS)
	if (goes_aside(&all))
		rc = kvroute_aside_send(r, &s, write, type);
#endif
	if (rc != NGX_DECLINED)
		return rc;
	kvroute_reply_begin(&o, r);
	write(&s, &o.writer);
	if (all.n > 0)
		(void)kvroute_spent(all.at[0], began);
	return kvroute_reply_send(&o, NGX_HTTP_OK, type);
}

static ngx_int_t
state_show(ngx_http_request_t *r)
{
	return status_send(r, status_json, "application/json");
}

static ngx_int_t
metrics_show(ngx_http_request_t *r)
{
	return status_send(r, status_metrics,
	    "text/plain; version=0.0.4; charset=utf-8");
}

static ngx_int_t
page_show(ngx_http_request_t *r)
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

	up = upstream_named(r, &answer);
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

static ngx_int_t
explain_handler(ngx_http_request_t *r)
{
	ngx_int_t rc = ngx_http_read_client_request_body(r, body_came);

	return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}

/* ------------------------------------------------------------- orders --- */

static bool
is_local(const struct sockaddr *address)
{
	const struct sockaddr_in *in = (const void *)address;
	const struct in6_addr *in6 =
	    &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

	if (address->sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(in6) ||
		    (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127);
	return address->sa_family == AF_UNIX ||
	    (address->sa_family == AF_INET &&
	    ntohl(in->sin_addr.s_addr) >> 24 == 127);
}

static ngx_int_t
order_answer(ngx_http_request_t *r, const ngx_str_t *worker, int error,
    const struct kvr_worker *facts)
{
	kvroute_reply_t o;
	struct json j;

	if (error == KVR_EBUSY)
		return kvroute_blocked_answer(r);
	if (error != KVR_OK)
		return kvroute_reply_error(r, NGX_HTTP_NOT_FOUND,
		    "there is no such worker");
	kvroute_reply_begin(&o, r);
	json_begin(&j, &o.writer);
	json_map(&j, NULL);
	json_bytes(&j, "name", worker->data, worker->len);
	json_text(&j, "state", status_state_name(facts->state));
	json_map_end(&j);
	json_end(&j);
	return kvroute_reply_send_json(&o, NGX_HTTP_OK);
}

static ngx_int_t
order_read(ngx_http_request_t *r)
{
	ngx_str_t worker = kvroute_argument(r, "worker"), name;
	ngx_str_t action = kvroute_argument(r, "action");
	enum order what = order_named((char *)action.data, action.len);
	kvroute_srv_conf_t *up;
	struct kvr_worker facts;
	ngx_int_t answer;
	int error;

	if (!is_local(r->connection->sockaddr) ||
	    kvroute_header(r, "Origin") != NULL)
		return kvroute_reply_error(r, NGX_HTTP_FORBIDDEN,
		    "orders are accepted from this machine only, from no page");
	if (what == ORDER_NONE)
		return kvroute_reply_error(r, NGX_HTTP_BAD_REQUEST,
		    "action= must be drain, up, forget or reset");
	if (worker.len == 0)
		return kvroute_reply_error(r, NGX_HTTP_BAD_REQUEST,
		    "worker= is missing");
	up = upstream_named(r, &answer);
	if (up == NULL)
		return answer;
	name = kvroute_printable(r->pool, &worker);
	ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
	    "kvroute: %V worker \"%V\" of upstream \"%V\"", &action, &name,
	    &up->upstream->host);
	error = order_obey(&up->fleet, what, (char *)worker.data, worker.len,
	    kvr_clock_now(), &facts);
	kvroute_stale_book(up);
	return order_answer(r, &worker, error, &facts);
}

/* ----------------------------------------------------------- dispatch --- */

static ngx_int_t
not_allowed(ngx_http_request_t *r, const char *allowed)
{
	kvroute_reply_t o;

	kvroute_reply_begin(&o, r);
	kvroute_reply_header(&o, "Allow", allowed);
	return kvroute_reply_refuse(&o, NGX_HTTP_NOT_ALLOWED,
	    "method not allowed");
}

static bool
takes_html(ngx_http_request_t *r)
{
	ngx_table_elt_t *accept = kvroute_header(r, "Accept");

	return accept != NULL && accept->value.len > 0 &&
	    ngx_strlcasestrn(accept->value.data, accept->value.data +
	    accept->value.len, (u_char *)"text/html",
	    sizeof("text/html") - 2) != NULL;
}

/* The part of the path behind the location, or behind the last '/'. */
static ngx_str_t
rest_of_path(ngx_http_request_t *r)
{
	ngx_http_core_loc_conf_t *loc = ngx_http_get_module_loc_conf(r,
	    ngx_http_core_module);
	ngx_str_t rest = r->uri;
	size_t n = loc->name.len;

	if (n > rest.len || ngx_strncmp(rest.data, loc->name.data, n) != 0)
		for (n = rest.len; n > 0 && rest.data[n - 1] != '/'; n--)
			continue;
	rest.data += n;
	rest.len -= n;
	if (rest.len > 0 && rest.data[0] == '/') {
		rest.data++;
		rest.len--;
	}
	return rest;
}

/* By the path, else by ?format=, else by Accept. */
static ngx_int_t
path_show(ngx_http_request_t *r, ngx_str_t *rest)
{
	ngx_str_t format = kvroute_argument(r, "format");

	if (rest->len > 0)
		format = *rest;
	else if (format.len == 0)
		return takes_html(r) ? page_show(r) :
		    metrics_show(r);
	if (kvroute_word_is(&format, "json"))
		return state_show(r);
	if (rest->len == 0 && kvroute_word_is(&format, "html"))
		return page_show(r);
	if (kvroute_word_is(&format, rest->len > 0 ? "metrics" : "prometheus"))
		return metrics_show(r);
	return rest->len > 0 ? kvroute_reply_error(r, NGX_HTTP_NOT_FOUND,
	    "there is no such path") : kvroute_reply_error(r,
	    NGX_HTTP_BAD_REQUEST, "format= must be html, json or prometheus");
}

ngx_int_t
kvroute_status_handler(ngx_http_request_t *r)
{
	ngx_str_t rest = rest_of_path(r);
	bool explain = kvroute_word_is(&rest, "explain");
	ngx_int_t rc;

	if (explain && r->method == NGX_HTTP_POST)
		return explain_handler(r);
	rc = ngx_http_discard_request_body(r);
	if (rc != NGX_OK)
		return rc;
	if (explain)
		return not_allowed(r, "POST");
	if (r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD))
		return path_show(r, &rest);
	if (r->method == NGX_HTTP_POST && rest.len == 0)
		return order_read(r);
	return not_allowed(r, rest.len == 0 ? "GET, HEAD, POST" : "GET, HEAD");
}
