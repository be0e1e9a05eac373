/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_status.c - a location with kvroute_status: dispatches
 * requests and carries out orders.
 *
 *   GET   /kvroute            page or Prometheus, by Accept and ?format=
 *         /kvroute/json, /kvroute/metrics
 *   POST  /kvroute?worker=...&action=...     from this machine only
 *         /kvroute/explain                   ngx_http_kvroute_explain.c
 *
 * Read access is controlled by allow and deny. An order is accepted only from a
 * loopback address or a local socket, and never with an Origin: a page in a
 * browser on this machine must not be able to give orders.
 */
#include "ngx_http_kvroute_status.h"

#include "json_writer.h"
#include "ngx_http_kvroute_args.h"
#include "ngx_http_kvroute_explain.h"
#include "ngx_http_kvroute_health.h"
#include "ngx_http_kvroute_ranks.h"
#include "ngx_http_kvroute_reply.h"
#include "ngx_http_kvroute_show.h"
#include "ngx_http_kvroute_table.h"
#include "ngx_http_kvroute_workers.h"
#include "status.h"

static ngx_str_t
header_value(ngx_http_request_t *r, const char *name)
{
	ngx_list_part_t *part = &r->headers_in.headers.part;
	ngx_str_t none = ngx_null_string;
	ngx_table_elt_t *h;
	ngx_uint_t i;

	for (; part != NULL; part = part->next) {
		h = part->elts;
		for (i = 0; i < part->nelts; i++) {
			if (h[i].key.len == strlen(name) &&
			    ngx_strncasecmp(h[i].key.data,
			    (u_char *)(uintptr_t)name, h[i].key.len) == 0)
				return h[i].value;
		}
	}
	return none;
}

/* What follows the location in the path, or the last '/'. */
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

/* ------------------------------------------------------------- orders --- */

static bool
is_loopback6(const struct sockaddr *address)
{
	struct sockaddr_in6 sin6;
	const u_char *a = sin6.sin6_addr.s6_addr;

	ngx_memcpy(&sin6, address, sizeof(sin6));
	return IN6_IS_ADDR_LOOPBACK(&sin6.sin6_addr) ||
	    (IN6_IS_ADDR_V4MAPPED(&sin6.sin6_addr) && a[12] == 127);
}

static bool
is_local(const struct sockaddr *address)
{
	struct sockaddr_in sin;

	if (address->sa_family == AF_UNIX)
		return true;
	if (address->sa_family == AF_INET6)
		return is_loopback6(address);
	if (address->sa_family != AF_INET)
		return false;
	ngx_memcpy(&sin, address, sizeof(sin));
	return ntohl(sin.sin_addr.s_addr) >> 24 == 127;
}

typedef struct {
	ngx_http_kvroute_srv_conf_t *up;
	ngx_str_t name, action;
	ngx_uint_t busy; /* calls that found the lock held */
} order_t;

enum { ORDER_TRIES = 400 }; /* some ten milliseconds */

/* Is the call to be repeated? */
static bool
order_again(order_t *o, int error)
{
	return error == KVR_EBUSY && ++o->busy < ORDER_TRIES;
}

static int
facts_get(order_t *o, uint64_t id, struct kvr_worker *facts)
{
	int error;

	facts->size = sizeof(*facts);
	do
		error = kvr_worker_get(o->up->kvr, id, facts);
	while (order_again(o, error));
	return error;
}

static int
state_set(order_t *o, uint64_t id, uint32_t state)
{
	struct kvr_worker facts;
	int error = facts_get(o, id, &facts);

	if (error != KVR_OK)
		return error;
	facts.state = state;
	do
		error = kvr_worker_set(o->up->kvr, id, &facts);
	while (order_again(o, error));
	return error;
}

static int
worker_find(order_t *o, const ngx_str_t *name, uint32_t rank, uint64_t *id)
{
	int error;

	do
		error = kvr_worker_find(o->up->kvr,
		    (const char *)name->data, name->len, rank, id);
	while (order_again(o, error));
	return error;
}

/* *id becomes the new one. */
static int
worker_reset(order_t *o, uint64_t *id)
{
	uint64_t old = *id;
	int error;

	do
		error = kvr_worker_reset(o->up->kvr, old, id);
	while (order_again(o, error));
	return error;
}

static int
worker_forget(order_t *o, uint64_t id)
{
	int error;

	do
		error = kvr_worker_forget(o->up->kvr, id);
	while (order_again(o, error));
	return error;
}

/* One worker; the facts are those afterwards. */
static int
obey_one(order_t *o, uint64_t id, struct kvr_worker *facts)
{
	int error;

	if (kvroute_is(&o->action, "drain"))
		error = state_set(o, id, KVR_STATE_DRAINING);
	else if (kvroute_is(&o->action, "up"))
		error = state_set(o, id, KVR_STATE_UP);
	else if (kvroute_is(&o->action, "forget"))
		error = worker_forget(o, id);
	else
		error = worker_reset(o, &id);
	ngx_http_kvroute_workers_changed(o->up);
	return error == KVR_OK ? facts_get(o, id, facts) : error;
}

/* ADDRESS is all of its ranks, ADDRESS@RANK is one. */
static int
order_obey(order_t *o, struct kvr_worker *facts)
{
	ngx_str_t name = o->name;
	uint32_t rank, ranks;
	uint64_t id;
	int error = worker_find(o, &name, 0, &id);

	if (error == KVR_EWORKER && ngx_http_kvroute_rank_split(&name, &rank)) {
		error = worker_find(o, &name, rank, &id);
		return error != KVR_OK ? error : obey_one(o, id, facts);
	}
	ranks = ngx_http_kvroute_ranks_named(o->up, name.data, name.len);
	for (rank = 0; rank < ngx_max(ranks, 1) && error == KVR_OK; rank++) {
		error = worker_find(o, &name, rank, &id);
		if (error == KVR_OK)
			error = obey_one(o, id, facts);
	}
	if (kvroute_is(&o->action, "up") || kvroute_is(&o->action, "reset"))
		ngx_http_kvroute_health_forget(o->up, &name);
	return error;
}

static ngx_int_t
order_answer(ngx_http_request_t *r, const order_t *order, int error,
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
	json_bytes(&j, "name", order->name.data, order->name.len);
	json_text(&j, "state", status_state_name(facts->state));
	json_map_end(&j);
	json_end(&j);
	return kvroute_reply_send_json(&o, NGX_HTTP_OK);
}

static ngx_int_t
order_read(ngx_http_request_t *r)
{
	order_t o = { .name = kvroute_argument(r, "worker"),
	    .action = kvroute_argument(r, "action") };
	struct kvr_worker facts;
	ngx_int_t answer;
	int error;

	if (!is_local(r->connection->sockaddr) ||
	    header_value(r, "Origin").data != NULL)
		return kvroute_reply_error(r, NGX_HTTP_FORBIDDEN,
		    "orders are accepted from this machine only, from no page");
	if (!kvroute_is(&o.action, "drain") && !kvroute_is(&o.action, "up") &&
	    !kvroute_is(&o.action, "reset") &&
	    !kvroute_is(&o.action, "forget"))
		return kvroute_reply_error(r, NGX_HTTP_BAD_REQUEST,
		    "action= must be drain, up, forget or reset");
	if (o.name.len == 0)
		return kvroute_reply_error(r, NGX_HTTP_BAD_REQUEST,
		    "worker= is missing");
	o.up = kvroute_upstream(r, &answer);
	if (o.up == NULL)
		return answer;
	ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
	    "kvroute: %V worker \"%V\" of upstream \"%V\"", &o.action,
	    &o.name, &o.up->upstream->host);
	error = order_obey(&o, &facts);
	return order_answer(r, &o, error, &facts);
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

static ngx_int_t
no_path(ngx_http_request_t *r)
{
	return kvroute_reply_error(r, NGX_HTTP_NOT_FOUND,
	    "there is no such path");
}

static bool
takes_html(ngx_http_request_t *r)
{
	ngx_str_t accept = header_value(r, "Accept");

	return accept.len > 0 && ngx_strlcasestrn(accept.data, accept.data +
	    accept.len, (u_char *)"text/html", sizeof("text/html") - 2) != NULL;
}

/* By the path, else by ?format=, else by Accept. */
static ngx_int_t
path_show(ngx_http_request_t *r, ngx_str_t *rest)
{
	ngx_str_t format = kvroute_argument(r, "format");

	if (rest->len > 0)
		format = *rest;
	else if (format.len == 0)
		return takes_html(r) ? kvroute_page_show(r) :
		    kvroute_metrics_show(r);
	if (kvroute_is(&format, "json"))
		return kvroute_state_show(r);
	if (rest->len == 0 && kvroute_is(&format, "html"))
		return kvroute_page_show(r);
	if (kvroute_is(&format, rest->len > 0 ? "metrics" : "prometheus"))
		return kvroute_metrics_show(r);
	return rest->len > 0 ? no_path(r) : kvroute_reply_error(r,
	    NGX_HTTP_BAD_REQUEST, "format= must be html, json or prometheus");
}

ngx_int_t
ngx_http_kvroute_status_handler(ngx_http_request_t *r)
{
	ngx_str_t rest = rest_of_path(r);
	bool explain = kvroute_is(&rest, "explain");
	ngx_int_t rc;

	if (explain && r->method == NGX_HTTP_POST)
		return ngx_http_kvroute_explain_handler(r);
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
