/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * busy.h - counts attempts to take the lock of a region, and makes them fail.
 *
 * The build passes --wrap=region_lock to the linker, so each attempt of the
 * code under test goes through busy.c.
 */
#ifndef KVR_BUSY_H
#define KVR_BUSY_H

/* Makes `each` attempts fail with KVR_EBUSY before one is let through. */
void busy_begin(unsigned each);
/* Returns the attempts since then; no attempt fails any more. */
unsigned busy_end(void);
/* Calls this once, before the n-th attempt from now; the first is 1. */
void busy_call(unsigned n, void (*call)(void));

#endif
