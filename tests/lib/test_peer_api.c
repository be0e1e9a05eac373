/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_peer_api.c - telling and listing peers by the public calls.
 */
#include "inner.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct kvr_exchange told, seen;
static struct kvr_peer rows[KVR_PEERS_MAX + 1], out[KVR_PEERS_MAX];
static size_t count;

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
	size_t i;

	region_of(&o);
	told = (struct kvr_exchange){ .size = sizeof(told), .at = 7,
	    .connected = 1, .peers = 3 };
	for (i = 0; i < KVR_DROP_REASONS; i++)
		told.dropped[i] = 10 + i;
	memset(rows, 0, sizeof(rows));
	for (i = 0; i < 3; i++) {
		rows[i].id = i + 1;
		rows[i].heard = 5;
		rows[i].lag_ns = 1000;
		rows[i].frames = 20 + i;
		rows[i].state = (uint32_t)i;
		rows[i].host_length = 4;
		memcpy(rows[i].host, "host", 4);
	}
	seen = (struct kvr_exchange){ .size = sizeof(seen) };
	count = 77;
}

static int
set(size_t n)
{
	return kvr_peer_set(k, &told, rows, sizeof(rows[0]), n);
}

static int
list(size_t capacity)
{
	return kvr_peer_list(k, &seen, out, sizeof(out[0]), capacity, &count);
}

START_TEST(told_and_listed)
{
	ck_assert_int_eq(list(3), KVR_OK);
	ck_assert_int_eq(seen.at, -1);
	ck_assert_uint_eq(count, 0);
	ck_assert_int_eq(set(3), KVR_OK);
	ck_assert_int_eq(list(KVR_PEERS_MAX), KVR_OK);
	ck_assert_uint_eq(count, 3);
	ck_assert_int_eq(seen.at, 7);
	ck_assert_uint_eq(seen.connected, 1);
	ck_assert_uint_eq(seen.peers, 3);
	ck_assert_mem_eq(seen.dropped, told.dropped, sizeof(told.dropped));
	ck_assert_mem_eq(out, rows, 3 * sizeof(rows[0]));
	told.at = 8;
	told.peers = 70;
	ck_assert_int_eq(kvr_peer_set(k, &told, NULL, 0, 0), KVR_OK);
	ck_assert_int_eq(kvr_peer_list(k, &seen, NULL, 0, 0, &count), KVR_OK);
	ck_assert_uint_eq(count, 0);
	ck_assert_uint_eq(seen.peers, 70);
	region_sound();
}
END_TEST

/* Fewer than there are, and in the structs of another version. */
START_TEST(sizes_of_others)
{
	struct { struct kvr_peer peer; uint64_t more; } wide[3], *w = wide;
	struct { uint64_t id; int64_t heard; } narrow[3] = { { 0 } };

	ck_assert_int_eq(set(3), KVR_OK);
	ck_assert_int_eq(list(2), KVR_OK);
	ck_assert_uint_eq(count, 2);
	ck_assert_int_eq(kvr_peer_list(k, &seen, (void *)narrow,
	    sizeof(narrow[0]), 3, &count), KVR_OK);
	ck_assert_uint_eq(narrow[2].id, 3);
	ck_assert_int_eq(narrow[2].heard, 5);
	memset(wide, 0, sizeof(wide));
	ck_assert_int_eq(kvr_peer_list(k, &seen, &w->peer, sizeof(wide[0]), 3,
	    &count), KVR_OK);
	ck_assert_uint_eq(wide[2].peer.frames, 22);
	ck_assert_uint_eq(wide[2].more, 0);
	ck_assert_int_eq(kvr_peer_set(k, &told, &w->peer, sizeof(wide[0]), 3),
	    KVR_OK);
	wide[2].more = 1;
	ck_assert_int_eq(kvr_peer_set(k, &told, &w->peer, sizeof(wide[0]), 3),
	    KVR_ENEWER);
	narrow[0].id = 9;
	ck_assert_int_eq(kvr_peer_set(k, &told, (void *)narrow,
	    sizeof(narrow[0]), 3), KVR_OK);
	ck_assert_int_eq(list(3), KVR_OK);
	ck_assert_uint_eq(out[0].id, 9);
	ck_assert_uint_eq(out[2].frames, 0);
	seen.size = sizeof(size_t) + sizeof(int64_t);
	seen.peers = 1234;
	ck_assert_int_eq(list(3), KVR_OK);
	ck_assert_uint_eq(seen.peers, 1234);
}
END_TEST

START_TEST(arguments_are_checked)
{
	ck_assert_int_eq(kvr_peer_set(NULL, &told, rows, sizeof(rows[0]), 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_peer_set(k, NULL, rows, sizeof(rows[0]), 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_peer_set(k, &told, NULL, sizeof(rows[0]), 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_peer_set(k, &told, rows, 7, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_peer_set(k, &told, rows, 4097, 1), KVR_EINVAL);
	told.peers = KVR_PEERS_MAX + 1;
	ck_assert_int_eq(set(KVR_PEERS_MAX + 1), KVR_EINVAL);
	told.peers = 2; /* fewer than are listed */
	ck_assert_int_eq(set(3), KVR_EINVAL);
	told.peers = 3;
	rows[1].state = KVR_PEER_SILENT + 1;
	ck_assert_int_eq(set(3), KVR_EINVAL);
	rows[1].state = KVR_PEER_SILENT;
	told.at = -1;
	ck_assert_int_eq(set(3), KVR_ECLOCK);
	told.at = INT64_MAX;
	ck_assert_int_eq(set(3), KVR_ECLOCK);
	told.at = 1;
	told.size = 7;
	ck_assert_int_eq(set(3), KVR_EINVAL);
	told.size = sizeof(told);
	ck_assert_int_eq(list(3), KVR_OK);
	ck_assert_int_eq(seen.at, -1); /* nothing has changed */
	ck_assert_int_eq(kvr_peer_list(NULL, &seen, out, sizeof(out[0]), 1,
	    &count), KVR_EINVAL);
	ck_assert_int_eq(kvr_peer_list(k, NULL, out, sizeof(out[0]), 1,
	    &count), KVR_EINVAL);
	ck_assert_int_eq(kvr_peer_list(k, &seen, NULL, sizeof(out[0]), 1,
	    &count), KVR_EINVAL);
	ck_assert_int_eq(kvr_peer_list(k, &seen, out, 7, 1, &count),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_peer_list(k, &seen, out, sizeof(out[0]), 1,
	    NULL), KVR_EINVAL);
	seen.size = 7;
	ck_assert_int_eq(list(3), KVR_EINVAL);
}
END_TEST

/* A small region without a journal has none. */
START_TEST(room_for_a_report)
{
	struct kvr_options o = small_options();
	struct kvr *with = k;

	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	ck_assert_int_eq(set(3), KVR_ESTATE);
	ck_assert_int_eq(list(3), KVR_ESTATE);
	ck_assert_uint_eq(count, 77);
	kvr_free(k);
	o.region_bytes = 1 << 20;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	ck_assert_int_eq(set(3), KVR_OK);
	ck_assert_int_eq(list(3), KVR_OK);
	ck_assert_uint_eq(count, 3);
	kvr_free(k);
	k = with;
}
END_TEST

/* A new file without a name. */
static int
file_of(void)
{
	char name[] = "peers-XXXXXX";
	int fd = mkstemp(name);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(unlink(name), 0);
	return fd;
}

static void
open_as(int fd, const struct kvr_options *o)
{
	ck_assert_int_eq(kvr_open_fd(fd, KVR_OPEN_CREATE | KVR_OPEN_ATTACH, o,
	    &k), KVR_OK);
}

/* Another process cannot use the handle of its parent. */
START_TEST(not_after_fork)
{
	struct kvr_options o = options();
	struct kvr *old = k;
	int status = 0, fd = file_of();
	pid_t child;

	open_as(fd, &o);
	ck_assert_int_eq(set(3), KVR_OK);
	child = fork();
	if (child == 0)
		test_exit(set(3) == KVR_ESTATE && list(3) == KVR_ESTATE
		    ? 0 : 1);
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	kvr_free(k);
	k = old;
	ck_assert_int_eq(close(fd), 0);
}
END_TEST

/* A reader sees it, cannot change it, and it outlives its writer. */
START_TEST(by_a_read_only_handle)
{
	struct kvr_options o = options();
	struct kvr *old = k, *writer;
	int fd = file_of();

	open_as(fd, &o);
	writer = k;
	ck_assert_int_eq(set(3), KVR_OK);
	ck_assert_int_eq(kvr_open_fd(fd, KVR_OPEN_READONLY, NULL, &k), KVR_OK);
	kvr_free(writer);
	ck_assert_int_eq(set(2), KVR_EREADONLY);
	ck_assert_int_eq(list(3), KVR_OK);
	ck_assert_uint_eq(count, 3);
	ck_assert_mem_eq(out, rows, 3 * sizeof(rows[0]));
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	kvr_free(k);
	k = old;
	ck_assert_int_eq(close(fd), 0);
}
END_TEST

/* Times of another boot mean nothing. */
START_TEST(ends_with_a_boot)
{
	struct kvr_options o = options();
	struct kvr *old = k;
	int fd = file_of();

	memset(o.boot_id, 1, sizeof(o.boot_id));
	open_as(fd, &o);
	ck_assert_int_eq(set(3), KVR_OK);
	kvr_free(k);
	open_as(fd, &o);
	ck_assert_int_eq(list(3), KVR_OK);
	ck_assert_uint_eq(count, 3);
	kvr_free(k);
	memset(o.boot_id, 2, sizeof(o.boot_id));
	open_as(fd, &o);
	ck_assert_int_eq(list(3), KVR_OK);
	ck_assert_int_eq(seen.at, -1);
	ck_assert_uint_eq(count, 0);
	kvr_free(k);
	k = old;
	ck_assert_int_eq(close(fd), 0);
}
END_TEST

Suite *suite_peer_api(void);

Suite *
suite_peer_api(void)
{
	Suite *s = suite_create("peer_api");
	TCase *c = tcase_create("peer_api");

	tcase_add_checked_fixture(c, setup, region_end);
	tcase_add_test(c, told_and_listed);
	tcase_add_test(c, sizes_of_others);
	tcase_add_test(c, arguments_are_checked);
	tcase_add_test(c, room_for_a_report);
	tcase_add_test(c, not_after_fork);
	tcase_add_test(c, by_a_read_only_handle);
	tcase_add_test(c, ends_with_a_boot);
	suite_add_tcase(s, c);
	return s;
}
