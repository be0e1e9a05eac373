/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_zone.c - where the region of an upstream is stored.
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
#include "ngx_http_kvroute_zone.h"

#include "ngx_http_kvroute_find.h"

#include "blame.h"
#include "health.h"
#include "judge.h"
#include "region_file.h"
#include "shared.h"

enum { COUNTERS_PAGES = 16 }; /* of a zone that has no region */

ngx_int_t
ngx_http_kvroute_complain(ngx_log_t *log, ngx_http_kvroute_srv_conf_t *up,
    const char *what, int error)
{
	ngx_log_error(NGX_LOG_EMERG, log, error == KVR_ESYSTEM ? ngx_errno : 0,
	    "kvroute of upstream \"%V\": %s: %s", &up->upstream->host, what,
	    kvr_strerror(error));
	return NGX_ERROR;
}

static struct region_file
file_of(const ngx_http_kvroute_srv_conf_t *up)
{
	ngx_core_conf_t *core = (ngx_core_conf_t *)ngx_get_conf(
	    up->cycle->conf_ctx, ngx_core_module);

	return (struct region_file){ .path = (const char *)up->path.data,
	    .length = up->path.len, .options = &up->options,
	    .user_name = core->user == (ngx_uid_t)NGX_CONF_UNSET_UINT ? NULL :
	    core->username, .user = core->user, .group = core->group };
}

static ngx_int_t
file_complain(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log,
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
file_prepare(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	const struct region_file file = file_of(up);
	struct region_fault why;

	return (ngx_test_config ? region_file_test(&file, &why) :
	    region_file_prepare(&file, &why)) ? NGX_OK :
	    file_complain(up, log, &why);
}

/* The rest of the zone becomes the region. */
static ngx_int_t
memory_prepare(ngx_http_kvroute_srv_conf_t *up, ngx_slab_pool_t *slab,
    ngx_log_t *log)
{
	struct kvr *k;
	int error;

	up->bytes = slab->pfree * ngx_pagesize;
	up->memory = up->bytes == 0 ? NULL : ngx_slab_alloc(slab, up->bytes);
	if (up->memory == NULL)
		return ngx_http_kvroute_complain(log, up, "zone",
		    KVR_ETOOSMALL);
	error = kvr_new_at(&up->options, up->memory, up->bytes, &k);
	if (error != KVR_OK)
		return ngx_http_kvroute_complain(log, up, "zone", error);
	kvr_free(k);
	return NGX_OK;
}

/* By default it follows from the size, which an existing file keeps. */
static bool
tables_alike(const ngx_http_kvroute_srv_conf_t *a,
    const ngx_http_kvroute_srv_conf_t *b)
{
	return (!a->sized && !b->sized) ||
	    a->options.affinity_entries == b->options.affinity_entries;
}

static bool
zones_alike(const ngx_http_kvroute_srv_conf_t *a,
    const ngx_http_kvroute_srv_conf_t *b)
{
	return a->options.block_size == b->options.block_size &&
	    (a->options.ttl_ns == b->options.ttl_ns || a->path.len > 0) &&
	    a->options.max_workers == b->options.max_workers &&
	    a->options.tenants == b->options.tenants &&
	    tables_alike(a, b) &&
	    a->options.journal_bytes == b->options.journal_bytes &&
	    a->options.secret_bytes == b->options.secret_bytes &&
	    ngx_memcmp(a->options.secret, b->options.secret,
	    a->options.secret_bytes) == 0;
}

static size_t
health_bytes(const ngx_http_kvroute_srv_conf_t *up)
{
	return up->options.max_workers * sizeof(*up->fleet.health) +
	    sizeof(*up->fleet.blame);
}

/* Only where it is needed, so that a zone without it keeps its room. */
static bool
health_make(ngx_http_kvroute_srv_conf_t *up, ngx_slab_pool_t *slab)
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
zone_keep(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_srv_conf_t *of,
    ngx_log_t *log)
{
	if (!ngx_http_kvroute_same(&up->path, &of->path)) {
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
	ngx_http_kvroute_srv_conf_t *up = zone->data;
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
		return ngx_http_kvroute_complain(log, up, "zone",
		    KVR_ETOOSMALL);
	if (up->path.len > 0)
		return file_prepare(up, log);
	return memory_prepare(up, slab, log);
}

/* A region file needs a zone too, for the counters. */
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
	up->zone_size = COUNTERS_PAGES * ngx_pagesize +
	    up->options.max_workers * sizeof(*up->fleet.polled) +
	    health_bytes(up);
	return true;
}

/* Each upstream would remove the other's workers. */
static bool
path_taken(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_main_conf_t *main = ngx_http_kvroute_main(cf);
	ngx_http_kvroute_srv_conf_t **ups = main->upstreams.elts;
	ngx_uint_t i;

	for (i = 0; i < main->upstreams.nelts; i++) {
		if (ups[i] != up && up->path.len > 0 && ngx_http_kvroute_same(
		    &ups[i]->path, &up->path))
			return true;
	}
	return false;
}

char *
ngx_http_kvroute_zone_add(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_srv_conf_t *other;

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

int
ngx_http_kvroute_region_open(ngx_http_kvroute_srv_conf_t *up, bool master,
    struct kvr **k)
{
	const struct region_file file = file_of(up);

	if (up->path.len == 0)
		return kvr_attach_at(NULL, up->memory, up->bytes, k);
	return master ? region_file_make(&file, k) :
	    region_file_open(&file, KVR_OPEN_ATTACH, k);
}
