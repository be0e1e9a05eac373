/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_memory.c - a region that is too small: to be created, for one prompt,
 * for all prompts, and for all the leases that must not be evicted. Only its
 * creation ever fails.
 */
#include "kvroute.h"
#include "small.h"

#include <stdlib.h>
#include <string.h>

static uint64_t
smallest(uint32_t workers)
{
	struct kvr_options o;
	uint64_t low = 0, high = 1 << 22;
	struct kvr *k;
	int rc;

	kvr_options_init(&o, sizeof(o));
	o.max_workers = workers;
	while (high - low > 1) {
		o.region_bytes = low + (high - low) / 2;
		rc = kvr_new(&o, &k);
		ck_assert(rc == KVR_OK || rc == KVR_ETOOSMALL);
		if (rc == KVR_OK)
			kvr_free(k);
		*(rc == KVR_OK ? &high : &low) = o.region_bytes;
	}
	return high;
}

static uint32_t
overlap(struct kvr *k, struct kvr_prompt *p, int64_t now)
{
	struct kvr_overlap v[4];
	uint32_t best = 0;
	size_t n, i;

	ck_assert_int_eq(kvr_match(k, p, now, v, sizeof(v[0]), 4, &n),
	    KVR_OK);
	for (i = 0; i < n; i++)
		best = v[i].blocks > best ? v[i].blocks : best;
	return best;
}

static void
set(struct kvr_prompt *p, uint32_t kind, size_t n)
{
	uint32_t *t = malloc((n + 1) * sizeof(*t));
	size_t i;

	ck_assert_ptr_nonnull(t);
	for (i = 0; i < n; i++)
		t[i] = (uint32_t)i * 64 + kind;
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, t, n), KVR_OK);
	free(t);
}

/* The smallest region that can be created can be used. */
START_TEST(smallest_region)
{
	uint64_t bytes = smallest(4);
	struct kvr *k = make(bytes, 1);
	uint64_t w = add(k, "w"), other = add(k, "x");
	struct kvr_prompt *p;
	uint32_t i, recorded;

	ck_assert_uint_lt(bytes, 64 << 10);
	ck_assert_uint_ge(smallest(KVR_WORKERS_MAX), bytes);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	for (i = 0; i < 2000; i++) {
		set(p, i % 50, 1 + i % 7);
		ck_assert_int_eq(kvr_observe(k, p, i % 3 == 0 ? other : w,
		    (int64_t)i, 0, &recorded), KVR_OK);
		ck_assert_uint_eq(recorded, 1 + i % 7);
		ck_assert_uint_eq(overlap(k, p, i), 1 + i % 7);
		ck_assert_int_eq(kvr_check(k), KVR_OK);
	}
	ck_assert_uint_gt(stats_of(k).evicted_region, 0);
	ck_assert_uint_le(stats_of(k).region_bytes, bytes);
	kvr_prompt_free(p);
	kvr_free(k);
}
END_TEST

/* One prompt is larger than the region: its beginning is kept. */
START_TEST(prompt_larger_than_region)
{
	struct kvr *k = make(48 << 10, 1);
	struct kvr_decision d = { .size = sizeof(d) };
	uint64_t w = add(k, "w");
	struct kvr_prompt *p;
	uint32_t recorded = 0, now;

	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	for (now = 1; now < 20; now++) {
		set(p, now % 3, 100000);
		ck_assert_int_eq(kvr_observe(k, p, w, now, 0, &recorded),
		    KVR_OK);
		ck_assert_uint_gt(recorded, 0);
		ck_assert_uint_lt(recorded, 100000);
		ck_assert_uint_eq(overlap(k, p, now), recorded);
		ck_assert_int_eq(kvr_check(k), KVR_OK);
		ck_assert_uint_eq(stats_of(k).truncated, now);
	}
	ck_assert_int_eq(kvr_lease_open(k, p, NULL, now, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, w);
	ck_assert_uint_eq(d.prompt_blocks, 100000);
	ck_assert_uint_ne(d.lease, 0);
	ck_assert_uint_lt(d.recorded_blocks, 100000);
	ck_assert_int_eq(kvr_lease_commit(k, d.lease, now, 0), KVR_OK);
	set(p, 1, 200000);
	ck_assert_int_eq(kvr_lease_extend(k, d.lease, p, now, 0), KVR_OK);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	ck_assert_int_eq(kvr_lease_finish(k, d.lease, NULL, now, 0), KVR_OK);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	kvr_prompt_free(p);
	kvr_free(k);
}
END_TEST

/* Full: the oldest are evicted, the newest stay, nothing fails. */
START_TEST(full_region)
{
	struct kvr *k = make(64 << 10, 1);
	uint64_t w[2] = { add(k, "a"), add(k, "b") };
	uint32_t i, recorded, n = (uint32_t)test_amount(20000);
	struct kvr_prompt *p;
	struct kvr_stats s;

	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	for (i = 0; i < n; i++) {
		set(p, i, 1 + i % 20);
		ck_assert_int_eq(kvr_observe(k, p, w[i % 2], i, 0, &recorded),
		    KVR_OK);
		ck_assert_uint_eq(recorded, 1 + i % 20);
		ck_assert_uint_eq(overlap(k, p, i), 1 + i % 20);
		if (i % 100 == 0)
			ck_assert_int_eq(kvr_check(k), KVR_OK);
	}
	if (n > 5000) {
		for (i = n - 50; i < n; i++) {
			set(p, i, 1 + i % 20);
			ck_assert_uint_eq(overlap(k, p, n), 1 + i % 20);
		}
		set(p, 0, 20);
		ck_assert_uint_eq(overlap(k, p, n), 0);
		ck_assert_uint_gt(stats_of(k).evicted_region, 1000);
	}
	s = stats_of(k);
	ck_assert_uint_le(s.region_bytes, 64 << 10);
	ck_assert_uint_eq(s.truncated, 0);
	kvr_prompt_free(p);
	kvr_free(k);
}
END_TEST

enum { PINNED = 4000 };

/* Opens leases until nothing more can be recorded, and some more. */
static uint32_t
pin_all(struct kvr *k, struct kvr_prompt *p, uint64_t *leases)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t i, short_of = 0;

	for (i = 0; i < PINNED; i++) {
		set(p, i, 12);
		ck_assert_int_eq(kvr_lease_open(k, p, NULL, 1000, &d), KVR_OK);
		ck_assert_uint_ne(d.worker, 0);
		ck_assert_uint_le(d.recorded_blocks, 12);
		leases[i] = d.lease;
		short_of += d.recorded_blocks < 12;
		if (d.recorded_blocks > 0)
			ck_assert_uint_eq(overlap(k, p, 1000),
			    d.recorded_blocks);
		if (i % 100 == 0)
			ck_assert_int_eq(kvr_check(k), KVR_OK);
	}
	return short_of;
}

/*
 * Full of leases that must not be evicted: each open still chooses, and when
 * they have ended, no trace of them is left.
 */
START_TEST(full_of_pinned_leases)
{
	static uint64_t leases[PINNED];
	struct kvr *k = make(128 << 10, 1);
	uint64_t w[2] = { add(k, "a"), add(k, "b") };
	uint64_t free_cells = stats_of(k).cells_free;
	struct kvr_worker_stats s = { .size = sizeof(s) };
	struct kvr_prompt *p;
	uint32_t i, left, recorded;

	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	ck_assert_uint_gt(pin_all(k, p, leases), 100);
	/* Pinned blocks stay: the first lease's prompt is still there. */
	set(p, 0, 12);
	ck_assert_uint_eq(overlap(k, p, 1000), 12);
	set(p, 9999999, 12);
	ck_assert_int_eq(kvr_observe(k, p, w[0], 1000, 0, &recorded), KVR_OK);
	for (i = 0; i < PINNED; i++)
		if (leases[i] != 0)
			ck_assert_int_eq(i % 2 == 0
			    ? kvr_lease_finish(k, leases[i], NULL, 1001, 0)
			    : kvr_lease_abort(k, leases[i], 1001, 0), KVR_OK);
	ck_assert_uint_eq(stats_of(k).leases, 0);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(kvr_worker_stats_get(k, w[i], &s), KVR_OK);
		ck_assert_uint_eq(s.requests, 0);
		ck_assert_uint_eq(s.prefill_tokens, 0);
		ck_assert_uint_eq(s.active_blocks, 0);
		ck_assert_int_eq(kvr_worker_remove(k, w[i]), KVR_OK);
	}
	ck_assert_int_eq(kvr_expire(k, 1001, UINT32_MAX, &left), KVR_OK);
	ck_assert_uint_eq(left, 0);
	ck_assert_uint_eq(stats_of(k).cells_free, free_cells);
	kvr_prompt_free(p);
	kvr_free(k);
}
END_TEST

/* Old idle prefixes make room for leases, never the other way round. */
START_TEST(pins_before_idle)
{
	struct kvr *k = make(64 << 10, 1);
	struct kvr_decision d = { .size = sizeof(d) };
	uint64_t w = add(k, "a");
	struct kvr_prompt *p;
	uint32_t i;

	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	set(p, 7, 40);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, w, 1, &d), KVR_OK);
	ck_assert_uint_eq(d.recorded_blocks, 40);
	for (i = 0; i < 3000; i++) {
		set(p, 100 + i, 30);
		ck_assert_int_eq(kvr_observe(k, p, w, 2 + i, 0, NULL),
		    KVR_OK);
	}
	ck_assert_uint_gt(stats_of(k).evicted_region, 0);
	set(p, 7, 40);
	ck_assert_uint_eq(overlap(k, p, 4000), 40);
	ck_assert_int_eq(kvr_lease_abort(k, d.lease, 4000, 0), KVR_OK);
	ck_assert_uint_eq(overlap(k, p, 4000), 0);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	kvr_prompt_free(p);
	kvr_free(k);
}
END_TEST

Suite *suite_memory(void);

Suite *
suite_memory(void)
{
	Suite *s = suite_create("memory");
	TCase *t = tcase_create("memory");

	tcase_add_test(t, smallest_region);
	tcase_add_test(t, prompt_larger_than_region);
	tcase_add_test(t, full_region);
	tcase_add_test(t, full_of_pinned_leases);
	tcase_add_test(t, pins_before_idle);
	suite_add_tcase(s, t);
	return s;
}
