/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_snapshot.c - a router that begins gets a copy of another one's state;
 * frames are carried by hand.
 */
#include <check.h>
#include <kvroute_replica.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "busy.h"
#include "frames.h"
#include "replica.h"
#include "snapshot.h"
#include "test.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define AGES (100 * SECOND)

enum { ANSWERS_MAX = 64, QUESTION_MAX = 256, ENTRIES_MAX = 512 };

struct answer {
	unsigned char bytes[FRAME_BYTES_MAX];
	size_t n;
};

/* b begins; its clock and workers are others. */
static struct replica *a, *b;
static struct give *give;
static struct fetch *fetch;
static struct answer *answers;
static size_t n_answers;
static unsigned char question[QUESTION_MAX];
static size_t n_question;
static bool taken;
static int64_t now;

static bool
take_answer(void *context, const char *reply, const unsigned char *bytes,
    size_t n)
{
	(void)context;
	ck_assert_str_eq(reply, "there");
	ck_assert_uint_lt(n_answers, ANSWERS_MAX);
	memcpy(answers[n_answers].bytes, bytes, n);
	answers[n_answers++].n = n;
	return taken;
}

static bool
take_question(void *context, const unsigned char *bytes, size_t n)
{
	(void)context;
	ck_assert_uint_le(n, QUESTION_MAX);
	memcpy(question, bytes, n);
	n_question = n;
	return taken;
}

static struct fetch_options
fetch_options(void)
{
	return (struct fetch_options){ .roster = &b->roster,
	    .chains = b->chains, .rules = b->rules, .origin = b->origin,
	    .oldest = AGES, .ask = take_question };
}

static struct give_options
give_options(void)
{
	return (struct give_options){ .roster = &a->roster,
	    .chains = a->chains, .rules = a->rules, .origin = a->origin,
	    .send = take_answer };
}

/* Time passes on both sides; b does not hear the frames of a. */
static void
pass(int64_t time)
{
	now += time;
	replica_run(a, now);
	b->now = now;
}

static void
begin(void)
{
	const struct replica_options one = { .origin = 11, .secret = 's',
	    .now = 100 * SECOND, .keyed = true, .tenants = 4 },
	    two = { .origin = 22, .secret = 's', .now = 100 * SECOND,
	    .skew = 5000 * SECOND, .backwards = true, .keyed = true,
	    .tenants = 4 };
	struct give_options g;
	struct fetch_options f;

	a = malloc(sizeof(*a));
	b = malloc(sizeof(*b));
	answers = calloc(ANSWERS_MAX, sizeof(*answers));
	ck_assert(a != NULL && b != NULL && answers != NULL);
	ck_assert(replica_init(a, &one) && replica_init(b, &two));
	g = give_options();
	f = fetch_options();
	give = give_new(&g);
	fetch = fetch_new(&f);
	ck_assert(give != NULL && fetch != NULL);
	now = one.now;
	n_answers = n_question = 0;
	taken = true;
	pass(20 * MS); /* the journal is read from now on */
}

static void
finish(void)
{
	ck_assert_int_eq(kvr_check(a->k), KVR_OK);
	ck_assert_int_eq(kvr_check(b->k), KVR_OK);
	give_free(give);
	fetch_free(fetch);
	replica_free(a);
	replica_free(b);
	free(a);
	free(b);
	free(answers);
}

static void
sent(uint32_t prompt, uint32_t blocks, char worker)
{
	ck_assert_int_eq(kvr_observe(a->k, replica_prompt(a, prompt, blocks),
	    replica_worker(a, worker), now, 0, NULL), KVR_OK);
	pass(20 * MS);
}

/* b asks and a works until it has nothing to do. */
static void
ask(uint64_t origin)
{
	fetch_heard(fetch, origin);
	(void)fetch_work(fetch, now + b->skew);
	ck_assert_int_eq(fetch_state(fetch), FETCH_ASKED);
	give_asked(give, "there", question, n_question);
	while (give_work(give, true, now) != INT64_MAX) {
		ck_assert_uint_le(n_answers, ANSWERS_MAX);
		now += MS;
	}
}

static void
carry(size_t i)
{
	fetch_frame(fetch, now + b->skew, answers[i].bytes, answers[i].n);
}

static void
apply(void)
{
	int turns = 0;

	while (fetch_state(fetch) == FETCH_APPLYING && turns++ < 10000)
		(void)fetch_work(fetch, now + b->skew);
}

static void
ask_and_carry(void)
{
	size_t i;

	ask(a->origin);
	for (i = 0; i < n_answers; i++)
		carry(i);
	apply();
	b->now = now;
}

/* Returns the age of a worker's entry up to that block, or -1. */
static int64_t
age(struct replica *r, char worker, uint32_t blocks)
{
	const uint64_t id = replica_worker(r, worker);
	struct kvr_entry e[ENTRIES_MAX];
	uint64_t cursor = 0;
	size_t i, n;

	do {
		ck_assert_int_eq(kvr_entries(r->k, &cursor, now + r->skew, e,
		    sizeof(e[0]), ENTRIES_MAX, &n), KVR_OK);
		for (i = 0; i < n; i++)
			if (e[i].worker == id &&
			    e[i].first_block + e[i].blocks == blocks)
				return e[i].age_ns;
	} while (cursor != 0);
	return -1;
}

START_TEST(what_workers_hold)
{
	begin();
	sent(1, 20, 'a');
	sent(1, 30, 'b');
	sent(2, 10, 'b');
	sent(3, 60, 'd');
	sent(1, 5, 'd');
	ask_and_carry();
	ck_assert_int_eq(fetch_state(fetch), FETCH_DONE);
	ck_assert_uint_eq(replica_holds(b, 1, 40, 'a'), 20);
	ck_assert_uint_eq(replica_holds(b, 1, 40, 'b'), 30);
	ck_assert_uint_eq(replica_holds(b, 1, 40, 'c'), 0);
	ck_assert_uint_eq(replica_holds(b, 1, 40, 'd'), 5);
	ck_assert_uint_eq(replica_holds(b, 2, 40, 'b'), 10);
	ck_assert_uint_eq(replica_holds(b, 3, 64, 'd'), 60);
	/* Each block once, however many hold it. */
	ck_assert_uint_eq(give_counts(give).blocks, 100);
	ck_assert_uint_eq(fetch_counts(fetch).blocks, 100);
	ck_assert_uint_eq(fetch_counts(fetch).refused, 0);
	ck_assert_uint_eq(fetch_counts(fetch).lost, 0);
	/* Now b can send it. */
	ck_assert_uint_eq(chains_blocks(b->chains), 100);
	finish();
}
END_TEST

/* Tenants come along, with their shares, set here or by another router. */
START_TEST(tenants_of_what_workers_hold)
{
	struct kvr_request request;
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t i;

	begin();
	ck_assert_int_eq(kvr_request_init(&request, sizeof(request)), KVR_OK);
	request.share = 40;
	ck_assert_int_eq(kvr_lease_open_on(a->k, replica_prompt_of(a, 'x', 1,
	    20), &request, replica_worker(a, 'a'), now, &d), KVR_OK);
	ck_assert_int_eq(kvr_lease_commit(a->k, d.lease, now, 0), KVR_OK);
	for (i = 0; i < 300; i++) /* several frames */
		ck_assert_int_eq(kvr_observe(a->k, replica_prompt_of(a, 'y',
		    i, 60), replica_worker(a, 'b'), now, 0, NULL), KVR_OK);
	sent(1, 20, 'a');
	ask_and_carry();
	ck_assert_uint_gt(n_answers, 2);
	ck_assert_int_eq(fetch_state(fetch), FETCH_DONE);
	ck_assert_uint_eq(replica_holds(b, 1, 40, 'a'), 20);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(replica_tenant(b, "xy"[i]).bytes,
		    replica_tenant(a, "xy"[i]).bytes);
	ck_assert_uint_gt(replica_tenant(b, 'y').bytes, 60 * 300);
	ck_assert_uint_eq(replica_tenant(b, 'x').share, 40);
	finish();
}
END_TEST

START_TEST(ages_are_kept)
{
	begin();
	sent(1, 20, 'a');
	pass(30 * SECOND);
	sent(2, 30, 'a');
	pass(10 * SECOND);
	sent(1, 20, 'c');
	sent(3, 40, 'a');
	ask_and_carry();
	ck_assert_uint_eq(replica_holds(b, 1, 20, 'a'), 20);
	ck_assert_int_ge(age(b, 'a', 20), 40 * SECOND);
	ck_assert_int_le(age(b, 'a', 20), 41 * SECOND);
	ck_assert_int_ge(age(b, 'a', 30), 10 * SECOND);
	ck_assert_int_le(age(b, 'a', 30), 11 * SECOND);
	ck_assert_int_le(age(b, 'a', 40), SECOND);
	ck_assert_int_le(age(b, 'c', 20), SECOND);
	finish();
}
END_TEST

START_TEST(no_older_than_is_wanted)
{
	struct fetch_options o;

	begin();
	sent(1, 20, 'a');
	pass(30 * SECOND);
	sent(2, 30, 'a');
	fetch_free(fetch);
	o = fetch_options();
	o.oldest = 20 * SECOND;
	fetch = fetch_new(&o);
	ck_assert_ptr_nonnull(fetch);
	ask_and_carry();
	ck_assert_int_eq(fetch_state(fetch), FETCH_DONE);
	ck_assert_uint_eq(replica_holds(b, 1, 20, 'a'), 0);
	ck_assert_uint_eq(replica_holds(b, 2, 30, 'a'), 30);
	ck_assert_uint_eq(give_counts(give).entries, 1);
	finish();
}
END_TEST

/* Prompts that share much and part, and more than one frame. */
START_TEST(several_frames)
{
	uint32_t i;

	begin();
	for (i = 0; i < 300; i++)
		sent(i, 50, (char)('a' + i % 4));
	for (i = 0; i < 300; i += 7)
		sent(i, 25 + i % 20, (char)('a' + i % 3));
	ask_and_carry();
	ck_assert_int_eq(fetch_state(fetch), FETCH_DONE);
	ck_assert_uint_gt(n_answers, 1);
	ck_assert_uint_eq(fetch_counts(fetch).frames, n_answers);
	ck_assert_uint_eq(fetch_counts(fetch).blocks, 300 * 50);
	for (i = 0; i < 300; i++) {
		ck_assert_uint_eq(replica_holds(b, i, 50, 'a'),
		    replica_holds(a, i, 50, 'a'));
		ck_assert_uint_eq(replica_holds(b, i, 50, 'b'),
		    replica_holds(a, i, 50, 'b'));
	}
	finish();
}
END_TEST

/* It is not lost, nor tried for ever in one turn. */
START_TEST(an_answer_waits_for_a_busy_region)
{
	size_t i;

	begin();
	sent(1, 50, 'a');
	sent(2, 50, 'b');
	ask(a->origin);
	for (i = 0; i < n_answers; i++)
		carry(i);
	busy_begin(UINT_MAX);
	for (i = 0; i < 100; i++)
		ck_assert_int_gt(fetch_work(fetch, now + b->skew),
		    now + b->skew);
	ck_assert_uint_gt(busy_end(), 0);
	ck_assert_int_eq(fetch_state(fetch), FETCH_APPLYING);
	apply();
	ck_assert_int_eq(fetch_state(fetch), FETCH_DONE);
	ck_assert_uint_eq(fetch_counts(fetch).refused, 0);
	b->now = now;
	ck_assert_uint_eq(replica_holds(b, 1, 50, 'a'), 50);
	ck_assert_uint_eq(replica_holds(b, 2, 50, 'b'), 50);
	finish();
}
END_TEST

/* One frame a turn, however often it is called. */
START_TEST(an_answer_takes_turns)
{
	uint32_t i;
	size_t before;

	begin();
	for (i = 0; i < 300; i++)
		sent(i, 50, 'a');
	fetch_heard(fetch, a->origin);
	(void)fetch_work(fetch, now + b->skew);
	give_asked(give, "there", question, n_question);
	while (give_work(give, true, now) != INT64_MAX) {
		before = n_answers;
		(void)give_work(give, true, now);
		(void)give_work(give, true, now + MS / 2);
		ck_assert_uint_eq(n_answers, before);
		now += MS;
	}
	ck_assert_uint_gt(n_answers, 1);
	finish();
}
END_TEST

START_TEST(a_lost_frame_is_noticed)
{
	uint32_t i, both = 0;
	size_t j;

	begin();
	for (i = 0; i < 400; i++)
		sent(i, 50, 'a');
	ask(a->origin);
	ck_assert_uint_gt(n_answers, 2);
	for (j = 0; j < n_answers; j++)
		if (j != 1)
			carry(j);
	apply();
	ck_assert_int_eq(fetch_state(fetch), FETCH_FAILED);
	ck_assert_uint_eq(fetch_counts(fetch).lost, 1);
	for (i = 0; i < 400; i++)
		both += replica_holds(b, i, 50, 'a') == 50;
	ck_assert_uint_gt(both, 100);
	ck_assert_uint_lt(both, 400);
	finish();
}
END_TEST

START_TEST(frames_come_twice)
{
	uint32_t i;
	size_t j;

	begin();
	for (i = 0; i < 300; i++)
		sent(i, 50, 'a');
	ask(a->origin);
	for (j = 0; j < n_answers; j++) {
		carry(j);
		carry(j);
		carry(0);
	}
	apply();
	ck_assert_int_eq(fetch_state(fetch), FETCH_DONE);
	ck_assert_uint_eq(fetch_counts(fetch).frames, n_answers);
	ck_assert_uint_eq(fetch_counts(fetch).applied,
	    give_counts(give).entries);
	finish();
}
END_TEST

START_TEST(others_are_not_listened_to)
{
	struct frame_rules rules;
	const unsigned char *bytes;
	struct frame_record r = { .kind = FRAME_SNAPSHOT_END, .peer = 22 };
	static struct frame_writer w;
	size_t n;

	begin();
	sent(1, 20, 'a');
	/* an answer is for another one, and so is a question */
	fetch_heard(fetch, 33);
	(void)fetch_work(fetch, now + b->skew);
	give_asked(give, "there", question, n_question);
	ck_assert_int_eq(give_work(give, true, now), INT64_MAX);
	ck_assert_uint_eq(give_counts(give).asked, 0);
	/* An end by one that was not asked, or without the key. */
	frame_writer_init(&w, &b->rules, 44);
	ck_assert_int_eq(frame_put(&w, &r), FRAME_OK);
	bytes = frame_finish(&w, 1, &n);
	fetch_frame(fetch, now + b->skew, bytes, n);
	rules = b->rules;
	rules.keyed = false;
	frame_writer_init(&w, &rules, 33);
	ck_assert_int_eq(frame_put(&w, &r), FRAME_OK);
	bytes = frame_finish(&w, 1, &n);
	fetch_frame(fetch, now + b->skew, bytes, n);
	fetch_frame(fetch, now + b->skew, "KVRF", 4);
	ck_assert_int_eq(fetch_state(fetch), FETCH_ASKED);
	ck_assert_uint_eq(fetch_counts(fetch).frames, 0);
	/* The one that was asked, but its answer is for another one. */
	r.peer = 23;
	frame_writer_init(&w, &b->rules, 33);
	ck_assert_int_eq(frame_put(&w, &r), FRAME_OK);
	bytes = frame_finish(&w, 1, &n);
	fetch_frame(fetch, now + b->skew, bytes, n);
	ck_assert_int_eq(fetch_state(fetch), FETCH_ASKED);
	finish();
}
END_TEST

static void
begin_proofs(void)
{
	struct give_options g;
	struct fetch_options f;

	begin();
	give_free(give);
	fetch_free(fetch);
	g = give_options();
	f = fetch_options();
	g.proof = &a->proof;
	f.proof = &b->proof;
	give = give_new(&g);
	fetch = fetch_new(&f);
	ck_assert(give != NULL && fetch != NULL);
	fetch_heard(fetch, a->origin);
}

/* It is sent again, for an answer elsewhere. */
START_TEST(a_recorded_question_is_not_answered)
{
	int i;

	begin_proofs();
	sent(1, 20, 'a');
	ck_assert(proof_heard(&b->proof, a->origin, a->proof.own));
	(void)fetch_work(fetch, now + b->skew);
	for (i = 0; i < 2; i++) {
		give_asked(give, "there", question, n_question);
		while (give_work(give, true, now) != INT64_MAX)
			now += MS;
	}
	ck_assert_uint_eq(give_counts(give).given, 1);
	ck_assert_uint_eq(give_counts(give).refused, 1);
	finish();
}
END_TEST

START_TEST(a_question_has_the_challenge_of_now)
{
	begin_proofs();
	ck_assert(proof_heard(&b->proof, a->origin, a->proof.own));
	(void)fetch_work(fetch, now + b->skew);
	ck_assert(proof_draw(&a->proof));
	give_asked(give, "there", question, n_question);
	ck_assert_uint_eq(give_counts(give).refused, 1);
	ck_assert_int_eq(give_work(give, true, now), INT64_MAX);
	finish();
}
END_TEST

START_TEST(a_question_without_a_challenge_is_not_answered)
{
	begin_proofs();
	(void)fetch_work(fetch, now + b->skew);
	give_asked(give, "there", question, n_question);
	ck_assert_uint_eq(give_counts(give).refused, 1);
	finish();
}
END_TEST

START_TEST(the_next_one_is_asked)
{
	size_t i;

	begin();
	sent(1, 20, 'a');
	fetch_heard(fetch, 33);
	fetch_heard(fetch, 33);
	fetch_heard(fetch, b->origin);
	(void)fetch_work(fetch, now + b->skew);
	ck_assert_uint_eq(fetch_counts(fetch).peer, 33);
	fetch_heard(fetch, a->origin);
	pass(SECOND);
	(void)fetch_work(fetch, now + b->skew);
	ck_assert_uint_eq(fetch_counts(fetch).asked, 1);
	pass(SECOND);
	(void)fetch_work(fetch, now + b->skew);
	ask(a->origin);
	ck_assert_uint_eq(fetch_counts(fetch).peer, a->origin);
	for (i = 0; i < n_answers; i++)
		carry(i);
	apply();
	ck_assert_int_eq(fetch_state(fetch), FETCH_DONE);
	ck_assert_uint_eq(replica_holds(b, 1, 20, 'a'), 20);
	finish();
}
END_TEST

/* A router that has just begun answers that it has nothing. */
START_TEST(one_that_is_not_ready)
{
	begin();
	sent(1, 20, 'a');
	fetch_heard(fetch, a->origin);
	fetch_heard(fetch, 33);
	(void)fetch_work(fetch, now + b->skew);
	give_asked(give, "there", question, n_question);
	while (give_work(give, false, now) != INT64_MAX)
		now += MS;
	ck_assert_uint_eq(n_answers, 1);
	carry(0);
	ck_assert_int_eq(fetch_state(fetch), FETCH_LOOKING);
	(void)fetch_work(fetch, now + b->skew);
	ck_assert_uint_eq(fetch_counts(fetch).peer, 33);
	pass(SECOND);
	pass(SECOND);
	pass(SECOND);
	(void)fetch_work(fetch, now + b->skew);
	apply();
	ck_assert_int_eq(fetch_state(fetch), FETCH_FAILED);
	finish();
}
END_TEST

/* Several begin at a time, and are heard before the one with a state. */
START_TEST(those_that_know_nothing_are_heard_first)
{
	static struct frame_writer w;
	const struct frame_record r = { .kind = FRAME_SNAPSHOT_END,
	    .peer = 22 };
	const unsigned char *bytes;
	size_t n;

	begin();
	sent(1, 20, 'a');
	fetch_heard(fetch, 33);
	(void)fetch_work(fetch, now + b->skew);
	frame_writer_init(&w, &b->rules, 33);
	ck_assert_int_eq(frame_put(&w, &r), FRAME_OK);
	bytes = frame_finish(&w, 1, &n);
	fetch_frame(fetch, now + b->skew, bytes, n);
	(void)fetch_work(fetch, now + b->skew);
	ck_assert(!fetch_over(fetch));
	pass(SECOND);
	ask_and_carry();
	ck_assert_int_eq(fetch_state(fetch), FETCH_DONE);
	ck_assert_uint_eq(replica_holds(b, 1, 20, 'a'), 20);
	finish();
}
END_TEST

START_TEST(alone)
{
	begin();
	ck_assert(fetch_work(fetch, now) < now + SECOND);
	ck_assert_int_eq(fetch_state(fetch), FETCH_LOOKING);
	pass(SECOND);
	pass(SECOND);
	pass(SECOND);
	ck_assert_int_eq(fetch_state(fetch), FETCH_LOOKING);
	(void)fetch_work(fetch, now);
	ck_assert_int_eq(fetch_state(fetch), FETCH_ALONE);
	ck_assert_int_eq(fetch_work(fetch, now), INT64_MAX);
	ck_assert_uint_eq(n_question, 0);
	finish();
}
END_TEST

/* Records of a worker from before its reset do not count after it. */
START_TEST(a_worker_is_reset_meanwhile)
{
	uint64_t id;
	size_t i;

	begin();
	sent(1, 20, 'a');
	sent(2, 20, 'b');
	ask(a->origin);
	for (i = 0; i < n_answers; i++)
		carry(i);
	id = replica_worker(b, 'a');
	ck_assert(roster_agree(&b->roster, roster_id(&b->roster, id), 1,
	    true));
	apply();
	ck_assert_uint_eq(replica_holds(b, 1, 20, 'a'), 0);
	ck_assert_uint_eq(replica_holds(b, 2, 20, 'b'), 20);
	ck_assert_uint_eq(fetch_counts(fetch).refused, 1);
	finish();
}
END_TEST

START_TEST(an_answer_breaks)
{
	begin();
	sent(1, 20, 'a');
	fetch_heard(fetch, a->origin);
	(void)fetch_work(fetch, now + b->skew);
	give_asked(give, "there", question, n_question);
	taken = false;
	while (give_work(give, true, now) != INT64_MAX)
		now += MS;
	ck_assert_uint_eq(give_counts(give).broken, 1);
	ck_assert_uint_eq(give_counts(give).given, 0);
	/* The next question is answered. */
	taken = true;
	n_answers = 0;
	give_asked(give, "there", question, n_question);
	while (give_work(give, true, now) != INT64_MAX)
		now += MS;
	ck_assert_uint_eq(give_counts(give).given, 1);
	finish();
}
END_TEST

START_TEST(too_many_ask)
{
	char name[SNAPSHOT_REPLY_MAX + 1];
	int i;

	begin();
	fetch_heard(fetch, a->origin);
	(void)fetch_work(fetch, now + b->skew);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	give_asked(give, name, question, n_question);
	ck_assert_uint_eq(give_counts(give).refused, 1);
	for (i = 0; i < GIVE_WAITING_MAX + 3; i++)
		give_asked(give, "there", question, n_question);
	ck_assert_uint_eq(give_counts(give).refused, 4);
	while (give_work(give, true, now) != INT64_MAX)
		now += MS;
	ck_assert_uint_eq(give_counts(give).given, GIVE_WAITING_MAX);
	finish();
}
END_TEST

/* Gives the giver a turn, and b the frames meant for it. */
static void
wait_turn(void)
{
	size_t i;

	pass(SECOND);
	n_answers = 0;
	(void)give_work(give, true, now);
	for (i = 0; i < n_answers; i++)
		if (answers[i].n <= FRAME_HEAD + SIPHASH_BYTES)
			carry(i);
	(void)fetch_work(fetch, now + b->skew);
}

/* When several ask at once, the last one neither gives up nor waits long. */
START_TEST(those_that_wait_hear_so)
{
	uint32_t i;

	begin();
	for (i = 0; i < 300; i++)
		sent(i, 50, 'a');
	fetch_heard(fetch, a->origin);
	(void)fetch_work(fetch, now + b->skew);
	for (i = 0; i < GIVE_WAITING_MAX; i++)
		give_asked(give, "there", question, n_question);
	(void)give_work(give, true, now);
	ck_assert_uint_eq(n_answers, GIVE_WAITING_MAX - 1);
	for (i = 0; i < 8; i++) {
		wait_turn();
		ck_assert_int_eq(fetch_state(fetch), FETCH_ASKED);
		ck_assert_uint_eq(fetch_counts(fetch).asked, 1);
		ck_assert_uint_eq(fetch_counts(fetch).lost, 0);
	}
	for (i = 0; i < 6; i++)
		wait_turn();
	ck_assert(fetch_state(fetch) != FETCH_ASKED);
	finish();
}
END_TEST

/* A peer that broke off has sent more than the silent ones. */
START_TEST(what_one_has_sent_is_kept)
{
	uint32_t i;

	begin();
	for (i = 0; i < 300; i++)
		sent(i, 50, 'a');
	ask(a->origin);
	ck_assert_uint_gt(n_answers, 1);
	carry(0);
	fetch_heard(fetch, 33);
	pass(SECOND);
	pass(SECOND);
	(void)fetch_work(fetch, now + b->skew);
	(void)fetch_work(fetch, now + b->skew);
	ck_assert_uint_eq(fetch_counts(fetch).peer, 33);
	pass(SECOND);
	pass(SECOND);
	(void)fetch_work(fetch, now + b->skew);
	apply();
	ck_assert_int_eq(fetch_state(fetch), FETCH_FAILED);
	ck_assert_uint_eq(fetch_counts(fetch).peer, a->origin);
	ck_assert_uint_gt(fetch_counts(fetch).applied, 100);
	b->now = now;
	finish();
}
END_TEST

/* Chains routed before this daemon began cannot be described. */
START_TEST(unknown_chains_are_left_out)
{
	const struct replica_options one = { .origin = 11, .secret = 's',
	    .now = 100 * SECOND, .keyed = true };
	struct give_options g;

	begin();
	sent(1, 20, 'a');
	give_free(give);
	ck_assert(replica_restart(a, &one));
	pass(20 * MS);
	g = give_options();
	give = give_new(&g);
	ck_assert_ptr_nonnull(give);
	sent(2, 20, 'b');
	ask_and_carry();
	ck_assert_int_eq(fetch_state(fetch), FETCH_DONE);
	ck_assert_uint_eq(give_counts(give).unknown, 1);
	ck_assert_uint_eq(replica_holds(b, 1, 20, 'a'), 0);
	ck_assert_uint_eq(replica_holds(b, 2, 20, 'b'), 20);
	finish();
}
END_TEST

/* The answers are arbitrary. */
START_TEST(answers_at_random)
{
	static const uint64_t kinds[] = { FRAME_WORKER, FRAME_CHAIN,
	    FRAME_SNAPSHOT, FRAME_SNAPSHOT, FRAME_ASK, FRAME_RESERVE };
	const uint64_t seed = test_seed();
	struct rng rng = { seed };
	static struct frames_room room;
	static struct frame_writer w;
	struct frame_record r;
	const unsigned char *bytes;
	size_t i, j, n;

	begin();
	sent(1, 20, 'a');
	ask(a->origin);
	frame_writer_init(&w, &b->rules, a->origin);
	for (i = 0; i < 2000; i++) {
		for (j = rng_between(&rng, 1, 20); j > 0; j--) {
			r = frames_draw(&rng, kinds[rng_between(&rng, 0, 5)],
			    40, &room);
			if (r.kind == FRAME_WORKER && rng_between(&rng, 0, 1)) {
				r.text = &"abcd"[rng_between(&rng, 0, 3)];
				r.length = 1;
				r.rank = 0;
			}
			r.peer = b->origin;
			r.worker %= 6;
			r.first_block %= 3;
			r.parent %= 5;
			ck_assert_int_eq(frame_put(&w, &r), FRAME_OK);
		}
		bytes = frame_finish(&w, now, &n);
		fetch_frame(fetch, now + b->skew, bytes, n);
	}
	r = (struct frame_record){ .kind = FRAME_SNAPSHOT_END,
	    .peer = b->origin, .pieces = UINT64_MAX };
	ck_assert_int_eq(frame_put(&w, &r), FRAME_OK);
	bytes = frame_finish(&w, now, &n);
	fetch_frame(fetch, now + b->skew, bytes, n);
	apply();
	ck_assert_msg(fetch_state(fetch) == FETCH_FAILED &&
	    kvr_check(b->k) == KVR_OK, "seed %#llx",
	    (unsigned long long)seed);
	finish();
}
END_TEST

/* Each allocation fails in turn: less is known, and nothing breaks. */
START_TEST(without_memory)
{
	struct fetch_options o;
	struct fetch *f;
	unsigned long fail = 1;
	uint32_t i;

	begin();
	for (i = 0; i < 100; i++)
		sent(i, 30, 'a');
	fetch_free(fetch);
	fetch = NULL;
	o = fetch_options();
	do {
		n_answers = 0;
		alloc_fail_at(fail);
		f = fetch_new(&o);
		if (f != NULL) {
			fetch = f;
			ask_and_carry();
			ck_assert(fetch_over(fetch));
			fetch_free(fetch);
			fetch = NULL;
		}
		now += SECOND;
	} while (alloc_count() >= fail && ++fail < 100);
	alloc_reset();
	ck_assert_uint_gt(fail, 3);
	ck_assert_uint_lt(fail, 100);
	ck_assert_uint_eq(replica_holds(b, 1, 30, 'a'), 30);
	finish();
}
END_TEST

Suite *
suite_snapshot(void)
{
	Suite *s = suite_create("snapshot");
	TCase *t = tcase_create("snapshot");

	tcase_add_test(t, what_workers_hold);
	tcase_add_test(t, tenants_of_what_workers_hold);
	tcase_add_test(t, ages_are_kept);
	tcase_add_test(t, no_older_than_is_wanted);
	tcase_add_test(t, several_frames);
	tcase_add_test(t, an_answer_waits_for_a_busy_region);
	tcase_add_test(t, an_answer_takes_turns);
	tcase_add_test(t, a_lost_frame_is_noticed);
	tcase_add_test(t, frames_come_twice);
	tcase_add_test(t, others_are_not_listened_to);
	tcase_add_test(t, a_recorded_question_is_not_answered);
	tcase_add_test(t, a_question_has_the_challenge_of_now);
	tcase_add_test(t, a_question_without_a_challenge_is_not_answered);
	tcase_add_test(t, the_next_one_is_asked);
	tcase_add_test(t, one_that_is_not_ready);
	tcase_add_test(t, those_that_know_nothing_are_heard_first);
	tcase_add_test(t, alone);
	tcase_add_test(t, a_worker_is_reset_meanwhile);
	tcase_add_test(t, an_answer_breaks);
	tcase_add_test(t, too_many_ask);
	tcase_add_test(t, those_that_wait_hear_so);
	tcase_add_test(t, what_one_has_sent_is_kept);
	tcase_add_test(t, unknown_chains_are_left_out);
	tcase_add_test(t, answers_at_random);
	tcase_add_test(t, without_memory);
	suite_add_tcase(s, t);
	return s;
}
