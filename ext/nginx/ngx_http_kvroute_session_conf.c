/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_session_conf.c - directives about sessions and state.
 */
#include "ngx_http_kvroute_session_conf.h"

#include "ngx_http_kvroute_param.h"

/*
 * Headers and fields that clients send unasked, see kvroute-nginx(7). Some ids
 * of agents are names, so they count within their session.
 */
static const char *const automatic[] = { "$http_x_session_affinity",
    "$http_x_session_id",
    "$http_x_claude_code_session_id$http_x_claude_code_agent_id",
    "$http_thread_id", "$http_session_id",
    "$kvroute_session", "$kvroute_cache_key" };

/* A value that is the same for all requests would be one session. */
static const char *
value_add(ngx_conf_t *cf, ngx_array_t *values, ngx_str_t text)
{
	ngx_http_complex_value_t *value = ngx_array_push(values);
	ngx_http_compile_complex_value_t ccv;

	if (value == NULL)
		return "no memory";
	ngx_memzero(&ccv, sizeof(ccv));
	ccv.cf = cf;
	ccv.value = &text;
	ccv.complex_value = value;
	if (ngx_http_compile_complex_value(&ccv) != NGX_OK)
		return "is no value";
	return value->lengths == NULL ? "has no variable: all requests would "
	    "be one session" : NULL;
}

static const char *
automatic_add(ngx_conf_t *cf, ngx_array_t *values)
{
	const char *why = NULL;
	ngx_str_t text;
	size_t i;

	for (i = 0; i < sizeof(automatic) / sizeof(automatic[0]) &&
	    why == NULL; i++) {
		text.len = ngx_strlen(automatic[i]);
		text.data = ngx_pnalloc(cf->pool, text.len + 1);
		if (text.data == NULL)
			return "no memory";
		ngx_memcpy(text.data, automatic[i], text.len + 1);
		why = value_add(cf, values, text);
	}
	return why;
}

static char *
affinity_argument(ngx_conf_t *cf, ngx_http_kvroute_loc_conf_t *loc,
    ngx_str_t *arg)
{
	const char *why;
	ngx_str_t value;

	if (ngx_http_kvroute_param_is(arg, "mode", &value) ||
	    ngx_http_kvroute_param_is(arg, "ttl", &value))
		return ngx_http_kvroute_param_read(cf, arg, loc);
	if (ngx_http_kvroute_word_is(arg, "off"))
		why = "is for itself";
	else if (ngx_http_kvroute_word_is(arg, "auto"))
		why = automatic_add(cf, loc->affinity);
	else
		why = value_add(cf, loc->affinity, *arg);
	return why == NULL ? NGX_CONF_OK :
	    ngx_http_kvroute_param_refuse(cf, arg, why);
}

char *
ngx_http_kvroute_affinity_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	ngx_http_kvroute_loc_conf_t *loc = conf;
	ngx_str_t *args = cf->args->elts;
	ngx_uint_t i;
	char *wrong;

	if (loc->affinity != NGX_CONF_UNSET_PTR)
		return "is duplicate";
	loc->affinity = NULL;
	if (cf->args->nelts == 2 && ngx_http_kvroute_word_is(&args[1], "off"))
		return NGX_CONF_OK;
	loc->affinity = ngx_array_create(cf->pool, 8,
	    sizeof(ngx_http_complex_value_t));
	if (loc->affinity == NULL)
		return NGX_CONF_ERROR;
	ngx_http_kvroute_param_defaults("kvroute_affinity", loc);
	for (i = 1; i < cf->args->nelts; i++) {
		wrong = affinity_argument(cf, loc, &args[i]);
		if (wrong != NGX_CONF_OK)
			return wrong;
	}
	return loc->affinity->nelts > 0 ? NGX_CONF_OK : "has no value";
}

char *
ngx_http_kvroute_responses_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	ngx_http_kvroute_loc_conf_t *loc = conf;
	ngx_str_t *arg = (ngx_str_t *)cf->args->elts + 1, value;

	if (loc->responses_ttl != NGX_CONF_UNSET)
		return "is duplicate";
	if (ngx_http_kvroute_word_is(arg, "off")) {
		loc->responses_ttl = 0;
		return NGX_CONF_OK;
	}
	if (ngx_http_kvroute_param_is(arg, "ttl", &value))
		return ngx_http_kvroute_param_read(cf, arg, loc);
	if (!ngx_http_kvroute_word_is(arg, "on"))
		return ngx_http_kvroute_param_refuse(cf, arg,
		    "it is on, off, or ttl= with a time of at most 30 days");
	ngx_http_kvroute_param_defaults("kvroute_responses", loc);
	return NGX_CONF_OK;
}

void
ngx_http_kvroute_session_create(ngx_http_kvroute_loc_conf_t *loc)
{
	loc->affinity = NGX_CONF_UNSET_PTR;
	loc->responses_ttl = NGX_CONF_UNSET;
}

void
ngx_http_kvroute_session_merge(ngx_http_kvroute_loc_conf_t *loc,
    const ngx_http_kvroute_loc_conf_t *of)
{
	if (loc->affinity == NGX_CONF_UNSET_PTR) {
		loc->affinity_mode = of->affinity_mode;
		loc->affinity_ttl = of->affinity_ttl;
	}
	ngx_conf_merge_ptr_value(loc->affinity, of->affinity, NULL);
	if (loc->responses_ttl == NGX_CONF_UNSET)
		loc->responses_ttl = of->responses_ttl;
	if (loc->responses_ttl == NGX_CONF_UNSET)
		ngx_http_kvroute_param_defaults("kvroute_responses", loc);
}
