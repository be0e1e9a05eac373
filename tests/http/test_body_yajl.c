/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_body_yajl.c - bodies read by json_reader.c and by YAJL: the same prompt,
 * facts and outcome to the byte. Characters and escapes at each place of a
 * block of 64 bytes; random bodies, whole, cut, broken, in any pieces. And the
 * ways to read a string, which depend on the compiler, agree.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rng.h"
#include "ways.h"

#include "body_bed.h"

enum { TEXT_MAX = 4096 };

static uint64_t seed; /* of random tests */

START_TEST(ways)
{
#ifdef __x86_64__
	ck_assert_str_eq(body_reader(), "SSE2");
#endif
	ck_assert_str_eq(portable_way(), "C");
}
END_TEST

static void
compare(enum endpoint endpoint, const char *text, size_t n,
    const struct pieces *pieces)
{
	struct pieces late = *pieces;
	struct taken ours, yajls, later;

	late.later = true;
	bodies_take(b, k, p, endpoint, text, n, &late, &later);
	bodies_take(b, k, p, endpoint, text, n, pieces, &ours);
	ck_assert_msg(bodies_later(&later, &ours), "seed %llu: another prompt "
	    "later of %.*s", (unsigned long long)seed, (int)(n < 999 ? n : 999),
	    text);
	bodies_take_yajl(b, k, p, endpoint, text, n, pieces->more, &yajls);
	ck_assert_msg(bodies_equal(&ours, &yajls), "seed %llu: another prompt "
	    "of %.*s", (unsigned long long)seed, (int)(n < 999 ? n : 999),
	    text);
}

/* The parts of strings, valid and invalid. */
static const char *const units[] = {
	"a", "plain text ", "\\n", "\\\\", "\\\"", "\\/", "\\b\\f\\r\\t",
	"\\u00e4", "\\u0041", "\\uABCD", "\\uabcd", "\\ud83d\\ude00",
	"\\ud83d", "\\ud83dx", "\\ud83d\\n", "\\ud83d\\u0041", "\\ude00",
	"\\u0000", "\303\244", "\342\202\254", "\360\237\230\200",
	"\\\\\\\\\\\"", "\\u4f60\\u597d\\u4f60\\u597d\\u4f60\\u597d\\u4f60"
	"\\u597d\\u4f60\\u597d\\u4f60\\u597d", "\\u00e4b\\u0416\\ud800\\u07ff"
	"\\u0800\\ud83d\\ude00\\u007f\\u0080", "\177", "\300\200",
	"\355\240\200",
	/* not in a string, or not alone */
	"\\x", "\\u12g4", "\\u123", "\n", "\001", "\200", "\377", "\303",
	"\303a", "\303\\u0041", "\360\\u0041", "\360\\n", "\342\202",
	"\342a\254", "\360\237\230", "\370\200\200\200\200", "\"", "\\"
};
enum { UNITS = sizeof(units) / sizeof(*units) };

static const char head[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"";
static const char tail[] = "\"}],\"model\":\"m\",\"tools\":[{\"x\":[1,-2.5e+3,"
    "true,null]}],\"stream\":true}\n";

/* Each of them after so many bytes, and once more. */
START_TEST(units_in_place)
{
	char text[TEXT_MAX];
	struct pieces pieces = { 0 };
	size_t i, before;
	int n;

	for (i = 0; i < UNITS; i++)
		for (before = 0; before < 140; before++) {
			n = snprintf(text, sizeof(text), "%s%.*s%s%.*s%s%s",
			    head, (int)before, "0123456789 123456789 123456789"
			    " 123456789 123456789 123456789 123456789 12345678"
			    "9 123456789 123456789 123456789 123456789 1234567"
			    "89 123456789", units[i], (int)(before % 70),
			    "the rest of a line of text that is long enough for"
			    " any block of it to be whole", units[i], tail);
			ck_assert(ways_agree((unsigned char *)text +
			    strlen(head), (size_t)n - strlen(head)));
			pieces.first = _i == 0 ? 0 : strlen(head) + before +
			    (size_t)_i - 1;
			compare(ENDPOINT_CHAT, text, (size_t)n, &pieces);
		}
}
END_TEST

/* ----------------------------------------------------------------- cuts --- */

/* This has each kind of token, so that a cut meets every state. */
static const char cut_body[] = "{\"model\":\"m\\n\\u00e4\",\"messages\":"
    "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"it's "
    "\\ud83d\\ude00 \303\244\342\202\254\360\237\230\200 \\\\\\\"\\ud83dx\"}]},"
    "{\"role\":\"assistant\",\"content\":null}],\"x\":[true,false,null,-1.5e+7"
    ",0,\"\"],\"tools\":[{\"n\":{\"a\":[1,{}]}}], \"stream\" : true}";
static const char pair_body[] = "{\"messages\":[{\"content\":\"a\\ud83d\\ude00"
    "\303\244\\\\\"}],\"x\":1.5}";
static const char id_body[] = "{\"conversation\":{\"a\":{\"id\":\"no\"},"
    "\"id\":\"c\\u00f6\"},\"metadata\":{\"user_id\":\"u\",\"x\":1},"
    "\"input\":\"q\",\"previous_response_id\":\"r_1\",\"store\":false,"
    "\"prompt_cache_key\":\"k\",\"user\":\"me\",\"session_id\":\"s\"}";
static const char token_body[] = "{\"prompt\":[[1, 22,333 ,4444, 55555, "
    "666666, 7777777, 88888888, 0, 00, 10]], \"n\":1}";
static const char bare_body[] = "{\"prompt\":[128000,9906,1917,11,420,0,22,1],"
    "\"n\":1}";

/* At each place, in two and as one cut short there. */
START_TEST(every_cut)
{
	static const struct {
		const char *text;
		enum endpoint endpoint;
	} cases[] = { { cut_body, ENDPOINT_CHAT }, { cut_body,
	    ENDPOINT_MESSAGES }, { id_body, ENDPOINT_RESPONSES },
	    { token_body, ENDPOINT_COMPLETIONS },
	    { bare_body, ENDPOINT_COMPLETIONS } };
	struct pieces pieces = { 0 };
	size_t i, n;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		n = strlen(cases[i].text);
		for (pieces.first = 1; pieces.first < n; pieces.first++) {
			compare(cases[i].endpoint, cases[i].text, n, &pieces);
			compare(cases[i].endpoint, cases[i].text,
			    pieces.first, &pieces);
		}
	}
}
END_TEST

START_TEST(every_pair_of_cuts)
{
	const size_t n = strlen(pair_body);
	struct pieces pieces = { 0 };

	for (pieces.first = 1; pieces.first < n; pieces.first++)
		for (pieces.step = 1; pieces.step < n; pieces.step++)
			compare(ENDPOINT_CHAT, pair_body, n, &pieces);
}
END_TEST

/* --------------------------------------------------------------- random --- */

static size_t
add(char *text, size_t at, const char *what)
{
	size_t n = strlen(what);

	if (at + n > TEXT_MAX)
		return at;
	memcpy(text + at, what, n);
	return at + n;
}

static size_t
add_string(char *text, size_t at, struct rng *rng, bool good)
{
	size_t i, n = (size_t)rng_between(rng, 0, 20), which;

	at = add(text, at, "\"");
	for (i = 0; i < n; i++) {
		which = (size_t)rng_between(rng, 0, good ? 26 : UNITS - 1);
		at = add(text, at, units[which]);
	}
	return add(text, at, "\"");
}

static size_t
add_body(char *text, struct rng *rng)
{
	static const char *const members[] = { "\"messages\":[{\"role\":",
		"\"messages\":[{\"content\":[{\"text\":", "\"system\":",
		"\"input\":", "\"prompt\":[", "\"prompt\":", "\"model\":",
		"\"cache_salt\":", "\"tools\":[{\"name\":", "\"stream\":",
		"\"instructions\":", "\"x\":", "\"user\":",
		"\"prompt_cache_key\":", "\"conversation\":",
		"\"conversation\":{\"id\":", "\"previous_response_id\":",
		"\"metadata\":{\"user_id\":", "\"store\":",
		("\"messages\":[{\"tool_calls\":"
		"[{\"function\":{\"arguments\":"), "\"content\":", "{", "[" };
	static const char *const values[] = { "1", "-0.5e+12", "0", "01",
		"true", "false", "null", "{}", "[]", "[[1,2],[3]]", "-",
		"nul", "1.", "2e", "tru", "12345678901234567890" };
	static const char *const ends[] = { ",", "}", "]", "}]", "}],", "]}",
		"}]}],", "]}],", " , ", "" };
	static const char *const starts[] = { "{", "{", "{", "{", "{", "",
		"[", "\357\273\277{", "\357\273{", "\357" };
	size_t at = add(text, 0, starts[rng_between(rng, 0,
	    sizeof(starts) / sizeof(*starts) - 1)]);
	size_t n = (size_t)rng_between(rng, 0, 9), i;
	const bool good = rng_between(rng, 0, 2) > 0;

	for (i = 0; i < n; i++) {
		at = add(text, at, members[rng_between(rng, 0,
		    sizeof(members) / sizeof(*members) - 1)]);
		if (rng_between(rng, 0, 3) > 0)
			at = add_string(text, at, rng, good);
		else
			at = add(text, at, values[rng_between(rng, 0,
			    sizeof(values) / sizeof(*values) - (good ? 8 :
			    1))]);
		at = add(text, at, ends[rng_between(rng, 0,
		    sizeof(ends) / sizeof(*ends) - 1)]);
	}
	return at;
}

START_TEST(random_bodies)
{
	struct rng rng = { seed = test_seed() };
	size_t rounds = test_amount(40000), n;
	char text[TEXT_MAX];
	struct pieces pieces;

	while (rounds-- > 0) {
		memset(&pieces, 0, sizeof(pieces));
		n = add_body(text, &rng);
		if (rng_between(&rng, 0, 1) == 0)
			pieces.random = rng_between(&rng, 1, 1 << 30);
		else
			pieces.step = (size_t)rng_between(&rng, 0, 70);
		pieces.more = rng_between(&rng, 0, 1) == 0;
		if (rng_between(&rng, 0, 3) == 0)
			n = (size_t)rng_between(&rng, 0, n);
		if (rng_between(&rng, 0, 3) == 0 && n > 0)
			text[rng_between(&rng, 0, n - 1)] =
			    (char)rng_between(&rng, 0, 255);
		compare((enum endpoint)rng_between(&rng, ENDPOINT_CHAT,
		    ENDPOINTS - 1), text, n, &pieces);
	}
}
END_TEST

/* Rows are longer than the stage: token ids, and invalid ones. */
START_TEST(random_tokens)
{
	static const char *const others[] = { "-1", "1.5", "2e3", "01", "00",
		"4294967295", "4294967296", "99999999", "12345678901", "\"x\"",
		"null", "[1,2]", "{}", "1 2", "", "x" };
	struct rng rng = { seed = test_seed() };
	const size_t room = 1 << 15;
	char *text = malloc(room + TEXT_MAX);
	size_t rounds = test_amount(400), n, size;
	struct pieces pieces;
	bool bare, spaced;

	ck_assert_ptr_nonnull(text);
	while (rounds-- > 0) {
		memset(&pieces, 0, sizeof(pieces));
		bare = rng_between(&rng, 0, 1) == 0;
		spaced = rng_between(&rng, 0, 1) == 0;
		size = (size_t)rng_between(&rng, 1, room);
		n = (size_t)sprintf(text, "{\"prompt\":[%s1", bare ? "" : "[");
		while (n < size) {
			n += (size_t)sprintf(text + n, rng_between(&rng, 0,
			    99) == 0 ? " ,\n" : spaced != (rng_between(&rng,
			    0, 99) == 0) ? ", " : ",");
			if (rng_between(&rng, 0, 999) == 0)
				n += (size_t)sprintf(text + n, "%s",
				    others[rng_between(&rng, 0,
				    sizeof(others) / sizeof(*others) - 1)]);
			else
				n += (size_t)sprintf(text + n, "%u",
				    (unsigned)rng_between(&rng, 0, 1u <<
				    rng_between(&rng, 0, 24)));
		}
		n += (size_t)sprintf(text + n, bare ? "]}" : "]]}");
		if (rng_between(&rng, 0, 3) == 0)
			n -= (size_t)rng_between(&rng, 0, 9);
		if (rng_between(&rng, 0, 1) == 0)
			pieces.step = (size_t)rng_between(&rng, 1, 400);
		compare(ENDPOINT_COMPLETIONS, text, n, &pieces);
	}
	free(text);
}
END_TEST

/* Long strings, in pieces that end anywhere in them. */
START_TEST(long_strings)
{
	struct rng rng = { seed = test_seed() };
	const size_t room = 1 << 18;
	char *text = malloc(room + TEXT_MAX);
	size_t rounds = test_amount(60), n, largest;
	struct pieces pieces;

	ck_assert_ptr_nonnull(text);
	while (rounds-- > 0) {
		memset(&pieces, 0, sizeof(pieces));
		largest = (size_t)rng_between(&rng, 1, 26);
		n = (size_t)sprintf(text, "%s", head);
		while (n < room)
			n += (size_t)sprintf(text + n, "%s",
			    units[rng_between(&rng, 0, largest)]);
		n += (size_t)sprintf(text + n, "%s", tail);
		ck_assert_msg(ways_agree((unsigned char *)text +
		    strlen(head), n - strlen(head)), "seed %llu",
		    (unsigned long long)seed);
		pieces.step = (size_t)rng_between(&rng, 1, room);
		compare(ENDPOINT_CHAT, text, n, &pieces);
		compare(ENDPOINT_MESSAGES, text, n, &pieces);
	}
	free(text);
}
END_TEST

Suite *suite_body_yajl(void);

Suite *
suite_body_yajl(void)
{
	Suite *s = suite_create("body_yajl");
	TCase *c = tcase_create("body_yajl");

	tcase_add_checked_fixture(c, bed_make, bed_free);
	tcase_add_loop_test(c, units_in_place, 0, 14);
	tcase_add_test(c, ways);
	tcase_add_test(c, every_cut);
	tcase_add_test(c, every_pair_of_cuts);
	tcase_add_test(c, random_bodies);
	tcase_add_test(c, random_tokens);
	tcase_add_test(c, long_strings);
	suite_add_tcase(s, c);
	return s;
}
