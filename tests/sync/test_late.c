/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_late.c - late.c with a bus that only counts: frames kept back while a
 * peer is asked, and frames of the log if none answers.
 */
#include <check.h>
#include <stdarg.h>

#include "replica.h"
#include "test.h"

#include "late.c"

enum { MESSAGE = 1000, QUESTIONER = 44 };

static struct replica *a, *b;
static struct site *s;
static struct site_options options;
static unsigned rereads, asks, ends, answers;
static uint64_t pieces; /* of the last answer */

bool
bus_answer(struct bus *bus, const char *reply, const void *bytes, size_t n)
{
	static struct frame_reader reader;
	struct frame_record r;

	(void)bus, (void)reply;
	ck_assert_int_eq(frame_open(&reader, &s->rules, bytes, n), FRAME_GOOD);
	while (frame_next(&reader, &r))
		if (r.kind == FRAME_SNAPSHOT_END) {
			answers++;
			pieces = r.pieces;
		}
	return true;
}

bool
bus_ask(struct bus *bus, const void *bytes, size_t n)
{
	(void)bus, (void)bytes, (void)n;
	asks++;
	return true;
}

void
bus_ask_end(struct bus *bus)
{
	(void)bus;
	ends++;
}

bool
bus_since(struct bus *bus, int64_t age)
{
	(void)bus, (void)age;
	rereads++;
	return true;
}

bool
bus_connected(const struct bus *bus)
{
	(void)bus;
	return true;
}

size_t
bus_waiting(const struct bus *bus)
{
	(void)bus;
	return 0;
}

void
site_log(const struct site *site, const char *format, ...)
{
	(void)site, (void)format;
}

/* A site beside b, whose region is empty. a is a peer. */
static void
begin(void)
{
	const int64_t now = kvr_clock_now();
	const struct replica_options one = { .origin = 11, .secret = 's',
	    .now = now }, two = { .origin = 22, .secret = 's', .now = now };
	struct apply_options o;

	a = malloc(sizeof(*a));
	b = malloc(sizeof(*b));
	s = calloc(1, sizeof(*s));
	ck_assert(a != NULL && b != NULL && s != NULL);
	ck_assert(replica_init(a, &one) && replica_init(b, &two));
	options = (struct site_options){ .replay = -1 };
	s->o = &options;
	s->path = "region";
	s->k = b->quiet;
	s->origin = 23;
	s->rules = b->rules;
	ck_assert(roster_init(&s->roster, s->k));
	ck_assert(late_open(s, now));
	o = (struct apply_options){ .roster = &s->roster,
	    .chains = s->late.chains, .rules = s->rules, .origin = s->origin,
	    .now = now };
	s->apply = apply_new(&o);
	ck_assert_ptr_nonnull(s->apply);
	ck_assert(late_begin(s, now));
	ck_assert_ptr_nonnull(s->late.fetch);
	rereads = asks = ends = answers = 0;
}

static void
finish(void)
{
	late_close(s);
	apply_free(s->apply);
	roster_free(&s->roster);
	replica_free(a);
	replica_free(b);
	free(a);
	free(b);
	free(s);
}

static void
take(const void *bytes, size_t n, int64_t age)
{
	const struct bus_message message = { .bytes = bytes, .n = n,
	    .age = age };

	late_take(s, &message);
}

/* However the lengths of messages meet the bound. */
static void
overflow(void)
{
	static const unsigned char bytes[BUS_FRAME_MAX];
	const size_t each = sizeof(struct kept) + MESSAGE;
	size_t rest;

	while (KEPT_MAX - s->late.bytes >= 2 * each)
		take(bytes, MESSAGE, 0);
	/* The bytes would fit, the record would not. */
	rest = KEPT_MAX - s->late.bytes - sizeof(struct kept) / 2;
	ck_assert_uint_le(rest, sizeof(bytes));
	take(bytes, rest, 0);
	ck_assert_uint_le(s->late.bytes, KEPT_MAX);
	take(bytes, MESSAGE, 0);
	take(bytes, MESSAGE, 0);
	ck_assert_uint_le(s->late.bytes, KEPT_MAX);
}

/* A peer has observed so many prompts, with a frame for each. */
static void
observed(uint32_t n)
{
	uint32_t i;

	/* its journal is read from now on */
	replica_run(a, a->now + 20 * MS);
	for (i = 1; i <= n; i++) {
		ck_assert_int_eq(kvr_observe(a->k, replica_prompt(a, i, 5),
		    replica_worker(a, 'b'), a->now, 0, NULL), KVR_OK);
		replica_run(a, a->now + 20 * MS);
	}
	ck_assert_uint_ge(a->n, n);
}

static void
take_last(size_t n)
{
	size_t i;

	for (i = a->n - n; i < a->n; i++)
		take(a->sent[i].bytes, a->sent[i].n, 0);
}

/* Another one that begins asks this one. */
static void
question(void)
{
	static struct frame_writer w;
	const struct frame_record r = { .kind = FRAME_ASK, .peer = s->origin,
	    .stamp_age = INT64_MAX };
	struct bus_message message = { .reply = "there" };

	frame_writer_init(&w, &s->rules, QUESTIONER);
	ck_assert_int_eq(frame_put(&w, &r), FRAME_OK);
	message.bytes = frame_finish(&w, 1, &message.n);
	late_take(s, &message);
}

/* Works until the time of the peers that were heard is over. */
static void
work(int64_t time)
{
	int64_t at;

	for (at = 0; at < time; at += 100 * MS)
		(void)late_work(s, s->late.opened + at);
}

/* It is not ready then, and sends no chains that it lacks. */
START_TEST(what_is_kept_is_bounded)
{
	begin();
	observed(20);
	take_last(20);
	overflow();
	ck_assert_uint_ge(s->late.left_out, 2);
	question();
	work(SECOND);
	ck_assert(!s->late.ready);
	ck_assert_uint_eq(answers, 1);
	ck_assert_uint_eq(pieces, 0);
	ck_assert_uint_eq(apply_counts(s->apply).frames[FRAME_GOOD], 0);
	ck_assert_ptr_nonnull(s->late.first);
	work(10 * SECOND);
	ck_assert(s->late.ready);
	ck_assert_ptr_null(s->late.first);
	finish();
}
END_TEST

/* The bus reads the log from its beginning. */
static void
log_again(size_t end)
{
	const int64_t now = kvr_clock_now();
	size_t i;

	for (i = 0; i < end; i++)
		take(a->sent[i].bytes, a->sent[i].n, now - a->sent[i].at +
		    (i + 10 < end ? 30 * SECOND : 0));
}

static void
the_log(bool full)
{
	begin();
	observed(100);
	/* The last ones come while it asks; there is no answer. */
	take_last(10);
	if (full)
		overflow();
	work(10 * SECOND);
	ck_assert_uint_eq(asks, 1);
	ck_assert_uint_eq(ends, 1);
	ck_assert_uint_eq(rereads, 1);
	log_again(a->n);
	ck_assert_uint_eq(apply_counts(s->apply).repeated, 0);
	b->now = kvr_clock_now();
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	ck_assert_uint_eq(replica_holds(b, 50, 8, 'b'), 5);
	finish();
}

/* Peers that do not answer were heard meanwhile; the log begins before that. */
START_TEST(the_log_after_no_answer)
{
	the_log(false);
}
END_TEST

START_TEST(the_log_after_more_than_is_kept)
{
	the_log(true);
}
END_TEST

static bool
send_nothing(void *context, const unsigned char *bytes, size_t n)
{
	(void)context, (void)bytes, (void)n;
	return true;
}

/* A peer's challenge comes, of that age. */
static void
take_challenge_of(uint64_t origin, uint64_t challenge, int64_t age)
{
	static struct frame_writer w;
	const struct frame_record r = { .kind = FRAME_CHALLENGE,
	    .challenge = challenge };
	const unsigned char *bytes;
	size_t n;

	frame_writer_init(&w, &s->rules, origin);
	ck_assert_int_eq(frame_put(&w, &r), FRAME_OK);
	bytes = frame_finish(&w, 1, &n);
	take(bytes, n, age);
}

/* Without this, peers would take no frame while it asks. */
START_TEST(challenges_are_heard_while_it_asks)
{
	struct publish_options o = { .send = send_nothing, .host = "h" };

	begin();
	options.secret_bytes = 1;
	o.roster = &s->roster;
	o.origin = s->origin;
	o.rules = s->rules;
	o.proof = &s->proof;
	s->publish = publish_new(&o);
	ck_assert_ptr_nonnull(s->publish);
	take_challenge_of(31, 7, 0);
	ck_assert_uint_eq(s->proof.n, 1);
	ck_assert_uint_eq(s->proof.peers[0].origin, 31);
	ck_assert_uint_eq(s->proof.peers[0].challenge, 7);
	take_challenge_of(31, 6, 5 * SECOND);
	take_challenge_of(s->origin, 5, 0);
	ck_assert_uint_eq(s->proof.n, 1);
	ck_assert_uint_eq(s->proof.peers[0].challenge, 7);
	publish_free(s->publish);
	finish();
}
END_TEST

Suite *suite_late(void);

Suite *
suite_late(void)
{
	Suite *suite = suite_create("late");
	TCase *t = tcase_create("late");

	tcase_add_test(t, what_is_kept_is_bounded);
	tcase_add_test(t, the_log_after_no_answer);
	tcase_add_test(t, the_log_after_more_than_is_kept);
	tcase_add_test(t, challenges_are_heard_while_it_asks);
	suite_add_tcase(suite, t);
	return suite;
}
