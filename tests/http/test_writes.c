/* SPDX-License-Identifier: BSD-2-Clause */
/* test_writes.c - writes to a region that is locked are done later. */
#include "busy.h"
#include "life_bed.h"

#include <pthread.h>

#include "alloc.h"

enum { ALWAYS = 1000000, HINTS = 512, RECORDS = 64 };

static struct life b;

static struct write_due
binding(uint64_t digest, uint64_t worker)
{
	return (struct write_due){ .kind = WRITE_BIND, .id = worker,
	    .digest = digest, .ttl = LIFE_NOW };
}

static void
setup(void)
{
	life_begin(&b);
}

static void
teardown(void)
{
	(void)busy_end();
	alloc_reset();
	life_end(&b);
}

/* The worker that a digest is bound to; 0: none. */
static uint64_t
bound(uint64_t digest)
{
	uint64_t worker = 0;

	return kvr_affinity_find(b.k, digest, LIFE_NOW, &worker) == KVR_OK ?
	    worker : 0;
}

/* A lease of a prompt of this letter ends with it as its extension. */
static struct write_due
finish(char letter)
{
	struct kvr_decision d;
	struct kvr_prompt *p = life_prompt(&b, letter);
	struct write_due one = { .kind = WRITE_FINISH, .prompt = p };

	one.id = life_lease(&b, p, &d);
	one.report.size = sizeof(one.report);
	return one;
}

START_TEST(at_once_if_it_can_be)
{
	struct write_due one = finish('x');

	ck_assert_int_eq(writes_do(&b.writes, &one, LIFE_NOW), KVR_OK);
	ck_assert_uint_eq(life_leases(&b), 0);
	ck_assert_uint_eq(life_overlap(&b, 'x', 0), LIFE_BLOCKS);
	ck_assert_uint_eq(b.shared.counts[COUNT_DELAYED], 0);
	ck_assert(writes_run(&b.writes, LIFE_NOW));
	/* The prompt was given back. */
	ck_assert_uint_eq(b.spares.prompts.n, 1);
}
END_TEST

START_TEST(later_if_the_region_is_locked)
{
	struct write_due one = finish('x');

	busy_begin(ALWAYS);
	ck_assert_int_eq(writes_do(&b.writes, &one, LIFE_NOW), KVR_EBUSY);
	ck_assert(!writes_run(&b.writes, LIFE_NOW));
	(void)busy_end();
	ck_assert_uint_eq(life_leases(&b), 1);
	ck_assert(writes_run(&b.writes, LIFE_NOW));
	ck_assert_uint_eq(life_leases(&b), 0);
	ck_assert_uint_eq(b.shared.counts[COUNT_DELAYED], 1);
	ck_assert_uint_eq(b.shared.counts[COUNT_LOST], 0);
	ck_assert_uint_eq(b.spares.prompts.n, 1);
}
END_TEST

/* The lock is lost between the extension and the end. */
START_TEST(between_its_two_steps)
{
	struct write_due one = finish('x');
	unsigned each;

	ck_assert_int_eq(kvr_lease_commit(b.k, one.id, LIFE_NOW, KVR_NOWAIT),
	    KVR_OK);
	for (each = 1; each < 8; each++) {
		busy_begin(each);
		(void)writes_do(&b.writes, &one, LIFE_NOW);
		(void)busy_end();
		ck_assert(writes_run(&b.writes, LIFE_NOW));
		ck_assert_uint_eq(life_leases(&b), 0);
		one = finish('x');
	}
	ck_assert_int_eq(writes_do(&b.writes, &one, LIFE_NOW), KVR_OK);
}
END_TEST

START_TEST(each_kind_is_done_in_order)
{
	struct write_due bind = binding(7, b.worker[0]), again = binding(7,
	    b.worker[1]);
	struct write_due record = { .kind = WRITE_RECORD, .name = "b",
	    .name_len = 1, .prompt = life_prompt(&b, 'y') };
	struct write_due drop = finish('z');
	struct write_due reset = { .kind = WRITE_RESET, .id = b.worker[0] };
	const uint64_t epoch = b.shared.epoch;

	spare_prompt_back(&b.spares, drop.prompt);
	drop.prompt = NULL;
	drop.kind = WRITE_ABORT;
	busy_begin(ALWAYS);
	ck_assert_int_eq(writes_do(&b.writes, &bind, LIFE_NOW), KVR_EBUSY);
	ck_assert_int_eq(writes_do(&b.writes, &record, LIFE_NOW), KVR_EBUSY);
	ck_assert_int_eq(writes_do(&b.writes, &drop, LIFE_NOW), KVR_EBUSY);
	ck_assert_int_eq(writes_do(&b.writes, &reset, LIFE_NOW), KVR_EBUSY);
	/* One that waits to be bound is no longer unbound. */
	ck_assert(!writes_unbound(&b.writes, 7, LIFE_NOW));
	(void)busy_end();
	/* The later binding does those before it, and counts. */
	ck_assert_int_eq(writes_do(&b.writes, &again, LIFE_NOW), KVR_OK);
	ck_assert_uint_eq(bound(7), b.worker[1]);
	ck_assert_uint_eq(life_leases(&b), 0);
	ck_assert_uint_eq(life_overlap(&b, 'y', 1), LIFE_BLOCKS);
	ck_assert_uint_eq(b.shared.epoch, epoch + 1);
	ck_assert(writes_unbound(&b.writes, 8, LIFE_NOW));
	ck_assert(!writes_unbound(&b.writes, 7, LIFE_NOW));
}
END_TEST

START_TEST(a_binding_stays_behind_those_that_wait)
{
	struct write_due first = binding(7, b.worker[0]), later = binding(7,
	    b.worker[1]);

	busy_begin(ALWAYS);
	ck_assert_int_eq(writes_do(&b.writes, &first, LIFE_NOW), KVR_EBUSY);
	(void)busy_end();
	/* The run before it is refused, and its own try would not be. */
	busy_begin(1);
	(void)writes_do(&b.writes, &later, LIFE_NOW);
	(void)busy_end();
	ck_assert(writes_run(&b.writes, LIFE_NOW));
	ck_assert_uint_eq(bound(7), b.worker[1]);
}
END_TEST

START_TEST(few_hints_are_kept_and_all_ends)
{
	struct write_due bind = binding(7, b.worker[0]), end = finish('x');
	struct write_due record = { .kind = WRITE_RECORD, .id = b.worker[0] };
	unsigned i;

	busy_begin(ALWAYS);
	for (i = 0; i < RECORDS + 9; i++) {
		record.prompt = life_prompt(&b, 'y');
		(void)writes_do(&b.writes, &record, LIFE_NOW);
	}
	ck_assert_uint_eq(b.shared.counts[COUNT_DELAYED], RECORDS);
	for (i = 0; i < HINTS; i++)
		(void)writes_do(&b.writes, &bind, LIFE_NOW);
	ck_assert_uint_eq(b.shared.counts[COUNT_DELAYED], HINTS);
	ck_assert_int_eq(writes_do(&b.writes, &end, LIFE_NOW), KVR_EBUSY);
	ck_assert_uint_eq(b.shared.counts[COUNT_DELAYED], HINTS + 1);
	ck_assert_uint_eq(b.shared.counts[COUNT_LOST], 0);
	(void)busy_end();
	ck_assert(writes_run(&b.writes, LIFE_NOW));
	ck_assert_uint_eq(life_leases(&b), 0);
}
END_TEST

START_TEST(without_memory_an_end_is_lost_and_counted)
{
	struct write_due end = finish('x'), bind = binding(7, b.worker[0]);

	busy_begin(ALWAYS);
	alloc_fail_from(1);
	ck_assert_int_eq(writes_do(&b.writes, &end, LIFE_NOW), KVR_EBUSY);
	ck_assert_int_eq(writes_do(&b.writes, &bind, LIFE_NOW), KVR_EBUSY);
	alloc_reset();
	(void)busy_end();
	ck_assert(writes_run(&b.writes, LIFE_NOW));
	ck_assert_uint_eq(b.shared.counts[COUNT_LOST], 1);
	ck_assert_uint_eq(b.shared.counts[COUNT_DELAYED], 0);
	ck_assert_uint_eq(bound(7), 0);
	/* Its age limit is left. */
	ck_assert_uint_eq(life_leases(&b), 1);
}
END_TEST

START_TEST(an_end_frees_those_that_wait)
{
	struct write_due one = finish('x');

	busy_begin(ALWAYS);
	ck_assert_int_eq(writes_do(&b.writes, &one, LIFE_NOW), KVR_EBUSY);
	(void)busy_end();
	writes_free(&b.writes);
	ck_assert_ptr_null(b.writes.first);
}
END_TEST

static void *
run_often(void *context)
{
	struct write_due one;
	unsigned i;

	(void)context;
	for (i = 0; i < 400; i++) {
		one = binding(i + 1, b.worker[i % 2]);
		(void)writes_do(&b.writes, &one, LIFE_NOW);
		(void)writes_run(&b.writes, LIFE_NOW);
	}
	return NULL;
}

START_TEST(threads_share_the_list)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread[4];
	unsigned i;

	b.writes.lock = b.spares.lock = &lock;
	busy_begin(3);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, run_often,
		    NULL), 0);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	(void)busy_end();
	ck_assert(writes_run(&b.writes, LIFE_NOW));
	ck_assert_uint_eq(b.writes.n, 0);
	ck_assert_uint_eq(b.writes.binds, 0);
}
END_TEST

Suite *suite_writes(void);

Suite *
suite_writes(void)
{
	Suite *s = suite_create("writes");
	TCase *t = tcase_create("writes");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, at_once_if_it_can_be);
	tcase_add_test(t, later_if_the_region_is_locked);
	tcase_add_test(t, between_its_two_steps);
	tcase_add_test(t, each_kind_is_done_in_order);
	tcase_add_test(t, a_binding_stays_behind_those_that_wait);
	tcase_add_test(t, few_hints_are_kept_and_all_ends);
	tcase_add_test(t, without_memory_an_end_is_lost_and_counted);
	tcase_add_test(t, an_end_frees_those_that_wait);
	tcase_add_test(t, threads_share_the_list);
	suite_add_tcase(s, t);
	return s;
}
