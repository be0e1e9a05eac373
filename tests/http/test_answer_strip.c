/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_answer_strip.c - exactly the usage that the client did not request is
 * stripped, however the stream is cut, and little is held back. In texts single
 * quotes stand for double ones.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "answers.h"

#define TOKEN EVENT("{'id':'1','choices':[{'delta':{'content':" \
	"'say \\'choices\\':[]'}}],'usage':null}")
#define EXTRA EVENT("{'id':'1','choices':[]," USAGE "}")

static const struct {
	const char *name, *before;
	const char *extra; /* the stripped part; may be empty */
	const char *after;
} samples[] = {
	{ "vLLM", TOKEN TOKEN, EXTRA, DONE },
	{ "nothing else", "", EXTRA, "" },
	{ "at the end", TOKEN, "data: {'choices':[]," USAGE "}\n", "" },
	{ "no end of line", TOKEN, "data: {'choices':[]," USAGE "}", "" },
	{ "usage first", TOKEN, EVENT("{" USAGE ",'x':[1],'choices': [ ]}"),
	    DONE },
	{ "a comment within", TOKEN, ": x\nid: 3\ndata: {'choices':[],\n"
	    ": y\ndata: " USAGE "}\nretry: 1\n\n", ": z\n\n" DONE },
	{ "comments outside", ": ping\n\n", EXTRA, "\n\n: ping\n\n" DONE },
	{ "usage with a choice", "data: {'choices':[{}]", "," USAGE,
	    "}\n\n" DONE },
	{ "usage ahead of a choice", "data: {", USAGE ",", "'choices':[{}]}"
	    "\n\n" DONE },
	{ "usage between", "data: { 'id' : '\\'usage\\':{' ", ", " USAGE " ",
	    ", 'choices':[{'usage':{},'delta':{'content':'},{'}}]}\n\n" DONE },
	{ "usage alone with an error", "data: {'error':{'code':500}", "," USAGE,
	    "}\n\n" },
	{ "usage with null for a choice", "data: {'choices':[null]", "," USAGE,
	    "}\n\n" },
	{ "usage without choices", TOKEN, EVENT("{" USAGE "}"), DONE },
	{ "choices are null", TOKEN, EVENT("{'choices':null," USAGE "}"),
	    DONE },
	{ "choices are no list", "data: {'choices':{}", "," USAGE, "}\n\n" },
	{ "choices elsewhere", TOKEN, EVENT("{'a':{'choices':[]}," USAGE "}"),
	    DONE },
	{ "usage of each token", "data: {'choices':[{'text':'a'}]",
	    ",'usage':{'prompt_tokens':5,'completion_tokens':1}",
	    ",'model':'m'}\n\n" DONE },
	{ "usage of a choice", EVENT("{'choices':[{" USAGE "}]}"), "", DONE },
	{ "no choice, no usage", EVENT("{'choices':[],'usage':null}"), "",
	    EVENT("{'choices':[]}") },
	{ "two lists of choices", "data: {'choices':[1],'choices':[]",
	    "," USAGE, "}\n\n" },
	{ "usage twice", "data: {'choices':[1]", "," USAGE "," USAGE,
	    "}\n\n" },
	{ "not JSON", EVENT("{'choices':[]," USAGE ",}"), "", "" },
	{ "cut", TOKEN "data: {'choices':[]," USAGE, "", "" },
	{ "a list", EVENT("[{'choices':[]," USAGE "}]"), "", "" },
	{ "a mark", "\xef\xbb\xbf: hi\n\n", EXTRA, DONE },
	{ "half a mark", "", "\xef\xbb\n" EXTRA, DONE },
	{ "a mark alone", "\xef\xbb\xbf\n", EXTRA, DONE },
};
enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static char *
join(const char *a, const char *b, const char *c)
{
	char *text = malloc(strlen(a) + strlen(b) + strlen(c) + 1);

	ck_assert_ptr_nonnull(text);
	strcpy(stpcpy(stpcpy(text, a), b), c);
	return text;
}

static void
try_cut(struct answer *a, const char *name, const char *text,
    const char *want, struct cut cut)
{
	struct answers_result r = answers_read(a, ANSWER_STREAM, true, text,
	    strlen(text), cut);

	ck_assert_msg(r.n == strlen(want) && memcmp(r.out, want, r.n) == 0,
	    "%s, cut at %zu and %zu: %.*s", name, cut.first, cut.then,
	    (int)r.n, r.out);
	ck_assert_uint_le(r.most_held, strlen(text));
	free(r.out);
}

START_TEST(whole_events)
{
	static const char *const ends[] = { "\n", "\r\n", "\r" };
	struct answer *a = answer_new();
	char *text, *want, *in, *out;
	size_t i, k;

	text = join(samples[_i].before, samples[_i].extra, samples[_i].after);
	want = join(samples[_i].before, "", samples[_i].after);
	for (k = 0; k < 3; k++) {
		in = answers_text(text, ends[k]);
		out = answers_text(want, ends[k]);
		for (i = 0; i < strlen(in); i++)
			try_cut(a, samples[_i].name, in, out,
			    (struct cut){ i, 0 });
		for (i = 1; i < 18; i++)
			try_cut(a, samples[_i].name, in, out,
			    (struct cut){ i, i });
		free(in);
		free(out);
	}
	free(text);
	free(want);
	answer_free(a);
}
END_TEST

/* Stripped events are read. */
START_TEST(is_read)
{
	char *text = answers_text(TOKEN EXTRA DONE, "\n");
	struct answer *a = answer_new();
	struct answers_result r = answers_read(a, ANSWER_STREAM, true, text,
	    strlen(text), (struct cut){ 7, 7 });

	ck_assert_uint_eq(r.report.kind, KVR_REPORT_VALUE);
	ck_assert_uint_eq(r.report.cached_tokens, 4);
	ck_assert_uint_eq(r.started_at, (strlen(TOKEN) + 6) / 7 * 7);
	free(r.out);
	free(text);
	answer_free(a);
}
END_TEST

/* Without stripping, or without a stream, nothing is held. */
START_TEST(not_asked)
{
	char *text = answers_text(TOKEN EXTRA DONE, "\n");
	char out[sizeof(TOKEN EXTRA DONE)];
	struct answer *a = answer_new();

	answer_begin(a, ANSWER_STREAM, false);
	ck_assert_uint_eq(answer_strip(a, text, 9, out), 9);
	ck_assert_uint_eq(answer_strip(a, text + 9, strlen(text) - 9, out),
	    strlen(text) - 9);
	ck_assert_mem_eq(out, text + 9, strlen(text) - 9);
	ck_assert_uint_eq(answer_flush(a, out), 0);
	answer_begin(a, ANSWER_JSON, true);
	ck_assert_uint_eq(answer_strip(a, text, 9, out), 9);
	ck_assert_uint_eq(answer_held(a), 0);
	answer_free(a);
	free(text);
}
END_TEST

/* ----------------------------------------------------------------- held --- */

/* Byte by byte: a token is held until it ends. */
START_TEST(held_until_an_end)
{
	char *text = answers_text(TOKEN, "\n"), out[sizeof(TOKEN)];
	struct answer *a = answer_new();
	size_t i, n;

	answer_begin(a, ANSWER_STREAM, true);
	for (i = 0; i < strlen(text); i++) {
		n = answer_strip(a, text + i, 1, out);
		ck_assert_uint_eq(answer_held(a), i + 1 < strlen(text) ? i + 1
		    : 0);
		ck_assert_uint_eq(n, i + 1 < strlen(text) ? 0 : i + 1);
	}
	/* text that cannot be an object is not held */
	ck_assert_uint_eq(answer_strip(a, "data: [", 7, out), 7);
	ck_assert_uint_eq(answer_strip(a, "\n\ndata: {\"a\":1,", 15, out), 2);
	ck_assert_uint_eq(answer_held(a), 13);
	ck_assert_uint_eq(answer_strip(a, "}", 1, out), 14);
	answer_free(a);
	free(text);
}
END_TEST

/* A member that goes over lines leaves them. */
START_TEST(usage_over_lines)
{
	char *in = answers_text("data: {'choices':[1],\n: x\ndata: 'usage':{\n"
	    "data: 'prompt_tokens':5}\ndata: ,'a':1}\n\n" DONE, "\n");
	char *out = answers_text("data: {'choices':[1]\n: x\ndata: \n"
	    "data: \ndata: ,'a':1}\n\n" DONE, "\n");
	struct answer *a = answer_new();
	size_t i;

	for (i = 0; i < strlen(in); i++)
		try_cut(a, "lines", in, out, (struct cut){ i, 0 });
	free(in);
	free(out);
	answer_free(a);
}
END_TEST

/* One event of this length with usage and no choice. */
static char *
long_event(size_t n)
{
	char *head = answers_text("data: {'choices':[]," USAGE ",'x':'", "");
	const char tail[] = "\"}\n\n";
	char *text = malloc(n + 1);

	ck_assert_ptr_nonnull(text);
	memset(text, 'x', n);
	memcpy(text, head, strlen(head));
	memcpy(text + n - strlen(tail), tail, strlen(tail) + 1);
	free(head);
	return text;
}

/* The maximum that is held, and one byte more, in all kinds of pieces. */
START_TEST(held_bound)
{
	static const struct cut cuts[] = { { 0, 0 }, { 1, 0 }, { 1, 1 },
	    { 16383, 0 }, { 16384, 0 }, { 16384, 1 }, { 100, 777 } };
	struct answer *a = answer_new();
	struct answers_result r;
	char *fits = long_event(ANSWER_HELD_MAX);
	char *longer = long_event(ANSWER_HELD_MAX + 1);
	size_t i;

	for (i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		try_cut(a, "fits", fits, "", cuts[i]);
		try_cut(a, "is too long", longer, longer, cuts[i]);
		r = answers_read(a, ANSWER_STREAM, true, longer,
		    strlen(longer), cuts[i]);
		ck_assert_uint_le(r.most_held, ANSWER_HELD_MAX);
		ck_assert_uint_eq(r.report.cached_tokens, 4);
		free(r.out);
	}
	free(fits);
	free(longer);
	answer_free(a);
}
END_TEST

static bool
is(const struct answers_result *r, const char *text)
{
	return r->n == strlen(text) && memcmp(r->out, text, r->n) == 0;
}

/* Whichever allocation fails: everything passes, or all but the extra event. */
START_TEST(no_memory)
{
	char *text = answers_text(TOKEN EXTRA TOKEN DONE, "\n");
	char *stripped = answers_text(TOKEN TOKEN DONE, "\n");
	struct answer *a = answer_new();
	struct answers_result r;
	unsigned long n, passed = 0;
	size_t piece;

	for (piece = 1; piece < 200; piece += 11) {
		for (n = 1; n < 30; n++) {
			(n % 2 ? alloc_fail_at : alloc_fail_from)(n / 2 + 1);
			r = answers_read(a, ANSWER_STREAM, true, text,
			    strlen(text), (struct cut){ piece, piece });
			alloc_reset();
			passed += is(&r, text);
			ck_assert(is(&r, text) || is(&r, stripped));
			free(r.out);
		}
	}
	ck_assert_uint_gt(passed, 0);
	answer_free(a);
	free(text);
	free(stripped);
}
END_TEST

Suite *suite_answer_strip(void);

Suite *
suite_answer_strip(void)
{
	Suite *s = suite_create("answer_strip");
	TCase *t = tcase_create("answer_strip");

	tcase_add_loop_test(t, whole_events, 0, SAMPLES);
	tcase_add_test(t, is_read);
	tcase_add_test(t, not_asked);
	tcase_add_test(t, held_until_an_end);
	tcase_add_test(t, usage_over_lines);
	tcase_add_test(t, held_bound);
	tcase_add_test(t, no_memory);
	suite_add_tcase(s, t);
	return s;
}
