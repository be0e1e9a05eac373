/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_replicas.c - what kvroute-sync has brought from other
 * machines, and what to do when it is silent: then nothing ends that.
 *
 *     beat        |  |  |  |  |                              |  |
 *     silent                        ==========================
 *     leases      ------------------|   reaped, as of dead processes
 *     loads       ------------------|   set to nothing, once
 *
 * All worker processes do the same, a second apart at most; what is done twice
 * changes nothing. The first one logs it.
 */
#include "ngx_http_kvroute_replicas.h"

#include "ngx_http_kvroute_shared.h"

/* Of kvroute-sync(8): the upper half of owners, and its source of loads. */
#define BROUGHT UINT64_C(0xffffffff)
enum { SOURCE = KVR_LOAD_SOURCES - 1 };

#define SILENCE INT64_C(3000000000) /* it beats once a second */

enum { PIECES = 64 }; /* workers looked at in one go */

bool
ngx_http_kvroute_is_brought(uint64_t owner)
{
	return owner >> 32 == BROUGHT;
}

/* False if there is more to do. */
static bool
loads_end(ngx_http_kvroute_srv_conf_t *up)
{
	const struct kvr_load none = { .size = sizeof(none) };
	ngx_uint_t pieces = PIECES;
	uint64_t id;

	do {
		id = up->owners.unloaded;
		if (kvr_worker_next(up->kvr, &id) != KVR_OK)
			return false;
		if (id != 0 && kvr_worker_set_load(up->kvr, id, SOURCE,
		    &none) == KVR_EBUSY)
			return false;
		up->owners.unloaded = id;
	} while (id != 0 && --pieces > 0);
	return id == 0;
}

static void
silence_tell(ngx_http_kvroute_srv_conf_t *up, int64_t beat, ngx_log_t *log)
{
	ngx_atomic_uint_t told = up->shared->silence;

	if (told == (ngx_atomic_uint_t)beat || !ngx_atomic_cmp_set(
	    &up->shared->silence, told, (ngx_atomic_uint_t)beat))
		return;
	ngx_log_error(NGX_LOG_NOTICE, log, 0, "kvroute of upstream \"%V\": "
	    "kvroute-sync is silent: requests and loads of other machines end",
	    &up->upstream->host);
}

bool
ngx_http_kvroute_replicas_watch(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log)
{
	struct kvr_stats s = { .size = sizeof(s) };
	int64_t now = kvr_clock_now();

	up->owners.silent = false;
	if (kvr_stats_get(up->kvr, &s) != KVR_OK)
		return true;
	up->owners.silent = s.journal_beat >= 0 &&
	    now - s.journal_beat > SILENCE;
	/* One that ends in good order beats 0 last. */
	if (!up->owners.silent || up->owners.silence == s.journal_beat + 1)
		return true;
	silence_tell(up, s.journal_beat, log);
	if (!loads_end(up))
		return false;
	up->owners.silence = s.journal_beat + 1;
	return true;
}
