/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.c - public calls on requests: match, route, choose, candidates,
 * observe, expire. Each checks its arguments, enters the transaction and calls
 * inward. Calls on leases are in lease_api.c.
 */
#include "request.h"

#include "event_stream.h"
#include "expect.h"
#include "fit.h"
#include "lease.h"
#include "lease_record.h"
#include "load.h"
#include "order.h"
#include "observed.h"
#include "policy.h"
#include "pressure.h"
#include "rate.h"
#include "retain.h"
#include "route.h"
#include "txn.h"
#include "window.h"

enum { FOUND_BASE_MAX = 1 << 30 }; /* one call cannot overflow beyond it */

/* -------------------------------------------------------- match, route --- */

/* Places the arrays of a found_set in the prompt's scratch memory. */
static int
found_begin(const struct kvr *k, struct kvr_prompt *p, struct found_set *set)
{
	uint32_t slots = k->layout.slots;
	size_t row = slots * sizeof(*set->rows);
	size_t costs = slots * sizeof(*set->costs);
	size_t ends = slots * sizeof(*set->ends);
	size_t stamps = slots * sizeof(*set->stamps);
	size_t nodes = PATH_NODES * sizeof(*set->nodes);
	size_t places = slots * sizeof(*set->places);
	size_t before = row + costs + stamps + ends + nodes;
	char *memory = prompt_scratch(p, before + places);

	if (memory == NULL)
		return KVR_ENOMEM;
	if (p->found_slots != slots || p->found_base > FOUND_BASE_MAX) {
		memset(memory + before, 0, places);
		p->found_slots = slots;
		p->found_base = 1;
	}
	set->next_base = &p->found_base;
	set->room = slots;
	set->rows = (struct kvr_overlap *)(void *)memory;
	set->found = set->rows;
	set->costs = (double *)(void *)(memory + row);
	set->stamps = (int64_t *)(void *)(memory + row + costs);
	set->ends = (struct found_end *)(void *)(memory + row + costs +
	    stamps);
	set->nodes = (struct path_node *)(void *)(memory + row + costs +
	    stamps + ends);
	set->places = (uint32_t *)(void *)(memory + before);
	return KVR_OK;
}

/*
 * Can the match write to the caller's array directly? Not if the call may still
 * fail after that: a lock-free read that runs out of tries takes the lock, but
 * a read-only handle cannot, and one that must not sleep may not get it.
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
	set.ends = NULL;
	set.nodes = NULL;
	set.stamps = NULL;
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

void
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
	d.affinity = c->affinity;
	d.best_worker = c->best;
	d.best_tokens = c->best_tokens;
	struct_put(out, out->size, &d, sizeof(d));
}

int
request_begin(const struct kvr *k, struct kvr_prompt *p,
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

int
kvr_decision_init(struct kvr_decision *decision, size_t size)
{
	const struct kvr_decision d = { 0 };

	return struct_init(decision, size, &d, sizeof(d));
}

bool
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
	int error = request_begin(k, p, request, &r, &set), looked;

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

/* Refuses overlaps that set fields unknown to this library. */
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
		if (id_is_lease(o.worker))
			return KVR_EWORKER;
		if (!struct_known(overlaps, element, sizeof(o)))
			return KVR_ENEWER;
	}
	return KVR_OK;
}

/* Copies the caller's overlaps: of each, the bytes that both sides know. */
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
 * Makes a set of the caller's overlaps, without a copy where possible. Overlaps
 * of workers that do not exist are ignored; of two of one worker the later
 * counts.
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
	int error = request_begin(k, p, request, &r, &set), looked;

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

/* Age of the deepest overlap: 0 while pinned, -1 without overlap. */
static int64_t
age_of(const struct question *q, const struct kvr_overlap *o, uint32_t slot)
{
	int64_t stamp;

	if (o->blocks == 0)
		return -1;
	if (o->active_blocks == o->blocks)
		return 0;
	stamp = expect_stamp(q, slot);
	return stamp < 0 || stamp > q->now ? -1 : q->now - stamp;
}

static void
candidate_fill(const struct question *q, uint32_t slot,
    struct kvr_candidate *c)
{
	const struct slot *s = slot_at(q->k, slot);
	const struct kvr_overlap *o = found_of(q->set, slot);

	memset(c, 0, sizeof(*c));
	c->worker = worker_id(q->k, slot);
	c->cost = route_cost(q, slot, &c->overlap_tokens);
	c->backlog = rate_backlog(q->k, slot, q->now);
	c->prefill_tokens = read_once(s->prefill);
	c->decode_blocks = read_once(s->blocks);
	c->requests = read_once(s->requests);
	c->age_ns = age_of(q, o, slot);
	c->overlap_blocks = o->blocks;
	c->new_decode_blocks = question_new_blocks(q->p, &q->request, o);
	c->verdict = route_verdict(q, slot);
}

static size_t
candidates_write(const struct question *q, char *out, size_t element,
    size_t capacity)
{
	struct kvr_candidate o;
	size_t n = 0, length = element < sizeof(o) ? element : sizeof(o);
	uint32_t slot;

	for (slot = 0; slot < slots_used(q->k); slot++) {
		if (!slot_in_use(q->k, slot))
			continue;
		if (n < capacity) {
			candidate_fill(q, slot, &o);
			memcpy(out + n * element, &o, length);
		}
		n++;
	}
	return n;
}

/*
 * Reads without the lock. A failed try writes to the caller's array, and the
 * next one writes it again; but a handle that must not wait may not get the
 * lock after that, so it takes it at once.
 */
static int
candidates_begin(const struct kvr *k, struct txn *c, int64_t now)
{
	if (atomic_load_explicit(&k->nowait, memory_order_relaxed))
		return txn_read_locked(k, c, now);
	return txn_read_begin(k, c, now, 0);
}

int
kvr_candidates(const struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, int64_t now, struct kvr_candidate *out,
    size_t element, size_t capacity, size_t *count)
{
	struct found_set set;
	struct kvr_request r;
	struct question q;
	struct txn c = { 0 };
	size_t n = 0;
	int error = request_begin(k, p, request, &r, &set), looked;

	if (error == KVR_OK && (count == NULL || (capacity > 0 &&
	    (out == NULL || element < sizeof(uint64_t)))))
		error = KVR_EINVAL;
	if (error == KVR_OK && k->readonly)
		error = KVR_EREADONLY;
	if (error != KVR_OK)
		return error;
	do {
		looked = candidates_begin(k, &c, now);
		if (looked != KVR_OK)
			return looked;
		match_overlaps(k, p, c.now, &set);
		set.most = set.steps + steps_most(k);
		error = route_begin(&q, k, p, &r, &set, c.now);
		if (error == KVR_OK)
			n = candidates_write(&q, (char *)out, element,
			    capacity);
	} while (!txn_read_valid(k, &c));
	if (error == KVR_OK)
		*count = n;
	return error;
}

/* ---------------------------------------------------- observe, expire --- */

static const uint64_t *
record_observe(struct kvr *k, const struct kvr_prompt *p, uint64_t worker,
    uint32_t flags, int64_t now, struct journal_place *place)
{
	struct kvr_record r = { .kind = KVR_RECORD_OBSERVE, .at = now,
		.worker = worker, .flags = flags & KVR_ENDED };
	const uint64_t *hashes;

	if (!journal_on(k))
		return NULL;
	hashes = lease_record_prompt(p, 0, &r);
	journal_begin(k, &r, place);
	return hashes;
}

int
kvr_observe(struct kvr *k, struct kvr_prompt *p, uint64_t worker, int64_t now,
    uint32_t flags, uint32_t *recorded_blocks)
{
	struct insert how = { .in_place = true };
	struct journal_place place = { 0 };
	const uint64_t *hashes;
	struct txn c;
	uint32_t slot, node, recorded;
	uint64_t fresh;
	int error = txn_check_prompt(k, p);

	if (error == KVR_OK)
		error = txn_write_begin(k, &c, now,
		    flags & ~(uint32_t)KVR_ENDED);
	if (error != KVR_OK)
		return error;
	if (!worker_slot(k, worker, &slot))
		return txn_write_end(k, &c, KVR_EWORKER);
	scope_note(k, p->root);
	how.want = lease_blocks(k, p);
	recorded = 0;
	fresh = 0; /* events report the new blocks of the others */
	if (event_tracks(k, slot)) {
		fit_touch(k, p, slot, c.now);
	} else {
		node = fit_insert(k, p, slot, &how, c.now, &recorded);
		window_stamp(k, node, slot, recorded == p->blocks, c.now);
		fresh = retain_used(k, slot, p, recorded);
	}
	if ((flags & KVR_ENDED) == 0) {
		pressure_add(k, slot, fresh, prompt_tokens(p), c.now);
		observed_add(k, slot, fresh, prompt_tokens(p), c.now);
	}
	add_once(k->region->counts.observes, 1);
	if (recorded_blocks != NULL)
		*recorded_blocks = recorded;
	hashes = record_observe(k, p, worker, flags, c.now, &place);
	(void)txn_write_end(k, &c, KVR_OK);
	journal_end(k, &place, hashes);
	return KVR_OK;
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
	oldest = retain_next_due(k);
	error = txn_read_end(k, &c, KVR_OK);
	if (error == KVR_OK)
		*due = oldest <= CLOCK_MAX ? oldest : INT64_MAX;
	return error;
}
