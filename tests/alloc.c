/* SPDX-License-Identifier: BSD-2-Clause */
/* alloc.c - an allocator that fails on request; the idea is in alloc.h. */
#include "alloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static atomic_ulong asked;
static atomic_ulong first; /* to fail; 0: none */
static atomic_ulong last;

static void
arm(unsigned long from, unsigned long to)
{
	atomic_store(&first, 0);
	atomic_store(&asked, 0);
	atomic_store(&last, to);
	atomic_store(&first, from);
}

void
alloc_fail_at(unsigned long n)
{
	arm(n, n);
}

void
alloc_fail_from(unsigned long n)
{
	arm(n, (unsigned long)-1);
}

void
alloc_reset(void)
{
	arm(0, 0);
}

unsigned long
alloc_count(void)
{
	return atomic_load(&asked);
}

static bool
fails(void)
{
	unsigned long n = atomic_fetch_add(&asked, 1) + 1;
	unsigned long from = atomic_load(&first);

	if (from == 0 || n < from || n > atomic_load(&last))
		return false;
	errno = ENOMEM;
	return true;
}

/* The code under test calls these; the list is ALLOCATORS of mk/check.mk. */
void *alloc_malloc(size_t size);
void *alloc_calloc(size_t n, size_t size);
void *alloc_realloc(void *old, size_t size);
void *alloc_reallocarray(void *old, size_t n, size_t size);
void *alloc_aligned_alloc(size_t alignment, size_t size);
int alloc_posix_memalign(void **out, size_t alignment, size_t size);
char *alloc_strdup(const char *text);
void *alloc_mmap(void *at, size_t size, int protection, int flags, int fd,
    off_t offset);

void *
alloc_malloc(size_t size)
{
	return fails() ? NULL : malloc(size);
}

void *
alloc_calloc(size_t n, size_t size)
{
	return fails() ? NULL : calloc(n, size);
}

void *
alloc_realloc(void *old, size_t size)
{
	return fails() ? NULL : realloc(old, size);
}

void *
alloc_reallocarray(void *old, size_t n, size_t size)
{
	return fails() ? NULL : reallocarray(old, n, size);
}

void *
alloc_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : aligned_alloc(alignment, size);
}

int
alloc_posix_memalign(void **out, size_t alignment, size_t size)
{
	return fails() ? ENOMEM : posix_memalign(out, alignment, size);
}

char *
alloc_strdup(const char *text)
{
	return fails() ? NULL : strdup(text);
}

void *
alloc_mmap(void *at, size_t size, int protection, int flags, int fd,
    off_t offset)
{
	return fails() ? MAP_FAILED :
	    mmap(at, size, protection, flags, fd, offset);
}
