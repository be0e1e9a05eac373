/* SPDX-License-Identifier: BSD-2-Clause */
/* test_chains.c - chains that were added are returned, whole or not at all. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "chains.h"
#include "rng.h"
#include "test.h"

enum { BLOCKS = 1000, LONG = 300 };

static struct chains *c;

static void
begin(void)
{
	c = chains_new(BLOCKS);
	ck_assert_ptr_nonnull(c);
}

/* Chain number n is hashes n * 1000 + 1, + 2 ... below root n. */
static bool
add(uint64_t chain, uint32_t first, size_t n)
{
	uint64_t hashes[BLOCKS];
	struct stretch s = { .first = first, .n = n, .hashes = hashes };
	size_t i;

	for (i = 0; i < n; i++)
		hashes[i] = chain * 1000 + first + i + 1;
	s.parent = first == 0 ? chain : chain * 1000 + first;
	return chains_add(c, &s);
}

/* The chain up to its n-th block is as it was added. */
static bool
has(uint64_t chain, size_t n)
{
	struct stretch s;
	uint64_t *end;
	size_t i;

	if (!chains_get(c, chain * 1000 + n, 0, &s, &end))
		return false;
	ck_assert(s.n == n && s.parent == chain && s.first == 0 &&
	    end == s.hashes + n);
	for (i = 0; i < n && s.hashes[i] == chain * 1000 + i + 1; i++)
		continue;
	ck_assert_uint_eq(i, n);
	return true;
}

START_TEST(a_chain_comes_back)
{
	begin();
	ck_assert(add(7, 0, 20));
	ck_assert(has(7, 20));
	ck_assert(has(7, 1));
	ck_assert(!has(7, 21));
	ck_assert(!has(8, 1));
	ck_assert_uint_eq(chains_blocks(c), 20);
	ck_assert(add(7, 0, 20));
	ck_assert(add(7, 0, 15));
	ck_assert_uint_eq(chains_blocks(c), 20);
	ck_assert(add(7, 0, 25));
	ck_assert_uint_eq(chains_blocks(c), 25);
	ck_assert(has(7, 25));
	chains_free(c);
}
END_TEST

START_TEST(a_part_is_joined)
{
	begin();
	ck_assert(add(7, 0, 20));
	ck_assert(add(7, 20, 5));
	ck_assert(add(7, 10, 20));
	ck_assert(has(7, 30));
	ck_assert_uint_eq(chains_blocks(c), 30);
	chains_free(c);
}
END_TEST

START_TEST(what_hangs_in_the_air_is_refused)
{
	const uint64_t hash = 4;
	struct stretch s = { .parent = 7003, .first = 7, .n = 1,
	    .hashes = &hash };

	begin();
	ck_assert(!add(7, 5, 5));
	ck_assert(add(7, 0, 5));
	ck_assert(!chains_add(c, &s)); /* 7003 is not at 6 */
	ck_assert(!add(7, 4, 0));
	s.n = CHAINS_LENGTH_MAX;
	s.first = 1;
	ck_assert(!chains_add(c, &s));
	s.first = UINT32_MAX;
	s.n = 1;
	ck_assert(!chains_add(c, &s));
	s.first = 0;
	s.n = SIZE_MAX;
	ck_assert(!chains_add(c, &s));
	s.n = BLOCKS + 1;
	ck_assert(!chains_add(c, &s));
	ck_assert_uint_eq(chains_blocks(c), 5);
	chains_free(c);
}
END_TEST

/* A hash of one chain at another place of the next one does not match. */
START_TEST(positions_agree)
{
	const uint64_t liar[] = { 7003, 50, 51 };
	const struct stretch s = { .parent = 9, .n = 3, .hashes = liar };

	begin();
	ck_assert(add(7, 0, 5));
	ck_assert(!chains_add(c, &s));
	ck_assert(has(7, 5));
	chains_free(c);
}
END_TEST

START_TEST(there_is_room_behind_a_chain)
{
	struct stretch s;
	uint64_t *end;

	begin();
	ck_assert(add(7, 0, 5));
	ck_assert(chains_get(c, 7005, CHAINS_LENGTH_MAX - 5, &s, &end));
	memset(end, 0xff, (CHAINS_LENGTH_MAX - 5) * sizeof(*end));
	ck_assert(!chains_get(c, 7005, CHAINS_LENGTH_MAX - 4, &s, &end));
	ck_assert(!chains_get(c, 7005, SIZE_MAX, &s, &end));
	ck_assert(has(7, 5));
	chains_free(c);
}
END_TEST

START_TEST(each_block_is_marked_once)
{
	struct stretch s;
	uint64_t last;

	begin();
	ck_assert(add(7, 0, 20));
	ck_assert(chains_mark(c, 7020, 10, 100, &s, &last));
	ck_assert_uint_eq(s.first, 0);
	ck_assert_uint_eq(s.n, 10);
	ck_assert_uint_eq(s.parent, 7);
	ck_assert_uint_eq(last, 7010);
	ck_assert(chains_mark(c, 7015, 15, 3, &s, &last));
	ck_assert_uint_eq(s.first, 10);
	ck_assert_uint_eq(s.n, 3);
	ck_assert_uint_eq(s.parent, 7010);
	ck_assert_uint_eq(s.hashes[2], 7013);
	ck_assert(chains_mark(c, 7015, 15, 3, &s, &last));
	ck_assert_uint_eq(s.n, 2);
	ck_assert(chains_mark(c, 7015, 15, 3, &s, &last));
	ck_assert_uint_eq(s.n, 0);
	ck_assert_uint_eq(last, 7015);
	ck_assert(!chains_mark(c, 7015, 16, 3, &s, &last));
	ck_assert(!chains_mark(c, 7015, 0, 3, &s, &last));
	ck_assert(!chains_mark(c, 7021, 3, 3, &s, &last));
	chains_unmark(c);
	ck_assert(chains_mark(c, 7015, 15, 100, &s, &last));
	ck_assert_uint_eq(s.n, 15);
	chains_free(c);
}
END_TEST

/* Chains that are added again stay; others go, and memory is bounded. */
START_TEST(the_old_is_forgotten)
{
	uint64_t i;

	begin();
	ck_assert(add(1, 0, 50));
	ck_assert(add(2, 0, 50));
	for (i = 10; i < 100; i++) {
		ck_assert(add(i, 0, 40));
		ck_assert(add(1, 0, 50));
		ck_assert(has(1, 50));
		ck_assert(has(i, 40));
		ck_assert_uint_le(chains_blocks(c), 2 * BLOCKS);
	}
	ck_assert(!has(2, 1));
	ck_assert(!has(10, 40));
	/* The last BLOCKS are known. */
	for (i = 99; i > 99 - 20; i--)
		ck_assert(has(i, 40));
	chains_free(c);
}
END_TEST

/* The part that is joined to is in the old array. */
START_TEST(what_is_joined_comes_along)
{
	uint64_t i;

	begin();
	ck_assert(add(1, 0, LONG));
	for (i = 10; i < 90; i++)
		ck_assert(add(i, 0, 10));
	ck_assert(add(1, LONG, 10));
	ck_assert(has(1, LONG + 10));
	for (i = 100; i < 170; i++)
		ck_assert(add(i, 0, 10));
	ck_assert(has(1, LONG + 10));
	chains_free(c);
}
END_TEST

/* A chain that was joined to others, extended, or begun anew, at random. */
START_TEST(at_random)
{
	const uint64_t seed = test_seed();
	struct rng rng = { seed };
	size_t length[40] = { 0 }, n, first;
	uint64_t chain, i;

	begin();
	for (i = 0; i < 20000; i++) {
		chain = rng_between(&rng, 1, 39);
		first = rng_between(&rng, 0, 3) == 0 ? length[chain] : 0;
		n = rng_between(&rng, 1, 60);
		if (first + n > LONG)
			continue;
		/* The blocks before it have been forgotten. */
		if (!add(chain, (uint32_t)first, n)) {
			ck_assert_msg(first > 0 && !has(chain, first),
			    "seed %#llx: chain %d", (unsigned long long)seed,
			    (int)chain);
			continue;
		}
		if (length[chain] < first + n)
			length[chain] = first + n;
		ck_assert_msg(has(chain, first + n) &&
		    chains_blocks(c) <= (size_t)2 * BLOCKS, "seed %#llx: chain "
		    "%d", (unsigned long long)seed, (int)chain);
	}
	chains_free(c);
}
END_TEST

Suite *
suite_chains(void)
{
	Suite *s = suite_create("chains");
	TCase *tc = tcase_create("chains");

	tcase_add_test(tc, a_chain_comes_back);
	tcase_add_test(tc, a_part_is_joined);
	tcase_add_test(tc, what_hangs_in_the_air_is_refused);
	tcase_add_test(tc, positions_agree);
	tcase_add_test(tc, there_is_room_behind_a_chain);
	tcase_add_test(tc, each_block_is_marked_once);
	tcase_add_test(tc, the_old_is_forgotten);
	tcase_add_test(tc, what_is_joined_comes_along);
	tcase_add_test(tc, at_random);
	suite_add_tcase(s, tc);
	return s;
}
