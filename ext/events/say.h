/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * say.h - the daemon's log: a line on standard error.
 */
#ifndef KVROUTE_SAY_H
#define KVROUTE_SAY_H

#include "tell.h"

/* stream NULL: about all of the region. region NULL: about the daemon. */
void say(const char *region, const struct conf_stream *stream,
    const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * Logs the reason why an endpoint is not connected, if it is a new one; NULL:
 * it is connected, or nothing is known.
 */
void say_why(const char *region, const struct conf_stream *stream,
    const char *endpoint, const char **said, const char *why);
/* Once: its pages take more memory than they may. */
void say_pages(const char *region, const struct conf_stream *stream,
    struct target *target);
/* Logs a worker's state, if it is another than before. */
void say_state(const char *region, const struct conf_stream *stream,
    struct tell_state *said, struct tell_state now);

#endif
