/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sys.h - system calls that fail on demand, as allocations do: see alloc.h.
 *
 * The build redirects these calls of lib/ to sys.c. One kind of call fails at
 * a time; or it returns a given text in place of the system's. The state is
 * per process.
 */
#ifndef KVR_SYS_H
#define KVR_SYS_H

enum sys_call {
	SYS_OPEN, SYS_FSTAT, SYS_STAT, SYS_FCNTL, SYS_FCHOWN, SYS_FCHMOD,
	SYS_MADVISE, SYS_READ, SYS_PREAD, SYS_READLINK, SYS_KILL,
	SYS_FTRUNCATE, SYS_FALLOCATE, SYS_GETENTROPY, SYS_CALLS
};

/* The n-th call of this kind from now fails; 1 is the next. */
void sys_fail_at(enum sys_call call, unsigned long n, int error);
/* The n-th and all later ones fail. */
void sys_fail_from(enum sys_call call, unsigned long n, int error);
/* Each read or readlink gives this text from its beginning. */
void sys_say(enum sys_call call, const char *text);
/* Ends it; returns how many calls failed or got a text. */
unsigned long sys_reset(void);

#endif
