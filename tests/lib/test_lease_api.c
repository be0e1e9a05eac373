/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lease_api.c - every call on a lease in every state, and leases in
 * regions without a free cell or with blocks that share half of a hash.
 *
 * The prompt of most tests is "abcd": four blocks, four tokens.
 */
#include "fit.h"
#include "lease.h"
#include "retain.h"

#include "inner.h"

/* ------------------------------------------------------ state by state --- */

enum { RESERVED, COMMITTED, DECODING, ENDED };
enum { COMMIT, FIRST_TOKEN, EXTEND, OUTPUT, FINISH, ABORT };

static const struct {
	int state, call, error;
	int then;
	uint64_t prefill, active, output;
	const char *tree;
} steps[] = {
	{ RESERVED, COMMIT, KVR_OK, COMMITTED, 4, 4, 0, "abcd:0!" },
	{ RESERVED, FIRST_TOKEN, KVR_OK, DECODING, 0, 4, 0, "abcd:0!" },
	{ RESERVED, EXTEND, KVR_OK, COMMITTED, 4, 6, 0, "abcdef:0!" },
	{ RESERVED, OUTPUT, KVR_OK, RESERVED, 4, 4, 3, "abcd:0!" },
	{ RESERVED, FINISH, KVR_OK, ENDED, 0, 0, 0, "abcd:0" },
	{ RESERVED, ABORT, KVR_OK, ENDED, 0, 0, 0, "" },
	{ COMMITTED, COMMIT, KVR_OK, COMMITTED, 4, 4, 0, "abcd:0!" },
	{ COMMITTED, FIRST_TOKEN, KVR_OK, DECODING, 0, 4, 0, "abcd:0!" },
	{ COMMITTED, EXTEND, KVR_OK, COMMITTED, 4, 6, 0, "abcdef:0!" },
	{ COMMITTED, OUTPUT, KVR_OK, COMMITTED, 4, 4, 3, "abcd:0!" },
	{ COMMITTED, FINISH, KVR_OK, ENDED, 0, 0, 0, "abcd:0" },
	{ COMMITTED, ABORT, KVR_OK, ENDED, 0, 0, 0, "abcd:0" },
	{ DECODING, COMMIT, KVR_OK, DECODING, 0, 4, 0, "abcd:0!" },
	{ DECODING, FIRST_TOKEN, KVR_OK, DECODING, 0, 4, 0, "abcd:0!" },
	{ DECODING, EXTEND, KVR_OK, DECODING, 0, 6, 0, "abcdef:0!" },
	{ DECODING, OUTPUT, KVR_OK, DECODING, 0, 4, 3, "abcd:0!" },
	{ DECODING, FINISH, KVR_OK, ENDED, 0, 0, 0, "abcd:0" },
	{ DECODING, ABORT, KVR_OK, ENDED, 0, 0, 0, "abcd:0" },
	{ ENDED, COMMIT, KVR_ELEASE, ENDED, 0, 0, 0, "abcd:0" },
	{ ENDED, FIRST_TOKEN, KVR_ELEASE, ENDED, 0, 0, 0, "abcd:0" },
	{ ENDED, EXTEND, KVR_ELEASE, ENDED, 0, 0, 0, "abcd:0" },
	{ ENDED, OUTPUT, KVR_ELEASE, ENDED, 0, 0, 0, "abcd:0" },
	{ ENDED, FINISH, KVR_ELEASE, ENDED, 0, 0, 0, "abcd:0" },
	{ ENDED, ABORT, KVR_ELEASE, ENDED, 0, 0, 0, "abcd:0" }
};

static int
make_call(int call, uint64_t lease, int64_t now)
{
	switch (call) {
	case COMMIT:
		return kvr_lease_commit(k, lease, now, 0);
	case FIRST_TOKEN:
		return kvr_lease_first_token(k, lease, now, 0);
	case EXTEND:
		return kvr_lease_extend(k, lease, say("abcdef"), now, 0);
	case OUTPUT:
		return kvr_lease_output(k, lease, 3, now, 0);
	case FINISH:
		return kvr_lease_finish(k, lease, NULL, now, 0);
	default:
		return kvr_lease_abort(k, lease, now, 0);
	}
}

/* A lease on "abcd" brought so far. */
static uint64_t
lease_in(int state)
{
	static const int way[] = { COMMIT, FIRST_TOKEN, FINISH };
	uint64_t lease = reserve(0, "abcd", 1);
	int i;

	for (i = 0; i < state; i++)
		ck_assert_int_eq(make_call(way[i], lease, 2 + i), KVR_OK);
	return lease;
}

static int
state_of(uint64_t lease)
{
	uint32_t l = lease_find(k, lease);

	uint32_t flags = l == 0 ? 0 : lease_at(k, l)->flags;

	if (l == 0)
		return ENDED;
	if ((flags & LEASE_DECODING) != 0)
		return DECODING;
	return (flags & LEASE_COMMITTED) != 0 ? COMMITTED : RESERVED;
}

START_TEST(every_call_in_every_state)
{
	uint64_t lease = lease_in(steps[_i].state);

	ck_assert_int_eq(state_of(lease), steps[_i].state);
	ck_assert_int_eq(make_call(steps[_i].call, lease, 10),
	    steps[_i].error);
	ck_assert_int_eq(state_of(lease), steps[_i].then);
	ck_tree(steps[_i].tree);
	ck_load(0, steps[_i].prefill, steps[_i].active, steps[_i].output,
	    steps[_i].then != ENDED);
	ck_assert_uint_eq(stats().leases, steps[_i].then != ENDED);
	if (steps[_i].then == ENDED)
		return;
	/* and whatever it was, it can be ended */
	give_up(lease, 11);
	ck_load(0, 0, 0, 0, 0);
}
END_TEST

/* -------------------------------------------------------- regressions --- */

static void
say_hashes(const uint64_t *local, size_t n)
{
	ck_assert_int_eq(kvr_prompt_begin(p, NULL), KVR_OK);
	ck_assert_int_eq(kvr_prompt_locals(p, local, n), KVR_OK);
	ck_assert_int_eq(kvr_prompt_end(p, NULL), KVR_OK);
}

/*
 * Two first blocks with the same low half: the table finds the later one. A
 * lease on the earlier grows all the same, and leaves nothing behind.
 */
START_TEST(extend_behind_a_collision)
{
	const uint64_t mine[] = { UINT64_C(0x100000005), 7, 8 };
	const uint64_t other[] = { UINT64_C(0x200000005), 9 };
	struct kvr_options o = small_options();
	struct kvr_decision d = { .size = sizeof(d) };

	o.hash = KVR_HASH_DYNAMO;
	region_of(&o);
	say_hashes(mine, 1);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], 1, &d), KVR_OK);
	ck_assert_int_eq(kvr_lease_commit(k, d.lease, 1, 0), KVR_OK);
	say_hashes(other, 2);
	ck_assert_int_eq(kvr_observe(k, p, id[1], 2, 0, NULL), KVR_OK);
	say_hashes(mine, 3);
	ck_assert_int_eq(kvr_lease_extend(k, d.lease, p, 3, 0), KVR_OK);
	region_sound();
	ck_assert_uint_eq(worker_stats(0).active_blocks, 3);
	ck_assert_int_eq(kvr_lease_finish(k, d.lease, NULL, 4, 0), KVR_OK);
	region_sound();
	ck_assert_int_eq(kvr_expire(k, 5 + TTL, UINT32_MAX, NULL), KVR_OK);
	ck_assert_uint_eq(stats().entries, 0);
	ck_assert_uint_eq(k->region->free_cells, k->layout.cells - 1);
	region_sound();
	region_end();
}
END_TEST

/* A worker that holds all of a prompt needs no room to be given it again. */
START_TEST(shares_without_free_cells)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t chain;

	say_long(200, 200, 0);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], 1, &d), KVR_OK);
	chain = hoard_all_but(2);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], 2, &d), KVR_OK);
	ck_assert_uint_eq(d.recorded_blocks, 200);
	ck_assert_uint_eq(worker_stats(0).active_blocks, 200);
	ck_assert_uint_eq(worker_stats(0).output_blocks, 0);
	give_back(chain);
	region_sound();
}
END_TEST

/* Load is booked when no prefix has room: there are cells for that. */
START_TEST(leases_when_full)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t chain = hoard_all_but(fit_spare(k)), i;

	ck_assert_uint_gt(fit_spare(k), 2);
	for (i = 0; i < fit_spare(k) / 2; i++) {
		say_long(200, 200, i);
		ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], 1, &d),
		    KVR_OK);
		ck_assert_uint_ne(d.lease, 0);
		ck_assert_uint_eq(d.recorded_blocks, 0);
	}
	ck_assert_uint_eq(worker_stats(0).output_blocks,
	    fit_spare(k) / 2 * UINT64_C(200));
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], 1, &d), KVR_OK);
	ck_assert_uint_eq(d.lease, 0);
	give_back(chain);
	region_sound();
}
END_TEST

Suite *suite_lease_api(void);

Suite *
suite_lease_api(void)
{
	Suite *s = suite_create("lease_api");
	TCase *t = small_case(s, "small");

	tcase_add_loop_test(t, every_call_in_every_state, 0,
	    sizeof(steps) / sizeof(steps[0]));
	tcase_add_test(t, shares_without_free_cells);
	tcase_add_test(t, leases_when_full);
	t = tcase_create("own region");
	tcase_add_test(t, extend_behind_a_collision);
	suite_add_tcase(s, t);
	return s;
}
