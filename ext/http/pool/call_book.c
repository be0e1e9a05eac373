/* SPDX-License-Identifier: BSD-2-Clause */
/* call_book.c - see call_book.h. */
#include "call_book.h"

#include "call_trace.h"
#include "pool_count.h"
#include "pool_owner.h"

void
lease_drop(struct kvh_call *c)
{
	struct write_due write = { .kind = WRITE_ABORT, .id = c->lease };

	if (c->lease == 0)
		return;
	c->lease = 0;
	pool_count(c->h, COUNT_ABORTS, 1);
	(void)writes_do(&c->h->writes, &write, c->now);
}

void
request_make(const struct kvh_call *c, struct kvr_request *r)
{
	(void)kvr_request_init(r, sizeof(*r));
	r->owner = owner_self(c->h);
	r->flags = KVR_NOWAIT | (c->facts.stream ? 0 : KVR_NO_FIRST_TOKEN);
	if (c->h->region.tenants > 0)
		r->share = c->share > 0 ? c->share : KVR_SHARE_DEFAULT;
	/* A probe proves nothing of where its session is. */
	if (c->keeps.session == 0 || c->reason == REASON_PROBE)
		return;
	r->affinity = c->keeps.session;
	r->affinity_mode = c->h->options.affinity_mode;
	r->affinity_ttl = c->h->options.affinity_ttl;
}

/* The workers of a server, as they are known now; returns their number. */
static size_t
ids_copy(struct kvh *h, const struct pool_server *s, uint64_t *ids, size_t room)
{
	size_t i, n = 0;

	pool_lock(h);
	for (i = 0; i < s->ranks && n < room; i++)
		if (s->ids[i] != 0)
			ids[n++] = s->ids[i];
	pool_unlock(h);
	return n;
}

/* Which of an engine's ranks it was is not known: it is the best of them. */
static int
lease_open_at(const struct kvh_call *c, struct kvr_prompt *p,
    const struct pool_server *s, struct kvr_decision *d)
{
	uint64_t ids[KNOWN_RANKS_MAX];
	size_t n = ids_copy(c->h, s, ids, sizeof(ids) / sizeof(ids[0]));
	struct kvr_request r;
	int error;

	if (n == 0)
		return KVR_EBUSY;
	request_make(c, &r);
	if (c->prefill_length > 0)
		r.flags |= KVR_IGNORE_PREFILL;
	d->size = sizeof(*d);
	if (n == 1)
		return kvr_lease_open_on(c->h->k, p, &r, ids[0], c->now, d);
	error = kvr_prompt_allow(p, ids, n);
	return error != KVR_OK ? error :
	    kvr_lease_open(c->h->k, p, &r, c->now, d);
}

/* At the first target, which is given: c->worker, or any of its ranks. */
static void
prompt_book(struct kvh_call *c)
{
	struct kvr_decision *d = &c->decision;
	struct kvr_request r;
	int error;

	request_make(c, &r);
	d->size = sizeof(*d);
	error = c->worker != 0 ? kvr_lease_open_on(c->h->k, c->prompt, &r,
	    c->worker, c->now, d) : lease_open_at(c, c->prompt,
	    c->target[0].server, d);
	c->missed = error != KVR_OK;
	if (c->missed)
		return;
	c->lease = d->lease;
	c->worker = d->worker;
	trace_keep(c);
}

/* Without a prompt it is one of a byte, which is on record nowhere. */
static void
other_book(struct kvh_call *c)
{
	struct kvr_prompt *p = c->post ? spare_prompt(&c->h->spares, c->h->k) :
	    NULL;
	struct kvr_decision d;

	if (p == NULL)
		return;
	if (kvr_prompt_begin(p, NULL) == KVR_OK &&
	    kvr_prompt_bytes(p, "", 1) == KVR_OK &&
	    kvr_prompt_end(p, NULL) == KVR_OK &&
	    lease_open_at(c, p, c->target[0].server, &d) == KVR_OK)
		c->lease = d.lease;
	spare_prompt_back(&c->h->spares, p);
}

void
target_book(struct kvh_call *c)
{
	if (c->opinion == REASON_COST)
		prompt_book(c);
	else
		other_book(c);
}

void
call_book_late(struct kvh_call *c)
{
	const struct pool_server *s = c->target[0].server;
	struct write_due write = { .kind = WRITE_RECORD };
	struct kvr_decision d;
	int error;

	if (!c->missed || c->lease != 0 || c->prompt == NULL ||
	    c->n_targets == 0 || c->target[0].ranks != 1)
		return;
	c->missed = false;
	error = lease_open_at(c, c->prompt, s, &d);
	if (error == KVR_OK) {
		c->lease = d.lease;
	} else if (error == KVR_EBUSY &&
	    ids_copy(c->h, s, &write.id, 1) == 1) {
		write.prompt = c->prompt;
		c->prompt = NULL;
		(void)writes_do(&c->h->writes, &write, c->now);
	} else {
		return;
	}
	c->late = true;
	pool_count(c->h, COUNT_LATE, 1);
}
