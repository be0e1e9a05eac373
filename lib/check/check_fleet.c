/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_fleet.c - the invariants of workers: names, slots, data-parallel
 * groups, copies of their loads for choices, and modes of retention. Another
 * part of check.c.
 */
#include "check_in.h"
#include "name.h"
#include "order.h"
#include "window_mode.h"
#include "worker.h"

/* --------------------------------------------------------------- names --- */

static bool
check_name(const struct kvr *k, uint32_t number)
{
	const struct name *n = &k->names[number - 1];
	uint32_t slot;

	return n->length > 0 && n->length <= KVR_NAME_MAX &&
	    slot_in_use(k, n->slot) && slot_at(k, n->slot)->name == number &&
	    name_find(k, n->text, n->length, slot_at(k, n->slot)->rank,
	    &slot) && slot == n->slot;
}

/* The list of free slots has all used ones not in use or retired. */
static bool
check_free_slots(const struct kvr *k)
{
	uint32_t i, free = 0, used = 0, limit = k->layout.slots;

	for (i = k->region->slot_free; i != 0; i = slot_at(k, i - 1)->name) {
		if (limit-- == 0 || i > k->region->slots_used ||
		    slot_in_use(k, i - 1) || slot_at(k, i - 1)->retired != 0)
			return false;
		free++;
	}
	for (i = 0; i < k->layout.slots; i++)
		used += slot_in_use(k, i) || slot_at(k, i)->retired != 0;
	return used + free == k->region->slots_used;
}

bool
check_names(const struct kvr *k)
{
	uint32_t i, used = 0, limit = k->layout.names;

	for (i = 1; i <= k->layout.names; i++) {
		if (k->names[i - 1].used == 0)
			continue;
		if (!check_name(k, i))
			return false;
		used++;
	}
	for (i = k->region->name_free; i != 0; i = k->names[i - 1].next) {
		if (i > k->layout.names || limit-- == 0 ||
		    k->names[i - 1].used != 0)
			return false;
		used++;
	}
	return used == k->layout.names && check_free_slots(k);
}

/* The external load of a slot is the sum of all sources. */
static bool
check_outside(const struct kvr *k, const struct slot *p)
{
	const struct outside *o = outside_at(k, p->name);
	uint64_t prefill = 0, blocks = 0, used = 0;
	uint32_t requests = 0, i;

	for (i = 0; i < KVR_LOAD_SOURCES; i++) {
		if (!outside_sound(o, i))
			return false;
		prefill += o->source[i].prefill;
		blocks += o->source[i].blocks;
		requests += (uint32_t)o->source[i].requests;
		used = used > o->source[i].used ? used : o->source[i].used;
	}
	return p->load_prefill == prefill && p->load_blocks == blocks &&
	    p->load_requests == requests && p->load_used == used;
}

/* The figures of a slot that choices read equal those in the slot. */
static bool
check_load(const struct kvr *k, uint32_t slot)
{
	const struct slot *p = slot_at(k, slot);
	const struct loads *l = &k->loads;
	bool overloaded = p->over_prefill != 0 || p->over_blocks != 0;

	return p->role <= KVR_ROLE_DECODE && p->state <= KVR_STATE_DOWN &&
	    l->prefill[slot] == (double)p->prefill &&
	    l->blocks[slot] == (double)p->blocks &&
	    l->requests[slot] == p->requests &&
	    l->gate[slot] ==
	    ((p->role & 15u) | (p->state & 15u) << 4 |
		(overloaded ? GATE_OVERLOADED : 0u) |
		(p->weight != 1 ? GATE_WEIGHTED : 0u) |
		(p->mode != KVR_RETAIN_TTL || window_on(k, slot)
		    ? GATE_UNSURE : 0u) |
		(window_on(k, slot) ? GATE_WINDOW : 0u)) &&
	    window_sane(k, slot) &&
	    l->ttl[slot] == p->ttl &&
	    l->booked[slot] == (double)(p->prefill - p->silent) &&
	    l->reading[slot] == (double)p->reading +
		(double)p->load_blocks * hash_block_tokens(&k->rule) &&
	    p->own_ttl == (p->ttl != region_ttl(k));
}

/* Each worker is in a group of ranks; a slot without a worker is in none. */
bool
check_groups_of_ranks(const struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.slots; i++) {
		uint32_t dp_group = slot_at(k, i)->dp_group;

		if (slot_in_use(k, i) != (dp_group != 0) ||
		    dp_group > k->layout.names)
			return false;
	}
	return true;
}

/* A group has the number of its ranks, and of those not overloaded. */
static bool
check_dp_groups(const struct kvr *k, struct dp_group *counted)
{
	uint32_t i, dp_group = k->layout.names, own_ttl = 0;

	for (i = 0; i < k->layout.slots; i++) {
		const struct slot *p = slot_at(k, i);

		if (k->loads.id[i] != (slot_in_use(k, i) ? worker_id(k, i) : 0)
		    || (p->dp_group == 0 && k->loads.gate[i] != GATE_FREE))
			return false;
		own_ttl += p->own_ttl;
		if (p->dp_group == 0)
			continue;
		if (!check_load(k, i) || !check_outside(k, p) ||
		    !order_stack_sound(k, i))
			return false;
		counted[p->dp_group - 1].ranks++;
		counted[p->dp_group - 1].not_overloaded +=
		    slot_relieves(p);
	}
	for (i = 0; i < dp_group; i++)
		if (k->dp_groups[i].ranks != counted[i].ranks ||
		    k->dp_groups[i].not_overloaded != counted[i].not_overloaded)
			return false;
	return own_ttl == k->region->own_ttl;
}

bool
check_fleet(const struct kvr *k, struct dp_group *counted)
{
	return check_dp_groups(k, counted);
}
