/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_trace.c - lines for kvroute-replay(1), see trace_line.h.
 *
 * A line is written when its request ends, by one write. So lines of several
 * nginx workers do not mix, but they are not in order of time.
 */
#include "ngx_http_kvroute_trace.h"

#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_param.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_try.h"

/* ------------------------------------------------------------ directive --- */

char *
kvroute_trace_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	kvroute_loc_conf_t *loc = conf;
	ngx_str_t *args = cf->args->elts;
	kvroute_trace_t *trace;
	char *wrong;

	if (loc->trace != NGX_CONF_UNSET_PTR)
		return "is duplicate";
	loc->trace = NULL;
	if (args[1].len == 3 && ngx_strncmp(args[1].data, "off", 3) == 0)
		return cf->args->nelts == 2 ? NGX_CONF_OK :
		    "is off and has parameters";
	trace = ngx_pcalloc(cf->pool, sizeof(*trace));
	if (trace == NULL)
		return NGX_CONF_ERROR;
	kvroute_param_defaults("kvroute_trace", trace);
	if (cf->args->nelts == 3) {
		wrong = kvroute_param_read(cf, &args[2], trace);
		if (wrong != NGX_CONF_OK)
			return wrong;
	}
	/* nginx opens it, and reopens it when logs are rotated. */
	trace->file = ngx_conf_open_file(cf->cycle, &args[1]);
	if (trace->file == NULL)
		return NGX_CONF_ERROR;
	loc->trace = trace;
	return NGX_CONF_OK;
}

/* ----------------------------------------------------------------- keep --- */

void
kvroute_trace_keep(kvroute_ctx_t *ctx)
{
	kvroute_loc_conf_t *loc = kvroute_loc(ctx->request);

	if (loc->trace != NULL)
		trace_line_keep(&ctx->trace, ctx->reader->prompt,
		    &ctx->book.decision, ctx->facts.opening,
		    ctx->up->options.block_size, loc->trace->sample);
}

/* ---------------------------------------------------------------- write --- */

ngx_int_t
kvroute_trace_handler(ngx_http_request_t *r)
{
	kvroute_loc_conf_t *loc = kvroute_loc(r);
	kvroute_ctx_t *ctx = kvroute_ctx(r);
	ngx_str_t name;
	char *line;
	size_t n;

	if (ctx == NULL || ctx->trace.ids == NULL || loc->trace == NULL ||
	    loc->trace->file->fd == NGX_INVALID_FILE)
		return NGX_OK;
	name = kvroute_worker_name(ctx);
	line = trace_line_write(&ctx->trace, &ctx->book.decision,
	    &ctx->passing.report, (char *)name.data, name.len, ctx->rank, &n);
	if (line == NULL)
		return NGX_OK;
	if (ngx_write_fd(loc->trace->file->fd, line, n) < 0)
		ngx_log_error(NGX_LOG_ALERT, r->connection->log, ngx_errno,
		    "write to \"%V\" failed", &loc->trace->file->name);
	free(line);
	return NGX_OK;
}
