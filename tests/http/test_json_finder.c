/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_json_finder.c - values by their paths, and the raw reader beneath: in
 * one piece and cut anywhere; strings that are cut, long numbers, deep
 * nesting, broken texts. The raw reader accepts the texts that the decoding
 * one accepts.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "json_finder.h"
#include "rng.h"

enum { TEXT_MAX = 2048, SAID_MAX = 4 * TEXT_MAX };

/* ---------------------------------------------------------------- found --- */

enum place { A = FOUND_TOP + 1, B, LIST, ITEM, LEAF };

static const struct finder_row rows[] = {
	{ FOUND_TOP, "a", A, 1 },
	{ FOUND_TOP, "list", LIST, 2 },
	{ FOUND_TOP, NULL, ITEM, 3 },
	{ A, "b", B, 4 },
	{ B, "c", LEAF, 5 },
	{ A, "c", LEAF, 6 },
	{ LIST, NULL, ITEM, 7 },
	{ ITEM, "c", LEAF, 8 },
	{ ITEM, NULL, LEAF, 9 }
};

/* One line for each value: kind, place, row, text. */
static char said[SAID_MAX];
static size_t n_said;
static unsigned refuse; /* this row */
static unsigned hide;   /* the contents of this one */

static bool
say_value(void *context, struct found *v)
{
	static const char kinds[] = "0b#\"{[.";

	ck_assert_ptr_eq(context, said);
	n_said += (size_t)snprintf(said + n_said, SAID_MAX - n_said,
	    "%c%u.%u%.*s%s ", kinds[v->kind], v->place,
	    v->kind == FOUND_END ? 0 : v->which, (int)v->n,
	    v->text == NULL ? "" : v->text, v->cut ? "~" : "");
	ck_assert_uint_lt(n_said, SAID_MAX);
	if (v->kind != FOUND_END && v->which == hide)
		v->place = FOUND_NOWHERE;
	return v->kind == FOUND_END || v->which != refuse;
}

static const struct finder_table table = {
	rows, sizeof(rows) / sizeof(rows[0]), say_value
};

static bool
find(const char *text, size_t n, size_t step)
{
	static struct finder f;
	size_t at, length;

	n_said = 0;
	said[0] = '\0';
	finder_begin(&f, &table, said);
	for (at = 0; at < n; at += length) {
		length = n - at < step ? n - at : step;
		finder_data(&f, text + at, length);
	}
	if (n_said > 0)
		said[n_said - 1] = '\0';
	ck_assert(finder_lives(&f) || !finder_end(&f));
	return finder_end(&f);
}

struct text {
	const char *text, *want; /* NULL: it is broken */
};

static void
ck_text(const struct text *t)
{
	const size_t n = strlen(t->text);
	size_t step;

	for (step = 1; step <= n + 1; step++) {
		ck_assert_msg(find(t->text, n, step) == (t->want != NULL),
		    "%s by %zu", t->text, step);
		if (t->want != NULL)
			ck_assert_str_eq(said, t->want);
	}
}

START_TEST(values_in_their_places)
{
	static const struct text texts[] = {
		{ "7 ", "#1.07" }, { " \"x\" ", "\"1.0x" }, { "null", "01.0" },
		{ "{}", "{1.0 .1.0" }, { "[]", "[1.0 .1.0" },
		{ "{\"a\":1}", "{1.0 #2.11 .1.0" },
		{ "{\"b\":1,\"c\":{\"a\":2}}", "{1.0 .1.0" },
		{ "{\"a\":{\"b\":{\"c\":-1.5e+7}},\"a\":true}",
		    "{1.0 {2.1 {3.4 #6.5-1.5e+7 .3.0 .2.0 b2.1 .1.0" },
		{ "{\"a\":{\"x\":{\"c\":1},\"c\":\"y\"}}",
		    "{1.0 {2.1 \"6.6y .2.0 .1.0" },
		{ "{\"list\":[1,null,{\"c\":false},[\"z\"],2]}",
		    "{1.0 [4.2 #5.71 05.7 {5.7 b6.8 .5.0 [5.7 \"6.9z .5.0 "
		    "#5.72 .4.0 .1.0" },
		{ "{\"list\":{\"c\":1,\"a\":2}}", "{1.0 {4.2 .4.0 .1.0" },
		{ "[[[1]],{\"a\":2}]",
		    "[1.0 [5.3 [6.9 .6.0 .5.0 {5.3 .5.0 .1.0" },
		{ "{\"a\":[1,{\"b\":2}]}", "{1.0 [2.1 .2.0 .1.0" }
	};
	size_t i;

	refuse = hide = 99;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_text(&texts[i]);
}
END_TEST

/* A string is read up to an escape; a key with one is not in the table. */
START_TEST(strings_that_are_cut)
{
	static const struct text texts[] = {
		{ "\"ab\\n\\\"c\\\\\"", "\"1.0ab~" },
		{ "\"\\u0061\"", "\"1.0~" },
		{ "\"\\x\\\"", NULL },
		{ "{\"\\u0061\":1,\"a\\n\":2,\"\\\\\":3,\"a\":4}",
		    "{1.0 #2.14 .1.0" },
		{ "{\"a\":\"\\\\\",\"a\":\"\\\\\\\"\",\"a\":\"b\"}",
		    "{1.0 \"2.1~ \"2.1~ \"2.1b .1.0" },
		{ "{\"a\":\"\xff\xc3\"}", "{1.0 \"2.1\xff\xc3 .1.0" }
	};
	char text[FINDER_KEPT + 8], want[FINDER_KEPT + 8];
	size_t i, n;

	refuse = hide = 99;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_text(&texts[i]);
	for (n = FINDER_KEPT - 1; n <= FINDER_KEPT + 1; n++) {
		memset(text + 1, 'x', n);
		text[0] = text[n + 1] = '"';
		text[n + 2] = '\0';
		(void)snprintf(want, sizeof(want), "\"1.0%.*s%s",
		    (int)(n < FINDER_KEPT ? n : FINDER_KEPT), text + 1,
		    n > FINDER_KEPT ? "~" : "");
		ck_text(&(struct text){ text, want });
	}
}
END_TEST

START_TEST(bounds)
{
	char text[2 * JSON_DEPTH + 8], want[sizeof(text) + 8];
	size_t n;

	refuse = hide = 99;
	for (n = JSON_NUMBER_MOST; n <= JSON_NUMBER_MOST + 1; n++) {
		memset(text, '7', n);
		text[n] = '\0';
		(void)snprintf(want, sizeof(want), "#1.0%s", text);
		text[n] = ' ';
		text[n + 1] = '\0';
		ck_text(&(struct text){ text, n > JSON_NUMBER_MOST ? NULL :
		    want });
	}
	for (n = FINDER_DEPTH - 1; n <= JSON_DEPTH + 1; n++) {
		memset(text, '[', n);
		memset(text + n, ']', n);
		ck_assert(find(text, 2 * n, 7) == (n <= FINDER_DEPTH));
	}
}
END_TEST

START_TEST(broken_texts)
{
	static const char *const texts[] = { "", " ", "{", "[", "\"", "\"\\",
		"{}x", "{}{}", "[] 1", "[1,]", "[,1]", "{,}", "{\"a\"}",
		"{\"a\":}", "{\"a\":1,}", "{1:2}", "{\"a\":1 \"b\":2}",
		"[1 2]", "[}", "{]", "]", "tru", "nul ", "truE ", "-", "01",
		"1.", "1.e1", "1e", "+1", "[\"a\" \"b\"]", ":",
		"{\"a\"::1}", "NaN ", "'a'" };
	size_t i;

	refuse = hide = 99;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		ck_text(&(struct text){ texts[i], NULL });
}
END_TEST

START_TEST(the_taker_decides)
{
	const char *text = "{\"a\":{\"c\":1},\"list\":[{\"c\":2}]}";

	refuse = 2;
	hide = 99;
	ck_assert(!find(text, strlen(text), 1));
	ck_assert_str_eq(said, "{1.0 {2.1 #6.61 .2.0 [4.2");
	refuse = 99;
	hide = 1;
	ck_assert(find(text, strlen(text), 1));
	ck_assert_str_eq(said, "{1.0 {2.1 [4.2 {5.7 #6.82 .5.0 .4.0 .1.0");
}
END_TEST

/* -------------------------------------------------- raw and not, random --- */

struct heard {
	struct json_reader reader;
	char text[SAID_MAX];
	size_t n;
};

/* Notes only those bytes of strings that both readers give. */
static bool
hear(struct heard *h, char kind, const void *bytes, size_t n)
{
	h->text[h->n++] = kind;
	if (n > 0)
		memcpy(h->text + h->n, bytes, n);
	h->n += n;
	ck_assert_uint_lt(h->n, SAID_MAX - TEXT_MAX);
	return true;
}

static bool
on_key(void *h, const unsigned char *name, size_t n)
{
	(void)name;
	(void)n;
	return hear(h, 'k', NULL, 0);
}

static bool
on_value(void *h, enum json_kind kind, const void *text, size_t n)
{
	const bool number = kind == JSON_NUMBER;

	return hear(h, kind == JSON_BOOLEAN ? "ft"[n] : "0?#\"{["[kind],
	    number ? text : NULL, number ? n : 0);
}

static bool
on_end(void *h, uint64_t at)
{
	return hear(h, '.', &at, sizeof(at));
}

static const struct json_calls calls = {
	.key = on_key, .value = on_value, .end = on_end
};

static bool
read_by(struct heard *h, const char *text, size_t n, size_t step)
{
	size_t at, length;

	h->n = 0;
	for (at = 0; at < n; at += length) {
		length = n - at < step ? n - at : step;
		json_reader_data(&h->reader, text + at, length);
	}
	return json_reader_whole(&h->reader);
}

static size_t
make_text(char *text, struct rng *rng)
{
	static const char *const pieces[] = { "{", "}", "[", "]", ",", ":",
		" ", "\"a\":", "\"a\\n\":{", "\"b\":[", "\"x\"", "\"\\\\\"",
		"\"\\\"\\u00e4\"", "\"\303\244\"", "1", "-2.5e-3", "0", "true",
		"false", "null", "1,2,", "{},", "]}", "}]", "{\"a\":1}",
		"\"", "\\", "x" };
	const size_t parts = (size_t)rng_between(rng, 1, 30);
	size_t i, n = 0, length;

	for (i = 0; i < parts; i++) {
		const char *p = pieces[rng_between(rng, 0, sizeof(pieces) /
		    sizeof(pieces[0]) - (i % 8 == 0 ? 1 : 4))];

		length = strlen(p);
		memcpy(text + n, p, length);
		n += length;
	}
	return n;
}

START_TEST(raw_and_decoded)
{
	static struct heard raw, decoded;
	struct rng rng = { test_seed() };
	unsigned char kept[JSON_NUMBER_MOST];
	size_t rounds = test_amount(200000), n, taken = 0;
	char text[TEXT_MAX];
	bool whole;

	while (rounds-- > 0) {
		n = make_text(text, &rng);
		json_reader_begin(&decoded.reader, &calls, &decoded);
		json_reader_begin_raw(&raw.reader, &calls, &raw, kept,
		    sizeof(kept));
		whole = read_by(&decoded, text, n, n);
		taken += whole;
		ck_assert_msg(read_by(&raw, text, n, (size_t)rng_between(&rng,
		    1, n)) || !whole, "%.*s", (int)n, text);
		if (whole) {
			ck_assert_uint_eq(raw.n, decoded.n);
			ck_assert_mem_eq(raw.text, decoded.text, raw.n);
		}
	}
	ck_assert_uint_gt(taken, 0);
	hold_free(&decoded.reader.text);
}
END_TEST

Suite *suite_json_finder(void);

Suite *
suite_json_finder(void)
{
	Suite *s = suite_create("json_finder");
	TCase *c = tcase_create("json_finder");

	tcase_add_test(c, values_in_their_places);
	tcase_add_test(c, strings_that_are_cut);
	tcase_add_test(c, bounds);
	tcase_add_test(c, broken_texts);
	tcase_add_test(c, the_taker_decides);
	tcase_add_test(c, raw_and_decoded);
	suite_add_tcase(s, c);
	return s;
}
