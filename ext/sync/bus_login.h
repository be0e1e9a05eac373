/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bus_login.h - the user and the password of a bus, from a file.
 *
 * Addresses are shown and logged, so they should not contain a password.
 */
#ifndef KVROUTE_BUS_LOGIN_H
#define KVROUTE_BUS_LOGIN_H

#include "bus_url.h"

/*
 * Sets the login of `url` to the first line of the file: "user:password", or a
 * password or token alone. false: `error` gives the reason, without any of it.
 */
bool bus_login(const char *path, struct bus_url *url, char *error,
    size_t size);

#endif
