/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_error.c - each error has its name in the header, and a sentence of its
 * own. Numbers that are no errors are test_misuse.c's.
 */
#include "test.h"

#include <ctype.h>
#include <string.h>

#include "kvroute.h"

#define ERROR(name) { name, #name }
static const struct {
	int error;
	const char *name;
} errors[] = { ERROR(KVR_OK), ERROR(KVR_EINVAL), ERROR(KVR_ENOMEM),
	ERROR(KVR_ETOOSMALL), ERROR(KVR_EFORMAT), ERROR(KVR_EVERSION),
	ERROR(KVR_EMISMATCH), ERROR(KVR_ECLOCK), ERROR(KVR_EWORKER),
	ERROR(KVR_EEXIST), ERROR(KVR_EFULL), ERROR(KVR_ELEASE),
	ERROR(KVR_ESTATE), ERROR(KVR_EEMPTY), ERROR(KVR_ENOWORKER),
	ERROR(KVR_ENOTALLOWED), ERROR(KVR_EPINNEDOVERLOADED),
	ERROR(KVR_EALLOVERLOADED), ERROR(KVR_EBUSY), ERROR(KVR_ECORRUPT),
	ERROR(KVR_ESYSTEM), ERROR(KVR_EPERM), ERROR(KVR_EREADONLY),
	ERROR(KVR_ENEWER), ERROR(KVR_EINEXACT), ERROR(KVR_EUNBOUND),
	ERROR(KVR_EAGAIN), ERROR(KVR_EOVERRUN),
	ERROR(KVR_EUNKNOWN) };
enum { ERRORS = sizeof(errors) / sizeof(errors[0]) };

START_TEST(names)
{
	int i;

	for (i = 0; i < ERRORS; i++) {
		ck_assert_int_eq(errors[i].error, -i);
		ck_assert_str_eq(kvr_errname(-i), errors[i].name);
	}
	/* the table above is complete */
	ck_assert_str_eq(kvr_errname(-ERRORS), "KVR_E?");
}
END_TEST

START_TEST(sentences)
{
	const char *text;
	int i, j;

	for (i = 0; i < ERRORS; i++) {
		text = kvr_strerror(-i);
		ck_assert(isupper((unsigned char)text[0]));
		ck_assert_ptr_eq(strchr(text, '.'), text + strlen(text) - 1);
		for (j = 0; j < i; j++)
			ck_assert_str_ne(text, kvr_strerror(-j));
	}
}
END_TEST

/* Workers and files share it. */
START_TEST(sentence_of_two_cases)
{
	ck_assert_str_eq(kvr_strerror(KVR_EEXIST),
	    "It exists already: the worker, or the file.");
}
END_TEST

Suite *suite_error(void);

Suite *
suite_error(void)
{
	Suite *s = suite_create("error");
	TCase *t = tcase_create("error");

	tcase_add_test(t, names);
	tcase_add_test(t, sentences);
	tcase_add_test(t, sentence_of_two_cases);
	suite_add_tcase(s, t);
	return s;
}
