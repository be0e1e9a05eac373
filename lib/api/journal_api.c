/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * journal_api.c - public calls on the journal, which other routers read.
 * journal.c has the ring, lease_record.c the content of records.
 */
#include "journal.h"
#include "seat.h"
#include "txn.h"

/* May this process use the handle? */
static bool
handle_here(const struct kvr *k)
{
	return k->readonly || seat_here(k);
}

int
kvr_journal_read(const struct kvr *k, uint64_t *position, int64_t now,
    struct kvr_record *out, uint64_t *hashes, size_t capacity)
{
	struct kvr_record r;
	int error;

	if (k == NULL || position == NULL || out == NULL ||
	    !struct_has_size(out->size) || (hashes == NULL && capacity > 0))
		return KVR_EINVAL;
	if (!txn_now(&now))
		return KVR_ECLOCK;
	if (k->layout.journal_bytes == 0 || !handle_here(k))
		return KVR_ESTATE;
	if (*position == 0)
		*position = journal_head(k);
	error = journal_read(k, position, now, &r, hashes, capacity);
	if (error == KVR_OK)
		struct_put(out, out->size, &r, sizeof(r));
	if (error == KVR_EOVERRUN && !k->readonly)
		atomic_fetch_add_explicit(&k->region->journal_overruns, 1,
		    memory_order_relaxed);
	return error;
}

int
kvr_quiet_set(struct kvr *k, uint32_t on)
{
	if (k == NULL || on > 1)
		return KVR_EINVAL;
	atomic_store_explicit(&k->quiet, on == 1, memory_order_relaxed);
	return KVR_OK;
}

int
kvr_journal_beat(struct kvr *k, int64_t now)
{
	if (k == NULL)
		return KVR_EINVAL;
	if (!txn_now(&now))
		return KVR_ECLOCK;
	if (k->readonly)
		return KVR_EREADONLY;
	if (!handle_here(k))
		return KVR_ESTATE;
	atomic_store_explicit(&k->region->journal_beat, now,
	    memory_order_relaxed);
	return KVR_OK;
}

int
kvr_rule_get(const struct kvr *k, uint64_t *rule)
{
	if (k == NULL || rule == NULL)
		return KVR_EINVAL;
	*rule = k->rule.id;
	return KVR_OK;
}
