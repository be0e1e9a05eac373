/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order.c - the order in which entries expire and are evicted.
 *
 * Each slot has two lists of entries, oldest first:
 *
 *   by_stamp    for expiry, and for eviction from a full region. Stamping a
 *               path appends its entries deepest first, so stamps ascend along
 *               the list, and of equal stamps the child precedes its parent:
 *               taking from the head never orphans anything. A pinned entry
 *               that reaches the head is taken off; it comes back when it is
 *               stamped, or goes when its last pin does. Unconfirmed entries
 *               are off from the beginning.
 *   by_release  for the capacity of a worker: idle entries, in the order in
 *               which they lost their last pin (or were stamped since). One
 *               that is pinned again keeps its place until it is stamped, and
 *               is passed over until then: a request may never be dispatched.
 *               For a cache that evicts by recency of use (LRU), in the order
 *               of their stamps: only an entry released after it was stamped,
 *               as when a dispatched request fails, has to search for its
 *               place, and only near the end.
 *
 * The slot that is due first wins a tournament over the times at which the
 * heads are due (stamp plus the worker's TTL): due_winner[1] is the final, the
 * match of leaf s is (leaves + s) / 2, and a changed head replays log2(slots)
 * matches. The slot stamped longest ago, which is evicted from when the region
 * is full, is the same one while all TTLs are equal. If they are not, it has to
 * be found in a second tournament (stamped, stamped_winner), which is played on
 * first use and kept up from then on.
 *
 *            due_winner[1]
 *             /         \
 *    due_winner[2]  due_winner[3]      leaves = 4
 *        /    \        /    \
 *       s0    s1     s2     s3         due[s]: INT64_MAX if s has none
 *
 * A retired slot's list by stamp is appended to the list of dead entries in one
 * step; its list by release is simply abandoned.
 */
#include "order.h"

#include "stack.h"
#include "tenant.h"

enum { PASSED_MAX = 64 }; /* in searching a place by last use */

/* Which of an entry's pairs of links a list uses. */
enum links { BY_STAMP, BY_RELEASE };

static uint32_t *
link_prev(const struct kvr *k, uint32_t entry, enum links by)
{
	struct entry *h = entry_at(k, entry);

	return by == BY_STAMP ? &h->stamp_prev : &h->release_prev;
}

static uint32_t *
link_next(const struct kvr *k, uint32_t entry, enum links by)
{
	struct entry *h = entry_at(k, entry);

	return by == BY_STAMP ? &h->stamp_next : &h->release_next;
}

/* older 0: at the head. */
static void
list_insert_after(struct kvr *k, struct list *l, uint32_t entry,
    uint32_t older, enum links by)
{
	uint32_t younger = older != 0 ? *link_next(k, older, by) : l->head;

	write_once(*link_prev(k, entry, by), older);
	write_once(*link_next(k, entry, by), younger);
	write_once(*(older != 0 ? link_next(k, older, by) : &l->head), entry);
	write_once(
	    *(younger != 0 ? link_prev(k, younger, by) : &l->tail), entry);
}

static void
list_remove(struct kvr *k, struct list *l, uint32_t entry, enum links by)
{
	uint32_t older = *link_prev(k, entry, by);
	uint32_t younger = *link_next(k, entry, by);

	write_once(*(older != 0 ? link_next(k, older, by) : &l->head), younger);
	write_once(
	    *(younger != 0 ? link_prev(k, younger, by) : &l->tail), older);
}

/* ------------------------------------------------------------ by stamp --- */

static struct list *
stamp_list(const struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);

	return s->retired != 0 ? &k->region->dead : &s->by_stamp;
}

/* Appends an entry as the youngest of its worker. */
void
order_append(struct kvr *k, uint32_t entry)
{
	struct entry *h = entry_at(k, entry);
	struct list *l = stamp_list(k, h->slot);

	list_insert_after(k, l, entry, l->tail, BY_STAMP);
	write_once(h->flags, h->flags | ENTRY_LISTED);
	tenant_append(k, entry);
}

/* Whether it is the oldest of its worker; then removing it changes the head. */
bool
order_heads(const struct kvr *k, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);

	return h->kind == CELL_ENTRY && (h->flags & ENTRY_LISTED) != 0 &&
	    h->stamp_prev == 0 && stamp_list(k, h->slot)->head == entry;
}

void
order_remove(struct kvr *k, uint32_t entry)
{
	struct entry *h = entry_at(k, entry);

	if ((h->flags & ENTRY_LISTED) == 0)
		return;
	list_remove(k, stamp_list(k, h->slot), entry, BY_STAMP);
	write_once(h->flags, h->flags & (uint8_t)~ENTRY_LISTED);
	tenant_remove(k, entry);
}

/* ---------------------------------------------------------- by release --- */

/* The idle entry last used before this one, which goes behind it. */
static uint32_t
order_used_before(const struct kvr *k, const struct slot *s, int64_t stamp)
{
	uint32_t entry = s->by_release.tail, passed = 0;

	while (s->eviction == KVR_EVICT_LEAF && entry != 0 &&
	    entry_at(k, entry)->stamp > stamp && passed++ < PASSED_MAX)
		entry = entry_at(k, entry)->release_prev;
	add_once(k->region->counts.steps, passed);
	return entry;
}

/* Blocks that it has while nothing pins it; those of an answer: see entry.c. */
static uint64_t
order_idle(const struct entry *h)
{
	return h->node == 0 ? h->trimmed : h->trimmed < h->blocks
	    ? h->blocks - h->trimmed : 0;
}

/*
 * Below: the entry of the same path released just before, or 0. A path is of
 * one age, however it is split.
 */
void
order_release(struct kvr *k, uint32_t entry, uint32_t below)
{
	struct entry *h = entry_at(k, entry);
	struct slot *s = slot_at(k, h->slot);
	uint64_t blocks = order_idle(h);
	uint32_t older;

	if (s->retired != 0)
		return;
	older = order_used_before(k, s, h->stamp);
	if (below != 0 && older == below) {
		write_once(h->released, entry_at(k, below)->released);
		stack_add(k, h->slot, h->released, blocks);
		write_once(s->clock, s->clock + blocks);
	} else {
		write_once(h->released, stack_push(k, h->slot, blocks));
	}
	list_insert_after(k, &s->by_release, entry, older, BY_RELEASE);
	write_once(h->flags, h->flags | ENTRY_IDLE);
}

/* Blocks of an entry, if they are idle and counted. */
static uint64_t
order_counted(const struct kvr *k, const struct entry *h)
{
	return (h->flags & ENTRY_IDLE) != 0 && h->pins == 0 &&
	    slot_at(k, h->slot)->retired == 0 ? order_idle(h) : 0;
}

void
order_uncount(struct kvr *k, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);
	uint64_t blocks = order_counted(k, h);

	if (blocks > 0)
		stack_add(k, h->slot, h->released, -blocks);
}

void
order_count(struct kvr *k, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);
	uint64_t blocks = order_counted(k, h);

	if (blocks > 0)
		stack_add(k, h->slot, h->released, blocks);
}

void
order_unrelease(struct kvr *k, uint32_t entry)
{
	struct entry *h = entry_at(k, entry);
	struct slot *s = slot_at(k, h->slot);

	if ((h->flags & ENTRY_IDLE) == 0)
		return;
	order_uncount(k, entry);
	if (s->retired == 0)
		list_remove(k, &s->by_release, entry, BY_RELEASE);
	write_once(h->flags, h->flags & (uint8_t)~ENTRY_IDLE);
}

/* Counts the blocks that are listed as idle, by epochs. */
static void
stack_recount(const struct kvr *k, uint32_t slot, uint64_t idle[EPOCHS])
{
	uint32_t i = slot_at(k, slot)->by_release.head;
	uint32_t limit = k->layout.cells;

	memset(idle, 0, EPOCHS * sizeof(idle[0]));
	for (; i != 0 && limit > 0; limit--) {
		const struct entry *h = entry_at(k, i);

		idle[stack_epoch(stack_at(k, slot), h->released)] +=
		    order_counted(k, h);
		i = h->release_next;
	}
}

bool
order_stack_sound(const struct kvr *k, uint32_t slot)
{
	const struct stack *s = stack_at(k, slot);
	uint64_t idle[EPOCHS];
	uint32_t i, n = read_once(s->n);

	if (n > EPOCHS)
		return false;
	stack_recount(k, slot, idle);
	for (i = 0; i < n; i++)
		if (s->idle[i] != idle[i] ||
		    (i > 0 && s->begin[i] < s->begin[i - 1]))
			return false;
	return n > 0 || idle[0] == 0;
}

void
order_stack_mend(struct kvr *k, uint32_t slot)
{
	struct stack *s = stack_at(k, slot);
	uint64_t idle[EPOCHS];

	if (order_stack_sound(k, slot))
		return;
	write_once(s->n, 1); /* of one age, until they are used again */
	write_once(s->begin[0], UINT64_C(0));
	stack_recount(k, slot, idle);
	write_once(s->idle[0], idle[0]);
}

/* Inserts an entry next to another of its worker, just younger. */
void
order_copy(struct kvr *k, uint32_t entry, uint32_t older)
{
	struct entry *h = entry_at(k, entry);
	const struct entry *o = entry_at(k, older);
	struct slot *s = slot_at(k, h->slot);

	if ((o->flags & ENTRY_LISTED) != 0) {
		list_insert_after(k, stamp_list(k, h->slot), entry, older,
		    BY_STAMP);
		write_once(h->flags, h->flags | ENTRY_LISTED);
		tenant_insert(k, entry, older);
	}
	if ((o->flags & ENTRY_IDLE) != 0 && s->retired == 0) {
		list_insert_after(k, &s->by_release, entry, older, BY_RELEASE);
		write_once(h->flags, h->flags | ENTRY_IDLE);
	}
}

/* ----------------------------------------------------- the tournaments --- */

static uint32_t
side_of(const struct kvr *k, const uint16_t *winner, uint32_t i)
{
	uint32_t leaves = k->layout.leaves;

	return (i >= leaves ? i - leaves : read_once(winner[i])) & (leaves - 1);
}

static void
replay_match(const struct kvr *k, const int64_t *when, uint16_t *winner,
    uint32_t match)
{
	uint32_t a = side_of(k, winner, 2 * match);
	uint32_t b = side_of(k, winner, 2 * match + 1);

	write_once(winner[match], (uint16_t)(when[a] <= when[b] ? a : b));
}

static void
enter_value(const struct kvr *k, int64_t *when, uint16_t *winner, uint32_t slot,
    int64_t value)
{
	uint32_t i;

	slot &= k->layout.leaves - 1;
	if (when[slot] == value)
		return;
	write_once(when[slot], value);
	for (i = (k->layout.leaves + slot) / 2; i > 0; i /= 2)
		replay_match(k, when, winner, i);
}

/* The stamp of the head of a slot's list by stamp; INT64_MAX: no head. */
int64_t
order_stamped(const struct kvr *k, uint32_t slot)
{
	uint32_t head = slot_at(k, slot)->by_stamp.head;

	return head == 0 ? INT64_MAX : entry_at(k, head)->stamp;
}

/* When that head is due. */
int64_t
order_due(const struct kvr *k, uint32_t slot)
{
	int64_t stamp = order_stamped(k, slot), ttl = slot_at(k, slot)->ttl;

	if (stamp == INT64_MAX)
		return INT64_MAX;
	if ((uint64_t)ttl > TTL_NEVER || /* damaged */
	    stamp >= INT64_MAX - 1 - ttl)
		return INT64_MAX - 1;
	return stamp + ttl;
}

/* Updates the tournaments after the head or the TTL of a slot has changed. */
void
order_settle(struct kvr *k, uint32_t slot)
{
	struct region *r = k->region;

	enter_value(k, k->due, k->due_winner, slot, order_due(k, slot));
	put_once(r->stamped_kept, r->stamped_kept != 0 && r->own_ttl != 0);
	if (r->stamped_kept != 0)
		enter_value(k, k->stamped, k->stamped_winner, slot,
		    order_stamped(k, slot));
}

/* The slot that is due first; its time is INT64_MAX if none is ever due. */
uint32_t
order_due_slot(const struct kvr *k)
{
	return side_of(k, k->due_winner, 1);
}

/* The slot with the oldest stamp; it may have none. */
uint32_t
order_stamped_slot(struct kvr *k)
{
	struct region *r = k->region;
	uint32_t i;

	if (r->own_ttl == 0)
		return order_due_slot(k);
	if (r->stamped_kept == 0) {
		for (i = 0; i < k->layout.leaves; i++)
			put_once(k->stamped[i], i < k->layout.slots
			    ? order_stamped(k, i) : INT64_MAX);
		for (i = k->layout.leaves; --i > 0;)
			replay_match(k, k->stamped, k->stamped_winner, i);
		put_once(r->stamped_kept, 1);
	}
	return side_of(k, k->stamped_winner, 1);
}

/* Retires a slot: its entries join the dead. */
void
order_retire(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);
	struct list *dead = &k->region->dead;

	if (s->by_stamp.head != 0) {
		write_once(
		    *link_prev(k, s->by_stamp.head, BY_STAMP), dead->tail);
		write_once(
		    *(dead->tail != 0 ? link_next(k, dead->tail, BY_STAMP)
				      : &dead->head),
		    s->by_stamp.head);
		put_once(dead->tail, s->by_stamp.tail);
	}
	write_once_zeros(&s->by_stamp, sizeof(s->by_stamp));
	write_once_zeros(&s->by_release, sizeof(s->by_release));
	put_once(s->retired, 1);
	order_settle(k, slot);
}
