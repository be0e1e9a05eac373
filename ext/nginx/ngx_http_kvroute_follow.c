/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_follow.c - peers that nginx adds and removes while it runs:
 * "server NAME resolve", from nginx 1.27.3 on.
 *
 * One nginx worker process resolves a name and changes the peers, which are in
 * the zone of the upstream, under nginx's lock. Each change has a number, the
 * generation. A request is good for the generation at which it learned the
 * peers: the stock method gives it no peer at another one.
 *
 *     choice, timer   another generation? --> up->known made anew
 *                       same name: its ids, health, poll and so on stay
 *                       new name:  its workers are added to the region, by
 *                                  any process; all find them there
 *     the request     its bits of peers that it has tried are made anew
 *     timer           a worker whose peer has left is kept for LEFT_MS, and
 *                     as long as it has requests, then removed
 *
 * An address that is back before that, since an engine was not ready for a
 * while or since a name has more addresses than an answer, has its record
 * still. No request goes there meanwhile: it is no peer.
 *
 * A peer may be freed as soon as nginx's lock is released and no request has
 * it. So all that is needed of it is copied, also by a request that has it.
 * No memory is allocated under that lock: a process that died there would hold
 * it for ever.
 */
#include "ngx_http_kvroute_follow.h"

#include "health.h"
#include "ngx_http_kvroute_capacity.h"
#include "ngx_http_kvroute_health.h"
#include "ngx_http_kvroute_poll.h"
#include "ngx_http_kvroute_server.h"
#include "ngx_http_kvroute_table.h"
#include "ngx_http_kvroute_workers.h"
#include "status.h"

#ifndef NGX_HTTP_KVROUTE_LEFT_MS
#define NGX_HTTP_KVROUTE_LEFT_MS 60000
#endif

enum {
	LIST_TRIES = 4,     /* the peers may grow meanwhile */
	LIST_MORE = 16,     /* by so many */
	JOINS = 8,          /* workers that one look adds */
	JOIN_TRIES = 16     /* each, while the lock is held */
};

/* ----------------------------------------------------------------- list --- */

#if (NGX_HTTP_KVROUTE_RESOLVE)

/* Others may change it at any time. */
static ngx_uint_t
generation_of(const ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;

	return peers->config == NULL ? 0 :
	    *(volatile ngx_uint_t *)peers->config;
}

static bool
has_names(const ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;

	for (; peers != NULL; peers = peers->next)
		if (peers->resolve != NULL)
			return true;
	return false;
}

#else

static ngx_uint_t
generation_of(const ngx_http_kvroute_srv_conf_t *up)
{
	(void)up;
	return 0;
}

static bool
has_names(const ngx_http_kvroute_srv_conf_t *up)
{
	(void)up;
	return false;
}

#endif

typedef struct {
	ngx_http_kvroute_known_t *known;
	ngx_uint_t n, n_first, most;
	ngx_uint_t generation;
	uint64_t *allowed;
	struct health **fleet;
	struct status_name *asked;
} list_t;

static void
known_copy(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_known_t *known,
    const ngx_http_upstream_rr_peer_t *peer)
{
	known->name_len = ngx_min(peer->name.len, sizeof(known->name));
	ngx_memcpy(known->name, peer->name.data, known->name_len);
	known->address_len = ngx_min(peer->socklen,
	    (socklen_t)sizeof(known->address));
	ngx_memcpy(&known->address, peer->sockaddr, known->address_len);
	known->weight = (ngx_uint_t)peer->weight;
	known->server = ngx_http_kvroute_server_of(up, peer);
}

/* False: there is no room for all. */
static bool
peers_copy(ngx_http_kvroute_srv_conf_t *up,
    ngx_http_upstream_rr_peers_t *peers, list_t *list)
{
	ngx_http_upstream_rr_peer_t *peer;

	ngx_http_upstream_rr_peers_rlock(peers);
	if (list->n == 0)
		list->generation = generation_of(up);
	for (peer = peers->peer; peer != NULL && list->n < list->most;
	    peer = peer->next)
		known_copy(up, &list->known[list->n++], peer);
	ngx_http_upstream_rr_peers_unlock(peers);
	return peer == NULL;
}

/* Of both groups. NGX_AGAIN: they have grown. */
static ngx_int_t
list_read(ngx_http_kvroute_srv_conf_t *up, list_t *list, ngx_log_t *log)
{
	ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;
	bool whole;

	list->n = 0;
	list->most = peers->number + LIST_MORE +
	    (peers->next == NULL ? 0 : peers->next->number);
	list->known = ngx_calloc(list->most * sizeof(*list->known), log);
	if (list->known == NULL)
		return NGX_ERROR;
	whole = peers_copy(up, peers, list);
	list->n_first = list->n;
	if (whole && peers->next != NULL)
		whole = peers_copy(up, peers->next, list);
	return whole ? NGX_OK : NGX_AGAIN;
}

/* Its ranks, and room for their ids; false: no memory. */
static bool
ranks_make(ngx_http_kvroute_known_t *known, ngx_log_t *log)
{
	known->ranks = ngx_http_kvroute_ranks_of(known->server);
	known->named = known->server != NULL && known->server->ranks > 0;
	known->ids = ngx_calloc(known->ranks * (sizeof(*known->ids) +
	    sizeof(*known->flags)), log);
	if (known->ids == NULL)
		return false;
	known->flags = (uint8_t *)(known->ids + known->ranks);
	ngx_http_kvroute_ids_due(known);
	return true;
}

static void
known_free(ngx_http_kvroute_known_t *known)
{
	if (known->ask != NULL)
		ngx_http_kvroute_ask_free(known->ask);
	if (known->poll != NULL)
		ngx_http_kvroute_poll_free(known->poll);
	ngx_free(known->ids);
}

static void
list_free(list_t *list)
{
	ngx_uint_t i;

	for (i = 0; list->known != NULL && i < list->n; i++)
		ngx_free(list->known[i].ids);
	ngx_free(list->known);
	ngx_free(list->allowed);
	ngx_free(list->fleet);
	ngx_free(list->asked);
}

/* False: no memory. */
static bool
list_fill(list_t *list, ngx_log_t *log)
{
	ngx_http_kvroute_known_t *known, *end = list->known + list->n;
	size_t workers = 0;

	for (known = list->known; known < end; known++) {
		known->key = ngx_http_kvroute_key(known->name,
		    known->name_len);
		if (!ranks_make(known, log))
			return false;
		workers += known->ranks;
	}
	list->allowed = ngx_alloc((workers + 1) * sizeof(*list->allowed), log);
	list->fleet = ngx_alloc((list->n_first + 1) * sizeof(*list->fleet),
	    log);
	list->asked = ngx_alloc((list->n + 1) * sizeof(*list->asked), log);
	return list->allowed != NULL && list->fleet != NULL &&
	    list->asked != NULL;
}

static bool
list_make(ngx_http_kvroute_srv_conf_t *up, list_t *list, ngx_log_t *log)
{
	ngx_uint_t tries = LIST_TRIES;
	ngx_int_t rc;

	do {
		ngx_memzero(list, sizeof(*list));
		rc = list_read(up, list, log);
		if (rc == NGX_OK && list_fill(list, log))
			return true;
		list_free(list);
	} while (rc == NGX_AGAIN && --tries > 0);
	return false;
}

/* ----------------------------------------------------------- known anew --- */

/* What was known of the same peer goes on. */
static void
known_move(ngx_http_kvroute_known_t *to, ngx_http_kvroute_known_t *from)
{
	ngx_free(to->ids);
	to->ids = from->ids;
	to->flags = from->flags;
	to->due = from->due;
	to->closed = from->closed;
	to->ask = from->ask;
	to->poll = from->poll;
	to->health = from->health;
	to->joined = from->joined && to->weight == from->weight;
	to->refused = from->refused;
	from->ids = NULL;
	from->ask = NULL;
	from->poll = NULL;
}

static void
known_find(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_known_t *to)
{
	ngx_http_kvroute_known_t *from, *end = up->known + up->n_peers;

	for (from = up->known; from < end; from++) {
		if (from->ids != NULL && from->key == to->key &&
		    from->server == to->server &&
		    from->name_len == to->name_len &&
		    ngx_memcmp(from->name, to->name, to->name_len) == 0) {
			known_move(to, from);
			return;
		}
	}
}

void
ngx_http_kvroute_peers_free(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_uint_t i;

	for (i = 0; i < up->n_peers; i++)
		known_free(&up->known[i]);
	ngx_free(up->known);
	ngx_free(up->allowed);
	ngx_free(up->fleet);
	ngx_free(up->asked);
	up->known = NULL;
	up->allowed = NULL;
	up->fleet = NULL;
	up->asked = NULL;
	up->n_peers = up->n_first = up->n_workers = up->n_fleet = 0;
	up->n_asked = 0;
}

/* Names for the status. */
static void
asked_list(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_known_t *known, *end = up->known + up->n_peers;

	up->n_asked = 0;
	for (known = up->known; known < end; known++)
		if (known->server != NULL && known->server->ask)
			up->asked[up->n_asked++] = (struct status_name){
			    .bytes = (const char *)known->name,
			    .length = known->name_len };
}

static void
list_take(ngx_http_kvroute_srv_conf_t *up, const list_t *list)
{
	ngx_uint_t i;

	ngx_http_kvroute_peers_free(up);
	up->known = list->known;
	up->n_peers = list->n;
	up->n_first = list->n_first;
	up->allowed = list->allowed;
	up->fleet = list->fleet;
	up->asked = list->asked;
	up->follow.generation = list->generation;
	for (i = 0; i < list->n; i++)
		up->n_workers += list->known[i].ranks;
	asked_list(up);
}

bool
ngx_http_kvroute_peers_list(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	list_t list;
	ngx_uint_t i;

	if (!list_make(up, &list, log))
		return false;
	for (i = 0; i < list.n; i++)
		known_find(up, &list.known[i]);
	list_take(up, &list);
	up->follow.resolves = has_names(up);
	up->follow.joining = up->follow.leaving = up->follow.resolves;
	ngx_http_kvroute_health_follow(up);
	ngx_http_kvroute_asks_follow(up);
	ngx_http_kvroute_polls_follow(up);
	return true;
}

bool
ngx_http_kvroute_peers_changed(const ngx_http_kvroute_srv_conf_t *up)
{
	return up->follow.generation != generation_of(up);
}

/* Without memory what was known stays, and the next look tries again. */
void
ngx_http_kvroute_peers_follow(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	if (ngx_http_kvroute_peers_changed(up))
		(void)ngx_http_kvroute_peers_list(up, log);
}

/* --------------------------------------------------------- come, and go --- */

/* After a reload the peers of a process that ends are old ones. */
static bool
is_ending(void)
{
	return ngx_exiting || ngx_quit || ngx_terminate;
}

/* Since when it has been without a peer; it is off the list. */
static ngx_msec_t
left_take(ngx_http_kvroute_srv_conf_t *up, uint64_t id)
{
	ngx_uint_t i;

	for (i = 0; i < up->follow.n_left; i++)
		if (up->follow.left[i].id == id) {
			up->follow.left[i].id = 0;
			return up->follow.left[i].since;
		}
	return ngx_current_msec;
}

static bool
has_requests(ngx_http_kvroute_srv_conf_t *up, uint64_t id)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };

	return kvr_worker_stats_get(up->kvr, id, &s) != KVR_OK ||
	    s.requests > 0;
}

/* Without a peer: may it go, or must it, since the table is full? */
static bool
may_go(ngx_http_kvroute_srv_conf_t *up, uint64_t id, ngx_msec_t since,
    bool full)
{
	return full || (ngx_current_msec - since >= NGX_HTTP_KVROUTE_LEFT_MS &&
	    !has_requests(up, id));
}

static bool
remove_one(ngx_http_kvroute_srv_conf_t *up, uint64_t id, const char *name,
    size_t len, ngx_log_t *log)
{
	if (kvr_worker_remove(up->kvr, id) != KVR_OK)
		return false;
	ngx_http_kvroute_health_leave(up,
	    ngx_http_kvroute_key((const u_char *)name, len));
	ngx_log_error(NGX_LOG_NOTICE, log, 0, "kvroute of upstream \"%V\": "
	    "worker %*s has left: removed", &up->upstream->host, len, name);
	return true;
}

/* Behind n others: those of the list that could not be looked at. */
static ngx_uint_t
left_keep(const ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_left_t *left,
    ngx_uint_t n)
{
	ngx_uint_t i;

	for (i = 0; i < up->follow.n_left && n < up->options.max_workers; i++)
		if (up->follow.left[i].id != 0)
			left[n++] = up->follow.left[i];
	return n;
}

/* One pass over the workers; what the lock prevents is left to the next. */
static void
leave_some(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_left_t *left,
    bool full, ngx_log_t *log)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	char name[KVR_NAME_MAX];
	ngx_uint_t n = 0;
	uint64_t id = 0;
	ngx_msec_t since;
	bool all = true;
	size_t len;
	int error;

	while ((error = kvr_worker_next(up->kvr, &id)) == KVR_OK && id != 0 &&
	    n < up->options.max_workers) {
		if (kvr_worker_name(up->kvr, id, name, sizeof(name), &len) !=
		    KVR_OK || kvr_worker_get(up->kvr, id, &facts) != KVR_OK) {
			all = false;
			continue;
		}
		since = left_take(up, id);
		if (facts.rank < ngx_http_kvroute_ranks_named(up, name, len))
			continue;
		if (may_go(up, id, since, full) &&
		    remove_one(up, id, name, len, log))
			continue;
		left[n++] = (ngx_http_kvroute_left_t){ id, since };
	}
	all = all && error == KVR_OK && id == 0;
	if (!all)
		n = left_keep(up, left, n);
	up->follow.leaving = !all || n > 0;
	ngx_memcpy(up->follow.left, left, n * sizeof(*left));
	up->follow.n_left = n;
}

static void
workers_leave(ngx_http_kvroute_srv_conf_t *up, bool full, ngx_log_t *log)
{
	size_t bytes = up->options.max_workers * sizeof(*up->follow.left);

	if (up->follow.left == NULL)
		up->follow.left = ngx_alloc(2 * bytes, log);
	if (up->follow.left != NULL)
		leave_some(up, up->follow.left + up->options.max_workers, full,
		    log);
}

void
ngx_http_kvroute_peers_leave(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	/* What was refused, or removed by a process that knew less. */
	up->follow.joining = up->follow.resolves;
	if (up->follow.leaving && !is_ending())
		workers_leave(up, false, log);
	if (up->follow.resolves)
		ngx_http_kvroute_health_follow_late(up);
}

/* False: later, since the lock is held. */
static bool
worker_join(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_known_t *known,
    ngx_log_t *log)
{
	int error = ngx_http_kvroute_workers_ensure(up, up->kvr, known,
	    JOIN_TRIES);

	if (error == KVR_EFULL) {
		workers_leave(up, true, log);
		error = ngx_http_kvroute_workers_ensure(up, up->kvr, known,
		    JOIN_TRIES);
	}
	known->joined = error == KVR_OK;
	if (error == KVR_OK || error == KVR_EBUSY)
		return error == KVR_OK;
	if (!known->refused)
		ngx_log_error(NGX_LOG_ERR, log, 0, "kvroute of upstream "
		    "\"%V\": worker \"%*s\": %s", &up->upstream->host,
		    known->name_len, known->name, kvr_strerror(error));
	known->refused = true;
	return true;
}

void
ngx_http_kvroute_peers_join(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	ngx_http_kvroute_known_t *known, *end = up->known + up->n_peers;
	ngx_uint_t n = 0;

	if (!up->follow.joining || is_ending())
		return;
	for (known = up->known; known < end; known++) {
		if (!known->joined &&
		    (n++ == JOINS || !worker_join(up, known, log)))
			return;
	}
	up->follow.joining = false;
}
