/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_check_figures.c - figures that are wrong are found, and found to be no
 * more than that; they are made right, and nothing else changes.
 */
#include "damage.h"

/* -------------------------------------------------------------- counts --- */

START_TEST(wrong_counts)
{
	struct region *r = k->region;

	MENDED(r->counts.nodes++);
	MENDED(r->counts.entries--);
	MENDED(r->counts.blocks++);
	MENDED(r->counts.held--);
	MENDED(r->counts.leases++);
	MENDED(r->workers++);
	MENDED(r->workers--);
}
END_TEST

START_TEST(wrong_loads)
{
	struct slot *s = slot_at(k, 0);

	MENDED(s->role = KVR_ROLE_DECODE + 1);
	MENDED(s->role = UINT8_MAX);
	MENDED(s->state = KVR_STATE_DOWN + 1);
	MENDED(s->state = UINT8_MAX);
	MENDED(s->entries++);
	MENDED(s->held--);
	MENDED(s->active++);
	MENDED(s->output++);
	MENDED(s->blocks++);
	MENDED(s->prefill--);
	MENDED(s->requests++);
	MENDED(s->leases--);
	MENDED(s->load_prefill++);
	MENDED(s->load_blocks--);
	MENDED(s->load_requests++);
	MENDED(slot_at(k, 7)->entries--);
	MENDED(slot_at(k, 15)->held++);
}
END_TEST

/* Figures that follow from others are restored. */
START_TEST(as_it_was)
{
	struct slot *s = slot_at(k, 0);
	struct region *r = k->region;
	size_t at;

	k->loads.prefill[0]++;
	k->loads.id[1] = 0;
	k->loads.gate[2] ^= GATE_WEIGHTED;
	k->dp_groups[s->dp_group - 1].ranks += 3;
	k->dp_groups[s->dp_group - 1].not_overloaded = 0;
	s->held++;
	s->load_prefill = s->load_requests = 0;
	s->mode = KVR_RETAIN_FEEDBACK;
	r->own_ttl = r->workers = 99;
	r->counts.entries--;
	ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
	ck_assert_int_eq(check_mend(k), KVR_OK);
	/* a pace is published from time to time: it may be another one */
	at = (size_t)((char *)k->loads.pace - (char *)memory);
	memcpy(k->loads.pace, (char *)good + at, 2 * FLEET * sizeof(double));
	ck_assert_mem_eq(memory, good, BYTES);
}
END_TEST

/* With worse damage nothing is changed. */
START_TEST(not_to_be_mended)
{
	void *was = malloc(BYTES);

	ck_assert_ptr_nonnull(was);
	k->region->counts.nodes++;
	k->region->fresh++;
	memcpy(was, memory, BYTES);
	ck_assert_int_eq(check_mend(k), KVR_ECORRUPT);
	ck_assert_mem_eq(memory, was, BYTES);
	memcpy(memory, good, BYTES);
	ck_assert_int_eq(check_mend(k), KVR_OK);
	ck_assert_mem_eq(memory, good, BYTES);
	free(was);
}
END_TEST

Suite *suite_check_figures(void);

Suite *
suite_check_figures(void)
{
	Suite *s = suite_create("check_figures");
	TCase *t = tcase_create("figures");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, wrong_counts);
	tcase_add_test(t, wrong_loads);
	tcase_add_test(t, as_it_was);
	tcase_add_test(t, not_to_be_mended);
	suite_add_tcase(s, t);
	return s;
}
