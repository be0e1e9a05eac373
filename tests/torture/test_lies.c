/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_lies.c - engines that report arbitrary numbers.
 *
 * Two regions see the same calls in the same order. In one, half of the
 * workers lie about hits, lengths of prompts and outputs, and places; in the
 * other they report nothing. Lies affect only the workers that report them:
 * all about the honest ones is equal in both, after each call. Both regions
 * stay sound, and every cost a number.
 */
#include "inner.h"

enum { LIARS = 3, FLEET = 6, OPEN = 24, BLOCK_OF = 4 };

static struct kvr *told, *silent; /* k is the one or the other */
static struct {
	uint64_t lease;
	uint32_t worker, tokens;
} at_work[OPEN];
static int64_t now;

/*
 * A worker that is reset gets a slot with nothing to reclaim, and the rest to
 * reclaim may differ.
 */
static uint64_t ids[2][FLEET];
#define ID(worker) ids[k == silent][worker]

static void
both_begin(uint64_t bytes)
{
	struct kvr_options o = small_options();

	o.region_bytes = bytes;
	o.block_size = BLOCK_OF;
	o.max_workers = FLEET;
	o.ttl_ns = 100000;
	ck_assert_int_eq(kvr_new(&o, &told), KVR_OK);
	k = told;
	people(FLEET);
	memcpy(ids[0], id, sizeof(ids[0]));
	kvr_prompt_free(p);
	ck_assert_int_eq(kvr_new(&o, &silent), KVR_OK);
	k = silent;
	people(FLEET);
	memcpy(ids[1], id, sizeof(ids[1]));
	memset(at_work, 0, sizeof(at_work));
	now = 0;
}

static void
both_end(void)
{
	k = told;
	region_sound();
	kvr_free(told);
	k = silent;
	region_end();
}

#define in_both(call) do { \
	k = told; \
	call; \
	k = silent; \
	call; \
} while (0)

/* The same of both, or the test is wrong. */
#define same_of_both(call) do { \
	int one_, other_; \
	k = told; \
	one_ = (call); \
	k = silent; \
	other_ = (call); \
	must(one_ == other_); \
} while (0)

/* ---------------------------------------------------------------- lies --- */

static uint64_t
any_number(uint32_t tokens)
{
	switch (pick(10)) {
	case 0: return 0;
	case 1: return tokens;
	case 2: return tokens + 1;
	case 3: return tokens > 0 ? tokens - 1 : 0;
	case 4: return UINT64_MAX - pick(100); /* negative when signed */
	case 5: return (uint64_t)UINT32_MAX + pick(3) - 1;
	case 6: return plain_random(&chance);
	case 7: return UINT64_C(1) << pick(64);
	default: return pick(tokens + 10);
	}
}

/* Each liar has its own way, and changes it now and then. */
static uint32_t way[LIARS];

static void
lie(struct kvr_report *r, uint32_t worker, uint32_t tokens)
{
	uint32_t w = way[worker];

	if (pick(50) == 0)
		way[worker] = pick(6);
	r->kind = pick(6) == 0 ? pick(3) : KVR_REPORT_VALUE;
	r->endpoint = pick(4) == 0 ? (uint32_t)any_number(3) : 0;
	r->flags = pick(5) == 0 ? pick(4) : 0;
	r->prompt_tokens = w == 0 ? any_number(tokens) : pick(2) * tokens;
	r->completion_tokens = pick(3) == 0 ? any_number(20) : pick(20);
	r->cached_tokens = w == 1 ? 0 : w == 2 ? tokens
	    : w == 3 ? pick(2) * tokens
	    : w == 4 ? pick(tokens + 1) / BLOCK_OF * BLOCK_OF
	    : any_number(tokens);
}

static void
truth(struct kvr_report *r, uint32_t tokens)
{
	r->kind = KVR_REPORT_VALUE;
	r->prompt_tokens = tokens;
	r->cached_tokens = pick(tokens + 1);
	r->completion_tokens = pick(20);
}

/* ------------------------------------------------------------ questions --- */

static uint32_t
say_something(void)
{
	static uint32_t token[80 * BLOCK_OF];
	uint32_t n = 1 + pick(80 * BLOCK_OF), i, kind = pick(2);

	for (i = 0; i < n; i++) {
		if (i % BLOCK_OF == 0 && pick(9) == 0)
			kind = kind * 2 + 1 + pick(2);
		token[i] = kind;
	}
	must(kvr_prompt_set_tokens(p, NULL, token, n) == KVR_OK);
	return n;
}

/* Reads the statistics that must not depend on reports of others. */
static void
own_stats(uint32_t worker, struct kvr_worker_stats *s)
{
	memset(s, 0, sizeof(*s));
	s->size = sizeof(*s);
	must(kvr_worker_stats_get(k, ID(worker), s) == KVR_OK);
	/* those are the fleet's too; and how a path is split, all workers' */
	s->prefill_rate = s->backlog = 0;
	s->entries = 0;
}

static void
ck_honest(void)
{
	struct kvr_worker_stats one, other;
	uint32_t worker, blocks;

	in_both(must(expire(now, UINT32_MAX) == 0));
	for (worker = LIARS; worker < FLEET; worker++) {
		k = told;
		own_stats(worker, &one);
		blocks = overlap(worker, now);
		k = silent;
		own_stats(worker, &other);
		must(memcmp(&one, &other, sizeof(one)) == 0);
		must(blocks == overlap(worker, now));
	}
}

static void
ck_costs(void)
{
	struct kvr_candidate c[FLEET];
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_policy y;
	size_t i, n;

	kvr_policy_init(&y, sizeof(y));
	y.cost = pick(2);
	in_both(must(kvr_policy_set(k, &y) == KVR_OK));
	k = told;
	must(kvr_candidates(k, p, NULL, now, c, sizeof(c[0]), FLEET, &n) ==
	    KVR_OK && n == FLEET);
	for (i = 0; i < n; i++) {
		must(c[i].cost >= 0 && c[i].cost <= 1e300);
		must(c[i].overlap_tokens <= p->units);
	}
	must(kvr_route(k, p, NULL, now, &d) == KVR_OK);
}

/* --------------------------------------------------------------- calls --- */

static void
set_facts(uint32_t worker)
{
	struct kvr_worker f;

	must(kvr_worker_init(&f, sizeof(f)) == KVR_OK);
	/* by TTL, runs are merged whatever their ages: none depends on them */
	f.retain = worker < LIARS ? pick(4) : KVR_RETAIN_CAPACITY + pick(2);
	f.capacity_tokens = pick(2) == 0 || f.retain == KVR_RETAIN_CAPACITY
	    ? 100 + pick(4000) : 0;
	/* whole leaves are evicted, and splits make other leaves */
	f.eviction = worker < LIARS ? pick(2) : KVR_EVICT_RELEASED;
	f.block_tokens = pick(3) == 0 ? 1 + pick(40) : 0;
	in_both(must(kvr_worker_set(k, ID(worker), &f) == KVR_OK));
}

static void
begin(uint32_t i)
{
	struct kvr_decision d = { .size = sizeof(d) };

	at_work[i].worker = pick(FLEET);
	at_work[i].tokens = say_something();
	same_of_both(kvr_lease_open_on(k, p, NULL, ID(at_work[i].worker), now,
	    &d));
	at_work[i].lease = d.lease;
	if (pick(4) != 0)
		same_of_both(kvr_lease_commit(k, d.lease, now, 0));
}

static void
end(uint32_t i)
{
	struct kvr_report r = { .size = sizeof(r) };
	uint32_t worker = at_work[i].worker;

	if (worker < LIARS) {
		lie(&r, worker, at_work[i].tokens);
		k = told;
		must(kvr_lease_finish(k, at_work[i].lease, &r, now, 0) ==
		    KVR_OK);
		k = silent;
		must(kvr_lease_finish(k, at_work[i].lease, NULL, now, 0) ==
		    KVR_OK);
	} else {
		truth(&r, at_work[i].tokens);
		same_of_both(kvr_lease_finish(k, at_work[i].lease, &r, now, 0));
	}
	at_work[i].lease = 0;
}

static void
one_call(void)
{
	uint32_t i = pick(OPEN), worker = pick(FLEET), blocks;
	uint64_t lease = at_work[i].lease;

	now += pick(4) == 0 ? (int64_t)pick(40000) : pick(10);
	if (lease == 0 && pick(5) != 0) {
		begin(i);
		return;
	}
	if (lease == 0) {
		(void)say_something();
		same_of_both(kvr_observe(k, p, ID(worker), now, 0, NULL));
		return;
	}
	switch (pick(16)) {
	case 0:
		same_of_both(kvr_lease_abort(k, lease, now, 0));
		at_work[i].lease = 0;
		break;
	case 1:
		same_of_both(kvr_lease_first_token(k, lease, now, 0));
		break;
	case 2:
		blocks = pick(9);
		same_of_both(kvr_lease_output(k, lease, blocks, now, 0));
		break;
	case 3:
		set_facts(worker);
		break;
	case 4:
		if (pick(10) == 0)
			in_both(must(kvr_worker_reset(k, ID(worker),
			    &ID(worker)) == KVR_OK));
		break;
	default:
		end(i);
	}
}

static void
storm(uint64_t calls, bool compare)
{
	uint64_t i;
	uint32_t worker;

	by_chance();
	for (worker = 0; worker < FLEET; worker++)
		set_facts(worker);
	for (i = 0; i < calls; i++) {
		one_call();
		(void)say_something();
		if (compare)
			ck_honest();
		if (i % 8 == 0)
			ck_costs();
		if (i % 64 == 0)
			in_both(must(kvr_check(k) == KVR_OK));
	}
}

/* Room for all: nothing is evicted for another. */
START_TEST(others_lose_nothing)
{
	both_begin(8 << 20);
	storm(test_amount(12000), true);
	k = told;
	ck_assert(stats().evicted_region == 0);
	if (stats().observes > 100)
		ck_assert_uint_gt(stats().calibration.over_tokens, 0);
	both_end();
}
END_TEST

/* No room: lies may cost others some hits, but nothing breaks. */
START_TEST(nothing_breaks_when_full)
{
	both_begin(40 << 10);
	storm(test_amount(12000), false);
	both_end();
}
END_TEST

Suite *suite_lies(void);

Suite *
suite_lies(void)
{
	Suite *s = suite_create("lies");
	TCase *t = tcase_create("lies");

	suite_add_tcase(s, t);
	tcase_add_test(t, others_lose_nothing);
	tcase_add_test(t, nothing_breaks_when_full);
	return s;
}
