/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_storage.c - which files hold nothing, room for a file while signals
 * come, and the id of the boot.
 */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/*
 * The same file again, on a system where nothing longer than this is ever
 * allocated between two signals.
 */
static uint64_t between_signals = UINT64_MAX;
static uint64_t interrupted, allocated;

static int
impatient_fallocate(int fd, off_t at, off_t bytes)
{
	ck_assert_uint_eq((uint64_t)at, allocated); /* no gap */
	ck_assert_int_gt(bytes, 0);
	if ((uint64_t)bytes > between_signals) {
		interrupted++;
		return EINTR;
	}
	allocated += (uint64_t)bytes;
	return fd == -1 ? ENOSPC : 0;
}

/* A system without a boot id. */
static bool no_proc;

#define open(path, flags) (no_proc ? -1 : open(path, flags))
#define posix_fallocate impatient_fallocate
#define storage_blank mine_blank
#define storage_cut mine_cut
#define storage_allocate mine_allocate
#define storage_boot_id mine_boot_id
#include "storage.c"
#undef posix_fallocate
#undef open

static int
memory_file(void)
{
	int fd = memfd_create("storage", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static bool
blank(int fd)
{
	bool is = false;

	ck_assert_int_eq(storage_blank(fd, &is), KVR_OK);
	return is;
}

/* --------------------------------------------------------------- blank --- */

/* One byte that is not zero, wherever it is. */
START_TEST(one_byte_anywhere)
{
	static const off_t length[] = { 1, 7, 8, 9, 1535, 1536, 4096, 16384,
		16385, 32768 + 7, 100000 };
	static const off_t at[] = { 0, 1, 7, 8, 15, 1535, 1536, 4095, 16383,
		16384, 32768, 99999 };
	int fd = memory_file();
	size_t i, j;

	ck_assert(blank(fd));
	for (i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		ck_assert_int_eq(ftruncate(fd, length[i]), 0);
		ck_assert(blank(fd));
		for (j = 0; j <= sizeof(at) / sizeof(at[0]); j++) {
			off_t where = j < sizeof(at) / sizeof(at[0]) ? at[j]
			    : length[i] - 1;

			if (where >= length[i])
				continue;
			ck_assert_int_eq(pwrite(fd, "x", 1, where), 1);
			ck_assert_msg(!blank(fd), "%jd of %jd",
			    (intmax_t)where, (intmax_t)length[i]);
			ck_assert_int_eq(pwrite(fd, "", 1, where), 1);
		}
	}
	close(fd);
}
END_TEST

/* The mark of a creator that died, and almost the same bytes. */
START_TEST(unfinished)
{
	static const char mark[] = "??edamnu", almost[] = "??edamnx";
	int fd = memory_file();

	ck_assert_int_eq(pwrite(fd, mark, 7, 0), 7);
	ck_assert(!blank(fd));
	ck_assert_int_eq(pwrite(fd, mark, 8, 0), 8);
	ck_assert(blank(fd));
	ck_assert_int_eq(pwrite(fd, "x", 1, 40000), 1);
	ck_assert(blank(fd));
	ck_assert_int_eq(pwrite(fd, almost, 8, 0), 8);
	ck_assert(!blank(fd));
	ck_assert_int_eq(pwrite(fd, "\0\0\0\0\0\0\0", 8, 0), 8);
	ck_assert_int_eq(pwrite(fd, mark, 8, 16384), 8);
	ck_assert(!blank(fd));
	close(fd);
}
END_TEST

START_TEST(unreadable)
{
	bool is;

	ck_assert_int_eq(storage_blank(-1, &is), KVR_ESYSTEM);
	ck_assert_int_eq(errno, EBADF);
	ck_assert_int_eq(storage_cut(-1, 0), KVR_ESYSTEM);
	ck_assert_int_eq(errno, EBADF);
}
END_TEST

/* ---------------------------------------------------------- allocation --- */

/* Each call soon asks only for the bytes allocated between two signals. */
START_TEST(allocated_between_signals)
{
	static const uint64_t between[] = { UINT64_MAX, 1 << 30, 1000000,
		100000, 8192, 4096 };
	const uint64_t bytes = (UINT64_C(64) << 20) + 100;
	size_t i;

	for (i = 0; i < sizeof(between) / sizeof(between[0]); i++) {
		between_signals = between[i];
		interrupted = allocated = 0;
		ck_assert_int_eq(storage_allocate(0, bytes), KVR_OK);
		ck_assert_uint_eq(allocated, bytes);
		ck_assert_uint_le(interrupted, 14);
	}
	interrupted = allocated = 0;
	ck_assert_int_eq(storage_allocate(-1, bytes), KVR_ESYSTEM);
	ck_assert_int_eq(errno, ENOSPC);
}
END_TEST

static volatile sig_atomic_t ticks;

static void
tick(int number)
{
	(void)number;
	ticks++;
}

static void
tick_every(int64_t us)
{
	struct itimerval it = { { 0, (suseconds_t)us }, { 0,
	    (suseconds_t)us } };

	ck_assert_int_eq(setitimer(ITIMER_REAL, &it, NULL), 0);
}

/*
 * Memory loses an allocation at each signal; since Linux 6.18 only at one that
 * kills.
 */
START_TEST(timer_while_allocating)
{
	struct sigaction act = { .sa_handler = tick };
	struct kvr_options o;
	int64_t began = kvr_clock_now(), us;
	struct kvr *k;
	struct stat st;
	int fd = memory_file();

	ck_assert_int_eq(kvr_options_init(&o, sizeof(o)), KVR_OK);
	ck_assert_int_eq(kvr_open_fd(fd, KVR_OPEN_CREATE, &o, &k), KVR_OK);
	us = (kvr_clock_now() - began) / 1000;
	kvr_free(k);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	ck_assert_int_eq(sigaction(SIGALRM, &act, NULL), 0);
	tick_every(us / 16 > 100 ? us / 16 : 100);
	ck_assert_int_eq(kvr_open_fd(fd, KVR_OPEN_CREATE, &o, &k), KVR_OK);
	tick_every(0);
	kvr_free(k);
	ck_assert_int_gt(ticks, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_uint_eq((uint64_t)st.st_size, o.region_bytes);
	ck_assert_uint_ge((uint64_t)st.st_blocks * 512, o.region_bytes);
	close(fd);
}
END_TEST

/* ------------------------------------------------------------- boot id --- */

/* The id is the system's text, with its dashes removed. */
START_TEST(boot_id_of_the_system)
{
	unsigned char boot[KVR_BOOT_ID_BYTES];
	char text[64] = "", mine[64], *to = mine;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
	int i;

	if (f == NULL || fgets(text, sizeof(text), f) == NULL)
		test_skip("this system has no boot id");
	(void)fclose(f);
	storage_boot_id(boot);
	for (i = 0; i < KVR_BOOT_ID_BYTES; i++)
		to += sprintf(to, i == 4 || i == 6 || i == 8 || i == 10
		    ? "-%02x" : "%02x", boot[i]);
	*to++ = '\n';
	*to = '\0';
	ck_assert_str_eq(mine, text);
}
END_TEST

/* Zeros: such a boot is like any other one that nothing is known of. */
START_TEST(boot_id_of_no_system)
{
	static const unsigned char zeros[KVR_BOOT_ID_BYTES];
	unsigned char boot[KVR_BOOT_ID_BYTES];

	memset(boot, 'x', sizeof(boot));
	no_proc = true;
	mine_boot_id(boot);
	ck_assert_mem_eq(boot, zeros, sizeof(boot));
}
END_TEST

Suite *suite_storage(void);

Suite *
suite_storage(void)
{
	Suite *s = suite_create("storage");
	TCase *t = tcase_create("storage");

	tcase_add_test(t, one_byte_anywhere);
	tcase_add_test(t, unfinished);
	tcase_add_test(t, unreadable);
	tcase_add_test(t, allocated_between_signals);
	tcase_add_test(t, timer_while_allocating);
	tcase_add_test(t, boot_id_of_the_system);
	tcase_add_test(t, boot_id_of_no_system);
	suite_add_tcase(s, t);
	return s;
}
