/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * owner_pid.h - the process of an owner of leases. Linux has fewer than 2^22
 * processes; above the pid are the number of a pool and the pid namespace.
 */
#ifndef KVROUTE_OWNER_PID_H
#define KVROUTE_OWNER_PID_H

#include <stdint.h>
#include <sys/types.h>

enum { OWNER_PID_BITS = 22 };

static inline pid_t
owner_pid(uint64_t owner)
{
	return (pid_t)(owner & ((UINT64_C(1) << OWNER_PID_BITS) - 1));
}

#endif
