/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_file.c - regions in files: who may open what, what is left behind, and
 * what whoever comes next makes of it.
 *
 * Each test has a folder of its own. `k` and `p` are inner.h's; a process that
 * ended is played by a copy of the file as it would have left it, or is one.
 */
#define _GNU_SOURCE
#include "inner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
	BYTES = 24 << 10,
	CREATE = KVR_OPEN_CREATE,
	ATTACH = KVR_OPEN_ATTACH,
	EITHER = KVR_OPEN_CREATE | KVR_OPEN_ATTACH,
	READONLY = KVR_OPEN_READONLY,
	TRUST = KVR_OPEN_TRUST,
	STRANGER = 12345, /* a user and a group that nobody is */
	GATE = 0, ATTACHED = 1
};

static char folder[PATH_MAX], path[PATH_MAX], other[PATH_MAX];
static struct kvr_options options;
static unsigned char image[BYTES], image_then[BYTES];

static void
setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/kvroute-test-XXXXXX",
	    tmp == NULL ? "/tmp" : tmp);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%.*s/region", PATH_MAX - 10, folder);
	snprintf(other, sizeof(other), "%.*s/other", PATH_MAX - 10, folder);
	options = small_options();
	options.region_bytes = BYTES;
}

static void
teardown(void)
{
	kvr_prompt_free(p);
	(void)unlink(path);
	(void)unlink(other);
	/* nothing else was left there */
	ck_assert_int_eq(rmdir(folder), 0);
}

static int
open_as(uint32_t flags, struct kvr **out)
{
	return kvr_open(path, strlen(path), flags, &options, out);
}

/* The error of opening; what was opened is closed again. */
static int
try(uint32_t flags)
{
	struct kvr *made = NULL;
	int error = open_as(flags, &made), saved = errno;

	ck_assert_int_eq(made != NULL, error == KVR_OK);
	kvr_free(made);
	errno = saved;
	return error;
}

static void
opened(uint32_t flags)
{
	ck_assert_int_eq(open_as(flags, &k), KVR_OK);
}

/* And the prompt of this test, which the teardown frees. */
static void
two_workers(void)
{
	kvr_prompt_free(p);
	people(2);
}

/* A region with two workers and a tree of two prompts, nobody attached. */
#define TREE "ab:01(cd:0 xy:1)"
static void
made(void)
{
	opened(CREATE);
	two_workers();
	observe(0, "abcd", 10);
	observe(1, "abxy", 20);
	kvr_free(k);
}

static void
again(void)
{
	opened(ATTACH);
}

static void
closed(void)
{
	region_sound();
	kvr_free(k);
}

static struct stat
file_stat(void)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return st;
}

static bool
file_there(const char *name)
{
	return access(name, F_OK) == 0;
}

static int
file_fd(void)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* The whole file; what is beyond `bytes` is left as it is. */
static void
file_read(void *to, size_t bytes)
{
	int fd = file_fd();

	ck_assert_int_eq(pread(fd, to, bytes, 0), (ssize_t)bytes);
	close(fd);
}

static void
file_write(const void *from, size_t bytes)
{
	int fd = file_fd();

	ck_assert_int_eq(pwrite(fd, from, bytes, 0), (ssize_t)bytes);
	close(fd);
}

static void
file_cut(off_t bytes)
{
	int fd = file_fd();

	ck_assert_int_eq(ftruncate(fd, bytes), 0);
	close(fd);
}

/* Does any handle of any process hold this byte of the file? */
static bool
held(off_t byte)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = byte, .l_len = 1 };
	int fd = file_fd();

	ck_assert_int_eq(fcntl(fd, F_OFD_GETLK, &l), 0);
	close(fd);
	return l.l_type != F_UNLCK;
}

/* ------------------------------------------------- the file is, or is not */

START_TEST(create)
{
	struct kvr *second = NULL;

	opened(CREATE);
	ck_assert_uint_eq(file_stat().st_mode, S_IFREG | 0600);
	ck_assert_int_eq(file_stat().st_size, BYTES);
	ck_assert_int_ge(file_stat().st_blocks * 512, BYTES);
	ck_assert_uint_eq(stats().region_bytes, BYTES);
	ck_assert(held(ATTACHED));
	ck_assert(!held(GATE));
	ck_assert_int_eq(open_as(CREATE, &second), KVR_EEXIST);
	ck_assert_ptr_null(second);
	closed();
	ck_assert(!held(ATTACHED));
	ck_assert_int_eq(try(CREATE), KVR_EEXIST);
}
END_TEST

START_TEST(absent)
{
	static const uint32_t flags[] = { ATTACH, READONLY, ATTACH | TRUST,
		READONLY | TRUST };
	size_t i;

	for (i = 0; i < 4; i++) {
		errno = 0;
		ck_assert_int_eq(try(flags[i]), KVR_ESYSTEM);
		ck_assert_int_eq(errno, ENOENT);
		ck_assert(!file_there(path));
	}
}
END_TEST

/* Whichever is the case; the size is the file's. */
START_TEST(create_or_attach)
{
	opened(EITHER);
	two_workers();
	observe(0, "abcd", 10);
	kvr_free(k);
	options.region_bytes *= 4;
	opened(EITHER);
	ck_tree("abcd:0");
	ck_assert_uint_eq(stats().region_bytes, BYTES);
	ck_assert_int_eq(file_stat().st_size, BYTES);
	closed();
	options.region_bytes = 1; /* would be too small to create */
	opened(EITHER);
	closed();
	ck_assert_int_eq(kvr_open(path, strlen(path), ATTACH, NULL, &k),
	    KVR_OK);
	ck_tree("abcd:0");
	kvr_free(k);
}
END_TEST

START_TEST(nonsense)
{
	static const uint32_t flags[] = { 0, TRUST, 16, 16 | EITHER,
		CREATE | READONLY, ATTACH | READONLY, EITHER | READONLY,
		UINT32_MAX };
	static const uint32_t modes[] = { 0, 0400, 0200, 0700, 0610, 0601,
		01600, 04600, 0100600, UINT32_MAX };
	char longest[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		ck_assert_int_eq(try(flags[i]), KVR_EINVAL);
		ck_assert_int_eq(kvr_open_fd(0, flags[i], &options, &k),
		    KVR_EINVAL);
	}
	ck_assert_int_eq(open_as(EITHER, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_open(NULL, 1, EITHER, NULL, &k), KVR_EINVAL);
	ck_assert_int_eq(kvr_open(path, 0, EITHER, NULL, &k), KVR_EINVAL);
	ck_assert_int_eq(kvr_open(path, strlen(path) + 1, EITHER, NULL, &k),
	    KVR_EINVAL);
	memset(longest, 'x', sizeof(longest));
	ck_assert_int_eq(kvr_open(longest, PATH_MAX, EITHER, NULL, &k),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_open(longest, SIZE_MAX, EITHER, NULL, &k),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_open(longest, PATH_MAX - 1, EITHER, NULL, &k),
	    KVR_ESYSTEM);
	ck_assert_int_eq(errno, ENAMETOOLONG);
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		options.file_mode = modes[i];
		ck_assert_int_eq(try(EITHER | TRUST), KVR_EINVAL);
	}
	options.file_mode = 0600;
	options.file_group = UINT32_MAX;
	ck_assert_int_eq(try(EITHER), KVR_EINVAL);
	ck_assert(!file_there(path));
}
END_TEST

/* The path need not end in NUL, and an options struct of before has neither
 * of the new fields. */
START_TEST(border)
{
	size_t length = strlen(path);

	path[length] = 'x';
	options.size = offsetof(struct kvr_options, boot_id);
	options.file_mode = options.file_group = 99;
	memset(options.boot_id, 'b', KVR_BOOT_ID_BYTES);
	ck_assert_int_eq(kvr_open(path, length, EITHER, &options, &k),
	    KVR_OK);
	path[length] = '\0';
	ck_assert_uint_eq(file_stat().st_mode, S_IFREG | 0600);
	ck_assert_uint_eq(k->region->boot_id[0], 0);
	closed();
}
END_TEST

/* ------------------------------------------------------ who may open what */

START_TEST(modes)
{
	static const uint32_t mode[] = { 0600, 0640, 0644, 0604 };
	static const mode_t masks[] = { 0, 022, 077, 0777 };
	int i;

	for (i = 0; i < 16; i++) {
		(void)umask(masks[i / 4]);
		options.file_mode = mode[i % 4];
		ck_assert_int_eq(try(CREATE), KVR_OK);
		ck_assert_uint_eq(file_stat().st_mode, S_IFREG | mode[i % 4]);
		ck_assert_int_eq(try(ATTACH), KVR_OK);
		ck_assert_int_eq(unlink(path), 0);
	}
}
END_TEST

/* A file that may not be opened again is not made either. */
START_TEST(modes_of_trust)
{
	static const uint32_t mode[] = { 0660, 0602, 0666 };
	int i;

	for (i = 0; i < 3; i++) {
		options.file_mode = mode[i];
		ck_assert_int_eq(try(EITHER), KVR_EPERM);
		ck_assert(!file_there(path));
		ck_assert_int_eq(try(EITHER | TRUST), KVR_OK);
		ck_assert_uint_eq(file_stat().st_mode, S_IFREG | mode[i]);
		ck_assert_int_eq(try(EITHER), KVR_EPERM);
		ck_assert_int_eq(try(ATTACH), KVR_EPERM);
		ck_assert_int_eq(try(READONLY), KVR_EPERM);
		ck_assert_int_eq(try(ATTACH | TRUST), KVR_OK);
		ck_assert_int_eq(try(READONLY | TRUST), KVR_OK);
		ck_assert_int_eq(unlink(path), 0);
	}
}
END_TEST

START_TEST(groups)
{
	gid_t group = STRANGER, mine[64];
	int i, n;

	if (geteuid() != 0) {
		n = getgroups(64, mine);
		for (i = 0; i < n && mine[i] == getegid(); i++)
			continue;
		if (i >= n)
			test_skip("this user is in one group only");
		group = mine[i];
	}
	options.file_group = (uint32_t)group;
	options.file_mode = 0640;
	ck_assert_int_eq(try(CREATE), KVR_OK);
	ck_assert_uint_eq(file_stat().st_gid, group);
	ck_assert_uint_eq(file_stat().st_mode, S_IFREG | 0640);
	/* nothing of a file that was there is changed */
	options.file_group = (uint32_t)getegid();
	options.file_mode = 0600;
	ck_assert_int_eq(try(EITHER), KVR_OK);
	ck_assert_uint_eq(file_stat().st_gid, group);
	ck_assert_uint_eq(file_stat().st_mode, S_IFREG | 0640);
}
END_TEST

START_TEST(foreign_owner)
{
	if (geteuid() != 0)
		test_skip("only root can give files away");
	made();
	ck_assert_int_eq(chown(path, STRANGER, (gid_t)-1), 0);
	ck_assert_int_eq(try(ATTACH), KVR_EPERM);
	ck_assert_int_eq(try(EITHER), KVR_EPERM);
	ck_assert_int_eq(try(READONLY), KVR_EPERM);
	ck_assert_int_eq(try(CREATE), KVR_EEXIST);
	ck_assert_int_eq(try(ATTACH | TRUST), KVR_OK);
	ck_assert_int_eq(try(READONLY | TRUST), KVR_OK);
}
END_TEST

/* Not allowed to: the system's word, and nothing is left. */
START_TEST(not_allowed)
{
	int status;
	pid_t child;

	if (geteuid() != 0)
		test_skip("only root can become somebody else");
	ck_assert_int_eq(chmod(folder, 0755), 0);
	made();
	child = fork();
	if (child == 0) {
		if (setgid(STRANGER) != 0 || setuid(STRANGER) != 0)
			_exit(2);
		if (open_as(ATTACH | TRUST, &k) != KVR_ESYSTEM ||
		    errno != EACCES)
			_exit(3);
		if (kvr_open(other, strlen(other), CREATE, NULL, &k) !=
		    KVR_ESYSTEM || errno != EACCES)
			_exit(4);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert(!file_there(other));
}
END_TEST

START_TEST(no_plain_file)
{
	static const uint32_t flags[] = { ATTACH, EITHER, CREATE, READONLY };
	char here[] = ".";
	int i;

	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(symlink(other, path), 0);
		ck_assert_int_eq(try(flags[i]), flags[i] == CREATE
		    ? KVR_EEXIST : KVR_ESYSTEM);
		ck_assert_int_eq(errno, flags[i] == CREATE ? EEXIST : ELOOP);
		ck_assert(!file_there(other));
		ck_assert_int_eq(unlink(path), 0);
		/* nobody is at the other end, and nobody waits for him */
		ck_assert_int_eq(mkfifo(path, 0600), 0);
		ck_assert_int_eq(try(flags[i]), flags[i] == CREATE
		    ? KVR_EEXIST : KVR_EINVAL);
		ck_assert_int_eq(unlink(path), 0);
	}
	ck_assert_int_eq(kvr_open(here, 1, ATTACH, NULL, &k), KVR_ESYSTEM);
	ck_assert_int_eq(errno, EISDIR);
	ck_assert_int_eq(kvr_open(here, 1, READONLY, NULL, &k), KVR_EINVAL);
}
END_TEST

/* --------------------------------------------------------- several at once */

START_TEST(two_addresses)
{
	struct kvr *first, *second;

	opened(CREATE);
	two_workers();
	first = k;
	again();
	second = k;
	ck_assert_ptr_ne(first->region, second->region);
	observe(0, "abcd", 10);
	k = first;
	ck_tree("abcd:0");
	observe(1, "abxy", 20);
	k = second;
	ck_tree(TREE);
	kvr_free(first);
	ck_assert(held(ATTACHED));
	kvr_free(second);
	again();
	ck_tree(TREE);
	closed();
}
END_TEST

enum { CHILDREN = 8, ROUNDS = 40 };

static void
all_leave(pid_t *child, int n)
{
	int i, status;

	for (i = 0; i < n; i++) {
		ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
		ck_assert_msg(status == 0, "child %d: %x", i,
		    (unsigned)status);
	}
}

/* All find one region, whoever of them makes it. */
START_TEST(processes)
{
	uint64_t round, rounds = test_amount(ROUNDS);
	pid_t child[CHILDREN];
	char name;
	int i;

	options.max_workers = CHILDREN;
	options.region_bytes = 2 * BYTES;
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < CHILDREN; i++) {
			child[i] = fork();
			if (child[i] != 0)
				continue;
			name = (char)('0' + i);
			if (open_as(EITHER, &k) != KVR_OK)
				_exit(1);
			if (kvr_worker_add(k, &name, 1, NULL, id) != KVR_OK)
				_exit(2);
			kvr_free(k);
			_exit(0);
		}
		all_leave(child, CHILDREN);
		again();
		ck_assert_uint_eq(stats().workers, CHILDREN);
		ck_assert_uint_eq(stats().emptied, 0);
		closed();
		ck_assert_int_eq(unlink(path), 0);
	}
}
END_TEST

/* One makes it; to all others it is there, and whole. */
START_TEST(one_creates)
{
	uint64_t round, rounds = test_amount(ROUNDS);
	int i, status, error, creators;
	pid_t child[CHILDREN];

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < CHILDREN; i++) {
			child[i] = fork();
			if (child[i] != 0)
				continue;
			error = open_as(CREATE, &k);
			_exit(error == KVR_OK ? 0 : error == KVR_EEXIST ? 1 :
			    2);
		}
		for (creators = i = 0; i < CHILDREN; i++) {
			ck_assert_int_eq(waitpid(child[i], &status, 0),
			    child[i]);
			ck_assert(WIFEXITED(status));
			ck_assert_int_le(WEXITSTATUS(status), 1);
			creators += WEXITSTATUS(status) == 0;
		}
		ck_assert_int_eq(creators, 1);
		again();
		closed();
		ck_assert_int_eq(unlink(path), 0);
	}
}
END_TEST

/* A child has the handle too, and is attached as long as it lives. */
START_TEST(forked)
{
	int out[2], back[2], status;
	char byte = 0;
	pid_t child;

	opened(CREATE);
	two_workers();
	say("abxy"); /* the letters, for the drawing */
	ck_assert_int_eq(pipe(out), 0);
	ck_assert_int_eq(pipe(back), 0);
	child = fork();
	if (child == 0) {
		close(out[1]);
		close(back[0]);
		if (read(out[0], &byte, 1) != 1)
			_exit(1);
		observe(1, "abxy", 20);
		kvr_free(k);
		if (write(back[1], &byte, 1) != 1)
			_exit(1);
		_exit(read(out[0], &byte, 1) == 0 ? 0 : 1);
	}
	close(back[1]);
	observe(0, "abcd", 10);
	kvr_free(k);
	ck_assert(held(ATTACHED));
	ck_assert_int_eq(write(out[1], &byte, 1), 1);
	ck_assert_int_eq(read(back[0], &byte, 1), 1);
	ck_assert(!held(ATTACHED));
	again();
	ck_tree(TREE);
	closed();
	close(out[1]);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* Who waited at the gate of a file that was removed meanwhile makes another. */
START_TEST(removed_while_waiting)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = GATE, .l_len = 1 };
	struct timespec while_it_waits = { 0, 50000000 };
	int fd = file_fd(), status;
	pid_t child;

	ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &l), 0);
	child = fork();
	if (child == 0) {
		close(fd);
		_exit(open_as(EITHER, &k) == KVR_OK ? 0 : 1);
	}
	(void)nanosleep(&while_it_waits, NULL);
	ck_assert_int_eq(waitpid(child, &status, WNOHANG), 0);
	ck_assert_int_eq(unlink(path), 0);
	close(fd);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	again();
	closed();
}
END_TEST

/* ------------------------------------------------------------ warm restart */

START_TEST(warm)
{
	uint64_t lease;

	made();
	again();
	ck_tree(TREE);
	ck_assert_uint_eq(stats().workers, 2);
	ck_assert_int_eq(stats().clock, 20);
	ck_assert_uint_eq(stats().emptied, 0);
	ck_assert_uint_eq(stats().observes, 2);
	say("abcd");
	ck_assert_uint_eq(overlap(0, 10 + TTL - 1), 4);
	ck_assert_uint_eq(overlap(0, 10 + TTL), 0);
	ck_assert_uint_eq(overlap(1, 20 + TTL - 1), 2);
	ck_assert_uint_eq(overlap(1, 20 + TTL), 0);
	lease = reserve(0, "abcd", 30);
	closed();
	again();
	ck_tree("ab:0!1(cd:0! xy:1)");
	commit(lease, 40);
	finish(lease, 50);
	ck_assert_uint_eq(overlap(0, 50 + TTL - 1), 4);
	closed();
}
END_TEST

/* Options in force are the region's, secret and policy too. */
START_TEST(durable)
{
	struct kvr_policy policy = { .size = sizeof(policy) };
	struct kvr_options got = { .size = sizeof(got) };
	uint64_t sequence, local, before;

	options.secret_kind = KVR_SECRET_RANDOM;
	opened(CREATE);
	two_workers();
	say("abcd");
	ck_assert_int_eq(kvr_prompt_hash(p, 3, &local, &before), KVR_OK);
	ck_assert_int_eq(kvr_get_policy(k, &policy), KVR_OK);
	policy.temperature = 0.5;
	ck_assert_int_eq(kvr_set_policy(k, &policy), KVR_OK);
	kvr_free(k);
	options.ttl_ns = 5;
	again();
	kvr_prompt_free(p);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	say("abcd");
	ck_assert_int_eq(kvr_prompt_hash(p, 3, &local, &sequence), KVR_OK);
	ck_assert_uint_eq(sequence, before);
	ck_assert_int_eq(kvr_get_policy(k, &policy), KVR_OK);
	ck_assert(policy.temperature > 0.4 && policy.temperature < 0.6);
	ck_assert_int_eq(kvr_get_options(k, &got), KVR_OK);
	ck_assert_int_eq(got.ttl_ns, TTL);
	ck_assert_uint_eq(got.region_bytes, BYTES);
	closed();
}
END_TEST

START_TEST(other_options)
{
	const struct kvr_options good = options;

	made();
	file_read(image, BYTES);
#define OTHER(change) do { \
	options = good; \
	change; \
	ck_assert_msg(try(EITHER) == KVR_EMISMATCH, #change); \
	ck_assert_int_eq(try(READONLY), KVR_EMISMATCH); \
	file_read(image_then, BYTES); \
	ck_assert_mem_eq(image, image_then, BYTES); \
} while (0)
	OTHER(options.block_size++);
	OTHER(options.unit = KVR_UNIT_BYTES);
	OTHER(options.hash = KVR_HASH_DYNAMO);
	OTHER(options.eagle = 1);
	OTHER(options.max_workers++);
	OTHER(options.secret[7]++);
	options = good;
	ck_assert_int_eq(try(ATTACH), KVR_OK);
}
END_TEST

/* -------------------------------------------------- deaths and other damage */

/* A child does this to a handle of its own and is gone the next moment. */
static void
die_after(void (*deed)(void))
{
	int status;
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		again();
		deed();
		(void)kill(getpid(), SIGKILL);
		_exit(1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void
lock_it(void)
{
	must(region_lock(k, true) == KVR_OK);
}

/* In the middle of a change that has spoilt what it could. */
static void
change_it(void)
{
	lock_it();
	atomic_fetch_add(&k->region->version, 1);
	memset(k->node_buckets, 0xff, k->layout.node_buckets * 4);
	memset(&k->cells[1], 0xff, 20 * CELL);
	k->region->fresh = k->region->free_top = k->region->free_cells = 9;
	k->region->name_free = 77;
}

static void
ck_emptied(uint64_t times)
{
	ck_tree("");
	ck_assert_uint_eq(stats().emptied, times);
	ck_assert_uint_eq(stats().workers, 2);
	ck_assert_uint_eq(atomic_load(&k->region->version) & 1, 0);
	observe(0, "abcd", 30);
	observe(1, "abxy", 40);
	ck_tree(TREE);
}

START_TEST(died_in_a_change)
{
	made();
	die_after(change_it);
	again();
	ck_emptied(1);
	closed();
}
END_TEST

START_TEST(died_between_changes)
{
	made();
	die_after(lock_it);
	again();
	ck_tree(TREE);
	ck_assert_uint_eq(stats().emptied, 0);
	closed();
}
END_TEST

/* Somebody else is attached all the time: the lock itself tells. */
START_TEST(died_in_company)
{
	struct kvr *first;

	made();
	again();
	first = k;
	die_after(change_it);
	again();
	ck_emptied(1);
	kvr_free(k);
	k = first;
	ck_tree(TREE);
	die_after(lock_it);
	ck_tree(TREE);
	closed();
}
END_TEST

/* Opens, writes a little and closes, until it is killed. */
static void
come_and_go(void)
{
	uint64_t worker;
	char name = 'x';
	int error;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)alarm(100); /* nothing takes so long */
	for (;;) {
		if (open_as(EITHER, &k) != KVR_OK)
			_exit(1);
		error = kvr_worker_add(k, &name, 1, NULL, &worker);
		if (error == KVR_EEXIST)
			error = kvr_worker_find(k, &name, 1, 0, &worker);
		if (error != KVR_OK || kvr_prompt_new(k, &p) != KVR_OK)
			_exit(2);
		say("abcdefgh");
		if (kvr_observe(k, p, worker, 9, 0, NULL) != KVR_OK)
			_exit(3);
		kvr_prompt_free(p);
		kvr_free(k);
	}
}

/*
 * Killed anywhere: before there is a file, while it is made, inside the gate,
 * in a change. Nobody hangs, and what is there is a region.
 */
START_TEST(killed_anywhere)
{
	uint64_t round, rounds = test_amount(150);
	struct timespec later = { 0, 0 };
	pid_t child[3];
	int i, status;

	by_chance();
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < 3; i++) {
			child[i] = fork();
			if (child[i] == 0)
				come_and_go();
		}
		later.tv_nsec = pick(3000000);
		(void)nanosleep(&later, NULL);
		for (i = 0; i < 3; i++) {
			(void)kill(child[i], SIGKILL);
			if (i == 1) { /* one still comes and goes */
				opened(EITHER);
				region_sound();
				kvr_free(k);
			}
		}
		for (i = 0; i < 3; i++) {
			must(waitpid(child[i], &status, 0) == child[i]);
			must(WIFSIGNALED(status));
		}
		must(!held(GATE) && !held(ATTACHED));
		opened(EITHER);
		must(stats().workers <= 1);
		closed();
		if (pick(3) == 0)
			ck_assert_int_eq(unlink(path), 0);
	}
}
END_TEST

/* Power was lost: the lock is held by nobody who could ever die. */
START_TEST(lock_of_nobody)
{
	made();
	again();
	lock_it();
	file_read(image, BYTES);
	region_unlock(k);
	kvr_free(k);
	file_write(image, BYTES);
	again();
	ck_tree(TREE);
	observe(1, "mn", 50);
	closed();
}
END_TEST

/* What the file holds is changed while nobody is attached. */
static struct kvr *
in_image(void)
{
	static struct kvr inside;

	file_read(image, BYTES);
	memset(&inside, 0, sizeof(inside));
	ck_assert_int_eq(region_attach(image, BYTES, &inside), KVR_OK);
	return &inside;
}

#define DAMAGED(change) do { \
	struct kvr *in = in_image(); \
	struct region *r = in->region; \
	const uint64_t emptied = r->counts.emptied; \
	change; \
	file_write(image, BYTES); \
	again(); \
	ck_emptied(emptied + 1); \
	closed(); \
} while (0)

START_TEST(broken_index)
{
	made();
	DAMAGED(r->counts.nodes++);
	DAMAGED(r->counts.leases++);
	DAMAGED(r->fresh += 5);
	DAMAGED(r->free_top = 3);
	DAMAGED(memset(in->cells, 0xff, 10 * CELL));
	DAMAGED(memset(in->cells, 0, 10 * CELL));
	DAMAGED(memset(in->entry_buckets, 1, in->layout.entry_buckets * 4));
	DAMAGED(in->slots[1].held++);
	DAMAGED(in->winner[1] ^= 1);
	DAMAGED(r->clock = -2);
	DAMAGED(r->clock = INT64_MAX);
	DAMAGED(r->policy.temperature = (double)NAN);
	DAMAGED(r->policy.cost = 99);
	DAMAGED(r->name_free = 1);
	DAMAGED(r->workers = 9);
	DAMAGED(memset(in->name_buckets, 0xff, in->layout.name_buckets * 4));
	DAMAGED(r->shared = 0; atomic_store(&r->version, 1));
}
END_TEST

/* Two workers of one name cannot be told apart: both go, with their ids. */
START_TEST(broken_workers)
{
	uint64_t now[2], gone;
	struct kvr *in;

	made();
	in = in_image();
	in->names[1].text[0] = in->names[0].text[0];
	file_write(image, BYTES);
	again();
	ck_tree("");
	ck_assert_uint_eq(stats().emptied, 1);
	ck_assert_uint_eq(stats().workers, 0);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &gone), KVR_EWORKER);
	now[0] = worker_of('0');
	now[1] = worker_of('1');
	ck_assert(now[0] != id[0] && now[0] != id[1]);
	ck_assert(now[1] != id[0] && now[1] != id[1]);
	closed();
}
END_TEST

/* Each byte of what is sealed: an error, and the file is as it was. */
START_TEST(damaged_seal)
{
	const size_t version = offsetof(struct seal, version);
	size_t i;

	made();
	file_read(image, BYTES);
	for (i = 0; i < offsetof(struct region, checksum) + 8; i++) {
		image[i] ^= 0xff;
		file_write(image, BYTES);
		ck_assert_int_eq(try(EITHER), i - version < 4 ? KVR_EVERSION
		    : KVR_EFORMAT);
		ck_assert_int_eq(try(READONLY), i - version < 4
		    ? KVR_EVERSION : KVR_EFORMAT);
		file_read(image_then, BYTES);
		ck_assert_mem_eq(image, image_then, BYTES);
		image[i] ^= 0xff;
	}
	file_write(image, BYTES);
	again();
	ck_tree(TREE);
	closed();
}
END_TEST

static void
ck_refused(int error)
{
	off_t size = file_stat().st_size;

	file_read(image, (size_t)size < BYTES ? (size_t)size : BYTES);
	ck_assert_int_eq(try(EITHER), error);
	ck_assert_int_eq(try(ATTACH), error);
	ck_assert_int_eq(try(READONLY), error);
	ck_assert_int_eq(file_stat().st_size, size);
	file_read(image_then, (size_t)size < BYTES ? (size_t)size : BYTES);
	ck_assert_mem_eq(image, image_then, sizeof(image));
}

static void
reseal(struct region *r)
{
	r->checksum = XXH3_64bits(&r->seal, sizeof(r->seal));
	file_write(image, BYTES);
}

START_TEST(other_formats)
{
	struct region *r = (struct region *)(void *)image;
	uint64_t magic;
	size_t i;

	made();
	file_read(image, BYTES);
	r->seal.version++;
	reseal(r);
	ck_refused(KVR_EVERSION);
	r->seal.version--;
	/* of a machine that writes its bytes the other way round */
	magic = r->seal.magic;
	for (i = 0; i < 8; i++)
		image[i] = (unsigned char)(magic >> (8 * (7 - i)));
	if (r->seal.magic == magic)
		for (i = 0; i < 8; i++)
			image[i] = (unsigned char)(magic >> (8 * i));
	reseal(r);
	ck_refused(KVR_EFORMAT);
	r->seal.magic = magic;
	r->seal.byte_order = 0x04030201;
	reseal(r);
	ck_refused(KVR_EFORMAT);
	r->seal.byte_order = 0x01020304;
	reseal(r);
	ck_assert_int_eq(try(ATTACH), KVR_OK);
	memset(image, 'x', BYTES); /* somebody's letters */
	file_write(image, BYTES);
	ck_refused(KVR_EFORMAT);
	file_cut(1);
	ck_refused(KVR_EFORMAT);
}
END_TEST

START_TEST(truncated)
{
	off_t bytes;

	for (bytes = BYTES - 1; bytes > 0; bytes -= 1 + bytes / 8) {
		made();
		file_cut(bytes);
		ck_refused(KVR_EFORMAT);
		ck_assert_int_eq(unlink(path), 0);
	}
	made();
	file_cut(BYTES + 100); /* more than it needs */
	again();
	ck_tree(TREE);
	closed();
}
END_TEST

/* ------------------------------------------------------------ half a region */

static void
ck_makes_it(void)
{
	struct kvr *none;

	ck_assert_int_eq(open_as(ATTACH, &none), KVR_EFORMAT);
	ck_assert_int_eq(open_as(READONLY, &none), KVR_EFORMAT);
	ck_assert_int_eq(open_as(CREATE, &none), KVR_EEXIST);
	options.file_mode = 0640;
	opened(EITHER);
	ck_assert_int_eq(file_stat().st_size, BYTES);
	ck_assert_uint_eq(file_stat().st_mode, S_IFREG | 0640);
	two_workers();
	observe(0, "abcd", 10);
	ck_tree("abcd:0");
	closed();
	again();
	ck_tree("abcd:0");
	closed();
	ck_assert_int_eq(unlink(path), 0);
}

/* What a creator leaves who dies: nothing, zeros, or the mark "unmade??". */
START_TEST(half_made)
{
	static const off_t sizes[] = { 0, 1, 8, 100, BYTES - 1, BYTES,
		10 * BYTES };
	static const uint64_t mark = UINT64_C(0x756e6d6164653f3f);
	struct region *r = (struct region *)(void *)image;
	int i;

	for (i = 0; i < 7; i++) {
		file_cut(sizes[i]);
		ck_makes_it();
	}
	opened(CREATE);
	kvr_free(k);
	file_read(image, BYTES);
	r->seal.magic = mark;
	file_write(image, BYTES);
	ck_makes_it();
	memset(image, 'x', BYTES);
	r->seal.magic = mark;
	file_write(image, BYTES);
	ck_makes_it();
}
END_TEST

static void
limit_files(rlim_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };

	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The signal of a limit kills the creator where it asks for memory. */
START_TEST(creator_killed)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		limit_files(BYTES / 2);
		(void)signal(SIGXFSZ, SIG_DFL);
		(void)try(EITHER);
		_exit(1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
	ck_assert(file_there(path));
	ck_makes_it();
}
END_TEST

/* An error now, and no file; one that was there is empty still. */
START_TEST(no_space)
{
	(void)signal(SIGXFSZ, SIG_IGN);
	limit_files(BYTES / 2);
	ck_assert_int_eq(try(CREATE), KVR_ESYSTEM);
	ck_assert_int_eq(errno, EFBIG);
	ck_assert(!file_there(path));
	ck_assert_int_eq(try(EITHER), KVR_ESYSTEM);
	ck_assert(!file_there(path));
	file_cut(0);
	ck_assert_int_eq(try(EITHER), KVR_ESYSTEM);
	ck_assert_int_eq(file_stat().st_size, 0);
	limit_files(RLIM_INFINITY);
	ck_assert_int_eq(try(EITHER), KVR_OK);
}
END_TEST

START_TEST(too_small)
{
	options.region_bytes = 100;
	ck_assert_int_eq(try(EITHER), KVR_ETOOSMALL);
	ck_assert(!file_there(path));
	options.region_bytes = UINT64_MAX;
	ck_assert_int_eq(try(EITHER), KVR_EINVAL);
	ck_assert(!file_there(path));
	options.region_bytes = INT64_MAX - 64; /* what no disk has */
	ck_assert_int_eq(try(EITHER), KVR_ESYSTEM);
	ck_assert(!file_there(path));
}
END_TEST

/* Opens with the n-th allocation failing; false when that did not come. */
static bool
starved(uint32_t flags, unsigned long n)
{
	bool came;
	int error;

	alloc_fail_at(n);
	error = try(flags);
	came = alloc_count() >= n;
	alloc_reset();
	ck_assert_int_eq(error, came ? KVR_ENOMEM : KVR_OK);
	return came;
}

START_TEST(no_memory)
{
	unsigned long n;

	for (n = 1; starved(CREATE, n); n++)
		ck_assert(!file_there(path));
	ck_assert_uint_eq(n, 3); /* the handle, and the mapping */
	ck_assert_int_eq(unlink(path), 0);
	made();
	for (n = 1; starved(ATTACH, n); n++)
		ck_assert(!held(GATE) && !held(ATTACHED));
	ck_assert_uint_gt(n, 3); /* the check of the region, too */
	for (n = 1; starved(READONLY, n); n++)
		continue;
	ck_assert_uint_eq(n, 3);
	again();
	ck_tree(TREE);
	ck_assert_uint_eq(stats().emptied, 0);
	closed();
}
END_TEST

/* -------------------------------------------------------------------- boots */

static void
boot(char name)
{
	memset(options.boot_id, name, KVR_BOOT_ID_BYTES);
}

static void
ck_boot(char name, const char *tree, int64_t clock)
{
	struct kvr_options got = { .size = sizeof(got) };

	boot(name);
	again();
	ck_tree(tree);
	ck_assert_int_eq(stats().clock, clock);
	ck_assert_uint_eq(stats().workers, 2);
	ck_assert_uint_eq(stats().emptied, 0);
	ck_assert_int_eq(kvr_get_options(k, &got), KVR_OK);
	ck_assert_mem_eq(got.boot_id, options.boot_id, KVR_BOOT_ID_BYTES);
	closed();
}

START_TEST(boots)
{
	made();
	ck_boot('\0', TREE, 20);
	ck_boot('x', TREE, 20); /* nothing was known of the boot before */
	ck_boot('x', TREE, 20);
	ck_boot('\0', TREE, 20); /* not compared, and not forgotten */
	ck_boot('x', TREE, 20);
	ck_boot('y', "", -1);
	again();
	observe(0, "abcd", 3); /* the clock began anew */
	ck_assert_int_eq(stats().clock, 3);
	closed();
	ck_boot('y', "abcd:0", 3);
	options.boot_id[15]++;
	ck_assert_int_eq(try(READONLY), KVR_ESTATE);
	again();
	ck_tree("");
	closed();
	ck_assert_int_eq(unlink(path), 0);
	boot('z');
	made();
	ck_boot('z', TREE, 20);
	ck_boot('x', "", -1);
}
END_TEST

/* Those before had no id to tell it by. */
START_TEST(boot_in_company)
{
	struct kvr *first;

	boot('x');
	made();
	boot('\0');
	again();
	first = k;
	ck_boot('y', "", -1);
	k = first;
	observe(0, "abcd", 3);
	closed();
	ck_boot('y', "abcd:0", 3);
}
END_TEST

/* Memory of the caller's: nobody knows who is alone, so only with the lock. */
START_TEST(boot_in_memory)
{
	void *memory = aligned_alloc(CELL, BYTES);
	struct kvr *first, *second;

	ck_assert_ptr_nonnull(memory);
	boot('x');
	ck_assert_int_eq(kvr_new_at(&options, memory, BYTES, &k), KVR_OK);
	two_workers();
	observe(0, "abcd", 10);
	first = k;
	ck_assert_int_eq(kvr_attach_at(&options, memory, BYTES, &k), KVR_OK);
	ck_tree("abcd:0");
	kvr_free(k);
	boot('y');
	ck_assert_int_eq(region_lock(first, true), KVR_OK);
	ck_assert_int_eq(kvr_attach_at(&options, memory, BYTES, &second),
	    KVR_EBUSY);
	region_unlock(first);
	k = first;
	ck_tree("abcd:0");
	ck_assert_int_eq(kvr_attach_at(&options, memory, BYTES, &k), KVR_OK);
	ck_tree("");
	ck_assert_int_eq(stats().clock, -1);
	kvr_free(k);
	kvr_free(first);
	free(memory);
}
END_TEST

/* ------------------------------------------------------------------ reading */

/* Reading leaves no trace, and nobody is kept from being alone by it. */
START_TEST(reader)
{
	struct kvr *reading;

	made();
	file_read(image, BYTES);
	ck_assert_int_eq(open_as(READONLY, &reading), KVR_OK);
	ck_assert(reading->readonly);
	ck_assert(!held(GATE) && !held(ATTACHED));
	file_read(image_then, BYTES);
	ck_assert_mem_eq(image, image_then, BYTES);
	DAMAGED(r->counts.nodes++);
	ck_assert_uint_eq(reading->region->counts.emptied, 1);
	ck_assert_uint_eq(reading->region->counts.observes, 4);
	kvr_free(reading);
	ck_assert_int_eq(chmod(path, 0400), 0);
	ck_assert_int_eq(try(READONLY), KVR_OK);
}
END_TEST

START_TEST(reader_of_an_unfinished_change)
{
	struct kvr *reading;

	made();
	die_after(change_it);
	file_read(image, BYTES);
	ck_assert_int_eq(try(READONLY), KVR_ESTATE);
	file_read(image_then, BYTES);
	ck_assert_mem_eq(image, image_then, BYTES);
	/* while somebody is attached it may be his, and nearly done */
	again();
	lock_it();
	atomic_fetch_add(&k->region->version, 1);
	ck_assert_int_eq(open_as(READONLY, &reading), KVR_OK);
	atomic_fetch_add(&k->region->version, 1);
	region_unlock(k);
	kvr_free(reading);
	closed();
}
END_TEST

/* -------------------------------------------------------------- descriptors */

static int
memory_file(off_t bytes, int seals)
{
	int fd = memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, bytes), 0);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

START_TEST(sealed_memory)
{
	int fd = memory_file(BYTES * 2, F_SEAL_SHRINK | F_SEAL_GROW);
	struct kvr *first, *reading;

	ck_assert_int_eq(kvr_open_fd(fd, ATTACH, &options, &k), KVR_EFORMAT);
	ck_assert_int_eq(kvr_open_fd(fd, READONLY, &options, &k),
	    KVR_EFORMAT);
	ck_assert_int_eq(kvr_open_fd(fd, CREATE, &options, &first), KVR_OK);
	ck_assert_int_eq(kvr_open_fd(fd, CREATE, &options, &k), KVR_EEXIST);
	ck_assert_int_eq(kvr_open_fd(fd, READONLY, &options, &reading),
	    KVR_OK);
	ck_assert_int_eq(kvr_open_fd(fd, EITHER, NULL, &k), KVR_OK);
	close(fd);
	two_workers();
	ck_assert_uint_eq(stats().region_bytes, BYTES * 2);
	observe(0, "abcd", 10);
	kvr_free(k);
	k = first;
	ck_tree("abcd:0");
	ck_assert_uint_eq(reading->region->counts.observes, 1);
	kvr_free(reading);
	closed();
}
END_TEST

START_TEST(any_descriptor)
{
	int fd = memory_file(0, 0), pipes[2];
	struct stat st;

	ck_assert_int_eq(kvr_open_fd(fd, EITHER, &options, &k), KVR_OK);
	closed();
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_size, BYTES);
	ck_assert_int_eq(kvr_open_fd(fd, ATTACH, &options, &k), KVR_OK);
	closed();
	ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
	ck_assert_int_eq(kvr_open_fd(fd, EITHER, &options, &k), KVR_EFORMAT);
	close(fd);
	ck_assert_int_eq(kvr_open_fd(fd, EITHER, &options, &k), KVR_ESYSTEM);
	ck_assert_int_eq(errno, EBADF);
	ck_assert_int_eq(kvr_open_fd(-1, EITHER, &options, &k), KVR_EINVAL);
	ck_assert_int_eq(pipe(pipes), 0);
	ck_assert_int_eq(kvr_open_fd(pipes[0], EITHER, &options, &k),
	    KVR_EINVAL);
	/* a file of its own size that cannot be one */
	fd = memory_file(100, F_SEAL_SHRINK | F_SEAL_GROW);
	ck_assert_int_eq(kvr_open_fd(fd, CREATE, &options, &k),
	    KVR_ETOOSMALL);
	close(fd);
	/* an empty one that must stay so */
	fd = memory_file(0, F_SEAL_GROW);
	ck_assert_int_eq(kvr_open_fd(fd, CREATE, &options, &k), KVR_ESYSTEM);
	ck_assert_int_eq(errno, EPERM);
	close(fd);
}
END_TEST

/* May be read, and nothing else. */
START_TEST(descriptor_to_read)
{
	int fd;

	made();
	fd = open(path, O_RDONLY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(kvr_open_fd(fd, ATTACH, &options, &k), KVR_ESYSTEM);
	ck_assert_int_eq(errno, EACCES);
	ck_assert_int_eq(kvr_open_fd(fd, READONLY, &options, &k), KVR_OK);
	ck_assert(k->readonly);
	kvr_free(k);
	close(fd);
}
END_TEST

START_TEST(clocks)
{
	struct timespec t;
	int64_t before, now, after;

	ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	before = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	now = kvr_clock_now();
	ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	after = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	ck_assert_int_le(before, now);
	ck_assert_int_le(now, after);
}
END_TEST

/* ------------------------------------------------------------------- suite */

static TCase *
files_case(Suite *s, const char *name)
{
	TCase *t = tcase_create(name);

	tcase_add_checked_fixture(t, setup, teardown);
	suite_add_tcase(s, t);
	return t;
}

static void
suite_opening(Suite *s)
{
	TCase *t = files_case(s, "opening");

	tcase_add_test(t, create);
	tcase_add_test(t, absent);
	tcase_add_test(t, create_or_attach);
	tcase_add_test(t, nonsense);
	tcase_add_test(t, border);
	tcase_add_test(t, modes);
	tcase_add_test(t, modes_of_trust);
	tcase_add_test(t, groups);
	tcase_add_test(t, foreign_owner);
	tcase_add_test(t, not_allowed);
	tcase_add_test(t, no_plain_file);
	t = files_case(s, "several");
	tcase_add_test(t, two_addresses);
	tcase_add_test(t, processes);
	tcase_add_test(t, one_creates);
	tcase_add_test(t, forked);
	tcase_add_test(t, removed_while_waiting);
}

Suite *suite_file(void);

Suite *
suite_file(void)
{
	Suite *s = suite_create("file");
	TCase *t;

	suite_opening(s);
	t = files_case(s, "again");
	tcase_add_test(t, warm);
	tcase_add_test(t, durable);
	tcase_add_test(t, other_options);
	tcase_add_test(t, died_in_a_change);
	tcase_add_test(t, died_between_changes);
	tcase_add_test(t, died_in_company);
	tcase_add_test(t, killed_anywhere);
	tcase_add_test(t, lock_of_nobody);
	tcase_add_test(t, broken_index);
	tcase_add_test(t, broken_workers);
	tcase_add_test(t, damaged_seal);
	tcase_add_test(t, other_formats);
	tcase_add_test(t, truncated);
	t = files_case(s, "half");
	tcase_add_test(t, half_made);
	tcase_add_test(t, creator_killed);
	tcase_add_test(t, no_space);
	tcase_add_test(t, too_small);
	tcase_add_test(t, no_memory);
	t = files_case(s, "boot");
	tcase_add_test(t, boots);
	tcase_add_test(t, boot_in_company);
	tcase_add_test(t, boot_in_memory);
	t = files_case(s, "reading");
	tcase_add_test(t, reader);
	tcase_add_test(t, reader_of_an_unfinished_change);
	t = files_case(s, "descriptors");
	tcase_add_test(t, sealed_memory);
	tcase_add_test(t, any_descriptor);
	tcase_add_test(t, descriptor_to_read);
	tcase_add_test(t, clocks);
	return s;
}
