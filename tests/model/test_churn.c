/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_churn.c - a well-used region holds as much as a new one.
 *
 * A region that is always full goes through many random operations of all
 * kinds. Then it gets the same as a fresh region of the same size, until both
 * have evicted a lot: the old one must hold at least 95 % as much as the fresh
 * one. With everything removed all of its cells must be free.
 *
 *   [ no access | region            canary | no access ]
 *                 ^ the minimum size       ^ both compared with their content
 */
#include "kvroute.h"
#include "plain.h"
#include "soak.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OPS = 1000000, CHECKS = 100, LONGEST = 4000, TTL = 50000 };
#define OPS_SOAK UINT64_C(100000000)
enum { NAMES = 12, LEASES = 200, KINDS = 40 };
enum { REGION = (1 << 20) + 1000, CANARY = 3096 };

static struct kvr *k;
static struct kvr_prompt *p;
static uint64_t worker[NAMES], lease[LEASES], seed, chance;
static uint32_t lease_kind[LEASES], lease_blocks[LEASES];
static int64_t now;
static unsigned char *fence; /* the page before the region */
static size_t page;

static uint32_t
pick(uint32_t n)
{
	return (uint32_t)(plain_random(&chance) % n);
}

#define must(that) do { \
	if (!(that)) \
		ck_abort_msg("%s (KVR_SEED=%" PRIu64 ")", #that, seed); \
} while (0)

/* -------------------------------------------------------------- region --- */

static size_t
fenced_bytes(void)
{
	return (REGION + CANARY + page - 1) / page * page;
}

/* Ends, with its canary, right before a page without access. */
static unsigned char *
region_at(void)
{
	size_t at = fenced_bytes() - REGION - CANARY;

	return fence + page + at / 64 * 64;
}

static void
set_options(struct kvr_options *o)
{
	kvr_options_init(o, sizeof(*o));
	o->region_bytes = REGION;
	o->block_size = 1;
	o->ttl_ns = TTL;
	o->max_workers = NAMES;
}

static uint64_t
add(struct kvr *to, uint32_t name)
{
	char text = (char)('a' + name);
	uint64_t id = 0;
	int rc = kvr_worker_add(to, &text, 1, NULL, &id);

	must(rc == KVR_OK);
	return id;
}

static void
open_fenced(void)
{
	struct kvr_options o;
	uint32_t i;

	page = (size_t)sysconf(_SC_PAGESIZE);
	fence = mmap(NULL, fenced_bytes() + 2 * page, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(fence, MAP_FAILED);
	memset(fence + page, 0xa5, fenced_bytes());
	ck_assert_int_eq(mprotect(fence, page, PROT_NONE), 0);
	ck_assert_int_eq(mprotect(fence + page + fenced_bytes(), page,
	    PROT_NONE), 0);
	set_options(&o);
	ck_assert_int_eq(kvr_new_at(&o, region_at(), REGION, &k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	for (i = 0; i < NAMES; i++)
		worker[i] = add(k, i);
}

static void
ck_canary(void)
{
	const unsigned char *at = fence + page;
	const unsigned char *end = at + fenced_bytes();

	for (; at < end; at++)
		if (at < region_at() || at >= region_at() + REGION)
			must(*at == 0xa5);
}

static struct kvr_stats
stats(const struct kvr *of)
{
	struct kvr_stats s = { .size = sizeof(s) };

	must(kvr_stats_get(of, &s) == KVR_OK);
	return s;
}

/* ------------------------------------------------------------- prompts --- */

/*
 * Kinds share their first blocks with others of their group, and fork from
 * them one by one: kind 13 shares 260 blocks with kind 12 and 20 with kind 1.
 */
static void
say(uint32_t kind, uint32_t n)
{
	uint32_t tokens[LONGEST], i;

	for (i = 0; i < n; i++)
		tokens[i] = i < 20 * (kind % 20) ? kind / 20 : 1000 + kind;
	must(kvr_prompt_set_tokens(p, NULL, tokens, n) == KVR_OK);
}

/* Mostly short, now and then of maximum length; all lengths occur. */
static uint32_t
draw_length(void)
{
	switch (pick(20)) {
	case 0:
		return 1 + pick(LONGEST);
	case 1: case 2: case 3:
		return 1 + pick(400);
	default:
		return 1 + pick(60);
	}
}

/* Many kinds come once, some all the time. */
static uint32_t
draw_kind(void)
{
	return pick(3) == 0 ? pick(KINDS) : KINDS + pick(1u << 20);
}

/* ---------------------------------------------------------- operations --- */

static void
observe(void)
{
	say(draw_kind(), draw_length());
	must(kvr_observe(k, p, worker[pick(NAMES)], now, 0, NULL) == KVR_OK);
}

static void
reserve(uint32_t i)
{
	struct kvr_decision d = { .size = sizeof(d) };

	lease_kind[i] = draw_kind();
	lease_blocks[i] = draw_length();
	say(lease_kind[i], lease_blocks[i]);
	if (pick(2) == 0)
		must(kvr_lease_open(k, p, NULL, now, &d) == KVR_OK);
	else
		must(kvr_lease_open_on(k, p, NULL, worker[pick(NAMES)], now,
		    &d) == KVR_OK);
	lease[i] = d.lease;
}

static void
extend(uint32_t i)
{
	uint32_t n = lease_blocks[i] + pick(40);
	int rc;

	if (n > LONGEST)
		return;
	lease_blocks[i] = n;
	say(lease_kind[i], n);
	rc = kvr_lease_extend(k, lease[i], p, now, 0);
	must(rc == KVR_OK || rc == KVR_ESTATE);
}

static void
lease_step(void)
{
	uint32_t i = pick(LEASES);
	int rc = KVR_OK;

	if (lease[i] == 0) {
		reserve(i);
		return;
	}
	switch (pick(6)) {
	case 0:
		rc = kvr_lease_commit(k, lease[i], now, 0);
		must(rc == KVR_OK || rc == KVR_ESTATE);
		break;
	case 1:
		rc = kvr_lease_first_token(k, lease[i], now, 0);
		must(rc == KVR_OK || rc == KVR_ESTATE);
		break;
	case 2:
		extend(i);
		break;
	case 3:
		must(kvr_lease_output(k, lease[i], pick(9), now, 0) ==
		    KVR_OK);
		break;
	case 4:
		must(kvr_lease_finish(k, lease[i], NULL, now, 0) == KVR_OK);
		lease[i] = 0;
		break;
	default:
		must(kvr_lease_abort(k, lease[i], now, 0) == KVR_OK);
		lease[i] = 0;
	}
}

static void
replace(void)
{
	uint32_t i = pick(NAMES);
	int rc;

	if (pick(2) == 0) {
		rc = kvr_worker_reset(k, worker[i], &worker[i]);
		must(rc == KVR_OK || rc == KVR_EFULL);
		return;
	}
	must(kvr_worker_remove(k, worker[i]) == KVR_OK);
	/* until a slot has nothing left that refers to it, if need be */
	for (rc = KVR_EFULL; rc == KVR_EFULL;) {
		char text = (char)('a' + i);

		must(kvr_expire(k, now, 1000, NULL) == KVR_OK);
		rc = kvr_worker_add(k, &text, 1, NULL, &worker[i]);
		if (rc == KVR_EFULL)
			lease_step();
	}
	must(rc == KVR_OK);
}

static void
match(void)
{
	struct kvr_overlap v[NAMES];
	uint32_t n = draw_length();
	size_t count, i;

	say(pick(KINDS), n);
	must(kvr_match(k, p, now, v, sizeof(v[0]), NAMES, &count) == KVR_OK);
	must(count <= NAMES);
	for (i = 0; i < count; i++)
		must(v[i].blocks > 0 && v[i].blocks <= n);
}

static void
one_operation(void)
{
	uint32_t what = pick(1000);

	now += pick(4);
	if (what < 500)
		observe();
	else if (what < 900)
		lease_step();
	else if (what < 960)
		match();
	else if (what < 996)
		must(kvr_expire(k, now, pick(50), NULL) == KVR_OK);
	else if (what < 999)
		replace();
	else
		now += pick(TTL);
}

static void
churn(uint64_t ops)
{
	uint64_t i, every = ops / CHECKS + 1;

	for (i = 0; i < ops; i++) {
		one_operation();
		if (i % every == 0) {
			must(kvr_check(k) == KVR_OK);
			ck_canary();
		}
		soak_progress("churn", i, ops);
	}
	must(kvr_check(k) == KVR_OK);
}

/* ---------------------------------------------------------- comparison --- */

/* The contents of a region after many more blocks than it can hold. */
struct full {
	uint64_t blocks, used;
};

static const uint32_t fillings[] = { 1, 16, 33, 0, 1500 }; /* 0: mixed */
enum { FILLINGS = sizeof(fillings) / sizeof(fillings[0]) };

/* Prompts of one length that share nothing; each is observed once. */
static struct full
fill(struct kvr *to, const uint64_t *workers, uint32_t which)
{
	uint32_t i, n, length = fillings[which];
	uint64_t state = 7, again = length == 0 ? 3000 : 30000 / length + 500;
	struct kvr_stats s;
	struct full f;

	for (i = 0; i < again; i++) {
		uint64_t r = plain_random(&state);

		n = length > 0 ? length : 1 + (uint32_t)(r >> 32) % 900;
		say(KINDS + 20 * (which << 16 | i), n);
		must(kvr_observe(to, p, workers[r % NAMES], now + i, 0,
		    NULL) == KVR_OK);
	}
	s = stats(to);
	f.blocks = s.held_blocks;
	f.used = s.cells - s.cells_free;
	return f;
}

static void
end_leases(void)
{
	uint32_t i;

	for (i = 0; i < LEASES; i++)
		if (lease[i] != 0)
			must(kvr_lease_abort(k, lease[i], now, 0) == KVR_OK);
}

/* A prompt carries the secret of the region that it was made for. */
static void
take_prompt(struct kvr *of)
{
	kvr_prompt_free(p);
	ck_assert_int_eq(kvr_prompt_new(of, &p), KVR_OK);
}

static void
ck_as_good_as_new(struct kvr *fresh, const uint64_t *workers,
    const char *when)
{
	struct full old, new;
	uint32_t i;

	for (i = 0; i < FILLINGS; i++) {
		take_prompt(fresh);
		new = fill(fresh, workers, i);
		take_prompt(k);
		old = fill(k, worker, i);
		now = stats(k).clock;
		must(kvr_check(k) == KVR_OK);
		must(stats(k).evicted_region > 0 &&
		    stats(fresh).evicted_region > 0);
		ck_assert_msg(old.blocks * 100 >= new.blocks * 95 &&
		    old.used * 100 >= new.used * 95, "%s, prompts of %u: %"
		    PRIu64 " blocks in %" PRIu64 " cells, fresh %" PRIu64
		    " in %" PRIu64 " (KVR_SEED=%" PRIu64 ")", when,
		    fillings[i], old.blocks, old.used, new.blocks, new.used,
		    seed);
		soak_row("churn, %s, prompts of %u blocks: %" PRIu64
		    " blocks held in %" PRIu64 " cells, fresh: %" PRIu64
		    " in %" PRIu64, when, fillings[i], old.blocks, old.used,
		    new.blocks, new.used);
	}
}

START_TEST(as_good_as_new)
{
	uint64_t ops = soak_amount(OPS, OPS_SOAK), blank, fresh_worker[NAMES];
	struct kvr_options o;
	struct kvr *fresh;
	uint32_t i, left;

	seed = chance = test_seed();
	open_fenced();
	blank = stats(k).cells_free;
	churn(ops);
	must(stats(k).evicted_region > 0 && stats(k).expired > 0 &&
	    stats(k).orphaned > 0 && stats(k).merges > 0 &&
	    stats(k).splits > 0 && stats(k).extensions > 0);
	end_leases();
	set_options(&o);
	ck_assert_int_eq(kvr_new(&o, &fresh), KVR_OK);
	for (i = 0; i < NAMES; i++)
		fresh_worker[i] = add(fresh, i);
	ck_as_good_as_new(fresh, fresh_worker, "as it was");
	now += TTL;
	must(kvr_expire(k, now, UINT32_MAX, &left) == KVR_OK);
	must(left == 0);
	must(kvr_check(k) == KVR_OK);
	ck_assert_uint_eq(stats(k).cells_free, blank);
	ck_assert_uint_eq(stats(k).entries + stats(k).nodes, 0);
	ck_as_good_as_new(fresh, fresh_worker, "expired");
	ck_canary();
	soak_row("churn: %" PRIu64 " operations; then all %" PRIu64 " cells"
	    " free; nothing written outside of the region", ops, blank);
	kvr_prompt_free(p);
	kvr_free(fresh);
	kvr_free(k);
	ck_assert_int_eq(munmap(fence, fenced_bytes() + 2 * page), 0);
}
END_TEST

Suite *suite_churn(void);

Suite *
suite_churn(void)
{
	Suite *s = suite_create("churn");
	TCase *t = tcase_create("churn");

	tcase_add_test(t, as_good_as_new);
	suite_add_tcase(s, t);
	return s;
}
