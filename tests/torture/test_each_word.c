/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_each_word.c - every word of a region is damaged in turn.
 *
 *	a region with a bit of everything (tests/lib/damage.h)
 *	   |  one word of four bytes: 0, all ones, one more, one less, ...
 *	   v
 *	every call     none crashes, reads outside, or takes long
 *	a death        the next call recovers, and kvr_check finds nothing
 *	an attach      refused, or as good as the region before
 *
 * tests/torture/corrupt.h damages at random, and more at a time. Here nothing
 * is left out: each word is wrong once, and each effect is seen.
 */
#include "tenants.h"

#include "damage.h"

#include "corrupt.h"

enum { WORDS = BYTES / 4, NOW = 50 };

/* With a journal: its first records are damaged too. */
enum { RECORDS = 1 << 10 };

/* A region with aliases: the events of worker 5 name its blocks. */
enum { ALIASES = 40, ALIAS_BYTES = 46 * ALIASES, NAMED = 16 };

/* The region is shared by tenants. */
enum { TENANTS = 3, TENANT_BYTES = BYTES / 8 + 512 };

static size_t bytes = BYTES;

static const uint32_t one_token[] = { 'a', 'b', 'c', 'd', 'e', 'f', 'g' };

/* ----------------------------------------------------------- the damage --- */

static uint32_t *
word_at(uint32_t i)
{
	return &((uint32_t *)memory)[i];
}

/* The ways to damage a word that has the value `was`; a run takes some. */
enum { WAYS = 8, WAYS_PER_RUN = 3 };

static uint32_t
damaged(uint32_t was, uint32_t way)
{
	switch (way) {
	case 0:
		return 0;
	case 1:
		return UINT32_MAX;
	case 2:
		return was + 1;
	case 3:
		return was - 1;
	case 4:
		return was ^ UINT32_C(0x80000000);
	case 5: /* a NaN, as the upper half of a double */
		return UINT32_C(0x7ff80001);
	case 6: /* minus one, as the upper half of a double */
		return UINT32_C(0xbff00000);
	default:
		return pick(2) == 0 ? stem : pick(CELL);
	}
}

/* Calls `use` after each damage of a word from..to - 1, on the same region. */
static void
each_of(void (*use)(uint32_t word), size_t from, size_t to)
{
	uint64_t ways = test_amount(WAYS_PER_RUN);
	uint32_t word, way, skip = pick(WAYS);

	say("abcdefgh");
	for (word = (uint32_t)(from / 4); word < to / 4; word++)
		for (way = 0; way < ways; way++) {
			uint32_t was = *word_at(word), is;

			is = damaged(was, (way + skip) % WAYS);
			if (corrupt_is_lock(word * 4) || is == was)
				continue;
			*word_at(word) = is;
			use(word);
			memcpy(memory, good, bytes);
		}
}

static void
each_word(void (*use)(uint32_t word))
{
	each_of(use, 0, BYTES);
}

/* ------------------------------------------------------------ the calls --- */

static void
read_workers(void)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint64_t worker = 0;
	char name[KVR_NAME_MAX];
	size_t length;
	uint32_t i;

	for (i = 0; i < FLEET; i++) {
		(void)kvr_worker_stats_get(k, id[i], &s);
		(void)kvr_worker_get(k, id[i], &facts);
		(void)kvr_worker_name(k, id[i], name, sizeof(name), &length);
	}
	(void)kvr_worker_find(k, "3", 1, 0, &worker);
	worker = 0;
	for (i = 0; i < 2 * FLEET && kvr_worker_next(k, &worker) == KVR_OK &&
	    worker != 0; i++)
		;
	ck_assert_uint_lt(i, 2 * FLEET);
}

static void
read_index(void)
{
	struct kvr_candidate all[2 * FLEET];
	struct kvr_overlap found[2 * FLEET];
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_lease_info lease[4];
	struct kvr_tenant tenant[4];
	struct kvr_entry entry[16];
	uint64_t cursor = 0, owner[4];
	uint32_t i;
	size_t n;

	(void)kvr_tenant_list(k, &cursor, tenant, sizeof(tenant[0]), 4, &n);
	cursor = 0;
	(void)kvr_match(k, p, NOW, found, sizeof(found[0]), 2 * FLEET, &n);
	(void)kvr_route(k, p, NULL, NOW, &d);
	(void)kvr_candidates(k, p, NULL, NOW, all, sizeof(all[0]), 2 * FLEET,
	    &n);
	for (i = 0; i < WORDS && kvr_entries(k, &cursor, NOW, entry,
	    sizeof(entry[0]), 16, &n) == KVR_OK && cursor != 0; i++)
		;
	ck_assert_uint_lt(i, WORDS);
	cursor = 0;
	for (i = 0; i < WORDS && kvr_owner_list(k, &cursor, owner, 4, &n) ==
	    KVR_OK && cursor != 0; i++)
		;
	ck_assert_uint_lt(i, WORDS);
	cursor = 0;
	for (i = 0; i < WORDS && kvr_lease_list(k, &cursor, lease,
	    sizeof(lease[0]), 4, &n) == KVR_OK && cursor != 0; i++)
		;
	ck_assert_uint_lt(i, WORDS);
}

static void
read_journal(void)
{
	struct kvr_record r = { .size = sizeof(r) };
	uint64_t hashes[8], at = CELL;
	size_t i;

	if (k->layout.journal_bytes == 0)
		return;
	for (i = 0; i < RECORDS && kvr_journal_read(k, &at, NOW, &r, hashes,
	    8) != KVR_EAGAIN; i++)
		;
	ck_assert_uint_lt(i, RECORDS);
}

static void
read_region(void)
{
	static char text[64 << 10];
	struct kvr_policy policy = { .size = sizeof(policy) };
	struct kvr_options o = { .size = sizeof(o) };
	struct kvr_stats s = { .size = sizeof(s) };
	int64_t due;
	size_t length;

	(void)kvr_check(k);
	(void)kvr_stats_get(k, &s);
	(void)kvr_policy_get(k, &policy);
	(void)kvr_options_get(k, &o);
	(void)kvr_next_expiry(k, &due);
	(void)kvr_metrics(k, text, sizeof(text), &length);
	read_workers();
	read_index();
	read_journal();
}

/* A request from beginning to end. */
static void
request(uint64_t worker)
{
	struct kvr_report r = { .size = sizeof(r), .prompt_tokens = 8,
	    .cached_tokens = 6, .completion_tokens = 3,
	    .kind = KVR_REPORT_VALUE };
	struct kvr_decision d = { .size = sizeof(d) };
	int error;

	say("abcdefgh");
	error = worker == 0 ? kvr_lease_open(k, p, NULL, NOW, &d)
	    : kvr_lease_open_on(k, p, NULL, worker, NOW, &d);
	if (error != KVR_OK)
		return;
	(void)kvr_lease_commit(k, d.lease, NOW, 0);
	(void)kvr_lease_first_token(k, d.lease, NOW + 1, 0);
	(void)kvr_prompt_tokens(p, one_token, 2);
	(void)kvr_prompt_end(p, NULL);
	(void)kvr_lease_extend(k, d.lease, p, NOW + 2, 0);
	(void)kvr_lease_finish(k, d.lease, &r, NOW + 3, 0);
	say("abcdefgh");
}

static void
end_leases(void)
{
	uint64_t cursor = 0;
	uint32_t i, ended;

	(void)kvr_lease_commit(k, two, NOW, 0);
	(void)kvr_lease_first_token(k, one, NOW, 0);
	(void)kvr_lease_first_token(k, two, NOW, 0);
	(void)kvr_lease_output(k, two, 2, NOW, 0);
	(void)kvr_lease_finish(k, one, NULL, NOW, 0);
	(void)kvr_lease_abort(k, two, NOW, 0);
	for (i = 0; i < WORDS && kvr_owner_reap(k, 0, NOW, &cursor, &ended) ==
	    KVR_OK && cursor != 0; i++)
		;
	ck_assert_uint_lt(i, WORDS);
}

static void
change_workers(void)
{
	struct kvr_load load = { .size = sizeof(load), .requests = 2 };
	struct kvr_worker facts;
	uint64_t worker;

	(void)kvr_worker_set_load(k, id[0], 1, &load);
	if (kvr_worker_init(&facts, sizeof(facts)) == KVR_OK) {
		facts.retain = KVR_RETAIN_FEEDBACK;
		(void)kvr_worker_set(k, id[4], &facts);
	}
	(void)kvr_worker_forget(k, id[3]);
	(void)kvr_worker_reset(k, id[2], &worker);
	(void)kvr_worker_remove(k, id[1]);
	(void)kvr_worker_add(k, "new", 3, NULL, &worker);
}

/* Names of blocks that are stored in a line, and their tokens. */
static uint64_t names_of_blocks[NAMED];
static uint32_t tokens_of_blocks[NAMED];

static void
name_blocks(void)
{
	uint32_t i;

	for (i = 0; i < NAMED; i++) {
		names_of_blocks[i] = 1000 + i;
		tokens_of_blocks[i] = 'a' + i;
	}
}

/* One event about blocks from..NAMED - 1. */
static struct kvr_event
event_of(uint32_t kind, uint32_t from)
{
	struct kvr_event e;

	must(kvr_event_init(&e, sizeof(e)) == KVR_OK);
	e.kind = kind;
	e.block_tokens = 1;
	e.hashes_at = from;
	e.hashes = NAMED - from;
	if (k->layout.aliases > 0 && kind == KVR_EVENT_STORED) {
		e.tokens_at = from;
		e.tokens = NAMED - from;
	}
	if (from > 0) {
		e.flags = KVR_EVENT_PARENT;
		e.parent = names_of_blocks[from - 1];
	}
	return e;
}

/* The next batch, one that comes too late, and a gap. */
static void
tell_events(void)
{
	struct kvr_event_batch b = { .size = sizeof(b), .seq = 1,
	    .digest = 7 };
	struct kvr_event_result r = { .size = sizeof(r) };
	struct kvr_event e[2];
	uint64_t worker = id[5];
	uint32_t i;

	e[0] = event_of(KVR_EVENT_STORED, 6);
	e[1] = event_of(KVR_EVENT_REMOVED, 4);
	for (i = 0; i < 3; i++, b.seq += i) {
		if (kvr_events_apply(k, worker, &b, e, sizeof(e[0]), 2,
		    names_of_blocks, NAMED, tokens_of_blocks, NAMED, NOW, 0,
		    &r) == KVR_OK)
			worker = r.worker;
	}
	(void)kvr_events_lost(k, worker, 20);
	e[0].kind = KVR_EVENT_CLEARED;
	b.seq = 20;
	if (kvr_events_apply(k, worker, &b, e, sizeof(e[0]), 1,
	    names_of_blocks, NAMED, NULL, 0, NOW, 0, &r) == KVR_OK)
		worker = r.worker;
	(void)kvr_events_off(k, worker);
}

static void
write_region(void)
{
	struct kvr_policy policy;
	uint32_t left;

	request(0);
	request(id[4]);
	(void)kvr_observe(k, p, id[5], NOW, 0, NULL);
	end_leases();
	tell_events();
	change_workers();
	(void)kvr_journal_beat(k, NOW);
	if (kvr_policy_init(&policy, sizeof(policy)) == KVR_OK) {
		policy.cost = KVR_COST_BALANCED;
		(void)kvr_policy_set(k, &policy);
	}
	request(0);
	(void)kvr_expire(k, NOW + 2 * TTL, 1000, &left);
}

/* ------------------------------------------------------------ the tests --- */

static void
use_reads(uint32_t word)
{
	(void)word;
	read_region();
}

START_TEST(reads_return)
{
	each_word(use_reads);
}
END_TEST

static void
use_writes(uint32_t word)
{
	(void)word;
	write_region();
}

START_TEST(writes_return)
{
	each_word(use_writes);
}
END_TEST

/* Two workers with one name look the same: only kvr_clear mends this. */
static bool
name_is_at(uint32_t word)
{
	size_t at = (size_t)word * 4, names = (size_t)((char *)k->names -
	    (char *)k->region);

	return at >= names && at < names + k->layout.names *
	    sizeof(struct name);
}

static void
use_death(uint32_t word)
{
	int error;

	atomic_fetch_or(&k->region->seq, 1);
	(void)kvr_expire(k, NOW, 1, NULL);
	error = kvr_check(k);
	if (error != KVR_OK && !name_is_at(word))
		ck_abort_msg("word %u (byte %u) is %x, was %x: %s after a "
		    "recovery (KVR_SEED=%" PRIu64 ")", word, word * 4,
		    *word_at(word), ((uint32_t *)good)[word],
		    kvr_errname(error), seed);
}

START_TEST(a_death_is_recovered_from)
{
	each_word(use_death);
}
END_TEST

static void
use_attach(uint32_t word)
{
	struct kvr *own = k;
	int error = kvr_attach_at(NULL, memory, bytes, &k);

	(void)word;
	if (error == KVR_OK) {
		read_region();
		write_region();
		kvr_free(k);
	}
	k = own;
}

START_TEST(what_attaches_can_be_used)
{
	each_word(use_attach);
}
END_TEST

/* Damages the records of a few calls, and the words that lead to them. */
static void
each_of_journal(void (*use)(uint32_t word))
{
	const char *base = memory;

	each_of(use, 0, sizeof(struct region));
	each_of(use, (size_t)((char *)k->journal - base),
	    (size_t)((char *)k->journal - base) + RECORDS);
}

START_TEST(journal_reads_return)
{
	each_of_journal(use_reads);
}
END_TEST

START_TEST(journal_writes_return)
{
	each_of_journal(use_writes);
}
END_TEST

START_TEST(journal_is_recovered)
{
	each_of_journal(use_death);
}
END_TEST

START_TEST(journal_that_attaches_can_be_used)
{
	each_of_journal(use_attach);
}
END_TEST

/* Damages the names of blocks, and their places on record. */
static void
each_of_aliases(void (*use)(uint32_t word))
{
	const char *base = memory;

	each_of(use, 0, sizeof(struct region));
	each_of(use, (size_t)((char *)k->streams - base),
	    (size_t)((char *)(k->streams + k->layout.names) - base));
	each_of(use, (size_t)((char *)k->aliases - base),
	    (size_t)((char *)(k->alias_buckets + ALIASES) - base));
	each_of(use, (size_t)((char *)k->cells - base), bytes);
}

START_TEST(aliases_read_return)
{
	each_of_aliases(use_reads);
}
END_TEST

START_TEST(aliases_written_return)
{
	each_of_aliases(use_writes);
}
END_TEST

START_TEST(aliases_are_recovered)
{
	each_of_aliases(use_death);
}
END_TEST

START_TEST(aliases_that_attach_can_be_used)
{
	each_of_aliases(use_attach);
}
END_TEST

/* Damages the tenants, and all words that they depend on. */
static void
each_of_tenants(void (*use)(uint32_t word))
{
	const char *base = memory;

	each_of(use, 0, sizeof(struct region));
	each_of(use, (size_t)((char *)k->tenants - base),
	    (size_t)((char *)(k->tenant_winner + k->layout.tenant_leaves) -
	    base));
	each_of(use, (size_t)((char *)k->cells - base), bytes);
}

START_TEST(tenants_read_return)
{
	each_of_tenants(use_reads);
}
END_TEST

START_TEST(tenants_written_return)
{
	each_of_tenants(use_writes);
}
END_TEST

START_TEST(tenants_are_recovered)
{
	each_of_tenants(use_death);
}
END_TEST

START_TEST(tenants_that_attach_can_be_used)
{
	each_of_tenants(use_attach);
}
END_TEST

/* ----------------------------------------------------------- fixtures --- */

/* Worker 5's engine publishes events. */
static void
fill_more(void)
{
	struct kvr_event_batch b = { .size = sizeof(b), .digest = 7 };
	struct kvr_event e;

	ck_assert_int_eq(kvr_event_init(&e, sizeof(e)), KVR_OK);
	ck_assert_int_eq(kvr_events_apply(k, id[5], &b, &e, sizeof(e), 0, NULL,
	    0, NULL, 0, 11, 0, NULL), KVR_OK);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
}

static void
begin(void)
{
	bytes = BYTES;
	cache_setup();
	fill_more();
	memcpy(good, memory, bytes);
	by_chance();
}

static void
begin_with_journal(void)
{
	struct kvr_options o = small_options();

	bytes = BYTES + KVR_JOURNAL_MIN;
	o.max_workers = FLEET;
	o.journal_bytes = KVR_JOURNAL_MIN;
	memory = aligned_alloc(CELL, bytes);
	good = malloc(bytes);
	ck_assert(memory != NULL && good != NULL);
	memset(memory, 0, bytes);
	ck_assert_int_eq(kvr_new_at(&o, memory, bytes, &k), KVR_OK);
	people(FLEET);
	fill();
	fill_more();
	memcpy(good, memory, bytes);
	by_chance();
}

static void
begin_with_aliases(void)
{
	struct kvr_options o = small_options();
	struct kvr_event_batch b = { .size = sizeof(b), .digest = 7 };
	struct kvr_worker facts;
	struct kvr_event e;

	bytes = BYTES + ALIAS_BYTES;
	o.max_workers = FLEET;
	o.event_blocks = ALIASES;
	o.block_size = 1;
	memory = aligned_alloc(CELL, (bytes + CELL - 1) / CELL * CELL);
	good = malloc(bytes);
	ck_assert(memory != NULL && good != NULL);
	memset(memory, 0, bytes);
	ck_assert_int_eq(kvr_new_at(&o, memory, bytes, &k), KVR_OK);
	people(FLEET);
	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	ck_assert_int_eq(kvr_worker_set(k, id[5], &facts), KVR_OK);
	fill();
	name_blocks();
	e = event_of(KVR_EVENT_STORED, 0);
	e.hashes = e.tokens = 10;
	ck_assert_int_eq(kvr_events_apply(k, id[5], &b, &e, sizeof(e), 1,
	    names_of_blocks, NAMED, tokens_of_blocks, NAMED, 11, 0, NULL),
	    KVR_OK);
	ck_assert_int_eq(kvr_worker_find(k, "5", 1, 0, &id[5]), KVR_OK);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	ck_assert_uint_eq(worker_stats(5).events_blocks, 11);
	memcpy(good, memory, bytes);
	by_chance();
}

/* Nearly full, so that calls evict. */
static void
begin_with_tenants(void)
{
	struct kvr_options o = small_options();
	uint32_t i;

	bytes = BYTES + TENANT_BYTES;
	o.max_workers = FLEET;
	o.tenants = TENANTS;
	memory = aligned_alloc(CELL, (bytes + CELL - 1) / CELL * CELL);
	good = malloc(bytes);
	ck_assert(memory != NULL && good != NULL);
	memset(memory, 0, bytes);
	ck_assert_int_eq(kvr_new_at(&o, memory, bytes, &k), KVR_OK);
	people(FLEET);
	fill();
	for (i = 0; i < 100; i++) {
		say_as((char)('a' + i % 3), 10 + i, 9, i);
		(void)observed(i % 4, 12);
	}
	ck_assert_uint_gt(stats().evicted_region, 0);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	memcpy(good, memory, bytes);
	by_chance();
}

Suite *suite_each_word(void);

Suite *
suite_each_word(void)
{
	Suite *s = suite_create("each_word");
	TCase *t = tcase_create("damage"), *x = tcase_create("journal");
	TCase *a = tcase_create("aliases");
	TCase *shared = tcase_create("tenants");

	tcase_add_checked_fixture(t, begin, teardown);
	suite_add_tcase(s, t);
	tcase_add_test(t, reads_return);
	tcase_add_test(t, writes_return);
	tcase_add_test(t, a_death_is_recovered_from);
	tcase_add_test(t, what_attaches_can_be_used);
	tcase_add_checked_fixture(a, begin_with_aliases, teardown);
	suite_add_tcase(s, a);
	tcase_add_checked_fixture(shared, begin_with_tenants, teardown);
	suite_add_tcase(s, shared);
	tcase_add_test(shared, tenants_read_return);
	tcase_add_test(shared, tenants_written_return);
	tcase_add_test(shared, tenants_are_recovered);
	tcase_add_test(shared, tenants_that_attach_can_be_used);
	tcase_add_test(a, aliases_read_return);
	tcase_add_test(a, aliases_written_return);
	tcase_add_test(a, aliases_are_recovered);
	tcase_add_test(a, aliases_that_attach_can_be_used);
	tcase_add_checked_fixture(x, begin_with_journal, teardown);
	suite_add_tcase(s, x);
	tcase_add_test(x, journal_reads_return);
	tcase_add_test(x, journal_writes_return);
	tcase_add_test(x, journal_is_recovered);
	tcase_add_test(x, journal_that_attaches_can_be_used);
	return s;
}
