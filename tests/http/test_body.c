/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_body.c - bodies become prompts: all kinds of clients, in any pieces;
 * facts; scope; the order of messages. test_body_bad.c has broken, hostile and
 * large bodies.
 *
 * In expected prompts '~' stands for the byte 0xFF.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rng.h"

#include "body_bed.h"

static struct taken
take(enum endpoint endpoint, const char *text)
{
	static const struct pieces whole;
	struct taken t;

	bodies_take(b, k, p, endpoint, text, strlen(text), &whole, &t);
	return t;
}

/* Compares with a prompt made from the given bytes. */
static void
expect_bytes(const struct taken *t, const void *bytes, size_t n,
    const char *which)
{
	struct taken want = { 0 };
	uint64_t local;

	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, bytes, n), KVR_OK);
	if (n > 0)
		ck_assert_int_eq(kvr_prompt_hash(p, n - 1, &local, &want.hash),
		    KVR_OK);
	ck_assert_msg(t->units == n && t->hash == want.hash,
	    "%s: another prompt, of %zu bytes", which, (size_t)t->units);
}

static void
expect(const struct taken *t, const char *text, const char *which)
{
	unsigned char bytes[1024];
	size_t i, n = strlen(text);

	ck_assert_uint_le(n, sizeof(bytes));
	for (i = 0; i < n; i++)
		bytes[i] = text[i] == '~' ? 0xff : (unsigned char)text[i];
	expect_bytes(t, bytes, n, which);
}

/* ------------------------------------------------------------ endpoints --- */

static enum endpoint
endpoint(const char *path)
{
	return endpoint_of(path, strlen(path));
}

START_TEST(endpoints)
{
	enum endpoint e;

	ck_assert_int_eq(endpoint("/v1/chat/completions"), ENDPOINT_CHAT);
	ck_assert_int_eq(endpoint("/openai/deployments/a/chat/completions"),
	    ENDPOINT_CHAT);
	ck_assert_int_eq(endpoint("/v1/completions"), ENDPOINT_COMPLETIONS);
	ck_assert_int_eq(endpoint("/v1/responses"), ENDPOINT_RESPONSES);
	ck_assert_int_eq(endpoint("/x/openai/responses"), ENDPOINT_RESPONSES);
	ck_assert_int_eq(endpoint("/v1/messages"), ENDPOINT_MESSAGES);
	ck_assert_int_eq(endpoint("/anthropic/v1/messages"),
	    ENDPOINT_MESSAGES);
	ck_assert_int_eq(endpoint("/v1/embeddings"), ENDPOINT_OTHER);
	ck_assert_int_eq(endpoint("/v1/messages/count_tokens"),
	    ENDPOINT_OTHER);
	ck_assert_int_eq(endpoint("/v1/threads/t/messages"), ENDPOINT_OTHER);
	ck_assert_int_eq(endpoint("/v1/responses/resp_1"), ENDPOINT_OTHER);
	ck_assert_int_eq(endpoint("/v1/chat/completions/"), ENDPOINT_CHAT);
	ck_assert_int_eq(endpoint("/v1/messages//"), ENDPOINT_MESSAGES);
	ck_assert_int_eq(endpoint("v1/messages"), ENDPOINT_OTHER);
	ck_assert_int_eq(endpoint("completions"), ENDPOINT_OTHER);
	ck_assert_int_eq(endpoint("/"), ENDPOINT_OTHER);
	ck_assert_int_eq(endpoint_of(NULL, 0), ENDPOINT_OTHER);
	ck_assert_int_eq(endpoint_of("/v1/messages", 11), ENDPOINT_OTHER);
	for (e = ENDPOINT_OTHER; e < ENDPOINTS; e++)
		ck_assert_int_eq(strcmp(endpoint_name(e), "other") == 0,
		    e == ENDPOINT_OTHER);
	ck_assert_str_eq(endpoint_name(ENDPOINTS), "other");
}
END_TEST

/* --------------------------------------------------------------- shapes --- */

static const struct {
	enum endpoint endpoint;
	const char *body;
	const char *prompt;
} shapes[] = {
	{ ENDPOINT_CHAT, "{\"messages\":[{\"role\":\"system\",\"content\":"
	    "\"Be brief.\"},{\"role\":\"user\",\"content\":\"Hello \\u00ff "
	    "\\\"you\\\"\"}],\"model\":\"m-7b\",\"temperature\":0.2,"
	    "\"stream\":true}",
	    "~m~(~p~tBe brief.~)~rsystem~m~(~p~tHello \303\277 \"you\"~)"
	    "~ruser" },
	/* parts, names, members that are not shown */
	{ ENDPOINT_CHAT, " {\"model\": \"m\", \"messages\": [\n {\"role\": "
	    "\"user\", \"name\": \"ann\", \"content\": [{\"type\": \"text\","
	    " \"text\": \"a\", \"cache_control\": {\"type\": \"ephemeral\"}},"
	    " {\"text\": \"b\", \"type\": \"text\"}, \"c\"], \"x\": [[{}]]}]}"
	    "\n",
	    "~m~(~p~ta~p~tb~p~tc~)~nann~ruser" },
	/* calls of tools, reasoning, a refusal, nothing */
	{ ENDPOINT_CHAT, "{\"messages\":[{\"content\":null,\"refusal\":null,"
	    "\"role\":\"assistant\",\"reasoning_content\":\"hm\","
	    "\"tool_calls\":[{\"id\":\"call_1\",\"type\":\"function\","
	    "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}},"
	    "{\"function\":{\"name\":\"g\",\"arguments\":{\"a\":[1,true,null,"
	    "\"s\",false]}}}]},{\"role\":\"tool\",\"tool_call_id\":\"call_1\","
	    "\"content\":\"42\"},{\"role\":\"assistant\",\"refusal\":\"no\","
	    "\"function_call\":{\"name\":\"h\",\"arguments\":\"\"}}]}",
	    "~m~(~c~a{\"a\":1}~nf~c~a~{~ka~[~#1~T~N~ws~F~]~}~ng~)~rassistant"
	    "~m~(~p~t42~)~rtool~m~(~c~nh~)~fno~rassistant" },
	{ ENDPOINT_MESSAGES, "{\"max_tokens\":100,\"messages\":[{\"role\":"
	    "\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":"
	    "[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"zz\"}"
	    ",{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"f\","
	    "\"input\":{\"a\":1}}]},{\"role\":\"user\",\"content\":[{\"type\":"
	    "\"tool_result\",\"tool_use_id\":\"toolu_1\",\"content\":[{"
	    "\"type\":\"text\",\"text\":\"r\"}]},{\"type\":\"text\",\"text\":"
	    "\"t\"}]}],\"model\":\"m\",\"system\":[{\"type\":\"text\",\"text\""
	    ":\"S\",\"cache_control\":{\"type\":\"ephemeral\"}}]}",
	    "~m~(~p~tS~)~rsystem~m~(~p~tq~)~ruser~m~(~p~a~{~ka~#1~}~nf~)"
	    "~rassistant~m~(~p~(~p~tr~)~p~tt~)~ruser" },
	{ ENDPOINT_MESSAGES, "{\"system\":\"S\",\"messages\":[{\"role\":"
	    "\"user\",\"content\":{\"type\":\"text\",\"text\":\"q\"}}]}",
	    "~m~(~p~tS~)~rsystem~m~(~p~tq~)~ruser" },
	{ ENDPOINT_RESPONSES, "{\"input\":\"q\",\"instructions\":\"I\","
	    "\"model\":\"m\"}",
	    "~m~(~p~tI~)~rsystem~m~(~p~tq~)~ruser" },
	{ ENDPOINT_RESPONSES, "{\"input\":[{\"role\":\"user\",\"content\":"
	    "\"q\"},{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{"
	    "\"type\":\"summary_text\",\"text\":\"h\"}]},{\"type\":"
	    "\"function_call\",\"call_id\":\"c1\",\"name\":\"f\","
	    "\"arguments\":\"{}\"},{\"type\":\"function_call_output\","
	    "\"call_id\":\"c1\",\"output\":\"o\"},{\"type\":\"message\","
	    "\"id\":\"msg_1\",\"role\":\"assistant\",\"content\":[{\"type\":"
	    "\"output_text\",\"text\":\"x\",\"annotations\":[]}]}],"
	    "\"instructions\":\"I\"}",
	    "~m~(~p~tI~)~rsystem~m~(~p~tq~)~ruser~m~a{}~nf~m~o~(~p~to~)"
	    "~m~(~p~tx~)~rassistant" },
	{ ENDPOINT_COMPLETIONS, "{\"model\":\"m\",\"prompt\":\"Once\"}",
	    "~POnce" },
	{ ENDPOINT_COMPLETIONS, "{\"prompt\":[\"Once\",\"Twice\",[1]]}",
	    "~POnce" },
	{ ENDPOINT_COMPLETIONS, "{\"prompt\":[1145258561,1212630597]}",
	    "~QABCDEFGH" },
	{ ENDPOINT_COMPLETIONS, "{\"prompt\":[[1145258561],[1212630597]]}",
	    "~QABCD" },
	/* not tokens: ignored, without joining two prompts */
	{ ENDPOINT_COMPLETIONS, "{\"prompt\":[1145258561,-1,1.5,4294967296,"
	    "18446744073709551617]}",
	    "~QABCD~~~~~~~~~~~~~~~~" },
	{ ENDPOINT_COMPLETIONS, "{\"prompt\":[[1145258561,true,null]]}",
	    "~QABCD~~~~~~~~" },
	/* of a repeated key the last one counts */
	{ ENDPOINT_CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}"
	    "],\"tools\":[],\"messages\":[{\"role\":\"user\",\"content\":"
	    "\"b\"}]}",
	    "~m~(~p~tb~)~ruser" },
	{ ENDPOINT_MESSAGES, "{\"system\":\"S\",\"messages\":[{\"role\":"
	    "\"user\",\"content\":\"a\"}],\"messages\":[{\"role\":\"user\","
	    "\"content\":\"b\"}],\"system\":\"T\"}",
	    "~m~(~p~tT~)~rsystem~m~(~p~tb~)~ruser" },
	{ ENDPOINT_COMPLETIONS, "{\"prompt\":\"a\",\"prompt\":[\"b\"]}",
	    "~Pb" },
	/* a NUL, a pair of surrogates, keys with escapes */
	{ ENDPOINT_CHAT, "{\"mess\\u0061ges\":[{\"role\":\"user\",\"content\""
	    ":\"\\ud83d\\ude00\\t\"}]}",
	    "~m~(~p~t\360\237\230\200\t~)~ruser" }
};
enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };

START_TEST(shape)
{
	struct taken t = take(shapes[_i].endpoint, shapes[_i].body);

	ck_assert_int_eq(t.outcome, BODY_PROMPT);
	ck_assert(!t.facts.cut);
	ck_assert_uint_eq(t.facts.bytes, t.units);
	ck_assert_int_eq(shapes[_i].body[t.facts.end], '}');
	ck_assert_ptr_null(strchr(shapes[_i].body + t.facts.end + 1, '}'));
	expect(&t, shapes[_i].prompt, shapes[_i].body);
}
END_TEST

/* The opening of a chat has the same length in all its turns. */
static const struct {
	enum endpoint endpoint;
	const char *first, *later;
} openings[] = {
	{ ENDPOINT_CHAT,
	    "{\"messages\":[{\"role\":\"system\",\"content\":\"S\"},"
	    "{\"role\":\"user\",\"content\":\"abc\"}]}",
	    "{\"messages\":[{\"role\":\"system\",\"content\":\"S\"},"
	    "{\"role\":\"user\",\"content\":\"abc\"},"
	    "{\"role\":\"assistant\",\"content\":\"d\"},"
	    "{\"role\":\"user\",\"content\":\"e\"},"
	    "{\"role\":\"assistant\",\"content\":\"f\"},"
	    "{\"role\":\"user\",\"content\":\"g\"}]}" },
	{ ENDPOINT_MESSAGES,
	    "{\"messages\":[{\"role\":\"user\",\"content\":\"abc\"}],"
	    "\"system\":\"S\"}",
	    "{\"messages\":[{\"role\":\"user\",\"content\":\"abc\"},"
	    "{\"role\":\"assistant\",\"content\":\"d\"}],"
	    "\"system\":\"S\"}" },
	{ ENDPOINT_RESPONSES,
	    "{\"input\":\"abc\",\"instructions\":\"S\"}",
	    "{\"input\":[{\"role\":\"user\",\"content\":\"abc\"},"
	    "{\"role\":\"assistant\",\"content\":\"d\"}],"
	    "\"instructions\":\"S\"}" },
	{ ENDPOINT_CHAT,
	    "{\"messages\":[{\"role\":\"user\",\"content\":\"abc\"}]}",
	    "{\"messages\":[{\"role\":\"assistant\"}],\"messages\":["
	    "{\"role\":\"user\",\"content\":\"abc\"},"
	    "{\"role\":\"assistant\",\"content\":\"d\"}]}" }
};
enum { OPENINGS = sizeof(openings) / sizeof(*openings) };

START_TEST(opening)
{
	enum endpoint e = openings[_i].endpoint;
	struct taken first = take(e, openings[_i].first);
	struct taken later = take(e, openings[_i].later);

	ck_assert_uint_eq(first.facts.opening, first.facts.bytes);
	ck_assert_uint_eq(later.facts.opening, first.facts.bytes);
	ck_assert_uint_gt(later.facts.bytes, later.facts.opening);
}
END_TEST

/* Cut at every byte, in steps of every length, at random; and ended early. */
START_TEST(pieces)
{
	const char *text = shapes[_i].body;
	const enum endpoint e = shapes[_i].endpoint;
	struct pieces how = { 0 };
	struct taken whole, t;
	size_t i, n = strlen(text), length;

	for (length = 0; length <= n; length++) {
		how.first = how.step = how.random = 0;
		how.more = length % 2 == 1 && length < n;
		bodies_take(b, k, p, e, text, length, &how, &whole);
		how.step = 1;
		bodies_take(b, k, p, e, text, length, &how, &t);
		ck_assert_msg(bodies_equal(&whole, &t), "%zu bytes", length);
	}
	for (i = 1; i < n; i++) {
		how.first = i;
		how.step = 0;
		bodies_take(b, k, p, e, text, n, &how, &t);
		ck_assert_msg(bodies_equal(&whole, &t), "cut at %zu", i);
		how.first = 0;
		how.step = i;
		bodies_take(b, k, p, e, text, n, &how, &t);
		ck_assert_msg(bodies_equal(&whole, &t), "pieces of %zu", i);
		how.random = i;
		bodies_take(b, k, p, e, text, n, &how, &t);
		ck_assert_msg(bodies_equal(&whole, &t), "seed %zu", i);
		how.random = 0;
	}
}
END_TEST

/* ---------------------------------------------------------------- media --- */

#define USER(parts) "{\"messages\":[{\"role\":\"user\",\"content\":[" parts \
	"]}]}"

START_TEST(media)
{
	static const char url[] = USER("{\"type\":\"image_url\",\"image_url\":"
	    "{\"url\":\"data:image/png;base64,AAAA\"}}");
	static const char bare[] = USER("{\"image_url\":"
	    "\"data:image/png;base64,AAAA\",\"type\":\"input_image\"}");
	static const char other[] = USER("{\"type\":\"image_url\","
	    "\"image_url\":{\"url\":\"data:image/png;base64,AAAB\"}}");
	static const char fine[] = USER("{\"type\":\"image_url\",\"image_url\":"
	    "{\"url\":\"data:image/png;base64,AAAA\",\"detail\":\"high\"}}");
	static const char said[] = "{\"messages\":[{\"role\":"
	    "\"assistant\",\"audio\":{\"id\":\"a\"}}]}";
	static const char *const more[] = {
		USER("{\"type\":\"image\",\"source\":{\"type\":\"base64\","
		    "\"media_type\":\"image/png\",\"data\":\"AAAA\"}}"),
		USER("{\"input_audio\":{\"data\":\"A\",\"format\":\"wav\"}}"),
		USER("{\"type\":\"file\",\"file\":{\"file_id\":\"f\"}}"),
		USER("{\"type\":\"input_file\",\"file_data\":\"f\"}"),
		said
	};
	struct taken t = take(ENDPOINT_CHAT, url), u;
	size_t i;

	ck_assert(t.facts.media);
	/* m, role, list, part, digest, end */
	ck_assert_uint_eq(t.units, 2 + 6 + 2 + 2 + 18 + 2);
	u = take(ENDPOINT_CHAT, bare);
	ck_assert(bodies_equal(&t, &u) || t.hash == u.hash);
	u = take(ENDPOINT_CHAT, other);
	ck_assert_uint_eq(t.units, u.units);
	ck_assert_uint_ne(t.hash, u.hash);
	u = take(ENDPOINT_CHAT, fine);
	ck_assert_uint_ne(t.units, u.units);
	for (i = 0; i < sizeof(more) / sizeof(*more); i++) {
		u = take(ENDPOINT_CHAT, more[i]);
		ck_assert_msg(u.facts.media, "%s", more[i]);
		ck_assert_uint_gt(u.units, 18);
	}
	u = take(ENDPOINT_CHAT, USER("{\"text\":\"a\"}"));
	ck_assert(!u.facts.media);
}
END_TEST

/* There is no text that its tokens may be counted by. */
START_TEST(media_that_only_a_digest_stands_for)
{
	static const char *const ahead[] = { "image_data", "multi_modal_data",
	    "prompt_embeds", "image_embeds", "audio_embeds" };
	char text[2500];
	size_t i, n;

	ck_assert(take(ENDPOINT_CHAT, USER("{\"image_url\":{\"x\":\"A\"}}"))
	    .facts.media);
	for (i = 0; i < sizeof(ahead) / sizeof(*ahead); i++) {
		snprintf(text, sizeof(text), "{\"%s\":[\"A\"],%s", ahead[i],
		    &USER("\"a\"")[1]);
		ck_assert_msg(take(ENDPOINT_CHAT, text).facts.media, "%s",
		    text);
	}
	ck_assert(!take(ENDPOINT_CHAT, "{\"prompt_embeds\":null,\"tools\":["
	    "\"A\"],\"messages\":[{\"content\":\"a\"}]}").facts.media);
	for (n = 500; n <= 1500; n += 1000) {
		snprintf(text, sizeof(text), USER("{\"x\":\"%0*d\"}"),
		    (int)n, 0);
		ck_assert(take(ENDPOINT_CHAT, text).facts.media == (n > 1024));
	}
}
END_TEST

/* ---------------------------------------------------------------- facts --- */

#define CHAT(more) "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]" \
	more "}"

/* As the body would be sent; "" if it cannot ask. */
static void
usage_asked(const char *text, const struct body_facts *f, char *out)
{
	static const char *const put[] = {
	    ",'stream_options':{'include_usage':true}",
	    "{'include_usage':true}", "'include_usage':true",
	    "'include_usage':true,", "true" };
	const uint64_t at = f->usage == BODY_USAGE_MEMBER ? f->end
	    : f->usage_at;

	*out = '\0';
	if (f->usage != BODY_USAGE_NONE)
		sprintf(out, "%.*s%s%s", (int)at, text, put[f->usage],
		    text + at + f->usage_cut);
}

#define LIST "{'messages':[{'role':'user','content':'a'}]"

/* In each two pieces. */
START_TEST(usage_is_asked_for_in_place)
{
	static const char *const pairs[][2] = {
		{ LIST "}", LIST ",'stream_options':{'include_usage':true}}" },
		{ LIST ",'stream_options':null}",
		    LIST ",'stream_options':{'include_usage':true}}" },
		{ "{ 'stream_options' : null , 'x':1}",
		    "{ 'stream_options' : {'include_usage':true} , 'x':1}" },
		{ LIST ",'stream_options':{}}",
		    LIST ",'stream_options':{'include_usage':true}}" },
		{ LIST ",'stream_options':{ 'a':{'include_usage':1}}}",
		    LIST ",'stream_options':{'include_usage':true, 'a':{"
		    "'include_usage':1}}}" },
		{ LIST ",'stream_options':{'a':1,'include_usage':false}}",
		    LIST ",'stream_options':{'a':1,'include_usage':true}}" },
		{ LIST ",'stream_options':{'include_usage': null,'b':[]}}",
		    LIST ",'stream_options':{'include_usage': true,'b':[]}}" },
		{ LIST ",'stream_options':{'include_usage':true}}", "" },
		{ LIST ",'stream_options':{'include_usage':0}}", "" },
		{ LIST ",'stream_options':{'include_usage':'no'}}", "" },
		{ LIST ",'stream_options':{'include_usage':{}}}", "" },
		{ LIST ",'stream_options':{'include_usage':false,"
		    "'include_usage':false}}", "" },
		{ LIST ",'stream_options':null,'stream_options':{}}", "" },
		{ LIST ",'stream_options':[]}", "" },
		{ LIST ",'stream_options':'x'}", "" },
		{ LIST ",'stream_options':true}", "" },
		{ LIST ",'a':{'stream_options':null}}", LIST ",'a':{"
		    "'stream_options':null},'stream_options':{"
		    "'include_usage':true}}" },
		{ "\xef\xbb\xbf{'stream_options':{}}",
		    "\xef\xbb\xbf{'stream_options':{'include_usage':true}}" },
	};
	struct body_facts f;
	char text[256], want[256], out[320];
	size_t cut, n;

	n = strlen(strcpy(text, pairs[_i][0]));
	strcpy(want, pairs[_i][1]);
	for (cut = 0; cut < n; cut++)
		text[cut] = text[cut] == '\'' ? '"' : text[cut];
	for (cut = 0; want[cut] != '\0'; cut++)
		want[cut] = want[cut] == '\'' ? '"' : want[cut];
	for (cut = 0; cut <= n; cut++) {
		body_begin(b, NULL, ENDPOINT_CHAT);
		body_data(b, text, cut);
		body_data(b, text + cut, n - cut);
		(void)body_end(b, &f);
		usage_asked(pairs[_i][0], &f, out);
		for (char *c = out; *c != '\0'; c++)
			*c = *c == '\'' ? '"' : *c;
		ck_assert_msg(strcmp(out, want) == 0, "%s: %s", text, out);
	}
}
END_TEST
enum { USAGES = 18 };

START_TEST(facts)
{
	struct body_facts f;

	f = take(ENDPOINT_CHAT, CHAT("")).facts;
	ck_assert(!f.stream);
	ck_assert_int_eq(f.usage, BODY_USAGE_MEMBER);
	ck_assert(!f.several && !f.prompt_logprobs && !f.stored && !f.cut);
	ck_assert_uint_eq(f.messages, 1);
	ck_assert_uint_eq(f.model_length, 0);
	f = take(ENDPOINT_CHAT, CHAT(",\"stream\":true,\"stream_options\":"
	    "{\"include_usage\":true}")).facts;
	ck_assert(f.stream);
	ck_assert_int_eq(f.usage, BODY_USAGE_NONE);
	f = take(ENDPOINT_CHAT, CHAT(",\"stream\":true,\"stream_options\":"
	    "{\"x\":{\"include_usage\":true}}")).facts;
	ck_assert(f.stream);
	ck_assert_int_eq(f.usage, BODY_USAGE_FIRST);
	f = take(ENDPOINT_CHAT, CHAT(",\"stream\":false,\"stream_options\":"
	    "null")).facts;
	ck_assert(!f.stream);
	ck_assert_int_eq(f.usage, BODY_USAGE_OPTIONS);
	f = take(ENDPOINT_CHAT, CHAT(",\"stream_options\":{\"include_usage\":"
	    "true},\"stream_options\":{},\"stream\":true,\"stream\":false"))
	    .facts;
	ck_assert(!f.stream);
	ck_assert_int_eq(f.usage, BODY_USAGE_NONE);
	f = take(ENDPOINT_CHAT, CHAT(",\"stream_options\":[]")).facts;
	ck_assert_int_eq(f.usage, BODY_USAGE_NONE);
	f = take(ENDPOINT_CHAT, CHAT(",\"x\":{\"stream\":true}")).facts;
	ck_assert(!f.stream);
	f = take(ENDPOINT_CHAT, CHAT(",\"n\":1,\"best_of\":2")).facts;
	ck_assert(!f.many);
	f = take(ENDPOINT_CHAT, CHAT(",\"n\":2")).facts;
	ck_assert(f.many && !f.several);
	f = take(ENDPOINT_CHAT, CHAT(",\"n\":10")).facts;
	ck_assert(f.many);
	f = take(ENDPOINT_CHAT, CHAT(",\"n\":null")).facts;
	ck_assert(!f.many);
	f = take(ENDPOINT_CHAT, CHAT(",\"n\":2.0")).facts;
	ck_assert(f.many);
	f = take(ENDPOINT_CHAT, CHAT(",\"n\":1.0")).facts;
	ck_assert(!f.many);
	f = take(ENDPOINT_CHAT, CHAT(",\"n\":-1")).facts;
	ck_assert(!f.many);
	f = take(ENDPOINT_CHAT, CHAT(",\"n\":2,\"n\":1")).facts;
	ck_assert(!f.many);
	f = take(ENDPOINT_CHAT, CHAT(",\"n\":2,\"n\":null")).facts;
	ck_assert(!f.many);
	f = take(ENDPOINT_COMPLETIONS, "{\"prompt\":\"a\",\"n\":2,"
	    "\"best_of\":1}").facts;
	ck_assert(f.many);
	f = take(ENDPOINT_COMPLETIONS, "{\"prompt\":\"a\",\"best_of\":3}")
	    .facts;
	ck_assert(f.many);
	f = take(ENDPOINT_CHAT, CHAT(",\"prompt_logprobs\":0")).facts;
	ck_assert(f.prompt_logprobs);
	f = take(ENDPOINT_CHAT, CHAT(",\"prompt_logprobs\":null")).facts;
	ck_assert(!f.prompt_logprobs);
	f = take(ENDPOINT_COMPLETIONS, "{\"prompt\":\"a\",\"echo\":true}")
	    .facts;
	ck_assert(!f.prompt_logprobs);
	f = take(ENDPOINT_COMPLETIONS, "{\"prompt\":\"a\",\"echo\":true,"
	    "\"logprobs\":0}").facts;
	ck_assert(f.prompt_logprobs);
	f = take(ENDPOINT_COMPLETIONS, "{\"prompt\":[\"a\",\"b\"]}").facts;
	ck_assert(f.several);
	f = take(ENDPOINT_COMPLETIONS, "{\"prompt\":[[1],[2]]}").facts;
	ck_assert(f.several);
	f = take(ENDPOINT_COMPLETIONS, "{\"prompt\":[1,2]}").facts;
	ck_assert(!f.several);
	f = take(ENDPOINT_RESPONSES, "{\"input\":\"a\","
	    "\"previous_response_id\":\"r\"}").facts;
	ck_assert(f.stored);
	f = take(ENDPOINT_RESPONSES, "{\"input\":\"a\","
	    "\"previous_response_id\":null}").facts;
	ck_assert(!f.stored);
}
END_TEST

/* Long ones are cut but stay distinct. */
START_TEST(models)
{
	char text[1400], model[1001];
	struct taken t, u;

	t = take(ENDPOINT_CHAT, CHAT(",\"model\":\"m-7b\""));
	ck_assert_uint_eq(t.facts.model_length, 4);
	ck_assert_int_eq(memcmp(t.name, "m-7b", 4), 0);
	t = take(ENDPOINT_CHAT, CHAT(",\"model\":\"a\",\"model\":\"bc\""));
	ck_assert_uint_eq(t.facts.model_length, 2);
	t = take(ENDPOINT_CHAT, CHAT(",\"model\":\"a\",\"model\":7"));
	ck_assert_uint_eq(t.facts.model_length, 0);
	memset(model, 'a', 1000);
	model[1000] = '\0';
	memcpy(model + 222, "\303\244", 2);
	snprintf(text, sizeof(text), CHAT(",\"model\":\"%s\""), model);
	t = take(ENDPOINT_CHAT, text);
	ck_assert_uint_eq(t.facts.model_length, BODY_NAME_MAX - 1);
	ck_assert_int_eq(memcmp(t.name, model, 222), 0);
	ck_assert_int_eq(t.name[222], '#');
	model[999] = 'b';
	snprintf(text, sizeof(text), CHAT(",\"model\":\"%s\""), model);
	u = take(ENDPOINT_CHAT, text);
	ck_assert_int_ne(memcmp(t.name, u.name, BODY_NAME_MAX - 1), 0);
}
END_TEST

/* ------------------------------------------------------------------ ids --- */

#define INPUT(more) "{\"input\":\"a\"" more "}"

static const struct {
	enum endpoint endpoint;
	const char *body;
	enum body_id id;
	const char *want;
} ids[] = {
	{ ENDPOINT_CHAT, CHAT(",\"prompt_cache_key\":\"k\""), BODY_CACHE_KEY,
	    "k" },
	{ ENDPOINT_CHAT, "{\"prompt_cache_key\":\"\\u00e4\\n\",\"messages\":"
	    "[{\"content\":\"x\"}]}", BODY_CACHE_KEY, "\303\244\n" },
	{ ENDPOINT_COMPLETIONS, "{\"session_id\":\"s-1\",\"prompt\":\"a\"}",
	    BODY_SESSION, "s-1" },
	{ ENDPOINT_CHAT, CHAT(",\"user\":\"me\""), BODY_USER, "me" },
	{ ENDPOINT_RESPONSES, INPUT(",\"safety_identifier\":\"me\""),
	    BODY_SAFETY, "me" },
	{ ENDPOINT_MESSAGES, CHAT(",\"metadata\":{\"x\":[{\"user_id\":"
	    "\"no\"}],\"user_id\":\"u_1\"}"), BODY_METADATA_USER, "u_1" },
	{ ENDPOINT_RESPONSES, INPUT(",\"previous_response_id\":\"resp_1\""),
	    BODY_PREVIOUS, "resp_1" },
	{ ENDPOINT_RESPONSES, INPUT(",\"conversation\":\"conv_1\""),
	    BODY_CONVERSATION, "conv_1" },
	{ ENDPOINT_RESPONSES, INPUT(",\"conversation\":{\"x\":{\"id\":"
	    "\"no\"},\"id\":\"conv_2\",\"y\":[{\"id\":\"no\"}]}"),
	    BODY_CONVERSATION, "conv_2" },
	/* not in its place, or not at this endpoint */
	{ ENDPOINT_CHAT, CHAT(",\"x\":{\"user\":\"me\"}"), BODY_USER, "" },
	{ ENDPOINT_CHAT, CHAT(",\"user_id\":\"me\""), BODY_METADATA_USER,
	    "" },
	{ ENDPOINT_CHAT, CHAT(",\"previous_response_id\":\"r\""),
	    BODY_PREVIOUS, "" },
	{ ENDPOINT_RESPONSES, INPUT(",\"tools\":{\"id\":\"t\"}"),
	    BODY_CONVERSATION, "" },
	{ ENDPOINT_RESPONSES, INPUT(",\"conversation\":[{\"id\":\"c\"}]"),
	    BODY_CONVERSATION, "" },
	/* no text, or repeated */
	{ ENDPOINT_CHAT, CHAT(",\"user\":7"), BODY_USER, "" },
	{ ENDPOINT_CHAT, CHAT(",\"user\":[\"a\"]"), BODY_USER, "" },
	{ ENDPOINT_CHAT, CHAT(",\"user\":\"a\",\"user\":null"), BODY_USER, "" },
	{ ENDPOINT_CHAT, CHAT(",\"user\":\"abc\",\"user\":\"d\""), BODY_USER,
	    "d" },
	{ ENDPOINT_MESSAGES, CHAT(",\"metadata\":{\"user_id\":\"a\","
	    "\"user_id\":1}"), BODY_METADATA_USER, "" },
	{ ENDPOINT_MESSAGES, CHAT(",\"metadata\":{\"user_id\":\"a\"},"
	    "\"metadata\":{}"), BODY_METADATA_USER, "" },
	{ ENDPOINT_RESPONSES, INPUT(",\"conversation\":\"a\",\"conversation\""
	    ":{}"), BODY_CONVERSATION, "" },
	{ ENDPOINT_RESPONSES, INPUT(",\"conversation\":{\"id\":\"a\",\"id\":"
	    "null}"), BODY_CONVERSATION, "" },
	/* cut */
	{ ENDPOINT_CHAT, "{\"messages\":[],\"user\":\"ab", BODY_USER, "" },
	{ ENDPOINT_CHAT, "{\"messages\":[],\"user\":\"ab\"", BODY_USER, "ab" },
	{ ENDPOINT_RESPONSES, "{\"previous_response_id\":\"r_1", BODY_PREVIOUS,
	    "" },
	{ ENDPOINT_RESPONSES, "{\"conversation\":{\"id\":\"c",
	    BODY_CONVERSATION, "" }
};
enum { ID_BODIES = sizeof(ids) / sizeof(*ids) };

/* The id is read in one piece and in bytes; there is no other id. */
START_TEST(each_id)
{
	struct pieces bytes = { .step = 1 };
	size_t n = strlen(ids[_i].want), i;
	struct taken t, u;

	t = take(ids[_i].endpoint, ids[_i].body);
	for (i = 0; i < BODY_IDS; i++)
		ck_assert_uint_eq(t.facts.id_length[i],
		    i == ids[_i].id ? n : 0);
	ck_assert_mem_eq(t.id[ids[_i].id], ids[_i].want, n);
	bodies_take(b, k, p, ids[_i].endpoint, ids[_i].body,
	    strlen(ids[_i].body), &bytes, &u);
	ck_assert(bodies_equal(&t, &u));
}
END_TEST

START_TEST(ids_have_a_bound)
{
	char text[600], id[BODY_ID_MAX + 2];
	struct taken t;

	memset(id, 'a', sizeof(id));
	id[BODY_ID_MAX] = '\0';
	snprintf(text, sizeof(text), CHAT(",\"user\":\"%s\""), id);
	t = take(ENDPOINT_CHAT, text);
	ck_assert_uint_eq(t.facts.id_length[BODY_USER], BODY_ID_MAX);
	ck_assert_mem_eq(t.id[BODY_USER], id, BODY_ID_MAX);
	id[BODY_ID_MAX] = 'a';
	id[BODY_ID_MAX + 1] = '\0';
	snprintf(text, sizeof(text), CHAT(",\"user\":\"%s\""), id);
	t = take(ENDPOINT_CHAT, text);
	ck_assert_uint_eq(t.facts.id_length[BODY_USER], 0);
}
END_TEST

/* Ids and keys are no part of the prompt. */
START_TEST(ids_are_no_part_of_the_prompt)
{
	struct taken t = take(ENDPOINT_CHAT, CHAT("")), u;

	u = take(ENDPOINT_CHAT, CHAT(",\"user\":\"a\",\"session_id\":\"b\","
	    "\"prompt_cache_key\":\"c\",\"metadata\":{\"user_id\":\"d\"}"));
	ck_assert_uint_eq(t.hash, u.hash);
	ck_assert_mem_eq(&t.scope, &u.scope, sizeof(t.scope));
	ck_assert(!u.facts.stored && u.facts.extends);
	t = take(ENDPOINT_CHAT, CHAT(",\"model\":\"m\""));
	ck_assert_uint_eq(t.facts.id_length[BODY_USER], 0);
}
END_TEST

START_TEST(answers_that_are_not_kept)
{
	ck_assert(take(ENDPOINT_RESPONSES, INPUT(",\"store\":false"))
	    .facts.unstored);
	ck_assert(!take(ENDPOINT_RESPONSES, INPUT(",\"store\":null"))
	    .facts.unstored);
	ck_assert(!take(ENDPOINT_RESPONSES, INPUT(",\"store\":false,"
	    "\"store\":true")).facts.unstored);
	ck_assert(!take(ENDPOINT_RESPONSES, INPUT(",\"store\":false,"
	    "\"store\":{}")).facts.unstored);
	ck_assert(!take(ENDPOINT_RESPONSES, INPUT("")).facts.unstored);
}
END_TEST

/* ---------------------------------------------------------------- scope --- */

static bool
same_scope(const char *one, const char *other)
{
	struct taken t = take(ENDPOINT_CHAT, one), u;

	u = take(ENDPOINT_CHAT, other);
	ck_assert_uint_eq(t.hash, u.hash);
	return memcmp(&t.scope, &u.scope, sizeof(t.scope)) == 0;
}

#define TOOL(name, more) ",\"tools\":[{\"type\":\"function\",\"function\":{" \
	"\"name\":\"" name "\"}" more "}]"
#define MOVES ",\"cache_control\":{\"type\":\"ephemeral\"}"

START_TEST(scope)
{
	ck_assert(same_scope(CHAT(""), CHAT(",\"temperature\":1")));
	ck_assert(!same_scope(CHAT(""), CHAT(TOOL("f", ""))));
	ck_assert(!same_scope(CHAT(TOOL("g", "")), CHAT(TOOL("f", ""))));
	ck_assert(same_scope(CHAT(TOOL("f", MOVES)), CHAT(TOOL("f", ""))));
	ck_assert(!same_scope(CHAT(TOOL("f", ",\"p\":{\"a\":1" MOVES "}")),
	    CHAT(TOOL("f", ",\"p\":{\"a\":1}"))));
	ck_assert(same_scope(CHAT(TOOL("f", "") ",\"reasoning_effort\":"
	    "\"high\""), CHAT(",\"reasoning_effort\":\"high\"" TOOL("f", ""))));
	ck_assert(!same_scope(CHAT(",\"reasoning_effort\":\"high\""),
	    CHAT(",\"reasoning_effort\":\"low\"")));
	ck_assert(same_scope(CHAT(",\"reasoning_effort\":null"), CHAT("")));
	ck_assert(same_scope(CHAT(TOOL("g", "") TOOL("f", "")),
	    CHAT(TOOL("f", ""))));
	ck_assert(same_scope(CHAT(TOOL("g", "") ",\"tools\":null"),
	    CHAT("")));
	/* the same value under another key */
	ck_assert(!same_scope(CHAT(",\"chat_template\":\"a\""),
	    CHAT(",\"reasoning_effort\":\"a\"")));
	ck_assert(!same_scope(CHAT(",\"chat_template_kwargs\":{\"a\":true}"),
	    CHAT(",\"chat_template_kwargs\":{\"a\":false}")));
	ck_assert(!same_scope(CHAT(",\"chat_template_kwargs\":{\"a\":\"1\"}"),
	    CHAT(",\"chat_template_kwargs\":{\"a\":1}")));
	ck_assert(!same_scope(CHAT(",\"cache_salt\":\"a\""), CHAT("")));
	ck_assert(!same_scope(CHAT(",\"cache_salt\":\"a\""),
	    CHAT(",\"cache_salt\":\"b\"")));
	ck_assert(same_scope(CHAT(",\"cache_salt\":\"\""), CHAT("")));
	/* the caller sets the model */
	ck_assert(same_scope(CHAT(",\"model\":\"a\""),
	    CHAT(",\"model\":\"b\"")));
}
END_TEST

START_TEST(ahead_is_counted)
{
	ck_assert_uint_eq(take(ENDPOINT_CHAT, CHAT("")).facts.ahead, 0);
	ck_assert_uint_gt(take(ENDPOINT_CHAT, CHAT(TOOL("f", "")))
	    .facts.ahead, 20);
}
END_TEST

/* ---------------------------------------------------------------- order --- */

/*
 * A message of a conversation in a random notation: text as a string or a list,
 * another id, cache_control in another place.
 */
static int
write_message(char *out, size_t room, uint64_t which, struct rng *how)
{
	struct rng what = { which };
	const unsigned long long kind = rng_between(&what, 0, 3);
	const unsigned long long word = rng_next(&what);
	const unsigned long long id = rng_next(how);
	const char *moves = rng_between(how, 0, 1) == 0 ? "" : MOVES;

	if (kind == 0)
		return snprintf(out, room, "{\"role\":\"assistant\","
		    "\"tool_calls\":[{\"id\":\"%llx\",\"function\":{\"name\":"
		    "\"f\",\"arguments\":\"{\\\"x\\\":%llu}\"}}]%s}", id, word,
		    moves);
	if (kind == 1)
		return snprintf(out, room, "{\"role\":\"tool\",\"content\":"
		    "\"%llu\",\"tool_call_id\":\"%llx\"}", word, id);
	if (rng_between(how, 0, 1) == 0)
		return snprintf(out, room, "{\"role\":\"user\",\"content\":"
		    "\"say \\n %llu\"}", word);
	return snprintf(out, room, "{\"role\":\"user\",\"content\": [ "
	    "{\"type\":\"text\"%s,\"text\":\"say \\u000a %llu\"}]}", moves,
	    word);
}

static struct taken
conversation(enum endpoint e, size_t n, uint64_t which, struct rng *how)
{
	static const char *const key[] = { [ENDPOINT_CHAT] = "messages",
		[ENDPOINT_MESSAGES] = "messages",
		[ENDPOINT_RESPONSES] = "input" };
	static char text[65536];
	size_t i, at = (size_t)sprintf(text, "{\"%s\":[", key[e]);

	for (i = 0; i < n; i++) {
		if (i > 0)
			text[at++] = ',';
		at += (size_t)write_message(text + at, sizeof(text) - at,
		    which + i, how);
	}
	snprintf(text + at, sizeof(text) - at, "],\"%s\":\"Be brief.\","
	    "\"model\":\"m\"}", e == ENDPOINT_RESPONSES ? "instructions" :
	    "system");
	return take(e, text);
}

/* A conversation is a prefix of its continuation. */
START_TEST(messages_are_a_prefix)
{
	static const enum endpoint of[] = { ENDPOINT_CHAT, ENDPOINT_MESSAGES,
		ENDPOINT_RESPONSES };
	struct rng how = { test_seed() };
	uint64_t seed = how.state, which, round;
	struct taken early, late;
	size_t n, m;

	for (round = 0; round < test_amount(600); round++) {
		which = rng_next(&how);
		n = rng_between(&how, 1, 30);
		m = n + rng_between(&how, 0, 30);
		early = conversation(of[round % 3], n, which, &how);
		late = conversation(of[round % 3], m, which, &how);
		ck_assert_msg(bodies_begins(p, &early), "seed %llu, round %llu",
		    (unsigned long long)seed, (unsigned long long)round);
		ck_assert_uint_eq(late.facts.messages, m);
		ck_assert(late.units > early.units || m == n);
	}
}
END_TEST

/* No content imitates other messages. */
START_TEST(marks_cannot_be_forged)
{
	struct taken t = take(ENDPOINT_CHAT, "{\"messages\":[{\"role\":"
	    "\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":"
	    "\"b\"}]}"), u;

	u = take(ENDPOINT_CHAT, CHAT(""));
	ck_assert_uint_lt(u.units, t.units);
	u = take(ENDPOINT_CHAT, "{\"messages\":[{\"role\":\"user\","
	    "\"content\":\"a\\u00ff)\\u00ffm\\u00ffruser\\u00ff(\\u00ffp"
	    "\\u00fftb\"}]}");
	ck_assert_uint_ne(u.hash, t.hash);
	ck_assert_uint_gt(u.units, t.units);
	/* one message of two parts, or of other cuts */
	u = take(ENDPOINT_CHAT, USER("\"a\",\"b\""));
	ck_assert_uint_ne(u.hash, t.hash);
	t = take(ENDPOINT_CHAT, USER("\"ab\",\"c\""));
	u = take(ENDPOINT_CHAT, USER("\"a\",\"bc\""));
	ck_assert_uint_eq(u.units, t.units);
	ck_assert_uint_ne(u.hash, t.hash);
	/* a tool's result ends before the user's text */
	t = take(ENDPOINT_MESSAGES, USER("{\"content\":[\"a\"]},\"b\""));
	u = take(ENDPOINT_MESSAGES, USER("{\"content\":[\"a\",\"b\"]}"));
	ck_assert_uint_ne(u.hash, t.hash);
}
END_TEST

Suite *suite_body(void);

Suite *
suite_body(void)
{
	Suite *s = suite_create("body");
	TCase *c = tcase_create("body");

	tcase_add_checked_fixture(c, bed_make, bed_free);
	tcase_add_test(c, endpoints);
	tcase_add_loop_test(c, shape, 0, SHAPES);
	tcase_add_loop_test(c, opening, 0, OPENINGS);
	tcase_add_loop_test(c, pieces, 0, SHAPES);
	tcase_add_test(c, media);
	tcase_add_test(c, media_that_only_a_digest_stands_for);
	tcase_add_test(c, facts);
	tcase_add_loop_test(c, usage_is_asked_for_in_place, 0, USAGES);
	tcase_add_test(c, models);
	tcase_add_loop_test(c, each_id, 0, ID_BODIES);
	tcase_add_test(c, ids_have_a_bound);
	tcase_add_test(c, ids_are_no_part_of_the_prompt);
	tcase_add_test(c, answers_that_are_not_kept);
	tcase_add_test(c, scope);
	tcase_add_test(c, ahead_is_counted);
	tcase_add_test(c, messages_are_a_prefix);
	tcase_add_test(c, marks_cannot_be_forged);
	suite_add_tcase(s, c);
	return s;
}
