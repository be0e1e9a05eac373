/* SPDX-License-Identifier: BSD-2-Clause */
/* call_prefill.c - see call_prefill.h. */
#include "call_prefill.h"

#include <string.h>

#include "call_look.h"
#include "pool_count.h"
#include "pool_server.h"
#include "roles.h"

static const char header[] = "x-prefiller-host-port: ";
_Static_assert(sizeof(header) + KVR_NAME_MAX <= CALL_PREFILL_MAX, "room");

/* --------------------------------------------------------------- choice --- */

/* The workers that may prefill for the target: c->some; returns how many. */
static size_t
workers_list(struct kvh_call *c)
{
	const struct pool_server *target = c->target[0].server;
	struct kvh *h = c->h;
	size_t n = 0;

	pool_lock(h);
	if (!target->gone && roles_leaves(&h->fleet, target->at,
	    &c->decision)) {
		look_mark_best(c);
		n = roles_allow(&h->fleet, target->name, target->length);
		n = call_some(c, n) ? n : 0;
	}
	pool_unlock(h);
	return n;
}

/* Takes the server of a worker; false: it is gone or full by now. */
static bool
worker_take(struct kvh_call *c, uint64_t worker)
{
	struct kvh *h = c->h;
	uint32_t rank;
	size_t at;

	pool_lock(h);
	at = known_of_worker(&h->fleet, worker, &rank);
	if (at < h->n && server_takes(h->server[at])) {
		c->prefill = h->server[at];
		c->prefill->inflight++;
	}
	pool_unlock(h);
	return c->prefill != NULL;
}

static void
header_make(struct kvh_call *c)
{
	const size_t n = sizeof(header) - 1;

	memcpy(c->prefill_text, header, n);
	memcpy(c->prefill_text + n, c->prefill->name, c->prefill->length);
	c->prefill_length = c->prefill->length;
	c->prefill_text[n + c->prefill_length] = '\0';
}

bool
prefill_choose(struct kvh_call *c, const struct kvr_request *target)
{
	struct kvr_decision d = { .size = sizeof(d) };
	size_t n = workers_list(c);

	if (!roles_book(c->h->k, c->prompt, target, c->some, n, c->now, &d))
		return false;
	c->prefill_lease = d.lease;
	if (!worker_take(c, d.worker)) {
		prefill_end(c, false, false);
		return false;
	}
	header_make(c);
	pool_count(c->h, COUNT_SPLIT, 1);
	return true;
}

/* ------------------------------------------------------------------ end --- */

void
prefill_accepted(struct kvh_call *c)
{
	if (c->prefill_lease != 0)
		(void)kvr_lease_commit(c->h->k, c->prefill_lease, c->now,
		    KVR_NOWAIT);
}

void
prefill_started(struct kvh_call *c)
{
	if (c->prefill_lease != 0)
		(void)kvr_lease_first_token(c->h->k, c->prefill_lease, c->now,
		    KVR_NOWAIT);
	prefill_end(c, true, false);
}

static void
lease_end(struct kvh_call *c, bool taken)
{
	struct write_due write = { .kind = taken ? WRITE_FINISH : WRITE_ABORT,
	    .id = c->prefill_lease };

	write.report.size = sizeof(write.report);
	write.report.flags = KVR_REPORT_NO_EVIDENCE;
	c->prefill_lease = 0;
	if (write.id != 0)
		(void)writes_do(&c->h->writes, &write, c->now);
}

void
prefill_end(struct kvh_call *c, bool taken, bool blamed)
{
	struct pool_server *s = c->prefill;

	lease_end(c, taken);
	if (s == NULL)
		return;
	c->prefill = NULL;
	pool_lock(c->h);
	s->inflight--;
	if (blamed)
		server_failed(c->h, s, c->now);
	pool_unlock(c->h);
}

void
prefill_forget(struct kvh_call *c)
{
	prefill_end(c, false, false);
	c->prefill_length = 0;
}
