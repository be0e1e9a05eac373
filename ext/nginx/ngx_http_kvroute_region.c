/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_region.c - nginx starts, reloads and ends.
 *
 * The master updates the region and logs one line about it. Each nginx worker
 * attaches on its own; its process owns its leases. Once a second each worker
 * checks whether an owner has died and ends the leases of dead owners. Leases
 * that kvroute-sync has brought are dead when it is silent.
 */
#include "ngx_http_kvroute_region.h"

#include "body.h"
#include "ngx_http_kvroute_end.h"
#include "ngx_http_kvroute_follow.h"
#include "ngx_http_kvroute_health.h"
#include "ngx_http_kvroute_poll.h"
#include "ngx_http_kvroute_queue.h"
#include "ngx_http_kvroute_read.h"
#include "ngx_http_kvroute_server.h"
#include "ngx_http_kvroute_table.h"
#include "ngx_http_kvroute_time.h"
#include "ngx_http_kvroute_zone.h"
#include "replicas.h"
#include "shared.h"

enum {
	HOLD_BYTES = 6,     /* about the size of a block held by a worker */
	BYTES_PER_TOKEN = 4,
	WATCH_MS = 1000,
	WATCH_SOON_MS = 10, /* if there is more to do */
	LEAVE_TRIES = 100,  /* a millisecond each */
	PREPARE_TRIES = 100 /* ten each */
};

/* ------------------------------------------------------------ existing --- */

static uint64_t
fleet_capacity(struct kvr *k)
{
	struct kvr_worker facts;
	uint64_t id = 0, sum = 0;

	facts.size = sizeof(facts);
	while (kvr_worker_next(k, &id) == KVR_OK && id != 0) {
		if (kvr_worker_get(k, id, &facts) != KVR_OK ||
		    facts.capacity_tokens == 0)
			return 0;
		sum += facts.capacity_tokens;
	}
	return sum;
}

/* Logs blocks on record, capacity, and capacity relative to the fleet. */
static void
region_announce(ngx_http_kvroute_srv_conf_t *up, struct kvr *k, ngx_log_t *log)
{
	uint64_t room, tokens, fleet = fleet_capacity(k);
	struct kvr_stats s;
	u_char text[64], *end = text;

	s.size = sizeof(s);
	if (kvr_stats_get(k, &s) != KVR_OK)
		return;
	room = s.cells * 64 / HOLD_BYTES;
	tokens = room * up->options.block_size / BYTES_PER_TOKEN;
	if (fleet > 0)
		end = ngx_snprintf(text, sizeof(text), "%.1f times the "
		    "capacity of the fleet", (double)tokens / (double)fleet);
	else
		end = ngx_snprintf(text, sizeof(text), "the capacity of the "
		    "fleet is not known");
	ngx_log_error(NGX_LOG_NOTICE, log, 0, "kvroute of upstream \"%V\": "
	    "%uL workers, %uL blocks on record, room for about %uL blocks "
	    "or %uL tokens, %*s; bodies are read by %s", &up->upstream->host,
	    s.workers, s.held_blocks, room, tokens, (size_t)(end - text), text,
	    body_reader());
}

/* ------------------------------------------------------- start and stop --- */

static ngx_http_kvroute_main_conf_t *
main_of(ngx_cycle_t *cycle)
{
	return ngx_http_cycle_get_module_main_conf(cycle,
	    ngx_http_upstream_kvroute_module);
}

/*
 * The master must not sleep behind a stopped process that holds the lock: it
 * would start no nginx workers and handle no signals.
 */
static int
region_wait(struct kvr *k)
{
	struct kvr_stats s = { .size = sizeof(s) };
	ngx_uint_t tries = PREPARE_TRIES;
	int error;

	(void)kvr_nowait_set(k, 1);
	while ((error = kvr_stats_get(k, &s)) == KVR_EBUSY && tries-- > 0)
		ngx_msleep(10);
	(void)kvr_nowait_set(k, 0);
	return error;
}

/* Writes the configured facts to the region. */
static void
region_sync(ngx_http_kvroute_srv_conf_t *up, struct kvr *k, ngx_log_t *log)
{
	int error = kvr_policy_set(k, &up->policy);

	if (error != KVR_OK)
		(void)ngx_http_kvroute_complain(log, up, "policy", error);
	members_sync(&up->fleet, &up->follow.members, k, log);
	ngx_http_kvroute_servers_check(up, log);
}

static void
region_prepare(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	struct kvr *k;
	int error = ngx_http_kvroute_region_open(up, true, &k);

	if (error == KVR_OK && (error = region_wait(k)) != KVR_OK) {
		up->owners.behind = true;
		kvr_free(k);
	}
	if (error != KVR_OK) {
		(void)ngx_http_kvroute_complain(log, up, "region", error);
		return;
	}
	if (!ngx_http_kvroute_peers_list(up, log))
		up->owners.behind = true;
	else
		region_sync(up, k, log);
	region_announce(up, k, log);
	ngx_http_kvroute_peers_free(up);
	kvr_free(k);
}

/*
 * An error here would end the master, also at a reload, so none is returned:
 * an upstream without its region routes without predictions.
 */
ngx_int_t
ngx_http_kvroute_regions_prepare(ngx_cycle_t *cycle)
{
	ngx_http_kvroute_main_conf_t *main = main_of(cycle);
	ngx_http_kvroute_srv_conf_t **ups;
	ngx_uint_t i;

	if (main == NULL || ngx_test_config)
		return NGX_OK;
	ups = main->upstreams.elts;
	for (i = 0; i < main->upstreams.nelts; i++) {
		ngx_http_kvroute_health_prepare(ups[i], cycle->log);
		waits_prepare(&ups[i]->waits.line);
		region_prepare(ups[i], cycle->log);
	}
	return NGX_OK;
}

/* ------------------------------------------------------------ the timer --- */

static int
region_attach(ngx_http_kvroute_srv_conf_t *up)
{
	struct kvr *k;
	int error = ngx_http_kvroute_region_open(up, false, &k);

	if (error != KVR_OK)
		return error;
	(void)kvr_nowait_set(k, 1);
	up->fleet.kvr = up->writes.k = k;
	up->writes.shared = up->fleet.shared;
	up->writes.spares = up->spares;
	replicas_begin(&up->fleet, &up->owners.seen, kvr_clock_now());
	return KVR_OK;
}

static bool
join_again(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	if (region_attach(up) != KVR_OK)
		return false;
	ngx_log_error(NGX_LOG_NOTICE, log, 0, "kvroute of upstream \"%V\": "
	    "the region is there now", &up->upstream->host);
	ngx_http_kvroute_polls_begin(up, up->cycle);
	return true;
}

/* Ends the requests of processes that have died; any process may. */
static void
owners_watch(ngx_event_t *event)
{
	ngx_http_kvroute_srv_conf_t *up = event->data;
	uint64_t owner, from = 0;
	bool done;
	size_t n;

	if (up->fleet.kvr == NULL && !join_again(up, event->log)) {
		ngx_add_timer(event, WATCH_MS);
		return;
	}
	ngx_http_kvroute_peers_follow(up, event->log);
	/* The work that the master could not do, once the lock is free. */
	if (up->owners.behind &&
	    kvr_owner_list(up->fleet.kvr, &from, &owner, 1, &n) == KVR_OK) {
		up->owners.behind = false;
		region_sync(up, up->fleet.kvr, event->log);
	}
	ngx_http_kvroute_peers_join(up, event->log);
	ngx_http_kvroute_peers_leave(up, event->log);
	/*
	 * Orders of another nginx on the same file change no epoch here: the
	 * next request looks again.
	 */
	if (up->path.len > 0)
		up->fleet.epoch = up->fleet.shared->epoch - 1;
	ngx_http_kvroute_stale_book(up);
	done = replicas_watch(&up->fleet, &up->owners.seen, kvr_clock_now(),
	    event->log);
	ngx_add_timer(event, done ? WATCH_MS : WATCH_SOON_MS);
}

static void
timer_make(ngx_http_kvroute_srv_conf_t *up, ngx_event_t *timer,
    ngx_event_handler_pt handler, ngx_log_t *log)
{
	timer->handler = handler;
	timer->data = up;
	timer->log = log;
	/* A pending timer does not keep an exiting process alive. */
	timer->cancelable = 1;
}

/* ------------------------------------------------- of each nginx worker --- */

/*
 * Without its region an upstream routes without predictions. The master has
 * opened it just before, so this is hardly ever so, and it is tried again.
 */
static ngx_int_t
region_join(ngx_http_kvroute_srv_conf_t *up, ngx_cycle_t *cycle)
{
	int error;

	up->fleet.self = (uint64_t)ngx_pid;
	up->spares = ngx_pcalloc(cycle->pool, sizeof(*up->spares));
	up->fronts = ngx_pcalloc(cycle->pool, sizeof(*up->fronts));
	if (up->spares == NULL ||
	    !ngx_http_kvroute_peers_list(up, cycle->log))
		return NGX_ERROR;
	timer_make(up, &up->late, ngx_http_kvroute_late_run, cycle->log);
	timer_make(up, &up->owners.watch, owners_watch, cycle->log);
	ngx_http_kvroute_queue_begin(up, cycle->log);
	error = region_attach(up);
	if (error != KVR_OK)
		(void)ngx_http_kvroute_complain(cycle->log, up, "region",
		    error);
	if (error == KVR_OK)
		ngx_http_kvroute_polls_begin(up, cycle);
	owners_watch(&up->owners.watch);
	return NGX_OK;
}

ngx_int_t
ngx_http_kvroute_regions_attach(ngx_cycle_t *cycle)
{
	ngx_http_kvroute_main_conf_t *main = main_of(cycle);
	ngx_http_kvroute_srv_conf_t **ups;
	ngx_uint_t i;

	ngx_http_kvroute_read_begin(cycle);
	ngx_http_kvroute_time_begin(cycle);
	if (main == NULL)
		return NGX_OK;
	ups = main->upstreams.elts;
	for (i = 0; i < main->upstreams.nelts; i++) {
		if (region_join(ups[i], cycle) != NGX_OK)
			return NGX_ERROR;
	}
	return NGX_OK;
}

/*
 * Makes the writes that wait for the lock; then ends requests that are cut off
 * when nginx must terminate at once.
 */
static void
region_leave(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_uint_t tries = LEAVE_TRIES;

	ngx_http_kvroute_polls_leave(up);
	for (; tries > 0 && !writes_run(&up->writes, kvr_clock_now());
	    tries--)
		ngx_msleep(1);
	for (; tries > 0 && !replicas_clear(&up->fleet, &up->owners.seen,
	    kvr_clock_now()); tries--)
		ngx_msleep(1);
	spares_free(up->spares);
	kvr_free(up->fleet.kvr);
	up->fleet.kvr = NULL;
}

void
ngx_http_kvroute_regions_leave(ngx_cycle_t *cycle)
{
	ngx_http_kvroute_main_conf_t *main = main_of(cycle);
	ngx_http_kvroute_srv_conf_t **ups;
	ngx_uint_t i;

	if (main == NULL)
		return;
	ups = main->upstreams.elts;
	for (i = 0; i < main->upstreams.nelts; i++) {
		places_leave(&ups[i]->waits.line.places);
		if (ups[i]->fleet.kvr != NULL)
			region_leave(ups[i]);
	}
}
