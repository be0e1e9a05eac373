/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon.h - options and signals that all daemons have. */
#ifndef KVROUTE_DAEMON_H
#define KVROUTE_DAEMON_H

#include <signal.h>
#include <stdbool.h>

#include "args_table.h"

enum { DAEMON_FAILED = ARGS_FAILED };

/* Set by SIGTERM and SIGINT, and by SIGHUP. */
extern volatile sig_atomic_t daemon_stop, daemon_reload;

/* SIGHUP ends a daemon that does not read its configuration again. */
void daemon_signals(bool reloads);
/* --status and --metrics: prints the state of a daemon, and exits. */
void daemon_ask(void *settings, const struct args_row *row, const char *path);

#endif
