/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_status_explain.c - the expected treatment of a body: with a prompt,
 * without, where no worker can be chosen.
 */
#include "test.h"

#include <json-c/json.h>

#include "fleet.h"
#include "status_explain.h"

static struct explain explained;

static void
report(void)
{
	status_explain(&explained, &sink.writer);
}

static void
setup(void)
{
	static struct body_facts facts;

	fleet_setup();
	fleet_prompt("abcdef");
	memset(&facts, 0, sizeof(facts));
	facts.stream = true;
	facts.messages = 3;
	memset(&explained, 0, sizeof(explained));
	explained.upstream = fleet[0].name;
	explained.upstream_length = fleet[0].name_length;
	explained.endpoint = ENDPOINT_CHAT;
	explained.facts = &facts;
	explained.model = "m\xff";
	explained.model_length = 2;
	explained.kvr = fleet[0].kvr;
	explained.prompt = prompt;
	explained.info.size = sizeof(explained.info);
	ck_assert_int_eq(kvr_prompt_info_get(prompt, &explained.info), KVR_OK);
	explained.scope.digest[0] = 0x1fULL << 56;
	explained.scope.digest[3] = 0xabc;
	/* observed prompts have been prefilled */
	explained.now = 2 * FLEET_NOW;
}

/* The text must begin with this, single quotes for double ones. */
static void
ck_begins(const char *want)
{
	char text[1024];
	size_t i;

	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	report();
	ck_assert(!sink.writer.failed);
	ck_assert_uint_eq(sink.held, 0);
	for (i = 0; want[i] != '\0'; i++)
		text[i] = want[i] == '\'' ? '"' : want[i];
	text[i] = '\0';
	ck_assert_msg(strncmp(sink.text, text, i) == 0, "%s", sink.text);
}

#define FACTS(outcome) "{'upstream':'a\\'b\\\\','endpoint':'chat'," \
	"'outcome':'" outcome "','model':'m?','stream':true," \
	"'truncated':false,'messages':3,"
#define NO_DIGEST "0000000000000000"

START_TEST(a_prompt)
{
	struct json_object *all, *list, *first, *value;

	ck_begins(FACTS("prompt") "'scope':'1f00000000000000" NO_DIGEST
	    NO_DIGEST "0000000000000abc','bytes':6,'blocks':6,'tokens':2,"
	    "'decision':{'worker':'up','reason':'");
	all = json_tokener_parse(sink.text);
	ck_assert_ptr_nonnull(all);
	ck_assert(json_object_object_get_ex(all, "candidates", &list));
	ck_assert_uint_eq(json_object_array_length(list), 3);
	first = json_object_array_get_idx(list, 0);
	ck_assert(json_object_object_get_ex(first, "verdict", &value));
	ck_assert_str_eq(json_object_get_string(value), "eligible");
	ck_assert(json_object_object_get_ex(first, "overlap_blocks", &value));
	ck_assert_int_eq(json_object_get_int(value), 4);
	first = json_object_array_get_idx(list, 1);
	ck_assert(json_object_object_get_ex(first, "verdict", &value));
	ck_assert_str_eq(json_object_get_string(value), "not_up");
	ck_assert(json_object_object_get_ex(first, "age", &value));
	ck_assert_ptr_null(value);
	json_object_put(all);
}
END_TEST

static int
rank_of(struct json_object *candidate)
{
	struct json_object *value;

	return json_object_object_get_ex(candidate, "rank", &value)
	    ? json_object_get_int(value) : -1;
}

START_TEST(candidates_with_ranks)
{
	struct json_object *all, *list, *decision;

	fleet_rank(fleet[0].kvr, "up", 1);
	ck_begins(FACTS("prompt"));
	all = json_tokener_parse(sink.text);
	ck_assert_ptr_nonnull(all);
	ck_assert(json_object_object_get_ex(all, "candidates", &list));
	ck_assert_int_eq(rank_of(json_object_array_get_idx(list, 0)), 0);
	ck_assert_int_eq(rank_of(json_object_array_get_idx(list, 1)), -1);
	ck_assert_int_eq(rank_of(json_object_array_get_idx(list, 3)), 1);
	ck_assert(json_object_object_get_ex(all, "decision", &decision));
	ck_assert_int_eq(rank_of(decision), 0);
	json_object_put(all);
}
END_TEST

/* It runs more than its share, and another does not. */
START_TEST(above_bound)
{
	struct kvr_load load = { .size = sizeof(load), .requests = 100 };
	struct json_object *all, *list, *value;
	struct kvr_policy policy;
	uint64_t id;

	/* of two workers, none can have above twice its share */
	(void)kvr_policy_init(&policy, sizeof(policy));
	policy.balanced_bound = 1.5;
	ck_assert_int_eq(kvr_policy_set(fleet[0].kvr, &policy), KVR_OK);
	ck_assert_int_eq(kvr_worker_find(fleet[0].kvr, "up", 2, 0, &id),
	    KVR_OK);
	ck_assert_int_eq(kvr_worker_set_load(fleet[0].kvr, id, 0, &load),
	    KVR_OK);
	ck_begins(FACTS("prompt"));
	all = json_tokener_parse(sink.text);
	ck_assert_ptr_nonnull(all);
	ck_assert(json_object_object_get_ex(all, "candidates", &list));
	ck_assert(json_object_object_get_ex(json_object_array_get_idx(list, 0),
	    "verdict", &value));
	ck_assert_str_eq(json_object_get_string(value), "above_bound");
	/* its overlap is given up */
	ck_assert(json_object_object_get_ex(all, "decision", &list));
	ck_assert(json_object_object_get_ex(list, "overlap_tokens", &value));
	ck_assert_int_eq(json_object_get_int(value), 0);
	ck_assert(json_object_object_get_ex(list, "best_tokens", &value));
	ck_assert_int_eq(json_object_get_int(value), 1);
	json_object_put(all);
}
END_TEST

START_TEST(no_prompt)
{
	explained.outcome = REASON_NOT_JSON;
	explained.kvr = NULL;
	explained.prompt = NULL;
	ck_begins(FACTS("not_json") "'scope':null,'bytes':null,'blocks':null,"
	    "'tokens':null,'decision':null,'candidates':null}\n");
}
END_TEST

START_TEST(no_worker)
{
	explained.kvr = fleet[2].kvr;
	ck_begins(FACTS("prompt"));
	ck_assert_ptr_nonnull(strstr(sink.text,
	    "\"decision\":null,\"error\":\""));
	ck_assert_ptr_nonnull(strstr(sink.text, "\"candidates\":[]}\n"));
}
END_TEST

START_TEST(no_room_and_no_memory)
{
	fails_everywhere(report);
}
END_TEST

static const struct writer_calls *sink_calls;

/* From this key on the lock is held. */
static bool
write_and_hold(void *context, const void *bytes, size_t n)
{
	bool written = sink_calls->write(context, bytes, n);

	if (sink.writer.calls != sink_calls &&
	    strstr(sink.text, "\"candidates\"") != NULL) {
		sink.writer.calls = sink_calls;
		fleet_hold(fleet[0].kvr, false);
		busy_begin(0);
	}
	return written;
}

/* The holder of the lock is before its change, or in the middle of it. */
START_TEST(a_held_lock)
{
	fails_while_held(report, _i == 1);
}
END_TEST

START_TEST(a_busy_lock)
{
	repeats_what_is_busy(report);
}
END_TEST

/* Each call succeeds within the tries, all of them together do not. */
START_TEST(tries_are_of_the_whole_report)
{
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	busy_begin(STATUS_TRIES / 2 - 1);
	report();
	ck_assert_uint_lt(busy_end(), STATUS_TRIES + 3);
	ck_assert(sink.writer.failed);
}
END_TEST

/* No worker is null because its name could not be read. */
START_TEST(lock_held_after_the_candidates)
{
	struct writer_calls calls;

	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	sink_calls = sink.writer.calls;
	calls = *sink_calls;
	calls.write = write_and_hold;
	sink.writer.calls = &calls;
	report();
	ck_gave_up();
	fleet_let_go(fleet[0].kvr);
	ck_assert_ptr_null(strstr(sink.text, "\"worker\":null"));
}
END_TEST

Suite *suite_status_explain(void);

Suite *
suite_status_explain(void)
{
	Suite *s = suite_create("status_explain");
	TCase *c = tcase_create("status_explain");

	tcase_add_checked_fixture(c, setup, fleet_teardown);
	tcase_add_test(c, a_prompt);
	tcase_add_test(c, candidates_with_ranks);
	tcase_add_test(c, above_bound);
	tcase_add_test(c, no_prompt);
	tcase_add_test(c, no_worker);
	tcase_add_test(c, no_room_and_no_memory);
	tcase_add_loop_test(c, a_held_lock, 0, 2);
	tcase_add_test(c, a_busy_lock);
	tcase_add_test(c, tries_are_of_the_whole_report);
	tcase_add_test(c, lock_held_after_the_candidates);
	suite_add_tcase(s, c);
	return s;
}
