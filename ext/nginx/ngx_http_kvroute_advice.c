/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_advice.c - warns at start about missing directives, with the
 * line to add: a line for each upstream and directive.
 *
 * nginx has no way to read the directives of another module. The module's table
 * of commands has the field of each, and is read so:
 *
 *   module "ngx_http_upstream_keepalive_module"
 *     command "keepalive_timeout" --> offset --> field of its configuration
 *
 * The configuration of the proxy module begins with that of its upstream.
 */
#include "ngx_http_kvroute_module.h"

#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_param.h"

enum {
	ENGINE_IDLE_MS = 5000,   /* uvicorn closes a connection then */
	DEFAULT_MS = 60000       /* nginx's, to connect and to read */
};

enum advice {
	ADVICE_RETRY,
	ADVICE_BUFFERING,
	ADVICE_VERSION,
	ADVICE_VERSION_2,
	ADVICE_CONNECTION,
	ADVICE_READ,
	ADVICE_CONNECT
};

#define RETRIES (NGX_HTTP_UPSTREAM_FT_ERROR | NGX_HTTP_UPSTREAM_FT_TIMEOUT | \
	NGX_HTTP_UPSTREAM_FT_HTTP_429 | NGX_HTTP_UPSTREAM_FT_HTTP_500 | \
	NGX_HTTP_UPSTREAM_FT_HTTP_502 | NGX_HTTP_UPSTREAM_FT_HTTP_503 | \
	NGX_HTTP_UPSTREAM_FT_HTTP_504 | NGX_HTTP_UPSTREAM_FT_NON_IDEMPOTENT)

static ngx_module_t *
module_named(ngx_conf_t *cf, const char *name)
{
	ngx_module_t **all = cf->cycle->modules;

	return all[kvroute_module_find(all, name)];
}

/* The field that the directive sets in the configuration of its module. */
static void *
field_of(const ngx_module_t *module, void *conf, const char *directive)
{
	ngx_command_t *command = module->commands;

	for (; command->name.len > 0; command++)
		if (kvroute_word_is(&command->name, directive))
			return (char *)conf + command->offset;
	return NULL;
}

static void
advise(ngx_conf_t *cf, const kvroute_srv_conf_t *up, const char *why,
    const char *directive)
{
	ngx_log_error(NGX_LOG_WARN, cf->log, 0, "kvroute of upstream \"%V\": "
	    "%s: add \"%s\"", &up->upstream->host, why, directive);
}

/* ------------------------------------------------------------ locations --- */

static void
advise_once(ngx_conf_t *cf, kvroute_srv_conf_t *up, enum advice advice)
{
	static const char *const lines[][2] = {
		[ADVICE_RETRY] = { "requests that a server refuses or breaks "
		    "off are not repeated by another one",
		    "proxy_next_upstream error timeout http_429 http_500 "
		    "http_502 http_503 http_504 non_idempotent;" },
		[ADVICE_BUFFERING] = { "tokens reach clients late",
		    "proxy_buffering off;" },
		[ADVICE_VERSION] = { "each request opens a connection",
		    "proxy_http_version 1.1;" },
		[ADVICE_VERSION_2] = { "usage is not asked for and ranks are "
		    "not told in HTTP/2", "proxy_http_version 1.1;" },
		[ADVICE_CONNECTION] = { "each request opens a connection",
		    "proxy_set_header Connection \"\";" },
		[ADVICE_READ] = { "a prefill or an answer of a minute is taken "
		    "for a failure", "proxy_read_timeout 600s;" },
		[ADVICE_CONNECT] = { "a server that is gone is waited for for "
		    "a minute", "proxy_connect_timeout 2s;" } };

	if ((up->advised >> advice & 1) == 0)
		advise(cf, up, lines[advice][0], lines[advice][1]);
	up->advised |= 1u << advice;
}

/* Does the location clear the header, as nginx before 1.29.7 needs it? */
static bool
clears_connection(const ngx_module_t *proxy, void *conf)
{
	ngx_array_t **headers = field_of(proxy, conf, "proxy_set_header");
	ngx_keyval_t *header;
	ngx_uint_t i;

	if (nginx_version >= 1029007 || headers == NULL)
		return true;
	if (*headers == NULL || *headers == NGX_CONF_UNSET_PTR)
		return false;
	header = (*headers)->elts;
	for (i = 0; i < (*headers)->nelts; i++)
		if (header[i].key.len == sizeof("Connection") - 1 &&
		    ngx_strncasecmp(header[i].key.data,
		    (u_char *)"Connection", header[i].key.len) == 0)
			return true;
	return false;
}

static void
proxy_advise(ngx_conf_t *cf, const ngx_module_t *proxy,
    ngx_http_upstream_conf_t *conf, kvroute_srv_conf_t *up)
{
	ngx_uint_t *version = field_of(proxy, conf, "proxy_http_version");

	if ((conf->next_upstream & RETRIES) != RETRIES)
		advise_once(cf, up, ADVICE_RETRY);
	if (conf->read_timeout <= DEFAULT_MS)
		advise_once(cf, up, ADVICE_READ);
	if (conf->connect_timeout >= DEFAULT_MS)
		advise_once(cf, up, ADVICE_CONNECT);
	if (conf->buffering)
		advise_once(cf, up, ADVICE_BUFFERING);
	if (version != NULL && *version == NGX_HTTP_VERSION_10)
		advise_once(cf, up, ADVICE_VERSION);
	else if (version != NULL && *version == NGX_HTTP_VERSION_20)
		advise_once(cf, up, ADVICE_VERSION_2);
	else if (!clears_connection(proxy, conf))
		advise_once(cf, up, ADVICE_CONNECTION);
}

/* Where a variable names the upstream, it is known with the first request. */
void
kvroute_location_advise(ngx_conf_t *cf)
{
	ngx_module_t *proxy = module_named(cf, "ngx_http_proxy_module");
	ngx_http_conf_ctx_t *ctx = cf->ctx;
	ngx_http_upstream_conf_t *conf;
	kvroute_srv_conf_t *up;

	if (proxy == NULL)
		return;
	conf = ctx->loc_conf[proxy->ctx_index];
	if (conf == NULL || conf->upstream == NULL ||
	    conf->upstream->srv_conf == NULL)
		return;
	up = ngx_http_conf_upstream_srv_conf(conf->upstream,
	    ngx_http_upstream_kvroute_module);
	if (up->on)
		proxy_advise(cf, proxy, conf, up);
}

/* ------------------------------------------------------------ upstreams --- */

static void
keepalive_advise(ngx_conf_t *cf, kvroute_srv_conf_t *up)
{
	ngx_module_t *module = module_named(cf,
	    "ngx_http_upstream_keepalive_module");
	ngx_msec_t *timeout = NULL;

	if (module != NULL)
		timeout = field_of(module, up->upstream->srv_conf[
		    module->ctx_index], "keepalive_timeout");
	/* The method of another directive calls this one's. */
	if (kvroute_is_outermost(up->upstream))
		advise(cf, up, "each request opens a connection",
		    "keepalive 64; keepalive_timeout 4s;");
	else if (timeout != NULL && *timeout >= ENGINE_IDLE_MS)
		advise(cf, up, "engines on uvicorn, such as vLLM, close "
		    "connections that are idle for 5 s, and a request may be "
		    "on its way", "keepalive_timeout 4s;");
}

static void
upstream_advise(ngx_conf_t *cf, kvroute_srv_conf_t *up)
{
	keepalive_advise(cf, up);
	if (up->fleet.gray == 0 && up->shadow == KVROUTE_CHOOSE)
		advise(cf, up, "a server that is slow or failing gets as many "
		    "requests as others", "gray=8\" to \"kvroute");
	if (up->fleet.poll_ms == 0)
		advise(cf, up, "requests that others send to its servers are "
		    "not seen", "poll=1s\" to \"kvroute");
#if (NGX_HTTP_UPSTREAM_ZONE)
	if (up->upstream->shm_zone == NULL)
		advise(cf, up, "each process counts failures and connections "
		    "by itself", "zone NAME 256k;");
#endif
}

ngx_int_t
kvroute_upstreams_advise(ngx_conf_t *cf)
{
	kvroute_main_conf_t *main = kvroute_main(cf);
	kvroute_srv_conf_t **ups = main->upstreams.elts;
	ngx_uint_t i;

	for (i = 0; i < main->upstreams.nelts; i++) {
		if (ups[i]->init_stock == NULL) {
			ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "upstream "
			    "\"%V\" has another method behind \"kvroute\", "
			    "which has no effect then: remove one of them",
			    &ups[i]->upstream->host);
			return NGX_ERROR;
		}
		upstream_advise(cf, ups[i]);
	}
	return NGX_OK;
}
