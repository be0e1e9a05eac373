/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_model.c - the library against an index that is obviously right.
 *
 * Random operations in many kinds of worlds, all sequences of a few operations
 * in a tiny one, and the ending of old leases, which the random worlds leave
 * out. KVR_SEED=n repeats a run.
 */
#include "test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

enum { WORLD_OPS = 1500 };

#define MIB (UINT64_C(1) << 20)

static const struct ops_config worlds[] = {
	{ .name = "tiny", .block_size = 1, .ttl = 100, .workers = 2,
	  .alphabet = 2, .scopes = 1 },
	{ .name = "calm", .block_size = 1, .ttl = 4000, .workers = 4,
	  .alphabet = 2, .scopes = 2, .longest = 1, .calm = true },
	{ .name = "crowd", .block_size = 2, .ttl = 2000, .workers = 24,
	  .alphabet = 2, .scopes = 1, .calm = true },
	{ .name = "crowd on one chain", .block_size = 1, .ttl = 900,
	  .workers = 24, .alphabet = 1, .scopes = 1, .longest = 1 },
	{ .name = "chats", .block_size = 4, .ttl = 1000, .workers = 4,
	  .alphabet = 3, .scopes = 3, .longest = 1 },
	{ .name = "long", .block_size = 2, .ttl = 1000, .workers = 3,
	  .alphabet = 2, .scopes = 2, .longest = 2, .calm = true,
	  .region_bytes = 4 * MIB },
	{ .name = "longest", .block_size = 1, .ttl = 400, .workers = 3,
	  .alphabet = 2, .scopes = 1, .longest = 3,
	  .region_bytes = 16 * MIB },
	{ .name = "one chain", .block_size = 1, .ttl = 64, .workers = 6,
	  .alphabet = 1, .scopes = 4, .longest = 1 },
	{ .name = "one chain, long", .block_size = 3, .ttl = 200,
	  .workers = 3, .alphabet = 1, .scopes = 1, .longest = 3,
	  .region_bytes = 4 * MIB },
	{ .name = "ttl 0", .block_size = 2, .ttl = 0, .workers = 3,
	  .alphabet = 2, .scopes = 2, .longest = 1 },
	{ .name = "ttl 1", .block_size = 2, .ttl = 1, .workers = 3,
	  .alphabet = 2, .scopes = 2, .longest = 1 },
	{ .name = "endless", .block_size = 2, .ttl = KVR_TTL_ENDLESS,
	  .workers = 4, .alphabet = 2, .scopes = 2, .longest = 1 },
	{ .name = "one worker", .block_size = 1, .ttl = 5000, .workers = 1,
	  .alphabet = 2, .scopes = 1, .longest = 2, .no_removal = true,
	  .calm = true, .region_bytes = 4 * MIB },
	{ .name = "reference hash", .block_size = 4, .ttl = 500,
	  .hash = KVR_HASH_DYNAMO, .workers = 4, .alphabet = 3,
	  .scopes = 4, .longest = 1 },
	{ .name = "eagle", .block_size = 3, .ttl = 500, .eagle = 1,
	  .workers = 3, .alphabet = 2, .scopes = 2, .longest = 1 },
	{ .name = "bytes", .block_size = 5, .ttl = 500,
	  .unit = KVR_UNIT_BYTES, .workers = 3, .alphabet = 2,
	  .scopes = 2, .longest = 1 },
	{ .name = "short prompts only", .block_size = 2, .ttl = 300,
	  .workers = 3, .alphabet = 2, .scopes = 1, .longest = 1,
	  .max_prompt_blocks = 5 },
	{ .name = "reference cost", .block_size = 2, .ttl = 300, .workers = 6,
	  .alphabet = 2, .scopes = 2, .policy = 1 },
	{ .name = "thresholds", .block_size = 2, .ttl = 300, .workers = 6,
	  .alphabet = 2, .scopes = 2, .policy = 2 },
	{ .name = "old leases", .block_size = 1, .ttl = 300,
	  .lease_limit = 200, .workers = 4, .alphabet = 2, .scopes = 1 },
	{ .name = "full", .block_size = 1, .ttl = 10000, .workers = 3,
	  .alphabet = 3, .scopes = 3, .longest = 1, .full = true,
	  .calm = true, .region_bytes = (15 << 10) + 512 },
	{ .name = "full crowd", .block_size = 1, .ttl = 10000,
	  .workers = 24, .alphabet = 2, .scopes = 2, .longest = 1,
	  .full = true, .calm = true, .region_bytes = (67 << 10) + 7552 },
	{ .name = "full, endless, long", .block_size = 2,
	  .ttl = KVR_TTL_ENDLESS, .workers = 4, .alphabet = 2,
	  .scopes = 2, .longest = 2, .full = true, .calm = true,
	  .region_bytes = (22 << 10) + 192 },
	{ .name = "events", .block_size = 2, .ttl = 1000, .workers = 4,
	  .alphabet = 2, .scopes = 2, .longest = 1, .events = 1 },
	{ .name = "events, calm", .block_size = 1, .ttl = 4000,
	  .workers = 2, .alphabet = 3, .scopes = 1, .longest = 2,
	  .events = 1, .no_removal = true, .calm = true,
	  .region_bytes = 4 * MIB },
	{ .name = "events in parts", .block_size = 2, .ttl = 1000,
	  .workers = 4, .alphabet = 2, .scopes = 1, .longest = 1,
	  .events = 3, .calm = true },
	{ .name = "events by tiers", .block_size = 1,
	  .ttl = KVR_TTL_ENDLESS, .workers = 4, .alphabet = 2, .scopes = 2,
	  .longest = 1, .events = 1, .tiers = true },
	{ .name = "events, reference hash", .block_size = 4, .ttl = 500,
	  .hash = KVR_HASH_DYNAMO, .workers = 3, .alphabet = 3,
	  .scopes = 4, .longest = 1, .events = 1 },
	{ .name = "events, few aliases", .block_size = 1, .ttl = 500,
	  .workers = 4, .alphabet = 2, .scopes = 2, .events = 2,
	  .aliases = 20 },
	{ .name = "events, short prompts", .block_size = 1, .ttl = 500,
	  .workers = 3, .alphabet = 2, .scopes = 1, .longest = 1,
	  .max_prompt_blocks = 5, .events = 1 },
	{ .name = "events, full", .block_size = 1, .ttl = 10000,
	  .workers = 4, .alphabet = 3, .scopes = 2, .longest = 1,
	  .events = 1, .aliases = 400, .full = true, .calm = true,
	  .region_bytes = 6 << 10 },
};
enum { WORLDS = sizeof(worlds) / sizeof(worlds[0]) };

static void
complete(struct ops_config *c)
{
	if (c->region_bytes == 0)
		c->region_bytes = MIB / 2;
	if (c->max_prompt_blocks == 0)
		c->max_prompt_blocks = KVR_AUTO;
}

static void
fail_with(const struct ops_config *c, struct op *ops, size_t n,
    struct ops_failure *f, uint64_t seed)
{
	fprintf(stderr, "\nKVR_SEED=%" PRIu64 ", world \"%s\"\n", seed,
	    c->name);
	ops_report(c, ops, n, f);
	ck_abort_msg("world \"%s\", KVR_SEED=%" PRIu64 ": %s", c->name, seed,
	    f->text);
}

/* The events that a world of this kind exists for must have happened in it. */
static void
must_have_met(const struct ops_config *c)
{
	const struct ops_totals *t = &ops_totals;

	ck_assert_uint_gt(t->matches, 0);
	ck_assert_uint_gt(t->decisions, 0);
	if (c->events > 0) {
		ck_assert_uint_gt(t->batches, 0);
		ck_assert_uint_gt(t->tracked, 0);
		ck_assert_uint_gt(t->degraded, 0);
	}
	if (!c->no_removal && c->ttl != 0)
		ck_assert_uint_gt(t->voided, 0);
	if (c->full) {
		ck_assert_uint_gt(t->evicted, 0);
		return;
	}
	if (c->lease_limit > 0)
		ck_assert_uint_gt(t->reaped, 0);
	ck_assert_uint_gt(t->walks, 0);
	ck_assert_uint_gt(t->splits, 0);
	if (c->ttl == 0)
		return;
	ck_assert_uint_gt(t->extensions, 0);
	ck_assert_uint_gt(t->merges, 0);
	if (c->ttl > 0)
		ck_assert_uint_gt(t->expired, 0);
}

/* Draws one sequence for a world, and runs it. */
static void
run_drawn(const struct ops_config *c, uint64_t draw, bool failing,
    uint64_t seed)
{
	static struct op ops[WORLD_OPS];
	struct ops_source s;
	struct ops_failure f;
	size_t n;

	ops_from_seed(&s, draw);
	n = ops_draw(&s, c, failing, ops, WORLD_OPS);
	if (ops_run(c, ops, n, 300, &f) != 0)
		fail_with(c, ops, n, &f, seed);
}

START_TEST(random_operations)
{
	struct ops_config c = worlds[_i];
	uint64_t seed = test_seed(), rounds = test_amount(100), i;

	complete(&c);
	for (i = 0; i < rounds; i++) {
		run_drawn(&c, seed + i * WORLDS + (uint64_t)_i, i % 4 == 0,
		    seed);
	}
	if (test_amount(100) == 100)
		must_have_met(&c);
}
END_TEST

/* ------------------------------------------- every sequence of length 5 --- */

/* `P` is a prompt of up to two segments: symbol and number of blocks each. */
#define P(a, na, b, nb) .segments = (nb) > 0 ? 2 : 1, \
	.segment = { { (a), (na) }, { (b), (nb) } }

/* The tree: splits, extensions, merges, expiry at every age. */
static const struct op tree_ops[] = {
	{ .kind = OP_OBSERVE, P(0, 1, 0, 0) },
	{ .kind = OP_OBSERVE, P(0, 3, 0, 0) },
	{ .kind = OP_OBSERVE, P(0, 1, 1, 1) },
	{ .kind = OP_OBSERVE, .worker = 1, P(0, 2, 0, 0) },
	{ .kind = OP_OBSERVE, .worker = 1, P(0, 2, 1, 1) },
	{ .kind = OP_OBSERVE, P(0, 2, 0, 0), .time = TIME_QUARTER },
	{ .kind = OP_OBSERVE, P(0, 1, 0, 0), .time = TIME_JUST_BEFORE },
	{ .kind = OP_OBSERVE, P(0, 2, 0, 0), .time = TIME_TTL },
	{ .kind = OP_EXPIRE, .arg = 3, .time = TIME_QUARTER },
	{ .kind = OP_EXPIRE, .time = TIME_JUST_BEFORE },
	{ .kind = OP_REMOVE },
	{ .kind = OP_RESET, .worker = 1 },
};

/* Leases: two of them over one prefix, ended in every way at every point. */
static const struct op lease_ops[] = {
	{ .kind = OP_RESERVE_ON, P(0, 2, 0, 0) },
	{ .kind = OP_RESERVE_ON, .slot = 1, P(0, 1, 1, 1) },
	{ .kind = OP_OBSERVE, P(0, 1, 0, 0) },
	{ .kind = OP_OBSERVE, P(0, 3, 0, 0) },
	{ .kind = OP_COMMIT },
	{ .kind = OP_COMMIT, .slot = 1, .time = TIME_QUARTER },
	{ .kind = OP_EXTEND, P(0, 1, 0, 0) },
	{ .kind = OP_FINISH },
	{ .kind = OP_FINISH, .slot = 1, .time = TIME_JUST_BEFORE },
	{ .kind = OP_ABORT },
	{ .kind = OP_ABORT, .slot = 1 },
	{ .kind = OP_EXPIRE, .time = TIME_TTL },
	{ .kind = OP_RESET },
};

/* Queries on every world when the sequence is over. */
static const struct op probes[] = {
	{ .kind = OP_MATCH, P(0, 3, 1, 1) },
	{ .kind = OP_MATCH, P(0, 2, 1, 1) },
	{ .kind = OP_ROUTE, P(0, 1, 1, 2) },
	{ .kind = OP_MATCH, P(0, 4, 0, 0), .time = TIME_QUARTER },
};
enum { PROBES = sizeof(probes) / sizeof(probes[0]), LONGEST = 5 };

static void
all_sequences(const struct op *alphabet, size_t letters)
{
	struct ops_config c = { .name = "smallest", .block_size = 1,
	    .ttl = 8, .workers = 2, .alphabet = 2, .scopes = 1,
	    .region_bytes = (12 << 10) + 512 };
	struct op ops[LONGEST + PROBES];
	size_t percent = (size_t)test_amount(100);
	size_t length = percent > 50 ? LONGEST : percent > 5 ? 4 : 3;
	size_t count = 1, i, j, rest;
	struct ops_failure f;

	complete(&c);
	for (i = 0; i < length; i++)
		count *= letters;
	memcpy(ops + length, probes, sizeof(probes));
	/* The shorter ones are prefixes of them; all are checked. */
	for (i = 0; i < count; i++) {
		for (j = 0, rest = i; j < length; j++, rest /= letters)
			ops[j] = alphabet[rest % letters];
		if (ops_run(&c, ops, length + PROBES, 1, &f) != 0)
			fail_with(&c, ops, length + PROBES, &f, 0);
	}
}

START_TEST(all_sequences_of_the_tree)
{
	all_sequences(tree_ops, sizeof(tree_ops) / sizeof(tree_ops[0]));
}
END_TEST

START_TEST(all_sequences_of_leases)
{
	all_sequences(lease_ops, sizeof(lease_ops) / sizeof(lease_ops[0]));
}
END_TEST

/* -------------------------------------------- errors the model once had --- */

enum { MENDED_OPS = 5, EXCLUDED = 2 << 3 /* of a variant */ };

static const struct {
	struct ops_config c;
	struct op op[MENDED_OPS];
	size_t n;
} mended[] = {
	/* of an engine's blocks of 5 tokens, 1 is in 2 of the index's of 4 */
	{ { .name = "no whole blocks", .block_size = 4, .ttl = 500,
	    .workers = 2, .alphabet = 1, .scopes = 1, .events = 1 },
	  { { .kind = OP_EVENTS_ANEW, .arg = 3, .variant = 247 },
	    { .kind = OP_EVENTS_ANEW, .arg = 13 },
	    { .kind = OP_RESERVE_ON, P(0, 2, 0, 0) },
	    { .kind = OP_RESERVE, P(0, 2, 0, 0), .slot = 1, .worker = 1,
	      .variant = EXCLUDED },
	    { .kind = OP_CANDIDATES, P(0, 2, 0, 0), .worker = 1,
	      .variant = EXCLUDED } }, 5 },
	/* 256 of the 257 blocks are copies; of the whole, none would be */
	{ { .name = "a part of copies", .block_size = 1, .ttl = 500,
	    .workers = 1, .alphabet = 1, .scopes = 1, .events = 1 },
	  { { .kind = OP_EVENTS_ANEW, P(0, 257, 0, 0), .arg = 3 },
	    { .kind = OP_EVENTS, P(0, 1, 0, 0), .arg = 3 },
	    { .kind = OP_EVENTS, P(0, 258, 0, 0), .arg = 17 } }, 3 },
	/* a part goes on behind the name that its own event has given */
	{ { .name = "parts of other names", .block_size = 1, .ttl = 500,
	    .workers = 1, .alphabet = 1, .scopes = 1, .events = 1 },
	  { { .kind = OP_EVENTS_ANEW, P(0, 258, 0, 0), .arg = 3,
	      .variant = 228 } }, 1 },
};
enum { MENDED = sizeof(mended) / sizeof(mended[0]) };

START_TEST(mended_sequences)
{
	struct ops_config c = mended[_i].c;
	struct op ops[MENDED_OPS];
	struct ops_failure f;

	complete(&c);
	memcpy(ops, mended[_i].op, sizeof(ops));
	if (ops_run(&c, ops, mended[_i].n, 1, &f) != 0)
		fail_with(&c, ops, mended[_i].n, &f, 0);
}
END_TEST

/* A block in use became the youngest to make room, and its events were lost. */
START_TEST(mended_draw)
{
	struct ops_config c = worlds[WORLDS - 1];

	ck_assert_str_eq(c.name, "events, full");
	complete(&c);
	run_drawn(&c, UINT64_C(1779627815610692053), false, 0);
}
END_TEST

/* ---------------------------------------------------------- the harness --- */

/* A model that is wrong by one nanosecond must be detected, and shrunk. */
START_TEST(difference_is_found)
{
	static struct op ops[WORLD_OPS];
	struct ops_config c = worlds[1];
	struct ops_source s;
	struct ops_failure f;
	size_t n;
	int i;

	complete(&c);
	c.skew = 1;
	for (i = 0; i < 20; i++) {
		ops_from_seed(&s, (uint64_t)i);
		n = ops_draw(&s, &c, false, ops, WORLD_OPS);
		if (ops_run(&c, ops, n, 1, &f) != 0)
			break;
	}
	ck_assert_int_lt(i, 20);
	n = ops_shrink(&c, ops, n, &f);
	ck_assert_uint_le(n, 3);
	ck_assert_int_ne(ops_run(&c, ops, n, 1, &f), 0);
	c.skew = 0;
	ck_assert_int_eq(ops_run(&c, ops, n, 1, &f), 0);
}
END_TEST

/* The ages at which leases end, and how many at a time. */
START_TEST(old_leases_end)
{
	static const struct op reserve = { .kind = OP_RESERVE_ON,
	    P(0, 2, 0, 0) };
	struct ops_config c = { .name = "leases", .block_size = 1,
	    .ttl = 100, .lease_limit = 100, .workers = 1, .alphabet = 2,
	    .scopes = 1 };
	struct op ops[12 + OPS_SLOTS];
	struct ops_failure f;
	size_t n, i;

	complete(&c);
	for (n = 0; n < OPS_SLOTS; n++) {
		ops[n] = reserve;
		ops[n].slot = (uint8_t)n;
	}
	ops[n++] = (struct op){ .kind = OP_COMMIT, .slot = 3 };
	ops[n++] = (struct op){ .kind = OP_OBSERVE, P(1, 1, 0, 0),
	    .time = TIME_JUST_BEFORE };
	ck_assert_int_eq(ops_run(&c, ops, n, 1, &f), 0);
	ck_assert_uint_eq(ops_totals.reaped, 0);
	ops[n++] = (struct op){ .kind = OP_MATCH, P(0, 2, 0, 0),
	    .time = TIME_LONG };
	/*
	 * A reader ends nothing. The check at the end is a writing call, and
	 * ends some.
	 */
	ck_assert_int_eq(ops_run(&c, ops, n, 1, &f), 0);
	ck_assert_uint_gt(ops_totals.reaped, 0);
	ck_assert_uint_lt(ops_totals.reaped, OPS_SLOTS);
	for (i = 0; i < 9; i++)
		ops[n++] = (struct op){ .kind = OP_EXPIRE };
	ops_totals.reaped = 0;
	ck_assert_int_eq(ops_run(&c, ops, n, 1, &f), 0);
	ck_assert_uint_eq(ops_totals.reaped, OPS_SLOTS);
}
END_TEST

START_TEST(bytes_and_seeds_decode)
{
	static const uint8_t bytes[] = { 255, 0, 0, 0, 0, 0, 1, 1, 2 };
	struct ops_config c = worlds[0];
	struct ops_source s;
	struct op ops[4], again[4];

	ops_from_bytes(&s, bytes, sizeof(bytes));
	ck_assert_uint_eq(ops_draw(&s, &c, false, ops, 4), 1);
	ck_assert_uint_eq(ops[0].kind, OP_OBSERVE);
	ck_assert_uint_eq(ops[0].segments, 1);
	ops_from_bytes(&s, NULL, 0);
	ck_assert_uint_eq(ops_draw(&s, &c, false, ops, 4), 0);
	ops_from_seed(&s, 7);
	ck_assert_uint_eq(ops_draw(&s, &c, false, ops, 4), 4);
	ops_from_seed(&s, 7);
	ck_assert_uint_eq(ops_draw(&s, &c, false, again, 4), 4);
	ck_assert_mem_eq(ops, again, sizeof(ops));
}
END_TEST

Suite *suite_model(void);

Suite *
suite_model(void)
{
	Suite *s = suite_create("model");
	TCase *t = tcase_create("random");

	tcase_add_loop_test(t, random_operations, 0, WORLDS);
	suite_add_tcase(s, t);
	t = tcase_create("all");
	tcase_add_test(t, all_sequences_of_the_tree);
	tcase_add_test(t, all_sequences_of_leases);
	suite_add_tcase(s, t);
	t = tcase_create("mended");
	tcase_add_loop_test(t, mended_sequences, 0, MENDED);
	tcase_add_test(t, mended_draw);
	suite_add_tcase(s, t);
	t = tcase_create("harness");
	tcase_add_test(t, difference_is_found);
	tcase_add_test(t, bytes_and_seeds_decode);
	tcase_add_test(t, old_leases_end);
	suite_add_tcase(s, t);
	return s;
}
