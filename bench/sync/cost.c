/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cost.c - what it costs to apply the requests of another router, beside what
 * the same calls cost the router that made them:
 *
 *	sync-cost blocks requests
 *
 *	region A --journal--> publish --frames--> apply --> region B
 *	 timed                 timed               timed
 *
 * Thread CPU of one run: requests are made in A in rounds of 100, and after
 * each round the frames are made and applied, so all three meet the same
 * machine. A request is opened on a worker, committed, has its first token and
 * ends, with a chain of so many blocks of which a half is new. Prompts are
 * hashed before, outside of the times. 64 workers.
 */
#include "apply.h"
#include "publish.h"
#include "rng.h"

#include <kvroute.h>
#include <kvroute_replica.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)
#define MEMORY ((size_t)1 << 30)

enum { WORKERS = 64, ROUND = 100, BLOCK = 16, JOURNAL = 64 << 20 };
enum { FRAMES_MAX = 4096, BLOCKS_MAX = 8192 };

struct frame {
	unsigned char *bytes;
	size_t n;
};

struct cost {
	uint32_t blocks;
	struct kvr *a, *b, *quiet[2];
	struct kvr_prompt *prompts[ROUND];
	uint64_t workers[WORKERS];
	struct roster roster[2];
	struct publish *publish;
	struct apply *apply;
	struct rng rng;
	int64_t now;
	int64_t local, made, applied; /* CPU */
	uint64_t bytes, n_frames;
	size_t n;
	struct frame frames[FRAMES_MAX];
};

static void
must(int error, const char *what)
{
	if (error != KVR_OK)
		errx(1, "%s: %s", what, kvr_errname(error));
}

static int64_t
cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

static bool
keep(void *context, const unsigned char *bytes, size_t n)
{
	struct cost *c = context;

	if (c->n == FRAMES_MAX ||
	    (c->frames[c->n].bytes = malloc(n)) == NULL)
		return false;
	memcpy(c->frames[c->n].bytes, bytes, n);
	c->frames[c->n++].n = n;
	return true;
}

static void
region(struct kvr **k, struct kvr **quiet, uint64_t workers[WORKERS])
{
	void *memory = aligned_alloc(64, MEMORY);
	struct kvr_options o;
	char name[16];
	size_t i;

	if (memory == NULL)
		errx(1, "no memory");
	(void)kvr_options_init(&o, sizeof(o));
	o.block_size = BLOCK;
	o.journal_bytes = JOURNAL;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 's', KVR_SECRET_MIN);
	must(kvr_new_at(&o, memory, MEMORY, k), "region");
	must(kvr_attach_at(NULL, memory, MEMORY, quiet), "handle");
	must(kvr_quiet_set(*quiet, 1), "quiet");
	for (i = 0; i < WORKERS; i++) {
		snprintf(name, sizeof(name), "worker-%zu", i);
		must(kvr_worker_add(*k, name, strlen(name), NULL, &workers[i]),
		    "worker");
	}
}

static void
daemons(struct cost *c)
{
	struct publish_options p = { .roster = &c->roster[0], .origin = 1,
	    .host = "host", .send = keep, .context = c };
	struct apply_options a = { .roster = &c->roster[1], .origin = 2,
	    .now = c->now };

	must(kvr_rule_get(c->a, &p.rules.rule), "rule");
	a.rules = p.rules;
	if (!roster_init(&c->roster[0], c->quiet[0]) ||
	    !roster_init(&c->roster[1], c->quiet[1]))
		errx(1, "no memory");
	c->publish = publish_new(&p);
	c->apply = apply_new(&a);
	if (c->publish == NULL || c->apply == NULL)
		errx(1, "no memory");
}

/* The first half is one of 50 beginnings, the rest is new. */
static void
make_prompts(struct cost *c)
{
	static uint32_t tokens[BLOCKS_MAX * BLOCK];
	uint32_t i, j, first;

	for (i = 0; i < ROUND; i++) {
		first = (uint32_t)rng_between(&c->rng, 1, 50) << 20;
		for (j = 0; j < c->blocks * BLOCK; j++)
			tokens[j] = j < c->blocks * BLOCK / 2 ? first + j :
			    (uint32_t)rng_next(&c->rng);
		must(kvr_prompt_set_tokens(c->prompts[i], NULL, tokens, j),
		    "tokens");
	}
}

static void
requests(struct cost *c)
{
	struct kvr_decision d = { .size = sizeof(d) };
	const int64_t began = cpu_now();
	uint64_t worker;
	uint32_t i;

	for (i = 0; i < ROUND; i++) {
		worker = c->workers[rng_next(&c->rng) % WORKERS];
		c->now += MS;
		must(kvr_lease_open_on(c->a, c->prompts[i], NULL, worker,
		    c->now, &d), "open");
		must(kvr_lease_commit(c->a, d.lease, c->now, 0), "commit");
		must(kvr_lease_first_token(c->a, d.lease, c->now, 0), "first");
		must(kvr_lease_finish(c->a, d.lease, NULL, c->now, 0),
		    "finish");
	}
	c->local += cpu_now() - began;
}

static void
exchange(struct cost *c, bool timed)
{
	const int64_t began = cpu_now();
	int64_t then;
	size_t i;

	c->now += 10 * MS;
	(void)publish_work(c->publish, c->now);
	then = cpu_now();
	for (i = 0; i < c->n; i++)
		apply_frame(c->apply, c->now, 0, c->frames[i].bytes,
		    c->frames[i].n);
	if (timed) {
		c->made += then - began;
		c->applied += cpu_now() - then;
		c->n_frames += c->n;
	}
	apply_work(c->apply, c->now);
	for (i = 0; i < c->n; i++) {
		c->bytes += timed ? c->frames[i].n : 0;
		free(c->frames[i].bytes);
	}
	c->n = 0;
}

static void
tell(const struct cost *c, uint64_t n)
{
	const struct apply_counts counts = apply_counts(c->apply);
	struct kvr_stats s = { .size = sizeof(s) };

	must(kvr_stats_get(c->b, &s), "stats");
	/* Each was opened there too and has ended, or times mean nothing. */
	if (s.lease_opens < n || s.leases != 0 || counts.lost != 0)
		errx(1, "%" PRIu64 " of %" PRIu64 " requests were applied, %"
		    PRIu64 " are open", s.lease_opens, n, s.leases);
	printf("blocks=%" PRIu32 "\nlocal_us=%.2f\npublish_us=%.2f\n"
	    "apply_us=%.2f\nratio=%.2f\nbytes=%.0f\n", c->blocks,
	    (double)c->local / 1e3 / (double)n,
	    (double)c->made / 1e3 / (double)n,
	    (double)c->applied / 1e3 / (double)n,
	    (double)c->applied / (double)c->local,
	    (double)c->bytes / (double)n);
}

int
main(int argc, char **argv)
{
	static struct cost c;
	uint64_t ids[WORKERS], n, i;

	if (argc != 3)
		errx(2, "usage: sync-cost blocks requests");
	c.blocks = (uint32_t)strtoul(argv[1], NULL, 10);
	n = (strtoull(argv[2], NULL, 10) + ROUND - 1) / ROUND * ROUND;
	if (c.blocks == 0 || c.blocks > BLOCKS_MAX)
		errx(2, "1 to %d blocks", BLOCKS_MAX);
	c.rng.state = 1;
	c.now = SECOND;
	region(&c.a, &c.quiet[0], c.workers);
	region(&c.b, &c.quiet[1], ids);
	for (i = 0; i < ROUND; i++)
		must(kvr_prompt_new(c.a, &c.prompts[i]), "prompt");
	daemons(&c);
	exchange(&c, false);
	exchange(&c, false);
	for (i = 0; i < n; i += ROUND) {
		make_prompts(&c);
		requests(&c);
		exchange(&c, true);
	}
	exchange(&c, false);
	tell(&c, n);
	return 0;
}
