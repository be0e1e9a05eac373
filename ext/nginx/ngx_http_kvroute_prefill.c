/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_prefill.c - see ngx_http_kvroute_prefill.h. */
#include "ngx_http_kvroute_prefill.h"

#include "counters.h"
#include "ngx_http_kvroute_choose.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_end.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_try.h"
#include "roles.h"
#include "shared.h"

/* False: no memory. */
static bool
name_keep(ngx_http_kvroute_ctx_t *ctx, const struct known *known)
{
	ngx_str_t *name = &ctx->prefill.name;

	name->data = ngx_pnalloc(ctx->request->pool, known->name_len);
	if (name->data == NULL)
		return false;
	ngx_memcpy(name->data, known->name, known->name_len);
	name->len = known->name_len;
	return true;
}

/* False: the server that is taken prefills it itself. */
static bool
prefill_choose(ngx_http_kvroute_ctx_t *ctx, const struct kvr_request *taken,
    int64_t now)
{
	const ngx_str_t name = ngx_http_kvroute_taken_name(ctx);
	struct kvr_decision d = { .size = sizeof(d) };
	struct fleet *f = &ctx->up->fleet;
	size_t n = roles_allow(f, name.data, name.len), i;
	uint32_t rank;

	if (!roles_book(f->kvr, ctx->reader->prompt, taken, f->allowed, n, now,
	    &d))
		return false;
	ctx->prefill.lease = d.lease;
	i = known_of_worker(f, d.worker, &rank);
	if (i == f->n_known || !name_keep(ctx, &f->known[i])) {
		ngx_http_kvroute_prefill_end(ctx, false);
		return false;
	}
	shared_count(f->shared, COUNT_SPLIT, 1);
	return true;
}

void
ngx_http_kvroute_split_book(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct fleet *f = &ctx->up->fleet;
	struct kvr_request r;

	ngx_http_kvroute_request_make(ctx, &r);
	if (roles_leaves(f, ngx_http_kvroute_taken_peer(ctx),
	    &ctx->decision) && prefill_choose(ctx, &r, now))
		r.flags |= KVR_IGNORE_PREFILL;
	ctx->missed = kvr_lease_open_on(f->kvr, ctx->reader->prompt, &r,
	    ctx->worker, now, &d) != KVR_OK;
	ctx->lease = ctx->decision.lease = d.lease;
}
