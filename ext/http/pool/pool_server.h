/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_server.h - the servers of a pool, and their workers in the region: one
 * for each, or for each data-parallel rank of one, all by its name.
 *
 *   kvh_server_put   up, drain, down     gone
 *                         |                |
 *   inflight, refs        |            > 0: no more requests
 *                         |              0: its workers are removed; once none
 *                         |                 is left it is freed
 *
 * All but server_put() are called with the pool's lock, or before and after all
 * threads.
 */
#ifndef KVROUTE_POOL_SERVER_H
#define KVROUTE_POOL_SERVER_H

#include "pool_in.h"
#include "pool_text.h"

extern const struct text_row server_rows[];
extern const size_t server_rows_all;

/* False: no memory. */
bool servers_begin(struct kvh *h);
/* NULL: it is not known. */
struct pool_server *server_find(const struct kvh *h, const char *name,
    size_t n);
/* Adds it, or changes its facts; as kvh_server_put(). */
int server_put(struct kvh *h, const char *name, size_t n, const char *facts,
    size_t length, size_t *bad);
/* A request has failed there: is it out of use for a while? */
void server_failed(struct kvh *h, struct pool_server *s, int64_t now);
/*
 * Removes workers that no server has any longer, and servers that are gone and
 * have no request; false: the region was locked, and some are left.
 */
bool servers_sweep(struct kvh *h);
void servers_free(struct kvh *h);

#endif
