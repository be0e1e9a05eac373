/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_check_fleet.c - kvr_check finds damage to records of workers.
 *
 * The region, and how it is damaged and repaired, are damage.h's. Worker 0 has
 * a second rank here; names and slots are free, and slots are retired.
 */
#include "check_in.h"
#include "id.h"
#include "parts.h"

#include "damage.h"

#include <math.h>

static uint32_t twin; /* slot of the second rank */

static void
fleet_setup(void)
{
	struct kvr_worker f;
	uint64_t added;

	setup();
	ck_assert_int_eq(kvr_worker_remove(k, id[5]), KVR_OK);
	ck_assert_uint_eq(expire(12, 100), 0);
	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.rank = 1;
	f.weight = 2;
	ck_assert_int_eq(kvr_worker_add(k, "0", 1, &f, &added), KVR_OK);
	twin = id_slot(added);
	ck_assert_int_eq(kvr_worker_remove(k, id[3]), KVR_OK);
	region_sound();
	memcpy(good, memory, BYTES);
}

static bool
fleet_sound(void)
{
	struct dp_group counted[FLEET];

	memset(counted, 0, sizeof(counted));
	return check_names(k) && check_groups_of_ranks(k) &&
	    check_fleet(k, counted) && parts_sound(k);
}

/* Is like FOUND, for this part of the check alone. */
#define HERE(change) do { \
	bool sound_; \
	change; \
	sound_ = fleet_sound(); \
	memcpy(memory, good, BYTES); \
	ck_assert_msg(!sound_, "not found: %s", #change); \
} while (0)

START_TEST(good_fleet)
{
	ck_assert(fleet_sound());
	ck_assert_uint_eq(k->layout.names, FLEET);
	ck_assert_mem_eq(memory, good, BYTES);
}
END_TEST

/* --------------------------------------------------------------- names --- */

static struct name *
name_of(uint32_t slot)
{
	return &k->names[slot_at(k, slot)->name - 1];
}

/* Another name belongs in another bucket, unless the key has it otherwise. */
START_TEST(changed_name)
{
	struct name *n = name_of(0);
	uint32_t found = 0;
	char letter;

	for (letter = 'a'; letter <= 'z'; letter++) {
		n->text[0] = letter;
		found += !fleet_sound();
		memcpy(memory, good, BYTES);
	}
	ck_assert_uint_gt(found, 0);
}
END_TEST

START_TEST(damaged_name)
{
	struct name *n = name_of(0), *other = name_of(1);
	uint32_t number = slot_at(k, 0)->name, b;

	for (b = 0; b < k->layout.name_buckets; b++) /* wherever "" belongs */
		HERE((n->length = 0, n->next = k->name_buckets[b],
		    k->name_buckets[b] = number));
	HERE(n->length = 0);
	HERE(n->length = KVR_NAME_MAX + 1);
	HERE(n->used = 0);
	HERE(n->slot = other->slot);
	HERE(n->slot = 3); /* retired */
	HERE(n->slot = UINT16_MAX);
	HERE(name_of(twin)->next = 0); /* in the bucket of both */
	HERE(slot_at(k, 0)->name = slot_at(k, 1)->name);
	HERE(slot_at(k, 0)->rank = 1); /* as the second */
	HERE(slot_at(k, twin)->rank = 0); /* as the first */
	HERE(k->generations[0]++);
	HERE(memset(k->name_buckets, 0, k->layout.name_buckets *
	    sizeof(uint32_t)));
}
END_TEST

START_TEST(damaged_free_names)
{
	struct region *r = k->region;
	struct name *n = &k->names[r->name_free - 1];

	ck_assert_uint_ne(n->next, 0);
	HERE(r->name_free = 0);
	HERE(r->name_free = n->next);
	HERE(r->name_free = slot_at(k, 0)->name);
	HERE(r->name_free = k->layout.names + 1);
	HERE(r->name_free = UINT32_MAX);
	HERE(n->next = 0);
	HERE(n->next = r->name_free);
	HERE(n->next = UINT32_MAX);
	HERE(n->used = 1);
	ck_assert_uint_eq(name_of(0)->next, 0);
	HERE(n->next = slot_at(k, 0)->name); /* as many as before */
}
END_TEST

/* --------------------------------------------------------------- slots --- */

START_TEST(damaged_free_slots)
{
	struct region *r = k->region;
	struct slot *s = slot_at(k, r->slot_free - 1);

	ck_assert_uint_ne(s->name, 0);
	HERE(r->slot_free = 0);
	HERE(r->slot_free = s->name);
	HERE(r->slot_free = 0 + 1); /* in use */
	HERE(r->slot_free = 3 + 1); /* retired */
	HERE(r->slot_free = r->slots_used + 1);
	HERE(r->slot_free = UINT32_MAX);
	HERE(s->name = 0);
	HERE(s->name = r->slot_free);
	HERE(s->name = UINT32_MAX);
	HERE(s->retired = 1);
	HERE((s->name = 3 + 1, slot_at(k, 3)->name = 0)); /* as many */
	HERE(slot_at(k, 3)->retired = 0);
	HERE(r->slots_used++);
	HERE(r->slots_used--);
	HERE(r->slots_used = 0);
}
END_TEST

/* --------------------------------------------------------------- loads --- */

/* The copies that choices read. */
START_TEST(damaged_loads)
{
	struct slot *s = slot_at(k, 0);
	struct loads *l = &k->loads;

	ck_assert_uint_gt(s->prefill, 0);
	HERE(l->prefill[0] = 0);
	HERE(l->prefill[0] = (double)NAN);
	HERE(l->blocks[0]++);
	HERE(l->requests[0]--);
	HERE(l->ttl[0]++);
	HERE(l->booked[0]++);
	HERE(l->booked[0] = (double)NAN);
	HERE(l->reading[0]++);
	HERE(l->reading[0] = (double)NAN);
	HERE(l->gate[0] ^= KVR_ROLE_PREFILL);
	HERE(l->gate[0] ^= GATE_OVERLOADED);
	HERE(l->gate[0] ^= GATE_WEIGHTED);
	HERE(l->gate[twin] ^= GATE_WEIGHTED);
	HERE(l->gate[0] ^= GATE_UNSURE);
	HERE(l->gate[0] ^= GATE_WINDOW);
	HERE(l->gate[0] |= GATE_FREE);
	HERE(s->prefill++);
	HERE(s->blocks--);
	HERE(s->requests++);
	HERE(s->silent++);
	HERE(s->reading++);
	HERE(s->role = KVR_ROLE_DECODE);
	HERE(s->state = KVR_STATE_DRAINING);
	HERE(s->over_prefill = 1);
	HERE(s->over_blocks = 1);
	HERE(s->weight = 2);
	HERE(slot_at(k, twin)->weight = 1);
	HERE(s->mode = KVR_RETAIN_FEEDBACK);
	HERE(s->load_prefill = 0);
	HERE(outside_at(k, s->name)->source[1].prefill = 1);
	HERE((outside_at(k, s->name)->source[1].prefill = LOAD_MAX + 1,
	    s->load_prefill += LOAD_MAX + 1));
	HERE(outside_at(k, s->name)->source[3].used = UINT64_MAX);
	HERE((s->own_ttl = 1, k->region->own_ttl++));
	HERE(l->id[0] = 0);
	HERE(l->id[0] += UINT64_C(1) << 16);
	HERE(l->id[3] = id_of_worker(1, 3)); /* of a slot that is not in use */
	HERE(l->gate[3] = 0);
	HERE(l->gate[15] = 0);
}
END_TEST

/* The TTL of its entries, and the copy that choices read. */
START_TEST(damaged_life)
{
	struct slot *s = slot_at(k, 4);

	ck_assert_uint_eq(s->own_ttl, 1);
	MENDED(s->own_ttl = 0);
	MENDED(slot_at(k, 3)->own_ttl = 1);
	MENDED(k->region->own_ttl = 0);
	MENDED(k->region->own_ttl++);
	FOUND(s->ttl++);
	FOUND(s->ttl = TTL);
	MENDED(k->loads.ttl[4] = TTL);
	MENDED(k->loads.ttl[3]++);
	MENDED(s->mode = KVR_RETAIN_TTL);
	MENDED(slot_at(k, 3)->mode = KVR_RETAIN_FEEDBACK);
	MENDED(k->loads.gate[4] ^= GATE_UNSURE);
	MENDED(s->silent++);
	MENDED(k->loads.booked[4]--);
	MENDED(k->loads.booked[0] = 0);
}
END_TEST

/* -------------------------------------------------------------- groups --- */

START_TEST(damaged_dp_groups)
{
	struct slot *s = slot_at(k, 0);
	uint32_t group = s->dp_group;
	struct dp_group *g = &k->dp_groups[group - 1];

	ck_assert_uint_eq(slot_at(k, twin)->dp_group, group);
	ck_assert_uint_eq(g->ranks, 2);
	HERE(g->ranks++);
	HERE(g->ranks = 0);
	HERE(g->not_overloaded++);
	HERE(g->not_overloaded = 0);
	HERE((s->over_prefill = 1, k->loads.gate[0] |= GATE_OVERLOADED));
	HERE((s->over_blocks = 1, k->loads.gate[0] |= GATE_OVERLOADED));
	HERE(s->dp_group = 0);
	HERE((s->dp_group = 0, k->loads.gate[0] = GATE_FREE, g->ranks--,
	    g->not_overloaded--));
	HERE(s->dp_group = slot_at(k, 1)->dp_group);
	HERE(s->dp_group = FLEET + 1);
	HERE(s->dp_group = UINT32_MAX);
	HERE(slot_at(k, 3)->dp_group = group);
	HERE(slot_at(k, 15)->dp_group = 1);
	HERE(k->dp_groups[FLEET - 1].ranks++);
	HERE(k->dp_groups[FLEET - 1].not_overloaded++);
}
END_TEST

/* --------------------------------------------------------------- rates --- */

START_TEST(damaged_rates)
{
	static const double bad[] = { -1, -5e-324, 1.1e300, (double)INFINITY,
		(double)NAN };
	struct region *r = k->region;
	struct slot *s = slot_at(k, 0), *free_one = slot_at(k, 15);
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		HERE(r->fleet_tokens = bad[i]);
		HERE(r->fleet_seconds = bad[i]);
		HERE(r->inserted = bad[i]);
		HERE(r->asked = bad[i]);
		HERE(k->loads.inserted[15] = bad[i]);
		HERE(k->loads.observed_requests[15] = bad[i]);
		HERE(k->loads.observed_reading[0] = bad[i]);
		HERE(s->rate_tokens = bad[i]);
		HERE(s->rate_seconds = bad[i]);
		HERE(s->completion = bad[i]);
		HERE(free_one->completion = bad[i]);
	}
}
END_TEST

Suite *suite_check_fleet(void);

Suite *
suite_check_fleet(void)
{
	Suite *s = suite_create("check_fleet");
	TCase *t = tcase_create("fleet");

	tcase_add_checked_fixture(t, fleet_setup, teardown);
	tcase_add_test(t, good_fleet);
	tcase_add_test(t, changed_name);
	tcase_add_test(t, damaged_name);
	tcase_add_test(t, damaged_free_names);
	tcase_add_test(t, damaged_free_slots);
	tcase_add_test(t, damaged_loads);
	tcase_add_test(t, damaged_dp_groups);
	tcase_add_test(t, damaged_rates);
	suite_add_tcase(s, t);
	t = tcase_create("caches");
	tcase_add_checked_fixture(t, cache_setup, teardown);
	tcase_add_test(t, damaged_life);
	suite_add_tcase(s, t);
	return s;
}
