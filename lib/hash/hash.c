/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hash.c - blocks to local hashes, local hashes to sequence hashes.
 *
 *   blocks               | t0 ... t15 | t16 ... t31 | ... tail
 *                               |             |
 *   local                      l0            l1           side by side
 *                               |             |
 *   scope -> root = state ---> x0 ---------> x1 ---> ...  one after another
 *                               |             |
 *   sequence                   s0            s1           used by the index
 *
 * A local hash covers the content of one block, wherever it occurs. A sequence
 * hash covers everything up to and including its block, scope included, so two
 * prompts share a prefix of i blocks exactly if their s[i-1] are equal. The
 * sequence hash before the first block is the root: the same for all prompts
 * of one scope, and different in any other scope.
 *
 * KVR_HASH_DYNAMO is the arithmetic of NVIDIA Dynamo, bit for bit: XXH3 with a
 * public seed, the scope mixed into the seed of every block, a chain of XXH3
 * over pairs that begins with the bare l0. The root is our own; it needs to
 * differ only when seeds differ, and then l0 differs too.
 *
 * KVR_HASH_KEYED:
 *
 *   l[i] = XXH3(block, secret)
 *   x[i] = fold((x[i-1] ^ k0) * (l[i] ^ k1))        x[-1] = root
 *   s[i] = finish(x[i])
 *
 * fold is the 128-bit product, upper half xor lower half; finish is a shift, a
 * multiplication by an odd constant and a shift. The chain does not use XXH3
 * because it is the one part of hashing where a block depends on the previous
 * one, so its cost is latency. XXH3 of 16 bytes is a product, a byte swap, two
 * sums, then shift, product, shift, all of it on the critical path. Here one
 * product and two xors are; finish, which costs as much again, is not. It takes
 * 1.6 ns per block instead of 3.6, and in one loop with the local hashes most
 * of it is hidden.
 *
 * Why this hash is strong enough:
 *   - both operands are outputs of XXH3, and the words k0 and k1 of the secret
 *     keep a client from steering them. A product loses an operand only if the
 *     other is 0: one block in 2^64, which cannot be found without the secret;
 *   - the two operands have different keys, so (x, l) and (l, x) differ;
 *   - fold is not injective in x, nor is XXH3 of 16 bytes: two prefixes merge
 *     in a later block with probability 2^-64, as in any 64-bit chain;
 *   - the bare product is weak in single bits: after a fixed prefix, flipping
 *     the top bit of a local hash flips the top bit of the product always or
 *     never. The index keeps only 32 bits of most hashes, so finish spreads
 *     each bit over all of them. It is bijective: it adds no collisions, and
 *     the state can be recovered from its result.
 * test_quality.c measures this: avalanche for each pair of bits, and
 * collisions of truncated sequence hashes of similar prompts. With 10^6
 * samples the worst pair is 0.002 from one half; of 10^7 hashes cut to 40 bits
 * 33 to 55 pairs are equal, where 45.5 are expected, standard deviation 6.7.
 *
 * Invariants:
 *   - hash input is little-endian everywhere: tokens (converted by prompt.c),
 *     media, and words given to XXH3. Equal prompts under one secret have
 *     equal hashes on every machine, since replicas compare them;
 *   - the digest of an absent part of a scope is 0, and never 0 for a part
 *     with text (keyed); the part's number is hashed with it, and each digest
 *     has its own place in the root, so no part can pass for another;
 *   - sequence hashes depend only on rule, scope and local hashes, not on how
 *     a prompt was cut into calls or when its scope became known.
 */
#include "hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Every loop over blocks gets its own inlined copy of all it calls. */
#define INLINE static inline __attribute__((always_inline))
#define FLATTEN static __attribute__((flatten, noinline))

enum {
	SEED = 1337,       /* of blocks without a scope, and of the chain */
	SCOPE_PARTS = 4,
	LONG_BLOCK = 240,  /* bytes; above, XXH3 expands the seed to a secret */
	CHAIN_KEY = 176,   /* offset of the chain's keys in the secret */
	BLOCK_TOKENS_MAX = 64 * 1024
};

/* Domain tags: the first words of hash inputs that are not blocks. */
#define TAG_ROOT UINT64_C(0x746f6f722d72766b)
#define TAG_RULE UINT64_C(0x656c75722d72766b)

INLINE uint64_t
little(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return __builtin_bswap64(word);
#else
	return word;
#endif
}

static uint64_t
word_at(const unsigned char *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return little(word);
}

/* ------------------------------------------------------------ the rule --- */

size_t
hash_stride(const struct hash_rule *rule)
{
	size_t unit = rule->unit == KVR_UNIT_TOKENS ? sizeof(uint32_t) : 1;

	return rule->block_size * unit;
}

size_t
hash_window(const struct hash_rule *rule)
{
	size_t unit = rule->unit == KVR_UNIT_TOKENS ? sizeof(uint32_t) : 1;

	return hash_stride(rule) + (rule->eagle ? unit : 0);
}

/*
 * A key padded with zeros would leave most of XXH3's secret known, so every
 * word of the secret is a hash of the whole key. XXH3 also hashes its length.
 */
void
hash_rule_key(struct hash_rule *rule, const void *key, size_t length)
{
	uint64_t word, i;

	for (i = 0; i < HASH_SECRET_BYTES / sizeof(word); i++) {
		word = little(XXH3_64bits_withSeed(key, length,
		    (i + 1) * UINT64_C(0x9e3779b97f4a7c15)));
		memcpy(rule->secret + i * sizeof(word), &word, sizeof(word));
	}
}

void
hash_rule_seal(struct hash_rule *rule)
{
	uint64_t words[4];
	const bool keyed = rule->kind == KVR_HASH_KEYED;

	words[0] = little(TAG_RULE);
	words[1] = little((uint64_t)rule->unit << 32 | rule->block_size);
	words[2] = little((uint64_t)rule->kind << 32 | rule->eagle);
	words[3] = keyed
	    ? little(XXH3_64bits(rule->secret, sizeof(rule->secret))) : 0;
	rule->id = XXH3_64bits(words, sizeof(words));
}

/* ----------------------------------------------------------- the scope --- */

int
kvr_scope_init(struct kvr_scope *scope, size_t size)
{
	struct kvr_scope d;

	memset(&d, 0, sizeof(d));
	return struct_init(scope, size, &d, sizeof(d));
}

static uint64_t
keyed_digest(const struct hash_rule *rule, unsigned part, const void *text,
    size_t length)
{
	uint64_t pair[2];
	uint64_t digest;

	pair[0] = little(part);
	pair[1] = little(XXH3_64bits_withSecret(text, length, rule->secret,
	    sizeof(rule->secret)));
	digest = XXH3_64bits_withSecret(pair, sizeof(pair), rule->secret,
	    sizeof(rule->secret));
	return digest == 0 ? 1 : digest;
}

/* Lengths are digested too: (ab, c) is not (a, bc). */
uint64_t
hash_affinity(const struct hash_rule *rule, const void *tenant,
    size_t tenant_length, const void *key, size_t length)
{
	const uint64_t pair[2] = {
		little(keyed_digest(rule, SCOPE_PARTS, tenant, tenant_length)),
		little(keyed_digest(rule, SCOPE_PARTS + 1, key, length)) };

	return keyed_digest(rule, SCOPE_PARTS + 2, pair, sizeof(pair));
}

int
hash_scope_set(const struct hash_rule *rule, struct kvr_scope *scope,
    enum kvr_scope_part part, const void *text, size_t length)
{
	const unsigned i = (unsigned)part;
	const bool keyed = rule->kind == KVR_HASH_KEYED;
	struct kvr_scope whole;
	int error;

	if (scope == NULL || i >= SCOPE_PARTS || (text == NULL && length > 0))
		return KVR_EINVAL;
	error = struct_get(&whole, sizeof(whole), scope);
	if (error != KVR_OK)
		return error;
	if (scope->size < offsetof(struct kvr_scope, digest) +
	    (i + 1) * sizeof(scope->digest[0]))
		return KVR_EINVAL;
	if (length == 0)
		scope->digest[i] = 0;
	else if (keyed)
		scope->digest[i] = keyed_digest(rule, i, text, length);
	else if (i == KVR_SCOPE_ADAPTER)
		scope->digest[i] = XXH3_64bits_withSeed(text, length, 0);
	else if (i == KVR_SCOPE_SALT)
		scope->digest[i] = XXH3_64bits_withSeed(text, length, 1);
	else
		return KVR_EMISMATCH;
	return KVR_OK;
}

int
hash_scope_get(const struct hash_rule *rule, const struct kvr_scope *from,
    struct kvr_scope *to)
{
	struct kvr_scope scope;
	int error;

	kvr_scope_init(&scope, sizeof(scope));
	error = from == NULL ? KVR_OK
	    : struct_get(&scope, sizeof(scope), from);
	if (error != KVR_OK)
		return error;
	if (rule->kind == KVR_HASH_DYNAMO && (scope.digest[KVR_SCOPE_MODEL] |
	    scope.digest[KVR_SCOPE_TENANT]) != 0)
		return KVR_EMISMATCH;
	*to = scope;
	return KVR_OK;
}

/* Sums commute: the order of the two parts does not matter. */
static uint64_t
dynamo_seed(const struct kvr_scope *s)
{
	return SEED + s->digest[KVR_SCOPE_ADAPTER] + s->digest[KVR_SCOPE_SALT];
}

uint64_t
hash_root(const struct hash_rule *rule, const struct kvr_scope *s)
{
	uint64_t words[1 + SCOPE_PARTS] = { little(TAG_ROOT) };
	size_t i;

	if (rule->kind == KVR_HASH_DYNAMO) {
		words[1] = little(dynamo_seed(s));
		return XXH3_64bits(words, 2 * sizeof(words[0]));
	}
	for (i = 0; i < SCOPE_PARTS; i++)
		words[1 + i] = little(s->digest[i]);
	return XXH3_64bits_withSecret(words, sizeof(words), rule->secret,
	    sizeof(rule->secret));
}

/* ----------------------------------------------------------- the chain --- */

uint64_t
hash_start(const struct hash_rule *rule, const struct kvr_scope *scope,
    struct hash_chain *chain)
{
	const uint64_t root = hash_root(rule, scope);

	chain->blocks = 0;
	chain->state = root;
	if (rule->kind == KVR_HASH_KEYED) {
		chain->key[0] = word_at(rule->secret + CHAIN_KEY);
		chain->key[1] = word_at(rule->secret + CHAIN_KEY + 8);
	} else {
		chain->seed = dynamo_seed(scope);
		if (hash_window(rule) > LONG_BLOCK)
			XXH3_generateSecret_fromSeed(chain->secret,
			    chain->seed);
	}
	return root;
}

INLINE uint64_t
finish(uint64_t state)
{
	state ^= state >> 37;
	state *= UINT64_C(0x165667919e3779f9);
	return state ^ state >> 32;
}

/*
 * The next functions are compiled several times, for the arguments that are the
 * same for a region. So a branch on such an argument is always taken, or never.
 * GCOVR_EXCL_BR_START
 */

/* One step. `state` is a local variable of the caller: kept in a register. */
INLINE uint64_t
link_block(uint32_t kind, const uint64_t key[2], uint64_t *state,
    uint64_t local)
{
	uint64_t pair[2];

	if (kind == KVR_HASH_KEYED) {
		*state = hash_fold(*state ^ key[0], local ^ key[1]);
		return finish(*state);
	}
	pair[0] = little(*state);
	pair[1] = little(local);
	*state = XXH3_64bits_withSeed(pair, sizeof(pair), SEED);
	return *state;
}

/* In dynamo mode the chain begins with the bare first local hash. */
INLINE bool
begins_bare(uint32_t kind, const struct hash_chain *chain, size_t n)
{
	return kind == KVR_HASH_DYNAMO && chain->blocks == 0 && n > 0;
}

INLINE void
chain_loop(uint32_t kind, struct hash_chain *chain, const uint64_t *local,
    size_t n, uint64_t *restrict sequence)
{
	const uint64_t key[2] = { chain->key[0], chain->key[1] };
	uint64_t state = chain->state;
	size_t i = 0;

	if (begins_bare(kind, chain, n)) {
		state = sequence[0] = local[0];
		i = 1;
	}
	for (; i < n; i++)
		sequence[i] = link_block(kind, key, &state, local[i]);
	chain->state = state;
	chain->blocks += (uint32_t)n;
}

void
hash_chain_on(const struct hash_rule *rule, struct hash_chain *chain,
    const uint64_t *local, size_t n, uint64_t *sequence)
{
	if (rule->kind == KVR_HASH_KEYED)
		chain_loop(KVR_HASH_KEYED, chain, local, n, sequence);
	else
		chain_loop(KVR_HASH_DYNAMO, chain, local, n, sequence);
}

/* The reverse of finish(); 37 and 32 are no less than half of 64. */
static uint64_t
undo_finish(uint64_t sequence)
{
	sequence ^= sequence >> 32;
	sequence *= UINT64_C(0x08da8ee41d6df849); /* inverts the constant */
	return sequence ^ sequence >> 37;
}

void
hash_resume(const struct hash_rule *rule, const struct kvr_scope *scope,
    uint64_t sequence, struct hash_chain *chain)
{
	(void)hash_start(rule, scope, chain);
	chain->state = rule->kind == KVR_HASH_KEYED ? undo_finish(sequence)
	    : sequence;
	chain->blocks = 1; /* at least */
}

uint64_t
hash_chain_end(const struct hash_rule *rule, const struct hash_chain *chain)
{
	if (rule->kind == KVR_HASH_KEYED && chain->blocks > 0)
		return finish(chain->state);
	return chain->state;
}

/* ---------------------------------------------------------- the blocks --- */

/*
 * Hashes one block of `length` bytes. XXH3 would expand the seed to a secret
 * for each long input; hash_start has done it once.
 */
INLINE uint64_t
block_hash(uint32_t kind, const unsigned char *secret, uint64_t seed,
    const unsigned char *block, size_t length)
{
	if (kind == KVR_HASH_KEYED)
		return XXH3_64bits_withSecret(block, length, secret,
		    HASH_SECRET_BYTES);
	if (length > LONG_BLOCK)
		return XXH3_64bits_withSecretandSeed(block, length, secret,
		    HASH_SECRET_BYTES, seed);
	return XXH3_64bits_withSeed(block, length, seed);
}

INLINE const unsigned char *
block_secret(uint32_t kind, const struct hash_rule *rule,
    const struct hash_chain *chain)
{
	return kind == KVR_HASH_KEYED ? rule->secret : chain->secret;
}

INLINE void
local_loop(uint32_t kind, size_t stride, size_t length,
    const struct hash_rule *rule, const struct hash_chain *chain,
    const unsigned char *from, size_t n, uint64_t *restrict local)
{
	const unsigned char *secret = block_secret(kind, rule, chain);
	const uint64_t seed = chain->seed;
	size_t i;

	for (i = 0; i < n; i++, from += stride)
		local[i] = block_hash(kind, secret, seed, from, length);
}

/*
 * Computes local hashes and chain together: the next block is hashed, which
 * depends on nothing, while the chain waits for its product.
 */
INLINE void
both_loop(uint32_t kind, size_t stride, size_t length,
    const struct hash_rule *rule, struct hash_chain *chain,
    const unsigned char *from, size_t n, uint64_t *restrict local,
    uint64_t *restrict sequence)
{
	const unsigned char *secret = block_secret(kind, rule, chain);
	const uint64_t seed = chain->seed;
	const uint64_t key[2] = { chain->key[0], chain->key[1] };
	uint64_t state = chain->state;
	size_t i = 0;

	if (begins_bare(kind, chain, n)) {
		state = block_hash(kind, secret, seed, from, length);
		local[0] = sequence[0] = state;
		from += stride;
		i = 1;
	}
	for (; i < n; i++, from += stride) {
		local[i] = block_hash(kind, secret, seed, from, length);
		sequence[i] = link_block(kind, key, &state, local[i]);
	}
	chain->state = state;
	chain->blocks += (uint32_t)n;
}

/*
 * A separate loop for each common length (16, 32, 64 tokens; 256 bytes): XXH3
 * of a constant length is straight-line code and takes half the time.
 */
#define LOOPS(name, kind, stride, length) \
FLATTEN void \
local_##name(const struct hash_rule *rule, const struct hash_chain *chain, \
    const unsigned char *from, size_t n, uint64_t *restrict local) \
{ \
	local_loop(kind, stride, length, rule, chain, from, n, local); \
} \
FLATTEN void \
both_##name(const struct hash_rule *rule, struct hash_chain *chain, \
    const unsigned char *from, size_t n, uint64_t *restrict local, \
    uint64_t *restrict sequence) \
{ \
	both_loop(kind, stride, length, rule, chain, from, n, local, sequence);\
}

LOOPS(keyed_64, KVR_HASH_KEYED, 64, 64)
LOOPS(keyed_128, KVR_HASH_KEYED, 128, 128)
LOOPS(keyed_256, KVR_HASH_KEYED, 256, 256)
LOOPS(keyed_any, KVR_HASH_KEYED, hash_stride(rule), hash_window(rule))
LOOPS(dynamo_64, KVR_HASH_DYNAMO, 64, 64)
LOOPS(dynamo_128, KVR_HASH_DYNAMO, 128, 128)
LOOPS(dynamo_256, KVR_HASH_DYNAMO, 256, 256)
LOOPS(dynamo_any, KVR_HASH_DYNAMO, hash_stride(rule), hash_window(rule))
/* GCOVR_EXCL_BR_STOP */

/* The index of the loop; overlapping windows are never common. */
static unsigned
loop_of(const struct hash_rule *rule)
{
	unsigned first = rule->kind == KVR_HASH_KEYED ? 0 : 4;

	if (rule->eagle)
		return first + 3;
	switch (hash_stride(rule)) {
	case 64:
		return first;
	case 128:
		return first + 1;
	case 256:
		return first + 2;
	default:
		return first + 3;
	}
}

void
hash_blocks(const struct hash_rule *rule, const struct hash_chain *chain,
    const void *from, size_t n, uint64_t *local)
{
	static void (*const loops[])(const struct hash_rule *,
	    const struct hash_chain *, const unsigned char *, size_t,
	    uint64_t *restrict) = {
		local_keyed_64, local_keyed_128, local_keyed_256,
		local_keyed_any, local_dynamo_64, local_dynamo_128,
		local_dynamo_256, local_dynamo_any
	};

	loops[loop_of(rule)](rule, chain, from, n, local);
}

/* Tokens are hashed as little-endian words. */
void
hash_token_blocks(const struct hash_rule *rule, const struct hash_chain *chain,
    const uint32_t *tokens, size_t n, uint64_t *local)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	uint32_t swapped[BLOCK_TOKENS_MAX]; /* as options.c allows */
	size_t i, j;

	for (i = 0; i < n; i++, tokens += rule->block_size) {
		for (j = 0; j < rule->block_size; j++)
			swapped[j] = __builtin_bswap32(tokens[j]);
		hash_blocks(rule, chain, swapped, 1, &local[i]);
	}
#else
	hash_blocks(rule, chain, tokens, n, local);
#endif
}

void
hash_blocks_chained(const struct hash_rule *rule, struct hash_chain *chain,
    const void *from, size_t n, uint64_t *local, uint64_t *sequence)
{
	static void (*const loops[])(const struct hash_rule *,
	    struct hash_chain *, const unsigned char *, size_t,
	    uint64_t *restrict, uint64_t *restrict) = {
		both_keyed_64, both_keyed_128, both_keyed_256, both_keyed_any,
		both_dynamo_64, both_dynamo_128, both_dynamo_256,
		both_dynamo_any
	};

	loops[loop_of(rule)](rule, chain, from, n, local, sequence);
}

/* --------------------------------------------------------------- media --- */

static bool
media_before(const struct hash_media *a, const struct hash_media *b)
{
	return a->block < b->block ||
	    (a->block == b->block && a->hash < b->hash);
}

/* Sifts media[at] down in the heap media[0..n). */
static void
media_sink(struct hash_media *media, size_t at, size_t n)
{
	const struct hash_media sinking = media[at];
	size_t child;

	while ((child = 2 * at + 1) < n) {
		if (child + 1 < n &&
		    media_before(&media[child], &media[child + 1]))
			child++;
		if (!media_before(&sinking, &media[child]))
			break;
		media[at] = media[child];
		at = child;
	}
	media[at] = sinking;
}

void
hash_media_sort(struct hash_media *media, size_t n)
{
	struct hash_media last;
	size_t i;

	for (i = n / 2; i-- > 0;)
		media_sink(media, i, n);
	while (n-- > 1) {
		last = media[n];
		media[n] = media[0];
		media[0] = last;
		media_sink(media, 0, n);
	}
}

uint64_t
hash_block_media(const struct hash_rule *rule, const struct hash_chain *chain,
    const void *from, const struct hash_media *media, size_t n)
{
	XXH3_state_t state;
	uint64_t word;
	size_t i;

	memset(&state, 0, sizeof(state));
	if (rule->kind == KVR_HASH_KEYED)
		XXH3_64bits_reset_withSecret(&state, rule->secret,
		    sizeof(rule->secret));
	else
		XXH3_64bits_reset_withSeed(&state, chain->seed);
	XXH3_64bits_update(&state, from, hash_window(rule));
	for (i = 0; i < n; i++) {
		word = little(media[i].hash);
		XXH3_64bits_update(&state, &word, sizeof(word));
	}
	return XXH3_64bits_digest(&state);
}

uint64_t
hash_tail(const struct hash_rule *rule, const void *tail, size_t n)
{
	if (n == 0)
		return 0;
	if (rule->kind == KVR_HASH_DYNAMO)
		return XXH3_64bits_withSeed(tail, n, SEED);
	return XXH3_64bits_withSecret(tail, n, rule->secret,
	    HASH_SECRET_BYTES);
}
