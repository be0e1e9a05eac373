/* SPDX-License-Identifier: BSD-2-Clause */
/* test_orders.c - an operator drains, resets and forgets workers. */
#include "test.h"

#include "busy.h"
#include "orders.h"
#include "servers.h"

#define NOW INT64_C(1000000000)

static struct servers a;

static int
obey(const char *order, const char *name, struct kvr_worker *facts)
{
	return order_obey(&a.fleet, order_named(order, strlen(order)), name,
	    strlen(name), NOW, facts);
}

static uint32_t
state_of(size_t i, uint32_t rank)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint64_t id;

	ck_assert_int_eq(kvr_worker_find(a.fleet.kvr, a.known[i].name,
	    a.known[i].name_len, rank, &id), KVR_OK);
	ck_assert_int_eq(kvr_worker_get(a.fleet.kvr, id, &facts), KVR_OK);
	return facts.state;
}

/* An address is all of its ranks. */
START_TEST(drain)
{
	struct kvr_worker facts;

	servers_begin(&a, 2, 2);
	ck_assert_int_eq(obey("drain", "s1", &facts), KVR_OK);
	ck_assert_uint_eq(facts.state, KVR_STATE_DRAINING);
	ck_assert_uint_eq(state_of(1, 0), KVR_STATE_DRAINING);
	ck_assert_uint_eq(state_of(1, 1), KVR_STATE_DRAINING);
	ck_assert_uint_eq(state_of(0, 0), KVR_STATE_UP);
	ck_assert_uint_eq(a.common->shared.epoch, 2);
	ck_assert_int_eq(obey("up", "s1@1", &facts), KVR_OK);
	ck_assert_uint_eq(facts.state, KVR_STATE_UP);
	ck_assert_uint_eq(state_of(1, 0), KVR_STATE_DRAINING);
	ck_assert_uint_eq(state_of(1, 1), KVR_STATE_UP);
	servers_end(&a);
}
END_TEST

START_TEST(reset)
{
	struct kvr_worker facts;
	uint64_t id;

	servers_begin(&a, 1, 1);
	ck_assert_int_eq(obey("reset", "s0", &facts), KVR_OK);
	ck_assert_int_eq(kvr_worker_find(a.fleet.kvr, "s0", 2, 0, &id),
	    KVR_OK);
	ck_assert_uint_ne(id, a.ids[0][0]);
	ck_assert_int_eq(obey("forget", "s0", &facts), KVR_OK);
	ck_assert_uint_eq(facts.state, KVR_STATE_UP);
	servers_end(&a);
}
END_TEST

START_TEST(unknown)
{
	static const char *const names[] = { "s2", "s0@2", "s0@", "@0", "s0@x",
	    "s0@1024", "s0@99999999999", "" };
	struct kvr_worker facts;
	size_t i;

	servers_begin(&a, 2, 1);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_int_ne(obey("drain", names[i], &facts), KVR_OK);
	ck_assert_uint_eq(order_named("dra", 3), ORDER_NONE);
	ck_assert_uint_eq(order_named("", 0), ORDER_NONE);
	servers_end(&a);
}
END_TEST

START_TEST(locked)
{
	struct kvr_worker facts;

	servers_begin(&a, 1, 1);
	busy_begin(1000000);
	ck_assert_int_eq(obey("drain", "s0", &facts), KVR_EBUSY);
	busy_end();
	ck_assert_uint_eq(state_of(0, 0), KVR_STATE_UP);
	servers_end(&a);
}
END_TEST

Suite *suite_orders(void);

Suite *
suite_orders(void)
{
	Suite *suite = suite_create("orders");
	TCase *t = tcase_create("orders");

	tcase_add_test(t, drain);
	tcase_add_test(t, reset);
	tcase_add_test(t, unknown);
	tcase_add_test(t, locked);
	suite_add_tcase(suite, t);
	return suite;
}
