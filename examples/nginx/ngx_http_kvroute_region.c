/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_region.c - one region for each upstream, and its workers.
 *
 *     zone of nginx                        or   zone            file
 *     [slab | counters | ... region ... ]       [slab|counters] [region]
 *
 * The zone is made by the master before the first nginx worker starts and
 * inherited by all, so it survives a reload as long as its name and size stay.
 * What was formatted cannot be formatted anew under nginx workers of the old
 * configuration, that still use it: a block size, say, can be changed only
 * together with the zone's name. Nothing in a zone points to code.
 *
 * Workers of the region are the upstream's peers by name, "address:port". The
 * master makes them equal after each start and reload; what is on record for
 * those that stay, stays, and so does a state set at run time.
 *
 * Every nginx worker attaches for itself. The number of its process slot is
 * the owner of its leases: no two live nginx workers share one, so whoever
 * starts in a slot ends what a dead predecessor left there.
 */
#include "ngx_http_kvroute.h"

#include <sys/stat.h>

enum {
	COUNTERS_SIZE = 16, /* pages of a zone that has no region */
	HOLD_BYTES = 6,     /* about what a block held by a worker takes */
	BYTES_PER_TOKEN = 4
};

/* ----------------------------------------------------------------- peers --- */

typedef struct {
	ngx_http_upstream_rr_peers_t *peers;
	ngx_http_upstream_rr_peer_t *peer;
} walk_t;

static void
walk_settle(walk_t *w)
{
	while (w->peer == NULL && w->peers != NULL) {
		w->peers = w->peers->next;
		w->peer = w->peers == NULL ? NULL : w->peers->peer;
	}
}

/* All peers of an upstream, backup ones behind the others. */
static ngx_http_upstream_rr_peer_t *
walk_begin(ngx_http_kvroute_srv_conf_t *up, walk_t *w)
{
	w->peers = up->upstream->peer.data;
	w->peer = w->peers == NULL ? NULL : w->peers->peer;
	walk_settle(w);
	return w->peer;
}

static ngx_http_upstream_rr_peer_t *
walk_next(walk_t *w)
{
	w->peer = w->peer->next;
	walk_settle(w);
	return w->peer;
}

static bool
same(const ngx_str_t *a, const void *name, size_t len)
{
	return a->len == len && ngx_memcmp(a->data, name, len) == 0;
}

static ngx_http_kvroute_server_t *
server_find(ngx_http_kvroute_srv_conf_t *up, const ngx_str_t *name)
{
	ngx_http_kvroute_server_t *servers;
	ngx_uint_t i;

	if (up->servers == NULL)
		return NULL;
	servers = up->servers->elts;
	for (i = 0; i < up->servers->nelts; i++) {
		if (same(name, servers[i].name.data, servers[i].name.len))
			return &servers[i];
	}
	return NULL;
}

/* ------------------------------------------------------------------ zone --- */

static ngx_int_t
complain(ngx_log_t *log, ngx_http_kvroute_srv_conf_t *up, const char *what,
    int error)
{
	ngx_log_error(NGX_LOG_EMERG, log, error == KVR_ESYSTEM ? ngx_errno : 0,
	    "kvroute of upstream \"%V\": %s: %s", &up->upstream->host, what,
	    kvr_strerror(error));
	return NGX_ERROR;
}

/* The boot that CLOCK_MONOTONIC counts from; zeros if there is no telling. */
static void
boot_read(unsigned char id[KVR_BOOT_ID_BYTES])
{
	u_char text[64];
	ngx_fd_t fd;
	ssize_t n;
	size_t i, digits = 0;

	ngx_memzero(id, KVR_BOOT_ID_BYTES);
	fd = ngx_open_file((u_char *)"/proc/sys/kernel/random/boot_id",
	    NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
	if (fd == NGX_INVALID_FILE)
		return;
	n = ngx_read_fd(fd, text, sizeof(text));
	(void)ngx_close_file(fd);
	for (i = 0; n > 0 && i < (size_t)n &&
	    digits < 2 * KVR_BOOT_ID_BYTES; i++) {
		ngx_int_t d = ngx_hextoi(&text[i], 1);

		if (d == NGX_ERROR)
			continue;
		id[digits / 2] = (u_char)(id[digits / 2] << 4 | d);
		digits++;
	}
}

/* Made by root, used by nginx workers that are not. */
static ngx_int_t
file_hand_over(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	ngx_core_conf_t *core = (ngx_core_conf_t *)ngx_get_conf(
	    up->cycle->conf_ctx, ngx_core_module);

	if (geteuid() != 0 || core->user == (ngx_uid_t)NGX_CONF_UNSET_UINT)
		return NGX_OK;
	if (chown((const char *)up->path.data, core->user, core->group) == 0)
		return NGX_OK;
	ngx_log_error(NGX_LOG_EMERG, log, ngx_errno, "chown(\"%V\") failed",
	    &up->path);
	return NGX_ERROR;
}

static int
file_open(ngx_http_kvroute_srv_conf_t *up, uint32_t flags, struct kvr **k)
{
	struct kvr_options options = up->options;

	boot_read(options.boot_id);
	return kvr_open((const char *)up->path.data, up->path.len, flags,
	    &options, k);
}

/*
 * root may open what belongs to the user of nginx workers: it gave it to him.
 */
static int
file_make(ngx_http_kvroute_srv_conf_t *up, struct kvr **k)
{
	return file_open(up, KVR_OPEN_CREATE | KVR_OPEN_ATTACH |
	    (geteuid() == 0 ? KVR_OPEN_TRUST : 0), k);
}

static ngx_int_t
file_prepare(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	struct kvr *k;
	int error;

	if (ngx_test_config)
		return NGX_OK;
	error = file_make(up, &k);
	if (error != KVR_OK)
		return complain(log, up, (char *)up->path.data, error);
	kvr_free(k);
	return file_hand_over(up, log);
}

/* What is left of the zone becomes the region. */
static ngx_int_t
memory_prepare(ngx_http_kvroute_srv_conf_t *up, ngx_slab_pool_t *slab,
    ngx_log_t *log)
{
	struct kvr *k;
	int error;

	up->bytes = slab->pfree * ngx_pagesize;
	up->memory = up->bytes == 0 ? NULL : ngx_slab_alloc(slab, up->bytes);
	if (up->memory == NULL)
		return complain(log, up, "zone", KVR_ETOOSMALL);
	error = kvr_new_at(&up->options, up->memory, up->bytes, &k);
	if (error != KVR_OK)
		return complain(log, up, "zone", error);
	kvr_free(k);
	return NGX_OK;
}

static bool
alike(const ngx_http_kvroute_srv_conf_t *a,
    const ngx_http_kvroute_srv_conf_t *b)
{
	return a->options.block_size == b->options.block_size &&
	    a->options.ttl_ns == b->options.ttl_ns &&
	    a->options.max_workers == b->options.max_workers &&
	    a->path.len == b->path.len &&
	    ngx_memcmp(a->path.data, b->path.data, a->path.len) == 0;
}

static ngx_int_t
zone_keep(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_srv_conf_t *of,
    ngx_log_t *log)
{
	if (!alike(up, of)) {
		ngx_log_error(NGX_LOG_EMERG, log, 0, "kvroute zone \"%V\" is "
		    "in use with another block, ttl, workers or path: give it "
		    "another name", &up->zone_name);
		return NGX_ERROR;
	}
	up->shared = of->shared;
	up->memory = of->memory;
	up->bytes = of->bytes;
	return NGX_OK;
}

static ngx_int_t
zone_init(ngx_shm_zone_t *zone, void *old)
{
	ngx_slab_pool_t *slab = (ngx_slab_pool_t *)zone->shm.addr;
	ngx_http_kvroute_srv_conf_t *up = zone->data;
	ngx_log_t *log = zone->shm.log;

	if (old != NULL) {
		if (zone_keep(up, old, log) != NGX_OK)
			return NGX_ERROR;
		return up->path.len > 0 ? file_prepare(up, log) : NGX_OK;
	}
	up->shared = ngx_slab_calloc(slab, sizeof(*up->shared));
	if (up->shared == NULL)
		return complain(log, up, "zone", KVR_ETOOSMALL);
	if (up->path.len > 0)
		return file_prepare(up, log);
	return memory_prepare(up, slab, log);
}

/* A region file needs a zone too, for what nginx workers count. */
static bool
zone_name_make(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up)
{
	ngx_str_t *name = &up->zone_name;

	if (name->len > 0)
		return true;
	name->len = sizeof("kvroute ") - 1 + up->upstream->host.len;
	name->data = ngx_pnalloc(cf->pool, name->len);
	if (name->data == NULL)
		return false;
	ngx_sprintf(name->data, "kvroute %V", &up->upstream->host);
	up->zone_size = COUNTERS_SIZE * ngx_pagesize;
	return true;
}

char *
ngx_http_kvroute_zone_add(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_srv_conf_t *other;

	up->cycle = cf->cycle;
	if (!zone_name_make(cf, up))
		return NGX_CONF_ERROR;
	if (up->zone_size < 8 * ngx_pagesize)
		return "has a zone that is too small";
	up->zone = ngx_shared_memory_add(cf, &up->zone_name, up->zone_size,
	    &ngx_http_upstream_kvroute_module);
	if (up->zone == NULL)
		return NGX_CONF_ERROR;
	if (up->zone->data != NULL) {
		other = up->zone->data;
		ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" is the "
		    "one of upstream \"%V\" already", &up->zone_name,
		    &other->upstream->host);
		return NGX_CONF_ERROR;
	}
	up->zone->init = zone_init;
	up->zone->data = up;
	return NGX_CONF_OK;
}

/* --------------------------------------------------------------- workers --- */

static void
facts_make(ngx_http_kvroute_srv_conf_t *up, const ngx_str_t *name,
    ngx_uint_t weight, struct kvr_worker *facts)
{
	ngx_http_kvroute_server_t *server = server_find(up, name);

	if (server != NULL) {
		*facts = server->facts;
		server->used = true;
	} else {
		(void)kvr_worker_init(facts, sizeof(*facts));
	}
	facts->weight = weight > 0 ? (double)weight : 1.0;
	facts->retain = up->retain;
}

/* There, with the facts of the configuration; a state set by hand stays. */
static int
worker_ensure(ngx_http_kvroute_srv_conf_t *up, struct kvr *k,
    const ngx_str_t *name, ngx_uint_t weight, uint64_t *id)
{
	const char *text = (const char *)name->data;
	struct kvr_worker facts, now;
	int error;

	facts_make(up, name, weight, &facts);
	error = kvr_worker_find(k, text, name->len, 0, id);
	if (error != KVR_OK) {
		error = kvr_worker_add(k, text, name->len, &facts, id);
		/* Another process was quicker. */
		if (error == KVR_EEXIST)
			error = kvr_worker_find(k, text, name->len, 0, id);
		return error;
	}
	now.size = sizeof(now);
	error = kvr_worker_get(k, *id, &now);
	if (error != KVR_OK)
		return error;
	facts.state = now.state;
	return kvr_worker_set(k, *id, &facts);
}

static bool
is_peer(ngx_http_kvroute_srv_conf_t *up, const char *name, size_t len)
{
	ngx_http_upstream_rr_peer_t *peer;
	walk_t w;

	for (peer = walk_begin(up, &w); peer != NULL; peer = walk_next(&w)) {
		if (same(&peer->name, name, len))
			return true;
	}
	return false;
}

static void
workers_drop(ngx_http_kvroute_srv_conf_t *up, struct kvr *k, ngx_log_t *log)
{
	char name[KVR_NAME_MAX];
	uint64_t id = 0;
	size_t len;

	while (kvr_worker_next(k, &id) == KVR_OK && id != 0) {
		if (kvr_worker_name(k, id, name, sizeof(name), &len) !=
		    KVR_OK || is_peer(up, name, len))
			continue;
		ngx_log_error(NGX_LOG_NOTICE, log, 0, "kvroute of upstream "
		    "\"%V\": worker %*s has gone", &up->upstream->host, len,
		    name);
		(void)kvr_worker_remove(k, id);
	}
}

static void
workers_sync(ngx_http_kvroute_srv_conf_t *up, struct kvr *k, ngx_log_t *log)
{
	ngx_http_upstream_rr_peer_t *peer;
	uint64_t id;
	walk_t w;
	int error;

	for (peer = walk_begin(up, &w); peer != NULL; peer = walk_next(&w)) {
		error = worker_ensure(up, k, &peer->name,
		    (ngx_uint_t)peer->weight, &id);
		if (error != KVR_OK)
			ngx_log_error(NGX_LOG_ERR, log, 0, "kvroute of "
			    "upstream \"%V\": worker \"%V\": %s",
			    &up->upstream->host, &peer->name,
			    kvr_strerror(error));
	}
	workers_drop(up, k, log);
	(void)ngx_atomic_fetch_add(&up->shared->epoch, 1);
}

static void
servers_check(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	ngx_http_kvroute_server_t *servers;
	ngx_uint_t i;

	if (up->servers == NULL)
		return;
	servers = up->servers->elts;
	for (i = 0; i < up->servers->nelts; i++) {
		if (!servers[i].used)
			ngx_log_error(NGX_LOG_WARN, log, 0, "kvroute_server "
			    "\"%V\" in upstream \"%V\" is no server of it",
			    &servers[i].name, &up->upstream->host);
	}
}

/* --------------------------------------------------------- what there is --- */

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

/* -------------------------------------------------------- start and stop --- */

static int
region_attach(ngx_http_kvroute_srv_conf_t *up, bool master, struct kvr **k)
{
	if (up->path.len == 0)
		return kvr_attach_at(NULL, up->memory, up->bytes, k);
	return master ? file_make(up, k) : file_open(up, KVR_OPEN_ATTACH, k);
}

static void
region_prepare(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	struct kvr *k;
	int error = region_attach(up, true, &k);

	if (error != KVR_OK) {
		(void)complain(log, up, "region", error);
		return;
	}
	error = kvr_set_policy(k, &up->policy);
	if (error != KVR_OK)
		(void)complain(log, up, "policy", error);
	workers_sync(up, k, log);
	servers_check(up, log);
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
	ngx_http_kvroute_main_conf_t *main = ngx_http_cycle_get_module_main_conf(
	    cycle, ngx_http_upstream_kvroute_module);
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
	ngx_http_upstream_rr_peer_t *peer;
	walk_t w;

	up->n_peers = 0;
	for (peer = walk_begin(up, &w); peer != NULL; peer = walk_next(&w))
		up->n_peers++;
	up->known = ngx_pcalloc(cycle->pool,
	    (up->n_peers + 1) * sizeof(*up->known));
	up->allowed = ngx_pcalloc(cycle->pool,
	    (up->n_peers + 1) * sizeof(*up->allowed));
	up->body = body_new();
	return up->known != NULL && up->allowed != NULL && up->body != NULL;
}

static void
owner_take(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	uint32_t ended = 0;

	up->owner = (uint64_t)ngx_process_slot + 1;
	(void)kvr_reap_owner(up->kvr, up->owner, kvr_clock_now(), &ended);
	if (ended > 0)
		ngx_log_error(NGX_LOG_NOTICE, log, 0, "kvroute of upstream "
		    "\"%V\": ended %uD requests of a process that died",
		    &up->upstream->host, ended);
}

static void
region_join(ngx_http_kvroute_srv_conf_t *up, ngx_cycle_t *cycle)
{
	int error = region_attach(up, false, &up->kvr);

	if (error != KVR_OK) {
		up->kvr = NULL;
		(void)complain(cycle->log, up, "region", error);
		return;
	}
	error = kvr_prompt_new(up->kvr, &up->prompt);
	if (error != KVR_OK || !scratch_make(up, cycle)) {
		kvr_free(up->kvr);
		up->kvr = NULL;
		(void)complain(cycle->log, up, "memory", KVR_ENOMEM);
		return;
	}
	up->timer.handler = ngx_http_kvroute_late_run;
	up->timer.data = up;
	up->timer.log = cycle->log;
	/* A timer that is set does not keep a leaving worker alive. */
	up->timer.cancelable = 1;
	owner_take(up, cycle->log);
}

ngx_int_t
ngx_http_kvroute_regions_attach(ngx_cycle_t *cycle)
{
	ngx_http_kvroute_main_conf_t *main = ngx_http_cycle_get_module_main_conf(
	    cycle, ngx_http_upstream_kvroute_module);
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
	ngx_http_kvroute_main_conf_t *main = ngx_http_cycle_get_module_main_conf(
	    cycle, ngx_http_upstream_kvroute_module);
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

/* ---------------------------------------------------- workers, while it runs */

uint64_t
ngx_http_kvroute_worker(ngx_http_kvroute_srv_conf_t *up, ngx_uint_t i,
    ngx_str_t *name)
{
	/* Peers that came after the start have no place there. */
	ngx_http_kvroute_known_t *known = i < up->n_peers ? &up->known[i] : NULL;
	ngx_atomic_uint_t epoch = up->shared->epoch;
	uint64_t id;

	if (up->epoch != epoch) {
		ngx_memzero(up->known, up->n_peers * sizeof(*up->known));
		up->epoch = epoch;
	}
	if (known != NULL && known->id != 0 &&
	    same(name, known->name, known->name_len))
		return known->id;
	if (kvr_worker_find(up->kvr, (const char *)name->data, name->len, 0,
	    &id) != KVR_OK && worker_ensure(up, up->kvr, name, 1, &id) !=
	    KVR_OK)
		return 0;
	if (known != NULL) {
		known->id = id;
		known->name_len = name->len;
		ngx_memcpy(known->name, name->data, name->len);
	}
	return id;
}

uint64_t
ngx_http_kvroute_worker_reset(ngx_http_kvroute_srv_conf_t *up, uint64_t id)
{
	uint64_t now;

	if (kvr_worker_reset(up->kvr, id, &now) != KVR_OK)
		return id;
	(void)ngx_atomic_fetch_add(&up->shared->epoch, 1);
	return now;
}

size_t
ngx_http_kvroute_worker_name(ngx_http_kvroute_ctx_t *ctx, u_char *name)
{
	size_t len;

	if (ctx->up->kvr == NULL || kvr_worker_name(ctx->up->kvr, ctx->worker,
	    (char *)name, KVR_NAME_MAX, &len) != KVR_OK)
		return 0;
	return ngx_min(len, KVR_NAME_MAX);
}
