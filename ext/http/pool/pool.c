/* SPDX-License-Identifier: BSD-2-Clause */
/* pool.c - opens and frees pools, and does work that is due. */
#include "pool_in.h"

#include <stdlib.h>
#include <string.h>

#include "area.h"
#include "judge.h"
#include "pool_ignore.h"
#include "pool_options.h"
#include "pool_owner.h"
#include "pool_poll.h"
#include "pool_roll.h"
#include "pool_server.h"
#include "pool_wait.h"

enum { EXPIRE_ENTRIES = 256, END_TRIES = 100 };
#define SOON_NS INT64_C(5000000)
#define TICK_NS INT64_C(1000000000)
#define MS INT64_C(1000000)

static const struct {
	int error;
	const char *text;
} errors[] = {
	{ KVH_ENOSERVER, "no server is ready" },
	{ KVH_EFULL, "all servers are full" },
	{ KVH_EKEPT, "the server that keeps the state of this request cannot "
	    "take it now" },
	{ KVH_EORDER, "the call does not fit the state of the request" },
	{ KVH_ENAME, "there is no option, fact or server of that name" },
	{ KVH_EVALUE, "an option or a fact cannot have that value" },
	{ KVH_EEND, "there is no such item, or no further one" },
	{ KVH_EAREA, "the region is shared with a release of another layout" }
};

const char *
kvh_strerror(int error)
{
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			return errors[i].text;
	return kvr_strerror(error);
}

/* ------------------------------------------------------- open and free --- */

static void
pool_release(struct kvh *h)
{
	writes_free(&h->writes);
	polls_end(h);
	servers_free(h);
	spares_free(&h->spares);
	free(h->area);
	ignore_end(h);
	(void)pthread_mutex_destroy(&h->lock);
	free(h);
}

/* A pool on k, which is the caller's, or not owned yet. */
static int
pool_make(struct kvr *k, bool theirs, const struct pool_options *o,
    struct kvh **out)
{
	struct kvr_options region = { .size = sizeof(region) };
	struct kvh *h;
	int error = kvr_options_get(k, &region);

	if (error != KVR_OK)
		return error;
	if (region.unit != KVR_UNIT_BYTES)
		return KVR_EINVAL;
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return KVR_ENOMEM;
	h->k = k;
	h->options = *o;
	h->region = region;
	if (region.affinity_entries == 0)
		h->options.responses_ttl = 0;
	h->fleet.kvr = k;
	h->fleet.options = &h->region;
	h->fleet.gray = o->gray;
	h->fleet.slow_start_ms = (uint64_t)o->slow_start / MS;
	h->fleet.queue = o->queue;
	h->fleet.split = o->split;
	line_begin(h);
	polls_begin(h);
	(void)pthread_mutex_init(&h->lock, NULL);
	h->spares.lock = h->writes.lock = &h->lock;
	h->writes.k = k;
	h->writes.spares = &h->spares;
	(void)kvr_nowait_set(k, 1);
	error = ignore_begin(h) && servers_begin(h) ?
	    area_open(&h->fleet, theirs, &h->area) : KVR_ENOMEM;
	if (error != KVR_OK) {
		pool_release(h);
		return error == KVR_EMISMATCH ? KVH_EAREA : error;
	}
	h->writes.shared = h->fleet.shared;
	owner_begin(h);
	h->polls.fleet.self = h->fleet.self;
	h->polls.fleet.shared = h->fleet.shared;
	h->polls.fleet.polled = h->fleet.polled;
	*out = h;
	return KVR_OK;
}

int
kvh_new(struct kvr *k, const char *options, size_t options_len, size_t *bad,
    struct kvh **pool)
{
	struct pool_options o;
	int error;

	if (k == NULL || pool == NULL || (options == NULL && options_len > 0))
		return KVR_EINVAL;
	error = pool_options_read(&o, false, options, options_len, bad);
	return error != KVR_OK ? error : pool_make(k, true, &o, pool);
}

static int
region_try(const char *path, size_t n, const struct kvr_options *o,
    struct kvr **k)
{
	return n == 0 ? kvr_new(o, k) : kvr_open(path, n, KVR_OPEN_CREATE |
	    KVR_OPEN_ATTACH, o, k);
}

/* Is the only mismatch that of the area, since another release made it? */
static bool
is_area_of_another(const char *path, size_t n, const struct kvr_options *o)
{
	struct kvr_options has = { .size = sizeof(has) };
	const char *fault;
	struct kvr *k;

	if (kvr_open(path, n, KVR_OPEN_READONLY, NULL, &k) != KVR_OK)
		return false;
	fault = kvr_options_fault(k, o);
	(void)kvr_options_get(k, &has);
	kvr_free(k);
	return has.user_bytes > 0 && fault != NULL &&
	    strcmp(fault, "user_bytes") == 0;
}

/* A region that has no area, or no room for one, shares the index alone. */
static int
region_open(const char *path, size_t n, struct kvr_options *o, struct kvr **k)
{
	int error;

	o->user_bytes = area_bytes(o->max_workers);
	error = region_try(path, n, o, k);
	if (error != KVR_EMISMATCH && error != KVR_ETOOSMALL)
		return error;
	if (error == KVR_EMISMATCH && is_area_of_another(path, n, o))
		return KVH_EAREA;
	o->user_bytes = 0;
	return region_try(path, n, o, k);
}

int
kvh_open(const char *path, size_t path_len, const char *options,
    size_t options_len, size_t *bad, struct kvh **pool)
{
	struct pool_options o;
	struct kvr *k = NULL;
	int error;

	if (pool == NULL || (path == NULL && path_len > 0) ||
	    (options == NULL && options_len > 0))
		return KVR_EINVAL;
	error = pool_options_read(&o, true, options, options_len, bad);
	if (error != KVR_OK)
		return error;
	error = region_open(path, path_len, &o.region, &k);
	memset(&o.region, 0, sizeof(o.region));
	if (error == KVR_OK)
		error = pool_make(k, false, &o, pool);
	if (error != KVR_OK) {
		kvr_free(k);
		return error;
	}
	(*pool)->owns = true;
	return KVR_OK;
}

void
kvh_free(struct kvh *h)
{
	unsigned tries = END_TRIES;
	struct kvr *k;

	if (h == NULL)
		return;
	while (!writes_run(&h->writes, 0) && --tries > 0)
		continue;
	line_end(h);
	owner_end(h);
	k = h->owns ? h->k : NULL;
	pool_release(h);
	kvr_free(k);
}

/* -------------------------------------------------------------- servers --- */

int
kvh_server_put(struct kvh *h, const char *name, size_t name_len,
    const char *facts, size_t facts_len, size_t *bad)
{
	if (h == NULL || name == NULL || name_len == 0 ||
	    name_len > KVR_NAME_MAX || (facts == NULL && facts_len > 0))
		return KVR_EINVAL;
	return server_put(h, name, name_len, facts, facts_len, bad);
}

/* Copies the ids of its workers; 0: there is no such server. */
static uint32_t
ids_copy(struct kvh *h, const char *name, size_t n, uint64_t **ids)
{
	struct pool_server *s;
	uint32_t ranks = 0;

	*ids = NULL;
	pool_lock(h);
	s = server_find(h, name, n);
	if (s != NULL) {
		servers_due(h);
		ranks = s->ranks;
		*ids = malloc(ranks * sizeof(**ids));
		if (*ids != NULL)
			memcpy(*ids, s->ids, ranks * sizeof(**ids));
		judge_forget(&h->fleet, name, n);
	}
	pool_unlock(h);
	return ranks;
}

int
kvh_server_reset(struct kvh *h, const char *name, size_t name_len, int64_t now)
{
	struct write_due write = { .kind = WRITE_RESET };
	uint64_t *ids;
	uint32_t ranks, i;

	if (h == NULL || name == NULL)
		return KVR_EINVAL;
	ranks = ids_copy(h, name, name_len, &ids);
	if (ranks == 0)
		return KVH_ENAME;
	if (ids == NULL)
		return KVR_ENOMEM;
	for (i = 0; i < ranks; i++) {
		write.id = ids[i];
		if (write.id != 0)
			(void)writes_do(&h->writes, &write, pool_now(now));
	}
	free(ids);
	return KVR_OK;
}

/* ----------------------------------------------------------------- tick --- */

/* False: another thread does it. */
static bool
tick_begin(struct kvh *h)
{
	bool mine;

	pool_lock(h);
	mine = !h->ticks;
	h->ticks = true;
	pool_unlock(h);
	return mine;
}

/* False: workers are left. */
static bool
tick_end(struct kvh *h)
{
	bool done;

	pool_lock(h);
	done = servers_sweep(h);
	judge_follow_late(&h->fleet);
	h->ticks = false;
	pool_unlock(h);
	return done;
}

int
kvh_tick(struct kvh *h, int64_t now, int64_t *next)
{
	uint32_t left = 0;
	bool done;

	if (h == NULL)
		return KVR_EINVAL;
	now = pool_now(now);
	done = writes_run(&h->writes, now);
	if (tick_begin(h)) {
		servers_look(h, now);
		done &= replicas_watch(&h->fleet, &h->replicas, now, NULL);
		(void)kvr_expire(h->k, now, EXPIRE_ENTRIES, &left);
		done &= left == 0;
		done &= tick_end(h);
	}
	if (!line_tick(h, now))
		done = false;
	if (next != NULL)
		*next = now + (done ? TICK_NS : SOON_NS);
	return KVR_OK;
}
