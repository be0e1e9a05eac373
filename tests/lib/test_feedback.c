/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_feedback.c - an engine, its answers, and the predictions after them.
 *
 * The engine serves chats that share nothing, one request at a time. Each
 * request of a chat is its text so far. The cache has room for so many tokens
 * and evicts from the end of the chat that was served longest ago, or of any.
 */
#include "reports.h"

enum { BLOCK = 64, CHATS = 64, LONGEST = 64 * 64 };

/* The engine's way to report. */
enum saying { EXACTLY, NULL_FOR_ZERO, FEW_NUMBERS, ZERO, ENDPOINT_OF_ZEROS };

static struct {
	uint32_t length[CHATS], cached[CHATS]; /* tokens */
	uint64_t used[CHATS];
	uint64_t capacity, turn;
	bool off, any; /* no cache; evicts any */
} engine;
static uint64_t asked, predicted, found; /* tokens, since counted */

static void
engine_setup(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 8 << 20;
	o.block_size = BLOCK;
	o.ttl_ns = INT64_C(1000000000000);
	region_of(&o);
	memset(&engine, 0, sizeof(engine));
	engine.capacity = UINT64_MAX;
	by_chance();
}

static uint64_t
engine_holds(void)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < CHATS; i++)
		sum += engine.cached[i];
	return sum;
}

static uint32_t
victim(uint32_t served)
{
	uint32_t i, oldest = CHATS;

	if (engine.any) {
		do
			i = pick(CHATS);
		while (engine.cached[i] == 0 || i == served);
		return i;
	}
	for (i = 0; i < CHATS; i++)
		if (engine.cached[i] > 0 && (oldest == CHATS ||
		    engine.used[i] < engine.used[oldest]))
			oldest = i;
	return oldest;
}

/* Tokens found in the cache, by a request of a chat. */
static uint64_t
engine_serve(uint32_t chat)
{
	uint64_t hit = engine.cached[chat];

	if (hit > engine.length[chat] - 1)
		hit = engine.length[chat] - 1;
	if (engine.off)
		return 0;
	engine.cached[chat] = engine.length[chat];
	engine.used[chat] = ++engine.turn;
	while (engine_holds() > engine.capacity)
		engine.cached[victim(chat)] -= BLOCK;
	return hit / BLOCK * BLOCK;
}

static void
say_chat(uint32_t chat)
{
	static uint32_t token[LONGEST];
	uint32_t i;

	for (i = 0; i < engine.length[chat]; i++)
		token[i] = chat * LONGEST + i;
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, token, i), KVR_OK);
}

static struct kvr_report
report_of(enum saying saying, uint64_t hit)
{
	struct kvr_report r = said(KVR_REPORT_VALUE, hit);

	if ((saying == NULL_FOR_ZERO && hit == 0) ||
	    (saying == FEW_NUMBERS && pick(20) != 0))
		r.kind = KVR_REPORT_ABSENT;
	if (saying == ENDPOINT_OF_ZEROS) {
		r.endpoint = pick(2);
		r.cached_tokens = r.endpoint == 1 ? 0 : hit;
	}
	if (saying == ZERO || r.kind == KVR_REPORT_ABSENT)
		r.cached_tokens = 0;
	return r;
}

/* A request of a chat that has grown, to a length of its own at most. */
static void
turn(uint32_t chat, enum saying saying)
{
	struct kvr_decision d = { .size = sizeof(d) };
	int64_t now = k->region->clock + 1;
	struct kvr_report r;
	uint64_t hit;

	if (engine.length[chat] < 8 * BLOCK * (1 + chat % 8))
		engine.length[chat] += 4 * BLOCK;
	say_chat(chat);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], now, &d),
	    KVR_OK);
	commit(d.lease, now);
	hit = engine_serve(chat);
	r = report_of(saying, hit);
	ck_assert_int_eq(kvr_lease_finish(k, d.lease, &r, now, 0), KVR_OK);
	asked += d.prompt_tokens;
	predicted += d.overlap_tokens;
	found += hit;
}

/* So many requests of any of some chats; then only the last are counted. */
static void
turns(uint32_t n, uint32_t chats, enum saying saying)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (i == n / 2)
			asked = predicted = found = 0;
		turn(pick(chats), saying);
	}
	region_sound();
}

static double
share_of(uint64_t tokens)
{
	return (double)tokens / (double)asked;
}

static void
facts(uint32_t retain, uint64_t capacity)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.retain = retain;
	f.capacity_tokens = capacity;
	f.block_tokens = BLOCK;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
}

#define ck_near(share, is, slack) do { \
	double a_ = (share), b_ = (is); \
	if (!(a_ - b_ < (slack) && b_ - a_ < (slack))) \
		ck_abort_msg(#share " is %g, " #is " %g (seed %" PRIu64 ")", \
		    a_, b_, seed); \
} while (0)

/* ------------------------------------------------------ missing numbers --- */

/* Nineteen of twenty answers have no number though much was hit. */
START_TEST(few_numbers_are_no_zeros)
{
	facts(KVR_RETAIN_AUTO, 0);
	turns(2000, 40, FEW_NUMBERS);
	ck_assert(share_of(found) > 0.6);
	ck_near(share_of(predicted), share_of(found), 0.06);
	/* an answer with a number is evidence still */
	ck_assert_uint_gt(worker_stats(0).calibration.reports, 50);
}
END_TEST

/* An engine that leaves out zeros teaches as much as one that has them. */
START_TEST(null_for_zero_costs_nothing)
{
	double over[2];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		memset(&engine, 0, sizeof(engine));
		ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
		chance = seed;
		facts(KVR_RETAIN_FEEDBACK, 0);
		engine.capacity = 20000;
		turns(4000, CHATS, i == 0 ? EXACTLY : NULL_FOR_ZERO);
		over[i] = share_of(predicted) - share_of(found);
	}
	ck_assert(over[0] < 0.1);
	ck_near(over[1], over[0], 0.03);
}
END_TEST

/* -------------------------------------------------- nothing but zeros --- */

static void
ck_no_cache(uint32_t retain, uint64_t capacity, uint32_t hits)
{
	double most = 0;
	uint32_t i;

	facts(retain, capacity);
	if (hits > 0)
		turns(hits, 20, EXACTLY);
	engine.off = true;
	memset(engine.cached, 0, sizeof(engine.cached));
	/* something is predicted, until it is known better */
	for (i = 0; i < 30; i++) {
		asked = predicted = 0;
		turn(i % 10, ZERO);
		if (share_of(predicted) > most)
			most = share_of(predicted);
	}
	ck_assert(most > 0.3);
	turns(240, 20, ZERO);
	ck_assert(share_of(predicted) < 0.02);
	/* it caches again, and reports it */
	engine.off = false;
	turns(240, 20, EXACTLY);
	ck_assert(share_of(found) > 0.6);
	ck_near(share_of(predicted), share_of(found), 0.15);
}

START_TEST(zeros_by_ttl)
{
	ck_no_cache(KVR_RETAIN_AUTO, 0, 0);
}
END_TEST

START_TEST(zeros_by_feedback)
{
	ck_no_cache(KVR_RETAIN_FEEDBACK, 0, 0);
}
END_TEST

START_TEST(zeros_after_hits)
{
	ck_no_cache(KVR_RETAIN_AUTO, 0, 100);
}
END_TEST

START_TEST(zeros_by_capacity)
{
	ck_no_cache(KVR_RETAIN_AUTO, 1000000, 0);
}
END_TEST

START_TEST(zeros_by_capacity_after_hits)
{
	ck_no_cache(KVR_RETAIN_AUTO, 1000000, 100);
}
END_TEST

/* Running prefixes of others are predicted in full; this engine shares none. */
START_TEST(zeros_though_in_use)
{
	uint64_t lease;

	facts(KVR_RETAIN_AUTO, 0);
	turn(0, ZERO);
	lease = reserved(0, k->region->clock);
	engine.off = true;
	turns(40, 1, ZERO);
	ck_assert(share_of(predicted) < 0.02);
	give_up(lease, k->region->clock);
}
END_TEST

/* One kind of response reports 0 for any hit: the other is believed. */
START_TEST(zeros_of_one_endpoint)
{
	facts(KVR_RETAIN_AUTO, 0);
	turns(1000, 20, ENDPOINT_OF_ZEROS);
	ck_assert(share_of(found) > 0.6);
	ck_near(share_of(predicted), share_of(found), 0.06);
}
END_TEST

/* --------------------------------------------------------- capacities --- */

static uint64_t
room(void)
{
	return k->survival[slot_at(k, id_slot(id[0]))->name - 1].room;
}

/* It may be doubted for some turns. */
static void
turns_until_learnt(uint32_t least)
{
	uint32_t more;

	turns(least, CHATS, EXACTLY);
	for (more = 0; more < 2000 &&
	    worker_stats(0).retain != KVR_RETAIN_CAPACITY; more += 100)
		turns(100, CHATS, EXACTLY);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
}

START_TEST(capacity_is_learnt)
{
	facts(KVR_RETAIN_AUTO, 0);
	engine.capacity = 60000;
	turns_until_learnt(6000);
	ck_assert_uint_gt(room(), 54000);
	ck_assert_uint_lt(room(), 90000);
	ck_near(share_of(predicted), share_of(found), 0.05);
}
END_TEST

START_TEST(learnt_capacity_follows)
{
	facts(KVR_RETAIN_AUTO, 0);
	engine.capacity = 60000;
	turns_until_learnt(6000);
	engine.capacity = 30000;
	turns(6000, CHATS, EXACTLY);
	ck_near(share_of(predicted), share_of(found), 0.08);
	ck_assert_uint_lt(room(), 54000);
	engine.capacity = 60000;
	turns(12000, CHATS, EXACTLY);
	ck_near(share_of(predicted), share_of(found), 0.08);
}
END_TEST

/* No capacity is seen where anything may go at any time. */
START_TEST(no_capacity_if_any_is_evicted)
{
	uint32_t i;

	facts(KVR_RETAIN_AUTO, 0);
	engine.capacity = 60000;
	engine.any = true;
	for (i = 0; i < 30; i++) {
		turns(200, CHATS, EXACTLY);
		ck_assert_uint_eq(worker_stats(0).retain,
		    KVR_RETAIN_FEEDBACK);
	}
}
END_TEST

/* Others use the cache, too, until the set capacity becomes true. */
START_TEST(told_capacity_gives_way_and_returns)
{
	facts(KVR_RETAIN_AUTO, 100000);
	engine.capacity = 20000;
	turns(6000, CHATS, EXACTLY);
	ck_assert(share_of(found) < 0.5);
	ck_near(share_of(predicted), share_of(found), 0.12);
	ck_assert_uint_ne(room(), 100000);
	engine.capacity = 100000;
	turns(12000, CHATS, EXACTLY);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
	ck_near(share_of(predicted), share_of(found), 0.06);
}
END_TEST

/* The set capacity is right: nothing changes, whatever is learnt. */
START_TEST(told_capacity_stays)
{
	facts(KVR_RETAIN_AUTO, 60000);
	engine.capacity = 60000;
	turns(6000, CHATS, EXACTLY);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
	ck_assert_uint_eq(room(), 0);
	ck_near(share_of(predicted), share_of(found), 0.05);
}
END_TEST

Suite *suite_feedback(void);

Suite *
suite_feedback(void)
{
	Suite *s = suite_create("feedback");
	TCase *t = tcase_create("missing");

	tcase_add_checked_fixture(t, engine_setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, few_numbers_are_no_zeros);
	tcase_add_test(t, null_for_zero_costs_nothing);
	t = tcase_create("zeros");
	tcase_add_checked_fixture(t, engine_setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, zeros_by_ttl);
	tcase_add_test(t, zeros_by_feedback);
	tcase_add_test(t, zeros_after_hits);
	tcase_add_test(t, zeros_by_capacity);
	tcase_add_test(t, zeros_by_capacity_after_hits);
	tcase_add_test(t, zeros_though_in_use);
	tcase_add_test(t, zeros_of_one_endpoint);
	t = tcase_create("capacities");
	tcase_add_checked_fixture(t, engine_setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, capacity_is_learnt);
	tcase_add_test(t, learnt_capacity_follows);
	tcase_add_test(t, no_capacity_if_any_is_evicted);
	tcase_add_test(t, told_capacity_gives_way_and_returns);
	tcase_add_test(t, told_capacity_stays);
	return s;
}
