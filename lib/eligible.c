/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eligible.c - who may be taken at all.
 *
 *   request   open: all slots, or the allowed ones; less those excluded;
 *             the pinned one alone, if one is pinned
 *      |
 *   worker    take: of the open ones those in use, of the right role, up,
 *             with the required taints, not overloaded
 *
 * Both are sets of bits: so a long list of allowed workers is read once, and
 * not once for each worker.
 */
#include "internal.h"

#include "set.h"

#include <stddef.h>

static void
open_all(struct route *t, uint32_t slots)
{
	memset(t->open, 0xff, t->words * sizeof(t->open[0]));
	if (slots % 64 != 0)
		t->open[t->words - 1] = (UINT64_C(1) << slots % 64) - 1;
}

/* Ids that are no longer valid are of nobody. */
static void
open_allowed(struct route *t)
{
	uint32_t slot;
	size_t i;

	memset(t->open, 0, t->words * sizeof(t->open[0]));
	for (i = 0; i < t->p->n_allowed; i++)
		if (worker_slot(t->k, t->p->allowed[i], &slot) &&
		    slot / 64 < t->words)
			set_add(t->open, slot);
}

static void
close_excluded(struct route *t)
{
	uint32_t i, slot;

	for (i = 0; i < t->r->n_excluded; i++)
		if (worker_slot(t->k, t->r->excluded[i], &slot) &&
		    slot / 64 < t->words)
			set_remove(t->open, slot);
}

static int
open_pinned(struct route *t)
{
	bool open;

	if (!worker_slot(t->k, t->r->pinned, &t->pinned) ||
	    t->pinned / 64 >= t->words)
		return KVR_EWORKER;
	open = set_has(t->open, t->pinned);
	memset(t->open, 0, t->words * sizeof(t->open[0]));
	if (open)
		set_add(t->open, t->pinned);
	return KVR_OK;
}

/* A role has the number of the stage it is for; BOTH has that of none. */
_Static_assert(KVR_ROLE_BOTH == 0 &&
    (int)KVR_ROLE_PREFILL == (int)KVR_STAGE_PREFILL &&
    (int)KVR_ROLE_DECODE == (int)KVR_STAGE_DECODE, "roles are stages");
_Static_assert(offsetof(struct slot, latch) == offsetof(struct slot, role) + 3,
    "role, state, busy, latch are four bytes");

/* A mask for those four bytes: what it leaves of a usual worker is 0. */
static uint32_t
usual_mask(uint32_t stage)
{
	const unsigned char four[4] = { (unsigned char)~stage, 0xff, 0xff,
	    0xff };
	uint32_t mask;

	memcpy(&mask, four, sizeof(mask));
	return mask;
}

/* Of a role for this stage, up, not busy. */
static inline bool
is_usual(const struct slot *s, uint32_t mask)
{
	uint32_t four;

	memcpy(&four, (const char *)s + offsetof(struct slot, role),
	    sizeof(four));
	return (four & mask) == 0;
}

enum kvr_verdict
eligible_verdict(const struct route *t, uint32_t slot)
{
	const struct slot *s = &t->k->slots[slot];
	const struct kvr_request *r = t->r;

	if (!set_has(t->open, slot))
		return KVR_NOT_ALLOWED;
	if ((s->role & ~r->stage) != 0)
		return KVR_WRONG_ROLE;
	if (s->state != KVR_STATE_UP &&
	    (s->state != KVR_STATE_DRAINING || r->pinned == 0))
		return KVR_NOT_UP;
	if ((s->taints & r->required_taints) != r->required_taints)
		return KVR_LACKS_TAINT;
	if (worker_overloaded(t->k, slot))
		return KVR_OVERLOADED;
	return KVR_ELIGIBLE;
}

/* Nearly all workers are usual: one comparison. Others are judged singly. */
static uint64_t
sift_word(struct route *t, uint32_t word, uint32_t mask)
{
	const struct slot *slots = t->k->slots;
	uint64_t left, found = 0, need = t->r->required_taints;

	for (left = t->open[word]; left != 0; left &= left - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(left);
		uint32_t slot = word * 64 + bit;
		uint64_t good = t->k->generations[slot] & 1;
		enum kvr_verdict v;

		if (is_usual(&slots[slot], mask)) {
			good &= (need & ~slots[slot].taints) == 0;
		} else if (good != 0) {
			v = eligible_verdict(t, slot);
			good = v == KVR_ELIGIBLE;
			t->overloaded += v == KVR_OVERLOADED;
		}
		found |= good << bit;
	}
	return found;
}

static void
sift(struct route *t)
{
	struct set_walk w = set_walk(t->take, t->words);
	uint32_t i, slot, mask = usual_mask(t->r->stage);

	t->eligible = t->overloaded = 0;
	for (i = 0; i < t->words; i++) {
		t->take[i] = sift_word(t, i, mask);
		t->eligible += (uint32_t)__builtin_popcountll(t->take[i]);
	}
	t->least_prefill = UINT64_MAX;
	if (!(t->decay > 0))
		return;
	while (set_next(&w, &slot))
		if (t->k->slots[slot].prefill < t->least_prefill)
			t->least_prefill = t->k->slots[slot].prefill;
}

/*
 * Fills open, take, eligible, overloaded, least_prefill and pinned of a route
 * whose other parts stand. KVR_EWORKER if the pinned worker does not exist.
 */
int
eligible_find(struct route *t, uint32_t slots)
{
	int error = KVR_OK;

	t->pinned = 0;
	t->words = (slots + 63) / 64;
	if (t->p->n_allowed == 0)
		open_all(t, slots);
	else
		open_allowed(t);
	close_excluded(t);
	if (t->r->pinned != 0)
		error = open_pinned(t);
	if (error == KVR_OK)
		sift(t);
	return error;
}

/* The error that says why take is empty. */
int
eligible_none(const struct route *t)
{
	if (t->r->pinned != 0)
		return t->overloaded != 0 ? KVR_EPINNEDBUSY : KVR_ENOTALLOWED;
	return t->overloaded != 0 ? KVR_EALLBUSY : KVR_ENOWORKER;
}
