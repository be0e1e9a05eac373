/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * world.c - a library index and a model side by side: makes both, puts an
 * operation's prompt into both, and compares results.
 *
 * In a world with a region that is too small (config.full) the library may hold
 * less than the model. There the model is an upper bound, and the library's
 * own match determines its decisions and bookings.
 */
#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"

struct ops_totals ops_totals;

int
world_fail(struct world *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w->failure->text, sizeof(w->failure->text), format, args);
	va_end(args);
	return -1;
}

void
world_arm(unsigned fail)
{
	if (fail > 0)
		alloc_fail_at(fail);
}

bool
world_disarm(unsigned fail)
{
	if (fail > 0)
		alloc_reset();
	return fail > 0;
}

/* -------------------------------------------------------------- make --- */

/* No world uses up the aliases; the rest stays free for a path. */
enum { ALIASES = 4096, ROOM_OF_EVENTS = 96 << 10 };
enum { AGES_OF_ONE = 1032 }; /* bytes that a worker takes for ages */

static void
make_options(const struct ops_config *c, struct kvr_options *o)
{
	size_t i;

	kvr_options_init(o, sizeof(*o));
	/* one bucket, and ages, beside the cells there would be without */
	o->affinity_entries = 8;
	o->region_bytes = c->region_bytes + 8 * 40 +
	    c->workers * AGES_OF_ONE;
	/* every other one with scopes is shared, by more tenants than rows */
	if (c->hash == KVR_HASH_KEYED)
		o->tenants = (c->workers + c->longest) % 2 * 3;
	if (o->tenants > 0)
		o->region_bytes += c->region_bytes / 8 + 512;
	o->ttl_ns = c->ttl;
	o->lease_limit_ns = c->lease_limit > 0 ? c->lease_limit
	    : INT64_MAX / 2;
	o->unit = c->unit;
	o->block_size = c->block_size;
	o->hash = c->hash;
	o->eagle = c->eagle;
	o->max_workers = c->workers;
	o->max_prompt_blocks = c->max_prompt_blocks;
	if (c->events > 0) {
		o->event_blocks = c->aliases > 0 ? c->aliases : ALIASES;
		o->region_bytes += o->event_blocks * 48 +
		    (c->full ? ROOM_OF_EVENTS / 2 : ROOM_OF_EVENTS);
	}
	o->secret_bytes = KVR_SECRET_MIN;
	for (i = 0; i < KVR_SECRET_MIN; i++)
		o->secret[i] = (unsigned char)(i * 151 + 7);
}

static int
make_policy(struct world *w)
{
	struct kvr_policy p;

	kvr_policy_init(&p, sizeof(p));
	p.cost = w->c->policy == 0 ? KVR_COST_BALANCED : KVR_COST_DYNAMO;
	if (w->c->policy == 2) {
		p.overlap_decay = 0.5;
		p.request_weight = 0.25;
		p.overload_prefill_tokens = 40;
		p.overload_blocks_fraction = 0.5;
	}
	return kvr_policy_set(w->k, &p);
}

static int
make_workers(struct world *w)
{
	struct kvr_worker facts;
	uint32_t i;

	kvr_worker_init(&facts, sizeof(facts));
	for (i = 0; i < w->c->workers; i++) {
		snprintf(w->names[i].text, sizeof(w->names[i].text), "w%u", i);
		facts.rank = i % 2;
		/* as the model */
		facts.retain = step_has_events(w, i) ? KVR_RETAIN_EVENTS
		    : KVR_RETAIN_TTL;
		if (kvr_worker_add(w->k, w->names[i].text,
		    strlen(w->names[i].text), &facts,
		    &w->names[i].id) != KVR_OK)
			return -1;
		model_worker_add(w->m, w->names[i].id);
		model_events_worker(w->m, w->names[i].id, i,
		    step_has_events(w, i));
	}
	return 0;
}

/*
 * One part each, so that the reference's hash has them too; and a tenant, where
 * there can be one.
 */
static int
make_scopes(struct world *w)
{
	static const enum kvr_scope_part part[OPS_SCOPES] = {
		KVR_SCOPE_ADAPTER, KVR_SCOPE_ADAPTER, KVR_SCOPE_SALT,
		KVR_SCOPE_ADAPTER
	};
	uint32_t i;

	for (i = 0; i < OPS_SCOPES; i++) {
		if (kvr_scope_init(&w->scopes[i],
		    sizeof(w->scopes[i])) != KVR_OK)
			return -1;
		if (i > 0 && kvr_scope_set(w->k, &w->scopes[i], part[i],
		    i == 3 ? "other" : "x", i == 3 ? 5 : 1) != KVR_OK)
			return -1;
		if (i > 0 && w->c->hash == KVR_HASH_KEYED && kvr_scope_set(
		    w->k, &w->scopes[i], KVR_SCOPE_TENANT, &"abcdef"[i],
		    1) != KVR_OK)
			return -1;
	}
	return 0;
}

int
world_make(struct world *w, const struct ops_config *c,
    struct ops_failure *failure)
{
	struct kvr_options o;
	struct kvr_stats s = { .size = sizeof(s) };
	int rc;

	memset(w, 0, sizeof(*w));
	w->c = c;
	w->failure = failure;
	w->unit = c->ttl > 0 ? c->ttl : 100;
	w->now = 1000;
	w->m = model_new(c->ttl + c->skew);
	w->options.size = sizeof(w->options);
	make_options(c, &o);
	if (c->events > 0)
		model_events_use(w->m, o.event_blocks, c->block_size,
		    c->full);
	rc = kvr_new(&o, &w->k);
	if (rc != KVR_OK)
		return world_fail(w, "kvr_new: %s", kvr_errname(rc));
	if (kvr_prompt_new(w->k, &w->p) != KVR_OK ||
	    kvr_options_get(w->k, &w->options) != KVR_OK ||
	    make_policy(w) != KVR_OK || make_workers(w) != 0 ||
	    make_scopes(w) != 0 || kvr_stats_get(w->k, &s) != KVR_OK)
		return world_fail(w, "no world can be made");
	w->cells_free = s.cells_free;
	return 0;
}

void
world_end(struct world *w)
{
	size_t i;

	kvr_prompt_free(w->p);
	kvr_free(w->k);
	model_free(w->m);
	for (i = 0; i < OPS_SLOTS; i++)
		free(w->slots[i].tokens);
	free(w->tokens);
	free(w->prefix);
	free(w->sequence);
	free(w->spelt);
}

/* -------------------------------------------------------------- time --- */

void
world_look_at_clock(struct world *w, int64_t now)
{
	w->call = now > 0 ? now : 0;
	if (model_time(w->m, w->call, &w->time) != KVR_OK)
		w->time = w->call;
}

void
world_move_time(struct world *w, const struct op *o)
{
	const int64_t step[TIME_KINDS] = {
		[TIME_TICK] = 1, [TIME_QUARTER] = w->unit / 4,
		[TIME_JUST_BEFORE] = w->unit - 1, [TIME_TTL] = w->unit,
		[TIME_JUST_AFTER] = w->unit + 1, [TIME_LONG] = 3 * w->unit,
		[TIME_LEAP] = INT64_C(100000000000000),
		[TIME_STAYS_BACK] = -(w->unit / 2)
	};
	int64_t now = w->now + step[o->time % TIME_KINDS];

	w->now = now > 0 ? now : 0;
	if (o->time == TIME_BACK)
		world_look_at_clock(w, w->now - w->unit / 2);
	else
		world_look_at_clock(w, o->time == TIME_ZERO ? 0 : w->now);
}

/* ------------------------------------------------------------ prompt --- */

int
world_room(struct world *w, size_t n)
{
	uint32_t *t;
	uint64_t *a, *b;

	if (n <= w->room)
		return 0;
	n = n * 2 + 64;
	t = realloc(w->tokens, n * sizeof(*t));
	w->tokens = t != NULL ? t : w->tokens;
	a = realloc(w->prefix, n * sizeof(*a));
	w->prefix = a != NULL ? a : w->prefix;
	b = realloc(w->sequence, n * sizeof(*b));
	w->sequence = b != NULL ? b : w->sequence;
	if (t == NULL || a == NULL || b == NULL)
		return world_fail(w, "no memory for the test itself");
	w->room = n;
	return 0;
}

/* All tokens of a block are its symbol; the tail's are the symbol 0. */
static int
append_tokens(struct world *w, const struct op *o, size_t n)
{
	size_t b = w->c->block_size, more = o->tail, i, j;

	for (i = 0; i < o->segments; i++)
		more += o->segment[i].blocks * b;
	if (world_room(w, n + more) != 0)
		return -1;
	for (i = 0; i < o->segments; i++)
		for (j = 0; j < o->segment[i].blocks * b; j++)
			w->tokens[n++] = o->segment[i].symbol;
	for (i = 0; i < o->tail; i++)
		w->tokens[n++] = 0;
	w->n_tokens = n;
	return 0;
}

static int
give_bytes(struct world *w, const struct kvr_scope *s)
{
	unsigned char *bytes = malloc(w->n_tokens + 1);
	size_t i;
	int rc;

	if (bytes == NULL)
		return KVR_ENOMEM;
	for (i = 0; i < w->n_tokens; i++)
		bytes[i] = (unsigned char)w->tokens[i];
	rc = kvr_prompt_set_bytes(w->p, s, bytes, w->n_tokens);
	free(bytes);
	return rc;
}

/*
 * Gives the prompt in one call, or (cut > 0) in pieces. With pieces, the scope
 * is given at the beginning or, where the hash allows it, at the end.
 */
static int
give(struct world *w, size_t cut)
{
	const struct kvr_scope *s = w->scope > 0 ? &w->scopes[w->scope] : NULL;
	bool late = w->c->hash == KVR_HASH_KEYED && cut % 2 == 0;
	size_t i, n;
	int rc;

	if (w->c->unit == KVR_UNIT_BYTES)
		return give_bytes(w, s);
	if (cut == 0)
		return kvr_prompt_set_tokens(w->p, s, w->tokens, w->n_tokens);
	rc = kvr_prompt_begin(w->p, late ? NULL : s);
	for (i = 0; rc == KVR_OK && i < w->n_tokens; i += n) {
		n = w->n_tokens - i < cut ? w->n_tokens - i : cut;
		rc = kvr_prompt_tokens(w->p, w->tokens + i, n);
	}
	return rc == KVR_OK ? kvr_prompt_end(w->p, late ? s : NULL) : rc;
}

/* The model's names of the prefixes; each from all tokens it depends on. */
static int
make_path(struct world *w)
{
	size_t b = w->c->block_size, ahead = w->c->eagle, i, done = 0;
	uint64_t prefix = w->scope, local;
	int rc;

	w->path.blocks = w->path.first = 0;
	w->path.prefix = w->prefix;
	w->path.sequence = w->sequence;
	for (i = 0; (i + 1) * b + ahead <= w->n_tokens; i++) {
		while (done < (i + 1) * b + ahead)
			prefix = model_prefix(prefix, w->tokens[done++]);
		w->prefix[i] = prefix;
		rc = kvr_prompt_hash(w->p, i, &local, &w->sequence[i]);
		if (rc != KVR_OK)
			return world_fail(w, "kvr_prompt_hash(%zu): %s", i,
			    kvr_errname(rc));
		w->path.blocks++;
	}
	return 0;
}

/* A prompt without memory yet, so that an allocation can fail. */
static int
fresh_prompt(struct world *w, unsigned fail)
{
	struct kvr_prompt *p = NULL;
	int rc;

	WORLD_CALL(rc, fail, kvr_prompt_new(w->k, &p));
	if (rc != KVR_OK)
		return world_fail(w, "kvr_prompt_new: %s", kvr_errname(rc));
	kvr_prompt_free(w->p);
	w->p = p;
	return 0;
}

int
world_prompt(struct world *w, const struct op *o, uint32_t scope, size_t n)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };
	int rc;

	if (append_tokens(w, o, n) != 0)
		return -1;
	w->scope = scope;
	if (o->fail > 0 && fresh_prompt(w, o->fail) != 0)
		return -1;
	WORLD_CALL(rc, o->fail, give(w, o->arg % 4 == 3 ? 1 + o->arg / 4 : 0));
	if (rc != KVR_OK)
		return world_fail(w, "prompt: %s", kvr_errname(rc));
	if (make_path(w) != 0)
		return -1;
	rc = kvr_prompt_info_get(w->p, &info);
	if (rc != KVR_OK || info.blocks != w->path.blocks ||
	    info.units != w->n_tokens ||
	    info.tokens != world_prompt_tokens(w))
		return world_fail(w, "prompt of %zu units: %s, %u blocks, %"
		    PRIu64 " tokens", w->n_tokens, kvr_errname(rc),
		    info.blocks, info.tokens);
	return 0;
}

/* Tokens `from` to `to` of the current prompt. */
static int
give_more(struct world *w, size_t from, size_t to)
{
	unsigned char byte;
	int rc = KVR_OK;

	if (w->c->unit == KVR_UNIT_TOKENS)
		return kvr_prompt_tokens(w->p, w->tokens + from, to - from);
	for (; rc == KVR_OK && from < to; from++) {
		byte = (unsigned char)w->tokens[from];
		rc = kvr_prompt_bytes(w->p, &byte, 1);
	}
	return rc;
}

/* Saves the first `cut` tokens and spoils one byte: that must be noticed. */
static int
save(struct world *w, size_t cut, uint8_t spoil, unsigned char *saved,
    size_t *bytes)
{
	const struct kvr_scope *s = w->scope > 0 ? &w->scopes[w->scope] : NULL;
	size_t room = *bytes, at;
	int rc = kvr_prompt_begin(w->p, s);

	if (rc == KVR_OK)
		rc = give_more(w, 0, cut);
	if (rc == KVR_OK)
		rc = kvr_prompt_end(w->p, NULL);
	if (rc != KVR_OK)
		return rc;
	*bytes = kvr_prompt_saved_bytes(w->p);
	rc = kvr_prompt_save(w->p, saved, room);
	if (rc != KVR_OK)
		return rc;
	at = spoil % *bytes;
	saved[at] ^= 0x10;
	if (kvr_prompt_resume(w->p, saved, *bytes) == KVR_OK)
		return KVR_ECORRUPT;
	saved[at] ^= 0x10;
	return KVR_OK;
}

static int
save_and_resume(struct world *w, size_t cut, uint8_t spoil)
{
	unsigned char saved[256];
	size_t bytes = sizeof(saved), n;
	int rc = save(w, cut, spoil, saved, &bytes);

	if (rc == KVR_OK)
		rc = kvr_prompt_resume(w->p, saved, bytes);
	if (rc != KVR_OK)
		return rc;
	rc = give_more(w, cut, w->n_tokens);
	if (rc == KVR_OK)
		rc = kvr_prompt_end(w->p, NULL);
	if (rc == KVR_OK &&
	    kvr_match(w->k, w->p, w->call, NULL, 8, 0, &n) != KVR_ESTATE)
		rc = KVR_ECORRUPT;
	return rc;
}

int
world_resume(struct world *w, const struct op *o, size_t cut)
{
	const size_t ahead = w->c->eagle;
	int rc;

	if (o->fail > 0 && fresh_prompt(w, o->fail) != 0)
		return -1;
	WORLD_CALL(rc, o->fail, save_and_resume(w, cut, o->arg));
	if (rc != KVR_OK)
		return world_fail(w, "resumed at %zu: %s", cut,
		    kvr_errname(rc));
	w->path.first = cut < ahead ? 0
	    : (uint32_t)((cut - ahead) / w->c->block_size);
	return 0;
}

/* In byte mode a token is estimated at 4 bytes; rounded to nearest. */
uint64_t
world_tokens_of(const struct world *w, uint64_t units)
{
	return w->c->unit == KVR_UNIT_BYTES ? (units + 2) / 4 : units;
}

uint64_t
world_prompt_tokens(const struct world *w)
{
	return w->c->unit == KVR_UNIT_BYTES ? (w->n_tokens + 3) / 4
	    : w->n_tokens;
}

/*
 * The bits of a variant:  0-2 kind of reuse   3-4 pinned, excluded, sampled
 *                         5-6 owner           7 allowed set
 */
const struct kvr_request *
world_request(struct world *w, const struct op *o)
{
	struct kvr_request *r = &w->request;
	static const uint32_t flags[8] = {
		[1] = KVR_IGNORE_PREFILL, [2] = KVR_IGNORE_REUSE,
		[3] = KVR_IGNORE_PREFILL | KVR_IGNORE_REUSE
	};
	uint64_t id = w->names[o->worker].id;

	kvr_request_init(r, sizeof(*r));
	r->flags = flags[o->variant % 8];
	r->owner = o->variant / 32 % 4;
	if (o->variant % 8 == 4)
		r->stage = KVR_STAGE_PREFILL;
	if (o->variant % 8 == 5 || o->variant % 8 == 6)
		r->stage = KVR_STAGE_DECODE;
	if (o->variant % 8 == 6)
		r->overlap_credit = 1;
	if (o->variant % 8 == 7)
		r->prefill_scale = 2;
	if (o->variant / 8 % 4 == 1)
		r->pinned = id;
	if (o->variant / 8 % 4 == 2) {
		r->n_excluded = 1;
		r->excluded[0] = id;
	}
	if (o->variant / 8 % 4 == 3) {
		r->temperature = 0.5;
		r->seed = o->arg;
	}
	if (o->arg / 4 % 2 == 1) {
		r->affinity = 1 + o->arg / 8 % 4;
		r->affinity_mode = o->arg / 32 % 2;
		r->affinity_ttl = 1 + 3 * w->unit;
	}
	return o->variant == 0 && o->arg % 2 == 0 ? NULL : r;
}

/* ------------------------------------------------------------- match --- */

const struct kvr_overlap *
world_found(const struct world *w, uint64_t id)
{
	static const struct kvr_overlap none;
	size_t i;

	for (i = 0; i < w->n_found; i++)
		if (w->found[i].worker == id)
			return &w->found[i];
	return &none;
}

static uint64_t
usable_units(const struct world *w, const struct kvr_overlap *v)
{
	uint64_t block = model_event_block(w->m, v->worker);
	uint64_t units = v->blocks * (uint64_t)w->c->block_size;

	if (v->blocks == 0 || !model_tracked(w->m, v->worker))
		return units;
	if (block == 0)
		block = w->c->block_size;
	units = units < w->n_tokens ? units : w->n_tokens - 1;
	return units / block * block;
}

uint64_t
world_usable(const struct world *w, const struct kvr_overlap *v)
{
	return world_tokens_of(w, usable_units(w, v));
}

/* Blocks of an engine that are no multiple: kvr_choose takes whole ones. */
static bool
any_part_usable(const struct world *w)
{
	size_t i;

	for (i = 0; i < w->n_found; i++)
		if (usable_units(w, &w->found[i]) % w->c->block_size != 0)
			return true;
	return false;
}

static void
expect(struct world *w)
{
	struct kvr_overlap *v;
	uint32_t i;

	w->n_found = 0;
	for (i = 0; i < w->c->workers; i++) {
		v = &w->found[w->n_found];
		memset(v, 0, sizeof(*v));
		v->worker = w->names[i].id;
		if (!model_worker_known(w->m, v->worker))
			continue;
		v->blocks = model_overlap(w->m, v->worker, &w->path, w->time,
		    &v->active_blocks);
		v->tokens = (uint32_t)world_tokens_of(w,
		    (uint64_t)v->blocks * w->c->block_size);
		w->n_found += v->blocks > 0;
	}
}

static int
compare_overlap(struct world *w, const struct kvr_overlap *got)
{
	const struct kvr_overlap *want = world_found(w, got->worker);
	bool less = w->c->full;

	if (got->blocks == 0 || got->active_blocks > got->blocks ||
	    got->tokens != world_tokens_of(w,
	    (uint64_t)got->blocks * w->c->block_size))
		return world_fail(w, "match: absurd overlap of %u blocks, %u"
		    " active, %u tokens", got->blocks, got->active_blocks,
		    got->tokens);
	if (model_vague(w->m, got->worker))
		return 0;
	if (less ? got->blocks > want->blocks : got->blocks != want->blocks)
		return world_fail(w, "match: worker %" PRIx64 " has %u blocks,"
		    " must %u", got->worker, got->blocks, want->blocks);
	if (less ? got->active_blocks > want->active_blocks
	    : got->active_blocks != want->active_blocks)
		return world_fail(w, "match: worker %" PRIx64 " has %u active"
		    " blocks, must %u", got->worker, got->active_blocks,
		    want->active_blocks);
	return 0;
}

int
world_match(struct world *w, const struct op *o)
{
	struct kvr_overlap got[OPS_NAMES];
	size_t n = 99, i, room = o->arg % 8 == 0 ? 1 : OPS_NAMES;
	int rc;

	expect(w);
	WORLD_CALL(rc, o->fail, kvr_match(w->k, w->p, w->call, got,
	    sizeof(got[0]), OPS_NAMES, &n));
	if (rc != KVR_OK)
		return world_fail(w, "kvr_match: %s", kvr_errname(rc));
	if (n > OPS_NAMES || (!w->c->full && n != w->n_found &&
	    !model_any_vague(w->m)))
		return world_fail(w, "match: %zu workers, must %zu", n,
		    w->n_found);
	for (i = 0; i < n; i++)
		if (compare_overlap(w, &got[i]) != 0)
			return -1;
	ops_totals.matches++;
	memcpy(w->found, got, n * sizeof(got[0]));
	w->n_found = n;
	if (room == 1 && (kvr_match(w->k, w->p, w->call, got, sizeof(got[0]),
	    room, &i) != KVR_OK || i != n))
		return world_fail(w, "match: %zu workers where little is "
		    "asked, must %zu", i, n);
	return 0;
}

/* ------------------------------------------------------------ choose --- */

int
world_choose(struct world *w, const struct op *o,
    const struct kvr_request *r, struct kvr_decision *out)
{
	uint64_t ids[2] = { w->names[o->worker].id, w->names[0].id };
	struct kvr_overlap usable[OPS_NAMES];
	size_t i;
	int rc;

	if (o->variant >= 128) {
		WORLD_CALL(rc, o->fail, kvr_prompt_allow(w->p, ids, 2));
		if (rc != KVR_OK)
			return world_fail(w, "kvr_prompt_allow: %s",
			    kvr_errname(rc));
	}
	if (world_match(w, o) != 0)
		return -1;
	for (i = 0; i < w->n_found; i++) {
		usable[i] = w->found[i];
		usable[i].blocks = (uint32_t)(usable_units(w, &w->found[i]) /
		    w->c->block_size);
	}
	memset(out, 0x5a, sizeof(*out));
	out->size = sizeof(*out);
	/* Without the parts of blocks, worker and cost cannot be judged. */
	if (any_part_usable(w))
		rc = kvr_route(w->k, w->p, r, w->call, out);
	else
		rc = kvr_choose(w->k, w->p, r, usable, sizeof(usable[0]),
		    w->n_found, w->call, out);
	if (rc == KVR_OK)
		out->overlap_blocks = world_found(w, out->worker)->blocks;
	return rc;
}

int
world_same_decision(struct world *w, const struct kvr_decision *got,
    const struct kvr_decision *want)
{
	uint64_t tokens;

	if (model_any_vague(w->m))
		return 0;
	ops_totals.decisions++;
	if (got->worker != want->worker)
		return world_fail(w, "decision: worker %" PRIx64 ", must %"
		    PRIx64, got->worker, want->worker);
	if (memcmp(&got->cost, &want->cost, sizeof(got->cost)) != 0)
		return world_fail(w, "decision: cost %g, must %g", got->cost,
		    want->cost);
	tokens = world_usable(w, world_found(w, got->worker));
	if (got->overlap_blocks != want->overlap_blocks ||
	    got->overlap_tokens != tokens)
		return world_fail(w, "decision: overlap %u blocks, %" PRIu64
		    " tokens, must %u, %" PRIu64, got->overlap_blocks,
		    got->overlap_tokens, want->overlap_blocks, tokens);
	if (got->best_tokens != want->best_tokens)
		return world_fail(w, "decision: best %" PRIu64 ", must %"
		    PRIu64, got->best_tokens, want->best_tokens);
	if (got->prompt_blocks != w->path.blocks ||
	    got->prompt_tokens != world_prompt_tokens(w))
		return world_fail(w, "decision: prompt of %u blocks",
		    got->prompt_blocks);
	if (got->affinity != want->affinity)
		return world_fail(w, "decision: affinity %u, must %u",
		    got->affinity, want->affinity);
	if (got->reason != want->reason || got->eligible != want->eligible)
		return world_fail(w, "decision: reason %u of %u eligible, must"
		    " %u of %u", got->reason, got->eligible, want->reason,
		    want->eligible);
	return 0;
}
