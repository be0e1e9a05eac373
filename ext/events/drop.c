/* SPDX-License-Identifier: BSD-2-Clause */
/* drop.c - see drop.h. */
#include "drop.h"

/*
 * An engine may have several groups of full attention, as with a draft model,
 * and announces each block once for each. The first one that is announced
 * counts, or blocks would count twice. One whose blocks have another size than
 * the worker's does not: nothing of it could be used.
 */
static void
learn(struct drop *d, const struct event *e, uint32_t block_size)
{
	const bool full = e->attention == EVENT_FULL;

	if (!(e->flags & EVENT_HAS_GROUP) ||
	    e->attention == EVENT_ATTENTION_NONE)
		return;
	if (e->group == 0)
		d->other = !full;
	if (full && block_size != 0 && e->block_size != 0 &&
	    e->block_size != block_size)
		return;
	if (full && !d->known)
		d->full = e->group;
	d->known = full || (d->known && d->full != e->group);
}

/* The events themselves are dropped. A state of Mamba is a window of 1. */
static void
learn_sliding(struct drop *d, const struct event *e)
{
	const uint64_t window = e->attention == EVENT_STATE ? 1 :
	    e->attention == EVENT_SLIDING ? e->window : 0;

	if (window > d->sliding)
		d->sliding = window;
}

/* Removals have a group, but do not describe it. */
static bool
group_counts(const struct drop *d, const struct event *e)
{
	if (e->attention > EVENT_FULL)
		return false;
	if (!(e->flags & EVENT_HAS_GROUP))
		return true;
	return d->known ? e->group == d->full : e->group == 0 && !d->other;
}

/*
 * Windows of events matter where no group has more. A small window that comes
 * before any larger one, to a subscriber that missed the announcement, counts:
 * that subscriber has lost events anyway.
 */
static bool
window_counts(struct drop *d, const struct decode_options *options,
    const struct event *e)
{
	if (e->window == 0 || e->attention != EVENT_ATTENTION_NONE)
		return true;
	d->begun = true;
	if (options->window != 0)
		return e->window == options->window;
	if (!d->announced && e->window > d->window)
		d->window = e->window;
	return e->window == d->window;
}

void
drop_announce(struct drop *d, uint64_t window)
{
	const uint64_t largest = window > d->window ? window : d->window;
	const uint64_t other = window > d->window ? d->window : window;

	if (d->begun)
		return;
	if (other < largest && other > d->sliding)
		d->sliding = other;
	d->window = largest;
	d->announced = true;
}

static bool
tier_counts(const struct event *e)
{
	return e->tier != EVENT_SHARED && e->tier != EVENT_TIER_UNKNOWN;
}

enum drop_reason
drop_judge(struct drop *d, const struct decode_options *options,
    const struct event *e)
{
	const uint32_t told = options->block_size;
	enum drop_reason reason = DROP_NONE;

	if (e->kind != EVENT_STORED && e->kind != EVENT_REMOVED &&
	    e->kind != EVENT_MOVED)
		return DROP_NONE;
	learn(d, e, told);
	learn_sliding(d, e);
	if (!window_counts(d, options, e) || !group_counts(d, e))
		reason = DROP_GROUP;
	else if (!tier_counts(e))
		reason = DROP_TIER;
	if (reason != DROP_NONE)
		return options->all_groups ? DROP_NONE : reason;
	if (e->kind != EVENT_STORED || e->block_size == 0)
		return DROP_NONE;
	if (d->block_size == 0)
		d->block_size = told != 0 ? told : e->block_size;
	return e->block_size == d->block_size ? DROP_NONE : DROP_BLOCK_SIZE;
}
