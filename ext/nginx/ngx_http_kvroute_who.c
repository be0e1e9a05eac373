/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_who.c - digests of a request's prompt and client: a server
 * that fails several of both is to blame itself.
 */
#include "ngx_http_kvroute_who.h"

#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_reader.h"
#include "shared.h"

enum { DIGEST_BYTES = 4096 }; /* of each buffer of a body */

/* By the blocks of the prompt and its length. */
void
ngx_http_kvroute_prompt_digest(ngx_http_kvroute_ctx_t *ctx)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };
	uint64_t local, sequence, of[2];

	if (ctx->digest != 0 || ctx->reader == NULL ||
	    ctx->reader->prompt == NULL ||
	    kvr_prompt_info_get(ctx->reader->prompt, &info) != KVR_OK ||
	    info.blocks == 0 || kvr_prompt_hash(ctx->reader->prompt,
	    info.blocks - 1, &local, &sequence) != KVR_OK)
		return;
	of[0] = sequence;
	of[1] = info.units;
	ctx->digest = shared_key((u_char *)of, sizeof(of));
}

/* For a short prompt the digest is that of its body. */
uint64_t
ngx_http_kvroute_digest_of(const ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_request_body_t *body = ctx->request->request_body;
	ngx_chain_t *cl = body == NULL ? NULL : body->bufs;
	uint64_t of[2] = { 0, 0 };
	size_t n;

	if (ctx->digest != 0)
		return ctx->digest;
	for (; cl != NULL; cl = cl->next) {
		n = ngx_buf_in_memory(cl->buf) ? (size_t)ngx_min(
		    cl->buf->last - cl->buf->pos, DIGEST_BYTES) : 0;
		of[1] = shared_key(cl->buf->pos, n) +
		    (uint64_t)ngx_buf_size(cl->buf);
		of[0] = shared_key((u_char *)of, sizeof(of));
	}
	return of[0] | 1;
}

/* The address, as far as a client cannot choose it, and the tenant. */
uint64_t
ngx_http_kvroute_client_of(const ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_kvroute_loc(r);
	struct sockaddr *from = r->connection->sockaddr;
	u_char *at = (u_char *)from;
	size_t n = 0;
	ngx_str_t tenant = ngx_null_string;
	uint64_t of[2];

	if (from->sa_family == AF_INET) {
		at += offsetof(struct sockaddr_in, sin_addr);
		n = sizeof(struct in_addr);
	} else if (from->sa_family == AF_INET6) {
		at += offsetof(struct sockaddr_in6, sin6_addr);
		n = 8;
	}
	if (loc->scope != NULL)
		(void)ngx_http_complex_value(r, loc->scope, &tenant);
	of[0] = shared_key(at, n);
	of[1] = shared_key(tenant.data, tenant.len);
	return shared_key((u_char *)of, sizeof(of));
}
