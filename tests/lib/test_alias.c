/* SPDX-License-Identifier: BSD-2-Clause */
/* test_alias.c - the table of the names that engines give their blocks. */
#include "alias.h"

#include "alias_place.h"
#include "inner.h"

enum { ALIASES = 400 };

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.event_blocks = ALIASES;
	region_of(&o);
}

/* Streams end, so that the region has no aliases without one. */
static void
teardown(void)
{
	uint32_t i;

	for (i = 1; i <= k->layout.names; i++)
		alias_end(k, stream_at(k, i));
	region_end();
}

/* A life of a worker. */
static uint32_t
live(uint16_t worker)
{
	uint32_t life = alias_life(k);

	ck_assert_uint_gt(life, 0);
	alias_end(k, stream_at(k, worker));
	write_once(stream_at(k, worker)->life, life);
	return life;
}

static uint32_t
add(uint16_t worker, uint64_t name, uint32_t parent)
{
	struct alias a = { .name = name, .sequence = name + 1,
		.parent = parent, .worker = worker };

	a.life = stream_at(k, worker)->life;
	return alias_add(k, &a);
}

static bool
sound(void)
{
	uint32_t *children = calloc(ALIASES + 1, sizeof(*children));
	bool good;

	ck_assert_ptr_nonnull(children);
	good = alias_sound(k, children);
	free(children);
	return good;
}

START_TEST(found_by_life_and_name)
{
	uint32_t one = live(1), two = live(2), a, b, c;

	a = add(1, 7, 0);
	b = add(1, 8, a);
	c = add(2, 7, 0);
	ck_assert(a != 0 && b != 0 && c != 0 && a != c);
	ck_assert_uint_eq(alias_find(k, one, 7), a);
	ck_assert_uint_eq(alias_find(k, one, 8), b);
	ck_assert_uint_eq(alias_find(k, two, 7), c);
	ck_assert_uint_eq(alias_find(k, two, 8), 0);
	ck_assert_uint_eq(alias_find(k, 0, 7), 0);
	ck_assert_uint_eq(alias_at(k, b)->sequence, 9);
	ck_assert_uint_eq(alias_at(k, a)->children, 1);
	ck_assert_uint_eq(stream_at(k, 1)->aliases, 2);
	ck_assert(sound());
	alias_drop(k, a); /* it has a child */
	ck_assert_uint_eq(alias_find(k, one, 7), a);
	alias_drop(k, b);
	ck_assert_uint_eq(alias_find(k, one, 8), 0);
	ck_assert_uint_eq(alias_at(k, a)->children, 0);
	ck_assert(sound());
}
END_TEST

/* It reads nothing but those names, in either direction. */
START_TEST(loading_ahead_changes_nothing)
{
	uint64_t *names = malloc(40 * sizeof(*names));
	uint32_t life = live(1), i, root = add(1, 1000, 0);

	ck_assert_ptr_nonnull(names);
	for (i = 0; i < 40; i++) {
		names[i] = 7 * i;
		ck_assert_uint_gt(add(1, names[i], root), 0);
	}
	for (i = 0; i < 40; i++) {
		alias_prefetch(k, life, &names[i], 40 - i, 1);
		alias_prefetch(k, life, &names[i], i + 1, -1);
	}
	free(names);
	ck_assert(sound());
}
END_TEST

/* What lived before is found when there is no other room. */
START_TEST(the_dead_make_room)
{
	uint32_t i, life, root;

	for (life = 0; life < 5; life++) {
		(void)live(1);
		ck_assert(alias_reclaim(k, ALIASES - 20));
		root = add(1, 1, 0);
		for (i = 2; i <= ALIASES - 20; i++)
			ck_assert_uint_gt(add(1, i, root), 0);
		ck_assert(sound());
	}
}
END_TEST

/* A few that are dead behind many that live. */
START_TEST(the_last_dead_are_found)
{
	uint32_t i;

	(void)live(1);
	(void)live(2);
	for (i = 1; i <= ALIASES - 10; i++)
		ck_assert_uint_gt(add(1, i, 0), 0);
	for (; i <= ALIASES; i++)
		ck_assert_uint_gt(add(2, i, 0), 0);
	alias_end(k, stream_at(k, 2));
	ck_assert_uint_eq(k->region->alias_dead, 10);
	ck_assert(!alias_at_hand(k, 1));
	ck_assert_uint_eq(add(1, i, 0), 0);
	ck_assert(alias_reclaim(k, 10));
	ck_assert(alias_at_hand(k, 10) && !alias_at_hand(k, 11));
	for (; i <= ALIASES + 10; i++)
		ck_assert_uint_gt(add(1, i, 0), 0);
	ck_assert_uint_eq(k->region->alias_dead, 0);
	ck_assert(alias_reclaim(k, 1)); /* all that was to be had */
	ck_assert_uint_eq(add(1, i, 0), 0);
	ck_assert(sound());
}
END_TEST

/* A call looks at as few as it needs, and at most at its bound. */
START_TEST(reclaimed_in_parts)
{
	enum { MANY = 40000, LOOKS = 16384 };
	struct kvr_options o = small_options();
	uint32_t i;

	region_end();
	o.event_blocks = MANY;
	o.region_bytes = 128 << 10;
	o.region_bytes += MANY * 44;
	region_of(&o);
	(void)live(1);
	(void)live(2);
	ck_assert(alias_at_hand(k, MANY) && !alias_at_hand(k, MANY + 1));
	for (i = 1; i <= MANY; i++)
		ck_assert_uint_gt(add(i <= 100 || i > MANY - 10 ? 2 : 1, i,
		    0), 0);
	ck_assert(alias_reclaim(k, 7)); /* nothing is dead */
	alias_end(k, stream_at(k, 2));
	ck_assert_uint_eq(k->region->alias_dead, 110);
	k->region->counts.steps = 0;
	ck_assert(alias_reclaim(k, 1));
	ck_assert_uint_eq(k->region->alias_sweep, 64);
	ck_assert_uint_eq(k->region->alias_dead, 110 - 64);
	ck_assert_uint_eq(k->region->counts.steps, 64 + 64 / 16);
	ck_assert(alias_reclaim(k, 65));
	ck_assert_uint_eq(k->region->alias_sweep, 64 + 130);
	ck_assert_uint_eq(k->region->alias_dead, 10);
	ck_assert(!alias_reclaim(k, 101));
	ck_assert_uint_eq(k->region->alias_sweep, 64 + 130 + LOOKS);
	ck_assert(!alias_reclaim(k, 101));
	ck_assert_uint_eq(k->region->alias_dead, 10);
	ck_assert(alias_reclaim(k, 101));
	ck_assert_uint_eq(k->region->alias_dead, 0);
	ck_assert_uint_le(k->region->counts.steps, (64 + 130 + 3 * LOOKS) / 16 +
	    110 + 40);
	ck_assert(alias_at_hand(k, 110) && !alias_at_hand(k, 111));
	k->region->counts.steps = 0;
}
END_TEST

/* A call that needs many looks at no more than until it has them. */
START_TEST(reclaimed_until_there_is_enough)
{
	uint32_t i;

	(void)live(1);
	(void)live(2);
	for (i = 1; i <= ALIASES; i++)
		ck_assert_uint_gt(add(i % 4 == 0 ? 2 : 1, i, 0), 0);
	alias_end(k, stream_at(k, 2));
	ck_assert_uint_eq(k->region->alias_dead, 100);
	ck_assert(alias_reclaim(k, 40)); /* twice 80, some of them dead */
	ck_assert_uint_eq(k->region->alias_sweep, 160);
	ck_assert_uint_eq(k->region->alias_dead, 60);
	ck_assert(alias_reclaim(k, 60)); /* once is enough */
	ck_assert_uint_eq(k->region->alias_sweep, 160 + 120);
	ck_assert_uint_eq(k->region->alias_dead, 30);
	ck_assert(alias_reclaim(k, 30)); /* there were enough */
	ck_assert_uint_eq(k->region->alias_sweep, 160 + 120 + 64);
	ck_assert_uint_eq(k->region->alias_dead, 14);
	ck_assert(sound());
}
END_TEST

/*
 * In a full table with two lives, one ended, the count of dead is too high,
 * too low, zero, or too low for one stream: no call waits for ever.
 */
START_TEST(what_is_miscounted_ends)
{
	static const uint32_t counts[] = { 200, 201, UINT32_MAX, 199, 0, 200 };
	uint32_t i;

	(void)live(1);
	(void)live(2);
	for (i = 1; i <= ALIASES; i++)
		ck_assert_uint_gt(add(i % 2 == 0 ? 2 : 1, i, 0), 0);
	alias_end(k, stream_at(k, 2));
	k->region->alias_dead = counts[_i];
	if (_i == 5)
		stream_at(k, 1)->aliases--;
	if (_i == 0) { /* it is right */
		ck_assert(alias_reclaim(k, 201));
		ck_assert(!region_broken(k));
		ck_assert(alias_at_hand(k, 200));
		return;
	}
	ck_assert(!alias_reclaim(k, 201));
	ck_assert(region_broken(k));
	k->region->counts.steps = 0;
	looks_set(k, 0);
	alias_empty(k);
	stream_at(k, 1)->aliases = 0;
	ck_assert(alias_reclaim(k, ALIASES));
}
END_TEST

/* A dead one that is in no bucket ends the search at once. */
START_TEST(the_search_ends_at_damage)
{
	uint32_t i;

	(void)live(1);
	for (i = 1; i <= ALIASES; i++)
		ck_assert_uint_gt(add(1, i, 0), 0);
	alias_end(k, stream_at(k, 1));
	for (i = 0; i < ALIASES; i++)
		if (k->alias_buckets[i] == 3)
			k->alias_buckets[i] = alias_at(k, 3)->next;
	for (i = 1; i <= ALIASES; i++)
		if (alias_at(k, i)->next == 3)
			alias_at(k, i)->next = alias_at(k, 3)->next;
	ck_assert(!alias_reclaim(k, 70));
	ck_assert(region_broken(k));
	ck_assert_uint_eq(k->region->alias_sweep, 3);
	k->region->counts.steps = 0;
	looks_set(k, 0);
	alias_empty(k);
}
END_TEST

/* A miscount makes one call return that it is to be repeated, and no more. */
START_TEST(a_miscount_costs_a_call)
{
	struct kvr_event_batch b = { .size = sizeof(b) };
	uint64_t names[] = { 1, 2, 3 };
	uint32_t tokens[] = { 1, 2, 3 }, i;
	struct kvr_worker facts;
	struct kvr_event e;

	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	(void)live(2);
	for (i = 1; i <= ALIASES; i++)
		ck_assert_uint_gt(add(2, i, 0), 0);
	if (_i == 0) {
		k->region->alias_dead = 5; /* and none is */
	} else {
		alias_end(k, stream_at(k, 2));
		k->region->alias_dead = 0; /* and all are */
	}
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 1;
	e.hashes = e.tokens = 3;
	ck_assert_int_eq(kvr_events_apply(k, id[0], &b, &e, sizeof(e), 1,
	    names, 3, tokens, 3, 1, 0, NULL), KVR_EBUSY);
	ck_assert_uint_eq(stats().recoveries, 1);
	ck_assert_int_eq(kvr_events_apply(k, id[0], &b, &e, sizeof(e), 1,
	    names, 3, tokens, 3, 1, 0, NULL), KVR_OK);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(worker_stats(0).events_blocks, 4);
	region_sound();
	ck_assert_int_eq(kvr_events_off(k, id[0]), KVR_OK);
}
END_TEST

/* Records that were emptied and not used since belong to no life. */
START_TEST(what_was_emptied_is_not_dead)
{
	uint32_t i, life;

	(void)live(1);
	for (i = 1; i <= 50; i++)
		ck_assert_uint_gt(add(1, i, 0), 0);
	alias_end(k, stream_at(k, 1));
	alias_empty(k);
	for (life = 0; life < 20; life++) {
		(void)live(1);
		ck_assert(alias_reclaim(k, 4));
		for (i = 1; i <= 4; i++)
			ck_assert_uint_gt(add(1, i, 0), 0);
	}
	ck_assert(!region_broken(k));
	ck_assert(sound());
}
END_TEST

START_TEST(a_full_table_refuses)
{
	uint32_t i;

	(void)live(1);
	for (i = 1; i <= ALIASES; i++)
		ck_assert_uint_gt(add(1, i, 0), 0);
	ck_assert_uint_eq(add(1, i, 0), 0);
	ck_assert(sound());
	alias_drop(k, alias_find(k, stream_at(k, 1)->life, 5));
	ck_assert_uint_gt(add(1, i, 0), 0);
	ck_assert(sound());
}
END_TEST

/* Each damage differs from any state that calls alone can make. */
START_TEST(damage_is_seen)
{
	uint32_t life = live(1), a = add(1, 7, 0), b = add(1, 8, a);
	const struct alias was = *alias_at(k, b);

	ck_assert(sound());
	alias_at(k, b)->life = life + 9;
	ck_assert(!sound());
	*alias_at(k, b) = was;
	alias_at(k, b)->worker = 0;
	ck_assert(!sound());
	*alias_at(k, b) = was;
	alias_at(k, b)->parent = ALIASES + 1;
	ck_assert(!sound());
	*alias_at(k, b) = was;
	alias_at(k, a)->children = 0;
	ck_assert(!sound());
	alias_at(k, a)->children = 1;
	alias_at(k, a)->copies = 1; /* a root has none */
	ck_assert(!sound());
	alias_at(k, a)->copies = 0;
	alias_at(k, b)->next = b;
	ck_assert(!sound());
	*alias_at(k, b) = was;
	k->region->alias_fresh = ALIASES + 2;
	ck_assert(!sound());
	k->region->alias_fresh = 3;
	stream_at(k, 1)->aliases = 1;
	ck_assert(!sound());
	stream_at(k, 1)->aliases = 2;
	ck_assert(sound());
	k->region->alias_dead = 1;
	ck_assert(!sound());
	k->region->alias_dead = 0;
	alias_at(k, 0)->name = 1; /* record 0 stands for none */
	ck_assert(!sound());
	alias_end(k, stream_at(k, 1));
	alias_empty(k);
	ck_assert(sound());
	ck_assert_uint_eq(alias_find(k, life, 7), 0);
}
END_TEST

/* Links that cannot be: each search ends, and finds nothing. */
START_TEST(bent_links_end)
{
	uint32_t life = live(1), a = add(1, 7, 0), b, i;
	uint32_t *head = NULL;

	for (i = 0; i < ALIASES; i++)
		if (k->alias_buckets[i] == a)
			head = &k->alias_buckets[i];
	ck_assert_ptr_nonnull(head);
	alias_at(k, a)->next = a; /* a ring */
	for (b = 8; b < 2000; b++)
		ck_assert_uint_eq(alias_find(k, life, b), 0);
	*head = ALIASES + 5;
	ck_assert_uint_eq(alias_find(k, life, 7), 0);
	alias_at(k, a)->next = 0;
	*head = 0; /* it is in no bucket */
	alias_drop(k, 0);
	alias_drop(k, a);
	ck_assert(region_broken(k));
	ck_assert_uint_eq(add(1, 9, 0), 0);
	k->region->counts.steps = 0;
	looks_set(k, 0);
	for (i = 0; i < 2; i++) { /* none, and one that is in use */
		k->region->alias_free = i == 0 ? ALIASES + 1 : a;
		ck_assert_uint_eq(add(1, 9, 0), 0);
		ck_assert(region_broken(k));
		k->region->counts.steps = 0;
		looks_set(k, 0);
	}
	k->region->alias_free = 0;
	/* one that is dead is not dropped by its number */
	b = add(1, 10, 0);
	(void)live(1);
	alias_drop(k, b);
	ck_assert_uint_eq(alias_find(k, life, 10), b);
	k->region->alias_life = UINT32_MAX;
	ck_assert_uint_eq(alias_life(k), 0);
	k->region->alias_life = life + 1;
	alias_end(k, stream_at(k, 1));
	alias_empty(k);
}
END_TEST

START_TEST(other_damage_is_seen)
{
	uint32_t life = live(1), a = add(1, 7, 0), b = add(1, 8, a);
	const struct alias was = *alias_at(k, b);

	alias_at(k, b)->worker = 0;
	ck_assert(!sound());
	*alias_at(k, b) = was;
	alias_at(k, b)->life = 0;
	ck_assert(!sound());
	*alias_at(k, b) = was;
	alias_at(k, b)->name++;
	ck_assert(!sound());
	*alias_at(k, b) = was;
	k->region->alias_sweep = ALIASES + 1;
	ck_assert(!sound());
	k->region->alias_sweep = 0;
	k->region->alias_free = b; /* it is in use */
	ck_assert(!sound());
	k->region->alias_free = ALIASES + 1;
	ck_assert(!sound());
	k->region->alias_free = 0;
	k->region->alias_fresh = b; /* it was never used */
	ck_assert(!sound());
	k->region->alias_fresh = 3;
	k->region->alias_life = life - 1;
	ck_assert(!sound());
	k->region->alias_life = life;
	ck_assert(sound());
	alias_drop(k, b);
	ck_assert(sound());
	alias_at(k, b)->next = b; /* free ones in a ring */
	ck_assert(!sound());
	alias_at(k, b)->next = 0;
	ck_assert(sound());
}
END_TEST

START_TEST(a_region_without_any)
{
	struct kvr_options o = small_options();

	region_end();
	region_of(&o);
	ck_assert_uint_eq(alias_life(k), 0);
	ck_assert_uint_eq(alias_find(k, 1, 7), 0);
}
END_TEST

Suite *suite_alias(void);

Suite *
suite_alias(void)
{
	Suite *s = suite_create("alias");
	TCase *t = tcase_create("alias");

	tcase_add_checked_fixture(t, setup, teardown);
	suite_add_tcase(s, t);
	tcase_add_test(t, found_by_life_and_name);
	tcase_add_test(t, loading_ahead_changes_nothing);
	tcase_add_test(t, the_dead_make_room);
	tcase_add_test(t, the_last_dead_are_found);
	tcase_add_test(t, reclaimed_in_parts);
	tcase_add_test(t, reclaimed_until_there_is_enough);
	tcase_add_loop_test(t, what_is_miscounted_ends, 0, 6);
	tcase_add_test(t, the_search_ends_at_damage);
	tcase_add_loop_test(t, a_miscount_costs_a_call, 0, 2);
	tcase_add_test(t, what_was_emptied_is_not_dead);
	tcase_add_test(t, a_full_table_refuses);
	tcase_add_test(t, damage_is_seen);
	tcase_add_test(t, other_damage_is_seen);
	tcase_add_test(t, bent_links_end);
	tcase_add_test(t, a_region_without_any);
	return s;
}
