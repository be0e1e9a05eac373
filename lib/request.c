/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.c - public calls on requests: match, route, observe, expire, and
 * the life of a lease. Check every argument, take the lock, call inward.
 */
#include "internal.h"

/* -------------------------------------------------------- match, route --- */

/* Scratch of the prompt for what a match finds. */
static int
found_begin(const struct kvr *k, struct kvr_prompt *p, struct found_set *set)
{
	size_t slots = k->layout.slots;
	char *memory = prompt_scratch(p,
	    slots * (sizeof(struct found) + sizeof(uint32_t)));

	if (memory == NULL)
		return KVR_ENOMEM;
	set->count = 0;
	set->found = (struct found *)(void *)memory;
	set->at = (uint32_t *)(void *)(memory + slots * sizeof(struct found));
	return KVR_OK;
}

/* What filling in an overlap needs, apart from memory it may alias. */
struct filling {
	const struct kvr *k;
	const struct kvr_prompt *p;
	const uint32_t *generations;
	uint64_t block_tokens; /* 0: they must be estimated */
};

/* As many as fit the field. */
static inline uint32_t
tokens_of(const struct filling *with, uint32_t blocks)
{
	uint64_t tokens = with->block_tokens * blocks;

	if (with->block_tokens == 0)
		tokens = route_tokens(with->p, blocks);
	return tokens < UINT32_MAX ? (uint32_t)tokens : UINT32_MAX;
}

static inline void
overlap_fill(const struct filling *with, const struct found *f,
    uint32_t generation, struct kvr_overlap *o)
{
	o->worker = (uint64_t)generation << 32 | (f->slot + 1);
	o->blocks = f->blocks;
	o->active_blocks = f->active;
	o->tokens = tokens_of(with, f->blocks);
	o->reserved = 0;
}

/* One that is as long as the caller's is written in place, which is faster. */
static inline void
overlap_write(const struct filling *with, const struct found *f,
    uint32_t generation, struct kvr_overlap *out, size_t element, size_t n)
{
	struct kvr_overlap o;

	if (element == sizeof(o)) {
		overlap_fill(with, f, generation, &out[n]);
		return;
	}
	overlap_fill(with, f, generation, &o);
	memcpy((char *)out + n * element, &o,
	    element < sizeof(o) ? element : sizeof(o));
}

/* Retired slots are left out; gives how many workers there are. */
static size_t
overlaps_write(const struct kvr *k, const struct kvr_prompt *p,
    const struct found_set *set, struct kvr_overlap *out, size_t element,
    size_t capacity)
{
	const struct filling with = { k, p, k->generations,
		p->rule.unit == KVR_UNIT_TOKENS ? p->rule.block_size : 0 };
	const struct found *f = set->found, *end = f + set->count;
	size_t n = 0;

	for (; f < end; f++) {
		uint32_t generation = with.generations[f->slot];

		if ((generation & 1) == 0)
			continue;
		if (n < capacity)
			overlap_write(&with, f, generation, out, element, n);
		n++;
	}
	return n;
}

int
kvr_match(const struct kvr *k, struct kvr_prompt *p, int64_t now,
    struct kvr_overlap *out, size_t element, size_t capacity, size_t *count)
{
	struct found_set set;
	struct call c;
	int error = call_prompt(k, p);

	if (error == KVR_OK && (count == NULL || (capacity > 0 &&
	    (out == NULL || element < sizeof(uint64_t)))))
		error = KVR_EINVAL;
	if (error == KVR_OK)
		error = found_begin(k, p, &set);
	if (error == KVR_OK)
		error = call_read(k, &c, now);
	if (error != KVR_OK)
		return error;
	index_match(k, p, horizon_at(k, c.now), &set);
	*count = overlaps_write(k, p, &set, out, element, capacity);
	call_done(k);
	return KVR_OK;
}

/* The caller's request over the defaults, checked. */
static int
request_get(const struct kvr_request *from, struct kvr_request *r)
{
	(void)kvr_request_init(r, sizeof(*r));
	if (from != NULL && !struct_copy(r, sizeof(*r), from, from->size))
		return KVR_EINVAL;
	return policy_check_request(r);
}

static void
decision_write(const struct kvr *k, const struct kvr_prompt *p,
    const struct choice *c, uint64_t lease, uint32_t recorded,
    struct kvr_decision *out)
{
	struct kvr_decision d;

	memset(&d, 0, sizeof(d));
	d.worker = worker_id(k, c->slot);
	d.lease = lease;
	d.prompt_tokens = prompt_tokens(p);
	d.overlap_tokens = route_tokens(p, c->blocks);
	d.cost = c->cost;
	d.prompt_blocks = p->blocks;
	d.overlap_blocks = c->blocks;
	d.recorded_blocks = recorded;
	d.reason = c->reason;
	d.eligible = c->eligible;
	(void)struct_copy(out, out->size, &d, sizeof(d));
}

/* What route, choose, candidates and the reserves have in common. */
static int
ask(const struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, struct kvr_request *r,
    struct found_set *set)
{
	int error = call_prompt(k, p);

	if (error == KVR_OK)
		error = request_get(request, r);
	if (error == KVR_OK)
		error = found_begin(k, p, set);
	return error;
}

static bool
decision_ok(const struct kvr_decision *out)
{
	return out != NULL && out->size >= sizeof(size_t);
}

int
kvr_route(const struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, int64_t now, struct kvr_decision *out)
{
	struct found_set set;
	struct kvr_request r;
	struct choice choice;
	struct call c;
	int error = ask(k, p, request, &r, &set);

	if (error == KVR_OK && !decision_ok(out))
		error = KVR_EINVAL;
	if (error == KVR_OK)
		error = call_read(k, &c, now);
	if (error != KVR_OK)
		return error;
	policy_resolve(&k->region->policy, &r);
	index_match(k, p, horizon_at(k, c.now), &set);
	error = route_choose(k, p, &r, &set, &choice);
	if (error == KVR_OK)
		decision_write(k, p, &choice, 0, 0, out);
	call_done(k);
	return error;
}

/* The caller's overlaps; those of workers that are gone are skipped. */
static void
found_given(const struct kvr *k, const char *overlaps, size_t element,
    size_t n, struct found_set *set)
{
	struct kvr_overlap o;
	size_t i, length = element < sizeof(o) ? element : sizeof(o);
	uint32_t slot;

	memset(&o, 0, sizeof(o));
	for (i = 0; i < n; i++) {
		memcpy(&o, overlaps + i * element, length);
		if (!worker_slot(k, o.worker, &slot))
			continue;
		if (set->at[slot] >= set->count ||
		    set->found[set->at[slot]].slot != slot)
			found_add(set, slot);
		set->found[set->at[slot]].blocks = o.blocks;
		set->found[set->at[slot]].active = o.active_blocks;
	}
}

int
kvr_choose(const struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, const struct kvr_overlap *overlaps,
    size_t element, size_t n, int64_t now, struct kvr_decision *out)
{
	struct found_set set;
	struct kvr_request r;
	struct choice choice;
	struct call c;
	int error = ask(k, p, request, &r, &set);

	if (error == KVR_OK && (!decision_ok(out) || (n > 0 &&
	    (overlaps == NULL || element < sizeof(uint64_t)))))
		error = KVR_EINVAL;
	if (error == KVR_OK)
		error = call_read(k, &c, now);
	if (error != KVR_OK)
		return error;
	policy_resolve(&k->region->policy, &r);
	found_given(k, (const char *)overlaps, element, n, &set);
	error = route_choose(k, p, &r, &set, &choice);
	if (error == KVR_OK)
		decision_write(k, p, &choice, 0, 0, out);
	call_done(k);
	return error;
}

/* Since when is the overlap known: 0 while pinned, -1 without any. */
static int64_t
age_of(const struct kvr *k, const struct found *f, int64_t now)
{
	uint32_t hold;

	if (f->blocks == 0)
		return -1;
	if (f->active == f->blocks)
		return 0;
	hold = hold_find(k, f->deepest, f->slot);
	return hold != 0 ? now - hold_at(k, hold)->stamp : -1;
}

static void
candidate_fill(const struct route *t, uint32_t slot, int64_t now,
    struct kvr_candidate *o)
{
	const struct slot *s = slot_at(t->k, slot);
	const struct found *f = found_of(t->set, slot);

	memset(o, 0, sizeof(*o));
	o->worker = worker_id(t->k, slot);
	o->overlap_tokens = route_tokens(t->p, f->blocks);
	o->prefill_tokens = s->prefill;
	o->decode_blocks = s->blocks;
	o->requests = s->requests;
	o->age_ns = age_of(t->k, f, now);
	o->cost = route_cost(t, slot);
	o->overlap_blocks = f->blocks;
	o->new_decode_blocks = route_new_blocks(t->p, t->r, f);
	o->verdict = route_verdict(t, slot);
}

static size_t
candidates_write(const struct route *t, int64_t now, char *out,
    size_t element, size_t capacity)
{
	struct kvr_candidate o;
	size_t n = 0, length = element < sizeof(o) ? element : sizeof(o);
	uint32_t slot;

	for (slot = 0; slot < t->k->region->slots_used; slot++) {
		if (!slot_in_use(t->k, slot))
			continue;
		if (n < capacity) {
			candidate_fill(t, slot, now, &o);
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
	struct route t;
	struct call c;
	int error = ask(k, p, request, &r, &set);

	if (error == KVR_OK && (count == NULL || (capacity > 0 &&
	    (out == NULL || element < sizeof(uint64_t)))))
		error = KVR_EINVAL;
	if (error == KVR_OK)
		error = call_read(k, &c, now);
	if (error != KVR_OK)
		return error;
	policy_resolve(&k->region->policy, &r);
	index_match(k, p, horizon_at(k, c.now), &set);
	error = route_begin(&t, k, p, &r, &set);
	if (error == KVR_OK)
		*count = candidates_write(&t, c.now, (char *)out, element,
		    capacity);
	call_done(k);
	return error;
}

/* ---------------------------------------------------- observe, expire --- */

int
kvr_observe(struct kvr *k, struct kvr_prompt *p, uint64_t worker, int64_t now,
    uint32_t flags, uint32_t *recorded_blocks)
{
	struct insert how = { .in_place = true };
	struct call c;
	uint32_t slot, node, recorded;
	int error = call_prompt(k, p);

	if (error == KVR_OK)
		error = call_write(k, &c, now, flags);
	if (error != KVR_OK)
		return error;
	if (!worker_slot(k, worker, &slot))
		return call_written(k, &c, KVR_EWORKER);
	how.want = lease_blocks(k, p);
	node = retain_insert(k, p, slot, &how, c.now, &recorded);
	index_stamp(k, node, slot, c.now);
	k->region->counts.observes++;
	if (recorded_blocks != NULL)
		*recorded_blocks = recorded;
	return call_written(k, &c, KVR_OK);
}

int
kvr_expire(struct kvr *k, int64_t now, uint32_t budget, uint32_t *left)
{
	struct call c;
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	error = call_write(k, &c, now, 0);
	if (error != KVR_OK)
		return error;
	c.budget = 0;
	retain_expire(k, c.now, budget);
	if (left != NULL)
		*left = retain_due(k, c.now);
	return call_written(k, &c, KVR_OK);
}

int
kvr_next_expiry(const struct kvr *k, int64_t *due)
{
	struct call c;
	int64_t oldest;
	int error;

	if (k == NULL || due == NULL)
		return KVR_EINVAL;
	error = call_read(k, &c, 0);
	if (error != KVR_OK)
		return error;
	oldest = k->oldest[order_oldest_slot(k)];
	*due = k->ttl < 0 || oldest > INT64_MAX - k->ttl ? INT64_MAX
	    : oldest + k->ttl;
	call_done(k);
	return KVR_OK;
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
	b.cached = route_tokens(p, choice->blocks);
	b.count_prefill = (r->flags & KVR_IGNORE_PREFILL) == 0;
	b.record = (r->flags & KVR_IGNORE_REUSE) == 0;
	lease = lease_open(k, p, &b, now, &recorded);
	k->region->counts.reserves++;
	s->reserves++;
	s->prompt_tokens += prompt_tokens(p);
	s->predicted_tokens += b.cached;
	decision_write(k, p, choice, lease, recorded, out);
}

/* No choice: the worker that the caller took, be it eligible or not. */
static int
take_given(const struct kvr *k, const struct kvr_prompt *p,
    struct kvr_request *r, const struct found_set *set, uint64_t worker,
    struct choice *out)
{
	struct route t;
	int error;

	r->pinned = worker;
	if (!worker_slot(k, worker, &out->slot))
		return KVR_EWORKER;
	error = route_begin(&t, k, p, r, set);
	if (error != KVR_OK)
		return error;
	out->cost = route_cost(&t, out->slot);
	out->reason = KVR_REASON_PINNED;
	out->eligible = t.eligible;
	out->blocks = found_of(set, out->slot)->blocks;
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
	struct call c;
	int error = ask(k, p, request, &r, &set);

	if (error == KVR_OK && !decision_ok(out))
		error = KVR_EINVAL;
	if (error == KVR_OK)
		error = call_write(k, &c, now, r.flags & KVR_NOWAIT);
	if (error != KVR_OK)
		return error;
	policy_resolve(&k->region->policy, &r);
	index_match(k, p, horizon_at(k, c.now), &set);
	if (worker != NULL)
		error = take_given(k, p, &r, &set, *worker, &choice);
	else
		error = route_choose(k, p, &r, &set, &choice);
	if (error == KVR_OK)
		book(k, p, &r, &choice, c.now, out);
	return call_written(k, &c, error);
}

int
kvr_reserve(struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, int64_t now, struct kvr_decision *out)
{
	return reserve(k, p, request, NULL, now, out);
}

int
kvr_reserve_on(struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, uint64_t worker, int64_t now,
    struct kvr_decision *out)
{
	return reserve(k, p, request, &worker, now, out);
}

/* Begins a writing call on a lease; KVR_OK: the lock is held. */
static int
lease_begin(struct kvr *k, struct call *c, uint64_t lease, int64_t now,
    uint32_t flags, uint32_t *found)
{
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	error = call_write(k, c, now, flags);
	if (error != KVR_OK)
		return error;
	*found = lease_find(k, lease);
	return *found != 0 ? KVR_OK : call_written(k, c, KVR_ELEASE);
}

int
kvr_commit(struct kvr *k, uint64_t lease, int64_t now, uint32_t flags)
{
	struct call c;
	uint32_t l;
	int error = lease_begin(k, &c, lease, now, flags, &l);

	if (error != KVR_OK)
		return error;
	lease_commit(k, l, c.now);
	k->region->counts.commits++;
	return call_written(k, &c, KVR_OK);
}

int
kvr_first_token(struct kvr *k, uint64_t lease, int64_t now, uint32_t flags)
{
	struct call c;
	uint32_t l;
	int error = lease_begin(k, &c, lease, now, flags, &l);

	if (error != KVR_OK)
		return error;
	return call_written(k, &c, lease_first_token(k, l));
}

int
kvr_extend(struct kvr *k, uint64_t lease, struct kvr_prompt *p, int64_t now,
    uint32_t flags)
{
	struct call c;
	uint32_t l;
	int error = call_prompt(k, p);

	if (error == KVR_OK)
		error = lease_begin(k, &c, lease, now, flags, &l);
	if (error != KVR_OK)
		return error;
	return call_written(k, &c, lease_extend(k, l, p, c.now));
}

int
kvr_output_blocks(struct kvr *k, uint64_t lease, uint32_t blocks, int64_t now,
    uint32_t flags)
{
	struct call c;
	uint32_t l;
	int error = lease_begin(k, &c, lease, now, flags, &l);

	if (error != KVR_OK)
		return error;
	lease_output(k, l, blocks);
	return call_written(k, &c, KVR_OK);
}

static bool
report_ok(const struct kvr_report *report)
{
	struct kvr_report r;

	memset(&r, 0, sizeof(r));
	if (report == NULL)
		return true;
	return struct_copy(&r, sizeof(r), report, report->size) &&
	    r.kind <= KVR_REPORT_VALUE && r.reserved == 0 &&
	    r.flags <= (KVR_REPORT_STREAM | KVR_REPORT_NO_EVIDENCE);
}

int
kvr_finish(struct kvr *k, uint64_t lease, const struct kvr_report *report,
    int64_t now, uint32_t flags)
{
	struct call c;
	uint32_t l;
	int error = report_ok(report) ? KVR_OK : KVR_EINVAL;

	if (error == KVR_OK)
		error = lease_begin(k, &c, lease, now, flags, &l);
	if (error != KVR_OK)
		return error;
	lease_finish(k, l, c.now);
	k->region->counts.finishes++;
	return call_written(k, &c, KVR_OK);
}

int
kvr_abort(struct kvr *k, uint64_t lease, int64_t now, uint32_t flags)
{
	struct call c;
	uint32_t l;
	int error = lease_begin(k, &c, lease, now, flags, &l);

	if (error != KVR_OK)
		return error;
	lease_abort(k, l);
	k->region->counts.aborts++;
	return call_written(k, &c, KVR_OK);
}

int
kvr_reap_owner(struct kvr *k, uint64_t owner, int64_t now, uint32_t *ended)
{
	struct call c;
	uint32_t n;
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	error = call_write(k, &c, now, 0);
	if (error != KVR_OK)
		return error;
	n = lease_reap_owner(k, owner, c.now);
	if (ended != NULL)
		*ended = n;
	return call_written(k, &c, KVR_OK);
}
