/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_run.h - kvroute-replay --simulate, from its options to its table.
 */
#ifndef KVROUTE_SIMULATE_RUN_H
#define KVROUTE_SIMULATE_RUN_H

#include <stdbool.h>

/* Is this command line of that mode? */
bool simulate_wanted(int argc, char **argv);
/* The whole program; what main returns. */
int simulate_run(int argc, char **argv);

#endif
