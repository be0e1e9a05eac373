/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_misuse.c - bad input at the public border: requests, policies, arrays,
 * leases, time. Done as in test_border.c.
 */
#include "border.h"

#include <kvroute_replica.h>
#include <math.h>

/* ------------------------------------------------------ route and match --- */

#define BAD_REQUEST(field, value) do {                               \
	struct kvr_request bad_;                                     \
	struct kvr_decision d_ = { .size = sizeof(d_) };             \
	kvr_request_init(&bad_, sizeof(bad_));                       \
	bad_.field = (value);                                        \
	ck_assert_msg(kvr_route(k, p, &bad_, 100, &d_) ==            \
	    KVR_EINVAL, "route: " #field " = " #value);              \
	ck_assert_msg(kvr_lease_open(k, p, &bad_, 100, &d_) ==          \
	    KVR_EINVAL, "reserve: " #field " = " #value);            \
	ck_assert_msg(kvr_lease_open_on(k, p, &bad_, w, 100, &d_) ==    \
	    KVR_EINVAL, "reserve_on: " #field " = " #value);         \
} while (0)

START_TEST(absurd_requests)
{
	ck_assert_int_eq(kvr_request_init(NULL, sizeof(struct kvr_request)),
	    KVR_EINVAL);
	BAD_REQUEST(size, 0);
	BAD_REQUEST(overlap_credit, (double)NAN);
	BAD_REQUEST(overlap_credit, (double)INFINITY);
	BAD_REQUEST(prefill_scale, (double)NAN);
	BAD_REQUEST(prefill_scale, (double)INFINITY);
	BAD_REQUEST(temperature, (double)NAN);
	BAD_REQUEST(temperature, (double)INFINITY);
	BAD_REQUEST(stage, 3);
	BAD_REQUEST(stage, UINT32_MAX);
	BAD_REQUEST(flags, 16);
	BAD_REQUEST(flags, UINT32_MAX);
	BAD_REQUEST(n_excluded, KVR_EXCLUDED_MAX + 1);
	BAD_REQUEST(n_excluded, UINT32_MAX);
	BAD_REQUEST(n_preferences, KVR_PREFERENCES_MAX + 1);
	BAD_REQUEST(n_preferences, UINT32_MAX);
}
END_TEST

#define BAD_POLICY(field, value) do {                                \
	struct kvr_policy bad_;                                      \
	kvr_policy_init(&bad_, sizeof(bad_));                        \
	bad_.field = (value);                                        \
	ck_assert_msg(kvr_policy_set(k, &bad_) == KVR_EINVAL,        \
	    #field " = " #value);                                    \
} while (0)

START_TEST(absurd_policies)
{
	struct kvr_policy kept = { .size = sizeof(kept) }, usual;

	ck_assert_int_eq(kvr_policy_init(NULL, sizeof(struct kvr_policy)),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_policy_set(k, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_policy_get(k, NULL), KVR_EINVAL);
	BAD_POLICY(size, 0);
	BAD_POLICY(cost, 2);
	BAD_POLICY(reserved, 1);
	BAD_POLICY(overlap_credit, -1);
	BAD_POLICY(overlap_credit, (double)NAN);
	BAD_POLICY(overlap_decay, -1);
	BAD_POLICY(overlap_decay, (double)INFINITY);
	BAD_POLICY(prefill_scale, -1);
	BAD_POLICY(prefill_scale, (double)NAN);
	BAD_POLICY(request_weight, -1);
	BAD_POLICY(request_weight, (double)NAN);
	BAD_POLICY(temperature, -1);
	BAD_POLICY(temperature, (double)INFINITY);
	BAD_POLICY(overload_prefill_tokens, (double)NAN);
	BAD_POLICY(overload_prefill_fraction, (double)NAN);
	BAD_POLICY(overload_blocks_fraction, (double)NAN);
	BAD_POLICY(balanced_bound, -1);
	BAD_POLICY(balanced_bound, (double)NAN);
	BAD_POLICY(observed_seconds, 0);
	BAD_POLICY(observed_seconds, -1);
	BAD_POLICY(observed_seconds, (double)INFINITY);
	BAD_POLICY(observed_seconds, (double)NAN);
	kvr_policy_init(&usual, sizeof(usual));
	ck_assert_int_eq(kvr_policy_get(k, &kept), KVR_OK);
	ck_assert_mem_eq(&kept, &usual, sizeof(kept));
}
END_TEST

START_TEST(absurd_arrays)
{
	struct kvr_overlap v[2] = { { .worker = 99 }, { .worker = 99 } };
	struct kvr_candidate c;
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_entry e;
	uint64_t cursor = 0;
	size_t n = 99;

	ck_assert_int_eq(kvr_match(NULL, p, 100, v, sizeof(v[0]), 2, &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_match(k, p, 100, NULL, sizeof(v[0]), 2, &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_match(k, p, 100, v, sizeof(v[0]), 2, NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_match(k, p, 100, v, 0, 2, &n), KVR_EINVAL);
	ck_assert_int_eq(kvr_choose(k, p, NULL, NULL, sizeof(v[0]), 1, 100,
	    &d), KVR_EINVAL);
	ck_assert_int_eq(kvr_choose(k, p, NULL, v, 0, 1, 100, &d),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_choose(k, p, NULL, v, sizeof(v[0]), 1, 100,
	    NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_route(k, p, NULL, 100, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_route(NULL, p, NULL, 100, &d), KVR_EINVAL);
	ck_assert_int_eq(kvr_candidates(k, p, NULL, 100, NULL, sizeof(c), 1,
	    &n), KVR_EINVAL);
	ck_assert_int_eq(kvr_candidates(k, p, NULL, 100, &c, 0, 1, &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_entries(k, NULL, 100, &e, sizeof(e), 1, &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_entries(k, &cursor, 100, NULL, sizeof(e), 1,
	    &n), KVR_EINVAL);
	ck_assert_int_eq(kvr_entries(k, &cursor, 100, &e, 0, 1, &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_entries(k, &cursor, 100, &e, sizeof(e), 0, &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_entries(k, &cursor, 100, &e, sizeof(e), 1, NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_candidates(k, p, NULL, 100, &c, sizeof(c), 1,
	    NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_locals(p, NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_locals(NULL, NULL, 0), KVR_EINVAL);
	ck_assert_uint_eq(n, 99);
	ck_assert_uint_eq(v[0].worker, 99);
	d.size = 0;
	ck_assert_int_eq(kvr_route(k, p, NULL, 100, &d), KVR_EINVAL);
}
END_TEST

/* Elements may be larger than ours, for a program newer than the library. */
START_TEST(larger_elements)
{
	struct {
		struct kvr_overlap v;
		unsigned char more[24];
	} out[2];
	size_t n;

	memset(out, 0x5a, sizeof(out));
	ck_assert_int_eq(kvr_match(k, p, 100, &out[0].v, sizeof(out[0]), 2,
	    &n), KVR_OK);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(out[0].v.blocks, 5);
	ck_assert_uint_eq(out[0].more[0], 0x5a);
	ck_assert_uint_eq(out[1].v.worker, UINT64_C(0x5a5a5a5a5a5a5a5a));
	ck_assert_int_eq(kvr_match(k, p, 100, NULL, sizeof(out[0]), 0, &n),
	    KVR_OK);
	ck_assert_uint_eq(n, 1);
}
END_TEST

/* Arrays within packed records of the caller's: at any address. */
START_TEST(unaligned_arrays)
{
	enum { ROOM = 8 };
	unsigned char room[sizeof(struct kvr_overlap) * ROOM + 1];
	struct kvr_decision d = { .size = sizeof(d) }, want = d;
	struct kvr_overlap aligned[ROOM], copy;
	size_t n, m, i;

	ck_assert_int_eq(kvr_match(k, p, 100, aligned, sizeof(aligned[0]),
	    ROOM, &n), KVR_OK);
	ck_assert_uint_gt(n, 0);
	ck_assert_int_eq(kvr_match(k, p, 100, (void *)(room + 1),
	    sizeof(aligned[0]), ROOM, &m), KVR_OK);
	ck_assert_uint_eq(m, n);
	for (i = 0; i < n; i++) {
		memcpy(&copy, room + 1 + i * sizeof(copy), sizeof(copy));
		ck_assert_mem_eq(&copy, &aligned[i], sizeof(copy));
	}
	ck_assert_int_eq(kvr_choose(k, p, NULL, aligned, sizeof(aligned[0]), n,
	    100, &want), KVR_OK);
	ck_assert_int_eq(kvr_choose(k, p, NULL, (void *)(room + 1),
	    sizeof(aligned[0]), n, 100, &d), KVR_OK);
	ck_assert_mem_eq(&d, &want, sizeof(d));
}
END_TEST

/* ------------------------------------------------------ leases and time --- */

static void
refuses_lease(uint64_t number)
{
	ck_assert_int_eq(kvr_lease_commit(k, number, 200, 0), KVR_ELEASE);
	ck_assert_int_eq(kvr_lease_first_token(k, number, 200, 0), KVR_ELEASE);
	ck_assert_int_eq(kvr_lease_extend(k, number, p, 200, 0), KVR_ELEASE);
	ck_assert_int_eq(kvr_lease_output(k, number, 1, 200, 0), KVR_ELEASE);
	ck_assert_int_eq(kvr_lease_finish(k, number, NULL, 200, 0), KVR_ELEASE);
	ck_assert_int_eq(kvr_lease_abort(k, number, 200, 0), KVR_ELEASE);
	unharmed();
}

/* There was no room for one: nothing is to be done. */
static void
accepts_no_lease(void)
{
	ck_assert_int_eq(kvr_lease_commit(k, 0, 100, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_first_token(k, 0, 100, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_extend(k, 0, p, 100, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_output(k, 0, 1, 100, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_finish(k, 0, NULL, 100, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_abort(k, 0, 100, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_abort(k, 0, -2, 0), KVR_ECLOCK);
	ck_assert_int_eq(kvr_lease_abort(k, 0, 100, 2), KVR_EINVAL);
	unharmed();
}

START_TEST(dead_leases)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_report r = { .size = 0 };
	uint64_t bit;

	for (bit = 1; bit != 0; bit <<= 1)
		if ((lease ^ bit) != lease)
			refuses_lease(lease ^ bit);
	accepts_no_lease();
	refuses_lease(UINT64_MAX);
	ck_assert_int_eq(kvr_lease_finish(k, lease, &r, 200, 0), KVR_EINVAL);
	r.size = sizeof(r);
	r.kind = 3;
	ck_assert_int_eq(kvr_lease_finish(k, lease, &r, 200, 0), KVR_EINVAL);
	r.kind = 0;
	r.flags = 4;
	ck_assert_int_eq(kvr_lease_finish(k, lease, &r, 200, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_commit(k, lease, 100, 2), KVR_EINVAL);
	ck_assert_int_eq(
	    kvr_lease_abort(k, lease, 100, UINT32_MAX), KVR_EINVAL);
	ck_assert_int_eq(kvr_observe(k, p, w, 100, 2, NULL), KVR_EINVAL);
	unharmed();
	ck_assert_int_eq(kvr_lease_commit(k, lease, 100, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_extend(k, lease, NULL, 100, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_extend(k, lease, p, 100, 0), KVR_EMISMATCH);
	ck_assert_int_eq(kvr_lease_finish(k, lease, NULL, 100, 0), KVR_OK);
	take_stock();
	refuses_lease(lease); /* the second time fails */
	ck_assert_int_eq(kvr_lease_open(k, p, NULL, 100, &d), KVR_OK);
	ck_assert_int_eq(kvr_lease_abort(k, d.lease, 100, 0), KVR_OK);
	take_stock();
	refuses_lease(d.lease);
}
END_TEST

/* Generated blocks by the billion: the counter saturates, never wraps. */
START_TEST(output_overflow)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	uint64_t last = 0;
	int i, rc;

	for (i = 0; i < 5; i++) {
		rc = kvr_lease_output(k, lease, UINT32_MAX, 100, 0);
		ck_assert(rc == KVR_OK || rc == KVR_EINVAL);
		ck_assert_int_eq(kvr_worker_stats_get(k, w, &s), KVR_OK);
		ck_assert_uint_ge(s.output_blocks, last);
		last = s.output_blocks;
		ck_assert_int_eq(kvr_check(k), KVR_OK);
	}
	ck_assert_int_eq(kvr_lease_abort(k, lease, 100, 0), KVR_OK);
	ck_assert_int_eq(kvr_worker_stats_get(k, w, &s), KVR_OK);
	ck_assert_uint_eq(s.output_blocks, 0);
	take_stock();
}
END_TEST

static void
refuses_time(int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_candidate c;
	struct kvr_entry e;
	uint64_t cursor = 0;
	size_t n;

	ck_assert_int_eq(kvr_match(k, p, now, NULL, sizeof(struct
	    kvr_overlap), 0, &n), KVR_ECLOCK);
	ck_assert_int_eq(kvr_route(k, p, NULL, now, &d), KVR_ECLOCK);
	ck_assert_int_eq(kvr_candidates(k, p, NULL, now, &c, sizeof(c), 1,
	    &n), KVR_ECLOCK);
	ck_assert_int_eq(kvr_entries(k, &cursor, now, &e, sizeof(e), 1, &n),
	    KVR_ECLOCK);
	ck_assert_int_eq(kvr_observe(k, p, w, now, 0, NULL), KVR_ECLOCK);
	ck_assert_int_eq(kvr_expire(k, now, 1, NULL), KVR_ECLOCK);
	ck_assert_int_eq(kvr_lease_open(k, p, NULL, now, &d), KVR_ECLOCK);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, w, now, &d), KVR_ECLOCK);
	ck_assert_int_eq(kvr_lease_commit(k, lease, now, 0), KVR_ECLOCK);
	ck_assert_int_eq(kvr_lease_first_token(k, lease, now, 0), KVR_ECLOCK);
	ck_assert_int_eq(kvr_lease_output(k, lease, 1, now, 0), KVR_ECLOCK);
	ck_assert_int_eq(kvr_lease_finish(k, lease, NULL, now, 0), KVR_ECLOCK);
	ck_assert_int_eq(kvr_lease_abort(k, lease, now, 0), KVR_ECLOCK);
	ck_assert_int_eq(kvr_owner_reap(k, 0, now, &cursor, NULL), KVR_ECLOCK);
	unharmed();
}

START_TEST(clock_jumps)
{
	const int64_t leap = INT64_C(30) * 86400 * 1000000000;
	uint32_t left;

	refuses_time(-2);
	refuses_time(INT64_MIN);
	refuses_time(100 + leap + 1);
	refuses_time(INT64_MAX);
	ck_assert_int_eq(kvr_next_expiry(k, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_next_expiry(NULL, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_expire(NULL, 100, 1, &left), KVR_EINVAL);
	/* The maximum leap: the rest is due, not lost by overflow. */
	ck_assert_int_eq(kvr_lease_commit(k, lease, 100 + leap, 0), KVR_OK);
	ck_assert_int_eq(kvr_observe(k, p, w, 0, 0, NULL), KVR_OK);
	take_stock();
	ck_assert_int_eq(before.clock, 100 + leap);
	ck_assert_uint_eq(before.clock_back, 1);
}
END_TEST

/* The first call may be at any time: a new clock has no past. */
START_TEST(first_call)
{
	static const int64_t at[] = { 0, 1, INT64_C(1785000000000000000),
	    INT64_MAX / 2 };
	struct kvr_stats s = { .size = sizeof(s) };
	struct kvr_options o;
	struct kvr *fresh;
	size_t i;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = 1 << 20;
	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		ck_assert_int_eq(kvr_new(&o, &fresh), KVR_OK);
		ck_assert_int_eq(kvr_stats_get(fresh, &s), KVR_OK);
		ck_assert_int_eq(s.clock, -1);
		ck_assert_int_eq(kvr_expire(fresh, at[i], 1, NULL), KVR_OK);
		ck_assert_int_eq(kvr_stats_get(fresh, &s), KVR_OK);
		ck_assert_int_eq(s.clock, at[i]);
		ck_assert_int_eq(kvr_expire(fresh, INT64_MAX / 2 + 1, 1, NULL),
		    KVR_ECLOCK);
		ck_assert_int_eq(kvr_check(fresh), KVR_OK);
		kvr_free(fresh);
	}
}
END_TEST

START_TEST(null_handles)
{
	struct kvr_options o = { .size = sizeof(o) };
	struct kvr_policy policy;
	uint64_t cursor = 0;
	size_t n;

	ck_assert_int_eq(kvr_clear(NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_check(NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_nowait_set(NULL, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_nowait_set(k, 3), KVR_EINVAL);
	ck_assert_int_eq(kvr_options_get(NULL, &o), KVR_EINVAL);
	ck_assert_int_eq(kvr_options_get(k, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_stats_get(NULL, &before), KVR_EINVAL);
	ck_assert_int_eq(kvr_stats_get(k, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_stats_get(k, w, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_metrics(NULL, NULL, 0, &n), KVR_EINVAL);
	ck_assert_int_eq(kvr_metrics(k, NULL, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_metrics(k, NULL, 1, &n), KVR_EINVAL);
	kvr_policy_init(&policy, sizeof(policy));
	ck_assert_int_eq(kvr_policy_set(NULL, &policy), KVR_EINVAL);
	ck_assert_int_eq(kvr_policy_get(NULL, &policy), KVR_EINVAL);
	ck_assert_int_eq(kvr_observe(NULL, p, w, 1, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_open(NULL, p, NULL, 1, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_open(k, p, NULL, 100, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, w, 100, NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_commit(NULL, lease, 1, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_first_token(NULL, lease, 1, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_extend(NULL, lease, p, 1, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_output(NULL, lease, 1, 1, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_finish(NULL, lease, NULL, 1, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_abort(NULL, lease, 1, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_owner_reap(NULL, 0, 1, &cursor, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_owner_reap(k, 0, 1, NULL, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_owner_list(NULL, &cursor, &cursor, 1, &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_owner_list(k, NULL, &cursor, 1, &n), KVR_EINVAL);
	ck_assert_int_eq(kvr_owner_list(k, &cursor, NULL, 1, &n), KVR_EINVAL);
	ck_assert_int_eq(kvr_owner_list(k, &cursor, &cursor, 0, &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_owner_list(k, &cursor, &cursor, 1, NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_entries(NULL, &cursor, 1, NULL, 0, 0, &n),
	    KVR_EINVAL);
}
END_TEST

START_TEST(null_handles_for_workers)
{
	struct kvr_worker_stats counts = { .size = sizeof(counts) };
	struct kvr_load load = { .size = sizeof(load) };
	struct kvr_worker facts;
	char name[4];
	uint64_t other = 99;
	size_t n;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	ck_assert_int_eq(kvr_worker_add(NULL, "n", 1, NULL, &other),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_find(NULL, "n", 1, 0, &other), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_find(k, "n", 1, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_find(k, NULL, 1, 0, &other), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_get(NULL, w, &facts), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_get(k, w, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_name(NULL, w, name, sizeof(name), &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_name(k, w, name, sizeof(name), NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_name(k, w, NULL, 1, &n), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_set(NULL, w, &facts), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_set(k, w, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_set_load(NULL, w, 0, &load), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_set_load(k, w, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_get_load(NULL, w, 0, &load), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_get_load(k, w, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_set_load(k, w, KVR_LOAD_SOURCES, &load),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_get_load(k, w, KVR_LOAD_SOURCES, &load),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_get_load(k, 0, 0, &load), KVR_EWORKER);
	load.requests = UINT64_MAX;
	ck_assert_int_eq(kvr_worker_set_load(k, w, 0, &load), KVR_EINVAL);
	load.requests = 0;
	load.active_blocks = UINT64_MAX;
	ck_assert_int_eq(kvr_worker_set_load(k, w, 0, &load), KVR_EINVAL);
	load.size = 0;
	ck_assert_int_eq(kvr_worker_set_load(k, w, 0, &load), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_get_load(k, w, 0, &load), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_reset(NULL, w, &other), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_reset(k, w, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_next(NULL, &other), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_next(k, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_remove(NULL, w), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_forget(NULL, w), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_stats_get(NULL, w, &counts), KVR_EINVAL);
	ck_assert_uint_eq(other, 99);
}
END_TEST

/* A field that has no meaning yet is refused, so that it can get one. */
START_TEST(reserved_fields)
{
	struct kvr_report report = { .size = sizeof(report), .reserved = 1 };
	struct kvr_request request;
	struct kvr_worker facts;
	struct kvr_decision d = { .size = sizeof(d) };
	uint64_t other;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.window_reserved = 1;
	ck_assert_int_eq(kvr_worker_set(k, w, &facts), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_add(k, "new", 3, &facts, &other),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_request_init(&request, sizeof(request)), KVR_OK);
	request.affinity_mode = KVR_AFFINITY_HASH + 1;
	ck_assert_int_eq(kvr_route(k, p, &request, 100, &d), KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_finish(k, lease, &report, 100, 0),
	    KVR_EINVAL);
}
END_TEST

/* Every error has a message and a name, and so has every other number. */
START_TEST(messages)
{
	int e, f;

	for (e = 2; e > -40; e--) {
		ck_assert_ptr_nonnull(kvr_strerror(e));
		ck_assert_uint_gt(strlen(kvr_strerror(e)), 5);
		ck_assert_ptr_nonnull(kvr_errname(e));
		ck_assert_int_eq(strncmp(kvr_errname(e), "KVR_", 4), 0);
		for (f = 0; f > e && e >= KVR_ECORRUPT; f--)
			ck_assert_str_ne(kvr_errname(e), kvr_errname(f));
	}
	ck_assert_str_eq(kvr_errname(KVR_EINVAL), "KVR_EINVAL");
	ck_assert_str_eq(kvr_errname(-1000), "KVR_E?");
	ck_assert_str_eq(kvr_errname(1), "KVR_E?");
	ck_assert_ptr_nonnull(kvr_strerror(-2147483647 - 1));
	ck_assert_uint_eq(kvr_version(), KVR_VERSION_MAJOR << 16 |
	    KVR_VERSION_MINOR << 8 | KVR_VERSION_PATCH);
	ck_assert_str_eq(kvr_version_string(), KVR_VERSION_STRING);
}
END_TEST

Suite *suite_misuse(void);

Suite *
suite_misuse(void)
{
	Suite *s = suite_create("misuse");
	TCase *t = tcase_create("misuse");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, absurd_requests);
	tcase_add_test(t, absurd_policies);
	tcase_add_test(t, absurd_arrays);
	tcase_add_test(t, larger_elements);
	tcase_add_test(t, unaligned_arrays);
	tcase_add_test(t, dead_leases);
	tcase_add_test(t, output_overflow);
	tcase_add_test(t, clock_jumps);
	tcase_add_test(t, first_call);
	tcase_add_test(t, null_handles);
	tcase_add_test(t, null_handles_for_workers);
	tcase_add_test(t, reserved_fields);
	tcase_add_test(t, messages);
	suite_add_tcase(s, t);
	return s;
}
