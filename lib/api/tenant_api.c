/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tenant_api.c - the public call on tenants: tenant.c.
 */
#include "tenant.h"
#include "txn.h"

/* One that has nothing, and has lost nothing, is not shown. */
static bool
row_get(const struct kvr *k, uint32_t tenant, struct kvr_tenant *out)
{
	const struct tenant *t = tenant_at(k, tenant);

	memset(out, 0, sizeof(*out));
	out->digest = read_once(t->digest);
	out->bytes = read_once(t->cells) * (uint64_t)CELL;
	out->evicted = read_once(t->evicted);
	out->share = read_once(t->share);
	return out->bytes > 0 || out->evicted > 0;
}

int
kvr_tenant_list(const struct kvr *k, uint64_t *cursor, struct kvr_tenant *out,
    size_t element, size_t capacity, size_t *count)
{
	struct kvr_tenant row;
	struct txn c;
	size_t n = 0, length = element < sizeof(row) ? element : sizeof(row);
	uint64_t i;
	int error;

	if (k == NULL || cursor == NULL || out == NULL ||
	    element < sizeof(uint64_t) || capacity == 0 || count == NULL)
		return KVR_EINVAL;
	if (!tenant_on(k))
		return KVR_ESTATE;
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	for (i = *cursor; i <= k->layout.tenants && n < capacity; i++)
		if (row_get(k, (uint32_t)i, &row))
			memcpy((char *)out + n++ * element, &row, length);
	error = txn_read_end(k, &c, KVR_OK);
	if (error != KVR_OK)
		return error;
	*cursor = i <= k->layout.tenants ? i : 0;
	*count = n;
	return KVR_OK;
}
