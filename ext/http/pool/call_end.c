/* SPDX-License-Identifier: BSD-2-Clause */
/* call_end.c - see call_end.h. */
#include "call_end.h"

#include <stdlib.h>
#include <string.h>

#include "call_body.h"
#include "call_book.h"
#include "call_choose.h"
#include "call_look.h"
#include "call_prefill.h"
#include "call_trace.h"
#include "evidence.h"
#include "pool_count.h"
#include "pool_gray.h"
#include "pool_server.h"
#include "pool_wait.h"

/* --------------------------------------------------------------- failed --- */

/* The engine is gone, and its cache with it: all ranks are behind it. */
static void
cache_lost(struct kvh_call *c, const struct call_target *target)
{
	const struct pool_server *s = target->server;
	struct kvh *h = c->h;
	bool any = false;
	uint64_t id;
	uint32_t i;

	for (i = 0; i < target->ranks; i++) {
		pool_lock(h);
		id = i < s->ranks ? s->ids[i] : 0;
		pool_unlock(h);
		any |= writes_reset(&h->writes, id, c->now);
	}
	if (any)
		pool_count(h, COUNT_REFUSED, 1);
}

/* Counts a failure, by which a server may be out of use for a while. */
static void
failure_count(struct kvh_call *c)
{
	if (!c->evidence.cools || c->n_targets == 0)
		return;
	pool_lock(c->h);
	server_failed(c->h, c->target[0].server, c->now);
	pool_unlock(c->h);
}

static bool
is_fault(uint32_t failure, uint32_t status)
{
	return failure == KVH_REFUSED || failure == KVH_BROKE ||
	    (failure == KVH_STATUS && evidence_is_refusal(status));
}

/* Where gray servers are judged, a status is evidence for that. */
static bool
cools(const struct kvh_call *c, uint32_t failure, uint32_t status)
{
	return is_fault(failure, status) && (failure != KVH_STATUS ||
	    c->h->options.gray == 0);
}

/* The first one has the lease, which ends when it is known who answers. */
void
target_missed(struct kvh_call *c, uint32_t i, uint32_t failure, uint32_t status)
{
	struct call_target *target = &c->target[i];
	const bool again = target->failure != 0;

	target->failure = failure;
	target->status = status;
	if (i == 0 || again)
		return;
	if (cools(c, failure, status)) {
		pool_lock(c->h);
		server_failed(c->h, target->server, c->now);
		pool_unlock(c->h);
	}
	if (failure == KVH_REFUSED)
		cache_lost(c, target);
}

int
target_failed(struct kvh_call *c, uint32_t failure, uint32_t status)
{
	const uint64_t serial = c->target[0].server->serial;
	const uint64_t other = c->prefill != NULL ? c->prefill->serial : 0;
	int error = KVR_OK;

	c->evidence.failed = is_fault(failure, status);
	c->evidence.answered = failure == KVH_STATUS;
	c->evidence.cools = cools(c, failure, status);
	if (failure == KVH_NOT_SENT)
		c->evidence.due = false;
	lease_drop(c);
	prefill_end(c, false, c->evidence.failed && c->evidence.answered);
	gray_end(c, false, false);
	failure_count(c);
	if (failure == KVH_REFUSED)
		cache_lost(c, &c->target[0]);
	/* It can be picked again: the failure was none of its own. */
	if (failure != KVH_NOT_SENT && !serials_add(&c->tried, &c->n_tried,
	    &c->tried_room, serial))
		error = KVR_ENOMEM;
	if (c->evidence.failed && c->evidence.answered && other != 0 &&
	    !serials_add(&c->tried, &c->n_tried, &c->tried_room, other))
		error = KVR_ENOMEM;
	targets_leave(c);
	c->worker = 0;
	c->stage = CALL_READY;
	return error;
}

void
target_change(struct kvh_call *c, struct pool_server *s, bool target,
    uint32_t failure)
{
	/* Another target has the same header. */
	if (target)
		prefill_end(c, true, false);
	(void)target_failed(c, failure, c->target[0].status);
	if (s != NULL)
		call_moved(c, s, target);
}

void
target_follow(struct kvh_call *c)
{
	struct pool_server *s = NULL;
	uint32_t i = 0;

	if (c->target[0].failure == 0)
		return;
	while (i < c->n_targets && c->target[i].failure != 0)
		i++;
	pool_lock(c->h);
	if (i < c->n_targets) {
		s = c->target[i].server;
		s->refs++;
	}
	pool_unlock(c->h);
	target_change(c, s, s != NULL, c->target[0].failure);
	if (s == NULL)
		return;
	pool_lock(c->h);
	s->refs--;
	pool_unlock(c->h);
}

/* ------------------------------------------------------------------ end --- */

static void
lease_finish(struct kvh_call *c, bool whole)
{
	struct write_due write = { .kind = WRITE_FINISH, .id = c->lease,
	    .report = c->passing.report };

	write.prompt = passing_end(&c->passing, &c->h->spares, c->h->k,
	    c->h->options.reasoning == 1, whole, c->h->fleet.shared);
	c->lease = 0;
	if (write.id != 0)
		(void)writes_do(&c->h->writes, &write, c->now);
	else
		spare_prompt_back(&c->h->spares, write.prompt);
}

/* The response is not shown: the prompt counts as load for its usual time. */
static void
prompt_observe(struct kvh_call *c)
{
	struct write_due write = { .kind = WRITE_RECORD, .id = c->worker };

	if (c->prompt == NULL || c->worker == 0)
		return;
	write.prompt = c->prompt;
	c->prompt = NULL;
	(void)writes_do(&c->h->writes, &write, c->now);
}

static void
report_make(struct kvh_call *c, bool whole)
{
	const struct passing_way way = { .endpoint = c->endpoint,
	    .facts = &c->facts, .decision = &c->decision,
	    .proves = c->tries == 1 && !c->late && whole &&
	    c->opinion == REASON_COST, .apart = c->prefill_length > 0,
	    .now = c->now };

	passing_report(&c->passing, &way, c->h->fleet.shared);
}

static void
sent_over(struct kvh_call *c, uint32_t how)
{
	const bool taken = c->taken && how != KVH_GIVEN_UP;
	const bool whole = taken && how == KVH_WHOLE;
	const bool unseen = !c->taken && c->stage == CALL_SENT &&
	    (how == KVH_NOT_SEEN || how == KVH_WHOLE);

	c->evidence.failed = how == KVH_ENGINE_BROKE || (!c->taken &&
	    evidence_is_refusal(c->status) && how != KVH_CLIENT_LEFT);
	c->evidence.answered = c->status > 0;
	c->evidence.cools = how == KVH_ENGINE_BROKE || (c->evidence.failed &&
	    c->h->options.gray == 0);
	if (how == KVH_ENGINE_BROKE && c->taken)
		pool_count(c->h, COUNT_BROKEN, 1);
	if (taken)
		report_make(c, whole);
	gray_end(c, taken, how == KVH_CLIENT_LEFT);
	failure_count(c);
	if (taken)
		lease_finish(c, whole);
	else
		lease_drop(c);
	prefill_end(c, taken || unseen, c->evidence.failed &&
	    c->evidence.answered && how != KVH_ENGINE_BROKE);
	if (unseen)
		prompt_observe(c);
}

static void
status_count(struct kvh_call *c)
{
	const uint32_t kind = c->status < 500 ? c->status / 100 : 5;

	if (kind >= 2)
		pool_count(c->h, (enum count)(COUNT_SUCCESS + kind - 2), 1);
}

void
call_over(struct kvh_call *c, uint32_t how)
{
	if (how == KVH_CLIENT_LEFT)
		pool_count(c->h, COUNT_CLIENTS_LEFT, 1);
	if (c->stage == CALL_SENT)
		target_follow(c);
	if (c->n_targets > 0) {
		sent_over(c, how);
		trace_line(c);
	}
	targets_leave(c);
	wait_over(c);
	status_count(c);
	pool_time(c->h, HISTOGRAM_REQUEST, c->now - c->began);
	body_leave(c);
	prompt_leave(c);
	passing_leave(&c->passing, &c->h->spares);
	c->stage = CALL_ENDED;
}
