/* SPDX-License-Identifier: BSD-2-Clause */
/* test_booking.c - a request is booked at a worker, a server, or later. */
#include "test.h"

#include "booking.h"
#include "roles.h"
#include "servers.h"

#define NOW INT64_C(1000000000)
#define TEXT "a prompt of two blocks, and some."

static struct servers s;
static struct spares spares;
static struct writes writes;
static struct booking b;
static struct kvr_prompt *p;
static struct kvr_request r;

static void
begin(size_t n, uint32_t ranks)
{
	servers_begin(&s, n, ranks);
	memset(&spares, 0, sizeof(spares));
	writes = (struct writes){ .k = s.fleet.kvr, .spares = &spares,
	    .shared = s.fleet.shared };
	b = (struct booking){ .fleet = &s.fleet, .writes = &writes };
	ck_assert_int_eq(kvr_prompt_new(s.fleet.kvr, &p), KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, TEXT, strlen(TEXT)),
	    KVR_OK);
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.flags = KVR_NOWAIT;
	booking_begin(&b, REASON_COST);
}

static void
end(void)
{
	kvr_prompt_free(p);
	writes_free(&writes);
	spares_free(&spares);
	servers_end(&s);
}

static uint64_t
requests_at(size_t i, uint32_t rank)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };

	ck_assert_int_eq(kvr_worker_stats_get(s.fleet.kvr, s.ids[i][rank],
	    &stats), KVR_OK);
	return stats.requests;
}

START_TEST(best_of_usable_servers)
{
	begin(3, 1);
	s.known[0].usable = s.known[2].usable = false;
	ck_assert(booking_choose(&b, p, &r, NOW, false));
	ck_assert_uint_eq(b.worker, s.ids[1][0]);
	ck_assert_uint_eq(b.lease, 0);
	ck_assert(booking_choose(&b, p, &r, NOW, true));
	ck_assert_uint_ne(b.lease, 0);
	ck_assert_uint_eq(requests_at(1, 0), 1);
	end();
}
END_TEST

START_TEST(none_is_chosen)
{
	begin(1, 1);
	ck_assert(!booking_choose(&b, NULL, &r, NOW, true));
	ck_assert_int_eq(b.reason, reason_of_error(KVR_ENOMEM));
	s.ids[0][0] = 0;
	ck_assert(!booking_choose(&b, p, &r, NOW, true) && b.missed);
	ck_assert_int_eq(b.reason, reason_of_error(KVR_EBUSY));
	s.known[0].usable = false;
	ck_assert(!booking_choose(&b, p, &r, NOW, true));
	ck_assert_int_eq(b.reason, reason_of_error(KVR_ENOWORKER));
	end();
}
END_TEST

START_TEST(worker_or_server_is_given)
{
	begin(2, 2);
	b.worker = s.ids[0][1];
	ck_assert(booking_kept(&b, p, &r, NOW));
	ck_assert_uint_eq(requests_at(0, 1), 1);
	ck_assert(booking_taken(&b, 1, p, &r, NOW));
	ck_assert_uint_eq(requests_at(1, 0) + requests_at(1, 1), 1);
	ck_assert(!booking_taken(&b, 2, p, &r, NOW) && b.missed);
	b.worker = 1;
	ck_assert(!booking_kept(&b, p, &r, NOW) && b.missed);
	end();
}
END_TEST

START_TEST(shadow_is_counted)
{
	begin(2, 1);
	s.known[1].usable = false;
	ck_assert(booking_choose(&b, p, &r, NOW, false));
	booking_shadow(&b, 1, p, &r, NOW);
	ck_assert_uint_ne(b.lease, 0);
	ck_assert_uint_eq(b.worker, s.ids[0][0]);
	ck_assert_uint_eq(requests_at(1, 0), 1);
	ck_assert_uint_eq(s.fleet.shared->counts[COUNT_SHADOW], 1);
	ck_assert_uint_eq(s.fleet.shared->counts[COUNT_SHADOW_SAME], 0);
	end();
}
END_TEST

START_TEST(missed_is_booked_late)
{
	begin(1, 1);
	booking_late(&b, 0, &p, &r, NOW);
	ck_assert(!b.late);
	b.missed = true;
	booking_late(&b, 0, &p, &r, NOW);
	ck_assert(b.late && !b.missed && b.lease != 0 && p != NULL);
	ck_assert_uint_eq(s.fleet.shared->counts[COUNT_LATE], 1);
	b.missed = true;
	b.lease = 0;
	s.ids[0][0] = 0;
	booking_late(&b, 0, &p, &r, NOW);
	ck_assert_ptr_null(p);
	ck_assert_uint_eq(s.fleet.shared->counts[COUNT_LATE], 2);
	end();
}
END_TEST

/* It is load, and no prompt is on record. */
START_TEST(plain_is_load)
{
	struct kvr_stats stats = { .size = sizeof(stats) };

	begin(1, 1);
	booking_plain(&b, 0, &r, NOW);
	ck_assert_uint_ne(b.lease, 0);
	ck_assert_uint_eq(requests_at(0, 0), 1);
	ck_assert_int_eq(kvr_stats_get(s.fleet.kvr, &stats), KVR_OK);
	ck_assert_uint_eq(stats.held_blocks, 0);
	end();
}
END_TEST

/* Server 0 decodes, server 1 prefills for it. */
static void
begin_split(void)
{
	begin(2, 1);
	s.facts[0].worker.role = KVR_ROLE_DECODE;
	s.facts[1].worker.role = KVR_ROLE_PREFILL;
	s.fleet.split = 1;
	roles_mark(&s.fleet, NOW);
	ck_assert(booking_choose(&b, p, &r, NOW, false));
	booking_split(&b, 0, p, &r, NOW);
	ck_assert_uint_ne(b.lease, 0);
}

START_TEST(another_prefills)
{
	begin_split();
	ck_assert_uint_ne(b.prefill, 0);
	ck_assert_uint_eq(b.prefill_length, 2);
	ck_assert_int_eq(memcmp(b.prefill_name, "s1", 2), 0);
	ck_assert_uint_eq(requests_at(1, 0), 1);
	booking_prefill_end(&b, false, NOW);
	ck_assert_uint_eq(b.prefill, 0);
	ck_assert_uint_eq(requests_at(1, 0), 0);
	end();
}
END_TEST

/* The target could not be booked at once: it does not prefill either. */
START_TEST(late_where_another_prefills)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };

	begin_split();
	ck_assert_int_eq(kvr_lease_abort(s.fleet.kvr, b.lease, NOW, 0),
	    KVR_OK);
	b.lease = 0;
	b.missed = true;
	r.flags = KVR_NOWAIT;
	booking_late(&b, 0, &p, &r, NOW);
	ck_assert(b.late && b.lease != 0);
	ck_assert_int_eq(kvr_worker_stats_get(s.fleet.kvr, s.ids[0][0],
	    &stats), KVR_OK);
	ck_assert_uint_eq(stats.requests, 1);
	ck_assert_uint_eq(stats.prefill_tokens, 0);
	end();
}
END_TEST

/* Nothing of an earlier try is left. */
START_TEST(another_try)
{
	begin(1, 1);
	b.missed = true;
	booking_late(&b, 0, &p, &r, NOW);
	ck_assert(b.late);
	b.missed = true;
	booking_begin(&b, REASON_COST);
	ck_assert(!b.late && !b.missed);
	end();
}
END_TEST

Suite *suite_booking(void);

Suite *
suite_booking(void)
{
	Suite *suite = suite_create("booking");
	TCase *tc = tcase_create("booking");

	tcase_add_test(tc, best_of_usable_servers);
	tcase_add_test(tc, none_is_chosen);
	tcase_add_test(tc, worker_or_server_is_given);
	tcase_add_test(tc, shadow_is_counted);
	tcase_add_test(tc, missed_is_booked_late);
	tcase_add_test(tc, plain_is_load);
	tcase_add_test(tc, another_prefills);
	tcase_add_test(tc, late_where_another_prefills);
	tcase_add_test(tc, another_try);
	suite_add_tcase(suite, tc);
	return suite;
}
