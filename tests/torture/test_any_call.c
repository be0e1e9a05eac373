/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_any_call.c - every call of kvroute.h that a handle takes, from several
 * threads at once on one handle, in private memory and in shared.
 *
 * No result is compared: ThreadSanitizer looks for races, and kvr_check for
 * damage. Calls that are documented as the last one, kvr_free, or as alone,
 * kvr_nowait_set, are not among them.
 */
#include "kvroute.h"
#include "kvroute_events.h"
#include "kvroute_replica.h"
#include "ops.h"
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, NAMES = 6, TOKENS = 64, ROUNDS = 4000, USER = 256,
	BYTES = 4 << 20 };

struct caller {
	struct kvr *k;
	struct kvr_prompt *p;
	struct ops_source random;
	uint64_t worker, lease, position;
	pthread_t thread;
	uint32_t number;
};

typedef int call_pt(struct caller *c);

static uint32_t
pick(struct caller *c, uint32_t n)
{
	return ops_pick(&c->random, n);
}

/* ------------------------------------------------------------- workers --- */

static int
add(struct caller *c)
{
	char name = (char)('a' + pick(c, NAMES));
	struct kvr_worker facts;

	(void)kvr_worker_init(&facts, sizeof(facts));
	(void)kvr_worker_parse(&facts, "capacity=2000 eviction=leaf", 27, NULL,
	    NULL);
	if (pick(c, 2) == 0)
		return kvr_worker_add(c->k, &name, 1, &facts, &c->worker);
	return kvr_worker_put(c->k, &name, 1, pick(c, 2) == 0 ? &facts : NULL,
	    &c->worker);
}

static int
find(struct caller *c)
{
	char name = (char)('a' + pick(c, NAMES));

	return kvr_worker_find(c->k, &name, 1, 0, &c->worker);
}

static int
look(struct caller *c)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };
	struct kvr_worker facts = { .size = sizeof(facts) };
	struct kvr_load load = { .size = sizeof(load) };
	char name[KVR_NAME_MAX];
	uint64_t id = 0;
	size_t n;

	(void)kvr_worker_get(c->k, c->worker, &facts);
	(void)kvr_worker_name(c->k, c->worker, name, sizeof(name), &n);
	(void)kvr_worker_stats_get(c->k, c->worker, &stats);
	(void)kvr_worker_get_load(c->k, c->worker, 1, &load);
	return kvr_worker_next(c->k, &id);
}

static int
change(struct caller *c)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	struct kvr_load load = { .size = sizeof(load), .requests = 2,
		.prefill_tokens = 100, .active_blocks = 5 };
	uint64_t keep[1] = { c->worker };

	switch (pick(c, 12)) {
	case 0: return kvr_worker_remove(c->k, c->worker);
	case 1: return kvr_worker_reset(c->k, c->worker, &c->worker);
	case 2: return kvr_worker_keep(c->k, keep, 1, NULL);
	case 3: return kvr_worker_forget(c->k, c->worker);
	case 4: case 5: case 6: return kvr_worker_set_load(c->k, c->worker,
	    pick(c, KVR_LOAD_SOURCES), &load);
	default: break;
	}
	if (kvr_worker_get(c->k, c->worker, &facts) != KVR_OK)
		return KVR_EWORKER;
	facts.state = pick(c, 3);
	facts.capacity_tokens = pick(c, 2) * 3000;
	return kvr_worker_set(c->k, c->worker, &facts);
}

/* ------------------------------------------------------------- prompts --- */

static int
prompt(struct caller *c)
{
	uint32_t tokens[TOKENS], i, n = 1 + pick(c, TOKENS);
	struct kvr_scope scope;
	char tenant = (char)('0' + pick(c, 3));

	for (i = 0; i < n; i++)
		tokens[i] = pick(c, 12) == 0;
	(void)kvr_scope_init(&scope, sizeof(scope));
	(void)kvr_scope_set(c->k, &scope, KVR_SCOPE_TENANT, &tenant, 1);
	if (pick(c, 50) == 0) {
		kvr_prompt_free(c->p);
		ck_assert_int_eq(kvr_prompt_new(c->k, &c->p), KVR_OK);
	}
	return kvr_prompt_set_tokens(c->p, &scope, tokens, n);
}

static int
choose(struct caller *c)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_candidate candidates[NAMES];
	struct kvr_overlap overlaps[NAMES];
	struct kvr_request r;
	size_t n;

	(void)kvr_request_init(&r, sizeof(r));
	(void)kvr_affinity_key(c->k, NULL, 0, &c->number, 1, &r.affinity);
	switch (pick(c, 4)) {
	case 0: return kvr_route(c->k, c->p, &r, KVR_NOW, &d);
	case 1: return kvr_choose(c->k, c->p, &r, NULL, sizeof(overlaps[0]), 0,
	    KVR_NOW, &d);
	case 2: return kvr_candidates(c->k, c->p, &r, KVR_NOW, candidates,
	    sizeof(candidates[0]), NAMES, &n);
	default: return kvr_match(c->k, c->p, KVR_NOW, overlaps,
	    sizeof(overlaps[0]), NAMES, &n);
	}
}

static int
observe(struct caller *c)
{
	return kvr_observe(c->k, c->p, c->worker, KVR_NOW,
	    pick(c, 2) == 0 ? KVR_ENDED : KVR_NOWAIT, NULL);
}

/* -------------------------------------------------------------- leases --- */

static int
begin_lease(struct caller *c)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	int error;

	(void)kvr_request_init(&r, sizeof(r));
	r.owner = 1 + c->number;
	(void)kvr_affinity_key(c->k, NULL, 0, &c->number, 1, &r.affinity);
	error = pick(c, 3) == 0 ? kvr_lease_open_on(c->k, c->p, &r, c->worker,
	    KVR_NOW, &d) : kvr_lease_open(c->k, c->p, &r, KVR_NOW, &d);
	if (error == KVR_OK)
		c->lease = d.lease;
	return error;
}

static int
use_lease(struct caller *c)
{
	struct kvr_report report = { .size = sizeof(report),
		.kind = KVR_REPORT_VALUE, .prompt_tokens = 60,
		.cached_tokens = pick(c, 60) };

	switch (pick(c, 6)) {
	case 0: return kvr_lease_commit(c->k, c->lease, KVR_NOW, 0);
	case 1: return kvr_lease_first_token(c->k, c->lease, KVR_NOW, 0);
	case 2: return kvr_lease_output(c->k, c->lease, 1, KVR_NOW, 0);
	case 3: return kvr_lease_extend(c->k, c->lease, c->p, KVR_NOW, 0);
	case 4: return kvr_lease_abort(c->k, c->lease, KVR_NOW, 0);
	default: return kvr_lease_finish(c->k, c->lease, &report, KVR_NOW, 0);
	}
}

static int
list_leases(struct caller *c)
{
	struct kvr_lease_info leases[4];
	struct kvr_tenant tenants[4];
	struct kvr_entry entries[4];
	uint64_t owners[4], cursor = 0;
	size_t n;

	switch (pick(c, 5)) {
	case 0: return kvr_owner_list(c->k, &cursor, owners, 4, &n);
	case 1: return kvr_owner_reap(c->k, 1 + c->number, KVR_NOW,
	    &cursor, NULL);
	case 2: return kvr_lease_list(c->k, &cursor, leases,
	    sizeof(leases[0]), 4, &n);
	case 3: return kvr_tenant_list(c->k, &cursor, tenants,
	    sizeof(tenants[0]), 4, &n);
	default: return kvr_entries(c->k, &cursor, KVR_NOW, entries,
	    sizeof(entries[0]), 4, &n);
	}
}

/* ------------------------------------------------- events and journal --- */

static int
apply_events(struct caller *c)
{
	struct kvr_event_batch batch = { .size = sizeof(batch) };
	struct kvr_event_result result = { .size = sizeof(result) };

	batch.seq = c->position++;
	switch (pick(c, 4)) {
	case 0: return kvr_events_lost(c->k, c->worker, 5);
	case 1: return kvr_events_off(c->k, c->worker);
	case 2: return kvr_events_until(c->k, c->worker, 1);
	default: return kvr_events_apply(c->k, c->worker, &batch, NULL, 0, 0,
	    NULL, 0, NULL, 0, KVR_NOW, 0, &result);
	}
}

static int
exchange(struct caller *c)
{
	struct kvr_record record = { .size = sizeof(record) };
	uint64_t hashes[TOKENS], position = 0, rule;

	switch (pick(c, 4)) {
	case 0: return kvr_journal_beat(c->k, KVR_NOW);
	case 1: return kvr_quiet_set(c->k, pick(c, 2));
	case 2: return kvr_rule_get(c->k, &rule);
	default: break;
	}
	(void)kvr_journal_read(c->k, &position, KVR_NOW, &record, hashes,
	    TOKENS);
	return kvr_journal_read(c->k, &position, KVR_NOW, &record, hashes,
	    TOKENS);
}

static int
bind(struct caller *c)
{
	uint64_t worker;

	if (pick(c, 2) == 0)
		return kvr_affinity_bind(c->k, 1 + pick(c, 20), c->worker, 0,
		    KVR_NOW, 0);
	return kvr_affinity_find(c->k, 1 + pick(c, 20), KVR_NOW, &worker);
}

/* --------------------------------------------------------- whole region --- */

static int
govern(struct caller *c)
{
	struct kvr_policy policy = { .size = sizeof(policy) };

	(void)kvr_policy_get(c->k, &policy);
	(void)kvr_policy_parse(&policy, pick(c, 2) == 0 ? "dynamo[request=1]" :
	    "balanced[bound=3]", 17, NULL, NULL);
	return kvr_policy_set(c->k, &policy);
}

static int
measure(struct caller *c)
{
	struct kvr_options options = { .size = sizeof(options) };
	struct kvr_stats stats = { .size = sizeof(stats) };
	char text[4096];
	int64_t due;
	size_t n;

	(void)kvr_options_get(c->k, &options);
	(void)kvr_options_fault(c->k, &options);
	(void)kvr_stats_get(c->k, &stats);
	(void)kvr_next_expiry(c->k, &due);
	return kvr_metrics(c->k, text, sizeof(text), &n);
}

static int
use_area(struct caller *c)
{
	unsigned char *at;
	void *area;
	size_t bytes;

	ck_assert_int_eq(kvr_user_area(c->k, &area, &bytes), KVR_OK);
	at = area;
	at[c->number]++; /* each thread has a byte of its own */
	return KVR_OK;
}

static int
tidy(struct caller *c)
{
	switch (pick(c, 40)) {
	case 0: return kvr_clear(c->k);
	case 1: return kvr_clock_set(c->k, KVR_NOW);
	case 2: return kvr_check(c->k);
	default: return kvr_expire(c->k, KVR_NOW, 5, NULL);
	}
}

/* ------------------------------------------------------------- threads --- */

static call_pt *const calls[] = { add, find, look, change, prompt, prompt,
	choose, choose, observe, begin_lease, begin_lease, use_lease,
	use_lease, list_leases, apply_events, exchange, bind, govern, measure,
	use_area, tidy };
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static void *
call_all(void *arg)
{
	struct caller *c = arg;
	uint32_t i;

	for (i = 0; i < ROUNDS; i++)
		if (calls[pick(c, CALLS)](c) == KVR_ECORRUPT)
			return c;
	return NULL;
}

static void
open_caller(struct caller *c, struct kvr *k, uint32_t number)
{
	memset(c, 0, sizeof(*c));
	c->k = k;
	c->number = number;
	ops_from_seed(&c->random, test_seed() + number);
	ck_assert_int_eq(kvr_prompt_new(k, &c->p), KVR_OK);
	(void)add(c);
	(void)prompt(c);
}

START_TEST(on_one_handle)
{
	static const char text[] = "size=4m block=1 workers=6 affinity=64 "
	    "journal=64k tenants=2 events=512";
	static _Alignas(64) unsigned char memory[BYTES];
	struct caller callers[THREADS];
	struct kvr_options o;
	void *corrupt = NULL;
	struct kvr *k;
	uint32_t i;

	ck_assert_int_eq(kvr_options_init(&o, sizeof(o)), KVR_OK);
	ck_assert_int_eq(kvr_options_parse(&o, text, sizeof(text) - 1, NULL,
	    NULL), KVR_OK);
	o.user_bytes = USER;
	ck_assert_int_eq(_i == 0 ? kvr_new(&o, &k) : kvr_new_at(&o, memory,
	    sizeof(memory), &k), KVR_OK);
	for (i = 0; i < THREADS; i++)
		open_caller(&callers[i], k, i);
	for (i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&callers[i].thread, NULL,
		    call_all, &callers[i]), 0);
	for (i = 0; i < THREADS; i++) {
		void *end;

		ck_assert_int_eq(pthread_join(callers[i].thread, &end), 0);
		corrupt = end != NULL ? end : corrupt;
		kvr_prompt_free(callers[i].p);
	}
	ck_assert_ptr_null(corrupt);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	kvr_free(k);
}
END_TEST

Suite *suite_any_call(void);

Suite *
suite_any_call(void)
{
	Suite *s = suite_create("any_call");
	TCase *t = tcase_create("threads");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, on_one_handle, 0, 2);
	suite_add_tcase(s, t);
	return s;
}
