/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_resumed.c - a lease is extended by a resumed prompt as by the whole one.
 */
#include "lease.h"

#include "inner.h"

enum { UNITS_MAX = 400, TURNS = 40, LEASES = 6 };

/* Two regions with the same history but for that. */
static struct twin {
	struct kvr *k;
	struct kvr_prompt *p;
	uint64_t worker[2], lease[LEASES];
} twins[2];

/* The prompt that a lease was opened with, and its saved state. */
static struct {
	uint32_t units[UNITS_MAX];
	size_t n, media, saved_at, saved_bytes;
	unsigned char saved[1024];
} talks[LEASES];

static const uint64_t picture[] = { 3, 1 };

static void
twins_make(int i)
{
	struct kvr_options o = small_options();

	o.unit = (uint32_t)i & 1;
	o.eagle = (uint32_t)i >> 1 & 1 && o.unit == KVR_UNIT_TOKENS;
	o.block_size = 1 + (uint32_t)i;
	o.max_prompt_blocks = i < 6 ? KVR_AUTO : 20;
	for (struct twin *t = twins; t < twins + 2; t++) {
		ck_assert_int_eq(kvr_new(&o, &t->k), KVR_OK);
		ck_assert_int_eq(kvr_prompt_new(t->k, &t->p), KVR_OK);
		for (size_t w = 0; w < 2; w++)
			ck_assert_int_eq(kvr_worker_add(t->k, &"ab"[w], 1,
			    NULL, &t->worker[w]), KVR_OK);
	}
}

static void
twins_end(void)
{
	for (struct twin *t = twins; t < twins + 2; t++) {
		kvr_prompt_free(t->p);
		kvr_free(t->k);
	}
}

static int
give(struct twin *t, const uint32_t *units, size_t n)
{
	unsigned char text[UNITS_MAX];

	if (t->p->rule.unit == KVR_UNIT_TOKENS)
		return kvr_prompt_tokens(t->p, units, n);
	for (size_t i = 0; i < n; i++)
		text[i] = (unsigned char)units[i];
	return kvr_prompt_bytes(t->p, text, n);
}

static void
give_talk(struct twin *t, size_t talk, size_t n)
{
	must(kvr_prompt_begin(t->p, NULL) == KVR_OK);
	must(kvr_prompt_media(t->p, talks[talk].media, picture, 2) == KVR_OK);
	must(give(t, talks[talk].units, n) == KVR_OK);
	must(kvr_prompt_end(t->p, NULL) == KVR_OK);
}

static void
say_more(size_t talk, size_t more)
{
	while (more-- > 0 && talks[talk].n < UNITS_MAX)
		talks[talk].units[talks[talk].n++] = pick(8) == 0;
}

/* The order of a walk differs: each region has a key of its own for tables. */
static int
by_place(const void *a, const void *b)
{
	const struct kvr_entry *x = a, *y = b;

	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return (x->worker > y->worker) - (x->worker < y->worker);
}

/* The twins have the same entries, counts and loads, and match alike. */
static void
ck_twins(int64_t now)
{
	struct kvr_entry entry[2][256];
	struct kvr_overlap found[2][2];
	struct kvr_worker_stats s[2];
	size_t n[2], count[2];

	for (size_t i = 0; i < 2; i++) {
		uint64_t cursor = 0;

		must(kvr_check(twins[i].k) == KVR_OK);
		must(kvr_entries(twins[i].k, &cursor, now, entry[i],
		    sizeof(entry[i][0]), 256, &n[i]) == KVR_OK);
		must(cursor == 0);
		qsort(entry[i], n[i], sizeof(entry[i][0]), by_place);
		s[i].size = sizeof(s[i]);
		must(kvr_worker_stats_get(twins[i].k, twins[i].worker[0],
		    &s[i]) == KVR_OK);
		give_talk(&twins[i], 0, talks[0].n);
		must(kvr_match(twins[i].k, twins[i].p, now, found[i],
		    sizeof(found[i][0]), 2, &count[i]) == KVR_OK);
	}
	must(n[0] == n[1] && count[0] == count[1]);
	must(memcmp(entry[0], entry[1], n[0] * sizeof(entry[0][0])) == 0);
	must(memcmp(&s[0], &s[1], sizeof(s[0])) == 0);
	must(memcmp(found[0], found[1], count[0] *
	    sizeof(found[0][0])) == 0);
}

static void
open_talk(size_t i, int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };
	size_t worker = pick(2);

	talks[i].n = 0;
	talks[i].media = pick(30);
	say_more(i, pick(100));
	for (struct twin *t = twins; t < twins + 2; t++) {
		give_talk(t, i, talks[i].n);
		if (talks[i].n == 0)
			return;
		must(kvr_lease_open_on(t->k, t->p, NULL, t->worker[worker],
		    now, &d) == KVR_OK);
		t->lease[i] = d.lease;
		must(kvr_lease_commit(t->k, d.lease, now, 0) == KVR_OK);
	}
	talks[i].saved_at = talks[i].n;
	talks[i].saved_bytes = kvr_prompt_saved_bytes(twins[1].p);
	must(kvr_prompt_save(twins[1].p, talks[i].saved,
	    sizeof(talks[i].saved)) == KVR_OK);
}

/* One twin makes the prompt again; the other resumes its saved state. */
static void
extend_talk(size_t i, int64_t now)
{
	struct twin *t = &twins[1];
	size_t at = talks[i].saved_at;

	say_more(i, pick(60));
	give_talk(&twins[0], i, talks[i].n);
	must(kvr_lease_extend(twins[0].k, twins[0].lease[i], twins[0].p, now,
	    0) == KVR_OK);
	must(kvr_prompt_resume(t->p, talks[i].saved,
	    talks[i].saved_bytes) == KVR_OK);
	must(give(t, talks[i].units + at, talks[i].n - at) == KVR_OK);
	must(kvr_prompt_end(t->p, NULL) == KVR_OK);
	must(kvr_lease_extend(t->k, t->lease[i], t->p, now, 0) == KVR_OK);
	if (pick(2) == 0)
		return;
	talks[i].saved_at = talks[i].n;
	talks[i].saved_bytes = kvr_prompt_saved_bytes(t->p);
	must(kvr_prompt_save(t->p, talks[i].saved,
	    sizeof(talks[i].saved)) == KVR_OK);
}

static void
finish_talk(size_t i, int64_t now)
{
	for (struct twin *t = twins; t < twins + 2; t++) {
		must(kvr_lease_finish(t->k, t->lease[i], NULL, now, 0) ==
		    KVR_OK);
		t->lease[i] = 0;
	}
}

START_TEST(same_as_whole)
{
	uint64_t extended = 0;

	by_chance();
	memset(twins, 0, sizeof(twins));
	twins_make(_i);
	for (int64_t now = 1; now < TURNS * LEASES; now++) {
		size_t i = pick(LEASES);

		if (twins[0].lease[i] == 0)
			open_talk(i, now);
		else if (pick(4) == 0)
			finish_talk(i, now);
		else
			extend_talk(i, now), extended++;
		ck_twins(now);
	}
	ck_assert_uint_gt(extended, 0);
	twins_end();
}
END_TEST

/* -------------------------------------------------------------- refused --- */

/* Resumes `text` where its first `n` letters end. */
static struct kvr_prompt *
resumed(const char *text, size_t n)
{
	unsigned char saved[128];
	uint32_t token;
	size_t bytes;

	say(text);
	ck_assert_int_eq(kvr_prompt_begin(p, NULL), KVR_OK);
	for (size_t i = 0; text[i] != '\0'; i++) {
		if (i == n) {
			ck_assert_int_eq(kvr_prompt_end(p, NULL), KVR_OK);
			bytes = kvr_prompt_saved_bytes(p);
			ck_assert_int_eq(kvr_prompt_save(p, saved,
			    sizeof(saved)), KVR_OK);
			ck_assert_int_eq(kvr_prompt_resume(p, saved, bytes),
			    KVR_OK);
		}
		token = (unsigned char)text[i];
		ck_assert_int_eq(kvr_prompt_tokens(p, &token, 1), KVR_OK);
	}
	ck_assert_int_eq(kvr_prompt_end(p, NULL), KVR_OK);
	return p;
}

/* It may be so short that nothing is missing: its length does not matter. */
START_TEST(only_for_extensions)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_overlap o;
	struct kvr_candidate c;
	size_t n;

	observe(0, "abcd", 1);
	resumed("abcdef", (size_t)_i * 4);
	ck_assert_int_eq(kvr_match(k, p, 2, &o, sizeof(o), 1, &n), KVR_ESTATE);
	ck_assert_int_eq(kvr_route(k, p, NULL, 2, &d), KVR_ESTATE);
	ck_assert_int_eq(kvr_choose(k, p, NULL, NULL, sizeof(o), 0, 2, &d),
	    KVR_ESTATE);
	ck_assert_int_eq(kvr_candidates(k, p, NULL, 2, &c, sizeof(c), 1, &n),
	    KVR_ESTATE);
	ck_assert_int_eq(kvr_observe(k, p, id[0], 2, 0, NULL), KVR_ESTATE);
	ck_assert_int_eq(kvr_lease_open(k, p, NULL, 2, &d), KVR_ESTATE);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], 2, &d),
	    KVR_ESTATE);
	ck_tree("abcd:0");
}
END_TEST

static int
extend(uint64_t lease, const char *text, size_t n, int64_t now)
{
	return kvr_lease_extend(k, lease, resumed(text, n), now, 0);
}

START_TEST(others_prompts)
{
	uint64_t lease = reserve(0, "abcd", 1);
	uint32_t token = 'x';

	commit(lease, 1);
	ck_assert_int_eq(extend(lease, "abcXyz", 4, 2), KVR_EMISMATCH);
	ck_assert_int_eq(extend(lease, "abXdyz", 4, 2), KVR_EMISMATCH);
	ck_assert_int_eq(extend(lease, "abc", 2, 2), KVR_EMISMATCH);
	resumed("abcde", 4);
	ck_assert_int_eq(kvr_prompt_tokens(p, &token, 1), KVR_OK);
	ck_assert_int_eq(kvr_lease_extend(k, lease, p, 2, 0), KVR_ESTATE);
	ck_tree("abcd:0!");
	ck_assert_int_eq(extend(lease, "abcdef", 4, 2), KVR_OK);
	ck_tree("abcdef:0!");
	/* extended since: a prompt that does not continue it is refused */
	ck_assert_int_eq(extend(lease, "abcdeg", 4, 3), KVR_EMISMATCH);
	ck_assert_int_eq(extend(lease, "abcdefgh", 4, 3), KVR_OK);
	ck_assert_int_eq(extend(lease, "abcdefghi", 2, 3), KVR_OK);
	ck_tree("abcdefghi:0!");
	finish(lease, 4);
}
END_TEST

/*
 * Less was recorded than the prompt had when it was saved: the blocks between
 * are not known, so the extension is load and nothing else.
 */
START_TEST(behind_a_gap)
{
	struct kvr_options o = small_options();
	uint64_t lease;

	o.max_prompt_blocks = 4;
	region_of(&o);
	lease = reserve(0, "abcdef", 1);
	commit(lease, 1);
	ck_load(0, 6, 4, 2, 1);
	ck_assert_int_eq(extend(lease, "abcdefgh", 6, 2), KVR_OK);
	ck_load(0, 6, 4, 4, 1);
	ck_tree("abcd:0!");
	/* nothing shows that this is not the lease's prompt */
	ck_assert_int_eq(extend(lease, "mnopqrstu", 6, 2), KVR_OK);
	ck_load(0, 6, 4, 5, 1);
	ck_assert_int_eq(extend(lease, "abcdefgh", 6, 2), KVR_EMISMATCH);
	ck_assert_int_eq(extend(lease, "mnopqrstu", 4, 2), KVR_EMISMATCH);
	finish(lease, 3);
	ck_load(0, 0, 0, 0, 0);
	ck_tree("abcd:0");
	region_end();
}
END_TEST

/* The same where room has come since: only the whole prompt records more. */
START_TEST(behind_a_gap_with_room)
{
	uint32_t chain = hoard_all_but(4);
	uint64_t lease = reserve(0, "abcdef", 1);

	give_back(chain);
	commit(lease, 1);
	ck_tree("");
	ck_assert_int_eq(extend(lease, "abcdefgh", 6, 2), KVR_OK);
	ck_load(0, 6, 0, 8, 1);
	ck_tree("");
	ck_assert_int_eq(kvr_lease_extend(k, lease, say("abcdefghi"), 3, 0),
	    KVR_OK);
	ck_load(0, 6, 9, 0, 1);
	ck_tree("abcdefghi:0!");
	ck_assert_int_eq(extend(lease, "abcdefghij", 8, 4), KVR_OK);
	ck_tree("abcdefghij:0!");
	finish(lease, 5);
}
END_TEST

/* A damaged lease is not where it was: nothing before the prompt is read. */
START_TEST(damaged_lease)
{
	uint64_t lease = reserve(0, "abcd", 1);
	struct lease *l = lease_at(k, lease_find(k, lease));
	uint64_t recoveries = stats().recoveries;

	commit(lease, 1);
	observe(1, "ab", 2);
	if (_i == 0)
		node_at(k, l->node)->length = 5;
	else
		l->node = 0;
	(void)extend(lease, "abcdefgh", 4, 3);
	if (_i == 0)
		ck_assert_uint_eq(stats().recoveries, recoveries + 1);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
}
END_TEST

Suite *suite_resumed(void);

Suite *
suite_resumed(void)
{
	Suite *s = suite_create("resumed");
	TCase *t = tcase_create("same");

	tcase_add_loop_test(t, same_as_whole, 0, 8);
	tcase_add_test(t, behind_a_gap);
	suite_add_tcase(s, t);
	t = small_case(s, "refused");
	tcase_add_loop_test(t, only_for_extensions, 0, 2);
	tcase_add_test(t, others_prompts);
	tcase_add_test(t, behind_a_gap_with_room);
	tcase_add_loop_test(t, damaged_lease, 0, 2);
	return s;
}
