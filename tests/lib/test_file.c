/* SPDX-License-Identifier: BSD-2-Clause */
/* test_file.c - opening and creating files, and the remains after a failure. */
#define _GNU_SOURCE
#include "files.h"
#include "storage.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "alloc.h"

/* ------------------------------------------------------ create and attach */

START_TEST(create)
{
	struct kvr *second = NULL;

	opened(CREATE);
	ck_assert_uint_eq(file_stat().st_mode, S_IFREG | 0600);
	ck_assert_int_eq(file_stat().st_size, BYTES);
	ck_assert_int_ge(file_stat().st_blocks * 512, BYTES);
	ck_assert_uint_eq(stats().region_bytes, BYTES);
	ck_assert(attached());
	ck_assert(!gate_held());
	ck_assert_int_eq(open_as(CREATE, &second), KVR_EEXIST);
	ck_assert_ptr_null(second);
	closed();
	ck_assert(!attached());
	ck_assert_int_eq(try(CREATE), KVR_EEXIST);
}
END_TEST

START_TEST(absent)
{
	static const uint32_t flags[] = { ATTACH, READONLY, ATTACH | TRUST,
		READONLY | TRUST };
	char nowhere[] = "./no-such-directory/region";
	size_t i;

	ck_assert_int_eq(kvr_open(nowhere, strlen(nowhere), CREATE, &options,
	    &k), KVR_ESYSTEM);
	ck_assert_int_eq(errno, ENOENT);

	for (i = 0; i < 4; i++) {
		errno = 0;
		ck_assert_int_eq(try(flags[i]), KVR_ESYSTEM);
		ck_assert_int_eq(errno, ENOENT);
		ck_assert(!file_there(path));
	}
}
END_TEST

/* The option of this test that the file was not made with. */
static const char *
fault_of_options(void)
{
	const char *name;
	struct kvr *made;

	ck_assert_int_eq(kvr_open(path, strlen(path), READONLY, NULL, &made),
	    KVR_OK);
	name = kvr_options_fault(made, &options);
	kvr_free(made);
	return name;
}

/* The flags allow both; another size is refused, other times are applied. */
START_TEST(create_or_attach)
{
	struct kvr_options got = { .size = sizeof(got) };
	struct kvr *made = NULL;

	opened(EITHER);
	two_workers();
	observe(0, "abcd", 10);
	kvr_free(k);
	options.region_bytes *= 4;
	ck_assert_int_eq(try(EITHER), KVR_EMISMATCH);
	ck_assert_str_eq(fault_of_options(), "region_bytes");
	options.region_bytes = 1; /* would be too small to create */
	ck_assert_int_eq(try(EITHER), KVR_EMISMATCH);
	options.region_bytes = BYTES;
	options.ttl_ns++;
	ck_assert_int_eq(try(READONLY), KVR_EMISMATCH);
	ck_assert_str_eq(fault_of_options(), "ttl_ns");
	opened(EITHER);
	ck_tree("abcd:0");
	ck_assert_int_eq(kvr_options_get(k, &got), KVR_OK);
	ck_assert_int_eq(got.ttl_ns, options.ttl_ns);
	ck_assert_uint_eq(stats().region_bytes, BYTES);
	ck_assert_int_eq(file_stat().st_size, BYTES);
	ck_assert_int_eq(open_as(READONLY, &made), KVR_OK);
	kvr_free(made);
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

/*
 * The path need not end in NUL, and an older options struct has neither of
 * the new fields.
 */
START_TEST(border)
{
	unsigned char boot[KVR_BOOT_ID_BYTES];
	size_t length = strlen(path);

	path[length] = 'x';
	options.size = offsetof(struct kvr_options, boot_id);
	options.file_mode = options.file_group = 99;
	memset(options.boot_id, 'b', KVR_BOOT_ID_BYTES);
	ck_assert_int_eq(kvr_open(path, length, EITHER, &options, &k),
	    KVR_OK);
	path[length] = '\0';
	ck_assert_uint_eq(file_stat().st_mode, S_IFREG | 0600);
	storage_boot_id(boot);
	ck_assert_mem_eq(k->region->boot_id, boot, sizeof(boot));
	closed();
}
END_TEST

/* ------------------------------------------------------------ permissions */

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

/* A file that could not be opened again is not created either. */
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
	/* nothing of an existing file is changed */
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

/* A user without the right gets the system's error, and nothing is left. */
START_TEST(not_allowed)
{
	int status;
	pid_t child;

	if (geteuid() != 0)
		test_skip("only root can become another user");
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
		/* there is no peer, and the open does not wait for one */
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

/* A killed creator leaves nothing, zeros, or the mark "unmade??". */
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

/* An ISO image, for example, has zeros first, and then data not to be lost. */
START_TEST(zeros_at_first_only)
{
	static const uint32_t flags[] = { EITHER, EITHER | TRUST, ATTACH,
		READONLY };
	int i, fd;

	for (i = 0; i < 4; i++) {
		memset(image, 0, BYTES);
		memcpy(image + 16384, "\1CD001\1", 7);
		file_write(image, BYTES);
		ck_assert_int_eq(try(flags[i]), KVR_EFORMAT);
		file_same();
	}
	fd = open(path, O_RDWR);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(kvr_open_fd(fd, EITHER, &options, &k), KVR_EFORMAT);
	ck_assert_int_eq(kvr_open_fd(fd, CREATE, &options, &k), KVR_EEXIST);
	file_same();
	close(fd);
	/* one byte, the last */
	memset(image, 0, BYTES);
	image[BYTES - 1] = 1;
	file_write(image, BYTES);
	ck_assert_int_eq(try(EITHER), KVR_EFORMAT);
	file_same();
}
END_TEST

static void
limit_files(rlim_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };

	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The signal of a limit kills the creator where it allocates the file. */
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

/* An error, and no file; an existing one is still empty. */
START_TEST(no_space)
{
	(void)signal(SIGXFSZ, SIG_IGN);
	limit_files(BYTES / 2);
	ck_assert_int_eq(try(CREATE), KVR_ESYSTEM);
	ck_assert_int_eq(errno, EFBIG);
	ck_assert(!file_there(path) && !file_there(path_lock));
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
	options.region_bytes = INT64_MAX - 64; /* more than any disk has */
	ck_assert_int_eq(try(EITHER), KVR_ESYSTEM);
	ck_assert(!file_there(path));
}
END_TEST

/* Opens with the n-th allocation failing; false if there are fewer. */
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
		ck_assert(!file_there(path) && !file_there(path_lock));
	/* the handle, the mapping, the list for fork, the seat's lock */
	ck_assert_uint_eq(n, 5);
	ck_assert_int_eq(unlink(path), 0);
	made();
	for (n = 1; starved(ATTACH, n); n++)
		ck_assert(!gate_held() && !attached());
	ck_assert_uint_gt(n, 3); /* the check of the region, too */
	for (n = 1; starved(READONLY, n); n++)
		continue;
	ck_assert_uint_eq(n, 3);
	again();
	ck_tree(TREE);
	ck_assert_uint_eq(stats().recoveries, 0);
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
	/* a sealed file of the wrong size */
	fd = memory_file(100, F_SEAL_SHRINK | F_SEAL_GROW);
	ck_assert_int_eq(kvr_open_fd(fd, CREATE, &options, &k),
	    KVR_ETOOSMALL);
	close(fd);
	/* an empty one that cannot grow */
	fd = memory_file(0, F_SEAL_GROW);
	ck_assert_int_eq(kvr_open_fd(fd, CREATE, &options, &k), KVR_ESYSTEM);
	ck_assert_int_eq(errno, EPERM);
	close(fd);
}
END_TEST

/* Opened for reading only. */
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

Suite *suite_file(void);

Suite *
suite_file(void)
{
	Suite *s = suite_create("file");
	TCase *t;

	t = files_case(s, "opening");
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
	t = files_case(s, "half");
	tcase_add_test(t, half_made);
	tcase_add_test(t, zeros_at_first_only);
	tcase_add_test(t, creator_killed);
	tcase_add_test(t, no_space);
	tcase_add_test(t, too_small);
	tcase_add_test(t, no_memory);
	t = files_case(s, "descriptors");
	tcase_add_test(t, sealed_memory);
	tcase_add_test(t, any_descriptor);
	tcase_add_test(t, descriptor_to_read);
	tcase_add_test(t, clocks);
	return s;
}
