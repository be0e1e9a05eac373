/* SPDX-License-Identifier: BSD-2-Clause */
/* test_area.c - what the doors on one region share. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "area.h"
#include "blame.h"
#include "health.h"
#include "shared.h"

enum { WORKERS = 8 };

static struct kvr_options options;
static struct fleet doors[3]; /* the last: of a caller's region */
static void *own[3];

static void
region_begin(size_t user_bytes)
{
	ck_assert_int_eq(kvr_options_init(&options, sizeof(options)), KVR_OK);
	options.unit = KVR_UNIT_BYTES;
	options.block_size = 16;
	options.max_workers = WORKERS;
	options.user_bytes = user_bytes;
	options.region_bytes = 1 << 20;
	memset(doors, 0, sizeof(doors));
	ck_assert_int_eq(kvr_new(&options, &doors[0].kvr), KVR_OK);
	doors[2].kvr = doors[1].kvr = doors[0].kvr;
}

static int
door_open(int i)
{
	doors[i].options = &options;
	return area_open(&doors[i], i == 2, &own[i]);
}

static void
region_end(void)
{
	kvr_free(doors[0].kvr);
	free(own[0]);
	free(own[1]);
	free(own[2]);
}

static uint64_t *
area_words(void)
{
	size_t bytes;
	void *area;

	ck_assert_int_eq(kvr_user_area(doors[0].kvr, &area, &bytes), KVR_OK);
	return area;
}

START_TEST(doors_on_one_region_share)
{
	struct polled *last;

	region_begin(area_bytes(WORKERS));
	ck_assert_int_eq(door_open(0), KVR_OK);
	ck_assert_int_eq(door_open(1), KVR_OK);
	ck_assert_int_eq(door_open(2), KVR_OK);
	ck_assert_ptr_null(own[0]);
	ck_assert_ptr_null(own[1]);
	ck_assert_ptr_null(own[2]);
	shared_count(doors[0].shared, COUNT_GRAY, 3);
	ck_assert_uint_eq(doors[1].shared->counts[COUNT_GRAY], 3);
	ck_assert_ptr_eq(doors[0].health, doors[1].health);
	ck_assert_ptr_eq(doors[0].blame, doors[1].blame);
	ck_assert_ptr_eq(doors[0].polled, doors[1].polled);
	last = &doors[0].polled[WORKERS - 1];
	ck_assert_ptr_eq((char *)(last + 1), (char *)area_words() +
	    area_bytes(WORKERS));
	region_end();
}
END_TEST

START_TEST(a_region_without_an_area)
{
	region_begin(0);
	ck_assert_int_eq(door_open(0), KVR_OK);
	ck_assert_int_eq(door_open(1), KVR_OK);
	ck_assert_ptr_nonnull(own[0]);
	ck_assert_ptr_ne(doors[0].shared, doors[1].shared);
	region_end();
}
END_TEST

/* It is none of a door, and not written. */
START_TEST(an_area_of_another_size)
{
	region_begin(area_bytes(WORKERS) + 64 * (size_t)_i - 64);
	ck_assert_int_eq(door_open(0), KVR_EMISMATCH);
	ck_assert_int_eq(door_open(2), KVR_OK);
	ck_assert_ptr_nonnull(own[2]);
	ck_assert_uint_eq(area_words()[0], 0);
	region_end();
}
END_TEST

/* Another version, another size, or something else. */
START_TEST(an_area_of_another_layout)
{
	static const uint64_t changes[] = { UINT64_C(1) << 32, 64,
	    UINT64_C(1) << 60 };

	region_begin(area_bytes(WORKERS));
	ck_assert_int_eq(door_open(0), KVR_OK);
	area_words()[0] ^= changes[_i];
	ck_assert_int_eq(door_open(1), KVR_EMISMATCH);
	ck_assert_int_eq(door_open(2), KVR_OK);
	ck_assert_ptr_nonnull(own[2]);
	region_end();
}
END_TEST

/* Times of an earlier boot mean nothing. */
START_TEST(another_boot)
{
	region_begin(area_bytes(WORKERS));
	ck_assert_int_eq(door_open(0), KVR_OK);
	shared_count(doors[0].shared, COUNT_GRAY, 3);
	doors[0].health[WORKERS - 1].probe_at = 1;
	ck_assert_int_eq(door_open(1), KVR_OK);
	ck_assert_uint_eq(doors[1].shared->counts[COUNT_GRAY], 3);
	area_words()[1] ^= 2;
	ck_assert_int_eq(door_open(1), KVR_OK);
	ck_assert_uint_eq(doors[1].shared->counts[COUNT_GRAY], 0);
	ck_assert_uint_eq(doors[1].health[WORKERS - 1].probe_at, 0);
	shared_count(doors[0].shared, COUNT_GRAY, 1);
	ck_assert_int_eq(door_open(1), KVR_OK);
	ck_assert_uint_eq(doors[1].shared->counts[COUNT_GRAY], 1);
	region_end();
}
END_TEST

Suite *suite_area(void);

Suite *
suite_area(void)
{
	Suite *s = suite_create("area");
	TCase *t = tcase_create("area");

	tcase_add_test(t, doors_on_one_region_share);
	tcase_add_test(t, a_region_without_an_area);
	tcase_add_loop_test(t, an_area_of_another_size, 0, 1);
	tcase_add_loop_test(t, an_area_of_another_size, 2, 3);
	tcase_add_loop_test(t, an_area_of_another_layout, 0, 3);
	tcase_add_test(t, another_boot);
	suite_add_tcase(s, t);
	return s;
}
