/* SPDX-License-Identifier: BSD-2-Clause */
/* history.c - see history.h. */
#include "history.h"

#include "args.h"
#include "fleet.h"
#include "rng.h"

#include <kvroute_replica.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	BLOCK = 16,       /* tokens */
	WARM = 10,        /* one call in so many is not counted */
	OTHERS = 8,       /* requests of which one is matched, observed, ... */
	FEW_TURNS = 6,    /* a chat ends after so many on average, if most */
	TEXT_BYTES = 1 << 24
};

const char *const call_names[CALLS] = { "match", "route", "observe",
	"lease_open", "lease_open_on", "lease_commit", "lease_first_token",
	"lease_output", "lease_extend", "lease_finish", "lease_abort",
	"expire", "worker_set_load", "worker_set", "worker_reset",
	"lease_list", "metrics" };

/* A system prompt, whole or in part, and what is said after it. */
struct chat {
	uint32_t system, common, blocks, number, turn;
};

struct flight {
	uint64_t lease;      /* 0: none */
	struct chat chat;
	uint32_t cached;
};

struct past {
	const struct plan *plan;
	struct history *out;
	struct kvr *k;
	struct kvr_prompt *prompt;
	struct fleet *fleet;
	struct rng random;
	struct chat *chats;
	struct flight *flights;
	struct kvr_overlap *overlaps;
	uint32_t *tokens;
	char *text;              /* of metrics */
	uint32_t number;         /* of chats so far */
	int64_t now, clock_ns, began;
	bool counted;
};

static uint32_t
pick(struct past *h, uint32_t n)
{
	return (uint32_t)rng_between(&h->random, 0, n - 1);
}

/* Whether this is one in n; in 0, never. */
static bool
one_in(struct past *h, uint32_t n)
{
	return n > 0 && pick(h, n) == 0;
}

static void *
need(size_t n, size_t size)
{
	void *memory = calloc(n, size);

	if (memory == NULL)
		err(ARGS_FAILED, NULL);
	return memory;
}

static void
must(int error, const char *what)
{
	if (error != KVR_OK)
		errx(ARGS_FAILED, "%s: %s", what, kvr_strerror(error));
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

	for (i = 0; i < 1000; i++) {
		now = cpu_clock();
		least = now - last < least ? now - last : least;
		last = now;
	}
	return least;
}

static void
begin(struct past *h)
{
	h->began = cpu_clock();
}

static void
end(struct past *h, enum call call, int error)
{
	int64_t ns = cpu_clock() - h->began - h->clock_ns;
	struct times *t = &h->out->times[call];

	must(error, call_names[call]);
	if (!h->counted)
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

/* ---------------------------------------------------------------- chats --- */

/* The next turn of a chat, or another chat in its place. */
static void
chat_on(struct past *h, struct chat *c)
{
	const struct plan *p = h->plan;

	if (c->blocks > 0 && ++c->turn < p->turns &&
	    (p->turns > 32 || pick(h, FEW_TURNS) != 0)) {
		c->blocks += 1 + pick(h, p->turn);
		return;
	}
	c->number = h->number++;
	c->turn = 0;
	c->system = pick(h, p->systems);
	c->common = one_in(h, p->parts) ? 1 + pick(h, p->system)
	    : p->system;
	c->blocks = c->common + 1 + pick(h, 2 * p->turn);
}

/* Some of what was said in it, or all. */
static void
chat_say(struct past *h, const struct chat *c, uint32_t blocks)
{
	const uint32_t common = c->common * BLOCK;
	uint32_t i;

	for (i = 0; i < blocks * BLOCK; i++)
		h->tokens[i] = i < common
		    ? c->system * h->plan->system * BLOCK + i
		    : UINT32_C(0x80000000) + c->number;
	must(kvr_prompt_set_tokens(h->prompt, NULL, h->tokens,
	    (size_t)blocks * BLOCK), "kvr_prompt_set_tokens");
}

/* ------------------------------------------------------------- requests --- */

static void
facts_of(const struct plan *p, struct kvr_worker *f)
{
	must(kvr_worker_init(f, sizeof(*f)), "kvr_worker_init");
	f->retain = p->retain;
	f->capacity_tokens = (uint64_t)p->capacity * 1000;
	f->block_tokens = p->engine;
	f->window_mode = p->window;
	if (p->window != KVR_WINDOW_FULL)
		f->window_tokens = 1024;
	if (p->window == KVR_WINDOW_DUAL)
		f->window_capacity = 100000;
}

static uint64_t
any_worker(struct past *h)
{
	return fleet_id(h->fleet, pick(h, h->plan->workers));
}

static void
lease_end(struct past *h, struct flight *f)
{
	struct kvr_report r = { .size = sizeof(r) };
	int e;

	begin(h);
	e = kvr_lease_commit(h->k, f->lease, h->now, 0);
	end(h, CALL_COMMIT, e);
	begin(h);
	e = kvr_lease_first_token(h->k, f->lease, h->now, 0);
	end(h, CALL_FIRST, e);
	if (one_in(h, OTHERS)) {
		begin(h);
		e = kvr_lease_output(h->k, f->lease, 3, h->now, 0);
		end(h, CALL_OUTPUT, e);
	} else if (one_in(h, OTHERS)) {
		chat_say(h, &f->chat, f->chat.blocks + 2);
		begin(h);
		e = kvr_lease_extend(h->k, f->lease, h->prompt, h->now, 0);
		end(h, CALL_EXTEND, e);
	}
	if (h->plan->reports > 0) {
		r.kind = KVR_REPORT_VALUE;
		r.completion_tokens = 100;
		r.cached_tokens = h->plan->reports == 1 ? f->cached
		    : pick(h, f->cached + 1);
	}
	begin(h);
	if (one_in(h, 20)) {
		e = kvr_lease_abort(h->k, f->lease, h->now, 0);
		end(h, CALL_ABORT, e);
	} else {
		e = kvr_lease_finish(h->k, f->lease, &r, h->now, 0);
		end(h, CALL_FINISH, e);
	}
}

/* FNV-1a, by words. */
static void
note_decision(struct past *h, const struct kvr_decision *d)
{
	const uint64_t words[] = { d->worker, d->overlap_tokens, d->reason,
		d->best_worker, d->best_tokens };
	uint32_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		h->out->decisions = (h->out->decisions ^ words[i]) *
		    UINT64_C(0x100000001b3);
}

/* Calls without a lease. */
static void
ask(struct past *h)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint64_t worker = any_worker(h);
	size_t n;
	int e;

	begin(h);
	e = kvr_match(h->k, h->prompt, h->now, h->overlaps,
	    sizeof(*h->overlaps), h->plan->workers, &n);
	end(h, CALL_MATCH, e);
	begin(h);
	e = kvr_route(h->k, h->prompt, NULL, h->now, &d);
	end(h, CALL_ROUTE, e);
	note_decision(h, &d);
	begin(h);
	e = kvr_observe(h->k, h->prompt, worker, h->now, 0, NULL);
	end(h, CALL_OBSERVE, e);
}

static void
lease_open(struct past *h, const struct chat *c)
{
	struct flight *f = &h->flights[pick(h, h->plan->leases)];
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	uint32_t blocks;
	bool spread = one_in(h, h->plan->spread);
	uint64_t worker = any_worker(h);
	int e;

	if (f->lease != 0)
		lease_end(h, f);
	f->chat = *c;
	blocks = one_in(h, h->plan->backs) ? 1 + pick(h, c->blocks)
	    : c->blocks;
	f->chat.blocks = blocks;
	chat_say(h, c, blocks);
	if (one_in(h, OTHERS))
		ask(h);
	must(kvr_request_init(&r, sizeof(r)), "kvr_request_init");
	if (h->plan->sessions != 0)
		r.affinity = c->number + 1;
	begin(h);
	e = spread ? kvr_lease_open_on(h->k, h->prompt, &r, worker, h->now, &d)
	    : kvr_lease_open(h->k, h->prompt, &r, h->now, &d);
	end(h, spread ? CALL_OPEN_ON : CALL_OPEN, e);
	note_decision(h, &d);
	f->lease = d.lease;
	f->cached = (uint32_t)d.overlap_tokens;
}

/* What an operator and other programs do now and then. */
static void
seldom(struct past *h)
{
	uint32_t number = pick(h, h->plan->workers);
	struct kvr_load load = { .size = sizeof(load) };
	struct kvr_lease_info info[1024];
	struct kvr_worker f;
	uint64_t cursor = 0, id = fleet_id(h->fleet, number);
	size_t length;
	int e;

	load.prefill_tokens = pick(h, 10000);
	begin(h);
	e = kvr_worker_set_load(h->k, id, 0, &load);
	end(h, CALL_LOAD, e);
	facts_of(h->plan, &f);
	f.capacity_tokens = f.capacity_tokens / 2 * (1 + pick(h, 2));
	begin(h);
	e = kvr_worker_set(h->k, id, &f);
	end(h, CALL_SET, e);
	begin(h);
	e = kvr_expire(h->k, h->now, 64, NULL);
	end(h, CALL_EXPIRE, e);
	begin(h);
	e = kvr_lease_list(h->k, &cursor, info, sizeof(info[0]), 1024,
	    &length);
	end(h, CALL_LIST, e);
	begin(h);
	e = kvr_metrics(h->k, h->text, TEXT_BYTES, &length);
	end(h, CALL_METRICS, e);
	do { /* busy: another call goes on where it stopped */
		begin(h);
		e = kvr_worker_reset(h->k, id, &id);
		end(h, CALL_RESET, e == KVR_EBUSY ? KVR_OK : e);
	} while (e == KVR_EBUSY);
	must(fleet_renew(h->fleet, number, id), "fleet_renew");
}

/* Each worker holds each system prompt. */
static void
fill(struct past *h)
{
	struct chat c = { 0, h->plan->system, h->plan->system, 0, 0 };
	uint32_t i;

	for (; c.system < h->plan->systems; c.system++) {
		chat_say(h, &c, c.blocks);
		for (i = 0; i < h->plan->workers; i++)
			must(kvr_observe(h->k, h->prompt, fleet_id(h->fleet,
			    i), h->now, KVR_ENDED, NULL), "kvr_observe");
	}
}

static void
go_through(struct past *h)
{
	uint32_t n;

	if (h->plan->fill != 0)
		fill(h);
	for (n = 0; n < h->plan->requests; n++) {
		struct chat *c = &h->chats[pick(h, h->plan->chats)];

		h->counted = n >= h->plan->requests / WARM;
		chat_on(h, c);
		lease_open(h, c);
		if (h->plan->seldom > 0 && n % h->plan->seldom == 0)
			seldom(h);
		h->now += 1000000000 / h->plan->second;
	}
}

/* ------------------------------------------------------------ the whole --- */

static bool
region_begin(struct past *h)
{
	const struct plan *p = h->plan;
	struct kvr_policy policy;
	struct kvr_options o;
	struct kvr_worker f;
	uint32_t i;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = (uint64_t)p->memory << 20;
	o.max_workers = p->workers;
	o.ttl_ns = (int64_t)p->ttl * 1000000000;
	o.block_size = BLOCK;
	o.secret_bytes = KVR_SECRET_MIN; /* trials choose alike */
	memset(o.secret, 1, KVR_SECRET_MIN);
	/* No bucket fills: which one a session is in is by a random key. */
	o.affinity_entries = p->sessions != 0 ? 65536 : 0;
	if (kvr_new(&o, &h->k) != KVR_OK)
		return false;
	must(fleet_new(h->k, p->workers, &h->fleet), "fleet_new");
	must(kvr_prompt_new(h->k, &h->prompt), "kvr_prompt_new");
	must(kvr_policy_init(&policy, sizeof(policy)), "kvr_policy_init");
	policy.cost = p->cost;
	must(kvr_policy_set(h->k, &policy), "kvr_policy_set");
	facts_of(p, &f);
	for (i = 0; i < p->workers; i++)
		must(kvr_worker_set(h->k, fleet_id(h->fleet, i), &f),
		    "kvr_worker_set");
	return true;
}

static int
compare_times(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void
sort_times(struct history *h)
{
	uint32_t i;

	for (i = 0; i < CALLS; i++)
		if (h->times[i].n > 0)
			qsort(h->times[i].ns, h->times[i].n,
			    sizeof(*h->times[i].ns), compare_times);
}

static bool
run_once(const struct plan *p, struct history *out)
{
	struct past h = { .plan = p, .out = out, .random = { p->seed },
		.now = 1, .clock_ns = clock_cost() };
	struct kvr_stats stats = { .size = sizeof(stats) };

	memset(out, 0, sizeof(*out));
	if (!region_begin(&h))
		return false;
	h.chats = need(p->chats, sizeof(*h.chats));
	h.flights = need(p->leases, sizeof(*h.flights));
	h.overlaps = need(p->workers, sizeof(*h.overlaps));
	h.text = need(TEXT_BYTES, 1);
	h.tokens = need((size_t)(p->system + 3 + (p->turns + 2) * p->turn) *
	    BLOCK, sizeof(*h.tokens));
	go_through(&h);
	must(kvr_stats_get(h.k, &stats), "kvr_stats_get");
	out->max_steps = stats.max_steps;
	free(h.chats);
	free(h.flights);
	free(h.overlaps);
	free(h.text);
	free(h.tokens);
	fleet_free(h.fleet);
	kvr_prompt_free(h.prompt);
	kvr_free(h.k);
	return true;
}

/* Each call counts with the less of both. */
static void
keep_less(struct history *h, const struct history *again)
{
	uint32_t i;
	size_t n;

	for (i = 0; i < CALLS; i++) {
		struct times *t = &h->times[i];
		const struct times *a = &again->times[i];

		if (a->n < t->n) /* resets that went on in more calls */
			t->n = a->n;
		for (n = 0; n < t->n; n++)
			if (a->ns[n] < t->ns[n])
				t->ns[n] = a->ns[n];
	}
}

bool
history_run(const struct plan *p, uint32_t trials, struct history *out)
{
	struct history again;

	if (!run_once(p, out))
		return false;
	for (; trials > 1 && run_once(p, &again); trials--) {
		if (again.decisions == out->decisions)
			keep_less(out, &again);
		else
			warnx("a trial chose otherwise, and does not count");
		history_free(&again);
	}
	sort_times(out);
	return true;
}

void
history_free(struct history *h)
{
	uint32_t i;

	for (i = 0; i < CALLS; i++)
		free(h->times[i].ns);
}

double
history_rank(const struct times *t, size_t permille)
{
	return t->ns[(t->n * permille + 999) / 1000 - 1];
}

void
history_print(const struct history *h, bool kv)
{
	uint32_t i;

	if (!kv)
		printf("%-20s %9s %9s %9s %9s %9s\n", "CPU time of a call, us",
		    "calls", "50 %", "99 %", "99.9 %", "most");
	for (i = 0; i < CALLS; i++) {
		const struct times *t = &h->times[i];

		if (t->n == 0)
			continue;
		if (kv)
			printf("%s_calls=%zu\n%s_p50_ns=%.0f\n%s_p99_ns=%.0f\n"
			    "%s_p999_ns=%.0f\n%s_max_ns=%.0f\n", call_names[i],
			    t->n, call_names[i], history_rank(t, 500),
			    call_names[i], history_rank(t, 990),
			    call_names[i], history_rank(t, 999),
			    call_names[i], history_rank(t, 1000));
		else
			printf("  %-20s %9zu %9.2f %9.2f %9.2f %9.2f\n",
			    call_names[i], t->n, history_rank(t, 500) / 1e3,
			    history_rank(t, 990) / 1e3,
			    history_rank(t, 999) / 1e3,
			    history_rank(t, 1000) / 1e3);
	}
	printf(kv ? "max_steps=%" PRIu64 "\ndecisions=%016" PRIx64 "\n"
	    : "  %" PRIu64 " steps at most, decisions %016" PRIx64 "\n",
	    h->max_steps, h->decisions);
}
