/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * namespaces.h - a process in a PID namespace of its own, as in a container:
 * there it is process 1. Only root can make one.
 */
#ifndef TESTS_NAMESPACES_H
#define TESTS_NAMESPACES_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The process outside that waits for it, and its pid as seen from here. */
struct container {
	pid_t outer, inner;
};

/* False where that is not allowed. `run` ends the process. */
static inline bool
container_start(struct container *c, void (*run)(void))
{
	int ends[2], status;

	if (pipe(ends) != 0)
		return false;
	(void)fflush(NULL);
	c->outer = fork();
	if (c->outer == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWPID) != 0)
			_exit(77);
		c->inner = fork();
		if (c->inner == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			run();
			_exit(99);
		}
		if (write(ends[1], &c->inner, sizeof(c->inner)) < 0 ||
		    waitpid(c->inner, &status, 0) != c->inner)
			_exit(98);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 97);
	}
	(void)close(ends[1]);
	status = (int)read(ends[0], &c->inner, sizeof(c->inner));
	(void)close(ends[0]);
	if (status == (int)sizeof(c->inner))
		return true;
	(void)waitpid(c->outer, &status, 0);
	return false;
}

/* The status with which it ended; 97 if it was killed. */
static inline int
container_end(const struct container *c)
{
	int status;

	if (waitpid(c->outer, &status, 0) != c->outer || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

#endif
