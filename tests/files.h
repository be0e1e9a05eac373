/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * files.h - a temporary folder for each test, and a region in a file of it.
 *
 * `k` and `p` are inner.h's. A process that has died is simulated by a copy of
 * the file as it would have left it, or by a child that is killed.
 */
#ifndef KVR_FILES_H
#define KVR_FILES_H

#include "inner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	BYTES = 24 << 10,
	CREATE = KVR_OPEN_CREATE,
	ATTACH = KVR_OPEN_ATTACH,
	EITHER = KVR_OPEN_CREATE | KVR_OPEN_ATTACH,
	READONLY = KVR_OPEN_READONLY,
	TRUST = KVR_OPEN_TRUST,
	STRANGER = 12345, /* no existing user or group */
	GATE = 0, ATTACHED = 1 /* locked bytes: gate.c */
};

static char folder[PATH_MAX], path[PATH_MAX], other[PATH_MAX];
static char path_lock[PATH_MAX], other_lock[PATH_MAX];
static struct kvr_options options;
static _Alignas(64) unsigned char image[BYTES], image_then[BYTES];

static inline void
setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/kvroute-test-XXXXXX",
	    tmp == NULL ? "/tmp" : tmp);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%.*s/region", PATH_MAX - 10, folder);
	snprintf(other, sizeof(other), "%.*s/other", PATH_MAX - 10, folder);
	snprintf(path_lock, sizeof(path_lock), "%.*s/region.lock",
	    PATH_MAX - 20, folder);
	snprintf(other_lock, sizeof(other_lock), "%.*s/other.lock",
	    PATH_MAX - 20, folder);
	options = small_options();
	options.region_bytes = BYTES;
}

static inline void
teardown(void)
{
	kvr_prompt_free(p);
	p = NULL;
	(void)unlink(path);
	(void)unlink(path_lock);
	(void)unlink(other);
	(void)unlink(other_lock);
	/* nothing else was left there */
	ck_assert_int_eq(rmdir(folder), 0);
}

static inline int
open_as(uint32_t flags, struct kvr **out)
{
	return kvr_open(path, strlen(path), flags, &options, out);
}

/* Returns the error of opening; an open handle is closed again. */
static inline int
try(uint32_t flags)
{
	struct kvr *made = NULL;
	int error = open_as(flags, &made), saved = errno;

	ck_assert_int_eq(made != NULL, error == KVR_OK);
	kvr_free(made);
	errno = saved;
	return error;
}

static inline void
opened(uint32_t flags)
{
	ck_assert_int_eq(open_as(flags, &k), KVR_OK);
}

/* This also makes the test's prompt, which teardown frees. */
static inline void
two_workers(void)
{
	kvr_prompt_free(p);
	people(2);
}

/* A region with two workers, a tree of two prompts, and no one attached. */
#define TREE "ab:01(cd:0 xy:1)"
static inline void
made(void)
{
	opened(CREATE);
	two_workers();
	observe(0, "abcd", 10);
	observe(1, "abxy", 20);
	kvr_free(k);
}

static inline void
again(void)
{
	opened(ATTACH);
}

static inline void
closed(void)
{
	region_sound();
	kvr_free(k);
}

static inline struct stat
file_stat(void)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return st;
}

static inline bool
file_there(const char *name)
{
	return access(name, F_OK) == 0;
}

static inline int
file_fd(void)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* Reads the whole file; bytes beyond `bytes` are not touched. */
static inline void
file_read(void *to, size_t bytes)
{
	int fd = file_fd();

	ck_assert_int_eq(pread(fd, to, bytes, 0), (ssize_t)bytes);
	close(fd);
}

static inline void
file_write(const void *from, size_t bytes)
{
	int fd = file_fd();

	ck_assert_int_eq(pwrite(fd, from, bytes, 0), (ssize_t)bytes);
	close(fd);
}

static inline void
file_cut(off_t bytes)
{
	int fd = file_fd();

	ck_assert_int_eq(ftruncate(fd, bytes), 0);
	close(fd);
}

/* The file still equals `image`. */
static inline void
file_same(void)
{
	file_read(image_then, BYTES);
	ck_assert_mem_eq(image, image_then, BYTES);
}

/* Does any handle of any process lock these bytes of the file? */
static inline bool
held(const char *name, off_t byte, off_t bytes)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = byte, .l_len = bytes };
	int fd = open(name, O_RDWR);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fcntl(fd, F_OFD_GETLK, &l), 0);
	close(fd);
	return l.l_type != F_UNLCK;
}

static inline bool
gate_held(void)
{
	return held(path_lock, GATE, 1);
}

/* Is any handle for writing open? The two locks agree. */
static inline bool
attached(void)
{
	bool seats = held(path_lock, SEAT_BYTES, SEATS_MAX);

	ck_assert_int_eq(seats, held(path, ATTACHED, 1));
	return seats;
}

/* A child does this to a handle of its own and is killed at once. */
static inline void
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

static inline void
lock_it(void)
{
	must(region_lock(k, true) == KVR_OK);
}

/* Stops in the middle of a change, with all it could damage damaged. */
static inline void
change_it(void)
{
	lock_it();
	atomic_fetch_add(&k->region->seq, 1);
	memset(k->node_buckets, 0xff, k->layout.node_buckets * 4);
	memset(&k->cells[1], 0xff, 20 * CELL);
	k->region->fresh = k->region->free_top = k->region->free_cells = 9;
	k->region->name_free = 77;
}

/* Maps the file, to change its content while no handle is attached. */
static inline struct kvr *
in_image(void)
{
	static struct kvr inside;

	file_read(image, BYTES);
	memset(&inside, 0, sizeof(inside));
	ck_assert_int_eq(region_attach(image, BYTES, &inside), KVR_OK);
	return &inside;
}

static inline TCase *
files_case(Suite *s, const char *name)
{
	TCase *t = tcase_create(name);

	tcase_add_checked_fixture(t, setup, teardown);
	suite_add_tcase(s, t);
	return t;
}

#endif
