/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pages.c - pages of an engine, made into the blocks of a region.
 *
 * A page's name is its last token and the sum of those before it, so each
 * prefix of letters has one.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "target.h"
#include "tell.h"

enum { BLOCK = 4, PAGES = 64 };

static struct kvr *k;
static struct kvr_prompt *p;
static struct conf_stream conf;
static struct target target;
static struct event events[PAGES];
static uint64_t hashes[PAGES];
static uint32_t tokens[PAGES * BLOCK];
static size_t n_events, n_hashes, n_tokens;
static uint32_t each; /* tokens of a page */

static void
setup(void)
{
	struct kvr_worker facts;
	struct kvr_options o;
	uint64_t id;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.retain = KVR_RETAIN_EVENTS;
	ck_assert_int_eq(kvr_options_init(&o, sizeof(o)), KVR_OK);
	o.block_size = BLOCK;
	o.event_blocks = 1024;
	o.region_bytes = 1 << 22;
	o.max_workers = 1;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	ck_assert_int_eq(kvr_worker_add(k, "a", 1, &facts, &id), KVR_OK);
	memset(&conf, 0, sizeof(conf));
	strcpy(conf.worker, "a");
	target_init(&target, k, &conf);
	ck_assert(target_find(&target));
	n_events = n_hashes = n_tokens = 0;
	each = 1;
}

static void
teardown(void)
{
	target_free(&target);
	kvr_prompt_free(p);
	kvr_free(k);
}

static uint64_t
name_of(const char *text, size_t n)
{
	uint64_t name = 0;

	while (n-- > 0)
		name = name * 1009 + (unsigned char)*text++;
	return name;
}

/* Adds an event about the letters from this one on. */
static struct event *
say(enum event_kind kind, const char *text, size_t from)
{
	struct event *e = &events[n_events++];
	const size_t n = strlen(text);
	size_t i;

	*e = (struct event){ .size = sizeof(*e), .kind = kind,
	    .tier = EVENT_DEVICE, .block_size = each,
	    .hashes = { n_hashes, (n - from) / each },
	    .tokens = { n_tokens, n - from } };
	for (i = from + each; i <= n; i += each)
		hashes[n_hashes++] = name_of(text, i);
	for (i = from; i < n; i++)
		tokens[n_tokens++] = (unsigned char)text[i];
	if (from > 0) {
		e->flags = EVENT_HAS_PARENT;
		e->parent = name_of(text, from);
	}
	return e;
}

static enum target_outcome
give_as(uint64_t seq)
{
	const struct event_batch all = { .n = n_events, .events = events,
	    .hashes = hashes, .tokens = tokens, .text = "salt" };
	const struct target_batch batch = { .events = &all,
	    .to = n_events, .seq = seq, .digest = seq + 1 };
	const enum target_outcome outcome = target_apply(&target, &batch);

	ck_assert_int_eq(kvr_check(k), KVR_OK);
	n_events = n_hashes = n_tokens = 0;
	return outcome;
}

static void
give(void)
{
	ck_assert_int_eq(give_as(target.next), TARGET_APPLIED);
}

static void
stored(const char *text, size_t from)
{
	say(EVENT_STORED, text, from);
	give();
}

static void
removed(const char *text, size_t from)
{
	say(EVENT_REMOVED, text, from);
	give();
}

/* Counts the blocks that are predicted. */
static uint32_t
has_in(const struct kvr_scope *scope, const char *text)
{
	struct kvr_overlap o = { .worker = 0 };
	uint32_t ids[PAGES], i, n = (uint32_t)strlen(text);
	size_t found;

	for (i = 0; i < n; i++)
		ids[i] = (unsigned char)text[i];
	ck_assert_int_eq(kvr_prompt_set_tokens(p, scope, ids, n), KVR_OK);
	ck_assert_int_eq(kvr_match(k, p, kvr_clock_now(), &o, sizeof(o), 1,
	    &found), KVR_OK);
	return found == 0 ? 0 : o.blocks;
}

static uint32_t
has(const char *text)
{
	return has_in(NULL, text);
}

static bool
is_complete(void)
{
	return target_find(&target) && target.state == KVR_EVENTS_COMPLETE;
}

START_TEST(a_block_is_held_when_all_pages_are)
{
	stored("abc", 0);
	ck_assert_uint_eq(has("abcdefgh"), 0);
	stored("abcd", 3);
	ck_assert_uint_eq(has("abcdefgh"), 1);
	stored("abcdefghi", 4);
	ck_assert_uint_eq(has("abcdefgh"), 2);
	stored("abcdefghijklmnop", 9);
	ck_assert_uint_eq(has("abcdefghijklmnop"), 4);
	removed("abcdefghijklmnop", 15);
	ck_assert_uint_eq(has("abcdefghijklmnop"), 3);
	removed("abcdefghijklmno", 9);
	ck_assert_uint_eq(has("abcdefghijklmnop"), 2);
	ck_assert_uint_eq(target.counts.orphans, 0);
	ck_assert(is_complete());
}
END_TEST

START_TEST(branches_within_a_block)
{
	stored("abcdefgh", 0);
	stored("abcdefxy", 6);
	ck_assert_uint_eq(has("abcdefgh"), 2);
	ck_assert_uint_eq(has("abcdefxy"), 2);
	removed("abcdefgh", 6);
	ck_assert_uint_eq(has("abcdefgh"), 1);
	ck_assert_uint_eq(has("abcdefxy"), 2);
	removed("abcdefxy", 6);
	stored("abcdefzz", 6); /* behind f, which is there still */
	ck_assert_uint_eq(has("abcdefzz"), 2);
	ck_assert_uint_eq(target.counts.orphans, 0);
}
END_TEST

/* A page has two tokens. The last event has another size. */
START_TEST(larger_pages)
{
	each = 2;
	stored("abcdef", 0);
	ck_assert_uint_eq(has("abcdefgh"), 1);
	stored("abcdefgh", 6);
	ck_assert_uint_eq(has("abcdefgh"), 2);
	each = 1; /* no whole blocks follow */
	say(EVENT_STORED, "abcdefghij", 8);
	give();
	ck_assert_uint_eq(has("abcdefgh"), 2);
}
END_TEST

/* A page leaves with its last copy, and one that has children with these. */
START_TEST(copies_and_holes)
{
	stored("ab", 0);
	stored("ab", 0);
	removed("ab", 1);
	stored("abcd", 2);
	ck_assert_uint_eq(has("abcd"), 1);
	removed("abcd", 3);
	ck_assert_uint_eq(has("abcd"), 0);
	removed("abc", 1); /* with c the second copy of b */
	stored("abcd", 2);
	ck_assert_uint_eq(has("abcd"), 0);
	stored("ab", 1); /* behind a */
	removed("a", 0); /* a hole: b goes on from it */
	stored("abcd", 2);
	ck_assert_uint_eq(has("abcd"), 1);
}
END_TEST

/* An event without contents adds a copy in the other tier. */
START_TEST(copies_without_contents)
{
	struct event *e;

	conf.full = 1;
	stored("abcde", 0);
	e = say(EVENT_MOVED, "abcde", 0);
	e->tier = EVENT_HOST;
	e->tokens.n = 0;
	give();
	removed("abcde", 0);
	ck_assert_uint_eq(has("abcd"), 1);
	stored("abcdefgh", 5);
	ck_assert_uint_eq(has("abcdefgh"), 2);
	say(EVENT_REMOVED, "abcd", 0)->tier = EVENT_HOST;
	say(EVENT_REMOVED, "abcdefgh", 5);
	give();
	ck_assert_uint_eq(has("abcdefgh"), 0);
	ck_assert(is_complete());
}
END_TEST

/* Only the first page of a prompt may have its scope. */
START_TEST(scope_of_a_first_page)
{
	struct kvr_scope scope;

	ck_assert_int_eq(kvr_scope_init(&scope, sizeof(scope)), KVR_OK);
	ck_assert_int_eq(kvr_scope_set(k, &scope, KVR_SCOPE_SALT, "salt", 4),
	    KVR_OK);
	say(EVENT_STORED, "ab", 0)->salt.n = 4;
	give();
	stored("abcdefgh", 2);
	ck_assert_uint_eq(has_in(&scope, "abcdefgh"), 2);
	ck_assert_uint_eq(has("abcdefgh"), 0);
}
END_TEST

/* A new process finds the blocks, but no page that ended within one. */
START_TEST(a_daemon_that_is_younger)
{
	stored("abcdef", 0);
	target_free(&target);
	target_init(&target, k, &conf);
	ck_assert(target_find(&target));
	stored("abcdefgh", 6);
	ck_assert_uint_eq(has("abcdefgh"), 1);
	stored("abcdefghijkl", 8);
	ck_assert_uint_eq(has("abcdefghijkl"), 1);
	removed("abcdefghijkl", 4);
	stored("abcdefghijkl", 4);
	ck_assert_uint_eq(has("abcdefghijkl"), 3);
	ck_assert(is_complete());
}
END_TEST

/* Batches that are not applied keep no pages, and a clear forgets them. */
START_TEST(only_what_is_applied)
{
	stored("ab", 0);
	say(EVENT_STORED, "abcd", 2);
	ck_assert_int_eq(give_as(7), TARGET_BEHIND);
	say(EVENT_STORED, "ab", 0);
	ck_assert_int_eq(give_as(0), TARGET_APPLIED); /* as before */
	ck_assert_uint_eq(target.counts.duplicates, 1);
	stored("abcd", 2); /* a duplicate forgets no page */
	ck_assert_uint_eq(has("abcd"), 1);
	removed("abcd", 0);
	ck_assert_uint_eq(has("abcd"), 0);
	ck_assert_uint_eq(target.pages.kept, 0);
	ck_assert_uint_eq(target.counts.orphans, 0);
	events[n_events++] = (struct event){ .size = sizeof(events[0]),
	    .kind = EVENT_CLEARED };
	say(EVENT_STORED, "ab", 0);
	give();
	stored("abcd", 2);
	ck_assert_uint_eq(has("abcd"), 1);
	target_lost(&target, target.next + 1, "lost");
	ck_assert(!is_complete());
	stored("abcdef", 4);
	ck_assert_uint_eq(target.pages.fresh, 2);
}
END_TEST

/* The table begins with room for 1,024 pages. */
START_TEST(tables_grow)
{
	char text[3] = "ab";
	uint32_t i;

	for (i = 0; i < 1500; i++) {
		text[0] = (char)(1 + i % 120);
		text[1] = (char)(1 + i / 120);
		stored(text, 0);
	}
	ck_assert_uint_gt(target.pages.room, 1024);
	memcpy(text, "\1\2", 2);
	stored("\1\2cd", 2);
	ck_assert_uint_eq(has("\1\2cd"), 1);
	for (i = 0; i < 1500; i++) {
		text[0] = (char)(1 + i % 120);
		text[1] = (char)(1 + i / 120);
		removed(text, 1);
	}
	stored("\3\2cd", 2);
	ck_assert_uint_eq(has("\3\2cd"), 0);
}
END_TEST

/* At its largest size it forgets all, and counts the forgotten pages. */
START_TEST(tables_are_bounded)
{
	enum { MOST = 200 << 10, STORED = 20000 };
	struct pages_arrays arrays = { .hashes = NULL };
	struct pages *table = &target.pages;
	uint64_t name;

	ck_assert_uint_eq(pages_bytes(table), 0);
	table->most = MOST;
	for (name = 1; name <= STORED; name++) {
		struct pages_event e = { .names = &name, .n = 1,
			.tokens = tokens };

		ck_assert(pages_store(table, 1, &e, &arrays));
	}
	ck_assert_uint_gt(pages_bytes(table), MOST / 4);
	ck_assert_uint_le(pages_bytes(table), MOST);
	ck_assert_uint_gt(table->kept, 0);
	ck_assert_uint_eq(table->kept + table->forgotten, STORED);
	pages_arrays_free(&arrays);
}
END_TEST

/* In the middle of an event, too. */
START_TEST(one_event_fills_the_table)
{
	char text[PAGES];
	uint32_t i;

	target.pages.most = 1;
	memset(text, 'a', sizeof(text));
	text[PAGES - 1] = '\0';
	for (i = 0; i < 30; i++) {
		text[0] = (char)(1 + i);
		stored(text, 0);
	}
	ck_assert_uint_gt(target.pages.forgotten, 0);
	ck_assert_uint_le(target.pages.kept, 1024);
	ck_assert_uint_eq(has(text), (PAGES - 1) / BLOCK);
}
END_TEST

/* The report on a stream that no prompt can match. */
START_TEST(scopes_of_no_prompt)
{
	struct tell_use use = { .reason = NULL };
	uint32_t i;

	each = BLOCK;
	for (i = 0; i < 600; i++) {
		say(EVENT_STORED, "abcdefgh", 0)->salt.n = 4;
		give();
	}
	ck_assert_uint_eq(target.counts.unseen, 1200);
	ck_assert_uint_eq(target.counts.unseen_row, 1200);
	tell_use(&use, &target, NULL);
	ck_assert(use.reason == NULL); /* nor are there prompts */
	ck_assert_uint_eq(has("abcd"), 0);
	ck_assert_int_eq(kvr_observe(k, p, target.id, kvr_clock_now(), 0,
	    NULL), KVR_OK);
	say(EVENT_STORED, "abcdefgh", 0)->salt.n = 4;
	give();
	tell_use(&use, &target, NULL);
	ck_assert_str_eq(tell_state(&target, &use).name, "unusable");
	ck_assert_str_eq(tell_state(&target, &use).reason, "scope");
	ck_assert_ptr_nonnull(strstr(tell_reason("scope"), "adapter"));
	stored("abcdefgh", 0);
	tell_use(&use, &target, NULL);
	ck_assert_str_eq(tell_state(&target, &use).name, "complete");
	ck_assert_uint_eq(target.counts.unseen_row, 0);
	ck_assert_uint_eq(target.counts.unseen, 1202);
}
END_TEST

Suite *suite_pages(void);

Suite *
suite_pages(void)
{
	Suite *s = suite_create("pages");
	TCase *t = tcase_create("pages");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_block_is_held_when_all_pages_are);
	tcase_add_test(t, branches_within_a_block);
	tcase_add_test(t, larger_pages);
	tcase_add_test(t, copies_and_holes);
	tcase_add_test(t, copies_without_contents);
	tcase_add_test(t, scope_of_a_first_page);
	tcase_add_test(t, a_daemon_that_is_younger);
	tcase_add_test(t, only_what_is_applied);
	tcase_add_test(t, tables_grow);
	tcase_add_test(t, scopes_of_no_prompt);
	tcase_add_test(t, tables_are_bounded);
	tcase_add_test(t, one_event_fills_the_table);
	suite_add_tcase(s, t);
	return s;
}
