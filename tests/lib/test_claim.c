/* SPDX-License-Identifier: BSD-2-Clause */
/* test_claim.c - the predictions that a lease keeps. */
#include "claim.h"

#include "cell.h"

#include "inner.h"

static const struct claim *
claim_of(const struct choice *b, uint32_t *cell)
{
	*cell = cell_take(k);
	ck_assert_uint_ne(*cell, 0);
	claim_make(k, *cell, p, b, 0);
	return claim_at(k, *cell);
}

START_TEST(predicted)
{
	struct choice b = { .tokens = 3, .usable = 3, .active = 2 };
	const struct claim *c;
	uint32_t cell;

	say("abcd");
	c = claim_of(&b, &cell);
	ck_assert_uint_eq(c->tokens, 4);
	ck_assert_uint_eq(c->prompt, 4);
	ck_assert_uint_eq(c->predicted, 3);
	ck_assert_uint_eq(c->overlap, 3);
	ck_assert_uint_eq(c->active, 2);
	cell_give(k, cell);
}
END_TEST

/* The prediction is bounded by the prompt, the overlap by its record. */
START_TEST(bounded)
{
	struct choice b = { .tokens = UINT64_MAX, .usable = 3,
	    .flags = KVR_IGNORE_REUSE };
	const struct claim *c;
	uint32_t cell;

	say("abcd");
	c = claim_of(&b, &cell);
	ck_assert_uint_eq(c->predicted, 4);
	ck_assert_uint_eq(c->overlap, 0);
	cell_give(k, cell);
}
END_TEST

/* A prompt that no engine takes is kept as far as there is room. */
START_TEST(far_too_long)
{
	struct choice b = { .tokens = UINT64_MAX };
	const struct claim *c;
	uint64_t units = p->units;
	uint32_t cell;

	say("abcd");
	p->units = UINT64_C(1) << 40;
	c = claim_of(&b, &cell);
	p->units = units;
	ck_assert_uint_eq(c->tokens, UINT32_MAX);
	ck_assert_uint_eq(c->predicted, UINT32_MAX);
	cell_give(k, cell);
}
END_TEST

Suite *suite_claim(void);

Suite *
suite_claim(void)
{
	Suite *s = suite_create("claim");
	TCase *t = small_case(s, "claim");

	tcase_add_test(t, predicted);
	tcase_add_test(t, bounded);
	tcase_add_test(t, far_too_long);
	return s;
}
