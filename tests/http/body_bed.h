/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_bed.h - the common part of suites of bodies: a region by bytes, a
 * prompt and a reader, made before each test and freed after it. Included once
 * by each of them, after all other headers: its names are short.
 */
#ifndef KVROUTE_BODY_BED_H
#define KVROUTE_BODY_BED_H

#include "alloc.h"
#include "bodies.h"

static struct kvr *k;
static struct kvr_prompt *p;
static struct body *b;

static inline void
bed_make(void)
{
	k = bodies_region();
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	b = body_new();
	ck_assert_ptr_nonnull(b);
}

static inline void
bed_free(void)
{
	alloc_reset();
	body_free(b);
	kvr_prompt_free(p);
	kvr_free(k);
}

#endif
