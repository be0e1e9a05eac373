/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_restart.c - a restart changes nothing in a healthy region.
 *
 * Random calls of all kinds on a small region, where workers change between
 * retention by TTL, by capacity and by feedback, and back. Nothing is expired
 * but by these calls, so entries that are due stay, are pinned again, and come
 * under another TTL. After each call every invariant holds; now and then a
 * copy of the region is opened as the first process after a restart would, and
 * has to be equal to the original, byte for byte.
 */
#include "inner.h"
#include "recover.h"

enum { BYTES = 77 << 10, LEASES = 12, OPS = 500, SEEDS = 60 };

static void *memory, *copy;
static uint64_t lease[LEASES];
static char lease_text[LEASES][LETTERS];
static int64_t now;
static uint64_t blank; /* free cells of the new region */

static void
any_policy(void)
{
	struct kvr_policy policy;

	must(kvr_policy_init(&policy, sizeof(policy)) == KVR_OK);
	policy.cost = pick(2);
	if (pick(2) == 0)
		policy.overload_prefill_tokens = pick(60);
	if (pick(2) == 0)
		policy.overload_blocks_fraction = 0.1 * pick(10);
	must(kvr_policy_set(k, &policy) == KVR_OK);
}

static void
begin(void)
{
	static const int64_t times[] = { 0, 1, 30, 200, 1000, 5000 };
	struct kvr_options o = small_options();
	bool roomy = pick(2) == 0; /* nothing is evicted for room */

	o.ttl_ns = pick(7) == 0 ? KVR_TTL_ENDLESS : times[pick(6)];
	o.idle_limit_ns = times[1 + pick(5)];
	o.lease_limit_ns = pick(4) == 0 ? 300 : INT64_MAX / 4;
	o.block_size = 1 + pick(3);
	now = 1;
	memset(memory, 0, BYTES);
	memset(lease, 0, sizeof(lease));
	must(kvr_new_at(&o, memory, roomy ? BYTES : BYTES / 3, &k) == KVR_OK);
	people(WORKERS);
	any_policy();
	blank = stats().cells_free;
}

static void
end(void)
{
	kvr_prompt_free(p);
	kvr_free(k);
}

/* ----------------------------------------------------------- the calls --- */

static void
say_text(char *text, uint32_t from, uint32_t most)
{
	uint32_t token[LETTERS], i, n = from + 1 + pick(most);
	uint32_t odd = 2 + pick(12);

	for (i = 0; i < n; i++) {
		if (i >= from)
			text[i] = pick(odd) == 0 ? 'b' : 'a';
		token[i] = (unsigned char)text[i];
	}
	text[n] = '\0';
	must(kvr_prompt_set_tokens(p, NULL, token, n) == KVR_OK);
}

static void
any_facts(uint32_t worker)
{
	static const uint32_t modes[] = { KVR_RETAIN_AUTO, KVR_RETAIN_AUTO,
		KVR_RETAIN_TTL, KVR_RETAIN_CAPACITY, KVR_RETAIN_FEEDBACK };
	struct kvr_worker f;
	int error;

	must(kvr_worker_init(&f, sizeof(f)) == KVR_OK);
	f.retain = modes[pick(5)];
	f.capacity_tokens = pick(3) == 0 ? 0 : 1 + pick(pick(2) == 0
	    ? 150 : 100000);
	f.eviction = pick(2);
	f.state = pick(8) == 0 ? 1 + pick(2) : KVR_STATE_UP;
	f.weight = 1 + pick(2);
	f.role = pick(8) == 0 ? pick(3) : KVR_ROLE_BOTH;
	f.block_tokens = pick(3) * 2;
	f.max_batched_tokens = pick(100);
	error = kvr_worker_set(k, id[worker], &f);
	must(error == KVR_OK || (error == KVR_EINVAL &&
	    f.retain == KVR_RETAIN_CAPACITY && f.capacity_tokens == 0));
}

static void
any_load(uint32_t worker)
{
	struct kvr_load load = { .size = sizeof(load) };

	load.prefill_tokens = pick(90);
	load.active_blocks = pick(30);
	load.requests = pick(4);
	load.used_blocks = pick(40);
	must(kvr_worker_set_load(k, id[worker], pick(KVR_LOAD_SOURCES),
	    &load) == KVR_OK);
}

static void
any_worker(uint32_t worker)
{
	char name = (char)('0' + worker);
	int error;

	if (pick(3) > 0) {
		error = kvr_worker_reset(k, id[worker], &id[worker]);
		must(error == KVR_OK || error == KVR_EFULL);
		return;
	}
	must(kvr_worker_remove(k, id[worker]) == KVR_OK);
	error = kvr_worker_add(k, &name, 1, NULL, &id[worker]);
	must(error == KVR_OK || error == KVR_EFULL);
	if (error == KVR_OK)
		return;
	must(kvr_clear(k) == KVR_OK); /* all slots were referred to */
	memset(lease, 0, sizeof(lease));
	must(kvr_worker_add(k, &name, 1, NULL, &id[worker]) == KVR_OK);
}

static void
any_finish(uint32_t i)
{
	struct kvr_report r = { .size = sizeof(r) };
	int error;

	r.kind = pick(3);
	r.cached_tokens = pick(2) * pick(100);
	r.completion_tokens = pick(3) * pick(40);
	r.flags = pick(6) == 0 ? 1 + pick(3) : 0;
	r.endpoint = pick(3);
	error = kvr_lease_finish(k, lease[i], pick(4) == 0 ? NULL : &r, now,
	    0);
	must(error == KVR_OK || error == KVR_ELEASE);
	lease[i] = 0;
}

static void
any_of_lease(uint32_t i)
{
	uint32_t length = (uint32_t)strlen(lease_text[i]);
	int error = KVR_OK;

	switch (pick(9)) {
	case 0: case 1:
		error = kvr_lease_commit(k, lease[i], now, 0);
		break;
	case 2:
		error = kvr_lease_first_token(k, lease[i], now, 0);
		break;
	case 3:
		error = kvr_lease_output(k, lease[i], pick(5), now, 0);
		break;
	case 4:
		if (length < 400) {
			say_text(lease_text[i], length, 30);
			error = kvr_lease_extend(k, lease[i], p, now, 0);
		}
		if (error != KVR_OK)
			lease_text[i][length] = '\0';
		break;
	case 5: case 6:
		error = kvr_lease_abort(k, lease[i], now, 0);
		lease[i] = 0;
		break;
	default:
		any_finish(i);
	}
	must(error == KVR_OK || error == KVR_ESTATE || error == KVR_ELEASE);
}

static void
any_open(uint32_t i, uint32_t worker)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	int error;

	must(kvr_request_init(&r, sizeof(r)) == KVR_OK);
	r.owner = pick(20);
	say_text(lease_text[i], 0, 60);
	if (pick(3) == 0)
		error = kvr_lease_open(k, p, &r, now, &d);
	else
		error = kvr_lease_open_on(k, p, &r, id[worker], now, &d);
	must(error == KVR_OK || error == KVR_ENOWORKER ||
	    error == KVR_EALLOVERLOADED);
	lease[i] = error == KVR_OK ? d.lease : 0;
}

static void
any_call(void)
{
	uint32_t i = pick(LEASES), worker = pick(WORKERS), which = pick(100);
	char text[LETTERS];
	uint64_t at = 0;

	now += pick(3) == 0 ? pick(60) : 0;
	now += pick(100) == 0 ? pick(6000) : 0;
	if (which < 6) {
		any_facts(worker);
	} else if (which < 7) {
		any_worker(worker);
	} else if (which < 9) {
		must(kvr_expire(k, now, pick(4), NULL) == KVR_OK);
	} else if (which < 10) {
		must(kvr_worker_forget(k, id[worker]) == KVR_OK);
	} else if (which < 11) {
		any_policy();
	} else if (which < 13) {
		any_load(worker);
	} else if (which < 14) {
		must(kvr_owner_reap(k, 1 + pick(3), now, &at, NULL) == KVR_OK);
	} else if (which < 45) {
		say_text(text, 0, pick(20) == 0 ? 500 : 60);
		must(kvr_observe(k, p, id[worker], now, 0, NULL) == KVR_OK);
	} else if (lease[i] == 0) {
		any_open(i, worker);
	} else {
		any_of_lease(i);
	}
}

/* ---------------------------------------------------------- restarting --- */

static void
ck_restart(void)
{
	static const unsigned char boot[KVR_BOOT_ID_BYTES];
	size_t durable = k->layout.slots_at;
	struct kvr next;

	memset(&next, 0, sizeof(next));
	memcpy(copy, memory, BYTES);
	must(region_attach(copy, k->region->seal.bytes, &next) == KVR_OK);
	must(recover_alone(&next, boot) == KVR_OK);
	must(next.region->counts.recoveries == 0);
	must(memcmp((char *)copy + durable, (char *)memory + durable,
	    (size_t)k->layout.end - durable) == 0);
	must(memcmp(&next.region->counts, &k->region->counts,
	    sizeof(struct counts)) == 0);
}

/* Ends with every cell free: nothing was lost on the way. */
static void
ck_all_ends(void)
{
	uint32_t i;

	for (i = 0; i < WORKERS; i++)
		must(kvr_worker_remove(k, id[i]) == KVR_OK);
	for (i = 0; i < LEASES; i++)
		if (lease[i] != 0)
			(void)kvr_lease_abort(k, lease[i], now, 0);
	must(kvr_expire(k, now, UINT32_MAX, NULL) == KVR_OK);
	must(kvr_check(k) == KVR_OK);
	must(stats().leases == 0 && stats().entries == 0);
	must(stats().cells_free == blank);
}

START_TEST(restarts_by_chance)
{
	uint64_t seeds = test_amount(SEEDS);
	uint32_t i;

	by_chance();
	memory = aligned_alloc(CELL, BYTES);
	copy = aligned_alloc(CELL, BYTES);
	ck_assert(memory != NULL && copy != NULL);
	for (; seeds > 0; seeds--) {
		begin();
		for (i = 0; i < OPS; i++) {
			any_call();
			must(kvr_check(k) == KVR_OK);
			if (i % 16 == 0)
				ck_restart();
		}
		ck_all_ends();
		end();
	}
	free(memory);
	free(copy);
}
END_TEST

Suite *suite_restart(void);

Suite *
suite_restart(void)
{
	Suite *s = suite_create("restart");
	TCase *t = tcase_create("restart");

	suite_add_tcase(s, t);
	tcase_add_test(t, restarts_by_chance);
	return s;
}
