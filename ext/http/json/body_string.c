/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_string.c - see body_string.h.
 *
 * There are two readers. unit_take takes one character or escape and is the
 * definition. blocks_plain and blocks_decode take 64 bytes at a time, while
 * whole blocks are left; they touch no byte outside the buffers, so unit_take
 * reads the last bytes of a piece. They are compiled to SSE2 or to plain C.
 */
#include "body_string.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A test defines BODY_WITHOUT_SSE2 to compare both. */
#if defined(__SSE2__) && !defined(BODY_WITHOUT_SSE2)
#define BODY_SSE2
#include <emmintrin.h>
#endif

enum {
	BLOCK = 64,
	RUN = 32   /* bytes copied at once; only the first ones may count */
};

/* The positions of the decoder in its input and output. */
struct way {
	const unsigned char *from;
	unsigned char *to;
};

/* The character of each simple escape, by its letter; 0: not a simple one. */
static const unsigned char escaped[256] = {
	['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f',
	['n'] = '\n', ['r'] = '\r', ['t'] = '\t'
};

/* ---------------------------------------------------------------- masks --- */

#ifdef BODY_SSE2

struct block {
	__m128i a, b, c, d;
};

static inline __m128i
load_bytes(const unsigned char *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline struct block
block_load(const unsigned char *p)
{
	return (struct block){ load_bytes(p), load_bytes(p + 16),
		load_bytes(p + 32), load_bytes(p + 48) };
}

static inline uint64_t
byte_bits(__m128i v)
{
	return (uint64_t)(uint32_t)_mm_movemask_epi8(v);
}

static inline uint64_t
gather_bits(__m128i a, __m128i b, __m128i c, __m128i d)
{
	return byte_bits(a) | byte_bits(b) << 16 | byte_bits(c) << 32 |
	    byte_bits(d) << 48;
}

static inline __m128i
find_special(__m128i v)
{
	return _mm_or_si128(_mm_or_si128(
	    _mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
	    _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))),
	    _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v));
}

/* Quotes, backslashes and control characters. */
static inline uint64_t
block_special(const struct block *b)
{
	return gather_bits(find_special(b->a), find_special(b->b),
	    find_special(b->c), find_special(b->d));
}

/* Returns bit 7 - `down` of each byte. */
static inline uint64_t
block_bits(const struct block *b, int down)
{
	return gather_bits(_mm_slli_epi16(b->a, down),
	    _mm_slli_epi16(b->b, down), _mm_slli_epi16(b->c, down),
	    _mm_slli_epi16(b->d, down));
}

static inline bool
block_is_ascii(const struct block *b)
{
	return _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(b->a, b->b),
	    _mm_or_si128(b->c, b->d))) == 0;
}

static inline void
copy_run(unsigned char *to, const unsigned char *from)
{
	_mm_storeu_si128((__m128i *)(void *)to,
	    _mm_loadu_si128((const __m128i *)(const void *)from));
	_mm_storeu_si128((__m128i *)(void *)(to + 16),
	    _mm_loadu_si128((const __m128i *)(const void *)(from + 16)));
}

#else

struct block {
	uint64_t part[8]; /* first byte lowest */
};

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline struct block
block_load(const unsigned char *p)
{
	struct block b;
	size_t i;

	memcpy(b.part, p, sizeof(b.part));
	for (i = 0; i < 8; i++)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		b.part[i] = __builtin_bswap64(b.part[i]);
#else
		continue;
#endif
	return b;
}

/* The highest bits of eight bytes, together. */
static inline uint64_t
gather_bits(uint64_t word)
{
	return ((word & EACH(0x80)) >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

/* The highest bit of each byte that is 0. */
static inline uint64_t
find_zeros(uint64_t word)
{
	return ~(((word & EACH(0x7f)) + EACH(0x7f)) | word) & EACH(0x80);
}

static inline uint64_t
block_special(const struct block *b)
{
	uint64_t mask = 0, w;
	size_t i;

	for (i = 0; i < 8; i++) {
		w = b->part[i];
		mask |= gather_bits(find_zeros(w ^ EACH('"')) |
		    find_zeros(w ^ EACH('\\')) |
		    find_zeros(w & EACH(0xe0))) << 8 * i;
	}
	return mask;
}

static inline uint64_t
block_bits(const struct block *b, int down)
{
	uint64_t mask = 0;
	size_t i;

	for (i = 0; i < 8; i++)
		mask |= gather_bits(b->part[i] << down) << 8 * i;
	return mask;
}

static inline bool
block_is_ascii(const struct block *b)
{
	uint64_t any = 0;
	size_t i;

	for (i = 0; i < 8; i++)
		any |= b->part[i];
	return (any & EACH(0x80)) == 0;
}

static inline void
copy_run(unsigned char *to, const unsigned char *from)
{
	memcpy(to, from, RUN);
}

#endif

/* Returns how many bytes before p + n begin a character without its end. */
static size_t
character_begun_by(const unsigned char *p, size_t n)
{
	size_t has;
	unsigned char c;

	for (has = 1; has < 4 && has <= n; has++) {
		c = p[n - has];
		if (c >= 0xc0)
			return (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) > has ?
			    has : 0;
		if (c < 0x80)
			break;
	}
	return 0;
}

static inline size_t
character_begun(const unsigned char *p, size_t n)
{
	return n == 0 || p[n - 1] < 0x80 ? 0 : character_begun_by(p, n);
}

/* Goes back to the begin of the last character, if it is not whole. */
static inline struct way
way_back(struct way w, const unsigned char *start)
{
	size_t n = character_begun(start, (size_t)(w.from - start));

	return (struct way){ w.from - n, w.to - n };
}

/*
 * Returns the mask of bytes that break UTF-8. `first` marks bytes that begin a
 * character of two bytes or more, `three` and `four` those that begin one of at
 * least as many, `none` bytes that UTF-8 lacks. *owed marks bytes of the next
 * block that must continue a character.
 *
 *   text    c3 a4 61 e2 82 22        two, ASCII, three and cut short
 *   first    1  .  .  1  .  .
 *   wanted   .  1  .  .  1  1
 *   follows  .  1  .  .  1  .
 *   wrong    .  .  .  .  .  1
 */
static inline uint64_t
wrong_of(uint64_t high, uint64_t first, uint64_t three, uint64_t four,
    uint64_t none, uint64_t *owed)
{
	uint64_t wanted = *owed | first << 1 | three << 2 | four << 3;

	*owed = first >> 63 | three >> 62 | four >> 61;
	return (wanted ^ (high & ~first)) | none;
}

static inline uint64_t
block_wrong(const struct block *b, uint64_t *owed)
{
	uint64_t high, first, three, four;

	if (block_is_ascii(b)) {
		high = *owed;
		*owed = 0;
		return high;
	}
	high = block_bits(b, 0);
	first = high & block_bits(b, 1);
	three = first & block_bits(b, 2);
	four = three & block_bits(b, 3);
	return wrong_of(high, first, three, four, four & block_bits(b, 4),
	    owed);
}

/* ----------------------------------------------------------------- unit --- */

/* 0x10000 is no digit: a number made with it has more than 16 bits. */
static const uint32_t hex_digits[256] = {
#define NONE 0x10000
#define NONE_4 NONE, NONE, NONE, NONE
#define NONE_16 NONE_4, NONE_4, NONE_4, NONE_4
	NONE_16, NONE_16, NONE_16,
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, NONE, NONE, NONE_4,
	NONE, 10, 11, 12, 13, 14, 15, NONE, NONE_4, NONE_4, NONE_16,
	NONE, 10, 11, 12, 13, 14, 15, NONE, NONE_4, NONE_4, NONE_16,
	NONE_16, NONE_16, NONE_16, NONE_16,
	NONE_16, NONE_16, NONE_16, NONE_16
#undef NONE
#undef NONE_4
#undef NONE_16
};

/* Reads four hexadecimal digits; STRING_ESCAPE: *value is complete. */
static enum string_stop
hex_value(const unsigned char *p, size_t n, uint32_t *value)
{
	size_t i;
	uint32_t d;

	*value = 0;
	for (i = 0; i < 4; i++) {
		if (i == n)
			return STRING_MORE;
		if ((d = hex_digits[p[i]]) > 15)
			return STRING_BAD;
		*value = *value << 4 | d;
	}
	return STRING_ESCAPE;
}

static size_t
utf8_put(uint32_t c, unsigned char *to)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4, i;
	static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (i = n - 1; i > 0; i--, c >>= 6)
		to[i] = (unsigned char)(0x80 | (c & 0x3f));
	to[0] = (unsigned char)(first[n] | c);
	return n;
}

struct taken_unit {
	size_t read;    /* 0: `why` has the reason */
	size_t written; /* at most 4 */
	enum string_stop why;
};

static struct taken_unit
unit_stopped(enum string_stop why)
{
	return (struct taken_unit){ .why = why };
}

/* Decodes the escape at p, which begins with `\u`. */
static struct taken_unit
unit_hex(const unsigned char *p, size_t n, unsigned char *to)
{
	struct taken_unit u = { .read = 6 };
	uint32_t c, low;

	if ((u.why = hex_value(p + 2, n - 2, &c)) != STRING_ESCAPE)
		return unit_stopped(u.why);
	if ((c & 0xfc00) == 0xd800) {
		if (n == 6 || (p[6] == '\\' && n == 7))
			return unit_stopped(STRING_MORE);
		if (p[6] != '\\' || p[7] != 'u') {
			c = '?';
		} else {
			u.why = hex_value(p + 8, n - 8, &low);
			if (u.why != STRING_ESCAPE)
				return unit_stopped(u.why);
			c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
			u.read = 12;
		}
	}
	u.written = utf8_put(c, to);
	return u;
}

static struct taken_unit
unit_escape(const unsigned char *p, size_t n, unsigned char *to)
{
	if (n == 1)
		return unit_stopped(STRING_MORE);
	if (p[1] == 'u')
		return unit_hex(p, n, to);
	if (escaped[p[1]] == 0)
		return unit_stopped(STRING_BAD);
	to[0] = escaped[p[1]];
	return (struct taken_unit){ .read = 2, .written = 1 };
}

/* Decodes one character or escape; n is not 0. */
static struct taken_unit
unit_take(const unsigned char *p, size_t n, unsigned char *to)
{
	size_t length, i;

	if (*p == '"')
		return unit_stopped(STRING_QUOTE);
	if (*p == '\\')
		return unit_escape(p, n, to);
	if (*p < 0x20 || (*p >= 0x80 && *p < 0xc0) || *p >= 0xf8)
		return unit_stopped(STRING_BAD);
	length = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
	for (i = 1; i < length; i++) {
		if (i == n)
			return unit_stopped(STRING_MORE);
		if ((p[i] & 0xc0) != 0x80)
			return unit_stopped(STRING_BAD);
	}
	memcpy(to, p, length);
	return (struct taken_unit){ .read = length, .written = length };
}

/* ------------------------------------------------------------------ way --- */

const char *
string_way(void)
{
#ifdef BODY_SSE2
	return "SSE2";
#else
	return "C";
#endif
}

/* ---------------------------------------------------------------- plain --- */

/* Reads whole blocks, and ends within the first that has more than text. */
static size_t
blocks_plain(const unsigned char *p, size_t n)
{
	uint64_t owed = 0, stop;
	struct block b;
	size_t i;

	for (i = 0; n - i >= BLOCK; i += BLOCK) {
		b = block_load(p + i);
		stop = block_special(&b);
		stop |= block_wrong(&b, &owed);
		if (stop != 0) {
			i += (size_t)__builtin_ctzll(stop);
			break;
		}
	}
	return i - character_begun(p, i);
}

static size_t
long_plain(const unsigned char *p, size_t n, enum string_stop *why)
{
	size_t at = blocks_plain(p, n);
	struct taken_unit u;
	unsigned char to[4];

	for (*why = STRING_MORE; at < n; at += u.read) {
		if (p[at] == '\\') {
			*why = STRING_ESCAPE;
			break;
		}
		u = unit_take(p + at, n - at, to);
		if (u.read == 0) {
			*why = u.why;
			break;
		}
	}
	return at;
}

/* Returns the length of a string of less than 16 bytes of ASCII; else 16. */
static inline size_t
short_plain(const unsigned char *p)
{
#ifdef BODY_SSE2
	const __m128i text = load_bytes(p);
	const uint64_t quote = byte_bits(_mm_cmpeq_epi8(text,
	    _mm_set1_epi8('"')));
	const uint64_t stop = byte_bits(find_special(text)) | byte_bits(text);

	if (quote != 0 && (stop & ((quote - 1) & ~quote)) == 0)
		return (size_t)__builtin_ctzll(quote);
#else
	(void)p;
#endif
	return 16;
}

size_t
string_plain(const unsigned char *p, size_t n, enum string_stop *why)
{
	if (n >= 16 && short_plain(p) < 16) {
		*why = STRING_QUOTE;
		return short_plain(p);
	}
	return long_plain(p, n, why);
}

/* --------------------------------------------------------------- decode --- */

static inline void
copy_some(struct way *w, size_t n)
{
	copy_run(w->to, w->from);
	if (n > RUN)
		copy_run(w->to + RUN, w->from + RUN);
	w->to += n;
	w->from += n;
}

/*
 * Decodes whole blocks, while another one follows: a run copies bytes beyond
 * its end. It decodes simple escapes, and ends at anything else.
 */
static struct way
blocks_decode(struct way w, const unsigned char *end, const unsigned char *full)
{
	const unsigned char *const start = w.from, *block;
	uint64_t owed = 0, stop;
	struct block b;
	unsigned char c;

	while (end - w.from >= 2 * BLOCK && full - w.to >= 2 * BLOCK) {
		block = w.from;
		b = block_load(block);
		if (block_wrong(&b, &owed) != 0)
			break;
		for (stop = block_special(&b); stop != 0; stop &= stop - 1) {
			copy_some(&w, (size_t)__builtin_ctzll(stop) -
			    (size_t)(w.from - block));
			c = escaped[w.from[1]];
			if (*w.from != '\\' || c == 0)
				return w;
			*w.to++ = c;
			w.from += 2;
			/* An escaped quote or backslash has a bit too. */
			stop &= ~(UINT64_C(2) << __builtin_ctzll(stop));
		}
		if (w.from - block < BLOCK)
			copy_some(&w, BLOCK - (size_t)(w.from - block));
	}
	return way_back(w, start);
}

/*
 * Decodes a row of escapes by digits, each one character, while both buffers
 * have STRING_UNIT bytes left. Text in other scripts consists of such rows.
 */
static __attribute__((noinline)) void
digits_decode(struct way *w, const unsigned char *end,
    const unsigned char *full)
{
	const unsigned char *p = w->from;
	unsigned char *to = w->to;
	uint32_t c;

	while (end - p >= STRING_UNIT && full - to >= STRING_UNIT &&
	    p[0] == '\\' && p[1] == 'u') {
		c = hex_digits[p[2]] << 12 | hex_digits[p[3]] << 8 |
		    hex_digits[p[4]] << 4 | hex_digits[p[5]];
		if (c < 0x80 || c > 0xffff || (c & 0xf800) == 0xd800)
			break;
		if (c < 0x800) {
			*to++ = (unsigned char)(0xc0 | c >> 6);
		} else {
			*to++ = (unsigned char)(0xe0 | c >> 12);
			*to++ = (unsigned char)(0x80 | (c >> 6 & 0x3f));
		}
		*to++ = (unsigned char)(0x80 | (c & 0x3f));
		p += 6;
	}
	w->from = p;
	w->to = to;
}

/* Decodes one unit, or a row of escapes by digits. */
static struct taken_unit
unit_some(struct way *w, const unsigned char *end, const unsigned char *full)
{
	struct taken_unit u = { .read = STRING_UNIT };

	if (end - w->from >= STRING_UNIT && w->from[0] == '\\' &&
	    w->from[1] == 'u') {
		const unsigned char *start = w->from;

		digits_decode(w, end, full);
		if (w->from > start)
			return u;
	}
	do {
		u = unit_take(w->from, (size_t)(end - w->from), w->to);
		w->from += u.read;
		w->to += u.written;
	} while (u.read >= 6 && end - w->from >= STRING_UNIT &&
	    full - w->to >= STRING_UNIT && w->from[0] == '\\' &&
	    w->from[1] == 'u');
	return u;
}

size_t
string_decode(const unsigned char *p, size_t n, unsigned char *to,
    size_t room, size_t *written, enum string_stop *why)
{
	const unsigned char *const end = p + n, *const full = to + room;
	struct way w = { p, to };
	struct taken_unit u = { .why = STRING_MORE };

	while (w.from < end) {
		if (full - w.to < STRING_SLACK) {
			u.why = STRING_FULL;
			break;
		}
		w = blocks_decode(w, end, full);
		if (w.from == end)
			break;
		if (full - w.to < STRING_UNIT)
			continue;
		u = unit_some(&w, end, full);
		if (u.read == 0)
			break;
		u.why = STRING_MORE;
	}
	*why = u.why;
	*written = (size_t)(w.to - to);
	return (size_t)(w.from - p);
}

/* --------------------------------------------------------------- escape --- */

size_t
string_escape(unsigned char c, unsigned char to[STRING_ESCAPED])
{
	static const char letters[] = "\"\\bfnrt", hex[] = "0123456789ABCDEF";
	size_t i;

	to[0] = '\\';
	for (i = 0; letters[i] != '\0'; i++) {
		to[1] = (unsigned char)letters[i];
		if (escaped[to[1]] == c)
			return 2;
	}
	memcpy(to + 1, "u00", 3);
	to[4] = (unsigned char)hex[c >> 4];
	to[5] = (unsigned char)hex[c & 15];
	return STRING_ESCAPED;
}
