/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_order.c - both lists of every slot against plain arrays, and the
 * tournaments against a scan of all slots.
 *
 * The entries are bare cells with a slot and a stamp: order.c reads nothing
 * else of them.
 */
#include "order.h"

#include "inner.h"

enum { SLOTS = 64, HOLDS = 200 };

/* The expected content of a list, oldest first. */
struct row {
	uint32_t entry[HOLDS];
	uint32_t n;
};
static struct row by_stamp[SLOTS], by_release[SLOTS], dead;
static uint32_t slots;
static int64_t now;

/* Slots of this many workers, all in use, all lists empty. */
static void
begin(uint32_t workers)
{
	struct kvr_options o = small_options();
	uint32_t i;

	o.max_workers = workers;
	region_of(&o);
	slots = k->layout.slots;
	must(slots <= SLOTS);
	memset(by_stamp, 0, sizeof(by_stamp));
	memset(by_release, 0, sizeof(by_release));
	memset(&dead, 0, sizeof(dead));
	now = 0;
	for (i = 0; i < slots; i++) /* free slots have none */
		k->slots[i].ttl = region_ttl(k);
}

/* Bare entries are no index: the region is not checked. */
static void
end(void)
{
	kvr_prompt_free(p);
	kvr_free(k);
}

/* ---------------------------------------------------------------- rows --- */

static uint32_t
row_find(const struct row *r, uint32_t entry)
{
	uint32_t i;

	for (i = 0; i < r->n && r->entry[i] != entry; i++)
		continue;
	return i;
}

static void
row_insert(struct row *r, uint32_t at, uint32_t entry)
{
	must(r->n < HOLDS);
	memmove(r->entry + at + 1, r->entry + at,
	    (r->n - at) * sizeof(r->entry[0]));
	r->entry[at] = entry;
	r->n++;
}

static void
row_remove(struct row *r, uint32_t entry)
{
	uint32_t at = row_find(r, entry);

	if (at == r->n)
		return;
	r->n--;
	memmove(r->entry + at, r->entry + at + 1,
	    (r->n - at) * sizeof(r->entry[0]));
}

static struct row *
stamp_row(uint32_t entry)
{
	uint32_t slot = entry_at(k, entry)->slot;

	return slot_at(k, slot)->retired != 0 ? &dead : &by_stamp[slot];
}

/* ----------------------------------------------------------- comparing --- */

static uint32_t
next_of(uint32_t entry, bool stamp)
{
	return stamp ? entry_at(k, entry)->stamp_next
	    : entry_at(k, entry)->release_next;
}

static uint32_t
prev_of(uint32_t entry, bool stamp)
{
	return stamp ? entry_at(k, entry)->stamp_prev
	    : entry_at(k, entry)->release_prev;
}

/* Forwards and backwards. */
static void
ck_list(struct list l, const struct row *r, bool stamp)
{
	uint32_t flag = stamp ? ENTRY_LISTED : ENTRY_IDLE, i, entry = l.head;

	for (i = 0; i < r->n; i++, entry = next_of(entry, stamp)) {
		must(entry == r->entry[i]);
		must((entry_at(k, entry)->flags & flag) != 0);
	}
	must(entry == 0);
	for (i = r->n, entry = l.tail; i-- > 0; entry = prev_of(entry, stamp))
		must(entry == r->entry[i]);
	must(entry == 0);
}

static int64_t
oldest_of(uint32_t slot)
{
	const struct row *r = &by_stamp[slot];

	return r->n > 0 ? entry_at(k, r->entry[0])->stamp +
	    slot_at(k, slot)->ttl : INT64_MAX;
}

/* At equal stamps the lowest slot wins, so that replicas agree. */
static void
ck_winner(void)
{
	uint32_t slot, best = 0;

	for (slot = 0; slot < slots; slot++) {
		must(k->due[slot] == oldest_of(slot));
		if (oldest_of(slot) < oldest_of(best))
			best = slot;
	}
	must(order_due_slot(k) == best);
}

static void
ck_all(void)
{
	uint32_t slot;

	for (slot = 0; slot < slots; slot++) {
		ck_list(slot_at(k, slot)->by_stamp, &by_stamp[slot], true);
		ck_list(slot_at(k, slot)->by_release, &by_release[slot],
		    false);
	}
	ck_list(k->region->dead, &dead, true);
	ck_winner();
}

/* -------------------------------------------------------- both at once --- */

static uint32_t
make(uint32_t slot)
{
	uint32_t entry = cell_take(k);
	struct entry *h = entry_at(k, entry);

	memset(h, 0, sizeof(*h));
	h->kind = CELL_ENTRY;
	h->slot = (uint16_t)slot;
	h->stamp = now;
	return entry;
}

static void
append(uint32_t entry)
{
	struct row *r = stamp_row(entry);

	order_append(k, entry);
	row_insert(r, r->n, entry);
}

static void
release(uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);
	struct row *r = &by_release[h->slot];

	order_release(k, entry, 0);
	if (slot_at(k, h->slot)->retired == 0)
		row_insert(r, r->n, entry);
}

static void
unrelease(uint32_t entry)
{
	order_unrelease(k, entry);
	row_remove(&by_release[entry_at(k, entry)->slot], entry);
	must((entry_at(k, entry)->flags & ENTRY_IDLE) == 0);
}

static void
take_off(uint32_t entry)
{
	row_remove(stamp_row(entry), entry);
	order_remove(k, entry);
	must((entry_at(k, entry)->flags & ENTRY_LISTED) == 0);
}

/* An entry beside an older one, wherever that is listed. */
static uint32_t
copy(uint32_t older)
{
	uint32_t slot = entry_at(k, older)->slot, entry = make(slot);
	struct row *r = stamp_row(older);

	entry_at(k, entry)->stamp = entry_at(k, older)->stamp;
	order_copy(k, entry, older);
	if (row_find(r, older) < r->n)
		row_insert(r, row_find(r, older) + 1, entry);
	r = &by_release[slot];
	if (row_find(r, older) < r->n)
		row_insert(r, row_find(r, older) + 1, entry);
	return entry;
}

static void
bury(uint32_t slot)
{
	uint32_t i;

	order_retire(k, slot);
	for (i = 0; i < by_stamp[slot].n; i++)
		row_insert(&dead, dead.n, by_stamp[slot].entry[i]);
	by_stamp[slot].n = by_release[slot].n = 0;
	must(slot_at(k, slot)->retired != 0);
}

/* --------------------------------------------------------------- tests --- */

static uint32_t holds[HOLDS], n_holds;

static void
forget(uint32_t at)
{
	uint32_t slot = entry_at(k, holds[at])->slot, i;

	take_off(holds[at]);
	unrelease(holds[at]);
	cell_give(k, holds[at]);
	holds[at] = holds[--n_holds];
	order_settle(k, slot);
	/* the last reference to a retired slot makes it reusable */
	for (i = 0; i < n_holds; i++)
		if (entry_at(k, holds[i])->slot == slot)
			return;
	slot_at(k, slot)->retired = 0;
}

static void
change(uint32_t at)
{
	uint32_t entry = holds[at];

	switch (pick(6)) {
	case 0:
		take_off(entry);
		break;
	case 1: /* stamped again */
		entry_at(k, entry)->stamp = now;
		take_off(entry);
		append(entry);
		break;
	case 2:
		unrelease(entry);
		break;
	case 3:
		unrelease(entry);
		release(entry);
		break;
	case 4:
		if (n_holds < HOLDS)
			holds[n_holds++] = copy(entry);
		break;
	default:
		forget(at);
		return;
	}
	order_settle(k, entry_at(k, entry)->slot);
}

static const uint32_t fleets[] = { 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32 };
enum { FLEETS = sizeof(fleets) / sizeof(fleets[0]) };

START_TEST(random_changes)
{
	uint64_t steps = test_amount(3000);
	uint32_t slot;

	by_chance();
	begin(fleets[_i]);
	for (n_holds = 0; steps > 0; steps--) {
		now += pick(3);
		slot = pick(slots);
		if (n_holds < HOLDS && pick(4) == 0 &&
		    slot_at(k, slot)->retired == 0) {
			holds[n_holds] = make(slot);
			append(holds[n_holds++]);
			order_settle(k, slot);
		} else if (n_holds > 0) {
			change(pick(n_holds));
		}
		if (pick(100) == 0 && slot_at(k, slot)->retired == 0)
			bury(slot);
		ck_all();
	}
	while (n_holds > 0) {
		forget(n_holds - 1);
		ck_all();
	}
	end();
}
END_TEST

/* Every slot in turn is due first, and then none is. */
START_TEST(everybody_wins_once)
{
	uint32_t slot, place;

	begin(fleets[_i]);
	for (place = 0; place < slots; place++) {
		/* 37 is coprime to all the sizes */
		slot = place * 37 % slots;
		now = place;
		append(make(slot));
		order_settle(k, slot);
		ck_winner();
	}
	for (place = 0; place < slots; place++) {
		slot = place * 37 % slots;
		must(order_due_slot(k) == slot);
		take_off(by_stamp[slot].entry[0]);
		order_settle(k, slot);
		ck_winner();
	}
	must(k->due[order_due_slot(k)] == INT64_MAX);
	end();
}
END_TEST

/* The lists of several slots join the dead in one step each, in order. */
START_TEST(buried)
{
	uint32_t slot, i;

	begin(4);
	for (i = 0; i < 30; i++, now++)
		append(make(i % 6));
	for (slot = 0; slot < slots; slot++)
		order_settle(k, slot);
	bury(3);
	ck_all();
	bury(7); /* has nothing */
	ck_all();
	bury(0);
	ck_all();
	must(dead.n == 10);
	take_off(dead.entry[0]);
	take_off(dead.entry[8]);
	take_off(dead.entry[4]);
	ck_all();
	must(order_due_slot(k) == 1);
	end();
}
END_TEST

/* From the start each match has a winner from its own side. */
START_TEST(emptied)
{
	uint32_t slot;

	begin(32);
	for (slot = 0; slot < slots; slot++) {
		append(make(slot));
		order_settle(k, slot);
		by_stamp[slot].n = 0;
	}
	region_empty(k);
	ck_all();
	for (slot = slots; slot-- > 0;) {
		append(make(slot));
		order_settle(k, slot);
		ck_winner();
	}
	end();
}
END_TEST

Suite *suite_order(void);

Suite *
suite_order(void)
{
	Suite *s = suite_create("order");
	TCase *t = tcase_create("order");

	tcase_add_loop_test(t, random_changes, 0, FLEETS);
	tcase_add_loop_test(t, everybody_wins_once, 0, FLEETS);
	tcase_add_test(t, buried);
	tcase_add_test(t, emptied);
	suite_add_tcase(s, t);
	return s;
}
