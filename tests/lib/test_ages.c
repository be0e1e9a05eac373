/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ages.c - how old the parts of an overlap were when a request came.
 *
 * A block is a token here. Prompts of other kinds make those of the path older:
 * each has an epoch of its own, and half of a part is in front of its blocks.
 */
#include "ages.h"

#include "lease.h"
#include "survival.h"

#include "inner.h"

enum { OTHER = 1500, PART = 30 };

static int64_t now;

/* The path is used as far as this, and something else after it. */
static void
use_path(uint32_t parts)
{
	say_long(parts * PART, parts * PART, 0);
	ck_assert_uint_eq(observed(0, ++now), parts * PART);
}

static void
use_other(void)
{
	say_long(OTHER, 0, (uint32_t)++now);
	ck_assert_uint_eq(observed(0, now), OTHER);
}

/* The first part was used last. */
static void
use_parts(uint32_t parts)
{
	now = 0;
	for (; parts > 1; parts--) {
		use_path(parts);
		use_other();
	}
	use_path(1);
}

static uint64_t
ask(uint32_t parts)
{
	say_long(parts * PART, parts * PART, 0);
	return reserved(0, ++now);
}

static const struct claim *
claim_of(uint64_t lease)
{
	return claim_at(k, lease_at(k, lease_find(k, lease))->claim);
}

/* Checks a part of this size with so many others used after it. */
static void
ck_part(const struct claim *c, uint32_t part, uint32_t others, uint32_t end)
{
	uint32_t first = part * PART, last = first + PART - 1;
	uint32_t age = survival_bin((uint64_t)others * (OTHER + PART) +
	    PART / 2);

	ck_assert_uint_eq(ages_of(c, first), age);
	ck_assert_uint_eq(ages_of(c, last), age);
	ck_assert_uint_eq(ages_end(c, first), end);
	ck_assert_uint_eq(ages_end(c, last), end);
}

START_TEST(three_parts)
{
	uint64_t lease;

	use_parts(3);
	lease = ask(3);
	ck_part(claim_of(lease), 0, 0, PART);
	ck_part(claim_of(lease), 1, 1, 2 * PART);
	ck_part(claim_of(lease), 2, 2, UINT32_MAX);
	give_up(lease, now);
}
END_TEST

/* The first of four has the age of the second. */
START_TEST(more_parts)
{
	uint64_t lease;

	use_parts(4);
	lease = ask(4);
	ck_part(claim_of(lease), 0, 1, 2 * PART);
	ck_part(claim_of(lease), 1, 1, 2 * PART);
	ck_part(claim_of(lease), 2, 2, 3 * PART);
	ck_part(claim_of(lease), 3, 3, UINT32_MAX);
	give_up(lease, now);
}
END_TEST

/* New blocks make no part. */
START_TEST(one_part)
{
	uint64_t lease;

	now = 0;
	use_path(1);
	use_other();
	lease = ask(2);
	ck_assert_uint_eq(ages_of(claim_of(lease), 0),
	    survival_bin(OTHER + PART / 2));
	ck_assert_uint_eq(ages_end(claim_of(lease), 0), UINT32_MAX);
	give_up(lease, now);
}
END_TEST

/* Blocks in use by another request have age zero, and make no part. */
START_TEST(in_use)
{
	uint64_t other, lease;

	use_parts(3);
	other = ask(1);
	lease = ask(3);
	ck_part(claim_of(lease), 1, 1, 2 * PART);
	ck_part(claim_of(lease), 2, 2, UINT32_MAX);
	ck_assert_uint_eq(claim_of(lease)->ages_end[0], 0);
	give_up(lease, now);
	give_up(other, now);
}
END_TEST

/* The ages are those before the request, whatever comes after. */
START_TEST(kept)
{
	uint64_t lease;
	struct claim before;

	use_parts(3);
	lease = ask(3);
	before = *claim_of(lease);
	commit(lease, ++now);
	use_other();
	ck_assert_mem_eq(claim_of(lease), &before, sizeof(before));
	finish(lease, ++now);
}
END_TEST

Suite *suite_ages(void);

Suite *
suite_ages(void)
{
	Suite *s = suite_create("ages");
	TCase *t = small_case(s, "parts");

	tcase_add_test(t, three_parts);
	tcase_add_test(t, more_parts);
	tcase_add_test(t, one_part);
	tcase_add_test(t, in_use);
	tcase_add_test(t, kept);
	return s;
}
