/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * envoy_pool.h - pools of servers in an Envoy, and their configuration: the
 * text of kvroute-pick, or the path of a file with it. When the file changes,
 * its servers are read again. Filters with the same text share a pool: those of
 * several listeners, and the one that shows its status.
 *
 * Each pool has a thread, which wakes once a second: for kvh_tick(), and for
 * the file. No request waits for it.
 */
#ifndef KVROUTE_ENVOY_POOL_H
#define KVROUTE_ENVOY_POOL_H

#include "pick_conf.h"

struct envoy_pool;
struct kvh;

/* NULL: `error` is why. */
struct envoy_pool *envoy_pool_take(const char *text, size_t n,
    char error[CONF_ERROR_MAX]);
/*
 * The last one that took it frees the pool. It waits for the end of the thread,
 * which may be at work for kvh_tick() or the file: the module can be unloaded
 * afterwards.
 */
void envoy_pool_leave(struct envoy_pool *p);
struct kvh *envoy_pool_kvh(struct envoy_pool *p);

#endif
