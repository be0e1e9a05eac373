/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - foreign [vectors-file]: prints the library's results in a few
 * worlds, and on stderr how many hashes of the reference it got right.
 */
#include "foreign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPERATIONS = 14000, LOOK_EVERY = 2000 };

#define SECOND INT64_C(1000000000)

static const struct setting settings[] = {
	{ "tokens", KVR_UNIT_TOKENS, KVR_HASH_KEYED, 16, 0, 120 * SECOND,
	    8 << 20, KVR_AUTO, 0, KVR_RETAIN_AUTO },
	{ "full", KVR_UNIT_TOKENS, KVR_HASH_KEYED, 16, 0, KVR_TTL_ENDLESS,
	    96 << 10, 200, 2, KVR_RETAIN_TTL },
	{ "bytes", KVR_UNIT_BYTES, KVR_HASH_KEYED, 64, 0, 120 * SECOND,
	    8 << 20, KVR_AUTO, 1, KVR_RETAIN_AUTO },
	{ "odd bytes", KVR_UNIT_BYTES, KVR_HASH_KEYED, 23, 0, 10 * SECOND,
	    1 << 20, KVR_AUTO, 3, KVR_RETAIN_FEEDBACK },
	{ "reference", KVR_UNIT_TOKENS, KVR_HASH_DYNAMO, 16, 0, 120 * SECOND,
	    8 << 20, KVR_AUTO, 2, KVR_RETAIN_TTL },
	{ "reference, eagle", KVR_UNIT_TOKENS, KVR_HASH_DYNAMO, 32, 1,
	    SECOND, 256 << 10, 60, 1, KVR_RETAIN_TTL },
	{ "eagle", KVR_UNIT_TOKENS, KVR_HASH_KEYED, 8, 1, 120 * SECOND,
	    512 << 10, KVR_AUTO, 3, KVR_RETAIN_AUTO },
	{ "nothing kept", KVR_UNIT_TOKENS, KVR_HASH_KEYED, 64, 0, 0, 1 << 20,
	    KVR_AUTO, 0, KVR_RETAIN_TTL },
	{ "balanced", KVR_UNIT_TOKENS, KVR_HASH_KEYED, 16, 0, 120 * SECOND,
	    8 << 20, KVR_AUTO, 4, KVR_RETAIN_AUTO },
	{ "by feedback", KVR_UNIT_TOKENS, KVR_HASH_KEYED, 16, 0, 120 * SECOND,
	    8 << 20, KVR_AUTO, 4, KVR_RETAIN_FEEDBACK }
};

_Noreturn void
fail(const char *what, int error)
{
	fflush(stdout);
	fprintf(stderr, "%s: %s\n", what, kvr_errname(error));
	exit(1);
}

void
must(const char *what, int error)
{
	if (error != KVR_OK)
		fail(what, error);
}

uint32_t
pick(struct world *w, uint32_t n)
{
	return n == 0 ? 0 : (uint32_t)rng_between(&w->rng, 0, n - 1);
}

double
pick_of(struct world *w, const double *values, uint32_t n)
{
	return values[pick(w, n)];
}

/* A few are asked for more often than the others; one in 50 is unknown. */
uint64_t
pick_worker(struct world *w)
{
	if (pick(w, 50) == 0)
		return rng_next(&w->rng);
	return w->worker[pick(w, pick(w, 2) ? WORKERS : 4)];
}

static void
make(struct world *w, const struct setting *s)
{
	struct kvr_stats stats = { .size = sizeof(stats) };
	struct kvr_options o;
	uint32_t i;

	memset(w, 0, sizeof(*w));
	w->s = s;
	w->rng.state = s->block_size + s->hash;
	w->now = 1000;
	must("kvr_options_init", kvr_options_init(&o, sizeof(o)));
	o.region_bytes = s->region_bytes;
	o.ttl_ns = s->ttl;
	o.lease_limit_ns = 300 * SECOND;
	o.unit = s->unit;
	o.block_size = s->block_size;
	o.hash = s->hash;
	o.eagle = s->eagle;
	o.max_workers = WORKERS;
	o.max_prompt_blocks = s->max_prompt_blocks;
	o.secret_bytes = KVR_SECRET_MIN;
	for (i = 0; i < KVR_SECRET_MIN; i++)
		o.secret[i] = (unsigned char)rng_next(&w->rng);
	must("kvr_new", kvr_new(&o, &w->k));
	must("kvr_prompt_new", kvr_prompt_new(w->k, &w->p));
	must("kvr_stats_get", kvr_stats_get(w->k, &stats));
	printf("world %s, %" PRIu64 " cells\n", s->name, stats.cells);
	prompt_scopes(w);
	write_policy(w, s->policy);
	for (i = 0; i < WORKERS; i++)
		write_worker_add(w, i);
}

static void
operate(struct world *w)
{
	static void (*const often[])(struct world *) = {
		write_observe, write_observe, write_observe, choice_route,
		choice_route, choice_match, choice_choose, choice_candidates,
		write_reserve, write_reserve, write_reserve_on, write_lease,
		write_lease, write_lease, write_lease, write_worker, write_rest
	};
	uint32_t n = sizeof(often) / sizeof(often[0]);

	write_time(w);
	often[pick(w, n)](w);
}

static void
run(const struct setting *s)
{
	static struct world w;
	uint32_t i;

	make(&w, s);
	for (i = 1; i <= OPERATIONS; i++) {
		operate(&w);
		if (i % LOOK_EVERY == 0)
			look_at_all(&w);
	}
	kvr_prompt_free(w.p);
	kvr_free(w.k);
}

int
main(int argc, char **argv)
{
	size_t i;
	int hashes;

	for (i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		run(&settings[i]);
	if (fflush(stdout) != 0)
		fail("stdout", KVR_ESYSTEM);
	if (argc < 2)
		return 0;
	hashes = vectors_check(argv[1]);
	if (hashes <= 0)
		return 1;
	fprintf(stderr, "%d reference hashes\n", hashes);
	return 0;
}
