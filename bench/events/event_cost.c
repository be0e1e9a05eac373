/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_cost.c - what it costs to know what engines hold, block by block:
 *
 *	event-cost blocks pairs [page [block]]
 *
 *	message --decode--> batch --apply--> region
 *	            timed     `----hash        timed, with its own hashing
 *	                           timed
 *
 * A batch is what an engine says after a step that has computed so many blocks
 * of one request, while its cache is full: they are stored behind those of the
 * turn before, and as many of the request that was served longest ago are
 * removed, its last ones first. Requests begin with the same 32 blocks and have
 * up to 256 more of their own. 4 engines with 16,384 blocks of 16 tokens each,
 * or of so many; an engine's may be pages of them.
 *
 * Thread CPU of one run, in which the three take turns. Then the prefixes that
 * are held are recorded in a region without names too, to compare their memory.
 */
#include "decode.h"
#include "event_pack.h"
#include "rng.h"
#include "target.h"

#include <kvroute.h>
#include <kvroute_events.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)

enum {
	ENGINES = 4, CAPACITY = 16384, BLOCK = 16, COMMON = 32, OWN = 256,
	BLOCKS_MAX = COMMON + OWN, BLOCK_MAX = 64,
	TOKENS_MAX = BLOCKS_MAX * BLOCK_MAX,
	ALIASES = ENGINES * (CAPACITY + 2 * OWN) /* for each one of a block */
};

/* A request: blocks that it has stored, and that are not removed. */
struct chain {
	uint32_t id, blocks;
};

struct engine {
	struct chain *chains; /* a ring of CAPACITY: `oldest` to `newest` */
	uint32_t oldest, newest;
	uint64_t held, seq;
	struct conf_stream conf;
	struct decoder *decoder;
	struct target target;
};

struct cost {
	uint32_t blocks;      /* of a batch */
	uint32_t block, page; /* tokens; pages of a block: */
	uint32_t pages;
	struct kvr *k, *plain;
	struct kvr_prompt *prompt;
	struct engine engines[ENGINES];
	struct packer packer;
	uint64_t stored[TOKENS_MAX], removed[TOKENS_MAX]; /* names */
	uint32_t ids;
	int64_t decode, hash, apply, longest; /* CPU */
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

/* ------------------------------------------------------------ engines --- */

static struct chain *
chain_at(const struct engine *e, uint32_t i)
{
	return &e->chains[i % CAPACITY];
}

/* The tokens of n blocks of a chain from this one on. */
static size_t
tokens_of(const struct cost *s, const struct chain *c, uint32_t from,
    uint32_t n, uint32_t *out)
{
	uint32_t i, first = from * s->block;

	for (i = 0; i < n * s->block; i++)
		out[i] = first + i < COMMON * s->block ? first + i
		    : (c->id * UINT32_C(2654435761)) ^ (first + i);
	return (size_t)n * s->block;
}

/* The engine's names of the pages of these blocks. */
static size_t
names_of(const struct cost *s, const struct chain *c, uint32_t from,
    uint32_t n, uint64_t *out)
{
	uint32_t i, first = from * s->pages;
	struct rng rng;

	for (i = 0; i < n * s->pages; i++) {
		rng.state = first + i + 1;
		if (first + i >= COMMON * s->pages)
			rng.state |= (uint64_t)c->id << 32;
		out[i] = rng_next(&rng);
	}
	return (size_t)n * s->pages;
}

/* The request that is served next; a new one has what all begin with. */
static struct chain *
chain_growing(struct cost *s, struct engine *e)
{
	struct chain *c = chain_at(e, e->newest);

	if (c->id != 0 && c->blocks + s->blocks <= BLOCKS_MAX)
		return c;
	e->newest += c->id != 0;
	c = chain_at(e, e->newest);
	c->id = ++s->ids;
	c->blocks = 0;
	if (e->seq > 0)
		c->blocks = COMMON;
	return c;
}

/* Stores n more blocks of a chain. */
static struct event_item
grow(struct cost *s, struct engine *e, struct chain *c, uint32_t n,
    uint32_t *tokens)
{
	struct event_item item = { .kind = ITEM_STORED, .block = s->page,
	    .hashes = s->stored, .tokens = tokens };

	item.has_parent = c->blocks > 0;
	if (c->blocks > 0) {
		(void)names_of(s, c, c->blocks - 1, 1, s->stored);
		item.parent = s->stored[s->pages - 1];
	}
	item.n = names_of(s, c, c->blocks, n, s->stored);
	item.n_tokens = tokens_of(s, c, c->blocks, n, tokens);
	c->blocks += n;
	e->held += n;
	return item;
}

/* Removes the last blocks of the oldest, n at most, but not the common ones. */
static struct event_item
shrink(struct cost *s, struct engine *e, uint32_t n)
{
	struct chain *c = chain_at(e, e->oldest);
	struct event_item item = { .kind = ITEM_REMOVED,
	    .hashes = s->removed };

	n = c->blocks - COMMON < n ? c->blocks - COMMON : n;
	c->blocks -= n;
	item.n = names_of(s, c, c->blocks, n, s->removed);
	e->held -= n;
	if (c->blocks == COMMON) {
		c->id = 0;
		e->oldest++;
	}
	return item;
}

/* ------------------------------------------------------------- timing --- */

/* A message on its way into the region. */
static void
hear(struct cost *s, struct engine *e, const uint32_t *tokens, size_t n,
    bool timed)
{
	struct event_batch b;
	struct target_batch whole = { .events = &b, .seq = e->seq,
	    .digest = e->seq + 1 };
	int64_t began = cpu_now(), decoded, hashed, applied;

	if (decoder_read(e->decoder, s->packer.bytes, s->packer.n, &b) !=
	    DECODE_GOOD)
		errx(1, "a message is not read");
	decoded = cpu_now();
	must(kvr_prompt_set_tokens(s->prompt, NULL, tokens, n), "hash");
	hashed = cpu_now();
	whole.to = b.n;
	if (target_apply(&e->target, &whole) != TARGET_APPLIED)
		errx(1, "a batch is not applied: %s",
		    kvr_errname(e->target.error));
	applied = cpu_now();
	if (!timed)
		return;
	s->decode += decoded - began;
	s->hash += hashed - decoded;
	s->apply += applied - hashed;
	if (applied - hashed > s->longest)
		s->longest = applied - hashed;
}

/* A step of an engine. Its first one also stores what all begin with. */
static void
step(struct cost *s, struct engine *e, bool timed)
{
	static uint32_t tokens[TOKENS_MAX];
	struct chain *c = chain_growing(s, e);
	struct event_item items[2];
	uint32_t n = e->seq == 0 ? COMMON : s->blocks;
	size_t n_items = 1;

	items[0] = grow(s, e, c, n, tokens);
	if (e->held > CAPACITY)
		items[n_items++] = shrink(s, e, n);
	event_pack(&s->packer, FORM_VLLM, 1, 0, items, n_items);
	hear(s, e, tokens, items[0].n_tokens, timed);
	e->seq++;
}

/* ------------------------------------------------------------- making --- */

static void
engine_make(struct cost *s, struct engine *e, uint32_t i)
{
	const struct decode_options options = { .format = DECODE_ENGINE };
	struct kvr_worker facts;
	uint64_t id;

	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	snprintf(e->conf.worker, sizeof(e->conf.worker), "worker-%" PRIu32, i);
	must(kvr_worker_add(s->k, e->conf.worker, strlen(e->conf.worker),
	    &facts, &id), "worker");
	facts.retain = KVR_RETAIN_TTL;
	must(kvr_worker_add(s->plain, e->conf.worker, strlen(e->conf.worker),
	    &facts, &id), "worker");
	e->conf.engine = CONF_VLLM;
	e->chains = calloc(CAPACITY, sizeof(*e->chains));
	e->decoder = decoder_new(&options);
	if (e->chains == NULL || e->decoder == NULL)
		errx(1, "no memory");
	target_init(&e->target, s->k, &e->conf);
	if (!target_find(&e->target))
		errx(1, "the worker is not found");
}

static void
make(struct cost *s)
{
	struct kvr_options o;
	uint32_t i;

	(void)kvr_options_init(&o, sizeof(o));
	o.block_size = s->block;
	must(kvr_new(&o, &s->plain), "region");
	o.event_blocks = ALIASES;
	o.region_bytes += UINT64_C(44) * ALIASES;
	must(kvr_new(&o, &s->k), "region");
	must(kvr_prompt_new(s->k, &s->prompt), "prompt");
	for (i = 0; i < ENGINES; i++)
		engine_make(s, &s->engines[i], i);
}

/* ------------------------------------------------------------- telling --- */

static double
cells_of(const struct kvr *k)
{
	struct kvr_stats stats = { .size = sizeof(stats) };

	must(kvr_stats_get(k, &stats), "stats");
	return 64 * (double)(stats.cells - stats.cells_free);
}

/* All of the prefixes that are held, as requests would record them. */
static void
record(struct cost *s, const struct engine *e)
{
	static uint32_t tokens[TOKENS_MAX];
	struct kvr_prompt *p;
	uint32_t i;
	uint64_t id;

	must(kvr_prompt_new(s->plain, &p), "prompt");
	must(kvr_worker_find(s->plain, e->conf.worker, strlen(e->conf.worker),
	    0, &id), "worker");
	for (i = e->oldest; i != e->newest + 1; i++) {
		const struct chain *c = chain_at(e, i);

		must(kvr_prompt_set_tokens(p, NULL, tokens, tokens_of(s, c,
		    0, c->blocks, tokens)), "tokens");
		must(kvr_observe(s->plain, p, id, SECOND, 0,
		    NULL), "observe");
	}
	kvr_prompt_free(p);
}

static void
tell(struct cost *s, uint64_t pairs)
{
	uint64_t held = 0, names = 0;
	double per = 1 / (double)pairs;
	uint32_t i;

	for (i = 0; i < ENGINES; i++) {
		struct engine *e = &s->engines[i];
		struct kvr_worker_stats w = { .size = sizeof(w) };

		must(kvr_worker_stats_get(s->k, e->target.id, &w), "stats");
		if (w.events_state != KVR_EVENTS_COMPLETE ||
		    w.events_held != e->held)
			errx(1, "%" PRIu64 " blocks are held, %" PRIu64
			    " are on record", e->held, w.events_held);
		held += e->held;
		names += w.events_blocks;
		record(s, e);
	}
	printf("block=%" PRIu32 "\npage=%" PRIu32 "\n", s->block, s->page);
	printf("blocks=%" PRIu32 "\ndecode_ns=%.0f\nhash_ns=%.0f\n"
	    "apply_ns=%.0f\nratio=%.2f\nlongest_us=%.1f\n", s->blocks,
	    (double)s->decode * per, (double)s->hash * per,
	    (double)s->apply * per,
	    (double)s->apply / (double)(s->decode + s->hash),
	    (double)s->longest / 1e3);
	printf("index_bytes=%.1f\nnames_bytes=%.1f\nunnamed_bytes=%.1f\n",
	    cells_of(s->k) / (double)held,
	    44 * (double)names / (double)held,
	    cells_of(s->plain) / (double)held);
}

static void
run(struct cost *s, uint64_t pairs, bool timed)
{
	uint64_t i;

	for (i = 0; i < pairs; i += s->blocks)
		step(s, &s->engines[i / s->blocks % ENGINES], timed);
}

int
main(int argc, char **argv)
{
	static struct cost s;
	uint64_t pairs;

	if (argc < 3 || argc > 5)
		errx(2, "usage: event-cost blocks pairs [page [block]]");
	s.blocks = (uint32_t)strtoul(argv[1], NULL, 10);
	pairs = strtoull(argv[2], NULL, 10);
	if (s.blocks == 0 || s.blocks > OWN || pairs < s.blocks)
		errx(2, "1 to %d blocks, and as many pairs", OWN);
	s.block = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : BLOCK;
	s.page = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : s.block;
	if (s.block == 0 || s.block > BLOCK_MAX || s.page == 0 ||
	    s.block % s.page != 0)
		errx(2, "blocks of up to %d tokens, and a part as page",
		    BLOCK_MAX);
	s.pages = s.block / s.page;
	make(&s);
	run(&s, 2 * ENGINES * CAPACITY, false);
	pairs = pairs / s.blocks * s.blocks;
	run(&s, pairs, true);
	tell(&s, pairs);
	return 0;
}
