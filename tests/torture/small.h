/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * small.h - a region of a given size for four workers, for the suites that run
 * out of memory of one kind or the other.
 */
#ifndef KVR_SMALL_H
#define KVR_SMALL_H

#include <string.h>

#include "kvroute.h"
#include "test.h"

static inline struct kvr *
make(uint64_t bytes, uint32_t block_size)
{
	struct kvr_options o;
	struct kvr *k;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = bytes;
	o.block_size = block_size;
	o.max_workers = 4;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	return k;
}

static inline uint64_t
add(struct kvr *k, const char *name)
{
	struct kvr_worker facts;
	uint64_t id;

	kvr_worker_init(&facts, sizeof(facts));
	ck_assert_int_eq(kvr_worker_add(k, name, strlen(name), &facts, &id),
	    KVR_OK);
	return id;
}

static inline struct kvr_stats
stats_of(const struct kvr *k)
{
	struct kvr_stats s;

	memset(&s, 0, sizeof(s));
	s.size = sizeof(s);
	ck_assert_int_eq(kvr_stats_get(k, &s), KVR_OK);
	return s;
}

#endif
