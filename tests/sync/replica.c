/* SPDX-License-Identifier: BSD-2-Clause */
/* replica.c - see replica.h. */
#include "replica.h"

#include <kvroute_replica.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
#define MEMORY ((size_t)4 << 20)

enum { UNITS_MAX = 64 * REPLICA_BLOCK, CHAIN_BLOCKS = 1 << 15 };

static bool
keep(void *context, const unsigned char *bytes, size_t n)
{
	struct replica *r = context;
	struct replica_frame *f = &r->sent[r->n];

	if (r->n == REPLICA_FRAMES || (f->bytes = malloc(n)) == NULL)
		return false;
	memcpy(f->bytes, bytes, n);
	f->n = n;
	f->at = r->now;
	r->n++;
	return true;
}

static bool
daemon_init(struct replica *r, const struct replica_options *o)
{
	struct publish_options p = { .roster = &r->roster, .origin = o->origin,
	    .host = "host", .site = o->site, .loads = o->loads, .send = keep,
	    .context = r };
	struct apply_options a = { .roster = &r->roster, .origin = o->origin,
	    .loads = o->loads, .orders = o->orders,
	    .now = r->now + r->skew };

	r->origin = o->origin;
	if (!o->loads && kvr_rule_get(r->quiet, &p.rules.rule) != KVR_OK)
		return false;
	memset(&r->proof, 0, sizeof(r->proof));
	if (o->keyed) {
		frame_key(&p.rules, &o->secret, 1);
		if (!proof_draw(&r->proof))
			return false;
		p.proof = a.proof = &r->proof;
	}
	a.rules = p.rules;
	r->rules = p.rules;
	r->chains = a.chains = p.chains = chains_new(CHAIN_BLOCKS);
	if (!roster_init(&r->roster, r->quiet) || r->chains == NULL)
		return false;
	r->apply = apply_new(&a);
	r->publish = publish_new(&p);
	return r->apply != NULL && r->publish != NULL;
}

static void
daemon_free(struct replica *r)
{
	publish_free(r->publish);
	apply_free(r->apply);
	roster_free(&r->roster);
	chains_free(r->chains);
}

static bool
workers_add(struct replica *r, const struct replica_options *o)
{
	const uint32_t n = o->workers == 0 ? REPLICA_WORKERS : o->workers;
	uint64_t id;
	uint32_t i;
	char name;

	for (i = 0; i < n; i++) {
		name = (char)('a' + (o->backwards ? n - 1 - i : i));
		if (kvr_worker_add(r->k, &name, 1, NULL, &id) != KVR_OK)
			return false;
	}
	return true;
}

bool
replica_init(struct replica *r, const struct replica_options *o)
{
	const size_t memory = o->memory == 0 ? MEMORY : o->memory;
	struct kvr_options options;

	memset(r, 0, sizeof(*r));
	r->now = o->now;
	r->skew = o->skew;
	(void)kvr_options_init(&options, sizeof(options));
	options.block_size = REPLICA_BLOCK;
	options.secret_bytes = KVR_SECRET_MIN;
	options.max_workers = 8;
	options.affinity_entries = 64;
	options.tenants = o->tenants;
	options.journal_bytes = o->journal == 0 ? KVR_JOURNAL_MIN * 4 :
	    o->journal;
	memset(options.secret, o->secret, KVR_SECRET_MIN);
	r->memory = aligned_alloc(64, memory);
	if (r->memory == NULL)
		return false;
	memset(r->memory, 0, memory);
	return kvr_new_at(&options, r->memory, memory, &r->k) == KVR_OK &&
	    kvr_attach_at(NULL, r->memory, memory, &r->quiet) == KVR_OK &&
	    kvr_quiet_set(r->quiet, 1) == KVR_OK &&
	    kvr_prompt_new(r->k, &r->prompt) == KVR_OK && workers_add(r, o) &&
	    daemon_init(r, o);
}

void
replica_free(struct replica *r)
{
	size_t i;

	daemon_free(r);
	kvr_prompt_free(r->prompt);
	kvr_free(r->quiet);
	kvr_free(r->k);
	free(r->memory);
	for (i = 0; i < r->n; i++)
		free(r->sent[i].bytes);
}

bool
replica_restart(struct replica *r, const struct replica_options *o)
{
	daemon_free(r);
	return daemon_init(r, o);
}

void
replica_run(struct replica *r, int64_t until)
{
	int64_t next;

	while (r->now <= until) {
		next = publish_work(r->publish, r->now + r->skew) - r->skew;
		apply_work(r->apply, r->now + r->skew);
		if (apply_met(r->apply))
			publish_hello(r->publish);
		r->now = next > r->now ? next : r->now + MS;
	}
	r->now = until;
}

void
replica_carry(const struct replica *from, size_t first, size_t end,
    struct replica *to, int64_t now)
{
	for (; first < end; first++)
		apply_frame(to->apply, now + to->skew, 0,
		    from->sent[first].bytes, from->sent[first].n);
}

void
replica_carry_all(struct replica *from, struct replica *to, int64_t now)
{
	size_t i;

	replica_carry(from, 0, from->n, to, now);
	for (i = 0; i < from->n; i++)
		free(from->sent[i].bytes);
	from->n = 0;
}

static struct kvr_scope
scope_of(const struct replica *r, char tenant)
{
	struct kvr_scope scope;

	(void)kvr_scope_init(&scope, sizeof(scope));
	if (tenant != 0)
		(void)kvr_scope_set(r->k, &scope, KVR_SCOPE_TENANT, &tenant, 1);
	return scope;
}

struct kvr_prompt *
replica_prompt(struct replica *r, uint32_t prompt, uint32_t blocks)
{
	return replica_prompt_of(r, 0, prompt, blocks);
}

struct kvr_tenant
replica_tenant(const struct replica *r, char tenant)
{
	const struct kvr_scope scope = scope_of(r, tenant);
	struct kvr_tenant row[16];
	uint64_t cursor = 0;
	size_t n = 0, i;

	(void)kvr_tenant_list(r->k, &cursor, row, sizeof(row[0]), 16, &n);
	for (i = 0; i < n; i++)
		if (row[i].digest == scope.digest[KVR_SCOPE_TENANT])
			return row[i];
	return (struct kvr_tenant){ 0 };
}

struct kvr_prompt *
replica_prompt_of(struct replica *r, char tenant, uint32_t prompt,
    uint32_t blocks)
{
	const struct kvr_scope scope = scope_of(r, tenant);
	uint32_t tokens[UNITS_MAX], i;

	for (i = 0; i < blocks * REPLICA_BLOCK && i < UNITS_MAX; i++)
		tokens[i] = prompt * 1000 + i;
	return kvr_prompt_set_tokens(r->prompt, &scope, tokens, i) == KVR_OK ?
	    r->prompt : NULL;
}

uint64_t
replica_worker(const struct replica *r, char name)
{
	uint64_t id = 0;

	(void)kvr_worker_find(r->k, &name, 1, 0, &id);
	return id;
}

uint32_t
replica_holds(struct replica *r, uint32_t prompt, uint32_t blocks, char worker)
{
	const uint64_t id = replica_worker(r, worker);
	struct kvr_overlap found[8];
	size_t n = 0, i;

	if (kvr_match(r->k, replica_prompt(r, prompt, blocks), r->now + r->skew,
	    found, sizeof(found[0]), 8, &n) != KVR_OK)
		return UINT32_MAX;
	for (i = 0; i < n; i++)
		if (found[i].worker == id)
			return found[i].blocks;
	return 0;
}

uint64_t
replica_leases(const struct replica *r)
{
	struct kvr_stats stats = { .size = sizeof(stats) };

	return kvr_stats_get(r->k, &stats) == KVR_OK ? stats.leases
	    : UINT64_MAX;
}

uint64_t
replica_requests(const struct replica *r, char worker)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };

	return kvr_worker_stats_get(r->k, replica_worker(r, worker), &stats) ==
	    KVR_OK ? stats.requests : UINT64_MAX;
}
