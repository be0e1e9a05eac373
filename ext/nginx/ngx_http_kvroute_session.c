/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_session.c - keys of sessions, and state that one engine
 * keeps.
 *
 * A SESSION is named by the first value of kvroute_affinity that is not empty.
 * Its digest goes with the request into the library's choice, see
 * kvr_affinity(3). It is a hint: it isolates nothing and is in no scope.
 *
 * STATE is an answer or a conversation that an engine keeps and clients name by
 * its id. Only that engine can go on from it, so this is no matter of cost:
 *
 *   answer passes      id -> its worker, kvr_affinity_bind     | answer.c
 *   previous_response_id, conversation, or an id in the path
 *     bound            that worker, also if it is drained
 *     worker gone, or down
 *                      reason state_lost: the least loaded one, whose engine
 *                      says in its own words that it does not know the id
 *     worker full, or failed, or the lock is held
 *                      reason state_busy: refused, since any other engine would
 *                      say for good that there is no such id
 *     not bound        as if there were no id
 *   accepted           the binding is made anew: it lives on while it is used;
 *                      or it ends, if the request was to delete the id
 *
 * All of it is within the tenant, the value of kvroute_scope: no tenant
 * reaches what another has named.
 */
#include "ngx_http_kvroute.h"

enum {
	TTL_MS = 600 * 1000,
	RESPONSES_TTL_MS = 3600 * 1000,
	SECRET_BYTES = 32,
	TRIES = 4, /* of a lookup that finds writers in the way */
	ENDED_NS = 1000000 /* as short as a binding can be */
};

static const ngx_msec_t TTL_MS_MAX = (ngx_msec_t)30 * 86400 * 1000;

/* -------------------------------------------------------- configuration --- */

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
	static const char *const names[] = { [KVR_AFFINITY_SOFT] = "soft",
	    [KVR_AFFINITY_TIE] = "tie", [KVR_AFFINITY_HARD] = "hard" };
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
		    "the modes are soft, tie and hard";
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
	loc->affinity_mode = KVR_AFFINITY_SOFT;
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

/* --------------------------------------------------------- of a request --- */

static uint64_t
key_make(ngx_http_kvroute_ctx_t *ctx, enum session_kind kind, const void *id,
    size_t n)
{
	return session_key(ctx->up->kvr, ctx->tenant.data, ctx->tenant.len,
	    kind, id, n);
}

/* The first value that is a key. */
static void
key_find(ngx_http_kvroute_ctx_t *ctx, const ngx_array_t *values)
{
	ngx_http_complex_value_t *value = values->elts;
	ngx_str_t text;
	ngx_uint_t i;

	for (i = 0; i < values->nelts && ctx->session == 0; i++) {
		if (ngx_http_complex_value(ctx->request, &value[i], &text) ==
		    NGX_OK)
			ctx->session = key_make(ctx, SESSION_KEY, text.data,
			    text.len);
	}
}

static void
state_read(ngx_http_kvroute_ctx_t *ctx)
{
	const ngx_str_t *uri = &ctx->request->uri;
	const ngx_str_t *previous = &ctx->body_ids[BODY_PREVIOUS];
	const ngx_str_t *conversation = &ctx->body_ids[BODY_CONVERSATION];
	bool post = ctx->request->method == NGX_HTTP_POST;
	struct session_path path;

	if (ctx->endpoint == ENDPOINT_RESPONSES) {
		ctx->binds = SESSION_RESPONSE;
		ctx->state = previous->len > 0 ?
		    key_make(ctx, SESSION_RESPONSE, previous->data,
		    previous->len) : key_make(ctx, SESSION_CONVERSATION,
		    conversation->data, conversation->len);
	} else if (session_path((const char *)uri->data, uri->len, post,
	    &path)) {
		if (path.length == 0) {
			ctx->binds = SESSION_CONVERSATION;
			return;
		}
		ctx->state = key_make(ctx, path.kind, path.id, path.length);
		/* not an item of it */
		ctx->ends = ctx->request->method == NGX_HTTP_DELETE &&
		    path.id + path.length == (const char *)uri->data + uri->len;
	}
}

void
ngx_http_kvroute_session_read(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(
	    ctx->request, ngx_http_upstream_kvroute_module);

	/* A mirrored request would move the session of its request. */
	if (ctx->request != ctx->request->main)
		return;
	if (ctx->up->kvr == NULL || ctx->opinion == REASON_BYPASS ||
	    (loc->scope != NULL && ngx_http_complex_value(ctx->request,
	    loc->scope, &ctx->tenant) != NGX_OK))
		return;
	if (loc->affinity != NULL && ctx->opinion == REASON_COST)
		key_find(ctx, loc->affinity);
	if (loc->responses_ttl > 0 && loc->feedback)
		state_read(ctx);
}

/* ----------------------------------------------------------- the choice --- */

static void
state_lost(ngx_http_kvroute_ctx_t *ctx, enum kvr_affinity_outcome how)
{
	ctx->worker = 0;
	ctx->reason = REASON_STATE_LOST;
	ctx->affinity = how;
	ctx->bound_held = false; /* that is of its session */
}

void
ngx_http_kvroute_session_busy(ngx_http_kvroute_ctx_t *ctx, ngx_uint_t i)
{
	ctx->wait.wants = i < ctx->up->n_peers ? ctx->up->known[i].key : 0;
	ctx->wait.wants_at = i;
	ctx->worker = 0;
	ctx->reason = REASON_STATE_BUSY;
	ctx->affinity = KVR_AFFINITY_NONE;
}

/* Ids that may be new: their lookup found the lock held. */
static bool
ids_missing(const ngx_http_kvroute_srv_conf_t *up)
{
	ngx_uint_t i;

	for (i = 0; i < up->n_peers; i++) {
		if (up->known[i].due > 0)
			return true;
	}
	return false;
}

/* A backup is not for use while a first peer is. */
static bool
kept_back(const ngx_http_kvroute_srv_conf_t *up, ngx_uint_t i)
{
	ngx_uint_t j;

	for (j = 0; i >= up->n_first && j < up->n_first; j++) {
		if (up->known[j].usable)
			return true;
	}
	return false;
}

/* Its worker, and that one's position in up->known; n_peers: it has none. */
static int
bound_look(ngx_http_kvroute_ctx_t *ctx, int64_t now, uint64_t *worker,
    ngx_uint_t *place)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	uint32_t rank;
	int error = kvr_affinity_find(up->kvr, ctx->state, now, worker);

	if (error != KVR_OK)
		return error;
	*place = ngx_http_kvroute_peer_of(up, *worker, &rank);
	if (*place < up->n_peers || !ids_missing(up))
		return KVR_OK;
	ngx_http_kvroute_peers_look(ctx);
	return KVR_EBUSY;
}

/* No turn of the loop may wait for a writer, so it is asked again at once. */
static int
bound_find(ngx_http_kvroute_ctx_t *ctx, int64_t now, uint64_t *worker,
    ngx_uint_t *place)
{
	int error = KVR_EBUSY, i;

	for (i = 0; i < TRIES && error == KVR_EBUSY; i++)
		error = bound_look(ctx, now, worker, place);
	return error;
}

bool
ngx_http_kvroute_session_find(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	ngx_uint_t i = up->n_peers;
	uint64_t worker = 0;
	int error;

	if (ctx->state == 0)
		return false;
	error = bound_find(ctx, now, &worker, &i);
	if (error == KVR_EWORKER) {
		state_lost(ctx, KVR_AFFINITY_GONE);
	} else if (error == KVR_EBUSY) {
		ngx_http_kvroute_session_busy(ctx, up->n_peers);
	} else if (error != KVR_OK) {
		ctx->affinity = KVR_AFFINITY_NEW;
		return false;
	} else if (i == up->n_peers || up->known[i].down || kept_back(up, i)) {
		state_lost(ctx, KVR_AFFINITY_MOVED);
	} else if (!up->known[i].usable) {
		ngx_http_kvroute_session_busy(ctx, i);
	} else {
		ctx->worker = worker;
		ctx->reason = REASON_AFFINITY;
		ctx->affinity = KVR_AFFINITY_HIT;
	}
	return true;
}

void
ngx_http_kvroute_session_count(ngx_http_kvroute_ctx_t *ctx)
{
	if (ctx->affinity != KVR_AFFINITY_NONE)
		ngx_http_kvroute_count(ctx->up, COUNT_AFFINITY +
		    ctx->affinity - KVR_AFFINITY_HIT, 1);
	if (ctx->affinity == KVR_AFFINITY_MOVED && ctx->bound_held)
		ngx_http_kvroute_count(ctx->up, COUNT_AFFINITY_GRAY, 1);
}

/* -------------------------------------------------------------- binding --- */

/* Of one that waits to be bound, the end waits too. */
static bool
is_unbound(ngx_http_kvroute_ctx_t *ctx, uint64_t digest)
{
	uint64_t worker;

	return ctx->up->late_binds == 0 && kvr_affinity_find(ctx->up->kvr,
	    digest, kvr_clock_now(), &worker) == KVR_EUNBOUND;
}

/* False: it is not. */
static bool
state_bind(ngx_http_kvroute_ctx_t *ctx, uint64_t digest, bool ends)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(
	    ctx->request, ngx_http_upstream_kvroute_module);
	ngx_http_kvroute_late_t write;
	int error;

	ngx_memzero(&write, sizeof(write));
	write.what = NGX_HTTP_KVROUTE_BIND;
	write.id = ngx_http_kvroute_taken_worker(ctx, digest);
	write.digest = digest;
	write.ttl = (int64_t)loc->responses_ttl * 1000000;
	if (digest == 0 || write.id == 0 || write.ttl == 0 ||
	    (ends && is_unbound(ctx, digest)))
		return false;
	if (ends)
		write.ttl = ENDED_NS;
	error = ngx_http_kvroute_write(ctx->up, &write);
	return error == KVR_OK || error == KVR_EBUSY;
}

/* What it continues is there, or the engine would have said that it is not. */
void
ngx_http_kvroute_session_accepted(ngx_http_kvroute_ctx_t *ctx)
{
	if (ctx->state != 0)
		(void)state_bind(ctx, ctx->state, ctx->ends);
}

/* Before these bytes reach the client: its next request may come at once. */
void
ngx_http_kvroute_session_answered(ngx_http_kvroute_ctx_t *ctx)
{
	enum session_kind kind;
	const char *id;
	ngx_uint_t i;
	size_t n;

	for (i = 0; ctx->binds != 0 && i < OBJECT_IDS; i++) {
		if ((ctx->bound >> i & 1) != 0 ||
		    !answer_id(ctx->answer, (enum object_id)i, &id, &n))
			continue;
		ctx->bound |= 1u << i;
		kind = i == OBJECT_ID ? ctx->binds : SESSION_CONVERSATION;
		if (kind == SESSION_RESPONSE && ctx->facts.unstored)
			continue;
		if (state_bind(ctx, key_make(ctx, kind, id, n), false))
			ngx_http_kvroute_count(ctx->up, COUNT_BOUND, 1);
	}
}
