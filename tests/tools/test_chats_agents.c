/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_chats_agents.c - requests of kvroute-chats --sessions, without a
 * network: a clock by hand, and answers made up here.
 */
#include "alloc.h"
#include "chats_agents.h"
#include "chats_answer.h"
#include "chats_history.h"
#include "test.h"

#include <json-c/json.h>

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { TALKS = 64 };

/* The last request of each conversation, by its ticket. */
struct past {
	struct json_object *messages;
	struct json_object *tools;
	char session[AGENTS_ID_BYTES];
};

/* The statistics of a run. */
struct seen {
	uint64_t requests;
	uint64_t sum;       /* of the hashes of all bodies */
	uint64_t grown;     /* requests that contain all earlier ones */
	uint64_t replaced;  /* with a summary, or of the next conversation */
	uint64_t begun;     /* conversations */
	uint64_t results;   /* of calls of tools */
	uint64_t heads[TALKS]; /* hashes of different tools */
	size_t n_heads;
};

static struct chats_options
options_of(enum chats_endpoint endpoint)
{
	return (struct chats_options){ .model = "m", .endpoint = endpoint,
	    .stream = true, .usage = true, .chats = 4, .sessions = 6,
	    .turns = 8, .agents = 3, .prompt = 15000, .limit = 40000,
	    .shrink = 20, .systems = 2, .seed = 7,
	    .think_ns = 10000000 };
}

/* ------------------------------------------------------------ an answer --- */

static void
feed(struct chats_answer *a, const char *text)
{
	chats_answer_data(a, text, strlen(text), 5);
}

static const char call_form[] = "%s{\"index\":%u,\"id\":\"call_%u\","
    "\"type\":\"function\",\"function\":{\"name\":\"tool_%u\",\"arguments\":"
    "\"{\\\"path\\\":\\\"%u\\\"}\"}}";
static const char use_form[] = "%s{\"type\":\"tool_use\",\"id\":\"call_%u\","
    "\"name\":\"tool_%u\",\"input\":{\"path\":\"%u\"}}";

/* Gives an answer with so many calls of tools; up to one call has a text. */
static void
answer_with(struct chats_answer *a, enum chats_endpoint endpoint,
    unsigned calls)
{
	bool chat = endpoint == CHATS_CHAT;
	char one[256];
	unsigned i;

	chats_answer_begin(a, endpoint);
	if (chat)
		feed(a, calls > 1 ? "{\"choices\":[{\"message\":{\"role\":"
		    "\"assistant\",\"content\":null,\"tool_calls\":[" :
		    "{\"choices\":[{\"message\":{\"role\":\"assistant\","
		    "\"content\":\"So \\u00e9\\n\",\"tool_calls\":[");
	else
		feed(a, calls > 1 ? "{\"content\":[" : "{\"content\":["
		    "{\"type\":\"text\",\"text\":\"So \\u00e9\\n\"}");
	for (i = 0; i < calls; i++) {
		if (chat)
			snprintf(one, sizeof(one), call_form, i > 0 ? "," : "",
			    i, i, i, i);
		else
			snprintf(one, sizeof(one), use_form, i > 0 ||
			    calls < 2 ? "," : "", i, i, i);
		feed(a, one);
	}
	feed(a, chat ? "]}}]}" : "]}");
	chats_answer_end(a, 9);
	ck_assert(a->ended && !a->malformed && !a->failed);
	ck_assert_uint_eq(a->n_calls, calls);
}

/* ------------------------------------------------------------- requests --- */

static struct json_object *
member(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	ck_assert_msg(json_object_object_get_ex(o, key, &value), "%s", key);
	return value;
}

static struct json_object *
message(struct json_object *list, size_t i)
{
	ck_assert_uint_lt(i, json_object_array_length(list));
	return json_object_array_get_idx(list, i);
}

static void
has_role(struct json_object *m, const char *role)
{
	ck_assert_str_eq(json_object_get_string(member(m, "role")), role);
}

static uint64_t
hash_of(struct json_object *o)
{
	const char *text = json_object_to_json_string(o);

	return XXH3_64bits(text, strlen(text));
}

static void
see_head(struct seen *seen, uint64_t hash)
{
	size_t i;

	for (i = 0; i < seen->n_heads; i++)
		if (seen->heads[i] == hash)
			return;
	ck_assert_uint_lt(seen->n_heads, TALKS);
	seen->heads[seen->n_heads++] = hash;
}

/* Checks the answer and its successors, from message `at` on. */
static void
check_turn(struct seen *seen, enum chats_endpoint endpoint,
    struct json_object *list, size_t at, unsigned calls)
{
	struct json_object *m = message(list, at), *parts;
	unsigned i;

	has_role(m, "assistant");
	seen->results += calls;
	if (endpoint == CHATS_CHAT && calls > 0) {
		ck_assert_uint_eq(json_object_array_length(member(m,
		    "tool_calls")), calls);
		for (i = 0; i < calls; i++) {
			m = message(list, at + 1 + i);
			has_role(m, "tool");
			ck_assert_int_eq(json_object_get_string(member(m,
			    "tool_call_id"))[5] - '0', (int)i);
		}
		ck_assert_uint_eq(json_object_array_length(list),
		    at + 1 + calls);
		return;
	}
	ck_assert_uint_eq(json_object_array_length(list), at + 2);
	m = message(list, at + 1);
	has_role(m, "user");
	if (calls == 0)
		return;
	parts = member(m, "content");
	ck_assert_uint_eq(json_object_array_length(parts), calls);
	for (i = 0; i < calls; i++)
		ck_assert_int_eq(json_object_get_string(member(message(parts,
		    i), "tool_use_id"))[5] - '0', (int)i);
}

/* All messages of `before` come first, or it begins anew. */
static void
check_messages(struct seen *seen, enum chats_endpoint endpoint,
    struct json_object *before, struct json_object *list, unsigned calls)
{
	size_t head = endpoint == CHATS_CHAT ? 1 : 0, n, i;

	if (before != NULL && json_object_array_length(list) >
	    json_object_array_length(before)) {
		n = json_object_array_length(before);
		for (i = 0; i < n; i++)
			ck_assert_uint_eq(hash_of(message(before, i)),
			    hash_of(message(list, i)));
		check_turn(seen, endpoint, list, n, calls);
		seen->grown++;
		return;
	}
	if (before == NULL)
		seen->begun++;
	else
		seen->replaced++;
	ck_assert_uint_eq(json_object_array_length(list), head + 1);
	if (head > 0)
		has_role(message(list, 0), "system");
	has_role(message(list, head), "user");
}

static void
check_request(struct seen *seen, enum chats_endpoint endpoint,
    struct past *past, const struct agents_request *r, unsigned calls)
{
	struct json_object *o = json_tokener_parse(r->body);
	struct json_object *list = member(o, "messages");
	bool same = past->messages != NULL &&
	    strcmp(past->session, r->session) == 0 &&
	    hash_of(past->tools) == hash_of(member(o, "tools"));

	/* The end of the messages separates conversations. */
	same = same && hash_of(message(past->messages, 0)) ==
	    hash_of(message(list, 0));
	check_messages(seen, endpoint, same ? past->messages : NULL, list,
	    calls);
	see_head(seen, hash_of(member(o, "tools")));
	seen->requests++;
	seen->sum += XXH3_64bits(r->body, r->length);
	json_object_put(past->messages);
	json_object_put(past->tools);
	past->messages = json_object_get(list);
	past->tools = json_object_get(member(o, "tools"));
	memcpy(past->session, r->session, sizeof(past->session));
	json_object_put(o);
}

/* ----------------------------------------------------------------- runs --- */

struct flight {
	uint64_t ticket;
	int64_t end;
};

/* The first to end. */
static size_t
first_of(const struct flight *f, size_t n)
{
	size_t i, first = 0;

	for (i = 1; i < n; i++)
		if (f[i].end < f[first].end)
			first = i;
	return first;
}

/* Plays to the end; responses take `took` nanoseconds, more or less. */
static struct seen
play(const struct chats_options *o, unsigned calls, int64_t took, bool check)
{
	struct agents *a = agents_new(o);
	struct past past[TALKS] = { { NULL, NULL, "" } };
	struct flight flight[TALKS];
	struct seen seen = { .requests = 0 };
	struct agents_request r;
	struct chats_answer answer;
	size_t n = 0, i;
	int64_t now = 0;

	ck_assert(a != NULL && chats_answer_new(&answer));
	answer_with(&answer, o->endpoint, calls);
	while (!agents_done(a)) {
		while (agents_next(a) <= now) {
			ck_assert(agents_take(a, &r));
			ck_assert_uint_lt(r.ticket, TALKS);
			ck_assert_uint_eq(strlen(r.body), r.length);
			if (check)
				check_request(&seen, o->endpoint,
				    &past[r.ticket], &r, calls);
			else {
				seen.requests++;
				seen.sum += XXH3_64bits(r.body, r.length);
			}
			ck_assert_uint_lt(n, agents_most(o));
			flight[n++] = (struct flight){ r.ticket, now + took +
			    (int64_t)(seen.requests % 7) * took / 3 };
		}
		i = first_of(flight, n);
		if (n == 0 || agents_next(a) < flight[i].end) {
			ck_assert_int_ne(agents_next(a), AGENTS_NEVER);
			now = agents_next(a);
			continue;
		}
		now = flight[i].end;
		r.ticket = flight[i].ticket;
		flight[i] = flight[--n];
		ck_assert(agents_ended(a, r.ticket, &answer, now));
	}
	ck_assert_uint_eq(seen.requests, agents_requests(a));
	for (i = 0; i < TALKS; i++) {
		json_object_put(past[i].messages);
		json_object_put(past[i].tools);
	}
	chats_answer_free(&answer);
	agents_free(a);
	return seen;
}

/* A prompt grows by answers and results, until another one begins. */
START_TEST(prompts_grow)
{
	struct chats_options o = options_of(_i % 2 == 0 ? CHATS_CHAT :
	    CHATS_MESSAGES);
	unsigned calls = (unsigned)_i / 2;
	struct seen seen = play(&o, calls, 2000000, true);

	ck_assert_uint_eq(seen.begun + seen.grown + seen.replaced,
	    seen.requests);
	ck_assert_uint_gt(seen.begun, o.sessions);
	ck_assert_uint_gt(seen.grown, seen.requests / 2);
	ck_assert_uint_eq(seen.results, seen.grown * calls);
	/* Two families, each with the tools of agents and of sub-agents. */
	ck_assert_uint_ge(seen.n_heads, 3);
	ck_assert_uint_le(seen.n_heads, 4);
}
END_TEST

/* Returns how often one agent's prompt became shorter, and the longest. */
static uint64_t
replacements(const struct chats_options *o, size_t *longest)
{
	struct agents *a = agents_new(o);
	struct agents_request r;
	struct chats_answer answer;
	uint64_t shorter = 0;
	size_t last = 0;
	int64_t now;

	ck_assert(a != NULL && chats_answer_new(&answer));
	answer_with(&answer, o->endpoint, 1);
	for (*longest = 0; !agents_done(a); last = r.length) {
		now = agents_next(a);
		ck_assert(agents_take(a, &r));
		shorter += r.length < last;
		*longest = r.length > *longest ? r.length : *longest;
		ck_assert(agents_ended(a, r.ticket, &answer, now));
	}
	chats_answer_free(&answer);
	agents_free(a);
	return shorter;
}

/* The last result may lead beyond the limit. */
START_TEST(long_prompts_are_replaced)
{
	struct chats_options o = options_of(CHATS_CHAT);
	size_t longest, whole;
	uint64_t few;

	o.sessions = o.chats = 1;
	o.agents = 0;
	o.turns = 60;
	o.shrink = 1;
	o.limit = 180000;
	few = replacements(&o, &whole);
	ck_assert_uint_gt(whole, 4 * 60000);
	o.limit = 30000;
	ck_assert_uint_gt(replacements(&o, &longest), few);
	ck_assert_uint_lt(longest, whole);
}
END_TEST

/* Whenever responses end, whatever runs beside. */
START_TEST(requests_depend_on_the_seed_alone)
{
	struct chats_options o = options_of(CHATS_CHAT);
	struct seen a = play(&o, 1, 1000000, false);
	struct seen b = play(&o, 1, 90000000, false);

	ck_assert_uint_eq(a.requests, b.requests);
	ck_assert_uint_eq(a.sum, b.sum);
	b = play(&o, 1, 1000, false);
	ck_assert_uint_eq(a.sum, b.sum);
	o.seed++;
	b = play(&o, 1, 1000000, false);
	ck_assert_uint_ne(a.sum, b.sum);
}
END_TEST

/* Lengths are 4 bytes a token, and divided; so is the output's limit. */
START_TEST(lengths_shrink)
{
	struct chats_options o = options_of(CHATS_CHAT);
	struct agents_request r;
	struct agents *a;
	size_t whole;

	o.sessions = o.chats = 1;
	o.shrink = 1;
	a = agents_new(&o);
	ck_assert(agents_take(a, &r));
	whole = r.length;
	agents_free(a);
	ck_assert_uint_gt(whole, o.prompt * 4);
	o.shrink = 10;
	a = agents_new(&o);
	ck_assert(agents_take(a, &r));
	ck_assert_uint_gt(r.length, whole / 10);
	ck_assert_uint_lt(r.length, whole / 9);
	agents_free(a);
}
END_TEST

/* The conversation goes on without the answer. */
START_TEST(answers_that_failed)
{
	struct chats_options o = options_of(CHATS_CHAT);
	struct agents *a;
	struct agents_request r;
	int64_t now;

	o.sessions = o.chats = 1;
	o.agents = 0;
	a = agents_new(&o);
	while (!agents_done(a)) {
		now = agents_next(a);
		ck_assert(agents_take(a, &r));
		ck_assert_ptr_eq(strstr(r.body, "assistant"), NULL);
		ck_assert(agents_ended(a, r.ticket, NULL, now));
	}
	agents_free(a);
}
END_TEST

START_TEST(agents_without_memory)
{
	struct chats_options o = options_of(CHATS_MESSAGES);
	struct agents_request r;
	struct agents *a;
	unsigned long n, failures = 0;
	bool taken = false;

	o.sessions = 2;
	for (n = 1; !taken && n < 5000; n++) {
		alloc_fail_at(n);
		a = agents_new(&o);
		taken = a != NULL && agents_take(a, &r);
		alloc_reset();
		failures += !taken;
		agents_free(a);
	}
	ck_assert(taken);
	ck_assert_uint_gt(failures, 10);
}
END_TEST

/* -------------------------------------------------------------- history --- */

/* A result is cut between its calls, and never within a character. */
START_TEST(results_of_several_calls)
{
	struct chats_answer answer;
	struct history h = { .n_waiting = 0 };

	ck_assert(chats_answer_new(&answer));
	answer_with(&answer, CHATS_CHAT, 3);
	ck_assert(history_answer(&h, &answer));
	ck_assert(history_results(&h, CHATS_CHAT, "a\xc3\xa9", 3));
	ck_assert(history_put(&h.json, "", 1));
	ck_assert_str_eq(h.json.data, "{\"role\":\"assistant\",\"content\":"
	    "null,\"tool_calls\":["
	    "{\"id\":\"call_0\",\"type\":\"function\",\"function\":{\"name\":"
	    "\"tool_0\",\"arguments\":\"{\\\"path\\\":\\\"0\\\"}\"}},"
	    "{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":"
	    "\"tool_1\",\"arguments\":\"{\\\"path\\\":\\\"1\\\"}\"}},"
	    "{\"id\":\"call_2\",\"type\":\"function\",\"function\":{\"name\":"
	    "\"tool_2\",\"arguments\":\"{\\\"path\\\":\\\"2\\\"}\"}}]},"
	    "{\"role\":\"tool\",\"tool_call_id\":\"call_0\",\"content\":\"a\"},"
	    "{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":"
	    "\"\xc3\xa9\"},"
	    "{\"role\":\"tool\",\"tool_call_id\":\"call_2\",\"content\":\"\"}");
	/* No call waits any more. */
	history_clear(&h);
	ck_assert(history_results(&h, CHATS_CHAT, "b", 1));
	ck_assert(history_put(&h.json, "", 1));
	ck_assert_str_eq(h.json.data, "{\"role\":\"user\",\"content\":\"b\"}");
	history_free(&h);
	chats_answer_free(&answer);
}
END_TEST

/* -------------------------------------------------------------- answers --- */

static const char chat_stream[] =
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}"
    "]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,"
    "\"id\":\"c0\",\"function\":{\"name\":\"read\",\"arguments\":\"\"}}]}}"
    "]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,"
    "\"id\":\"c1\",\"function\":{\"name\":\"list\",\"arguments\":"
    "\"{\\\"b\"}}]}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,"
    "\"function\":{\"arguments\":\"{\\\"a\\\":1}\"}}]}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,"
    "\"function\":{\"arguments\":\"\\\":2}\"}}]}}]}\n\n"
    "data: [DONE]\n\n";

static const char messages_stream[] =
    "data: {\"type\":\"message_start\",\"message\":{}}\n\n"
    "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":"
    "{\"type\":\"tool_use\",\"id\":\"c0\",\"name\":\"read\",\"input\":{}}}\n\n"
    "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":"
    "\"input_json_delta\",\"partial_json\":\"{\\\"a\\\"\"}}\n\n"
    "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":"
    "\"input_json_delta\",\"partial_json\":\":1}\"}}\n\n"
    "data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":"
    "{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"list\",\"input\":{}}}\n\n"
    "data: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":"
    "\"input_json_delta\",\"partial_json\":\"{\\\"b\\\":2}\"}}\n\n"
    "data: {\"type\":\"message_stop\"}\n\n";

static void
is_text(const struct answer_buffer *b, const char *text)
{
	ck_assert_uint_eq(b->length, strlen(text));
	ck_assert_mem_eq(b->data, text, b->length);
}

/* Calls in pieces, cut anywhere; the first one is the first text. */
START_TEST(calls_in_streams)
{
	const char *stream = _i == 0 ? chat_stream : messages_stream;
	size_t n = strlen(stream), cut;
	struct chats_answer a;

	ck_assert(chats_answer_new(&a));
	for (cut = 0; cut <= n; cut++) {
		chats_answer_begin(&a, _i == 0 ? CHATS_CHAT : CHATS_MESSAGES);
		a.stream = true;
		chats_answer_data(&a, stream, cut, 3);
		chats_answer_data(&a, stream + cut, n - cut, 4);
		chats_answer_end(&a, 5);
		ck_assert(a.ended && !a.malformed && !a.failed);
		ck_assert_uint_eq(a.n_calls, 2);
		is_text(&a.calls[0].id, "c0");
		is_text(&a.calls[0].name, "read");
		is_text(&a.calls[0].arguments, "{\"a\":1}");
		is_text(&a.calls[1].id, "c1");
		is_text(&a.calls[1].name, "list");
		is_text(&a.calls[1].arguments, "{\"b\":2}");
		ck_assert(a.first_text == 3 || a.first_text == 4);
	}
	ck_assert_int_eq(a.first_text, 3);
	chats_answer_free(&a);
}
END_TEST

/* An index beyond the room is a failure, not a write. */
START_TEST(too_many_calls)
{
	struct chats_answer a;

	ck_assert(chats_answer_new(&a));
	chats_answer_begin(&a, CHATS_CHAT);
	a.stream = true;
	feed(&a, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":"
	    "16,\"id\":\"c\"}]}}]}\n\ndata: [DONE]\n\n");
	ck_assert(a.failed);
	ck_assert_uint_eq(a.n_calls, 0);
	chats_answer_free(&a);
}
END_TEST

Suite *suite_chats_agents(void);

Suite *
suite_chats_agents(void)
{
	Suite *s = suite_create("chats_agents");
	TCase *c = tcase_create("chats_agents");

	tcase_add_loop_test(c, prompts_grow, 0, 8);
	tcase_add_test(c, long_prompts_are_replaced);
	tcase_add_test(c, requests_depend_on_the_seed_alone);
	tcase_add_test(c, lengths_shrink);
	tcase_add_test(c, answers_that_failed);
	tcase_add_test(c, agents_without_memory);
	tcase_add_test(c, results_of_several_calls);
	tcase_add_loop_test(c, calls_in_streams, 0, 2);
	tcase_add_test(c, too_many_calls);
	suite_add_tcase(s, c);
	return s;
}
