/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_tenant_api.c - listing tenants by the public call.
 */
#include "tenants.h"

static struct kvr_tenant row[8];
static uint64_t cursor;
static size_t count;

static int
list(size_t capacity)
{
	count = 77;
	return kvr_tenant_list(k, &cursor, row, sizeof(row[0]), capacity,
	    &count);
}

static const struct kvr_tenant *
listed(char tenant)
{
	uint64_t digest = digest_of(tenant);
	size_t i;

	for (i = 0; i < count; i++)
		if (row[i].digest == digest)
			return &row[i];
	return NULL;
}

START_TEST(what_they_have)
{
	shared_by(4);
	cursor = 0;
	ck_assert_int_eq(list(8), KVR_OK);
	ck_assert_uint_eq(count, 0);
	ck_assert_uint_eq(cursor, 0);
	say_as('a', 100, 0, 1);
	(void)reserved_for(0, 250, 1);
	say_as('b', 32, 0, 1);
	(void)observed(1, 2);
	ck_assert_int_eq(list(8), KVR_OK);
	ck_assert_uint_eq(count, 2);
	ck_assert_uint_eq(listed('a')->share, 250);
	ck_assert_uint_eq(listed('b')->share, KVR_SHARE_DEFAULT);
	/* a node, two pieces, a link to them, an entry; or seven pieces */
	ck_assert_uint_eq(listed('b')->bytes, 5 * CELL);
	ck_assert_uint_eq(listed('a')->bytes, 10 * CELL);
	ck_assert_uint_eq(listed('a')->evicted, 0);
	ck_assert_uint_eq(listed('a')->reserved, 0);
	/* of no tenant: of the rest */
	observe(2, "abc", 3);
	ck_assert_int_eq(list(8), KVR_OK);
	ck_assert_uint_eq(count, 3);
	ck_assert_uint_eq(row[0].digest, 0);
	ck_assert_uint_eq(row[0].bytes, 3 * CELL);
	/* b's goes, though a has more: a's is pinned */
	retain_make_room(k, 4, k->region->free_cells + 1);
	ck_assert_int_eq(list(8), KVR_OK);
	ck_assert_uint_eq(count, 3);
	ck_assert_uint_eq(listed('b')->bytes, 0);
	ck_assert_uint_eq(listed('b')->evicted, 1);
	region_end();
}
END_TEST

START_TEST(a_few_at_a_time)
{
	uint32_t i, seen = 0;
	char c;

	shared_by(16);
	for (c = 'a'; c < 'k'; c++) {
		say_as(c, 20, 0, 1);
		(void)observed(0, 1);
	}
	for (i = 0, cursor = 0; i < 20; i++) {
		ck_assert_int_eq(list(3), KVR_OK);
		ck_assert_uint_le(count, 3);
		seen += (uint32_t)count;
		if (cursor == 0)
			break;
	}
	ck_assert_uint_eq(seen, 10);
	cursor = UINT64_MAX;
	ck_assert_int_eq(list(3), KVR_OK);
	ck_assert_uint_eq(count, 0);
	region_end();
}
END_TEST

/* The caller's rows are shorter or longer than the library's. */
START_TEST(rows_of_other_sizes)
{
	uint64_t narrow[2] = { 1, 7 };
	struct { struct kvr_tenant t; uint64_t more; } wide = { .more = 9 };

	shared_by(4);
	say_as('a', 20, 0, 1);
	(void)observed(0, 1);
	cursor = 0;
	ck_assert_int_eq(kvr_tenant_list(k, &cursor,
	    (struct kvr_tenant *)(void *)narrow, sizeof(narrow[0]), 1, &count),
	    KVR_OK);
	ck_assert_uint_eq(narrow[0], digest_of('a'));
	ck_assert_uint_eq(narrow[1], 7);
	cursor = 0;
	ck_assert_int_eq(kvr_tenant_list(k, &cursor, &wide.t, sizeof(wide), 1,
	    &count), KVR_OK);
	ck_assert_uint_eq(wide.t.digest, digest_of('a'));
	ck_assert_uint_eq(wide.more, 9);
	region_end();
}
END_TEST

START_TEST(wrong_calls)
{
	struct kvr_request r;
	struct kvr_decision d = { .size = sizeof(d) };

	shared_by(4);
	cursor = 0;
	ck_assert_int_eq(kvr_tenant_list(NULL, &cursor, row, sizeof(row[0]), 8,
	    &count), KVR_EINVAL);
	ck_assert_int_eq(kvr_tenant_list(k, NULL, row, sizeof(row[0]), 8,
	    &count), KVR_EINVAL);
	ck_assert_int_eq(kvr_tenant_list(k, &cursor, NULL, sizeof(row[0]), 8,
	    &count), KVR_EINVAL);
	ck_assert_int_eq(kvr_tenant_list(k, &cursor, row, 7, 8, &count),
	    KVR_EINVAL);
	ck_assert_int_eq(list(0), KVR_EINVAL);
	ck_assert_int_eq(kvr_tenant_list(k, &cursor, row, sizeof(row[0]), 8,
	    NULL), KVR_EINVAL);
	say("abc");
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.share = KVR_SHARE_MAX + 1;
	ck_assert_int_eq(kvr_lease_open(k, p, &r, 1, &d), KVR_EINVAL);
	r.share = KVR_SHARE_MAX;
	ck_assert_int_eq(kvr_lease_open(k, p, &r, 1, &d), KVR_OK);
	r.share_reserved = 1;
	ck_assert_int_eq(kvr_lease_open(k, p, &r, 1, &d), KVR_EINVAL);
	region_end();
}
END_TEST

/* Without the option nothing is shared, and a share means nothing. */
START_TEST(not_shared)
{
	small_setup();
	cursor = 0;
	ck_assert_int_eq(list(8), KVR_ESTATE);
	ck_assert_uint_eq(count, 77);
	say_as('a', 20, 0, 1);
	commit(reserved_for(0, 9, 1), 1);
	region_end();
}
END_TEST

Suite *suite_tenant_api(void);

Suite *
suite_tenant_api(void)
{
	Suite *s = suite_create("tenant_api");
	TCase *c = tcase_create("list");

	tcase_add_test(c, what_they_have);
	tcase_add_test(c, a_few_at_a_time);
	tcase_add_test(c, rows_of_other_sizes);
	tcase_add_test(c, wrong_calls);
	tcase_add_test(c, not_shared);
	suite_add_tcase(s, c);
	return s;
}
