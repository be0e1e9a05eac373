/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_policy.c - the ranges of policies and requests, their defaults, and how
 * both take effect through the public calls.
 */
#include "policy.h"
#include "prompt.h"

#include "test.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* --------------------------------------------------------------- policy --- */

START_TEST(policy_defaults)
{
	struct kvr_policy p;

	ck_assert_int_eq(kvr_policy_init(NULL, sizeof(p)), KVR_EINVAL);
	memset(&p, 0xff, sizeof(p));
	ck_assert_int_eq(kvr_policy_init(&p, sizeof(p)), KVR_OK);
	ck_assert_uint_eq(p.size, sizeof(p));
	ck_assert_uint_eq(p.cost, KVR_COST_BALANCED);
	ck_assert_uint_eq(p.reserved, 0);
	ck_assert(p.balanced_bound == 2 && p.observed_seconds == 10);
	ck_assert(p.overlap_credit == 1 && p.overlap_decay == 0);
	ck_assert(p.prefill_scale == 1 && p.request_weight == 0);
	ck_assert(p.temperature == 0);
	ck_assert(
	    p.overload_prefill_tokens < 0 && p.overload_prefill_fraction < 0);
	ck_assert(p.overload_blocks_fraction < 0);
	ck_assert_int_eq(policy_check(&p), KVR_OK);
}
END_TEST

/* The range of each number: NaN and infinities are in none. */
static const struct {
	size_t at;
	double least, most;
} numbers[] = {
#define NUMBER(name, least, most) \
	{ offsetof(struct kvr_policy, name), least, most }
	NUMBER(overlap_credit, 0, 1e308),
	NUMBER(overlap_decay, 0, 1e308),
	NUMBER(prefill_scale, 0, 1e308),
	NUMBER(request_weight, 0, 1e308),
	NUMBER(temperature, 0, 1e308),
	NUMBER(overload_prefill_tokens, -1e308, 1e308),
	NUMBER(overload_prefill_fraction, -1e308, 1e308),
	NUMBER(overload_blocks_fraction, -1e308, 1e308),
	NUMBER(balanced_bound, 0, 1e15),
	NUMBER(observed_seconds, 1e-3, 1e6)
#undef NUMBER
};

START_TEST(policy_ranges)
{
	static const double values[] = {
		-INFINITY, -1e308, -1, -1e-9, -5e-324, 0, 5e-324, 9e-4, 1e-3,
		0.5, 1, 1 + 0x1p-52, 1.1, 1e6, 1.1e6, 1e15, 1.1e15, 1e308,
		INFINITY, NAN
	};
	struct kvr_policy p;
	size_t i, j;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		for (j = 0; j < sizeof(values) / sizeof(values[0]); j++) {
			double v = values[j];
			int want = v >= numbers[i].least &&
			    v <= numbers[i].most ? KVR_OK : KVR_EINVAL;

			(void)kvr_policy_init(&p, sizeof(p));
			memcpy((char *)&p + numbers[i].at, &v, sizeof(v));
			ck_assert_msg(policy_check(&p) == want,
			    "number %zu: %g", i, v);
		}
}
END_TEST

START_TEST(policy_enums)
{
	struct kvr_policy p;

	(void)kvr_policy_init(&p, sizeof(p));
	p.cost = KVR_COST_DYNAMO;
	ck_assert_int_eq(policy_check(&p), KVR_OK);
	p.cost = KVR_COST_DYNAMO + 1;
	ck_assert_int_eq(policy_check(&p), KVR_EINVAL);
	p.cost = UINT32_MAX;
	ck_assert_int_eq(policy_check(&p), KVR_EINVAL);
	(void)kvr_policy_init(&p, sizeof(p));
	p.reserved = 1;
	ck_assert_int_eq(policy_check(&p), KVR_EINVAL);
}
END_TEST

/* -------------------------------------------------------------- request --- */

START_TEST(request_defaults)
{
	struct kvr_request r;

	ck_assert_int_eq(kvr_request_init(NULL, sizeof(r)), KVR_EINVAL);
	memset(&r, 0xff, sizeof(r));
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	ck_assert_uint_eq(r.size, sizeof(r));
	ck_assert(r.owner == 0 && r.pinned == 0 && r.seed == 0);
	ck_assert(r.required_taints == 0);
	ck_assert(r.overlap_credit < 0 && r.prefill_scale < 0);
	ck_assert(r.temperature < 0);
	ck_assert_uint_eq(r.stage, KVR_STAGE_ALL);
	ck_assert(r.flags == 0 && r.n_excluded == 0 && r.n_preferences == 0);
	ck_assert_int_eq(policy_check_request(&r), KVR_OK);
}
END_TEST

START_TEST(request_ranges)
{
	static const double values[] = { NAN, INFINITY, -INFINITY };
	struct kvr_request good, r;
	size_t i;

	(void)kvr_request_init(&good, sizeof(good));
	good.flags = KVR_NOWAIT | KVR_IGNORE_PREFILL | KVR_IGNORE_REUSE |
	    KVR_NO_FIRST_TOKEN;
	good.stage = KVR_STAGE_DECODE;
	good.n_excluded = KVR_EXCLUDED_MAX;
	good.n_preferences = KVR_PREFERENCES_MAX;
	good.overlap_credit = 1e308;
	good.temperature = -1e308;
	ck_assert_int_eq(policy_check_request(&good), KVR_OK);
#define REFUSED(change) \
	do { \
		r = good; \
		change; \
		ck_assert_int_eq(policy_check_request(&r), KVR_EINVAL); \
	} while (0)
	REFUSED(r.flags |= 16);
	REFUSED(r.flags |= 0x80000000);
	REFUSED(r.stage = KVR_STAGE_DECODE + 1);
	REFUSED(r.stage = UINT32_MAX);
	REFUSED(r.n_excluded++);
	REFUSED(r.n_excluded = UINT32_MAX);
	REFUSED(r.n_preferences++);
	REFUSED(r.n_preferences = UINT32_MAX);
	for (i = 0; i < 3; i++) {
		REFUSED(r.overlap_credit = values[i]);
		REFUSED(r.prefill_scale = values[i]);
		REFUSED(r.temperature = values[i]);
		REFUSED(r.preferences[0].weight = values[i]);
		REFUSED(r.preferences[7].weight = values[i]);
	}
#undef REFUSED
	/* fields beyond the count are not read */
	good.preferences[7].weight = NAN;
	good.n_preferences = 7;
	ck_assert_int_eq(policy_check_request(&good), KVR_OK);
}
END_TEST

START_TEST(resolve_takes_the_policys)
{
	struct kvr_policy p;
	struct kvr_request r;

	(void)kvr_policy_init(&p, sizeof(p));
	p.overlap_credit = 0.25;
	p.prefill_scale = 0.5;
	p.temperature = 2;
	(void)kvr_request_init(&r, sizeof(r));
	policy_resolve(&p, &r);
	ck_assert(r.overlap_credit == 0.25 && r.prefill_scale == 0.5);
	ck_assert(r.temperature == 2 && r.flags == 0);
	(void)kvr_request_init(&r, sizeof(r));
	r.overlap_credit = r.prefill_scale = r.temperature = 0;
	policy_resolve(&p, &r);
	ck_assert(r.overlap_credit == 0 && r.prefill_scale == 0);
	ck_assert(r.temperature == 0);
}
END_TEST

START_TEST(resolve_stages)
{
	struct kvr_policy p;
	struct kvr_request r, again;

	(void)kvr_policy_init(&p, sizeof(p));
	(void)kvr_request_init(&r, sizeof(r));
	r.stage = KVR_STAGE_PREFILL;
	policy_resolve(&p, &r);
	ck_assert(r.overlap_credit == 1 && r.flags == 0);
	(void)kvr_request_init(&r, sizeof(r));
	r.stage = KVR_STAGE_DECODE;
	r.flags = KVR_NOWAIT;
	policy_resolve(&p, &r);
	ck_assert(r.overlap_credit == 0);
	ck_assert_uint_eq(r.flags, KVR_NOWAIT | KVR_IGNORE_PREFILL |
	    KVR_IGNORE_REUSE);
	again = r;
	policy_resolve(&p, &again);
	ck_assert_mem_eq(&again, &r, sizeof(r));
	(void)kvr_request_init(&r, sizeof(r));
	r.stage = KVR_STAGE_DECODE;
	r.overlap_credit = 0.5;
	policy_resolve(&p, &r);
	ck_assert(r.overlap_credit == 0.5);
	ck_assert_uint_eq(r.flags, KVR_IGNORE_PREFILL);
}
END_TEST

/* ------------------------------------------------- through the library --- */

enum { FLEET = 12 };

static struct kvr *k;
static struct kvr_prompt *p;
static uint64_t id[FLEET];

/* n workers w0, w1, ... added in this order; id[i] is that of wi. */
static void
fleet_make(uint32_t n, const uint32_t *order)
{
	struct kvr_options o;
	struct kvr_policy policy;
	uint32_t i, which;
	char name[8];

	(void)kvr_options_init(&o, sizeof(o));
	o.region_bytes = UINT64_C(1) << 20;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 0x5a, sizeof(o.secret));
	o.block_size = 4;
	o.max_workers = FLEET;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	(void)kvr_policy_init(&policy, sizeof(policy));
	policy.cost = KVR_COST_DYNAMO;
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_OK);
	for (i = 0; i < n; i++) {
		which = order != NULL ? order[i] : i;
		snprintf(name, sizeof(name), "w%u", which);
		ck_assert_int_eq(kvr_worker_add(k, name, strlen(name), NULL,
		    &id[which]), KVR_OK);
	}
}

static void
fleet_free(void)
{
	kvr_prompt_free(p);
	kvr_free(k);
}

/* Makes a prompt with these letters as blocks, and a tail of so many tokens. */
static void
say(const char *blocks, size_t tail)
{
	uint32_t tokens[256];
	size_t i, n = strlen(blocks) * 4;

	for (i = 0; i < n; i++)
		tokens[i] = (uint32_t)(unsigned char)blocks[i / 4];
	for (i = 0; i < tail; i++)
		tokens[n + i] = 1;
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, n + tail),
	    KVR_OK);
}

static struct kvr_candidate
candidate(uint64_t worker, const struct kvr_request *r, int64_t now)
{
	struct kvr_candidate all[FLEET];
	size_t i, n = 0;

	ck_assert_int_eq(kvr_candidates(k, p, r, now, all, sizeof(all[0]),
	    FLEET, &n), KVR_OK);
	for (i = 0; i < n; i++)
		if (all[i].worker == worker)
			return all[i];
	ck_abort_msg("worker %llu is no candidate",
	    (unsigned long long)worker);
	return all[0];
}

static int
route(const struct kvr_request *r, int64_t now, struct kvr_decision *d)
{
	memset(d, 0, sizeof(*d));
	d->size = sizeof(*d);
	return kvr_route(k, p, r, now, d);
}

START_TEST(public_potential_blocks)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_candidate c;

	fleet_make(1, NULL);
	say("1245", 0);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], 0, &d), KVR_OK);
	say("1235", 0);
	c = candidate(id[0], NULL, 0);
	ck_assert_uint_eq(c.decode_blocks, 4);
	ck_assert_uint_eq(c.new_decode_blocks, 2);
	ck_assert_uint_eq(c.overlap_blocks, 2);
	ck_assert_uint_eq(c.prefill_tokens, 16);
	/* prefill (16 + 16) / 4 - 2 and the 6 blocks */
	ck_assert(c.cost == 6 + 6);
	ck_assert_int_eq(route(NULL, 0, &d), KVR_OK);
	ck_assert(d.cost == 12);
	fleet_free();
}
END_TEST

START_TEST(public_choice_of_three)
{
	static const uint32_t decode[] = { 10, 5, 9 }, device[] = { 2, 5, 8 };
	static const double cost[] = { 18, 10, 11 };
	struct kvr_overlap o[3];
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_load l = { .size = sizeof(l) };
	struct kvr_request r;
	uint32_t i;

	fleet_make(3, NULL);
	say("0123456789", 0);
	memset(o, 0, sizeof(o));
	for (i = 0; i < 3; i++) {
		o[i].worker = id[i];
		o[i].blocks = device[i];
		/* at least 10 blocks active: all of them this prompt's */
		o[i].active_blocks = device[i];
		l.active_blocks = decode[i] - (10 - device[i]);
		ck_assert_int_eq(kvr_worker_set_load(k, id[i], 0, &l), KVR_OK);
	}
	ck_assert_int_eq(kvr_choose(k, p, NULL, o, sizeof(o[0]), 3, 0, &d),
	    KVR_OK);
	ck_assert_uint_eq(d.worker, id[1]);
	ck_assert_uint_eq(d.eligible, 3);
	(void)kvr_request_init(&r, sizeof(r));
	for (i = 0; i < 3; i++) {
		r.pinned = id[i];
		ck_assert_int_eq(kvr_choose(k, p, &r, o, sizeof(o[0]), 3, 0,
		    &d), KVR_OK);
		ck_assert_uint_eq(d.worker, id[i]);
		ck_assert_uint_eq(d.reason, KVR_REASON_PINNED);
		ck_assert(d.cost == cost[i]);
	}
	fleet_free();
}
END_TEST

/* Replicas that added the workers in another order agree on every tie. */
START_TEST(public_replicas_agree)
{
	static const uint32_t step[] = { 1, 5, 7, 11 };
	uint32_t order[FLEET], i, j, round, winner[60];
	struct kvr_decision d;
	char text[3] = "aa";

	for (round = 0; round < 8; round++) {
		for (i = 0; i < FLEET; i++)
			order[i] = (i * step[round % 4] + round) % FLEET;
		fleet_make(FLEET, order);
		for (j = 0; j < 60; j++) {
			text[0] = (char)('A' + j);
			say(text, j % 4);
			ck_assert_int_eq(route(NULL, 0, &d), KVR_OK);
			ck_assert_uint_eq(d.reason, KVR_REASON_TIE);
			for (i = 0; i < FLEET && id[i] != d.worker; i++)
				continue;
			if (round == 0)
				winner[j] = i;
			ck_assert_uint_eq(winner[j], i);
		}
		fleet_free();
	}
}
END_TEST

START_TEST(public_errors)
{
	struct kvr_worker w = { .size = sizeof(w) };
	struct kvr_decision d, before;
	struct kvr_request r;

	fleet_make(2, NULL);
	(void)kvr_request_init(&r, sizeof(r));
	say("ab", 0);
	r.stage = KVR_STAGE_DECODE + 1;
	ck_assert_int_eq(route(&r, 0, &d), KVR_EINVAL);
	(void)kvr_request_init(&r, sizeof(r));
	r.required_taints = 1;
	ck_assert_int_eq(route(&r, 0, &d), KVR_ENOWORKER);
	memset(&before, 0, sizeof(before));
	before.size = sizeof(before);
	ck_assert_mem_eq(&d, &before, sizeof(d));
	r.pinned = id[0];
	ck_assert_int_eq(route(&r, 0, &d), KVR_ENOTALLOWED);
	r.required_taints = 0;
	ck_assert_int_eq(kvr_worker_get(k, id[0], &w), KVR_OK);
	w.state = KVR_STATE_DRAINING;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &w), KVR_OK);
	ck_assert_int_eq(route(&r, 0, &d), KVR_OK);
	ck_assert_uint_eq(d.reason, KVR_REASON_PINNED);
	ck_assert_int_eq(route(NULL, 0, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[1]);
	ck_assert_int_eq(kvr_worker_remove(k, id[0]), KVR_OK);
	ck_assert_int_eq(route(&r, 0, &d), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_remove(k, id[1]), KVR_OK);
	ck_assert_int_eq(route(NULL, 0, &d), KVR_ENOWORKER);
	say("", 0);
	ck_assert_int_eq(route(NULL, 0, &d), KVR_EEMPTY);
	fleet_free();
}
END_TEST

START_TEST(public_overload)
{
	struct kvr_policy policy = { .size = sizeof(policy) };
	struct kvr_load l = { .size = sizeof(l) };
	struct kvr_decision d;
	struct kvr_request r;

	fleet_make(2, NULL);
	say("ab", 0);
	ck_assert_int_eq(kvr_policy_get(k, &policy), KVR_OK);
	policy.overload_prefill_tokens = 1000;
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_OK);
	l.prefill_tokens = 1001;
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &l), KVR_OK);
	ck_assert_int_eq(route(NULL, 0, &d), KVR_OK);
	ck_assert_uint_eq(d.eligible, 1);
	ck_assert_uint_eq(candidate(id[0], NULL, 0).verdict, KVR_OVERLOADED);
	(void)kvr_request_init(&r, sizeof(r));
	r.pinned = id[0];
	ck_assert_int_eq(route(&r, 0, &d), KVR_EPINNEDOVERLOADED);
	ck_assert_int_eq(kvr_worker_set_load(k, id[1], 0, &l), KVR_OK);
	ck_assert_int_eq(route(NULL, 0, &d), KVR_EALLOVERLOADED);
	policy.overload_prefill_tokens = 1001;
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_OK);
	ck_assert_int_eq(route(NULL, 0, &d), KVR_OK);
	ck_assert_uint_eq(d.eligible, 2);
	fleet_free();
}
END_TEST

START_TEST(public_policy_is_checked)
{
	struct kvr_policy policy = { .size = sizeof(policy) };
	struct kvr_policy now = { .size = sizeof(now) };

	fleet_make(1, NULL);
	ck_assert_int_eq(kvr_policy_get(k, &policy), KVR_OK);
	policy.temperature = 3;
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_OK);
	policy.temperature = NAN;
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_EINVAL);
	policy.temperature = -1;
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_EINVAL);
	policy.temperature = 1;
	policy.cost = 2;
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_EINVAL);
	ck_assert_int_eq(kvr_policy_get(k, &now), KVR_OK);
	ck_assert(now.temperature == 3 && now.cost == KVR_COST_DYNAMO);
	fleet_free();
}
END_TEST

/* Prefill on one, decode on the other, one index. */
START_TEST(public_two_stages)
{
	struct kvr_worker w = { .size = sizeof(w) };
	struct kvr_decision d;
	struct kvr_request r;
	uint32_t i;

	fleet_make(4, NULL);
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(kvr_worker_get(k, id[i], &w), KVR_OK);
		w.role = i < 2 ? KVR_ROLE_PREFILL : KVR_ROLE_DECODE;
		ck_assert_int_eq(kvr_worker_set(k, id[i], &w), KVR_OK);
	}
	say("abcdef", 0);
	ck_assert_int_eq(kvr_observe(k, p, id[1], 1, 0, NULL), KVR_OK);
	ck_assert_int_eq(kvr_observe(k, p, id[3], 1, 0, NULL), KVR_OK);
	(void)kvr_request_init(&r, sizeof(r));
	ck_assert_int_eq(route(&r, 2, &d), KVR_ENOWORKER);
	r.stage = KVR_STAGE_PREFILL;
	ck_assert_int_eq(route(&r, 2, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[1]);
	ck_assert_uint_eq(d.eligible, 2);
	r.stage = KVR_STAGE_DECODE;
	ck_assert_int_eq(route(&r, 2, &d), KVR_OK);
	ck_assert_uint_eq(d.reason, KVR_REASON_TIE);
	r.overlap_credit = 1;
	ck_assert_int_eq(route(&r, 2, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[3]);
	ck_assert_uint_eq(d.reason, KVR_REASON_COST);
	fleet_free();
}
END_TEST

/* --------------------------------------------------------------- suite --- */

Suite *
suite_policy(void)
{
	Suite *s = suite_create("policy");
	TCase *t;

	t = tcase_create("policy");
	tcase_add_test(t, policy_defaults);
	tcase_add_test(t, policy_ranges);
	tcase_add_test(t, policy_enums);
	suite_add_tcase(s, t);
	t = tcase_create("request");
	tcase_add_test(t, request_defaults);
	tcase_add_test(t, request_ranges);
	tcase_add_test(t, resolve_takes_the_policys);
	tcase_add_test(t, resolve_stages);
	suite_add_tcase(s, t);
	t = tcase_create("public");
	tcase_add_test(t, public_potential_blocks);
	tcase_add_test(t, public_choice_of_three);
	tcase_add_test(t, public_replicas_agree);
	tcase_add_test(t, public_errors);
	tcase_add_test(t, public_overload);
	tcase_add_test(t, public_policy_is_checked);
	tcase_add_test(t, public_two_stages);
	suite_add_tcase(s, t);
	return s;
}
