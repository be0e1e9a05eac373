/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_share.c - kvroute_share: how much of a full index a tenant,
 * the value of kvroute_scope, may have beside others. See kvr_tenant(3).
 */
#include "ngx_http_kvroute_share.h"

#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_param.h"

static char unscoped[] = "\"kvroute_share\" needs \"kvroute_scope\", which "
    "says whose share it is";

/* 0: it is no share. */
static uint32_t
share_read(const ngx_str_t *text)
{
	ngx_int_t n = ngx_atoi(text->data, text->len);

	return n >= 1 && n <= KVR_SHARE_MAX ? (uint32_t)n : 0;
}

char *
kvroute_share_command(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	kvroute_loc_conf_t *loc = conf;
	char *wrong = ngx_http_set_complex_value_slot(cf, cmd, conf);

	if (wrong != NGX_CONF_OK || loc->share->lengths != NULL)
		return wrong;
	return share_read(&loc->share->value) > 0 ? NGX_CONF_OK :
	    "has a value that is no number from 1 to 10000, or a variable "
	    "that gives one; 100 is what tenants have without it";
}

/*
 * A location must know whose its share is. A server, or all of http, leaves
 * that to its locations: one of them at least must know it.
 */
char *
kvroute_share_merge(ngx_conf_t *cf, kvroute_loc_conf_t *loc,
    kvroute_loc_conf_t *of)
{
	ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf,
	    ngx_http_core_module);
	kvroute_main_conf_t *main = kvroute_main(cf);
	bool own = loc->share != NULL;

	if (!own)
		loc->share = of->share;
	if (loc->share == NULL)
		return NULL;
	main->shared = true;
	main->scoped |= loc->scope != NULL;
	return own && loc->scope == NULL && core->name.len > 0 ?
	    unscoped : NULL;
}

char *
kvroute_share_check(const kvroute_main_conf_t *main)
{
	return main->shared && !main->scoped ? unscoped : NULL;
}

uint32_t
kvroute_share_of(kvroute_ctx_t *ctx)
{
	kvroute_loc_conf_t *loc = kvroute_loc(ctx->request);
	ngx_str_t text = ngx_null_string;
	uint32_t share;

	if (ctx->up->options.tenants == 0)
		return 0;
	if (loc->share == NULL || loc->scope == NULL ||
	    ngx_http_complex_value(ctx->request, loc->share, &text) !=
	    NGX_OK || text.len == 0)
		return KVR_SHARE_DEFAULT;
	share = share_read(&text);
	if (share > 0)
		return share;
	text = kvroute_printable(ctx->request->pool, &text);
	ngx_log_error(NGX_LOG_WARN, ctx->request->connection->log, 0,
	    "kvroute_share is \"%V\", no number from 1 to 10000: 100 is used",
	    &text);
	return KVR_SHARE_DEFAULT;
}
