/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock.c - the lock of a region, which processes share that may stop or die.
 *
 * It is one word in the region. Waiting processes sleep on it in the kernel (a
 * futex). There are no pointers, no ids of threads and no types of a C library
 * in it, so it means the same in every PID namespace and with every libc.
 *
 *    31        30       29 ........ 10  9 ........ 0
 *   +---------+--------+---------------+------------+
 *   | WAITERS | HUNGRY | turn of seat  | seat, or 0 |
 *   +---------+--------+---------------+------------+
 *
 * A SEAT belongs to one handle at a time and shows whether that handle's
 * process lives (seat.c). The turn counts its handles, so a word that names a
 * turn that is over names a dead owner, whichever handle has the seat now.
 *
 *                   lock: 0 to me (one compare-and-swap)
 *      +------+ ------------------------------------------> +--------+
 *      | free |                                             | locked |
 *      +------+ <------------------------------------------ +--------+
 *                   unlock: me to 0 (another one)            |  ^  | owner
 *                                                            v  |  v dies
 *      woken, or 40 ms later:                  +---------------+ +------+
 *      look again; is the owner dead?  <------ | locked, with  | | dead |
 *                                              | WAITERS       | +------+
 *                                              +---------------+  |
 *                    the one that finds this out becomes owner <--+
 *
 * Invariants
 *   - A word changes from an owner to another only if the first is dead.
 *   - Only the owner changes its word to free; if a word names another, an
 *     unlock does nothing.
 *   - A sleeper has set WAITERS, and looks again after at most LOOK_NS. So a
 *     wake-up that is lost, as its addressee was killed, costs that time, and
 *     so does a death. Nothing depends on a process that does not run, but
 *     the owner itself.
 *   - The one that takes a dead owner's lock finds the seqlock odd if the owner
 *     was in the middle of a change, and repairs the index: txn.c.
 *
 * ORDER. A running thread finds a free lock sooner than one that has to be
 * woken. So the lock is always busy, but a sleeper could lose for ever. After
 * PATIENCE wake-ups in vain it sets HUNGRY: then newcomers that may wait leave
 * a free lock to sleepers, which the kernel wakes in the order of arrival, and
 * sleep themselves. They do so once, for 4 ms: a hungry process that
 * was killed or stopped delays them no longer. Calls that may not wait take a
 * free lock at any time.
 *
 * CALLS THAT MAY NOT WAIT spin for some microseconds, or two busy processes
 * would turn each other away; then they give up. As all callers may be of this
 * kind, they also ask now and then, at most every ASK_NS, whether the owner
 * lives.
 *
 * CALLS THAT MAY WAIT BRIEFLY wait for LOCK_BRIEF_NS. Once one has done so in
 * vain, they are as those that may not wait, until one of them gets the lock: a
 * stopped owner delays a handle once, however many calls are made meanwhile.
 *
 * THE CLOCK is read here, although the library else takes `now` as an argument:
 * a call that waits has to end in time however often it is woken in vain.
 *
 * DISTRUST. Any process that can write the region can write anything into the
 * word. It can take the lock away from its owner, so that two processes change
 * the index at once; all reads are bounded for that. It can let the lock look
 * held: a call that waits gives up after LOCK_WAIT_NS.
 */
#define _GNU_SOURCE /* syscall */
#include "lock.h"

#include "region.h"
#include "seat.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/time_types.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The kernel's time: on 32 bits that of the C library may be longer. */
#ifdef SYS_futex
typedef struct __kernel_old_timespec lock_time;
#else
#define SYS_futex SYS_futex_time64
typedef struct __kernel_timespec lock_time;
#endif

enum { SPINS = 200, PATIENCE = 2 };
#define LOOK_NS INT64_C(40000000)
#define YIELD_NS INT64_C(4000000)
#define ASK_NS INT64_C(10000000)

/* One call that waits. */
struct wait {
	int64_t until, looked; /* give up; the owner was last looked at */
	uint32_t slept;        /* woken in vain */
	bool yielded;          /* has left the lock to others, or has slept */
};

/* Spin hint: pauses for about the time of a few loads. */
void
region_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

int64_t
lock_clock(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int
lock_futex(const struct kvr *k, int operation)
{
	return k->kind == REGION_PRIVATE ? operation | FUTEX_PRIVATE_FLAG
	    : operation;
}

static uint32_t
lock_word(const struct kvr *k)
{
	return atomic_load_explicit(&k->region->lock, memory_order_relaxed);
}

static bool
lock_swap(const struct kvr *k, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(&k->region->lock,
	    &from, to, memory_order_acquire, memory_order_relaxed);
}

/* Takes the lock from an owner that has died. */
static bool
lock_inherit(const struct kvr *k)
{
	uint32_t word = lock_word(k);

	if ((word & LOCK_OWNER) == 0 || seat_alive(k, word))
		return false;
	return lock_swap(k, word, k->me | LOCK_WAITERS);
}

/* Takes the lock if it is free, within some microseconds. */
static bool
lock_spin(const struct kvr *k, uint32_t heed)
{
	uint32_t word, i;

	for (i = 0; i < SPINS; i++) {
		word = lock_word(k);
		if ((word & (LOCK_OWNER | heed)) == 0 &&
		    lock_swap(k, word, word | k->me))
			return true;
		region_pause();
	}
	return false;
}

/* The same, for calls that may not wait. */
static int
lock_hurry(const struct kvr *k)
{
	int64_t asked, now;

	if (lock_spin(k, 0))
		return KVR_OK;
	now = lock_clock();
	asked = atomic_load_explicit(&k->own->asked, memory_order_relaxed);
	if (now - asked < ASK_NS)
		return KVR_EBUSY;
	atomic_store_explicit(&k->own->asked, now, memory_order_relaxed);
	return lock_inherit(k) ? KVR_OK : KVR_EBUSY;
}

/* Sleeps until the word changes and a wake-up comes, or for some time. */
static void
lock_sleep(const struct kvr *k, struct wait *w, uint32_t word)
{
	lock_time t = { 0, LOOK_NS };
	long result;

	if ((word & LOCK_OWNER) == 0)
		t.tv_nsec = YIELD_NS;
	result = syscall(SYS_futex, &k->region->lock,
	    lock_futex(k, FUTEX_WAIT), word, &t, NULL, 0);
	w->slept += result == 0;
	w->yielded |= result == 0 || errno == ETIMEDOUT;
}

/* One look at the word: takes it if it is free, or else sleeps. */
static bool
lock_round(const struct kvr *k, struct wait *w)
{
	uint32_t word = lock_word(k), flags = LOCK_WAITERS;

	if ((word & LOCK_OWNER) == 0 &&
	    (w->yielded || (word & LOCK_HUNGRY) == 0)) {
		if (w->slept > 0 && w->slept < PATIENCE)
			flags |= word & LOCK_HUNGRY; /* another's */
		return lock_swap(k, word, k->me | flags);
	}
	if (w->slept >= PATIENCE)
		flags |= LOCK_HUNGRY;
	if ((word & flags) == flags || lock_swap(k, word, word | flags))
		lock_sleep(k, w, word | flags);
	return false;
}

static int
lock_wait(const struct kvr *k, int64_t ns)
{
	int64_t now = lock_clock();
	struct wait w = { .until = now + ns, .looked = now };

	while (!lock_round(k, &w)) {
		now = lock_clock();
		if (now - w.looked >= LOOK_NS) {
			w.looked = now;
			if (lock_inherit(k))
				break;
		}
		if (now >= w.until)
			return KVR_EBUSY;
	}
	return KVR_OK;
}

static int
lock_briefly(const struct kvr *k)
{
	if (atomic_load_explicit(&k->own->gave_up, memory_order_relaxed))
		return lock_hurry(k);
	return lock_spin(k, LOCK_HUNGRY) ? KVR_OK :
	    lock_wait(k, LOCK_BRIEF_NS);
}

int
region_lock(const struct kvr *k, bool wait)
{
	const uint32_t nowait = wait ? atomic_load_explicit(&k->nowait,
	    memory_order_relaxed) : REGION_NEVER;
	int error = KVR_OK;

	if (!seat_here(k))
		return KVR_ESTATE;
	if (!lock_swap(k, 0, k->me)) {
		if (nowait == REGION_NEVER)
			return lock_hurry(k);
		if (nowait == REGION_PATIENTLY)
			return lock_spin(k, LOCK_HUNGRY) ? KVR_OK :
			    lock_wait(k, k->wait_ns);
		error = lock_briefly(k);
	}
	if (nowait == REGION_BRIEFLY)
		atomic_store_explicit(&k->own->gave_up, error != KVR_OK,
		    memory_order_relaxed);
	return error;
}

void
region_unlock(const struct kvr *k)
{
	uint32_t word = k->me;

	if (atomic_compare_exchange_strong_explicit(&k->region->lock, &word,
	    0, memory_order_release, memory_order_relaxed))
		return;
	while ((word & LOCK_OWNER) == k->me)
		if (atomic_compare_exchange_weak_explicit(&k->region->lock,
		    &word, word & LOCK_HUNGRY, memory_order_release,
		    memory_order_relaxed)) {
			if ((word & LOCK_WAITERS) != 0)
				(void)syscall(SYS_futex, &k->region->lock,
				    lock_futex(k, FUTEX_WAKE), 1);
			return;
		}
}

void
region_lock_reset(struct region *r)
{
	atomic_store(&r->lock, 0);
}
