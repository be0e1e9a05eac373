/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_answer.c - responses of engines, cut anywhere.
 *
 * The responses are shortened ones of real engines. Each is read whole, in two
 * pieces cut at each byte, and in pieces of 1 to 17 bytes, always with the same
 * result. Single quotes stand for double ones. test_answer_strip.c tests
 * stripping.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "answers.h"

struct sample {
	const char *name;
	enum answer_kind kind;
	const char *text;
	struct kvr_report want; /* kind, prompt, cached, completion */
	bool failed;
};
#define NONE { .kind = KVR_REPORT_NONE }
#define ABSENT(p, c) { .kind = KVR_REPORT_ABSENT, .prompt_tokens = (p), \
	.completion_tokens = (c) }
#define VALUE(p, n, c) { .kind = KVR_REPORT_VALUE, .prompt_tokens = (p), \
	.cached_tokens = (n), .completion_tokens = (c) }

/* -------------------------------------------------------------- samples --- */

#define CHUNK_ID "'id':'chatcmpl-9f8e','object':'chat.completion.chunk'," \
	"'created':1764000000,'model':'meta-llama/Llama-3.1-8B-Instruct',"
#define CHUNK(delta, finish) EVENT("{" CHUNK_ID "'choices':[{'index':0," \
	"'delta':{" delta "},'logprobs':null,'finish_reason':" finish "}]}")
#define VLLM_STREAM(usage) \
	CHUNK("'role':'assistant','content':''", "null") \
	CHUNK("'content':'The \\'usage\\':{\\'prompt_tokens\\':1}'", \
	"null") \
	CHUNK("'content':' is \\u00e4 \\\\'", "'stop'") \
	EVENT("{" CHUNK_ID "'choices':[],'usage':{" usage "}}") DONE

static const struct sample samples[] = {
	{ "vLLM, details on", ANSWER_JSON,
	    "{'id':'chatcmpl-1','object':'chat.completion','choices':[{'index':"
	    "0,'message':{'role':'assistant','content':'Say \\'usage\\':{"
	    "\\'prompt_tokens\\':9}','usage':{'prompt_tokens':7}},'logprobs':"
	    "null,'finish_reason':'stop'}],'usage':{'prompt_tokens':2048,"
	    "'total_tokens':2060,'completion_tokens':12,"
	    "'prompt_tokens_details':{'cached_tokens':2032}},'prompt_logprobs':"
	    "null}", VALUE(2048, 2032, 12), false },
	{ "vLLM, details off", ANSWER_JSON,
	    "{'object':'chat.completion','choices':[],'error':null,'usage':{"
	    "'prompt_tokens':20,'total_tokens':22,'completion_tokens':2,"
	    "'prompt_tokens_details':null}}", ABSENT(20, 2), false },
	{ "vLLM, 0 as null", ANSWER_JSON, "{'usage':{'prompt_tokens':20,"
	    "'completion_tokens':2,'prompt_tokens_details':{'cached_tokens':"
	    "null}}}\n", ABSENT(20, 2), false },
	{ "vLLM stream", ANSWER_STREAM,
	    VLLM_STREAM("'prompt_tokens':512,'total_tokens':515,"
	    "'completion_tokens':3,'prompt_tokens_details':{'cached_tokens':"
	    "496}"), VALUE(512, 496, 3), false },
	{ "vLLM stream, details off", ANSWER_STREAM,
	    VLLM_STREAM("'prompt_tokens':512,'completion_tokens':3"),
	    ABSENT(512, 3), false },
	{ "vLLM stream, usage not asked for", ANSWER_STREAM,
	    CHUNK("'content':'a'", "null") CHUNK("", "'stop'") DONE,
	    NONE, false },
	{ "vLLM, usage in every chunk", ANSWER_STREAM,
	    EVENT("{'choices':[{'text':'a'}],'usage':{'prompt_tokens':5,"
	    "'total_tokens':6,'completion_tokens':1}}")
	    EVENT("{'choices':[{'text':'b'}],'usage':{'prompt_tokens':5,"
	    "'total_tokens':7,'completion_tokens':2}}")
	    EVENT("{'choices':[],'usage':{'prompt_tokens':5,"
	    "'completion_tokens':2,'prompt_tokens_details':{'cached_tokens':"
	    "4}}}") DONE, VALUE(5, 4, 2), false },
	{ "SGLang stream, null everywhere but last", ANSWER_STREAM,
	    EVENT("{'id':'5e','choices':[{'index':0,'delta':{'role':"
	    "'assistant','content':''}}],'usage':null}")
	    EVENT("{'id':'5e','choices':[{'index':0,'delta':{'content':'x'},"
	    "'matched_stop':null}],'usage' : null}")
	    EVENT("{'id':'5e','choices':[],'usage':{'prompt_tokens':100,"
	    "'total_tokens':101,'completion_tokens':1,'prompt_tokens_details':{"
	    "'cached_tokens':64},'reasoning_tokens':0}}") DONE,
	    VALUE(100, 64, 1), false },
	{ "SGLang, 0 as null", ANSWER_JSON,
	    "{'choices':[{'text':'x'}],'usage':{'prompt_tokens':100,"
	    "'completion_tokens':1,'prompt_tokens_details':null},'metadata':{"
	    "'weight_version':'default'}}", ABSENT(100, 1), false },
	{ "TensorRT-LLM", ANSWER_JSON,
	    "{'id':'cmpl-2','object':'text_completion','choices':[{'text':"
	    "' it'}],'usage':{'prompt_tokens':77,'total_tokens':78,"
	    "'completion_tokens':1,'prompt_tokens_details':{'cached_tokens':"
	    "0}},'prompt_token_ids':null}", VALUE(77, 0, 1), false },
	{ "llama.cpp stream", ANSWER_STREAM,
	    EVENT("{'choices':[{'finish_reason':null,'index':0,'delta':{"
	    "'content':'Hi'}}]}")
	    EVENT("{'choices':[],'usage':{'completion_tokens':8,"
	    "'prompt_tokens':31,'total_tokens':39,'prompt_tokens_details':{"
	    "'cached_tokens':30}},'timings':{'cache_n':29,'prompt_n':1,"
	    "'prompt_ms':10.5,'predicted_n':9}}") DONE,
	    VALUE(31, 30, 8), false },
	{ "llama.cpp stream, timings only", ANSWER_STREAM,
	    EVENT("{'choices':[{'index':0,'delta':{'content':'Hi'}}]}")
	    EVENT("{'choices':[{'finish_reason':'stop','index':0,'delta':{}}],"
	    "'tokens_cached':99,'timings':{'cache_n':236,'prompt_n':1,"
	    "'prompt_ms':30.958,'predicted_n':35,'predicted_ms':661.064}}")
	    DONE, VALUE(237, 236, 35), false },
	{ "llama.cpp, older usage", ANSWER_JSON,
	    "{'choices':[{}],'usage':{'completion_tokens':2,'prompt_tokens':"
	    "50},'timings':{'cache_n':40,'prompt_n':10},'tokens_cached':51}",
	    VALUE(50, 40, 2), false },
	{ "llama.cpp, timings of before", ANSWER_JSON,
	    "{'tokens_cached':51,'timings':{'prompt_n':10,'predicted_n':3}}",
	    { .kind = KVR_REPORT_NONE, .completion_tokens = 3 }, false },
	{ "messages", ANSWER_JSON,
	    "{'id':'msg_1','type':'message','role':'assistant','content':[{"
	    "'type':'text','text':'ok'}],'usage':{"
	    "'cache_creation_input_tokens':300,'cache_read_input_tokens':1700,"
	    "'input_tokens':48,'output_tokens':6}}",
	    VALUE(2048, 1700, 6), false },
	{ "messages without a cache", ANSWER_JSON, "{'type':'message','usage':{"
	    "'input_tokens':48,'output_tokens':6,'cache_read_input_tokens':"
	    "null}}", ABSENT(48, 6), false },
	{ "messages stream", ANSWER_STREAM,
	    NAMED("message_start", "{'type':'message_start','message':{'id':"
	    "'msg_2','type':'message','content':[],'usage':{'input_tokens':48,"
	    "'cache_creation_input_tokens':0,'cache_read_input_tokens':2000,"
	    "'output_tokens':1}}}")
	    NAMED("ping", "{'type':'ping'}")
	    NAMED("content_block_start", "{'type':'content_block_start',"
	    "'index':0,'content_block':{'type':'text','text':''}}")
	    NAMED("content_block_delta", "{'type':'content_block_delta',"
	    "'index':0,'delta':{'type':'text_delta','text':'usage'}}")
	    NAMED("message_delta", "{'type':'message_delta','delta':{"
	    "'stop_reason':'end_turn'},'usage':{'output_tokens':15}}")
	    NAMED("message_stop", "{'type':'message_stop'}"),
	    VALUE(2048, 2000, 15), false },
	{ "messages stream, numbers late", ANSWER_STREAM,
	    NAMED("message_start", "{'type':'message_start','message':{'usage':"
	    "{'input_tokens':0,'output_tokens':0}}}")
	    NAMED("message_delta", "{'type':'message_delta','usage':{"
	    "'input_tokens':10,'output_tokens':15,'cache_read_input_tokens':"
	    "90}}"), VALUE(100, 90, 15), false },
	{ "messages stream, zeros late", ANSWER_STREAM,
	    NAMED("message_start", "{'type':'message_start','message':{'usage':"
	    "{'input_tokens':10,'cache_read_input_tokens':90,"
	    "'cache_creation_input_tokens':5,'output_tokens':1}}}")
	    NAMED("message_delta", "{'type':'message_delta','usage':{"
	    "'input_tokens':0,'cache_read_input_tokens':0,"
	    "'cache_creation_input_tokens':0,'output_tokens':9}}"),
	    VALUE(105, 90, 9), false },
	{ "messages stream, zeros always", ANSWER_STREAM,
	    NAMED("message_start", "{'type':'message_start','message':{'usage':"
	    "{'input_tokens':10,'cache_read_input_tokens':0}}}")
	    NAMED("message_delta", "{'type':'message_delta','usage':{"
	    "'input_tokens':0,'cache_read_input_tokens':0,'output_tokens':0}}"),
	    VALUE(10, 0, 0), false },
	{ "chat, zeros late", ANSWER_STREAM, EVENT("{" USAGE "}")
	    EVENT("{'usage':{'prompt_tokens':0,'prompt_tokens_details':{"
	    "'cached_tokens':0},'completion_tokens':2}}"), VALUE(5, 4, 2),
	    false },
	{ "DeepSeek", ANSWER_JSON, "{'usage':{'prompt_tokens':900,"
	    "'completion_tokens':3,'prompt_cache_hit_tokens':640,"
	    "'prompt_cache_miss_tokens':260}}", VALUE(900, 640, 3), false },
	{ "DeepSeek, no sum", ANSWER_JSON, "{'usage':{"
	    "'prompt_cache_hit_tokens':640,'prompt_cache_miss_tokens':260}}",
	    VALUE(900, 640, 0), false },
	{ "DeepSeek, and null", ANSWER_JSON, "{'usage':{'prompt_tokens':900,"
	    "'prompt_tokens_details':null,'prompt_cache_hit_tokens':0,"
	    "'prompt_cache_miss_tokens':900}}", VALUE(900, 0, 0), false },
	{ "cached_tokens of usage", ANSWER_JSON, "{'usage':{'prompt_tokens':"
	    "900,'completion_tokens':3,'cached_tokens':640}}",
	    VALUE(900, 640, 3), false },
	{ "num_cached_tokens of usage", ANSWER_JSON, "{'usage':{"
	    "'prompt_tokens':900,'num_cached_tokens':640}}",
	    VALUE(900, 640, 0), false },
	{ "a 0 beside a number", ANSWER_JSON, "{'usage':{'prompt_tokens':900,"
	    "'prompt_tokens_details':{'cached_tokens':0},'cached_tokens':"
	    "640}}", VALUE(900, 640, 0), false },
	{ "fractions of 0", ANSWER_JSON, "{'usage':{'prompt_tokens':900.0,"
	    "'completion_tokens':3.0,'prompt_tokens_details':{'cached_tokens':"
	    "640.0}}}", VALUE(900, 640, 3), false },
	{ "responses", ANSWER_JSON,
	    "{'id':'resp_1','object':'response','status':'completed','error':"
	    "null,'output':[{'type':'message'}],'usage':{'input_tokens':36,"
	    "'input_tokens_details':{'cached_tokens':32},'output_tokens':87,"
	    "'output_tokens_details':{'reasoning_tokens':0}}}",
	    VALUE(36, 32, 87), false },
	{ "responses, said twice", ANSWER_JSON, "{'usage':{'input_tokens':36,"
	    "'input_tokens_details':{'cached_tokens':32},"
	    "'cache_read_input_tokens':32}}", VALUE(36, 32, 0), false },
	{ "responses stream", ANSWER_STREAM,
	    NAMED("response.created", "{'response':{'id':'resp_2','error':null,"
	    "'usage':null},'sequence_number':0,'type':'response.created'}")
	    NAMED("response.output_text.delta", "{'delta':'Hi','type':"
	    "'response.output_text.delta'}")
	    NAMED("response.completed", "{'response':{'id':'resp_2','output':[{"
	    "'usage':{'input_tokens':1}}],'usage':{'input_tokens':36,"
	    "'input_tokens_details':{'cached_tokens':16},'output_tokens':2}},"
	    "'type':'response.completed'}"), VALUE(36, 16, 2), false },
	{ "responses stream, incomplete", ANSWER_STREAM,
	    NAMED("response.incomplete", "{'type':'response.incomplete',"
	    "'response':{'usage':{'input_tokens':36,'output_tokens':2}}}"),
	    ABSENT(36, 2), false },
	{ "responses stream, failed", ANSWER_STREAM,
	    NAMED("response.output_text.delta", "{'type':'x'}")
	    NAMED("response.failed", "{'type':'response.failed','response':{"
	    "'status':'failed'}}"), NONE, true },
	{ "error in a stream", ANSWER_STREAM,
	    CHUNK("'content':'a'", "null")
	    EVENT("{'error':{'message':'engine died','code':500}}") DONE,
	    NONE, true },
	{ "error as an object", ANSWER_STREAM, CHUNK("'content':'a'", "null")
	    EVENT("{'object':'error','message':'engine died'}"), NONE, true },
	{ "error of messages", ANSWER_STREAM, NAMED("error", "{'type':'error',"
	    "'error':{'type':'overloaded_error'}}"), NONE, true },
	{ "error with status 200", ANSWER_JSON, "{'error':{'message':'no'}}",
	    NONE, true },
	{ "the word error", ANSWER_STREAM, CHUNK(
	    "'content':'\\'error\\':1'", "null")
	    CHUNK("'content':'error','error':1", "null"), NONE, false },
};
enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static void
compare(const struct answers_result *r, const struct sample *s, size_t cut)
{
	const struct kvr_report *w = &s->want, *is = &r->report;

	ck_assert_msg(is->kind == w->kind && r->failed == s->failed &&
	    is->prompt_tokens == w->prompt_tokens &&
	    is->cached_tokens == w->cached_tokens &&
	    is->completion_tokens == w->completion_tokens,
	    "%s, cut at %zu: kind %u, %lu tokens, %lu cached, %lu completed,"
	    " failed %d", s->name, cut, is->kind,
	    (unsigned long)is->prompt_tokens, (unsigned long)is->cached_tokens,
	    (unsigned long)is->completion_tokens, r->failed);
	ck_assert_uint_eq(is->flags & KVR_REPORT_STREAM,
	    s->kind == ANSWER_STREAM ? KVR_REPORT_STREAM : 0);
	ck_assert_uint_eq(is->flags & KVR_REPORT_NO_EVIDENCE,
	    s->failed ? KVR_REPORT_NO_EVIDENCE : 0);
	ck_assert_uint_eq(is->endpoint, 0);
}

/* Reads it in one piece, in two of every length, and in small ones. */
static void
try_cuts(const struct sample *s, const char *line_end)
{
	char *text = answers_text(s->text, line_end);
	struct answer *a = answer_new();
	const size_t n = strlen(text);
	struct answers_result r;
	size_t i;

	ck_assert_ptr_nonnull(a);
	for (i = 0; i < n + (n == 0); i++) {
		r = answers_read(a, s->kind, false, text, n,
		    (struct cut){ i, 0 });
		compare(&r, s, i);
		free(r.out);
	}
	for (i = 1; i <= 17; i++) {
		r = answers_read(a, s->kind, false, text, n,
		    (struct cut){ i, i });
		compare(&r, s, i);
		free(r.out);
	}
	answer_free(a);
	free(text);
}

START_TEST(engines)
{
	try_cuts(&samples[_i], "\n");
}
END_TEST

/* -------------------------------------------------------------- framing --- */

START_TEST(line_ends)
{
	try_cuts(&samples[_i], "\r\n");
	try_cuts(&samples[_i], "\r");
}
END_TEST

/* -------------------------------------------------------------- numbers --- */

static const struct {
	const char *text;
	bool is;
	uint64_t value;
} numbers[] = {
	{ "0", true, 0 }, { "17", true, 17 }, { "17 ", true, 17 },
	{ "9007199254740992", true, UINT64_C(1) << 53 },
	{ "9007199254740993", false, 0 },
	{ "18446744073709551617", false, 0 },
	{ "1000000000000000000000000000000000001", false, 0 },
	{ "9007199254740992.0", true, UINT64_C(1) << 53 },
	{ "640.0", true, 640 }, { "640.000000000000000000", true, 640 },
	{ "6.4e2", true, 640 }, { "6400E-1", true, 640 }, { "1e3", true, 1000 },
	{ "1E0", true, 1 }, { "0.0", true, 0 }, { "0e99", true, 0 },
	{ "0.5e1", true, 5 }, { "10.50e+1", true, 105 },
	{ "-1", false, 0 }, { "-0", false, 0 }, { "-1.0", false, 0 },
	{ "1.5", false, 0 }, { "1.05e1", false, 0 }, { "1e-1", false, 0 },
	{ "1e16", false, 0 }, { "1e99", false, 0 }, { "1e100", false, 0 },
	{ "1e-99999999999999999999", false, 0 },
	{ "0.0000000000000000000000000000001", false, 0 },
	{ "'17'", false, 0 }, { "true", false, 0 }, { "null", false, 0 },
	{ "[17]", false, 0 }, { "{}", false, 0 },
	{ "{'cached_tokens':17}", false, 0 },
};
enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

START_TEST(counts)
{
	struct sample s = { "a number", ANSWER_JSON, NULL, ABSENT(8, 0),
	    false };
	char text[256];

	snprintf(text, sizeof(text), "{'usage':{'prompt_tokens':8,"
	    "'prompt_tokens_details':{'cached_tokens':%s}}}", numbers[_i].text);
	s.name = s.text = text;
	if (numbers[_i].is) {
		s.want.kind = KVR_REPORT_VALUE;
		s.want.cached_tokens = numbers[_i].value;
	}
	try_cuts(&s, "\n");
}
END_TEST

/* --------------------------------------------------------- not to trust --- */

static const struct sample odd[] = {
	{ "byte order mark", ANSWER_STREAM, "\xef\xbb\xbf" EVENT("{" USAGE "}"),
	    VALUE(5, 4, 0), false },
	{ "half a mark", ANSWER_STREAM, "\xef\xbb" EVENT("{" USAGE "}"),
	    NONE, false },
	{ "mark in the middle", ANSWER_STREAM,
	    ": \n\n\xef\xbb\xbf" EVENT("{" USAGE "}"), NONE, false },
	{ "no empty line at the end", ANSWER_STREAM, "data: {" USAGE "}\n",
	    VALUE(5, 4, 0), false },
	{ "no end of line at the end", ANSWER_STREAM, "data: {" USAGE "}",
	    VALUE(5, 4, 0), false },
	{ "no blank", ANSWER_STREAM, "data:{" USAGE "}\n\n",
	    VALUE(5, 4, 0), false },
	{ "lines", ANSWER_STREAM, "id: 7\ndata: {\nretry: 5\ndata:'usage'\n"
	    ": between\ndata\ndata::{'prompt_tokens':5,\n"
	    "data:'prompt_tokens_details':{'cached_tokens'\n"
	    "data:\ndata: :4}}}\n\n", VALUE(5, 4, 0), false },
	{ "a line is a blank", ANSWER_STREAM, "data: {'usage':{'prompt_tokens':"
	    "1\ndata: 2}}\n\n", NONE, false },
	{ "other fields", ANSWER_STREAM, "dat: {" USAGE "}\n\nDATA: {" USAGE
	    "}\n\ndata : {" USAGE "}\n\n data: {" USAGE "}\n\ndataa: {" USAGE
	    "}\n\n:data: {" USAGE "}\n\n", NONE, false },
	{ "JSON is no stream", ANSWER_JSON, EVENT("{" USAGE "}"), NONE, false },
	{ "a stream is no JSON", ANSWER_STREAM, "{" USAGE "}", NONE, false },
	{ "nothing", ANSWER_JSON, "", NONE, false },
	{ "nothing streamed", ANSWER_STREAM, "", NONE, false },
	{ "cut", ANSWER_JSON, "{" USAGE, NONE, false },
	{ "cut in a stream", ANSWER_STREAM, "data: {" USAGE, NONE, false },
	{ "more behind", ANSWER_JSON, "{" USAGE "} x", NONE, false },
	{ "not JSON", ANSWER_JSON, "{" USAGE ",}", NONE, false },
	{ "a list", ANSWER_JSON, "[{" USAGE "}]", NONE, false },
	{ "a string", ANSWER_JSON, "'usage'", NONE, false },
	{ "usage is a list", ANSWER_JSON, "{'usage':[{'prompt_tokens':1}]}",
	    NONE, false },
	{ "usage is empty", ANSWER_JSON, "{'usage':{}}", ABSENT(0, 0), false },
	{ "usage elsewhere", ANSWER_JSON, "{'choices':[{" USAGE "}],'a':{"
	    USAGE ",'message':{" USAGE "}},'message':{'response':{" USAGE
	    "},'x':[{" USAGE "}]},'xs':[{" USAGE "},[{" USAGE "}]]}",
	    NONE, false },
	{ "numbers elsewhere", ANSWER_JSON, "{'prompt_tokens':1,'usage':{'x':{"
	    "'prompt_tokens':2},'y':[{'prompt_tokens':3}],'z':{'cached_tokens':"
	    "4},'prompt_tokens_details':[{'cached_tokens':5}],"
	    "'completion_tokens_details':{'cached_tokens':6}}}",
	    ABSENT(0, 0), false },
	{ "names cut or escaped", ANSWER_JSON, "{'us\\u0061ge':{"
	    "'prompt_tokens':1},'usage\\u0000':{},'usage\\'':{},'usag':{},"
	    "'usages':{}}", NONE, false },
	{ "the last of two", ANSWER_JSON, "{'usage':{'prompt_tokens':1},"
	    USAGE ",'usage':{'prompt_tokens':6}}", VALUE(6, 4, 0), false },
	{ "bytes that are no text", ANSWER_JSON, "{'a':'\xff\xc3','b':"
	    "'0123456789012345678901234567890123456789\xc3\xa4'," USAGE "}",
	    VALUE(5, 4, 0), false },
	{ "long strings", ANSWER_JSON, "{'a':"
	    "'0123456789012345678901234567890123456789','b':"
	    "'0123456789012345678901234567890123456789\\',\\'usage\\':{}\\\\',"
	    "'c':'\\\\\\\\\\''," USAGE "}", VALUE(5, 4, 0), false },
	{ "a number as long as can be", ANSWER_JSON, "{'a':"
	    "1111111111111111111111111111111111111111," USAGE "}",
	    VALUE(5, 4, 0), false },
	{ "a longer one", ANSWER_JSON, "{'a':"
	    "11111111111111111111111111111111111111111," USAGE "}",
	    NONE, false },
	{ "many things in a stream", ANSWER_STREAM, "data: x\n\ndata:\n\n\n\n"
	    "data: null\n\n: ping\n\ndata: [1,{" USAGE "}]\n\ndata: 'a'\n\n"
	    EVENT("{" USAGE "}"), VALUE(5, 4, 0), false },
};
enum { ODD = sizeof(odd) / sizeof(odd[0]) };

START_TEST(oddities)
{
	try_cuts(&odd[_i], "\n");
}
END_TEST

static struct answers_result
read_nested(struct answer *a, size_t depth)
{
	char *tail = answers_text("," USAGE "}", "\n");
	char *text = malloc(2 * depth + 200), *p = text;
	struct answers_result r;

	ck_assert_ptr_nonnull(text);
	p = stpcpy(p, "{\"a\":");
	memset(p, '[', depth);
	memset(p + depth, ']', depth);
	p = stpcpy(p + 2 * depth, tail);
	r = answers_read(a, ANSWER_JSON, false, text, (size_t)(p - text),
	    (struct cut){ 1000, 1000 });
	free(text);
	free(tail);
	return r;
}

/* Deep nesting is abandoned; the next events are read. */
START_TEST(depth)
{
	static const size_t depths[] = { 99, 100, 10000, 99, 1000000 };
	struct answer *a = answer_new();
	struct answers_result r;
	size_t i;

	for (i = 0; i < 5; i++) {
		r = read_nested(a, depths[i]);
		ck_assert_uint_eq(r.report.kind, depths[i] < 100 ?
		    KVR_REPORT_VALUE : KVR_REPORT_NONE);
		free(r.out);
	}
	answer_free(a);
}
END_TEST

/*
 * 4 MB in one string, on one line, in small pieces: one allocation, and time
 * that grows with the text and not with its square.
 */
START_TEST(long_answers)
{
	char *head = answers_text("data: {'type':'response.completed',"
	    "'response':{'text':'", "\n");
	char *tail = answers_text("'," USAGE "}}\n\n", "\n");
	struct answer *a = answer_new();
	struct kvr_report report = { .size = sizeof(report) };
	char piece[1000];
	size_t i;

	memset(piece, 'a', sizeof(piece));
	piece[500] = '\\';
	answer_begin(a, ANSWER_STREAM, false);
	alloc_reset();
	answer_data(a, head, strlen(head));
	for (i = 0; i < test_amount(4000); i++)
		answer_data(a, piece, sizeof(piece));
	answer_data(a, tail, strlen(tail));
	ck_assert_uint_eq(alloc_count(), 1);
	answer_end(a, &report);
	ck_assert_uint_eq(report.kind, KVR_REPORT_VALUE);
	ck_assert_uint_eq(report.cached_tokens, 4);
	answer_free(a);
	free(head);
	free(tail);
}
END_TEST

/* -------------------------------------------------------------- started --- */

static const struct {
	const char *before, *event; /* the response starts with its last byte */
} starts[] = {
	{ "", CHUNK("'role':'assistant','content':''", "null") },
	{ ": ping\n\n: ping\n\ndata:\n\ndata: x\n\n" DONE,
	    CHUNK("'content':'x'", "null") },
	{ EVENT("{'choices':[],'prompt_filter_results':[{}]}"),
	    EVENT("{'choices':[null,{'text':'x'}]}") },
	{ EVENT("{'choices':[{'delta':{}}],'prompt_progress':{'total':9,"
	    "'cache':0,'processed':4}}"),
	    EVENT("{'choices':[{'delta':{}}],'prompt_progress':null}") },
	{ NAMED("message_start", "{'type':'message_start','message':{'usage':{"
	    "'input_tokens':1}}}") NAMED("ping", "{'type': 'ping'}"),
	    NAMED("content_block_start", "{'type':'content_block_start'}") },
	{ NAMED("response.queued", "{'type':'response.queued'}")
	    NAMED("response.created", "{'response':{'type':'x'},'type':"
	    "'response.created'}") NAMED("response.in_progress",
	    "{'type':'response.in_progress'}"),
	    NAMED("response.output_item.added", "{'type':"
	    "'response.output_item.added'}") },
	{ EVENT("{'error':{}}") EVENT("{'type':'error'}")
	    EVENT("{'type':'response.failed'}") EVENT("[{}]"),
	    EVENT("{'tokens':[5]}") },
};
enum { STARTS = sizeof(starts) / sizeof(starts[0]) };

START_TEST(first_token)
{
	const size_t n = strlen(starts[_i].before) + strlen(starts[_i].event);
	struct answer *a = answer_new();
	struct answers_result r;
	char joined[2048], *text;
	size_t i;

	snprintf(joined, sizeof(joined), "%s%s", starts[_i].before,
	    starts[_i].event);
	text = answers_text(joined, "\n");
	for (i = 1; i < 9; i++) {
		r = answers_read(a, ANSWER_STREAM, false, text, n,
		    (struct cut){ i, i });
		ck_assert_uint_eq(r.started_at, n);
		free(r.out);
		/* without its last byte it starts at the end, or not at all */
		r = answers_read(a, ANSWER_STREAM, false, text, n - 1,
		    (struct cut){ i, i });
		ck_assert_uint_eq(r.started_at, 0);
		ck_assert(r.started);
		free(r.out);
	}
	r = answers_read(a, ANSWER_JSON, false, text, n, (struct cut){ 0, 0 });
	ck_assert(!r.started);
	free(r.out);
	free(text);
	answer_free(a);
}
END_TEST

/* ------------------------------------------------------------------ ids --- */

static const struct {
	const char *name;
	enum answer_kind kind;
	const char *text, *id, *conversation;
} ids[] = {
	{ "an answer", ANSWER_JSON, "{'id':'resp_68e5a1c20f908190bb0e4d3b7f1e0c"
	    "550a1b2c3d4e5f6071','object':'response','conversation':{'id':"
	    "'conv_1'},'output':[{'id':'msg_1'}]," USAGE "}",
	    "resp_68e5a1c20f908190bb0e4d3b7f1e0c550a1b2c3d4e5f6071",
	    "conv_1" },
	{ "a stream", ANSWER_STREAM, NAMED("response.created", "{'type':"
	    "'response.created','response':{'id':'resp_1','conversation':{"
	    "'id':'conv_2'}}}") NAMED("response.output_item.added",
	    "{'type':'response.output_item.added','item':{'id':'msg_1'}}"),
	    "resp_1", "conv_2" },
	{ "the first one counts", ANSWER_STREAM, NAMED("response.created",
	    "{'type':'response.created','response':{'id':'a'}}")
	    NAMED("response.in_progress", "{'type':'response.in_progress',"
	    "'response':{'id':'b'}}"), "a", "" },
	{ "too late", ANSWER_STREAM, CHUNK("'content':'a'", "null")
	    EVENT("{'id':'b','conversation':{'id':'c'}}"),
	    "chatcmpl-9f8e", "" },
	{ "elsewhere", ANSWER_JSON, "{'x':{'id':'a'},'item':{'id':'a'},"
	    "'conversation':{'x':{'id':'a'}},'usage':{'id':'a'}}", "", "" },
	{ "no text", ANSWER_JSON, "{'id':7,'conversation':'c'}", "", "" },
	{ "escaped, and not", ANSWER_JSON, "{'id':'ab\\u0063d',"
	    "'conversation':{'id':'ab?'}}", "", "ab?" },
	{ "a conversation", ANSWER_JSON, "{'object':'conversation','id':"
	    "'conv_3'}", "conv_3", "" },
	{ "not whole", ANSWER_JSON, "{'id':'a'", "", "" }
};
enum { IDS = sizeof(ids) / sizeof(ids[0]) };

/* However it is cut. */
START_TEST(ids_of_answers)
{
	char *text = answers_text(ids[_i].text, "\n");
	struct answer *a = answer_new();
	struct answers_result r;
	size_t i;

	for (i = 0; i < 40; i++) {
		r = answers_read(a, ids[_i].kind, false, text, strlen(text),
		    (struct cut){ i, i });
		ck_assert_uint_eq(r.id_length[OBJECT_ID],
		    strlen(ids[_i].id));
		ck_assert_mem_eq(r.id[OBJECT_ID], ids[_i].id,
		    strlen(ids[_i].id));
		ck_assert_uint_eq(r.id_length[OBJECT_CONVERSATION],
		    strlen(ids[_i].conversation));
		ck_assert_mem_eq(r.id[OBJECT_CONVERSATION],
		    ids[_i].conversation, strlen(ids[_i].conversation));
		free(r.out);
	}
	free(text);
	answer_free(a);
}
END_TEST

/* An id is found before a client can have it, up to the bound. */
START_TEST(ids_come_early)
{
	char text[OBJECT_ID_MAX + 40], id[OBJECT_ID_MAX + 2];
	struct answer *a = answer_new();
	const char *found;
	size_t n, length;

	for (n = OBJECT_ID_MAX; n <= OBJECT_ID_MAX + 1; n++) {
		memset(id, 'a', n);
		id[n] = '\0';
		length = (size_t)snprintf(text, sizeof(text),
		    "{\"id\":\"%s\",", id);
		answer_begin(a, ANSWER_JSON, false);
		ck_assert(!answer_id(a, OBJECT_ID, &found, &length));
		length = strlen(text);
		answer_data(a, text, length);
		ck_assert(answer_id(a, OBJECT_ID, &found, &length) ==
		    (n == OBJECT_ID_MAX));
		ck_assert_uint_eq(length, n == OBJECT_ID_MAX ? n : 0);
		ck_assert_mem_eq(found, id, length);
	}
	answer_free(a);
}
END_TEST

/* ------------------------------------------------------------- the rest --- */

/* Whichever allocation fails: the whole result, or none. */
START_TEST(no_memory)
{
	const struct sample *s = &samples[_i];
	char *text = answers_text(s->text, "\n");
	struct answer *a = answer_new();
	struct answers_result r;
	unsigned long n;

	for (n = 1; n < 40; n++) {
		(n % 2 ? alloc_fail_at : alloc_fail_from)(n / 2 + 1);
		r = answers_read(a, s->kind, false, text, strlen(text),
		    (struct cut){ 100, 100 });
		alloc_reset();
		ck_assert(r.report.kind <= s->want.kind);
		ck_assert(!r.failed || s->failed);
		free(r.out);
	}
	r = answers_read(a, s->kind, false, text, strlen(text),
	    (struct cut){ 100, 100 });
	compare(&r, s, 100);
	free(r.out);
	free(text);
	answer_free(a);
}
END_TEST

/* Only the event without memory is lost. */
START_TEST(lost)
{
	char *text = answers_text(EVENT("{" USAGE "}") EVENT("{'usage':{"
	    "'prompt_tokens':7}}"), "\n");
	struct answer *a = answer_new();
	struct answers_result r;

	alloc_fail_at(1);
	r = answers_read(a, ANSWER_STREAM, false, text, strlen(text),
	    (struct cut){ 0, 0 });
	alloc_reset();
	ck_assert_uint_eq(r.report.kind, KVR_REPORT_ABSENT);
	ck_assert_uint_eq(r.report.prompt_tokens, 7);
	free(r.out);
	free(text);
	answer_free(a);
}
END_TEST

/* The caller's fields are kept; a second end and a new begin are safe. */
START_TEST(reports)
{
	struct kvr_report report = { .size = sizeof(report), .endpoint = 3,
	    .flags = KVR_REPORT_NO_EVIDENCE, .cached_tokens = 99 };
	char *text = answers_text("data: {'usage':{'prompt_tokens':3}}", "\n");
	struct answer *a = answer_new();

	answer_begin(a, ANSWER_STREAM, false);
	answer_data(a, text, strlen(text));
	free(text);
	answer_end(a, &report);
	answer_end(a, &report);
	ck_assert_uint_eq(report.size, sizeof(report));
	ck_assert_uint_eq(report.endpoint, 3);
	ck_assert_uint_eq(report.kind, KVR_REPORT_ABSENT);
	ck_assert_uint_eq(report.cached_tokens, 0);
	ck_assert_uint_eq(report.prompt_tokens, 3);
	ck_assert_uint_eq(report.flags, KVR_REPORT_NO_EVIDENCE |
	    KVR_REPORT_STREAM);
	answer_data(a, "data: {\"us", 10);
	answer_begin(a, ANSWER_JSON, true);
	answer_data(a, "{}", 2);
	answer_end(a, &report);
	ck_assert_uint_eq(report.kind, KVR_REPORT_NONE);
	answer_free(a);
	answer_free(NULL);
	alloc_fail_at(1);
	ck_assert_ptr_null(answer_new());
	alloc_reset();
}
END_TEST

/* Events with data count, from the first token on; comments do not. */
START_TEST(events_are_counted)
{
	static const char text[] =
	    ": hello\n\n"
	    "data: {\"choices\":[]}\n\n"
	    "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"
	    ": still here\n\n"
	    "data: {\"choices\":[{\"text\":\"b\"}]}\n\n"
	    "data: {\"choices\":[{\"text\":\"c\"}]}\n";
	struct answer *a = answer_new();
	size_t i;

	ck_assert_ptr_nonnull(a);
	answer_begin(a, ANSWER_STREAM, false);
	for (i = 0; i < sizeof(text) - 1; i++)
		answer_data(a, &text[i], 1);
	ck_assert_uint_eq(answer_events(a), 2);
	answer_data(a, "\n", 1);
	ck_assert_uint_eq(answer_events(a), 3);
	answer_begin(a, ANSWER_STREAM, false);
	ck_assert_uint_eq(answer_events(a), 0);
	answer_free(a);
}
END_TEST

Suite *suite_answer(void);

Suite *
suite_answer(void)
{
	Suite *s = suite_create("answer");
	TCase *t = tcase_create("answer");

	tcase_add_loop_test(t, engines, 0, SAMPLES);
	tcase_add_loop_test(t, line_ends, 0, SAMPLES);
	tcase_add_loop_test(t, counts, 0, NUMBERS);
	tcase_add_loop_test(t, oddities, 0, ODD);
	tcase_add_test(t, depth);
	tcase_add_test(t, long_answers);
	tcase_add_test(t, events_are_counted);
	tcase_add_loop_test(t, first_token, 0, STARTS);
	tcase_add_loop_test(t, ids_of_answers, 0, IDS);
	tcase_add_test(t, ids_come_early);
	tcase_add_loop_test(t, no_memory, 0, SAMPLES);
	tcase_add_test(t, lost);
	tcase_add_test(t, reports);
	suite_add_tcase(s, t);
	return s;
}
