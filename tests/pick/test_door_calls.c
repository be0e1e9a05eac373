/* SPDX-License-Identifier: BSD-2-Clause */
/* test_door_calls.c - the table of calls of the JSON door, and its JSON. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "door_calls.h"
#include "door_text.h"

enum { MANY = 3000 };

START_TEST(calls_are_found_by_their_id)
{
	static struct door_call *calls[MANY];
	struct door_calls t = { 0 };
	char id[CALL_ID_LENGTH + 1];
	size_t i;

	for (i = 0; i < MANY; i++)
		ck_assert_ptr_nonnull(calls[i] = calls_add(&t, 1));
	ck_assert_uint_eq(t.n, MANY);
	for (i = 0; i < MANY; i++) {
		calls_id(calls[i], id);
		ck_assert_ptr_eq(calls_find(&t, id, strlen(id), 2), calls[i]);
		id[23] = id[23] == '0' ? '1' : '0';
		ck_assert_ptr_null(calls_find(&t, id, strlen(id), 2));
	}
	for (i = 0; i < MANY; i += 2)
		calls_remove(&t, calls[i]);
	calls_id(calls[1], id);
	ck_assert_ptr_eq(calls_find(&t, id, strlen(id), 3), calls[1]);
	for (i = 1; i < MANY; i += 2)
		calls_remove(&t, calls[i]);
	ck_assert_uint_eq(t.n, 0);
	ck_assert_ptr_null(calls_oldest(&t));
	calls_free(&t);
}
END_TEST

START_TEST(a_place_has_another_id_each_time)
{
	char first[CALL_ID_LENGTH + 1], second[CALL_ID_LENGTH + 1];
	struct door_calls t = { 0 };
	struct door_call *c = calls_add(&t, 1);

	calls_id(c, first);
	calls_remove(&t, c);
	ck_assert_ptr_null(calls_find(&t, first, CALL_ID_LENGTH, 1));
	c = calls_add(&t, 1);
	calls_id(c, second);
	ck_assert_mem_eq(first, second, 8);
	ck_assert_str_ne(first, second);
	calls_remove(&t, c);
	calls_free(&t);
}
END_TEST

START_TEST(oldest_is_the_one_not_heard_of)
{
	struct door_calls t = { 0 };
	struct door_call *a = calls_add(&t, 1), *b = calls_add(&t, 2);
	char id[CALL_ID_LENGTH + 1];

	ck_assert_ptr_eq(calls_oldest(&t), a);
	calls_id(a, id);
	ck_assert_ptr_eq(calls_find(&t, id, CALL_ID_LENGTH, 3), a);
	ck_assert_ptr_eq(calls_oldest(&t), b);
	calls_remove(&t, b);
	ck_assert_ptr_eq(calls_oldest(&t), a);
	calls_remove(&t, a);
	calls_free(&t);
}
END_TEST

START_TEST(strange_ids)
{
	static const char *const ids[] = { "", "0", "000000000000000000000000",
		"ffffffffffffffffffffffff", "00000000 00000000000000 ",
		"0x000000000000000000000x", "0000000000000000000000000" };
	struct door_calls t = { 0 };
	struct door_call *c = calls_add(&t, 1);
	size_t i;

	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		ck_assert_ptr_null(calls_find(&t, ids[i], strlen(ids[i]), 1));
	calls_remove(&t, c);
	calls_free(&t);
}
END_TEST

START_TEST(table_without_memory)
{
	struct door_calls t = { 0 };
	unsigned long fail;

	for (fail = 1; fail < 4; fail++) {
		alloc_fail_at(fail);
		ck_assert_ptr_null(calls_add(&t, 1));
	}
	alloc_reset();
	ck_assert_uint_eq(t.n, 0);
	calls_free(&t);
}
END_TEST

/* -------------------------------------------------------------- tokens --- */

static bool
read_tokens(const char *text, const uint32_t *want, size_t n)
{
	uint32_t *tokens;
	size_t got;
	bool read = door_read_tokens(text, strlen(text), &tokens, &got);

	if (read) {
		ck_assert_uint_eq(got, n);
		if (n > 0)
			ck_assert_mem_eq(tokens, want, n * sizeof(*want));
	}
	free(tokens);
	return read;
}

START_TEST(lists_of_tokens)
{
	static const uint32_t want[] = { 1, 22, 4294967295 };

	ck_assert(read_tokens("[1,22,4294967295]", want, 3));
	ck_assert(read_tokens(" [ 1 ,\n22\t, 4294967295 ] ", want, 3));
	ck_assert(read_tokens("[]", want, 0));
	ck_assert(read_tokens("[1]", want, 1));
	ck_assert(!read_tokens("[4294967296]", want, 0));
	ck_assert(!read_tokens("[99999999999999999999999]", want, 0));
	ck_assert(!read_tokens("", want, 0));
	ck_assert(!read_tokens("[", want, 0));
	ck_assert(!read_tokens("[1", want, 0));
	ck_assert(!read_tokens("[1,]", want, 0));
	ck_assert(!read_tokens("[,1]", want, 0));
	ck_assert(!read_tokens("[1 2]", want, 0));
	ck_assert(!read_tokens("[-1]", want, 0));
	ck_assert(!read_tokens("[1.5]", want, 0));
	ck_assert(!read_tokens("[1] 2", want, 0));
	ck_assert(!read_tokens("{}", want, 0));
}
END_TEST

Suite *suite_door_calls(void);

Suite *
suite_door_calls(void)
{
	Suite *s = suite_create("door_calls");
	TCase *c = tcase_create("door_calls");

	tcase_add_test(c, calls_are_found_by_their_id);
	tcase_add_test(c, a_place_has_another_id_each_time);
	tcase_add_test(c, oldest_is_the_one_not_heard_of);
	tcase_add_test(c, strange_ids);
	tcase_add_test(c, table_without_memory);
	tcase_add_test(c, lists_of_tokens);
	suite_add_tcase(s, c);
	return s;
}
