/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_readers.c - choices without the lock, while reports change the
 * expectations: ages, survival, TTLs, rates, engine blocks.
 *
 * A reader discards a half changed value, so no result may be out of bounds;
 * and ThreadSanitizer sees every word that is read without read_once() or
 * written without write_once().
 */
#include "check.h"
#include "reports.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { LENGTH = 600, PROMPTS = 7, CALLS = 4000, CHOICES = 4000, KEPT = 16,
	SHARED_BYTES = (1 << 20) + KVR_JOURNAL_MIN };

static atomic_bool over;
static atomic_uint checks; /* begun; LOOK_ENDED: there will be no more */
static atomic_uint chosen; /* by expected overlap */

static bool
some_prompt(struct kvr_prompt *of, uint32_t which)
{
	uint32_t token[LENGTH], i;

	for (i = 0; i < LENGTH; i++)
		token[i] = i < LENGTH / 2 ? which / 2 : which;
	return kvr_prompt_set_tokens(of, NULL, token, LENGTH) == KVR_OK;
}

/* Returns the first thing that was wrong, or NULL. */
static void *
choose_on(void *arg)
{
	static char not_asked[] = "no answer", too_much[] = "out of bounds";
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_prompt *own = NULL;
	uint32_t i;
	char *wrong = NULL;

	(void)arg;
	if (kvr_prompt_new(k, &own) != KVR_OK)
		wrong = not_asked;
	for (i = 0; wrong == NULL && !atomic_load(&over); i++) {
		if (!some_prompt(own, i % PROMPTS) ||
		    kvr_route(k, own, NULL, 1, &d) != KVR_OK)
			wrong = not_asked;
		else if (d.overlap_tokens > LENGTH || !(d.cost >= 0))
			wrong = too_much;
		atomic_fetch_add(&chosen, d.overlap_tokens > 0);
	}
	kvr_prompt_free(own);
	atomic_fetch_add(&chosen, CHOICES); /* let no thread wait for more */
	return wrong;
}

/* A request and its report; now and then more changes than that. */
static void
one_more(uint32_t i, int64_t now)
{
	struct kvr_report r = { .size = sizeof(r),
	    .kind = KVR_REPORT_VALUE };
	struct kvr_worker f;
	uint64_t lease;

	must(some_prompt(p, pick(PROMPTS)));
	lease = reserved(i % WORKERS, now);
	must(kvr_lease_commit(k, lease, now, 0) == KVR_OK);
	must(kvr_lease_first_token(k, lease, now + 2000000, 0) == KVR_OK);
	r.cached_tokens = pick(3) == 0 ? 0 : pick(LENGTH / 16) * 16;
	r.completion_tokens = pick(100);
	must(kvr_lease_finish(k, lease, &r, now + 2000000, 0) == KVR_OK);
	if (pick(8) == 0)
		must(kvr_observe(k, p, id[pick(WORKERS)], now, 0, NULL) ==
		    KVR_OK);
	if (pick(100) != 0)
		return;
	must(kvr_worker_init(&f, sizeof(f)) == KVR_OK);
	f.retain = KVR_RETAIN_TTL + pick(3);
	f.capacity_tokens = 2000;
	f.block_tokens = pick(3);
	must(kvr_worker_set(k, id[0], &f) == KVR_OK);
	must(kvr_worker_reset(k, id[1], &id[1]) == KVR_OK);
	set_mode(1, KVR_RETAIN_FEEDBACK);
}

START_TEST(reports_while_others_choose)
{
	struct kvr_policy y;
	pthread_t reader;
	void *wrong;
	uint32_t i;

	by_chance();
	big_setup();
	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
	y.cost = KVR_COST_BALANCED;
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
	for (i = 0; i < WORKERS; i++)
		set_mode(i, i == 2 ? KVR_RETAIN_EVENTS : KVR_RETAIN_FEEDBACK);
	atomic_store(&over, false);
	atomic_store(&chosen, 0);
	ck_assert_int_eq(pthread_create(&reader, NULL, choose_on, NULL), 0);
	for (i = 0; i < CALLS || atomic_load(&chosen) < CHOICES; i++)
		one_more(i, 1 + (int64_t)i * 3000000);
	atomic_store(&over, true);
	ck_assert_int_eq(pthread_join(reader, &wrong), 0);
	ck_assert_msg(wrong == NULL, "%s", (const char *)wrong);
	ck_assert_uint_gt(stats().calibration.over_tokens, 0);
	region_end();
}
END_TEST

/* ------------------------------------------------- read-only handles --- */

enum looked { AT_FACTS, AT_STATS, AT_NAME, AT_FIND, AT_NEXT, AT_POLICY,
	AT_ALL, AT_DUE, AT_MATCH, AT_ROUTE, AT_METRICS, AT_CHECK,
	LOOKED };
enum { SELDOM = 64, LOOK_ENDED = UINT32_MAX / 2 };

static struct kvr *only; /* reads alone, as KVR_OPEN_READONLY does */
static uint32_t seen[LOOKED];

static int
look_at(enum looked at, struct kvr_prompt *own, uint64_t worker)
{
	static char text[1 << 16];
	struct kvr_worker facts = { .size = sizeof(facts) };
	struct kvr_worker_stats w = { .size = sizeof(w) };
	struct kvr_policy y = { .size = sizeof(y) };
	struct kvr_stats s = { .size = sizeof(s) };
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_overlap found[WORKERS];
	struct kvr_request request;
	uint64_t other = 0;
	int64_t due;
	size_t n;

	switch (at) {
	case AT_FACTS:   return kvr_worker_get(only, worker, &facts);
	case AT_STATS:   return kvr_worker_stats_get(only, worker, &w);
	case AT_NAME:    return kvr_worker_name(only, worker, text, 9, &n);
	case AT_FIND:    return kvr_worker_find(only, "0", 1, 0, &other);
	case AT_NEXT:    return kvr_worker_next(only, &other);
	case AT_POLICY:  return kvr_policy_get(only, &y);
	case AT_ALL:     return kvr_stats_get(only, &s);
	case AT_DUE:     return kvr_next_expiry(only, &due);
	case AT_MATCH:
		return kvr_match(only, own, 1, found, sizeof(found[0]),
		    WORKERS, &n);
	case AT_ROUTE:
		(void)kvr_request_init(&request, sizeof(request));
		request.affinity = 1 + seen[AT_ROUTE] % 39;
		(void)kvr_affinity_find(only, request.affinity, 1, &other);
		return kvr_route(only, own, &request, 1, &d);
	case AT_CHECK:
		atomic_fetch_add(&checks, 1);
		return kvr_check(only);
	default:
		return kvr_metrics(only, text, sizeof(text), &n);
	}
}

static void *
look_on(void *arg)
{
	static char wrong[] = "an error that no writer explains";
	struct kvr_prompt *own = NULL;
	uint64_t worker = 0;
	uint32_t i, at;
	int error = kvr_prompt_new(only, &own);

	(void)arg;
	for (i = 0; error == KVR_OK && !atomic_load(&over); i++) {
		at = i % LOOKED;
		if (at >= AT_METRICS && i / LOOKED % SELDOM != 0)
			continue;
		if (!some_prompt(own, i % PROMPTS) ||
		    (kvr_worker_next(only, &worker) == KVR_OK && worker == 0 &&
		    kvr_worker_next(only, &worker) != KVR_OK))
			continue;
		error = look_at(at, own, worker);
		seen[at] += error == KVR_OK;
		(void)kvr_nowait_set(k, i % 2); /* of the writer's handle */
		if (error == KVR_EBUSY || error == KVR_EWORKER ||
		    error == KVR_EALLOVERLOADED)
			error = KVR_OK; /* a writer was faster */
		atomic_fetch_add(&chosen, 1);
	}
	kvr_prompt_free(own);
	atomic_fetch_add(&chosen, CHOICES);
	atomic_store(&checks, LOOK_ENDED);
	return error == KVR_OK ? NULL : wrong;
}

/* Requests that are in flight for longer than a round. */
static void
keep_more(uint32_t i, int64_t now)
{
	static uint64_t kept[KEPT];
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request request;
	uint64_t lease = kept[i % KEPT], owner = 1 + pick(3), cursor = 0;
	int error = KVR_OK;

	switch (lease != 0 ? pick(4) : 4) {
	case 0:
		must(some_prompt(p, pick(PROMPTS)));
		error = kvr_lease_extend(k, lease, p, now, 0);
		break;
	case 1:
		error = kvr_lease_output(k, lease, 3, now, 0);
		break;
	case 2:
		error = kvr_lease_abort(k, lease, now, 0);
		break;
	case 3:
		error = kvr_lease_finish(k, lease, NULL, now, 0);
		break;
	default:
		must(some_prompt(p, pick(PROMPTS)));
	}
	must(error == KVR_OK || error == KVR_ELEASE || error == KVR_EMISMATCH);
	must(kvr_request_init(&request, sizeof(request)) == KVR_OK);
	request.owner = owner;
	request.affinity = i % 40;
	must(kvr_lease_open_on(k, p, &request, id[pick(WORKERS)], now, &d) ==
	    KVR_OK);
	must(kvr_lease_commit(k, d.lease, now, 0) == KVR_OK);
	kept[i % KEPT] = d.lease;
	if (i % 64 == 0)
		must(kvr_owner_reap(k, owner, now, &cursor, NULL) == KVR_OK);
}

static void
seq_advance(void)
{
	atomic_fetch_add(&k->region->seq, 1);
	atomic_thread_fence(memory_order_release);
}

static struct kvr_options
shared_options(void)
{
	struct kvr_options o = small_options();

	o.affinity_entries = 16;
	o.journal_bytes = KVR_JOURNAL_MIN;
	o.event_blocks = 200;
	return o;
}

/* A writer dies in a change; a wrong count is mended; another boot attaches. */
static void
recover_more(uint32_t i, void *memory)
{
	struct kvr_options o = shared_options();
	struct kvr *other;

	if (i % 512 == 0)
		seq_advance(); /* the next call recovers */
	if (i % 512 == 128) {
		seq_advance();
		add_once(k->region->counts.nodes, 1);
		must(check_mend(k) == KVR_OK);
		seq_advance();
	}
	if (i % 512 == 256) {
		memset(o.boot_id, 1 + (int)(i / 512), sizeof(o.boot_id));
		must(kvr_attach_at(&o, memory, SHARED_BYTES, &other) ==
		    KVR_OK);
		kvr_free(other);
	}
}

/*
 * A check discards its reads of a region that changes. Now and then a whole
 * check passes: from then on ThreadSanitizer has a read of every word on
 * record, and reports the next plain write to any of them.
 */
static void
await_check(void)
{
	uint32_t now, begun;

	/* relaxed: this must not order the writes before and after */
	begun = now = atomic_load_explicit(&checks, memory_order_relaxed);
	for (; now - begun < 2 && now < LOOK_ENDED; sched_yield())
		now = atomic_load_explicit(&checks, memory_order_relaxed);
}

/* Makes the calls of kvroute-events. */
static void
tell_more(uint32_t i, int64_t now)
{
	static uint64_t hashes[64];
	static uint32_t tokens[64];
	struct kvr_event_batch b = { .size = sizeof(b) };
	struct kvr_event_result r = { .size = sizeof(r) };
	struct kvr_worker_stats s = worker_stats(2);
	struct kvr_event e;
	uint32_t j;

	must(kvr_event_init(&e, sizeof(e)) == KVR_OK);
	e.kind = i % 8 == 5 ? KVR_EVENT_CLEARED : KVR_EVENT_STORED + pick(2);
	e.hashes = e.kind == KVR_EVENT_CLEARED ? 0 : 1 + pick(64);
	e.block_tokens = 1;
	for (j = 0; j < 64; j++) {
		hashes[j] = j + 1 + (j > 8 ? i % 4 * 100 : 0);
		tokens[j] = 'a' + (uint32_t)hashes[j];
	}
	e.tokens = e.kind == KVR_EVENT_STORED ? e.hashes : 0;
	b.seq = s.events_next;
	must(kvr_events_apply(k, id[2], &b, &e, sizeof(e), 1, hashes, 64,
	    tokens, 64, now, 0, &r) == KVR_OK);
	id[2] = r.worker; /* a cleared one is reset */
	if (i % 64 == 7)
		must(kvr_events_lost(k, id[2], b.seq + 9) == KVR_OK);
	if (i % 256 == 9)
		must(kvr_events_off(k, id[2]) == KVR_OK);
}

/* Makes the other changes while others read. */
static void
change_more(uint32_t i, int64_t now)
{
	struct kvr_load load = { .size = sizeof(load) };
	struct kvr_policy y;

	load.prefill_tokens = pick(10000);
	load.active_blocks = pick(100);
	must(kvr_worker_set_load(k, id[pick(WORKERS)], 0, &load) == KVR_OK);
	if (i % 16 == 0)
		must(kvr_expire(k, now, 4, NULL) == KVR_OK);
	if (i % 32 == 0) {
		must(kvr_policy_init(&y, sizeof(y)) == KVR_OK);
		y.overload_prefill_tokens = pick(10000);
		must(kvr_policy_set(k, &y) == KVR_OK);
	}
	if (i % 64 == 0) {
		must(kvr_worker_remove(k, id[3]) == KVR_OK);
		must(kvr_worker_add(k, "3", 1, NULL, &id[3]) == KVR_OK);
	}
	if (i % 1024 == 0)
		must(kvr_clear(k) == KVR_OK);
	keep_more(i, now);
	tell_more(i, now);
}

START_TEST(read_only_while_others_write)
{
	struct kvr_options o = shared_options();
	pthread_t reader;
	void *wrong, *memory = aligned_alloc(CELL, SHARED_BYTES);
	uint32_t i;

	by_chance();
	ck_assert_ptr_nonnull(memory);
	ck_assert_int_eq(kvr_new_at(&o, memory, SHARED_BYTES, &k), KVR_OK);
	people(WORKERS);
	ck_assert_int_eq(kvr_attach_at(NULL, memory, SHARED_BYTES, &only),
	    KVR_OK);
	only->readonly = true;
	for (i = 0; i < WORKERS; i++)
		set_mode(i, KVR_RETAIN_FEEDBACK);
	atomic_store(&over, false);
	atomic_store(&chosen, 0);
	atomic_store(&checks, 0);
	ck_assert_int_eq(pthread_create(&reader, NULL, look_on, NULL), 0);
	for (i = 0; i < CALLS || atomic_load(&chosen) < CHOICES; i++) {
		one_more(i, 1 + (int64_t)i * 3000000);
		change_more(i, 1 + (int64_t)i * 3000000);
		recover_more(i, memory);
		if (i % 64 == 0) /* let readers succeed */
			sched_yield();
		if (i % 1024 == 64)
			await_check();
	}
	atomic_store(&over, true);
	ck_assert_int_eq(pthread_join(reader, &wrong), 0);
	ck_assert_msg(wrong == NULL, "%s", (const char *)wrong);
	for (i = 0; i < LOOKED; i++)
		ck_assert_msg(seen[i] > 0, "%u was never read", i);
	ck_assert_uint_gt(stats().recoveries, 0);
	ck_assert_uint_gt(stats().lease_reaps, 0);
	kvr_free(only);
	region_end();
	free(memory);
}
END_TEST

Suite *suite_readers(void);

Suite *
suite_readers(void)
{
	Suite *s = suite_create("readers");
	TCase *t = tcase_create("readers");

	suite_add_tcase(s, t);
	tcase_add_test(t, reports_while_others_choose);
	tcase_add_test(t, read_only_while_others_write);
	return s;
}
