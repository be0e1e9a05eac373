/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_txn.c - the frame of every call: the clock, the lock, a dead owner.
 *
 * Times that no call accepts are test_misuse.c's; many threads are
 * test_threads.c's. Here the lock is held, or abandoned, on purpose.
 */
#include "txn.h"

#include "inner.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* --------------------------------------------------------------- clock --- */

/* The largest `now` of a writing call, and how often one was behind it. */
static void
ck_clock(int64_t clock, uint64_t back)
{
	ck_assert_int_eq(stats().clock, clock);
	ck_assert_uint_eq(stats().clock_back, back);
}

START_TEST(time_never_runs_backwards)
{
	observe(0, "abcd", 1000);
	ck_clock(1000, 0);
	ck_assert_uint_eq(overlap(0, 0), 4);
	ck_assert_uint_eq(overlap(0, 1000 + TTL - 1), 4);
	ck_assert_uint_eq(overlap(0, 1000 + TTL), 0);
	ck_assert_uint_eq(overlap(0, 0), 4); /* reading moves nothing */
	ck_clock(1000, 0);
	observe(1, "mn", 10); /* takes effect at 1000 */
	ck_clock(1000, 1);
	(void)expire(999 + TTL, 100);
	ck_assert_uint_eq(overlap(1, 0), 2);
	(void)expire(1000 + TTL, 0);
	ck_assert_uint_eq(overlap(1, 0), 0);
	ck_clock(1000 + TTL, 1);
	(void)reserve(0, "xy", 1000 + TTL); /* equal to the clock: not behind */
	ck_clock(1000 + TTL, 1);
	(void)expire(999 + TTL, 0);
	ck_clock(1000 + TTL, 2);
}
END_TEST

/* The call is made at the present time, and sets the clock if it writes. */
#define AT_PRESENT(writes, call) do { \
	int64_t before = kvr_clock_now(), clock = stats().clock; \
	ck_assert_int_eq(call, KVR_OK); \
	if (writes) \
		ck_assert_int_ge(stats().clock, before); \
	else \
		ck_assert_int_eq(stats().clock, clock); \
	ck_assert_int_le(stats().clock, kvr_clock_now()); \
} while (0)

START_TEST(leases_at_present)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint64_t cursor = 0;

	say("abcd");
	AT_PRESENT(true, kvr_lease_open(k, p, NULL, KVR_NOW, &d));
	AT_PRESENT(true, kvr_lease_commit(k, d.lease, KVR_NOW, 0));
	AT_PRESENT(true, kvr_lease_first_token(k, d.lease, KVR_NOW, 0));
	AT_PRESENT(true, kvr_lease_output(k, d.lease, 1, KVR_NOW, 0));
	AT_PRESENT(true, kvr_lease_extend(k, d.lease, p, KVR_NOW, 0));
	AT_PRESENT(true, kvr_lease_finish(k, d.lease, NULL, KVR_NOW, 0));
	AT_PRESENT(true, kvr_lease_open_on(k, p, NULL, id[1], KVR_NOW, &d));
	AT_PRESENT(true, kvr_lease_abort(k, d.lease, KVR_NOW, 0));
	AT_PRESENT(true, kvr_lease_abort(k, 0, KVR_NOW, 0));
	AT_PRESENT(true, kvr_owner_reap(k, 1, KVR_NOW, &cursor, NULL));
	ck_assert_uint_eq(stats().clock_back, 0);
}
END_TEST

START_TEST(reads_at_present)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_overlap overlaps[WORKERS];
	struct kvr_candidate candidates[WORKERS];
	struct kvr_entry entry;
	uint64_t cursor = 0;
	size_t n;

	say("abcd");
	AT_PRESENT(true, kvr_clock_set(k, KVR_NOW));
	AT_PRESENT(true, kvr_observe(k, p, id[0], KVR_NOW, 0, NULL));
	/* TTL nanoseconds are over: a time that is read is no small number */
	AT_PRESENT(false, kvr_match(k, p, KVR_NOW, overlaps,
	    sizeof(overlaps[0]), WORKERS, &n));
	ck_assert_uint_eq(n, 0);
	AT_PRESENT(false, kvr_route(k, p, NULL, KVR_NOW, &d));
	AT_PRESENT(false, kvr_choose(k, p, NULL, NULL, sizeof(overlaps[0]), 0,
	    KVR_NOW, &d));
	AT_PRESENT(false, kvr_candidates(k, p, NULL, KVR_NOW, candidates,
	    sizeof(candidates[0]), WORKERS, &n));
	AT_PRESENT(false, kvr_entries(k, &cursor, KVR_NOW, &entry,
	    sizeof(entry), 1, &n));
	AT_PRESENT(true, kvr_expire(k, KVR_NOW, 100, NULL));
	ck_assert_uint_eq(stats().entries, 0);
}
END_TEST

/* Calls on tables that small_setup leaves out. */
START_TEST(tables_at_present)
{
	struct kvr_options o = small_options();
	struct kvr_event_batch batch = { .size = sizeof(batch) };
	struct kvr_event_result result = { .size = sizeof(result) };
	struct kvr_record record = { .size = sizeof(record) };
	struct kvr *small = k;
	uint64_t position = 0, worker;
	int64_t began = kvr_clock_now();

	o.affinity_entries = 8;
	o.journal_bytes = KVR_JOURNAL_MIN;
	o.region_bytes = 512 << 10;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	worker = worker_of('w');
	ck_assert_int_eq(kvr_journal_read(k, &position, KVR_NOW, &record, NULL,
	    0), KVR_EAGAIN);
	AT_PRESENT(true, kvr_affinity_bind(k, 7, worker, 0, KVR_NOW, 0));
	AT_PRESENT(false, kvr_journal_read(k, &position, KVR_NOW, &record,
	    NULL, 0));
	ck_assert_int_ge(record.at, began);
	AT_PRESENT(false, kvr_affinity_find(k, 7, KVR_NOW, &worker));
	AT_PRESENT(true, kvr_events_apply(k, worker, &batch, NULL, 0, 0, NULL,
	    0, NULL, 0, KVR_NOW, 0, &result));
	AT_PRESENT(false, kvr_journal_beat(k, KVR_NOW));
	ck_assert_int_ge(stats().journal_beat, began);
	kvr_free(k);
	k = small;
}
END_TEST
#undef AT_PRESENT

/* Before the first writing call any time is accepted, and not kept. */
START_TEST(no_clock_yet)
{
	say("ab");
	ck_assert_uint_eq(overlap(0, INT64_C(1) << 61), 0);
	ck_assert_uint_eq(overlap(0, 5), 0);
	ck_clock(-1, 0);
	observe(0, "ab", 0);
	ck_clock(0, 0);
	ck_assert_uint_eq(overlap(0, 0), 2);
}
END_TEST

START_TEST(calls_without_time)
{
	struct kvr_load load = { .size = sizeof(load) };
	struct kvr_policy policy;

	observe(0, "ab", 100);
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	ck_assert_int_eq(kvr_worker_reset(k, id[1], &id[1]), KVR_OK);
	ck_assert_int_eq(kvr_worker_remove(k, id[2]), KVR_OK);
	id[2] = worker_of('2');
	ck_assert_int_eq(kvr_policy_init(&policy, sizeof(policy)), KVR_OK);
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_OK);
	ck_clock(100, 0);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_clock(100, 0);
}
END_TEST

/* A call that fails, early or late, leaves no trace. */
START_TEST(failing_writes_leave_the_clock)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_report report = { .size = sizeof(report), .kind = 9 };
	struct kvr_request r;
	uint64_t lease;
	int64_t now;

	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.required_taints = 1;
	lease = reserve(0, "abcd", 100);
	for (now = 50; now <= 500; now += 450) {
		ck_assert_int_eq(kvr_observe(k, p, 99, now, 0, NULL),
		    KVR_EWORKER);
		ck_assert_int_eq(kvr_lease_open(k, p, &r, now, &d),
		    KVR_ENOWORKER);
		ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, 99, now, &d),
		    KVR_EWORKER);
		ck_assert_int_eq(kvr_lease_commit(k, 99, now, 0), KVR_ELEASE);
		ck_assert_int_eq(kvr_lease_first_token(k, 99, now, 0),
		    KVR_ELEASE);
		ck_assert_int_eq(kvr_lease_extend(k, 99, p, now, 0),
		    KVR_ELEASE);
		ck_assert_int_eq(kvr_lease_output(k, 99, 1, now, 0),
		    KVR_ELEASE);
		ck_assert_int_eq(
		    kvr_lease_finish(k, 99, NULL, now, 0), KVR_ELEASE);
		ck_assert_int_eq(kvr_lease_finish(k, lease, &report, now, 0),
		    KVR_EINVAL);
		ck_assert_int_eq(kvr_lease_abort(k, 99, now, 0), KVR_ELEASE);
		ck_assert_int_eq(kvr_lease_abort(k, lease, now, 2), KVR_EINVAL);
		ck_clock(100, 0);
	}
}
END_TEST

/* --------------------------------------------------- the lock is taken --- */

static pthread_barrier_t meeting;

/* Holds the lock from one barrier to the next. */
static void *
entry_lock(void *nothing)
{
	if (region_lock(k, true) != KVR_OK)
		abort();
	(void)pthread_barrier_wait(&meeting);
	(void)pthread_barrier_wait(&meeting);
	region_unlock(k);
	return nothing;
}

/* The same, in the middle of a change. */
static void *
entry_turn(void *mine)
{
	struct kvr same = *k;

	same.nowait = false;
	if (region_lock(&same, true) != KVR_OK)
		abort();
	atomic_fetch_add(&k->region->seq, 1);
	(void)pthread_barrier_wait(&meeting);
	(void)pthread_barrier_wait(&meeting);
	atomic_fetch_add(&k->region->seq, 1);
	region_unlock(k);
	return mine;
}

START_TEST(nowait)
{
	struct kvr_decision d = { .size = sizeof(d), .worker = 77 }, was = d;
	uint64_t lease = reserve(0, "abcd", 1);
	struct kvr_stats before = stats(), after;
	uint32_t recorded = 77;
	struct kvr_request r;
	pthread_t thread;

	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.flags = KVR_NOWAIT;
	ck_assert_int_eq(pthread_barrier_init(&meeting, NULL, 2), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, entry_lock, NULL), 0);
	(void)pthread_barrier_wait(&meeting);
#define BUSY(call) ck_assert_int_eq((call), KVR_EBUSY)
	BUSY(kvr_observe(k, p, id[1], 9, KVR_NOWAIT, &recorded));
	BUSY(kvr_lease_open(k, p, &r, 9, &d));
	BUSY(kvr_lease_open_on(k, p, &r, id[1], 9, &d));
	BUSY(kvr_lease_commit(k, lease, 9, KVR_NOWAIT));
	BUSY(kvr_lease_first_token(k, lease, 9, KVR_NOWAIT));
	BUSY(kvr_lease_extend(k, lease, p, 9, KVR_NOWAIT));
	BUSY(kvr_lease_output(k, lease, 1, 9, KVR_NOWAIT));
	BUSY(kvr_lease_finish(k, lease, NULL, 9, KVR_NOWAIT));
	BUSY(kvr_lease_abort(k, lease, 9, KVR_NOWAIT));
#undef BUSY
	(void)pthread_barrier_wait(&meeting);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	after = stats();
	ck_assert_uint_eq(after.busy_writes, before.busy_writes + 9);
	after.busy_writes = before.busy_writes;
	ck_assert_mem_eq(&after, &before, sizeof(after));
	ck_assert_mem_eq(&d, &was, sizeof(d));
	ck_assert_uint_eq(recorded, 77);
	/* the same calls once the lock is free */
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[1], 9, &d), KVR_OK);
	ck_assert_int_eq(
	    kvr_lease_finish(k, lease, NULL, 9, KVR_NOWAIT), KVR_OK);
	ck_tree("abcd:01!");
}
END_TEST

/* Every call on a region that may wait; its result does not matter. */
#define EVERY_CALL(X) \
	X(kvr_clear(k)) \
	X(kvr_policy_get(k, &policy)) \
	X(kvr_policy_set(k, &k->region->policy)) \
	X(kvr_worker_add(k, "x", 1, NULL, &some)) \
	X(kvr_worker_find(k, "x", 1, 0, &some)) \
	X(kvr_worker_get(k, 99, &facts)) \
	X(kvr_worker_name(k, 99, NULL, 0, &n)) \
	X(kvr_worker_set(k, 99, &facts)) \
	X(kvr_worker_set_load(k, 99, 0, &load)) \
	X(kvr_worker_get_load(k, 99, 0, &load)) \
	X(kvr_worker_next(k, &some)) \
	X(kvr_worker_remove(k, 99)) \
	X(kvr_worker_reset(k, 99, &some)) \
	X(kvr_worker_stats_get(k, 99, &counted)) \
	X(kvr_candidates(k, p, NULL, 1, NULL, 0, 0, &n)) \
	X(kvr_observe(k, p, 99, 1, 0, NULL)) \
	X(kvr_expire(k, 1, 1, NULL)) \
	X(kvr_next_expiry(k, &due)) \
	X(kvr_lease_open(k, p, NULL, 1, &d)) \
	X(kvr_lease_open_on(k, p, NULL, 99, 1, &d)) \
	X(kvr_lease_commit(k, 99, 1, 0)) \
	X(kvr_lease_first_token(k, 99, 1, 0)) \
	X(kvr_lease_extend(k, 99, p, 1, 0)) \
	X(kvr_lease_output(k, 99, 1, 1, 0)) \
	X(kvr_lease_finish(k, 99, NULL, 1, 0)) \
	X(kvr_lease_abort(k, 99, 1, 0)) \
	X(kvr_owner_reap(k, 99, 1, &some, NULL)) \
	X(kvr_owner_list(k, &some, &some, 1, &n)) \
	X(kvr_affinity_bind(k, 99, 99, 0, 1, 0)) \
	X(kvr_events_apply(k, 99, &batch, NULL, sizeof(struct kvr_event), 0, \
	    NULL, 0, NULL, 0, 1, 0, NULL)) \
	X(kvr_events_lost(k, 99, 1)) \
	X(kvr_events_off(k, 99)) \
	X(kvr_stats_get(k, &all)) \
	X(kvr_metrics(k, NULL, 0, &n)) \
	X(kvr_check(k)) \
	X(kvr_entries(k, &some, 1, &e, sizeof(e), 1, &n)) \
	LOOKING_CALLS(X)
/* The calls that need no lock while there is no writer. */
#define LOOKING_CALLS(X) \
	X(kvr_match(k, p, 1, NULL, 0, 0, &n)) \
	X(kvr_route(k, p, NULL, 1, &d)) \
	X(kvr_choose(k, p, NULL, NULL, 0, 0, 1, &d))

#define COUNT(call) + 1
enum { CALLS = 0 EVERY_CALL(COUNT), LOOKING = 0 LOOKING_CALLS(COUNT) };

static int
make_call(int which)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_policy policy = { .size = sizeof(policy) };
	struct kvr_worker facts = { .size = sizeof(facts), .weight = 1 };
	struct kvr_load load = { .size = sizeof(load) };
	struct kvr_stats all = { .size = sizeof(all) };
	struct kvr_worker_stats counted = { .size = sizeof(counted) };
	struct kvr_event_batch batch = { .size = sizeof(batch) };
	struct kvr_entry e;
	uint64_t some = 0;
	int64_t due;
	size_t n;
	int at = 0;

#define MAKE(call) \
	if (at++ == which) \
		return (call);
	EVERY_CALL(MAKE)
	return KVR_OK;
}

static atomic_int done;

static void *
call_waiting(void *call)
{
	(void)make_call(*(const int *)call);
	atomic_store(&done, 1);
	return NULL;
}

/* No call returns, reads or writes while another thread writes. */
START_TEST(waits)
{
	pthread_t thread;
	int call = _i;

	say("abcd");
	ck_assert_int_eq(region_lock(k, true), KVR_OK);
	atomic_fetch_add(&k->region->seq, 1);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_waiting, &call),
	    0);
	usleep(4000);
	ck_assert_int_eq(atomic_load(&done), 0);
	atomic_fetch_add(&k->region->seq, 1);
	region_unlock(k);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

/* On a handle that must not sleep every one of them returns. */
START_TEST(never_sleeps)
{
	pthread_t thread;

	say("abcd");
	ck_assert_int_eq(kvr_nowait_set(k, 1), KVR_OK);
	ck_assert_int_eq(pthread_barrier_init(&meeting, NULL, 2), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, entry_turn, NULL), 0);
	(void)pthread_barrier_wait(&meeting);
	ck_assert_int_eq(make_call(_i), KVR_EBUSY);
	(void)pthread_barrier_wait(&meeting);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_ne(make_call(_i), KVR_EBUSY);
	ck_assert_int_eq(kvr_nowait_set(k, 0), KVR_OK);
	ck_assert_int_eq(kvr_nowait_set(k, 3), KVR_EINVAL);
	ck_assert_int_eq(kvr_nowait_set(NULL, 0), KVR_EINVAL);
}
END_TEST

/* The lock alone delays no reader, nor do readers delay each other. */
START_TEST(looks)
{
	say("abcd");
	ck_assert_int_eq(region_lock(k, true), KVR_OK);
	(void)make_call(CALLS - LOOKING + _i);
	region_unlock(k);
	ck_assert_uint_eq(stats().read_locks, 0);
}
END_TEST

/* ------------------------------------------ the owner of the lock dies --- */

enum { BYTES = 256 << 10 };

static void *shared;

static void
shared_setup(void)
{
	struct kvr_options o = small_options();

	shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	ck_assert_int_eq(kvr_new_at(&o, shared, BYTES, &k), KVR_OK);
	people(WORKERS);
}

static void
shared_end(void)
{
	region_end();
	ck_assert_int_eq(munmap(shared, BYTES), 0);
}

/* Another process takes the lock and exits, perhaps during a change. */
static void
die_with_the_lock(bool in_a_change)
{
	struct txn c;
	int status;
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		if (kvr_attach_at(NULL, shared, BYTES, &k) != KVR_OK)
			_exit(1);
		if (in_a_change) {
			if (txn_write_begin(k, &c, 50, 0) != KVR_OK)
				_exit(1);
			memset(&k->cells[1], 0xff, 40 * CELL);
			memset(k->node_buckets, 0xff, 64);
			k->region->free_cells = 7;
		} else if (region_lock(k, true) != KVR_OK) {
			_exit(1);
		}
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

START_TEST(died_between_changes)
{
	uint64_t lease;
	uint32_t i;

	observe(0, "abcd", 1);
	lease = reserve(1, "abxy", 2);
	for (i = 0; i < 3; i++) {
		die_with_the_lock(false);
		ck_tree("ab:01!(cd:0 xy:1!)");
		ck_assert_uint_eq(stats().recoveries, 0);
	}
	finish(lease, 3);
}
END_TEST

/* The index is lost; workers and clock are not. */
START_TEST(died_in_a_change)
{
	uint64_t lease, i;

	for (i = 1; i < 4; i++) {
		observe(0, "abcd", 10);
		lease = reserve(1, "abxy", 20);
		observe(2, "mn", 20);
		ck_assert_int_eq(kvr_worker_reset(k, id[2], &id[2]), KVR_OK);
		die_with_the_lock(true);
		ck_tree("");
		ck_assert_uint_eq(stats().recoveries, i);
		ck_assert_uint_eq(stats().workers, WORKERS);
		ck_assert_uint_eq(stats().cells_free, stats().cells - 1);
		ck_assert_int_eq(stats().clock, 20);
		ck_assert_int_eq(kvr_lease_finish(k, lease, NULL, 30, 0),
		    KVR_ELEASE);
		ck_assert_uint_eq(worker_stats(1).requests, 0);
	}
}
END_TEST

/* A clock that no call can have set is forgotten. */
START_TEST(a_clock_that_cannot_be)
{
	static const int64_t odd[] = { -2, INT64_MAX };
	uint32_t i;

	for (i = 0; i < 2; i++) {
		observe(0, "abcd", 10);
		k->region->clock = odd[i];
		atomic_fetch_or(&k->region->seq, 1);
		ck_tree("");
		ck_assert_int_eq(stats().clock, -1);
	}
}
END_TEST

/* The next caller recovers: a reader, one that does not wait, or any. */
START_TEST(anybody_inherits)
{
	struct kvr *other;
	uint64_t found;
	int64_t due;

	observe(0, "abcd", 1);
	die_with_the_lock(true);
	ck_assert_uint_eq(overlap(0, 1), 0);
	die_with_the_lock(false); /* lost entries are not lost again */
	ck_assert_uint_eq(overlap(0, 1), 0);
	ck_assert_uint_eq(stats().recoveries, 1);
	observe(0, "abcd", 1);
	die_with_the_lock(true);
	ck_assert_int_eq(kvr_observe(k, p, id[1], 1, KVR_NOWAIT, NULL),
	    KVR_OK);
	ck_tree("abcd:1");
	die_with_the_lock(true);
	ck_assert_int_eq(kvr_worker_find(k, "0", 1, 0, &found), KVR_OK);
	ck_assert_uint_eq(found, id[0]);
	die_with_the_lock(true);
	ck_assert_int_eq(kvr_attach_at(NULL, shared, BYTES, &other), KVR_OK);
	ck_assert_int_eq(kvr_next_expiry(other, &due), KVR_OK);
	ck_assert_int_eq(due, INT64_MAX);
	kvr_free(other);
	ck_assert_uint_eq(stats().recoveries, 4);
}
END_TEST

/* A child of fork() has the handle, but no seat: a wiped page shows this. */
START_TEST(no_call_after_a_fork)
{
	struct kvr_options o = small_options();
	struct kvr_worker_stats of = { .size = sizeof(of) };
	struct kvr_stats s = { .size = sizeof(s) };
	struct kvr_record record = { .size = sizeof(record) };
	struct kvr_load load = { .size = sizeof(load) };
	struct kvr_event_batch batch = { .size = sizeof(batch) };
	struct kvr_event_result result = { .size = sizeof(result) };
	struct kvr_policy policy = { .size = sizeof(policy) };
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_lease_info lease;
	struct kvr_candidate c;
	struct kvr_tenant tenant;
	struct kvr_entry entry;
	uint64_t cursor = 0, found = id[0];
	int64_t due;
	size_t n;

	region_end();
	o.region_bytes = 1 << 20;
	o.journal_bytes = 64 << 10;
	o.event_blocks = 16;
	o.tenants = 4;
	region_of(&o);
	say("abcd");
	k->own->here = 0;
#define REFUSED(call) ck_assert_int_eq((call), KVR_ESTATE)
	REFUSED(kvr_match(k, p, 1, NULL, sizeof(struct kvr_overlap), 0, &n));
	REFUSED(kvr_route(k, p, NULL, 1, &d));
	REFUSED(kvr_candidates(k, p, NULL, 1, &c, sizeof(c), 1, &n));
	REFUSED(kvr_entries(k, &cursor, 1, &entry, sizeof(entry), 1, &n));
	REFUSED(kvr_stats_get(k, &s));
	REFUSED(kvr_worker_stats_get(k, id[0], &of));
	REFUSED(kvr_metrics(k, NULL, 0, &n));
	REFUSED(kvr_check(k));
	REFUSED(kvr_policy_get(k, &policy));
	REFUSED(kvr_next_expiry(k, &due));
	REFUSED(kvr_worker_next(k, &found));
	REFUSED(kvr_worker_find(k, "0", 1, 0, &found));
	REFUSED(kvr_worker_get_load(k, id[0], 0, &load));
	REFUSED(kvr_worker_reset(k, id[0], &found));
	REFUSED(kvr_owner_list(k, &cursor, &found, 1, &n));
	REFUSED(kvr_lease_list(k, &cursor, &lease, sizeof(lease), 1, &n));
	REFUSED(kvr_tenant_list(k, &cursor, &tenant, sizeof(tenant), 1, &n));
	REFUSED(kvr_events_apply(k, id[0], &batch, NULL, 0, 0, NULL, 0, NULL,
	    0, 1, 0, &result));
	REFUSED(kvr_events_lost(k, id[0], 1));
	REFUSED(kvr_journal_read(k, &cursor, 1, &record, NULL, 0));
	REFUSED(kvr_journal_beat(k, 1));
#undef REFUSED
	k->own->here = 1;
	ck_assert_uint_eq(found, id[0]);
	region_sound();
}
END_TEST

Suite *suite_txn(void);

Suite *
suite_txn(void)
{
	Suite *s = suite_create("txn");
	TCase *t = small_case(s, "call");

	tcase_add_test(t, time_never_runs_backwards);
	tcase_add_test(t, leases_at_present);
	tcase_add_test(t, reads_at_present);
	tcase_add_test(t, tables_at_present);
	tcase_add_test(t, no_clock_yet);
	tcase_add_test(t, calls_without_time);
	tcase_add_test(t, failing_writes_leave_the_clock);
	tcase_add_test(t, nowait);
	tcase_add_loop_test(t, never_sleeps, 0, CALLS);
	tcase_add_loop_test(t, waits, 0, CALLS);
	tcase_add_loop_test(t, looks, 0, LOOKING);
	tcase_add_test(t, no_call_after_a_fork);
	t = tcase_create("shared");
	tcase_add_checked_fixture(t, shared_setup, shared_end);
	tcase_add_test(t, died_between_changes);
	tcase_add_test(t, died_in_a_change);
	tcase_add_test(t, a_clock_that_cannot_be);
	tcase_add_test(t, anybody_inherits);
	suite_add_tcase(s, t);
	return s;
}
