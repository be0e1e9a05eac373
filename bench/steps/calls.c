/* SPDX-License-Identifier: BSD-2-Clause */
/* calls.c - see calls.h. */
#include "calls.h"

#include "args.h"
#include "rng.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	CHATS = 4096, SYSTEMS = 64, SYSTEM_BLOCKS = 100, CHAT_BLOCKS = 200,
	LEASES = 512,       /* open at a time */
	PER_SECOND = 200,   /* requests */
	WARM = 10,          /* one in so many is not counted */
	SELDOM = 1000,      /* requests between restarts, scrapes, ... */
	TEXT_BYTES = 1 << 24
};

enum call { MATCH, OPEN, COMMIT, FIRST, FINISH, ABORT, EXPIRE, LOAD, RESET,
	METRICS, CALLS };
static const char *const names[CALLS] = {
	"match", "lease_open", "lease_commit", "lease_first_token",
	"lease_finish", "lease_abort", "expire", "worker_set_load",
	"worker_reset", "metrics"
};

/* CPU times of one kind of call, in nanoseconds. */
struct times {
	uint32_t *ns;
	size_t n, room;
};

/* A system prompt, whole or in part, and what is said after it. */
struct chat {
	uint32_t system, common, blocks, number;
};

struct calls {
	struct world world;
	struct rng random;
	struct chat chats[CHATS];
	uint64_t leases[LEASES]; /* 0: none */
	uint64_t *ids;           /* of the workers */
	uint32_t *tokens;
	char *text;              /* of metrics */
	int64_t now, clock_ns, began;
	bool counted;
	struct times times[CALLS];
};

static uint32_t
pick(struct calls *c, uint32_t n)
{
	return (uint32_t)rng_between(&c->random, 0, n - 1);
}

/* --------------------------------------------------------------- timing --- */

static int64_t
cpu_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t
clock_cost(void)
{
	int64_t least = INT64_MAX, last = cpu_clock(), now;
	uint32_t i;

	for (i = 0; i < 10000; i++) {
		now = cpu_clock();
		least = now - last < least ? now - last : least;
		last = now;
	}
	return least;
}

static void
begin(struct calls *c)
{
	c->began = cpu_clock();
}

static void
end(struct calls *c, enum call call, int error)
{
	int64_t ns = cpu_clock() - c->began - c->clock_ns;
	struct times *t = &c->times[call];

	if (error != KVR_OK)
		errx(ARGS_FAILED, "%s: %s", names[call], kvr_strerror(error));
	if (!c->counted)
		return;
	if (t->n == t->room) {
		t->room = t->room * 2 + 1024;
		t->ns = realloc(t->ns, t->room * sizeof(*t->ns));
		if (t->ns == NULL)
			err(ARGS_FAILED, NULL);
	}
	t->ns[t->n++] = (uint32_t)(ns < 0 ? 0 : ns < UINT32_MAX ? ns
	    : UINT32_MAX);
}

/* ------------------------------------------------------------- requests --- */

/* The next turn of a chat, or another chat in its place. */
static void
chat_on(struct calls *c, struct chat *chat, uint32_t number)
{
	chat->blocks += 1 + pick(c, 20);
	if (chat->common > 0 && chat->blocks <= CHAT_BLOCKS &&
	    pick(c, 6) != 0)
		return;
	chat->number = number;
	chat->system = pick(c, SYSTEMS);
	chat->common = pick(c, 8) == 0 ? 1 + pick(c, SYSTEM_BLOCKS)
	    : SYSTEM_BLOCKS;
	chat->blocks = chat->common + pick(c, 40);
}

static void
chat_say(struct calls *c, const struct chat *chat)
{
	uint32_t size = c->world.options.block_size, i;
	int e;

	for (i = 0; i < chat->blocks * size; i++)
		c->tokens[i] = i < chat->common * size
		    ? chat->system * SYSTEM_BLOCKS * size + i
		    : UINT32_C(0x80000000) + chat->number;
	e = kvr_prompt_set_tokens(c->world.prompt, NULL, c->tokens,
	    (size_t)chat->blocks * size);
	if (e != KVR_OK)
		errx(ARGS_FAILED, "kvr_prompt_set_tokens: %s", kvr_strerror(e));
}

static void
lease_end(struct calls *c, uint64_t lease)
{
	struct kvr *k = c->world.k;
	struct kvr_report r = { .size = sizeof(r) };
	int e;

	begin(c);
	e = kvr_lease_commit(k, lease, c->now, 0);
	end(c, COMMIT, e);
	begin(c);
	e = kvr_lease_first_token(k, lease, c->now, 0);
	end(c, FIRST, e);
	begin(c);
	if (pick(c, 20) == 0) {
		e = kvr_lease_abort(k, lease, c->now, 0);
		end(c, ABORT, e);
	} else {
		e = kvr_lease_finish(k, lease, &r, c->now, 0);
		end(c, FINISH, e);
	}
}

static void
lease_open(struct calls *c)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct world *w = &c->world;
	uint64_t *place = &c->leases[pick(c, LEASES)];
	int e;

	if (*place != 0)
		lease_end(c, *place);
	begin(c);
	e = kvr_match(w->k, w->prompt, c->now, w->overlaps,
	    sizeof(*w->overlaps), w->workers, &w->n_overlaps);
	end(c, MATCH, e);
	begin(c);
	e = kvr_lease_open(w->k, w->prompt, NULL, c->now, &d);
	end(c, OPEN, e);
	*place = d.lease;
}

/* What an operator and other programs do now and then. */
static void
seldom(struct calls *c)
{
	struct kvr *k = c->world.k;
	uint32_t number = pick(c, c->world.workers);
	struct kvr_load load = { .size = sizeof(load) };
	size_t length;
	int e;

	load.prefill_tokens = pick(c, 10000);
	begin(c);
	e = kvr_worker_set_load(k, c->ids[number], 0, &load);
	end(c, LOAD, e);
	begin(c);
	e = kvr_expire(k, c->now, 64, NULL);
	end(c, EXPIRE, e);
	begin(c);
	e = kvr_metrics(k, c->text, TEXT_BYTES, &length);
	end(c, METRICS, e);
	do { /* busy: another call goes on where it stopped */
		begin(c);
		e = kvr_worker_reset(k, c->ids[number], &c->ids[number]);
		end(c, RESET, e == KVR_EBUSY ? KVR_OK : e);
	} while (e == KVR_EBUSY);
}

static void
history(struct calls *c, uint32_t requests)
{
	uint32_t n;

	for (n = 0; n < requests; n++, c->now += 1000000000 / PER_SECOND) {
		struct chat *chat = &c->chats[pick(c, CHATS)];

		c->counted = n >= requests / WARM;
		chat_on(c, chat, n);
		chat_say(c, chat);
		lease_open(c);
		if (n % SELDOM == 0)
			seldom(c);
	}
}

/* ---------------------------------------------------------------- print --- */

static int
compare_times(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double
rank(const struct times *t, size_t permille)
{
	return t->ns[(t->n * permille + 999) / 1000 - 1];
}

static void
calls_print(struct calls *c, bool kv)
{
	enum call i;

	if (!kv)
		printf("%-20s %9s %9s %9s %9s %9s\n", "CPU time of a call, us",
		    "calls", "50 %", "99 %", "99.9 %", "most");
	for (i = 0; i < CALLS; i++) {
		struct times *t = &c->times[i];

		if (t->n == 0)
			continue;
		qsort(t->ns, t->n, sizeof(*t->ns), compare_times);
		if (kv)
			printf("%s_calls=%zu\n%s_p50_ns=%.0f\n%s_p99_ns=%.0f\n"
			    "%s_p999_ns=%.0f\n%s_max_ns=%.0f\n", names[i],
			    t->n, names[i], rank(t, 500), names[i],
			    rank(t, 990), names[i], rank(t, 999), names[i],
			    rank(t, 1000));
		else
			printf("  %-20s %9zu %9.2f %9.2f %9.2f %9.2f\n",
			    names[i], t->n, rank(t, 500) / 1e3,
			    rank(t, 990) / 1e3, rank(t, 999) / 1e3,
			    rank(t, 1000) / 1e3);
	}
}

void
calls_run(const struct world_options *options, uint32_t requests, bool kv)
{
	struct calls *c = calloc(1, sizeof(*c));
	enum call i;
	uint32_t worker;

	if (c == NULL || (c->text = malloc(TEXT_BYTES)) == NULL ||
	    (c->ids = calloc(options->workers, sizeof(*c->ids))) == NULL ||
	    (c->tokens = calloc((size_t)(CHAT_BLOCKS + SYSTEM_BLOCKS + 40) *
	    options->region.block_size, sizeof(*c->tokens))) == NULL)
		err(ARGS_FAILED, NULL);
	if (world_open(&c->world, options) != KVR_OK)
		errx(ARGS_FAILED, "the region is too small for %" PRIu32
		    " workers", options->workers);
	for (worker = 0; worker < options->workers; worker++)
		c->ids[worker] = fleet_id(c->world.fleet, worker);
	c->now = 1;
	c->clock_ns = clock_cost();
	history(c, requests);
	calls_print(c, kv);
	for (i = 0; i < CALLS; i++)
		free(c->times[i].ns);
	world_close(&c->world);
	free(c->ids);
	free(c->tokens);
	free(c->text);
	free(c);
}
