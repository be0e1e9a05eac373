/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lease_api.c - public calls on leases and their owners. Each checks its
 * arguments, enters the transaction and calls inward.
 */
#include "lease.h"

#include "lease_walk.h"
#include "request.h"
#include "route.h"
#include "txn.h"
#include "worker.h"

/* ------------------------------------------------------------- opening --- */

/* Opens a lease on the chosen worker and counts it. */
static void
book(struct kvr *k, const struct kvr_prompt *p, const struct kvr_request *r,
    const struct choice *choice, int64_t now, struct kvr_decision *out)
{
	struct slot *s = slot_at(k, choice->slot);
	struct booking b;
	uint32_t recorded;
	uint64_t lease;

	b.owner = r->owner;
	b.slot = choice->slot;
	b.cached = choice->tokens;
	b.overlap = choice->blocks;
	b.active = choice->active;
	b.count_prefill = (choice->flags & KVR_IGNORE_PREFILL) == 0;
	b.silent = (choice->flags & KVR_NO_FIRST_TOKEN) != 0;
	b.record = (choice->flags & KVR_IGNORE_REUSE) == 0;
	lease = lease_open(k, p, &b, now, &recorded);
	add_once(k->region->counts.lease_opens, 1);
	add_once(s->lease_opens, 1);
	add_once(s->prompt_tokens, prompt_tokens(p));
	add_once(s->predicted_tokens, b.cached);
	decision_write(p, choice, lease, recorded, out);
}

/* The choice of a worker that the caller names, eligible or not. */
static int
choice_given(const struct kvr *k, const struct kvr_prompt *p,
    struct kvr_request *r, struct found_set *set, uint64_t worker,
    int64_t now, struct choice *out)
{
	struct question q;
	int error;

	r->pinned = worker;
	if (!worker_slot(k, worker, &out->slot))
		return KVR_EWORKER;
	error = route_begin(&q, k, p, r, set, now);
	if (error != KVR_OK)
		return error;
	out->worker = worker;
	out->flags = q.request.flags;
	out->cost = route_cost(&q, out->slot, &out->tokens);
	out->reason = KVR_REASON_PINNED;
	out->eligible = q.eligible;
	out->blocks = found_of(set, out->slot)->blocks;
	out->active = found_of(set, out->slot)->active_blocks;
	if (r->overlap_blocks != KVR_AUTO)
		out->tokens = prompt_blocks_tokens(p, r->overlap_blocks);
	if (out->tokens > prompt_tokens(p))
		out->tokens = prompt_tokens(p);
	return KVR_OK;
}

static int
open_lease(struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, const uint64_t *worker, int64_t now,
    struct kvr_decision *out)
{
	struct found_set set;
	struct kvr_request r;
	struct choice choice;
	struct txn c;
	int error = request_begin(k, p, request, &r, &set);

	if (error == KVR_OK && !decision_ok(out))
		error = KVR_EINVAL;
	if (error == KVR_OK)
		error = txn_write_begin(k, &c, now, r.flags & KVR_NOWAIT);
	if (error != KVR_OK)
		return error;
	match_overlaps(k, p, c.now, &set);
	if (worker != NULL)
		error = choice_given(k, p, &r, &set, *worker, c.now, &choice);
	else
		error = route_choose(k, p, &r, &set, c.now, &choice);
	if (error == KVR_OK) {
		add_once(k->region->counts.steps, set.steps);
		book(k, p, &r, &choice, c.now, out);
	}
	return txn_write_end(k, &c, error);
}

int
kvr_lease_open(struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, int64_t now, struct kvr_decision *out)
{
	return open_lease(k, p, request, NULL, now, out);
}

int
kvr_lease_open_on(struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, uint64_t worker, int64_t now,
    struct kvr_decision *out)
{
	return open_lease(k, p, request, &worker, now, out);
}

/* -------------------------------------------------------- after opening --- */

/* Begins a writing call on a lease. The lock is held if it gives KVR_OK. */
static int
lease_begin(struct kvr *k, struct txn *c, uint64_t lease, int64_t now,
    uint32_t flags, uint32_t *found)
{
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	error = txn_write_begin(k, c, now, flags);
	if (error != KVR_OK)
		return error;
	*found = lease_find(k, lease);
	return *found != 0 ? KVR_OK : txn_write_end(k, c, KVR_ELEASE);
}

int
kvr_lease_commit(struct kvr *k, uint64_t lease, int64_t now, uint32_t flags)
{
	struct txn c;
	uint32_t l;
	int error = lease_begin(k, &c, lease, now, flags, &l);

	if (error != KVR_OK)
		return error;
	lease_commit(k, l, c.now);
	add_once(k->region->counts.lease_commits, 1);
	return txn_write_end(k, &c, KVR_OK);
}

int
kvr_lease_first_token(
    struct kvr *k, uint64_t lease, int64_t now, uint32_t flags)
{
	struct txn c;
	uint32_t l;
	int error = lease_begin(k, &c, lease, now, flags, &l);

	if (error != KVR_OK)
		return error;
	return txn_write_end(k, &c, lease_first_token(k, l, c.now));
}

int
kvr_lease_extend(struct kvr *k, uint64_t lease, struct kvr_prompt *p,
    int64_t now, uint32_t flags)
{
	struct txn c;
	uint32_t l;
	int error = txn_check_prompt(k, p);

	if (error == KVR_OK)
		error = lease_begin(k, &c, lease, now, flags, &l);
	if (error != KVR_OK)
		return error;
	return txn_write_end(k, &c, lease_extend(k, l, p, c.now));
}

int
kvr_lease_output(struct kvr *k, uint64_t lease, uint32_t blocks, int64_t now,
    uint32_t flags)
{
	struct txn c;
	uint32_t l;
	int error = lease_begin(k, &c, lease, now, flags, &l);

	if (error != KVR_OK)
		return error;
	lease_output(k, l, blocks);
	return txn_write_end(k, &c, KVR_OK);
}

/* The caller's report over an empty one, checked. */
static int
report_get(const struct kvr_report *from, struct kvr_report *r)
{
	int error = KVR_OK;

	memset(r, 0, sizeof(*r));
	if (from != NULL)
		error = struct_get(r, sizeof(*r), from);
	if (error == KVR_OK && (r->kind > KVR_REPORT_VALUE ||
	    r->reserved != 0 ||
	    r->flags > (KVR_REPORT_STREAM | KVR_REPORT_NO_EVIDENCE)))
		error = KVR_EINVAL;
	return error;
}

int
kvr_lease_finish(struct kvr *k, uint64_t lease, const struct kvr_report *report,
    int64_t now, uint32_t flags)
{
	struct kvr_report r;
	struct txn c;
	uint32_t l;
	int error = report_get(report, &r);

	if (error == KVR_OK)
		error = lease_begin(k, &c, lease, now, flags, &l);
	if (error != KVR_OK)
		return error;
	lease_finish(k, l, &r, c.now);
	add_once(k->region->counts.lease_finishes, 1);
	return txn_write_end(k, &c, KVR_OK);
}

int
kvr_lease_abort(struct kvr *k, uint64_t lease, int64_t now, uint32_t flags)
{
	struct txn c;
	uint32_t l;
	int error = lease_begin(k, &c, lease, now, flags, &l);

	if (error != KVR_OK)
		return error;
	lease_abort(k, l, c.now);
	add_once(k->region->counts.lease_aborts, 1);
	return txn_write_end(k, &c, KVR_OK);
}

/* -------------------------------------------------------------- owners --- */

int
kvr_owner_list(const struct kvr *k, uint64_t *cursor, uint64_t *owners,
    size_t capacity, size_t *count)
{
	struct txn c;
	int error;

	if (k == NULL || cursor == NULL || owners == NULL || capacity == 0 ||
	    count == NULL)
		return KVR_EINVAL;
	if (k->readonly)
		return KVR_EREADONLY;
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	*count = lease_owners(k, cursor, owners, capacity);
	return txn_read_end(k, &c, KVR_OK);
}

int
kvr_owner_reap(struct kvr *k, uint64_t owner, int64_t now, uint64_t *cursor,
    uint32_t *ended)
{
	struct txn c;
	uint32_t n;
	int error;

	if (k == NULL || cursor == NULL)
		return KVR_EINVAL;
	error = txn_write_begin(k, &c, now, 0);
	if (error != KVR_OK)
		return error;
	n = lease_reap_owner(k, owner, c.now, cursor);
	if (ended != NULL)
		*ended = n;
	return txn_write_end(k, &c, KVR_OK);
}
