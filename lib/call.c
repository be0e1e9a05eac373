/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call.c - the frame of every public call on a region: the lock, the clock,
 * and a little housekeeping after each change.
 *
 * THE CLOCK. The time of a call is the larger of the caller's `now` and the
 * region's clock, which is the largest `now` of any writing call before. So
 * time never runs backwards, whatever callers say; a `now` three years ahead
 * is refused, because a caller who mixes up two clocks would put all others
 * out of business. The first writing call sets the clock.
 *
 * A writing call that fails leaves the clock alone too.
 */
#include "internal.h"

enum {
	REAP_PER_CALL = 2,  /* leases over age */
	EXPIRE_PER_CALL = 8 /* entries that are void or due */
};

static int
call_time(const struct kvr *k, struct call *c, int64_t now)
{
	int64_t clock = k->region->clock;

	if (clock >= 0 && now > clock && now - clock > CLOCK_LEAP)
		return KVR_ECLOCK;
	c->backward = now < clock;
	c->now = now < clock ? clock : now;
	c->budget = EXPIRE_PER_CALL;
	return KVR_OK;
}

/*
 * The lock was somebody's who died in the middle of a change, or the memory is a
 * copy of such a region: the disposable part is empty already (region.c), the names
 * and slots of the workers are put in order.
 */
static void
call_mend(struct kvr mine)
{
	worker_mend(&mine);
	atomic_fetch_add(&mine.region->version, 1);
}

static int
call_begin(const struct kvr *k, struct call *c, int64_t now, bool wait)
{
	int error;

	if (now < 0 || now > CLOCK_MOST)
		return KVR_ECLOCK;
	error = region_lock(k, wait);
	if (error != KVR_OK)
		return error;
	if ((atomic_load(&k->region->version) & 1) != 0)
		call_mend(*k);
	error = call_time(k, c, now);
	if (error != KVR_OK)
		region_unlock(k);
	return error;
}

int
call_read(const struct kvr *k, struct call *c, int64_t now)
{
	return call_begin(k, c, now, true);
}

void
call_done(const struct kvr *k)
{
	region_unlock(k);
}

/* From even to odd, or back; only under the lock, so nobody else writes it. */
static void
call_turn(struct region *r, memory_order order)
{
	uint64_t version = atomic_load_explicit(&r->version,
	    memory_order_relaxed);

	atomic_store_explicit(&r->version, version + 1, order);
}

int
call_write(struct kvr *k, struct call *c, int64_t now, uint32_t flags)
{
	int error;

	if ((flags & ~(uint32_t)KVR_NOWAIT) != 0)
		return KVR_EINVAL;
	error = call_begin(k, c, now, (flags & KVR_NOWAIT) == 0);
	if (error == KVR_OK) {
		call_turn(k->region, memory_order_relaxed);
		/* no change is to be seen before that; see region.c */
		atomic_thread_fence(memory_order_release);
	}
	return error;
}

/* c NULL: the call had nothing to do with time. */
int
call_written(struct kvr *k, const struct call *c, int error)
{
	if (error == KVR_OK && c != NULL) {
		k->region->counts.clock_back += c->backward;
		k->region->clock = c->now;
		lease_reap_old(k, c->now, REAP_PER_CALL);
		retain_expire(k, c->now, c->budget);
	}
	call_turn(k->region, memory_order_release);
	region_unlock(k);
	return error;
}

/* Can this prompt be used with this region? */
int
call_prompt(const struct kvr *k, const struct kvr_prompt *p)
{
	if (k == NULL || p == NULL)
		return KVR_EINVAL;
	if (p->rule.id != k->rule.id)
		return KVR_EMISMATCH;
	return p->closed != 0 ? KVR_OK : KVR_ESTATE;
}
