/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * writes.c - the calls that change something, and a dump of all state.
 */
#include "foreign.h"

#include <inttypes.h>
#include <kvroute_replica.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------ workers, policy --- */

static void
draw_facts(struct world *w, struct kvr_worker *f)
{
	static const double weight[] = { 1, 1, 1, 0.5, 2, 1.0 / 3 };

	must("kvr_worker_init", kvr_worker_init(f, sizeof(*f)));
	f->role = pick(w, 6) > 1 ? KVR_ROLE_BOTH : 1 + pick(w, 2);
	f->state = pick(w, 12) > 0 ? KVR_STATE_UP : 1 + pick(w, 2);
	f->capacity_tokens = pick(w, 3) * 20000;
	f->retain = w->s->retain;
	f->eviction = pick(w, 3) == 0 ? KVR_EVICT_LEAF
	    : KVR_EVICT_RELEASED;
	f->block_tokens = pick(w, 3) * w->s->block_size;
	f->max_batched_tokens = pick(w, 3) * 4096;
	f->taints = pick(w, 8);
	f->prefill_rate = pick(w, 3) * 1000.0;
	f->weight = pick_of(w, weight, 6);
}

void
write_worker_add(struct world *w, uint32_t i)
{
	struct kvr_worker f;
	char name[16];
	int error;

	draw_facts(w, &f);
	f.rank = i % 3;
	snprintf(name, sizeof(name), "gpu-%u", i / 2);
	error = kvr_worker_add(w->k, name, strlen(name), &f, &w->worker[i]);
	printf("add %u %s %" PRIx64 "\n", i, kvr_errname(error), w->worker[i]);
}

void
write_policy(struct world *w, uint32_t kind)
{
	struct kvr_policy p;

	must("kvr_policy_init", kvr_policy_init(&p, sizeof(p)));
	if (kind == 1) {
		p.cost = KVR_COST_DYNAMO;
	} else if (kind == 2) {
		p.cost = KVR_COST_DYNAMO;
		p.overlap_decay = 0.7;
		p.request_weight = 0.25;
		p.overload_prefill_tokens = 9000;
		p.overload_blocks_fraction = 0.6;
	} else if (kind == 3) {
		p.cost = KVR_COST_DYNAMO;
		p.temperature = 0.8;
		p.overlap_credit = 1.3;
		p.prefill_scale = 0.6;
		p.overload_prefill_fraction = 3;
	} else if (kind == 4) {
		p.temperature = 0.5;
		p.balanced_bound = 1.25;
		p.observed_seconds = 3;
	}
	must("kvr_policy_set", kvr_policy_set(w->k, &p));
}

static void
worker_load(struct world *w, uint64_t id)
{
	struct kvr_load l = { .size = sizeof(l) };
	uint32_t source = pick(w, KVR_LOAD_SOURCES);

	l.prefill_tokens = pick(w, 3000);
	l.active_blocks = pick(w, 200);
	l.requests = pick(w, 9);
	l.used_blocks = pick(w, 1500);
	printf("load %u %s\n", source,
	    kvr_errname(kvr_worker_set_load(w->k, id, source, &l)));
}

void
write_worker(struct world *w)
{
	uint32_t i = pick(w, WORKERS), what = pick(w, 8);
	struct kvr_worker f;
	int error;

	if (what < 4) {
		worker_load(w, w->worker[i]);
	} else if (what < 6) {
		draw_facts(w, &f);
		f.rank = i % 3;
		error = kvr_worker_set(w->k, w->worker[i], &f);
		printf("set %s\n", kvr_errname(error));
	} else if (what == 6) {
		error = kvr_worker_remove(w->k, w->worker[i]);
		printf("remove %s\n", kvr_errname(error));
		write_worker_add(w, i);
	} else {
		error = kvr_worker_reset(w->k, w->worker[i], &w->worker[i]);
		printf("reset %s %" PRIx64 "\n", kvr_errname(error),
		    w->worker[i]);
	}
}

/* --------------------------------------------------------------- leases --- */

void
write_observe(struct world *w)
{
	uint32_t recorded = 0;
	uint64_t id = pick_worker(w);
	int error;

	prompt_draw(w);
	error = kvr_observe(w->k, w->p, id, w->now,
	    pick(w, 2) ? KVR_NOWAIT : 0, &recorded);
	printf("observe %s %" PRIx64 " %u\n", kvr_errname(error), id,
	    recorded);
}

static void
remember(struct world *w, int error, const struct kvr_decision *d)
{
	uint32_t i = pick(w, LEASES);

	if (error != KVR_OK)
		return;
	if (w->lease[i].number != 0)
		(void)kvr_lease_finish(
		    w->k, w->lease[i].number, NULL, w->now, 0);
	w->lease[i] = w->at;
	w->lease[i].number = d->lease;
}

void
write_reserve(struct world *w)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	int error;

	prompt_draw(w);
	choice_request(w, &r);
	error = kvr_lease_open(w->k, w->p, &r, w->now, &d);
	choice_print(w, "reserve", error, &d);
	remember(w, error, &d);
}

void
write_reserve_on(struct world *w)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	int error;

	prompt_draw(w);
	choice_request(w, &r);
	r.pinned = 0;
	error = kvr_lease_open_on(w->k, w->p, &r, pick_worker(w), w->now, &d);
	choice_print(w, "reserve_on", error, &d);
	remember(w, error, &d);
}

static int
finish(struct world *w, uint64_t lease)
{
	struct kvr_report r = { .size = sizeof(r) };

	r.prompt_tokens = pick(w, 5000);
	r.cached_tokens = pick(w, 2) ? r.prompt_tokens / 2 : 0;
	r.kind = pick(w, 3);
	return kvr_lease_finish(w->k, lease, pick(w, 2) ? &r : NULL, w->now, 0);
}

/* One of its steps, in any order. */
void
write_lease(struct world *w)
{
	uint32_t i = pick(w, LEASES), what = pick(w, 8);
	uint64_t n = w->lease[i].number;
	int error;

	if (n == 0)
		return;
	if (what < 2)
		error = kvr_lease_commit(w->k, n, w->now, 0);
	else if (what == 2)
		error = kvr_lease_first_token(w->k, n, w->now, KVR_NOWAIT);
	else if (what == 3)
		error = kvr_lease_output(w->k, n, pick(w, 9), w->now, 0);
	else if (what < 6) {
		prompt_of_lease(w, i);
		error = kvr_lease_extend(w->k, n, w->p, w->now, 0);
	} else if (what == 6)
		error = finish(w, n);
	else
		error = kvr_lease_abort(w->k, n, w->now, 0);
	printf("lease %" PRIu64 " %u %s\n", n, what, kvr_errname(error));
}

/* ---------------------------------------------------------- other calls --- */

/* Mostly a small step on; a jump beyond the TTL; a step back. */
void
write_time(struct world *w)
{
	int64_t unit = w->s->ttl > 0 ? w->s->ttl : 1000000;
	uint32_t what = pick(w, 300);

	if (what == 0)
		w->now += unit / 2 + pick(w, 1000);
	else if (what == 1 && w->now > unit)
		w->now -= unit / 7;
	else
		w->now += unit / 8000;
}

void
write_rest(struct world *w)
{
	uint32_t what = pick(w, 400), number = 0;
	uint64_t at = 0;
	int64_t due = 0;
	int error;

	if (what == 0) {
		error = kvr_clear(w->k);
		printf("clear %s\n", kvr_errname(error));
	} else if (what < 10) {
		write_policy(w, pick(w, 5));
	} else if (what < 60) {
		error = kvr_owner_reap(w->k, pick(w, 6), w->now, &at, &number);
		printf("reap %s %u %" PRIu64 "\n", kvr_errname(error), number,
		    at);
	} else {
		error = kvr_expire(w->k, w->now, pick(w, 100), &number);
		must("kvr_next_expiry", kvr_next_expiry(w->k, &due));
		printf("expire %s %u %" PRId64 "\n", kvr_errname(error),
		    number, due);
	}
}

static int
order(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

/*
 * Blocks given by hashes may be chosen so that the index holds one of them
 * twice; then the age differs.
 */
static int
by_place(const void *a, const void *b)
{
	const struct kvr_entry *x = a, *y = b;
	int c = order(x->sequence, y->sequence);

	c = c != 0 ? c : order(x->parent, y->parent);
	c = c != 0 ? c : order(x->worker, y->worker);
	c = c != 0 ? c : order((uint64_t)x->age_ns, (uint64_t)y->age_ns);
	c = c != 0 ? c : order(x->blocks, y->blocks);
	return c != 0 ? c : order(x->pins, y->pins);
}

/* Their order depends on the key of the tables. */
static void
look_at_entries(struct world *w)
{
	static struct kvr_entry e[20000];
	uint64_t cursor = 0;
	size_t i, n = 0, more;

	do {
		must("kvr_entries", kvr_entries(w->k, &cursor, w->now, e + n,
		    sizeof(e[0]), 20000 - n, &more));
		n += more;
	} while (cursor != 0 && n < 20000);
	qsort(e, n, sizeof(e[0]), by_place);
	printf("entries %zu\n", n);
	for (i = 0; i < n; i++)
		printf("  %" PRIx64 " %016" PRIx64 " %016" PRIx64 " %" PRId64
		    " %u %u %u\n", e[i].worker, e[i].parent, e[i].sequence,
		    e[i].age_ns, e[i].first_block, e[i].blocks, e[i].pins);
}

static void
look_at_worker(struct world *w, uint64_t id)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };

	must("kvr_worker_stats_get", kvr_worker_stats_get(w->k, id, &s));
	printf("worker %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %"
	    PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
	    " %u", id, s.entries, s.held_blocks, s.requests,
	    s.prefill_tokens, s.active_blocks, s.output_blocks,
	    s.lease_opens, s.prompt_tokens, s.predicted_tokens,
	    s.overloaded);
	printf(" %u learnt %" PRIu64 " %u %a %a reports %" PRIu64 " %" PRIu64
	    " %" PRIu64 "\n", s.retain, s.learnt_capacity,
	    s.learnt_block, s.prefill_rate, s.backlog,
	    s.calibration.reports, s.calibration.over_tokens,
	    s.calibration.under_tokens);
}

static void
look_at_stats(struct world *w)
{
	struct kvr_stats s = { .size = sizeof(s) };

	must("kvr_stats_get", kvr_stats_get(w->k, &s));
	printf("stats %" PRIu64 " nodes %" PRIu64 " entries %" PRIu64
	    " blocks %" PRIu64 " held %" PRIu64 " leases at %" PRId64 "\n",
	    s.nodes, s.entries, s.blocks, s.held_blocks, s.leases, s.clock);
	printf("counts %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %"
	    PRIu64 " %" PRIu64 " expired %" PRIu64 " evicted %" PRIu64 " %"
	    PRIu64 " orphaned %" PRIu64 " splits %" PRIu64 " merges %" PRIu64
	    " ext %" PRIu64 " cut %" PRIu64 " back %" PRIu64
	    " recoveries %" PRIu64 "\n", s.observes, s.lease_opens,
	    s.lease_commits, s.lease_finishes, s.lease_aborts, s.lease_reaps,
	    s.expired, s.evicted_capacity, s.evicted_region, s.orphaned,
	    s.splits, s.merges, s.extensions, s.truncated, s.clock_back,
	    s.recoveries);
}

void
look_at_all(struct world *w)
{
	uint64_t id = 0;

	must("kvr_check", kvr_check(w->k));
	for (must("next", kvr_worker_next(w->k, &id)); id != 0;
	    must("next", kvr_worker_next(w->k, &id)))
		look_at_worker(w, id);
	look_at_entries(w);
	look_at_stats(w);
}
