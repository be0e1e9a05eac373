/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * affinity_api.c - public calls on keys of sessions and their bindings. Each
 * checks its arguments, enters the transaction and calls inward.
 */
#include "affinity.h"
#include "journal.h"
#include "load.h"
#include "txn.h"

int
kvr_affinity_key(const struct kvr *k, const void *tenant, size_t tenant_len,
    const void *key, size_t key_len, uint64_t *out)
{
	if (k == NULL || out == NULL || (tenant == NULL && tenant_len > 0) ||
	    key == NULL || key_len == 0)
		return KVR_EINVAL;
	*out = hash_affinity(&k->rule, tenant, tenant_len, key, key_len);
	return KVR_OK;
}

int
kvr_affinity_bind(struct kvr *k, uint64_t affinity, uint64_t worker,
    int64_t ttl, int64_t now, uint32_t flags)
{
	struct kvr_record r = { .kind = KVR_RECORD_BIND, .worker = worker,
		.affinity = affinity, .affinity_ttl = ttl };
	struct affinity_use use = { .digest = affinity, .by_hand = true };
	struct txn c;
	int error;

	if (k == NULL || affinity == 0 || !affinity_ttl_ok(ttl))
		return KVR_EINVAL;
	error = txn_write_begin(k, &c, now, flags);
	if (error != KVR_OK)
		return error;
	use.ttl_ms = affinity_ttl_ms(ttl);
	if (!worker_slot(k, worker, &use.slot))
		error = KVR_EWORKER;
	else if (k->layout.bindings == 0)
		error = KVR_ESTATE;
	else
		affinity_bind(k, &use, c.now);
	r.at = c.now;
	if (error == KVR_OK && journal_on(k))
		journal_put(k, &r);
	return txn_write_end(k, &c, error);
}

int
kvr_affinity_find(const struct kvr *k, uint64_t affinity, int64_t now,
    uint64_t *worker)
{
	struct txn c = { 0 };
	struct binding b;
	bool bound, there;
	uint32_t slot;
	int error;

	if (k == NULL || affinity == 0 || worker == NULL)
		return KVR_EINVAL;
	do {
		error = txn_read_begin(k, &c, now, 0);
		if (error != KVR_OK)
			return error;
		bound = affinity_look(k, affinity, c.now, &b);
		there = bound && worker_slot(k, b.worker, &slot);
	} while (!txn_read_valid(k, &c));
	if (there)
		*worker = b.worker;
	return there ? KVR_OK : bound ? KVR_EWORKER : KVR_EUNBOUND;
}
