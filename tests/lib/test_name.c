/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_name.c - names, and the groups of the ranks of a name.
 *
 * test_border.c has the calls that are refused.
 */
#include "name.h"

#include "inner.h"

START_TEST(ranks_are_workers)
{
	uint64_t a, b, c;

	remove_worker(id[0]);
	remove_worker(id[1]);
	remove_worker(id[2]);
	ck_assert_int_eq(add_rank("host", 0, &a), KVR_OK);
	ck_assert_int_eq(add_rank("host", 7, &b), KVR_OK);
	ck_assert_int_eq(add_rank("host", UINT32_MAX, &c), KVR_OK);
	ck_assert_int_eq(add_rank("host", 7, &b), KVR_EEXIST);
	ck_assert_uint_eq(find_rank("host", 0), a);
	ck_assert_uint_eq(find_rank("host", 7), b);
	ck_assert_uint_eq(find_rank("host", UINT32_MAX), c);
	ck_assert_uint_eq(find_rank("host", 1), 0);
	remove_worker(b);
	ck_assert_uint_eq(find_rank("host", 7), 0);
	ck_assert_uint_eq(find_rank("host", 0), a);
	ck_assert_uint_eq(find_rank("host", UINT32_MAX), c);
}
END_TEST

/* Any bytes, of any valid length; a prefix of a name is another name. */
START_TEST(names_are_bytes)
{
	char name[KVR_NAME_MAX], back[KVR_NAME_MAX + 1];
	uint64_t worker, other;
	size_t length, got;

	remove_worker(id[0]);
	remove_worker(id[1]);
	for (length = 0; length < sizeof(name); length++)
		name[length] = (char)(length * 37);
	for (length = 2; length <= sizeof(name); length++) {
		ck_assert_int_eq(kvr_worker_add(k, name, length, NULL,
		    &worker), KVR_OK);
		ck_assert_int_eq(kvr_worker_find(k, name, length - 1, 0,
		    &other), KVR_EWORKER);
		memset(back, '#', sizeof(back));
		ck_assert_int_eq(kvr_worker_name(k, worker, back,
		    sizeof(back), &got), KVR_OK);
		ck_assert_uint_eq(got, length);
		ck_assert_mem_eq(back, name, length);
		ck_assert_int_eq(back[length], '#');
		remove_worker(worker);
	}
}
END_TEST

/* A name longer than its buffer is cut to it. */
START_TEST(name_cut_short)
{
	char back[8] = "#######";
	uint64_t worker;
	size_t got;

	remove_worker(id[0]);
	ck_assert_int_eq(add_rank("abcdef", 0, &worker), KVR_OK);
	ck_assert_int_eq(kvr_worker_name(k, worker, back, 3, &got), KVR_OK);
	ck_assert_str_eq(back, "abc####");
	ck_assert_uint_eq(got, 6);
	ck_assert_int_eq(kvr_worker_name(k, worker, NULL, 0, &got), KVR_OK);
	ck_assert_uint_eq(got, 6);
}
END_TEST

/* -------------------------------------------------------------- groups --- */

static void
overloaded_above(double tokens)
{
	struct kvr_policy policy = { .size = sizeof(policy) };

	ck_assert_int_eq(kvr_policy_get(k, &policy), KVR_OK);
	policy.overload_prefill_tokens = tokens;
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_OK);
}

/* Worker 0 has so many tokens to prefill, by an outside source. */
static void
prefills(uint64_t tokens)
{
	struct kvr_load load = { .size = sizeof(load),
		.prefill_tokens = tokens };

	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	region_sound();
}

static void
be(uint64_t worker, uint32_t state)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	ck_assert_int_eq(kvr_worker_get(k, worker, &facts), KVR_OK);
	facts.state = state;
	ck_assert_int_eq(kvr_worker_set(k, worker, &facts), KVR_OK);
	region_sound();
}

static int
routed(void)
{
	struct kvr_decision d = { .size = sizeof(d) };

	say("abcdefghijkl");
	return kvr_route(k, p, NULL, 1, &d);
}

/* A rank that is down is not one that is calm, whatever happens to it. */
START_TEST(rank_that_is_down)
{
	uint64_t rank;
	uint32_t i;

	for (i = 1; i < WORKERS; i++)
		remove_worker(id[i]);
	ck_assert_int_eq(add_rank("0", 1, &rank), KVR_OK);
	overloaded_above(8);
	prefills(9);
	ck_assert_int_eq(routed(), KVR_OK); /* the other is not overloaded */
	be(rank, KVR_STATE_DOWN);
	ck_assert_int_eq(routed(), KVR_EALLOVERLOADED);
	ck_assert_int_eq(kvr_worker_reset(k, rank, &rank), KVR_OK);
	ck_assert_int_eq(routed(), KVR_EALLOVERLOADED);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	region_sound();
	ck_assert_int_eq(routed(), KVR_OK); /* no load is left */
	prefills(9);
	ck_assert_int_eq(routed(), KVR_EALLOVERLOADED);
	be(rank, KVR_STATE_DRAINING);
	ck_assert_int_eq(routed(), KVR_EALLOVERLOADED);
	be(rank, KVR_STATE_UP);
	ck_assert_int_eq(routed(), KVR_OK);
	be(rank, KVR_STATE_DOWN);
	remove_worker(rank);
	ck_assert_int_eq(routed(), KVR_EALLOVERLOADED);
	region_sound();
}
END_TEST

/* -------------------------------------------------------------- damage --- */

/* No number leads outside the table. */
START_TEST(any_number)
{
	ck_assert_ptr_eq(name_at(k, 0), &k->names[0]);
	ck_assert_ptr_eq(name_at(k, 1), &k->names[0]);
	ck_assert_ptr_eq(name_at(k, k->layout.names),
	    &k->names[k->layout.names - 1]);
	ck_assert_ptr_eq(name_at(k, k->layout.names + 1), &k->names[0]);
	ck_assert_ptr_eq(name_at(k, UINT32_MAX), &k->names[0]);
	ck_assert_ptr_eq(dp_group_at(k, UINT32_MAX), &k->dp_groups[0]);
}
END_TEST

/* A ring of names is searched once. */
START_TEST(ring_of_names)
{
	struct name *n = name_at(k, slot_at(k, 0)->name);
	uint32_t slot, next = n->next;

	n->next = slot_at(k, 0)->name;
	ck_assert(name_find(k, "0", 1, 0, &slot));
	ck_assert(!name_find(k, "0", 1, 1, &slot));
	ck_assert_uint_eq(dp_group_of(k, "0", 1), slot_at(k, 0)->dp_group);
	n->next = next;
}
END_TEST

Suite *suite_name(void);

Suite *
suite_name(void)
{
	Suite *s = suite_create("name");
	TCase *t = small_case(s, "names");

	tcase_add_test(t, ranks_are_workers);
	tcase_add_test(t, names_are_bytes);
	tcase_add_test(t, name_cut_short);
	tcase_add_test(t, rank_that_is_down);
	tcase_add_test(t, any_number);
	tcase_add_test(t, ring_of_names);
	return s;
}
