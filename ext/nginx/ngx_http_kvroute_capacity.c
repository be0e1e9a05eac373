/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_capacity.c - kvroute_server ... capacity=auto: asks engines
 * for the capacity of their KV caches.
 *
 *   timer, once a second      each server: is it due?
 *     due --> connect --> send --> receive --> probe.h --> the worker's facts
 *              ^                                  |
 *              +------------ next path -----------+
 *
 * The first nginx worker process asks; the region tells the others. It asks by
 * connections of its own, with a deadline, beside the requests: a request never
 * waits for this, and at most AT_ONCE are open.
 *
 * A server is due at the start; after a failure, later each time; after its
 * worker was reset, or a request to it failed in any process, since it may have
 * restarted with another capacity; and now and then. What was read is kept
 * until something else is read, or the engine says that there is none: one that
 * is down has its last capacity.
 */
#include "ngx_http_kvroute_capacity.h"

#include "capacity.h"
#include "ngx_http_kvroute_fetch.h"
#include "ngx_http_kvroute_server.h"
#include "ngx_http_kvroute_shared.h"
#include "ngx_http_kvroute_table.h"
#include "probe.h"

enum {
	TICK_MS = 1000,
	DEADLINE_MS = 10000,     /* for one path */
	AGAIN_MS = 2000,         /* after an answer, at least */
	BACKOFF_MS = 1000,       /* doubled by each failure */
	BACKOFFS = 4,            /* at most so often */
	REFRESH_MS = 300000,
	AT_ONCE = 8,             /* servers of an upstream */
	CONNECTIONS_MIN = 16     /* that stay free for requests */
};

struct ngx_http_kvroute_ask_s {
	ngx_http_kvroute_srv_conf_t *up;
	ngx_http_kvroute_server_t *server; /* as configured */
	uint64_t key;            /* of its name */
	struct probe *probe;     /* while it is asked, or NULL */
	ngx_http_kvroute_fetch_t fetch;
	/* what is known */
	uint64_t id;             /* of the worker; 0: not looked up */
	ngx_atomic_uint_t troubles; /* when it was asked */
	struct capacity found;
	bool denied;             /* it has said that there is none */
	ngx_msec_t due, answered;
	ngx_uint_t failures;     /* since the last capacity */
};

static void path_ask(ngx_http_kvroute_ask_t *ask);

/* --------------------------------------------------------------- facts --- */

/* What is not said may come from events, and stays. */
static void
windows_wanted(const ngx_http_kvroute_ask_t *ask, struct kvr_worker *facts)
{
	const ngx_http_kvroute_server_t *server = ask->server;
	const struct capacity *found = &ask->found;

	if (server->windows != KVR_WINDOW_FULL && found->window != 0) {
		facts->window_mode = server->windows;
		facts->window_tokens = found->window;
	}
	if (server->facts.window_capacity == 0 && found->window_tokens != 0 &&
	    facts->window_mode == KVR_WINDOW_DUAL)
		facts->window_capacity = found->window_tokens;
}

/* The facts as they should be; false: nothing is known of them. */
static bool
facts_wanted(const ngx_http_kvroute_ask_t *ask, struct kvr_worker *facts)
{
	const ngx_http_kvroute_server_t *server = ask->server;
	const struct capacity *found = &ask->found;

	if (found->tokens == 0 && !ask->denied)
		return false;
	facts->capacity_tokens = found->tokens;
	facts->retain = KVR_RETAIN_AUTO;
	if (server->facts.block_tokens == 0)
		facts->block_tokens = found->block_tokens;
	if (!server->evicts)
		facts->eviction = found->kind == CAPACITY_SGLANG ?
		    KVR_EVICT_LEAF : KVR_EVICT_RELEASED;
	windows_wanted(ask, facts);
	return true;
}

/* Of one of its workers. If the lock is held, the next tick tries again. */
static void
facts_write_to(ngx_http_kvroute_ask_t *ask, uint64_t id)
{
	struct kvr_worker facts, now;

	now.size = sizeof(now);
	if (id == 0 || kvr_worker_get(ask->up->kvr, id, &now) != KVR_OK)
		return;
	facts = now;
	if (facts_wanted(ask, &facts) &&
	    (facts.capacity_tokens != now.capacity_tokens ||
	    facts.block_tokens != now.block_tokens ||
	    facts.eviction != now.eviction || facts.retain != now.retain ||
	    facts.window_mode != now.window_mode ||
	    facts.window_tokens != now.window_tokens ||
	    facts.window_capacity != now.window_capacity))
		(void)kvr_worker_set(ask->up->kvr, id, &facts);
}

/* What is read is of one rank, the first; the others are like it. */
static void
facts_write(ngx_http_kvroute_ask_t *ask)
{
	const ngx_str_t *name = &ask->fetch.name;
	uint32_t rank, ranks = ngx_http_kvroute_ranks_of(ask->server);
	uint64_t id;

	facts_write_to(ask, ask->id);
	for (rank = 1; rank < ranks && ask->id != 0; rank++) {
		if (kvr_worker_find(ask->up->kvr, (const char *)name->data,
		    name->len, rank, &id) == KVR_OK)
			facts_write_to(ask, id);
	}
}

/* Its id now; true: it is another one than before. */
static bool
id_look(ngx_http_kvroute_ask_t *ask)
{
	const ngx_str_t *name = &ask->fetch.name;
	struct kvr_worker facts;
	uint64_t id = ask->id;
	int error;

	facts.size = sizeof(facts);
	if (id != 0 && (error = kvr_worker_get(ask->up->kvr, id, &facts)) !=
	    KVR_EWORKER)
		return false;
	error = kvr_worker_find(ask->up->kvr, (const char *)name->data,
	    name->len, 0, &id);
	if (error != KVR_OK || id == ask->id)
		return false;
	ask->id = id;
	return true;
}

/* -------------------------------------------------------------- result --- */

static void
ask_leave(ngx_http_kvroute_ask_t *ask)
{
	ngx_http_kvroute_fetch_leave(&ask->fetch);
	if (ask->probe == NULL)
		return;
	probe_free(ask->probe);
	ask->probe = NULL;
	ask->up->asks.n--;
}

/* The first failure is logged, others are not. */
static void
ask_failed(ngx_http_kvroute_ask_t *ask, const char *why, unsigned status)
{
	u_char text[32], *end = text;

	if (status != 0)
		end = ngx_snprintf(text, sizeof(text), ", status %ud", status);
	if (ask->failures++ == 0)
		ngx_log_error(NGX_LOG_WARN, ask->up->asks.timer.log, 0,
		    "kvroute of upstream \"%V\": capacity of %V is %s: %s%*s",
		    &ask->up->upstream->host, &ask->fetch.name,
		    ask->found.tokens == 0 ? "not known" : "as before",
		    why, (size_t)(end - text), text);
	ask->due = ngx_current_msec + (BACKOFF_MS <<
	    ngx_min(ask->failures - 1, BACKOFFS));
	ask_leave(ask);
}

static void
ask_done(ngx_http_kvroute_ask_t *ask)
{
	const struct capacity *c = probe_found(ask->probe);

	if (c->tokens == 0) {
		ask->denied = probe_denied(ask->probe);
		if (ask->denied)
			ngx_memzero(&ask->found, sizeof(ask->found));
		facts_write(ask);
		ask_failed(ask, "it publishes none", probe_status(ask->probe));
		return;
	}
	if (c->tokens != ask->found.tokens || ask->failures > 0 ||
	    c->block_tokens != ask->found.block_tokens)
		ngx_log_error(NGX_LOG_NOTICE, ask->up->asks.timer.log, 0,
		    "kvroute of upstream \"%V\": capacity of %V is %uL "
		    "tokens, in blocks of %uD (0: not known), by %s of %s",
		    &ask->up->upstream->host, &ask->fetch.name, c->tokens,
		    c->block_tokens, probe_place(ask->probe),
		    capacity_kind_name(c->kind));
	ask->found = *c;
	ask->denied = false;
	ask->failures = 0;
	ask->answered = ngx_current_msec;
	ask->due = ngx_current_msec + REFRESH_MS;
	ask_leave(ask);
	facts_write(ask);
}

/* ------------------------------------------------------------ responses --- */

static void
on_failure(ngx_http_kvroute_fetch_t *fetch, const char *why)
{
	ask_failed(fetch->data, why, 0);
}

static bool
on_data(ngx_http_kvroute_fetch_t *fetch, const u_char *bytes, size_t n)
{
	ngx_http_kvroute_ask_t *ask = fetch->data;
	enum probe_state state = n == 0 ? probe_close(ask->probe) :
	    probe_data(ask->probe, bytes, n);

	if (state == PROBE_MORE)
		return true;
	ngx_http_kvroute_fetch_leave(fetch);
	if (state == PROBE_NEXT)
		path_ask(ask);
	else
		ask_done(ask);
	return false;
}

/* The current path of the probe, on a new connection. */
static void
path_ask(ngx_http_kvroute_ask_t *ask)
{
	ngx_str_t host = ngx_http_kvroute_fetch_host(&ask->fetch);

	ask->fetch.to_send = probe_request(ask->probe, (const char *)host.data,
	    host.len, (char *)ask->fetch.request);
	ngx_http_kvroute_fetch(&ask->fetch, DEADLINE_MS);
}

/* --------------------------------------------------------------- timer --- */

static void
ask_begin(ngx_http_kvroute_ask_t *ask)
{
	ask->troubles = ask->up->shared->troubles[ask->key %
	    NGX_HTTP_KVROUTE_TROUBLES];
	ask->probe = probe_new(0);
	if (ask->probe == NULL)
		return;
	ask->up->asks.n++;
	path_ask(ask);
}

static bool
has_passed(ngx_msec_t moment)
{
	return (ngx_msec_int_t)(ngx_current_msec - moment) >= 0;
}

/* After a reset, or a failed request, what was read may be wrong. */
static bool
is_doubtful(ngx_http_kvroute_ask_t *ask)
{
	return ask->failures == 0 && has_passed(ask->answered + AGAIN_MS) &&
	    ask->troubles != ask->up->shared->troubles[ask->key %
	    NGX_HTTP_KVROUTE_TROUBLES];
}

static void
ask_look(ngx_http_kvroute_ask_t *ask)
{
	bool other = id_look(ask);

	facts_write(ask);
	if (ask->probe == NULL && ask->up->asks.n < AT_ONCE &&
	    ngx_cycle->free_connection_n >= CONNECTIONS_MIN &&
	    (other || is_doubtful(ask) || has_passed(ask->due)))
		ask_begin(ask);
}

static void
on_tick(ngx_event_t *event)
{
	ngx_http_kvroute_srv_conf_t *up = event->data;
	ngx_uint_t i;

	if (ngx_exiting || ngx_quit || ngx_terminate)
		return;
	for (i = 0; i < up->n_peers; i++)
		if (up->known[i].ask != NULL)
			ask_look(up->known[i].ask);
	ngx_add_timer(event, TICK_MS);
}

/* ------------------------------------------------------------- process --- */

/* NULL: no memory; the next change of the peers tries again. */
static ngx_http_kvroute_ask_t *
ask_make(ngx_http_kvroute_srv_conf_t *up,
    const ngx_http_kvroute_known_t *known)
{
	ngx_http_kvroute_ask_t *ask = ngx_calloc(sizeof(*ask),
	    up->asks.timer.log);

	if (ask == NULL)
		return NULL;
	ask->up = up;
	ask->server = known->server;
	ask->key = known->key;
	ask->due = ngx_current_msec;
	ask->fetch.data = ask;
	ask->fetch.read = on_data;
	ask->fetch.failed = on_failure;
	ngx_http_kvroute_fetch_init(&ask->fetch, known, &up->asks.log);
	return ask;
}

void
ngx_http_kvroute_ask_free(ngx_http_kvroute_ask_t *ask)
{
	ask_leave(ask);
	ngx_free(ask);
}

void
ngx_http_kvroute_asks_follow(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_known_t *known, *end = up->known + up->n_peers;
	bool any = false;

	if (!up->asks.on)
		return;
	for (known = up->known; known < end; known++) {
		if (known->server == NULL || !known->server->ask)
			continue;
		if (known->ask == NULL)
			known->ask = ask_make(up, known);
		any |= known->ask != NULL;
	}
	if (any && !up->asks.timer.timer_set)
		ngx_add_timer(&up->asks.timer, 1);
}

void
ngx_http_kvroute_asks_begin(ngx_http_kvroute_srv_conf_t *up,
    ngx_cycle_t *cycle)
{
	if (ngx_process == NGX_PROCESS_HELPER || ngx_worker != 0)
		return;
	/* Failures to connect are expected, and logged here. */
	up->asks.log = *cycle->log;
	up->asks.log.log_level = NGX_LOG_ALERT;
	up->asks.timer.handler = on_tick;
	up->asks.timer.data = up;
	up->asks.timer.log = cycle->log;
	up->asks.timer.cancelable = 1;
	up->asks.on = true;
	ngx_http_kvroute_asks_follow(up);
}

void
ngx_http_kvroute_asks_leave(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_uint_t i;

	for (i = 0; i < up->n_peers; i++)
		if (up->known[i].ask != NULL)
			ask_leave(up->known[i].ask);
}

void
ngx_http_kvroute_trouble(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *name)
{
	(void)ngx_atomic_fetch_add(&up->shared->troubles[
	    ngx_http_kvroute_key(name->data, name->len) %
	    NGX_HTTP_KVROUTE_TROUBLES], 1);
}
