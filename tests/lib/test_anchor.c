/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_anchor.c - reports in tokens on an index of bytes.
 *
 * A block is 64 bytes, estimated at 16 tokens. The engine reports the real
 * token count of a text for whole prompts. Bytes and tokens can be compared
 * only where such prompts ended.
 */
#include "reports.h"
#include "trust.h"

enum { BLOCK_OF = 64, TEXT_MAX = 64 * 1024 };

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 2 << 20;
	o.unit = KVR_UNIT_BYTES;
	o.block_size = BLOCK_OF;
	region_of(&o);
	set_mode(0, KVR_RETAIN_FEEDBACK);
	set_mode(1, KVR_RETAIN_FEEDBACK);
}

/* Makes this many blocks; all kinds share the first `common`. */
static void
say_bytes(uint32_t blocks, uint32_t common, int kind)
{
	static char text[TEXT_MAX];

	ck_assert_uint_le(blocks, TEXT_MAX / BLOCK_OF);
	memset(text, 'c', (size_t)common * BLOCK_OF);
	memset(text + (size_t)common * BLOCK_OF, kind,
	    (size_t)(blocks - common) * BLOCK_OF);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, text,
	    (size_t)blocks * BLOCK_OF), KVR_OK);
}

static uint32_t kind_of_report = KVR_REPORT_VALUE;

/* A request on the current prompt, with the token counts of the engine. */
static void
ask_of(uint32_t worker, uint64_t tokens, uint64_t cached)
{
	struct kvr_report r = said(kind_of_report, cached);

	r.prompt_tokens = tokens;
	tell(worker, &r);
}

/* Blocks that were hits, and misses, since the last check. */
static void
ck_blocks(uint32_t worker, uint32_t hit, uint32_t miss)
{
	ck_seen(worker, hit * 16, miss * 16);
}

/* A page of code and a page of prose: 100 blocks are 2000 tokens. */
static void
begin(uint32_t worker)
{
	say_bytes(100, 100, 0);
	ask_of(worker, 2000, 0);
	ask_of(worker, 2000, 1);
	survival_forget(k, id_slot(id[worker]));
}

START_TEST(found_all)
{
	begin(0);
	say_bytes(150, 100, 'x');
	ask_of(0, 3000, 2000);
	ck_blocks(0, 100, 0);
	/* a block of the index and some of a template more or less */
	say_bytes(150, 100, 'y');
	ask_of(0, 3000, 2000 - 32);
	ck_blocks(0, 100, 0);
	say_bytes(150, 100, 'z');
	ask_of(0, 3000, 2000 - 33);
	ck_blocks(0, 0, 0);
}
END_TEST

START_TEST(found_nothing)
{
	begin(0);
	say_bytes(150, 100, 'x');
	ask_of(0, 3000, 0);
	ck_blocks(0, 0, 100);
	say_bytes(150, 100, 'y');
	ask_of(0, 3000, 32);
	ck_blocks(0, 0, 100);
	/* a partial hit: which blocks, cannot be determined */
	say_bytes(150, 100, 'z');
	ask_of(0, 3000, 33);
	ck_blocks(0, 0, 0);
}
END_TEST

/* 25 tokens per block of the first, 40 per block of the second. */
START_TEST(between_two_anchors)
{
	begin(0);
	say_bytes(200, 100, 'x');
	ask_of(0, 6000, 2000);
	survival_forget(k, 0);
	say_bytes(200, 100, 'x');
	ask_of(0, 6000, 6000);
	/* 199.5 blocks of 16 are usable of the 12,800 bytes */
	ck_assert(hits(0, 0, AGES) * 512 > 199 * 16 - 32);
	survival_forget(k, 0);
	begin(0);
	say_bytes(200, 100, 'x');
	ask_of(0, 6000, 2010);
	ck_assert(misses(0, 0, AGES) * 512 > 99 * 16 - 32);
	ck_assert(fabs(hits(0, 0, AGES) * 512 - 1600) < 16);
	survival_forget(k, 0);
	begin(0);
	say_bytes(200, 100, 'x');
	ask_of(0, 6000, 4000);
	ck_blocks(0, 100, 0);
}
END_TEST

/* No prompt has ended there yet: no ratio maps bytes to tokens. */
START_TEST(no_anchor_no_evidence)
{
	begin(0);
	say_bytes(300, 50, 'x');
	ask_of(0, 6000, 1000);
	ck_blocks(0, 0, 0);
	say_bytes(400, 50, 'y');
	ask_of(0, 8000, 0);
	ck_blocks(0, 0, 0);
	/* the anchor is another worker's */
	begin(1);
	say_bytes(60, 60, 'x');
	ask_of(1, 1200, 0);
	survival_forget(k, 1);
	say_bytes(300, 60, 'z');
	ask_of(0, 6000, 1200);
	ck_blocks(0, 0, 0);
	ask_of(1, 6000, 1200);
	ck_blocks(1, 60, 0);
}
END_TEST

/* No length reported, or an absurd one: no anchor. */
START_TEST(lengths_not_said)
{
	begin(0);
	say_bytes(100, 0, 'm');
	ask_of(0, 0, 0);
	ask_of(0, UINT64_MAX, 0);
	ask_of(0, (uint64_t)UINT32_MAX + 1, 0);
	survival_forget(k, 0);
	say_bytes(150, 0, 'm');
	ask_of(0, 0, 0);
	ck_blocks(0, 0, 0);
}
END_TEST

/*
 * A leaf that grows in place ends elsewhere now: the anchor of the old end
 * does not hold for the new one.
 */
START_TEST(grown_leaf_has_no_anchor)
{
	begin(0);
	say_bytes(300, 300, 0);
	ck_assert_uint_eq(observed(0, k->region->clock), 300);
	say_bytes(400, 300, 'x');
	ask_of(0, 7000, 2000);
	ck_blocks(0, 0, 0);
}
END_TEST

/* After a split only the lower part ends where the node ended. */
START_TEST(parted_node)
{
	begin(0);
	say_bytes(60, 50, 'x');
	ask_of(0, 1200, 0);
	survival_forget(k, 0);
	say_bytes(130, 100, 'y');
	ask_of(0, 2600, 2000);
	ck_blocks(0, 100, 0);
	say_bytes(60, 50, 'z');
	ask_of(0, 1200, 1000);
	ck_blocks(0, 0, 0);
}
END_TEST

START_TEST(any_lengths)
{
	static const uint64_t odd[] = { 0, 1, 15, 16, 17, 64, 2000, 4000,
	    UINT32_MAX, (uint64_t)UINT32_MAX + 1, UINT64_MAX };
	uint64_t n = test_amount(1500), i;
	struct kvr_report r;
	uint64_t lease;

	by_chance();
	for (i = 0; i < n; i++) {
		say_bytes(100 + pick(100), pick(100), 'a' + (int)pick(3));
		r = said(pick(3), odd[pick(11)]);
		r.prompt_tokens = odd[pick(11)];
		r.completion_tokens = odd[pick(11)];
		if (pick(2) == 0)
			(void)observed(pick(2), (int64_t)i);
		lease = reserved(pick(2), (int64_t)i);
		must(kvr_lease_finish(k, lease, &r, (int64_t)i, 0) == KVR_OK);
	}
}
END_TEST

/* ------------------------------------------------------------ capacity --- */

/* Chats with blocks of `each` tokens, beside `tools` that are no text. */
static void
chats_of(uint64_t each, uint64_t tools)
{
	uint32_t turn, before = 0;
	int chat;

	for (turn = 1; turn <= 8; turn++, before = turn * 10 - 10)
		for (chat = 'a'; chat < 'a' + 12; chat++) {
			say_bytes(turn * 10, 0, chat);
			ask_of(0, tools + turn * 10 * each,
			    turn == 1 ? 0 : tools + before * each);
		}
}

static void
told_capacity(uint64_t tokens)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	ck_assert_int_eq(kvr_worker_get(k, id[0], &facts), KVR_OK);
	facts.retain = KVR_RETAIN_CAPACITY;
	facts.capacity_tokens = tokens;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
}

/* A capacity is told in the engine's tokens, of which a block has more. */
START_TEST(capacity_is_in_tokens_of_the_engine)
{
	static const uint64_t each[] = { 8, 14, 16, 32, 49 };
	const double want = (double)each[_i % 5] / 16;
	double held;

	/* also without the numbers of tokens that were cached */
	kind_of_report = _i < 5 ? KVR_REPORT_VALUE : KVR_REPORT_ABSENT;
	told_capacity(3200);
	chats_of(each[_i % 5], 0);
	kind_of_report = KVR_REPORT_VALUE;
	ck_assert(fabs(trust_ratio(k, id_slot(id[0])) - want) < 0.01);
	held = (double)worker_stats(0).held_blocks * want * 16;
	ck_assert_msg(held <= 1.1 * 3200 && held > 0.6 * 3200, "%g", held);
}
END_TEST

/* A block has four times as many tokens as it has by its bytes. */
START_TEST(overload_is_in_tokens_of_the_engine)
{
	struct kvr_policy policy = { .size = sizeof(policy) };
	int chat;

	told_capacity(64000);
	chats_of(64, 0);
	ck_assert_int_eq(kvr_policy_get(k, &policy), KVR_OK);
	policy.overload_blocks_fraction = 0.5;
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_OK);
	for (chat = 0; chat < 100 && worker_stats(0).overloaded == 0; chat++) {
		say_bytes(20, 0, 'A' + chat);
		(void)reserved(0, k->region->clock + 1);
	}
	ck_assert_int_eq(chat, 32000 / (20 * 64) + 1);
}
END_TEST

/* An engine counts tools as well, once for all turns. */
START_TEST(tools_are_no_part_of_the_ratio)
{
	static const uint64_t each[] = { 8, 14, 16, 32, 49 };
	const double want = (double)each[_i] / 16;
	double ratio;

	told_capacity(1000000);
	chats_of(each[_i], 1000);
	ratio = trust_ratio(k, id_slot(id[0]));
	ck_assert_msg(ratio >= want && ratio < want + 0.2, "%g", ratio);
}
END_TEST

/* Predictions are counted as the engine counts. */
START_TEST(predictions_are_in_tokens_of_the_engine)
{
	struct kvr_calibration c;

	told_capacity(1000000);
	chats_of(32, 0);
	c = worker_stats(0).calibration;
	ck_assert_uint_gt(c.reports, 20);
	ck_assert_uint_le(c.predicted_tokens, c.reported_tokens);
	ck_assert_uint_ge(c.predicted_tokens + 64 * c.reports,
	    c.reported_tokens);
}
END_TEST

/* What is damaged, or too little, is no ratio. */
START_TEST(ratio_of_damaged_counts)
{
	static const double bad[][2] = { { NAN, 1 }, { 1, NAN }, { 1, 0 },
	    { -1, 1e9 }, { 1e300, 1e-300 }, { INFINITY, INFINITY },
	    { 100, 100 }, { 0, 1e6 } };
	struct slot *s = slot_at(k, id_slot(id[0]));

	s->usage_tokens = bad[_i][0];
	s->usage_estimate = bad[_i][1];
	ck_assert(trust_ratio(k, id_slot(id[0])) == 1);
	trust_count(k, id_slot(id[0]), 1e6, 5e5);
	trust_count(k, id_slot(id[0]), 6e6, 3e6);
	trust_count(k, id_slot(id[0]), 6e6, 3e6);
	ck_assert(fabs(trust_ratio(k, id_slot(id[0])) - 2) < 0.7);
}
END_TEST

Suite *suite_anchor(void);

Suite *
suite_anchor(void)
{
	Suite *s = suite_create("anchor");
	TCase *t = tcase_create("anchor");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, found_all);
	tcase_add_test(t, found_nothing);
	tcase_add_test(t, between_two_anchors);
	tcase_add_test(t, no_anchor_no_evidence);
	tcase_add_test(t, lengths_not_said);
	tcase_add_test(t, grown_leaf_has_no_anchor);
	tcase_add_test(t, parted_node);
	tcase_add_test(t, any_lengths);
	tcase_add_loop_test(t, capacity_is_in_tokens_of_the_engine, 0, 10);
	tcase_add_test(t, overload_is_in_tokens_of_the_engine);
	tcase_add_loop_test(t, tools_are_no_part_of_the_ratio, 0, 5);
	tcase_add_test(t, predictions_are_in_tokens_of_the_engine);
	tcase_add_loop_test(t, ratio_of_damaged_counts, 0, 8);
	return s;
}
