/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lease_walk.c - walks over the leases: those over age, those of an owner, and
 * those that keep a retired slot from being used again.
 *
 * The list by age is in the order of the leases' numbers. A walk is done in
 * pieces, so that no call holds the lock for long: a piece examines a limited
 * number of leases, and ends none more after a limited number of steps. The
 * next one goes on after the lease that was examined last; if that has ended
 * meanwhile, after one with a number close to it.
 *
 *	number   3    17   18   21   22   25
 *	              ^ examined last
 *	         ended: 16, 18 are tried, then 15, 19, ...
 *
 * If none is close, the walk begins anew, which costs time and leaves nothing
 * out. Numbers rise along the list, and a lease is found by its number: where
 * that does not hold the region is damaged, and the walk ends. Otherwise it
 * could go round for ever.
 */
#include "lease_walk.h"

#include "id.h"
#include "lease.h"
#include "lease_record.h"
#include "load.h"

enum {
	WALK_LEASES = 256, /* examined by one piece, and */
	WALK_STEPS = 4096,  /* its steps, before another one is ended */
	OWNERS_MAX = 64,    /* found by one piece */
	CLOSE = 64          /* numbers tried on either side */
};

/* The lease to examine after the one at *cursor; the first clears *cursor. */
static uint32_t
walk_after(const struct kvr *k, uint64_t *cursor)
{
	uint64_t number, distance;
	uint32_t i;

	for (distance = 0; id_lease_number(*cursor, &number) &&
	    distance < CLOSE; distance++) {
		i = lease_find(k, id_of_lease(number - distance));
		if (i != 0)
			return lease_at(k, i)->age_next;
		i = lease_find(k, id_of_lease(number + distance));
		if (i != 0)
			return i;
	}
	*cursor = 0;
	return k->region->lease_first;
}

/* Moves *cursor to a lease, unless damage has put that where it is. */
static bool
walk_to(const struct kvr *k, uint32_t lease, uint64_t *cursor)
{
	uint64_t id = id_of_lease(lease_at(k, lease)->number);

	if (id <= *cursor || lease_find(k, id) != lease)
		return false;
	*cursor = id;
	return true;
}

static bool
walk_on(const struct kvr *k, uint32_t lease, uint32_t left)
{
	return lease != 0 && left > 0 && k->region->counts.steps < WALK_STEPS;
}

/* As the journal calls it: finished if it was dispatched, else aborted. */
static void
reap_lease(struct kvr *k, uint32_t lease, int64_t now)
{
	struct kvr_record r;

	lease_record(k, lease, KVR_RECORD_ABORT, now, &r);
	if ((lease_at(k, lease)->flags & LEASE_COMMITTED) != 0)
		r.kind = KVR_RECORD_FINISH;
	journal_put(k, &r);
	lease_reap(k, lease, now);
}

/* -------------------------------------------------------------- age --- */

/*
 * Ends up to `budget` leases older than the lease limit, unless the call has
 * done much already.
 */
void
lease_reap_old(struct kvr *k, int64_t now, uint32_t budget)
{
	const struct region *r = k->region;
	int64_t limit = read_once(r->limits.lease);

	for (; walk_on(k, r->lease_first, budget) && limit >= 0; budget--) {
		uint32_t lease = r->lease_first;

		if (lease_at(k, lease)->opened > now - limit)
			return;
		reap_lease(k, lease, now);
	}
}

/* ------------------------------------------------------- retired slots --- */

/*
 * Detaches the next leases from retired slots, so that the slots can be reused;
 * the leases keep their ids. False if two rounds found no such lease.
 */
bool
lease_detach_retired(struct kvr *k)
{
	struct region *r = k->region;
	uint64_t cursor = r->detach_at, leases = r->counts.leases;
	uint32_t i = walk_after(k, &cursor), left = WALK_LEASES;

	add_once(r->detach_idle, i == 0);
	for (; walk_on(k, i, left); left--) {
		struct lease *l = lease_at(k, i);

		add_once(r->counts.steps, 1);
		put_once(r->detach_at, id_of_lease(l->number));
		add_once(r->detach_idle, 1);
		i = l->age_next;
		if ((l->flags & LEASE_DETACHED) == 0 && lease_orphaned(k, l)) {
			lease_detach(k, l);
			put_once(r->detach_idle, 0);
		}
	}
	if (i == 0)
		put_once(r->detach_at, 0);
	if (leases > k->layout.cells) /* damaged */
		leases = 0;
	if (r->detach_idle <= 2 * leases)
		return true;
	put_once(r->detach_idle, 0);
	return false;
}

/* -------------------------------------------------------------- owners --- */

/* Ends the leases of an owner among the next ones. */
uint32_t
lease_reap_owner(struct kvr *k, uint64_t owner, int64_t now, uint64_t *cursor)
{
	uint32_t i = walk_after(k, cursor), ended = 0, left = WALK_LEASES;

	for (; walk_on(k, i, left); left--) {
		uint32_t next = lease_at(k, i)->age_next;

		add_once(k->region->counts.steps, 1);
		if (!walk_to(k, i, cursor)) {
			region_break(k);
			i = 0;
			break;
		}
		if (lease_at(k, i)->owner == owner) {
			if (journal_on(k))
				reap_lease(k, i, now);
			else
				lease_reap(k, i, now);
			ended++;
		}
		i = next;
	}
	if (i == 0)
		*cursor = 0;
	return ended;
}

static bool
is_among(uint64_t owner, const uint64_t *owners, size_t n)
{
	while (n > 0) {
		if (owners[--n] == owner)
			return true;
	}
	return false;
}

/* The owners of the next leases. */
size_t
lease_owners(const struct kvr *k, uint64_t *cursor, uint64_t *owners,
    size_t capacity)
{
	uint32_t i = walk_after(k, cursor), left = WALK_LEASES;
	size_t n = 0;

	if (capacity > OWNERS_MAX)
		capacity = OWNERS_MAX;
	for (; i != 0 && left > 0; left--) {
		const struct lease *l = lease_at(k, i);

		if (!is_among(l->owner, owners, n)) {
			if (n == capacity)
				break;
			owners[n++] = l->owner;
		}
		i = walk_to(k, i, cursor) ? l->age_next : 0;
	}
	if (i == 0)
		*cursor = 0;
	return n;
}

static void
info_fill(const struct kvr *k, uint32_t lease, struct kvr_lease_info *info)
{
	const struct lease *l = lease_at(k, lease);
	const struct claim *c = claim_at(k, l->claim);

	info->lease = id_of_lease(l->number);
	info->owner = l->owner;
	info->worker = lease_orphaned(k, l) ? 0 : worker_id(k, l->slot);
	info->opened = l->opened;
	info->tokens = c->tokens;
	info->blocks = c->prompt;
	info->state = (l->flags & LEASE_DECODING) != 0 ? KVR_LEASE_DECODING
	    : (l->flags & LEASE_COMMITTED) != 0 ? KVR_LEASE_COMMITTED
	    : KVR_LEASE_OPENED;
}

/* Facts of the next leases. */
size_t
lease_infos(const struct kvr *k, uint64_t *cursor, char *out, size_t element,
    size_t capacity)
{
	uint32_t i = walk_after(k, cursor), left = WALK_LEASES;
	struct kvr_lease_info info;
	size_t n = 0, length = element < sizeof(info) ? element : sizeof(info);

	for (; i != 0 && left > 0 && n < capacity; left--) {
		info_fill(k, i, &info);
		if (!walk_to(k, i, cursor)) {
			i = 0;
			break;
		}
		memcpy(out + n++ * element, &info, length);
		i = lease_at(k, i)->age_next;
	}
	if (i == 0)
		*cursor = 0;
	return n;
}
