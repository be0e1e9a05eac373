/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_status.c - a location with kvroute_status: which question
 * is it, the state as JSON, and orders.
 *
 *   GET   /kvroute            page or Prometheus, as Accept and ?format= say
 *         /kvroute/json, /kvroute/metrics
 *   POST  /kvroute?worker=...&action=...     from this machine only
 *         /kvroute/explain                   ngx_http_kvroute_explain.c
 *
 * Who may look is up to allow and deny. An order is taken from a loopback
 * address or a local socket, whatever they say, and never with an Origin: a
 * page that somebody on this machine looks at must not be able to give it.
 */
#include "ngx_http_kvroute_status.h"

#define IN_SHARED(field) offsetof(ngx_http_kvroute_shared_t, field)

/* The same group is the same pointer. */
static const char usage[] = "usage", shadowed[] = "shadowed";

const kvroute_counter_t kvroute_counters[KVROUTE_COUNTERS] = {
	{ NULL, "cut", "Bodies of which only the beginning was a prompt.",
	    IN_SHARED(cut) },
	{ NULL, "retries", "Choices after the first of a request.",
	    IN_SHARED(retries) },
	{ NULL, "aborts", "Requests not taken, or answered with 400 or more.",
	    IN_SHARED(aborts) },
	{ NULL, "refused", "Workers reset because they refused connections.",
	    IN_SHARED(refused) },
	{ NULL, "delayed", "Writes put off because the lock was taken.",
	    IN_SHARED(delayed) },
	{ NULL, "lost", "Leases left to their age limit.", IN_SHARED(lost) },
	{ NULL, "asked", "Requests in which usage was asked for.",
	    IN_SHARED(asked) },
	{ NULL, "stripped", "Usage chunks taken out again.",
	    IN_SHARED(stripped) },
	{ usage, "seen", "Answers with usage.", IN_SHARED(usages) },
	{ usage, "values", "Answers with a number of cached tokens.",
	    IN_SHARED(values) },
	{ usage, "missing", "Answers without usage.", IN_SHARED(missing) },
	{ usage, "prompt_tokens", "Prompt tokens of answers with a number "
	    "of cached ones.", IN_SHARED(prompt_tokens) },
	{ usage, "cached_tokens", "Of them, cached by report.",
	    IN_SHARED(cached_tokens) },
	{ usage, "foretold_tokens", "Of them, cached by prediction.",
	    IN_SHARED(foretold_tokens) },
	{ shadowed, "requests", "Requests watched in shadow mode.",
	    IN_SHARED(shadow) },
	{ shadowed, "same", "Of them, to the worker that kvroute would have "
	    "taken.", IN_SHARED(shadow_same) },
	{ shadowed, "blocks", "Blocks of their prompts.",
	    IN_SHARED(shadow_blocks) },
	{ shadowed, "wanted_blocks", "Of them, predicted to be cached where "
	    "kvroute would have sent them.", IN_SHARED(shadow_wanted) },
	{ shadowed, "taken_blocks", "Of them, predicted to be cached where "
	    "they went.", IN_SHARED(shadow_taken) }
};

uint64_t
kvroute_count(const ngx_http_kvroute_srv_conf_t *up, size_t i)
{
	const u_char *shared = (const u_char *)up->shared;
	ngx_atomic_uint_t n;

	if (shared == NULL)
		return 0;
	n = *(const ngx_atomic_t *)(const void *)(shared +
	    kvroute_counters[i].offset);
	return n;
}

bool
kvroute_reason_occurs(ngx_uint_t reason)
{
	return reason != NGX_HTTP_KVROUTE_PINNED;
}

/* --------------------------------------------------------- the question --- */

bool
kvroute_is(const ngx_str_t *text, const char *word)
{
	return text->len == strlen(word) &&
	    ngx_strncmp(text->data, word, text->len) == 0;
}

ngx_str_t
kvroute_argument(ngx_http_request_t *r, const char *name)
{
	ngx_str_t value = ngx_null_string;
	u_char *to, *from;

	if (ngx_http_arg(r, (u_char *)(uintptr_t)name, strlen(name), &value) !=
	    NGX_OK)
		return value;
	from = value.data;
	to = ngx_pnalloc(r->pool, value.len + 1);
	if (to == NULL) {
		value.len = 0;
		return value;
	}
	value.data = to;
	ngx_unescape_uri(&to, &from, value.len, 0);
	value.len = (size_t)(to - value.data);
	return value;
}

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

/* What stands behind the location in the path, or behind the last '/'. */
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

kvroute_upstreams_t
kvroute_upstreams(ngx_http_request_t *r)
{
	ngx_http_kvroute_main_conf_t *main = ngx_http_get_module_main_conf(r,
	    ngx_http_upstream_kvroute_module);
	ngx_str_t name = kvroute_argument(r, "upstream"), *host;
	kvroute_upstreams_t all;
	ngx_uint_t i;

	all.at = main->upstreams.elts;
	all.n = main->upstreams.nelts;
	for (i = 0; name.len > 0 && i < all.n; i++) {
		host = &all.at[i]->upstream->host;
		if (host->len == name.len &&
		    ngx_strncmp(host->data, name.data, name.len) == 0) {
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

ngx_http_kvroute_srv_conf_t *
kvroute_upstream(ngx_http_request_t *r, ngx_int_t *answer)
{
	kvroute_upstreams_t all = kvroute_upstreams(r);

	if (all.n == 0)
		*answer = no_upstream(r);
	else if (all.n > 1)
		*answer = kvroute_reply_error(r, NGX_HTTP_BAD_REQUEST,
		    "there are several upstreams: name one by upstream=");
	else if (all.at[0]->kvr == NULL)
		*answer = kvroute_reply_error(r,
		    NGX_HTTP_SERVICE_UNAVAILABLE,
		    "this upstream has no index: see the error log");
	else if (kvroute_blocked(all.at[0]))
		*answer = kvroute_blocked_answer(r);
	else
		return all.at[0];
	return NULL;
}

/* No lease has this number; whether the lock could be had is seen first. */
bool
kvroute_blocked(ngx_http_kvroute_srv_conf_t *up)
{
	return up->kvr != NULL && kvr_commit(up->kvr, UINT64_MAX,
	    kvr_clock_now(), KVR_NOWAIT) == KVR_EBUSY;
}

ngx_int_t
kvroute_blocked_answer(ngx_http_request_t *r)
{
	return kvroute_reply_error(r, NGX_HTTP_SERVICE_UNAVAILABLE,
	    "another process has the lock of the index");
}

/* ---------------------------------------------------------------- JSON --- */

static const char *const costs[] = { "dynamo", "two_tier", "balanced" };
static const char *const states[] = { "up", "draining", "down" };
static const char *const retains[] = { "auto", "ttl", "capacity", "feedback" };
static const char *const shadows[] = { NULL, "least_conn", "round_robin" };

static const char *
name_in(const char *const *names, size_t n, ngx_uint_t i)
{
	return i < n ? names[i] : "?";
}
#define NAME_IN(names, i) name_in(names, sizeof(names) / sizeof(names[0]), i)

static void
put_region(kvroute_reply_t *o, const struct kvr_stats *s)
{
	kvroute_json_object(o, "region");
	kvroute_json_whole(o, "bytes", s->region_bytes);
	kvroute_json_whole(o, "cells", s->cells);
	kvroute_json_whole(o, "cells_free", s->cells_free);
	kvroute_json_whole(o, "blocks", s->blocks);
	kvroute_json_whole(o, "held_blocks", s->held_blocks);
	kvroute_json_whole(o, "leases", s->leases);
	kvroute_json_whole(o, "evicted", s->evicted);
	kvroute_json_whole(o, "truncated", s->truncated);
	kvroute_json_whole(o, "emptied", s->emptied);
	kvroute_json_whole(o, "dropped", s->dropped);
	kvroute_json_whole(o, "reaped", s->reaped);
	kvroute_json_object_end(o);
}

static void
put_counters(kvroute_reply_t *o, const ngx_http_kvroute_srv_conf_t *up)
{
	const char *group = NULL;
	size_t i;

	for (i = 0; i < KVROUTE_COUNTERS; i++) {
		const kvroute_counter_t *c = &kvroute_counters[i];

		if (c->group != group && group != NULL)
			kvroute_json_object_end(o);
		if (c->group != group)
			kvroute_json_object(o, c->group);
		group = c->group;
		kvroute_json_whole(o, c->name, kvroute_count(up, i));
	}
	kvroute_json_object_end(o);
}

static void
put_requests(kvroute_reply_t *o, const ngx_http_kvroute_srv_conf_t *up)
{
	const ngx_http_kvroute_shared_t *s = up->shared;
	ngx_uint_t i;

	kvroute_json_object(o, "reasons");
	for (i = 0; i < NGX_HTTP_KVROUTE_REASONS; i++) {
		if (kvroute_reason_occurs(i))
			kvroute_json_whole(o, (const char *)
			    ngx_http_kvroute_reason_names[i].data,
			    s == NULL ? 0 : s->requests[i]);
	}
	kvroute_json_object_end(o);
	kvroute_json_object(o, "endpoints");
	for (i = 0; i < ENDPOINTS; i++)
		kvroute_json_whole(o, endpoint_name((enum endpoint)i),
		    s == NULL ? 0 : s->endpoints[i]);
	kvroute_json_object_end(o);
}

static void
put_facts(kvroute_reply_t *o, const struct kvr_worker *facts)
{
	kvroute_json_name(o, "state", NAME_IN(states, facts->state));
	kvroute_json_real(o, "weight", facts->weight);
	kvroute_json_whole(o, "capacity", facts->capacity_tokens);
}

static void
put_load(kvroute_reply_t *o, const struct kvr_worker_stats *s)
{
	kvroute_json_bool(o, "busy", s->busy != 0);
	kvroute_json_whole(o, "requests", s->requests);
	kvroute_json_whole(o, "prefill_tokens", s->prefill_tokens);
	kvroute_json_real(o, "backlog", s->backlog);
	kvroute_json_real(o, "prefill_rate", s->prefill_rate);
	kvroute_json_whole(o, "held_blocks", s->held_blocks);
}

static void
put_hits(kvroute_reply_t *o, const struct kvr_worker_stats *s)
{
	kvroute_json_name(o, "retain", NAME_IN(retains, s->retain));
	kvroute_json_whole(o, "reserves", s->reserves);
	kvroute_json_whole(o, "prompt_tokens", s->prompt_tokens);
	kvroute_json_whole(o, "predicted_tokens", s->predicted_tokens);
	kvroute_json_whole(o, "reports", s->reports);
	kvroute_json_whole(o, "silent", s->silent);
	kvroute_json_whole(o, "reported_tokens", s->reported_tokens);
	kvroute_json_whole(o, "foretold_tokens", s->foretold_tokens);
	kvroute_json_whole(o, "learnt_capacity", s->learnt_capacity);
	kvroute_json_whole(o, "learnt_block", s->learnt_block);
}

/* Nothing, if it has gone meanwhile. */
static void
put_worker(kvroute_reply_t *o, const struct kvr *k, uint64_t id)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	struct kvr_worker_stats s = { .size = sizeof(s) };
	char name[KVR_NAME_MAX];
	size_t length;

	if (kvr_worker_name(k, id, name, sizeof(name), &length) != KVR_OK ||
	    kvr_worker_get(k, id, &facts) != KVR_OK ||
	    kvr_worker_stats(k, id, &s) != KVR_OK)
		return;
	kvroute_json_object(o, NULL);
	kvroute_json_text(o, "name", name, length);
	put_facts(o, &facts);
	put_load(o, &s);
	put_hits(o, &s);
	kvroute_json_object_end(o);
}

static void
put_workers(kvroute_reply_t *o, const struct kvr *k)
{
	uint64_t id = 0;

	kvroute_json_array(o, "workers");
	while (k != NULL && kvr_worker_next(k, &id) == KVR_OK && id != 0)
		put_worker(o, k, id);
	kvroute_json_array_end(o);
}

static void
put_upstream(kvroute_reply_t *o, const ngx_http_kvroute_srv_conf_t *up)
{
	struct kvr_stats s = { .size = sizeof(s) };
	const char *shadow = NAME_IN(shadows, up->shadow);

	if (up->kvr == NULL || kvr_stats(up->kvr, &s) != KVR_OK) {
		ngx_memzero(&s, sizeof(s));
		s.size = sizeof(s);
	}
	kvroute_json_object(o, NULL);
	kvroute_json_text(o, "name", up->upstream->host.data,
	    up->upstream->host.len);
	kvroute_json_bool(o, "attached", up->kvr != NULL);
	kvroute_json_name(o, "policy", NAME_IN(costs, up->policy.cost));
	kvroute_json_whole(o, "block", up->options.block_size);
	kvroute_json_real(o, "ttl", (double)up->options.ttl_ns / 1e9);
	if (shadow == NULL)
		kvroute_json_null(o, "shadow");
	else
		kvroute_json_name(o, "shadow", shadow);
	put_region(o, &s);
	put_requests(o, up);
	put_counters(o, up);
	put_workers(o, up->kvr);
	kvroute_json_object_end(o);
}

static ngx_int_t
json_show(ngx_http_request_t *r)
{
	kvroute_upstreams_t all = kvroute_upstreams(r);
	kvroute_reply_t o;
	ngx_uint_t i;

	if (all.n == 0 && kvroute_argument(r, "upstream").len > 0)
		return no_upstream(r);
	for (i = 0; i < all.n; i++) {
		if (kvroute_blocked(all.at[i]))
			return kvroute_blocked_answer(r);
	}
	kvroute_json_begin(&o, r);
	kvroute_json_object(&o, NULL);
	kvroute_json_name(&o, "version", kvr_version_string());
	kvroute_json_whole(&o, "time", (uint64_t)ngx_time());
	kvroute_json_array(&o, "upstreams");
	for (i = 0; i < all.n; i++)
		put_upstream(&o, all.at[i]);
	kvroute_json_array_end(&o);
	kvroute_json_object_end(&o);
	return kvroute_json_send(&o, NGX_HTTP_OK);
}

/* -------------------------------------------------------------- orders --- */

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

/* Returns the worker's new id, 0 if there is no such worker (any more). */
static uint64_t
state_set(struct kvr *k, uint64_t id, uint32_t state)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	if (kvr_worker_get(k, id, &facts) != KVR_OK)
		return 0;
	facts.state = state;
	return kvr_worker_set(k, id, &facts) == KVR_OK ? id : 0;
}

static uint64_t
find(ngx_http_kvroute_srv_conf_t *up, const ngx_str_t *name)
{
	uint64_t id;

	return kvr_worker_find(up->kvr, (const char *)name->data, name->len,
	    0, &id) == KVR_OK ? id : 0;
}

static uint64_t
obey(ngx_http_kvroute_srv_conf_t *up, const ngx_str_t *name,
    const ngx_str_t *action)
{
	uint64_t id = find(up, name);

	if (id == 0)
		return 0;
	if (kvroute_is(action, "drain"))
		return state_set(up->kvr, id, KVR_STATE_DRAINING);
	if (kvroute_is(action, "up"))
		return state_set(up->kvr, id, KVR_STATE_UP);
	ngx_http_kvroute_worker_reset(up, id);
	return find(up, name);
}

static ngx_int_t
obeyed(ngx_http_request_t *r, ngx_http_kvroute_srv_conf_t *up, uint64_t id,
    const ngx_str_t *name)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	kvroute_reply_t o;

	if (id == 0 || kvr_worker_get(up->kvr, id, &facts) != KVR_OK)
		return kvroute_reply_error(r, NGX_HTTP_NOT_FOUND,
		    "there is no such worker");
	kvroute_json_begin(&o, r);
	kvroute_json_object(&o, NULL);
	kvroute_json_text(&o, "name", name->data, name->len);
	kvroute_json_name(&o, "state", NAME_IN(states, facts.state));
	kvroute_json_object_end(&o);
	return kvroute_json_send(&o, NGX_HTTP_OK);
}

static ngx_int_t
order(ngx_http_request_t *r)
{
	ngx_str_t name = kvroute_argument(r, "worker");
	ngx_str_t action = kvroute_argument(r, "action");
	ngx_http_kvroute_srv_conf_t *up;
	ngx_int_t answer;

	if (!is_local(r->connection->sockaddr) ||
	    header_value(r, "Origin").data != NULL)
		return kvroute_reply_error(r, NGX_HTTP_FORBIDDEN,
		    "orders are taken from this machine only, from no page");
	if (!kvroute_is(&action, "drain") && !kvroute_is(&action, "up") &&
	    !kvroute_is(&action, "reset"))
		return kvroute_reply_error(r, NGX_HTTP_BAD_REQUEST,
		    "action= is drain, up or reset");
	if (name.len == 0)
		return kvroute_reply_error(r, NGX_HTTP_BAD_REQUEST,
		    "worker= is missing");
	up = kvroute_upstream(r, &answer);
	if (up == NULL)
		return answer;
	ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
	    "kvroute: %V worker \"%V\" of upstream \"%V\"", &action, &name,
	    &up->upstream->host);
	return obeyed(r, up, obey(up, &name, &action), &name);
}

/* ------------------------------------------------------------ dispatch --- */

static ngx_int_t
not_allowed(ngx_http_request_t *r, const char *allowed)
{
	kvroute_reply_t o;

	kvroute_json_begin(&o, r);
	kvroute_reply_header(&o, "Allow", allowed);
	kvroute_json_object(&o, NULL);
	kvroute_json_name(&o, "error", "this method has no meaning here");
	kvroute_json_object_end(&o);
	return kvroute_json_send(&o, NGX_HTTP_NOT_ALLOWED);
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

/* By the path, or by ?format=, or by what a browser accepts. */
static ngx_int_t
show(ngx_http_request_t *r, ngx_str_t *rest)
{
	ngx_str_t format = kvroute_argument(r, "format");

	if (rest->len > 0)
		format = *rest;
	else if (format.len == 0)
		return takes_html(r) ? kvroute_page_show(r) :
		    kvroute_metrics_show(r);
	if (kvroute_is(&format, "json"))
		return json_show(r);
	if (rest->len == 0 && kvroute_is(&format, "html"))
		return kvroute_page_show(r);
	if (kvroute_is(&format, rest->len > 0 ? "metrics" : "prometheus"))
		return kvroute_metrics_show(r);
	return rest->len > 0 ? no_path(r) : kvroute_reply_error(r,
	    NGX_HTTP_BAD_REQUEST, "format= is html, json or prometheus");
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
		return show(r, &rest);
	if (r->method == NGX_HTTP_POST && rest.len == 0)
		return order(r);
	return not_allowed(r, rest.len == 0 ? "GET, HEAD, POST" : "GET, HEAD");
}
