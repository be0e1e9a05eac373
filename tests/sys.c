/* SPDX-License-Identifier: BSD-2-Clause */
/* sys.c - system calls that fail on request; the idea is in sys.h. */
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_uint armed = SYS_CALLS; /* which of them */
static atomic_ulong asked, changed;
static unsigned long first, last; /* to fail */
static int code;
static const char *said; /* instead of failing */

static void
arm(enum sys_call call, unsigned long from, unsigned long to, int error,
    const char *text)
{
	(void)sys_reset();
	first = from;
	last = to;
	code = error;
	said = text;
	atomic_store(&armed, call);
}

void
sys_fail_at(enum sys_call call, unsigned long n, int error)
{
	arm(call, n, n, error, NULL);
}

void
sys_fail_from(enum sys_call call, unsigned long n, int error)
{
	arm(call, n, (unsigned long)-1, error, NULL);
}

void
sys_say(enum sys_call call, const char *text)
{
	arm(call, 1, (unsigned long)-1, 0, text);
}

unsigned long
sys_reset(void)
{
	atomic_store(&armed, SYS_CALLS);
	atomic_store(&asked, 0);
	return atomic_exchange(&changed, 0);
}

static bool
fails(enum sys_call call)
{
	unsigned long n;

	if (atomic_load(&armed) != call)
		return false;
	n = atomic_fetch_add(&asked, 1) + 1;
	if (n < first || n > last)
		return false;
	atomic_fetch_add(&changed, 1);
	errno = code;
	return true;
}

static ssize_t
answer(void *to, size_t bytes, size_t at)
{
	size_t length;

	if (said == NULL)
		return -1;
	length = strlen(said);
	length = at < length ? length - at : 0;
	length = length < bytes ? length : bytes;
	memcpy(to, said + (length > 0 ? at : 0), length);
	return (ssize_t)length;
}

/* The code under test calls these; the list is SYSTEM_CALLS of mk/check.mk. */
int sys_open(const char *path, int flags, ...);
int sys_fstat(int fd, struct stat *st);
int sys_stat(const char *path, struct stat *st);
int sys_fcntl(int fd, int what, ...);
int sys_fchown(int fd, uid_t user, gid_t group);
int sys_fchmod(int fd, mode_t mode);
int sys_madvise(void *at, size_t bytes, int advice);
ssize_t sys_read(int fd, void *to, size_t bytes);
ssize_t sys_pread(int fd, void *to, size_t bytes, off_t at);
ssize_t sys_readlink(const char *path, char *to, size_t bytes);
int sys_kill(pid_t pid, int number);
int sys_ftruncate(int fd, off_t bytes);
int sys_posix_fallocate(int fd, off_t at, off_t bytes);
int sys_getentropy(void *to, size_t bytes);

int
sys_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list more;

	va_start(more, flags);
	if ((flags & O_CREAT) != 0)
		mode = va_arg(more, mode_t);
	va_end(more);
	return fails(SYS_OPEN) ? -1 : open(path, flags, mode);
}

int
sys_fstat(int fd, struct stat *st)
{
	return fails(SYS_FSTAT) ? -1 : fstat(fd, st);
}

int
sys_stat(const char *path, struct stat *st)
{
	return fails(SYS_STAT) ? -1 : stat(path, st);
}

/* Only of locks. */
int
sys_fcntl(int fd, int what, ...)
{
	struct flock *lock;
	va_list more;

	va_start(more, what);
	lock = va_arg(more, struct flock *);
	va_end(more);
	return fails(SYS_FCNTL) ? -1 : fcntl(fd, what, lock);
}

int
sys_fchown(int fd, uid_t user, gid_t group)
{
	return fails(SYS_FCHOWN) ? -1 : fchown(fd, user, group);
}

int
sys_fchmod(int fd, mode_t mode)
{
	return fails(SYS_FCHMOD) ? -1 : fchmod(fd, mode);
}

int
sys_madvise(void *at, size_t bytes, int advice)
{
	return fails(SYS_MADVISE) ? -1 : madvise(at, bytes, advice);
}

ssize_t
sys_read(int fd, void *to, size_t bytes)
{
	return fails(SYS_READ) ? answer(to, bytes, 0) : read(fd, to, bytes);
}

ssize_t
sys_pread(int fd, void *to, size_t bytes, off_t at)
{
	return fails(SYS_PREAD) ? answer(to, bytes, (size_t)at)
	    : pread(fd, to, bytes, at);
}

ssize_t
sys_readlink(const char *path, char *to, size_t bytes)
{
	return fails(SYS_READLINK) ? answer(to, bytes, 0)
	    : readlink(path, to, bytes);
}

int
sys_kill(pid_t pid, int number)
{
	return fails(SYS_KILL) ? -1 : kill(pid, number);
}

int
sys_ftruncate(int fd, off_t bytes)
{
	return fails(SYS_FTRUNCATE) ? -1 : ftruncate(fd, bytes);
}

int
sys_posix_fallocate(int fd, off_t at, off_t bytes)
{
	return fails(SYS_FALLOCATE) ? code : posix_fallocate(fd, at, bytes);
}

int
sys_getentropy(void *to, size_t bytes)
{
	return fails(SYS_GETENTROPY) ? -1 : getentropy(to, bytes);
}
