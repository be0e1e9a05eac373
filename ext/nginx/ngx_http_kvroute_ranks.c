/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_ranks.c - data-parallel ranks of engines that have one
 * address: workers of one name. nginx knows the address; the engine learns of
 * the rank by a header.
 *
 * The proxy module makes the head of the request before a server is chosen,
 * and each try may choose another rank. So the head is copied once, without
 * lines of that name, and its end is written anew at each choice:
 *
 *   POST /v1/... HTTP/1.1 CRLF
 *   Host: engines CRLF
 *   ... CRLF                       <-- at
 *   X-Data-Parallel-Rank: 3 CRLF       only if a rank was chosen
 *   CRLF                               rest: and what else was in the buffer
 *
 * nginx sends a buffer from its start at each try, after the choice. If nothing
 * was predicted, there is no such line, and the engine chooses. What a client,
 * or proxy_set_header, says in a header of that name never passes.
 */
#include "ngx_http_kvroute_ranks.h"

#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_edit.h"
#include "ngx_http_kvroute_server.h"
#include "reason.h"

enum { RANKS_MAX = 1024 };

static ngx_str_t header = ngx_string("X-Data-Parallel-Rank");

/* -------------------------------------------------------- configuration --- */

/* A name has one address at least, once it has any. */
static ngx_uint_t
ranks_least(ngx_http_kvroute_srv_conf_t *up,
    ngx_http_upstream_rr_peers_t *peers)
{
	ngx_http_upstream_rr_peer_t *peer;
	ngx_uint_t n = 0;

	for (peer = peers->peer; peer != NULL; peer = peer->next)
		n += ngx_http_kvroute_ranks_of(ngx_http_kvroute_server_of(up,
		    peer));
#if (NGX_HTTP_KVROUTE_RESOLVE)
	for (peer = peers->resolve; peer != NULL; peer = peer->next)
		n += ngx_http_kvroute_ranks_of(ngx_http_kvroute_server_of(up,
		    peer));
#endif
	return n;
}

ngx_int_t
ngx_http_kvroute_ranks_check(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;
	ngx_uint_t n = 0;

	if (!up->ranked)
		return NGX_OK;
	for (; peers != NULL; peers = peers->next)
		n += ranks_least(up, peers);
	if (n <= up->options.max_workers)
		return NGX_OK;
	ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "kvroute of upstream \"%V\": "
	    "its servers have %ui ranks, more than its %uD workers: give "
	    "\"kvroute\" workers=%ui", &up->upstream->host, n,
	    up->options.max_workers, n);
	return NGX_ERROR;
}

/* ------------------------------------------------------------- the head --- */

static bool
is_rank_line(const u_char *p, const u_char *end)
{
	return (size_t)(end - p) > header.len && p[header.len] == ':' &&
	    ngx_strncasecmp((u_char *)p, header.data, header.len) == 0;
}

static u_char *
line_behind(u_char *p, u_char *last)
{
	while (p < last && *p != '\n')
		p++;
	return p < last ? p + 1 : last;
}

/* Copies the head without such lines; returns where its empty line is. */
static u_char *
head_copy(ngx_buf_t *to, ngx_buf_t *from)
{
	u_char *p = from->pos, *end;

	for (; p < from->last && *p != '\r'; p = end) {
		end = line_behind(p, from->last);
		if (!is_rank_line(p, end))
			to->last = ngx_cpymem(to->last, p, (size_t)(end - p));
	}
	return p;
}

ngx_int_t
ngx_http_kvroute_rank_prepare(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;
	ngx_buf_t *head, *b;
	u_char *rest;

	if (!ctx->up->ranked)
		return NGX_OK;
	if (!ngx_http_kvroute_request_editable(r)) {
		ngx_log_error(NGX_LOG_WARN, r->connection->log, 0, "kvroute: "
		    "ranks= is for proxy_pass: nothing is predicted here");
		ctx->opinion = REASON_FAILED;
		return NGX_OK;
	}
	head = r->upstream->request_bufs->buf;
	b = ngx_create_temp_buf(r->pool, (size_t)(head->last - head->pos) +
	    header.len + sizeof(": \r\n") + NGX_INT32_LEN);
	if (b == NULL)
		return NGX_ERROR;
	rest = head_copy(b, head);
	ctx->rank_head = b;
	ctx->rank_at = b->last;
	ctx->rank_rest.data = rest;
	ctx->rank_rest.len = (size_t)(head->last - rest);
	b->last = ngx_cpymem(b->last, rest, ctx->rank_rest.len);
	b->flush = head->flush;
	b->last_buf = head->last_buf;
	r->upstream->request_bufs->buf = b;
	return NGX_OK;
}

void
ngx_http_kvroute_rank_write(ngx_http_kvroute_ctx_t *ctx)
{
	u_char *p = ctx->rank_at;

	if (p == NULL)
		return;
	if (ctx->rank >= 0)
		p = ngx_sprintf(p, "%V: %i\r\n", &header, ctx->rank);
	p = ngx_cpymem(p, ctx->rank_rest.data, ctx->rank_rest.len);
	ctx->rank_head->last = p;
}

/* --------------------------------------------------------------- names --- */

bool
ngx_http_kvroute_rank_split(ngx_str_t *name, uint32_t *rank)
{
	size_t at = name->len;
	ngx_int_t n;

	while (at > 0 && name->data[at - 1] != '@')
		at--;
	if (at <= 1)
		return false;
	n = ngx_atoi(name->data + at, name->len - at);
	if (n == NGX_ERROR || n >= RANKS_MAX)
		return false;
	*rank = (uint32_t)n;
	name->len = at - 1;
	return true;
}
