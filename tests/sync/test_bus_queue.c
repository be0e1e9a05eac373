/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_bus_queue.c - frames that wait: order, the bound, kept frames, no
 * memory.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "bus_queue.h"

enum { SIZE = 100, ITEM = SIZE + sizeof(struct bus_item) };

static struct bus_queue queue;
static unsigned char frame[SIZE], large[3 * ITEM];

static void
setup(void)
{
	queue = (struct bus_queue){ .most = 3 * ITEM };
	alloc_reset();
}

static void
teardown(void)
{
	bus_queue_clear(&queue);
	ck_assert_uint_eq(queue.bytes, 0);
	ck_assert_uint_eq(queue.items, 0);
	ck_assert_ptr_null(queue.last);
}

static bool
push(unsigned char mark)
{
	memset(frame, mark, SIZE);
	return bus_queue_push(&queue, "to", frame, SIZE);
}

/* The marks of all items, in order. */
static void
ck_marks(const char *want)
{
	const struct bus_item *item, *last = NULL;

	ck_assert_uint_eq(queue.items, strlen(want));
	ck_assert_uint_eq(queue.bytes, strlen(want) * ITEM);
	for (item = queue.first; item != NULL; item = item->next) {
		ck_assert_int_eq(item->bytes[0], *want++);
		ck_assert_int_eq(item->bytes[SIZE - 1], item->bytes[0]);
		ck_assert_str_eq(item->subject, "to");
		last = item;
	}
	ck_assert_ptr_eq(queue.last, last);
}

static void
ck_pop(int mark)
{
	struct bus_item *item = bus_queue_pop(&queue);

	ck_assert_ptr_nonnull(item);
	ck_assert_int_eq(item->bytes[0], mark);
	free(item);
}

START_TEST(in_order)
{
	ck_assert_ptr_null(bus_queue_pop(&queue));
	ck_assert(push('a') && push('b'));
	ck_pop('a');
	ck_assert(push('c') && push('d'));
	ck_marks("bcd");
	ck_pop('b');
	ck_pop('c');
	ck_pop('d');
	ck_assert_ptr_null(bus_queue_pop(&queue));
	ck_assert(push('e'));
	ck_marks("e");
	ck_assert_uint_eq(queue.drops, 0);
}
END_TEST

START_TEST(the_oldest_leave)
{
	ck_assert(push('a') && push('b') && push('c') && push('d'));
	ck_marks("bcd");
	ck_assert_uint_eq(queue.drops, 1);
	/* One that is as large as all of them. */
	ck_assert(bus_queue_push(&queue, "", large,
	    queue.most - sizeof(struct bus_item)));
	ck_assert_uint_eq(queue.items, 1);
	ck_assert_uint_eq(queue.drops, 4);
}
END_TEST

START_TEST(kept_ones_stay)
{
	ck_assert(push('a') && push('b') && push('c'));
	queue.kept = 2;
	ck_assert(push('d'));
	ck_marks("abd");
	queue.kept = 3;
	ck_assert(!push('e'));
	ck_marks("abd");
	ck_assert_uint_eq(queue.drops, 2);
	ck_pop('a');
	ck_assert_uint_eq(queue.kept, 2);
	ck_assert(push('f') && push('g'));
	ck_marks("bdg");
}
END_TEST

START_TEST(what_does_not_fit)
{
	char subject[BUS_SUBJECT_MAX + 1];

	memset(subject, 'x', BUS_SUBJECT_MAX);
	subject[BUS_SUBJECT_MAX] = '\0';
	ck_assert(push('a'));
	ck_assert(!bus_queue_push(&queue, subject, frame, 1));
	ck_assert(!bus_queue_push(&queue, "", frame, 4 * ITEM));
	ck_assert(!bus_queue_push(&queue, "", frame, SIZE_MAX));
	ck_assert_uint_eq(queue.drops, 3);
	ck_marks("a");
	ck_assert(bus_queue_push(&queue, subject + 1, frame, 0));
	ck_assert_uint_eq(queue.items, 2);
}
END_TEST

START_TEST(no_memory)
{
	ck_assert(push('a'));
	alloc_fail_at(1);
	ck_assert(!push('b'));
	ck_marks("a");
	ck_assert_uint_eq(queue.drops, 1);
	ck_assert(push('c'));
	ck_marks("ac");
}
END_TEST

Suite *suite_bus_queue(void);

Suite *
suite_bus_queue(void)
{
	Suite *s = suite_create("bus_queue");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, in_order);
	tcase_add_test(t, the_oldest_leave);
	tcase_add_test(t, kept_ones_stay);
	tcase_add_test(t, what_does_not_fit);
	tcase_add_test(t, no_memory);
	suite_add_tcase(s, t);
	return s;
}
