/* SPDX-License-Identifier: BSD-2-Clause */
/* busy.c - see busy.h. */
#include "busy.h"

#include <stdatomic.h>

#include "region.h"
#include "test.h"

/* Atomic: other suites take the lock in several threads. */
static atomic_uint attempts, failing, left, until;
static void (*call_then)(void);

/* The names that the linker gives them. */
int __real_region_lock(const struct kvr *k, bool wait);
int __wrap_region_lock(const struct kvr *k, bool wait);

int
__wrap_region_lock(const struct kvr *k, bool wait)
{
	unsigned each = atomic_load(&failing);

	if (atomic_load(&until) > 0 && atomic_fetch_sub(&until, 1) == 1)
		call_then();
	atomic_fetch_add_explicit(&attempts, 1, memory_order_relaxed);
	if (each > 0 && atomic_load(&left) > 0) {
		atomic_fetch_sub(&left, 1);
		return KVR_EBUSY;
	}
	atomic_store(&left, each);
	return __real_region_lock(k, wait);
}

void
busy_begin(unsigned each)
{
	atomic_store(&attempts, 0);
	atomic_store(&left, each);
	atomic_store(&failing, each);
}

unsigned
busy_end(void)
{
	atomic_store(&failing, 0);
	return atomic_load(&attempts);
}

void
busy_call(unsigned n, void (*call)(void))
{
	call_then = call;
	atomic_store(&until, n);
}
