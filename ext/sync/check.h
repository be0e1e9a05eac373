/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.h - tries all calls that the daemon will need, and prints the results.
 */
#ifndef KVROUTE_SYNC_CHECK_H
#define KVROUTE_SYNC_CHECK_H

#include "site.h"

/*
 * Attaches to n regions, and writes to and reads from the bus of each. Returns
 * the exit status of the program: 0 if all of it can be used.
 */
int check_sites(const struct site_options *options, char **names, size_t n);

#endif
