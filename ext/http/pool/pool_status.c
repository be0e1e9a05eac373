/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_status.c - the reports of ext/http/status about a pool. */
#include "pool_in.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fleet_facts.h"
#include "pool_poll.h"

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

/* Only the JSON has it. */
static int
cost_read(const struct kvh *h, uint32_t *cost)
{
	struct kvr_policy policy = { .size = sizeof(policy) };
	int error = kvr_policy_get(h->k, &policy);

	if (error == KVR_OK)
		*cost = policy.cost;
	return error;
}

/* False: no memory. */
static bool
facts_take(struct kvh *h, int64_t now, struct status_upstream *up,
    struct fleet_facts *facts)
{
	bool taken;

	up->name = h->options.name.bytes;
	up->name_length = h->options.name.length;
	up->options = h->region;
	if (h->options.shadow != 0)
		up->shadow = pool_shadows[h->options.shadow];
	polls_lock(h, now);
	pool_lock(h);
	taken = fleet_facts_take(facts, up, &h->fleet, &h->polls.fleet,
	    &h->waits.places, NULL, now);
	pool_unlock(h);
	polls_unlock(h);
	return taken;
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
	struct fleet_facts facts;
	int error;

	if (h == NULL || length == NULL || (text == NULL && room > 0) ||
	    form > KVH_JSON)
		return KVR_EINVAL;
	error = form == KVH_JSON ? cost_read(h, &up.cost) : KVR_OK;
	if (error != KVR_OK)
		return error;
	if (!facts_take(h, pool_now(now), &up, &facts))
		return KVR_ENOMEM;
	s.time = (uint64_t)time(NULL);
	if (form == KVH_JSON)
		status_json(&s, &w);
	else
		status_metrics(&s, &w);
	fleet_facts_free(&facts);
	if (w.failed)
		return KVR_EBUSY;
	*length = r.length;
	return KVR_OK;
}
