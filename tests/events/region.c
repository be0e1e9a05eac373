/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region.c - a router's part in the tests of the daemon: a region file, and
 * its contents.
 *
 *   region FILE make [WORKER:RANK ...]
 *   region FILE add WORKER:RANK
 *   region FILE remove WORKER:RANK
 *   region FILE reset WORKER:RANK
 *   region FILE off WORKER:RANK       ends its stream
 *   region FILE observe WORKER:RANK   has it serve a prompt
 *   region FILE state WORKER:RANK     prints how its events stand
 *   region FILE window WORKER:RANK    prints its sliding window, if one is
 *                                     learnt
 *   region FILE running WORKER:RANK   prints how many requests it has
 *   region FILE routed WORKER:RANK    and how many were routed there
 *   region FILE workers               prints their names
 *   region FILE match                 prints each worker's overlap with the
 *                                     token ids on its standard input
 *   region FILE check
 */
#include <kvroute.h>
#include <kvroute_events.h>

#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4, WORKERS_MAX = 64 };

static struct kvr *k;

static void
must(int error, const char *what)
{
	if (error != KVR_OK)
		errx(1, "%s: %s", what, kvr_errname(error));
}

static uint32_t
split(char *worker)
{
	char *colon = strrchr(worker, ':'); /* a name may have some */

	if (colon == NULL)
		return 0;
	*colon = '\0';
	return (uint32_t)strtoul(colon + 1, NULL, 10);
}

static void
add(char *worker)
{
	struct kvr_worker facts;
	uint64_t id;

	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.rank = split(worker);
	must(kvr_worker_add(k, worker, strlen(worker), &facts, &id), worker);
}

static uint64_t
find(char *worker)
{
	const uint32_t rank = split(worker);
	uint64_t id;

	must(kvr_worker_find(k, worker, strlen(worker), rank, &id), worker);
	return id;
}

static void
make(const char *path, char **workers)
{
	struct kvr_options o;

	(void)kvr_options_init(&o, sizeof(o));
	o.region_bytes = 4 << 20;
	o.block_size = BLOCK;
	o.unit = KVR_UNIT_TOKENS;
	must(kvr_open(path, strlen(path), KVR_OPEN_CREATE, &o, &k), path);
	for (; *workers != NULL; workers++)
		add(*workers);
}

static void
state(uint64_t id)
{
	static const char *const names[] = { "off", "complete", "degraded" };
	struct kvr_worker_stats s = { .size = sizeof(s) };

	must(kvr_worker_stats_get(k, id, &s), "stats");
	printf("%s next %" PRIu64 " stored %" PRIu64 " removed %" PRIu64
	    " cleared %" PRIu64 " restarts %" PRIu64 " lost %" PRIu64 "\n",
	    names[s.events_state], s.events_next, s.events_stored,
	    s.events_removed, s.events_cleared, s.events_restarts,
	    s.events_lost);
}

static void
window(uint64_t id)
{
	struct kvr_worker w = { .size = sizeof(w) };

	must(kvr_worker_get(k, id, &w), "facts");
	printf("%" PRIu32 "\n", w.window_mode == KVR_WINDOW_BOUNDARY ?
	    w.window_tokens : 0);
}

static void
requests(uint64_t id, bool all)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };

	must(kvr_worker_stats_get(k, id, &s), "stats");
	printf("%" PRIu64 "\n", all ? s.lease_opens : s.requests);
}

static void
print_name(uint64_t id)
{
	char name[KVR_NAME_MAX];
	size_t n;

	must(kvr_worker_name(k, id, name, sizeof(name), &n), "name");
	printf("%.*s", (int)n, name);
}

static void
workers(void)
{
	uint64_t id;

	for (id = 0; kvr_worker_next(k, &id) == KVR_OK && id != 0;) {
		print_name(id);
		putchar('\n');
	}
}

static void
match(void)
{
	struct kvr_overlap overlaps[WORKERS_MAX];
	struct kvr_prompt *p;
	uint32_t token;
	size_t n = 0, i;

	must(kvr_prompt_new(k, &p), "prompt");
	must(kvr_prompt_begin(p, NULL), "prompt");
	while (scanf("%" SCNu32, &token) == 1)
		must(kvr_prompt_tokens(p, &token, 1), "prompt");
	must(kvr_prompt_end(p, NULL), "prompt");
	must(kvr_match(k, p, kvr_clock_now(), overlaps, sizeof(overlaps[0]),
	    WORKERS_MAX, &n), "match");
	for (i = 0; i < n; i++) {
		print_name(overlaps[i].worker);
		printf(" %" PRIu32 "\n", overlaps[i].tokens);
	}
	kvr_prompt_free(p);
}

static void
observe(uint64_t id)
{
	static const uint32_t tokens[2 * BLOCK] = { 7 };
	struct kvr_prompt *p;

	must(kvr_prompt_new(k, &p), "prompt");
	must(kvr_prompt_set_tokens(p, NULL, tokens, 2 * BLOCK), "prompt");
	must(kvr_observe(k, p, id, kvr_clock_now(), 0, NULL), "observe");
	kvr_prompt_free(p);
}

static void
obey(const char *what, char *worker)
{
	uint64_t id;

	if (strcmp(what, "check") == 0) {
		must(kvr_check(k), "check");
		return;
	}
	if (strcmp(what, "match") == 0) {
		match();
		return;
	}
	if (strcmp(what, "workers") == 0) {
		workers();
		return;
	}
	if (worker == NULL)
		errx(2, "%s: of which worker?", what);
	if (strcmp(what, "add") == 0)
		add(worker);
	else if (strcmp(what, "remove") == 0)
		must(kvr_worker_remove(k, find(worker)), what);
	else if (strcmp(what, "reset") == 0)
		must(kvr_worker_reset(k, find(worker), &id), what);
	else if (strcmp(what, "off") == 0)
		must(kvr_events_off(k, find(worker)), what);
	else if (strcmp(what, "observe") == 0)
		observe(find(worker));
	else if (strcmp(what, "state") == 0)
		state(find(worker));
	else if (strcmp(what, "window") == 0)
		window(find(worker));
	else if (strcmp(what, "running") == 0)
		requests(find(worker), false);
	else if (strcmp(what, "routed") == 0)
		requests(find(worker), true);
	else
		errx(2, "what is: %s", what);
}

int
main(int argc, char **argv)
{
	if (argc < 3)
		errx(2, "usage: region FILE COMMAND [WORKER:RANK ...]");
	if (strcmp(argv[2], "make") == 0) {
		make(argv[1], argv + 3);
	} else {
		must(kvr_open(argv[1], strlen(argv[1]), KVR_OPEN_ATTACH, NULL,
		    &k), argv[1]);
		obey(argv[2], argv[3]);
	}
	kvr_free(k);
	return 0;
}
