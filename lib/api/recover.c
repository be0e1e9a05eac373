/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recover.c - whoever attaches puts the region in order before using it.
 *
 * A region outlives those who wrote it, and they may have ended at any point:
 *
 *   what is found                  left by                what is done
 *   ------------------------------ ---------------------- -------------------
 *   version odd                    a death in a change    emptied, counted
 *   an invariant is broken         a loss of power, or    emptied, counted;
 *                                  a stray write          see below
 *   the lock is held by nobody     a loss of power        made anew
 *   another boot's id              the clock began anew   emptied, clock unset
 *
 * Only somebody who is alone with the region can tell a broken invariant from
 * a change under way, or may touch the lock. file.c knows who is alone; for
 * memory of the caller's nobody does, so all that is done there is what can
 * be done under the lock.
 *
 * EMPTYING is always right: what is lost are hints. If the workers themselves
 * are damaged beyond mending, they go too, and their ids with them: an id is
 * never given twice, so generations are kept.
 *
 * Readers without a lock may be at work all the time. To them all of this is
 * one change of the index. Who dies in the middle of it leaves the version odd.
 */
#include "recover.h"

#include "check.h"
#include "policy.h"
#include "rate.h"
#include "txn.h"
#include "worker.h"

static const unsigned char no_boot[KVR_BOOT_ID_BYTES];

static bool
same_boot(const unsigned char *a, const unsigned char *b)
{
	return memcmp(a, b, KVR_BOOT_ID_BYTES) == 0;
}

/* After this, and until change_end, nobody believes what he reads. */
static void
change_begin(struct region *r)
{
	uint64_t version = atomic_load_explicit(&r->seq,
	    memory_order_relaxed);

	atomic_store_explicit(&r->seq, version | 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static void
change_end(struct region *r)
{
	uint64_t version = atomic_load_explicit(&r->seq,
	    memory_order_relaxed);

	atomic_store_explicit(&r->seq, version + 1, memory_order_release);
}

/* Was the region last used under another boot of the system? */
bool
recover_other_boot(const struct kvr *k, const unsigned char *boot_id)
{
	return !same_boot(boot_id, no_boot) &&
	    !same_boot(k->region->boot_id, no_boot) &&
	    !same_boot(k->region->boot_id, boot_id);
}

/* A change is under way. */
static void
adopt_boot(struct kvr *k, const unsigned char *boot_id)
{
	if (recover_other_boot(k, boot_id)) {
		region_empty(k);
		rate_recover(k);
		write_once(k->region->clock, -1);
	}
	if (!same_boot(boot_id, no_boot))
		memcpy(k->region->boot_id, boot_id, KVR_BOOT_ID_BYTES);
}

/* No worker is left, and no id that was given will be given again. */
static void
forget_workers(struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.slots; i++)
		write_once(k->generations[i],
		    k->generations[i] + (k->generations[i] & 1));
	region_empty(k);
	rate_recover(k);
	worker_recover(k);
}

/* What check_region does not look at. */
static bool
durables_sound(const struct region *r)
{
	return policy_check(&r->policy) == KVR_OK && r->clock >= -1 &&
	    r->clock <= CLOCK_MAX;
}

/* Empties what is no index; a change is under way. */
static int
recover_index(struct kvr *k)
{
	struct region *r = k->region;
	struct kvr_policy policy;
	int error;

	if (policy_check(&r->policy) != KVR_OK) {
		(void)kvr_policy_init(&policy, sizeof(policy));
		policy_write(k, &policy);
	}
	if (r->clock < -1 || r->clock > CLOCK_MAX)
		write_once(r->clock, -1);
	txn_recover(k);
	error = check_region(k);
	if (error == KVR_ECORRUPT) {
		forget_workers(k);
		error = check_region(k);
	}
	return error == KVR_ECORRUPT ? KVR_EFORMAT : error;
}

/* Nobody else is attached, but to read without the lock. */
int
recover_alone(struct kvr *k, const unsigned char *boot_id)
{
	struct region *r = k->region;
	int error;

	r->shared = 1;
	error = region_lock_init(r);
	if (error != KVR_OK)
		return error;
	if ((atomic_load(&r->seq) & 1) != 0 || !durables_sound(r))
		error = KVR_ECORRUPT;
	else
		error = check_region(k);
	if (error != KVR_OK && error != KVR_ECORRUPT)
		return error;
	change_begin(r);
	if (error == KVR_ECORRUPT)
		error = recover_index(k);
	if (error != KVR_OK)
		return error; /* and odd: whoever comes next does it again */
	adopt_boot(k, boot_id);
	change_end(r);
	return KVR_OK;
}

/*
 * Others may be attached. They are of this boot, unless the caller says the
 * wrong one; so there is somebody to do this only where nobody knows who is
 * alone, or where those before had no id.
 */
int
recover_shared(struct kvr *k, const unsigned char *boot_id, bool wait)
{
	struct region *r = k->region;
	int error;

	if (same_boot(boot_id, no_boot) || same_boot(boot_id, r->boot_id))
		return KVR_OK;
	error = region_lock(k, wait);
	if (error != KVR_OK)
		return error;
	if ((atomic_load(&r->seq) & 1) != 0)
		txn_recover(k); /* a lock was inherited */
	change_begin(r);
	adopt_boot(k, boot_id);
	change_end(r);
	region_unlock(k);
	return KVR_OK;
}
