/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_page.c - the page of kvroute-replay --report: its text, parsed by an XML
 * parser, and rendered by a browser.
 *
 * The browser loads the page into frames as wide as a phone, a tablet and a
 * desktop. A script checks that nothing is wider than its frame, that no text
 * leaves its drawing or overlaps other text, and that clicking a legend key
 * works. Another frame has all of these faults, to show that the script
 * detects them.
 */
#include "alloc.h"
#include "browser.h"
#include "page.h"
#include "page_document.h"
#include "sample.h"
#include "simulate.h"
#include "test.h"
#include "tokens.h"
#include "trace.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MAX = 64 };

/* Different policies, used in turn. */
static const struct {
	const char *name;
	enum simulate_policy policy;
	enum simulate_index index;
	int64_t ttl_s;
} kinds[] = {
	{ "round-robin", SIMULATE_ROUND_ROBIN, SIMULATE_TTL, 0 },
	{ "dynamo:ttl=120", SIMULATE_DYNAMO, SIMULATE_TTL, 120 },
	{ "dynamo:oracle", SIMULATE_DYNAMO, SIMULATE_ORACLE, 0 },
	{ "two-tier:ttl=120", SIMULATE_TWO_TIER, SIMULATE_TTL, 120 },
	{ "balanced:capacity", SIMULATE_BALANCED, SIMULATE_CAPACITY, 120 },
	{ "dynamo:ttl=600", SIMULATE_DYNAMO, SIMULATE_TTL, 600 },
	{ "least-loaded", SIMULATE_LEAST_LOADED, SIMULATE_TTL, 0 },
	{ "balanced:oracle", SIMULATE_BALANCED, SIMULATE_ORACLE, 0 },
	{ "balanced:feedback", SIMULATE_BALANCED, SIMULATE_FEEDBACK, 120 },
	{ "two-tier:ttl=5", SIMULATE_TWO_TIER, SIMULATE_TTL, 5 }
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), ROUND_ROBIN = 0, ORACLE = 2 };

static struct simulate_row rows[ROWS_MAX];
static size_t n_rows;
static struct kvr_options region;
static struct kvr *k; /* for the prompt */
static struct kvr_prompt *prompt;
static struct tokens tokens;
static struct simulate_about about;

/* --------------------------------------------------------- simulations --- */

static void
add(size_t kind, uint32_t workers, uint64_t capacity, int64_t sample_ns)
{
	struct simulate_options o;
	struct simulate_row *row = &rows[n_rows++];

	simulate_defaults(&o);
	o.policy = kinds[kind].policy;
	o.index = kinds[kind].index;
	o.workers = workers;
	o.capacity_tokens = capacity;
	o.sample_ns = sample_ns;
	region.max_workers = workers;
	region.ttl_ns = kinds[kind].ttl_s * INT64_C(1000000000);
	ck_assert_int_eq(simulate_new(&o, &region, &row->simulation), KVR_OK);
	row->name = kinds[kind].name;
}

static void
give(struct trace *t)
{
	struct trace_request q;
	size_t i;
	int result;

	while ((result = trace_next(t, &q)) == 1) {
		ck_assert_int_eq(tokens_make(&tokens, &q), 0);
		if (q.tokens > 0)
			ck_assert_int_eq(kvr_prompt_set_tokens(prompt, NULL,
			    tokens.tokens, q.tokens), KVR_OK);
		about.span_ns = q.arrival_ms * 1000000;
		about.requests++;
		for (i = 0; i < n_rows; i++)
			ck_assert_int_eq(simulate_request(rows[i].simulation,
			    prompt, &q, about.span_ns), KVR_OK);
	}
	ck_assert_int_eq(result, 0);
	for (i = 0; i < n_rows; i++)
		ck_assert_int_eq(simulate_drain(rows[i].simulation), KVR_OK);
}

/* Feeds a generated trace to all simulations that were added. */
static void
simulate(uint64_t requests)
{
	struct sample_options o;
	FILE *f = tmpfile();
	struct trace *t;

	ck_assert_ptr_nonnull(f);
	sample_defaults(&o);
	o.requests = requests;
	o.duration_s = 1 + requests / 4;
	ck_assert_int_eq(sample_write(f, &o), 0);
	rewind(f);
	t = trace_new(f, "sample");
	ck_assert_ptr_nonnull(t);
	ck_assert_int_eq(kvr_new(&region, &k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &prompt), KVR_OK);
	give(t);
	trace_free(t);
	fclose(f);
}

static void
setup(void)
{
	n_rows = 0;
	about = (struct simulate_about){ .trace = "sample", .speed = 1 };
	ck_assert_int_eq(kvr_options_init(&region, sizeof(region)), KVR_OK);
	region.region_bytes = UINT64_C(2) << 20;
	region.block_size = 512;
	region.secret_bytes = KVR_SECRET_MIN;
	memset(region.secret, 7, sizeof(region.secret));
}

static void
teardown(void)
{
	size_t i;

	for (i = 0; i < n_rows; i++)
		simulate_free(rows[i].simulation);
	kvr_prompt_free(prompt);
	kvr_free(k);
	tokens_free(&tokens);
}

/* Ten policies with 8 workers each. */
static void
simulate_ten(uint64_t requests)
{
	size_t i;

	for (i = 0; i < KINDS; i++)
		add(i, 8, 500000, INT64_C(500000000));
	simulate(requests);
}

/* ------------------------------------------------------------ the text --- */

/* The page, to be freed. */
static char *
page_text(void)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(simulate_page(f, &about, rows, n_rows), KVR_OK);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_uint_eq(strlen(text), size);
	return text;
}

/* The table has each policy's numbers as in --format kv. */
static void
ck_numbers(const char *text)
{
	char want[64];
	double value;
	size_t i;
	int e;
	struct figures *x = figures_new(rows, n_rows, &e);

	ck_assert_ptr_nonnull(x);
	for (i = 0; i < n_rows; i++) {
		ck_has(text, rows[i].name);
		value = figures_value(x, i, "hit_ratio");
		ck_assert(value > 0);
		snprintf(want, sizeof(want), "%.2f", 100 * value);
		ck_has(text, want);
		value = figures_value(x, i, "ttft_p90");
		ck_assert(value > 0);
		snprintf(want, sizeof(want), "%.3f", value);
		ck_has(text, want);
	}
	figures_free(x);
}

START_TEST(complete)
{
	char *text, *again;

	simulate_ten(400);
	text = page_text();
	ck_numbers(text);
	ck_has(text, "Worker load");
	ck_has(text, "Predicted and actual overlap");
	ck_has(text, "Index size");
	ck_has(text, "<dt>seed</dt>");
	/* counters that are 0 everywhere are not shown */
	ck_hasnt(text, "cache resets");
	ck_hasnt(text, "truncated");
	ck_hasnt(text, "between routers");
	/* bars, curves and sizes; 10 loads; overlaps of 8 that predict */
	ck_assert_uint_eq(times_in(text, "role=\"img\""), 4 + 2 + 10 + 8);
	ck_assert_uint_eq(times_in(text, "<title id="), 4 + 2 + 10 + 8);
	ck_assert_uint_eq(times_in(text, "<desc id="), 4 + 2 + 10 + 8);
	ck_hasnt(text, ">nan");
	ck_hasnt(text, "inf");
	again = page_text();
	ck_assert_str_eq(text, again);
	free(again);
	free(text);
}
END_TEST

/* The page fetches nothing. */
START_TEST(alone)
{
	static const char *const references[] = { "http:", "https:", "//",
		"src=", "href", "url(", "@import", "<link", "<img", "<base" };
	char *text;
	size_t i;

	simulate_ten(100);
	text = page_text();
	for (i = 0; i < sizeof(references) / sizeof(references[0]); i++)
		ck_hasnt(text, references[i]);
	ck_has(text, "Content-Security-Policy\" content=\"default-src 'none'");
	free(text);
}
END_TEST

/* As many requests as 40 minutes of a published trace. */
START_TEST(small)
{
	char *text;

	simulate_ten(test_amount(12000));
	text = page_text();
	ck_assert_uint_lt(strlen(text), 500000);
	ck_assert_uint_gt(strlen(text), 20000);
	free(text);
}
END_TEST

START_TEST(without_samples)
{
	char *text;

	add(1, 2, 100000, 0);
	simulate(50);
	text = page_text();
	ck_numbers(text);
	ck_hasnt(text, "Worker load");
	ck_hasnt(text, "Index size");
	ck_has(text, "Predicted and actual overlap");
	ck_has(text, "1 routing policy");
	free(text);
}
END_TEST

/* No prompt fits: the page reports that nothing was measured. */
START_TEST(nothing_answered)
{
	char *text;

	add(0, 2, 512, INT64_C(1000000000));
	add(1, 2, 512, INT64_C(1000000000));
	simulate(50);
	ck_assert_uint_eq(simulate_totals(rows[0].simulation)->finished, 0);
	text = page_text();
	ck_has(text, "No request finished.");
	ck_hasnt(text, ">nan");
	ck_hasnt(text, "inf");
	free(text);
	ck_assert_int_eq(simulate_page(stdout, &about, rows, 0), KVR_EINVAL);
}
END_TEST

/* Options that differ from the defaults are listed at the top. */
START_TEST(what_was_simulated)
{
	struct simulate_options o;
	char *text;

	simulate_defaults(&o);
	o.workers = 3;
	o.n_capacities = 2;
	o.capacities[0] = 123000;
	o.n_speeds = 2;
	o.speeds[0] = 1;
	o.speeds[1] = 2.5;
	o.eviction = ENGINE_EVICT_LEAF;
	o.reset_ns = INT64_C(120000000000);
	o.event_delay_ns = INT64_C(50000000);
	o.replicas = 2;
	o.exchange = SIMULATE_ALL;
	o.exchange_delay_ns = INT64_C(20000000);
	region.max_workers = o.workers;
	rows[n_rows].name = "round-robin";
	ck_assert_int_eq(simulate_new(&o, &region,
	    &rows[n_rows++].simulation), KVR_OK);
	simulate(50);
	text = page_text();
	ck_has(text, "<dd>123,000; endless</dd>");
	ck_has(text, "<dd>1; 2.5</dd>");
	ck_has(text, "<dd>least recently used leaf</dd>");
	ck_has(text, "every</dt><dd>120" MARKUP_BLANK "s</dd>");
	ck_has(text, "delay</dt><dd>50" MARKUP_BLANK "ms</dd>");
	ck_has(text, "exchange</dt><dd>all</dd>");
	ck_has(text, "exchange delay</dt><dd>20" MARKUP_BLANK "ms</dd>");
	ck_hasnt(text, "capacity per worker");
	ck_has(text, "<dt>trace</dt><dd><bdi>sample</bdi>");
	free(text);
}
END_TEST

/* Untrusted names are escaped everywhere. */
START_TEST(hostile_names)
{
	char *text;

	add(0, 2, 100000, INT64_C(1000000000));
	add(1, 2, 100000, INT64_C(1000000000));
	simulate(50);
	about.trace = "</title><script>alert(1)</script>&\xff\"'.jsonl";
	rows[1].name = "<b onclick='x'>&amp;\"";
	text = page_text();
	ck_assert_uint_eq(times_in(text, "<script"), 1);
	ck_hasnt(text, "<b onclick");
	ck_hasnt(text, "\xff");
	ck_has(text, "&lt;/title&gt;&lt;script&gt;alert(1)");
	ck_has(text, "&lt;b onclick=&#39;x&#39;&gt;&amp;amp;&quot;");
	free(text);
}
END_TEST

/* The fastest policy, by how much, and how close to an oracle. */
START_TEST(sentence)
{
	const int64_t *sorted;
	double p90[3];
	char want[160], *text;
	size_t i, n;

	for (i = 0; i < 3; i++)
		add(i, 4, 200000, 0);
	simulate(600);
	for (i = 0; i < 3; i++) {
		sorted = simulate_first_tokens(rows[i].simulation);
		n = simulate_totals(rows[i].simulation)->finished;
		p90[i] = (double)sorted[(n * 9 + 9) / 10 - 1] / 1e9;
	}
	text = page_text();
	i = p90[1] < p90[ROUND_ROBIN];
	snprintf(want, sizeof(want), "<b>%s</b> was fastest: 90"
	    MARKUP_BLANK "%% of its requests had their first token within %s",
	    rows[i].name, number_seconds(p90[i]).text);
	ck_has(text, want);
	snprintf(want, sizeof(want), "less than <b>%s</b> (%s)",
	    rows[!i].name, number_seconds(p90[!i]).text);
	ck_has(text, want);
	snprintf(want, sizeof(want), "<b>dynamo:oracle</b> took %s",
	    number_seconds(p90[ORACLE]).text);
	if (p90[ORACLE] < p90[i])
		ck_has(text, want);
	else
		ck_hasnt(text, want);
	free(text);
}
END_TEST

/* Many workers share rows; 64 policies have distinct styles. */
START_TEST(many)
{
	struct page_class a, b;
	size_t i, j;
	char *text;

	add(1, 100, 100000, INT64_C(1000000000));
	simulate(100);
	text = page_text();
	ck_has(text, "One row per 4 workers: their mean requests");
	free(text);
	for (i = 0; i < ROWS_MAX; i++)
		for (j = 0; j < i; j++) {
			a = page_class("", i);
			b = page_class("", j);
			/* after the number: colour and dashes */
			ck_assert_str_ne(strstr(a.text, " c"),
			    strstr(b.text, " c"));
		}
}
END_TEST

START_TEST(memory)
{
	unsigned long n;
	char *whole, *text = NULL;
	size_t size;
	FILE *f;
	int e = KVR_ENOMEM;

	for (n = 0; n < 3; n++)
		add(n, 2, 100000, INT64_C(1000000000));
	simulate(50);
	whole = page_text();
	for (n = 1; e != KVR_OK; n++) {
		f = open_memstream(&text, &size);
		alloc_fail_at(n);
		e = simulate_page(f, &about, rows, n_rows);
		alloc_reset();
		ck_assert(e == KVR_OK || e == KVR_ENOMEM);
		fclose(f);
		if (e == KVR_OK)
			ck_assert_str_eq(text, whole);
		free(text);
	}
	ck_assert_uint_gt(n, 10);
	free(whole);
}
END_TEST

/* ---------------------------------------------------- external programs --- */

static void
outside_setup(void)
{
	setup();
	folder_setup();
}

static void
outside_teardown(void)
{
	folder_teardown();
	teardown();
}

static void
write_page(void)
{
	char *text;

	about.trace = "<conversation> & \xff\x01 trace.jsonl";
	text = page_text();
	write_file("page.html", text);
	free(text);
}

/* xmllint accepts the page. */
START_TEST(parsed)
{
	char command[2 * PATH_MAX], *said;
	int status;

	if (!is_there("xmllint"))
		test_skip("no xmllint");
	simulate_ten(200);
	write_page();
	snprintf(command, sizeof(command),
	    "xmllint --noout --nonet '%s/page.html' 2>&1", folder);
	said = output_of(command, &status);
	ck_assert_msg(status == 0 && said[0] == '\0', "%s", said);
	free(said);
	/* and rejects what is not well-formed */
	write_file("page.html", "<html><p>&amp; < b</p></html>");
	said = output_of(command, &status);
	ck_assert_int_ne(status, 0);
	free(said);
}
END_TEST

/* Has every fault that the script detects, and a console message. */
static const char faulty[] =
"<!DOCTYPE html><html><body style='margin:0'><div style='width:500px'>x</div>"
"<svg viewBox='0 0 100 50' width='100'><text x='5' y='20'>one</text>"
"<text x='8' y='20'>on it</text><text x='90' y='40'>far too long</text></svg>"
"<script>console.error('an intended fault')</script></body></html>";

/*
 * Prints name=number for each frame. Sizes have a tolerance of one pixel
 * because text has fractional positions.
 */
static const char look[] =
"<!DOCTYPE html><html><body><pre id='said'></pre>\n"
"<iframe src='page.html' name='phone' width='360' height='800'></iframe>\n"
"<iframe src='page.html' name='tablet' width='800' height='800'></iframe>\n"
"<iframe src='page.html' name='desk' width='1400' height='800'></iframe>\n"
"<iframe src='faulty.html' name='faulty' width='360' height='800'></iframe>\n"
"<script>\n"
"function boxes(svg) {\n"
"	return Array.from(svg.querySelectorAll('text')).map(function (t) {\n"
"		return t.getBoundingClientRect();\n"
"	});\n"
"}\n"
"function outside(svg) {\n"
"	var s = svg.getBoundingClientRect();\n"
"	return boxes(svg).filter(function (b) {\n"
"		return b.left < s.left - 1 || b.right > s.right + 1 ||\n"
"		    b.top < s.top - 1 || b.bottom > s.bottom + 1;\n"
"	}).length;\n"
"}\n"
"function meeting(svg) {\n"
"	var all = boxes(svg), n = 0;\n"
"	var texts = svg.querySelectorAll('text');\n"
"	all.forEach(function (a, i) {\n"
"		all.slice(0, i).forEach(function (b) {\n"
"			var wide = Math.min(a.right, b.right) -\n"
"			    Math.max(a.left, b.left);\n"
"			var high = Math.min(a.bottom, b.bottom) -\n"
"			    Math.max(a.top, b.top);\n"
"			/* lines of text may be close to each other */\n"
"			if (!(wide > 1 && high > 4)) return;\n"
"			n++;\n"
"			say('text on text: ' + texts[i].textContent);\n"
"		});\n"
"	});\n"
"	return n;\n"
"}\n"
"function sum(document, f) {\n"
"	var n = 0;\n"
"	document.querySelectorAll('svg').forEach(function (s) {\n"
"		n += f(s);\n"
"	});\n"
"	return n;\n"
"}\n"
"function say(what) {\n"
"	document.getElementById('said').textContent += what + '\\n';\n"
"}\n"
"function press(document, name) {\n"
"	var keys = document.querySelectorAll('.keys span');\n"
"	if (keys.length === 0) return;\n"
"	keys[0].click();\n"
"	say(name + '-faint=' + document.querySelectorAll('.faint').length);\n"
"	keys[0].click();\n"
"	say(name + '-again=' + document.querySelectorAll('.faint').length);\n"
"}\n"
"window.onload = function () {\n"
"	document.querySelectorAll('iframe').forEach(function (f) {\n"
"		var d = f.contentDocument, name = f.name;\n"
"		say(name + '-wide=' + d.documentElement.scrollWidth);\n"
"		say(name + '-texts=' + d.querySelectorAll('text').length);\n"
"		say(name + '-outside=' + sum(d, outside));\n"
"		say(name + '-meeting=' + sum(d, meeting));\n"
"		press(d, name);\n"
"		if (name === 'phone') say(d.body.innerText);\n"
"	});\n"
"};\n"
"</script></body></html>\n";

static long
said_number(const char *said, const char *frame, const char *what)
{
	char name[64];
	const char *at;

	snprintf(name, sizeof(name), "%s-%s=", frame, what);
	at = strstr(said, name);
	ck_assert_msg(at != NULL, "%s was not printed", name);
	return strtol(at + strlen(name), NULL, 10);
}

static void
ck_frame(const char *said, const char *frame, long width)
{
	ck_assert_int_le(said_number(said, frame, "wide"), width);
	ck_assert_int_gt(said_number(said, frame, "texts"), 100);
	ck_assert_int_eq(said_number(said, frame, "outside"), 0);
	ck_assert_msg(said_number(said, frame, "meeting") == 0, "%s: %.200s",
	    frame, strstr(said, "text on text: "));
	ck_assert_int_gt(said_number(said, frame, "faint"), 20);
	ck_assert_int_eq(said_number(said, frame, "again"), 0);
}

START_TEST(browsed)
{
	char *said;

	if (!is_there("chromium"))
		test_skip("no chromium (sh mk/deps.sh page)");
	simulate_ten(400);
	write_page();
	write_file("faulty.html", faulty);
	write_file("look.html", look);
	said = browse();
	/* only from the faulty frame */
	ck_has(said, "an intended fault");
	ck_assert_uint_eq(times_in(said, "CONSOLE"), 1);
	ck_assert_int_gt(said_number(said, "faulty", "wide"), 360);
	ck_assert_int_eq(said_number(said, "faulty", "outside"), 1);
	ck_assert_int_eq(said_number(said, "faulty", "meeting"), 1);
	ck_frame(said, "phone", 360);
	ck_frame(said, "tablet", 800);
	ck_frame(said, "desk", 1400);
	ck_numbers(said);
	free(said);
}
END_TEST

Suite *suite_page(void);

Suite *
suite_page(void)
{
	Suite *s = suite_create("page");
	TCase *c = tcase_create("page"), *other = tcase_create("other");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, complete);
	tcase_add_test(c, alone);
	tcase_add_test(c, small);
	tcase_add_test(c, without_samples);
	tcase_add_test(c, nothing_answered);
	tcase_add_test(c, what_was_simulated);
	tcase_add_test(c, hostile_names);
	tcase_add_test(c, sentence);
	tcase_add_test(c, many);
	tcase_add_test(c, memory);
	suite_add_tcase(s, c);
	tcase_add_checked_fixture(other, outside_setup, outside_teardown);
	tcase_add_test(other, parsed);
	tcase_add_test(other, browsed);
	suite_add_tcase(s, other);
	return s;
}
