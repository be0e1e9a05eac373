/* SPDX-License-Identifier: BSD-2-Clause */
/* test_check_tenants.c - kvr_check finds damage to rows of tenants. */
#include "tenants.h"

#include "damage.h"

static struct tenant *a, *b, *others;

static void
begin(void)
{
	struct kvr_options o = shared_options(4);
	uint64_t lease;
	uint32_t i;

	memory = aligned_alloc(CELL, BYTES);
	good = malloc(BYTES);
	ck_assert(memory != NULL && good != NULL);
	memset(memory, 0, BYTES);
	ck_assert_int_eq(kvr_new_at(&o, memory, BYTES, &k), KVR_OK);
	people(WORKERS);
	for (i = 0; i < 6; i++) {
		say_as('a', 20 + 40 * i, 10, i);
		(void)observed(i % 2, 1 + i);
	}
	say_as('b', 200, 0, 0);
	lease = reserved_for(2, 50, 10);
	commit(lease, 11);
	observe(3, "abcd", 12);
	observe(3, "abef", 12);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	region_sound();
	memcpy(good, memory, BYTES);
	others = tenant_at(k, 0);
	a = tenant_at(k, tenant_find(k, digest_of('a')));
	b = tenant_at(k, tenant_find(k, digest_of('b')));
}

static union belonging *
place(uint32_t entry)
{
	return belonging_at(k, entry);
}

START_TEST(damaged_lists)
{
	uint32_t first = a->by_stamp.head, second = place(first)->place.next;
	uint32_t last = a->by_stamp.tail;

	FOUND(a->by_stamp.head = 0);
	FOUND(a->by_stamp.head = second);
	FOUND(a->by_stamp.head = UINT32_MAX);
	FOUND(a->by_stamp.tail = first);
	FOUND(a->by_stamp = b->by_stamp);
	FOUND(place(first)->place.next = 0);
	FOUND(place(first)->place.next = first);
	FOUND(place(second)->place.prev = 0);
	FOUND(place(second)->place.next = UINT32_MAX);
	FOUND(place(last)->place.next = second);
	FOUND((a->by_stamp.head = a->by_stamp.tail = 0));
	/* of another tenant, as a whole */
	FOUND((others->by_stamp = a->by_stamp,
	    a->by_stamp.head = a->by_stamp.tail = 0));
}
END_TEST

/* An entry and the one behind it in another order. */
static void
swap_at(struct tenant *t, uint32_t former)
{
	uint32_t other = place(former)->place.next;
	uint32_t rest = place(other)->place.next;
	uint32_t before = place(former)->place.prev;

	*(before != 0 ? &place(before)->place.next : &t->by_stamp.head) =
	    other;
	place(other)->place.prev = before;
	place(other)->place.next = former;
	place(former)->place.prev = other;
	place(former)->place.next = rest;
	*(rest != 0 ? &place(rest)->place.prev : &t->by_stamp.tail) = former;
}

START_TEST(damaged_order)
{
	/* of one instant, a child and its parent; of two instants */
	FOUND(swap_at(others, place(others->by_stamp.tail)->place.prev));
	FOUND(swap_at(a, a->by_stamp.head));
}
END_TEST

START_TEST(whose_it_is)
{
	uint32_t node = entry_at(k, a->by_stamp.head)->node;
	uint32_t above = node_at(k, node)->parent;

	ck_assert_uint_ne(above, 0);
	FOUND(place(node)->tenant = 5);
	FOUND(place(node)->tenant = UINT32_MAX);
	FOUND(place(node)->tenant = 0);
	FOUND(place(above)->tenant = place(above)->tenant % 4 + 1);
}
END_TEST

START_TEST(wrong_figures)
{
	MENDED(a->cells++);
	MENDED(b->cells = 0);
	MENDED(others->cells--);
	MENDED(a->fill++);
	MENDED(a->fill = 0);
	MENDED(a->share = 0);
	MENDED(b->share = KVR_SHARE_MAX + 1);
	MENDED(b->share++); /* a fill that does not follow from it */
	MENDED(others->share = 0);
	MENDED(others->digest = 5);
	/* rows behind the last one, which are empty */
	MENDED(k->tenants[5].cells = 1);
	MENDED(k->tenants[7].share = 1);
	MENDED((k->tenants[6].by_stamp.head = a->by_stamp.head,
	    k->tenants[6].fill = UINT64_MAX));
	MENDED(k->tenant_winner[1] ^= 1);
	MENDED(k->tenant_winner[2] ^= 1);
}
END_TEST

Suite *suite_check_tenants(void);

Suite *
suite_check_tenants(void)
{
	Suite *s = suite_create("check_tenants");
	TCase *c = tcase_create("damage");

	tcase_add_checked_fixture(c, begin, teardown);
	tcase_add_test(c, damaged_lists);
	tcase_add_test(c, damaged_order);
	tcase_add_test(c, whose_it_is);
	tcase_add_test(c, wrong_figures);
	suite_add_tcase(s, c);
	return s;
}
