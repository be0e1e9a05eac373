/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_process.h - CPU time and memory of other processes, from /proc.
 */
#ifndef KVROUTE_CHATS_PROCESS_H
#define KVROUTE_CHATS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct process_use {
	uint64_t cpu_ns;    /* user and system, of all processes together */
	uint64_t rss_bytes; /* of all, too */
};

/* False: one of them has exited. */
bool process_use(const int *pids, size_t n, struct process_use *out);

#endif
