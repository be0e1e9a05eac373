/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_journal_replay.c - a region that applies the journal of another one has
 * the same overlaps of any prompt, the same open leases, and the same loads.
 *
 *	calls by chance --> region --- journal ---> kvr_journal(3) --> peer
 *	                       `------------ equal? --------------------'
 */
#include "inner.h"

enum { OPEN_MAX = 24, ROOM = KVR_JOURNAL_MIN / 32, PROMPT_MAX = 120 };

/* Open requests, with both ids and their prompts. */
static struct talk {
	uint64_t lease, peer;
	char text[PROMPT_MAX + 1];
} talks[OPEN_MAX];

static struct kvr *peer;
static struct kvr_prompt *q;
static uint64_t peer_id[WORKERS], known[WORKERS]; /* known: in the region */
static uint64_t position, hashes[ROOM];
static int64_t now;

static struct kvr_options
options(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 1 << 20;
	o.journal_bytes = KVR_JOURNAL_MIN;
	o.affinity_entries = 64;
	o.lease_limit_ns = INT64_MAX;
	return o;
}

static void
setup(void)
{
	struct kvr_options o = options();
	char name = '0';
	uint32_t i;

	region_of(&o);
	ck_assert_int_eq(kvr_new(&o, &peer), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(peer, &q), KVR_OK);
	ck_assert_int_eq(kvr_quiet_set(peer, 1), KVR_OK);
	for (i = 0; i < WORKERS; i++, name++) {
		known[i] = id[i];
		ck_assert_int_eq(kvr_worker_add(peer, &name, 1, NULL,
		    &peer_id[i]), KVR_OK);
	}
	now = 1;
	by_chance();
}

static void
teardown(void)
{
	ck_assert_int_eq(kvr_check(peer), KVR_OK);
	kvr_prompt_free(q);
	kvr_free(peer);
	region_end();
}

/* ------------------------------------------------------------- applying --- */

static uint32_t
worker_of_record(uint64_t worker)
{
	uint32_t i;

	for (i = 0; i < WORKERS && known[i] != worker; i++)
		continue;
	must(i < WORKERS);
	return i;
}

static struct talk *
talk_of(uint64_t lease)
{
	uint32_t i;

	for (i = 0; i < OPEN_MAX && talks[i].lease != lease; i++)
		continue;
	must(i < OPEN_MAX);
	return &talks[i];
}

static void
apply_prompt(const struct kvr_record *r)
{
	must(kvr_prompt_set_sequences(q, r->parent, r->first_block, hashes,
	    r->hashes, r->units) == KVR_OK);
}

static int
apply_open(const struct kvr_record *r)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request request;
	int error;

	must(kvr_request_init(&request, sizeof(request)) == KVR_OK);
	request.owner = r->owner;
	request.stage = r->stage;
	request.flags = r->flags;
	request.overlap_blocks = r->overlap_blocks;
	request.affinity = r->affinity;
	request.affinity_ttl = r->affinity_ttl;
	apply_prompt(r);
	error = kvr_lease_open_on(peer, q, &request,
	    peer_id[worker_of_record(r->worker)], r->at, &d);
	talk_of(r->lease)->peer = d.lease;
	return error;
}

static int
apply_reset(const struct kvr_record *r)
{
	uint32_t i = worker_of_record(r->worker);
	int error;

	do
		error = kvr_worker_reset(peer, peer_id[i], &peer_id[i]);
	while (error == KVR_EBUSY);
	known[i] = r->new_worker;
	return error;
}

static int
apply(const struct kvr_record *r)
{
	const uint64_t lease = r->lease != 0 ? talk_of(r->lease)->peer : 0;

	switch (r->kind) {
	case KVR_RECORD_OPEN:
		return apply_open(r);
	case KVR_RECORD_COMMIT:
		return kvr_lease_commit(peer, lease, r->at, 0);
	case KVR_RECORD_FIRST_TOKEN:
		return kvr_lease_first_token(peer, lease, r->at, 0);
	case KVR_RECORD_EXTEND:
		apply_prompt(r);
		return kvr_lease_extend(peer, lease, q, r->at, 0);
	case KVR_RECORD_OUTPUT:
		return kvr_lease_output(peer, lease, r->blocks, r->at, 0);
	case KVR_RECORD_FINISH:
		return kvr_lease_finish(peer, lease, &r->report, r->at, 0);
	case KVR_RECORD_ABORT:
		return kvr_lease_abort(peer, lease, r->at, 0);
	case KVR_RECORD_OBSERVE:
		apply_prompt(r);
		return kvr_observe(peer, q,
		    peer_id[worker_of_record(r->worker)], r->at, 0, NULL);
	case KVR_RECORD_BIND:
		return kvr_affinity_bind(peer, r->affinity,
		    peer_id[worker_of_record(r->worker)], r->affinity_ttl,
		    r->at, 0);
	case KVR_RECORD_RESET:
		return apply_reset(r);
	default:
		return kvr_clear(peer);
	}
}

static void
replay(void)
{
	struct kvr_record r = { .size = sizeof(r) };
	int error;

	while ((error = kvr_journal_read(k, &position, now, &r, hashes,
	    ROOM)) == KVR_OK)
		must(apply(&r) == KVR_OK);
	must(error == KVR_EAGAIN);
}

/* ------------------------------------------------------------ comparing --- */

static void
ck_prompt_equal(void)
{
	struct kvr_overlap a[WORKERS], b[WORKERS];
	uint32_t blocks[2][WORKERS] = { { 0 } }, active[2][WORKERS] = { { 0 } };
	size_t n, m, i;

	must(kvr_match(k, p, now, a, sizeof(a[0]), WORKERS, &n) == KVR_OK);
	must(kvr_match(peer, p, now, b, sizeof(b[0]), WORKERS, &m) == KVR_OK);
	must(n == m);
	for (i = 0; i < n; i++) {
		uint32_t w = worker_of_record(a[i].worker), v;

		blocks[0][w] = a[i].blocks;
		active[0][w] = a[i].active_blocks;
		for (v = 0; v < WORKERS && peer_id[v] != b[i].worker; v++)
			continue;
		must(v < WORKERS);
		blocks[1][v] = b[i].blocks;
		active[1][v] = b[i].active_blocks;
	}
	must(memcmp(blocks[0], blocks[1], sizeof(blocks[0])) == 0);
	must(memcmp(active[0], active[1], sizeof(active[0])) == 0);
}

static void
ck_leases_equal(void)
{
	struct kvr_lease_info a[OPEN_MAX], b[OPEN_MAX];
	uint64_t cursor = 0, peers = 0;
	size_t n, m, i;

	must(kvr_lease_list(k, &cursor, a, sizeof(a[0]), OPEN_MAX, &n) ==
	    KVR_OK && kvr_lease_list(peer, &peers, b, sizeof(b[0]), OPEN_MAX,
	    &m) == KVR_OK);
	must(n == m);
	for (i = 0; i < n; i++) /* in the order in which they were opened */
		must(talk_of(a[i].lease)->peer == b[i].lease &&
		    a[i].owner == b[i].owner && a[i].opened == b[i].opened &&
		    a[i].tokens == b[i].tokens && a[i].blocks == b[i].blocks &&
		    a[i].state == b[i].state &&
		    (a[i].worker == 0) == (b[i].worker == 0));
}

static void
ck_loads_equal(void)
{
	struct kvr_worker_stats a = { .size = sizeof(a) }, b = a;
	uint32_t i;

	for (i = 0; i < WORKERS; i++) {
		must(kvr_worker_stats_get(k, id[i], &a) == KVR_OK &&
		    kvr_worker_stats_get(peer, peer_id[i], &b) == KVR_OK);
		must(a.requests == b.requests &&
		    a.prefill_tokens == b.prefill_tokens &&
		    a.active_blocks == b.active_blocks &&
		    a.output_blocks == b.output_blocks &&
		    a.calibration.reports == b.calibration.reports);
	}
}

static void
ck_sessions_equal(void)
{
	uint64_t digest, a, b;
	int found;

	for (digest = 1; digest <= 8; digest++) {
		a = b = 0;
		found = kvr_affinity_find(k, digest, now, &a);
		must(kvr_affinity_find(peer, digest, now, &b) == found);
		must(found != KVR_OK ||
		    peer_id[worker_of_record(a)] == b);
	}
}

static void
ck_equal(void)
{
	uint32_t i;

	for (i = 0; i < 20; i++) {
		say_by_chance();
		ck_prompt_equal();
	}
	ck_leases_equal();
	ck_loads_equal();
	ck_sessions_equal();
}

/* --------------------------------------------------------------- calls --- */

static void
text_by_chance(char *text, uint32_t most)
{
	uint32_t had = (uint32_t)strlen(text), n = had + pick(most) + 1;

	for (; had < n && had < PROMPT_MAX; had++)
		text[had] = (char)('a' + (pick(6) == 0));
	text[had] = '\0';
}

static void
open_by_chance(struct talk *t)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	int error;

	must(kvr_request_init(&r, sizeof(r)) == KVR_OK);
	r.owner = pick(3);
	r.affinity = pick(9);
	r.flags = pick(6) != 0 ? 0 : KVR_IGNORE_REUSE;
	r.stage = pick(6) != 0 ? KVR_STAGE_ALL : pick(3);
	t->text[0] = '\0';
	text_by_chance(t->text, 60);
	say(t->text);
	error = pick(2) == 0 ? kvr_lease_open(k, p, &r, now, &d)
	    : kvr_lease_open_on(k, p, &r, id[pick(WORKERS)], now, &d);
	must(error == KVR_OK && d.lease != 0);
	t->lease = d.lease;
}

static void
extend_by_chance(struct talk *t)
{
	text_by_chance(t->text, 20);
	say(t->text);
	(void)kvr_lease_extend(k, t->lease, p, now, 0);
}

static void
finish_by_chance(const struct talk *t)
{
	struct kvr_report r = { .size = sizeof(r), .kind = pick(3),
		.prompt_tokens = 10, .cached_tokens = pick(10) };

	must(kvr_lease_finish(k, t->lease, pick(2) == 0 ? NULL : &r, now,
	    0) == KVR_OK);
}

static bool
is_open(const struct talk *t)
{
	uint64_t cursor = 0;
	struct kvr_lease_info all[OPEN_MAX];
	size_t n;

	must(kvr_lease_list(k, &cursor, all, sizeof(all[0]), OPEN_MAX, &n) ==
	    KVR_OK && cursor == 0);
	while (n > 0)
		if (all[--n].lease == t->lease)
			return true;
	return false;
}

static void
lease_call(struct talk *t)
{
	switch (is_open(t) ? 1 + pick(12) : 0) {
	case 0:
		open_by_chance(t);
		break;
	case 1:
		finish_by_chance(t);
		break;
	case 2:
		must(kvr_lease_abort(k, t->lease, now, 0) == KVR_OK);
		break;
	case 3:
	case 4:
		(void)kvr_lease_first_token(k, t->lease, now, 0);
		break;
	case 5:
		(void)kvr_lease_output(k, t->lease, pick(5), now, 0);
		break;
	case 6:
	case 7:
	case 8:
		extend_by_chance(t);
		break;
	default:
		(void)kvr_lease_commit(k, t->lease, now, 0);
	}
}

static void
other_call(void)
{
	uint64_t cursor = 0, worker;
	uint32_t i = pick(WORKERS);

	switch (pick(40)) {
	case 0:
		if (kvr_worker_reset(k, id[i], &worker) == KVR_OK)
			id[i] = worker;
		break;
	case 1:
		(void)kvr_owner_reap(k, pick(3), now, &cursor, NULL);
		break;
	case 2:
		(void)kvr_affinity_bind(k, 1 + pick(8), id[i],
		    1 + pick(3000000), now, 0);
		break;
	case 3:
		if (pick(10) == 0)
			(void)kvr_clear(k);
		break;
	default:
		say_by_chance();
		(void)observed(i, now);
	}
}

START_TEST(peers_agree)
{
	uint64_t i, calls = test_amount(4000);
	struct kvr_record r = { .size = sizeof(r) };

	must(kvr_journal_read(k, &position, now, &r, NULL, 0) == KVR_EAGAIN);
	for (i = 0; i < calls; i++) {
		now += pick(40);
		if (pick(3) != 0)
			lease_call(&talks[pick(OPEN_MAX)]);
		else
			other_call();
		replay();
		if (pick(10) == 0)
			ck_equal();
	}
	must(stats().journal_overruns == 0);
	must(stats().journal_written > KVR_JOURNAL_MIN || calls < 4000);
	must(stats().truncated == 0 && stats().evicted_region == 0);
}
END_TEST

Suite *suite_journal_replay(void);

Suite *
suite_journal_replay(void)
{
	Suite *s = suite_create("journal_replay");
	TCase *t = tcase_create("journal_replay");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, peers_agree, 0, 4);
	suite_add_tcase(s, t);
	return s;
}
