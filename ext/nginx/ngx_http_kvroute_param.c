/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_param.c - see ngx_http_kvroute_param.h. Each directive with
 * parameters has a table, see text_rows.h. An error is
 *
 *   invalid parameter "gray=1": it is "off", or how many times slower ..., from
 *   2 to 100
 */
#include "ngx_http_kvroute_param.h"

#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_server.h"
#include "ngx_http_kvroute_variables.h"
#include "region_file.h"
#include "text_rows.h"

enum { EXPECTED_BYTES = 512, BLOCK_MIN = 16 };

const char *const kvroute_shadows[TEXT_WORDS] = {
	[KVROUTE_LEAST_CONN] = "least_conn",
	[KVROUTE_ROUND_ROBIN] = "round_robin"
};
static const char *const modes[TEXT_WORDS] = {
	[KVR_AFFINITY_HARD] = "hard", [KVR_AFFINITY_HASH] = "hash"
};

static text_special zone_read, file_read, secret_read, path_read, option_read,
    fact_read;

#define SRV(kind, field) FIELD(kind, kvroute_srv_conf_t, field)
#define LOC(kind, field) FIELD(kind, kvroute_loc_conf_t, field)
#define SPECIAL(by) .kind = TEXT_SPECIAL, .special = by
#define OPTION .kind = TEXT_LIBRARY, .special = option_read
#define FACT .kind = TEXT_LIBRARY, .special = fact_read

static const struct text_row kvroute[] = {
	{ "zone", "NAME:SIZE, the shared memory of the index",
	    SPECIAL(zone_read) },
	{ "path", "the file of the index", SPECIAL(file_read) },
	{ "size", NULL, OPTION },
	{ "block", "the bytes of a block", OPTION, RANGE("16", "262144") },
	{ "workers", NULL, OPTION },
	{ "ttl", NULL, OPTION },
	{ "affinity", NULL, OPTION },
	{ "tenants", NULL, OPTION },
	{ "secret", "the file of the secret", SPECIAL(secret_read) },
	{ "journal", NULL, OPTION },
	{ "poll", "the time from one poll to the next", SRV(TEXT_MS,
	    fleet.poll_ms), RANGE("100ms", "1m"), PRESET("off"), OFF },
	{ "poll_path", "a path of an engine, which begins with \"/\" and has "
	    "no spaces, of at most 200 bytes", SPECIAL(path_read),
	    PRESET("/metrics") },
	{ "gray", "how many times slower than the others a server may be",
	    SRV(TEXT_RATE, fleet.gray), RANGE("2", "100"), PRESET("off"), OFF },
	{ "slow_start", "how long a new server has a reduced load", SRV(TEXT_MS,
	    fleet.slow_start_ms), RANGE("1s", "1h"), PRESET("off"), OFF },
	{ "split", "the tokens that a server of role=decode prefills itself",
	    SRV(TEXT_COUNT, fleet.split), RANGE("0", "1000000000"),
	    PRESET("128") },
	{ "queue", "how many requests may wait while all servers are full",
	    SRV(TEXT_COUNT, fleet.queue), RANGE("1", "65536"), PRESET("off"),
	    OFF },
	{ "queue_timeout", "the longest wait", SRV(TEXT_MS, queue_timeout),
	    RANGE("10ms", "1h"), PRESET("60s") },
	{ "shadow", "the method that chooses", SRV(TEXT_WORD, shadow),
	    .words = kvroute_shadows }
};
static const struct text_row server[] = {
	{ "capacity", "\"auto\", or the tokens of KV cache", FACT },
	KNOWN_FACTS(fact_read),
	{ "ranks", "the number of data-parallel ranks behind the address",
	    FIELD(TEXT_COUNT, kvroute_server_t, told.ranks),
	    RANGE("1", "1024") }
};
static const struct text_row affinity[] = {
	{ "mode", "how a session is bound", LOC(TEXT_WORD, affinity_mode),
	    PRESET("hard"), .words = modes },
	{ "ttl", "how long a session that sends nothing is remembered",
	    LOC(TEXT_TIME, affinity_ttl), RANGE("1ms", "30d"), PRESET("600s") }
};
static const struct text_row responses[] = {
	{ "ttl", "how long an id that is not used is remembered",
	    LOC(TEXT_TIME, responses_ttl), RANGE("1ms", "30d"), PRESET("1h") }
};
static const struct text_row trace[] = {
	{ "sample", "the share of requests", FIELD(TEXT_PERCENT,
	    kvroute_trace_t, sample), RANGE("0.0001%", "100%"), PRESET("100%") }
};

/* The parameters of one directive. */
typedef struct {
	const char *directive;
	const struct text_row *rows;
	size_t n;
} table_t;

#define TABLE(directive, of) { directive, of, sizeof(of) / sizeof(of[0]) }
static const table_t tables[] = {
	TABLE("kvroute", kvroute), TABLE("kvroute_server", server),
	TABLE("kvroute_affinity", affinity),
	TABLE("kvroute_responses", responses), TABLE("kvroute_trace", trace)
};

/* --------------------------------------------------------------- values --- */

ngx_str_t
kvroute_printable(ngx_pool_t *pool, const ngx_str_t *text)
{
	ngx_str_t out = { text->len, ngx_pnalloc(pool, text->len + 1) };
	size_t i;

	if (out.data == NULL)
		out.len = 0;
	for (i = 0; i < out.len; i++)
		out.data[i] = text->data[i] < ' ' || text->data[i] > '~' ||
		    text->data[i] == '"' ? '?' : text->data[i];
	return out;
}

/* -------------------------------------------------------------- special --- */

static const char *
zone_read(void *fields, const char *text, size_t n)
{
	kvroute_srv_conf_t *up = fields;
	const char *colon = memchr(text, ':', n);
	ngx_str_t size;
	ssize_t bytes;

	if (colon == NULL || colon == text)
		return "";
	size.data = (u_char *)colon + 1;
	size.len = (size_t)(text + n - colon - 1);
	bytes = ngx_parse_size(&size);
	if (bytes == NGX_ERROR || bytes <= 0)
		return "";
	up->zone_name.data = (u_char *)text;
	up->zone_name.len = (size_t)(colon - text);
	up->zone_size = (size_t)bytes;
	return NULL;
}

static const char *
file_read(void *fields, const char *text, size_t n)
{
	kvroute_srv_conf_t *up = fields;

	up->path = (ngx_str_t){ n, (u_char *)text };
	return n > 0 && ngx_conf_full_name(up->cycle, &up->path, 0) == NGX_OK ?
	    NULL : "";
}

static const char *
secret_read(void *fields, const char *text, size_t n)
{
	kvroute_srv_conf_t *up = fields;
	ngx_str_t path = { n, (u_char *)text };
	struct secret_file is;
	const char *why;

	if (n == 0 || ngx_conf_full_name(up->cycle, &path, 1) != NGX_OK)
		return "";
	why = secret_file_read(&up->options, (char *)path.data, &is);
	if (is.error != 0)
		ngx_log_error(NGX_LOG_EMERG, up->cycle->log, is.error,
		    ngx_open_file_n " \"%V\" failed", &path);
	if (is.open)
		ngx_log_error(NGX_LOG_WARN, up->cycle->log, 0, "other users "
		    "may read or write the secret in \"%V\"", &path);
	return why;
}

static const char *
path_read(void *fields, const char *text, size_t n)
{
	kvroute_srv_conf_t *up = fields;

	if (!text_is_path(text, n))
		return "";
	up->fleet.poll_path = text;
	return NULL;
}

static const char *
option_read(void *fields, const char *pair, size_t n)
{
	kvroute_srv_conf_t *up = fields;
	const char *why = NULL;

	if (kvr_options_parse(&up->options, pair, n, NULL, &why) != KVR_OK)
		return why;
	return up->options.block_size < BLOCK_MIN ? "" : NULL;
}

static const char *
fact_read(void *fields, const char *pair, size_t n)
{
	kvroute_server_t *to = fields;

	return known_fact_read(&to->told, pair, n);
}

/* --------------------------------------------------------------- parser --- */

char *
kvroute_param_refuse(ngx_conf_t *cf, ngx_str_t *argument, const char *why)
{
	ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
	    "invalid parameter \"%V\": %s", argument, why);
	return NGX_CONF_ERROR;
}

bool
kvroute_param_is(const ngx_str_t *argument, const char *name, ngx_str_t *value)
{
	size_t n = ngx_strlen(name);

	if (argument->len <= n ||
	    ngx_strncmp(argument->data, name, n) != 0 ||
	    argument->data[n] != '=')
		return false;
	value->data = argument->data + n + 1;
	value->len = argument->len - n - 1;
	return true;
}

bool
kvroute_param_given(ngx_conf_t *cf, const char *name)
{
	ngx_str_t *args = cf->args->elts, value;
	ngx_uint_t i;

	for (i = 1; i < cf->args->nelts; i++)
		if (kvroute_param_is(&args[i], name, &value))
			return true;
	return false;
}

static const table_t *
table_of(const char *directive)
{
	const table_t *table = tables;

	while (ngx_strcmp(table->directive, directive) != 0)
		table++;
	return table;
}

void
kvroute_param_defaults(const char *directive, void *fields)
{
	const table_t *table = table_of(directive);

	text_presets(table->rows, table->n, fields);
}

char *
kvroute_param_read(ngx_conf_t *cf, ngx_str_t *argument, void *fields)
{
	const table_t *of = table_of(
	    (char *)((ngx_str_t *)cf->args->elts)[0].data);
	struct text_fault fault = text_pair(of->rows, of->n, fields,
	    (char *)argument->data, argument->len);
	char why[EXPECTED_BYTES];

	if (fault.why == NULL)
		return NGX_CONF_OK;
	text_explain(of->rows, of->n, of->directive, &fault, why, sizeof(why));
	return kvroute_param_refuse(cf, argument, why);
}

/* --------------------------------------------------- sessions and state --- */

/*
 * Headers and fields that clients send unasked, see kvroute-nginx(7). Some ids
 * of agents are names, so they count within their session.
 */
static ngx_str_t automatic[] = { ngx_string("$http_x_session_affinity"),
    ngx_string("$http_x_session_id"),
    ngx_string("$http_x_claude_code_session_id$http_x_claude_code_agent_id"),
    ngx_string("$http_thread_id"), ngx_string("$http_session_id"),
    ngx_string("$kvroute_session"), ngx_string("$kvroute_cache_key") };

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
	size_t i;

	for (i = 0; i < sizeof(automatic) / sizeof(automatic[0]) &&
	    why == NULL; i++)
		why = value_add(cf, values, automatic[i]);
	return why;
}

static char *
affinity_argument(ngx_conf_t *cf, kvroute_loc_conf_t *loc, ngx_str_t *arg)
{
	const char *why;
	ngx_str_t value;

	if (kvroute_param_is(arg, "mode", &value) ||
	    kvroute_param_is(arg, "ttl", &value))
		return kvroute_param_read(cf, arg, loc);
	if (kvroute_word_is(arg, "off"))
		why = "is for itself";
	else if (kvroute_word_is(arg, "auto"))
		why = automatic_add(cf, loc->affinity);
	else
		why = value_add(cf, loc->affinity, *arg);
	return why == NULL ? NGX_CONF_OK : kvroute_param_refuse(cf, arg, why);
}

char *
kvroute_affinity_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	kvroute_loc_conf_t *loc = conf;
	ngx_str_t *args = cf->args->elts;
	ngx_uint_t i;
	char *wrong;

	if (loc->affinity != NGX_CONF_UNSET_PTR)
		return "is duplicate";
	loc->affinity = NULL;
	if (cf->args->nelts == 2 && kvroute_word_is(&args[1], "off"))
		return NGX_CONF_OK;
	loc->affinity = ngx_array_create(cf->pool, 8,
	    sizeof(ngx_http_complex_value_t));
	if (loc->affinity == NULL)
		return NGX_CONF_ERROR;
	kvroute_param_defaults("kvroute_affinity", loc);
	for (i = 1; i < cf->args->nelts; i++) {
		wrong = affinity_argument(cf, loc, &args[i]);
		if (wrong != NGX_CONF_OK)
			return wrong;
	}
	return loc->affinity->nelts > 0 ? NGX_CONF_OK : "has no value";
}

char *
kvroute_responses_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	kvroute_loc_conf_t *loc = conf;
	ngx_str_t *arg = (ngx_str_t *)cf->args->elts + 1, value;

	if (loc->responses_ttl != NGX_CONF_UNSET)
		return "is duplicate";
	if (kvroute_word_is(arg, "off")) {
		loc->responses_ttl = 0;
		return NGX_CONF_OK;
	}
	if (kvroute_param_is(arg, "ttl", &value))
		return kvroute_param_read(cf, arg, loc);
	if (!kvroute_word_is(arg, "on"))
		return kvroute_param_refuse(cf, arg,
		    "it is on, off, or ttl= with a time of at most 30 days");
	kvroute_param_defaults("kvroute_responses", loc);
	return NGX_CONF_OK;
}
