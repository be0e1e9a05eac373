/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * catch.c - stops a process while it holds the lock of an index.
 *
 *   catch file pid
 *
 * Reads the lock word until it names the process, and stops it. If it has left
 * the lock by then, it goes on and is tried again, for half a minute.
 */
#include "region.h"
#include "seat.h"

#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECONDS = 30, LOOKS = 2000 };

static bool
has_the_lock(const struct kvr *k, uint32_t pid)
{
	return seat_pid(k, atomic_load(&k->region->lock)) == pid;
}

/* SIGSTOP takes effect a little later. */
static bool
is_stopped(const char *status)
{
	FILE *file = fopen(status, "r");
	char state = '?';

	if (file == NULL)
		err(1, "%s", status);
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	(void)fclose(file);
	return state == 'T';
}

static bool
caught(const struct kvr *k, uint32_t pid, const char *status)
{
	uint32_t i;

	for (i = 0; !has_the_lock(k, pid); i++)
		if (i > LOOKS)
			(void)usleep(10);
	if (kill((pid_t)pid, SIGSTOP) != 0)
		err(1, "kill");
	while (!is_stopped(status))
		(void)usleep(10);
	if (has_the_lock(k, pid))
		return true;
	(void)kill((pid_t)pid, SIGCONT);
	return false;
}

int
main(int argc, char **argv)
{
	char status[64];
	uint32_t pid;
	struct kvr *k;
	int error;

	if (argc != 3)
		errx(2, "usage: catch file pid");
	(void)alarm(SECONDS);
	pid = (uint32_t)strtoul(argv[2], NULL, 10);
	(void)snprintf(status, sizeof(status), "/proc/%lu/stat",
	    (unsigned long)pid);
	error = kvr_open(argv[1], strlen(argv[1]), KVR_OPEN_READONLY |
	    KVR_OPEN_TRUST, NULL, &k);
	if (error != KVR_OK)
		errx(1, "%s: %s", argv[1], kvr_strerror(error));
	while (!caught(k, pid, status))
		continue;
	kvr_free(k);
	return 0;
}
