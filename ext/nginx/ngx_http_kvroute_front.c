/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_front.c - lines of prompts that do not count, and the front
 * of prompts, see fronts.h.
 */
#include "ngx_http_kvroute_front.h"

/* ----------------------------------------------------------- directives --- */

#if (NGX_PCRE)

static ngx_regex_t *
regex_make(ngx_conf_t *cf, ngx_str_t *pattern)
{
	u_char error[NGX_MAX_CONF_ERRSTR];
	ngx_regex_compile_t compile;

	ngx_memzero(&compile, sizeof(compile));
	compile.pattern = *pattern;
	compile.pool = cf->pool;
	compile.err.data = error;
	compile.err.len = sizeof(error);
	if (ngx_regex_compile(&compile) == NGX_OK)
		return compile.regex;
	ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%V", &compile.err);
	return NULL;
}

char *
kvroute_ignore_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	kvroute_loc_conf_t *loc = conf;
	ngx_str_t *args = cf->args->elts;
	ngx_regex_t **place;
	ngx_uint_t i;

	if (loc->ignored == NULL)
		return "conflicts with \"off\"";
	if (cf->args->nelts == 2 && ngx_strcmp(args[1].data, "off") == 0) {
		if (loc->ignored != NGX_CONF_UNSET_PTR)
			return "conflicts with another line";
		loc->ignored = NULL;
		return NGX_CONF_OK;
	}
	if (loc->ignored == NGX_CONF_UNSET_PTR)
		loc->ignored = ngx_array_create(cf->pool, 2, sizeof(*place));
	for (i = 1; loc->ignored != NULL && i < cf->args->nelts; i++) {
		place = ngx_array_push(loc->ignored);
		if (place == NULL)
			return NGX_CONF_ERROR;
		*place = regex_make(cf, &args[i]);
		if (*place == NULL)
			return NGX_CONF_ERROR;
	}
	return loc->ignored == NULL ? NGX_CONF_ERROR : NGX_CONF_OK;
}

bool
kvroute_line_ignored(void *lines, const char *line, size_t n)
{
	const ngx_array_t *all = lines;
	ngx_regex_t **regex = all->elts;
	ngx_str_t text = { n, (u_char *)line };
	ngx_uint_t i;

	for (i = 0; i < all->nelts; i++)
		if (ngx_regex_exec(regex[i], &text, NULL, 0) >= 0)
			return true;
	return false;
}

#else

char *
kvroute_ignore_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	return "needs an nginx with PCRE";
}

bool
kvroute_line_ignored(void *lines, const char *line, size_t n)
{
	return false;
}

#endif

/* --------------------------------------------------------------- fronts --- */

void
kvroute_front_look(kvroute_srv_conf_t *up,
    const struct kvr_prompt *prompt, const struct kvr_scope *scope)
{
	unsigned looked, parted;

	if (up->fronts != NULL && fronts_look(up->fronts, prompt, scope,
	    up->fleet.shared, &looked, &parted))
		ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
		    "kvroute: upstream \"%V\": %ud of the last %ud long "
		    "prompts differ from earlier ones at their beginning "
		    "only, so that engines share nothing: does it have a line "
		    "that changes with each request? See kvroute_ignore_line",
		    &up->upstream->host, parted, looked);
}
