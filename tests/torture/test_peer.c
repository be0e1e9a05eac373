/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_peer.c - a peer that can write the region writes into the lock, the
 * seats and the sizes of the tables while a victim makes calls, as in
 * poc_write: with glibc's robust mutex it could have the victim write anywhere,
 * by two pointers in the mutex.
 *
 *   peer     pointers, random words, words of the victim's own, other pids
 *   victim   makes calls; its private memory must stay as it is; each call
 *            ends with a defined error, in the time that the lock promises
 *
 * Results of calls are worth nothing here: the peer can take the lock away in
 * the middle of a change.
 */
#define _GNU_SOURCE
#include "process.h"

#include "plain.h"
#include "seat.h"
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REGION = 256 << 10, MILLISECONDS = 1500, TARGETS = 64, PAUSE = 50 };

static struct board *board;
static struct kvr *k;
static uint64_t target[TARGETS]; /* targets of the peer's pointers */

static int64_t
milliseconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int
one_call(uint64_t *chance, struct kvr_prompt *p, uint64_t worker)
{
	struct kvr_stats s = { .size = sizeof(s) };
	struct kvr_decision d = { .size = sizeof(d) };
	int64_t now = atomic_fetch_add(&board->clock, 1);
	struct kvr *another;
	int rc;

	switch (plain_random(chance) % 6) {
	case 0:
		return kvr_stats_get(k, &s);
	case 1:
		return kvr_lease_open(k, p, NULL, now, &d);
	case 2:
		return kvr_route(k, p, NULL, now, &d);
	case 3:
		if ((rc = process_attach(board, &another)) == KVR_OK)
			kvr_free(another);
		return rc;
	default:
		return kvr_observe(k, p, worker, now, 0, NULL);
	}
}

/* Returns 0, or the error. */
static int
victim(uint64_t chance, uint64_t worker)
{
	int64_t until = milliseconds() + MILLISECONDS;
	struct kvr_prompt *p;
	uint32_t i;
	int rc;

	(void)signal(SIGALRM, SIG_DFL);
	(void)alarm(60);
	if (process_attach(board, &k) != KVR_OK ||
	    kvr_prompt_new(k, &p) != KVR_OK)
		return 1;
	k->wait_ns = (int64_t)PAUSE * 1000000;
	for (i = 0; milliseconds() < until; i++) {
		(void)process_prompt(p, i % PROCESS_FAMILIES,
		    process_length[i % PROCESS_LENGTHS]);
		rc = one_call(&chance, p, worker);
		if (rc > KVR_OK || rc < KVR_ENEWER)
			return 2;
	}
	kvr_prompt_free(p);
	kvr_free(k);
	for (i = 0; i < TARGETS; i++)
		if (target[i] != i)
			return 4;
	return 0;
}

/* One word of the kind that does most harm. */
static uint64_t
evil(uint64_t *chance)
{
	uint64_t x = plain_random(chance);

	switch (x % 6) {
	case 0:
		return (uint64_t)(uintptr_t)&target[x / 6 % TARGETS];
	case 1:
		return k->me | (x & LOCK_WAITERS);
	case 2:
		return k->me + (x >> 32 & 3);
	case 3:
		return 0;
	case 4:
		return k->holder;
	default:
		return x;
	}
}

static void
attack(uint64_t *chance)
{
	uint64_t x = plain_random(chance);
	struct region *r = k->region;

	if (x % 4 == 1)
		write_once(*(x % 8 == 1 ? &r->node_buckets_used
		    : &r->entry_buckets_used), x % 3 == 0
		    ? (uint32_t)(x >> 32) % k->layout.node_buckets
		    : (uint32_t)evil(chance));
	else if (x % 4 != 0)
		atomic_store(&r->lock, (uint32_t)evil(chance));
	else if (x % 8 == 0)
		atomic_store(&k->seats[x / 8 % k->layout.seats].holder,
		    evil(chance));
	else
		atomic_store(&k->seats[x / 8 % k->layout.seats].room,
		    evil(chance));
	if (x / 8 % 64 == 0)
		usleep((useconds_t)(x / 512 % 2000));
}

START_TEST(writes_the_lock)
{
	uint64_t chance = test_seed(), worker, i, attacks = 0;
	int status = 0;
	pid_t child;

	for (i = 0; i < TARGETS; i++)
		target[i] = i;
	board = process_board(REGION, NULL, &k);
	ck_assert_ptr_nonnull(board);
	ck_assert_int_eq(process_find(k, 0, &worker), KVR_OK);
	fflush(NULL);
	child = fork();
	if (child == 0)
		_exit(victim(chance + 1, worker));
	for (; waitpid(child, &status, WNOHANG) == 0; attacks++)
		attack(&chance);
	ck_assert_msg(WIFEXITED(status), "the victim died of signal %d",
	    WTERMSIG(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	ck_assert_uint_gt(attacks, 100);
	/* the next call makes a region of it again */
	atomic_fetch_or(&k->region->seq, 1);
	atomic_store(&k->region->lock, 0);
	seats_reset(k);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	process_board_end(board, k);
}
END_TEST

Suite *suite_peer(void);

Suite *
suite_peer(void)
{
	Suite *s = suite_create("peer");
	TCase *t = tcase_create("peer");

	tcase_add_test(t, writes_the_lock);
	suite_add_tcase(s, t);
	return s;
}
