/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * txn.c - the transaction around every public call on a region: the lock or
 * the seqlock, the clock, and some housekeeping after each change.
 *
 * READING WITHOUT THE LOCK. The region is a seqlock: `seq` is even while the
 * index is consistent and odd while a writer changes it.
 *
 *	reader                          writer
 *	s = seq; odd: wait a little     lock
 *	read_once() words, any order    seq + 1            (odd)
 *	fence (acquire)                 fence (release)
 *	seq == s: the words are a       write_once() words
 *	   consistent snapshot          seq + 1            (even, release)
 *	else: retry                     unlock
 *
 * If any word that was read had been written after s, the fences order the
 * writer's odd seq before the reader's second load of seq, and the two differ.
 * After LOOKS_MAX tries a reader takes the lock, which bounds its cost; it
 * leaves seq even, so it holds up no lock-free reader. Until it has validated,
 * a reader may see garbage: it bounds every index and every loop, and writes
 * only to its own memory. tests/model/lock.pml is this protocol for a model
 * checker.
 *
 * THE CLOCK. The time of a call is the larger of the caller's `now` and the
 * region's clock, which is the largest `now` of any earlier writing call. So
 * time never runs backwards, whatever callers pass. A `now` 30 days ahead is
 * refused: a caller that mixes up two clocks would otherwise stop time for all
 * others. The first writing call sets the clock, and kvr_clock_set sets it
 * anew. A writing call that fails does not advance it.
 */
#include "txn.h"

#include "event.h"
#include "id.h"
#include "lease_walk.h"
#include "parts.h"
#include "retain.h"
#include "seat.h"
#include "worker.h"

enum {
	REAP_PER_CALL = 2,   /* leases beyond their age limit */
	EXPIRE_PER_CALL = 8, /* entries that are void or due */
	LOOKS_MAX = 8,      /* before a reader takes the lock */
	PAUSES_MAX = 200    /* per try, for a writer: some microseconds */
};

bool
txn_now(int64_t *now)
{
	if (*now == KVR_NOW)
		*now = lock_clock();
	return *now >= 0 && *now <= CLOCK_MAX;
}

static int
txn_time(const struct kvr *k, struct txn *c, int64_t now)
{
	int64_t clock = read_once(k->region->clock);

	if (clock > CLOCK_MAX) /* damage: no call sets it to that */
		clock = -1;
	if (clock >= 0 && now > clock && now - clock > CLOCK_LEAP)
		return KVR_ECLOCK;
	c->backward = now < clock;
	c->now = now < clock ? clock : now;
	c->budget = EXPIRE_PER_CALL;
	return KVR_OK;
}

/* Even to odd, or back. Written only under the lock. */
static void
txn_seq_advance(struct region *r, memory_order order)
{
	uint64_t seq = atomic_load_explicit(&r->seq,
	    memory_order_relaxed);

	atomic_store_explicit(&r->seq, seq + 1, order);
}

static bool
txn_seq_odd(const struct kvr *k)
{
	return (atomic_load_explicit(&k->region->seq,
	    memory_order_acquire) & 1) != 0;
}

/*
 * A writer died in the middle of a change, or found the region damaged (BROKEN
 * in region.h). The index is not consistent any more: it is emptied, and the
 * names and slots of the workers are repaired. seq is odd and stays odd.
 */
void
txn_recover(struct kvr *k)
{
	/* a reader that sees any of this must find that seq is odd */
	atomic_thread_fence(memory_order_release);
	if (k->region->clock < -1 || k->region->clock > CLOCK_MAX)
		write_once(k->region->clock, -1);
	if (k->region->lease_number >= ID_LEASE_MAX)
		put_once(k->region->lease_number,
		    k->region->lease_number & ID_LEASE_MAX >> 1);
	parts_recover(k);
	add_once(k->region->counts.recoveries, 1);
}

/* Takes the lock; recovers the index if its last owner died. */
static int
txn_lock(const struct kvr *k, bool wait)
{
	int error = region_lock(k, wait);

	if (error == KVR_OK && txn_seq_odd(k)) {
		struct kvr view;

		region_view(k, &view);
		txn_recover(&view);
		txn_seq_advance(view.region, memory_order_release);
	}
	return error;
}

static int
txn_begin(const struct kvr *k, struct txn *c, int64_t now, bool wait)
{
	int error;

	if (!txn_now(&now))
		return KVR_ECLOCK;
	error = txn_lock(k, wait);
	if (error != KVR_OK)
		return error;
	error = txn_time(k, c, now);
	if (error != KVR_OK)
		region_unlock(k);
	return error;
}

/* ------------------------------------------------------------- reading --- */

static void
txn_count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Waits a little for an even seq; false: the reader shall take the lock. */
static bool
txn_await(const struct kvr *k, struct txn *c)
{
	uint32_t i;

	if (c->tries++ == LOOKS_MAX)
		return false;
	for (i = 0; i < PAUSES_MAX; i++) {
		c->seq = atomic_load_explicit(&k->region->seq,
		    memory_order_acquire);
		if ((c->seq & 1) == 0)
			return true;
		region_pause();
	}
	return false;
}

int
txn_read_begin(const struct kvr *k, struct txn *c, int64_t now, uint32_t flags)
{
	int error;

	if (!txn_now(&now))
		return KVR_ECLOCK;
	if (!k->readonly && !seat_here(k))
		return KVR_ESTATE;
	if (txn_await(k, c))
		return txn_time(k, c, now);
	if (k->readonly)
		return KVR_EBUSY;
	error = txn_begin(k, c, now, (flags & KVR_NOWAIT) == 0);
	if (error != KVR_OK)
		return error;
	c->locked = true;
	txn_count(&k->region->read_locks);
	return KVR_OK;
}

/* Was the read a consistent snapshot? If not, read again. */
bool
txn_read_valid(const struct kvr *k, const struct txn *c)
{
	if (c->locked) {
		region_unlock(k);
		return true;
	}
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&k->region->seq, memory_order_relaxed) ==
	    c->seq)
		return true;
	if (!k->readonly)
		txn_count(&k->region->read_retries);
	return false;
}

/*
 * Takes the lock: simpler, for calls that need not scale. A read-only handle
 * reads without it, once: then txn_read_end may fail.
 */
int
txn_read_locked(const struct kvr *k, struct txn *c, int64_t now)
{
	memset(c, 0, sizeof(*c));
	if (k->readonly)
		return txn_read_begin(k, c, now, 0);
	c->locked = true;
	return txn_begin(k, c, now, true);
}

/* Comes before any output is written: a lock-free read may fail. */
int
txn_read_end(const struct kvr *k, const struct txn *c, int error)
{
	return txn_read_valid(k, c) ? error : KVR_EBUSY;
}

/* ------------------------------------------------------------- writing --- */

int
txn_write_begin(struct kvr *k, struct txn *c, int64_t now, uint32_t flags)
{
	struct counts *counts = &k->region->counts;
	int error;

	memset(c, 0, sizeof(*c));
	if ((flags & ~(uint32_t)KVR_NOWAIT) != 0)
		return KVR_EINVAL;
	if (k->readonly)
		return KVR_EREADONLY;
	error = txn_begin(k, c, now, (flags & KVR_NOWAIT) == 0);
	if (error == KVR_EBUSY)
		txn_count(&k->region->busy_writes);
	if (error != KVR_OK)
		return error;
	txn_seq_advance(k->region, memory_order_relaxed);
	/* no change may become visible before that */
	atomic_thread_fence(memory_order_release);
	put_once(counts->steps, 0);
	put_once(counts->cells, 0);
	put_once(counts->reclaimed, 0);
	put_once(counts->gained, 0);
	looks_set(k, 0);
	return KVR_OK;
}

static void
txn_max(uint64_t *most, uint64_t value)
{
	if (*most < value)
		write_once(*most, value);
}

/* c NULL: the call does not depend on time; no housekeeping. */
int
txn_write_end(struct kvr *k, const struct txn *c, int error)
{
	struct counts *counts = &k->region->counts;

	if (error == KVR_OK && c != NULL) {
		add_once(counts->clock_back, c->backward);
		write_once(k->region->clock, c->now);
		lease_reap_old(k, c->now, REAP_PER_CALL);
		event_expire(k, c->now);
		retain_expire(k, c->now, c->budget);
	}
	if (region_broken(k))
		txn_recover(k);
	txn_max(&counts->max_steps, counts->steps);
	txn_max(&counts->max_cells, counts->cells);
	txn_max(&counts->max_reclaimed, counts->reclaimed);
	txn_seq_advance(k->region, memory_order_release);
	region_unlock(k);
	return error;
}

/* Was the prompt made by this region's hash rule, and is it closed? */
int
txn_check_prompt_end(const struct kvr *k, const struct kvr_prompt *p)
{
	if (k == NULL || p == NULL)
		return KVR_EINVAL;
	if (p->rule.id != k->rule.id)
		return KVR_EMISMATCH;
	return p->closed != 0 ? KVR_OK : KVR_ESTATE;
}

/* The same, and is it known from its first block on? */
int
txn_check_prompt(const struct kvr *k, const struct kvr_prompt *p)
{
	int error = txn_check_prompt_end(k, p);

	return error == KVR_OK && p->resumed ? KVR_ESTATE : error;
}
