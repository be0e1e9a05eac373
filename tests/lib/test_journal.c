/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_journal.c - the ring: records are read whole, in order, or reported as
 * lost, after any death, sleep or damage.
 */
#include "check.h"
#include "journal.h"
#include "mix.h"

#include "inner.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { RING = KVR_JOURNAL_MIN, MOST = RING / 32, SHORT = CELL };
enum { MS = 1000000, AT = 5 };

static uint64_t position, hashes[MOST + 1];
static struct kvr_record got;

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 512 << 10;
	o.journal_bytes = RING;
	region_of(&o);
	position = journal_head(k);
}

/* ---------------------------------------------------- numbered records --- */

static uint64_t
hash_of(uint64_t number, uint32_t i)
{
	return mix(number << 32 | i);
}

/* Takes a place for a record with fields that follow from its number. */
static struct journal_place
begun(uint64_t number, uint32_t kind, uint32_t n)
{
	struct kvr_record r = { .kind = kind, .lease = number, .hashes = n,
		.at = AT, .owner = mix(number), .blocks = n };
	struct journal_place place;

	journal_begin(k, &r, &place);
	return place;
}

static void
done(uint64_t number, const struct journal_place *place)
{
	static uint64_t chain[MOST];
	uint32_t i;

	for (i = 0; i < place->hashes; i++)
		chain[i] = hash_of(number, i);
	journal_end(k, place, chain);
}

static void
put(uint64_t number, uint32_t kind, uint32_t n)
{
	struct journal_place place = begun(number, kind, n);

	done(number, &place);
}

/* Reads one, which must be one record and nothing else. */
static int
take(int64_t now)
{
	int error = journal_read(k, &position, now, &got, hashes, MOST);
	uint32_t i;

	if (error != KVR_OK)
		return error;
	must(got.owner == mix(got.lease) && got.hashes == got.blocks);
	for (i = 0; i < got.hashes; i++)
		must(hashes[i] == hash_of(got.lease, i));
	return error;
}

static uint32_t
some_kind(void)
{
	return KVR_RECORD_OPEN + pick(KVR_RECORD_CLEAR);
}

/* ---------------------------------------------------------- one writer --- */

START_TEST(kinds_keep_their_fields)
{
	struct kvr_record r = { .at = 2, .lease = 3, .owner = 4, .worker = 5,
		.blocks = 6, .first_block = 7, .parent = 8, .units = 9,
		.overlap_tokens = 10, .affinity = 11, .affinity_ttl = 12,
		.new_worker = 13, .overlap_blocks = 14, .stage = 15,
		.flags = 16, .share = 23, .tenant = 24,
		.report = { .prompt_tokens = 17, .cached_tokens = 18,
		.completion_tokens = 19, .kind = 20, .flags = 21,
		.endpoint = 22 } };
	const uint32_t kind = (uint32_t)_i;
	const uint64_t chain[] = { 31, 32, 33 };
	struct journal_place place;

	r.kind = kind;
	r.hashes = 3;
	journal_begin(k, &r, &place);
	journal_end(k, &place, chain);
	ck_assert_int_eq(journal_read(k, &position, 2, &got, hashes, 2),
	    KVR_OK);
	ck_assert_uint_eq(position, journal_head(k));
	ck_assert_uint_eq(got.position, place.position);
	ck_assert(got.kind == kind && got.hashes == 3 && got.at == 2 &&
	    got.lease == 3 && got.owner == 4 && got.worker == 5 &&
	    got.blocks == 6 && got.first_block == 7);
	ck_assert(hashes[0] == 31 && hashes[1] == 32 && hashes[2] == 0);
	if (kind == KVR_RECORD_FINISH)
		ck_assert(got.report.prompt_tokens == 17 &&
		    got.report.cached_tokens == 18 &&
		    got.report.completion_tokens == 19 &&
		    got.report.kind == 20 && got.report.flags == 21 &&
		    got.report.endpoint == 22);
	if (kind == KVR_RECORD_OPEN || kind == KVR_RECORD_EXTEND ||
	    kind == KVR_RECORD_OBSERVE || kind == KVR_RECORD_BIND ||
	    kind == KVR_RECORD_RESET)
		ck_assert(got.parent == 8 && got.units == 9 &&
		    got.overlap_tokens == 10 && got.affinity == 11 &&
		    got.affinity_ttl == 12 && got.overlap_blocks == 14 &&
		    got.stage == 15 && got.flags == 16 && got.share == 23);
	/* one word for both */
	ck_assert_uint_eq(got.new_worker, kind == KVR_RECORD_RESET ? 13 : 0);
	if (kind == KVR_RECORD_OPEN || kind == KVR_RECORD_EXTEND ||
	    kind == KVR_RECORD_OBSERVE)
		ck_assert_uint_eq(got.tenant, 24);
	else if (kind == KVR_RECORD_RESET)
		ck_assert_uint_eq(got.tenant, 0);
}
END_TEST

START_TEST(lengths_go_round)
{
	uint64_t i, rounds = test_amount(4000);

	by_chance();
	for (i = 1; i <= rounds; i++) {
		put(i, some_kind(), pick(8) == 0 ? pick(1900) : pick(20));
		must(take(AT) == KVR_OK && got.lease == i);
		must(take(AT) == KVR_EAGAIN);
	}
}
END_TEST

START_TEST(long_chains_are_cut)
{
	struct kvr_record r = { .kind = KVR_RECORD_OPEN,
		.hashes = UINT32_MAX };
	static uint64_t chain[MOST];
	struct journal_place place;

	journal_begin(k, &r, &place);
	ck_assert_uint_eq(place.hashes, MOST - 2 * CELL / 8);
	journal_end(k, &place, chain);
	ck_assert_int_eq(journal_read(k, &position, AT, &got, hashes, MOST),
	    KVR_OK);
	ck_assert_uint_eq(got.hashes, place.hashes);
	ck_assert_uint_eq(position - got.position, RING / 4);
}
END_TEST

START_TEST(lost_after_a_lap)
{
	uint64_t first = position, i;

	for (i = 0; i < RING / SHORT; i++)
		put(i, KVR_RECORD_COMMIT, 0);
	ck_assert_int_eq(take(AT), KVR_OK); /* the oldest is still there */
	ck_assert_uint_eq(got.lease, 0);
	position = first;
	put(i, KVR_RECORD_COMMIT, 0);
	ck_assert_int_eq(take(AT), KVR_EOVERRUN);
	ck_assert_uint_eq(position, journal_head(k));
	ck_assert_int_eq(take(AT), KVR_EAGAIN);
	put(7, KVR_RECORD_COMMIT, 0);
	ck_assert_int_eq(take(AT), KVR_OK);
	ck_assert_uint_eq(got.lease, 7);
}
END_TEST

START_TEST(no_position_is_trusted)
{
	uint64_t head, i;

	by_chance();
	for (i = 0; i < 50; i++)
		put(i, some_kind(), pick(40));
	head = journal_head(k);
	for (i = 0; i < 10000; i++) {
		position = pick(2) == 0 ? pick((uint32_t)head + 200)
		    : plain_random(&chance);
		if (position == head)
			continue;
		if (take(AT + 200 * MS) != KVR_OK)
			must(position == head);
	}
}
END_TEST

/* ------------------------------------------------------- dead and late --- */

START_TEST(dead_writers_are_skipped)
{
	struct journal_place place;
	uint64_t before = position;

	(void)begun(1, KVR_RECORD_OPEN, 100);
	put(2, KVR_RECORD_COMMIT, 0);
	ck_assert_int_eq(take(0), KVR_EAGAIN);
	ck_assert_int_eq(take(AT + 100 * MS - 1), KVR_EAGAIN);
	ck_assert_uint_eq(position, before);
	ck_assert_int_eq(take(AT + 100 * MS), KVR_EOVERRUN);
	ck_assert_int_eq(take(AT), KVR_OK);
	ck_assert_uint_eq(got.lease, 2);
	/* also one of a clock that has begun anew since */
	(void)begun(1, KVR_RECORD_OPEN, 100);
	ck_assert_int_eq(take(AT - 100 * MS + 1), KVR_EAGAIN);
	ck_assert_int_eq(take(AT - 100 * MS), KVR_EOVERRUN);
	/* one that is only slow is waited for */
	place = begun(3, KVR_RECORD_OPEN, 100);
	ck_assert_int_eq(take(AT), KVR_EAGAIN);
	done(3, &place);
	ck_assert_int_eq(take(AT), KVR_OK);
	ck_assert_uint_eq(got.lease, 3);
}
END_TEST

/* The writer died after announcing its place, before head moved. */
START_TEST(died_before_the_head_moved)
{
	uint64_t head = journal_head(k);

	(void)begun(1, KVR_RECORD_OPEN, 100);
	atomic_store(&k->region->journal_head, head);
	ck_assert_int_eq(take(AT), KVR_EAGAIN);
	put(2, KVR_RECORD_COMMIT, 0);
	ck_assert_int_eq(take(AT), KVR_OK);
	ck_assert_uint_eq(got.lease, 2);
	region_sound();
}
END_TEST

/* Writers that slept for a lap overwrite newer records. */
START_TEST(late_writers_show_nothing_torn)
{
	struct journal_place late;
	uint64_t i = 0, lost = 0, rounds = test_amount(300), sleeper;
	int error;

	by_chance();
	while (rounds-- > 0) {
		sleeper = ++i;
		late = begun(sleeper, KVR_RECORD_OPEN, pick(1500));
		while (journal_head(k) - late.position < RING / 2 + pick(RING))
			put(++i, some_kind(), pick(200));
		position = journal_head(k);
		while (journal_head(k) - position < RING / 2)
			put(++i, some_kind(), pick(200));
		done(sleeper, &late);
		while (position != journal_head(k)) {
			error = take(AT);
			if (error == KVR_EAGAIN)
				must(take(AT + 100 * MS) == KVR_EOVERRUN);
			lost += error != KVR_OK;
		}
	}
	ck_assert_uint_gt(lost, 0);
}
END_TEST

/* --------------------------------------------------------------- damage --- */

START_TEST(damage_is_bounded)
{
	uint64_t i, rounds = test_amount(3000), head;

	by_chance();
	for (i = 0; i < rounds; i++) {
		uint64_t *word = &k->journal[pick(RING / 8)];

		put(i, some_kind(), pick(60));
		*word = pick(2) == 0 ? pick(100) : plain_random(&chance);
		if (pick(50) == 0)
			atomic_store(&k->region->journal_head,
			    plain_random(&chance));
		if (pick(50) == 0)
			atomic_store(&k->region->journal_reserved,
			    plain_random(&chance));
		head = journal_head(k);
		position = head - CELL * (uint64_t)pick(1100);
		if (journal_read(k, &position, AT, &got, hashes, MOST) ==
		    KVR_EAGAIN)
			must(journal_read(k, &position, AT + 200 * MS, &got,
			    hashes, MOST) != KVR_OK);
		must(position - head <= RING || head - position <= RING);
	}
	journal_recover(k);
}
END_TEST

/* A head that the next record would carry beyond the end of numbers. */
START_TEST(heads_stay_below_the_last)
{
	static const uint64_t heads[] = { 0, 1, JOURNAL_LAST,
		UINT64_MAX / 2 + 1, UINT64_MAX - 63, UINT64_MAX };
	size_t i;

	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		atomic_store(&k->region->journal_head, heads[i]);
		atomic_store(&k->region->journal_reserved, heads[i]);
		ck_assert(!journal_sound(k));
		journal_recover(k);
		journal_clear(k);
		ck_assert(journal_sound(k));
		ck_assert_uint_eq(journal_head(k), JOURNAL_FIRST + CELL);
	}
}
END_TEST

/* A length that a digest confirms, and that no call would write. */
START_TEST(lengths_are_bounded)
{
	uint64_t at = journal_head(k), *word, numbers[16] = { 0 };
	struct journal_place place = begun(1, KVR_RECORD_OPEN, 4);
	uint32_t n;

	done(1, &place);
	word = &k->journal[at % RING / 8];
	for (n = MOST - 16; n < MOST - 16 + 2; n++) {
		memcpy(numbers, word, sizeof(numbers));
		memcpy((char *)&numbers[2] + 4, &n, sizeof(n));
		numbers[1] = XXH3_64bits_withSeed(numbers + 2, 14 * 8, at);
		memcpy(word, numbers, sizeof(numbers));
		position = at;
		/* more than has been written, or than can be */
		ck_assert_int_eq(journal_read(k, &position, AT, &got, hashes,
		    MOST), KVR_EOVERRUN);
		ck_assert_uint_eq(position, journal_head(k));
	}
}
END_TEST

static void
wrong_heads(uint64_t head, uint64_t reserved)
{
	atomic_store(&k->region->journal_head, head);
	atomic_store(&k->region->journal_reserved, reserved);
	ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
	ck_assert_int_eq(check_mend(k), KVR_OK);
	region_sound();
	position = journal_head(k);
	put(1, KVR_RECORD_OPEN, 9);
	ck_assert_int_eq(take(AT), KVR_OK);
}

START_TEST(heads_are_checked)
{
	wrong_heads(0, 0);
	wrong_heads(CELL + 8, CELL + 8);
	wrong_heads(10 * CELL, 9 * CELL);
	wrong_heads(10 * CELL, 10 * CELL + 8);
	wrong_heads(10 * CELL, 11 * CELL + RING / 4);
	wrong_heads(UINT64_MAX, 0);
}
END_TEST

Suite *suite_journal(void);

Suite *
suite_journal(void)
{
	Suite *s = suite_create("journal");
	TCase *t = tcase_create("journal");

	tcase_add_checked_fixture(t, setup, region_end);
	tcase_add_loop_test(t, kinds_keep_their_fields, KVR_RECORD_OPEN,
	    KVR_RECORD_CLEAR + 1);
	tcase_add_test(t, lengths_go_round);
	tcase_add_test(t, long_chains_are_cut);
	tcase_add_test(t, lost_after_a_lap);
	tcase_add_test(t, no_position_is_trusted);
	tcase_add_test(t, dead_writers_are_skipped);
	tcase_add_test(t, died_before_the_head_moved);
	tcase_add_test(t, late_writers_show_nothing_torn);
	tcase_add_test(t, damage_is_bounded);
	tcase_add_test(t, heads_stay_below_the_last);
	tcase_add_test(t, lengths_are_bounded);
	tcase_add_test(t, heads_are_checked);
	suite_add_tcase(s, t);
	return s;
}
