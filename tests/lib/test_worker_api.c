/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_worker_api.c - workers put and kept, as by a program that starts again,
 * and structs that begin with their defaults.
 */
#include "inner.h"

static uint64_t
put(const char *name, uint64_t capacity)
{
	struct kvr_worker facts;
	uint64_t worker = 0;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.capacity_tokens = capacity;
	ck_assert_int_eq(kvr_worker_put(k, name, strlen(name), &facts,
	    &worker), KVR_OK);
	return worker;
}

static uint64_t
capacity_of(uint64_t worker)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	ck_assert_int_eq(kvr_worker_get(k, worker, &facts), KVR_OK);
	return facts.capacity_tokens;
}

static uint32_t
count_workers(void)
{
	uint64_t worker = 0;
	uint32_t n = 0;

	for (;; n++) {
		ck_assert_int_eq(kvr_worker_next(k, &worker), KVR_OK);
		if (worker == 0)
			return n;
	}
}

static void
with_room(void)
{
	struct kvr_options o = small_options();

	o.max_workers = 4;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
}

/* One that exists keeps its id, its entries and its leases. */
START_TEST(put_adds_or_changes)
{
	struct kvr_worker facts;
	uint64_t other;

	id[0] = put("gpu-0", 100);
	ck_assert_uint_eq(capacity_of(id[0]), 100);
	observe(0, "abcd", 1);
	ck_assert_uint_eq(put("gpu-0", 5000), id[0]);
	ck_assert_uint_eq(capacity_of(id[0]), 5000);
	ck_assert_uint_eq(overlap(0, 2), 4);
	ck_assert_uint_ne(put("gpu-1", 7), id[0]);
	ck_assert_uint_eq(count_workers(), 2);
	/* another rank is another worker; no facts are the defaults */
	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.rank = 1;
	ck_assert_int_eq(kvr_worker_put(k, "gpu-0", 5, &facts, &other),
	    KVR_OK);
	ck_assert_uint_ne(other, id[0]);
	ck_assert_int_eq(kvr_worker_put(k, "gpu-0", 5, NULL, &other), KVR_OK);
	ck_assert_uint_eq(other, id[0]);
	ck_assert_uint_eq(capacity_of(id[0]), 0);
	facts.weight = -1;
	ck_assert_int_eq(kvr_worker_put(k, "gpu-0", 5, &facts, &other),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_put(k, "", 0, NULL, &other), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_put(NULL, "a", 1, NULL, &other),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_put(k, "a", 1, NULL, NULL), KVR_EINVAL);
	(void)put("a", 1);
	ck_assert_int_eq(kvr_worker_put(k, "b", 1, NULL, &other), KVR_EFULL);
	region_sound();
}
END_TEST

START_TEST(keep_removes_the_others)
{
	uint64_t now[3];
	uint32_t removed = 99;

	id[0] = put("gpu-0", 100);
	id[1] = put("gpu-1", 200);
	id[2] = put("gpu-2", 300);
	observe(0, "abcd", 1);
	observe(1, "abcd", 1);
	now[0] = put("gpu-2", 300);
	now[1] = put("gpu-0", 100);
	now[2] = now[0];
	ck_assert_int_eq(kvr_worker_keep(k, now, 3, &removed), KVR_OK);
	ck_assert_uint_eq(removed, 1);
	ck_assert_uint_eq(count_workers(), 2);
	ck_assert_uint_eq(overlap(0, 2), 4);
	ck_assert_int_eq(kvr_worker_find(k, "gpu-1", 5, 0, &now[2]),
	    KVR_EWORKER);
	region_sound();
	ck_assert_int_eq(kvr_worker_keep(k, now, 2, NULL), KVR_OK);
	ck_assert_uint_eq(count_workers(), 2);
	ck_assert_int_eq(kvr_worker_keep(k, NULL, 0, &removed), KVR_OK);
	ck_assert_uint_eq(removed, 2);
	ck_assert_uint_eq(count_workers(), 0);
	region_sound();
}
END_TEST

/* Its id is another one by now, so the worker would be lost. */
START_TEST(keep_refuses_stale_ids)
{
	uint64_t now[2], fresh;
	uint32_t removed = 99;

	now[0] = put("gpu-0", 100);
	now[1] = put("gpu-1", 200);
	(void)put("gpu-2", 300);
	ck_assert_int_eq(kvr_worker_reset(k, now[1], &fresh), KVR_OK);
	ck_assert_int_eq(kvr_worker_keep(k, now, 2, &removed), KVR_EWORKER);
	ck_assert_uint_eq(removed, 99);
	ck_assert_uint_eq(count_workers(), 3);
	now[1] = 0;
	ck_assert_int_eq(kvr_worker_keep(k, now, 2, NULL), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_keep(k, NULL, 1, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_keep(NULL, now, 1, NULL), KVR_EINVAL);
	now[1] = fresh;
	ck_assert_int_eq(kvr_worker_keep(k, now, 2, &removed), KVR_OK);
	ck_assert_uint_eq(removed, 1);
	region_sound();
}
END_TEST

#define BLANK(init, type) do { \
	struct type s_, zero_ = { .size = sizeof(zero_) }; \
	memset(&s_, 0x5a, sizeof(s_)); \
	ck_assert_int_eq(init(&s_, sizeof(s_)), KVR_OK); \
	ck_assert_mem_eq(&s_, &zero_, sizeof(s_)); \
	ck_assert_int_eq(init(&s_, 1), KVR_EINVAL); \
	ck_assert_int_eq(init(NULL, sizeof(s_)), KVR_EINVAL); \
} while (0)

START_TEST(structs_begin_empty)
{
	BLANK(kvr_decision_init, kvr_decision);
	BLANK(kvr_load_init, kvr_load);
	BLANK(kvr_report_init, kvr_report);
}
END_TEST

Suite *suite_worker_api(void);

Suite *
suite_worker_api(void)
{
	Suite *s = suite_create("worker_api");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, with_room, region_end);
	tcase_add_test(t, put_adds_or_changes);
	tcase_add_test(t, keep_removes_the_others);
	tcase_add_test(t, keep_refuses_stale_ids);
	tcase_add_test(t, structs_begin_empty);
	suite_add_tcase(s, t);
	return s;
}
