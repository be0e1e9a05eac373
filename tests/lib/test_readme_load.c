/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_readme_load.c - the short program of README.md and examples/route.c that
 * only calls kvr_route and kvr_observe: no worker is forgotten or overrun,
 * whatever the prompts share.
 */
#include <kvroute.h>

#include "test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	TOKENS = 3200, BLOCK_OF = 16, REQUESTS = 400, FLEET = 17,
	MINUTE = 1200 /* requests */
};
#define APART INT64_C(50000000)

static struct kvr *k;
static struct kvr_prompt *p;
static uint64_t id[FLEET];
static uint32_t workers, asked[FLEET], sent;

static void
add_worker(void)
{
	char name = (char)('a' + workers);

	ck_assert_int_eq(kvr_worker_add(k, &name, 1, NULL, &id[workers++]),
	    KVR_OK);
}

/* As with kvr_new(NULL), but for the secret: each run is the same. */
static void
begin(uint32_t fleet)
{
	struct kvr_options o;

	ck_assert_int_eq(kvr_options_init(&o, sizeof(o)), KVR_OK);
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 's', sizeof(o.secret));
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	sent = workers = 0;
	while (workers < fleet)
		add_worker();
}

static void
end(void)
{
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	kvr_prompt_free(p);
	kvr_free(k);
}

/* Sends one request; it shares so many blocks with all others. */
static void
turn(uint32_t shared)
{
	struct kvr_decision d = { .size = sizeof(d) };
	int64_t now = (int64_t)sent * APART;
	uint32_t token[TOKENS], i;

	for (i = 0; i < TOKENS; i++)
		token[i] = i < shared * BLOCK_OF ? i
		    : UINT32_C(0x80000000) + sent;
	sent++;
	if (kvr_prompt_set_tokens(p, NULL, token, TOKENS) != KVR_OK ||
	    kvr_route(k, p, NULL, now, &d) != KVR_OK ||
	    kvr_observe(k, p, d.worker, now, 0, NULL) != KVR_OK)
		ck_abort_msg("request %u", sent);
	for (i = 0; i < workers && id[i] != d.worker; i++)
		continue;
	if (i == workers)
		ck_abort_msg("an unknown worker");
	asked[i]++;
}

static void
turns(uint32_t n, uint32_t shared)
{
	memset(asked, 0, sizeof(asked));
	for (; n > 0; n--)
		turn(shared);
}

static const uint32_t shares[] = { 0, 1, 4, 200 };

START_TEST(no_worker_is_overrun)
{
	uint32_t fleet = _i % 2 == 0 ? 4 : 16, shared = shares[_i / 2], i;

	begin(fleet);
	turns(REQUESTS, shared);
	for (i = 0; i < fleet; i++)
		ck_assert_msg(asked[i] * fleet <= REQUESTS * 3 / 2,
		    "%u shared blocks, %u workers: %u of %u requests", shared,
		    fleet, asked[i], REQUESTS);
	end();
}
END_TEST

START_TEST(a_worker_that_joins_gets_its_share)
{
	uint32_t fleet = _i % 2 == 0 ? 4 : 16, shared = shares[_i / 2];

	begin(fleet);
	turns(REQUESTS, shared);
	add_worker();
	turns(MINUTE, shared);
	ck_assert_msg(asked[fleet] * (fleet + 1) * 2 >= MINUTE,
	    "%u shared blocks, %u workers and one: %u of %u requests", shared,
	    fleet, asked[fleet], MINUTE);
	end();
}
END_TEST

Suite *suite_readme_load(void);

Suite *
suite_readme_load(void)
{
	Suite *s = suite_create("readme_load");
	TCase *t = tcase_create("readme_load");

	tcase_add_loop_test(t, no_worker_is_overrun, 0, 8);
	tcase_add_loop_test(t, a_worker_that_joins_gets_its_share, 0, 8);
	suite_add_tcase(s, t);
	return s;
}
