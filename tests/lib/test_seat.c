/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_seat.c - seats in memory of the caller: their holders, and whether
 * those processes live.
 */
#define _GNU_SOURCE
#include "inner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "namespaces.h"
#include "sys.h"

enum { BYTES = 24 << 10, SEATS = 24 };

static void *shared;
static struct kvr *handle[SEATS];

static void
setup(void)
{
	struct kvr_options o = small_options();

	shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	ck_assert_int_eq(kvr_new_at(&o, shared, BYTES, &k), KVR_OK);
	people(2);
}

static void
teardown(void)
{
	region_end();
	ck_assert_int_eq(munmap(shared, BYTES), 0);
}

static int
attach(struct kvr **out)
{
	return kvr_attach_at(NULL, shared, BYTES, out);
}

/* Does the handle with this number live, as the first one sees it? */
static bool
lives(int i)
{
	return seat_alive(k, handle[i]->me);
}

/* Seats are given again, their turns are not. */
START_TEST(turns)
{
	uint32_t before, i;

	ck_assert_uint_eq(k->layout.seats, SEATS);
	ck_assert_int_eq(attach(&handle[0]), KVR_OK);
	for (i = 0; i < 100; i++) {
		before = handle[0]->me;
		ck_assert(lives(0));
		kvr_free(handle[0]);
		ck_assert(!seat_alive(k, before));
		ck_assert_int_eq(attach(&handle[0]), KVR_OK);
		ck_assert_uint_eq(handle[0]->me & LOCK_SEAT,
		    before & LOCK_SEAT);
		ck_assert_uint_ne(handle[0]->me, before);
		ck_assert(!seat_alive(k, before));
	}
	kvr_free(handle[0]);
	ck_assert(seat_alive(k, k->me));
}
END_TEST

/* The turn wraps around without a change of the seat number. */
START_TEST(turns_wrap)
{
	uint64_t last = UINT64_MAX << HOLDER_TURN_SHIFT;

	atomic_store(&k->seats[1].holder, last);
	ck_assert_int_eq(attach(&handle[0]), KVR_OK);
	ck_assert_uint_eq(handle[0]->me, 2);
	ck_assert(lives(0));
	kvr_free(handle[0]);
}
END_TEST

/* A seat for each handle, free when it is closed or its process is dead. */
START_TEST(all_seats)
{
	int i, status;
	pid_t child;

	for (i = 1; i < SEATS - 2; i++)
		ck_assert_int_eq(attach(&handle[i]), KVR_OK);
	child = fork();
	if (child == 0)
		_exit(attach(&handle[0]) == KVR_OK &&
		    attach(&handle[0]) == KVR_OK ? 0 : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	handle[0] = NULL;
	for (i = SEATS - 2; i < SEATS; i++) /* the child's */
		ck_assert_int_eq(attach(&handle[i]), KVR_OK);
	ck_assert_int_eq(attach(&handle[0]), KVR_EFULL);
	ck_assert_ptr_null(handle[0]);
	kvr_free(handle[3]);
	ck_assert_int_eq(attach(&handle[3]), KVR_OK);
	for (i = 1; i < SEATS; i++) {
		ck_assert(lives(i));
		kvr_free(handle[i]);
	}
}
END_TEST

/* A seat's content shows whether its process lives. */
START_TEST(other_processes)
{
	const uint64_t mine = atomic_load(&k->seats[0].holder);
	const uint64_t start = UINT64_C(1) << HOLDER_START_SHIFT;
	const uint64_t all = HOLDER_START << HOLDER_START_SHIFT;
	struct kvr other = *k;

	other.me = 0; /* not this handle's own */
	ck_assert_uint_eq(mine & HOLDER_PID, (uint64_t)getpid());
	ck_assert(seat_alive(&other, k->me));
#define SAYS(word, alive) do { \
	atomic_store(&k->seats[0].holder, word); \
	ck_assert_int_eq(seat_alive(&other, k->me), alive); \
} while (0)
	SAYS(mine, true);
	SAYS(mine & ~all, true);       /* its start is not known */
	SAYS(mine + start, false);     /* a later process of this pid */
	SAYS(mine - start, false);
	SAYS(mine & ~HOLDER_PID, false); /* free */
	SAYS(mine | HOLDER_PID, false); /* no pid is as large */
	SAYS(mine + (UINT64_C(1) << HOLDER_TURN_SHIFT), false);
	SAYS(UINT64_MAX, false);
	SAYS(0, false);
	SAYS(mine, true);
}
END_TEST

static pid_t
child_with(const char *name)
{
	int ends[2];
	char byte = 0;
	pid_t child;

	ck_assert_int_eq(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_NAME, name);
		if (attach(&handle[0]) != KVR_OK ||
		    region_lock(handle[0], true) != KVR_OK ||
		    write(ends[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	ck_assert_int_eq(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	return child;
}

/* The name of a program may look like any other field in /proc. */
START_TEST(names)
{
	static const char *const name[] = { "a", "", ") Z 1 1 1", "a) Z (b)",
		"(((((", "))))))", "\n) X 0 " };
	uint32_t word;
	siginfo_t info;
	pid_t child;
	size_t i;

	for (i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		child = child_with(name[i]);
		word = atomic_load(&k->region->lock);
		ck_assert_int_eq((pid_t)seat_pid(k, word), child);
		ck_assert(seat_alive(k, word));
		ck_assert_int_eq(kill(child, SIGKILL), 0);
		ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED |
		    WNOWAIT), 0);
		ck_assert(!seat_alive(k, word)); /* a zombie */
		ck_assert_int_eq(waitpid(child, NULL, 0), child);
		ck_assert(!seat_alive(k, word));
		ck_assert_int_eq(region_lock(k, true), KVR_OK);
		region_unlock(k);
	}
}
END_TEST

/* A child may only free the handle; then its parent goes on with it. */
START_TEST(forked)
{
	struct kvr_stats s = { .size = sizeof(s) };
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr *mine;
	int status;
	pid_t child;

	say("abcd");
	child = fork();
	if (child == 0) {
		if (kvr_stats_get(k, &s) != KVR_ESTATE ||
		    kvr_observe(k, p, id[0], 1, 0, NULL) != KVR_ESTATE ||
		    kvr_route(k, p, NULL, 1, &d) != KVR_ESTATE)
			test_exit(1);
		if (attach(&mine) != KVR_OK || mine->me == k->me ||
		    kvr_observe(mine, p, id[0], 1, 0, NULL) != KVR_OK)
			test_exit(2);
		kvr_free(k);
		if (kvr_stats_get(mine, &s) != KVR_OK)
			test_exit(3);
		kvr_free(mine);
		test_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert(seat_alive(k, k->me));
	ck_tree("abcd:0");
}
END_TEST

static void
in_a_container(void)
{
	struct kvr *mine;
	struct kvr_options o = small_options();
	void *own = aligned_alloc(CELL, BYTES);

	if (getpid() != 1 || own == NULL)
		_exit(10);
	if (attach(&mine) != KVR_EMISMATCH)
		_exit(11);
	if (kvr_new_at(&o, own, BYTES, &mine) != KVR_OK)
		_exit(12);
	kvr_free(mine);
	_exit(0);
}

/* Where the namespace is not known, no pid proves that a process is dead. */
START_TEST(namespace_not_known)
{
	uint64_t room = k->room;
	uint32_t word;
	int status;
	pid_t child = fork();

	if (child == 0) /* it dies in the next seat after that of k */
		_exit(attach(&handle[0]) == KVR_OK ? 0 : 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	word = (uint32_t)(atomic_load(&k->seats[1].holder) >>
	    HOLDER_TURN_SHIFT) << LOCK_TURN_SHIFT | 2;
	ck_assert(!seat_alive(k, word));
	k->room = 0;
	ck_assert(seat_alive(k, word));
	k->room = room;
	sys_fail_at(SYS_STAT, 1, EIO);
	ck_assert_int_eq(attach(&handle[0]), KVR_EMISMATCH);
	ck_assert_uint_eq(sys_reset(), 1);
}
END_TEST

/* A region of no namespace takes no seat from a process either. */
START_TEST(no_namespace_at_all)
{
	struct kvr_options o = small_options();
	struct kvr *more = NULL;
	uint32_t i;

	region_end();
	sys_fail_from(SYS_STAT, 1, EIO);
	ck_assert_int_eq(kvr_new_at(&o, shared, BYTES, &k), KVR_OK);
	people(2);
	for (i = 1; i < SEATS; i++)
		ck_assert_int_eq(attach(&handle[i]), KVR_OK);
	ck_assert_int_eq(attach(&more), KVR_EFULL);
	ck_assert_uint_eq(sys_reset(), SEATS + 2); /* one when it was made */
	ck_assert_ptr_null(more);
	for (i = 1; i < SEATS; i++)
		kvr_free(handle[i]);
}
END_TEST

/* A region marked as private memory, or as a file, is not attached to. */
START_TEST(other_kinds)
{
	struct kvr_options o = small_options();
	struct kvr *mine;

	ck_assert_int_eq(kvr_new(&o, &mine), KVR_OK);
	ck_assert_int_eq(kvr_attach_at(NULL, mine->region,
	    (size_t)mine->region->seal.bytes, &handle[0]), KVR_EMISMATCH);
	kvr_free(mine);
}
END_TEST

/* Pids of one PID namespace mean nothing in another: it is refused. */
START_TEST(other_namespace)
{
	struct container c;

	if (!container_start(&c, in_a_container))
		test_skip("only root can make a PID namespace");
	ck_assert_int_eq(container_end(&c), 0);
	ck_assert(seat_alive(k, k->me));
}
END_TEST

Suite *suite_seat(void);

Suite *
suite_seat(void)
{
	Suite *s = suite_create("seat");
	TCase *t = tcase_create("seats");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, turns);
	tcase_add_test(t, turns_wrap);
	tcase_add_test(t, all_seats);
	tcase_add_test(t, other_processes);
	tcase_add_test(t, names);
	tcase_add_test(t, forked);
	tcase_add_test(t, namespace_not_known);
	tcase_add_test(t, no_namespace_at_all);
	tcase_add_test(t, other_kinds);
	tcase_add_test(t, other_namespace);
	suite_add_tcase(s, t);
	return s;
}
