/* SPDX-License-Identifier: BSD-2-Clause */
/* test_shared.c - processes count together. */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared.h"

enum { CHILDREN = 3, TIMES = 20000 };

static struct shared *shared;
static struct counters counted;

static void
begin(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
}

static void
end(void)
{
	ck_assert_int_eq(munmap(shared, sizeof(*shared)), 0);
}

static void
path_ask(const char *path)
{
	shared_path(shared, path, strlen(path));
}

static void
ck_path(size_t i, const char *text, uint64_t count)
{
	shared_copy(shared, &counted);
	ck_assert_uint_eq(counted.path[i].count, count);
	ck_assert_uint_eq(counted.path[i].length, strlen(text));
	ck_assert_int_eq(memcmp(counted.path[i].text, text, strlen(text)), 0);
}

START_TEST(zones_that_were_large_enough_remain_so)
{
	ck_assert_uint_le(sizeof(struct shared), 33 * 1024);
	ck_assert_uint_eq(sizeof(struct polled), 64);
	ck_assert_uint_eq(sizeof(struct queue_place), 56);
	ck_assert_uint_eq(sizeof(struct rank_place), 16);
}
END_TEST

/* Others may write there. */
START_TEST(a_length_is_not_trusted)
{
	begin();
	path_ask("/path");
	shared->paths[0].length = UINT32_MAX;
	shared_copy(shared, &counted);
	ck_assert_uint_eq(counted.path[0].length, PATH_BYTES);
	ck_assert_int_eq(memcmp(counted.path[0].text, "/path", 6), 0);
	end();
}
END_TEST

START_TEST(paths_are_counted_each_until_places_are_taken)
{
	char text[32];
	int i;

	begin();
	path_ask("/a b");
	path_ask("/b\"\\\x80");
	path_ask("/a b");
	ck_path(0, "/a?b", 2);
	ck_path(1, "/b???", 1);
	for (i = 0; i < PATHS; i++) {
		(void)snprintf(text, sizeof(text), "/%d", i);
		path_ask(text);
	}
	ck_path(PATHS - 2, "/12", 1);
	ck_path(PATHS - 1, "", 3);
	path_ask("/12");
	path_ask("/13");
	ck_path(PATHS - 2, "/12", 2);
	ck_path(PATHS - 1, "", 4);
	end();
}
END_TEST

START_TEST(a_long_path_is_cut)
{
	char text[2 * PATH_BYTES];

	begin();
	memset(text, 'x', sizeof(text));
	shared_path(shared, text, sizeof(text));
	shared_path(shared, text, PATH_BYTES);
	shared_copy(shared, &counted);
	ck_assert_uint_eq(counted.path[0].count, 2);
	ck_assert_uint_eq(counted.path[0].length, PATH_BYTES);
	end();
}
END_TEST

static void
child_count(void)
{
	int i;

	for (i = 0; i < TIMES; i++) {
		shared_count(shared, COUNT_READ, 2);
		shared_time(shared, HISTOGRAM_QUEUE, 1000000);
		path_ask(i % 2 == 0 ? "/even" : "/odd");
	}
}

START_TEST(processes_lose_no_count)
{
	pid_t child[CHILDREN];
	int i, status;

	begin();
	for (i = 0; i < CHILDREN; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			child_count();
			test_exit(0);
		}
	}
	for (i = 0; i < CHILDREN; i++) {
		ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
		ck_assert_int_eq(status, 0);
	}
	shared_copy(shared, &counted);
	ck_assert_uint_eq(counted.count[COUNT_READ], 2 * TIMES * CHILDREN);
	ck_assert_uint_eq(histogram_count(&counted.histogram[HISTOGRAM_QUEUE]),
	    TIMES * CHILDREN);
	ck_assert_uint_eq(counted.histogram[HISTOGRAM_QUEUE].sum,
	    UINT64_C(1000000) * TIMES * CHILDREN);
	ck_assert_uint_eq(counted.path[0].count + counted.path[1].count,
	    TIMES * CHILDREN);
	end();
}
END_TEST

START_TEST(usage_is_asked_for_until_all_refuse)
{
	begin();
	ck_assert(shared_usage_asks(shared, 100));
	ck_assert(!shared_usage_answered(shared, 400, 100));
	ck_assert(!shared_usage_answered(shared, 500, 100));
	ck_assert(!shared_usage_answered(shared, 422, 101));
	ck_assert(shared_usage_asks(shared, 101));
	ck_assert(shared_usage_answered(shared, 400, 102));
	ck_assert(!shared_usage_answered(shared, 400, 102));
	ck_assert(!shared_usage_asks(shared, 103));
	/* Once an hour one may. */
	ck_assert(!shared_usage_asks(shared, 102 + 3599));
	ck_assert(shared_usage_asks(shared, 102 + 3600));
	/* Another process may write any number there. */
	shared->asked_at = INT64_MAX;
	ck_assert(!shared_usage_asks(shared, 103));
	ck_assert(!shared_usage_asks(shared, 102 + 3601));
	ck_assert(!shared_usage_answered(shared, 200, 102 + 3602));
	ck_assert(shared_usage_asks(shared, 102 + 3602));
	ck_assert(!shared_usage_answered(shared, 400, 102 + 3602));
	end();
}
END_TEST

START_TEST(keys_of_names_are_never_0)
{
	ck_assert_uint_ne(shared_key("", 0), 0);
	ck_assert_uint_ne(shared_key("a", 1), shared_key("c", 1));
	ck_assert_uint_eq(shared_key("10.0.0.1:80", 11),
	    shared_key("10.0.0.1:80 ", 11));
}
END_TEST

Suite *suite_shared(void);

Suite *
suite_shared(void)
{
	Suite *s = suite_create("shared");
	TCase *t = tcase_create("shared");

	tcase_add_test(t, zones_that_were_large_enough_remain_so);
	tcase_add_test(t, a_length_is_not_trusted);
	tcase_add_test(t, paths_are_counted_each_until_places_are_taken);
	tcase_add_test(t, a_long_path_is_cut);
	tcase_add_test(t, processes_lose_no_count);
	tcase_add_test(t, usage_is_asked_for_until_all_refuse);
	tcase_add_test(t, keys_of_names_are_never_0);
	suite_add_tcase(s, t);
	return s;
}
