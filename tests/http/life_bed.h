/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * life_bed.h - a region with two workers, a prompt of 40 blocks, and all else
 * that the files of ext/http/life need.
 */
#ifndef KVR_LIFE_BED_H
#define KVR_LIFE_BED_H

#include "test.h"

#include <string.h>

#include "kvroute.h"
#include "shared.h"
#include "spares.h"
#include "writes.h"

enum { LIFE_BLOCK = 16, LIFE_BLOCKS = 40, LIFE_AFFINITY = 64 };
#define LIFE_NOW INT64_C(1000000000000)

struct life {
	struct kvr *k;
	struct shared shared;
	struct spares spares;
	struct writes writes;
	uint64_t worker[2];
};

static inline void
life_begin(struct life *b)
{
	struct kvr_options o;

	memset(b, 0, sizeof(*b));
	ck_assert_int_eq(kvr_options_init(&o, sizeof(o)), KVR_OK);
	o.region_bytes = 1 << 20;
	o.unit = KVR_UNIT_BYTES;
	o.block_size = LIFE_BLOCK;
	o.max_workers = 4;
	o.affinity_entries = LIFE_AFFINITY;
	ck_assert_int_eq(kvr_new(&o, &b->k), KVR_OK);
	ck_assert_int_eq(kvr_nowait_set(b->k, 1), KVR_OK);
	ck_assert_int_eq(kvr_worker_add(b->k, "a", 1, NULL, &b->worker[0]),
	    KVR_OK);
	ck_assert_int_eq(kvr_worker_add(b->k, "b", 1, NULL, &b->worker[1]),
	    KVR_OK);
	b->writes = (struct writes){ .k = b->k, .shared = &b->shared,
	    .spares = &b->spares };
}

static inline void
life_end(struct life *b)
{
	writes_free(&b->writes);
	spares_free(&b->spares);
	kvr_free(b->k);
}

/* All blocks are of this letter. */
static inline struct kvr_prompt *
life_prompt(struct life *b, char letter)
{
	struct kvr_prompt *p = spare_prompt(&b->spares, b->k);
	char text[LIFE_BLOCK * LIFE_BLOCKS];

	ck_assert_ptr_nonnull(p);
	memset(text, letter, sizeof(text));
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, text, sizeof(text)),
	    KVR_OK);
	return p;
}

/* Booked at the first worker. */
static inline uint64_t
life_lease(struct life *b, struct kvr_prompt *p, struct kvr_decision *d)
{
	d->size = sizeof(*d);
	ck_assert_int_eq(kvr_lease_open_on(b->k, p, NULL, b->worker[0],
	    LIFE_NOW, d), KVR_OK);
	return d->lease;
}

/* Blocks of the prompt that worker i is known to have. */
static inline uint64_t
life_overlap(struct life *b, char letter, unsigned i)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_prompt *p = life_prompt(b, letter);

	ck_assert_int_eq(kvr_prompt_allow(p, &b->worker[i], 1), KVR_OK);
	ck_assert_int_eq(kvr_route(b->k, p, NULL, LIFE_NOW, &d), KVR_OK);
	spare_prompt_back(&b->spares, p);
	return d.overlap_blocks;
}

static inline uint64_t
life_leases(const struct life *b)
{
	struct kvr_stats s = { .size = sizeof(s) };

	ck_assert_int_eq(kvr_stats_get(b->k, &s), KVR_OK);
	return s.leases;
}

#endif
