/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_kept.c - objects of /v1/responses in kvroute-engine: ids, bounds,
 * owners of items.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "alloc.h"
#include "kept.h"

static struct kept *
make(size_t most, uint64_t seed)
{
	struct kept *k = kept_new(most, seed);

	ck_assert_ptr_nonnull(k);
	return k;
}

static struct json_object *
json(const char *text)
{
	struct json_object *o = json_tokener_parse(text);

	ck_assert_ptr_nonnull(o);
	return o;
}

static void
ck_json(struct json_object *o, const char *text)
{
	ck_assert_str_eq(json_object_to_json_string_ext(o,
	    JSON_C_TO_STRING_PLAIN), text);
}

/* Adds one whose items are as in `items`; its id is in `id`. */
static bool
add(struct kept *k, enum kept_kind kind, const char *items, char *id)
{
	struct kept_thing t = { .object = json("{\"a\":1}"),
	    .items = json(items), .n_input = 1 };
	bool done;

	kept_id(k, kind, t.id);
	memcpy(id, t.id, KEPT_ID_SIZE);
	done = kept_add(k, kind, &t);
	json_object_put(t.object);
	json_object_put(t.items);
	return done;
}

START_TEST(kept_until_dropped)
{
	struct kept *k = make(8, 1);
	const struct kept_thing *t;
	char id[KEPT_ID_SIZE];
	int i;

	for (i = 0; i < KEPT_KINDS; i++) {
		ck_assert(add(k, (enum kept_kind)i, "[1,{\"b\":[2]}]", id));
		t = kept_find(k, (enum kept_kind)i, id);
		ck_assert_ptr_nonnull(t);
		ck_assert_str_eq(t->id, id);
		ck_assert_uint_eq(t->n_input, 1);
		ck_json(t->object, "{\"a\":1}");
		ck_json(t->items, "[1,{\"b\":[2]}]");
		ck_assert_ptr_null(kept_find(k, (enum kept_kind)!i, id));
		kept_drop(k, (enum kept_kind)!i, id);
		ck_assert_ptr_nonnull(kept_find(k, (enum kept_kind)i, id));
		kept_drop(k, (enum kept_kind)i, id);
		ck_assert_ptr_null(kept_find(k, (enum kept_kind)i, id));
		kept_drop(k, (enum kept_kind)i, id);
	}
	ck_assert_ptr_null(kept_find(NULL, KEPT_RESPONSE, id));
	kept_free(k);
	kept_free(NULL);
}
END_TEST

/* Each kind has its own bound; use does not make a thing stay longer. */
START_TEST(oldest_leave)
{
	enum { MOST = 3, ALL = 10 };
	struct kept *k = make(MOST, 1);
	char ids[ALL][KEPT_ID_SIZE], conversation[KEPT_ID_SIZE];
	int i, n;

	ck_assert(add(k, KEPT_CONVERSATION, "[]", conversation));
	for (n = 0; n < ALL; n++) {
		ck_assert(add(k, KEPT_RESPONSE, "[1]", ids[n]));
		for (i = 0; i <= n; i++)
			ck_assert_int_eq(kept_find(k, KEPT_RESPONSE, ids[i]) !=
			    NULL, i > n - MOST);
	}
	ck_assert_ptr_nonnull(kept_find(k, KEPT_CONVERSATION, conversation));
	kept_free(k);
	k = make(0, 1);
	ck_assert(add(k, KEPT_RESPONSE, "[1]", ids[0]));
	ck_assert_ptr_null(kept_find(k, KEPT_RESPONSE, ids[0]));
	kept_free(k);
}
END_TEST

START_TEST(ids_do_not_come_again)
{
	enum { ALL = 200 };
	struct kept *k = make(1, 7), *same = make(1, 7), *other = make(1, 8);
	char ids[ALL][KEPT_ID_SIZE], id[KEPT_ID_SIZE];
	int i, n;

	for (n = 0; n < ALL; n++) {
		kept_id(k, n % 2 == 0 ? KEPT_RESPONSE : KEPT_CONVERSATION,
		    ids[n]);
		ck_assert_int_eq(strncmp(ids[n], n % 2 == 0 ? "resp_" :
		    "conv_", 5), 0);
		ck_assert_uint_eq(strlen(ids[n]), 5 + 24);
		ck_assert_uint_eq(strspn(ids[n] + 5, "0123456789abcdef"), 24);
		for (i = 0; i < n; i++)
			ck_assert_str_ne(ids[i] + 5, ids[n] + 5);
		if (n == ALL / 2)
			kept_empty(k);
	}
	kept_id(same, KEPT_RESPONSE, id);
	ck_assert_str_eq(id, ids[0]);
	kept_id(other, KEPT_RESPONSE, id);
	for (i = 0; i < ALL; i++)
		ck_assert_str_ne(ids[i], id);
	kept_free(k);
	kept_free(same);
	kept_free(other);
}
END_TEST

START_TEST(emptied)
{
	struct kept *k = make(8, 1);
	char id[KEPT_KINDS][KEPT_ID_SIZE];
	int i;

	for (i = 0; i < KEPT_KINDS; i++)
		ck_assert(add(k, (enum kept_kind)i, "[1]", id[i]));
	kept_empty(k);
	for (i = 0; i < KEPT_KINDS; i++)
		ck_assert_ptr_null(kept_find(k, (enum kept_kind)i, id[i]));
	ck_assert(add(k, KEPT_RESPONSE, "[1]", id[0]));
	ck_assert_ptr_nonnull(kept_find(k, KEPT_RESPONSE, id[0]));
	kept_free(k);
}
END_TEST

/* The items of a turn outlive their origin, and the other way round. */
START_TEST(items_are_shared)
{
	struct kept *k = make(8, 1);
	struct json_object *turn = json("[\"a\",\"b\",\"c\"]");
	char id[KEPT_ID_SIZE];

	ck_assert(add(k, KEPT_CONVERSATION, "[{\"first\":null}]", id));
	ck_assert(kept_extend(k, id, turn, 1));
	ck_assert(kept_extend(k, id, turn, 3));
	ck_assert(kept_extend(k, "conv_0", turn, 0));
	json_object_put(turn);
	ck_json(kept_find(k, KEPT_CONVERSATION, id)->items,
	    "[{\"first\":null},\"b\",\"c\"]");
	turn = json("[null]");
	ck_assert(kept_copy(turn, kept_find(k, KEPT_CONVERSATION, id)->items,
	    0));
	kept_free(k);
	ck_json(turn, "[null,{\"first\":null},\"b\",\"c\"]");
	json_object_put(turn);
}
END_TEST

/* An id of a client is anything. */
START_TEST(missing_ones_are_named)
{
	char text[160], id[300];

	kept_missing(KEPT_RESPONSE, "resp_1", text, sizeof(text));
	ck_assert_str_eq(text, "Response with id 'resp_1' not found.");
	kept_missing(KEPT_CONVERSATION, "a\"\xc3\xa4", text, sizeof(text));
	ck_assert_str_eq(text, "Conversation with id 'a' not found.");
	memset(id, 'x', sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	kept_missing(KEPT_RESPONSE, id, text, sizeof(text));
	ck_assert_uint_eq(strlen(text), strlen("Response with id '' not "
	    "found.") + 64);
}
END_TEST

START_TEST(no_memory)
{
	struct kept *k;
	char id[KEPT_ID_SIZE];
	unsigned long n;
	bool done = false;

	alloc_fail_at(1);
	ck_assert_ptr_null(kept_new(1, 1));
	alloc_reset();
	for (n = 1; !done; n++) {
		k = make(8, 1);
		alloc_fail_at(n);
		done = add(k, KEPT_RESPONSE, "[1]", id);
		alloc_reset();
		ck_assert_int_eq(kept_find(k, KEPT_RESPONSE, id) != NULL,
		    done);
		ck_assert(add(k, KEPT_RESPONSE, "[1]", id));
		ck_assert_ptr_nonnull(kept_find(k, KEPT_RESPONSE, id));
		kept_free(k);
	}
	ck_assert_uint_gt(n, 3);
}
END_TEST

Suite *suite_kept(void);

Suite *
suite_kept(void)
{
	Suite *s = suite_create("kept");
	TCase *c = tcase_create("kept");

	tcase_add_test(c, kept_until_dropped);
	tcase_add_test(c, oldest_leave);
	tcase_add_test(c, ids_do_not_come_again);
	tcase_add_test(c, emptied);
	tcase_add_test(c, items_are_shared);
	tcase_add_test(c, missing_ones_are_named);
	tcase_add_test(c, no_memory);
	suite_add_tcase(s, c);
	return s;
}
