/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_simulate_exchange.c - several routers: the choice among them for a
 * request, and messages between them, late or lost.
 */
#include "simulated.h"

#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "simulate_in.h"
#include "simulate_report.h"

#define MS INT64_C(1000000)

/* Balanced, by feedback. */
enum { FEEDBACK = 11 };

static struct simulate_options
routers(int kind, uint32_t n, enum simulate_exchange exchange)
{
	struct simulate_options o = options_of(kind, 4, 100000);

	o.replicas = n;
	o.exchange = exchange;
	return o;
}

/* Open leases of all routers. */
static uint64_t
open_leases(const struct simulation *s)
{
	struct kvr_stats t = { .size = sizeof(t) };
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < s->options.replicas; i++) {
		ck_assert_int_eq(kvr_stats_get(s->routers[i].k, &t), KVR_OK);
		n += t.leases;
	}
	return n;
}

/* --------------------------------------------------------------- output --- */

/* The report of a run, to be freed. */
static char *
report_of(const struct simulate_options *o)
{
	struct simulate_row row = { .name = "policy" };
	struct setup u;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(f);
	begin(&u, o, 512);
	simulate_sample(&u, 150, 2);
	row.simulation = u.s;
	ck_assert_int_eq(simulate_kv(f, &row, 1), KVR_OK);
	ck_assert_int_eq(fclose(f), 0);
	end(&u);
	return text;
}

/* A single router sends nothing. */
START_TEST(one_router)
{
	struct simulate_options o = options_of(_i, 4, 100000);
	char *plain = report_of(&o), *same;

	o.exchange = (enum simulate_exchange)(_i % SIMULATE_EXCHANGES);
	o.exchange_delay_ns = 50 * MS;
	o.exchange_loss = 0.5;
	o.dealing = (enum simulate_dealing)(_i % SIMULATE_DEALINGS);
	o.repair = _i % 2 == 0;
	o.degrade = _i % 4 < 2;
	same = report_of(&o);
	ck_assert_str_eq(plain, same);
	free(plain);
	free(same);
}
END_TEST

/* A seed repeats all of it; another one loses other messages. */
START_TEST(seeds_repeat)
{
	struct simulate_options o = routers(FEEDBACK, 3,
	    (enum simulate_exchange)_i);
	char *a, *b, *c;

	o.exchange_delay_ns = 20 * MS;
	o.exchange_loss = 0.1;
	o.dealing = SIMULATE_DEALT_RANDOM;
	a = report_of(&o);
	b = report_of(&o);
	o.seed = 2;
	c = report_of(&o);
	ck_assert_str_eq(a, b);
	ck_assert_str_ne(a, c);
	free(a);
	free(b);
	free(c);
}
END_TEST

/* ---------------------------------------------------------------- dealt --- */

/* However requests are dealt, routers that know all decide as one. */
START_TEST(dealing_does_not_matter)
{
	struct simulate_options o = routers(_i % KINDS, 1, SIMULATE_ALL);
	struct simulate_totals a, b;
	int64_t x, y;

	a = totals_of(&o, &x);
	o.replicas = 3;
	o.dealing = (enum simulate_dealing)(_i / KINDS);
	b = totals_of(&o, &y);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	ck_assert_int_eq(x, y);
}
END_TEST

/* Sessions by name, or by their first tokens, keep to a router each. */
START_TEST(sessions_keep_to_a_router)
{
	struct simulate_options o = routers(FEEDBACK, 4, SIMULATE_NOTHING);
	uint64_t ids[2] = { 0, 0 }, i, got[4] = { 0 };
	struct trace_request q = { .tokens = 1024, .output_length = 1,
	    .n_ids = 2, .ids = ids };
	struct setup u;

	o.dealing = SIMULATE_DEALT_STICKY;
	begin(&u, &o, 512);
	for (i = 0; i < 80; i++) {
		q.session = _i == 0 ? 0 : i % 40 + 1;
		ids[1] = i % 40;
		give(&u, &q, (int64_t)i * 1000 * MS);
	}
	for (i = 0; i < 40; i++) {
		ck_assert_uint_eq(u.s->rides[i].router,
		    u.s->rides[i + 40].router);
		got[u.s->rides[i].router]++;
	}
	for (i = 0; i < 4; i++)
		ck_assert_uint_gt(got[i], 2);
	end(&u);
}
END_TEST

/* ------------------------------------------------ contents of messages --- */

/*
 * B predicts these tokens and this load for a prompt that A sent while it
 * still runs.
 */
static const struct {
	enum simulate_exchange exchange;
	uint64_t predicted;
	uint64_t requests;
} told[] = {
	{ SIMULATE_NOTHING, 0, 0 },
	{ SIMULATE_ALL, 1024, 1 },
	{ SIMULATE_PREFIXES, 1024, 0 },
	{ SIMULATE_LOADS, 0, 1 },
	{ SIMULATE_PREFIXES_LOADS, 1024, 1 },
	{ SIMULATE_BOOKINGS, 0, 1 }
};

START_TEST(what_is_told)
{
	static const uint64_t ids[] = { 1, 2, 3 };
	struct simulate_options o = routers(3, 2, told[_i % 6].exchange);
	struct kvr_worker_stats w = { .size = sizeof(w) };
	const struct router *b;
	uint64_t id = 0;
	int64_t now;
	struct setup u;

	o.workers = 1;
	o.exchange_delay_ns = _i < 6 ? 0 : 20 * MS;
	begin(&u, &o, 512);
	give_simple(&u, 1024, 500, ids, 0);
	b = &u.s->routers[1];
	ck_assert_int_eq(simulate_until(u.s, 300 * MS, &now), KVR_OK);
	ck_assert_int_eq(kvr_worker_next(b->k, &id), KVR_OK);
	ck_assert_int_eq(kvr_worker_stats_get(b->k, id, &w), KVR_OK);
	ck_assert_uint_eq(w.requests, told[_i % 6].requests);
	ck_assert_uint_eq(b->booked[0].requests, told[_i % 6].requests);
	give_simple(&u, 1200, 1, ids, 300 * MS);
	ck_assert_uint_eq(u.s->rides[1].predicted, told[_i % 6].predicted);
	ck_assert_int_eq(simulate_check(u.s), KVR_OK);
	end(&u);
}
END_TEST

/* The hashes of a message make the same prompt as its tokens. */
START_TEST(hashes_are_enough)
{
	struct simulate_options o = routers(_i, 3, SIMULATE_ALL);
	struct simulate_totals a, b;
	uint64_t apart;
	int64_t x, y;

	a = totals_of(&o, &x);
	o.exchange_delay_ns = 1;
	b = totals_of(&o, &y);
	ck_assert_uint_eq(a.hit_tokens, b.hit_tokens);
	/* ages depend on the blocks in use when such a request comes */
	apart = a.predicted_tokens > b.predicted_tokens ? a.predicted_tokens -
	    b.predicted_tokens : b.predicted_tokens - a.predicted_tokens;
	ck_assert_uint_le(apart, _i >= 9 && _i <= FEEDBACK
	    ? a.predicted_tokens / 100000 : 0);
	ck_assert_int_eq(x, y);
}
END_TEST

/* Each request is four messages to each other router, and its blocks. */
START_TEST(messages_are_counted)
{
	static const uint64_t ids[] = { 1, 2, 3 };
	struct simulate_options o = routers(FEEDBACK, 3, SIMULATE_ALL);
	struct setup u;

	o.exchange_loss = _i == 0 ? 0 : 1;
	begin(&u, &o, 512);
	give_simple(&u, 1024, 1000, ids, 0); /* two blocks of output */
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	ck_assert_uint_eq(simulate_exchanged(u.s)->messages -
	    (_i == 0 ? 0 : u.s->roll_turn * 2), 2 * (3 + 2));
	ck_assert_uint_eq(simulate_exchanged(u.s)->lost, _i == 0 ? 0 :
	    simulate_exchanged(u.s)->messages);
	end(&u);
}
END_TEST

/* ------------------------------------------------------- late and lost --- */

/* Lost ends leave leases open; a comparison of them each second does not. */
START_TEST(lost_ends)
{
	struct simulate_options o = routers(FEEDBACK, 3, SIMULATE_ALL);
	uint64_t open[2];
	struct setup u;

	o.exchange_loss = 0.1;
	for (o.repair = false;; o.repair = true) {
		begin(&u, &o, 512);
		simulate_sample(&u, 300, 1);
		open[o.repair] = open_leases(u.s);
		ck_assert(o.repair ==
		    (simulate_exchanged(u.s)->repaired > 0));
		ck_assert_int_eq(simulate_check(u.s), KVR_OK);
		end(&u);
		if (o.repair)
			break;
	}
	ck_assert_uint_gt(open[0], 30);
	ck_assert_uint_lt(open[1], 8);
}
END_TEST

/* A late message brings a prefix and no load, unless all is applied. */
START_TEST(too_late)
{
	static const uint64_t ids[] = { 1, 2, 3 };
	struct simulate_options o = routers(3, 2, _i < 2 ? SIMULATE_ALL :
	    SIMULATE_PREFIXES_LOADS);
	int64_t now;
	struct setup u;

	o.workers = 1;
	o.degrade = _i % 2 == 0;
	o.exchange_delay_ns = 1000 * MS;
	begin(&u, &o, 512);
	give_simple(&u, 1024, 500, ids, 0);
	ck_assert_int_eq(simulate_until(u.s, 1500 * MS, &now), KVR_OK);
	ck_assert_uint_eq(u.s->routers[1].booked[0].requests, !o.degrade);
	ck_assert_uint_eq(simulate_exchanged(u.s)->late > 0, o.degrade);
	ck_assert_int_eq(simulate_check(u.s), KVR_OK);
	give_simple(&u, 1200, 1, ids, 1500 * MS);
	ck_assert_uint_eq(u.s->rides[1].predicted, 1024);
	end(&u);
}
END_TEST

/* The more requests, the less delay: 100 ms is late for one in 10 ms only. */
START_TEST(late_by_pace)
{
	struct simulate_options o = routers(3, 2, SIMULATE_ALL);
	uint64_t ids[] = { 0, 0, 0 }, i, pause = _i == 0 ? 10 : 1000;
	struct setup u;

	o.exchange_delay_ns = 100 * MS;
	begin(&u, &o, 512);
	for (i = 0; i < 200; i++) {
		ids[0] = i;
		give_simple(&u, 1024, 1, ids, (int64_t)(i * pause) * MS);
	}
	if (_i == 0)
		ck_assert_uint_gt(simulate_exchanged(u.s)->late, 50);
	else
		ck_assert_uint_eq(simulate_exchanged(u.s)->late, 0);
	ck_assert_int_eq(simulate_check(u.s), KVR_OK);
	end(&u);
}
END_TEST

/* --------------------------------------------------------- consistency --- */

/*
 * Every step is checked: the blocks, bookings and counts of all routers, while
 * messages are late and lost and workers die and join.
 */
START_TEST(exchange_checked)
{
	static const int64_t delays[] = { 0, 60 * MS, 1500 * MS };
	static const int of[] = { 2, 5, 8, FEEDBACK, 13 };
	struct simulate_options o = routers(of[_i / 18], 3,
	    (enum simulate_exchange)(_i % 6));
	const struct simulate_totals *t;
	struct simulate_change c = { .factor = 1, .worker = 1 };
	struct setup u;

	o.exchange_delay_ns = delays[_i / 6 % 3];
	o.exchange_loss = 0.1;
	o.degrade = _i % 2 == 0;
	o.capacity_tokens = 40000; /* refuses some */
	o.check = true;
	for (c.at = 1500 * MS; c.at < 12000 * MS; c.at += 2000 * MS) {
		c.kind = c.kind == SIMULATE_KILL ? SIMULATE_JOIN :
		    SIMULATE_KILL;
		ck_assert(simulate_add_change(&o, &c));
	}
	begin(&u, &o, 512);
	simulate_sample(&u, test_amount(40), 4);
	t = simulate_totals(u.s);
	ck_assert_uint_eq(t->finished + t->lost + t->refused + t->empty,
	    t->requests);
	ck_assert_uint_gt(t->finished, 0);
	end(&u);
}
END_TEST

START_TEST(exchange_memory)
{
	struct simulate_options o = routers(FEEDBACK, 2, (enum
	    simulate_exchange)_i);
	struct kvr_options region;

	o.exchange_delay_ns = 1;
	region_of(&region, 4, 512);
	(void)made_without_memory(&o, &region, 200);
}
END_TEST

Suite *suite_simulate_exchange(void);

Suite *
suite_simulate_exchange(void)
{
	Suite *s = suite_create("simulate_exchange");
	TCase *c = tcase_create("simulate_exchange");

	tcase_add_loop_test(c, one_router, 0, KINDS);
	tcase_add_loop_test(c, seeds_repeat, 0, SIMULATE_EXCHANGES);
	tcase_add_loop_test(c, dealing_does_not_matter, 0,
	    KINDS * SIMULATE_DEALINGS);
	tcase_add_loop_test(c, sessions_keep_to_a_router, 0, 2);
	tcase_add_loop_test(c, what_is_told, 0, 12);
	tcase_add_loop_test(c, hashes_are_enough, 3, KINDS);
	tcase_add_loop_test(c, messages_are_counted, 0, 2);
	tcase_add_test(c, lost_ends);
	tcase_add_loop_test(c, too_late, 0, 4);
	tcase_add_loop_test(c, late_by_pace, 0, 2);
	tcase_add_loop_test(c, exchange_checked, 0, 5 * 18);
	tcase_add_loop_test(c, exchange_memory, 0, SIMULATE_EXCHANGES);
	suite_add_tcase(s, c);
	return s;
}
