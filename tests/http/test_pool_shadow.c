/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pool_shadow.c - a plain method chooses, and the library is asked. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "kvroute.h"
#include "pool_bed.h"

#define CHAT "/v1/chat/completions"
#define NOW (100 * BED_SECOND)

/* A chat passes; returns the first letter of its server. */
static char
chat(struct kvh *h, const char *text)
{
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat(text, 4000,
	    ""), NOW);
	char at;

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	at = bed_target(c)[0];
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", bed_json,
	    0, NOW));
	kvh_call_free(c);
	return at;
}

/* Requests that were compared, and those of them at another server. */
static int64_t
compared(struct kvh *h, int64_t *others)
{
	static char text[1 << 16];
	const char *at;
	size_t n;

	ck_assert_int_eq(kvh_status(h, KVH_JSON, NOW, text, sizeof(text) - 1,
	    &n), 0);
	text[n] = '\0';
	at = strstr(text, "\"shadowed\":{\"same\":");
	ck_assert_ptr_nonnull(at);
	at = strstr(at, "\"other\":");
	ck_assert_ptr_nonnull(at);
	*others = strtoll(at + 8, NULL, 10);
	return *others + bed_count(h, "same");
}

START_TEST(servers_take_turns_and_the_choice_is_counted)
{
	struct kvh *h = bed_pool("shadow=round_robin", 2);
	const char first = chat(h, "one ");
	char text[1 << 15];
	int64_t others;
	size_t n;

	/* The library has it at one server, and the method takes the other. */
	ck_assert_int_ne(chat(h, "one "), first);
	ck_assert_int_eq(compared(h, &others), 2);
	ck_assert_int_ge(others, 1);
	ck_assert_int_gt(bed_count(h, "wanted_blocks"), 10);
	ck_assert_int_eq(bed_count(h, "taken_blocks"), 0);
	/* Now both have it. */
	ck_assert_int_eq(chat(h, "one "), first);
	ck_assert_int_ne(chat(h, "one "), first);
	ck_assert_int_gt(bed_count(h, "taken_blocks"), 10);
	ck_assert_int_eq(compared(h, &others), 4);
	ck_assert_int_eq(kvh_status(h, KVH_JSON, NOW, text, sizeof(text) - 1,
	    &n), 0);
	ck_assert_ptr_nonnull(strstr(text, "\"shadow\":\"round_robin\""));
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	kvh_free(h);
}
END_TEST

START_TEST(a_server_that_failed_or_is_drained_has_no_turn)
{
	struct kvh *h = bed_pool("shadow=round_robin", 3);
	struct kvh_call *c;
	char at;
	int i;

	ck_assert_int_eq(bed_server(h, "b", "state=drain"), 0);
	for (i = 0; i < 6; i++)
		ck_assert_int_ne(chat(h, "two "), 'b');
	c = bed_request(h, CHAT, NULL, bed_chat("three ", 4000, ""), NOW);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	at = bed_target(c)[0];
	ck_assert_int_eq(kvh_failed(c, KVH_BROKE, 0, NOW), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(bed_target(c)[0], at == 'a' ? 'c' : 'a');
	/* It is the last one that has not failed. */
	ck_assert_int_eq(kvh_failed(c, KVH_BROKE, 0, NOW), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(bed_target(c)[0], 'b');
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* By weight, wherever the prompt and the session are. */
START_TEST(the_fewest_requests_count_and_no_cache)
{
	struct kvh *h = bed_pool("shadow=least_conn affinity_key=auto", 2);
	struct kvh_call *c[6];
	unsigned i, at_a = 0;
	int64_t others;
	uint32_t targets;

	ck_assert_int_eq(bed_server(h, "a", "weight=2"), 0);
	for (i = 0; i < 6; i++) {
		c[i] = bed_request(h, CHAT, "x-session-id: s\n",
		    bed_chat("four ", 4000, ""), NOW);
		ck_assert_int_eq(kvh_pick(c[i], NOW, &targets), 0);
		ck_assert_uint_eq(targets, 2);
		at_a += bed_target(c[i])[0] == 'a';
	}
	ck_assert_uint_eq(at_a, 4);
	ck_assert_int_eq(compared(h, &others), 6);
	for (i = 0; i < 6; i++)
		kvh_call_free(c[i]);
	/* Without a prompt there is nothing to compare. */
	c[0] = bed_request(h, "/v1/models", NULL, NULL, NOW);
	ck_assert_int_eq(kvh_pick(c[0], NOW, NULL), 0);
	ck_assert_str_eq(bed_word(c[0], KVH_REASON_WORD), "endpoint");
	ck_assert_int_eq(compared(h, &others), 6);
	kvh_call_free(c[0]);
	kvh_free(h);
}
END_TEST

START_TEST(without_a_server_it_is_as_without_shadow)
{
	struct kvh *h = bed_pool("shadow=least_conn", 0);
	struct kvh_call *c = bed_request(h, CHAT, NULL, bed_chat("five ", 4000,
	    ""), NOW);

	ck_assert_int_eq(kvh_pick(c, NOW, NULL), KVH_ENOSERVER);
	ck_assert_int_eq(bed_server(h, "a", "max_conns=1"), 0);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	kvh_call_free(c);
	c = bed_request(h, CHAT, NULL, bed_chat("five ", 4000, ""), NOW);
	ck_assert_int_eq(kvh_pick(c, NOW, NULL), 0);
	ck_assert_int_eq(bed_fact(c, KVH_REASON), KVR_REASON_COST);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

Suite *suite_pool_shadow(void);

Suite *
suite_pool_shadow(void)
{
	Suite *s = suite_create("pool_shadow");
	TCase *t = tcase_create("pool_shadow");

	tcase_add_test(t, servers_take_turns_and_the_choice_is_counted);
	tcase_add_test(t, a_server_that_failed_or_is_drained_has_no_turn);
	tcase_add_test(t, the_fewest_requests_count_and_no_cache);
	tcase_add_test(t, without_a_server_it_is_as_without_shadow);
	suite_add_tcase(s, t);
	return s;
}
