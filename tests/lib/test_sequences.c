/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sequences.c - a prompt of sequence hashes does as the one they are of.
 */
#include "prompt.h"

#include "inner.h"

static struct kvr_prompt *twin;

static void
setup(void)
{
	small_setup();
	ck_assert_int_eq(kvr_prompt_new(k, &twin), KVR_OK);
}

static void
teardown(void)
{
	kvr_prompt_free(twin);
	region_end();
}

/* The twin of the current prompt, from a block on. */
static void
twinned(uint32_t first)
{
	ck_assert_int_eq(kvr_prompt_set_sequences(twin, first == 0 ? p->root
	    : p->sequence[first - 1], first, p->sequence + first,
	    p->blocks - first, p->units), KVR_OK);
}

START_TEST(decided_as_the_original)
{
	struct kvr_decision a = { .size = sizeof(a) }, b = a;
	struct kvr_overlap found[WORKERS];
	struct kvr_prompt_info info = { .size = sizeof(info) };
	uint32_t recorded;
	size_t n;

	finish(reserve(2, "abcdef", 1), 1);
	say("abcdxy");
	twinned(0);
	ck_assert_int_eq(kvr_route(k, p, NULL, 2, &a), KVR_OK);
	ck_assert_int_eq(kvr_route(k, twin, NULL, 2, &b), KVR_OK);
	ck_assert(a.worker == id[2] && b.worker == id[2]);
	ck_assert_uint_eq(b.overlap_blocks, 4);
	ck_assert_uint_eq(b.prompt_tokens, 6);
	ck_assert_int_eq(kvr_match(k, twin, 2, found, sizeof(found[0]),
	    WORKERS, &n), KVR_OK);
	ck_assert(n == 1 && found[0].blocks == 4);
	ck_assert_int_eq(kvr_prompt_info_get(twin, &info), KVR_OK);
	ck_assert(info.units == 6 && info.blocks == 6 && info.tail == 0);
	ck_assert_int_eq(kvr_observe(k, twin, id[1], 3, 0, &recorded), KVR_OK);
	ck_assert_uint_eq(recorded, 6);
	ck_assert_int_eq(kvr_prompt_allow(twin, &id[3], 1), KVR_OK);
	ck_assert_int_eq(kvr_route(k, twin, NULL, 3, &b), KVR_OK);
	ck_assert_uint_eq(b.worker, id[3]);
	ck_tree("abcd:12(ef:2 xy:1)");
}
END_TEST

/* A lease opened by one is extended by the other. */
START_TEST(extended_from_a_block_on)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_overlap found[WORKERS];
	size_t n;

	say("abcd");
	twinned(0);
	ck_assert_int_eq(kvr_lease_open_on(k, twin, NULL, id[0], 1, &d),
	    KVR_OK);
	commit(d.lease, 1);
	say("abcdef");
	twinned(4);
	ck_assert_int_eq(kvr_lease_extend(k, d.lease, twin, 2, 0), KVR_OK);
	ck_tree("abcdef:0!");
	say("abcxefgh");
	twinned(6);
	twin->sequence[0]++; /* another prompt's */
	ck_assert_int_eq(kvr_lease_extend(k, d.lease, twin, 2, 0),
	    KVR_EMISMATCH);
	ck_assert_int_eq(kvr_match(k, twin, 2, found, sizeof(found[0]),
	    WORKERS, &n), KVR_ESTATE);
	ck_assert_int_eq(kvr_lease_open(k, twin, NULL, 2, &d), KVR_ESTATE);
	finish(d.lease, 3);
}
END_TEST

START_TEST(cannot_be_continued)
{
	uint64_t local = 1, sequence = 2;
	uint32_t token = 1;
	char saved[256];

	say("abc");
	twinned(0);
	ck_assert_int_eq(kvr_prompt_tokens(twin, &token, 1), KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_locals(twin, &local, 1), KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_media(twin, 5, &local, 1), KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_end(twin, NULL), KVR_ESTATE);
	ck_assert_uint_eq(kvr_prompt_saved_bytes(twin), 0);
	ck_assert_int_eq(kvr_prompt_save(twin, saved, sizeof(saved)),
	    KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_hash(twin, 0, &local, &sequence),
	    KVR_ESTATE);
	ck_assert(local == 1 && sequence == 2);
	/* and then it is a prompt as any other, of no tenant */
	ck_assert_int_eq(kvr_prompt_set_tenant(twin, 5, 6), KVR_OK);
	ck_assert(prompt_tenant(twin) == 5 && twin->share == 6);
	ck_assert_int_eq(kvr_prompt_set_tokens(twin, NULL, &token, 1), KVR_OK);
	ck_assert(prompt_tenant(twin) == 0 && twin->share == 0);
	ck_assert_int_eq(kvr_prompt_set_tenant(twin, 5, 6), KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_begin(twin, NULL), KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_tenant(twin, 5, 6), KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_set_tokens(twin, NULL, &token, 1), KVR_OK);
	ck_assert_int_eq(kvr_prompt_hash(twin, 0, &local, &sequence), KVR_OK);
}
END_TEST

START_TEST(arguments_are_checked)
{
	const uint64_t one = 1, most = UINT64_C(1) << 40;

	ck_assert_int_eq(kvr_prompt_set_sequences(NULL, 1, 0, &one, 1, 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_sequences(twin, 1, 0, NULL, 1, 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_sequences(twin, 1, 0, &one, 1, 0),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_sequences(twin, 1, 4, &one, 1, 4),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_sequences(twin, 1, 0, &one, 1,
	    most + 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_sequences(twin, 1, UINT32_MAX - 1,
	    &one, 1, most), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_sequences(twin, 1, 0, &one,
	    UINT32_MAX, most), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_sequences(twin, 1, 0, &one, 1, most),
	    KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_sequences(twin, 1, 4, NULL, 0, 4),
	    KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_sequences(twin, 1, 0, NULL, 0, 0),
	    KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_tenant(NULL, 1, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_tenant(twin, 0, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_tenant(twin, 1, KVR_SHARE_MAX + 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_tenant(twin, 1, KVR_SHARE_MAX),
	    KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_tenant(twin, 0, 0), KVR_OK);
}
END_TEST

Suite *suite_sequences(void);

Suite *
suite_sequences(void)
{
	Suite *s = suite_create("sequences");
	TCase *t = tcase_create("sequences");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, decided_as_the_original);
	tcase_add_test(t, extended_from_a_block_on);
	tcase_add_test(t, cannot_be_continued);
	tcase_add_test(t, arguments_are_checked);
	suite_add_tcase(s, t);
	return s;
}
