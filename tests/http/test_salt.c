/* SPDX-License-Identifier: BSD-2-Clause */
/* test_salt.c - cache_salt is set, and nothing else is changed. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "salts.h"

#define S "cache_salt"

/* --------------------------------------------------------------- edits --- */

static const struct {
	const char *body, *sent;
} edits[] = {
	{ "{}", "{\"" S "\":\"b\"}" },
	{ " { } \n", " { \"" S "\":\"b\"} \n" },
	{ "{\"a\":1}", "{\"a\":1,\"" S "\":\"b\"}" },
	{ "{\"a\":1 }\r\n", "{\"a\":1 ,\"" S "\":\"b\"}\r\n" },
	{ "\357\273\277{\"a\":1}", "\357\273\277{\"a\":1,\"" S "\":\"b\"}" },
	/* alone, first, last, within */
	{ "{\"" S "\":\"a\"}", "{                \"" S "\":\"b\"}" },
	{ "{\"" S "\":\"a\",\"m\":1}",
	    "{                 \"m\":1,\"" S "\":\"b\"}" },
	{ "{\"m\":1,\"" S "\":\"a\"}",
	    "{\"m\":1                 ,\"" S "\":\"b\"}" },
	{ "{\"m\":1,\"" S "\":\"a\",\"n\":2}",
	    "{\"m\":1,                 \"n\":2,\"" S "\":\"b\"}" },
	{ "{ \"" S "\" : \"a\" , \"n\":2}",
	    "{                      \"n\":2,\"" S "\":\"b\"}" },
	/* several */
	{ "{\"" S "\":1,\"" S "\":2}",
	    "{                             \"" S "\":\"b\"}" },
	{ "{\"" S "\":1,\"x\":0,\"" S "\":2}",
	    "{               \"x\":0               ,\"" S "\":\"b\"}" },
	{ "{\"x\":0 , \"" S "\":1,\"" S "\":2 }",
	    "{\"x\":0                               "
	    "  ,\"" S "\":\"b\"}" },
	/* of any kind */
	{ "{\"" S "\":null,\"x\":0}",
	    "{                  \"x\":0,\"" S "\":\"b\"}" },
	{ "{\"" S "\":{\"" S "\":[1,{}]},\"x\":0}",
	    "{                                   \"x\":0,\"" S "\":\"b\"}" },
	{ "{\"" S "\":\"\\\"}\",\"x\":0}",
	    "{                   \"x\":0,\"" S "\":\"b\"}" },
	/* escaped */
	{ "{\"cache\\u005fsalt\":1,\"x\":0}",
	    "{                    \"x\":0,\"" S "\":\"b\"}" },
	{ "{\"\\u0063ache_sal\\u0074\":1,\"x\":0}",
	    "{                         \"x\":0,\"" S "\":\"b\"}" },
	{ "{\"cache\\u005Fsalt\":1}",
	    "{                   \"" S "\":\"b\"}" }
};
enum { EDITS = sizeof(edits) / sizeof(*edits) };

/* The pieces make no difference. */
START_TEST(edit)
{
	const char *body = edits[_i].body;
	size_t n = strlen(body), step, length;
	unsigned char *sent;
	struct salt s;

	for (step = 0; step <= n; step++) {
		ck_assert(salts_read(&s, body, n, step));
		sent = salts_apply(&s, body, n, "b", 1, &length);
		ck_assert_ptr_nonnull(sent);
		ck_assert_uint_eq(length, strlen(edits[_i].sent));
		ck_assert_mem_eq(sent, edits[_i].sent, length);
		free(sent);
	}
}
END_TEST

/* Names that are not the one, and places that are not the top. */
START_TEST(left_alone)
{
	static const char *const bodies[] = {
	    "{\"" S "s\":1}", "{\"cache_sal\":1}", "{\"Cache_salt\":1}",
	    "{\"cache\\\\u005fsalt\":1}", "{\"cache_\\nsalt\":1}",
	    "{\"" S "\\u0000\":1}", "{\"x" S "\":1}", "{\"\":1}",
	    "{\"cache_s\303\244lt\":1}", "{\"cache\\u015fsalt\":1}",
	    "{\"a\":{\"" S "\":1}}", "{\"a\":[{\"" S "\":1}]}",
	    "{\"a\":\"" S "\"}", "{\"a\":[\"" S "\",\"" S "\"]}",
	    "{\"a\":\"\\\",\\\"" S "\\\":1\"}",
	    "{\"a\":-1e+5}" };
	size_t i, step, n;
	struct salt s;

	for (i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		n = strlen(bodies[i]);
		for (step = 0; step <= n; step++) {
			ck_assert_msg(salts_read(&s, bodies[i], n, step),
			    "%s", bodies[i]);
			ck_assert_uint_eq(s.spans, 0);
			ck_assert(s.comma);
			ck_assert_uint_eq(s.end, n - 1);
		}
	}
}
END_TEST

START_TEST(refused)
{
	static const char *const bodies[] = {
	    "", " ", "null", "1", "\"" S "\"", "[]", "[{}]", "{", "{]", "{}}",
	    "{}{}", "{},", "{} x", "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
	    "{\"a\":1 2}", "{\"a\":1 \"b\":2}", "{\"a\" 1}", "{a:1}",
	    "{\"a\":[1,]}", "{\"a\":[,1]}", "{\"a\":[1}", "{\"a\":{1}}",
	    "{'a':1}", "{\"a\":1/**/}", "{\"a\":\"}", "{\"a\":\"\\x\"}",
	    "{\"a\":\"\\u00g0\"}", "{\"a\":\"\n\"}", "{\"a\":\"\377\"}",
	    "{\"a\":\"\303\"}", "{\"a\":\"\344\270\"}", "{\"a\":\360}",
	    "{\"a\":NaN}", "{\"a\":1.}", "{\"a\":+1}", "{\"a\":True}",
	    "\357\273{}", "\357\273\277\357\273\277{}", "{\357\273\277}" };
	size_t i, step, n;
	struct salt s;

	for (i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		n = strlen(bodies[i]);
		for (step = 0; step <= n; step++)
			ck_assert_msg(!salts_read(&s, bodies[i], n, step),
			    "%s", bodies[i]);
	}
	ck_assert(!salts_read(&s, "{\"a\":1}\0", 8, 0));
	ck_assert(!salts_read(&s, "{\"a\\u0\0", 7, 0));
	ck_assert(!salts_read(&s, "{\"a\\\0\":1}", 9, 0));
}
END_TEST

/* -------------------------------------------------------------- bounds --- */

static char *
nested(size_t depth)
{
	char *text = malloc(2 * depth + 6);
	size_t n = 0, i;

	ck_assert_ptr_nonnull(text);
	n += (size_t)sprintf(text, "{\"a\":");
	for (i = 1; i < depth; i++)
		text[n++] = '[';
	for (i = 1; i < depth; i++)
		text[n++] = ']';
	text[n++] = '}';
	text[n] = '\0';
	return text;
}

START_TEST(depth)
{
	char *most = nested(SALT_DEPTH), *more = nested(SALT_DEPTH + 1);
	struct salt s;

	ck_assert(!salts_read(&s, "{\"a\":}", 6, 0));
	ck_assert(salts_read(&s, most, strlen(most), 0));
	ck_assert(!salts_read(&s, more, strlen(more), 0));
	free(most);
	free(more);
}
END_TEST

START_TEST(spans)
{
	char text[64 + SALT_SPANS * 16] = "{";
	struct salt s;
	size_t i;

	for (i = 0; i < SALT_SPANS; i++)
		strcat(text, i == 0 ? "\"" S "\":1" : ",\"" S "\":1");
	strcat(text, "}");
	ck_assert(salts_read(&s, text, strlen(text), 0));
	ck_assert_uint_eq(s.spans, SALT_SPANS);
	strcpy(text + strlen(text) - 1, ",\"" S "\":1}");
	ck_assert(!salts_read(&s, text, strlen(text), 0));
}
END_TEST

/* --------------------------------------------------------------- values --- */

START_TEST(values)
{
	static const struct {
		const char *value, *json;
	} of[] = { { "b", "b" }, { "", "" }, { "\"", "\\\"" },
	    { "\\", "\\\\" }, { "\n\001", "\\n\\u0001" },
	    { "a\"b\\c\037", "a\\\"b\\\\c\\u001F" }, { "\177", "\177" },
	    { "\303\244", "\303\244" },
	    { "\360\237\230\200", "\360\237\230\200" } };
	static const char *const bad[] = { "\377", "a\303", "\303a",
	    "\344\270", "\200" };
	unsigned char to[128], expected[128];
	struct salt s;
	size_t i, n;

	ck_assert(salts_read(&s, "{}", 2, 0));
	for (i = 0; i < sizeof(of) / sizeof(*of); i++) {
		n = (size_t)sprintf((char *)expected, "\"" S "\":\"%s\"",
		    of[i].json);
		ck_assert_uint_eq(salt_member(&s, of[i].value,
		    strlen(of[i].value), to, SALT_ROOM(strlen(of[i].value))),
		    n);
		ck_assert_mem_eq(to, expected, n);
	}
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_uint_eq(salt_member(&s, bad[i], strlen(bad[i]), to,
		    sizeof(to)), 0);
	ck_assert_uint_eq(salt_member(&s, "b", 1, to, SALT_ROOM(1) - 1), 0);
}
END_TEST

/* YAJL sees the value, no other salt, and all the rest. */
START_TEST(as_a_reader_sees_it)
{
	static const char value[] = "t\"\\\n\303\244";
	struct salts_seen was, is;
	unsigned char *sent;
	struct salt s;
	size_t n = strlen(edits[_i].body), length;

	was = salts_look(edits[_i].body, n);
	ck_assert(was.valid);
	ck_assert(salts_read(&s, edits[_i].body, n, 3));
	ck_assert_uint_eq(s.spans, was.salts);
	sent = salts_apply(&s, edits[_i].body, n, value, sizeof(value) - 1,
	    &length);
	ck_assert_ptr_nonnull(sent);
	is = salts_look(sent, length);
	ck_assert(is.valid);
	ck_assert_uint_eq(is.salts, 1);
	ck_assert_uint_eq(is.n_value, sizeof(value) - 1);
	ck_assert_mem_eq(is.value, value, is.n_value);
	ck_assert_uint_eq(is.rest, was.rest);
	free(sent);
}
END_TEST

Suite *suite_salt(void);

Suite *
suite_salt(void)
{
	Suite *s = suite_create("salt");
	TCase *c = tcase_create("salt");

	tcase_add_loop_test(c, edit, 0, EDITS);
	tcase_add_test(c, left_alone);
	tcase_add_test(c, refused);
	tcase_add_test(c, depth);
	tcase_add_test(c, spans);
	tcase_add_test(c, values);
	tcase_add_loop_test(c, as_a_reader_sees_it, 0, EDITS);
	suite_add_tcase(s, c);
	return s;
}
