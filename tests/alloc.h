/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc.h - an allocator that fails on demand.
 *
 * The build redirects malloc, calloc, realloc, reallocarray, aligned_alloc,
 * posix_memalign, strdup and mmap in the code under test (lib/, and modules of
 * ext/, tools/ and tests/stand-ins/) to this file. Tests, models and Check
 * keep the system's, so only the code under test ever fails. The state is per
 * process: a test that arms it affects no other test.
 */
#ifndef KVR_ALLOC_H
#define KVR_ALLOC_H

/* The n-th allocation from now fails; 1 is the next. 0: none. */
void alloc_fail_at(unsigned long n);
/* The n-th and all later allocations fail. 0: none. */
void alloc_fail_from(unsigned long n);
/* No allocation fails any more; the count restarts at 0. */
void alloc_reset(void);
/* Allocations requested since the last of the three calls above. */
unsigned long alloc_count(void);

#endif
