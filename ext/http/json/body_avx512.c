/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_avx512.c - see body_blocks.h; for processors with AVX-512 and its byte
 * instructions (VBMI2: Ice Lake, Zen 4 and later). 64 bytes take two look-ups,
 * one blend and one compression, and no branch for each escape:
 *
 *   text       s  a  i  d  \  "  y  e  s  \  "  \  n
 *   starts     .  .  .  .  1  .  .  .  .  1  .  1  .
 *   escaped    .  .  .  .  .  1  .  .  .  .  1  .  1
 *   looked up                 "              "     0a
 *   kept       s  a  i  d     "  y  e  s     "     0a
 *
 * What is loaded and stored is masked: no byte beyond the end is touched.
 */
#include "body_blocks.h"

#ifdef BODY_AVX512

#include <immintrin.h>

/* body_avx512 asks for each of these. Tests have a WIDE of their own. */
#ifndef WIDE
#define WIDE __attribute__((target( \
    "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt")))
#endif
#define WIDE_PART WIDE __attribute__((always_inline)) static inline

bool
body_avx512(void)
{
	return __builtin_cpu_supports("avx512f") &&
	    __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vbmi") &&
	    __builtin_cpu_supports("avx512vbmi2") &&
	    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
	    __builtin_cpu_supports("popcnt");
}

static inline uint64_t
low_bits(size_t n)
{
	return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/*
 * A comparison, as a number. Without this gcc calculates in mask registers, and
 * moves to and fro take longer than the calculation.
 */
static inline uint64_t
as_number(uint64_t mask)
{
	__asm__("" : "+r"(mask));
	return mask;
}

/* All bits below the lowest of these; all, if there is none. */
static inline uint64_t
bits_below(uint64_t bits)
{
	return (bits - 1) & ~bits;
}

WIDE_PART __m512i
each_byte(int byte)
{
	return _mm512_set1_epi8((char)byte);
}

WIDE_PART uint64_t
wrong_bytes(__m512i text, uint64_t *owed)
{
	const uint64_t high = _mm512_movepi8_mask(text);
	uint64_t was = *owed;

	if ((high | was) == 0)
		return 0;
	return wrong_of(high, _mm512_cmpge_epu8_mask(text, each_byte(0xc0)),
	    _mm512_cmpge_epu8_mask(text, each_byte(0xe0)),
	    _mm512_cmpge_epu8_mask(text, each_byte(0xf0)),
	    _mm512_cmpge_epu8_mask(text, each_byte(0xf8)), owed);
}

WIDE size_t
body_avx512_plain(const unsigned char *p, size_t n)
{
	uint64_t owed = 0, stop = 0, here;
	__m512i text;
	size_t i;

	for (i = 0; i < n; i += BLOCK) {
		here = low_bits(n - i);
		text = _mm512_maskz_loadu_epi8(here, p + i);
		stop = _mm512_cmpeq_epi8_mask(text, each_byte('"')) |
		    _mm512_cmpeq_epi8_mask(text, each_byte('\\')) |
		    _mm512_cmplt_epu8_mask(text, each_byte(0x20)) |
		    wrong_bytes(text, &owed);
		if (stop != 0) {
			i += (size_t)__builtin_ctzll(stop);
			break;
		}
	}
	return i - body_begun(p, i);
}

/* --------------------------------------------------------------- decode --- */

/* A block under way. */
struct work {
	__m512i text;
	uint64_t keep; /* these bytes of it */
	uint64_t stop; /* ahead of these */
};

/* The text without its first n bytes. */
WIDE_PART __m512i
text_ahead(__m512i text, size_t n)
{
	static const unsigned char place[BLOCK + 4] = {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
		18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
		33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
		48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62,
		63, 0, 0, 0, 0
	};

	return _mm512_permutexvar_epi8(_mm512_loadu_si512(place + n), text);
}

WIDE_PART void
put_masked(struct work *w, uint64_t at, __m512i bytes, int bits)
{
	w->text = _mm512_mask_mov_epi8(w->text, at,
	    _mm512_or_si512(bytes, each_byte(bits)));
}

/*
 * Escapes of four digits, a backslash at each of `at`. A character's last bytes
 * are at the same places whatever its length:
 *
 *   text     \     u     d0  d1  d2  d3
 *   three    e0+   80+   80+              of d0 | d1, d2 | d2, d3
 *   two            c0+   80+
 *   one                  00+
 *
 * A surrogate stops, and so does what is no digit.
 */
WIDE_PART void
decode_digits(struct work *w, uint64_t at)
{
	const __m512i lower = _mm512_or_si512(w->text, each_byte(0x20));
	const uint64_t is_09 = _mm512_cmple_epu8_mask(
	    _mm512_sub_epi8(w->text, each_byte('0')), each_byte(9));
	const uint64_t hex = as_number(is_09) |
	    as_number(_mm512_cmple_epu8_mask(_mm512_sub_epi8(lower,
	    each_byte('a')), each_byte(5)));
	const __m512i digit = _mm512_and_si512(_mm512_mask_sub_epi8(
	    _mm512_sub_epi8(lower, each_byte('a' - 10)), is_09, w->text,
	    each_byte('0')), each_byte(15));
	/* Shifted as words: with four bits a byte none reaches the next. */
	const __m512i a = text_ahead(digit, 2), b = text_ahead(digit, 3);
	const __m512i middle = _mm512_or_si512(_mm512_slli_epi16(a, 2),
	    _mm512_srli_epi16(_mm512_and_si512(b, each_byte(12)), 2));
	const __m512i last = _mm512_or_si512(_mm512_slli_epi16(a, 4), b);
	const uint64_t two = at & as_number(_mm512_testn_epi8_mask(a, a) &
	    _mm512_cmplt_epu8_mask(b, each_byte(8)));
	const uint64_t one = two & as_number(_mm512_testn_epi8_mask(b, b) &
	    _mm512_cmplt_epu8_mask(text_ahead(digit, 4), each_byte(8)));

	w->stop |= at & (~(hex >> 2 & hex >> 3 & hex >> 4 & hex >> 5) |
	    as_number(_mm512_cmpeq_epi8_mask(a, each_byte(13)) &
	    _mm512_cmpge_epu8_mask(b, each_byte(8))));
	put_masked(w, at, a, 0xe0);
	put_masked(w, at << 1, middle, 0x80);
	put_masked(w, two << 1, middle, 0xc0);
	put_masked(w, at << 2, _mm512_and_si512(last, each_byte(0x3f)), 0x80);
	put_masked(w, one << 2, last, 0);
	w->keep &= ~(two | one << 1 | at << 3 | at << 4 | at << 5);
}

/* What stops, unless it is escaped: quotes and control characters. */
static const unsigned char stops[BLOCK] = {
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ['"'] = 1
};

/* What a block leaves to the next one. */
struct carry {
	uint64_t owed;    /* as of wrong_of */
	uint64_t escaped; /* its first byte is */
};

/*
 * Of backslashes in a row every second one begins an escape: the first of them,
 * and then each that has one two places before it.
 *
 *   slashes  .  1  1  1  1  1  .  1  .  1  1
 *   first    .  1  .  .  .  .  .  1  .  1  .
 *   starts   .  1  .  1  .  1  .  1  .  1  .
 *
 * So the first is passed on by two places, these by four, and so on. `linked`
 * are those to which it may be passed: as many others of their row, less one,
 * are before them. Few texts have any.
 */
static inline uint64_t
starts_of(uint64_t slashes)
{
	uint64_t linked = slashes & slashes << 1;
	uint64_t starts = slashes & ~linked;
	int by;

	for (by = 2; linked != 0 && by < BLOCK; by *= 2) {
		starts |= linked & starts << by;
		linked &= linked << by;
	}
	return starts;
}

/* What becomes of the text that `table` has at each byte: of ASCII alone. */
WIDE_PART __m512i
look_up(__m512i text, const __m512i table[2])
{
	return _mm512_permutex2var_epi8(table[0], text, table[1]);
}

/*
 * Escapes that the table does not know, at `odd`: four digits, or bad ones. The
 * first byte of a block is not for here. Returns what of n bytes is taken:
 * nothing of an escape that ends beyond them.
 */
WIDE_PART uint64_t
decode_rare(struct work *w, __m512i text, size_t n, uint64_t starts,
    uint64_t odd)
{
	const uint64_t u = (odd & as_number(_mm512_cmpeq_epi8_mask(text,
	    each_byte('u')))) >> 1;

	w->stop |= odd >> 1 & ~u;
	w->keep |= u;
	decode_digits(w, u);
	return low_bits(n) & bits_below((starts & ~(low_bits(n) >> 1)) | (u &
	    ~(low_bits(n) >> 5)));
}

/*
 * One block, of which n bytes are there; false: what follows is not for here.
 *
 * An escape of two bytes may end in the next block, but one of four digits ends
 * this block: the next one begins with it. So what is wrong with its backslash,
 * that it cuts a character short, is looked at here. If a wrong byte follows,
 * c->owed is not that of the next block, which then stops at once; the escape
 * there is bad too.
 */
WIDE_PART bool
decode_block(struct way *way, size_t n, struct carry *c,
    const __m512i table[4])
{
	const __m512i text = _mm512_maskz_loadu_epi8(low_bits(n), way->from);
	const __m512i letter = look_up(text, table);
	const __m512i stopping = look_up(text, table + 2);
	const uint64_t high = as_number(_mm512_movepi8_mask(text));
	const uint64_t starts = starts_of(as_number(_mm512_cmpeq_epi8_mask(
	    text, each_byte('\\'))) & ~c->escaped);
	const uint64_t escaped = starts << 1 | c->escaped;
	const uint64_t odd = escaped & (high |
	    as_number(_mm512_testn_epi8_mask(letter, letter)));
	const uint64_t bad = wrong_bytes(text, &c->owed);
	uint64_t whole = low_bits(n);
	bool early = n < BLOCK || odd != 0;
	struct work w = {
		.text = _mm512_mask_mov_epi8(text, escaped, letter),
		.keep = ~starts,
		.stop = (as_number(_mm512_test_epi8_mask(stopping, stopping)) &
		    ~(escaped | high)) | bad
	};

	if ((c->escaped & odd) != 0)
		return false;
	if (early)
		whole = decode_rare(&w, text, n, starts, odd);
	w.stop = (w.stop & whole) | (bad & (whole + 1));
	c->escaped = starts >> (BLOCK - 1);
	if (__builtin_expect(w.stop != 0, 0)) {
		whole &= bits_below(w.stop);
		early = true;
	}
	/* A branch is foreseen; so the next load does not wait for the sum. */
	if (early) {
		c->escaped = 0;
		w.keep &= whole;
		way->from += __builtin_popcountll(whole);
	} else {
		way->from += BLOCK;
	}
	_mm512_storeu_si512(way->to, _mm512_maskz_compress_epi8(w.keep,
	    w.text));
	way->to += __builtin_popcountll(w.keep);
	return w.stop == 0;
}

WIDE struct way
body_avx512_decode(struct way w, const unsigned char *end,
    const unsigned char *full)
{
	const unsigned char *const start = w.from;
	const __m512i table[4] = { _mm512_loadu_si512(body_escaped),
		_mm512_loadu_si512(body_escaped + BLOCK),
		_mm512_loadu_si512(stops), _mm512_setzero_si512() };
	struct carry c = { 0, 0 };
	bool more = true;

	while (more && end - w.from >= BLOCK && full - w.to >= BLOCK)
		more = decode_block(&w, BLOCK, &c, table);
	if (more && end > w.from && full - w.to >= BLOCK)
		(void)decode_block(&w, (size_t)(end - w.from), &c, table);
	w.from -= c.escaped;
	return way_back(w, start);
}

#else

typedef int body_avx512_is_empty;

#endif
