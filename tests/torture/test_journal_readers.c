/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_journal_readers.c - two writers send a small journal round, and three
 * readers see whole records only, in order, and a count of lost ones.
 */
#include "kvroute.h"
#include "kvroute_replica.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { WRITERS = 2, READERS = 3, LENGTHS = 40, UNIT = 24, PAUSES = 1000 };
enum { LONGEST = LENGTHS * UNIT, ROOM = KVR_JOURNAL_MIN / 32 };

static struct kvr *k;
static uint64_t worker;
static uint64_t chain[LONGEST], root; /* of the longest prompt */
static uint64_t begin; /* of the writers' records */
static atomic_uint writing;
static atomic_bool read_one;

/* Prompts are prefixes of one: the length determines all hashes. */
static void
say(struct kvr_prompt *p, uint32_t n)
{
	static const uint32_t tokens[LONGEST];

	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, n), KVR_OK);
}

static void
setup(void)
{
	struct kvr_record r = { .size = sizeof(r) };
	struct kvr_options o;
	struct kvr_prompt *p;
	uint64_t position = 0;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = 1 << 20;
	o.block_size = 1;
	o.max_workers = 4;
	o.journal_bytes = KVR_JOURNAL_MIN;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	ck_assert_int_eq(kvr_worker_add(k, "w", 1, NULL, &worker), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	ck_assert_int_eq(kvr_journal_read(k, &position, 1, &r, NULL, 0),
	    KVR_EAGAIN);
	say(p, LONGEST);
	ck_assert_int_eq(kvr_observe(k, p, worker, 1, 0, NULL), KVR_OK);
	ck_assert_int_eq(kvr_journal_read(k, &position, 1, &r, chain, LONGEST),
	    KVR_OK);
	root = r.parent;
	begin = position;
	kvr_prompt_free(p);
}

/* On a busy machine readers may be behind by a lap until writers pause. */
static bool
goes_on(uint64_t i, uint64_t calls)
{
	if (i < calls)
		return true;
	if (atomic_load(&read_one) || i == calls + PAUSES)
		return false;
	(void)usleep(1000);
	return true;
}

static void *
write_all(void *arg)
{
	uint64_t i, calls = test_amount(6000);
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_prompt *p;
	bool good = kvr_prompt_new(k, &p) == KVR_OK;

	(void)arg;
	for (i = 0; good && goes_on(i, calls); i++) {
		say(p, (uint32_t)(1 + i % LENGTHS) * UNIT);
		good = kvr_lease_open_on(k, p, NULL, worker, 2, &d) ==
		    KVR_OK && kvr_lease_finish(k, d.lease, NULL, 2, 0) ==
		    KVR_OK;
	}
	kvr_prompt_free(p);
	atomic_fetch_sub(&writing, 1);
	return good ? NULL : (void *)&worker;
}

static bool
whole(const struct kvr_record *r, const uint64_t *hashes)
{
	if (r->at != 2 || r->worker != worker || r->lease == 0)
		return false;
	if (r->kind == KVR_RECORD_FINISH)
		return r->hashes == 0;
	return r->kind == KVR_RECORD_OPEN && r->hashes == r->units &&
	    r->parent == root && r->units <= LONGEST &&
	    memcmp(hashes, chain, r->hashes * sizeof(*chain)) == 0;
}

static void *
read_all(void *arg)
{
	struct kvr_record r = { .size = sizeof(r) };
	uint64_t *seen = arg, position = begin, last = 0, hashes[ROOM];
	bool more = true, over;
	int error;

	while (more) {
		over = atomic_load(&writing) == 0;
		error = kvr_journal_read(k, &position, over ? INT64_MAX / 4
		    : 2, &r, hashes, ROOM);
		more = !(over && error == KVR_EAGAIN);
		if (error != KVR_OK)
			continue;
		if (!whole(&r, hashes) || r.position <= last)
			return (void *)&worker;
		last = r.position;
		++*seen;
		atomic_store(&read_one, true);
	}
	return NULL;
}

START_TEST(whole_or_lost)
{
	struct kvr_stats s = { .size = sizeof(s) };
	struct kvr_record r = { .size = sizeof(r) };
	pthread_t writer[WRITERS], reader[READERS];
	uint64_t seen[READERS] = { 0 }, position = begin;
	void *wrong;
	int i;

	atomic_store(&writing, WRITERS);
	for (i = 0; i < READERS; i++)
		ck_assert_int_eq(pthread_create(&reader[i], NULL, read_all,
		    &seen[i]), 0);
	for (i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&writer[i], NULL, write_all,
		    NULL), 0);
	for (i = 0; i < WRITERS; i++) {
		ck_assert_int_eq(pthread_join(writer[i], &wrong), 0);
		ck_assert_ptr_null(wrong);
	}
	for (i = 0; i < READERS; i++) {
		ck_assert_int_eq(pthread_join(reader[i], &wrong), 0);
		ck_assert_ptr_null(wrong);
	}
	ck_assert_uint_gt(seen[0] + seen[1] + seen[2], 0);
	ck_assert_int_eq(kvr_stats_get(k, &s), KVR_OK);
	ck_assert_uint_gt(s.journal_written, KVR_JOURNAL_MIN);
	ck_assert_int_eq(kvr_journal_read(k, &position, 2, &r, NULL, 0),
	    KVR_EOVERRUN);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	kvr_free(k);
}
END_TEST

Suite *suite_journal_readers(void);

Suite *
suite_journal_readers(void)
{
	Suite *s = suite_create("journal_readers");
	TCase *t = tcase_create("journal_readers");

	tcase_add_test(t, whole_or_lost);
	tcase_add_checked_fixture(t, setup, NULL);
	suite_add_tcase(s, t);
	return s;
}
