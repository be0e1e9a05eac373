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
#include "ngx_http_kvroute_args.h"
#include "ngx_http_kvroute_aside.h"
#include "ngx_http_kvroute_follow.h"
#include "ngx_http_kvroute_reply.h"
#include "ngx_http_kvroute_time.h"
#include "page.h"
#include "reason.h"
#include "shared.h"
#include "status.h"
#include "text_writer.h"

static const unsigned char page[] = {
#include "kvroute_page.h"
};

/* ---------------------------------------------------------- the facts --- */

static void
upstream_describe(struct status_upstream *to, struct counters *counters,
    const ngx_http_kvroute_srv_conf_t *up)
{
	static const char *const shadows[] = {
		[NGX_HTTP_KVROUTE_CHOOSE] = NULL,
		[NGX_HTTP_KVROUTE_LEAST_CONN] = "least_conn",
		[NGX_HTTP_KVROUTE_ROUND_ROBIN] = "round_robin"
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
peers_look(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	ngx_http_kvroute_peers_follow(up, log);
	if (up->fleet.kvr != NULL)
		ngx_http_kvroute_peers_leave(up, log);
}

/* false: no memory. */
static bool
left_list(ngx_pool_t *pool, const ngx_http_kvroute_srv_conf_t *up,
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
		(void)ngx_http_kvroute_spent(all.at[0], began);
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
