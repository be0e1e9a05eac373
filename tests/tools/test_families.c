/* SPDX-License-Identifier: BSD-2-Clause */
/* test_families.c - the traces that kvroute-tracegen --family writes. */
#include "alloc.h"
#include "draw.h"
#include "families.h"
#include "half.h"
#include "rng.h"
#include "test.h"
#include "trace.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- draws --- */

/* Mean 1, P(x > 1) = 1/e = 0.368, P(x > 3) = 0.050. */
START_TEST(draw_is_exponential)
{
	enum { N = 200000 };
	struct rng r = { 5 };
	uint64_t sum = 0, x;
	int above_1 = 0, above_3 = 0, i;

	for (i = 0; i < N; i++) {
		x = draw_exponential(&r, 1000);
		ck_assert_uint_le(x, 16000);
		sum += x;
		above_1 += x >= 1000;
		above_3 += x >= 3000;
	}
	ck_assert(sum / N > 990 && sum / N < 1010);
	ck_assert(above_1 > 0.363 * N && above_1 < 0.373 * N);
	ck_assert(above_3 > 0.048 * N && above_3 < 0.052 * N);
	for (i = 0; i < 1000; i++)
		ck_assert_uint_ge(draw_length(&r, 70, 100), 70);
	ck_assert_uint_eq(draw_exponential(&r, 0), 0);
}
END_TEST

/* --------------------------------------------------------------- shapes --- */

enum { MOST = 20000 };

struct seen {
	size_t n;
	uint64_t tokens[MOST];
	uint64_t output[MOST];
	int64_t at[MOST];
	uint64_t first[MOST]; /* id */
	uint64_t known[MOST]; /* leading ids that came before */
	uint64_t session[MOST];
	uint64_t unseen[MOST]; /* by routers: tokens */
	uint64_t shown[MOST];  /* to them: ids that came before */
};
static struct seen seen;

/* Ids are consecutive; one must keep its position. */
static void
read_family(const struct family_options *o)
{
	enum { IDS = 1 << 20 };
	uint32_t *places = calloc(IDS, sizeof(*places));
	bool *shown = calloc(IDS, sizeof(*shown));
	FILE *f = tmpfile();
	struct trace_request r;
	struct trace *t;
	size_t i;

	ck_assert_int_eq(family_write(f, o), 0);
	rewind(f);
	t = trace_new(f, "family");
	for (seen.n = 0; trace_next(t, &r) == 1; seen.n++) {
		ck_assert_uint_eq(r.tokens, r.input_length);
		ck_assert_uint_eq(r.n_ids, (r.input_length + 511) / 512);
		seen.tokens[seen.n] = r.tokens;
		seen.output[seen.n] = r.output_length;
		seen.at[seen.n] = r.timestamp_ms;
		seen.first[seen.n] = r.ids[0];
		seen.session[seen.n] = r.session;
		seen.unseen[seen.n] = r.tokens - trace_seen(&r).tokens;
		seen.known[seen.n] = seen.shown[seen.n] = 0;
		for (i = 0; i < r.n_seen; i++) {
			ck_assert_uint_lt(r.seen[i], IDS);
			seen.shown[seen.n] += shown[r.seen[i]];
			shown[r.seen[i]] = true;
		}
		for (i = 0; i < r.n_ids; i++) {
			ck_assert_uint_lt(r.ids[i], IDS);
			ck_assert(places[r.ids[i]] == 0 ||
			    places[r.ids[i]] == i + 1);
			seen.known[seen.n] += places[r.ids[i]] != 0;
			places[r.ids[i]] = (uint32_t)i + 1;
		}
	}
	ck_assert_str_eq(trace_error(t), "");
	ck_assert_uint_eq(seen.n, o->requests);
	trace_free(t);
	fclose(f);
	free(places);
	free(shown);
}

static struct family_options
of(enum family family, uint64_t requests)
{
	struct family_options o;

	family_defaults(&o, family);
	o.requests = requests;
	return o;
}

static uint64_t
mean(const uint64_t *values)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < seen.n; i++)
		sum += values[i];
	return sum / seen.n;
}

/* Requests per second, times 100. */
static int64_t
rate(void)
{
	return (int64_t)seen.n * 100000 / seen.at[seen.n - 1];
}

/* 3 complete blocks of a prompt of 2,000 tokens are common. */
START_TEST(shared_has_one_prompt)
{
	struct family_options o = of(FAMILY_SHARED, 4000);
	size_t i;

	o.prompt = 2000;
	o.gap_us = 25000;
	read_family(&o);
	for (i = 0; i < seen.n; i++) {
		ck_assert_uint_eq(seen.first[i], 0);
		ck_assert_uint_eq(seen.known[i], i == 0 ? 0 : 3);
		ck_assert_uint_ge(seen.tokens[i], 2016);
	}
	ck_assert(mean(seen.tokens) > 2470 && mean(seen.tokens) < 2530);
	ck_assert(mean(seen.output) > 190 && mean(seen.output) < 210);
	ck_assert(rate() > 3800 && rate() < 4200);
}
END_TEST

START_TEST(documents_repeat)
{
	struct family_options o = of(FAMILY_DOCUMENTS, 3000);
	size_t asked[6] = { 0 }, i;

	read_family(&o);
	for (i = 0; i < seen.n; i++) {
		/* 57,000 tokens are 111 complete blocks. */
		ck_assert_uint_eq(seen.first[i] % 111, 0);
		ck_assert_uint_lt(seen.first[i] / 111, 6);
		ck_assert_uint_eq(seen.known[i],
		    asked[seen.first[i] / 111]++ == 0 ? 0 : 111);
	}
	for (i = 0; i < 6; i++)
		ck_assert(asked[i] > 420 && asked[i] < 580);
	ck_assert(rate() > 1130 && rate() < 1270);
}
END_TEST

/* The sum of 1, 1/2, 1/3 and 1/4 is 25/12: shares of .48, .24, .16, .12. */
START_TEST(documents_by_rank)
{
	struct family_options o = of(FAMILY_DOCUMENTS, 10000);
	size_t asked[4] = { 0 }, i;

	o.documents = 4;
	o.prompt = 512;
	o.popularity = FAMILY_ZIPF;
	read_family(&o);
	for (i = 0; i < seen.n; i++) {
		ck_assert_uint_lt(seen.first[i], 4);
		asked[seen.first[i]]++;
	}
	ck_assert(asked[0] > 4650 && asked[0] < 4950);
	ck_assert(asked[1] > 2270 && asked[1] < 2530);
	ck_assert(asked[2] > 1490 && asked[2] < 1710);
	ck_assert(asked[3] > 1100 && asked[3] < 1300);
}
END_TEST

START_TEST(lengths_have_their_means)
{
	struct family_options o = of(FAMILY_SHARED, 4000);

	o.prompt = 1024;
	o.private = 3000;
	o.output = 700;
	read_family(&o);
	ck_assert(mean(seen.tokens) > 3880 && mean(seen.tokens) < 4170);
	ck_assert(mean(seen.output) > 665 && mean(seen.output) < 735);
}
END_TEST

START_TEST(idle_documents_at_intervals)
{
	struct family_options o = of(FAMILY_IDLE_DOCUMENTS, 240);
	size_t i;

	read_family(&o);
	for (i = 0; i < seen.n; i++)
		ck_assert_int_eq(seen.at[i], 2000 * (int64_t)i);
	ck_assert(mean(seen.output) > 35 && mean(seen.output) < 65);
}
END_TEST

START_TEST(unshared_shares_nothing)
{
	struct family_options o = of(FAMILY_UNSHARED, 3000);
	size_t i;

	read_family(&o);
	for (i = 0; i < seen.n; i++)
		ck_assert_uint_eq(seen.known[i], 0);
	ck_assert(mean(seen.tokens) > 3800 && mean(seen.tokens) < 4200);
	ck_assert(rate() > 1900 && rate() < 2100);
}
END_TEST

/* 16,384 tokens are 32 blocks, new for each group. */
START_TEST(subagents_come_together)
{
	struct family_options o = of(FAMILY_SUBAGENTS, 9000);
	size_t i, group = 0, groups = 0, least = 99, most = 0;

	read_family(&o);
	for (i = 0; i < seen.n; i++) {
		if (i == 0 || seen.first[i] != seen.first[i - 1]) {
			ck_assert_uint_eq(seen.known[i], 0);
			least = i > 0 && group < least ? group : least;
			group = 0;
			groups++;
		} else {
			ck_assert_uint_eq(seen.known[i], 32);
			ck_assert_int_eq(seen.at[i], seen.at[i - 1]);
		}
		most = ++group > most ? group : most;
	}
	ck_assert_uint_eq(least, 5);
	ck_assert_uint_eq(most, 40);
	ck_assert(groups > 360 && groups < 440);
	ck_assert(rate() > 440 && rate() < 560);
}
END_TEST

/* Seconds with more than 30 requests are in bursts: means are 10 and 50. */
START_TEST(bursts_burst)
{
	enum { SECONDS = 2000 };
	struct family_options o = of(FAMILY_BURSTS, 20000);
	int each[SECONDS] = { 0 };
	int64_t quiet = 0, busy = 0, in_quiet = 0, in_busy = 0, i;

	read_family(&o);
	for (i = 0; i < (int64_t)seen.n; i++)
		if (seen.at[i] < SECONDS * 1000)
			each[seen.at[i] / 1000]++;
	for (i = 0; i < seen.at[seen.n - 1] / 1000 && i < SECONDS; i++) {
		*(each[i] > 30 ? &busy : &quiet) += 1;
		*(each[i] > 30 ? &in_busy : &in_quiet) += each[i];
	}
	ck_assert(in_quiet > 9 * quiet && in_quiet < 11 * quiet);
	ck_assert(in_busy > 45 * busy && in_busy < 55 * busy);
	ck_assert(busy > quiet / 12 && busy < quiet / 3);
}
END_TEST

/* Complete blocks of the turn before are known, and one prompt is common. */
START_TEST(chats_grow)
{
	struct family_options o = of(FAMILY_CHAT, 6000);
	size_t i, longer = 0;

	read_family(&o);
	for (i = 1; i < seen.n; i++) {
		ck_assert_uint_ge(seen.known[i], 1);
		ck_assert_uint_ge(seen.tokens[i], 1016);
		longer += seen.known[i] > 1;
	}
	ck_assert_uint_gt(longer, 3000);
	/* Slower at the beginning, when few chats run. */
	ck_assert(rate() > 850 && rate() < 1100);
}
END_TEST

/* Routers see some 300 of each turn's 2,048 tokens and more. */
START_TEST(images_are_unseen)
{
	struct family_options o = of(FAMILY_IMAGES, 3000);
	static uint64_t turns[MOST];
	size_t i, longer = 0;
	uint64_t n;

	memset(turns, 0, sizeof(turns));
	read_family(&o);
	for (i = 0; i < seen.n; i++) {
		ck_assert_uint_gt(seen.session[i], 0);
		ck_assert_uint_lt(seen.session[i], MOST);
		n = ++turns[seen.session[i]];
		/* less than a block: text fills whole ones */
		ck_assert_uint_le(seen.unseen[i], 2048 * n);
		ck_assert_uint_gt(seen.unseen[i], 2048 * n - 512);
		ck_assert(i == 0 || seen.known[i] >= 3 + (n - 1) * 4);
		ck_assert_uint_le(n, 12);
		longer += seen.shown[i] > 3;
	}
	ck_assert(longer > 1000 && longer < 2500);
	/* Slower at the beginning, as above. */
	ck_assert(rate() > 600 && rate() < 800);
}
END_TEST

/* 8,192 tokens are 16 blocks, of the session alone. */
START_TEST(openings_come_together)
{
	struct family_options o = of(FAMILY_OPENINGS, 6000);
	static uint64_t first[MOST], requests[MOST];
	static int64_t began[MOST];
	size_t i, sessions = 0, later = 0;
	uint64_t s;

	memset(requests, 0, sizeof(requests));
	read_family(&o);
	for (i = 0; i < seen.n; i++) {
		s = seen.session[i];
		ck_assert(s > 0 && s < MOST);
		if (requests[s]++ == 0) {
			first[s] = seen.first[i];
			began[s] = seen.at[i];
			sessions++;
		}
		ck_assert_uint_eq(seen.first[i], first[s]);
		ck_assert_uint_eq(seen.unseen[i], 0);
		later += requests[s] > 8;
		ck_assert((requests[s] <= 8) == (seen.at[i] == began[s]));
		ck_assert(requests[s] == 1 ? seen.known[i] == 0
		    : seen.known[i] >= 16);
	}
	ck_assert(sessions > 400 && sessions < 520);
	ck_assert(later > 1700 && later < 2800);
}
END_TEST

/*
 * Among 12 chats of 3 users the first ones are session 1 of user 0, 2 of user
 * 1, 3 of user 2, 4 of user 0 ..., and in round r each user goes on with its
 * chat r % 4. The first chats of a user have 1, 2, 3 and 4 turns, later ones
 * 10.
 */
START_TEST(users_go_round)
{
	enum { USERS = 3, OWN = 4, CHATS = USERS * OWN, ROUNDS = 100 };
	struct family_options o = of(FAMILY_USERS, USERS * ROUNDS);
	static size_t turns[MOST], last[MOST], place[MOST];
	size_t i, n, round, ended = 0;
	uint64_t s;

	memset(turns, 0, sizeof(turns));
	o.users = USERS;
	o.documents = CHATS + 2; /* the rest has no user */
	o.gap_us = 1000000;
	read_family(&o);
	for (i = 0; i < seen.n; i++) {
		round = i / USERS;
		/* of all users at once, at a fixed interval */
		ck_assert_int_ge(seen.at[i], 3000 * (int64_t)round);
		ck_assert_int_le(seen.at[i], 3000 * (int64_t)round + 50);
		for (n = round * USERS; n < i; n++)
			ck_assert_uint_ne(seen.session[n], seen.session[i]);
		s = seen.session[i];
		ck_assert(s > 0 && s < MOST);
		if (turns[s]++ == 0) {
			place[s] = round % OWN;
			ck_assert_uint_eq(seen.known[i], i == 0 ? 0 : 1);
			ck_assert_uint_ge(seen.tokens[i], 512 + 16);
		} else { /* it has grown, and its turn has come again */
			n = last[s];
			ck_assert_uint_eq(round, n / USERS + OWN);
			ck_assert_uint_eq(seen.known[i], seen.tokens[n] / 512);
			ck_assert_uint_ge(seen.tokens[i],
			    seen.tokens[n] + seen.output[n] + 16);
		}
		ck_assert_uint_eq(round % OWN, place[s]);
		ck_assert_uint_eq(seen.first[i], 0);
		ck_assert_uint_eq(seen.unseen[i], 0);
		last[s] = i;
	}
	for (s = 1; s < MOST && turns[s] > 0; s++) {
		if (s <= CHATS)
			ck_assert(turns[s] == 1 + place[s] &&
			    place[s] == (s - 1) / USERS);
		else if (last[s] / USERS + OWN < ROUNDS)
			ck_assert_uint_eq(turns[s], 10);
		ck_assert_uint_le(turns[s], 10);
		ended += last[s] / USERS + OWN < ROUNDS;
	}
	/* 24, 23, 22 and 21 turns after the first: 2 whole chats of each */
	ck_assert_uint_eq(ended, 3 * CHATS);
	ck_assert_uint_eq(s - 1, 4 * CHATS);
}
END_TEST

/* One user has a request each two seconds, of eight chats in turn. */
START_TEST(user_alone)
{
	struct family_options o = of(FAMILY_USERS, 400);
	size_t i;

	read_family(&o);
	for (i = 0; i < seen.n; i++) {
		ck_assert_int_ge(seen.at[i], 2000 * (int64_t)i);
		ck_assert_int_le(seen.at[i], 2000 * (int64_t)i + 50);
		if (i < 8)
			ck_assert_uint_eq(seen.session[i], i + 1);
	}
	ck_assert(mean(seen.output) > 40 && mean(seen.output) < 60);
}
END_TEST

/* --------------------------------------------------------- all of them --- */

static uint64_t
family_digest(const struct family_options *o)
{
	FILE *f = tmpfile();
	uint64_t digest = HALF_CHECKSUM;
	int c;

	ck_assert_int_eq(family_write(f, o), 0);
	rewind(f);
	while ((c = getc(f)) != EOF)
		digest = half_checksum(digest, (uint64_t)c);
	fclose(f);
	return digest;
}

/* The same bytes on every platform. */
START_TEST(families_same_everywhere)
{
	static const uint64_t digests[FAMILIES] = {
		[FAMILY_SHARED] = UINT64_C(0x4dcd791688265d76),
		[FAMILY_DOCUMENTS] = UINT64_C(0x38fc521548543295),
		[FAMILY_IDLE_DOCUMENTS] = UINT64_C(0x4ddd5b913ba265df),
		[FAMILY_UNSHARED] = UINT64_C(0x43cf008431f88494),
		[FAMILY_SUBAGENTS] = UINT64_C(0xcb1307c06cb81a5b),
		[FAMILY_BURSTS] = UINT64_C(0x6b3f1982bcb0823f),
		[FAMILY_CHAT] = UINT64_C(0x135e4f37e5b0f3f4),
		[FAMILY_IMAGES] = UINT64_C(0x11e06fcae208143d),
		[FAMILY_OPENINGS] = UINT64_C(0x9767db163921ee0d),
		[FAMILY_USERS] = UINT64_C(0xca21e6a9ff78d822)
	};
	struct family_options o = of((enum family)_i, 500);
	uint64_t digest = family_digest(&o);

	ck_assert_msg(digest == digests[_i], "%s: %016" PRIx64,
	    family_names[_i], digest);
	o.seed++;
	ck_assert(family_digest(&o) != digest);
}
END_TEST

START_TEST(families_extremes)
{
	struct family_options o = of((enum family)_i, 1);

	ck_assert_uint_gt(o.prompt, 0);
	ck_assert_uint_gt(o.gap_us, 0);
	read_family(&o);
	o.prompt = 1;
	o.requests = 300;
	o.gap_us = 1;
	o.documents = 1;
	o.popularity = FAMILY_ZIPF;
	o.private = o.output = 1;
	read_family(&o);
	o.documents = FAMILY_DOCUMENTS_MAX;
	o.requests = 10;
	read_family(&o);
	o.users = FAMILY_DOCUMENTS_MAX;
	read_family(&o);
	o.users = 1;
	o.documents = o.requests = 1;
	o.private = o.output = FAMILY_LENGTH_MAX;
	read_family(&o);
	o.requests = 10;
	o.private = o.output = 1;
	o.prompt = FAMILY_PROMPT_MAX;
	read_family(&o);
}
END_TEST

START_TEST(families_memory)
{
	unsigned long n;
	int result = -1;

	for (n = 1; result != 0 && n < 100; n++) {
		struct family_options o = of((enum family)_i, 3000);
		FILE *f = tmpfile();

		alloc_fail_at(n);
		result = family_write(f, &o);
		alloc_reset();
		fclose(f);
	}
	ck_assert(result == 0 && n > 2);
}
END_TEST

Suite *suite_families(void);

Suite *
suite_families(void)
{
	Suite *s = suite_create("families");
	TCase *c = tcase_create("families");

	tcase_add_test(c, draw_is_exponential);
	tcase_add_test(c, shared_has_one_prompt);
	tcase_add_test(c, documents_repeat);
	tcase_add_test(c, documents_by_rank);
	tcase_add_test(c, lengths_have_their_means);
	tcase_add_test(c, idle_documents_at_intervals);
	tcase_add_test(c, unshared_shares_nothing);
	tcase_add_test(c, subagents_come_together);
	tcase_add_test(c, bursts_burst);
	tcase_add_test(c, chats_grow);
	tcase_add_test(c, images_are_unseen);
	tcase_add_test(c, openings_come_together);
	tcase_add_test(c, users_go_round);
	tcase_add_test(c, user_alone);
	tcase_add_loop_test(c, families_same_everywhere, 0, FAMILIES);
	tcase_add_loop_test(c, families_extremes, 0, FAMILIES);
	tcase_add_loop_test(c, families_memory, 0, FAMILIES);
	suite_add_tcase(s, c);
	return s;
}
