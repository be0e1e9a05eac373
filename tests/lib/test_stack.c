/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stack.c - the depth of an idle block is the number of blocks in use,
 * and of idle ones released after it.
 *
 * A block is a token here. Prompts of more than 16 blocks have an epoch of
 * their own, where a block has half of the others in front of it.
 */
#include "check.h"
#include "id.h"

#include "inner.h"

/* The idle entries of worker 0, the one released first is number 0. */
static const struct entry *
idle(uint32_t number)
{
	uint32_t i = slot_at(k, id_slot(id[0]))->by_release.head;

	for (; number > 0 && i != 0; number--)
		i = entry_at(k, i)->release_next;
	ck_assert_uint_ne(i, 0);
	return entry_at(k, i);
}

static uint64_t
depth_at(uint64_t when)
{
	return stack_depth(k, id_slot(id[0]), when);
}

static uint64_t
depth(uint32_t number)
{
	return depth_at(idle(number)->released);
}

static struct stack *
mine(void)
{
	return stack_at(k, id_slot(id[0]));
}

/* A prompt of so many blocks, that is unlike those of other lengths. */
static void
used(uint32_t blocks, int64_t now)
{
	say_long(blocks, 0, blocks);
	ck_assert_uint_eq(observed(0, now), blocks);
}

static uint64_t
asked(uint32_t blocks, int64_t now)
{
	say_long(blocks, 0, blocks);
	return reserved(0, now);
}

/* At 1, 2 and 3, if it was not later. */
static void
three_prompts(void)
{
	int64_t now = k->region->clock > 0 ? k->region->clock : 0;

	used(100, now + 1);
	used(200, now + 2);
	used(400, now + 3);
}

/* ------------------------------------------------------------- depths --- */

START_TEST(nothing_is_idle)
{
	uint64_t lease;

	ck_assert_uint_eq(depth_at(0), 0);
	ck_assert_uint_eq(depth_at(UINT64_MAX), 0);
	lease = asked(30, 1);
	ck_assert_uint_eq(depth_at(0), 30);
	ck_assert_int_eq(kvr_lease_output(k, lease, 7, 1, 0), KVR_OK);
	ck_assert_uint_eq(depth_at(0), 37);
	give_up(lease, 1);
	ck_assert_uint_eq(depth_at(0), 0);
}
END_TEST

START_TEST(released_later)
{
	three_prompts();
	ck_assert_uint_eq(depth(2), 400 / 2);
	ck_assert_uint_eq(depth(1), 400 + 200 / 2);
	ck_assert_uint_eq(depth(0), 400 + 200 + 100 / 2);
}
END_TEST

/* Up to 16 are of one age, if nothing is in use; else an eighth of it. */
START_TEST(few_are_of_one_age)
{
	observe(0, "abcd", 1);
	observe(0, "efghijklmnop", 2);
	observe(0, "q", 3);
	ck_assert_uint_eq(mine()->n, 1);
	ck_assert_uint_eq(depth(0), 17 / 2);
	observe(0, "rs", 4);
	ck_assert_uint_eq(mine()->n, 2);
	ck_assert_uint_eq(depth(0), 2 + 17 / 2);
	(void)asked(800, 5);
	used(100, 6);
	ck_assert_uint_eq(depth(0), 800 + 102 + 17 / 2);
	ck_assert_uint_eq(mine()->n, 2);
	ck_assert_uint_eq(depth(3), 800 + 102 / 2);
	observe(0, "tuvwxyz.,-:;!?()", 7);
	ck_assert_uint_eq(mine()->n, 2);
	observe(0, "0", 8);
	ck_assert_uint_eq(mine()->n, 3);
	ck_assert_uint_eq(depth(3), 800 + 1 + 118 / 2);
}
END_TEST

/* A block that is used again comes before new ones. */
START_TEST(used_again)
{
	uint64_t lease;

	three_prompts();
	lease = asked(100, 4);
	commit(lease, 4);
	ck_assert_uint_eq(depth(1), 100 + 400 / 2);
	ck_assert_uint_eq(depth(0), 100 + 400 + 200 / 2);
	finish(lease, 5);
	ck_assert_uint_eq(depth(2), 100 / 2);
	ck_assert_uint_eq(depth(1), 100 + 400 / 2);
	ck_assert_uint_eq(depth(0), 100 + 400 + 200 / 2);
	/* without a lease, too */
	used(200, 6);
	ck_assert_uint_eq(depth(2), 200 / 2);
	ck_assert_uint_eq(depth(1), 200 + 100 / 2);
	ck_assert_uint_eq(depth(0), 200 + 100 + 400 / 2);
}
END_TEST

/* A request that is never dispatched leaves it where it was. */
START_TEST(pinned_in_vain)
{
	uint64_t lease;

	three_prompts();
	lease = asked(100, 4);
	ck_assert_uint_eq(depth(1), 100 + 400 + 200 / 2);
	ck_assert_uint_eq(depth(2), 100 + 400 / 2);
	region_sound();
	give_up(lease, 5);
	ck_assert_uint_eq(depth(0), 400 + 200 + 100 / 2);
	ck_assert_uint_eq(depth(1), 400 + 200 / 2);
	ck_assert_uint_eq(depth(2), 400 / 2);
}
END_TEST

static void
by_capacity(uint64_t tokens)
{
	struct kvr_worker f = { .size = sizeof(f) };

	ck_assert_int_eq(kvr_worker_get(k, id[0], &f), KVR_OK);
	f.retain = KVR_RETAIN_CAPACITY;
	f.capacity_tokens = tokens;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
}

/* 200 too many: a prompt of 100 leaves, and the end of one of 200. */
START_TEST(evicted_and_trimmed)
{
	by_capacity(500);
	three_prompts();
	ck_assert_uint_eq(worker_stats(0).held_blocks, 500);
	ck_assert_uint_eq(depth(1), 400 / 2);
	ck_assert_uint_eq(depth(0), 400 + 100 / 2);
	region_sound();
	/* a trimmed prompt is whole again if it is used */
	used(200, 4);
	ck_assert_uint_eq(depth(1), 200 / 2);
	ck_assert_uint_eq(depth(0), 200 + 300 / 2);
}
END_TEST

/* Where a path is split, its parts are as old as it was. */
START_TEST(split)
{
	say_long(100, 100, 0);
	ck_assert_uint_eq(observed(0, 1), 100);
	used(300, 2);
	say_long(90, 60, 1);
	ck_assert_uint_eq(observed(1, 3), 90);
	ck_assert_uint_eq(depth(0), 300 + 100 / 2);
	ck_assert_uint_eq(depth(1), 300 / 2);
	/* 60 of it in front: by way of the fork */
	say_long(60, 60, 0);
	ck_assert_uint_eq(observed(0, 4), 60);
	ck_assert_uint_eq(depth(2), 60 / 2);
	ck_assert_uint_eq(depth(1), 60 + 300 / 2);
	ck_assert_uint_eq(depth(0), 60 + 300 + 40 / 2);
}
END_TEST

/* An answer, whose blocks have no hashes, is released before its prompt. */
START_TEST(answers)
{
	uint64_t lease;

	by_capacity(10000);
	used(200, 1);
	lease = asked(100, 2);
	commit(lease, 2);
	/* the last of 61 is not computed */
	ck_assert_int_eq(kvr_lease_output(k, lease, 61, 2, 0), KVR_OK);
	ck_assert_uint_eq(depth(0), 100 + 61 + 200 / 2);
	finish(lease, 3);
	ck_assert_uint_eq(slot_at(k, id_slot(id[0]))->anonymous, 60);
	ck_assert_uint_eq(depth(0), 100 + 60 + 200 / 2);
	ck_assert_uint_eq(depth_at(200), 100 + 60 / 2);
	ck_assert_uint_eq(depth_at(260), 100 / 2);
	region_sound();
	by_capacity(130); /* the 200, and half of the answer */
	used(1, 4);
	ck_assert_uint_eq(depth(0), 100 + 1 + 29 / 2);
}
END_TEST

/* --------------------------------------------------------- it is empty --- */

START_TEST(cleared)
{
	three_prompts();
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_assert_uint_eq(mine()->n, 0);
	ck_assert_uint_eq(depth_at(0), 0);
	region_sound();
	used(100, 4);
	ck_assert_uint_eq(depth(0), 100 / 2);
}
END_TEST

START_TEST(expired)
{
	three_prompts();
	(void)expire(2 + TTL, UINT32_MAX);
	ck_assert_uint_eq(depth(0), 400 / 2);
	(void)expire(3 + TTL, UINT32_MAX);
	ck_assert_uint_eq(depth_at(0), 0);
	ck_assert_uint_eq(depth_at(UINT64_MAX), 0);
}
END_TEST

/* Blocks of an earlier incarnation, or that end late, are not in the next. */
START_TEST(reset)
{
	uint64_t lease;

	three_prompts();
	lease = asked(100, 4);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_assert_uint_eq(mine()->n, 0);
	ck_assert_uint_eq(depth_at(0), 0);
	used(50, 5);
	region_sound();
	commit(lease, 6);
	finish(lease, 7);
	region_sound();
	(void)expire(8, UINT32_MAX);
	ck_assert_uint_eq(depth(0), 50 / 2);
}
END_TEST

/* ------------------------------------------------------- many, exactly --- */

enum { ITEMS = 4096 };

/* The releases, in order, with the blocks of each that are still idle. */
static struct item {
	uint64_t when, blocks;
} items[ITEMS];
static uint32_t n_items, oldest; /* those before it were evicted */

static void
release(uint64_t blocks)
{
	struct item *last = &items[n_items++];

	must(n_items <= ITEMS);
	last->when = stack_push(k, 0, blocks);
	last->blocks = blocks;
}

static uint64_t
take(struct item *i)
{
	uint64_t blocks = i->blocks;

	stack_add(k, 0, i->when, -blocks);
	i->blocks = 0;
	return blocks;
}

/*
 * An item is used again; or a new one is, and the items released first make
 * room for it. `active` blocks are in use all the time.
 */
static void
item_step(uint64_t idle_most, uint64_t longest, uint64_t *sum)
{
	uint32_t i = oldest + pick(n_items - oldest + 1);
	uint64_t blocks = 1 + pick(pick(10) == 0 ? (uint32_t)longest : 8);

	if (i < n_items && items[i].blocks > 0) {
		release(take(&items[i]));
		return;
	}
	release(blocks);
	for (*sum += blocks; *sum > idle_most; oldest++)
		*sum -= take(&items[oldest]);
}

/* Each depth is right within an eighth and half of one release. */
static void
ck_items(uint64_t active, uint64_t longest)
{
	uint64_t exact = active, is, half, slack;
	uint32_t i;

	for (i = n_items; i > oldest; i--) {
		const struct item *at = &items[i - 1];

		half = at->blocks / 2;
		is = stack_depth(k, 0, at->when);
		slack = (exact + half) / 8 + longest / 2 + 16;
		if (at->blocks > 0 && !(is <= exact + half + slack &&
		    is + slack >= exact + half))
			ck_abort_msg("%" PRIu64 " is %" PRIu64 ", must be %"
			    PRIu64 " (KVR_SEED=%" PRIu64 ")", at->when, is,
			    exact + half, seed);
		exact += at->blocks;
	}
}

/* Makes room for more releases; idle items stay as they are. */
static void
items_close_up(void)
{
	uint32_t from, to = 0;

	for (from = oldest; from < n_items; from++)
		if (items[from].blocks > 0)
			items[to++] = items[from];
	n_items = to;
	oldest = 0;
}

START_TEST(joined_by_chance)
{
	static const uint64_t most[] = { 100, 3000, 10000, 10000 };
	static const uint64_t longest[] = { 8, 300, 300, 8 };
	uint64_t i, n = test_amount(40000), sum = 0, active;

	by_chance();
	n_items = oldest = 0;
	active = slot_at(k, 0)->active = _i == 3 ? 2000 : pick(60);
	for (i = 0; i < n; i++) {
		if (n_items == ITEMS)
			items_close_up();
		item_step(most[_i], longest[_i], &sum);
		if (i % 64 == 0)
			ck_items(active, longest[_i]);
		must(mine()->n <= EPOCHS);
	}
	for (i = 1; i < mine()->n; i++)
		must(mine()->begin[i] > mine()->begin[i - 1]);
	slot_at(k, 0)->active = 0;
	stack_empty(k, 0);
}
END_TEST

/* One at a time: to 30,000 within an eighth, and to any number a quarter. */
START_TEST(joined_in_order)
{
	static const struct scene {
		uint64_t blocks, share;
	} scenes[] = { { 1 << 13, 10 }, { 1 << 15, 8 }, { 1 << 20, 4 } };
	const struct scene *x = &scenes[_i];
	uint64_t i, is, slack;

	for (i = 0; i < x->blocks; i++)
		(void)stack_push(k, 0, 1);
	for (i = 0; i < x->blocks; i += 1 + i / 100) {
		is = stack_depth(k, 0, x->blocks - 1 - i);
		slack = i / x->share + 16;
		if (!(is <= i + slack && is + slack >= i))
			ck_abort_msg("%" PRIu64 " is %" PRIu64, i, is);
	}
	stack_empty(k, 0);
}
END_TEST

/* -------------------------------------------------------------- damage --- */

/* A look ends, the damage is found, and can be repaired. */
static void
ck_mended(void)
{
	static const uint64_t when[] = { 0, 1, 300, UINT64_MAX };
	uint32_t i;

	for (i = 0; i < 4; i++)
		(void)depth_at(when[i]);
	ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
	ck_assert_int_eq(check_mend(k), KVR_OK);
	region_sound();
	/* all of one age */
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(depth(i), 700 / 2);
	used(100, k->region->clock + 1);
	ck_assert_uint_eq(depth(2), 100 / 2);
	region_sound();
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	three_prompts();
}

START_TEST(damaged)
{
	three_prompts();
	mine()->n = EPOCHS + 1;
	ck_mended();
	mine()->n = UINT32_MAX;
	ck_mended();
	mine()->n = 0;
	ck_mended();
	mine()->n = 2;
	ck_mended();
	mine()->begin[1] = UINT64_MAX;
	ck_mended();
	mine()->begin[0] = UINT64_MAX;
	ck_mended();
	mine()->idle[0]++;
	ck_mended();
	mine()->idle[2] = 0;
	ck_mended();
	memset(mine()->idle, 0xff, sizeof(mine()->idle));
	ck_mended();
}
END_TEST

/* Any content of the stack can be used. */
START_TEST(any_bytes)
{
	uint64_t i, n = test_amount(3000), word;

	by_chance();
	for (i = 0; i < n; i++) {
		for (word = 0; word < EPOCHS; word++) {
			mine()->begin[word] = plain_random(&chance) >>
			    pick(64);
			mine()->idle[word] = plain_random(&chance) >> pick(64);
		}
		mine()->n = pick(2) == 0 ? pick(80)
		    : (uint32_t)plain_random(&chance);
		used(1 + pick(100), (int64_t)i);
		(void)depth_at(plain_random(&chance) >> pick(64));
	}
	(void)check_mend(k);
}
END_TEST

Suite *suite_stack(void);

Suite *
suite_stack(void)
{
	Suite *s = suite_create("stack");
	TCase *t = small_case(s, "depths");

	tcase_add_test(t, nothing_is_idle);
	tcase_add_test(t, released_later);
	tcase_add_test(t, few_are_of_one_age);
	tcase_add_test(t, used_again);
	tcase_add_test(t, pinned_in_vain);
	tcase_add_test(t, evicted_and_trimmed);
	tcase_add_test(t, split);
	tcase_add_test(t, answers);
	t = small_case(s, "empty");
	tcase_add_test(t, cleared);
	tcase_add_test(t, expired);
	tcase_add_test(t, reset);
	t = small_case(s, "epochs");
	tcase_add_loop_test(t, joined_by_chance, 0, 4);
	tcase_add_loop_test(t, joined_in_order, 0, 3);
	t = small_case(s, "damage");
	tcase_add_test(t, damaged);
	tcase_add_test(t, any_bytes);
	return s;
}
