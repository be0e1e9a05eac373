/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stop.c - a writer stands still, for instance in a paused container.
 *
 * While one process is stopped, often in the middle of a change, two others
 * make calls with KVR_NOWAIT. This process is one of them and the only one
 * that can continue the writer: if one of its calls waited, it would wait
 * forever. So each stop asserts that calls were made, and how they ended.
 * Their times are printed, and asserted only in a soak.
 */
#include "plain.h"
#include "process.h"
#include "soak.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STOPS = 8, STOP_MS = 300, STOPS_SOAK = 40, STOP_SOAK_MS = 5000 };
enum { REGION = 1 << 20, MICROSECONDS = 4096, ROUNDS = 64 };

/* A process that never waits, and its results; in shared memory. */
struct router {
	_Atomic uint64_t rounds;
	uint64_t done;         /* calls that write */
	uint64_t dropped;      /* calls that would write: KVR_EBUSY */
	uint64_t route_busy;
	uint64_t wrong;        /* anything else */
	uint64_t took[MICROSECONDS + 1];
	uint64_t most_ns;
	uint64_t lease;
	uint32_t state;
	uint64_t chance;
};

static struct board *board;
static struct router *router; /* [2]: this process, and another */
static struct kvr *k;

static uint64_t
nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void
took(struct router *r, uint64_t since)
{
	uint64_t ns = nanoseconds() - since, us = ns / 1000;

	r->took[us < MICROSECONDS ? us : MICROSECONDS]++;
	r->most_ns = ns > r->most_ns ? ns : r->most_ns;
}

/* A writing call has returned; did it take effect? */
static bool
wrote(struct router *r, int rc, uint64_t since)
{
	took(r, since);
	r->done += rc == KVR_OK;
	r->dropped += rc == KVR_EBUSY;
	r->wrong += rc != KVR_OK && rc != KVR_EBUSY && rc != KVR_EWORKER &&
	    rc != KVR_ENOWORKER;
	return rc == KVR_OK;
}

/* open, commit, first token, finish or abort: each until it takes effect. */
static void
request(struct router *r, struct kvr_prompt *p, const struct kvr_request *q)
{
	struct kvr_decision d = { .size = sizeof(d) };
	int64_t now = atomic_fetch_add(&board->clock, 1);
	uint64_t since = nanoseconds();
	int rc;

	if (r->state == 0)
		rc = kvr_lease_open(k, p, q, now, &d);
	else if (r->state == 1)
		rc = kvr_lease_commit(k, r->lease, now, KVR_NOWAIT);
	else if (r->state == 2)
		rc = kvr_lease_first_token(k, r->lease, now, KVR_NOWAIT);
	else if (r->chance % 2 == 0)
		rc = kvr_lease_finish(k, r->lease, NULL, now, KVR_NOWAIT);
	else
		rc = kvr_lease_abort(k, r->lease, now, KVR_NOWAIT);
	if (!wrote(r, rc, since))
		return;
	if (r->state == 0)
		r->lease = d.lease;
	r->state = (r->state + 1) % 4;
}

static void
one_round(struct router *r, struct kvr_prompt *p, uint64_t worker)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request q;
	uint64_t since;
	int rc;

	kvr_request_init(&q, sizeof(q));
	q.flags = KVR_NOWAIT;
	(void)plain_random(&r->chance);
	if (process_prompt(p, (uint32_t)(r->chance % PROCESS_FAMILIES),
	    process_length[0]) != KVR_OK)
		r->wrong++;
	since = nanoseconds();
	rc = kvr_route(k, p, &q, 0, &d);
	took(r, since);
	r->route_busy += rc == KVR_EBUSY;
	r->wrong += rc != KVR_OK && rc != KVR_EBUSY && rc != KVR_ENOWORKER;
	request(r, p, &q);
	since = nanoseconds();
	rc = kvr_observe(k, p, worker, atomic_fetch_add(&board->clock, 1),
	    KVR_NOWAIT, NULL);
	(void)wrote(r, rc, since);
	atomic_fetch_add(&r->rounds, 1);
}

/* The other process. */
static _Noreturn void
other_main(uint64_t worker)
{
	struct kvr_prompt *p;

	if (process_attach(board, &k) != KVR_OK ||
	    kvr_prompt_new(k, &p) != KVR_OK)
		_exit(1);
	while (atomic_load(&board->leave) == 0)
		one_round(&router[1], p, worker);
	kvr_prompt_free(p);
	kvr_free(k);
	_exit(0);
}

static uint64_t
percentile(const struct router *r, double share)
{
	uint64_t all = 0, below = 0, us;

	for (us = 0; us <= MICROSECONDS; us++)
		all += r->took[us];
	for (us = 0; us < MICROSECONDS; us++) {
		below += r->took[us];
		if ((double)below >= share * (double)all)
			break;
	}
	return us;
}

/* The writer is stopped; is it in the middle of a change? */
static bool
stop_writer(pid_t writer, bool aimed)
{
	int status;
	int inside = aimed ? process_aim(k, writer, &status)
	    : process_stop(k, writer, &status);

	ck_assert_msg(inside >= 0, "%s", board->seat[0].wrong);
	return inside == 1;
}

static void
go_on(pid_t child)
{
	ck_assert_int_eq(kill(child, SIGCONT), 0);
}

static void
leave(pid_t child)
{
	int status;

	atomic_store(&board->leave, 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Makes one stop; the other process must go on. */
static void
one_stop(pid_t writer, struct kvr_prompt *p, uint64_t worker, bool aimed,
    uint64_t ms)
{
	bool inside = stop_writer(writer, aimed);
	uint64_t done = router[0].done, dropped = router[0].dropped;
	uint64_t busy = router[0].route_busy;
	uint64_t rounds = atomic_load(&router[1].rounds);
	uint64_t until = nanoseconds() + ms * 1000000;

	do
		one_round(&router[0], p, worker);
	while (nanoseconds() < until ||
	    atomic_load(&router[1].rounds) == rounds);
	if (inside) {
		ck_assert_uint_eq(router[0].done, done);
		ck_assert_uint_gt(router[0].dropped, dropped);
		ck_assert_uint_gt(router[0].route_busy, busy);
	}
	go_on(writer);
	ck_assert(inside || !aimed);
}

START_TEST(writer_stands_still)
{
	uint64_t i, n = soak_amount(STOPS, STOPS_SOAK), worker, ms;
	struct kvr_stats s = { .size = sizeof(s) };
	struct kvr_prompt *p;
	pid_t writer, other;

	ms = soaking() ? STOP_SOAK_MS : STOP_MS;
	board = process_board(REGION, NULL, &k);
	ck_assert_ptr_nonnull(board);
	router = mmap(NULL, 2 * sizeof(*router), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(router, MAP_FAILED);
	router[0].chance = test_seed();
	router[1].chance = router[0].chance + 1;
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	ck_assert_int_eq(process_find(k, 0, &worker), KVR_OK);
	fflush(NULL);
	writer = process_start(board, 0, 1, test_seed(), true);
	other = fork();
	if (other == 0)
		other_main(worker);
	for (i = 0; i < n; i++) {
		one_stop(writer, p, worker, i % 2 == 0, ms);
		soak_progress("writer_stands_still", i, n);
		(void)usleep((useconds_t)(plain_random(&router[0].chance) %
		    3000));
	}
	leave(writer);
	leave(other);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	ck_assert_int_eq(kvr_stats_get(k, &s), KVR_OK);
	ck_assert_uint_eq(router[0].wrong + router[1].wrong, 0);
	ck_assert_uint_eq(s.recoveries, 0);
	ck_assert_uint_gt(s.busy_writes, 0);
	ck_assert_uint_eq(s.busy_writes, router[0].dropped + router[1].dropped);
	for (i = 0; i < 2; i++) {
		uint64_t us = percentile(&router[i], 0.99) + 1;

		if (soaking())
			ck_assert_uint_le(us, 1000);
		else
			printf("    beside a stopped writer: p99 of"
			    " KVR_NOWAIT below %" PRIu64 " us\n", us);
		soak_row("stopped %" PRIu64 " times for %" PRIu64 " ms: calls"
		    " of other %" PRIu64 ": p99 below %" PRIu64 " us, most %"
		    PRIu64 " us; %" PRIu64 " writes dropped", n, ms, i, us,
		    router[i].most_ns / 1000, router[i].dropped);
	}
	(void)fflush(stdout);
	kvr_prompt_free(p);
	process_board_end(board, k);
}
END_TEST

Suite *suite_stop(void);

Suite *
suite_stop(void)
{
	Suite *s = suite_create("stop");
	TCase *t = tcase_create("stop");

	tcase_add_test(t, writer_stands_still);
	suite_add_tcase(s, t);
	return s;
}
