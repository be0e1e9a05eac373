/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_engine_report.c - each fault of reports has its documented effect.
 */
#include "test.h"

#include <stdbool.h>
#include <string.h>

#include "engine_report.h"
#include "rng.h"

static const struct engine_answer truth = { 5000, 1024, 77, 512 };
enum { REPORTS = 10000 };

static struct engine_report_idea
idea_of(const char *text)
{
	struct engine_report_idea idea = { 0 };
	const char *wrong = engine_report_parse(text, &idea);

	ck_assert_msg(wrong == NULL, "%s: %s", text, wrong);
	return idea;
}

static struct kvr_report
report(const struct engine_report_idea *idea, const struct engine_answer *a,
    struct rng *rng)
{
	struct kvr_report r;

	memset(&r, 0xAB, sizeof(r));
	engine_report(idea, a, rng, &r);
	if (r.size != sizeof(r) || r.flags != KVR_REPORT_STREAM ||
	    r.endpoint != 0 || r.reserved != 0)
		ck_abort_msg("a field that no fault changes");
	return r;
}

/* One report, for faults without randomness. */
static struct kvr_report
once(const char *text, uint64_t cached)
{
	struct engine_report_idea idea = idea_of(text);
	struct engine_answer a = truth;
	struct rng rng = { 1 };

	a.cached_tokens = cached;
	return report(&idea, &a, &rng);
}

static bool
same(const struct kvr_report *a, const struct kvr_report *b)
{
	return a->kind == b->kind && a->prompt_tokens == b->prompt_tokens &&
	    a->cached_tokens == b->cached_tokens &&
	    a->completion_tokens == b->completion_tokens;
}

static bool
is_true(const struct kvr_report *r)
{
	return r->kind == KVR_REPORT_VALUE &&
	    r->prompt_tokens == truth.prompt_tokens &&
	    r->cached_tokens == truth.cached_tokens &&
	    r->completion_tokens == truth.completion_tokens;
}

/* The number of untrue reports; all of them have this kind and number. */
static int
untrue(const char *text, uint32_t kind, uint64_t cached)
{
	struct engine_report_idea idea = idea_of(text);
	struct rng rng = { 1 };
	int n = 0, i;

	for (i = 0; i < REPORTS; i++) {
		struct kvr_report r = report(&idea, &truth, &rng);

		if (is_true(&r))
			continue;
		ck_assert(r.kind == kind && r.cached_tokens == cached);
		n++;
	}
	return n;
}

/* A share of REPORTS, within five standard deviations. */
#define ck_assert_share(n, share) do { \
	ck_assert_int_ge((n), (int)((share) * REPORTS) - 250); \
	ck_assert_int_le((n), (int)((share) * REPORTS) + 250); \
} while (0)

/* ------------------------------------------------------- one at a time --- */

START_TEST(exact)
{
	ck_assert_int_eq(untrue("exact", KVR_REPORT_VALUE, 0), 0);
	ck_assert_uint_eq(once("exact", 0).kind, KVR_REPORT_VALUE);
	ck_assert_uint_eq(once("exact", 0).cached_tokens, 0);
}
END_TEST

START_TEST(low)
{
	ck_assert_share(untrue("low=0.2", KVR_REPORT_VALUE, 512), 0.2);
	ck_assert_int_eq(untrue("low=1", KVR_REPORT_VALUE, 512), REPORTS);
	ck_assert_int_eq(untrue("low=0", KVR_REPORT_VALUE, 512), 0);
	ck_assert_uint_eq(once("low=1", 300).cached_tokens, 0);
	ck_assert_uint_eq(once("low=1", 0).cached_tokens, 0);
}
END_TEST

/* The error is uniform from a tenth less to a tenth more. */
START_TEST(noisy)
{
	struct engine_report_idea idea = idea_of("noisy=0.1");
	struct engine_answer a = { 200000, 100000, 1, 512 };
	struct rng rng = { 1 };
	int tenths[11] = { 0 }, i;

	for (i = 0; i < REPORTS; i++) {
		struct kvr_report r = report(&idea, &a, &rng);

		ck_assert(r.cached_tokens >= 90000 &&
		    r.cached_tokens <= 110000 && r.prompt_tokens == 200000 &&
		    r.completion_tokens == 1);
		tenths[(r.cached_tokens - 90000) / 2000]++;
	}
	for (i = 0; i < 10; i++)
		ck_assert_share(tenths[i], 0.1);
	/* never above the prompt; 0 stays 0 */
	a.prompt_tokens = 100001;
	for (i = 0; i < 1000; i++)
		ck_assert_uint_le(report(&idea, &a, &rng).cached_tokens,
		    100001);
	ck_assert_uint_eq(once("noisy=1", 0).cached_tokens, 0);
}
END_TEST

START_TEST(zeros)
{
	ck_assert_share(untrue("zeros=0.05", KVR_REPORT_VALUE, 0), 0.05);
	ck_assert_int_eq(untrue("zeros=1", KVR_REPORT_VALUE, 0), REPORTS);
}
END_TEST

START_TEST(null_for_zero)
{
	struct kvr_report r = once("null", 0);

	ck_assert_uint_eq(r.kind, KVR_REPORT_ABSENT);
	ck_assert_uint_eq(r.prompt_tokens, truth.prompt_tokens);
	ck_assert_uint_eq(r.completion_tokens, truth.completion_tokens);
	ck_assert_int_eq(untrue("null", KVR_REPORT_ABSENT, 0), 0);
}
END_TEST

/* A number is missing in half of the reports, whatever it is. */
START_TEST(absent)
{
	struct kvr_report r = once("absent=1", 1024);
	struct engine_report_idea idea = idea_of("absent=0.5");
	struct rng rng = { 1 };
	int n = 0, i;

	ck_assert_uint_eq(r.kind, KVR_REPORT_ABSENT);
	ck_assert_uint_eq(r.prompt_tokens, truth.prompt_tokens);
	ck_assert_uint_eq(once("absent=0", 1024).kind, KVR_REPORT_VALUE);
	for (i = 0; i < 10000; i++)
		n += report(&idea, &truth, &rng).kind == KVR_REPORT_ABSENT;
	ck_assert_int_gt(n, 4800); /* 4 standard deviations */
	ck_assert_int_lt(n, 5200);
}
END_TEST

START_TEST(reported)
{
	struct engine_report_idea idea = idea_of("reported=0");
	struct rng rng = { 1 };
	struct kvr_report r = report(&idea, &truth, &rng);

	ck_assert_uint_eq(r.kind, KVR_REPORT_NONE);
	ck_assert_uint_eq(r.prompt_tokens + r.completion_tokens, 0);
	ck_assert_share(untrue("reported=0.05", KVR_REPORT_NONE, 0), 0.95);
	ck_assert_int_eq(untrue("reported=1", KVR_REPORT_NONE, 0), 0);
}
END_TEST

START_TEST(rounded)
{
	ck_assert_uint_eq(once("rounded=1000", 1024).cached_tokens, 1000);
	ck_assert_uint_eq(once("rounded=2176", 2175).cached_tokens, 0);
	ck_assert_uint_eq(once("rounded=2176", 2176).cached_tokens, 2176);
	ck_assert_uint_eq(once("rounded=1", 1023).cached_tokens, 1023);
}
END_TEST

/* Every kind of wrong number occurs. */
START_TEST(lying)
{
	struct engine_report_idea idea = idea_of("lying");
	struct rng rng = { 1 };
	int zero = 0, right = 0, within = 0, above = 0, negative = 0, i;
	int prompts = 0, answers = 0;

	for (i = 0; i < REPORTS; i++) {
		struct kvr_report r = report(&idea, &truth, &rng);
		uint64_t n = r.cached_tokens;

		ck_assert_uint_eq(r.kind, KVR_REPORT_VALUE);
		zero += n == 0;
		right += n == truth.cached_tokens;
		within += n > 0 && n < truth.prompt_tokens;
		above += n > truth.prompt_tokens && n <= INT64_MAX;
		negative += n > (uint64_t)INT64_MAX;
		prompts += r.prompt_tokens != truth.prompt_tokens;
		answers += r.completion_tokens != truth.completion_tokens;
	}
	ck_assert_int_gt(zero, 1000);
	ck_assert_int_lt(right, 100);
	ck_assert_int_gt(within, 1000);
	ck_assert_int_gt(above, 1000);
	ck_assert_int_gt(negative, 1000);
	ck_assert_int_gt(prompts, 3000);
	ck_assert_int_lt(prompts, 6000);
	ck_assert_int_gt(answers, 3000);
	ck_assert_int_lt(answers, 6000);
}
END_TEST

START_TEST(lying_now_and_then)
{
	struct engine_report_idea idea = idea_of("lying=0.2");
	struct rng rng = { 1 };
	int lies = 0, i;

	for (i = 0; i < REPORTS; i++) {
		struct kvr_report r = report(&idea, &truth, &rng);

		lies += !is_true(&r);
	}
	ck_assert_share(lies, 0.2);
}
END_TEST

/* ------------------------------------------------------------- several --- */

START_TEST(in_order)
{
	struct kvr_report r;
	uint64_t seed;

	ck_assert_uint_eq(once("rounded=1000+low=1", 1024).cached_tokens, 488);
	ck_assert_uint_eq(once("low=1+rounded=100", 1024).cached_tokens, 500);
	r = once("rounded=2176+null", 1024);
	ck_assert_uint_eq(r.kind, KVR_REPORT_ABSENT);
	r = once("null+rounded=2176", 1024);
	ck_assert_uint_eq(r.kind, KVR_REPORT_VALUE);
	ck_assert_uint_eq(r.cached_tokens, 0);
	r = once("reported=0+lying", 1024);
	ck_assert_uint_eq(r.kind, KVR_REPORT_NONE);
	ck_assert_uint_eq(r.cached_tokens, 0);
	/* noise applied to a lie stays in range */
	for (seed = 0; seed < 1000; seed++) {
		struct engine_report_idea idea = idea_of("lying+noisy=1");
		struct rng rng = { seed };
		struct kvr_report n = report(&idea, &truth, &rng);

		ck_assert_uint_le(n.cached_tokens, n.prompt_tokens);
	}
}
END_TEST

START_TEST(same_seed_same_reports)
{
	struct engine_report_idea idea = idea_of("low=0.2+noisy=0.1+lying=0.1");
	struct rng a = { 4 }, b = { 4 }, c = { 5 };
	int other = 0, i;

	for (i = 0; i < 100; i++) {
		struct kvr_report x = report(&idea, &truth, &a);
		struct kvr_report y = report(&idea, &truth, &b);
		struct kvr_report z = report(&idea, &truth, &c);

		ck_assert(same(&x, &y));
		other += !same(&x, &z);
	}
	ck_assert_int_gt(other, 10);
}
END_TEST

/* ------------------------------------------------------------- parsing --- */

START_TEST(words)
{
	struct engine_report_idea idea = idea_of("low=.25+rounded=2176+null");

	ck_assert_uint_eq(idea.n, 3);
	ck_assert_int_eq(idea.faults[0].kind, ENGINE_FAULT_LOW);
	ck_assert(idea.faults[0].share == 0.25);
	ck_assert_int_eq(idea.faults[1].kind, ENGINE_FAULT_ROUNDED);
	ck_assert_uint_eq(idea.faults[1].tokens, 2176);
	ck_assert_int_eq(idea.faults[2].kind, ENGINE_FAULT_NULL);
	ck_assert_uint_eq(idea_of("exact").n, 0);
	ck_assert_uint_eq(idea_of("exact+lying").n, 1);
	ck_assert(idea_of("lying").faults[0].share == 1);
	ck_assert(idea_of("lying=0.5").faults[0].share == 0.5);
	idea_of("null+null+null+null+null+null+null+null");
}
END_TEST

START_TEST(not_words)
{
	static const char *const bad[] = { "", "+", "low", "low=", "low=x",
	    "low=1.5", "low=-0.1", "low=nan", "low=0x1", "low=1e-1", "low=.",
	    "low=1.2.3", "low=0.1=", "lo", "lows=1", "exact=1", "exact+",
	    "+exact", "null=", "null=1", "rounded", "rounded=", "rounded=0",
	    "rounded=-16", "rounded=1.5", "rounded=9999999999999999999",
	    "lying=", "lying=2", "reported", "zeros", "noisy", "noisy=1.1",
	    "low=0.1 ", " low=0.1", "low=0.1++null", "Low=0.1",
	    "null+null+null+null+null+null+null+null+null",
	    "low=0.1000000000000000000000000000000000000000000001" };
	struct engine_report_idea idea = idea_of("low=0.5"), before = idea;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(engine_report_parse(bad[i], &idea) != NULL,
		    "\"%s\" was accepted", bad[i]);
		ck_assert_int_eq(memcmp(&idea, &before, sizeof(idea)), 0);
	}
}
END_TEST

Suite *suite_engine_report(void);

Suite *
suite_engine_report(void)
{
	Suite *s = suite_create("engine_report");
	TCase *c = tcase_create("engine_report");

	tcase_add_test(c, exact);
	tcase_add_test(c, low);
	tcase_add_test(c, noisy);
	tcase_add_test(c, zeros);
	tcase_add_test(c, null_for_zero);
	tcase_add_test(c, absent);
	tcase_add_test(c, reported);
	tcase_add_test(c, rounded);
	tcase_add_test(c, lying);
	tcase_add_test(c, lying_now_and_then);
	tcase_add_test(c, in_order);
	tcase_add_test(c, same_seed_same_reports);
	tcase_add_test(c, words);
	tcase_add_test(c, not_words);
	suite_add_tcase(s, c);
	return s;
}
