/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * corrupt.c - sound regions of a few kinds, and one run on one of them.
 *
 * The regions have everything in them: shared prefixes, split and long runs,
 * leases in all states and of removed workers, unconfirmed entries, retired
 * slots, free trees. Two of them are full, one has a journal, and one is
 * shared by tenants, and one tenant finds no row. They are made by public
 * calls, from fixed seeds and with a fixed table key, so a run means the same
 * in every process.
 */
#include "corrupt.h"
#include "plain.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Two buckets of bindings, beside the cells there would be without. */
enum { LONGEST = 700, FAMILIES = 6, PLACES = 16, TENANTS = 2 };
#define TABLE_BYTES (PLACES * sizeof(struct binding))

static const struct kind {
	size_t bytes;
	uint32_t workers, unit, block_size, hash, eagle;
	int64_t ttl;
	uint32_t calls; /* made on it at first */
	uint32_t policy;
	uint64_t journal, aliases;
	uint32_t tenants;
} kinds[CORRUPT_WORLDS] = {
	{ 64 << 10, 4, KVR_UNIT_TOKENS, 1, KVR_HASH_KEYED, 0, 1000, 120, 0,
	    0, 0, 0 },
	{ 96 << 10, 16, KVR_UNIT_TOKENS, 1, KVR_HASH_KEYED, 0, 100000, 1500,
	    0, 0, 256, 0 },
	{ 64 << 10, 6, KVR_UNIT_BYTES, 4, KVR_HASH_DYNAMO, 0, 5000, 200, 1,
	    KVR_JOURNAL_MIN, 0, 0 },
	{ 256 << 10, 12, KVR_UNIT_TOKENS, 4, KVR_HASH_KEYED, 1, -1, 4000, 2,
	    0, 0, TENANTS },
};

static struct corrupt_world worlds[CORRUPT_WORLDS];

/* ------------------------------------------------------------- numbers --- */

uint64_t
corrupt_word(struct ops_source *s)
{
	uint64_t word = 0;
	int i;

	for (i = 0; i < 8; i++)
		word = word << 8 | ops_pick(s, 256);
	return word;
}

uint32_t
corrupt_pick(struct ops_source *s, uint32_t n)
{
	uint32_t word = ops_pick(s, 256);

	if (n > 256)
		word = word << 16 | ops_pick(s, 256) << 8 | ops_pick(s, 256);
	return n > 0 ? word % n : 0;
}

/* ------------------------------------------------------------- prompts --- */

/*
 * The prompts of a family share their first tokens, then one of a few ends
 * follows. So prompts meet, fork inside runs, and extend one another. Every
 * other family is a tenant's, where there can be one; blocks of events have no
 * tenant.
 */
int
corrupt_say(struct ops_source *s, struct kvr_prompt *p)
{
	static const uint16_t length[] = { 1, 3, 7, 16, 17, 40, 64, 90, 255,
		257, LONGEST };
	uint32_t token[LONGEST], family = ops_pick(s, FAMILIES), i;
	uint32_t end = ops_pick(s, 5), n, common;
	struct kvr_scope scope;

	(void)kvr_scope_init(&scope, sizeof(scope));
	n = length[ops_pick(s, sizeof(length) / sizeof(length[0]))];
	common = n * ops_pick(s, 9) / 8;
	for (i = 0; i < n; i++)
		token[i] = family << 16 | (i < common ? 0 : end << 12) | i;
	if (p->rule.unit == KVR_UNIT_BYTES)
		return kvr_prompt_set_bytes(p, NULL, token, n * 4);
	if (family % 2 == 1 && p->rule.kind == KVR_HASH_KEYED)
		scope.digest[KVR_SCOPE_TENANT] = family;
	return kvr_prompt_set_tokens(p, &scope, token, n);
}

/* ------------------------------------------------------------- regions --- */

static void
demand(bool condition)
{
	if (!condition)
		abort();
}

/* Fixes the random numbers of a region; only while nothing is in it. */
static void
fix_table_key(struct kvr *k)
{
	struct region *r = k->region;
	uint64_t state = 1;
	size_t i;

	for (i = 0; i < 12; i++)
		r->seal.table_key[i] = plain_random(&state) | 1;
	r->checksum = XXH3_64bits(&r->seal, sizeof(r->seal));
}

static struct kvr *
make(const struct kind *kind, struct corrupt_world *w)
{
	struct kvr_options o;
	struct kvr *k;

	demand(kvr_options_init(&o, sizeof(o)) == KVR_OK);
	o.unit = kind->unit;
	o.block_size = kind->block_size;
	o.hash = kind->hash;
	o.eagle = kind->eagle;
	o.ttl_ns = kind->ttl;
	o.max_workers = kind->workers;
	o.affinity_entries = PLACES;
	o.journal_bytes = kind->journal;
	o.event_blocks = kind->aliases;
	o.tenants = kind->tenants;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 's', sizeof(o.secret));
	w->bytes = kind->bytes + TABLE_BYTES + kind->aliases * 44;
	if (kind->tenants > 0)
		w->bytes += (kind->bytes / 8 + 512) / CELL * CELL;
	w->bytes += kind->journal;
	w->memory = aligned_alloc(CELL, w->bytes);
	w->image = aligned_alloc(CELL, w->bytes);
	demand(w->memory != NULL && w->image != NULL);
	memset(w->memory, 0, w->bytes);
	demand(kvr_new_at(&o, w->memory, w->bytes, &k) == KVR_OK);
	fix_table_key(k);
	kvr_free(k);
	demand(kvr_attach_at(NULL, w->memory, w->bytes, &k) == KVR_OK);
	return k;
}

static void
set_policy(struct kvr *k, uint32_t policy)
{
	struct kvr_policy p;

	demand(kvr_policy_init(&p, sizeof(p)) == KVR_OK);
	if (policy != 0)
		p.cost = KVR_COST_DYNAMO;
	if (policy == 2) {
		p.overlap_decay = 0.5;
		p.request_weight = 1.5;
		p.temperature = 0.1;
		p.overload_prefill_tokens = 3000;
		p.overload_prefill_fraction = 0.75;
		p.overload_blocks_fraction = 0.5;
	}
	demand(kvr_policy_set(k, &p) == KVR_OK);
}

static void
add_workers(struct kvr *k, uint32_t n, uint64_t *id)
{
	struct kvr_worker facts;
	struct kvr_load load = { .size = sizeof(load), .prefill_tokens = 9,
	    .active_blocks = 4, .requests = 2, .used_blocks = 3 };
	char name[3] = "w?";
	uint32_t i;

	demand(kvr_worker_init(&facts, sizeof(facts)) == KVR_OK);
	facts.max_batched_tokens = 512;
	for (i = 0; i < n; i++) {
		/* some overflow, some do not, some have other modes */
		facts.capacity_tokens = i % 4 == 1 ? 300 : 4096;
		facts.retain = i % 4 == 3 ? KVR_RETAIN_FEEDBACK
		    : i % 4 == 2 ? KVR_RETAIN_TTL
		    : i % 4 == 0 && k->layout.aliases > 0 ? KVR_RETAIN_EVENTS
		    : KVR_RETAIN_AUTO;
		facts.eviction = i / 4 % 2;
		name[1] = (char)('a' + i / 2);
		facts.rank = i % 2;
		facts.taints = i % 3;
		demand(kvr_worker_add(k, name, 2, &facts, &id[i]) == KVR_OK);
	}
	demand(kvr_worker_set_load(k, id[0], 0, &load) == KVR_OK);
	demand(kvr_worker_set_load(k, id[0], KVR_LOAD_SOURCES - 1, &load) ==
	    KVR_OK);
}

/* Continues a lease that may or may not exist. */
static void
go_on(struct kvr *k, struct ops_source *s, uint64_t lease, int64_t now,
    struct kvr_prompt *p)
{
	struct kvr_report r = { .size = sizeof(r), .kind = KVR_REPORT_VALUE,
	    .prompt_tokens = 200, .cached_tokens = ops_pick(s, 200),
	    .completion_tokens = ops_pick(s, 100) };

	switch (ops_pick(s, 6)) {
	case 0:
		(void)kvr_lease_commit(k, lease, now, 0);
		break;
	case 1:
		(void)kvr_lease_first_token(k, lease, now, 0);
		break;
	case 2:
		(void)kvr_lease_extend(k, lease, p, now, 0);
		break;
	case 3:
		(void)kvr_lease_output(k, lease, 3, now, 0);
		break;
	case 4:
		(void)kvr_lease_finish(k, lease, &r, now, 0);
		break;
	default:
		(void)kvr_lease_abort(k, lease, now, 0);
	}
}

/* Makes events about half of the blocks of a prompt. */
void
corrupt_events(const struct kvr_prompt *p, uint32_t much, struct kvr_event *e,
    uint64_t *names, uint32_t *tokens)
{
	uint32_t i;

	for (i = 0; i < CORRUPT_NAMES; i++) {
		tokens[i] = much << 16 | i;
		names[i] = (uint64_t)much << 32 | (i + 1);
	}
	(void)kvr_event_init(e, sizeof(*e));
	e->kind = KVR_EVENT_STORED;
	e->block_tokens = 1;
	e->hashes = 16 * (much % 4 + 1);
	if (p->rule.unit == KVR_UNIT_TOKENS)
		e->tokens = e->hashes;
}

/* Sends the events of one engine: the first batch, and later ones. */
static void
tell(struct kvr *k, struct corrupt_world *w, uint64_t *id, uint32_t much)
{
	struct kvr_event_batch b = { .size = sizeof(b) };
	struct kvr_event_result r = { .size = sizeof(r) };
	struct kvr_worker_stats stats = { .size = sizeof(stats) };
	uint64_t names[CORRUPT_NAMES];
	uint32_t tokens[CORRUPT_NAMES];
	struct kvr_event e;

	corrupt_events(w->p, much, &e, names, tokens);
	demand(kvr_worker_stats_get(k, *id, &stats) == KVR_OK);
	b.seq = stats.events_next;
	demand(kvr_events_apply(k, *id, &b, &e, sizeof(e), 1, names,
	    CORRUPT_NAMES, tokens, CORRUPT_NAMES, w->now, 0, &r) == KVR_OK);
	*id = r.worker;
}

/* Fills in the key of a session, by the time: a corpus keeps its meaning. */
void
corrupt_request(int64_t now, struct kvr_request *r)
{
	demand(kvr_request_init(r, sizeof(*r)) == KVR_OK);
	r->affinity = now % 3 == 0 ? 0 : (uint64_t)now / 3 % 24;
	r->affinity_mode = (uint32_t)(now / 72 % 2);
	r->share = (uint32_t)(now / 5 % 4 * 50);
}

static void
live(struct kvr *k, struct corrupt_world *w, struct ops_source *s,
    const struct kind *kind, uint64_t *id)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint64_t worker = id[ops_pick(s, kind->workers)];
	struct kvr_request r;

	corrupt_request(w->now, &r);
	demand(corrupt_say(s, w->p) == KVR_OK);
	w->now += ops_pick(s, 12);
	switch (ops_pick(s, 8)) {
	case 0:
	case 1:
		if (kvr_lease_open(k, w->p, &r, w->now, &d) == KVR_OK)
			w->leases = d.lease > w->leases ? d.lease : w->leases;
		break;
	case 2:
	case 3:
	case 4:
		go_on(k, s, w->leases - ops_pick(s, 12), w->now, w->p);
		break;
	default:
		(void)kvr_observe(k, w->p, worker, w->now, 0, NULL);
	}
}

/* The cells in use, by kind. */
static void
take_stock(const struct kvr *k, struct corrupt_world *w)
{
	const struct region *r = k->region;
	uint32_t b, i, kind;

	for (kind = 0; kind <= CELL_LEASE; kind++) {
		w->n[kind] = 0;
		w->cells[kind] = calloc(k->layout.cells, sizeof(uint32_t));
		demand(w->cells[kind] != NULL);
	}
	for (b = 0; b < k->region->node_buckets_used; b++)
		for (i = k->node_buckets[b]; i != 0; i = node_at(k, i)->next)
			w->cells[CELL_NODE][w->n[CELL_NODE]++] = i;
	for (b = 0; b < k->region->entry_buckets_used; b++)
		for (i = k->entry_buckets[b]; i != 0;
		    i = entry_at(k, i)->next) {
			kind = entry_at(k, i)->kind;
			w->cells[kind][w->n[kind]++] = i;
		}
	for (i = r->free_top; i != 0; i = cell_at(k, i)->tree.next) {
		kind = cell_at(k, i)->tree.kind;
		w->cells[kind][w->n[kind]++] = i;
	}
}

static struct corrupt_world *
world_of(uint32_t number)
{
	const struct kind *kind = &kinds[number];
	struct corrupt_world *w = &worlds[number];
	uint64_t id[CORRUPT_WORKERS];
	struct ops_source s;
	struct kvr *k;
	uint32_t i;

	if (w->memory != NULL)
		return w;
	k = make(kind, w);
	ops_from_seed(&s, number);
	demand(kvr_prompt_new(k, &w->p) == KVR_OK);
	set_policy(k, kind->policy);
	add_workers(k, kind->workers, id);
	for (i = 0; i < kind->calls; i++) {
		if (i % 100 == 99)
			(void)kvr_worker_reset(k, id[i / 100 % 2],
			    &id[i / 100 % 2]);
		if (kind->aliases > 0 && i % 64 == 17)
			tell(k, w, &id[i / 64 % 2 * 4], i / 64 % 3);
		live(k, w, &s, kind, id);
	}
	demand(kvr_worker_reset(k, id[1], &id[1]) == KVR_OK);
	demand(kvr_worker_remove(k, id[2]) == KVR_OK);
	demand(kvr_check(k) == KVR_OK);
	take_stock(k, w);
	kvr_free(k);
	memcpy(w->image, w->memory, w->bytes);
	return w;
}

/* ----------------------------------------------------------------- run --- */

void
corrupt_peer(struct corrupt *c, bool present)
{
	c->peer = c->totals->peer != NULL && present;
	if (c->totals->peer != NULL)
		c->totals->peer(c, present);
}

/* Is this an error that attach may return for a damaged region? */
static bool
refusal(int error)
{
	return error == KVR_EFORMAT || error == KVR_EVERSION ||
	    error == KVR_EMISMATCH;
}

static bool
attach(struct corrupt *c)
{
	int error;

	corrupt_peer(c, true);
	error = kvr_attach_at(NULL, c->w->memory, c->w->bytes, &c->k);
	if (error != KVR_OK) {
		c->totals->refused++;
		return refusal(error) || c->mode == CORRUPT_PEER ? true
		    : corrupt_fail(c, "attach: %s", kvr_errname(error));
	}
	error = kvr_prompt_new(c->k, &c->p);
	if (error != KVR_OK)
		corrupt_fail(c, "prompt_new: %s", kvr_errname(error));
	return error == KVR_OK;
}

bool
corrupt_run(struct ops_source *s, enum corrupt_mode mode,
    struct corrupt_totals *totals, char *why, size_t room)
{
	struct corrupt c = { .s = s, .totals = totals, .why = why,
		.room = room };
	bool good;

	why[0] = '\0';
	totals->runs++;
	c.w = world_of(ops_pick(s, CORRUPT_WORLDS));
	c.now = c.w->now;
	memcpy(c.w->memory, c.w->image, c.w->bytes);
	c.mode = mode != CORRUPT_MODES ? mode
	    : (enum corrupt_mode)ops_pick(s, CORRUPT_MODES);
	if (mode != CORRUPT_PEER)
		corrupt_damage(&c);
	good = attach(&c);
	if (good && c.k != NULL)
		good = corrupt_use(&c);
	corrupt_peer(&c, false);
	kvr_prompt_free(c.p);
	kvr_free(c.k);
	return good;
}
