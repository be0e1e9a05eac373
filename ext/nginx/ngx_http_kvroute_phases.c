/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_phases.c - where the module's code is called for a request,
 * beside the balancer: filters and handlers of phases.
 */
#include "ngx_http_kvroute_phases.h"

#include "ngx_http_kvroute_advice.h"
#include "ngx_http_kvroute_answer.h"
#include "ngx_http_kvroute_aside.h"
#include "ngx_http_kvroute_early.h"
#include "ngx_http_kvroute_read.h"
#include "ngx_http_kvroute_salt.h"
#include "ngx_http_kvroute_trace.h"

/* A request that is salted comes again. */
static ngx_int_t
precontent_handler(ngx_http_request_t *r)
{
	ngx_int_t rc = kvroute_salt_set(r);

	return rc != NGX_DECLINED ? rc : kvroute_read_ahead(r);
}

/* nginx runs the handlers of a phase from the last to the first. */
static ngx_int_t
precontent_add(ngx_conf_t *cf)
{
	ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf,
	    ngx_http_core_module);
	ngx_array_t *all = &core->phases[NGX_HTTP_PRECONTENT_PHASE].handlers;
	ngx_http_handler_pt *handlers = ngx_array_push(all);

	if (handlers == NULL)
		return NGX_ERROR;
	handlers = all->elts;
	ngx_memmove(handlers + 1, handlers,
	    (all->nelts - 1) * sizeof(*handlers));
	handlers[0] = precontent_handler;
	return NGX_OK;
}

ngx_int_t
kvroute_phases_add(ngx_conf_t *cf)
{
	if (kvroute_upstreams_advise(cf) != NGX_OK ||
	    kvroute_aside_prepare(cf) != NGX_OK)
		return NGX_ERROR;
	kvroute_filters_add();
	if (precontent_add(cf) != NGX_OK)
		return NGX_ERROR;
	kvroute_read_add();
	if (kvroute_early_add(cf) != NGX_OK)
		return NGX_ERROR;
	return kvroute_trace_add(cf);
}
