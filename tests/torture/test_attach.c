/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_attach.c - several processes and one file: one creates it, others wait,
 * some are killed on the way.
 */
#define _GNU_SOURCE
#include "files.h"

#include <sys/prctl.h>
#include <time.h>

/* --------------------------------------------------------- several at once */

START_TEST(two_addresses)
{
	struct kvr *first, *second;

	opened(CREATE);
	two_workers();
	first = k;
	again();
	second = k;
	ck_assert_ptr_ne(first->region, second->region);
	observe(0, "abcd", 10);
	k = first;
	ck_tree("abcd:0");
	observe(1, "abxy", 20);
	k = second;
	ck_tree(TREE);
	kvr_free(first);
	ck_assert(held(ATTACHED));
	kvr_free(second);
	again();
	ck_tree(TREE);
	closed();
}
END_TEST

enum { CHILDREN = 8, ROUNDS = 40 };

static void
all_leave(pid_t *child, int n)
{
	int i, status;

	for (i = 0; i < n; i++) {
		ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
		ck_assert_msg(status == 0, "child %d: %x", i,
		    (unsigned)status);
	}
}

/* All find one region, whichever of them creates it. */
START_TEST(processes)
{
	uint64_t round, rounds = test_amount(ROUNDS);
	pid_t child[CHILDREN];
	char name;
	int i;

	options.max_workers = CHILDREN;
	options.region_bytes = 2 * BYTES;
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < CHILDREN; i++) {
			child[i] = fork();
			if (child[i] != 0)
				continue;
			name = (char)('0' + i);
			if (open_as(EITHER, &k) != KVR_OK)
				_exit(1);
			if (kvr_worker_add(k, &name, 1, NULL, id) != KVR_OK)
				_exit(2);
			kvr_free(k);
			_exit(0);
		}
		all_leave(child, CHILDREN);
		again();
		ck_assert_uint_eq(stats().workers, CHILDREN);
		ck_assert_uint_eq(stats().recoveries, 0);
		closed();
		ck_assert_int_eq(unlink(path), 0);
	}
}
END_TEST

/* One creates it; all others find it, complete. */
START_TEST(one_creates)
{
	uint64_t round, rounds = test_amount(ROUNDS);
	int i, status, error, creators;
	pid_t child[CHILDREN];

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < CHILDREN; i++) {
			child[i] = fork();
			if (child[i] != 0)
				continue;
			error = open_as(CREATE, &k);
			_exit(error == KVR_OK ? 0 : error == KVR_EEXIST ? 1 :
			    2);
		}
		for (creators = i = 0; i < CHILDREN; i++) {
			ck_assert_int_eq(waitpid(child[i], &status, 0),
			    child[i]);
			ck_assert(WIFEXITED(status));
			ck_assert_int_le(WEXITSTATUS(status), 1);
			creators += WEXITSTATUS(status) == 0;
		}
		ck_assert_int_eq(creators, 1);
		again();
		closed();
		ck_assert_int_eq(unlink(path), 0);
	}
}
END_TEST

/* A child has the handle too, and is attached until it ends. */
START_TEST(forked)
{
	int out[2], back[2], status;
	char byte = 0;
	pid_t child;

	opened(CREATE);
	two_workers();
	say("abxy"); /* the letters, for the drawing */
	ck_assert_int_eq(pipe(out), 0);
	ck_assert_int_eq(pipe(back), 0);
	child = fork();
	if (child == 0) {
		close(out[1]);
		close(back[0]);
		if (read(out[0], &byte, 1) != 1)
			_exit(1);
		observe(1, "abxy", 20);
		kvr_free(k);
		if (write(back[1], &byte, 1) != 1)
			_exit(1);
		_exit(read(out[0], &byte, 1) == 0 ? 0 : 1);
	}
	close(back[1]);
	observe(0, "abcd", 10);
	kvr_free(k);
	ck_assert(held(ATTACHED));
	ck_assert_int_eq(write(out[1], &byte, 1), 1);
	ck_assert_int_eq(read(back[0], &byte, 1), 1);
	ck_assert(!held(ATTACHED));
	again();
	ck_tree(TREE);
	closed();
	close(out[1]);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* A file removed while a process waited at its gate is created anew. */
START_TEST(removed_while_waiting)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = GATE, .l_len = 1 };
	struct timespec while_it_waits = { 0, 50000000 };
	int fd = file_fd(), status;
	pid_t child;

	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &l), 0);
	child = fork();
	if (child == 0) {
		close(fd);
		_exit(open_as(EITHER, &k) == KVR_OK ? 0 : 1);
	}
	(void)nanosleep(&while_it_waits, NULL);
	ck_assert_int_eq(waitpid(child, &status, WNOHANG), 0);
	ck_assert_int_eq(unlink(path), 0);
	close(fd);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	again();
	closed();
}
END_TEST

/*
 * Opens, writes a little and closes, until it is killed. It asserts nothing:
 * killed while it writes to Check's pipe, it would leave half a message.
 */
static void
come_and_go(void)
{
	static const uint32_t tokens[] = { 'a', 'b', 'c', 'd' };
	uint64_t worker;
	char name = 'x';
	int error;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)alarm(100); /* nothing takes this long */
	for (;;) {
		if (open_as(EITHER, &k) != KVR_OK)
			_exit(1);
		error = kvr_worker_add(k, &name, 1, NULL, &worker);
		if (error == KVR_EEXIST)
			error = kvr_worker_find(k, &name, 1, 0, &worker);
		if (error != KVR_OK || kvr_prompt_new(k, &p) != KVR_OK)
			_exit(2);
		if (kvr_prompt_set_tokens(p, NULL, tokens, 4) != KVR_OK ||
		    kvr_observe(k, p, worker, 9, 0, NULL) != KVR_OK)
			_exit(3);
		kvr_prompt_free(p);
		kvr_free(k);
	}
}

/*
 * Killed anywhere: before there is a file, while it is created, inside the
 * gate, in a change. Nothing hangs, and what remains is a region.
 */
START_TEST(killed_anywhere)
{
	uint64_t round, rounds = test_amount(150);
	struct timespec later = { 0, 0 };
	pid_t child[3];
	int i, status;

	by_chance();
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < 3; i++) {
			child[i] = fork();
			if (child[i] == 0)
				come_and_go();
		}
		later.tv_nsec = pick(3000000);
		(void)nanosleep(&later, NULL);
		for (i = 0; i < 3; i++) {
			(void)kill(child[i], SIGKILL);
			if (i == 1) { /* one still comes and goes */
				opened(EITHER);
				region_sound();
				kvr_free(k);
			}
		}
		for (i = 0; i < 3; i++) {
			must(waitpid(child[i], &status, 0) == child[i]);
			must(WIFSIGNALED(status));
		}
		must(!held(GATE) && !held(ATTACHED));
		opened(EITHER);
		must(stats().workers <= 1);
		closed();
		if (pick(3) == 0)
			ck_assert_int_eq(unlink(path), 0);
	}
}
END_TEST

/* ------------------------------------------------------------------- suite */

Suite *suite_attach(void);

Suite *
suite_attach(void)
{
	Suite *s = suite_create("attach");
	TCase *t;

	t = files_case(s, "several");
	tcase_add_test(t, two_addresses);
	tcase_add_test(t, processes);
	tcase_add_test(t, one_creates);
	tcase_add_test(t, forked);
	tcase_add_test(t, removed_while_waiting);
	t = files_case(s, "killed");
	tcase_add_test(t, killed_anywhere);
	return s;
}
