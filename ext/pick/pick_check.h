/* SPDX-License-Identifier: BSD-2-Clause */
/* pick_check.h - opens the pool of a configuration, or looks at it alone. */
#ifndef KVROUTE_PICK_CHECK_H
#define KVROUTE_PICK_CHECK_H

#include "pick_conf.h"

struct kvh;

/*
 * Reads the file, and opens the pool without its servers. false: `error` is
 * why, behind the number of a line.
 */
bool pick_read(const char *path, struct pick_conf *conf, struct kvh **pool,
    char error[CONF_ERROR_MAX]);
/*
 * Tries the facts of all servers on memory of its own with the options of a
 * pool, and counts their names. false: warnings were printed.
 */
bool pick_check_servers(const char *path, const struct pick_conf *options,
    const struct pick_conf *conf);
/*
 * --check: the same with private memory, and the facts of all servers, and the
 * certificate of a folder, which may be NULL. Returns the exit code.
 */
int pick_check(const char *path, const char *cert);

#endif
