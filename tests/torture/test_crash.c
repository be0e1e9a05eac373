/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_crash.c - a writer dies at any instruction.
 *
 * A child makes one call that changes workers, or a session, one machine
 * instruction at a time. Whenever memory has changed, and the region is marked
 * dirty, a copy of it is taken: the next process would find this if the child
 * were dead by now. In each such copy the workers must be those from before
 * the call or those from after it, and all else sound. A session may be lost,
 * but goes nowhere else.
 *
 *   child   . . . store . . store . . . . store . . .  one step at a time
 *                   |         |             |
 *   copies      recovered recovered     recovered      before or after?
 */
#include "inner.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = (41 << 10) + KVR_JOURNAL_MIN, STEPS_MAX = 1000000, NAMES = 6 };
enum { MOVES = 7, STAYS = 8 }; /* digests of sessions */

static void *shared, *last, *copy;
static uint32_t sessions_met; /* a bit for each state of MOVES that was found */

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.max_workers = NAMES;
	o.affinity_entries = BINDINGS;
	o.journal_bytes = KVR_JOURNAL_MIN;
	shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	last = malloc(BYTES);
	copy = aligned_alloc(CELL, BYTES);
	ck_assert(last != NULL && copy != NULL);
	ck_assert_int_eq(kvr_new_at(&o, shared, BYTES, &k), KVR_OK);
	people(3);
	observe(0, "abcd", 1);
	observe(1, "abxy", 2);
	(void)reserve(2, "mn", 3);
	/* a retired slot, and a free one */
	ck_assert_int_eq(kvr_worker_reset(k, id[2], &id[2]), KVR_OK);
	ck_assert_int_eq(kvr_worker_reset(k, id[1], &id[1]), KVR_OK);
	(void)expire(3, 100);
	ck_assert_int_eq(kvr_affinity_bind(k, MOVES, id[1], 0, 3, 0), KVR_OK);
	ck_assert_int_eq(kvr_affinity_bind(k, STAYS, id[2], 0, 3, 0), KVR_OK);
	sessions_met = 0;
}

static void
teardown(void)
{
	region_end();
	free(last);
	free(copy);
	ck_assert_int_eq(munmap(shared, BYTES), 0);
}

/* --------------------------------------------------------------- state --- */

/* Each name's id, or 0; and the fact that a test changes. */
struct fleet {
	uint64_t id[NAMES];
	uint64_t capacity[NAMES];
	double weight[NAMES];
};

static struct fleet before, after; /* the call that is not finished */

static struct fleet
fleet_of(const struct kvr *of)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	struct fleet f;
	char name;
	int i;

	memset(&f, 0, sizeof(f));
	for (i = 0; i < NAMES; i++) {
		name = (char)('0' + i);
		if (kvr_worker_find(of, &name, 1, 0, &f.id[i]) != KVR_OK)
			continue;
		must(kvr_worker_get(of, f.id[i], &facts) == KVR_OK);
		f.capacity[i] = facts.capacity_tokens;
		f.weight[i] = facts.weight;
	}
	return f;
}

static bool
same(const struct fleet *a, const struct fleet *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* A worker added now gets an id that was never given out. */
static void
ck_fresh_ids(struct kvr *of)
{
	uint64_t added;
	char name = 'a';
	int i;

	for (; kvr_worker_add(of, &name, 1, NULL, &added) == KVR_OK; name++)
		for (i = 0; i < NAMES; i++)
			must(added != before.id[i]);
	must(name > 'a');
	must(kvr_check(of) == KVR_OK);
}

/* --------------------------------------------------------------- dying --- */

static void
ck_sessions(const struct kvr *of)
{
	uint64_t worker = 0;
	int error = kvr_affinity_find(of, MOVES, 3, &worker);

	must(error == KVR_OK || error == KVR_EUNBOUND);
	must(error != KVR_OK || worker == id[1] || worker == id[2]);
	sessions_met |= error != KVR_OK ? 1 : worker == id[1] ? 2 : 4;
	must(kvr_affinity_find(of, STAYS, 3, &worker) == KVR_OK &&
	    worker == id[2]);
}

/* Returns the fleet that the next process finds after a death at this point. */
static struct fleet
mended(void)
{
	struct region *r = copy;
	struct fleet f;
	struct kvr *next;

	memcpy(copy, shared, BYTES);
	region_lock_reset(r);
	must(kvr_attach_at(NULL, copy, BYTES, &next) == KVR_OK);
	region_empty(next); /* as does recovery of the lock */
	must(kvr_check(next) == KVR_OK);
	must((atomic_load(&r->seq) & 1) == 0);
	f = fleet_of(next);
	ck_sessions(next);
	ck_fresh_ids(next);
	kvr_free(next);
	return f;
}

enum { CHANGES_MAX = 16 };

/* The fleets found after one death and the next, without repetitions. */
static struct fleet found[CHANGES_MAX];
static uint32_t n_found;

static void
inspect_workers(void)
{
	const struct region *r = shared;
	struct fleet f;

	if ((atomic_load(&r->seq) & 1) == 0 ||
	    memcmp(shared, last, BYTES) == 0)
		return;
	memcpy(last, shared, BYTES);
	f = mended();
	if (n_found > 0 && same(&f, &found[n_found - 1]))
		return;
	must(n_found < CHANGES_MAX);
	found[n_found++] = f;
}

static void (*inspect)(void) = inspect_workers;

/* The child makes the call; false where single steps are not possible. */
static bool
step_through(void (*call)(void))
{
	pid_t child = fork();
	uint32_t steps;
	int status;

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(77);
		if (kvr_attach_at(NULL, shared, BYTES, &k) != KVR_OK)
			_exit(77);
		(void)raise(SIGSTOP);
		call();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	for (steps = 0; WIFSTOPPED(status) && steps < STEPS_MAX; steps++) {
		inspect();
		ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL),
		    0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
	}
	if (WIFSTOPPED(status)) { /* a locked instruction that never succeeds */
		(void)kill(child, SIGKILL);
		(void)waitpid(child, &status, 0);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void
add(void)
{
	uint64_t added;

	(void)kvr_worker_add(k, "5", 1, NULL, &added);
}

static void
drop(void)
{
	(void)kvr_worker_remove(k, id[0]);
}

static void
reset(void)
{
	(void)kvr_worker_reset(k, id[0], &id[0]);
}

static int
tell(uint64_t seq, uint32_t kind)
{
	struct kvr_event_batch b = { .size = sizeof(b), .seq = seq };
	struct kvr_event_result r = { .size = sizeof(r) };
	struct kvr_event e;

	(void)kvr_event_init(&e, sizeof(e));
	e.kind = kind;
	return kvr_events_apply(k, id[0], &b, &e, sizeof(e), 1, NULL, 0, NULL,
	    0, 3, 0, &r);
}

static void
restart(void)
{
	(void)tell(1, KVR_EVENT_RESTARTED);
}

static const struct {
	const char *name;
	void (*call)(void);
} calls[] = { { "add", add }, { "remove", drop }, { "reset", reset },
	{ "restart", restart } };
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

START_TEST(died_anywhere)
{
	uint32_t i;

	if (test_amount(100) < 100)
		test_skip("step by step is too slow under a checker");
	ck_assert_int_eq(tell(0, KVR_EVENT_STORED), KVR_OK);
	before = fleet_of(k);
	n_found = 0;
	memset(last, 0, BYTES);
	if (!step_through(calls[_i].call))
		test_skip("no process can be stepped through here");
	after = fleet_of(k);
	ck_assert(!same(&before, &after));
	for (i = 0; i < n_found; i++)
		ck_assert_msg(same(&found[i], i == 0 ? &before : &after),
		    "%s: neither as before nor as after", calls[_i].name);
	ck_assert_uint_gt(n_found, 0);
}
END_TEST

static void
move(void)
{
	(void)kvr_affinity_bind(k, MOVES, id[2], 0, 3, 0);
}

START_TEST(died_in_a_binding)
{
	uint64_t worker;

	if (test_amount(100) < 100)
		test_skip("step by step is too slow under a checker");
	n_found = 0;
	memset(last, 0, BYTES);
	if (!step_through(move))
		test_skip("no process can be stepped through here");
	ck_assert_uint_eq(n_found, 1); /* no worker changed */
	ck_assert_uint_eq(sessions_met, 7);
	ck_assert_int_eq(kvr_affinity_find(k, MOVES, 3, &worker), KVR_OK);
	ck_assert_uint_eq(worker, id[2]);
}
END_TEST

/* -------------------------------------------------------------- journal --- */

static uint64_t record_at;
/* Steps at which there was no record, a part of one, all of it. */
static uint32_t none_yet, in_part, whole;

/* Reads while the writer is dead, and 100 ms later. */
static void
inspect_record(void)
{
	struct kvr_record r = { .size = sizeof(r) };
	uint64_t hashes[64], position = record_at;
	int error = kvr_journal_read(k, &position, 3, &r, hashes, 64);

	if (error == KVR_OK) {
		whole++;
		must(r.kind == KVR_RECORD_OPEN && r.at == 3 &&
		    r.worker == id[0] && r.hashes == p->blocks &&
		    r.units == p->units && r.parent == p->root);
		must(memcmp(hashes, p->sequence,
		    p->blocks * sizeof(*hashes)) == 0);
		return;
	}
	must(error == KVR_EAGAIN && position == record_at);
	error = kvr_journal_read(k, &position, 100000003, &r, hashes, 64);
	must(error == KVR_EAGAIN || position > record_at);
	none_yet += error == KVR_EAGAIN;
	in_part += error == KVR_EOVERRUN;
}

static void
open_one(void)
{
	(void)reserved(0, 3);
}

/* Nothing torn is shown, and only a part of a record is skipped. */
START_TEST(died_in_a_record)
{
	if (test_amount(100) < 100)
		test_skip("step by step is too slow under a checker");
	say_long(50, 50, 1);
	record_at = stats().journal_written + CELL;
	none_yet = in_part = whole = 0;
	inspect = inspect_record;
	if (!step_through(open_one))
		test_skip("no process can be stepped through here");
	ck_assert(none_yet > 100 && in_part > 50 && whole > 0);
}
END_TEST

Suite *suite_crash(void);

Suite *
suite_crash(void)
{
	Suite *s = suite_create("crash");
	TCase *t = tcase_create("crash");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, died_anywhere, 0, CALLS);
	tcase_add_test(t, died_in_a_binding);
	tcase_add_test(t, died_in_a_record);
	suite_add_tcase(s, t);
	return s;
}
