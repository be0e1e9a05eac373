/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_window.c - places to resume for engines with windows in some layers.
 *
 * A block is one token. Predictions are read through kvr_candidates and
 * compared with a table of the texts that a worker was sent, which has no
 * tree.
 */
#include "window.h"
#include "worker.h"

#include "inner.h"

#include <stdio.h>

static struct kvr_worker
facts_of(uint32_t mode, uint32_t window)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.window_mode = mode;
	f.window_tokens = window;
	return f;
}

static void
set_mode(uint32_t worker, uint32_t mode, uint32_t window)
{
	struct kvr_worker f = facts_of(mode, window);

	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

/* Tokens of the current prompt that the worker is predicted to reuse. */
static uint64_t
predicted(uint32_t worker)
{
	struct kvr_candidate c[WORKERS_MAX];
	size_t i, n;

	ck_assert_int_eq(kvr_candidates(k, p, NULL, k->region->clock, c,
	    sizeof(c[0]), WORKERS_MAX, &n), KVR_OK);
	for (i = 0; i < n; i++)
		if (c[i].worker == id[worker])
			return c[i].overlap_tokens;
	ck_abort();
}

#define ck_reuse(worker, text, want) do { \
	region_sound(); \
	say(text); \
	ck_assert_uint_eq(predicted(worker), (want)); \
} while (0)

/* --------------------------------------------------------------- marks --- */

/* Without the fact nothing changes: extended in place, all of it counts. */
START_TEST(full)
{
	set_mode(0, KVR_WINDOW_FULL, 2);
	observe(0, "abcd", 1);
	observe(0, "abcdefg", 2);
	ck_tree("abcdefg:0");
	ck_reuse(0, "abcdefgh", 7);
	ck_reuse(0, "abcdeX", 5);
}
END_TEST

/* A longer path counts as far as the end of the prompt in it. */
START_TEST(end_inside_a_path)
{
	set_mode(0, KVR_WINDOW_BOUNDARY, 2);
	observe(0, "abcd", 1);
	observe(0, "abcdefg", 2);
	ck_tree("abcd:0(efg:0)");
	ck_reuse(0, "abcdefgh", 7);
	ck_reuse(0, "abcdefX", 4);
	ck_reuse(0, "abcX", 0);
	ck_reuse(1, "abcdefgh", 0);
}
END_TEST

/* A path that is refreshed, merged or seen by another keeps the mark. */
START_TEST(refreshed)
{
	uint32_t i;

	set_mode(0, KVR_WINDOW_BOUNDARY, 2);
	set_mode(1, KVR_WINDOW_FULL, 0);
	observe(0, "abcd", 1);
	observe(1, "abcdefgh", 1);
	for (i = 2; i < 6; i++) {
		observe(0, "abcdefgh", i);
		observe(1, "abcdefgh", i);
	}
	ck_reuse(0, "abcdefX", 4);
	ck_reuse(1, "abcdefX", 6);
}
END_TEST

/* The engine keeps a tail where a prompt parts from the cache, from then on. */
START_TEST(parting)
{
	set_mode(0, KVR_WINDOW_BOUNDARY, 2);
	observe(0, "systemone", 1);
	ck_reuse(0, "systemtwo", 0);
	observe(0, "systemtwo", 2);
	ck_reuse(0, "systemthree", 6);
	ck_reuse(0, "systemfour", 6);
	ck_reuse(0, "systX", 0);
}
END_TEST

/* The same by leases, which first only pin. An answer is no end. */
START_TEST(leases)
{
	uint64_t one, two;

	set_mode(0, KVR_WINDOW_BOUNDARY, 2);
	one = reserve(0, "systemone", 1);
	two = reserve(0, "systemtwo", 1);
	commit(one, 2);
	ck_reuse(0, "systemoneX", 9);
	ck_reuse(0, "systemtX", 0);
	commit(two, 3);
	ck_reuse(0, "systemX", 6);
	say("systemoneanswer");
	ck_assert_int_eq(kvr_lease_extend(k, one, p, 4, 0), KVR_OK);
	finish(one, 5);
	finish(two, 6);
	ck_reuse(0, "systemoneanswerX", 9);
	ck_reuse(0, "systemtwoX", 9);
	ck_tree("system:0(one:0(answer:0) two:0)");
}
END_TEST

/* A request that is given up marks nothing. */
START_TEST(given_up)
{
	set_mode(0, KVR_WINDOW_BOUNDARY, 2);
	observe(0, "systemone", 1);
	give_up(reserve(0, "systemtwo", 2), 3);
	ck_reuse(0, "systemX", 0);
}
END_TEST

/* With the blocks before it a mark is lost: they are evicted first. */
START_TEST(evicted)
{
	struct kvr_worker f = facts_of(KVR_WINDOW_BOUNDARY, 2);

	f.capacity_tokens = 10;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	finish(reserve(0, "abcd", 1), 2);
	finish(reserve(0, "abcdefgh", 3), 4);
	ck_reuse(0, "abcdefghX", 8);
	finish(reserve(0, "vwx", 5), 6);
	say("abcdefghX");
	ck_assert_uint_eq(overlap(0, k->region->clock), 7);
	ck_reuse(0, "abcdefghX", 4);
	/* it is back, but only as far as it was computed again */
	finish(reserve(0, "abcdefgX", 7), 8);
	ck_reuse(0, "abcdefgY", 7);
}
END_TEST

/* All that is no longer than a window is its own tail. */
START_TEST(short_paths)
{
	set_mode(0, KVR_WINDOW_BOUNDARY, 8);
	observe(0, "abcdefgh", 1);
	ck_reuse(0, "abcX", 3);
	observe(0, "stuvwxyza", 1);
	ck_reuse(0, "stuX", 0);
}
END_TEST

/* Multiples of the interval are kept, and prefixes end at the alignment. */
START_TEST(interval_and_alignment)
{
	struct kvr_worker f = facts_of(KVR_WINDOW_BOUNDARY, 2);

	f.window_interval = 4;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	f.window_interval = 0;
	f.window_align = 4;
	ck_assert_int_eq(kvr_worker_set(k, id[1], &f), KVR_OK);
	observe(0, "abcdefghijk", 1);
	observe(1, "abcdefghijk", 1);
	ck_reuse(0, "abcdefghijX", 8);
	ck_reuse(0, "abcdefghijkX", 11);
	ck_reuse(1, "abcdefghijX", 0);
	ck_reuse(1, "abcdefghijkX", 8);
	ck_reuse(1, "abcdefghijk", 8);
}
END_TEST

/* ------------------------------------------------------ the other modes --- */

/* All or nothing: anything counts until the end is lost. */
START_TEST(dense)
{
	struct kvr_worker f = facts_of(KVR_WINDOW_DENSE, 2);

	f.capacity_tokens = 20;
	f.window_layers = 100;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	finish(reserve(0, "abcd", 1), 2);
	finish(reserve(0, "abcdefgh", 3), 4);
	ck_assert_uint_eq(slot_at(k, 0)->anonymous, 8);
	ck_reuse(0, "abcdefX", 6);
	ck_reuse(0, "abcdefghX", 8);
	finish(reserve(0, "uvwx", 5), 6);
	finish(reserve(0, "lmno", 7), 8);
	say("abcdefghX");
	ck_assert_uint_lt(overlap(0, k->region->clock), 8);
	ck_assert_uint_gt(overlap(0, k->region->clock), 0);
	ck_reuse(0, "abcdefghX", 0);
	ck_reuse(0, "uvwxX", 4);
}
END_TEST

/* A path with a lost end keeps the part that another one has used. */
START_TEST(dense_shared)
{
	struct kvr_worker f = facts_of(KVR_WINDOW_DENSE, 2);

	f.capacity_tokens = 20;
	f.window_layers = 100;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	finish(reserve(0, "systaaaa", 1), 2);
	finish(reserve(0, "systbbbbbbb", 3), 4);
	say("systaaaaX");
	ck_assert_uint_eq(overlap(0, k->region->clock), 6);
	ck_reuse(0, "systaaaaX", 4);
	ck_reuse(0, "systbbbbbbbX", 11);
	finish(reserve(0, "uvwxyz", 5), 6);
	ck_reuse(0, "systaaaaX", 0);
	ck_reuse(0, "uvwxyzX", 6);
}
END_TEST

/* A small memory of tails forgets them before the blocks are evicted. */
START_TEST(dual)
{
	struct kvr_worker f = facts_of(KVR_WINDOW_DUAL, 5);
	char text[] = "..........";
	char c;

	f.window_capacity = 12; /* three tails of four tokens */
	f.retain = KVR_RETAIN_CAPACITY;
	f.capacity_tokens = 1000;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	for (c = 'a'; c < 'a' + 7; c++) {
		memset(text, c, strlen(text));
		finish(reserve(0, text, c), c);
	}
	ck_reuse(0, "ggggggggggX", 10);
	ck_reuse(0, "eeeeeeeeeeX", 10);
	ck_reuse(0, "aaaaaaaaaaX", 0);
	say("aaaaaaaaaaX");
	ck_assert_uint_eq(overlap(0, k->region->clock), 10);
}
END_TEST

/* ---------------------------------------------------------------- room --- */

/* Tails take room, also those of requests that run. */
START_TEST(tails_take_room)
{
	struct kvr_worker f = facts_of(KVR_WINDOW_BOUNDARY, 3);
	uint64_t lease;

	f.capacity_tokens = 20;
	f.window_layers = 500;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	finish(reserve(0, "abcdefgh", 1), 2);
	ck_assert_uint_eq(slot_at(k, 0)->anonymous, 10); /* 5 * 2 */
	ck_reuse(0, "abcdefghX", 8);
	lease = reserve(0, "wxyz", 3);
	ck_assert_uint_eq(slot_at(k, 0)->anonymous, 0);
	ck_reuse(0, "abcdefX", 0);
	finish(lease, 4);
}
END_TEST

/* --------------------------------------------------------------- facts --- */

START_TEST(facts)
{
	struct kvr_worker f = facts_of(KVR_WINDOW_DUAL, 1024), g;

	f.window_align = 64;
	f.window_interval = 4096;
	f.window_layers = 10000;
	f.window_capacity = UINT64_MAX;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	memset(&g, 0, sizeof(g));
	g.size = sizeof(g);
	ck_assert_int_eq(kvr_worker_get(k, id[0], &g), KVR_OK);
	ck_assert_mem_eq(&f, &g, sizeof(f));
	f.window_layers = 10001;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_EINVAL);
	f = facts_of(KVR_WINDOW_DUAL + 1, 1);
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_EINVAL);
	f = facts_of(KVR_WINDOW_BOUNDARY, 0);
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_EINVAL);
	f = facts_of(KVR_WINDOW_FULL, 0);
	f.window_reserved = 1;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_EINVAL);
}
END_TEST

/* A reset worker keeps its facts, and nothing else. */
START_TEST(reset)
{
	set_mode(0, KVR_WINDOW_BOUNDARY, 2);
	observe(0, "abcd", 1);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_reuse(0, "abcdX", 0);
	observe(0, "abcdef", 2);
	ck_reuse(0, "abcdX", 0);
	ck_reuse(0, "abcdefX", 6);
}
END_TEST

/* kvr_check finds a mark on a lost end, and an unknown mode. */
START_TEST(damaged)
{
	struct kvr_worker f = facts_of(KVR_WINDOW_BOUNDARY, 2);
	struct slot *s = slot_at(k, id_slot(id[0]));
	struct entry *h;

	f.capacity_tokens = 6;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	finish(reserve(0, "abcdef", 1), 2);
	finish(reserve(0, "xyz", 3), 4);
	h = entry_at(k, cover_find(k, child_of(0, 'a'), id_slot(id[0])));
	ck_assert_uint_eq(h->trimmed, 3);
	ck_assert_uint_eq(h->flags & ENTRY_MARKED, 0);
	h->flags |= ENTRY_MARKED;
	ck_assert_int_eq(kvr_check(k), KVR_ECORRUPT);
	h->flags ^= ENTRY_MARKED | ENTRY_WHOLE;
	ck_assert_int_eq(kvr_check(k), KVR_ECORRUPT);
	h->flags &= (uint8_t)~ENTRY_WHOLE;
	s->window.mode = KVR_WINDOW_DUAL + 1;
	ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
	worker_mend(k);
	ck_assert_uint_eq(s->window.mode, KVR_WINDOW_FULL);
	s->window.mode = KVR_WINDOW_BOUNDARY;
	load_recount(k, id_slot(id[0]));
	region_sound();
}
END_TEST

/* Numbers of leases that there cannot be come to more than a word has. */
START_TEST(damaged_sums_end)
{
	struct slot *s = slot_at(k, id_slot(id[0])), before = *s;

	s->window.mode = KVR_WINDOW_DENSE;
	s->window.tokens = UINT32_MAX;
	s->window.layers = UINT16_MAX;
	s->leases = 1U << 31;
	s->reading = UINT64_C(1) << 63;
	ck_assert_uint_eq(window_running(k, id_slot(id[0])),
	    UINT64_C(1) << 62);
	*s = before;
}
END_TEST

/* -------------------------------------------------------------- reports --- */

/* Tokens that the engine cannot use are no evidence of a loss. */
START_TEST(not_lost)
{
	struct kvr_report r = { .size = sizeof(r), .kind = KVR_REPORT_VALUE };
	struct kvr_worker_stats s;
	uint32_t i;

	set_mode(0, KVR_WINDOW_BOUNDARY, 2);
	finish(reserve(0, "abcdefgh", 1), 2);
	for (i = 3; i < 40; i++) {
		r.cached_tokens = 8;
		ck_assert_int_eq(kvr_lease_finish(k, reserve(0, "abcdefghX",
		    i), &r, i, 0), KVR_OK);
	}
	say("abcdefghX");
	ck_assert_uint_ge(predicted(0), 7); /* by age, now */
	s = worker_stats(0);
	ck_assert_uint_eq(s.calibration.over_tokens, 0);
	for (i = 40; i < 66; i++) {
		char text[] = "abcd.123";

		text[4] = (char)('A' + i - 40);
		r.cached_tokens = i == 40 ? 0 : 4;
		ck_assert_int_eq(kvr_lease_finish(k, reserve(0, text, i), &r,
		    i, 0), KVR_OK);
	}
	s = worker_stats(0);
	ck_assert_uint_eq(s.calibration.over_tokens, 0);
	ck_assert_int_eq(s.retain, KVR_RETAIN_FEEDBACK);
}
END_TEST

/* ------------------------------------------------------------ by chance --- */

enum { TEXTS = 60, TEXT = 24 };

struct sent {
	char texts[TEXTS][TEXT];
	uint32_t n;
	char marks[2 * TEXTS][TEXT];
	uint32_t n_marks;
};

static uint32_t
common(const char *a, const char *b)
{
	uint32_t n = 0;

	while (a[n] != '\0' && a[n] == b[n])
		n++;
	return n;
}

static uint32_t
longest(const struct sent *s, const char *text)
{
	uint32_t i, n, most = 0;

	for (i = 0; i < s->n; i++) {
		n = common(s->texts[i], text);
		most = n > most ? n : most;
	}
	return most;
}

/* Returns the last mark in the worker's prefix, before the last token. */
static uint32_t
resumable(const struct sent *s, const char *text)
{
	uint32_t i, n, most = 0, has = longest(s, text);

	for (i = 0; i < s->n_marks; i++) {
		n = (uint32_t)strlen(s->marks[i]);
		if (n <= has && n > most && common(s->marks[i], text) == n)
			most = n;
	}
	return most < strlen(text) ? most : (uint32_t)strlen(text) - 1;
}

static void
note_mark(struct sent *s, const char *text, uint32_t n)
{
	ck_assert_uint_lt(s->n_marks, 2 * TEXTS);
	memcpy(s->marks[s->n_marks], text, n);
	s->marks[s->n_marks++][n] = '\0';
}

static void
note_sent(struct sent *s, const char *text)
{
	uint32_t has = longest(s, text);

	if (has > 0)
		note_mark(s, text, has);
	note_mark(s, text, (uint32_t)strlen(text));
	ck_assert_uint_lt(s->n, TEXTS);
	memcpy(s->texts[s->n++], text, strlen(text) + 1);
}

static void
any_text(char text[TEXT], char last)
{
	uint32_t i, n = 1 + pick(TEXT - 2);

	for (i = 0; i < n; i++)
		text[i] = (char)('a' + (pick(5) == 0));
	text[n - 1] = pick(4) == 0 ? last : text[n - 1];
	text[n] = '\0';
}

/* Sends it by one of the calls that record it. */
static void
send_it(uint32_t worker, const char *text, int64_t now)
{
	uint64_t lease;
	char answer[TEXT + 4];

	if (pick(3) == 0) {
		observe(worker, text, now);
		return;
	}
	lease = reserve(worker, text, now);
	commit(lease, now);
	if (pick(2) == 0) {
		/* letters that no prompt has */
		snprintf(answer, sizeof(answer), "%sxy", text);
		say(answer);
		ck_assert_int_eq(kvr_lease_extend(k, lease, p, now, 0),
		    KVR_OK);
	}
	finish(lease, now);
}

START_TEST(by_a_table)
{
	static struct sent sent[WORKERS];
	uint32_t i, w, round;
	char text[TEXT];

	by_chance();
	memset(sent, 0, sizeof(sent));
	for (w = 0; w < 3; w++)
		set_mode(w, w == 2 ? KVR_WINDOW_DUAL : KVR_WINDOW_BOUNDARY,
		    1);
	for (i = 0; i < TEXTS - 1; i++) {
		w = pick(WORKERS);
		any_text(text, 'c');
		send_it(w, text, 1);
		note_sent(&sent[w], text);
		must(kvr_check(k) == KVR_OK);
		for (round = 0; round < 10; round++) {
			any_text(text, 'd');
			say(text);
			for (w = 0; w < WORKERS; w++)
				must(predicted(w) == (w < 3
				    ? resumable(&sent[w], text)
				    : longest(&sent[w], text)));
		}
	}
}
END_TEST

Suite *
suite_window(void)
{
	Suite *s = suite_create("window");
	TCase *t = small_case(s, "window");

	tcase_add_test(t, full);
	tcase_add_test(t, end_inside_a_path);
	tcase_add_test(t, refreshed);
	tcase_add_test(t, parting);
	tcase_add_test(t, leases);
	tcase_add_test(t, given_up);
	tcase_add_test(t, evicted);
	tcase_add_test(t, short_paths);
	tcase_add_test(t, interval_and_alignment);
	tcase_add_test(t, dense);
	tcase_add_test(t, dense_shared);
	tcase_add_test(t, dual);
	tcase_add_test(t, tails_take_room);
	tcase_add_test(t, facts);
	tcase_add_test(t, reset);
	tcase_add_test(t, damaged);
	tcase_add_test(t, damaged_sums_end);
	tcase_add_test(t, not_lost);
	tcase_add_loop_test(t, by_a_table, 0, 20);
	return s;
}
