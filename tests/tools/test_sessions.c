/* SPDX-License-Identifier: BSD-2-Clause */
/* test_sessions.c - sessions in a closed loop, by hand and on engines. */
#include "alloc.h"
#include "session_trace.h"
#include "sessions.h"
#include "sessions_drive.h"
#include "simulated.h"

#include <string.h>

#define S INT64_C(1000000000)

static struct session *
session_of(const char *text)
{
	char error[SESSION_ERROR_BYTES];
	FILE *f = tmpfile();
	struct session *s;

	ck_assert_int_ne(fputs(text, f), EOF);
	rewind(f);
	s = session_read(f, "s", error);
	ck_assert_msg(s != NULL, "%s", error);
	fclose(f);
	return s;
}

static struct sessions_options
loop_of(uint64_t active, uint64_t count)
{
	struct sessions_options o;

	sessions_defaults(&o);
	o.active = active;
	o.count = count;
	o.ramp_ns = 0;
	return o;
}

/* The next request is at `at` and has so many tokens; its ticket. */
static uint64_t
take(struct sessions *s, int64_t at, uint64_t tokens)
{
	struct trace_request q;

	ck_assert_int_eq(sessions_next(s), at);
	ck_assert_int_eq(sessions_take(s, &q), 0);
	ck_assert_uint_eq(q.tokens, tokens);
	return q.number;
}

/* --------------------------------------------------------------- agents --- */

#define ONE(t, in, rest) "{\"t\": " t ", \"in\": " in ", \"out\": 1, " \
	"\"hash_ids\": []" rest "}"

/* A request, two agents 2 and 5 s after its response, and another request. */
static const char family[] = "{\"requests\": ["
    ONE("0", "10", ", \"api_time\": 1") ","
    "{\"t\": 3, \"type\": \"subagent\", \"requests\": ["
    ONE("0", "21", ", \"think_time\": 0") ","
    ONE("9", "22", ", \"think_time\": 1") "]},"
    "{\"t\": 6, \"type\": \"subagent\", \"requests\": ["
    ONE("0", "31", ", \"think_time\": 0") "]},"
    ONE("20", "11", ", \"think_time\": 4") "]}";

/*
 *   main    0-1                       10--12
 *   agent         3-4   5----7
 *   agent               6-------10
 */
START_TEST(parent_waits_for_agents)
{
	struct session *one = session_of(family);
	struct sessions_options o = loop_of(1, 1);
	struct sessions *s = sessions_new(&one, 1, &o);
	struct sessions_figures f;
	uint64_t a, b;

	a = take(s, 0, 10);
	ck_assert_int_eq(sessions_next(s), SESSIONS_NEVER);
	ck_assert_int_eq(sessions_ended(s, a, 1 * S), 0);
	a = take(s, 3 * S, 21);
	ck_assert_int_eq(sessions_next(s), 6 * S);
	ck_assert_int_eq(sessions_ended(s, a, 4 * S), 0);
	a = take(s, 5 * S, 22);
	b = take(s, 6 * S, 31);
	ck_assert_int_eq(sessions_ended(s, a, 7 * S), 0);
	ck_assert_int_eq(sessions_next(s), SESSIONS_NEVER);
	ck_assert_int_eq(sessions_ended(s, b, 10 * S), 0);
	a = take(s, 10 * S, 11);
	ck_assert(!sessions_done(s));
	ck_assert_int_eq(sessions_ended(s, a, 12 * S), 0);
	ck_assert(sessions_done(s));
	ck_assert_int_eq(sessions_next(s), SESSIONS_NEVER);
	ck_assert_int_eq(sessions_measure(s, &f), 0);
	ck_assert_uint_eq(f.sessions, 1);
	ck_assert_uint_eq(f.requests, 5);
	/* 1 + 1 + 2 + 4 + 2 */
	ck_assert(f.wait_mean > 9.999 && f.wait_mean < 10.001);
	ck_assert(f.wait_p90 > 9.999 && f.wait_p90 < 10.001);
	ck_assert(f.length_mean > 11.999 && f.length_mean < 12.001);
	sessions_free(s);
	session_free(one);
}
END_TEST

/* The pause of a parent is longer than its agents run: 1 + 4. */
START_TEST(agents_within_a_pause)
{
	struct session *one = session_of(family);
	struct sessions_options o = loop_of(1, 1);
	struct sessions *s;
	uint64_t a, b;

	o.think_ns = S;
	s = sessions_new(&one, 1, &o);
	ck_assert_int_eq(sessions_ended(s, take(s, 0, 10), S), 0);
	/* No pause is longer than 1 s. */
	a = take(s, 2 * S, 21);
	b = take(s, 2 * S, 31);
	ck_assert_int_eq(sessions_ended(s, a, 2 * S), 0);
	ck_assert_int_eq(sessions_ended(s, b, 2 * S), 0);
	a = take(s, 3 * S, 22);
	ck_assert_int_eq(sessions_ended(s, a, 3 * S + S / 2), 0);
	take(s, 3 * S + S / 2, 11);
	sessions_free(s);
	session_free(one);
}
END_TEST

/* An agent without requests ends when it begins. */
START_TEST(empty_agents)
{
	struct session *one = session_of("{\"requests\": ["
	    "{\"t\": 3, \"type\": \"subagent\", \"requests\": []},"
	    ONE("9", "10", ", \"think_time\": 1") ","
	    "{\"t\": 3, \"type\": \"subagent\", \"requests\": []}]}");
	struct sessions_options o = loop_of(1, 2);
	struct sessions *s = sessions_new(&one, 1, &o);

	ck_assert_int_eq(sessions_ended(s, take(s, 3 * S, 10), 4 * S), 0);
	/* The second session begins when the first one ends. */
	ck_assert_int_eq(sessions_ended(s, take(s, 7 * S, 10), 8 * S), 0);
	ck_assert(sessions_done(s));
	sessions_free(s);
	session_free(one);
}
END_TEST

/* ------------------------------------------------------------- sessions --- */

#define COMMON "{\"block_size\": 512, \"tool_tokens\": 1000, " \
	"\"system_tokens\": 100, \"requests\": [{\"in\": 1600, \"out\": 1, " \
	"\"hash_ids\": [1, 2, 3]}]}"

/* Two complete blocks of 1,100 tokens are common; all else is new. */
START_TEST(repeats_with_fresh_ids)
{
	struct session *list[2] = { session_of(COMMON), session_of(COMMON) };
	struct sessions_options o = loop_of(1, 6);
	struct sessions *s = sessions_new(list, 2, &o);
	uint64_t ids[6][4];
	struct trace_request q;
	int i, k, m;

	for (i = 0; i < 6; i++) {
		ck_assert_int_eq(sessions_take(s, &q), 0);
		ck_assert_uint_eq(q.n_ids, 4);
		memcpy(ids[i], q.ids, sizeof(ids[i]));
		ck_assert_int_eq(sessions_ended(s, q.number, i * S), 0);
	}
	ck_assert(sessions_done(s));
	for (i = 0; i < 6; i++)
		for (k = 0; k < i; k++)
			for (m = 0; m < 4; m++)
				ck_assert((ids[i][m] == ids[k][m]) == (m < 2));
	sessions_free(s);
	session_free(list[0]);
	session_free(list[1]);
}
END_TEST

/* Three at a time: the fourth begins when one of them ends. */
START_TEST(active_at_a_time)
{
	struct session *one = session_of(COMMON);
	struct sessions_options o = loop_of(3, 5);
	struct sessions *s;
	struct trace_request q[3];
	int i;

	o.ramp_ns = 10 * S;
	s = sessions_new(&one, 1, &o);
	for (i = 0; i < 3; i++) {
		ck_assert_int_le(sessions_next(s), 10 * S);
		ck_assert_int_eq(sessions_take(s, &q[i]), 0);
	}
	ck_assert_int_eq(sessions_next(s), SESSIONS_NEVER);
	ck_assert_int_eq(sessions_ended(s, q[1].number, 20 * S), 0);
	ck_assert_int_eq(sessions_next(s), 20 * S);
	sessions_free(s);
	session_free(one);
}
END_TEST

/* -------------------------------------------------------------- engines --- */

static struct sessions_figures
drive(struct session *const *list, size_t n, const struct simulate_options *o,
    const struct sessions_options *loop, struct simulate_totals *totals)
{
	struct simulate_options closed = *o;
	struct sessions_figures f;
	struct sessions *s;
	struct setup u;

	closed.closed = true;
	begin(&u, &closed, 512);
	s = sessions_new(list, n, loop);
	ck_assert_int_eq(sessions_drive(s, u.s, u.prompt, &u.tokens, NULL,
	    NULL), KVR_OK);
	ck_assert(sessions_done(s));
	ck_assert_int_eq(sessions_measure(s, &f), 0);
	*totals = *simulate_totals(u.s);
	sessions_free(s);
	end(&u);
	return f;
}

static const char chat[] = "{\"block_size\": 512, \"requests\": ["
    "{\"in\": 700, \"out\": 3, \"hash_ids\": [1]},"
    "{\"in\": 1100, \"out\": 1, \"hash_ids\": [1, 2], \"think_time\": 1}]}";

/*
 * As in suite simulate, 700 tokens and 3 of output end at 80.33 ms. The next
 * prompt, sent 1 s later, hits 512 tokens; 588 are computed, in a step of 15.1
 * ms, 3 blocks and 29.4 ms.
 */
START_TEST(closed_loop_by_hand)
{
	struct session *one = session_of(chat);
	struct simulate_options o = options_of(_i, 1, 4096);
	struct sessions_options loop = loop_of(1, 1);
	struct simulate_totals t;
	struct sessions_figures f;

	o.check = true;
	f = drive(&one, 1, &o, &loop, &t);
	ck_assert_uint_eq(t.finished, 2);
	ck_assert_uint_eq(t.hit_tokens, 512);
	ck_assert_int_eq(t.end, S + 80330000 + 44515000);
	ck_assert(f.wait_mean > 0.1248449 && f.wait_mean < 0.1248451);
	session_free(one);
}
END_TEST

/* 700 tokens and an output of 400 are two complete blocks. */
START_TEST(known_outputs_hit)
{
	static const char *const texts[] = {
		"\"in\": 1200, \"out\": 1, \"hash_ids\": [1, 2]",
		"\"in\": 1099, \"out\": 1, \"hash_ids\": [1, 2]"
	};
	static const uint64_t hits[] = { 1024, 512 };
	struct simulate_options o = options_of(0, 1, 4096);
	struct sessions_options loop = loop_of(1, 1);
	struct simulate_totals t;
	struct session *one;
	char text[300];

	snprintf(text, sizeof(text), "{\"block_size\": 512, \"requests\": ["
	    "{\"in\": 700, \"out\": 400, \"hash_ids\": [1]}, {%s}]}",
	    texts[_i]);
	one = session_of(text);
	o.check = true;
	drive(&one, 1, &o, &loop, &t);
	ck_assert_uint_eq(t.hit_tokens, hits[_i]);
	session_free(one);
}
END_TEST

/* The delayed oracle's twin gets the same ids. */
START_TEST(known_outputs_of_the_past)
{
	struct session *one = session_of("{\"block_size\": 512, "
	    "\"requests\": [{\"in\": 700, \"out\": 400, \"hash_ids\": [1]}, "
	    "{\"in\": 1200, \"out\": 1, \"hash_ids\": [1, 2], "
	    "\"think_time\": 60}]}");
	struct simulate_options o = options_of(ORACLES, 1, 4096);
	struct sessions_options loop = loop_of(1, 1);
	struct simulate_totals t;

	o.event_delay_ns = S;
	drive(&one, 1, &o, &loop, &t);
	ck_assert_uint_eq(t.hit_tokens, 1024);
	ck_assert_uint_eq(t.predicted_tokens, 1024);
	session_free(one);
}
END_TEST

/* A prompt too large for the engines is refused, and its session goes on. */
START_TEST(refused_requests_end)
{
	struct session *one = session_of(chat);
	struct simulate_options o = options_of(_i, 1, 1024);
	struct sessions_options loop = loop_of(2, 4);
	struct simulate_totals t;

	o.check = true;
	drive(&one, 1, &o, &loop, &t);
	ck_assert_uint_eq(t.requests, 8);
	ck_assert_uint_eq(t.refused, 4);
	ck_assert_uint_eq(t.finished, 4);
	session_free(one);
}
END_TEST

static void
change(struct simulate_options *o, enum simulate_change_kind kind,
    uint32_t worker, int64_t at)
{
	struct simulate_change c = { at, 1, worker, kind };

	ck_assert(simulate_add_change(o, &c));
}

/*
 * One of two workers dies after 20 ms. The request starts over on the other,
 * with the ids of its output, so that the next one hits two blocks there.
 */
START_TEST(killed_requests_go_on)
{
	struct session *one = session_of("{\"block_size\": 512, "
	    "\"requests\": [{\"in\": 700, \"out\": 400, \"hash_ids\": [1]}, "
	    "{\"in\": 1200, \"out\": 1, \"hash_ids\": [1, 2]}]}");
	struct sessions_options loop = loop_of(1, 1);
	int64_t later = 0;
	uint64_t retried = 0;
	uint32_t w;

	for (w = 0; w < 2; w++) {
		struct simulate_options o = options_of(_i, 2, 0);
		struct simulate_totals t;

		o.check = true;
		change(&o, SIMULATE_KILL, w, S / 50);
		drive(&one, 1, &o, &loop, &t);
		ck_assert_uint_eq(t.finished, 2);
		ck_assert_uint_eq(t.hit_tokens, 1024);
		retried += t.retried;
		later += t.retried > 0 ? t.end : -t.end;
	}
	ck_assert_uint_eq(retried, 1);
	ck_assert_int_eq(later, S / 50);
	session_free(one);
}
END_TEST

/*
 * The second request, sent at 1.08 s, is too large for the worker that is
 * left. The session ends.
 */
START_TEST(lost_requests_end)
{
	struct session *one = session_of(chat);
	struct simulate_options o = options_of(_i, 2, 0);
	struct sessions_options loop = loop_of(1, 1);
	struct simulate_totals t;

	o.check = true;
	o.n_capacities = 2;
	o.capacities[0] = 2048;
	o.capacities[1] = 1024;
	change(&o, SIMULATE_JOIN, 1, S * 109 / 100);
	change(&o, SIMULATE_KILL, 0, S * 110 / 100);
	drive(&one, 1, &o, &loop, &t);
	ck_assert_uint_eq(t.finished, 1);
	ck_assert_uint_eq(t.lost, 1);
	session_free(one);
}
END_TEST

START_TEST(sessions_same_seed_same_result)
{
	struct session *list[3] = { session_of(chat), session_of(family),
	    session_of(COMMON) };
	struct simulate_options o = options_of(_i % KINDS, 3, 60000);
	struct sessions_options loop = loop_of(4, 20);
	struct simulate_totals a, b, c;

	fleets[_i / KINDS](&o);
	loop.ramp_ns = 5 * S;
	drive(list, 3, &o, &loop, &a);
	drive(list, 3, &o, &loop, &b);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	loop.seed = 2;
	drive(list, 3, &o, &loop, &c);
	ck_assert_int_ne(a.end, c.end);
	session_free(list[0]);
	session_free(list[1]);
	session_free(list[2]);
}
END_TEST

START_TEST(sessions_memory)
{
	struct session *one = session_of(COMMON);
	struct sessions_options o = loop_of(2, 5);
	struct sessions *s = NULL;
	unsigned long n;

	for (n = 1; s == NULL && n < 20; n++) {
		alloc_fail_at(n);
		s = sessions_new(&one, 1, &o);
		alloc_reset();
	}
	ck_assert(s != NULL && n > 4);
	sessions_free(s);
	session_free(one);
}
END_TEST

Suite *suite_sessions(void);

Suite *
suite_sessions(void)
{
	Suite *s = suite_create("sessions");
	TCase *c = tcase_create("sessions");

	tcase_add_test(c, parent_waits_for_agents);
	tcase_add_test(c, agents_within_a_pause);
	tcase_add_test(c, empty_agents);
	tcase_add_test(c, repeats_with_fresh_ids);
	tcase_add_test(c, active_at_a_time);
	tcase_add_loop_test(c, closed_loop_by_hand, 0, KINDS);
	tcase_add_loop_test(c, known_outputs_hit, 0, 2);
	tcase_add_test(c, known_outputs_of_the_past);
	tcase_add_loop_test(c, refused_requests_end, 0, KINDS);
	tcase_add_loop_test(c, killed_requests_go_on, 0, KINDS);
	tcase_add_loop_test(c, lost_requests_end, 0, KINDS);
	tcase_add_loop_test(c, sessions_same_seed_same_result, 0,
	    KINDS * FLEETS);
	tcase_add_test(c, sessions_memory);
	suite_add_tcase(s, c);
	return s;
}
