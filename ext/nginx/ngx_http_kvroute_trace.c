/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_trace.c - lines for kvroute-replay(1): traffic without its
 * text.
 *
 *   {"timestamp": 1763760000123, "input_length": 812, "output_length": 64,
 *    "hash_ids": [1093, 5521], "prompt_tokens": 790, "cached_tokens": 512,
 *    "worker": "10.0.0.1:8000", "ms": 1520}
 *
 * A hash id stands for 512 tokens, estimated at 4 bytes each, and for all that
 * precede them. It is taken from the sequence hash, which is keyed by the
 * region's secret. input_length is estimated in the same way.
 *
 * SAMPLE. One request in a hundred, drawn at random, would show a hundredth of
 * the reuse. So whole families of prompts are drawn: those that agree up to the
 * first model response in them, as the turns of a chat do.
 *
 * A line is written when its request ends, by one write. So lines of several
 * nginx workers do not mix, but they are not in order of time.
 */
#include "ngx_http_kvroute_trace.h"

#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_param.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_try.h"

enum {
	ID_BYTES = 2048,        /* of the prompt, that one id stands for */
	IDS_MAX = 1 << 14,      /* what a reader takes */
	ID_DIGITS = 17,
	LINE_REST = 320 + KVR_NAME_MAX,
	ALL = 1000000           /* parts of the sample */
};

/* ------------------------------------------------------------ directive --- */

char *
ngx_http_kvroute_trace_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	ngx_http_kvroute_loc_conf_t *loc = conf;
	ngx_str_t *args = cf->args->elts;
	ngx_http_kvroute_trace_t *trace;
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
	if (ngx_http_kvroute_param_defaults(cf, "kvroute_trace", trace) !=
	    NGX_OK)
		return NGX_CONF_ERROR;
	if (cf->args->nelts == 3) {
		wrong = ngx_http_kvroute_param_read(cf, &args[2], trace);
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

static uint64_t
sequence_at(struct kvr_prompt *p, size_t block)
{
	uint64_t local, sequence;

	return kvr_prompt_hash(p, block, &local, &sequence) == KVR_OK ?
	    sequence : 0;
}

/* In the sample? Pseudorandom by prompt, equal within a family. */
static bool
is_drawn(ngx_http_kvroute_ctx_t *ctx, ngx_uint_t sample)
{
	uint32_t size = ctx->up->options.block_size;
	uint64_t blocks = ctx->facts.opening / size;

	if (sample == ALL)
		return true;
	if (blocks > ctx->decision.prompt_blocks)
		blocks = ctx->decision.prompt_blocks;
	return sequence_at(ctx->reader->prompt, blocks > 0 ? blocks - 1 : 0) %
	    ALL < sample;
}

void
ngx_http_kvroute_trace_keep(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(
	    ctx->request, ngx_http_upstream_kvroute_module);
	size_t blocks = ctx->decision.prompt_blocks, step, i;

	if (loc->trace == NULL || blocks == 0 || ctx->ids != NULL ||
	    !is_drawn(ctx, loc->trace->sample))
		return;
	step = ID_BYTES / ctx->up->options.block_size;
	step += step == 0;
	ctx->n_ids = ngx_min((blocks + step - 1) / step, (size_t)IDS_MAX);
	ctx->ids = ngx_palloc(ctx->request->pool,
	    ctx->n_ids * sizeof(*ctx->ids));
	if (ctx->ids == NULL)
		return;
	for (i = 0; i < ctx->n_ids; i++)
		ctx->ids[i] = sequence_at(ctx->reader->prompt,
		    ngx_min((i + 1) * step, blocks) - 1);
	ctx->arrived_ms = (int64_t)ngx_time() * 1000 +
	    (int64_t)ngx_timeofday()->msec;
}

/* ---------------------------------------------------------------- write --- */

/* 53 bits: exact in every JSON reader. */
static u_char *
ids_print(u_char *p, const ngx_http_kvroute_ctx_t *ctx)
{
	ngx_uint_t i;

	for (i = 0; i < ctx->n_ids; i++)
		p = ngx_sprintf(p, "%s%uL", i > 0 ? "," : "",
		    ctx->ids[i] >> 11);
	return p;
}

static u_char *
line_print(u_char *p, ngx_http_kvroute_ctx_t *ctx)
{
	struct kvr_report *report = &ctx->report;
	ngx_str_t name;
	int64_t ms = (int64_t)ngx_time() * 1000 +
	    (int64_t)ngx_timeofday()->msec - ctx->arrived_ms;

	p = ngx_sprintf(p, "{\"timestamp\": %L, \"input_length\": %uL, "
	    "\"output_length\": %uL, \"hash_ids\": [", ctx->arrived_ms,
	    ctx->decision.prompt_tokens, report->completion_tokens);
	p = ids_print(p, ctx);
	p = ngx_sprintf(p, "]");
	if (report->kind != KVR_REPORT_NONE)
		p = ngx_sprintf(p, ", \"prompt_tokens\": %uL",
		    report->prompt_tokens);
	if (report->kind == KVR_REPORT_VALUE)
		p = ngx_sprintf(p, ", \"cached_tokens\": %uL",
		    report->cached_tokens);
	/* A peer's name is an address: nothing to escape. */
	name = ngx_http_kvroute_worker_name(ctx);
	p = ngx_sprintf(p, ", \"worker\": \"%V", &name);
	if (ctx->rank >= 0)
		p = ngx_sprintf(p, "@%i", ctx->rank);
	return ngx_sprintf(p, "\", \"ms\": %L}\n", ms < 0 ? 0 : ms);
}

static ngx_int_t
log_handler(ngx_http_request_t *r)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(r,
	    ngx_http_upstream_kvroute_module);
	ngx_http_kvroute_ctx_t *ctx = ngx_http_kvroute_ctx(r);
	u_char *line, *end;

	if (ctx == NULL || ctx->ids == NULL || loc->trace == NULL ||
	    loc->trace->file->fd == NGX_INVALID_FILE)
		return NGX_OK;
	line = ngx_alloc(ctx->n_ids * ID_DIGITS + LINE_REST,
	    r->connection->log);
	if (line == NULL)
		return NGX_OK;
	end = line_print(line, ctx);
	if (ngx_write_fd(loc->trace->file->fd, line, (size_t)(end - line)) < 0)
		ngx_log_error(NGX_LOG_ALERT, r->connection->log, ngx_errno,
		    "write to \"%V\" failed", &loc->trace->file->name);
	ngx_free(line);
	ctx->ids = NULL;
	return NGX_OK;
}

ngx_int_t
ngx_http_kvroute_trace_add(ngx_conf_t *cf)
{
	ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf,
	    ngx_http_core_module);
	ngx_http_handler_pt *handler = ngx_array_push(
	    &core->phases[NGX_HTTP_LOG_PHASE].handlers);

	if (handler == NULL)
		return NGX_ERROR;
	*handler = log_handler;
	return NGX_OK;
}
