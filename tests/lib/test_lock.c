/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lock.c - the lock of a region: one owner at a time, in order; dead
 * owners, and words that no owner wrote.
 */
#define _GNU_SOURCE
#include "inner.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 64 << 10, FOUND_MS = 100 };

static void *shared;
static pid_t child;

static void
setup(void)
{
	struct kvr_options o = small_options();

	shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	ck_assert_int_eq(kvr_new_at(&o, shared, BYTES, &k), KVR_OK);
	people(WORKERS);
	child = 0;
}

static void
teardown(void)
{
	if (child > 0) {
		(void)kill(child, SIGKILL);
		(void)waitpid(child, NULL, 0);
	}
	region_end();
	ck_assert_int_eq(munmap(shared, BYTES), 0);
}

static int64_t
milliseconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint32_t
word(void)
{
	return atomic_load(&k->region->lock);
}

/* ------------------------------------------------------------ the word --- */

START_TEST(free_and_locked)
{
	ck_assert_uint_eq(word(), 0);
	ck_assert_int_eq(region_lock(k, true), KVR_OK);
	ck_assert_uint_eq(word(), k->me);
	ck_assert_uint_eq(seat_pid(k, word()), (uint32_t)getpid());
	ck_assert_int_eq(region_lock(k, false), KVR_EBUSY);
	region_unlock(k);
	ck_assert_uint_eq(word(), 0);
	region_unlock(k); /* nothing of this handle's */
	ck_assert_uint_eq(word(), 0);
}
END_TEST

/* Words that only damage or malice can write, and none that lives. */
START_TEST(words_without_an_owner)
{
	const uint32_t turn = UINT32_C(1) << LOCK_TURN_SHIFT;
	const uint32_t words[] = { LOCK_WAITERS, LOCK_HUNGRY,
		LOCK_WAITERS | LOCK_HUNGRY, turn, LOCK_OWNER - LOCK_SEAT,
		UINT32_MAX, LOCK_SEAT, k->layout.seats, k->layout.seats + 1,
		k->layout.seats + 1 + turn, k->me + turn, k->me - turn,
		(k->me + turn) | LOCK_WAITERS };
	size_t i;
	int64_t since;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		atomic_store(&k->region->lock, words[i]);
		since = milliseconds();
		observe(0, "abcd", 1);
		ck_assert_int_lt(milliseconds() - since, 5 * FOUND_MS);
		ck_assert_uint_eq(word(), 0);
	}
}
END_TEST

/* The word was taken from this handle: its unlock leaves it alone. */
START_TEST(lost_to_another)
{
	struct kvr *other;

	ck_assert_int_eq(kvr_attach_at(NULL, shared, BYTES, &other), KVR_OK);
	ck_assert_uint_ne(other->me, k->me);
	ck_assert_int_eq(region_lock(k, true), KVR_OK);
	atomic_store(&k->region->lock, other->me | LOCK_WAITERS);
	region_unlock(k);
	ck_assert_uint_eq(word(), other->me | LOCK_WAITERS);
	region_unlock(other);
	ck_assert_uint_eq(word(), 0);
	kvr_free(other);
}
END_TEST

/* An owner that lives is waited for, and not for ever. */
START_TEST(gives_up)
{
	struct kvr *other;
	int64_t since = milliseconds(), took;

	ck_assert_int_eq(k->wait_ns, INT64_C(30000000000));
	ck_assert_int_eq(kvr_attach_at(NULL, shared, BYTES, &other), KVR_OK);
	ck_assert_int_eq(region_lock(other, true), KVR_OK);
	k->wait_ns = 150000000;
	say("abcd");
	ck_assert_int_eq(kvr_observe(k, p, id[0], 1, 0, NULL), KVR_EBUSY);
	took = milliseconds() - since;
	ck_assert_int_ge(took, 149);
	ck_assert_uint_eq(word() & LOCK_OWNER, other->me);
	region_unlock(other);
	ck_assert_int_eq(kvr_observe(k, p, id[0], 1, 0, NULL), KVR_OK);
	kvr_free(other);
}
END_TEST

/* Once for all calls, until the lock is free again. */
START_TEST(gives_up_briefly)
{
	struct kvr *other;
	int64_t since;
	int i;

	ck_assert_int_eq(kvr_attach_at(NULL, shared, BYTES, &other), KVR_OK);
	ck_assert_int_eq(kvr_nowait_set(k, 2), KVR_OK);
	ck_assert_int_eq(region_lock(k, true), KVR_OK);
	region_unlock(k);
	ck_assert_int_eq(region_lock(other, true), KVR_OK);
	since = milliseconds();
	ck_assert_int_eq(region_lock(k, true), KVR_EBUSY);
	ck_assert_int_ge(milliseconds() - since, 99);
	ck_assert(atomic_load(&k->own->gave_up));
	since = milliseconds();
	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(region_lock(k, true), KVR_EBUSY);
	ck_assert_int_lt(milliseconds() - since, 50000);
	region_unlock(other);
	ck_assert_int_eq(region_lock(k, true), KVR_OK);
	ck_assert(!atomic_load(&k->own->gave_up));
	region_unlock(k);
	kvr_free(other);
}
END_TEST

/* A private region has the same lock, without seats. */
START_TEST(private_region)
{
	struct kvr_options o = small_options();
	struct kvr *mine;
	uint64_t found;

	ck_assert_int_eq(kvr_new(&o, &mine), KVR_OK);
	ck_assert_int_eq(region_lock(mine, true), KVR_OK);
	ck_assert_int_eq(region_lock(mine, false), KVR_EBUSY);
	region_unlock(mine);
	atomic_store(&mine->region->lock, 77); /* a stray write */
	ck_assert_int_eq(kvr_worker_add(mine, "a", 1, NULL, &found), KVR_OK);
	ck_assert_uint_eq(atomic_load(&mine->region->lock), 0);
	kvr_free(mine);
}
END_TEST

/* ------------------------------------------------- one owner, in order --- */

enum { THREADS = 4, LOCKS = 20000 };

/* Written by the owner alone; not atomic. */
static uint64_t sum;
static _Atomic int failures;

static void *
add_up(void *mine)
{
	uint64_t i, n = test_amount(LOCKS);

	for (i = 0; i < n; i++) {
		if (region_lock(mine, true) != KVR_OK) {
			atomic_fetch_add(&failures, 1);
			return NULL;
		}
		sum++;
		region_unlock(mine);
	}
	return NULL;
}

/* Threads of one handle, of one each, and of a private region. */
START_TEST(one_at_a_time)
{
	struct kvr_options o = small_options();
	struct kvr *of[THREADS];
	pthread_t thread[THREADS];
	int i;

	sum = 0;
	for (i = 0; i < THREADS; i++)
		if (_i == 0 || (_i == 2 && i > 0))
			of[i] = _i == 0 ? k : of[0];
		else
			ck_assert_int_eq(_i == 2 ? kvr_new(&o, &of[i])
			    : kvr_attach_at(NULL, shared, BYTES, &of[i]),
			    KVR_OK);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, add_up,
		    of[i]), 0);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	ck_assert_uint_eq(sum, THREADS * test_amount(LOCKS));
	ck_assert_int_eq(atomic_load(&failures), 0);
	ck_assert_uint_eq(atomic_load(&of[0]->region->lock) & LOCK_OWNER, 0);
	for (i = 0; i < THREADS && _i > 0; i++)
		if (i == 0 || _i == 1)
			kvr_free(of[i]);
}
END_TEST

static _Atomic int stop;
static _Atomic uint64_t rounds;

/* Takes it again at once, and is running when it is free. */
static void *
greedy(void *mine)
{
	while (atomic_load(&stop) == 0) {
		if (region_lock(mine, true) != KVR_OK)
			break;
		usleep(50);
		atomic_fetch_add(&rounds, 1);
		region_unlock(mine);
	}
	return NULL;
}

/* It sleeps while the other holds the lock, and still gets it in turn. */
START_TEST(each_has_its_turn)
{
	uint64_t i, n = test_amount(100), before, late = 0;
	pthread_t thread;

	atomic_store(&stop, 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, greedy, k), 0);
	while (atomic_load(&rounds) == 0)
		usleep(100);
	for (i = 0; i < n; i++) {
		before = atomic_load(&rounds);
		ck_assert_int_eq(region_lock(k, true), KVR_OK);
		late += atomic_load(&rounds) - before > 6;
		region_unlock(k);
		usleep(200);
	}
	atomic_store(&stop, 1);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_le(late, n / 4);
}
END_TEST

static void *
lock_once(void *mine)
{
	if (region_lock(mine, true) != KVR_OK)
		atomic_fetch_add(&failures, 1);
	region_unlock(mine);
	return NULL;
}

static void
wake(void)
{
	usleep(2000);
	(void)syscall(SYS_futex, &k->region->lock, FUTEX_WAKE, 1);
}

/* A sleeper that is woken in vain twice asks newcomers to stand back. */
START_TEST(hungry)
{
	pthread_t thread;
	int i;

	ck_assert_int_eq(region_lock(k, true), KVR_OK);
	ck_assert_int_eq(pthread_create(&thread, NULL, lock_once, k), 0);
	for (i = 0; i < 10000 && (word() & LOCK_WAITERS) == 0; i++)
		usleep(100);
	ck_assert_uint_eq(word(), k->me | LOCK_WAITERS);
	for (i = 0; i < 1000 && (word() & LOCK_HUNGRY) == 0; i++)
		wake();
	ck_assert_uint_eq(word(), k->me | LOCK_WAITERS | LOCK_HUNGRY);
	region_unlock(k);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(word(), 0);
	ck_assert_int_eq(atomic_load(&failures), 0);
}
END_TEST

/* They do, for some milliseconds; but not those that may not wait. */
START_TEST(newcomers_stand_back)
{
	int64_t since;

	atomic_store(&k->region->lock, LOCK_HUNGRY);
	ck_assert_int_eq(region_lock(k, false), KVR_OK);
	ck_assert_uint_eq(word(), k->me | LOCK_HUNGRY);
	region_unlock(k);
	ck_assert_uint_eq(word(), LOCK_HUNGRY);
	since = milliseconds();
	ck_assert_int_eq(region_lock(k, true), KVR_OK);
	ck_assert_int_ge(milliseconds() - since, 3);
	ck_assert_uint_eq(word() & LOCK_HUNGRY, 0); /* it has died */
	region_unlock(k);
	ck_assert_uint_eq(word(), 0);
}
END_TEST

/* ------------------------------------------------------- dead owners --- */

/* A child with the lock; it is stopped, or goes on. */
static void
child_locks(bool stops)
{
	int ends[2];
	char byte = 0;

	ck_assert_int_eq(pipe(ends), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		if (kvr_attach_at(NULL, shared, BYTES, &k) != KVR_OK ||
		    region_lock(k, true) != KVR_OK ||
		    write(ends[1], &byte, 1) != 1)
			_exit(1);
		if (stops)
			(void)raise(SIGSTOP);
		for (;;)
			(void)pause();
	}
	ck_assert_int_eq(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	close(ends[1]);
	if (stops)
		ck_assert_int_eq(waitpid(child, NULL, WUNTRACED), child);
	ck_assert_int_eq((pid_t)seat_pid(k, word()), child);
}

/* Kills it and leaves it a zombie: its parent may be busy. */
static void
child_dies(void)
{
	siginfo_t info;

	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT),
	    0);
}

static void
child_buried(void)
{
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	child = 0;
}

/* Milliseconds until a call succeeds after a death. */
static int64_t
found_after(bool wait)
{
	int64_t since;
	int error;

	child_locks(false);
	ck_assert_int_eq(region_lock(k, false), KVR_EBUSY);
	child_dies();
	since = milliseconds();
	while ((error = region_lock(k, wait)) == KVR_EBUSY)
		usleep(100);
	since = milliseconds() - since;
	ck_assert_int_eq(error, KVR_OK);
	region_unlock(k);
	child_buried();
	return since;
}

/* At once or after 40 ms; a busy machine may delay some of the tries. */
START_TEST(death_is_found)
{
	int i, soon = 0;

	for (i = 0; i < 5; i++)
		soon += found_after(_i == 0) <= FOUND_MS;
	ck_assert_int_ge(soon, 3);
}
END_TEST

/* The lock of a stopped process is not taken, nor waited for with NOWAIT. */
START_TEST(stopped_owner)
{
	int64_t since;
	int i;

	child_locks(true);
	since = milliseconds();
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(region_lock(k, false), KVR_EBUSY);
		usleep(5000);
	}
	ck_assert_int_lt(milliseconds() - since, 5000);
	k->wait_ns = 200000000;
	ck_assert_int_eq(region_lock(k, true), KVR_EBUSY);
	ck_assert_int_eq((pid_t)seat_pid(k, word()), child);
	child_dies();
	k->wait_ns = LOCK_WAIT_NS;
	ck_assert_int_eq(region_lock(k, true), KVR_OK);
	region_unlock(k);
	child_buried();
}
END_TEST

static _Atomic int got;

static void *
wait_for_it(void *mine)
{
	if (region_lock(mine, true) == KVR_OK) {
		atomic_fetch_add(&got, 1);
		region_unlock(mine);
	}
	return NULL;
}

/* A wake-up is lost with the process it went to; the others go on. */
START_TEST(killed_while_it_waits)
{
	pthread_t thread[2];
	int i;

	for (i = 0; i < 10; i++) {
		atomic_store(&got, 0);
		ck_assert_int_eq(region_lock(k, true), KVR_OK);
		child = fork();
		if (child == 0) {
			if (kvr_attach_at(NULL, shared, BYTES, &k) == KVR_OK)
				(void)region_lock(k, true);
			for (;;)
				(void)pause();
		}
		usleep(3000);
		ck_assert_int_eq(pthread_create(&thread[0], NULL, wait_for_it,
		    k), 0);
		ck_assert_int_eq(pthread_create(&thread[1], NULL, wait_for_it,
		    k), 0);
		usleep(3000);
		ck_assert_int_eq(kill(child, SIGSTOP), 0);
		region_unlock(k); /* wakes the stopped one */
		ck_assert_int_eq(kill(child, SIGKILL), 0);
		ck_assert_int_eq(pthread_join(thread[0], NULL), 0);
		ck_assert_int_eq(pthread_join(thread[1], NULL), 0);
		ck_assert_int_eq(atomic_load(&got), 2);
		child_buried();
	}
}
END_TEST

/* ------------------------------------------------------------------- suite */

Suite *suite_lock(void);

Suite *
suite_lock(void)
{
	Suite *s = suite_create("lock");
	TCase *t = tcase_create("word");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, free_and_locked);
	tcase_add_test(t, words_without_an_owner);
	tcase_add_test(t, lost_to_another);
	tcase_add_test(t, gives_up);
	tcase_add_test(t, gives_up_briefly);
	tcase_add_test(t, private_region);
	suite_add_tcase(s, t);
	t = tcase_create("order");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, one_at_a_time, 0, 3);
	tcase_add_test(t, each_has_its_turn);
	tcase_add_test(t, hungry);
	tcase_add_test(t, newcomers_stand_back);
	suite_add_tcase(s, t);
	t = tcase_create("death");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, death_is_found, 0, 2);
	tcase_add_test(t, stopped_owner);
	tcase_add_test(t, killed_while_it_waits);
	suite_add_tcase(s, t);
	return s;
}
