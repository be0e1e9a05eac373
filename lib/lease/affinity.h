/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * affinity.h - which worker a session is bound to.
 */
#ifndef KVR_AFFINITY_H
#define KVR_AFFINITY_H

#include "region.h"

/* 30 days; in milliseconds it fits 32 bits. */
#define AFFINITY_TTL_MAX (INT64_C(30) * 86400 * 1000000000)

static inline bool
affinity_ttl_ok(int64_t ttl)
{
	return ttl >= 0 && ttl <= AFFINITY_TTL_MAX;
}

/* In milliseconds, rounded up; of 0 the default. */
uint32_t affinity_ttl_ms(int64_t ttl);

/* Copies the live binding of a session; needs no lock. False: it has none. */
bool affinity_look(const struct kvr *k, uint64_t digest, int64_t now,
    struct binding *b);

/* A use of a session: by a lease, or by hand. */
struct affinity_use {
	uint64_t digest;
	uint32_t slot;
	uint32_t ttl_ms;
	bool by_hand;
};
/* Binds it to the worker in this slot, wherever it was. */
void affinity_bind(struct kvr *k, const struct affinity_use *use, int64_t now);
/* The same, unless it has moved to another worker meanwhile. */
void affinity_refresh(struct kvr *k, const struct affinity_use *use,
    int64_t now);

/* Unbinds all. */
void affinity_empty(struct kvr *k);
/* Drops bindings that no call can have left, and counts the rest anew. */
void affinity_recover(struct kvr *k);
/* Whether that would change anything. */
bool affinity_sound(const struct kvr *k);

#endif
