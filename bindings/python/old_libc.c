/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * old_libc.c - stat() and fstat() as system calls, which the linker puts in
 * place of those of glibc. Their symbols came with glibc 2.33, and all others
 * that the library needs are older than 2.28: so a wheel that was built on a
 * new system runs on old ones.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int __wrap_stat(const char *path, struct stat *out);
int __wrap_fstat(int fd, struct stat *out);
int __real_stat(const char *path, struct stat *out);
int __real_fstat(int fd, struct stat *out);

/* Here the kernel's structure is that of the C library. */
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
int
__wrap_stat(const char *path, struct stat *out)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
}

int
__wrap_fstat(int fd, struct stat *out)
{
	return (int)syscall(SYS_fstat, fd, out);
}
#else
int
__wrap_stat(const char *path, struct stat *out)
{
	return __real_stat(path, out);
}

int
__wrap_fstat(int fd, struct stat *out)
{
	return __real_fstat(fd, out);
}
#endif
