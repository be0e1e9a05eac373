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
#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_param.h"
#include "ngx_http_kvroute_reply.h"
#include "ngx_http_kvroute_show.h"
#include "ngx_http_kvroute_try.h"
#include "orders.h"
#include "status.h"

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
	up = kvroute_upstream(r, &answer);
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

static ngx_int_t
no_path(ngx_http_request_t *r)
{
	return kvroute_reply_error(r, NGX_HTTP_NOT_FOUND,
	    "there is no such path");
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
	if (kvroute_word_is(&format, "json"))
		return kvroute_state_show(r);
	if (rest->len == 0 && kvroute_word_is(&format, "html"))
		return kvroute_page_show(r);
	if (kvroute_word_is(&format, rest->len > 0 ? "metrics" : "prometheus"))
		return kvroute_metrics_show(r);
	return rest->len > 0 ? no_path(r) : kvroute_reply_error(r,
	    NGX_HTTP_BAD_REQUEST, "format= must be html, json or prometheus");
}

ngx_int_t
kvroute_status_handler(ngx_http_request_t *r)
{
	ngx_str_t rest = rest_of_path(r);
	bool explain = kvroute_word_is(&rest, "explain");
	ngx_int_t rc;

	if (explain && r->method == NGX_HTTP_POST)
		return kvroute_explain_handler(r);
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
