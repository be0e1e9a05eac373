/* SPDX-License-Identifier: BSD-2-Clause */
/* test_fronts.c - prompts that differ at their beginning only. */
#include "test.h"

#include <stdio.h>

#include "fronts.h"
#include "shared.h"

enum { BLOCK = 16, BLOCKS = 40 };

static struct fronts fronts;
static struct shared shared;
static struct fleet fleet;
static unsigned looked, parted; /* of the latest line, or 0 */
static struct kvr *k;
static struct kvr_prompt *prompt;

static void
line_take(const struct fleet *f, void *to, unsigned level, const char *text,
    size_t n)
{
	ck_assert_ptr_eq(f, &fleet);
	ck_assert_ptr_eq(to, &fronts);
	ck_assert_uint_eq(level, FLEET_WARN);
	ck_assert_uint_eq(strlen(text), n);
	ck_assert_int_eq(sscanf(text, "%u of the last %u long prompts differ ",
	    &parted, &looked), 2);
}

static void
begin(void)
{
	struct kvr_options o;

	ck_assert_int_eq(kvr_options_init(&o, sizeof(o)), KVR_OK);
	o.region_bytes = 1 << 20;
	o.unit = KVR_UNIT_BYTES;
	o.block_size = BLOCK;
	o.max_workers = 4;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &prompt), KVR_OK);
	memset(&fronts, 0, sizeof(fronts));
	memset(&shared, 0, sizeof(shared));
	fleet.shared = &shared;
	fleet.log = line_take;
}

static void
end(void)
{
	kvr_prompt_free(prompt);
	kvr_free(k);
}

/* Windows of prompts until it warns; 0: it does not in ten of them. */
static unsigned
warns_after(bool nonce, size_t blocks)
{
	char text[BLOCKS * BLOCK + 1];
	unsigned i;
	size_t at;
	struct kvr_scope scope;

	ck_assert_int_eq(kvr_scope_init(&scope, sizeof(scope)), KVR_OK);
	for (i = 0; i < 640; i++) {
		for (at = 0; at < sizeof(text); at++)
			text[at] = (char)(' ' + at / BLOCK);
		(void)snprintf(text, BLOCK, "%015u", nonce ? i : 0);
		ck_assert_int_eq(kvr_prompt_set_bytes(prompt, &scope, text,
		    blocks * BLOCK), KVR_OK);
		looked = 0;
		fronts_look(&fronts, &fleet, prompt, &scope, &fronts);
		if (looked > 0) {
			ck_assert_uint_gt(parted, looked / 2);
			return (i + 1) / looked;
		}
	}
	return 0;
}

START_TEST(nonce)
{
	begin();
	ck_assert_uint_eq(warns_after(true, BLOCKS), 1);
	ck_assert_uint_gt(shared.counts[COUNT_PARTED], 32);
	/* Once is enough. */
	ck_assert_uint_eq(warns_after(true, BLOCKS), 0);
	end();
}
END_TEST

START_TEST(equal)
{
	begin();
	ck_assert_uint_eq(warns_after(false, BLOCKS), 0);
	ck_assert_uint_eq(warns_after(true, 4), 0);
	ck_assert_uint_eq(shared.counts[COUNT_PARTED], 0);
	end();
}
END_TEST

Suite *suite_fronts(void);

Suite *
suite_fronts(void)
{
	Suite *suite = suite_create("fronts");
	TCase *t = tcase_create("fronts");

	tcase_add_test(t, nonce);
	tcase_add_test(t, equal);
	suite_add_tcase(suite, t);
	return suite;
}
