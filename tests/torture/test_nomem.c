/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_nomem.c - allocations fail.
 *
 * Each call is made with its first allocation failing, then its second, and
 * so on, once and permanently, until it needs no more. Each failure must have
 * changed nothing, and with memory again the call must succeed. Calls that end
 * or free something must need none.
 */
#include "alloc.h"
#include "kvroute.h"
#include "kvroute_events.h"
#include "kvroute_replica.h"
#include "small.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint32_t numbers[4096];

static void
fill_numbers(void)
{
	uint32_t i;

	for (i = 0; i < 4096; i++)
		numbers[i] = i;
}

/* The objects of a call under test; each attempt gets its own prompt. */
struct bench {
	struct kvr *k;
	uint64_t worker;
	struct kvr_prompt *p;
	struct kvr_prompt *made;   /* by the call itself */
	struct kvr *new;
	struct kvr_decision d;
	struct kvr_overlap v[4];
	void *memory;
	uint64_t seq;              /* of the next batch of events */
};
enum { MEMORY = 1152 << 10 };

static int
call_new(struct bench *b)
{
	struct kvr_options o;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = MEMORY;
	return kvr_new(&o, &b->new);
}

static int
call_new_at(struct bench *b)
{
	struct kvr_options o;

	kvr_options_init(&o, sizeof(o));
	return kvr_new_at(&o, b->memory, MEMORY, &b->new);
}

static int
call_attach(struct bench *b)
{
	return kvr_attach_at(NULL, b->memory, MEMORY, &b->new);
}

static int
call_prompt_new(struct bench *b)
{
	return kvr_prompt_new(b->k, &b->made);
}

static int
call_set_tokens(struct bench *b)
{
	return kvr_prompt_set_tokens(b->p, NULL, numbers, 4096);
}

static int
call_sequences(struct bench *b)
{
	uint64_t hashes[4096] = { 0 };

	return kvr_prompt_set_sequences(b->p, 1, 0, hashes, 4096, 1 << 20);
}

static int
call_locals(struct bench *b)
{
	uint64_t hashes[40] = { 0 };
	int rc = kvr_prompt_locals(b->p, hashes, 40);

	return rc == KVR_OK ? kvr_prompt_end(b->p, NULL) : rc;
}

static int
call_media(struct bench *b)
{
	uint64_t hashes[40] = { 7 };

	return kvr_prompt_media(b->p, 3, hashes, 40);
}

static int
call_allow(struct bench *b)
{
	uint64_t ids[40] = { b->worker };

	return kvr_prompt_allow(b->p, ids, 40);
}

static int
call_match(struct bench *b)
{
	size_t n;

	return kvr_match(b->k, b->p, 5, b->v, sizeof(b->v[0]), 4, &n);
}

static int
call_route(struct bench *b)
{
	return kvr_route(b->k, b->p, NULL, 5, &b->d);
}

static int
call_choose(struct bench *b)
{
	return kvr_choose(b->k, b->p, NULL, b->v, sizeof(b->v[0]), 0, 5,
	    &b->d);
}

static int
call_candidates(struct bench *b)
{
	struct kvr_candidate c[4];
	size_t n;

	return kvr_candidates(b->k, b->p, NULL, 5, c, sizeof(c[0]), 4, &n);
}

static int
call_observe(struct bench *b)
{
	return kvr_observe(b->k, b->p, b->worker, 5, 0, NULL);
}

static int
call_reserve(struct bench *b)
{
	return kvr_lease_open(b->k, b->p, NULL, 5, &b->d);
}

static int
call_reserve_on(struct bench *b)
{
	return kvr_lease_open_on(b->k, b->p, NULL, b->worker, 5, &b->d);
}

static int
call_metrics(struct bench *b)
{
	static char text[1 << 15];
	size_t n;

	return kvr_metrics(b->k, text, sizeof(text), &n);
}

static int
call_expire(struct bench *b)
{
	return kvr_expire(b->k, 5, 100, NULL);
}

static int
call_check(struct bench *b)
{
	return kvr_check(b->k);
}

static int
call_add(struct bench *b)
{
	struct kvr_worker facts;
	uint64_t id;

	kvr_worker_init(&facts, sizeof(facts));
	return kvr_worker_add(b->k, "another", 7, &facts, &id);
}

static int
call_events(struct bench *b)
{
	static const uint64_t hashes[32];
	struct kvr_event_batch batch = { .size = sizeof(batch),
	    .seq = b->seq++ };
	struct kvr_event e;

	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 16;
	e.hashes = 6;
	e.tokens = 96;
	return kvr_events_apply(b->k, b->worker, &batch, &e, sizeof(e), 1,
	    hashes, 32, numbers, 100, 5, 0, NULL);
}

static int
call_events_lost(struct bench *b)
{
	int error = call_events(b);

	return error != KVR_OK ? error :
	    kvr_events_lost(b->k, b->worker, b->seq += 7);
}

static int
call_events_off(struct bench *b)
{
	int error = call_events(b);

	return error != KVR_OK ? error : kvr_events_off(b->k, b->worker);
}

static const struct {
	const char *name;
	int (*make)(struct bench *);
	bool needs; /* known to need memory of the system */
	bool blank; /* needs a prompt that is only begun */
} calls[] = {
	{ "kvr_new", call_new, true, false },
	{ "kvr_new_at", call_new_at, true, false },
	{ "kvr_attach_at", call_attach, true, false },
	{ "kvr_prompt_new", call_prompt_new, true, false },
	{ "kvr_prompt_set_tokens", call_set_tokens, true, true },
	{ "kvr_prompt_set_sequences", call_sequences, true, false },
	{ "kvr_prompt_locals", call_locals, true, true },
	{ "kvr_prompt_media", call_media, true, true },
	{ "kvr_prompt_allow", call_allow, true, false },
	{ "kvr_match", call_match, false, false },
	{ "kvr_route", call_route, false, false },
	{ "kvr_choose", call_choose, false, false },
	{ "kvr_candidates", call_candidates, false, false },
	{ "kvr_observe", call_observe, false, false },
	{ "kvr_lease_open", call_reserve, false, false },
	{ "kvr_lease_open_on", call_reserve_on, false, false },
	{ "kvr_expire", call_expire, false, false },
	{ "kvr_check", call_check, false, false },
	{ "kvr_worker_add", call_add, false, false },
	{ "kvr_metrics", call_metrics, false, false },
	{ "kvr_events_apply", call_events, false, false },
	{ "kvr_events_lost", call_events_lost, false, false },
	{ "kvr_events_off", call_events_off, false, false },
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static void
bench_open(struct bench *b, int call)
{
	struct kvr_options o;
	struct kvr *k;

	memset(b, 0, sizeof(*b));
	ck_assert_int_eq(kvr_options_init(&o, sizeof(o)), KVR_OK);
	o.region_bytes = 1 << 20;
	o.max_workers = 4;
	o.block_size = 16;
	o.journal_bytes = KVR_JOURNAL_MIN;
	o.event_blocks = 256;
	ck_assert_int_eq(kvr_new(&o, &b->k), KVR_OK);
	b->worker = add(b->k, "w");
	b->d.size = sizeof(b->d);
	ck_assert_int_eq(kvr_prompt_new(b->k, &b->p), KVR_OK);
	if (calls[call].blank)
		ck_assert_int_eq(kvr_prompt_begin(b->p, NULL), KVR_OK);
	else
		ck_assert_int_eq(kvr_prompt_set_tokens(b->p, NULL, numbers,
		    100), KVR_OK);
	b->memory = aligned_alloc(64, MEMORY);
	ck_assert_ptr_nonnull(b->memory);
	ck_assert_int_eq(kvr_new_at(NULL, b->memory, MEMORY, &k), KVR_OK);
	kvr_free(k);
}

static void
bench_close(struct bench *b)
{
	ck_assert_int_eq(kvr_check(b->k), KVR_OK);
	kvr_free(b->new);
	kvr_prompt_free(b->made);
	kvr_prompt_free(b->p);
	kvr_free(b->k);
	free(b->memory);
}

/* The call with its n-th allocation failing; false when none did. */
static bool
attempt(int call, unsigned long n, bool for_ever)
{
	struct kvr_stats before, after;
	struct bench b;
	int rc;

	bench_open(&b, call);
	before = stats_of(b.k);
	if (for_ever)
		alloc_fail_from(n);
	else
		alloc_fail_at(n);
	rc = calls[call].make(&b);
	for_ever = alloc_count() >= n;
	alloc_reset();
	if (!for_ever) {
		ck_assert_msg(rc == KVR_OK, "%s: %s", calls[call].name,
		    kvr_errname(rc));
		bench_close(&b);
		return false;
	}
	ck_assert_msg(rc == KVR_ENOMEM, "%s, allocation %lu: %s",
	    calls[call].name, n, kvr_errname(rc));
	ck_assert_ptr_null(b.new);
	ck_assert_ptr_null(b.made);
	after = stats_of(b.k);
	ck_assert_mem_eq(&before, &after, sizeof(after));
	/* with memory again, it is as if nothing had failed */
	rc = calls[call].make(&b);
	ck_assert_msg(rc == KVR_OK, "%s again: %s", calls[call].name,
	    kvr_errname(rc));
	bench_close(&b);
	return true;
}

START_TEST(each_allocation_fails)
{
	unsigned long n = 1;
	int once;

	fill_numbers();
	for (once = 0; once < 2; once++) {
		for (n = 1; attempt(_i, n, once == 0); n++)
			ck_assert_uint_lt(n, 100);
		if (calls[_i].needs)
			ck_assert_uint_gt(n, 1);
	}
}
END_TEST

/* Calls that end or free something must not allocate. */
START_TEST(endings_need_none)
{
	struct kvr *k = make(1 << 20, 16);
	struct kvr_decision d = { .size = sizeof(d) };
	uint64_t w = add(k, "w"), next;
	struct kvr_prompt *p;

	fill_numbers();
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, numbers, 900), KVR_OK);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, w, 5, &d), KVR_OK);
	alloc_fail_from(1);
	ck_assert_int_eq(kvr_lease_commit(k, d.lease, 5, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_first_token(k, d.lease, 5, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_extend(k, d.lease, p, 5, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_output(k, d.lease, 1, 5, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_finish(k, d.lease, NULL, 5, 0), KVR_OK);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, w, 6, &d), KVR_OK);
	ck_assert_int_eq(kvr_lease_abort(k, d.lease, 6, 0), KVR_OK);
	ck_assert_int_eq(kvr_observe(k, p, w, 7, 0, NULL), KVR_OK);
	ck_assert_int_eq(kvr_expire(k, INT64_C(1) << 40, 9, NULL), KVR_OK);
	ck_assert_int_eq(kvr_worker_reset(k, w, &next), KVR_OK);
	ck_assert_int_eq(kvr_worker_remove(k, next), KVR_OK);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	kvr_prompt_free(p);
	kvr_free(k);
	alloc_reset();
}
END_TEST

Suite *suite_nomem(void);

Suite *
suite_nomem(void)
{
	Suite *s = suite_create("nomem");
	TCase *t = tcase_create("nomem");

	tcase_add_loop_test(t, each_allocation_fails, 0, CALLS);
	tcase_add_test(t, endings_need_none);
	suite_add_tcase(s, t);
	return s;
}
