/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * units.h - the same few tokens or bytes, given to prompts in many ways.
 *
 * For suites of prompts. Every prompt is compared as a whole: all fields of
 * kvr_prompt_info, and each hash.
 */
#ifndef KVR_UNITS_H
#define KVR_UNITS_H

#include "prompt.h"

#include "plain.h"
#include "test.h"

enum { UNITS = 27, BLOCK = 4 };

/* Filled by units_setup, which a test case has as its checked fixture. */
static uint32_t tokens[UNITS];
static unsigned char bytes[UNITS];

static inline void
units_setup(void)
{
	uint64_t state = 1;

	for (size_t i = 0; i < UNITS; i++) {
		tokens[i] = (uint32_t)plain_random(&state);
		bytes[i] = (unsigned char)tokens[i];
	}
}

/* Kind, unit and eagle of the loop's number, 0 to 7. */
static inline struct hash_rule
rule_of(int i)
{
	return plain_rule((uint32_t)i & 1, (uint32_t)i >> 1 & 1, BLOCK,
	    (uint32_t)i >> 2 & 1, 11);
}

static inline struct kvr_prompt *
prompt_of(const struct hash_rule *rule)
{
	struct kvr_prompt *p;

	ck_assert_int_eq(prompt_new(rule, &p), KVR_OK);
	return p;
}

static inline struct kvr_scope
scope_of(const struct hash_rule *rule, const char *adapter)
{
	struct kvr_scope scope;

	ck_assert_int_eq(kvr_scope_init(&scope, sizeof(scope)), KVR_OK);
	ck_assert_int_eq(hash_scope_set(rule, &scope, KVR_SCOPE_ADAPTER,
	    adapter, strlen(adapter)), KVR_OK);
	return scope;
}

static inline int
try_units(struct kvr_prompt *p, size_t from, size_t n)
{
	if (p->rule.unit == KVR_UNIT_TOKENS)
		return kvr_prompt_tokens(p, tokens + from, n);
	return kvr_prompt_bytes(p, bytes + from, n);
}

static inline void
give_units(struct kvr_prompt *p, size_t from, size_t n)
{
	ck_assert_int_eq(try_units(p, from, n), KVR_OK);
}

static inline void
begin(struct kvr_prompt *p, const struct kvr_scope *scope)
{
	ck_assert_int_eq(kvr_prompt_begin(p, scope), KVR_OK);
}

static inline void
end(struct kvr_prompt *p, const struct kvr_scope *scope)
{
	ck_assert_int_eq(kvr_prompt_end(p, scope), KVR_OK);
}

/* begin, all units, end */
static inline struct kvr_prompt *
whole(const struct hash_rule *rule, const struct kvr_scope *scope, size_t n)
{
	struct kvr_prompt *p = prompt_of(rule);

	ck_assert_int_eq(rule->unit == KVR_UNIT_TOKENS
	    ? kvr_prompt_set_tokens(p, scope, tokens, n)
	    : kvr_prompt_set_bytes(p, scope, bytes, n), KVR_OK);
	return p;
}

static inline struct kvr_prompt_info
info_of(const struct kvr_prompt *p)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };

	ck_assert_int_eq(kvr_prompt_info_get(p, &info), KVR_OK);
	return info;
}

static inline void
ck_same(const struct kvr_prompt *a, const struct kvr_prompt *b)
{
	const struct kvr_prompt_info x = info_of(a), y = info_of(b);
	uint64_t la, lb, sa, sb;

	ck_assert_mem_eq(&x, &y, sizeof(x));
	ck_assert_uint_eq(a->root, b->root);
	for (size_t i = 0; i < x.blocks; i++) {
		ck_assert_int_eq(kvr_prompt_hash(a, i, &la, &sa), KVR_OK);
		ck_assert_int_eq(kvr_prompt_hash(b, i, &lb, &sb), KVR_OK);
		ck_assert_uint_eq(la, lb);
		ck_assert_uint_eq(sa, sb);
	}
}

static inline TCase *
units_case(Suite *s, const char *name)
{
	TCase *t = tcase_create(name);

	tcase_add_checked_fixture(t, units_setup, NULL);
	suite_add_tcase(s, t);
	return t;
}

#endif
