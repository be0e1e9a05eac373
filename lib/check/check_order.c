/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_order.c - the part of check.c that walks the lists of entries.
 */
#include "check_in.h"
#include "cover.h"
#include "order.h"

/* ------------------------------------------------------------ anonymous --- */

static bool
check_anonymous_entry(struct sums *s, uint32_t i)
{
	const struct kvr *k = s->k;
	const struct entry *h = entry_at(k, i);

	if (!claim(s, i, SEEN_ENTRY) || h->slot >= k->layout.slots ||
	    h->pins != 0 || h->trimmed == 0 ||
	    (h->flags & ~ENTRY_UNCONFIRMED) != (ENTRY_LISTED | ENTRY_IDLE))
		return false;
	if (!check_confirmed(h))
		s->inexact = true;
	slot_sum(s, h->slot)->entries++;
	slot_sum(s, h->slot)->anonymous += h->trimmed;
	s->listed[1]++;
	if (slot_at(k, h->slot)->retired == 0) {
		s->listed[0]++;
		s->counts.entries++;
	}
	return true;
}

static bool
check_anonymous_in(struct sums *s, struct list l, uint32_t slot)
{
	uint32_t i, limit = s->k->layout.cells;

	for (i = l.head; i != 0; i = entry_at(s->k, i)->stamp_next) {
		const struct entry *h = entry_at(s->k, i);

		if (limit-- == 0 || h->kind != CELL_ENTRY ||
		    (slot < s->k->layout.slots && h->slot != slot) ||
		    (h->node == 0 && !check_anonymous_entry(s, i)))
			return false;
	}
	return true;
}

bool
check_anonymous(struct sums *s)
{
	uint32_t i;

	if (!check_anonymous_in(s, s->k->region->dead, UINT32_MAX))
		return false;
	for (i = 0; i < s->k->layout.slots; i++)
		if (!check_anonymous_in(s, slot_at(s->k, i)->by_stamp, i))
			return false;
	return true;
}

/* --------------------------------------------------------------- order --- */

/* Links both ways, flags and slot; along a list by stamp, stamps ascend. */
static bool
check_list(struct sums *s, struct list l, uint32_t slot, bool by_stamp)
{
	const struct kvr *k = s->k;
	uint32_t i, prev = 0, limit = k->layout.cells;
	int64_t stamp = STAMP_NONE;

	for (i = l.head; i != 0; limit--) {
		const struct entry *h = entry_at(k, i);

		if (limit == 0 || i >= k->layout.cells ||
		    seen_as(s, i) != SEEN_ENTRY)
			return false;
		if ((by_stamp ? h->stamp_prev : h->release_prev) != prev ||
		    (h->flags & (by_stamp ? ENTRY_LISTED : ENTRY_IDLE)) == 0)
			return false;
		if (slot < k->layout.slots && (h->slot != slot ||
		    (by_stamp && h->stamp < stamp)))
			return false;
		s->listed[by_stamp]--;
		stamp = h->stamp;
		prev = i;
		i = by_stamp ? h->stamp_next : h->release_next;
	}
	return l.tail == prev;
}

uint32_t
check_entry_above(const struct kvr *k, const struct entry *h)
{
	uint32_t node = h->node, left = h->blocks, limit = LINE_MAX;

	for (; node != 0 && left > 0 && limit > 0; limit--) {
		left -= node_at(k, node)->length;
		node = node_at(k, node)->parent;
	}
	return node != 0 ? cover_find(k, node, h->slot) : 0;
}

/* Walks backwards, so every parent must be passed before its children. */
static bool
check_children_first(struct sums *s, struct list l, bool by_stamp)
{
	const struct kvr *k = s->k;
	uint32_t i, limit = k->layout.cells;
	uint8_t flag = by_stamp ? ENTRY_LISTED : ENTRY_IDLE;
	bool good = true;

	/* else a list that was good changes meanwhile: GCOVR_EXCL_BR_START */
	for (i = l.tail; i != 0 && i < k->layout.cells && limit > 0; limit--) {
		/* GCOVR_EXCL_BR_STOP */
		const struct entry *h = entry_at(k, i);
		uint32_t above = check_entry_above(k, h);

		if (above != 0 && (entry_at(k, above)->flags & flag) != 0 &&
		    seen_as(s, above) == SEEN_ENTRY)
			good = false;
		s->seen[i] = SEEN_FREE; /* passed */
		i = by_stamp ? h->stamp_prev : h->release_prev;
	}
	limit = k->layout.cells;
	/* GCOVR_EXCL_BR_START */
	for (i = l.head; i != 0 && i < k->layout.cells && limit > 0; limit--) {
		/* GCOVR_EXCL_BR_STOP */
		s->seen[i] = SEEN_ENTRY;
		i = by_stamp ? entry_at(k, i)->stamp_next
		    : entry_at(k, i)->release_next;
	}
	return good;
}

static bool
check_one_order(struct sums *s, struct list l, uint32_t slot, bool by_stamp)
{
	return check_list(s, l, slot, by_stamp) &&
	    check_children_first(s, l, by_stamp);
}

/* Every match was won by the older of its two sides. */
static bool
check_matches(const struct kvr *k, const int64_t *when,
    const uint16_t *winners)
{
	uint32_t i, leaves = k->layout.leaves;

	for (i = 1; i < leaves; i++) {
		uint32_t l = 2 * i, r = l + 1, winner = winners[i];

		l = l >= leaves ? l - leaves : winners[l];
		r = r >= leaves ? r - leaves : winners[r];
		if (l >= leaves || r >= leaves ||
		    (winner != l && winner != r) ||
		    when[winner] > when[l] || when[winner] > when[r])
			return false;
	}
	return true;
}

static bool
check_stamped(const struct kvr *k)
{
	uint32_t i;

	if (k->region->stamped_kept == 0)
		return true;
	for (i = 0; i < k->layout.leaves; i++)
		if (k->stamped[i] != (i < k->layout.slots
		    ? order_stamped(k, i) : INT64_MAX))
			return false;
	return check_matches(k, k->stamped, k->stamped_winner);
}

bool
check_order(struct sums *s)
{
	const struct kvr *k = s->k;
	uint32_t i;

	if (!check_one_order(s, k->region->dead, UINT32_MAX, true))
		return false;
	for (i = 0; i < k->layout.slots; i++) {
		const struct slot *p = slot_at(k, i);
		if (!check_one_order(s, p->by_stamp, i, true) ||
		    !check_one_order(s, p->by_release, i, false) ||
		    k->due[i] != order_due(k, i))
			return false;
	}
	for (; i < k->layout.leaves; i++)
		if (k->due[i] != INT64_MAX)
			return false;
	return s->listed[0] == 0 && s->listed[1] == 0 &&
	    check_matches(k, k->due, k->due_winner) && check_stamped(k);
}
