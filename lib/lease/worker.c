/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker.c - workers: their slots, facts and loads.
 *
 *   name "10.0.0.1:8000" rank 0 --> slot 3, generation 5 (odd: in use)
 *                                   id of both: id.h
 *
 * A slot retires when its worker is removed or reset: the generation becomes
 * even, so every id given out for it is invalid, and all its entries join the
 * list of dead entries at once (entry_retire_slot). It is free again when the
 * last of them has been reclaimed and the last lease on it has ended or was
 * detached (region_slot_free). A worker that is reset continues in another
 * slot, under the same name. There are twice as many slots as workers; if all
 * spare ones are still retired, each call reclaims some of their dead entries.
 */
#include "worker.h"

#include "entry.h"
#include "event_stream.h"
#include "mix.h"
#include "name.h"
#include "observed.h"
#include "pressure.h"
#include "rate.h"
#include "retain.h"
#include "stack.h"
#include "survival.h"
#include "trust.h"
#include "window.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { RECLAIMS_MAX = 256 }; /* dead entries, by a call that needs a slot */

/* --------------------------------------------------------------- slots --- */

/*
 * Takes a slot that nothing refers to any more. KVR_EBUSY: entries of retired
 * ones remain to be reclaimed; KVR_EFULL: none do.
 */
static int
slot_take(struct kvr *k, uint32_t *slot)
{
	struct region *r = k->region;
	uint32_t left = RECLAIMS_MAX;

	if (r->slot_free == 0 && r->slots_used < k->layout.slots) {
		*slot = r->slots_used;
		write_once(r->slots_used, r->slots_used + 1);
		return KVR_OK;
	}
	while (r->slot_free == 0 && left-- > 0 && retain_reclaim_orphan(k))
		continue;
	if (r->slot_free == 0)
		return r->dead.head != 0 ? KVR_EBUSY : KVR_EFULL;
	*slot = r->slot_free - 1;
	if (*slot >= k->layout.slots || slot_in_use(k, *slot)) {
		region_break(k); /* it is not free */
		return KVR_EFULL;
	}
	put_once(r->slot_free, slot_at(k, *slot)->name);
	return KVR_OK;
}

/* The part of a worker that resets keep. */
struct incarnation {
	uint64_t identity;
	uint32_t name, rank, dp_group;
};

/*
 * Starts a new worker in this slot, or continues one that is reset. If the
 * writer dies, a single store decides whether it has happened: for a new
 * worker, the generation (the name already points here); for one that is reset,
 * the name.
 */
static void
slot_begin(struct kvr *k, uint32_t slot, const struct incarnation *from,
    const struct kvr_worker *facts)
{
	struct slot *s = slot_at(k, slot);

	write_once_zeros(s, sizeof(*s));
	write_once(s->name, from->name);
	put_once(s->rank, from->rank);
	survival_forget(k, slot);
	stack_empty(k, slot);
	pressure_forget(k, slot);
	observed_forget(k, slot);
	rate_idle(k, slot);
	write_once_zeros(
	    outside_at(k, from->name), sizeof(struct outside));
	write_once(k->loads.identity[slot], from->identity);
	worker_set(k, slot, facts);
	dp_group_join(k, slot, from->dp_group);
	atomic_signal_fence(memory_order_seq_cst);
	write_once(k->generations[slot], k->generations[slot] + 1);
	atomic_signal_fence(memory_order_seq_cst);
	write_once(name_at(k, s->name)->slot, (uint16_t)slot);
	load_publish(k, slot);
}

static void
slot_retire(struct kvr *k, uint32_t slot)
{
	write_once(k->generations[slot], k->generations[slot] + 1);
	load_publish(k, slot);
	dp_group_leave(k, slot);
	entry_retire_slot(k, slot);
}

/*
 * Equal in all replicas that share the secret: the last tie-break must not
 * depend on the order in which workers were added.
 */
static uint64_t
identity_of(const struct kvr *k, const char *name, size_t length,
    uint32_t rank)
{
	uint64_t seed = 0;

	if (k->rule.kind == KVR_HASH_KEYED)
		seed = XXH_readLE64(k->rule.secret);
	/* not in the seed: in XXH3 it can undo a change of a short name */
	return mix(XXH3_64bits_withSeed(name, length, seed) ^
	    mix((uint64_t)rank + 1));
}

/* ------------------------------------------------------------- workers --- */

int
worker_add(struct kvr *k, const char *name, size_t length,
    const struct kvr_worker *facts, uint32_t *slot)
{
	struct incarnation from;
	int error;

	if (name_find(k, name, length, facts->rank, slot))
		return KVR_EEXIST;
	if (k->region->workers >= k->layout.names)
		return KVR_EFULL;
	error = slot_take(k, slot);
	if (error != KVR_OK)
		return error;
	from.rank = facts->rank;
	from.identity = identity_of(k, name, length, facts->rank);
	from.dp_group = dp_group_of(k, name, length);
	from.name = name_add(k, name, length, *slot);
	event_begin(k, from.name);
	slot_begin(k, *slot, &from, facts);
	add_once(k->region->workers, 1);
	return KVR_OK;
}

void
worker_remove(struct kvr *k, uint32_t slot)
{
	event_begin(k, slot_at(k, slot)->name);
	name_remove(k, slot_at(k, slot)->name);
	slot_retire(k, slot);
	sub_once(k->region->workers, 1);
}

int
worker_reset(struct kvr *k, uint32_t slot, uint32_t *fresh)
{
	struct incarnation from;
	struct kvr_worker facts;
	int error = slot_take(k, fresh);

	if (error != KVR_OK)
		return error;
	worker_get(k, slot, &facts);
	from.rank = slot_at(k, slot)->rank;
	from.name = slot_at(k, slot)->name;
	from.dp_group = slot_at(k, slot)->dp_group;
	from.identity = k->loads.identity[slot];
	event_reset(k, from.name);
	slot_begin(k, *fresh, &from, &facts);
	slot_retire(k, slot);
	return KVR_OK;
}

void
worker_get(const struct kvr *k, uint32_t slot, struct kvr_worker *facts)
{
	const struct slot *s = slot_at(k, slot);

	facts->rank = read_once(s->rank);
	facts->role = read_once(s->role);
	facts->state = read_once(s->state);
	facts->retain = read_once(s->retain);
	facts->eviction = read_once(s->eviction);
	facts->block_tokens = read_once(s->block_tokens);
	facts->window_reserved = 0;
	facts->capacity_tokens = read_once(s->capacity);
	facts->max_batched_tokens = read_once(s->max_batched);
	facts->taints = read_once(s->taints);
	facts->prefill_rate = read_once_double(&s->prefill_rate);
	facts->weight = read_once_double(&s->weight);
	window_get(k, slot, facts);
}

/* Returns its length. */
size_t
worker_name(const struct kvr *k, uint32_t slot, char name[KVR_NAME_MAX])
{
	struct name n;
	size_t length;

	read_once_words(
	    &n, name_at(k, read_once(slot_at(k, slot)->name)), sizeof(n));
	length = name_length(&n);
	memcpy(name, n.text, length);
	return length;
}

/* Sets all facts but the rank, which is part of the name. */
void
worker_set(struct kvr *k, uint32_t slot, const struct kvr_worker *facts)
{
	struct slot *s = slot_at(k, slot);
	bool same = s->capacity == facts->capacity_tokens;
	bool before = slot_relieves(s);

	put_once(s->role, (uint8_t)facts->role);
	put_once(s->state, (uint8_t)facts->state);
	dp_group_recount(k, s, before);
	write_once(s->retain, (uint8_t)facts->retain);
	put_once(s->eviction, (uint8_t)facts->eviction);
	write_once(s->block_tokens, facts->block_tokens);
	put_once(s->capacity, facts->capacity_tokens);
	put_once(s->max_batched, facts->max_batched_tokens);
	write_once(s->taints, facts->taints);
	put_once(s->prefill_rate, facts->prefill_rate);
	write_once_double(&s->weight, facts->weight);
	window_set(k, slot, facts);
	if (event_tracks(k, slot) && !event_wanted(k, slot))
		event_degrade(k, slot);
	if (!same)
		trust_told(k, slot);
	retain_decide(k, slot);
	retain_evict_lost(k, slot);
	load_recount(k, slot);
}

/* ---------------------------------------------------------------- load --- */

/* Sums over all sources and leases stay within int64_t and int32_t. */
bool
worker_load_ok(const struct kvr_load *l)
{
	return l->requests <= LOAD_REQUESTS_MAX &&
	    l->prefill_tokens <= LOAD_MAX && l->active_blocks <= LOAD_MAX;
}

/* Sums over all sources; of `used`, the largest. Damaged sources count 0. */
static void
outside_sum(struct outside *o, struct slot *s)
{
	struct kvr_load sum;
	uint32_t i;

	memset(&sum, 0, sizeof(sum));
	for (i = 0; i < KVR_LOAD_SOURCES; i++) {
		if (!outside_sound(o, i))
			write_once_zeros(&o->source[i], sizeof(o->source[i]));
		sum.prefill_tokens += o->source[i].prefill;
		sum.active_blocks += o->source[i].blocks;
		sum.requests += o->source[i].requests;
		if (sum.used_blocks < o->source[i].used)
			sum.used_blocks = o->source[i].used;
	}
	put_once(s->load_prefill, sum.prefill_tokens);
	write_once(s->load_blocks, sum.active_blocks);
	put_once(s->load_requests, (uint32_t)sum.requests);
	put_once(s->load_used, sum.used_blocks);
}

void
worker_get_load(const struct kvr *k, uint32_t slot, uint32_t source,
    struct kvr_load *out)
{
	const struct outside *o = outside_at(k,
	    read_once(slot_at(k, slot)->name));

	memset(out, 0, sizeof(*out));
	out->prefill_tokens = read_once(o->source[source].prefill);
	out->active_blocks = read_once(o->source[source].blocks);
	out->requests = read_once(o->source[source].requests);
	out->used_blocks = read_once(o->source[source].used);
}

void
worker_set_load(struct kvr *k, uint32_t slot, uint32_t source,
    const struct kvr_load *load)
{
	struct slot *s = slot_at(k, slot);
	struct outside *o = outside_at(k, s->name);

	put_once(o->source[source].prefill, load->prefill_tokens);
	put_once(o->source[source].blocks, load->active_blocks);
	put_once(o->source[source].requests, load->requests);
	put_once(o->source[source].used, load->used_blocks);
	sub_once(s->prefill, s->load_prefill);
	sub_once(s->blocks, s->load_blocks);
	sub_once(s->requests, s->load_requests);
	outside_sum(o, s);
	add_once(s->prefill, s->load_prefill);
	add_once(s->blocks, s->load_blocks);
	add_once(s->requests, s->load_requests);
	load_recount(k, slot);
}

/* A worker is overloaded if all ranks of its name that are up are. */
bool
worker_overloaded(const struct kvr *k, uint32_t slot)
{
	uint32_t dp_group = read_once(slot_at(k, slot)->dp_group);

	return (read_once(k->loads.gate[slot]) & GATE_OVERLOADED) != 0 &&
	    read_once(dp_group_at(k, dp_group)->not_overloaded) == 0;
}

/* ------------------------------------------------------------- recover --- */

/* Facts that damage made impossible take their defaults. */
static void
mend_facts(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);

	if (s->role > KVR_ROLE_DECODE)
		put_once(s->role, KVR_ROLE_BOTH);
	if (s->state > KVR_STATE_DOWN)
		put_once(s->state, KVR_STATE_UP);
	window_mend(k, slot);
}

static void
dp_groups_empty(struct kvr *k)
{
	write_once_zeros(
	    k->dp_groups, k->layout.names * sizeof(struct dp_group));
}

/*
 * Sums external loads and counts groups anew. None is overloaded until the next
 * load_recount of each slot, which also counts those with their own TTL.
 */
void
worker_mend(struct kvr *k)
{
	uint32_t i;

	dp_groups_empty(k);
	write_once(k->region->own_ttl, 0);
	for (i = 0; i < k->layout.slots; i++) {
		struct slot *s = slot_at(k, i);

		put_once(s->over_prefill, 0);
		put_once(s->over_blocks, 0);
		put_once(s->own_ttl, 0);
		mend_facts(k, i);
		if (!slot_in_use(k, i))
			continue;
		outside_sum(outside_at(k, s->name), s);
		dp_group_join(k, i, s->dp_group);
	}
}

/*
 * After a writer died in the middle of a change, and the rest was emptied. A
 * worker is a slot with an odd generation and a name that points back to it;
 * lists, buckets and counts are rebuilt from these.
 */
void
worker_recover(struct kvr *k)
{
	struct region *r = k->region;
	uint32_t i, number;

	for (i = 0; i < k->layout.name_buckets; i++)
		write_once(k->name_buckets[i], 0);
	dp_groups_empty(k);
	put_once(r->workers, 0);
	put_once(r->name_free, 0);
	put_once(r->slot_free, 0);
	write_once(r->slots_used, k->layout.slots);
	write_once(r->own_ttl, 0);
	for (i = 0; i < k->layout.slots; i++) {
		write_once(k->slots[i].dp_group, 0);
		put_once(k->slots[i].own_ttl, 0);
		mend_facts(k, i);
	}
	for (number = 1; number <= k->layout.names; number++) {
		struct name *n = name_at(k, number);
		struct slot *s = slot_at(k, n->slot);

		put_once(n->used, n->used == 1 && n->length > 0 &&
		    n->length <= KVR_NAME_MAX &&
		    slot_in_use(k, n->slot) && s->name == number);
		if (n->used)
			dp_group_join(
			    k, n->slot, dp_group_of(k, n->text, n->length));
		name_link(k, number);
		add_once(r->workers, n->used);
	}
}

/* The same of slots, when streams and capacities have been recovered. */
void
worker_settle(struct kvr *k)
{
	struct region *r = k->region;
	uint32_t i;

	for (i = k->layout.slots; i-- > 0;) {
		struct slot *s = slot_at(k, i);
		const struct name *n = name_at(k, s->name);

		put_once(s->retired, 0);
		if (slot_in_use(k, i) && n->used && n->slot == i) {
			retain_decide(k, i);
			load_recount(k, i);
			continue;
		}
		write_once(k->generations[i],
		    k->generations[i] + (k->generations[i] & 1));
		load_publish(k, i);
		write_once(s->name, r->slot_free);
		put_once(r->slot_free, i + 1);
	}
}
