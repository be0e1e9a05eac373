/* SPDX-License-Identifier: BSD-2-Clause */
/* pick_open.h - opens the pool of a configuration, and fills it. */
#ifndef KVROUTE_PICK_OPEN_H
#define KVROUTE_PICK_OPEN_H

#include "pick_conf.h"

struct kvh;

/*
 * Without its servers. region: a file; "": private memory. false: `error` is
 * why, behind the number of a line.
 */
bool pick_open(const struct pick_conf *conf, const char *region,
    struct kvh **pool, char error[CONF_ERROR_MAX]);

/*
 * Puts a server of a configuration into the pool. Errors: those of
 * kvh_server_put(3); `error` is why.
 */
int pick_put(struct kvh *pool, const struct conf_server *s,
    char error[CONF_ERROR_MAX]);

#endif
