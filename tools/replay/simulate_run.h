/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_run.h - kvroute-replay --simulate.
 */
#ifndef KVROUTE_SIMULATE_RUN_H
#define KVROUTE_SIMULATE_RUN_H

#include <stdbool.h>

/* Does the command line contain --simulate? */
bool simulate_wanted(int argc, char **argv);
/* Runs the program; returns its exit status. */
int simulate_run(int argc, char **argv);

#endif
