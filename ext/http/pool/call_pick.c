/* SPDX-License-Identifier: BSD-2-Clause */
/* call_pick.c - which servers a request may go to, and those that failed. */
#include "pool_in.h"

#include <string.h>

#include "call_choose.h"
#include "call_end.h"
#include "call_look.h"
#include "pool_server.h"

int
kvh_allow(struct kvh_call *c, const char *name, size_t name_len)
{
	const struct pool_server *s;
	uint64_t serial;

	if (c == NULL || (name == NULL && name_len > 0))
		return KVR_EINVAL;
	/* Threads read the list while it waits. */
	if (c->stage > CALL_READY || c->wait_began != 0)
		return KVH_EORDER;
	c->allows = true;
	pool_lock(c->h);
	s = server_find(c->h, name, name_len);
	serial = s != NULL ? s->serial : 0;
	pool_unlock(c->h);
	if (serial == 0)
		return KVH_ENAME;
	c->allow_sorted = false;
	return serials_add(&c->allow, &c->n_allow, &c->allow_room, serial) ?
	    KVR_OK : KVR_ENOMEM;
}

int
kvh_pick(struct kvh_call *c, int64_t now, uint32_t *targets)
{
	int error;

	if (c == NULL)
		return KVR_EINVAL;
	if (c->stage != CALL_READY)
		return KVH_EORDER;
	c->now = pool_now(now);
	error = call_choose(c, targets != NULL);
	if (error == KVR_OK && targets != NULL)
		*targets = c->n_targets;
	return error;
}

int
kvh_target(struct kvh_call *c, uint32_t i, const char **name,
    size_t *name_len, int32_t *rank)
{
	if (c == NULL || name == NULL || name_len == NULL)
		return KVR_EINVAL;
	if (i >= c->n_targets)
		return KVH_EEND;
	*name = c->target[i].server->name;
	*name_len = c->target[i].server->length;
	if (rank != NULL)
		*rank = c->target[i].rank;
	return KVR_OK;
}

int
kvh_prefill(struct kvh_call *c, const char **name, size_t *name_len)
{
	if (c == NULL || name == NULL || name_len == NULL)
		return KVR_EINVAL;
	if (c->prefill_length == 0)
		return KVH_EEND;
	*name = strchr(c->prefill_text, ' ') + 1;
	*name_len = c->prefill_length;
	return KVR_OK;
}

static bool
is_failure(uint32_t failure)
{
	return failure >= KVH_REFUSED && failure <= KVH_NOT_SENT;
}

int
kvh_failed(struct kvh_call *c, uint32_t failure, uint32_t status, int64_t now)
{
	if (c == NULL || !is_failure(failure))
		return KVR_EINVAL;
	if (c->n_targets == 0 || c->taken || (c->stage != CALL_SENT &&
	    c->stage != CALL_ANSWERED))
		return KVH_EORDER;
	c->now = pool_now(now);
	return target_failed(c, failure, status);
}

int
kvh_target_failed(struct kvh_call *c, uint32_t i, uint32_t failure,
    uint32_t status, int64_t now)
{
	if (c == NULL || !is_failure(failure))
		return KVR_EINVAL;
	if (c->stage != CALL_SENT)
		return KVH_EORDER;
	if (i >= c->n_targets)
		return KVH_EEND;
	c->now = pool_now(now);
	target_missed(c, i, failure, status);
	return KVR_OK;
}
