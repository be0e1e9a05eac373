/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker_api.c - public calls on all workers at once, and on their loads.
 */
#include "id.h"
#include "set.h"
#include "txn.h"
#include "worker.h"

/* All but those of the set. */
static uint32_t
remove_others(struct kvr *k, const uint64_t *kept)
{
	uint32_t slot, removed = 0;

	for (slot = 0; slot < slots_used(k); slot++) {
		if (!slot_in_use(k, slot) || set_has(kept, slot))
			continue;
		worker_remove(k, slot);
		removed++;
	}
	return removed;
}

int
kvr_worker_keep(struct kvr *k, const uint64_t *ids, size_t n, uint32_t *removed)
{
	uint64_t kept[KVR_WORKERS_MAX * SLOTS_PER_WORKER / 64] = { 0 };
	uint32_t slot, gone = 0;
	struct txn c;
	size_t i;
	int error;

	if (k == NULL || (ids == NULL && n > 0))
		return KVR_EINVAL;
	error = txn_write_begin(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	for (i = 0; i < n && error == KVR_OK; i++)
		if (worker_slot(k, ids[i], &slot))
			set_add(kept, slot);
		else
			error = KVR_EWORKER;
	if (error == KVR_OK)
		gone = remove_others(k, kept);
	error = txn_write_end(k, NULL, error);
	if (error == KVR_OK && removed != NULL)
		*removed = gone;
	return error;
}

int
kvr_load_init(struct kvr_load *load, size_t size)
{
	const struct kvr_load d = { 0 };

	return struct_init(load, size, &d, sizeof(d));
}

int
kvr_worker_set_load(struct kvr *k, uint64_t id, uint32_t source,
    const struct kvr_load *load)
{
	struct kvr_load l;
	struct txn c;
	uint32_t slot;
	int error;

	memset(&l, 0, sizeof(l));
	if (k == NULL || load == NULL || source >= KVR_LOAD_SOURCES)
		return KVR_EINVAL;
	error = struct_get(&l, sizeof(l), load);
	if (error == KVR_OK && !worker_load_ok(&l))
		error = KVR_EINVAL;
	if (error == KVR_OK)
		error = txn_write_begin(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, id, &slot))
		worker_set_load(k, slot, source, &l);
	else
		error = KVR_EWORKER;
	return txn_write_end(k, NULL, error);
}

int
kvr_worker_get_load(const struct kvr *k, uint64_t id, uint32_t source,
    struct kvr_load *out)
{
	struct kvr_load l;
	struct txn c;
	uint32_t slot;
	int error;

	if (k == NULL || out == NULL || source >= KVR_LOAD_SOURCES ||
	    !struct_has_size(out->size))
		return KVR_EINVAL;
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, id, &slot))
		worker_get_load(k, slot, source, &l);
	else
		error = KVR_EWORKER;
	error = txn_read_end(k, &c, error);
	if (error == KVR_OK)
		struct_put(out, out->size, &l, sizeof(l));
	return error;
}
