/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_ranks.c - data-parallel ranks of engines that have one
 * address: workers of one name. nginx has the address; the engine reads the
 * rank in a header, and the server that prefills in another.
 *
 * The proxy module makes the head of the request before a server is chosen, and
 * each try may choose others. So the head is copied once, without lines of
 * those two names, and its end is written anew at each choice:
 *
 *   POST /v1/... HTTP/1.1 CRLF
 *   Host: engines CRLF
 *   ... CRLF                       <-- at
 *   X-Data-Parallel-Rank: 3 CRLF       only if a rank was chosen
 *   X-Prefiller-Host-Port: ... CRLF    only if another server prefills
 *   CRLF                               rest: and other bytes of the buffer
 *
 * nginx sends a buffer from its start at each try, after the choice. If nothing
 * was predicted, there is no such line, and the engine chooses. Such a header
 * of a client, or of proxy_set_header, never passes: where servers have ranks,
 * or roles.
 */
#include "ngx_http_kvroute_ranks.h"

#include "counters.h"
#include "lacking.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_edit.h"
#include "ngx_http_kvroute_peers.h"
#include "ngx_http_kvroute_server.h"
#include "reason.h"
#include "shared.h"

static ngx_str_t header = ngx_string("X-Data-Parallel-Rank");
static ngx_str_t prefill = ngx_string("X-Prefiller-Host-Port");

/* -------------------------------------------------------- configuration --- */

/* A name has one address at least, once it has any. */
static ngx_uint_t
ranks_least(kvroute_srv_conf_t *up,
    ngx_http_upstream_rr_peers_t *peers)
{
	ngx_http_upstream_rr_peer_t *peer;
	ngx_uint_t n = 0;

	for (peer = peers->peer; peer != NULL; peer = peer->next)
		n += known_ranks(kvroute_server_of(up,
		    peer));
#if (KVROUTE_RESOLVE)
	for (peer = peers->resolve; peer != NULL; peer = peer->next)
		n += known_ranks(kvroute_server_of(up,
		    peer));
#endif
	return n;
}

ngx_int_t
kvroute_ranks_check(ngx_conf_t *cf, kvroute_srv_conf_t *up)
{
	ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;
	ngx_uint_t n = 0;

	for (; peers != NULL; peers = peers->next)
		n += ranks_least(up, peers);
	up->n_workers = n;
	if (n <= up->options.max_workers)
		return NGX_OK;
	ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "kvroute of upstream \"%V\": "
	    "its servers %s %ui%s, more than its %uD workers: give "
	    "\"kvroute\" workers=%ui", &up->upstream->host,
	    up->ranked ? "have" : "are", n, up->ranked ? " ranks" : "",
	    up->options.max_workers, n);
	return NGX_ERROR;
}

/* ------------------------------------------------------------- lacking --- */

/*
 * The engine may lack the rank that has refused the first try. nginx sends a
 * request again after a status 404, where it is configured to: it gets both,
 * for this once.
 */
static void
again_ask(kvroute_ctx_t *ctx)
{
	ngx_http_upstream_t *u = ctx->request->upstream;
	ngx_http_upstream_conf_t *conf = ngx_palloc(ctx->request->pool,
	    sizeof(*conf));

	if (conf == NULL)
		return;
	*conf = *u->conf;
	conf->next_upstream |= NGX_HTTP_UPSTREAM_FT_HTTP_404 |
	    NGX_HTTP_UPSTREAM_FT_NON_IDEMPOTENT;
	conf->next_upstream_timeout = 0;
	ctx->again.conf = u->conf;
	ctx->again.rank = ctx->rank;
	ctx->again.status = u->headers_in.status_n;
	u->conf = conf;
	u->peer.tries = ngx_max(u->peer.tries, 1) + 1;
	u->headers_in.status_n = NGX_HTTP_NOT_FOUND;
	shared_count(ctx->up->fleet.shared, COUNT_RANKS, 1);
}

static bool
rank_refuses(kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;
	ngx_uint_t i;

	if (ctx->rank <= 0 || r->request_body_no_buffering ||
	    kvroute_cached(r))
		return false;
	i = kvroute_taken_peer(ctx);
	return i < ctx->up->fleet.n_known && lacking_answered(&ctx->up->fleet,
	    i, (uint32_t)ctx->rank, (unsigned)r->upstream->headers_in.status_n);
}

/* The head of the first try; before others the proxy module sets its own. */
static ngx_int_t
head_process(ngx_http_request_t *r)
{
	kvroute_ctx_t *ctx = kvroute_ctx(r);
	ngx_http_upstream_t *u = r->upstream;
	ngx_int_t rc;

	u->process_header = ctx->again.process;
	rc = u->process_header(r);
	if (rc == NGX_OK && rank_refuses(ctx))
		again_ask(ctx);
	if (rc != NGX_OK) {
		ctx->again.process = u->process_header;
		u->process_header = head_process;
	}
	return rc;
}

/* ------------------------------------------------------------- the head --- */

ngx_int_t
kvroute_rank_prepare(kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;
	ngx_buf_t *head, *b;
	u_char *rest;

	if (!ctx->up->ranked && !ctx->up->parted)
		return NGX_OK;
	if (!kvroute_request_editable(r)) {
		ngx_log_error(NGX_LOG_WARN, r->connection->log, 0, "kvroute: "
		    "%s= is for proxy_pass with HTTP/1.1: nothing is "
		    "predicted here", ctx->up->ranked ? "ranks" : "role");
		ctx->opinion = REASON_FAILED;
		return NGX_OK;
	}
	head = r->upstream->request_bufs->buf;
	b = ngx_create_temp_buf(r->pool, (size_t)(head->last - head->pos) +
	    header.len + sizeof(": \r\n") + NGX_INT32_LEN +
	    prefill.len + sizeof(": \r\n") + KVR_NAME_MAX);
	if (b == NULL)
		return NGX_ERROR;
	rest = kvroute_head_copy(b, head,
	    ctx->up->ranked ? (char *)header.data : NULL,
	    ctx->up->parted ? (char *)prefill.data : NULL);
	ctx->rank_head = b;
	ctx->rank_at = b->last;
	ctx->rank_rest.data = rest;
	ctx->rank_rest.len = (size_t)(head->last - rest);
	b->last = ngx_cpymem(b->last, rest, ctx->rank_rest.len);
	b->flush = head->flush;
	b->last_buf = head->last_buf;
	r->upstream->request_bufs->buf = b;
	if (ctx->up->ranked) {
		ctx->again.process = r->upstream->process_header;
		r->upstream->process_header = head_process;
	}
	return NGX_OK;
}

/* ------------------------------------------------------------- answers --- */

/* A try has begun: nginx's configuration is the request's again. */
static void
rank_sent(kvroute_ctx_t *ctx)
{
	ngx_array_t *states = ctx->request->upstream_states;
	ngx_http_upstream_state_t *state = states->elts;

	if (ctx->again.conf == NULL) {
		ctx->again.rank = 0; /* nothing follows from a later try */
		return;
	}
	ctx->request->upstream->conf = ctx->again.conf;
	ctx->again.conf = NULL;
	/* The log has the status of the engine. */
	if (states->nelts > 1)
		state[states->nelts - 2].status = ctx->again.status;
}

void
kvroute_rank_write(kvroute_ctx_t *ctx, ngx_int_t rc)
{
	u_char *p = ctx->rank_at;

	if (rc != NGX_AGAIN)
		rank_sent(ctx);
	if (p == NULL)
		return;
	if (ctx->rank >= 0)
		p = ngx_sprintf(p, "%V: %i\r\n", &header, ctx->rank);
	if (ctx->book.prefill_length > 0)
		p = ngx_sprintf(p, "%V: %*s\r\n", &prefill,
		    ctx->book.prefill_length, ctx->book.prefill_name);
	p = ngx_cpymem(p, ctx->rank_rest.data, ctx->rank_rest.len);
	ctx->rank_head->last = p;
}

void
kvroute_rank_answered(kvroute_ctx_t *ctx, ngx_uint_t status)
{
	struct fleet *f = &ctx->up->fleet;
	size_t i;

	if (ctx->rank < 0 || (i = kvroute_taken_peer(ctx)) ==
	    f->n_known)
		return;
	(void)lacking_answered(f, i, (uint32_t)ctx->rank, (unsigned)status);
	if (ctx->again.rank > 0 && status >= 200 && status < 300)
		lacking_proved(f, i, (uint32_t)ctx->again.rank,
		    ctx->request->connection->log);
}
