/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_status.c - the reports of ext/http/status about a pool. */
#include "pool_in.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "judge.h"
#include "places.h"
#include "pool_poll.h"
#include "status.h"

/* A text of any length; its beginning is kept. */
struct room {
	char *text;
	size_t room, length;
};

static bool
room_write(void *context, const void *bytes, size_t n)
{
	struct room *r = context;
	size_t left = r->length < r->room ? r->room - r->length : 0;

	if (left > 0)
		memcpy(r->text + r->length, bytes, n < left ? n : left);
	r->length += n;
	return true;
}

static void *
room_alloc(void *context, size_t size)
{
	(void)context;
	return malloc(size);
}

static void
room_free(void *context, void *memory)
{
	(void)context;
	free(memory);
}

/* Verdicts, with names that are copied: these may go meanwhile. */
struct verdicts {
	struct status_health *all;
	char (*names)[KVR_NAME_MAX];
	size_t n;
};

static void
queue_look(struct kvh *h, int64_t now, struct status_upstream *up)
{
	up->queue = h->fleet.queue;
	if (up->queue == 0)
		return;
	pool_lock(h);
	up->waiting = places_length(&h->waits.places, now);
	pool_unlock(h);
}

static uint32_t
cost_of(const struct kvh *h)
{
	struct kvr_policy policy = { .size = sizeof(policy) };

	return kvr_policy_get(h->k, &policy) == KVR_OK ? policy.cost :
	    KVR_COST_BALANCED;
}

/* False: no memory. */
static bool
verdicts_copy(struct kvh *h, int64_t now, struct verdicts *v)
{
	size_t i;

	pool_lock(h);
	v->n = 0;
	v->all = malloc((h->n + 1) * sizeof(*v->all));
	v->names = malloc((h->n + 1) * sizeof(*v->names));
	if (v->all != NULL && v->names != NULL)
		v->n = judge_list(&h->fleet, v->all, now);
	for (i = 0; i < v->n; i++) {
		memcpy(v->names[i], v->all[i].name, v->all[i].name_length);
		v->all[i].name = v->names[i];
	}
	pool_unlock(h);
	return v->all != NULL && v->names != NULL;
}

static void
verdicts_free(struct verdicts *v)
{
	free(v->all);
	free(v->names);
}

int
kvh_status(struct kvh *h, uint32_t form, int64_t now, char *text, size_t room,
    size_t *length)
{
	static const struct writer_calls calls = { .write = room_write,
	    .alloc = room_alloc, .free = room_free };
	struct room r = { .text = text, .room = room };
	struct writer w = { .calls = &calls, .context = &r };
	struct status_upstream up = { .name = NULL };
	struct status s = { .proxy = "http", .upstream = &up, .upstreams = 1 };
	struct counters counters;
	struct status_load *loads;
	struct verdicts v;

	if (h == NULL || length == NULL || (text == NULL && room > 0) ||
	    form > KVH_JSON)
		return KVR_EINVAL;
	if (!verdicts_copy(h, pool_now(now), &v)) {
		verdicts_free(&v);
		return KVR_ENOMEM;
	}
	shared_copy(h->fleet.shared, &counters);
	up.name = h->options.name.bytes;
	up.name_length = h->options.name.length;
	up.kvr = h->k;
	up.options = h->region;
	up.cost = cost_of(h);
	queue_look(h, pool_now(now), &up);
	if (h->options.shadow != 0)
		up.shadow = pool_shadows[h->options.shadow];
	up.counters = &counters;
	up.healths = v.all;
	up.n_healths = v.n;
	loads = polls_list(h, pool_now(now), &up.n_loads);
	up.loads = loads;
	s.time = (uint64_t)time(NULL);
	if (form == KVH_JSON)
		status_json(&s, &w);
	else
		status_metrics(&s, &w);
	polls_unlist(h, loads);
	verdicts_free(&v);
	if (w.failed)
		return KVR_EBUSY;
	*length = r.length;
	return KVR_OK;
}
