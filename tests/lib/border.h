/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * border.h - the fixture of test_border.c and test_misuse.c: an index with one
 * recorded prompt and one open lease, which no bad input may harm.
 */
#ifndef TESTS_BORDER_H
#define TESTS_BORDER_H

#include "kvroute.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static struct kvr *k;
static struct kvr_prompt *p;      /* 5 blocks, recorded for w */
static uint64_t w, gone, lease;   /* lease: open, on another prompt */
static struct kvr_stats before;
static const uint32_t tokens[80];

static inline void
take_stock(void)
{
	memset(&before, 0, sizeof(before));
	before.size = sizeof(before);
	ck_assert_int_eq(kvr_stats_get(k, &before), KVR_OK);
}

static inline void
reserve_another(void)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_prompt *q;
	uint32_t other[16] = { 1 };

	ck_assert_int_eq(kvr_prompt_new(k, &q), KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_tokens(q, NULL, other, 16), KVR_OK);
	ck_assert_int_eq(kvr_lease_open(k, q, NULL, 100, &d), KVR_OK);
	lease = d.lease;
	kvr_prompt_free(q);
}

static inline void
setup(void)
{
	struct kvr_options o;
	struct kvr_worker facts;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = 1 << 20;
	o.max_workers = 4;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	kvr_worker_init(&facts, sizeof(facts));
	ck_assert_int_eq(kvr_worker_add(k, "gone", 4, &facts, &gone), KVR_OK);
	ck_assert_int_eq(kvr_worker_remove(k, gone), KVR_OK);
	ck_assert_int_eq(kvr_worker_add(k, "w", 1, &facts, &w), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, 80), KVR_OK);
	ck_assert_int_eq(kvr_observe(k, p, w, 100, 0, NULL), KVR_OK);
	reserve_another();
	take_stock();
}

static inline void
unharmed(void)
{
	struct kvr_stats now = { .size = sizeof(now) };
	struct kvr_overlap v;
	size_t n;

	ck_assert_int_eq(kvr_stats_get(k, &now), KVR_OK);
	ck_assert_mem_eq(&now, &before, sizeof(now));
	ck_assert_int_eq(kvr_match(k, p, 100, &v, sizeof(v), 1, &n), KVR_OK);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(v.worker, w);
	ck_assert_uint_eq(v.blocks, 5);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
}

static inline void
teardown(void)
{
	unharmed();
	kvr_prompt_free(p);
	kvr_free(k);
}

#endif
