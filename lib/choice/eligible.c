/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eligible.c - which workers may be chosen.
 *
 *   request   open: all slots, or the allowed ones; less those excluded;
 *             the pinned one alone, if one is pinned
 *      |
 *   worker    take: of the open ones those in use, of the right role, up,
 *             with the required taints, not overloaded
 *
 * Both are bitmaps, so a long list of allowed workers is read once, and not
 * once per worker.
 */
#include "eligible.h"

#include "set.h"
#include "worker.h"

static void
open_all(struct question *q, uint32_t slots)
{
	memset(q->open, 0xff, q->words * sizeof(q->open[0]));
	if (slots % 64 != 0)
		q->open[q->words - 1] = (UINT64_C(1) << slots % 64) - 1;
}

/* Ignores ids that are no longer valid. */
static void
open_allowed(struct question *q)
{
	uint32_t slot;
	size_t i;

	memset(q->open, 0, q->words * sizeof(q->open[0]));
	for (i = 0; i < q->p->n_allowed; i++)
		if (worker_slot(q->k, q->p->allowed[i], &slot) &&
		    slot / 64 < q->words)
			set_add(q->open, slot);
}

static void
close_excluded(struct question *q)
{
	uint32_t i, slot;

	for (i = 0; i < q->request.n_excluded; i++)
		if (worker_slot(q->k, q->request.excluded[i], &slot) &&
		    slot / 64 < q->words)
			set_remove(q->open, slot);
}

static int
open_pinned(struct question *q)
{
	bool open;

	if (!worker_slot(q->k, q->request.pinned, &q->pinned) ||
	    q->pinned / 64 >= q->words)
		return KVR_EWORKER;
	open = set_has(q->open, q->pinned);
	memset(q->open, 0, q->words * sizeof(q->open[0]));
	if (open)
		set_add(q->open, q->pinned);
	return KVR_OK;
}

/* A role has the number of its stage; BOTH has that of no stage. */
_Static_assert(KVR_ROLE_BOTH == 0 &&
    (int)KVR_ROLE_PREFILL == (int)KVR_STAGE_PREFILL &&
    (int)KVR_ROLE_DECODE == (int)KVR_STAGE_DECODE, "roles are stages");

/* The bits of a gate that normally exclude a worker. */
static uint32_t
gate_closed(const struct question *q)
{
	return (GATE_ROLE & ~q->request.stage) | GATE_STATE | GATE_OVERLOADED;
}

enum kvr_verdict
eligible_verdict(const struct question *q, uint32_t slot)
{
	const struct kvr_request *r = &q->request;
	uint32_t gate = read_once(q->k->loads.gate[slot]);
	uint32_t state = (gate & GATE_STATE) / (GATE_STATE & -GATE_STATE);

	if (!set_has(q->open, slot))
		return KVR_NOT_ALLOWED;
	if ((gate & GATE_ROLE & ~r->stage) != 0)
		return KVR_WRONG_ROLE;
	if (state != KVR_STATE_UP &&
	    (state != KVR_STATE_DRAINING || r->pinned == 0))
		return KVR_NOT_UP;
	if ((read_once(q->k->slots[slot].taints) & r->required_taints) !=
	    r->required_taints)
		return KVR_LACKS_TAINT;
	if (worker_overloaded(q->k, slot))
		return KVR_OVERLOADED;
	return KVR_ELIGIBLE;
}

/* The union of the gates of the first `n` workers of a word. */
static uint32_t
gates_any(const struct question *q, uint32_t word, uint32_t n)
{
	const uint32_t *gate = &q->k->loads.gate[word * 64];
	const any_word *two = (const any_word *)(const void *)gate;
	uint64_t any = n % 2 != 0 ? read_once(gate[n - 1]) : 0;
	uint32_t i;

	for (i = 0; i < n / 2; i++)
		any |= read_once(two[i]);
	return (uint32_t)(any | any >> 32);
}

/* Checks workers one by one: a gate may be closed, or taints are required. */
static uint64_t
filter_singly(struct question *q, uint32_t word, uint64_t left)
{
	const uint32_t *gate = &q->k->loads.gate[word * 64];
	uint32_t closed = gate_closed(q) | GATE_FREE;
	uint64_t found = 0;

	for (; left != 0; left &= left - 1) {
		uint32_t bit = (uint32_t)__builtin_ctzll(left);
		uint32_t g = read_once(gate[bit]) & closed;
		enum kvr_verdict v;

		if ((g & GATE_FREE) != 0)
			continue;
		v = g == 0 && q->request.required_taints == 0
		    ? KVR_ELIGIBLE : eligible_verdict(q, word * 64 + bit);
		found |= (uint64_t)(v == KVR_ELIGIBLE) << bit;
		q->overloaded += v == KVR_OVERLOADED;
	}
	return found;
}

/* Nearly always none of 64 workers needs a check of its own. */
static uint64_t
filter_word(struct question *q, uint32_t word)
{
	uint32_t n = q->slots - word * 64 < 64 ? q->slots - word * 64 : 64;
	uint32_t any = gates_any(q, word, n);
	const uint32_t usual = GATE_WEIGHTED | GATE_UNSURE | GATE_WINDOW;

	q->weighted |= (any & GATE_WEIGHTED) != 0;
	q->unsure |= (any & GATE_UNSURE) != 0;
	if ((any & ~usual) == 0 && q->request.required_taints == 0)
		return q->open[word];
	return filter_singly(q, word, q->open[word]);
}

static void
filter_workers(struct question *q)
{
	struct set_walk w = set_walk(q->take, q->words);
	uint32_t i, slot;
	double prefill;

	q->eligible = q->overloaded = 0;
	q->weighted = q->unsure = false;
	for (i = 0; i < q->words; i++) {
		q->take[i] = filter_word(q, i);
		q->eligible += (uint32_t)__builtin_popcountll(q->take[i]);
	}
	q->least_prefill = 2 * COST_MAX;
	if (!(q->decay > 0))
		return;
	while (set_next(&w, &slot)) {
		prefill = read_once_double(&q->k->loads.prefill[slot]);
		if (prefill < q->least_prefill)
			q->least_prefill = prefill;
	}
}

/*
 * Fills open, take, eligible, overloaded, least_prefill and pinned; the other
 * fields of the question are set. KVR_EWORKER if the pinned worker does not
 * exist.
 */
int
eligible_find(struct question *q, uint32_t slots)
{
	int error = KVR_OK;

	q->pinned = 0;
	q->slots = slots;
	q->words = (slots + 63) / 64;
	if (q->p->n_allowed == 0)
		open_all(q, slots);
	else
		open_allowed(q);
	close_excluded(q);
	if (q->request.pinned != 0)
		error = open_pinned(q);
	if (error == KVR_OK)
		filter_workers(q);
	return error;
}

/* The error for an empty set. */
int
eligible_none(const struct question *q)
{
	if (q->request.pinned != 0)
		return q->overloaded != 0 ? KVR_EPINNEDOVERLOADED
					  : KVR_ENOTALLOWED;
	return q->overloaded != 0 ? KVR_EALLOVERLOADED : KVR_ENOWORKER;
}
