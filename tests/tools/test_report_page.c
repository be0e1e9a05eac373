/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_report_page.c - the page of kvroute-replay --report: the JSON in it,
 * read by a parser, and the page, drawn by a browser.
 *
 * The browser loads the page into frames as wide as a phone, a tablet and a
 * desktop. page_look.js checks that nothing is wider than its frame, that no
 * text leaves its drawing or overlaps other text, and that a key of a legend
 * works. Another frame has all these faults, to show that they are detected.
 */
#include "alloc.h"
#include "browser.h"
#include "report_page.h"
#include "sample.h"
#include "simulate.h"
#include "test.h"
#include "tokens.h"
#include "trace.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 8, TEXT_MAX = 1 << 16 };

static const struct {
	const char *name;
	enum simulate_policy policy;
	enum simulate_index index;
	int64_t ttl_s;
} kinds[] = {
	{ "round-robin", SIMULATE_ROUND_ROBIN, SIMULATE_TTL, 0 },
	{ "dynamo:ttl=120", SIMULATE_DYNAMO, SIMULATE_TTL, 120 },
	{ "dynamo:oracle", SIMULATE_DYNAMO, SIMULATE_ORACLE, 0 },
	{ "balanced:capacity", SIMULATE_BALANCED, SIMULATE_CAPACITY, 120 }
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static struct simulate_row rows[ROWS_MAX];
static size_t n_rows;
static struct kvr_options region;
static struct kvr *k; /* for the prompt */
static struct kvr_prompt *prompt;
static struct tokens tokens;
static struct simulate_about about;

/* --------------------------------------------------------- simulations --- */

static void
add_row(size_t kind, uint32_t workers, uint64_t capacity, int64_t sample_ns)
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
feed_trace(struct trace *t)
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
run_trace(uint64_t requests)
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
	feed_trace(t);
	trace_free(t);
	fclose(f);
}

static void
run_kinds(uint64_t requests)
{
	size_t i;

	for (i = 0; i < KINDS; i++)
		add_row(i, 8, 500000, INT64_C(500000000));
	run_trace(requests);
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
	folder_setup();
}

static void
teardown(void)
{
	size_t i;

	folder_teardown();
	for (i = 0; i < n_rows; i++)
		simulate_free(rows[i].simulation);
	kvr_prompt_free(prompt);
	kvr_free(k);
	tokens_free(&tokens);
}

/* ------------------------------------------------------------ the JSON --- */

static char *command[] = { "kvroute-replay", "a b", "</script><script>" };

/* The page, to be freed. */
static char *
page_text(void)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(report_page(f, &about, command, 3, rows, n_rows),
	    KVR_OK);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_uint_eq(strlen(text), size);
	return text;
}

/* The object of line n, to be put; 0 is about all. */
static struct json_object *
json_line(const char *text, size_t n)
{
	const char *at = strstr(text, "type=\"application/json\">");
	struct json_tokener *t = json_tokener_new();
	struct json_object *o;

	ck_assert_ptr_nonnull(at);
	for (n++; n > 0; n--)
		at = strchr(at, '\n') + 1;
	o = json_tokener_parse_ex(t, at, (int)(strchr(at, '\n') - at));
	ck_assert_msg(o != NULL, "%.200s", at);
	json_tokener_free(t);
	return o;
}

static struct json_object *
member_of(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	ck_assert_msg(json_object_object_get_ex(o, name, &v), "no %s", name);
	return v;
}

static double
number_at(struct json_object *list, size_t i)
{
	return json_object_get_double(json_object_array_get_idx(list, i));
}

/* Requests in all cells, and of them those on the diagonal. */
static int64_t
count_overlaps(struct json_object *charts, int64_t *diagonal)
{
	struct json_object *list = member_of(charts, "overlaps");
	size_t n = json_object_array_length(list), i;
	int64_t all = 0;

	for (*diagonal = 0, i = 0; i < n; i++) {
		struct json_object *cell = json_object_array_get_idx(list, i);
		int64_t count = (int64_t)number_at(cell, 2);

		ck_assert_int_gt(count, 0);
		all += count;
		if (number_at(cell, 0) == number_at(cell, 1))
			*diagonal += count;
	}
	return all;
}

static void
ck_charts(struct json_object *row, const struct simulate_row *of)
{
	struct json_object *charts = member_of(row, "charts");
	struct json_object *times = member_of(charts, "first_tokens");
	struct json_object *load = member_of(charts, "load");
	uint64_t finished = simulate_totals(of->simulation)->finished;
	size_t n = json_object_array_length(times), i;
	int64_t diagonal;

	ck_assert_str_eq(json_object_get_string(member_of(row, "policy")),
	    of->name);
	ck_assert_uint_eq(n, finished < 1000 ? finished : 1000);
	for (i = 1; i < n; i++)
		ck_assert(number_at(times, i) >= number_at(times, i - 1));
	ck_assert_uint_eq((uint64_t)count_overlaps(charts, &diagonal),
	    finished);
	ck_assert(json_object_get_double(member_of(charts, "exact")) *
	    (double)finished <= (double)diagonal + 0.5);
	for (i = 0; i < json_object_array_length(load); i++)
		ck_assert_uint_eq(json_object_array_length(
		    json_object_array_get_idx(load, i)), 96);
	ck_assert_uint_eq(json_object_array_length(member_of(charts,
	    "index_blocks")), 96);
}

START_TEST(has_all)
{
	struct json_object *o;
	char *text;
	size_t i;

	run_kinds(1200);
	text = page_text();
	o = json_line(text, 0);
	ck_assert_str_eq(json_object_get_string(member_of(o, "trace")),
	    "sample");
	ck_assert_uint_eq(json_object_array_length(member_of(o, "command")), 3);
	json_object_put(o);
	for (i = 0; i < n_rows; i++) {
		o = json_line(text, 1 + i);
		ck_charts(o, &rows[i]);
		ck_assert_uint_eq(json_object_array_length(member_of(
		    member_of(o, "charts"), "load")), 8);
		json_object_put(o);
	}
	ck_assert_uint_lt(strlen(text), 200000);
	free(text);
}
END_TEST

/* Many workers share rows; without samples there is nothing over time. */
START_TEST(many_workers)
{
	struct json_object *o, *charts, *load;
	char *text;

	add_row(1, 100, 100000, INT64_C(1000000000));
	add_row(1, 100, 100000, 0);
	run_trace(400);
	text = page_text();
	o = json_line(text, 1);
	ck_charts(o, &rows[0]);
	charts = member_of(o, "charts");
	ck_assert_int_eq(json_object_get_int(member_of(charts,
	    "workers_per_row")), 4);
	ck_assert_uint_eq(json_object_array_length(member_of(charts, "load")),
	    25);
	json_object_put(o);
	o = json_line(text, 2);
	load = member_of(member_of(o, "charts"), "load");
	ck_assert_uint_eq(json_object_array_length(
	    json_object_array_get_idx(load, 0)), 0);
	json_object_put(o);
	free(text);
}
END_TEST

/* The page fetches nothing, and no name is markup. */
START_TEST(alone_and_safe)
{
	static const char *const references[] = { "https:", "src=", "href",
		"url(", "@import", "<link", "<img", "<base", "innerHTML" };
	struct json_object *o;
	char *text;
	size_t i;

	add_row(0, 2, 100000, INT64_C(1000000000));
	run_trace(50);
	about.trace = "</script><!--<script>\"\\\n.jsonl";
	text = page_text();
	for (i = 0; i < sizeof(references) / sizeof(references[0]); i++)
		ck_hasnt(text, references[i]);
	ck_has(text, "Content-Security-Policy\" content=\"default-src 'none'");
	ck_assert_uint_eq(times_in(text, "<script"), 2);
	ck_assert_uint_eq(times_in(text, "</script"), 2);
	o = json_line(text, 0);
	ck_assert_str_eq(json_object_get_string(member_of(o, "trace")),
	    about.trace);
	ck_assert_str_eq(json_object_get_string(json_object_array_get_idx(
	    member_of(o, "command"), 2)), command[2]);
	json_object_put(o);
	free(text);
}
END_TEST

START_TEST(without_memory)
{
	unsigned long n;
	char *whole, *text = NULL;
	size_t size;
	FILE *f;
	int e = KVR_ENOMEM;

	for (n = 0; n < 3; n++)
		add_row(n, 2, 100000, INT64_C(1000000000));
	run_trace(50);
	whole = page_text();
	for (n = 1; e != KVR_OK; n++) {
		f = open_memstream(&text, &size);
		alloc_fail_at(n);
		e = report_page(f, &about, command, 3, rows, n_rows);
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

/* --------------------------------------------------------- the browser --- */

/* Has every fault that the script detects, and a console message. */
static const char faulty[] =
"<!DOCTYPE html><html><body style='margin:0'><div style='width:500px'>x</div>"
"<svg viewBox='0 0 100 50' width='100'><text x='5' y='20'>one</text>"
"<text x='8' y='20'>on it</text><text x='90' y='40'>far too long</text></svg>"
"<p>NaN</p><script>console.error('an intended fault')</script></body></html>";

static const struct frame {
	const char *name;
	long width;
} frames[] = { { "phone", 390 }, { "tablet", 800 }, { "desk", 1440 } };
enum { FRAMES = sizeof(frames) / sizeof(frames[0]) };

static void
write_look(void)
{
	char script[TEXT_MAX], look[2 * TEXT_MAX];
	FILE *f = fopen("tests/tools/page_look.js", "r");
	size_t i, n;

	ck_assert_ptr_nonnull(f);
	n = fread(script, 1, sizeof(script) - 1, f);
	script[n] = '\0';
	fclose(f);
	n = (size_t)snprintf(look, sizeof(look), "<!DOCTYPE html><html><body>"
	    "<pre id='said'></pre><iframe src='faulty.html' name='faulty' "
	    "width='360' height='800' frameborder='0'></iframe><iframe "
	    "src='none.html' name='none' width='390' height='800' "
	    "frameborder='0'></iframe>\n");
	for (i = 0; i < FRAMES; i++)
		n += (size_t)snprintf(look + n, sizeof(look) - n, "<iframe "
		    "src='page.html' name='%s' width='%ld' height='800' "
		    "frameborder='0'></iframe>\n", frames[i].name,
		    frames[i].width);
	snprintf(look + n, sizeof(look) - n, "<script>%s</script></body>"
	    "</html>", script);
	write_file("look.html", look);
}

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
	ck_assert_int_eq(said_number(said, frame, "wrong"), 0);
	ck_assert_msg(said_number(said, frame, "meeting") == 0, "%s: %.200s",
	    frame, strstr(said, "text on text: "));
	/* bars and times, sizes; 4 loads; overlaps of 3 that predict */
	ck_assert_int_eq(said_number(said, frame, "drawings"), 2 + 2 + 4 + 3);
	ck_assert_int_gt(said_number(said, frame, "faint"), 20);
	ck_assert_int_eq(said_number(said, frame, "again"), 0);
}

/* The table has the numbers of the simulation; the sentence its winner. */
static void
ck_numbers(const char *said)
{
	char want[64];
	size_t i;

	for (i = 0; i < n_rows; i++) {
		const struct simulate_totals *t =
		    simulate_totals(rows[i].simulation);

		snprintf(want, sizeof(want), "%s\t%.2f\t", rows[i].name,
		    100 * (double)t->hit_tokens / (double)t->tokens);
		ck_has(said, want);
	}
	ck_has(said, "was fastest: 90");
	ck_has(said, "500,000 tokens");
	ck_has(said, "kvroute-replay 'a b' '&lt;/script&gt;&lt;script&gt;'");
	ck_has(said, "&lt;conversation&gt; &amp; trace.jsonl");
	/* counters that are 0 everywhere are not shown */
	ck_hasnt(said, "cache resets");
	ck_hasnt(said, "between routers");
}

/* The page of a policy with workers too small for any prompt. */
static char *
page_of_none(void)
{
	char *text;

	add_row(0, 2, 512, INT64_C(1000000000));
	run_trace(50);
	ck_assert_uint_eq(simulate_totals(rows[0].simulation)->finished, 0);
	text = page_text();
	teardown();
	setup();
	return text;
}

START_TEST(drawn)
{
	char *text, *none, *said;
	size_t i;

	if (!is_there("chromium"))
		test_skip("no chromium (sh mk/deps.sh page)");
	none = page_of_none();
	run_kinds(400);
	about.trace = "<conversation> & trace.jsonl";
	text = page_text();
	write_file("page.html", text);
	write_file("none.html", none);
	write_file("faulty.html", faulty);
	free(text);
	free(none);
	write_look();
	said = browse();
	/* only from the faulty frame */
	ck_has(said, "an intended fault");
	ck_assert_uint_eq(times_in(said, "CONSOLE"), 1);
	ck_assert_int_gt(said_number(said, "faulty", "wide"), 360);
	ck_assert_int_eq(said_number(said, "faulty", "outside"), 1);
	ck_assert_int_eq(said_number(said, "faulty", "meeting"), 1);
	ck_assert_int_eq(said_number(said, "faulty", "wrong"), 1);
	ck_assert_int_eq(said_number(said, "none", "wrong"), 0);
	ck_has(said, "No request finished.");
	for (i = 0; i < FRAMES; i++)
		ck_frame(said, frames[i].name, frames[i].width);
	ck_numbers(said);
	free(said);
}
END_TEST

Suite *suite_report_page(void);

Suite *
suite_report_page(void)
{
	Suite *s = suite_create("report_page");
	TCase *t = tcase_create("report_page");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, has_all);
	tcase_add_test(t, many_workers);
	tcase_add_test(t, alone_and_safe);
	tcase_add_test(t, without_memory);
	tcase_add_test(t, drawn);
	suite_add_tcase(s, t);
	return s;
}
