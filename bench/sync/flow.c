/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flow.c - how much of what a router does comes to another one through the real
 * daemons and a real bus, and how late:
 *
 *	sync-flow make REGION ...
 *	sync-flow run SECONDS RATE BLOCKS FROM TO
 *
 *	FROM  --kvroute-sync--bus--kvroute-sync-->  TO
 *	  ^ RATE requests a second                  ^ seen when?
 *
 * Requests have chains of so many blocks, of 256 different ones, on 63 workers;
 * each ends at once. The last worker is for probes, one after the other: a
 * lease is opened in FROM, and the time until TO has it is a latency. It is
 * looked for each 50 us, by this process, on the same machine: so latencies are
 * of the daemons, the bus, and the network between namespaces.
 */
#include "rng.h"

#include <kvroute.h>

#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)

enum { WORKERS = 64, PROBE = WORKERS - 1, BLOCK = 16, PROMPTS = 256 };
enum { BLOCKS_MAX = 8192, PROBES_MAX = 1 << 16, REGION = 256 << 20 };
enum { JOURNAL = 16 << 20, BURST_MAX = 64, RUN_ARGUMENTS = 7 };

struct flow {
	struct kvr *from, *to;
	uint64_t from_ids[WORKERS], to_ids[WORKERS];
	struct kvr_prompt *prompts[PROMPTS];
	struct rng rng;
	uint64_t requests;
	struct kvr_stats before;   /* of TO */
	uint64_t probe;            /* its lease, or 0 */
	int64_t probed, next_probe;
	size_t n;
	int64_t late[PROBES_MAX];
};

static void
must(int error, const char *what)
{
	if (error != KVR_OK)
		errx(1, "%s: %s", what, kvr_errname(error));
}

static void
make(const char *path)
{
	struct kvr_options o;
	struct kvr *k;
	char name[16];
	uint64_t id;
	size_t i;

	(void)kvr_options_init(&o, sizeof(o));
	o.region_bytes = REGION;
	o.block_size = BLOCK;
	o.journal_bytes = JOURNAL;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 's', KVR_SECRET_MIN);
	must(kvr_open(path, strlen(path), KVR_OPEN_CREATE, &o, &k), path);
	for (i = 0; i < WORKERS; i++) {
		snprintf(name, sizeof(name), "worker-%zu", i);
		must(kvr_worker_add(k, name, strlen(name), NULL, &id),
		    "worker");
	}
	kvr_free(k);
}

static struct kvr *
attach(const char *path, uint64_t ids[WORKERS])
{
	uint64_t id = 0;
	struct kvr *k;
	size_t i;

	must(kvr_open(path, strlen(path), KVR_OPEN_ATTACH, NULL, &k), path);
	for (i = 0; i < WORKERS; i++) {
		must(kvr_worker_next(k, &id), "worker");
		ids[i] = id;
	}
	return k;
}

static void
make_prompts(struct flow *f, uint32_t blocks)
{
	static uint32_t tokens[BLOCKS_MAX * BLOCK];
	uint32_t i, j;

	for (i = 0; i < PROMPTS; i++) {
		for (j = 0; j < blocks * BLOCK; j++)
			tokens[j] = i << 20 | j;
		must(kvr_prompt_new(f->from, &f->prompts[i]), "prompt");
		must(kvr_prompt_set_tokens(f->prompts[i], NULL, tokens, j),
		    "tokens");
	}
}

/* In TO since the beginning: those that count in full, and prefixes only. */
static uint64_t
arrived(const struct flow *f, uint64_t *full)
{
	struct kvr_stats s = { .size = sizeof(s) };

	must(kvr_stats_get(f->to, &s), "stats");
	*full = s.lease_opens - f->before.lease_opens;
	return *full + s.observes - f->before.observes;
}

static uint64_t
open_lease(struct flow *f, size_t worker, int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };

	must(kvr_lease_open_on(f->from, f->prompts[rng_next(&f->rng) %
	    PROMPTS], NULL, f->from_ids[worker], now, &d), "open");
	must(kvr_lease_commit(f->from, d.lease, now, 0), "commit");
	f->requests++;
	return d.lease;
}

static void
request(struct flow *f)
{
	const int64_t now = kvr_clock_now();
	const uint64_t lease = open_lease(f, rng_next(&f->rng) % PROBE, now);

	must(kvr_lease_first_token(f->from, lease, now, 0), "first token");
	must(kvr_lease_finish(f->from, lease, NULL, now, 0), "finish");
}

/* Has it come, or gone, in TO? */
static void
probe(struct flow *f)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	int64_t now = kvr_clock_now();

	if (f->probe == 0 && now < f->next_probe)
		return;
	must(kvr_worker_stats_get(f->to, f->to_ids[PROBE], &s), "stats");
	now = kvr_clock_now();
	if (f->probe == 0 && s.requests == 0) {
		f->probe = open_lease(f, PROBE, now);
		f->probed = now;
	} else if (f->probe != 0 && s.requests > 0) {
		if (f->n < PROBES_MAX)
			f->late[f->n++] = now - f->probed;
		must(kvr_lease_finish(f->from, f->probe, NULL, now, 0),
		    "finish");
		f->probe = 0;
		f->next_probe = now + (int64_t)rng_between(&f->rng, 1, 20) *
		    MS;
	}
}

/* Until TO has all, or nothing more comes for a second. */
static void
wait_for_all(const struct flow *f)
{
	const struct timespec pause = { .tv_nsec = 10 * MS };
	uint64_t full, before, n = arrived(f, &full);
	int still = 0;

	while (n < f->requests && still < 100) {
		nanosleep(&pause, NULL);
		before = n;
		n = arrived(f, &full);
		still = n == before ? still + 1 : 0;
	}
}

static int
ascending(const void *a, const void *b)
{
	int64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

static double
late_ms(const struct flow *f, size_t per_mille)
{
	return f->n == 0 ? -1 : (double)f->late[f->n * per_mille / 1000] / 1e6;
}

static void
flow(struct flow *f, int64_t seconds, int64_t rate)
{
	const struct timespec pause = { .tv_nsec = 50000 };
	const int64_t began = kvr_clock_now(), end = began + seconds * SECOND;
	int64_t now, took, i;
	uint64_t full, there;

	while ((now = kvr_clock_now()) < end) {
		for (i = 0; i < BURST_MAX && (int64_t)f->requests <
		    (now - began) / 1000 * rate / 1000000; i++)
			request(f);
		probe(f);
		nanosleep(&pause, NULL);
	}
	took = kvr_clock_now() - began;
	if (f->probe != 0)
		must(kvr_lease_finish(f->from, f->probe, NULL, now, 0),
		    "finish");
	wait_for_all(f);
	there = arrived(f, &full);
	qsort(f->late, f->n, sizeof(f->late[0]), ascending);
	printf("rate=%.0f\narrived=%.4f\nfull=%.4f\nprobes=%zu\np50_ms=%.2f\n"
	    "p99_ms=%.2f\n", (double)f->requests * 1e9 / (double)took,
	    (double)there / (double)f->requests,
	    (double)full / (double)f->requests, f->n, late_ms(f, 500),
	    late_ms(f, 990));
}

int
main(int argc, char **argv)
{
	static struct flow f;
	int i;

	if (argc > 2 && strcmp(argv[1], "make") == 0) {
		for (i = 2; i < argc; i++)
			make(argv[i]);
		return 0;
	}
	if (argc != RUN_ARGUMENTS || strcmp(argv[1], "run") != 0)
		errx(2, "usage: see the source");
	f.rng.state = 1;
	f.from = attach(argv[5], f.from_ids);
	f.to = attach(argv[6], f.to_ids);
	f.before.size = sizeof(f.before);
	must(kvr_stats_get(f.to, &f.before), "stats");
	i = atoi(argv[4]);
	if (i < 1 || i > BLOCKS_MAX)
		errx(2, "1 to %d blocks", BLOCKS_MAX);
	make_prompts(&f, (uint32_t)i);
	flow(&f, strtoll(argv[2], NULL, 10), strtoll(argv[3], NULL, 10));
	for (i = 0; i < PROMPTS; i++)
		kvr_prompt_free(f.prompts[i]);
	kvr_free(f.from);
	kvr_free(f.to);
	return 0;
}
