/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_affinity_api.c - keys, and bindings without and by a lease, through the
 * public calls.
 */
#include "inner.h"

#define SECOND INT64_C(1000000000)
enum { DIGEST = 77 };

static struct kvr_options
options(void)
{
	struct kvr_options o = small_options();

	o.affinity_entries = 64;
	o.ttl_ns = 120 * SECOND;
	return o;
}

static void
setup(void)
{
	struct kvr_options o = options();

	region_of(&o);
}

static uint64_t
key(const struct kvr *of, const char *tenant, const char *text)
{
	uint64_t digest;

	ck_assert_int_eq(kvr_affinity_key(of, tenant, strlen(tenant), text,
	    strlen(text), &digest), KVR_OK);
	ck_assert_uint_ne(digest, 0);
	return digest;
}

static uint64_t
bound(uint64_t digest, int64_t now)
{
	uint64_t worker = 1;
	int error = kvr_affinity_find(k, digest, now, &worker);

	if (error == KVR_OK)
		return worker;
	ck_assert_uint_eq(worker, 1); /* nothing was written */
	ck_assert_int_eq(error, KVR_EUNBOUND);
	return 0;
}

static void
bind(uint64_t digest, uint32_t worker, int64_t ttl, int64_t now)
{
	ck_assert_int_eq(kvr_affinity_bind(k, digest, id[worker], ttl, now,
	    0), KVR_OK);
}

/* ---------------------------------------------------------------- keys --- */

START_TEST(keys_differ)
{
	ck_assert_uint_eq(key(k, "t", "abc"), key(k, "t", "abc"));
	ck_assert_uint_ne(key(k, "ab", "c"), key(k, "a", "bc"));
	ck_assert_uint_ne(key(k, "", "abc"), key(k, "abc", "c"));
	ck_assert_uint_ne(key(k, "a", "b"), key(k, "b", "a"));
	ck_assert_uint_ne(key(k, "", "a"), key(k, "a", "a"));
	ck_assert_uint_ne(key(k, "a", "a"), key(k, "a", "aa"));
}
END_TEST

/* Routers that share a secret agree; others learn nothing. */
START_TEST(keys_depend_on_the_secret)
{
	struct kvr_options o = options();
	struct kvr *same, *other;

	ck_assert_int_eq(kvr_new(&o, &same), KVR_OK);
	o.secret[0]++;
	ck_assert_int_eq(kvr_new(&o, &other), KVR_OK);
	ck_assert_uint_eq(key(k, "t", "abc"), key(same, "t", "abc"));
	ck_assert_uint_ne(key(k, "t", "abc"), key(other, "t", "abc"));
	kvr_free(same);
	kvr_free(other);
}
END_TEST

START_TEST(keys_are_checked)
{
	uint64_t out = 5;

	ck_assert_int_eq(kvr_affinity_key(NULL, "t", 1, "k", 1, &out),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_affinity_key(k, NULL, 1, "k", 1, &out),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_affinity_key(k, "t", 1, NULL, 1, &out),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_affinity_key(k, "t", 1, "k", 0, &out),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_affinity_key(k, "t", 1, "k", 1, NULL),
	    KVR_EINVAL);
	ck_assert_uint_eq(out, 5);
	ck_assert_int_eq(kvr_affinity_key(k, NULL, 0, "k", 1, &out), KVR_OK);
}
END_TEST

/* ------------------------------------------------------ without a lease --- */

START_TEST(bind_and_find)
{
	ck_assert_uint_eq(bound(DIGEST, SECOND), 0);
	bind(DIGEST, 2, 0, SECOND);
	ck_assert_uint_eq(bound(DIGEST, SECOND), id[2]);
	ck_assert_uint_eq(bound(DIGEST, 601 * SECOND - 1), id[2]);
	ck_assert_uint_eq(bound(DIGEST, 601 * SECOND), 0);
	bind(DIGEST, 3, 3600 * SECOND, 2 * SECOND);
	ck_assert_uint_eq(bound(DIGEST, 3602 * SECOND - 1), id[3]);
	ck_assert_uint_eq(bound(DIGEST, 3602 * SECOND), 0);
}
END_TEST

/* A lookup does not count as use. */
START_TEST(find_is_no_use)
{
	bind(DIGEST, 2, 10 * SECOND, SECOND);
	ck_assert_uint_eq(bound(DIGEST, 10 * SECOND), id[2]);
	ck_assert_uint_eq(bound(DIGEST, 11 * SECOND), 0);
}
END_TEST

START_TEST(a_gone_worker_is_another_error)
{
	uint64_t worker = 5, fresh;

	bind(DIGEST, 2, 0, SECOND);
	bind(DIGEST + 1, 3, 0, SECOND);
	remove_worker(id[2]);
	ck_assert_int_eq(kvr_worker_reset(k, id[3], &fresh), KVR_OK);
	ck_assert_int_eq(kvr_affinity_find(k, DIGEST, SECOND, &worker),
	    KVR_EWORKER);
	ck_assert_int_eq(kvr_affinity_find(k, DIGEST + 1, SECOND, &worker),
	    KVR_EWORKER);
	ck_assert_int_eq(kvr_affinity_find(k, DIGEST, 700 * SECOND, &worker),
	    KVR_EUNBOUND);
	ck_assert_uint_eq(worker, 5);
}
END_TEST

START_TEST(calls_are_checked)
{
	const int64_t month = INT64_C(30) * 86400 * SECOND;
	uint64_t worker;

	ck_assert_int_eq(kvr_affinity_bind(NULL, 1, id[0], 0, 1, 0),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_affinity_bind(k, 0, id[0], 0, 1, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_affinity_bind(k, 1, id[0], -1, 1, 0),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_affinity_bind(k, 1, id[0], month + 1, 1, 0),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_affinity_bind(k, 1, id[0], 0, 1, 2), KVR_EINVAL);
	ck_assert_int_eq(kvr_affinity_bind(k, 1, id[0], 0, -2, 0),
	    KVR_ECLOCK);
	ck_assert_int_eq(kvr_affinity_bind(k, 1, 0, 0, 1, 0), KVR_EWORKER);
	ck_assert_int_eq(kvr_affinity_bind(k, 1, reserve(0, "ab", 1), 0, 1,
	    0), KVR_EWORKER);
	ck_assert_int_eq(kvr_affinity_find(NULL, 1, 1, &worker), KVR_EINVAL);
	ck_assert_int_eq(kvr_affinity_find(k, 0, 1, &worker), KVR_EINVAL);
	ck_assert_int_eq(kvr_affinity_find(k, 1, 1, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_affinity_find(k, 1, -2, &worker), KVR_ECLOCK);
	ck_assert_uint_eq(stats().affinity_bindings, 0);
	ck_assert_int_eq(kvr_affinity_bind(k, 1, id[0], month, 1, KVR_NOWAIT),
	    KVR_OK);
}
END_TEST

START_TEST(no_table)
{
	struct kvr_options o = options();
	uint64_t worker;

	region_end();
	o.affinity_entries = 0;
	region_of(&o);
	ck_assert_int_eq(kvr_affinity_bind(k, 1, id[0], 0, 1, 0), KVR_ESTATE);
	ck_assert_int_eq(kvr_affinity_find(k, 1, 1, &worker), KVR_EUNBOUND);
	ck_assert_uint_eq(stats().affinity_entries, 0);
}
END_TEST

/* --------------------------------------------------------- by a lease --- */

static struct kvr_request
request_of(uint64_t digest)
{
	struct kvr_request r;

	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.affinity = digest;
	return r;
}

static uint64_t
lease_on(const struct kvr_request *r, uint32_t worker, int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };

	ck_assert_int_eq(kvr_lease_open_on(k, p, r, id[worker], now, &d),
	    KVR_OK);
	return d.lease;
}

START_TEST(a_commit_binds)
{
	struct kvr_request r = request_of(DIGEST);
	struct kvr_decision d = { .size = sizeof(d) };
	uint64_t lease;

	say("abcd");
	ck_assert_int_eq(kvr_route(k, p, &r, SECOND, &d), KVR_OK);
	lease = lease_on(&r, 2, SECOND);
	ck_assert_uint_eq(bound(DIGEST, SECOND), 0);
	commit(lease, 2 * SECOND);
	ck_assert_uint_eq(bound(DIGEST, 2 * SECOND), id[2]);
	finish(lease, 3 * SECOND);
	ck_assert_uint_eq(bound(DIGEST, 602 * SECOND), id[2]);
	ck_assert_uint_eq(bound(DIGEST, 603 * SECOND), 0);
}
END_TEST

START_TEST(a_finish_alone_binds)
{
	struct kvr_request r = request_of(DIGEST);

	say("abcd");
	finish(lease_on(&r, 2, SECOND), 3 * SECOND);
	ck_assert_uint_eq(bound(DIGEST, 3 * SECOND), id[2]);
}
END_TEST

START_TEST(an_abort_binds_nothing)
{
	struct kvr_request r = request_of(DIGEST);
	uint64_t lease;

	say("abcd");
	give_up(lease_on(&r, 2, SECOND), SECOND);
	ck_assert_uint_eq(bound(DIGEST, SECOND), 0);
	/* and after a commit it takes nothing back */
	lease = lease_on(&r, 2, SECOND);
	commit(lease, SECOND);
	give_up(lease, 2 * SECOND);
	ck_assert_uint_eq(bound(DIGEST, 2 * SECOND), id[2]);
}
END_TEST

/* A request that runs for longer than the TTL keeps its session. */
START_TEST(later_events_refresh)
{
	struct kvr_request r = request_of(DIGEST);
	uint64_t lease;

	r.affinity_ttl = 10 * SECOND;
	say("abcd");
	lease = lease_on(&r, 2, SECOND);
	commit(lease, SECOND);
	ck_assert_int_eq(kvr_lease_first_token(k, lease, 9 * SECOND, 0),
	    KVR_OK);
	ck_assert_uint_eq(bound(DIGEST, 18 * SECOND), id[2]);
	ck_assert_uint_eq(bound(DIGEST, 19 * SECOND), 0);
	finish(lease, 50 * SECOND);
	ck_assert_uint_eq(bound(DIGEST, 59 * SECOND), id[2]);
	ck_assert_uint_eq(bound(DIGEST, 60 * SECOND), 0);
}
END_TEST

START_TEST(the_later_commit_wins)
{
	struct kvr_request r = request_of(DIGEST);
	uint64_t first, second;

	say("abcd");
	first = lease_on(&r, 2, SECOND);
	second = lease_on(&r, 3, SECOND);
	commit(second, 2 * SECOND);
	commit(first, 3 * SECOND);
	ck_assert_uint_eq(bound(DIGEST, 3 * SECOND), id[2]);
	ck_assert_int_eq(kvr_lease_first_token(k, second, 4 * SECOND, 0),
	    KVR_OK);
	commit(second, 5 * SECOND); /* was committed already */
	finish(second, 6 * SECOND);
	ck_assert_uint_eq(bound(DIGEST, 6 * SECOND), id[2]);
	finish(first, 7 * SECOND);
	ck_assert_uint_eq(stats().affinity_moved, 1);
}
END_TEST

/* A request outside the session's conversation moves nothing. */
START_TEST(some_requests_bind_nothing)
{
	struct kvr_request r = request_of(DIGEST);

	say("abcd");
	bind(DIGEST, 1, 0, SECOND);
	r.flags = KVR_IGNORE_REUSE;
	finish(lease_on(&r, 2, SECOND), 2 * SECOND);
	r = request_of(DIGEST);
	r.affinity_mode = KVR_AFFINITY_HASH;
	finish(lease_on(&r, 2, SECOND), 2 * SECOND);
	r = request_of(DIGEST);
	r.stage = KVR_STAGE_DECODE;
	finish(lease_on(&r, 2, SECOND), 2 * SECOND);
	r.overlap_credit = 1;
	finish(lease_on(&r, 2, SECOND), 2 * SECOND);
	ck_assert_uint_eq(bound(DIGEST, 2 * SECOND), id[1]);
	ck_assert_uint_eq(bound(DIGEST, 601 * SECOND), 0);
}
END_TEST

/* Both halves of a digest are kept by a lease. */
START_TEST(leases_keep_whole_digests)
{
	struct kvr_request r = request_of(UINT64_C(0x1234567800000000));

	say("abcd");
	finish(lease_on(&r, 2, SECOND), 2 * SECOND);
	ck_assert_uint_eq(bound(r.affinity, 2 * SECOND), id[2]);
	r.affinity = 0x89abcdef;
	finish(lease_on(&r, 3, SECOND), 2 * SECOND);
	ck_assert_uint_eq(bound(r.affinity, 2 * SECOND), id[3]);
	ck_assert_uint_eq(stats().affinity_bindings, 2);
}
END_TEST

START_TEST(orphans_bind_nothing)
{
	struct kvr_request r = request_of(DIGEST);
	uint64_t lease, fresh;

	say("abcd");
	lease = lease_on(&r, 2, SECOND);
	ck_assert_int_eq(kvr_worker_reset(k, id[2], &fresh), KVR_OK);
	commit(lease, SECOND);
	ck_assert_int_eq(kvr_lease_first_token(k, lease, SECOND, 0), KVR_OK);
	finish(lease, SECOND);
	ck_assert_uint_eq(bound(DIGEST, SECOND), 0);
}
END_TEST

START_TEST(clears)
{
	bind(DIGEST, 2, 0, 5 * SECOND);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_assert_uint_eq(bound(DIGEST, 5 * SECOND), 0);
	bind(DIGEST, 2, 0, 5 * SECOND);
	ck_assert_int_eq(kvr_clock_set(k, 6 * SECOND), KVR_OK);
	ck_assert_uint_eq(bound(DIGEST, 6 * SECOND), id[2]);
	ck_assert_int_eq(kvr_clock_set(k, 4 * SECOND), KVR_OK);
	ck_assert_uint_eq(bound(DIGEST, 5 * SECOND), 0);
	ck_assert_uint_eq(stats().affinity_bindings, 0);
}
END_TEST

/* A writer that died took the index with it, but not the sessions. */
START_TEST(a_death_leaves_sessions)
{
	say("abcd");
	(void)observed(1, 5 * SECOND);
	bind(DIGEST, 2, 0, 5 * SECOND);
	atomic_fetch_add(&k->region->seq, 1);
	(void)observed(0, 6 * SECOND);
	ck_assert_uint_eq(stats().recoveries, 1);
	ck_assert_uint_eq(overlap(1, 6 * SECOND), 0);
	ck_assert_uint_eq(bound(DIGEST, 6 * SECOND), id[2]);
}
END_TEST

/* -------------------------------------------------------- by chance --- */

enum { KEYS = 6, LEASES = 12 };

/* The same, plainly: few keys, so none is evicted. */
static struct {
	struct {
		uint64_t worker;
		int64_t used, ttl;
	} key[KEYS];
	struct {
		uint64_t lease, worker;
		uint32_t key;
		int64_t ttl;
		bool committed;
	} lease[LEASES];
	int64_t now;
} plain;

static bool
plain_live(uint32_t i)
{
	return plain.key[i].worker != 0 &&
	    plain.now - plain.key[i].used < plain.key[i].ttl;
}

static bool
plain_there(uint64_t worker)
{
	uint32_t i;

	for (i = 0; i < WORKERS; i++)
		if (id[i] == worker)
			return true;
	return false;
}

static void
plain_use(uint32_t i, uint64_t worker, int64_t ttl)
{
	plain.key[i].worker = worker;
	plain.key[i].used = plain.now;
	plain.key[i].ttl = ttl;
}

static void
plain_refresh(uint32_t i)
{
	uint32_t j = plain.lease[i].key;

	if (!plain_there(plain.lease[i].worker))
		return;
	if (!plain_live(j) || !plain_there(plain.key[j].worker) ||
	    plain.key[j].worker == plain.lease[i].worker)
		plain_use(j, plain.lease[i].worker, plain.lease[i].ttl);
}

static void
plain_commit(uint32_t i)
{
	if (!plain.lease[i].committed && plain_there(plain.lease[i].worker))
		plain_use(plain.lease[i].key, plain.lease[i].worker,
		    plain.lease[i].ttl);
	plain.lease[i].committed = true;
}

static void
plain_begin(uint32_t i)
{
	struct kvr_request r;
	uint32_t worker = pick(WORKERS);

	plain.lease[i].key = pick(KEYS);
	plain.lease[i].worker = id[worker];
	plain.lease[i].ttl = (1 + pick(20)) * SECOND;
	plain.lease[i].committed = false;
	r = request_of(1 + plain.lease[i].key);
	r.affinity_ttl = plain.lease[i].ttl;
	say_long(1 + pick(50), 0, pick(50));
	plain.lease[i].lease = lease_on(&r, worker, plain.now);
}

/* Makes a random call on a lease. */
static void
plain_go_on(uint32_t i)
{
	uint64_t lease = plain.lease[i].lease;

	switch (pick(5)) {
	case 0:
		give_up(lease, plain.now);
		plain.lease[i].lease = 0;
		break;
	case 1:
		plain_commit(i);
		plain_refresh(i);
		finish(lease, plain.now);
		plain.lease[i].lease = 0;
		break;
	case 2:
		must(kvr_lease_first_token(k, lease, plain.now, 0) == KVR_OK);
		if (!plain.lease[i].committed)
			plain_commit(i);
		plain_refresh(i);
		break;
	default:
		commit(lease, plain.now);
		plain_commit(i);
	}
}

static void
plain_change(void)
{
	uint32_t i = pick(WORKERS), j = pick(KEYS);
	int64_t ttl = pick(2) * 7 * SECOND;

	switch (pick(6)) {
	case 0:
		must(kvr_worker_reset(k, id[i], &id[i]) == KVR_OK);
		break;
	case 1:
		remove_worker(id[i]);
		id[i] = worker_of((char)('0' + i));
		break;
	default:
		bind(1 + j, i, ttl, plain.now);
		plain_use(j, id[i], ttl == 0 ? 600 * SECOND : ttl);
	}
}

START_TEST(as_a_plain_table)
{
	uint32_t i, n;
	uint64_t worker;
	int error, want;

	by_chance();
	memset(&plain, 0, sizeof(plain));
	plain.now = SECOND;
	for (n = 0; n < 5000; n++) {
		plain.now += pick(3) * pick(3) * SECOND;
		i = pick(LEASES);
		if (pick(8) == 0)
			plain_change();
		else if (plain.lease[i].lease == 0)
			plain_begin(i);
		else
			plain_go_on(i);
		for (i = 0; i < KEYS; i++) {
			want = !plain_live(i) ? KVR_EUNBOUND
			    : plain_there(plain.key[i].worker) ? KVR_OK
			    : KVR_EWORKER;
			worker = plain.key[i].worker;
			error = kvr_affinity_find(k, 1 + i, plain.now,
			    &worker);
			must(error == want);
			must(worker == plain.key[i].worker);
		}
		if (n % 50 == 0)
			region_sound();
	}
}
END_TEST

Suite *suite_affinity_api(void);

Suite *
suite_affinity_api(void)
{
	Suite *s = suite_create("affinity_api");
	TCase *t = tcase_create("api");

	tcase_add_checked_fixture(t, setup, region_end);
	tcase_add_test(t, keys_differ);
	tcase_add_test(t, keys_depend_on_the_secret);
	tcase_add_test(t, keys_are_checked);
	tcase_add_test(t, bind_and_find);
	tcase_add_test(t, find_is_no_use);
	tcase_add_test(t, a_gone_worker_is_another_error);
	tcase_add_test(t, calls_are_checked);
	tcase_add_test(t, no_table);
	tcase_add_test(t, a_commit_binds);
	tcase_add_test(t, a_finish_alone_binds);
	tcase_add_test(t, an_abort_binds_nothing);
	tcase_add_test(t, later_events_refresh);
	tcase_add_test(t, the_later_commit_wins);
	tcase_add_test(t, some_requests_bind_nothing);
	tcase_add_test(t, leases_keep_whole_digests);
	tcase_add_test(t, orphans_bind_nothing);
	tcase_add_test(t, clears);
	tcase_add_test(t, a_death_leaves_sessions);
	tcase_add_test(t, as_a_plain_table);
	suite_add_tcase(s, t);
	return s;
}
