/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_check_order.c - kvr_check finds damage to lists and tournaments.
 *
 * The region, and how it is damaged and repaired, are damage.h's.
 */
#include "order.h"

#include "damage.h"

/* ------------------------------------------------------------ by stamp --- */

START_TEST(damaged_list)
{
	struct slot *s = slot_at(k, 2);
	struct entry *h = entry_at(k, s->by_stamp.head);

	FOUND(s->by_stamp.head = 0);
	FOUND(s->by_stamp.head = h->stamp_next);
	FOUND(s->by_stamp.head = UINT32_MAX);
	FOUND(s->by_stamp.tail = s->by_stamp.head);
	FOUND(s->by_stamp.tail = 0);
	FOUND(h->stamp_next = 0);
	FOUND(h->stamp_next = s->by_stamp.head);
	FOUND(h->stamp_next = UINT32_MAX);
	FOUND(h->stamp_prev = s->by_stamp.tail);
	FOUND(h->flags ^= ENTRY_LISTED);
	FOUND(s->by_release.head = 0);
	FOUND(s->by_release.tail = s->by_release.head);
	FOUND(entry_at(k, s->by_release.head)->release_next = 0);
	FOUND(entry_at(k, s->by_release.tail)->release_prev = 0);
	FOUND(h->flags ^= ENTRY_IDLE);
	FOUND(slot_at(k, 3)->by_stamp = s->by_stamp);
	FOUND(k->region->dead.head = 0);
	FOUND(k->region->dead.tail = 0);
	FOUND(entry_at(k, k->region->dead.head)->stamp_prev = 1);
}
END_TEST

/* Swaps neighbours in a list. */
static void
swap(struct list *l)
{
	uint32_t a = l->head, b = entry_at(k, a)->stamp_next;
	uint32_t c = entry_at(k, b)->stamp_next;

	l->head = b;
	entry_at(k, b)->stamp_prev = 0;
	entry_at(k, b)->stamp_next = a;
	entry_at(k, a)->stamp_prev = b;
	entry_at(k, a)->stamp_next = c;
	entry_at(k, c)->stamp_prev = a;
}

START_TEST(damaged_order)
{
	struct slot *s = slot_at(k, 2);

	/* by age */
	FOUND((swap(&s->by_stamp),
	    k->due[2] = entry_at(k, s->by_stamp.head)->stamp));
	/* of one age, the parent before its child */
	FOUND((stamp_both(stem, 2, 3), stamp_both(fork, 2, 3),
	    swap(&s->by_stamp)));
}
END_TEST

/* Swaps an entry, not the head, with the next of its list, not the tail. */
static void
swap_stamped(uint32_t a)
{
	uint32_t b = entry_at(k, a)->stamp_next;
	uint32_t before = entry_at(k, a)->stamp_prev;
	uint32_t after = entry_at(k, b)->stamp_next;

	ck_assert(before != 0 && after != 0);
	entry_at(k, before)->stamp_next = b;
	entry_at(k, after)->stamp_prev = a;
	entry_at(k, b)->stamp_prev = before;
	entry_at(k, b)->stamp_next = a;
	entry_at(k, a)->stamp_prev = b;
	entry_at(k, a)->stamp_next = after;
}

/* No parent and child: only their stamps are out of order. */
START_TEST(stamps_descend)
{
	uint32_t tail = slot_at(k, 2)->by_stamp.tail;
	uint32_t mn = entry_at(k, tail)->stamp_prev;
	uint32_t long_one = entry_at(k, mn)->stamp_prev;

	ck_assert_uint_eq(long_one, entry_find(k, wide, 2));
	ck_assert_uint_eq(mn, entry_find(k, child_of(0, 'm'), 2));
	FOUND(swap_stamped(long_one));
}
END_TEST

/* Takes the head off, but leaves its flag of a listed entry. */
static void
behead(struct list *l)
{
	l->head = entry_at(k, l->head)->stamp_next;
	entry_at(k, l->head)->stamp_prev = 0;
}

/* The lists are sound, but an entry flagged as listed is on none of them. */
START_TEST(missing_from_a_list)
{
	struct slot *s = slot_at(k, 2);
	uint32_t second = entry_at(k, s->by_stamp.head)->stamp_next;

	FOUND((behead(&s->by_stamp), k->due[2] = order_due(k, 2)));
	FOUND((s->by_release.head = entry_at(k, s->by_release.head)
	    ->release_next, entry_at(k, s->by_release.head)->release_prev = 0));
	FOUND(entry_at(k, second)->slot = 3);
	/* as many flags as entries; all of worker 0's are pinned */
	s = slot_at(k, 0);
	second = entry_at(k, s->by_stamp.head)->stamp_next;
	ck_assert_uint_ne(second, 0);
	FOUND((behead(&s->by_stamp), k->due[0] = order_due(k, 0),
	    entry_at(k, second)->flags &= (uint8_t)~ENTRY_LISTED));
}
END_TEST

/* The entries of a worker that was removed, one of them below another. */
START_TEST(damaged_dead)
{
	struct list *dead = &k->region->dead;
	uint32_t child = entry_find(k, fork, 2);
	struct entry *h = entry_at(k, child);
	uint32_t parent = h->stamp_next;

	ck_assert_uint_eq(parent, entry_find(k, stem, 2));
	ck_assert_int_eq(kvr_worker_remove(k, id[2]), KVR_OK);
	region_sound();
	memcpy(good, memory, BYTES);
	ck_assert_uint_ne(h->stamp_prev, 0);
	FOUND(swap_stamped(child));
	FOUND(dead->tail = dead->head);
	FOUND(h->stamp_next = child);
	FOUND(entry_at(k, dead->tail)->stamp_next = dead->head);
	FOUND(slot_at(k, 3)->by_stamp = *dead);
	FOUND((dead->head = parent, entry_at(k, parent)->stamp_prev = 0));
}
END_TEST

/* ---------------------------------------------------------- by release --- */

/* Swaps two neighbours in the order of release. */
static void
swap_released(struct slot *s, uint32_t a)
{
	uint32_t b = entry_at(k, a)->release_next;
	uint32_t before = entry_at(k, a)->release_prev;
	uint32_t after = entry_at(k, b)->release_next;

	*(before != 0 ? &entry_at(k, before)->release_next
	    : &s->by_release.head) = b;
	*(after != 0 ? &entry_at(k, after)->release_prev
	    : &s->by_release.tail) = a;
	entry_at(k, b)->release_prev = before;
	entry_at(k, b)->release_next = a;
	entry_at(k, a)->release_prev = b;
	entry_at(k, a)->release_next = after;
}

START_TEST(damaged_release)
{
	struct slot *s = slot_at(k, 2);

	FOUND(s->by_release.head = entry_at(k, s->by_release.head)
	    ->release_next);
	FOUND(s->by_release.head = s->by_stamp.tail + 1);
	FOUND(entry_at(k, s->by_release.head)->release_next =
	    s->by_release.head);
	FOUND(entry_at(k, s->by_release.head)->release_next = UINT32_MAX);
	FOUND(slot_at(k, 3)->by_release = s->by_release);
	/* the parent before its child */
	ck_assert_uint_eq(entry_find(k, fork, 2), s->by_release.head);
	FOUND(swap_released(s, s->by_release.head));
}
END_TEST

/* ----------------------------------------------------------- anonymous --- */

/* The entry belongs to a worker that has been removed. */
START_TEST(damaged_dead_answer)
{
	struct entry *h = idle_hold(true);

	ck_assert_int_eq(kvr_worker_remove(k, id[4]), KVR_OK);
	region_sound();
	memcpy(good, memory, BYTES);
	FOUND(h->slot = UINT16_MAX);
	FOUND(h->slot = 3);
	MENDED(h->trimmed++);
	FOUND(h->flags = ENTRY_LISTED);
	FOUND(h->kind = CELL_LEASE);
}
END_TEST

START_TEST(damaged_answer)
{
	struct entry *h = idle_hold(true);
	struct slot *s = slot_at(k, 4);

	ck_assert_uint_gt(s->anonymous, 0);
	MENDED(h->trimmed++);
	FOUND(h->trimmed = 0);
	MENDED(s->anonymous--);
	MENDED(s->anonymous = 0);
	FOUND((s->anonymous -= h->trimmed, h->trimmed = 0));
	FOUND(h->pins++);
	FOUND(h->flags = ENTRY_LISTED);
	FOUND(h->flags = ENTRY_IDLE);
	MENDED(h->flags |= ENTRY_UNCONFIRMED);
	FOUND(h->stamp = STAMP_NONE);
	FOUND(h->slot = 3);
	FOUND(h->slot = UINT16_MAX);
	FOUND(h->kind = CELL_FREE);
	FOUND(h->node = UINT32_MAX);
}
END_TEST

/* --------------------------------------------------------- tournaments --- */

START_TEST(damaged_tournament)
{
	FOUND(k->due[2]++);
	FOUND(k->due[5] = INT64_MAX);
	FOUND(k->due[12] = 0);
	FOUND(k->due_winner[1] = 3);
	FOUND(k->due_winner[1] = UINT16_MAX);
	FOUND(k->due_winner[2] = 3);
}
END_TEST

static uint32_t
player(uint32_t i)
{
	uint32_t leaves = k->layout.leaves;

	return i >= leaves ? i - leaves : k->due_winner[i];
}

/* Won by the other one; the matches above are played with that. */
static void
lose(uint32_t i)
{
	uint32_t l = player(2 * i), r = player(2 * i + 1);

	k->due_winner[i] = (uint16_t)(k->due_winner[i] == l ? r : l);
	for (i /= 2; i > 0; i /= 2) {
		l = player(2 * i);
		r = player(2 * i + 1);
		k->due_winner[i] = (uint16_t)(k->due[l] <= k->due[r] ? l : r);
	}
}

START_TEST(lost_matches)
{
	uint32_t i, tried = 0;

	for (i = 1; i < k->layout.leaves; i++) {
		if (k->due[player(2 * i)] == k->due[player(2 * i + 1)])
			continue;
		FOUND(lose(i));
		tried++;
	}
	ck_assert_uint_gt(tried, 2);
}
END_TEST

/* There are more leaves than slots: a leaf without a slot must not win. */
START_TEST(leaves_without_slots)
{
	struct kvr_options o = small_options();

	o.max_workers = 5;
	region_of(&o);
	ck_assert_uint_eq(k->layout.slots, 10);
	ck_assert_uint_eq(k->layout.leaves, 16);
	observe(0, "ab", 1);
	region_sound();
	k->due[12] = INT64_MAX - 1;
	k->due_winner[14] = k->due_winner[7] = k->due_winner[3] = 12;
	ck_assert_int_eq(kvr_check(k), KVR_ECORRUPT);
	k->due[12] = INT64_MAX;
	region_sound();
	region_end();
}
END_TEST

START_TEST(stamped_not_kept)
{
	ck_assert_uint_eq(k->region->stamped_kept, 0);
	FOUND(k->region->stamped_kept = 1);
}
END_TEST

/* The second tournament, once it is kept: over stamps instead of TTLs. */
START_TEST(damaged_stamped)
{
	ck_assert_uint_lt(order_stamped_slot(k), FLEET);
	ck_assert_uint_eq(k->region->stamped_kept, 1);
	region_sound();
	memcpy(good, memory, BYTES);
	FOUND(k->stamped[2]++);
	FOUND(k->stamped[2]--);
	FOUND(k->stamped[5] = INT64_MAX);
	FOUND(k->stamped[12] = 0);
	FOUND(k->stamped_winner[1] = 5);
	FOUND(k->stamped_winner[1] = UINT16_MAX);
	FOUND(k->stamped_winner[2] = 5);
}
END_TEST

Suite *suite_check_order(void);

Suite *
suite_check_order(void)
{
	Suite *s = suite_create("check_order");
	TCase *t = tcase_create("order");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, damaged_list);
	tcase_add_test(t, damaged_order);
	tcase_add_test(t, stamps_descend);
	tcase_add_test(t, missing_from_a_list);
	tcase_add_test(t, damaged_dead);
	tcase_add_test(t, damaged_tournament);
	tcase_add_test(t, lost_matches);
	tcase_add_test(t, stamped_not_kept);
	suite_add_tcase(s, t);
	t = tcase_create("caches");
	tcase_add_checked_fixture(t, cache_setup, teardown);
	tcase_add_test(t, damaged_release);
	tcase_add_test(t, damaged_answer);
	tcase_add_test(t, damaged_dead_answer);
	tcase_add_test(t, lost_matches);
	tcase_add_test(t, damaged_stamped);
	suite_add_tcase(s, t);
	t = tcase_create("own region");
	tcase_add_test(t, leaves_without_slots);
	suite_add_tcase(s, t);
	return s;
}
