/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.c - public calls on requests: match, route, observe, expire, and
 * the life of a lease. Check every argument, take the lock, call inward.
 */
#include "entry.h"
#include "lease.h"
#include "match.h"
#include "order.h"
#include "policy.h"
#include "rate.h"
#include "retain.h"
#include "route.h"
#include "txn.h"
#include "worker.h"

enum { FOUND_BASE_MAX = 1 << 30 }; /* leaves more than a call can use */

/* -------------------------------------------------------- match, route --- */

/*
 * Scratch of the prompt for what a match finds: a row of overlaps, and where
 * in it each slot's is.
 */
static int
found_begin(const struct kvr *k, struct kvr_prompt *p, struct found_set *set)
{
	uint32_t slots = k->layout.slots;
	size_t row = slots * sizeof(*set->rows);
	size_t places = slots * sizeof(*set->places);
	char *memory = prompt_scratch(p, row + places);

	if (memory == NULL)
		return KVR_ENOMEM;
	if (p->found_slots != slots || p->found_base > FOUND_BASE_MAX) {
		memset(memory + row, 0, places);
		p->found_slots = slots;
		p->found_base = 1;
	}
	set->next_base = &p->found_base;
	set->room = slots;
	set->rows = (struct kvr_overlap *)(void *)memory;
	set->found = set->rows;
	set->places = (uint32_t *)(void *)(memory + row);
	return KVR_OK;
}

/*
 * Can the caller's array be written while it is found? Not if the call may
 * fail yet: a handle to read takes no lock when its patience ends, and one that
 * must not sleep perhaps none.
 */
static bool
found_directly(const struct kvr *k, const void *array, size_t element,
    size_t capacity)
{
	return !k->readonly && !atomic_load_explicit(&k->nowait,
	    memory_order_relaxed) && element == sizeof(struct kvr_overlap) &&
	    capacity >= k->layout.names &&
	    (uintptr_t)array % _Alignof(struct kvr_overlap) == 0;
}

static void
overlaps_write(const struct found_set *set, void *out, size_t element,
    size_t capacity)
{
	size_t n = set->count < capacity ? set->count : capacity, i;
	size_t length = element < sizeof(*set->found) ? element
	    : sizeof(*set->found);

	for (i = 0; i < n; i++)
		memcpy((char *)out + i * element, &set->found[i], length);
}

int
kvr_match(const struct kvr *k, struct kvr_prompt *p, int64_t now,
    struct kvr_overlap *out, size_t element, size_t capacity, size_t *count)
{
	struct txn c = { 0 };
	struct found_set set;
	bool directly;
	int error = txn_check_prompt(k, p);

	if (error == KVR_OK && (count == NULL || (capacity > 0 &&
	    (out == NULL || element < sizeof(uint64_t)))))
		error = KVR_EINVAL;
	if (error == KVR_OK)
		error = found_begin(k, p, &set);
	if (error != KVR_OK)
		return error;
	directly = found_directly(k, out, element, capacity);
	if (directly) {
		set.rows = out;
		set.room = k->layout.names;
	}
	do {
		error = txn_read_begin(k, &c, now, 0);
		if (error != KVR_OK)
			return error;
		match_overlaps(k, p, c.now, &set);
	} while (!txn_read_valid(k, &c));
	*count = set.count;
	if (!directly)
		overlaps_write(&set, out, element, capacity);
	return KVR_OK;
}

/* The caller's request over the defaults, checked. */
static int
request_get(const struct kvr_request *from, struct kvr_request *r)
{
	int error = KVR_OK;

	(void)kvr_request_init(r, sizeof(*r));
	if (from != NULL)
		error = struct_get(r, sizeof(*r), from);
	return error == KVR_OK ? policy_check_request(r) : error;
}

static void
decision_write(const struct kvr_prompt *p, const struct choice *c,
    uint64_t lease, uint32_t recorded, struct kvr_decision *out)
{
	struct kvr_decision d;

	memset(&d, 0, sizeof(d));
	d.worker = c->worker;
	d.lease = lease;
	d.prompt_tokens = prompt_tokens(p);
	d.overlap_tokens = c->tokens;
	d.cost = c->cost;
	d.prompt_blocks = p->blocks;
	d.overlap_blocks = c->blocks;
	d.recorded_blocks = recorded;
	d.reason = c->reason;
	d.eligible = c->eligible;
	struct_put(out, out->size, &d, sizeof(d));
}

/* What route, choose, candidates and the reserves have in common. */
static int
ask(const struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, struct kvr_request *r,
    struct found_set *set)
{
	int error = txn_check_prompt(k, p);

	if (error == KVR_OK)
		error = request_get(request, r);
	if (error == KVR_OK)
		error = found_begin(k, p, set);
	return error;
}

static bool
decision_ok(const struct kvr_decision *out)
{
	return out != NULL && struct_has_size(out->size);
}

int
kvr_route(const struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, int64_t now, struct kvr_decision *out)
{
	struct txn c = { 0 };
	struct found_set set;
	struct kvr_request r;
	struct choice choice;
	int error = ask(k, p, request, &r, &set), looked;

	if (error == KVR_OK && !decision_ok(out))
		error = KVR_EINVAL;
	if (error != KVR_OK)
		return error;
	do {
		looked = txn_read_begin(k, &c, now, r.flags & KVR_NOWAIT);
		if (looked != KVR_OK)
			return looked;
		match_overlaps(k, p, c.now, &set);
		error = route_choose(k, p, &r, &set, c.now, &choice);
	} while (!txn_read_valid(k, &c));
	if (error == KVR_OK)
		decision_write(p, &choice, 0, 0, out);
	return error;
}

/* Nothing in the caller's array may be meant for a newer library. */
static int
overlaps_check(const char *overlaps, size_t element, size_t n)
{
	struct kvr_overlap o;
	size_t i, length = element < sizeof(o) ? element : sizeof(o);

	if (n > 0 && (overlaps == NULL || element < sizeof(o.worker) ||
	    element > STRUCT_BYTES_MAX))
		return KVR_EINVAL;
	memset(&o, 0, sizeof(o));
	for (i = 0; i < n; i++, overlaps += element) {
		memcpy(&o, overlaps, length);
		if (o.reserved != 0)
			return KVR_EINVAL;
		if (!struct_known(overlaps, element, sizeof(o)))
			return KVR_ENEWER;
	}
	return KVR_OK;
}

/* Copies the caller's overlaps, each as far as both sides know it. */
static void
found_copy(const struct kvr *k, const char *overlaps, size_t element,
    size_t n, struct found_set *set)
{
	size_t i, length = element < sizeof(*set->rows) ? element
	    : sizeof(*set->rows);
	struct kvr_overlap o;
	uint32_t slot;

	memset(&o, 0, sizeof(o));
	for (i = 0; i < n; i++) {
		memcpy(&o, overlaps + i * element, length);
		if (!worker_slot(k, o.worker, &slot))
			continue;
		if (!found_has(set, slot))
			set->places[slot] = set->base + set->count++;
		set->rows[set->places[slot] - set->base] = o;
	}
}

/*
 * The caller's overlaps; those of workers that are gone are in no place, and
 * of two of one worker the later counts.
 */
static void
found_given(const struct kvr *k, const struct kvr_overlap *overlaps,
    size_t element, size_t n, struct found_set *set)
{
	uint32_t slot, i;

	found_none(k, set);
	if (element != sizeof(*overlaps) || n > k->layout.slots ||
	    (uintptr_t)overlaps % _Alignof(struct kvr_overlap) != 0) {
		set->found = set->rows;
		found_copy(k, (const char *)overlaps, element, n, set);
		return;
	}
	set->found = overlaps;
	set->count = (uint32_t)n;
	for (i = 0; i < set->count; i++)
		if (worker_slot(k, overlaps[i].worker, &slot))
			set->places[slot] = set->base + i;
}

int
kvr_choose(const struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, const struct kvr_overlap *overlaps,
    size_t element, size_t n, int64_t now, struct kvr_decision *out)
{
	struct txn c = { 0 };
	struct found_set set;
	struct kvr_request r;
	struct choice choice;
	int error = ask(k, p, request, &r, &set), looked;

	if (error == KVR_OK && !decision_ok(out))
		error = KVR_EINVAL;
	if (error == KVR_OK)
		error = overlaps_check((const char *)overlaps, element, n);
	if (error != KVR_OK)
		return error;
	do {
		looked = txn_read_begin(k, &c, now, r.flags & KVR_NOWAIT);
		if (looked != KVR_OK)
			return looked;
		found_given(k, overlaps, element, n, &set);
		error = route_choose(k, p, &r, &set, c.now, &choice);
	} while (!txn_read_valid(k, &c));
	if (error == KVR_OK)
		decision_write(p, &choice, 0, 0, out);
	return error;
}

/* Since when is the overlap known: 0 while pinned, -1 without any. */
static int64_t
age_of(const struct question *q, const struct kvr_overlap *o, uint32_t slot,
    int64_t now)
{
	uint32_t entry;

	if (o->blocks == 0)
		return -1;
	if (o->active_blocks == o->blocks)
		return 0;
	entry = entry_find(q->k, index_find(q->k, q->p, o->blocks), slot);
	if (entry == 0 || entry_at(q->k, entry)->stamp < 0)
		return -1;
	return now - entry_at(q->k, entry)->stamp;
}

static void
candidate_fill(const struct question *q, uint32_t slot, int64_t now,
    struct kvr_candidate *c)
{
	const struct slot *s = slot_at(q->k, slot);
	const struct kvr_overlap *o = found_of(q->set, slot);

	memset(c, 0, sizeof(*c));
	c->worker = worker_id(q->k, slot);
	c->overlap_tokens = route_expected(q, slot);
	c->backlog = rate_backlog(q->k, slot, now);
	c->prefill_tokens = s->prefill;
	c->decode_blocks = s->blocks;
	c->requests = s->requests;
	c->age_ns = age_of(q, o, slot, now);
	c->cost = route_cost(q, slot);
	c->overlap_blocks = o->blocks;
	c->new_decode_blocks = question_new_blocks(q->p, &q->request, o);
	c->verdict = route_verdict(q, slot);
}

static size_t
candidates_write(const struct question *q, int64_t now, char *out,
    size_t element, size_t capacity)
{
	struct kvr_candidate o;
	size_t n = 0, length = element < sizeof(o) ? element : sizeof(o);
	uint32_t slot;

	for (slot = 0; slot < slots_used(q->k); slot++) {
		if (!slot_in_use(q->k, slot))
			continue;
		if (n < capacity) {
			candidate_fill(q, slot, now, &o);
			memcpy(out + n * element, &o, length);
		}
		n++;
	}
	return n;
}

int
kvr_candidates(const struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, int64_t now, struct kvr_candidate *out,
    size_t element, size_t capacity, size_t *count)
{
	struct found_set set;
	struct kvr_request r;
	struct question q;
	struct txn c;
	int error = ask(k, p, request, &r, &set);

	if (error == KVR_OK && (count == NULL || (capacity > 0 &&
	    (out == NULL || element < sizeof(uint64_t)))))
		error = KVR_EINVAL;
	if (error == KVR_OK && k->readonly)
		error = KVR_EREADONLY;
	if (error == KVR_OK)
		error = txn_read_locked(k, &c, now);
	if (error != KVR_OK)
		return error;
	match_overlaps(k, p, c.now, &set);
	error = route_begin(&q, k, p, &r, &set, c.now);
	if (error == KVR_OK)
		*count = candidates_write(&q, c.now, (char *)out, element,
		    capacity);
	return txn_read_end(k, &c, error);
}

/* ---------------------------------------------------- observe, expire --- */

int
kvr_observe(struct kvr *k, struct kvr_prompt *p, uint64_t worker, int64_t now,
    uint32_t flags, uint32_t *recorded_blocks)
{
	struct insert how = { .in_place = true };
	struct txn c;
	uint32_t slot, node, recorded;
	uint64_t held;
	int error = txn_check_prompt(k, p);

	if (error == KVR_OK)
		error = txn_write_begin(k, &c, now, flags);
	if (error != KVR_OK)
		return error;
	if (!worker_slot(k, worker, &slot))
		return txn_write_end(k, &c, KVR_EWORKER);
	how.want = lease_blocks(k, p);
	held = slot_at(k, slot)->held;
	node = retain_insert(k, p, slot, &how, c.now, &recorded);
	index_stamp(k, node, slot, c.now);
	retain_used(k, slot, held);
	k->region->counts.observes++;
	if (recorded_blocks != NULL)
		*recorded_blocks = recorded;
	return txn_write_end(k, &c, KVR_OK);
}

int
kvr_expire(struct kvr *k, int64_t now, uint32_t budget, uint32_t *left)
{
	struct txn c;
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	error = txn_write_begin(k, &c, now, 0);
	if (error != KVR_OK)
		return error;
	c.budget = 0;
	retain_expire(k, c.now, budget);
	if (left != NULL)
		*left = retain_due(k, c.now);
	return txn_write_end(k, &c, KVR_OK);
}

int
kvr_next_expiry(const struct kvr *k, int64_t *due)
{
	struct txn c;
	int64_t oldest;
	int error;

	if (k == NULL || due == NULL)
		return KVR_EINVAL;
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	oldest = k->due[order_due_slot(k)];
	error = txn_read_end(k, &c, KVR_OK);
	if (error == KVR_OK)
		*due = oldest <= CLOCK_MAX ? oldest : INT64_MAX;
	return error;
}

/* -------------------------------------------------------------- leases --- */

/* Books a choice that has been made. */
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
	b.record = (choice->flags & KVR_IGNORE_REUSE) == 0;
	lease = lease_open(k, p, &b, now, &recorded);
	k->region->counts.lease_opens++;
	s->lease_opens++;
	s->prompt_tokens += prompt_tokens(p);
	s->predicted_tokens += b.cached;
	decision_write(p, choice, lease, recorded, out);
}

/* No choice: the worker that the caller took, be it eligible or not. */
static int
take_given(const struct kvr *k, const struct kvr_prompt *p,
    struct kvr_request *r, const struct found_set *set, uint64_t worker,
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
	out->cost = route_cost(&q, out->slot);
	out->reason = KVR_REASON_PINNED;
	out->eligible = q.eligible;
	out->blocks = found_of(set, out->slot)->blocks;
	out->active = found_of(set, out->slot)->active_blocks;
	out->tokens = r->overlap_blocks == KVR_AUTO
	    ? route_expected(&q, out->slot)
	    : prompt_blocks_tokens(p, r->overlap_blocks);
	if (out->tokens > prompt_tokens(p))
		out->tokens = prompt_tokens(p);
	return KVR_OK;
}

static int
reserve(struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, const uint64_t *worker, int64_t now,
    struct kvr_decision *out)
{
	struct found_set set;
	struct kvr_request r;
	struct choice choice;
	struct txn c;
	int error = ask(k, p, request, &r, &set);

	if (error == KVR_OK && !decision_ok(out))
		error = KVR_EINVAL;
	if (error == KVR_OK)
		error = txn_write_begin(k, &c, now, r.flags & KVR_NOWAIT);
	if (error != KVR_OK)
		return error;
	match_overlaps(k, p, c.now, &set);
	if (worker != NULL)
		error = take_given(k, p, &r, &set, *worker, c.now, &choice);
	else
		error = route_choose(k, p, &r, &set, c.now, &choice);
	if (error == KVR_OK) {
		k->region->counts.steps += set.steps;
		book(k, p, &r, &choice, c.now, out);
	}
	return txn_write_end(k, &c, error);
}

int
kvr_lease_open(struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, int64_t now, struct kvr_decision *out)
{
	return reserve(k, p, request, NULL, now, out);
}

int
kvr_lease_open_on(struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, uint64_t worker, int64_t now,
    struct kvr_decision *out)
{
	return reserve(k, p, request, &worker, now, out);
}

/* Begins a writing call on a lease; KVR_OK: the lock is held. */
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
	k->region->counts.lease_commits++;
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

/* The caller's report, NULL for none, over an empty one; checked. */
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
	k->region->counts.lease_finishes++;
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
	k->region->counts.lease_aborts++;
	return txn_write_end(k, &c, KVR_OK);
}

int
kvr_owner_reap(struct kvr *k, uint64_t owner, int64_t now, uint32_t *ended)
{
	struct txn c;
	uint32_t n;
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	error = txn_write_begin(k, &c, now, 0);
	if (error != KVR_OK)
		return error;
	n = lease_reap_owner(k, owner, c.now);
	if (ended != NULL)
		*ended = n;
	return txn_write_end(k, &c, KVR_OK);
}
