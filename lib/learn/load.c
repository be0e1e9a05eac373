/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load.c - the figures of a worker that choices read: its load, and whether it
 * may be chosen.
 *
 * A slot has more than a choice needs, and choices look at all workers. So the
 * numbers that they need are copied to the loads, an array for each.
 */
#include "load.h"

#include "name.h"
#include "rate.h"
#include "trust.h"
#include "window_mode.h"

/* See enum gate. */
static uint32_t
gate_of(const struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);

	if (!slot_in_use(k, slot))
		return GATE_FREE;
	return (s->role & 15u) | (s->state & 15u) << 4 |
	    (slot_overloaded(s) ? GATE_OVERLOADED : 0u) |
	    (s->mode != KVR_RETAIN_TTL || window_on(k, slot)
	    ? GATE_UNSURE : 0u) |
	    (window_on(k, slot) ? GATE_WINDOW : 0u) |
	    (s->weight != 1 ? GATE_WEIGHTED : 0u);
}

/* Matches read each worker's TTL only if some differ from the region's. */
static void
publish_ttl(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);
	uint8_t own_ttl = slot_in_use(k, slot) && s->ttl != region_ttl(k);

	write_once(k->loads.ttl[slot], s->ttl);
	write_once(
	    k->region->own_ttl, k->region->own_ttl + own_ttl - s->own_ttl);
	put_once(s->own_ttl, own_ttl);
}

void
load_publish(struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);

	publish_ttl(k, slot);
	rate_publish(k, slot);
	write_once(
	    k->loads.id[slot], slot_in_use(k, slot) ? worker_id(k, slot) : 0);
	write_once(k->loads.gate[slot], gate_of(k, slot));
	write_once_double(&k->loads.prefill[slot], (double)s->prefill);
	write_once_double(
	    &k->loads.booked[slot], (double)(s->prefill - s->silent));
	write_once_double(&k->loads.blocks[slot], (double)s->blocks);
	write_once(k->loads.requests[slot], s->requests);
	write_once_double(&k->loads.reading[slot], (double)s->reading +
	    (double)s->load_blocks * hash_block_tokens(&k->rule));
}

/*
 * The overload thresholds of the policy, as in the reference. Prefill tokens
 * are compared as they are. over_blocks is set when the slot's own number of
 * blocks or the reported one is above the threshold, and cleared only when both
 * are below.
 */
static void
check_thresholds(struct kvr *k, uint32_t slot)
{
	const struct kvr_policy *p = &k->region->policy;
	struct slot *s = slot_at(k, slot);
	double prefill = (double)s->prefill, used = (double)s->load_used;
	double own = (double)s->blocks * trust_ratio(k, slot), threshold;

	put_once(s->over_prefill, p->overload_prefill_tokens >= 0 &&
	    prefill > p->overload_prefill_tokens);
	if (p->overload_prefill_fraction >= 0 && s->max_batched > 0) {
		threshold =
		    p->overload_prefill_fraction * (double)s->max_batched;
		if (threshold < 0x1p63 && s->prefill > (uint64_t)threshold)
			put_once(s->over_prefill, 1);
	}
	threshold = p->overload_blocks_fraction * ((double)s->capacity /
	    hash_block_tokens(&k->rule));
	if (p->overload_blocks_fraction < 0 || s->capacity == 0)
		put_once(s->over_blocks, 0);
	else if (own > threshold || used > threshold)
		put_once(s->over_blocks, 1);
	else if (own < threshold && used < threshold)
		put_once(s->over_blocks, 0);
}

void
load_recount(struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);
	bool before = slot_relieves(s);

	if (slot >= k->layout.slots)
		return;
	check_thresholds(k, slot);
	dp_group_recount(k, s, before);
	load_publish(k, slot);
}
