/* SPDX-License-Identifier: BSD-2-Clause */
/* test_hash.c - block hashes, the chain, scopes: facts. */
#include "prompt.h"

#include "plain.h"
#include "test.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { UNITS_MAX = 1024 };

/* The hashes of a prompt made by `rule`, all in one call. */
struct hashed {
	uint64_t local[UNITS_MAX];
	uint64_t sequence[UNITS_MAX];
	size_t n;
};

static struct kvr_prompt *
prompt_of(const struct hash_rule *rule)
{
	struct kvr_prompt *p;

	ck_assert_int_eq(prompt_new(rule, &p), KVR_OK);
	return p;
}

static void
read_hashes(const struct kvr_prompt *p, struct hashed *out)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };

	ck_assert_int_eq(kvr_prompt_info_get(p, &info), KVR_OK);
	out->n = info.blocks;
	for (size_t i = 0; i < out->n; i++)
		ck_assert_int_eq(kvr_prompt_hash(p, i, &out->local[i],
		    &out->sequence[i]), KVR_OK);
}

static void
hash_tokens(const struct hash_rule *rule, const struct kvr_scope *scope,
    const uint32_t *tokens, size_t n, struct hashed *out)
{
	struct kvr_prompt *p = prompt_of(rule);

	ck_assert_int_eq(kvr_prompt_set_tokens(p, scope, tokens, n), KVR_OK);
	read_hashes(p, out);
	kvr_prompt_free(p);
}

static struct kvr_scope
scope_of(const struct hash_rule *rule, const char *const text[4])
{
	struct kvr_scope scope;
	unsigned i;

	ck_assert_int_eq(kvr_scope_init(&scope, sizeof(scope)), KVR_OK);
	for (i = 0; i < 4; i++)
		if (text[i] != NULL)
			ck_assert_int_eq(hash_scope_set(rule, &scope,
			    (enum kvr_scope_part)i, text[i],
			    strlen(text[i])), KVR_OK);
	return scope;
}

/* ----------------------------------------------------------- reference --- */

/* Reference hashes: `count` tokens from `first` on by `step`, or a text's. */
static const uint32_t text[16] = {
	128000, 9906, 11, 1917, 0, 128009, 128006, 882, 128007, 271, 3923,
	374, 279, 6864, 315, 9822
};
static const struct vector {
	uint32_t first, step;
	size_t count;
	const uint32_t *tokens;
	uint32_t block_size, eagle;
	const char *adapter, *salt;
	size_t blocks;
	uint64_t hash[16][2]; /* local, sequence */
} vectors[] = {
	{ 1, 1, 12, NULL, 4, 0, NULL, NULL, 3, {
	    { 0xcb38e4d7fb2dca5cu, 0xcb38e4d7fb2dca5cu },
	    { 0xe8d3ec39b907b74cu, 0x44a2b2379d6d3c3du },
	    { 0x06b748f1777d599cu, 0xaea1e67a6c80cf84u } } },
	{ 0, 1, 64, NULL, 4, 0, NULL, NULL, 16, {
	    { 0x7ee2cbedc694ab46u, 0x7ee2cbedc694ab46u },
	    { 0xa8416cfd935bdb13u, 0x83fb702f20e2ad65u },
	    { 0x0f1aa342314b9384u, 0xebe58e326790467bu },
	    { 0xde642b4b4e66ec34u, 0xe9036fce74242bb5u },
	    { 0xf572438678f88cf5u, 0x514ae3a88068e30fu },
	    { 0xbcc9037a01c2ce27u, 0xc3b06b7057b17415u },
	    { 0xc13e99bad293ed31u, 0xb4ab9e30dd07aeedu },
	    { 0x84c4fa4feeddfd36u, 0x0ea60dea16fb91a3u },
	    { 0x755c1e986852c9d2u, 0xab998b153576c0c1u },
	    { 0x20c88ef17d6170ddu, 0x5c56151e5fb307ebu },
	    { 0xbbcfd9cba968d84eu, 0xff9818403fd13c5au },
	    { 0x072cade49f5b2927u, 0x542f56aea35e1ab0u },
	    { 0xc9680aca65cffac3u, 0x62550dbca31cd69au },
	    { 0xd95af0f28897945du, 0x8a4f2b936d8dd359u },
	    { 0xbd9d6e104a54b87du, 0x01135bc69ce98417u },
	    { 0x6615deb9e56ff016u, 0xfb0699a78fce6afdu } } },
	{ 0, 1, 64, NULL, 16, 0, NULL, NULL, 4, {
	    { 0xd47a8f41c833328au, 0xd47a8f41c833328au },
	    { 0xd43939178abd00dbu, 0xbf15dffb16447f38u },
	    { 0x4cc8f942aaf401a2u, 0xa4dda066f3c1e1a0u },
	    { 0xcf2d99a33cc42682u, 0x35f7c0d119848950u } } },
	{ 0, 1, 128, NULL, 32, 0, NULL, NULL, 4, {
	    { 0x4fe4b52e3d3d116cu, 0x4fe4b52e3d3d116cu },
	    { 0xc1b55e9b2a3036c7u, 0xe72e765dbbb3fc6bu },
	    { 0x210e53a943a4ad6fu, 0x4458f0532340b1d3u },
	    { 0xec4747a6d126df61u, 0xfd8e145bd42dd8e2u } } },
	{ 0, 1, 256, NULL, 64, 0, NULL, NULL, 4, {
	    { 0x304d910e689e42bfu, 0x304d910e689e42bfu },
	    { 0x2e0cebb8f3781524u, 0x23bd5ef232e90ecbu },
	    { 0x134b05b43e0bd42bu, 0xd162d62e6cf437f2u },
	    { 0x60ad69926bfe4453u, 0xdf37f9ec76a257a5u } } },
	{ 0, 1, 130, NULL, 64, 0, NULL, NULL, 2, {
	    { 0x304d910e689e42bfu, 0x304d910e689e42bfu },
	    { 0x2e0cebb8f3781524u, 0x23bd5ef232e90ecbu } } },
	{ 0, 0, 64, NULL, 16, 0, NULL, NULL, 4, {
	    { 0x4ca6490661395090u, 0x4ca6490661395090u },
	    { 0x4ca6490661395090u, 0x2b0fa0857b243841u },
	    { 0x4ca6490661395090u, 0xa6c0f42dfcb6fc20u },
	    { 0x4ca6490661395090u, 0xbb3ba69f036c7f48u } } },
	{ 4294967295u, UINT32_MAX, 16, NULL, 16, 0, NULL, NULL, 1, {
	    { 0xe61392547a7912b7u, 0xe61392547a7912b7u } } },
	{ 0, 0, 16, text, 16, 0, NULL, NULL, 1, {
	    { 0x5a06cf719ffe3402u, 0x5a06cf719ffe3402u } } },
	{ 0, 1, 8, NULL, 4, 0, "adapter-a", NULL, 2, {
	    { 0x5c7f6547f18918bfu, 0x5c7f6547f18918bfu },
	    { 0xa2ac3e67dea6974bu, 0xb94a2013d55a0460u } } },
	{ 0, 1, 8, NULL, 4, 0, NULL, "tenant-a", 2, {
	    { 0xec0e52f22b7e6f3eu, 0xec0e52f22b7e6f3eu },
	    { 0x8ac986527e2c2266u, 0xfdaef86913237748u } } },
	{ 0, 1, 8, NULL, 4, 0, "adapter-a", "tenant-a", 2, {
	    { 0x72c338f32b821878u, 0x72c338f32b821878u },
	    { 0xa5abdc97445aea19u, 0xeab9b13d23ff242fu } } },
	{ 0, 1, 32, NULL, 16, 0, "adapter-a", NULL, 2, {
	    { 0xf1e20c61558f16bbu, 0xf1e20c61558f16bbu },
	    { 0x17eab4607c24352eu, 0x3f9d28e45320c6b1u } } },
	{ 0, 1, 6, NULL, 2, 1, NULL, NULL, 2, {
	    { 0xa19fc43f5c330609u, 0xa19fc43f5c330609u },
	    { 0x8a114bc20415acccu, 0xe614e56277523826u } } },
	{ 0, 1, 33, NULL, 16, 1, NULL, NULL, 2, {
	    { 0x9e88375a6f6e426fu, 0x9e88375a6f6e426fu },
	    { 0x5af7d904020a5678u, 0xc49b3373880f4953u } } },
};

START_TEST(reference_vectors)
{
	const struct vector *v = &vectors[_i];
	const struct hash_rule rule = plain_rule(KVR_HASH_DYNAMO,
	    KVR_UNIT_TOKENS, v->block_size, v->eagle, 1);
	const char *const parts[4] = { NULL, v->adapter, v->salt, NULL };
	const struct kvr_scope scope = scope_of(&rule, parts);
	uint32_t tokens[256];
	struct hashed got;
	size_t i;

	for (i = 0; i < v->count; i++)
		tokens[i] = v->tokens != NULL ? v->tokens[i]
		    : v->first + (uint32_t)i * v->step;
	hash_tokens(&rule, &scope, tokens, v->count, &got);
	ck_assert_uint_eq(got.n, v->blocks);
	for (i = 0; i < got.n; i++) {
		ck_assert_uint_eq(got.local[i], v->hash[i][0]);
		ck_assert_uint_eq(got.sequence[i], v->hash[i][1]);
	}
}
END_TEST

/* The numbers that the reference itself publishes. */
START_TEST(reference_literals)
{
	struct hash_rule rule = plain_rule(KVR_HASH_DYNAMO, KVR_UNIT_TOKENS, 4,
	    0, 1);
	static const uint32_t tokens[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
	    12 };
	struct kvr_prompt *p;
	uint64_t sequence;
	struct hashed got;

	hash_tokens(&rule, NULL, tokens, 12, &got);
	ck_assert_uint_eq(got.n, 3);
	ck_assert_uint_eq(got.local[0], 14643705804678351452u);
	ck_assert_uint_eq(got.local[1], 16777012769546811212u);
	ck_assert_uint_eq(got.local[2], 483935686894639516u);
	ck_assert_uint_eq(got.sequence[1], 4945711292740353085u);
	ck_assert_uint_eq(got.sequence[2], 12583592247330656132u);
	rule = plain_rule(KVR_HASH_DYNAMO, KVR_UNIT_BYTES, 9, 0, 1);
	p = prompt_of(&rule);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, "test data", 9),
	    KVR_OK);
	ck_assert_int_eq(kvr_prompt_hash(p, 0, got.local, &sequence), KVR_OK);
	ck_assert_uint_eq(got.local[0], 13226331709069118873u);
	ck_assert_uint_eq(sequence, 13226331709069118873u);
	kvr_prompt_free(p);
}
END_TEST

START_TEST(reference_seeds)
{
	const struct hash_rule rule = plain_rule(KVR_HASH_DYNAMO,
	    KVR_UNIT_TOKENS, 4, 0, 1);
	const char *const adapter[4] = { NULL, "adapter-a", NULL, NULL };
	const char *const salt[4] = { NULL, NULL, "tenant-a", NULL };
	const char *const both[4] = { NULL, "adapter-a", "tenant-a", NULL };
	struct hash_chain chain;
	struct kvr_scope scope;

	scope = scope_of(&rule, adapter);
	hash_start(&rule, &scope, &chain);
	ck_assert_uint_eq(chain.seed, 8842669519798868182u);
	scope = scope_of(&rule, salt);
	hash_start(&rule, &scope, &chain);
	ck_assert_uint_eq(chain.seed, 1948188790972764086u);
	scope = scope_of(&rule, both);
	hash_start(&rule, &scope, &chain);
	ck_assert_uint_eq(chain.seed, 10790858310771630931u);
}
END_TEST

static uint64_t
with_media(uint32_t block_size, const uint64_t *media, size_t n)
{
	const struct hash_rule rule = plain_rule(KVR_HASH_DYNAMO,
	    KVR_UNIT_TOKENS, block_size, 0, 1);
	struct kvr_prompt *p = prompt_of(&rule);
	uint64_t local, sequence;
	uint32_t i;

	ck_assert_int_eq(kvr_prompt_begin(p, NULL), KVR_OK);
	ck_assert_int_eq(kvr_prompt_media(p, 0, media, n), KVR_OK);
	for (i = 0; i < block_size; i++)
		ck_assert_int_eq(kvr_prompt_tokens(p, &i, 1), KVR_OK);
	ck_assert_int_eq(kvr_prompt_end(p, NULL), KVR_OK);
	ck_assert_int_eq(kvr_prompt_hash(p, 0, &local, &sequence), KVR_OK);
	kvr_prompt_free(p);
	return local;
}

START_TEST(reference_media)
{
	static const uint64_t one[] = { 0xdeadbeefcafef00du };
	static const uint64_t two[] = { UINT64_MAX, 1 };

	ck_assert_uint_eq(with_media(4, one, 1), 13676842626490538233u);
	ck_assert_uint_eq(with_media(4, two, 2), 10373076555945240951u);
	ck_assert_uint_eq(with_media(16, one, 1), 12721219266515318454u);
	ck_assert_uint_eq(with_media(16, NULL, 0), 15310707395893867146u);
}
END_TEST

START_TEST(reference_chain)
{
	const struct hash_rule rule = plain_rule(KVR_HASH_DYNAMO,
	    KVR_UNIT_TOKENS, 16, 0, 1);
	static const uint64_t local[] = { 11, 22, 33 };
	struct kvr_prompt *p = prompt_of(&rule);
	struct hashed got;

	ck_assert_int_eq(kvr_prompt_begin(p, NULL), KVR_OK);
	ck_assert_int_eq(kvr_prompt_locals(p, local, 3), KVR_OK);
	ck_assert_int_eq(kvr_prompt_end(p, NULL), KVR_OK);
	read_hashes(p, &got);
	ck_assert_uint_eq(got.sequence[0], 11);
	ck_assert_uint_eq(got.sequence[1], 750553365844651409u);
	ck_assert_uint_eq(got.sequence[2], 3257565445809651757u);
	kvr_prompt_free(p);
}
END_TEST

/* --------------------------------------------------------------- keyed --- */

/*
 * Replicas compare hashes, so neither a release nor a machine of the other
 * byte order may change these: rule 42, tokens 0 to 31, 16 a block.
 */
START_TEST(keyed_facts)
{
	const struct hash_rule rule = plain_rule(KVR_HASH_KEYED,
	    KVR_UNIT_TOKENS, 16, 0, 42);
	const char *const parts[4] = { "m", "adapter", "salt of 17 bytes!",
	    "t" };
	const struct kvr_scope scope = scope_of(&rule, parts);
	const struct kvr_scope none = scope_of(&rule,
	    (const char *const[4]){ NULL });
	uint32_t tokens[32];
	struct hashed got;

	for (uint32_t i = 0; i < 32; i++)
		tokens[i] = i;
	hash_tokens(&rule, &scope, tokens, 32, &got);
	ck_assert_uint_eq(rule.id, 0xaa32855a1c80854eu);
	ck_assert_uint_eq(scope.digest[0], 0x1fd1f7ee85ddf96cu);
	ck_assert_uint_eq(scope.digest[1], 0x1ef52ddb5e537898u);
	ck_assert_uint_eq(scope.digest[2], 0x2a3e18299533bad7u);
	ck_assert_uint_eq(scope.digest[3], 0x417bdfc531dfd5edu);
	ck_assert_uint_eq(hash_root(&rule, &none), 0xd4fd9a3f7b1093d6u);
	ck_assert_uint_eq(hash_root(&rule, &scope), 0x9e353957ba3e2566u);
	ck_assert_uint_eq(got.local[0], 0x4cb86c03c76c4e2bu);
	ck_assert_uint_eq(got.local[1], 0xccd88f45e3af35b0u);
	ck_assert_uint_eq(got.sequence[0], 0x89a3cf3aaba5a96fu);
	ck_assert_uint_eq(got.sequence[1], 0x92e353722c899a7u);
}
END_TEST

/* Each implemented loop, against hashes computed one by one. */
static void
against_plain(const struct hash_rule *rule, size_t units)
{
	static unsigned char bytes[4 * UNITS_MAX];
	uint32_t tokens[UNITS_MAX];
	const bool in_tokens = rule->unit == KVR_UNIT_TOKENS;
	const char *const parts[4] = { NULL, "a", "s", NULL };
	const struct kvr_scope scope = scope_of(rule, parts);
	const struct plain plain = { rule, &scope, bytes, units, NULL, 0 };
	struct kvr_prompt *p = prompt_of(rule);
	uint64_t sequence[UNITS_MAX], state = units;
	struct hashed got;
	size_t i;

	for (i = 0; i < units; i++) {
		tokens[i] = (uint32_t)plain_random(&state);
		plain_put(bytes + (in_tokens ? 4 * i : i), tokens[i],
		    in_tokens ? 4 : 1);
	}
	ck_assert_int_eq(in_tokens
	    ? kvr_prompt_set_tokens(p, &scope, tokens, units)
	    : kvr_prompt_set_bytes(p, &scope, bytes, units), KVR_OK);
	read_hashes(p, &got);
	ck_assert_uint_eq(got.n, plain_blocks(rule, units));
	ck_assert_uint_eq(p->root, plain_root(rule, &scope));
	plain_chain(rule, &scope, got.local, got.n, sequence);
	for (i = 0; i < got.n; i++) {
		ck_assert_uint_eq(got.local[i], plain_local(&plain, i));
		ck_assert_uint_eq(got.sequence[i], sequence[i]);
	}
	kvr_prompt_free(p);
}

START_TEST(every_block_size)
{
	const uint32_t kind = (uint32_t)_i & 1, unit = (uint32_t)_i >> 1 & 1;
	const uint32_t eagle = (uint32_t)_i >> 2;
	struct hash_rule rule;
	uint32_t size;

	for (size = 1; size <= 260; size += size < 70 ? 1 : 2) {
		rule = plain_rule(kind, unit, size, eagle, size);
		against_plain(&rule, 3 * size + size / 2);
		against_plain(&rule, size);
		against_plain(&rule, size - 1);
		against_plain(&rule, size + 1);
	}
}
END_TEST

START_TEST(fold_agrees)
{
	static const uint64_t edges[] = { 0, 1, 2, 0xffffffff, 0x100000000,
	    0x7fffffffffffffff, 0x8000000000000000, UINT64_MAX };
	uint64_t state = 1, a, b;
	int i;

	for (i = 0; i < 64; i++)
		ck_assert_uint_eq(hash_fold(edges[i / 8], edges[i % 8]),
		    hash_fold_narrow(edges[i / 8], edges[i % 8]));
	for (i = 0; i < 100000; i++) {
		a = plain_random(&state);
		b = plain_random(&state);
		ck_assert_uint_eq(hash_fold(a, b), hash_fold_narrow(a, b));
	}
	ck_assert_uint_eq(hash_fold_narrow(UINT64_MAX, UINT64_MAX),
	    UINT64_MAX);
}
END_TEST

/* A token is the same four bytes on every machine. */
START_TEST(tokens_are_little_endian)
{
	const struct hash_rule in_tokens = plain_rule((uint32_t)_i,
	    KVR_UNIT_TOKENS, 2, 0, 7);
	const struct hash_rule in_bytes = plain_rule((uint32_t)_i,
	    KVR_UNIT_BYTES, 8, 0, 7);
	static const uint32_t tokens[] = { 0x04030201, 0x08070605 };
	struct kvr_prompt *p = prompt_of(&in_bytes);
	struct hashed a, b;

	hash_tokens(&in_tokens, NULL, tokens, 2, &a);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL,
	    "\1\2\3\4\5\6\7\10", 8), KVR_OK);
	read_hashes(p, &b);
	kvr_prompt_free(p);
	ck_assert_uint_eq(a.n, 1);
	ck_assert_uint_eq(b.n, 1);
	ck_assert_uint_eq(a.local[0], b.local[0]);
	ck_assert_uint_eq(a.sequence[0], b.sequence[0]);
}
END_TEST

START_TEST(rules_have_identities)
{
	static const uint32_t sizes[] = { 1, 16, 32, 256 };
	uint64_t ids[64];
	size_t i, j, n = 0;

	for (i = 0; i < 4; i++)
		for (j = 0; j < 8; j++)
			ids[n++] = plain_rule(j & 1, j >> 1 & 1, sizes[i],
			    (uint32_t)j >> 2, 1).id;
	/* Another secret: another rule if it is used, else the same. */
	ids[n++] = plain_rule(KVR_HASH_KEYED, KVR_UNIT_TOKENS, 16, 0, 2).id;
	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++)
			ck_assert_uint_ne(ids[i], ids[j]);
	ck_assert_uint_eq(
	    plain_rule(KVR_HASH_DYNAMO, KVR_UNIT_TOKENS, 16, 0, 1).id,
	    plain_rule(KVR_HASH_DYNAMO, KVR_UNIT_TOKENS, 16, 0, 2).id);
}
END_TEST

/* -------------------------------------------------------------- scopes --- */

/* Each part absent, or one text, or another: all scopes differ. */
START_TEST(scopes_are_apart)
{
	const struct hash_rule rule = plain_rule((uint32_t)_i,
	    KVR_UNIT_TOKENS, 4, 0, 3);
	const bool keyed = _i == KVR_HASH_KEYED;
	static const char *const texts[] = { NULL, "x", "xx" };
	static const uint32_t tokens[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	uint64_t seen[3 * 81];
	struct kvr_scope scope;
	struct hashed got;
	size_t n = 0;

	for (size_t i = 0; i < 81; i++) {
		const char *const parts[4] = { texts[i / 27], texts[i / 9 % 3],
		    texts[i / 3 % 3], texts[i % 3] };

		if (!keyed && (parts[0] != NULL || parts[3] != NULL))
			continue;
		scope = scope_of(&rule, parts);
		hash_tokens(&rule, &scope, tokens, 8, &got);
		seen[n++] = hash_root(&rule, &scope);
		seen[n++] = got.sequence[0];
		seen[n++] = got.sequence[1];
	}
	ck_assert_uint_eq(n, keyed ? 243 : 27);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			ck_assert_uint_ne(seen[i], seen[j]);
}
END_TEST

START_TEST(scope_parts)
{
	const struct hash_rule keyed = plain_rule(KVR_HASH_KEYED,
	    KVR_UNIT_TOKENS, 4, 0, 3);
	const struct hash_rule other = plain_rule(KVR_HASH_KEYED,
	    KVR_UNIT_TOKENS, 4, 0, 4);
	struct kvr_scope a, b, none;
	char parts[] = "model a";

	kvr_scope_init(&a, sizeof(a));
	none = b = a;
	ck_assert_int_eq(hash_scope_set(&keyed, &a, KVR_SCOPE_MODEL, parts, 7),
	    KVR_OK);
	ck_assert_int_eq(hash_scope_set(&keyed, &b, KVR_SCOPE_TENANT, parts,
	    7), KVR_OK);
	ck_assert_uint_ne(a.digest[0], 0);
	ck_assert_uint_ne(a.digest[0], b.digest[3]);
	/* Another secret, another digest; set again, the last text counts. */
	ck_assert_int_eq(hash_scope_set(&other, &b, KVR_SCOPE_MODEL, parts, 7),
	    KVR_OK);
	ck_assert_uint_ne(a.digest[0], b.digest[0]);
	ck_assert_int_eq(hash_scope_set(&keyed, &b, KVR_SCOPE_MODEL, parts, 7),
	    KVR_OK);
	ck_assert_uint_eq(a.digest[0], b.digest[0]);
	/* Empty is absent. */
	ck_assert_int_eq(hash_scope_set(&keyed, &a, KVR_SCOPE_MODEL, NULL, 0),
	    KVR_OK);
	ck_assert_mem_eq(&a, &none, sizeof(a));
}
END_TEST

START_TEST(scope_errors)
{
	const struct hash_rule keyed = plain_rule(KVR_HASH_KEYED,
	    KVR_UNIT_TOKENS, 4, 0, 3);
	const struct hash_rule dynamo = plain_rule(KVR_HASH_DYNAMO,
	    KVR_UNIT_TOKENS, 4, 0, 3);
	struct kvr_scope s, before;

	ck_assert_int_eq(kvr_scope_init(NULL, sizeof(s)), KVR_EINVAL);
	kvr_scope_init(&s, sizeof(s));
	s.digest[2] = 5;
	before = s;
	ck_assert_int_eq(hash_scope_set(&keyed, NULL, KVR_SCOPE_MODEL, "m", 1),
	    KVR_EINVAL);
	ck_assert_int_eq(hash_scope_set(&keyed, &s, KVR_SCOPE_MODEL, NULL, 1),
	    KVR_EINVAL);
	ck_assert_int_eq(hash_scope_set(&keyed, &s, (enum kvr_scope_part)4,
	    "m", 1), KVR_EINVAL);
	ck_assert_int_eq(hash_scope_set(&dynamo, &s, KVR_SCOPE_MODEL, "m", 1),
	    KVR_EMISMATCH);
	ck_assert_int_eq(hash_scope_set(&dynamo, &s, KVR_SCOPE_TENANT, "m",
	    1), KVR_EMISMATCH);
	ck_assert_mem_eq(&s, &before, sizeof(s));
	ck_assert_int_eq(hash_scope_set(&dynamo, &s, KVR_SCOPE_MODEL, "", 0),
	    KVR_OK);
	s.size = sizeof(size_t) - 1;
	ck_assert_int_eq(hash_scope_set(&keyed, &s, KVR_SCOPE_MODEL, "m", 1),
	    KVR_EINVAL);
}
END_TEST

/* A caller older than a part cannot set it, and sets all others. */
START_TEST(shorter_scopes)
{
	const struct hash_rule keyed = plain_rule(KVR_HASH_KEYED,
	    KVR_UNIT_TOKENS, 4, 0, 1);
	struct kvr_scope s, whole;
	size_t parts, part;

	for (parts = 0; parts <= 4; parts++) {
		memset(&s, 0xaa, sizeof(s));
		s.size = offsetof(struct kvr_scope, digest) + parts * 8;
		for (part = 0; part < 4; part++) {
			kvr_scope_init(&whole, sizeof(whole));
			ck_assert_int_eq(hash_scope_set(&keyed, &whole,
			    (enum kvr_scope_part)part, "m", 1), KVR_OK);
			ck_assert_int_eq(hash_scope_set(&keyed, &s,
			    (enum kvr_scope_part)part, "m", 1),
			    part < parts ? KVR_OK : KVR_EINVAL);
			if (part < parts)
				ck_assert_uint_eq(s.digest[part],
				    whole.digest[part]);
			else
				ck_assert_uint_eq(s.digest[part],
				    UINT64_C(0xaaaaaaaaaaaaaaaa));
		}
	}
}
END_TEST

/* A newer caller's scope is accepted if the part we do not know is zero. */
START_TEST(longer_scopes)
{
	const struct hash_rule keyed = plain_rule(KVR_HASH_KEYED,
	    KVR_UNIT_TOKENS, 4, 0, 1);
	struct {
		struct kvr_scope scope;
		uint64_t more;
	} longer;

	kvr_scope_init(&longer.scope, sizeof(longer));
	ck_assert_int_eq(hash_scope_set(&keyed, &longer.scope,
	    KVR_SCOPE_SALT, "m", 1), KVR_OK);
	longer.more = 1;
	ck_assert_int_eq(hash_scope_set(&keyed, &longer.scope,
	    KVR_SCOPE_SALT, "n", 1), KVR_ENEWER);
}
END_TEST

/* Each word of the secret is XXH3 of the whole key under a seed of its own. */
START_TEST(keys)
{
	static const unsigned char zeros[KVR_SECRET_MAX];
	unsigned char key[KVR_SECRET_MAX], want[8];
	struct hash_rule rule, other;
	uint64_t word, seed = 0;
	size_t length, i, j;

	for (i = 0; i < sizeof(key); i++)
		key[i] = (unsigned char)(i * 7 + 1);
	for (length = KVR_SECRET_MIN; length <= KVR_SECRET_MAX; length++) {
		hash_rule_key(&rule, key, length);
		seed = 0;
		for (i = 0; i < HASH_SECRET_BYTES; i += 8) {
			seed += UINT64_C(0x9e3779b97f4a7c15);
			word = XXH3_64bits_withSeed(key, length, seed);
			for (j = 0; j < 8; j++)
				want[j] = (unsigned char)(word >> 8 * j);
			ck_assert_mem_eq(rule.secret + i, want, 8);
		}
	}
	/* padding makes another key, and no weak one */
	hash_rule_key(&rule, zeros, KVR_SECRET_MIN);
	hash_rule_key(&other, zeros, KVR_SECRET_MIN + 1);
	ck_assert_mem_ne(rule.secret, other.secret, HASH_SECRET_BYTES);
	for (i = 0; i < HASH_SECRET_BYTES; i += 8)
		ck_assert_mem_ne(rule.secret + i, zeros, 8);
}
END_TEST

Suite *suite_hash(void);

Suite *
suite_hash(void)
{
	Suite *s = suite_create("hash");
	TCase *facts = tcase_create("reference");
	TCase *keyed = tcase_create("keyed");

	tcase_add_loop_test(facts, reference_vectors, 0,
	    sizeof(vectors) / sizeof(vectors[0]));
	tcase_add_test(facts, reference_literals);
	tcase_add_test(facts, reference_seeds);
	tcase_add_test(facts, reference_media);
	tcase_add_test(facts, reference_chain);
	tcase_add_test(keyed, keyed_facts);
	tcase_add_loop_test(keyed, every_block_size, 0, 8);
	tcase_add_test(keyed, fold_agrees);
	tcase_add_loop_test(keyed, tokens_are_little_endian, 0, 2);
	tcase_add_test(keyed, rules_have_identities);
	tcase_add_loop_test(keyed, scopes_are_apart, 0, 2);
	tcase_add_test(keyed, scope_parts);
	tcase_add_test(keyed, scope_errors);
	tcase_add_test(keyed, shorter_scopes);
	tcase_add_test(keyed, longer_scopes);
	tcase_add_test(keyed, keys);
	suite_add_tcase(s, facts);
	suite_add_tcase(s, keyed);
	return s;
}
