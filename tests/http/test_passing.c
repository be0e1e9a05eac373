/* SPDX-License-Identifier: BSD-2-Clause */
/* test_passing.c - a response is read while it passes. */
#include "busy.h"
#include "life_bed.h"

#include <stdlib.h>

#include "alloc.h"
#include "passing.h"

enum { ALWAYS = 1000000 };
#define MS INT64_C(1000000)

static const char json[] = "{\"choices\":[{\"index\":0,\"message\":{\"role\":"
    "\"assistant\",\"content\":\"Yes.\"}}],\"usage\":{\"prompt_tokens\":320,"
    "\"completion_tokens\":11,\"prompt_tokens_details\":"
    "{\"cached_tokens\":80}}}";
static const char token[] = "data: {\"choices\":[{\"index\":0,\"delta\":"
    "{\"content\":\"Yes.\"}}]}\n\n";
static const char usage[] = "data: {\"choices\":[],\"usage\":"
    "{\"prompt_tokens\":320,\"completion_tokens\":11,"
    "\"prompt_tokens_details\":{\"cached_tokens\":80}}}\n\n";
static const char done[] = "data: [DONE]\n\n";

static struct life b;
static struct passing p;
static struct body_facts facts;
static struct kvr_decision d;
static struct kvr_prompt *prompt;

static void
setup(void)
{
	life_begin(&b);
	memset(&p, 0, sizeof(p));
	memset(&facts, 0, sizeof(facts));
	prompt = life_prompt(&b, 'x');
	(void)life_lease(&b, prompt, &d);
}

static void
teardown(void)
{
	(void)busy_end();
	alloc_reset();
	passing_leave(&p, &b.spares);
	passing_leave(&p, &b.spares);
	spare_prompt_back(&b.spares, prompt);
	life_end(&b);
}

static void
report_make(bool proves, bool apart)
{
	const struct passing_way way = { .endpoint = ENDPOINT_CHAT,
	    .facts = &facts, .decision = &d, .proves = proves,
	    .apart = apart, .now = LIFE_NOW + 100 * MS };

	passing_report(&p, &way, &b.shared);
}

/* ----------------------------------------------------------------- head --- */

START_TEST(types)
{
	static const struct {
		const char *type;
		bool is;
	} all[] = { { "text/event-stream", true },
		{ "Text/Event-Stream; charset=utf-8", true },
		{ "text/event-stream ", true }, { "text/event-streams", false },
		{ "text/event", false }, { "", false } };
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ck_assert_int_eq(passing_type_is(all[i].type,
		    strlen(all[i].type), "text/event-stream"), all[i].is);
}
END_TEST

START_TEST(neither_json_nor_a_stream_is_not_read)
{
	ck_assert(!passing_begin(&p, &b.spares, false, true));
	ck_assert_ptr_null(p.answer);
	passing_data(&p, "x", 1);
	/* Usage of JSON is never cut. */
	ck_assert(passing_begin(&p, &b.spares, true, true));
	ck_assert(!p.strip);
}
END_TEST

START_TEST(without_memory_it_is_not_read)
{
	alloc_fail_from(1);
	ck_assert(!passing_begin(&p, &b.spares, true, false));
	passing_extends(&p, &b.spares, ENDPOINT_CHAT, prompt);
	ck_assert_ptr_null(p.reply);
	alloc_reset();
	ck_assert_ptr_null(passing_end(&p, &b.spares, b.k, false, true,
	    &b.shared));
	ck_assert_uint_eq(b.shared.counts[COUNT_ANSWERS_LEFT], 0);
}
END_TEST

/* --------------------------------------------------------------- pieces --- */

START_TEST(usage_is_cut_from_a_stream)
{
	char out[4096];
	size_t n;

	p.stream = true;
	ck_assert(passing_begin(&p, &b.spares, false, true));
	ck_assert(p.strip);
	n = passing_strip(&p, &b.shared, token, strlen(token), out);
	n += passing_strip(&p, &b.shared, usage, strlen(usage), out + n);
	ck_assert_uint_eq(b.shared.counts[COUNT_STRIPPED], 1);
	n += passing_strip(&p, &b.shared, done, strlen(done) - 1, out + n);
	n += passing_flush(&p, &b.shared, out + n);
	ck_assert_uint_eq(n, strlen(token) + strlen(done) - 1);
	ck_assert(memcmp(out, token, strlen(token)) == 0);
	ck_assert_uint_eq(b.shared.counts[COUNT_STRIPPED], 1);
}
END_TEST

/* Its empty line is missing: it is left out at the end. */
START_TEST(usage_without_an_end_is_cut_too)
{
	char out[4096];

	p.stream = true;
	ck_assert(passing_begin(&p, &b.spares, false, true));
	ck_assert_uint_eq(passing_strip(&p, &b.shared, usage,
	    strlen(usage) - 1, out), 0);
	ck_assert_uint_eq(passing_flush(&p, &b.shared, out), 0);
	ck_assert_uint_eq(b.shared.counts[COUNT_STRIPPED], 1);
}
END_TEST

/* The time is that of its arrival, and the region has it once it can. */
START_TEST(the_first_token_is_noted_when_the_lock_is_free)
{
	p.stream = true;
	ck_assert(passing_begin(&p, &b.spares, false, false));
	ck_assert(!passing_token(&p, b.k, d.lease, LIFE_NOW));
	passing_data(&p, token, strlen(token));
	busy_begin(ALWAYS);
	ck_assert(passing_token(&p, b.k, d.lease, LIFE_NOW + MS));
	ck_assert(!p.started);
	ck_assert(!passing_token(&p, b.k, d.lease, LIFE_NOW + 2 * MS));
	(void)busy_end();
	ck_assert(!passing_token(&p, b.k, d.lease, LIFE_NOW + 3 * MS));
	ck_assert(p.started);
	ck_assert_int_eq(p.first, LIFE_NOW + MS);
	ck_assert(!passing_token(&p, b.k, d.lease, LIFE_NOW + 4 * MS));
}
END_TEST

START_TEST(a_token_without_a_lease_has_started)
{
	p.stream = true;
	ck_assert(passing_begin(&p, &b.spares, false, false));
	passing_data(&p, token, strlen(token));
	ck_assert(passing_token(&p, b.k, 0, LIFE_NOW));
	ck_assert(p.started);
}
END_TEST

/* --------------------------------------------------------------- report --- */

START_TEST(a_report_is_made_once)
{
	ck_assert(passing_begin(&p, &b.spares, true, false));
	passing_data(&p, json, strlen(json));
	d.prompt_tokens = 160;
	d.overlap_tokens = 40;
	d.best_tokens = 80;
	report_make(true, false);
	report_make(true, false);
	ck_assert_uint_eq(p.report.kind, KVR_REPORT_VALUE);
	ck_assert_uint_eq(p.report.prompt_tokens, 320);
	ck_assert_uint_eq(p.report.cached_tokens, 80);
	ck_assert_uint_eq(p.report.completion_tokens, 11);
	ck_assert_uint_eq(p.report.flags & KVR_REPORT_NO_EVIDENCE, 0);
	ck_assert_uint_eq(b.shared.counts[COUNT_USAGES], 1);
	ck_assert_uint_eq(b.shared.counts[COUNT_CACHED_TOKENS], 80);
	/* In tokens of the engine, which are twice as many. */
	ck_assert_uint_eq(b.shared.counts[COUNT_PREDICTED_TOKENS], 80);
	ck_assert_uint_eq(b.shared.counts[COUNT_BEST_TOKENS], 160);
}
END_TEST

START_TEST(no_usage_is_counted_as_missing)
{
	ck_assert(passing_begin(&p, &b.spares, true, false));
	passing_data(&p, "{}", 2);
	report_make(true, false);
	ck_assert_uint_eq(p.report.kind, KVR_REPORT_NONE);
	ck_assert_uint_eq(b.shared.counts[COUNT_MISSING], 1);
	ck_assert_uint_eq(b.shared.counts[COUNT_USAGES], 0);
}
END_TEST

/* Another server prefilled, or it was a retry, or the body has more. */
START_TEST(reports_that_are_no_evidence)
{
	ck_assert(passing_begin(&p, &b.spares, true, false));
	passing_data(&p, json, strlen(json));
	facts.media = _i == 2;
	facts.several = _i == 3;
	report_make(_i != 0, _i == 1);
	ck_assert_uint_ne(p.report.flags & KVR_REPORT_NO_EVIDENCE, 0);
	ck_assert_uint_eq(b.shared.counts[COUNT_USAGES], _i != 1);
}
END_TEST

START_TEST(the_time_of_tokens)
{
	p.stream = true;
	ck_assert(passing_begin(&p, &b.spares, false, false));
	passing_data(&p, token, strlen(token));
	ck_assert(passing_token(&p, b.k, 0, LIFE_NOW));
	passing_data(&p, usage, strlen(usage));
	facts.several = _i == 1;
	report_make(true, false);
	/* Ten more tokens in 100 ms; of several answers they are not known. */
	ck_assert_uint_eq(p.token_ns, _i == 1 ? 0 : 10 * MS);
	ck_assert_uint_eq(b.shared.times[HISTOGRAM_TOKEN], p.token_ns);
}
END_TEST

/* --------------------------------------------------------------- extend --- */

/* The answer is appended to the prompt, if it is known whole. */
START_TEST(the_answer_extends_the_prompt)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };
	struct kvr_prompt *with;

	ck_assert(passing_begin(&p, &b.spares, true, false));
	passing_extends(&p, &b.spares, ENDPOINT_CHAT, prompt);
	passing_data(&p, json, strlen(json));
	with = passing_end(&p, &b.spares, b.k, false, _i == 0, &b.shared);
	ck_assert_int_eq(with != NULL, _i == 0);
	ck_assert_uint_eq(b.shared.counts[COUNT_ANSWERS], _i == 0);
	ck_assert_uint_eq(b.shared.counts[COUNT_ANSWERS_LEFT], _i == 1);
	if (with == NULL)
		return;
	ck_assert_int_eq(kvr_prompt_info_get(with, &info), KVR_OK);
	ck_assert_uint_gt(info.units, (uint64_t)LIFE_BLOCKS * LIFE_BLOCK);
	spare_prompt_back(&b.spares, with);
	/* It is made once. */
	ck_assert_ptr_null(passing_end(&p, &b.spares, b.k, false, true,
	    &b.shared));
	ck_assert_uint_eq(b.shared.counts[COUNT_ANSWERS], 1);
}
END_TEST

/* Each allocation of an extension fails: nothing is appended, or all of it. */
START_TEST(an_extension_without_memory)
{
	struct kvr_prompt *with = NULL, *one;
	unsigned long n;

	for (n = 1; with == NULL; n++) {
		ck_assert_uint_lt(n, 60);
		one = life_prompt(&b, 'x');
		alloc_fail_at(n);
		if (passing_begin(&p, &b.spares, true, false)) {
			passing_extends(&p, &b.spares, ENDPOINT_CHAT, one);
			passing_data(&p, json, strlen(json));
			with = passing_end(&p, &b.spares, b.k, false, true,
			    &b.shared);
		}
		alloc_reset();
		passing_leave(&p, &b.spares);
		spares_free(&b.spares);
		memset(&b.spares, 0, sizeof(b.spares));
		kvr_prompt_free(one);
	}
	ck_assert_uint_gt(n, 4);
	spare_prompt_back(&b.spares, with);
}
END_TEST

Suite *suite_passing(void);

Suite *
suite_passing(void)
{
	Suite *s = suite_create("passing");
	TCase *t = tcase_create("passing");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, types);
	tcase_add_test(t, neither_json_nor_a_stream_is_not_read);
	tcase_add_test(t, without_memory_it_is_not_read);
	tcase_add_test(t, usage_is_cut_from_a_stream);
	tcase_add_test(t, usage_without_an_end_is_cut_too);
	tcase_add_test(t, the_first_token_is_noted_when_the_lock_is_free);
	tcase_add_test(t, a_token_without_a_lease_has_started);
	tcase_add_test(t, a_report_is_made_once);
	tcase_add_test(t, no_usage_is_counted_as_missing);
	tcase_add_loop_test(t, reports_that_are_no_evidence, 0, 4);
	tcase_add_loop_test(t, the_time_of_tokens, 0, 2);
	tcase_add_loop_test(t, the_answer_extends_the_prompt, 0, 2);
	tcase_add_test(t, an_extension_without_memory);
	suite_add_tcase(s, t);
	return s;
}
