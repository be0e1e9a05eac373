/* SPDX-License-Identifier: BSD-2-Clause */
/* call_shadow.c - see call_shadow.h. */
#include "call_shadow.h"

#include "call_book.h"
#include "call_look.h"
#include "least.h"
#include "pool_count.h"

bool
shadow_wants(struct kvh_call *c, struct kvr_decision *wanted)
{
	struct kvr_request r;
	bool splits;
	size_t n;
	int error;

	if (c->opinion != REASON_COST)
		return false;
	error = workers_allow(c, &n, &splits);
	if (error == KVR_OK)
		error = kvr_prompt_allow(c->prompt, c->some, n);
	request_make(c, &r);
	wanted->size = sizeof(*wanted);
	if (error == KVR_OK)
		error = kvr_route(c->h->k, c->prompt, &r, c->now, wanted);
	c->reason = error == KVR_OK ? (enum reason)wanted->reason :
	    reason_of_error(error);
	return error == KVR_OK;
}

/* The next server in turn that is in use. */
static size_t
turn_next(struct fleet *f, bool closed)
{
	size_t i, at;

	for (i = 0; i < f->n_known; i++) {
		at = (f->turn + i) % f->n_known;
		if (!f->known[at].usable || f->known[at].closed != closed)
			continue;
		f->turn = at + 1;
		return at;
	}
	return f->n_known;
}

size_t
shadow_next(struct kvh_call *c)
{
	struct fleet *f = &c->h->fleet;
	size_t at;

	if (c->h->options.shadow != POOL_ROUND_ROBIN)
		return least_loaded(f);
	at = turn_next(f, false);
	return at < f->n_known ? at : turn_next(f, true);
}

void
shadow_count(struct kvh_call *c, const struct kvr_decision *wanted)
{
	struct kvh *h = c->h;

	pool_count(h, COUNT_SHADOW, 1);
	pool_count(h, COUNT_SHADOW_SAME, wanted->worker == c->worker);
	pool_count(h, COUNT_SHADOW_BLOCKS, wanted->prompt_blocks);
	pool_count(h, COUNT_SHADOW_WANTED, wanted->overlap_blocks);
	pool_count(h, COUNT_SHADOW_TAKEN, c->decision.overlap_blocks);
}
