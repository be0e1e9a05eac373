/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recover.c - recovers a region when a handle attaches to it.
 *
 * A region outlives its writers, and they may have died at any point:
 *
 *   found                          cause                  action
 *   ------------------------------ ---------------------- -------------------
 *   seq is odd                     a writer died in a     emptied, counted
 *                                  transaction
 *   an invariant is broken         a loss of power, or    emptied, counted;
 *                                  a stray write          see below
 *   a figure, a limit or the       a stray write, or an   computed anew,
 *   policy is wrong                error of an earlier    or the default;
 *                                  library                nothing is lost
 *   the lock has a stale owner     a loss of power        free again: file.c
 *   the id of another boot         the clock restarted    emptied, clock unset
 *
 * Only a process that is alone with the region can distinguish a broken
 * invariant from a change in progress. file.c finds out whether it is alone.
 * With memory supplied by the caller it is never known, so recovery does only
 * what can be done under the lock.
 *
 * EMPTYING is always safe: only hints are lost. If the workers themselves are
 * damaged beyond repair, they are removed too and their ids become invalid. An
 * id is never used twice, so generations are kept.
 *
 * Lock-free readers may run all the time. For them recovery is one change of
 * the index. A process that dies during recovery leaves seq odd.
 */
#include "recover.h"

#include "check.h"
#include "options.h"
#include "parts.h"
#include "txn.h"
#include "worker.h"

static const unsigned char no_boot[KVR_BOOT_ID_BYTES];

static bool
same_boot(const unsigned char *a, const unsigned char *b)
{
	return memcmp(a, b, KVR_BOOT_ID_BYTES) == 0;
}

/* Lock-free readers retry from here to change_end. */
static void
change_begin(struct region *r)
{
	uint64_t seq = atomic_load_explicit(&r->seq,
	    memory_order_relaxed);

	atomic_store_explicit(&r->seq, seq | 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static void
change_end(struct region *r)
{
	uint64_t seq = atomic_load_explicit(&r->seq,
	    memory_order_relaxed);

	atomic_store_explicit(&r->seq, seq + 1, memory_order_release);
}

/* The boot that last used the region; another handle may be setting it. */
static void
boot_read(const struct region *r, unsigned char boot_id[KVR_BOOT_ID_BYTES])
{
	read_once_words(boot_id, r->boot_id, KVR_BOOT_ID_BYTES);
}

/* Was the region last used under another boot of the system? */
bool
recover_other_boot(const struct kvr *k, const unsigned char *boot_id)
{
	unsigned char last[KVR_BOOT_ID_BYTES];

	boot_read(k->region, last);
	return !same_boot(boot_id, no_boot) && !same_boot(last, no_boot) &&
	    !same_boot(last, boot_id);
}

/* Between change_begin and change_end. */
static void
adopt_boot(struct kvr *k, const unsigned char *boot_id)
{
	if (recover_other_boot(k, boot_id)) {
		atomic_store_explicit(&k->region->journal_beat, -1,
		    memory_order_relaxed);
		parts_empty(k, -1);
	}
	if (!same_boot(boot_id, no_boot))
		write_once_words(
		    k->region->boot_id, boot_id, KVR_BOOT_ID_BYTES);
}

/* Removes all workers. Generations are kept: no id is used again. */
static void
forget_workers(struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.slots; i++)
		write_once(k->generations[i],
		    k->generations[i] + (k->generations[i] & 1));
	parts_recover(k);
}

/* Repairs and empties a damaged region, between change_begin and change_end. */
static int
recover_index(struct kvr *k)
{
	struct region *r = k->region;
	int error;

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

/* No other handle is attached, except read-only ones. */
int
recover_alone(struct kvr *k, const unsigned char *boot_id)
{
	struct region *r = k->region;
	int error;

	error = (atomic_load(&r->seq) & 1) != 0 ? KVR_ECORRUPT
	    : check_region(k);
	if (error != KVR_OK && error != KVR_ECORRUPT && error != KVR_EINEXACT)
		return error;
	change_begin(r);
	if (error == KVR_EINEXACT)
		error = check_mend(k);
	if (error == KVR_ECORRUPT)
		error = recover_index(k);
	if (error != KVR_OK)
		return error; /* seq stays odd: the next handle repeats it */
	adopt_boot(k, boot_id);
	change_end(r);
	return KVR_OK;
}

/*
 * Other handles may be attached. They are of this boot, unless the caller gave
 * a wrong id. So there is work to do only where it is unknown whether a process
 * is alone, or where earlier handles gave no boot id.
 */
int
recover_shared(struct kvr *k, const unsigned char *boot_id, bool wait)
{
	unsigned char last[KVR_BOOT_ID_BYTES];
	struct region *r = k->region;
	int error;

	boot_read(r, last);
	if (same_boot(boot_id, no_boot) || same_boot(boot_id, last))
		return KVR_OK;
	error = region_lock(k, wait);
	if (error != KVR_OK)
		return error;
	if ((atomic_load(&r->seq) & 1) != 0)
		txn_recover(k); /* the previous owner died */
	change_begin(r);
	adopt_boot(k, boot_id);
	change_end(r);
	region_unlock(k);
	return KVR_OK;
}

int
recover_limits(struct kvr *k, const struct kvr_options *o, bool wait)
{
	struct txn c;
	int error;

	if (options_match_limits(o, k) == KVR_OK)
		return KVR_OK;
	error = txn_write_begin(k, &c, 0, wait ? 0 : KVR_NOWAIT);
	if (error != KVR_OK)
		return error;
	options_apply(o, k);
	return txn_write_end(k, NULL, KVR_OK);
}
