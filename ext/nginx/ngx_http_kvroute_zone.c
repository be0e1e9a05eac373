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
 * The master also makes the file and gives it to the user of the nginx workers.
 * The library has the lock file follow when root opens the region again. Then
 * the master opens it as that user, exactly as a worker process will: what they
 * would be refused ends the start, or the reload, and not their predictions.
 */
#include "ngx_http_kvroute_zone.h"

#include <grp.h>

#include "health.h"
#include "ngx_http_kvroute_health.h"
#include "ngx_http_kvroute_shared.h"

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

/* The boot that CLOCK_MONOTONIC counts from; zeros if unknown. */
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

/* Does root start processes of another user? */
static bool
hands_over(const ngx_core_conf_t *core)
{
	return geteuid() == 0 && core->user != (ngx_uid_t)NGX_CONF_UNSET_UINT;
}

/*
 * Made by root, used by nginx workers that are not root. Others may be able to
 * write to the folder: by now the path may be a link of theirs.
 */
static ngx_int_t
file_hand_over(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	ngx_core_conf_t *core = (ngx_core_conf_t *)ngx_get_conf(
	    up->cycle->conf_ctx, ngx_core_module);
	ngx_int_t rc = NGX_OK;
	int fd;

	if (!hands_over(core))
		return NGX_OK;
	fd = open((const char *)up->path.data, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || fchown(fd, core->user, core->group) != 0) {
		ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
		    "chown(\"%V\") failed", &up->path);
		rc = NGX_ERROR;
	}
	if (fd != -1)
		(void)close(fd);
	return rc;
}

static int
file_open(ngx_http_kvroute_srv_conf_t *up, uint32_t flags, struct kvr **k)
{
	struct kvr_options options = up->options;

	boot_read(options.boot_id);
	return kvr_open((const char *)up->path.data, up->path.len, flags,
	    &options, k);
}

/* root may open a file of the user of nginx workers: root made it. */
static uint32_t
trust_flags(void)
{
	return geteuid() == 0 ? KVR_OPEN_TRUST : 0;
}

static int
file_make(ngx_http_kvroute_srv_conf_t *up, struct kvr **k)
{
	return file_open(up, KVR_OPEN_CREATE | KVR_OPEN_ATTACH |
	    trust_flags(), k);
}

/* The option that a region which exists was made without; "" if unknown. */
static const char *
other_option(ngx_http_kvroute_srv_conf_t *up)
{
	const char *name;
	struct kvr *k;

	if (kvr_open((const char *)up->path.data, up->path.len,
	    KVR_OPEN_READONLY | trust_flags(), NULL, &k) != KVR_OK)
		return "";
	name = kvr_options_fault(k, &up->options);
	kvr_free(k);
	return name != NULL ? name : "";
}

/* Logs the error; always NGX_ERROR. */
static ngx_int_t
file_complain(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log,
    const char *whose, int error)
{
	int saved = ngx_errno;
	const char *option = error == KVR_EMISMATCH ? other_option(up) : "";

	ngx_log_error(NGX_LOG_EMERG, log, error == KVR_ESYSTEM ? saved : 0,
	    "kvroute of upstream \"%V\": %V%s%s: %s%s%s", &up->upstream->host,
	    &up->path, *whose == '\0' ? "" : ", ", whose, kvr_strerror(error),
	    *option == '\0' ? "" : " Another is ", option);
	return NGX_ERROR;
}

/* The groups of root, while it acts for a worker process. */
typedef struct {
	gid_t group, *groups;
	int n;
} root_t;

static bool
root_leave(root_t *root, const ngx_core_conf_t *core, ngx_log_t *log)
{
	root->group = getegid();
	root->n = getgroups(0, NULL);
	root->groups = ngx_alloc(((size_t)root->n + 1) * sizeof(gid_t), log);
	if (root->groups == NULL)
		return false;
	root->n = getgroups(root->n, root->groups);
	return setegid(core->group) == 0 &&
	    initgroups(core->username, core->group) == 0 &&
	    seteuid(core->user) == 0;
}

static bool
root_return(root_t *root)
{
	bool done = root->groups == NULL || (seteuid(0) == 0 &&
	    setegid(root->group) == 0 &&
	    setgroups((size_t)root->n, root->groups) == 0);

	ngx_free(root->groups);
	return done;
}

/* Opens the file as a worker process will. */
static ngx_int_t
file_try(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	ngx_core_conf_t *core = (ngx_core_conf_t *)ngx_get_conf(
	    up->cycle->conf_ctx, ngx_core_module);
	int error = KVR_ESYSTEM, saved;
	struct kvr *k = NULL;
	root_t root;

	if (!hands_over(core))
		return NGX_OK;
	if (root_leave(&root, core, log))
		error = file_open(up, KVR_OPEN_ATTACH, &k);
	saved = ngx_errno;
	if (!root_return(&root)) {
		ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
		    "the master process cannot become root again");
		error = KVR_ESYSTEM;
	}
	kvr_free(k);
	ngx_set_errno(saved);
	return error == KVR_OK ? NGX_OK : file_complain(up, log,
	    "for the worker processes", error);
}

/* A start applies another time to live to the region. */
static bool
is_applied(ngx_http_kvroute_srv_conf_t *up, int error)
{
	return error == KVR_EMISMATCH &&
	    strcmp(other_option(up), "ttl_ns") == 0;
}

/*
 * nginx -t makes and changes no file. It reads one that is there; what only the
 * start could mend is no error.
 */
static ngx_int_t
file_test(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	struct stat st;
	struct kvr *k;
	int error;

	if (lstat((const char *)up->path.data, &st) != 0 || st.st_size == 0)
		return NGX_OK;
	error = file_open(up, KVR_OPEN_READONLY | trust_flags(), &k);
	if (error == KVR_OK)
		kvr_free(k);
	if (error == KVR_OK || error == KVR_ESTATE || error == KVR_EBUSY ||
	    is_applied(up, error))
		error = (st.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? KVR_EPERM :
		    KVR_OK;
	return error == KVR_OK ? NGX_OK : file_complain(up, log, "", error);
}

/* Gives the lock file to the user that now owns the region. */
static ngx_int_t
lock_hand_over(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	struct kvr *k;
	int error = file_make(up, &k);

	if (error != KVR_OK)
		return file_complain(up, log, "", error);
	kvr_free(k);
	return NGX_OK;
}

static ngx_int_t
file_prepare(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	struct kvr *k;
	ngx_int_t rc;
	int error;

	if (ngx_test_config)
		return file_test(up, log);
	error = file_make(up, &k);
	if (error != KVR_OK)
		return file_complain(up, log, "", error);
	rc = file_hand_over(up, log);
	/* While it is open here no other process has to check it. */
	if (rc == NGX_OK)
		rc = lock_hand_over(up, log);
	if (rc == NGX_OK)
		rc = file_try(up, log);
	kvr_free(k);
	return rc;
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

static bool
same_path(const ngx_http_kvroute_srv_conf_t *a,
    const ngx_http_kvroute_srv_conf_t *b)
{
	return a->path.len == b->path.len &&
	    ngx_memcmp(a->path.data, b->path.data, a->path.len) == 0;
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

/* Only where it is needed, so that a zone without it keeps its room. */
static bool
health_make(ngx_http_kvroute_srv_conf_t *up, ngx_slab_pool_t *slab)
{
	if (up->health == NULL && ngx_http_kvroute_health_on(up)) {
		slab->log_nomem = 0;
		up->health = ngx_slab_calloc(slab, up->options.max_workers *
		    sizeof(*up->health));
		slab->log_nomem = 1;
	}
	return up->health != NULL || !ngx_http_kvroute_health_on(up);
}

/*
 * What is added stays with the zone, so the configuration before knows of it,
 * too: if this one fails after all, the next reload finds it there.
 */
static ngx_int_t
zone_keep(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_srv_conf_t *of,
    ngx_log_t *log)
{
	if (!same_path(up, of)) {
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
	up->shared = of->shared;
	up->polled = of->polled;
	up->health = of->health;
	up->memory = of->memory;
	up->bytes = of->bytes;
	if (health_make(up, (ngx_slab_pool_t *)up->zone->shm.addr)) {
		of->health = up->health;
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
	up->shared = ngx_slab_calloc(slab, sizeof(*up->shared));
	up->polled = ngx_slab_calloc(slab, up->options.max_workers *
	    sizeof(*up->polled));
	if (up->shared == NULL || up->polled == NULL ||
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
	    up->options.max_workers * (sizeof(*up->polled) +
	    sizeof(*up->health));
	return true;
}

/* Each upstream would remove the other's workers. */
static bool
path_taken(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_main_conf_t *main = ngx_http_conf_get_module_main_conf(
	    cf, ngx_http_upstream_kvroute_module);
	ngx_http_kvroute_srv_conf_t **ups = main->upstreams.elts;
	ngx_uint_t i;

	for (i = 0; i < main->upstreams.nelts; i++) {
		if (ups[i] != up && up->path.len > 0 && same_path(ups[i], up))
			return true;
	}
	return false;
}

char *
ngx_http_kvroute_zone_add(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_srv_conf_t *other;

	up->cycle = cf->cycle;
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
	if (up->path.len == 0)
		return kvr_attach_at(NULL, up->memory, up->bytes, k);
	return master ? file_make(up, k) : file_open(up, KVR_OPEN_ATTACH, k);
}
