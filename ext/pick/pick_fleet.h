/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pick_fleet.h - the servers of the pool, from three sources:
 *
 *   a file     read again when it changes, or by fleet_reload()
 *   names      of the file, resolved every RESOLVE_SECONDS
 *   the API    fleet_put(), fleet_delete()
 *
 * A server that no source has any more is gone: it gets no more requests. Facts
 * of the API count before those of the file, and these before those of a name.
 * One that the API deletes is gone until it is put there, or was gone from the
 * others too.
 */
#ifndef KVROUTE_PICK_FLEET_H
#define KVROUTE_PICK_FLEET_H

#include <stdbool.h>
#include <stddef.h>

#include "pick_conf.h"
#include "pick_pool.h"

struct event_base;
struct pick_fleet;

enum { RESOLVE_SECONDS = 5, FLEET_NAMES_MAX = 64 };

/*
 * path: of the file. options: those of the pool, which stay where they are.
 * NULL: no memory.
 */
struct pick_fleet *fleet_new(struct event_base *base, struct pick_pool *pool,
    const char *path, const struct pick_conf *options);
void fleet_free(struct pick_fleet *f);
/* Adds the servers of a configuration; false: `error` is why. */
bool fleet_apply(struct pick_fleet *f, const struct pick_conf *conf,
    char error[CONF_ERROR_MAX]);
/* Reads the file. If it cannot be taken, the servers stay, with a warning. */
void fleet_reload(struct pick_fleet *f);

/* Errors as of kvh_server_put(3). */
int fleet_put(struct pick_fleet *f, const char *name, const char *facts,
    size_t *bad);
bool fleet_has(struct pick_fleet *f, const char *name);
/* false: there is no such server. */
bool fleet_delete(struct pick_fleet *f, const char *name);

#endif
