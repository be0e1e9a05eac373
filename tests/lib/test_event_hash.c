/* SPDX-License-Identifier: BSD-2-Clause */
/* test_event_hash.c - events have the hashes of prompts of their tokens. */
#include "event_hash.h"

#include "alloc.h"
#include "inner.h"

static const uint32_t tokens[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
static const uint64_t hashes[6];
static struct kvr_event events[2];
static struct event_batch b;

static void
begin(uint32_t block_size, uint64_t aliases, uint32_t hash)
{
	struct kvr_options o = small_options();
	int i;

	alloc_reset();
	o.event_blocks = aliases;
	o.block_size = block_size;
	o.hash = hash;
	region_of(&o);
	for (i = 0; i < 2; i++) {
		(void)kvr_event_init(&events[i], sizeof(events[i]));
		events[i].kind = KVR_EVENT_STORED;
	}
	b = (struct event_batch){ .events = events,
		.element = sizeof(events[0]), .n = 2, .hashes = hashes,
		.n_hashes = 6, .tokens = tokens, .n_tokens = 12 };
}

static void
contents(struct kvr_event *e, uint32_t block, uint64_t at, uint64_t blocks)
{
	e->block_tokens = block;
	e->hashes = blocks;
	e->tokens_at = at;
	e->tokens = blocks * block;
}

/* Chained, they are the sequence hashes of a prompt. */
START_TEST(as_the_blocks_of_a_prompt)
{
	struct hash_chain chain, after;
	uint64_t sequence[6], rest[3];
	struct kvr_scope scope;

	begin(2, 100, _i == 0 ? KVR_HASH_KEYED : KVR_HASH_DYNAMO);
	contents(&events[0], 4, 0, 2);
	contents(&events[1], 2, 8, 2);
	ck_assert_int_eq(event_hash(k, &b), KVR_OK);
	ck_assert_uint_eq(b.n_local, 6);
	ck_assert_uint_eq(b.n_sequence, 4);
	ck_assert_uint_eq(b.n_aliases, 6 + 2); /* and the roots */
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, 12), KVR_OK);
	(void)kvr_scope_init(&scope, sizeof(scope));
	ck_assert_uint_eq(hash_start(&k->rule, &scope, &chain), p->root);
	hash_chain_on(&k->rule, &chain, b.local, 6, sequence);
	ck_assert_mem_eq(sequence, p->sequence, sizeof(sequence));
	/* and go on behind any of them */
	hash_resume(&k->rule, &scope, sequence[2], &after);
	hash_chain_on(&k->rule, &after, b.local + 3, 3, rest);
	ck_assert_mem_eq(rest, sequence + 3, sizeof(rest));
	event_hash_free(&b);
	region_end();
}
END_TEST

START_TEST(what_gives_no_blocks)
{
	struct kvr_event *e = &events[0];

	begin(2, 100, KVR_HASH_KEYED);
	contents(e, 4, 0, 2);
	ck_assert_uint_eq(event_each(k, e->block_tokens), 2);
	ck_assert_uint_eq(event_blocks_given(k, e), 4);
	e->tokens = 7; /* not as many as its blocks have */
	ck_assert_uint_eq(event_blocks_given(k, e), 0);
	contents(e, 3, 0, 2);
	ck_assert_uint_eq(event_each(k, e->block_tokens), 0);
	ck_assert_uint_eq(event_blocks_given(k, e), 0);
	contents(e, 4, 0, 2);
	e->tier = 7;
	ck_assert_uint_eq(event_blocks_given(k, e), 0);
	e->tier = KVR_TIER_HOST;
	e->kind = KVR_EVENT_REMOVED;
	ck_assert_uint_eq(event_blocks_given(k, e), 0);
	/* local hashes of another arithmetic */
	e->kind = KVR_EVENT_STORED;
	e->flags = KVR_EVENT_LOCALS;
	contents(e, 2, 0, 2);
	e->tokens = 2;
	ck_assert_uint_eq(event_blocks_given(k, e), 0);
	region_end();
	/* the right one, of another size, and too few */
	begin(2, 100, KVR_HASH_DYNAMO);
	e->flags = KVR_EVENT_LOCALS;
	contents(e, 2, 0, 2);
	e->tokens = 2;
	ck_assert_uint_eq(event_blocks_given(k, e), 2);
	e->tokens = 1;
	ck_assert_uint_eq(event_blocks_given(k, e), 0);
	contents(e, 4, 0, 2);
	e->tokens = 2;
	ck_assert_uint_eq(event_blocks_given(k, e), 0);
	e->flags = 0;
	e->tokens = 9; /* two blocks, and a token */
	ck_assert_uint_eq(event_blocks_given(k, e), 0);
	region_end();
}
END_TEST

/* Hashes outside the arrays, and more than an index has. */
START_TEST(events_that_cannot_be)
{
	begin(2, 100, KVR_HASH_KEYED);
	contents(&events[0], 2, 0, 2);
	events[0].hashes_at = 5;
	ck_assert_int_eq(event_hash(k, &b), KVR_EINVAL);
	ck_assert_ptr_null(b.local);
	contents(&events[0], 2, 0, RECORD_MAX + 1);
	events[0].hashes_at = 0;
	b.n_hashes = UINT32_MAX;
	b.n_tokens = UINT32_MAX;
	ck_assert_int_eq(event_hash(k, &b), KVR_EINVAL);
	ck_assert_ptr_null(b.local);
	region_end();
}
END_TEST

START_TEST(without_memory)
{
	begin(2, 100, KVR_HASH_KEYED);
	contents(&events[0], 4, 0, 2);
	alloc_fail_at(1);
	ck_assert_int_eq(event_hash(k, &b), KVR_ENOMEM);
	alloc_reset();
	ck_assert_ptr_null(b.local);
	region_end();
}
END_TEST

/* A reference has no tenants. */
START_TEST(scopes_that_do_not_fit)
{
	begin(2, 100, KVR_HASH_DYNAMO);
	contents(&events[0], 2, 0, 2);
	events[0].scope.digest[KVR_SCOPE_TENANT] = 5;
	ck_assert_int_eq(event_hash(k, &b), KVR_EMISMATCH);
	ck_assert_ptr_null(b.local);
	region_end();
}
END_TEST

Suite *suite_event_hash(void);

Suite *
suite_event_hash(void)
{
	Suite *s = suite_create("event_hash");
	TCase *t = tcase_create("event_hash");

	suite_add_tcase(s, t);
	tcase_add_loop_test(t, as_the_blocks_of_a_prompt, 0, 2);
	tcase_add_test(t, what_gives_no_blocks);
	tcase_add_test(t, events_that_cannot_be);
	tcase_add_test(t, without_memory);
	tcase_add_test(t, scopes_that_do_not_fit);
	return s;
}
