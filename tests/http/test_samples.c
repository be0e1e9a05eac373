/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_samples.c - a text for Prometheus, in one piece and cut anywhere:
 * names, labels, escapes, numbers, broken and overlong lines.
 */
#include "test.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "samples.h"

enum { SAID_MAX = 4096 };

static char said[SAID_MAX];
static size_t n_said;

static bool
on_name(void *context, const char *name, size_t n, bool labels)
{
	(void)context;
	n_said += (size_t)snprintf(said + n_said, SAID_MAX - n_said, "%.*s%s ",
	    (int)n, name, labels ? "{" : "");
	return !samples_is(name, n, "unwanted");
}

static void
on_label(void *context, const char *name, size_t n_name, const char *value,
    size_t n)
{
	(void)context;
	n_said += (size_t)snprintf(said + n_said, SAID_MAX - n_said,
	    "%.*s=%.*s/%zu ", (int)n_name, name, (int)(n < SAMPLES_VALUE_MAX ?
	    n : SAMPLES_VALUE_MAX), value, n);
}

static void
on_number(void *context, const char *text, size_t n)
{
	(void)context;
	n_said += (size_t)snprintf(said + n_said, SAID_MAX - n_said,
	    "#%.*s\n", (int)n, text);
}

static void
ck_text(const char *text, const char *want, size_t most)
{
	static const struct samples_calls calls = { on_name, on_label,
	    on_number };
	const size_t n = strlen(text);
	struct samples s;
	size_t step, at, length;

	for (step = 1; step <= n; step++) {
		n_said = 0;
		said[0] = '\0';
		samples_begin(&s, &calls, NULL, most);
		for (at = 0; at < n; at += length) {
			length = n - at < step ? n - at : step;
			samples_data(&s, text + at, length);
		}
		ck_assert_str_eq(said, want);
	}
}

START_TEST(lines)
{
	static const char *const texts[][2] = {
		{ "a 1\n", "a #1\n" },
		{ "a{} 1\n", "a{ #1\n" },
		{ "a{,x=\"1\"} 1\n", "a{ x=1/1 #1\n" },
		{ " \n\n# HELP a x\na\t 1.5e3 1764236000\r\n",
		    "a #1.5e3 1764236000\r\n" },
		{ "a:b_c{x=\"1\", y = \"z\" ,} +Inf\n",
		    "a:b_c{ x=1/1 y=z/1 #+Inf\n" },
		{ "a {x=\"\"}2\nb 3\n", "a{ x=/0 #2\nb #3\n" },
		{ "a{x=\"\\\"\\\\\\n}\"} 4\n", "a{ x=\"\\\n}/4 #4\n" },
		{ "a { x = \"1\" ,\ty\t=\"\\\"},{\", } 1 1764236000\n",
		    "a{ x=1/1 y=\"},{/4 #1 1764236000\n" },
		{ "unwanted{x=\"1\"} 1\nunwanted 2\na 1\n",
		    "unwanted{ unwanted a #1\n" },
		{ "a 1", "a " }, { "a{x=\"1\"} 1", "a{ x=1/1 " }
	};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_text(texts[i][0], texts[i][1], SIZE_MAX);
}
END_TEST

/* The line that follows counts. */
START_TEST(broken_lines)
{
	static const char *const texts[][2] = {
		{ "", "" }, { "}{\"", "}{ " }, { "a", "" }, { "a ", "" },
		{ "a{", "a{ " },
		{ "a{}", "a{ " }, { "a{x", "a{ " }, { "a{x} 1", "a{ " },
		{ "a{x=1} 1", "a{ " }, { "a{x=\"1} 1", "a{ " },
		{ "a{x=\"\\", "a{ " }, { "a{x=\"1\" 1", "a{ x=1/1 " },
		{ "a{x=\"1\"y=\"2\"} 1", "a{ x=1/1 " }
	};
	char text[128], want[128];
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		(void)snprintf(text, sizeof(text), "%s\nb 7\n", texts[i][0]);
		(void)snprintf(want, sizeof(want), "%sb #7\n", texts[i][1]);
		ck_text(text, want, SIZE_MAX);
	}
}
END_TEST

static void
ck_long(const char *format, char c, size_t n, const char *want)
{
	char word[256], text[1024], all[1024];

	memset(word, c, n);
	word[n] = '\0';
	(void)snprintf(text, sizeof(text), format, word);
	(void)snprintf(all, sizeof(all), want, word, n);
	ck_text(text, all, SIZE_MAX);
}

START_TEST(what_is_long)
{
	ck_long("%s 1\n", 'n', SAMPLES_NAME_MAX, "%s #1\n");
	ck_long("%s 1\n", 'n', SAMPLES_NAME_MAX + 1, "");
	ck_long("a{%s=\"1\"} 1\n", 'n', SAMPLES_NAME_MAX, "a{ %s=1/1 #1\n");
	ck_long("a{%s=\"1\"} 1\n", 'n', SAMPLES_NAME_MAX + 1, "a{ #1\n");
	ck_long("a{x=\"%s\"} 1\n", 'v', SAMPLES_VALUE_MAX,
	    "a{ x=%s/%zu #1\n");
	ck_long("a{x=\"%s\"} 1\n", 'v', SAMPLES_VALUE_MAX + 9,
	    "a{ x=%.128s/%zu #1\n");
	ck_long("a %s\n", '7', SAMPLES_VALUE_MAX + 9, "a #%.128s\n");
	ck_text("ab 1\nabc 1\nab 2\n", "ab #1\nabc ab #2\n", 5);
}
END_TEST

Suite *suite_samples(void);

Suite *
suite_samples(void)
{
	Suite *s = suite_create("samples");
	TCase *c = tcase_create("samples");

	tcase_add_test(c, lines);
	tcase_add_test(c, broken_lines);
	tcase_add_test(c, what_is_long);
	suite_add_tcase(s, c);
	return s;
}
