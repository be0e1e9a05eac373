/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peers.c - processes of two C libraries share a region; mk/libc.sh.
 *
 *   peers file write          records prompts, while others do
 *   peers file hold           dies with the lock, in the middle of a change
 *   peers file outlive PROGRAM  has PROGRAM do that, and goes on
 */
#include "region.h"
#include "seat.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROMPTS = 20000, TOKENS = 64 };

static struct kvr *k;

static void
must(int error, const char *what)
{
	if (error == KVR_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, kvr_strerror(error));
	exit(1);
}

static void
demand(bool true_so, const char *what)
{
	if (true_so)
		return;
	fprintf(stderr, "not so: %s\n", what);
	exit(1);
}

static void
begin(const char *path)
{
	struct kvr_options o;

	must(kvr_options_init(&o, sizeof(o)), "options");
	o.region_bytes = 1 << 20;
	o.max_workers = 4;
	must(kvr_open(path, strlen(path), KVR_OPEN_CREATE | KVR_OPEN_ATTACH,
	    &o, &k), path);
}

static uint64_t
worker(void)
{
	uint64_t id;
	int error = kvr_worker_add(k, "gpu", 3, NULL, &id);

	if (error == KVR_EEXIST)
		error = kvr_worker_find(k, "gpu", 3, 0, &id);
	must(error, "worker");
	return id;
}

static void
write_prompts(uint32_t n)
{
	uint32_t tokens[TOKENS], i, j;
	struct kvr_prompt *p;
	uint64_t id = worker();

	must(kvr_prompt_new(k, &p), "prompt");
	for (i = 0; i < n; i++) {
		for (j = 0; j < TOKENS; j++)
			tokens[j] = i % 500 * (j / 16) + j;
		must(kvr_prompt_set_tokens(p, NULL, tokens, TOKENS), "tokens");
		must(kvr_observe(k, p, id, kvr_clock_now(), 0, NULL),
		    "observe");
	}
	kvr_prompt_free(p);
	must(kvr_check(k), "check");
}

static _Noreturn void
hold(void)
{
	must(region_lock(k, true), "lock");
	atomic_fetch_add(&k->region->seq, 1);
	printf("held\n");
	fflush(stdout);
	for (;;)
		(void)pause();
}

static void
outlive(const char *path, const char *program)
{
	struct kvr_stats s = { .size = sizeof(s) };
	int64_t since;
	int ends[2];
	pid_t child;
	char byte;

	demand(pipe(ends) == 0, "pipe");
	child = fork();
	if (child == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)execl(program, program, path, "hold", (char *)NULL);
		_exit(1);
	}
	close(ends[1]);
	demand(read(ends[0], &byte, 1) == 1, "it holds the lock");
	demand(seat_pid(k, atomic_load(&k->region->lock)) == (uint32_t)child,
	    "the lock names it");
	must(kvr_nowait_set(k, 1), "nowait");
	demand(kvr_clear(k) == KVR_EBUSY, "a living owner keeps its lock");
	must(kvr_nowait_set(k, 0), "nowait");
	demand(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child,
	    "it is killed");
	since = kvr_clock_now();
	write_prompts(1);
	printf("found after %lld ms\n",
	    (long long)(kvr_clock_now() - since) / 1000000);
	demand(kvr_clock_now() - since < 2000 * INT64_C(1000000), "soon");
	must(kvr_stats_get(k, &s), "stats");
	demand(s.recoveries == 1, "one recovery");
}

int
main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	(void)alarm(60);
	begin(argv[1]);
	if (strcmp(argv[2], "write") == 0)
		write_prompts(PROMPTS);
	else if (strcmp(argv[2], "hold") == 0)
		hold();
	else if (argc > 3)
		outlive(argv[1], argv[3]);
	kvr_free(k);
	return 0;
}
