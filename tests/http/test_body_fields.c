/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_body_fields.c - which fields of a body count: what engines show to the
 * model makes another prompt or another scope, and nothing else does; strings
 * for which a digest stands take no memory; lines that do not count.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "body_in.h"

#include "body_bed.h"

static struct taken
take(enum endpoint endpoint, const char *text, size_t n, size_t step)
{
	const struct pieces pieces = { .step = step };
	struct taken t;

	bodies_take(b, k, p, endpoint, text, n, &pieces, &t);
	return t;
}

/* Texts have ' for ". The cuts of a body make no difference. */
static struct taken
take_quoted(enum endpoint endpoint, const char *quoted)
{
	char *text = answers_text(quoted, "\n");
	const size_t n = strlen(text);
	struct taken t = take(endpoint, text, n, 0), u;

	u = take(endpoint, text, n, 1);
	ck_assert_msg(bodies_equal(&t, &u), "%s", quoted);
	bodies_take_yajl(b, k, p, endpoint, text, n, false, &u);
	ck_assert_msg(bodies_equal(&t, &u), "%s", quoted);
	free(text);
	return t;
}

static bool
is_same(const struct taken *a, const struct taken *other)
{
	return a->units == other->units && a->hash == other->hash &&
	    memcmp(&a->scope, &other->scope, sizeof(a->scope)) == 0;
}

/* --------------------------------------------------------------- fields --- */

#define CHAT(more) "{'messages':[{'role':'user','content':'q'}]" more "}"
#define MESSAGE(more) "{'messages':[{'role':'user','content':'q'" more "}]}"
#define PART(part) "{'messages':[{'role':'user','content':[" part \
	",{'type':'text','text':'q'}]}]}"
#define TEXT(more) "{'prompt':'q'" more "}"
#define INPUT(more) "{'input':'q'" more "}"
#define ITEM(more) "{'input':[{'role':'user','content':'q'" more "}]}"

static const struct {
	enum endpoint endpoint;
	const char *one, *other;
} unlike[] = {
	/* parts */
	{ ENDPOINT_CHAT, PART("{'type':'image_embeds','image_embeds':'AA'}"),
	    PART("{'type':'image_embeds','image_embeds':'AB'}") },
	{ ENDPOINT_CHAT, PART("{'image_embeds':{'a':'A'}}"),
	    PART("{'image_embeds':{'a':'B'}}") },
	{ ENDPOINT_CHAT, PART("{'type':'audio_embeds','audio_embeds':'AA'}"),
	    PART("{'type':'audio_embeds','audio_embeds':'AB'}") },
	{ ENDPOINT_CHAT, PART("{'type':'prompt_embeds','prompt_embeds':'A'}"),
	    PART("{'type':'prompt_embeds','prompt_embeds':'B'}") },
	{ ENDPOINT_CHAT, PART("{'type':'image','image':'http://a'}"),
	    PART("{'type':'image','image':'http://b'}") },
	{ ENDPOINT_CHAT, PART("{'type':'video','video':'http://a'}"),
	    PART("{'type':'video','video':'http://b'}") },
	{ ENDPOINT_CHAT, PART("{'type':'video','video':['a','b']}"),
	    PART("{'type':'video','video':['b','a']}") },
	{ ENDPOINT_CHAT, PART("{'type':'video','video':['a','b']}"),
	    PART("{'type':'video','video':['a']}") },
	{ ENDPOINT_CHAT, PART("{'type':'video','video':'a','fps':1}"),
	    PART("{'type':'video','video':'a','fps':2}") },
	{ ENDPOINT_CHAT, PART("{'image_url':null,'uuid':'a'}"),
	    PART("{'image_url':null,'uuid':'b'}") },
	{ ENDPOINT_CHAT, PART("{'image_url':{'url':'u','max_pixels':1}}"),
	    PART("{'image_url':{'url':'u','max_pixels':2}}") },
	{ ENDPOINT_CHAT, PART("{'type':'point','x':1}"),
	    PART("{'type':'point','x':2}") },
	{ ENDPOINT_CHAT, PART("{'type':'point','x':1,'y':2}"),
	    PART("{'type':'point','x':2,'y':1}") },
	{ ENDPOINT_MESSAGES, PART("{'content':'r','is_error':true}"),
	    PART("{'content':'r'}") },
	{ ENDPOINT_CHAT, PART("1"), PART("2") },
	/* messages */
	{ ENDPOINT_CHAT, MESSAGE(",'tools':[{'name':'f'}]"),
	    MESSAGE(",'tools':[{'name':'g'}]") },
	{ ENDPOINT_CHAT, MESSAGE(",'documents':[{'text':'a'}]"),
	    MESSAGE(",'documents':[{'text':'b'}]") },
	{ ENDPOINT_CHAT, MESSAGE(",'tools':[{'name':'f'}]"),
	    MESSAGE(",'documents':[{'name':'f'}]") },
	{ ENDPOINT_CHAT, MESSAGE(",'prefix':true"), MESSAGE("") },
	{ ENDPOINT_CHAT, MESSAGE(",'name':7"), MESSAGE(",'name':8") },
	{ ENDPOINT_RESPONSES, ITEM(",'phase':'a'"), ITEM(",'phase':'b'") },
	{ ENDPOINT_RESPONSES, ITEM(",'encrypted_content':'a'"),
	    ITEM(",'encrypted_content':'b'") },
	{ ENDPOINT_CHAT, "{'messages':[{'content':'a','x':1},{'content':'b'}]}",
	    "{'messages':[{'content':'a'},{'content':'b','x':1}]}" },
	/* the top */
	{ ENDPOINT_CHAT, CHAT(",'mm_processor_kwargs':{'num_crops':4}"),
	    CHAT(",'mm_processor_kwargs':{'num_crops':8}") },
	{ ENDPOINT_CHAT, CHAT(",'media_io_kwargs':{'video':{'num_frames':4}}"),
	    CHAT(",'media_io_kwargs':{'video':{'num_frames':8}}") },
	{ ENDPOINT_COMPLETIONS, TEXT(",'add_special_tokens':false"), TEXT("") },
	{ ENDPOINT_COMPLETIONS, TEXT(",'truncate_prompt_tokens':100"),
	    TEXT(",'truncate_prompt_tokens':200") },
	{ ENDPOINT_COMPLETIONS, TEXT(",'suffix':'a'"), TEXT(",'suffix':'b'") },
	{ ENDPOINT_COMPLETIONS, TEXT(",'prompt_embeds':'AA'"),
	    TEXT(",'prompt_embeds':'AB'") },
	{ ENDPOINT_MESSAGES, CHAT(",'thinking':{'type':'enabled'}"),
	    CHAT(",'thinking':{'type':'disabled'}") },
	{ ENDPOINT_CHAT, CHAT(",'enable_thinking':false"), CHAT("") },
	{ ENDPOINT_MESSAGES, CHAT(",'output_config':{'effort':'low'}"),
	    CHAT(",'output_config':{'effort':'high'}") },
	{ ENDPOINT_CHAT, CHAT(",'tools':[[1,2],3]"), CHAT(",'tools':[[1],2,3]")
	    },
	{ ENDPOINT_CHAT, CHAT(",'tools':[{'a':1},{'b':2}]"),
	    CHAT(",'tools':[{'b':2},{'a':1}]") },
	{ ENDPOINT_CHAT, CHAT(",'tools':[{'a':{'b':1}}]"),
	    CHAT(",'tools':[{'b':{'a':1}}]") },
	{ ENDPOINT_CHAT, CHAT(",'tools':[1]"), CHAT(",'tools':['1']") },
	{ ENDPOINT_CHAT, CHAT(",'tools':[true]"), CHAT(",'tools':['']") },
	{ ENDPOINT_CHAT, CHAT(",'tools':[12]"), CHAT(",'tools':[120]") },
	{ ENDPOINT_CHAT, CHAT(",'tools':[-1]"), CHAT(",'tools':[1]") },
	{ ENDPOINT_COMPLETIONS, "{'prompt':[1,2]}", "{'prompt':[1,20]}" },
	{ ENDPOINT_COMPLETIONS, "{'prompt':[1.5]}", "{'prompt':[1]}" }
};
enum { UNLIKE = sizeof(unlike) / sizeof(*unlike) };

START_TEST(what_is_shown_counts)
{
	struct taken one = take_quoted(unlike[_i].endpoint, unlike[_i].one);
	struct taken other = take_quoted(unlike[_i].endpoint, unlike[_i].other);

	ck_assert_int_eq(one.outcome, BODY_PROMPT);
	ck_assert_int_eq(other.outcome, BODY_PROMPT);
	ck_assert_msg(!is_same(&one, &other), "%s %s", unlike[_i].one,
	    unlike[_i].other);
}
END_TEST

#define TOOL "{'type':'function','function':{'name':'f','parameters':{'type'" \
	":'object','required':['a'],'properties':{'a':{'type':'string'}}}}}"
#define TOOL_SORTED "{'function':{'name':'f','parameters':{'properties':{'a':" \
	"{'type':'string'}},'required':['a'],'type':'object'}},'type':" \
	"'function'}"

static const struct {
	enum endpoint endpoint;
	const char *one, *other;
} alike[] = {
	/* nothing, in each form */
	{ ENDPOINT_CHAT, CHAT(""), CHAT(",'tools':[],'documents':[],"
	    "'chat_template_kwargs':{},'mm_processor_kwargs':{},'thinking':"
	    "null,'chat_template':'','functions':[[],{}]") },
	{ ENDPOINT_CHAT, MESSAGE(""), MESSAGE(",'tools':[],'documents':null,"
	    "'x':'','y':{},'z':[[{}]],'tool_calls':[]") },
	{ ENDPOINT_CHAT, PART("{'text':'a'}"),
	    PART("{'text':'a','x':[],'image_url':{},'video':[]}") },
	{ ENDPOINT_CHAT, CHAT(",'tools':[{'name':'f'}]"),
	    CHAT(",'tools':[{'name':'f','strict':null}]") },
	/* order, and ways to write a number */
	{ ENDPOINT_CHAT, CHAT(",'tools':[" TOOL "]"),
	    CHAT(",'tools':[" TOOL_SORTED "]") },
	{ ENDPOINT_CHAT, CHAT(",'tools':[{'a':1,'b':[10,-0.5,0]}]"),
	    CHAT(",'tools':[{'b':[1.0e1,-5E-1,-0.0],'a':1.00}]") },
	{ ENDPOINT_CHAT, MESSAGE(",'tools':[" TOOL "],'x':1"),
	    MESSAGE(",'x':1.0,'tools':[" TOOL_SORTED "]") },
	{ ENDPOINT_CHAT, PART("{'video':'v','fps':2,'max':3}"),
	    PART("{'max':3,'fps':2.0,'video':'v'}") },
	{ ENDPOINT_COMPLETIONS, "{'prompt':[1,20,3]}",
	    "{'prompt':[1.0,2e1,30E-1]}" },
	/* what clients send back, what moves, how tokens are drawn */
	{ ENDPOINT_CHAT, MESSAGE(""), MESSAGE(",'id':'m1','status':'done',"
	    "'cache_control':{'type':'ephemeral'},'annotations':[1],'created':"
	    "7,'tool_call_id':'x'") },
	{ ENDPOINT_CHAT, CHAT(""), CHAT(",'temperature':0.5,'seed':7,'n':2,"
	    "'max_tokens':100,'stop':['a'],'response_format':{'type':'text'},"
	    "'top_logprobs':3,'logit_bias':{'1':2},'x':{'messages':[1]}") },
	{ ENDPOINT_RESPONSES, ITEM(""), ITEM(",'type':'message','id':'a'") },
	/* one conversation by two forms */
	{ ENDPOINT_CHAT, PART("{'type':'image_url','image_url':{'url':'u'}}"),
	    PART("{'type':'input_image','image_url':'u'}") }
};
enum { ALIKE = sizeof(alike) / sizeof(*alike) };

START_TEST(what_is_not_shown_does_not_count)
{
	struct taken one = take_quoted(alike[_i].endpoint, alike[_i].one);
	struct taken other = take_quoted(alike[_i].endpoint, alike[_i].other);

	ck_assert_int_eq(one.outcome, BODY_PROMPT);
	ck_assert_msg(is_same(&one, &other), "%s %s", alike[_i].one,
	    alike[_i].other);
}
END_TEST

/* The same conversation is the same prompt at each endpoint. */
START_TEST(a_system_text_is_shared_by_endpoints)
{
	struct taken chat = take_quoted(ENDPOINT_CHAT, "{'messages':[{'role':"
	    "'system','content':'Be brief.'},{'role':'user','content':'q'}]}");
	struct taken responses = take_quoted(ENDPOINT_RESPONSES, "{'input':'q',"
	    "'instructions':'Be brief.'}");
	struct taken messages = take_quoted(ENDPOINT_MESSAGES, "{'messages':[{"
	    "'role':'user','content':'q'}],'system':'Be brief.'}");
	struct taken blocks = take_quoted(ENDPOINT_MESSAGES, "{'system':[{"
	    "'type':'text','text':'Be brief.','cache_control':{'type':"
	    "'ephemeral'}}],'messages':[{'role':'user','content':'q'}]}");

	ck_assert(is_same(&chat, &responses));
	ck_assert(is_same(&chat, &messages));
	ck_assert(is_same(&chat, &blocks));
	ck_assert_uint_eq(messages.facts.messages, 1);
}
END_TEST

/* --------------------------------------------------------------- photos --- */

static const struct {
	enum endpoint endpoint;
	const char *before, *after;
} photos[] = {
	{ ENDPOINT_CHAT, "{'messages':[{'role':'user','content':[{'type':"
	    "'image_url','image_url':{'url':'data:image/png;base64,",
	    "'}},{'text':'Why?'}]}]}" },
	{ ENDPOINT_CHAT, "{'messages':[{'role':'tool','content':[{'type':"
	    "'image_embeds','image_embeds':{'image':'", "'}}]},{'role':'user',"
	    "'content':'Why?'}]}" },
	{ ENDPOINT_CHAT, "{'messages':[{'role':'user','content':[{'video':["
	    "'a','", "'],'type':'video'},{'text':'Why?'}]}]}" },
	{ ENDPOINT_CHAT, "{'messages':[{'photo':{'jpeg':['", "']},'content':"
	    "'Why?'}]}" },
	{ ENDPOINT_CHAT, "{'preview':'", "','messages':[{'content':'Why?'}]}" },
	{ ENDPOINT_CHAT, "{'tools':[{'icon':'", "'}],'messages':[{'content':"
	    "'Why?'}]}" },
	{ ENDPOINT_CHAT, "{'messages':[{'role':'user','content':[{'type':"
	    "'input_audio','input_audio':{'format':'wav','data':'",
	    "'}},{'text':'Why?'}]}]}" },
	{ ENDPOINT_MESSAGES, "{'messages':[{'role':'user','content':[{'type':"
	    "'tool_result','content':[{'type':'image','source':{'type':"
	    "'base64','media_type':'image/png','data':'",
	    "'}}]},{'text':'Why?'}]}]}" },
	{ ENDPOINT_RESPONSES, "{'input':[{'role':'user','content':[{'type':"
	    "'input_file','filename':'f','file_data':'",
	    "'},{'type':'input_text','text':'Why?'}]}]}" },
	{ ENDPOINT_RESPONSES, "{'input':[{'type':'function_call_output',"
	    "'output':[{'type':'input_image','image_url':'",
	    "'}]},{'role':'user','content':'Why?'}]}" },
	{ ENDPOINT_COMPLETIONS, "{'prompt_embeds':['", "'],'prompt':'Why?'}" }
};
enum { PHOTOS = sizeof(photos) / sizeof(*photos) };
enum { PHOTO_BYTES = 300000 };

/* Some clients escape the slashes of base64. */
static char *
photo_make(size_t which, char last, bool escaped)
{
	char *before = answers_text(photos[which].before, "\n");
	char *after = answers_text(photos[which].after, "\n");
	char *text = malloc(2 * PHOTO_BYTES + 1000), *at;
	size_t i;

	at = stpcpy(text, before);
	for (i = 0; i < PHOTO_BYTES; i++) {
		if (escaped && i % 64 == 63)
			*at++ = '\\';
		*at++ = i % 64 == 63 ? '/' : (char)('A' + i * i % 23);
	}
	*at++ = last;
	strcpy(at, after);
	free(before);
	free(after);
	return text;
}

/* In pieces, with escapes: one prompt, no memory, and no text. */
START_TEST(a_photo_takes_no_memory)
{
	struct taken want, t;
	size_t n, i;
	char *text;

	body_free(b);
	b = body_new();
	for (i = 0; i < 4; i++) {
		text = photo_make((size_t)_i, 'z', i % 2 == 1);
		n = strlen(text);
		t = take(photos[_i].endpoint, text, n, i < 2 ? 65536 : 777);
		ck_assert_int_eq(t.outcome, BODY_PROMPT);
		ck_assert_uint_lt(t.units, 200);
		if (i == 0)
			want = t;
		else
			ck_assert(is_same(&want, &t));
		ck_assert_uint_lt(b->json.text.capacity + b->held.capacity +
		    b->side.capacity, 3 * 8192);
		ck_assert_uint_gt(body_beside(b), PHOTO_BYTES);
		ck_assert_uint_lt(n - body_beside(b), PHOTO_BYTES / 64 + 300);
		free(text);
	}
	text = photo_make((size_t)_i, 'z', false);
	t = take(photos[_i].endpoint, text, strlen(text), 0);
	ck_assert(is_same(&want, &t));
	ck_assert_uint_gt(body_beside(b), PHOTO_BYTES);
	free(text);
}
END_TEST

/* Only what is ignored at the top does not count. */
START_TEST(photos_differ)
{
	char *one = photo_make((size_t)_i, 'y', false);
	char *other = photo_make((size_t)_i, 'z', false);
	struct taken t = take(photos[_i].endpoint, one, strlen(one), 65536), u;

	u = take(photos[_i].endpoint, other, strlen(other), 65536);
	ck_assert_int_eq(is_same(&t, &u), strstr(one, "preview") != NULL);
	free(one);
	free(other);
}
END_TEST

/* ---------------------------------------------------------------- lines --- */

static bool
is_nonce(void *context, const char *line, size_t n)
{
	size_t *calls = context;

	if (calls != NULL)
		(*calls)++;
	return n >= 6 && memcmp(line, "nonce:", 6) == 0;
}

static const struct {
	enum endpoint endpoint;
	bool same;
	const char *with, *without;
} lines[] = {
	{ ENDPOINT_CHAT, true, "{'messages':[{'role':'system','content':"
	    "'nonce: 1\\nBe brief.'}]}",
	    "{'messages':[{'role':'system','content':'Be brief.'}]}" },
	{ ENDPOINT_CHAT, true, "{'messages':[{'role':'system','content':"
	    "'You are x.\\nnonce: 1\\r\\nnonce: 2\\nBe brief.\\nnonce: 3'}]}",
	    "{'messages':[{'role':'system','content':'You are x.\\nBe brief."
	    "\\n'}]}" },
	{ ENDPOINT_CHAT, true, "{'messages':[{'role':'system','content':["
	    "{'text':'nonce: 1'},{'text':'Be brief.'},'nonce: 2']}]}",
	    "{'messages':[{'role':'system','content':'Be brief.'}]}" },
	{ ENDPOINT_CHAT, true, "{'messages':[{'content':'nonce: 1\\nS\\t\\n"
	    "nonce: 2\\nT\\n\\nnonce: 3\\nU'}]}",
	    "{'messages':[{'content':'S\\t\\nT\\n\\nU'}]}" },
	{ ENDPOINT_CHAT, true, "{'messages':[{'role':'system','content':'S'},"
	    "{'content':'nonce: 1\\nq'}]}", "{'messages':[{'role':'system',"
	    "'content':'S'},{'content':'q'}]}" },
	{ ENDPOINT_RESPONSES, true, "{'input':[{'content':'S','role':"
	    "'developer'},{'content':'nonce: 1\\nq'}]}", "{'input':[{'role':"
	    "'developer','content':'S'},{'content':'q'}]}" },
	/* The answer is no such text. */
	{ ENDPOINT_CHAT, false, "{'messages':[{'role':'user','content':'S'},"
	    "{'role':'assistant','content':'nonce: 1\\nq'}]}", "{'messages':["
	    "{'role':'user','content':'S'},{'role':'assistant','content':'q'}]"
	    "}" },
	{ ENDPOINT_MESSAGES, false, "{'system':'I','messages':[{'role':'user',"
	    "'content':'S'},{'content':'nonce: 1\\nq','role':'assistant'}]}",
	    "{'system':'I','messages':[{'role':'user','content':'S'},{'role':"
	    "'assistant','content':'q'}]}" },
	{ ENDPOINT_CHAT, false, "{'messages':[{'content':'S'},{'content':'a'},"
	    "{'content':'nonce: 1\\nq'}]}", "{'messages':[{'content':'S'},"
	    "{'content':'a'},{'content':'q'}]}" },
	{ ENDPOINT_CHAT, false, "{'messages':[{'content':'a nonce: 1\\nq'}]}",
	    "{'messages':[{'content':'q'}]}" },
	{ ENDPOINT_COMPLETIONS, true, "{'prompt':'nonce: 1\\nOnce'}",
	    "{'prompt':'Once'}" },
	{ ENDPOINT_RESPONSES, true, "{'instructions':'nonce: 1\\nI','input':"
	    "'nonce: 7\\nq'}", "{'instructions':'I','input':'q'}" },
	{ ENDPOINT_MESSAGES, true, "{'system':'nonce: 1','messages':[{'content'"
	    ":'q'}]}", "{'messages':[{'content':'q'}]}" },
	/* without a word of the operator, as engines do it */
	{ ENDPOINT_MESSAGES, true, "{'system':[{'type':'text','text':"
	    "'x-anthropic-billing-header: cc_version=2; cch=36ee5;'},{'type':"
	    "'text','text':'S'}],'messages':[{'content':'q'}]}",
	    "{'system':'S','messages':[{'content':'q'}]}" },
	{ ENDPOINT_MESSAGES, false, "{'system':'x-anthropic-billing-header: "
	    "cch=36ee5;\\nS','messages':[{'content':'q'}]}",
	    "{'system':'S','messages':[{'content':'q'}]}" },
	{ ENDPOINT_CHAT, false, "{'messages':[{'role':'system','content':["
	    "{'text':'x-anthropic-billing-header: cch=36ee5;'},{'text':'S'}]}"
	    "]}", "{'messages':[{'role':'system','content':[{'text':'S'}]}]}" }
};
enum { LINES = sizeof(lines) / sizeof(*lines) };

START_TEST(lines_that_do_not_count)
{
	struct taken with, without;

	body_ignore(b, is_nonce, NULL);
	with = take_quoted(lines[_i].endpoint, lines[_i].with);
	without = take_quoted(lines[_i].endpoint, lines[_i].without);
	ck_assert_msg(is_same(&with, &without) == lines[_i].same, "%s",
	    lines[_i].with);
	body_ignore(b, NULL, NULL);
	with = take_quoted(lines[_i].endpoint, lines[_i].without);
	ck_assert(is_same(&with, &without));
}
END_TEST

/* Of a long text some lines are looked at, and all of it counts. */
START_TEST(lines_have_a_bound)
{
	static char text[200000];
	size_t calls = 0, i;
	struct taken t;
	char *at = text + sprintf(text, "{\"prompt\":\"");

	for (i = 0; i < 9999; i++)
		at += sprintf(at, i == 1 || i == 9998 ? "nonce: 1\\n" :
		    "abcdefg\\n");
	sprintf(at, "\"}");
	body_ignore(b, is_nonce, &calls);
	t = take(ENDPOINT_COMPLETIONS, text, strlen(text), 0);
	ck_assert_uint_eq(t.units, 2 + 9997 * 8 + 9);
	ck_assert_uint_lt(calls, 3 * LINES_BYTES / 8);
	body_free(b);
	b = body_new();
	body_ignore(b, is_nonce, &calls);
	for (i = 1; i < 4; i++) {
		alloc_fail_at(i);
		t = take(ENDPOINT_COMPLETIONS, text, strlen(text), 0);
		alloc_reset();
		ck_assert(t.outcome == BODY_NO_MEMORY || t.units == 2 + 9997 *
		    8 + 9);
	}
}
END_TEST

/* -------------------------------------------------------------- clients --- */

/*
 * Two turns of a conversation as clients send them: the second begins with the
 * first, whatever moves or is added in between.
 */
static const struct {
	const char *client;
	enum endpoint endpoint;
	const char *first, *second;
} turns[] = {
	{ "Claude Code", ENDPOINT_MESSAGES,
	    "{'model':'m','max_tokens':9,'thinking':{'type':'adaptive'},"
	    "'output_config':{'effort':'high'},'metadata':{'user_id':'u'},"
	    "'tools':[{'name':'Read','input_schema':{'type':'object'}}],"
	    "'system':[{'type':'text','text':'x-anthropic-billing-header: "
	    "cc_version=2.1; cch=36ee5;'},{'type':'text','text':'You are',"
	    "'cache_control':{'type':'ephemeral'}}],'messages':[{'role':'user',"
	    "'content':[{'type':'text','text':'q','cache_control':{'type':"
	    "'ephemeral'}}]}],'stream':true}",
	    "{'model':'m','messages':[{'role':'user','content':'q'},{'role':"
	    "'assistant','content':[{'type':'thinking','thinking':'hm',"
	    "'signature':'s'},{'type':'tool_use','id':'t1','name':'Read',"
	    "'input':{'file':'a'},'caller':{'type':'direct'}}]},{'role':'user',"
	    "'content':[{'type':'tool_result','tool_use_id':'t1','content':'r',"
	    "'cache_control':{'type':'ephemeral'}}]}],'system':[{'type':'text',"
	    "'text':'x-anthropic-billing-header: cc_version=2.1; cch=0aaa9;'},"
	    "{'type':'text','text':'You are','cache_control':{'type':"
	    "'ephemeral','ttl':'1h'}}],'tools':[{'name':'Read','input_schema':"
	    "{'type':'object'},'cache_control':{'type':'ephemeral'}}],"
	    "'thinking':{'type':'adaptive'},'output_config':{'effort':'high'},"
	    "'max_tokens':9,'metadata':{'user_id':'u'},'stream':true}" },
	{ "Codex", ENDPOINT_RESPONSES,
	    "{'model':'m','instructions':'You are','input':[{'type':'message',"
	    "'role':'developer','content':[{'type':'input_text','text':'d'}]},"
	    "{'type':'message','role':'user','content':[{'type':'input_text',"
	    "'text':'q'}]}],'tools':[{'type':'function','name':'shell','strict'"
	    ":false}],'tool_choice':'auto','parallel_tool_calls':false,"
	    "'reasoning':{'effort':'medium','summary':'auto'},'store':false,"
	    "'stream':true,'include':['reasoning.encrypted_content'],"
	    "'prompt_cache_key':'k'}",
	    "{'model':'m','instructions':'You are','input':[{'type':'message',"
	    "'role':'developer','content':[{'type':'input_text','text':'d'}]},"
	    "{'type':'message','role':'user','content':[{'type':'input_text',"
	    "'text':'q'}]},{'type':'reasoning','summary':[],'content':null,"
	    "'encrypted_content':'zz'},{'type':'function_call','name':'shell',"
	    "'arguments':'{}','call_id':'c1'},{'type':'function_call_output',"
	    "'call_id':'c1','output':'o'}],'tools':[{'type':'function','name':"
	    "'shell','strict':false}],'tool_choice':'auto',"
	    "'parallel_tool_calls':false,'reasoning':{'summary':'auto','effort'"
	    ":'medium'},'store':false,'stream':true,'prompt_cache_key':'k'}" },
	{ "OpenAI SDK", ENDPOINT_CHAT,
	    "{'messages':[{'role':'system','content':'S'},{'role':'user',"
	    "'content':'q'}],'model':'m','stream':true,'stream_options':"
	    "{'include_usage':true}}",
	    "{'messages':[{'role':'system','content':'S'},{'role':'user',"
	    "'content':'q'},{'role':'assistant','content':null,'refusal':null,"
	    "'annotations':[],'audio':null,'function_call':null,'parsed':null,"
	    "'tool_calls':[{'id':'c','type':'function','function':{'name':'f',"
	    "'arguments':'{}','parsed_arguments':null}}]},{'role':'tool',"
	    "'tool_call_id':'c','content':'r'}],'model':'m','n':1}" },
	{ "Vercel SDK", ENDPOINT_CHAT,
	    "{'model':'m','messages':[{'role':'system','content':'S'},{'role':"
	    "'user','content':[{'type':'text','text':'q'},{'type':'image_url',"
	    "'image_url':{'url':'data:image/png;base64,AA'}}]}],'tools':[],"
	    "'tool_choice':'auto'}",
	    "{'model':'m','messages':[{'role':'system','content':'S'},{'role':"
	    "'user','content':[{'type':'text','text':'q'},{'type':'image_url',"
	    "'image_url':{'url':'data:image/png;base64,AA'}}]},{'role':"
	    "'assistant','content':'a','reasoning_content':'hm'},{'role':"
	    "'user','content':'r'}]}" },
	{ "LangChain", ENDPOINT_CHAT,
	    "{'messages':[{'content':'S','role':'system'},{'content':'q',"
	    "'role':'user'}],'model':'m','temperature':0.0}",
	    "{'messages':[{'content':'S','role':'system'},{'content':'q',"
	    "'role':'user'},{'content':'','role':'assistant','tool_calls':[{"
	    "'type':'function','id':'c','function':{'name':'f','arguments':"
	    "'{}'}}]},{'content':'r','role':'tool','tool_call_id':'c'}],"
	    "'model':'m','temperature':0.7}" },
	{ "Open WebUI", ENDPOINT_CHAT,
	    "{'stream':true,'model':'m','messages':[{'role':'user','content':"
	    "'q'}],'metadata':{'chat_id':'c1'}}",
	    "{'stream':true,'model':'m','messages':[{'role':'user','content':"
	    "'q'},{'role':'assistant','content':'a'},{'role':'user','content':"
	    "'r'}],'metadata':{'chat_id':'c1','message_id':'x'}}" }
};
enum { TURNS = sizeof(turns) / sizeof(*turns) };

START_TEST(turns_of_clients)
{
	struct taken first = take_quoted(turns[_i].endpoint, turns[_i].first);
	struct taken second = take_quoted(turns[_i].endpoint,
	    turns[_i].second);

	ck_assert_int_eq(first.outcome, BODY_PROMPT);
	ck_assert_msg(bodies_begins(p, &first), "%s", turns[_i].client);
	ck_assert_uint_gt(second.units, first.units);
	ck_assert_mem_eq(&first.scope, &second.scope, sizeof(first.scope));
}
END_TEST

Suite *suite_body_fields(void);

Suite *
suite_body_fields(void)
{
	Suite *s = suite_create("body_fields");
	TCase *c = tcase_create("body_fields");

	tcase_add_checked_fixture(c, bed_make, bed_free);
	tcase_add_loop_test(c, what_is_shown_counts, 0, UNLIKE);
	tcase_add_loop_test(c, what_is_not_shown_does_not_count, 0, ALIKE);
	tcase_add_test(c, a_system_text_is_shared_by_endpoints);
	tcase_add_loop_test(c, a_photo_takes_no_memory, 0, PHOTOS);
	tcase_add_loop_test(c, photos_differ, 0, PHOTOS);
	tcase_add_loop_test(c, lines_that_do_not_count, 0, LINES);
	tcase_add_test(c, lines_have_a_bound);
	tcase_add_loop_test(c, turns_of_clients, 0, TURNS);
	suite_add_tcase(s, c);
	return s;
}
