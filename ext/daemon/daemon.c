/* SPDX-License-Identifier: BSD-2-Clause */
/* daemon.c - see daemon.h. */
#include "daemon.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status_socket.h"

volatile sig_atomic_t daemon_stop, daemon_reload;

static void
on_signal(int number)
{
	if (number == SIGHUP)
		daemon_reload = 1;
	else
		daemon_stop = 1;
}

void
daemon_signals(bool reloads)
{
	struct sigaction act = { .sa_handler = on_signal };

	(void)sigaction(SIGTERM, &act, NULL);
	(void)sigaction(SIGINT, &act, NULL);
	if (reloads)
		(void)sigaction(SIGHUP, &act, NULL);
	act.sa_handler = SIG_IGN;
	(void)sigaction(SIGPIPE, &act, NULL);
}

void
daemon_ask(void *settings, const struct args_row *row, const char *path)
{
	(void)settings;
	if (!status_print(path, strcmp(row->name, "metrics") == 0 ?
	    "metrics" : ""))
		err(DAEMON_FAILED, "%s", path);
	exit(fflush(stdout) == 0 ? 0 : DAEMON_FAILED);
}
