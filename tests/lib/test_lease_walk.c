/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lease_walk.c - walks over the leases in pieces: nothing is left out,
 * whatever ends between two pieces, and no piece is long. The formulas are
 * test_bounds.c's.
 */
#include "id.h"
#include "inner.h"
#include "lease.h"
#include "txn.h"

enum { MANY = 3000, PIECE_LEASES = 256 };

static uint64_t lease[MANY];

static uint64_t
open_as(uint64_t owner, int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;

	must(kvr_request_init(&r, sizeof(r)) == KVR_OK);
	r.owner = owner;
	must(kvr_lease_open_on(k, p, &r, id[0], now, &d) == KVR_OK);
	return d.lease;
}

static void
large_region(uint64_t bytes)
{
	struct kvr_options o = small_options();

	o.region_bytes = bytes;
	o.max_prompt_blocks = 1 << 20;
	region_of(&o);
}

/* Every third is of owner 3. */
static void
open_many(void)
{
	uint32_t i;

	large_region(4 << 20);
	say("ab");
	for (i = 0; i < MANY; i++)
		lease[i] = open_as(i % 3 == 0 ? 3 : 4, 1);
}

static uint32_t
reap_piece(uint64_t owner, uint64_t *cursor)
{
	uint32_t ended;

	ck_assert_int_eq(kvr_owner_reap(k, owner, 2, cursor, &ended), KVR_OK);
	return ended;
}

START_TEST(reaped_in_pieces)
{
	uint64_t cursor = 0;
	uint32_t all = 0, pieces = 0;

	open_many();
	do {
		all += reap_piece(3, &cursor);
		pieces++;
		region_sound();
	} while (cursor != 0);
	ck_assert_uint_eq(all, MANY / 3);
	ck_assert_uint_eq(pieces, MANY / PIECE_LEASES + 1);
	ck_assert_uint_eq(stats().leases, MANY - MANY / 3);
	ck_assert_uint_eq(reap_piece(9, &cursor), 0);
	ck_assert_uint_ne(cursor, 0);
	region_end();
}
END_TEST

/*
 * The lease at which a piece stopped has ended when the next one begins, with
 * as many on both sides.
 */
static void
ends_between(uint32_t around)
{
	uint32_t all = 0, i, at, first;
	uint64_t cursor = 0;

	open_many();
	for (;;) {
		all += reap_piece(3, &cursor);
		if (cursor == 0)
			break;
		for (at = 0; lease[at] != cursor; at++)
			continue;
		first = at > around ? at - around : 0;
		for (i = first; i <= at + around && i < MANY; i++)
			if (kvr_lease_abort(k, lease[i], 2, 0) == KVR_OK)
				all += i % 3 == 0;
	}
	ck_assert_uint_eq(all, MANY / 3);
	ck_assert_uint_eq(reap_piece(3, &cursor), 0);
	region_end();
}

START_TEST(others_end_between_pieces)
{
	ends_between(0);
	ends_between(60); /* one that is close will do */
	ends_between(64); /* none is: begins anew */
	ends_between(500);
}
END_TEST

/* A cursor that is no lease's begins anew, and does no harm. */
START_TEST(any_cursor)
{
	uint64_t cursor, owner;
	size_t n;
	uint32_t i;

	by_chance();
	open_many();
	for (i = 0; i < 1000; i++) {
		cursor = plain_random(&chance) >> pick(64);
		ck_assert_int_eq(kvr_owner_list(k, &cursor, &owner, 1, &n),
		    KVR_OK);
		ck_assert_uint_le(n, 1);
	}
	cursor = id[0];
	ck_assert_uint_gt(reap_piece(3, &cursor), 0);
	ck_assert_uint_eq(cursor, lease[PIECE_LEASES - 1]);
	region_end();
}
END_TEST

/* Each owner is listed, also more than fit, also behind many of one. */
START_TEST(owners_in_pieces)
{
	bool seen[300] = { false };
	uint64_t owners[100], cursor = 0;
	uint32_t i, found = 0, calls = 0;
	size_t n, j;

	large_region(4 << 20);
	say("ab");
	for (i = 0; i < MANY; i++)
		lease[i] = open_as(i < MANY / 2 ? 7 : i % 300, 1);
	do {
		ck_assert_int_eq(kvr_owner_list(k, &cursor, owners, 100, &n),
		    KVR_OK);
		for (j = 0; j < n; j++) {
			found += !seen[owners[j]];
			seen[owners[j]] = true;
		}
		calls++;
	} while (cursor != 0);
	ck_assert_uint_eq(found, 300);
	ck_assert_uint_lt(calls, MANY / 20);
	region_end();
}
END_TEST

/*
 * Prompts begin each other, with one node for each block: the work for all
 * their leases exceeds one call, and is no damage.
 */
static size_t
list_piece(uint64_t *cursor, struct kvr_lease_info *info, size_t capacity)
{
	size_t n;

	ck_assert_int_eq(kvr_lease_list(k, cursor, info, sizeof(*info),
	    capacity, &n), KVR_OK);
	return n;
}

/* All that stay open are visited, though others end meanwhile. */
START_TEST(listed_in_pieces)
{
	static struct kvr_lease_info info[MANY];
	static uint8_t seen[MANY];
	uint64_t cursor = 0;
	size_t n, i, at, pieces = 0;

	open_many();
	do {
		n = list_piece(&cursor, info, 700);
		for (i = 0; i < n; i++) {
			at = info[i].lease / 4 - lease[0] / 4;
			must(at < MANY && lease[at] == info[i].lease);
			must(info[i].owner == (at % 3 == 0 ? 3 : 4));
			seen[at] = 1;
		}
		for (i = 1; i < MANY; i += 100) /* the first time they end */
			(void)kvr_lease_abort(k, lease[i], 2, 0);
		must(++pieces < 20);
	} while (cursor != 0);
	for (i = 0; i < MANY; i++)
		must(seen[i] || i % 100 == 1);
	cursor = 0;
	ck_assert_uint_eq(list_piece(&cursor, info, MANY), PIECE_LEASES);
	region_end();
}
END_TEST

START_TEST(listed_as_they_are)
{
	struct kvr_lease_info info[4];
	uint64_t cursor = 0;
	size_t n;

	small_setup();
	lease[0] = reserve(0, "abc", 3);
	lease[1] = reserve(1, "abcd", 4);
	commit(lease[1], 4);
	lease[2] = reserve(2, "ab", 5);
	commit(lease[2], 5);
	ck_assert_int_eq(kvr_lease_first_token(k, lease[2], 6, 0), KVR_OK);
	remove_worker(id[1]);
	ck_assert_uint_eq(list_piece(&cursor, info, 4), 3);
	ck_assert_uint_eq(cursor, 0);
	for (n = 0; n < 3; n++)
		ck_assert_uint_eq(info[n].lease, lease[n]);
	ck_assert(info[0].worker == id[0] && info[1].worker == 0 &&
	    info[2].worker == id[2]);
	ck_assert(info[0].opened == 3 && info[0].tokens == 3 &&
	    info[0].blocks == 3 && info[0].owner == 0);
	ck_assert(info[0].state == KVR_LEASE_OPENED &&
	    info[1].state == KVR_LEASE_COMMITTED &&
	    info[2].state == KVR_LEASE_DECODING);
	ck_assert_int_eq(kvr_lease_list(NULL, &cursor, info, 8, 1, &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_list(k, NULL, info, 8, 1, &n), KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_list(k, &cursor, NULL, 8, 1, &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_list(k, &cursor, info, 7, 1, &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_list(k, &cursor, info, 8, 0, &n),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_lease_list(k, &cursor, info, 8, 1, NULL),
	    KVR_EINVAL);
	region_end();
}
END_TEST

START_TEST(nested_leases_are_no_damage)
{
	uint32_t n = (uint32_t)test_amount(4000), i, ended = 0;
	uint64_t cursor = 0, mine, most = 0;
	struct kvr_stats s;

	large_region(3 << 20);
	say("xyz");
	observe(0, "xyz", 1);
	mine = open_as(2, 1);
	for (i = n; i > 0; i--) {
		say_long(i, i, 0);
		(void)open_as(1, 1);
	}
	k->region->counts.max_steps = 0;
	do {
		ended += reap_piece(1, &cursor);
		s = stats();
		most = s.max_steps > most ? s.max_steps : most;
	} while (cursor != 0);
	ck_assert_uint_eq(ended, n);
	ck_assert_uint_eq(s.recoveries, 0);
	/* of one piece, and the path of the last lease it ends */
	ck_assert_uint_le(most, 4096 + 16 * n + 512);
	ck_assert_uint_eq(overlap(0, 2), 0);
	say("xyz");
	ck_assert_uint_eq(overlap(0, 2), 3);
	ck_assert_int_eq(kvr_lease_finish(k, mine, NULL, 3, 0), KVR_OK);
	region_end();
}
END_TEST

/* Damage: no lease belongs to a slot that is kept from being used. */
START_TEST(no_slot_and_no_reason)
{
	uint64_t fresh;
	uint32_t i, calls = 0;
	int error;

	open_many();
	for (i = 0; i < WORKERS; i++)
		ck_assert_int_eq(kvr_worker_reset(k, id[1], &id[1]), KVR_OK);
	k->region->slot_free = 0;
	k->region->slots_used = k->layout.slots;
	do {
		error = kvr_worker_reset(k, id[1], &fresh);
		calls++;
	} while (error == KVR_EBUSY);
	ck_assert_int_eq(error, KVR_EFULL);
	ck_assert_uint_le(calls, 2 * MANY / PIECE_LEASES + 3);
	ck_assert_uint_eq(stats().leases, MANY);
	k->region->slot_free = 1; /* leave it as any recovery would */
	txn_recover(k);
	region_end();
}
END_TEST

/* -------------------------------------------------------------- damage --- */

/* The list by age is a ring. */
static void
age_ring(void)
{
	lease_at(k, lease_find(k, lease[MANY - 1]))->age_next =
	    lease_find(k, lease[0]);
}

/* A lease in the middle is not found by its number. */
static void
age_unfound(void)
{
	lease_at(k, lease_find(k, lease[MANY / 2]))->number += MANY;
}

/* One at a time, so that each lease is where a piece ends. */
static void
ck_walks_end(void (*damage)(void))
{
	uint64_t cursor = 0, owner, recoveries;
	uint32_t calls = 0, ended;
	size_t n;

	open_many();
	damage();
	do {
		ck_assert_int_eq(kvr_owner_list(k, &cursor, &owner, 1, &n),
		    KVR_OK);
	} while (cursor != 0 && ++calls <= MANY);
	ck_assert_uint_le(calls, MANY);
	recoveries = stats().recoveries;
	for (calls = 0; calls <= MANY; calls++)
		if (kvr_owner_reap(k, 5, 2, &cursor, &ended) != KVR_OK ||
		    cursor == 0)
			break;
	ck_assert_uint_le(calls, MANY);
	ck_assert_uint_eq(stats().recoveries, recoveries + 1);
	region_end();
}

START_TEST(a_ring_of_ages_ends)
{
	ck_walks_end(age_ring);
}
END_TEST

START_TEST(a_lease_that_is_not_found_ends_a_walk)
{
	ck_walks_end(age_unfound);
}
END_TEST

Suite *suite_lease_walk(void);

Suite *
suite_lease_walk(void)
{
	Suite *s = suite_create("lease_walk");
	TCase *t = tcase_create("lease_walk");

	tcase_add_test(t, reaped_in_pieces);
	tcase_add_test(t, others_end_between_pieces);
	tcase_add_test(t, any_cursor);
	tcase_add_test(t, owners_in_pieces);
	tcase_add_test(t, listed_in_pieces);
	tcase_add_test(t, listed_as_they_are);
	tcase_add_test(t, a_ring_of_ages_ends);
	tcase_add_test(t, a_lease_that_is_not_found_ends_a_walk);
	tcase_add_test(t, nested_leases_are_no_damage);
	tcase_add_test(t, no_slot_and_no_reason);
	suite_add_tcase(s, t);
	return s;
}
