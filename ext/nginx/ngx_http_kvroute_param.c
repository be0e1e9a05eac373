/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_param.c - see ngx_http_kvroute_param.h.
 *
 *   kvroute zone=kv:8m gray=8;       { kvroute, "gray", SRV(RATE, gray),
 *                  |                   "how many times slower ...",
 *                  '-- argument -->    "2", "100", "off", true }
 *
 * A row has the directive, the name, the type, the target, the default, the
 * limits and the meaning. Default and limits are texts of the same type as the
 * value: one function reads all of them, and errors quote them. Options of the
 * region and facts of a worker are read, and explained, by the library: their
 * rows allow the names. So an error is
 *
 *   invalid parameter "gray=1": it is "off", or how many times slower ..., from
 *   2 to 100
 */
#include "ngx_http_kvroute_param.h"

#include <kvroute_replica.h>

#include "ngx_http_kvroute_secret.h"
#include "ngx_http_kvroute_server.h"
#include "ngx_http_kvroute_trace.h"

typedef enum {
	COUNT,       /* a whole number, into uint32_t */
	RATE,        /* the same, into double */
	PERCENT,     /* a decimal with a sign, in 1e-6, into ngx_uint_t */
	TIME_MS,     /* a time, into ngx_msec_t */
	WORD,        /* the index of one of the words, into uint32_t */
	OPTION,      /* read by kvr_options_parse */
	FACT,        /* read by kvr_worker_parse */
	SPECIAL      /* whatever `special` makes of it */
} type_t;

/* NULL, or the reason for which the value is refused; "": the meaning. */
typedef const char *special_pt(ngx_conf_t *cf, void *fields,
    ngx_str_t *value);

typedef struct {
	const char *directive;
	const char *name;
	type_t type;
	size_t offset;
	const char *meaning;
	const char *least, *most; /* NULL: no limit */
	const char *preset;      /* the default; NULL: 0, or nothing */
	bool off;                /* it may be "off", which is 0 */
	const char *const *words; /* NULL: there is no such word */
	special_pt *special;
} param_t;

enum { WORDS = 4, EXPECTED_BYTES = 512, BLOCK_MIN = 16 };

static const char *const shadows[WORDS] = {
	[NGX_HTTP_KVROUTE_LEAST_CONN] = "least_conn",
	[NGX_HTTP_KVROUTE_ROUND_ROBIN] = "round_robin"
};
static const char *const modes[WORDS] = {
	[KVR_AFFINITY_HARD] = "hard", [KVR_AFFINITY_HASH] = "hash"
};

static special_pt zone_read, file_read, secret_read, path_read;

/* The type of a field must be the one that value_store writes for the kind. */
#define STORES_COUNT uint32_t
#define STORES_RATE double
#define STORES_PERCENT ngx_uint_t
#define STORES_TIME_MS ngx_msec_t
#define STORES_WORD uint32_t
#define CHECKED(kind, type, field) kind, offsetof(type, field) + \
	0 * sizeof(char[_Generic(((type *)0)->field, \
	STORES_##kind: 1, default: -1)])
#define SRV(kind, field) CHECKED(kind, ngx_http_kvroute_srv_conf_t, field)
#define SERVER(kind, field) CHECKED(kind, ngx_http_kvroute_server_t, field)
#define LOC(kind, field) CHECKED(kind, ngx_http_kvroute_loc_conf_t, field)

static const char kvroute[] = "kvroute", server[] = "kvroute_server";
static const char affinity[] = "kvroute_affinity";
static const char responses[] = "kvroute_responses", trace[] = "kvroute_trace";

static const param_t params[] = {
	{ kvroute, "zone", SPECIAL, 0, "NAME:SIZE, the shared memory of the "
	    "index", .special = zone_read },
	{ kvroute, "path", SPECIAL, 0, "the file of the index",
	    .special = file_read },
	{ kvroute, "size", OPTION },
	{ kvroute, "block", OPTION, 0, "the bytes of a block", "16", "262144" },
	{ kvroute, "workers", OPTION },
	{ kvroute, "ttl", OPTION },
	{ kvroute, "affinity", OPTION },
	{ kvroute, "tenants", OPTION },
	{ kvroute, "secret", SPECIAL, 0, "the file of the secret",
	    .special = secret_read },
	{ kvroute, "journal", OPTION },
	{ kvroute, "poll", SRV(TIME_MS, fleet.poll_ms),
	    "the time from one poll to "
	    "the next", "100ms", "1m", "off", true },
	{ kvroute, "poll_path", SPECIAL, 0, "a path of an engine, which begins "
	    "with \"/\" and has no spaces, of at most 200 bytes",
	    .preset = "/metrics", .special = path_read },
	{ kvroute, "gray", SRV(RATE, fleet.gray),
	    "how many times slower than the "
	    "others a server may be", "2", "100", "off", true },
	{ kvroute, "slow_start", SRV(TIME_MS, fleet.slow_start_ms),
	    "how long a new "
	    "server has a reduced load", "1s", "1h", "off", true },
	{ kvroute, "split", SRV(COUNT, fleet.split),
	    "the tokens that a server of role=decode prefills itself", "0",
	    "1000000000", "128" },
	{ kvroute, "queue", SRV(COUNT, fleet.queue),
	    "how many requests may wait "
	    "while all servers are full", "1", "65536", "off", true },
	{ kvroute, "queue_timeout", SRV(TIME_MS, queue_timeout), "the longest "
	    "wait", "10ms", "1h", "60s" },
	{ kvroute, "shadow", SRV(WORD, shadow), "the method that chooses",
	    .words = shadows },

	{ server, "capacity", FACT, 0, "\"auto\", or the tokens of KV cache" },
	{ server, "role", FACT },
	{ server, "prefill_rate", FACT },
	{ server, "block_tokens", FACT },
	{ server, "eviction", FACT },
	{ server, "window", FACT },
	{ server, "window_mode", FACT },
	{ server, "window_layers", FACT },
	{ server, "window_interval", FACT },
	{ server, "window_capacity", FACT },
	{ server, "ranks", SERVER(COUNT, told.ranks),
	    "the number of data-parallel "
	    "ranks behind the address", "1", "1024" },

	{ affinity, "mode", LOC(WORD, affinity_mode), "how a session is bound",
	    .preset = "hard", .words = modes },
	{ affinity, "ttl", LOC(TIME_MS, affinity_ttl), "how long a session "
	    "that sends nothing is remembered", "1ms", "30d", "600s" },
	{ responses, "ttl", LOC(TIME_MS, responses_ttl), "how long an id that "
	    "is not used is remembered", "1ms", "30d", "1h" },
	{ trace, "sample", CHECKED(PERCENT, ngx_http_kvroute_trace_t, sample),
	    "the share of requests", "0.0001%", "100%", "100%" }
};
enum { PARAMS = sizeof(params) / sizeof(params[0]) };

/* --------------------------------------------------------------- values --- */

bool
ngx_http_kvroute_word_is(const ngx_str_t *text, const char *word)
{
	return text->len == ngx_strlen(word) &&
	    ngx_strncmp(text->data, word, text->len) == 0;
}

ngx_str_t
ngx_http_kvroute_printable(ngx_pool_t *pool, const ngx_str_t *text)
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

static ngx_int_t
percent_parse(const ngx_str_t *text)
{
	if (text->len < 2 || text->data[text->len - 1] != '%')
		return NGX_ERROR;
	return ngx_atofp(text->data, text->len - 1, 4);
}

static ngx_int_t
word_find(const param_t *p, const ngx_str_t *text)
{
	ngx_int_t i;

	for (i = 0; i < WORDS; i++)
		if (p->words[i] != NULL &&
		    ngx_http_kvroute_word_is(text, p->words[i]))
			return i;
	return NGX_ERROR;
}

/* NGX_ERROR: it has another type. */
static ngx_int_t
value_parse(const param_t *p, ngx_str_t *text)
{
	switch (p->type) {
	case COUNT:
	case RATE:
		return ngx_atoi(text->data, text->len);
	case PERCENT:
		return percent_parse(text);
	case TIME_MS:
		return ngx_parse_time(text, 0);
	case WORD:
		return word_find(p, text);
	case OPTION:
	case FACT:
	case SPECIAL:
		break;
	}
	return NGX_ERROR;
}

static void
value_store(const param_t *p, void *fields, ngx_int_t n)
{
	void *at = (char *)fields + p->offset;

	switch (p->type) {
	case COUNT:
	case WORD:
		*(uint32_t *)at = (uint32_t)n;
		break;
	case RATE:
		*(double *)at = (double)n;
		break;
	case PERCENT:
		*(ngx_uint_t *)at = (ngx_uint_t)n;
		break;
	case TIME_MS:
		*(ngx_msec_t *)at = (ngx_msec_t)n;
		break;
	case OPTION:
	case FACT:
	case SPECIAL:
		break;
	}
}

static ngx_int_t
limit_parse(const param_t *p, const char *text, ngx_int_t otherwise)
{
	ngx_str_t limit = { text == NULL ? 0 : ngx_strlen(text),
	    (u_char *)text };

	return text == NULL ? otherwise : value_parse(p, &limit);
}

static bool
value_read(const param_t *p, void *fields, ngx_str_t *text)
{
	ngx_int_t n;

	if (p->off && ngx_http_kvroute_word_is(text, "off")) {
		value_store(p, fields, 0);
		return true;
	}
	n = value_parse(p, text);
	if (n == NGX_ERROR || n < limit_parse(p, p->least, 0) ||
	    n > limit_parse(p, p->most, NGX_MAX_INT_T_VALUE))
		return false;
	value_store(p, fields, n);
	return true;
}

/* -------------------------------------------------------------- special --- */

static const char *
zone_read(ngx_conf_t *cf, void *fields, ngx_str_t *text)
{
	ngx_http_kvroute_srv_conf_t *up = fields;
	u_char *colon = ngx_strlchr(text->data, text->data + text->len, ':');
	ngx_str_t size;
	ssize_t bytes;

	if (colon == NULL || colon == text->data)
		return "";
	size.data = colon + 1;
	size.len = (size_t)(text->data + text->len - size.data);
	bytes = ngx_parse_size(&size);
	if (bytes == NGX_ERROR || bytes <= 0)
		return "";
	up->zone_name.data = text->data;
	up->zone_name.len = (size_t)(colon - text->data);
	up->zone_size = (size_t)bytes;
	return NULL;
}

static const char *
file_read(ngx_conf_t *cf, void *fields, ngx_str_t *text)
{
	ngx_http_kvroute_srv_conf_t *up = fields;

	up->path = *text;
	return text->len > 0 && ngx_conf_full_name(cf->cycle, &up->path, 0) ==
	    NGX_OK ? NULL : "";
}

static const char *
secret_read(ngx_conf_t *cf, void *fields, ngx_str_t *text)
{
	return ngx_http_kvroute_secret_read(cf, fields, text);
}

static const char *
path_read(ngx_conf_t *cf, void *fields, ngx_str_t *text)
{
	ngx_http_kvroute_srv_conf_t *up = fields;
	size_t i;

	for (i = 0; i < text->len; i++)
		if (text->data[i] <= ' ' || text->data[i] > '~')
			return "";
	if (text->len == 0 || text->len > 200 || text->data[0] != '/')
		return "";
	up->poll_path = *text;
	return NULL;
}

/* --------------------------------------------------------------- errors --- */

char *
ngx_http_kvroute_param_refuse(ngx_conf_t *cf, ngx_str_t *argument,
    const char *why)
{
	ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
	    "invalid parameter \"%V\": %s", argument, why);
	return NGX_CONF_ERROR;
}

/* "off", or MEANING: one of WORDS, from LEAST to MOST */
static char *
value_refuse(ngx_conf_t *cf, const param_t *p, ngx_str_t *argument)
{
	u_char text[EXPECTED_BYTES], *at = text;
	u_char *end = text + sizeof(text) - 1;
	const char *before = ": ";
	size_t i;

	at = ngx_slprintf(at, end, "it is %s%s",
	    p->off ? "\"off\", or " : "", p->meaning);
	for (i = 0; p->words != NULL && i < WORDS; i++) {
		if (p->words[i] == NULL)
			continue;
		at = ngx_slprintf(at, end, "%s%s", before, p->words[i]);
		before = " or ";
	}
	if (p->least != NULL)
		at = ngx_slprintf(at, end, ", from %s", p->least);
	if (p->most != NULL)
		at = ngx_slprintf(at, end, " to %s", p->most);
	*at = '\0';
	return ngx_http_kvroute_param_refuse(cf, argument, (char *)text);
}

static char *
name_refuse(ngx_conf_t *cf, const char *directive, ngx_str_t *argument)
{
	u_char text[EXPECTED_BYTES], *at = text;
	u_char *end = text + sizeof(text) - 1;
	const char *before = " are ";
	size_t i;

	at = ngx_slprintf(at, end, "the parameters of \"%s\"", directive);
	for (i = 0; i < PARAMS; i++) {
		if (ngx_strcmp(params[i].directive, directive) != 0)
			continue;
		at = ngx_slprintf(at, end, "%s%s=", before, params[i].name);
		before = ", ";
	}
	*at = '\0';
	return ngx_http_kvroute_param_refuse(cf, argument, (char *)text);
}

/* --------------------------------------------------------------- parser --- */

bool
ngx_http_kvroute_param_is(const ngx_str_t *argument, const char *name,
    ngx_str_t *value)
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
ngx_http_kvroute_param_given(ngx_conf_t *cf, const char *name)
{
	ngx_str_t *args = cf->args->elts, value;
	ngx_uint_t i;

	for (i = 1; i < cf->args->nelts; i++)
		if (ngx_http_kvroute_param_is(&args[i], name, &value))
			return true;
	return false;
}

/* An argument is one word for the library. */
static const char *
blank_find(const ngx_str_t *argument)
{
	size_t i;

	for (i = 0; i < argument->len; i++)
		if (argument->data[i] <= ' ')
			return "it contains a blank";
	return NULL;
}

static const char *
option_read(ngx_http_kvroute_srv_conf_t *up, const ngx_str_t *argument)
{
	const char *why = blank_find(argument);

	if (why != NULL || kvr_options_parse(&up->options,
	    (char *)argument->data, argument->len, NULL, &why) != KVR_OK)
		return why;
	return up->options.block_size < BLOCK_MIN ? "" : NULL;
}

static const char *
fact_read(ngx_http_kvroute_server_t *to, const ngx_str_t *argument)
{
	const char *why = blank_find(argument);
	ngx_str_t value;

	if (ngx_http_kvroute_param_is(argument, "capacity", &value)) {
		to->told.ask = ngx_http_kvroute_word_is(&value, "auto");
		to->told.worker.capacity_tokens = 0;
		if (to->told.ask)
			return NULL;
	}
	if (why == NULL)
		(void)kvr_worker_parse(&to->told.worker, (char *)argument->data,
		    argument->len, NULL, &why);
	return why;
}

/* NULL, or the reason for which it is refused; "": the meaning. */
static const char *
param_set(ngx_conf_t *cf, const param_t *p, void *fields,
    const ngx_str_t *argument, ngx_str_t *text)
{
	const char *why;

	if (p->type == SPECIAL)
		return p->special(cf, fields, text);
	if (p->type != OPTION && p->type != FACT)
		return value_read(p, fields, text) ? NULL : "";
	why = p->type == OPTION ? option_read(fields, argument) :
	    fact_read(fields, argument);
	return why != NULL && p->meaning != NULL ? "" : why;
}

ngx_int_t
ngx_http_kvroute_param_defaults(ngx_conf_t *cf, const char *directive,
    void *fields)
{
	ngx_str_t text;
	size_t i;

	for (i = 0; i < PARAMS; i++) {
		if (params[i].preset == NULL ||
		    ngx_strcmp(params[i].directive, directive) != 0)
			continue;
		text.data = (u_char *)params[i].preset;
		text.len = ngx_strlen(params[i].preset);
		if (param_set(cf, &params[i], fields, NULL, &text) != NULL)
			return NGX_ERROR;
	}
	return NGX_OK;
}

char *
ngx_http_kvroute_param_read(ngx_conf_t *cf, ngx_str_t *argument, void *fields)
{
	const char *directive = (char *)((ngx_str_t *)cf->args->elts)[0].data;
	ngx_str_t text;
	const char *why;
	size_t i;

	for (i = 0; i < PARAMS; i++) {
		if (ngx_strcmp(params[i].directive, directive) != 0 ||
		    !ngx_http_kvroute_param_is(argument, params[i].name,
		    &text))
			continue;
		why = param_set(cf, &params[i], fields, argument, &text);
		if (why == NULL)
			return NGX_CONF_OK;
		return *why == '\0' ? value_refuse(cf, &params[i], argument) :
		    ngx_http_kvroute_param_refuse(cf, argument, why);
	}
	return name_refuse(cf, directive, argument);
}
