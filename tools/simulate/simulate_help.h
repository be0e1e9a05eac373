/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_help.h - what kvroute-replay --simulate --help prints.
 */
#ifndef KVROUTE_SIMULATE_HELP_H
#define KVROUTE_SIMULATE_HELP_H

extern const char simulate_usage[];
/* In this order; no string may be longer than 4095. */
extern const char simulate_help[];
extern const char simulate_help_routers[];

#endif
