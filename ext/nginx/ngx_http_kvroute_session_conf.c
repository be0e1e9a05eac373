/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_session_conf.c - directives about sessions and state, and
 * the secret of the hashes.
 */
#include "ngx_http_kvroute_session_conf.h"

enum {
	TTL_MS = 600 * 1000,
	RESPONSES_TTL_MS = 3600 * 1000,
	SECRET_BYTES = 32
};

static const ngx_msec_t TTL_MS_MAX = (ngx_msec_t)30 * 86400 * 1000;

/*
 * What clients send of their own accord, see kvroute-nginx(7). Some ids of
 * agents are names, so they count within their session.
 */
static const char *const automatic[] = { "$http_x_session_affinity",
    "$http_x_session_id",
    "$http_x_claude_code_session_id$http_x_claude_code_agent_id",
    "$http_thread_id", "$http_session_id",
    "$kvroute_session", "$kvroute_cache_key" };

static char *
argument_refuse(ngx_conf_t *cf, ngx_str_t *arg, const char *why)
{
	ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
	    "invalid parameter \"%V\": %s", arg, why);
	return NGX_CONF_ERROR;
}

/* Is the argument NAME=...? Then *value is the rest. */
static bool
is_named(ngx_str_t *arg, const char *name, ngx_str_t *value)
{
	size_t n = ngx_strlen(name);

	if (arg->len < n || ngx_strncmp(arg->data, name, n) != 0)
		return false;
	value->data = arg->data + n;
	value->len = arg->len - n;
	return true;
}

static bool
ttl_read(ngx_str_t *text, ngx_msec_t *ms)
{
	ngx_int_t n = ngx_parse_time(text, 0);

	*ms = (ngx_msec_t)n;
	return n != NGX_ERROR && n > 0 && *ms <= TTL_MS_MAX;
}

static bool
is_word(const ngx_str_t *text, const char *word)
{
	return text->len == ngx_strlen(word) &&
	    ngx_strncmp(text->data, word, text->len) == 0;
}

static bool
mode_read(const ngx_str_t *text, ngx_uint_t *mode)
{
	static const char *const names[] = { [KVR_AFFINITY_HARD] = "hard",
	    [KVR_AFFINITY_TIE] = "tie" };
	ngx_uint_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!is_word(text, names[i]))
			continue;
		*mode = i;
		return true;
	}
	return false;
}

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

static const char *
affinity_argument(ngx_conf_t *cf, ngx_http_kvroute_loc_conf_t *loc,
    ngx_str_t *arg)
{
	ngx_str_t value;

	if (is_named(arg, "mode=", &value))
		return mode_read(&value, &loc->affinity_mode) ? NULL :
		    "the modes are hard and tie";
	if (is_named(arg, "ttl=", &value))
		return ttl_read(&value, &loc->affinity_ttl) ? NULL :
		    "ttl= is a time of at most 30 days";
	if (is_word(arg, "off"))
		return "is for itself";
	return is_word(arg, "auto") ? automatic_add(cf, loc->affinity) :
	    value_add(cf, loc->affinity, *arg);
}

char *
ngx_http_kvroute_affinity_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	ngx_http_kvroute_loc_conf_t *loc = conf;
	ngx_str_t *args = cf->args->elts;
	const char *why;
	ngx_uint_t i;

	if (loc->affinity != NGX_CONF_UNSET_PTR)
		return "is duplicate";
	loc->affinity = NULL;
	if (cf->args->nelts == 2 && is_word(&args[1], "off"))
		return NGX_CONF_OK;
	loc->affinity = ngx_array_create(cf->pool, 8,
	    sizeof(ngx_http_complex_value_t));
	if (loc->affinity == NULL)
		return NGX_CONF_ERROR;
	loc->affinity_mode = KVR_AFFINITY_HARD;
	loc->affinity_ttl = TTL_MS;
	for (i = 1; i < cf->args->nelts; i++) {
		why = affinity_argument(cf, loc, &args[i]);
		if (why != NULL)
			return argument_refuse(cf, &args[i], why);
	}
	return loc->affinity->nelts > 0 ? NGX_CONF_OK : "has no value";
}

char *
ngx_http_kvroute_responses_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	ngx_http_kvroute_loc_conf_t *loc = conf;
	ngx_str_t *arg = cf->args->elts, value;

	if (loc->responses_ttl != NGX_CONF_UNSET_MSEC)
		return "is duplicate";
	loc->responses_ttl = RESPONSES_TTL_MS;
	arg++;
	if (is_word(arg, "off"))
		loc->responses_ttl = 0;
	else if (!is_word(arg, "on") && !(is_named(arg, "ttl=", &value) &&
	    ttl_read(&value, &loc->responses_ttl)))
		return argument_refuse(cf, arg, "it is on, off, or ttl= with "
		    "a time of at most 30 days");
	return NGX_CONF_OK;
}

void
ngx_http_kvroute_session_create(ngx_http_kvroute_loc_conf_t *loc)
{
	loc->affinity = NGX_CONF_UNSET_PTR;
	loc->responses_ttl = NGX_CONF_UNSET_MSEC;
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
	ngx_conf_merge_msec_value(loc->responses_ttl, of->responses_ttl,
	    RESPONSES_TTL_MS);
}

/* --------------------------------------------------------------- secret --- */

/* 64 digits, and perhaps the end of their line. */
static bool
hex_read(u_char *text, size_t n, unsigned char *secret)
{
	ngx_int_t byte;
	size_t i;

	while (n > 2 * SECRET_BYTES &&
	    (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	for (i = 0; i < SECRET_BYTES && n == 2 * SECRET_BYTES; i++) {
		byte = ngx_hextoi(text + 2 * i, 2);
		if (byte == NGX_ERROR)
			return false;
		secret[i] = (unsigned char)byte;
	}
	return n == 2 * SECRET_BYTES;
}

static const char *
secret_take(u_char *text, ssize_t n, struct kvr_options *options)
{
	static const unsigned char zeros[SECRET_BYTES];

	if (n == SECRET_BYTES)
		ngx_memcpy(options->secret, text, SECRET_BYTES);
	else if (n < 0 || !hex_read(text, (size_t)n, options->secret))
		return "the file holds neither 32 bytes nor 64 hexadecimal "
		    "digits";
	if (ngx_memcmp(options->secret, zeros, SECRET_BYTES) == 0)
		return "the secret is zero";
	options->secret_bytes = SECRET_BYTES;
	return NULL;
}

const char *
ngx_http_kvroute_secret_read(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *file)
{
	u_char text[2 * SECRET_BYTES + 3];
	ngx_str_t path = *file;
	ngx_file_info_t info;
	const char *why;
	ngx_fd_t fd;

	if (path.len == 0 ||
	    ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK)
		return "secret= names a file";
	fd = ngx_open_file(path.data, NGX_FILE_RDONLY | NGX_FILE_NONBLOCK,
	    NGX_FILE_OPEN, 0);
	if (fd == NGX_INVALID_FILE) {
		ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
		    ngx_open_file_n " \"%V\" failed", &path);
		return "the file cannot be opened";
	}
	if (ngx_fd_info(fd, &info) != 0 || !ngx_is_file(&info)) {
		why = "it is no file";
	} else {
		if ((info.st_mode & (S_IROTH | S_IWOTH)) != 0)
			ngx_conf_log_error(NGX_LOG_WARN, cf, 0, "other users "
			    "may read or write the secret in \"%V\"", &path);
		why = secret_take(text, ngx_read_fd(fd, text, sizeof(text)),
		    &up->options);
	}
	(void)ngx_close_file(fd);
	return why;
}
