/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tenants.h - a small region that tenants share, and prompts of theirs.
 */
#ifndef TESTS_TENANTS_H
#define TESTS_TENANTS_H

#include "retain.h"
#include "tenant.h"

#include "inner.h"

static inline struct kvr_options
shared_options(uint32_t tenants)
{
	struct kvr_options o = small_options();

	o.tenants = tenants;
	o.ttl_ns = KVR_TTL_ENDLESS;
	return o;
}

static inline void
shared_by(uint32_t tenants)
{
	struct kvr_options o = shared_options(tenants);

	region_of(&o);
}

/* The scope of a tenant; 0: of none. */
static inline struct kvr_scope
scope_of(char tenant)
{
	struct kvr_scope scope;

	must(kvr_scope_init(&scope, sizeof(scope)) == KVR_OK);
	if (tenant != 0)
		must(kvr_scope_set(k, &scope, KVR_SCOPE_TENANT, &tenant,
		    1) == KVR_OK);
	return scope;
}

static inline uint64_t
digest_of(char tenant)
{
	return scope_of(tenant).digest[KVR_SCOPE_TENANT];
}

/* n blocks of a tenant, different for each kind but the first `common`. */
static inline void
say_as(char tenant, uint32_t n, uint32_t common, uint32_t kind)
{
	struct kvr_scope scope = scope_of(tenant);
	uint32_t *token = malloc((n + 1) * sizeof(*token)), i;

	must(token != NULL);
	for (i = 0; i < n; i++)
		token[i] = i < common ? i : UINT32_C(0x40000000) + kind;
	must(kvr_prompt_set_tokens(p, &scope, token, n) == KVR_OK);
	free(token);
}

static inline uint64_t
reserved_for(uint32_t worker, uint32_t share, int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;

	must(kvr_request_init(&r, sizeof(r)) == KVR_OK);
	r.share = share;
	must(kvr_lease_open_on(k, p, &r, id[worker], now, &d) == KVR_OK);
	return d.lease;
}

/* The row of a tenant that has one. */
static inline const struct tenant *
row_of(char tenant)
{
	uint64_t digest = digest_of(tenant);
	uint32_t i;

	for (i = 0; i <= k->layout.tenants; i++)
		if (k->tenants[i].digest == digest)
			return &k->tenants[i];
	return NULL;
}

#endif
