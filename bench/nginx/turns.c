/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turns.c - preloaded into nginx: how long each turn of its loop took, from the
 * return of epoll_wait to the next call, in CPU time of the process. So other
 * processes do not disturb it. A process that saw a thousand turns writes
 * name=value lines, in ms, to the file TURNS, followed by its pid, at its exit.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { TURNS_MAX = 1 << 22, TURNS_MIN = 1000 };

static char name[4000];
static uint32_t turns[TURNS_MAX];
static size_t n_turns;
static int64_t began;

static int64_t
cpu_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int
epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
	static int (*next)(int, struct epoll_event *, int, int);
	int n;

	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "epoll_wait");
	if (began != 0 && n_turns < TURNS_MAX)
		turns[n_turns++] = (uint32_t)(cpu_now() - began);
	n = next(fd, events, most, timeout);
	began = cpu_now();
	return n;
}

static int
compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static double
share_ms(double share)
{
	return turns[(size_t)((double)(n_turns - 1) * share)] / 1e6;
}

/* Later nginx has emptied the environment. */
__attribute__((constructor)) static void
name_keep(void)
{
	const char *given = getenv("TURNS");

	(void)snprintf(name, sizeof(name), "%s", given == NULL ? "" : given);
}

__attribute__((destructor)) static void
tell(void)
{
	char path[4096];
	FILE *out;

	if (*name == '\0' || n_turns < TURNS_MIN)
		return;
	(void)snprintf(path, sizeof(path), "%s%ld", name, (long)getpid());
	if ((out = fopen(path, "w")) == NULL)
		return;
	qsort(turns, n_turns, sizeof(*turns), compare);
	(void)fprintf(out, "turns=%zu\np50_ms=%.4f\np99_ms=%.4f\n"
	    "p999_ms=%.4f\nmost_ms=%.4f\n", n_turns, share_ms(0.5),
	    share_ms(0.99), share_ms(0.999), share_ms(1));
	(void)fclose(out);
}
