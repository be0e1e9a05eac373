/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pool_explain.c - how a request would be routed, before it is. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "pool_bed.h"

#define CHAT "/v1/chat/completions"
#define NOW (100 * BED_SECOND)

static json_object *
explained(struct kvh_call *c)
{
	json_object *o = json_tokener_parse(bed_word(c, KVH_EXPLAIN));

	ck_assert_ptr_nonnull(o);
	return o;
}

static json_object *
member(json_object *o, const char *name)
{
	json_object *value;

	ck_assert(json_object_object_get_ex(o, name, &value));
	return value;
}

static const char *
text(json_object *o, const char *name)
{
	return json_object_get_string(member(o, name));
}

START_TEST(each_worker_has_its_figures)
{
	struct kvh *h = bed_pool("name=chat", 3);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("one ", 4000,
	    ""), NOW);
	json_object *all, *decision;
	char at[8];

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	(void)snprintf(at, sizeof(at), "%s", bed_target(c));
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", bed_json,
	    0, NOW));
	kvh_call_free(c);
	c = bed_request(h, CHAT, NULL, bed_chat("one ", 4000, ""), NOW);
	all = explained(c);
	ck_assert_str_eq(text(all, "upstream"), "chat");
	ck_assert_str_eq(text(all, "outcome"), "prompt");
	ck_assert_uint_eq(strlen(text(all, "scope")), 64);
	ck_assert_uint_eq(json_object_array_length(member(all, "candidates")),
	    3);
	decision = member(all, "decision");
	ck_assert_str_eq(text(decision, "worker"), at);
	ck_assert_int_gt(json_object_get_int64(member(decision,
	    "overlap_blocks")), 10);
	json_object_put(all);
	/* Nothing was booked, and the request goes on. */
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_str_eq(bed_target(c), at);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

START_TEST(a_request_without_a_prompt_has_its_outcome)
{
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c = bed_request(h, CHAT, NULL, "{\"model\":\"m\"}",
	    NOW);
	json_object *all = explained(c);

	ck_assert_str_eq(text(all, "outcome"), "no_prompt");
	ck_assert_str_eq(text(all, "model"), "m");
	ck_assert_ptr_null(member(all, "candidates"));
	json_object_put(all);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

START_TEST(only_before_the_choice)
{
	struct kvh *h = bed_pool("", 1);
	struct kvh_call *c;
	const char *word;
	size_t n;

	ck_assert_int_eq(kvh_begin(h, "POST", 4, CHAT, strlen(CHAT), NOW, &c),
	    0);
	ck_assert_int_eq(kvh_word(c, KVH_EXPLAIN, &word, &n), KVH_EORDER);
	ck_assert_int_eq(kvh_body_end(c, 1), 0);
	ck_assert_int_eq(kvh_word(c, KVH_EXPLAIN, &word, &n), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(kvh_word(c, KVH_EXPLAIN, &word, &n), KVH_EORDER);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

Suite *suite_pool_explain(void);

Suite *
suite_pool_explain(void)
{
	Suite *s = suite_create("pool_explain");
	TCase *t = tcase_create("pool_explain");

	tcase_add_test(t, each_worker_has_its_figures);
	tcase_add_test(t, a_request_without_a_prompt_has_its_outcome);
	tcase_add_test(t, only_before_the_choice);
	suite_add_tcase(s, t);
	return s;
}
