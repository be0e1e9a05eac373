/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_peers.c - the report on other machines in the region: whole or none.
 */
#include "inner.h"

#include "peers.h"

#include <pthread.h>
#include <stdatomic.h>

static struct peer_table t, got;

static struct kvr_options
options(void)
{
	struct kvr_options o = small_options();

	o.journal_bytes = KVR_JOURNAL_MIN;
	return o;
}

static void
setup(void)
{
	struct kvr_options o = options();

	region_of(&o);
	memset(&t, 0, sizeof(t));
	memset(&got, 0, sizeof(got));
}

/* A report on n peers. */
static void
report(uint64_t n, int64_t at)
{
	uint64_t i;

	t.at = at;
	t.connected = 1;
	t.peers = (uint32_t)n;
	t.rows = n;
	for (i = 0; i < n; i++) {
		t.row[i].id = 100 + i;
		t.row[i].heard = at;
		t.row[i].host_length = 1;
		t.row[i].host[0] = (char)('a' + i % 26);
	}
	ck_assert(peers_valid(&t));
	peers_put(k, &t);
}

START_TEST(none_at_first)
{
	peers_get(k, &got);
	ck_assert_int_eq(got.at, -1);
	ck_assert_uint_eq(got.rows, 0);
	ck_assert(peers_sound(k));
}
END_TEST

START_TEST(what_was_put)
{
	static const uint64_t sizes[] = { 0, 1, 3, KVR_PEERS_MAX, 2 };
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		report(sizes[i], 7 + (int64_t)i);
		peers_get(k, &got);
		ck_assert_int_eq(got.at, 7 + (int64_t)i);
		ck_assert_uint_eq(got.rows, sizes[i]);
		ck_assert_mem_eq(got.row, t.row,
		    sizes[i] * sizeof(t.row[0]));
		ck_assert(peers_sound(k));
	}
	peers_empty(k);
	peers_get(k, &got);
	ck_assert_int_eq(got.at, -1);
	region_sound();
}
END_TEST

/* A writer dies after each word: the old report, the new one, or none. */
START_TEST(a_writer_that_dies)
{
	struct peer_table old, new;
	uint64_t *words = (uint64_t *)(void *)k->peers;
	const size_t n = offsetof(struct peer_table, row[3]) / 8;
	size_t i, none = 0;

	report(3, 7);
	memcpy(&old, k->peers, sizeof(old));
	report(2, 8);
	memcpy(&new, k->peers, sizeof(new));
	memcpy(k->peers, &old, sizeof(old));
	for (i = 0; i < n; i++) {
		memcpy(&words[i], (char *)&new + i * 8, 8);
		peers_get(k, &got);
		ck_assert(got.at == -1 || got.at == 8);
		ck_assert(got.at == -1 ? got.rows == 0 : got.rows == 2);
		none += got.at == -1;
		ck_assert(peers_sound(k));
	}
	ck_assert_uint_gt(none, 10);
	ck_assert_int_eq(got.at, 8);
}
END_TEST

/* A damaged word: none. */
START_TEST(each_word_counts)
{
	uint64_t *words = (uint64_t *)(void *)k->peers;
	const size_t n = offsetof(struct peer_table, row[2]) / 8;
	size_t i;

	report(2, 7);
	for (i = 0; i < n; i++) {
		words[i] ^= UINT64_C(1) << i % 64;
		peers_get(k, &got);
		ck_assert_int_eq(got.at, -1);
		words[i] ^= UINT64_C(1) << i % 64;
	}
	peers_get(k, &got);
	ck_assert_int_eq(got.at, 7);
}
END_TEST

/* The ways to be out of bounds. */
static void
spoil(int way)
{
	switch (way) {
	case 0:
		t.at = -2;
		break;
	case 1:
		t.at = INT64_MAX;
		break;
	case 2:
		t.connected = 2;
		break;
	case 3:
		t.peers = 1;
		break;
	case 4:
		t.row[1].heard = -2;
		break;
	case 5:
		t.row[1].heard = INT64_MAX;
		break;
	case 6:
		t.row[1].lag_ns = -1;
		break;
	case 7:
		t.row[1].lag_ns = INT64_MAX;
		break;
	case 8:
		t.row[1].state = KVR_PEER_SILENT + 1;
		break;
	default:
		t.row[1].host_length = KVR_PEER_HOST_MAX + 1;
		break;
	}
}

/* A bad row with a valid digest is found by the check, and mended. */
START_TEST(lies_count_as_none)
{
	report(2, 7);
	spoil(_i);
	ck_assert(!peers_valid(&t));
	peers_put(k, &t);
	peers_get(k, &got);
	ck_assert_int_eq(got.at, -1);
	ck_assert(!peers_sound(k));
	ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
	peers_recover(k);
	ck_assert(peers_sound(k));
	ck_assert_int_eq(kvr_check(k), KVR_OK);
}
END_TEST

/* More rows than there are: never read. */
START_TEST(too_many_rows)
{
	report(2, 7);
	k->peers->rows = UINT64_MAX;
	peers_get(k, &got);
	ck_assert_int_eq(got.at, -1);
	ck_assert(peers_sound(k));
	peers_recover(k);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	t.rows = KVR_PEERS_MAX + 1;
	t.peers = UINT32_MAX;
	ck_assert(!peers_valid(&t));
}
END_TEST

/* ------------------------------------------------------------- threads --- */

static atomic_bool stop;

/* Reports in which all numbers are one, and so is the number of rows. */
static void *
tell(void *arg)
{
	static struct peer_table mine;
	uint64_t i, turn, turns = test_amount(40000);

	(void)arg;
	for (turn = 1; turn <= turns; turn++) {
		mine.at = (int64_t)turn;
		mine.rows = turn % KVR_PEERS_MAX;
		mine.peers = KVR_PEERS_MAX;
		for (i = 0; i < mine.rows; i++)
			mine.row[i].frames = turn;
		peers_put(k, &mine);
	}
	atomic_store(&stop, true);
	return NULL;
}

START_TEST(readers_see_whole_ones)
{
	uint64_t i;
	pthread_t writer;

	ck_assert_int_eq(pthread_create(&writer, NULL, tell, NULL), 0);
	while (!atomic_load(&stop)) {
		peers_get(k, &got);
		if (got.at == -1)
			continue;
		must(got.rows == (uint64_t)got.at % KVR_PEERS_MAX);
		for (i = 0; i < got.rows; i++)
			must(got.row[i].frames == (uint64_t)got.at);
		must(peers_sound(k));
	}
	ck_assert_int_eq(pthread_join(writer, NULL), 0);
	peers_get(k, &got);
	ck_assert_int_eq(got.at, (int64_t)test_amount(40000));
}
END_TEST

START_TEST(without_a_journal)
{
	struct kvr_options o = small_options();
	struct kvr *none, *with = k;

	ck_assert_int_eq(kvr_new(&o, &none), KVR_OK);
	ck_assert_ptr_null(none->peers);
	ck_assert_uint_eq(none->layout.peers_at, none->layout.node_buckets_at);
	ck_assert_uint_eq(with->layout.peers_at + sizeof(struct peer_table),
	    with->layout.node_buckets_at);
	peers_empty(none);
	ck_assert(peers_sound(none));
	peers_recover(none);
	kvr_free(none);
}
END_TEST

Suite *suite_peers(void);

Suite *
suite_peers(void)
{
	Suite *s = suite_create("peers");
	TCase *c = tcase_create("peers");

	tcase_add_checked_fixture(c, setup, region_end);
	tcase_add_test(c, none_at_first);
	tcase_add_test(c, what_was_put);
	tcase_add_test(c, a_writer_that_dies);
	tcase_add_test(c, each_word_counts);
	tcase_add_loop_test(c, lies_count_as_none, 0, 10);
	tcase_add_test(c, too_many_rows);
	tcase_add_test(c, readers_see_whole_ones);
	tcase_add_test(c, without_a_journal);
	suite_add_tcase(s, c);
	return s;
}
