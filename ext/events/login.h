/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * login.h - what a server of NATS asks for, from a file.
 *
 * Endpoints are shown and logged, so none has a password: it stands in a file,
 * as "user:password", or a token alone, on its first line.
 */
#ifndef KVROUTE_LOGIN_H
#define KVROUTE_LOGIN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The endpoint, scheme://host, with what the file says. false: `error` says
 * why, without what is in the file.
 */
bool login_url(const char *endpoint, const char *path, char *url, size_t size,
    char *error, size_t error_size);

#endif
