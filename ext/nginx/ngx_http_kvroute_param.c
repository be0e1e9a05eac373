/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_param.c - see ngx_http_kvroute_param.h.
 *
 *   kvroute zone=kv:8m gray=8;       { kvroute, "gray", RATE, SRV(gray),
 *                  |                   "how many times slower ...",
 *                  '-- argument -->    "2", "100", "off", true }
 *
 * A row has the directive, the name, the type, the target, the default, the
 * limits and the meaning. Default and limits are texts of the same type as the
 * value: one function reads all of them, and errors quote them. So an error is
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
	TOKENS,      /* the same, into uint64_t */
	RATE,        /* the same, into double */
	HUNDREDTHS,  /* a decimal, in hundredths, into uint32_t */
	PERCENT,     /* a decimal with a sign, in 1e-6, into ngx_uint_t */
	SIZE,        /* bytes, into uint64_t */
	POWER,       /* the same, a power of two */
	TIME_MS,     /* a time, into ngx_msec_t */
	TIME_NS,     /* the same in nanoseconds, into int64_t */
	WORD,        /* the index of one of the words, into uint32_t */
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

enum { WORDS = 4, EXPECTED_BYTES = 512 };

static const char *const shadows[WORDS] = {
	[NGX_HTTP_KVROUTE_LEAST_CONN] = "least_conn",
	[NGX_HTTP_KVROUTE_ROUND_ROBIN] = "round_robin"
};
static const char *const evictions[WORDS] = {
	[KVR_EVICT_RELEASED] = "released", [KVR_EVICT_LEAF] = "leaf"
};
static const char *const windows[WORDS] = {
	[KVR_WINDOW_FULL] = "full", [KVR_WINDOW_BOUNDARY] = "boundary",
	[KVR_WINDOW_DENSE] = "dense", [KVR_WINDOW_DUAL] = "dual"
};
static const char *const modes[WORDS] = {
	[KVR_AFFINITY_HARD] = "hard", [KVR_AFFINITY_HASH] = "hash"
};

static special_pt zone_read, file_read, secret_read, path_read, capacity_read;

#define SRV(field) offsetof(ngx_http_kvroute_srv_conf_t, field)
#define OPTION(field) SRV(options) + offsetof(struct kvr_options, field)
#define SERVER(field) offsetof(ngx_http_kvroute_server_t, field)
#define FACT(field) SERVER(facts) + offsetof(struct kvr_worker, field)
#define LOC(field) offsetof(ngx_http_kvroute_loc_conf_t, field)

static const char kvroute[] = "kvroute", server[] = "kvroute_server";
static const char affinity[] = "kvroute_affinity";
static const char responses[] = "kvroute_responses", trace[] = "kvroute_trace";

static const param_t params[] = {
	{ kvroute, "zone", SPECIAL, 0, "NAME:SIZE, the shared memory of the "
	    "index", .special = zone_read },
	{ kvroute, "path", SPECIAL, 0, "the file of the index",
	    .special = file_read },
	{ kvroute, "size", SIZE, OPTION(region_bytes),
	    "the size of that file", "1", NULL, "8m" },
	{ kvroute, "block", COUNT, OPTION(block_size), "the bytes of a block",
	    "16", "1048576", "256" },
	{ kvroute, "workers", COUNT, OPTION(max_workers), "how many servers "
	    "the index has room for", "1", "4096", "256" },
	{ kvroute, "ttl", TIME_NS, OPTION(ttl_ns), "how long a cache keeps a "
	    "prompt", "1ms", "365d", "120s" },
	{ kvroute, "affinity", COUNT, OPTION(affinity_entries), "the number "
	    "of places for sessions and state", "0", "16777216" },
	{ kvroute, "tenants", COUNT, OPTION(tenants), "how many tenants share "
	    "a full index", "1", "1024" },
	{ kvroute, "secret", SPECIAL, 0, "the file of the secret",
	    .special = secret_read },
	{ kvroute, "journal", POWER, OPTION(journal_bytes), "the size of the "
	    "journal, a power of two", "64k", "1g" },
	{ kvroute, "poll", TIME_MS, SRV(poll_ms), "the time from one poll to "
	    "the next", "100ms", "1m", "off", true },
	{ kvroute, "poll_path", SPECIAL, 0, "a path of an engine, which begins "
	    "with \"/\" and has no spaces, of at most 200 bytes",
	    .preset = "/metrics", .special = path_read },
	{ kvroute, "gray", RATE, SRV(gray), "how many times slower than the "
	    "others a server may be", "2", "100", "off", true },
	{ kvroute, "slow_start", TIME_MS, SRV(slow_start), "how long a new "
	    "server has a reduced load", "1s", "1h", "off", true },
	{ kvroute, "queue", COUNT, SRV(queue), "how many requests may wait "
	    "while all servers are full", "1", "65536", "off", true },
	{ kvroute, "queue_timeout", TIME_MS, SRV(queue_timeout), "the longest "
	    "wait", "10ms", "1h", "60s" },
	{ kvroute, "shadow", WORD, SRV(shadow), "the method that chooses",
	    .words = shadows },

	{ server, "capacity", SPECIAL, 0, "\"auto\", or the tokens of KV "
	    "cache", .special = capacity_read },
	{ server, "prefill_rate", RATE, FACT(prefill_rate), "tokens a second",
	    "1", "2147483647" },
	{ server, "block_tokens", COUNT, FACT(block_tokens), "the tokens of a "
	    "block", "1", "1048576" },
	{ server, "eviction", WORD, FACT(eviction), "the order of evictions",
	    .words = evictions },
	{ server, "window", COUNT, FACT(window_tokens), "the tokens of the "
	    "largest sliding window", "1", "1073741824" },
	{ server, "window_mode", WORD, FACT(window_mode), "the part of windows "
	    "that the engine keeps", .words = windows },
	{ server, "window_layers", HUNDREDTHS, FACT(window_layers), "the "
	    "layers with a window for each layer without", "0", "100" },
	{ server, "window_interval", COUNT, FACT(window_interval), "the tokens "
	    "from one kept tail to the next", "1", "1073741824" },
	{ server, "window_capacity", TOKENS, FACT(window_capacity), "the "
	    "tokens of the memory for windows", "1", NULL },
	{ server, "ranks", COUNT, SERVER(ranks), "the number of data-parallel "
	    "ranks behind the address", "1", "1024" },

	{ affinity, "mode", WORD, LOC(affinity_mode), "how a session is bound",
	    .preset = "hard", .words = modes },
	{ affinity, "ttl", TIME_MS, LOC(affinity_ttl), "how long a session "
	    "that sends nothing is remembered", "1ms", "30d", "600s" },
	{ responses, "ttl", TIME_MS, LOC(responses_ttl), "how long an id that "
	    "is not used is remembered", "1ms", "30d", "1h" },
	{ trace, "sample", PERCENT, offsetof(ngx_http_kvroute_trace_t, sample),
	    "the share of requests", "0.0001%", "100%", "100%" }
};
_Static_assert(KVR_WORKERS_MAX == 4096 && KVR_TENANTS_MAX == 1024 &&
    KVR_AFFINITY_ENTRIES_MAX == 16777216 && KVR_JOURNAL_MIN == 64 << 10 &&
    KVR_JOURNAL_MAX == 1 << 30, "limits of the library");
enum { PARAMS = sizeof(params) / sizeof(params[0]) };

/* --------------------------------------------------------------- values --- */

bool
ngx_http_kvroute_word_is(const ngx_str_t *text, const char *word)
{
	return text->len == ngx_strlen(word) &&
	    ngx_strncmp(text->data, word, text->len) == 0;
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
	case TOKENS:
	case RATE:
		return ngx_atoi(text->data, text->len);
	case HUNDREDTHS:
		return ngx_atofp(text->data, text->len, 2);
	case PERCENT:
		return percent_parse(text);
	case SIZE:
	case POWER:
		return (ngx_int_t)ngx_parse_offset(text);
	case TIME_MS:
	case TIME_NS:
		return ngx_parse_time(text, 0);
	case WORD:
		return word_find(p, text);
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
	case HUNDREDTHS:
	case WORD:
		*(uint32_t *)at = (uint32_t)n;
		break;
	case TOKENS:
	case SIZE:
	case POWER:
		*(uint64_t *)at = (uint64_t)n;
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
	case TIME_NS:
		*(int64_t *)at = (int64_t)n * 1000000;
		break;
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
	    n > limit_parse(p, p->most, NGX_MAX_INT_T_VALUE) ||
	    (p->type == POWER && (n & (n - 1)) != 0))
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

static const char *
capacity_read(ngx_conf_t *cf, void *fields, ngx_str_t *text)
{
	ngx_http_kvroute_server_t *to = fields;
	ngx_int_t n = 0;

	to->ask = ngx_http_kvroute_word_is(text, "auto");
	if (!to->ask) {
		n = ngx_atoi(text->data, text->len);
		if (n == NGX_ERROR || n == 0)
			return "";
	}
	to->facts.capacity_tokens = (uint64_t)n;
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

/* NULL, or the reason for which it is refused; "": the meaning. */
static const char *
param_set(ngx_conf_t *cf, const param_t *p, void *fields, ngx_str_t *text)
{
	if (p->type == SPECIAL)
		return p->special(cf, fields, text);
	return value_read(p, fields, text) ? NULL : "";
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
		if (param_set(cf, &params[i], fields, &text) != NULL)
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
		why = param_set(cf, &params[i], fields, &text);
		if (why == NULL)
			return NGX_CONF_OK;
		return *why == '\0' ? value_refuse(cf, &params[i], argument) :
		    ngx_http_kvroute_param_refuse(cf, argument, why);
	}
	return name_refuse(cf, directive, argument);
}
