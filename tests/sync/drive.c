/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drive.c - a router under load, for check_net.sh: opens leases on a region
 * file that router.c has made, a few hundred a second, until SIGTERM or for so
 * many seconds, and ends each a little later.
 *
 *	drive FILE SEED SECONDS RATE PROMPTS
 *
 * At last it ends all open ones and prints how many requests it had, how many
 * failed, and the 99th percentile of the thread's CPU time for one, in
 * microseconds. A request fails if no worker can be chosen for it. A lease may
 * be gone without failure, if another process died in the middle of a write
 * and the region was emptied.
 *
 * Like the nginx module it ends kvroute-sync's leases when that is silent for
 * 3 s, and, at its start, those it left itself when it was killed.
 */
#include "rng.h"

#include <kvroute.h>

#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define BROUGHT UINT64_C(0xffffffff)

enum { BLOCKS = 20, BLOCK = 16, OPEN_MAX = 256, OWNERS = 64, OWNER = 1 };
enum { TIMES_MAX = 1 << 20, ARGUMENTS = 6 };

struct lease {
	uint64_t id;
	int64_t first, end; /* due; first 0: it has come */
};

struct drive {
	struct kvr *k;
	struct kvr_prompt *p;
	struct rng rng;
	uint64_t prompts, requests, failed;
	int64_t watched;
	size_t n, times;
	struct lease open[OPEN_MAX];
	int64_t cpu[TIMES_MAX];
};

static volatile sig_atomic_t ended;

static void
end(int number)
{
	(void)number;
	ended = 1;
}

static int64_t
cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

static void
must(int error, const char *what)
{
	if (error != KVR_OK)
		errx(1, "%s: %s", what, kvr_errname(error));
}

/* The lease may be gone; anything else is wrong. */
static void
may(int error, const char *what)
{
	if (error != KVR_OK && error != KVR_ELEASE)
		errx(1, "%s: %s", what, kvr_errname(error));
}

/* Makes the same prompt as router.c. */
static void
prompt(struct drive *d, uint64_t number)
{
	uint32_t tokens[BLOCKS * BLOCK], i;

	for (i = 0; i < BLOCKS * BLOCK; i++)
		tokens[i] = (uint32_t)number * 1000 + i;
	must(kvr_prompt_set_tokens(d->p, NULL, tokens, i), "tokens");
}

static void
request(struct drive *d, int64_t now)
{
	struct kvr_decision decision = { .size = sizeof(decision) };
	struct kvr_request q;
	struct lease *l = &d->open[d->n];
	int64_t began;
	int error;

	prompt(d, rng_between(&d->rng, 1, d->prompts));
	(void)kvr_request_init(&q, sizeof(q));
	q.owner = OWNER;
	began = cpu_now();
	error = kvr_lease_open(d->k, d->p, &q, now, &decision);
	d->requests++;
	if (error != KVR_OK) {
		d->failed++;
		warnx("a request failed: %s", kvr_errname(error));
		return;
	}
	may(kvr_lease_commit(d->k, decision.lease, now, 0), "commit");
	if (d->times < TIMES_MAX)
		d->cpu[d->times++] = cpu_now() - began;
	l->id = decision.lease;
	l->first = now + (int64_t)rng_between(&d->rng, 5, 30) * MS;
	l->end = l->first + (int64_t)rng_between(&d->rng, 10, 500) * MS;
	d->n++;
}

static void
end_lease(struct drive *d, size_t i, int64_t now)
{
	may(kvr_lease_finish(d->k, d->open[i].id, NULL, now, 0), "finish");
	d->open[i] = d->open[--d->n];
}

static void
end_due(struct drive *d, int64_t now)
{
	size_t i;

	for (i = d->n; i-- > 0;) {
		if (d->open[i].first != 0 && d->open[i].first <= now) {
			may(kvr_lease_first_token(d->k, d->open[i].id, now, 0),
			    "first token");
			d->open[i].first = 0;
		}
		if (d->open[i].end <= now)
			end_lease(d, i, now);
	}
}

static void
reap(struct kvr *k, uint64_t owner, int64_t now)
{
	uint64_t cursor = 0;

	do {
		must(kvr_owner_reap(k, owner, now, &cursor, NULL), "reap");
	} while (cursor != 0);
}

static void
end_brought(struct kvr *k, int64_t now)
{
	const struct kvr_load none = { .size = sizeof(none) };
	uint64_t cursor = 0, id = 0, owners[OWNERS];
	size_t n, i;

	do {
		must(kvr_owner_list(k, &cursor, owners, OWNERS, &n), "owners");
		for (i = 0; i < n; i++)
			if (owners[i] >> 32 == BROUGHT)
				reap(k, owners[i], now);
	} while (cursor != 0);
	for (;;) {
		must(kvr_worker_next(k, &id), "next");
		if (id == 0)
			break;
		must(kvr_worker_set_load(k, id, KVR_LOAD_SOURCES - 1, &none),
		    "load");
	}
}

static void
watch(struct drive *d, int64_t now)
{
	struct kvr_stats s = { .size = sizeof(s) };

	if (now - d->watched < SECOND)
		return;
	d->watched = now;
	must(kvr_stats_get(d->k, &s), "stats");
	if (s.journal_beat >= 0 && now - s.journal_beat > 3 * SECOND)
		end_brought(d->k, now);
}

static int
ascending(const void *a, const void *b)
{
	int64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

static void
drive(struct drive *d, int64_t seconds, int64_t rate)
{
	const int64_t begin = kvr_clock_now();
	const struct timespec pause = { .tv_nsec = MS };
	int64_t now, next = begin;

	while (!ended && (now = kvr_clock_now()) - begin < seconds * SECOND) {
		for (; next <= now && d->n < OPEN_MAX; next += SECOND / rate)
			request(d, now);
		if (next <= now)
			next = now;
		end_due(d, now);
		watch(d, now);
		nanosleep(&pause, NULL);
	}
	while (d->n > 0)
		end_lease(d, 0, kvr_clock_now());
}

int
main(int argc, char **argv)
{
	static struct drive d;

	if (argc != ARGUMENTS)
		errx(2, "usage: drive FILE SEED SECONDS RATE PROMPTS");
	signal(SIGTERM, end);
	d.rng.state = strtoull(argv[2], NULL, 0);
	d.prompts = strtoull(argv[5], NULL, 10);
	must(kvr_open(argv[1], strlen(argv[1]), KVR_OPEN_ATTACH, NULL, &d.k),
	    argv[1]);
	must(kvr_prompt_new(d.k, &d.p), "prompt");
	reap(d.k, OWNER, kvr_clock_now());
	drive(&d, strtoll(argv[3], NULL, 10), strtoll(argv[4], NULL, 10));
	qsort(d.cpu, d.times, sizeof(d.cpu[0]), ascending);
	printf("requests=%" PRIu64 " failed=%" PRIu64 " p99_us=%.1f\n",
	    d.requests, d.failed, d.times == 0 ? 0.0 :
	    (double)d.cpu[d.times * 99 / 100] / 1e3);
	kvr_prompt_free(d.p);
	kvr_free(d.k);
	return 0;
}
