/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_readme_load.c - the program of README.md and examples/route.c, one
 * request after the other, and its short form that only calls kvr_route and
 * kvr_observe: no worker is forgotten or overrun, whatever the prompts share.
 */
#include <kvroute.h>

#include "test.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	TOKENS = 3200, BLOCK_OF = 16, REQUESTS = 400, FLEET = 17,
	MINUTE = 1200 /* requests */, AT_ONCE = 40,
	SHORT = 320
};
#define APART INT64_C(50000000)

static struct kvr *k;
static struct kvr_prompt *p;
static uint64_t id[FLEET];
static uint32_t workers, asked[FLEET], sent;
static bool leases; /* or observed */

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
	leases = false;
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

/* The lease has ended when the next one begins. */
static bool
lease_one(struct kvr_decision *d, int64_t now)
{
	return kvr_lease_open(k, p, NULL, now, d) == KVR_OK &&
	    kvr_lease_commit(k, d->lease, now, 0) == KVR_OK &&
	    kvr_lease_first_token(k, d->lease, now + 1000000, 0) == KVR_OK &&
	    kvr_lease_finish(k, d->lease, NULL, now + 2000000, 0) == KVR_OK;
}

static bool
observe_one(struct kvr_decision *d, int64_t now)
{
	return kvr_route(k, p, NULL, now, d) == KVR_OK &&
	    kvr_observe(k, p, d->worker, now, 0, NULL) == KVR_OK;
}

/* Sends a prompt; its tokens behind the shared blocks depend on `own`. */
static uint32_t
send_prompt(uint32_t shared, uint32_t own)
{
	struct kvr_decision d = { .size = sizeof(d) };
	int64_t now = (int64_t)sent * APART;
	uint32_t token[TOKENS], i;

	for (i = 0; i < TOKENS; i++)
		token[i] = i < shared * BLOCK_OF ? i
		    : UINT32_C(0x80000000) + own;
	sent++;
	if (kvr_prompt_set_tokens(p, NULL, token, TOKENS) != KVR_OK ||
	    !(leases ? lease_one : observe_one)(&d, now))
		ck_abort_msg("request %u", sent);
	for (i = 0; i < workers && id[i] != d.worker; i++)
		continue;
	if (i == workers)
		ck_abort_msg("an unknown worker");
	return i;
}

static void
turns(uint32_t n, uint32_t shared)
{
	memset(asked, 0, sizeof(asked));
	for (; n > 0; n--)
		asked[send_prompt(shared, sent)]++;
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

/* Each lease has ended when the next request is routed. */
static const uint32_t fleets[] = { 4, 8, 16 };
static const uint32_t begins[] = { 0, 1, 4, 16 };
enum { LEASES = 12 };

START_TEST(leases_are_spread)
{
	uint32_t fleet = fleets[_i % 3], shared = begins[_i / 3], i;

	begin(fleet);
	leases = true;
	turns(REQUESTS, shared);
	for (i = 0; i < fleet; i++)
		ck_assert_msg(asked[i] * fleet <= REQUESTS * 3 / 2,
		    "%u shared blocks, %u workers: %u of %u requests", shared,
		    fleet, asked[i], REQUESTS);
	add_worker();
	turns(MINUTE, shared);
	ck_assert_msg(asked[fleet] * (fleet + 1) * 2 >= MINUTE &&
	    asked[fleet] * (fleet + 1) <= MINUTE * 3 / 2,
	    "%u shared blocks, %u workers and one: %u of %u requests", shared,
	    fleet, asked[fleet], MINUTE);
	end();
}
END_TEST

/* A chat's turn goes to the worker that has 60 % of it. */
START_TEST(a_chat_stays)
{
	uint32_t chat;

	begin(fleets[_i]);
	leases = true;
	turns(REQUESTS, 4);
	chat = send_prompt(200, 0);
	turns(REQUESTS, 4);
	ck_assert_uint_eq(send_prompt(120, sent), chat);
	end();
}
END_TEST

/* Tens of requests run at a time: each ends when its place is taken again. */
static void
turns_at_once(uint32_t n)
{
	static uint64_t open[AT_ONCE];
	struct kvr_decision d = { .size = sizeof(d) };

	memset(open, 0, sizeof(open));
	memset(asked, 0, sizeof(asked));
	for (; n > 0; n--) {
		int64_t now = (int64_t)sent * APART;
		uint32_t token[SHORT] = { ++sent }, i = sent % AT_ONCE;

		if ((open[i] != 0 &&
		    kvr_lease_finish(k, open[i], NULL, now, 0) != KVR_OK) ||
		    kvr_prompt_set_tokens(p, NULL, token, SHORT) != KVR_OK ||
		    kvr_lease_open(k, p, NULL, now, &d) != KVR_OK ||
		    kvr_lease_commit(k, d.lease, now, 0) != KVR_OK ||
		    kvr_lease_first_token(k, d.lease, now + 1000, 0) != KVR_OK)
			ck_abort_msg("request %u", sent);
		open[i] = d.lease;
		for (i = 0; i < workers; i++)
			asked[i] += id[i] == d.worker;
	}
}

/*
 * A caller forgot a lease, before it was sent or behind that. Until the lease
 * ends its worker is taken less often, as if that prompt still waited, and is
 * not forgotten.
 */
START_TEST(a_forgotten_lease)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t token[SHORT] = { UINT32_MAX }, on;

	begin(8);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, token, SHORT), KVR_OK);
	ck_assert_int_eq(kvr_lease_open(k, p, NULL, 0, &d), KVR_OK);
	for (on = 0; id[on] != d.worker; on++)
		continue;
	if (_i == 1)
		ck_assert_int_eq(kvr_lease_commit(k, d.lease, 0, 0), KVR_OK);
	turns_at_once(MINUTE);
	ck_assert_msg(asked[on] * 8 * 8 >= MINUTE, "%u of %u requests",
	    asked[on], MINUTE);
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
	tcase_add_loop_test(t, leases_are_spread, 0, LEASES);
	tcase_add_loop_test(t, a_chat_stays, 0, 3);
	tcase_add_loop_test(t, a_forgotten_lease, 0, 2);
	suite_add_tcase(s, t);
	return s;
}
