/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * catch.c - stops a process while it holds the lock of an index, and prints its
 * pid.
 *
 *   catch file pid ...
 *
 * Reads the lock word until it names one of the processes, and stops that. If
 * it has left the lock by then, it goes on and another is looked for, for five
 * minutes.
 */
#include "region.h"
#include "seat.h"

#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECONDS = 300, LOOKS = 2000 };

static char **pids; /* as text; the last is NULL */

/* Returns the process that has it; 0: none of them. */
static pid_t
has_the_lock(const struct kvr *k)
{
	uint32_t pid = seat_pid(k, atomic_load(&k->region->lock));
	char **one = pids;

	while (*one != NULL && strtoul(*one, NULL, 10) != pid)
		one++;
	return *one != NULL ? (pid_t)pid : 0;
}

/* SIGSTOP takes effect a little later. */
static bool
is_stopped(pid_t pid)
{
	char status[64], state = '?';
	FILE *file;

	(void)snprintf(status, sizeof(status), "/proc/%ld/stat", (long)pid);
	file = fopen(status, "r");

	if (file == NULL)
		err(1, "%s", status);
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	(void)fclose(file);
	return state == 'T';
}

/* The process that is stopped; 0: it had left the lock. */
static pid_t
caught(const struct kvr *k)
{
	pid_t pid;
	uint32_t i;

	for (i = 0; (pid = has_the_lock(k)) == 0; i++)
		if (i > LOOKS)
			(void)usleep(10);
	if (kill(pid, SIGSTOP) != 0)
		err(1, "kill");
	while (!is_stopped(pid))
		(void)usleep(10);
	if (has_the_lock(k) == pid)
		return pid;
	(void)kill(pid, SIGCONT);
	return 0;
}

int
main(int argc, char **argv)
{
	struct kvr *k;
	pid_t pid;
	int error;

	if (argc < 3)
		errx(2, "usage: catch file pid ...");
	pids = argv + 2;
	(void)alarm(SECONDS);
	error = kvr_open(argv[1], strlen(argv[1]), KVR_OPEN_READONLY |
	    KVR_OPEN_TRUST, NULL, &k);
	if (error != KVR_OK)
		errx(1, "%s: %s", argv[1], kvr_strerror(error));
	while ((pid = caught(k)) == 0)
		continue;
	printf("%ld\n", (long)pid);
	kvr_free(k);
	return 0;
}
