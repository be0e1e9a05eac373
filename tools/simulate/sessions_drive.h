/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sessions_drive.h - runs a simulation on sessions, in a closed loop:
 *
 *   sessions --requests--> simulation
 *       ^                      |
 *       '---ended responses----'
 */
#ifndef KVROUTE_SESSIONS_DRIVE_H
#define KVROUTE_SESSIONS_DRIVE_H

#include <stdint.h>

struct kvr_prompt;
struct sessions;
struct simulation;
struct tokens;

/* Called now and then with the number of requests so far; may be NULL. */
typedef void sessions_tick(void *context, uint64_t requests);

/*
 * The simulation is closed (see simulate.h). Ends when all sessions have ended.
 * Returns an enum kvr_error; KVR_ECORRUPT also if a response never ends.
 */
int sessions_drive(struct sessions *from, struct simulation *to,
    struct kvr_prompt *prompt, struct tokens *tokens, sessions_tick *tick,
    void *context);

#endif
