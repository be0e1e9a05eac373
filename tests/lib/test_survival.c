/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_survival.c - hits and misses by age, and their consequences.
 *
 * Expected values are computed here from the formula alone, in double, piece
 * by piece. The region keeps floats, so the two agree to a few parts in a
 * hundred thousand.
 */
#include "inner.h"

#include <math.h>

enum { PIECE_OF = 512, AGE_MAX = 1 << 26 };

/* The evidence of worker 0, as the formula takes it. */
static double hit[AGES], miss[AGES];

static void
setup(void)
{
	small_setup();
	memset(hit, 0, sizeof(hit));
	memset(miss, 0, sizeof(miss));
}

static const struct survival *
seen_of(uint32_t worker)
{
	return &k->survival[slot_at(k, worker)->name - 1];
}

/* The bin of an age, found through worker 3, which then forgets it. */
static uint32_t
bin_of(uint64_t age)
{
	uint32_t bin, found = AGES;

	survival_forget(k, 3);
	note_age(3, age, true, PIECE_OF);
	for (bin = 0; bin < AGES; bin++)
		if (seen_of(3)->hit[bin] > 0) {
			ck_assert_uint_eq(found, AGES);
			found = bin;
		}
	ck_assert_uint_lt(found, AGES);
	survival_forget(k, 3);
	return found;
}

/* Returns the begin of a bin, without rounding. */
static double
border(uint32_t bin)
{
	return 1024 * exp2((bin - 1) / 4.0);
}

/* An age that is certainly in the bin. */
static uint64_t
inside(uint32_t bin)
{
	return bin == 0 ? 0 : (uint64_t)(border(bin) * 1.05);
}

/* Gives the region and the formula the same pieces. */
static void
say_pieces(uint32_t bin, bool was_hit, uint32_t pieces)
{
	note_age(0, inside(bin), was_hit, (double)pieces * PIECE_OF);
	for (; pieces > 0; pieces--) {
		hit[bin] = hit[bin] * 0.999 + was_hit;
		miss[bin] = miss[bin] * 0.999 + !was_hit;
	}
}

/* S of all bins, by the formula. */
static void
ck_likely(void)
{
	double s = 5.0 / 6, real;
	uint32_t bin;

	for (bin = 0; bin < AGES; bin++) {
		s = (hit[bin] + 4 * s + 5.0 / 6) / (hit[bin] + miss[bin] + 5);
		real = of_age(0, inside(bin));
		if (!(fabs(real - s) < 1e-4))
			ck_abort_msg("bin %u: S is %g, must be %g", bin, real,
			    s);
	}
}

/* ---------------------------------------------------------------- bins --- */

START_TEST(borders)
{
	uint32_t bin;
	uint64_t at;

	ck_assert_uint_eq(bin_of(0), 0);
	ck_assert_uint_eq(bin_of(1), 0);
	ck_assert_uint_eq(bin_of(1023), 0);
	for (bin = 1; bin < AGES; bin++) {
		at = (uint64_t)ceil(border(bin));
		if (at < 1 << 17) {
			ck_assert_uint_eq(bin_of(at - 1), bin - 1);
			ck_assert_uint_eq(bin_of(at), bin);
		}
		/* above, a quarter is rounded to sixteen bits */
		ck_assert_uint_eq(bin_of(at - at / 65536 - 1), bin - 1);
		ck_assert_uint_eq(bin_of(at + at / 65536 + 1), bin);
	}
	/* whole doublings are exact, however old */
	for (bin = 1; bin < AGES; bin += 4) {
		at = UINT64_C(1024) << bin / 4;
		ck_assert_uint_eq(bin_of(at - 1), bin - 1);
		ck_assert_uint_eq(bin_of(at), bin);
	}
	for (at = AGE_MAX; at > 0; at <<= 1)
		ck_assert_uint_eq(bin_of(at), AGES - 1);
	ck_assert_uint_eq(bin_of(UINT64_MAX), AGES - 1);
}
END_TEST

/* Older is never in a younger bin. */
START_TEST(older_is_later)
{
	uint64_t i, n = test_amount(100000), a, b;

	by_chance();
	for (i = 0; i < n; i++) {
		a = plain_random(&chance) >> (pick(28) + 36);
		b = a + pick(3);
		must(bin_of(a) <= bin_of(b));
	}
}
END_TEST

/* ------------------------------------------------------------------- S --- */

START_TEST(nothing_is_known)
{
	uint32_t bin;

	for (bin = 0; bin < AGES; bin++)
		ck_assert(of_age(0, inside(bin)) == 5.0 / 6);
	ck_assert(of_age(0, UINT64_MAX) == 5.0 / 6);
	ck_likely();
}
END_TEST

START_TEST(by_hand)
{
	note_age(0, 0, true, PIECE_OF);
	/* (1 + 5 * 5/6) / 6 */
	ck_assert(fabs(of_age(0, 0) - 31.0 / 36) < 1e-6);
	/* (4 * 31/36 + 5/6) / 5 */
	ck_assert(fabs(of_age(0, 1024) - 154.0 / 180) < 1e-6);
	survival_forget(k, 0);
	note_age(0, 1023, false, PIECE_OF);
	/* 5 * 5/6 / 6, then (4 * 25/36 + 5/6) / 5 */
	ck_assert(fabs(of_age(0, 1) - 25.0 / 36) < 1e-6);
	ck_assert(fabs(of_age(0, 1024) - 130.0 / 180) < 1e-6);
}
END_TEST

/* Evidence at one age leaves younger ones unchanged. */
START_TEST(younger_bins_stay)
{
	uint32_t bin;

	say_pieces(20, false, 50);
	for (bin = 0; bin < 20; bin++)
		ck_assert(fabs(of_age(0, inside(bin)) - 5.0 / 6) < 1e-6);
	for (bin = 20; bin < AGES; bin++)
		ck_assert(of_age(0, inside(bin)) < 5.0 / 6);
	ck_likely();
}
END_TEST

/* Older bins without evidence follow this one, less and less. */
START_TEST(older_bins_follow)
{
	double before, now;
	uint32_t bin;

	say_pieces(10, false, 500);
	ck_likely();
	before = of_age(0, inside(10));
	ck_assert(before < 0.05);
	for (bin = 11; bin < AGES; bin++) {
		now = of_age(0, inside(bin));
		/* each regains a fifth of the distance to 5/6 */
		ck_assert(fabs((5.0 / 6 - now) - 0.8 * (5.0 / 6 - before)) <
		    1e-5);
		before = now;
	}
}
END_TEST

/* However many misses, or hits, S is neither 0 nor 1. */
START_TEST(hope_and_doubt)
{
	uint32_t bin, i;

	for (bin = 0; bin < AGES; bin++)
		for (i = 0; i < 5; i++)
			note_age(0, inside(bin), false, 1e9);
	for (bin = 0; bin < AGES; bin++)
		ck_assert(of_age(0, inside(bin)) > 1e-4);
	ck_assert(of_age(0, UINT64_MAX) < 0.01);
	for (bin = 0; bin < AGES; bin++)
		note_age(0, inside(bin), true, 1e9);
	for (bin = 0; bin < AGES; bin++) {
		ck_assert(of_age(0, inside(bin)) > 0.99);
		ck_assert(of_age(0, inside(bin)) < 1);
	}
}
END_TEST

START_TEST(as_the_formula_says)
{
	uint64_t i, n = test_amount(400);

	by_chance();
	for (i = 0; i < n; i++) {
		say_pieces(pick(3) == 0 ? pick(AGES) : 20 + pick(6),
		    pick(3) != 0, pick(8) == 0 ? pick(3000) : pick(20));
		if (i % 16 == 0)
			ck_likely();
	}
	ck_likely();
}
END_TEST

/* -------------------------------------------------------------- fading --- */

/* n pieces at once are n times one. */
START_TEST(pieces_at_once)
{
	uint32_t i;

	note_age(0, 0, false, 100 * PIECE_OF);
	note_age(0, 0, true, 700 * PIECE_OF);
	for (i = 0; i < 100; i++)
		note_age(1, 0, false, PIECE_OF);
	for (i = 0; i < 1400; i++)
		note_age(1, 0, true, PIECE_OF / 2);
	ck_assert(fabs(of_age(0, 0) - of_age(1, 0)) < 1e-4);
	ck_assert(fabs(seen_of(0)->hit[0] / seen_of(1)->hit[0] - 1) < 1e-3);
	ck_assert(fabs(seen_of(0)->miss[0] / seen_of(1)->miss[0] - 1) < 1e-3);
}
END_TEST

/* A cache that has become smaller is noticed, whatever its past. */
START_TEST(news_outweigh)
{
	uint32_t i;

	for (i = 0; i < 20; i++)
		say_pieces(9, true, 1000);
	ck_assert(of_age(0, inside(9)) > 0.99);
	say_pieces(9, false, 700); /* 0.999^700 is a half */
	ck_assert(of_age(0, inside(9)) < 0.51);
	ck_likely();
	say_pieces(9, false, 2300);
	ck_assert(of_age(0, inside(9)) < 0.06);
}
END_TEST

/* No tokens are no evidence; a bin fades by its own evidence alone. */
START_TEST(what_does_not_fade)
{
	struct survival was;

	say_pieces(4, true, 30);
	was = *seen_of(0);
	note_age(0, inside(4), false, 0);
	note_age(0, inside(4), true, 0);
	ck_assert_mem_eq(&was, seen_of(0), sizeof(was));
	note_age(0, inside(5), false, 100 * PIECE_OF);
	note_age(0, inside(3), false, 100 * PIECE_OF);
	ck_assert(was.hit[4] == seen_of(0)->hit[4]);
	ck_assert(was.miss[4] == seen_of(0)->miss[4]);
}
END_TEST

/* -------------------------------------------------------- per worker --- */

START_TEST(each_its_own)
{
	uint64_t fresh;

	note_age(0, 0, false, 100 * PIECE_OF);
	ck_assert(of_age(1, 0) == 5.0 / 6);
	ck_assert_int_eq(kvr_worker_reset(k, id[1], &fresh), KVR_OK);
	ck_assert(of_age(0, 0) < 0.2);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &fresh), KVR_OK);
	ck_assert(of_age((uint32_t)fresh - 1, 0) == 5.0 / 6);
}
END_TEST

/* ----------------------------------------------------- learned capacity --- */

/* The learned age is where a bin begins, within a token in 2^16. */
static void
ck_learnt(uint32_t bin)
{
	double learnt = (double)survival_capacity(k, 0);

	if (!(fabs(learnt - border(bin)) <= 1 + border(bin) / 65536))
		ck_abort_msg("learnt %g, must be %g", learnt, border(bin));
}

static void
upto(uint32_t bin, uint32_t hits, uint32_t misses)
{
	uint32_t i;

	survival_forget(k, 0);
	for (i = 1; i < AGES; i++)
		note_age(0, inside(i), i <= bin, PIECE_OF *
		    (double)(i <= bin ? hits : misses));
}

START_TEST(capacity_is_where_misses_begin)
{
	uint32_t bin;

	ck_assert_uint_eq(survival_capacity(k, 0), 0);
	for (bin = 1; bin < AGES - 8; bin++) {
		upto(bin, 2000, 1);
		ck_learnt(bin + 1);
	}
	/* everything is evicted at once */
	upto(0, 0, 3);
	ck_assert_uint_eq(survival_capacity(k, 0), 1024);
}
END_TEST

START_TEST(capacity_needs_misses)
{
	upto(AGES - 1, 100, 0);
	ck_assert_uint_eq(survival_capacity(k, 0), 0);
	survival_forget(k, 0);
	note_age(0, inside(20), true, 100 * PIECE_OF);
	note_age(0, inside(30), false, 7 * PIECE_OF);
	ck_assert_uint_eq(survival_capacity(k, 0), 0);
	/* between the last hit and the first miss: rather too much */
	note_age(0, inside(30), false, 2 * PIECE_OF);
	ck_learnt(30);
	/* a few hits behind it change nothing, many move it */
	note_age(0, inside(40), true, 5 * PIECE_OF);
	ck_learnt(30);
	note_age(0, inside(40), true, 9 * PIECE_OF);
	ck_assert_uint_eq(survival_capacity(k, 0), 0);
	note_age(0, inside(50), false, 9 * PIECE_OF);
	ck_learnt(50);
}
END_TEST

/* ----------------------------------------------------------- any bytes --- */

/* Shared memory may hold anything; S is above 0 and below 1, or 5/6. */
START_TEST(anything_may_stand_there)
{
	static const float odd[] = { NAN, INFINITY, -INFINITY, -1, 1e30F, 2,
	    -0.84F };
	struct survival *s = &k->survival[slot_at(k, 0)->name - 1];
	uint32_t i, bin;
	double likely;

	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		for (bin = 0; bin < AGES; bin++) {
			s->hit[bin] = s->miss[bin] = s->likely[bin] = odd[i];
			likely = of_age(0, inside(bin));
			ck_assert(likely > 0 && likely < 1);
		}
		(void)survival_capacity(k, 0);
		note_age(0, 0, false, PIECE_OF);
		for (bin = 0; bin < AGES; bin++) {
			likely = of_age(0, inside(bin));
			ck_assert(likely > 0 && likely < 1);
		}
	}
	survival_forget(k, 0);
}
END_TEST

Suite *suite_survival(void);

Suite *
suite_survival(void)
{
	Suite *s = suite_create("survival");
	TCase *t = tcase_create("survival");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, borders);
	tcase_add_test(t, older_is_later);
	tcase_add_test(t, nothing_is_known);
	tcase_add_test(t, by_hand);
	tcase_add_test(t, younger_bins_stay);
	tcase_add_test(t, older_bins_follow);
	tcase_add_test(t, hope_and_doubt);
	tcase_add_test(t, as_the_formula_says);
	tcase_add_test(t, pieces_at_once);
	tcase_add_test(t, news_outweigh);
	tcase_add_test(t, what_does_not_fade);
	tcase_add_test(t, each_its_own);
	tcase_add_test(t, capacity_is_where_misses_begin);
	tcase_add_test(t, capacity_needs_misses);
	tcase_add_test(t, anything_may_stand_there);
	return s;
}
