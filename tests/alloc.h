/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alloc.h - an allocator that fails when told to.
 *
 * The build turns the calls of malloc, calloc, realloc, reallocarray,
 * aligned_alloc, posix_memalign, strdup and mmap in the code under test (lib/
 * and the modules of examples/) into calls of this file. Tests, models and
 * Check keep the system's, so nothing but the code under test ever fails. The
 * state is the process's own: what one test arms, no other test sees.
 */
#ifndef KVR_ALLOC_H
#define KVR_ALLOC_H

/* The n-th allocation from now fails; 1 is the next. 0: none. */
void alloc_fail_at(unsigned long n);
/* That one and all after it. 0: none. */
void alloc_fail_from(unsigned long n);
/* None fails any more; counting begins again at 0. */
void alloc_reset(void);
/* Allocations asked for since the last of the three calls above. */
unsigned long alloc_count(void);

#endif
