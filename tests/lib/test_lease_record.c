/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lease_record.c - the contents of a record of a lease, and the block
 * from which on it has the hashes of a prompt.
 */
#include "lease_record.h"

#include "lease.h"

#include "inner.h"

START_TEST(leases)
{
	struct kvr_record r = { .size = 99, .units = 99 };
	uint64_t lease = reserve(2, "abc", 5);

	lease_record(k, lease_find(k, lease), KVR_RECORD_COMMIT, 6, &r);
	ck_assert(r.kind == KVR_RECORD_COMMIT && r.at == 6 &&
	    r.lease == lease && r.worker == id[2] && r.owner == 0 &&
	    r.units == 0);
	remove_worker(id[2]);
	lease_record(k, lease_find(k, lease), KVR_RECORD_ABORT, 7, &r);
	ck_assert(r.lease == lease && r.worker == 0);
	give_up(lease, 8);
}
END_TEST

static void
ck_from(uint32_t from, uint32_t first, uint64_t parent)
{
	struct kvr_record r = { .size = sizeof(r) };
	const uint64_t *hashes = lease_record_prompt(p, from, &r);

	ck_assert_uint_eq(r.first_block, first);
	ck_assert_uint_eq(r.parent, parent);
	ck_assert_uint_eq(r.hashes, p->blocks - first);
	ck_assert_uint_eq(r.blocks, p->blocks);
	ck_assert_ptr_eq(hashes,
	    first < p->blocks ? prompt_sequence(p, first) : NULL);
}

START_TEST(whole_prompts)
{
	say("abcd");
	ck_from(0, 0, p->root);
	ck_from(1, 1, p->sequence[0]);
	ck_from(4, 4, p->sequence[3]);
	ck_from(9, 4, p->sequence[3]);
	say(""); /* which has no block, so perhaps no memory for hashes */
	ck_from(0, 0, p->root);
}
END_TEST

START_TEST(tenants)
{
	struct kvr_record r = { .size = sizeof(r) };
	struct kvr_scope scope;
	const uint32_t token = 1;

	say("abcd");
	(void)lease_record_prompt(p, 0, &r);
	ck_assert_uint_eq(r.tenant, 0);
	ck_assert_int_eq(kvr_scope_init(&scope, sizeof(scope)), KVR_OK);
	ck_assert_int_eq(kvr_scope_set(k, &scope, KVR_SCOPE_TENANT, "x", 1),
	    KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, &scope, &token, 1), KVR_OK);
	(void)lease_record_prompt(p, 0, &r);
	ck_assert_uint_eq(r.tenant, scope.digest[KVR_SCOPE_TENANT]);
}
END_TEST

/* A resumed prompt has one hash before its first block. */
START_TEST(resumed_prompts)
{
	const uint32_t more[] = { 'e', 'f' };
	char saved[256];
	size_t bytes;
	uint64_t end;

	say("abcd");
	end = p->sequence[3];
	bytes = kvr_prompt_saved_bytes(p);
	ck_assert_int_eq(kvr_prompt_save(p, saved, sizeof(saved)), KVR_OK);
	ck_assert_int_eq(kvr_prompt_resume(p, saved, bytes), KVR_OK);
	ck_assert_int_eq(kvr_prompt_tokens(p, more, 2), KVR_OK);
	ck_assert_int_eq(kvr_prompt_end(p, NULL), KVR_OK);
	ck_from(0, 4, end);
	ck_from(4, 4, end);
	ck_from(5, 5, p->sequence[1]);
}
END_TEST

Suite *suite_lease_record(void);

Suite *
suite_lease_record(void)
{
	Suite *s = suite_create("lease_record");
	TCase *t = small_case(s, "lease_record");

	tcase_add_test(t, leases);
	tcase_add_test(t, whole_prompts);
	tcase_add_test(t, tenants);
	tcase_add_test(t, resumed_prompts);
	return s;
}
