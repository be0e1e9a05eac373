/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * router.c - one call of a router on a region file, for check_sync.sh and
 * check_net.sh.
 *
 *	router FILE make SECRET           workers a, b, c, d; "-": no journal
 *	router FILE silent                prints 1 if its daemon seems dead
 *	router FILE live PROMPTS          prints the overlaps of each with
 *	                                  prompts 1 to so many
 *	router FILE loads                 prints requests and prefill tokens of
 *	                                  each worker
 *	router FILE leases                prints how many are open
 *	router FILE brought               prints how many of them are others'
 *	router FILE open PROMPT WORKER    prints the lease
 *	router FILE finish LEASE
 *	router FILE holds PROMPT WORKER   prints blocks
 *	router FILE requests WORKER       prints how many run
 *	router FILE churn                 observes for ever, once it is open
 *	router FILE busy                  prints 1 if the lock is held
 *	router FILE check
 */
#include <kvroute.h>
#include <kvroute_replica.h>

#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SILENCE INT64_C(3000000000) /* as in the nginx module */

enum { BLOCKS = 20, BLOCK = 16, WORKERS = 4, LEASES = 64, CHURNED = 1000 };

static struct kvr *k;
static struct kvr_prompt *p;

static void
must(int error, const char *what)
{
	if (error != KVR_OK)
		errx(1, "%s: %s", what, kvr_errname(error));
}

static void
make(const char *path, const char *secret)
{
	struct kvr_options o;
	uint64_t id;
	char name;

	(void)kvr_options_init(&o, sizeof(o));
	o.region_bytes = 4 << 20;
	o.block_size = BLOCK;
	o.journal_bytes = secret[0] == '-' ? 0 : 1 << 20;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, secret[0], KVR_SECRET_MIN);
	must(kvr_open(path, strlen(path), KVR_OPEN_CREATE, &o, &k), path);
	for (name = 'a'; name < 'a' + WORKERS; name++)
		must(kvr_worker_add(k, &name, 1, NULL, &id), "add");
}

static void
attach(const char *path)
{
	must(kvr_open(path, strlen(path), KVR_OPEN_ATTACH, NULL, &k), path);
	must(kvr_prompt_new(k, &p), "prompt");
}

static void
prompt(const char *number)
{
	const uint32_t first = (uint32_t)strtoul(number, NULL, 10) * 1000;
	uint32_t tokens[BLOCKS * BLOCK], i;

	for (i = 0; i < BLOCKS * BLOCK; i++)
		tokens[i] = first + i;
	must(kvr_prompt_set_tokens(p, NULL, tokens, i), "tokens");
}

static uint64_t
worker(const char *name)
{
	uint64_t id;

	must(kvr_worker_find(k, name, strlen(name), 0, &id), name);
	return id;
}

static void
open_on(const char *name)
{
	struct kvr_decision d = { .size = sizeof(d) };

	must(kvr_lease_open_on(k, p, NULL, worker(name), kvr_clock_now(), &d),
	    "open");
	must(kvr_lease_commit(k, d.lease, kvr_clock_now(), 0), "commit");
	printf("%" PRIu64 "\n", d.lease);
}

static uint32_t
held(const char *name)
{
	struct kvr_overlap found[WORKERS];
	const uint64_t id = worker(name);
	size_t i, n;

	must(kvr_match(k, p, kvr_clock_now(), found, sizeof(found[0]), WORKERS,
	    &n), "match");
	for (i = 0; i < n; i++)
		if (found[i].worker == id)
			return found[i].blocks;
	return 0;
}

static void
live(uint64_t prompts)
{
	char number[24], name[2] = "a";
	uint64_t i;

	for (i = 1; i <= prompts; i++) {
		snprintf(number, sizeof(number), "%" PRIu64, i);
		prompt(number);
		printf("%s", number);
		for (name[0] = 'a'; name[0] < 'a' + WORKERS; name[0]++)
			printf(" %" PRIu32, held(name));
		putchar('\n');
	}
}

/* Open leases; only those that kvroute-sync has brought. */
static uint64_t
leases(bool brought)
{
	struct kvr_lease_info found[LEASES];
	uint64_t cursor = 0, sum = 0;
	size_t n, i;

	do {
		must(kvr_lease_list(k, &cursor, found, sizeof(found[0]),
		    LEASES, &n), "leases");
		for (i = 0; i < n; i++)
			sum += !brought ||
			    found[i].owner >> 32 == UINT32_MAX;
	} while (cursor != 0);
	return sum;
}

static void
loads(void)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };
	char name[2] = "a";

	for (name[0] = 'a'; name[0] < 'a' + WORKERS; name[0]++) {
		must(kvr_worker_stats_get(k, worker(name), &stats), "stats");
		printf("%" PRIu64 " %" PRIu64 "\n", stats.requests,
		    stats.prefill_tokens);
	}
}

static void
requests(const char *name)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };

	must(kvr_worker_stats_get(k, worker(name), &stats), "stats");
	printf("%" PRIu64 "\n", stats.requests);
}

/* One prompt after another, so that a stop is often in the middle of a call. */
static _Noreturn void
churn(void)
{
	char number[24];
	uint64_t i;

	puts("open");
	fflush(stdout);
	for (i = 0;; i = (i + 1) % CHURNED) {
		snprintf(number, sizeof(number), "%" PRIu64, CHURNED + i);
		prompt(number);
		must(kvr_observe(k, p, worker("a"), kvr_clock_now(), 0, NULL),
		    "observe");
	}
}

static bool
busy(void)
{
	uint64_t id;

	must(kvr_nowait_set(k, 1), "nowait");
	return kvr_worker_find(k, "a", 1, 0, &id) == KVR_EBUSY;
}

static void
silent(void)
{
	struct kvr_stats stats = { .size = sizeof(stats) };

	must(kvr_stats_get(k, &stats), "stats");
	printf("%d\n", stats.journal_beat >= 0 &&
	    kvr_clock_now() - stats.journal_beat > SILENCE);
}

int
main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[2] : "";

	if (argc == 4 && strcmp(verb, "make") == 0) {
		make(argv[1], argv[3]);
		return 0;
	}
	if (argc < 3)
		errx(2, "usage: see the source");
	attach(argv[1]);
	if (argc == 5)
		prompt(argv[3]);
	if (argc == 5 && strcmp(verb, "open") == 0)
		open_on(argv[4]);
	else if (argc == 4 && strcmp(verb, "live") == 0)
		live(strtoull(argv[3], NULL, 10));
	else if (strcmp(verb, "loads") == 0)
		loads();
	else if (strcmp(verb, "leases") == 0 || strcmp(verb, "brought") == 0)
		printf("%" PRIu64 "\n", leases(verb[0] == 'b'));
	else if (argc == 5 && strcmp(verb, "holds") == 0)
		printf("%" PRIu32 "\n", held(argv[4]));
	else if (argc == 4 && strcmp(verb, "requests") == 0)
		requests(argv[3]);
	else if (argc == 4 && strcmp(verb, "finish") == 0)
		must(kvr_lease_finish(k, strtoull(argv[3], NULL, 10), NULL,
		    kvr_clock_now(), 0), "finish");
	else if (strcmp(verb, "churn") == 0)
		churn();
	else if (strcmp(verb, "busy") == 0)
		printf("%d\n", busy());
	else if (strcmp(verb, "silent") == 0)
		silent();
	else if (strcmp(verb, "check") == 0)
		must(kvr_check(k), "check");
	else
		errx(2, "usage: see the source");
	return 0;
}
