/* SPDX-License-Identifier: BSD-2-Clause */
/* test_journal_api.c - records of calls in the journal, and reading it. */
#include "inner.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { ROOM = KVR_JOURNAL_MIN / 32, LIMIT = 500 };
#define MS INT64_C(1000000)

static uint64_t position, hashes[ROOM];
static struct kvr_record got;

static struct kvr_options
options(void)
{
	struct kvr_options o = small_options();

	o.journal_bytes = KVR_JOURNAL_MIN;
	o.affinity_entries = 8;
	o.lease_limit_ns = LIMIT;
	return o;
}

static int
take(void)
{
	got.size = sizeof(got);
	return kvr_journal_read(k, &position, 1, &got, hashes, ROOM);
}

static void
setup(void)
{
	struct kvr_options o = options();

	region_of(&o);
	use_cost(KVR_COST_DYNAMO); /* nothing is decided by observations */
	position = 0;
	ck_assert_int_eq(take(), KVR_EAGAIN);
	ck_assert_uint_ne(position, 0);
}

/* The next record is of this kind and lease, on worker 1. */
static void
next(uint32_t kind, uint64_t lease, int64_t at)
{
	ck_assert_int_eq(take(), KVR_OK);
	ck_assert_uint_eq(got.kind, kind);
	ck_assert_uint_eq(got.lease, lease);
	ck_assert_uint_eq(got.worker, id[1]);
	ck_assert_int_eq(got.at, at);
}

static void
ck_none(void)
{
	ck_assert_int_eq(take(), KVR_EAGAIN);
}

/* The record has the current prompt from a block on. */
static void
ck_prompt(uint32_t first)
{
	ck_assert_uint_eq(got.blocks, p->blocks);
	ck_assert_uint_eq(got.units, p->units);
	ck_assert_uint_eq(got.first_block, first);
	ck_assert_uint_eq(got.parent, first == 0 ? p->root
	    : p->sequence[first - 1]);
	ck_assert_uint_eq(got.hashes, p->blocks - first);
	ck_assert_mem_eq(hashes, p->sequence + first,
	    got.hashes * sizeof(*hashes));
}

/* -------------------------------------------------------------- records --- */

START_TEST(life_of_a_lease)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	struct kvr_report report = { .size = sizeof(report),
		.prompt_tokens = 4, .cached_tokens = 2,
		.completion_tokens = 3, .kind = KVR_REPORT_VALUE,
		.flags = KVR_REPORT_STREAM, .endpoint = 7 };

	observe(1, "ab", 1);
	next(KVR_RECORD_OBSERVE, 0, 1);
	ck_prompt(0);
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.owner = 42;
	r.affinity = 77;
	r.affinity_ttl = 9 * MS;
	r.share = 300;
	r.flags = KVR_NO_FIRST_TOKEN | KVR_NOWAIT;
	say("abcd");
	ck_assert_int_eq(kvr_lease_open(k, p, &r, 2, &d), KVR_OK);
	next(KVR_RECORD_OPEN, d.lease, 2);
	ck_prompt(0);
	ck_assert(got.owner == 42 && got.affinity == 77 &&
	    got.affinity_ttl == 9 * MS && got.flags == KVR_NO_FIRST_TOKEN &&
	    got.stage == KVR_STAGE_ALL && got.share == 300);
	ck_assert(got.overlap_tokens == 2 && got.overlap_blocks == 2);
	/* a first token commits, too */
	ck_assert_int_eq(kvr_lease_first_token(k, d.lease, 4, 0), KVR_OK);
	next(KVR_RECORD_COMMIT, d.lease, 4);
	ck_assert_uint_eq(got.owner, 42);
	next(KVR_RECORD_FIRST_TOKEN, d.lease, 4);
	say("abcdefg");
	ck_assert_int_eq(kvr_lease_extend(k, d.lease, p, 5, 0), KVR_OK);
	next(KVR_RECORD_EXTEND, d.lease, 5);
	ck_prompt(4);
	ck_assert_int_eq(kvr_lease_output(k, d.lease, 6, 6, 0), KVR_OK);
	next(KVR_RECORD_OUTPUT, d.lease, 6);
	ck_assert_uint_eq(got.blocks, 6);
	ck_assert_int_eq(kvr_lease_finish(k, d.lease, &report, 7, 0), KVR_OK);
	next(KVR_RECORD_FINISH, d.lease, 7);
	ck_assert_mem_eq(&got.report, &report, sizeof(report));
	ck_assert_int_eq(kvr_lease_finish(k, d.lease, &report, 8, 0),
	    KVR_ELEASE);
	ck_none();
}
END_TEST

START_TEST(other_calls)
{
	uint64_t lease = reserve(1, "abcd", 1), old = id[1];

	next(KVR_RECORD_OPEN, lease, 1);
	give_up(lease, 2);
	next(KVR_RECORD_ABORT, lease, 2);
	ck_assert_int_eq(kvr_affinity_bind(k, 5, id[1], 3, 3, 0), KVR_OK);
	next(KVR_RECORD_BIND, 0, 3);
	ck_assert(got.affinity == 5 && got.affinity_ttl == 3);
	ck_assert_int_eq(kvr_affinity_bind(k, 5, 0, 3, 3, 0), KVR_EWORKER);
	ck_none();
	ck_assert_int_eq(kvr_worker_reset(k, old, &id[1]), KVR_OK);
	ck_assert_int_eq(take(), KVR_OK);
	ck_assert(got.kind == KVR_RECORD_RESET && got.worker == old &&
	    got.new_worker == id[1] && got.at == 3);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_assert_int_eq(take(), KVR_OK);
	ck_assert_uint_eq(got.kind, KVR_RECORD_CLEAR);
	ck_assert_int_eq(kvr_clock_set(k, 9), KVR_OK);
	ck_none();
	ck_assert_int_eq(kvr_clock_set(k, 1), KVR_OK);
	ck_assert_int_eq(take(), KVR_OK);
	ck_assert(got.kind == KVR_RECORD_CLEAR && got.at == 1);
	ck_none();
}
END_TEST

/* Leases that the library ends itself are recorded by quiet handles, too. */
START_TEST(reaped_leases)
{
	uint64_t dispatched, opened, cursor = 0;

	dispatched = reserve(1, "ab", 1);
	commit(dispatched, 1);
	opened = reserve(1, "cd", 1);
	position = 0;
	ck_none();
	ck_assert_int_eq(kvr_quiet_set(k, 1), KVR_OK);
	(void)expire(1 + LIMIT, 0);
	next(KVR_RECORD_FINISH, dispatched, 1 + LIMIT);
	ck_assert_uint_eq(got.report.kind, KVR_REPORT_NONE);
	next(KVR_RECORD_ABORT, opened, 1 + LIMIT);
	ck_assert_int_eq(kvr_quiet_set(k, 0), KVR_OK);
	opened = reserve(1, "cd", 600);
	next(KVR_RECORD_OPEN, opened, 600);
	ck_assert_int_eq(kvr_owner_reap(k, 0, 601, &cursor, NULL), KVR_OK);
	next(KVR_RECORD_ABORT, opened, 601);
	ck_none();
}
END_TEST

START_TEST(orphans_have_no_worker)
{
	uint64_t lease = reserve(1, "abcd", 1);

	commit(lease, 1);
	ck_assert_int_eq(kvr_worker_remove(k, id[1]), KVR_OK);
	position = 0;
	ck_none();
	say("abcdef");
	ck_assert_int_eq(kvr_lease_extend(k, lease, p, 2, 0), KVR_OK);
	ck_none();
	finish(lease, 3);
	ck_assert_int_eq(take(), KVR_OK);
	ck_assert(got.kind == KVR_RECORD_FINISH && got.worker == 0);
}
END_TEST

/* The writer died: all is dropped, and a record marks this. */
START_TEST(recovery_is_told)
{
	(void)reserve(1, "abcd", 1);
	position = 0;
	ck_none();
	atomic_fetch_add(&k->region->seq, 1);
	observe(1, "ab", 2);
	ck_assert_int_eq(take(), KVR_OK);
	ck_assert_uint_eq(got.kind, KVR_RECORD_CLEAR);
	next(KVR_RECORD_OBSERVE, 0, 2);
	ck_none();
}
END_TEST

START_TEST(quiet_handles)
{
	uint64_t lease, worker;

	ck_assert_int_eq(kvr_quiet_set(NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_quiet_set(k, 2), KVR_EINVAL);
	ck_assert_int_eq(kvr_quiet_set(k, 1), KVR_OK);
	lease = reserve(1, "abcd", 1);
	commit(lease, 1);
	ck_assert_int_eq(kvr_lease_first_token(k, lease, 1, 0), KVR_OK);
	say("abcdef");
	ck_assert_int_eq(kvr_lease_extend(k, lease, p, 1, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_output(k, lease, 1, 1, 0), KVR_OK);
	finish(lease, 1);
	give_up(reserve(1, "x", 1), 1);
	observe(1, "y", 1);
	ck_assert_int_eq(kvr_affinity_bind(k, 5, id[1], 3, 3, 0), KVR_OK);
	ck_assert_int_eq(kvr_worker_reset(k, id[1], &worker), KVR_OK);
	ck_none();
}
END_TEST

/* ------------------------------------------------------------- reading --- */

START_TEST(reading_is_checked)
{
	struct kvr_record r = { .size = sizeof(r) };
	struct kvr_options o = small_options();
	struct kvr *without;

	ck_assert_int_eq(kvr_new(&o, &without), KVR_OK);
	ck_assert_int_eq(kvr_journal_read(NULL, &position, 1, &r, hashes, 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_journal_read(k, &position, -2, &r, hashes, 1),
	    KVR_ECLOCK);
	ck_assert_int_eq(kvr_journal_read(k, &position, INT64_MAX, &r, hashes,
	    1), KVR_ECLOCK);
	ck_assert_int_eq(kvr_journal_read(k, NULL, 1, &r, hashes, 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_journal_read(k, &position, 1, NULL, hashes, 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_journal_read(k, &position, 1, &r, NULL, 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_journal_read(k, &position, -2, &r, hashes, 1),
	    KVR_ECLOCK);
	ck_assert_int_eq(kvr_journal_read(without, &position, 1, &r, hashes,
	    1), KVR_ESTATE);
	r.size = 1;
	ck_assert_int_eq(kvr_journal_read(k, &position, 1, &r, hashes, 1),
	    KVR_EINVAL);
	/* a caller of an earlier library */
	r.size = offsetof(struct kvr_record, at);
	observe(1, "ab", 1);
	ck_assert_int_eq(kvr_journal_read(k, &position, 1, &r, NULL, 0),
	    KVR_OK);
	ck_assert(r.kind == KVR_RECORD_OBSERVE && r.hashes == 2 && r.at == 0);
	kvr_free(without);
}
END_TEST

START_TEST(overruns_are_counted)
{
	uint32_t i;

	for (i = 0; i < KVR_JOURNAL_MIN / 128; i++)
		observe(1, "ab", 1);
	ck_assert_uint_eq(stats().journal_overruns, 0);
	ck_assert_int_eq(take(), KVR_EOVERRUN);
	ck_none();
	ck_assert_uint_eq(stats().journal_overruns, 1);
	ck_assert_uint_eq(stats().journal_bytes, KVR_JOURNAL_MIN);
	/* two lines, and one of hashes */
	ck_assert_uint_eq(stats().journal_written,
	    KVR_JOURNAL_MIN / 128 * 192);
}
END_TEST

START_TEST(read_only_handles_read)
{
	char name[] = "journal-XXXXXX";
	struct kvr_options o = options();
	struct kvr *writer = k;
	int fd = mkstemp(name);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(unlink(name), 0);
	kvr_prompt_free(p);
	kvr_free(writer);
	ck_assert_int_eq(kvr_open_fd(fd, KVR_OPEN_CREATE, &o, &writer), KVR_OK);
	ck_assert_int_eq(kvr_open_fd(fd, KVR_OPEN_READONLY, NULL, &k), KVR_OK);
	position = 0;
	ck_none();
	ck_assert_int_eq(kvr_journal_beat(k, 1), KVR_EREADONLY);
	kvr_free(k);
	k = writer;
	people(2);
	observe(1, "abc", 1);
	ck_assert_int_eq(kvr_open_fd(fd, KVR_OPEN_READONLY, NULL, &k), KVR_OK);
	next(KVR_RECORD_OBSERVE, 0, 1);
	ck_prompt(0);
	position = 1; /* lost; such a handle does not count it */
	ck_assert_int_eq(take(), KVR_EOVERRUN);
	region_sound();
	kvr_free(k);
	k = writer;
	ck_assert_uint_eq(stats().journal_overruns, 0);
	ck_assert_int_eq(close(fd), 0);
}
END_TEST

START_TEST(beats_and_rules)
{
	struct kvr_options o = options();
	struct kvr *same, *other;
	uint64_t rule, of_same, of_other;

	ck_assert_int_eq(stats().journal_beat, -1);
	ck_assert_int_eq(kvr_journal_beat(k, 7), KVR_OK);
	ck_assert_int_eq(stats().journal_beat, 7);
	ck_assert_int_eq(kvr_journal_beat(k, -2), KVR_ECLOCK);
	ck_assert_int_eq(kvr_journal_beat(k, INT64_MAX), KVR_ECLOCK);
	ck_assert_int_eq(kvr_journal_beat(NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_new(&o, &same), KVR_OK);
	o.secret[0]++;
	ck_assert_int_eq(kvr_new(&o, &other), KVR_OK);
	ck_assert_int_eq(kvr_rule_get(k, &rule), KVR_OK);
	ck_assert_int_eq(kvr_rule_get(same, &of_same), KVR_OK);
	ck_assert_int_eq(kvr_rule_get(other, &of_other), KVR_OK);
	ck_assert(rule == of_same && rule != of_other);
	ck_assert_int_eq(kvr_rule_get(NULL, &rule), KVR_EINVAL);
	ck_assert_int_eq(kvr_rule_get(k, NULL), KVR_EINVAL);
	kvr_free(same);
	kvr_free(other);
}
END_TEST

START_TEST(sizes_are_checked)
{
	static const uint64_t bad[] = { 1, 4096, KVR_JOURNAL_MIN - 1,
		KVR_JOURNAL_MIN + 64, 3 * KVR_JOURNAL_MIN,
		UINT64_C(2) * KVR_JOURNAL_MAX };
	struct kvr_options o = options();
	struct kvr *none = NULL;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		o.journal_bytes = bad[i];
		ck_assert_int_eq(kvr_new(&o, &none), KVR_EINVAL);
	}
	o.journal_bytes = 2 * KVR_JOURNAL_MIN; /* more than the region has */
	o.region_bytes = 2 * KVR_JOURNAL_MIN;
	ck_assert_int_eq(kvr_new(&o, &none), KVR_ETOOSMALL);
	ck_assert_ptr_null(none);
	ck_assert_int_eq(kvr_options_get(k, &o), KVR_OK);
	ck_assert_uint_eq(o.journal_bytes, KVR_JOURNAL_MIN);
}
END_TEST

Suite *suite_journal_api(void);

Suite *
suite_journal_api(void)
{
	Suite *s = suite_create("journal_api");
	TCase *t = tcase_create("journal_api");

	tcase_add_checked_fixture(t, setup, region_end);
	tcase_add_test(t, life_of_a_lease);
	tcase_add_test(t, other_calls);
	tcase_add_test(t, reaped_leases);
	tcase_add_test(t, orphans_have_no_worker);
	tcase_add_test(t, recovery_is_told);
	tcase_add_test(t, quiet_handles);
	tcase_add_test(t, reading_is_checked);
	tcase_add_test(t, overruns_are_counted);
	tcase_add_test(t, read_only_handles_read);
	tcase_add_test(t, beats_and_rules);
	tcase_add_test(t, sizes_are_checked);
	suite_add_tcase(s, t);
	return s;
}
