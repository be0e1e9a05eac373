/* SPDX-License-Identifier: BSD-2-Clause */
/* test_trust.c - the set, the learnt and the doubted capacity of a worker. */
#include "retain.h"
#include "trust.h"
#include "worker.h"

#include "inner.h"

#include <math.h>

enum { PIECE_OF = 512, PROMPT = 10000, FEW = 15, ENOUGH = 16, RETURN = 32 };

static void
facts(uint32_t retain, uint64_t capacity)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.retain = retain;
	f.capacity_tokens = capacity;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
}

static struct survival *
mine(void)
{
	return &k->survival[slot_at(k, 0)->name - 1];
}

/* Reports about whole prompts; `share` of them was missed. */
static void
judged(uint32_t n, double share, double young_share)
{
	struct trust_sample sample = { .hit = PROMPT * (1 - share),
		.missed = PROMPT * share, .all = PROMPT };

	sample.young_hit = PROMPT * (1 - young_share);
	sample.young_missed = PROMPT * young_share;
	for (; n > 0; n--)
		if (trust_judge(k, 0, &sample))
			retain_decide(k, 0);
	load_recount(k, 0);
}

static void
ck_mode(uint32_t mode, uint64_t room)
{
	ck_assert_uint_eq(worker_stats(0).retain, mode);
	ck_assert_uint_eq(trust_room(k, 0), room);
	region_sound();
}

/*
 * Ten prompts of 1000 tokens, and reports by which blocks are hit up to 4096
 * tokens of age and missed beyond. The next bin ends at 4871: this is between.
 */
enum { EDGE = 9, ROOM = 4483 };

static void
edge_of_reports(double hits, double misses)
{
	uint32_t i;

	for (i = EDGE - 8; i < EDGE + 8; i++)
		note_age(0, (uint64_t)(1024 * exp2((i - 1) / 4.0) * 1.05),
		    i < EDGE, PIECE_OF * (i < EDGE ? hits : misses));
}

static void
edge(double hits, double misses)
{
	uint32_t i;

	for (i = 0; i < 10; i++) {
		say_long(1000, 0, i);
		ck_assert_uint_eq(observed(0, k->region->clock + 1), 1000);
	}
	edge_of_reports(hits, misses);
}

START_TEST(by_the_facts)
{
	ck_mode(KVR_RETAIN_TTL, 0);
	facts(KVR_RETAIN_AUTO, 1000);
	ck_mode(KVR_RETAIN_CAPACITY, 1000);
	facts(KVR_RETAIN_TTL, 1000);
	ck_mode(KVR_RETAIN_TTL, 1000);
	facts(KVR_RETAIN_FEEDBACK, 1000);
	ck_mode(KVR_RETAIN_FEEDBACK, 1000);
}
END_TEST

/* ------------------------------------------------------------- learnt --- */

static void
shown(void)
{
	slot_at(k, 0)->shown = 1;
	retain_decide(k, 0);
	load_recount(k, 0);
}

START_TEST(learnt_with_confidence)
{
	shown();
	ck_mode(KVR_RETAIN_FEEDBACK, 0);
	edge(40, 40);
	judged(RETURN - 1, 0.5, 0);
	ck_mode(KVR_RETAIN_FEEDBACK, 0);
	judged(1, 0.5, 0);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
	ck_mode(KVR_RETAIN_CAPACITY, ROOM);
}
END_TEST

/* A little evidence on either side does not count. */
START_TEST(not_from_little)
{
	shown();
	edge(40, 15);
	judged(2 * RETURN, 0, 0);
	ck_mode(KVR_RETAIN_FEEDBACK, 0);
	survival_forget(k, 0);
	edge(15, 40);
	judged(2 * RETURN, 0, 0);
	ck_mode(KVR_RETAIN_FEEDBACK, 0);
}
END_TEST

/* Evicted at random, a block survives age v with likelihood exp(-v / c). */
START_TEST(no_edge_at_random)
{
	uint32_t bin, i;
	double v, left;

	shown();
	for (i = 0; i < 20; i++) {
		for (bin = 8; bin < 50; bin++) {
			v = 1024 * exp2((bin - 0.5) / 4.0);
			left = exp(-v / 300000);
			note_age(0, (uint64_t)v, true, PIECE_OF * 20 * left);
			note_age(0, (uint64_t)v, false, PIECE_OF * 20 *
			    (1 - left));
		}
		judged(2, 0, 0);
	}
	ck_assert_uint_gt(survival_capacity(k, 0), 0);
	ck_mode(KVR_RETAIN_FEEDBACK, 0);
}
END_TEST

/* The learnt age includes blocks in use, which are a part of the capacity. */
START_TEST(learnt_with_what_is_in_use)
{
	uint64_t lease;

	shown();
	edge(40, 40);
	say_long(700, 0, 20);
	lease = reserved(0, k->region->clock);
	judged(RETURN, 0, 0);
	ck_mode(KVR_RETAIN_CAPACITY, ROOM);
	give_up(lease, k->region->clock);
}
END_TEST

/* More found than predicted: the cache is another one, with other ages. */
START_TEST(learnt_too_little)
{
	struct trust_sample more = { .hit = PROMPT, .more = PROMPT,
		.all = PROMPT };
	uint32_t n;

	shown();
	edge(40, 40);
	judged(RETURN, 0, 0);
	ck_mode(KVR_RETAIN_CAPACITY, ROOM);
	for (n = 1; !trust_judge(k, 0, &more); n++)
		ck_assert_uint_lt(n, 10);
	retain_decide(k, 0);
	load_recount(k, 0);
	ck_mode(KVR_RETAIN_FEEDBACK, 0);
	ck_assert_uint_eq(survival_capacity(k, 0), 0);
}
END_TEST

START_TEST(learnt_and_contradicted)
{
	shown();
	edge(40, 40);
	judged(RETURN, 0, 0);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
	judged(FEW, 0.5, 0.5);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
	judged(1, 0.5, 0.5);
	ck_mode(KVR_RETAIN_FEEDBACK, 0);
	/* the cache is another one: its edge has to be found anew */
	judged(10 * RETURN, 0, 0);
	ck_mode(KVR_RETAIN_FEEDBACK, 0);
	judged(10 * RETURN, 0.5, 0.5);
	edge_of_reports(40, 40);
	/* it is there, but the young are missed */
	judged(RETURN, 0.5, 0.5);
	ck_mode(KVR_RETAIN_FEEDBACK, 0);
	judged(10 * RETURN, 0, 0);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
}
END_TEST

/* ----------------------------------------------------- set capacities --- */

START_TEST(told_and_contradicted)
{
	facts(KVR_RETAIN_AUTO, 1000);
	judged(FEW, 1, 1);
	ck_mode(KVR_RETAIN_CAPACITY, 1000);
	judged(1, 1, 1);
	ck_mode(KVR_RETAIN_FEEDBACK, 1000);
	judged(RETURN - 1, 1, 0);
	ck_mode(KVR_RETAIN_FEEDBACK, 1000);
	judged(1, 1, 0);
	ck_mode(KVR_RETAIN_CAPACITY, 1000);
}
END_TEST

/* One wrong report in five does not matter, and little of a prompt little. */
START_TEST(told_and_hardly_contradicted)
{
	struct trust_sample little = { .missed = 512, .all = 512 * 100,
		.young_missed = 512 };
	uint32_t i;

	facts(KVR_RETAIN_AUTO, 1000);
	for (i = 0; i < 400; i++) {
		judged(1, 1, 1);
		judged(5, 0, 0);
	}
	ck_mode(KVR_RETAIN_CAPACITY, 1000);
	for (i = 0; i < 200; i++) {
		(void)trust_judge(k, 0, &little);
		judged(1, 0, 0);
	}
	ck_mode(KVR_RETAIN_CAPACITY, 1000);
}
END_TEST

/* A new figure is believed again; the same one is not. */
START_TEST(told_anew)
{
	facts(KVR_RETAIN_AUTO, 1000);
	judged(ENOUGH, 1, 1);
	ck_mode(KVR_RETAIN_FEEDBACK, 1000);
	facts(KVR_RETAIN_AUTO, 1000);
	ck_mode(KVR_RETAIN_FEEDBACK, 1000);
	facts(KVR_RETAIN_AUTO, 900);
	ck_mode(KVR_RETAIN_CAPACITY, 900);
}
END_TEST

/* The set capacity is twice the cache: the learnt one replaces it. */
START_TEST(told_too_much)
{
	shown();
	edge(40, 40);
	facts(KVR_RETAIN_AUTO, 2 * ROOM);
	judged(ENOUGH, 0.4, 0);
	ck_mode(KVR_RETAIN_FEEDBACK, 2 * ROOM);
	judged(RETURN, 0.4, 0);
	ck_mode(KVR_RETAIN_CAPACITY, ROOM);
	/* another figure is believed again */
	facts(KVR_RETAIN_AUTO, 3 * ROOM);
	ck_mode(KVR_RETAIN_CAPACITY, 3 * ROOM);
}
END_TEST

/* A set capacity a little above the learnt one is used again after a doubt. */
START_TEST(told_about_right)
{
	const uint64_t told = ROOM + ROOM / 5;

	shown();
	edge(40, 40);
	facts(KVR_RETAIN_AUTO, told);
	judged(ENOUGH, 0.4, 0);
	ck_mode(KVR_RETAIN_FEEDBACK, told);
	judged(RETURN, 0.4, 0);
	ck_mode(KVR_RETAIN_CAPACITY, told);
	ck_assert_uint_eq(mine()->doubted, 0);
}
END_TEST

START_TEST(set_modes_are_kept)
{
	uint32_t mode;

	for (mode = KVR_RETAIN_TTL; mode <= KVR_RETAIN_FEEDBACK; mode++) {
		facts(mode, 1000);
		edge(40, 40);
		judged(10 * RETURN, 1, 1);
		ck_mode(mode, 1000);
		judged(10 * RETURN, 0, 0);
		ck_mode(mode, 1000);
	}
}
END_TEST

/* -------------------------------------------------------------- damage --- */

static void
judge_once(void)
{
	struct trust_sample sample = { .hit = PROMPT, .all = PROMPT };

	(void)trust_judge(k, 0, &sample);
	ck_assert(mine()->missed >= 0 && mine()->missed <= 1);
	ck_assert(mine()->judged >= 0 && mine()->judged <= RETURN);
}

START_TEST(damage_is_found_and_repaired)
{
	static const float odd[] = { NAN, INFINITY, -1, 1e30F };
	uint32_t i;

	facts(KVR_RETAIN_AUTO, 1000);
	for (i = 0; i < 4; i++) {
		mine()->missed = mine()->judged = odd[i];
		judge_once();
		mine()->missed = odd[i];
		ck_assert(!trust_sane(k));
		trust_recover(k);
		ck_assert(trust_sane(k));
		mine()->judged = odd[i];
		ck_assert(!trust_sane(k));
		trust_recover(k);
		ck_assert(trust_sane(k));
	}
	mine()->more = 2;
	ck_assert(!trust_sane(k));
	trust_recover(k);
	ck_assert(trust_sane(k));
	mine()->doubted = 3;
	ck_assert(!trust_sane(k));
	trust_recover(k);
	ck_assert(trust_sane(k));
	slot_at(k, 0)->mode = KVR_RETAIN_TTL;
	ck_assert(!trust_sane(k));
	retain_decide(k, 0);
	ck_assert(trust_sane(k));
}
END_TEST

Suite *suite_trust(void);

Suite *
suite_trust(void)
{
	Suite *s = suite_create("trust");
	TCase *t = small_case(s, "facts");

	tcase_add_test(t, by_the_facts);
	tcase_add_test(t, set_modes_are_kept);
	tcase_add_test(t, damage_is_found_and_repaired);
	t = small_case(s, "learnt");
	tcase_add_test(t, learnt_with_confidence);
	tcase_add_test(t, not_from_little);
	tcase_add_test(t, no_edge_at_random);
	tcase_add_test(t, learnt_with_what_is_in_use);
	tcase_add_test(t, learnt_too_little);
	tcase_add_test(t, learnt_and_contradicted);
	t = small_case(s, "told");
	tcase_add_test(t, told_and_contradicted);
	tcase_add_test(t, told_and_hardly_contradicted);
	tcase_add_test(t, told_anew);
	tcase_add_test(t, told_too_much);
	tcase_add_test(t, told_about_right);
	return s;
}
