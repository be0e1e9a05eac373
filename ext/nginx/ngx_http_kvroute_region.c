/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_region.c - nginx starts, reloads and ends.
 *
 * The master updates the region and logs one line about it. Each nginx worker
 * attaches on its own; its process owns its leases. Once a second each worker
 * checks whether an owner has died and ends the leases of dead owners. Leases
 * that kvroute-sync has brought are dead when it is silent.
 */
#include "ngx_http_kvroute_module.h"

#include "blame.h"
#include "body.h"
#include "health.h"
#include "judge.h"
#include "ngx_http_kvroute_end.h"
#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_follow.h"
#include "ngx_http_kvroute_peers.h"
#include "ngx_http_kvroute_poll.h"
#include "ngx_http_kvroute_queue.h"
#include "ngx_http_kvroute_read.h"
#include "ngx_http_kvroute_server.h"
#include "ngx_http_kvroute_time.h"
#include "region_file.h"
#include "replicas.h"
#include "shared.h"

/* ----------------------------------------------------------------- zone --- */

/*
 * Where the region of an upstream is stored.
 *
 *     zone of nginx                        or   zone            file
 *     [slab | counters | ... region ... ]       [slab|counters] [region]
 *
 * The master makes the zone before the first nginx worker starts; all inherit
 * it, so it survives a reload while its name and size stay the same. A region
 * cannot be formatted again while nginx workers of the old configuration use
 * it: a new block size, for instance, needs a new zone name. A zone holds no
 * pointers to code.
 *
 * The master also makes the file, see region_file.h.
 */

enum { COUNTERS_PAGES = 16 }; /* of a zone that has no region */

/* Logs the error; always NGX_ERROR. */
static ngx_int_t
complain(ngx_log_t *log, kvroute_srv_conf_t *up, const char *what, int error)
{
	ngx_log_error(NGX_LOG_EMERG, log, error == KVR_ESYSTEM ? ngx_errno : 0,
	    "kvroute of upstream \"%V\": %s: %s", &up->upstream->host, what,
	    kvr_strerror(error));
	return NGX_ERROR;
}

static struct region_file
file_of(const kvroute_srv_conf_t *up)
{
	ngx_core_conf_t *core = (ngx_core_conf_t *)ngx_get_conf(
	    up->cycle->conf_ctx, ngx_core_module);

	return (struct region_file){ .path = (const char *)up->path.data,
	    .length = up->path.len, .options = &up->options,
	    .user_name = core->user == (ngx_uid_t)NGX_CONF_UNSET_UINT ? NULL :
	    core->username, .user = core->user, .group = core->group };
}

static ngx_int_t
file_complain(kvroute_srv_conf_t *up, ngx_log_t *log,
    const struct region_fault *why)
{
	const ngx_err_t error = why->error == KVR_ESYSTEM ? why->system : 0;

	if (why->call == REGION_CHOWN) {
		ngx_log_error(NGX_LOG_EMERG, log, error,
		    "chown(\"%V\") failed", &up->path);
		return NGX_ERROR;
	}
	if (why->call == REGION_ROOT)
		ngx_log_error(NGX_LOG_EMERG, log, error,
		    "the master process cannot become root again");
	ngx_log_error(NGX_LOG_EMERG, log, error,
	    "kvroute of upstream \"%V\": %V%s: %s%s%s", &up->upstream->host,
	    &up->path, why->theirs ? ", for the worker processes" : "",
	    kvr_strerror(why->error), *why->option == '\0' ? "" :
	    " Another is ", why->option);
	return NGX_ERROR;
}

/* nginx -t makes and changes no file. */
static ngx_int_t
file_prepare(kvroute_srv_conf_t *up, ngx_log_t *log)
{
	const struct region_file file = file_of(up);
	struct region_fault why;

	return (ngx_test_config ? region_file_test(&file, &why) :
	    region_file_prepare(&file, &why)) ? NGX_OK :
	    file_complain(up, log, &why);
}

/* The rest of the zone becomes the region. */
static ngx_int_t
memory_prepare(kvroute_srv_conf_t *up, ngx_slab_pool_t *slab, ngx_log_t *log)
{
	struct kvr *k;
	int error;

	up->bytes = slab->pfree * ngx_pagesize;
	up->memory = up->bytes == 0 ? NULL : ngx_slab_alloc(slab, up->bytes);
	if (up->memory == NULL)
		return complain(log, up, "zone",
		    KVR_ETOOSMALL);
	error = kvr_new_at(&up->options, up->memory, up->bytes, &k);
	if (error != KVR_OK)
		return complain(log, up, "zone", error);
	kvr_free(k);
	return NGX_OK;
}

static bool
zones_alike(const kvroute_srv_conf_t *a, const kvroute_srv_conf_t *b)
{
	return a->options.block_size == b->options.block_size &&
	    (a->options.ttl_ns == b->options.ttl_ns || a->path.len > 0) &&
	    a->options.max_workers == b->options.max_workers &&
	    a->options.tenants == b->options.tenants &&
	    /* By default it follows from the size, which a file keeps. */
	    ((!a->sized && !b->sized) ||
	    a->options.affinity_entries == b->options.affinity_entries) &&
	    a->options.journal_bytes == b->options.journal_bytes &&
	    a->options.secret_bytes == b->options.secret_bytes &&
	    ngx_memcmp(a->options.secret, b->options.secret,
	    a->options.secret_bytes) == 0;
}

static size_t
health_bytes(const kvroute_srv_conf_t *up)
{
	return up->options.max_workers * sizeof(*up->fleet.health) +
	    sizeof(*up->fleet.blame);
}

/* Only where it is needed, so that a zone without it keeps its room. */
static bool
health_make(kvroute_srv_conf_t *up, ngx_slab_pool_t *slab)
{
	if (up->fleet.health == NULL && judge_on(&up->fleet)) {
		slab->log_nomem = 0;
		up->fleet.health = ngx_slab_calloc(slab, health_bytes(up));
		slab->log_nomem = 1;
	}
	if (up->fleet.health != NULL)
		up->fleet.blame = (struct blame *)(up->fleet.health +
		    up->options.max_workers);
	return up->fleet.health != NULL || !judge_on(&up->fleet);
}

/*
 * An addition stays with the zone, so the configuration before has it, too: if
 * this one fails after all, the next reload finds it there.
 */
static ngx_int_t
zone_keep(kvroute_srv_conf_t *up, kvroute_srv_conf_t *of, ngx_log_t *log)
{
	if (!kvroute_same(&up->path, &of->path)) {
		ngx_log_error(NGX_LOG_EMERG, log, 0, "kvroute of upstream "
		    "\"%V\" cannot change its path in a reload: restart",
		    &up->upstream->host);
		return NGX_ERROR;
	}
	if (!zones_alike(up, of)) {
		ngx_log_error(NGX_LOG_EMERG, log, 0, "kvroute zone \"%V\" is "
		    "in use with another block, ttl, workers, tenants, "
		    "journal, affinity or secret: give it another name",
		    &up->zone_name);
		return NGX_ERROR;
	}
	up->fleet.shared = of->fleet.shared;
	up->fleet.polled = of->fleet.polled;
	up->fleet.health = of->fleet.health;
	up->memory = of->memory;
	up->bytes = of->bytes;
	if (health_make(up, (ngx_slab_pool_t *)up->zone->shm.addr)) {
		of->fleet.health = up->fleet.health;
		return NGX_OK;
	}
	ngx_log_error(NGX_LOG_EMERG, log, 0, "kvroute zone \"%V\" is in use "
	    "without \"gray=\" and \"slow_start=\": give it another name",
	    &up->zone_name);
	return NGX_ERROR;
}

static ngx_int_t
zone_init(ngx_shm_zone_t *zone, void *old)
{
	ngx_slab_pool_t *slab = (ngx_slab_pool_t *)zone->shm.addr;
	kvroute_srv_conf_t *up = zone->data;
	ngx_log_t *log = zone->shm.log;

	if (old != NULL) {
		if (zone_keep(up, old, log) != NGX_OK)
			return NGX_ERROR;
		return up->path.len > 0 ? file_prepare(up, log) : NGX_OK;
	}
	up->fleet.shared = ngx_slab_calloc(slab, sizeof(*up->fleet.shared));
	up->fleet.polled = ngx_slab_calloc(slab, up->options.max_workers *
	    sizeof(*up->fleet.polled));
	if (up->fleet.shared == NULL || up->fleet.polled == NULL ||
	    !health_make(up, slab))
		return complain(log, up, "zone",
		    KVR_ETOOSMALL);
	if (up->path.len > 0)
		return file_prepare(up, log);
	return memory_prepare(up, slab, log);
}

/* A region file needs a zone too, for the counters. */
static bool
zone_name_make(ngx_conf_t *cf, kvroute_srv_conf_t *up)
{
	ngx_str_t *name = &up->zone_name;

	if (name->len > 0)
		return true;
	name->len = sizeof("kvroute ") - 1 + up->upstream->host.len;
	name->data = ngx_pnalloc(cf->pool, name->len);
	if (name->data == NULL)
		return false;
	ngx_sprintf(name->data, "kvroute %V", &up->upstream->host);
	up->zone_size = COUNTERS_PAGES * ngx_pagesize +
	    up->options.max_workers * sizeof(*up->fleet.polled) +
	    health_bytes(up);
	return true;
}

/* Each upstream would remove the other's workers. */
static bool
path_taken(ngx_conf_t *cf, kvroute_srv_conf_t *up)
{
	kvroute_main_conf_t *main = kvroute_main(cf);
	kvroute_srv_conf_t **ups = main->upstreams.elts;
	ngx_uint_t i;

	for (i = 0; i < main->upstreams.nelts; i++) {
		if (ups[i] != up && up->path.len > 0 && kvroute_same(
		    &ups[i]->path, &up->path))
			return true;
	}
	return false;
}

char *
kvroute_zone_add(ngx_conf_t *cf, kvroute_srv_conf_t *up)
{
	kvroute_srv_conf_t *other;

	if (path_taken(cf, up))
		return "has the path of another upstream";
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
		ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" is "
		    "already used by upstream \"%V\"", &up->zone_name,
		    &other->upstream->host);
		return NGX_CONF_ERROR;
	}
	up->zone->init = zone_init;
	up->zone->data = up;
	return NGX_CONF_OK;
}

/* KVR_OK or an error of kvr_attach_at or kvr_open. */
static int
region_open(kvroute_srv_conf_t *up, bool master, struct kvr **k)
{
	const struct region_file file = file_of(up);

	if (up->path.len == 0)
		return kvr_attach_at(NULL, up->memory, up->bytes, k);
	return master ? region_file_make(&file, k) :
	    region_file_open(&file, KVR_OPEN_ATTACH, k);
}

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
region_announce(kvroute_srv_conf_t *up, struct kvr *k, ngx_log_t *log)
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

typedef ngx_int_t region_call(kvroute_srv_conf_t *up, ngx_cycle_t *cycle);

static ngx_int_t
regions_each(ngx_cycle_t *cycle, region_call *call)
{
	kvroute_main_conf_t *main = ngx_http_cycle_get_module_main_conf(cycle,
	    ngx_http_upstream_kvroute_module);
	kvroute_srv_conf_t **ups = main == NULL ? NULL : main->upstreams.elts;
	ngx_uint_t i;

	for (i = 0; main != NULL && i < main->upstreams.nelts; i++)
		if (call(ups[i], cycle) != NGX_OK)
			return NGX_ERROR;
	return NGX_OK;
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
region_sync(kvroute_srv_conf_t *up, struct kvr *k, ngx_log_t *log)
{
	int error = kvr_policy_set(k, &up->policy);

	if (error != KVR_OK)
		(void)complain(log, up, "policy", error);
	members_sync(&up->fleet, &up->follow.members, k, log);
	kvroute_servers_check(up, log);
}

/*
 * An error here would end the master, also at a reload, so none is returned:
 * an upstream without its region routes without predictions.
 */
static ngx_int_t
region_prepare(kvroute_srv_conf_t *up, ngx_cycle_t *cycle)
{
	ngx_log_t *log = cycle->log;
	struct kvr *k;
	int error;

	kvroute_health_prepare(up, log);
	waits_prepare(&up->waits.line);
	error = region_open(up, true, &k);
	if (error == KVR_OK && (error = region_wait(k)) != KVR_OK) {
		up->owners.behind = true;
		kvr_free(k);
	}
	if (error != KVR_OK) {
		(void)complain(log, up, "region", error);
		return NGX_OK;
	}
	if (!kvroute_peers_list(up, log))
		up->owners.behind = true;
	else
		region_sync(up, k, log);
	region_announce(up, k, log);
	kvroute_peers_free(up);
	kvr_free(k);
	return NGX_OK;
}

ngx_int_t
kvroute_regions_prepare(ngx_cycle_t *cycle)
{
	return ngx_test_config ? NGX_OK : regions_each(cycle, region_prepare);
}

/* ------------------------------------------------------------ the timer --- */

static int
region_attach(kvroute_srv_conf_t *up)
{
	struct kvr *k;
	int error = region_open(up, false, &k);

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
join_again(kvroute_srv_conf_t *up, ngx_log_t *log)
{
	if (region_attach(up) != KVR_OK)
		return false;
	ngx_log_error(NGX_LOG_NOTICE, log, 0, "kvroute of upstream \"%V\": "
	    "the region is there now", &up->upstream->host);
	kvroute_polls_begin(up, up->cycle);
	return true;
}

/* Ends the requests of processes that have died; any process may. */
static void
owners_watch(ngx_event_t *event)
{
	kvroute_srv_conf_t *up = event->data;
	uint64_t owner, from = 0;
	bool done;
	size_t n;

	if (up->fleet.kvr == NULL && !join_again(up, event->log)) {
		ngx_add_timer(event, WATCH_MS);
		return;
	}
	kvroute_peers_follow(up, event->log);
	/* The work that the master could not do, once the lock is free. */
	if (up->owners.behind &&
	    kvr_owner_list(up->fleet.kvr, &from, &owner, 1, &n) == KVR_OK) {
		up->owners.behind = false;
		region_sync(up, up->fleet.kvr, event->log);
	}
	kvroute_peers_join(up, event->log);
	kvroute_peers_leave(up, event->log);
	/*
	 * Orders of another nginx on the same file change no epoch here: the
	 * next request looks again.
	 */
	if (up->path.len > 0)
		up->fleet.epoch = up->fleet.shared->epoch - 1;
	kvroute_stale_book(up);
	done = replicas_watch(&up->fleet, &up->owners.seen, kvr_clock_now(),
	    event->log);
	ngx_add_timer(event, done ? WATCH_MS : WATCH_SOON_MS);
}

/* ------------------------------------------------- of each nginx worker --- */

/*
 * Without its region an upstream routes without predictions. The master has
 * opened it just before, so this is hardly ever so, and it is tried again.
 */
static ngx_int_t
region_join(kvroute_srv_conf_t *up, ngx_cycle_t *cycle)
{
	int error;

	up->fleet.self = (uint64_t)ngx_pid;
	up->spares = ngx_pcalloc(cycle->pool, sizeof(*up->spares));
	up->fronts = ngx_pcalloc(cycle->pool, sizeof(*up->fronts));
	if (up->spares == NULL || !kvroute_peers_list(up, cycle->log))
		return NGX_ERROR;
	kvroute_timer_make(&up->late, kvroute_late_run, up, cycle->log);
	kvroute_timer_make(&up->owners.watch, owners_watch, up, cycle->log);
	kvroute_queue_begin(up, cycle->log);
	error = region_attach(up);
	if (error != KVR_OK)
		(void)complain(cycle->log, up, "region",
		    error);
	if (error == KVR_OK)
		kvroute_polls_begin(up, cycle);
	owners_watch(&up->owners.watch);
	return NGX_OK;
}

ngx_int_t
kvroute_regions_attach(ngx_cycle_t *cycle)
{
	kvroute_read_begin(cycle);
	kvroute_time_begin(cycle);
	return regions_each(cycle, region_join);
}

/*
 * Makes the writes that wait for the lock; then ends requests that are cut off
 * when nginx must terminate at once.
 */
static ngx_int_t
region_leave(kvroute_srv_conf_t *up, ngx_cycle_t *cycle)
{
	ngx_uint_t tries = LEAVE_TRIES;

	places_leave(&up->waits.line.places);
	if (up->fleet.kvr == NULL)
		return NGX_OK;
	kvroute_polls_leave(up);
	for (; tries > 0 && !writes_run(&up->writes, kvr_clock_now());
	    tries--)
		ngx_msleep(1);
	for (; tries > 0 && !replicas_clear(&up->fleet, &up->owners.seen,
	    kvr_clock_now()); tries--)
		ngx_msleep(1);
	spares_free(up->spares);
	kvr_free(up->fleet.kvr);
	up->fleet.kvr = NULL;
	return NGX_OK;
}

void
kvroute_regions_leave(ngx_cycle_t *cycle)
{
	(void)regions_each(cycle, region_leave);
}
