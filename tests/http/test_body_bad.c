/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_body_bad.c - bodies that are cut, broken, hostile, too large or too
 * deep, and failing allocations: always an outcome, never an error, and the
 * part before the damage is a prompt.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "body_in.h"

#include "body_bed.h"

static struct taken
take_bytes(enum endpoint endpoint, const void *text, size_t n, size_t step,
    bool more)
{
	struct pieces pieces = { 0 };
	struct taken t;

	pieces.step = step;
	pieces.more = more;
	bodies_take(b, k, p, endpoint, text, n, &pieces, &t);
	return t;
}

static struct taken
take(const char *text)
{
	return take_bytes(ENDPOINT_CHAT, text, strlen(text), 0, false);
}

#define CHAT(content) "{\"messages\":[{\"role\":\"user\",\"content\":" \
	content "}]}"

/* ------------------------------------------------------------- outcomes --- */

START_TEST(outcomes)
{
	static const struct {
		enum body_outcome outcome;
		const char *text;
	} cases[] = {
		{ BODY_EMPTY, "" },
		{ BODY_NOT_JSON, " " },
		{ BODY_NOT_JSON, "{" },
		{ BODY_NOT_JSON, "[" },
		{ BODY_NOT_JSON, "[]]" },
		{ BODY_NOT_JSON, "[}" },
		{ BODY_NOT_JSON, "5." },
		{ BODY_NOT_JSON, "5 5" },
		{ BODY_NOT_JSON, "nul" },
		{ BODY_NOT_JSON, "\"messages" },
		{ BODY_NOT_JSON, "hello" },
		{ BODY_NOT_JSON, "{\"messages\":" },
		{ BODY_NOT_JSON, "{\"messages\":[" },
		{ BODY_NOT_JSON, "{\"model\":\"m\"" },
		{ BODY_NOT_JSON, "{messages:[]}" },
		{ BODY_NOT_JSON, "\357\273{}" },
		{ BODY_NOT_JSON, "\357\273\277" },
		{ BODY_NOT_JSON, "{\357\273\277}" },
		{ BODY_NOT_JSON, "\357\273\277\357\273\277{}" },
		{ BODY_NOT_JSON, "--x\r\nContent-Disposition: form-data\r\n" },
		{ BODY_NO_PROMPT, "[]" },
		{ BODY_NO_PROMPT, " [{\"messages\":[{}]}] " },
		{ BODY_NO_PROMPT, "5" },
		{ BODY_NO_PROMPT, "-1.5e3 " },
		{ BODY_NO_PROMPT, "null " },
		{ BODY_NO_PROMPT, "true" },
		{ BODY_NO_PROMPT, "\"messages\"" },
		{ BODY_NO_PROMPT, "\357\273\277[]" },
		{ BODY_NO_PROMPT, "\357\273\277{}" },
		{ BODY_NO_PROMPT, "{}" },
		{ BODY_NO_PROMPT, "{\"messages\":[]}" },
		{ BODY_NO_PROMPT, "{\"messages\":{}}" },
		{ BODY_NO_PROMPT, "{\"messages\":7}" },
		{ BODY_NO_PROMPT, "{\"messages\":\"hello\"}" },
		{ BODY_NO_PROMPT, "{\"messages\":[1,null,[{}],true]}" },
		{ BODY_NO_PROMPT, "{\"messages\":[{}],\"messages\":null}" },
		{ BODY_NO_PROMPT, "{\"x\":{\"messages\":[{\"role\":\"u\"}]}}" },
		{ BODY_PROMPT, "{\"messages\":[{}]}" },
		{ BODY_PROMPT, "{\"messages\":[\"hello\"]}" },
		{ BODY_PROMPT, CHAT("5") },
		{ BODY_PROMPT, CHAT("[5,[\"a\"],{\"text\":5}]") },
		{ BODY_PROMPT, CHAT("\"a\"") "x" },
		{ BODY_PROMPT, CHAT("\"a\"") CHAT("\"a\"") },
		{ BODY_PROMPT, "{\"messages\":[{\"role\":5,\"tool_calls\":[1,"
		    "{\"function\":[{\"function\":2}]},[]]}]}" }
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		ck_assert_msg(take(cases[i].text).outcome == cases[i].outcome,
		    "%s", cases[i].text);
}
END_TEST

/* The same prompt, in any pieces; the end is counted from the first byte. */
START_TEST(byte_order_mark)
{
	static const char text[] = CHAT("\"abc\"");
	static const char marked[] = "\357\273\277" CHAT("\"abc\"");
	struct taken plain = take(text), t;
	size_t step;

	for (step = 0; step < sizeof(marked); step++) {
		t = take_bytes(ENDPOINT_CHAT, marked, strlen(marked), step,
		    false);
		ck_assert_int_eq(t.outcome, BODY_PROMPT);
		ck_assert_uint_eq(t.units, plain.units);
		ck_assert(!t.facts.cut);
		ck_assert_uint_eq(t.facts.end, strlen(marked) - 1);
	}
}
END_TEST

/* The body has one byte at first and very many then. */
START_TEST(byte_order_mark_in_a_large_body)
{
	static const char front[] = "\357\273\277{\"messages\":[{\"content\""
	    ":\"";
	static char text[1 << 16];
	size_t n = strlen(front), first;
	struct body_facts facts;

	memset(text, 'a', sizeof(text));
	memcpy(text, front, n);
	memcpy(text + sizeof(text) - 4, "\"}]}", 4);
	for (first = 1; first <= 4; first++) {
		body_begin(b, p, ENDPOINT_CHAT);
		body_data(b, text, first);
		body_data(b, text + first, sizeof(text) - first);
		ck_assert_int_eq(body_end(b, &facts), BODY_PROMPT);
		ck_assert_uint_eq(facts.end, sizeof(text) - 1);
	}
}
END_TEST

START_TEST(no_prompts_of_completions)
{
	static const char *const texts[] = { "{\"prompt\":\"\"}",
		"{\"prompt\":[]}", "{\"prompt\":[[]]}", "{\"prompt\":[\"\"]}",
		"{\"prompt\":null}", "{\"prompt\":5}", "{\"prompt\":{}}",
		"{\"prompt\":[{\"a\":[1]}]}", "{\"messages\":[{}]}" };
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		ck_assert_msg(take_bytes(ENDPOINT_COMPLETIONS, texts[i],
		    strlen(texts[i]), 0, false).outcome == BODY_NO_PROMPT,
		    "%s", texts[i]);
}
END_TEST

START_TEST(system_alone)
{
	static const char text[] = "{\"system\":\"S\"}";
	static const char twice[] = "{\"system\":\"S\",\"system\":null}";

	ck_assert_int_eq(take_bytes(ENDPOINT_MESSAGES, text, strlen(text), 0,
	    false).outcome, BODY_PROMPT);
	ck_assert_int_eq(take_bytes(ENDPOINT_MESSAGES, twice, strlen(twice), 0,
	    false).outcome, BODY_NO_PROMPT);
}
END_TEST

/* Nothing is read, whatever the body. */
START_TEST(other_endpoint)
{
	static const char text[] = CHAT("\"a\"");
	struct taken t = take_bytes(ENDPOINT_OTHER, text, strlen(text), 0,
	    false);

	ck_assert_int_eq(t.outcome, BODY_NO_PROMPT);
	ck_assert_uint_eq(t.units, 0);
	t = take_bytes(ENDPOINT_OTHER, text, 0, 0, false);
	ck_assert_int_eq(t.outcome, BODY_NO_PROMPT);
}
END_TEST

/* Facts that do not need a prompt. */
START_TEST(other_endpoint_without_a_prompt)
{
	static const char text[] = "{\"input\":[\"a\"],\"user\":\"u\","
	    "\"model\":\"m\"}";
	struct body_facts facts;

	body_begin(b, NULL, ENDPOINT_OTHER);
	body_data(b, text, sizeof(text) - 1);
	ck_assert_int_eq(body_end(b, &facts), BODY_NO_PROMPT);
	ck_assert_uint_eq(facts.model_length, 1);
	ck_assert_mem_eq(facts.model, "m", 1);
	ck_assert_uint_eq(facts.id_length[BODY_USER], 1);
	ck_assert_int_eq(body_prompt(b, p), BODY_NO_PROMPT);
}
END_TEST

/* A failed allocation leaves no part of a prompt that counts. */
START_TEST(no_memory_later)
{
	static const char text[] = CHAT("\"a\"");
	struct body_facts facts;

	body_begin(b, NULL, ENDPOINT_CHAT);
	body_data(b, text, sizeof(text) - 1);
	ck_assert_int_eq(body_end(b, &facts), BODY_PROMPT);
	alloc_fail_from(1);
	ck_assert_int_eq(body_prompt(b, p), BODY_NO_MEMORY);
	alloc_reset();
}
END_TEST

START_TEST(single_bytes)
{
	unsigned char byte;
	int i;

	for (i = 0; i < 256; i++) {
		byte = (unsigned char)i;
		ck_assert_int_eq(take_bytes(ENDPOINT_CHAT, &byte, 1, 0, false)
		    .outcome, byte >= '0' && byte <= '9' ? BODY_NO_PROMPT :
		    BODY_NOT_JSON);
	}
}
END_TEST

/* Each byte replaced by each other one: some outcome, no crash. */
START_TEST(flipped_bytes)
{
	static const char text[] = "{\"messages\":[{\"role\":\"user\","
	    "\"content\":[{\"text\":\"a\\u00e4\303\244\"}]}],\"tools\":[{"
	    "\"a\":-1.5e3}],\"stream\":true}";
	char copy[sizeof(text)];
	size_t i, n = strlen(text);
	struct taken one, many;
	int byte;

	for (i = 0; i < n; i++)
		for (byte = 0; byte < 256; byte++) {
			memcpy(copy, text, sizeof(text));
			copy[i] = (char)byte;
			one = take_bytes(ENDPOINT_CHAT, copy, n, 0, false);
			many = take_bytes(ENDPOINT_CHAT, copy, n, 7, false);
			ck_assert(bodies_equal(&one, &many));
			ck_assert_int_ne(one.outcome, BODY_EMPTY);
			ck_assert_int_ne(one.outcome, BODY_NO_MEMORY);
		}
}
END_TEST

/* ------------------------------------------------------------- broken --- */

/* The part before the damage, or the end, is the prompt. */
START_TEST(broken_later)
{
	struct taken whole = take(CHAT("\"a\"")), t;

	t = take("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
	    "\"x\":\"\377\"}");
	ck_assert_int_eq(t.outcome, BODY_PROMPT);
	ck_assert(t.facts.cut && t.facts.end == 0);
	ck_assert_uint_eq(t.hash, whole.hash);
	t = take("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
	    "nonsense");
	ck_assert_int_eq(t.outcome, BODY_PROMPT);
	ck_assert(t.facts.cut);
	ck_assert_uint_eq(t.hash, whole.hash);
	t = take(CHAT("\"a\"") "x");
	ck_assert(t.facts.cut && t.facts.end == 0);
	ck_assert_uint_eq(t.hash, whole.hash);
	t = take(CHAT("\"a\"") " \r\n\t");
	ck_assert(bodies_equal(&t, &whole));
}
END_TEST

START_TEST(invalid_characters)
{
	static const char *const texts[] = { "\"\200\"", "\"\303\"",
		"\"\377\"", "\"\376m\"", "\"\360\237\230\"", "\"\303(\"",
		"\"\\ud8\"", "\"\\x\"", "\"\n\"" };
	char text[128];
	struct taken t;
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		snprintf(text, sizeof(text), CHAT("%s"), texts[i]);
		t = take(text);
		/* with its message, without the role: that has not ended */
		ck_assert_int_eq(t.outcome, BODY_PROMPT);
		ck_assert(t.facts.cut);
		ck_assert_uint_eq(t.units, 2);
	}
}
END_TEST

/* Half a surrogate pair is a character and never a mark. */
START_TEST(lone_surrogates)
{
	struct taken t, u;

	t = take(CHAT("\"\\ud800\""));
	ck_assert_int_eq(t.outcome, BODY_PROMPT);
	ck_assert(!t.facts.cut);
	u = take(CHAT("\"\\udc00\""));
	ck_assert(!u.facts.cut);
	t = take(CHAT("\"\\ud800\\ud800\""));
	ck_assert(!t.facts.cut);
	t = take(CHAT("\"\\ud800\\u0041\\\\\""));
	ck_assert(!t.facts.cut);
	t = take("{\"model\":\"\\udc00\\ud800\"}");
	ck_assert_int_eq(t.outcome, BODY_NO_PROMPT);
	/* NUL is an ordinary character */
	t = take(CHAT("\"\\u0000\""));
	u = take(CHAT("\"\\u0000\\u0000\""));
	ck_assert_uint_eq(t.units + 1, u.units);
}
END_TEST

/* --------------------------------------------------------- cut strings --- */

static const char cut_text[] = CHAT("\"plain \\u00e4\\n \\\\\\\\ \\\\n "
    "\303\244\342\202\254\360\237\230\200 \\ud83d\\ude00 \\\"quoted\\\" "
    "\\\\\\u20ac end\"");

/*
 * A cut string counts up to the cut: only one character and the end of the
 * message may differ from the whole.
 */
START_TEST(cut_anywhere)
{
	const size_t begin = strlen("{\"messages\":[{\"role\":\"user\","
	    "\"content\":\""), end = strlen(cut_text) - strlen("\"}]}");
	struct taken t, last = { 0 };
	uint64_t local, sequence;
	size_t n;

	for (n = begin; n <= end; n++) {
		t = take_bytes(ENDPOINT_CHAT, cut_text, n,
		    (size_t)_i, true);
		ck_assert_int_eq(t.outcome, BODY_PROMPT);
		ck_assert(t.facts.cut);
		/* marks enclose it */
		ck_assert_msg(t.units >= (n == begin ? 2 : 11), "%zu: %zu", n,
		    (size_t)t.units);
		if (n > begin)
			ck_assert_msg(t.units + 4 >= last.units, "%zu", n);
		last = t;
		/* without its end and one character it is a prefix */
		if (t.units < 10 + 4)
			continue;
		ck_assert_int_eq(kvr_prompt_hash(p, t.units - 2 - 5, &local,
		    &sequence), KVR_OK);
		last.units = t.units - 2 - 4;
		last.hash = sequence;
		take(cut_text);
		ck_assert_msg(bodies_begins(p, &last), "cut at %zu", n);
		last = t;
	}
	/* This is the whole string; the role comes behind it, when it ends. */
	ck_assert_uint_eq(t.units + 6, take(cut_text).units);
	ck_assert(bodies_begins(p, &t));
}
END_TEST

/* A cut character is completed; the text before it is kept. */
START_TEST(cut_characters)
{
	static const struct {
		const char *cut;
		const char *whole;
	} cases[] = {
		{ "a", "a" },
		{ "a\\", "a\\\\" },
		{ "a\\\\", "a\\\\" },
		{ "a\\\\\\", "a\\\\\\\\" },
		{ "a\\n", "a\\n" },
		{ "a\\n1", "a\\n1" },
		{ "a\\n123", "a\\n123" },
		{ "a\\u", "a\\u0000" },
		{ "a\\u1", "a\\u1000" },
		{ "a\\u123", "a\\u1230" },
		{ "a\\u1234", "a\\u1234" },
		{ "a\\u12345", "a\\u12345" },
		{ "a\\\\u", "a\\\\u" },
		{ "a\\\\u12", "a\\\\u12" },
		{ "a\\\\\\u12", "a\\\\\\u1200" },
		{ "a\303", "a\303\200" },
		{ "a\342", "a\342\200\200" },
		{ "a\342\202", "a\342\202\200" },
		{ "a\342\202\254", "a\342\202\254" },
		{ "a\360\237", "a\360\237\200\200" },
		{ "a\360\237\230\200", "a\360\237\230\200" }
	};
	struct taken cut, whole;
	char text[128];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(text, sizeof(text), "{\"messages\":[{\"content\":"
		    "\"%s\"", cases[i].whole);
		whole = take(text);
		snprintf(text, sizeof(text), "{\"messages\":[{\"content\":"
		    "\"%s", cases[i].cut);
		cut = take_bytes(ENDPOINT_CHAT, text, strlen(text),
		    (size_t)_i, true);
		ck_assert_msg(cut.hash == whole.hash, "%s", cases[i].cut);
	}
}
END_TEST

/* Cut names and numbers are ignored. */
START_TEST(cut_names_and_numbers)
{
	static const char text[] = "{\"prompt\":[1145258561,12";
	static const char list[] = "{\"prompt\":[[1145258561,12";
	struct taken t;

	t = take("{\"messages\":[{}],\"model\":\"m-7");
	ck_assert_int_eq(t.outcome, BODY_PROMPT);
	ck_assert_uint_eq(t.facts.model_length, 0);
	t = take_bytes(ENDPOINT_COMPLETIONS, text, strlen(text), 0, true);
	ck_assert_int_eq(t.outcome, BODY_PROMPT);
	ck_assert_uint_eq(t.units, 2 + 4);
	t = take_bytes(ENDPOINT_COMPLETIONS, list, strlen(list), 0, true);
	ck_assert_int_eq(t.outcome, BODY_PROMPT);
	ck_assert_uint_eq(t.units, 2 + 4);
	t = take_bytes(ENDPOINT_CHAT, "{\"tools\":[", 10, 0, true);
	ck_assert_int_eq(t.outcome, BODY_NO_PROMPT);
}
END_TEST

/* ------------------------------------------------------- deep and large --- */

static char *
nested(size_t depth, const char *before, const char *open, const char *after)
{
	char *text = malloc(strlen(before) + depth * strlen(open) +
	    strlen(after) + 1);
	size_t i;

	ck_assert_ptr_nonnull(text);
	strcpy(text, before);
	for (i = 0; i < depth; i++)
		memcpy(text + strlen(before) + i * strlen(open), open,
		    strlen(open));
	strcpy(text + strlen(before) + depth * strlen(open), after);
	return text;
}

START_TEST(depth)
{
	static const struct {
		const char *before;
		const char *open;
		size_t inside; /* levels around the nesting */
	} cases[] = {
		{ "{\"messages\":[{}],\"x\":", "[", 1 },
		{ "{\"messages\":[{}],\"tools\":", "[", 1 },
		{ "{\"messages\":[{}],\"x\":", "{\"x\":", 1 },
		{ "{\"messages\":[{\"content\":", "{\"content\":", 3 },
		{ "{\"messages\":[{\"tool_calls\":", "[", 3 },
		{ "{\"messages\":[{}],\"model\":", "[", 1 },
		{ "{\"messages\":", "[", 1 }
	};
	struct taken t;
	size_t i, n;
	char *text;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		n = BODY_DEPTH - cases[i].inside;
		text = nested(n, cases[i].before, cases[i].open, "");
		ck_assert_int_ne(take(text).outcome, BODY_TOO_DEEP);
		free(text);
		text = nested(n + 1, cases[i].before, cases[i].open, "");
		ck_assert_int_eq(take(text).outcome, BODY_TOO_DEEP);
		free(text);
		text = nested(10000, cases[i].before, cases[i].open, "");
		t = take_bytes(ENDPOINT_CHAT, text, strlen(text), 11, false);
		ck_assert_int_eq(t.outcome, BODY_TOO_DEEP);
		free(text);
	}
	text = nested(10000, "", "[", "");
	ck_assert_int_eq(take(text).outcome, BODY_TOO_DEEP);
	free(text);
	/* and the next body is not affected */
	ck_assert_int_eq(take(CHAT("\"a\"")).outcome, BODY_PROMPT);
}
END_TEST

START_TEST(many_messages)
{
	const size_t many = test_amount(100000);
	char *text = nested(many, "{\"messages\":[",
	    "{\"role\":\"user\",\"content\":\"abc\"},", "{}]}");
	struct taken t = take(text);

	ck_assert_int_eq(t.outcome, BODY_PROMPT);
	ck_assert_uint_eq(t.facts.messages, many + 1);
	/* m, role, list, part, text, end */
	ck_assert_uint_eq(t.units, many * (2 + 6 + 2 + 2 + 5 + 2) + 2);
	free(text);
}
END_TEST

/*
 * A text in many pieces: if a string were read again with each piece, 10^11
 * bytes in total, it would exceed any time limit.
 */
START_TEST(long_string_in_small_pieces)
{
	const size_t n = test_amount(2000000);
	char *text = nested(n, "{\"messages\":[{\"content\":\"", "x", "\"}]}");
	struct taken t = take_bytes(ENDPOINT_CHAT, text, strlen(text), 10,
	    false), whole = take(text);

	ck_assert(bodies_equal(&t, &whole));
	ck_assert_uint_eq(t.units, 2 + 2 + 2 + 2 + n + 2);
	free(text);
}
END_TEST

/* Only the beginning of 32 MB is given. */
START_TEST(large_body)
{
	const size_t n = test_amount(32 << 20), most = n / 16;
	char *text = nested(n, "{\"messages\":[{\"content\":\"", "x", "\"}]}");
	struct taken t = take_bytes(ENDPOINT_MESSAGES, text, most, 65536,
	    true);

	ck_assert_int_eq(t.outcome, BODY_PROMPT);
	ck_assert(t.facts.cut);
	ck_assert_uint_eq(t.units, most - strlen("{\"messages\":[{\"content\""
	    ":\"") + 8 + 2);
	free(text);
}
END_TEST

/* Nothing is read after body_cut. */
START_TEST(cut_is_the_end)
{
	struct body_facts facts;

	body_begin(b, p, ENDPOINT_CHAT);
	body_data(b, "{\"model\":\"m\",", 13);
	body_cut(b);
	body_data(b, "\"messages\":[{}]}", 16);
	ck_assert_int_eq(body_end(b, &facts), BODY_NO_PROMPT);
	ck_assert_uint_eq(facts.model_length, 1);
	ck_assert(facts.cut);
}
END_TEST

/* --------------------------------------------------------------- memory --- */

/* A body that needs every kind of allocation. */
static char *
hungry(void)
{
	return nested(9000, "{\"tools\":[{\"\\u0061\":1}],\"messages\":[{"
	    "\"content\":[{\"text\":\"\\n", "x", "\"},{\"text\":\"y\"}]}],"
	    "\"system\":\"s\"}\n");
}

static void
starve(enum endpoint endpoint, const char *text, bool for_ever)
{
	const struct pieces many = { .random = 5 };
	unsigned long fails;
	struct taken want = take_bytes(endpoint, text, strlen(text), 0, false);
	struct taken got;
	bool failed = true;

	for (fails = 1; failed; fails++) {
		ck_assert_uint_lt(fails, 1000);
		kvr_prompt_free(p);
		ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
		if (for_ever)
			alloc_fail_from(fails);
		else
			alloc_fail_at(fails);
		body_free(b);
		b = body_new();
		if (b != NULL)
			bodies_take(b, k, p, endpoint, text, strlen(text),
			    &many, &got);
		failed = alloc_count() >= fails;
		alloc_reset();
		if (b == NULL) {
			b = body_new();
			ck_assert_ptr_nonnull(b);
			continue;
		}
		if (failed)
			ck_assert_int_eq(got.outcome, BODY_NO_MEMORY);
		else
			ck_assert(bodies_equal(&got, &want));
		/* The next one succeeds. */
		got = take_bytes(endpoint, text, strlen(text), 0, false);
		ck_assert(bodies_equal(&got, &want));
	}
	ck_assert_uint_gt(fails, 6);
}

START_TEST(no_memory)
{
	char *text = hungry();

	starve(ENDPOINT_CHAT, text, false);
	starve(ENDPOINT_CHAT, text, true);
	starve(ENDPOINT_MESSAGES, text, false);
	starve(ENDPOINT_MESSAGES, text, true);
	free(text);
}
END_TEST

/* Memory of one body is reused for the next. */
START_TEST(memory_is_kept)
{
	char *text = hungry();

	take_bytes(ENDPOINT_MESSAGES, text, strlen(text), 0, false);
	alloc_reset();
	take_bytes(ENDPOINT_MESSAGES, text, strlen(text), 0, false);
	ck_assert_uint_eq(alloc_count(), 0);
	free(text);
}
END_TEST

/* Memory of a large body is given back, that of a small one is not. */
START_TEST(memory_is_given_back)
{
	const size_t n = 2 * HOLD_KEEP;
	char *large = nested(n, "{\"messages\":[{\"content\":\"", "\\n",
	    "\"}]}");
	char *small = hungry();

	take_bytes(ENDPOINT_MESSAGES, large, strlen(large), 65536, false);
	ck_assert_uint_gt(b->json.text.capacity, HOLD_KEEP);
	ck_assert_uint_gt(b->held.capacity, HOLD_KEEP);
	body_trim(b);
	ck_assert_uint_eq(b->json.text.capacity + b->held.capacity, 0);
	take_bytes(ENDPOINT_MESSAGES, small, strlen(small), 0, false);
	body_trim(b);
	ck_assert_uint_gt(b->held.capacity, 0);
	free(large);
	free(small);
}
END_TEST

/* The last body does not affect the next. */
START_TEST(bodies_are_apart)
{
	static const char *const texts[] = {
		"{\"model\":\"m\",\"cache_salt\":\"s\",\"tools\":[1],\"stream\""
		    ":true,\"stream_options\":{\"include_usage\":true},"
		    "\"messages\":[{\"content\":[{\"image_url\":\"u\"}]}],"
		    "\"system\":\"S\",\"prompt_logprobs\":1}",
		"{\"messages\":[{\"content\":\"cut", "{\"tools\":[[", "{,",
		"[", "", CHAT("\"a\""), "{\"model\":\"n\"}"
	};
	enum { TEXTS = sizeof(texts) / sizeof(*texts) };
	struct taken fresh, again;
	struct body *mine = b;
	size_t i, j;

	for (i = 0; i < TEXTS; i++)
		for (j = 0; j < TEXTS; j++) {
			take_bytes(ENDPOINT_MESSAGES, texts[i],
			    strlen(texts[i]), 0, i % 2 == 0);
			again = take(texts[j]);
			b = body_new();
			ck_assert_ptr_nonnull(b);
			fresh = take(texts[j]);
			body_free(b);
			b = mine;
			ck_assert(bodies_equal(&fresh, &again));
		}
}
END_TEST

Suite *suite_body_bad(void);

Suite *
suite_body_bad(void)
{
	Suite *s = suite_create("body_bad");
	TCase *c = tcase_create("body_bad");

	tcase_add_checked_fixture(c, bed_make, bed_free);
	tcase_add_test(c, outcomes);
	tcase_add_test(c, byte_order_mark);
	tcase_add_test(c, byte_order_mark_in_a_large_body);
	tcase_add_test(c, no_prompts_of_completions);
	tcase_add_test(c, system_alone);
	tcase_add_test(c, other_endpoint);
	tcase_add_test(c, other_endpoint_without_a_prompt);
	tcase_add_test(c, no_memory_later);
	tcase_add_test(c, single_bytes);
	tcase_add_test(c, flipped_bytes);
	tcase_add_test(c, broken_later);
	tcase_add_test(c, invalid_characters);
	tcase_add_test(c, lone_surrogates);
	tcase_add_loop_test(c, cut_anywhere, 0, 4);
	tcase_add_loop_test(c, cut_characters, 0, 4);
	tcase_add_test(c, cut_names_and_numbers);
	tcase_add_test(c, depth);
	tcase_add_test(c, many_messages);
	tcase_add_test(c, long_string_in_small_pieces);
	tcase_add_test(c, large_body);
	tcase_add_test(c, cut_is_the_end);
	tcase_add_test(c, no_memory);
	tcase_add_test(c, memory_is_kept);
	tcase_add_test(c, memory_is_given_back);
	tcase_add_test(c, bodies_are_apart);
	suite_add_tcase(s, c);
	return s;
}
