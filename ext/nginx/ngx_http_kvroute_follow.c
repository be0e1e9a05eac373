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
 *     choice, timer   another generation? --> fleet.known made anew
 *                       same name: its ids, health, poll and so on stay
 *                       new name, or gone: members.h
 *     the request     its bits of peers that it has tried are made anew
 *
 * A peer may be freed as soon as nginx's lock is released and no request has
 * it. So all that is needed of it is copied, also by a request that has it.
 * No memory is allocated under that lock: a process that died there would hold
 * it for ever.
 */
#include "ngx_http_kvroute_follow.h"

#include "judge.h"
#include "known_list.h"
#include "ngx_http_kvroute_poll.h"
#include "ngx_http_kvroute_server.h"
#include "ngx_http_kvroute_time.h"

#ifndef NGX_HTTP_KVROUTE_LEFT_MS
#define NGX_HTTP_KVROUTE_LEFT_MS 60000
#endif

enum {
	LIST_TRIES = 4,     /* the peers may grow meanwhile */
	LIST_MORE = 16      /* by so many */
};

/* ----------------------------------------------------------------- list --- */

/* Others may change it at any time. */
static ngx_uint_t
generation_of(const kvroute_srv_conf_t *up)
{
#if (KVROUTE_RESOLVE)
	ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;

	if (peers->config != NULL)
		return *(volatile ngx_uint_t *)peers->config;
#endif
	return 0;
}

static bool
has_names(const kvroute_srv_conf_t *up)
{
#if (KVROUTE_RESOLVE)
	ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;

	for (; peers != NULL; peers = peers->next)
		if (peers->resolve != NULL)
			return true;
#endif
	return false;
}

typedef struct {
	struct known_list of;
	kvroute_address_t *addresses;
	ngx_uint_t most;
	ngx_uint_t generation;
} list_t;

static void
peer_copy(kvroute_srv_conf_t *up, list_t *list,
    const ngx_http_upstream_rr_peer_t *peer)
{
	kvroute_address_t *to = &list->addresses[list->of.n];
	struct known *known = &list->of.known[list->of.n++];

	known->name_len = ngx_min(peer->name.len, sizeof(known->name));
	ngx_memcpy(known->name, peer->name.data, known->name_len);
	to->length = ngx_min(peer->socklen, (socklen_t)sizeof(to->address));
	ngx_memcpy(&to->address, peer->sockaddr, to->length);
	known->weight = (uint64_t)peer->weight;
	known->facts = kvroute_server_of(up, peer);
}

/* False: there is no room for all. */
static bool
peers_copy(kvroute_srv_conf_t *up,
    ngx_http_upstream_rr_peers_t *peers, list_t *list)
{
	ngx_http_upstream_rr_peer_t *peer;

	ngx_http_upstream_rr_peers_rlock(peers);
	if (list->of.n == 0)
		list->generation = generation_of(up);
	for (peer = peers->peer; peer != NULL && list->of.n < list->most;
	    peer = peer->next)
		peer_copy(up, list, peer);
	ngx_http_upstream_rr_peers_unlock(peers);
	return peer == NULL;
}

/* Reads both groups. NGX_AGAIN: they have grown. */
static ngx_int_t
list_read(kvroute_srv_conf_t *up, list_t *list, ngx_log_t *log)
{
	ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;
	bool whole;

	list->most = peers->number + LIST_MORE +
	    (peers->next == NULL ? 0 : peers->next->number);
	list->of.known = calloc(list->most, sizeof(*list->of.known));
	list->addresses = ngx_alloc(list->most * sizeof(*list->addresses),
	    log);
	if (list->of.known == NULL || list->addresses == NULL)
		return NGX_ERROR;
	whole = peers_copy(up, peers, list);
	list->of.n_first = list->of.n;
	if (whole && peers->next != NULL)
		whole = peers_copy(up, peers->next, list);
	return whole ? NGX_OK : NGX_AGAIN;
}

static void
list_free(list_t *list)
{
	known_list_free(&list->of);
	ngx_free(list->addresses);
}

static bool
list_make(kvroute_srv_conf_t *up, list_t *list, ngx_log_t *log)
{
	ngx_uint_t tries = LIST_TRIES;
	ngx_int_t rc;

	do {
		ngx_memzero(list, sizeof(*list));
		rc = list_read(up, list, log);
		if (rc == NGX_OK && known_list_fill(&list->of))
			return true;
		list_free(list);
	} while (rc == NGX_AGAIN && --tries > 0);
	return false;
}

/* ----------------------------------------------------------- known anew --- */

void
kvroute_peers_free(kvroute_srv_conf_t *up)
{
	ngx_uint_t i;

	for (i = 0; i < up->fleet.n_known; i++)
		kvroute_poll_free(&up->fleet.known[i]);
	known_list_leave(&up->fleet);
	ngx_free(up->addresses);
	up->addresses = NULL;
}

static void
list_take(kvroute_srv_conf_t *up, list_t *list)
{
	kvroute_peers_free(up);
	known_list_take(&list->of, &up->fleet);
	up->addresses = list->addresses;
	up->follow.generation = list->generation;
}

bool
kvroute_peers_list(kvroute_srv_conf_t *up, ngx_log_t *log)
{
	list_t list;

	if (!list_make(up, &list, log))
		return false;
	known_list_keep(&list.of, &up->fleet);
	list_take(up, &list);
	up->follow.members.resolves = has_names(up);
	up->follow.members.left_ms = NGX_HTTP_KVROUTE_LEFT_MS;
	members_follow(&up->follow.members);
	judge_follow(&up->fleet);
	kvroute_polls_follow(up);
	return true;
}

bool
kvroute_peers_changed(const kvroute_srv_conf_t *up)
{
	return up->follow.generation != generation_of(up);
}

/* Without memory the old list stays, and the next look tries again. */
void
kvroute_peers_follow(kvroute_srv_conf_t *up, ngx_log_t *log)
{
	if (kvroute_peers_changed(up))
		(void)kvroute_peers_list(up, log);
}

/* --------------------------------------------------------- come, and go --- */

void
kvroute_peers_leave(kvroute_srv_conf_t *up, ngx_log_t *log)
{
	if (!kvroute_is_ending())
		members_leave(&up->fleet, &up->follow.members,
		    kvr_clock_now(), log);
}

void
kvroute_peers_join(kvroute_srv_conf_t *up, ngx_log_t *log)
{
	if (!kvroute_is_ending())
		members_join(&up->fleet, &up->follow.members, kvr_clock_now(),
		    log);
}
