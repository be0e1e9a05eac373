/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_threads.c - four threads, and two processes, over one region.
 *
 * Each party writes only to workers of its own, over prompts that all share,
 * so the index is one tree that all parties split, extend and merge, while
 * each party has a model with the exact content of its own workers. Time
 * stands still where parties must agree on the live entries.
 */
#include "kvroute.h"
#include "kvroute_replica.h"
#include "model.h"
#include "ops.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARTIES = 4, OWN = 2, BLOCKS = 40, LEASES = 6 };
enum { REGION = 8 << 20, NOW = 1000 };

struct party {
	struct kvr *k;
	struct kvr_prompt *p;
	struct model *m;
	struct ops_source random;
	uint64_t worker[OWN];
	uint64_t lease[LEASES];
	uint32_t number;
	uint32_t tokens[BLOCKS];
	uint64_t prefix[BLOCKS], sequence[BLOCKS];
	struct model_path path;
	pthread_t thread;
	const char *wrong;    /* first difference, or NULL */
};

static void
options(struct kvr_options *o)
{
	kvr_options_init(o, sizeof(*o));
	o->region_bytes = REGION;
	o->block_size = 1;
	o->ttl_ns = 1000000;
	o->max_workers = PARTIES * OWN;
}

static void
party_open(struct party *t, struct kvr *k, uint32_t number, uint64_t seed)
{
	struct kvr_worker facts;
	char name[2] = { (char)('a' + number), '0' };
	int i;

	memset(t, 0, sizeof(*t));
	t->k = k;
	t->number = number;
	t->m = model_new(1000000);
	ops_from_seed(&t->random, seed);
	ck_assert_int_eq(kvr_prompt_new(k, &t->p), KVR_OK);
	kvr_worker_init(&facts, sizeof(facts));
	for (i = 0; i < OWN; i++, name[1]++) {
		ck_assert_int_eq(kvr_worker_add(k, name, 2, &facts,
		    &t->worker[i]), KVR_OK);
		model_worker_add(t->m, t->worker[i]);
	}
}

static void
party_close(struct party *t)
{
	kvr_prompt_free(t->p);
	model_free(t->m);
}

static bool
wrong(struct party *t, const char *what)
{
	if (t->wrong == NULL)
		t->wrong = what;
	return false;
}

/* Two symbols, mostly the first: long common prefixes, then forks. */
static bool
draw_prompt(struct party *t)
{
	uint64_t prefix = 0, local;
	uint32_t i, n = 1 + ops_pick(&t->random, BLOCKS);

	for (i = 0; i < n; i++)
		t->tokens[i] = ops_pick(&t->random, 12) == 0;
	if (kvr_prompt_set_tokens(t->p, NULL, t->tokens, n) != KVR_OK)
		return wrong(t, "kvr_prompt_set_tokens");
	for (i = 0; i < n; i++) {
		prefix = model_prefix(prefix, t->tokens[i]);
		t->prefix[i] = prefix;
		if (kvr_prompt_hash(t->p, i, &local, &t->sequence[i]) !=
		    KVR_OK)
			return wrong(t, "kvr_prompt_hash");
	}
	t->path = (struct model_path){ t->prefix, t->sequence, n, 0 };
	return true;
}

/* Own workers exactly; others no deeper than the prompt. */
static bool
match(struct party *t, int64_t now)
{
	struct kvr_overlap v[PARTIES * OWN];
	uint32_t want[OWN], active[OWN];
	size_t n, i, j;

	if (kvr_match(t->k, t->p, now, v, sizeof(v[0]), PARTIES * OWN, &n) !=
	    KVR_OK || n > PARTIES * OWN)
		return wrong(t, "kvr_match");
	for (j = 0; j < OWN; j++)
		want[j] = model_overlap(t->m, t->worker[j], &t->path, now,
		    &active[j]);
	for (i = 0; i < n; i++) {
		if (v[i].blocks == 0 || v[i].blocks > t->path.blocks ||
		    v[i].active_blocks > v[i].blocks)
			return wrong(t, "an absurd overlap");
		for (j = 0; j < OWN; j++) {
			if (v[i].worker != t->worker[j])
				continue;
			if (v[i].blocks != want[j] ||
			    v[i].active_blocks != active[j])
				return wrong(t, "an overlap of its own");
			want[j] = 0;
		}
	}
	for (j = 0; j < OWN; j++)
		if (want[j] != 0)
			return wrong(t, "an own worker was not found");
	return true;
}

static bool
reserve(struct party *t, uint64_t *lease, uint64_t worker)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct model_booking b = { 0 };

	if (kvr_lease_open_on(t->k, t->p, NULL, worker, NOW, &d) != KVR_OK ||
	    d.recorded_blocks != t->path.blocks)
		return wrong(t, "kvr_lease_open_on");
	b.lease = *lease = d.lease;
	b.recorded = d.recorded_blocks;
	model_reserve(t->m, worker, &t->path, &b, NOW);
	return true;
}

static bool
end_lease(struct party *t, uint64_t *lease)
{
	bool finish = ops_pick(&t->random, 2) == 0;
	int rc = finish ? kvr_lease_finish(t->k, *lease, NULL, NOW, 0)
	    : kvr_lease_abort(t->k, *lease, NOW, 0);

	if (rc != KVR_OK)
		return wrong(t, "a lease could not be ended");
	if (finish)
		model_finish(t->m, *lease, NOW);
	else
		model_abort(t->m, *lease);
	*lease = 0;
	return true;
}

static bool
step(struct party *t)
{
	uint64_t worker = t->worker[ops_pick(&t->random, OWN)];
	uint64_t *lease = &t->lease[ops_pick(&t->random, LEASES)];
	struct kvr_decision d = { .size = sizeof(d) };

	if (!draw_prompt(t))
		return false;
	switch (ops_pick(&t->random, 8)) {
	case 0: case 1:
		if (kvr_observe(t->k, t->p, worker, NOW, 0, NULL) != KVR_OK)
			return wrong(t, "kvr_observe");
		model_observe(t->m, worker, &t->path, BLOCKS, NOW);
		return true;
	case 2:
		if (kvr_route(t->k, t->p, NULL, NOW, &d) != KVR_OK)
			return wrong(t, "kvr_route");
		return true;
	case 3:
		if (kvr_expire(t->k, NOW, 3, NULL) != KVR_OK)
			return wrong(t, "kvr_expire");
		return true;
	case 4:
		if (*lease == 0)
			return reserve(t, lease, worker);
		return end_lease(t, lease);
	case 5:
		if (*lease == 0)
			return true;
		if (kvr_lease_commit(t->k, *lease, NOW, 0) != KVR_OK)
			return wrong(t, "kvr_lease_commit");
		model_commit(t->m, *lease, NOW);
		return true;
	default:
		return match(t, NOW);
	}
}

static bool
run(struct party *t, uint64_t steps)
{
	uint64_t i;

	for (i = 0; i < steps && t->wrong == NULL; i++)
		if (!step(t))
			break;
	for (i = 0; i < LEASES && t->wrong == NULL; i++)
		if (t->lease[i] != 0)
			(void)end_lease(t, &t->lease[i]);
	return t->wrong == NULL;
}

static void *
thread_main(void *argument)
{
	(void)run(argument, test_amount(20000));
	return NULL;
}

/* The final content is the sum of the parties' models. */
static void
compare_ends(struct party *t, size_t n)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	uint64_t held = 0;
	struct kvr_stats all = { .size = sizeof(all) };
	size_t i, j;

	for (i = 0; i < n; i++) {
		ck_assert_msg(t[i].wrong == NULL, "party %zu: %s", i,
		    t[i].wrong);
		held += model_held(t[i].m, 0, NOW);
		for (j = 0; j < OWN; j++) {
			ck_assert_int_eq(kvr_worker_stats_get(t[0].k,
			    t[i].worker[j], &s), KVR_OK);
			ck_assert_uint_eq(s.held_blocks, model_held(t[i].m,
			    t[i].worker[j], NOW));
			ck_assert_uint_eq(s.requests, 0);
			ck_assert_uint_eq(s.active_blocks, 0);
		}
	}
	ck_assert_int_eq(kvr_stats_get(t[0].k, &all), KVR_OK);
	ck_assert_uint_eq(all.held_blocks, held);
	ck_assert_uint_eq(all.leases, 0);
	ck_assert_uint_gt(all.splits, 0);
	ck_assert_int_eq(kvr_check(t[0].k), KVR_OK);
}

START_TEST(four_threads)
{
	static struct party t[PARTIES];
	struct kvr_options o;
	uint64_t seed = test_seed();
	struct kvr *k;
	uint32_t i;

	options(&o);
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	for (i = 0; i < PARTIES; i++)
		party_open(&t[i], k, i, seed + i);
	for (i = 0; i < PARTIES; i++)
		ck_assert_int_eq(pthread_create(&t[i].thread, NULL,
		    thread_main, &t[i]), 0);
	for (i = 0; i < PARTIES; i++)
		ck_assert_int_eq(pthread_join(t[i].thread, NULL), 0);
	compare_ends(t, PARTIES);
	for (i = 0; i < PARTIES; i++)
		party_close(&t[i]);
	kvr_free(k);
}
END_TEST

/* ------------------------------------------- workers that come and go --- */

static atomic_int stop;

/* Adds, resets and removes a worker; its records become void. */
static void *
churn(void *argument)
{
	struct party *t = argument;
	struct kvr_worker facts;
	uint64_t id, fresh;
	int i;

	kvr_worker_init(&facts, sizeof(facts));
	for (i = 0; i < (int)test_amount(3000); i++) {
		if (!draw_prompt(t))
			break;
		if (kvr_worker_reset(t->k, t->worker[0], &fresh) != KVR_OK ||
		    kvr_observe(t->k, t->p, fresh, NOW, 0, NULL) != KVR_OK)
			wrong(t, "kvr_worker_reset");
		model_worker_void(t->m, t->worker[0]);
		t->worker[0] = fresh;
		model_worker_add(t->m, fresh);
		model_observe(t->m, fresh, &t->path, BLOCKS, NOW);
		if (!match(t, NOW))
			break;
		if (kvr_worker_remove(t->k, t->worker[1]) != KVR_OK ||
		    kvr_worker_add(t->k, "churn", 5, &facts, &id) != KVR_OK)
			wrong(t, "kvr_worker_remove");
		model_worker_void(t->m, t->worker[1]);
		t->worker[1] = id;
		model_worker_add(t->m, id);
	}
	atomic_store(&stop, 1);
	return NULL;
}

/* Reads and chooses while workers change. */
static void *
look(void *argument)
{
	struct kvr_candidate c[PARTIES * OWN];
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_stats s = { .size = sizeof(s) };
	struct party *t = argument;
	struct kvr_entry e[16];
	uint64_t cursor, id;
	size_t n;

	while (atomic_load(&stop) == 0 && t->wrong == NULL) {
		if (!step(t))
			break;
		cursor = id = 0;
		if (kvr_candidates(t->k, t->p, NULL, NOW, c, sizeof(c[0]),
		    PARTIES * OWN, &n) != KVR_OK ||
		    kvr_route(t->k, t->p, NULL, NOW, &d) != KVR_OK ||
		    kvr_entries(t->k, &cursor, NOW, e, sizeof(e[0]), 16,
		    &n) != KVR_OK ||
		    kvr_worker_next(t->k, &id) != KVR_OK ||
		    kvr_stats_get(t->k, &s) != KVR_OK)
			wrong(t, "a reader failed");
	}
	(void)run(t, 0);
	return NULL;
}

START_TEST(workers_come_and_go)
{
	static struct party t[2];
	struct kvr_options o;
	struct kvr *k;
	int i;

	options(&o);
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	atomic_store(&stop, 0);
	for (i = 0; i < 2; i++)
		party_open(&t[i], k, (uint32_t)i, test_seed() + (uint64_t)i);
	ck_assert_int_eq(pthread_create(&t[0].thread, NULL, churn, &t[0]), 0);
	ck_assert_int_eq(pthread_create(&t[1].thread, NULL, look, &t[1]), 0);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(t[i].thread, NULL), 0);
	for (i = 0; i < 2; i++)
		ck_assert_msg(t[i].wrong == NULL, "%s", t[i].wrong);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	for (i = 0; i < 2; i++)
		party_close(&t[i]);
	kvr_free(k);
}
END_TEST

/* ----------------------------------------------------------- processes --- */

static int shared_file = -1;

/* The same memory at another address each time. */
static void *
map_shared(void)
{
	char path[] = "/tmp/kvroute-test-XXXXXX";
	void *at;

	if (shared_file < 0) {
		shared_file = mkstemp(path);
		ck_assert_int_ge(shared_file, 0);
		ck_assert_int_eq(unlink(path), 0);
		ck_assert_int_eq(ftruncate(shared_file, REGION), 0);
	}
	at = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED,
	    shared_file, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	return at;
}

/* Runs in a child: Check is not used, the exit status is the result. */
static int
child_main(uint32_t number, uint64_t seed, void *not_here)
{
	static struct party t;
	struct kvr_options o;
	struct kvr *k;
	void *at = map_shared();
	uint32_t i;

	options(&o);
	if (at == not_here)
		return 2;
	if (kvr_attach_at(&o, at, REGION, &k) != KVR_OK)
		return 3;
	party_open(&t, k, number, seed);
	if (!run(&t, test_amount(20000)))
		return 4;
	for (i = 0; i < OWN; i++) {
		struct kvr_worker_stats s = { .size = sizeof(s) };

		if (kvr_worker_stats_get(k, t.worker[i], &s) != KVR_OK ||
		    s.held_blocks != model_held(t.m, t.worker[i], NOW))
			return 5;
	}
	party_close(&t);
	kvr_free(k);
	return 0;
}

static void
expect_exit(pid_t child, int want)
{
	int status;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == want,
	    "a child ended with status %x", (unsigned)status);
}

START_TEST(two_processes)
{
	uint64_t seed = test_seed(), i, id = 0;
	struct kvr_stats s = { .size = sizeof(s) };
	struct kvr_options o;
	void *at = map_shared();
	struct kvr *k;
	pid_t child[2];

	options(&o);
	ck_assert_int_eq(kvr_new_at(&o, at, REGION, &k), KVR_OK);
	fflush(NULL);
	for (i = 0; i < 2; i++) {
		child[i] = fork();
		ck_assert_int_ge(child[i], 0);
		if (child[i] == 0)
			_exit(child_main((uint32_t)i, seed + i, at));
	}
	for (i = 0; i < 2; i++)
		expect_exit(child[i], 0);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	ck_assert_int_eq(kvr_stats_get(k, &s), KVR_OK);
	ck_assert_uint_gt(s.held_blocks, 0);
	ck_assert_uint_eq(s.workers, 2 * OWN);
	ck_assert_uint_eq(s.leases, 0);
	for (i = 0; i < 2 * OWN; i++) {
		ck_assert_int_eq(kvr_worker_next(k, &id), KVR_OK);
		ck_assert_uint_ne(id, 0);
	}
	kvr_free(k);
	ck_assert_int_eq(munmap(at, REGION), 0);
	at = map_shared();
	ck_assert_int_eq(kvr_attach_at(&o, at, REGION, &k), KVR_OK);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	kvr_free(k);
}
END_TEST

/* A process died with leases open: another one reaps them. */
START_TEST(dead_owner_is_reaped)
{
	struct kvr_stats s = { .size = sizeof(s) };
	struct kvr_request r;
	struct kvr_decision d = { .size = sizeof(d) };
	void *memory = map_shared();
	uint64_t at = 0;
	struct party t;
	struct kvr_options o;
	struct kvr *k;
	uint32_t ended, i;
	pid_t child;

	options(&o);
	ck_assert_int_eq(kvr_new_at(&o, memory, REGION, &k), KVR_OK);
	party_open(&t, k, 0, 1);
	ck_assert(draw_prompt(&t));
	kvr_request_init(&r, sizeof(r));
	fflush(NULL);
	child = fork();
	if (child == 0) {
		if (kvr_attach_at(&o, memory, REGION, &k) != KVR_OK)
			_exit(1);
		r.owner = 77;
		for (i = 0; i < 5; i++)
			if (kvr_lease_open(k, t.p, &r, NOW, &d) != KVR_OK)
				_exit(1);
		_exit(kvr_lease_commit(k, d.lease, NOW, 0) == KVR_OK ? 0 : 1);
	}
	expect_exit(child, 0);
	r.owner = 78;
	ck_assert_int_eq(kvr_lease_open(k, t.p, &r, NOW, &d), KVR_OK);
	ck_assert_int_eq(kvr_stats_get(k, &s), KVR_OK);
	ck_assert_uint_eq(s.leases, 6);
	ck_assert_int_eq(kvr_owner_reap(k, 77, NOW, &at, &ended),
	    KVR_OK);
	ck_assert_uint_eq(at, 0);
	ck_assert_uint_eq(ended, 5);
	ck_assert_int_eq(kvr_stats_get(k, &s), KVR_OK);
	ck_assert_uint_eq(s.leases, 1);
	ck_assert_uint_eq(s.lease_reaps, 5);
	ck_assert_int_eq(kvr_lease_finish(k, d.lease, NULL, NOW, 0), KVR_OK);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	party_close(&t);
	kvr_free(k);
}
END_TEST

/*
 * A process is killed at any point, perhaps holding the lock in the middle of
 * a change. The next call must neither hang nor find a broken index.
 */
START_TEST(killed_process)
{
	struct kvr_options o;
	void *at = map_shared();
	struct party t;
	struct kvr *k;
	int i, rounds = (int)test_amount(100);
	pid_t child;

	options(&o);
	ck_assert_int_eq(kvr_new_at(&o, at, REGION, &k), KVR_OK);
	party_open(&t, k, 0, test_seed());
	fflush(NULL);
	for (i = 0; i < rounds; i++) {
		child = fork();
		ck_assert_int_ge(child, 0);
		if (child == 0)
			_exit(kvr_attach_at(&o, at, REGION, &t.k) == KVR_OK &&
			    run(&t, 10000000) ? 0 : 1);
		usleep((useconds_t)(500 + i * 37));
		ck_assert_int_eq(kill(child, SIGKILL), 0);
		ck_assert_int_eq(waitpid(child, NULL, 0), child);
		ck_assert_int_eq(kvr_check(k), KVR_OK);
		ck_assert(draw_prompt(&t));
		ck_assert_int_eq(kvr_observe(k, t.p, t.worker[0], NOW, 0,
		    NULL), KVR_OK);
		ck_assert_int_eq(kvr_check(k), KVR_OK);
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
	}
	party_close(&t);
	kvr_free(k);
}
END_TEST

/* With KVR_NOWAIT no call waits for a lock that another holds. */
START_TEST(nowait_while_others_work)
{
	static struct party t[2];
	uint64_t busy = 0, done = 0;
	struct kvr_options o;
	struct kvr *k;
	int i, rc;

	options(&o);
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	for (i = 0; i < 2; i++)
		party_open(&t[i], k, (uint32_t)i, (uint64_t)i);
	ck_assert_int_eq(pthread_create(&t[1].thread, NULL, thread_main,
	    &t[1]), 0);
	for (i = 0; i < 5000; i++) {
		ck_assert(draw_prompt(&t[0]));
		rc = kvr_observe(k, t[0].p, t[0].worker[0], NOW, KVR_NOWAIT,
		    NULL);
		ck_assert(rc == KVR_OK || rc == KVR_EBUSY);
		busy += rc == KVR_EBUSY;
		done += rc == KVR_OK;
		if (rc == KVR_OK)
			model_observe(t[0].m, t[0].worker[0], &t[0].path,
			    BLOCKS, NOW);
		ck_assert_msg(match(&t[0], NOW), "%s", t[0].wrong);
	}
	ck_assert_int_eq(pthread_join(t[1].thread, NULL), 0);
	ck_assert_uint_gt(done, 0);
	ck_assert_uint_eq(done + busy, 5000);
	compare_ends(t, 2);
	for (i = 0; i < 2; i++)
		party_close(&t[i]);
	kvr_free(k);
}
END_TEST

Suite *suite_threads(void);

Suite *
suite_threads(void)
{
	Suite *s = suite_create("threads");
	TCase *t = tcase_create("threads");

	tcase_add_test(t, four_threads);
	tcase_add_test(t, workers_come_and_go);
	tcase_add_test(t, two_processes);
	tcase_add_test(t, dead_owner_is_reaped);
	tcase_add_test(t, killed_process);
	tcase_add_test(t, nowait_while_others_work);
	suite_add_tcase(s, t);
	return s;
}
