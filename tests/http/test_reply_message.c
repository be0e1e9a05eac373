/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_reply_message.c - the prompt of a request and the tokens added by
 * reply_append are the prompt of the next request, as clients send it: for
 * each endpoint, JSON and streams, however they are cut. Nothing is appended
 * in other cases.
 *
 * Texts have ' for ".
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "answers.h"
#include "bodies.h"
#include "reply_message.h"

static struct kvr *k;
static struct kvr_prompt *p;
static struct body *b;
static struct reply *r;

static void
setup(void)
{
	k = bodies_region();
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	b = body_new();
	r = reply_new();
	ck_assert_ptr_nonnull(b);
	ck_assert_ptr_nonnull(r);
}

static void
teardown(void)
{
	alloc_reset();
	reply_free(r);
	body_free(b);
	kvr_prompt_free(p);
	kvr_free(k);
}

/* ---------------------------------------------------------------- cases --- */

struct turn {
	enum endpoint endpoint;
	enum answer_kind kind;
	bool keep; /* reasoning */
	const char *request, *response, *next;
};

#define HELLO "{'role':'user','content':'Hello'}"
#define CHAT(more) "{'messages':[" HELLO more "],'model':'m'}"
#define INPUT(more) "{'input':[" HELLO more "],'instructions':'I'}"
#define DELTA(delta) EVENT("{'id':'x','choices':[{'index':0,'delta':{" delta \
	"},'finish_reason':null}]}")
#define STOP EVENT("{'choices':[{'index':0,'delta':{},'finish_reason':" \
	"'stop'}]}")
#define TYPED(type, more) NAMED(type, "{'type':'" type "'" more "}")

static const struct turn turns[] = {
	/* as the SDK in JavaScript sends it back */
	{ ENDPOINT_CHAT, ANSWER_JSON, false, CHAT(""),
	    "{'id':'x','choices':[{'index':0,'message':{'role':'assistant',"
	    "'content':'Hi \\ud83d\\ude00','refusal':null,'tool_calls':[]},"
	    "'finish_reason':'stop'}],'usage':{'prompt_tokens':5}}",
	    CHAT(",{'role':'assistant','content':'Hi \\ud83d\\ude00',"
	    "'refusal':null,'tool_calls':[]}") },
	/* and in Python: role after content, calls with their ids last */
	{ ENDPOINT_CHAT, ANSWER_JSON, false, CHAT(""),
	    "{'choices':[{'index':0,'message':{'role':'assistant','content':"
	    "null,'reasoning_content':'hm','tool_calls':[{'id':'c1','type':"
	    "'function','function':{'name':'f','arguments':'{\\'a\\': 1}'}},"
	    "{'id':'c2','type':'function','function':{'name':'g','arguments':"
	    "''}}]},'finish_reason':'tool_calls'}]}",
	    CHAT(",{'content':'','refusal':null,'role':'assistant','tool_calls'"
	    ":[{'id':'c1','function':{'arguments':'{\\'a\\': 1}','name':'f'},"
	    "'type':'function'},{'function':{'arguments':'','name':'g'},'id':"
	    "'c2'}]}") },
	{ ENDPOINT_CHAT, ANSWER_STREAM, false, CHAT(""),
	    DELTA("'role':'assistant','content':''")
	    DELTA("'reasoning_content':'let me see'")
	    DELTA("'content':'Hi \\ud83d'") ": a comment\n\n"
	    DELTA("'content':'\\ude00 \303\244\\n'") DELTA("'content':null")
	    STOP EVENT("{'choices':[],'usage':{}}") DONE,
	    CHAT(",{'role':'assistant','content':'Hi \360\237\230\200 \\u00e4"
	    "\\n'}") },
	/* two calls, their pieces in turns */
	{ ENDPOINT_CHAT, ANSWER_STREAM, false, CHAT(""),
	    DELTA("'role':'assistant','content':null,'tool_calls':[{'index':0,"
	    "'id':'c1','type':'function','function':{'name':'f','arguments':''"
	    "}}]")
	    DELTA("'tool_calls':[{'index':1,'id':'c2','function':{'name':'g',"
	    "'arguments':'{\\'b'}}]")
	    DELTA("'tool_calls':[{'index':0,'function':{'arguments':'{\\'a\\':"
	    "'}},{'index':1,'function':{'arguments':'\\':2}'}}]")
	    DELTA("'tool_calls':[{'index':0,'function':{'arguments':' \\'\\\\"
	    "u00e4\\'}'}}]")
	    "data: {'choices':[{'delta':{},\ndata: 'finish_reason':'tool_calls"
	    "'}]}\n\n" DONE,
	    CHAT(",{'tool_calls':[{'id':'c1','type':'function','function':{"
	    "'name':'f','arguments':'{\\'a\\': \\'\\\\u00e4\\'}'}},{'id':'c2',"
	    "'function':{'name':'g','arguments':'{\\'b\\':2}'}}],'content':"
	    "null,'role':'assistant'}") },
	{ ENDPOINT_CHAT, ANSWER_STREAM, true, CHAT(""),
	    DELTA("'role':'assistant','reasoning_content':'h'")
	    DELTA("'reasoning_content':'m'") DELTA("'content':'Hi'")
	    DELTA("'refusal':'no'") DELTA("'function_call':{'name':'f',"
	    "'arguments':'{'}") DELTA("'function_call':{'arguments':'}'}")
	    STOP,
	    CHAT(",{'reasoning_content':'hm','content':'Hi','role':"
	    "'assistant','function_call':{'arguments':'{}','name':'f'},"
	    "'refusal':'no'}") },
	/* the answer is empty */
	{ ENDPOINT_CHAT, ANSWER_STREAM, false, CHAT(""), STOP DONE,
	    CHAT(",{'role':'assistant','content':null}") },
	{ ENDPOINT_COMPLETIONS, ANSWER_JSON, false, "{'prompt':'Once'}",
	    "{'choices':[{'text':' upon\\n','index':0,'logprobs':null}]}",
	    "{'prompt':'Once upon\\n'}" },
	{ ENDPOINT_COMPLETIONS, ANSWER_STREAM, false, "{'prompt':['Once']}",
	    EVENT("{'choices':[{'text':' u','index':0,'finish_reason':null}]}")
	    EVENT("{'choices':[{'text':'pon','index':0,'finish_reason':"
	    "'length'}]}") DONE, "{'prompt':'Once upon'}" },
#define ITEMS "{'id':'rs','type':'reasoning','summary':[],'content':[{'type':" \
	"'reasoning_text','text':'hm'}]},{'id':'m','type':'message','status':" \
	"'completed','role':'assistant','content':[{'type':'output_text'," \
	"'annotations':[],'text':'Hi'}]},{'type':'function_call','id':'i'," \
	"'call_id':'c','name':'f','arguments':'{\\'a\\':1}'}"
	{ ENDPOINT_RESPONSES, ANSWER_JSON, false, INPUT(""),
	    "{'id':'r','object':'response','status':'completed','error':null,"
	    "'output':[" ITEMS "],'usage':{}}",
	    INPUT(",{'role':'assistant','content':'Hi'},{'arguments':"
	    "'{\\'a\\':1}','call_id':'c','name':'f','type':'function_call'}") },
	{ ENDPOINT_RESPONSES, ANSWER_JSON, true, INPUT(""),
	    "{'output':[" ITEMS "],'status':'incomplete'}",
	    INPUT("," ITEMS) },
	{ ENDPOINT_RESPONSES, ANSWER_STREAM, false, INPUT(""),
	    TYPED("response.created", ",'response':{'output':[]}")
	    TYPED("response.output_text.delta", ",'delta':'H'")
	    TYPED("response.output_item.done", ",'output_index':0,'item':{"
	    "'type':'message','role':'assistant','content':[{'type':"
	    "'output_text','text':'Hi'}]}")
	    TYPED("response.output_item.done", ",'item':{'type':"
	    "'function_call','name':'f','arguments':'{}'}")
	    TYPED("response.completed", ",'response':{'status':'completed',"
	    "'output':[{'type':'message','content':'other'}]}"),
	    INPUT(",{'role':'assistant','content':'Hi'},{'arguments':"
	    "'{}','name':'f'}") },
	{ ENDPOINT_RESPONSES, ANSWER_STREAM, false, "{'input':'Hello'}",
	    TYPED("response.completed", ",'response':{'output':[" ITEMS "]}"),
	    "{'input':[" HELLO "," ITEMS "]}" },
	{ ENDPOINT_MESSAGES, ANSWER_JSON, false, CHAT(""),
	    "{'id':'x','type':'message','role':'assistant','content':[{'type':"
	    "'thinking','thinking':'hm','signature':'s'},{'type':'text','text':"
	    "'Hi'},{'type':'tool_use','id':'t','name':'f','input':{'a' : [1 ,"
	    "'\\u00e4']}}],'stop_reason':'tool_use'}",
	    CHAT(",{'content':[{'signature':'s','thinking':'hm','type':"
	    "'thinking'},{'citations':null,'text':'Hi','type':'text'},{'id':'t'"
	    ",'input':{'a':[1,'\303\244']},'name':'f','type':'tool_use'}],"
	    "'role':'assistant'}") },
	{ ENDPOINT_MESSAGES, ANSWER_STREAM, false, CHAT(""),
	    TYPED("message_start", ",'message':{'content':[],'usage':{}}")
	    TYPED("content_block_start", ",'index':0,'content_block':{'type':"
	    "'thinking','thinking':''}")
	    TYPED("content_block_delta", ",'index':0,'delta':{'type':"
	    "'thinking_delta','thinking':'hm'}")
	    TYPED("content_block_delta", ",'index':0,'delta':{'type':"
	    "'signature_delta','signature':'s'}")
	    TYPED("content_block_stop", ",'index':0") TYPED("ping", "")
	    TYPED("content_block_start", ",'index':1,'content_block':{'type':"
	    "'text','text':''}")
	    TYPED("content_block_delta", ",'index':1,'delta':{'type':"
	    "'text_delta','text':'H'}")
	    TYPED("content_block_delta", ",'index':1,'delta':{'type':"
	    "'text_delta','text':'i'}")
	    TYPED("content_block_start", ",'index':2,'content_block':{'type':"
	    "'tool_use','id':'t','name':'f','input':{}}")
	    TYPED("content_block_delta", ",'index':2,'delta':{'type':"
	    "'input_json_delta','partial_json':''}")
	    TYPED("content_block_delta", ",'index':2,'delta':{'type':"
	    "'input_json_delta','partial_json':'{\\'a\\': \\'\\\\ud83d'}")
	    TYPED("content_block_delta", ",'index':2,'delta':{'type':"
	    "'input_json_delta','partial_json':'\\\\ude00\\\\n\\', \\'b\\': 1}'"
	    "}")
	    TYPED("content_block_start", ",'index':3,'content_block':{'type':"
	    "'tool_use','name':'g','input':{}}")
	    TYPED("message_delta", ",'delta':{'stop_reason':'tool_use'}")
	    TYPED("message_stop", ""),
	    CHAT(",{'role':'assistant','content':[{'type':'text','text':'Hi'},"
	    "{'type':'tool_use','id':'t','name':'f','input':{'a':"
	    "'\360\237\230\200\\n','b':1}},{'input':{},'name':'g'}]}") },
	{ ENDPOINT_MESSAGES, ANSWER_STREAM, true, CHAT(""),
	    TYPED("content_block_start", ",'index':0,'content_block':{'type':"
	    "'thinking','thinking':'h'}")
	    TYPED("content_block_delta", ",'index':0,'delta':{'type':"
	    "'thinking_delta','thinking':'m'}")
	    TYPED("content_block_start", ",'index':1,'content_block':{'type':"
	    "'redacted_thinking','data':'zz'}")
	    TYPED("message_stop", ""),
	    CHAT(",{'role':'assistant','content':[{'type':'thinking',"
	    "'thinking':'hm'},{'type':'redacted_thinking','data':'zz'}]}") }
};
enum { TURNS = sizeof(turns) / sizeof(*turns) };

/* -------------------------------------------------------------- reading --- */

/* Gives a copy of each piece; a piece has at least one byte. */
static enum reply_outcome
read_response(const struct turn *t, size_t most, size_t first, size_t step)
{
	char *text = answers_text(t->response, "\n"), *copy;
	size_t at, n = strlen(text), piece = first;

	reply_begin(r, t->endpoint, t->kind, most);
	for (at = 0; at < n; at += piece, piece = step) {
		if (piece == 0 || piece > n - at)
			piece = n - at;
		copy = malloc(piece);
		if (copy == NULL)
			abort();
		memcpy(copy, text + at, piece);
		reply_data(r, copy, piece);
		free(copy);
	}
	free(text);
	return reply_end(r);
}

static struct taken
take(enum endpoint endpoint, const char *quoted)
{
	static const struct pieces whole;
	char *text = answers_text(quoted, "\n");
	struct taken t;

	bodies_take(b, k, p, endpoint, text, strlen(text), &whole, &t);
	free(text);
	ck_assert_int_eq(t.outcome, BODY_PROMPT);
	ck_assert(!t.facts.cut);
	return t;
}

/* The prompt p is `next` now. */
static void
expect(const struct taken *next, const char *which, size_t cut)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };

	ck_assert_int_eq(kvr_prompt_end(p, NULL), KVR_OK);
	ck_assert_int_eq(kvr_prompt_info_get(p, &info), KVR_OK);
	ck_assert_msg(info.units == next->units && bodies_begins(p, next),
	    "cut %zu: %zu bytes, not %zu, after %s", cut, (size_t)info.units,
	    (size_t)next->units, which);
}

static void
one_turn(const struct turn *t, size_t first, size_t step)
{
	struct taken next, now;
	uint64_t bytes;

	body_reasoning(b, t->keep);
	next = take(t->endpoint, t->next);
	now = take(t->endpoint, t->request);
	ck_assert(now.facts.extends);
	ck_assert_int_eq(read_response(t, REPLY_MOST, first, step),
	    REPLY_WHOLE);
	ck_assert_int_eq(reply_append(r, b, p, &bytes), REPLY_WHOLE);
	ck_assert_uint_eq(bytes, next.units - now.units);
	expect(&next, t->response, first);
}

START_TEST(next_prompt)
{
	one_turn(&turns[_i], 0, 0);
}
END_TEST

START_TEST(cut_anywhere)
{
	const struct turn *t = &turns[_i];
	size_t i, n = strlen(t->response);

	for (i = 1; i < n; i++) {
		one_turn(t, i, 0);
		one_turn(t, i, i);
	}
}
END_TEST

/* Events end with any line end. */
START_TEST(line_ends)
{
	struct turn t = turns[_i];
	char *text = answers_text(t.response, _i % 2 == 0 ? "\r" : "\r\n");

	if (t.kind == ANSWER_STREAM) {
		t.response = text;
		one_turn(&t, 0, 0);
		one_turn(&t, 1, 1);
	}
	free(text);
}
END_TEST

/* ------------------------------------------------------------- outcomes --- */

static const struct {
	enum endpoint endpoint;
	enum answer_kind kind;
	enum reply_outcome outcome;
	const char *response;
} others[] = {
	{ ENDPOINT_OTHER, ANSWER_JSON, REPLY_NONE, "{}" },
	{ ENDPOINT_CHAT, ANSWER_JSON, REPLY_CUT, "" },
	{ ENDPOINT_CHAT, ANSWER_JSON, REPLY_CUT, "{}" },
	{ ENDPOINT_CHAT, ANSWER_JSON, REPLY_CUT, "Bad Gateway" },
	{ ENDPOINT_CHAT, ANSWER_JSON, REPLY_CUT, "{'choices':[]}" },
	{ ENDPOINT_CHAT, ANSWER_JSON, REPLY_CUT,
	    "{'choices':[{'message':{'content':'Hi'}}]" },
	{ ENDPOINT_CHAT, ANSWER_JSON, REPLY_CUT,
	    "{'choices':[{'message':{'content':'Hi'}}]} x" },
	{ ENDPOINT_CHAT, ANSWER_JSON, REPLY_NONE,
	    "{'choices':[{'message':null}]}" },
	{ ENDPOINT_CHAT, ANSWER_JSON, REPLY_SEVERAL,
	    "{'choices':[{'message':{}},{'message':{}}]}" },
	{ ENDPOINT_CHAT, ANSWER_JSON, REPLY_FAILED,
	    "{'error':{'message':'x'}}" },
	{ ENDPOINT_CHAT, ANSWER_STREAM, REPLY_CUT, DELTA("'content':'Hi'") },
	{ ENDPOINT_CHAT, ANSWER_STREAM, REPLY_CUT, "" },
	{ ENDPOINT_CHAT, ANSWER_STREAM, REPLY_NONE, DONE },
	{ ENDPOINT_CHAT, ANSWER_STREAM, REPLY_CUT,
	    DELTA("'content':'Hi'") EVENT("{'choices':[") STOP },
	{ ENDPOINT_CHAT, ANSWER_STREAM, REPLY_NONE,
	    DELTA("'content':[{'text':'x'}]") STOP },
	{ ENDPOINT_CHAT, ANSWER_STREAM, REPLY_FAILED,
	    DELTA("'content':'Hi'") EVENT("{'error':'x'}") STOP DONE },
	{ ENDPOINT_CHAT, ANSWER_STREAM, REPLY_SEVERAL,
	    DELTA("'content':'Hi'") EVENT("{'choices':[{'index':1,'delta':{}}]"
	    "}") STOP DONE },
	{ ENDPOINT_COMPLETIONS, ANSWER_STREAM, REPLY_CUT,
	    EVENT("{'choices':[{'text':'Hi'}]}") },
	{ ENDPOINT_RESPONSES, ANSWER_JSON, REPLY_FAILED,
	    "{'output':[],'error':{},'status':'failed'}" },
	{ ENDPOINT_RESPONSES, ANSWER_JSON, REPLY_NONE,
	    "{'output':[],'status':'queued'}" },
	{ ENDPOINT_RESPONSES, ANSWER_JSON, REPLY_NONE,
	    "{'output':[],'status':'completed'}" },
	{ ENDPOINT_RESPONSES, ANSWER_STREAM, REPLY_CUT,
	    TYPED("response.output_item.done", ",'item':{'role':'a'}") },
	{ ENDPOINT_RESPONSES, ANSWER_STREAM, REPLY_FAILED,
	    TYPED("response.output_item.done", ",'item':{'role':'a'}")
	    TYPED("response.failed", ",'response':{}") },
	{ ENDPOINT_MESSAGES, ANSWER_JSON, REPLY_FAILED,
	    "{'type':'error','error':{'type':'overloaded_error'}}" },
	{ ENDPOINT_MESSAGES, ANSWER_STREAM, REPLY_CUT,
	    TYPED("content_block_start", ",'index':0,'content_block':{'type':"
	    "'text','text':'x'}") },
	{ ENDPOINT_MESSAGES, ANSWER_STREAM, REPLY_CUT,
	    TYPED("content_block_delta", ",'index':7,'delta':{'text':'x'}")
	    TYPED("message_stop", "") },
	/* the input of a tool cannot be anything else */
	{ ENDPOINT_MESSAGES, ANSWER_STREAM, REPLY_CUT,
	    TYPED("content_block_start", ",'index':0,'content_block':{'type':"
	    "'tool_use','name':'f','input':{}}")
	    TYPED("content_block_delta", ",'index':0,'delta':{'partial_json':"
	    "'{}},{\\'text\\':\\'x\\'}") TYPED("message_stop", "") },
	{ ENDPOINT_MESSAGES, ANSWER_STREAM, REPLY_CUT,
	    TYPED("content_block_start", ",'index':0,'content_block':{'type':"
	    "'tool_use','name':'f','input':{}}")
	    TYPED("content_block_delta", ",'index':0,'delta':{'partial_json':"
	    "'{},\\'text\\':{}'}") TYPED("message_stop", "") },
};
enum { OTHERS = sizeof(others) / sizeof(*others) };

START_TEST(outcome)
{
	const struct turn t = { others[_i].endpoint, others[_i].kind, false,
		"", others[_i].response, "" };
	struct taken now = take(ENDPOINT_CHAT, CHAT(""));
	size_t i;

	for (i = 0; i < 9; i++) {
		ck_assert_msg(read_response(&t, REPLY_MOST, i, i) ==
		    others[_i].outcome, "%s", t.response);
		ck_assert_int_eq(reply_append(r, b, p, NULL),
		    others[_i].outcome);
	}
	expect(&now, t.response, 0);
}
END_TEST

/* Strings are not checked before: with a wrong escape the prompt stays. */
START_TEST(broken_message)
{
	static const struct turn t = { ENDPOINT_CHAT, ANSWER_JSON, false, "",
		"{'choices':[{'message':{'role':'assistant','content':'a long "
		"text \\x'}}]}", "" };
	struct taken now = take(ENDPOINT_CHAT, CHAT(""));

	ck_assert_int_eq(read_response(&t, REPLY_MOST, 0, 0), REPLY_WHOLE);
	ck_assert_int_eq(reply_append(r, b, p, NULL), REPLY_CUT);
	expect(&now, t.response, 0);
}
END_TEST

/* A response up to the bound is kept whole, a longer one not at all. */
START_TEST(most)
{
	const struct turn *t = &turns[_i];
	enum reply_outcome last = REPLY_TOO_LONG, e;
	size_t n, empty;

	reply_forget(r);
	empty = reply_bytes(r);
	for (n = 0; n < strlen(t->response) + 1; n++) {
		e = read_response(t, n, 7, 7);
		ck_assert(e == REPLY_WHOLE ||
		    (e == REPLY_TOO_LONG && last == REPLY_TOO_LONG));
		ck_assert(e == REPLY_WHOLE || reply_bytes(r) == empty);
		last = e;
	}
	ck_assert_int_eq(last, REPLY_WHOLE);
}
END_TEST

START_TEST(too_many_calls)
{
	struct turn t = { ENDPOINT_CHAT, ANSWER_STREAM, false, "", NULL, "" };
	char *text = malloc(REPLY_CALLS * 100 + 200), *at = text;
	size_t i, n;

	ck_assert_ptr_nonnull(text);
	for (n = REPLY_CALLS; n <= REPLY_CALLS + 1; n++) {
		at = text;
		for (i = 0; i < n; i++)
			at += sprintf(at, EVENT("{'choices':[{'delta':{"
			    "'tool_calls':[{'index':%zu}]}}]}"), i);
		strcpy(at, STOP);
		t.response = text;
		ck_assert_int_eq(read_response(&t, REPLY_MOST, 0, 0),
		    n <= REPLY_CALLS ? REPLY_WHOLE : REPLY_TOO_LONG);
	}
	free(text);
}
END_TEST

/* Each allocation fails in turn: nothing is kept, or all. */
static void
fail_each(const struct turn *t)
{
	struct taken next, now;
	enum reply_outcome e;
	unsigned long fails;

	body_reasoning(b, t->keep);
	next = take(t->endpoint, t->next);
	now = take(t->endpoint, t->request);
	for (fails = 1; fails < 60; fails++) {
		alloc_fail_at(fails);
		reply_begin(r, t->endpoint, t->kind, REPLY_MOST);
		alloc_reset();
		alloc_fail_at(fails);
		e = read_response(t, REPLY_MOST, 11, 11);
		alloc_reset();
		ck_assert(e == REPLY_WHOLE || e == REPLY_NO_MEMORY);
	}
	ck_assert_int_eq(e, REPLY_WHOLE);
	now = take(t->endpoint, t->request);
	ck_assert_int_eq(reply_append(r, b, p, NULL), REPLY_WHOLE);
	expect(&next, t->response, now.units > 0);
}

START_TEST(no_memory)
{
	fail_each(&turns[_i]);
}
END_TEST

/* Blocks of each kind, twice; the first one has a text of n bytes. */
static void
blocks_write(char *response, char *next, int n)
{
	int i, m = n;

	next += sprintf(next, "{'messages':[" HELLO ",{'role':'assistant',"
	    "'content':[");
	for (i = 0; i < 6; i += 3, m = 250) {
		response += sprintf(response,
		    TYPED("content_block_start", ",'index':%d,'content_block':"
		    "{'type':'text','text':'%0*d'}")
		    TYPED("content_block_start", ",'index':%d,'content_block':"
		    "{'type':'redacted_thinking','data':'%0*d'}")
		    TYPED("content_block_start", ",'index':%d,'content_block':"
		    "{'type':'tool_use','name':'f','input':{}}")
		    TYPED("content_block_delta", ",'index':%d,'delta':{"
		    "'partial_json':'{\\'a\\':\\'%0*d\\'}'}"),
		    i, m, 1, i + 1, 250, 2, i + 2, i + 2, 250, 3);
		next += sprintf(next, "%s{'type':'text','text':'%0*d'},{'type'"
		    ":'redacted_thinking','data':'%0*d'},{'type':'tool_use',"
		    "'name':'f','input':{'a':'%0*d'}}", i > 0 ? "," : "",
		    m, 1, 250, 2, 250, 3);
	}
	strcpy(response, TYPED("message_stop", ""));
	strcpy(next, "]}],'model':'m'}");
}

/*
 * The memory of a message grows at 512 bytes and at 1024: each length of the
 * first text moves another byte of it there.
 */
START_TEST(no_memory_in_blocks)
{
	static char response[4096], next[4096];
	const struct turn t = { ENDPOINT_MESSAGES, ANSWER_STREAM, true,
		CHAT(""), response, next };
	int n;

	for (n = 1; n <= 240; n++) {
		blocks_write(response, next, n);
		fail_each(&t);
	}
}
END_TEST

/*
 * Each byte of an answer is looked at a few times, however many of them are
 * escapes. Were it once more for each escape, the test would not end in time.
 */
START_TEST(dense_in_escapes)
{
	enum { ESCAPES = 1 << 21 };
	static const char *const escapes[] = { "\\n", "\\'", "\\\\" };
	static const char begin[] = "{'choices':[{'message':{'content':'",
	    end[] = "'}}]}";
	struct turn t = { ENDPOINT_CHAT, ANSWER_JSON, false, "", NULL, "" };
	char *text = malloc(2 * ESCAPES + sizeof(begin) + sizeof(end));
	char *at = text;
	size_t i;

	ck_assert_ptr_nonnull(text);
	at = stpcpy(at, begin);
	for (i = 0; i < ESCAPES; i++)
		at = stpcpy(at, escapes[_i]);
	strcpy(at, end);
	t.response = text;
	ck_assert_int_eq(read_response(&t, 2 * strlen(text), 0, 0),
	    REPLY_WHOLE);
	free(text);
}
END_TEST

/* A request that no answer continues is marked as such. */
START_TEST(requests_that_end)
{
	static const struct {
		enum endpoint endpoint;
		const char *text;
		bool extends;
	} cases[] = {
		{ ENDPOINT_CHAT, CHAT(""), true },
		{ ENDPOINT_CHAT, CHAT(",{'role':'assistant'}"), false },
		{ ENDPOINT_CHAT, CHAT(",{'role':'assistant'}," HELLO), true },
		{ ENDPOINT_COMPLETIONS, "{'prompt':'a'}", true },
		{ ENDPOINT_COMPLETIONS, "{'prompt':'a','echo':true}", false },
		{ ENDPOINT_COMPLETIONS, "{'prompt':['a','b']}", false },
		{ ENDPOINT_COMPLETIONS, "{'prompt':[1,2]}", false },
		{ ENDPOINT_COMPLETIONS, "{'prompt':[[1,2]]}", false },
		{ ENDPOINT_COMPLETIONS, "{'prompt':[1],'prompt':'a'}", true },
		{ ENDPOINT_RESPONSES, INPUT(""), true },
		{ ENDPOINT_RESPONSES, "{'input':'a','previous_response_id':"
		    "'r'}", false }
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		ck_assert_msg(take(cases[i].endpoint, cases[i].text)
		    .facts.extends == cases[i].extends, "%s", cases[i].text);
}
END_TEST

Suite *suite_reply_message(void);

Suite *
suite_reply_message(void)
{
	Suite *s = suite_create("reply_message");
	TCase *c = tcase_create("reply");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, next_prompt, 0, TURNS);
	tcase_add_loop_test(c, cut_anywhere, 0, TURNS);
	tcase_add_loop_test(c, line_ends, 0, TURNS);
	tcase_add_loop_test(c, outcome, 0, OTHERS);
	tcase_add_test(c, broken_message);
	tcase_add_loop_test(c, most, 0, TURNS);
	tcase_add_test(c, too_many_calls);
	tcase_add_loop_test(c, no_memory, 0, TURNS);
	tcase_add_test(c, no_memory_in_blocks);
	tcase_add_loop_test(c, dense_in_escapes, 0, 3);
	tcase_add_test(c, requests_that_end);
	suite_add_tcase(s, c);
	return s;
}
