/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * siphash.c - SipHash-2-4 with 128 bits.
 *
 *   v[0..3] = key and constants
 *   for each word of the message: v3 ^= word, 2 rounds, v0 ^= word
 *   v2 ^= 0xee, 4 rounds: the first 8 bytes are v0 ^ v1 ^ v2 ^ v3
 *   v1 ^= 0xdd, 4 rounds: the others
 *
 * The last word has the bytes that are left, and the length modulo 256 on top.
 */
#include "siphash.h"

#include "little.h"

static uint64_t
turned(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static void
rounds(uint64_t v[4], unsigned n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = turned(v[1], 13) ^ v[0];
		v[3] = turned(v[3], 16) ^ v[2];
		v[0] = turned(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = turned(v[1], 17) ^ v[2];
		v[3] = turned(v[3], 21) ^ v[0];
		v[2] = turned(v[2], 32);
	}
}

static void
word(uint64_t v[4], uint64_t w)
{
	v[3] ^= w;
	rounds(v, 2);
	v[0] ^= w;
}

struct siphash_key
siphash_key(const unsigned char *bytes)
{
	return (struct siphash_key){ { little_get(bytes, 8),
	    little_get(bytes + 8, 8) } };
}

void
siphash(const struct siphash_key *key, const void *bytes, size_t n,
    unsigned char *out)
{
	const unsigned char *at = bytes;
	uint64_t v[4] = {
		key->word[0] ^ UINT64_C(0x736f6d6570736575),
		key->word[1] ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
		key->word[0] ^ UINT64_C(0x6c7967656e657261),
		key->word[1] ^ UINT64_C(0x7465646279746573)
	};
	size_t i;

	for (i = 0; i + 8 <= n; i += 8)
		word(v, little_get(at + i, 8));
	word(v, (uint64_t)n << 56 | (i < n ? little_get(at + i, n - i) : 0));
	v[2] ^= 0xee;
	rounds(v, 4);
	little_put(out, v[0] ^ v[1] ^ v[2] ^ v[3], 8);
	v[1] ^= 0xdd;
	rounds(v, 4);
	little_put(out + 8, v[0] ^ v[1] ^ v[2] ^ v[3], 8);
}
