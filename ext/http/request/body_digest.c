/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_digest.c - makes the digests of values that are not shown as text.
 *
 * Tools and other facts in the scope, members of messages that are not in the
 * table of body_keys.c, and lists of media are taken as a whole. The digest of
 * a value is made from those of its parts while it is read, in a few words for
 * each open level, whatever its size:
 *
 *   "abc" 10 true   hash of the text and kind; 10, 10.0 and 1e1 are one number
 *   [a, b]          hash(hash(start, a), b)
 *   {"k": v, ...}   sum of hash(k, v): the order of keys does not matter
 *
 * A member that is null counts as absent. An empty value counts as absent, too:
 * "", [], {}, [null] and the like.
 *
 * The members of an object that are not in its table are one more sum, and are
 * written behind its last rank. See body_order.c.
 */
#include "body_in.h"

#include "body_keys.h"

enum { NUMBER_BYTES = 64 };

/* A number without leading and trailing zeros. */
struct number {
	int64_t exponent;
	size_t n;
	unsigned char digits[NUMBER_BYTES]; /* n of them, then 0 */
	bool negative;
};

/* --------------------------------------------------------------- hashes --- */

static XXH128_hash_t
hash_join(XXH128_hash_t a, XXH128_hash_t b, enum mark kind)
{
	XXH128_canonical_t both[2];

	XXH128_canonicalFromHash(&both[0], a);
	XXH128_canonicalFromHash(&both[1], b);
	return XXH3_128bits_withSeed(both, sizeof(both), kind);
}

static void
hash_add(XXH128_hash_t *sum, XXH128_hash_t h)
{
	sum->low64 += h.low64;
	sum->high64 += h.high64 + (sum->low64 < h.low64);
}

/* Returns the hash of a value without text, or of a list without parts yet. */
static XXH128_hash_t
hash_of_kind(enum mark kind)
{
	return (XXH128_hash_t){ kind, 0 };
}

/* -------------------------------------------------------------- numbers --- */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns the end of the digits with their point; 0: there are too many. */
static size_t
mantissa_read(const char *text, size_t n, struct number *out)
{
	bool fraction = false;
	size_t i;

	for (i = out->negative; i < n; i++) {
		if (text[i] == '.') {
			fraction = true;
			continue;
		}
		if (!is_digit(text[i]))
			break;
		out->exponent -= fraction;
		if (out->n == 0 && text[i] == '0')
			continue;
		if (out->n == NUMBER_BYTES)
			return 0;
		out->digits[out->n++] = (unsigned char)text[i];
	}
	return i;
}

/* Reads a number of JSON's grammar; false: it has too many digits. */
static bool
number_read(const char *text, size_t n, struct number *out)
{
	int64_t exponent = 0;
	bool down;
	size_t i;

	memset(out, 0, sizeof(*out));
	out->negative = n > 0 && text[0] == '-';
	i = mantissa_read(text, n, out);
	if (i == 0)
		return false;
	down = i + 1 < n && text[i + 1] == '-';
	for (i++; i < n && exponent < INT32_MAX; i++)
		if (is_digit(text[i]))
			exponent = exponent * 10 + (text[i] - '0');
	out->exponent += down ? -exponent : exponent;
	while (out->n > 0 && out->digits[out->n - 1] == '0') {
		out->digits[--out->n] = 0;
		out->exponent++;
	}
	if (out->n == 0) {
		out->exponent = 0;
		out->negative = false;
	}
	return true;
}

uint64_t
body_whole_number(const char *text, size_t n)
{
	uint64_t value = 0;
	struct number number;
	size_t i;

	if (n == 0 || !number_read(text, n, &number) || number.negative ||
	    number.exponent < 0 || number.n + (uint64_t)number.exponent > 10)
		return UINT64_MAX;
	for (i = 0; i < number.n; i++)
		value = value * 10 + (uint64_t)(number.digits[i] - '0');
	for (; number.exponent > 0; number.exponent--)
		value *= 10;
	return value;
}

static XXH128_hash_t
number_hash(const char *text, size_t n)
{
	struct number number;

	if (!number_read(text, n, &number))
		return XXH3_128bits_withSeed(text, n, MARK_NUMBER);
	return XXH3_128bits_withSeed(number.digits, number.n, MARK_NUMBER +
	    256 * (uint64_t)number.exponent + 128 * number.negative);
}

/* --------------------------------------------------------------- values --- */

XXH128_hash_t
body_string_hash(const struct body *b, const void *text, size_t n)
{
	return text == NULL && n > 0 ? XXH3_128bits_digest(b->digest) :
	    XXH3_128bits(text, n);
}

void
body_media(struct body *b, XXH128_hash_t digest)
{
	XXH128_canonical_t bytes;

	body_open(b);
	XXH128_canonicalFromHash(&bytes, digest);
	body_text(b, MARK_MEDIA, bytes.digest, sizeof(bytes.digest));
	b->media = true;
}

/* Takes the digest of a member of an ordered object, or of an element. */
static void
other_take(struct body *b, struct level *l, XXH128_hash_t d)
{
	const XXH128_hash_t rank = { l->rank, MARK_OTHER };
	XXH128_canonical_t bytes;

	if (body_is_ordered(l->room)) {
		hash_add(&l->sum, hash_join(l->value == IS_OTHER ? l->key :
		    rank, d, MARK_KEY));
		l->any = true;
		return;
	}
	XXH128_canonicalFromHash(&bytes, d);
	body_open(b);
	body_text(b, MARK_OTHER, bytes.digest, sizeof(bytes.digest));
}

/* Takes the digest of a value; `any`: the value is not empty. */
static void
digest_take(struct body *b, XXH128_hash_t d, bool any)
{
	struct level *l = &b->level[b->depth];

	if (l->room == ROOM_DIGEST_LIST) {
		l->sum = hash_join(l->sum, d, MARK_LIST);
		l->any |= any;
	} else if (l->room == ROOM_DIGEST_MAP) {
		hash_add(&l->sum, hash_join(l->key, d, MARK_KEY));
		l->any |= any;
	} else if (!any) {
		return;
	} else if (l->value == IS_AHEAD) {
		b->is_ahead[l->mark] = true;
		XXH128_canonicalFromHash(&b->ahead[l->mark], d);
	} else if (l->value == IS_MEDIA) {
		body_media(b, d);
	} else {
		other_take(b, l, d);
	}
}

/* Counts digested bytes; many of them in a message may be media. */
static void
count_digested(struct body *b, size_t n)
{
	if (b->level[1].value == IS_AHEAD) {
		b->digested += n;
		return;
	}
	b->others += n;
	b->media |= b->others > OTHERS_BYTES;
}

void
body_digest_key(struct body *b, const void *name, size_t n)
{
	b->level[b->depth].key = XXH3_128bits(name, n);
	count_digested(b, n + 2);
}

void
body_digest_string(struct body *b, const void *text, size_t n)
{
	XXH128_hash_t d;

	count_digested(b, n + 2);
	d = body_string_hash(b, text, n);
	d.high64 ^= MARK_STRING;
	digest_take(b, d, n > 0);
}

void
body_digest_scalar(struct body *b, enum mark mark, const char *text, size_t n)
{
	const struct level *l = &b->level[b->depth];

	if (mark == MARK_NULL && l->room != ROOM_DIGEST_LIST)
		return;
	count_digested(b, n + 2);
	digest_take(b, mark == MARK_NUMBER ? number_hash(text, n) :
	    hash_of_kind(mark), mark != MARK_NULL);
}

void
body_digest_open(struct body *b, struct level *to, bool is_map)
{
	count_digested(b, 2);
	to->sum = hash_of_kind(is_map ? MARK_MAP : MARK_LIST);
	to->any = false;
}

/* The level l has ended: its digest is a value of the level around it. */
void
body_digest_close(struct body *b, const struct level *l)
{
	count_digested(b, 2);
	digest_take(b, hash_join(l->sum, hash_of_kind(MARK_NONE),
	    l->room == ROOM_DIGEST_MAP ? MARK_MAP_END : MARK_LIST_END), l->any);
}

/* Writes the members without a rank, behind all others. */
void
body_digest_others(struct body *b)
{
	struct level *l = &b->level[b->depth];
	XXH128_canonical_t bytes;

	if (!l->any)
		return;
	l->rank = RANK_OTHERS;
	XXH128_canonicalFromHash(&bytes, l->sum);
	body_order_text(b, MARK_OTHER, bytes.digest, sizeof(bytes.digest));
}
