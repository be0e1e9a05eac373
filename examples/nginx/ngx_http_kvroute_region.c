/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_region.c - nginx starts, reloads and ends.
 *
 * The master brings the region up to date and says in a line what there is.
 * Every nginx worker attaches for itself. The number of its process slot is
 * the owner of its leases: no two live nginx workers share one, so whoever
 * starts in a slot ends what a dead predecessor left there.
 */
#include "ngx_http_kvroute.h"

enum {
	HOLD_BYTES = 6,     /* about what a block held by a worker takes */
	BYTES_PER_TOKEN = 4
};

/* -------------------------------------------------------- what there is --- */

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

/* One line: what is on record, what there is room for, is that enough? */
static void
announce(ngx_http_kvroute_srv_conf_t *up, struct kvr *k, ngx_log_t *log)
{
	uint64_t room, tokens, fleet = fleet_capacity(k);
	struct kvr_stats s;
	u_char text[64], *end = text;

	s.size = sizeof(s);
	if (kvr_stats(k, &s) != KVR_OK)
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
	    "or %uL tokens, %*s", &up->upstream->host, s.workers,
	    s.held_blocks, room, tokens, (size_t)(end - text), text);
}

/* ------------------------------------------------------- start and stop --- */

static ngx_http_kvroute_main_conf_t *
main_of(ngx_cycle_t *cycle)
{
	return ngx_http_cycle_get_module_main_conf(cycle,
	    ngx_http_upstream_kvroute_module);
}

static void
region_prepare(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	struct kvr *k;
	int error = ngx_http_kvroute_region_open(up, true, &k);

	if (error != KVR_OK) {
		(void)ngx_http_kvroute_complain(log, up, "region", error);
		return;
	}
	error = kvr_set_policy(k, &up->policy);
	if (error != KVR_OK)
		(void)ngx_http_kvroute_complain(log, up, "policy", error);
	ngx_http_kvroute_workers_sync(up, k, log);
	announce(up, k, log);
	kvr_free(k);
}

/*
 * A failure here ends the master, also at a reload, so there is none: without
 * its region an upstream has no opinions.
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
	for (i = 0; i < main->upstreams.nelts; i++)
		region_prepare(ups[i], cycle->log);
	return NGX_OK;
}

static bool
scratch_make(ngx_http_kvroute_srv_conf_t *up, ngx_cycle_t *cycle)
{
	up->n_peers = ngx_http_kvroute_peers_count(up);
	up->known = ngx_pcalloc(cycle->pool,
	    (up->n_peers + 1) * sizeof(*up->known));
	up->allowed = ngx_pcalloc(cycle->pool,
	    (up->n_peers + 1) * sizeof(*up->allowed));
	up->body = body_new();
	return up->known != NULL && up->allowed != NULL && up->body != NULL;
}

/* Ends what a dead predecessor left; false: not yet, the lock is taken. */
bool
ngx_http_kvroute_reap(ngx_http_kvroute_srv_conf_t *up)
{
	uint32_t ended = 0;
	int error = kvr_reap_owner(up->kvr, up->owner, kvr_clock_now(),
	    &ended);

	if (error == KVR_EBUSY)
		return false;
	up->reaped = true;
	if (ended > 0)
		ngx_log_error(NGX_LOG_NOTICE, up->timer.log, 0, "kvroute of "
		    "upstream \"%V\": ended %uD requests of a process that "
		    "died", &up->upstream->host, ended);
	return true;
}

static void
region_join(ngx_http_kvroute_srv_conf_t *up, ngx_cycle_t *cycle)
{
	int error = ngx_http_kvroute_region_open(up, false, &up->kvr);

	if (error != KVR_OK) {
		up->kvr = NULL;
		(void)ngx_http_kvroute_complain(cycle->log, up, "region",
		    error);
		return;
	}
	error = kvr_prompt_new(up->kvr, &up->prompt);
	if (error != KVR_OK || !scratch_make(up, cycle)) {
		kvr_free(up->kvr);
		up->kvr = NULL;
		(void)ngx_http_kvroute_complain(cycle->log, up, "memory",
		    KVR_ENOMEM);
		return;
	}
	up->timer.handler = ngx_http_kvroute_late_run;
	up->timer.data = up;
	up->timer.log = cycle->log;
	/* A timer that is set does not keep a leaving worker alive. */
	up->timer.cancelable = 1;
	up->owner = (uint64_t)ngx_process_slot + 1;
	(void)kvr_set_nowait(up->kvr, 1);
	ngx_http_kvroute_late_run(&up->timer);
}

ngx_int_t
ngx_http_kvroute_regions_attach(ngx_cycle_t *cycle)
{
	ngx_http_kvroute_main_conf_t *main = main_of(cycle);
	ngx_http_kvroute_srv_conf_t **ups;
	ngx_uint_t i;

	if (main == NULL)
		return NGX_OK;
	ups = main->upstreams.elts;
	for (i = 0; i < main->upstreams.nelts; i++)
		region_join(ups[i], cycle);
	return NGX_OK;
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
		if (ups[i]->kvr == NULL)
			continue;
		ngx_http_kvroute_late_run(&ups[i]->timer);
		kvr_prompt_free(ups[i]->prompt);
		body_free(ups[i]->body);
		kvr_free(ups[i]->kvr);
		ups[i]->kvr = NULL;
	}
}
