/* SPDX-License-Identifier: BSD-2-Clause */
/* test_stale.c - requests that run on a worker which was reset stay load. */
#include "test.h"

#include "servers.h"
#include "stale.h"

#define SECOND INT64_C(1000000000)

static struct servers a, b;
static struct kvr_prompt *prompt;
static int64_t now;

static void
begin(size_t n, uint32_t ranks)
{
	servers_begin(&a, n, ranks);
	ck_assert_int_eq(kvr_prompt_new(a.fleet.kvr, &prompt), KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_bytes(prompt, NULL,
	    "0123456789abcdef0123456789abcdef", 32), KVR_OK);
	now = kvr_clock_now();
}

static void
end(void)
{
	kvr_prompt_free(prompt);
	servers_end(&a);
}

static void
lease(size_t i, uint32_t rank)
{
	struct kvr_request request;
	struct kvr_decision d = { .size = sizeof(d) };

	ck_assert_int_eq(kvr_request_init(&request, sizeof(request)), KVR_OK);
	ck_assert_int_eq(kvr_lease_open_on(a.fleet.kvr, prompt, &request,
	    a.ids[i][rank], now, &d), KVR_OK);
}

/* As by another process. */
static void
reset(size_t i, uint32_t rank)
{
	uint64_t id = a.ids[i][rank];

	ck_assert_int_eq(kvr_worker_reset(a.fleet.kvr, id, &a.ids[i][rank]),
	    KVR_OK);
}

static uint64_t
load_of(size_t i, uint32_t rank)
{
	struct kvr_load load = { .size = sizeof(load) };

	ck_assert_int_eq(kvr_worker_get_load(a.fleet.kvr, a.ids[i][rank], 1,
	    &load), KVR_OK);
	return load.requests;
}

static size_t
books(size_t from)
{
	size_t place = 0;

	return stale_next(&a.fleet, &place, from);
}

START_TEST(connections_without_a_lease_are_load)
{
	begin(2, 1);
	lease(1, 0);
	lease(1, 0);
	lease(1, 0);
	ck_assert_uint_eq(books(0), 2);
	stale_begin(&a.fleet, 0, now);
	ck_assert_uint_eq(books(0), 2);
	stale_begin(&a.fleet, 1, now);
	ck_assert_uint_eq(books(0), 1);
	reset(1, 0);
	stale_book(&a.fleet, 1, 3, now);
	ck_assert_uint_eq(load_of(1, 0), 3);
	lease(1, 0);
	stale_book(&a.fleet, 1, 3, now);
	ck_assert_uint_eq(load_of(1, 0), 2);
	/* The reset may be late, so the place stays for a while. */
	stale_book(&a.fleet, 1, 1, now + SECOND);
	ck_assert_uint_eq(load_of(1, 0), 0);
	ck_assert_uint_eq(books(0), 1);
	stale_book(&a.fleet, 1, 1, now + 6 * SECOND);
	ck_assert_uint_eq(books(0), 2);
	end();
}
END_TEST

START_TEST(ranks_share_connections_evenly)
{
	begin(1, 3);
	lease(0, 0);
	lease(0, 1);
	stale_begin(&a.fleet, 0, now);
	reset(0, 0);
	reset(0, 1);
	reset(0, 2);
	stale_book(&a.fleet, 0, 8, now);
	ck_assert_uint_eq(load_of(0, 0), 3);
	ck_assert_uint_eq(load_of(0, 1), 3);
	ck_assert_uint_eq(load_of(0, 2), 2);
	end();
}
END_TEST

START_TEST(any_process_may_book)
{
	begin(1, 1);
	lease(0, 0);
	servers_join(&b, &a);
	stale_begin(&a.fleet, 0, now);
	reset(0, 0);
	stale_note(&b.fleet, 0, now + SECOND);
	stale_book(&b.fleet, 0, 1, now + SECOND);
	ck_assert_uint_eq(load_of(0, 0), 1);
	stale_book(&b.fleet, 0, 0, now + 6 * SECOND);
	ck_assert_uint_eq(books(0), 1);
	stale_note(&b.fleet, 0, now);
	ck_assert_uint_eq(books(0), 0);
	kvr_free(b.fleet.kvr);
	end();
}
END_TEST

START_TEST(places_of_servers_that_left_are_free_after_an_hour)
{
	size_t i;

	begin(1, 1);
	for (i = 0; i < SHARED_STALE; i++) {
		a.common->shared.stale[i].key = i + 100;
		a.common->shared.stale[i].since = (uint64_t)now;
	}
	stale_note(&a.fleet, 0, now + SECOND);
	ck_assert_uint_eq(books(0), 1);
	stale_note(&a.fleet, 0, now + 3601 * SECOND);
	ck_assert_uint_eq(books(0), 0);
	end();
}
END_TEST

START_TEST(without_a_region_nothing_is_booked)
{
	struct kvr *k;

	begin(1, 1);
	stale_note(&a.fleet, 0, now);
	k = a.fleet.kvr;
	a.fleet.kvr = NULL;
	ck_assert_uint_eq(books(0), 1);
	a.fleet.kvr = k;
	end();
}
END_TEST

Suite *suite_stale(void);

Suite *
suite_stale(void)
{
	Suite *suite = suite_create("stale");
	TCase *t = tcase_create("stale");

	tcase_add_test(t, connections_without_a_lease_are_load);
	tcase_add_test(t, ranks_share_connections_evenly);
	tcase_add_test(t, any_process_may_book);
	tcase_add_test(t, places_of_servers_that_left_are_free_after_an_hour);
	tcase_add_test(t, without_a_region_nothing_is_booked);
	suite_add_tcase(suite, t);
	return suite;
}
