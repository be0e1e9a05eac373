/* SPDX-License-Identifier: BSD-2-Clause */
/* records.c - see records.h. */
#include "records.h"

#include "args.h"

#include <kvroute.h>
#include <kvroute_replica.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLS = 1000, LINES = 128, HASHES_MAX = 752 };

static const uint32_t hashes[] = { 0, 64, 128, 250, 450, HASHES_MAX };
static const uint64_t rings[] = { 1 << 20, 4 << 20, 16 << 20 };

struct bed {
	struct kvr *k;
	struct kvr_prompt *p;
	uint64_t worker;
	uint64_t chain[HASHES_MAX + LINES / 8]; /* as many bytes */
	char *ring;
	uint64_t ring_bytes, at;
	size_t bytes;        /* of a record */
};

enum way { QUIET, RECORDS, COPIES, WAYS };

static void
must(int error, const char *what)
{
	if (error != KVR_OK)
		errx(ARGS_FAILED, "%s: %s", what, kvr_strerror(error));
}

static void
bed_open(struct bed *b, uint64_t ring, uint32_t n)
{
	static uint32_t tokens[HASHES_MAX];
	struct kvr_options o;
	uint32_t i;

	must(kvr_options_init(&o, sizeof(o)), "kvr_options_init");
	o.block_size = 1;
	o.journal_bytes = b->ring_bytes = ring;
	must(kvr_new(&o, &b->k), "kvr_new");
	must(kvr_prompt_new(b->k, &b->p), "kvr_prompt_new");
	must(kvr_worker_add(b->k, "w", 1, NULL, &b->worker), "kvr_worker_add");
	for (i = 0; i < n; i++)
		tokens[i] = i;
	must(kvr_prompt_set_tokens(b->p, NULL, tokens, n),
	    "kvr_prompt_set_tokens");
	memset(b->chain, 1, sizeof(b->chain));
	b->ring = malloc(ring);
	if (b->ring == NULL)
		err(ARGS_FAILED, NULL);
	memset(b->ring, 0, ring);
	b->at = 0;
	b->bytes = LINES + (n * 8 + 63) / 64 * 64;
}

static void
bed_close(struct bed *b)
{
	kvr_prompt_free(b->p);
	kvr_free(b->k);
	free(b->ring);
}

/* As a record: round the ring, in two parts at its end. */
static void
copy_one(struct bed *b)
{
	size_t left = b->ring_bytes - b->at;
	size_t n = b->bytes < left ? b->bytes : left;

	memcpy(b->ring + b->at, b->chain, n);
	memcpy(b->ring, (char *)b->chain + n, b->bytes - n);
	b->at = (b->at + b->bytes) & (b->ring_bytes - 1);
	/* a promise that the ring is read */
	__asm__ volatile("" : : "r"(b->ring) : "memory");
}

static int64_t
cpu_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t
timed(struct bed *b, enum way way)
{
	int64_t start;
	uint32_t i;

	must(kvr_quiet_set(b->k, way == QUIET), "kvr_quiet_set");
	start = cpu_clock();
	for (i = 0; i < CALLS; i++) {
		if (way == COPIES)
			copy_one(b);
		else
			must(kvr_observe(b->k, b->p, b->worker, 1, 0, NULL),
			    "kvr_observe");
	}
	return cpu_clock() - start;
}

static void
measure(uint64_t ring, uint32_t n, uint32_t trials, bool kv)
{
	int64_t least[WAYS] = { INT64_MAX, INT64_MAX, INT64_MAX }, ns;
	double record, copy;
	struct bed b;
	uint32_t i;
	int way;

	bed_open(&b, ring, n);
	for (i = 0; i < trials; i++)
		for (way = 0; way < WAYS; way++) {
			ns = timed(&b, (enum way)way);
			if (ns < least[way])
				least[way] = ns;
		}
	bed_close(&b);
	record = (double)(least[RECORDS] - least[QUIET]) / CALLS;
	copy = (double)least[COPIES] / CALLS;
	if (kv)
		printf("record.%" PRIu64 ".%" PRIu32 "_ns=%.1f\n"
		    "copy.%" PRIu64 ".%" PRIu32 "_ns=%.1f\n",
		    ring >> 20, n, record, ring >> 20, n, copy);
	else
		printf("%6" PRIu64 " %7" PRIu32 " %10.1f %8.1f %9.2f\n",
		    ring >> 20, n, record, copy, record / copy);
}

void
records_run(uint32_t trials, bool kv)
{
	size_t i, j;

	if (!kv)
		printf("   MiB  hashes  record ns  copy ns  quotient\n");
	for (i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
		for (j = 0; j < sizeof(hashes) / sizeof(hashes[0]); j++)
			measure(rings[i], hashes[j], trials, kv);
}
