/* SPDX-License-Identifier: BSD-2-Clause */
/* check.h - tries all that the daemon will need, and prints the results. */
#ifndef KVROUTE_CHECK_H
#define KVROUTE_CHECK_H

#include <stddef.h>

/*
 * Reads a configuration, connects to all that it names, and attaches to n
 * regions. Returns the exit status of the program: 0 if all of it can be used.
 */
int check_all(const char *conf, char *const *regions, size_t n);

#endif
