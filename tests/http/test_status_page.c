/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_status_page.c - the status page in a browser, with a status as it is
 * written, one with odd values, and a missing one. page_look.js has the
 * statuses and writes down the page's text.
 */
#include "test.h"

#include "browser.h"
#include "fleet.h"

enum { PAGE_MOST = 1 << 18 };

static char page[PAGE_MOST], script[PAGE_MOST], looks[2 * PAGE_MOST];

static void
read_file(const char *path, char *to)
{
	FILE *f = fopen(path, "r");
	size_t n;

	ck_assert_msg(f != NULL, "%s", path);
	n = fread(to, 1, PAGE_MOST - 1, f);
	to[n] = '\0';
	ck_assert_int_eq(fclose(f), 0);
}

/* Writes the page, without a server. */
static void
page_write(void)
{
	char *at;

	read_file("ext/http/status/page.html", page);
	at = strstr(page, "<script>");
	ck_assert_ptr_nonnull(at);
	*at = '\0';
	snprintf(looks, sizeof(looks), "%s<script>parent.prepare(window)"
	    "</script><script>%s", page, at + strlen("<script>"));
	write_file("page.html", looks);
}

static const struct {
	const char *name;
	int width;
} frames[] = { { "phone", 390 }, { "tablet", 800 }, { "desk", 1440 },
	{ "restarted", 390 },
	{ "nobody", 390 }, { "bare", 390 }, { "zero", 390 }, { "huge", 320 },
	{ "nulls", 390 }, { "hostile", 390 }, { "again", 1170 },
	{ "broken", 390 } };
enum { FRAMES = sizeof(frames) / sizeof(frames[0]) };

/* Writes a status of the fleet, and frames that show it and the page's text. */
static void
look_write(void)
{
	size_t i, n;

	fleet_journal();
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	status_json(&fleet_status, &sink.writer);
	ck_assert(!sink.writer.failed);
	read_file("tests/http/page_look.js", script);
	n = (size_t)snprintf(looks, sizeof(looks), "<!DOCTYPE html>\n<html>"
	    "<meta charset='utf-8'><body><pre id='said'></pre>"
	    "<script>const status = String.raw`%s`;\n%s</script>\n",
	    sink.text, script);
	for (i = 0; i < FRAMES; i++)
		n += (size_t)snprintf(looks + n, sizeof(looks) - n, "<iframe "
		    "src='page.html' name='%s' width='%d' height='800' "
		    "frameborder='0'></iframe>\n", frames[i].name,
		    frames[i].width);
	ck_assert_uint_lt(n, sizeof(looks));
	write_file("look.html", looks);
}

static char *said;

static void
look(void)
{
	if (!is_there("chromium"))
		test_skip("no chromium (sh mk/deps.sh page)");
	page_write();
	look_write();
	said = browse();
}

/* Returns the number behind it, up to the end of the line. */
static long
said_of(const char *frame, const char *what)
{
	char name[64];
	const char *at;

	snprintf(name, sizeof(name), "%s-%s=", frame, what);
	at = strstr(said, name);
	ck_assert_msg(at != NULL, "no %s", name);
	return strtol(at + strlen(name), NULL, 10);
}

static void
ck_frame(const char *frame, long width, long upstreams)
{
	ck_assert_msg(said_of(frame, "wide") <= width, "%s: too wide", frame);
	ck_assert_msg(said_of(frame, "outside") == 0, "%s: outside", frame);
	ck_assert_msg(said_of(frame, "wrong") == 0, "%s: NaN or so", frame);
	ck_assert_int_eq(said_of(frame, "images"), 0);
	ck_assert_int_eq(said_of(frame, "elsewhere"), 0);
	ck_assert_msg(said_of(frame, "upstreams") == upstreams,
	    "%s: %ld upstreams", frame, said_of(frame, "upstreams"));
}

static const char *const lines[] = {
	/* hits, beside each other */
	"|tile|predicted hits|77 %|of all prompt tokens; best: 90 %",
	"|tile|reported hits|70 %|of their prompt tokens; predicted: 50 %",
	"|curve|best|1", "|curve|predicted|1", "|curve|reported|1",
	/* times and sessions */
	"|tile|first token|250 ms|p90 1.5 s, p99 12 s",
	"|Times|to the first token|250 ms|1.5 s|12 s|4",
	"|Times|for each further token|\xe2\x80\x93|\xe2\x80\x93|"
	    "\xe2\x80\x93|0",
	"|Times|of it in kvroute|250 \xc2\xb5s|300 \xc2\xb5s|0.4 \xc2\xb5s|4",
	"|Sessions|turns that stayed at their worker|80 %",
	"|Sessions|went elsewhere: load, a longer prefix, a failure|10",
	"|Sessions|left a worker that was gray or warming up|5",
	"|Sessions|their worker was gone|5",
	"|Sessions|sessions on record|12.3 k",
	/* rates and evictions are those between polls */
	"|tile|requests|5.0 /s|0 running",
	"|hint|The region is too small: prefixes are evicted.",
	/* workers, by state and health */
	"|Workers|draining|draining{draining}|0|",
	"|Workers|up|up, slow{gray}|0|3+4|2|0.0 s|90 %|77 %|70 %|4|",
	"|Workers|192.168.100.100:30000@15|up, overloaded, warming{warming}|0|"
	    "\xe2\x80\x93|\xe2\x80\x93|12.3 s|90 %|77 %|70 %|0|140.1 k*|"
	    "feedback|0",
	"|hint|Gray, and left alone but for probes: up.",
	/* tenants, reasons, kvroute-sync */
	"|Tenants|0123456789abcdef|2{soft}|10 %|4",
	"|Tenants|all others|1{soft}|0 %|0",
	"|Requests by reason|cost|95, 79 %",
	"|Requests by reason|probe fallback|25, 21 %",
	"|Index and failures|kvroute-sync: seconds since its latest beat|4",
	"|hint|kvroute-sync is silent: what other machines send is not known.",
	"|Index and failures|kvroute-sync: seconds since its latest beat|none"
};

static void
ck_lines(const char *frame)
{
	char line[512];
	size_t i;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(line, sizeof(line), "%s%s", frame, lines[i]);
		ck_has(said, line);
	}
}

/* Numbers that no double has, none at all, names that are no names. */
static void
ck_odd(void)
{
	ck_has(said, "nobody|No upstream uses the directive kvroute.");
	ck_has(said, "bare|tile|predicted hits|\xe2\x80\x93|");
	ck_has(said, "zero|Workers|draining|");
	ck_has(said, "zero|Sessions|turns that stayed at their worker|"
	    "\xe2\x80\x93");
	ck_has(said, "huge|tile|index|0 %|of 18.4 EB, 18.4 E blocks");
	ck_has(said, "nulls|Workers|up|up{up}|0|0.0 s|");
	/* a name is text, and an unknown state has no colour */
	ck_has(said, "hostile|Workers|&lt;img src=x onerror=\"console.error"
	    "('ran')\"&gt;|&lt;b&gt; x, &lt;b&gt; x|0|");
}

START_TEST(browsed)
{
	size_t i;

	look();
	for (i = 0; i < FRAMES; i++)
		if (strcmp(frames[i].name, "broken") != 0)
			ck_frame(frames[i].name, frames[i].width,
			    strcmp(frames[i].name, "nobody") == 0 ? 0 :
			    strcmp(frames[i].name, "bare") == 0 ? 2 : FLEET);
	ck_lines("phone");
	ck_lines("desk");
	ck_odd();
	/* Counters that fell have begun anew: 100 of 1000 and then of 100. */
	ck_has(said, "restarted|curve|best|1");
	/* An error is shown, and the next answer is as well. */
	ck_has(said, "again|Workers|up|up, slow{gray}|");
	ck_assert_uint_eq(times_in(said, "state=no response ("), 1);
	ck_has(said, "broken-state=no response (Cannot read properties");
	ck_hasnt(said, "CONSOLE");
	/* and errors are seen */
	ck_assert_int_eq(said_of("spoilt", "outside"), 1);
	ck_assert_int_eq(said_of("spoilt", "wrong"), 1);
	free(said);
}
END_TEST

static void
setup(void)
{
	fleet_setup();
	folder_setup();
}

static void
teardown(void)
{
	folder_teardown();
	fleet_teardown();
}

Suite *suite_status_page(void);

Suite *
suite_status_page(void)
{
	Suite *s = suite_create("status_page");
	TCase *t = tcase_create("browser");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, browsed);
	suite_add_tcase(s, t);
	return s;
}
