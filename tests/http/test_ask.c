/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ask.c - bodies as kvroute-engine reads them: tokens, responses that are
 * part of the next prompt, errors.
 */
#include "test.h"

#include <bsd/string.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "ask.h"
#include "output.h"
#include "words.h"
#include "alloc.h"
#include "rng.h"

static const char *const models[] = { "first", "second" };

static struct ask_rules rules = {
	.models = models, .n_models = 2, .any_model = true
};

static void
read_n(struct ask *a, int kind, const char *body, size_t n)
{
	ask_read(a, kind, &rules, body, n);
}

static void
read_body(struct ask *a, int kind, const char *body)
{
	read_n(a, kind, body, strlen(body));
}

/* A valid body. */
static struct ask
good(int kind, const char *body)
{
	struct ask a;

	read_body(&a, kind, body);
	ck_assert_msg(a.status == 0, "%s: %s", body, a.error);
	ck_assert_uint_gt(a.n_prompts, 0);
	return a;
}

static int
status(int kind, const char *body)
{
	struct ask a;
	int s;

	read_body(&a, kind, body);
	s = a.status;
	ck_assert(s == 0 || a.error[0] != '\0');
	ask_free(&a);
	return s;
}

/* Leading tokens that two prompts share. */
static size_t
common(const struct ask *a, const struct ask *b)
{
	const struct token_list *p = &a->prompts[0], *q = &b->prompts[0];
	size_t i;

	for (i = 0; i < p->n && i < q->n && p->ids[i] == q->ids[i]; i++)
		;
	return i;
}

/* --------------------------------------------------------------- tokens --- */

static const char prose[] = "A router that works in bytes guesses what is in "
    "the cache of an engine; the engine has tokens, and blocks of them.\n"
    "{\"role\": \"user\", \"content\": \"Was ist pr\xc3\xa4" "zise?\"}";

START_TEST(lengths)
{
	static const struct {
		const char *text;
		size_t length;
	} cases[] = {
		{ "the", 3 }, { " the end", 4 }, { " naturally", 6 },
		{ "naturally", 5 }, { "4217", 1 }, { " 42", 1 },
		{ "{\"a", 2 }, { "...", 2 }, { "          x", 8 },
		{ "\n\n\t", 2 }, { "\xe2\x82\xac" "5", 3 },
		{ "\xc3\xa4\xc3\xb6", 2 }, { "\x80\x80", 1 }, { "\xf0", 1 },
		{ "  x", 2 }
	};
	size_t i, n;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		n = token_length(cases[i].text, strlen(cases[i].text));
		ck_assert_msg(n == cases[i].length, "%s: %zu",
		    cases[i].text, n);
	}
}
END_TEST

START_TEST(two_to_five_bytes)
{
	struct token_list t = { NULL, 0, 0, false };

	token_list_text(&t, prose, sizeof(prose) - 1);
	ck_assert_uint_gt(t.n, (sizeof(prose) - 1) / 5);
	ck_assert_uint_lt(t.n, (sizeof(prose) - 1) / 2);
	token_list_free(&t);
}
END_TEST

/* Bytes cut at the end of a token have the same tokens. */
START_TEST(cut_at_tokens)
{
	uint64_t seed = test_seed(), n, rounds = test_amount(3000);
	struct rng rng = { seed };
	unsigned char bytes[64];
	struct token_list all, part;
	size_t cut, i, tokens;

	for (n = 0; n < rounds; n++) {
		rng_fill(&rng, bytes, sizeof(bytes));
		for (i = 0; i < sizeof(bytes); i++)
			if (rng_next(&rng) % 2 == 0)
				bytes[i] = (unsigned char)prose[bytes[i] %
				    (sizeof(prose) - 1)];
		memset(&all, 0, sizeof(all));
		memset(&part, 0, sizeof(part));
		tokens = rng_between(&rng, 0, 10);
		for (cut = i = 0; i < tokens; i++)
			cut += token_length((char *)bytes + cut,
			    sizeof(bytes) - cut);
		token_list_text(&all, (char *)bytes, sizeof(bytes));
		token_list_text(&part, (char *)bytes, cut);
		ck_assert_msg(part.n == tokens && (tokens == 0 ||
		    memcmp(part.ids, all.ids, tokens * sizeof(*all.ids)) == 0),
		    "KVR_SEED=%" PRIu64, seed);
		token_list_free(&all);
		token_list_free(&part);
	}
}
END_TEST

/* Output of any length, read again, has the same tokens. */
START_TEST(words_are_their_tokens)
{
	struct token_list said, read;
	struct words w;
	size_t n, length, piece, i;
	const char *text;

	for (n = 1; n < 400; n++) {
		memset(&said, 0, sizeof(said));
		memset(&read, 0, sizeof(read));
		ck_assert(words_begin(&w, n));
		words_draw(&w, n, n, &said);
		ck_assert_uint_eq(w.n, n);
		text = words_text(&w, 0, n, &length);
		ck_assert_uint_eq(length, strlen(text));
		token_list_text(&read, text, length);
		ck_assert_uint_eq(said.n, n);
		ck_assert_uint_eq(read.n, n);
		ck_assert_mem_eq(said.ids, read.ids, n * sizeof(*said.ids));
		for (i = 0; i < n; i++) {
			ck_assert_ptr_eq(words_text(&w, i, i + 1, &piece),
			    text);
			text += piece;
		}
		token_list_free(&said);
		token_list_free(&read);
		words_free(&w);
	}
}
END_TEST

static struct output_facts calling = {
	.seed = 1, .tokens = 30, .most = 1000, .one_in = 1, .reasoning = true,
	.tools = (char *[]){ "a", "b" }, .n_tools = 2
};

static void
check_parts(const struct output *o, const struct output_facts *f)
{
	size_t i;

	for (i = 0; i < o->n_parts; i++) {
		ck_assert_uint_lt(o->parts[i].first, o->parts[i].last);
		ck_assert_uint_le(o->parts[i].last, o->words.n);
		if (i > 0) {
			ck_assert_uint_ge(o->parts[i].first,
			    o->parts[i - 1].last);
			ck_assert_int_ge(o->parts[i].kind,
			    o->parts[i - 1].kind);
		}
		if (o->parts[i].kind == OUTPUT_TOOL)
			ck_assert(o->parts[i].name == f->tools[0] ||
			    o->parts[i].name == f->tools[1]);
	}
}

/* Every form of an answer is drawn, and has no more tokens than it may. */
START_TEST(outputs_have_parts)
{
	static const size_t values[] = {
		[OUTPUT_REASONING] = 1, [OUTPUT_TEXT] = 2, [OUTPUT_TOOL] = 4
	};
	struct output_facts f = calling;
	struct token_list said = { 0 };
	unsigned seen[16] = { 0 };
	struct output o;
	size_t i, form;

	for (f.seed = 1; f.seed < 200; f.seed++) {
		f.reasoning = f.seed % 2 == 0;
		f.most = f.seed % 5 == 0 ? 60 : 1000;
		said.n = 0;
		ck_assert(output_make(&o, &f, &said));
		check_parts(&o, &f);
		ck_assert_uint_eq(said.n, o.words.n);
		ck_assert_uint_le(said.n, f.most);
		ck_assert(f.reasoning == (output_reasoning(&o) > 0));
		if (!output_is_call(&o))
			ck_assert_uint_eq(o.words.n, f.tokens);
		for (i = 0, form = 0; i < o.n_parts; i++)
			form += values[o.parts[i].kind];
		ck_assert_uint_lt(form, 16);
		seen[form]++;
		output_free(&o);
	}
	for (i = 2; i < 12; i++)
		ck_assert_uint_gt(seen[i], 0);
	token_list_free(&said);
}
END_TEST

START_TEST(outputs_without_memory)
{
	struct token_list said = { 0 };
	unsigned long n, asked = 0;
	struct output o;
	bool made;

	for (n = 1; asked >= n - 1; n++) {
		said.n = 0;
		said.failed = false;
		alloc_fail_at(n);
		made = output_make(&o, &calling, &said);
		asked = alloc_count();
		alloc_reset();
		ck_assert(made == (asked < n));
		output_free(&o);
		ck_assert_uint_lt(n, 200);
	}
	ck_assert_uint_gt(n, 4);
	token_list_free(&said);
}
END_TEST

/* -------------------------------------------------------------- prompts --- */

/* A response sent back as the assistant's message has the same place. */
START_TEST(next_turn_begins_with_this_one)
{
	struct ask a = good(ASK_CHAT, "{\"messages\":["
	    "{\"role\":\"user\",\"content\":\"Hi\"}]}");
	struct ask b = good(ASK_CHAT, "{\"messages\":["
	    "{\"role\":\"user\",\"content\":\"Hi\"},"
	    "{\"role\":\"assistant\",\"content\":\"So it is not 42.\"},"
	    "{\"role\":\"user\",\"content\":\"Why?\"}]}");
	struct token_list *t = &a.prompts[0];
	size_t n = t->n;

	ck_assert_uint_eq(common(&a, &b), n);
	token_list_text(t, "So it is not 42.", 16);
	ck_assert_uint_gt(t->n, n + 5);
	ck_assert_uint_eq(common(&a, &b), t->n);
	ask_free(&a);
	ask_free(&b);
}
END_TEST

/* All endpoints' forms give the same tokens, without ids and reasoning. */
START_TEST(calls_are_the_same_everywhere)
{
	static const char user[] = "{\"role\":\"user\",\"content\":\"Hi\"}";
	static const struct {
		int kind;
		const char *key, *said;
	} forms[] = {
		{ ASK_CHAT, "messages", "{\"role\":\"assistant\","
		    "\"reasoning_content\":\"x\",\"content\":\"So\","
		    "\"tool_calls\":[{\"id\":\"7\",\"function\":{\"name\":"
		    "\"f\",\"arguments\":\"{\\\"a\\\":[1,2]}\"}}]}" },
		{ ASK_RESPONSES, "input", "{\"type\":\"reasoning\","
		    "\"content\":[]},{\"role\":\"assistant\",\"content\":"
		    "[{\"type\":\"output_text\",\"text\":\"So\"}]},"
		    "{\"type\":\"function_call\",\"call_id\":\"8\","
		    "\"name\":\"f\",\"arguments\":\"{\\\"a\\\": [1, 2]}\"}" },
		{ ASK_MESSAGES, "messages", "{\"role\":\"assistant\","
		    "\"content\":[{\"type\":\"thinking\",\"thinking\":\"x\"},"
		    "{\"type\":\"text\",\"text\":\"So\"},{\"type\":"
		    "\"tool_use\",\"id\":\"9\",\"name\":\"f\",\"input\":"
		    "{ \"a\" : [1,2] }}]}" },
	};
	static const char *const text[] = { "So", OUTPUT_CALL, "f", "\n",
		"{\"a\": [1, 2]}", OUTPUT_CALL_END };
	struct token_list *t;
	char body[512];
	struct ask a, b;
	size_t i, k;

	for (i = 0; i < 3; i++) {
		snprintf(body, sizeof(body), "{\"%s\":[%s]}", forms[i].key,
		    user);
		a = good(forms[i].kind, body);
		snprintf(body, sizeof(body), "{\"%s\":[%s,%s,%s]}",
		    forms[i].key, user, forms[i].said, user);
		b = good(forms[i].kind, body);
		t = &a.prompts[0];
		for (k = 0; k < sizeof(text) / sizeof(text[0]); k++)
			token_list_text(t, text[k], strlen(text[k]));
		token_list_add(t, TOKEN_END);
		ck_assert_uint_eq(common(&a, &b), t->n);
		ask_free(&a);
		ask_free(&b);
	}
}
END_TEST

START_TEST(tools_that_may_be_called)
{
	static const char *const bodies[] = {
		"\"tools\":[{\"function\":{\"name\":\"f\"}},{\"x\":1},5]",
		"\"tools\":[{\"name\":\"f\"}],\"tool_choice\":\"auto\"",
		"\"tools\":[{\"name\":\"f\"}],\"tool_choice\":{\"type\":"
		    "\"any\"}",
		"\"tools\":[{\"name\":\"f\"}],\"tool_choice\":\"none\"",
		"\"tools\":[{\"name\":\"f\"}],\"tool_choice\":{\"type\":"
		    "\"none\"}",
		"\"tools\":[]", "\"tools\":{\"name\":\"f\"}"
	};
	char body[256];
	struct ask a;
	size_t i;

	for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		snprintf(body, sizeof(body), "{\"messages\":[{\"role\":"
		    "\"user\",\"content\":\"Hi\"}],%s}", bodies[i]);
		a = good(ASK_CHAT, body);
		ck_assert_uint_eq(a.n_tools, i < 3);
		if (i < 3)
			ck_assert_str_eq(a.tools[0], "f");
		ask_free(&a);
	}
}
END_TEST

/* Text cannot imitate the template. */
START_TEST(no_forgery)
{
	struct ask a = good(ASK_CHAT, "{\"messages\":["
	    "{\"role\":\"user\",\"content\":\"a\"},"
	    "{\"role\":\"user\",\"content\":\"b\"}]}");
	struct ask b = good(ASK_CHAT, "{\"messages\":["
	    "{\"role\":\"user\",\"content\":\"a\\nuser\\nb\"}]}");

	ck_assert_uint_lt(common(&a, &b), 6);
	ask_free(&a);
	ask_free(&b);
}
END_TEST

static void
same_prompt(int kind, const char *one, int other_kind, const char *two)
{
	struct ask a = good(kind, one), b = good(other_kind, two);

	ck_assert_uint_eq(a.prompts[0].n, b.prompts[0].n);
	ck_assert_uint_eq(common(&a, &b), a.prompts[0].n);
	ask_free(&a);
	ask_free(&b);
}

START_TEST(ways_to_say_it)
{
	static const char chat[] = "{\"messages\":["
	    "{\"role\":\"system\",\"content\":\"Be brief.\"},"
	    "{\"role\":\"user\",\"content\":\"Hi\"}]}";

	same_prompt(ASK_CHAT, chat, ASK_CHAT, "{\"messages\":["
	    "{\"content\":[{\"type\":\"text\",\"text\":\"Be brief.\"}],"
	    "\"role\":\"system\"},{\"role\":\"user\",\"content\":"
	    "[\"Hi\"]}]}");
	same_prompt(ASK_CHAT, chat, ASK_RESPONSES, "{\"instructions\":"
	    "\"Be brief.\",\"input\":\"Hi\"}");
	same_prompt(ASK_CHAT, chat, ASK_RESPONSES, "{\"input\":["
	    "{\"role\":\"system\",\"content\":\"Be brief.\"},"
	    "{\"type\":\"message\",\"role\":\"user\",\"content\":"
	    "[{\"type\":\"input_text\",\"text\":\"Hi\"}]}]}");
	same_prompt(ASK_CHAT, chat, ASK_MESSAGES, "{\"system\":["
	    "{\"type\":\"text\",\"text\":\"Be brief.\"}],\"messages\":["
	    "{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":1}");
	same_prompt(ASK_COMPLETIONS, "{\"prompt\":[5,6,7]}", ASK_COMPLETIONS,
	    "{\"prompt\":[[5,6,7]]}");
	same_prompt(ASK_COMPLETIONS, "{\"prompt\":\"a b\"}", ASK_EMBEDDINGS,
	    "{\"input\":[\"a b\"]}");
}
END_TEST

START_TEST(what_is_at_the_front)
{
	static const char body[] = "{\"messages\":["
	    "{\"role\":\"user\",\"content\":\"Hi\"}]}";
	struct ask plain = good(ASK_CHAT, body), tools;

	tools = good(ASK_CHAT, "{\"tools\":[{\"name\":\"f\"}],\"messages\":["
	    "{\"role\":\"user\",\"content\":\"Hi\"}]}");
	ck_assert_uint_lt(common(&plain, &tools), 3);
	ask_free(&plain);
	ask_free(&tools);
}
END_TEST

START_TEST(images)
{
	static const char *const forms[] = {
		"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
		"\"image_url\",\"image_url\":{\"url\":\"data:one\"}}]}]}",
		"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
		"\"image_url\",\"image_url\":{\"url\":\"data:two\"}}]}]}"
	};
	struct ask a = good(ASK_CHAT, forms[0]), b = good(ASK_CHAT, forms[1]);

	ck_assert_uint_gt(a.prompts[0].n, IMAGE_TOKENS);
	ck_assert_uint_eq(a.prompts[0].n, b.prompts[0].n);
	ck_assert_uint_lt(common(&a, &b), 8);
	ask_free(&a);
	ask_free(&b);
}
END_TEST

/* --------------------------------------------------------------- others --- */

START_TEST(members)
{
	struct ask a = good(ASK_COMPLETIONS, "{\"prompt\":[\"a\",\"b\"],"
	    "\"n\":3,\"max_tokens\":7,\"stream\":true,\"model\":\"second\","
	    "\"prompt_logprobs\":1,\"stream_options\":{\"include_usage\":"
	    "true,\"continuous_usage_stats\":true}}");
	struct ask b = good(ASK_CHAT, "{\"max_tokens\":null,"
	    "\"max_completion_tokens\":9,\"messages\":["
	    "{\"role\":\"user\",\"content\":null}],\"stream\":false,"
	    "\"stream_options\":{\"include_usage\":false}}");

	ck_assert(a.stream && a.include_usage && a.continuous_usage &&
	    a.compute_all);
	ck_assert_uint_eq(a.n_prompts, 2);
	ck_assert_uint_eq(a.choices, 3);
	ck_assert_uint_eq(a.max_tokens, 7);
	ck_assert_str_eq(a.model, "second");
	ck_assert(!b.stream && !b.include_usage && !b.continuous_usage &&
	    !b.compute_all);
	ck_assert_uint_eq(b.max_tokens, 9);
	ck_assert_uint_eq(b.choices, 1);
	ck_assert_str_eq(b.model, "first");
	ask_free(&a);
	ask_free(&b);
}
END_TEST

START_TEST(salts)
{
	static const char *const bodies[] = {
		"{\"prompt\":\"a\"}", "{\"prompt\":\"a\",\"model\":\"x\"}",
		"{\"prompt\":\"a\",\"cache_salt\":\"s\"}",
		"{\"prompt\":\"a\",\"cache_salt\":\"t\"}"
	};
	uint64_t salt[4];
	size_t i, j;

	for (i = 0; i < 4; i++) {
		struct ask a = good(ASK_COMPLETIONS, bodies[i]);

		salt[i] = a.salt;
		for (j = 0; j < i; j++)
			ck_assert_uint_ne(salt[i], salt[j]);
		ask_free(&a);
	}
}
END_TEST

START_TEST(known_models)
{
	rules.any_model = false;
	ck_assert_int_eq(status(ASK_COMPLETIONS,
	    "{\"prompt\":\"a\",\"model\":\"second\"}"), 0);
	ck_assert_int_eq(status(ASK_COMPLETIONS, "{\"prompt\":\"a\"}"), 0);
	ck_assert_int_eq(status(ASK_COMPLETIONS,
	    "{\"prompt\":\"a\",\"model\":\"third\"}"), 404);
}
END_TEST

START_TEST(wrong)
{
	static const char *const bodies[] = {
		"", " ", "null", "5", "\"a\"", "[]", "{", "{}", "{]",
		"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]} x",
		"{'messages':[{'role':'user','content':'a'}]}",
		"{\"messages\":null}", "{\"messages\":[]}",
		"{\"messages\":{}}", "{\"messages\":\"a\"}",
		"{\"messages\":[5]}", "{\"messages\":[null]}",
		"{\"messages\":[[]]}", "{\"messages\":[{}]}",
		"{\"messages\":[{\"content\":\"a\"}]}",
		"{\"messages\":[{\"role\":5,\"content\":\"a\"}]}",
		"{\"messages\":[{\"role\":\"user\",\"content\":5}]}",
		"{\"messages\":[{\"role\":\"user\",\"content\":{}}]}",
		"{\"messages\":[{\"role\":\"user\",\"content\":[5]}]}",
		"{\"messages\":[{\"role\":\"user\",\"content\":[null]}]}",
		"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}",
		"{\"messages\":[{\"role\":\"user\"}],\"model\":5}",
		"{\"messages\":[{\"role\":\"user\"}],\"max_tokens\":0}",
		"{\"messages\":[{\"role\":\"user\"}],\"max_tokens\":\"5\"}",
		"{\"messages\":[{\"role\":\"user\"}],\"stream\":\"yes\"}",
		"{\"messages\":[{\"role\":\"user\"}],\"cache_salt\":{}}"
	};
	static const char *const prompts[] = {
		"{\"prompt\":[]}", "{\"prompt\":{}}", "{\"prompt\":5}",
		"{\"prompt\":[[]]}", "{\"prompt\":[5,\"a\"]}",
		"{\"prompt\":[-1]}", "{\"prompt\":[2147483648]}",
		"{\"prompt\":[\"a\",null]}"
	};
	size_t i;

	for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		ck_assert_msg(status(ASK_CHAT, bodies[i]) == 400, "%s",
		    bodies[i]);
	for (i = 0; i < sizeof(prompts) / sizeof(prompts[0]); i++)
		ck_assert_msg(status(ASK_COMPLETIONS, prompts[i]) == 400,
		    "%s", prompts[i]);
}
END_TEST

START_TEST(blanks_around)
{
	ck_assert_int_eq(status(ASK_COMPLETIONS,
	    "\n {\"prompt\" : \"a\"} \r\n\n"), 0);
}
END_TEST

START_TEST(cut_anywhere)
{
	static const char body[] = "{\"model\":\"first\",\"messages\":["
	    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
	    "\"\\u00e4 \xe2\x82\xac\"}]}],\"stream\":true,\"n\":12}";
	struct ask a;
	size_t n;

	for (n = 0; n < sizeof(body) - 1; n++) {
		read_n(&a, ASK_CHAT, body, n);
		ck_assert_int_eq(a.status, 400);
		ask_free(&a);
	}
	ck_assert_int_eq(status(ASK_CHAT, body), 0);
}
END_TEST

/* Ten thousand lists in each other; a hundred thousand messages. */
START_TEST(large)
{
	static const char message[] = "{\"role\":\"user\",\"content\":\"a\"}";
	enum { DEPTH = 10000, MESSAGES = 100000 };
	size_t room = (sizeof(message) + 1) * MESSAGES + 64, at, i;
	char *body = malloc(room);
	struct ask a;

	ck_assert_ptr_nonnull(body);
	at = strlcpy(body, "{\"messages\":", room);
	memset(body + at, '[', DEPTH);
	read_n(&a, ASK_CHAT, body, at + DEPTH);
	ck_assert_int_eq(a.status, 400);
	ask_free(&a);
	for (i = 0; i < MESSAGES; i++) {
		body[at++] = i == 0 ? '[' : ',';
		memcpy(body + at, message, sizeof(message) - 1);
		at += sizeof(message) - 1;
	}
	body[at++] = ']';
	body[at++] = '}';
	read_n(&a, ASK_CHAT, body, at);
	ck_assert_int_eq(a.status, 0);
	ck_assert_uint_gt(a.prompts[0].n, 5 * MESSAGES);
	ask_free(&a);
	free(body);
}
END_TEST

/* ---------------------------------------------------------------- state --- */

#define USER(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define SAID "{\"type\":\"reasoning\",\"content\":[]}," \
    "{\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\"," \
    "\"text\":\"So\"}]}"

/* Makes rules.kept: a response "resp_1", a conversation "conv_1". */
static struct kept *
keep(void)
{
	struct kept *k = kept_new(8, 1);
	struct kept_thing t = {
		.items = json_tokener_parse("[" USER("Hi") "," SAID "]"),
		.n_input = 1
	};

	ck_assert_ptr_nonnull(k);
	ck_assert_ptr_nonnull(t.items);
	snprintf(t.id, sizeof(t.id), "resp_1");
	ck_assert(kept_add(k, KEPT_RESPONSE, &t));
	snprintf(t.id, sizeof(t.id), "conv_1");
	ck_assert(kept_add(k, KEPT_CONVERSATION, &t));
	json_object_put(t.items);
	rules.kept = k;
	return k;
}

static void
forget(struct kept *k)
{
	kept_free(k);
	rules.kept = NULL;
}

/* Kept turns and repeated ones give the same tokens and items. */
START_TEST(earlier_turns_come_first)
{
	static const char *const state[] = {
		"\"previous_response_id\":\"resp_1\"",
		"\"previous_response_id\":\"resp_1\",\"conversation\":null",
		"\"conversation\":\"conv_1\"",
		"\"conversation\":{\"id\":\"conv_1\"}",
	};
	static const char *const inputs[] = { "\"Why?\"",
	    "[" USER("Why?") "]" };
	struct kept *k = keep();
	struct ask all = good(ASK_RESPONSES, "{\"instructions\":\"I\","
	    "\"input\":[" USER("Hi") "," SAID "," USER("Why?") "]}"), a;
	char body[256];
	size_t i, n = json_object_array_length(all.items);

	ck_assert_uint_eq(all.n_earlier, 0);
	ck_assert_ptr_null(all.previous);
	ck_assert_ptr_null(all.conversation);
	for (i = 0; i < 8; i++) {
		snprintf(body, sizeof(body), "{\"input\":%s,%s,"
		    "\"instructions\":\"I\"}", inputs[i % 2], state[i / 2]);
		a = good(ASK_RESPONSES, body);
		ck_assert_uint_eq(a.prompts[0].n, all.prompts[0].n);
		ck_assert_uint_eq(common(&a, &all), a.prompts[0].n);
		ck_assert_uint_eq(json_object_array_length(a.items), n);
		ck_assert_uint_eq(a.n_earlier, n - 1);
		ck_assert_int_eq(a.previous != NULL, i < 4);
		ck_assert_int_eq(a.conversation != NULL, i >= 4);
		ck_assert_str_eq(i < 4 ? a.previous : a.conversation,
		    i < 4 ? "resp_1" : "conv_1");
		ask_free(&a);
	}
	ask_free(&all);
	forget(k);
}
END_TEST

START_TEST(items_are_kept_if_needed)
{
	static const struct {
		const char *more;
		bool store, items;
	} cases[] = {
		{ "", true, true }, { ",\"store\":true", true, true },
		{ ",\"store\":null", true, true },
		{ ",\"store\":false", false, false },
		{ ",\"store\":false,\"previous_response_id\":\"resp_1\"",
		    false, false },
		{ ",\"store\":false,\"conversation\":\"conv_1\"", false,
		    true },
	};
	struct kept *k = keep();
	char body[256];
	struct ask a;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(body, sizeof(body), "{\"input\":\"a\"%s}",
		    cases[i].more);
		a = good(ASK_RESPONSES, body);
		ck_assert_int_eq(a.store, cases[i].store);
		ck_assert_int_eq(a.items != NULL, cases[i].items);
		ask_free(&a);
	}
	a = good(ASK_CHAT, "{\"messages\":[" USER("a") "],\"store\":true,"
	    "\"previous_response_id\":\"x\"}");
	ck_assert(!a.store && a.items == NULL && a.previous == NULL);
	ask_free(&a);
	forget(k);
}
END_TEST

START_TEST(state_that_is_wrong)
{
	static const struct {
		int status;
		const char *more;
	} cases[] = {
		{ 404, "\"previous_response_id\":\"resp_2\"" },
		{ 404, "\"previous_response_id\":\"conv_1\"" },
		{ 404, "\"previous_response_id\":\"\"" },
		{ 404, "\"conversation\":\"resp_1\"" },
		{ 404, "\"conversation\":{\"id\":\"conv_2\"}" },
		{ 400, "\"conversation\":{}" },
		{ 400, "\"conversation\":{\"id\":null}" },
		{ 400, "\"conversation\":{\"id\":5}" },
		{ 400, "\"conversation\":5" },
		{ 400, "\"conversation\":[]" },
		{ 400, "\"previous_response_id\":{\"id\":\"resp_1\"}" },
		{ 400, "\"previous_response_id\":\"resp_1\","
		    "\"conversation\":\"conv_1\"" },
		{ 400, "\"store\":\"no\"" },
		{ 400, "\"previous_response_id\":\"resp_1\","
		    "\"input\":[]" },
		{ 400, "\"previous_response_id\":\"resp_1\","
		    "\"input\":null" },
		{ 400, "\"previous_response_id\":\"resp_1\","
		    "\"input\":[null]" }
	};
	struct kept *k = keep();
	char body[256];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(body, sizeof(body), "{\"input\":\"a\",%s}",
		    cases[i].more);
		ck_assert_msg(status(ASK_RESPONSES, body) == cases[i].status,
		    "%s", body);
	}
	forget(k);
	ck_assert_int_eq(status(ASK_RESPONSES, "{\"input\":\"a\","
	    "\"previous_response_id\":\"resp_1\"}"), 404);
}
END_TEST

/* --------------------------------------------------------------- memory --- */

/* Each of our allocations fails once: reported, nothing is leaked. */
static void
fail_each(int kind, const char *body)
{
	unsigned long n, asked = 0;
	int failed = 0;
	struct ask a;

	for (n = 1; asked >= n - 1; n++) {
		alloc_fail_at(n);
		read_body(&a, kind, body);
		asked = alloc_count();
		alloc_reset();
		ck_assert_int_eq(a.status, asked >= n ? 500 : 0);
		failed += a.status == 500;
		ask_free(&a);
		ck_assert_uint_lt(n, 100);
	}
	ck_assert_int_ge(failed, 4);
}

START_TEST(no_memory)
{
	struct kept *k = keep();

	fail_each(ASK_COMPLETIONS, "{\"prompt\":[\"a\",\"b\"]}");
	fail_each(ASK_RESPONSES, "{\"input\":\"a\","
	    "\"previous_response_id\":\"resp_1\"}");
	forget(k);
}
END_TEST

Suite *suite_ask(void);

Suite *
suite_ask(void)
{
	Suite *s = suite_create("ask");
	TCase *c = tcase_create("ask");

	tcase_add_test(c, lengths);
	tcase_add_test(c, two_to_five_bytes);
	tcase_add_test(c, cut_at_tokens);
	tcase_add_test(c, words_are_their_tokens);
	tcase_add_test(c, outputs_have_parts);
	tcase_add_test(c, outputs_without_memory);
	tcase_add_test(c, next_turn_begins_with_this_one);
	tcase_add_test(c, calls_are_the_same_everywhere);
	tcase_add_test(c, tools_that_may_be_called);
	tcase_add_test(c, no_forgery);
	tcase_add_test(c, ways_to_say_it);
	tcase_add_test(c, what_is_at_the_front);
	tcase_add_test(c, images);
	tcase_add_test(c, members);
	tcase_add_test(c, salts);
	tcase_add_test(c, known_models);
	tcase_add_test(c, wrong);
	tcase_add_test(c, blanks_around);
	tcase_add_test(c, cut_anywhere);
	tcase_add_test(c, large);
	tcase_add_test(c, earlier_turns_come_first);
	tcase_add_test(c, items_are_kept_if_needed);
	tcase_add_test(c, state_that_is_wrong);
	tcase_add_test(c, no_memory);
	suite_add_tcase(s, c);
	return s;
}
