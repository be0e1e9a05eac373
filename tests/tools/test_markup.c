/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_markup.c - escaping, number formats, and the primitives of charts
 * (tools/page/svg.h).
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "markup.h"
#include "svg.h"

#define GONE "\xef\xbf\xbd" /* U+FFFD */

static char *written;
static size_t written_size;
static FILE *f;

static void
begin(void)
{
	f = open_memstream(&written, &written_size);
	ck_assert_ptr_nonnull(f);
}

/* Checks everything written since begin(). */
static void
ck_written(const char *expected)
{
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_str_eq(written, expected);
	free(written);
	written = NULL;
}

/* ---------------------------------------------------------------- text --- */

static const struct {
	const char *from;
	const char *to;
} texts[] = {
	{ "", "" },
	{ "trace 1.jsonl", "trace 1.jsonl" },
	{ "<script>a&&b</script>",
	    "&lt;script&gt;a&amp;&amp;b&lt;/script&gt;" },
	{ "\"'><b x=", "&quot;&#39;&gt;&lt;b x=" },
	{ "]]>", "]]&gt;" },
	/* of two, three and four bytes */
	{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
	    "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
	/* tab and newline stay, other controls do not */
	{ "a\tb\nc\x01\x1b\x7f", "a\tb\nc" GONE GONE GONE },
	{ "\xc2\x85", GONE },
	/* invalid first bytes, truncated sequences */
	{ "\x80z\xffz\xc3", GONE "z" GONE "z" GONE },
	{ "\xe2\x82", GONE GONE },
	{ "\xe2\x82z", GONE GONE "z" },
	/* overlong encodings */
	{ "\xc0\xaf\xe0\x80\xbc", GONE GONE GONE GONE GONE },
	{ "\xf0\x80\x80\xbc", GONE GONE GONE GONE },
	/* a surrogate, noncharacters, beyond the last */
	{ "\xed\xa0\x80", GONE },
	{ "\xef\xbf\xbe\xef\xbf\xbf\xf0\x9f\xbf\xbf", GONE GONE GONE },
	{ "\xf4\x90\x80\x80", GONE },
	{ "\xf5\x80", GONE GONE },
	/* right-to-left override: shows exe.jpg reversed */
	{ "exe\xe2\x80\xaegpj", "exe" GONE "gpj" },
	{ "\xe2\x81\xa6x", GONE "x" }
};

START_TEST(text)
{
	begin();
	markup_text(f, texts[_i].from);
	ck_written(texts[_i].to);
}
END_TEST

START_TEST(printed_text)
{
	begin();
	markup_printf(f, "%s <%d", "&", 7);
	ck_written("&amp; &lt;7");
}
END_TEST

/* ------------------------------------------------------------- numbers --- */

#define B MARKUP_BLANK

START_TEST(short_numbers)
{
	ck_assert_str_eq(number_short(0).text, "0");
	ck_assert_str_eq(number_short(0.25).text, "0.25");
	ck_assert_str_eq(number_short(7).text, "7");
	ck_assert_str_eq(number_short(-12.5).text, "-12.5");
	ck_assert_str_eq(number_short(950).text, "950");
	ck_assert_str_eq(number_short(999.4).text, "999");
	ck_assert_str_eq(number_short(999.6).text, "1k");
	ck_assert_str_eq(number_short(1234).text, "1.23k");
	ck_assert_str_eq(number_short(20000).text, "20k");
	ck_assert_str_eq(number_short(999600).text, "1M");
	ck_assert_str_eq(number_short(1.5e6).text, "1.5M");
	ck_assert_str_eq(number_short(2e9).text, "2G");
}
END_TEST

START_TEST(times_and_shares)
{
	ck_assert_str_eq(number_seconds(0).text, "0" B "s");
	ck_assert_str_eq(number_seconds(0.00025).text, "250" B "us");
	ck_assert_str_eq(number_seconds(0.02).text, "20" B "ms");
	ck_assert_str_eq(number_seconds(0.9996).text, "1" B "s");
	ck_assert_str_eq(number_seconds(1.725).text, "1.73" B "s");
	ck_assert_str_eq(number_seconds(120).text, "120" B "s");
	ck_assert_str_eq(number_percent(0.1).text, "0.1" B "%");
	ck_assert_str_eq(number_percent(100).text, "100" B "%");
}
END_TEST

START_TEST(full_numbers)
{
	ck_assert_str_eq(number_full(0, 0).text, "0");
	ck_assert_str_eq(number_full(999, 0).text, "999");
	ck_assert_str_eq(number_full(1000, 0).text, "1,000");
	ck_assert_str_eq(number_full(144793823, 0).text, "144,793,823");
	ck_assert_str_eq(number_full(-123456.75, 2).text, "-123,456.75");
	ck_assert_str_eq(number_full(3553.12, 1).text, "3,553.1");
	ck_assert_str_eq(number_full(0.12345678, 99).text, "0.123457");
	/* none of them overflows */
	ck_assert_str_eq(number_full(-999999999999999.0, 6).text,
	    "-999,999,999,999,999.000000");
	ck_assert_str_eq(number_full(1e300, 6).text, "1e+300");
}
END_TEST

/* ---------------------------------------------------------------- axes --- */

static const struct svg_axis linear = { 10, 20, 100, 300, false,
	number_short };
static const struct svg_axis down = { 0, 1, 200, 0, false, number_short };
static const struct svg_axis decades = { 0.01, 100, 0, 400, true,
	number_short };

START_TEST(places)
{
	struct svg_axis none = { 5, 5, 40, 300, false, number_short };

	ck_assert_double_eq_tol(svg_place(&linear, 10), 100, 1e-9);
	ck_assert_double_eq_tol(svg_place(&linear, 12.5), 150, 1e-9);
	ck_assert_double_eq_tol(svg_place(&linear, 99), 300, 1e-9);
	ck_assert_double_eq_tol(svg_place(&linear, -99), 100, 1e-9);
	ck_assert_double_eq_tol(svg_place(&down, 0.25), 150, 1e-9);
	ck_assert_double_eq_tol(svg_place(&decades, 1), 200, 1e-9);
	ck_assert_double_eq_tol(svg_place(&decades, 0), 0, 1e-9);
	ck_assert_double_eq_tol(svg_place(&decades, -1), 0, 1e-9);
	ck_assert_double_eq_tol(svg_place(&none, 5), 40, 1e-9);
	/* NaN is placed at the beginning */
	ck_assert_double_eq_tol(svg_place(&linear, strtod("nan", NULL)), 100,
	    1e-9);
}
END_TEST

START_TEST(rounding_up)
{
	ck_assert_double_eq_tol(svg_round_up(1), 1, 1e-12);
	ck_assert_double_eq_tol(svg_round_up(1.1), 2, 1e-12);
	ck_assert_double_eq_tol(svg_round_up(3), 5, 1e-12);
	ck_assert_double_eq_tol(svg_round_up(0.7), 1, 1e-12);
	ck_assert_double_eq_tol(svg_round_up(600), 1000, 1e-9);
	ck_assert_double_eq_tol(svg_round_up(0), 1, 1e-12);
}
END_TEST

static void
ck_ticks(const struct svg_axis *a, size_t most, size_t n,
    const double *expected)
{
	double ticks[SVG_TICKS];
	size_t i;

	ck_assert_uint_eq(svg_ticks(a, most, ticks), n);
	for (i = 0; i < n; i++)
		ck_assert_double_eq_tol(ticks[i], expected[i],
		    1e-9 * expected[i]);
}

START_TEST(ticks_of_axes)
{
	static const double tens[] = { 0.01, 0.1, 1, 10, 100 };
	static const double fives[] = { 10, 15, 20 };
	static const double some[] = { 2, 5, 10, 20 };
	struct svg_axis to_thirty = { 0, 30, 0, 1, false, number_short };
	struct svg_axis part = { 1.5, 30, 0, 1, true, number_short };
	struct svg_axis wide = { 1e-9, 1e9, 0, 1, true, number_short };
	double ticks[SVG_TICKS];

	ck_ticks(&linear, 4, 3, fives);
	ck_ticks(&decades, 6, 5, tens);
	ck_ticks(&part, 6, 4, some);
	/* including both ends */
	ck_assert_uint_eq(svg_ticks(&to_thirty, 7, ticks), 7);
	ck_assert_double_eq_tol(ticks[6], 30, 1e-9);
	ck_assert_uint_le(svg_ticks(&wide, 6, ticks), 6);
	ck_assert_uint_ge(svg_ticks(&wide, 6, ticks), 3);
	/* no ticks */
	ck_assert_uint_eq(svg_ticks(&linear, 1, ticks), 0);
	ck_assert_uint_eq(svg_ticks(&linear, SVG_TICKS + 1, ticks), 0);
}
END_TEST

/* --------------------------------------------------------------- parts --- */

START_TEST(cells)
{
	static const uint8_t levels[] = { 1, 1, 0, 1, 8, 8 };

	begin();
	svg_cells(f, 10, 20, 30, 4, levels, 2, 3);
	ck_written("<g class=\"cells\" transform=\"translate(10.0 20.0) "
	    "scale(10.00000 2.00000)\">\n"
	    "<path class=\"l1\" d=\"M0 0h2v1h-2zM0 1h1v1h-1z\"/>\n"
	    "<path class=\"l8\" d=\"M1 1h2v1h-2z\"/>\n</g>\n");
	begin();
	svg_cells(f, 0, 0, 1, 1, levels, 0, 3);
	ck_written("");
}
END_TEST

START_TEST(curve)
{
	static const double x[] = { 10, 15, 20 }, y[] = { 0, 1, 0.5 };

	begin();
	svg_curve(f, "curve", &linear, &down, x, y, 3);
	svg_curve(f, "curve", &linear, &down, x, y, 0);
	ck_written("<path class=\"curve\" d=\"M100.0 200.0L200.0 0.0"
	    "L300.0 100.0\"/>\n");
}
END_TEST

START_TEST(drawing)
{
	begin();
	svg_begin(f, 3, 50, "a < b");
	markup_printf(f, "x & y");
	svg_described(f);
	svg_text(f, "end", 1, 2, "<%d>", 5);
	svg_end(f);
	ck_written("<svg viewBox=\"0 0 360 50\" role=\"img\" "
	    "aria-labelledby=\"t3 d3\">\n<title id=\"t3\">a &lt; b</title>\n"
	    "<desc id=\"d3\">x &amp; y</desc>\n"
	    "<text class=\"end\" x=\"1.0\" y=\"2.0\">&lt;5&gt;</text>\n"
	    "</svg>\n");
}
END_TEST

Suite *suite_markup(void);

Suite *
suite_markup(void)
{
	Suite *s = suite_create("markup");
	TCase *c = tcase_create("markup");

	tcase_add_loop_test(c, text, 0,
	    (int)(sizeof(texts) / sizeof(texts[0])));
	tcase_add_test(c, printed_text);
	tcase_add_test(c, short_numbers);
	tcase_add_test(c, times_and_shares);
	tcase_add_test(c, full_numbers);
	tcase_add_test(c, places);
	tcase_add_test(c, rounding_up);
	tcase_add_test(c, ticks_of_axes);
	tcase_add_test(c, cells);
	tcase_add_test(c, curve);
	tcase_add_test(c, drawing);
	suite_add_tcase(s, c);
	return s;
}
