/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lease_api.c - public calls on leases and their owners. Each checks its
 * arguments, enters the transaction and calls inward.
 */
#include "lease.h"

#include "expect.h"
#include "lease_record.h"
#include "lease_walk.h"
#include "load.h"
#include "request.h"
#include "route.h"
#include "session.h"
#include "txn.h"

/* ------------------------------------------------------------- opening --- */

/* Opens a lease on the chosen worker and counts it. */
static uint64_t
book_lease(struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *r, const struct choice *choice, int64_t now,
    struct kvr_decision *out)
{
	struct slot *s = slot_at(k, choice->slot);
	uint32_t recorded;
	uint64_t lease;

	lease = lease_open(k, p, r, choice, now, &recorded);
	add_once(k->region->counts.lease_opens, 1);
	add_once(s->lease_opens, 1);
	add_once(s->prompt_tokens, prompt_tokens(p));
	add_once(s->predicted_tokens, choice->tokens);
	add_once(s->best_tokens, choice->best_tokens);
	add_once(k->region->counts.prompt_tokens, prompt_tokens(p));
	add_once(k->region->counts.predicted_tokens, choice->tokens);
	add_once(k->region->counts.best_tokens, choice->best_tokens);
	if (choice->affinity == KVR_AFFINITY_HIT ||
	    choice->affinity == KVR_AFFINITY_MOVED)
		add_once(k->region->counts.bindings_found, 1);
	decision_write(p, choice, lease, recorded, out);
	return lease;
}

/* About so many tokens in whole blocks. */
static uint32_t
tokens_blocks(const struct kvr_prompt *p, uint64_t tokens)
{
	uint64_t units = p->rule.unit == KVR_UNIT_BYTES ? 4 * tokens : tokens;
	uint64_t blocks = (units + p->rule.block_size / 2) /
	    p->rule.block_size;

	return blocks < p->blocks ? (uint32_t)blocks : p->blocks;
}

/* Records a lease that was opened, if there was room for it. */
static const uint64_t *
record_open(struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *request, const struct choice *choice,
    uint64_t lease, int64_t now, struct journal_place *place)
{
	const uint64_t *hashes;
	struct kvr_record r;

	if (lease == 0 || !journal_on(k))
		return NULL;
	lease_record(k, lease_find(k, lease), KVR_RECORD_OPEN, now, &r);
	r.worker = choice->worker;
	r.overlap_tokens = choice->tokens;
	r.overlap_blocks = tokens_blocks(p, choice->tokens);
	r.affinity = choice->session;
	r.affinity_ttl = r.affinity != 0 ? request->affinity_ttl : 0;
	r.stage = request->stage;
	r.flags = request->flags & ~(uint32_t)KVR_NOWAIT;
	r.share = request->share;
	hashes = lease_record_prompt(p, 0, &r);
	journal_begin(k, &r, place);
	return hashes;
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
	session_close(&q, out);
	out->blocks = found_of(set, out->slot)->blocks;
	out->active = found_of(set, out->slot)->active_blocks;
	out->usable = route_usable(&q, out->slot);
	if (r->overlap_blocks != KVR_AUTO)
		out->tokens = prompt_blocks_tokens(p, r->overlap_blocks);
	if (out->tokens > prompt_tokens(p))
		out->tokens = prompt_tokens(p);
	out->best = worker; /* the caller has chosen it */
	out->best_tokens = out->tokens;
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
	struct journal_place place = { 0 };
	const uint64_t *hashes = NULL;
	struct txn c;
	uint64_t lease;
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
		lease = book_lease(k, p, &r, &choice, c.now, out);
		hashes = record_open(k, p, &r, &choice, lease, c.now, &place);
	}
	error = txn_write_end(k, &c, error);
	journal_end(k, &place, hashes);
	return error;
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

/* Before a lease is ended. blocks: of output; report: the engine's. */
static void
record_end(struct kvr *k, uint32_t lease, uint32_t kind, uint32_t blocks,
    const struct kvr_report *report, int64_t now)
{
	struct kvr_record r;

	if (!journal_on(k))
		return;
	lease_record(k, lease, kind, now, &r);
	r.blocks = blocks;
	if (report != NULL)
		r.report = *report;
	journal_put(k, &r);
}

/*
 * Begins a writing call on a lease. The lock is held if *found is not 0. No
 * lease, for which there was no room, is not an error.
 */
static int
lease_begin(struct kvr *k, struct txn *c, uint64_t lease, int64_t now,
    uint32_t flags, uint32_t *found)
{
	int error;

	*found = 0;
	if (k == NULL)
		return KVR_EINVAL;
	error = txn_write_begin(k, c, now, flags);
	if (error != KVR_OK)
		return error;
	*found = lease_find(k, lease);
	return *found != 0 ? KVR_OK : txn_write_end(k, c, lease == 0 ? KVR_OK
	    : KVR_ELEASE);
}

static void
commit_lease(struct kvr *k, uint32_t lease, int64_t now)
{
	lease_commit(k, lease, now);
	record_end(k, lease, KVR_RECORD_COMMIT, 0, NULL, now);
	add_once(k->region->counts.lease_commits, 1);
}

int
kvr_lease_commit(struct kvr *k, uint64_t lease, int64_t now, uint32_t flags)
{
	struct txn c;
	uint32_t l;
	int error = lease_begin(k, &c, lease, now, flags, &l);

	if (l == 0)
		return error;
	commit_lease(k, l, c.now);
	return txn_write_end(k, &c, KVR_OK);
}

int
kvr_lease_first_token(
    struct kvr *k, uint64_t lease, int64_t now, uint32_t flags)
{
	struct txn c;
	uint32_t l;
	int error = lease_begin(k, &c, lease, now, flags, &l);

	if (l == 0)
		return error;
	if (!lease_committed(k, l))
		commit_lease(k, l, c.now);
	lease_first_token(k, l, c.now);
	record_end(k, l, KVR_RECORD_FIRST_TOKEN, 0, NULL, c.now);
	return txn_write_end(k, &c, KVR_OK);
}

/* `recorded` blocks of the lease are on record before. */
static const uint64_t *
record_extend(struct kvr *k, uint32_t lease, const struct kvr_prompt *p,
    uint32_t recorded, int64_t now, struct journal_place *place)
{
	const uint64_t *hashes;
	struct kvr_record r;

	if (!journal_on(k) || lease_orphaned(k, lease_at(k, lease)))
		return NULL;
	lease_record(k, lease, KVR_RECORD_EXTEND, now, &r);
	hashes = lease_record_prompt(p, recorded, &r);
	journal_begin(k, &r, place);
	return hashes;
}

int
kvr_lease_extend(struct kvr *k, uint64_t lease, struct kvr_prompt *p,
    int64_t now, uint32_t flags)
{
	struct journal_place place = { 0 };
	const uint64_t *hashes = NULL;
	struct txn c;
	uint32_t l = 0, recorded;
	int error = txn_check_prompt_end(k, p);

	if (error == KVR_OK)
		error = lease_begin(k, &c, lease, now, flags, &l);
	if (l == 0)
		return error;
	if (!lease_extends(k, l, p))
		return txn_write_end(k, &c, KVR_EMISMATCH);
	if (!lease_committed(k, l))
		commit_lease(k, l, c.now);
	recorded = lease_at(k, l)->blocks;
	lease_extend(k, l, p, c.now);
	hashes = record_extend(k, l, p, recorded, c.now, &place);
	error = txn_write_end(k, &c, KVR_OK);
	journal_end(k, &place, hashes);
	return error;
}

int
kvr_lease_output(struct kvr *k, uint64_t lease, uint32_t blocks, int64_t now,
    uint32_t flags)
{
	struct txn c;
	uint32_t l;
	int error = lease_begin(k, &c, lease, now, flags, &l);

	if (l == 0)
		return error;
	record_end(k, l, KVR_RECORD_OUTPUT, blocks, NULL, c.now);
	lease_output(k, l, blocks);
	return txn_write_end(k, &c, KVR_OK);
}

int
kvr_report_init(struct kvr_report *report, size_t size)
{
	const struct kvr_report d = { 0 };

	return struct_init(report, size, &d, sizeof(d));
}

/* The caller's report over an empty one, checked. */
static int
report_get(const struct kvr_report *from, struct kvr_report *r)
{
	int error = KVR_OK;

	(void)kvr_report_init(r, sizeof(*r));
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
	uint32_t l = 0;
	int error = report_get(report, &r);

	if (error == KVR_OK)
		error = lease_begin(k, &c, lease, now, flags, &l);
	if (l == 0)
		return error;
	record_end(k, l, KVR_RECORD_FINISH, 0, &r, c.now);
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

	if (l == 0)
		return error;
	record_end(k, l, KVR_RECORD_ABORT, 0, NULL, c.now);
	lease_abort(k, l);
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
kvr_lease_list(const struct kvr *k, uint64_t *cursor,
    struct kvr_lease_info *out, size_t element, size_t capacity,
    size_t *count)
{
	struct txn c;
	int error;

	if (k == NULL || cursor == NULL || out == NULL ||
	    element < sizeof(uint64_t) || capacity == 0 || count == NULL)
		return KVR_EINVAL;
	if (k->readonly)
		return KVR_EREADONLY;
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	*count = lease_infos(k, cursor, (char *)out, element, capacity);
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
