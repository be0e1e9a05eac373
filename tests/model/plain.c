/* SPDX-License-Identifier: BSD-2-Clause */
/* plain.c - see plain.h. */
#include "plain.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

void
plain_put(unsigned char *to, uint64_t word, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		to[i] = (unsigned char)(word >> (8 * i));
}

static uint64_t
get(const unsigned char *from)
{
	uint64_t word = 0;
	size_t i;

	for (i = 8; i-- > 0;)
		word = word << 8 | from[i];
	return word;
}

uint64_t
plain_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

struct hash_rule
plain_rule(uint32_t kind, uint32_t unit, uint32_t block_size, uint32_t eagle,
    uint64_t seed)
{
	struct hash_rule rule = { 0 };
	size_t i;

	rule.kind = kind;
	rule.unit = unit;
	rule.block_size = block_size;
	rule.eagle = eagle;
	for (i = 0; i < sizeof(rule.secret); i += 8)
		plain_put(rule.secret + i, plain_random(&seed), 8);
	hash_rule_seal(&rule);
	return rule;
}

size_t
plain_blocks(const struct hash_rule *rule, size_t units)
{
	size_t shared = rule->eagle ? 1 : 0;

	return units < shared ? 0 : (units - shared) / rule->block_size;
}

static int
ascending(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x < y ? -1 : x > y;
}

/* The hashes of the block's media, sorted, at `to`; bytes written. */
static size_t
put_media(const struct plain *p, size_t block, unsigned char *to)
{
	uint64_t *found = malloc((p->n_media + 1) * sizeof(*found));
	size_t i, n = 0;

	if (found == NULL)
		abort();
	for (i = 0; i < p->n_media; i++)
		if (p->media[i].block == block)
			found[n++] = p->media[i].hash;
	qsort(found, n, sizeof(*found), ascending);
	for (i = 0; i < n; i++)
		plain_put(to + 8 * i, found[i], 8);
	free(found);
	return 8 * n;
}

uint64_t
plain_local(const struct plain *p, size_t block)
{
	const struct hash_rule *rule = p->rule;
	size_t unit = rule->unit == KVR_UNIT_TOKENS ? 4 : 1;
	size_t window = (rule->block_size + (rule->eagle ? 1u : 0u)) * unit;
	unsigned char *all = malloc(window + 8 * p->n_media);
	const uint64_t *digest = p->scope->digest;
	uint64_t hash;

	if (all == NULL)
		abort();
	memcpy(all, p->bytes + block * rule->block_size * unit, window);
	window += put_media(p, block, all + window);
	if (rule->kind == KVR_HASH_KEYED)
		hash = XXH3_64bits_withSecret(all, window, rule->secret,
		    sizeof(rule->secret));
	else
		hash = XXH3_64bits_withSeed(all, window, 1337 +
		    digest[KVR_SCOPE_ADAPTER] + digest[KVR_SCOPE_SALT]);
	free(all);
	return hash;
}

/* Upper half xor lower half of a product, by long multiplication. */
static uint64_t
fold(uint64_t a, uint64_t b)
{
	uint64_t high = 0, low = 0, sum;
	unsigned bit;

	for (bit = 64; bit-- > 0;) {
		high = high << 1 | low >> 63;
		low <<= 1;
		if ((b >> bit & 1) != 0) {
			sum = low + a;
			high += sum < low;
			low = sum;
		}
	}
	return high ^ low;
}

uint64_t
plain_root(const struct hash_rule *rule, const struct kvr_scope *scope)
{
	unsigned char all[40];
	size_t i;

	memcpy(all, "kvr-root", 8);
	if (rule->kind == KVR_HASH_DYNAMO) {
		plain_put(all + 8, 1337 + scope->digest[KVR_SCOPE_ADAPTER] +
		    scope->digest[KVR_SCOPE_SALT], 8);
		return XXH3_64bits(all, 16);
	}
	for (i = 0; i < 4; i++)
		plain_put(all + 8 + 8 * i, scope->digest[i], 8);
	return XXH3_64bits_withSecret(all, sizeof(all), rule->secret,
	    sizeof(rule->secret));
}

static uint64_t
finish(uint64_t x)
{
	x ^= x >> 37;
	x *= UINT64_C(1609587791953885689);
	return x ^ x >> 32;
}

void
plain_chain(const struct hash_rule *rule, const struct kvr_scope *scope,
    const uint64_t *local, size_t n, uint64_t *sequence)
{
	uint64_t state = plain_root(rule, scope);
	unsigned char pair[16];
	size_t i;

	for (i = 0; i < n; i++) {
		if (rule->kind == KVR_HASH_KEYED) {
			state = fold(state ^ get(rule->secret + 176),
			    local[i] ^ get(rule->secret + 184));
			sequence[i] = finish(state);
		} else if (i == 0) {
			sequence[0] = local[0];
		} else {
			plain_put(pair, sequence[i - 1], 8);
			plain_put(pair + 8, local[i], 8);
			sequence[i] = XXH3_64bits_withSeed(pair, 16, 1337);
		}
	}
}
