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
	ck_assert(attached());
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
		ck_assert_int_eq(unlink(path_lock), 0);
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
		ck_assert_int_eq(unlink(path_lock), 0);
	}
}
END_TEST

/*
 * A child cannot use its parent's handle, nor does it harm it by closing it. It
 * opens the file itself.
 */
START_TEST(forked)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr *mine;
	int status;
	pid_t child;

	opened(CREATE);
	two_workers();
	say("abxy"); /* the letters, for the drawing */
	child = fork();
	if (child == 0) {
		if (kvr_observe(k, p, id[1], 9, 0, NULL) != KVR_ESTATE ||
		    kvr_lease_open(k, p, NULL, 9, &d) != KVR_ESTATE ||
		    kvr_route(k, p, NULL, 9, &d) != KVR_ESTATE ||
		    kvr_check(k) != KVR_ESTATE || kvr_clear(k) != KVR_ESTATE)
			_exit(1);
		if (open_as(ATTACH, &mine) != KVR_OK)
			_exit(2);
		kvr_free(k);
		if (kvr_observe(mine, p, id[1], 20, 0, NULL) != KVR_OK)
			_exit(3);
		kvr_free(mine);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert(attached());
	observe(0, "abcd", 20);
	ck_tree(TREE);
	kvr_free(k);
	ck_assert(!attached());
}
END_TEST

/*
 * The parent dies in a change. The child lives on, with all descriptors of the
 * handle, and does not keep the seat alive.
 */
START_TEST(forked_and_orphaned)
{
	static struct kvr *first; /* so that leak checkers find it */
	int ends[2], status;
	char byte;
	pid_t child;

	made();
	again();
	first = k;
	ck_assert_int_eq(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		again();
		if (fork() == 0) { /* until the test has closed the pipe */
			close(ends[1]);
			_exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
		}
		change_it();
		(void)kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	k = first;
	ck_tree("");
	ck_assert_uint_eq(stats().recoveries, 1);
	closed();
	ck_assert(!held(path_lock, SEAT_BYTES, SEATS_MAX));
	close(ends[0]);
	close(ends[1]);
}
END_TEST

/* A file removed while a process waited at its gate is created anew. */
START_TEST(removed_while_waiting)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = GATE, .l_len = 1 };
	struct timespec while_it_waits = { 0, 50000000 };
	int fd, status;
	pid_t child;

	close(file_fd());
	fd = open(path_lock, O_RDWR | O_CREAT, 0600);
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &l), 0);
	child = fork();
	if (child == 0) {
		close(fd);
		_exit(open_as(EITHER, &k) == KVR_OK ? 0 : 1);
	}
	(void)nanosleep(&while_it_waits, NULL);
	ck_assert_int_eq(waitpid(child, &status, WNOHANG), 0);
	ck_assert_int_eq(unlink(_i == 0 ? path : path_lock), 0);
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
 * A process is killed anywhere: before there is a file, while it is created,
 * inside the gate, in a change. Nothing hangs, and a region remains.
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
		must(!gate_held() && !attached());
		opened(EITHER);
		must(stats().workers <= 1);
		closed();
		if (pick(3) == 0)
			ck_assert_int_eq(unlink(path), 0);
		if (pick(3) == 0)
			ck_assert_int_eq(unlink(path_lock), 0);
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
	tcase_add_test(t, forked_and_orphaned);
	tcase_add_loop_test(t, removed_while_waiting, 0, 2);
	t = files_case(s, "killed");
	tcase_add_test(t, killed_anywhere);
	return s;
}
