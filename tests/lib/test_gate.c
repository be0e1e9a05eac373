/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gate.c - the lock file beside a region file: the users that can open
 * it, the handling of one that is not in use, and containers that share it.
 */
#define _GNU_SOURCE
#include "files.h"

#include "gate.h"

#include <sys/mman.h>
#include <time.h>

#include "namespaces.h"
#include "sys.h"

/* ------------------------------------------------------------ the file --- */

static mode_t
lock_mode(void)
{
	struct stat st;

	ck_assert_int_eq(stat(path_lock, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
	return st.st_mode;
}

/* Users that can write the region can lock; the others cannot open it. */
START_TEST(modes)
{
	static const uint32_t mode[][2] = { { 0600, 0600 }, { 0640, 0600 },
		{ 0644, 0600 }, { 0604, 0600 }, { 0660, 0660 }, { 0666, 0666 },
		{ 0602, 0606 } };
	size_t i;

	for (i = 0; i < sizeof(mode) / sizeof(mode[0]); i++) {
		options.file_mode = mode[i][0];
		ck_assert_int_eq(try(EITHER | TRUST), KVR_OK);
		ck_assert_uint_eq(lock_mode(), S_IFREG | mode[i][1]);
		/* of a region that lost its lock file */
		ck_assert_int_eq(unlink(path_lock), 0);
		ck_assert_int_eq(try(ATTACH | TRUST), KVR_OK);
		ck_assert_uint_eq(lock_mode(), S_IFREG | mode[i][1]);
		/* left from another region */
		ck_assert_int_eq(unlink(path), 0);
		ck_assert_int_eq(chmod(path_lock, 0600), 0);
	}
}
END_TEST

/* Others could write the region for a while: its lock file follows back. */
START_TEST(opened_and_closed_to_others)
{
	made();
	ck_assert_int_eq(chmod(path, 0666), 0);
	ck_assert_int_eq(try(ATTACH), KVR_EPERM);
	ck_assert_uint_eq(lock_mode(), S_IFREG | 0600);
	ck_assert_int_eq(try(ATTACH | TRUST), KVR_OK);
	ck_assert_uint_eq(lock_mode(), S_IFREG | 0666);
	ck_assert_int_eq(chmod(path, 0640), 0);
	ck_assert_int_eq(try(ATTACH), KVR_OK);
	ck_assert_uint_eq(lock_mode(), S_IFREG | 0600);
}
END_TEST

/* The region is given away, as nginx does: its lock file follows. */
START_TEST(given_away)
{
	struct stat st;

	if (geteuid() != 0)
		test_skip("only root can give files away");
	made();
	ck_assert_int_eq(chown(path, STRANGER, STRANGER + 1), 0);
	ck_assert_int_eq(try(ATTACH | TRUST), KVR_OK);
	ck_assert_int_eq(stat(path_lock, &st), 0);
	ck_assert_uint_eq(st.st_uid, STRANGER);
	ck_assert_uint_eq(st.st_gid, STRANGER + 1);
	/* or not, or its group alone */
	ck_assert_int_eq(chown(path, STRANGER, STRANGER + 2), 0);
	sys_fail_from(SYS_FCHOWN, 1, EPERM);
	ck_assert_int_eq(try(ATTACH | TRUST), KVR_OK);
	ck_assert_uint_eq(sys_reset(), 2);
	ck_assert_int_eq(stat(path_lock, &st), 0);
	ck_assert_uint_eq(st.st_gid, STRANGER + 1);
	sys_fail_at(SYS_FCHOWN, 1, EPERM);
	ck_assert_int_eq(try(ATTACH | TRUST), KVR_OK);
	ck_assert_uint_eq(sys_reset(), 1);
	ck_assert_int_eq(stat(path_lock, &st), 0);
	ck_assert_uint_eq(st.st_gid, STRANGER + 2);
	/* but no file of another's that has its name */
	ck_assert_int_eq(unlink(path_lock), 0);
	file_cut(BYTES);
	ck_assert_int_eq(link(path, other), 0);
	ck_assert_int_eq(chown(path, 0, 0), 0);
	ck_assert_int_eq(unlink(path), 0);
	made();
	ck_assert_int_eq(unlink(path_lock), 0);
	ck_assert_int_eq(rename(other, path_lock), 0);
	ck_assert_int_eq(chown(path, STRANGER, STRANGER), 0);
	ck_assert_int_eq(try(ATTACH | TRUST), KVR_OK);
	ck_assert_int_eq(stat(path_lock, &st), 0);
	ck_assert_uint_eq(st.st_uid, 0);
}
END_TEST

/* It is not made for a file that is no region, nor to read. */
START_TEST(no_traces)
{
	memset(image, 'x', BYTES);
	file_write(image, BYTES);
	ck_assert_int_eq(try(ATTACH), KVR_EFORMAT);
	ck_assert_int_eq(try(EITHER), KVR_EFORMAT);
	ck_assert_int_eq(try(CREATE), KVR_EEXIST);
	ck_assert_int_eq(try(READONLY), KVR_EFORMAT);
	ck_assert(!file_there(path_lock));
	ck_assert_int_eq(unlink(path), 0);
	made();
	ck_assert_int_eq(unlink(path_lock), 0);
	ck_assert_int_eq(try(READONLY), KVR_OK);
	ck_assert(!file_there(path_lock));
}
END_TEST

/* Something else has its name. */
START_TEST(not_its_file)
{
	made();
	ck_assert_int_eq(unlink(path_lock), 0);
	ck_assert_int_eq(symlink(other, path_lock), 0);
	ck_assert_int_eq(try(ATTACH), KVR_ESYSTEM);
	ck_assert_int_eq(errno, ELOOP);
	ck_assert_int_eq(try(READONLY), KVR_OK);
	ck_assert_int_eq(unlink(path_lock), 0);
	ck_assert_int_eq(mkfifo(path_lock, 0600), 0);
	ck_assert_int_eq(try(ATTACH), KVR_EINVAL);
	ck_assert_int_eq(try(READONLY), KVR_OK);
	ck_assert_int_eq(unlink(path_lock), 0);
	ck_assert_int_eq(try(ATTACH), KVR_OK);
	if (geteuid() != 0)
		test_skip("only root can give files away");
	ck_assert_int_eq(chown(path_lock, STRANGER, (gid_t)-1), 0);
	ck_assert_int_eq(try(ATTACH), KVR_EPERM);
	ck_assert_int_eq(try(READONLY), KVR_OK);
	ck_assert_int_eq(try(ATTACH | TRUST), KVR_OK);
}
END_TEST

/* A process that holds GATE and does not go on keeps others for some time. */
START_TEST(gate_held_for_ever)
{
	struct entrance g = { .read = _i == 1 };
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = GATE, .l_len = 1 };
	int region, fd;
	int64_t since;

	made();
	fd = open(path_lock, O_RDWR);
	region = file_fd();
	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &l), 0);
	gate_name(&g, path);
	ck_assert_int_ge(g.wait_ns, 60000000000);
	g.wait_ns = 30000000;
	since = kvr_clock_now();
	ck_assert_int_eq(gate_enter(&g, region), KVR_EBUSY);
	ck_assert_int_ge(kvr_clock_now() - since, g.wait_ns);
	gate_leave(&g, true);
	close(fd);
	close(region);
	ck_assert_int_eq(try(ATTACH), KVR_OK);
}
END_TEST

/* ------------------------------------------- two lock files, one region --- */

/* Another path has a lock file of its own: refused while the first is open. */
static void
ck_not_by(const char *second)
{
	struct kvr *none = NULL;

	ck_assert_int_eq(kvr_open(second, strlen(second), ATTACH, &options,
	    &none), KVR_EMISMATCH);
	ck_assert_ptr_null(none);
	observe(0, "abcd", 10);
	closed();
	ck_assert_int_eq(kvr_open(second, strlen(second), ATTACH, &options,
	    &k), KVR_OK);
	observe(1, "abxy", 20);
	ck_tree(TREE);
	closed();
}

START_TEST(two_links)
{
	opened(CREATE);
	two_workers();
	ck_assert_int_eq(link(path, other), 0);
	ck_not_by(other);
}
END_TEST

START_TEST(renamed_while_open)
{
	opened(CREATE);
	two_workers();
	ck_assert_int_eq(rename(path, other), 0);
	ck_not_by(other);
}
END_TEST

START_TEST(lock_file_removed)
{
	opened(CREATE);
	two_workers();
	ck_assert_int_eq(unlink(path_lock), 0);
	ck_not_by(path);
}
END_TEST

/* ------------------------------------------------ users that only read --- */

/* All that one may lock that can open the file for reading. */
static int
read_locks(void)
{
	struct flock l = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	int fd = open(path, O_RDONLY);

	if (fd == -1 || fcntl(fd, F_OFD_SETLK, &l) == -1)
		return -1;
	return fd;
}

/* A user that may only read the file keeps no writer out (poc_gate). */
START_TEST(read_locks_everywhere)
{
	struct kvr *second;
	int fd;

	options.file_mode = 0644;
	made();
	fd = read_locks();
	ck_assert_int_ge(fd, 0);
	again();
	ck_assert_int_eq(open_as(ATTACH, &second), KVR_OK);
	kvr_free(second);
	kvr_free(k);
	die_after(change_it);
	again(); /* it finds itself alone */
	ck_tree("");
	ck_assert_uint_eq(stats().recoveries, 1);
	closed();
	close(fd);
}
END_TEST

/* The same by a user of its own, which cannot open the lock file. */
START_TEST(reading_user)
{
	int ends[2], status;
	char byte = 0;
	pid_t child;

	if (geteuid() != 0)
		test_skip("only root can become another user");
	ck_assert_int_eq(chmod(folder, 0755), 0);
	options.file_mode = 0644;
	made();
	ck_assert_int_eq(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		close(ends[0]);
		if (setgid(STRANGER) != 0 || setuid(STRANGER) != 0 ||
		    read_locks() == -1)
			_exit(1);
		if (open(path_lock, O_RDONLY) != -1 || errno != EACCES ||
		    open(path_lock, O_RDWR) != -1 || errno != EACCES)
			_exit(2);
		if (open_as(READONLY | TRUST, &k) != KVR_OK)
			_exit(3);
		if (write(ends[1], &byte, 1) != 1)
			_exit(4);
		(void)pause();
	}
	close(ends[1]);
	ck_assert_int_eq(read(ends[0], &byte, 1), 1);
	again();
	ck_tree(TREE);
	closed();
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
}
END_TEST

/* Without the lock file a reader can only watch a change. */
START_TEST(reader_beside_a_change)
{
	struct kvr *reading;

	made();
	again();
	atomic_fetch_add(&k->region->seq, 1);
	ck_assert_int_eq(unlink(path_lock), 0);
	ck_assert_int_eq(try(READONLY), KVR_ESTATE);
	atomic_fetch_add(&k->region->seq, 1);
	ck_assert_int_eq(open_as(READONLY, &reading), KVR_OK);
	kvr_free(reading);
	closed();
}
END_TEST

/* ---------------------------------------------------------- containers --- */

struct meeting {
	_Atomic int ready, go;
};
static struct meeting *meeting;

static void
meeting_make(void)
{
	meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(meeting, MAP_FAILED);
}

static void
until(_Atomic int *number, int least)
{
	while (atomic_load(number) < least)
		usleep(100);
}

/* Process 1 of its namespace, in the middle of a change. */
static void
holder(void)
{
	if (getpid() != 1 || open_as(ATTACH, &k) != KVR_OK)
		_exit(10);
	change_it();
	atomic_store(&meeting->ready, 1);
	for (;;)
		(void)pause();
}

/* Runs as process 1, too; dies with a handle open, and without the lock. */
static void
passer_by(void)
{
	struct kvr_stats s = { .size = sizeof(s) };

	if (getpid() != 1 || open_as(ATTACH, &k) != KVR_OK)
		_exit(10);
	(void)kvr_nowait_set(k, 1);
	if (kvr_stats_get(k, &s) != KVR_EBUSY)
		_exit(11);
	(void)kill(getpid(), SIGKILL); /* without effect on a process 1 */
	_exit(12);
}

/*
 * Containers each have a process 1. The death of one frees no lock of another,
 * and the death of the owner is found (poc_pidns).
 */
START_TEST(containers)
{
	struct container owner, guest;
	int64_t since;
	int i, n = (int)test_amount(20);

	made();
	again();
	meeting_make();
	if (!container_start(&owner, holder))
		test_skip("only root can make a PID namespace");
	until(&meeting->ready, 1);
	ck_assert_int_eq(kill(owner.inner, SIGSTOP), 0);
	for (i = 0; i < n; i++) {
		ck_assert(container_start(&guest, passer_by));
		ck_assert_int_eq(container_end(&guest), 12);
		ck_assert_int_eq(region_lock(k, false), KVR_EBUSY);
	}
	k->wait_ns = 100000000;
	ck_assert_int_eq(kvr_clear(k), KVR_EBUSY);
	k->wait_ns = LOCK_WAIT_NS;
	ck_assert_int_eq(kill(owner.inner, SIGKILL), 0);
	since = kvr_clock_now();
	ck_tree("");
	since = (kvr_clock_now() - since) / 1000000;
	ck_assert_int_lt(since, 2000); /* 40 if the machine is not busy */
	ck_assert_uint_eq(stats().recoveries, 1);
	ck_assert_int_eq(container_end(&owner), 97);
	closed();
	ck_assert(!attached());
}
END_TEST

/* Two of them write, and one after the other is killed. */
static void
writer(void)
{
	if (open_as(ATTACH, &k) != KVR_OK)
		_exit(10);
	atomic_fetch_add(&meeting->ready, 1);
	for (;;)
		if (kvr_observe(k, p, id[0], 10, 0, NULL) != KVR_OK ||
		    kvr_expire(k, 10 + TTL, 10, NULL) != KVR_OK)
			_exit(11);
}

START_TEST(containers_killed)
{
	struct container c[2];
	int i, n = (int)test_amount(20);

	made();
	again();
	say("abcdefgh");
	meeting_make();
	if (!container_start(&c[0], writer))
		test_skip("only root can make a PID namespace");
	for (i = 1; i < n; i++) {
		ck_assert(container_start(&c[i % 2], writer));
		until(&meeting->ready, i + 1);
		usleep(1000);
		ck_assert_int_eq(kill(c[(i + 1) % 2].inner, SIGKILL), 0);
		ck_assert_int_eq(container_end(&c[(i + 1) % 2]), 97);
		ck_assert_int_eq(kvr_check(k), KVR_OK);
	}
	ck_assert_int_eq(kill(c[(i + 1) % 2].inner, SIGKILL), 0);
	ck_assert_int_eq(container_end(&c[(i + 1) % 2]), 97);
	closed();
}
END_TEST

/* ------------------------------------------------------------------- suite */

/* A name with no room for the suffix: nothing is made. */
START_TEST(name_too_long)
{
	char name[NAME_MAX + 1] = "";
	size_t length;

	for (length = NAME_MAX - 6; length <= NAME_MAX; length++) {
		memset(name, 'n', length);
		name[length] = '\0';
		if (kvr_open(name, length, CREATE, &options, &k) == KVR_OK) {
			kvr_free(k);
			ck_assert_uint_le(length, NAME_MAX - 5);
			ck_assert_int_eq(unlink(name), 0);
			strcat(name, ".lock");
			ck_assert_int_eq(unlink(name), 0);
			continue;
		}
		ck_assert_int_eq(errno, ENAMETOOLONG);
		ck_assert_uint_gt(length, NAME_MAX - 5);
		ck_assert(!file_there(name));
	}
}
END_TEST

Suite *suite_gate(void);

Suite *
suite_gate(void)
{
	Suite *s = suite_create("gate");
	TCase *t;

	t = files_case(s, "file");
	tcase_add_test(t, modes);
	tcase_add_test(t, opened_and_closed_to_others);
	tcase_add_test(t, given_away);
	tcase_add_test(t, no_traces);
	tcase_add_test(t, not_its_file);
	tcase_add_loop_test(t, gate_held_for_ever, 0, 2);
	t = files_case(s, "two");
	tcase_add_test(t, two_links);
	tcase_add_test(t, renamed_while_open);
	tcase_add_test(t, lock_file_removed);
	t = files_case(s, "readers");
	tcase_add_test(t, read_locks_everywhere);
	tcase_add_test(t, reading_user);
	tcase_add_test(t, reader_beside_a_change);
	t = files_case(s, "containers");
	tcase_add_test(t, containers);
	tcase_add_test(t, containers_killed);
	tcase_add_test(t, name_too_long);
	return s;
}
