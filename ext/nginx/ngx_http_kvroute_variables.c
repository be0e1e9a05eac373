/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_variables.c - variables for logs, and lines for
 * kvroute-replay(1). None of them reaches a client unless the configuration
 * sends it.
 */
#include "ngx_http_kvroute_variables.h"

#include "body.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_early.h"
#include "ngx_http_kvroute_param.h"
#include "ngx_http_kvroute_peers.h"
#include "ngx_http_kvroute_reader.h"
#include "reason.h"

enum fact {
	WORKER, PREFILL, AFFINITY, REASON,
	RANK, OVERLAP, BLOCKS, TOKENS, BEST, CACHED, NS,
	TTFT, QUEUE_TIME, TOKEN_TIME /* times */
};

enum { MODEL = BODY_IDS, USER }; /* texts of the body, beside its ids */

static void
text_is(ngx_http_variable_value_t *v, const u_char *text, size_t n)
{
	v->valid = 1;
	v->no_cacheable = 1;
	v->not_found = n == 0;
	v->len = (unsigned)n;
	v->data = (u_char *)text;
}

static bool
is_control(u_char c)
{
	return c < ' ' || c == 0x7f;
}

/*
 * A text of the body: its control characters become "?", for a configuration
 * may write it to a header or a log, where they begin another line.
 */
static ngx_int_t
client_text_is(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    const ngx_str_t *text)
{
	u_char *copy;
	size_t i;

	text_is(v, text->data, text->len);
	for (i = 0; i < text->len && !is_control(text->data[i]); i++)
		continue;
	if (i == text->len)
		return NGX_OK;
	copy = ngx_pnalloc(r->pool, text->len);
	if (copy == NULL)
		return NGX_ERROR;
	for (i = 0; i < text->len; i++)
		copy[i] = is_control(text->data[i]) ? '?' : text->data[i];
	text_is(v, copy, text->len);
	return NGX_OK;
}

/* ---------------------------------------------------------------- texts --- */

static ngx_str_t
borrow(const char *text)
{
	return (ngx_str_t){ ngx_strlen(text), (u_char *)text };
}

static ngx_str_t
text_of(kvroute_ctx_t *ctx, enum fact fact)
{
	static const char *const affinities[] = { [KVR_AFFINITY_NONE] = "none",
	    [KVR_AFFINITY_HIT] = "hit", [KVR_AFFINITY_NEW] = "new",
	    [KVR_AFFINITY_MOVED] = "moved", [KVR_AFFINITY_GONE] = "gone" };

	return fact == WORKER ? kvroute_worker_name(ctx) :
	    fact == PREFILL ? (ngx_str_t){ ctx->book.prefill_length,
	    (u_char *)ctx->book.prefill_name } :
	    fact == AFFINITY ? borrow(affinities[ctx->book.affinity]) :
	    borrow(reason_name(ctx->book.reason));
}

static ngx_int_t
text_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t fact)
{
	kvroute_ctx_t *ctx = kvroute_ctx(r);
	ngx_str_t text = ngx_null_string;

	if (ctx != NULL)
		text = text_of(ctx, (enum fact)fact);
	text_is(v, text.data, text.len);
	return NGX_OK;
}

static ngx_str_t
body_text_of(ngx_http_request_t *r, uintptr_t which)
{
	const kvroute_ctx_t *ctx = kvroute_ctx(r);
	const kvroute_texts_t *of = ctx == NULL ? NULL : &ctx->texts;
	ngx_str_t text = ngx_null_string;
	int turn;

	for (turn = 0; turn < 2 && text.len == 0; turn++) {
		if (of != NULL)
			text = which == MODEL ? of->model : of->ids[which];
		of = kvroute_early_texts(r);
	}
	return text;
}

/* The user, by the one of three members that the client has. */
static ngx_int_t
body_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t which)
{
	static const enum body_id order[] = { BODY_USER, BODY_SAFETY,
	    BODY_METADATA_USER };
	ngx_str_t text = ngx_null_string;
	size_t i;

	if (which != USER)
		text = body_text_of(r, which);
	for (i = 0; which == USER && text.len == 0 && i < 3; i++)
		text = body_text_of(r, order[i]);
	return client_text_is(r, v, &text);
}

/* -------------------------------------------------------------- numbers --- */

/* A count, or a time in microseconds. False: it is not known. */
static bool
number_of(const kvroute_ctx_t *ctx, enum fact fact, uint64_t *n)
{
	const struct kvr_decision *d = &ctx->book.decision;

	switch (fact) {
	case RANK:
		*n = (uint64_t)ctx->rank;
		return ctx->rank >= 0;
	case CACHED:
		*n = ctx->passing.report.cached_tokens;
		return ctx->passing.report.kind == KVR_REPORT_VALUE;
	case NS:
		*n = ctx->ns;
		return true;
	case TTFT:
		*n = (uint64_t)ctx->first_ms * 1000;
		return ctx->passing.first != 0;
	case QUEUE_TIME:
		*n = ctx->wait.ns / 1000000 * 1000;
		return ctx->wait.ns > 0;
	case TOKEN_TIME:
		*n = ctx->passing.token_ns / 1000;
		return ctx->passing.token_ns > 0;
	default:
		*n = fact == OVERLAP ? d->overlap_blocks :
		    fact == BLOCKS ? d->prompt_blocks :
		    fact == TOKENS ? d->overlap_tokens : d->best_tokens;
		return ctx->book.worker != 0;
	}
}

/* In seconds, as nginx's own times are. */
static u_char *
time_write(u_char *to, uint64_t us)
{
	return us % 1000 == 0 ? ngx_sprintf(to, "%uL.%03uL", us / 1000000,
	    us % 1000000 / 1000) : ngx_sprintf(to, "%uL.%06uL", us / 1000000,
	    us % 1000000);
}

static ngx_int_t
number_get(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t fact)
{
	kvroute_ctx_t *ctx = kvroute_ctx(r);
	u_char *text, *end;
	uint64_t n;

	if (ctx == NULL || !number_of(ctx, (enum fact)fact, &n)) {
		text_is(v, NULL, 0);
		return NGX_OK;
	}
	text = ngx_pnalloc(r->pool, NGX_INT64_LEN + 7);
	if (text == NULL)
		return NGX_ERROR;
	end = fact >= TTFT ? time_write(text, n) : ngx_sprintf(text, "%uL", n);
	text_is(v, text, (size_t)(end - text));
	return NGX_OK;
}

/* ------------------------------------------------------------------ all --- */

#define VARIABLE(name, get, fact) { ngx_string("kvroute_" name), NULL, get, \
	fact, NGX_HTTP_VAR_NOCACHEABLE, 0 }

static ngx_http_variable_t variables[] = {
	VARIABLE("worker", text_get, WORKER),
	VARIABLE("rank", number_get, RANK),
	VARIABLE("prefill", text_get, PREFILL),
	VARIABLE("overlap", number_get, OVERLAP),
	VARIABLE("blocks", number_get, BLOCKS),
	VARIABLE("overlap_tokens", number_get, TOKENS),
	VARIABLE("best_tokens", number_get, BEST),
	VARIABLE("ttft", number_get, TTFT),
	VARIABLE("queue_time", number_get, QUEUE_TIME),
	VARIABLE("token_time", number_get, TOKEN_TIME),
	VARIABLE("cached", number_get, CACHED),
	VARIABLE("reason", text_get, REASON),
	VARIABLE("model", body_get, MODEL),
	VARIABLE("affinity", text_get, AFFINITY),
	VARIABLE("cache_key", body_get, BODY_CACHE_KEY),
	VARIABLE("session", body_get, BODY_SESSION),
	VARIABLE("user", body_get, USER),
	VARIABLE("previous_response", body_get, BODY_PREVIOUS),
	VARIABLE("conversation", body_get, BODY_CONVERSATION),
	VARIABLE("ns", number_get, NS),
	ngx_http_null_variable
};

ngx_int_t
kvroute_variables_add(ngx_conf_t *cf)
{
	ngx_http_variable_t *of, *v;

	for (of = variables; of->name.len > 0; of++) {
		v = ngx_http_add_variable(cf, &of->name, of->flags);
		if (v == NULL)
			return NGX_ERROR;
		v->get_handler = of->get_handler;
		v->data = of->data;
	}
	return NGX_OK;
}

/* ---------------------------------------------------------------- trace --- */

/*
 * Lines for kvroute-replay(1), see trace_line.h. One is written when its
 * request ends, by one write. So lines of several nginx workers do not mix, but
 * they are not in order of time.
 */
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

void
kvroute_trace_keep(kvroute_ctx_t *ctx)
{
	kvroute_loc_conf_t *loc = kvroute_loc(ctx->request);

	if (loc->trace != NULL)
		trace_line_keep(&ctx->trace, ctx->reader->prompt,
		    &ctx->book.decision, ctx->facts.opening,
		    ctx->up->options.block_size, loc->trace->sample);
}

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
