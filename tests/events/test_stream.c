/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stream.c - batches in order: gaps, duplicates, restarts, replays; and
 * an engine with a bad line, random but known, compared with the output.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "rng.h"
#include "stream.h"

static struct stream_options options;
static struct stream *s;

static void
setup(void)
{
	options = (struct stream_options){ .replay = true };
	s = NULL;
	alloc_reset();
}

static void
teardown(void)
{
	alloc_reset();
	stream_free(s);
}

static void
made(bool replay)
{
	options.replay = replay;
	s = stream_new(&options);
	ck_assert_ptr_nonnull(s);
}

/* A batch's contents: which life of the engine, and its number. */
static size_t
payload(char out[32], int life, uint64_t seq)
{
	return (size_t)snprintf(out, 32, "%d:%llu", life,
	    (unsigned long long)seq);
}

static void
live(int life, uint64_t seq)
{
	char bytes[32];
	const size_t n = payload(bytes, life, seq);

	stream_live(s, seq, bytes, n);
}

static void
replayed(int life, uint64_t seq)
{
	char bytes[32];
	const size_t n = payload(bytes, life, seq);

	stream_replayed(s, seq, bytes, n);
}

/* All that comes out, as "1:5 lost(6-7) restarted". */
static void
ck_out(const char *want)
{
	struct stream_out out;
	char text[512] = "";
	size_t n = 0;

	while (stream_next(s, &out)) {
		if (out.what == STREAM_BATCH)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
			    "%.*s ", (int)out.n, (const char *)out.bytes);
		else if (out.what == STREAM_LOST)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
			    "lost(%d-%d) ", (int)out.seq, (int)out.last);
		else
			n += (size_t)snprintf(text + n, sizeof(text) - n,
			    "restarted ");
	}
	if (n > 0)
		text[n - 1] = '\0';
	ck_assert_str_eq(text, want);
}

static void
asked(uint64_t want)
{
	uint64_t from;

	ck_assert(stream_wants(s, &from));
	ck_assert_uint_eq(from, want);
	stream_asked(s);
	ck_assert(!stream_wants(s, &from));
	ck_assert(stream_state(s).waiting);
}

static void
ck_quiet(void)
{
	uint64_t from;

	ck_assert(!stream_wants(s, &from));
	ck_assert(!stream_state(s).waiting);
}

/* Past the replay of the start; the last batch is 1:4. */
static void
at_4(void)
{
	uint64_t seq;

	if (options.replay) {
		asked(0);
		stream_replay_end(s, true);
	}
	for (seq = 0; seq <= 4; seq++)
		live(1, seq);
	ck_out("1:0 1:1 1:2 1:3 1:4");
	ck_assert(stream_state(s).complete);
	ck_quiet();
}

START_TEST(from_the_first_batch)
{
	made(false);
	at_4();
	ck_assert_uint_eq(stream_state(s).last, 4);
	ck_assert_uint_eq(stream_state(s).digest, stream_digest("1:4", 3));
	ck_assert_uint_eq(stream_state(s).counts.batches, 5);
}
END_TEST

/* A late joiner first gets the batches that the engine kept; live ones wait. */
START_TEST(joins_late)
{
	made(true);
	asked(0);
	live(1, 7);
	live(1, 8);
	ck_out("");
	replayed(1, 5);
	replayed(1, 6);
	ck_out("lost(0-4) 1:5 1:6");
	replayed(1, 7);
	stream_replay_end(s, true);
	ck_out("1:7 1:8");
	ck_quiet();
	ck_assert(!stream_state(s).complete);
	ck_assert_uint_eq(stream_state(s).counts.lost, 5);
	ck_assert_uint_eq(stream_state(s).held, 0);
}
END_TEST

START_TEST(joins_late_without_replay)
{
	made(false);
	live(1, 3);
	ck_out("lost(0-2) 1:3");
	ck_assert(!stream_state(s).complete);
	stream_cleared(s);
	ck_assert(stream_state(s).complete);
}
END_TEST

/* The last loss is not forgotten because an earlier batch has cleared. */
START_TEST(a_loss_behind_a_cleared_batch)
{
	struct stream_out out;

	made(false);
	live(1, 0);
	live(1, 2);
	ck_assert(stream_next(s, &out) && out.what == STREAM_BATCH);
	stream_cleared(s);
	ck_out("lost(1-1) 1:2");
	ck_assert(!stream_state(s).complete);
}
END_TEST

START_TEST(a_gap_is_replayed)
{
	made(true);
	at_4();
	live(1, 7);
	live(1, 8);
	ck_out("");
	asked(5);
	live(1, 9);
	replayed(1, 5);
	replayed(1, 6);
	replayed(1, 7);
	replayed(1, 8);
	ck_out("1:5 1:6 1:7 1:8");
	stream_replay_end(s, true);
	ck_out("1:9");
	ck_assert(stream_state(s).complete);
	ck_assert_uint_eq(stream_state(s).counts.gaps, 1);
	ck_assert_uint_eq(stream_state(s).counts.lost, 0);
}
END_TEST

START_TEST(a_gap_without_replay_is_a_loss)
{
	made(false);
	at_4();
	live(1, 7);
	ck_out("lost(5-6) 1:7");
	ck_assert(!stream_state(s).complete);
}
END_TEST

START_TEST(a_hole_in_the_replay)
{
	made(true);
	at_4();
	live(1, 9);
	asked(5);
	replayed(1, 5);
	replayed(1, 8);
	stream_replay_end(s, true);
	ck_out("1:5 lost(6-7) 1:8 1:9");
}
END_TEST

/* It ends early: asked again while it brings anything, and then no more. */
START_TEST(a_short_replay_is_asked_for_again)
{
	made(true);
	at_4();
	live(1, 9);
	asked(5);
	replayed(1, 5);
	stream_replay_end(s, false);
	ck_out("1:5");
	asked(6);
	stream_replay_end(s, false);
	ck_out("lost(6-8) 1:9");
	ck_quiet();
}
END_TEST

/* A stream that ends, or forgets waiting batches, leaves room for others. */
START_TEST(room_that_streams_share)
{
	static struct stream_room room;
	struct stream *other;

	room = (struct stream_room){ 0, 200 };
	options.room = &room;
	made(true);
	other = s;
	made(true);
	live(1, 7);
	ck_assert_uint_gt(room.bytes, 0);
	ck_assert_uint_eq(room.bytes, stream_state(s).held);
	stream_live(other, 3, "0123456789", 10);
	stream_live(other, 4, "0123456789", 10);
	stream_live(other, 5, "0123456789", 10);
	ck_assert_uint_le(room.bytes, room.most);
	ck_assert_uint_gt(stream_state(other).counts.refused, 0);
	stream_free(other);
	ck_assert_uint_eq(room.bytes, stream_state(s).held);
	asked(0);
	stream_replay_end(s, true);
	ck_out("lost(0-6) 1:7");
	ck_assert_uint_eq(room.bytes, 0);
	live(1, 9);
	ck_assert_uint_gt(room.bytes, 0);
	stream_reconnected(s);
	ck_assert_uint_eq(room.bytes, 0);
}
END_TEST

START_TEST(duplicates)
{
	made(false);
	at_4();
	live(1, 4);
	live(1, 0);
	ck_out("");
	ck_assert_uint_eq(stream_state(s).counts.duplicates, 2);
	live(1, 5);
	ck_out("1:5");
}
END_TEST

/* While it waits: the replay was faster, or the same comes twice. */
START_TEST(duplicates_while_it_waits)
{
	made(true);
	at_4();
	live(1, 6);
	live(1, 6);
	asked(5);
	replayed(1, 5);
	replayed(1, 5);
	replayed(1, 6);
	replayed(1, 7);
	stream_replay_end(s, true);
	live(1, 7);
	ck_out("1:5 1:6 1:7");
	ck_assert_uint_eq(stream_state(s).counts.duplicates, 2);
	ck_assert_uint_eq(stream_state(s).counts.restarts, 0);
}
END_TEST

START_TEST(a_number_goes_back)
{
	made(_i);
	at_4();
	live(2, 0);
	ck_out("restarted 2:0");
	ck_assert(stream_state(s).complete);
	live(3, 0);
	live(3, 1);
	ck_out("restarted 3:0 3:1");
	ck_assert_uint_eq(stream_state(s).counts.restarts, 2);
}
END_TEST

START_TEST(back_to_the_middle)
{
	made(true);
	at_4();
	live(2, 3);
	ck_out("restarted");
	asked(0);
	replayed(2, 0);
	replayed(2, 1);
	replayed(2, 2);
	replayed(2, 3);
	stream_replay_end(s, true);
	ck_out("2:0 2:1 2:2 2:3");
	ck_assert(stream_state(s).complete);
}
END_TEST

/* The batches that waited for the replay were the old engine's. */
START_TEST(back_while_it_waits)
{
	made(true);
	at_4();
	live(1, 8);
	live(1, 9);
	asked(5);
	live(2, 0);
	replayed(1, 5);
	stream_replay_end(s, true);
	live(2, 1);
	ck_out("restarted 2:0 2:1");
	ck_quiet();
}
END_TEST

START_TEST(the_same_engine_after_a_reconnect)
{
	made(true);
	at_4();
	stream_reconnected(s);
	asked(4);
	live(1, 6);
	replayed(1, 4);
	replayed(1, 5);
	replayed(1, 6);
	stream_replay_end(s, true);
	ck_out("1:5 1:6");
	ck_assert_uint_eq(stream_state(s).counts.restarts, 0);
}
END_TEST

/* It has come further than the last one did: only the contents differ. */
START_TEST(another_engine_overtook_meanwhile)
{
	made(true);
	at_4();
	stream_reconnected(s);
	asked(4);
	live(2, 6);
	replayed(2, 4);
	replayed(2, 5);
	ck_out("restarted");
	asked(0);
	stream_replayed(s, 0, "2:0", 3);
	replayed(2, 1);
	replayed(2, 2);
	replayed(2, 3);
	replayed(2, 4);
	replayed(2, 5);
	stream_replay_end(s, true);
	ck_out("2:0 2:1 2:2 2:3 2:4 2:5 2:6");
	ck_assert(stream_state(s).complete);
}
END_TEST

/* It has not come so far, or no longer keeps the batch to compare. */
START_TEST(nothing_to_compare_after_a_reconnect)
{
	made(true);
	at_4();
	stream_reconnected(s);
	asked(4);
	if (_i == 1)
		replayed(1, 6);
	else
		stream_replay_end(s, true);
	ck_out("restarted");
	asked(0);
	if (_i == 1) {
		replayed(1, 6);
		stream_replay_end(s, true);
		ck_out("lost(0-5) 1:6");
	} else {
		stream_replay_end(s, true);
		live(2, 0);
		ck_out("2:0");
	}
}
END_TEST

/* The number after the last one shows that it is the same engine. */
START_TEST(reconnect_without_a_replay)
{
	made(_i >= 3);
	at_4();
	stream_reconnected(s);
	if (_i >= 3) {
		asked(4);
		stream_replay_end(s, false);
	}
	switch (_i % 3) {
	case 0:
		live(1, 5);
		live(1, 7);
		ck_out(_i == 0 ? "1:5 lost(6-6) 1:7" : "1:5");
		break;
	case 1:
		live(2, 9);
		ck_out("restarted lost(0-8) 2:9");
		break;
	default:
		live(2, 1);
		ck_out(_i == 2 ? "restarted lost(0-0) 2:1" : "restarted");
	}
}
END_TEST

/* The caller has the digest, so that it gets the last batch again. */
START_TEST(the_caller_compares)
{
	made(true);
	stream_rejoin(s, 5, true);
	live(1, 6);
	asked(4);
	replayed(1, 4);
	replayed(1, 5);
	replayed(1, 6);
	stream_replay_end(s, true);
	live(1, 7);
	ck_out("1:4 1:5 1:6 1:7");
	ck_assert(stream_state(s).complete);
	ck_assert_uint_eq(stream_state(s).counts.lost, 0);
}
END_TEST

START_TEST(the_caller_compares_the_first_batch)
{
	made(true);
	stream_rejoin(s, 1, true);
	asked(0);
	replayed(1, 0);
	replayed(1, 1);
	stream_replay_end(s, true);
	ck_out("1:0 1:1");
}
END_TEST

/* The engine keeps older batches, has not come so far, or does not answer. */
START_TEST(nothing_for_the_caller_to_compare)
{
	made(true);
	stream_rejoin(s, 5, true);
	asked(4);
	if (_i == 0)
		replayed(1, 7);
	stream_replay_end(s, _i < 2);
	if (_i == 1)
		asked(0);
	if (_i == 1)
		stream_replay_end(s, true);
	live(1, _i == 1 ? 0 : 8);
	ck_out(_i == 0 ? "lost(5-6) 1:7 1:8" : _i == 1 ? "restarted 1:0" : "");
	if (_i == 2) {
		asked(4);
		stream_replay_end(s, false);
		ck_out("lost(5-7) 1:8");
	}
}
END_TEST

/* The caller still has to compare: the stream has no digest of its own. */
START_TEST(a_replay_that_was_given_up)
{
	made(true);
	stream_rejoin(s, 5, true);
	asked(4);
	stream_replay_end(s, false);
	ck_quiet();
	if (_i == 0)
		stream_reconnected(s);
	else
		live(1, 6);
	asked(4);
	replayed(1, 4);
	replayed(1, 5);
	replayed(1, 6);
	stream_replay_end(s, true);
	ck_out("1:4 1:5 1:6");
	ck_assert(stream_state(s).complete);
	ck_assert_uint_eq(stream_state(s).counts.restarts, 0);
	/* now it has one */
	live(1, 8);
	asked(7);
	stream_reconnected(s);
	asked(6);
	replayed(2, 6);
	ck_out("restarted");
}
END_TEST

/* A restart that was seen meanwhile needs no digest. */
START_TEST(a_replay_that_was_given_up_and_a_restart)
{
	made(true);
	stream_rejoin(s, 5, true);
	asked(4);
	stream_replay_end(s, false);
	live(2, 3);
	ck_out("restarted");
	asked(0);
	replayed(2, 0);
	stream_reconnected(s);
	asked(0);
	replayed(2, 0);
	ck_out("2:0");
}
END_TEST

START_TEST(rejoined_without_a_replay)
{
	made(false);
	stream_rejoin(s, 5, true);
	live(1, _i == 0 ? 5 : _i == 1 ? 7 : 4);
	ck_out(_i == 0 ? "1:5" : _i == 1 ? "lost(5-6) 1:7" :
	    "restarted lost(0-3) 1:4");
}
END_TEST

START_TEST(rejoined_before_anything)
{
	made(true);
	stream_rejoin(s, 0, false);
	asked(0);
	replayed(1, 0);
	stream_replay_end(s, true);
	ck_out("1:0");
}
END_TEST

/* Replies to earlier questions are not taken for others. */
START_TEST(stale_replies)
{
	made(true);
	at_4();
	replayed(1, 5);
	stream_replay_end(s, true);
	ck_out("");
	live(1, 5);
	ck_out("1:5");
}
END_TEST

START_TEST(numbers_that_are_none)
{
	options.first = 1;
	made(false);
	live(1, 0);
	live(1, UINT64_MAX);
	ck_out("");
	ck_assert_uint_eq(stream_state(s).counts.refused, 2);
	live(1, 1);
	ck_assert_uint_eq(stream_state(s).counts.lost, 0);
	live(1, UINT64_MAX - 1);
	ck_assert_uint_eq(stream_state(s).last, UINT64_MAX - 1);
}
END_TEST

/* A batch that finds no room is asked for again. */
START_TEST(bound_of_what_waits)
{
	uint64_t seq;

	options.bytes_max = 400;
	made(true);
	at_4();
	for (seq = 6; seq < 100; seq++)
		live(1, seq);
	ck_assert_uint_le(stream_state(s).held, 400);
	ck_assert_uint_gt(stream_state(s).held, 0);
	ck_assert_uint_gt(stream_state(s).counts.refused, 80);
	asked(5);
	for (seq = 5; seq < 100; seq++)
		replayed(1, seq);
	stream_replay_end(s, true);
	live(1, 100);
	ck_assert_uint_eq(stream_state(s).last, 100);
	ck_assert_uint_eq(stream_state(s).counts.lost, 0);
	ck_assert_uint_eq(stream_state(s).held, 0);
}
END_TEST

START_TEST(no_memory)
{
	alloc_fail_at(1);
	ck_assert_ptr_null(stream_new(&options));
	made(true);
	at_4();
	alloc_fail_at(1);
	live(1, 5);
	live(1, 6);
	ck_out("");
	ck_assert_uint_eq(stream_state(s).counts.refused, 1);
	asked(5);
	alloc_fail_at(2);
	replayed(1, 5);
	replayed(1, 6);
	stream_replay_end(s, true);
	ck_out("1:5 1:6");
	ck_assert_uint_eq(stream_state(s).counts.lost, 0);
}
END_TEST

/* ------------------------------------------------------------ random --- */

/*
 * An engine keeps its last KEEP batches, a line loses some, connections break,
 * engines restart. The output is checked batch by batch. At last, when the
 * line has become good, all batches that the engine still has must be there.
 */
enum { KEEP = 12 };

static struct {
	uint64_t seed;
	struct rng rng;
	int life;             /* of the engine */
	uint64_t next;        /* its next batch */
	int out_life;         /* of the last batch that came out; 0: none */
	uint64_t out_seq;
	bool whole;           /* all of out_life came out, from 0 on */
	bool restarted;       /* since that batch */
	uint64_t lost_from, lost_to;
	bool lost;
} world;

#define CK(what) ck_assert_msg((what), "seed %#llx: not so: %s", \
    (unsigned long long)world.seed, #what)

static void
took(int life, uint64_t seq)
{
	const bool anew = world.out_life == 0 || world.restarted;
	const uint64_t expected = anew ? 0 : world.out_seq + 1;

	if (life != world.out_life)
		CK(anew);
	if (world.lost)
		CK(world.lost_from == expected && world.lost_to + 1 == seq);
	else
		CK(seq == expected);
	world.whole = (anew || world.whole) && !world.lost;
	world.out_life = life;
	world.out_seq = seq;
	world.restarted = world.lost = false;
	CK(stream_state(s).complete == world.whole);
}

static void
take_all(void)
{
	struct stream_out out;
	unsigned long long seq;
	char text[32];
	int life;

	while (stream_next(s, &out)) {
		if (out.what == STREAM_RESTARTED) {
			world.restarted = true;
			world.lost = false;
		} else if (out.what == STREAM_LOST) {
			CK(!world.lost);
			world.lost = true;
			world.lost_from = out.seq;
			world.lost_to = out.last;
		} else {
			snprintf(text, sizeof(text), "%.*s", (int)out.n,
			    (const char *)out.bytes);
			ck_assert_int_eq(sscanf(text, "%d:%llu", &life, &seq),
			    2);
			ck_assert_uint_eq(seq, out.seq);
			took(life, seq);
		}
	}
}

static bool
chance(unsigned percent)
{
	return rng_between(&world.rng, 0, 99) < percent;
}

static void
publish(unsigned loss)
{
	const uint64_t seq = world.next++;

	if (!chance(loss))
		live(world.life, seq);
}

/*
 * Batches are published during the replay. A bad line cuts it, but not before
 * the batch that identifies the engine: the numbers here are so small that
 * without it those of two lives often fit together.
 */
static void
answer(unsigned loss)
{
	uint64_t from, seq, end = world.next;

	if (!stream_wants(s, &from))
		return;
	stream_asked(s);
	if (end > KEEP && from < end - KEEP)
		from = end - KEEP;
	for (seq = from; seq < end; seq++) {
		if (loss > 0 && seq > from && chance(3)) {
			stream_replay_end(s, false);
			return;
		}
		replayed(world.life, seq);
		take_all();
		if (chance(20))
			publish(loss);
	}
	stream_replay_end(s, true);
}

static void
step(unsigned loss)
{
	const uint64_t what = rng_between(&world.rng, 0, 99);

	if (what < 70) {
		publish(loss);
	} else if (what < 73) {
		stream_reconnected(s);
	} else if (what < 76) {
		world.life++;
		world.next = 0;
		for (; chance(80); world.next++)
			continue;
		stream_reconnected(s);
	} else if (what < 78 && world.next > 0) {
		live(world.life, world.next - 1);
	} else {
		answer(loss);
	}
	take_all();
}

static void
settle(void)
{
	int i;

	for (i = 0; i < 50; i++) {
		answer(0);
		take_all();
	}
	publish(0);
	answer(0);
	take_all();
	CK(world.out_life == world.life && world.out_seq == world.next - 1);
	CK(stream_state(s).held == 0);
}

START_TEST(random_lives)
{
	uint64_t round;
	int i;

	memset(&world, 0, sizeof(world));
	world.rng.state = world.seed = test_seed();
	for (round = test_amount(600); round > 0; round--) {
		world.life = 1;
		world.next = world.out_seq = 0;
		world.out_life = 0;
		world.whole = world.restarted = world.lost = false;
		options.bytes_max = chance(30) ? 600 : 0;
		made(true);
		for (i = 0; i < 120; i++)
			step(chance(50) ? 10 : 0);
		settle();
		stream_free(s);
		s = NULL;
	}
}
END_TEST

Suite *suite_stream(void);

Suite *
suite_stream(void)
{
	Suite *suite = suite_create("stream");
	TCase *t = tcase_create("stream");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, from_the_first_batch);
	tcase_add_test(t, joins_late);
	tcase_add_test(t, joins_late_without_replay);
	tcase_add_test(t, a_loss_behind_a_cleared_batch);
	tcase_add_test(t, a_gap_is_replayed);
	tcase_add_test(t, a_gap_without_replay_is_a_loss);
	tcase_add_test(t, a_hole_in_the_replay);
	tcase_add_test(t, a_short_replay_is_asked_for_again);
	tcase_add_test(t, room_that_streams_share);
	tcase_add_test(t, duplicates);
	tcase_add_test(t, duplicates_while_it_waits);
	tcase_add_loop_test(t, a_number_goes_back, 0, 2);
	tcase_add_test(t, back_to_the_middle);
	tcase_add_test(t, back_while_it_waits);
	tcase_add_test(t, the_same_engine_after_a_reconnect);
	tcase_add_test(t, another_engine_overtook_meanwhile);
	tcase_add_loop_test(t, nothing_to_compare_after_a_reconnect, 0, 2);
	tcase_add_loop_test(t, reconnect_without_a_replay, 0, 6);
	tcase_add_test(t, the_caller_compares);
	tcase_add_test(t, the_caller_compares_the_first_batch);
	tcase_add_loop_test(t, nothing_for_the_caller_to_compare, 0, 3);
	tcase_add_loop_test(t, a_replay_that_was_given_up, 0, 2);
	tcase_add_test(t, a_replay_that_was_given_up_and_a_restart);
	tcase_add_loop_test(t, rejoined_without_a_replay, 0, 3);
	tcase_add_test(t, rejoined_before_anything);
	tcase_add_test(t, stale_replies);
	tcase_add_test(t, numbers_that_are_none);
	tcase_add_test(t, bound_of_what_waits);
	tcase_add_test(t, no_memory);
	tcase_add_test(t, random_lives);
	suite_add_tcase(suite, t);
	return suite;
}
