/* SPDX-License-Identifier: BSD-2-Clause */
/* test_waits.c - requests of several processes wait, and none overtakes. */
#include "test.h"

#include <signal.h>
#include <sys/wait.h>

#include "servers.h"
#include "waits.h"

#define MS INT64_C(1000000)

enum { REQUESTS = 80 };

/* A request, and the servers that it has tried, as bits. */
struct request {
	struct wait wait;
	unsigned tried;
};

static struct servers a, b;
static struct waits of_a, of_b;
static struct request r[REQUESTS];
static int64_t now;

static bool
has_tried(const struct wait *wait, size_t i)
{
	return (((const struct request *)wait)->tried >> i & 1) != 0;
}

static void
waits_make(struct waits *w, struct servers *s)
{
	s->fleet.queue = REQUESTS;
	*w = (struct waits){ .has_tried = has_tried,
	    .places = { .fleet = &s->fleet, .life = 1,
	        .yield_ms = PLACES_YIELD_MS } };
}

static void
begin(size_t n)
{
	now = 1000000 * MS;
	memset(r, 0, sizeof(r));
	servers_begin(&a, n, 1);
	servers_join(&b, &a);
	waits_make(&of_a, &a);
	waits_make(&of_b, &b);
}

static void
end(void)
{
	kvr_free(b.fleet.kvr);
	servers_end(&a);
}

/* The request of this place comes, and waits. */
static struct wait *
comes(struct waits *w, size_t i)
{
	now += MS;
	waits_yield(w, &r[i].wait, now);
	ck_assert(waits_room(w, now));
	waits_add(w, &r[i].wait, now);
	return &r[i].wait;
}

/* All servers are full, but for these bits. */
static void
room_is(struct servers *s, unsigned room)
{
	size_t i;

	for (i = 0; i < s->fleet.n_known; i++) {
		s->known[i].usable = (room >> i & 1) != 0;
		s->known[i].full = !s->known[i].usable;
	}
}

START_TEST(plain_requests_go_in_the_order_in_which_they_came)
{
	struct turns t = { .stuck = NULL };

	begin(2);
	(void)comes(&of_a, 0);
	(void)comes(&of_a, 1);
	ck_assert_uint_eq(places_length(&of_a.places, now), 2);
	room_is(&a, 1);
	ck_assert(waits_lets(&of_a, &r[0].wait, now));
	ck_assert(!waits_lets(&of_a, &r[1].wait, now));
	ck_assert_ptr_eq(waits_turn(&of_a, &t), &r[0].wait);
	waits_remove(&of_a, &r[0].wait, now);
	waits_remove(&of_a, &r[0].wait, now);
	waits_tried(&t, &r[0].wait, true);
	ck_assert_ptr_eq(waits_turn(&of_a, &t), &r[1].wait);
	waits_tried(&t, &r[1].wait, false);
	/* It waits on, so no younger one is tried. */
	ck_assert_ptr_null(waits_turn(&of_a, &t));
	ck_assert(!waits_more(&t));
	waits_remove(&of_a, &r[1].wait, now);
	ck_assert_uint_eq(places_length(&of_a.places, now), 0);
	ck_assert_uint_eq(a.common->shared.queues[0].pid, 0);
	end();
}
END_TEST

START_TEST(older_ones_of_another_process_go_first)
{
	begin(2);
	(void)comes(&of_b, 0);
	(void)comes(&of_a, 1);
	ck_assert(!waits_lets(&of_a, &r[1].wait, now));
	ck_assert(waits_lets(&of_b, &r[0].wait, now));
	/* One that is new waits for none but older ones. */
	now += MS;
	waits_yield(&of_a, &r[2].wait, now);
	ck_assert(!waits_lets(&of_a, &r[2].wait, now));
	/* A process that is stopped delays no other for long. */
	now += PLACES_YIELD_MS * MS;
	ck_assert(waits_lets(&of_a, &r[1].wait, now));
	waits_write(&of_b, now);
	ck_assert(!waits_lets(&of_a, &r[1].wait, now));
	/* Another configuration has servers of its own. */
	of_a.places.life = 2;
	ck_assert(waits_lets(&of_a, &r[1].wait, now));
	end();
}
END_TEST

START_TEST(a_server_that_is_wanted_is_full_for_all_that_come_later)
{
	begin(3);
	r[0].wait.kept = true;
	r[0].wait.wants = a.known[1].key;
	r[0].wait.wants_at = 1;
	(void)comes(&of_b, 0);
	ck_assert_ptr_eq(r[0].wait.line, &of_b.others);
	room_is(&a, 7);
	now += MS;
	waits_yield(&of_a, &r[1].wait, now);
	ck_assert(a.known[0].usable && a.known[2].usable);
	ck_assert(a.known[1].full && !a.known[1].usable);
	/* It goes anywhere else. */
	ck_assert(waits_lets(&of_a, &r[1].wait, now));
	end();
}
END_TEST

START_TEST(one_that_has_failed_wants_any_other)
{
	begin(3);
	r[0].wait.retried = true;
	r[0].tried = 2;
	a.known[2].closed = b.known[2].closed = true;
	(void)comes(&of_b, 0);
	room_is(&a, 7);
	now += MS;
	waits_yield(&of_a, &r[1].wait, now);
	ck_assert(a.known[0].full);
	ck_assert(a.known[1].usable && a.known[2].usable);
	end();
}
END_TEST

START_TEST(others_do_not_stand_in_each_others_way)
{
	struct turns t = { .stuck = NULL };
	struct wait *found;
	size_t i;

	begin(3);
	for (i = 0; i < 3; i++) {
		r[i].wait.kept = true;
		r[i].wait.wants = a.known[i].key;
		r[i].wait.wants_at = i;
		(void)comes(&of_a, i);
	}
	room_is(&a, 4);
	found = waits_turn(&of_a, &t);
	ck_assert_ptr_eq(found, &r[2].wait);
	waits_tried(&t, found, false);
	ck_assert_ptr_null(waits_turn(&of_a, &t));
	/* A list that has changed, or a server that is down, is worth a try. */
	t = (struct turns){ .stuck = NULL };
	room_is(&a, 0);
	a.known[0].key++;
	ck_assert_ptr_eq(waits_turn(&of_a, &t), &r[0].wait);
	a.known[1].down = true;
	ck_assert_ptr_eq(waits_turn(&of_a, &t), &r[1].wait);
	end();
}
END_TEST

START_TEST(one_that_becomes_plain_changes_lines)
{
	begin(2);
	(void)comes(&of_a, 0);
	r[1].wait.kept = true;
	(void)comes(&of_a, 1);
	(void)comes(&of_a, 2);
	ck_assert_ptr_eq(r[1].wait.line, &of_a.others);
	r[1].wait.kept = false;
	waits_add(&of_a, &r[1].wait, now);
	ck_assert_ptr_eq(of_a.plain.first, &r[0].wait);
	ck_assert_ptr_eq(r[0].wait.after, &r[1].wait);
	ck_assert_ptr_eq(r[1].wait.after, &r[2].wait);
	ck_assert_ptr_eq(of_a.plain.last, &r[2].wait);
	ck_assert_ptr_null(of_a.others.first);
	ck_assert_uint_eq(of_a.n, 3);
	waits_remove(&of_a, &r[1].wait, now);
	ck_assert_ptr_eq(r[0].wait.after, &r[2].wait);
	ck_assert_ptr_eq(r[2].wait.before, &r[0].wait);
	end();
}
END_TEST

START_TEST(the_bound_is_of_all_processes)
{
	begin(2);
	a.fleet.queue = b.fleet.queue = 3;
	(void)comes(&of_a, 0);
	(void)comes(&of_b, 1);
	(void)comes(&of_b, 2);
	ck_assert(!waits_room(&of_a, now));
	ck_assert_uint_eq(places_length(&of_a.places, now), 3);
	/* One that is silent for long is dead: its place is taken over. */
	now += 30 * PLACES_YIELD_MS * MS;
	ck_assert_uint_eq(places_length(&of_a.places, now), 0);
	ck_assert(waits_room(&of_a, now));
	waits_write(&of_a, now);
	ck_assert_uint_eq(places_length(&of_a.places, now), 1);
	end();
}
END_TEST

START_TEST(places_of_a_process_that_died_are_free_in_time)
{
	pid_t child;
	int status;

	begin(2);
	child = fork();
	if (child == 0) {
		b.fleet.self = (uint64_t)getpid();
		(void)comes(&of_b, 0);
		test_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	now += MS;
	ck_assert_uint_eq(places_length(&of_a.places, now), 1);
	(void)comes(&of_a, 1);
	ck_assert(!waits_lets(&of_a, &r[1].wait, now));
	now += PLACES_YIELD_MS * MS;
	ck_assert(waits_lets(&of_a, &r[1].wait, now));
	now += 30 * PLACES_YIELD_MS * MS;
	waits_write(&of_a, now);
	ck_assert_uint_eq(places_length(&of_a.places, now), 1);
	end();
}
END_TEST

START_TEST(a_place_that_was_taken_over_is_left)
{
	begin(2);
	(void)comes(&of_a, 0);
	a.common->shared.queues[0].pid = 1;
	waits_write(&of_a, now);
	ck_assert_ptr_eq(of_a.places.place, &a.common->shared.queues[1]);
	places_leave(&of_a.places);
	places_leave(&of_a.places);
	ck_assert_uint_eq(a.common->shared.queues[0].pid, 1);
	ck_assert_uint_eq(a.common->shared.queues[1].pid, 0);
	end();
}
END_TEST

/* Milliseconds of 32 bits have gone round by then: it seems to be ahead. */
START_TEST(a_dead_process_stays_dead_for_months)
{
	const int64_t day = INT64_C(86400000) * MS;
	int days;

	begin(2);
	(void)comes(&of_b, 0);
	for (days = 1; days < 100; days++) {
		now += day;
		ck_assert_uint_eq(places_length(&of_a.places, now), 0);
		waits_yield(&of_a, &r[1].wait, now);
		ck_assert(waits_lets(&of_a, &r[1].wait, now));
		r[1].wait.since = 0;
	}
	(void)comes(&of_a, 2);
	ck_assert_ptr_eq(of_a.places.place, &a.common->shared.queues[0]);
	end();
}
END_TEST

START_TEST(without_a_place_none_waits)
{
	size_t i;

	begin(2);
	for (i = 0; i < SHARED_QUEUES; i++) {
		a.common->shared.queues[i].pid = 1;
		a.common->shared.queues[i].beat = (uint64_t)now;
	}
	ck_assert(!waits_room(&of_a, now));
	end();
}
END_TEST

START_TEST(few_are_tried_in_one_look)
{
	struct turns t = { .stuck = NULL };
	struct wait *wait;
	size_t i, n = 0;

	begin(2);
	for (i = 0; i < REQUESTS; i++)
		(void)comes(&of_a, i);
	room_is(&a, 3);
	while ((wait = waits_turn(&of_a, &t)) != NULL) {
		waits_remove(&of_a, wait, now);
		waits_tried(&t, wait, true);
		n++;
	}
	ck_assert_uint_eq(n, 64);
	ck_assert(waits_more(&t));
	end();
}
END_TEST

START_TEST(hope_is_a_server_that_may_be_free)
{
	begin(2);
	room_is(&a, 0);
	ck_assert(waits_full(&a.fleet));
	ck_assert(waits_hope(&a.fleet, &r[0].wait));
	a.known[0].full = a.known[1].full = false;
	ck_assert(!waits_hope(&a.fleet, &r[0].wait));
	ck_assert(!waits_full(&a.fleet));
	r[0].wait.kept = true;
	ck_assert(waits_hope(&a.fleet, &r[0].wait));
	r[0].wait.wants = a.known[1].key;
	a.known[0].full = true;
	ck_assert(!waits_hope(&a.fleet, &r[0].wait));
	a.known[1].full = true;
	ck_assert(waits_hope(&a.fleet, &r[0].wait));
	/* With no queue none waits, and each may go. */
	a.fleet.queue = 0;
	ck_assert(!waits_full(&a.fleet));
	waits_yield(&of_a, &r[1].wait, now);
	ck_assert_uint_eq(r[1].wait.since, 0);
	ck_assert(waits_lets(&of_a, &r[1].wait, now));
	end();
}
END_TEST

START_TEST(times_go_round)
{
	struct waits w = { .places = { .fleet = &a.fleet } };

	ck_assert_uint_eq(places_stamp(0), 1);
	ck_assert(places_before(UINT32_MAX, 5));
	ck_assert(!places_before(5, UINT32_MAX));
	ck_assert(!places_before(5, 5));
	begin(1);
	waits_prepare(&w);
	ck_assert_uint_eq(w.places.life, 1);
	waits_prepare(&w);
	ck_assert_uint_eq(w.places.life, 2);
	end();
}
END_TEST

Suite *suite_waits(void);

Suite *
suite_waits(void)
{
	Suite *suite = suite_create("waits");
	TCase *t = tcase_create("waits");

	tcase_add_test(t, plain_requests_go_in_the_order_in_which_they_came);
	tcase_add_test(t, older_ones_of_another_process_go_first);
	tcase_add_test(t,
	    a_server_that_is_wanted_is_full_for_all_that_come_later);
	tcase_add_test(t, one_that_has_failed_wants_any_other);
	tcase_add_test(t, others_do_not_stand_in_each_others_way);
	tcase_add_test(t, one_that_becomes_plain_changes_lines);
	tcase_add_test(t, the_bound_is_of_all_processes);
	tcase_add_test(t, places_of_a_process_that_died_are_free_in_time);
	tcase_add_test(t, a_place_that_was_taken_over_is_left);
	tcase_add_test(t, a_dead_process_stays_dead_for_months);
	tcase_add_test(t, without_a_place_none_waits);
	tcase_add_test(t, few_are_tried_in_one_look);
	tcase_add_test(t, hope_is_a_server_that_may_be_free);
	tcase_add_test(t, times_go_round);
	suite_add_tcase(suite, t);
	return suite;
}
