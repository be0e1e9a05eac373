/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_body_order.c - the prompt does not depend on the order of keys in a
 * message and within it; nothing, null and an empty text are the same; whether
 * reasoning counts.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "body_in.h"
#include "reply_json.h"
#include "rng.h"

#include "body_bed.h"

enum { TEXT_MAX = 1 << 16, MEMBERS_MAX = 24 };

static struct taken
take(enum endpoint endpoint, const char *text, size_t n, size_t step)
{
	struct pieces pieces = { .step = step };
	struct taken t;

	bodies_take(b, k, p, endpoint, text, n, &pieces, &t);
	return t;
}

/* Texts have ' for ". */
static struct taken
take_quoted(enum endpoint endpoint, const char *quoted)
{
	char *text = answers_text(quoted, "\n");
	struct taken t = take(endpoint, text, strlen(text), 0);

	free(text);
	return t;
}

/* -------------------------------------------------------------- shuffle --- */

struct member {
	struct view key, value;
};

static char *shuffled(char *out, struct view v, bool keep, struct rng *rng);

static void
swap_some(struct member *m, size_t n, struct rng *rng)
{
	struct member other;
	size_t i, j;

	for (i = n; i-- > 1;) {
		j = (size_t)rng_between(rng, 0, i);
		other = m[i];
		m[i] = m[j];
		m[j] = other;
	}
}

/* The arguments of a tool keep their order; `input` may be a list of items. */
static bool
is_whole(struct view key, struct view value)
{
	return view_is(key, "input") && *value.at == '{';
}

struct members {
	struct member m[MEMBERS_MAX];
	size_t n;
};

static bool
member_take(void *context, struct view key, struct view value)
{
	struct members *all = context;

	ck_assert_uint_lt(all->n + 1, MEMBERS_MAX);
	all->m[all->n++] = (struct member){ key, value };
	return true;
}

static char *
shuffled_object(char *out, const struct members *all, bool keep,
    struct rng *rng)
{
	const struct member *m = all->m;
	size_t i;

	*out++ = '{';
	for (i = 0; i < all->n; i++) {
		out += sprintf(out, "%s\"%.*s\":", i > 0 ? "," : "",
		    (int)m[i].key.n, m[i].key.at);
		out = shuffled(out, m[i].value, keep || is_whole(m[i].key,
		    m[i].value), rng);
	}
	*out++ = '}';
	return out;
}

static char *
shuffled(char *out, struct view v, bool keep, struct rng *rng)
{
	struct members all = { .n = 0 };
	size_t i;

	if (!view_is_object(v) && !view_is_list(v)) {
		memcpy(out, v.at, v.n);
		return out + v.n;
	}
	ck_assert(view_parts(v, member_take, &all));
	if (view_is_object(v) && !keep)
		swap_some(all.m, all.n, rng);
	if (view_is_object(v))
		return shuffled_object(out, &all, keep, rng);
	*out++ = '[';
	for (i = 0; i < all.n; i++) {
		out = stpcpy(out, i > 0 ? "," : "");
		out = shuffled(out, all.m[i].value, keep, rng);
	}
	*out++ = ']';
	return out;
}

static const struct {
	enum endpoint endpoint;
	const char *body;
} bodies[] = {
	{ ENDPOINT_CHAT, "{'model':'m','messages':[{'role':'system','content':"
	    "'S','name':'n'},{'role':'user','content':[{'type':'text','text':"
	    "'a'},{'type':'image_url','image_url':{'url':'http://x','detail':"
	    "'low'}},{'type':'file','file':{'file_id':'f','filename':'g'}}]},"
	    "{'role':'assistant','content':'b','name':'x','refusal':'no',"
	    "'reasoning_content':'hm','reasoning':'oh','tool_calls':[{'id':'c',"
	    "'type':'function','function':{'name':'f','arguments':'{}'}},{'id':"
	    "'d','custom':{'name':'g','input':'i'},'type':'custom'}],'audio':"
	    "{'id':'a'},'function_call':{'name':'h','arguments':'j'}},{'role':"
	    "'tool','content':'42','tool_call_id':'c'}],'stream':true}" },
	{ ENDPOINT_MESSAGES, "{'system':[{'type':'text','text':'S'}],"
	    "'messages':[{'role':'assistant','content':[{'type':'thinking',"
	    "'thinking':'hm','signature':'s'},{'type':'text','text':'t'},"
	    "{'type':'tool_use','id':'t','name':'f','input':{'b':1,'a':{'d':2,"
	    "'c':3}}},{'type':'redacted_thinking','data':'zz'}]},{'role':"
	    "'user','content':[{'type':'tool_result','tool_use_id':'t',"
	    "'content':[{'type':'text','text':'r'},{'type':'image','source':"
	    "{'type':'base64','media_type':'image/png','data':'AAAA'}}],'name':"
	    "'n'},{'type':'document','source':{'type':'content','content':["
	    "{'type':'text','text':'u'}]},'title':'T','context':'C'}]}]}" },
	{ ENDPOINT_RESPONSES, "{'instructions':'I','input':[{'role':'user',"
	    "'content':'q'},{'type':'reasoning','id':'r','summary':[{'type':"
	    "'summary_text','text':'s'}],'content':[{'type':'reasoning_text',"
	    "'text':'hm'}]},{'type':'function_call','call_id':'c','name':'f',"
	    "'arguments':'{}'},{'type':'function_call_output','call_id':'c',"
	    "'output':[{'type':'input_text','text':'o'},{'type':'input_image',"
	    "'image_url':'http://x','detail':'high'}]},{'type':'message','role'"
	    ":'assistant','content':[{'type':'output_text','text':'x'}]}]}" }
};
enum { BODIES = sizeof(bodies) / sizeof(*bodies) };

START_TEST(order_of_keys)
{
	struct rng rng = { test_seed() };
	const uint64_t seed = rng.state;
	static char out[TEXT_MAX];
	char *text = answers_text(bodies[_i / 2].body, "\n");
	enum endpoint e = bodies[_i / 2].endpoint;
	struct taken want, t;
	struct view v = { text, strlen(text) };
	size_t round, n;

	body_reasoning(b, _i % 2 == 1);
	want = take(e, text, v.n, 0);
	ck_assert_int_eq(want.outcome, BODY_PROMPT);
	for (round = 0; round < test_amount(3000); round++) {
		n = (size_t)(shuffled(out, v, false, &rng) - out);
		t = take(e, out, n, round % 40);
		ck_assert_msg(t.units == want.units && t.hash == want.hash &&
		    t.facts.messages == want.facts.messages &&
		    t.facts.opening == want.facts.opening &&
		    t.facts.extends == want.facts.extends,
		    "seed %llu: %.*s", (unsigned long long)seed, (int)n, out);
	}
	free(text);
}
END_TEST

/* ------------------------------------------------- the same, or another --- */

#define CHAT(message) "{'messages':[{'role':'user','content':'q'}," message "]}"
#define INPUT(more) "{'input':[{'role':'user','content':'q'}" more "]}"

static const struct {
	enum endpoint endpoint;
	bool keep, same;
	const char *one, *other;
} pairs[] = {
	{ ENDPOINT_CHAT, false, true, CHAT("{'role':'assistant'}"),
	    CHAT("{'content':null,'role':'assistant','tool_calls':[],'refusal':"
	    "null,'function_call':null,'audio':null,'name':'','reasoning':''}")
	    },
	{ ENDPOINT_CHAT, true, true, CHAT("{'role':'assistant'}"),
	    CHAT("{'content':'','role':'assistant','reasoning_content':''}") },
	{ ENDPOINT_CHAT, false, true, CHAT("{'role':'assistant'}"),
	    CHAT("{'content':[{'type':'text','text':''},'',{}],'tool_calls':"
	    "[{}],'role':'assistant'}") },
	{ ENDPOINT_CHAT, false, true, CHAT("{'content':'a'}"),
	    CHAT("{'content':['',{'type':'text','text':'a'}]}") },
	{ ENDPOINT_CHAT, false, true,
	    CHAT("{'function_call':{'name':'f','arguments':'x'}}"),
	    CHAT("{'tool_calls':[{'function':{'arguments':'x','name':'f'}}]}")
	    },
	{ ENDPOINT_CHAT, false, false, CHAT("{'role':'assistant'}"),
	    CHAT("{}") },
	{ ENDPOINT_CHAT, false, false, CHAT("{'role':'a','name':'b'}"),
	    CHAT("{'role':'b','name':'a'}") },
	{ ENDPOINT_CHAT, false, false,
	    CHAT("{'tool_calls':[{'function':{'name':'f'}},{'function':{"
	    "'arguments':'x'}}]}"),
	    CHAT("{'tool_calls':[{'function':{'name':'f','arguments':'x'}}]}")
	    },
	{ ENDPOINT_CHAT, false, false, /* a name of the call, or of another */
	    CHAT("{'tool_calls':[{'function':{'name':'f'}}],'content':'x'}"),
	    CHAT("{'tool_calls':[],'name':'f','content':'x'}") },
	/* reasoning */
	{ ENDPOINT_CHAT, false, true, CHAT("{'content':'a','role':'b'}"),
	    CHAT("{'reasoning_content':'hm','thinking':'h','reasoning':'o',"
	    "'content':'a','role':'b'}") },
	{ ENDPOINT_CHAT, true, false, CHAT("{'content':'a','role':'b'}"),
	    CHAT("{'reasoning_content':'hm','content':'a','role':'b'}") },
	{ ENDPOINT_MESSAGES, false, true,
	    CHAT("{'content':[{'type':'thinking','thinking':'hm','signature':"
	    "'s'},{'type':'redacted_thinking','data':'z'},{'text':'a'}]}"),
	    CHAT("{'content':'a'}") },
	{ ENDPOINT_MESSAGES, true, false,
	    CHAT("{'content':[{'type':'redacted_thinking','data':'z'},"
	    "{'text':'a'}]}"), CHAT("{'content':'a'}") },
	{ ENDPOINT_RESPONSES, false, true, INPUT(",{'content':[{'text':'hm'}],"
	    "'type':'reasoning'},{'type':'reasoning','summary':'s'}"),
	    INPUT("") },
	{ ENDPOINT_RESPONSES, true, false, INPUT(",{'content':[{'text':'hm'}],"
	    "'type':'reasoning'}"), INPUT("") },
	/* the input of a tool is a value, not a text */
	{ ENDPOINT_MESSAGES, false, true,
	    CHAT("{'content':[{'name':'f','input':{'a' : [1 , '\\u00e4\\/'] ,"
	    "'b':{ }}}]}"),
	    CHAT("{'content':[{'input':{'\\u0061':[1,'\303\244/'],'b':{}},"
	    "'name':'f'}]}") },
	{ ENDPOINT_MESSAGES, false, false,
	    CHAT("{'content':[{'input':{'a':1,'b':2}}]}"),
	    CHAT("{'content':[{'input':{'b':2,'a':1}}]}") },
	{ ENDPOINT_MESSAGES, false, false, /* of this part, or of the outer */
	    CHAT("{'content':[{'content':[{'name':'f','text':'x'}]}]}"),
	    CHAT("{'content':[{'content':[{'text':'x'}],'name':'f'}]}") }
};
enum { PAIRS = sizeof(pairs) / sizeof(*pairs) };

START_TEST(pair)
{
	struct taken one, other;

	body_reasoning(b, pairs[_i].keep);
	one = take_quoted(pairs[_i].endpoint, pairs[_i].one);
	other = take_quoted(pairs[_i].endpoint, pairs[_i].other);
	ck_assert_msg((one.units == other.units && one.hash == other.hash) ==
	    pairs[_i].same, "%s %s", pairs[_i].one, pairs[_i].other);
}
END_TEST

/* ------------------------------------------------------------------ cut --- */

/* A cut prompt lacks the text held back, so it is always a prefix. */
START_TEST(cut_is_a_prefix)
{
	char *text = answers_text(bodies[_i].body, "\n");
	const enum endpoint e = bodies[_i].endpoint;
	size_t n, length = strlen(text);
	struct taken t, whole;
	uint64_t local;

	whole = take(e, text, length, 0);
	for (n = 1; n < length; n++) {
		t = take(e, text, n, 0);
		ck_assert_uint_le(t.units, whole.units + 20);
		/* two marks and the digest of the cut part may follow */
		if (t.units <= 2 + 20)
			continue;
		t.units -= 2 + 20;
		ck_assert_int_eq(kvr_prompt_hash(p, t.units - 1, &local,
		    &t.hash), KVR_OK);
		(void)take(e, text, length, 0);
		ck_assert_msg(bodies_begins(p, &t), "%.*s", (int)n, text);
	}
	free(text);
}
END_TEST

/* -------------------------------------------------------------- hostile --- */

/* Each level holds the whole of the next one back, as far as any does. */
START_TEST(nested)
{
	static char text[TEXT_MAX];
	size_t depth, last = 0;
	struct taken t;
	char *at;

	for (depth = 1; depth < 55; depth++) {
		size_t i;

		at = text + sprintf(text, "{\"messages\":[{\"role\":\"u\","
		    "\"content\":");
		for (i = 0; i < depth; i++)
			at += sprintf(at, "[{\"name\":\"n\",\"content\":");
		at += sprintf(at, "\"x\"");
		for (i = 0; i < depth; i++)
			at += sprintf(at, "}]");
		at += sprintf(at, "}]}");
		t = take(ENDPOINT_CHAT, text, (size_t)(at - text), 0);
		ck_assert_int_eq(t.outcome, BODY_PROMPT);
		if (depth < ORDERED_MAX)
			ck_assert_uint_gt(t.units, last);
		else if (depth > ORDERED_MAX)
			ck_assert_uint_eq(t.units, last);
		last = t.units;
	}
}
END_TEST

/* Very many values that are held back, in turns; and each allocation fails. */
START_TEST(many_values)
{
	static char text[TEXT_MAX];
	struct taken want, t;
	unsigned long fails;
	size_t i;
	char *at = text + sprintf(text, "{\"messages\":[{");

	for (i = 0; i < 1000; i++)
		at += sprintf(at, "\"name\":\"n%zu\",\"role\":\"r\",", i % 10);
	at += sprintf(at, "\"tool_calls\":[{\"function\":{\"name\":\"f\","
	    "\"arguments\":\"%0*d\"}}],\"content\":\"x\"}]}", 30000, 0);
	want = take(ENDPOINT_CHAT, text, (size_t)(at - text), 0);
	ck_assert_uint_eq(want.units, 2 + 9 + 1000 * (4 + 3) + 2 + 2 + 30002 +
	    3 + 2);
	for (fails = 1; fails < 20; fails++) {
		alloc_fail_at(fails);
		t = take(ENDPOINT_CHAT, text, (size_t)(at - text), 100);
		alloc_reset();
		ck_assert(t.outcome == BODY_NO_MEMORY ||
		    bodies_equal(&t, &want));
		body_free(b);
		b = body_new();
	}
}
END_TEST

/* ---------------------------------------------------------------- apart --- */

START_TEST(messages_apart)
{
	static const struct {
		enum endpoint endpoint;
		enum body_outcome outcome;
		const char *text;
	} cases[] = {
		{ ENDPOINT_CHAT, BODY_PROMPT, "[{'content':'a'},'b']" },
		{ ENDPOINT_CHAT, BODY_NO_PROMPT, "[]" },
		{ ENDPOINT_CHAT, BODY_NOT_JSON, "[{'content':'a'}" },
		{ ENDPOINT_CHAT, BODY_NOT_JSON, "[{'content':'a'}] x" },
		{ ENDPOINT_CHAT, BODY_NOT_JSON, "[{'content':'a\\x'}]" },
		{ ENDPOINT_CHAT, BODY_NOT_JSON, "{'content':'a'}x" },
		{ ENDPOINT_CHAT, BODY_NOT_JSON, "" },
		{ ENDPOINT_RESPONSES, BODY_NO_PROMPT,
		    "[{'type':'reasoning','content':'x'}]" },
		{ ENDPOINT_COMPLETIONS, BODY_PROMPT, "'a'" },
		{ ENDPOINT_COMPLETIONS, BODY_NO_PROMPT, "''" },
		{ ENDPOINT_OTHER, BODY_NO_PROMPT, "[{'content':'a'}]" }
	};
	struct kvr_prompt_info info = { .size = sizeof(info) };
	uint64_t bytes;
	char *text;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		text = answers_text(cases[i].text, "\n");
		ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, "abc", 3),
		    KVR_OK);
		body_message_begin(b, p, cases[i].endpoint);
		body_data(b, text, strlen(text));
		ck_assert_msg(body_message_end(b, &bytes) == cases[i].outcome,
		    "%s", text);
		ck_assert_int_eq(bytes > 0, cases[i].outcome == BODY_PROMPT);
		ck_assert_int_eq(kvr_prompt_end(p, NULL), KVR_OK);
		ck_assert_int_eq(kvr_prompt_info_get(p, &info), KVR_OK);
		ck_assert_uint_eq(info.units, 3 + bytes);
		free(text);
	}
}
END_TEST

Suite *suite_body_order(void);

Suite *
suite_body_order(void)
{
	Suite *s = suite_create("body_order");
	TCase *c = tcase_create("body_order");

	tcase_add_checked_fixture(c, bed_make, bed_free);
	tcase_add_loop_test(c, order_of_keys, 0, 2 * BODIES);
	tcase_add_loop_test(c, pair, 0, PAIRS);
	tcase_add_loop_test(c, cut_is_a_prefix, 0, BODIES);
	tcase_add_test(c, nested);
	tcase_add_test(c, many_values);
	tcase_add_test(c, messages_apart);
	suite_add_tcase(s, c);
	return s;
}
