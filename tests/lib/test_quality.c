/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_quality.c - the statistical quality of the keyed chain.
 *
 * Measures the claims of hash.c: how many output bits a flipped input bit
 * changes, and how often parts of the sequence hashes of similar prompts
 * collide. Secrets are fixed, so results are reproducible.
 * KVR_HASH_SAMPLES=10000000 measures at the size claimed, takes a minute, and
 * prints the results.
 */
#include "prompt.h"

#include "plain.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct kvr_prompt *
prompt_of(const struct hash_rule *rule)
{
	struct kvr_prompt *p;

	ck_assert_int_eq(prompt_new(rule, &p), KVR_OK);
	return p;
}

/* The number set by the environment, but enough for the test to be valid. */
static size_t
samples(size_t usual)
{
	const char *text_of_n = getenv("KVR_HASH_SAMPLES");
	size_t n = text_of_n == NULL ? usual
	    : (size_t)strtoull(text_of_n, NULL, 10);

	return n < 1000 ? 1000 : n;
}

struct flips {
	uint64_t of[64][64]; /* bit in, bit out */
	size_t n;
};

/* With a million, random deviations of a pair of bits stay below 0.003. */
static size_t
flip_samples(void)
{
	size_t n = samples(test_amount(10000));

	return n < 1000000 ? n : 1000000;
}

static void
count_flips(struct flips *f, unsigned in, uint64_t changed)
{
	for (unsigned out = 0; out < 64; out++)
		f->of[in][out] += changed >> out & 1;
}

/*
 * Each output bit changes in half of the cases in which an input bit does:
 * within 6 standard deviations for a pair of bits, within 0.01 for the mean of
 * an input or output bit.
 */
static void
judge_flips(const struct flips *f, const char *of)
{
	const double n = (double)f->n;
	const double pair = 6 * 0.5 / sqrt(n) > 0.01 ? 6 * 0.5 / sqrt(n) : 0.01;
	double ins[64] = { 0 }, outs[64] = { 0 }, share, worst = 0;

	for (int in = 0; in < 64; in++) {
		for (int out = 0; out < 64; out++) {
			share = (double)f->of[in][out] / n;
			worst = fmax(worst, fabs(share - 0.5));
			ins[in] += share / 64;
			outs[out] += share / 64;
		}
	}
	if (getenv("KVR_HASH_SAMPLES") != NULL)
		printf("    avalanche %s: worst pair of bits %.5f off\n", of,
		    worst);
	ck_assert_msg(worst <= pair, "%s: a pair of bits %.4f off", of, worst);
	for (int bit = 0; bit < 64; bit++) {
		ck_assert_msg(fabs(ins[bit] - 0.5) <= 0.01, "%s in %d: %.4f",
		    of, bit, ins[bit]);
		ck_assert_msg(fabs(outs[bit] - 0.5) <= 0.01, "%s out %d: %.4f",
		    of, bit, outs[bit]);
	}
}

/* One link: the sequence hash after `state` and `local`. */
static uint64_t
link_of(const struct hash_rule *rule, const struct hash_chain *from,
    uint64_t state, uint64_t local)
{
	struct hash_chain chain = *from;
	uint64_t sequence;

	chain.state = state;
	hash_chain_on(rule, &chain, &local, 1, &sequence);
	return sequence;
}

/*
 * 0: a local hash after the root; 1: the state before a block; 2: a local
 * hash after any state.
 */
START_TEST(chain_avalanche)
{
	static const char *const names[] = { "of the first local hash",
	    "of the prefix", "of a local hash" };
	const struct hash_rule rule = plain_rule(KVR_HASH_KEYED,
	    KVR_UNIT_TOKENS, 16, 0, 99);
	struct kvr_scope scope;
	struct hash_chain chain = { 0 };
	static struct flips f;
	uint64_t random = 5, x, l, whole, flip;

	memset(&f, 0, sizeof(f));
	kvr_scope_init(&scope, sizeof(scope));
	hash_start(&rule, &scope, &chain);
	f.n = flip_samples();
	l = plain_random(&random);
	for (size_t i = 0; i < f.n; i++) {
		x = _i == 0 ? chain.state : plain_random(&random);
		l = _i == 1 ? l : plain_random(&random);
		whole = link_of(&rule, &chain, x, l);
		for (unsigned bit = 0; bit < 64; bit++) {
			flip = UINT64_C(1) << bit;
			count_flips(&f, bit, whole ^ (_i == 1
			    ? link_of(&rule, &chain, x ^ flip, l)
			    : link_of(&rule, &chain, x, l ^ flip)));
		}
	}
	judge_flips(&f, names[_i]);
}
END_TEST

/* A token's bit changes the sequence hash two blocks later. */
START_TEST(prompt_avalanche)
{
	const struct hash_rule rule = plain_rule(KVR_HASH_KEYED,
	    KVR_UNIT_TOKENS, 16, 0, 98);
	struct kvr_prompt *p = prompt_of(&rule);
	static struct flips f;
	uint32_t tokens[48] = { 0 };
	uint64_t random = 6, whole, other, local;
	size_t i, at;

	memset(&f, 0, sizeof(f));
	f.n = flip_samples();
	for (i = 0; i < f.n; i++) {
		/* Small numbers, as token ids are. */
		for (at = 0; at < 48; at++)
			tokens[at] = (uint32_t)(plain_random(&random) >> 47);
		ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, 48),
		    KVR_OK);
		ck_assert_int_eq(kvr_prompt_hash(p, 2, &local, &whole),
		    KVR_OK);
		for (unsigned bit = 0; bit < 64; bit++) {
			at = i % 8 * 2 + bit / 32;
			tokens[at] ^= UINT32_C(1) << bit % 32;
			kvr_prompt_set_tokens(p, NULL, tokens, 48);
			kvr_prompt_hash(p, 2, &local, &other);
			tokens[at] ^= UINT32_C(1) << bit % 32;
			count_flips(&f, bit, whole ^ other);
		}
	}
	judge_flips(&f, "of a token");
	kvr_prompt_free(p);
}
END_TEST

static int
ascending(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

/* The number of pairs equal in `bits` bits from bit `shift` on. */
static double
equal_pairs(const uint64_t *hashes, size_t n, unsigned shift, unsigned bits)
{
	uint64_t *cut = malloc(n * sizeof(*cut));
	double pairs = 0;
	size_t i, same = 0;

	ck_assert_ptr_nonnull(cut);
	for (i = 0; i < n; i++)
		cut[i] = hashes[i] >> shift & ((UINT64_C(1) << bits) - 1);
	qsort(cut, n, sizeof(*cut), ascending);
	for (i = 1; i < n; i++) {
		same = cut[i] == cut[i - 1] ? same + 1 : 0;
		pairs += (double)same;
	}
	free(cut);
	return pairs;
}

/* Low, middle and high bits, so many that 40 to 80 collisions are expected. */
static void
judge_collisions(const uint64_t *hashes, size_t n, const char *of)
{
	const double all = (double)n * (double)(n - 1) / 2;
	const unsigned bits = (unsigned)log2(all / 40);
	const unsigned shifts[] = { 0, (64 - bits) / 2, 64 - bits };
	const double expected = all / exp2(bits);
	double got;

	for (int i = 0; i < 3; i++) {
		got = equal_pairs(hashes, n, shifts[i], bits);
		if (getenv("KVR_HASH_SAMPLES") != NULL)
			printf("    %s: %u bits from %u: %.0f collisions, "
			    "%.1f expected\n", of, bits, shifts[i], got,
			    expected);
		ck_assert_msg(fabs(got - expected) <= 5 * sqrt(expected),
		    "%s: %u bits from %u: %.0f collisions, %.1f expected", of,
		    bits, shifts[i], got, expected);
	}
}

static void
count_in_tokens(const struct hash_rule *rule, size_t at, uint64_t *out,
    size_t n)
{
	struct kvr_prompt *p = prompt_of(rule);
	uint32_t tokens[64] = { 0 };
	uint64_t local;

	for (size_t i = 0; i < n; i++) {
		tokens[at] = (uint32_t)i;
		kvr_prompt_set_tokens(p, NULL, tokens, 64);
		ck_assert_int_eq(kvr_prompt_hash(p, 3, &local, &out[i]),
		    KVR_OK);
	}
	kvr_prompt_free(p);
}

/* The sequence hashes of one prompt with local hashes i * step. */
static void
count_in_locals(const struct hash_rule *rule, uint64_t step, uint64_t *out,
    size_t n)
{
	struct kvr_scope scope;
	struct hash_chain chain = { 0 };

	kvr_scope_init(&scope, sizeof(scope));
	hash_start(rule, &scope, &chain);
	for (size_t i = 0; i < n; i++) {
		const uint64_t local = i * step;

		hash_chain_on(rule, &chain, &local, 1, &out[i]);
	}
}

/* One block after each of many scopes with consecutive digests. */
static void
count_in_scopes(const struct hash_rule *rule, uint64_t *out, size_t n)
{
	struct kvr_scope scope;
	struct hash_chain chain = { 0 };
	const uint64_t local = 12345;

	kvr_scope_init(&scope, sizeof(scope));
	for (size_t i = 0; i < n; i++) {
		scope.digest[KVR_SCOPE_TENANT] = i;
		hash_start(rule, &scope, &chain);
		hash_chain_on(rule, &chain, &local, 1, &out[i]);
	}
}

/* A first block with consecutive local hashes: the worst case. */
static void
count_in_first(const struct hash_rule *rule, uint64_t *out, size_t n)
{
	struct kvr_scope scope;
	struct hash_chain chain = { 0 };

	kvr_scope_init(&scope, sizeof(scope));
	hash_start(rule, &scope, &chain);
	for (size_t i = 0; i < n; i++)
		out[i] = link_of(rule, &chain, chain.state, i);
}

START_TEST(truncated_collisions)
{
	static const char *const names[] = { "first token counts",
	    "last token counts", "equal blocks", "local hashes count",
	    "scopes count", "first local hash counts" };
	const struct hash_rule rule = plain_rule(KVR_HASH_KEYED,
	    KVR_UNIT_TOKENS, 16, 0, 97);
	const size_t n = samples(test_amount(100000));
	uint64_t *hashes = malloc(n * sizeof(*hashes));

	ck_assert_ptr_nonnull(hashes);
	if (_i < 2)
		count_in_tokens(&rule, _i == 0 ? 0 : 63, hashes, n);
	else if (_i < 4)
		count_in_locals(&rule, _i == 2 ? 0 : 1, hashes, n);
	else if (_i == 4)
		count_in_scopes(&rule, hashes, n);
	else
		count_in_first(&rule, hashes, n);
	judge_collisions(hashes, n, names[_i]);
	free(hashes);
}
END_TEST

Suite *suite_quality(void);

Suite *
suite_quality(void)
{
	Suite *s = suite_create("quality");
	TCase *t = tcase_create("chain");

	tcase_add_loop_test(t, chain_avalanche, 0, 3);
	tcase_add_test(t, prompt_avalanche);
	tcase_add_loop_test(t, truncated_collisions, 0, 6);
	suite_add_tcase(s, t);
	return s;
}
